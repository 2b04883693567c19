# SPDX-License-Identifier: GPL-3.0-or-later
"""What all commands share: arguments, files, imports, progress."""

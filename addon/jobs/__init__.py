# SPDX-License-Identifier: GPL-3.0-or-later
"""Work that goes on while the window lives."""

# SPDX-License-Identifier: GPL-3.0-or-later
"""What an armature is, and how it moves."""

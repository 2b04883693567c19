# SPDX-License-Identifier: GPL-3.0-or-later
"""What an armature is, how it moves, and which action, strip and mark is whose."""

# SPDX-License-Identifier: GPL-3.0-or-later
"""What Poise adds to the window beside its sidebar: menus, preferences, gizmos."""

# SPDX-License-Identifier: GPL-3.0-or-later
"""The reference motion: mended, walking on, on command, by waypoints, handed back."""

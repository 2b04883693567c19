# SPDX-License-Identifier: GPL-3.0-or-later
"""What bears a motion: its terrain, feet that roll and stand on it, weight above them."""

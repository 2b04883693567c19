# SPDX-License-Identifier: GPL-3.0-or-later
"""Rotations, the skeleton, motions and trajectories, when feet stand, solids."""

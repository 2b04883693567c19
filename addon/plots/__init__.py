# SPDX-License-Identifier: GPL-3.0-or-later
"""Plots and strips of figures, in the window and on paper."""

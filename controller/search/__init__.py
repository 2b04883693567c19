# SPDX-License-Identifier: GPL-3.0-or-later
"""Trials of gains and corrections: tuning, rectification, limits."""

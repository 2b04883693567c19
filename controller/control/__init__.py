# SPDX-License-Identifier: GPL-3.0-or-later
"""Tracking, balance, steps: torques from states."""

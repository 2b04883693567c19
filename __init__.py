# SPDX-License-Identifier: GPL-3.0-or-later
"""Poise: physics for captured and keyframed bipeds."""

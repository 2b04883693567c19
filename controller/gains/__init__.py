# SPDX-License-Identifier: GPL-3.0-or-later
"""How firmly a body follows, and keeps its balance: gains, regions, styles, physics weights."""

# SPDX-License-Identifier: GPL-3.0-or-later
"""Clean Up: poses solved for contacts that hold, without simulation."""

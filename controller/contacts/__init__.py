# SPDX-License-Identifier: GPL-3.0-or-later
"""When and where feet touch: found, planned, written down."""

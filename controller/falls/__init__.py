# SPDX-License-Identifier: GPL-3.0-or-later
"""A body that has lost its balance: how it gives, catches itself, comes to rest and gets up."""

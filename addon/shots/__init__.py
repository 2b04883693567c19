# SPDX-License-Identifier: GPL-3.0-or-later
"""One character from its reading to its bake, and the searches for it."""

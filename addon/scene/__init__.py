# SPDX-License-Identifier: GPL-3.0-or-later
"""What surrounds and directs a character: objects, pushes, walks, weights, contacts, bodies."""

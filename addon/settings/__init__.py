# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user chooses, and what is chosen for them."""

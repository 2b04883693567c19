# SPDX-License-Identifier: GPL-3.0-or-later
"""What a character has learned to do on command."""

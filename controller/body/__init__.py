# SPDX-License-Identifier: GPL-3.0-or-later
"""The body: segments and their masses, joints, soles, momentum, other proportions."""

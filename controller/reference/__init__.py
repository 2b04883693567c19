# SPDX-License-Identifier: GPL-3.0-or-later
"""The reference motion: mended, planted, rolling, walking on, on its terrain, handed back."""

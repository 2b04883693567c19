# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogs of translations, and the tool that brings them up to date with the source."""

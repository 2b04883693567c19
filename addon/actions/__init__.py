# SPDX-License-Identifier: GPL-3.0-or-later
"""Which action, strip and mark is whose."""

# SPDX-License-Identifier: GPL-3.0-or-later
"""Worker processes, here and on a cluster."""

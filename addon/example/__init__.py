# SPDX-License-Identifier: GPL-3.0-or-later
"""A character of our own, with a few actions: the example scene, and the demo's hand-keyed shot."""

# SPDX-License-Identifier: GPL-3.0-or-later
"""The physics of Poise: a library of its own, without Blender."""

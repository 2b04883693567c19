# SPDX-License-Identifier: GPL-3.0-or-later
"""Blender itself: versions, evaluation, poses, keys, files, session, the user's language."""

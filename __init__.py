# SPDX-License-Identifier: GPL-3.0-or-later
"""Poise: physics for captured and keyframed bipeds.

A Blender extension, and at the same time the Python package `poise`. Importing it imports nothing
of Blender's, so that the physics library `poise.controller` works without.
"""


def register():
    """Called by Blender when the extension is enabled. Raises RequirementError if what it
    needs is not there; Blender shows the message."""
    from .addon.requirements import check

    check()
    from .addon import register as register_addon

    register_addon()


def unregister():
    """Called by Blender when the extension is disabled."""
    from .addon import unregister as unregister_addon

    unregister_addon()

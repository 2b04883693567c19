# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep a result as a take, and let go of one."""

import bpy

from ..blender import session
from ..blender.chosen import chosen_armature
from ..blender.redrawing import redraw
from ..blender.translations import tr
from ..settings import takes
from .bake import poll_simulated


def _shot(context):
    armature, _ = chosen_armature(context)
    return session.result_of(context.scene, armature).shot


class POISE_OT_keep_take(bpy.types.Operator):
    """Keep the result of the armature as a take."""

    bl_idname = "poise.keep_take"
    bl_label = "Keep Simulation as Take"
    bl_description = (
        "Keep this simulation, so that the next one does not replace it: to compare their ghosts, "
        "and to bake each. Takes live until another file is opened or Blender is closed; only what "
        "is baked is in the file"
    )
    bl_options = {"REGISTER"}  # no undo: takes are no part of the scene

    @classmethod
    def poll(cls, context):
        """Needs a simulation that is not kept yet."""
        if not poll_simulated(cls, context):
            return False
        name = takes.name_of(_shot(context))
        if name:
            cls.poll_message_set(tr(f"It is kept already, as '{name}'"))
        return not name

    def execute(self, context):
        """Keep it."""
        armature, _ = chosen_armature(context)
        name = takes.keep(context.scene, armature).label
        self.report({"INFO"}, tr(f"Kept as '{name}'"))
        redraw()
        return {"FINISHED"}


class POISE_OT_remove_take(bpy.types.Operator):
    """Take the chosen take out of the list."""

    bl_idname = "poise.remove_take"
    bl_label = "Remove Take"
    bl_description = (
        "Forget the chosen take; no undo brings it back. What is baked stays, and so does the "
        "ghost of the last take, until the next simulation"
    )
    bl_options = {"REGISTER"}

    @classmethod
    def poll(cls, context):
        """Needs a take that is chosen."""
        if not poll_simulated(cls, context):
            return False
        if not takes.name_of(_shot(context)):
            cls.poll_message_set(tr("No take is chosen: click on one"))
            return False
        return True

    def invoke(self, context, event):
        """Ask first."""
        return context.window_manager.invoke_confirm(self, event)

    def execute(self, context):
        """Remove it."""
        takes.remove(context.scene, chosen_armature(context)[0])
        redraw()
        return {"FINISHED"}

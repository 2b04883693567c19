# SPDX-License-Identifier: GPL-3.0-or-later
"""Mark mesh objects as things or colliders."""

import bpy

from ..blender import session
from ..blender.redrawing import redraw
from ..blender.translations import tr


def _meshes(context):
    return [thing for thing in context.selected_objects if thing.type == "MESH"]


class _MarkOperator:
    """An operator that gives all selected meshes a role."""

    bl_options = {"REGISTER", "UNDO"}
    role = "NONE"

    @classmethod
    def poll(cls, context):
        """Needs a selected mesh object, while nothing runs."""
        why = session.busy() or ("" if cls.objects(context) else cls.missing)
        if why:
            cls.poll_message_set(tr(why))
        return not why

    missing = "Select a mesh object first"
    objects = staticmethod(_meshes)

    def execute(self, context):
        """Mark them."""
        objects = self.objects(context)
        for thing in objects:
            thing.poise.role = self.role
            self.prepare(context, thing)
        redraw()
        return {"FINISHED"}

    def prepare(self, context, thing):
        """Give an object what else belongs to its role."""


class POISE_OT_make_thing(_MarkOperator, bpy.types.Operator):
    """Make the selected meshes things."""

    bl_idname = "poise.make_thing"
    bl_label = "Mark as Physics Thing"
    bl_description = (
        "Let the selected mesh objects be thrown or fall in the simulation, from the current frame "
        "on. A bake gives them keys"
    )
    role = "THING"

    def prepare(self, context, thing):
        """It is released at the current frame, and cannot keep the shape Mesh."""
        thing.poise.release = context.scene.frame_current
        if not thing.poise.shape:
            thing.poise.shape = "AUTO"


class POISE_OT_make_collider(_MarkOperator, bpy.types.Operator):
    """Make the selected meshes colliders."""

    bl_idname = "poise.make_collider"
    bl_label = "Mark as Physics Collider"
    bl_description = (
        "Let the selected mesh objects stand in the way in the simulation, or move as they are "
        "animated. Feet meet them always, the rest of the body with Whole-Body Contact"
    )
    role = "COLLIDER"


class POISE_OT_unmark(_MarkOperator, bpy.types.Operator):
    """Unmark the selected meshes."""

    bl_idname = "poise.unmark"
    bl_label = "Unmark Physics Objects"
    bl_description = "Let the selected mesh objects take no part in the simulation"
    missing = "Select a thing or a collider first"

    @staticmethod
    def objects(context):
        """The selected meshes that are marked."""
        return [thing for thing in _meshes(context) if thing.poise.role != "NONE"]

# SPDX-License-Identifier: GPL-3.0-or-later
"""Mark mesh objects as things or colliders, and armatures as colliders."""

import bpy

from ..blender import session
from ..blender.redrawing import redraw
from ..blender.translations import tr
from ..scene.objects import takes_part


def _meshes(context):
    return [thing for thing in context.selected_objects if thing.type == "MESH"]


class _MarkOperator:
    """An operator that gives all selected objects that can have it a role."""

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
    """Make the selected meshes and armatures colliders."""

    bl_idname = "poise.make_collider"
    bl_label = "Mark as Physics Collider"
    bl_description = (
        "Let the selected mesh objects stand in the way in the simulation, or move as they are "
        "animated. Feet meet them always, the rest of the body with Whole-Body Contact. All of the "
        "body meets selected armatures, as they are animated: a biped with the shapes of its body "
        "and its fists, any other with a capsule for each deforming bone, of the 60 longest, as "
        "thick as its envelope where the armature is displayed as such, else a sixth of its length"
    )
    role = "COLLIDER"
    missing = "Select a mesh or an armature first"

    @staticmethod
    def objects(context):
        """The selected meshes and armatures."""
        return [one for one in context.selected_objects if one.type in ("MESH", "ARMATURE")]


class POISE_OT_unmark(_MarkOperator, bpy.types.Operator):
    """Unmark the selected objects."""

    bl_idname = "poise.unmark"
    bl_label = "Unmark Physics Objects"
    bl_description = "Let the selected objects take no part in the simulation"
    missing = "Select a thing or a collider first"

    @staticmethod
    def objects(context):
        """The selected objects that are marked."""
        return [thing for thing in context.selected_objects if takes_part(thing)]

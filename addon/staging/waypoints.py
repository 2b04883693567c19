# SPDX-License-Identifier: GPL-3.0-or-later
"""Add waypoints, go to them, take them away."""

import bpy
from bpy.props import EnumProperty, StringProperty
from mathutils import Vector

from ..blender import session
from ..blender.chosen import chosen_armature
from ..blender.redrawing import redraw
from ..blender.translations import tr
from ..jobs.modal import poll_idle
from ..kit.known_map import known_map
from ..scene import waypoints

#: Of an empty that is added, how high it stands [m].
_HEIGHT = 0.5


class POISE_OT_add_waypoint(bpy.types.Operator):
    """Add a waypoint."""

    bl_idname = "poise.add_waypoint"
    bl_label = "Add Waypoint"
    bl_description = (
        "Add an empty at which the body is to be at the current frame. Move it to where you want "
        "the body; Simulate moves its steps so that it gets there"
    )
    bl_options = {"REGISTER", "UNDO"}

    at: EnumProperty(
        name="At",
        description="Where to add it",
        items=(
            ("BODY", "Body", "Below the hips, where the animation has them now"),
            ("CURSOR", "3D Cursor", "Below the 3D cursor"),
        ),
    )

    @classmethod
    def poll(cls, context):
        """Needs an armature, while nothing runs."""
        return poll_idle(cls, context)

    def execute(self, context):
        """On the floor, as the active object."""
        scene, (armature, _) = context.scene, chosen_armature(context)
        frame = scene.frame_current
        empty = bpy.data.objects.new(f"Waypoint {frame}", None)
        empty.empty_display_type = "SINGLE_ARROW"
        empty.empty_display_size = _HEIGHT / scale_of(context, armature)
        empty.show_name = True
        place = scene.cursor.location if self.at == "CURSOR" else _hips(context, armature)
        empty.location = place.x, place.y, armature.matrix_world.translation.z
        waypoint = getattr(empty, waypoints.PROPERTY)
        waypoint.armature, waypoint.frame = armature, frame
        # The armature itself stays the active object: it is what is simulated.
        scene.collection.objects.link(empty)
        redraw()
        return {"FINISHED"}


class EmptyOperator:
    """An operator on a waypoint, or another empty that directs a body."""

    bl_options = {"REGISTER", "UNDO"}

    empty: StringProperty(
        name="Empty", description="Name of the empty", options={"HIDDEN", "SKIP_SAVE"}
    )

    @classmethod
    def poll(cls, _context):
        """Nothing may run."""
        why = session.busy()
        if why:
            cls.poll_message_set(tr(why))
        return not why

    def execute(self, context):
        """Do it."""
        empty = context.scene.objects.get(self.empty)
        if empty is None:
            return {"CANCELLED"}
        self.change(context, empty)
        redraw()
        return {"FINISHED"}

    def select(self, context, empty, frame):
        """Select it alone, and go to a frame."""
        for thing in context.selected_objects:
            thing.select_set(False)
        if empty.name in context.view_layer.objects:
            empty.select_set(True)
        context.scene.frame_set(frame)


class POISE_OT_go_to_waypoint(EmptyOperator, bpy.types.Operator):
    """Go to a waypoint."""

    bl_idname = "poise.go_to_waypoint"
    bl_label = "Go to Waypoint"
    bl_description = "Select this waypoint, and go to its frame"

    def change(self, context, empty):
        """Only it is selected."""
        self.select(context, empty, getattr(empty, waypoints.PROPERTY).frame)


class POISE_OT_remove_waypoint(EmptyOperator, bpy.types.Operator):
    """Remove a waypoint."""

    bl_idname = "poise.remove_waypoint"
    bl_label = "Remove Waypoint"
    bl_description = "Remove this waypoint and its empty"

    def change(self, _context, empty):
        """All of it."""
        bpy.data.objects.remove(empty)


def _hips(context, armature):
    """Where the hips of an armature are at the current frame; the middle of all of its bones where
    these are not known yet."""
    rig_map, _ = known_map(context, armature)
    names = rig_map.bones.get("pelvis", ()) if rig_map is not None else ()
    bones = [armature.pose.bones[name] for name in names if name in armature.pose.bones]
    heads = [bone.head for bone in bones[:1] or armature.pose.bones]
    return armature.matrix_world @ (sum(heads, Vector()) / max(1, len(heads)))


def scale_of(context, armature):
    """Metres in a unit of the scene."""
    shot = session.result_of(context.scene, armature).shot
    return shot.reading.metres_per_unit if shot else context.scene.unit_settings.scale_length

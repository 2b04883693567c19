# SPDX-License-Identifier: GPL-3.0-or-later
"""The example scene."""

import bpy
import mathutils
from bpy.props import EnumProperty

from ..blender import session
from ..blender.translations import tr
from ..example import scene as example


class POISE_OT_example_scene(bpy.types.Operator):
    """Add the example scene and show it."""

    bl_idname = "poise.example_scene"
    bl_label = "Example Scene"
    bl_description = (
        "Add a scene with an animated character, three actions and a push, to try Poise on. The "
        "scenes of this file stay as they are"
    )
    bl_options = {"REGISTER", "UNDO"}

    example: EnumProperty(
        name="Example",
        description="What happens to the character",
        items=(
            ("PUSH", "Push", "A push on the floor: it steps, and stands"),
            ("STAIRS", "Stairs", "A shove at the top of a flight of stairs: it falls down them"),
        ),
        options={"SKIP_SAVE"},
    )

    @classmethod
    def description(cls, _context, properties):
        """A tooltip for each of the buttons."""
        return tr(
            {
                "PUSH": cls.bl_description,
                "STAIRS": "Add a scene with a flight of stairs, down which the animated character "
                "is shoved: it falls, and comes to rest. The scenes of this file stay as they are",
            }[properties.example]
        )

    @classmethod
    def poll(cls, context):
        """Nothing may run."""
        why = session.busy()
        if not why and context.mode not in ("OBJECT", "POSE"):
            why = "Leave this mode first: the example is for Object Mode"
        if why:
            cls.poll_message_set(tr(why))
        return not why

    def execute(self, context):
        """Add it, and turn the 3D views to the character."""
        stairs = self.example == "STAIRS"
        example.build(context, stairs)
        for area in context.screen.areas if context.screen else ():
            if area.type == "VIEW_3D":
                _look_at_character(area.spaces.active, stairs)
        self.report({"INFO"}, tr("Press Simulate in the tab Poise of the sidebar (N)"))
        return {"FINISHED"}


def _look_at_character(space, stairs):
    if not space.show_region_ui:  # to show it again would fade it out
        space.show_region_ui = True
    view = space.region_3d
    view.view_perspective = "PERSP"
    if stairs:
        view.view_location, view.view_distance = (0.0, -1.2, 1.4), 8.0
        view.view_rotation = mathutils.Euler((1.4, 0.0, 1.1)).to_quaternion()
    else:
        view.view_location, view.view_distance = (0.0, 0.0, 0.95), 4.5
        view.view_rotation = mathutils.Euler((1.35, 0.0, 0.4)).to_quaternion()

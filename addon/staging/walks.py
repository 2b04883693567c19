# SPDX-License-Identifier: GPL-3.0-or-later
"""The button of the panel *Locomotion*."""

import bpy

from ...controller.exceptions import PoiseError
from ..blender.chosen import chosen_armature, chosen_frames
from ..blender.translations import tr
from ..jobs.job import showing_source
from ..jobs.modal import poll_animated
from ..rigs import reference, rig
from ..scene import walks


class POISE_OT_find_cycle(bpy.types.Operator):
    """Find the cycle of a walk."""

    bl_idname = "poise.find_cycle"
    bl_label = "Find Cycle of Walk"
    bl_description = (
        "Look for the stretch of the animation that loops best, from a step to the next one of "
        "the same foot, and take its frames as the cycle"
    )
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context):
        """Needs an animated armature, and nothing at work."""
        return poll_animated(cls, context)

    def execute(self, context):
        """Read, search, and take down the frames."""
        scene, settings = context.scene, context.scene.poise
        armature, _ = chosen_armature(context)
        frames = chosen_frames(scene)
        try:
            with showing_source(scene, armature):
                reading = reference.read(
                    scene,
                    armature,
                    frames=(*frames, 1.0)[:3] if frames else None,
                    rig_map=rig.find(armature, name=settings.rig) if settings.rig else None,
                )
            _, cycle = walks.cycle_of(reading, settings.mass if settings.use_mass else None)
        except PoiseError as error:
            self.report({"ERROR"}, tr(str(error)))
            return {"CANCELLED"}
        walk = settings.walk
        walk.first, walk.last = (float(reading.frames[i]) for i in (cycle.first, cycle.last))
        walk.found, walk.use_cycle = walks.describe(reading, cycle), True
        self.report({"INFO"}, tr(walk.found))
        return {"FINISHED"}

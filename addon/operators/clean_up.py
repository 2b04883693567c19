# SPDX-License-Identifier: GPL-3.0-or-later
"""Clean feet and weight of an animation, and write it to an action of its own."""

import bpy

from ..baking import ik_legs
from ..blender import session
from ..blender.chosen import chosen_frames
from ..blender.translations import tr
from ..jobs.job import Job, in_background, reading_source
from ..jobs.modal import JobOperator, poll_animated
from ..settings.properties import bake_options
from ..shots.clean_up import CleanShot, CleanShotOptions, clean_options


class CleanUpJob(Job):
    """Read an armature's animation, clean it up and write it. The result of an earlier simulation
    stays."""

    def __init__(self, scene, options):
        shot = CleanShot(scene, options)
        stages = (
            ("reading", reading_source(shot)),
            ("cleaning", in_background(shot.solve)),
            ("writing", shot.baking()),
        )
        super().__init__(shot, stages)

    def _finish(self):
        session.end(self)
        session.keep_clean(self.scene_name, self.armature_name, self.shot)


class POISE_OT_clean_up(JobOperator, bpy.types.Operator):
    """Clean feet and weight without a simulation."""

    bl_idname = "poise.clean_up"
    bl_label = "Clean Feet and Weight"
    bl_description = (
        "Let feet that stand be still, keep feet in the air over the floor and bring the weight "
        "over the feet, without any simulation, in a new action of the armature. The source action "
        "is kept. Esc stops"
    )
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context):
        """Needs an animated armature."""
        return poll_animated(cls, context)

    def make_job(self, context, armature):
        """The job of this operator."""
        settings = context.scene.poise
        options = CleanShotOptions(
            armature=armature.name,
            frames=chosen_frames(context.scene),
            rig=settings.rig or None,
            unit=settings.unit or None,
            clean=clean_options(settings.clean_up),
            keys=bake_options(settings),
        )
        return CleanUpJob(context.scene, options)

    def finished(self):
        """Report the outcome."""
        shot = self._job.shot
        (before, after), baked = shot.slip, shot.baked
        left = f"; '{baked.left}', your own since, stays" if baked.left else ""
        names = "', '".join(baked.leg_controls)
        legs = f"; legs on IK by '{names}'" if names else ""
        for sentence in (*ik_legs.sentences((), baked.released_legs), *baked.warnings):
            self.report({"WARNING"}, tr(sentence))
        self.report(
            {"INFO"},
            tr(
                f"Standing feet slide at {before:.3f} m/s before, {after:.3f} after, in "
                f"'{baked.action}'{legs}{left}"
            ),
        )

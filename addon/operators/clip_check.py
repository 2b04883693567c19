# SPDX-License-Identifier: GPL-3.0-or-later
"""Check what a clip asks of a body, go to what was found, show it as a picture."""

from functools import partial

import bpy

from ..blender import session
from ..blender.chosen import chosen_armature
from ..blender.translations import tr
from ..jobs.findings import ShowFinding
from ..jobs.job import Job, in_background, reading_source
from ..jobs.modal import JobOperator, poll_animated
from ..plots import clip_check_plot, limit_plot
from ..settings.properties import shot_options
from ..shots.shot import Shot
from .robustness import fit, image_editor


class CheckJob(Job):
    """Read an armature's animation, measure the body and check the clip. The result of an earlier
    simulation stays."""

    checks = True

    def __init__(self, scene, options):
        shot = Shot(scene, options)
        stages = (
            ("reading", reading_source(shot)),
            ("measuring the body", in_background(shot.embody)),
            ("checking", in_background(shot.check)),
        )
        super().__init__(shot, stages)

    def _finish(self):
        session.end(self)
        session.keep_check(self.scene_name, self.armature_name, self.shot.check())


class POISE_OT_check_clip(JobOperator, bpy.types.Operator):
    """Check what a clip asks of a body."""

    bl_idname = "poise.check_clip"
    bl_label = "Check Clip for Physics"
    bl_description = (
        "Look at the animation as a body would: what no body can do, what balance alone carries, "
        "what has to be rectified. Nothing in the scene changes. Esc stops"
    )
    bl_options = {"REGISTER"}

    @classmethod
    def poll(cls, context):
        """Needs an animated armature."""
        return poll_animated(cls, context)

    def make_job(self, context, armature):
        """The job of this operator."""
        return CheckJob(context.scene, shot_options(context, armature))

    def finished(self):
        """Report the verdict."""
        found = self._job.shot.check()
        self.report({"WARNING"} if found.faults else {"INFO"}, tr(found.verdict))


def poll_checked(cls, context):
    """Whether the clip of the chosen armature is checked."""
    armature, reason = chosen_armature(context)
    if armature is None:
        cls.poll_message_set(tr(reason))
    elif session.result_of(context.scene, armature).check is None:
        cls.poll_message_set(tr("The clip is not checked yet: use Check Clip"))
    else:
        return True
    return False


class POISE_OT_show_finding(ShowFinding, bpy.types.Operator):
    """Go to the frame of a finding."""

    bl_idname = "poise.show_finding"
    bl_label = "Go There"
    bl_description = "Go to the first frame of this finding"
    bl_options = {"UNDO", "INTERNAL"}

    @classmethod
    def poll(cls, context):
        """Needs a clip that is checked."""
        return poll_checked(cls, context)

    @classmethod
    def findings(cls, result):
        """Of the last look at the clip."""
        found = result.check.findings if result.check else ()
        return [(finding.frames[0], finding.sentence) for finding in found]


class POISE_OT_show_check(bpy.types.Operator):
    """Show the plot of a check as an image."""

    bl_idname = "poise.show_check"
    bl_label = "Show Plot of Clip Check"
    bl_description = (
        "Make an image of what the clip asks over time, and show it in an Image Editor, from which "
        "it can be saved"
    )
    bl_options = {"UNDO"}

    @classmethod
    def poll(cls, context):
        """Needs a clip that is checked."""
        return poll_checked(cls, context)

    def execute(self, context):
        """Make the image, and find it a place."""
        armature, _ = chosen_armature(context)
        found = session.result_of(context.scene, armature).check
        pixels = clip_check_plot.picture(found)
        image = limit_plot.image_of(f"Poise check {found.clip}", pixels)
        area = image_editor(context)
        if area is not None:
            area.spaces.active.image = image
            # A new window has no size before it is drawn.
            bpy.app.timers.register(partial(fit, image.name), first_interval=0.5)
        self.report({"INFO"}, tr(f"The plot is the image '{image.name}'"))
        return {"FINISHED"}

# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure a character, simulate it, stop."""

import bpy

from ..blender import preferences, session
from ..blender.translations import tr
from ..jobs.job import InspectJob, SimulateJob
from ..jobs.modal import JobOperator, poll_animated
from ..settings.properties import shot_options
from .rectify import PerformOperator, RectifyJob


class POISE_OT_inspect(JobOperator, bpy.types.Operator):
    """Read an armature's animation, without a simulation."""

    bl_idname = "poise.inspect"
    bl_label = "Measure Character"
    bl_description = (
        "Read the animation and measure the body: height, mass, ground and scale. "
        "Nothing in the scene changes"
    )
    bl_options = {"REGISTER"}

    @classmethod
    def poll(cls, context):
        """Needs an animated armature."""
        return poll_animated(cls, context)

    def make_job(self, context, armature):
        """The job of this operator."""
        return InspectJob(context.scene, shot_options(context, armature))

    def finished(self):
        """Report the outcome."""
        character = self._job.shot.character
        self.report({"INFO"}, tr(f"A body of {character.height:.2f} m and {character.mass:.1f} kg"))


class POISE_OT_simulate(PerformOperator, bpy.types.Operator):
    """Simulate an armature's animation."""

    bl_idname = "poise.simulate"
    bl_label = "Simulate Physics"
    bl_description = (
        "Let a physically simulated body perform the animation, by the method above; it appears as "
        "a ghost. Nothing in the scene changes before the result is baked. Esc stops"
    )
    bl_options = {"REGISTER"}

    @classmethod
    def poll(cls, context):
        """Needs an animated armature."""
        return poll_animated(cls, context)

    def make_job(self, context, armature):
        """The job of this operator."""
        settings, options = context.scene.poise, shot_options(context, armature)
        if settings.method == "BALANCE":
            return SimulateJob(context.scene, options)
        choosing = settings.method == "AUTO"
        workers = preferences.workers(settings.tuning)
        return RectifyJob(context.scene, options, workers, choosing)


class POISE_OT_cancel(bpy.types.Operator):
    """Stop the job at work."""

    bl_idname = "poise.cancel"
    bl_label = "Stop Simulating"
    bl_description = "Stop what Poise is doing; the scene is as it was before"
    bl_options = {"INTERNAL"}

    @classmethod
    def poll(cls, _context):
        """Needs something to stop."""
        if session.job() is None:
            cls.poll_message_set(tr("Nothing is running"))
            return False
        return True

    def execute(self, _context):
        """Stop; the operator that runs notices at its next turn."""
        session.stop()
        return {"FINISHED"}

# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure a character, simulate it, stop."""

import bpy

from ..blender import preferences, session
from ..blender.chosen import chosen_armature
from ..blender.translations import tr
from ..jobs.job import InspectJob, SimulateJob, TogetherJob
from ..jobs.modal import JobOperator, poll_animated
from ..settings.properties import shot_options
from ..shots.outdated import in_full, settings_of
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


def others_of(context, armature):
    """Names of the other armatures that are selected, or whose skins are, in order."""
    selected, there = context.selected_objects, context.scene.objects
    found = {one if one.type == "ARMATURE" else one.find_armature() for one in selected}
    return tuple(sorted(one.name for one in found - {None, armature} if one.name in there))


class POISE_OT_simulate_together(JobOperator, bpy.types.Operator):
    """Simulate the chosen armature and the other selected ones in one world."""

    bl_idname = "poise.simulate_together"
    bl_label = "Simulate Together"
    bl_description = (
        "Let the chosen character and the other selected ones perform in one world, where each "
        "feels what it does to another; by balance alone. Each gets a ghost, a result and a bake "
        "of its own. Nothing in the scene changes before that. Esc stops"
    )
    bl_options = {"REGISTER"}

    @classmethod
    def poll(cls, context):
        """Needs several animated armatures."""
        if not poll_animated(cls, context):
            return False
        armature, _ = chosen_armature(context)
        names = others_of(context, armature)
        why = "Select the other armatures, too" if not names else ""
        for name in names:
            if context.scene.objects[name].mode == "EDIT":  # all else may stand there
                why = why or f"'{name}' is in Edit Mode: leave it first"
        if why:
            cls.poll_message_set(tr(why))
        return not why

    def make_job(self, context, armature):
        """The job of this operator."""
        scene = context.scene

        def settings(one):
            return in_full(settings_of(scene, one, shot_options(context, one)), one)

        options = shot_options(context, armature)
        return TogetherJob(scene, options, others_of(context, armature), settings)

    def finished(self):
        """Report the outcome of each."""
        for told in self._job.notes:
            self.report({"WARNING"}, tr(told))
        for shot in self._job.shots:
            name, why = shot.armature.name, shot.why
            if why:
                self.report({"WARNING"}, tr(f"'{name}': {why}"))
            else:
                self.report({"INFO"}, tr(f"'{name}' stood to the end"))


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

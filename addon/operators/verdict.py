# SPDX-License-Identifier: GPL-3.0-or-later
"""Go to where a result is worst."""

import bpy

from ..blender import session
from ..blender.chosen import chosen_armature
from ..blender.translations import tr
from ..jobs.findings import ShowFinding
from ..jobs.modal import poll_idle
from .bake import poll_simulated


class POISE_OT_show_flaw(ShowFinding, bpy.types.Operator):
    """Go to the frame for which a result would not be kept."""

    bl_idname = "poise.show_flaw"
    bl_label = "Go to Flaw"
    bl_description = (
        "Go to this frame: where it fell or lost its balance, or where it is farthest in this from "
        "its source, or from the cleaned motion if that was cleaned"
    )
    bl_options = {"UNDO", "INTERNAL"}

    @classmethod
    def poll(cls, context):
        """Needs a simulation."""
        return poll_simulated(cls, context)

    @classmethod
    def findings(cls, result):
        """Of the result, and of the verdict on it."""
        return result.shot.flaws if result.recording else []


class POISE_OT_show_clean_flaw(ShowFinding, bpy.types.Operator):
    """Go to the frame for which a clean-up would not be kept."""

    bl_idname = "poise.show_clean_flaw"
    bl_label = "Go to Flaw of the Clean-Up"
    bl_description = "Go to the frame where the clean-up is farthest from its source in this"
    bl_options = {"UNDO", "INTERNAL"}

    @classmethod
    def poll(cls, context):
        """Needs a clean-up."""
        if not poll_idle(cls, context):
            return False
        armature, _ = chosen_armature(context)
        if session.result_of(context.scene, armature).clean is None:
            cls.poll_message_set(tr(f"'{armature.name}' is not cleaned: press Clean Feet first"))
            return False
        return True

    @classmethod
    def findings(cls, result):
        """Of the verdict on the clean-up."""
        return [(f.frame, f.sentence) for f in result.clean.verdict.findings]

# SPDX-License-Identifier: GPL-3.0-or-later
"""Go to where a result is worst."""

import bpy

from .bake import poll_simulated
from .findings import ShowFinding


class POISE_OT_show_flaw(ShowFinding, bpy.types.Operator):
    """Go to the frame for which a result would not be kept."""

    bl_idname = "poise.show_flaw"
    bl_label = "Go to Flaw"
    bl_description = "Go to the frame where the result is farthest from its source in this"
    bl_options = {"UNDO", "INTERNAL"}

    @classmethod
    def poll(cls, context):
        """Needs a simulation."""
        return poll_simulated(cls, context)

    @classmethod
    def findings(cls, result):
        """Of the verdict on the result."""
        verdict = result.shot.verdict if result.recording else None
        return [(f.frame, f.sentence) for f in verdict.findings] if verdict else []

# SPDX-License-Identifier: GPL-3.0-or-later
"""The clean-up of feet and weight in the sidebar."""

import bpy

from .operators import POISE_OT_clean_up
from .panels import _Panel


class POISE_PT_clean_up(_Panel, bpy.types.Panel):
    """Clean without a simulation."""

    bl_label = "Feet and Weight"
    bl_parent_id = "POISE_PT_simulate"
    bl_options = {"DEFAULT_CLOSED"}

    def content(self, layout, context, _armature, _reason):
        """What to choose, and the button."""
        settings = context.scene.poise.clean_up
        column = layout.column()
        column.prop(settings, "softness")
        column.prop(settings, "balance")
        row = layout.row()
        row.scale_y = 1.5
        row.operator(POISE_OT_clean_up.bl_idname, icon="BRUSH_DATA")


CLASSES = (POISE_PT_clean_up,)

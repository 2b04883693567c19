# SPDX-License-Identifier: GPL-3.0-or-later
"""Overlays in the sidebar: a switch for each, with its colour as the legend."""

import bpy

from ..blender import session
from ..blender.chosen import chosen_armature
from ..kit.panel import Panel
from ..settings.overlay_settings import MARKS, PATHS, STANCES


class POISE_PT_overlays(Panel, bpy.types.Panel):
    """What is drawn over the result."""

    bl_label = "Overlays"
    bl_parent_id = "POISE_PT_result"
    bl_options = {"DEFAULT_CLOSED"}

    @classmethod
    def poll(cls, context):
        """Needs a simulation."""
        armature, _ = chosen_armature(context)
        return bool(armature and session.result_of(context.scene, armature).recording)

    def content(self, layout, context, _armature, _reason):
        """Switches and colours, the arrows' scale, and the legend of the bar."""
        settings = context.scene.poise.overlays
        layout.use_property_split = False
        column = layout.column(align=True)
        for name in (*MARKS, *PATHS):
            if name == "footprints":  # in the colours of the feet
                column.prop(settings, name)
                continue
            split = column.split(factor=0.8)
            split.prop(settings, name)
            split.prop(settings, f"{name}_colour", text="")
        sub = layout.column()
        sub.active = settings.pushes or settings.forces
        sub.prop(settings, "newtons_per_metre")
        layout.prop(settings, "stance")
        legend = layout.grid_flow(columns=2, row_major=True, even_columns=True, align=True)
        legend.active = settings.stance or settings.footprints
        for name in STANCES:
            split = legend.split(factor=0.35)
            split.prop(settings, f"{name}_colour", text="")
            split.label(text=settings.bl_rna.properties[f"{name}_colour"].name)


CLASSES = (POISE_PT_overlays,)

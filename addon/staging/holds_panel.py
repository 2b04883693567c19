# SPDX-License-Identifier: GPL-3.0-or-later
"""Holds in the sidebar: what holds hands and feet, and when."""

import bpy

from ..blender import session
from ..blender.translations import tr
from ..kit.panel import Panel
from ..kit.rows import sentence
from ..scene import holds
from .holds import POISE_OT_add_hold, POISE_OT_go_to_hold, POISE_OT_remove_hold


class POISE_PT_holds(Panel, bpy.types.Panel):
    """What holds hands and feet, and when."""

    bl_label = "Holds"
    bl_options = {"DEFAULT_CLOSED"}

    def content(self, layout, context, armature, _reason):
        """Buttons, and a box for each hold."""
        idle = session.job() is None
        name = POISE_OT_add_hold.bl_idname
        button = layout.operator(name, text="Active Bone", icon="ADD")
        button.limb = "BONE"
        grid = layout.grid_flow(columns=2, even_columns=True, align=True, row_major=True)
        for limb, label, _ in holds.LIMB_ITEMS:
            grid.operator(name, text=label).limb = limb
        layout.use_property_split = False
        found = holds.of(context.scene, armature) if armature else ()
        for empty in found:
            box = layout.box().column(align=True)
            box.active = idle
            _draw_hold(box, empty)
        if found:
            text = "Move an empty to where the palm or ankle is to be held."
            sentence(layout, context, text, "INFO")


def _draw_hold(layout, empty):
    """Its switch, its name, what it holds, to what, when, and how firmly."""
    settings = getattr(empty, holds.PROPERTY)
    row = layout.row(align=True)
    row.prop(settings, "use", text="")
    name = POISE_OT_go_to_hold.bl_idname
    row.operator(name, text=empty.name, translate=False).empty = empty.name
    row.operator(POISE_OT_remove_hold.bl_idname, text="", icon="X").empty = empty.name
    layout.prop(settings, "limb", text="")
    row = layout.row(align=True)
    row.prop(settings, "to", text="")
    if settings.to == "OBJECT":
        row.prop(settings, "holder", text="")
    row = layout.row(align=True)
    row.prop(settings, "first", text=tr("First"))
    row.prop(settings, "last", text=tr("Last"))
    layout.prop(settings, "breaking")


CLASSES = (POISE_PT_holds,)

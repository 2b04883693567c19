# SPDX-License-Identifier: GPL-3.0-or-later
"""The takes of an armature in the sidebar: a list over its result."""

import bpy

from ..blender import session
from ..blender.chosen import chosen_armature
from ..operators import POISE_OT_keep_take, POISE_OT_remove_take
from ..settings import takes


class POISE_UL_takes(bpy.types.UIList):
    """The takes of the chosen armature."""

    def draw_item(self, _context, layout, _data, row, _icon, _active, _name):
        """How it ended, name, colour, and whether its ghost is compared."""
        layout.use_property_split = False
        line = layout.row(align=True)
        line.prop(row, "label", text="", emboss=False, icon=mark(session.take(row.name).shot))
        colour = line.row()
        colour.ui_units_x = 0.8
        colour.prop(row, "colour", text="")
        icon = "HIDE_OFF" if row.show else "HIDE_ON"
        line.prop(row, "show", text="", icon=icon, emboss=False)

    def filter_items(self, context, data, _property):
        """Those of other armatures are hidden."""
        armature, _ = chosen_armature(context)
        shown = {row.name for row, _ in takes.rows(context.scene, armature)} if armature else ()
        return [self.bitflag_filter_item * (row.name in shown) for row in data.items], []

    def draw_filter(self, _context, _layout):
        """Nothing: they are few."""


def mark(shot):
    """The icon that tells at a glance whether a shot is a keeper, stood, or fell."""
    if not shot.recording.filled:
        return "CANCEL"
    if not shot.recording.success:
        return "SORT_ASC"
    return "CHECKMARK" if shot.verdict.keeper else "INFO"


def draw_takes(layout, context, count):
    """The list with its buttons. count: of the rows in it that are shown."""
    found = context.window_manager.poise_takes
    row = layout.row()
    size = max(2, min(count, 6))
    row.template_list(POISE_UL_takes.__name__, "", found, "items", found, "index", rows=size)
    buttons = row.column(align=True)
    buttons.operator(POISE_OT_keep_take.bl_idname, text="", icon="ADD")
    buttons.operator(POISE_OT_remove_take.bl_idname, text="", icon="REMOVE")


CLASSES = (POISE_UL_takes,)

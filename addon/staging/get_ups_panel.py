# SPDX-License-Identifier: GPL-3.0-or-later
"""Get-ups in the sidebar: the actions by which the character gets up."""

import bpy

from ...controller.falls.behaviours import STOP
from ..blender import session
from ..kit.panel import Panel
from ..kit.rows import sentence
from ..scene import get_ups
from .get_ups import POISE_OT_add_get_up, POISE_OT_remove_get_up


class POISE_PT_get_ups(Panel, bpy.types.Panel):
    """By which actions it gets up."""

    bl_label = "Get-Ups"
    bl_parent_id = "POISE_PT_simulate"
    bl_options = {"DEFAULT_CLOSED"}

    def content(self, layout, context, armature, reason):
        """A row for each action, and a button for more."""
        if armature is None:
            sentence(layout, context, f"{reason}.", "INFO")
            return
        settings = context.scene.poise
        own = get_ups.of(armature)
        gets_up = settings.get_up and settings.when_it_falls != STOP.upper()
        column = layout.column(align=True)
        column.active = gets_up and session.job() is None
        for action in own:
            row = column.row(align=True)
            row.label(text=action.name, icon="ACTION", translate=False)
            if action.library is None:
                row.operator(
                    POISE_OT_remove_get_up.bl_idname, text="", icon="X"
                ).action = action.name
        layout.operator(POISE_OT_add_get_up.bl_idname, text="Add Get-Up", icon="ADD")
        if own and not gets_up:
            sentence(layout, context, "Choose how it falls, and Get Up, to have it do so.", "INFO")
        elif not own:
            sentence(layout, context, "Without any it gets up in a way of Poise's own.", "INFO")
        others = [one.name for one in get_ups.marked() if one not in own]
        if others:
            names = ", ".join(f"'{name}'" for name in others)
            sentence(layout, context, f"Of other characters, without keys here: {names}.", "INFO")


CLASSES = (POISE_PT_get_ups,)

# SPDX-License-Identifier: GPL-3.0-or-later
"""Waypoints in the sidebar: where the character is to be, and when."""

import bpy

from ..blender import session
from ..blender.translations import tr
from ..kit.panel import Panel
from ..kit.rows import sentence
from ..scene import waypoints
from .waypoints import (
    POISE_OT_add_waypoint,
    POISE_OT_go_to_waypoint,
    POISE_OT_remove_waypoint,
)


class POISE_PT_waypoints(Panel, bpy.types.Panel):
    """Where the character is to be, and when."""

    bl_label = "Waypoints"
    bl_options = {"DEFAULT_CLOSED"}

    def content(self, layout, context, armature, _reason):
        """Buttons, and a row for each waypoint."""
        idle = session.job() is None
        row = layout.row(align=True)
        here = row.operator(POISE_OT_add_waypoint.bl_idname, text="Here", icon="ADD")
        here.at = "BODY"
        there = row.operator(POISE_OT_add_waypoint.bl_idname, text="3D Cursor", icon="CURSOR")
        there.at = "CURSOR"
        layout.use_property_split = False
        found = waypoints.of(context.scene, armature) if armature else ()
        column = layout.column(align=True)
        column.active = idle
        for empty in found:
            _draw_waypoint(column, empty)
        if found:
            text = "Move an empty to where the hips are to be at its frame."
            sentence(layout, context, text, "INFO")
        column = layout.column()
        column.active = idle
        column.prop(context.scene.poise.waypoints, "end_in_place")


def _draw_waypoint(layout, empty):
    """Its switch, its name, its frame."""
    settings = getattr(empty, waypoints.PROPERTY)
    row = layout.row(align=True)
    row.prop(settings, "use", text="")
    split = row.split(factor=0.5, align=True)
    name = POISE_OT_go_to_waypoint.bl_idname
    split.operator(name, text=empty.name, translate=False).empty = empty.name
    split.prop(settings, "frame", text=tr("Frame"))
    row.operator(POISE_OT_remove_waypoint.bl_idname, text="", icon="X").empty = empty.name


CLASSES = (POISE_PT_waypoints,)

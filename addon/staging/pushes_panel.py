# SPDX-License-Identifier: GPL-3.0-or-later
"""Pushes in the sidebar: the list, and the settings of the active one."""

import bpy

from ..blender import session
from ..kit.panel import Panel
from ..kit.rows import fact
from ..scene import pushes
from .pushes import (
    POISE_OT_add_push,
    POISE_OT_clear_pushes,
    POISE_OT_duplicate_push,
    POISE_OT_generate_pushes,
    POISE_OT_move_push,
    POISE_OT_remove_push,
)


class POISE_UL_pushes(bpy.types.UIList):
    """The pushes of the scene."""

    def draw_item(self, _context, layout, _data, push, _icon, _active, _name):
        """Switch, name, frame and strength."""
        layout.use_property_split = False  # the panel's own lets no room for the name
        row = layout.row(align=True)
        row.prop(push, "use", text="")
        row.prop(push, "name", text="", emboss=False)
        sub = row.row()
        sub.alignment = "RIGHT"
        sub.active = push.use
        if push.kind == "EMPTY":
            sub.label(text="", icon="EMPTY_ARROWS")
        else:
            sub.label(text=f"{push.frame}: {push.strength:.0f} N")


class POISE_PT_pushes(Panel, bpy.types.Panel):
    """What pushes the character."""

    bl_label = "Pushes"
    bl_options = {"DEFAULT_CLOSED"}

    def content(self, layout, context, armature, _reason):
        """List, buttons, the active push."""
        chosen = context.scene.poise.pushes
        several = len(chosen.items) > 1
        row = layout.row()
        row.template_list(
            POISE_UL_pushes.__name__, "", chosen, "items", chosen, "index", rows=5 if several else 3
        )
        buttons = row.column(align=True)
        buttons.operator(POISE_OT_add_push.bl_idname, text="", icon="ADD")
        buttons.operator(POISE_OT_remove_push.bl_idname, text="", icon="REMOVE")
        buttons.operator(POISE_OT_duplicate_push.bl_idname, text="", icon="DUPLICATE")
        if several:
            for direction, icon in (("UP", "TRIA_UP"), ("DOWN", "TRIA_DOWN")):
                move = buttons.operator(POISE_OT_move_push.bl_idname, text="", icon=icon)
                move.direction = direction
        buttons.operator(POISE_OT_clear_pushes.bl_idname, text="", icon="TRASH")
        layout.operator(
            POISE_OT_generate_pushes.bl_idname, text="Generate Pushes", icon="MOD_NOISE"
        )
        push = pushes.active(context.scene)
        if push is not None:
            column = layout.column()
            column.active = session.job() is None
            _draw_push(column, context, armature, push)


def _draw_push(layout, context, armature, push):
    """The settings of a push."""
    layout.active = push.use
    layout.row().prop(push, "kind", expand=True)
    if push.whom is not None or _several(context.scene):
        layout.prop(push, "whom", placeholder=armature.name if armature else "")
    layout.prop(push, "part")
    if push.part == "BONE":
        layout.prop(push, "bone", icon="BONE_DATA")
    column = layout.column(align=True)
    if push.kind == "EMPTY":
        column.prop(push, "empty")
        if push.empty is not None:
            row = column.row()
            row.use_property_decorate = True
            row.prop(push.empty, pushes.STRENGTH)
        return
    column.use_property_split = False
    column.prop(push, "frame")
    column.prop(push, "duration")
    column.prop(push, "strength")
    column.prop(push, "azimuth")
    column.prop(push, "elevation")
    column.label(text="Off centre (m)")
    row = column.row(align=True)
    for axis in range(3):
        row.prop(push, "offset", index=axis, text="")
    fact(layout, "Impulse", _impulse_words(context, armature, push))


def _several(scene):
    """Whether there are several characters to push."""
    return sum(thing.type == "ARMATURE" for thing in scene.objects) > 1


def _impulse_words(context, armature, push):
    """What a push adds to the momentum, and to the velocity once the body is known."""
    impulse = push.strength * push.duration
    shot = session.result_of(context.scene, armature).shot if armature else None
    if shot is None or shot.character is None:
        return f"{impulse:.1f} N s"
    return f"{impulse:.1f} N s, {impulse / shot.character.mass:.3f} m/s"


CLASSES = (POISE_UL_pushes, POISE_PT_pushes)

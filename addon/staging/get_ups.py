# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of get-ups in the sidebar: actions that are put on it, and taken off."""

import bpy
from bpy.props import EnumProperty, StringProperty

from ...controller.falls.behaviours import STOP
from ..blender import session
from ..blender.chosen import chosen_armature
from ..blender.redrawing import redraw
from ..blender.translations import tr
from ..jobs.modal import poll_idle
from ..kit.panel import Panel
from ..kit.rows import sentence
from ..scene import get_ups

#: Blender keeps no texts of choices: they must live as long as they are shown.
_choices = []


def _others(context):
    """The actions of the chosen armature that are not on the list."""
    armature, _ = chosen_armature(context)
    for action in bpy.data.actions if armature is not None else ():
        free = action.library is None and not getattr(action, get_ups.PROPERTY)
        if free and get_ups.fits(action, armature):
            yield action


def _actions(_operator, context):
    """Choices: those actions."""
    uids = ((one.session_uid, one.name) for one in _others(context))
    _choices[:] = [(str(uid), name, "", uid) for uid, name in uids]
    return _choices


class POISE_OT_add_get_up(bpy.types.Operator):
    """Put an action on the list."""

    bl_idname = "poise.add_get_up"
    bl_label = "Add Get-Up"
    bl_description = (
        "Choose an action in which the character gets up from the floor. Who has fallen gets up as "
        "in the action that begins most as it lies, mirrored if that fits better"
    )
    bl_options = {"REGISTER", "UNDO"}
    bl_property = "action"

    action: EnumProperty(name="Action", description="Action of this character", items=_actions)

    @classmethod
    def poll(cls, context):
        """Needs another action of the armature, while nothing runs."""
        if not poll_idle(cls, context):
            return False
        if any(True for _ in _others(context)):  # whichever comes first: it is drawn all the time
            return True
        why = "There is no other action with keys for bones of this character: animate one"
        cls.poll_message_set(tr(why))
        return False

    def invoke(self, context, _event):
        """Ask which one."""
        context.window_manager.invoke_search_popup(self)
        return {"RUNNING_MODAL"}

    def execute(self, _context):
        """Mark it."""
        found = (one for one in bpy.data.actions if str(one.session_uid) == self.action)
        action = next(found, None)
        if action is None:
            return {"CANCELLED"}
        setattr(action, get_ups.PROPERTY, True)
        redraw()
        return {"FINISHED"}


class POISE_OT_remove_get_up(bpy.types.Operator):
    """Take an action off the list."""

    bl_idname = "poise.remove_get_up"
    bl_label = "Remove Get-Up"
    bl_description = "Take this action off the list; the action itself stays"
    bl_options = {"REGISTER", "UNDO"}

    action: StringProperty(
        name="Action", description="Name of the action", options={"HIDDEN", "SKIP_SAVE"}
    )

    @classmethod
    def poll(cls, context):
        """Nothing may run."""
        return poll_idle(cls, context)

    def execute(self, _context):
        """Unmark it."""
        action = bpy.data.actions.get(self.action)
        if action is None:
            return {"CANCELLED"}
        setattr(action, get_ups.PROPERTY, False)
        redraw()
        return {"FINISHED"}


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

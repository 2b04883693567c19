# SPDX-License-Identifier: GPL-3.0-or-later
"""Put actions on the list of get-ups, and take them off it."""

import bpy
from bpy.props import EnumProperty, StringProperty

from ..blender import session
from ..blender.chosen import chosen_armature
from ..blender.redrawing import redraw
from ..blender.translations import tr
from ..scene import get_ups

#: Blender keeps no texts of choices: they must live as long as they are shown.
_choices = []


def _actions(_operator, context):
    """Choices: the actions of the chosen armature that are not on the list."""
    armature, _ = chosen_armature(context)
    found = [
        action
        for action in bpy.data.actions
        if armature is not None
        and action.library is None
        and not getattr(action, get_ups.PROPERTY)
        and get_ups.fits(action, armature)
    ]
    _choices[:] = [(str(one.session_uid), one.name, "", one.session_uid) for one in found]
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
        armature, reason = chosen_armature(context)
        why = session.busy() or ("" if armature else reason)
        if not why and not _actions(None, context):
            why = "There is no other action with keys for bones of this character: animate one"
        if why:
            cls.poll_message_set(tr(why))
        return not why

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
    def poll(cls, _context):
        """Nothing may run."""
        why = session.busy()
        if why:
            cls.poll_message_set(tr(why))
        return not why

    def execute(self, _context):
        """Unmark it."""
        action = bpy.data.actions.get(self.action)
        if action is None:
            return {"CANCELLED"}
        setattr(action, get_ups.PROPERTY, False)
        redraw()
        return {"FINISHED"}

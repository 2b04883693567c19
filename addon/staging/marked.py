# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists of marked actions in the sidebar: get-ups, and acts of who is played by the keys 1 to 9."""

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
from ..scene.marked import ACTS, GET_UPS, fits

#: Blender keeps no texts of choices: they must live as long as they are shown.
_choices = []


def _others(context, marks):
    """The actions of the chosen armature that are not on a list."""
    armature, _ = chosen_armature(context)
    for action in bpy.data.actions if armature is not None else ():
        free = action.library is None and not marks.has(action)
        if free and fits(action, armature):
            yield action


def others_of(marks):
    """A property of an operator: one of those actions."""

    def choices(_operator, context):
        uids = ((one.session_uid, one.name) for one in _others(context, marks))
        _choices[:] = [(str(uid), name, "", uid) for uid, name in uids]
        return _choices

    return EnumProperty(name="Action", description="Action of this character", items=choices)


class AddMarked:
    """Puts its `action` on the list of `marks`. Its own `bl_property` says that it asks for that:
    Blender sees none of a class that it is made of."""

    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context):
        """Needs another action of the armature, while nothing runs."""
        if not poll_idle(cls, context):
            return False
        # Whichever comes first: it is drawn all the time.
        if any(True for _ in _others(context, cls.marks)):
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
        setattr(action, self.marks.property, True)
        redraw()
        return {"FINISHED"}


class RemoveMarked:
    """Takes an action off the list of `marks`."""

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
        setattr(action, self.marks.property, False)
        redraw()
        return {"FINISHED"}


def draw_marked(layout, context, armature, add, remove, active=True, numbered=False):
    """A row for each action of an armature, and a button for more; what is on the list of others.
    add, remove: operators of the list; numbered: whether rows tell the keys 1 to 9. Returns the
    actions."""
    own = add.marks.of(armature)
    column = layout.column(align=True)
    column.active = active and session.job() is None
    for number, action in enumerate(own, 1):
        row = column.row(align=True)
        name = f"{number}  {action.name}" if numbered and number < 10 else action.name
        row.label(text=name, icon="ACTION", translate=False)
        for more in add.marks.more:
            row.prop(action, more, text="")
        if action.library is None:
            row.operator(remove.bl_idname, text="", icon="X").action = action.name
    layout.operator(add.bl_idname, text=add.bl_label, icon="ADD")
    others = [one.name for one in add.marks.marked() if one not in own]
    if others:
        names = ", ".join(f"'{name}'" for name in others)
        sentence(layout, context, f"Of other characters, without keys here: {names}.", "INFO")
    return own


class POISE_OT_add_get_up(AddMarked, bpy.types.Operator):
    """Put an action on the list."""

    bl_idname = "poise.add_get_up"
    bl_label = "Add Get-Up"
    bl_description = (
        "Choose an action in which the character gets up from the floor. Who has fallen gets up as "
        "in the action that begins most as it lies, mirrored if that fits better"
    )
    bl_property = "action"
    marks = GET_UPS
    action: others_of(GET_UPS)


class POISE_OT_remove_get_up(RemoveMarked, bpy.types.Operator):
    """Take an action off the list."""

    bl_idname = "poise.remove_get_up"
    bl_label = "Remove Get-Up"
    marks = GET_UPS


class POISE_OT_add_act(AddMarked, bpy.types.Operator):
    """Put an action on the list."""

    bl_idname = "poise.add_act"
    bl_label = "Add Act"
    bl_description = (
        "Choose an action that begins and ends on its feet: a jump, a kick, a bow. Who is played "
        "performs it where it stands, by a key, and goes on as it is told"
    )
    bl_property = "action"
    marks = ACTS
    action: others_of(ACTS)


class POISE_OT_remove_act(RemoveMarked, bpy.types.Operator):
    """Take an action off the list."""

    bl_idname = "poise.remove_act"
    bl_label = "Remove Act"
    marks = ACTS


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
        gets_up = settings.get_up and settings.when_it_falls != STOP.upper()
        own = draw_marked(
            layout, context, armature, POISE_OT_add_get_up, POISE_OT_remove_get_up, gets_up
        )
        if own and not gets_up:
            sentence(layout, context, "Choose how it falls, and Get Up, to have it do so.", "INFO")
        elif not own:
            sentence(layout, context, "Without any it gets up in a way of Poise's own.", "INFO")


CLASSES = (POISE_PT_get_ups,)

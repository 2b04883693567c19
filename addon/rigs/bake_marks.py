# SPDX-License-Identifier: GPL-3.0-or-later
"""The marks of baked actions, in their custom property "poise": see bake_target."""

import bpy

from ..blender import compat

MARK = "poise"


def marks_of(action):
    """{number: mark} of an action. Those of a Blender without slots are of the slot that later
    ones make of such an action."""
    marks = action.get(MARK) if action is not None else None
    marks = marks.to_dict() if hasattr(marks, "to_dict") else {}
    for mark in marks.values():
        mark["slot"] = mark["slot"] or slot_key(compat.first_slot(action))
        mark["source_slot"] = mark["source_slot"] or slot_key(compat.first_slot(mark.get("source")))
    return marks


def set_marks(action, marks):
    """Give an action these marks, and no others."""
    if marks:
        action[MARK] = {str(i): mark for i, mark in enumerate(marks)}
    elif MARK in action:
        del action[MARK]


def slot_key(slot):
    """What marks know a slot by; empty on versions without slots."""
    return "" if slot is None else slot.identifier


def mark_of(action, slot):
    """The mark of a baked (action, slot), a dict; None if Poise did not make it."""
    return next((m for m in marks_of(action).values() if m["slot"] == slot_key(slot)), None)


def change(action, slot, **changed):
    """Change the mark of a baked (action, slot); what becomes None is taken out."""
    marks = list(marks_of(action).values())
    for mark in marks:
        if mark["slot"] == slot_key(slot):
            mark |= changed
            for name in [name for name in changed if changed[name] is None]:
                del mark[name]
    set_marks(action, marks)


def take_of(mark):
    """Name of the take that was baked; empty if it was none."""
    return mark.get("take", "")


def source_of(mark):
    """The (action, slot) that was baked; (None, None) if that was NLA strips."""
    source = mark.get("source")
    return source, compat.find_slot(source, mark["source_slot"])


def without_bake(action, slot):
    """The (action, slot) that this one is a bake of; itself if it is none."""
    mark = mark_of(action, slot)
    return source_of(mark) if mark else (action, slot)


def is_source(action, slot):
    """Whether anything was baked from (action, slot)."""
    marks = (mark for baked in bpy.data.actions for mark in marks_of(baked).values())
    return any(
        mark.get("source") == action and mark["source_slot"] == slot_key(slot) for mark in marks
    )

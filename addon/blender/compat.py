# SPDX-License-Identifier: GPL-3.0-or-later
"""Every difference between the Blender versions that Poise runs on, 4.2 to 5.2.

An action's curves belong to a *slot* from 4.4 on. Here an animation is always a pair
(action, slot); on 4.2 and 4.3 the slot is None.
"""

import bpy
import numpy as np

#: Actions have slots, layers and strips (4.4 and later).
HAS_SLOTS = hasattr(bpy.types, "ActionSlot")


def assigned(datablock):
    """The (action, slot) that animates a data-block; (None, None) if nothing does."""
    animation = datablock.animation_data
    if animation is None:
        return None, None
    return animation.action, animation.action_slot if HAS_SLOTS else None


def assign(datablock, action, slot=None):
    """Let (action, slot) animate a data-block, together: Blender alone may leave the slot empty."""
    animation = datablock.animation_data
    if animation is None:
        if action is None:
            return
        animation = datablock.animation_data_create()
    animation.action = action
    if HAS_SLOTS and action is not None:
        animation.action_slot = slot


def action_names():
    """Names of all actions that are there."""
    return [action.name for action in bpy.data.actions]


def find_action(name, library=None):
    """The action of that name, from the library file or from this one; None if there is none."""
    for action in bpy.data.actions:
        if action.name == name and (action.library.filepath if action.library else None) == library:
            return action
    return None


def new_action(name):
    """A new, empty action for objects: (action, slot)."""
    action = bpy.data.actions.new(name)
    if not HAS_SLOTS:
        action.id_root = "OBJECT"
        return action, None
    return action, new_slot(action, name)


def new_slot(action, name):
    """A new slot for objects in an action; needs `HAS_SLOTS`."""
    return action.slots.new(id_type="OBJECT", name=name)


def find_slot(action, identifier):
    """The slot of that identifier in an action; None if there is none, or no slots at all."""
    if not HAS_SLOTS or action is None or identifier is None:
        return None
    return next((slot for slot in action.slots if slot.identifier == identifier), None)


def first_slot(action):
    """The first slot of an action, which is all that one from before there were slots has; None if
    it has none, or on versions without slots."""
    return action.slots[0] if HAS_SLOTS and action is not None and action.slots else None


def object_slot(action, datablock):
    """The slot with which an action would animate an object: the one it had, its own, or the first.

    None if the action has no slot for objects, or on versions without slots.
    """
    if not HAS_SLOTS:
        return None
    animation = datablock.animation_data
    if animation is not None and animation.action == action and animation.action_slot:
        return animation.action_slot
    wanted = [f"OB{datablock.name}"]
    if animation is not None:
        wanted.insert(0, animation.last_slot_identifier)
    for identifier in wanted:
        slot = find_slot(action, identifier)
        if slot is not None:
            return slot
    fitting = [s for s in action.slots if s.target_id_type in ("OBJECT", "UNSPECIFIED")]
    return fitting[0] if fitting else None


def slot_name(slot):
    """What names a slot in its action for good: its identifier; None without slots."""
    return None if slot is None else slot.identifier


def numbers(action, slot):
    """What tells (action, slot) for good within a session, whatever they are called by then; None
    of no action."""
    return action and (action.session_uid, slot.handle if slot else None)


def numbered(told):
    """The (action, slot) of such numbers; (None, None) if there is none any more."""
    for action in bpy.data.actions:
        if action.session_uid == told[0]:
            slots = action.slots if HAS_SLOTS else ()
            return action, next((slot for slot in slots if slot.handle == told[1]), None)
    return None, None


def channels(action, slot, ensure=False):
    """What holds the `.fcurves` and `.groups` of (action, slot); None if it has none yet.

    ensure: make it, with the layer and the strip that it needs.
    """
    if not HAS_SLOTS or action is None:
        return action
    if slot is None:
        return None
    if not action.layers:
        if not ensure:
            return None
        action.layers.new("Layer")
    layer = action.layers[0]
    if not layer.strips:
        if not ensure:
            return None
        layer.strips.new(type="KEYFRAME")
    return layer.strips[0].channelbag(slot, ensure=ensure)


def curves(action, slot):
    """List of the F-curves of (action, slot)."""
    holder = channels(action, slot)
    return [] if holder is None else list(holder.fcurves)


def of_strip(strip):
    """(action, slot) of an NLA strip."""
    return strip.action, strip.action_slot if HAS_SLOTS else None


def new_curve(holder, data_path, index, group=None):
    """A new F-curve in `channels(…)`, in the group of that name."""
    if not HAS_SLOTS:
        return holder.fcurves.new(data_path, index=index, action_group=group or "")
    if "group_name" in holder.fcurves.bl_rna.functions["new"].parameters:
        return holder.fcurves.new(data_path, index=index, group_name=group or "")
    curve = holder.fcurves.new(data_path, index=index)
    if group:
        curve.group = holder.groups.get(group) or holder.groups.new(group)
    return curve


def remove_slot(action, slot):
    """Remove a slot with all its curves."""
    action.slots.remove(slot)


def copy_curve(curve, holder):
    """A copy of an F-curve, with all that it has, in `channels(…)` of another (action, slot)."""
    group = curve.group.name if curve.group else None
    if hasattr(holder.fcurves, "new_from_fcurve"):
        copy = holder.fcurves.new_from_fcurve(curve)
        if group:
            copy.group = holder.groups.get(group) or holder.groups.new(group)
        return copy
    copy = new_curve(holder, curve.data_path, curve.array_index, group)
    _copy_keys(curve.keyframe_points, copy.keyframe_points)
    for modifier in curve.modifiers:
        _copy_properties(modifier, copy.modifiers.new(modifier.type))
    _copy_properties(curve, copy)
    copy.update()
    return copy


def _copy_keys(points, copies):
    """Copy all keys, each property of all at once: one by one they take a hundred times as long."""
    copies.add(len(points))
    for prop in _plain_properties(bpy.types.Keyframe):
        kind = np.float32 if prop.type == "FLOAT" else np.int32
        values = np.empty(len(points) * (getattr(prop, "array_length", 0) or 1), kind)
        points.foreach_get(prop.identifier, values)
        copies.foreach_set(prop.identifier, values)


def _copy_properties(source, target):
    """Copy all plain properties that can be written."""
    for prop in _plain_properties(source):
        setattr(target, prop.identifier, getattr(source, prop.identifier))


def _plain_properties(owner):
    """The properties of a type, or of what is of it, that a copy is to have, too."""
    return [
        prop
        for prop in owner.bl_rna.properties
        if not prop.is_readonly
        and prop.type not in ("POINTER", "COLLECTION")
        and prop.identifier not in ("data_path", "array_index", "co_ui")
    ]


def keep_only(action, slot):
    """Remove all slots of an action but one."""
    if HAS_SLOTS:
        for other in [one for one in action.slots if one != slot]:
            action.slots.remove(other)

# SPDX-License-Identifier: GPL-3.0-or-later
"""The action that a bake writes to: made or found by its mark, and gone again if the bake fails.

A baked (action, slot) has a mark in the action's custom property "poise": its kind, the source
action, the armature, which curves Poise wrote and what was in them, and the values of what it
switched. Only what is marked is ever replaced, and only until somebody makes it their own.
"""

import contextlib
import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache

import bpy
import numpy as np

from ...controller.exceptions import BakeError
from ...controller.geometry.skeleton import SEGMENTS, SIDES
from ..blender import compat, keys
from ..blender.pose import rotation_property
from . import identity, strips
from .bake_marks import (
    MARK,
    mark_of,
    marks_of,
    set_marks,
    slot_key,
    take_of,
    without_bake,
)
from .reference import bone_of, carriers
from .rig import label

#: What can be baked beside each other, and what the name of its action ends with.
KINDS = ("simulation", "target", "clean")
_ENDINGS = dict(zip(KINDS, ("Poise", "Poise Target", "Poise Clean"), strict=True))


@dataclass(frozen=True)
class Switch:
    """A property that must have a value while a bake is shown.

    path: its data path. group: of its curve.
    """

    path: str
    group: str
    value: float


def value_at(armature, path):
    """Value of a property by its data path: a number, a choice, or a list of numbers."""
    value = armature.path_resolve(path)
    return value if isinstance(value, (int, float, str)) else list(value)


def set_value_at(armature, path, value):
    """Set a property by its data path, if what it belongs to still exists."""
    custom = path.endswith('"]')
    owner, name = path[:-2].rsplit('["', 1) if custom else path.rpartition(".")[::2]
    try:
        owner = armature.path_resolve(owner) if owner else armature
    except ValueError:
        return
    if not custom:
        kind = type(getattr(owner, name))
        setattr(owner, name, kind(value) if kind in (bool, int) else value)
    elif name in owner:
        owner[name] = type(owner[name])(value)


# Marks ------------------------------------------------------------------------------------------


def takes_of(armature, but=None):
    """Names of the takes that bakes of an armature are of. but: BakeResult of one to leave out."""
    marks = (mark_of(*bake) for bake in bakes_of(armature))
    return {take_of(mark) for mark in marks if but is None or mark["number"] != but.number}


def is_there(baked):
    """Whether the bake of a BakeResult still exists: no undo has taken it away, no other bake its
    place."""
    action = bpy.data.actions.get(baked.action)
    return any(mark["number"] == baked.number for mark in marks_of(action).values())


def unbaked(thing):
    """The (action, slot) that animates an object, or that it is shown a bake of."""
    return without_bake(*strips.shown(thing, muted=True))


def bakes_of(armature):
    """(action, slot) of all bakes of what animates an armature, or is shown a bake of, the oldest
    first."""
    found = _bakes(armature, *unbaked(armature))
    return [(action, compat.find_slot(action, mark["slot"])) for action, mark in found]


def current(armature):
    """(action, slot) of the bake that an armature is shown, or else of its newest one; None if it
    has none."""
    shown = strips.shown(armature)
    if mark_of(*shown) is not None:
        return shown
    return next(reversed(bakes_of(armature)), None)


def has_bakes(armature):
    """Whether anything of an armature is baked."""
    is_of = _marks_of(armature)
    return any(is_of(mark) for action in bpy.data.actions for mark in marks_of(action).values())


def remove(action, slot):
    """Remove a bake, for good: its action, or its slot in one of somebody's."""
    mark = mark_of(action, slot)
    if mark["whole"]:
        bpy.data.actions.remove(action)
        return
    left = [one for one in marks_of(action).values() if one["number"] != mark["number"]]
    compat.remove_slot(action, slot)
    set_marks(action, left)


def _next_number():
    """A number above those of all bakes, so that the newest can be told."""
    numbers = [mark["number"] for action in bpy.data.actions for mark in marks_of(action).values()]
    return max(numbers, default=0) + 1


def _bakes(armature, source, slot):
    """(action, mark) of each bake of (source, slot) of an armature in this file, the oldest
    first. Copies of a bake, which have its number, stand before it."""
    is_of = _marks_of(armature)
    found = [
        (action, mark)
        for action in bpy.data.actions
        if action.library is None
        for mark in marks_of(action).values()
        if mark.get("source") == source and mark["source_slot"] == slot_key(slot) and is_of(mark)
    ]
    return sorted(found, key=lambda b: (b[1]["number"], b[0].name == b[1].get("named")))


def _marks_of(armature):
    """Function that tells whether a mark is of an armature: of the one that it knows, or of the
    only one that plays what was baked if that is not in this file."""
    # Panels ask at every drawing, and a file may have thousands of objects.
    owner_of = lru_cache(identity.owner)

    def is_of(mark):
        owner = owner_of(mark["armature"])
        return armature == owner if owner is not None else _players(mark) == [armature]

    return is_of


def _players(mark):
    """The objects of this file that play what was baked, or are shown a bake of it."""
    return [
        thing
        for thing in bpy.data.objects
        if thing.library is None and _played(thing) == (mark.get("source"), mark["source_slot"])
    ]


def _played(thing):
    """(action, key of its slot) that animates an object, or is shown a bake of."""
    action, slot = strips.shown(thing, muted=True)
    mark = mark_of(action, slot)
    return (mark.get("source"), mark["source_slot"]) if mark else (action, slot_key(slot))


def restore_values(armature, mark):
    """Give what a bake switched the values it had."""
    for path, value in json.loads(mark["before"]).items():
        set_value_at(armature, path, value)


def set_values(armature, mark):
    """Set what must have another value while a bake is shown, and cannot be keyed."""
    for path, value in json.loads(mark.get("shown", "{}")).items():
        set_value_at(armature, path, value)


# Checks -----------------------------------------------------------------------------------------


def check_editable(armature):
    """Raise BakeError unless a new action can be assigned to the armature, and takes effect."""
    name, animation = armature.name, armature.animation_data
    if armature.library is not None:
        raise BakeError(
            f"'{name}' is linked from another file, so that its animation cannot be changed here: "
            "make a library override of it, or make it local."
        )
    override = armature.override_library
    if override is not None and override.is_system_override:
        raise BakeError(
            f"The library override of '{name}' is not editable: make it so with "
            "Object > Library Override > Make."
        )
    if animation is None or not animation.use_nla or not animation.nla_tracks:
        return
    if any(track.is_solo for track in animation.nla_tracks):
        raise BakeError(
            f"An NLA track of '{name}' is solo, so that a bake would not show: end its solo."
        )
    if animation.action_blend_type != "REPLACE" or animation.action_influence < 1:
        raise BakeError(
            f"The action of '{name}' is blended with its NLA tracks, so that a bake would not show "
            "as it is: set its blending to Replace and its influence to 1."
        )


def check_undriven(owner, paths):
    """Raise BakeError if one of the channels that are to be keyed has a driver."""
    animation = owner.animation_data
    driven = {driver.data_path for driver in animation.drivers} if animation else set()
    for path in paths:
        if path in driven:
            raise BakeError(
                f"The channel {path} of '{owner.name}' has a driver, which overrules keys: remove "
                "the driver."
            )


def check_bones(armature, rig_map):
    """Raise BakeError if a bone that a bake would have to key is driven, or a part of the body has
    no control, before any work is done. Locks are for hands: keys do not mind them."""
    for segment in SEGMENTS:
        if not rig_map.can_be_keyed(segment):
            raise without_control(rig_map, segment)
    names = _keyed(rig_map)
    placed = {names[0]}
    for side in SIDES:
        if rig_map.controls and f"shin_{side}" not in rig_map.controls:
            placed |= set(rig_map.controls.get(f"foot_{side}", ())[-1:])
    for name in names:
        bone = armature.pose.bones[name]
        channels = [rotation_property(bone.rotation_mode), *(["location"] * (name in placed))]
        check_undriven(armature, [bone.path_from_id(channel) for channel in channels])


def without_control(rig_map, slot):
    """The BakeError for a part of the body that a map of controls has none for."""
    return BakeError(
        f"The rig map '{rig_map.name}' has no control for the {label(slot)}: correct the map."
    )


def _keyed(rig_map):
    """The bones of a map that a bake keys, the pelvis' first."""
    if rig_map.controls:
        slots = (*SEGMENTS, *(f"hand_{side}" for side in SIDES))
        return [bone for slot in slots for bone in rig_map.controls.get(slot, ())]
    return [bone for segment in SEGMENTS for bone in carriers(rig_map, segment)]


class State:
    """What animates an armature before its source is shown, to put it back.

    values: {data path: value} of all that a bake may set.
    """

    def __init__(self, armature):
        self._armature = armature
        self._animation = armature.animation_data is not None
        self._before, self._muted = compat.assigned(armature), strips.mutes(armature)
        self.values, self._shown = {}, {}

    def show_source(self, source, slot):
        """Assign the source, with all that an earlier bake set as it was."""
        mark = mark_of(*strips.read_of(self._armature))
        strips.assign(self._armature, source, slot)
        if mark is not None:
            for path in json.loads(mark["before"]):
                with contextlib.suppress(ValueError):  # what it belongs to is gone
                    self._shown[path] = value_at(self._armature, path)
            restore_values(self._armature, mark)

    def keep(self, bones, switches):
        """Remember the values of switches and of the channels of bones and of the object."""
        paths = ["location", *(switch.path for switch in switches)]
        for name in bones:
            bone = self._armature.pose.bones[name]
            channels = ("location", "scale", rotation_property(bone.rotation_mode))
            paths += [bone.path_from_id(channel) for channel in channels]
        self.values |= {path: value_at(self._armature, path) for path in paths}

    def change(self, values):
        """Remember what has a value of {data path: value}, and set it."""
        self.values |= {path: value_at(self._armature, path) for path in values}
        for path, value in values.items():
            set_value_at(self._armature, path, value)

    def put_back(self):
        """Undo everything but the current frame."""
        for path, value in (self.values | self._shown).items():
            set_value_at(self._armature, path, value)
        compat.assign(self._armature, *self._before)
        strips.set_mutes(self._armature, self._muted)
        if not self._animation:
            self._armature.animation_data_clear()


# Target -----------------------------------------------------------------------------------------


class Target:
    """A context in which there is a new (action, slot), which `filling` assigns; left by an error,
    it is removed."""

    def __init__(self, armature, source, slot, chosen=None, kind=KINDS[0], prepare=None, take=""):
        """chosen: name of an existing action to add a slot to; None for an action of its own.
        kind: what is baked, of KINDS. prepare: called with the channels that hold the copied
        curves, to change them. take: name of the take that is baked, empty for none."""
        self._kind, self._prepare, self._take = kind, prepare, take
        self._ending = f"{_ENDINGS[kind]} {take}".rstrip()
        #: Its number among all bakes, once it is finished.
        self.number = None
        self._armature, self._source, self._source_slot = armature, source, slot
        self.action = self.slot = self._old = self._old_mark = None
        #: Name of an earlier bake that somebody has made their own, and that is left as it is.
        self.left = None
        self.counts = (0, 0)
        self._copied = {}
        self._written = []
        self._chosen = None if chosen is None else chosen_action(chosen, source)

    def __enter__(self):
        try:
            if self._chosen is None:
                self._make_action()
            else:
                self._make_slot()
            self._holder = compat.channels(self.action, self.slot, ensure=True)
        except BaseException:
            self._remove()
            raise
        return self

    def filling(self):
        """Take over what the source has beside the tracks to be written, and let it be assigned;
        yields the progress from 0 to 1."""
        if self._old is not None or self._chosen is not None:
            yield from self._fill_from_source()
        if self._prepare is not None:
            self._prepare(self._holder)
        for curve in list(self._holder.fcurves):
            self._copied[_key(curve)] = _digest(curve)
            yield 1.0
        compat.assign(self._armature, self.action, self.slot)

    def __exit__(self, kind, *_):
        if kind is not None:
            self._remove()

    def _make_action(self):
        """Copy the source, or the earlier bake of it, if that is to be replaced."""
        armature, source, slot = self._armature, self._source, self._source_slot
        self._old, self._old_mark = self._replaced()
        if self._old is not None:
            self.action = self._old.copy()
            self.slot = compat.find_slot(self.action, self._old_mark["slot"])
            if compat.HAS_SLOTS and self.slot is None:
                self.slot = compat.new_slot(self.action, armature.name)
            return
        if source is None:
            self.action, self.slot = compat.new_action(armature.name)
        elif source.library is not None:
            self.action, self.slot = compat.new_action(armature.name)
            holder = compat.channels(self.action, self.slot, ensure=True)
            for curve in compat.curves(source, slot):
                compat.copy_curve(curve, holder)
        else:
            self.action = source.copy()
            self.slot = compat.find_slot(self.action, slot_key(slot))
            compat.keep_only(self.action, self.slot)
        # A copy of a bake is no bake of the same source.
        if MARK in self.action:
            del self.action[MARK]
        name = source.name if source else armature.name
        self.action.name = f"{name} {self._ending}"
        self.action.use_fake_user = True

    def _make_slot(self):
        """Add a slot to the chosen action; one that was baked before goes when this is done."""
        self.action = self._chosen
        self.slot = compat.new_slot(self.action, f"{self._armature.name} {self._ending}")
        _, self._old_mark = self._replaced()
        if self._old_mark is None:
            return
        self._old = compat.find_slot(self.action, self._old_mark["slot"])
        if self._old is not None:
            holder = compat.channels(self.action, self.slot, ensure=True)
            for curve in compat.curves(self.action, self._old):
                compat.copy_curve(curve, holder)

    def _replaced(self):
        """(action, mark) of the earlier bake that this one replaces, in the chosen action or in one
        of its own; (None, None) if there is none, or if it is somebody's own."""
        fit = [
            (action, mark)
            for action, mark in _bakes(self._armature, self._source, self._source_slot)
            if mark.get("kind", KINDS[0]) == self._kind
            and take_of(mark) == self._take
            and (mark["whole"] if self._chosen is None else action == self._chosen)
        ]
        action, mark = fit[-1] if fit else (None, None)
        edited = mark and strips.is_edited(self._armature, action, mark)
        if mark and (edited or _is_own(action, mark)):
            self.left = action.name
            return None, None
        return action, mark

    def _fill_from_source(self):
        """Take all curves from the source, but those that somebody changed in the last bake."""
        yield 0.0
        if self._old_mark is not None:
            written = set(json.loads(self._old_mark["written"]))
            copied = json.loads(self._old_mark["copied"])
            _check_unlocked(getattr(self._old, "name", self.action.name), self._holder, written)
            for curve in list(self._holder.fcurves):
                key = _key(curve)
                if key in written or copied.get(key) == _digest(curve):
                    self._holder.fcurves.remove(curve)
        present = {_key(curve) for curve in self._holder.fcurves}
        curves = compat.curves(self._source, self._source_slot)
        for i, curve in enumerate(curves):
            yield i / len(curves)
            if _key(curve) not in present:
                compat.copy_curve(curve, self._holder)

    def write(self, tracks, kept, interpolation):
        """Write the tracks' keys in place of what was in their curves; yields the progress."""
        self._written = [
            f"{track.path}[{i}]" for track in tracks for i in range(track.values.shape[1])
        ]
        owner = self._source if self._old_mark is None and self._source else self.action
        _check_unlocked(owner.name, self._holder, set(self._written))
        self.counts = yield from keys.write(self._holder, tracks, kept, interpolation)

    def source_times(self, bone):
        """Times of the keys that the source has for a bone, or for the object, or for any bone."""
        curves = compat.curves(self._source, self._source_slot)
        own = [curve for curve in curves if (bone_of(curve.data_path) or "Object") == bone]
        times = set()
        for curve in own or curves:
            co = np.empty(2 * len(curve.keyframe_points))
            curve.keyframe_points.foreach_get("co", co)
            times.update(co[::2])
        return sorted(times)

    def finish(self, values, shown=None):
        """Mark what was written, and let it take the place of the earlier bake.

        values: {data path: value} without the bake, of all that it may have set. shown: those that
        it has set without keys.
        """
        if self._old is not None:
            if self._chosen is None:
                self._replace_action()
            else:
                self._replace_slot()
        others = [mark for mark in marks_of(self.action).values() if self._is_other(mark)]
        self.number = _next_number()
        mark = {
            "slot": slot_key(self.slot),
            "kind": self._kind,
            "take": self._take,
            "armature": identity.of(self._armature),
            "source_slot": slot_key(self._source_slot),
            "number": self.number,
            "whole": self._chosen is None,
            "written": json.dumps(_keys_of(self.action, self.slot, self._written)),
            "named": self.action.name,
            "copied": json.dumps(
                {key: d for key, d in self._copied.items() if key not in set(self._written)}
            ),
            "before": json.dumps(values),
            "shown": json.dumps(shown or {}),
        }
        if self._old_mark is not None:  # its strip plays this one now
            mark |= {name: self._old_mark[name] for name in strips.NOTES if name in self._old_mark}
        if self._source is not None:
            # A pointer: the source has a user as long as its bake exists, and may be renamed.
            mark["source"] = self._source
        set_marks(self.action, [*others, mark])

    def _is_other(self, mark):
        """Whether a mark is of another bake in the same action, whose slot still exists."""
        if mark["slot"] == slot_key(self.slot):
            return False
        return compat.find_slot(self.action, mark["slot"]) is not None

    def _replace_action(self):
        name = self._old.name
        self._old.user_remap(self.action)
        bpy.data.actions.remove(self._old)
        self.action.name = name
        self.action.use_fake_user = True
        compat.assign(self._armature, self.action, self.slot)

    def _replace_slot(self):
        name = self._old.name_display
        strips.replace_slot(self.action, self._old, self.slot)
        compat.remove_slot(self.action, self._old)
        self.slot.name_display = name

    def _remove(self):
        """Leave nothing of what was made."""
        if self._chosen is None:
            if self.action is not None:
                bpy.data.actions.remove(self.action)
        elif self.slot is not None:
            compat.assign(self._armature, self._source, self._source_slot)
            compat.remove_slot(self.action, self.slot)


def chosen_action(name, source):
    """The existing action to add a slot to. Raises BakeError if there is none but the source."""
    if not compat.HAS_SLOTS:
        raise BakeError(
            f"Adding a slot to '{name}' needs Blender 4.4 or later: bake to a new action instead."
        )
    action = compat.find_action(name)
    if action is None:
        raise BakeError(f"There is no action named '{name}' in this file: choose an existing one.")
    if action == source:
        raise BakeError(
            f"'{name}' is the source, which is never changed: choose another action to bake to."
        )
    return action


def _check_unlocked(action_name, holder, written):
    """Raise BakeError if a curve that the bake replaces is locked."""
    for curve in holder.fcurves:
        if _key(curve) in written and (curve.lock or (curve.group and curve.group.lock)):
            where = f"bone '{bone_of(curve.data_path)}'" if bone_of(curve.data_path) else "object"
            raise BakeError(
                f"The curve {curve.data_path.rsplit('.', 1)[-1]} of the {where} in "
                f"'{action_name}' is locked: unlock it, since the bake must replace it."
            )


def _is_own(action, mark):
    """Whether somebody has made a bake their own since: has changed a key that Poise wrote, or has
    given the action another name."""
    if "named" not in mark:  # of an earlier version
        return False
    if mark["whole"] and action.name != mark["named"]:
        return True
    written = json.loads(mark["written"])
    return _keys_of(action, compat.find_slot(action, mark["slot"]), written) != written


def _keys_of(action, slot, written):
    """{key: digest} of the curves that were written, without their handles: Blender sets those."""
    written = set(written)
    curves = compat.curves(action, slot)
    return {_key(c): _digest(c, ("co",)) for c in curves if _key(c) in written}


def _key(curve):
    return f"{curve.data_path}[{curve.array_index}]"


def _digest(curve, attributes=("co", "handle_left", "handle_right")):
    """A short text that differs when the keys do."""
    digest = hashlib.sha1(usedforsecurity=False)
    for attribute in attributes:
        values = np.empty(2 * len(curve.keyframe_points), np.float32)
        curve.keyframe_points.foreach_get(attribute, values)
        digest.update(values.tobytes())
    return digest.hexdigest()[:12]

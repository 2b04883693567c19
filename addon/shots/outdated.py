# SPDX-License-Identifier: GPL-3.0-or-later
"""What was set otherwise when a simulation was made than it is now.

Of an object all counts that may move or shape it: its channels, keys, modifiers, constraints and
mesh, and the same of its parent and of what these settings name. Poise's own bakes do not count,
nor do the names of objects.
"""

import hashlib
import json
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import bpy
import numpy as np

from ...controller.options import needed_by, options_of
from ..blender import compat
from ..blender.keys import INTERPOLATIONS
from ..blender.pose import rotation_property
from ..rigs import bake_target, source_values
from ..rigs.reference import bone_of
from ..scene import bodies, holds, mixture, objects, strength, walks, waypoints, weights
from ..scene.marked import GET_UPS
from .shot import ShotOptions

#: Fields of ShotOptions that are not described, by the names that the window has for them.
_OPTIONS = {
    "Frames": ("frames",),
    "Rig Map": ("rig",),
    "Unit (m)": ("unit",),
    "Gains": ("gains", "balance"),
    "Own Mass": ("mass",),
    "Proportions": ("morphology",),
    "Clip Check": ("cleaning",),
    "Locomotion": ("walk",),
}
_RATE = ("fps", "fps_base", "frame_map_old", "frame_map_new")
#: Of settings, what says only how they are shown.
_SKIPPED = {
    "active",
    "index",
    "is_active",
    "name",
    "select",
    "show_expanded",
    "show_in_editmode",
    "show_on_cage",
    "use_pin_to_last",
}
#: What is read of all bones of a pose, and of all at rest, with how many numbers a bone has of it.
_CHANNELS = {"location": 3, "rotation_quaternion": 4, "rotation_euler": 3, "scale": 3}
_RESTS = {"head_local": 3, "tail_local": 3, "head_radius": 1, "tail_radius": 1}
#: Of a source, what takes long to read: names of what `in_full` adds.
_SOURCE = ("Keys", "Rest Pose", "Pose", "Bone Constraints", "Drivers", "NLA Strips")
#: Between two looks at what takes long, so many times what the look took.
_LULL = 50


def settings_of(
    scene: "bpy.types.Scene", armature: "bpy.types.Object", options: ShotOptions
) -> dict[str, Any]:
    """{name: value} of all that a simulation of an armature depends on, but the keys of its action
    and its contacts. options: its ShotOptions."""
    found = {
        name: tuple(getattr(options, field) for field in fields)
        for name, fields in _OPTIONS.items()
    }
    if options.walk:
        heading = scene.objects.get(options.walk.heading or "")
        walk = options.walk if heading is None else replace(options.walk, heading=None)
        acts = options.walk.performed(armature)
        if acts:
            found["Acts"] = tuple((action.session_uid, action.poise_act_help) for action in acts)
        found["Locomotion"] = walk, _moved_by(heading), _shares(armature.data, walks.PROPERTY)
    pushing = [push for push in scene.poise.pushes.items if push.use]
    empties = [push.empty for push in pushing if push.kind == "EMPTY" and push.empty]
    described = options_of(options)
    for name, one in described.items():
        needed = needed_by(described, name)
        if not needed:
            found[one.label] = (getattr(options, name),)
        elif all(getattr(options, need) != described[need].default for need in needed):
            found[described[needed[-1]].label] += (getattr(options, name),)  # else it means nothing
    if options.get_up:
        own = GET_UPS.of(armature)
        found["Get-Ups"] = options.get_up_by, [action.session_uid for action in own]
    if options.walk and options.walk.played:  # what the panels say of these is of others
        del found["Locomotion"], found[described["when_it_falls"].label]
    return found | {
        "Armature": _moved_by(armature, keys=False),
        "Action": _source(armature),
        "Unit (m)": (*found["Unit (m)"], scene.unit_settings.scale_length),
        "Frame Rate": [getattr(scene.render, name) for name in _RATE],
        "Pushes": [[_values(push) for push in pushing], [_moved_by(one) for one in empties]],
        "Waypoints": [
            _values(scene.poise.waypoints),
            [
                (getattr(one, waypoints.PROPERTY).frame, _moved_by(one))
                for one in waypoints.used(scene, armature)
            ],
        ],
        "Holds": [
            (_values(getattr(one, holds.PROPERTY)), _moved_by(one))
            for one in holds.used(scene, armature)
        ],
        "Objects": [
            _values(scene.poise.objects),
            [_marked(thing) for thing in sorted(objects.marked(scene), key=_number)],
        ],
        "Physics Weights": _shares(armature.data, weights.PROPERTY),
        "Strength": _shares(armature.data, strength.PROPERTY),
        "Falls Like": _shares(armature.data, mixture.PROPERTY),
    }


def in_full(settings: dict[str, Any], armature: "bpy.types.Object") -> dict[str, Any]:
    """Such settings with what takes too long for each drawing of the window: the keys of the
    armature's source, its rest pose, and, unless there is a bake, which switches some of it, all
    else that its bones are moved by."""
    sources = [bake_target.unbaked(armature)]
    if "Get-Ups" in settings:
        own = GET_UPS.of(armature)
        sources += [(action, compat.object_slot(action, armature)) for action in own]
    if "Acts" in settings:
        uids = [uid for uid, _ in settings["Acts"]]
        acts = [one for one in bpy.data.actions if one.session_uid in uids]
        sources += [(action, compat.object_slot(action, armature)) for action in acts]
    found = settings | {
        "Keys": [_digest(compat.curves(*source)) for source in sources],
        "Rest Pose": _rest(armature, "matrix_local", 16),
    }
    if bake_target.has_bakes(armature):
        return found
    seen, animated, bones = {armature}, _animated(armature), armature.pose.bones
    animation = armature.animation_data
    heard = source_values.nested(source_values.heard(animation))
    return found | {
        "Pose": (_channels(bones, animated), [_properties(bone, animated) for bone in bones]),
        "Bone Constraints": [
            _constraint(one, seen, animated) for bone in bones for one in bone.constraints
        ],
        "Drivers": [_driver(curve) for curve in (animation.drivers if animation else ())],
        "NLA Strips": [
            (_values(strip), _digest(compat.curves(*compat.of_strip(strip)))) for strip in heard
        ],
    }


def source_changed(settings: dict[str, Any] | None, armature: "bpy.types.Object") -> list[str]:
    """The names of what of an armature's source differs from settings `in_full`."""
    if settings is None:
        return []
    there = {name: settings[name] for name in _SOURCE if name in settings}
    return changed(there, in_full(settings, armature)) if there else []


@dataclass
class Lately:
    """What of an armature's source has changed, as of the last look: each look takes long, so that
    there is none before that many times as long has gone by.

    settings: those `in_full` with which it is compared, None if there are none. known: the
    names."""

    settings: dict[str, Any] | None
    known: list[str] = field(default_factory=list)
    _due: float = 0.0

    def names(
        self, armature: "bpy.types.Object", clock: Callable[[], float] = time.monotonic
    ) -> list[str]:
        """See `source_changed`. clock: returns the time [s]."""
        if (began := clock()) >= self._due:
            self.known = source_changed(self.settings, armature)
            ended = clock()
            self._due = ended + _LULL * (ended - began)
        return self.known


def changed(before: dict[str, Any] | None, now: dict[str, Any]) -> list[str]:
    """The names of what differs between two of these; none without the first. What the first one
    does not depend on cannot differ."""
    before = now if before is None else before
    names = [name for name in now if name in before and before[name] != now[name]]
    return [name for name in names if name != "Armature" or "Action" not in names]


def _shares(data: "bpy.types.Armature", owner: str) -> list:
    """What counts of a property group of an armature, and its keys."""
    curves = compat.curves(*compat.assigned(data))
    keyed = [_keys(curve) for curve in curves if curve.data_path.startswith(f"{owner}.")]
    return [_values(getattr(data, owner)), keyed]


def _source(thing: "bpy.types.Object") -> tuple[int, int | None] | None:
    """What animates an object, or its source where a bake does, under any name."""
    return compat.numbers(*bake_target.unbaked(thing))


def _number(thing: "bpy.types.Object") -> int:
    """What an object keeps under any name."""
    return thing.session_uid


def _marked(thing: "bpy.types.Object") -> tuple:
    """What counts of a thing or a collider."""
    if thing.type == "ARMATURE":
        return _posed(thing), _values(thing.poise)
    skin = bodies.skinned_by(thing) if thing.poise.role == "COLLIDER" else None
    return _moved_by(thing), _shape(thing), skin and _posed(skin), _values(thing.poise)


def _posed(armature: "bpy.types.Object") -> tuple:
    """All by which the bones of an armature that is shown as a collider are where they are at each
    frame: of its animation what is shown, also if that is a bake."""
    action, slot = compat.assigned(armature)
    played = [
        (_values(strip), [_keys(curve) for curve in compat.curves(*compat.of_strip(strip))])
        for strip in source_values.heard(armature.animation_data)
    ]
    bones, animated = armature.pose.bones, _animated(armature, bakes=True)
    rest = [_rest(armature, name, size) for name, size in _RESTS.items()]
    seen = {armature}
    return (
        _moved_by(armature, keys=False),
        action and action.name,
        compat.slot_name(slot),
        [_keys(curve) for curve in compat.curves(action, slot)],
        played,
        _channels(bones, animated),
        [_constraint(one, seen) for bone in bones for one in bone.constraints],
        (armature.data.display_type, armature.data.pose_position, rest),
    )


def _moved_by(
    thing: "bpy.types.Object | None",
    bone: str = "",
    keys: bool = True,
    seen: "set[bpy.types.Object] | None" = None,
) -> Any:
    """All by which an object, or a bone of it, is where it is at each frame. keys: whether those of
    itself count. seen: objects that are told already."""
    seen = set() if seen is None else seen
    if thing is None or thing in seen:
        return thing and thing.session_uid
    seen.add(thing)
    source = bake_target.unbaked(thing)
    mark = bake_target.mark_of(*compat.assigned(thing))
    before = json.loads(mark["before"]) if mark else {}
    animated, channels = _animated(thing), {}
    for name in ("location", rotation_property(thing.rotation_mode), "scale"):
        if name not in animated:
            channels[name] = before.get(name, list(getattr(thing, name)))
    line = _line(thing, bone)
    curves = [c for c in compat.curves(*source) if keys and bone_of(c.data_path) in (None, *line)]
    owners = [thing, *(thing.pose.bones[name] for name in line)]
    others = [_constraint(one, seen) for owner in owners for one in owner.constraints]
    if thing.parent is not None:
        inverse = np.ravel(thing.matrix_parent_inverse).tolist()
        parent = _moved_by(thing.parent, thing.parent_bone, seen=seen)
        others.append((thing.parent_type, thing.parent_bone, inverse, parent))
    if thing.type == "CURVE":
        others.append(_path(thing.data))
    return thing.session_uid, _source(thing), channels, [_keys(curve) for curve in curves], others


def _line(thing: "bpy.types.Object", bone: str) -> list[str]:
    """The names of a bone and of those above it."""
    if thing.type != "ARMATURE" or bone not in thing.data.bones:
        return []
    return [bone, *(one.name for one in thing.data.bones[bone].parent_recursive)]


def _constraint(
    one: "bpy.types.Constraint",
    seen: "set[bpy.types.Object]",
    animated: Collection[str] | None = None,
) -> Any:
    """The settings of a constraint, and what moves its targets. animated: as for `_values`."""
    targets = [(t.target, t.subtarget) for t in getattr(one, "targets", ())]
    targets.append((getattr(one, "target", None), getattr(one, "subtarget", "")))
    return one.type, _values(one, animated), [_moved_by(*target, seen=seen) for target in targets]


def _channels(bones: "bpy.types.bpy_prop_collection", animated: Collection[str]) -> list:
    """Locations, rotations and scales of the bones of a pose that nothing animates."""
    found = []
    for name, size in _CHANNELS.items():
        values = np.empty(size * len(bones), np.float32)
        bones.foreach_get(name, values)
        found.append(
            [
                row.tobytes()
                for bone, row in zip(bones, values.reshape(-1, size), strict=True)
                if f"{_bone_path(bone)}.{name}" not in animated
            ]
        )
    return found


def _properties(bone: "bpy.types.PoseBone", animated: Collection[str]) -> dict[str, Any]:
    """What rigs have as properties of a bone, such as switches, and nothing animates."""
    return {
        name: value
        for name, value in bone.items()
        if isinstance(value, int | float | str)
        and f'{_bone_path(bone)}["{bpy.utils.escape_identifier(name)}"]' not in animated
    }


def _bone_path(bone: "bpy.types.PoseBone") -> str:
    return f'pose.bones["{bpy.utils.escape_identifier(bone.name)}"]'


def _driver(curve: "bpy.types.FCurve") -> tuple:
    """What a driver gives, and of what."""
    driver = curve.driver
    variables = [
        (one.name, one.type, [_values(target) for target in one.targets])
        for one in driver.variables
    ]
    return _keys(curve), driver.type, driver.expression, variables


def _rest(armature: "bpy.types.Object", name: str, size: int) -> bytes:
    """A property of all bones of an armature at rest, with how many numbers each has of it."""
    values = np.empty(size * len(armature.data.bones), np.float32)
    armature.data.bones.foreach_get(name, values)
    return values.tobytes()


def _shape(thing: "bpy.types.Object") -> tuple:
    """The mesh of an object, what deforms it, and what moves what does."""
    mesh, objects = thing.data, set()
    points = np.empty(3 * len(mesh.vertices), np.float32)
    mesh.vertices.foreach_get("co", points)
    for modifier in thing.modifiers:
        values = (getattr(modifier, p.identifier) for p in modifier.bl_rna.properties)
        objects |= {one for one in values if _is_object(one)}
    blocks = mesh.shape_keys.key_blocks if mesh.shape_keys else ()
    return (
        points.tobytes(),
        len(mesh.polygons),
        [(block.name, block.value, block.mute) for block in blocks],
        [(one.type, _values(one)) for one in thing.modifiers],
        [_moved_by(one) for one in sorted(objects, key=_number)],
    )


def _is_object(value: Any) -> bool:
    return getattr(getattr(value, "bl_rna", None), "identifier", "") == "Object"


def _path(curve: "bpy.types.Curve") -> list:
    """The points of a curve."""
    found = []
    for spline in curve.splines:
        for name, size in (("points", 4), ("bezier_points", 3)):
            points = getattr(spline, name)
            values = np.empty(size * len(points), np.float32)
            points.foreach_get("co", values)
            found.append((spline.use_cyclic_u, values.tobytes()))
    return found


def _keys(curve: "bpy.types.FCurve") -> tuple:
    points = curve.keyframe_points
    kinds = np.empty(len(points), np.int32)
    points.foreach_get("interpolation", kinds)
    keys = [kinds.tobytes()]
    # Handles count with Bézier keys alone, and take twice as long as all else.
    handles = ("handle_left", "handle_right") if (kinds == INTERPOLATIONS["BEZIER"]).any() else ()
    for name in ("co", *handles):
        values = np.empty(2 * len(points), np.float32)
        points.foreach_get(name, values)
        keys.append(values.tobytes())
    modifiers = [(one.type, _values(one)) for one in curve.modifiers]
    where = curve.data_path, curve.array_index
    muted = curve.mute or bool(curve.group and curve.group.mute)
    return *where, muted, curve.extrapolation, keys, modifiers


def _digest(curves: "Iterable[bpy.types.FCurve]") -> str:
    """A short text that differs where curves do: keys can be many."""
    digest = hashlib.sha1(usedforsecurity=False)
    for curve in curves:
        *where, keys, modifiers = _keys(curve)
        digest.update(repr((where, modifiers)).encode())
        for values in keys:
            digest.update(values)
    return digest.hexdigest()


def _values(group: Any, animated: Collection[str] | None = None) -> dict[str, Any]:
    """{identifier: value} of the settings that something of Blender's has, without what is
    animated: that has a value at each frame. animated: what `_animated` says of it, if that is
    known."""
    animated = _animated(group.id_data) if animated is None else animated
    values = {}
    for prop in group.bl_rna.properties:
        name = prop.identifier
        if name in _SKIPPED or prop.is_readonly or prop.type == "COLLECTION":
            continue
        if animated and _path_of(group, name) in animated:
            continue
        value = getattr(group, name)
        if prop.type == "POINTER":
            value = getattr(value, "session_uid", getattr(value, "name", None))
        elif getattr(prop, "is_array", False):
            value = np.ravel(value).tolist()
        values[name] = value
    return values


def _path_of(group: Any, name: str) -> str:
    """Data path of a property; empty for what has none, as modifiers of curves."""
    try:
        return group.path_from_id(name)
    except ValueError:
        return ""


def _animated(data: "bpy.types.ID", bakes: bool = False) -> set[str]:
    """Data paths of all that actions, strips and drivers animate of a data-block; with or without
    bakes."""
    animation = getattr(data, "animation_data", None)
    if animation is None:
        return set()
    pairs = [compat.assigned(data)]
    pairs += [
        compat.of_strip(strip)
        for track in source_values.others(animation)
        for strip in track.strips
    ]
    own = [pair for pair in pairs if bakes or bake_target.mark_of(*pair) is None]
    curves = [curve for pair in own for curve in compat.curves(*pair)]
    return {curve.data_path for curve in (*curves, *animation.drivers)}

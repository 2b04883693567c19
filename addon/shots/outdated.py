# SPDX-License-Identifier: GPL-3.0-or-later
"""What was set otherwise when a simulation was made than it is now."""

from typing import TYPE_CHECKING, Any

from ...controller.options import options_of
from ..blender import compat
from ..rigs import bake_target
from ..scene import objects
from ..scene.weights import PROPERTY
from .shot import ShotOptions

if TYPE_CHECKING:
    import bpy

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
_SKIPPED = ("index", "name")
_KEYS = "Keys"


def settings_of(
    scene: "bpy.types.Scene", armature: "bpy.types.Object", options: ShotOptions
) -> dict[str, Any]:
    """{name: value} of all that a simulation of an armature depends on, but the keys of its action
    and its contacts. options: its ShotOptions."""
    found = {
        name: tuple(getattr(options, field) for field in fields)
        for name, fields in _OPTIONS.items()
    }
    described = options_of(options)
    for name, one in described.items():
        if not one.needs:
            found[one.label] = (getattr(options, name),)
        elif getattr(options, one.needs):  # else it means nothing
            found[described[one.needs].label] += (getattr(options, name),)
    data, weights = armature.data, getattr(armature.data, PROPERTY)
    keyed = [c for c in compat.curves(*compat.assigned(data)) if _is_weight(c)]
    return found | {
        "Action": _source(armature),
        "Unit (m)": (*found["Unit (m)"], scene.unit_settings.scale_length),
        "Frame Rate": [getattr(scene.render, name) for name in _RATE],
        "Pushes": [_values(push) for push in scene.poise.pushes.items if push.use],
        "Objects": [
            _values(scene.poise.objects),
            [_marked(thing) for thing in objects.marked(scene)],
        ],
        "Physics Weights": [_values(weights), [_keys(curve) for curve in keyed]],
    }


def with_keys(settings: dict[str, Any], armature: "bpy.types.Object") -> dict[str, Any]:
    """Such settings with a digest of the keys of the armature's source, which takes too long for
    each drawing of the window."""
    return settings | {_KEYS: bake_target.digest_of(*bake_target.unbaked(armature))}


def keys_changed(settings: dict[str, Any] | None, armature: "bpy.types.Object") -> bool:
    """Whether keys of the armature's source are others than in settings `with_keys`."""
    before = (settings or {}).get(_KEYS)
    return before is not None and before != with_keys({}, armature)[_KEYS]


def changed(before: dict[str, Any] | None, now: dict[str, Any]) -> list[str]:
    """The names of what differs between two of these; none without the first."""
    return [name for name in now if before is not None and before[name] != now[name]]


def _is_weight(curve: "bpy.types.FCurve") -> bool:
    return curve.data_path.startswith(f"{PROPERTY}.")


def _source(thing: "bpy.types.Object") -> tuple[str | None, str | None]:
    """What animates an object, or its source where a bake does: by name."""
    action, slot = bake_target.unbaked(thing)
    return action and action.name, compat.slot_name(slot)


def _marked(thing: "bpy.types.Object") -> tuple:
    """What counts of a thing or a collider. A thing's place is not looked at: its bake moves it."""
    modifiers = [(one.type, one.show_viewport) for one in thing.modifiers]
    shape = len(thing.data.vertices), modifiers, _values(thing.poise)
    if thing.poise.role == "THING":
        return _source(thing), *shape
    curves = compat.curves(*compat.assigned(thing))
    place = None if thing.animation_data else [tuple(row) for row in thing.matrix_basis]
    return [_keys(curve) for curve in curves], place, len(thing.constraints), *shape


def _keys(curve: "bpy.types.FCurve") -> tuple:
    points = [(*point.co, point.interpolation) for point in curve.keyframe_points]
    return curve.data_path, curve.array_index, curve.mute, points


def _values(group: "bpy.types.PropertyGroup") -> dict[str, Any]:
    """{identifier: value} of a property group, without what is animated: that has a value at each
    frame."""
    animated = _animated(group.id_data)
    values = {}
    for prop in group.bl_rna.properties:
        name = prop.identifier
        if name in _SKIPPED or prop.is_readonly or group.path_from_id(name) in animated:
            continue
        value = getattr(group, name)
        if prop.type == "POINTER":
            value = value and value.name
        values[name] = tuple(value) if getattr(prop, "is_array", False) else value
    return values


def _animated(data: "bpy.types.ID") -> set[str]:
    """Data paths of all that actions, strips and drivers animate of a data-block."""
    animation = data.animation_data
    if animation is None:
        return set()
    pairs = [compat.assigned(data)]
    pairs += [compat.of_strip(s) for track in animation.nla_tracks for s in track.strips]
    curves = [curve for pair in pairs for curve in compat.curves(*pair)]
    return {curve.data_path for curve in (*curves, *animation.drivers)}

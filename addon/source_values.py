# SPDX-License-Identifier: GPL-3.0-or-later
"""What a bake keys and its source does not, held below both by an NLA track: so the source is right
by itself once it is assigned, by whatever means, and in files that others open without Poise."""

import bpy

from . import compat

#: Name of the track, and what the names of its actions end with.
TRACK = "Poise Source"


def others(animation):
    """The NLA tracks of an object's animation data (or None) without that of this module."""
    return [t for t in animation.nla_tracks if t.name != TRACK] if animation else []


def hold(armature, source, baked, values):
    """Hold what the bake of a source keys beside it.

    source, baked: (action, slot). values: {data path: value} without the bake.
    """
    animation = armature.animation_data
    tracks = others(animation)
    strips = [strip for track in tracks for strip in track.strips]
    animated = _keys(source).union(*(_keys(_of_strip(strip)) for strip in strips))
    held = {}
    for path, index in _keys(baked) - animated:
        value = values.get(path, "")
        value = value[index] if isinstance(value, list) else value
        if not isinstance(value, str):
            held[path, index] = value
    if held:
        _write(armature, _held(animation) | held)


def release(armature):
    """Hold nothing any more."""
    animation = armature.animation_data
    for track in [one for one in animation.nla_tracks if one.name == TRACK]:
        actions = {strip.action for strip in track.strips}
        animation.nla_tracks.remove(track)
        for action in actions:
            if action.users == 0:
                bpy.data.actions.remove(action)


def _held(animation):
    """{(data path, index): value} that the track holds."""
    own = [track for track in animation.nla_tracks if track.name == TRACK]
    curves = [
        c for track in own for strip in track.strips for c in compat.curves(*_of_strip(strip))
    ]
    return {(c.data_path, c.array_index): c.keyframe_points[0].co[1] for c in curves}


def _write(armature, held):
    release(armature)
    action, slot = compat.new_action(armature.name)
    action.name = f"{armature.name} {TRACK}"
    holder = compat.channels(action, slot, ensure=True)
    for (path, index), value in sorted(held.items()):
        point = compat.new_curve(holder, path, index).keyframe_points
        point.insert(0, value).interpolation = "CONSTANT"
    track = armature.animation_data.nla_tracks.new()
    track.name = TRACK
    strip = track.strips.new(TRACK, 0, action)
    if compat.HAS_SLOTS:
        strip.action_slot = slot


def _of_strip(strip):
    return strip.action, strip.action_slot if compat.HAS_SLOTS else None


def _keys(pair):
    """{(data path, index)} of the curves of (action, slot)."""
    return {(curve.data_path, curve.array_index) for curve in compat.curves(*pair)}

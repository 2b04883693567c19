# SPDX-License-Identifier: GPL-3.0-or-later
"""What a bake keys and its source does not, held below both by an NLA track: so the source is right
by itself once it is assigned, by whatever means, and in files that others open without Poise.

With a track Blender minds what it does not without one, and takes some keys otherwise: where that
would change the source there is none.
"""

from collections import Counter

import bpy

from ..blender import compat

#: Name of the track, what the names of its actions end with, and the property that marks these.
TRACK, MARK = "Poise Source", "poise_source"


def others(animation):
    """The NLA tracks of an object's animation data (or None) without that of this module."""
    return [track for track in animation.nla_tracks if not is_own(track)] if animation else []


def heard(animation):
    """The NLA strips that an object's animation data (or None) plays, without that of this
    module."""
    if animation is None or not animation.use_nla:
        return []
    tracks = [track for track in others(animation) if not track.mute]
    return [strip for track in tracks for strip in track.strips if not strip.mute]


def nested(strips):
    """NLA strips with those that are inside of meta strips."""
    found = list(strips)
    for strip in found:
        found.extend(strip.strips)  # which are looked into, too
    return found


def hold(armature, source, baked, values, ceiling=None):
    """Hold what the bake of a source keys beside it.

    source, baked: (action, slot). values: {data path: value} without the bake. ceiling: index of
    the track below which the new one must be; None for none.
    Returns why what there is to hold cannot be, as an end of a sentence; empty if nothing is lost.
    """
    animation = armature.animation_data
    tracks = others(animation)
    why = why_not(animation, source)
    if not why and ceiling == 0 and len(tracks) == len(animation.nla_tracks):
        why = "there is no place below its NLA strips"
    played = map(compat.of_strip, nested(heard(animation)))
    animated = _keys(source).union(*map(_keys, played))
    paths, held = {path for path, _ in animated}, {}
    for path, index in _keys(baked) - animated:
        if path in paths and path.endswith("rotation_quaternion"):
            continue  # strips that have some of its four numbers say all of them
        value = values.get(path, "")
        value = value[index] if isinstance(value, list) else value
        if not isinstance(value, str):
            held[path, index] = value
    if why:
        release(armature)
    elif held:
        _write(armature, _held(animation) | held, ceiling)
    return why if held else ""


def release(armature):
    """Hold nothing any more."""
    animation = armature.animation_data
    for track in [one for one in animation.nla_tracks if is_own(one)]:
        _empty(track)
        animation.nla_tracks.remove(track)


def _empty(track):
    """Take the strips out of a track, with the actions that nothing else uses."""
    actions = {strip.action for strip in track.strips}
    for strip in list(track.strips):
        track.strips.remove(strip)
    for action in actions:
        if action.users == 0:
            bpy.data.actions.remove(action)


def _held(animation):
    """{(data path, index): value} that the track holds."""
    own = [track for track in animation.nla_tracks if is_own(track)]
    curves = [
        c for track in own for strip in track.strips for c in compat.curves(*compat.of_strip(strip))
    ]
    return {(c.data_path, c.array_index): c.keyframe_points[0].co[1] for c in curves}


def _write(armature, held, ceiling):
    """Hold values: on the track that there is, since others may stand over it by now."""
    tracks = armature.animation_data.nla_tracks
    track = next((one for one in tracks if is_own(one)), None)
    if track is None:
        track = tracks.new(prev=tracks[ceiling - 1] if ceiling else None)
    else:
        _empty(track)
    action, slot = compat.new_action(armature.name)
    action.name = f"{armature.name} {TRACK}"
    action[MARK] = True
    holder = compat.channels(action, slot, ensure=True)
    for (path, index), value in sorted(held.items()):
        point = compat.new_curve(holder, path, index).keyframe_points
        point.insert(0, value).interpolation = "CONSTANT"
    track.name = TRACK
    strip = track.strips.new(TRACK, 0, action)
    if compat.HAS_SLOTS:
        strip.action_slot = slot


def is_own(track):
    """Whether a track is this module's: people may call theirs so, too."""
    actions = [strip.action for strip in track.strips]
    return bool(actions) and all(action is not None and MARK in action for action in actions)


def why_not(animation, source):
    """Why a track, the first one that is heard or one more, would change a source, as an end of a
    sentence; empty if it would not."""
    if not animation.use_nla:
        return "the NLA of its animation is switched off"
    curves = compat.curves(*source)
    if any(curve.group and curve.group.mute for curve in curves):
        return "muted groups of its action count in the NLA alone"
    parts = Counter(c.data_path for c in curves if c.data_path.endswith("rotation_quaternion"))
    if any(count < 4 for count in parts.values()):
        # The others are then those of the rest pose.
        return "its action has keys for some of the four numbers of a quaternion only"
    neutral = (
        animation.action_influence == 1
        and animation.action_blend_type == "REPLACE"
        and animation.action_extrapolation == "HOLD"
    )
    if others(animation) or neutral:
        return ""
    return "its action's influence, blending or extrapolation counts in the NLA alone"


def _keys(pair):
    """{(data path, index)} of the curves of (action, slot) that are heard."""
    return {(c.data_path, c.array_index) for c in compat.curves(*pair) if not c.mute}

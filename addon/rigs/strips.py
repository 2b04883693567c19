# SPDX-License-Identifier: GPL-3.0-or-later
"""Bakes as NLA strips: each on a track of its own, over a muted one that has their source.

The mark of such a bake notes what its track and that of its source look like. A track is Poise's
as long as it plays that and looks like that, muted or not and at any frames: a strip that was moved
stays where it is. What somebody has changed otherwise is theirs. A bake is shown by
its track, alone among those of Poise's and without an action; the source by assigning its action.
"""

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ...controller.exceptions import BakeError
from ..blender import compat
from . import bake_marks, source_values

if TYPE_CHECKING:
    import bpy

#: (action, slot) of `bpy.types`; the slot is None where Blender has none, both are without action.
Animation = tuple[Any, Any]

#: What a mark notes: the looks of the bake's own track, and of that of its source ("" without).
NOTES = ("strip", "stash")

_LOOKS = (
    "name",
    "action_frame_start",
    "action_frame_end",
    "scale",
    "repeat",
    "influence",
    "blend_type",
    "blend_in",
    "blend_out",
    "extrapolation",
    "mute",
    "use_reverse",
    "use_animated_influence",
    "use_animated_time",
)


def check(
    armature: "bpy.types.Object",
    source: "bpy.types.Action | None",
    slot: "bpy.types.ActionSlot | None",
) -> None:
    """Raise BakeError if a bake of (source, slot) would not show as it is on a strip."""
    animation = armature.animation_data
    why = source_values.why_not(animation, (source, slot)) if animation is not None else ""
    if why:
        raise BakeError(
            f"'{armature.name}' would not move on an NLA strip as it does by its action: {why}. "
            "Mend that, or bake to an action."
        )


# Tracks -----------------------------------------------------------------------------------------


def _tracks(thing: "bpy.types.Object") -> "list[bpy.types.NlaTrack]":
    animation = thing.animation_data
    return [] if animation is None else list(animation.nla_tracks)


def _looks(track: "bpy.types.NlaTrack") -> str | None:
    """A short text of all that people change of a track with one strip, but for its place; None of
    other tracks."""
    if len(track.strips) != 1:
        return None
    strip = track.strips[0]
    looks = [getattr(strip, name) for name in _LOOKS]
    return json.dumps([track.name, *map(_rounded, looks), len(strip.modifiers)])


def _rounded(value: Any) -> Any:
    """A value as it is after a strip was moved, too, which counts its scale anew."""
    return round(value, 3) if isinstance(value, float) else value


def _own(
    thing: "bpy.types.Object",
) -> "list[tuple[bpy.types.NlaTrack, tuple, dict[str, Any] | None]]":
    """(track, (action, slot), mark) of each of Poise's tracks, the lowest first; the mark is None
    for that of a source."""
    tracks = [(track, _looks(track)) for track in _tracks(thing)]
    found, stashes = [], []
    for track, looks in tracks:
        pair = compat.of_strip(track.strips[0]) if looks else (None, None)
        mark = bake_marks.mark_of(*pair) if pair[0] else None
        if mark is not None and mark.get("strip") == looks:
            found.append((track, pair, mark))
            stashes.append((bake_marks.source_of(mark), mark["stash"]))
    sources = [
        (track, compat.of_strip(track.strips[0]), None)
        for track, looks in tracks
        if looks and (compat.of_strip(track.strips[0]), looks) in stashes
    ]
    return sources + found


def _find(
    thing: "bpy.types.Object",
    pair: Animation,
    looks: str,
) -> "bpy.types.NlaTrack | None":
    """The track that plays (action, slot) and looks like that; None if there is none."""
    alike = (track for track in _tracks(thing) if looks and _looks(track) == looks)
    return next((track for track in alike if compat.of_strip(track.strips[0]) == pair), None)


def is_edited(thing: "bpy.types.Object", action: "bpy.types.Action", mark: dict[str, Any]) -> bool:
    """Whether somebody has changed the strip of a bake, so that it is theirs now."""
    pair = action, compat.find_slot(action, mark["slot"])
    if not mark.get("strip") or _find(thing, pair, mark["strip"]) is not None:
        return False
    return pair in _played(thing)


def _played(thing: "bpy.types.Object", but: "bpy.types.NlaTrack | None" = None) -> list[tuple]:
    """(action, slot) of all strips of an object. but: a track to leave out."""
    return [compat.of_strip(strip) for strip in _strips(thing, but)]


def _strips(
    thing: "bpy.types.Object", but: "bpy.types.NlaTrack | None" = None
) -> "Iterable[bpy.types.NlaStrip]":
    tracks = [track for track in _tracks(thing) if track != but]
    return source_values.nested(strip for track in tracks for strip in track.strips)


def replace_slot(
    action: "bpy.types.Action",
    old: "bpy.types.ActionSlot",
    new: "bpy.types.ActionSlot | None",
) -> None:
    """Let all that one slot of an action animates be animated by another one."""
    for thing in old.users():
        if compat.assigned(thing) == (action, old):
            compat.assign(thing, action, new)
        for strip in _strips(thing):
            if compat.of_strip(strip) == (action, old):
                strip.action_slot = new


# Showing ----------------------------------------------------------------------------------------


def shown(thing: "bpy.types.Object", muted: bool = False) -> Animation:
    """The (action, slot) that animates an object: its action, or what Poise's tracks play of bakes
    and their source. muted: or would play, if all of them are muted."""
    pair = compat.assigned(thing)
    if pair[0] is not None:
        return pair
    own = _own(thing)
    heard = [track for track in own if not track[0].mute]
    played = heard or (own if muted else [])
    return played[-1][1] if played else pair


def read_of(
    thing: "bpy.types.Object",
) -> Animation:
    """The (action, slot) that is read of an object: what it is shown, or, if nothing is heard at
    all, what Poise's tracks would play."""
    return shown(thing, muted=not source_values.heard(thing.animation_data))


def assign(
    thing: "bpy.types.Object",
    action: "bpy.types.Action | None",
    slot: "bpy.types.ActionSlot | None",
) -> None:
    """Let (action, slot) animate an object by itself, with none of Poise's tracks heard: so sources
    are read and baked from, also one that is a bake and has a strip."""
    for track, _, _ in _own(thing):
        track.mute = True
    if compat.assigned(thing) != (action, slot):
        compat.assign(thing, action, slot)


def mutes(thing: "bpy.types.Object") -> list[bool]:
    """Which tracks of an object are muted, from the lowest."""
    return [track.mute for track in _tracks(thing)]


def set_mutes(thing: "bpy.types.Object", muted: Sequence[bool]) -> None:
    """Mute the tracks that were muted, and no others. muted: as `mutes` gave them."""
    for track, mute in zip(_tracks(thing), muted, strict=False):
        if track.mute != mute:
            track.mute = mute


def show(
    thing: "bpy.types.Object", action: "bpy.types.Action", slot: "bpy.types.ActionSlot | None"
) -> None:
    """Let (action, slot) animate an object: by its strip if it is a bake that has one."""
    own = _own(thing)
    for track, pair, mark in own:
        track.mute = mark is None or pair != (action, slot)
    strip = any(not track.mute for track, _, _ in own)
    compat.assign(thing, *((None, None) if strip else (action, slot)))


# Writing ----------------------------------------------------------------------------------------


def place(
    scene: "bpy.types.Scene",
    armature: "bpy.types.Object",
    source: Animation,
    baked: Animation,
) -> None:
    """Put a bake that is finished on a strip, in place of that of the bake that it replaces and
    moved as that was, else over those of other bakes; and show it.

    source, baked: (action, slot); no source where NLA strips are what was baked.
    """
    mark = bake_marks.mark_of(*baked)
    name = bake_marks.take_of(mark) or baked[0].name
    track, stash = _find(armature, baked, mark.get("strip")), mark.get("stash")
    if track is None:
        below, stash = _stashed(scene, armature, source)
        track = _new_track(armature, name, below)
    elif stash:
        stash = _refreshed(scene, armature, source) or stash
    looks = _fill(scene, armature, track, name, baked)
    track.mute = False
    bake_marks.change(*baked, strip=looks, stash=stash)
    show(armature, *baked)


def _stashed(
    scene: "bpy.types.Scene",
    armature: "bpy.types.Object",
    source: Animation,
) -> "tuple[bpy.types.NlaTrack | None, str]":
    """The track that has a source as it is, and how that looks, "" unless it is Poise's; which is
    made if there is none: (None or track, looks)."""
    if not compat.curves(*source):
        return None, ""
    looks = _refreshed(scene, armature, source)
    if looks is not None:
        return None, looks
    track = _new_track(armature, source[0].name)
    track.mute = True
    return track, _fill(scene, armature, track, source[0].name, source)


def _refreshed(
    scene: "bpy.types.Scene",
    armature: "bpy.types.Object",
    source: Animation,
) -> str | None:
    """How the track that has a source looks, "" unless it is Poise's, with all frames that it has
    by now; None without one."""
    own = [(track, mark) for track, pair, mark in _own(armature) if pair == source]
    if any(mark is not None for _, mark in own):  # a bake with a strip of its own
        return _looks(own[0][0])
    if own:
        return _fill(scene, armature, own[0][0], source[0].name, source)
    played = [compat.of_strip(track.strips[0]) for track in _tracks(armature) if _looks(track)]
    return "" if source in played else None


def _new_track(
    armature: "bpy.types.Object", name: str, below: "bpy.types.NlaTrack | None" = None
) -> "bpy.types.NlaTrack":
    """A new track over another one, or over the highest of Poise's and so under those that others
    have put over that; over all without."""
    own = [track for track, _, _ in _own(armature)]
    tracks = [track for track in _tracks(armature) if track in own]
    below = below or (tracks[-1] if tracks else None)
    track = armature.animation_data.nla_tracks.new(prev=below)
    track.name = name
    return track


def _fill(
    scene: "bpy.types.Scene",
    armature: "bpy.types.Object",
    track: "bpy.types.NlaTrack",
    name: str,
    pair: Animation,
) -> str:
    """Let a track have one strip, which plays (action, slot) exactly as the action would, as much
    later as the one before was moved -> how it looks then, which bakes that have their source on it
    note, too."""
    before, own, moved = _looks(track), _own(armature), 0.0
    for strip in list(track.strips):
        moved = strip.frame_start - strip.action_frame_start
        track.strips.remove(strip)
    action, slot = pair
    first, last = _span(scene, pair)
    strip = track.strips.new(name, int(first + moved), action)
    if compat.HAS_SLOTS:
        strip.action_slot = slot
    strip.action_frame_start, strip.action_frame_end = first, last
    strip.frame_start, strip.frame_end = first + moved, last + moved
    strip.extrapolation = armature.animation_data.action_extrapolation
    strip.use_auto_blend = strip.use_sync_length = False
    looks = _looks(track)
    assert looks is not None  # as of all tracks with one strip
    for _, baked, mark in own:
        if before and mark is not None and mark["stash"] == before:
            bake_marks.change(*baked, stash=looks)
    return looks


def _span(scene: "bpy.types.Scene", pair: Animation) -> tuple[float, float]:
    """First and last frame of a strip: those of the keys, and of the scene for what goes on."""
    curves = compat.curves(*pair)
    frames = [frame for curve in curves for frame in curve.range()]
    if any(curve.modifiers or curve.extrapolation == "LINEAR" for curve in curves):
        frames += [scene.frame_start, scene.frame_end]
    return min(frames), max(max(frames), min(frames) + 1)


def lowest(armature: "bpy.types.Object") -> int | None:
    """Index among all tracks of the lowest that has a bake of Poise's; None without."""
    baked = [track for track, _, mark in _own(armature) if mark is not None]
    return next((i for i, track in enumerate(_tracks(armature)) if track in baked), None)


def remove(
    armature: "bpy.types.Object",
    baked: Animation,
) -> None:
    """Take away the strip of a bake (action, slot), if it has one, with its track, and that of its
    source with the last one."""
    mark = bake_marks.mark_of(*baked)
    if "strip" not in mark:
        return
    track, stash = _find(armature, baked, mark["strip"]), mark["stash"]
    bake_marks.change(*baked, strip=None, stash=None)
    if track is None:
        return
    tracks = armature.animation_data.nla_tracks
    tracks.remove(track)
    left = [one[note] for _, _, one in _own(armature) if one is not None for note in NOTES]
    stashed = _find(armature, bake_marks.source_of(mark), stash)
    if stashed is not None and stash not in left:
        tracks.remove(stashed)


def is_shared(
    armature: "bpy.types.Object",
    baked: Animation,
) -> bool:
    """Whether a bake (action, slot) has other users than its armature's action and its strip; so
    has one that is the source of another bake."""
    (action, slot), mark = baked, bake_marks.mark_of(*baked)
    own = _find(armature, baked, mark.get("strip"))
    if mark["whole"]:
        uses = (compat.assigned(armature) == baked) + (own is not None)
        return action.users - action.use_fake_user > uses
    others = any(one != armature for one in slot.users())
    return others or baked in _played(armature, own) or bake_marks.is_source(*baked)


def over(
    armature: "bpy.types.Object",
    baked: Animation,
) -> tuple[str, ...]:
    """Names of tracks over that of a bake which also animate what it does."""
    mark = bake_marks.mark_of(*baked)
    own = _find(armature, baked, mark.get("strip"))
    if own is None:
        return ()
    tracks = _tracks(armature)
    keyed = _paths(baked)
    return tuple(
        track.name
        for track in tracks[tracks.index(own) + 1 :]
        if not track.mute
        and any(not s.mute and keyed & _paths(compat.of_strip(s)) for s in track.strips)
    )


def _paths(
    pair: Animation,
) -> set[tuple[str, int]]:
    return {(curve.data_path, curve.array_index) for curve in compat.curves(*pair)}

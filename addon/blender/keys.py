# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys for dense channels: which samples to keep, and writing them fast."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from . import compat
from .pose import rotation_matrices

if TYPE_CHECKING:
    import bpy

#: Blender's numbers for the interpolations and handle types that are written.
INTERPOLATIONS = {"CONSTANT": 0, "LINEAR": 1, "BEZIER": 2}
ALIGNED = 3


@dataclass
class Track:
    """The sampled values of one property that is keyed as a whole.

    path: data path of the property. group: of its curves.
    frames: (n,) of the samples; values: (n, width).
    kind: "LOCATION", "SCALE", "CONSTANT" or a rotation mode.
    reach: how far [scene units] a unit of change in the property moves a joint at most: per
        radian for a rotation, per channel unit for the others. For simplifying.
    """

    path: str
    group: str
    frames: np.ndarray
    values: np.ndarray
    kind: str
    reach: float = 0.0


def slopes(track: Track) -> np.ndarray:
    """(n, width) slopes per frame through each sample: those of a parabola through three."""
    if len(track.frames) < 2:
        return np.zeros_like(track.values)
    order: Literal[1, 2] = 2 if len(track.frames) > 2 else 1
    return np.gradient(track.values, track.frames, axis=0, edge_order=order)


def write(
    holder: "bpy.types.ActionChannelbag | bpy.types.Action",
    tracks: Sequence[Track],
    kept: Sequence[np.ndarray],
    interpolation: str,
) -> Generator[float, None, tuple[int, int]]:
    """Write the kept samples of the tracks as keys, into `compat.channels(…)`; yields the progress.

    kept: for each track the indices of the samples to key.
    Curves that exist are emptied and used again, so that they stay in their groups.
    Returns the numbers of curves and of keys.
    """
    existing = {(curve.data_path, curve.array_index): curve for curve in holder.fcurves}
    curves = keys = 0
    for number, (track, chosen) in enumerate(zip(tracks, kept, strict=True)):
        yield number / len(tracks)
        kind = "CONSTANT" if track.kind == "CONSTANT" else interpolation
        settings = _settings(len(chosen), kind)
        for index, points in enumerate(_points(track, chosen, kind)):
            curve = existing.get((track.path, index))
            if curve is None:
                curve = compat.new_curve(holder, track.path, index, track.group)
            else:
                _empty(curve)
            curve.keyframe_points.add(len(chosen))
            for attribute, values in (*points.items(), *settings.items()):
                curve.keyframe_points.foreach_set(attribute, values)
            curves += 1
            keys += len(chosen)
    holder.id_data.update_tag()
    return curves, keys


def replace(curve: "bpy.types.FCurve", times: np.ndarray, values: np.ndarray) -> None:
    """Have (n,) values at (n,) times in a curve, lines between them, and nothing else."""
    _empty(curve)
    track = Track(curve.data_path, "", times, values[:, None], "CONSTANT")
    chosen = distinct(track, "LINEAR")
    curve.keyframe_points.add(len(chosen))
    for part in (_points(track, chosen, "LINEAR")[0], _settings(len(chosen), "LINEAR")):
        for attribute, numbers in part.items():
            curve.keyframe_points.foreach_set(attribute, numbers)
    curve.update()


def _empty(curve: "bpy.types.FCurve") -> None:
    """Leave nothing in a curve that is used again."""
    curve.keyframe_points.clear()
    for modifier in list(curve.modifiers):
        curve.modifiers.remove(modifier)
    curve.mute = False
    curve.extrapolation = "CONSTANT"


def _settings(count: int, interpolation: str) -> dict[str, np.ndarray]:
    """{attribute: (count,) numbers of Blender's} of the keys of a curve."""
    settings = {"interpolation": np.full(count, INTERPOLATIONS[interpolation], np.int32)}
    if interpolation == "BEZIER":
        aligned = np.full(count, ALIGNED, np.int32)
        settings |= {"handle_left_type": aligned, "handle_right_type": aligned}
    return settings


def _points(track: Track, chosen: np.ndarray, interpolation: str) -> list[dict[str, np.ndarray]]:
    """For each curve of a track {attribute: (2 n,) flat times and values} of its keys and handles.

    The handles are written too: Blender's own update of them takes longer than all the rest.
    Those of a Bezier reach a third of the way to the neighbours, so that the curve is a cubic in
    time with the given slopes; the others wait at their keys.
    """
    frames, values = track.frames[chosen], track.values[chosen].T
    points = np.empty((3, len(values), len(frames), 2), np.float32)
    points[..., 0], points[..., 1] = frames, values
    if interpolation == "BEZIER" and len(frames) > 1:
        slope, gaps = slopes(track)[chosen].T, np.diff(frames) / 3
        steps = -np.append(gaps[:1], gaps), np.append(gaps, gaps[-1:])
        for handles, step in zip(points[1:], steps, strict=True):
            handles[..., 0] += step
            handles[..., 1] += slope * step
    flat = points.reshape(3, len(values), -1)
    return [
        {"co": flat[0, i], "handle_left": flat[1, i], "handle_right": flat[2, i]}
        for i in range(len(values))
    ]


def distinct(track: Track, interpolation: str) -> np.ndarray:
    """Indices of samples whose keys lose nothing: without those between two that are the same."""
    values = track.values.astype(np.float32)
    kept = np.ones(len(values), bool)
    if interpolation != "BEZIER":  # whose slopes would bend what is still
        same = (values[1:] == values[:-1]).all(1)
        kept[1:-1] = ~(same[1:] & same[:-1])
    return np.flatnonzero(kept)


def simplified(track: Track, tolerance: float, interpolation: str) -> np.ndarray:
    """Indices of samples whose keys reproduce a track: no joint moves by more than `tolerance`.

    tolerance: in scene units. Splits where the error is largest, as Ramer, Douglas and Peucker do.
    """
    last = len(track.frames) - 1
    if last == 0:
        return np.zeros(1, int)
    slope = slopes(track)
    kept, open_spans = {0, last}, [(0, last)]
    while open_spans:
        start, end = open_spans.pop()
        if end - start < 2:
            continue
        error = _error(track, _between(track, slope, start, end, interpolation), start, end)
        worst = int(np.argmax(error))
        if error[worst] <= tolerance:
            continue
        middle = start + 1 + worst
        kept.add(middle)
        open_spans += [(start, middle), (middle, end)]
    return np.array(sorted(kept))


def _between(
    track: Track, slope: np.ndarray, start: int, end: int, interpolation: str
) -> np.ndarray:
    """Values at the samples between two keys, as Blender will interpolate them."""
    first, second = track.values[start], track.values[end]
    if interpolation == "CONSTANT":
        return np.broadcast_to(first, (end - start - 1, len(first)))
    span = track.frames[end] - track.frames[start]
    t = ((track.frames[start + 1 : end] - track.frames[start]) / span)[:, None]
    if interpolation == "LINEAR":
        return first + t * (second - first)
    h = t * t * (3 - 2 * t)
    return (
        first * (1 - h)
        + second * h
        + span * (slope[start] * t * (1 - t) ** 2 - slope[end] * t * t * (1 - t))
    )


def _error(track: Track, values: np.ndarray, start: int, end: int) -> np.ndarray:
    """How far each interpolated sample moves a joint, at most [scene units]."""
    wanted = track.values[start + 1 : end]
    if track.kind in ("LOCATION", "SCALE"):
        return track.reach * np.linalg.norm(values - wanted, axis=1)
    difference = rotation_matrices(track.kind, values) - rotation_matrices(track.kind, wanted)
    # |A - B| (Frobenius) is 2 sqrt(2) sin(angle / 2).
    chord = np.linalg.norm(difference, axis=(1, 2)) / (2 * np.sqrt(2))
    return track.reach * 2 * np.arcsin(np.clip(chord, 0, 1))

# SPDX-License-Identifier: GPL-3.0-or-later
"""Sok, Kim, Lee's figure 7 as a picture: stick figures of what was captured and what became of it.

Each clip is a row, each column shows the same moments from left to right, seen from the side on
which most can be seen. Figures are set apart by the same distance, however far the clip travels;
simulated ones are as far off those captured as they are in truth.
"""

import numpy as np

from ..addon.plots.limit_plot import _ON_PAPER, _write, png
from ..addon.plots.tuning_plot import _blend, _cover_segment
from ..controller.geometry.rotations import matrix_from_quaternion
from ..controller.geometry.skeleton import SEGMENT_INDEX, SIDES

COLUMNS = ("captured", "rectified and simulated", "captured and simulated")
MOMENTS = 8

#: Points of a figure: three in the middle, then eight of each side.
_MIDDLE = ("pelvis", "head", "face")
_LIMBS = ("upper_arm", "forearm", "hand", "thigh", "shin", "foot", "heel", "toe")
_POINTS = [*_MIDDLE, *(f"{name}_{side}" for side in SIDES for name in _LIMBS)]
_AT = {name: i for i, name in enumerate(_POINTS)}
#: Lines of a figure, by colour: pairs of points.
_TRUNK = (("pelvis", "head"), ("upper_arm_l", "upper_arm_r"), ("thigh_l", "thigh_r"))
_SIDE = (
    ("upper_arm", "forearm"),
    ("forearm", "hand"),
    ("thigh", "shin"),
    ("shin", "foot"),
    ("foot", "heel"),
    ("heel", "toe"),
    ("foot", "toe"),
)
_COLOURS = {"l": (0.80, 0.24, 0.16), "r": (0.15, 0.42, 0.78), "trunk": (0.16, 0.17, 0.19)}

_METRE = 60.0  # pixels
_APART = 0.62  # [m] from one moment to the next
_WIDE, _HIGH = (MOMENTS + 1.6) * _APART, 2.55  # [m] of a cell
_HEADING = 44  # pixels
_LINE = 1.7
_HEAD = 0.09  # [m]
_LYING = 0.1  # [m] of the pelvis above the floor
_SHADES = 15  # of a colour channel: more make the file larger, not the picture better


def figures(problem, rectified, balanced):
    """{column: (m, points, 2)} nested lists of the moments in each column, in metres: to the right
    of the first captured figure, and above the floor. There are fewer where a Recording ends."""
    reference, rate = problem.reference, problem.motion.rate
    body, raw = problem.character, reference.raw
    at = np.linspace(0, len(raw.joints) - 1, MOMENTS).round().astype(int)
    captured = _points(body, raw.joints, raw.frames, raw.centres)
    side = _side(captured)
    origins = captured[at, 0, :2] @ side
    result = {}
    for column, points in (
        (COLUMNS[0], captured),
        (COLUMNS[1], _recorded(body, rectified)),
        (COLUMNS[2], _recorded(body, balanced)),
    ):
        # A fallen body sinks into the floor, which only its feet feel.
        low = np.flatnonzero(points[:, 0, 2] < body.ground + _LYING)
        there = at < (low[0] if len(low) else len(points))
        flat = np.stack([points[..., :2] @ side, points[..., 2] - body.ground], -1)[at[there]]
        flat[..., 0] += (np.arange(MOMENTS) * _APART - origins)[there, None]
        result[column] = flat.round(3).tolist()
    return {"seconds": (at / rate).round(2).tolist()} | result


def _recorded(body, recording):
    frames = matrix_from_quaternion(recording.body_rotations)
    return _points(body, recording.joints(), frames, recording.body_positions)


def _points(body, joints, frames, centres):
    """(F, points, 3) of the figures."""
    index = SEGMENT_INDEX
    corners = body.sole_corners(joints, frames)
    ends = np.stack([corners[:, :, :2].mean(2), corners[:, :, 2:].mean(2)], 2)
    result = [joints[:, index["pelvis"]], joints[:, index["head"]], centres[:, index["head"]]]
    for number, side in enumerate(SIDES):
        named = {name: joints[:, index[f"{name}_{side}"]] for name in _LIMBS if _is_joint(name)}
        forearm = named["forearm"]
        # The forearm's mass is in its middle, that of the hand included.
        named["hand"] = forearm + 1.8 * (centres[:, index[f"forearm_{side}"]] - forearm)
        named["heel"], named["toe"] = ends[:, number, 0], ends[:, number, 1]
        result += [named[name] for name in _LIMBS]
    return np.stack(result, 1)


def _is_joint(name):
    return f"{name}_l" in SEGMENT_INDEX


def _side(points):
    """(2,) horizontal direction to the right in the picture: that in which the clip travels, or
    else in which the limbs move most."""
    travel = points[-1, 0, :2] - points[0, 0, :2]
    if np.linalg.norm(travel) > 1.0:
        return travel / np.linalg.norm(travel)
    apart = (points - points[:, :1])[..., :2]
    apart = (apart - apart.mean(0)).reshape(-1, 2)
    return np.linalg.eigh(apart.T @ apart)[1][:, 1]


# --- Drawing -------------------------------------------------------------------------------------


def picture(rows):
    """(height, width, 4) from {clip: what `figures` gave}, from the bottom up."""
    wide, high = round(_WIDE * _METRE), round(_HIGH * _METRE)
    shape = len(rows) * high + _HEADING, len(COLUMNS) * wide
    # The tools draw squares.
    paper = np.ones((max(shape), max(shape), 4))
    covers = {name: np.zeros(paper.shape[:2]) for name in (*_COLOURS, "floor")}
    for row, figure in enumerate(rows.values()):
        for column, name in enumerate(COLUMNS):
            floor = shape[0] - _HEADING - (row + 1) * high + 0.3 * _METRE
            left = column * wide
            ends = np.array([[left + 8, floor], [left + wide - 8, floor]])
            _cover_segment(covers["floor"], *ends, 0.5)
            for points in np.array(figure[name], float).reshape(-1, len(_POINTS), 2):
                _figure(covers, points * _METRE + [left + 0.9 * _APART * _METRE, floor])
    for name, colour in {"floor": (0.6, 0.6, 0.6), **_COLOURS}.items():
        _blend(paper, covers[name], colour, 1.0)
    for column, name in enumerate(COLUMNS):
        at = ((column + 0.5) * wide, shape[0] - 0.6 * _HEADING)
        _write(paper, name, at, 19, _ON_PAPER.text, "CENTER")
    for row, (clip, figure) in enumerate(rows.items()):
        low = shape[0] - _HEADING - (row + 1) * high + 5
        words = f"{clip.replace('_', ' ')}, {figure['seconds'][-1]:.1f} s"
        _write(paper, words, (10, low), 14, _ON_PAPER.mean, "LEFT")
    return paper[: shape[0], : shape[1]]


#: Of strips: pixels of a metre, [m] from one moment to the next, height [m], pixels of words.
_STRIP_METRE, _STRIP_APART, _STRIP_HIGH, _STRIP_WORDS = 55.0, 1.0, 2.1, 22


def strip(rows, moments=14):
    """(height, width, 4) of recordings over time, each moment a step to the right. rows: {words:
    (recording, first sample, last sample, direction (2,) to the right)}, from the top down."""
    metre, apart = _STRIP_METRE, _STRIP_APART
    wide = round((moments * apart + 0.9) * metre)
    high = round(_STRIP_HIGH * metre) + _STRIP_WORDS
    size = max(wide, high * len(rows))
    paper = np.ones((size, size, 4))
    covers = {name: np.zeros((size, size)) for name in (*_COLOURS, "floor")}
    for row, (recording, first, last, right) in enumerate(rows.values(), 1):
        body, floor = recording.character, size - row * high + 8
        points = _recorded(body, recording)
        ends = np.array([[4, floor], [wide - 4, floor]])
        _cover_segment(covers["floor"], *ends, 0.5)
        for number, sample in enumerate(np.linspace(first, last, moments).round().astype(int)):
            there = points[sample]
            along = there[:, :2] @ right - there[0, :2] @ right + (number + 0.8) * apart
            flat = np.stack([along, there[:, 2] - body.ground], -1) * metre
            _figure(covers, flat + [0, floor], metre)
    for name, colour in {"floor": (0.6, 0.6, 0.6), **_COLOURS}.items():
        _blend(paper, covers[name], colour, 1.0)
    for row, words in enumerate(rows, 1):
        at = (8, size - (row - 1) * high - _STRIP_WORDS + 4)
        _write(paper, words, at, 14, _ON_PAPER.mean, "LEFT")
    return paper[size - len(rows) * high :, :wide]


def _figure(covers, points, metre=_METRE):
    """Add a figure of points (n, 2) [pixels] to the covers of its colours."""

    def line(colour, start, end):
        _cover_segment(covers[colour], points[_AT[start]], points[_AT[end]], _LINE / 2)

    for start, end in _TRUNK:
        line("trunk", start, end)
    for side in SIDES:
        for start, end in _SIDE:
            line(side, f"{start}_{side}", f"{end}_{side}")
    face = points[_AT["face"]]
    _cover_segment(covers["trunk"], face, face, _HEAD * metre)


def save(pixels, path):
    """Write a picture as PNG."""
    path.write_bytes(png(np.round(pixels * _SHADES) / _SHADES))

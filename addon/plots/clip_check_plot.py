# SPDX-License-Identifier: GPL-3.0-or-later
"""What a clip asks of a body over time, as a picture: for a panel, and as a PNG.

A strip for each measure, the part beyond its limit filled; below them, when the feet stand. Faults
go through all strips as bands.
"""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ...controller.checks.clip_check import LIMITS, MEASURES, ClipCheck
from ...controller.geometry.stance import LEFT, RIGHT
from .limit_plot import _ON_PAPER, SIZE, _lines, _paper, _write
from .tuning_plot import Colours, _between, _blend, _icon, colours

if TYPE_CHECKING:
    import bpy

#: Strips from the top.
STRIPS = tuple(MEASURES)
_FLOOR = 0.7  # of a strip, for the bars of the feet
#: A strip ends at this many times its limit, however far beyond the clip goes.
_TOP = 2.5
_FRAMES = [f * 10**i for i in range(6) for f in (1, 2, 5)]
_MARKS = 8  # frame numbers at most


def panel_icon(context: "bpy.types.Context", found: ClipCheck, rows: float) -> int:
    """The strips alone as an icon for `template_icon(scale=rows)`, in the theme's colours."""
    palette = colours(context)
    size = max(32, round(rows * 20 * context.preferences.system.ui_scale))

    def draw() -> np.ndarray:
        result = _paper(size, palette)
        strips(result, found, palette, (0.02 * size, 0.01 * size, 0.96 * size, 0.98 * size))
        return result

    facts = (size, palette, found.clip, id(found))
    return _icon("check", facts, draw)


def picture(found: ClipCheck) -> np.ndarray:
    """(SIZE, SIZE, 4) with title, labels and frame numbers, from the bottom up."""
    palette = _ON_PAPER
    result = _paper(SIZE, palette)
    left, bottom, width, _ = box = (0.055 * SIZE, 0.075 * SIZE, 0.91 * SIZE, 0.80 * SIZE)
    places = strips(result, found, palette, box)
    for name, (low, high) in zip(STRIPS, places, strict=False):
        label, unit = MEASURES[name]
        text = f"{label} [{unit}]" if unit else label
        _write(result, text, (left + 8, high - 24), 20, palette.text, "LEFT", palette.ground)
        base, top = scale_of(found, name)
        limits = np.atleast_1d(LIMITS[name])
        for limit in limits:
            y = low + (high - low) * (limit - base) / (top - base)
            _write(result, f"{limit:g}", (left + width - 52, y + 5), 17, palette.target, "LEFT")
    low, high = places[-1]
    for foot, share in (("left foot stands", 0.62), ("right foot stands", 0.12)):
        at = (left + 8, low + share * (high - low))
        _write(result, foot, at, 17, palette.text, "LEFT", palette.ground)
    for frame, x in _frame_marks(found, left, width):
        _write(result, f"{frame:g}", (x, bottom - 24), 20, palette.mean, "CENTER")
    _write(result, "frame", (left + width / 2, bottom - 56), 20, palette.mean, "CENTER")
    _write(result, found.clip, (left, SIZE - 58), 40, palette.text, "LEFT")
    _write(result, _shortened(found.verdict), (left, SIZE - 98), 24, palette.text, "LEFT")
    legend = "orange: beyond the limit; red: what no body can do"
    _write(result, legend, (left, SIZE - 132), 18, palette.mean, "LEFT")
    return result


def _shortened(text: str, longest: int = 95) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def scale_of(found: ClipCheck, name: str) -> tuple[float, float]:
    """What the lower and the upper edge of a strip mean."""
    limits = np.atleast_1d(LIMITS[name]).astype(float)
    values = found.measures[name]
    values = values[np.isfinite(values)]
    most = max(1.6 * limits.max(), min(values.max(initial=0.0), _TOP * limits.max()))
    least = min(0.0, 1.3 * limits.min()) if len(limits) > 1 else 0.0
    return least, most


def strips(
    result: np.ndarray, found: ClipCheck, palette: Colours, box: tuple[float, float, float, float]
) -> list[tuple[float, float]]:
    """Draw all strips into a box (left, bottom, width, height). Returns [(bottom, top), …] of
    them, the bars of the feet at the end."""
    left, bottom, width, height = box
    size = len(result)
    each = height / (len(STRIPS) + _FLOOR)
    places = [
        (bottom + height - (i + 1) * each + 0.06 * each, bottom + height - i * each - 0.06 * each)
        for i in range(len(STRIPS))
    ]
    places.append((bottom, bottom + _FLOOR * each - 0.06 * each))
    x = _across(found, left, width)
    for finding in found.faults:
        begin, end = np.interp(finding.frames, found.frames, x)
        _blend(
            result, _block(size, begin - 1.5, end + 1.5, bottom, bottom + height), (1, 0, 0), 0.2
        )
    for name, place in zip(STRIPS, places, strict=False):
        _draw_strip(result, found, palette, name, x, place)
    for bit, (low, high) in ((LEFT, (0.55, 0.95)), (RIGHT, (0.05, 0.45))):
        _draw_stance(result, found, palette, bit, x, places[-1], (low, high))
    return places


def _across(found: ClipCheck, left: float, width: float) -> np.ndarray:
    """(F,) where each sample is."""
    return left + width * np.linspace(0, 1, len(found.frames))


def _block(size: int, left: float, right: float, bottom: float, top: float) -> np.ndarray:
    """Cover (size, size) of a rectangle."""
    return _between(size, np.array([left, right]), np.full(2, bottom), np.full(2, top))


def _draw_strip(
    result: np.ndarray,
    found: ClipCheck,
    palette: Colours,
    name: str,
    x: np.ndarray,
    place: tuple[float, float],
) -> None:
    """One measure: its limits, its curve, and what is beyond."""
    size, (low, high) = len(result), place
    base, top = scale_of(found, name)
    pixel = max(1.0, size / 600)

    def y(value: float | np.ndarray) -> np.ndarray:
        return low + (high - low) * (np.clip(value, base, top) - base) / (top - base)

    _blend(result, _block(size, x[0], x[-1], low, high), palette.text, 0.06)
    columns, values = _columns(x, found.measures[name])
    for limit in np.atleast_1d(LIMITS[name]):
        line = [np.array([x[0], y(limit)]), np.array([x[-1], y(limit)])]
        _blend(result, _lines(size, line, pixel), palette.target, 0.9)
    for part in _stretches(values):
        at, height = columns[part], y(values[part])
        if len(part) < 2:
            at, height = at[0] + np.array([-0.5, 0.5]), np.repeat(height, 2)
        zero = np.full(len(at), y(0.0))
        _blend(
            result,
            _between(size, at, np.minimum(zero, height), np.maximum(zero, height)),
            palette.best,
            0.35,
        )
        edge = np.atleast_1d(LIMITS[name])
        over = _between(size, at, np.minimum(y(edge[-1]), height), height)
        _blend(result, over, palette.target, 0.75)
        if len(edge) > 1:
            _blend(
                result,
                _between(size, at, height, np.maximum(y(edge[0]), height)),
                palette.target,
                0.75,
            )
        points = np.stack([at, height], 1)
        _blend(result, _lines(size, points, 1.4 * pixel), palette.best, 1.0)


def _columns(x: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Curve with no more points than pixels: (n,) places and the largest size of value there."""
    count = max(2, round(x[-1] - x[0]))
    if len(x) <= count:
        return x, values
    at = np.linspace(0, len(x), count + 1).astype(int)
    sizes = np.nan_to_num(np.abs(values), nan=-1.0)
    worst = [start + int(np.argmax(sizes[start:stop])) for start, stop in itertools.pairwise(at)]
    return x[worst], values[worst]


def _stretches(values: np.ndarray) -> list[np.ndarray]:
    """Indices of each stretch of finite values."""
    finite = np.flatnonzero(np.isfinite(values))
    return np.split(finite, np.flatnonzero(np.diff(finite) > 1) + 1) if len(finite) else []


def _draw_stance(
    result: np.ndarray,
    found: ClipCheck,
    palette: Colours,
    bit: int,
    x: np.ndarray,
    place: tuple[float, float],
    part: tuple[float, float],
) -> None:
    """A bar where a foot stands."""
    low, high = (place[0] + share * (place[1] - place[0]) for share in part)
    _blend(result, _block(len(result), x[0], x[-1], low, high), palette.text, 0.06)
    stands = ((found.stance & bit) > 0).astype(float)
    columns, values = _columns(x, stands)
    cover = np.interp(np.arange(len(result)) + 0.5, columns, values, left=0, right=0)[None] > 0.5
    rows = (np.arange(len(result)) >= low) & (np.arange(len(result)) < high)
    _blend(result, cover * rows[:, None], palette.best, 0.7)


def _frame_marks(found: ClipCheck, left: float, width: float) -> Iterator[tuple[float, float]]:
    """(frame, where) of some round frames."""
    first, last = found.frames[0], found.frames[-1]
    step = next(step for step in _FRAMES if (last - first) / step <= _MARKS)
    for frame in np.arange(np.ceil(first / step) * step, last + 0.5 * step, step):
        if frame <= last:
            yield frame, left + width * (frame - first) / (last - first)

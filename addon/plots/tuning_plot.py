# SPDX-License-Identifier: GPL-3.0-or-later
"""The rewards of a search over its generations, as a picture for a panel.

A panel can show text and square pictures, nothing else: here is a picture of the curves alone, in
the colours of the theme. The numbers beside its axes are the panel's.
"""

import itertools
from dataclasses import dataclass

import bpy
import bpy.utils.previews
import numpy as np

#: The largest reward.
TOP = 2.0
#: Blender leaves so much around a picture [pixels].
_PAD = 4
#: Width of a curve [pixels of a standard screen], and up to how many points get dots.
_LINE, _DOTS = 1.8, 24
#: Generations to have room for at first.
_FIRST = 5

_pictures = None
_drawn = {}


@dataclass(frozen=True)
class Colours:
    """Red, green, blue from 0 to 1, as on the screen."""

    ground: tuple
    text: tuple
    best: tuple
    mean: tuple
    target: tuple


def colours(context):
    """Those of the user's theme."""
    theme = context.preferences.themes[0]
    interface = theme.user_interface
    return Colours(
        ground=tuple(interface.wcol_text.inner)[:3],
        text=tuple(interface.wcol_regular.text)[:3],
        best=tuple(interface.wcol_regular.inner_sel)[:3],
        mean=tuple(interface.wcol_regular.text)[:3],
        target=tuple(theme.user_interface.wcol_state.inner_key)[:3],
    )


def unregister():
    """Forget all pictures."""
    global _pictures
    if _pictures is not None:
        bpy.utils.previews.remove(_pictures)
        _pictures = None
        _drawn.clear()


def plot_icon(context, history, target, rows):
    """The curves as an icon for `template_icon(scale=rows)`.

    history: of optimization.Generation. rows: lines of text that the picture is high. The middle
    of the first line is a reward of 2, that of the last one 0.
    """
    unit = 20 * context.preferences.system.ui_scale
    size = max(8, round(rows * unit) - 2 * _PAD)
    edge = (unit / 2 - _PAD) / size
    palette = colours(context)
    last = last_shown(history)
    facts = (size, edge, palette, target, last, len(history), history and history[-1].rewards[0])
    return _icon("plot", facts, lambda: curves(size, edge, history, last, target, palette))


def swatch_icon(context, name):
    """The colour of a curve, "best", "mean" or "target", as an icon for a legend."""
    palette = colours(context)
    return _icon(name, palette, lambda: _swatch(getattr(palette, name)))


def last_shown(history):
    """The generation at the right edge: 5, 10, 15, 20, 30, 40, 60, 80, 100, … ."""
    steps = (int(f * 10**i) for i in range(1, 9) for f in (0.5, 1, 1.5, 2, 3, 4, 6, 8))
    return next(step for step in steps if step >= max(_FIRST, len(history) - 1))


def _icon(name, facts, draw):
    """The identifier of a picture; it is drawn again if the facts have changed."""
    global _pictures
    if _pictures is None:
        _pictures = bpy.utils.previews.new()
    preview = _pictures.get(name) or _pictures.new(name)
    if _drawn.get(name) != facts:
        pixels = (255 * np.clip(draw(), 0, 1) + 0.5).astype(np.uint8)
        height, width = pixels.shape[:2]
        for kind in ("image", "icon"):  # a legend shows the small one
            setattr(preview, f"{kind}_size", (width, height))
            flat = np.ascontiguousarray(pixels).view(np.int32).ravel()
            getattr(preview, f"{kind}_pixels").foreach_set(flat)
        _drawn[name] = facts
    return preview.icon_id


# --- Drawing: pictures (height, width, 4), from the bottom up ------------------------------------


def curves(size, edge, history, last, target, palette):
    """Best and mean of each generation, the middle half of its rewards as a band, and the target.

    edge: share of the size between a reward of 2 and the upper edge, and between 0 and the lower
    one. last: the generation at the right edge.
    """
    picture = np.empty((size, size, 4))
    picture[:] = (*palette.ground, 1.0)
    width = _LINE * max(1.0, size / 200)

    def x(generation):
        return size * (0.03 + 0.94 * np.asarray(generation, float) / last)

    def y(reward):
        return size * (edge + (1 - 2 * edge) * np.clip(reward, 0, TOP) / TOP)

    for reward in (0.0, 0.5, 1.0, 1.5, 2.0):
        strength = 0.16 if reward in (0.0, 1.0, 2.0) else 0.07
        _blend(picture, _line_across(size, np.floor(y(reward)) + 0.5, 1.0), palette.text, strength)
    dashes = np.arange(size) % 8 < 5
    _blend(picture, _line_across(size, y(target), width) * dashes, palette.target, 1.0)
    if history:
        at = x([generation.index for generation in history])
        low, high = np.transpose([np.percentile(g.rewards, [25, 75]) for g in history])
        _blend(picture, _between(size, at, y(low), y(high)), palette.best, 0.3)
        for name in ("mean", "best"):
            points = np.stack([at, y([getattr(g, name) for g in history])], 1)
            _blend(picture, _curve(size, points, width), getattr(palette, name), 1.0)
    return picture


def _blend(picture, cover, colour, strength):
    """Lay a colour over a picture, as far as it is covered (height, width)."""
    rows = np.flatnonzero(cover.any(axis=1))
    if len(rows):
        rows = slice(rows[0], rows[-1] + 1)
        part = picture[rows, :, :3]
        part += strength * cover[rows, :, None] * (np.array(colour) - part)


def _between(size, x, low, high):
    """Cover (size, size) of what is between two curves."""
    columns, rows = np.arange(size) + 0.5, np.arange(size)[:, None]
    low, high = np.interp(columns, x, low), np.interp(columns, x, high)
    cover = np.clip(np.minimum(rows + 1, high) - np.maximum(rows, low), 0, 1)
    return cover * ((columns >= x[0]) & (columns <= x[-1]))


def _line_across(size, y, width):
    """Cover (size, size) of a horizontal line."""
    ends = np.array([0.0, size])
    return _between(size, ends, np.full(2, y - width / 2), np.full(2, y + width / 2))


def _curve(size, points, width):
    """Cover (size, size) of a line through points (n, 2), with dots on them if they are few."""
    cover = np.zeros((size, size))
    for start, end in itertools.pairwise(points):
        _cover_segment(cover, start, end, width / 2)
    if len(points) <= _DOTS:
        for point in points:
            _cover_segment(cover, point, point, 1.4 * width)
    return cover


def _cover_segment(cover, start, end, radius):
    """Add a straight line with round ends to a cover."""
    size = len(cover)
    least = np.floor(np.minimum(start, end) - radius - 1).astype(int).clip(0, size)
    most = np.ceil(np.maximum(start, end) + radius + 1).astype(int).clip(0, size)
    x, y = np.meshgrid(np.arange(least[0], most[0]) + 0.5, np.arange(least[1], most[1]) + 0.5)
    along = end - start
    share = (x - start[0]) * along[0] + (y - start[1]) * along[1]
    share = np.clip(share / max(along @ along, 1e-9), 0, 1)
    distance = np.hypot(x - start[0] - share * along[0], y - start[1] - share * along[1])
    part = cover[least[1] : most[1], least[0] : most[0]]
    np.maximum(part, np.clip(radius + 0.5 - distance, 0, 1), out=part)


def _swatch(colour, size=32):
    """A dot on nothing, its colours multiplied with the opacity as Blender's icons have them."""
    cover = np.zeros((size, size))
    _cover_segment(cover, np.full(2, size / 2), np.full(2, size / 2), 0.26 * size)
    return cover[..., None] * (*colour, 1.0)

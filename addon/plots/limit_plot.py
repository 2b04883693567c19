# SPDX-License-Identifier: GPL-3.0-or-later
"""What a character withstands, by direction, as a picture: for a panel, and as a PNG.

Seen from above, the front is up: the filled shape is what it withstands, the dashed one what feet
that stay in place can catch.
"""

import itertools
import math
import struct
import zlib
from functools import lru_cache

import bpy
import numpy as np

from .tuning_plot import Colours, _blend, _cover_segment, _icon, colours

#: Of the PNG: width and height [pixels].
SIZE = 1200
_ON_PAPER = Colours(
    ground=(1.0, 1.0, 1.0),
    text=(0.16, 0.17, 0.19),
    best=(0.15, 0.42, 0.78),
    mean=(0.40, 0.42, 0.45),
    target=(0.86, 0.36, 0.08),
)
#: Rings at most, and how far from each other they may be.
_RINGS = 5
_STEPS = [f * 10.0**i for i in range(-2, 5) for f in (1, 2, 2.5, 5)]
_DASH, _GAP = 5.0, 3.5  # in widths of the line
_FINE = 4  # letters are drawn so many times larger first

_SIDES = (("Front", 0.0), ("Left", math.pi / 2), ("Back", math.pi), ("Right", -math.pi / 2))
_WORDS = {
    "pushes": "Single pushes of 0.2 s on the trunk",
    "spheres": "Single spheres, thrown at 5 m/s",
}


def rings(outcome):
    """Of the rings: from one to the next [N] or [kg], and how many."""
    largest = max(float(outcome.worst.max()), outcome.settings.step)
    step = next(step for step in _STEPS if step * _RINGS >= largest)
    return step, math.ceil(largest / step - 1e-9)


def panel_icon(context, outcome, rows):
    """The shapes alone as an icon for `template_icon(scale=rows)`, in the theme's colours."""
    size = max(32, round(rows * 20 * context.preferences.system.ui_scale))
    palette = colours(context)

    def draw():
        picture = _paper(size, palette)
        _draw_shapes(picture, outcome, palette, (size / 2, size / 2), 0.48 * size, size / 150)
        return picture

    facts = (size, palette, outcome.clip, outcome.wall, len(outcome.single))
    return _icon("limit", facts, draw)


def picture(outcome):
    """(SIZE, SIZE, 4) with title, labels and legend, from the bottom up."""
    palette = _ON_PAPER
    result = _paper(SIZE, palette)
    x, y, radius = SIZE / 2, 0.475 * SIZE, 0.345 * SIZE
    _draw_shapes(result, outcome, palette, (x, y), radius, 2.5)
    for name, angle in _SIDES:
        at = _at((x, y), radius + 30 + 22 * abs(math.sin(angle)), angle)
        _write(result, name, at, 30, palette.text, "CENTER")
    step, count = rings(outcome)
    for i in range(1, count + 1):
        label = f"{i * step:g} {outcome.unit} · {outcome.speed(i * step):.2f} m/s"
        at = (x + 9, y + radius * i / count - 21)
        _write(result, label, at, 18, palette.mean, "LEFT", palette.ground)
    _write_title(result, outcome, palette)
    _draw_legend(result, palette)
    return result


def png(pixels):
    """A picture (height, width, 4), from the bottom up, as the bytes of a PNG file."""
    rows = (255 * np.clip(pixels[::-1, :, :3], 0, 1) + 0.5).astype(np.uint8)
    height, width = rows.shape[:2]
    lines = np.zeros((height, 1 + 3 * width), np.uint8)
    lines[:, 1:] = rows.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in parts
    )


def as_image(outcome):
    """The picture as an Image data-block; one of the same clip is replaced."""
    return image_of(f"Poise limit {outcome.clip}", picture(outcome))


def image_of(name, pixels):
    """A picture (SIZE, SIZE, 4) as the Image data-block of that name."""
    image = bpy.data.images.get(name) or bpy.data.images.new(name, SIZE, SIZE)
    if tuple(image.size) != (SIZE, SIZE):  # somebody has scaled it
        image.scale(SIZE, SIZE)
    image.pixels.foreach_set(pixels.astype(np.float32).ravel())
    image.update()
    image.pack()
    return image


# --- Shapes --------------------------------------------------------------------------------------


def _paper(size, palette):
    result = np.empty((size, size, 4))
    result[:] = (*palette.ground, 1.0)
    return result


def _at(centre, radius, angle):
    """The point at an angle from the front to the left, the front being up."""
    return np.array([centre[0] - radius * math.sin(angle), centre[1] + radius * math.cos(angle)])


def _draw_shapes(result, outcome, palette, centre, radius, width):
    """Rings, spokes, what is withstood, and what feet in place can catch."""
    step, count = rings(outcome)
    scale = radius / (count * step)
    for i in range(1, count + 1):
        ring = _ring(len(result), centre, radius * i / count, max(1.0, 0.5 * width))
        _blend(result, ring, palette.text, 0.14 if i < count else 0.3)
    angles = outcome.settings.angles
    for angle in np.arange(8) * math.pi / 4:
        ends = [np.array(centre), _at(centre, radius, angle)]
        _blend(result, _lines(len(result), ends, max(1.0, 0.5 * width)), palette.text, 0.14)
    limit, bound = (
        [_at(centre, scale * value, angle) for value, angle in zip(values, angles, strict=True)]
        for values in outcome.worst
    )
    _blend(result, _star(len(result), centre, np.array(limit)), palette.best, 0.28)
    closed = [*limit, limit[0]]
    _blend(result, _lines(len(result), closed, width), palette.best, 1.0)
    cover = np.zeros((len(result), len(result)))
    for point in limit:
        _cover_segment(cover, point, point, 1.3 * width)
    _blend(result, cover, palette.best, 1.0)
    dashes = _dashes([*bound, bound[0]], _DASH * width, _GAP * width)
    _blend(result, _lines(len(result), dashes, 0.8 * width, False), palette.target, 1.0)


def _ring(size, centre, radius, width):
    """Cover (size, size) of a circle."""
    away = np.arange(size) + 0.5
    distance = np.hypot(away[None, :] - centre[0], away[:, None] - centre[1])
    return np.clip(width / 2 + 0.5 - np.abs(distance - radius), 0, 1)


def _lines(size, points, width, joined=True):
    """Cover (size, size) of straight lines through points, or between pairs of them."""
    cover = np.zeros((size, size))
    ends = itertools.pairwise(points) if joined else zip(points[::2], points[1::2], strict=True)
    for start, end in ends:
        _cover_segment(cover, start, end, width / 2)
    return cover


def _dashes(points, dash, gap):
    """The two ends of each dash along straight lines through points, one after the other."""
    result, left = [], 0.0  # of the dash or gap that the last line has begun
    for start, end in itertools.pairwise(points):
        length = math.dist(start, end)
        along = (end - start) / max(length, 1e-9)
        at = -left
        while at < length:
            if at + dash > 0:
                part = np.clip([at, at + dash], 0, length)
                result += [start + part[0] * along, start + part[1] * along]
            at += dash + gap
        left = length - (at - dash - gap)
    return result


def _star(size, centre, points):
    """Cover (size, size) of what is within points (n, 2) all round a centre, at equal angles."""
    away = np.arange(size) + 0.5
    x, y = away[None, :] - centre[0], away[:, None] - centre[1]
    count = len(points)
    turn = np.arctan2(-x, y) % (2 * math.pi)
    sector = np.minimum((turn / (2 * math.pi / count)).astype(int), count - 1)
    start = points - centre
    along = np.roll(start, -1, axis=0) - start
    length = np.maximum(np.hypot(*along.T), 1e-9)
    normal = np.stack([-along[:, 1], along[:, 0]], 1) / length[:, None]
    offset = (normal * start).sum(1)
    inside = normal[sector, 0] * x + normal[sector, 1] * y - offset[sector]
    return np.clip(inside + 0.5, 0, 1) * (length > 1e-6)[sector]


# --- Letters -------------------------------------------------------------------------------------


def _write_title(result, outcome, palette):
    """Which clip and body, and what was measured."""
    settings, unit = outcome.settings, outcome.unit
    left = 0.045 * SIZE

    def line(text, y, size, colour):
        _write(result, text, (left, y), size, colour, "LEFT")

    word = "push" if settings.kind == "pushes" else "sphere"
    line(f"{outcome.clip}: how hard a {word} it withstands", SIZE - 58, 40, palette.text)
    phases = len(outcome.single)
    line(
        f"{_WORDS[settings.kind]}, the worst of {phases} moment{'s' if phases > 1 else ''} of the "
        f"clip; body {outcome.mass:.0f} kg, {outcome.height:.2f} m",
        SIZE - 98,
        22,
        palette.mean,
    )
    line(
        f"withstands {outcome.limit:g} {unit} ({outcome.speed(outcome.limit):.2f} m/s): "
        f"{settings.sequences} random sequences of 20 s, one every second",
        SIZE - 130,
        22,
        palette.mean,
    )


def _draw_legend(result, palette):
    """What is what, below."""
    y, left = 0.035 * SIZE, 0.045 * SIZE
    line = [np.array([left, y + 7.0]), np.array([left + 44, y + 7.0])]
    _blend(result, _lines(SIZE, line, 16), palette.best, 0.28)
    _blend(result, _lines(SIZE, line, 2.5), palette.best, 1.0)
    _write(result, "withstood, by where it pushes to", (left + 62, y), 22, palette.text, "LEFT")
    left += 0.43 * SIZE
    line = [np.array([left, y + 7.0]), np.array([left + 44, y + 7.0])]
    dashes = _dashes(line, _DASH * 2.5, _GAP * 2.5)
    _blend(result, _lines(SIZE, dashes, 2.5, False), palette.target, 1.0)
    text = "capture point at the edge of feet in place"
    _write(result, text, (left + 62, y), 22, palette.text, "LEFT")


def _write(result, text, at, size, colour, align, halo=None):
    """Write text at a point: its middle, or the left end of its base line. halo: a colour around
    the letters."""
    triangles = size * _letters(text)
    width = triangles[..., 0].max()
    x, y = (at[0] - width / 2, at[1] - 0.35 * size) if align == "CENTER" else at
    part, cover = _fill(result, triangles + [x, y])
    if halo is not None:
        shifts = itertools.product((-2, 0, 2), repeat=2)
        around = np.maximum.reduce([np.roll(cover, shift, (0, 1)) for shift in shifts])
        part += 0.85 * around[..., None] * (np.array(halo) - part)
    part += cover[..., None] * (np.array(colour) - part)


@lru_cache(maxsize=256)
def _letters(text):
    """Triangles (n, 3, 2) of a text one unit high, by Blender's own font."""
    curve = bpy.data.curves.new("poise", "FONT")
    curve.body = text
    thing = bpy.data.objects.new("poise", curve)
    try:
        mesh = thing.to_mesh()
        mesh.calc_loop_triangles()
        points = np.empty(3 * len(mesh.vertices), np.float32)
        mesh.vertices.foreach_get("co", points)
        corners = np.empty(3 * len(mesh.loop_triangles), np.int32)
        mesh.loop_triangles.foreach_get("vertices", corners)
        return points.reshape(-1, 3)[corners.reshape(-1, 3), :2].astype(float)
    finally:
        thing.to_mesh_clear()
        bpy.data.objects.remove(thing)
        bpy.data.curves.remove(curve)


def _fill(result, triangles):
    """The part of a picture that triangles (n, 3, 2) [pixels] lie in, and how far they cover it.
    They may not overlap."""
    low = np.maximum(np.floor(triangles.min((0, 1))).astype(int) - 3, 0)
    high = np.minimum(np.ceil(triangles.max((0, 1))).astype(int) + 3, len(result))
    width, height = high - low
    corners = (triangles - low) * _FINE
    first = np.floor(corners[..., 1].min(1)).astype(int)
    last = np.ceil(corners[..., 1].max(1)).astype(int)
    # Along each fine row, +1 where a triangle begins and -1 where it ends.
    steps = np.zeros((height * _FINE + 1, width * _FINE + 1), int)
    for offset in range((last - first).max()):
        some = first + offset < last
        rows = first[some] + offset
        begin, end = _crossings(corners[some], rows + 0.5)
        for column, step in ((begin, 1), (end, -1)):
            hit = np.isfinite(column)
            at = np.clip(np.round(column[hit]).astype(int), 0, width * _FINE)
            np.add.at(steps, (np.clip(rows[hit], 0, height * _FINE), at), step)
    fine = np.cumsum(steps, axis=1)[:-1, :-1] > 0
    part = result[low[1] : high[1], low[0] : high[0], :3]
    return part, fine.reshape(height, _FINE, width, _FINE).mean((1, 3))


def _crossings(triangles, y):
    """Where horizontal lines at y (n,) enter and leave triangles (n, 3, 2); infinite if nowhere."""
    ends = np.roll(triangles, -1, axis=1)
    rise = ends[..., 1] - triangles[..., 1]
    crosses = (triangles[..., 1] <= y[:, None]) != (ends[..., 1] <= y[:, None])
    share = np.divide(y[:, None] - triangles[..., 1], rise, out=np.zeros_like(rise), where=crosses)
    x = triangles[..., 0] + share * (ends[..., 0] - triangles[..., 0])
    return np.where(crosses, x, np.inf).min(1), np.where(crosses, x, -np.inf).max(1)

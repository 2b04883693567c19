# SPDX-License-Identifier: GPL-3.0-or-later
"""The plot of what is withstood: shapes where they belong, letters, a PNG that others read."""

import math
import zlib
from dataclasses import replace

import bpy
import numpy as np
import pytest

from poise.addon.plots import limit_plot
from poise.controller.search.robustness import LimitSettings, Outcome

CENTRE = (0.5 * limit_plot.SIZE, 0.475 * limit_plot.SIZE)
RADIUS = 0.345 * limit_plot.SIZE


def outcome(limits, bounds, **settings):
    """An Outcome of one phase, with as many directions as limits."""
    settings = LimitSettings(directions=len(limits), phases=1, **settings)
    return Outcome(
        clip="stand",
        mass=71.0,
        height=1.8,
        rate=300.0,
        settings=settings,
        ended="measured",
        found=True,
        limit=80.0,
        limits=[80.0],
        rates=[],
        single=[limits],
        bounds=[bounds],
        fell_at=None,
        fell_measure=None,
        seconds=1.0,
        cpu=1.0,
        wall=1.0,
    )


@pytest.fixture
def skewed():
    """Weak to the front, strong to the left, the bound far out."""
    return outcome([50.0, 200.0, 100.0, 150.0], [400.0] * 4)


def is_filled(pixels, angle, radius):
    """Whether what is withstood covers the plot there; radius as a share."""
    column, row = (round(v) for v in limit_plot._at(CENTRE, radius * RADIUS, angle))
    red, _, blue = pixels[row, column, :3]
    return blue > red + 0.1


def test_each_direction_reaches_as_far_as_it_withstands(skewed):
    pixels = limit_plot.picture(skewed)
    assert limit_plot.rings(skewed) == (100.0, 4)
    tilt = 0.02  # beside the spokes and their labels
    for angle, reach in zip(skewed.settings.angles, (50, 200, 100, 150), strict=True):
        assert is_filled(pixels, angle - tilt, (reach - 12) / 400)
        assert not is_filled(pixels, angle - tilt, (reach + 12) / 400)


def test_the_bound_is_dashed():
    there = outcome([0.0] * 16, [300.0] * 16)
    pixels = limit_plot.picture(there)
    x, y = limit_plot._at(CENTRE, RADIUS, math.pi / 2)
    column = pixels[round(y) - 60 : round(y) + 60, round(x) - 4 : round(x) + 20, :3]
    orange = (column[..., 0] > column[..., 2] + 0.2).any(1)
    assert 0.3 < orange.mean() < 0.9
    # Nothing is withstood, so nothing is filled but the centre.
    assert not any(is_filled(pixels, angle + 0.1, 0.1) for angle in there.settings.angles)


@pytest.mark.parametrize("largest", [3.0, 20.0, 99.0, 100.0, 101.0, 411.0, 2600.0])
def test_rings_reach_what_is_shown(largest):
    step, count = limit_plot.rings(outcome([largest] * 4, [1.0] * 4, step=2.0))
    assert 1 <= count <= 5 and step * (count - 1) < largest <= step * count


def test_dashes_are_as_long_along_corners():
    points = [np.array(p, float) for p in ((0, 0), (10, 0), (10, 10), (0, 10), (0, 0))]
    dashes = limit_plot._dashes(points, 3.0, 2.0)
    drawn = sum(math.dist(a, b) for a, b in zip(dashes[::2], dashes[1::2], strict=True))
    assert drawn == pytest.approx(40 * 3 / 5)
    assert len(limit_plot._dashes([points[0], points[0]], 3.0, 2.0)) <= 2


def test_letters_are_blenders_and_leave_nothing_behind():
    before = len(bpy.data.curves), len(bpy.data.objects), len(bpy.data.meshes)
    limit_plot._letters.cache_clear()
    short, long = limit_plot._letters("120 N"), limit_plot._letters("120 N · 0.34 m/s")
    assert 1.5 * short[..., 0].max() < long[..., 0].max()
    assert 0.5 < short[..., 1].max() < 0.9
    assert (len(bpy.data.curves), len(bpy.data.objects), len(bpy.data.meshes)) == before


def test_triangles_are_covered_by_their_area():
    triangles = np.array([[[10, 10], [40.5, 12], [20, 33.3]], [[50, 50], [50, 60], [70, 50.0]]])
    paper = np.zeros((100, 100, 4))
    part, cover = limit_plot._fill(paper, triangles)
    part[..., 0] = cover  # the part is a view
    whole = paper[..., 0]
    edges = triangles[:, 1:] - triangles[:, :1]
    areas = np.abs(edges[:, 0, 0] * edges[:, 1, 1] - edges[:, 0, 1] * edges[:, 1, 0]) / 2
    assert whole[:40, :45].sum() == pytest.approx(areas[0], rel=0.02)
    assert whole[45:].sum() == pytest.approx(areas[1], rel=0.02)
    assert whole.max() == 1 and whole[20, 22] == 1 and whole[80, 80] == 0
    # What sticks out of the picture is cut off.
    assert limit_plot._fill(paper, triangles - 15)[1].max() == 1


def test_the_png_is_one_that_blender_reads(skewed, tmp_path):
    pixels = limit_plot.picture(skewed)
    path = tmp_path / "limit.png"
    path.write_bytes(limit_plot.png(pixels))
    image = bpy.data.images.load(str(path))
    assert tuple(image.size) == (limit_plot.SIZE, limit_plot.SIZE) and image.depth == 24
    read = np.empty(limit_plot.SIZE**2 * 4, np.float32)
    image.pixels.foreach_get(read)
    assert np.abs(read.reshape(pixels.shape) - pixels).max() < 0.5 / 255 + 1e-4
    data = path.read_bytes()
    start = data.index(b"IDAT")
    size = int.from_bytes(data[start - 4 : start])
    assert zlib.crc32(data[start : start + 4 + size]) == int.from_bytes(
        data[start + 4 + size : start + 8 + size]
    )


def test_the_image_is_packed_and_replaced(skewed, monkeypatch):
    paper = limit_plot._paper(limit_plot.SIZE, limit_plot._ON_PAPER)
    monkeypatch.setattr(limit_plot, "picture", lambda _outcome: paper)
    first = limit_plot.as_image(skewed)
    first.scale(100, 100)
    again = limit_plot.as_image(replace(skewed, mass=80.0))
    assert again == first and len(bpy.data.images) == 1
    assert again.name == "Poise limit stand" and again.packed_file is not None
    assert tuple(again.size) == (limit_plot.SIZE, limit_plot.SIZE)

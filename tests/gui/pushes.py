# SPDX-License-Identifier: GPL-3.0-or-later
"""A push in the window: add it, drag its arrow and its ring, cancel a drag, undo and redo."""

import subprocess
from itertools import pairwise
from math import cos, pi, sin

import bpy
from bpy_extras.view3d_utils import location_3d_to_region_2d
from mathutils import Vector

ADD = "bpy.ops.poise.add_push()"


def scenario(driver):
    """All stations, in the order in which a user meets them."""
    driver.module("staging.pushes_panel").POISE_PT_pushes.bl_options = set()
    driver.rearrange(closed=("character", "gains", "simulate", "bake"))
    yield from driver.open("stand")
    yield from driver.shot("pushes_0_empty")
    yield from driver.click(ADD, across=0.86)
    yield 0.5
    added = _force()
    driver.check("a push is added", added is not None and added[0] == 100.0, added)
    bpy.context.scene.poise.pushes.items[0].azimuth = -pi / 4
    driver.look_at(_base(driver) - Vector((0.0, 0.0, 0.2)), 3.2)
    bpy.ops.ed.undo_push(message="Aimed")
    yield 0.5
    yield from driver.shot("pushes_1_added")
    yield from _drag_tip(driver)
    yield from _drag_ring(driver)
    yield from _drag_with_keys(driver)
    driver.area.spaces.active.overlay.show_overlays = False
    yield 0.5
    yield from driver.shot("pushes_6_no_overlays")


def _drag_tip(driver):
    """Drag the tip 120 pixels to the right and down."""
    before, start = _force(), _on_screen(driver, _tip(driver))
    end = start[0] + 120, start[1] - 40
    yield from _press(driver, start)
    yield from _move(driver, start, end)
    yield from driver.shot("pushes_2_tip")
    _xdotool("mouseup", 1)
    yield 0.5
    after = _force()
    driver.check("the tip changes strength", after[0] > before[0] + 10, (before, after))
    driver.check("the tip changes the direction", abs(after[1] - before[1]) > 0.01, (before, after))
    tip = _on_screen(driver, _tip(driver))
    off = Vector(tip) - Vector(end)
    driver.check("the tip is where the mouse let it go", off.length < 15, off)
    yield from driver.press("ctrl+z")
    driver.check("one undo takes the drag back", _force() == before, (before, _force()))
    yield from driver.press("ctrl+shift+z")
    driver.check("redo drags again", _force() == after, (after, _force()))


def _drag_ring(driver):
    """Drag the ring a quarter turn."""
    before, base = _force(), _base(driver)
    radius = driver.module("window.push_gizmo").RING
    path = [before[1] + pi + turn * pi / 24 for turn in range(13)]
    places = [
        _on_screen(driver, base + radius * Vector((cos(angle), sin(angle), 0.0))) for angle in path
    ]
    yield from _press(driver, places[0])
    for start, end in pairwise(places):
        yield from _move(driver, start, end, steps=2)
    yield from driver.shot("pushes_3_ring")
    _xdotool("mouseup", 1)
    yield 0.5
    after = _force()
    driver.check("the ring keeps strength", after[0] == before[0], (before, after))
    driver.check("the ring keeps the elevation", after[2] == before[2], (before, after))
    turned = after[1] - before[1]
    driver.check("the ring turns by as much as the mouse", abs(turned - pi / 2) < 0.1, turned)


def _drag_with_keys(driver):
    """Esc in the middle of a drag; in steps with Ctrl; only the strength with Shift."""
    before, start = _force(), _on_screen(driver, _tip(driver))
    yield from _press(driver, start)
    yield from _move(driver, start, (start[0] - 60, start[1] + 90))
    driver.check("a drag is on", _force() != before, before)
    _xdotool("key", "Escape")
    yield 0.3
    driver.check("Esc cancels the drag", _force() == before, (before, _force()))
    _xdotool("mouseup", 1)
    yield 0.3
    yield from driver.shot("pushes_4_cancelled")
    _xdotool("keydown", "ctrl")
    yield from _press(driver, start)
    yield from _move(driver, start, (start[0] - 60, start[1] + 90))
    yield from driver.shot("pushes_5_steps")
    _xdotool("mouseup", 1)
    yield 0.3
    _xdotool("keyup", "ctrl")
    yield 0.3
    after = _force()
    driver.check("Ctrl drags in steps", abs(after[0] / 10 - round(after[0] / 10)) < 1e-4, after)
    driver.check("and it was dragged", after != before, after)
    start = _on_screen(driver, _tip(driver))
    _xdotool("keydown", "shift")
    yield from _press(driver, start)
    yield from _move(driver, start, (start[0] + 90, start[1] + 30))
    _xdotool("mouseup", 1)
    yield 0.3
    _xdotool("keyup", "shift")
    yield 0.3
    before, after = after, _force()
    driver.check("Shift drags the strength", after[0] > before[0] + 10, (before, after))
    driver.check("and nothing else", after[1:] == before[1:], (before, after))


def _force():
    push = next(iter(bpy.context.scene.poise.pushes.items), None)
    return (push.strength, push.azimuth, push.elevation) if push is not None else None


def _base(driver):
    """Where the arrow stands."""
    with bpy.context.temp_override(window=driver.window, area=driver.area, region=driver.view):
        push = bpy.context.scene.poise.pushes.items[0]
        return driver.module("window.push_gizmo").place(bpy.context, push)[0]


def _tip(driver):
    """The middle of the head of the arrow."""
    along = Vector(driver.module("window.push_gizmo").arrow(*_force(), 1.0))
    return _base(driver) + along * (1 - 0.06 / along.length)


def _on_screen(driver, point):
    """Window coordinates of a point of the scene."""
    view = driver.view
    spot = location_3d_to_region_2d(view, driver.area.spaces.active.region_3d, point)
    return view.x + spot.x, view.y + spot.y


def _press(driver, spot):
    """Go there, and hold the button."""
    driver.point_at(spot[0] - 30, spot[1] - 30)
    yield 0.2
    driver.point_at(*spot)
    yield 0.4
    _xdotool("mousedown", 1)
    yield 0.2


def _move(driver, start, end, steps=10):
    """Move the mouse in a straight line."""
    for step in range(1, steps + 1):
        share = step / steps
        driver.point_at(*(a + share * (b - a) for a, b in zip(start, end, strict=True)))
        yield 0.08


def _xdotool(*arguments):
    subprocess.run(["xdotool", *map(str, arguments)], check=True)

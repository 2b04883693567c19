# SPDX-License-Identifier: GPL-3.0-or-later
"""Waypoints in the window: add one, move it, see the body get there, undo, and what is refused."""

import bpy

ADD, REMOVE = "bpy.ops.poise.add_waypoint(", "bpy.ops.poise.remove_waypoint("
SIMULATE = "bpy.ops.poise.simulate()"
FRAME = 120
#: Panels that would push the others out of sight.
CLOSED = ("character", "gains", "measures", "bake")


def scenario(driver):
    """All stations, in the order in which a user meets them."""
    driver.module("staging.waypoints_panel").POISE_PT_waypoints.bl_options = set()
    driver.rearrange(closed=CLOSED)
    yield from driver.open("walk")
    bpy.context.scene.poise.method = "BALANCE"
    bpy.context.scene.frame_set(FRAME)
    hips = driver.armature.matrix_world @ driver.armature.pose.bones[0].head
    driver.look_at((hips.x, hips.y / 2, 0.7), 6.0, (0.9, 0.0, 0.5))
    yield 0.5
    yield from driver.click(ADD, across=0.3)
    yield 0.5
    driver.check("there is an empty", len(_empties()) == 1, _empties())
    away = (_empties()[0].location - hips).xy.length
    driver.check("it is below the hips", away < 1e-3, away)
    yield from driver.press("ctrl+z")
    driver.check("one undo removes it", not _empties(), _empties())
    yield from driver.press("ctrl+shift+z")
    driver.check("redo brings it back", len(_empties()) == 1, _empties())
    _empties()[0].location.x += 0.25
    bpy.ops.ed.undo_push(message="Moved")
    driver.sidebar.tag_redraw()
    yield 0.5
    yield from driver.shot("waypoints_1_added")
    yield from driver.click(SIMULATE)
    yield lambda: driver.session.job() is None and driver.result.recording
    shot = driver.result.shot
    ((told, there),) = shot.arrivals
    driver.check("the body gets there", there and shot.recording.success, told)
    driver.say(told)
    bpy.context.scene.frame_set(FRAME)
    yield 1.0
    yield from driver.shot("waypoints_2_reached")
    _empties()[0].location.x += 0.1
    driver.sidebar.tag_redraw()
    yield 0.5
    yield from driver.shot("waypoints_3_changed")
    _empties()[0].location.x += 5.0
    yield from driver.click(SIMULATE)
    yield lambda: driver.session.job() is None and driver.result.error
    refused = driver.result.error.startswith("No body can be at the waypoint")
    driver.check("what no body reaches is refused", refused, driver.result.error)
    yield 0.5
    yield from driver.shot("waypoints_4_refused")
    yield from driver.press("Escape")  # what Blender says of the error
    yield from driver.click(REMOVE, across=0.83)
    yield 0.5
    driver.check("it is removed", not _empties(), _empties())


def _empties():
    return [thing for thing in bpy.context.scene.objects if thing.type == "EMPTY"]

# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is led in the window: a walk by keys of Pace and Turn, which stops, and a held hand."""

import bpy

PACE, TURN = (f'bpy.data.armatures["walk"].poise_walk.{name}' for name in ("pace", "turn"))
HOLD, REMOVE = "bpy.ops.poise.add_hold(limb='RIGHT_HAND'", "bpy.ops.poise.remove_hold("
SIMULATE = "bpy.ops.poise.simulate()"
#: Panels that would push the others out of sight.
CLOSED = ("character", "gains", "measures")


def scenario(driver):
    """All stations, in the order in which a user meets them."""
    panels = (("walks_panel", "POISE_PT_walk"), ("holds_panel", "POISE_PT_holds"))
    for module, name in panels:
        getattr(driver.module(f"staging.{module}"), name).bl_options = set()
    driver.rearrange(closed=CLOSED)
    yield from _walk(driver)
    yield from _hold(driver)


def _walk(driver):
    yield from driver.open("walk")
    scene = bpy.context.scene
    scene.poise.walk.enabled, scene.poise.walk.seconds = True, 9.0
    driver.sidebar.tag_redraw()
    yield 0.5
    for frame, field, value in (
        (110, PACE, ("1",)),
        (110, TURN, ("0",)),
        (190, TURN, ("4", "0")),
        (370, PACE, ("0",)),
    ):
        scene.frame_set(frame)
        yield 0.3
        yield from driver.key(field, value)
    keyed = driver.curves(driver.armature.data.animation_data.action)
    told = {c.data_path: [k.co[1] for k in c.keyframe_points] for c in keyed}
    counts = sorted(map(len, told.values()))
    driver.check("Pace and Turn are keyed by I over their fields", counts == [2, 2], told)
    for curve in keyed:
        for point in curve.keyframe_points:
            point.interpolation = "CONSTANT"
    yield from driver.shot("directed_1_keyed")
    yield from driver.click(SIMULATE)
    yield lambda: driver.session.job() is None and driver.result.recording
    shot = driver.result.shot
    driver.check("it stands to the end", shot.recording.success, shot.recording.why())
    *_, turned, stands = shot.report()["commands"]
    driver.check("it turned", abs(turned["reached_heading"] - 40) < 6, turned)
    driver.check("it stopped", stands["speed"] == 0 and stands["reached_speed"] < 0.1, stands)
    driver.say(f"{stands}")
    scene.frame_set(109 + 520)
    hips = shot.recording.joints()[520][0]
    driver.look_at((hips[0], hips[1], 0.9), 7.0, (1.0, 0.0, 0.6))
    yield 1.0
    yield from driver.shot("directed_2_stands")
    yield from driver.bake()
    yield from driver.shot("directed_3_baked")


def _hold(driver):
    yield from driver.open("stand")
    bpy.context.scene.poise.method = "BALANCE"
    bpy.context.scene.frame_set(20)
    yield from driver.click(HOLD, across=0.7)
    yield 0.5
    driver.check("there is an empty", len(_empties()) == 1, _empties())
    yield from driver.press("ctrl+z")
    driver.check("one undo removes it", not _empties(), _empties())
    yield from driver.press("ctrl+shift+z")
    driver.check("redo brings it back", len(_empties()) == 1, _empties())
    yield from driver.shot("directed_4_held")
    yield from driver.click(SIMULATE)
    yield lambda: driver.session.job() is None and driver.result.recording
    shot = driver.result.shot
    (grasp,) = shot.report()["holds"]
    driver.check("the hand is held", grasp["gap"] < 10 and grasp["broke"] is None, grasp)
    driver.check("it stands", shot.recording.success, shot.recording.why())
    yield 0.5
    yield from driver.shot("directed_5_performed")
    yield from driver.click(REMOVE, across=0.83)
    yield 0.5
    driver.check("it is removed", not _empties(), _empties())


def _empties():
    return [thing for thing in bpy.context.scene.objects if thing.type == "EMPTY"]

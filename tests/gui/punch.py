# SPDX-License-Identifier: GPL-3.0-or-later
"""Two characters in the window: one is marked as a collider and hits the other, which is simulated
and baked; what it met is simulated again once that moves otherwise. Then both are simulated
together, baked in one step, and undone."""

import math

import bpy

COLLIDER = "bpy.ops.poise.make_collider()"
SIMULATE, BAKE = "bpy.ops.poise.simulate()", "bpy.ops.poise.bake()"
TOGETHER = "bpy.ops.poise.simulate_together()"

#: Panels that would push those of the objects out of sight.
CLOSED = ("character", "gains")
#: When the fist goes ahead, when it is there, and when it is back [frames].
GUARD, AHEAD, BACK = 30, 42, 66
#: Both feet, and the right arm, before the blow and in it; as `example.character.key` has them.
FEET = ((0.03, -0.12, 0), 0), ((0.02, 0.14, 0), 0)
DRAWN = ((0, 0, -0.03), (2, 0, 2, 0), *FEET, (15, 0, -15), 115)
OUT = ((0, -0.06, -0.04), (4, 15, 10, 0), *FEET, (8, 0, -88), 4)


def scenario(driver):
    """All stations, in the order in which a user meets them."""
    driver.module("staging.objects_panel").POISE_PT_objects.bl_options = set()
    driver.rearrange(closed=CLOSED, opened=("objects",))
    yield from driver.open("stand")
    name = driver.armature.name
    bpy.context.scene.poise.armature = driver.armature
    bpy.context.scene.poise.method, bpy.context.scene.poise.ghost = "BALANCE", "OVER"
    bpy.context.scene.poise.when_it_falls = "BRACE"
    _add_boxer(driver)
    bpy.ops.ed.undo_push(message="Boxer")
    yield 0.5
    yield from driver.click(COLLIDER, across=0.7)
    role = bpy.data.objects["Boxer"].poise.role
    driver.check("the boxer is a collider", role == "COLLIDER", role)
    driver.sidebar.tag_redraw()
    yield 0.5
    yield from driver.shot("punch_1_marked")
    keys = _keys(driver)
    yield from driver.click(SIMULATE)
    yield lambda: driver.session.job() is None
    result = driver.session.result_of(bpy.context.scene, bpy.data.objects[name])
    driver.check("it is simulated", result.recording is not None, result.error)
    hits = result.recording.hits()
    driver.check("the boxer hits it", bool(hits) and hits[0].by == "Boxer", hits)
    hardest = max(hits, key=lambda hit: hit.impulse)
    driver.say(f"the {hardest.part} gives it {hardest.impulse:.0f} N s")
    bpy.context.scene.frame_set(hardest.sample + 2)
    yield 1.0
    yield from driver.shot("punch_2_hit")
    bpy.context.scene.frame_set(hardest.sample + 40)
    yield 1.0
    yield from driver.shot("punch_3_after")
    yield from driver.click(BAKE)
    yield lambda: driver.session.job() is None
    baked = bpy.data.objects[name].animation_data.action.name
    driver.check("it is baked", "Poise" in baked, baked)
    driver.check("the boxer has its keys", _keys(driver) == keys)
    outdated, properties = driver.module("shots.outdated"), driver.module("settings.properties")
    settings = properties.shot_options(bpy.context, bpy.data.objects[name])
    before = outdated.settings_of(bpy.context.scene, bpy.data.objects[name], settings)
    bpy.data.objects["Boxer"].location.y += 0.05
    bpy.ops.ed.undo_push(message="Moved")
    yield 0.5
    now = outdated.settings_of(bpy.context.scene, bpy.data.objects[name], settings)
    changed = outdated.changed(before, now)
    driver.check("what it met has changed", changed == ["Objects"], changed)
    yield from driver.shot("punch_4_outdated")
    yield from _together(driver, bpy.data.objects[name])


def _together(driver, struck):
    """Both are selected, simulated in one world, and baked."""
    boxer = bpy.data.objects["Boxer"]
    names = struck.name, boxer.name
    struck.select_set(True)
    bpy.ops.ed.undo_push(message="Both selected")
    yield 0.5
    yield from driver.shot("together_1_button")
    yield from driver.click(TOGETHER)
    yield lambda: driver.session.job() is None
    scene, shown = bpy.context.scene, driver.module("overlays.overlay").ghosts(bpy.context.scene)
    results = [driver.session.result_of(scene, bpy.data.objects[name]) for name in names]
    for result, other in zip(results, reversed(names), strict=True):
        driver.check(f"who meets {other} has a result", result.recording is not None, result.error)
        met = {hit.by for hit in result.recording.hits()}
        driver.check(f"{other} hits", met == {other}, met)
    driver.check("there are two ghosts", len(shown) == 2, len(shown))
    blow = max(results[0].recording.hits(), key=lambda hit: hit.impulse)
    scene.frame_set(blow.sample + 10)
    yield 1.0
    yield from driver.shot("together_2_both")
    before = [bpy.data.objects[name].animation_data.action.name for name in names]
    yield from driver.click(BAKE)
    yield lambda: driver.session.job() is None
    after = [bpy.data.objects[name].animation_data.action.name for name in names]
    driver.check("both are baked", all("Poise" in one for one in after), after)
    yield from driver.shot("together_3_baked")
    bpy.ops.ed.undo()
    yield 0.5
    undone = [bpy.data.objects[name].animation_data.action.name for name in names]
    driver.check("one undo takes both back", undone == before != after, undone)


def _add_boxer(driver):
    """A second character, which faces the first one; selected and active."""
    figure, character = driver.module("example.figure"), driver.module("example.character")
    compat = driver.module("blender.compat")
    hips = driver.armature.matrix_world @ driver.armature.pose.bones[0].head
    boxer = figure.build_armature("Boxer", character.bones())
    figure.build_body(boxer, character.HEIGHT)
    boxer.location, boxer.rotation_euler.z = (hips.x - 0.17, hips.y - 0.75, 0), math.pi
    driver.look_at((hips.x, hips.y - 0.35, 0.85), 3.4, (1.48, 0.0, 1.3))
    compat.assign(boxer, *compat.new_action("Punch"))
    for frame, pose in ((1, DRAWN), (GUARD, DRAWN), (AHEAD, OUT), (BACK, DRAWN)):
        character.key(boxer, frame, *pose)
    bpy.ops.object.select_all(action="DESELECT")
    boxer.select_set(True)
    bpy.context.view_layer.objects.active = boxer


def _keys(driver):
    action = bpy.data.objects["Boxer"].animation_data.action
    points = [curve.keyframe_points for curve in driver.curves(action)]
    return [tuple(point.co) for one in points for point in one]

# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of pushes in the window: generate, sort, an empty that pushes, simulate, undo; and the
operator search."""

import math
import subprocess

import bpy

GENERATE, MOVE = "bpy.ops.poise.generate_pushes(", "bpy.ops.poise.move_push(direction='DOWN'"
SIMULATE = "bpy.ops.poise.simulate()"


def scenario(driver):
    """All stations, in the order in which a user meets them."""
    driver.module("staging.pushes_panel").POISE_PT_pushes.bl_options = set()
    driver.rearrange(closed=("character", "gains", "bake", "measures"))
    yield from driver.open("hips_twist")
    yield from _search(driver)
    yield from _generate(driver)
    yield from _empty(driver)
    yield from _simulate(driver)


def _items():
    return bpy.context.scene.poise.pushes.items


def _search(driver):
    """Blender's operator search finds Add Push."""
    yield from driver.press("shift")
    with bpy.context.temp_override(window=driver.window, area=driver.area, region=driver.view):
        bpy.ops.wm.search_operator("INVOKE_DEFAULT")
    yield 0.5
    _xdotool("type", "--delay", 60, "add push")
    yield 1.0
    yield from driver.shot("push_list_0_search")
    _xdotool("key", "Return")
    yield 0.7
    driver.check("the search adds a push", len(_items()) == 1, len(_items()))


def _generate(driver):
    """The dialogue, the list, sorting, undo."""
    yield from driver.click(GENERATE)
    yield 0.7
    yield from driver.shot("push_list_1_dialogue")
    _xdotool("key", "Return")
    yield 0.7
    made = [push.name for push in _items()]
    driver.check("pushes are generated", len(made) > 3 and made[1] == "Random 1", made)
    yield from driver.shot("push_list_2_generated")
    bpy.context.scene.poise.pushes.index = 0
    yield from driver.click(MOVE, across=0.86)
    yield 0.5
    names = [push.name for push in _items()]
    driver.check("it moves down", names[:2] == ["Random 1", made[0]], names)
    yield from driver.press("ctrl+z")
    driver.check("one undo takes it back", [push.name for push in _items()] == made)
    yield from driver.press("ctrl+z")
    driver.check("and one all that were generated", len(_items()) == 1, len(_items()))


def _empty(driver):
    """An empty at the neck, with keys."""
    bpy.context.scene.frame_set(66)
    neck = driver.armature.matrix_world @ driver.armature.pose.bones["Neck"].head
    empty = bpy.data.objects.new("Hand", None)
    empty.empty_display_type, empty.empty_display_size = "SINGLE_ARROW", 0.3
    empty.location, empty.rotation_euler = neck, (math.pi / 2, 0, 0)
    bpy.context.collection.objects.link(empty)
    for frame, strength in ((60, 0.0), (66, 120.0), (72, 0.0)):
        empty.poise_strength = strength
        empty.keyframe_insert("poise_strength", frame=frame)
    push = _items()[0]
    push.kind, push.empty, push.name = "EMPTY", empty, "By hand"
    bpy.ops.ed.undo_push(message="Empty")
    bpy.context.scene.frame_set(66)
    yield 0.5
    yield from driver.shot("push_list_3_empty")


def _simulate(driver):
    bpy.ops.poise.add_push()
    push = _items()[1]
    push.frame, push.strength, push.part = 120, 60.0, "UPPER_ARM_L"
    scene = bpy.context.scene.poise
    scene.frames, scene.first_frame, scene.last_frame = "CUSTOM", 1, 180
    bpy.ops.ed.undo_push(message="Settings")
    yield from driver.click(SIMULATE)
    yield lambda: driver.session.job() is None
    result = driver.result
    driver.check("it is simulated", result.recording is not None, result.error)
    first, second = result.recording.scenario.pushes
    driver.check("the empty pushes along -Y", first.impulse[1] < -10, first.impulse)
    driver.check("the arrow pushes the arm", second.segment == "upper_arm_l", second.segment)
    bpy.context.scene.frame_set(67)
    yield 0.5
    yield from driver.shot("push_list_4_simulated")


def _xdotool(*arguments):
    subprocess.run(["xdotool", *map(str, arguments)], check=True)

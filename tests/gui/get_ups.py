# SPDX-License-Identifier: GPL-3.0-or-later
"""Get-ups of the animator's own: the example's two, off the list and on it again; who falls gets up
by one, is baked, and undone."""

import bpy

ADD, REMOVE = "bpy.ops.poise.add_get_up(", "bpy.ops.poise.remove_get_up("
SIMULATE, BAKE = "bpy.ops.poise.simulate()", "bpy.ops.poise.bake()"
CLOSED = ("character", "gains", "measures", "weights", "strength", "tuning", "rectify")


def scenario(driver):
    """All stations, in the order in which a user meets them."""
    driver.module("staging.marked").POISE_PT_get_ups.bl_options = set()
    driver.rearrange(closed=CLOSED)
    yield from driver.open("hips_twist")
    bpy.ops.poise.example_scene()
    yield 0.5
    yield from driver.show_sidebar()
    settings = bpy.context.scene.poise
    settings.mode = "FULL"
    yield 0.5
    yield from driver.find(ADD)
    yield from driver.shot("get_ups_1_list")
    yield from driver.click(REMOVE, across=0.83)
    yield 0.5
    names = [one.name for one in bpy.data.actions if one.poise_get_up]
    driver.check("the cross takes one off the list", len(names) == 1, names)
    yield from driver.click(ADD)
    yield 0.7
    yield from driver.shot("get_ups_2_search")
    yield from driver.press("u", "p", "Return")
    yield 0.7
    names = [one.name for one in bpy.data.actions if one.poise_get_up]
    driver.check("the search puts it on the list again", names == ["Push Up", "Sit Up"], names)
    settings.when_it_falls, settings.get_up = "BRACE", True
    settings.frames, settings.first_frame, settings.last_frame = "CUSTOM", 1, 260
    bpy.context.scene.frame_end = 260
    bpy.context.scene.poise.pushes.items[0].strength = 550.0
    yield 0.5
    yield from driver.shot("get_ups_3_to_fall")
    yield from driver.click(SIMULATE)
    yield lambda: driver.simulated_samples() > 0
    yield lambda: driver.session.job() is None
    recording = driver.result.recording
    driver.check("it gets up by one of them", any(recording.ways), recording.why())
    bpy.context.scene.frame_set(160)
    yield 0.5
    yield from driver.shot("get_ups_4_up")
    yield from driver.click(BAKE)
    yield lambda: driver.session.job() is None
    action = driver.armature.animation_data.action
    driver.check("it is baked", action.name == "Wave (keyed) Poise", action.name)
    driver.check("and no get-up", not action.poise_get_up)
    yield from driver.press("ctrl+z")
    yield 0.5
    driver.check("one undo takes it back", driver.armature.animation_data.action.name[-1] == ")")

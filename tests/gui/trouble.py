# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes wrong in the window: falls, an armature that goes away, Edit Mode, another file."""

import bpy

SIMULATE = "bpy.ops.poise.simulate()"
#: So many steps per second [Hz] that there is time for something to happen meanwhile.
SLOW = 3000


def scenario(driver):
    """All troubles, each in a new file."""
    yield from _fall(driver)
    yield from _deleted(driver)
    yield from _undo_while_simulating(driver)
    yield from _edit_mode(driver)
    yield from _no_animation(driver)
    yield from _another_file(driver)


def _simulate(driver, samples=30):
    """Press the button, and wait until the simulation has begun."""
    yield from driver.click(SIMULATE)
    yield lambda: driver.simulated_samples() > samples or driver.session.job() is None


def _fall(driver):
    yield from driver.open("run_leap")
    driver.look_at((0.0, 2.0, 0.9), 7.0)
    bpy.context.scene.poise.method = "BALANCE"
    yield from _simulate(driver)
    yield lambda: driver.session.job() is None
    recording = driver.result.recording
    driver.check("a leap from a run falls", recording is not None and not recording.success)
    bpy.context.scene.frame_set(int(driver.result.shot.fell_frame))
    yield 1.0
    yield from driver.shot("trouble_1_fell")


def _deleted(driver):
    yield from driver.open("hips_twist")
    bpy.context.scene.poise.rate = SLOW
    yield from _simulate(driver)
    driver.check("it simulates", driver.session.job() is not None)
    name = driver.armature.name
    driver.armature.name = "renamed"
    yield lambda: driver.session.job() is None
    driver.armature.name = name
    error = driver.result.error
    driver.check("a renamed armature is told", f"'{name}' was deleted or renamed" in error, error)
    yield 1.0
    yield from driver.shot("trouble_2_renamed")
    yield from _simulate(driver)
    bpy.data.objects.remove(driver.armature)
    yield lambda: driver.session.job() is None
    yield 1.0
    yield from driver.shot("trouble_3_deleted")


def _undo_while_simulating(driver):
    yield from driver.open("hips_twist")
    bpy.context.scene.poise.rate = SLOW
    bpy.ops.ed.undo_push(message="Rate")
    yield from _simulate(driver)
    yield from driver.press("ctrl+z", "ctrl+shift+z")
    driver.check("undo does not disturb it", driver.simulated_samples() > 30)
    yield from driver.press("Tab")
    driver.check("nor does Edit Mode", driver.simulated_samples() > 30)
    driver.check("which it is in", driver.armature.mode == "EDIT", driver.armature.mode)
    yield from driver.press("Escape")
    driver.check("Esc stops", driver.session.job() is None)


def _edit_mode(driver):
    bpy.context.preferences.view.show_tooltips = True
    yield from driver.find(SIMULATE)
    yield from driver.hover()
    yield from driver.shot("trouble_4_edit_mode")
    bpy.context.preferences.view.show_tooltips = False
    yield from driver.click(SIMULATE)
    yield 0.5
    driver.check("nothing starts in Edit Mode", driver.session.job() is None)
    yield from driver.press("Tab")


def _no_animation(driver):
    bpy.context.scene.poise.rig = "no_such_map"
    yield from driver.click(SIMULATE)
    yield lambda: driver.session.job() is None
    error = driver.result.error
    driver.check("a missing map is told", "no_such_map" in error, error)
    yield 1.0
    yield from driver.shot("trouble_5_error")


def _another_file(driver):
    yield from driver.open("hips_twist")
    bpy.context.scene.poise.rate = SLOW
    yield from _simulate(driver)
    bpy.ops.wm.read_homefile(use_empty=False)
    yield 0.5
    driver.check("another file stops it", driver.session.job() is None)
    yield from driver.open("stand")
    yield from _simulate(driver)
    yield lambda: driver.session.job() is None
    driver.check("and the next one works", driver.result.recording is not None)
    driver.check("which stands", driver.result.recording.success)

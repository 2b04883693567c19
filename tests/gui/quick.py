# SPDX-License-Identifier: GPL-3.0-or-later
"""Quick mode: three decisions, simulate, what came of it, bake; and Full, the menu, the
preferences."""

import bpy

SIMULATE, STOP = "bpy.ops.poise.simulate()", "bpy.ops.poise.cancel()"
BAKE, SOURCE = "bpy.ops.poise.bake()", "bpy.ops.poise.show(which='source')"
OPTIMIZE, RECTIFY = "bpy.ops.poise.optimize()", "bpy.ops.poise.rectify()"
EXAMPLE = "bpy.ops.poise.example_scene()"

#: So hard [N] that no feet in place withstand it.
HARD = 900.0


def scenario(driver):
    """From a clip to its bake without leaving Quick, then the rest."""
    yield from driver.open("hips_twist", mode="QUICK")
    yield from _relaxed(driver)
    yield from _bake(driver)
    yield from _fall(driver)
    yield from _full(driver)
    yield from _nobody(driver)
    yield from _menu(driver)
    yield from _preferences(driver)


def _idle(driver):
    return driver.session.job() is None


def _relaxed(driver):
    settings = bpy.context.scene.poise
    yield from driver.shot("quick_1_before")
    settings.style, settings.ghost = "RELAXED", "BESIDE"
    yield from driver.click(SIMULATE)
    yield lambda: driver.simulated_samples() > 30
    yield from driver.shot("quick_2_simulating")
    yield lambda: _idle(driver)
    driver.check("a relaxed twist stands", driver.result.recording.success)
    driver.check("it is relaxed", driver.result.shot.options.style == "relaxed")
    yield from _no_bar_is_left(driver, "quick_3_ended")
    bpy.context.scene.frame_set(160)
    yield 1.0
    yield from driver.shot("quick_3_stood")


def _no_bar_is_left(driver, name):
    """Blender has drawn what came under the mouse in place of a progress bar as that bar."""
    yield 0.5
    yield from driver.shot(name)
    under = driver.blue(name)
    driver.point_at(driver.view.x + 200, driver.view.y + 200)
    yield 0.5
    yield from driver.shot(f"{name}_away")
    away = driver.blue(f"{name}_away")
    driver.check("no text is drawn as a bar", abs(under - away) < 500, (under, away))


def _bake(driver):
    yield from driver.click(BAKE)
    yield lambda: _idle(driver)
    driver.check("baked", "hips_twist Poise" in bpy.data.actions, list(bpy.data.actions))
    yield from driver.click(SOURCE)
    action = driver.armature.animation_data.action
    driver.check("the source is shown again", action.name == "hips_twist", action.name)
    yield 0.5
    yield from driver.shot("quick_4_baked")


def _fall(driver):
    settings = bpy.context.scene.poise
    bpy.context.scene.frame_set(60)
    bpy.ops.poise.add_push()
    settings.pushes.items[0].strength = HARD
    settings.method = "BALANCE"
    yield from driver.click(SIMULATE)
    yield lambda: driver.simulated_samples() > 0
    yield lambda: _idle(driver)
    driver.check("a hard push brings it down", not driver.result.recording.success)
    yield from driver.find(RECTIFY)
    yield from driver.find(OPTIMIZE)
    yield from driver.shot("quick_5_fell")
    settings.when_it_falls = "BRACE"
    yield from driver.click(SIMULATE)
    yield lambda: driver.simulated_samples() > 150
    yield from driver.shot("quick_5_falling")
    yield lambda: _idle(driver)
    recording = driver.result.recording
    driver.check("a fall goes on to the end", recording.filled and not recording.success)
    driver.check("and to rest", recording.rest_at is not None, recording.why())
    bpy.context.scene.frame_set(300)
    yield 0.5
    yield from driver.shot("quick_5_lies")
    settings.when_it_falls, settings.get_up, settings.once_up = "LIMP", True, "GO_ON"
    yield from driver.click(SIMULATE)
    yield lambda: driver.simulated_samples() > 0
    yield lambda: _idle(driver)
    recording = driver.result.recording
    driver.check("and up again", recording.up_at is not None, recording.why())
    driver.check("and on with it", recording.went_on[-1:] != [None], recording.why())
    bpy.context.scene.frame_set(560)
    yield 0.5
    yield from driver.shot("quick_5_stands")
    yield from driver.click(BAKE)
    yield lambda: _idle(driver)
    action = driver.armature.animation_data.action
    driver.check("the fall is baked", action.name == "hips_twist Poise", action.name)
    last = max(curve.range()[1] for curve in driver.curves(action))
    driver.check("to the end", last == 564, last)
    settings.when_it_falls, settings.get_up, settings.once_up = "STOP", False, "STAND"


def _full(driver):
    settings = bpy.context.scene.poise
    settings.mode = "FULL"
    yield 0.5
    yield from driver.shot("quick_6_full")
    yield from driver.find("bpy.ops.poise.inspect()")
    driver.check("the gains are as they were", settings.gains.source == "DEFAULT")


def _nobody(driver):
    bpy.ops.wm.read_homefile(use_empty=True)
    yield 0.3
    yield from driver.show_sidebar()
    yield 0.3
    driver.check("a file begins in Quick", bpy.context.scene.poise.mode == "QUICK")
    yield from driver.shot("quick_7_nobody")
    yield from driver.click(EXAMPLE)
    yield 0.5
    driver.check("the example has a character", driver.armature is not None)
    yield from driver.shot("quick_8_example")


def _menu(driver):
    driver.point_at(driver.view.x + 200, driver.view.y + driver.view.height - 100)
    yield 0.2
    with bpy.context.temp_override(window=driver.window, area=driver.area, region=driver.view):
        bpy.ops.wm.call_menu(name="POISE_MT_physics")
    yield 0.5
    yield from driver.shot("quick_9_menu")
    yield from driver.press("Escape")


def _preferences(driver):
    preferences = bpy.context.preferences
    preferences.active_section = "ADDONS"
    bpy.context.window_manager.addon_search = "Poise"
    bpy.ops.preferences.addon_expand(module=driver.module("blender.preferences").PACKAGE)
    driver.area.ui_type = "PREFERENCES"
    yield 1.0
    yield from driver.shot("quick_10_preferences")

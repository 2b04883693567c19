# SPDX-License-Identifier: GPL-3.0-or-later
"""Check Clip in the window: a clip with a pop, its verdict, a way to the frame, cleaning, the
plot."""

import math

import bpy

CHECK, SHOW = "bpy.ops.poise.check_clip()", "bpy.ops.poise.show_check()"
FINDING = "bpy.ops.poise.show_finding("
#: The window may not stand still for longer than this [s], drawing apart.
LONGEST_STEP = 0.05


def scenario(driver):
    """All stations, in the order in which a user meets them."""
    driver.module("sidebar.clip_check_panel").POISE_PT_clip_check.bl_options = set()
    driver.rearrange(closed=("character",))
    yield from driver.open("jumping_jacks")
    driver.hurry(False)
    yield from _stop(driver)
    yield from _check(driver)
    _pop(driver)
    bpy.ops.ed.undo_push(message="Popped")
    yield from _find(driver)
    yield from _clean(driver)
    yield from _show(driver)


def _pop(driver):
    """The left elbow flips from frame 41 to 44."""
    for curve in driver.curves(driver.armature.animation_data.action):
        if "LeftElbow" in curve.data_path and curve.array_index == 0:
            for point in curve.keyframe_points:
                point.co.y += math.radians(150) if 41 <= point.co.x <= 44 else 0.0
            curve.update()


def _stop(driver):
    before = driver.state()
    yield from driver.click(CHECK)
    yield lambda: driver.session.job() is not None
    yield from driver.press("Escape")
    driver.check("Esc stops", driver.session.job() is None)
    driver.check("it changes nothing", driver.state() == before, driver.state())


def _check(driver):
    longest, before = driver.time_steps(), driver.state()
    yield from driver.click(CHECK)
    yield lambda: driver.result.check is not None
    found = driver.result.check
    driver.check("jumping jacks are to be rectified", found.recommend == "rectify", found.verdict)
    driver.check("they have no fault", not found.faults, found.verdict)
    driver.check("it changes nothing", driver.state() == before, driver.state())
    work = max(longest[key] for key in longest if key.endswith("(CPU)"))
    driver.check("the window is alive", work < LONGEST_STEP, f"{1000 * work:.0f} ms")
    yield 3.0  # until Blender has moved the panels below
    yield from driver.shot("check_1_sound")


def _find(driver):
    yield from driver.press()  # no button notices a mouse that does not move
    yield from driver.click(CHECK)
    yield lambda: bool(driver.result.check.faults)
    found = driver.result.check
    frames = {finding.frames for finding in found.faults}
    driver.check("the pop is found where it is", frames == {(41.0, 44.0)}, found.verdict)
    yield 3.0
    yield from driver.shot("check_2_pop")
    yield from driver.click(FINDING)
    yield 0.5
    frame = bpy.context.scene.frame_current
    driver.check("a finding leads to its frame", frame == 41, frame)


def _clean(driver):
    bpy.context.scene.poise.clip_check.despike = True
    yield 1.0
    yield from driver.press()
    yield from driver.shot("check_3_despike")
    driver._found = 0  # from the top, where no finding is in the way
    yield from driver.click(CHECK)
    yield lambda: not driver.result.check.faults
    yield 3.0
    yield from driver.shot("check_4_cleaned")


def _show(driver):
    yield from driver.press()
    yield from driver.click(SHOW)
    yield 3.0
    windows = bpy.context.window_manager.windows
    editors = [a for w in windows for a in w.screen.areas if a.type == "IMAGE_EDITOR"]
    driver.check("there is one Image Editor", len(editors) == 1, len(editors))
    image = editors[0].spaces.active.image
    driver.check("it shows the plot", image and image.name.startswith("Poise check "), image)
    yield from driver.shot("check_5_plot")

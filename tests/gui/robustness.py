# SPDX-License-Identifier: GPL-3.0-or-later
"""Find Limit in the window: measure, stop and keep, measure to the end, show the plot."""

import bpy

FIND, SHOW = "bpy.ops.poise.find_limit()", "bpy.ops.poise.show_limit()"

#: Length of a sequence [s], so that they go by quickly.
DURATION = 6.0
#: The window may not stand still for longer than this [s], drawing apart.
LONGEST_STEP = 0.05


def scenario(driver):
    """All stations, in the order in which a user meets them."""
    driver.module("sidebar.robustness_panel").POISE_PT_robustness.bl_options = set()
    driver.rearrange(closed=("character",))
    driver.module("operators.robustness").DURATION = DURATION
    yield from driver.open("stand")
    settings = bpy.context.scene.poise.robustness
    settings.sequences, settings.phases, settings.directions = 3, 1, 8
    bpy.context.scene.poise.tuning.workers = 1
    bpy.ops.ed.undo_push(message="Settings")
    yield from driver.shot("limit_1_before")
    yield from _stop(driver)
    yield from _measure(driver)
    yield from _show(driver)


def rates(driver):
    """How many magnitudes are measured."""
    search = getattr(driver.session.job(), "search", None)
    return 0 if search is None else len(search.rates)


def _stop(driver):
    before = driver.state()
    longest = driver.time_steps()
    yield from driver.click(FIND)
    yield lambda: rates(driver) > 2
    yield 0.5
    yield from driver.shot("limit_2_measuring")
    driver.check("there is a worker", len(driver.workers()) == 1, driver.workers())
    yield from driver.press("Escape")
    driver.check("Esc stops", driver.session.job() is None)
    driver.check("Esc leaves no worker", not driver.workers(), driver.workers())
    driver.check("it changes nothing", driver.state() == before, driver.state())
    kept = driver.result.limit
    driver.check("Esc keeps what is measured", kept and len(kept.rates) > 2, kept)
    work = longest["finding the limit (CPU)"]
    driver.check("the window is alive", work < LONGEST_STEP, f"{1000 * work:.0f} ms")
    yield 0.5
    yield from driver.shot("limit_3_stopped")


def _measure(driver):
    settings = bpy.context.scene.poise.robustness
    settings.sequences, settings.push_start, settings.push_step = 1, 60, 60
    yield from driver.click(FIND)
    yield lambda: driver.session.job() is not None
    yield lambda: driver.session.job() is None
    outcome = driver.result.limit
    driver.check("it is measured to the end", outcome.ended == "measured", outcome.ended)
    yield 3.0  # until Blender has moved the panels below
    yield from driver.shot("limit_4_measured")


def _show(driver):
    yield from driver.click(SHOW)
    yield 3.0
    windows = bpy.context.window_manager.windows
    editors = [a for w in windows for a in w.screen.areas if a.type == "IMAGE_EDITOR"]
    driver.check("there is one Image Editor", len(editors) == 1, len(editors))
    image = editors[0].spaces.active.image
    driver.check("it shows the plot", image and image.name == "Poise limit stand", image)
    yield from driver.shot("limit_5_plot")
    bpy.ops.poise.show_limit()
    driver.check("a second time it is the same", len(bpy.context.window_manager.windows) == 2)

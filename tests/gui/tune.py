# SPDX-License-Identifier: GPL-3.0-or-later
"""Tuning in the window: optimise, preview, stop, undo, discard, resume, succeed, close the file."""

import bpy

OPTIMIZE, KEEP = "bpy.ops.poise.optimize()", "bpy.ops.poise.keep_best()"
PREVIEW, SIMULATE = "bpy.ops.poise.preview_best()", "bpy.ops.poise.simulate()"

#: Length of a trial [s], so that generations go by quickly.
DURATION = 3.0
#: What no gains reach, and what all do.
TOO_HIGH, LOW = 1.99, 1.5
#: The window may not stand still for longer than this [s], drawing apart.
LONGEST_STEP = 0.05


def scenario(driver):
    """All stations, in the order in which a user meets them."""
    driver.rearrange(closed=("character",), opened=("tune", "tune_advanced"))
    driver.module("operators.optimize").DURATION = DURATION
    yield from _open(driver, "kick")
    yield from driver.shot("tune_1_before")
    driver.rearrange(closed=("character", "tune_advanced"), opened=("tune",))
    yield from _open(driver, "kick")
    yield from _search(driver)
    yield from _preview(driver)
    yield from _keep(driver)
    yield from _discard(driver)
    yield from _resume(driver)
    yield from _open(driver, "hips_twist")
    yield from _succeed(driver)
    yield from _close(driver)


def _open(driver, clip):
    yield from driver.open(clip)
    settings = bpy.context.scene.poise.tuning
    settings.target, settings.population, settings.workers = TOO_HIGH, 4, 1
    settings.generations = 1000  # it ends when it is told to
    bpy.ops.ed.undo_push(message="Settings")
    yield 0.5


def _search(driver):
    before = driver.state()
    longest_steps = driver.time_steps()
    drawing = yield from driver.redraw_gap(driver.sidebar)
    driver.longest_gap = 0.0
    yield 2.0
    idle = driver.longest_gap
    yield from driver.click(OPTIMIZE)
    yield lambda: driver.generations() > 3
    gaps = {"idle": idle, "idle, drawing the sidebar": drawing, **driver.gaps}
    # Without a graphics card drawing takes longer than all else together.
    optimize = driver.module("operators.optimize")
    redraw_sidebars, optimize.redraw_sidebars = optimize.redraw_sidebars, lambda: None
    driver.longest_gap = driver.longest_work = 0.0
    yield lambda: driver.generations() > 6
    optimize.redraw_sidebars = redraw_sidebars
    gaps["searching, drawing nothing"] = driver.longest_gap
    gaps["the same (CPU)"] = work = driver.longest_work
    yield 1.0
    gaps = ", ".join(f"{stage} {1000 * gap:.0f} ms" for stage, gap in gaps.items())
    driver.say(f"longest gaps between two turns of the main loop: {gaps}")
    steps = ", ".join(f"{stage} {1000 * time:.0f} ms" for stage, time in longest_steps.items())
    driver.say(f"longest steps: {steps}")
    work = max(longest_steps["tuning (CPU)"], work)
    driver.check("the window is alive", work < LONGEST_STEP, f"{gaps}; {steps}")
    driver.check("there is a worker", len(driver.workers()) == 1, driver.workers())
    driver.check("a search changes nothing", driver.state() == before, driver.state())
    yield from driver.shot("tune_2_searching")


def _preview(driver):
    yield from driver.click(PREVIEW)
    yield lambda: driver.session.job().preview_words()
    yield 1.0
    driver.check("the ghost is there", driver.session.job().ghost() is not None)
    yield from driver.shot("tune_3_preview")


def _keep(driver):
    before = driver.state()
    yield from driver.click(KEEP)
    yield lambda: driver.session.job() is None
    yield 1.0
    gains = bpy.context.scene.poise.gains
    driver.check("Stop keeps the best", gains.source == "CUSTOM", gains.source)
    driver.check("no worker is left", not driver.workers(), driver.workers())
    driver.check("keys and poses are as before", driver.state() == before, driver.state())
    yield from driver.shot("tune_4_stopped")
    yield from driver.press("ctrl+z")
    gains = bpy.context.scene.poise.gains
    driver.check("one undo takes them back", gains.source == "DEFAULT", gains.source)
    driver.check("and nothing else", driver.state() == before, driver.state())
    tuning = bpy.context.scene.poise.tuning
    driver.check("not the settings", tuning.population == 4, tuning.population)
    yield from driver.shot("tune_5_undone")


def _discard(driver):
    before = driver.state()
    yield from driver.click(OPTIMIZE)
    yield lambda: driver.generations() > 2
    bpy.context.scene.frame_set(100)
    bpy.ops.ed.undo_push(message="Work meanwhile")
    yield from driver.press("ctrl+z")
    yield 0.5
    driver.check("it outlives an undo", driver.generations() > 2)
    bpy.context.scene.frame_set(1)
    yield from driver.press("Escape")
    driver.check("Esc stops", driver.session.job() is None)
    gains = bpy.context.scene.poise.gains
    driver.check("Esc leaves the gains", gains.source == "DEFAULT", gains.source)
    driver.check("Esc leaves the scene", driver.state() == before, driver.state())
    driver.check("Esc leaves no worker", not driver.workers(), driver.workers())
    yield 1.0
    yield from driver.shot("tune_6_discarded")


def _resume(driver):
    yield from driver.click(OPTIMIZE)
    yield lambda: driver.generations() > 0
    job = driver.session.job()
    driver.check("it is resumed", (job.resumed_at or 0) > 2, job.resumed_at)
    reached = driver.generations()
    yield lambda: driver.generations() > reached
    yield 0.5
    yield from driver.shot("tune_7_resumed")
    yield from driver.press("Escape")
    yield lambda: driver.session.job() is None


def _succeed(driver):
    bpy.context.scene.poise.tuning.target = LOW
    yield from driver.click(OPTIMIZE)
    yield lambda: driver.session.job() is not None
    yield lambda: driver.session.job() is None
    outcome = driver.result.outcome
    driver.check("success ends it", outcome.ended == "confirmed", outcome.ended)
    gains = bpy.context.scene.poise.gains
    driver.check("success keeps the gains", gains.source == "CUSTOM", gains.source)
    yield 0.5
    yield from driver.shot("tune_8_confirmed")
    yield from driver.click(SIMULATE)
    yield lambda: driver.session.job() is None and driver.result.recording is not None
    yield 0.5
    driver.check("the outcome stays", driver.result.outcome is outcome)
    yield from driver.shot("tune_9_simulated")


def _close(driver):
    bpy.context.scene.poise.tuning.target = TOO_HIGH
    bpy.context.scene.poise.tuning.seed = 7
    yield from driver.click(OPTIMIZE)
    yield lambda: driver.generations() > 1
    folder = driver.module("blender.checkpoints").folder()
    kept = set(folder.glob("*.json"))
    driver.check("there is a checkpoint", kept, list(folder.iterdir()))
    driver.check("there is a worker again", driver.workers())
    bpy.ops.wm.read_homefile(use_empty=False)
    yield 0.5
    driver.check("another file ends the search", driver.session.job() is None)
    driver.check("another file leaves no worker", not driver.workers(), driver.workers())
    driver.check("another file keeps the checkpoint", set(folder.glob("*.json")) == kept)

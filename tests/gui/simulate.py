# SPDX-License-Identifier: GPL-3.0-or-later
"""The main job in the window: simulate, stop, simulate to the end, scrub, bake, compare, undo."""

import bpy

SIMULATE, STOP = "bpy.ops.poise.simulate()", "bpy.ops.poise.cancel()"
DISCARD = "bpy.ops.poise.discard()"
SOURCE, BAKED = "bpy.ops.poise.show(which='source')", "bpy.ops.poise.show(which='baked')"

#: So many steps per second [Hz] that there is time to stop it.
SLOW = 3000
#: Of the clip, so many frames are simulated.
FRAMES = 300
#: The window may not stand still for longer than drawing takes and this [s].
LONGEST_GAP = 0.5


def scenario(driver):
    """All stations, in the order in which a user meets them."""
    longest_steps = driver.time_steps()
    yield from driver.open("hips_twist")
    settings = bpy.context.scene.poise
    settings.frames, settings.first_frame, settings.last_frame = "CUSTOM", 1, FRAMES
    bpy.ops.ed.undo_push(message="Settings")
    yield from driver.shot("1_before")
    yield from _escape(driver)
    yield from _stop(driver)
    yield from _finish(driver)
    yield from _scrub(driver)
    yield from _bake(driver)
    yield from _undo(driver)
    yield from _compare(driver)
    yield from _discard(driver)
    steps = ", ".join(f"{stage} {1000 * time:.0f} ms" for stage, time in longest_steps.items())
    driver.say(f"longest steps: {steps}")


def _idle(driver):
    return driver.session.job() is None


def _escape(driver):
    before = driver.state()
    bpy.context.scene.poise.rate = SLOW
    yield from driver.click(SIMULATE)
    yield lambda: driver.simulated_samples() > 30
    reached = driver.simulated_samples()
    yield from driver.shot("2_simulating")
    driver.check("it goes on", driver.simulated_samples() > reached)
    driver.check("simulating changes nothing", driver.state() == before, driver.state())
    yield from driver.press("Escape")
    driver.check("Esc stops", _idle(driver))
    driver.check("Esc leaves no result", driver.result.shot is None)
    driver.check("Esc leaves the scene", driver.state() == before, driver.state())
    yield from driver.shot("3_after_escape")


def _stop(driver):
    before = driver.state()
    yield from driver.click(SIMULATE)
    yield from driver.click(STOP, across=0.83)
    yield lambda: _idle(driver)
    driver.check("the button leaves the scene", driver.state() == before, driver.state())


def _finish(driver):
    before = driver.state()
    bpy.context.scene.poise.rate = 300
    driver.hurry(False)
    drawing = yield from driver.redraw_gap()
    yield from driver.find(SIMULATE)
    driver.longest_gap = 0.0
    yield from driver.click(SIMULATE)
    yield lambda: driver.simulated_samples() > 0
    reading, driver.longest_gap = driver.longest_gap, 0.0
    yield lambda: _idle(driver)
    simulating = driver.longest_gap
    gaps = f"{drawing:.3f} s idle, {reading:.3f} s reading, {simulating:.3f} s simulating"
    driver.say(f"longest gaps between two turns of the main loop: {gaps}")
    driver.check("the window is alive", max(reading, simulating) < drawing + LONGEST_GAP, gaps)
    driver.hurry()
    driver.check("it stands", driver.result.recording.success, driver.result.recording.why())
    driver.check("a simulation changes nothing", driver.state() == before, driver.state())
    yield 1.0
    yield from driver.shot("4_simulated")


def _scrub(driver):
    bpy.context.scene.frame_set(150)
    bpy.ops.ed.undo_push(message="Scrub")
    yield 1.0
    yield from driver.shot("5_scrubbed")
    bpy.context.scene.poise.ghost = "BESIDE"
    yield 1.0
    yield from driver.shot("6_beside")


def _bake(driver):
    yield from driver.bake()
    yield from driver.shot("7_baked")


def _undo(driver):
    yield from driver.undo_bake()
    yield 1.0
    yield from driver.shot("8_undone")
    yield from driver.redo_bake()


def _compare(driver):
    yield from driver.click(SOURCE)
    yield 0.2
    state = driver.state()
    driver.check("Source shows the source", state["pose"] == driver.unbaked["pose"], state)
    yield from driver.click(BAKED, across=0.7)
    yield 0.2
    state = driver.state()
    driver.check("Baked shows the bake", state["pose"] == driver.baked["pose"], state)


def _discard(driver):
    yield from driver.click(DISCARD, across=0.83)
    yield 0.2
    driver.check("Discard forgets", driver.result.shot is None)
    driver.check("Discard keeps the bake", driver.state() == driver.baked, driver.state())
    yield from driver.shot("9_discarded")

# SPDX-License-Identifier: GPL-3.0-or-later
"""Rectification in the window: chosen by Simulate, stopped, resumed, pushed, kept, baked."""

import time

import bpy

SIMULATE, RECTIFY = "bpy.ops.poise.simulate()", "bpy.ops.poise.rectify()"
KEEP, DISCARD = "bpy.ops.poise.keep_rectified()", "bpy.ops.poise.discard_rectified()"
PUSH, TARGET = "bpy.ops.poise.push_here()", "bpy.ops.poise.bake_target()"

#: The window may not stand still for longer than this [s], drawing apart.
LONGEST_STEP = 0.05


def scenario(driver):
    """All stations, in the order in which a user meets them."""
    driver.rearrange(closed=("character", "bake", "measures"), opened=("rectify",))
    yield from driver.open("dance")
    driver.look_at((0.0, -0.6, 0.9), 5.0)
    settings = bpy.context.scene.poise
    settings.rectification.preset, settings.tuning.workers = "DRAFT", 1
    settings.method = "RECTIFY"
    settings.frames, settings.first_frame, settings.last_frame = "CUSTOM", 1, 60
    bpy.ops.ed.undo_push(message="Settings")
    yield 0.5
    yield from driver.shot("rectify_1_before")
    yield from _stop(driver)
    yield from _resume(driver)
    yield from _push(driver)
    yield from _bake(driver)


def _wait(driver, condition):
    """Wait for a condition as long as the search goes on, however slowly."""

    def tried():
        search = getattr(driver.session.job(), "search", None)
        return None if search is None else search.evaluations

    while not condition():
        before = tried()
        yield lambda before=before: condition() or tried() != before


def _pace(driver):
    """How fast it goes, and what the window does meanwhile."""
    search, driver.longest_gap, turns = driver.session.job().search, 0.0, 0
    began, work, cpu = time.perf_counter(), time.thread_time(), search.outcome().cpu
    while time.perf_counter() < began + 3.0:
        turns += 1
        yield 0.0
    wall = time.perf_counter() - began
    return (
        f"in {wall:.0f} s: {turns} turns of the main loop, the longest {driver.longest_gap:.2f} s, "
        f"{time.thread_time() - work:.1f} s of this thread, {search.outcome().cpu - cpu:.1f} s of "
        "the worker"
    )


def _stop(driver):
    before = driver.state()
    longest = driver.time_steps()
    yield from driver.click(SIMULATE)
    yield from _wait(driver, lambda: driver.nodes() > 2)
    driver.check("there is a worker", len(driver.workers()) == 1, driver.workers())
    words = yield from _pace(driver)
    driver.say(words)
    shown = set()
    for _ in range(20):
        shown.add(driver.session.job().ghost()[1])
        yield 0.05
    driver.check("what is finished plays", len(shown) > 2, sorted(shown))
    driver.check("a search changes nothing", driver.state() == before, driver.state())
    yield from driver.shot("rectify_2_searching")
    yield from driver.press("Escape")
    driver.check("Esc stops", driver.session.job() is None)
    driver.check("Esc leaves no worker", not driver.workers(), driver.workers())
    driver.check("Esc leaves the scene", driver.state() == before, driver.state())
    driver.check("Esc discards", driver.result.shot is None, driver.result)
    work = longest["rectifying (CPU)"]
    driver.check("the window is alive", work < LONGEST_STEP, f"{1000 * work:.0f} ms")
    steps = ", ".join(f"{stage} {1000 * time:.0f} ms" for stage, time in longest.items())
    driver.say(f"longest steps: {steps}")
    yield 1.0
    yield from driver.shot("rectify_3_stopped")


def _resume(driver):
    yield from driver.click(RECTIFY, across=0.3)
    yield from _wait(driver, lambda: driver.nodes() > 0)
    job = driver.session.job()
    driver.check("it is resumed", job.resumed_at and job.resumed_at > 0.29, job.resumed_at)
    yield 0.5
    yield from driver.shot("rectify_4_resumed")
    yield from _wait(driver, lambda: driver.session.job() is None)
    outcome = driver.result.shot.rectified
    driver.check("it comes to the end", outcome.ended == "done", outcome.why)
    yield 3.0  # until Blender has moved the panels below
    yield from driver.shot("rectify_5_done")


def _push(driver):
    bpy.context.scene.frame_set(30)
    bpy.ops.poise.add_push()
    bpy.context.scene.poise.pushes.items[0].strength = 60.0
    # So slow that there is time to find the buttons.
    bpy.context.scene.poise.rectification.preset = "FINE"
    bpy.ops.ed.undo_push(message="Push")
    calm = driver.result.shot
    yield from driver.click(PUSH)
    yield from _wait(driver, lambda: driver.nodes() > 0)
    yield from driver.click(DISCARD, across=0.7)
    yield lambda: driver.session.job() is None
    driver.check("Discard leaves the result", driver.result.shot is calm)
    yield from driver.click(PUSH)
    yield from _wait(driver, lambda: driver.nodes() > 1)
    yield 0.5
    yield from driver.shot("rectify_6_pushed")
    yield from driver.click(KEEP, across=0.25)
    yield lambda: driver.session.job() is None
    pushed = driver.result.shot
    driver.check("Keep keeps", pushed is not calm and pushed.rectified.ended == "stopped")
    same = pushed.rectified.correction.offsets[:4] == calm.rectified.correction.offsets[:4]
    driver.check("the calm part is the same", same.all())


def _bake(driver):
    yield from driver.click(TARGET)
    yield lambda: driver.session.job() is None and len(bpy.data.actions) > 1
    animation = driver.armature.animation_data
    driver.check("the correction is baked", animation.action.name == "dance Poise Target")
    yield 1.0
    yield from driver.shot("rectify_7_baked")
    yield from driver.press("ctrl+z")
    names = [action.name for action in bpy.data.actions]
    driver.check("one undo takes it back", names == ["dance"], names)

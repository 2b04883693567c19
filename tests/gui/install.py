# SPDX-License-Identifier: GPL-3.0-or-later
"""The journey of a new user, from the zip in a clean profile to a baked shot, tuned and pushed."""

import os
import time

import bpy

EXAMPLE, SIMULATE = "bpy.ops.poise.example_scene()", "bpy.ops.poise.simulate()"
OPTIMIZE = "bpy.ops.poise.optimize()"
ADD, GENERATE = "bpy.ops.poise.add_push()", "bpy.ops.poise.generate_pushes("

#: So many steps per second [Hz] that there is time to stop it.
SLOW = 3000
#: Length of a trial [s], all of the example: what is tuned to less may fall after it. And a reward
#: that no gains reach.
DURATION, TOO_HIGH = 4.0, 1.99
GENERATIONS = 3
PUSH_FRAME, PUSH_FORCE = 60, 120.0  # [N]
#: What the push moves the centre of mass by, at least [m].
MOVED = 0.02


def scenario(driver):
    """All stations, in the order in which a user meets them."""
    driver.module("staging.pushes_panel").POISE_PT_pushes.bl_options = set()
    driver.module("operators.optimize").DURATION = DURATION
    driver.rearrange(closed=("character", "gains"), opened=("tune",))
    yield from _open(driver)
    yield from _first_second(driver)
    yield from _escape(driver)
    yield from _simulate(driver)
    yield 0.5
    yield from driver.shot("journey_4_simulated")
    yield from _scrub(driver)
    yield from _bake(driver)
    yield from _undo(driver)
    bpy.context.scene.poise.mode = "FULL"
    yield from _optimize(driver)
    yield from _push(driver)


def _idle(driver):
    return driver.session.job() is None


def _open(driver):
    """Blender as it starts, the tab, and the example."""
    yield from driver.show_sidebar()
    yield 0.5
    yield from driver.shot("journey_1_started")
    yield from driver.click(EXAMPLE)
    yield 0.5
    driver.check("there is a character", driver.armature.name == "Character", driver.armature)
    yield from driver.find(SIMULATE)
    yield from driver.shot("journey_2_example")


def _first_second(driver):
    """One second of motion, from the zip on."""
    rate = bpy.context.scene.render.fps
    driver.hurry(False)
    yield from driver.click(SIMULATE)
    yield lambda: _idle(driver) or driver.simulated_samples() > rate
    took = time.time() - float(os.environ["POISE_TEST_STARTED"])
    driver.say(f"from a clean profile to the first simulated second on screen: {took:.1f} s")
    driver.hurry()
    yield lambda: _idle(driver)
    driver.check("it stands", driver.result.recording.success, driver.result.recording.why())


def _escape(driver):
    """Esc in the middle."""
    settings = bpy.context.scene.poise
    rate, settings.rate = settings.rate, SLOW
    before = driver.state()
    yield from driver.click(SIMULATE)
    yield lambda: driver.simulated_samples() > 20
    reached, ghost = driver.simulated_samples(), _ghost(driver)
    yield from driver.shot("journey_3_simulating")
    driver.check("it goes on", driver.simulated_samples() > reached, reached)
    driver.check("the ghost moves", _ghost(driver) != ghost)
    yield from driver.press("Escape")
    driver.check("Esc stops", _idle(driver))
    driver.check("Esc leaves the scene", driver.state() == before, driver.state())
    settings.rate = rate


def _ghost(driver):
    """Where the body that is drawn has its joints, as text."""
    recording = driver.session.job().shot.recording
    return repr(recording.com[len(recording) - 1])


def _simulate(driver):
    before = driver.state()
    yield from driver.click(SIMULATE)
    yield lambda: not _idle(driver)
    yield lambda: _idle(driver)
    driver.check("it stands again", driver.result.recording.success, driver.result.recording.why())
    driver.check("a simulation changes nothing", driver.state() == before, driver.state())


def _scrub(driver):
    bpy.context.scene.frame_set(40)
    bpy.ops.ed.undo_push(message="Scrub")
    yield 0.5
    yield from driver.shot("journey_5_scrubbed")


def _bake(driver):
    yield from driver.bake(0.5)
    yield from driver.shot("journey_6_baked")


def _undo(driver):
    yield from driver.undo_bake()
    yield from driver.redo_bake()
    yield from driver.press("ctrl+z")


def _optimize(driver):
    tuning = bpy.context.scene.poise.tuning
    tuning.target, tuning.population, tuning.workers = TOO_HIGH, 4, 1
    tuning.generations = GENERATIONS
    bpy.ops.ed.undo_push(message="Settings")
    yield 0.5
    before = driver.state()
    yield from driver.click(OPTIMIZE)
    yield lambda: driver.generations() > 1
    yield from driver.shot("journey_7_optimizing")
    yield lambda: _idle(driver)
    outcome = driver.result.outcome
    driver.check("it ends by itself", outcome.ended == "generations", outcome.ended)
    driver.check("keys and poses are as before", driver.state() == before, driver.state())
    driver.check("no worker is left", not driver.workers(), driver.workers())


def _push(driver):
    yield from _simulate(driver)  # with the gains of the search
    unpushed = driver.result.recording.com.copy()
    number = len(bpy.context.scene.poise.pushes.items)
    bpy.context.scene.frame_set(PUSH_FRAME)
    yield from driver.click(ADD, across=0.86)
    yield 0.5
    pushes = bpy.context.scene.poise.pushes.items
    driver.check("a push is added", len(pushes) == number + 1, len(pushes))
    pushes[-1].strength = PUSH_FORCE
    bpy.ops.ed.undo_push(message="Stronger")
    yield from driver.click(SIMULATE)
    yield lambda: not _idle(driver)
    yield lambda: _idle(driver)
    pushed = driver.result.recording.com
    number = min(len(pushed), len(unpushed))
    moved = abs(pushed[:number] - unpushed[:number]).max(axis=1)
    early = moved[: PUSH_FRAME - 2].max()
    driver.check("nothing changes before the push", early < 1e-6, early)
    driver.check("it moves the body", moved.max() > MOVED, moved.max())
    bpy.context.scene.frame_set(PUSH_FRAME + 8)
    yield from driver.find(GENERATE)
    yield 0.5
    yield from driver.shot("journey_8_pushed")

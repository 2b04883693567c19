# SPDX-License-Identifier: GPL-3.0-or-later
"""Other proportions in the window: choose a body, simulate, see the ghost, bake, and go back."""

import bpy

SIMULATE, BAKE = "bpy.ops.poise.simulate()", "bpy.ops.poise.bake()"
SOURCE, BAKED = "bpy.ops.poise.show(which='source')", "bpy.ops.poise.show(which='baked')"


def scenario(driver):
    """All stations, in the order in which a user meets them."""
    panel = driver.module("staging.morphology_panel").POISE_PT_morphology
    panel.bl_options = set()
    driver.rearrange(closed=("bones", "measures", "tuning"))
    yield from driver.open("squat")
    bpy.ops.poise.set_morphology(name="long")
    bpy.context.scene.poise.ghost = "BESIDE"
    before = driver.state()
    yield 0.5
    yield from driver.shot("bodies_1_chosen")
    yield from driver.click(SIMULATE)
    yield lambda: driver.simulated_samples() > 0
    yield lambda: driver.session.job() is None
    driver.check("it stands", driver.result.recording.success, driver.result.recording.why())
    driver.check("a simulation changes nothing", driver.state() == before, driver.state())
    bpy.context.scene.frame_set(60)
    yield 0.5
    yield from driver.shot("bodies_2_simulated")
    bpy.context.scene.frame_set(1)
    yield from driver.click(BAKE)
    yield lambda: driver.session.job() is None
    driver.check("the bake has the proportions", driver.state()["pose"] != before["pose"])
    yield 0.5
    yield from driver.shot("bodies_3_baked")
    yield from driver.click(SOURCE)
    yield 0.3
    driver.check("the source is as it was", driver.state()["pose"] == before["pose"])
    yield from driver.click(BAKED, across=0.7)
    yield 0.3
    yield from driver.press("ctrl+z", "ctrl+z", "ctrl+z")
    yield 0.5
    undone = driver.state()
    driver.check("undo takes the bake away", undone == before, undone)
    yield from driver.shot("bodies_4_undone")

# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict in the window: a leap whose capture stops dead at its end, which no help mends, a
click on what is wrong with it, the same after Bake, and a dance that needs help from outside."""

import bpy

SIMULATE, BAKE = "bpy.ops.poise.simulate()", "bpy.ops.poise.bake()"
FLAW = "bpy.ops.poise.show_flaw("


def scenario(driver):
    """What an animator sees, and where a click leads."""
    driver.rearrange(closed=("character",))
    yield from driver.open("run_leap")
    settings = bpy.context.scene.poise
    settings.method, settings.outside_help = "BALANCE", 0.5
    yield from driver.click(SIMULATE)
    yield lambda: driver.session.job() is None and driver.result.recording
    verdict = driver.result.shot.verdict
    driver.check("it stands", driver.result.recording.success, driver.result.recording.why())
    driver.check("its speed is not kept", "speed" in verdict.not_kept_for, verdict.not_kept_for)
    yield 3.0
    yield from driver.shot("verdict_1_stood_but")
    bpy.context.scene.frame_set(1)
    yield from driver.click(FLAW)
    yield 0.5
    frame, first = bpy.context.scene.frame_current, verdict.findings[0].frame
    driver.check("a click leads to the frame", frame == first, f"{frame}, not {first}")
    yield from driver.shot("verdict_2_flaw")
    yield from driver.click(BAKE)
    yield lambda: driver.session.job() is None and driver.result.shot.measures
    of_keys = driver.result.shot.verdict
    driver.check("the keys are judged", of_keys is not verdict)
    driver.check("they are no better", not of_keys.keeper, of_keys.not_kept_for)
    yield 1.0
    yield from driver.shot("verdict_3_baked")
    yield from _helped(driver)


def _helped(driver):
    yield from driver.open("dance")
    settings = bpy.context.scene.poise
    settings.method, settings.frames = "BALANCE", "ACTION"
    for share, stands in ((0.0, False), (0.5, True)):
        settings.outside_help = share
        yield from driver.click(SIMULATE)
        yield lambda: driver.session.job() is None and driver.result.recording
        recording = driver.result.recording
        driver.check(f"with {share} of help", recording.success == stands, recording.why())
        driver.check(f"help is told, with {share}", bool(recording.outside) == stands)
        yield 1.0
        yield from driver.shot(f"verdict_4_helped_{share}")
    driver.check("it is a keeper", driver.result.shot.verdict.keeper)

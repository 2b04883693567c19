# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is played, and pushed over: it goes down, gets up, goes on as it is told, is kept, baked."""

import bpy
import numpy as np


def scenario(driver):
    """Walk, be pushed over, lie, get up, walk on, keep, bake."""
    yield from driver.open_play()
    settings = bpy.context.scene.poise
    settings.when_it_falls, settings.get_up, settings.walk.push = "BRACE", True, 700.0
    yield from driver.begin_play()
    job = driver.session.job()
    play = job.play
    yield 0.5
    yield from driver.press("Up")
    yield lambda: play.pace > 0.6
    yield from driver.press("f")
    yield lambda: play.is_down
    yield lambda: play.centres[-1][0][2] < 0.4
    yield from driver.shot("falling_1_down")
    yield from driver.press("Left", "Left")  # while it lies
    yield lambda: play.centres[-1][0][2] > 0.45
    yield from driver.shot("falling_2_rises")
    yield lambda: not play.is_down
    at, place = play.seconds, play.centres[-1][0]
    yield lambda: play.fell or play.seconds > at + 5
    driver.check("it has got up", not play.fell and not play.is_down)
    driver.check("it walks on", np.hypot(*(play.centres[-1][0] - place)[:2]) > 1, play.pace)
    yield from driver.shot("falling_3_walks_on")
    seen = np.array(play.centres)
    yield from driver.press("Return")
    yield lambda: driver.session.job() is None
    recording = driver.result.shot.recording
    same = len(recording) >= len(seen) and (recording.body_positions[: len(seen)] == seen).all()
    driver.check("the take is what was played, to the last bit", same)
    driver.check("which tells that it fell, and stands", recording.up_at is not None)
    yield 1.0
    yield from driver.bake()
    yield from driver.shot("falling_4_baked")

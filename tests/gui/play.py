# SPDX-License-Identifier: GPL-3.0-or-later
"""A character that is played: led by real keys, pushed, hit by a ball, pulled by the mouse, taken
back, kept as a take, and baked."""

import time

import bpy
import numpy as np
from bpy_extras.view3d_utils import location_3d_to_region_2d
from mathutils import Vector


def scenario(driver):
    """Stand, walk, turn, be pushed and pulled, go back, stop, step aside, keep, bake."""
    yield from driver.open_play()
    # When they come, in which step, is the machine's to say: what a walker bears in any.
    settings = bpy.context.scene.poise.walk
    settings.push, settings.ball = 30.0, 1.0
    yield from driver.shot("play_1_panel")
    yield from driver.begin_play()
    job = driver.session.job()
    play = job.play
    root = play.centres[-1][0]
    yield 1.0
    gaps = _Gaps(job)
    yield from driver.press("Up")
    yield lambda: play.sample > gaps.first and not play.stands
    yield 3.0
    driver.check("it walks in real time", _in_time(gaps), gaps.told())
    driver.say(f"played at {gaps.told()}")
    driver.check("it has gone somewhere", _gone(play, root) > 0.7, _gone(play, root))
    yield from driver.press("Left", "Left")
    yield 3.0
    told = [one for one in play.commands if one.heading is not None]
    driver.check("two keys turned it by 30°", abs(np.degrees(play.heading) - 30) < 0.1, told)
    yield from driver.shot("play_2_turned")
    yield from driver.press("f")
    yield 0.5
    pushes = [one.push for one in play.commands if one.push]
    driver.check("F pushed it", len(pushes) == 1 and pushes[0].newtons == 30.0, pushes)
    yield 1.5
    yield from driver.press("t")
    yield lambda: len(play.balls) == 1
    yield from driver.shot("play_2_thrown")
    thrown = [one.toss for one in play.commands if one.toss]
    driver.check("T threw a ball", len(thrown) == 1 and abs(thrown[0].mass - 1) < 1e-6, thrown)
    yield 1.5
    yield from _pull(driver, job)
    yield from driver.press("p")  # so that the view does not move on before the click
    yield lambda: job.paused
    yield 0.5
    driver.check("it has borne all that", not play.fell)
    x, y, _ = play.centres[-1][0]
    there = x - 0.5, y - 2.5, play.character.ground
    driver.point_at(*_seen(driver, there))
    yield 0.1
    driver.click_right()
    yield lambda: play.goal is not None
    driver.check("a right click sends it there", np.hypot(*(play.goal - np.array(there[:2]))) < 0.3)
    yield 1.0
    yield from driver.shot("play_2_sent")
    before = play.sample
    yield from driver.press("BackSpace")
    yield lambda: job.paused
    yield 1.0
    driver.check("Backspace went back and waits", job.paused and play.sample < before, play.sample)
    yield from driver.shot("play_3_back")
    yield from driver.press("space")
    yield lambda: play.stands
    yield lambda: play.fell or play.pace < 0.1
    driver.check("it stands", not play.fell)
    yield from driver.shot("play_4_stands")
    stood = play.centres[-1][0]
    yield from driver.press("a", "a")
    yield lambda: play.fell or _left(play, stood) > 0.3
    driver.check("A has it step to its left", not play.fell and abs(_ahead(play, stood)) < 0.3)
    yield from driver.shot("play_4_aside")
    yield from driver.press("space")
    yield lambda: play.fell or play.pace < 0.1
    driver.check("and Space stand again", not play.fell and play.aside == 0)
    seen = np.array(play.centres)
    yield from driver.press("Return")
    yield lambda: driver.session.job() is None
    shot = driver.result.shot
    recording = shot.recording
    same = len(recording) >= len(seen) and (recording.body_positions[: len(seen)] == seen).all()
    driver.check("the take is what was played, to the last bit", same)
    takes = bpy.context.window_manager.poise_takes.items
    driver.check("it is a take", len(takes) == 1, [one.label for one in takes])
    yield 1.0
    yield from driver.bake(things=["Ball"])
    yield from driver.shot("play_5_baked")


def _left(play, since):
    """How far [m] to its left it has come since it was there (3,)."""
    yaw = play.yaw + play.heading
    return float((play.centres[-1][0] - since) @ [-np.sin(yaw), np.cos(yaw), 0.0])


def _ahead(play, since):
    """The same ahead."""
    yaw = play.yaw + play.heading
    return float((play.centres[-1][0] - since) @ [np.cos(yaw), np.sin(yaw), 0.0])


def _pull(driver, job):
    """Take hold of the trunk with the mouse, draw it aside, and let go."""
    play = job.play
    where = _seen(driver, play.centres[-1][1])
    driver.point_at(*where)
    yield 0.1
    driver.mouse("mousedown")
    yield lambda: job.pull is not None
    driver.point_at(where[0] + 8, where[1])
    yield lambda: any(one.newtons > 10 for one in _pulls(play))
    driver.say(f"pulled by {np.linalg.norm(job.force()):.0f} N")
    job.paused = True  # pulled for as long as a picture takes on a slow machine, nobody stays up
    yield from driver.shot("play_2_pulled")
    driver.mouse("mouseup")
    yield lambda: job.pull is None
    pulls = _pulls(play)  # as many as the machine had time for
    hardest = max(pulls, key=lambda one: one.newtons)
    driver.check("the mouse pulled it to its side", _aside(driver, play, hardest) > 0.5, hardest)
    job.paused = False
    yield 1.0
    driver.check("nothing pulls what is let go", len(_pulls(play)) == len(pulls), _pulls(play))


def _aside(driver, play, push):
    """The part of a push to the right of the view, 1 if all of it."""
    right = driver.area.spaces.active.region_3d.view_rotation @ Vector((1.0, 0.0, 0.0))
    yaw = play.yaw + push.direction
    return float(np.array(right) @ [np.cos(yaw), np.sin(yaw), 0.0])


def _pulls(play):
    return [one.push for one in play.commands if one.push and one.push.seconds < 0.1]


class _Gaps:
    """How a job keeps time."""

    def __init__(self, job):
        self._job, self.first, self._began = job, job.play.sample, time.monotonic()

    def share(self):
        """Played time, of the time that went by."""
        played = (self._job.play.sample - self.first) / self._job.play.rate
        return played / (time.monotonic() - self._began)

    def told(self):
        return f"{self.share():.0%} of the clock"


def _in_time(gaps):
    return gaps.share() > 0.3  # with software OpenGL, on whatever machine


def _gone(play, root):
    return float(np.linalg.norm((play.centres[-1][0] - root)[:2]))


def _seen(driver, point):
    """Where a point [m] is in the window [pixels]."""
    region, data = driver.view, driver.area.spaces.active.region_3d
    x, y = location_3d_to_region_2d(region, data, point)
    return region.x + round(x), region.y + round(y)

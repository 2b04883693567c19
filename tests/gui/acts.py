# SPDX-License-Identifier: GPL-3.0-or-later
"""A character that is played performs a dance by a key, helped from outside, and walks on."""

import numpy as np


def scenario(driver):
    """Put an action on the list, play, walk, dance, walk on, keep, bake."""
    yield from driver.open_play()
    action = driver.bring("dance")
    action.poise_act_help = 0.5
    yield 0.5
    yield from driver.click("bpy.ops.poise.add_act()")
    yield 0.7
    yield from driver.press("d", "a", "n", "Return")
    yield 0.7
    driver.check("the search puts it on the list", action.poise_act and action.use_fake_user)
    yield from driver.shot("acts_1_list")
    yield from driver.begin_play()
    job = driver.session.job()
    play = job.play
    driver.check("it can be told to dance", play.acts == ("dance",), play.acts)
    yield 1.0
    yield from driver.press("Up")
    yield lambda: play.fell or play.pace > 0.6
    yield from driver.press("1")
    yield lambda: play.performs == "dance"
    told = next(one for one in play.commands if one.act)
    yield from driver.shot("acts_2_told")
    yield lambda: play.fell or (play.stands is False and play.pace < 0.1)
    yield 2.5
    driver.check("it dances", play.performs == "dance" and not play.fell)
    yield from driver.shot("acts_3_dances")
    yield lambda: play.fell or (play.performs is None and play.pace > 0.5)
    driver.check("and walks on", not play.fell, (told.at, play.seconds))
    yield from driver.shot("acts_4_walks_on")
    yield from driver.press("Return")
    yield lambda: driver.session.job() is None
    recording = driver.result.recording
    driver.check("the take stands", recording.success, recording.why())
    driver.check("what helped is told", "Help from outside" in recording.outside)
    dances = next(one for one in recording.followed if one.act)
    driver.check("it danced to the end", dances.ended is not None, dances)
    driver.check("it is what was played", np.isfinite(recording.com).all() and not job.differs)
    yield from driver.bake()
    yield from driver.shot("acts_5_baked")

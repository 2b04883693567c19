# SPDX-License-Identifier: GPL-3.0-or-later
"""Acts between two walks: what becomes of a clip, how the body gets into it and out of it, and when
it is performed."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from poise.controller import Character, Gains, Reference, Settings, Simulation
from poise.controller.body.momentum import GRAVITY
from poise.controller.control.walking import Walking
from poise.controller.exceptions import MotionError, SettingsError
from poise.controller.geometry.leg_bending import bend_leg
from poise.controller.geometry.rotations import multiply, swivel, swivelled
from poise.controller.geometry.skeleton import FEET, SIDES
from poise.controller.geometry.stance import runs
from poise.controller.geometry.trajectory import Trajectory, eased
from poise.controller.reference.acts import Act, performance
from poise.controller.reference.commands import (
    Command,
    Passage,
    Script,
    Strike,
    followed,
    journey,
)
from poise.controller.reference.gait import Walk, _Round
from poise.controller.reference.reference import COM, VELOCITY

RATE = 60.0
#: Of a hop: how fast it goes up [m/s], how deep it crouches [m], and when its parts begin [s].
UP, DEEP = 1.2, 0.12
CROUCHES, FLIES, PUSHES = 0.6, 1.2, 0.25
LANDS = FLIES + 2 * UP / GRAVITY
STRIKES = (Strike(0.2, 1), Strike(0.7, -1))
SPEED, PERIOD = 1.25, 1.1
PASSAGE = Passage(2.0, 0.5, 1.5, 0.3, 0.1, 0.5)


def still_of(character, motion, cycle):
    stood = _Round.of(character, motion, cycle).stood
    return Trajectory(1.0, stood.root[None], stood.rotation[None], stood.angles[None])


def hop(character, still, ahead=0.0, wide=0.0, seconds=2.6):
    """An Act that crouches, flies `ahead` [m] and lands, its feet farther apart by `wide` [m]."""
    times = np.arange(round(seconds * RATE) + 1) / RATE
    in_air = np.clip(times - FLIES, 0, LANDS - FLIES)
    flight = UP * in_air - GRAVITY / 2 * in_air**2
    # Down, and up to the speed of the flight; and the same backwards.
    height = -DEEP * eased((times - CROUCHES) / 0.3)
    for begins, ends, lands in ((FLIES - PUSHES, FLIES, False), (LANDS, LANDS + PUSHES, True)):
        own = (times >= begins) & (times <= ends)
        x = (times[own] - begins) / PUSHES
        x = 1 - x if lands else x
        height[own] = -DEEP * (1 - x * x * (3 - 2 * x)) + PUSHES * UP * x * x * (x - 1)
    height[(times > FLIES) & (times < LANDS)] = 0
    rises = times > LANDS + PUSHES
    height[rises] = -DEEP * (1 - eased((times[rises] - LANDS - PUSHES) / 0.5))
    gone = ahead * in_air / (LANDS - FLIES)
    joints, frames = (np.repeat(values, len(times), 0) for values in character.pose(still))
    joints = joints + np.stack([gone, 0 * gone, flight], 1)[:, None]
    aims = [
        joints[:, foot] + [0.0, side * wide / 2, 0.0]
        for side, foot in zip((1, -1), FEET, strict=True)
    ]
    joints[..., 2] += (height - 0.5 * wide**2)[:, None]
    for side, aim in zip(SIDES, aims, strict=True):
        bend_leg(joints, frames, side, aim)
    body = character.trajectory_of(RATE, joints[:, 0], frames)
    down = ((times < FLIES) | (times > LANDS)).astype(float)
    tables = (
        tuple(map(tuple, values.tolist()))
        for values in (
            body.root - [0.0, 0.0, character.ground],
            body.rotation,
            body.angles,
            np.stack([down, down], 1),
        )
    )
    return Act("hop", RATE, character.leg, True, 0.0, *tables)


def world(character, found):
    """Joints (P, S, 3) and frames of a Performance, from where its carrier begins."""
    passage, times = found.passage, np.arange(len(found.root)) / RATE
    share = passage.share(times)
    points, yaw = share[:, None] * [passage.ahead, passage.aside, 0], share * passage.turn
    root = points + swivelled(found.root, yaw)
    return character.pose(
        Trajectory(RATE, root, multiply(swivel(yaw), found.rotation), found.angles)
    )


# --- The act --------------------------------------------------------------------------------------


def test_a_clip_is_an_act_from_its_first_stance_to_its_last(make_motion):
    motion = make_motion(2.0)
    character = Character.from_motion(motion)
    act = Act.of("wave", character, motion)
    assert act.name == "wave" and not act.travels and np.all(act.contacts)
    assert len(act.root) == len(motion)
    heights = np.array(act.root)[:, 2]
    assert heights == pytest.approx(motion.positions[:, 0, 2] - character.ground, abs=1e-9)
    assert Act.from_dict(json.loads(json.dumps(act.__dict__))) == act


def test_who_never_stands_does_no_act(make_motion):
    motion = make_motion(2.0)
    character = Character.from_motion(motion)
    up = replace(motion, positions=motion.positions + [0.0, 0.0, 1.0])
    with pytest.raises(MotionError, match="'fly' cannot be performed: an act begins and ends on"):
        Act.of("fly", character, up)


def test_what_is_too_short_or_goes_on_is_no_act(make_motion, walker):
    motion = make_motion(0.2)
    with pytest.raises(MotionError, match=r"it stands for 0\.20 s, and an act lasts"):
        Act.of("blink", Character.from_motion(motion), motion)
    character, walks, _ = walker
    with pytest.raises(MotionError, match=r"it begins at 1\.\d m/s, and an act begins and ends"):
        Act.of("go", character, walks)


def test_who_is_larger_does_it_larger_and_as_slowly_as_it_falls(walker):
    character, motion, cycle = walker
    act = hop(character, still_of(character, motion, cycle), ahead=0.4)
    small = replace(act, leg=act.leg / 4)
    own, _ = act.of_body(character, RATE)
    large, contacts = small.of_body(character, RATE)
    assert np.ptp(own.root[:, 0]) == pytest.approx(0.4, abs=1e-6)
    assert np.ptp(large.root[:, 0]) == pytest.approx(1.6, abs=1e-6)
    assert len(large) == pytest.approx(2 * len(own), abs=2)
    flies = np.flatnonzero(~contacts.any(1))
    bends = np.gradient(np.gradient(large.root[flies, 2])) * RATE**2
    assert np.median(bends) == pytest.approx(-GRAVITY, rel=0.05)


# --- How it is performed --------------------------------------------------------------------------


def test_it_begins_and_ends_as_the_body_stands_and_feet_stay_where_they_are(walker):
    character, motion, cycle = walker
    still = still_of(character, motion, cycle)
    found = performance(character, hop(character, still, ahead=0.3), RATE, still)
    assert found.passage.ahead == pytest.approx(0.3, abs=0.02)
    assert found.passage.turn == pytest.approx(0.0, abs=0.02)
    (stood,), _ = character.pose(still)
    joints, _ = world(character, found)
    ends = stood + [found.passage.ahead, found.passage.aside, 0.0]
    for at, wanted in ((0, stood), (-1, ends)):
        assert np.abs(joints[at] - wanted).max() < 0.02
    for i, foot in enumerate(FEET):
        for start, stop in runs(found.contacts[:, i]):
            assert np.ptp(joints[start + 3 : stop - 3, foot, :2], axis=0).max() < 0.01


def test_it_falls_freely_in_the_air(walker):
    character, motion, cycle = walker
    still = still_of(character, motion, cycle)
    found = performance(character, hop(character, still), RATE, still)
    joints, frames = world(character, found)
    com = character.body_centres(joints, frames).swapaxes(1, 2) @ character.masses
    (start, stop), *more = runs(~found.contacts.any(1))
    assert not more and (stop - start) / RATE == pytest.approx(LANDS - FLIES, abs=0.04)
    speed = np.gradient(com[:, 2] / character.mass) * RATE
    fall = (speed[stop] - speed[start]) / (stop - start) * RATE
    assert fall == pytest.approx(-GRAVITY, rel=0.1)


def test_who_stands_otherwise_steps_into_it_and_out_of_it(walker):
    character, motion, cycle = walker
    still = still_of(character, motion, cycle)
    found = performance(character, hop(character, still, wide=0.25), RATE, still)
    alone = np.flatnonzero(found.contacts.sum(1) == 1)
    flies = np.flatnonzero(found.contacts.sum(1) == 0)
    assert alone[0] < flies[0] and alone[-1] > flies[-1]
    joints, _ = world(character, found)
    apart = np.linalg.norm((joints[:, FEET[0]] - joints[:, FEET[1]])[:, :2], axis=1)
    assert apart[flies].mean() == pytest.approx(apart[0] + 0.25, abs=0.03)
    assert apart[-1] == pytest.approx(apart[0], abs=0.02)


# --- When it is -----------------------------------------------------------------------------------


def gone(*commands, seconds=20.0, acts=(("hop", PASSAGE),)):
    count = round(seconds * RATE) + 1
    return journey(commands, STRIKES, SPEED, PERIOD, np.pi / 3, RATE, count, (), None, acts)


def test_who_is_told_to_stops_stands_performs_and_walks_on():
    found = gone(Command(0.0, 1.0), Command(4.0, act="hop"))
    (start, stop), *more = runs(found.act == 0)
    assert not more and (found.standing[start - 10 : stop + 10] == 1).all()
    assert start > 4.5 * RATE and (stop - start) / RATE == pytest.approx(PASSAGE.seconds, abs=0.02)
    assert found.since[start:stop] == pytest.approx(np.arange(stop - start) / RATE)
    before, after = found.points[[start, stop + 1]]
    assert after - before == pytest.approx([PASSAGE.ahead, PASSAGE.aside, 0.0], abs=1e-6)
    assert found.yaw[stop + 1] - found.yaw[start] == pytest.approx(PASSAGE.turn)
    assert found.speeds[-1] == pytest.approx(1.0) and found.standing[-1] == 0
    assert found.yaw[-1] == pytest.approx(0.0, abs=0.01), "it heads where it was told to"


def test_it_is_carried_the_same_way_where_it_looks_elsewhere():
    found = gone(Command(0.0, 1.0, np.pi / 2), Command(6.0, act="hop"))
    (start, stop), *_ = runs(found.act == 0)
    turned = swivelled(np.array([PASSAGE.ahead, PASSAGE.aside, 0.0]), found.yaw[start])
    assert found.points[stop + 1] - found.points[start] == pytest.approx(turned, abs=1e-6)
    # Who is led straight on goes as far ahead, and to the left, as seen by itself.
    straight = found.distances[stop + 1] - found.distances[start]
    aside = found.shifted[stop + 1] - found.shifted[start]
    assert np.hypot(straight, aside) == pytest.approx(np.hypot(0.3, 0.1), rel=0.05)


def test_who_stands_stands_again_and_acts_follow_each_other():
    wave = "wave", Passage(1.0, 0.0, 0.1, 0.0, 0.0, 0.0)
    commands = Command(0.0, stands=True), Command(1.0, act="hop"), Command(1.5, act="wave")
    found = gone(*commands, acts=(wave, ("hop", PASSAGE)))
    assert (found.standing == 1).all()
    (first, ends), (then, _) = runs(found.act >= 0)
    assert found.act[first] == 1 and found.act[then] == 0 and then >= ends
    told = followed(commands, found, STRIKES, found.points, RATE, 0.0, SPEED)
    assert [one.act for one in told] == [None, "hop", "wave"]
    assert told[1].began == first / RATE and told[1].ended == ends / RATE
    cut = followed(commands, found, STRIKES, found.points[:then], RATE, 0.0, SPEED)
    assert cut[1].ended is None or cut[1].ended < then / RATE
    assert cut[2].began is None and cut[2].ended is None


def test_who_is_to_perform_at_once_begins_standing():
    found = gone(Command(0.0, act="hop"))
    assert found.standing[0] == 1 and found.act[round(0.5 * RATE)] == 0
    assert found.standing[-1] == 0, "then it walks as the clip does"


def test_an_act_that_is_cut_goes_on_beyond_the_end():
    """Else a body at the end of a script would stop as nothing can."""
    found = gone(Command(0.0, act="hop"), seconds=1.5)
    last = len(found.act) - 1
    later = found.at(np.arange(last - 2, last + 4))
    assert (later.act == 0).all()
    assert np.diff(later.since) == pytest.approx(1 / RATE)
    before = gone(Command(0.0, act="hop")).at(np.arange(-3, 1))
    assert (before.since == 0).all()


def test_what_was_not_learned_is_not_performed():
    told = "The command at 2 s has the skill 'hup', which is not known: use stand, walk, hop"
    with pytest.raises(SettingsError, match=told):
        gone(Command(0.0), Command(2.0, act="hup"))


def test_scripts_tell_acts(tmp_path):
    commands = (
        {"at": 0, "skill": "stand"},
        {"at": 2, "skill": "hop"},
        {"at": 3, "skill": "Wave twice", "speed": 0.9, "heading": 30},
        {"at": 9, "skill": "hop", "speed": 0},
    )
    path = tmp_path / "take.json"
    path.write_text(json.dumps({"version": 1, "seconds": 20, "commands": commands}))
    script = Script.load(path)
    assert script.acts == ("Wave twice", "hop")
    assert [one.act for one in script.commands] == [None, "hop", "Wave twice", "hop"]
    assert [one.stands for one in script.commands] == [True, None, None, True]
    script.save(tmp_path / "again.json")
    assert Script.load(tmp_path / "again.json") == script
    for name in ("", 3, "x" * 101, ["hop"]):
        content = {"version": 1, "seconds": 9, "commands": [{"at": 0, "skill": name}]}
        path.write_text(json.dumps(content))
        with pytest.raises(SettingsError, match="as 'skill': use stand, walk or the name of an"):
            Script.load(path)


# --- What a body makes of it ----------------------------------------------------------------------


def hopping(walker, seconds=17.0):
    character, motion, cycle = walker
    act = hop(character, still_of(character, motion, cycle))
    commands = Command(0.0, 1.0), Command(3.0, act="hop"), Command(7.5, heading=0.6)
    return Walk(cycle, seconds, commands=commands, acts=(act,))


def test_walks_with_acts_are_plain_data(walker):
    character, motion, _ = walker
    walk = hopping(walker)
    text = json.dumps(walk.as_dict())
    data = json.loads(text)
    assert Walk.from_dict(data).acts == walk.acts
    assert json.dumps(Walk.from_dict(data).as_dict()) == text
    again = Walk.from_dict(data).motion(character, motion)
    assert np.array_equal(again.positions, walk.motion(character, motion).positions)
    assert "acts" not in replace(walk, commands=walk.commands[:1], acts=()).as_dict()


def test_the_reference_flies_where_the_act_does(walker):
    character, motion, _ = walker
    endless = hopping(walker).motion(character, motion)
    reference = Reference.build(character, endless)
    acts = endless.walk.journey(motion.rate).act[: len(reference)] == 0
    air = reference.stance == 0
    assert air[acts].any() and not air[~acts].any()


@pytest.mark.slow(captured=False)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_body_walks_hops_and_walks_on(walker, seed):
    character, motion, _ = walker
    endless = hopping(walker).motion(character, motion)
    gains = Gains.default(character, walking=True)
    settings = Settings(noise=1.0, seed=seed)
    recording = Simulation(character, endless, gains, settings=settings).run()
    assert recording.success, recording.why()
    _, told, turned = recording.followed
    first, last = (round(when * motion.rate) for when in (told.began, told.ended))
    touches = np.array(recording.contacts)[first:last]
    assert (~touches.any(1)).sum() > 0.1 * motion.rate, "it leaves the floor"
    assert touches[-1].all(), "and stands"
    assert turned.reached_heading == pytest.approx(0.6, abs=np.radians(6))


def test_feet_that_land_together_land_where_both_left_from(walker):
    """Neither is the one that stands: else each goes on from where the other is on its way to."""
    character, motion, _ = walker
    reference = Reference.build(character, hopping(walker).motion(character, motion))
    walking = Walking(character, reference)
    air = np.flatnonzero((reference.support == 0) & (np.arange(len(reference.support)) > 0))
    stood = np.array([[0.05, 0.0], [-0.03, 0.02]])
    for foot in range(2):
        walking._stands(foot, stood[foot])
    soles = [SimpleNamespace(clearance=1.0, x=0.0, y=0.0)] * 2
    middle, ahead = stood.mean(0), walking._ahead[air[0]]
    for step in air:
        goals = reference.goals[step]
        com = goals[COM] + [*(middle + 0.02 * ahead), 0.0]  # 2 cm ahead of where it is to be
        walking.update(step, com, goals[VELOCITY], goals, (0.0, 0.0), soles, ())
    assert walking.offsets[0] == pytest.approx(walking.offsets[1], abs=1e-3)
    moved = (walking.offsets[0] - middle) @ ahead
    assert 0.005 < moved < 0.015, "not all of it, which is where each would lead the other"

# SPDX-License-Identifier: GPL-3.0-or-later
"""Walks that are commanded: the carrier's journey, the steps of its length, what bodies make of it,
and scripts."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

from poise.controller import Gains, Reference, Settings, Simulation
from poise.controller.exceptions import MotionError, SettingsError
from poise.controller.geometry.rotations import matrix_from_quaternion
from poise.controller.geometry.skeleton import FEET
from poise.controller.geometry.stance import LEFT, RIGHT, runs
from poise.controller.reference.commands import (
    Command,
    Script,
    Shove,
    Strike,
    Toss,
    followed,
    journey,
    meant,
)
from poise.controller.reference.gait import Cycle, Gait, Walk, _averaged, walking_target
from poise.controller.simulation.scenario import tosses

SPEED, PERIOD, RATE = 1.25, 1.1, 60.0
STRIKES = (Strike(0.2, 1), Strike(0.7, -1))


def gone(*commands, seconds=20.0, most_turn=np.pi / 3, strikes=STRIKES, trim=()):
    count = round(seconds * RATE) + 1
    return journey(commands, strikes, SPEED, PERIOD, most_turn, RATE, count, trim)


# --- The journey ----------------------------------------------------------------------------------


def test_who_is_commanded_nothing_new_goes_on_evenly():
    found, times = gone(Command(0.0)), np.arange(1201) / RATE
    assert np.abs(found.distances - SPEED * times).max() < 1e-9
    assert np.abs(found.points - found.distances[:, None] * [1, 0, 0]).max() < 1e-9
    assert np.abs(found.cycles - times / PERIOD).max() < 1e-9
    assert (found.strides == 1).all() and (found.yaw == 0).all()


def test_strides_are_as_long_as_what_is_gone_in_a_round():
    found = gone(Command(0.0, 0.8), Command(5.0, 1.35), Command(12.0, 0.7))
    length = SPEED * PERIOD
    rounds = np.diff(found.distances) / np.diff(found.cycles)
    assert np.abs(rounds - length * found.strides[:-1]).max() < 1e-9
    periods = 1 / (np.diff(found.cycles) * RATE)
    assert (periods > PERIOD).tolist() == (found.speeds[:-1] < SPEED).tolist()


def test_speed_follows_as_a_body_can_and_gets_there():
    found = gone(Command(0.0, 0.8), Command(5.0, 1.35))
    assert found.speeds[0] == pytest.approx(0.8) and found.speeds[-1] == pytest.approx(1.35)
    rates = np.diff(found.speeds) * RATE
    assert rates.min() >= 0 and rates.max() < 0.3 + 1e-9
    assert np.abs(np.diff(rates)).max() * RATE < 3.0, "m/s^3"
    assert found.speeds[: round(4.7 * RATE)] == pytest.approx(0.8), "not before"
    assert found.speeds[round(7.3 * RATE)] == pytest.approx(1.35)


@pytest.mark.parametrize("heading", [-3.0, 0.5, 2 * np.pi])
def test_headings_are_turned_to_as_commanded(heading):
    found = gone(Command(0.0, 0.9), Command(4.0, heading=heading))
    assert np.abs(found.yaw[: round(4 * RATE)]).max() < 1e-9
    assert found.yaw[-1] == pytest.approx(heading, abs=1e-3), "also all the way round"
    in_a_round = np.interp(found.cycles[:-90] + 1, found.cycles, found.yaw) - found.yaw[:-90]
    assert np.abs(in_a_round).max() < np.radians(60) + 1e-9
    steps = np.diff(found.points, axis=0)
    directions = np.exp(1j * found.yaw[:-1])
    assert np.abs(steps @ [1, 1j, 0] / np.linalg.norm(steps, axis=1) - directions).max() < 1e-9
    # Half of the turn is done in the time that it takes at least, and little more.
    took = np.flatnonzero(np.abs(found.yaw - heading) < np.radians(5))[0] / RATE - 4.0
    assert took < abs(heading) / 0.6 + 1.0


def test_a_journey_goes_evenly_on_beyond_its_ends():
    found = gone(Command(0.0, 0.9), Command(2.0, heading=1.0))
    count = len(found.speeds)
    beyond = found.at(np.array([-60, 0, count - 1, count + 59]))
    assert beyond.distances[0] == pytest.approx(-0.9)
    assert beyond.distances[3] - beyond.distances[2] == pytest.approx(0.9)
    assert beyond.points[0] == pytest.approx([-0.9, 0, 0])
    ahead = beyond.points[3] - beyond.points[2]
    assert ahead == pytest.approx([0.9 * np.cos(1.0), 0.9 * np.sin(1.0), 0], abs=2e-3)


def test_who_is_to_stand_slows_down_and_stops_where_a_foot_comes_down():
    found = gone(Command(0.0, 1.2), Command(4.0, stands=True), Command(12.0, heading=1.0))
    stands = found.standing == 1
    first = int(np.argmax(stands))
    assert 4.0 < first / RATE < 8.0 and stands[first:].all(), "and goes on doing so"
    assert found.speeds[first:].max() == 0 and np.ptp(found.distances[first:]) == 0
    assert round(float(found.cycles[first] % 1), 6) in (0.2, 0.7)
    begun = int(np.argmax(found.standing > 0)) - 1
    assert found.cycles[first] - found.cycles[begun] == pytest.approx(0.5, abs=0.02), "one step"
    assert found.speeds[begun] == pytest.approx(0.65), "slow by then"
    assert (np.diff(found.standing) >= 0).all() and np.abs(np.diff(found.speeds)).max() < 0.1
    assert (found.yaw == 0).all(), "who stands does not turn"


def test_who_is_to_walk_again_leans_over_one_foot_and_goes_off_with_the_other():
    found = gone(
        Command(0.0, 1.0), Command(3.0, stands=True), Command(9.0, heading=0.8, stands=False)
    )
    stands = found.standing == 1
    last = len(stands) - 1 - int(np.argmax(stands[::-1]))
    assert 9.5 < last / RATE < 9.8, "the weight goes over first"
    side = {0.2: 1, 0.7: -1}[round(float(found.cycles[last] % 1), 3)]
    assert side * found.leaning[last] == pytest.approx(0.87, abs=0.05)
    assert (side * found.leaning >= 0).all() and (found.leaning[found.standing == 0] == 0).all()
    assert found.speeds[-1] == pytest.approx(1.0), "as fast as before"
    assert found.yaw[last] == pytest.approx(0, abs=0.02) and found.yaw[-1] == pytest.approx(
        0.8, abs=1e-2
    )


def test_a_speed_alone_lets_who_stands_walk_and_a_stand_may_be_the_begin():
    found = gone(Command(0.0, stands=True), Command(3.0, 0.8))
    assert (found.standing[: round(3 * RATE)] == 1).all()
    assert found.cycles[0] == pytest.approx(0.2) and found.speeds[-1] == pytest.approx(0.8)


def test_who_is_told_otherwise_in_time_does_not_stop():
    found = gone(Command(0.0, 1.2), Command(4.0, stands=True), Command(4.5, stands=False))
    assert (found.standing == 0).all() and found.speeds[-1] == pytest.approx(1.2)


@pytest.mark.parametrize(
    ("commands", "told"),
    [
        (
            [Command(0.0, 3.0)],
            r"walk at 3 m/s; this clip, of 1\.25 m/s, makes walks of 0\.62",
        ),
        ([Command(1.0, 0.1)], "choose a speed between, or a clip that is slower or faster"),
        ([Command(5.0), Command(4.0)], "at 4 s comes after one at 5 s: sort them"),
        ([Command(float("nan"))], "not a number"),
        ([Command(0.0, heading=float("inf"))], "not a number"),
    ],
)
def test_commands_that_no_walk_follows(commands, told):
    with pytest.raises(SettingsError, match=told):
        gone(*commands)


# --- The steps ------------------------------------------------------------------------------------


@pytest.mark.parametrize("pace", [0.6, 1.1])
def test_feet_that_stand_stay_where_they_are_at_any_pace(walker, pace):
    character, motion, cycle = walker
    speed = cycle.length / cycle.period * motion.rate
    walk = Walk(cycle, 8.0, commands=(Command(0.0, pace * speed),))
    reference = Reference.build(character, walk.motion(character, motion))
    joints, _ = character.pose(reference.trajectory)
    travelled = np.linalg.norm((joints[-1, 0] - joints[0, 0])[:2]) / 8.0
    assert travelled == pytest.approx(pace * speed, rel=0.02)
    for foot, bit in zip(FEET, (LEFT, RIGHT), strict=True):
        stands = (reference.stance & bit) > 0
        alone = stands[1:] & stands[:-1]
        ankle = np.linalg.norm(np.diff(joints[:, foot, :2], axis=0), axis=1) * motion.rate
        assert np.median(ankle[alone]) < 0.1 * pace * speed, "it rolls on"


def test_a_walk_without_commands_is_written_as_before(walker):
    _, _, cycle = walker
    plain = Walk(cycle, 5.0)
    assert "commands" not in plain.as_dict() and Walk.from_dict(plain.as_dict()) == plain
    led = Walk(cycle, 5.0, commands=(Command(0.0, 1.0), Command(2.0, heading=0.5)))
    assert Walk.from_dict(json.loads(json.dumps(led.as_dict()))).commands == led.commands


def test_a_body_goes_as_it_is_commanded(walker):
    """A right angle, faster and slower, under noise."""
    character, motion, cycle = walker
    commands = (
        Command(0.0, 1.0),
        Command(3.0, heading=np.pi / 2),
        Command(7.0, 0.75),
        Command(11.0, 1.15, -0.5),
    )
    endless = Walk(cycle, 18.0, commands=commands).motion(character, motion)
    gains = Gains.default(character, walking=True)
    recording = Simulation(character, endless, gains, settings=Settings(noise=1.0, seed=2)).run()
    assert recording.success
    found = endless.followed(character, recording.com)
    assert [one.speed for one in found] == [1.0, 1.0, 0.75, 1.15]
    for one in found:
        assert one.reached_speed == pytest.approx(one.speed, rel=0.1)
        assert one.reached_heading == pytest.approx(one.heading, abs=np.radians(5))
    fallen = endless.followed(character, recording.com[: round(9 * motion.rate)])
    assert [np.isfinite(one.reached_speed) for one in fallen] == [True, True, False, False]


@pytest.mark.slow(captured=False)
def test_who_goes_into_a_bend_is_helped_from_outside_as_who_goes_straight_on(walker):
    """What the controller sees is turned; the force is in the world."""
    character, motion, cycle = walker
    gains, most = Gains.default(character, walking=True), []
    for heading in (0.0, 2.5):
        commands = Command(0.0, 1.0), Command(2.0, 1.0, heading)
        endless = Walk(cycle, 8.0, commands=commands).motion(character, motion)
        settings = Settings(outside_help=1.0)
        recording = Simulation(character, endless, gains, settings=settings).run()
        assert recording.success, recording.why()
        most.append(recording.summary()["residual_most"])
    assert most[0] > 0 and most[1] < 1.5 * most[0]


def stopping(cycle, rate, *, until=8.0):
    """A Walk that stands from 2 s on, and later walks again, to the left."""
    speed = cycle.length / cycle.period * rate
    commands = Command(0.0, 0.9 * speed), Command(2.0, stands=True)
    again = Command(until, heading=np.pi / 2, stands=False)
    return Walk(cycle, until + 8.0, commands=(*commands, again))


def test_who_stands_does_so_on_both_soles_side_by_side_under_the_weight(walker):
    character, motion, cycle = walker
    endless = stopping(cycle, motion.rate).motion(character, motion)
    reference = Reference.build(character, endless)
    at = round(7 * motion.rate)
    assert endless.walk.journey(motion.rate).standing[at] == 1 and reference.stance[at] == 3
    joints, frames = (values[at] for values in character.pose(reference.trajectory))
    ahead = frames[0, :2, 0] / np.linalg.norm(frames[0, :2, 0])
    left, right = joints[FEET, :2]
    assert abs((left - right) @ ahead) < 0.03, "side by side"
    assert (left - right) @ [-ahead[1], ahead[0]] > 0.08
    corners = character.sole_corners(joints[None], frames[None])[0]
    assert np.abs(corners[..., 2] - character.ground).max() < 0.01
    com = character.body_centres(joints[None], frames[None])[0].T @ character.masses
    middle = corners[:, :4, :2].mean((0, 1))  # of heel and ball
    assert np.abs(com[:2] / character.mass - middle).max() < 0.03


@pytest.mark.slow(captured=False)
def test_a_body_stops_stands_still_and_walks_on(walker):
    character, motion, cycle = walker
    endless = stopping(cycle, motion.rate).motion(character, motion)
    gains = Gains.default(character, walking=True)
    recording = Simulation(character, endless, gains, settings=Settings(noise=1.0, seed=3)).run()
    assert recording.success
    joints = recording.joints()
    still = joints[round(6 * motion.rate) : round(8.3 * motion.rate)]
    assert np.ptp(still[:, FEET], axis=0).max() < 0.002, "neither foot slides"
    com = recording.com[round(6 * motion.rate) : round(8 * motion.rate)]
    assert np.ptp(com, axis=0).max() < 0.02
    walks, stands, again = endless.followed(character, recording.com)
    assert stands.speed == 0 and stands.reached_speed < 0.02 and np.isnan(stands.reached_heading)
    assert again.speed == walks.speed
    assert again.reached_heading == pytest.approx(np.pi / 2, abs=np.radians(6))


def test_who_is_only_to_stand_stands(walker):
    character, motion, cycle = walker
    walk = Walk(cycle, 4.0, commands=(Command(0.0, stands=True),))
    recording = Simulation(
        character, walk.motion(character, motion), Gains.default(character, walking=True)
    ).run()
    assert recording.success and np.ptp(recording.com[:, :2], axis=0).max() < 0.05


# --- Another gait ---------------------------------------------------------------------------------


def test_between_two_gaits_periods_and_steps_are_between():
    other = (2 * SPEED, 0.8 * PERIOD, False)
    found = journey(
        (Command(0.0, SPEED), Command(1.0, 2 * SPEED)),
        STRIKES,
        SPEED,
        PERIOD,
        1.0,
        RATE,
        901,
        ((0.1, 0.1), (9.0, 9.0)),
        other,
    )
    periods = 1 / (np.diff(found.cycles) * RATE)
    assert periods[0] == pytest.approx(PERIOD) and periods[-1] == pytest.approx(0.8 * PERIOD)
    assert (np.diff(periods) <= 1e-9).all()
    assert found.blend[0] == 0 and found.blend[-1] == 1
    assert found.blend == pytest.approx(found.speeds / SPEED - 1)
    rounds = np.diff(found.distances) / np.diff(found.cycles)
    natural = (1 - found.blend) * SPEED * PERIOD + found.blend * other[0] * other[1]
    assert rounds == pytest.approx((found.strides * natural)[:-1])
    assert found.strides[[0, -1]] == pytest.approx([1, 1])


def test_a_walk_becomes_a_run_in_a_moment_beside_a_step_and_a_walk_again():
    """From the middle on it is all run, which it goes over to within 0.1 s, 0.1 of a cycle after a
    foot came down, and back to half of each 0.2 after one."""
    commands = Command(0.0, SPEED), Command(1.0, 2 * SPEED), Command(10.0, SPEED)
    other = 2 * SPEED, 0.8 * PERIOD, True
    trim = ((0.1, 0.1), (9.0, 9.0))
    found = journey(commands, STRIKES, SPEED, PERIOD, 1.0, RATE, 1201, trim, other)
    linear = found.speeds / SPEED - 1
    apart = found.blend - linear
    runs = np.flatnonzero(found.blend > 1 - 1e-9)
    assert linear[runs[0]] < 0.65 and linear[runs[-1]] < 0.5
    steps = np.flatnonzero((apart > 1e-9) & (found.blend < 1 - 1e-9))
    up, down = steps[steps < 600], steps[steps > 600]
    assert len(up) <= 0.1 * RATE + 1 and len(down) <= 0.1 * RATE + 1
    for between, since in ((up, 0.1), (down, 0.2)):
        middle = found.cycles[between].mean()
        phases = [(middle - strike.share - since + 0.25) % 0.5 - 0.25 for strike in STRIKES]
        assert np.abs(phases).max() < 0.02
    still = np.setdiff1d(np.arange(1201), np.arange(up[0], down[-1] + 1))
    assert np.abs(apart[still]).max() < 1e-9, "before and after it is a blend as ever"
    rounds = np.diff(found.distances) / np.diff(found.cycles)
    natural = (1 - found.blend) * SPEED * PERIOD + found.blend * other[0] * other[1]
    assert rounds == pytest.approx((found.strides * natural)[:-1]), "steps are as long as ever"


def test_who_is_to_run_begins_at_a_walk():
    """Nobody begins in the air."""
    told = (Command(0.0, 2 * SPEED),), STRIKES, SPEED, PERIOD, 1.0, RATE, 601
    trim = ((0.1, 0.1), (9.0, 9.0))
    for flies, first in ((True, SPEED), (False, 2 * SPEED)):
        found = journey(*told, trim, (2 * SPEED, 0.8 * PERIOD, flies))
        assert found.speeds[[0, -1]] == pytest.approx([first, 2 * SPEED])


def test_feet_of_both_gaits_come_down_together(walker):
    character, motion, cycle = walker
    gait = Gait.of(character, motion, cycle)
    assert abs(gait.facing) < 0.2, "it looks where it goes"
    shares = np.array([0.3, 0.9])
    strikes = (Strike(0.3, 1), Strike(0.9, -1))
    own = {one.side: one.share for one in gait.strikes}
    assert gait.phase(shares, strikes) == pytest.approx(np.array([own[1], own[-1]]) * cycle.period)
    every = np.linspace(0, 1, 200, endpoint=False)
    steps = np.diff(np.unwrap(gait.phase(every, strikes), period=cycle.period))
    assert (steps > 0).all() and steps.sum() == pytest.approx(cycle.period * 199 / 200, abs=0.5)


def test_a_gait_that_is_blended_with_itself_is_the_same(walker):
    """At twice its speed it would be another one; there it has the same poses, and longer steps."""
    character, motion, cycle = walker
    gait = Gait.of(character, motion, cycle)
    speed = gait.speed
    fast = replace(gait, speed=1.2 * speed, period=gait.period / 1.2)
    walk = Walk(cycle, 8.0, commands=(Command(0.0, speed),))
    alone = Reference.build(character, walk.motion(character, motion))
    both = replace(walk, other=fast).motion(character, motion)
    assert np.allclose(Reference.build(character, both).trajectory.angles, alone.trajectory.angles)
    assert Walk.from_dict(json.loads(json.dumps(both.walk.as_dict()))).other == fast
    quick = replace(walk, commands=(Command(0.0, 1.2 * speed),), trim=((0.1, 0.1), (9.0, 9.0)))
    quick = replace(quick, other=fast).motion(character, motion)
    built = Reference.build(character, quick)
    count = round(5 * gait.period * motion.rate / 1.2)
    apart = np.ptp(built.trajectory.angles[:count], axis=0) - np.ptp(
        alone.trajectory.angles[:count], axis=0
    )
    assert np.abs(apart).max() < np.radians(8)


def test_a_clip_with_more_than_two_steps_is_not_blended(walker):
    character, motion, cycle = walker
    longer = replace(cycle, first=cycle.first - 5, last=cycle.last + 40)
    with pytest.raises(MotionError, match="cannot be blended with another walk"):
        Gait.of(character, motion, longer)


# --- What is reached ------------------------------------------------------------------------------


def test_a_carrier_is_told_what_a_body_needs_to_reach_a_speed():
    """In between evenly, and what was never reached is refused."""
    trim = ((0.6, 0.62), (1.2, SPEED), (1.5, 1.63))
    found = gone(Command(0.0, 1.35), Command(10.0, 0.6), trim=trim)
    assert found.speeds[round(9 * RATE)] == pytest.approx((SPEED + 1.63) / 2)
    assert found.speeds[-1] == pytest.approx(0.62)
    stands = gone(Command(0.0, 1.0), Command(2.0, stands=True), trim=trim)
    assert stands.speeds[-1] == 0
    with pytest.raises(SettingsError, match=r"1\.6 m/s; this clip, .* of 0\.60 to 1\.50 m/s"):
        gone(Command(0.0, 1.6), trim=trim)


def test_steps_are_counted_until_speed_and_heading_are_as_commanded():
    """Of a body that is where its carrier is, but for its speed until 7 s."""
    commands = Command(0.0), Command(5.0, 1.0), Command(9.0, heading=1.0), Command(15.0, None)
    journeyed = gone(*commands)
    found = followed(commands, journeyed, STRIKES, journeyed.points, RATE, 0.0, SPEED)
    landings = 1 + np.flatnonzero(
        np.diff(np.floor(journeyed.cycles - 0.2) + np.floor(journeyed.cycles - 0.7))
    )
    first, slower, turned, later = (one.steps for one in found)
    assert first == 3, "after the round that a speed is taken over"
    for at, steps in ((5.0, slower), (9.0, turned)):
        assert 1 <= steps <= 6
        settled = landings[landings > at * RATE][steps - 1]
        round_before = slice(landings[np.searchsorted(landings, settled) - 2], settled)
        assert journeyed.speeds[round_before].mean() == pytest.approx(1.0, rel=0.08)
    assert later == 1, "it goes on as it went"
    points = journeyed.points * [1.2, 1.0, 1.0]
    assert followed(commands, journeyed, STRIKES, points, RATE, 0.0, SPEED)[0].steps is None
    few = journeyed.points[: round(6 * RATE)]
    assert [one.steps for one in followed(commands, journeyed, STRIKES, few, RATE, 0.0, SPEED)][
        2:
    ] == [None, None]


def test_what_had_no_round_left_has_reached_nothing():
    commands = Command(0.0), Command(5.0, heading=0.4), Command(5.4, heading=0.0)
    commands += (Command(9.5, heading=1.0),)
    found = gone(*commands, seconds=10.0)
    told = followed(commands, found, STRIKES, found.points, RATE, 0.0, SPEED)
    assert [np.isfinite(one.reached_speed) for one in told] == [True, False, True, False]
    assert [one.steps is None for one in told] == [False, True, False, True]


def test_who_stands_from_the_start_has_reached_that():
    commands = Command(0.0, stands=True), Command(3.0, stands=False)
    found = gone(*commands)
    stands, _ = followed(commands, found, STRIKES, found.points, RATE, 0.0, SPEED)
    assert stands.reached_speed == pytest.approx(0, abs=1e-9) and stands.steps == 0


def test_headings_are_reached_by_as_many_turns_as_were_made():
    """Twenty turns in ten seconds are not."""
    commands = (Command(0.0, heading=40 * np.pi),)
    found = gone(*commands, seconds=10.0)
    (told,) = followed(commands, found, STRIKES, found.points, RATE, 0.0, SPEED)
    assert told.reached_heading == pytest.approx(found.yaw[-1], abs=1.0)
    assert told.steps is None and told.reached_heading < 4 * np.pi


def test_who_stands_is_told_after_how_many_steps():
    commands = Command(0.0), Command(5.0, stands=True)
    found = gone(*commands)
    _, stands = followed(commands, found, STRIKES, found.points, RATE, 0.0, SPEED)
    done = found.cycles[-1] - found.cycles[round(5 * RATE)]
    assert abs(stands.steps - 2 * done) <= 1
    _, fell = followed(commands, found, STRIKES, found.points[:330], RATE, 0.0, SPEED)
    assert fell.steps is None


# --- Sideways -------------------------------------------------------------------------------------


def test_who_goes_sideways_is_carried_aside_and_looks_ahead():
    found = gone(Command(0.0, 0.9), Command(4.0, aside=0.2), Command(12.0, aside=0.0))
    assert (found.yaw == 0).all() and found.speeds == pytest.approx(0.9)
    x, y, _ = np.diff(found.points, axis=0).T * RATE
    assert x == pytest.approx(0.9) and y[: round(4 * RATE)] == pytest.approx(0, abs=1e-9)
    assert y[round(6 * RATE)] == pytest.approx(0.2) and y[-1] == pytest.approx(0, abs=1e-9)
    assert np.abs(np.diff(y)).max() * RATE < 0.3 + 1e-9, "as quickly as speeds change"
    assert found.sidled == pytest.approx(found.points[:, 1])
    turned = gone(Command(0.0, 0.9), Command(3.0, heading=np.pi / 2), Command(9.0, aside=-0.2))
    ahead, left = np.diff(turned.points, axis=0)[-1, [1, 0]] * RATE
    assert (ahead, left) == (pytest.approx(0.9), pytest.approx(0.2)), "to its right"


def test_who_is_to_stand_and_goes_sideways_steps_on_the_spot():
    found = gone(Command(0.0, stands=True), Command(3.0, aside=0.3), Command(12.0, stands=True))
    assert np.abs(found.distances).max() < 1e-9
    assert np.diff(found.sidled)[round(7 * RATE)] * RATE == pytest.approx(0.3)
    assert found.strides[round(7 * RATE)] == pytest.approx(0)
    assert np.diff(found.cycles)[round(7 * RATE)] > 0 and found.standing[-1] == 1
    assert np.ptp(found.sidled[-60:]) == 0
    slows = gone(Command(0.0, 0.9), Command(3.0, stands=True, aside=0.3), Command(14.0, 0.9))
    assert np.diff(slows.distances)[round(12 * RATE)] == pytest.approx(0, abs=1e-9)
    assert np.diff(slows.distances)[-1] * RATE == pytest.approx(0.9), "and goes ahead again"
    assert np.abs(np.diff(slows.speeds)).max() * RATE < 0.7


def test_who_hurries_goes_sideways_less():
    speeds = 1.25, 1.5, 1.7
    paces = [
        journey(
            (Command(0.0, speed), Command(1.0, aside=0.3)),
            STRIKES,
            1.6,
            PERIOD,
            1.0,
            RATE,
            600,
        )
        for speed in speeds
    ]
    found = [float(np.diff(one.sidled)[-1] * RATE) for one in paces]
    assert found == [pytest.approx(0.3), pytest.approx(0.15), pytest.approx(0.0)]


def test_nobody_goes_sideways_faster_than_bodies_can():
    with pytest.raises(
        SettingsError, match=r"at 2 s is to go sideways at -0\.5 m/s.* -0\.3 to 0\.3"
    ):
        gone(Command(0.0), Command(2.0, aside=-0.5))
    with pytest.raises(SettingsError, match="not a number"):
        gone(Command(0.0, aside=np.nan))


def test_feet_stay_where_they_came_down_beside_and_never_across_each_other(walker):
    character, motion, cycle = walker
    commands = Command(0.0, stands=True), Command(1.0, aside=0.3)
    walk = Walk(cycle, 8.0, commands=commands).motion(character, motion)
    target, contacts = walking_target(character, walk, 8.0)
    joints, _ = character.pose(target)
    yaw = walk.heading(character)
    across = np.array([-np.sin(yaw), np.cos(yaw), 0.0])
    left, right = (joints[:, foot] @ across for foot in FEET)
    assert (left - right).min() > 0.08
    assert left[-1] - left[0] > 1.2 and right[-1] - right[0] > 1.2
    for places, down in zip((left, right), contacts.T, strict=True):
        for start, stop in runs(down):
            assert np.ptp(places[start:stop]) < 0.03


def test_weight_goes_where_an_inverted_pendulum_that_is_borne_so_is():
    """c - c'' / omega^2 = p, of what is pressed on first here, then there."""
    rate, omega = 200.0, 3.3
    pressed = np.where(np.arange(2000) < 1000, 0.0, 0.3)
    found = _averaged(pressed, omega / rate)
    bends = np.diff(found, 2) * rate**2
    inside = np.abs(np.arange(1, 1999) - 999.5) > 2
    left = (found[1:-1] - bends / omega**2 - pressed[1:-1])[inside]
    assert np.abs(left[100:-100]).max() < 0.01
    assert found[1000] == pytest.approx(0.15, abs=0.01)


@pytest.mark.slow(captured=False)
def test_a_body_steps_aside_and_goes_sideways(walker):
    character, motion, cycle = walker
    commands = (
        Command(0.0, stands=True),
        Command(1.0, aside=0.2),
        Command(8.0, speed=0.8, aside=-0.2),
    )
    walk = Walk(cycle, 15.0, commands=commands).motion(character, motion)
    recording = Simulation(character, walk, Gains.default(character, walking=True)).run()
    assert recording.success
    _, aside, both = walk.followed(character, recording.com)
    assert (aside.speed, aside.heading) == (pytest.approx(0.2), pytest.approx(np.pi / 2))
    yaw, rate = walk.heading(character), round(walk.rate)
    moved = recording.com[8 * rate] - recording.com[rate]
    assert moved @ [-np.sin(yaw), np.cos(yaw), 0.0] > 0.7, "of 0.2 m/s, as soon as it steps"
    assert abs(moved @ [np.cos(yaw), np.sin(yaw), 0.0]) < 0.6
    assert both.speed == pytest.approx(np.hypot(0.8, 0.2))
    assert both.reached_speed == pytest.approx(both.speed, rel=0.08)
    assert both.reached_heading == pytest.approx(np.arctan2(-0.2, 0.8), abs=0.1)
    ahead = matrix_from_quaternion(recording.body_rotations[-60:, 0])[:, :2, 0].mean(0)
    looks = np.arctan2(ahead[1], ahead[0]) - walk.heading(character)
    assert abs((looks + np.pi) % (2 * np.pi) - np.pi) < 0.15, "ahead, not where it goes"


# --- Scripts --------------------------------------------------------------------------------------

GOOD = {"version": 1, "seconds": 9, "commands": [{"at": 0, "speed": 1}, {"at": 2, "heading": 90}]}


def write(folder, content):
    path = folder / "take.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_a_script_is_read(tmp_path):
    script = Script.load(write(tmp_path, GOOD))
    assert script == Script(9.0, (Command(0.0, 1.0), Command(2.0, None, np.pi / 2)))
    skills = [
        {"at": 1, "speed": 0},
        {"at": 2, "skill": "walk"},
        {"at": 3, "skill": "stand", "heading": 0},
        {"at": 4, "skill": "walk", "speed": 0.8},
    ]
    assert Script.load(write(tmp_path, GOOD | {"commands": skills})).commands == (
        Command(1.0, stands=True),
        Command(2.0, stands=False),
        Command(3.0, None, 0.0, stands=True),
        Command(4.0, 0.8, stands=False),
    )


def test_a_script_goes_sideways(tmp_path):
    told = [
        {"at": 0, "speed": 1},
        {"at": 1, "sideways": 0.2},
        {"at": 2, "speed": 0, "sideways": -0.3},
        {"at": 3, "sideways": 0},
        {"at": 4, "skill": "walk", "sideways": 0.1},
        {"at": 5, "skill": "stand"},
    ]
    script = Script.load(write(tmp_path, GOOD | {"commands": told}))
    assert script.commands[1:] == (
        Command(1.0, aside=0.2),
        Command(2.0, stands=True, aside=-0.3),
        Command(3.0, aside=0.0),
        Command(4.0, stands=False, aside=0.1),
        Command(5.0, stands=True),
    )
    assert [(one.goes, one.aside) for one in meant(script.commands, SPEED)] == [
        *((1.0, 0.0), (1.0, 0.2), (0.0, -0.3), (0.0, 0.0), (1.0, 0.1), (0.0, 0.0))
    ]
    script.save(tmp_path / "again.json")
    assert Script.load(tmp_path / "again.json") == script
    assert json.loads((tmp_path / "again.json").read_text())["commands"] == told
    walk = Walk(Cycle(0, 66, (1.4, 0.0), 0.0, 0.01), 9.0, commands=script.commands)
    again = Walk.from_dict(json.loads(json.dumps(walk.as_dict())))
    assert again.commands == walk.commands
    one, two, *_ = walk.as_dict()["commands"]
    assert "aside" not in one and two["aside"] == 0.2, "as before there was such"


PUSH = {"part": "chest", "newtons": 60, "direction": 180, "seconds": 0.3}


def pushed(**changes):
    return GOOD | {"commands": [{"at": 1, "push": {**PUSH, **changes}}]}


def test_a_script_throws(tmp_path):
    one = {"at": 1, "speed": 1, "throw": {"mass": 3, "direction": 90}}
    script = Script.load(write(tmp_path, GOOD | {"commands": [one]}))
    (command,) = script.commands
    assert (command.toss, command.speed) == (Toss(3.0, np.pi / 2), 1.0)
    assert Command.from_dict(asdict(command)) == command
    path = tmp_path / "again.json"
    script.save(path)
    assert Script.load(path) == script
    ((ball,), yaw) = tosses(script.commands, 0.5), 0.5
    flies = ball.launched((0.0, 0.0, 1.5)).velocity[:2]
    assert np.arctan2(flies[1], flies[0]) == pytest.approx(yaw + np.pi / 2)


@pytest.mark.parametrize(
    ("throw", "words"),
    [
        ({"mass": 3}, "The throw of command 1 .* lacks 'direction'"),
        ({"mass": 0, "direction": 0}, "The throw of command 1 .* has 0 as 'mass': give it"),
        ({"mass": "big", "direction": 0}, "has 'big' as 'mass', which is no number"),
        ({"mass": 3, "direction": 0, "speed": 5}, "has the key 'speed'"),
        (3, "is no JSON object"),
    ],
)
def test_no_script_throws_what_cannot_be(tmp_path, throw, words):
    with pytest.raises(SettingsError, match=words):
        Script.load(write(tmp_path, GOOD | {"commands": [{"at": 1, "throw": throw}]}))


def test_a_script_pushes(tmp_path):
    script = Script.load(write(tmp_path, pushed()))
    assert script.commands == (Command(1.0, push=Shove(60.0, np.pi, 0.3, "trunk")),)
    assert script.speeds == ()
    (command,) = script.commands
    assert Command.from_dict(json.loads(json.dumps(asdict(command)))) == command
    both = GOOD | {"commands": [{"at": 1, "speed": 1, "push": {**PUSH, "part": "thigh_l"}}]}
    (command,) = Script.load(write(tmp_path, both)).commands
    assert (command.speed, command.push.segment) == (1.0, "thigh_l")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (pushed(part="nose"), "is on 'nose', which is none of pelvis, trunk"),
        (pushed(newtons=0.05), "The push of command 1 .* has 0.05 as 'newtons': give it"),
        (pushed(newtons=0), "has 0 as 'newtons'"),
        (pushed(seconds=-1), "has -1 as 'seconds'"),
        (pushed(direction="left"), "has 'left' as 'direction', which is no number"),
        (pushed(strength=3), "has the key 'strength'"),
        (GOOD | {"commands": [{"at": 1, "push": {"newtons": 3}}]}, "lacks 'direction'"),
        (GOOD | {"commands": [{"at": 1, "push": 60}]}, "is no JSON object"),
        (
            GOOD | {"commands": [{"at": 2, "speed": 1}, {"at": 1, "speed": 1}]},
            "the command at 1 s comes after one at 2 s",
        ),
        ("{", "take.json' is not JSON"),
        ([], "is no JSON object"),
        (GOOD | {"version": 2}, "is of version 2: this Poise reads 1"),
        (GOOD | {"skill": "walk"}, "has the key 'skill', which walks do not know: use version"),
        ({"version": 1, "seconds": 9}, "lacks 'commands'"),
        (GOOD | {"commands": []}, "has no list of commands"),
        (GOOD | {"commands": [{"at": 0, "spede": 1}]}, "Command 1 .* has the key 'spede'"),
        (GOOD | {"commands": [{"speed": 1}]}, "Command 1 .* lacks 'at'"),
        (GOOD | {"commands": [{"at": 1}]}, "Command 1 .* commands nothing"),
        (GOOD | {"commands": [{"at": 0, "speed": "fast"}]}, "has 'fast' as 'speed', which is no"),
        (GOOD | {"commands": [{"at": 1, "skill": 3}]}, "has '3' as 'skill': use stand, walk or"),
        (GOOD | {"commands": [{"at": 1, "skill": "stand", "speed": 1}]}, "to stand at 1 m/s"),
        (GOOD | {"commands": [{"at": 1, "skill": "walk", "speed": 0}]}, "to walk at 0 m/s"),
        (GOOD | {"commands": [{"at": True, "speed": 1}]}, "has 'True' as 'at'"),
        (
            '{"version": 1, "seconds": NaN, "commands": [{"at": 0, "speed": 1}]}',
            "'nan' as 'seconds'",
        ),
        (GOOD | {"seconds": 1}, "lasts 1 s, and its last command is at 2 s"),
        (GOOD | {"seconds": 0}, "out of range"),
    ],
)
def test_scripts_that_cannot_be(tmp_path, content, told):
    with pytest.raises(SettingsError, match=told):
        Script.load(write(tmp_path, content))

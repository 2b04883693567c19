# SPDX-License-Identifier: GPL-3.0-or-later
"""Walks that are played: told while they go on, pushed, taken back, and done again."""

from dataclasses import replace
from itertools import groupby, pairwise
from math import pi, radians

import numpy as np
import pytest

from poise.controller import Character, Gains, Settings, Simulation
from poise.controller.exceptions import SettingsError
from poise.controller.geometry.rotations import rotation_about
from poise.controller.geometry.skeleton import SEGMENT_INDEX
from poise.controller.reference.commands import SIDEWAYS, Command, Script, Shove
from poise.controller.reference.gait import Gait, Walk, find_cycle
from poise.controller.reference.played import LASTS, STEADIES, Part, Window, sample_of
from poise.controller.reference.state_machine import FALL, GET_UP, RUN, STAND, WALK
from poise.controller.simulation.play import BALLS, STANDS, Play, balls_of
from poise.controller.simulation.scenario import Collider, Scenario, Solid, shoves, tosses

#: Noise is drawn on and on, so that who loses a number of it walks otherwise.
SETTINGS = Settings(noise=1.0, seed=4)
FALLS = replace(SETTINGS, when_it_falls="brace", get_up=True)
#: [samples] that a command waits.
DELAY = 6


@pytest.fixture
def play(walker, monkeypatch):
    """One that stands, and is told nothing yet; commands wait as long on every machine."""
    monkeypatch.setattr(Play, "_learn_delay", lambda self, _: setattr(self, "_delay", DELAY))
    found = Play(simulation(walker, Walk(walker[2], LASTS, commands=STANDS, played=True)))
    yield found
    found.close()


def simulation(walker, walk, scenario=None, settings=SETTINGS):
    character, motion, _ = walker
    endless = walk.motion(character, motion)
    yaw = endless.heading(character)
    blows = {"pushes": shoves(walk.commands, yaw), "things": tosses(walk.commands, yaw)}
    given = scenario or Scenario(**blows)
    gains = Gains.default(character, walking=True)
    return Simulation(character, endless, gains, settings, scenario=given)


def go_on(play, seconds):
    for _ in range(round(seconds * play.rate)):
        play.advance()
        assert not play.fell


def arrive(play, within):
    """Go on until it is where it was sent, at most so many seconds since it began, and stands."""
    while play.goal is not None:
        go_on(play, 0.1)
        assert play.seconds < within
    go_on(play, 3.0)
    assert play.stands


def again(walker, walk):
    """(n, S, 3) where all segments are of a body that does it again."""
    recording = simulation(walker, walk).run()
    assert recording.success
    return recording.body_positions


@pytest.mark.slow(captured=False)
def test_what_was_played_comes_out_again_to_the_last_bit(walker, play, tmp_path):
    """Through a file, with a push, and a stretch that was taken back."""
    go_on(play, 0.5)
    play.wants(stands=False, speed=0.9)
    go_on(play, 3.0)
    play.wants(heading=0.7)
    go_on(play, 1.0)
    play.push(40.0, 1.2345)
    go_on(play, 1.0)
    before = np.array(play.centres)
    play.push(300.0, 0.0)  # which it will not have met
    play.wants(heading=-2.0)
    go_on(play, 0.4)
    back = len(before) - 10
    play.rewind(back)
    assert play.sample < back and play.heading == pytest.approx(0.7, abs=1e-3)
    while play.sample < back:
        play.advance()
    assert (np.array(play.centres) == before[: back + 1]).all(), "as it was before"
    play.wants(heading=0.0)
    go_on(play, 2.0)
    assert len([one for one in play.commands if one.push]) == 1
    walk = play.walk
    path = tmp_path / "take.json"
    Script(walk.seconds, walk.commands, True).save(path)
    script = Script.load(path)
    assert script.played and script.commands == walk.commands
    same = replace(walk, seconds=script.seconds, commands=script.commands)
    assert (again(walker, same) == np.array(play.centres)).all()


@pytest.fixture
def target(walker, monkeypatch):
    """One that stands, at which balls can be thrown."""
    monkeypatch.setattr(Play, "_learn_delay", lambda self, _: setattr(self, "_delay", DELAY))
    walk = Walk(walker[2], LASTS, commands=STANDS, played=True)
    found = Play(simulation(walker, walk, Scenario(things=balls_of(5.0))))
    yield found
    found.close()


def hit(play, seconds):
    """(3,) [m/s] by how much the velocity of the trunk changes at most within so many seconds."""
    before = len(play.centres)
    go_on(play, seconds)
    trunk = np.array(play.centres[before - 2 :])[:, SEGMENT_INDEX["trunk"]]
    velocities = np.diff(trunk, axis=0) * play.rate
    changes = velocities - velocities[0]
    return changes[np.linalg.norm(changes, axis=1).argmax()]


def test_a_ball_hits_from_where_it_is_thrown(target):
    """It flies for 0.6 s, and what it hits goes on in its direction."""
    go_on(target, 0.5)
    assert target.balls == ()
    target.throw(pi / 2)
    assert np.linalg.norm(hit(target, 0.3)) < 0.05, "it is on its way"
    ((place, radius),) = target.balls
    neck = target.centres[-1][SEGMENT_INDEX["head"]]
    assert radius == pytest.approx((3 * 5.0 / (4 * pi * 100.0)) ** (1 / 3))
    way = (neck - place)[:2] @ [-np.sin(target.yaw), np.cos(target.yaw)]
    assert way == pytest.approx(1.5, abs=0.3), "3 m away, at 5 m/s"
    change = hit(target, 0.6)
    turned = np.arctan2(change[1], change[0]) - target.yaw - pi / 2
    assert np.linalg.norm(change) > 0.2
    assert (turned + pi) % (2 * pi) - pi == pytest.approx(0, abs=radians(25))


@pytest.mark.slow(captured=False)
def test_what_was_thrown_is_thrown_again_to_the_last_bit(walker, target, tmp_path):
    """Through a file, and a stretch that was taken back, of which a ball is thrown no more."""
    go_on(target, 0.5)
    target.wants(stands=False, speed=0.9)
    go_on(target, 2.0)
    target.throw(2.0)
    go_on(target, 1.0)
    before = np.array(target.centres)
    target.throw(-1.0)  # which it will not have met
    go_on(target, 0.4)
    assert len(target.balls) == 2
    back = len(before) - 10
    target.rewind(back)
    while target.sample < back:
        target.advance()
    assert (np.array(target.centres) == before[: back + 1]).all(), "as it was before"
    assert len(target.balls) == 1
    go_on(target, 0.5)
    target.throw(0.3)
    go_on(target, 1.5)
    walk, path = target.walk, tmp_path / "take.json"
    Script(walk.seconds, walk.commands, True).save(path)
    assert Script.load(path).commands == walk.commands
    assert len([one for one in walk.commands if one.toss]) == 2
    assert (again(walker, walk) == np.array(target.centres)).all()


def test_balls_are_counted(target, play):
    for _ in range(BALLS):
        target.throw(0.0)
    with pytest.raises(SettingsError, match=f"All {BALLS} balls have been thrown: go back"):
        target.throw(0.0)
    with pytest.raises(SettingsError, match="All 0 balls"):
        play.throw(0.0)


@pytest.mark.slow(captured=False)
def test_it_goes_as_it_is_told(play):
    play.wants(stands=False, speed=0.9)
    go_on(play, 6.0)
    assert play.pace == pytest.approx(0.9, rel=0.15)
    play.wants(heading=pi / 2)
    go_on(play, 5.0)
    x, y, _ = play.centres[-1][0] - play.centres[-round(play.rate)][0]
    turned = np.arctan2(y, x) - play.yaw
    assert (turned - pi / 2 + pi) % (2 * pi) - pi == pytest.approx(0, abs=radians(12))
    play.wants(stands=True)
    go_on(play, 5.0)
    assert play.pace < 0.1


@pytest.mark.slow(captured=False)
def test_it_steps_aside_as_it_is_told_and_comes_out_again(walker, play):
    go_on(play, 0.3)
    play.wants(aside=0.3)
    assert play.stands and play.way == (0.3, pytest.approx(pi / 2))
    go_on(play, 5.0)
    moved = play.centres[-1][0] - play.centres[0][0]
    left = moved @ [-np.sin(play.yaw), np.cos(play.yaw), 0.0]
    assert left > 0.5 and abs(moved @ [np.cos(play.yaw), np.sin(play.yaw), 0.0]) < 0.2
    play.wants(stands=True)
    assert play.aside == 0 and play.way[0] == 0
    go_on(play, 3.0)
    assert play.pace < 0.1
    assert (again(walker, play.walk) == np.array(play.centres)).all()


def test_nobody_is_told_to_step_aside_faster_than_it_can(play):
    play.wants(aside=-9.0)
    assert play.aside == -SIDEWAYS
    play.wants(stands=False)
    assert play.aside == -SIDEWAYS, "and goes so ahead"
    play.goes_to((9.0, 0.0))
    assert play.aside == 0


@pytest.mark.slow(captured=False)
def test_it_goes_to_a_place_and_stands_there(play):
    go_on(play, 0.5)
    root = play.centres[-1][0][:2]
    turn = play.yaw + 0.5
    goal = root + 3.5 * np.array([np.cos(turn), np.sin(turn)])
    play.wants(speed=0.9)
    play.goes_to(goal)
    arrive(play, 15)
    assert play.pace < 0.1
    assert np.linalg.norm(play.centres[-1][0][:2] - goal) < 0.6
    play.goes_to(root)
    go_on(play, 0.1)
    play.wants(heading=0.0)
    assert play.goal is None, "what is told later comes first"


@pytest.mark.slow(captured=False)
def test_it_goes_along_a_way_and_stands_at_its_end(play):
    go_on(play, 0.5)
    root, along = play.centres[-1][0][:2], np.linspace(0, 2.2, 30)[1:]
    # A bend to the left, 2.5 m wide.
    turn = play.yaw + np.array([[0.0], [pi / 2]])
    ahead, left = np.column_stack([np.cos(turn), np.sin(turn)])
    way = root + 2.5 * (np.sin(along)[:, None] * ahead + (1 - np.cos(along))[:, None] * left)
    play.wants(speed=0.9)
    play.goes_along(way)
    arrive(play, 20)
    gone = np.array([centres[0][:2] for centres in play.centres])
    apart = np.linalg.norm(gone[:, None] - way, axis=-1)
    assert apart.min(0).max() < 0.6, "it passes by all of it"
    assert apart.min(1)[len(gone) // 3 :].max() < 0.6, "and goes nowhere else"
    assert apart[-1, -1] < 0.6


def test_what_is_told_at_once_is_one_command_and_the_last_word_counts(play):
    for angle in (0.1, 0.2, 0.3):
        play.wants(heading=angle)
    play.wants(stands=False)
    go_on(play, 1.5)
    told = [one for one in play.commands[1:] if one.heading is not None]
    assert len(told) <= 2 and told[-1].heading == pytest.approx(0.3, abs=1e-3)
    at = [sample_of(one, play.rate) for one in play.commands]
    assert at == sorted(at) and len(set(at)) == len(at)


def test_speeds_stay_within_what_the_walk_can(play):
    play.wants(speed=9.0)
    assert play.speed == play.fastest
    play.wants(speed=0.01)
    assert play.speed == play.slowest


@pytest.mark.slow(captured=False)
def test_who_falls_goes_on_no_more_and_can_be_taken_back(play):
    go_on(play, 1.0)
    play.push(600.0, 0.0, 0.4)
    for _ in range(round(3 * play.rate)):
        if not play.goes_on:
            break
        play.advance()
    assert play.fell
    play.rewind(round(0.5 * play.rate))
    assert not play.fell and play.sample == 0
    go_on(play, 1.5)
    assert not any(one.push for one in play.commands)


def test_nobody_knows_what_comes_later(walker):
    """A window is the same, whatever is commanded after it has begun."""
    character, motion, cycle = walker
    commands = (Command(0.0, 1.0), Command(1.0, heading=1.0), Command(5.0, 0.8))
    walk = Walk(cycle, 20.0, commands=commands, played=True)
    sample = round(1.0 * motion.rate)
    more = Window(character, motion, walk, 300.0, sample).reference
    less = Window(character, motion, replace(walk, commands=commands[:2]), 300.0, sample).reference
    assert (more.angles == less.angles).all() and (more.way.yaw == less.way.yaw).all()
    straight = Window(character, motion, replace(walk, commands=commands[:1]), 300.0, sample)
    assert not (straight.reference.way.yaw == less.way.yaw).all()


def test_windows_follow_where_commands_come_and_before_they_run_out(walker):
    character, motion, cycle = walker
    commands = (Command(0.0, 1.0), Command(3.0, heading=1.0))
    window = Window(character, motion, Walk(cycle, 20.0, commands=commands, played=True), 300.0, 0)
    assert window.next(commands, motion.rate) == round(LASTS * motion.rate)
    soon = (Command(0.0, 1.0), Command(0.5, heading=1.0))
    assert window.next(soon, motion.rate) == round(0.5 * motion.rate)


def test_what_moves_around_a_player_is_refused(walker):
    walk = Walk(walker[2], LASTS, commands=STANDS, played=True)
    count = walk.count(walker[1].rate)
    positions = np.zeros((count, 3))
    positions[:, 0] = 5.0 + 0.01 * np.arange(count)
    turns = np.tile([1.0, 0, 0, 0], (count, 1))
    cart = Collider("Cart", Solid("box", (0.2, 0.2, 0.2)), positions, turns)
    with pytest.raises(SettingsError, match="'Cart' moves by itself, and nobody knows how long"):
        Play(simulation(walker, walk, Scenario(colliders=(cart,))))


def test_a_script_says_whether_it_was_played(tmp_path):
    path = tmp_path / "take.json"
    path.write_text(
        '{"version": 1, "played": 1, "seconds": 5, "commands": [{"at": 0, "speed": 1}]}'
    )
    with pytest.raises(SettingsError, match="has '1' as 'played': give it true or false"):
        Script.load(path)


def test_who_falls_and_is_to_stop_there_goes_back(play):
    go_on(play, 0.5)
    play.push(900.0, 0.0)
    while play.goes_on and play.seconds < 5:
        play.advance()
    assert play.fell and not play.is_down and play.seconds < 3
    end = len(play.centres)
    play.advance()
    assert len(play.centres) == end, "there is no more"
    play.rewind(10)
    assert play.goes_on and play.commands == STANDS
    go_on(play, 0.5)


@pytest.fixture
def faller(walker, monkeypatch):
    """One that catches itself where it falls, and gets up."""
    monkeypatch.setattr(Play, "_learn_delay", lambda self, _: setattr(self, "_delay", DELAY))
    walk = Walk(walker[2], LASTS, commands=STANDS, played=True)
    found = Play(simulation(walker, walk, settings=FALLS))
    yield found
    found.close()


def knock_over(play):
    """Have it walk, and push it over; until it is down."""
    go_on(play, 0.2)
    play.wants(stands=False, speed=0.9)
    go_on(play, 3.0)
    play.push(700.0, pi / 2)
    while not play.is_down:
        play.advance()
        assert play.seconds < 5


@pytest.mark.slow(captured=False)
def test_who_is_down_goes_back_to_before_and_to_where_it_lies(faller):
    """And what it does a second time is the same, to the last bit."""
    knock_over(faller)
    fell_at = faller.sample
    for _ in range(round(1.5 * faller.rate)):
        faller.advance()
    assert faller.is_down and faller.rises and faller.centres[-1][0, 2] < 0.4
    before = np.array(faller.centres)
    faller.rewind(fell_at + 40)
    assert not faller.is_down
    while faller.sample < fell_at + 40:
        faller.advance()
    assert faller.is_down
    assert (np.array(faller.centres) == before[: fell_at + 41]).all()
    assert [one for one in faller.commands if one.push]
    faller.rewind(round(2.0 * faller.rate))
    assert not [one for one in faller.commands if one.push]
    go_on(faller, 2.0)
    assert not faller.is_down and faller.centres[-1][0, 2] > 0.8


@pytest.mark.slow
def test_who_has_got_up_goes_on_as_it_is_told(walker, faller, tmp_path):
    """In the heading that it was told while it lay; and all of it comes out again, through a file,
    to the last bit."""
    knock_over(faller)
    fell_at = faller.sample
    faller.wants(heading=1.5, speed=0.8)
    seen = [faller.state]
    while faller.is_down:
        faller.advance()
        seen.append(faller.state)
        assert faller.seconds < 15
    assert [state for state, _ in groupby(seen)] == [FALL, GET_UP, STAND]
    up = faller.sample
    go_on(faller, 8.0)
    assert faller.state == WALK
    assert not faller.is_down
    way = faller._com(faller.sample) - faller._com(faller.sample - round(2 * faller.rate))
    apart = np.arctan2(way[1], way[0]) - faller.yaw - 1.5
    assert (apart + pi) % (2 * pi) - pi == pytest.approx(0, abs=radians(20))
    assert faller.pace == pytest.approx(0.8, abs=0.15)
    # A place in the middle of that is come to again from where it got up.
    before = np.array(faller.centres)
    faller.rewind(up + 60)
    assert faller.sample >= up
    while faller.sample < up + 60:
        faller.advance()
    assert (np.array(faller.centres) == before[: up + 61]).all()
    path = tmp_path / "take.json"
    walk = faller.walk
    Script(walk.seconds, walk.commands, True).save(path)
    script = Script.load(path)
    same = replace(walk, seconds=script.seconds, commands=script.commands)
    recording = simulation(walker, same, settings=FALLS).run()
    assert recording.filled and recording.up == up
    assert (recording.body_positions == np.array(faller.centres)).all()
    began, states = zip(*recording.states, strict=True)
    assert states == (STAND, WALK, FALL, GET_UP, STAND)
    assert abs(began[2] - fell_at) <= 1 and abs(began[4] - up) <= 1
    assert [recording.is_down(at) for at in (*began, up)] == [False, False, True, True, True, False]
    for before, after in pairwise(states):
        assert after in faller.machine.after(before)


@pytest.mark.slow
def test_who_follows_a_script_goes_on_with_it_once_it_has_got_up(walker):
    """Also where all of that is known beforehand."""
    commands = (
        Command(0.0, 0.9),
        Command(2.0, push=Shove(700.0, pi / 2, 0.3)),
        Command(21.0, heading=-0.5),
    )
    recording = simulation(walker, Walk(walker[2], 26.0, commands=commands), settings=FALLS).run()
    assert recording.filled and recording.up_at < 12
    com, rate = recording.com, recording.motion.rate
    way = com[-1] - com[-1 - round(2 * rate)]
    assert np.hypot(*way[:2]) / 2 == pytest.approx(0.9, abs=0.15)
    begun, shoved, turned = recording.followed
    assert begun.reached_speed == pytest.approx(0.9, abs=0.1), "again, once it had got up"
    assert shoved.reached_speed == begun.reached_speed, "a push is followed by the same walk"
    assert begun.steps is not None and turned.steps is not None
    assert turned.reached_heading == pytest.approx(-0.5, abs=radians(5))
    assert turned.heading == -0.5
    yaw = recording.motion.heading(recording.character)
    apart = np.arctan2(way[1], way[0]) - yaw + 0.5
    assert (apart + pi) % (2 * pi) - pi == pytest.approx(0, abs=radians(20))


def test_a_part_begins_by_standing_and_turns_the_shorter_way():
    """What was commanded until then comes in one, and all that follows as much later, and turned
    as far."""
    commands = (
        Command(0.0, stands=True),
        Command(1.0, 0.9),
        Command(2.0, heading=3.0),
        Command(3.0, push=Shove(10.0, 0.0, 0.1)),
        Command(12.0, heading=3.5),
        Command(13.0, stands=True),
    )
    part = Part(600, (-3.0, 1.0, 2.0))
    began, told, turned, stands = part.commands(commands, 60.0)
    assert began == Command(0.0, stands=True)
    assert told == Command(STEADIES, 0.9, pytest.approx(6.0 - 2 * pi), False)
    assert (turned.at, turned.heading) == (2.0, pytest.approx(6.5 - 2 * pi))
    assert stands == Command(3.0, stands=True)
    assert Part(600).commands((), 60.0)[1] == Command(STEADIES, heading=0.0, stands=False)
    assert Part(600, stays=True).commands(commands, 60.0) == (Command(0.0, stands=True),)


def test_a_part_is_the_same_elsewhere(walker):
    """Turned, and moved on the floor."""
    character, motion, cycle = walker
    walk = Walk(cycle, 20.0, commands=STANDS, played=True)
    one, other = (
        Window(character, motion, walk, 300.0, 100, part=Part(100, placed)).reference
        for placed in ((0.0, 0.0, 0.0), (0.7, 2.0, -1.0))
    )
    turn = rotation_about(2, 0.7)
    assert other.start[0] == pytest.approx(turn @ one.start[0] + [2.0, -1.0, 0.0], abs=1e-9)
    assert other.start[1] == pytest.approx(turn @ one.start[1], abs=1e-9)
    assert other.angles == pytest.approx(one.angles, abs=1e-9)


def test_who_gets_up_in_a_cycle_without_steps_stands_as_in_a_clip(walker):
    """Nobody could stand in it, and walk on."""
    character, motion, cycle = walker
    shorter = (replace(cycle, first=at, last=at + 4) for at in range(cycle.first, cycle.last))
    few = next(one for one in shorter if not Walk(one, 2.0).steps(character, motion))
    falls = replace(FALLS, noise=0.0)
    for one, walks_on in ((cycle, True), (few, False)):
        endless = Walk(one, 2.0).motion(character, motion)
        found = Simulation(character, endless, Gains.default(character, walking=True), falls)
        assert found.walks_on == walks_on
        assert np.isfinite(found.rising_to(0)[0].root).all()
    for commands in (STANDS, (Command(1.0, heading=0.3),)):
        with pytest.raises(SettingsError, match="No foot comes down in the cycle"):
            Walk(few, 2.0, commands=commands).motion(character, motion)


@pytest.mark.slow
def test_a_run_that_is_played_stands_and_becomes_a_walk_again(
    blender, walker, import_clip, monkeypatch
):
    """Told to slow down in mid-air, by a toe that spins as it lands: none of which is a fall."""
    from poise.addon.rigs import reference

    monkeypatch.setattr(Play, "_learn_delay", lambda self, _: setattr(self, "_delay", 10))
    runner = reference.read(blender.context.scene, import_clip("run")).motion
    body = Character.from_motion(runner)
    other = Gait.of(body, runner, find_cycle(body, runner))
    trim = ((0.5, 0.5), (1.0, 1.0), (1.96, 1.96), (2.87, 2.95))
    walk = Walk(walker[2], LASTS, commands=STANDS, other=other, trim=trim, played=True)
    play = Play(simulation(walker, walk, settings=Settings(outside_help=0.25)))
    try:
        play.wants(stands=False)
        go_on(play, 3.0)
        play.wants(speed=2.87)
        go_on(play, 4.4)
        assert play.state == RUN and play.pace > 1.8
        while play.speed > 1.25:
            play.wants(speed=max(1.2, play.speed - 0.1))
            go_on(play, 0.15)
        go_on(play, 4.0)
        assert play.state == WALK and play.pace == pytest.approx(1.2, abs=0.2)
    finally:
        play.close()

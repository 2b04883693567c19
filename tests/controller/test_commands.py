# SPDX-License-Identifier: GPL-3.0-or-later
"""Walks that are commanded: the carrier's journey, the steps of its length, what bodies make of it,
and scripts."""

import json

import numpy as np
import pytest

from poise.controller import Character, Gains, Reference, Settings, Simulation
from poise.controller.exceptions import SettingsError
from poise.controller.geometry.skeleton import FEET
from poise.controller.geometry.stance import LEFT, RIGHT
from poise.controller.reference.commands import Command, Script, followed, journey
from poise.controller.reference.gait import Walk, find_cycle

SPEED, PERIOD, RATE = 1.25, 1.1, 60.0
_read = {}


def gone(*commands, seconds=20.0, most_turn=np.pi / 3):
    count = round(seconds * RATE) + 1
    return journey(commands, SPEED, PERIOD, most_turn, RATE, count)


@pytest.fixture
def walker(request):
    """(Character, Motion, Cycle) of the captured walk."""
    if not _read:
        bpy = request.getfixturevalue("blender")
        from poise.addon.rigs import reference

        armature = request.getfixturevalue("import_clip")("walk")
        motion = reference.read(bpy.context.scene, armature).motion
        character = Character.from_motion(motion)
        _read["walk"] = character, motion, find_cycle(character, motion)
    return _read["walk"]


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
    yaw = endless.walk.places(character, motion, np.zeros(1, int))[1][0]
    travel = endless.walk.journey(motion.rate)
    found = followed(commands, travel, recording.com, motion.rate, yaw)
    assert [one.speed for one in found] == [1.0, 1.0, 0.75, 1.15]
    for one in found:
        assert one.reached_speed == pytest.approx(one.speed, rel=0.1)
        assert one.reached_heading == pytest.approx(one.heading, abs=np.radians(5))
    fallen = followed(commands, travel, recording.com[: round(9 * motion.rate)], motion.rate, yaw)
    assert [np.isfinite(one.reached_speed) for one in fallen] == [True, True, False, False]


# --- Scripts --------------------------------------------------------------------------------------

GOOD = {"version": 1, "seconds": 9, "commands": [{"at": 0, "speed": 1}, {"at": 2, "heading": 90}]}


def write(folder, content):
    path = folder / "take.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_a_script_is_read(tmp_path):
    script = Script.load(write(tmp_path, GOOD))
    assert script == Script(9.0, (Command(0.0, 1.0), Command(2.0, None, np.pi / 2)))


@pytest.mark.parametrize(
    ("content", "told"),
    [
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

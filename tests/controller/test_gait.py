# SPDX-License-Identifier: GPL-3.0-or-later
"""Endless walks: the cycle that is found, what is made of it, and that a body walks on."""

from dataclasses import replace

import numpy as np
import pytest

from poise.controller import (
    Character,
    Gains,
    MotionError,
    Problem,
    Push,
    Reference,
    Scenario,
    Settings,
    SettingsError,
    Simulation,
)
from poise.controller.body.momentum import GRAVITY
from poise.controller.body.sole import Ground, sole_of
from poise.controller.control.walking import Walking
from poise.controller.geometry.rotations import matrix_from_quaternion
from poise.controller.geometry.skeleton import FEET, LANDMARK_INDEX, SEGMENT_INDEX
from poise.controller.geometry.stance import LEFT, RIGHT
from poise.controller.reference.commands import Command
from poise.controller.reference.gait import Walk, _lean, cycle_between, find_cycle

PELVIS = LANDMARK_INDEX["pelvis"]
_read = {}


@pytest.fixture
def walker(request):
    """walker(name) -> (Character, Motion, Cycle) of a captured clip."""

    def make(name):
        if name not in _read:
            bpy = request.getfixturevalue("blender")
            from poise.addon.rigs import reference

            armature = request.getfixturevalue("import_clip")(name)
            motion = reference.read(bpy.context.scene, armature).motion
            character = Character.from_motion(motion)
            _read[name] = character, motion, find_cycle(character, motion)
        return _read[name]

    return make


def circle(radius, turn=2 * np.pi, points=100):
    """Points of an arc that starts at the origin, along x, and turns left."""
    angle = np.linspace(0, turn, points)
    return tuple(
        zip(
            (radius * np.sin(angle)).tolist(),
            (radius - radius * np.cos(angle)).tolist(),
            strict=True,
        )
    )


# --- The cycle ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "speed"), [("walk", 1.25), pytest.param("walk_slow", 0.88, marks=pytest.mark.slow)]
)
def test_a_walk_has_a_cycle_of_two_steps(walker, name, speed):
    _, motion, cycle = walker(name)
    seconds = cycle.period / motion.rate
    assert cycle.length / seconds == pytest.approx(speed, rel=0.03)
    assert cycle.error < 0.02
    assert abs(cycle.turn) < np.radians(5)
    ends = motion.positions[[cycle.first, cycle.last]]
    local = ends - ends[:, PELVIS, None] * [1, 1, 0]
    assert np.nanmax(np.linalg.norm(local[1] - local[0], axis=-1)) < 0.06


def test_who_does_not_step_has_no_cycle(standing):
    with pytest.raises(MotionError, match="'person' has no cycle to walk on"):
        find_cycle(Character.from_motion(standing), standing)


def test_a_cycle_is_inside_of_the_clip_and_long_enough(walker):
    character, motion, _ = walker("walk")
    with pytest.raises(SettingsError, match="from frame 150 to 500 is outside of 'walk'"):
        cycle_between(character, motion, 150, 500)
    with pytest.raises(SettingsError, match=r"from frame 10 to 12 lasts 0\.033 s"):
        cycle_between(character, motion, 10, 12)
    chosen = cycle_between(character, motion, 20, 87)
    assert (chosen.first, chosen.last) == (19, 86)


def test_rounds_are_rigid_copies_that_travel(walker):
    character, motion, cycle = walker("walk")
    endless = Walk(cycle, 10.0).motion(character, motion)
    assert len(endless) == 601
    at, period = np.arange(3 * cycle.period), cycle.period
    moved = endless.positions[at + period] - endless.positions[at]
    assert np.abs(moved[:, PELVIS] - [*cycle.travel, 0]).max() < 1e-9
    lengths = [
        np.linalg.norm(m.positions[:, 3] - m.positions[:, 10], axis=1) for m in (motion, endless)
    ]
    assert np.abs(lengths[1] - lengths[0][endless.index]).max() < 1e-12
    first = endless.positions[:period]
    assert np.abs(first - motion.positions[cycle.first : cycle.last]).max() < 0.03


def test_the_reference_has_no_seam(walker):
    """Angles repeat, and where rounds meet no joint is faster than elsewhere."""
    character, motion, cycle = walker("walk")
    reference = Reference.build(character, Walk(cycle, 10.0).motion(character, motion))
    period, middle = cycle.period, slice(2 * cycle.period, 4 * cycle.period)
    angles = reference.trajectory.angles
    later = angles[middle.start + period : middle.stop + period]
    assert np.abs(later - angles[middle]).max() < 1e-3
    jerks = np.abs(np.diff(angles, 2, axis=0)).max(1)
    seam = [jerks[k * period - 3 : k * period + 3].max() for k in range(2, 6)]
    assert max(seam) <= jerks[middle].max()
    travelled = reference.trajectory.root[-1] - reference.trajectory.root[0]
    assert np.hypot(*travelled[:2]) == pytest.approx(
        600 / period * cycle.length, abs=0.1 * cycle.length
    )


def test_walks_that_are_directed_alone_have_gains_and_no_place_of_their_own(walker):
    character, motion, cycle = walker("walk")
    for directed in ({}, {"points": circle(8)}, {"commands": (Command(0.0, 1.0),)}):
        endless = Walk(cycle, 2.0, **directed).motion(character, motion)
        simulation = Simulation(character, endless)
        assert endless.walk.directed == simulation.reference.directed == bool(directed)
        own = Gains.default(character, walking=bool(directed))
        assert simulation.gains.as_dict() == own.as_dict()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["run", "jog_in_place"])
def test_who_runs_on_falls_freely_and_is_borne_else(walker, name):
    """In round after round the reference asks for a force while a foot stands alone, and never for
    one that pulls a body down."""
    character, motion, cycle = walker(name)
    reference = Reference.build(character, Walk(cycle, 4.0).motion(character, motion))
    steps = reference.steps_per_sample
    part = slice(cycle.period * steps, 3 * cycle.period * steps)
    weight = reference.wrench[part, 2] / (character.mass * GRAVITY)
    flies = np.repeat(reference.stance == 0, steps)[part]
    within = flies & np.roll(flies, 2 * steps) & np.roll(flies, -2 * steps)
    assert within.any()
    assert np.abs(weight[within]).max() < 0.1
    assert weight.min() > -0.15


@pytest.mark.slow(captured=False)
def test_who_walks_on_comes_back_to_the_line_and_keeps_the_speed(walker):
    """Pushed aside by 0.2 m/s and more, it is where its animation is some steps later."""
    character, motion, cycle = walker("walk")
    endless = Walk(cycle, 14.0).motion(character, motion)
    push = Push(4.0, 0.3, (0.0, 60.0, 0.0))
    recording = Simulation(character, endless, scenario=Scenario(pushes=(push,))).run()
    assert recording.success
    com, masses = recording.com, character.masses / character.mass
    own = masses @ recording.reference.smooth.centres
    off = np.linalg.norm((com - own)[:, :2], axis=1)
    rate = round(motion.rate)
    assert off[4 * rate : 8 * rate].max() > 0.1
    assert off[12 * rate :].max() < 0.1


def test_feet_are_on_the_floor_or_clear_of_it(walker):
    character, motion, cycle = walker("walk")
    reference = Reference.build(character, Walk(cycle, 6.0).motion(character, motion))
    joints, frames = character.pose(reference.trajectory)
    low = character.sole_corners(joints, frames)[..., 2].min(2) - character.ground
    inner = slice(cycle.period, -cycle.period)
    for foot, bit in enumerate((LEFT, RIGHT)):
        stands = (reference.stance[inner] & bit) > 0
        assert np.abs(low[inner, foot][stands]).max() < 0.01
        assert np.median(low[inner, foot][~stands]) > 0.02


# --- Where to go ----------------------------------------------------------------------------------


def test_a_walk_follows_a_curve(walker):
    character, motion, cycle = walker("walk")
    endless = Walk(cycle, 12.0, circle(4.0), True).motion(character, motion)
    root = endless.positions[:, PELVIS, :2]
    assert np.abs(np.linalg.norm(root - [0, 4.0], axis=1) - 4.0).max() < 0.15
    frames = matrix_from_quaternion(endless.rotations[:, SEGMENT_INDEX["pelvis"]])
    frames = frames @ character.calibration[SEGMENT_INDEX["pelvis"]]
    way = np.gradient(root, axis=0)
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    facing = (frames[:, :2, 0] * way).sum(1) / np.linalg.norm(frames[:, :2, 0], axis=1)
    assert np.median(facing) > 0.97
    reference = Reference.build(character, endless)
    joints, _ = character.pose(reference.trajectory)
    stands = (reference.stance[1:] & reference.stance[:-1] & LEFT) > 0
    ankle = joints[:, SEGMENT_INDEX["foot_l"], :2]
    speed = np.linalg.norm(np.diff(ankle, axis=0), axis=1)[stands] * motion.rate
    assert np.median(speed) < 0.1


def test_who_walks_a_bend_leans_into_it(walker, monkeypatch):
    """As far as gravity needs to bend the way; on a straight line not at all."""
    character, motion, cycle = walker("walk")

    def inside():
        """(F,) how far [m] the centre of mass is inside of a bend of 3 m, seen from the feet."""
        smooth = Reference.build(character, endless).smooth
        com = np.einsum("fsi,s->fi", smooth.centres, character.masses / character.mass)
        radii = [
            np.linalg.norm(points[:, :2] - [0, 3.0], axis=1)
            for points in (com, smooth.joints[:, FEET].mean(1))
        ]
        return radii[1] - radii[0]

    endless = Walk(cycle, 6.0, circle(3.0)).motion(character, motion)
    leaning = inside()
    monkeypatch.setattr(
        "poise.controller.reference.gait._lean", lambda walk, yaw, rate: np.zeros(len(yaw))
    )
    leaning -= inside()
    speed = cycle.length / cycle.period * motion.rate
    height = 0.9  # [m] of the centre of mass, about
    assert leaning.mean() == pytest.approx(height * speed**2 / (3.0 * GRAVITY), rel=0.15)
    monkeypatch.undo()
    line = Walk(cycle, 3.0, ((0, 0), (9, 0)))
    assert np.abs(_lean(line, line.places(character, motion, np.arange(181))[1], 60.0)).max() == 0


@pytest.mark.slow(captured=False)
@pytest.mark.parametrize("clip", ["walk", pytest.param("walk_slow", marks=pytest.mark.slow)])
def test_a_body_is_led_round_a_tight_bend(walker, clip):
    """With a radius of 1.5 m: by itself `walk` fell after three seconds, most of a metre away."""
    character, motion, cycle = walker(clip)
    seconds = 6.0 if clip == "walk" else 12.0
    endless = Walk(cycle, seconds, circle(1.5), True).motion(character, motion)
    recording = Simulation(character, endless).run()
    assert recording.success, recording.why()
    away = np.linalg.norm(recording.com[:, :2] - [0, 1.5], axis=1) - 1.5
    # 0.2 to 0.41 m under a little noise: who walks on such a bend differs with each last bit.
    assert np.abs(away).max() < 0.55
    assert recording.summary()["pose_error"] < 0.1, "it is compared as it has turned"


def test_who_is_partly_animated_is_not_led(walker):
    """What the animation holds is where it has it."""
    character, motion, cycle = walker("walk")
    endless = Walk(cycle, 2.0, circle(3.0), True).motion(character, motion)
    arms = Scenario(weights={"arms": np.full(len(endless), 0.5)})
    assert Simulation(character, endless, scenario=arms).reference.way is None
    assert Simulation(character, endless).reference.way is not None


def test_a_curve_may_be_too_tight_or_too_short(walker):
    character, motion, cycle = walker("walk")
    with pytest.raises(SettingsError, match=r"'Path' is too tight .* radius is 0\.\d+ m: give it"):
        Walk(cycle, 5.0, circle(0.5), True, "Path").motion(character, motion)
    with pytest.raises(SettingsError, match=r"'Path' is 0\.1 m long, less than a step"):
        Walk(cycle, 5.0, ((0, 0), (0.1, 0)), False, "Path").motion(character, motion)
    still = replace(cycle, travel=(0.0, 0.01))
    with pytest.raises(SettingsError, match="steps on the spot: it cannot follow the curve"):
        Walk(still, 5.0, circle(4.0), True, "Path").motion(character, motion)


def test_a_straight_line_is_walked_beyond_its_end(walker):
    character, motion, cycle = walker("walk")
    endless = Walk(cycle, 10.0, ((0, 0), (0, 3))).motion(character, motion)
    root = endless.positions[:, PELVIS, :2]
    assert np.abs(root[:, 0]).max() < 0.1
    assert root[-1, 1] == pytest.approx(600 / cycle.period * cycle.length, abs=0.2)


# --- Where feet land ------------------------------------------------------------------------------


def _left_landing(walker, left):
    """Offset (2,) at which the left foot is to land, for a body `left` [m/s] too fast to its left
    while that foot is in the air."""
    character, motion, cycle = walker("walk")
    endless = Walk(cycle, 4.0, ((0, 0), (9, 0))).motion(character, motion)
    reference = Reference.build(character, endless)
    walking = Walking(character, reference)
    air = np.flatnonzero(reference.support == RIGHT)
    step = int(air[len(air) // 2])
    step -= step % 4
    for at in range(step - 40, step, 4):
        ankles = walking._legs.pose(at / reference.rate).ankles
        height = character.feet[0].depth
        soles = [
            sole_of(character.feet[0], [x, y, height], np.eye(3).tolist(), 0.0, Ground(0, 0, 0.0))
            for x, y, _ in ankles.tolist()
        ]
        goals = reference.goals[at]
        velocity = goals[1] + [0, left, 0]
        standing = [1, 1]
        walking.update(at, goals[0], velocity, goals, None, soles, standing)
    return walking._goals[0]


def test_who_falls_to_the_left_steps_to_the_left(walker):
    assert np.abs(_left_landing(walker, 0.0)).max() < 1e-9
    x, y = _left_landing(walker, 0.2)
    assert y > 0.04
    assert abs(x) < 0.03
    assert _left_landing(walker, -0.2)[1] < -0.04


@pytest.mark.slow(captured=False)
def test_a_pushed_walker_steps_to_the_side_and_walks_on(walker):
    """A push to the left while the right foot stands: the left one lands farther left than it
    does without."""
    character, motion, cycle = walker("walk")
    endless = Walk(cycle, 3.0, ((0, 0), (9, 0))).motion(character, motion)
    reference = Reference.build(character, endless)
    right = np.flatnonzero(reference.stance == RIGHT)
    at = right[right > 60][0]  # the right foot begins to stand alone
    lands = at + np.flatnonzero(reference.stance[at:] == LEFT)[10]
    feet = []
    for push in ((), (Push(at / 60, 0.2, (0, 80, 0)),)):
        scenario = Scenario(pushes=push)
        recording = Simulation(character, endless, None, None, reference, scenario).run()
        assert recording.success
        feet.append(recording.joints()[lands, SEGMENT_INDEX["foot_l"], 1])
    assert feet[1] - feet[0] > 0.03


def test_a_walk_is_the_same_in_another_process(walker):
    """What a worker makes of the bytes walks as the original does, to the last bit."""
    character, motion, cycle = walker("walk")
    endless = Walk(cycle, 1.5).motion(character, motion)
    problem = Problem(endless, settings=Settings(noise=5.0))
    copy = Problem.from_bytes(problem.to_bytes())
    assert copy.to_bytes() == problem.to_bytes()
    assert np.array_equal(copy.motion.positions, endless.positions, equal_nan=True)
    gains = Gains.default(character, walking=True)
    runs = [p.simulation(gains, 3).run() for p in (problem, copy)]
    assert np.array_equal(runs[0].body_positions, runs[1].body_positions)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["walk_slow", "walk", "walk_fast"])
def test_who_steps_aside_from_a_stand_sets_no_foot_across_the_other(walker, name):
    character, motion, cycle = walker(name)
    for aside in (0.1, -0.2, 0.3):
        commands = Command(0.0, stands=True), Command(3.0, aside=aside)
        endless = Walk(cycle, 13.0, commands=commands).motion(character, motion)
        recording = Simulation(character, endless).run()
        assert recording.success, (aside, recording.why())
        yaw = endless.heading(character)
        left = np.array([-np.sin(yaw), np.cos(yaw), 0.0])
        feet = [recording.body_positions[:, foot] @ left for foot in FEET]
        assert (feet[0] - feet[1]).min() > -0.02, aside
        gone = (recording.com[-1] - recording.com[round(7 * motion.rate)]) @ left / 6
        assert gone == pytest.approx(aside, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "walk_slow",
        "walk",
        "walk_fast",
        "walk_backward",
        "walk_zombie",
        "knee_raises",
        "jog_in_place",
        "run",
    ],
)
def test_walks_stand_for_20_s_on_unseen_noise(walker, name):
    """0.9 to 1.7 m/s, backward, on the spot and running at 2.7 m/s, motor noise of SCA12, eight
    seeds that no tuning has met."""
    character, motion, cycle = walker(name)
    endless = Walk(cycle, 20.0).motion(character, motion)
    reference = Reference.build(character, endless)
    for seed in range(9000, 9008):
        settings = Settings(noise=5.0, seed=seed)
        recording = Simulation(character, endless, None, settings, reference).run()
        assert recording.success, (seed, recording.why())

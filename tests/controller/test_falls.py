# SPDX-License-Identifier: GPL-3.0-or-later
"""Falls: when balance is lost, how a body gives, catches itself and comes to rest."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pybullet
import pytest

from poise.controller import Character, Settings, SettingsError, Simulation
from poise.controller.body.momentum import GRAVITY
from poise.controller.body.paths import Performed
from poise.controller.control.legs import Legs
from poise.controller.falls import mixture
from poise.controller.falls.behaviours import BEHAVIOURS, Pose
from poise.controller.falls.compliance import (
    ARM_REACH,
    Arm,
    Compliance,
    falling_body,
    relaxed_limits,
)
from poise.controller.falls.loss import BalanceLoss, Moving
from poise.controller.falls.posing import BodyPose, Placed, Tree
from poise.controller.geometry.rotations import cross, matrix_from_quaternion
from poise.controller.geometry.skeleton import LANDMARK_INDEX, SEGMENT_INDEX, SEGMENTS
from poise.controller.geometry.solids import Collider, Solid
from poise.controller.simulation.recording import Recording
from poise.controller.simulation.scenario import Push, Scenario, Thing
from poise.controller.simulation.world import World

KINDS = tuple(BEHAVIOURS)
FORWARD, ASIDE, BACK = (1.0, 0.0), (0.0, 1.0), (-1.0, 0.0)
TRUNK = SEGMENT_INDEX["trunk"]
OTHERS = [pytest.param(direction, marks=pytest.mark.slow) for direction in (ASIDE, BACK)]


def simulation(motion, kind, seconds=None, force=600.0, direction=FORWARD, rate=300, **scenario):
    character = Character.from_motion(motion)
    push = Push(0.5, 0.2, (force * direction[0], force * direction[1], 0.0))
    return Simulation(
        character,
        motion,
        settings=Settings(duration=seconds, when_it_falls=kind, rate=rate),
        scenario=Scenario(pushes=(push,) if force else (), **scenario),
    )


def angles_of(recording, sample):
    """Joint angles (dofs,) [rad] of a sample."""
    frames = matrix_from_quaternion(recording.body_rotations[sample : sample + 2])
    root = recording.joints()[sample : sample + 2, 0]
    return recording.character.trajectory_of(1.0, root, frames).angles[0]


def fastest(recording):
    """(n - 1,) speed of the fastest segment between samples [m/s]."""
    moved = np.diff(recording.body_positions, axis=0)
    return np.linalg.norm(moved, axis=2).max(1) * recording.motion.rate


# --- Balance lost --------------------------------------------------------------------------------


def square(x=0.0, half=0.1):
    """Corners (2, 4, 3) of two soles side by side that make a square."""
    one = np.array([[a, b, 0.0] for a in (x - half, x + half) for b in (-half, half)])
    return np.stack([one, one])


def test_the_capture_point_is_where_a_pendulum_comes_to_rest():
    """Linear inverted pendulum: from x with the speed omega (p - x) it comes to rest over p."""
    omega, p, x, rate = np.sqrt(GRAVITY / 0.9), 0.37, 0.02, 1000.0
    speed = omega * (p - x)
    com = np.array([[x - speed / rate, 0.0, 0.9], [x, 0.0, 0.9]])
    moving = Moving(com, np.stack([square(), square()]), rate)
    assert moving.outside[1] == pytest.approx(p - 0.1, abs=1e-9)


@pytest.mark.parametrize(
    ("sinking", "x", "lost"), [(1.0, 1.0, True), (0.1, 1.0, False), (1.0, 0.05, False)]
)
def test_balance_is_lost_far_outside_of_the_feet_and_sinking(sinking, x, lost):
    count, rate = 30, 60.0
    still = np.tile([0.0, 0.0, 0.9], (count, 1))
    corners = np.tile(square(), (count, 1, 1, 1))
    loss = BalanceLoss(still, corners, rate, 1.8)
    com = still + np.outer(np.arange(count) / rate, [0.0, 0.0, -sinking]) + [x, 0.0, 0.0]
    found = [loss.lost(i, com[i - 1 : i + 1], corners[i - 1 : i + 1]) for i in range(1, 8)]
    assert found[-1] == lost
    assert not found[0], "not after a single sample"


def test_a_motion_that_sinks_by_itself_loses_no_balance():
    """A squat: what the animation does is no fall."""
    time = np.arange(60) / 60
    com = np.stack([0 * time, 0 * time, 0.9 - 0.4 * time], 1)
    corners = np.tile(square(), (60, 1, 1, 1))
    loss = BalanceLoss(com, corners, 60.0, 1.8)
    assert not any(loss.lost(i, com[i - 1 : i + 1], corners[i - 1 : i + 1]) for i in range(1, 60))


def test_a_body_topples_before_it_sinks():
    """Its capture point is out of reach, and it has not come down yet."""
    rate = 60.0
    still, corners = np.tile([0.0, 0.0, 0.9], (10, 1)), np.zeros((10, 2, 4, 3))
    loss = BalanceLoss(still, corners, rate, 1.8)
    for step, topples in ((0.1, False), (2.0, True), (0.0, False)):
        com = np.array([[0.0, 0.0, 0.9], [step / rate, 0.0, 0.9]])
        assert not loss.lost(5, com, corners[:2])
        assert loss.topples == topples


def test_a_body_that_stands_does_not_fall(swinging):
    recording = simulation(swinging, "limp", force=0.0).run()
    assert recording.success and recording.filled and recording.stood is None
    assert recording.rest_at is None and recording.summary()["deepest"] is None


@pytest.mark.parametrize("kind", KINDS)
def test_until_it_falls_all_is_as_it_is_without(standing, kind):
    stops, falls = (simulation(standing, one, seconds=2.0).run() for one in ("stop", kind))
    count = falls.standing
    assert 20 < count <= len(stops) < len(falls)
    assert np.array_equal(stops.body_positions[:count], falls.body_positions[:count])
    assert np.array_equal(stops.body_rotations[:count], falls.body_rotations[:count])


# --- Into the other world ------------------------------------------------------------------------


def worlds(character, **scenario):
    legs = Legs(character).segments
    before = World(character, 300.0, legs, Scenario(**scenario))
    after = Scenario(**scenario, whole_body=True, self_collision=True)
    return before, World(character, 300.0, legs, after, falling=True)


def test_a_world_follows_another_exactly(adult, standing):
    ball = Thing("ball", Solid("sphere", (0.1,)), 1.0, 0.0, (2.0, 0.0, 1.5), velocity=(1, 2, 3))
    before, after = worlds(adult, things=(ball,))
    trajectory = adult.trajectory(standing)
    frame = matrix_from_quaternion(trajectory.rotation[0])
    speeds = np.linspace(-1, 1, adult.dofs)
    start = trajectory.root[0] + [0, 0, 1.0]
    before.reset(
        start, frame, np.array([1.0, 2, 3]), np.array([0.1, 0.2, 0.3]), trajectory.angles[0], speeds
    )
    before.advance(0.0)
    before.step()
    after.follow(before)
    for one, other in zip(before.body_transforms(), after.body_transforms(), strict=True):
        assert np.abs(one - other).max() < 1e-6
    one, other = before.state(False), after.state(False)
    assert np.array_equal(one.angles, other.angles) and np.array_equal(one.speeds, other.speeds)
    assert all(map(np.array_equal, before.things(), after.things()))
    after.step()
    moved = after.things()[0] - before.things()[0]
    assert moved[0] * 300 == pytest.approx([1, 2, 3 - 1.67 * GRAVITY / 300], abs=0.02)


def test_a_hand_that_is_in_the_floor_as_the_fall_begins_comes_out_of_it(adult):
    """Feet alone meet the floor before that: a hand that reaches down may be in it."""
    before, zeros = worlds(adult)[0], np.zeros(adult.dofs)
    bent = zeros.copy()
    pose = {"spine": 1.4, "shoulder": -1.4, "elbow": -0.7, "hip": -2.0}
    for number, name in enumerate(adult.dof_names):
        if name.endswith("pitch"):
            bent[number] = pose.get(name.split("_")[0], 0.0)
    before.reset(np.array([0, 0, adult.ground + 0.35]), np.eye(3), *np.zeros((2, 3)), bent, zeros)
    body = falling_body(adult, bent)
    legs = Legs(adult).segments
    after = World(body, 300.0, legs, Scenario(whole_body=True), falling=True)
    after.follow(before)
    deep = {SEGMENTS[after.carried[link]] for link in after._parting[after._floor]}
    assert deep and deep <= {"forearm_l", "forearm_r", "head"}, deep
    fastest, hands = 0.0, [SEGMENT_INDEX["forearm_l"], SEGMENT_INDEX["forearm_r"]]
    heights = []
    for step in range(450):
        after.advance(step / 300)
        after.step()
        fastest = max(fastest, np.abs(after.state(False).speeds[6:]).max())
        heights.append(after.body_transforms()[0][hands, 2].min())
    assert fastest < 100, "nothing is thrown about [rad/s]"
    assert after._floor not in after._parting and min(heights[-100:]) > adult.ground
    before.close()
    after.close()


def test_bodies_fall_freely_in_smaller_steps(adult, standing):
    """x = x0 - g t (t + h) / 2 for semi-implicit steps of h: those of the physics, not the
    control's."""
    _, world = worlds(adult)
    trajectory = adult.trajectory(standing)
    frame, zero = matrix_from_quaternion(trajectory.rotation[0]), np.zeros(3)
    rest = np.zeros(adult.dofs)
    world.reset(trajectory.root[0] + [0, 0, 5.0], frame, zero, zero, trajectory.angles[0], rest)
    shares = adult.masses / adult.mass
    start = shares @ world.body_transforms()[0]
    for _ in range(60):
        world.apply(rest)
        world.step()
    fallen = start - shares @ world.body_transforms()[0]
    assert fallen[2] == pytest.approx(GRAVITY * 0.2 * (0.2 + 1 / 900) / 2, rel=2e-3)


def test_rays_see_what_there_is_to_fall_on(adult):
    table = Collider("table", Solid("box", (0.5, 0.5, 0.1)), (2.0, 0.0, 0.6))
    _, world = worlds(adult, colliders=(table,))
    assert world.height_at(2.1, 0.1) == pytest.approx(0.7, abs=1e-6)
    assert world.height_at(0.0, 0.0) == pytest.approx(adult.ground, abs=1e-6), "not the body"


# --- Joints that give ----------------------------------------------------------------------------


def test_arms_know_how_far_they_may_go(adult):
    """Finite differences of how far an arm is beyond its reach."""
    random = np.random.default_rng(1)
    for side in "lr":
        joints = {joint.name: joint for joint in adult.joints}
        arm = Arm(joints[f"shoulder_{side}"], side, np.zeros(adult.dofs))
        assert arm.reach == ARM_REACH, "an arm that hangs is within it"
        for _ in range(20):
            angles = random.uniform(-1.2, 1.2, adult.dofs)
            slope = arm.slope(angles)
            for i in range(3):
                step = np.zeros(adult.dofs)
                step[arm.dofs.start + i] = 1e-6
                ends = arm.beyond(angles + step) - arm.beyond(angles - step)
                assert ends / 2e-6 == pytest.approx(slope[i], abs=1e-6)


def test_joints_that_give_hold_nothing_up(adult, standing):
    """A relaxed body at rest: torques of its springs alone, and none where they are relaxed."""
    world, _ = worlds(adult)
    trajectory = adult.trajectory(standing)
    frame, zero = matrix_from_quaternion(trajectory.rotation[0]), np.zeros(3)
    angles = trajectory.angles[0]
    world.reset(trajectory.root[0] + [0, 0, 1], frame, zero, zero, angles, np.zeros(adult.dofs))
    state = world.state(False)
    inertia = world.mass_matrix(state.angles)
    compliance = Compliance(adult, 1 / 300, angles)
    compliance.rest = angles.copy()
    falling = compliance.torques(state, inertia, world.bias(state, inertia))
    assert np.abs(falling).max() < 0.5, "all of it falls freely: nothing turns its joints"
    compliance.tone[:] = 1.0
    compliance.target = angles + 0.1
    held = compliance.torques(state, inertia, world.bias(state, inertia))
    assert (held > falling).all()


def test_ranges_are_widened_to_the_pose_alone(adult):
    names = list(adult.dof_names)
    angles = np.zeros(adult.dofs)
    angles[names.index("knee_l_pitch")] = -0.1
    limits = relaxed_limits(adult, angles)
    assert limits[names.index("knee_l_pitch"), 0] == pytest.approx(-0.12)
    assert limits[names.index("knee_r_pitch"), 0] == pytest.approx(-0.02)
    assert (limits[:, 0] < angles).all() and (angles < limits[:, 1]).all()


# --- Down, and at rest ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fallen(make_motion):
    """{(kind, direction): Recording} of a person who is pushed over."""
    found = {}

    def run(kind, direction):
        if (kind, direction) not in found:
            motion = make_motion(7.0)
            found[kind, direction] = simulation(motion, kind, None, direction=direction).run()
        return found[kind, direction]

    return run


@pytest.mark.slow(captured=False)
@pytest.mark.parametrize("direction", [FORWARD, *OTHERS])
@pytest.mark.parametrize("kind", KINDS)
def test_it_falls_and_rests(fallen, kind, direction):
    recording = fallen(kind, direction)
    assert not recording.success and recording.filled
    assert len(recording) == len(recording.reference) and 0.5 < recording.fell_at < 1.5
    assert recording.rest_at < recording.fell_at + 6
    assert fastest(recording)[-10:].max() < 1e-3, "it lies still"
    assert recording.com[-1, 2] < 0.3 * recording.character.height, "on the floor"
    summary = recording.summary()
    assert summary["deepest"] < 10 and summary["rest_at"] == recording.rest_at
    assert recording.why().startswith(f"Fell at {recording.fell_at:.2f} s (frame ")
    assert recording.why().endswith(" on.") and "lies still from" in recording.why()


@pytest.mark.parametrize("direction", [FORWARD, *OTHERS])
@pytest.mark.parametrize("kind", KINDS)
def test_knees_never_bend_backward(fallen, kind, direction):
    recording = fallen(kind, direction)
    knees = [i for i, name in enumerate(recording.character.dof_names) if name.startswith("knee")]
    elbows = [i for i, name in enumerate(recording.character.dof_names) if name.startswith("elbow")]
    for sample in range(recording.standing, len(recording) - 1, 3):
        angles = angles_of(recording, sample)
        assert angles[knees].min() > np.radians(-3) and angles[elbows].max() < np.radians(3)


def test_stiff_is_as_it_was_until_it_lands(fallen):
    recording = fallen("stiff", FORWARD)
    lost = angles_of(recording, recording.standing)
    trunk = recording.body_positions[:, SEGMENT_INDEX["head"], 2]
    lands = int(np.argmax(trunk < 0.35))
    assert lands > recording.standing + 15
    firm = [not name.startswith("toe") for name in recording.character.dof_names]
    assert np.abs(angles_of(recording, lands - 3) - lost)[firm].max() < np.radians(10)
    limp = fallen("limp", FORWARD)
    assert np.abs(angles_of(limp, lands - 3) - lost)[firm].max() > np.radians(40)


@pytest.mark.parametrize("direction", [FORWARD, pytest.param(BACK, marks=pytest.mark.slow)])
def test_who_braces_spares_the_head(fallen, direction):
    head = SEGMENT_INDEX["head"]

    def drop(kind):
        """Fastest descent of the head near the floor [m/s]."""
        recording = fallen(kind, direction)
        heights = recording.body_positions[:, head, 2]
        speeds = -np.diff(heights) * recording.motion.rate
        return speeds[heights[1:] < 0.4].max(initial=0.0)

    assert drop("brace") < 0.7 * drop("limp")


def test_hands_go_where_it_falls(fallen):
    """They are ahead of the chest and below it before it lands."""
    recording = fallen("brace", FORWARD)
    arms = [SEGMENT_INDEX["forearm_l"], SEGMENT_INDEX["forearm_r"]]
    chest = recording.joints()[:, SEGMENT_INDEX["head"]]
    lands = int(np.argmax(chest[:, 2] < 0.6))
    hands = recording.body_positions[lands][arms]
    assert (hands[:, 0] > chest[lands, 0] - 0.05).all() and (hands[:, 2] < chest[lands, 2]).all()


def turned(recording):
    """How far [rad] the trunk turns forward and over, from the loss of balance to the end."""
    frames = matrix_from_quaternion(recording.body_rotations[recording.standing :, TRUNK])
    axes = [cross(one.T, other.T).sum(0) for one, other in pairwise(frames)]
    return float(np.sum(axes, 0)[1] / 2)


def test_turns_are_measured(fallen):
    """Of one that does not fall they are none, whole ones count."""
    recording = fallen("limp", FORWARD)
    angles = np.linspace(0, 3 * np.pi, 200)
    turning = np.stack([np.cos(angles / 2), 0 * angles, np.sin(angles / 2), 0 * angles], 1)
    shown = SimpleNamespace(
        body_rotations=np.tile(turning[:, None], (1, len(SEGMENTS), 1)), standing=0
    )
    assert turned(shown) == pytest.approx(3 * np.pi, rel=1e-3)
    assert abs(turned(recording)) < np.pi


def test_who_rolls_goes_over_and_spares_the_head(fallen):
    rolled, braced, limp = (fallen(kind, FORWARD) for kind in ("roll", "brace", "limp"))
    assert turned(rolled) > np.radians(200) > np.radians(120) > turned(braced)
    far = [one.com[-1, 0] - one.com[one.standing, 0] for one in (rolled, braced)]
    assert far[0] > far[1] + 0.3, "it goes on where the other one stops"
    assert not any("to roll" in one.why() for one in (rolled, braced, limp))
    head = SEGMENT_INDEX["head"]
    drops = []
    for one in (rolled, limp):
        heights = one.body_positions[:, head, 2]
        speeds = -np.diff(heights) * one.motion.rate
        drops.append(speeds[heights[1:] < 0.2].max(initial=0.0))
    assert drops[0] < 0.7 * drops[1]


def test_who_cannot_roll_is_told_to_have_braced(adult, standing):
    """Knocked out of its stand it goes straight down."""
    tone = {"tone": np.where(np.arange(len(standing)) < 20, 1.0, 0.0)}
    settings = Settings(when_it_falls="roll")
    recording = Simulation(
        adult, standing, settings=settings, scenario=Scenario(strength=tone)
    ).run()
    assert "It had neither the speed nor the time to roll, and braced." in recording.why()


@pytest.mark.parametrize(
    ("speed", "sinking", "rolls"), [(0.8, 0.0, False), (1.5, 0.0, True), (1.5, 3.0, False)]
)
def test_who_has_the_speed_and_the_time_rolls(adult, standing, speed, sinking, rolls):
    _, world = worlds(adult)
    trajectory = adult.trajectory(standing)
    angles, frame = trajectory.angles[0], matrix_from_quaternion(trajectory.rotation[0])
    placed = Placed(Tree(adult), BodyPose(trajectory.root[0], frame, angles))
    speeds = np.tile([speed, 0.0, -sinking], (len(SEGMENTS), 1))
    pose, wishes = Pose(placed.positions, placed.frames, angles, speeds), []
    for kind in ("roll", "brace"):
        compliance = Compliance(adult, 1 / 300, angles)
        one = BEHAVIOURS[kind](adult, compliance, adult.limits, world, 1 / 75)
        for number in range(10):
            one.update(number / 75, pose, set())
        wishes.append((one.target, one.tone))
    same = all(np.array_equal(*pair) for pair in zip(*wishes, strict=True))
    assert same != rolls


# --- Mixed ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "mixed", "same"),
    [
        ("limp", {"brace": 1.0}, "brace"),
        ("brace", {"brace": 0.4}, "brace"),
        pytest.param("brace", {"stiff": 0.3, "limp": 0.7}, None, marks=pytest.mark.slow),
        pytest.param("stiff", {"limp": 1.0, "brace": 0.0}, "limp", marks=pytest.mark.slow),
    ],
)
def test_shares_of_behaviours_come_to_one(standing, kind, mixed, same):
    blended = simulation(standing, kind, 2.0, mixed=mixed).run()
    whole = {one: simulation(standing, one, 2.0).run() for one in {kind, same or "limp"}}
    equal = [
        one
        for one, other in whole.items()
        if np.array_equal(blended.body_positions, other.body_positions)
    ]
    assert equal == ([same] if same else [])


def test_a_mixture_is_firm_by_its_shares(standing, monkeypatch):
    """A fifth of stiff has a fifth of its tone, towards its pose, before the body lands."""
    acting, torques = [], Compliance.torques

    def torque(compliance, *given):
        acting[:] = [(compliance.tone.copy(), compliance.target.copy())]
        return torques(compliance, *given)

    monkeypatch.setattr(Compliance, "torques", torque)
    stiff, mixed = (
        simulation(standing, kind, 2.0, mixed=more)
        for kind, more in (("stiff", {}), ("limp", {"stiff": 0.2}))
    )
    tones = []
    for one in (stiff, mixed):
        for sample in one:
            if one.recording.stood is not None and sample > one.recording.stood + 5:
                break
        tones += acting
    (whole, pose), (part, same) = tones
    assert part == pytest.approx(0.2 * whole) and whole == pytest.approx(1.0)
    assert same == pytest.approx(pose, abs=1e-12)


def test_a_mixture_may_change_at_any_moment(standing):
    """Who braces and faints as it falls is what braces until then, and lands limp."""
    shares = np.zeros(len(standing))
    braced = simulation(standing, "brace", 2.0).run()
    until = braced.standing + 10
    shares[until:] = 1.0
    changed = simulation(standing, "brace", 2.0, mixed={"limp": shares}).run()
    same = [
        np.array_equal(a, b)
        for a, b in zip(changed.body_positions, braced.body_positions, strict=True)
    ]
    assert all(same[:until]) and not any(same[until + 5 :])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"fly": 1.0}, "Nobody falls 'fly': mix one of limp, brace, roll, stiff."),
        ({"limp": 1.5}, "The share of 'limp' is not always from 0 to 1: mend it."),
        ({"limp": np.array([0.1, np.nan])}, "The share of 'limp' is not always from 0 to 1"),
        (
            {"limp": np.array([0.1, 0.7]), "stiff": 0.6},
            "The shares of limp and stiff come to 1.3 at sample 1: have them come to 1 at most;",
        ),
    ],
)
def test_mixtures_that_cannot_be_are_told(given, words):
    with pytest.raises(SettingsError, match=f"^{words}"):
        mixture.build(given, 3)
    assert mixture.build({"limp": 0.9, "stiff": np.array([0.0, 0.1])}, 3)["stiff"].tolist() == [
        *(0.0, 0.1, 0.1)
    ]


@pytest.mark.slow(captured=False)
def test_a_limp_body_gains_no_energy(standing):
    falls = simulation(standing, "limp", seconds=4.0)
    energies = []
    for sample in falls:
        if falls.recording.stood is not None and sample / 60 > 0.75:
            state = falls.world.state(False)
            moving = 0.5 * state.speeds @ falls.world.mass_matrix(state.angles) @ state.speeds
            high = falls.character.masses @ falls.recording.body_positions[-1][:, 2]
            energies.append(moving + GRAVITY * high)
    rises = np.diff(energies)
    assert len(energies) > 100 and rises.max() < 0.01 * (energies[0] - min(energies))


def test_who_braces_gains_what_muscles_do(standing, monkeypatch):
    """The energy of a fall rises by the work of its joints alone."""
    work, step, apply, last = [0.0], World.step, World.apply, []

    def applying(world, torques):
        last[:] = [torques]
        apply(world, torques)

    def stepping(world):
        before = world.state(False).speeds[6:]
        step(world)
        mean = (before + world.state(False).speeds[6:]) / 2
        work[0] += float(last[0] @ mean) / world.rate

    monkeypatch.setattr(World, "apply", applying)
    monkeypatch.setattr(World, "step", stepping)
    falls = simulation(standing, "brace", seconds=2.4)
    rows = []
    for sample in falls:
        if falls.recording.stood is not None and sample / 60 > 0.75:
            state = falls.world.state(False)
            moving = 0.5 * state.speeds @ falls.world.mass_matrix(state.angles) @ state.speeds
            high = falls.character.masses @ falls.recording.body_positions[-1][:, 2]
            rows.append((moving + GRAVITY * high, work[0]))
    energies, works = np.diff(rows, axis=0).T
    assert len(rows) > 30 and energies.max() > 0, "its muscles move it"
    assert (energies - works).max() < 0.002 * rows[0][0]


@pytest.mark.slow
@pytest.mark.parametrize("stature", [1.8, 1.05])
@pytest.mark.parametrize("kind", ["limp", "stiff"])
def test_limits_of_joints_are_hard(make_motion, stature, kind):
    """Of an adult and of a child that is hurled away: 3 degrees, toes under a body and arms 6."""
    force = 600.0 if stature > 1.5 else 300.0
    falls = simulation(make_motion(stature=stature), kind, 3.0, force, ASIDE)
    names = falls.character.dof_names
    toes = np.array([name.startswith("toe") for name in names])
    beyond, joints = np.zeros(len(names)), {joint.name: joint for joint in falls.character.joints}
    arms, reach = [], 0.0
    for sample in falls:
        if falls.recording.stood is None or sample <= falls.recording.stood:
            continue
        state, limits = falls.world.state(False), falls.world.character.limits
        if not arms:
            arms = [Arm(joints[f"shoulder_{s}"], s, state.angles) for s in "lr"]
        over = np.maximum(limits[:, 0] - state.angles, state.angles - limits[:, 1])
        beyond = np.maximum(beyond, over)
        reach = max(reach, *(arm.beyond(state.angles) for arm in arms))
    assert np.degrees(beyond[~toes].max()) < 3 and np.degrees(beyond[toes].max()) < 6
    assert np.degrees(reach) < 6


def test_who_kicks_fast_flings_no_limb(standing):
    """18 m/s are what the engine does to a body that stands, and no more than a spin kick whose
    animated foot comes to 13."""
    trial = simulation(standing, "limp", seconds=2.0, force=0.0)
    trial.begin()
    before = trial.observe(0).centres
    trial.log.add(0, trial.observe(0))
    thrown = before.copy()
    thrown[SEGMENT_INDEX["toe_r"], 0] += 18.0 / standing.rate
    assert trial._is_thrown(1, thrown)
    kicking = trial.motion.positions.copy()
    kicking[1:, LANDMARK_INDEX["toe_r"], 0] += 13.0 / standing.rate
    trial.motion = replace(trial.motion, positions=kicking)
    assert not trial._is_thrown(1, thrown)
    thrown[SEGMENT_INDEX["toe_r"], 0] += 18.0 / standing.rate
    assert trial._is_thrown(1, thrown)
    trial.close()


def test_joints_that_spin_are_no_body_that_stands(standing):
    """The engine has begun to throw about a joint whose segment has gone nowhere yet."""
    falls = simulation(standing, "limp", seconds=2.0, force=0.0)
    falls.begin()
    centres = falls.observe(0).centres
    assert not falls._is_wild(0, centres)
    at = list(falls.character.dof_names).index("hip_l_twist")
    pybullet.resetJointState(falls.world.body, at, 0.0, 150.0, falls.world._client)
    assert falls._is_wild(0, centres)
    falls.close()


@pytest.mark.slow(captured=False)
def test_who_lies_calmly_takes_fewer_steps_of_the_physics(standing):
    """One in a step of the control, three while it falls or anything of it is faster, and six while
    it gets up."""
    trial = simulation(standing, "limp", seconds=6.0)
    trial.settings = replace(trial.settings, get_up=True)
    steps, speeds, log = [], [], trial.recording
    for _ in trial:
        steps.append(trial.world.engine.substeps)
        moved = np.diff(log.body_positions[-2:], axis=0)
        speeds.append(float(np.linalg.norm(moved, axis=2).max(initial=0.0)) * log.motion.rate)
    lost, rests = log.stood, log.rested
    assert set(steps[: lost - 1]) == {1} and set(steps[lost + 1 : lost + 30]) == {3}
    assert set(steps[rests - 20 : rests]) == {1} and max(speeds[rests - 20 : rests]) < 0.4
    assert set(steps[rests + 1 : rests + 30]) == {6}


def test_states_are_kept_as_often_as_a_burst_takes(standing):
    """A burst is left from before it, 0.05 s at least and 0.12 at most."""
    trial, kept = simulation(standing, "limp", seconds=1.0, force=0.0), []
    for sample in trial:
        kept.append([sample - at for at, _ in trial._kept])
    assert all(len(one) == 2 for one in kept[3:])
    back = np.array([one[0] for one in kept[6:]]) / standing.rate
    assert back.min() >= 0.05 and back.max() < 0.12


@pytest.mark.slow
def test_what_sleeps_is_woken_by_a_push(standing):
    asleep = simulation(standing, "limp", seconds=6.0)
    late = Push(4.5, 0.2, (0.0, 1000.0, 500.0))
    scenario = replace(asleep.scenario, pushes=(*asleep.scenario.pushes, late))
    woken = Simulation(asleep.character, asleep.motion, settings=asleep.settings, scenario=scenario)
    speeds = fastest(woken.run())
    assert speeds[260:268].max() < 0.02 and speeds[271:300].max() > 0.2


@pytest.mark.slow
def test_small_bodies_that_burst_while_they_stand_fall(make_motion):
    """393 N on 17 kg: the engine throws about a body that stands, but none that falls."""
    motion = make_motion(stature=1.05)
    recording = simulation(motion, "limp", 4.0, 460.0, ASIDE).run()
    assert recording.filled and recording.stood is not None
    assert fastest(recording).max() < 15.0


@pytest.mark.slow
def test_falls_are_deterministic(standing):
    one, other = (simulation(standing, "brace", seconds=3.0).run() for _ in range(2))
    assert np.array_equal(one.body_positions, other.body_positions)
    assert one.summary()["deepest"] == other.summary()["deepest"]


@pytest.mark.slow(captured=False)
def test_pieces_of_a_fall_are_of_few_steps_and_change_nothing(standing, monkeypatch):
    whole, other = (simulation(standing, "brace", seconds=2.0, rate=1000) for _ in range(2))
    step, taken, counts = World.step, [], []
    monkeypatch.setattr(World, "step", lambda world: (taken.append(1), step(world)))
    for _ in other.pieces():
        counts.append(len(taken))
        taken.clear()
    assert other.recording.stood is not None
    assert max(counts) == 5
    assert np.array_equal(whole.run().body_positions, other.recording.body_positions)


def test_measures_count_what_stood_alone(fallen, standing):
    stops = simulation(standing, "stop", 7.0).run()
    falls = fallen("limp", FORWARD)
    assert len(falls.measures.values) == falls.standing
    for name in ("tracking_error", "few_corners"):
        assert falls.summary()[name] == pytest.approx(stops.summary()[name], rel=0.3)
    assert not falls.success and falls.summary()["filled"] and not stops.summary()["filled"]


@pytest.mark.slow
def test_ankles_of_the_bake_are_where_they_fall(fallen):
    """The legs of a bake are corrected for ankles that hinges cannot follow: of a body that lies
    as of one that stands."""
    recording = fallen("limp", ASIDE)
    assert isinstance(recording, Recording)
    turns, _ = recording.differences()
    assert np.isfinite(turns).all()
    steps = 1 - np.abs((turns[1:] * turns[:-1]).sum(-1))
    at = recording.standing
    assert steps[at - 1 : at + 1].max() < 5 * max(steps[at - 6 : at - 2].max(), 1e-4), "no jump"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("middle", "half"), [((0.5, 0, 0.6), (1.5, 1, 0.1)), ((1, 0, 1), (0.8, 1, 0.2))]
)
def test_it_falls_out_of_what_it_stood_in(standing, middle, half):
    """It begins inside of the table, and passes what it has not left."""
    table = Collider("table", Solid("box", half), middle)
    recording = simulation(standing, "limp", seconds=4.0, colliders=(table,)).run()
    assert recording.filled and fastest(recording).max() < 15.0


@pytest.mark.slow(captured=False)
def test_what_it_lies_on_bears_it(fallen):
    """Feet and all else together, in the mean; and while it stands nothing but feet."""
    recording = fallen("limp", BACK)
    borne = recording.presses[:, :, 2].sum(1) + recording.contact_forces[:, :, 2].sum(1)
    assert borne[-60:].mean() == pytest.approx(recording.character.mass * GRAVITY, rel=0.02)
    assert not recording.presses[: recording.stood].any()
    down = [recording.is_down(sample) for sample in range(len(recording))]
    assert down == [sample >= recording.stood for sample in range(len(recording))]
    assert all(stop <= recording.stood for _, stop in Performed(recording).flights)
    lies = recording.presses[-1]
    pressed = lies[:, 2] > 0
    assert pressed.sum() >= 3
    away = np.linalg.norm(lies[:, 3:] - recording.body_positions[-1], axis=1)
    assert away[pressed].max() < 0.45 and lies[pressed, 5].max() < 0.02, (
        "where it touches the floor"
    )


@pytest.mark.slow
def test_a_wall_stops_it_before_it_has_lost_its_balance(standing):
    """All of a body that may fall meets colliders, from the beginning on."""
    wall = Collider("wall", Solid("box", (0.1, 2.0, 1.5)), (-0.6, 0.0, 1.5))
    recording = simulation(standing, "brace", 4.0, 450.0, BACK, colliders=(wall,)).run()
    assert recording.body_positions[..., 0].min() > -0.5


# --- What cannot be ------------------------------------------------------------------------------


def test_what_follows_the_animation_cannot_fall(standing):
    weights = {"arms": np.zeros(len(standing))}
    with pytest.raises(
        SettingsError, match=r"cannot fall: set all physics weights to 1, or choose"
    ):
        simulation(standing, "limp", weights=weights)


def test_settings_without_falls_are_written_as_before():
    assert "when_it_falls" not in Settings().as_dict()
    falls = Settings(when_it_falls="brace")
    assert Settings.from_dict(falls.as_dict()) == falls
    with pytest.raises(
        SettingsError, match="no when_it_falls 'dance': use stop, limp, brace, roll"
    ):
        Settings(when_it_falls="dance")


# --- What makes it fall --------------------------------------------------------------------------


def slab(friction=1.0, positions=(0.0, 0.0, -0.1), half=(3.0, 3.0, 0.1)):
    """Something to stand on."""
    turns = (1.0, 0.0, 0.0, 0.0)
    if np.ndim(positions) == 2:
        turns = np.tile(turns, (len(positions), 1))
    return Collider("slab", Solid("box", half), positions, turns, friction)


@pytest.mark.slow
@pytest.mark.parametrize(("friction", "falls"), [(1.0, False), (0.05, True)])
def test_feet_slip_on_what_is_slippery(make_motion, friction, falls):
    ice = {"colliders": (slab(friction),), "floor": -0.5}
    recording = simulation(make_motion(3.0), "limp", None, 200.0, BACK, **ice).run()
    assert (recording.stood is not None) == falls, recording.why()


@pytest.mark.slow(captured=False)
def test_it_falls_where_what_it_stands_on_goes_away(make_motion):
    """A trapdoor under the left foot."""
    motion = make_motion(4.0)
    time = np.arange(len(motion)) / motion.rate
    down = np.tile([0.0, 1.0, -0.1], (len(motion), 1))
    down[:, 2] -= np.clip(12.0 * (time - 1.0), 0.0, 1.5)
    sides = (
        slab(positions=down, half=(3.0, 1.0, 0.1)),
        slab(positions=(0.0, -1.0, -0.1), half=(3.0, 1.0, 0.1)),
    )
    recording = simulation(motion, "limp", force=0.0, colliders=sides, floor=-1.0).run()
    assert 1.0 < recording.fell_at < 2.0 and recording.filled
    fallen = round((recording.fell_at + 0.2) * motion.rate)
    assert recording.com[fallen, 1] > recording.com[50, 1] + 0.02, "to that side"
    assert recording.body_positions[-1, :, 2].min() > -1.02, "on the floor below"


@pytest.mark.slow
def test_what_sweeps_its_shins_trips_it(make_motion):
    """A bar that comes from behind."""
    motion = make_motion(4.0)
    time = np.arange(len(motion)) / motion.rate
    way = np.zeros((len(motion), 3))
    way[:, 0] = np.minimum(-1.0 + 3.0 * np.maximum(time - 0.5, 0), 1.5)
    way[:, 2] = 0.15
    turns = np.tile((1.0, 0.0, 0.0, 0.0), (len(motion), 1))
    bar = Collider("bar", Solid("box", (0.03, 1.0, 0.03)), way, turns)
    recording = simulation(motion, "brace", force=0.0, colliders=(bar,)).run()
    assert 0.7 < recording.fell_at < 2.0 and recording.filled
    assert recording.com[-1, 2] < 0.4 * recording.com[0, 2]
    assert simulation(motion, "brace", force=0.0).run().success

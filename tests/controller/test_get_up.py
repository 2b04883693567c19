# SPDX-License-Identifier: GPL-3.0-or-later
"""Getting up: poses that meet goals, what presses the floor, and bodies that come to stand."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from poise.controller import Character, Settings, Simulation
from poise.controller.body.momentum import GRAVITY
from poise.controller.control.legs import Legs
from poise.controller.falls.compliance import arms_of, falling_body, relaxed_limits
from poise.controller.falls.fall import Fall
from poise.controller.falls.get_up import MOST_HELP, is_level
from poise.controller.falls.posing import BodyPose, Goals, Tree, meet
from poise.controller.falls.rising import KNOTS, Knot, Rising, marks_of
from poise.controller.falls.stages import FROM_FRONT, STAND, STEP_IN
from poise.controller.falls.standing import going_on, standing_still
from poise.controller.falls.supporting import non_negative, presses
from poise.controller.geometry.rotations import (
    exponential,
    matrix_from_quaternion,
    quaternion_from_matrix,
    rotation_about,
    rotation_vector,
)
from poise.controller.geometry.skeleton import SEGMENT_INDEX
from poise.controller.geometry.solids import Collider, Solid
from poise.controller.reference.lying import Hold, started
from poise.controller.reference.reference import Reference
from poise.controller.simulation.scenario import Push, Scenario
from poise.controller.simulation.world import World

AHEAD = (1.0, 0.0)
BACK, ASIDE = (pytest.param(way, marks=pytest.mark.slow) for way in ((-1.0, 0.0), (0.0, 1.0)))
LEFT_HAND = SEGMENT_INDEX["forearm_l"]


def upright(character, motion):
    """The BodyPose in which a motion begins."""
    trajectory = character.trajectory(motion)
    frame = matrix_from_quaternion(trajectory.rotation[0])
    return BodyPose(trajectory.root[0], frame, trajectory.angles[0])


def bent(pose, seed=0, most=0.5):
    """A pose with other angles, turned and moved."""
    random = np.random.default_rng(seed)
    angles = pose.angles + random.uniform(-most, most, len(pose.angles))
    turn = matrix_from_quaternion(exponential(random.uniform(-1, 1, 3)))
    return BodyPose(pose.root + random.uniform(-1, 1, 3), turn @ pose.frame, angles)


# --- Poses ---------------------------------------------------------------------------------------


def test_slopes_are_those_of_finite_differences(adult, standing):
    tree, pose = Tree(adult), bent(upright(adult, standing))
    point, step = np.array([0.02, -0.03, -0.2]), 1e-6
    placed = tree.placed(pose)
    slope = placed.slope(LEFT_HAND, placed.point(LEFT_HAND, point))
    mass = placed.com_slope()
    for i in range(6 + adult.dofs):
        ends = []
        for sign in (-1, 1):
            change = np.zeros(6 + adult.dofs)
            change[i] = sign * step
            turn = matrix_from_quaternion(exponential(change[3:6]))
            moved = BodyPose(pose.root + change[:3], turn @ pose.frame, pose.angles + change[6:])
            there = tree.placed(moved)
            ends.append(np.concatenate([there.point(LEFT_HAND, point), there.com]))
        found = (ends[1] - ends[0]) / (2 * step)
        assert np.concatenate([slope[:, i], mass[:, i]]) == pytest.approx(found, abs=1e-6)


def test_a_placed_body_is_where_kinematics_have_it(adult, standing):
    pose = bent(upright(adult, standing))
    placed = Tree(adult).placed(pose)
    joints, frames = adult.forward(pose.root[None], pose.frame[None], pose.angles[None])
    assert placed.positions == pytest.approx(joints[0])
    assert placed.frames == pytest.approx(frames[0])


def goals_for(points, pose, dofs, com=None):
    weights = np.full(3, 10.0)
    return Goals(
        [(segment, point, place, weights) for segment, point, place in points],
        (pose.frame, 0.1),
        (pose.root, np.full(3, 0.1)),
        (np.zeros(3) if com is None else com, np.zeros(3) if com is None else [5.0, 5.0, 0.0]),
        (pose.angles, np.full(dofs, 0.01)),
    )


def test_goals_that_can_be_met_are_met_within_limits(adult, standing):
    tree, pose = Tree(adult), upright(adult, standing)
    limits = relaxed_limits(adult, pose.angles)
    there = tree.placed(pose._replace(angles=pose.angles.clip(*limits.T)))
    place = there.point(LEFT_HAND, np.zeros(3)) + [0.2, 0.1, 0.2]
    feet = [
        (mark.segment, mark.point, there.point(mark.segment, mark.point))
        for name, mark in marks_of(adult).items()
        if name[:4] in ("heel", "ball")
    ]
    goals = goals_for([(LEFT_HAND, np.zeros(3), place), *feet], pose, adult.dofs)
    found = meet(tree, pose, goals, limits, 30)
    placed = tree.placed(found)
    assert placed.point(LEFT_HAND, np.zeros(3)) == pytest.approx(place, abs=0.01)
    for segment, point, foot in feet:
        assert placed.point(segment, point) == pytest.approx(foot, abs=0.01)
    assert (found.angles >= limits[:, 0] - 1e-9).all()
    assert (found.angles <= limits[:, 1] + 1e-9).all()


def test_what_cannot_be_reached_stays_within_limits(adult, standing):
    """An ankle is to be behind the back: the knee does not bend backward for it."""
    tree, pose = Tree(adult), upright(adult, standing)
    limits = relaxed_limits(adult, pose.angles)
    start = pose._replace(angles=pose.angles.clip(*limits.T))
    foot = SEGMENT_INDEX["foot_l"]
    goals = goals_for([(foot, np.zeros(3), pose.root + [-0.3, 0, 0.6])], pose, adult.dofs)
    found = meet(tree, start, goals, limits, 30)
    assert (found.angles >= limits[:, 0] - 1e-9).all()
    assert (found.angles <= limits[:, 1] + 1e-9).all()


# --- What presses --------------------------------------------------------------------------------


def test_non_negative_least_squares_are_those_of_scipy():
    optimize = pytest.importorskip("scipy.optimize")
    random = np.random.default_rng(5)
    for _ in range(20):
        matrix, wanted = random.normal(size=(9, 14)), random.normal(size=9)
        matrix = np.concatenate([matrix, 0.1 * np.eye(14)])
        wanted = np.concatenate([wanted, np.zeros(14)])
        found = non_negative(matrix.T @ matrix, matrix.T @ wanted)
        assert found == pytest.approx(optimize.nnls(matrix, wanted)[0], abs=1e-8)


def test_the_floor_carries_a_weight_and_only_pushes():
    points = np.array([[x, y, 0.0] for x in (-0.2, 0.3) for y in (-0.1, 0.1)])
    centre, weight = np.array([0.05, 0.02, 0.9]), 700.0
    forces = presses(points, centre, np.array([0, 0, weight, 0, 0, 0]))
    assert forces[:, 2].min() >= 0
    assert forces.sum(0) == pytest.approx([0, 0, weight], rel=0.02, abs=10)
    assert np.cross(points - centre, forces).sum(0) == pytest.approx([0, 0, 0], abs=10)
    away = presses(points, centre + [1.0, 0, 0], np.array([0, 0, weight, 0, 0, 0]))
    assert away[:, 2].min() >= 0, "it does not pull"
    assert away[:2].sum() == pytest.approx(0.0, abs=1e-6), "what is far away does not help"
    assert presses(np.zeros((0, 3)), centre, np.zeros(6)).shape == (0, 3)


def test_the_floor_holds_by_friction_alone():
    points = np.array([[0.0, 0.0, 0.0]])
    forces = presses(points, np.array([0.0, 0, 0.5]), np.array([900.0, 0, 100.0, 0, 0, 0]))
    assert abs(forces[0, 0]) <= 0.7 * forces[0, 2] + 1e-9


# --- The way -------------------------------------------------------------------------------------


@pytest.fixture
def kneeling(adult, standing):
    """(Rising, BodyPose on all fours, Knot there) of an adult."""
    pose = upright(adult, standing)
    body = falling_body(adult, pose.angles)
    tree = Tree(body)
    stand = standing_still(adult, standing, Reference.build(adult, standing), 2).pose
    arms = arms_of(adult, pose.angles)
    rising = Rising(tree, arms, stand, adult.ground, "l", 0.0)
    low = pose._replace(root=pose.root * [1, 1, 0.2], frame=rotation_about(1, 1.5))
    knots, _ = rising.begin(FROM_FRONT[1], low, Knot(low, tree.placed(low).com))
    return rising, tree, knots[-1]


def test_a_stage_keeps_what_is_on_the_floor_and_sets_its_foot_down(kneeling):
    rising, tree, last = kneeling
    knots, places = rising.begin(STEP_IN, last.pose, last)
    assert len(knots) == KNOTS + 1
    start = tree.placed(knots[0].pose)
    for name in ("hand_L", "hand_T", "knee_T"):
        mark = rising.mark(name)
        at = start.point(mark.segment, mark.point)[:2]
        for knot in knots[1:]:
            there = tree.placed(knot.pose).point(mark.segment, mark.point)
            assert there[:2] == pytest.approx(at, abs=0.05)
    placed = tree.placed(knots[-1].pose)
    for name in ("heel_L", "ball_L"):
        mark = rising.mark(name)
        assert placed.point(mark.segment, mark.point)[2] == pytest.approx(0.0, abs=0.04)
    heel = rising.mark("heel_L")
    ahead = placed.point(heel.segment, heel.point) - start.point(heel.segment, heel.point)
    assert ahead[0] > 0.3, "the foot has come forward"
    assert rising.missed(STEP_IN, knots[-1].pose, places) < 0.06
    assert rising.missed(STEP_IN, last.pose, places) > 0.3


def test_the_last_stage_ends_as_it_will_stand(kneeling):
    rising, _, last = kneeling
    knots, _ = rising.begin(STAND, last.pose, last)
    stand = knots[-1].pose
    assert stand.frame[2, 2] > 0.98
    turn, move = rising.turn, rising.move
    assert turn @ turn.T == pytest.approx(np.eye(3))
    assert move[2] == pytest.approx(0.0)


def test_who_stands_is_on_both_feet_with_the_weight_over_them(make_motion):
    def walking(time):
        swing = 0.5 * np.sin(2 * np.pi * time)
        zero = np.zeros_like(time)
        return {
            "thigh_l": np.stack([zero, swing, zero], 1),
            "thigh_r": np.stack([zero, -swing, zero], 1),
        }

    motion = make_motion(2.0, sway=walking)
    character = Character.from_motion(motion)
    reference = Reference.build(character, motion)
    still = standing_still(character, motion, reference, 30)
    assert len(still.motion) == 30
    trajectory = character.trajectory(still.motion)
    joints, frames = character.pose(trajectory)
    soles = character.sole_corners(joints, frames)[0, :, :4]
    assert np.abs(soles[..., 2] - character.ground).max() < 0.02
    com = character.masses @ character.body_centres(joints, frames)[0] / character.mass
    assert soles[..., 0].min() < com[0] < soles[..., 0].max()
    assert soles[..., 1].min() < com[1] < soles[..., 1].max()
    turn, move = rotation_about(2, 0.7), np.array([1.0, -2.0, 0.0])
    placed = still.placed(turn, move, 5.0)
    assert placed.first_frame == 5.0
    assert placed.positions[0, 0] == pytest.approx(turn @ still.motion.positions[0, 0] + move)
    one, other = (matrix_from_quaternion(m.rotations[0, 3]) for m in (still.motion, placed))
    assert rotation_vector(quaternion_from_matrix(other @ one.T)) == pytest.approx([0, 0, 0.7])


# --- Up again ------------------------------------------------------------------------------------


def test_arms_swing_the_shortest_way(kneeling, adult, standing):
    """A turn by two pi is none, neither on the way nor for who then stands."""
    rising, _, last = kneeling
    knots, _ = rising.begin(STAND, last.pose, last)
    for arm in arms_of(adult, last.pose.angles):
        turns = [arm.frame(knot.pose.angles) for knot in knots]
        steps = [
            np.linalg.norm(rotation_vector(quaternion_from_matrix(b @ a.T)))
            for a, b in pairwise(turns)
        ]
        whole = rotation_vector(quaternion_from_matrix(turns[-1] @ turns[0].T))
        assert sum(steps) < np.linalg.norm(whole) + 0.3
        bends = np.array([knot.pose.angles[arm.dofs] for knot in knots])
        assert np.abs(np.diff(bends, axis=0)).max() < 2.0, "no jump by a turn"
    reference = Reference.build(adult, standing)
    angles = reference.angles[0].copy()
    arm = arms_of(adult, angles)[0]
    angles[arm.dofs] += [np.pi + 2 * np.pi, np.pi - 2 * angles[arm.dofs][1], np.pi]
    near = reference.angles[0].copy()
    near[arm.dofs] = arm.angles(arm.frame(near), angles[arm.dofs])
    assert near == pytest.approx(angles, abs=1e-6)
    assert arm.frame(near) == pytest.approx(arm.frame(reference.angles[0]), abs=1e-6)


def simulation(
    motion, kind="limp", seconds=None, direction=(1.0, 0.0), force=600.0, once_up="stand", **more
):
    character = Character.from_motion(motion)
    push = Push(0.5, 0.2, (force * direction[0], force * direction[1], 0.0))
    pushes = (push, *more.pop("pushes", ()))
    settings = Settings(duration=seconds, when_it_falls=kind, get_up=True, once_up=once_up)
    scenario = Scenario(pushes=pushes, **more)
    return Simulation(character, motion, settings=settings, scenario=scenario)


@pytest.fixture(scope="module")
def risen(make_motion):
    """{direction: Recording} of a person who is pushed over, and gets up."""
    found = {}

    def run(direction):
        if direction not in found:
            found[direction] = simulation(make_motion(11.0), direction=direction).run()
        return found[direction]

    return run


@pytest.mark.parametrize("direction", [AHEAD, BACK, ASIDE])
def test_who_lies_gets_up_and_stands(risen, direction):
    recording = risen(direction)
    assert recording.up_at is not None, recording.why()
    assert recording.fell_at < recording.rest_at < recording.up_at < recording.rest_at + 6.5
    tall = recording.com[0, 2]
    lying = round(recording.rest_at * recording.motion.rate)
    assert recording.com[lying, 2] < 0.5 * tall
    stands = recording.com[recording.up :, 2]
    assert stands.min() > 0.85 * tall
    assert recording.contacts[recording.up + 30 :].all(1).mean() > 0.9, "a step aside, and both"
    speeds = np.linalg.norm(np.diff(recording.com[-30:], axis=0), axis=1) * recording.motion.rate
    assert speeds.max() < 0.1, "it stands still"
    assert recording.filled and not recording.success
    assert recording.why().startswith(f"Fell at {recording.fell_at:.2f} s (frame ")
    assert f"stands again from {recording.up_at:.2f} s" in recording.why()


@pytest.mark.parametrize("direction", [AHEAD, BACK])
def test_help_is_told_in_newtons_and_ends(risen, direction):
    recording = risen(direction)
    weight = recording.character.mass * GRAVITY
    summary = recording.summary()
    assert 0 < summary["help"]["mean"] < 0.5 * weight
    assert summary["help"]["most"] <= MOST_HELP * weight * (1 + 1e-9)
    assert summary["help_torque"]["most"] < 150
    began = round(recording.rest_at * recording.motion.rate) + 1
    assert not recording.residual[:began].any() and not recording.residual[recording.up :].any()
    sizes = np.linalg.norm(recording.residual[began : recording.up, :3], axis=1)
    assert summary["help"]["mean"] == pytest.approx(sizes.mean())


def test_the_forces_of_a_lying_body_are_its_weight(adult, standing):
    """Also where the physics takes several steps in one of the control."""
    pose = upright(adult, standing)
    scenario = Scenario(whole_body=True, self_collision=True)
    world = World(adult, 300.0, Legs(adult).segments, scenario, falling=True)
    lying = rotation_about(1, -np.pi / 2) @ pose.frame
    zero, rest = np.zeros(3), np.zeros(adult.dofs)
    world.reset(pose.root * [1, 1, 0] + [0, 0, 0.2], lying, zero, zero, pose.angles, rest)
    fall = Fall(adult, world, "limp", 300.0)
    for _ in range(500):
        world.apply(fall.torques())
        world.drive(*fall.friction())
        world.step()
    found = sum(touch.force[2] for touch in world.touches())
    assert found == pytest.approx(adult.mass * GRAVITY, rel=0.03)


@pytest.mark.slow
def test_who_lies_beside_a_wall_says_why_it_stays(make_motion):
    motion = make_motion(9.0)
    positions = np.tile([1.3, 0.0, 0.5], (len(motion), 1))
    turns = np.tile([1.0, 0, 0, 0], (len(motion), 1))
    wall = Collider("Wall", Solid("box", (0.2, 6.0, 1.0)), positions, turns)
    recording = simulation(motion, colliders=(wall,)).run()
    assert recording.filled and recording.up_at is None and recording.stood_again == []
    assert recording.why().endswith(" on. It does not get up where the floor is not level.")


@pytest.mark.slow
def test_who_is_pushed_over_again_falls_as_a_whole_and_gets_up_again(make_motion):
    """It tried to get up while it toppled, with feet alone that met the floor."""
    motion = make_motion(18.0)
    again = Push(9.5, 0.2, (0.0, 600.0, 0.0))
    simulated, told = simulation(motion, pushes=(again,)), [""] * len(motion)
    for sample in simulated:  # some twice, where it falls from a little before
        told[sample] = simulated.recording.why()
    recording = simulated.recording
    high = recording.com[:, 2] / recording.com[0, 2]
    lies, stands, lies_again = (
        high[round(60 * start) : round(60 * end)] for start, end in ((1, 4), (9, 9.5), (10, 13))
    )
    assert lies.min() < 0.3 and lies_again.min() < 0.3 and stands.min() > 0.85
    assert high.min() > 0.03, "it lies on the floor"
    assert recording.fell_at < 2 and recording.up_at > 11
    (fell,) = recording.fell_again
    assert 570 < fell < 620
    first, last = f"Fell at {recording.fell_at:.2f} s (frame ", f"(frame {fell})"
    assert all("stands again" in one for one in told[550:570])
    assert not any("stands again" in one for one in told[fell:800])
    assert "and got up. Fell at" in told[fell] and last in told[fell]
    assert told[fell].startswith(first) and told[fell].endswith("still moves at the end.")
    assert last in told[-1] and "stands again from" in told[-1]


@pytest.mark.slow
def test_who_topples_as_the_range_ends_does_not_stand(make_motion):
    """In the very sample in which it is certain that it falls, and before that."""
    motion, again = make_motion(11.0), Push(9.5, 0.2, (0.0, 600.0, 0.0))
    (fell,) = simulation(motion, seconds=10.5, pushes=(again,)).run().fell_again
    at_the_end = 0
    for last in range(fell - 3, fell + 1):  # it comes there a little sooner or later each time
        seconds = (last - 1) / motion.rate
        recording = simulation(motion, seconds=seconds, pushes=(again,)).run()
        assert recording.filled and recording.up_at is None
        (found,) = recording.fell_again
        assert recording.why().endswith(f"(frame {found}), and still moves at the end.")
        at_the_end += found == last == len(recording)
    assert at_the_end >= 2


def test_nobody_gets_up_from_what_is_not_level(adult, standing):
    pose = upright(adult, standing)
    half = np.array([3.0, 3.0, 0.5])
    a = np.radians(15)
    tilt = (float(np.cos(a / 2)), 0.0, float(np.sin(a / 2)), 0.0)
    for rotation, level in (((1.0, 0.0, 0.0, 0.0), True), (tilt, False)):
        slab = Collider("slab", Solid("box", tuple(half)), (0.0, 0.0, -0.2), rotation)
        world = World(adult, 300.0, Legs(adult).segments, Scenario(colliders=(slab,)))
        zero = np.zeros(3)
        world.reset(pose.root, pose.frame, zero, zero, pose.angles, np.zeros(adult.dofs))
        assert is_level(world, adult) == level
        world.close()


@pytest.mark.slow
def test_who_cannot_get_up_lies_and_says_so(make_motion):
    a, half = np.radians(15), 3.0
    tilt = (float(np.cos(a / 2)), 0.0, float(np.sin(a / 2)), 0.0)
    landing = Collider("landing", Solid("box", (1.0, 3.0, 1.0)), (-0.7, 0.0, -1.0))
    down = np.array([np.cos(a), 0, -np.sin(a)]), np.array([np.sin(a), 0, np.cos(a)])
    middle = [0.3, 0, 0] + half * down[0] - 0.5 * down[1]
    ramp = Collider("ramp", Solid("box", (half, 3.0, 0.5)), tuple(middle), tilt)
    recording = simulation(make_motion(7.0), colliders=(landing, ramp), floor=-2.0).run()
    assert recording.up_at is None and recording.summary()["help"] is None
    assert "lies still from" in recording.why()


@pytest.mark.slow
def test_get_ups_are_deterministic(make_motion, risen):
    other = simulation(make_motion(11.0), direction=(1.0, 0.0)).run()
    assert np.array_equal(other.body_positions, risen((1.0, 0.0)).body_positions)


def test_settings_without_get_ups_are_written_as_before():
    assert "get_up" not in Settings(when_it_falls="limp").as_dict()
    up = Settings(when_it_falls="brace", get_up=True)
    assert Settings.from_dict(up.as_dict()) == up
    assert replace(up, get_up=False).as_dict() == Settings(when_it_falls="brace").as_dict()


@pytest.mark.slow
def test_who_bursts_once_it_has_got_up_falls_again(make_motion, monkeypatch):
    """It was an error, and all that was simulated was lost."""
    simulated = simulation(make_motion(9.0), direction=AHEAD)
    recording, is_wild, thrown = simulated.recording, simulated._is_wild, []

    def throw(sample, centres):
        if not thrown and recording.up is not None and sample == recording.up + 30:
            thrown.append((sample, recording.fell_at, recording.reward))
            state, still = simulated.world.state(False), np.zeros(3)
            spins = np.full(simulated.character.dofs, 200.0)
            simulated.world.reset(state.root, state.frame, still, still, state.angles, spins)
        return is_wild(sample, centres)

    monkeypatch.setattr(simulated, "_is_wild", throw)
    simulated.run()
    ((sample, fell_at, reward),) = thrown
    assert recording.filled and len(recording) == len(recording.reference)
    (fell,) = recording.fell_again
    assert sample - 0.2 * recording.motion.rate < fell <= sample
    assert (recording.fell_at, recording.reward) == (fell_at, reward), "of the first fall"
    assert "and got up. Fell at" in recording.why()
    speeds = np.linalg.norm(np.diff(recording.body_positions, axis=0), axis=2).max(1) * 60
    assert speeds.max() < 20


# --- On with it ----------------------------------------------------------------------------------


def test_who_goes_on_starts_without_a_jump():
    """From rest at a sample to the animation's own speed, which then stays."""
    shown = started(20.0, 240, 60.0)
    speeds = np.diff(shown)
    assert shown[0] == shown[29] == 20.0
    assert (np.diff(speeds) > -1e-9).all() and np.abs(np.diff(speeds)).max() < 0.06
    assert speeds[61:] == pytest.approx(1.0)


def test_what_is_not_simulated_stops_goes_there_and_goes_on():
    """And again, where it falls again."""
    first, second = started(30.0, 460, 60.0), started(90.0, 460, 60.0)
    hold = Hold.of(40, 460, 60.0, [(200, first, 280), (400, second, None)])
    assert hold.at[:40] == pytest.approx(np.arange(40)), "until it falls"
    assert np.ptp(hold.at[60:140]) == 0 and (hold.whole[60:200] == 1).all()
    assert hold.at[200:280] == pytest.approx(first[:80]) and hold.whole[230] == 0
    assert np.abs(np.diff(hold.at[130:280])).max() < 1.5, "it does not jump on its way there"
    assert np.ptp(hold.at[300:340]) == 0 and (hold.whole[300:400] == 1).all()
    assert hold.at[300] == pytest.approx(hold.at[279] + 9, abs=1.0)
    assert hold.at[400:] == pytest.approx(second[:60])
    assert hold.of_the_living is hold and not hold.lives, "all stops of one that ends there"


def test_fingers_and_faces_live_on_as_fast_as_there_is_tone():
    """Nothing pops: what faints comes to a stop, and who goes on is blended over."""
    tone = np.r_[np.ones(50), np.full(50, 0.5), np.zeros(60)]
    hold = Hold.of(40, 160, 60.0, (), tone)
    assert np.ptp(hold.at[60:]) == 0
    assert hold.living[:51] == pytest.approx(np.arange(51)), "awake as animated"
    steps = np.diff(hold.living)
    assert steps[70:95] == pytest.approx(0.5) and not steps[125:].any()
    assert np.abs(np.diff(steps)).max() < 0.06, "gradually"
    assert not hold.comes.any() and not hold.lives
    assert Hold.of(40, 100, 60.0, (), np.ones(100)).lives
    up = started(30.0, 200, 60.0)
    again = Hold.of(40, 300, 60.0, [(150, up, None)], np.ones(300))
    assert again.living[150:] == pytest.approx(up[:150]), "who goes on does so with fingers, too"
    assert again.living[:150] == pytest.approx(np.arange(150)), "and does not play the way back"
    assert again.comes[149] > 0.9 and again.comes[80] == 0 and not again.comes[150:].any()
    assert (again.meant[100:150] == up[0]).all()
    later = again.after(5)
    assert np.array_equal(later.living[:100], np.arange(100)) and later.comes[154] > 0.9
    assert later.meant[154] == up[0] + 5


def test_it_goes_on_from_where_one_can_stand(make_motion):
    """The first sample since then, at rest; from there, what it does is the animation's."""
    motion = make_motion(6.0, sway=_bow)
    character = Character.from_motion(motion)
    reference = Reference.build(character, motion)
    up = going_on(character, motion, reference, 82, 400)
    assert up.shown[0] > 82 and up.shown[-1] == len(motion) - 1, "not while it bows fast"
    assert going_on(character, motion, reference, 30, 400).shown[0] == 30
    assert going_on(character, motion, reference, 200, 400) is None, "nothing moves any more"
    at = np.floor(up.shown[100:200]).astype(int)
    assert up.motion.rotations[100:200] == pytest.approx(motion.rotations[at], abs=0.05)
    assert np.abs(np.diff(up.motion.positions, axis=0)).max() < 0.05


def test_who_is_always_on_the_way_cannot_go_on(make_motion):
    motion = make_motion(2.0)
    away = 1.5 * np.arange(len(motion)) / motion.rate
    positions = motion.positions + np.stack([away, 0 * away, 0 * away], 1)[:, None]
    motion = replace(motion, positions=positions)
    character = Character.from_motion(motion)
    assert going_on(character, motion, Reference.build(character, motion), 60, 100) is None


@pytest.mark.slow(captured=False)
def test_it_goes_on_with_the_animation(make_motion, arms_swing):
    motion = make_motion(14.0, sway=arms_swing)
    for once_up in ("stand", "go_on"):
        simulated = simulation(motion, "brace", once_up=once_up)
        recording = simulated.run()
        assert recording.up is not None and recording.up_at < 12
        told = f"It goes on with the animation from frame {motion.frame(recording.stood - 1):g}, as"
        goes_on = once_up == "go_on"
        assert (told in recording.why()) == goes_on == (recording.went_on != [None])
        last = recording.body_rotations[-60:, LEFT_HAND]
        swung = np.linalg.norm(np.diff(last, axis=0), axis=1).sum()
        assert (swung > 0.1) == goes_on, f"arms swing on, or hang, {swung}"
        assert recording.com[-1, 2] > 0.9 * recording.com[0, 2]
        assert (recording.hold.at[-1] > recording.hold.at[recording.stood + 60]) == goes_on


def _bow(time):
    """The trunk goes down and up again, from 1 to 2.5 s."""
    share = np.clip((time - 1) / 1.5, 0, 1)
    turns = np.zeros((len(time), 3))
    turns[:, 1] = 0.9 * np.sin(np.pi * share) ** 2
    return {name: turns for name in ("trunk", "head")}

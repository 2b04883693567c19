# SPDX-License-Identifier: GPL-3.0-or-later
"""Held hands and feet obey mechanics: they carry what hangs on them, and break where they say."""

from dataclasses import replace

import numpy as np
import pybullet
import pytest

from poise.controller import (
    Character,
    Collider,
    Hold,
    Problem,
    Push,
    Scenario,
    Settings,
    SettingsError,
    Solid,
    Thing,
)
from poise.controller.body.momentum import GRAVITY
from poise.controller.checks.clip_check import check
from poise.controller.control.foot_forces import FootForces
from poise.controller.geometry.rotations import exponential, matrix_from_quaternion, multiply
from poise.controller.geometry.skeleton import LANDMARK_INDEX, SEGMENT_INDEX
from poise.controller.simulation.holds import at_times
from poise.controller.simulation.world import World

HANDS = ("forearm_l", "forearm_r")
#: [m]: held points stay as near as this to where they are held.
NEAR = 0.005


def arms(shoulder, elbow):
    """A sway for make_motion with both arms turned forward and up by that [rad]."""

    def sway(time):
        zero = np.zeros_like(time)
        upper, lower = (np.stack([zero, zero - turn, zero], 1) for turn in (shoulder, elbow))
        return {f"upper_arm_{s}": upper for s in "lr"} | {f"forearm_{s}": lower for s in "lr"}

    return sway


@pytest.fixture
def hanging(make_motion):
    """hanging(seconds, elbow) -> Motion of a person whose hands are up, a metre over the floor."""

    def make(seconds=2.0, elbow=1.0):
        motion = make_motion(seconds, sway=arms(3.0 - elbow / 2, elbow))
        return replace(motion, positions=motion.positions + [0.0, 0.0, 1.0])

    return make


@pytest.fixture
def reaching(make_motion):
    """A person who stands, and holds both hands ahead."""
    return make_motion(3.0, sway=arms(1.4, 0.3))


def leaning(motion, angle):
    """The motion with all but the feet tilted forward about the ankles by an angle [rad]."""
    turn = exponential(np.array([[0.0, angle, 0.0]]))
    frame = matrix_from_quaternion(turn)[0]
    ankles = {side: LANDMARK_INDEX[f"ankle_{side}"] for side in "lr"}
    about = motion.positions[0, list(ankles.values())].mean(0)
    positions = (motion.positions - about) @ frame.T + about
    rotations = multiply(turn[:, None], motion.rotations)
    for side, ankle in ankles.items():
        for name in ("foot", "toe"):
            index = SEGMENT_INDEX[f"{name}_{side}"]
            rotations[:, index] = motion.rotations[:, index]
        for name in ("ball", "toe"):
            index = LANDMARK_INDEX[f"{name}_{side}"]
            way = motion.positions[:, index] - motion.positions[:, ankle]
            positions[:, index] = positions[:, ankle] + way
    return replace(motion, rotations=rotations, positions=positions)


def prepared(motion, holds=(), settings=None, **scenario):
    """The Simulation of a motion in which that holds the body."""
    scenario = Scenario(holds=tuple(holds), **scenario)
    return Problem(motion, settings=settings or Settings(), scenario=scenario).simulation(None, 0)


def both(start=0.0, end=99.0, **values):
    """Holds of both hands."""
    return [Hold(segment, start, end, name=segment[-1].upper(), **values) for segment in HANDS]


def palms(motion):
    """Where the animation has both palms at first [m]."""
    character = Character.from_motion(motion)
    joints, frames = character.pose(character.trajectory(motion))
    return [
        joints[0, SEGMENT_INDEX[hold.segment]]
        + frames[0, SEGMENT_INDEX[hold.segment]] @ hold.grip(character)
        for hold in both()
    ]


def test_both_hands_of_who_hangs_carry_the_weight(hanging):
    simulation = prepared(hanging(4.0, 0.1), both())
    recording = simulation.run()
    assert recording.filled and not recording.why(), "whoever hangs has not fallen"
    assert not recording.contacts.any() and simulation.character.ground == 0.0
    weight = simulation.character.mass * GRAVITY
    mean = recording.hold_forces[60:].sum(1).mean(0)
    assert mean[2] == pytest.approx(weight, rel=0.02)
    assert np.abs(mean[:2]).max() < 0.06 * weight, "it swings a little"
    one, other = recording.hold_forces[60:, :, 2].mean(0)
    assert one == pytest.approx(other, rel=0.01), "and hangs on both alike"
    assert np.nanmax(recording.hold_gaps) < NEAR / 10


@pytest.mark.slow(captured=False)
def test_who_hangs_by_one_hand_swings_less_and_less(hanging):
    """Nothing drives it: it used to swing harder and harder, and to turn until it burst."""
    left, _ = both()
    recording = prepared(hanging(9.0, 0.1), [left]).run()
    assert recording.filled and not recording.why()
    forces = np.linalg.norm(recording.hold_forces[:, 0], axis=1)
    assert forces[30:].max() < 1.3 * recording.character.mass * GRAVITY
    rate = round(recording.motion.rate)
    swing = np.linalg.norm(recording.com[:, :2] - recording.com[-rate:, :2].mean(0), axis=1)
    assert swing[-2 * rate :].max() < swing[: 2 * rate].max()
    pelvis = matrix_from_quaternion(recording.body_rotations[:, 0])
    assert np.degrees(np.arccos(np.clip(pelvis[:, 0, 0], -1, 1))).max() < 45, "nor does it turn"


def test_who_hangs_needs_no_floor(hanging):
    """The clip check tells of no body that floats where holds carry it, and of what comes after."""
    motion = hanging(2.0)
    character = Problem(motion, scenario=Scenario(holds=tuple(both()))).character
    floats = check(character, motion)
    assert [finding.kind for finding in floats.findings][:1] == ["float"] and floats.mends
    held = check(character, motion, held=at_times(both(), motion))
    kinds = {finding.kind for finding in held.findings}
    assert not kinds & {"float", "start", "flight", "support"} and not held.mends
    assert held.recommend == "balance" and "what is held carries it" in held.verdict
    let_go = check(character, motion, held=at_times(both(end=1.0), motion))
    (finding,) = (one for one in let_go.findings if one.kind == "float")
    assert finding.frames[0] == pytest.approx(motion.frame(round(1.0 * motion.rate)), abs=2)


def test_forces_of_holds_are_what_changes_the_momentum(hanging):
    """At each sample, as nothing else but gravity acts."""
    recording = prepared(hanging(1.0), both()).run()
    mass, rate = recording.character.mass, recording.motion.rate
    simulation = prepared(hanging(1.0), both())
    simulation.begin()
    world, momenta = simulation.world, []
    for sample in range(1, 60):
        simulation.advance(sample)
        state = world.state(False)
        rows = world.mass_matrix(state.angles)[:6]
        momenta.append(state.frame @ (rows[3:6] @ state.speeds))
    given = (recording.hold_forces[2:60].sum(1) - [0, 0, mass * GRAVITY]) / rate
    assert np.abs(np.diff(momenta, axis=0) - given).max() < 1e-3 * mass
    assert np.abs(given).max() > 1.0, "it does swing"


def test_arms_bear_what_hangs_on_them(hanging, monkeypatch):
    """They know what they carry: without that knowledge, bent elbows give way."""
    motion = hanging(2.0, 1.6)
    errors = []
    for knows in (True, False):
        if not knows:
            monkeypatch.setattr(FootForces, "hang", lambda self, step, state: None)
        simulation = prepared(motion, both())
        recording = simulation.run()
        joints = recording.joints()
        wrist = np.linalg.norm(joints[-1, 0] - recording.body_positions[-1, 4])
        wanted = np.linalg.norm(
            simulation.reference.smooth.joints[-1, 0] - simulation.reference.smooth.centres[-1, 4]
        )
        errors.append(abs(wrist - wanted))
    assert errors[0] < 0.5 * errors[1]


def test_jacobians_are_how_held_points_move(hanging):
    simulation = prepared(hanging(), both())
    simulation.begin()
    world = simulation.world
    world.advance(0.0)
    state = world.state(False)
    random = np.random.default_rng(3)
    frame = matrix_from_quaternion(exponential(np.array([0.5, -0.4, 1.0]))) @ state.frame
    root = state.root - frame @ simulation.character.centres[0]
    angles = state.angles + random.normal(0, 0.1, len(state.angles)) * 0.5
    still, nothing = np.zeros(3), np.zeros(len(angles))

    def points(of):
        world.reset(root, frame, still, still, of, nothing)
        return np.array([world._held_point(hold) for hold in world.scenario.holds])

    points(angles)
    found = np.array(world.held_jacobians())
    step = 1e-3  # Bullet tells where links are in single precision
    for dof in range(len(angles)):
        moved = [points(angles + way * step * (np.arange(len(angles)) == dof)) for way in (1, -1)]
        assert np.abs((moved[0] - moved[1]) / (2 * step) - found[:, :, dof]).max() < 5e-4


def test_a_hold_breaks_at_its_force_and_stays_broken(hanging):
    weight = Character.from_motion(hanging()).mass * GRAVITY
    left, right = both()
    holds = [replace(left, breaking=0.3 * weight), right]
    recording = prepared(hanging(2.0, 0.1), holds).run()
    one, other = recording.grasps()
    assert one.broke and not other.broke
    assert 0.3 * weight < one.force < 0.33 * weight
    assert not recording.held[one.ended :, 0].any() and recording.held[1:, 1].all()
    assert (recording.hold_forces[one.ended + 1 :, 0] == 0).all()
    assert recording.hold_forces[60:, 1, 2].mean() == pytest.approx(weight, rel=0.1)
    assert recording.filled, "it hangs on by the other hand"


def test_who_is_let_go_falls_to_the_floor(hanging):
    recording = prepared(hanging(2.5, 0.1), both(end=0.5), Settings(when_it_falls="limp")).run()
    assert recording.filled and recording.fell_at is not None and recording.fell_at > 0.4
    assert not recording.held[31:].any() and recording.held[1:31].all()
    assert recording.com[-1, 2] < 0.5 < recording.com[30, 2]
    falling = recording.com[32:40, 2]
    assert np.diff(falling, 2).mean() * 60**2 == pytest.approx(-GRAVITY, rel=0.02)


def test_who_faints_hangs_on_by_the_hands_that_are_held(hanging):
    motion = hanging(3.0, 0.1)
    tone = np.ones(len(motion))
    tone[30:] = 0
    recording = prepared(
        motion, both(), Settings(when_it_falls="limp"), strength={"tone": tone}
    ).run()
    weight = recording.character.mass * GRAVITY
    assert recording.stood is not None and recording.held[1:].all()
    assert recording.hold_forces[90:, :, 2].sum(1).mean() == pytest.approx(weight, rel=0.05)
    assert np.nanmax(recording.hold_gaps) < NEAR


def test_a_body_leans_on_what_its_hands_hold(reaching):
    """Feet and hands share the weight; without the hands it has to stand up to lean so far."""
    motion = leaning(reaching, 0.35)
    recording = prepared(motion, both()).run()
    assert recording.success
    weight = recording.character.mass * GRAVITY
    hands, feet = recording.hold_forces[-30:].sum(1).mean(0), recording.contact_forces[-30:]
    feet = feet.sum(1).mean(0)
    assert hands[0] < -0.1 * weight, "the wall pushes it back"
    assert hands[0] + feet[0] == pytest.approx(0.0, abs=0.01 * weight)
    assert hands[2] + feet[2] == pytest.approx(weight, rel=0.01)
    assert np.abs(recording.com[-1] - recording.reference.goals[-1, 0]).max() < 0.03
    # About the ankles, hands and weight balance but for what soles can press.
    ahead = recording.com[-1, 0] - recording.joints()[-1, SEGMENT_INDEX["foot_l"], 0]
    assert ahead > recording.character.feet[0].toe, "alone it would fall over its toes"


def test_a_held_rail_lets_a_body_withstand_a_push(reaching):
    push = Push(1.0, 0.2, (400.0, 0.0, 0.0))
    assert not prepared(reaching, pushes=(push,)).run().success
    held = prepared(reaching, both(0.5), pushes=(push,)).run()
    assert held.success and np.ptp(held.com[:, 0]) < 0.05
    # What the push gives, hands and feet take away again.
    given = (held.hold_forces.sum(1) + held.contact_forces.sum(1))[60:, 0].sum() / 60
    assert given == pytest.approx(-80.0, abs=8.0)


def test_hands_carry_a_thing_and_feet_carry_both(reaching):
    one, other = palms(reaching)
    half = abs(one[1] - other[1]) / 2
    crate = Thing("Crate", Solid("box", (0.15, half, 0.15)), 10.0, position=(one + other) / 2)
    recording = prepared(
        reaching,
        both(to="Crate"),
        things=(crate,),
    ).run()
    assert recording.success
    weight = recording.character.mass * GRAVITY
    hands = recording.hold_forces[-30:].mean(0)
    assert hands[:, 2] == pytest.approx([-5.0 * GRAVITY] * 2, rel=0.02)
    feet = recording.contact_forces[-30:].sum(1).mean(0)
    assert feet[2] == pytest.approx(weight + 10.0 * GRAVITY, rel=0.01)
    assert np.nanmax(recording.hold_gaps) < NEAR


def cart(motion, speed, name="Cart", ahead=0.2):
    """A collider ahead of the hands, which drives away after a second."""
    time = np.arange(len(motion)) / motion.rate
    places = np.tile(np.mean(palms(motion), axis=0) + [ahead, 0, 0], (len(motion), 1))
    places[:, 0] += speed * np.maximum(time - 1, 0)
    turns = np.tile([1.0, 0.0, 0.0, 0.0], (len(motion), 1))
    return Collider(name, Solid("box", (0.1, 0.3, 0.1)), places, turns)


def test_a_cart_draws_who_holds_it_along(reaching):
    recording = prepared(reaching, both(to="Cart"), colliders=(cart(reaching, 0.4),)).run()
    assert recording.success, "it steps along"
    assert np.ptp(recording.com[:, 0]) > 0.6 and recording.summary()["recovery_steps"] >= 2
    assert np.nanmax(recording.hold_gaps) < NEAR


@pytest.mark.slow(captured=False)
def test_a_cart_drags_a_limp_body_by_its_wrist(reaching):
    tone = np.ones(len(reaching))
    tone[30:] = 0
    recording = prepared(
        reaching,
        both(to="Cart")[:1],
        Settings(when_it_falls="limp"),
        colliders=(cart(reaching, 1.5),),
        strength={"tone": tone},
    ).run()
    assert recording.filled and recording.held[1:].all()
    assert recording.com[-1, 0] - recording.com[60, 0] > 2.0 and recording.com[-1, 2] < 0.6
    assert np.nanmax(recording.hold_gaps) < NEAR


def test_a_hand_that_is_held_need_not_wave(make_motion):
    """How far its arm is from the animation's is no fault of the body's, and no fall."""

    def sway(time):
        lifted = 2.6 * np.sin(np.pi * time / 3) ** 2
        return {"upper_arm_l": np.stack([0 * time, -lifted, 0 * time], 1)}

    recording = prepared(make_motion(3.0, sway=sway), [Hold("forearm_l", 0.1, 2.9)]).run()
    assert recording.success, recording.why()
    pose = [values[0] for values in recording.measures.values]
    assert max(pose) < 0.04, "the shoulder lets the arm hang instead of bending the body"
    assert np.nanmax(recording.hold_gaps) < NEAR


def test_a_hand_gets_to_where_it_is_held_and_stays(reaching):
    target = palms(reaching)[0] + [-0.1, 0.0, 0.1]
    hold = Hold("forearm_l", 0.5, 99.0, tuple(target), name="Rail")
    simulation = prepared(reaching, [hold])
    recording = simulation.run()
    assert recording.success and np.nanmax(recording.hold_gaps) < NEAR
    index = SEGMENT_INDEX["forearm_l"]
    frames = matrix_from_quaternion(recording.body_rotations[-1, index])
    point = recording.joints()[-1, index] + frames @ hold.grip(simulation.character)
    assert np.linalg.norm(point - target) < 1e-3
    before = recording.body_positions[30, index] - recording.body_positions[29, index]
    assert np.linalg.norm(before) < 1e-3, "until then nothing pulls"


@pytest.mark.slow(captured=False)
def test_a_foot_is_held_to_the_world(reaching):
    """It takes no step, and floor and hold together carry what the floor alone would."""
    push = Push(1.0, 0.2, (0.0, 80.0, 0.0))
    held = [Hold(f"foot_{side}", 0.2, 99.0) for side in "lr"]
    recording = prepared(reaching, held, pushes=(push,)).run()
    feet = recording.joints()[:, [SEGMENT_INDEX[hold.segment] for hold in held]]
    assert recording.success and np.ptp(feet[20:], axis=0).max() < 1e-3
    assert [grasp.limb for grasp in recording.grasps()] == ["left foot", "right foot"]
    weight = recording.character.mass * GRAVITY
    borne = (recording.hold_forces + recording.contact_forces)[-30:].sum(1).mean(0)
    assert borne == pytest.approx([0.0, 0.0, weight], abs=0.01 * weight)
    assert (
        not prepared(reaching, held, pushes=(replace(push, force=(0.0, 150.0, 0.0)),)).run().steps
    )


@pytest.mark.slow(captured=False)
def test_the_same_twice_to_the_last_bit(make_motion):
    motion = make_motion(1.6, sway=arms(1.4, 0.3))

    def run():
        recording = prepared(
            motion, both(0.2, 1.4, to="Cart"), colliders=(cart(motion, 0.4),)
        ).run()
        return recording.body_positions, recording.hold_forces

    (one, forces), (other, same) = run(), run()
    assert np.array_equal(one, other) and np.array_equal(forces, same)


def test_states_restore_holds(hanging):
    """Before one has begun, while it holds, and after it has broken."""
    weight = Character.from_motion(hanging()).mass * GRAVITY
    left, right = both()
    holds = [replace(left, breaking=0.85 * weight), replace(right, start=0.07, end=0.3)]
    simulation = prepared(hanging(2.0, 0.3), holds)
    simulation.begin()
    sample, seen = 0, []
    for at in (3, 9, 30):
        while sample < at:
            sample += 1
            simulation.advance(sample)
        saved = simulation.settle(sample)
        ways = []
        for _ in range(2):
            for more in range(sample + 1, at + 9):
                simulation.advance(more)
            ways.append((simulation.observe(at + 8).centres, simulation.world.held))
            simulation.rewind(saved, sample)
        seen.append(list(simulation.world.held))
        assert np.array_equal(ways[0][0], ways[1][0]) and ways[0][1] == ways[1][1]
        simulation.forget(saved)
    early, middle, late = seen
    assert early[0].holds and not early[1].holds
    assert middle[1].holds and late[0].broken and not late[0].holds


def test_runs_without_holds_are_as_before(reaching, monkeypatch):
    """Nothing of a hold is made, asked of the engine or counted, and none is written down."""

    def never(*_):
        raise AssertionError("nothing is held")

    for name in ("_make_hold", "_hold_as", "_feel_holds", "held_jacobians", "_held_point"):
        monkeypatch.setattr(World, name, never)
    simulation = prepared(reaching, pushes=(Push(0.5, 0.2, (100.0, 0.0, 0.0)),))
    simulation.begin()
    assert pybullet.getNumConstraints(simulation.world._client) == 0
    recording = simulation.run()
    assert recording.success and simulation.controller.balance.hanging is None
    assert recording.held.shape == (181, 0) and recording.grasps() == []
    assert "holds" not in Scenario().as_dict()
    assert at_times((), reaching) is None


def test_a_hold_that_is_to_come_pulls_nothing(reaching):
    free, late = (
        prepared(reaching, holds).run().body_positions
        for holds in ((), (Hold("forearm_l", 2.5, 2.9),))
    )
    assert np.abs(free[:150] - late[:150]).max() < 0.02


def test_problems_with_holds_go_to_other_processes(reaching):
    holds = [replace(hold, target=(0.5, 0.2, 1.4)) for hold in both()]
    problem = Problem(reaching, scenario=Scenario(holds=tuple(holds)))
    again = Problem.from_bytes(problem.to_bytes())
    assert again.scenario.holds == tuple(holds)


#: What is told, and the holds of which it is, from where both palms are.
WRONG = {
    "is of 'head', and only hands and feet can be held: choose one of left_hand, right_hand, "
    "left_foot, right_foot": lambda one, other: [Hold("head", 0, 1)],
    "has a time or a place that is not a number": lambda one, other: [left(start=float("nan"))],
    "breaks at nan N: give it 1 to 1000000 N": lambda one, other: [left(breaking=float("nan"))],
    "breaks at 0 N: give it": lambda one, other: [left(breaking=0.0)],
    "breaks at -5 N: give it": lambda one, other: [left(breaking=-5.0)],
    "'L' is 2.00 m away from the left hand at frame 1, where it begins, and stretched out that is "
    r"still 1.\d\d m away": lambda one, other: [left(target=tuple(one + [2.0, 0.0, 0.0]))],
    "'L' is 1.48 m away from the left hand at frame 1": lambda one, other: [
        left(to="Wall", target=(0.1, 0.2, one[2] - 1.0))
    ],
    "holds 'L' and 'again' both hold the left hand at frame 61": lambda one, other: [
        left(end=2.0),
        left(name="again", start=1.0),
    ],
    "holds 'L' and 'R' are 3.00 m apart at frame 61, and the left hand and the right hand get "
    r"1.\d\d m apart at most": lambda one, other: [
        left(target=tuple(one)),
        left(segment="forearm_r", name="R", start=1.0, target=tuple(one - [0.0, 3.0, 0.0])),
    ],
    "is to 'Gone', which is neither a thing nor a collider": lambda one, other: [left(to="Gone")],
    "begins before 'Ball' is released, at frame 61": lambda one, other: [left(to="Ball")],
    "begins at frame 541, and frames 1 to 181 are simulated": lambda one, other: [left(start=9.0)],
    "ends at frame 31, and begins at frame 61": lambda one, other: [left(start=1.0, end=0.5)],
}


def left(**values):
    """The hold of the left hand, with other values."""
    return replace(both()[0], **values)


@pytest.mark.parametrize("told", WRONG)
def test_what_cannot_be_held_is_told_before_anything_is_simulated(reaching, told):
    wall = Collider("Wall", Solid("box", (0.1, 1.0, 1.0)), (2.0, 0.0, 1.0))
    ball = Thing("Ball", Solid("sphere", (0.1,)), 1.0, start=1.0)
    with pytest.raises(SettingsError, match=told):
        prepared(reaching, WRONG[told](*palms(reaching)), colliders=(wall,), things=(ball,))


@pytest.mark.parametrize(
    ("told", "settings"),
    [
        ("goes on and on has no frames", Settings(duration=9.0)),
        ("Only the balance mode 'foot_forces' counts", Settings(balance="virtual_forces")),
    ],
)
def test_what_has_no_holds(reaching, told, settings):
    with pytest.raises(SettingsError, match=told):
        prepared(reaching, both(), settings)


def test_parts_that_follow_the_animation_are_not_held(reaching):
    weights = {"arms": np.zeros(len(reaching))}
    with pytest.raises(SettingsError, match="set all physics weights to 1, or take the holds"):
        prepared(reaching, both(), weights=weights)

# SPDX-License-Identifier: GPL-3.0-or-later
"""Recovery steps: none where none is needed, one where feet in place cannot do it."""

import numpy as np
import pytest

from poise.controller import Character, Push, Reference, Scenario, Settings, Simulation
from poise.controller.control.stepping import Stepping
from poise.controller.geometry.rotations import matrix_from_quaternion
from poise.controller.geometry.skeleton import SEGMENT_INDEX
from poise.controller.geometry.stance import DUAL


@pytest.fixture
def person(make_motion):
    motion = make_motion(seconds=5.0)
    return Character.from_motion(motion), motion


def pushed(person, force, steps=True):
    """A recording of a push of 0.2 s on the trunk, (x, y) [N]."""
    character, motion = person
    scenario = Scenario((Push(1.0, 0.2, (*force, 0.0)),))
    settings = Settings(recovery_steps=steps)
    return Simulation(character, motion, settings=settings, scenario=scenario).run()


@pytest.mark.slow
def test_an_undisturbed_body_takes_no_step(person):
    with_steps, without = (pushed(person, (0.0, 0.0), steps) for steps in (True, False))
    assert (with_steps.body_positions == without.body_positions).all()


@pytest.mark.slow(captured=False)
@pytest.mark.parametrize("force", [(260.0, 0.0), (220.0, 60.0), (-160.0, 0.0)])
def test_a_step_saves_what_feet_in_place_cannot(person, force):
    without = pushed(person, force, steps=False)
    assert not without.success
    recording = pushed(person, force)
    assert recording.success, recording.why()
    feet = recording.joints()[:, [SEGMENT_INDEX["foot_l"], SEGMENT_INDEX["foot_r"]], :2]
    moved = np.linalg.norm(feet[-1] - feet[0], axis=-1)
    assert moved.max() > 0.1
    assert (recording.stance[-30:] == DUAL).all()
    assert np.linalg.norm(np.diff(recording.com[-30:], axis=0), axis=1).max() * 60 < 0.1


@pytest.mark.slow(captured=False)
def test_a_body_that_falls_is_never_thrown_about(person):
    """Feet that slip under a falling body can burst in the engine: the record ends before."""
    for force in (260.0, 265.0, 270.0):
        recording = pushed(person, (force, 0.0), steps=False)
        assert recording.fell_at is not None
        speeds = np.linalg.norm(np.diff(recording.body_positions, axis=0), axis=-1) * 60
        assert speeds.max() < 100


@pytest.mark.slow
def test_a_step_between_animation_and_animation(person):
    """Physics starts before the push and is handed back after the step: the body ends where it is
    animated, though its feet have been elsewhere."""
    character, motion = person
    time = np.arange(len(motion)) / motion.rate
    share = np.where(time < 0.5, 0.0, 1.0) * np.clip(1 - (time - 3.0) / 0.5, 0, 1)
    names = ("trunk", "neck", "arms", "legs", "feet", "root")
    scenario = Scenario((Push(1.0, 0.2, (260.0, 0.0, 0.0)),), weights=dict.fromkeys(names, share))
    recording = Simulation(character, motion, scenario=scenario).run()
    assert recording.success, recording.why()
    assert len(recording.steps) >= 1
    moved = np.linalg.norm(recording.root_displacement(), axis=1)
    assert moved[round(2.5 * motion.rate)] > 0.05
    assert moved[-1] < 1e-9


def test_a_step_can_be_taken_again_from_its_middle(person):
    """To the last bit, once the body has been returned there with all that is known of the step."""
    character, motion = person
    scenario = Scenario((Push(1.0, 0.2, (260.0, 0.0, 0.0)),))
    simulation = Simulation(character, motion, scenario=scenario)
    simulation.begin()
    sample, stepping = 0, simulation.controller.balance.stepping
    while stepping.swing is None:
        sample += 1
        simulation.advance(sample)
    simulation.advance(sample + 1)
    sample += 1
    assert stepping.swing is not None
    saved = simulation.settle(sample)

    def onward():
        simulation.rewind(saved, sample)
        taken = len(stepping.steps)
        bodies = []
        for later in range(sample + 1, sample + 60):
            simulation.advance(later)
            bodies.append(simulation.world.body_transforms()[0])
        return np.array(bodies), stepping.steps[taken:]

    (first, steps), (again, same_steps) = onward(), onward()
    simulation.close()
    assert np.array_equal(first, again)
    assert steps == same_steps


@pytest.mark.slow(captured=False)
def test_the_mirrored_push_is_answered_with_the_other_foot(person):
    moved = []
    for sign in (1, -1):
        recording = pushed(person, (0.0, sign * 260.0))
        feet = recording.joints()[:, [SEGMENT_INDEX["foot_l"], SEGMENT_INDEX["foot_r"]], 1]
        moved.append(np.abs(feet[-1] - feet[0]))
    assert (moved[0] > 0.05).any()
    assert np.argmax(moved[0]) != np.argmax(moved[1])


@pytest.fixture
def stepping(person):
    character, motion = person
    return Stepping(character, Reference.build(character, motion, 300.0))


def test_feet_that_are_where_they_should_be_turn_no_leg(stepping, person):
    root, frame = np.array([0.0, 0, 1]), np.eye(3)
    assert np.abs(stepping.plan(1.0, root, np.zeros(3), frame, 0.01)).max() < 1e-9


def test_the_legs_reach_the_offset_feet(stepping, person):
    """Forward kinematics of the turned legs bring each ankle where its offset has it."""
    character, motion = person
    stepping._offsets = np.array([[0.12, 0.05], [-0.06, -0.04]])
    pose = stepping._legs.pose(1.0)
    turn = stepping.plan(1.0, pose.pelvis, np.zeros(3), pose.frame, 0.01)[0]
    trajectory = stepping._reference.trajectory
    sample = round(motion.rate)
    angles = trajectory.angles[sample].copy()
    first = next(joint.first for joint in character.joints if joint.name == "hip_l")
    angles[first : first + 14] += turn
    root = pose.pelvis + [*stepping._offsets.mean(0), -stepping.drop]
    frame = matrix_from_quaternion(trajectory.rotation[sample])
    joints, _ = character.forward(root[None], frame[None], angles[None])
    ankles = joints[0, [SEGMENT_INDEX["foot_l"], SEGMENT_INDEX["foot_r"]]]
    wanted = pose.ankles + np.pad(stepping._offsets, ((0, 0), (0, 1)))
    assert np.abs(ankles - wanted).max() < 2e-3


def test_a_landing_is_where_the_capture_point_will_be(stepping, person):
    """Far from the stance foot, on its own side, and never farther than a leg can."""
    soles = ((0.0, 0.1, 1.0, 0.0, 0.0), (0.0, -0.1, 1.0, 0.0, 0.0))
    toe = person[0].feet[0].toe
    (x, y), missed = stepping._landing(0, (toe + 0.1, 0.1), 3.0, 0.2, soles)
    side = person[0].feet[0].half_width
    grow = np.exp(0.6)
    away = np.array([0.1, 0.1 - (-0.1 + 0.95 * 0 + side)])
    beyond = 0.03 * away / np.linalg.norm(away)
    assert np.allclose([x, y], [toe, side - 0.1] + grow * away + beyond, atol=1e-6)
    assert missed < 1e-9
    (x, y), missed = stepping._landing(0, (0.0, -0.5), 3.0, 0.2, soles)
    assert y == pytest.approx(0.03)  # legs do not cross
    assert missed > 0.5

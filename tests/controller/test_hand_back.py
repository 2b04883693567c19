# SPDX-License-Identifier: GPL-3.0-or-later
"""The way back to the animation: feet stay where they stand, and go home in the air."""

from dataclasses import replace

import numpy as np
import pytest

from poise.controller import Character, Push, Scenario, Simulation
from poise.controller.gains.physics_weights import NAMES
from poise.controller.geometry.rotations import matrix_from_quaternion, quaternion_from_matrix
from poise.controller.geometry.rotations import rotation_vector as vector
from poise.controller.geometry.skeleton import FEET, LANDMARK_INDEX, LANDMARKS, SEGMENT_INDEX, SIDES
from poise.controller.geometry.stance import runs
from poise.controller.reference.hand_back import stepped_back
from poise.controller.reference.performed import performed_motion

BACK, OVER = 110, 42
SHOVE = Push(0.5, 0.2, (80.0, 140.0, 0.0))
ANKLES, KNEES = ([LANDMARK_INDEX[f"{name}_{side}"] for side in SIDES] for name in ("ankle", "knee"))


def handed_back(motion, push=SHOVE, back=BACK, over=OVER):
    """The recording of a motion that is pushed, and then handed back over so many samples."""
    share = np.clip(1 - (np.arange(len(motion)) - back) / over, 0, 1)
    scenario = Scenario(pushes=(push,), weights=dict.fromkeys(NAMES, share))
    return Simulation(Character.from_motion(motion), motion, scenario=scenario).run()


def soles(recording):
    """Heel and ball of both feet (n, 2, 2, 3) [m], in the animation and as baked."""
    motion, count = recording.motion, len(recording)
    after = performed_motion(recording)
    result = []
    for moved in (motion, after):
        turns = matrix_from_quaternion(recording.rotation_deltas()[:, FEET])
        frames = recording.reference.raw.frames[:count, FEET]
        frames = frames if moved is motion else turns @ frames
        feet = recording.character.feet
        points = [
            [frames[:, i] @ (x, 0, -foot.depth) for x in (-foot.heel, foot.ball)]
            for i, foot in enumerate(feet)
        ]
        ankles = moved.positions[:count, ANKLES]
        result.append(np.moveaxis(np.array(points), 2, 0) + ankles[:, :, None])
    return result


def last_difference(recording):
    """The last sample at which the bake is not exactly the animation."""
    turned = vector(recording.rotation_deltas()).any((1, 2))
    return int(np.flatnonzero(turned | recording.root_displacement().any(1))[-1])


@pytest.fixture
def stood(make_motion, arms_swing):
    """A person who stands for four seconds, shoved so that a foot has to be set elsewhere."""
    recording = handed_back(make_motion(seconds=4.0, sway=arms_swing))
    assert recording.success and recording.steps
    return recording


@pytest.fixture
def marched(make_motion):
    """The same, with one foot lifted after the other while physics ends."""

    def march(time):
        lift = [np.clip(1 - np.abs(time - at) / 0.25, 0, 1) for at in (2.3, 3.0)]
        lift = [0.9 * x * x * (3 - 2 * x) for x in lift]
        zero = np.zeros_like(time)
        turns = {}
        for side, x in zip(SIDES, lift, strict=True):
            turns |= {f"thigh_{side}": np.stack([zero, -x, zero], 1)}
            turns |= {f"shin_{side}": np.stack([zero, 2 * x, zero], 1)}
            turns |= {f"foot_{side}": np.stack([zero, -x, zero], 1)}
        return turns

    return handed_back(make_motion(seconds=4.0, sway=march), SHOVE)


def apart(recording):
    """How far both feet are from the animation's in plan (n, 2) [m]."""
    before, after = soles(recording)
    return np.linalg.norm((after - before)[..., :2], axis=-1).max(-1)


def test_feet_that_stand_neither_slide_nor_turn(stood):
    before, after = soles(stood)
    assert apart(stood)[BACK].max() > 0.15
    rises = (after - before)[BACK:, :, :, 2].max(-1) > 0.004
    way = after[BACK:, :, 1] - after[BACK:, :, 0]
    heading = np.unwrap(np.arctan2(way[..., 1], way[..., 0]), axis=0)
    for foot in range(2):
        for start, stop in runs(~rises[:, foot]):
            plan = after[BACK + start : BACK + stop, foot, :, :2]
            assert np.ptp(plan, axis=0).max() < 0.01
            assert np.degrees(np.ptp(heading[start:stop, foot])) < 1


def test_one_foot_steps_after_the_other(stood):
    """And the pelvis goes smoothly between them."""
    before, after = soles(stood)
    height = (after - before)[BACK:, :, :, 2].min(-1)
    assert (height.max(0) > 0.02).all() and (height.max(0) < 0.08).all()
    assert not (height > 0.004).all(1).any()
    assert height.min() > -0.004
    moved = stood.root_displacement()[BACK - 2 :]
    speed, acceleration = (np.diff(moved, k, axis=0) * stood.motion.rate**k for k in (1, 2))
    assert np.linalg.norm(speed, axis=1).max() < 0.8
    assert np.linalg.norm(acceleration, axis=1).max() < 12
    feet = (after - before)[BACK - 2 :, :, :, :2].mean(2)
    low, high = feet.min(1) - 0.05, feet.max(1) + 0.05
    assert ((moved[:, :2] > low) & (moved[:, :2] < high)).all()
    assert moved[:, 2].min() > -0.06


def test_it_is_the_animation_once_both_are_home(stood):
    ((first, stop, limit),) = stood.weights.ways_back(stood.motion.rate)
    assert (first, stop, limit) == (BACK, BACK + OVER, len(stood))
    assert stop <= last_difference(stood) < stop + 30
    assert apart(stood)[-1].max() < 1e-9


def test_legs_that_stretch_in_the_animation_step_home(make_motion, arms_swing):
    """As those of a rig whose body rises and sinks over planted feet, and at their lengths."""
    motion = make_motion(seconds=4.0, sway=arms_swing)
    rise = 0.02 * np.sin(2 * np.pi * np.arange(len(motion)) / 30)
    share = np.ones(len(LANDMARKS))
    for side in SIDES:
        for name, own in (("knee", 0.5), ("ankle", 0), ("ball", 0), ("toe", 0)):
            share[LANDMARK_INDEX[f"{name}_{side}"]] = own
    positions = motion.positions.copy()
    positions[..., 2] += rise[:, None] * share
    shove = Push(0.5, 0.2, (120.0, 120.0, 0.0))  # from which one foot steps, and stands by then
    recording = handed_back(replace(motion, positions=positions), shove)
    assert recording.success
    legs = [f"{name}_{side}" for name in ("thigh", "shin") for side in SIDES]
    after = performed_motion(recording, legs=legs).positions
    lengths = np.linalg.norm(after[:, KNEES] - after[:, ANKLES], axis=-1)
    assert np.ptp(lengths[:BACK], axis=0).max() < 1e-9
    home = BACK + OVER + 30
    np.testing.assert_allclose(after[home:], positions[home:], atol=1e-9, equal_nan=True)
    assert np.ptp(lengths[home:], axis=0).min() > 0.015
    stays, steps = (after[BACK - 20 :, ANKLES] - positions[BACK - 20 :, ANKLES]).swapaxes(0, 1)
    assert np.abs(stays[:, 2]).max() < 0.003 and np.linalg.norm(stays, axis=1).max() < 0.015
    assert np.abs(steps[0]).max() > 0.02 and -0.001 < steps[:, 2].min() < 0.02 < steps[:, 2].max()


def test_the_way_back_is_sought_once_for_all_that_is_baked(stood, monkeypatch):
    calls, name = [], "poise.controller.simulation.recording.stepped_back"
    monkeypatch.setattr(name, lambda *all: calls.append(all) or stepped_back(*all))
    performed_motion(stood)
    assert len(calls) == 1
    deltas, moved = stood.differences()
    assert np.array_equal(deltas, stood.rotation_deltas())
    assert np.array_equal(moved, stood.root_displacement())


def test_legs_bend_and_do_not_stretch(stood):
    after = performed_motion(stood).positions
    frames = matrix_from_quaternion(stood.rotation_deltas()) @ stood.reference.raw.frames
    for side in SIDES:
        for ends in (("hip", "knee"), ("knee", "ankle")):
            a, b = (LANDMARK_INDEX[f"{name}_{side}"] for name in ends)
            assert np.ptp(np.linalg.norm(after[:, a] - after[:, b], axis=1)) < 1e-9
        thigh, shin = (frames[:, SEGMENT_INDEX[f"{name}_{side}"]] for name in ("thigh", "shin"))
        bend = vector(quaternion_from_matrix(np.swapaxes(thigh, 1, 2) @ shin))
        assert bend[:, 1].min() > -0.05  # never backward


def test_the_animation_s_own_steps_take_the_feet_home(marched):
    """No step is added: a foot is as high as in the animation, and moves only while that is up."""
    assert marched.success, marched.why()
    before, after = soles(marched)
    far = apart(marched)
    assert far[BACK].max() > 0.05
    stands = (marched.reference_stance[:, None] & [1, 2]) > 0
    for foot in range(2):
        for start, stop in runs(stands[BACK:, foot]):
            plan = (after - before)[BACK + start : BACK + stop, foot, :, :2]
            assert np.ptp(plan, axis=0).max() < 0.02
    assert np.abs((after - before)[BACK + OVER :, :, :, 2]).max() < 0.01
    assert far[-1].max() < 1e-9


def test_without_need_of_a_step_all_is_blended(make_motion, arms_swing):
    recording = handed_back(make_motion(seconds=3.0, sway=arms_swing), Push(0.5, 0.2, (20, 0, 0)))
    rate, weights = recording.motion.rate, recording.weights
    raw = recording.joints()[:, 0] - recording.reference.raw.joints[:, 0]
    assert np.array_equal(recording.root_displacement(), weights.blended_root(raw, rate))
    assert last_difference(recording) < BACK + OVER


def test_no_time_for_steps(make_motion, arms_swing):
    """Where the clip ends first, feet slide as far as they have to: its end is the animation's."""
    motion = make_motion(seconds=2.1, sway=arms_swing)
    recording = handed_back(motion, back=116, over=6)
    assert recording.success and len(recording) == 127
    assert last_difference(recording) < 122

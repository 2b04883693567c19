# SPDX-License-Identifier: GPL-3.0-or-later
"""A person in place who turns hips and feet on the floor, stands so, and turns them back."""

import numpy as np
import pytest
from helpers.motions import for_a_while

from poise.controller import Character, Motion, Simulation
from poise.controller.control.foot_hold import FootHold
from poise.controller.control.legs import Legs
from poise.controller.geometry.rotations import (
    arctan2,
    exponential,
    matrix_from_quaternion,
    multiply,
)
from poise.controller.geometry.skeleton import SEGMENT_INDEX, SEGMENTS
from poise.controller.reference.reference import Reference

OUT, BACK = 1.5, 3.5  # [s], each for one second
TURNS = [i for i, name in enumerate(SEGMENTS) if "arm" not in name and name != "trunk"]


@pytest.fixture
def pivoting(make_motion):
    """pivoting(angle) -> Motion whose feet turn to the left by it [rad], and all above them."""

    def make(angle):
        still = make_motion(seconds=6.0)
        angles = angle * for_a_while(still, OUT, BACK)
        turn = exponential(angles[:, None] * [0.0, 0.0, 1.0])
        rotations = still.rotations.copy()
        rotations[:, TURNS] = multiply(turn[:, None], rotations[:, TURNS])
        return Motion("pivoting", still.rate, rotations, still.positions)

    return make


def heading(frames):
    """(F, ...) how far frames (F, ..., 3, 3) have turned to the left [rad]."""
    turned = frames @ np.swapaxes(frames[0], -1, -2)
    return arctan2(turned[..., 1, 0], turned[..., 0, 0])


def test_the_reference_keeps_all_of_a_pivot_and_nothing_of_a_tremor(pivoting):
    for angle, kept, within in ((0.4, 0.4, 0.02), (0.02, 0.0, 0.002)):
        motion = pivoting(angle)
        reference = Reference.build(Character.from_motion(motion), motion)
        found = heading(reference.feet)[round(3.0 * reference.rate)]
        assert found == pytest.approx(kept, abs=within)


@pytest.mark.slow(captured=False)
def test_feet_that_stick_do_not_turn_the_body_the_other_way(pivoting):
    motion = pivoting(0.4)
    recording = Simulation(Character.from_motion(motion), motion).run()
    assert recording.success, recording.why()
    frames = matrix_from_quaternion(recording.body_rotations)
    turned = heading(frames)
    assert turned[:, SEGMENT_INDEX["pelvis"]].min() > -0.05
    assert turned[:, [SEGMENT_INDEX["shin_l"], SEGMENT_INDEX["shin_r"]]].min() > -0.2


def test_a_foot_that_pivots_under_a_body_that_stands_is_held_by_little_friction(pivoting):
    motion = pivoting(0.4)
    character = Character.from_motion(motion)
    reference = Reference.build(character, motion)
    hold = FootHold(character, reference, Legs(character), 1.0)
    hold.stand([1, 0])
    still, turning = (round(time * reference.rate) for time in (1.0, OUT + 0.5))
    assert hold.grip(still) == [1.0, 1.0]
    assert hold.grip(turning) == pytest.approx([0.25, 1.0], abs=0.01)

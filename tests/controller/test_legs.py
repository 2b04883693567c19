# SPDX-License-Identifier: GPL-3.0-or-later
"""The transposed Jacobian of the legs against finite differences."""

from dataclasses import replace

import numpy as np
import pytest

from poise.controller.legs import Legs
from poise.controller.rotations import (
    exponential,
    matrix_from_quaternion,
    quaternion_from_matrix,
    rotation_vector,
)
from poise.controller.skeleton import SEGMENT_INDEX, SEGMENTS
from poise.controller.world import World


def with_turned_hips(adult):
    """The same body with other first axes of the hips, as a clip of deep squats has them."""
    random = np.random.default_rng(6)
    joints = [
        replace(joint, basis=matrix_from_quaternion(exponential(random.normal(0, 0.6, 3))))
        if SEGMENTS[joint.segment].startswith("thigh")
        else joint
        for joint in adult.joints
    ]
    return replace(adult, joints=tuple(joints))


@pytest.fixture(params=[False, True], ids=["anatomical", "turned hips"])
def posed(adult, request):
    """Legs and pose of a random body in the air."""
    adult = with_turned_hips(adult) if request.param else adult
    random = np.random.default_rng(4)
    root = np.array([0.1, 0.2, 2.0])
    frame = matrix_from_quaternion(exponential(random.normal(0, 0.8, 3)))
    angles = random.uniform(-0.9, 0.9, adult.dofs)
    legs = Legs(adult)
    world = World(adult, 300.0, legs.segments)
    world.reset(root, frame, np.zeros(3), np.zeros(3), angles, np.zeros(adult.dofs))
    state = world.state()
    legs.update(state.positions, state.frames, state.angles)
    world.close()
    return adult, legs, root, frame, angles


def test_axes_and_anchors(posed):
    """Each joint's speed turns everything below it about its axis, through its anchor."""
    adult, legs, root, frame, angles = posed
    step = 1e-6
    for side, label in enumerate("lr"):
        foot = SEGMENT_INDEX[f"foot_{label}"]
        for i, dof in enumerate(range(legs.dofs.start + 7 * side, legs.dofs.start + 7 * side + 7)):
            poses = []
            for sign in (-1, 1):
                moved = angles.copy()
                moved[dof] += sign * step
                poses.append(adult.forward(root[None], frame[None], moved[None]))
            turn = poses[1][1][0, foot] @ poses[0][1][0, foot].T
            axis = rotation_vector(quaternion_from_matrix(turn)) / (2 * step)
            velocity = (poses[1][0][0, foot] - poses[0][0][0, foot]) / (2 * step)
            anchor = legs.anchors[side, [0, 0, 0, 1, 2, 2, 2][i]]
            assert np.allclose(legs.axes[side, i], axis, atol=1e-6)
            expected = np.cross(axis, legs.anchors[side, 2] - anchor)
            assert np.allclose(velocity, expected, atol=1e-6)


def test_transposed_jacobian(posed):
    """J^T w is the power of the wrench at unit joint speed."""
    adult, legs, root, frame, angles = posed
    random = np.random.default_rng(5)
    local = random.normal(0, 0.1, (2, 3))
    forces, moments = random.normal(0, 100, (2, 3)), random.normal(0, 10, (2, 3))
    feet = [SEGMENT_INDEX["foot_l"], SEGMENT_INDEX["foot_r"]]

    def points(q):
        joints, frames = adult.forward(root[None], frame[None], q[None])
        return joints[0, feet] + np.einsum("sij,sj->si", frames[0, feet], local), frames[0, feet]

    step, expected = 1e-6, []
    for i, dof in enumerate(range(legs.dofs.start, legs.dofs.stop)):
        side = i // 7
        ends = []
        for sign in (-1, 1):
            moved = angles.copy()
            moved[dof] += sign * step
            ends.append(points(moved))
        velocity = (ends[1][0] - ends[0][0])[side] / (2 * step)
        turn = ends[1][1][side] @ ends[0][1][side].T
        spin = rotation_vector(quaternion_from_matrix(turn)) / (2 * step)
        expected.append(velocity @ forces[side] + spin @ moments[side])
    where, _ = points(angles)
    assert np.allclose(
        legs.transposed_jacobian(where, forces, moments), expected, rtol=1e-5, atol=1e-4
    )


def test_soles(posed):
    adult, legs, root, frame, angles = posed
    joints, frames = adult.forward(root[None], frame[None], angles[None])
    corners = adult.sole_corners(joints, frames)[0]
    for side in (0, 1):
        x, y, ahead_x, ahead_y, lowest = legs.soles[side]
        foot = SEGMENT_INDEX["foot_l" if side == 0 else "foot_r"]
        assert (x, y) == pytest.approx(tuple(joints[0, foot, :2]))
        assert lowest == pytest.approx(corners[side, :, 2].min())
        assert np.hypot(ahead_x, ahead_y) == pytest.approx(1)
        ahead = frames[0, foot, :2, 0]
        assert ahead_x * ahead[1] - ahead_y * ahead[0] == pytest.approx(0, abs=1e-6)

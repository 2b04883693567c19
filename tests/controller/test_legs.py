# SPDX-License-Identifier: GPL-3.0-or-later
"""The transposed Jacobian of the legs against finite differences, and their soles."""

from dataclasses import replace

import numpy as np
import pytest

from poise.controller.body.character import PITCH
from poise.controller.body.foot import sole_corners
from poise.controller.body.sole import Ground, carrying, sole_of
from poise.controller.control.legs import Legs
from poise.controller.geometry.rotations import (
    exponential,
    matrix_from_quaternion,
    quaternion_from_matrix,
    rotation_about,
    rotation_vector,
)
from poise.controller.geometry.skeleton import SEGMENT_INDEX, SEGMENTS
from poise.controller.simulation.world import World


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


@pytest.mark.parametrize("slope", [(0.0, 0.0), (0.1, -0.2)])
@pytest.mark.parametrize("seed", range(3))
def test_soles(adult, seed, slope):
    random = np.random.default_rng(seed)
    foot, ground = adult.feet[0], Ground(0.2, 0.1, -0.3, *slope)
    frame = matrix_from_quaternion(exponential(random.uniform(-0.3, 0.3, 3)))
    ankle, bend = random.uniform(-0.5, 0.5, 3), -random.uniform(0, 0.5)
    toes = frame @ rotation_about(PITCH, np.array(bend))
    edges = sole_corners((foot,), ankle[None, None], frame[None, None], toes[None, None])[0, 0]
    sole = sole_of(foot, ankle.tolist(), frame.T.tolist(), bend, ground)
    assert (sole.x, sole.y) == tuple(ankle[:2])
    assert sole.floor == pytest.approx(ground.at(*ankle[:2]))
    assert np.hypot(sole.ahead_x, sole.ahead_y) == pytest.approx(1)
    assert sole.ahead_x * frame[1, 0] - sole.ahead_y * frame[0, 0] == pytest.approx(0, abs=1e-12)
    apart = edges[:, :2] - ankle[:2]
    along = apart @ [sole.ahead_x, sole.ahead_y]
    across = apart @ [-sole.ahead_y, sole.ahead_x]
    heights = edges[:, 2] - [ground.at(x, y) for x, y, _ in edges.tolist()]
    # The two edges at the ball are one in this, and the foot's own turn one with its heading's.
    assert sole.clearance == pytest.approx(heights.min(), abs=3e-3)
    assert sole.heel == pytest.approx(along[:2].mean())
    assert sole.tip == pytest.approx(along[4:].mean())
    assert (sole.right, sole.left) == pytest.approx((across[0], across[1]), abs=0.03)


def test_only_what_is_down_can_be_pressed_on(adult):
    """Flat: nearly all of the sole. On its ball and toes, or its heel: that part alone."""
    foot, floor = adult.feet[0], Ground(0.0, 0.0, 0.0)

    def region(pitch, bend):
        frame = rotation_about(PITCH, np.array(pitch))
        sole = sole_of(foot, [0.0, 0.0, 0.2], frame.T.tolist(), bend, floor)
        return sole, carrying(sole, sole.heel_down, 0.9)

    sole, flat = region(0.0, 0.0)
    assert flat.back < -0.85 * foot.heel and foot.ball < flat.front < foot.toe
    assert (flat.right, flat.left) == pytest.approx((-0.9 * foot.half_width, 0.9 * foot.half_width))
    assert carrying(sole, 0.0, 0.9).back == pytest.approx(sole.ball)  # about to rise
    sole, ball = region(0.5, -0.5)
    assert ball.back == pytest.approx(sole.ball, abs=1e-6) and ball.front > sole.ball
    sole, heel = region(-0.4, 0.0)
    assert heel.back < heel.front <= sole.heel + 0.1 * (sole.tip - sole.heel)

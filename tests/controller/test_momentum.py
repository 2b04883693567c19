# SPDX-License-Identifier: GPL-3.0-or-later
"""Momenta of a motion against mechanics that can be written down."""

import numpy as np
import pytest

from poise.controller.body.momentum import GRAVITY, Dynamics, com_dynamics, zero_moment_point
from poise.controller.geometry.rotations import exponential, matrix_from_quaternion

RATE = 120.0
TIME = np.arange(241) / RATE


@pytest.fixture
def frozen(adult, standing):
    """Body centres (1, S, 3) and frames (1, S, 3, 3) of a pose."""
    joints, frames = adult.pose(adult.trajectory(standing))
    return adult.body_centres(joints, frames)[:1], frames[:1]


def test_a_body_that_turns_as_one(adult, frozen):
    """L = I w about the centre of mass, with the inertia of the whole."""
    centres, frames = frozen
    com = adult.masses @ centres[0] / adult.mass
    arms = centres[0] - com
    whole = np.zeros((3, 3))
    for arm, mass, frame, moments in zip(
        arms, adult.masses, frames[0], adult.inertias, strict=True
    ):
        whole += mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
        whole += frame @ np.diag(moments) @ frame.T
    speed = np.array([0.0, 0.0, 1.3])
    turn = matrix_from_quaternion(exponential(TIME[:, None] * speed))
    moving = com + np.einsum("fij,sj->fsi", turn, arms)
    dynamics = com_dynamics(adult, moving, turn[:, None] @ frames, RATE, 20.0)
    middle = slice(60, 180)
    assert np.allclose(dynamics.momentum[middle, 2], whole[2, 2] * 1.3, rtol=1e-3)
    assert np.abs(dynamics.velocity[middle]).max() < 1e-9


def test_a_body_that_falls(adult, frozen):
    centres, frames = frozen
    drop = np.zeros((241, 1, 3))
    drop[:, 0, 2] = 5 - GRAVITY / 2 * TIME**2
    drop[:, 0, 0] = 2 * TIME
    dynamics = com_dynamics(adult, centres + drop, np.tile(frames, (241, 1, 1, 1)), RATE, 10.0)
    middle = slice(60, 180)
    assert np.allclose(dynamics.acceleration[middle], [0, 0, -GRAVITY], atol=0.05)
    assert np.allclose(dynamics.velocity[middle, 0], 2, atol=1e-3)
    assert np.allclose(dynamics.momentum[middle], 0, atol=1e-3)


def test_zero_moment_point(adult):
    """Standing still: under the centre of mass. Accelerated: behind it, by z a / g. Turned: moved
    by the rate of the angular momentum over the weight."""

    def point(acceleration=(0, 0, 0), rate=(0, 0, 0)):
        com = np.array([[0.1, 0.2, adult.ground + 1.0]])
        zero = np.zeros((1, 3))
        rows = np.array([acceleration], float), zero, np.array([rate], float)
        return zero_moment_point(adult, Dynamics(com, zero, *rows))[0] - com[0, :2]

    weight = adult.mass * GRAVITY
    assert np.allclose(point(), 0)
    assert np.allclose(point(acceleration=(1, 0, 0)), [-1 / GRAVITY, 0])
    # A torque about y that speeds the body up forward comes from pressure behind, about x from
    # pressure to the left.
    assert np.allclose(point(rate=(0, 10, 0)), [-10 / weight, 0])
    assert np.allclose(point(rate=(10, 0, 0)), [0, 10 / weight])

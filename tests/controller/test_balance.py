# SPDX-License-Identifier: GPL-3.0-or-later
"""What feet can press on a floor."""

import numpy as np
import pytest

from poise.controller.body.sole import Ground, Region
from poise.controller.control.pressure import (
    FRICTION_SHARE,
    HELPED_TWIST_SHARE,
    TWIST_SHARE,
    press,
)

BACK, FRONT, SIDE = -0.06, 0.17, 0.045
LEFT = Region(0.0, 0.15, 1.0, 0.0, BACK, FRONT, -SIDE, SIDE)
RIGHT = Region(0.0, -0.15, 1.0, 0.0, BACK, FRONT, -SIDE, SIDE)
FLOOR = Ground(0.0, 0.0, 0.0)
COM = np.array([0.05, 0.01, 1.0])
WEIGHT = 700.0


def wrench_of(points, forces, moments, com=COM):
    return forces.sum(0), (np.cross(points - com, forces) + moments).sum(0)


def pressed(force, torque, load=(1.0, 1.0), left=LEFT, right=RIGHT, com=COM):
    return press(list(force), list(torque), com.tolist(), (FLOOR, FLOOR), left, right, load)


@pytest.mark.parametrize("seed", range(20))
def test_a_feasible_wrench_is_exact(seed):
    random = np.random.default_rng(seed)
    force = np.array([*random.uniform(-20, 20, 2), WEIGHT])
    torque = np.array([*random.uniform(-10, 10, 2), random.uniform(-2, 2)])
    result = pressed(force, torque)
    got_force, got_torque = wrench_of(*result)
    assert np.allclose(got_force, force, atol=0.2)
    assert np.allclose(got_torque, torque, atol=0.2)


@pytest.mark.parametrize("seed", range(20))
def test_any_wrench_stays_possible(seed):
    """Only pushing, inside the soles, within friction."""
    random = np.random.default_rng(seed)
    force, torque = random.normal(0, 2000, 3), random.normal(0, 800, 3)
    points, forces, _ = pressed(force, torque)
    assert (forces[:, 2] >= 0).all()
    tangent = np.linalg.norm(forces[:, :2], axis=1)
    assert (tangent <= FRICTION_SHARE * forces[:, 2] + 1e-9).all()
    for point, sole in zip(points, (LEFT, RIGHT), strict=True):
        assert BACK - 1e-9 <= point[0] - sole.x <= FRONT + 1e-9
        assert abs(point[1] - sole.y) <= SIDE + 1e-9


def test_standing_still_presses_under_the_centre_of_mass():
    points, forces, moments = pressed([0, 0, WEIGHT], [0, 0, 0])
    centre = (points * forces[:, 2:]).sum(0) / WEIGHT
    assert np.allclose(centre[:2], COM[:2], atol=1e-4)
    assert np.allclose(moments, 0, atol=0.1)


def test_torque_is_kept_where_the_force_cannot_be():
    """A push that would need a centre of pressure off the feet does not make the body spin."""
    force, torque = np.array([0.0, 500.0, WEIGHT]), np.array([5.0, -3.0, 0.0])
    got_force, got_torque = wrench_of(*pressed(force, torque))
    assert np.allclose(got_torque[:2], torque[:2], atol=1e-6)
    assert 0 < abs(got_force[1]) < 200
    assert got_force[2] == pytest.approx(WEIGHT)


def test_an_unloaded_foot_is_left_alone():
    _, forces, moments = pressed([0, 0, WEIGHT], [0, 0, 0], load=(1.0, 0.0))
    assert np.allclose(forces[1], 0) and np.allclose(moments[1], 0)
    assert forces[0, 2] == pytest.approx(WEIGHT)


def test_weight_moves_toward_the_foot_that_is_needed():
    near_left = np.array([0.05, 0.12, 1.0])
    _, forces, _ = pressed([0, 0, WEIGHT], [0, 0, 0], com=near_left)
    assert forces[0, 2] > 4 * forces[1, 2] > 0


@pytest.mark.parametrize("twist", [TWIST_SHARE, HELPED_TWIST_SHARE])
def test_feet_twist_on_the_floor_as_far_as_they_may(twist):
    """In place of more, the body turns, or help from outside."""
    force, feet, most = [0.0, 0.0, WEIGHT], (LEFT, RIGHT), twist * WEIGHT * 4 * SIDE
    for wanted in (0.5 * most, 2 * most):
        torque, ground = [0.0, 0.0, wanted], (FLOOR, FLOOR)
        _, _, moments = press(force, torque, COM.tolist(), ground, *feet, (1.0, 1.0), twist=twist)
        assert moments[:, 2].sum() == pytest.approx(min(wanted, most))

# SPDX-License-Identifier: GPL-3.0-or-later
import numpy as np
import pytest

from poise.controller.geometry import rotations as rot


@pytest.fixture
def quaternions():
    q = np.random.default_rng(0).normal(size=(200, 4))
    return q / np.linalg.norm(q, axis=1, keepdims=True)


def test_matrices_and_quaternions_are_inverse(quaternions):
    matrices = rot.matrix_from_quaternion(quaternions)
    back = rot.quaternion_from_matrix(matrices)
    assert np.allclose(np.abs((back * quaternions).sum(1)), 1, atol=1e-14)
    assert np.allclose(matrices @ np.swapaxes(matrices, 1, 2), np.eye(3), atol=1e-14)


def test_half_turns_have_exact_quaternions():
    for axis in range(3):
        matrix = rot.rotation_about(axis, np.pi)
        quaternion = rot.quaternion_from_matrix(matrix)
        assert np.allclose(np.abs(quaternion), np.eye(4)[axis + 1], atol=1e-15)


def test_product_turns_like_matrices(quaternions):
    a, b = quaternions[:100], quaternions[100:]
    product = rot.matrix_from_quaternion(rot.multiply(a, b))
    factors = rot.matrix_from_quaternion(a) @ rot.matrix_from_quaternion(b)
    assert np.allclose(product, factors, atol=1e-14)


def test_exponential_map_round_trip():
    vectors = np.random.default_rng(1).normal(size=(100, 3))
    vectors *= (3.1 * np.random.default_rng(2).uniform(0, 1, (100, 1))) / np.linalg.norm(
        vectors, axis=1, keepdims=True
    )
    vectors[0] = 0
    vectors[1] *= 1e-9
    assert np.allclose(rot.rotation_vector(rot.exponential(vectors)), vectors, atol=1e-9)


def test_angles_rebuild_the_rotation(quaternions):
    matrices = rot.matrix_from_quaternion(quaternions)
    a, b, c = rot.angles_yxz(matrices).T
    rebuilt = rot.rotation_about(1, a) @ rot.rotation_about(0, b) @ rot.rotation_about(2, c)
    assert np.allclose(rebuilt, matrices, atol=1e-7)


def test_continuous_signs():
    angle = np.linspace(0, 9, 400)
    quaternions = rot.quaternion_from_matrix(rot.rotation_about(2, angle))
    smooth = rot.continuous(quaternions)
    assert np.abs(np.diff(quaternions, axis=0)).max() > 0.5  # w >= 0 makes them jump
    assert np.abs(np.diff(smooth, axis=0)).max() < 0.02


def test_frame_from_up_keeps_up_and_nears_left():
    up, left = np.array([0.1, 0.2, 0.9]), np.array([0.3, 1.0, 0.4])
    frame = rot.frame_from_up(up, left)
    assert np.allclose(frame.T @ frame, np.eye(3))
    assert np.linalg.det(frame) == pytest.approx(1)
    assert np.allclose(frame[:, 2], rot.unit(up))
    assert frame[:, 1] @ left > 0.8


@pytest.mark.parametrize("count", [1, 2, 50])
def test_what_is_packed_has_no_gaps(count):
    """One that NumPy calls contiguous may have some: a step of its only axis that nobody takes."""
    matrices = np.random.default_rng(3).normal(size=(count, 3, 3))
    corner = matrices[:, 2, 2]
    assert corner.strides == (72,) and corner.flags.c_contiguous == (count == 1)
    packed = rot.packed(corner)
    assert packed.strides == (8,) and packed.base is None
    assert (packed == corner).all()


@pytest.mark.parametrize("shapes", [((3,), (3,)), ((7, 3), (3,)), ((5, 1, 3), (4, 3))])
def test_cross_products_are_those_of_numpy_to_the_last_bit(shapes):
    a, b = (np.random.default_rng(4).normal(size=shape) for shape in shapes)
    assert (rot.cross(a, b) == np.cross(a, b)).all()

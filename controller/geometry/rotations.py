# SPDX-License-Identifier: GPL-3.0-or-later
"""Rotations on whole arrays: quaternions are w-first, matrices act on column vectors.

Every function but `vector_of_matrix` broadcasts over the leading axes.
"""

from math import atan2, pi, sqrt

import numpy as np


def packed(array: np.ndarray | float) -> np.ndarray:
    """A copy without gaps, for what NumPy has two kernels of, as of arctan2, sin and exp: between
    them it chooses by whether the array ends before its result begins in memory, gaps included; so
    the last bit differs from run to run, and a simulation is chaotic enough to show it. Even a
    single number has gaps: what is contiguous already, as NumPy says, is not always packed.
    tests/conftest.py watches over all such functions."""
    return np.array(array, float, order="C")


def arctan2(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """np.arctan2 of packed copies."""
    return np.arctan2(packed(y), packed(x))


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(..., 3) what np.cross gives, to the last bit, in half its time for a few vectors."""
    ax, ay, az = a[..., 0], a[..., 1], a[..., 2]
    bx, by, bz = b[..., 0], b[..., 1], b[..., 2]
    return np.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], -1)


def shortened(vector: np.ndarray, most: float) -> np.ndarray:
    """A vector (3,), no longer than a length."""
    return vector * (most / max(most, float(np.linalg.norm(vector)), 1e-12))


def matrix_from_quaternion(quaternion: np.ndarray) -> np.ndarray:
    """(..., 4) unit quaternions to (..., 3, 3) rotation matrices."""
    w, x, y, z = np.moveaxis(np.asarray(quaternion, float), -1, 0)
    matrix = np.empty((*np.shape(w), 3, 3))
    matrix[..., 0, 0] = 1 - 2 * (y * y + z * z)
    matrix[..., 0, 1] = 2 * (x * y - w * z)
    matrix[..., 0, 2] = 2 * (x * z + w * y)
    matrix[..., 1, 0] = 2 * (x * y + w * z)
    matrix[..., 1, 1] = 1 - 2 * (x * x + z * z)
    matrix[..., 1, 2] = 2 * (y * z - w * x)
    matrix[..., 2, 0] = 2 * (x * z - w * y)
    matrix[..., 2, 1] = 2 * (y * z + w * x)
    matrix[..., 2, 2] = 1 - 2 * (x * x + y * y)
    return matrix


def quaternion_from_matrix(matrix: np.ndarray) -> np.ndarray:
    """(..., 3, 3) rotation matrices to (..., 4) unit quaternions with w >= 0.

    Each of the four components is found where it is the largest, which avoids cancellation.
    """
    matrix = np.asarray(matrix, float)
    m00, m11, m22 = matrix[..., 0, 0], matrix[..., 1, 1], matrix[..., 2, 2]
    a = matrix[..., 2, 1] - matrix[..., 1, 2]
    b = matrix[..., 0, 2] - matrix[..., 2, 0]
    c = matrix[..., 1, 0] - matrix[..., 0, 1]
    d = matrix[..., 0, 1] + matrix[..., 1, 0]
    e = matrix[..., 0, 2] + matrix[..., 2, 0]
    f = matrix[..., 1, 2] + matrix[..., 2, 1]
    # Rows: 4 q q^T, column by column.
    outer = np.stack(
        [
            np.stack([1 + m00 + m11 + m22, a, b, c], -1),
            np.stack([a, 1 + m00 - m11 - m22, d, e], -1),
            np.stack([b, d, 1 - m00 + m11 - m22, f], -1),
            np.stack([c, e, f, 1 - m00 - m11 + m22], -1),
        ],
        -2,
    )
    best = np.argmax(np.diagonal(outer, axis1=-2, axis2=-1), -1)
    row = np.take_along_axis(outer, best[..., None, None], -2)[..., 0, :]
    row = row / np.linalg.norm(row, axis=-1, keepdims=True)
    return np.where(row[..., :1] < 0, -row, row)


def rotation_about(axis: int, angle: float | np.ndarray) -> np.ndarray:
    """(...,) angles [rad] about the coordinate axis 0, 1 or 2 to (..., 3, 3) matrices."""
    angle = packed(angle)
    cos, sin = np.cos(angle), np.sin(angle)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    matrix = np.zeros((*angle.shape, 3, 3))
    matrix[..., axis, axis] = 1
    matrix[..., i, i] = cos
    matrix[..., j, j] = cos
    matrix[..., i, j] = -sin
    matrix[..., j, i] = sin
    return matrix


def swivelled(vectors: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """(..., 3) vectors turned about the vertical by angles (...) [rad]."""
    cos, sin = np.cos(angle), np.sin(angle)
    x, y, z = np.moveaxis(vectors, -1, 0)
    return np.stack([cos * x - sin * y, sin * x + cos * y, z + 0 * cos], -1)


def swivel(angle: np.ndarray) -> np.ndarray:
    """(..., 4) quaternions that turn about the vertical by angles (...) [rad]."""
    half = np.asarray(angle, float) / 2
    zero = np.zeros_like(half)
    return np.stack([np.cos(half), zero, zero, np.sin(half)], -1)


def rotation_vector(quaternion: np.ndarray) -> np.ndarray:
    """(..., 4) unit quaternions to (..., 3) exponential maps [rad], the shorter way round."""
    quaternion = np.asarray(quaternion, float)
    quaternion = np.where(quaternion[..., :1] < 0, -quaternion, quaternion)
    sine = np.linalg.norm(quaternion[..., 1:], axis=-1, keepdims=True)
    angle = 2 * arctan2(sine, quaternion[..., :1])
    return quaternion[..., 1:] * np.where(sine > 1e-12, angle / np.maximum(sine, 1e-12), 2.0)


def exponential(vectors: np.ndarray) -> np.ndarray:
    """(..., 3) exponential maps [rad] to unit quaternions."""
    angle = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.concatenate([np.cos(angle / 2), 0.5 * np.sinc(angle / 2 / np.pi) * vectors], -1)


def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Hamilton product of (..., 4) quaternions: first b, then a."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    w = a[..., 0] * b[..., 0] - (a[..., 1:] * b[..., 1:]).sum(-1)
    v = a[..., :1] * b[..., 1:] + b[..., :1] * a[..., 1:] + cross(a[..., 1:], b[..., 1:])
    return np.concatenate([w[..., None], v], -1)


def continuous(quaternions: np.ndarray) -> np.ndarray:
    """(samples, ..., 4) quaternions with signs such that neighbours in time are close."""
    quaternions = np.array(quaternions, float)
    flips = np.sign((quaternions[1:] * quaternions[:-1]).sum(-1))
    flips[flips == 0] = 1
    quaternions[1:] *= np.cumprod(flips, axis=0)[..., None]
    return quaternions


def near(angle: float, before: float) -> float:
    """The angle [rad] that many full turns on that is nearest to another one."""
    return angle + 2 * pi * round((before - angle) / (2 * pi))


def unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors (..., n) divided by their lengths; a zero vector stays zero."""
    vectors = np.asarray(vectors, float)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


def frame_from_up(up: np.ndarray, left: np.ndarray) -> np.ndarray:
    """(..., 3, 3) right-handed frames (x forward, y left, z up): z exact, y as near as can be."""
    z = unit(up)
    y = unit(left - (left * z).sum(-1, keepdims=True) * z)
    return np.stack([cross(y, z), y, z], -1)


def angles_yxz(matrix: np.ndarray) -> np.ndarray:
    """(..., 3, 3) matrices to (..., 3) angles a, b, c [rad] with R = Ry(a) Rx(b) Rz(c)."""
    b = np.arcsin(np.clip(-matrix[..., 1, 2], -1, 1))
    a = arctan2(matrix[..., 0, 2], matrix[..., 2, 2])
    c = arctan2(matrix[..., 1, 0], matrix[..., 1, 1])
    return np.stack([a, b, c], -1)


def _column_table() -> np.ndarray:
    """(16, 9): the outer product of an x-y-z-w quaternion with itself, flattened, times this is
    its rotation matrix, column after column."""
    table = np.zeros((4, 4, 3, 3))
    w = 3
    for axis, (i, j, k) in enumerate(((0, 1, 2), (1, 2, 0), (2, 0, 1))):
        table[w, w, axis, i] += 1
        table[i, i, axis, i] += 1
        table[j, j, axis, i] -= 1
        table[k, k, axis, i] -= 1
        table[i, j, axis, j] += 2
        table[w, k, axis, j] += 2
        table[i, k, axis, k] += 2
        table[w, j, axis, k] -= 2
    return table.reshape(16, 9)


_COLUMN_TABLE = _column_table()


def columns_from_bullet(quaternions: np.ndarray) -> np.ndarray:
    """(n, 4) x-y-z-w quaternions to (n, 3, 3): the columns of their matrices as rows. Made for
    the inner loop: two array operations."""
    outer = quaternions[:, :, None] * quaternions[:, None, :]
    return (outer.reshape(-1, 16) @ _COLUMN_TABLE).reshape(-1, 3, 3)


def vector_of_matrix(matrix: np.ndarray) -> tuple[float, float, float]:
    """Exponential map (x, y, z) of one rotation matrix (3, 3), in plain numbers: for one they are
    quicker than arrays."""
    (a, b, c), (d, e, f), (g, h, i) = matrix.tolist()
    x, y, z = (h - f) / 2, (c - g) / 2, (d - b) / 2
    sine = sqrt(x * x + y * y + z * z)
    scale = atan2(sine, (a + e + i - 1) / 2) / sine if sine > 1e-9 else 1.0
    return x * scale, y * scale, z * scale

# SPDX-License-Identifier: GPL-3.0-or-later
"""Linear equations that are banded by samples."""

import numpy as np
import pytest

from poise.controller.geometry import banded


@pytest.mark.parametrize(
    ("reach", "count"), [(0, 3), (3, 2), (1, 2), (2, 7), (3, 3), (3, 10), (3, 31)]
)
def test_solves_as_a_dense_matrix_does(reach, count):
    random, size = np.random.default_rng(reach + count), 5
    # Of least squares, so that it is symmetric and positive definite.
    width = min(reach, count - 1) + 1
    bands = np.zeros((reach + 1, count, size, size))
    dense = np.zeros((count, size, count, size))
    for t in range(count - width + 1):
        rows = random.normal(size=(7, width, size))
        for i in range(width):
            for j in range(width):
                block = rows[:, i].T @ rows[:, j]
                dense[t + i, :, t + j] += block
                if j >= i:
                    bands[j - i, t + i] += block
    bands[0] += np.eye(size)
    dense = dense.reshape(count * size, -1) + np.eye(count * size)
    right = random.normal(size=(count, size))
    for k in range(1, reach + 1):
        bands[k, max(0, count - k) :] = np.nan  # beyond the last sample: must not be looked at
    solution = banded.solve(bands, right)
    assert solution.shape == right.shape
    assert np.allclose(solution.ravel(), np.linalg.solve(dense, right.ravel()), atol=1e-10)
    both = banded.solve(bands, np.stack([right, 2 * right], 2))
    assert np.allclose(both, np.stack([solution, 2 * solution], 2), atol=1e-10)

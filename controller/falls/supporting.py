# SPDX-License-Identifier: GPL-3.0-or-later
"""What the floor should press a body with, so that it does what it is to do."""

import numpy as np

from ..geometry.rotations import cross

#: Of a contact's tangential to its normal force, at most: below that of soles, which is 1, so that
#: what presses does not slip.
_FRICTION = 0.7
#: A newton metre that is missing counts as so many newtons, and what a contact presses as so much
#: of what is missing. By trial on get-ups.
_TORQUES, _EFFORT = 3.0, 0.05
#: Edges (4, 3) of a cone of friction about the vertical.
_EDGES = np.array([[_FRICTION, 0, 1], [-_FRICTION, 0, 1], [0, _FRICTION, 1], [0, -_FRICTION, 1]])


def presses(points: np.ndarray, centre: np.ndarray, wrench: np.ndarray) -> np.ndarray:
    """(n, 3) forces [N] at points (n, 3) [m] that together come nearest to a wrench: force (3,) [N]
    and torque (3,) [N m] about a centre (3,) [m]. The floor pushes, and holds by friction."""
    if not len(points):
        return np.zeros((0, 3))
    arms = cross((points - centre)[:, None], _EDGES).reshape(-1, 3)
    edges = np.tile(_EDGES, (len(points), 1))
    scale = np.array([1.0, 1.0, 1.0, _TORQUES, _TORQUES, _TORQUES])
    matrix = scale[:, None] * np.concatenate([edges.T, arms.T])
    square = matrix.T @ matrix
    square[np.diag_indices(len(square))] += _EFFORT**2
    sizes = non_negative(square, matrix.T @ (scale * wrench))
    return sizes.reshape(-1, 4) @ _EDGES


def non_negative(square: np.ndarray, right: np.ndarray) -> np.ndarray:
    """(n,) the x of no negative numbers for which x Q x / 2 - x r is least; Q (n, n) is positive
    definite (Lawson and Hanson, "Solving Least Squares Problems", 1974, chapter 23)."""
    count = len(right)
    found, free = np.zeros(count), np.zeros(count, bool)
    least = 1e-9 * max(float(np.abs(right).max()), 1e-12)
    for _ in range(3 * count):
        slope = np.where(free, -np.inf, right - square @ found)
        best = int(np.argmax(slope))
        if slope[best] <= least:
            break
        free[best] = True
        while True:
            chosen = np.flatnonzero(free)
            new = np.zeros(count)
            new[chosen] = np.linalg.solve(square[np.ix_(chosen, chosen)], right[chosen])
            if new[chosen].min() > 0:
                break
            low = chosen[new[chosen] <= 0]
            shares = found[low] / np.maximum(found[low] - new[low], 1e-300)
            found += float(shares.min()) * (new - found)
            free[low[np.argmin(shares)]] = False
            found[~free] = 0.0
        found = new
    return found

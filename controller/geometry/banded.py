# SPDX-License-Identifier: GPL-3.0-or-later
"""Linear equations of unknowns that know only their neighbours in time, in NumPy alone.

Samples are taken together until each group knows but the next one; then it is Gauss elimination
down a chain of dense blocks, in a time that grows with the length of a clip and no faster.
"""

import numpy as np


def solve(bands: np.ndarray, right: np.ndarray) -> np.ndarray:
    """(F, n) solution x of the symmetric, positive definite system A x = right.

    bands: (K + 1, F, n, n); bands[k, t] is A's block of samples t and t + k, bands[0] is symmetric;
    what would lie beyond the last sample is ignored. right: (F, n), or (F, n, m) for m systems of
    one A.
    """
    if right.ndim == 2:
        return solve(bands, right[..., None])[..., 0]
    reach = len(bands) - 1
    diagonal, beside, columns = _grouped(bands, right, max(reach, 1))
    block, column = diagonal[0], columns[0]
    ahead, solved = [], []
    for i in range(1, len(diagonal)):
        both = np.linalg.solve(block, np.hstack([beside[i - 1], column]))
        ahead.append(both[:, : len(block)])
        solved.append(both[:, len(block) :])
        block = diagonal[i] - _product(beside[i - 1].T, ahead[-1])
        column = columns[i] - beside[i - 1].T @ solved[-1]
    solution = [np.linalg.solve(block, column)]
    for step, start in zip(reversed(ahead), reversed(solved), strict=True):
        solution.append(start - step @ solution[-1])
    return np.concatenate(solution[::-1]).reshape(-1, *right.shape[1:])[: len(right)]


def _product(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """first @ second in two halves: a BLAS gives larger products to several threads, which wait for
    each other longer than one takes."""
    half = second.shape[1] // 2
    return np.hstack([first @ second[:, :half], first @ second[:, half:]])


def _grouped(
    bands: np.ndarray, right: np.ndarray, group: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Blocks (G, w, w) on the diagonal and above it, and columns (G, w, m), of groups of
    samples."""
    count, size, systems = right.shape
    groups = -(-count // group)
    padded = groups * group
    diagonal = np.zeros((groups, group, size, group, size))
    beside = np.zeros_like(diagonal)
    for k, band in enumerate(bands[:count]):
        blocks = np.zeros((padded, size, size))
        blocks[: count - k] = band[: count - k]
        if k == 0:
            blocks[count:] = np.eye(size)
        blocks = blocks.reshape(groups, group, size, size)
        for i in range(group):
            if i + k >= group:
                beside[:, i, :, i + k - group, :] += blocks[:, i]
                continue
            diagonal[:, i, :, i + k, :] += blocks[:, i]
            if k:
                diagonal[:, i + k, :, i, :] += np.swapaxes(blocks[:, i], 1, 2)
    columns = np.zeros((padded, size, systems))
    columns[:count] = right
    wide = group * size
    shape = groups, wide, wide
    return diagonal.reshape(shape), beside.reshape(shape), columns.reshape(groups, wide, systems)

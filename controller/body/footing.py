# SPDX-License-Identifier: GPL-3.0-or-later
"""What one foot stands on, sample by sample, as a plane."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Footing:
    """The plane that one foot stands on, at F samples.

    points (F, 3) [m] and upward unit normals (F, 3) of it, where the foot stands; between two
    stances what leads from one to the other, with `points` under the ankle. turns (F, 3, 3) and
    shifts (F, 3) [m]: motion of the floor since the middle of each stance, None if none moves.
    """

    points: np.ndarray
    normals: np.ndarray
    turns: np.ndarray | None = None
    shifts: np.ndarray | None = None

    def still(self, positions: np.ndarray, frames: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions (F, 3) [m] and frames (F, 3, 3) as if the floor had not moved."""
        if self.turns is None or self.shifts is None:
            return positions, frames
        back = self.turns.swapaxes(1, 2)
        return np.einsum("fij,fj->fi", back, positions - self.shifts), back @ frames

    def moved(self, vectors: np.ndarray, places: bool = False) -> np.ndarray:
        """Directions (F, 3), or places [m], taken along by the floor."""
        if self.turns is None or self.shifts is None:
            return vectors
        vectors = np.einsum("fij,fj->fi", self.turns, vectors)
        return vectors + self.shifts if places else vectors

    def planes(self, positions: np.ndarray) -> np.ndarray:
        """(F, 3) height [m] of the plane under (F, 3) [m], its rises along x and y."""
        points, normals = self.moved(self.points, True), self.moved(self.normals)
        rises = -normals[:, :2] / normals[:, 2:]
        return np.column_stack([heights_of_planes(points, normals, positions), rises])

    def untilted(self, corners: np.ndarray) -> np.ndarray:
        """(F, n) heights [m] that (F, n, 3) would have if the plane were level."""
        points, normals = self.moved(self.points, True), self.moved(self.normals)
        slopes = normals[:, None, :2] / normals[:, None, 2:]
        return corners[..., 2] + (slopes * (corners - points[:, None])[..., :2]).sum(-1)


def heights_of_planes(points: np.ndarray, normals: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Heights (...,) of planes at (..., 3) [m]."""
    apart = positions[..., :2] - points[..., :2]
    return points[..., 2] - (normals[..., :2] * apart).sum(-1) / normals[..., 2]


def level(ground: float, count: int) -> tuple[Footing, Footing]:
    """(left, right) Footing on a level floor at a height [m]."""
    points, normals = np.tile([0.0, 0.0, ground], (count, 1)), np.tile([0.0, 0.0, 1.0], (count, 1))
    footing = Footing(points, normals)
    return footing, footing


def floors_under(
    footings: Sequence[Footing], ankles: np.ndarray, contacts: np.ndarray
) -> np.ndarray:
    """(F,) height [m] of the floor under ankles (F, 2, 3) [m]: the mean of those that stand by
    contacts (F, 2), of both where none does."""
    heights = np.stack([footings[i].planes(ankles[:, i])[:, 0] for i in range(2)], 1)
    share = np.where(contacts.any(1, keepdims=True), contacts, True)
    return (heights * share).sum(1) / share.sum(1)

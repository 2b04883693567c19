# SPDX-License-Identifier: GPL-3.0-or-later
"""Solids and colliders; mass properties of convex hulls, exactly; what a body stands on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..exceptions import demand
from .motion import Motion
from .rotations import matrix_from_quaternion
from .skeleton import LANDMARKS

KINDS = ("sphere", "box", "capsule", "hull", "mesh")

#: How many numbers tell the size of a kind that has one.
_SIZES = {"sphere": 1, "box": 3, "capsule": 2}

#: A hull has at most so many points: more cost time at every step, and change nothing that shows
#: (by trial).
MOST_POINTS = 128

#: A sole may be this far below the top of what it stands on [m]: captured ones are by 3 to 5 cm
#: where they push off.
_SUNK = 0.05
#: Feet whose heights differ by less than this [m] are on a slope, else on a step: steps of stairs
#: are higher, as a rule.
_STEP = 0.15
#: The 12 triangles of a box, whose corners are numbered by the bits z, y, x.
_BOX_FACES = np.array(
    [
        [a, b, c]
        for i, j, k, m in (
            (0, 1, 3, 2),
            (4, 5, 7, 6),
            (0, 1, 5, 4),
            (2, 3, 7, 6),
            (0, 2, 6, 4),
            (1, 3, 7, 5),
        )
        for a, b, c in ((i, j, k), (i, k, m))
    ]
)

#: Turning by it from point to point spreads them evenly over a sphere (Fibonacci's lattice).
_GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))


@dataclass(frozen=True)
class Solid:
    """A shape, in its own frame.

    kind and size: "sphere" with (radius,) [m], "box" with half extents (x, y, z) [m], "capsule"
    with (radius, length of the cylinder along z) [m], "hull": the convex hull of vertices (n, 3)
    [m], "mesh": vertices (n, 3) [m] and triangles (m, 3), for colliders only. A thing's hull has
    triangles as well, for its inertia, and its axes are its principal axes.
    """

    kind: str
    size: tuple[float, ...] = ()
    vertices: np.ndarray | None = None
    faces: np.ndarray | None = None

    def check(self, name: str) -> None:
        """Raise SettingsError if it has no extent. name: whose shape it is."""
        demand(self.kind in KINDS, f"'{name}' has a shape of no known kind '{self.kind}'.")
        count = _SIZES.get(self.kind)
        if count is not None:
            good = len(self.size) == count and finite(self.size) and min(self.size) > 0
            demand(good, f"'{name}' has no size: scale it up, or apply its scale.")
            return
        vertices = np.asarray(self.vertices if self.vertices is not None else [], float)
        enough = 4 if self.kind == "hull" else 3
        demand(
            len(vertices) >= enough and finite(vertices),
            f"'{name}' has too few points to touch anything: give it faces.",
        )
        demand(
            self.kind == "hull" or (self.faces is not None and len(self.faces) > 0),
            f"'{name}' has no faces: nothing can touch it.",
        )


@dataclass(frozen=True)
class Collider:
    """Something that stands in the way, or moves on a path of its own.

    positions (3,) or (F, 3) [m] and rotations (4,) or (F, 4), w first, at the samples of the
    motion.
    """

    name: str
    solid: Solid
    positions: np.ndarray | Sequence[float] = (0.0, 0.0, 0.0)
    rotations: np.ndarray | Sequence[float] = (1.0, 0.0, 0.0, 0.0)
    friction: float = 1.0

    @property
    def moves(self) -> bool:
        """Whether it has a path."""
        return np.ndim(self.positions) == 2

    @property
    def top(self) -> float:
        """Height [m] of its highest point at the first sample."""
        solid, position = self.solid, np.reshape(self.positions, (-1, 3))[0]
        if solid.kind == "sphere":
            return float(position[2] + solid.size[0])
        turn = matrix_from_quaternion(np.reshape(self.rotations, (-1, 4))[0])
        if solid.kind == "box":
            return float(position[2] + np.abs(turn[2]) @ np.asarray(solid.size))
        if solid.kind == "capsule":
            radius, length = solid.size
            return float(position[2] + np.abs(turn[2, 2]) * length / 2 + radius)
        return float(position[2] + (np.asarray(solid.vertices, float) @ turn[2]).max())

    def check(self) -> None:
        """Raise SettingsError if it cannot be."""
        demand(
            finite(self.positions, self.rotations, self.friction),
            f"The collider '{self.name}' has a value that is not a number: mend it.",
        )
        self.solid.check(self.name)


@dataclass(frozen=True)
class Limb(Collider):
    """A part of another body, on its animated path: all of the character meets it, and nothing
    stands on it.

    name: of that body; part: what it is of it, in words. It has no velocity but its path's, and
    nothing moves it.
    """

    part: str = ""


def finite(*values: object) -> bool:
    """Whether all numbers of all values, numbers or arrays, are finite."""
    return all(np.isfinite(np.asarray(value, float)).all() for value in values)


def mass_properties(
    vertices: np.ndarray, faces: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Of a convex solid of even density.

    vertices: (n, 3) [m]; faces: (m, 3) triangles that close it, in either direction.
    Returns its volume [m^3], centre of mass (3,) [m], and the inertia about that per mass
    (3, 3) [m^2].
    """
    vertices = np.asarray(vertices, float)
    middle = vertices.mean(0)
    # Tetrahedra from a point inside to each triangle.
    corners = vertices[np.asarray(faces, int)] - middle
    volumes = np.abs(np.linalg.det(corners)) / 6
    volume = volumes.sum()
    sums = corners.sum(1)
    centre = volumes @ sums / 4 / max(volume, 1e-300)
    spread = np.einsum("t,tci,tcj->ij", volumes, corners, corners)
    spread += np.einsum("t,ti,tj->ij", volumes, sums, sums)
    spread = spread / 20 / max(volume, 1e-300) - np.outer(centre, centre)
    return float(volume), middle + centre, np.trace(spread) * np.eye(3) - spread


def principal_axes(inertia: np.ndarray) -> np.ndarray:
    """(3, 3) rotation whose columns are the principal axes, each nearest to the axis it stands
    for: the identity for an inertia that is diagonal already."""
    scale = np.abs(inertia).max()
    if np.abs(inertia - np.diag(np.diag(inertia))).max() < 1e-6 * scale:
        return np.eye(3)
    _, axes = np.linalg.eigh(inertia)
    order: list[int] = []
    for row in np.abs(axes):
        order.append(max(set(range(3)) - set(order), key=row.__getitem__))
    axes = axes[:, order] * np.sign(np.diag(axes[:, order]) + 1e-300)
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    return axes


def fewer_points(vertices: np.ndarray, most: int = MOST_POINTS) -> np.ndarray:
    """At most `most` of (n, 3) points: those that reach farthest, in directions all round."""
    vertices = np.asarray(vertices, float)
    if len(vertices) <= most:
        return vertices
    z = 1 - (2 * np.arange(most) + 1) / most
    turn = _GOLDEN_ANGLE * np.arange(most)
    radius = np.sqrt(1 - z * z)
    directions = np.stack([radius * np.cos(turn), radius * np.sin(turn), z], 0)
    return vertices[np.unique([np.argmax(vertices @ d) for d in directions.T])]


def stands_at(colliders: Sequence[Collider], motion: Motion) -> float | None:
    """Height [m] of the collider under both feet at the first sample of a motion: the mean on a
    slope, the lower one on a step; None if a foot has none below it. Round ones do not count."""
    heights = []
    for side in "lr":
        ankle = motion.positions[0, LANDMARKS.index(f"ankle_{side}")]
        tops = [_top_under(collider, ankle) for collider in colliders]
        heights.append(max(tops, default=-np.inf))
    if min(heights) == -np.inf:
        return None
    return float(np.mean(heights) if np.ptp(heights) < _STEP else min(heights))


def _top_under(collider: Collider, point: np.ndarray) -> float:
    """Height [m] of a collider's highest surface below a point (3,); -inf if there is none."""
    corners = _triangles(collider)
    if corners is None:
        return -np.inf
    a, b, c = corners[..., :2].swapaxes(0, 1)
    # Shares of the corners in the point, seen from above.
    edges = np.stack([b - a, c - a], -1)
    area = np.linalg.det(edges)
    seen = np.abs(area) > 1e-12
    u, v = np.linalg.solve(edges[seen], (point[:2] - a[seen])[..., None])[..., 0].T
    heights = corners[seen, :, 2]
    height = heights[:, 0] * (1 - u - v) + heights[:, 1] * u + heights[:, 2] * v
    inside = (u >= -1e-9) & (v >= -1e-9) & (u + v <= 1 + 1e-9) & (height <= point[2] + _SUNK)
    return height[inside].max(initial=-np.inf)


def _triangles(collider: Collider) -> np.ndarray | None:
    """(m, 3, 3) corners of a collider's triangles at the first sample [m]; None if it has none."""
    corners = corners_of(collider.solid)
    if corners is None:
        return None
    position = np.reshape(collider.positions, (-1, 3))[0]
    turn = matrix_from_quaternion(np.reshape(collider.rotations, (-1, 4))[0])
    return corners @ turn.T + position


def corners_of(solid: Solid) -> np.ndarray | None:
    """(m, 3, 3) corners of a solid's triangles in its own frame [m]; None if it has none."""
    if solid.kind == "box":
        bits = np.arange(8)[:, None] >> [2, 1, 0] & 1
        vertices, faces = (2 * bits - 1) * np.array(solid.size), _BOX_FACES
    elif solid.faces is None:
        return None
    else:
        vertices, faces = np.asarray(solid.vertices, float), np.asarray(solid.faces, int)
    return vertices[faces]

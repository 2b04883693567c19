# SPDX-License-Identifier: GPL-3.0-or-later
"""What a motion stands on, sample by sample: the floor, and the colliders on it.

Stairs, ramps, lifts: the height and the slope of the floor differ from foot to foot, so contacts,
rolling feet and goals are judged by the floor under each foot. Surfaces are triangles that are flat
enough to stand on; a point is above one, or a little below it, as captured soles are.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from ..body.character import Character
from ..body.footing import Footing, heights_of_planes
from ..body.sole import STEEPEST
from ..geometry.motion import Motion
from ..geometry.rotations import matrix_from_quaternion, unit
from ..geometry.skeleton import FEET, LANDMARKS
from ..geometry.solids import Collider, corners_of
from ..geometry.stance import Above, bridged, runs
from ..geometry.trajectory import Trajectory

# By trial; `researcher.md`, Uneven floors and Stairs and ramps, tells what comes of them.
#: A point may be this far below the surface that it stands on [m], one of a captured sole so far.
_SUNK, _DEEP = 0.05, 0.08
#: Ankles of standing feet are at most so far [m] above what they stand on, and so fast [m/s].
_ANKLE, _SLOW = 0.2, 0.3
#: What moves and is at most so far [m] below something else is what is stood on.
_FLUSH = 0.01
#: How far [m] aside of the feet a collider may be and still be looked at; of one that moves, in
#: all directions.
_AROUND, _REACH = 0.5, 3.0
#: Samples that are compared with the triangles around them at a time, for speed.
_AT_ONCE = 8


class _Path(NamedTuple):
    """How a collider turns (F, 3, 3), and where it is (F, 3) [m]."""

    turns: np.ndarray
    places: np.ndarray


class Under(NamedTuple):
    """What points of soles are above: its heights (F, 2, n) [m], and how fast it moves
    (F, 2, n, 3) [m/s]."""

    heights: np.ndarray
    drifts: np.ndarray

    def part(self, samples: slice) -> "Under":
        """The same in a slice of the samples."""
        return Under(self.heights[samples], self.drifts[samples])


class _Surface:
    """The triangles of one collider that can be stood on.

    corners: (1 or F, m, 3, 3) [m]; path: _Path of the collider, None if it rests.
    """

    def __init__(self, collider: Collider, ankles: np.ndarray, follow: bool) -> None:
        vertices, count = corners_of(collider.solid), len(ankles)
        self.corners = np.zeros((1, 0, 3, 3))
        self.path: _Path | None = None
        if vertices is None:
            return
        moves = collider.moves and follow
        samples = np.minimum(np.arange(count if moves else 1), _last(collider))
        turns = matrix_from_quaternion(np.reshape(collider.rotations, (-1, 4))[samples])
        places = np.reshape(collider.positions, (-1, 3)).astype(float)[samples]
        if moves:  # only what is ever near the feet is kept for all samples
            own = np.einsum("fji,faj->fai", turns, ankles - places[:, None])
            low, high = own.min((0, 1)) - _REACH, own.max((0, 1)) + _REACH
            near = (vertices.min(1) < high) & (vertices.max(1) > low)
            vertices = vertices[near.all(1)]
        corners = np.einsum("fij,mcj->fmci", turns, vertices) + places[:, None, None]
        self.normals = _normals(corners)
        steep = (self.normals[..., 2] < STEEPEST).all(0)
        self.corners, self.normals = corners[:, ~steep], self.normals[:, ~steep]
        self._measure()
        if moves:
            self.path = _Path(turns, places)

    def _measure(self) -> None:
        """Where each triangle begins and ends, seen from above."""
        plan = self.corners[..., :2]
        self._low, self._high = plan.min(2), plan.max(2)

    def near(self, low: np.ndarray, high: np.ndarray) -> bool:
        """Only those triangles that are over the rectangle from low to high (2,) [m]."""
        over = (self.corners[..., :2].min((0, 2)) < high) & (
            self.corners[..., :2].max((0, 2)) > low
        )
        over = over.all(-1)
        if len(over):
            self.corners, self.normals = self.corners[:, over], self.normals[:, over]
            self._measure()
        return self.corners.shape[1] > 0

    def under(
        self, points: np.ndarray, most: np.ndarray, samples: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Heights (n, p) [m] and normals (n, p, 3) of it at points (n, p, 3), no higher than `most`
        (n, p); -inf where there is nothing. samples: (n,)."""
        heights = np.full(points.shape[:2], -np.inf)
        normals = np.tile([0.0, 0.0, 1.0], (*points.shape[:2], 1))
        for start in range(0, len(points), _AT_ONCE):
            rows = slice(start, start + _AT_ONCE)
            at = np.unique(np.minimum(samples[rows], len(self.corners) - 1))
            low, high = self._low[at].min(0), self._high[at].max(0)
            plan = points[rows, :, :2]
            near = (low <= plan.max((0, 1))) & (high >= plan.min((0, 1)))
            near = np.flatnonzero(near.all(1))
            if len(near):
                parts = points[rows], most[rows], samples[rows]
                heights[rows], normals[rows] = self._under(*parts, near)
        return heights, normals

    def _under(
        self, points: np.ndarray, most: np.ndarray, samples: np.ndarray, near: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Heights and normals of the triangles with the numbers `near`."""
        at = np.minimum(samples, len(self.corners) - 1)
        corners, normal = self.corners[at][:, near], self.normals[at][:, None, near]
        a, b, c = (corners[:, None, :, i] for i in range(3))
        # Shares of the corners b and c in the point, seen from above.
        ab, ac, ap = b - a, c - a, points[:, :, None] - a
        area = ab[..., 0] * ac[..., 1] - ab[..., 1] * ac[..., 0]
        u = (ap[..., 0] * ac[..., 1] - ap[..., 1] * ac[..., 0]) / area
        v = (ab[..., 0] * ap[..., 1] - ab[..., 1] * ap[..., 0]) / area
        height = a[..., 2] + u * ab[..., 2] + v * ac[..., 2]
        inside = (u >= -1e-9) & (v >= -1e-9) & (u + v <= 1 + 1e-9) & (height <= most[..., None])
        height = np.where(inside, height, -np.inf)
        best = height.argmax(-1)[..., None]
        normal = np.broadcast_to(normal, (*height.shape, 3))
        normals = np.take_along_axis(normal, best[..., None], 2)[:, :, 0]
        return np.take_along_axis(height, best, -1)[..., 0], normals

    def velocity(self, points: np.ndarray, rate: float) -> np.ndarray:
        """(F, p, 3) how fast [m/s] it moves at points (F, p, 3) [m]."""
        if self.path is None:
            return np.zeros(points.shape)
        turns, places = self.path
        last = len(turns) - 1
        at = np.minimum(np.arange(len(points)), last)
        own = np.einsum("fji,fpj->fpi", turns[at], points - places[at, None])
        earlier, later = np.maximum(at - 1, 0), np.minimum(at + 1, last)
        ends = [
            np.einsum("fij,fpj->fpi", turns[at], own) + places[at, None] for at in (earlier, later)
        ]
        return (ends[1] - ends[0]) * rate / (later - earlier)[:, None, None]


def _last(collider: Collider) -> int:
    return len(np.reshape(collider.positions, (-1, 3))) - 1


def _normals(corners: np.ndarray) -> np.ndarray:
    """(..., 3) upward unit normals of triangles (..., 3, 3)."""
    normals = np.cross(
        corners[..., 1, :] - corners[..., 0, :], corners[..., 2, :] - corners[..., 0, :]
    )
    size = np.maximum(np.linalg.norm(normals, axis=-1, keepdims=True), 1e-12)
    return normals / size * np.where(normals[..., 2:] < 0, -1.0, 1.0)


class Surroundings(Protocol):
    """What terrain is made of, as `scenario.Scenario` has it: colliders, and the height of the
    floor [m], None for where the motion stands."""

    @property
    def colliders(self) -> Sequence[Collider]: ...

    @property
    def floor(self) -> float | None: ...


class Terrain:
    """Floor and colliders under a motion of F samples. floor: its height [m]."""

    def __init__(self, floor: float, surfaces: list[_Surface], rate: float) -> None:
        self.floor, self._surfaces, self._rate = floor, surfaces, rate

    @classmethod
    def of(cls, scenario: Surroundings, ground: float, motion: Motion) -> "Terrain | None":
        """The Terrain of a motion, None where it meets nothing but a level floor.

        ground [m]: of the floor, where the scenario does not have one. A moving collider that the
        motion does not follow, such as a lift under a character that was animated in place, counts
        as if it stayed where it begins.
        """
        ankles = motion.positions[:, [LANDMARKS.index(f"ankle_{side}") for side in "lr"]]
        found = cls.around(scenario, ground, ankles, motion.rate)
        return found if found._surfaces else None

    @classmethod
    def around(
        cls, scenario: Surroundings | None, ground: float, points: np.ndarray, rate: float
    ) -> "Terrain":
        """The Terrain under points (F, 2, 3) [m] of a body, at `rate` [Hz], even if that is but the
        floor; scenario None for nothing else, ground as above."""
        if scenario is None:
            return cls(float(ground), [], rate)
        floor = ground if scenario.floor is None else scenario.floor
        low = points[..., :2].min((0, 1)) - _AROUND
        high = points[..., :2].max((0, 1)) + _AROUND
        surfaces = []
        for collider in scenario.colliders:
            surface = _surface(collider, points, rate)
            if surface.near(low, high) and surface.corners[..., 2].min() < points[..., 2].max():
                surfaces.append(surface)
        return cls(float(floor), surfaces, rate)

    def under(
        self, points: np.ndarray, most: np.ndarray | None = None, samples: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What is highest under points (n, p, 3) [m], but no higher than `most` (n, p) [m], None
        for a little above the points.

        samples: (n,) of the points, None for all. Returns heights (n, p) [m], normals (n, p, 3),
        and owners (n, p), -1 for the floor.
        """
        samples = np.arange(len(points)) if samples is None else samples
        most = points[..., 2] + _SUNK if most is None else most
        heights = np.full(points.shape[:2], self.floor)
        normals = np.tile([0.0, 0.0, 1.0], (*points.shape[:2], 1))
        owners = np.full(points.shape[:2], -1)
        for number, surface in enumerate(self._surfaces):
            own, turned = surface.under(points, most, samples)
            # Of a lift that is level with the floor the feet know that it moves.
            higher = own > heights - (_FLUSH if surface.path is not None else 0.0)
            heights[higher], normals[higher], owners[higher] = own[higher], turned[higher], number
        return heights, normals, owners

    def over(self, corners: np.ndarray, ankles: np.ndarray) -> Above:
        """What sole corners (F, 2, n, 3) [m] are above. ankles: (F, 2, 3) [m]; what is above them
        is no floor."""
        most = np.maximum(corners[..., 2] + _SUNK, ankles[:, :, None, 2])
        under = self.beneath(corners, most)
        return Above(corners[..., 2] - under.heights, under.drifts)

    def below(self, points: np.ndarray) -> Under:
        """The Under of points (F, 2, n, 3) [m], each by itself: toes may be under the nose of the
        next step while their ankle is over it."""
        return self.beneath(points, points[..., 2] + _DEEP)

    def beneath(self, points: np.ndarray, most: np.ndarray) -> Under:
        """What is highest under points (F, 2, n, 3) [m], up to `most` (F, 2, n) [m]."""
        flat = points.reshape(len(points), -1, 3)
        heights, _, owners = self.under(flat, most.reshape(flat.shape[:2]))
        speeds = np.zeros(flat.shape)
        for number, surface in enumerate(self._surfaces):
            if surface.path is not None:
                own = owners == number
                speeds[own] = surface.velocity(flat, self._rate)[own]
        return Under(heights.reshape(points.shape[:3]), speeds.reshape(points.shape))

    def footings(
        self, character: Character, trajectory: Trajectory, contacts: np.ndarray
    ) -> tuple[Footing, Footing]:
        """(left, right) Footing of a character's feet while contacts (F, 2) hold."""
        joints, frames = character.pose(trajectory)
        corners, ankles = character.sole_corners(joints, frames), joints[:, FEET]
        left, right = (
            self._footing(corners[:, foot], ankles[:, foot], contacts[:, foot]) for foot in range(2)
        )
        return left, right

    def _footing(self, corners: np.ndarray, ankles: np.ndarray, contact: np.ndarray) -> Footing:
        count = len(corners)
        points, normals = ankles.copy(), np.tile([0.0, 0.0, 1.0], (count, 1))
        turns, shifts = np.tile(np.eye(3), (count, 1, 1)), np.zeros((count, 3))
        middle = corners.mean(1)
        heights = np.zeros(count)
        for start, stop in runs(contact):
            # The sole is flattest where its corners differ least in height.
            flat = start + int(np.ptp(corners[start:stop, :, 2], axis=1).argmin())
            owner, point, normal = self._plane(flat, corners[flat], ankles[flat], middle[flat])
            points[start:stop], normals[start:stop] = point, normal
            path = self._surfaces[owner].path if owner >= 0 else None
            part = slice(start, stop)
            if path is not None:
                rows = np.minimum(np.arange(start, stop), len(path.turns) - 1)
                at = min(flat, len(path.turns) - 1)
                turns[part] = path.turns[rows] @ path.turns[at].T
                shifts[part] = path.places[rows] - turns[part] @ path.places[at]
            moved = np.einsum("fij,fj->fi", turns[part], points[part]) + shifts[part]
            tilted = np.einsum("fij,fj->fi", turns[part], normals[part])
            heights[part] = heights_of_planes(moved, tilted, ankles[part])
        normals = unit(np.stack([bridged(axis, contact) for axis in normals.T], 1))
        points[:, 2] = np.where(contact, points[:, 2], bridged(heights, contact))
        if (shifts == 0).all() and (turns == np.eye(3)).all():
            return Footing(points, normals)
        return Footing(points, normals, turns, shifts)

    def _plane(
        self, sample: int, corners: np.ndarray, ankle: np.ndarray, middle: np.ndarray
    ) -> tuple[int, np.ndarray, np.ndarray]:
        """Owner, point (3,) and normal (3,) of the plane under a sole: of those under its corners
        (n, 3) the one that is highest under its middle."""
        most = np.maximum(corners[:, 2] + _SUNK, ankle[2])
        heights, normals, owners = self.under(corners[None], most[None], np.array([sample]))
        points = np.column_stack([corners[:, :2], heights[0]])
        best = int(heights_of_planes(points, normals[0], middle).argmax())
        return owners[0, best], points[best], normals[0, best]

    def highest(self, points: np.ndarray, most: np.ndarray) -> np.ndarray:
        """(n, p) heights [m] of what is highest under points (F, p, 3), up to `most` (F, p)."""
        heights, _, _ = self.under(points, most)
        return heights


def _surface(collider: Collider, ankles: np.ndarray, rate: float) -> _Surface:
    """The _Surface of a collider on the path that ankles (F, 2, 3) follow, its own or none."""
    frozen = _Surface(collider, ankles, False)
    if not collider.moves or not frozen.corners.size:
        return frozen
    following = _Surface(collider, ankles, True)
    return max(frozen, following, key=lambda surface: _stood_on(surface, ankles, rate))


def _stood_on(surface: _Surface, ankles: np.ndarray, rate: float) -> tuple[int, float]:
    """How much ankles (F, 2, 3) stand on a surface: in how many samples, and how still."""
    heights, _ = surface.under(ankles, ankles[..., 2], np.arange(len(ankles)))
    velocity = np.gradient(ankles, axis=0) * rate - surface.velocity(ankles, rate)
    speed = np.linalg.norm(velocity, axis=-1)
    stands = (ankles[..., 2] - heights < _ANKLE) & (speed < _SLOW)
    return int(stands.sum()), -float(speed[stands].mean()) if stands.any() else 0.0

# SPDX-License-Identifier: GPL-3.0-or-later
"""What a clean-up of feet and weight minimises, as one sum of squares over a whole clip.

The terms are those of Wang and others, "Optimization Control for Biped Motion Trajectory":
E_contact, E_swing, E_COM and E_track, on the bones of `leg_chain`; contact as a velocity, so that
the solution chooses the place at which a foot stands. Each residual is divided by how far off it
may be (sigma, below), so that all of them are comparable.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..body.momentum import GRAVITY
from ..contacts.contact_finding import smoothed
from ..geometry.rotations import unit
from ..geometry.skeleton import SIDES
from ..geometry.stance import runs
from .leg_chain import (
    ANKLE,
    COLUMNS,
    FIRST,
    HIP,
    KNEE,
    MOVE,
    TOES,
    TURN,
    UNKNOWNS,
    Body,
    Pose,
)

# By trial on 21 captured clips; `researcher.md`, Clean-up without a simulation, tells what comes of
# them there and on 15 clips that chose nothing. By factors of 2 most of them matter little.
#: How far off each may be: a standing point's speed [m/s] and height [m]; a free point below the
#: floor, or below where it was in the air [m]; the centre of mass in plan [m]; roll and yaw of a
#: foot against the animation [rad]; a standing point in plan from where it is in the animation [m].
CONTACT, HEIGHT, FLOOR, SWING, PLACE, SOLES = 0.003, 0.002, 0.002, 0.01, 0.005, 0.03
SPOT = 0.02
#: How far the corrections themselves may go [m, rad] ...
TRACK = {"plan": 0.03, "height": 0.06, "turn": 0.03, "hip": 0.12, "knee": 0.15, "ankle": 0.15}
#: ... and toes; how fast they may change [m/s^2, rad/s^2].
TRACK_TOES, SMOOTH_PLACE, SMOOTH_TURN, SMOOTH_TOES = 0.5, 1.5, 12.0, 90.0
#: Jerk of the pelvis, the animation's own included [m/s^3].
DENOISE = 100.0
#: Heights up to which a foot in the air is kept from sinking [m, adult].
_SWING_HEIGHT = 0.12
_RAMP = 0.05  # [s] in which a foot is taken hold of
_STANDING_HEIGHT = 50  # percentile of a point's heights while it stands
_DAMPING = 1e-6  # added to every weight, so that the equations can always be solved

#: Of the zero-moment point: directions around what carries, the margin around it [m, adult], what
#: is farther outside pulls no harder [m], the filter [s], and the least weight to count.
_DIRECTIONS = np.stack([np.cos(np.arange(32) * np.pi / 16), np.sin(np.arange(32) * np.pi / 16)], 1)
_MARGIN, _OUTSIDE, _WEIGHT_FILTER, _LOADED = 0.03, 0.05, 0.12, 0.35
_ENDS = 0.3  # [s] at the ends of a clip in which the weight counts less
_HIGHEST = 0.3  # [s^2] of height over gravity, where the body nearly flies


@dataclass(frozen=True)
class Facts:
    """All that is known of each of F samples before anything is solved.

    body: leg_chain.Body. marks: (F, 2, 3) which points stand. grip: (F, 2, 3) from 0 to 1, how
    firmly. heights: (F, 2, 3) where they stand [m]. ground: (F, 2, 3) the floor under them [m].
    source_points: (F, 2, 3, 3) [m], com: (F, 3) [m], zmp: (F, 2) [m] of the animation.
    stiffness: (F,) height of the centre of mass over what pulls it down [s^2]. load: (F,) share
    of its weight that the body presses with, 0 where that says nothing.
    """

    body: Body
    marks: np.ndarray
    grip: np.ndarray
    heights: np.ndarray
    ground: np.ndarray
    source_points: np.ndarray
    com: np.ndarray
    zmp: np.ndarray
    stiffness: np.ndarray
    load: np.ndarray

    @classmethod
    def of(cls, body: Body, marks: np.ndarray) -> "Facts":
        """The facts of a body whose points stand where (F, 2, 3) marks say."""
        pose = body.pose(np.zeros((len(body), UNKNOWNS)), slopes=False)
        points = np.stack([pose.points[s] for s in SIDES], 1)
        heights = _standing_heights(points[..., 2], marks, body)
        zmp, stiffness, load = _weight(pose.com, body)
        return cls(
            body=body,
            marks=marks,
            grip=_grip(marks, body.rate),
            heights=heights,
            ground=_ground(heights, marks, body.floors),
            source_points=points,
            com=pose.com,
            zmp=zmp,
            stiffness=stiffness,
            load=load,
        )

    def part(self, samples: slice) -> "Facts":
        """The same in a slice of the samples."""
        values = {name: value[samples] for name, value in vars(self).items() if name != "body"}
        return replace(self, body=self.body.part(samples), **values)

    def differ(self, other: "Facts") -> np.ndarray:
        """(F,) where these ask for something else than other facts of the same animation."""
        different = np.zeros(len(self.marks), bool)
        for mine, others in (
            (self.grip, other.grip),
            (self.heights * self.marks, other.heights * other.marks),
            (self.ground, other.ground),
        ):
            axes = tuple(range(1, mine.ndim))
            different |= (np.abs(mine - others) > 1e-9).any(axes)
        return different


def _standing_heights(heights: np.ndarray, marks: np.ndarray, body: Body) -> np.ndarray:
    """(F, 2, 3) where each marked point stands [m]: on a collider, else low in its own span, since
    no captured floor is level. Heights (F, 2, 3) of the animation where it is free."""
    result = heights.copy()
    wanted = np.where(body.floors == body.floor, heights, body.floors)
    # On a lift it stands at one height while both go up.
    lift = np.cumsum(body.drifts[..., 2], axis=0) / body.rate
    for first, stop, foot, point in _spans(marks):
        at = slice(first, stop), foot, point
        result[at] = np.percentile(wanted[at] - lift[at], _STANDING_HEIGHT) + lift[at]
    return result


def _ground(heights: np.ndarray, marks: np.ndarray, floors: np.ndarray) -> np.ndarray:
    """(F, 2, 3) the floor under each foot [m], as it is known (F, 2, 3), but for how much higher or
    lower the foot stands; between stances on the way from one to the next."""
    ground, count = floors.copy(), len(marks)
    for foot in range(2):
        lowest = np.where(marks[:, foot], heights[:, foot] - floors[:, foot], np.inf).min(1)
        known = np.flatnonzero(np.isfinite(lowest))
        if len(known):
            ground[:, foot] += np.interp(np.arange(count), known, lowest[known])[:, None]
    return ground


def _grip(marks: np.ndarray, rate: float) -> np.ndarray:
    """(F, 2, 3) from 0 to 1: weights that rise and fall at the ends of each span."""
    grip = marks.astype(float)
    count = len(marks)
    for first, stop, foot, point in _spans(marks):
        at = np.arange(first, stop)
        before = at - first + 1 if first > 0 else np.full(len(at), count)
        after = stop - at if stop < count else np.full(len(at), count)
        share = np.minimum(before, after) / (_RAMP * rate)
        grip[first:stop, foot, point] = np.minimum(1, share) ** 2
    return grip


def _spans(marks: np.ndarray) -> Iterator[tuple[int, int, int, int]]:
    """(first, stop, foot, point) of each stretch of samples in which a point stands."""
    for foot, point in np.ndindex(marks.shape[1:]):
        for first, stop in runs(marks[:, foot, point]):
            yield first, stop, foot, point


def _weight(com: np.ndarray, body: Body) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Zero-moment point (F, 2), stiffness (F,) and load (F,) of a centre of mass (F, 3)."""
    smooth = smoothed(com, _WEIGHT_FILTER, body.rate)
    acceleration = np.gradient(np.gradient(smooth, axis=0), axis=0) * body.rate**2
    pull = np.maximum(GRAVITY + acceleration[:, 2], 1.0)
    height = smooth[:, 2] - smoothed(body.floors.mean((1, 2)), _WEIGHT_FILTER, body.rate)
    zmp = smooth[:, :2] - (height / pull)[:, None] * acceleration[:, :2]
    load = 1 + acceleration[:, 2] / GRAVITY
    load = np.where(load > _LOADED, np.minimum(load, 1), 0)
    if body.sits is not None:
        load = np.where(body.sits, 0, load)
    # At its ends a clip could gain speed that nothing takes back.
    at = np.arange(len(com))
    load = load * np.minimum(1, np.minimum(at, at[::-1]) / (_ENDS * body.rate))
    return zmp, np.minimum(height / pull, _HIGHEST), load


@dataclass(frozen=True)
class Rows:
    """Residuals of neighbouring samples.

    residual: (T, m), row t of samples t to t + K. slopes: K + 1 of (T, m, n), by the corrections
    of each of those samples in `columns` (n,). weight: (T, m), 1 / sigma^2.
    """

    name: str
    residual: np.ndarray
    slopes: tuple[np.ndarray, ...]
    weight: np.ndarray
    columns: np.ndarray

    @property
    def cost(self) -> float:
        """Sum of squares."""
        return float((self.weight * self.residual**2).sum())


@dataclass(frozen=True)
class _Stencil:
    """Residuals that are fixed sums of neighbouring corrections, plus what the animation adds:
    sum over k of factors[k] * (corrections + offset)[t + k], each column by itself."""

    factors: tuple[int, ...]
    weight: np.ndarray  # (22,) or (F, 22)
    offset: np.ndarray | float  # (F, 22), or 0

    def residual(self, corrections: np.ndarray) -> np.ndarray:
        """(T, 22)."""
        values = corrections + self.offset
        count = max(0, len(values) - len(self.factors) + 1)
        parts = (factor * values[k : k + count] for k, factor in enumerate(self.factors))
        return sum(parts, np.zeros((count, UNKNOWNS)))


class Support(NamedTuple):
    """Towards which of all directions (F, 2) the zero-moment point is farthest outside of what
    carries, and how far that reaches there (F,) [m]; NaN where nothing does."""

    direction: np.ndarray
    reach: np.ndarray


class Problem:
    """The sum of squares of some facts.

    smoothness: less lets corrections go farther and change faster. balance: sigma of the
    zero-moment point [m], None to leave the weight alone. held: (F, 22) weights that keep
    corrections at those of `start`, None for nothing.
    """

    def __init__(
        self,
        facts: Facts,
        smoothness: float = 1.0,
        balance: float | None = None,
        held: np.ndarray | None = None,
        start: float | np.ndarray = 0.0,
    ) -> None:
        self.facts, self._balance = facts, balance
        rate, count = facts.body.rate, len(facts.marks)
        place, other = np.zeros(UNKNOWNS), np.full(UNKNOWNS, SMOOTH_TURN / smoothness)
        other[MOVE] = SMOOTH_PLACE / smoothness
        track = np.zeros(UNKNOWNS)
        track[MOVE] = TRACK["plan"], TRACK["plan"], TRACK["height"]
        track[TURN] = TRACK["turn"]
        for first in FIRST.values():
            leg = track[first:]
            leg[HIP], leg[KNEE], leg[ANKLE] = TRACK["hip"], TRACK["knee"], TRACK["ankle"]
            leg[TOES] = TRACK_TOES
            other[first + TOES] = SMOOTH_TOES / smoothness
        place[MOVE] = (rate**3 / DENOISE) ** 2
        way = np.zeros((count, UNKNOWNS))
        way[:, MOVE] = facts.body.pelvis
        self._stencils = [
            _Stencil((1,), 1 / track**2 + _DAMPING, 0.0),
            _Stencil((1, -2, 1), (rate**2 / other) ** 2, 0.0),
            _Stencil((-1, 3, -3, 1), place, way),
        ]
        if held is not None:
            self._stencils.append(_Stencil((1,), held, -start))
        self._bands = self._diagonals(count)

    def _diagonals(self, count: int) -> np.ndarray:
        """(4, F, 22) what the stencils add to the normal equations."""
        bands = np.zeros((4, count, UNKNOWNS))
        for stencil in self._stencils:
            factors = stencil.factors
            rows = count - len(factors) + 1
            for i, first in enumerate(factors):
                for j, second in enumerate(factors[i:], i):
                    bands[j - i, i : i + max(rows, 0)] += stencil.weight * first * second
        return bands

    def rows(
        self, corrections: np.ndarray, slopes: bool = True, support: Support | None = None
    ) -> Iterator[Rows]:
        """The Rows of all terms but the stencils'.

        support: None for that of these corrections.
        """
        pose = self.facts.body.pose(corrections, slopes)
        yield from self._place(pose)
        for foot, side in enumerate(SIDES):
            yield from self._sole(pose, foot, side)
        if self._balance is not None:
            yield from self._zmp(pose, support or self.support(pose), self._balance)

    def cost(self, corrections: np.ndarray) -> float:
        """The sum of squares."""
        total = sum(rows.cost for rows in self.rows(corrections, slopes=False))
        for stencil in self._stencils:
            residual = stencil.residual(corrections)
            total += float((stencil.weight * residual**2).sum())
        return total

    def normal_equations(self, corrections: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Bands (4, F, 22, 22) and right side (F, 22) of the step that Gauss and Newton take, and
        the sum of squares before it."""
        count, total = len(corrections), 0.0
        bands = np.zeros((4, count, UNKNOWNS, UNKNOWNS))
        right = np.zeros((count, UNKNOWNS))
        every = np.arange(UNKNOWNS)
        bands[:, :, every, every] = self._bands
        for stencil in self._stencils:
            residual = stencil.residual(corrections)
            weighed = stencil.weight * residual
            total += float((weighed * residual).sum())
            for k, factor in enumerate(stencil.factors):
                right[k : k + len(residual)] -= factor * weighed
        for rows in self.rows(corrections):
            total += rows.cost
            self._add(bands, right, rows)
        return bands, right, total

    def _add(self, bands: np.ndarray, right: np.ndarray, rows: Rows) -> None:
        used = len(rows.residual)
        down, across = rows.columns[:, None], rows.columns
        for i, first in enumerate(rows.slopes):
            weighed = np.swapaxes(first * rows.weight[..., None], 1, 2)
            right[i : i + used, across] -= (weighed @ rows.residual[..., None])[..., 0]
            for j, second in enumerate(rows.slopes[i:], i):
                bands[j - i][i : i + used, down, across] += weighed @ second

    # --- Terms -----------------------------------------------------------------------------------

    def _place(self, pose: Pose) -> Iterator[Rows]:
        """E_track of the body as a whole: the centre of mass where it was, in plan."""
        off = (pose.com - self.facts.com)[:, :2]
        slopes = (pose.com_slope[:, :2],) if self._has_slopes(pose) else ()
        weight = np.full(off.shape, 1 / PLACE**2)
        yield Rows("place", off, slopes, weight, np.arange(UNKNOWNS))

    @staticmethod
    def _has_slopes(pose: Pose) -> bool:
        return hasattr(pose, "com_slope")

    def _sole(self, pose: Pose, foot: int, side: str) -> Iterator[Rows]:
        """E_contact and E_swing of one foot, and how it is tipped and twisted."""
        facts, columns, rate = self.facts, COLUMNS[side], self.facts.body.rate
        points, marks, grip = pose.points[side], facts.marks[:, foot], facts.grip[:, foot]
        slopes = self._has_slopes(pose)
        plan = points[..., :2].reshape(len(points), 6)
        drift = facts.body.drifts[:, foot, :, :2].reshape(len(points), 6)
        speed = (plan[1:] - plan[:-1]) * rate - (drift[1:] + drift[:-1]) / 2
        both = np.minimum(grip[1:], grip[:-1]) / CONTACT**2
        upward = points[..., 2]
        ground, source = facts.ground[:, foot], facts.source_points[:, foot, :, 2]
        below = np.where(marks, 0, np.minimum(upward - ground, 0))
        clear = np.minimum(source, ground + _SWING_HEIGHT * facts.body.size)
        air = ~marks.any(1, keepdims=True) & (np.arange(3) < 2)  # toes may point
        sunk = np.where(air, np.minimum(upward - clear, 0), 0)
        gone = np.where(marks, upward - facts.heights[:, foot], 0)
        residual = np.concatenate([gone, below, sunk], 1)
        weight = np.concatenate(
            [grip / HEIGHT**2, (below < 0) / FLOOR**2, (sunk < 0) / SWING**2], 1
        )
        steps: tuple[np.ndarray, ...] = ()
        spots: tuple[np.ndarray, ...] = ()
        heights: tuple[np.ndarray, ...] = ()
        if slopes:
            slope = pose.point_slopes[side]
            flat = slope[:, :, :2].reshape(len(slope), 6, 14)
            spots = (flat,)
            speeds = flat * rate
            steps = (-speeds[:-1], speeds[1:])
            heights = (np.tile(slope[:, :, 2], (1, 3, 1)),)
        source_plan = facts.source_points[:, foot, :, :2].reshape(len(points), 6)
        near = np.repeat(grip, 2, axis=1) / SPOT**2
        yield Rows("spot", plan - source_plan, spots, near, columns)
        yield Rows("contact", speed, steps, np.repeat(both, 2, axis=1), columns)
        yield Rows("height", residual, heights, weight, columns)
        yield from self._tip(pose, side, slopes)

    def _tip(self, pose: Pose, side: str, slopes: bool) -> Iterator[Rows]:
        """Roll and yaw of a foot against the animation; pitch is how it rolls, and free."""
        _, _, turn, _ = np.moveaxis(pose.turns[side], 1, 0)
        odd = turn - np.swapaxes(turn, 1, 2)
        vector = np.stack([odd[:, 2, 1], odd[:, 0, 2], odd[:, 1, 0]], 1) / 2
        _, _, ankle, ball = np.moveaxis(self.facts.body.legs[side].joints, 1, 0)
        ahead = unit((ball - ankle) * [1, 1, 0])
        axes = np.stack([ahead, np.broadcast_to([0, 0, 1.0], ahead.shape)], 1)
        residual = (axes @ vector[..., None])[..., 0]
        slope: tuple[np.ndarray, ...] = ()
        if slopes:
            # The vector of R's odd part changes by (trace R - R) / 2 times the turn in the world.
            exact = (np.trace(turn, axis1=1, axis2=2)[:, None, None] * np.eye(3) - turn) / 2
            slope = (axes @ exact @ pose.foot_slopes[side],)
        weight = np.full(residual.shape, 1 / SOLES**2)
        yield Rows("soles", residual, slope, weight, COLUMNS[side])

    def support(self, pose: Pose) -> Support:
        """The Support of a pose."""
        margin = _MARGIN * self.facts.body.size
        points = np.stack([pose.points[s][..., :2] for s in SIDES], 1) @ _DIRECTIONS.T
        reach = np.where(self.facts.marks[..., None], points + margin, -np.inf).max((1, 2))
        beyond = self._zmp_of(pose)[1:-1] @ _DIRECTIONS.T - reach[1:-1]
        worst = np.r_[0, beyond.argmax(1), 0]
        reach = reach[np.arange(len(reach)), worst]
        return Support(_DIRECTIONS[worst], np.where(np.isfinite(reach), reach, np.nan))

    def _zmp_of(self, pose: Pose) -> np.ndarray:
        """(F, 2) zero-moment point [m]: the animation's, moved as the centre of mass is."""
        facts = self.facts
        moved = (pose.com - facts.com)[:, :2]
        bent = np.zeros_like(moved)
        bent[1:-1] = (moved[2:] - 2 * moved[1:-1] + moved[:-2]) * facts.body.rate**2
        return facts.zmp + moved - facts.stiffness[:, None] * bent

    def _zmp(self, pose: Pose, support: Support, sigma: float) -> Iterator[Rows]:
        """E_COM: the zero-moment point over what carries, with the rhythm of the animation."""
        facts, (direction, reach) = self.facts, support
        beyond = (self._zmp_of(pose) * direction).sum(1) - reach
        outside = np.nan_to_num(beyond, nan=-1.0)[1:-1]
        weight = np.where(outside > 0, facts.load[1:-1] ** 2 / sigma**2, 0)
        weight = weight * np.minimum(1, _OUTSIDE / np.maximum(outside, _OUTSIDE))
        slopes: tuple[np.ndarray, ...] = ()
        if self._has_slopes(pose):
            along = direction[1:-1, None]
            near, here, far = (
                along @ pose.com_slope[first : len(direction) - 2 + first, :2]
                for first in (0, 1, 2)
            )
            bend = (facts.stiffness[1:-1] * facts.body.rate**2)[:, None, None]
            slopes = (-bend * near, (1 + 2 * bend) * here, -bend * far)
        residual = np.maximum(outside, 0)[:, None]
        yield Rows("balance", residual, slopes, weight[:, None], np.arange(UNKNOWNS))

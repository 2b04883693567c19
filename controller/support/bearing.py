# SPDX-License-Identifier: GPL-3.0-or-later
"""A reference on the way that its feet can bear.

Where a captured body would have to be pressed on, its zero-moment point, is for moments far beside
its feet: 5 mm of noise at 4 Hz are 3 m/s^2, which take that point 0.3 m away; and in flight it
accelerates, as if something pressed. No floor does that, so a simulated body strays. Here hips and
steps are moved by the little with which the floor can bear the whole motion.

With the shift d of a centre of mass c at height h, pressed on by w = 1 + z'' / g of its weight, and
the angular momentum L, w times the zero-moment point is

    D = w (c + d) - (h / g) (c'' + d'') + (-L'_y, L'_x) / (m g).

What is sought are d and a shift s of each stance with which D = w q wherever the point would be
outside of the soles, q the nearest place in them, and c'' + d'' = 0 in flight, both small and slow:
one sum of squares over the whole clip. Kajita and others, "Biped Walking Pattern Generation by
using Preview Control of Zero-Moment Point", 2003, solve the same equation for d alone.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..body.character import Character
from ..body.foot import Foot
from ..body.footing import Footing, floors_under, level
from ..body.momentum import GRAVITY, com_dynamics
from ..body.sole import (
    DUAL_EDGE_SHARE,
    EDGE_SHARE,
    Ground,
    carrying,
    edge_share,
    on_edge,
    sole_of,
)
from ..geometry import banded
from ..geometry.skeleton import FEET, TOES
from ..geometry.stance import runs, support_reach
from ..geometry.trajectory import Trajectory, butterworth
from .planting import inside
from .rolling import RolledFeet
from .terrain import Terrain

#: Low-pass [Hz] of what travels: by trial on captured clips; 8 let walks fall.
TRAVEL_CUTOFF = 6.0

# By trial on four captured walks, jumping jacks, a jog, a run and a jump; `researcher.md`, The
# reference, tells what comes of them there and on clips that chose nothing. How far off each may
# be: the zero-moment point [m], whose larger errors count less; acceleration in flight [m/s^2]; the
# shift itself [m], its speed [m/s] and acceleration [m/s^2]; a step [m].
_OUTSIDE, _FAR, _FLIGHT = 0.02, 0.01, 0.3
_PLACE, _SPEED, _ACCELERATION, _STEP = 0.03, 0.1, 3.0, 0.03
#: So much farther off a body may be that is helped from outside. By trial on a captured kick, a
#: dance, a run and a leap with a prototype, which kept the kick and the dance with 4 to 30.
_LENIENCY = 8.0
#: The same of heights, and the most that a body on its feet may be let fall with.
_HEIGHT, _HEIGHT_SPEED, _LETS_FALL = 0.03, 0.2, 0.7 * GRAVITY
#: Of the length and width of where soles can be pressed on: the rest is for what goes wrong.
_LENGTH, _WIDTH = 0.4, 0.4
#: Of its weight, below which a body is not said to press anywhere; of what presses at most.
_LEAST_SHARE, _MOST_SHARE = 0.3, 4.0
_LEAST_HEIGHT = 0.3  # [m] of the centre of mass over the floor
_ROUNDS = 3  # of all of it: hips that move turn legs, which have momentum too
#: Within a round: most steps of the sum of squares, and what ends them [m].
_STEPS, _SETTLED = 8, 2e-4
_SHARPENINGS = 8  # of what a low-pass will take away again
_TOGETHER = 2e-5  # [m] between samples of one stance: it does not slide


def bearable(
    character: Character,
    trajectory: Trajectory,
    contacts: np.ndarray,
    cutoff: float,
    footings: tuple[Footing, Footing] | None = None,
    terrain: Terrain | None = None,
    held: np.ndarray | None = None,
    helped: bool = False,
) -> Trajectory:
    """Trajectory with feet that roll, as `rolling.rolled` has them, and a weight that they bear.

    contacts: (F, 2) stance of left and right. cutoff [Hz]: what the controller will see of it.
    footings, terrain: as `rolled` has them. held: (F,) where something holds the body, which then
    may bear it; None for never. helped: whether help from outside gives what feet lack, so that
    hips and steps need not move as far.
    """
    footings = footings or level(character.ground, len(contacts))
    shift, steps = np.zeros_like(trajectory.root), np.zeros((len(contacts), 2, 2))
    target = RolledFeet(character, trajectory, contacts, footings, terrain).trajectory()
    for _ in range(_ROUNDS):
        burden = _Burden(character, target, contacts, cutoff, footings, held, helped)
        moved, stepped = burden.relieved()
        shift, steps = shift + _sharpened(moved, target.rate, cutoff), steps + stepped
        feet = RolledFeet(character, trajectory, contacts, footings, terrain, steps=steps)
        target = feet.trajectory(shift)
    return target


class _Rows(NamedTuple):
    """Residuals of F samples, linear in the n unknowns of each sample and its two neighbours.

    slopes: (3, F, n) of the sample before, the sample and the one behind. residual: (F, m) of m
    systems that have these slopes. weight: (F,).
    """

    slopes: np.ndarray
    residual: np.ndarray
    weight: np.ndarray


class _Burden:
    """What the feet of a trajectory have to bear, sample by sample."""

    def __init__(
        self,
        character: Character,
        trajectory: Trajectory,
        contacts: np.ndarray,
        cutoff: float,
        footings: tuple[Footing, Footing],
        held: np.ndarray | None = None,
        helped: bool = False,
    ) -> None:
        self._contacts, self._rate = contacts, trajectory.rate
        self._leniency = _LENIENCY if helped else 1.0
        self._held = np.zeros(len(contacts), bool) if held is None else held
        smooth = trajectory.smoothed(cutoff).trajectory
        joints, frames = character.pose(smooth)
        centres = character.body_centres(joints, frames)
        dynamics = com_dynamics(character, centres, frames, self._rate, cutoff)
        borne = contacts | self._held[:, None]
        self._rise = _lifted(dynamics.acceleration[:, 2], borne, self._rate, self._leniency)
        upward = dynamics.acceleration[:, 2] + _bend(self._rise) * self._rate**2
        floors = floors_under(footings, joints[:, FEET], contacts)
        height = np.maximum(dynamics.com[:, 2] + self._rise - floors, _LEAST_HEIGHT)
        #: w, h / g, c'' and D without d.
        self._share = np.clip(1 + upward / GRAVITY, 0, _MOST_SHARE)[:, None]
        self._lever = (height / GRAVITY)[:, None]
        self._acceleration = dynamics.acceleration[:, :2]
        turn = np.stack([-dynamics.momentum_rate[:, 1], dynamics.momentum_rate[:, 0]], 1)
        self._moment = (
            self._share * dynamics.com[:, :2]
            - self._lever * self._acceleration
            + turn / (character.mass * GRAVITY)
        )
        first = {joint.segment: joint.first for joint in character.joints}
        soles = [
            _pressed(
                character.feet[i],
                joints[:, foot],
                frames[:, foot],
                smooth.angles[:, first[toe]],
                footings[i].planes(joints[:, foot]),
                contacts.all(1),
            )
            for i, (foot, toe) in enumerate(zip(FEET, TOES, strict=True))
        ]
        self._soles = np.stack(soles, 1)

    def relieved(self) -> tuple[np.ndarray, np.ndarray]:
        """The shift (F, 3) of the centre of mass [m], and those (F, 2, 2) of both feet in plan,
        each the same throughout a stance."""
        count = len(self._contacts)
        found = np.zeros((count, 3, 2))  # of the body, the left and the right foot
        outside = np.zeros(count, bool)  # where the point ever was
        for _ in range(_STEPS):
            change = _least_squares(self._rows(found, outside))
            found += change
            if np.abs(change).max() < _SETTLED:
                break
        steps = np.zeros((count, 2, 2))
        for foot in range(2):
            for start, stop in runs(self._contacts[:, foot]):
                steps[start:stop, foot] = found[start:stop, 1 + foot].mean(0)
        return np.column_stack([found[:, 0], self._rise]), steps

    def _rows(self, found: np.ndarray, outside: np.ndarray) -> list[_Rows]:
        """All terms, at what has been found (F, 3, 2) so far; adds to where the point is
        outside."""
        shift, bend = found[:, 0], _bend(found[:, 0]) * self._rate**2
        moment = self._moment + self._share * shift - self._lever * bend
        share = np.maximum(self._share, _LEAST_SHARE)
        point = moment / share
        soles = self._soles + found[:, 1:, None]
        place = inside(point, support_reach(soles, self._contacts))
        far = np.linalg.norm(point - place, axis=1)
        stands = self._contacts.any(1) & ~self._held
        # A sample that was outside stays in the sum, where it holds the point: else it would be
        # let go, and taken back, in turn.
        outside |= stands & (far > 0)
        left = _left_share(place, soles.mean(2), self._contacts)[:, None]
        within = _within(len(stands))
        rate, zero = self._rate, np.zeros_like(left)
        lean = self._lever * rate**2
        beside = np.hstack([-lean, zero, zero])
        own = np.hstack([self._share + 2 * lean, -share * left, -share * (1 - left)])
        lenient = self._leniency**2
        weight = np.minimum(1, _FAR / np.maximum(far, _FAR)) / (lenient * _OUTSIDE**2)
        rows = [
            _Rows(
                np.stack([beside, own, beside]), moment - share * place, weight * outside * within
            )
        ]
        flies = within * ~(stands | self._held) / (lenient * _FLIGHT**2)
        rows.append(_bends(self._acceleration + bend, flies, 3, rate))
        rows.append(_bends(bend, within / _ACCELERATION**2, 3, rate))
        rows += _small(shift, _PLACE, _SPEED, 3, rate)
        for foot in (1, 2):
            column = np.eye(3)[foot]
            weight = np.full(len(stands), 1 / _STEP**2)
            if self._contacts[0, foot - 1]:
                weight[0] = 1 / _TOGETHER**2  # the clip begins on its mark
            rows.append(_own(found[:, foot], weight, column))
            together = np.append(self._contacts[1:, foot - 1] & self._contacts[:-1, foot - 1], 0)
            rows.append(_change(found[:, foot], together / _TOGETHER**2, column))
        return rows


def _lifted(upward: np.ndarray, contacts: np.ndarray, rate: float, leniency: float) -> np.ndarray:
    """(F,) how much higher [m] a centre of mass is to go, whose acceleration is (F,), so that it
    falls freely in flight and presses on its feet else, or is that much farther from it."""
    flies, within = ~contacts.any(1), _within(len(upward))
    rise, flight = np.zeros((len(upward), 1, 1)), (leniency * _FLIGHT) ** 2
    for _ in range(_STEPS):
        bend = _bend(rise[:, 0]) * rate**2
        total = upward[:, None] + bend
        sinks = ~flies & (total[:, 0] < -_LETS_FALL)
        rows = [
            _bends(total + GRAVITY, within * flies / flight, 1, rate),
            _bends(total + _LETS_FALL, within * sinks / flight, 1, rate),
            _bends(bend, within / _ACCELERATION**2, 1, rate),
            *_small(rise[:, 0], _HEIGHT, _HEIGHT_SPEED, 1, rate),
        ]
        change = _least_squares(rows)
        rise += change
        if np.abs(change).max() < _SETTLED:
            break
    return rise[:, 0, 0]


def _pressed(
    foot: Foot,
    ankles: np.ndarray,
    frames: np.ndarray,
    bends: np.ndarray,
    planes: np.ndarray,
    dual: np.ndarray,
) -> np.ndarray:
    """(F, 4, 2) corners [m] of where a foot is pressed on, as the balance does, less a margin.

    ankles: (F, 3) [m]; frames: (F, 3, 3); bends: (F,) of its toes [rad]; planes: (F, 3) under it,
    as Footing.planes has them; dual: (F,) whether the other one stands, too.
    """
    corners = []
    columns = frames.swapaxes(1, 2).tolist()
    for ankle, frame, bend, (height, *slopes), both in zip(
        ankles.tolist(), columns, bends.tolist(), planes.tolist(), dual.tolist(), strict=True
    ):
        sole = sole_of(
            foot, ankle, frame, bend, Ground(ankle[0], ankle[1], height, slopes[0], slopes[1])
        )
        heel, share = sole.heel_down, DUAL_EDGE_SHARE if both else EDGE_SHARE
        region = on_edge(carrying(sole, heel, edge_share(share, heel)), sole, sole.tilt)
        corners.append(
            [
                region.place((1 + along * _LENGTH) / 2, (1 + across * _WIDTH) / 2)
                for along in (-1, 1)
                for across in (-1, 1)
            ]
        )
    return np.array(corners)


def _left_share(place: np.ndarray, middles: np.ndarray, contacts: np.ndarray) -> np.ndarray:
    """(F,) share of the left foot in what presses at places (F, 2), by middles (F, 2, 2) of the
    soles."""
    line = middles[:, 0] - middles[:, 1]
    along = ((place - middles[:, 1]) * line).sum(1) / np.maximum((line**2).sum(1), 1e-9)
    return np.where(contacts.all(1), np.clip(along, 0, 1), contacts[:, 0])


def _sharpened(values: np.ndarray, rate: float, cutoff: float) -> np.ndarray:
    """(F, n) values of which a low-pass leaves what was given, or nearly (van Cittert, 1931)."""
    result = values
    for _ in range(_SHARPENINGS):
        result = result + values - butterworth(result, rate, cutoff)[0]
    return result


# --- Sums of squares -----------------------------------------------------------------------------


def _bend(values: np.ndarray) -> np.ndarray:
    """(F, ...) second differences, 0 at the ends."""
    bend = np.zeros_like(values)
    bend[1:-1] = values[2:] - 2 * values[1:-1] + values[:-2]
    return bend


def _within(count: int) -> np.ndarray:
    """(F,) 1 where a sample has neighbours on both sides, else 0."""
    within = np.ones(count)
    within[[0, -1]] = 0
    return within


def _bends(residual: np.ndarray, weight: np.ndarray, unknowns: int, rate: float) -> _Rows:
    """Rows of accelerations of the first unknown."""
    factors = rate**2 * np.array([1.0, -2.0, 1.0])[:, None] * np.eye(unknowns)[0]
    return _Rows(_everywhere(factors, len(residual)), residual, weight)


def _small(
    values: np.ndarray, place: float, speed: float, unknowns: int, rate: float
) -> tuple[_Rows, _Rows]:
    """Rows of the first unknown (F, m), which stays near 0 and slow."""
    first = np.eye(unknowns)[0]
    moves = np.ones(len(values))
    moves[-1] = 0
    return (
        _own(values, np.full(len(values), 1 / place**2), first),
        _change(values, moves / (speed / rate) ** 2, first),
    )


def _own(values: np.ndarray, weight: np.ndarray, column: np.ndarray) -> _Rows:
    """Rows of an unknown (F, m)."""
    factors = np.array([0.0, 1.0, 0.0])[:, None] * column
    return _Rows(_everywhere(factors, len(values)), values, weight)


def _change(values: np.ndarray, weight: np.ndarray, column: np.ndarray) -> _Rows:
    """Rows of how an unknown (F, m) changes to the next sample."""
    factors = np.array([0.0, -1.0, 1.0])[:, None] * column
    return _Rows(
        _everywhere(factors, len(values)), np.diff(values, axis=0, append=values[-1:]), weight
    )


def _everywhere(factors: np.ndarray, count: int) -> np.ndarray:
    return np.broadcast_to(factors[:, None], (3, count, factors.shape[1]))


def _least_squares(rows: Sequence[_Rows]) -> np.ndarray:
    """(F, n, m) change of the unknowns that makes the sum of squares least."""
    _, count, unknowns = rows[0].slopes.shape
    bands = np.zeros((3, count, unknowns, unknowns))
    right = np.zeros((count, unknowns, rows[0].residual.shape[1]))
    for slopes, residual, weight in rows:
        for i, first in enumerate(slopes):
            weighed = weight[:, None] * first
            # From sample t the unknowns of sample t + i - 1.
            of, to = slice(max(0, 1 - i), count - max(0, i - 1)), slice(max(0, i - 1), count)
            to = slice(to.start, to.start + of.stop - of.start)
            right[to] -= weighed[of, :, None] * residual[of, None]
            for j, second in enumerate(slopes[i:], i):
                last = min(of.stop, count - max(0, j - 1))
                part = slice(of.start, last)
                into = slice(to.start, to.start + last - of.start)
                bands[j - i, into] += weighed[part, :, None] * second[part, None]
    return banded.solve(bands, right)

# SPDX-License-Identifier: GPL-3.0-or-later
"""The way that an endless walk takes, and how a body is led along it, or in headings.

A reference that is made for a curve bends where the clip's own speed would have it bend. A body
that walks slower comes there later, and nothing would bring it back. So the reference of a walk
that is led goes straight on, and what it is performed by turns: the controller is shown the body
as if it had not. How fast to turn follows from where the body really is; one that is led in
headings alone turns as these do, wherever it is.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import cos, sin
from typing import NamedTuple

import numpy as np

from ..body.sole import Ground
from ..body.state import State
from ..exceptions import SettingsError
from ..geometry.rotations import arctan2, rotation_about, unit

_SMOOTHING = 0.3  # of a cycle's length: over so much of a curve it is rounded; by trial

# By trial on captured walks in bends of 1.5 to 3 m, and on straight ways.
_AHEAD = 0.25  # [s] by which turning begins before a bend
_HOME, _MOST_HOME = 0.5, 0.4  # [rad/m] towards a way that is beside the body; at most [rad]
_EAGERNESS = 4.0  # [1/s] with which an error of the heading is turned off
_FASTEST = 0.95  # [rad/s] of turning
_SLEW = 4.4  # [rad/s^2] of its rate
_STRIDE = 0.05  # [m] that a place on the way is moved on by, at most, in one update
#: A foot lands as the body will head then, and turned out of the bend by what it turns in so much
#: of a cycle; at most [rad]. Feet that point into the bend let it fall out of it.
_OUTWARD, _MOST_LEAD = 0.2, 0.5


class Way:
    """A curve on the ground by its length, rounded: it goes on straight beyond its ends, or round
    again if it is closed.

    length [m]; stride [m] and speed [m/s]: of a cycle of the walk, and of the clip.
    """

    def __init__(
        self,
        curve: Sequence[Sequence[float]],
        closed: bool,
        stride: float,
        speed: float,
        name: str,
    ) -> None:
        self.stride, self.speed = stride, speed
        points = np.asarray(curve, float)[:, :2]
        if closed:
            points = np.concatenate([points, points[:1]])
        apart = np.linalg.norm(np.diff(points, axis=0), axis=1)
        points = points[np.concatenate([[True], apart > 1e-6])]
        at = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
        self.length = float(at[-1])
        if len(points) < 2 or self.length < stride / 2:
            raise SettingsError(
                f"The curve '{name}' is {self.length:.2g} m long, less than a step: draw a longer "
                "one."
            )
        self._closed = closed
        step = min(0.01, self.length / 20)  # [m]: far finer than it is rounded
        rounding = _SMOOTHING * stride
        beyond = 4 * rounding
        grid = np.arange(-beyond, self.length + beyond, step)
        raw = self._raw(points, at, grid)
        spread = np.arange(-3 * rounding, 3 * rounding + step, step)
        kernel = np.exp(-0.5 * (spread / rounding) ** 2)
        kernel /= kernel.sum()
        half = len(kernel) // 2
        padded = np.stack([np.pad(c, half, mode="reflect", reflect_type="odd") for c in raw.T], 1)
        smooth = np.stack([np.convolve(c, kernel, "valid") for c in padded.T], 1)[: len(grid)]
        # By its own length again: rounding cuts corners.
        steps = np.linalg.norm(np.diff(smooth, axis=0), axis=1)
        self._at = np.concatenate([[0], np.cumsum(steps)])
        self._at -= np.interp(0.0, grid, self._at)
        self.length = float(np.interp(self.length, grid, self._at))
        self._points = smooth
        slope = np.gradient(smooth, axis=0)
        self._yaw = np.unwrap(arctan2(slope[:, 1], slope[:, 0]))

    def _raw(self, points: np.ndarray, at: np.ndarray, grid: np.ndarray) -> np.ndarray:
        if self._closed:
            inside = np.mod(grid, self.length)
            return np.stack([np.interp(inside, at, c) for c in points.T], 1)
        values = np.stack([np.interp(grid, at, c) for c in points.T], 1)
        first, last = unit(points[1] - points[0]), unit(points[-1] - points[-2])
        values += np.minimum(grid, 0)[:, None] * first
        return values + np.maximum(grid - self.length, 0)[:, None] * last

    def sharpest(self) -> tuple[float, float]:
        """Where on it it is bent most [m], and the radius there [m]."""
        inner = (self._at >= 0) & (self._at <= self.length)
        bend = np.abs(np.gradient(self._yaw, self._at))
        bend[~inner] = 0
        at = int(np.argmax(bend))
        return float(self._at[at]), 1 / max(float(bend[at]), 1e-9)

    def place(self, distance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Points (N, 3) [m] and directions (N,) [rad] at distances along it."""
        rounds = np.zeros(len(distance))
        if self._closed:
            rounds = np.floor(distance / self.length)
        along = distance - rounds * self.length
        points = np.stack([np.interp(along, self._at, c) for c in self._points.T], 1)
        yaw = np.interp(along, self._at, self._yaw)
        if self._closed:
            whole = np.interp([0.0, self.length], self._at, self._yaw)
            yaw = yaw + rounds * (2 * np.pi * np.round((whole[1] - whole[0]) / (2 * np.pi)))
        else:
            beyond = along - np.clip(along, self._at[0], self._at[-1])
            points += beyond[:, None] * np.stack([np.cos(yaw), np.sin(yaw)], 1)
        return np.concatenate([points, np.zeros((len(points), 1))], 1), yaw

    def course(self) -> "Course":
        """What leads a body along it."""
        return _AlongWay(self)


class Headings(NamedTuple):
    """Headings to be led in, wherever the body is: yaw (K,) [rad] at steps, against that in which
    the reference goes straight on; step [s]; period [s] of a cycle of the walk."""

    yaw: np.ndarray
    step: float
    period: float

    def course(self) -> "Course":
        """What leads a body so."""
        return _InHeadings(self)


class CourseMemory(NamedTuple):
    """What a Course knows: as there."""

    turn: float
    rate: float
    shift: np.ndarray
    at: float
    headings: tuple[float | None, float | None]


class Course(ABC):
    """Where a body is on its way, and how it turns.

    turn: [rad] from the heading of the reference, which goes straight on, to that of the body;
    rate: of it [rad/s]. The controller sees places x of the world at R_z(-turn) x + shift.
    """

    def __init__(self, period: float) -> None:
        """period: of a cycle of the walk [s]."""
        self._period = period
        self.recall(CourseMemory(0.0, 0.0, np.zeros(2), 0.0, (None, None)))

    @abstractmethod
    def rate_at(self, step: int, com: np.ndarray, seconds: float, turns: bool) -> float:
        """How fast to turn [rad/s] for a while [s] from a step on, of which the centre of mass
        (3,) [m] is there in the world."""

    def memory(self) -> CourseMemory:
        """What it knows, for `recall`."""
        left, right = self._headings
        return CourseMemory(self.turn, self.rate, self._shift.copy(), self._at, (left, right))

    def recall(self, memory: CourseMemory) -> None:
        """Go back to what it knew."""
        self.turn, self.rate, shift, self._at, headings = memory
        self._shift = shift.copy()
        self._headings = list(headings)  # with which feet landed [rad], in the world
        self.matrix = rotation_about(2, self.turn)

    def show(self, state: State) -> None:
        """Change the body's state in the world to what the controller sees."""
        state.frames = state.frames @ self.matrix
        state.frame = state.frames[0].T
        state.root = state.root @ self.matrix
        state.root[:2] += self._shift
        state.positions = state.positions @ self.matrix
        state.positions[:, :2] += self._shift

    def outside(self, points: np.ndarray) -> np.ndarray:
        """Where points (n, 3) [m] that the controller sees are in the world."""
        places = points.copy()
        places[:, :2] -= self._shift
        return self.turned_out(places)

    def turned_out(self, vectors: np.ndarray) -> np.ndarray:
        """What vectors (n, 3) that the controller sees are in the world."""
        return vectors @ self.matrix.T

    def inside(self, ground: Ground) -> Ground:
        """How the controller sees a ground of the world."""
        x, y = (np.array([ground.x, ground.y]) @ self.matrix[:2, :2] + self._shift).tolist()
        slopes = np.array([ground.slope_x, ground.slope_y]) @ self.matrix[:2, :2]
        return Ground(x, y, ground.height, *slopes.tolist())

    def steer(
        self, step: int, com: np.ndarray, root: np.ndarray, seconds: float, turns: bool = True
    ) -> None:
        """Turn for a while [s] from a step on, about the root; com, root: (3,) [m] as the
        controller sees them. turns: whether it may, as who stops, stands or goes off may not."""
        com, root = self.outside(np.stack([com, root]))
        self.rate = self.rate_at(step, com, seconds, turns)
        seen = root @ self.matrix
        self.turn += self.rate * seconds
        self.matrix = rotation_about(2, self.turn)
        self._shift = self._shift + (seen - root @ self.matrix)[:2]

    def stand(self, foot: int, heading: float) -> float:
        """By how much [rad] a foot that stands is to turn, from the heading in which it is seen, to
        have that with which it landed."""
        landed, now = self._headings[foot], heading + self.turn
        if landed is None:
            landed = self._headings[foot] = now
        return landed - now

    def lift(self, foot: int) -> None:
        """A foot does not stand."""
        self._headings[foot] = None

    def lead(self, left: float) -> float:
        """How far [rad] a foot in the air turns ahead of the body that lands in so many seconds."""
        lead = self.rate * (left - _OUTWARD * self._period)
        return min(max(lead, -_MOST_LEAD), _MOST_LEAD)


class _AlongWay(Course):
    """Of a body that comes back to its way."""

    def __init__(self, way: Way) -> None:
        super().__init__(way.stride / way.speed)
        self._way = way
        self._first = float(way.place(np.zeros(1))[1][0])

    def rate_at(self, step: int, com: np.ndarray, seconds: float, turns: bool) -> float:
        """As Course has it."""
        points, yaws = self._way.place(np.array([0.0, _AHEAD * self._way.speed]) + self._at)
        (x, y), yaw = (com - points[0])[:2].tolist(), float(yaws[0])
        self._at += min(max(x * cos(yaw) + y * sin(yaw), 0.0), _STRIDE)
        home = _HOME * (y * cos(yaw) - x * sin(yaw))
        heading = float(yaws[1]) - self._first - min(max(home, -_MOST_HOME), _MOST_HOME)
        most = _FASTEST if turns else 0.0
        rate = min(max(_EAGERNESS * (heading - self.turn), -most), most)
        return self.rate + min(max(rate - self.rate, -_SLEW * seconds), _SLEW * seconds)


class _InHeadings(Course):
    """Of a body that is to head somewhere, and comes back to nothing."""

    def __init__(self, headings: Headings) -> None:
        super().__init__(headings.period)
        self._told = headings

    def rate_at(self, step: int, com: np.ndarray, seconds: float, turns: bool) -> float:
        """As Course has it."""
        yaw, length, _ = self._told
        then = min(step + round(seconds / length), len(yaw) - 1)
        return (float(yaw[then]) - self.turn) / seconds

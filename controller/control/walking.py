# SPDX-License-Identifier: GPL-3.0-or-later
"""Walks that go on for as long as asked: the next step lands where the body is going.

What a walk's feet can press on the floor keeps it upright only while small errors last. The rest is
done by where the next foot lands. The capture point c + v / omega, omega = sqrt(g / h), runs away
from the stance foot as exp(omega t); a foot that lands as far from where the reference would put it
as the capture point then is from the reference's own leaves no error behind (Englsberger, Ott,
Albu-Schaeffer, "Three-dimensional Bipedal Walking Control Using Divergent Component of Motion",
2013). So feet land with an offset each from the reference's, and so does the goal of the centre of
mass, which goes over smoothly from one to the next as they take the weight.
"""

from collections.abc import Sequence
from math import exp, hypot, sqrt
from typing import NamedTuple

import numpy as np

from ..body.character import Character
from ..body.momentum import GRAVITY
from ..body.sole import Sole
from ..geometry.rotations import (
    exponential,
    matrix_from_quaternion,
    quaternion_from_matrix,
    rotation_about,
    rotation_vector,
)
from ..geometry.stance import LEFT, RIGHT, SIMULATED_CLEARANCE, runs
from ..reference.reference import COM, HEIGHT, SLOPES, VELOCITY, Reference
from ..reference.way import Course
from .legs import AXES, LegPlan
from .reference_legs import LegPose, ReferenceLegs

# By trial on endless walks under pushes and on captured ones, where nothing else is said.

#: Share of the capture point's error by which the next foot lands elsewhere; ahead and aside in an
#: endless walk. By theory 1 leaves no error.
_PLACED, _AHEAD_ENDLESS, _ASIDE_ENDLESS = 0.7, 0.8, 1.0
#: One that is directed, and slower than this [m/s], steps on the spot: its feet land farther aside,
#: and its legs reach for nothing; of eight runs of knee raises under motor noise all fell else.
_ON_THE_SPOT, _ASIDE_ON_THE_SPOT = 0.2, 1.4
#: How much of a stance foot's own offset the next foot makes up for, and at most [m]. In the study
#: that chose this and balance._DRIFT_GAIN 12 of 12 runs of four walks were kept with both.
_HOME, _MOST_HOME = 0.2, 0.1
_GROWTH = 0.5  # of omega: by which the error is taken to grow until then
_PLANNING = 0.85  # share of a swing in which the goal still follows the capture point
_ARRIVED = 0.95  # share of a swing after which the foot is above its goal
_TURNED = 0.5  # share of it after which a foot has turned as far as it does
#: [m] from where the reference puts it, relative to the stance foot; and in an endless walk: of 48
#: bodies that walked so at 0.6 to 1.0 m/s and were pushed aside by 75 N for 0.3 s, 22 fell with
#: 0.35, 15 with 0.5 and 0.7. A leap that is to come down where its capture does gains nothing.
_FARTHEST, _FARTHEST_ENDLESS = 0.35, 0.6
_TRUST = 0.15  # of what a standing foot's place differs from where it was thought to be
_AIMING = 0.3  # share of a swing until the leg aims from where the pelvis really is
#: Who leans over a foot before the other steps off does so by where that foot is, in this share
#: beside the 0.5 of both: legs hold where the reference has the body, so it is more than that.
_OVER = 0.8
_TOGETHER = 0.1  # [s] between two landings that are one
_FASTEST = 8.0  # [rad/s] that legs are turned by
#: A body is drawn home where a foot lands sooner than this [s], and fully where it does much [s]
#: sooner: over feet that stay it would only lean.
_SOON, _ALMOST = 0.7, 0.2


class FeetMemory(NamedTuple):
    """What Walking knows of the feet: as there."""

    offsets: np.ndarray
    origins: np.ndarray
    goals: np.ndarray
    landed: list[bool]


class Walking:
    """Where the feet of a walk are and go to, relative to its reference.

    It takes the place of stepping.Stepping. offsets: (2, 2) of left and right foot [m].
    """

    #: No step is beside the reference's own.
    swing: int | None = None
    active = True
    drop = 0.0

    def __init__(
        self, character: Character, reference: Reference, course: Course | None = None
    ) -> None:
        """course: what leads the body along its way, None where nothing does."""
        self._course = course
        self.steps: list[tuple[float, int]] = []
        self._reference = reference
        self._legs = ReferenceLegs(character, reference)
        ahead = reference.pelvis[:, :2, 0]
        self._ahead = ahead / np.linalg.norm(ahead, axis=1, keepdims=True)
        # Of the uncorrected reference: a correction moves goals.
        heights = reference.smooth.centres[..., 2] @ character.masses / character.mass
        ground = float(character.ground)
        self._phase, self._left = _swings(reference)
        self._soon = _soon(self._phase, reference.rate)
        self._reaching = np.clip(self._phase / _AIMING, 0, 1)
        self._placed_shares, self._farthest = (_PLACED, _PLACED), _FARTHEST
        if reference.endless:
            self._farthest = _FARTHEST_ENDLESS
            self._placed_shares = _AHEAD_ENDLESS, _ASIDE_ENDLESS
            if reference.directed and self._speed() < _ON_THE_SPOT:
                self._placed_shares = _AHEAD_ENDLESS, _ASIDE_ON_THE_SPOT
                self._reaching[:] = 0.0
        total = reference.load.sum(1, keepdims=True)
        self._weight = np.where(total > 1e-3, reference.load / np.maximum(total, 1e-3), 0.5)
        if reference.leaning is not None:
            self._weight = _leaning(self._weight, reference.leaning)
        self._floors = reference.floors
        floors = (self._weight * (self._floors[..., HEIGHT] - ground)).sum(1)
        heights = heights - floors[:: reference.steps_per_sample][: len(heights)]
        self._omega = sqrt(GRAVITY / (float(np.median(heights)) - ground))
        self._step = 0
        self.forget()

    def _speed(self) -> float:
        """How fast the reference goes anywhere, seen from itself, where it walks [m/s]."""
        turns = self._reference.turns
        goes = slice(None) if turns is None or not turns.any() else turns
        x, y = self._reference.goals[goes, VELOCITY, :2].T
        ahead_x, ahead_y = self._ahead[goes].T
        ahead, aside = x * ahead_x + y * ahead_y, y * ahead_x - x * ahead_y
        return hypot(float(ahead.mean()), float(aside.mean()))

    def soon(self, step: int) -> float:
        """From 1 where a foot lands soon to 0: see _SOON."""
        return float(self._soon[step])

    def reaching(self, step: int) -> np.ndarray:
        """(2,) from 0 to 1: how much each leg is on its way to where its foot lands."""
        return self._reaching[step]

    def forget(self) -> None:
        """The feet are where the reference has them."""
        self.offsets = np.zeros((2, 2))
        self._origins, self._goals = np.zeros((2, 2)), np.zeros((2, 2))
        self._landed = [False, False]

    def memory(self) -> FeetMemory:
        """What it knows of the feet, for `recall`."""
        own, origins, goals = self.offsets.copy(), self._origins.copy(), self._goals.copy()
        return FeetMemory(own, origins, goals, list(self._landed))

    def recall(self, memory: FeetMemory) -> None:
        """Go back to what it knew."""
        self.offsets, self._origins = memory.offsets.copy(), memory.origins.copy()
        self._goals, self._landed = memory.goals.copy(), list(memory.landed)

    def update(
        self,
        step: int,
        com: Sequence[float],
        velocity: Sequence[float],
        goals: np.ndarray,
        base: tuple[float, float],
        soles: Sequence[Sole],
        standing: Sequence[int],
        may_begin: bool = True,
    ) -> None:
        """Learn where the feet stand, and aim those in the air. Arguments as Stepping has them."""
        self._step = step
        ankles = self._legs.pose(step / self._reference.rate).ankles
        swinging = self._phase[step] >= 0
        for foot in range(2):
            if not swinging[foot]:
                if soles[foot].clearance < SIMULATED_CLEARANCE:
                    place = np.array((soles[foot].x, soles[foot].y))
                    self._stands(foot, place - ankles[foot, :2])
            elif self._landed[foot]:
                self._landed[foot] = False
                self._origins[foot] = self._goals[foot] = self.offsets[foot]
        x, y = self._weight[step] @ self.offsets
        error = (
            com[0] - goals[COM][0] - x + (velocity[0] - goals[VELOCITY][0]) / self._omega,
            com[1] - goals[COM][1] - y + (velocity[1] - goals[VELOCITY][1]) / self._omega,
        )
        for foot in range(2):
            if swinging[foot]:
                self._aim(foot, step, error)

    def _stands(self, foot: int, offset: np.ndarray) -> None:
        """A foot stands with this offset."""
        share = _TRUST if self._landed[foot] else 1.0
        self.offsets[foot] += share * (offset - self.offsets[foot])
        self._landed[foot] = True

    def _aim(self, foot: int, step: int, error: tuple[float, float]) -> None:
        """Let a foot in the air land where the capture point's error (x, y) [m] asks for."""
        phase = self._phase[step, foot]
        if phase < _PLANNING:
            grow = exp(_GROWTH * self._omega * self._left[step, foot])
            fx, fy = self._ahead[step]
            along, across = self._placed_shares
            ahead = along * grow * (error[0] * fx + error[1] * fy)
            aside = across * grow * (error[1] * fx - error[0] * fy)
            shrink = min(1.0, self._farthest / max(hypot(ahead, aside), 1e-9))
            ahead, aside = shrink * ahead, shrink * aside
            move = np.array([ahead * fx - aside * fy, ahead * fy + aside * fx])
            stays = self.offsets[1 - foot]
            if self._reference.endless and self._land_together(step):
                stays = self._origins.mean(0)
            self._goals[foot] = stays + move + self._way_home(foot)
        self.offsets[foot] = self._on_the_way(foot, phase)

    def _land_together(self, step: int) -> bool:
        """Whether both feet are in the air, and come down at nearly the same time."""
        first, second = self._left[step]
        return bool((self._phase[step] >= 0).all()) and abs(first - second) < _TOGETHER

    def _way_home(self, foot: int) -> np.ndarray:
        """(2,) [m] by which a foot lands nearer to its place in the reference."""
        if self._reference.directed:
            return np.zeros(2)
        home = -_HOME * self.offsets[1 - foot]
        return home * min(1.0, _MOST_HOME / max(hypot(*home), 1e-9))

    def _on_the_way(self, foot: int, phase: float) -> np.ndarray:
        """Offset (2,) of a foot in the air [m]."""
        share = _eased(phase / _ARRIVED)
        return self._origins[foot] + share * (self._goals[foot] - self._origins[foot])

    def base(self, step: int, soles: Sequence[Sole]) -> tuple[float, float]:
        """Where the reference's base of support is (x, y), moved along with the feet."""
        x, y = (self._reference.base[step] + self._weight[step] @ self.offsets).tolist()
        return x, y

    def plan(
        self,
        time: float,
        root: np.ndarray,
        velocity: np.ndarray,
        frame: np.ndarray,
        interval: float,
    ) -> LegPlan:
        """As Stepping has it; without accelerations."""
        now = self._turn(time, root, frame, 0.0)
        soon = self._turn(time + interval, root + interval * velocity, frame, interval)
        speed = np.clip((soon - now) / interval, -_FASTEST, _FASTEST)
        return LegPlan(now, speed, np.zeros(2 * AXES))

    def _turn(self, time: float, root: np.ndarray, frame: np.ndarray, later: float) -> np.ndarray:
        """(14,) what the legs' angles differ by at a time, `later` [s] than the last update. A leg
        that stands is left to the balance; one that swings aims from where the pelvis is."""
        result = np.zeros((2, AXES))
        pose = self._legs.pose(time)
        for foot in range(2):
            phase = self._phase[self._step, foot]
            if phase < 0:
                continue
            left = self._left[self._step, foot]
            phase = min(1.0, phase + (1 - phase) * later / left)
            ankle = pose.ankles[foot].copy()
            offset = self._on_the_way(foot, phase)
            ankle[:2] += offset
            ankle[2] += self._floors[self._step, foot, SLOPES] @ offset
            placed = self._placed(pose, root, frame, _eased(phase / _AIMING, 2))
            aimed = pose if self._course is None else _led(pose, self._course.lead(left), phase)
            result[foot] = self._legs.angles(foot, *placed, ankle, aimed) - pose.own[foot]
        return result.ravel()

    def _placed(
        self, pose: LegPose, root: np.ndarray, frame: np.ndarray, share: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pelvis (3,) and its frame: the reference's above the feet, or by a share the real one."""
        if share == 1:
            return root, frame
        pelvis = pose.pelvis.copy()
        weight = self._weight[self._step]
        pelvis[:2] += weight @ self.offsets
        pelvis[2] += weight @ (self._floors[self._step, :, SLOPES] * self.offsets).sum(1)
        turn = rotation_vector(quaternion_from_matrix(frame @ pose.frame.T))
        turned = matrix_from_quaternion(exponential(share * turn)) @ pose.frame
        return pelvis + share * (root - pelvis), turned


def _led(pose: LegPose, lead: float, phase: float) -> LegPose:
    """The reference, its knees and feet turned by `lead` [rad] in the course of a swing."""
    turn = rotation_about(2, lead * _eased(phase / _TURNED))
    return pose._replace(left=pose.left @ turn.T, soles=turn @ pose.soles)


def _eased(x: float, order: int = 3) -> float:
    """0 to 1 without a start or a stop, for x from 0 to 1; order 3 also without a jerk."""
    x = min(max(x, 0.0), 1.0)
    return x**3 * (10 - 15 * x + 6 * x * x) if order == 3 else x * x * (3 - 2 * x)


def _soon(phases: np.ndarray, rate: float) -> np.ndarray:
    """(K,) `Walking.soon` of all steps, from phases (K, 2) of swings."""
    stands, steps = phases < 0, np.arange(len(phases))
    landings = 1 + np.flatnonzero((stands[1:] & ~stands[:-1]).any(1))
    later = np.append(landings, 2 * len(phases) + rate)[np.searchsorted(landings, steps)]
    return np.clip((_SOON - (later - steps) / rate) / _ALMOST, 0, 1)


def _leaning(weight: np.ndarray, leaning: np.ndarray) -> np.ndarray:
    """Weights (K, 2) of both feet, of a body that leans over a foot by so much, (K,) to the left,
    before the other steps off: where that foot is it leans to, and not to where both are."""
    left, over = weight[:, 0], 0.5 + _OVER * leaning
    left = np.where(leaning > 0, np.maximum(left, over), left)
    left = np.where(leaning < 0, np.minimum(left, over), left)
    return np.stack([left, 1 - left], 1)


def _swings(reference: Reference) -> tuple[np.ndarray, np.ndarray]:
    """(K, 2) how far each foot is through its swing, from 0 to 1, -1 while it stands; and the time
    that is left of it [s]."""
    count, steps = len(reference.angles), reference.steps_per_sample
    phase, left = np.full((count, 2), -1.0), np.zeros((count, 2))
    for foot, bit in enumerate((LEFT, RIGHT)):
        for start, stop in runs((reference.stance & bit) == 0):
            start, stop = start * steps, stop * steps
            until = stop - np.arange(start, min(stop, count))
            phase[start:stop, foot] = 1 - (until - 0.5) / (stop - start)
            left[start:stop, foot] = until / reference.rate
    return phase, left

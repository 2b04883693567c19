# SPDX-License-Identifier: GPL-3.0-or-later
"""Recovery steps: where feet in place cannot save the balance, one is set elsewhere.

The capture point c + v / omega, omega = sqrt(g / h), is where the body, as an inverted pendulum,
would come to rest (Pratt, Carff, Drakunov, Goswami, "Capture Point: A Step toward Humanoid Push
Recovery", 2006). Outside of the soles no centre of pressure brings it back: it runs away from the
nearest point p of the soles, as (xi - p) exp(omega t). So a foot is lifted and put down where the
capture point will be by then.

Afterwards the feet stand elsewhere than in the reference, by an offset each, for the rest of the
clip. The legs are turned by the difference between two solutions of their inverse kinematics, with
and without the offsets: a step of no length changes nothing.
"""

from collections.abc import Sequence
from math import exp, hypot, sqrt
from typing import NamedTuple

import numpy as np

from ..body.character import Character
from ..body.momentum import GRAVITY
from ..body.sole import Region, Sole
from ..geometry.stance import DIRECTIONS, DUAL, support_reach
from ..reference.reference import COM, VELOCITY, Reference
from .legs import AXES, LegPlan
from .reference_legs import SHORTEST, LegPose, ReferenceLegs

# By trial on pushed characters that stand, where nothing else is said.

#: A swinging leg has angular momentum of its own: this share of its weight keeps the rest.
MOMENTUM_SHARE = 0.5

_UNUSUAL = 0.08  # [m] that the capture point must be off the reference's own before a step
_DURATION = 0.25  # [s] of a swing
_PLANNING = 0.7  # share of it in which the goal still follows the capture point
_LIFT = 0.07  # [m]
_DESCENT = 0.4  # [m/s] of a foot that should have landed
_BEYOND = 0.03  # [m] that the ankle lands beyond the capture point
_LONGEST = 0.75  # [m] from ankle to ankle
_APART = 0.13  # [m] from ankle to ankle sideways, at least: legs do not cross
_LATE = 0.25  # [s] after which a swing is over, landed or not
_LANDED = 0.012  # [m] above the floor
_REST = 0.04  # [s] on both feet between two steps, at least
_MISSED_COST = 3.0  # of a metre that the goal is too near, against one that the foot must travel
_STRAIGHT = 0.995  # of a leg's length, as far as a leg that stands elsewhere is stretched


class StepMemory(NamedTuple):
    """What Stepping knows of the feet: as there, but `taken`, how many steps there were."""

    swing: int | None
    drop: float
    away: bool
    offsets: np.ndarray
    started: float
    landed: float
    origin: np.ndarray
    goal: tuple[float, float]
    taken: int


class Stepping:
    """The step in progress, and where earlier ones have put the feet.

    swing: 0 or 1 for the left or right foot in the air, None if there is none. steps: (time [s],
    foot) of all steps so far. drop: how much lower [m] the pelvis must be for the legs to reach.
    """

    def __init__(self, character: Character, reference: Reference) -> None:
        self.swing: int | None = None
        self.steps: list[tuple[float, int]] = []
        self.drop = 0.0
        # A reference that will lift a foot by itself is left to it.
        self._ahead = round(_DURATION * reference.rate)
        self._away = False  # a foot has stepped somewhere else
        self._offsets = np.zeros((2, 2))  # of the feet from the reference [m]
        self._started = self._landed = -1.0  # [s]
        #: Where the swinging ankle left (offset) and lands [m].
        self._origin, self._goal = np.zeros(2), (0.0, 0.0)
        self._reference = reference
        self._ground = float(character.ground)
        foot = character.feet[0]
        self._sole = (-foot.heel, foot.toe, -foot.half_width, foot.half_width)
        self._legs = ReferenceLegs(character, reference)

    @property
    def active(self) -> bool:
        """Whether the feet are elsewhere than the reference has them."""
        return self._away

    def forget(self) -> None:
        """The feet are where the reference has them."""
        self._away, self.swing, self.drop = False, None, 0.0
        self._offsets = np.zeros((2, 2))

    def soon(self, _step: int) -> float:
        """As Walking has it: no step is the reference's."""
        return 0.0

    def reaching(self, _step: int) -> np.ndarray:
        """As Walking has it."""
        return np.zeros(2)

    def memory(self) -> StepMemory:
        """What it knows of the feet, for `recall`."""
        return StepMemory(
            self.swing,
            self.drop,
            self._away,
            self._offsets.copy(),
            self._started,
            self._landed,
            self._origin,
            self._goal,
            len(self.steps),
        )

    def recall(self, memory: StepMemory) -> None:
        """Go back to what it knew."""
        self.swing, self.drop, self._away = memory.swing, memory.drop, memory.away
        self._offsets = memory.offsets.copy()
        self._started, self._landed = memory.started, memory.landed
        self._origin, self._goal = memory.origin, memory.goal
        del self.steps[memory.taken :]

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
        """Begin a step (if it may), follow it, end it. Once for each balance.

        com, velocity: of the simulation, (3,) each. goals (3, 3), base (2,): of the reference and
        of the simulation, as the balance has them; soles, standing: as in Controller.
        """
        time = step / self._reference.rate
        height = max(com[2] - sum(sole.floor for sole in soles) / 2, 0.1)
        omega = sqrt(GRAVITY / height)
        point = com[0] + velocity[0] / omega, com[1] + velocity[1] / omega
        if self.swing is not None:
            self._follow(self.swing, time, point, omega, soles)
        elif (
            may_begin
            and (self._reference.support[step : step + self._ahead] == DUAL).all()
            and sum(standing)
            and time - self._landed >= _REST
            and self._is_outside(point, soles, standing)
        ):
            own = goals[COM][:2] + goals[VELOCITY][:2] / omega - self._reference.base[step]
            if hypot(point[0] - base[0] - own[0], point[1] - base[1] - own[1]) > _UNUSUAL:
                self._begin(time, point, omega, soles)

    def base(self, step: int, soles: Sequence[Sole]) -> tuple[float, float] | None:
        """Base of support (x, y) while a foot swings: between the stance ankle and where the other
        will land; None while none does."""
        if self.swing is None:
            return None
        standing = soles[1 - self.swing]
        return (standing.x + self._goal[0]) / 2, (standing.y + self._goal[1]) / 2

    def plan(
        self,
        time: float,
        root: np.ndarray,
        velocity: np.ndarray,
        frame: np.ndarray,
        interval: float,
    ) -> LegPlan:
        """root (3,): pelvis joint now, velocity (3,) and frame (3, 3) of it; interval [s] over
        which speeds and accelerations are taken."""
        first, second, third = (
            self._turn(time + i * interval, root + i * interval * velocity, frame) for i in range(3)
        )
        speed = (second - first) / interval
        return LegPlan(first, speed, (third - 2 * second + first) / interval**2)

    def _is_outside(
        self, point: tuple[float, float], soles: Sequence[Sole], standing: Sequence[int]
    ) -> bool:
        """Whether a point is outside of the soles that stand."""
        back, front, right, left = self._sole
        corners = [
            [
                (x + along * fx - across * fy, y + along * fy + across * fx)
                for along in (back, front)
                for across in (right, left)
            ]
            for x, y, fx, fy, *_ in soles
        ]
        reach = support_reach(np.array([corners]), np.array([standing]))[0]
        return bool((DIRECTIONS @ point > reach).any())

    def _begin(
        self, time: float, point: tuple[float, float], omega: float, soles: Sequence[Sole]
    ) -> None:
        """Choose the foot that has the less to do, and lift it."""

        def cost(foot: int) -> float:
            goal, missed = self._landing(foot, point, omega, _DURATION, soles)
            return hypot(goal[0] - soles[foot].x, goal[1] - soles[foot].y) + _MISSED_COST * missed

        foot = min(range(2), key=cost)
        ankles = self._legs.pose(time).ankles
        self._offsets = np.array([(sole.x, sole.y) for sole in soles]) - ankles[:, :2]
        self._origin = self._offsets[foot].copy()
        self._goal, _ = self._landing(foot, point, omega, _DURATION, soles)
        self.swing, self._started, self._away = foot, time, True
        self.steps.append((time, foot))

    def _follow(
        self,
        foot: int,
        time: float,
        point: tuple[float, float],
        omega: float,
        soles: Sequence[Sole],
    ) -> None:
        """Let the goal follow the capture point; notice the landing."""
        passed = time - self._started
        if passed < _PLANNING * _DURATION:
            self._goal, _ = self._landing(foot, point, omega, _DURATION - passed, soles)
        low = soles[foot].clearance < _LANDED
        if (low and passed > _PLANNING * _DURATION) or passed > _DURATION + _LATE:
            ankle = self._legs.pose(time).ankles[foot]
            self._offsets[foot] = soles[foot].x - ankle[0], soles[foot].y - ankle[1]
            self.swing, self._landed = None, time

    def _landing(
        self,
        foot: int,
        point: tuple[float, float],
        omega: float,
        remaining: float,
        soles: Sequence[Sole],
    ) -> tuple[tuple[float, float], float]:
        """Where the ankle of a foot should land (x, y), and by how much [m] that misses what the
        capture point asks for."""
        stance_x, stance_y, fx, fy, *_ = soles[1 - foot]
        px, py = Region(stance_x, stance_y, fx, fy, *self._sole).nearest(*point)
        dx, dy = point[0] - px, point[1] - py
        far = hypot(dx, dy)
        grow = exp(omega * remaining) + _BEYOND / max(far, 1e-6)
        wanted_x, wanted_y = px + dx * grow, py + dy * grow
        # In the stance foot's frame: ahead of it, and outwards to the swinging foot's side.
        outwards = 1.0 if foot == 0 else -1.0
        x, y = wanted_x - stance_x, wanted_y - stance_y
        ahead = x * fx + y * fy
        aside = max(outwards * (y * fx - x * fy), _APART)
        shrink = min(1.0, _LONGEST / hypot(ahead, aside))
        ahead, aside = shrink * ahead, outwards * shrink * aside
        x = stance_x + ahead * fx - aside * fy
        y = stance_y + ahead * fy + aside * fx
        return (x, y), hypot(x - wanted_x, y - wanted_y)

    # --- What the legs do

    def _turn(self, time: float, root: np.ndarray, frame: np.ndarray) -> np.ndarray:
        """(14,) what the legs' angles differ by at a time. The leg that stands brings the pelvis
        over both feet; the one that swings aims from where the pelvis is."""
        pose = self._legs.pose(time)
        own, pelvis = pose.ankles, pose.pelvis.copy()
        ankles = own.copy()
        ankles[:, :2] += self._offsets
        if self.swing is not None:
            ankles[self.swing] = self._on_the_way(time, own[self.swing])
        pelvis[:2] += (ankles - own)[:, :2].mean(0)
        self.drop = self._needed_drop(pelvis, ankles, pose)
        pelvis[2] -= self.drop
        result = np.empty((2, AXES))
        for i in range(2):
            swings = i == self.swing
            placed = (root, frame) if swings else (pelvis, pose.frame)
            result[i] = self._legs.angles(i, *placed, ankles[i], pose) - pose.own[i]
        return result.ravel()

    def _on_the_way(self, time: float, own: np.ndarray) -> np.ndarray:
        """Where the swinging ankle should be at a time (3,) [m]; own: in the reference."""
        share = (time - self._started) / _DURATION
        s = min(share, 1.0)
        smooth = s**3 * (10 - 15 * s + 6 * s * s)  # least jerk
        x, y = own[:2] + self._origin
        lift = 16 * _LIFT * (s * (1 - s)) ** 2 - _DESCENT * _DURATION * (share - s)
        return np.array(
            [x + smooth * (self._goal[0] - x), y + smooth * (self._goal[1] - y), own[2] + lift]
        )

    def _needed_drop(self, pelvis: np.ndarray, ankles: np.ndarray, pose: LegPose) -> float:
        """How far [m] the pelvis must come down for both legs to reach, no straighter than they
        are in the reference."""
        drop = 0.0
        for i, (thigh, _, _) in enumerate(self._legs.joints):
            hip = pose.frame @ thigh.offset
            own = pose.pelvis + hip - pose.ankles[i]
            longest = max((_STRAIGHT * sum(self._legs.lengths[i])) ** 2, own @ own)
            x, y, z = pelvis + hip - ankles[i]
            drop = max(drop, z - sqrt(max(longest - x * x - y * y, SHORTEST**2)))
        return float(drop)

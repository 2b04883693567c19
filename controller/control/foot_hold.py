# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps a standing foot from tipping and twisting, and its toes on the floor.

Stable PD takes a foot for a free one: of a stance ankle's stiffness it leaves a fortieth in roll
and a sixteenth in twist, and of a loaded toe's a ninth. So a foot that carries has springs of
its own besides, which turn it back to the reference's roll and heading in the world; where the body
is led along a way, to the heading with which it landed. They act on
the present error, so they stay below 4 I / dt^2 of a foot. The toes' is Bullet's joint motor
instead, which its solver knows together with the contacts, and which cannot overshoot.

The numbers were chosen on four captured walks and jumping jacks, those in place on eight clips in
place, where nothing else is said.
"""

from collections.abc import Sequence
from math import asin, atan, atan2, hypot, pi, tanh
from typing import NamedTuple

import numpy as np

from ..body.character import Character
from ..body.momentum import GRAVITY
from ..body.sole import Ground, Sole, edge_of
from ..body.state import State
from ..reference.reference import Reference
from ..reference.way import Course
from .legs import AXES, Legs

#: Of an adult of 71 kg and 1.80 m, as all here [N m/rad], while it travels or stands on an edge,
#: and in place: a softer one in roll lets feet land straight, and feet that pivot under all of the
#: weight need more.
ROLL_STIFFNESS, ROLL_STIFFNESS_IN_PLACE = 125.0, 100.0
YAW_STIFFNESS, YAW_STIFFNESS_IN_PLACE = 125.0, 150.0
#: A foot's spring turns it no harder in place than for such an error [rad]: feet that stick would
#: turn legs and hips the other way instead.
_MOST_TWIST_IN_PLACE = 0.1
#: Feet pivot about one point, ball or heel; boxes about all of their corners. So what pivots in
#: place is held by so much of its friction alone: beyond the first of these speeds, mostly by the
#: second beyond that [rad/s].
_PIVOT_GRIP, _STILL, _PIVOTING = 0.25, 0.1, 0.15
#: Share of the body's weight at which a foot has all of that.
_FULL_LOAD = 0.15
#: How far [rad] the ankle may be asked to turn: the range of its roll.
_FARTHEST = 0.6
#: Of the squared volume of the ankle's three axes: it acts where that is below 0.03. By judgement.
_DAMPING = 1e-3
#: Motor of the toes: stiffness [N m/rad], time in which it takes the error back [s], most torque
#: [N m]; and most torque of the joint besides.
_TOE_STIFFNESS, _TOE_TIME, _TOE_TORQUE = 120.0, 0.045, 30.0
_TOE_LIMIT = 40.0
_ANKLE = 4  # the first of its axes: pitch, roll, twist


class AnkleTurn(NamedTuple):
    """Of an ankle [rad]; yaw: by which its foot turns to the left so."""

    roll: float
    twist: float
    yaw: float


class FootHold:
    """Springs of both feet, left before right. size: torques compared with the adult's."""

    def __init__(
        self,
        character: Character,
        reference: Reference,
        legs: Legs,
        size: float,
        course: Course | None = None,
    ) -> None:
        """course: what leads the body along its way, None where nothing does."""
        self._reference, self._legs, self._course = reference, legs, course
        yaw = YAW_STIFFNESS if reference.travels else YAW_STIFFNESS_IN_PLACE
        self._most_twist = _FARTHEST if reference.travels else _MOST_TWIST_IN_PLACE
        # Feet in place stand on their edges: a squat that does leaned away by the other one.
        self._heading = _heading_of_side if reference.travels else _own_heading
        self._roll, self._yaw, self._size = [0.0, 0.0], yaw * size, size
        self._full_load = _FULL_LOAD * character.mass * GRAVITY
        self._toe_stiffness, self._toe_torque = _TOE_STIFFNESS * size, _TOE_TORQUE * size
        self._toe_limit = _TOE_LIMIT * size
        self._ankles = [legs.dofs.start + foot * AXES + _ANKLE for foot in range(2)]
        self.release()

    def release(self) -> None:
        """No foot stands."""
        self._standing: Sequence[int] = [0, 0]
        self._goals: list[AnkleTurn | None] = [None, None]
        self._shares = [0.0, 0.0]  # of the stiffness
        self._presses = [0.0, 0.0]  # torques with which the toes press [N m]

    def update(
        self,
        step: int,
        state: State,
        standing: Sequence[int],
        grounds: Sequence[Ground],
        points: np.ndarray,
        forces: np.ndarray,
    ) -> None:
        """Take what the balance wants: standing (2,), 1 for a foot that does; sole.Ground under
        each; points (2, 3) [m] and forces (2, 3) [N] of the floor."""
        self.release()
        self._standing = standing
        for foot, (sole, point, force) in enumerate(
            zip(self._legs.soles, points.tolist(), forces.tolist(), strict=True)
        ):
            if not standing[foot]:
                if self._course is not None:
                    self._course.lift(foot)
                continue
            self._shares[foot] = min(force[2] / self._full_load, 1.0)
            self._goals[foot] = self.goal(foot, step, state, grounds[foot])
            self._roll[foot] = self._size * self._roll_stiffness(foot, step)
            self._presses[foot] = _moment_about_hinge(sole, point, force)

    def off_heading(self) -> list[float]:
        """By how much [rad] either foot is to turn, to the left, of one that carries: as much of it
        as it carries."""
        return [
            share * goal.yaw if goal else 0.0
            for share, goal in zip(self._shares, self._goals, strict=True)
        ]

    def _roll_stiffness(self, foot: int, step: int) -> float:
        if self._reference.travels:
            return ROLL_STIFFNESS
        share = edge_of(float(self._reference.tilts[step, foot]))
        return ROLL_STIFFNESS_IN_PLACE + share * (ROLL_STIFFNESS - ROLL_STIFFNESS_IN_PLACE)

    def grip(self, step: int) -> list[float]:
        """Share of the floor's friction that holds either foot."""
        if self._reference.travels:
            return [1.0, 1.0]
        grips = []
        for foot, standing in enumerate(self._standing):
            speed = abs(float(self._reference.pivots[step, foot]))
            pivots = standing * tanh(max(speed - _STILL, 0.0) / _PIVOTING)
            # One whose heel is up turns about its ball as it is.
            pivots *= float(self._reference.heels[step, foot])
            grips.append(1 - (1 - _PIVOT_GRIP) * pivots)
        return grips

    def stand(self, standing: Sequence[int]) -> None:
        """Only the toes: for a balance that does not plan the feet's forces."""
        self._standing = standing

    def add_to(self, torques: np.ndarray, state: State, share: float) -> None:
        """Add the springs' torques to those of all joints (dofs,) [N m]; share: of the body that
        is simulated."""
        angles = state.angles
        for foot, goal in enumerate(self._goals):
            dof = self._legs.toe_dofs[foot]
            limit = self._toe_limit
            torques[dof] = min(max(torques[dof] + share * self._presses[foot], -limit), limit)
            if goal is None:
                continue
            roll, ankle = self._ankles[foot] + 1, share * self._shares[foot]
            torques[roll] += ankle * self._roll[foot] * (goal.roll - angles[roll])
            most, twist = self._most_twist, goal.twist - angles[roll + 1]
            torques[roll + 1] += ankle * self._yaw * min(max(twist, -most), most)

    def toe_motor(
        self, step: int, state: State, share: float
    ) -> tuple[list[int], list[float], list[float]]:
        """What World.drive needs for the toes in the next step: degrees of freedom, speeds [rad/s],
        most torques [N m]. The motor keeps its last command, so that there always is one."""
        dofs, goals = self._legs.toe_dofs, self._reference.angles[step + 1]
        errors = [float(goals[dof] - state.angles[dof]) for dof in dofs]
        most = [
            share * stands * min(self._toe_stiffness * abs(error), self._toe_torque)
            for error, stands in zip(errors, self._standing, strict=True)
        ]
        return dofs, [error / _TOE_TIME for error in errors], most

    def goal(self, foot: int, step: int, state: State, ground: Ground) -> AnkleTurn | None:
        """The ankle's turn with which the foot has the reference's roll, each from its own ground,
        and heading, its pitch being left to the balance; None for any."""
        now, goal = state.frames[3 * foot + 3].T, self._reference.feet[step, foot]
        if self._course is None:
            yaw = self._heading(goal) - self._heading(now)
        else:
            yaw = self._course.stand(foot, self._heading(now))
        yaw = (yaw + pi) % (2 * pi) - pi
        sole = self._legs.soles[foot]
        across = ground.slope_y * sole.ahead_x - ground.slope_x * sole.ahead_y
        _, rise_x, rise_y = self._reference.floors[step, foot].tolist()
        own = (rise_y * goal[0, 0] - rise_x * goal[1, 0]) / hypot(goal[0, 0], goal[1, 0])
        roll = _tilt(goal) + atan(across) - atan(own) - _tilt(now)
        wanted = roll * sole.ahead_x, roll * sole.ahead_y, yaw
        pitch_axis, roll_axis, twist_axis = self._legs.axes[foot, _ANKLE:].tolist()
        # Cramer's rule, damped where the axes all but lie in a plane.
        normal = _cross(twist_axis, pitch_axis)
        size = _dot(roll_axis, normal)
        scale = size / (size * size + _DAMPING)
        first = self._ankles[foot] + 1
        turns = (
            scale * _dot(wanted, normal),
            scale * _dot(wanted, _cross(pitch_axis, roll_axis)),
        )
        angles = state.angles[first : first + 2].tolist()
        roll, twist = (
            angle + min(max(turn, -_FARTHEST), _FARTHEST)
            for angle, turn in zip(angles, turns, strict=True)
        )
        return AnkleTurn(roll, twist, yaw)


def _own_heading(frame: np.ndarray) -> float:
    """Where a foot (3, 3) looks [rad]."""
    return atan2(frame[1, 0], frame[0, 0])


def _heading_of_side(frame: np.ndarray) -> float:
    """Where a foot (3, 3) looks, by its side axis [rad]: one that rolls over its toes goes past the
    vertical, where its own axis looks nowhere, and then back."""
    return atan2(-frame[0, 1], frame[1, 1])


def _cross(a: Sequence[float], b: Sequence[float]) -> tuple[float, float, float]:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _tilt(frame: np.ndarray) -> float:
    """Roll [rad] of a frame (3, 3): how much its left axis is above the horizontal."""
    return asin(min(max(float(frame[2, 1]), -1.0), 1.0))


def _moment_about_hinge(sole: Sole, point: Sequence[float], force: Sequence[float]) -> float:
    """Torque [N m] of the floor's force about the hinge of the toes, where it acts ahead of it."""
    x = (point[0] - sole.x) * sole.ahead_x + (point[1] - sole.y) * sole.ahead_y - sole.hinge
    if x <= 0:
        return 0.0
    ahead = force[0] * sole.ahead_x + force[1] * sole.ahead_y
    return x * force[2] + (sole.hinge_height - point[2]) * ahead

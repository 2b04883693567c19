# SPDX-License-Identifier: GPL-3.0-or-later
"""Balance by foot forces: what the floor should press the soles with, brought about by the legs,
and inverse dynamics for what is known beforehand."""

from collections.abc import Sequence
from math import hypot, sqrt

import numpy as np

from ..body.character import Character
from ..body.momentum import GRAVITY
from ..body.sole import (
    DUAL_EDGE_SHARE,
    EDGE_SHARE,
    Region,
    Sole,
    carrying,
    edge_of,
    edge_share,
    on_edge,
)
from ..body.state import State
from ..gains.gains import Gains, size_of
from ..gains.styles import Factors, of_joints
from ..geometry.rotations import cross, vector_of_matrix
from ..geometry.stance import SIMULATED_CLEARANCE
from ..reference.reference import COM, VELOCITY, Reference
from .balance import Balance, Choices, Engine
from .outside import OutsideHelp, helped_strength
from .pressure import (
    HELPED_TWIST_SHARE,
    STEP_EDGE_SHARE,
    TWIST_SHARE,
    press,
    shift_weight,
)
from .stepping import Stepping
from .walking import Walking

#: The mass matrix changes slowly: it is taken anew every so many seconds. By trial on the
#: captured clips, like the next.
_INERTIA_PERIOD = 1 / 37.5
#: Foot forces move the whole body, slowly: they are taken less often than the joints' tracking.
_BALANCE_PERIOD = 1 / 75
#: Share of the weight below which the reference's feet carry nothing, as in flight: what does stand
#: carries then. By judgement.
_LEAST_LOAD = 0.05
#: How far [m] the capture point may be behind the reference's before a raised heel comes down, and
#: over how much more it does. By trial on a squat on the toes.
_TOE_ROOM, _HEEL_ROOM = 0.02, 0.03
#: [m] of the centre of mass, for the time in which a body falls. By judgement.
_LEAST_HEIGHT = 0.3
#: Factors on the weights of com_position, com_velocity, trunk and momentum while the clip travels:
#: chosen on four captured walks, of which each one needs each of them.
_TRAVELLING_WEIGHTS = np.array([1.0, 2.0, 2.0, 0.7])
#: How much more of the weights of com_position and com_velocity there is in place while all feet
#: stand on toes or edges alone, by trial on a captured squat.
_FIRMER = 3.0, 2.0
#: How much [1/m] a moment about the centre of mass counts against a force, of what holds a body in
#: the air: so little that all of the weight is borne. By judgement.
_TURNING = 0.01
#: Of the weight, what feet bear at least of one that sits, and at most of one that leans over them
#: to get up. By trial on made clips.
_SEATED_FEET = 0.1, 0.9
#: The weight of the trunk's turn among those of the gains, and how many axes a hip has.
_TRUNK, _HIP = 2, 3
#: [N m] with which thighs turn it at most, of an adult: more than legs weigh would lift them. By
#: trial on made clips.
_LIFTS = 60.0


class FootForces(Balance):
    """Feeds the reference's accelerations forward, by this body's own masses, and presses the rest
    of the wrench where the soles are down. It can step: aside after a push, or along with a walk
    that goes on.

    carry: what is down of a sole, as sole.carrying has it. weigh: what divides the weight between
    the feet, as pressure.shift_weight does. Both are there to be replaced in experiments.
    """

    carry, weigh = staticmethod(carrying), staticmethod(shift_weight)

    def __init__(
        self,
        character: Character,
        reference: Reference,
        gains: Gains,
        settings: Choices,
        world: Engine,
    ) -> None:
        super().__init__(character, reference, gains, settings, world)
        # A new mass matrix comes with a new balance.
        self.period = max(1, round(_BALANCE_PERIOD * reference.rate))
        times = max(1, round(_INERTIA_PERIOD * reference.rate / self.period))
        self.inertia_period = self.period * times
        #: Of the style, where it has any.
        self._style: Factors | None = None
        if settings.style != "close":
            self._style = of_joints(settings.style, character.dof_names)
        self._helped = settings.outside_help
        self._lifts = _LIFTS * size_of(character)
        if settings.outside_help or reference.helps is not None:
            self.help = OutsideHelp(character)
        # Who walks on is where its steps have come to; who is helped sets its feet where they are
        # animated, and is brought there.
        self._returns = self.help is not None and not reference.endless
        if self._returns:
            self.strength = helped_strength(settings.outside_help)
        if reference.walks and not self._returns:
            self.stepping = Walking(character, reference, self.course)
        elif settings.recovery_steps and not reference.walks:
            self.stepping = Stepping(character, reference)

    def weight_factors(self) -> np.ndarray:
        """Those for clips that travel."""
        travels = self.reference.travels and not self.reference.endless
        return _TRAVELLING_WEIGHTS if travels else super().weight_factors()

    def firmness(self, step: int) -> tuple[float, float]:
        """More where a body in place has little to stand on."""
        if self.reference.travels:
            return 1.0, 1.0
        reference = self.reference
        heels, loads, tilts = reference.heels[step], reference.load[step], reference.tilts[step]
        narrow = [
            max(1 - heel, edge_of(tilt))
            for heel, load, tilt in zip(heels.tolist(), loads.tolist(), tilts.tolist(), strict=True)
            if load
        ]
        least = min(narrow, default=0.0)
        return 1 + _FIRMER[0] * least, 1 + _FIRMER[1] * least

    def soften(self, stiffness: np.ndarray, damping: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As the style has it."""
        if self._style is None:
            return stiffness, damping
        return stiffness * self._style.stiffness, damping * self._style.damping

    def feed_forward(
        self, step: int, state: State, inertia: np.ndarray, bias: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The reference's accelerations and what bears them: inverse dynamics, less what the style
        takes away."""
        wanted = self.reference.accelerations[step].copy()
        if self._plan is not None:
            wanted[6:][self.legs.dofs] += self._plan.acceleration
        wanted[:6] = (wanted[:6].reshape(2, 3) @ state.frame).ravel()
        known = inertia @ wanted
        if self._style is not None:
            style = self._style
            known[6:] = style.ahead * known[6:] - (1 - style.support) * bias[6:]
        return known, bias[6:] + known[6:]

    def press(self, step: int, state: State, standing: Sequence[int]) -> np.ndarray:
        """With the feet that stand, as the reference loads them."""
        left_load, right_load = self.reference.load[step].tolist()
        share = DUAL_EDGE_SHARE if left_load and right_load else EDGE_SHARE
        if self.swing is not None:
            share = STEP_EDGE_SHARE
        ahead = None if self.reference.travels else self._capture_point(step)
        left, right = (
            self.region(step, foot, sole, share, ahead) for foot, sole in enumerate(self.legs.soles)
        )
        left_load, right_load = left_load * standing[0], right_load * standing[1]
        if left_load + right_load < _LEAST_LOAD:
            left_load, right_load = float(standing[0]), float(standing[1])
        most = max(left_load, right_load)
        force, torque = self.wrench(step, state, standing)
        fx, fy, fz, tx, ty, tz = self.reference.wrench[step].tolist()
        if self.course is not None:  # the reference goes straight on, the body into a bend
            vx, vy, _ = self.goals[step, VELOCITY].tolist()
            bend = self._mass * self.course.rate
            fx, fy = fx - bend * vy, fy + bend * vx
        for held in self.world.pulls():
            if held.foot:
                continue
            # What hands and seats bear, feet need not; what holds a foot, that presses against like
            # a floor.
            arm, pull = np.subtract(held.place, self.com), held.force
            fx, fy, fz = fx - pull[0], fy - pull[1], fz - pull[2]
            ax, ay, az = np.cross(arm, pull).tolist()
            tx, ty, tz = tx - ax, ty - ay, tz - az
        force = [force[0] + fx, force[1] + fy, force[2] + fz]
        torque = [torque[0] + tx, torque[1] + ty, torque[2] + tz]
        com = self.com.tolist()
        if self.reference.seated is not None:
            force, torque, com = self._seated(step, force, torque)
        helped = 0.0 if self.help is None else self._help_share(step)
        points, forces, moments = press(
            force,
            torque,
            com,
            self.grounds,
            left,
            right,
            (left_load / most, right_load / most),
            self.weigh,
            HELPED_TWIST_SHARE if helped else TWIST_SHARE,
        )
        self.foot_hold.update(step, state, standing, self.grounds, points, forces)
        if self.keeps_place:
            # Feet that near the floor from a flight are not pressed yet as if they touched it: free
            # ones would be slapped onto it, or away. Held feet in place hover, and stepped with it;
            # walks that are led fell.
            soles = zip(self.legs.soles, standing, strict=True)
            clearance = min(sole.clearance for sole, stands in soles if stands)
            touches = min(max(1 - clearance / SIMULATED_CLEARANCE, 0.0), 1.0)
            forces, moments = touches * forces, touches * moments
        if self.help is not None:
            turned = (cross(points - self.com, forces) + moments).sum(0)
            lacking = np.concatenate([force - forces.sum(0), torque - turned])
            lacking[:3] += self._back(step)
            self.help.give(lacking, helped)
            if self._returns:
                self.help.turn(self.foot_hold.off_heading(), helped)
        grip = self.foot_hold.grip(step)
        grip = [self.strength * share for share in grip]
        self.world.grip(grip)
        pressed = -self.legs.transposed_jacobian(points, forces, moments)
        return pressed if self.reference.seated is None else pressed + self._thighs(step, state)

    def _seated(
        self, step: int, force: list[float], torque: list[float]
    ) -> tuple[list[float], list[float], list[float]]:
        """What feet are to press with of a force [N] and a torque [N m] (3,), and for what place
        (3,) [m], as far as the body sits: straight down, with what of the weight is nearer to them
        than to the hips. Else they would bear the body over its seat, and draw it to them."""
        assert self.reference.seated is not None
        share = float(self.reference.seated[step])
        x, y, z = self.com.tolist()
        hip_x, hip_y, _ = self.legs.anchors[:, 0].mean(0).tolist()
        base_x, base_y = self.base(step)
        ahead_x, ahead_y = base_x - hip_x, base_y - hip_y
        along = ahead_x * (x - hip_x) + ahead_y * (y - hip_y)
        least, most = _SEATED_FEET
        part = min(max(along / max(ahead_x**2 + ahead_y**2, 1e-6), least), most)
        stays, (fx, fy, fz) = 1 - share, force
        fz = stays * fz + share * part * self._mass * GRAVITY
        over = [x + share * (base_x - x), y + share * (base_y - y), z]
        return [stays * fx, stays * fy, fz], [stays * value for value in torque], over

    def _thighs(self, step: int, state: State) -> np.ndarray:
        """(14,) torques of both legs [N m] with which thighs press on a seat, as far as the body
        sits: what turns its pelvis as the reference has it, that feet do there else."""
        assert self.reference.seated is not None
        turn = vector_of_matrix(self.reference.pelvis[step] @ state.frame.T)
        torque = self.weights[2][_TRUNK] * np.array(turn)
        torque *= self.reference.seated[step] * min(1.0, self._lifts / max(hypot(*torque), 1e-9))
        torques = np.zeros((2, len(self.legs.axes[0])))
        torques[:, :_HIP] = self.legs.axes[:, :_HIP] @ (-torque / 2)
        return torques.ravel()

    def hang(self, step: int, state: State) -> np.ndarray | None:
        """With forces at all that holds it that together are what the reference needs, as far as
        they carry it now, and turn the body as little as they can. In the air, nothing but help
        from outside may."""
        pulls = self.world.pulls()
        if self.help is not None:
            # By trial, it is helped back to the reference alone: with what bends the reference's
            # own flight fed forward, runs and leaps landed twisted. What holds a body bears it.
            lacking = np.concatenate(self.wrench(step, state, (1, 1)))
            lacking[:3] += self._back(step)
            self.help.give(np.zeros(6) if pulls else lacking, self._help_share(step))
            self.help.turn((0.0, 0.0), 0.0)
        if not pulls:
            return None
        places, up = [pull.place for pull in pulls], sum(pull.force[2] for pull in pulls)
        force = self.reference.wrench[step, :3]
        force = force * min(max(up / max(float(force[2]), 1.0), 0.0), 1.0)
        if len(places) == 1:
            # A pendulum is borne along its rope: to press upward as it swings would drive it on.
            rope = np.subtract(places[0], self.com)
            force = np.linalg.norm(force) * rope / np.linalg.norm(rope)
        rows = np.zeros((6, 3 * len(places)))
        for number, (x, y, z) in enumerate(np.subtract(places, self.com).tolist()):
            turn = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
            rows[:3, 3 * number : 3 * number + 3] = np.eye(3)
            rows[3:, 3 * number : 3 * number + 3] = _TURNING * turn
        shares = np.linalg.lstsq(rows, np.append(force, np.zeros(3)), rcond=None)[0].reshape(-1, 3)
        jacobians = self.world.held_jacobians()
        parts = [share @ jacobian for share, jacobian in zip(shares, jacobians, strict=True)]
        torques = -np.sum(parts, axis=0)
        if self.reference.seated is not None:
            torques[self.legs.dofs] += self._thighs(step, state)
        return torques

    def _back(self, step: int) -> np.ndarray:
        """(3,) force [N] that brings the body back to its place, where it has one."""
        assert self.help is not None
        off = (self.goals[step] - self._current)[[COM, VELOCITY]]
        return self.help.back(off, self._help_share(step)) if self._returns else np.zeros(3)

    def _help_share(self, step: int) -> float:
        """Share of the weight that help from outside may be."""
        helps = self.reference.helps
        return self._helped if helps is None else max(self._helped, float(helps[step]))

    def region(
        self, step: int, foot: int, sole: Sole, share: float, ahead: tuple[float, float] | None
    ) -> Region:
        """Where a foot may be pressed on (sole.Region), with a share of its width: only what is
        down of it, of its heel in the reference too. ahead: as `_capture_point` gives it in place,
        None on the way."""
        heel = min(sole.heel_down, float(self.reference.heels[step, foot]))
        if heel < 1 and ahead is not None:
            # A body that falls backward off its toes sets the heel down: to press where it will
            # be lowers it.
            back = -(ahead[0] * sole.ahead_x + ahead[1] * sole.ahead_y)
            heel = max(heel, min((back - _TOE_ROOM) / _HEEL_ROOM, 1.0))
        found = self.carry(sole, heel, edge_share(share, heel))
        return on_edge(found, sole, float(self.reference.tilts[step, foot]))

    def _capture_point(self, step: int) -> tuple[float, float]:
        """How far the capture point (x, y) [m] is ahead of the reference's own, from the feet."""
        x, y = (self._current[COM] - self.goals[step, COM]).tolist()[:2]
        vx, vy = (self._current[VELOCITY] - self.goals[step, VELOCITY]).tolist()[:2]
        (base_x, base_y), (goal_x, goal_y) = self.base(step), self.reference.base[step].tolist()
        floor = min(sole.floor for sole in self.legs.soles)
        seconds = sqrt(max(float(self.com[2]) - floor, _LEAST_HEIGHT) / GRAVITY)
        return x + goal_x - base_x + seconds * vx, y + goal_y - base_y + seconds * vy

# SPDX-License-Identifier: GPL-3.0-or-later
"""Torques of one step from the state of the world: tracking, balance, limits, noise.

The controller's own state is what `World` holds, and the mass matrix it last took.
"""

from math import atan2, hypot, sqrt

import numpy as np

from ..body.momentum import GRAVITY
from ..body.sole import Ground, carrying
from ..geometry.stance import LEFT, RIGHT, SIMULATED_CLEARANCE
from . import tracking
from .pressure import DUAL_EDGE_SHARE, EDGE_SHARE, RAISED_EDGE_SHARE, STEP_EDGE_SHARE, press
from .foot_hold import FootHold
from .legs import AXES, Legs
from .stepping import MOMENTUM_SHARE, Stepping
from .styles import of_joints
from .walking import Walking

#: The mass matrix changes slowly: it is taken anew every so many seconds.
_INERTIA_PERIOD = 1 / 37.5
#: `foot_forces` move the whole body, slowly: they are taken less often than the joints' tracking.
_BALANCE_PERIOD = 1 / 75
#: SCA12's motor noise of 5 N m is drawn every 0.3 ms; at another step it shrinks with the root.
NOISE_STEP = 0.0003
_LEAST_LOAD = 0.05
#: How far [m] the capture point may be behind the reference's before a raised heel comes down, and
#: over how much more it does.
_TOE_ROOM, _HEEL_ROOM = 0.02, 0.03
_LEAST_HEIGHT = 0.3  # [m] of the centre of mass, for the time in which a body falls
_MOST_DRIFT = 0.3  # [m/s] at which a body that has drifted off goes back
#: How fast [1/s] one that travels does.
_DRIFT_GAIN = 2.0
#: Factors on the weights of com_position, com_velocity, trunk and momentum while the clip travels:
#: chosen on four captured walks, of which each one needs each of them.
_TRAVELLING_WEIGHTS = np.array([1.0, 2.0, 2.0, 0.7])


class Controller:
    """One character's controller over a reference. After `torques`, com (3,) [m] is its centre of
    mass."""

    def __init__(self, character, reference, gains, settings, world):
        self.reference, self.world = reference, world
        stiffness, damping = gains.per_dof(character)
        self.feedforward = settings.balance == "foot_forces"
        #: `ahead` and `support` of styles.Firmness (dofs,), where the style has any to take away.
        self.firmness = None
        if self.feedforward and settings.style != "close":
            softer, calmer, *self.firmness = of_joints(settings.style, character.dof_names)
            stiffness, damping = stiffness * softer, damping * calmer
        self.step = 1 / reference.rate
        self.tracker = tracking.make(settings.tracking, stiffness, damping, self.step)
        #: physics_weights.Hold, where not all of the body is simulated throughout.
        self.hold = None
        #: How fast [1/s] to go back to where the reference is on the floor.
        keeps_place = reference.travels and not reference.endless
        self.drift_gain = _DRIFT_GAIN if keeps_place else 0.0
        self._origin = 0  # the step from which the intervals of balance and mass matrix count
        self.legs = Legs(character)
        scales = _TRAVELLING_WEIGHTS if keeps_place and self.feedforward else np.ones(4)
        self.weights = {1: (scales * gains.single).tolist(), 2: (scales * gains.dual).tolist()}
        self.mass = character.mass
        size = character.mass * character.height / (71 * 1.80)
        self.limit = settings.torque_limit * size
        self.noise = settings.noise * sqrt(NOISE_STEP * reference.rate) * size
        self.random = np.random.default_rng(settings.seed)
        self.balance = self._foot_forces if self.feedforward else self._virtual_forces
        # `foot_forces` feed the reference's accelerations forward, by this body's own masses: other
        # goals than its own momenta would contradict them.
        at_rest = character.actor is not None and not self.feedforward
        self.goals = reference.goals_over_base() if at_rest else reference.goals
        self.foot_hold = FootHold(character, reference, self.legs, size)
        # A new mass matrix comes with a new balance. The paper's mode, less steady, has both at
        # every step.
        self.balance_period = self.period = 1
        if self.feedforward:
            self.balance_period = max(1, round(_BALANCE_PERIOD * reference.rate))
            self.period = self.balance_period * max(
                1, round(_INERTIA_PERIOD * reference.rate / self.balance_period)
            )
        #: sole.Ground under either foot.
        self.grounds = [Ground(0.0, 0.0, world.floor)] * 2
        #: Recovery steps, where they are wanted; in an endless walk, where its steps land.
        self.stepping = None
        if reference.walks and self.feedforward:
            self.stepping = Walking(character, reference)
        elif settings.recovery_steps and self.feedforward:
            self.stepping = Stepping(character, reference)
        self._pelvis_arm = character.centres[0]
        self._plan = self._planned = None  # of the legs after a step, and when it was made
        self._legs_share = np.zeros(2 * AXES)
        self._local = np.empty((3, 3))  # com, its velocity, angular momentum, in the pelvis frame

    def memory(self):
        """What it knows besides what the world holds, for `restart`."""
        steps = None if self.stepping is None else self.stepping.memory()
        return self._plan, self._planned, steps

    def restart(self, step, memory):
        """Go on from `step` with nothing but what the world holds, and this memory."""
        self._origin = step
        self._plan, self._planned, steps = memory
        if self.stepping is not None:
            self.stepping.recall(steps)

    def torques(self, step):
        """(dofs,) joint torques [N m] for the step that begins now."""
        count = step - self._origin
        balancing = count % self.balance_period == 0
        state, reference = self.world.state(balancing), self.reference
        self._state = state
        # What is held stiffly shakes with an old mass matrix once the body moves fast.
        if count % self.period == 0 or (self.hold and self.hold.acts(step)):
            self._refresh(state)
        bias = self.world.bias(state, self.inertia)
        if self.feedforward:
            wanted = reference.accelerations[step].copy()
            if self._plan is not None:
                wanted[6:][self.legs.dofs] += self._plan[2]
            wanted[:6] = (wanted[:6].reshape(2, 3) @ state.frame).ravel()
            known = self.inertia @ wanted
            if self.firmness is not None:
                ahead, support = self.firmness
                known[6:] = ahead * known[6:] - (1 - support) * bias[6:]
            bias += known
        else:
            known = -bias
        if self.hold is None:
            limit = self.limit
            torques = self.tracker.torques(
                state.angles, state.speeds[6:], *self._targets(step + 1), known
            )
        else:
            limit = self.hold.limits(step, self.limit)
            torques = self.hold.torques(step, state, *self._targets(step + 1), known)
        if self.feedforward:
            torques += bias[6:]
        if balancing:
            self._update_momentum(state)
            self.legs.update(state.positions, state.frames, state.angles)
            if self.world.has_colliders:
                self.grounds = self.world.supports(self.legs.anchors[:, 2].tolist())
            self.legs.set_down(self.grounds)
            if self.stepping is not None:
                self._step_aside(step, state)
            self.foot_hold.release()
            self._legs_share = self.balance(step, state)
        torques[self.legs.dofs] += self._legs_share
        self.foot_hold.add_to(torques, state, self._share(step))
        np.maximum(torques, -limit, out=torques)
        np.minimum(torques, limit, out=torques)
        if self.noise:
            torques += self.random.uniform(-self.noise, self.noise, len(torques))
        return torques

    def toe_motor(self, step):
        """What World.drive needs in the step that begins now, after `torques`."""
        return self.foot_hold.toe_motor(step, self._state, self._share(step))

    def _targets(self, step):
        """Angles and speeds (dofs,) that the joints should have at a step."""
        angles, speeds = self.reference.angles[step], self.reference.speeds[step]
        if self._plan is None:
            return angles, speeds
        turn, speed, acceleration = self._plan * self._share(step)
        ahead = (step - self._planned) * self.step
        angles, speeds = angles.copy(), speeds.copy()
        angles[self.legs.dofs] += turn + ahead * (speed + ahead / 2 * acceleration)
        speeds[self.legs.dofs] += speed + ahead * acceleration
        return angles, speeds

    def _share(self, step):
        """How much of the body's place is simulated: 0 where the animation has it."""
        return 1.0 if self.hold is None else self.hold.weights.root[step]

    def _step_aside(self, step, state):
        """Take a recovery step where one is needed, and go on with one that has begun."""
        stepping, goals = self.stepping, self.goals[step]
        if self.drift_gain:
            goals = goals.copy()
            goals[1, :2] += self._way_back(*(goals[0, :2] - self.com[:2]).tolist())
        stepping.update(
            step,
            self.com.tolist(),
            self._current[1].tolist(),
            goals,
            self._base(step),
            self.legs.soles,
            self._standing(),
            self._share(step) == 1,
        )
        if self._share(step) == 0:
            stepping.forget()
            self._plan = None
        if stepping.active:
            root = state.root - state.frame @ self._pelvis_arm
            velocity = state.frame @ state.speeds[3:6]
            period = self.step * self.balance_period
            self._plan = stepping.plan(step * self.step, root, velocity, state.frame, period)
            self._planned = step

    @property
    def _swing(self):
        """The foot (0, 1) that takes a recovery step now, or None."""
        return None if self.stepping is None else self.stepping.swing

    def _refresh(self, state):
        """Take a new mass matrix H. Its rows of the root give the momenta, and the centre of mass
        in the pelvis frame is (H[2, 4], H[0, 5], H[1, 3]) / m."""
        inertia = self.world.mass_matrix(state.angles)
        self.inertia = inertia
        (self.hold or self.tracker).refresh(inertia)
        self._root_rows = inertia[:6].copy()
        self._local[0] = inertia[2, 4], inertia[0, 5], inertia[1, 3]
        self._local[0] /= self.mass

    def _update_momentum(self, state):
        """Centre of mass, its velocity and the angular momentum about it, from H u."""
        hx, hy, hz, px, py, pz = (self._root_rows @ state.speeds).tolist()
        wx, wy, wz, vx, vy, vz = state.speeds[:6].tolist()
        local = self._local
        x, y, z = local[0].tolist()
        mass, step = self.mass, self.step * self.balance_period
        cx, cy, cz = px / mass, py / mass, pz / mass
        local[1] = cx, cy, cz
        local[2] = hx - y * pz + z * py, hy - z * px + x * pz, hz - x * py + y * px
        self._current = current = local @ state.frame.T
        self.com = current[0]
        self.com += state.root
        # In the pelvis frame the centre of mass moves on until the next mass matrix or balance.
        local[0] = (
            x + (cx - vx - wy * z + wz * y) * step,
            y + (cy - vy - wz * x + wx * z) * step,
            z + (cz - vz - wx * y + wy * x) * step,
        )

    def _standing(self):
        """[left, right] 1 for each foot that has a sole corner close to the floor, else 0."""
        left, right = self.legs.soles
        return [
            int(self._swing != 0 and left.clearance < SIMULATED_CLEARANCE),
            int(self._swing != 1 and right.clearance < SIMULATED_CLEARANCE),
        ]

    def _wrench(self, step, state, count):
        """Force [N] and torque [N m] on the body, [x, y, z] each: SCA12, equations 12, 13 (with
        the vector in the world frame, where equation 7 wants it) and 15."""
        reference = self.reference
        (x, y, z), (vx, vy, vz), (lx, ly, lz) = (self.goals[step] - self._current).tolist()
        base_x, base_y = self._base(step)
        goal_x, goal_y = reference.base[step].tolist()
        z += self._rise(step)
        if self.drift_gain:
            back_x, back_y = self._way_back(x, y)
            vx, vy = vx + back_x, vy + back_y
        position, velocity, trunk, momentum = self.weights[count]
        if self._swing is not None:
            momentum *= MOMENTUM_SHARE
        if self.hold is not None:
            # Where the root is held, the balance's goals are met: it would only fight the hold.
            share = self._share(step)
            position, velocity = share * position, share * velocity
            trunk, momentum = share * trunk, share * momentum
        rx, ry, rz = rotation_vector(reference.pelvis[step] @ state.frame.T)
        force = [
            position * (x + base_x - goal_x) + velocity * vx,
            position * (y + base_y - goal_y) + velocity * vy,
            position * z + velocity * vz,
        ]
        torque = [
            trunk * rx + momentum * lx,
            trunk * ry + momentum * ly,
            trunk * rz + momentum * lz,
        ]
        return force, torque

    def _way_back(self, x, y):
        """Velocity (x, y) [m/s] with which to go to a place that is (x, y) [m] away."""
        back = min(self.drift_gain, _MOST_DRIFT / max(hypot(x, y), 1e-9))
        return back * x, back * y

    def _rise(self, step):
        """How much higher [m] than in the reference the floor is under the feet that stand: of
        those that the reference has standing, if they do."""
        support, standing = int(self.reference.support[step]), self._standing()
        heights = self.reference.floors[step, :, 0].tolist()
        rises = [
            (bool(support & bit) and standing[foot], self.legs.soles[foot].floor - heights[foot])
            for foot, bit in enumerate((LEFT, RIGHT))
        ]
        if not (rises[0][0] or rises[1][0]):
            rises = [(stands, rise) for stands, (_, rise) in zip(standing, rises, strict=True)]
        found = [rise for stands, rise in rises if stands]
        drop = 0.0 if self.stepping is None else self.stepping.drop
        return sum(found) / max(len(found), 1) - drop

    def _base(self, step):
        """Base of support (SCA12, equation 9), by the stance of the reference."""
        support = self.reference.support[step]
        left, right = self.legs.soles
        moved = self.stepping and self.stepping.base(step, self.legs.soles)
        if moved:
            return moved
        if support == LEFT:
            return left[:2]
        if support == RIGHT:
            return right[:2]
        return (left[0] + right[0]) / 2, (left[1] + right[1]) / 2

    def _foot_forces(self, step, state):
        """(14,) torques of both legs [N m] with which the feet press the wanted wrench."""
        standing = self._standing()
        count = standing[0] + standing[1]
        if not count:
            return np.zeros(2 * AXES)
        left_load, right_load = self.reference.load[step].tolist()
        share = DUAL_EDGE_SHARE if left_load and right_load else EDGE_SHARE
        if self._swing is not None:
            share = STEP_EDGE_SHARE
        astray = None if self.reference.travels else self._astray(step)
        regions = [
            self._region(step, foot, sole, share, astray)
            for foot, sole in enumerate(self.legs.soles)
        ]
        left_load, right_load = left_load * standing[0], right_load * standing[1]
        if left_load + right_load < _LEAST_LOAD:
            left_load, right_load = float(standing[0]), float(standing[1])
        most = max(left_load, right_load)
        force, torque = self._wrench(step, state, count)
        fx, fy, fz, tx, ty, tz = self.reference.wrench[step].tolist()
        points, forces, moments = press(
            (force[0] + fx, force[1] + fy, force[2] + fz),
            (torque[0] + tx, torque[1] + ty, torque[2] + tz),
            self.com.tolist(),
            self.grounds,
            *regions,
            (left_load / most, right_load / most),
        )
        self.foot_hold.update(step, state, standing, self.grounds, points, forces)
        return -self.legs.transposed_jacobian(points, forces, moments)

    def _region(self, step, foot, sole, share, astray):
        """Where a foot may be pressed on, with a share of its width: only what is down of it, of
        its heel in the reference too. astray: as `_astray` gives it in place, None on the way."""
        heel = min(sole.heel_down, float(self.reference.heels[step, foot]))
        if heel < 1 and astray is not None:
            # A body that falls backward off its toes sets the heel down: to press where it will
            # be lowers it.
            back = -(astray[0] * sole.ahead_x + astray[1] * sole.ahead_y)
            heel = max(heel, min((back - _TOE_ROOM) / _HEEL_ROOM, 1.0))
        return carrying(sole, heel, share + (1 - heel) * (min(RAISED_EDGE_SHARE, share) - share))

    def _astray(self, step):
        """How far the capture point (x, y) [m] is ahead of the reference's own, from the feet."""
        x, y = (self._current[0] - self.goals[step, 0]).tolist()[:2]
        vx, vy = (self._current[1] - self.goals[step, 1]).tolist()[:2]
        (base_x, base_y), (goal_x, goal_y) = self._base(step), self.reference.base[step].tolist()
        floor = min(sole.floor for sole in self.legs.soles)
        seconds = sqrt(max(float(self.com[2]) - floor, _LEAST_HEIGHT) / GRAVITY)
        return x + goal_x - base_x + seconds * vx, y + goal_y - base_y + seconds * vy

    def _virtual_forces(self, step, state):
        """(14,) torques of both legs [N m] by SCA12's equations 5 to 16: a force at the centre of
        mass and torques at the pelvis, through the legs that stand, half each if both do."""
        standing = self._standing()
        count = standing[0] + standing[1]
        if not count:
            return np.zeros(2 * AXES)
        force, torque = self._wrench(step, state, count)
        self.foot_hold.stand(standing)
        share = np.array(standing, float)[:, None] / count
        points = np.broadcast_to(self.com, (2, 3))
        return -self.legs.transposed_jacobian(
            points, share * np.array(force), share * np.array(torque)
        )


def rotation_vector(matrix):
    """Exponential map (x, y, z) of a rotation matrix (3, 3)."""
    (a, b, c), (d, e, f), (g, h, i) = matrix.tolist()
    x, y, z = (h - f) / 2, (c - g) / 2, (d - b) / 2
    sine = sqrt(x * x + y * y + z * z)
    scale = atan2(sine, (a + e + i - 1) / 2) / sine if sine > 1e-9 else 1.0
    return x * scale, y * scale, z * scale

# SPDX-License-Identifier: GPL-3.0-or-later
"""What every way of keeping balance knows and owns: where the body is and what it stands on, where
both should be, and the wrench that would bring it there (SCA12, equations 9 to 15).

The ways themselves, `foot_forces.FootForces` and `virtual_forces.VirtualForces`, say how the legs
bring that wrench about, what of it is known beforehand, and how often it is taken anew.
"""

from abc import ABC, abstractmethod
from math import hypot

import numpy as np

from ..body.sole import Ground
from ..geometry.rotations import vector_of_matrix
from ..geometry.stance import LEFT, RIGHT, SIMULATED_CLEARANCE
from .foot_hold import FootHold
from .gains import size_of
from .legs import AXES, Legs
from .stepping import MOMENTUM_SHARE

_MOST_DRIFT = 0.3  # [m/s] at which a body that has drifted off goes back
#: How fast [1/s] one that travels does.
_DRIFT_GAIN = 2.0


class Balance(ABC):
    """One character's balance over a reference.

    com (3,) [m]: its centre of mass, after `update`. legs: legs.Legs. grounds: sole.Ground under
    either foot. stepping: what moves feet elsewhere, None where nothing does. torques (14,): what
    the legs press with [N m]. period, inertia_period: steps from one `update`, and from one mass
    matrix, to the next.
    """

    period = inertia_period = 1
    #: What keeps standing feet from tipping and twisting; to be replaced in experiments.
    holder = FootHold

    def __init__(self, character, reference, gains, settings, world):
        self.reference, self.world = reference, world
        self.goals = reference.goals
        self.legs = Legs(character)
        self.grounds = [Ground(0.0, 0.0, world.floor)] * 2
        self.stepping = None
        self.torques = np.zeros(2 * AXES)
        self.foot_hold = self.holder(character, reference, self.legs, size_of(character))
        self.keeps_place = reference.travels and not reference.endless
        #: How fast [1/s] to go back to where the reference is on the floor.
        self.drift_gain = _DRIFT_GAIN if self.keeps_place else 0.0
        scales = self.weight_factors()
        self.weights = {1: (scales * gains.single).tolist(), 2: (scales * gains.dual).tolist()}
        #: (steps,) how much of the body's place is simulated, where not all of it is throughout.
        self.shares = None
        self._mass, self._step = character.mass, 1 / reference.rate
        self._pelvis_arm = character.centres[0]
        self._plan = self._planned = None  # of the legs after a step, and when it was made
        self._local = np.empty((3, 3))  # com, its velocity, angular momentum, in the pelvis frame

    def weight_factors(self):
        """Factors (4,) on the weights of com_position, com_velocity, trunk and momentum."""
        return np.ones(4)

    def soften(self, stiffness, damping):
        """Stiffness and damping (dofs,) of the joints' tracking, as this balance wants them."""
        return stiffness, damping

    @abstractmethod
    def feed_forward(self, step, state, inertia, bias):
        """(what the tracking knows of the joints' torques (6 + dofs,), what to add to its own
        (dofs,)) of a step, from the mass matrix and the bias forces (6 + dofs,)."""

    @abstractmethod
    def press(self, step, state, standing):
        """(14,) torques of both legs [N m] that bring the wrench about, while at least one foot is
        `standing`."""

    def memory(self):
        """What it knows besides what the world holds, for `recall`."""
        steps = None if self.stepping is None else self.stepping.memory()
        return self._plan, self._planned, steps

    def recall(self, memory):
        """Go on with nothing but what the world holds, and this memory."""
        self._plan, self._planned, steps = memory
        if self.stepping is not None:
            self.stepping.recall(steps)

    def take_inertia(self, inertia):
        """Take a new mass matrix H. Its rows of the root give the momenta, and the centre of mass
        in the pelvis frame is (H[2, 4], H[0, 5], H[1, 3]) / m."""
        self._root_rows = inertia[:6].copy()
        self._local[0] = inertia[2, 4], inertia[0, 5], inertia[1, 3]
        self._local[0] /= self._mass

    def update(self, step, state):
        """See where the body is, take steps, and press."""
        self._update_momentum(state)
        self.legs.update(state.positions, state.frames, state.angles)
        if self.world.has_colliders:
            self.grounds = self.world.supports(self.legs.anchors[:, 2].tolist())
        self.legs.set_down(self.grounds)
        if self.stepping is not None:
            self._step_aside(step, state)
        self.foot_hold.release()
        standing = self.standing()
        self.torques = self.press(step, state, standing) if any(standing) else np.zeros(2 * AXES)

    def targets(self, step):
        """Angles and speeds (dofs,) that the joints should have at a step."""
        angles, speeds = self.reference.angles[step], self.reference.speeds[step]
        if self._plan is None:
            return angles, speeds
        turn, speed, acceleration = self._plan * self.share(step)
        ahead = (step - self._planned) * self._step
        angles, speeds = angles.copy(), speeds.copy()
        angles[self.legs.dofs] += turn + ahead * (speed + ahead / 2 * acceleration)
        speeds[self.legs.dofs] += speed + ahead * acceleration
        return angles, speeds

    def share(self, step):
        """How much of the body's place is simulated: 0 where the animation has it."""
        return 1.0 if self.shares is None else self.shares[step]

    @property
    def swing(self):
        """The foot (0, 1) that takes a recovery step now, or None."""
        return None if self.stepping is None else self.stepping.swing

    def standing(self):
        """[left, right] 1 for each foot that has a sole corner close to the floor, else 0."""
        left, right = self.legs.soles
        return [
            int(self.swing != 0 and left.clearance < SIMULATED_CLEARANCE),
            int(self.swing != 1 and right.clearance < SIMULATED_CLEARANCE),
        ]

    def base(self, step):
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

    def wrench(self, step, state, standing):
        """Force [N] and torque [N m] on the body, [x, y, z] each: SCA12, equations 12, 13 (with
        the vector in the world frame, where equation 7 wants it) and 15."""
        reference = self.reference
        (x, y, z), (vx, vy, vz), (lx, ly, lz) = (self.goals[step] - self._current).tolist()
        base_x, base_y = self.base(step)
        goal_x, goal_y = reference.base[step].tolist()
        z += self._rise(step)
        if self.drift_gain:
            back_x, back_y = self._way_back(x, y)
            vx, vy = vx + back_x, vy + back_y
        position, velocity, trunk, momentum = self.weights[sum(standing)]
        if self.swing is not None:
            momentum *= MOMENTUM_SHARE
        if self.shares is not None:
            # Where the root is held, the balance's goals are met: it would only fight the hold.
            share = self.share(step)
            position, velocity = share * position, share * velocity
            trunk, momentum = share * trunk, share * momentum
        rx, ry, rz = vector_of_matrix(reference.pelvis[step] @ state.frame.T)
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

    def _update_momentum(self, state):
        """Centre of mass, its velocity and the angular momentum about it, from H u."""
        hx, hy, hz, px, py, pz = (self._root_rows @ state.speeds).tolist()
        wx, wy, wz, vx, vy, vz = state.speeds[:6].tolist()
        local = self._local
        x, y, z = local[0].tolist()
        mass, step = self._mass, self._step * self.period
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
            self.base(step),
            self.legs.soles,
            self.standing(),
            self.share(step) == 1,
        )
        if self.share(step) == 0:
            stepping.forget()
            self._plan = None
        if stepping.active:
            root = state.root - state.frame @ self._pelvis_arm
            velocity = state.frame @ state.speeds[3:6]
            seconds = self._step * self.period
            self._plan = stepping.plan(step * self._step, root, velocity, state.frame, seconds)
            self._planned = step

    def _way_back(self, x, y):
        """Velocity (x, y) [m/s] with which to go to a place that is (x, y) [m] away."""
        back = min(self.drift_gain, _MOST_DRIFT / max(hypot(x, y), 1e-9))
        return back * x, back * y

    def _rise(self, step):
        """How much higher [m] than in the reference the floor is under the feet that stand: of
        those that the reference has standing, if they do."""
        support, standing = int(self.reference.support[step]), self.standing()
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

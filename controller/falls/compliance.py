# SPDX-License-Identifier: GPL-3.0-or-later
"""Torques of a body that does not hold itself: joints that give, and as much tone as is left.

Passive joints are springs and dampers of somebody relaxed, by trial on falls: dampers that are
about those of the humanoid of dm_control (Tunyasuvunakool and others, "dm_control", Software
Impacts 2020), springs that bring a limb back within a second. Tone adds a share of the
character's own stiffness and damping towards a pose. Both look one step ahead, as Stable PD does.
"""

import math
from dataclasses import replace

import numpy as np

from ..body.anthropometry import HAND_SHARE
from ..body.character import PITCH, Character, Joint
from ..body.state import State
from ..gains.gains import Gains, size_of
from ..geometry.rotations import angles_yxz, cross, rotation_about, unit
from ..geometry.skeleton import SIDES, joint_of_dof

#: [N m] of a joint of an adult, scaled to the body: what a standing one has. At the end of a
#: shoulder's reach ligaments add to it; by trial.
_MOST_TORQUE, _LIGAMENTS = 300.0, 12.0
#: A twist has so much of a joint's damping. By trial.
_TWIST = 0.5
#: At least so far [rad] are the ends of a joint's range from where it is as the body begins to
#: fall: else it would be kicked. By trial.
_MARGIN = 0.02

#: An upper arm's reach: a cone about this direction of the trunk (to the left; to the right it is
#: mirrored), with this half angle [rad]; by eye, from where people's elbows go. Its end is a
#: spring [N m/rad] with damping [N m s/rad], of an adult; by trial.
_ARM_AXIS = unit(np.array([0.55, 0.83, 0.0]))
ARM_REACH = math.radians(105)
_ARM_STIFFNESS, _ARM_DAMPING = 16000.0, 200.0


def relaxed_limits(character: Character, angles: np.ndarray) -> np.ndarray:
    """(dofs, 2) [rad] in which the joints of a body turn that gives way in a pose (dofs,), or in
    any of several (N, dofs)."""
    least, most = np.atleast_2d(angles).min(0), np.atleast_2d(angles).max(0)
    limits = []
    for name, lowest, highest in zip(character.dof_names, least, most, strict=True):
        entry, axis = joint_of_dof(name), name.rpartition("_")[2]
        low, high = entry.relaxed.get(axis, entry.ranges[axis])
        limits.append((min(low, lowest - _MARGIN), max(high, highest + _MARGIN)))
    return np.array(limits)


def falling_body(character: Character, angles: np.ndarray) -> Character:
    """The body of a character that falls from a pose (dofs,) [rad]: its joints do not go beyond
    what people's do, and it has hands."""
    return replace(with_hands(character), limits=relaxed_limits(character, angles))


def with_hands(character: Character) -> Character:
    """A character whose forearms end where fingers do, for a hand turns with its forearm, and must
    not sink into what that presses on."""
    longer = HAND_SHARE * character.height
    shapes = []
    for shape in character.shapes:
        if shape.segment.startswith("forearm"):
            radius, length = shape.size
            x, y, z = shape.position
            shape = replace(shape, size=(radius, length + longer), position=(x, y, z - longer / 2))
        shapes.append(shape)
    return replace(character, shapes=tuple(shapes))


class Arm:
    """Where an upper arm points, and how far it may.

    joint: its shoulder. axis: (3,) the middle of its reach, in the trunk's frame; reach: half angle
    of that [rad], and at least what it is at first.
    """

    def __init__(self, joint: Joint, side: str, angles: np.ndarray) -> None:
        self.joint = joint
        self.dofs = slice(joint.first, joint.first + len(joint.axes))
        self.axis = _ARM_AXIS * ([1, 1, 1] if side == "l" else [1, -1, 1])
        self._turned = (self.axis @ joint.basis).tolist()
        self.reach = 0.0
        self.reach = max(ARM_REACH, self.beyond(angles) + _MARGIN)

    def beyond(self, angles: np.ndarray) -> float:
        """How far [rad] it is beyond its reach."""
        (x, y, z), (a, b, c) = self._upward(angles), self._turned
        return math.acos(max(-1.0, min(1.0, -(a * x + b * y + c * z)))) - self.reach

    def slope(self, angles: np.ndarray) -> np.ndarray:
        """(3,) how `beyond` grows with its three angles."""
        joint, pitch = self.joint, float(angles[self.dofs.start])
        twist = joint.basis @ self._upward(angles)
        roll = joint.basis @ [math.cos(pitch), 0.0, -math.sin(pitch)]
        axes = np.stack([joint.basis[:, PITCH], roll, twist])
        return axes @ unit(cross(self.axis, -twist))

    def frame(self, angles: np.ndarray) -> np.ndarray:
        """(3, 3) of the upper arm in the trunk, with angles (dofs,) of all joints."""
        pitch, roll, twist = angles[self.dofs].tolist()
        turned = rotation_about(1, pitch) @ rotation_about(0, roll) @ rotation_about(2, twist)
        return self.joint.basis @ turned

    def angles(self, frame: np.ndarray, now: np.ndarray) -> np.ndarray:
        """(3,) pitch, roll and twist [rad] with which the upper arm has a frame (3, 3) in the
        trunk: those nearest to `now` (3,)."""
        pitch, roll, twist = angles_yxz((self.joint.basis.T @ frame)[None])[0].tolist()
        found = [
            now + (np.array(one) - now + math.pi) % (2 * math.pi) - math.pi
            for one in ((pitch, roll, twist), (pitch + math.pi, math.pi - roll, twist + math.pi))
        ]
        return min(found, key=lambda one: float(np.abs(one - now).sum()))

    def _upward(self, angles: np.ndarray) -> tuple[float, float, float]:
        """From the elbow to the shoulder, in the joint's basis: Ry(pitch) Rx(roll) z."""
        pitch, roll = angles[self.dofs.start : self.dofs.start + 2].tolist()
        level = math.cos(roll)
        return math.sin(pitch) * level, -math.sin(roll), math.cos(pitch) * level


def arms_of(character: Character, angles: np.ndarray) -> list[Arm]:
    """The left and the right Arm of a character, as they are at first with angles (dofs,) [rad]."""
    joints = {joint.name: joint for joint in character.joints}
    return [Arm(joints[f"shoulder_{side}"], side, angles) for side in SIDES]


class Compliance:
    """Torques of one body that gives.

    target (dofs,) [rad]: the pose towards which it has tone (dofs,), shares of the character's own
    gains; target_speeds (dofs,) [rad/s]: how fast that changes. braking (dofs,) [N m s/rad]:
    damping besides, of an adult. rest (dofs,) [rad]: where the passive springs are relaxed. All may
    be changed from step to step.
    """

    def __init__(self, character: Character, step: float, angles: np.ndarray) -> None:
        """step [s]; angles (dofs,) [rad] as it begins to fall."""
        entries = [joint_of_dof(name) for name in character.dof_names]
        self.size = size_of(character)
        passive = self.size * np.array([entry.passive for entry in entries])
        self._stiffness, self.damping = passive[:, 0], passive[:, 1]
        twists = [name.endswith("twist") for name in character.dof_names]
        self.damping = np.where(twists, _TWIST, 1.0) * self.damping
        self._own_stiffness, self._own_damping = Gains.default(character).per_dof(character)
        self.step = step
        self.rest = np.zeros(character.dofs)
        self.target = angles.copy()
        self.target_speeds = np.zeros(character.dofs)
        self.tone = np.zeros(character.dofs)
        self.braking = np.zeros(character.dofs)
        self.arms = arms_of(character, angles)

    def torques(
        self,
        state: State,
        inertia: np.ndarray,
        bias: np.ndarray,
        pressed: np.ndarray | None = None,
    ) -> np.ndarray:
        """(dofs,) [N m] of the step that begins now, from the mass matrix (6 + n, 6 + n) and the
        bias forces (6 + n,). pressed (6 + n,): of a body that carries itself, what presses it from
        outside; without it, it hangs in its joints."""
        step, angles, speeds = self.step, state.angles, state.speeds[6:]
        own = self.tone * self._own_stiffness
        stiffness, firm = self._stiffness + own, self.tone * self._own_damping
        damping = self.damping + firm + self.size * self.braking
        force = self._stiffness * (self.rest - angles) + own * (self.target - angles)
        force += firm * self.target_speeds
        force -= (damping + step * stiffness) * speeds
        ahead = np.diag(step * (damping + step * stiffness))
        most = np.full(len(force), _MOST_TORQUE * self.size)
        for arm in self.arms:
            over = arm.beyond(angles)
            if over > 0:
                slope = arm.slope(angles)
                firm, soft = self.size * _ARM_STIFFNESS, self.size * _ARM_DAMPING
                own = np.outer(slope, slope) * (soft + step * firm)
                force[arm.dofs] -= firm * over * slope + own @ speeds[arm.dofs]
                ahead[arm.dofs, arm.dofs] += step * own
                most[arm.dofs] *= _LIGAMENTS
        matrix, known = inertia.copy(), -bias
        if pressed is not None:
            force = force + bias[6:] - pressed[6:]
            known += pressed
        matrix[6:, 6:] += ahead
        known[6:] += force
        torques = force - ahead @ np.linalg.solve(matrix, known)[6:]
        return np.clip(torques, -most, most)

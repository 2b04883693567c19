# SPDX-License-Identifier: GPL-3.0-or-later
"""Kinematics of both legs at one moment: axes, anchors, soles, transposed Jacobian.

A leg is hip (pitch, roll, twist), knee (pitch) and ankle (pitch, roll, twist): seven axes at three
anchors. All of them are columns of four frames (pelvis, thigh, shin, foot), or lie between two.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..body.character import PITCH, ROLL, TWIST, Character
from ..body.sole import Ground, sole_of
from ..geometry.skeleton import SEGMENT_INDEX, SIDES, TOES

AXES = 7  # degrees of freedom of a leg
SEGMENTS_OF_LEG = ("thigh", "shin", "foot")
_ANCHOR = [0, 0, 0, 1, 2, 2, 2]  # hip, knee, ankle: where each axis is

# Rows of the axes' matrix, and the frame (pelvis, thigh, shin, foot) and column each one is.
_HIP_PITCH, _HIP_ROLL, _HIP_TWIST, _KNEE, _ANKLE_PITCH, _ANKLE_ROLL, _ANKLE_TWIST = range(AXES)
_PELVIS, _THIGH, _SHIN, _FOOT = 0, 3, 6, 9

# f @ _CROSS, reshaped to (3, 3), is the matrix S with r @ S = r x f.
_CROSS = np.zeros((3, 9))
for _a, _b, _c in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
    _CROSS[_c, 3 * _b + _a] += 1
    _CROSS[_c, 3 * _a + _b] -= 1


class LegPlan(NamedTuple):
    """How the angles of both legs differ from the reference's (14,) [rad], and how fast that
    changes [rad/s], [rad/s^2]."""

    turn: np.ndarray
    speed: np.ndarray
    acceleration: np.ndarray

    def scaled(self, share: float) -> "LegPlan":
        """A share of it."""
        return LegPlan(*(share * values for values in self))


class Legs:
    """Both legs in the world; left before right in every array.

    After `update`: axes (2, 7, 3) world axes; anchors (2, 3, 3) hip, knee and ankle [m]. After
    `set_down`: soles, sole.Sole of each foot.
    """

    def __init__(self, character: Character) -> None:
        joints = {joint.segment: joint for joint in character.joints}
        legs = [[SEGMENT_INDEX[f"{n}_{side}"] for n in SEGMENTS_OF_LEG] for side in SIDES]
        self.segments = [segment for leg in legs for segment in leg]
        first = joints[legs[0][0]].first
        #: Where both legs' degrees of freedom are, in the order of the axes.
        self.dofs = slice(first, first + 2 * AXES)
        self._twists = first + np.array(
            [[_HIP_TWIST, _ANKLE_TWIST], [AXES + _HIP_TWIST, AXES + _ANKLE_TWIST]]
        )
        self._mix = np.zeros((2, AXES, 12))
        self._mix[:, _HIP_TWIST, _THIGH + TWIST] = 1
        self._mix[:, _KNEE, _SHIN + PITCH] = 1
        self._mix[:, _ANKLE_TWIST, _FOOT + TWIST] = 1
        for side, leg in enumerate(legs):
            hip, _, ankle = (joints[segment].basis for segment in leg)
            self._mix[side, _HIP_PITCH, _PELVIS : _PELVIS + 3] = hip[:, PITCH]
            self._mix[side, _ANKLE_PITCH, _SHIN : _SHIN + 3] = ankle[:, PITCH]
        self._columns = np.empty((2, 12, 3))
        self._feet = character.feet
        #: The hinge of the toes of each foot.
        self.toe_dofs = [joints[toe].first for toe in TOES]
        self._pick = np.arange(AXES) * 3 + np.array(_ANCHOR)

    def update(self, positions: np.ndarray, frames: np.ndarray, angles: np.ndarray) -> None:
        """Take a new state: joint positions (6, 3) [m] of thigh, shin and foot, frames (7, 3, 3),
        columns as rows, of the pelvis and of those, joint angles (dofs,) [rad]."""
        columns = self._columns
        columns[:, :3] = frames[0]
        columns[:, 3:] = frames[1:].reshape(2, 9, 3)
        # The roll axis is that of the link before the twist: turned back by it.
        twist = angles.take(self._twists)
        cos, sin = np.cos(twist), np.sin(twist)
        mix = self._mix
        mix[:, _HIP_ROLL, _THIGH + ROLL] = cos[:, 0]
        mix[:, _HIP_ROLL, _THIGH + PITCH] = -sin[:, 0]
        mix[:, _ANKLE_ROLL, _FOOT + ROLL] = cos[:, 1]
        mix[:, _ANKLE_ROLL, _FOOT + PITCH] = -sin[:, 1]
        self.axes = mix @ columns
        self.anchors = positions.reshape(2, 3, 3)
        self._bends = angles[self.toe_dofs].tolist()

    def set_down(self, grounds: Sequence[Ground]) -> None:
        """Take the sole.Ground under either foot."""
        ankles, frames = self.anchors[:, 2].tolist(), self._columns[:, _FOOT:].tolist()
        parts = zip(self._feet, ankles, frames, self._bends, grounds, strict=True)
        self.soles = tuple(sole_of(*part) for part in parts)

    def transposed_jacobian(
        self, points: np.ndarray, forces: np.ndarray, moments: np.ndarray
    ) -> np.ndarray:
        """(14,) joint torques J^T w of wrenches on points (2, 3) [m]: forces (2, 3) [N] and
        moments (2, 3) [N m] (SCA12, equations 5 and 7)."""
        skew = (forces @ _CROSS).reshape(2, 3, 3)
        total = (points[:, None] - self.anchors) @ skew
        total += moments[:, None]
        products = self.axes @ total.transpose(0, 2, 1)
        return products.reshape(2, 3 * AXES).take(self._pick, axis=1).ravel()

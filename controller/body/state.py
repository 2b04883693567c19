# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the simulated body is and how it moves, at one moment."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class State:
    """What the controller needs to know of the body at one moment. World frame.

    root: (3,) pelvis centre of mass [m]. frame: (3, 3) pelvis frame. angles: (dofs,) [rad].
    speeds: (6 + dofs,) pelvis angular [rad/s] and linear [m/s] velocity in its own frame, joint
    speeds [rad/s]. positions: (6, 3) joints of both legs [m], see `legs`. frames: (7, 3, 3) of the
    pelvis and of those, columns as rows; of the pelvis alone if the legs were not asked for.
    """

    __slots__ = ("angles", "frame", "frames", "positions", "root", "speeds")

    def __init__(
        self, places: np.ndarray, frames: np.ndarray, angles: np.ndarray, speeds: np.ndarray
    ) -> None:
        """places: (7, 3) root and positions, or the root's alone. frames, angles: as above. speeds:
        as above, but for the pelvis' in the world, which are turned in place."""
        self.frames = frames
        self.frame = frame = frames[0].T
        self.root, self.positions = places[0], places[1:]
        self.angles = angles
        speeds[:6] = (speeds[:6].reshape(2, 3) @ frame).ravel()
        self.speeds = speeds


class Pull(NamedTuple):
    """Something holds the body by a limb, of which `top` is the segment that is nearest to the
    trunk, or it sits, and `top` is the pelvis; where [m] (3,), and with what force [N] (3,)."""

    top: str
    place: Sequence[float]
    force: Sequence[float]

    @property
    def foot(self) -> bool:
        """Whether it is a foot that is held."""
        return self.top.startswith("thigh")

    @property
    def lets_step(self) -> bool:
        """Whether feet can go elsewhere all the same: it is a hand that is held."""
        return self.top.startswith("upper_arm")

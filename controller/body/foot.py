# SPDX-License-Identifier: GPL-3.0-or-later
"""A foot as two boxes: the hind foot from heel to ball, and the toes, which hinge at the ball."""

from dataclasses import dataclass

import numpy as np

from ..geometry.rotations import rotation_about
from .sole import CLEARANCE

_LEVEL = np.zeros((1, 2, 2))


@dataclass(frozen=True)
class Foot:
    """The sole in the foot's frame [m]: heel behind, ball and tip of the toes ahead of the ankle,
    half width, depth below the ankle, and how thick the toes are. Their hinge is above the ball,
    as high above the sole as they are thick."""

    heel: float
    toe: float
    half_width: float
    depth: float
    ball: float
    thickness: float

    @property
    def hinge(self) -> np.ndarray:
        """(3,) where the toes turn [m]."""
        return np.array([self.ball, 0.0, self.thickness - self.depth])

    @property
    def corners(self) -> np.ndarray:
        """(4, 3) corners of the hind foot's sole in the foot's frame [m]: heel, then ball."""
        return self._edges((-self.heel, self.ball), -self.depth)

    @property
    def tip_corners(self) -> np.ndarray:
        """(2, 3) corners of the toes' sole at their tip, in the toes' frame [m]."""
        return self._edges((self.toe - self.ball,), -self.thickness)

    def _edges(self, places: tuple[float, ...], height: float) -> np.ndarray:
        side = self.half_width
        return np.array([(x, y, height) for x in places for y in (-side, side)])

    def points(self, frames: np.ndarray, bend: np.ndarray) -> np.ndarray:
        """(F, 8, 3) from the ankle [m]: corners of the hind foot's sole, heel before ball, and of
        the toes', their edge at the ball before their tip.

        frames: (F, 3, 3) of the foot; bend: (F,) of the toes [rad].
        """
        toes = np.concatenate([self.tip_corners * [0.0, 1.0, 1.0], self.tip_corners])
        hind = np.einsum("fij,cj->fci", frames, self.corners)
        ends = np.einsum("fij,cj->fci", frames @ rotation_about(1, bend), toes)
        return np.concatenate([hind, (frames @ self.hinge)[:, None] + ends], 1)

    def profile(self, pitch: np.ndarray, bend: np.ndarray) -> np.ndarray:
        """Heel, ball and tip seen from the side.

        pitch: (F,) of the foot, nose down; bend: (F,) of the toes [rad]. Returns (F, 3, 2) ahead
        and up from the ankle [m]. The ball is the lower one of the two edges that meet there.
        """
        ahead, up = _axes(pitch)
        toes_ahead, toes_up = _axes(pitch + bend)
        hinge = self.ball * ahead + (self.thickness - self.depth) * up
        heel = -self.heel * ahead - self.depth * up
        hind_edge, toe_edge = self.ball * ahead - self.depth * up, hinge - self.thickness * toes_up
        lower = (toe_edge[:, 1] < hind_edge[:, 1])[:, None]
        ball = np.where(lower, toe_edge, hind_edge)
        tip = hinge + (self.toe - self.ball) * toes_ahead - self.thickness * toes_up
        return np.stack([heel, ball, tip], 1)


def _axes(pitch: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors (F, 2) ahead and up of what is pitched, nose down."""
    cos, sin = np.cos(pitch), np.sin(pitch)
    return np.stack([cos, -sin], -1), np.stack([sin, cos], -1)


def sole_corners(
    feet: tuple[Foot, Foot], ankles: np.ndarray, frames: np.ndarray, toe_frames: np.ndarray
) -> np.ndarray:
    """(F, 2, 6, 3) world positions of the sole corners of both feet [m]: two each of heel, ball
    and tip of the toes.

    feet: (left, right) Foot; ankles: (F, 2, 3) [m]; frames, toe_frames: (F, 2, 3, 3) of the feet
    and of the toes.
    """
    hind = np.stack([foot.corners for foot in feet])
    tips = np.stack([foot.tip_corners for foot in feet])
    hinges = ankles + np.einsum("fsij,sj->fsi", frames, np.stack([foot.hinge for foot in feet]))
    hind = ankles[:, :, None] + np.einsum("fsij,scj->fsci", frames, hind)
    tips = hinges[:, :, None] + np.einsum("fsij,scj->fsci", toe_frames, tips)
    return np.concatenate([hind, tips], 2)


def parts_down(corners: np.ndarray, slopes: np.ndarray = _LEVEL) -> np.ndarray:
    """(F, 2, 3) how much of heel, ball and tip of both feet is down: from 1 for the lowest of them
    to 0 for one that is higher by sole.CLEARANCE, as sole.Sole has it.

    corners: (F, 2, 6, 3) of `sole_corners` [m]. slopes: (F, 2, 2) how what is under each foot rises
    along x and y.
    """
    rise = (slopes[..., None, :] * corners[..., :2]).sum(-1)
    heights = (corners[..., 2] - rise).reshape(*corners.shape[:2], 3, 2).min(-1)
    return np.clip(1 - (heights - heights.min(-1, keepdims=True)) / CLEARANCE, 0, 1)

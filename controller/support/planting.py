# SPDX-License-Identifier: GPL-3.0-or-later
"""A reference in place that a body with these feet can perform: weight above what is down of them.

Feet roll as captured (see `rolling`), and the hips are moved by the little that brings the
zero-moment point inside what is down of the soles: above the balls where the heels rise.
"""

import numpy as np

from ..body.character import Character
from ..body.footing import Footing, floors_under, level
from ..body.momentum import GRAVITY, com_dynamics, zero_moment_point
from ..body.sole import CLEARANCE
from ..geometry.skeleton import FEET
from ..geometry.stance import DIRECTIONS, support_reach
from ..geometry.trajectory import Trajectory
from .rolling import RolledFeet
from .terrain import Terrain

#: Low-pass [Hz] of what stays in place: by trial on captured clips; SCA12 has 3, for a dance 2.
IN_PLACE_CUTOFF = 4.0
#: What the zero-moment point keeps from the edge of one foot, of two, of the sole's half width; no
#: more than so much of how far the support extends. By trial on captured clips in place.
_MARGIN, _DUAL_MARGIN = 0.6, 1.5
_MARGIN_SHARE = 0.35
#: How often the hips are moved and the feet planted again (by trial).
ROUNDS = 2


def physical(
    character: Character,
    trajectory: Trajectory,
    contacts: np.ndarray,
    cutoff: float,
    footings: tuple[Footing, Footing] | None = None,
    on_mark: bool = True,
    terrain: Terrain | None = None,
    rounds: int = ROUNDS,
    held: np.ndarray | None = None,
) -> Trajectory:
    """Trajectory with feet that stand and roll, and the weight above them.

    contacts: (F, 2) stance of left and right. cutoff [Hz]: what the controller will see of it.
    footings, on_mark, terrain: as `rolling.RolledFeet` has them. rounds: how
    often the hips are moved. held: (F,) where something holds the body, so that it may lean; None
    for never.
    """
    footings = footings or level(character.ground, len(contacts))
    feet = RolledFeet(
        character, trajectory, contacts, footings, terrain, in_place=True, on_mark=on_mark
    )
    shift = np.zeros_like(trajectory.root)
    planted = feet.trajectory()
    bears = contacts if held is None else contacts & ~held[:, None]
    for _ in range(rounds):
        shift = shift + _weight_shift(character, planted, contacts, bears, cutoff, footings)
        planted = feet.trajectory(shift)
    return planted


def _weight_shift(
    character: Character,
    trajectory: Trajectory,
    contacts: np.ndarray,
    bears: np.ndarray,
    cutoff: float,
    footings: tuple[Footing, Footing],
) -> np.ndarray:
    """(F, 3) horizontal displacement of the hips [m] that takes the zero-moment point inside, where
    feet alone bear the body: bears (F, 2).

    With the correction d of the centre of mass at height z, the zero-moment point moves by
    d - (z / g) d''; the bounded solution for a wanted movement is its convolution with
    exp(-|t| / T) / 2T, T = sqrt(z / g): the body leans before it must.
    """
    smooth = trajectory.smoothed(cutoff).trajectory
    joints, frames = character.pose(smooth)
    centres = character.body_centres(joints, frames)
    dynamics = com_dynamics(character, centres, frames, trajectory.rate, cutoff)
    floors = floors_under(footings, joints[:, FEET], contacts)
    point = zero_moment_point(character, dynamics, floors)
    corners = _carrying(character.sole_corners(joints, frames), footings)
    margin = np.where(contacts.all(1), _DUAL_MARGIN, _MARGIN) * character.feet[0].half_width
    reach = support_reach(corners, bears)
    extent = reach + np.roll(reach, len(DIRECTIONS) // 2, axis=1)
    extent[~bears.any(1)] = 0
    reach = reach - np.minimum(margin[:, None], _MARGIN_SHARE * extent)
    wanted = inside(point, reach) - point
    over = dynamics.com[:, 2] - (floors - character.ground)
    height = float(np.median(over)) - character.ground
    pad = len(wanted) - 1
    mirrored = np.concatenate([wanted, wanted[pad - 1 : 0 : -1]])
    frequency = np.fft.rfftfreq(len(mirrored), 1 / trajectory.rate)[:, None]
    gain = 1 / (1 + (height / GRAVITY) * (2 * np.pi * frequency) ** 2)
    shift = np.fft.irfft(np.fft.rfft(mirrored, axis=0) * gain, len(mirrored), axis=0)
    return np.pad(shift[: len(wanted)], ((0, 0), (0, 1)))


def _carrying(corners: np.ndarray, footings: tuple[Footing, Footing]) -> np.ndarray:
    """Sole corners (F, 2, n, 3) [m], those that are up drawn to the middle of the others."""
    heights = np.stack([footings[side].untilted(corners[:, side]) for side in range(2)], 1)
    down = np.clip(1 - (heights - heights.min(-1, keepdims=True)) / CLEARANCE, 0, 1)[..., None]
    middle = (down * corners).sum(2, keepdims=True) / down.sum(2, keepdims=True)
    return middle + down * (corners - middle)


def inside(points: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """(F, 2) points moved into the regions that extend (F, 16) along DIRECTIONS; those without a
    region stay."""
    points = points.copy()
    for _ in range(3):
        for direction, limit in zip(DIRECTIONS, reach.T, strict=True):
            beyond = np.maximum(points @ direction - limit, 0.0)
            points -= np.where(np.isfinite(beyond), beyond, 0.0)[:, None] * direction
    return points

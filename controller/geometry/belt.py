# SPDX-License-Identifier: GPL-3.0-or-later
"""Walks on the spot: the belt that feet walk on, as on a treadmill.

Game engines and libraries have walks and runs whose body stays where it is while the feet slide
back under it. No floor does that; but a floor that went away under them would, and it is found
from what touches it. `researcher.md`, Walks on the spot, has what it is worth.
"""

from functools import partial

import numpy as np

from .rotations import packed
from .stance import Above
from .trajectory import bell

#: Feet of a clip that walks on the spot go with the floor at this speed [m/s] or faster, so far in
#: all at least [m, adult]. Captured: none for half of the time.
BELT_SPEED, BELT_LENGTH = 0.3, 0.5

# By trial on captured walks and runs whose travel was taken away, and on all other clips.
#: A foot may touch that is lower than this, and no higher than the other one by so much more
#: [m, adult]; a point of its sole does the less the higher it is above the lowest one. Heights are
#: above what the lower foot is under for this share of the time: the floor of a body that was
#: measured as if it stood is centimetres off.
_LOW, _LEVEL, _TOUCH, _OFTEN = 0.05, 0.01, 0.005, 0.3
#: Speeds of what touches are averaged over a bell of so long [s]; a longer one where both feet are
#: so high [m, adult] for so much of the time, as in a run, which tells little of its speed. In so
#: many rounds, in which those count the less that are off by this [m/s]; where nothing is known it
#: goes on as it was.
_TIME, _TIME_OF_RUNS, _HIGH, _FLIES = 0.4, 0.9, 0.03, 0.05
_ROUNDS, _SCATTER, _HARDLY = 12, 0.15, 1e-3
#: It is a belt if it moves for this share of the time that feet touch, if for this share of that
#: either foot goes with it, within half of its speed, and if the body goes less than half as far
#: with it: else it rides.
_MOVES, _AGREES, _RIDES = 0.5, 0.5, 0.5


def find_belt(
    corners: np.ndarray, over: Above, root: np.ndarray, rate: float, size: float
) -> np.ndarray | None:
    """(F, 2) velocity [m/s] with which the floor would have to go for the feet to stand on it; None
    where they do as it is, or walk on no such thing.

    corners: (F, 2, n, 3) of the soles [m]; over: what is under them; root: (F, 3) of the body [m];
    rate [Hz]; size: of the feet, as `stance.adult_size` has it.
    """
    heights = over.heights / size
    low = heights.min(-1)
    low = low - np.quantile(low.min(1), _OFTEN)
    touches = (low < _LOW) & (low < low.min(1)[:, None] + _LEVEL)
    if not touches.any(0).all():
        return None
    velocities = np.gradient(corners, axis=0)[..., :2] * rate - over.drifts[..., :2]
    weights = np.exp(packed((heights.min(-1, keepdims=True) - heights) / _TOUCH))[..., None]
    soles = (weights * velocities).sum(2) / weights.sum(2)
    belt = np.tile(np.median(soles[touches], axis=0), (len(soles), 1))
    flies = (low.min(1) > _HIGH).mean() > _FLIES
    averaged = partial(_averaged, seconds=_TIME_OF_RUNS if flies else _TIME, rate=rate)
    for _ in range(_ROUNDS):
        off = np.linalg.norm(soles - belt[:, None], axis=-1)
        trust = touches / (1 + (off / _SCATTER) ** 2)
        known = averaged((trust[..., None] * soles).sum(1))
        trusted = averaged(trust.sum(1)[:, None])
        belt = (known + _HARDLY * belt) / (trusted + _HARDLY)
    speed = np.linalg.norm(belt, axis=1)
    moves = touches & (speed > BELT_SPEED)[:, None]
    if speed.sum() / rate < BELT_LENGTH * size or moves.sum() < _MOVES * touches.sum():
        return None
    off = np.linalg.norm(soles - belt[:, None], axis=-1)
    agrees = moves & (off < speed[:, None] / 2)
    if (agrees.sum(0) <= _AGREES * moves.sum(0)).any():  # as of a foot that never goes with it
        return None
    ahead = belt / np.maximum(speed, _HARDLY)[:, None]
    ridden = (np.gradient(root[:, :2], axis=0) * ahead).sum() * rate
    return belt if ridden < _RIDES * speed.sum() else None


def way_over(belt: np.ndarray, rate: float) -> np.ndarray:
    """(F, 3) how far a body goes [m] that walks over a belt with velocities (F, 2) [m/s]."""
    way = np.zeros((len(belt), 3))
    way[1:, :2] = -np.cumsum((belt[1:] + belt[:-1]) / 2, axis=0) / rate
    return way


def _averaged(values: np.ndarray, seconds: float, rate: float) -> np.ndarray:
    """(F, n) values over a bell of so many seconds, and nothing beyond the ends."""
    edge = round(seconds * rate)
    padded = np.pad(values, ((edge, edge), (0, 0)))
    smooth = np.stack([bell(column, seconds, rate) for column in padded.T], 1)
    return smooth[edge : edge + len(values)]

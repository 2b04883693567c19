# SPDX-License-Identifier: GPL-3.0-or-later
"""Legs whose ankles are where they should be: two-bone inverse kinematics, frames of feet, and
lengths."""

from collections.abc import Sequence

import numpy as np

from .rotations import matrix_from_quaternion, unit
from .skeleton import SEGMENT_INDEX, SIDES

#: Of a leg's length, how far its ankle may be from the hip: at 1 the plane of the knee is lost. And
#: how near: that is a knee bent by 157 degrees. Both by trial on the captured clips.
LONGEST, _NEAREST = 0.999, 0.2


def leg_length(joints: np.ndarray, side: str) -> np.ndarray:
    """(F,) length [m] of thigh and shin of joints (F, S, 3)."""
    hip, knee, ankle = (joints[:, SEGMENT_INDEX[f"{n}_{side}"]] for n in ("thigh", "shin", "foot"))
    return np.linalg.norm(knee - hip, axis=1) + np.linalg.norm(ankle - knee, axis=1)


def bend_leg(joints: np.ndarray, frames: np.ndarray, side: str, ankle: np.ndarray) -> None:
    """Turn thigh and shin so that the ankle is at (F, 3), the knee in the plane it was in."""
    thigh, shin, foot = (SEGMENT_INDEX[f"{n}_{side}"] for n in ("thigh", "shin", "foot"))
    hip, knee = joints[:, thigh], joints[:, shin]
    upper = np.linalg.norm(knee - hip, axis=1)
    lower = np.linalg.norm(joints[:, foot] - knee, axis=1)
    reach = ankle - hip
    distance = np.linalg.norm(reach, axis=1)
    distance = np.clip(distance, _NEAREST * (upper + lower), LONGEST * (upper + lower))
    down = unit(reach)
    left = frames[:, thigh, :, 1]
    left = unit(left - (left * down).sum(1, keepdims=True) * down)
    ahead = np.cross(down, left)  # x = y cross z with z up: forward is left x (-down)
    cosine = np.clip((upper**2 + distance**2 - lower**2) / (2 * upper * distance), -1, 1)
    sine = np.sqrt(1 - cosine**2)
    new_knee = hip + upper[:, None] * (cosine[:, None] * down + sine[:, None] * ahead)
    end = hip + distance[:, None] * down
    joints[:, shin], joints[:, foot] = new_knee, end
    for segment, vector in ((thigh, hip - new_knee), (shin, new_knee - end)):
        z = unit(vector)
        frames[:, segment] = np.stack([np.cross(left, z), left, z], -1)


def too_high(hip: np.ndarray, ankle: np.ndarray, most: np.ndarray) -> np.ndarray:
    """(F,) how far [m] hips (F, 3) are too high for ankles at (F, 3) and legs of at most (F,)
    [m]."""
    beside = np.linalg.norm((ankle - hip)[:, :2], axis=1)
    return hip[:, 2] - ankle[:, 2] - np.sqrt(np.maximum(most**2 - beside**2, 0))


def sinking(
    joints: np.ndarray, aims: Sequence[np.ndarray], hips: np.ndarray | None = None
) -> np.ndarray:
    """(F,) how far [m] a body of joints (F, S, 3) is too high for its ankles to be at aims (F, 3),
    left and right, with legs that reach no farther than they do. hips: (F, 3) by which its hips are
    moved before."""
    over = np.zeros(len(joints))
    for side, aim in zip(SIDES, aims, strict=True):
        hip, ankle = (joints[:, SEGMENT_INDEX[f"{name}_{side}"]] for name in ("thigh", "foot"))
        most = np.linalg.norm(ankle - hip, axis=1)
        most = np.maximum(most, LONGEST * leg_length(joints, side))
        over = np.maximum(over, too_high(hip if hips is None else hip + hips, aim, most))
    return over


def usual(rotations: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """(3,) what vectors (F, 3) that turn with rotations (F, 4) mostly are in their frame: of a leg
    that is stretched as long as the body has it, if these are of its whole motion."""
    return np.median(_local(matrix_from_quaternion(rotations), vectors), axis=0)


def unstretched(
    rotations: np.ndarray, vectors: np.ndarray, share: np.ndarray, own: np.ndarray
) -> np.ndarray:
    """(F, 3) vectors that turn with (F, 4) rotations, as far as a share (F,) says as they usually
    are. own: (3,) of `usual`."""
    axes = matrix_from_quaternion(rotations)
    share = np.reshape(share, (-1, 1))
    return (axes @ ((1 - share) * _local(axes, vectors) + share * own)[..., None])[..., 0]


def _local(axes: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """(F, 3) vectors in frames (F, 3, 3)."""
    return np.einsum("fji,fj->fi", axes, vectors)


def in_plane(ahead: np.ndarray, up: np.ndarray) -> np.ndarray:
    """Unit vectors (..., 3) ahead, turned into the planes that unit vectors (..., 3) are up of."""
    tilted = unit(ahead - (ahead * up).sum(-1, keepdims=True) * up)
    return np.where(up[..., 2:] < 1, tilted, ahead)

# SPDX-License-Identifier: GPL-3.0-or-later
"""Inverse kinematics of the reference's legs, for feet that are to be elsewhere than it has them.

Legs are turned by the difference between two solutions, with and without the offsets of the feet:
no offset changes nothing.
"""

from collections.abc import Sequence
from math import asin, atan2, sqrt
from typing import NamedTuple

import numpy as np

from ..body.character import Character
from ..geometry.rotations import frame_from_up, rotation_about
from ..geometry.skeleton import SEGMENT_INDEX, SIDES
from ..reference.reference import Reference
from .legs import SEGMENTS_OF_LEG

#: [m] from hip to ankle: no leg folds more. By judgement.
SHORTEST = 0.3
#: Of its length: a straight leg has no knee to solve for. So near that it does not show.
_LONGEST_LEG = 0.9999


class LegPose(NamedTuple):
    """The reference at one moment: pelvis (3,) [m] and its frame (3, 3), ankles (2, 3) [m], frames
    (2, 3, 3) of the soles, left: axes (2, 3) of the knees, and both legs' own angles (7,) [rad]."""

    pelvis: np.ndarray
    frame: np.ndarray
    ankles: np.ndarray
    soles: np.ndarray
    left: np.ndarray
    own: tuple[np.ndarray, ...] = ()


class ReferenceLegs:
    """Both legs of a reference, left before right.

    joints: hip, knee and ankle of each; lengths: of thigh and shin [m].
    """

    def __init__(self, character: Character, reference: Reference) -> None:
        joints = {joint.segment: joint for joint in character.joints}
        legs = [[SEGMENT_INDEX[f"{n}_{side}"] for n in SEGMENTS_OF_LEG] for side in SIDES]
        self.joints = [[joints[segment] for segment in leg] for leg in legs]
        self.lengths = [[-float(joint.offset[2]) for joint in leg[1:]] for leg in self.joints]
        self._reference, self._character = reference, character
        self._track: tuple[np.ndarray, ...] | None = None
        #: By time: a search asks for the same moments again and again.
        self._poses: dict[float, LegPose] = {}

    def pose(self, time: float) -> LegPose:
        """The reference at a time [s]."""
        pose = self._poses.get(time)
        if pose is None:
            pose = self._poses[time] = self._pose(time)
        return pose

    def _pose(self, time: float) -> LegPose:
        reference = self._reference
        if self._track is None:
            positions, frames = self._character.pose(reference.trajectory)
            feet, thighs = ([leg[i].segment for leg in self.joints] for i in (2, 0))
            self._track = (
                positions[:, 0],
                frames[:, 0],
                positions[:, feet],
                frames[:, feet],
                frames[:, thighs][..., 1],
            )
        last = len(reference) - 1
        at = min(time * reference.rate / reference.steps_per_sample, float(last))
        low = min(int(at), last - 1)
        pelvis, frame, ankles, feet, left = (
            values[low] + (at - low) * (values[low + 1] - values[low]) for values in self._track
        )
        soles = frame_from_up(feet[:, :, 2], feet[:, :, 1])
        pose = LegPose(pelvis, frame, ankles, soles, left)
        own = tuple(self.angles(i, pelvis, frame, ankles[i], pose) for i in range(2))
        return pose._replace(own=own)

    def angles(
        self, i: int, pelvis: np.ndarray, frame: np.ndarray, ankle: np.ndarray, pose: LegPose
    ) -> np.ndarray:
        """(7,) angles of a leg whose ankle is at (3,) [m], or as near as it reaches."""
        thigh, shin, foot = self.joints[i]
        upper, lower = self.lengths[i]
        hip = pelvis + frame @ thigh.offset
        x, y, z = (ankle - hip).tolist()
        length = sqrt(x * x + y * y + z * z)
        reach = min(max(length, SHORTEST), _LONGEST_LEG * (upper + lower))
        x, y, z = x / length, y / length, z / length  # from hip to ankle
        a, b, c = pose.left[i].tolist()
        along = a * x + b * y + c * z
        a, b, c = a - along * x, b - along * y, c - along * z
        length = sqrt(a * a + b * b + c * c)
        a, b, c = a / length, b / length, c / length  # the knee's axis
        cosine = (upper**2 + reach**2 - lower**2) / (2 * upper * reach)
        sine = sqrt(max(1 - cosine**2, 0.0))
        # Up along the thigh and the shin, in the plane across the axis: in parts of hip to ankle,
        # and of what is ahead of that.
        shin_along, shin_ahead = (reach - upper * cosine) / lower, upper * sine / lower
        ahead = y * c - z * b, z * a - x * c, x * b - y * a
        up = [-cosine * u - sine * v for u, v in zip((x, y, z), ahead, strict=True)]
        thigh_frame = _frame((a, b, c), up)
        up = [-shin_along * u + shin_ahead * v for u, v in zip((x, y, z), ahead, strict=True)]
        bend = (thigh_frame @ shin.basis).T @ _frame((a, b, c), up)
        bend = atan2(bend[0, 2], bend[2, 2])
        above = thigh_frame @ shin.basis @ rotation_about(1, bend) @ foot.basis
        return np.array(
            [
                *_yxz((frame @ thigh.basis).T @ thigh_frame),
                bend,
                *_yxz(above.T @ pose.soles[i]),
            ]
        )


def _frame(left: Sequence[float], up: Sequence[float]) -> np.ndarray:
    """(3, 3) frame from two of its axes, which are at right angles."""
    (a, b, c), (u, v, w) = left, up
    return np.array([[b * w - c * v, a, u], [c * u - a * w, b, v], [a * v - b * u, c, w]])


def _yxz(matrix: np.ndarray) -> tuple[float, float, float]:
    """Angles of a (3, 3) matrix as `rotations.angles_yxz` has them."""
    (_, _, x), (d, e, f), (_, _, z) = matrix.tolist()
    return atan2(x, z), asin(min(max(-f, -1.0), 1.0)), atan2(d, e)

# SPDX-License-Identifier: GPL-3.0-or-later
"""Inverse kinematics of the reference's legs, for feet that are to be elsewhere than it has them.

Legs are turned by the difference between two solutions, with and without the offsets of the feet:
no offset changes nothing.
"""

from math import asin, atan2, sqrt

import numpy as np

from ..geometry.rotations import frame_from_up, rotation_about
from ..geometry.skeleton import SEGMENT_INDEX, SIDES
from .legs import SEGMENTS_OF_LEG

SHORTEST = 0.3  # [m] from hip to ankle
_LONGEST_LEG = 0.9999  # of its length: a straight leg has no knee to solve for


class ReferenceLegs:
    """Both legs of a reference, left before right.

    joints: hip, knee and ankle of each; lengths: of thigh and shin [m].
    """

    def __init__(self, character, reference):
        joints = {joint.segment: joint for joint in character.joints}
        legs = [[SEGMENT_INDEX[f"{n}_{side}"] for n in SEGMENTS_OF_LEG] for side in SIDES]
        self.joints = [[joints[segment] for segment in leg] for leg in legs]
        self.lengths = [[-float(joint.offset[2]) for joint in leg[1:]] for leg in self.joints]
        self._reference, self._character = reference, character
        self._track = None
        self._poses = {}  # by time: a search asks for the same moments again and again

    def pose(self, time):
        """The reference at a time [s]: pelvis (3,) and its frame, ankles (2, 3), frames of the
        feet (2, 3, 3), the axes (2, 3) of the knees and the legs' own angles (2, 7)."""
        pose = self._poses.get(time)
        if pose is None:
            pose = self._poses[time] = self._pose(time)
        return pose

    def _pose(self, time):
        reference = self._reference
        if self._track is None:
            positions, frames = self._character.pose(reference.trajectory)
            feet, thighs = ([leg[i].segment for leg in self.joints] for i in (2, 0))
            self._track = {
                "pelvis": positions[:, 0],
                "frame": frames[:, 0],
                "ankles": positions[:, feet],
                "feet": frames[:, feet],
                "left": frames[:, thighs][..., 1],
            }
        last = len(reference) - 1
        at = min(time * reference.rate / reference.steps_per_sample, float(last))
        low = min(int(at), last - 1)
        pose = {
            name: values[low] + (at - low) * (values[low + 1] - values[low])
            for name, values in self._track.items()
        }
        feet = pose["feet"]
        pose["soles"] = frame_from_up(feet[:, :, 2], feet[:, :, 1])
        placed = pose["pelvis"], pose["frame"]
        pose["own"] = [self.angles(i, *placed, pose["ankles"][i], pose) for i in range(2)]
        return pose

    def angles(self, i, pelvis, frame, ankle, pose):
        """(7,) angles of a leg whose ankle is at (3,) [m], or as near as it reaches."""
        thigh, shin, foot = self.joints[i]
        upper, lower = self.lengths[i]
        hip = pelvis + frame @ thigh.offset
        x, y, z = (ankle - hip).tolist()
        length = sqrt(x * x + y * y + z * z)
        reach = min(max(length, SHORTEST), _LONGEST_LEG * (upper + lower))
        x, y, z = x / length, y / length, z / length  # from hip to ankle
        a, b, c = pose["left"][i].tolist()
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
                *_yxz(above.T @ pose["soles"][i]),
            ]
        )


def _frame(left, up):
    """(3, 3) frame from two of its axes, which are at right angles."""
    (a, b, c), (u, v, w) = left, up
    return np.array([[b * w - c * v, a, u], [c * u - a * w, b, v], [a * v - b * u, c, w]])


def _yxz(matrix):
    """Angles of a (3, 3) matrix as `rotations.angles_yxz` has them."""
    (_, _, x), (d, e, f), (_, _, z) = matrix.tolist()
    return atan2(x, z), asin(min(max(-f, -1.0), 1.0)), atan2(d, e)

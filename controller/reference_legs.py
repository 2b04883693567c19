# SPDX-License-Identifier: GPL-3.0-or-later
"""Inverse kinematics of the reference's legs, for feet that are to be elsewhere than it has them.

Legs are turned by the difference between two solutions, with and without the offsets of the feet:
no offset changes nothing.
"""

from math import atan2, sqrt

import numpy as np

from .legs import SEGMENTS_OF_LEG
from .rotations import angles_yxz, frame_from_up, rotation_about, unit
from .skeleton import SEGMENT_INDEX, SIDES

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

    def pose(self, time):
        """The reference at a time [s]: pelvis (3,) and its frame, ankles (2, 3), frames of the
        feet (2, 3, 3) and the axes (2, 3) of the knees."""
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
        return {
            name: values[low] + (at - low) * (values[low + 1] - values[low])
            for name, values in self._track.items()
        }

    def angles(self, i, pelvis, frame, ankle, pose):
        """(7,) angles of a leg whose ankle is at (3,) [m], or as near as it reaches."""
        thigh, shin, foot = self.joints[i]
        upper, lower = self.lengths[i]
        hip = pelvis + frame @ thigh.offset
        gap = ankle - hip
        length = sqrt(gap @ gap)
        reach = min(max(length, SHORTEST), _LONGEST_LEG * (upper + lower))
        along = gap / length
        axis = unit(pose["left"][i] - (pose["left"][i] @ along) * along)
        cosine = (upper**2 + reach**2 - lower**2) / (2 * upper * reach)
        ahead = np.cross(along, axis)
        knee = hip + upper * (cosine * along + sqrt(max(1 - cosine**2, 0.0)) * ahead)
        ankle = hip + reach * along
        thigh_frame = frame_from_up(hip - knee, axis)
        shin_frame = frame_from_up(knee - ankle, axis)
        foot_frame = frame_from_up(pose["feet"][i][:, 2], pose["feet"][i][:, 1])
        bend = (thigh_frame @ shin.basis).T @ shin_frame
        bend = atan2(bend[0, 2], bend[2, 2])
        above = thigh_frame @ shin.basis @ rotation_about(1, bend) @ foot.basis
        turns = np.stack([(frame @ thigh.basis).T @ thigh_frame, above.T @ foot_frame])
        hip_angles, ankle_angles = angles_yxz(turns)
        return np.array([*hip_angles, bend, *ankle_angles])

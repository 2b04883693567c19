# SPDX-License-Identifier: GPL-3.0-or-later
"""A person made of numbers: an adult of 1.75 m, the legs by inverse kinematics.

A Score says over time what the trunk, the arms and the swinging leg do, and where the centre of
mass should be; the pelvis is shifted until it is there.
"""

from functools import cache

import numpy as np

from ..controller import Character, Motion
from ..controller.geometry.rotations import (
    exponential,
    matrix_from_quaternion,
    quaternion_from_matrix,
    rotation_about,
    rotation_vector,
    unit,
)
from ..controller.geometry.skeleton import JOINT_OF, LANDMARKS, SEGMENTS, SIDES

STATURE = 1.75  # [m]
RATE = 60.0  # [Hz]

#: Joint centres of the upright person as shares of stature (Winter), x forward, y left.
_UPRIGHT = {
    "pelvis": (0.0, 0.0, 0.56),
    "lumbar": (0.0, 0.0, 0.60),
    "neck": (0.0, 0.0, 0.82),
    "head_top": (0.0, 0.0, 1.0),
    "shoulder": (0.0, 0.11, 0.81),
    "elbow": (0.0, 0.11, 0.64),
    "wrist": (0.0, 0.11, 0.49),
    "fingertip": (0.0, 0.11, 0.385),
    "hip": (0.0, 0.055, 0.53),
    "knee": (0.0, 0.055, 0.285),
    "ankle": (0.0, 0.055, 0.039),
    "ball": (0.075, 0.055, 0.015),
    "toe": (0.11, 0.055, 0.015),
}
_ANKLE = STATURE * _UPRIGHT["ankle"][2]
_UPPER = STATURE * (_UPRIGHT["hip"][2] - _UPRIGHT["knee"][2])
_LOWER = STATURE * (_UPRIGHT["knee"][2] - _UPRIGHT["ankle"][2])
_LONGEST = 0.985 * (_UPPER + _LOWER)  # [m] of a leg that carries: its knee is bent by 20 degrees
_AHEAD = 0.05  # [m] centre of mass before the ankles
_ROUNDS = 6


class Score:
    """What a made person does over F samples, to be filled in; as it is made, it stands still.

    com (F, 2): centre of mass, forward of where it is at rest and left of the middle [m]. lower
    (F,): hips below the height of nearly straight legs [m]. pelvis, trunk (F, 3): rotation vectors
    in the world [rad]. arms (F, 2, 3): how far the left and the right arm is raised forward,
    sideways, and bent at the elbow [rad]. lift (F, 2): 0 for a foot on the floor, 1 for a free one.
    swing (F, 2, 3): of a free leg the angle forward and outward [rad], and how much of its length
    the bent knee takes up.
    """

    def __init__(self, name, time, width=STATURE * _UPRIGHT["hip"][1]):
        """time: (F,) [s]. width: of the ankles to the left and right of the middle [m]."""
        self.name, self.time = name, time
        count = len(time)
        self.com, self.lower = np.zeros((count, 2)), np.zeros(count)
        self.pelvis, self.trunk = np.zeros((count, 3)), np.zeros((count, 3))
        self.arms = np.tile([0.05, 0.15, 0.25], (count, 2, 1))
        self.lift = np.zeros((count, 2))
        self.swing = np.tile([0.0, 0.0, 0.03], (count, 2, 1))
        self._ankles = np.array([[0, width, _ANKLE], [0, -width, _ANKLE]])

    def keyed(self, *keys):
        """(F, ...) values through keys (time, value), at rest at each."""
        times = np.array([key[0] for key in keys], float)
        values = np.array([key[1] for key in keys], float)
        low = np.clip(np.searchsorted(times, self.time, "right") - 1, 0, len(keys) - 2)
        part = np.clip((self.time - times[low]) / (times[low + 1] - times[low]), 0, 1)
        part = _ease(part).reshape(-1, *[1] * (values.ndim - 1))
        return values[low] + part * (values[low + 1] - values[low])

    def motion(self):
        """The Motion: the pelvis is where it brings the centre of mass to where it should be."""
        body = _adult()
        goal = self.com + [_AHEAD, 0]
        plan = goal.copy()
        for _ in range(_ROUNDS):
            frames, points = self.pose(plan)
            joints = np.stack([points[JOINT_OF[s]] for s in SEGMENTS], 1)
            centres = body.body_centres(joints, frames)
            plan += goal - np.einsum("fsi,s->fi", centres, body.masses / body.mass)[:, :2]
        frames, points = self.pose(plan)
        rotations = quaternion_from_matrix(frames)
        return Motion(self.name, RATE, rotations, np.stack([points[n] for n in LANDMARKS], 1))

    def pose(self, plan):
        """Segment frames (F, S, 3, 3) and landmarks (F, 3) by name, the pelvis above (F, 2)."""
        count = len(self.time)
        frames = {
            "pelvis": matrix_from_quaternion(exponential(self.pelvis)),
            "trunk": matrix_from_quaternion(exponential(self.trunk)),
            "head": matrix_from_quaternion(exponential(0.3 * self.trunk)),
        }
        points = {"pelvis": np.column_stack([plan, np.zeros(count)])}
        _hang(points, frames, "pelvis", "lumbar", "hip_l", "hip_r")
        points["pelvis"][:, 2] = self._height(points)
        _hang(points, frames, "pelvis", "lumbar", "hip_l", "hip_r")
        _hang(points, frames, "trunk", "neck", "shoulder_l", "shoulder_r")
        _hang(points, frames, "head", "head_top")
        for i, (side, sign) in enumerate(zip(SIDES, (1, -1), strict=True)):
            ahead, aside, bend = self.arms[:, i].T
            upper = rotation_about(1, -ahead) @ rotation_about(0, sign * aside)
            frames[f"upper_arm_{side}"] = frames["trunk"] @ upper
            frames[f"forearm_{side}"] = frames[f"upper_arm_{side}"] @ rotation_about(1, -bend)
            _hang(points, frames, f"upper_arm_{side}", f"elbow_{side}")
            _hang(points, frames, f"forearm_{side}", f"wrist_{side}", f"fingertip_{side}")
            self._leg(points, frames, i, side, sign)
        return np.stack([frames[s] for s in SEGMENTS], 1), points

    def _height(self, points):
        """(F,) of the pelvis [m]: what the legs that stand allow."""
        total = 0.0
        for ankle, lift, side in zip(self._ankles, self.lift.T, SIDES, strict=True):
            apart = points[f"hip_{side}"] - ankle
            square = (apart[:, :2] ** 2).sum(1)
            total += (1 - lift) * (np.sqrt(_LONGEST**2 - square) - apart[:, 2])
        return total / (2 - self.lift.sum(1)) - self.lower

    def _leg(self, points, frames, i, side, sign):
        """A leg by two-bone IK, its knee forward. A foot leaves the floor straight up before it
        goes anywhere, and is then held half way between flat and square to the shin."""
        hip, lift = points[f"hip_{side}"], self.lift[:, i]
        away = _ease(np.clip((lift - 0.3) / 0.7, 0, 1))
        ahead, aside, short = self.swing[:, i].T
        along = np.stack(
            [np.sin(ahead) * np.cos(aside), sign * np.sin(aside), -np.cos(ahead) * np.cos(aside)], 1
        )
        free = hip + (1 - short)[:, None] * (_UPPER + _LOWER) * along
        share = np.stack([away, away, lift], 1)
        ankle = self._ankles[i] + share * (free - self._ankles[i])
        knee, left = _knee(hip, ankle)
        points[f"knee_{side}"] = knee
        for segment, vector in ((f"thigh_{side}", hip - knee), (f"shin_{side}", knee - ankle)):
            z = unit(vector)
            frames[segment] = np.stack([np.cross(left, z), left, z], -1)
        points[f"ankle_{side}"] = ankle
        turn = rotation_vector(quaternion_from_matrix(frames[f"shin_{side}"]))
        frames[f"foot_{side}"] = matrix_from_quaternion(exponential(0.5 * away[:, None] * turn))
        frames[f"toe_{side}"] = frames[f"foot_{side}"]
        _hang(points, frames, f"foot_{side}", f"ball_{side}", f"toe_{side}")


def _hang(points, frames, segment, *landmarks):
    """Add landmarks that are fixed in a segment."""
    joint = JOINT_OF[segment]
    for name in landmarks:
        points[name] = points[joint] + frames[segment] @ (_rest(name) - _rest(joint))


def _rest(name):
    """(3,) position of a landmark of the upright person [m]."""
    middle, _, side = name.rpartition("_")
    share = _UPRIGHT[name if name in _UPRIGHT else middle]
    return STATURE * np.array(share) * [1, -1 if side == "r" else 1, 1]


def _knee(hip, ankle):
    """Knee (F, 3) [m] of a leg that bends forward, and the axis (F, 3) to the left it turns on."""
    reach = ankle - hip
    distance = np.linalg.norm(reach, axis=1, keepdims=True)
    down = reach / distance
    left = unit(np.array([0.0, 1, 0]) - down[:, 1:2] * down)
    along = (_UPPER**2 + distance**2 - _LOWER**2) / (2 * distance)
    return hip + along * down + np.sqrt(_UPPER**2 - along**2) * np.cross(down, left), left


def _ease(share):
    """0 to 1 with neither speed nor acceleration at the ends."""
    return share**3 * (10 - 15 * share + 6 * share**2)


@cache
def _adult():
    """The body of the person, who need not be exactly that of a clip."""
    frames = np.tile([1.0, 0, 0, 0], (2, len(SEGMENTS), 1))
    points = np.stack([[_rest(name) for name in LANDMARKS]] * 2)
    return Character.from_motion(Motion("upright", RATE, frames, points))

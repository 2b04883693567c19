# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the soles of a figure are, in its rest pose and as it is posed."""

import numpy as np
from mathutils import Vector


def sole(bones, side):
    """Height of the sole [m] and its heel, ball and toe along Y, in the rest pose."""
    ankle, ball, toe = (
        bones[f"{side}{name}"].head_local for name in ("Foot", "ToeBase", "ToeBase")
    )
    toe = bones[f"{side}ToeBase"].tail_local
    return toe.z, ankle.y + 0.3 * (ankle.y - ball.y) + 0.03, ball.y, toe.y


def footprint(bones, side, size, points=24):
    """(points, 3) outline of a sole in the rest pose [m]."""
    floor, heel, _, toe = sole(bones, side)
    x = bones[f"{side}Foot"].head_local.x
    angles = np.linspace(0, 2 * np.pi, points, endpoint=False)
    middle, half = (heel + toe) / 2, abs(heel - toe) / 2 + 0.006
    lengthwise = np.sign(np.sin(angles)) * np.abs(np.sin(angles)) ** 0.75
    width = (0.046 + 0.006) * size * np.sign(np.cos(angles)) * np.abs(np.cos(angles)) ** 0.75
    return np.stack([x + width, middle + half * lengthwise, np.full(points, floor)], 1)


def posed(armature, bone, points):
    """World positions of rest-pose points (n, 3) that are fixed in a bone, at the shown frame."""
    bone = armature.pose.bones[bone]
    matrix = armature.matrix_world @ bone.matrix @ bone.bone.matrix_local.inverted()
    return np.array([matrix @ Vector(point) for point in points])

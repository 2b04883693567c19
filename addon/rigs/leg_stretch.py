# SPDX-License-Identifier: GPL-3.0-or-later
"""Legs that constraints stretch, as Rigify's IK does: the simulated body's keep their length, and
the feet of a bake stand where its do only if those of the bake keep it, too."""

from typing import TYPE_CHECKING

import numpy as np

from ...controller.geometry.skeleton import SIDES
from ..blender.pose import inverse, parent_space
from .reference import Reading, carrier

if TYPE_CHECKING:
    import bpy

#: A length that changes by less than this share of it does not stretch.
LEAST = 0.0005
#: Feet and toes inherit what stretches their shins.
_LEG = ("thigh", "shin", "foot", "toe")


def find(armature: "bpy.types.Object", reading: Reading) -> list[str]:
    """The segments of legs that constraints stretch. None of those that keys scale: that is how
    they are to look."""
    bones = armature.data.bones
    found = []
    for side in SIDES:
        segments = [f"{part}_{side}" for part in _LEG if f"{part}_{side}" in reading.rig_map.bones]
        carriers = [carrier(reading.rig_map, segment) for segment in segments]
        above = {one.name for bone in carriers for one in bones[bone].parent_recursive}
        keyed = (_of(reading.basis_matrices, reading, bone) for bone in {*carriers, *above})
        if any(map(_varies, keyed)):
            continue
        if any(_varies(_own(bones[bone], reading)) for bone in carriers[:2]):
            poses = (_poses(reading, bone) for bone in carriers)
            found += [one for one, pose in zip(segments, poses, strict=True) if _varies(pose)]
    return found


def _of(matrices: np.ndarray, reading: Reading, bone: str) -> np.ndarray:
    """(N, 4, 4) of one bone."""
    return matrices[:, reading.bone_index(bone)]


def _own(bone: "bpy.types.Bone", reading: Reading) -> np.ndarray:
    """(N, 4, 4) basis of a bone that would give it its poses if only its parent had a say."""
    poses = _poses(reading, bone.name)
    # A root bone has no parent: any poses do.
    parent = _poses(reading, bone.parent.name) if bone.parent else poses
    return parent_space(bone, parent).basis(poses)


def _poses(reading: Reading, bone: str) -> np.ndarray:
    """(N, 4, 4) of a bone in the armature's space."""
    return inverse(reading.object_matrices) @ _of(reading.bone_matrices, reading, bone)


def _varies(matrices: np.ndarray) -> bool:
    """Whether (N, 4, 4) matrices of a bone change its length over time."""
    return np.ptp(np.log(np.linalg.norm(matrices[:, :3, 1], axis=-1))) > LEAST

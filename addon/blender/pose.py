# SPDX-License-Identifier: GPL-3.0-or-later
"""Blender's bone arithmetic on whole clips: how channels, parents and poses make each other.

All matrices are (samples, 4, 4) in the armature's space. A bone's *basis* is what its channels
say; its *pose* is where that puts it, given the pose of its parent and its inheritance flags.
"""

from dataclasses import dataclass

import numpy as np
from mathutils import Matrix

from ...controller.geometry.rotations import (
    arctan2,
    continuous,
    matrix_from_quaternion,
    packed,
    quaternion_from_matrix,
    unit,
)


def rotation_property(mode):
    """Name of the property that holds a bone's rotation in a rotation mode."""
    own = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}
    return own.get(mode, "rotation_euler")


def inverse(matrices):
    """Inverses of (..., 3, 3) matrices, or of (..., 4, 4) matrices that end in 0, 0, 0, 1.

    By cross products on whole arrays: LAPACK takes one small matrix at a time, and its threads make
    that up to ten times slower still.
    """
    first, second, third = np.moveaxis(matrices[..., :3, :3], -1, 0)
    rows = np.stack([np.cross(second, third), np.cross(third, first), np.cross(first, second)], -2)
    rows /= (rows[..., 0, :] * first).sum(-1)[..., None, None]
    if matrices.shape[-1] == 3:
        return rows
    inverted = np.zeros(matrices.shape)
    inverted[..., :3, :3] = rows
    inverted[..., :3, 3] = -(rows @ matrices[..., :3, 3, None])[..., 0]
    inverted[..., 3, 3] = 1
    return inverted


def all_below(bone):
    """All bones of an armature that hang on one, the nearest first. Blender's `children_recursive`
    takes as long as there are bones, squared."""
    found = list(bone.children)
    for one in found:
        found += one.children
    return found


def nearest_rotation(matrices):
    """(..., 3, 3) matrices of positive determinant to the nearest rotations."""
    left, _, right = np.linalg.svd(matrices)
    return left @ right


def compose(location, rotation, scale):
    """(n, 3) location, (n, 3, 3) rotation and (n, 3) scale to (n, 4, 4) basis matrices."""
    basis = np.zeros((len(rotation), 4, 4))
    basis[:, :3, :3] = rotation * scale[:, None, :]
    basis[:, :3, 3] = location
    basis[:, 3, 3] = 1
    return basis


def scale_of(basis):
    """(n, 3) scale channels of basis matrices: positive, since mirrored bones are refused."""
    return np.linalg.norm(basis[:, :3, :3], axis=1)


@dataclass(frozen=True)
class ParentSpace:
    """What a bone's parent and rest do to its channels.

    turn: (n, 3, 3) acts on the basis from the left, stretch (n, 3) on its columns afterwards.
    place: (n, 4, 4) acts on the location.
    """

    turn: np.ndarray
    stretch: np.ndarray
    place: np.ndarray

    def pose(self, basis):
        """The pose that a basis gives."""
        pose = np.zeros_like(basis)
        pose[:, :3, :3] = self.turn @ basis[:, :3, :3] * self.stretch[:, None, :]
        pose[:, :3, 3] = (self.place[:, :3, :3] @ basis[:, :3, 3, None])[..., 0]
        pose[:, :3, 3] += self.place[:, :3, 3]
        pose[:, 3, 3] = 1
        return pose

    def basis(self, pose):
        """The basis that gives a pose."""
        basis = np.zeros_like(pose)
        basis[:, :3, :3] = inverse(self.turn) @ (pose[:, :3, :3] / self.stretch[:, None, :])
        offset = pose[:, :3, 3] - self.place[:, :3, 3]
        basis[:, :3, 3] = (inverse(self.place[:, :3, :3]) @ offset[..., None])[..., 0]
        basis[:, 3, 3] = 1
        return basis


def parent_space(bone, parent_pose):
    """The ParentSpace of a bone (`bpy.types.Bone`) under (n, 4, 4) poses of its parent.

    parent_pose: of any length for a root bone, whose parent is the armature itself.
    """
    rest = np.array(bone.matrix_local, float)
    if bone.parent is None:
        offset, parent_pose = rest, np.broadcast_to(np.eye(4), parent_pose.shape)
    else:
        offset = np.linalg.inv(np.array(bone.parent.matrix_local, float)) @ rest
    place = parent_pose @ offset
    turn, stretch = place[:, :3, :3], np.ones((len(place), 3))
    if not bone.use_local_location:
        place = place.copy()
        place[:, :3, :3] = parent_pose[:, :3, :3]
    if bone.parent and not (bone.use_inherit_rotation and bone.inherit_scale == "FULL"):
        turn = _partial_inheritance(bone, parent_pose)
        if bone.inherit_scale == "ALIGNED":
            stretch = np.linalg.norm(turn, axis=1)
            turn = turn / stretch[:, None, :]
    return ParentSpace(turn, stretch, place)


def _partial_inheritance(bone, parent_pose):
    """(n, 3, 3) pose axes of an unposed bone that inherits only some of its parent's pose.

    Blender's own function tells: its ways to remove shear and scale are nobody's to repeat.
    """
    rest, parent_rest = bone.matrix_local, bone.parent.matrix_local
    return np.array(
        [
            bone.convert_local_to_pose(
                Matrix(), rest, parent_matrix=Matrix(pose), parent_matrix_local=parent_rest
            ).to_3x3()
            for pose in parent_pose
        ]
    )


def slerp(a, b, share):
    """Between (..., 4) unit quaternions, the shorter way: share 0 gives a, share 1 gives b."""
    share = np.asarray(share, float)[..., None]
    cosine = (a * b).sum(-1, keepdims=True)
    b = np.where(cosine < 0, -b, b)
    angle = 2 * arctan2(np.linalg.norm(a - b, axis=-1), np.linalg.norm(a + b, axis=-1))[..., None]
    sine = np.sin(angle)
    near = sine < 1e-9
    safe = np.where(near, 1.0, sine)
    first = np.where(near, 1 - share, np.sin((1 - share) * angle) / safe)
    second = np.where(near, share, np.sin(share * angle) / safe)
    return unit(first * a + second * b)


def rotation_values(mode, rotation, start):
    """Channel values of (n, 3, 3) rotations in a rotation mode, without jumps.

    start: (width,) channel values that the first sample is to be close to.
    Returns (n, width).
    """
    if mode in ("QUATERNION", "AXIS_ANGLE"):
        quaternion = continuous(quaternion_from_matrix(rotation))
        if mode == "QUATERNION":
            return -quaternion if quaternion[0] @ start < 0 else quaternion
        return _axis_angle(quaternion, np.asarray(start, float))
    return _euler(mode, rotation, np.asarray(start, float))


def rotation_matrices(mode, values):
    """(n, 3, 3) rotations of channel values in a rotation mode; any length of quaternion."""
    if mode == "QUATERNION":
        return matrix_from_quaternion(unit(values))
    if mode == "AXIS_ANGLE":
        half = values[:, :1] / 2
        return matrix_from_quaternion(np.hstack([np.cos(half), np.sin(half) * unit(values[:, 1:])]))
    result = np.eye(3)
    for axis in _axes(mode)[:3]:
        result = _about(axis, packed(values[:, axis])) @ result
    return result


def _axes(order):
    """Axis numbers of an Euler order and the sign of their permutation."""
    i, j, k = ("XYZ".index(letter) for letter in order)
    return i, j, k, 1 if (j - i) % 3 == 1 else -1


def _about(axis, angle):
    """(n, 3, 3) rotations about a coordinate axis."""
    i, j = (axis + 1) % 3, (axis + 2) % 3
    matrix = np.zeros((len(angle), 3, 3))
    matrix[:, axis, axis] = 1
    matrix[:, i, i] = matrix[:, j, j] = np.cos(angle)
    matrix[:, j, i] = np.sin(angle)
    matrix[:, i, j] = -matrix[:, j, i]
    return matrix


def _euler(order, rotation, start):
    """(n, 3) Euler angles, each the nearest to the one before of all that mean the same."""
    i, j, k, sign = _axes(order)
    cosine = np.hypot(rotation[:, i, i], rotation[:, j, i])
    locked = cosine < 1e-7
    first = np.empty((len(rotation), 3))
    first[:, j] = arctan2(-sign * rotation[:, k, i], cosine)
    first[:, i] = np.where(
        locked,
        arctan2(-sign * rotation[:, j, k], rotation[:, j, j]),
        arctan2(sign * rotation[:, k, j], rotation[:, k, k]),
    )
    first[:, k] = np.where(locked, 0, arctan2(sign * rotation[:, j, i], rotation[:, i, i]))
    second = first + np.pi
    second[:, j] = np.pi - first[:, j]
    # From each of the two that the sample before may have to each of this one's: whole turns that
    # bring it nearest, and how far that is.
    angles = np.stack([first, second])
    before = np.concatenate([np.broadcast_to(start, (2, 1, 3)), angles[:, :-1]], 1)
    steps, turn = before[:, None] - angles, 2 * np.pi
    turns = np.round(steps / turn)
    distances = np.abs(steps - turn * turns).sum(-1)
    nearer, chosen = (distances[:, 1] < distances[:, 0]).T.tolist(), [0]
    for choice in nearer:
        chosen.append(int(choice[chosen[-1]]))
    own, samples = chosen[1:], np.arange(len(rotation))
    return angles[own, samples] + turn * np.cumsum(turns[chosen[:-1], own, samples], 0)


def _axis_angle(quaternion, start):
    """(n, 4) angle and axis of continuous quaternions; the axis stays where the angle is zero."""
    values = np.empty_like(quaternion)
    sine = np.linalg.norm(quaternion[:, 1:], axis=1)
    angle = 2 * arctan2(sine, quaternion[:, 0])
    axis = unit(start[1:]) if np.any(start[1:]) else np.array([0.0, 1.0, 0.0])
    before, turn = start[0], 2 * np.pi
    for sample in range(len(values)):
        own = quaternion[sample, 1:] / sine[sample] if sine[sample] > 1e-7 else axis
        flip = -1.0 if own @ axis < 0 else 1.0
        axis = own * flip
        before = flip * angle[sample] + turn * np.round((before - flip * angle[sample]) / turn)
        values[sample] = before, *axis
    return values

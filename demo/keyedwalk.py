# SPDX-License-Identifier: GPL-3.0-or-later
"""A hand-keyed walk: a pose on every second frame, with Bézier curves between them.

The hips are timed like a pendulum over the standing foot, so a body can do it; but that foot is
keyed carelessly, and slides and floats.
"""

import bpy
import numpy as np
from mathutils import Matrix

from poise.addon.example.character import HIP, bones, key
from poise.addon.example.figure import build_armature
from poise.controller.geometry.rotations import rotation_about

FPS = 24
#: Steps of the walk, how long each is [m], and how many frames it takes.
STEPS, LENGTH, FRAMES = 6, 0.55, 14
#: Frames from one pose to the next.
EVERY = 2
#: Hips: below where they are at rest, up and down, towards the standing foot [m].
LOW, BOB, SWAY = 0.032, 0.014, 0.028
#: How much slower the body is over the standing foot than between both, as a pendulum would be.
ROLL = 2.0
#: A foot from its contact on: frame of a step that takes PACE of them, how far ahead of where it
#: stands [m], height of the ankle over a flat foot's [m], pitch [degrees].
PACE = 13
FOOT = (
    (0, 0.03, 0.012, -16),
    (3, 0.03, 0.0, 0),
    (7, 0.0, 0.0, 0),
    (10, -0.026, 0.008, 4),
    (13, 0.005, 0.035, 18),
    (16, 0.11, 0.085, 42),
    (20, LENGTH, 0.085, 24),
    (23, 1.62 * LENGTH, 0.045, -6),
    (26, 2 * LENGTH + 0.03, 0.012, -16),
)
#: Half distance of the feet [m], and how far the arms swing [degrees].
APART, SWING = 0.07, 22


def load():
    """The animated armature; the scene gets its frame rate and range."""
    scene = bpy.context.scene
    scene.render.fps, scene.render.fps_base = FPS, 1.0
    scene.frame_start, scene.frame_end = 1, 1 + STEPS * FRAMES
    armature = build_armature("walker", bones())
    for at in range(0, STEPS * FRAMES + 1, EVERY):
        _key_pose(armature, *divmod(at, FRAMES))
    armature.animation_data.action.name = "walk (hand-keyed)"
    scene.frame_set(1)
    return armature


def _key_pose(armature, step, after):
    """Key the pose so many frames after a step's contact; the left foot stands in even steps."""
    side = 1 if step % 2 == 0 else -1
    share = after / FRAMES
    frame = 1 + step * FRAMES + after
    swung = np.sinh(ROLL * (share - 0.5)) / np.sinh(ROLL / 2) / 2
    ahead = (step + swung) * LENGTH
    turn = side * 5 * np.cos(np.pi * share)  # of the pelvis, with the leg that is ahead
    standing, other = _foot(after, step), _foot(after + FRAMES, step - 1)
    left, right = (standing, other) if side > 0 else (other, standing)
    hips = (side * SWAY * np.sin(np.pi * share), -ahead, -LOW - BOB * np.cos(2 * np.pi * share))
    feet = []
    for sign, ((y, z), pitch) in ((1, left), (-1, right)):
        feet.append(((sign * (APART - HIP - 0.02), -y, z), pitch))
    key(armature, frame, hips, (3, -turn, 2, 0), *feet, (8, 0, 0), 16)
    swing = side * SWING * np.cos(np.pi * share)
    for name, sign in (("LeftArm", 1), ("RightArm", -1)):
        bone = armature.pose.bones[name]
        rest = np.array(bone.bone.matrix_local.to_3x3())
        basis = rest.T @ rotation_about(0, np.radians(sign * swing)) @ rest
        bone.matrix_basis = Matrix(basis.tolist()).to_4x4()
        bone.keyframe_insert("rotation_quaternion", frame=frame)


def _foot(after, step):
    """((ahead, height), pitch) of the foot whose contact began `step` [m, degrees]."""
    frames, *values = np.array(FOOT).T
    y, z, pitch = (np.interp(after * PACE / FRAMES, frames, axis) for axis in values)
    return (step * LENGTH + y, z), pitch

# SPDX-License-Identifier: GPL-3.0-or-later
"""Captured motion that comes with PyBullet, as an animated armature.

The clips are DeepMimic's: per frame a duration, the root's position and the turn of each joint,
quaternions w first, Y up, the figure facing +X with its right side at +Z.
"""

import json
from importlib.resources import files

import bpy
import numpy as np

from poise.addon.example.figure import build_armature, key_pose
from poise.controller.geometry.rotations import matrix_from_quaternion, rotation_about

#: From the clip's axes to Blender's: Z up, facing -Y, the left side at +X.
AXES = np.array([[0, 0, -1], [-1, 0, 0], [0, 1, 0]], float)
#: Joints in the order of a frame's values: bone, number of values.
JOINTS = (
    ("Spine", 4),
    ("Head", 4),
    ("RightUpLeg", 4),
    ("RightLeg", 1),
    ("RightFoot", 4),
    ("RightArm", 4),
    ("RightForeArm", 1),
    ("LeftUpLeg", 4),
    ("LeftLeg", 1),
    ("LeftFoot", 4),
    ("LeftArm", 4),
    ("LeftForeArm", 1),
)
#: Height of the root, the skeleton's offsets and its total height [m], as in humanoid3d.
HIP, KNEE, ANKLE, SOLE = 0.084887, 0.421546, 0.40987, 0.05
CHEST, NECK, HEAD = 0.236151, 0.223894, 0.278
ROOT = KNEE + ANKLE + SOLE
HEIGHT = ROOT + CHEST + NECK + HEAD


def folder():
    """Folder of the clips."""
    return files("pybullet_data") / "data" / "motions"


def clips():
    """Names of the humanoid's clips."""
    return sorted(p.stem.removeprefix("humanoid3d_") for p in folder().glob("humanoid3d_*.txt"))


def bones():
    """(name, parent, head, tail) of the skeleton in its zero pose, Mixamo's names, Z up [m]."""
    chest = ROOT + CHEST
    table = [
        ("Hips", None, (0, 0, ROOT), (0, 0, ROOT + 0.12)),
        ("Spine", "Hips", (0, 0, chest), (0, 0, chest + NECK)),
        ("Head", "Spine", (0, 0, chest + NECK), (0, 0, chest + NECK + HEAD)),
    ]
    for side, sign in (("Left", 1), ("Right", -1)):
        x, low = sign * HIP, ROOT - KNEE
        arm, y, top = sign * 0.18311, 0.02405, chest + 0.2435
        elbow, wrist = top - 0.274788, top - 0.274788 - 0.258947
        table += [
            (f"{side}Arm", "Spine", (arm, y, top), (arm, y, elbow)),
            (f"{side}ForeArm", f"{side}Arm", (arm, y, elbow), (arm, y, wrist)),
            (f"{side}Hand", f"{side}ForeArm", (arm, y, wrist), (arm, y, wrist - 0.17)),
            (f"{side}UpLeg", "Hips", (x, 0, ROOT), (x, 0, low)),
            (f"{side}Leg", f"{side}UpLeg", (x, 0, low), (x, 0, SOLE)),
            (f"{side}Foot", f"{side}Leg", (x, 0, SOLE), (x, -0.09, 0.0)),
            (f"{side}ToeBase", f"{side}Foot", (x, -0.09, 0.0), (x, -0.15, 0.0)),
        ]
    return table


def load(clip, seconds=None):
    """An animated armature named after a clip, keyed on every frame from 1 on.

    seconds: (from, to) of the part to take. The scene gets its frame rate and range.
    """
    content = json.loads((folder() / f"humanoid3d_{clip}.txt").read_text(encoding="utf-8"))
    frames = np.array(content["Frames"], float)
    rate = round(1 / frames[0, 0])
    if seconds:
        frames = frames[round(seconds[0] * rate) : round(seconds[1] * rate) + 1]
    scene = bpy.context.scene
    scene.render.fps, scene.render.fps_base = rate, 1.0
    scene.frame_start, scene.frame_end = 1, len(frames)
    armature = build_armature(f"captured {clip}", bones())
    parents = {bone.name: bone.parent and bone.parent.name for bone in armature.data.bones}
    origin = frames[0, 1:4] * (1, 0, 1)
    for number, values in enumerate(frames, start=1):
        turns = _turns(values, parents)
        key_pose(armature, number, turns, AXES @ (values[1:4] - origin))
    armature.animation_data.action.name = f"{clip} (captured)"
    scene.frame_set(1)
    return armature


def _turns(values, parents):
    """{bone: (3, 3) turn from rest} of one frame's values."""
    own = {"Hips": matrix_from_quaternion(values[4:8] / np.linalg.norm(values[4:8]))}
    at = 8
    for bone, count in JOINTS:
        part = values[at : at + count]
        at += count
        hinge = count == 1
        own[bone] = (
            rotation_about(2, part[0])
            if hinge
            else matrix_from_quaternion(part / np.linalg.norm(part))
        )
    turns = {}
    for bone, parent in parents.items():
        turn = AXES @ own.get(bone, np.eye(3)) @ AXES.T
        turns[bone] = turns[parent] @ turn if parent else turn
    return turns

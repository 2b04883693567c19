# SPDX-License-Identifier: GPL-3.0-or-later
"""A hand-keyed character: nine poses with Bézier curves between them, careless of physics.

It shifts its weight, waves and squats; meanwhile the feet slide, float and tilt.
"""

import bpy
import numpy as np
from figure import build_armature, key_pose

from poise.controller.rotations import rotation_about

FPS, HEIGHT = 24, 1.8
#: Joints at rest [m]: half width of hips and shoulders, and heights.
HIP, SHOULDER = 0.095, 0.185
ANKLE, KNEE, LEGS, PELVIS = 0.085, 0.495, 0.925, 0.965
#: Frame; hips' way from rest (x, y, z) [m], their turn about x and z and the spine's about x and y
#: [degrees]; how far the left and the right foot are from where they belong (x, y, z) [m], and
#: their pitch [degrees]; right upper arm (abduction, twist, swing) and elbow [degrees].
POSES = (
    (1, (0, 0, 0), (0, 0, 2, 0), ((0, 0, 0), 0), ((0, 0, 0), 0), (8, 0, 0), 12),
    (
        16,
        (0.035, 0, -0.012),
        (1, 3, 3, -3),
        ((0.012, 0, 0), 0),
        ((0.03, -0.01, 0), 0),
        (14, -10, 0),
        20,
    ),
    (
        30,
        (0.05, 0.01, -0.016),
        (2, 6, 2, 5),
        ((0.03, -0.015, 0), 0),
        ((0.055, -0.035, 0.004), 2),
        (100, -85, 0),
        85,
    ),
    (
        39,
        (0.05, 0.01, -0.016),
        (2, 5, 2, 6),
        ((0.035, -0.02, 0), 0),
        ((0.06, -0.045, 0.006), 3),
        (104, -85, 0),
        45,
    ),
    (
        48,
        (0.05, 0.01, -0.016),
        (2, 6, 2, 4),
        ((0.035, -0.02, 0), 0),
        ((0.055, -0.05, 0.006), 3),
        (100, -85, 0),
        92,
    ),
    (
        57,
        (0.048, 0.01, -0.014),
        (2, 5, 2, 6),
        ((0.03, -0.015, 0), 0),
        ((0.05, -0.045, 0.004), 2),
        (104, -85, 0),
        48,
    ),
    (
        72,
        (0.005, 0, -0.01),
        (1, 0, 3, 0),
        ((0.0, 0.0, 0), 0),
        ((0.02, -0.01, 0), 0),
        (12, -10, 0),
        22,
    ),
    (
        88,
        (0, 0.075, -0.14),
        (16, -2, 16, 0),
        ((0.02, 0.025, 0.004), 2),
        ((-0.005, 0.02, 0.004), 2),
        (14, 0, -38),
        34,
    ),
    (108, (0, 0, 0), (0, 0, 2, 0), ((0.0, 0, 0), 0), ((0.0, 0.0, 0), 0), (8, 0, 0), 12),
)


def bones():
    """(name, parent, head, tail) of the character at rest, Mixamo's names [m]."""
    table = [
        ("Hips", None, (0, 0, PELVIS), (0, 0, 1.06)),
        ("Spine", "Hips", (0, 0, 1.06), (0, 0, 1.24)),
        ("Spine1", "Spine", (0, 0, 1.24), (0, 0, 1.51)),
        ("Neck", "Spine1", (0, 0, 1.51), (0, 0, 1.58)),
        ("Head", "Neck", (0, 0, 1.58), (0, 0, HEIGHT)),
    ]
    for side, sign in (("Left", 1), ("Right", -1)):
        arm, leg = sign * SHOULDER, sign * HIP
        table += [
            (f"{side}Shoulder", "Spine1", (sign * 0.03, 0, 1.46), (arm, 0, 1.46)),
            (f"{side}Arm", f"{side}Shoulder", (arm, 0, 1.46), (arm, 0, 1.165)),
            (f"{side}ForeArm", f"{side}Arm", (arm, 0, 1.165), (arm, 0, 0.905)),
            (f"{side}Hand", f"{side}ForeArm", (arm, 0, 0.905), (arm, 0, 0.72)),
            (f"{side}UpLeg", "Hips", (leg, 0, LEGS), (leg, 0, KNEE)),
            (f"{side}Leg", f"{side}UpLeg", (leg, 0, KNEE), (leg, 0, ANKLE)),
            (f"{side}Foot", f"{side}Leg", (leg, 0, ANKLE), (leg, -0.13, 0.0)),
            (f"{side}ToeBase", f"{side}Foot", (leg, -0.13, 0.0), (leg, -0.2, 0.0)),
        ]
    return table


def load():
    """The animated armature; the scene gets its frame rate and range."""
    scene = bpy.context.scene
    scene.render.fps, scene.render.fps_base = FPS, 1.0
    scene.frame_start, scene.frame_end = POSES[0][0], POSES[-1][0]
    armature = build_armature("character", bones())
    for frame, hips, turned, left, right, arm, elbow in POSES:
        _key(armature, frame, hips, turned, {"Left": left, "Right": right}, arm, elbow)
    armature.animation_data.action.name = "wave (hand-keyed)"
    scene.frame_set(1)
    return armature


def _turn(axis, degrees):
    return rotation_about(axis, np.radians(degrees))


def _key(armature, frame, hips, turned, feet, arm, elbow):
    """Key one pose: turns of all bones from those of the hips, the feet's places and the arms."""
    root = np.array([0, 0, PELVIS]) + hips
    # A bow forward is a positive turn about x: the figure faces -Y.
    turns = {"Hips": _turn(2, turned[1]) @ _turn(0, turned[0])}
    half = _turn(0, turned[2] / 2) @ _turn(1, turned[3] / 2)
    turns["Spine"] = turns["Hips"] @ half
    turns["Spine1"] = turns["Spine"] @ half
    turns["Neck"] = turns["Spine1"] @ _turn(0, -turned[2] / 2)
    turns["Head"] = turns["Neck"] @ _turn(0, -turned[0] / 2)
    abduction, twist, swing = arm
    upper = {
        "Right": _turn(0, swing) @ _turn(1, abduction) @ _turn(2, twist),
        "Left": _turn(0, swing) @ _turn(1, -8),
    }
    bend = {"Right": elbow, "Left": 14 if swing == 0 else elbow}
    for side, sign in (("Left", 1), ("Right", -1)):
        turns[f"{side}Shoulder"] = turns["Spine1"]
        turns[f"{side}Arm"] = turns["Spine1"] @ upper[side]
        turns[f"{side}ForeArm"] = turns[f"{side}Arm"] @ _turn(0, -bend[side])
        turns[f"{side}Hand"] = turns[f"{side}ForeArm"]
        place, pitch = feet[side]
        hip = root + turns["Hips"] @ (sign * HIP, 0, LEGS - PELVIS)
        ankle = np.array([sign * (HIP + 0.02), 0, ANKLE]) + place
        thigh, shin = _leg(hip, ankle, sign * 7)
        turns[f"{side}UpLeg"], turns[f"{side}Leg"] = thigh, shin
        turns[f"{side}Foot"] = _turn(2, sign * 7) @ _turn(0, pitch)
        turns[f"{side}ToeBase"] = turns[f"{side}Foot"]
    key_pose(armature, frame, turns, root)


def _leg(hip, ankle, toe_out):
    """Turns of thigh and shin that bring the ankle to its place, the knee ahead [m, degrees]."""
    upper, lower = LEGS - KNEE, KNEE - ANKLE
    way = ankle - hip
    reach = min(np.linalg.norm(way), 0.9995 * (upper + lower))
    way /= np.linalg.norm(way)
    ahead = _turn(2, toe_out) @ (0, -1, 0)
    ahead -= way * (ahead @ way)
    ahead /= np.linalg.norm(ahead)
    cos = (upper**2 + reach**2 - lower**2) / (2 * upper * reach)
    knee = upper * (cos * way + np.sqrt(1 - cos**2) * ahead)
    axis = np.cross(way, ahead)
    rest = np.stack([(0, 0, -1), (0, -1, 0), np.cross((0, 0, -1), (0, -1, 0))], 1)
    turns = []
    for bone in (knee, way * reach - knee):
        bone = bone / np.linalg.norm(bone)
        turns.append(np.stack([bone, np.cross(axis, bone), axis], 1) @ rest.T)
    return turns

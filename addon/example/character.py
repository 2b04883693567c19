# SPDX-License-Identifier: GPL-3.0-or-later
"""A character to animate by hand: its bones, and a pose of it from a few numbers."""

from typing import TYPE_CHECKING

import numpy as np

from ...controller.geometry.rotations import rotation_about
from .figure import key_pose

if TYPE_CHECKING:
    import bpy

#: x, y, z, or as many angles.
Vector = tuple[float, float, float]

#: Stature [m].
HEIGHT = 1.8
#: Joints at rest [m]: half width of hips and shoulders, and heights.
HIP, SHOULDER = 0.095, 0.185
ANKLE, KNEE, LEGS, PELVIS = 0.085, 0.495, 0.925, 0.965


def bones() -> list[tuple[str, str | None, Vector, Vector]]:
    """(name, parent, head, tail) of the character at rest, Mixamo's names [m]."""
    table: list[tuple[str, str | None, Vector, Vector]] = [
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


def _turn(axis: int, degrees: float) -> np.ndarray:
    return rotation_about(axis, np.radians(degrees))


def key(
    armature: "bpy.types.Object",
    frame: float,
    hips: Vector,
    turned: tuple[float, float, float, float],
    left: tuple[Vector, float],
    right: tuple[Vector, float],
    arm: Vector,
    elbow: float,
) -> None:
    """Key a pose at a frame.

    hips: their way from rest (x, y, z) [m]. turned: hips about x and z, spine about x and y
    [degrees]. left, right: how far the foot is from where it belongs (x, y, z) [m], and its pitch
    [degrees]. arm, elbow: right upper arm (abduction, twist, swing), and right elbow [degrees];
    with a swing the left arm goes along.
    """
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
        place, pitch = {"Left": left, "Right": right}[side]
        hip = root + turns["Hips"] @ (sign * HIP, 0, LEGS - PELVIS)
        ankle = np.array([sign * (HIP + 0.02), 0, ANKLE]) + place
        ahead = _turn(2, sign * 7) @ _turn(0, turned[0]) @ (0.0, -1.0, 0.0)
        thigh, shin = _leg(hip, ankle, ahead)
        turns[f"{side}UpLeg"], turns[f"{side}Leg"] = thigh, shin
        turns[f"{side}Foot"] = _turn(2, sign * 7) @ _turn(0, pitch)
        turns[f"{side}ToeBase"] = turns[f"{side}Foot"]
    key_pose(armature, frame, turns, root)


def _leg(hip: np.ndarray, ankle: np.ndarray, ahead: np.ndarray) -> list[np.ndarray]:
    """Turns of thigh and shin that bring the ankle to its place [m], the knee to where `ahead` (3,)
    points."""
    upper, lower = LEGS - KNEE, KNEE - ANKLE
    way = ankle - hip
    reach = min(float(np.linalg.norm(way)), 0.9995 * (upper + lower))
    way /= np.linalg.norm(way)
    ahead = ahead - way * (ahead @ way)
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

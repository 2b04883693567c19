# SPDX-License-Identifier: GPL-3.0-or-later
"""The actions of the example's character: four keyed by hand, careless of physics, of which two get
up from the floor, and one captured."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...controller.geometry.rotations import exponential, matrix_from_quaternion
from ..blender import compat
from ..scene import marked
from .character import key
from .figure import key_pose

if TYPE_CHECKING:
    import bpy

FPS = 24  # [Hz]
HELLO = Path(__file__).resolve().parent.parent.parent / "presets" / "example" / "hello.json"

_STILL = ((0, 0, 0), 0)
_HANGING = (8, 0, 0)
_UPRIGHT = ((0, 0, 0), (0, 0, 2, 0), _STILL, _STILL, _HANGING, 12)
_DOWN = (
    (0, 0.1, -0.22),
    (24, 0, 18, 0),
    ((0.03, 0.02, 0), 0),
    ((-0.02, 0.02, 0), 0),
    (12, 0, -60),
    25,
)
_DEEPER = (
    (0, 0.12, -0.26),
    (28, 0, 20, 0),
    ((0.02, 0.03, 0), 0),
    ((-0.03, 0.01, 0), 0),
    (12, 0, -65),
    20,
)
#: Poses as `key` takes them. The feet slide, as they do where nothing holds them.
WAVE = (
    (1, *_UPRIGHT),
    (
        14,
        (0.03, 0, -0.01),
        (1, 3, 3, -3),
        ((0.01, 0, 0), 0),
        ((0.02, -0.01, 0), 0),
        (14, -10, 0),
        20,
    ),
    (
        26,
        (0.04, 0.01, -0.014),
        (2, 6, 2, 5),
        ((0.03, -0.01, 0), 0),
        ((0.05, -0.03, 0), 0),
        (100, -85, 0),
        85,
    ),
    (
        34,
        (0.04, 0.01, -0.014),
        (2, 5, 2, 6),
        ((0.03, -0.02, 0), 0),
        ((0.05, -0.04, 0), 0),
        (104, -85, 0),
        45,
    ),
    (
        42,
        (0.04, 0.01, -0.014),
        (2, 6, 2, 4),
        ((0.03, -0.02, 0), 0),
        ((0.05, -0.04, 0), 0),
        (100, -85, 0),
        92,
    ),
    (
        50,
        (0.04, 0.01, -0.014),
        (2, 5, 2, 6),
        ((0.03, -0.02, 0), 0),
        ((0.05, -0.04, 0), 0),
        (104, -85, 0),
        48,
    ),
    (64, (0, 0, 0), (1, 0, 3, 0), ((0.01, 0, 0), 0), ((0.02, -0.01, 0), 0), (12, -10, 0), 22),
    (96, *_UPRIGHT),
)
SQUAT = (
    (1, *_UPRIGHT),
    (8, *_UPRIGHT),
    (26, *_DOWN),
    (34, *_DOWN),
    (52, *_UPRIGHT),
    (58, *_UPRIGHT),
    (76, *_DEEPER),
    (84, *_DEEPER),
    (104, *_UPRIGHT),
)
_ON_BACK = (
    (0, 0, -0.855),
    (-90, 0, 0, 0),
    ((0.02, -0.83, 0), -70),
    ((-0.02, -0.83, 0), -70),
    (20, 0, 10),
    20,
)
_UP_FROM_BACK = (
    (0, -0.46, -0.02),
    (0, 0, 2, 0),
    ((0, -0.45, 0), 0),
    ((0, -0.45, 0), 0),
    _HANGING,
    12,
)
#: From the back: it sits up, draws its feet in, and comes forward over them.
SIT_UP = (
    (1, *_ON_BACK),
    (
        20,
        (0, 0, -0.82),
        (-20, 0, 40, 0),
        ((0.02, -0.8, 0), -50),
        ((-0.02, -0.8, 0), -50),
        (15, 0, 35),
        15,
    ),
    (
        38,
        (0, -0.04, -0.81),
        (-5, 0, 45, 0),
        ((0.02, -0.45, 0), 0),
        ((-0.02, -0.45, 0), 0),
        (15, 0, 30),
        15,
    ),
    (
        56,
        (0, -0.32, -0.56),
        (45, 0, 35, 0),
        ((0.02, -0.45, 0), 0),
        ((-0.02, -0.45, 0), 0),
        (10, 0, -80),
        15,
    ),
    (80, *_UP_FROM_BACK),
    (90, *_UP_FROM_BACK),
)
_ON_FRONT = (
    (0, 0, -0.855),
    (90, 0, 0, 0),
    ((0.02, 0.82, 0.09), 85),
    ((-0.02, 0.82, 0.09), 85),
    (25, 0, 15),
    100,
)
_UP_FROM_FRONT = (
    (0, 0.26, -0.02),
    (0, 0, 2, 0),
    ((0, 0.27, 0), 0),
    ((0, 0.27, 0), 0),
    _HANGING,
    12,
)
#: From the front: it pushes itself onto hands and knees, sets its feet down, and rises.
PUSH_UP = (
    (1, *_ON_FRONT),
    (
        20,
        (0, 0.36, -0.45),
        (80, 0, 5, 0),
        ((0.02, 0.78, 0.04), 70),
        ((-0.02, 0.78, 0.04), 70),
        (12, 0, -75),
        10,
    ),
    (
        38,
        (0, 0.34, -0.5),
        (70, 0, 25, 0),
        ((0.04, 0.27, 0), 0),
        ((-0.02, 0.6, 0.06), 45),
        (12, 0, -85),
        15,
    ),
    (
        54,
        (0, 0.38, -0.52),
        (60, 0, 30, 0),
        ((0.02, 0.27, 0), 0),
        ((-0.02, 0.27, 0), 0),
        (10, 0, -85),
        20,
    ),
    (78, *_UP_FROM_FRONT),
    (88, *_UP_FROM_FRONT),
)
GET_UPS = {"Sit Up": SIT_UP, "Push Up": PUSH_UP}


def add(
    armature: "bpy.types.Object",
) -> "list[tuple[bpy.types.Action, bpy.types.ActionSlot | None]]":
    """Give a character of `character.bones` its actions -> list of (action, slot)."""
    hello = json.loads(HELLO.read_text(encoding="utf-8"))
    keyed = {"Wave (keyed)": WAVE, "Squat (keyed)": SQUAT}
    made = []
    for name in (*keyed, hello["name"], *GET_UPS):
        action, slot = compat.new_action(name)
        action.use_fake_user = True  # kept with the file, whichever is assigned
        compat.assign(armature, action, slot)
        poses = (keyed | GET_UPS).get(name)
        if poses is None:
            _key_captured(armature, hello)
        else:
            _key_all(armature, poses)
        setattr(action, marked.GET_UPS.property, name in GET_UPS)
        made.append((action, slot))
    return made


def _key_all(armature: "bpy.types.Object", poses: Iterable[tuple]) -> None:
    for pose in poses:
        key(armature, *pose)


def _key_captured(armature: "bpy.types.Object", clip: dict[str, Any]) -> None:
    hips = np.array(clip["hips"]) / 1000
    turns = np.array(clip["turns"]).reshape(len(hips), -1, 3) / 1e4
    turns = matrix_from_quaternion(exponential(turns))
    for i, row in enumerate(turns):
        key_pose(armature, i + 1, dict(zip(clip["bones"], row, strict=True)), hips[i])

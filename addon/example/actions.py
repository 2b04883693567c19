# SPDX-License-Identifier: GPL-3.0-or-later
"""The actions of the example's character: two keyed by hand, careless of physics, one captured."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...controller.geometry.rotations import exponential, matrix_from_quaternion
from ..blender import compat
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


def add(
    armature: "bpy.types.Object",
) -> "list[tuple[bpy.types.Action, bpy.types.ActionSlot | None]]":
    """Give a character of `character.bones` its actions -> list of (action, slot)."""
    hello = json.loads(HELLO.read_text(encoding="utf-8"))
    made = []
    for name, fill in (
        ("Wave (keyed)", lambda: _key_all(armature, WAVE)),
        ("Squat (keyed)", lambda: _key_all(armature, SQUAT)),
        (hello["name"], lambda: _key_captured(armature, hello)),
    ):
        action, slot = compat.new_action(name)
        action.use_fake_user = True  # kept with the file, whichever is assigned
        compat.assign(armature, action, slot)
        fill()
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

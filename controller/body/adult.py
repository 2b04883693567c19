# SPDX-License-Identifier: GPL-3.0-or-later
"""The body of an adult, to stand in where no character has been measured yet."""

from functools import cache

import numpy as np

from ..geometry.motion import Motion
from ..geometry.skeleton import LANDMARKS, SEGMENTS
from .character import Character

#: Joint centres of an upright adult's middle and left side [m], x forward, y left: Winter's shares
#: of 1.75 m, about.
_JOINTS = {
    "pelvis": (0.0, 0.0, 0.98),
    "lumbar": (0.0, 0.0, 1.05),
    "neck": (0.0, 0.0, 1.44),
    "head_top": (0.0, 0.0, 1.75),
    "shoulder": (0.0, 0.19, 1.42),
    "elbow": (0.0, 0.19, 1.12),
    "wrist": (0.02, 0.19, 0.86),
    "fingertip": (0.02, 0.19, 0.68),
    "hip": (0.0, 0.095, 0.93),
    "knee": (0.01, 0.095, 0.50),
    "ankle": (-0.02, 0.095, 0.08),
    "ball": (0.12, 0.095, 0.035),
    "toe": (0.18, 0.095, 0.026),
}


@cache
def adult() -> Character:
    """The Character of an adult of 1.73 m and 65 kg."""
    pose = [
        np.multiply(
            _JOINTS.get(name) or _JOINTS.get(name[:-2], (np.nan,) * 3),
            (1, -1 if name.endswith("_r") else 1, 1),
        )
        for name in LANDMARKS
    ]
    facing = np.tile([1.0, 0, 0, 0], (2, len(SEGMENTS), 1))
    return Character.from_motion(Motion("adult", 60.0, facing, np.stack([pose, pose])))

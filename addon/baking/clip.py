# SPDX-License-Identifier: GPL-3.0-or-later
"""The animation that a bake starts from."""

from dataclasses import dataclass

import numpy as np


@dataclass
class Clip:
    """The reference at every frame that is keyed: the simulated ones and those around them.

    frames: (T,). simulated: slice of those that were simulated. times: (T,) where their keys go.
    names: (B,) bones; poses, bases: (T, B, 4, 4) in the armature's space;
    objects, object_bases: (T, 4, 4).
    """

    frames: np.ndarray
    simulated: slice
    times: np.ndarray
    names: tuple
    poses: np.ndarray
    bases: np.ndarray
    objects: np.ndarray
    object_bases: np.ndarray

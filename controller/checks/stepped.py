# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a clip holds each pose for several samples and then jumps, as animated on twos."""

import numpy as np

from ..geometry.motion import Motion
from ..geometry.stance import runs

#: What moves less from one sample to the next [m] does not move.
_STILL = 1e-6
#: Poses that are held for at most so many samples more are steps, others rest; so many of them, in
#: this share of the time, tell. By judgement: animators hold poses for two, three or four frames.
_MOST, _HOLDS, _SHARE = 5, 4, 0.25


def samples_held(motion: Motion) -> int | None:
    """For how many samples a motion holds its poses; None if it does not."""
    moved = np.nanmax(np.linalg.norm(np.diff(motion.positions, axis=0), axis=-1), axis=1)
    lengths = np.diff(runs(moved < _STILL), axis=1)
    steps = lengths[lengths <= _MOST]
    if len(steps) < _HOLDS or steps.sum() < _SHARE * len(motion):
        return None
    return int(np.median(steps)) + 1

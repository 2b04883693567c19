# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a clip of walking or running plays at its own speed.

Who takes longer steps takes them in less time, whatever the speed: of people's gaits length times
duration of a step, over the height of the hips and the time T = sqrt(height / g), stays near 1.5
(of the captured ones 1.1 to 2.0). A clip that plays at another frame rate than its own leaves that.
"""

from itertools import pairwise

import numpy as np

from ..body.momentum import GRAVITY
from ..geometry.motion import Motion
from ..geometry.skeleton import LANDMARK_INDEX, SIDES
from ..geometry.stance import runs

#: Length times duration of people's steps; from where on they are as in slow motion, and below what
#: they are too fast, down to HOPS: whoever hops from foot to foot has less. Captured walks and
#: runs, which chose all of these, have 1.1 to 2.0, at twice their speed 0.5 to 0.8.
USUAL, SLOW, FAST, HOPS = 1.5, 2.5, 0.85, 0.25
#: So many steps tell, each of so many heights of the hips: shorter ones are no gait. By trial.
_STEPS, _LONG = 4, 0.5
#: Frame rates of clips [Hz].
_RATES = np.array([24, 25, 30, 48, 50, 60, 90, 100, 120, 180, 200, 240])


def step_product(motion: Motion, contacts: np.ndarray, ground: float) -> float | None:
    """Median length times duration of a motion's steps, as above; None where too few are long.

    contacts: (F, 2) stance of left and right. ground: height of the floor [m].
    """
    hips = [LANDMARK_INDEX[f"hip_{side}"] for side in SIDES]
    height = float(np.median(motion.positions[:, hips, 2])) - ground
    if height <= 0:
        return None
    landings = sorted(
        (start, foot, *motion.positions[start, LANDMARK_INDEX[f"ankle_{side}"], :2])
        for foot, side in enumerate(SIDES)
        for start, _ in runs(contacts[:, foot])
        if start > 0
    )
    steps = np.array(
        [
            (np.hypot(x - before_x, y - before_y), start - before)
            for (before, other, before_x, before_y), (start, foot, x, y) in pairwise(landings)
            if foot != other
        ]
    )
    if len(steps) < _STEPS:
        return None
    length, duration = np.median(steps, axis=0)
    if length < _LONG * height:
        return None
    return length / height * duration / motion.rate / np.sqrt(height / GRAVITY)


def oddity(product: float | None) -> str | None:
    """ "slow" or "fast" for the product of steps that nobody takes so, else None."""
    if product is None or FAST <= product <= SLOW or product < HOPS:
        return None
    return "slow" if product > SLOW else "fast"


def likely_rate(rate: float, product: float) -> float:
    """The usual frame rate [Hz] that is nearest to the one at which steps would be as usual."""
    return float(_RATES[np.argmin(np.abs(np.log(_RATES / (rate * product / USUAL))))])

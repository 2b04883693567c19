# SPDX-License-Identifier: GPL-3.0-or-later
"""When balance is lost, and no step can win it back.

The capture point c + v / omega, omega = sqrt(g / h), is where the body, as an inverted pendulum,
would come to rest (Pratt, Carff, Drakunov, Goswami, "Capture Point: A Step toward Humanoid Push
Recovery", Humanoids 2006). A body that sinks, while that point is far outside of its soles and
farther than the animation's own, or that has sunk far, falls.
"""

import numpy as np

from ..body.momentum import GRAVITY
from ..geometry.stance import DIRECTIONS

#: Stature [m] for which the lengths below are.
_ADULT = 1.8
#: How far [m] the capture point is outside of the soles, and farther outside than the animation's.
_OUTSIDE, _FARTHER = 0.3, 0.3
#: Or the centre of mass is below this share of its height in the animation.
_LOW = 0.85
#: [m/s] at which it sinks besides, and faster than the animation's.
_SINKING = 0.3
#: Who stands or walks is down below this share of that height, or with the pelvis no more upright
#: than this cosine, however slowly it came there. By judgement.
_DOWN, _UPRIGHT = 0.75, 0.5
#: [s] for which all this is so. These, by a study of 170 pushes: it is noticed 0.4 s before the
#: body touches the floor, and wrongly in 1 of 53 pushes that the body withstands.
_LASTING = 0.04


class Moving:
    """Over n samples: com (n, 3) [m], its velocity (n, 3) [m/s], and how far [m] the capture point
    is outside of the soles (n,)."""

    def __init__(self, com: np.ndarray, corners: np.ndarray, rate: float) -> None:
        """corners: (n, 2, c, 3) of both soles [m]; rate of the samples [Hz]."""
        self.com = com
        self.velocity = np.zeros_like(com)
        self.velocity[1:] = np.diff(com, axis=0) * rate
        floor = corners[..., 2].min((1, 2))
        height = np.maximum(com[:, 2] - floor, 1e-3)
        capture = com[:, :2] + self.velocity[:, :2] * np.sqrt(height / GRAVITY)[:, None]
        reach = np.einsum("fsci,di->fdsc", corners[..., :2], DIRECTIONS).max((2, 3))
        self.outside = (capture @ DIRECTIONS.T - reach).max(1)
        self.height = height


class BalanceLoss:
    """Whether a body has lost its balance, sample by sample."""

    def __init__(self, com: np.ndarray, corners: np.ndarray, rate: float, stature: float) -> None:
        """com (F, 3) and corners (F, 2, c, 3) of the soles of the animation [m], at `rate` [Hz];
        stature of the body [m]."""
        self._wanted = Moving(com, corners, rate)
        self._rate, self._size = rate, stature / _ADULT
        self._lasting = max(1, round(_LASTING * rate))
        self._count = 0
        #: Whether, at the last sample that it was told of, the body is where it falls from if
        #: nothing holds it, even if it does not sink yet; and whether it sinks.
        self.topples = self.sinks = False

    def lost(self, sample: int, com: np.ndarray, corners: np.ndarray) -> bool:
        """Whether it is lost at a sample of 1 or later. com (2, 3) and corners (2, 2, c, 3) of the
        body [m] there and a sample before; to be told of every sample."""
        now, wanted = Moving(com, corners, self._rate), self._wanted
        far = max(_OUTSIDE * self._size, wanted.outside[sample] + _FARTHER * self._size)
        low = now.height[1] < _LOW * wanted.height[sample]
        self.sinks = bool(now.velocity[1, 2] < min(wanted.velocity[sample, 2], 0.0) - _SINKING)
        self.topples = bool(low or now.outside[1] > far)
        self._count = self._count + 1 if self.sinks and self.topples else 0
        return self._count >= self._lasting

    def down(self, sample: int, com: np.ndarray, corners: np.ndarray, upright: float) -> bool:
        """Whether a body that should stand or walk is down at a sample. com (3,) and corners
        (2, c, 3) of the body [m] there; upright: cosine of its pelvis to the vertical."""
        high = float(com[2] - corners[..., 2].min())
        return high < _DOWN * float(self._wanted.height[sample]) or upright < _UPRIGHT

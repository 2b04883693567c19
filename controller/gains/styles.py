# SPDX-License-Identifier: GPL-3.0-or-later
"""Styles of a performance: how firmly the upper body holds on to the animation.

`foot_forces` feed the torques of the animation forward, so that an undisturbed body follows it to a
few millimetres whatever its gains are. A style takes some of that away: limbs that are not told
how they will be accelerated lag behind, swing through and settle, and sink if their weight is not
carried either. Then softness shows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..geometry.skeleton import joint_of_dof


@dataclass(frozen=True)
class Firmness:
    """How firmly a region of the body is held.

    frequency, damping: factors on its natural frequency and damping ratio. ahead: share of the
    torque for the animation's accelerations that is fed forward. support: share of its weight that
    is carried before it sinks.
    """

    frequency: float = 1.0
    damping: float = 1.0
    ahead: float = 1.0
    support: float = 1.0


class Factors(NamedTuple):
    """Of each degree of freedom (dofs,): factors on stiffness and damping, and what Firmness says
    besides."""

    stiffness: np.ndarray
    damping: np.ndarray
    ahead: np.ndarray
    support: np.ndarray


#: {style: {region: Firmness}}; other regions are held as firmly as the gains say. Chosen on the
#: captured clips that balance alone performs, so that all of them stand in every style.
STYLES: dict[str, dict[str, Firmness]] = {
    "close": {},
    "natural": {
        "trunk": Firmness(0.6, 1.0, ahead=0.5),
        "neck": Firmness(0.4, 0.8, ahead=0.0),
        "arms": Firmness(0.3, 0.7, ahead=0.0),
    },
    "relaxed": {
        "trunk": Firmness(0.5, 1.0, ahead=0.3),
        "neck": Firmness(0.3, 0.6, ahead=0.0),
        "arms": Firmness(0.15, 0.6, ahead=0.0),
    },
    "heavy": {
        "trunk": Firmness(0.5, 1.0, ahead=0.3, support=0.6),
        "neck": Firmness(0.3, 1.0, ahead=0.0, support=0.5),
        "arms": Firmness(0.2, 1.0, ahead=0.0, support=0.4),
    },
}

#: {style: (name, words)} for those who choose one.
STYLE_WORDS = {
    "close": (
        "Close",
        "The animation as it is, made physical: every joint stays within about a centimetre of it",
    ),
    "natural": (
        "Natural",
        "Arms and head follow through a little: the arms swing past slow moves by a few "
        "centimetres, past fast ones by up to 17 cm",
    ),
    "relaxed": (
        "Relaxed",
        "Loose arms and neck trail behind and swing through: the arms are off by up to 32 cm in "
        "fast moves",
    ),
    "heavy": (
        "Heavy",
        "Arms and head sink under their own weight, and the back gives way: the arms hang up to "
        "30 cm lower or behind",
    ),
}


def of_joints(style: str, names: Sequence[str]) -> Factors:
    """Of a style, for the degrees of freedom of these names."""
    factors = np.ones((4, len(names)))
    for region, firmness in STYLES[style].items():
        members = [i for i, name in enumerate(names) if joint_of_dof(name).region == region]
        factors[:, members] = np.array(
            [
                [firmness.frequency**2],
                [firmness.frequency * firmness.damping],
                [firmness.ahead],
                [firmness.support],
            ]
        )
    return Factors(*factors)

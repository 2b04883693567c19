# SPDX-License-Identifier: GPL-3.0-or-later
"""Help from outside: what a motion asks for beyond what feet can press, as far as it is allowed.

A kick's twist or a leap that is bent in the air need forces that no floor gives. Where an animator
would rather have the motion than its physics, a force and a torque on the pelvis give what is
lacking, and no more: a motion that feet can bear gets nothing.
"""

import numpy as np

from ..body.character import Character
from ..body.momentum import GRAVITY
from ..geometry.rotations import cross, shortened

#: Torque [N m] beside each newton of force and metre of height: 0.4 m for an adult. By judgement.
_TURNING = 0.22
#: Share of the weight that is nothing. By judgement.
_NOTHING = 1e-6


def outside_words(mean: float, most: float, mass: float) -> str:
    """How much help a body of that mass [kg] had [N], in a sentence without its end; empty for
    none."""
    weight = mass * GRAVITY
    if most < _NOTHING * weight:
        return ""
    return (
        f"Help from outside: {mean:.0f} N in the mean, {most:.0f} N at most "
        f"({mean / weight:.0%} and {most / weight:.0%} of its weight)"
    )


class OutsideHelp:
    """What is lacking of the wrench that balance wants, within limits.

    wrench: (6,) force [N] on the centre of mass and torque [N m] about it, in the world.
    """

    def __init__(self, character: Character) -> None:
        self._weight = character.mass * GRAVITY
        self._height = character.height
        self.wrench = np.zeros(6)

    def give(self, lacking: np.ndarray, share: float) -> None:
        """Give what is lacking (6,), each of the two shortened to its limit. share: of the weight,
        the most that the force may be."""
        force = share * self._weight
        torque = _TURNING * self._height * force
        self.wrench = np.concatenate(
            [
                shortened(part, most) if np.abs(part).max() > _NOTHING * most else np.zeros(3)
                for part, most in ((lacking[:3], force), (lacking[3:], torque))
            ]
        )

    def at(self, com: np.ndarray, point: np.ndarray) -> np.ndarray:
        """The same (6,) on another point (3,) [m] than the centre of mass (3,) [m]."""
        force, torque = self.wrench[:3], self.wrench[3:]
        return np.concatenate([force, torque + cross(com - point, force)])

# SPDX-License-Identifier: GPL-3.0-or-later
"""Help from outside: what a motion asks for beyond what feet can press, as far as it is allowed.

A kick's twist or a leap that is bent in the air need forces that no floor gives. Where an animator
would rather have the motion than its physics, a force and a torque on the pelvis give what is
lacking, and little more: a motion that feet can bear gets next to nothing. A clip's body is brought
back to its place, and what of its feet stands is turned as the animation turns it.
"""

from collections.abc import Sequence

import numpy as np

from ..body.character import Character
from ..body.momentum import GRAVITY
from ..geometry.rotations import cross, shortened

# By trial on captured kicks, a leap, a dance and PyBullet's clips, but for what is nothing.
#: Torque [N m] beside each newton of force and metre of height: 0.5 m for an adult.
_TURNING = 0.3
#: How fast a body is brought back to its place [rad/s], without swinging past it.
_RETURN = 12.0
#: It is left alone so near to its place [m], the nearer the more help there may be.
_NEAR = 0.06
#: Torque [N m] with which a foot that carries is turned by a radian, beside each newton of weight
#: and metre of height; 150 N m of an adult. It is no more than for the angle [rad].
_FOOT_TURN, _FARTHEST_TURN = 0.12, 0.6
#: So much stronger joints are, and so much better soles grip, where all of the weight may be help.
_STRONGER = 0.5
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


def helped_strength(share: float) -> float:
    """Factor on the torque of all joints, and on the friction of soles, where help may be that
    share of the weight."""
    return 1 + _STRONGER * share


class OutsideHelp:
    """What is lacking of the wrench that balance wants, within limits.

    wrench: (6,) force [N] on the centre of mass and torque [N m] about it, in the world. turns:
    torques [N m] about the vertical on either foot, to the left.
    """

    def __init__(self, character: Character) -> None:
        self._mass = character.mass
        self._weight = character.mass * GRAVITY
        self._height = character.height
        self.wrench, self.turns = np.zeros(6), [0.0, 0.0]

    def back(self, off: np.ndarray, share: float) -> np.ndarray:
        """(3,) force [N] that brings the centre of mass back to its place, which it is off by (2,
        3): place [m] and velocity [m/s]. share: of the weight, the most that help may be."""
        place, velocity = off
        near, far = (1 - share) * _NEAR, float(np.linalg.norm(place))
        if far <= near:
            return np.zeros(3)
        return (1 - near / far) * self._mass * _RETURN * (_RETURN * place + 2 * velocity)

    def turn(self, angles: Sequence[float], share: float) -> None:
        """Turn the feet by angles [rad], to the left. share: of what that may be."""
        stiffness = share * _FOOT_TURN * self._height * self._weight
        farthest = _FARTHEST_TURN
        self.turns = [stiffness * min(max(angle, -farthest), farthest) for angle in angles]

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

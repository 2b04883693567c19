# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rig says of its feet: whether a body can be made of it, and what is odd about it."""

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from ..exceptions import RigError
from ..geometry.motion import Motion
from ..geometry.rotations import unit
from ..geometry.skeleton import LANDMARK_INDEX, SIDE_WORDS, SIDES
from .foot import Foot

# All by estimate, so that neither captured clips nor rigs with the feet of a person are told of.
#: Toes point backward where the cosine between them and the body's front is below this.
_BACKWARD = -0.5
#: Of the stature, how much higher than the ankle toes may be in all but this share of the samples
#: in which the foot is down: legs that swing by their hips lift toes and heels by turns.
_ABOVE, _MOSTLY = 0.01, 0.25
#: Feet of people slope by 10 to 30 degrees from ankle to ball; so much [rad] are heels or hooves.
_STEEP = np.radians(45.0)
#: Of the stature, the shortest way from ankle to ball, and the shortest toes.
_SHORT_FOOT, _SHORT_TOES = 0.02, 0.01
_LONG_TOES = 0.08  # of the stature, the longest toes
#: Toes that turn farther [rad] from where the foot points stand up, or lie back under it.
_ASTRAY = np.radians(60.0)
_UPRIGHT = 0.8  # cosine from the vertical
_LOW = 0.2  # share of the samples with the lowest ankle, at which a foot is looked at


class Footed(Protocol):
    """What is asked of a `character.Character`: stature [m] and feet."""

    @property
    def height(self) -> float: ...

    @property
    def feet(self) -> tuple[Foot, Foot]: ...


def check_feet(
    motion: Motion, height: float, planted: Sequence[tuple[np.ndarray, np.ndarray]]
) -> None:
    """Raise RigError for toes that no body of this stature [m] has: they point backward, or lie
    above the ankle, while it stands upright. One that kneels, lies or lifts a leg says nothing.

    planted: of the left and the right foot, (F,) in which samples it is down, and the upward
    normals (F, 3) of what is under it.
    """
    for side, (down, ups) in zip(SIDES, planted, strict=True):
        ankle, ball, tip = _points(motion, side)
        end = np.where(np.isfinite(ball), ball, tip)
        stands = _stands(motion, side)
        arm = (end - ankle)[stands]
        if not len(arm) or not np.linalg.norm(arm, axis=1).max() > _SHORT_FOOT * height:
            continue
        ahead = (unit(arm * [1, 1, 0]) * _forward(motion)[stands]).sum(1)
        if np.median(ahead) < _BACKWARD:
            raise RigError(
                f"The {SIDE_WORDS[side]} toes of '{motion.name}' point backward: swap left and "
                "right in the rig map, or choose another bone for the toes, or none."
            )
        rises = ((end - ankle) * ups).sum(1)[stands & down]
        if len(rises) and np.quantile(rises, _MOSTLY) > _ABOVE * height:
            raise RigError(
                f"The {SIDE_WORDS[side]} toes of '{motion.name}' lie above the ankle: choose other "
                "bones for foot and toes in the rig map, or none for the toes."
            )


def odd_feet(character: Footed, motion: Motion) -> Iterator[tuple[float, float, str, str]]:
    """(value, limit, unit, sentence) of what is odd about the feet: what is taken in its place,
    and how to change it."""
    foot = character.feet[0]
    way, toes = 100 * foot.ball, 100 * (foot.toe - foot.ball)
    slopes, ways, lengths, bends = [], [], [], []
    for side in SIDES:
        ankle, ball, tip = _points(motion, side)
        low = ankle[:, 2] <= np.quantile(ankle[:, 2], _LOW)
        if not np.isfinite(ball).all():
            continue
        arm = (ball - ankle)[low]
        slopes.append(np.median(np.arctan2(-arm[:, 2], np.linalg.norm(arm[:, :2], axis=1))))
        ways.append(np.median(np.linalg.norm(arm, axis=1)))
        lengths.append(np.median(np.linalg.norm(tip - ball, axis=1)))
        ahead = (unit((tip - ball)[low]) * unit(arm * [1, 1, 0])).sum(1)
        bends.append(np.arccos(np.clip(np.median(ahead), -1, 1)))
    if not slopes:
        return
    size = character.height
    if min(ways) < _SHORT_FOOT * size:
        yield (
            min(ways),
            _SHORT_FOOT * size,
            "m",
            f"the toe bone begins at the ankle, so the ball is taken to be {way:.0f} cm ahead of "
            "it: choose another bone for the toes in the rig map, or none",
        )
        return  # where such toes point, and how long they are, says nothing
    if min(slopes) > _STEEP:
        yield (
            min(slopes),
            _STEEP,
            "rad",
            "the feet never lie flat, as on high heels, hooves or the toes: the ball is taken to "
            f"be {way:.0f} cm ahead of the ankle; if that is not so, choose another bone for the "
            "toes in the rig map",
        )
    if min(lengths) < _SHORT_TOES * size:
        yield (
            min(lengths),
            _SHORT_TOES * size,
            "m",
            f"the toe bones have no length, so the toes are taken to be {toes:.0f} cm long",
        )
    elif max(bends) > _ASTRAY:
        yield (
            max(bends),
            _ASTRAY,
            "rad",
            "the toe bones do not point where the feet do, so the toes are taken to lie flat and "
            f"to be {toes:.0f} cm long: choose another bone for the toes in the rig map, or none",
        )
    elif max(lengths) > _LONG_TOES * size:
        yield (
            max(lengths),
            _LONG_TOES * size,
            "m",
            f"the toe bones are {100 * max(lengths):.0f} cm long, so the toes are taken to be "
            f"{toes:.0f} cm long: choose another bone for the toes in the rig map, or none",
        )


def _stands(motion: Motion, side: str) -> np.ndarray:
    """(F,) samples at which trunk and shin are upright."""
    names = ("pelvis", "neck", f"ankle_{side}", f"knee_{side}")
    pelvis, neck, ankle, knee = (motion.positions[:, LANDMARK_INDEX[name]] for name in names)
    return (unit(neck - pelvis)[:, 2] > _UPRIGHT) & (unit(knee - ankle)[:, 2] > _UPRIGHT)


def _points(motion: Motion, side: str) -> list[np.ndarray]:
    names = ("ankle", "ball", "toe")
    return [motion.positions[:, LANDMARK_INDEX[f"{name}_{side}"]] for name in names]


def _forward(motion: Motion) -> np.ndarray:
    """(F, 3) where the hips face, level."""
    left, right = (motion.positions[:, LANDMARK_INDEX[f"hip_{side}"]] for side in SIDES)
    return unit(np.cross((left - right) * [1, 1, 0], [0.0, 0.0, 1.0]))

# SPDX-License-Identifier: GPL-3.0-or-later
"""Hands and feet that are held: to the world, to a thing, a collider or a character, for a while.

What holds pulls at one point, in any direction, and leaves the limb free to turn about it. It lets
go at its end, or before, where it is pulled harder than it bears.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Protocol

import numpy as np

from ..body.character import Character
from ..exceptions import SettingsError, demand
from ..geometry.motion import Motion
from ..geometry.rotations import matrix_from_quaternion
from ..geometry.skeleton import SEGMENT_INDEX, SIDE_WORDS, SIDES
from ..geometry.solids import Collider, finite
from ..ranges import RANGES

#: Limbs that can be held, and the segments that carry them: a hand is part of its forearm.
LIMBS = {
    f"{SIDE_WORDS[side]}_{limb}": f"{segment}_{side}"
    for limb, segment in (("hand", "forearm"), ("foot", "foot"))
    for side in SIDES
}
#: Force [N] at which a hold breaks, unless it says otherwise: nearly three times the weight of an
#: adult. By judgement.
BREAKING = 2000.0
#: Of a hand, how far what it grips with is from the wrist, as a share of stature: where
#: `body.limbs` has a fist. By eye.
_PALM = 0.032
#: How much farther [m] than a limb is long a hold may be: an animation's own arms stretch a little.
#: By judgement.
_SPARE = 0.03
_SAME = 1e-9  # [s]


@dataclass(frozen=True)
class Hold:
    """A hand or a foot that is held.

    segment: that carries it, one of LIMBS. start, end [s]: from the first sample of the motion.
    target: (3,) [m] where it is held, in the world, or with `to` in the frame of that thing's or
    collider's solid; None for where it is when the hold begins. to: name of a thing or a collider,
    empty for the world. point: (3,) [m] of the segment, in its frame, None for the palm or the
    ankle. breaking: force [N] beyond which it breaks. name: for messages. to_character: `to` is a
    character that is simulated together with this one, of whom the part is held that is nearest
    to the limb when the hold begins; target is None then.
    """

    segment: str
    start: float
    end: float
    target: tuple[float, float, float] | None = None
    to: str = ""
    point: tuple[float, float, float] | None = None
    breaking: float = BREAKING
    name: str = ""
    to_character: bool = False

    def __post_init__(self) -> None:
        for field in ("target", "point"):  # JSON knows lists only
            value = getattr(self, field)
            object.__setattr__(self, field, value if value is None else tuple(value))

    @property
    def limb(self) -> str:
        """What is held, in words: "left hand"."""
        names = {segment: limb for limb, segment in LIMBS.items()}
        return names.get(self.segment, self.segment).replace("_", " ")

    @property
    def top(self) -> str:
        """The segment at whose joint the limb begins."""
        return self.segment.replace("forearm", "upper_arm").replace("foot", "thigh")

    def check(self) -> None:
        """Raise SettingsError if it cannot be, whatever the body."""
        demand(
            self.segment in LIMBS.values(),
            f"The hold '{self.name}' is of '{self.segment}', and only hands and feet can be held: "
            f"choose one of {', '.join(LIMBS)}.",
        )
        demand(
            finite(self.start, self.end, self.target or 0.0, self.point or 0.0),
            f"The hold '{self.name}' has a time or a place that is not a number: mend it.",
        )
        demand(
            self.breaking in RANGES["hold"],
            f"The hold '{self.name}' breaks at {self.breaking:g} N: give it {RANGES['hold']}.",
        )

    def grip(self, character: Character) -> np.ndarray:
        """(3,) the point [m] in the segment's frame."""
        if self.point is not None:
            return np.array(self.point)
        index = SEGMENT_INDEX[self.segment]
        if self.segment.startswith("foot"):
            return np.zeros(3)
        shape = next(shape for shape in character.shapes if shape.segment == self.segment)
        wrist = 2 * (character.centres[index] + shape.position)
        return wrist - [0.0, 0.0, _PALM * character.height]

    def gripping(self, character: Character) -> "Hold":
        """The same with its point, and a name."""
        point = tuple(self.grip(character).tolist())
        return replace(self, point=point, name=self.name or self.limb)


class _Free(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def start(self) -> float: ...


def at_times(holds: Sequence[Hold], motion: Motion) -> np.ndarray | None:
    """(F,) in which samples of a motion anything is held; None without holds."""
    if not holds:
        return None
    times = np.arange(len(motion)) / motion.rate
    return np.any([(times > h.start - _SAME) & (times < h.end + _SAME) for h in holds], axis=0)


def check_holds(
    holds: Sequence[Hold],
    character: Character,
    motion: Motion,
    pose: tuple[np.ndarray, np.ndarray],
    colliders: Sequence[Collider],
    things: Sequence[_Free],
) -> None:
    """Raise SettingsError for the first hold that this body cannot have in this motion, and say
    how near it gets. pose: joints (F, S, 3) [m] and frames (F, S, 3, 3) of the animation."""
    reach = _Reach(character, motion, *pose, {one.name: one for one in colliders})
    free = {one.name: one for one in things}
    for hold in holds:
        _check_times(hold, motion)
        demand(
            not hold.to or hold.to_character or hold.to in free or hold.to in reach.colliders,
            f"The hold '{hold.name}' of the {hold.limb} is to '{hold.to}', which is neither a "
            "thing nor a collider: mark it under Objects, or hold the limb to the world.",
        )
        if hold.to in free and free[hold.to].start > hold.start + _SAME:
            frame = motion.frame(free[hold.to].start * motion.rate)
            raise SettingsError(
                f"The hold '{hold.name}' of the {hold.limb} begins before '{hold.to}' is released, "
                f"at frame {frame:g}: let it begin there, or release that earlier."
            )
    for one, other in combinations(holds, 2):
        start, end = max(one.start, other.start), min(one.end, other.end)
        if start > end - _SAME:
            continue
        frame = motion.frame(start * motion.rate)
        demand(
            one.segment != other.segment,
            f"The holds '{one.name}' and '{other.name}' both hold the {one.limb} at frame "
            f"{frame:g}: remove one, or choose other frames.",
        )
        reach.check_both(one, other, start)
    for hold in holds:
        reach.check_alone(hold)


def _check_times(hold: Hold, motion: Motion) -> None:
    begins, ends = motion.frame(0), motion.frame(len(motion) - 1)
    first, last = (motion.frame(time * motion.rate) for time in (hold.start, hold.end))
    demand(
        hold.end > hold.start + _SAME,
        f"The hold '{hold.name}' of the {hold.limb} ends at frame {last:g}, and begins at frame "
        f"{first:g}: let it end later.",
    )
    demand(
        hold.start > -_SAME and hold.start < (len(motion) - 1) / motion.rate - _SAME,
        f"The hold '{hold.name}' of the {hold.limb} begins at frame {first:g}, and frames "
        f"{begins:g} to {ends:g} are simulated: let it begin there, before the last one.",
    )


@dataclass(frozen=True)
class _Reach:
    """How far limbs of an animated body reach."""

    character: Character
    motion: Motion
    joints: np.ndarray
    frames: np.ndarray
    colliders: dict[str, Collider]

    def _chain(self, hold: Hold) -> tuple[int, float]:
        """The segment at whose joint the limb begins, and how long [m] it is."""
        offsets = {joint.segment: joint for joint in self.character.joints}
        own = SEGMENT_INDEX[hold.segment]
        length = float(np.linalg.norm(hold.grip(self.character)))
        while own != SEGMENT_INDEX[hold.top]:
            length += float(np.linalg.norm(offsets[own].offset))
            own = offsets[own].parent
        return own, length

    def _target(self, hold: Hold, time: float) -> np.ndarray | None:
        """(3,) where a limb is held [m] at a time [s]; None where only the simulation knows."""
        sample = min(round(time * self.motion.rate), len(self.joints) - 1)
        if hold.target is None:
            return None if hold.to else self._point(hold, round(hold.start * self.motion.rate))
        if not hold.to:
            return np.array(hold.target)
        if hold.to not in self.colliders:
            return None
        way = self.colliders[hold.to]
        position, turn = np.asarray(way.positions), np.asarray(way.rotations)
        if way.moves:
            position, turn = position[sample], turn[sample]
        return position + matrix_from_quaternion(turn) @ np.array(hold.target)

    def _point(self, hold: Hold, sample: int) -> np.ndarray:
        """(3,) where the animation has the limb [m]."""
        own = SEGMENT_INDEX[hold.segment]
        turn = self.frames[sample, own]
        return self.joints[sample, own] + turn @ hold.grip(self.character)

    def check_alone(self, hold: Hold) -> None:
        """Raise SettingsError for one that the limb does not reach as it begins."""
        target = self._target(hold, hold.start)
        if target is None:
            return
        sample = round(hold.start * self.motion.rate)
        top, length = self._chain(hold)
        near = float(np.linalg.norm(target - self.joints[sample, top])) - length
        if near > _SPARE:
            apart = float(np.linalg.norm(target - self._point(hold, sample)))
            raise SettingsError(
                f"The hold '{hold.name}' is {apart:.2f} m away from the {hold.limb} at frame "
                f"{self.motion.frame(sample):g}, where it begins, and stretched out that is still "
                f"{near:.2f} m away: move the hold nearer, or let it begin at another frame."
            )

    def check_both(self, one: Hold, other: Hold, time: float) -> None:
        """Raise SettingsError for two that no body can have together."""
        places = [self._target(hold, time) for hold in (one, other)]
        if places[0] is None or places[1] is None:
            return
        (top, length), (other_top, other_length) = self._chain(one), self._chain(other)
        sample = round(time * self.motion.rate)
        between = float(np.linalg.norm(self.joints[sample, top] - self.joints[sample, other_top]))
        apart = float(np.linalg.norm(places[0] - places[1]))
        most = length + other_length + between
        demand(
            apart <= most + _SPARE,
            f"The holds '{one.name}' and '{other.name}' are {apart:.2f} m apart at frame "
            f"{self.motion.frame(sample):g}, and the {one.limb} and the {other.limb} get "
            f"{most:.2f} m apart at most: move them together.",
        )


def grasp_words(
    name: str,
    limb: str,
    frames: Sequence[float] | None,
    force: float,
    breaking: float,
    broke: float | None,
    **_more: object,
) -> str:
    """How a hold of that name went, in a sentence without an end: frames between which it held,
    None where the simulation did not come to it; the greatest force [N]; at which it breaks; the
    frame at which it broke, or None. What else a report says of it is not told."""
    if frames is None:
        return f"The hold '{name}' of the {limb} is not reached: the simulation ended before"
    if broke is not None:
        return (
            f"The hold '{name}' of the {limb} broke at frame {broke:g}: it bears {breaking:.0f} N"
        )
    return f"The hold '{name}' of the {limb} bore {force:.0f} N at most"

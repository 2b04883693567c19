# SPDX-License-Identifier: GPL-3.0-or-later
"""Stance: which feet carry the body, in the reference and in the simulation (SCA12, equation 8)."""

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import numpy as np

#: Stance states: a bit for the left foot, a bit for the right.
FLIGHT, LEFT, RIGHT, DUAL = 0, 1, 2, 3
NAMES = ("flight", "left", "right", "dual")

#: Phases of one foot: in the air, on its heel, on its whole sole, on ball and toes.
AIR, HEEL, SOLE, BALL = 0, 1, 2, 3
PHASES = ("air", "heel", "sole", "ball")
#: A part of the sole counts as down from this share of it on, see `foot.parts_down`: for what is
#: shown and told, no control depends on it.
DOWN = 0.5

#: A foot of the simulation stands when its lowest sole corner is below this [m], by trial: contacts
#: alone come and go ...
SIMULATED_CLEARANCE = 0.0135
#: ... and it touches, or is no faster than this [m/s]: a swinging foot may skim the floor. By trial
#: on captured clips.
SIMULATED_SPEED = 0.3

#: Stature of the adult that heights of feet are told for [m].
ADULT = 1.75
#: Whoever is taller [m] is a giant: hardly any person is.
_TALLEST = 2.1

#: Of the captured clips none that stays in place goes farther [m] than this, none that walks less.
_IN_PLACE_TRAVEL = 0.5
#: Nor does a foot step so far [m, adult] in one of them that is no dance.
_IN_PLACE_STEP = 0.2
#: A standing foot's lowest corner is lower [m, adult], in place lower than that, and slower [m/s]:
#: by trial, until stances of captured walks alternated cleanly, and those in place did not flicker.
_HEIGHT, _HEIGHT_IN_PLACE, _SPEED = 0.04, 0.03, 0.6
_FLIGHT = 0.05  # [s] without a stance that is a flight; captures lose one for shorter (by trial)
#: A foot stands where it does for most of so long [s]: else stances of captures flicker; by trial.
MAJORITY = 0.1
#: In place, a foot that rises less than this and stays where it is has not stepped: [m, adult]; by
#: trial on a captured squat whose heels rise.
_STEP_HEIGHT, _STEP_LENGTH = 0.10, 0.08


class Above(NamedTuple):
    """Sole corners above what is under each, as `terrain.Terrain.over` finds it.

    heights: (F, 2, n) [m]; drifts: (F, 2, n, 3) how fast what is under them moves [m/s].
    """

    heights: np.ndarray
    drifts: np.ndarray


class Stature(Protocol):
    """What stance asks of a `character.Character`: its height and its legs' length [m], the height
    of its floor [m], and the body that the motion was captured from, None for itself."""

    @property
    def height(self) -> float: ...

    @property
    def leg(self) -> float: ...

    @property
    def ground(self) -> float: ...

    @property
    def actor(self) -> "Stature | None": ...


def is_in_place(root: np.ndarray) -> bool:
    """Whether (samples, 3) root positions stay within half a metre."""
    return bool(np.ptp(root[:, :2], axis=0).max() < _IN_PLACE_TRAVEL)


def find_contacts(
    character: Stature,
    corners: np.ndarray,
    rate: float,
    root: np.ndarray,
    over: Above | None = None,
    held: np.ndarray | None = None,
) -> tuple[np.ndarray, bool]:
    """(F, 2) contacts of a reference, see `reference_contacts`, and whether it `travels`.
    root: (F, 3) positions [m]; held: as `travels` has it."""
    if is_in_place(root):
        contacts = reference_contacts(character, corners, rate, True, over)
        if not travels(character, contacts, corners, rate, root, held):
            return contacts, False
    return reference_contacts(character, corners, rate, False, over), True


def travels(
    character: Stature,
    contacts: np.ndarray,
    corners: np.ndarray,
    rate: float,
    root: np.ndarray,
    held: np.ndarray | None = None,
) -> bool:
    """Whether a body leaves its place, the floor, or with a foot where that stood.

    contacts: (F, 2); corners: (F, 2, n, 3) of the soles [m]; root: (F, 3) positions [m]. held: (F,)
    where something holds it, so that it does not fly; None for never.
    """
    borne = contacts if held is None else contacts | hanging(contacts, held)[:, None]
    if not is_in_place(root) or leaves_floor(borne, rate):
        return True
    for foot in range(2):
        soles = corners[:, foot, :, :2].mean(1)
        places = [np.median(soles[start:stop], 0) for start, stop in runs(contacts[:, foot])]
        if places and np.ptp(places, axis=0).max() > _IN_PLACE_STEP * adult_size(character):
            return True
    return False


def hanging(contacts: np.ndarray, held: np.ndarray) -> np.ndarray:
    """(F,) samples in which something holds a body with contacts (F, 2), or has let go of it or is
    about to take it while it is in the air: there it does not fly by itself. held: (F,)."""
    hangs = held.copy()
    for start, stop in runs(~contacts.any(1)):
        hangs[start:stop] |= held[start:stop].any()
    return hangs


def leaves_floor(contacts: np.ndarray, rate: float) -> bool:
    """Whether (F, 2) contacts leave a body without any for longer than a moment."""
    return bool(flights(np.any(contacts, 1), rate))


def flights(stands: np.ndarray, rate: float) -> list[tuple[int, int]]:
    """(start, stop) of each stretch of (F,) samples at `rate` [Hz] in which a body does not stand
    for longer than a moment."""
    air = runs(~stands).tolist()
    return [(start, stop) for start, stop in air if stop - start > _FLIGHT * rate]


def adult_size(character: Stature) -> float:
    """How large feet and their steps are against those of an adult: a child's are smaller, a
    giant's larger. A body with other proportions stands when the actor did."""
    actor = character.actor or character
    size = min(1.0, actor.height / ADULT) * giant_size(actor.height)
    return size * character.leg / actor.leg


def giant_size(height: float) -> float:
    """How much larger than people a body is; 1 for all that are no giants. height [m]."""
    return max(1.0, height / _TALLEST)


def reference_contacts(
    character: Stature,
    corners: np.ndarray,
    rate: float,
    in_place: bool,
    over: Above | None = None,
) -> np.ndarray:
    """(F, 2) contact of the left and right foot of a reference.

    corners: (F, 2, n, 3) sole corners [m]; rate [Hz]; over: what they are above,
    None for the character's level ground. A foot
    stands when one of its corners is low and slow: 4 cm and 0.6 m/s, in place 3 cm, by a majority
    vote over 0.1 s (ankle height alone, as in SCA12, mistakes a sixth of a walk's stance). Heights
    are those of an adult; a child's are smaller. A body with other proportions stands when the
    actor did.
    """
    actor = character.actor or character
    longer = character.leg / actor.leg
    size = adult_size(character)
    if over is None:
        height = (corners[..., 2] - character.ground) / size
        speed = np.linalg.norm(np.gradient(corners, axis=0), axis=-1) * rate / longer
    else:
        height = over.heights / size
        moves = np.gradient(corners, axis=0) * rate - over.drifts
        speed = np.linalg.norm(moves, axis=-1) / longer
    contacts = ((height < (_HEIGHT_IN_PLACE if in_place else _HEIGHT)) & (speed < _SPEED)).any(-1)
    contacts = majority(contacts, max(1, round(MAJORITY * rate)))
    if in_place:
        contacts = _without_false_steps(contacts, corners, height.min(-1), size)
    return contacts


def _without_false_steps(
    contacts: np.ndarray, corners: np.ndarray, height: np.ndarray, size: float
) -> np.ndarray:
    """Contacts in which a foot goes on standing that rises a little and comes down where it was: a
    heel that is lifted in a squat, on a foot whose toes the capture has a few centimetres high."""
    contacts = contacts.copy()
    for foot in range(2):
        for start, stop in runs(~contacts[:, foot]):
            if start == 0 or stop == len(contacts):
                continue
            beside = slice(start - 1, stop + 1)
            plan = corners[beside, foot, :, :2]
            moved = np.linalg.norm(plan - plan[0], axis=-1).max(0).min()
            low = height[beside, foot].max() < _STEP_HEIGHT
            contacts[start:stop, foot] |= low and moved < _STEP_LENGTH * size
    return contacts


def runs(mask: np.ndarray) -> np.ndarray:
    """(start, stop) of each stretch of True in (F,) booleans."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(int)))
    return edges.reshape(-1, 2)


def swings(contact: np.ndarray) -> Iterator[tuple[int, int, np.ndarray]]:
    """(start, stop, phases) of each swing: phases from above 0 to below 1."""
    for start, stop in runs(~contact):
        yield start, stop, (np.arange(stop - start) + 1) / (stop - start + 1)


def bridged(values: np.ndarray, contact: np.ndarray, home: bool = False) -> np.ndarray:
    """(F,) values of stances, led smoothly from each to the next one; home: from and to 0 where the
    motion begins and ends in a swing, and else as they are in the stance beside it."""
    values, last = values.copy(), len(values) - 1
    for start, stop, phase in swings(contact):
        before = values[start - 1] if start else values[min(stop, last)] * (not home)
        after = values[stop] if stop <= last else before * (not home)
        values[start:stop] = before + phase**2 * (3 - 2 * phase) * (after - before)
    return values


def around(values: np.ndarray, half: int, function: Callable[..., np.ndarray]) -> np.ndarray:
    """(F, ...) what a function of arrays, such as np.max, gives of the 2 * half + 1 samples around
    each, the ends held."""
    padded = np.pad(values, [(half, half)] + [(0, 0)] * (values.ndim - 1), mode="edge")
    return function(np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1, axis=0), axis=-1)


def moving_mean(values: np.ndarray, half: int) -> np.ndarray:
    """(F, n) means of the 2 * half + 1 samples around each, the ends held."""
    padded = np.pad(values.astype(float), ((half, half), (0, 0)), mode="edge")
    total = np.cumsum(np.vstack([np.zeros((1, padded.shape[1])), padded]), axis=0)
    window = 2 * half + 1
    return (total[window:] - total[:-window]) / window


def majority(mask: np.ndarray, window: int) -> np.ndarray:
    """(F, n) booleans, each of which takes what most samples of the window around it have."""
    return moving_mean(mask, window // 2) > 0.5


def stance_of(contacts: np.ndarray) -> np.ndarray:
    """(..., 2) contacts to (...,) stance states."""
    contacts = np.asarray(contacts, bool)
    return contacts[..., 0] * LEFT + contacts[..., 1] * RIGHT


def phases_of(stance: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """(F, 2) phases of the left and the right foot from (F,) stance states and (F, 2, 3) shares of
    heel, ball and tip that are down."""
    stands = (np.asarray(stance)[:, None] & [LEFT, RIGHT]) > 0
    heel, front = parts[..., 0] >= DOWN, (parts[..., 1:] >= DOWN).any(-1)
    return np.where(stands, np.where(heel, np.where(front, SOLE, HEEL), BALL), AIR)


def base_of_support(ankles: np.ndarray, stance: np.ndarray) -> np.ndarray:
    """(..., 2) horizontal base of support (SCA12, equation 9) from (..., 2, 3) ankles [m]: the
    stance ankle, or the mean of both in dual stance and in flight."""
    stance = np.asarray(stance)
    left = np.where(stance == LEFT, 1.0, np.where(stance == RIGHT, 0.0, 0.5))[..., None]
    return left * ankles[..., 0, :2] + (1 - left) * ankles[..., 1, :2]


#: Unit vectors (16, 2) all round: a convex region on the floor is how far it reaches along each.
DIRECTIONS = np.stack([np.cos(np.arange(16) * np.pi / 8), np.sin(np.arange(16) * np.pi / 8)], 1)


def support_reach(corners: np.ndarray, contacts: np.ndarray) -> np.ndarray:
    """(F, 16) how far the support polygon reaches along DIRECTIONS [m]; -inf without support.

    corners: (F, 2, n, 2 or 3) sole corners [m]; contacts: (F, 2) which feet stand.
    """
    reach = np.einsum("fsci,di->fscd", corners[..., :2], DIRECTIONS).max(2)
    return np.where(np.asarray(contacts)[:, :, None], reach, -np.inf).max(1)

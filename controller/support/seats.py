# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a motion sits: pelvis and thighs rest on the floor or on a collider, and carry.

A seat is found as contacts of feet are, from heights and speeds: hips as high above something as
there is flesh below them, and nearly at rest on it. How thick that is there is the animation's to
say, so that a body rests where the animation has it.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..body.anthropometry import stature_from_legs
from ..body.character import Character, Shape
from ..geometry.motion import Motion
from ..geometry.rotations import unit
from ..geometry.skeleton import LANDMARK_INDEX, SIDES
from ..geometry.stance import runs
from .terrain import Surroundings, Terrain

#: Hips that sit are at most so far above what they sit on, as a share of stature: 13 cm of an
#: adult, whose flesh is 8 or 9 there. This and the next four by trial on made seats.
_NEAR = 0.075
#: The same above where they are as they begin and end to sit, for so long [s].
_CLOSE, _SOON = 0.02, 0.5
#: So fast [m/s] they still move on it, and so upright (cosine) is the pelvis: lying is no sitting.
_SLOW, _UPRIGHT = 0.25, 0.4
#: [s] of the shortest gap between two seats, and of the shortest seat.
_GAP, _SHORTEST = 0.2, 0.2
#: [s] over which a seat takes its share of the weight, and gives it back before the body rises.
#: By trial on made clips: who sits down is thrown back by feet that still bear it.
_TAKES, _GIVES = 0.2, 0.6
#: Along a thigh, where it is looked how far below it the seat is.
_ALONG = np.linspace(0.05, 0.95, 46)
#: Least radius of a pelvis, as a share of stature, and of a thigh, of its own. By judgement.
_LEAST, _THINNEST = 0.035, 0.15
#: So much [m] thighs are thinner than what the animation leaves room for. By judgement.
_SPARE = 0.001
#: From a capsule that lies along z to one from left to right.
_ACROSS = (0.5**0.5, 0.5**0.5, 0.0, 0.0)


class Seats(NamedTuple):
    """Where a motion sits.

    sits: (F,) whether it does. depth: how far the seat is below the hip joints [m], thickness: how
    near the middle of the thighs comes to it [m]; both in the middle of all samples that sit.
    """

    sits: np.ndarray
    depth: float
    thickness: float

    def looped(self, period: int, count: int) -> "Seats":
        """Those of a clip that is repeated with a period, for so many samples: between two rounds
        it sits if it does at both ends."""
        between = np.full(max(period - len(self.sits), 0), self.sits[0] & self.sits[-1])
        around = np.concatenate([self.sits, between])[:period]
        return self._replace(sits=np.resize(around, count))

    def shares(self, rate: float) -> np.ndarray:
        """(F,) how much of what it may carry a seat carries at each sample, at `rate` [Hz]: rising
        to 1 as the body comes to sit, and back to 0 before it rises."""
        shares, count = np.zeros(len(self.sits)), len(self.sits)
        for start, stop in runs(self.sits):
            at = np.arange(start, stop)
            since = (at - start) / rate if start else np.full(len(at), np.inf)
            left = (stop - 1 - at) / rate if stop < count else np.full(len(at), np.inf)
            shares[start:stop] = np.clip(np.minimum(since / _TAKES, left / _GIVES), 0, 1)
        return shares


def seats_of(scenario: Surroundings | None, ground: float, motion: Motion) -> Seats | None:
    """The Seats of a motion among what surrounds it, None for the floor alone; None where it never
    sits. ground [m]: of the floor, where the scenario has none."""
    points = {
        name: motion.positions[:, [LANDMARK_INDEX[f"{name}_{side}"] for side in SIDES]]
        for name in ("hip", "knee", "ankle")
    }
    hips = points["hip"]
    legs = hips - points["knee"], points["knee"] - points["ankle"]
    stature = stature_from_legs(sum(float(np.linalg.norm(one[0, 0])) for one in legs))
    terrain = Terrain.around(scenario, ground, hips, motion.rate)
    under = terrain.beneath(hips[:, :, None], hips[:, :, None, 2])
    gaps = (hips[..., 2] - under.heights[..., 0]).mean(1)
    speeds = (np.gradient(hips, axis=0) * motion.rate - under.drifts[:, :, 0]).mean(1)
    spine = motion.positions[:, LANDMARK_INDEX["lumbar"]] - hips.mean(1)
    sits = (
        (gaps < _NEAR * stature)
        & (np.linalg.norm(speeds, axis=1) < _SLOW)
        & (unit(spine)[:, 2] > _UPRIGHT)
    )
    sits = _lasting(sits, motion.rate)
    if not sits.any():
        return None
    depth = float(np.median(gaps[sits]))
    for start, stop in runs(sits):
        # It comes down before it sits, and rises before it has left: what is higher there than
        # soon after, or soon before.
        part = gaps[start:stop]
        near = round(_SOON * motion.rate)
        level = np.median(part[:near]), np.median(part[-near:])
        low = [np.flatnonzero(part < one + _CLOSE * stature) for one in level]
        sits[start : start + low[0][0]] = sits[start + low[1][-1] + 1 : stop] = False
    sits = _lasting(sits, motion.rate)
    if not sits.any():
        return None
    thighs = hips[:, :, None] + _ALONG[:, None] * (points["knee"] - hips)[:, :, None]
    below = terrain.beneath(thighs, thighs[..., 2]).heights
    nearest = (thighs[..., 2] - below).min((1, 2))
    return Seats(sits, depth, float(np.median(nearest[sits])) - _SPARE)


def borne(held: np.ndarray | None, seats: Seats | None) -> np.ndarray | None:
    """(F,) samples in which something else than feet may carry a body: what holds it (F,), None for
    never, or its Seats; None for never."""
    if held is None or seats is None:
        return held if seats is None else seats.sits
    return held | seats.sits


def _lasting(sits: np.ndarray, rate: float) -> np.ndarray:
    """(F,) without gaps and seats that are too short for such, at `rate` [Hz]."""
    sits = sits.copy()
    for start, stop in runs(~sits):
        if start and stop < len(sits) and stop - start < _GAP * rate:
            sits[start:stop] = True
    for start, stop in runs(sits):
        if stop - start < _SHORTEST * rate:
            sits[start:stop] = False
    return sits


def sitting_body(character: Character, seats: Seats) -> Character:
    """A character whose pelvis and thighs are as thick below as its animation has them where it
    sits. The pelvis is round there, so that it may tip to and fro and stays as high."""
    shapes = {shape.segment: shape for shape in character.shapes}
    hips = np.mean([j.offset for j in character.joints if j.name.startswith("hip")], axis=0)
    radius = max(seats.depth, _LEAST * character.height)
    middle = hips + [0.0, 0.0, radius - seats.depth] - character.centres[0]
    width = 2 * shapes["pelvis"].size[1]
    size = (radius, max(width - 2 * radius, 0.01))
    made = {"pelvis": Shape("pelvis", "capsule", size, tuple(middle.tolist()), _ACROSS)}
    for side in SIDES:
        thigh = shapes[f"thigh_{side}"]
        radius, length = thigh.size
        thin = min(max(seats.thickness, _THINNEST * radius), radius)
        made[thigh.segment] = replace(thigh, size=(thin, length + 2 * (radius - thin)))
    return replace(
        character, shapes=tuple(made.get(shape.segment, shape) for shape in character.shapes)
    )

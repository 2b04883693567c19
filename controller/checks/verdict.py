# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether an animator would keep a result: what comes out against what went in.

    verdict = judge_motions(before, after)
    verdict.keeper, verdict.not_kept_for
    for finding in verdict.findings: print(finding.sentence)

Both are judged as a viewer sees them, from where their landmarks are and how their feet are
turned, so that what is read back from keys and what was just simulated count by one rule. Lengths
are those of an adult. `MEASURES` is the rule: another measure is another entry.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..geometry.motion import Motion
from ..geometry.rotations import (
    arctan2,
    exponential,
    matrix_from_quaternion,
    quaternion_from_matrix,
    rotation_vector,
    unit,
)
from ..geometry.skeleton import LANDMARK_INDEX, OPTIONAL_LANDMARKS, SEGMENT_INDEX, SIDES
from ..geometry.stance import runs
from ..support.terrain import Surroundings, Terrain, Under

#: What a verdict compares with, in words; nothing for the source itself.
COMPARED = {
    "source": "",
    "cleaned": "compared with the cleaned motion",
    "moved": "compared with the animation as the waypoints move it",
    "commanded": "compared with the walk as it was commanded",
}

#: Whose the values are where there are two of each sample.
FEET = ("left foot", "right foot")

#: What tells where a foot is.
_ENDS = ("ankle", "tip")
_TIPS = [f"tip_{side}" for side in SIDES]
#: Most spines begin where the pelvis is, which would count twice.
_LEFT_OUT = ("lumbar", *OPTIONAL_LANDMARKS)
_JOINTS = [i for name, i in LANDMARK_INDEX.items() if name not in _LEFT_OUT]
#: Where the mass is: from, to, share of the body's, its centre as a share of the way (D. A. Winter,
#: "Biomechanics and Motor Control of Human Movement", table 4.1; the head between its ends).
_MASSES = (
    ("pelvis", "neck", 0.497, 0.5),
    ("neck", "head_top", 0.081, 0.5),
    *(
        (f"{start}_{side}", f"{end}_{side}", mass, centre)
        for side in SIDES
        for start, end, mass, centre in (
            ("shoulder", "elbow", 0.028, 0.436),
            ("elbow", "wrist", 0.022, 0.682),
            ("hip", "knee", 0.100, 0.433),
            ("knee", "ankle", 0.0465, 0.433),
            ("ankle", "tip", 0.0145, 0.5),
        )
    ),
)
# These, and the limits below but those of `hanging` and `ending`, are those of the judge that
# tests/keepers.py sets beside this one. It says what an animator would keep from bones and keys
# alone: `measures.md`, The verdict.
#: A sole reaches this far behind the ankle, below the tip of the foot bone, and before it [m].
_HEEL, _DEPTH, _TOES = 0.05, 0.025, 0.07
#: A foot's height in stance is this percentile of its heights.
_LOWEST = 5
#: A foot that stays so much higher than the other one [m] has no height of its own in stance.
_APART = 0.05
#: A foot stands flat where ankle and tip are within this of their heights in stance [m].
_FLAT = 0.015
#: Only what is within this of a sole's lowest point can stand on the floor [m].
_TOUCHES = 0.02
#: The source's foot stands where its sole is so near the floor [m] and slides at most so fast
#: [m/s], for so long [s], less the samples at either end that last [s]: there it comes and goes.
_NEAR, _STANDS, _LASTING, _EDGE = 0.03, 0.6, 0.1, 1 / 60
#: A foot is down below this height over its stance [m].
_DOWN = 0.04
#: What moves faster than a body sways is noise of the capture: a Hann window of this length [s].
_WINDOW = 0.12
#: A foot has come down so long [s] after it touched the floor.
_LANDS = 0.08
#: Of one that is led, hips sway less than so long a window [s]: about a step.
_STEP = 0.6
#: Below this no shaking is seen [m/s^3]; people who were captured as they stood still have more.
#: By eye.
_STEADY = 10.0
#: A result has to end as its source does, over so long [s]. This, and what it and feet in the air
#: may come to, by a study of the captured clips: 0.05 m and 0 s in keepers, 0.09 m in falls.
_ENDING = 0.2
#: The source rests where its joints move slower [m/s], for so long [s].
_RESTS, _RESTING = 0.08, 0.3


@dataclass(frozen=True)
class Body:
    """An animated biped over n samples.

    points: (n, len(LANDMARKS), 3) positions [m], NaN for optional landmarks that it has not.
    feet: (n, 2, 3, 3) orientations of left and right foot, whatever their own axes. under:
    Under of ankle and tip of either foot, None for a level floor.
    """

    points: np.ndarray
    feet: np.ndarray
    under: Under | None = None

    @classmethod
    def of(cls, motion: Motion, surroundings: Surroundings | None = None) -> "Body":
        """The Body of a Motion. surroundings: what it may stand on, None for a level floor."""
        feet = [SEGMENT_INDEX[f"foot_{side}"] for side in SIDES]
        body = cls(motion.positions, matrix_from_quaternion(motion.rotations[:, feet]))
        terrain = Terrain.of(surroundings, 0.0, motion) if surroundings else None
        if terrain is None:
            return body
        ends = [body.landmark(f"{part}_{side}") for side in SIDES for part in _ENDS]
        points = np.stack(ends, 1).reshape(len(body), len(SIDES), len(_ENDS), 3)
        return replace(body, under=terrain.below(points))

    def __len__(self) -> int:
        return len(self.points)

    def start(self, count: int) -> "Body":
        """The first samples of it."""
        under = self.under and self.under.part(slice(count))
        return Body(self.points[:count], self.feet[:count], under)

    def landmark(self, name: str) -> np.ndarray:
        """(n, 3) positions [m]. The tip of a foot is its ball, or the end of the foot bone where
        there are no toes; what a rig has not counts where its joint is."""
        side = name[-1]
        others = {f"tip_{side}": (f"ball_{side}", f"toe_{side}", f"ankle_{side}")}
        for other in others.get(name, (name, "neck")):
            points = self.points[:, LANDMARK_INDEX[other]]
            if np.isfinite(points).all():
                break
        return points

    @property
    def floors(self) -> np.ndarray:
        """(n, 2, 2) heights of what is under ankle and tip of either foot [m], 0 for a level
        floor."""
        return np.zeros((len(self), 2, 2)) if self.under is None else self.under.heights

    @property
    def drifts(self) -> np.ndarray:
        """(n, 2, 2, 3) how fast that moves [m/s]."""
        return np.zeros((len(self), 2, 2, 3)) if self.under is None else self.under.drifts

    def over(self, part: str, foot: int) -> np.ndarray:
        """(n,) heights of ankle or tip of a foot over what is under it [m]."""
        height = self.landmark(f"{part}_{SIDES[foot]}")[:, 2]
        return height - self.floors[:, foot, _ENDS.index(part)]

    @cached_property
    def joints(self) -> np.ndarray:
        """(n, J, 3) the joints that every rig has, the head's middle and top, and the tips of the
        feet [m]."""
        top, *tips = (self.landmark(name) for name in ("head_top", *_TIPS))
        middle = (self.landmark("neck") + top) / 2
        return np.concatenate([self.points[:, _JOINTS], np.stack([middle, top, *tips], 1)], 1)

    @cached_property
    def com(self) -> np.ndarray:
        """(n, 3) centre of mass [m]."""
        com, total = np.zeros(3), sum(mass for *_, mass, _ in _MASSES)
        for begins, ends, mass, centre in _MASSES:
            start, end = self.landmark(begins), self.landmark(ends)
            com = com + mass / total * (start + centre * (end - start))
        return com


#: Values of source (None if the measure is a difference from it) and result, each (m,), or (m, 2)
#: for left and right foot, NaN where they do not count; index of one: sample, and foot if any.
Values = tuple[np.ndarray | None, np.ndarray]
At = tuple[int, ...]


@dataclass(frozen=True)
class Measure:
    """One thing that counts.

    unit: of its values. summed: what makes one value of those of all samples. limit: what the
    result may have, given what the source has (0 where it has none, or the measure is a difference
    from it). samples: takes a Pair, gives Values. words: the finding, with {worst} (the result's
    value there), {frame}, {ratio} (of what the result has in all to the limit) and {foot}; of
    several, `which` takes a Pair and the index of the worst value and tells the one that fits.
    placed: it asks where the body is, which a source that is led does not say.
    """

    unit: str
    summed: Callable[[np.ndarray], float]
    limit: Callable[[float], float]
    samples: Callable[["Pair"], Values]
    words: tuple[str, ...]
    which: Callable[["Pair", At], int] = lambda _pair, _at: 0
    placed: bool = False


@dataclass(frozen=True)
class Finding:
    """Where a result is farthest from what it has to keep to.

    measure: of MEASURES. foot: 0 for the left, 1 for the right one, None for the body. sample;
    frame: its number. sentence: all of it in words, without an end.
    """

    measure: str
    foot: int | None
    sample: int
    frame: float
    sentence: str


@dataclass(frozen=True)
class Judged:
    """What one measure came to.

    before, after: of source and result, in the measure's unit; None where nothing counts. limit:
    that the result must not exceed. passes. worst: Findings, of each foot that exceeds the limit
    by itself, else one; none where nothing counts.
    """

    name: str
    before: float | None
    after: float | None
    limit: float
    passes: bool
    worst: tuple[Finding, ...]

    @property
    def share(self) -> float:
        """Of the limit in the value, 1 for a measure that passes."""
        return 1.0 if self.passes or self.after is None else self.limit / self.after


@dataclass(frozen=True)
class Verdict:
    """What `judge` found. judged: a Judged for each of MEASURES that counts, in their order."""

    judged: tuple[Judged, ...]

    @property
    def keeper(self) -> bool:
        """Whether the result is one to keep."""
        return not self.not_kept_for

    @property
    def not_kept_for(self) -> tuple[str, ...]:
        """Names of the measures that the result misses."""
        return tuple(judged.name for judged in self.judged if not judged.passes)

    @property
    def score(self) -> float:
        """How near a result is to one that is kept, from above 0 to 1: the mean over all measures
        of limit / value, a measure that passes counting as 1."""
        return float(np.mean([judged.share for judged in self.judged]))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """A Finding for each thing that is missed, of each foot."""
        return tuple(found for judged in self.judged if not judged.passes for found in judged.worst)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "keeper": self.keeper,
            "score": self.score,
            "not_kept_for": list(self.not_kept_for),
            "measures": {
                judged.name: {
                    "before": judged.before,
                    "after": judged.after,
                    "limit": judged.limit,
                    "unit": MEASURES[judged.name].unit,
                    "passes": judged.passes,
                    "frame": judged.worst[0].frame if judged.worst else None,
                }
                for judged in self.judged
            },
            "findings": [
                {"measure": found.measure, "frame": found.frame, "sentence": found.sentence}
                for found in self.findings
            ],
        }


def judge(
    source: Body,
    result: Body,
    rate: float,
    reached: bool = True,
    frame: Callable[[float], float] = float,
    led: bool = False,
    hangs: np.ndarray | None = None,
) -> Verdict:
    """Judge a result against its source -> Verdict.

    source, result: Body of at least two samples each at `rate` [Hz]; the result may end earlier.
    reached: whether it came to its end on its feet. frame: gives the number of a sample's frame.
    led: the source does at once what it is told, which no body can: where it is and heads does not
    count then. hangs: (n or more, 2) feet of the source that hang in the air while a hold or a seat
    carries it, however low they are, None for none.
    """
    pair = Pair(source, result, rate, reached, led, hangs)
    names = [name for name, measure in MEASURES.items() if not (led and measure.placed)]
    return Verdict(tuple(_judged(name, pair, frame) for name in names))


def judge_motions(
    before: Motion,
    after: Motion,
    reached: bool = True,
    led: bool = False,
    surroundings: Surroundings | None = None,
    hangs: np.ndarray | None = None,
) -> Verdict:
    """`judge` for two Motions of one rate. surroundings: what both may stand on, None for a level
    floor."""
    source, result = (Body.of(motion, surroundings) for motion in (before, after))
    return judge(source, result, before.rate, reached, before.frame, led, hangs)


def _judged(name: str, pair: "Pair", frame: Callable[[float], float]) -> Judged:
    measure = MEASURES[name]
    source, result = measure.samples(pair)
    before, after = _summed(measure, source), _summed(measure, result)
    limit = float(measure.limit(before or 0.0))
    if after is None:
        return Judged(name, None, None, limit, True, ())
    worst = []
    for at in _worst(measure, limit, source, result):
        sample, foot = at[0], at[1] if len(at) > 1 else None
        sentence = measure.words[measure.which(pair, at)].format(
            worst=float(result[at]),
            ratio=after / limit,
            foot="" if foot is None else FEET[foot],
            frame=frame(sample),
        )
        worst.append(Finding(name, foot, sample, frame(sample), sentence))
    return Judged(name, before, after, limit, after <= limit, tuple(worst))


def _summed(measure: Measure, values: np.ndarray | None) -> float | None:
    """One value of all; None where there is none."""
    if values is None:
        return None
    known = values[np.isfinite(values)]
    return float(measure.summed(known)) if len(known) else None


def _worst(
    measure: Measure, limit: float, source: np.ndarray | None, result: np.ndarray
) -> list[At]:
    """Indices of the worst sample, of each foot that misses the limit by itself."""
    excess = result if source is None else result - np.nan_to_num(source)
    if result.ndim == 1:
        return [(int(np.nanargmax(excess)),)]
    feet = []
    for foot in range(result.shape[1]):
        value = _summed(measure, result[:, foot])
        if value is not None:
            feet.append((value, (int(np.nanargmax(excess[:, foot])), foot)))
    feet.sort(key=lambda entry: -entry[0])
    return [at for i, (value, at) in enumerate(feet) if i == 0 or value > limit]


# --- What is measured ----------------------------------------------------------------------------


class Pair:
    """Source and result side by side, over the m samples that both have."""

    def __init__(
        self,
        source: Body,
        result: Body,
        rate: float,
        reached: bool = True,
        led: bool = False,
        hangs: np.ndarray | None = None,
    ) -> None:
        """As `judge` has them. What is the floor, and a sole, is taken of all of the source."""
        self.rate, self.reached = rate, reached
        self.count = min(len(source), len(result))
        self.floor = Floor(source)
        self.source, self.result = source.start(self.count), result.start(self.count)
        self._led = led
        self._hangs = np.zeros((self.count, 2), bool) if hangs is None else hangs[: self.count]

    @cached_property
    def aligned(self) -> Body:
        """The result, of a source that is led turned about the vertical to where that heads."""
        if not self._led:
            return self.result
        ways = [body.landmark("hip_l") - body.landmark("hip_r") for body in _both(self)]
        headings = [arctan2(way[:, 1], way[:, 0]) for way in ways]
        apart = np.unwrap(headings[1]) - np.unwrap(headings[0])
        apart -= 2 * np.pi * np.round(apart[0] / (2 * np.pi))
        away = _smoothed(apart, self.rate, _STEP)
        back = matrix_from_quaternion(exponential(away[:, None] * [0.0, 0.0, -1.0]))
        com = self.result.com[:, None]
        points = com + (back[:, None] @ (self.result.points - com)[..., None])[..., 0]
        return replace(self.result, points=points, feet=back[:, None] @ self.result.feet)

    @cached_property
    def stands(self) -> np.ndarray:
        """(m, 2) where a foot of the source stands."""
        out = np.zeros((self.count, 2), bool)
        edge, least = round(_EDGE * self.rate), max(3, round(_LASTING * self.rate))
        for foot in range(2):
            speed, low = self.floor.contact(self.source, foot, self.rate)
            for start, stop in runs((low < _NEAR) & (speed < _STANDS)):
                if stop - start >= least:
                    out[start + edge : stop - edge, foot] = True
        return out & ~self._hangs

    @cached_property
    def down(self) -> np.ndarray:
        """(m, 2) whether a foot of the result is down."""
        return self.floor.down(self.result) & ~self._hangs

    def depth(self, body: Body) -> np.ndarray:
        """(m, 2) how deep a foot is in the floor [m], 0 above it, and of one that hangs."""
        return np.where(self._hangs, 0.0, self.floor.depth(body))

    @cached_property
    def turned(self) -> np.ndarray:
        """(m, 2, 2) roll about the source's foot and yaw of each foot of the result [degrees]; the
        yaw of one that is led since it came down, for the source's feet turn with it as they
        stand."""
        turn = self.aligned.feet @ np.swapaxes(self.source.feet, -1, -2)
        vector = np.degrees(rotation_vector(quaternion_from_matrix(turn)))
        ways = [
            self.source.landmark(f"tip_{side}") - self.source.landmark(f"ankle_{side}")
            for side in SIDES
        ]
        forward = unit(np.stack(ways, 1) * [1.0, 1.0, 0.0])
        yaw = self._since_landing() if self._led else vector[..., 2]
        return np.stack([np.abs((vector * forward).sum(-1)), np.abs(yaw)], -1)

    def _since_landing(self) -> np.ndarray:
        """(m, 2) how far each foot of the result that is down has turned about the vertical since
        it came down [degrees]."""
        yaw, settled = np.zeros((self.count, 2)), round(_LANDS * self.rate)
        down = self.down
        for foot in range(2):
            for start, stop in runs(down[:, foot]):
                feet = self.result.feet[start:stop, foot]
                turn = feet @ feet[min(settled, len(feet) - 1)].T
                yaw[start:stop, foot] = rotation_vector(quaternion_from_matrix(turn))[:, 2]
        return np.degrees(yaw)

    def smoothed_velocity(self, points: np.ndarray) -> np.ndarray:
        """(m, ...) velocities [m/s] of what a body does, less the noise of a capture."""
        return np.gradient(_smoothed(points, self.rate), axis=0) * self.rate


class Floor:
    """The floor under the feet of a source, and its soles.

    heights: {(landmark, side): height in stance}, ground: of the floor, both over what is known to
    be under the feet [m]. soles: heel and ball of each foot in its own axes (2, 2, 3) [m].
    """

    def __init__(self, source: Body) -> None:
        self.heights: dict[tuple[str, str], float] = {}
        for part in _ENDS:
            low = [np.percentile(source.over(part, foot), _LOWEST) for foot in range(2)]
            if abs(low[0] - low[1]) > _APART:
                low = [min(low)] * 2
            self.heights |= {(part, s): float(h) for s, h in zip(SIDES, low, strict=True)}
        self.ground = min(self.heights["tip", s] for s in SIDES) - _DEPTH
        self.soles = np.stack([self._sole(source, foot) for foot in range(2)])

    def _sole(self, source: Body, foot: int) -> np.ndarray:
        """Heel and ball, from the samples in which the foot is flattest."""
        side = SIDES[foot]
        ankle, tip = source.landmark(f"ankle_{side}"), source.landmark(f"tip_{side}")
        off = np.fmax(*(abs(source.over(n, foot) - self.heights[n, side]) for n in _ENDS))
        flat = np.flatnonzero(off < _FLAT)
        if len(flat) < 3:
            flat = np.argsort(off, kind="stable")[: max(3, len(source) // 20)]
        ankle, tip = ankle[flat], tip[flat]
        level, up = np.array([1.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0])
        heel = ankle - _HEEL * unit((tip - ankle) * level)
        below = (self.ground + source.floors[flat, foot])[..., None] * up
        ends = np.stack([heel, tip], 1) * level + below - ankle[:, None]
        return (ends @ source.feet[flat, foot]).mean(0)

    def contact(self, body: Body, foot: int, rate: float) -> tuple[np.ndarray, np.ndarray]:
        """Least horizontal speed (m,) [m/s] of any point of a sole near the floor, and height (m,)
        [m] of the lowest one, against what is under ankle and tip. A rig's toes are seldom
        measured: stiff and level ones are tried."""
        ankle = body.landmark(f"ankle_{SIDES[foot]}")
        heel, ball = (ankle + body.feet[:, foot] @ end for end in self.soles[foot])
        gone = np.cumsum(body.drifts[:, foot], axis=0) / rate
        gone[..., 2] = body.floors[:, foot]
        heel, ball = heel - gone[:, 0], ball - gone[:, 1]
        along = unit(ball - heel)
        line = [heel + share * (ball - heel) for share in np.linspace(0, 1, 6)]
        found = []
        for toes in (unit(along * [1.0, 1.0, 0.0]), along):
            ends = [ball + reach * toes for reach in (_TOES / 2, _TOES)]
            found.append(contact_speed(np.stack(line + ends, 1), rate))
        speeds, lows = zip(*found, strict=True)
        return np.minimum(*speeds), np.maximum(*lows) - self.ground

    def down(self, body: Body) -> np.ndarray:
        """(m, 2) whether a foot is down."""
        return self._above(body).min(-1) < _DOWN

    def depth(self, body: Body) -> np.ndarray:
        """(m, 2) how deep a foot is in the floor [m], 0 above it."""
        return np.maximum(0.0, -self._above(body).min(-1))

    def _above(self, body: Body) -> np.ndarray:
        """(m, 2, 2) heights of ankle and tip of each foot above those in stance [m]."""
        heights = [
            [body.over(part, foot) - self.heights[part, s] for part in _ENDS]
            for foot, s in enumerate(SIDES)
        ]
        return np.moveaxis(np.array(heights), -1, 0)


def contact_speed(points: np.ndarray, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """How fast a rigid thing slides on the floor, that rolls or slides.

    points: (n, k, 3) of its outside [m], at `rate` [Hz]. Returns ((n,) least horizontal speed [m/s]
    of any point near the lowest one: 0 for what rolls or stands, that of sliding else; (n,) height
    [m] of the lowest one).
    """
    heights = points[..., 2]
    lowest = heights.min(1)
    speeds = np.linalg.norm(np.gradient(points[..., :2], axis=0), axis=-1) * rate
    near = heights <= lowest[:, None] + _TOUCHES
    return np.where(near, speeds, np.inf).min(1), lowest


def jerk(points: np.ndarray, rate: float) -> np.ndarray:
    """(n,) mean size [m/s^3] of the third derivative of (n, k, 3) points [m]."""
    for _ in range(3):
        points = np.gradient(points, axis=0) * rate
    return np.linalg.norm(points, axis=-1).mean(1)


def _smoothed(values: np.ndarray, rate: float, window: float = _WINDOW) -> np.ndarray:
    """(n, ...) values without what is faster than a body: a Hann window [s], the ends held."""
    width = max(3, round(window * rate) | 1)
    weights = np.hanning(width + 2)[1:-1]
    padding = [(width // 2, width // 2)] + [(0, 0)] * (values.ndim - 1)
    padded = np.pad(values, padding, mode="edge")
    shares = weights / weights.sum()
    return sum(share * padded[i : i + len(values)] for i, share in enumerate(shares))


# --- The rule ------------------------------------------------------------------------------------


def _height_lost(pair: Pair) -> Values:
    """Share of the source's height over the floor that the neck has lost; all where it fell."""
    source, result = (
        body.landmark("neck")[:, 2] - body.floors.mean((1, 2)) - pair.floor.ground
        for body in _both(pair)
    )
    lost = np.maximum(0.0, 1 - result / np.maximum(source, 1e-6))
    if not pair.reached:
        lost[-1] = 1.0
    return None, lost


def _pose(pair: Pair) -> Values:
    both = pair.source, pair.aligned
    source, result = (body.joints - body.com[:, None] for body in both)
    return None, np.linalg.norm(result - source, axis=-1).mean(1)


def _place(pair: Pair) -> Values:
    source, result = (body.com[:, :2] for body in _both(pair))
    return None, np.linalg.norm(result - source, axis=1)


def _slip(pair: Pair) -> Values:
    def slips(body: Body) -> np.ndarray:
        speed, low = np.stack([pair.floor.contact(body, k, pair.rate) for k in range(2)], -1)
        return np.where(pair.stands & (low < _DOWN), speed, np.nan)

    return slips(pair.source), slips(pair.result)


def _foot_turn(pair: Pair) -> Values:
    turned = np.hypot(*np.moveaxis(pair.turned, -1, 0))
    return None, np.where(pair.down, turned, np.nan)


def _floor(pair: Pair) -> Values:
    return pair.depth(pair.source), pair.depth(pair.result)


def _hanging(pair: Pair) -> Values:
    """For how long [s] both feet have been in the air while the source stands."""
    times = np.zeros(pair.count)
    for start, stop in runs(np.any(pair.stands, 1) & ~np.any(pair.down, 1)):
        times[start:stop] = np.arange(1, stop - start + 1) / pair.rate
    return None, times


def _ending(pair: Pair) -> Values:
    _, apart = _pose(pair)
    apart[: -max(1, round(_ENDING * pair.rate))] = np.nan
    return None, apart


def _jerk(pair: Pair) -> Values:
    return jerk(pair.source.joints, pair.rate), jerk(pair.result.joints, pair.rate)


def _speed(pair: Pair) -> Values:
    source, result = (pair.smoothed_velocity(body.com)[:, :2] for body in _both(pair))
    return None, np.linalg.norm(result - source, axis=1)


def _rest(pair: Pair) -> Values:
    source, result = (
        np.linalg.norm(
            pair.smoothed_velocity(body.joints) - body.drifts.mean((1, 2))[:, None], axis=-1
        ).mean(1)
        for body in _both(pair)
    )
    rests = np.zeros(pair.count, bool)
    for start, stop in runs(source < _RESTS):
        rests[start:stop] = stop - start >= round(_RESTING * pair.rate)
    return np.where(rests, source, np.nan), np.where(rests, result, np.nan)


def _both(pair: Pair) -> tuple[Body, Body]:
    return pair.source, pair.result


def _root_mean_square(values: np.ndarray) -> float:
    return np.sqrt((values**2).mean())


#: What a result must keep to, by name; `td.md`, Of the verdict, has the limits in words.
MEASURES = {
    "stands": Measure(
        "share",
        np.max,
        lambda _before: 0.4,
        _height_lost,
        ("it is down at frame {frame:g}",),
    ),
    "pose": Measure(
        "m",
        np.mean,
        lambda _before: 0.04,
        _pose,
        ("its pose is {worst:.2f} m off at frame {frame:g}",),
    ),
    "place": Measure(
        "m",
        np.max,
        lambda _before: 0.15,
        _place,
        ("it is {worst:.2f} m off place at frame {frame:g}",),
        placed=True,
    ),
    "slip": Measure(
        "m/s",
        np.mean,
        lambda before: max(0.03, before),
        _slip,
        ("the {foot} slips at {worst:.2f} m/s at frame {frame:g}",),
    ),
    "foot_turn": Measure(
        "deg",
        lambda values: float(np.percentile(values, 95)),
        lambda _before: 15.0,
        _foot_turn,
        (
            "the {foot} tips by {worst:.0f}° at frame {frame:g}",
            "the {foot} twists by {worst:.0f}° at frame {frame:g}",
        ),
        lambda pair, at: int(np.argmax(pair.turned[at])),
    ),
    "floor": Measure(
        "m",
        np.max,
        lambda before: before + 0.02,
        _floor,
        ("the {foot} sinks {worst:.2f} m in at frame {frame:g}",),
    ),
    "hanging": Measure(
        "s",
        np.max,
        lambda _before: 0.2,
        _hanging,
        ("both feet hang in the air for {worst:.2f} s at frame {frame:g}",),
    ),
    "ending": Measure(
        "m",
        np.mean,
        lambda _before: 0.08,
        _ending,
        ("it does not end in its pose: {worst:.2f} m off at frame {frame:g}",),
    ),
    "jerk": Measure(
        "m/s^3",
        np.mean,
        lambda before: max(_STEADY, 1.2 * before),
        _jerk,
        ("it shakes {ratio:.1f} × the limit at frame {frame:g}",),
    ),
    "speed": Measure(
        "m/s",
        _root_mean_square,
        lambda _before: 0.12,
        _speed,
        ("its speed is {worst:.2f} m/s off at frame {frame:g}",),
        placed=True,
    ),
    "rest": Measure(
        "m/s",
        np.mean,
        lambda _before: 0.12,
        _rest,
        ("it should rest: {worst:.2f} m/s at frame {frame:g}",),
    ),
}

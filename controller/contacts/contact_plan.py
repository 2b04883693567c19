# SPDX-License-Identifier: GPL-3.0-or-later
"""When which part of a foot is to stand: spans of time that are found, shown, changed and kept.

    plan = ContactPlan.load("walk.json")
    plan = plan.grown("left", "heel", 0, start=0.30)
    marks = plan.marks(len(motion), motion.rate)  # (F, 2, 3)

A plan knows nothing of poses: `contact_finding` proposes one from them, `clean_up` makes feet obey.
"""

import itertools
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from .. import documents
from ..exceptions import PlanError
from ..geometry.stance import runs

VERSION = 1
#: What earlier plans said besides, which nothing followed.
_OF_OLD = ("floor", "pins")
#: Feet, and the points of a sole, in the order of the arrays: the heel, the ball (under the joint
#: of the toes) and the tip of the toes.
FEET, POINTS = ("left", "right"), ("heel", "ball", "tip")

#: No foot leaves the floor and comes back in less [s]: a shorter gap is a mistake. All of these
#: limits are by trial on captured clips.
SHORTEST_SWING = 0.06
#: A body in the air keeps its feet there but for so long at either end [s], by which feet seem to
#: stand longer in a filtered motion.
_FLIGHT_EDGE = 0.05
#: No foot that is to stand may be higher above the floor [m, adult] in the animation.
HIGHEST = 0.15
#: ... nor faster in plan [m/s, adult] for so long [s]: that is a foot on its way.
FASTEST, _FAST_FOR = 1.5, 0.1
_SOURCE = "the contact plan"

#: From when to when a point stands [s], and the spans of all points of all feet, by their names.
Span = tuple[float, float]
Feet = dict[str, dict[str, tuple[Span, ...]]]


@dataclass(frozen=True)
class ContactPlan:
    """When each point of each sole stands.

    fps: samples per second of the clip that it was made for [Hz].
    feet: {foot: {point: ((start, end), ...)}} with FEET and POINTS; seconds from the first sample,
        without the end, sorted. A foot or point that is left out never stands.

    Raises PlanError for a plan that contradicts itself: spans that are no times, reversed or
    overlapping, and a foot that is let go for less time than any foot can swing.
    """

    fps: float
    feet: Feet

    def __post_init__(self) -> None:
        object.__setattr__(self, "fps", _number(self.fps, "'fps'", _SOURCE))
        if self.fps <= 0:
            fail(_SOURCE, f"gives {self.fps:g} frames a second: it must be above 0")
        object.__setattr__(self, "feet", _checked_feet(self.feet, _SOURCE))
        for foot in FEET:
            for start, end in self._gaps(foot):
                fail(
                    _SOURCE,
                    f"marks no point of the {foot} foot from {start:.3f} to {end:.3f} s, which is "
                    "too short for a step: grow a span over it, or end the stance earlier",
                )

    def _gaps(self, foot: str) -> Iterator[Span]:
        """(start, end) [s] in which a standing foot would stand on nothing."""
        last = -math.inf
        for start, end in sorted(span for spans in self.feet[foot].values() for span in spans):
            # Half a sample: ends may be rounded.
            if 0.5 / self.fps < start - last < SHORTEST_SWING:
                yield last, start
            last = max(last, end)

    # --- As samples ------------------------------------------------------------------------------

    def marks(self, count: int, rate: float) -> np.ndarray:
        """(count, 2, 3) whether each point of each foot stands, at `rate` samples a second [Hz]."""
        marks = np.zeros((count, len(FEET), len(POINTS)), bool)
        for i, foot in enumerate(FEET):
            for j, point in enumerate(POINTS):
                for span in self.feet[foot][point]:
                    first, stop = (math.floor(time * rate + 0.5) for time in span)
                    marks[max(0, first) : max(0, stop), i, j] = True
        return marks

    def contacts(self, count: int, rate: float) -> np.ndarray:
        """(count, 2) whether each foot stands on any of its points."""
        return np.any(self.marks(count, rate), 2)

    @classmethod
    def from_marks(cls, marks: np.ndarray, fps: float) -> "ContactPlan":
        """The plan of (F, 2, 3) booleans, at `fps` samples a second [Hz]. Raises PlanError."""
        marks = np.asarray(marks, bool)
        feet = {
            foot: {
                point: tuple((first / fps, stop / fps) for first, stop in runs(marks[:, i, j]))
                for j, point in enumerate(POINTS)
            }
            for i, foot in enumerate(FEET)
        }
        return cls(fps, feet)

    def check(
        self,
        count: int,
        rate: float,
        airborne: np.ndarray | None = None,
        rises: np.ndarray | None = None,
        frame: Callable[[float], float] | None = None,
        speeds: np.ndarray | None = None,
    ) -> None:
        """Raise PlanError unless the plan fits a clip of `count` samples at `rate` [Hz].

        airborne: (count,) where the body falls freely and nothing can carry it; None if unknown.
        rises: (count, 2) how far the lowest part of each foot is above what it can stand on, in
        metres of an adult; None if unknown. speeds: (count, 2) of the slowest point of either foot
        in plan, in m/s of an adult; None if unknown. frame: gives the frame of a sample, for
        messages; None to count samples from 0.
        """
        frame = frame or (lambda sample: sample)
        duration = count / rate
        for foot, point, (start, end) in self.spans():
            if start < -0.5 / rate or end > duration + 0.5 / rate:
                fail(
                    _SOURCE,
                    f"lets the {point} of the {foot} foot stand from {start:.6g} to {end:.6g} s, "
                    f"but the clip lasts from 0 to {duration:.3f} s, frames {frame(0):g} to "
                    f"{frame(count - 1):g}: shorten or delete that span",
                )
        contacts = self.contacts(count, rate)
        if not contacts.any():
            fail(
                _SOURCE,
                f"lets no foot stand from frame {frame(0):g} to {frame(count - 1):g}: add a span, "
                "or find contacts again",
            )
        for first, stop in () if airborne is None else flights(airborne, rate):
            inside = contacts[first:stop].any(0)
            if inside.any():
                foot = FEET[int(inside.argmax())]
                fail(
                    _SOURCE,
                    f"lets the {foot} foot stand while the body is in the air, from frame "
                    f"{frame(first):g} to {frame(stop - 1):g}: shorten that span",
                )
        if speeds is None:
            speeds = np.zeros(contacts.shape)
        fast = contacts & (speeds > FASTEST)
        for i, foot in enumerate(FEET):
            for first, stop in runs(fast[:, i]):
                if stop - first >= max(2, _FAST_FOR * rate):
                    fail(
                        _SOURCE,
                        f"lets the {foot} foot stand from frame {frame(first):g} to "
                        f"{frame(stop - 1):g}, where it is on its way at up to "
                        f"{speeds[first:stop, i].max():.1f} m/s: shorten or delete that span",
                    )
        if rises is None:
            return
        high = contacts & (np.asarray(rises) > HIGHEST)
        for i, foot in enumerate(FEET):
            for first, stop in runs(high[:, i]):
                fail(
                    _SOURCE,
                    f"lets the {foot} foot stand from frame {frame(first):g} to "
                    f"{frame(stop - 1):g}, where the animation has it "
                    f"{100 * rises[first:stop, i].max():.0f} cm above any floor: shorten or delete "
                    "that span, or put a floor there",
                )

    def part(self, start: float, duration: float) -> "ContactPlan":
        """The plan of a part of its clip: spans from `start` on, for `duration` [s], cut there."""
        feet = {
            foot: {
                point: tuple(
                    (max(0.0, first - start), min(duration, end - start))
                    for first, end in spans
                    if first < start + duration and end > start
                )
                for point, spans in points.items()
            }
            for foot, points in self.feet.items()
        }
        return replace(self, feet=feet)

    # --- Changes ---------------------------------------------------------------------------------

    def spans(self) -> Iterator[tuple[str, str, Span]]:
        """(foot, point, (start, end)) of every span."""
        for foot in FEET:
            for point in POINTS:
                for span in self.feet[foot][point]:
                    yield foot, point, span

    def span_at(self, foot: str, point: str, time: float) -> int | None:
        """Number of the span that holds a time [s]; None if that point is free then."""
        for i, (start, end) in enumerate(self.feet[foot][point]):
            if start <= time < end:
                return i
        return None

    def grown(
        self,
        foot: str,
        point: str,
        index: int,
        start: float | None = None,
        end: float | None = None,
    ) -> "ContactPlan":
        """The plan with another start or end [s] of a span, earlier or later. Raises PlanError."""
        spans = list(self.feet[foot][point])
        first, last = spans[index]
        spans[index] = (first if start is None else start, last if end is None else end)
        return self._with(foot, point, spans)

    def added(self, foot: str, point: str, start: float, end: float) -> "ContactPlan":
        """The plan with one more span [s]. Raises PlanError."""
        return self._with(foot, point, [*self.feet[foot][point], (start, end)])

    def deleted(self, foot: str, point: str, index: int) -> "ContactPlan":
        """The plan without a span. Raises PlanError if a standing foot would be left on nothing."""
        spans = list(self.feet[foot][point])
        del spans[index]
        return self._with(foot, point, spans)

    def _with(self, foot: str, point: str, spans: Iterable[Span]) -> "ContactPlan":
        feet = self.feet | {foot: self.feet[foot] | {point: tuple(spans)}}
        return replace(self, feet=feet)

    # --- As data ---------------------------------------------------------------------------------

    def as_dict(self) -> dict[str, Any]:
        """The plan as JSON-able data; times to the millisecond."""
        feet = {
            foot: {
                point: [[round(start, 3), round(end, 3)] for start, end in spans]
                for point, spans in points.items()
            }
            for foot, points in self.feet.items()
        }
        return {"version": VERSION, "fps": self.fps, "feet": feet}

    @classmethod
    def from_dict(cls, data: Any, source: str = _SOURCE) -> "ContactPlan":
        """The plan that `as_dict` gave.

        source: what errors call the data. Raises PlanError for anything else.
        """
        if not isinstance(data, dict):
            fail(source, "is not an object with 'version', 'fps' and 'feet'")
        if data.get("version") != VERSION or isinstance(data["version"], bool):
            fail(source, f"is not of version {VERSION}: write it again with this Poise")
        unknown = sorted(set(data) - {"version", "fps", "feet", *_OF_OLD})
        if unknown:
            fail(source, f"has '{unknown[0]}', which no plan has: remove it")
        if data.get("pins", []) != []:
            fail(source, "has pins, which this version of Poise does not know: remove them")
        feet = _group(data.get("feet"), FEET, "'feet'", source)
        for foot in FEET:
            if foot not in feet:
                fail(source, f"has no '{foot}' in 'feet': give that foot {{}} if it never stands")
        fps: Any = data.get("fps")  # checked with all else
        try:
            return cls(fps, feet)
        except PlanError as error:
            text = str(error)
            start = _SOURCE[0].upper() + _SOURCE[1:]
            name = source[0].upper() + source[1:]
            raise PlanError(text.replace(start, name, 1)) from None

    def save(self, path: str | os.PathLike) -> None:
        """Write a plan file; one that is there is replaced as a whole, or not at all.

        Raises PlanError if the folder cannot be written to or the disk is full.
        """
        try:
            documents.write(path, json.dumps(self.as_dict()) + "\n")
        except OSError as error:
            raise PlanError(
                f"The contact plan '{Path(path)}' cannot be written ({error.strerror}): make room, "
                "or choose another folder."
            ) from error

    @classmethod
    def load(cls, path: str | os.PathLike) -> "ContactPlan":
        """Read a plan file. Raises PlanError, naming the file."""
        source = f"the contact plan '{path}'"
        return cls.from_dict(documents.read(path, source, fail), source)


def flights(airborne: np.ndarray, rate: float) -> Iterator[tuple[int, int]]:
    """(first, stop) of each stretch of samples in which no foot can stand, of (F,) samples at
    `rate` [Hz] in which the body falls freely: without its ends, and long enough for a step."""
    edge = round(_FLIGHT_EDGE * rate)
    for first, stop in runs(airborne):
        if stop - first - 2 * edge > SHORTEST_SWING * rate + 1:
            yield first + edge, stop - edge


# --- Checks --------------------------------------------------------------------------------------


def fail(source: object, problem: str) -> NoReturn:
    """Raise PlanError: what `source` names has this problem."""
    name = str(source)
    raise PlanError(f"{name[:1].upper()}{name[1:]} {problem}.")


def _number(value: object, what: str, source: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        fail(source, f"gives {what} as {repr(value)[:40]}: it must be a number")
    try:
        value = float(value)
    except OverflowError:  # a whole number with hundreds of digits
        value = math.inf
    if not math.isfinite(value):
        fail(source, f"gives {what} as {value}: it must be a finite number")
    return value


def _group(value: object, known: tuple[str, ...], what: str, source: str) -> dict[str, Any]:
    """A dict in which all keys are known."""
    if not isinstance(value, dict):
        fail(source, f"has no spans for each of {', '.join(known)} in {what}")
    for key in value:
        if key not in known:
            fail(source, f"names '{key}' in {what}: known are {', '.join(known)}")
    return value


def _checked_feet(feet: object, source: str) -> Feet:
    """{foot: {point: ((start, end), ...)}} of whatever was given. Raises PlanError."""
    feet = _group(feet, FEET, "'feet'", source)
    result = {}
    for foot in FEET:
        points = _group(feet.get(foot, {}), POINTS, f"the {foot} foot", source)
        result[foot] = {
            point: _checked_spans(points.get(point, ()), f"the {point} of the {foot} foot", source)
            for point in POINTS
        }
    return result


def _checked_spans(spans: object, what: str, source: str) -> tuple[Span, ...]:
    """Sorted ((start, end), ...) of one point. Raises PlanError."""
    if not isinstance(spans, list | tuple):
        fail(source, f"has no list of spans for {what}")
    result = []
    for span in spans:
        if not isinstance(span, list | tuple) or len(span) != 2:
            fail(source, f"has a span of {what} that is not a start and an end in seconds")
        start, end = (_number(time, f"a time of {what}", source) for time in span)
        if not start < end:
            fail(
                source,
                f"has a span of {what} that ends at {end:g} s, not after its start at {start:g} s",
            )
        result.append((start, end))
    result.sort()
    for (_, end), (start, _) in itertools.pairwise(result):
        if start < end:
            fail(
                source,
                f"has spans of {what} that overlap from {start:g} to {end:g} s: shorten one, or "
                "make one of both",
            )
    return tuple(result)

# SPDX-License-Identifier: GPL-3.0-or-later
"""Contact plans that are kept with an action: read, written, changed at a frame.

A plan is JSON text in the action's custom property PROPERTY, one for each slot: the form of a plan
file, and with "frames" the first and the last frame that it is for. Its seconds count from the
first of them, at its own "fps": a frame is the same one whatever the scene's rate becomes.
"""

import contextlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

from ...controller.contacts.contact_plan import ContactPlan, fail
from ...controller.exceptions import PlanError
from ..blender import compat
from ..rigs import bake_marks, bake_target, strips
from ..rigs.reference import Reading

if TYPE_CHECKING:
    import bpy

PROPERTY = "poise_contacts"

#: So long [s] is a span that is added; no part of a foot stands for less.
ADDED = 0.2
#: An end may be so far [frames] beside its frame: times are kept to the millisecond.
_NEAR = 0.01
#: Ends of spans that are so close [s] are one: a time that is kept is rounded, as one that is new.
_SAME = 0.0015


@dataclass(frozen=True)
class Kept:
    """A plan in the frames of an action.

    plan: ContactPlan, whose time 0 is the frame `first`, with `plan.fps` frames a second. last:
    last frame that it is for.
    """

    plan: ContactPlan
    first: float
    last: float

    def frame(self, time: float) -> float:
        """The frame of a time [s]."""
        return self.first + time * self.plan.fps

    def time(self, frame: float) -> float:
        """The time [s] of a frame."""
        return (frame - self.first) / self.plan.fps

    def spans(self) -> Iterator[tuple[str, str, float, float]]:
        """(foot, point, first frame, frame at which it stands no more) of every span."""
        for foot, point, (start, end) in self.plan.spans():
            yield foot, point, self.frame(start), self.frame(end)

    def as_dict(self) -> dict[str, Any]:
        """What is kept, as JSON-able data."""
        return self.plan.as_dict() | {"frames": [self.first, self.last]}

    @classmethod
    def from_dict(cls, data: dict[str, Any], source: str) -> Self:
        """What `as_dict` gave. source: what errors call it. Raises PlanError."""
        frames = data.pop("frames", None) if isinstance(data, dict) else None
        plan = ContactPlan.from_dict(data, source)
        if not (
            isinstance(frames, list)
            and len(frames) == 2
            and all(type(frame) in (int, float) for frame in frames)
            and -1e9 < frames[0] < frames[1] < 1e9
        ):
            fail(
                source,
                "does not say for which frames it is: find contacts again, or give 'frames' as "
                "first and last",
            )
        return cls(plan, float(frames[0]), float(frames[1]))

    @classmethod
    def of(cls, reading: Reading, plan: ContactPlan) -> Self:
        """A plan for a Reading, to be kept."""
        step = float(reading.frames[1] - reading.frames[0])
        plan = ContactPlan.from_dict(replace(plan, fps=reading.rate * step).as_dict())
        return cls(plan, float(reading.frames[0]), float(reading.frames[-1]))

    def for_reading(self, reading: Reading) -> ContactPlan:
        """The ContactPlan for what was read: the part of it, at its rate. Raises PlanError if more
        was read than the plan is for."""
        first, last = float(reading.frames[0]), float(reading.frames[-1])
        step = float(reading.frames[1] - reading.frames[0])
        if first < self.first - _NEAR or last > self.last + _NEAR:
            raise PlanError(
                f"The contact plan of '{reading.action}' is for frames {self.first:g} to "
                f"{self.last:g}, and {first:g} to {last:g} are read: find contacts again, or "
                "choose frames among those."
            )
        per_second = reading.rate * step
        feet = {
            foot: {
                point: tuple(
                    (
                        (self.frame(start) - self.first) / per_second,
                        (self.frame(end) - self.first) / per_second,
                    )
                    for start, end in spans
                )
                for point, spans in points.items()
            }
            for foot, points in self.plan.feet.items()
        }
        plan = ContactPlan(reading.rate, feet)
        return plan.part((first - self.first) / per_second, len(reading.frames) / reading.rate)

    # --- Changes at a frame ----------------------------------------------------------------------

    def near(self, foot: str, point: str, frame: float) -> int:
        """Number of the span that is nearest to a frame. Raises PlanError if there is none."""
        spans, time = self._stances(foot, point), self.time(frame)
        return min(range(len(spans)), key=lambda i: _apart(spans[i], time))

    def begun(self, foot: str, point: str, frame: float) -> Self:
        """The same, where the span at a frame, or else the next one, begins there."""
        self._demand(frame)
        spans, time = self._stances(foot, point), self.time(frame + _NEAR)
        i = next((i for i, span in enumerate(spans) if span[1] > time), None)
        if i is None:
            raise PlanError(
                f"The {point} of the {foot} foot does not stand at frame {frame:g} nor later: go "
                "back to a contact, or add one."
            )
        return self._with(self.plan.grown(foot, point, i, start=self.time(frame)))

    def ended(self, foot: str, point: str, frame: float) -> Self:
        """The same, where the span at a frame, or else the one before, ends with it."""
        self._demand(frame)
        spans, time = self._stances(foot, point), self.time(frame + _NEAR)
        i = max((i for i, span in enumerate(spans) if span[0] < time), default=None)
        if i is None:
            raise PlanError(
                f"The {point} of the {foot} foot does not stand at frame {frame:g} nor earlier: go "
                "on to a contact, or add one."
            )
        return self._with(self.plan.grown(foot, point, i, end=self.time(frame + 1)))

    def held(self, foot: str, point: str, frame: float, reach: float) -> tuple[int, str] | None:
        """(number of a span, "start" or "end") of the end nearest to a frame, where the first and
        the last frame of a span reach half of one farther; None if none is within `reach`
        [frames]."""
        ends = [
            (abs(self.frame(time) - 0.5 - frame), i, which)
            for i, span in enumerate(self.plan.feet[foot][point])
            for which, time in zip(("start", "end"), span, strict=True)
        ]
        apart, i, which = min(ends, default=(math.inf, 0, ""))
        return (i, which) if apart <= reach else None

    def moved(self, foot: str, point: str, i: int, which: str, frame: float) -> Self:
        """The same with the "start" or the "end" of a span at a frame: at its left edge."""
        frame = min(max(frame, self.first), self.last + 1)
        return self._with(self.plan.grown(foot, point, i, **{which: self.time(frame)}))

    def added(self, foot: str, point: str, frame: float) -> Self:
        """The same with one more span from a frame on, as long as ADDED; where that reaches the
        next one or begins at the end of one, that one is longer instead."""
        self._demand(frame)
        start = self.time(frame)
        if self.plan.span_at(foot, point, start) is not None:
            raise PlanError(f"The {point} of the {foot} foot stands at frame {frame:g} already.")
        end = min(start + ADDED, self.time(self.last + 1))
        spans = self.plan.feet[foot][point]
        after = [i for i, span in enumerate(spans) if start < span[0] <= end + _SAME]
        before = [i for i, span in enumerate(spans) if abs(span[1] - start) <= _SAME]
        if after:
            plan = self.plan.grown(foot, point, after[0], start=start)
        elif before:
            plan = self.plan.grown(foot, point, before[0], end=end)
        else:
            plan = self.plan.added(foot, point, start, end)
        return self._with(plan)

    def deleted(self, foot: str, point: str, frame: float) -> Self:
        """The same without the span at a frame. Raises PlanError if there is none."""
        i = self.plan.span_at(foot, point, self.time(frame + _NEAR))
        if i is None:
            near = self.near(foot, point, frame)
            start, end = (round(self.frame(t), 1) for t in self.plan.feet[foot][point][near])
            raise PlanError(
                f"The {point} of the {foot} foot does not stand at frame {frame:g}, but from frame "
                f"{start:g} to {end - 1:g}: go there to delete that contact."
            )
        return self._with(self.plan.deleted(foot, point, i))

    def _stances(self, foot: str, point: str) -> Sequence[Sequence[float]]:
        """The spans of a part of a foot. Raises PlanError if there is none."""
        spans = self.plan.feet[foot][point]
        if not spans:
            raise PlanError(f"The {point} of the {foot} foot never stands: add a span.")
        return spans

    def _with(self, plan: ContactPlan) -> Self:
        return replace(self, plan=ContactPlan.from_dict(plan.as_dict()))  # as it will be read

    def _demand(self, frame: float) -> None:
        if not self.first - _NEAR <= frame <= self.last + _NEAR:
            raise PlanError(
                f"Frame {frame:g} is not among those of the contact plan, {self.first:g} to "
                f"{self.last:g}: go there, or find contacts again."
            )


def _apart(span: Sequence[float], time: float) -> float:
    return max(span[0] - time, time - span[1], 0.0)


# --- Kept with the action ------------------------------------------------------------------------


def source_of(
    armature: "bpy.types.Object",
) -> "tuple[bpy.types.Action | None, bpy.types.ActionSlot | None]":
    """The (action, slot) that an armature's contacts are kept with: what animates it, or what that
    is a bake of. Raises PlanError if there is none."""
    action, slot = bake_target.unbaked(armature)
    if action is None:
        raise PlanError(
            f"'{armature.name}' has no action of its own that contacts could be kept with: give it "
            "one, as with Bake Action of the NLA strips."
        )
    return action, slot


def kept(action: "bpy.types.Action", slot: "bpy.types.ActionSlot | None") -> Kept | None:
    """The Kept plan of an (action, slot); None if there is none. Raises PlanError for one that
    cannot be read; it stays as it is."""
    if action is None or PROPERTY not in action:
        return None
    key = _key(action, slot, _read(action))
    return None if key is None else _parsed(action[PROPERTY], key, action.name)


def check(action: "bpy.types.Action") -> None:
    """Raise PlanError if no contacts can be kept with an action, as it is linked."""
    if action.library is not None:
        raise PlanError(
            f"The action '{action.name}' is linked from '{action.library.filepath}', so its "
            "contacts cannot be kept: make it local, or change them there."
        )


def keep(
    action: "bpy.types.Action", slot: "bpy.types.ActionSlot | None", plan: Kept | None
) -> None:
    """Keep a Kept plan with an (action, slot), or none. Raises PlanError if the action is linked,
    or what it has cannot be read."""
    check(action)
    found = _read(action) if PROPERTY in action else {}
    key = _key(action, slot, found)
    if key is not None:
        del found[key]
    if plan is not None:
        found[_name(slot)] = plan.as_dict()
    if found:
        action[PROPERTY] = json.dumps(found)
    elif PROPERTY in action:
        del action[PROPERTY]


def hand_on(armature: "bpy.types.Object") -> None:
    """Let the bake that animates an armature have the plan that its source has, for whoever
    simulates it next."""
    baked = strips.shown(armature)
    mark = bake_target.mark_of(*baked)
    if mark is None or not mark["whole"]:
        return
    with contextlib.suppress(PlanError):  # one that cannot be read stays where it is
        action, slot = baked
        keep(action, slot, kept(*bake_marks.source_of(mark)))


def discard(action: "bpy.types.Action") -> None:
    """Take away whatever an action has, also what cannot be read."""
    if PROPERTY in action and action.library is None:
        del action[PROPERTY]


def plan_for(reading: Reading) -> ContactPlan | None:
    """The ContactPlan that is kept with what was read; None without. Raises PlanError if it does
    not fit or cannot be read."""
    if reading.action is None:
        return None
    action = compat.find_action(reading.action, reading.library)
    found = kept(action, compat.find_slot(action, reading.slot))
    return None if found is None else found.for_reading(reading)


def check_rate(plan: ContactPlan, reading: Reading) -> None:
    """Raise PlanError if a plan is for another frame rate than what was read, whose frames are at
    other seconds."""
    own = reading.rate * float(reading.frames[1] - reading.frames[0])
    if not any(math.isclose(plan.fps, rate, rel_tol=1e-3) for rate in (own, reading.rate)):
        raise PlanError(
            f"The contact plan is for {plan.fps:g} frames a second, and the animation has "
            f"{own:g}: give it that rate (--fps), or, if the plan's seconds are right, change its "
            f"'fps' to {own:g}."
        )


def outdated(shot: Any) -> bool:
    """Whether contacts have changed since a Shot or CleanShot was read."""
    if shot.options.contacts is not None or shot.reading.looped is not None:
        return False
    action = compat.find_action(shot.reading.action, shot.reading.library)
    if action is None:
        return False
    try:
        return plan_for(shot.reading) != shot.kept
    except PlanError:
        return True


def _name(slot: "bpy.types.ActionSlot | None") -> str:
    return compat.slot_name(slot) or ""


def _key(
    action: "bpy.types.Action", slot: "bpy.types.ActionSlot | None", found: Mapping[str, Any]
) -> str | None:
    """Under which of its slots' names an action keeps the plan of a slot; None if it has none. The
    only one that no other slot has is it, too: slots are renamed, and older files have none."""
    name = _name(slot)
    if name in found:
        return name
    others = {_name(one) for one in action.slots} if compat.HAS_SLOTS else set()
    left = [key for key in found if key not in others]
    return left[0] if len(left) == 1 and len(others) <= 1 else None


@lru_cache(maxsize=16)
def _parsed(text: str, key: str, name: str) -> Kept:
    return Kept.from_dict(json.loads(text)[key], _source(name))


def _read(action: "bpy.types.Action") -> dict[str, Any]:
    """{name of the slot: data} of all that an action keeps. Raises PlanError."""
    text, found = action[PROPERTY], None
    if isinstance(text, str):
        with contextlib.suppress(ValueError, RecursionError):
            found = json.loads(text)
    if not isinstance(found, dict) or not all(isinstance(data, dict) for data in found.values()):
        fail(
            _source(action.name),
            "cannot be read, perhaps it was edited by hand: mend the action's custom property "
            f"'{PROPERTY}', or choose automatic contacts to remove it",
        )
    return found


def _source(name: str) -> str:
    return f"the contact plan of the action '{name}'"

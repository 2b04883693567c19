# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a body is to be, and when: an animation whose steps and hips are moved to get there.

Each stance is moved as a whole, so that no foot slides; swings lead from one to the next, and the
hips go where the feet do. How far is a curve in time: from rest where the animation begins, through
what each waypoint asks for with the least acceleration, to rest at the last one. Beyond, the body
goes on beside the animation.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..body.character import Character
from ..exceptions import SettingsError, demand
from ..geometry.leg_bending import bend_leg, sinking
from ..geometry.motion import Motion
from ..geometry.skeleton import FEET, SIDES
from ..geometry.stance import adult_size, around, bridged, runs
from ..geometry.trajectory import Trajectory, bell, eased

#: What no body is asked for, of an adult: that a foot lands so much farther away from where the
#: other one stands than in the animation [m]; that the hips sink so far [m] for legs that are too
#: short; that they go so far [m] without a step; and of any, that the floor pushes the hips aside
#: by more [m/s^2]: half its weight. By trial on captured walks and a run: up to there they get to
#: their waypoints, half as far again most fall.
MOST_STEP, MOST_SINKING, MOST_LEAN, MOST_PUSH = 0.45, 0.14, 0.03, 5.0
#: Hips follow the feet, and sink, smoothed over so long [s]; by trial.
_FOLLOWING, _SINKING = 0.4, 0.2
#: Waypoints that steps lead to together by less than this share are one.
_APART = 0.1
_HALVINGS = 12  # of what is too far, until what is not is known to millimetres
_SPARE = 0.01  # [m] that is told less than could be, for it is rounded
_SAME = 1e-6  # [m]


@dataclass(frozen=True)
class Waypoint:
    """Where a body is to be, and when.

    time [s]: from the first sample of the motion. place: (x, y) [m] of its pelvis, None for where
    the animation has that then. lead: (x, y) [m] by which the reference goes farther, for the body
    to get there. name: for messages.
    """

    time: float
    place: tuple[float, float] | None = None
    lead: tuple[float, float] = (0.0, 0.0)
    name: str = ""

    def __post_init__(self) -> None:
        for field in ("place", "lead"):  # JSON knows lists only
            value = getattr(self, field)
            object.__setattr__(self, field, value if value is None else tuple(value))


class Detour:
    """A trajectory that goes by waypoints.

    waypoints: those given, in the order of time, each with its place.
    """

    def __init__(
        self,
        character: Character,
        trajectory: Trajectory,
        contacts: np.ndarray,
        waypoints: Sequence[Waypoint],
        motion: Motion,
    ) -> None:
        """contacts: (F, 2) stance of left and right. motion: what the trajectory is of. Raises
        SettingsError for waypoints that cannot be, or that no body reaches."""
        posed, size = character.pose(trajectory), adult_size(character)
        self._clip = _Clip(character, motion, trajectory, contacts, *posed, size)
        ordered = sorted(waypoints, key=lambda waypoint: waypoint.time)
        self._at = np.array([waypoint.time for waypoint in ordered]) * trajectory.rate
        self._check_times(ordered)
        own = sampled(trajectory.root[:, :2], self._at)
        self.waypoints = tuple(
            replace(one, place=(x, y)) if one.place is None else one
            for one, (x, y) in zip(ordered, own.tolist(), strict=True)
        )
        self._wishes = np.array([one.place for one in self.waypoints]) - own
        self._demand_reachable()

    def moved(self, leading: bool = False) -> Trajectory:
        """The trajectory by its waypoints; the very same one if it passes them. leading: with the
        leads of the waypoints."""
        wishes = self._wishes
        if leading:
            wishes = wishes + [one.lead for one in self.waypoints]
        if np.abs(wishes).max() < _SAME:
            return self._clip.trajectory
        return self._performed(wishes).trajectory()

    def _performed(self, wishes: np.ndarray) -> "_Moved":
        """What comes of wishes (n, 2) [m] of the first n waypoints."""
        return _Moved(self._clip, self._at[: len(wishes)], wishes)

    def _check_times(self, ordered: Sequence[Waypoint]) -> None:
        """Raise SettingsError for a waypoint at no time of the motion, or at that of another."""
        frames = [self._clip.motion.frame(at) for at in self._at.tolist()]
        last = len(self._clip.contacts) - 1
        begins, ends = (self._clip.motion.frame(sample) for sample in (0, last))
        for one, at, frame in zip(ordered, self._at.tolist(), frames, strict=True):
            place = one.place or (0.0, 0.0)
            demand(
                np.isfinite([at, *place]).all(),
                f"The waypoint '{one.name}' has a time or a place that is not a number: mend it.",
            )
            demand(
                0 < at <= last + _SAME,
                f"The waypoint '{one.name}' is at frame {frame:g}; the body begins at frame "
                f"{begins:g}, where the animation does, and is simulated to frame {ends:g}: choose "
                "a frame between.",
            )
        for i in np.flatnonzero(np.diff(self._at) < 1):
            raise SettingsError(
                f"The waypoints '{ordered[i].name}' and '{ordered[i + 1].name}' are both at frame "
                f"{frames[i]:g}, and no body can be at two places: remove one, or choose another "
                "frame."
            )

    def _demand_reachable(self) -> None:
        """Raise SettingsError for the first waypoint that no body reaches in time, and say how near
        it gets."""
        before = np.zeros(2)
        for count, wish in enumerate(self._wishes, 1):
            why = self._performed(self._wishes[:count]).why()
            if why:
                low, high = 0.0, 1.0
                for _ in range(_HALVINGS):
                    share = (low + high) / 2
                    wishes = self._wishes[:count].copy()
                    wishes[-1] = before + share * (wish - before)
                    too_far = self._performed(wishes).why()
                    low, high = (low, share) if too_far else (share, high)
                self._refuse(count - 1, why, low, before)
            before = wish

    def _refuse(self, index: int, why: str, share: float, before: np.ndarray) -> None:
        one, wish = self.waypoints[index], self._wishes[index]
        assert one.place is not None  # it has been found
        rest = (1 - share) * (wish - before)
        rest = rest * (1 + _SPARE / max(float(np.linalg.norm(rest)), _SPARE))
        x, y = (np.array(one.place) - rest).tolist()
        frame = self._clip.motion.frame(float(self._at[index]))
        raise SettingsError(
            f"No body can be at the waypoint '{one.name}' at frame {frame:g}: {why}. It can be "
            f"{np.linalg.norm(rest):.2f} m away from there, at X {x:.2f} m, Y {y:.2f} m: move it "
            "there, or give it more time."
        )


class _Clip(NamedTuple):
    """What is moved, and what is known of it: joints (F, S, 3) [m] and frames (F, S, 3, 3) of the
    trajectory; contacts (F, 2); size of the body against an adult's."""

    character: Character
    motion: Motion
    trajectory: Trajectory
    contacts: np.ndarray
    joints: np.ndarray
    frames: np.ndarray
    size: float


class _Moved:
    """A clip that is moved by wishes (n, 2) [m] at samples (n,)."""

    def __init__(self, clip: _Clip, at: np.ndarray, wishes: np.ndarray) -> None:
        self._clip = clip
        passing = _passing(at, len(clip.contacts))
        feet = self._stepped(passing)
        rate = clip.trajectory.rate
        hips = np.stack([bell(c, _FOLLOWING, rate) for c in feet.mean(1).T], 1)
        hips *= eased(np.arange(len(hips)) / rate / _FOLLOWING)[:, None]
        response = sampled(hips, at)
        knots = np.linalg.lstsq(response, wishes, rcond=_APART)[0]
        #: What no step leads to is left to hips that lean.
        rest = wishes - response @ knots
        self.rest = np.linalg.norm(rest, axis=1)
        self._feet = feet @ knots
        self._hips = hips @ knots + passing @ _at_most(rest, MOST_LEAN * clip.size)
        self._sinks = self._sinking()

    def _stepped(self, path: np.ndarray) -> np.ndarray:
        """(F, 2, n) how far the feet are, whose body is to go along paths (F, n)."""
        contacts = self._clip.contacts
        feet = np.repeat(path[:, None], 2, axis=1)
        for foot in range(2):
            contact = contacts[:, foot]
            for start, stop in runs(contact):
                # The clip begins on its mark.
                feet[start:stop, foot] = path[start:stop].mean(0) if start else 0.0
            if contact.any():
                columns = feet[:, foot].T
                feet[:, foot] = np.stack([bridged(c, contact) for c in columns], 1)
        return feet

    def _aims(self) -> list[np.ndarray]:
        """Where the ankles are: (F, 3) [m] each."""
        moved = np.pad(self._feet, ((0, 0), (0, 0), (0, 1)))
        return [self._clip.joints[:, foot] + moved[:, i] for i, foot in enumerate(FEET)]

    def _sinking(self) -> np.ndarray:
        """(F,) how far [m] the hips go down for legs that reach no farther than they did."""
        rate, hips = self._clip.trajectory.rate, np.pad(self._hips, ((0, 0), (0, 1)))
        over = sinking(self._clip.joints, self._aims(), hips)
        return bell(around(over, round(_SINKING / 2 * rate), np.max), _SINKING, rate)

    def why(self) -> str:
        """Why no body does it; empty if one does."""
        size, frame = self._clip.size, self._clip.motion.frame
        if self.rest[-1] > MOST_LEAN * size:
            return "no foot steps there before"
        farther, at = self._steps()
        if farther > MOST_STEP * size:
            return (
                f"the step at frame {frame(at):g} would be {farther:.2f} m off the "
                f"animation's, and {MOST_STEP * size:.2f} m is the most"
            )
        pushes = np.linalg.norm(np.diff(self._hips, 2, axis=0), axis=1)
        pushes = pushes * self._clip.trajectory.rate**2
        if pushes.max(initial=0.0) > MOST_PUSH:
            at = 1 + int(np.argmax(pushes))
            return (
                f"its hips would be pushed by {pushes.max():.1f} m/s² at frame {frame(at):g}, and "
                f"{MOST_PUSH:g} m/s² is the most"
            )
        deepest = int(np.argmax(self._sinks))
        if self._sinks[deepest] > MOST_SINKING * size:
            return f"legs are too short for the step at frame {frame(deepest):g}"
        return ""

    def _steps(self) -> tuple[float, int]:
        """By how much [m] a step is off that of the animation, at most, and its sample."""
        begins = [
            (int(start), foot)
            for foot in range(2)
            for start, _ in runs(self._clip.contacts[:, foot])
        ]
        begins.sort()
        places = [self._feet[start, foot] for start, foot in begins]
        off = [float(np.linalg.norm(b - a)) for a, b in pairwise(places)]
        return max(zip(off, [start for start, _ in begins[1:]], strict=True), default=(0.0, 0))

    def trajectory(self) -> Trajectory:
        """The trajectory that is moved."""
        clip = self._clip
        joints, frames = clip.joints.copy(), clip.frames.copy()
        joints += np.column_stack([self._hips, -self._sinks])[:, None]
        for side, aim in zip(SIDES, self._aims(), strict=True):
            bend_leg(joints, frames, side, aim)
        return clip.character.trajectory_of(clip.trajectory.rate, joints[:, 0], frames)


def sampled(values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """(n, m) of values (F, m) at samples (n,), straight between them."""
    grid = np.arange(len(values))
    return np.stack([np.interp(at, grid, column) for column in values.T], 1)


def _at_most(vectors: np.ndarray, most: float) -> np.ndarray:
    """Vectors (n, 2), none longer than that."""
    sizes = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors * np.minimum(1, most / np.maximum(sizes, _SAME))


def _passing(at: np.ndarray, count: int) -> np.ndarray:
    """(F, n) what each of n values at samples (n,) adds to the curve through all of them: a cubic
    spline, from rest at 0 to rest at the last one, where it stays."""
    times = np.concatenate([[0.0], at])
    values = np.vstack([np.zeros(len(at)), np.eye(len(at))])
    steps, rises = np.diff(times)[:, None], np.diff(values, axis=0)
    slopes = np.zeros_like(values)
    if len(at) > 1:
        # As much acceleration on both sides of a value.
        inverse = 1 / steps[:, 0]
        matrix = np.diag(2 * (inverse[:-1] + inverse[1:]))
        matrix += np.diag(inverse[1:-1], 1) + np.diag(inverse[1:-1], -1)
        pulls = rises / steps**2
        slopes[1:-1] = np.linalg.solve(matrix, 3 * (pulls[:-1] + pulls[1:]))
    grid = np.minimum(np.arange(count), at[-1])
    low = np.clip(np.searchsorted(times, grid, "right") - 1, 0, len(at) - 1)
    x = ((grid - times[low]) / steps[low, 0])[:, None]
    leave, arrive, rise = slopes[low] * steps[low], slopes[low + 1] * steps[low], rises[low]
    bend = 3 * rise - 2 * leave - arrive
    return values[low] + x * (leave + x * (bend + x * (leave + arrive - 2 * rise)))

# SPDX-License-Identifier: GPL-3.0-or-later
"""Endless walks: the loop in a walking or running clip, and motions of any length made of it.

cycle = find_cycle(character, motion)
endless = Walk(cycle, seconds=20.0).motion(character, motion)

A cycle is described relative to a carrier that moves evenly along the line from its first sample
to its last, and turns evenly with the body. A walk is the cycle on another carrier: one that goes
on where the last round ended, or one that follows a curve.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..body.character import Character
from ..body.momentum import GRAVITY
from ..contacts.carried import carried_on
from ..exceptions import MotionError, SettingsError, demand
from ..geometry.leg_bending import bend_leg, sinking, too_high
from ..geometry.motion import Motion
from ..geometry.rotations import (
    arctan2,
    continuous,
    exponential,
    matrix_from_quaternion,
    multiply,
    quaternion_from_matrix,
    rotation_about,
    rotation_vector,
    swivel,
    swivelled,
    unit,
)
from ..geometry.skeleton import FEET, SEGMENT_INDEX, SIDES, TOES
from ..geometry.stance import reference_contacts, runs
from ..geometry.trajectory import Trajectory, bell, butterworth, eased
from ..ranges import RANGES
from ..support.bearing import TRAVEL_CUTOFF, bearable
from ..support.rolling import rolled
from .acts import Act, Performance, Table, performance, plain
from .commands import Command, Followed, Journey, Passage, Strike, followed, journey, speeds
from .way import Way

# By trial on captured clips: the cycles of their walks and runs last 0.7 to 1.8 s.
_SHORTEST, _LONGEST = 0.4, 2.5  # [s] of a cycle
_CUTOFF = 6.0  # [Hz] of the poses that are compared, as of clips that travel
_VELOCITY_TIME = 0.1  # [s] by which velocities count beside positions
#: Mean distance [m] of the joints at both ends above which a clip has no cycle: captured walks and
#: runs have 0.01 to 0.08, a leap 0.19.
_FARTHEST = 0.12
_AS_GOOD = 1.3  # times the best error: good enough for a better start
#: A clip that turns by less than this in a cycle [rad] is meant to go straight:
#: captured walks turn by up to 7 degrees.
_STRAIGHT = np.radians(10)
#: A curve may turn a walker by at most so much in a cycle [rad]; in tight ones they fall, see
#: `researcher.md`, Endless walks.
_MOST_TURN = np.radians(60)
#: So far feet that stand turn and tip without meaning it [rad]: those that did so as captured fell
#: out of tight bends, and under noise on the spot.
_TREMOR = np.radians(12)
_LEANING = 0.6  # [s] over which a body begins to lean into a bend
_SINKING = 0.25  # [s] over which hips sink for longer steps
#: Who goes sideways sets its feet down at least so far [m] from each other, as wide as they are
#: and a little more; on the spot, so many times as far as it stands, from a width that it comes to
#: in so much time [s]. By trial: of steps from a stand of four walks, at 0.05 to 0.3 m/s to either
#: side, most went across the other foot from their own width.
_CLOSEST, _STEPPED, _SPREADING = 0.12, 2.0, 1.0
#: Slower than this [m/s] nobody steps aside. How many times its own the memory of a pendulum is.
_STAYS, _AVERAGED = 0.005, 8.0
#: Of the clip's own steps, below which feet roll less and less: by trial, on steps on the spot.
_FLATTENING = 0.6
_FLIES = 0.1  # of a cycle, from which on it is a run or a jump
_ROUNDS = 3  # in which weight and legs of a body that stands are brought together
#: As many rounds are moved so that feet bear them, of which the middle one is taken: what is done
#: at the ends of them all does not reach that. An odd number.
_BORNE_ROUNDS = 7
#: Where a leg begins and ends.
_LEGS = [(SEGMENT_INDEX[f"thigh_{side}"], SEGMENT_INDEX[f"foot_{side}"]) for side in SIDES]
#: The legs of a walk on the spot of a curve need something to travel by [m] in a cycle.
_LEAST_TRAVEL = 0.1


@dataclass(frozen=True)
class Cycle:
    """One round of a cyclic motion: the samples first to last, of which the last one looks like
    the first.

    travel: (2,) horizontal displacement [m]; turn: about the vertical [rad]; error: mean distance
    [m] between the joints at both ends, velocities included over 0.1 s.
    """

    first: int
    last: int
    travel: tuple[float, float]
    turn: float
    error: float

    @property
    def period(self) -> int:
        """Samples in it."""
        return self.last - self.first

    @property
    def length(self) -> float:
        """How far it travels [m]."""
        return float(np.hypot(*self.travel))


class _Clip:
    """What a search for cycles needs to know of a clip."""

    def __init__(self, character: Character, motion: Motion) -> None:
        self.trajectory = character.trajectory(motion)
        joints, frames = character.pose(self.trajectory)
        corners = character.sole_corners(joints, frames)
        contacts = reference_contacts(character, corners, motion.rate, False)
        centres = character.body_centres(joints, frames)
        self.contacts = carried_on(character, contacts, corners, centres, motion.rate)
        self.heading = np.unwrap(arctan2(frames[:, 0, 1, 0], frames[:, 0, 0, 0]))
        local = swivelled(joints - joints[:, :1] * [1, 1, 0], -self.heading[:, None])
        values = local.reshape(len(local), -1)
        smooth, speeds = butterworth(values, motion.rate, min(_CUTOFF, motion.rate / 4))
        _, velocity = butterworth(joints[:, 0], motion.rate, min(_CUTOFF, motion.rate / 4))
        velocity = np.repeat(swivelled(velocity, -self.heading), local.shape[1], 0)
        speeds = speeds + velocity.reshape(speeds.shape)
        self.features = np.concatenate([smooth, _VELOCITY_TIME * speeds], 1)
        self.joints = local.shape[1]

    def cycle(self, first: int, last: int) -> Cycle:
        """The Cycle between two samples, whatever it is worth."""
        root = self.trajectory.root
        travel = (root[last] - root[first])[:2]
        turn = float(self.heading[last] - self.heading[first])
        return Cycle(first, last, tuple(travel.tolist()), turn, float(self.errors(first, last)))

    def errors(self, first: int | np.ndarray, last: int | np.ndarray) -> np.ndarray:
        """Error of a Cycle between samples, or between many of them."""
        apart = self.features[last] - self.features[first]
        return np.sqrt((apart**2).sum(-1) / self.joints)

    def once(self, first: np.ndarray, period: int) -> np.ndarray:
        """(n,) whether each foot comes down once in the round of a period [samples] that begins at
        samples (n,): after its first one, or as it starts, which is where it ends."""
        down, last = self.contacts, first + period
        rises = np.diff(down.astype(int), axis=0) > 0
        before = np.concatenate([np.zeros((1, 2), int), np.cumsum(rises, axis=0)])
        after = before[last] - before[first]
        around = before[last - 1] - before[first] + (down[first] & ~down[last - 1])
        return (after == 1).all(1) | (around == 1).all(1)


def find_cycle(character: Character, motion: Motion) -> Cycle:
    """The best Cycle of a clip: a stretch in which each foot comes down once, with the closest
    poses and velocities at its ends.

    Raises MotionError if there is none.
    """
    clip, count = _Clip(character, motion), len(motion)
    best: tuple[float, int, int] | None = None
    longest = min(round(_LONGEST * motion.rate), count - 1)
    for period in range(round(_SHORTEST * motion.rate), longest + 1):
        first = np.arange(count - period)
        once = clip.once(first, period)
        errors = np.where(once, clip.errors(first, first + period), np.inf)
        at = int(np.argmin(errors))
        if best is None or errors[at] < best[0]:
            best = float(errors[at]), at, at + period
    if best is None or best[0] > _FARTHEST:
        why = "no two steps in it are alike" if best and np.isfinite(best[0]) else _no_steps(best)
        raise MotionError(
            f"'{motion.name}' has no cycle to walk on, since {why}: choose a clip with two whole "
            "steps of an even walk or run, or set the cycle's first and last frame in Locomotion."
        )
    error, start, end = best
    return clip.cycle(*_calmest(clip, end - start, error))


def _calmest(clip: _Clip, period: int, best: float) -> tuple[int, int]:
    """First and last sample of a cycle that is nearly as good as the best and begins far from any
    change of stance: there a body that starts with the reference's speeds stands well."""
    first = np.arange(len(clip.contacts) - period)
    good = clip.errors(first, first + period) <= _AS_GOOD * best
    good &= clip.once(first, period)
    changes = np.flatnonzero((np.diff(clip.contacts.astype(int), axis=0) != 0).any(1)) + 0.5
    away = np.abs(first[:, None] - changes).min(1)
    single = clip.contacts[first].sum(1) == 1
    at = int(np.argmax(np.where(good & single, away, np.where(good, 0.0, -1.0))))
    return at, at + period


def _no_steps(best: tuple[float, int, int] | None) -> str:
    return "it is too short" if best is None else "each foot would have to come down in it"


def cycle_between(
    character: Character, motion: Motion, first_frame: float, last_frame: float
) -> Cycle:
    """The Cycle between two frames of a clip, as the animator chose them.

    Raises SettingsError if they are outside of the clip or no cycle long.
    """
    first, last = (
        round((frame - motion.first_frame) / motion.frame_step)
        for frame in (first_frame, last_frame)
    )
    start, stop = motion.frame(0), motion.frame(len(motion) - 1)
    if first < 0 or last >= len(motion):
        raise SettingsError(
            f"The cycle from frame {first_frame:g} to {last_frame:g} is outside of "
            f"'{motion.name}': choose frames from {start:g} to {stop:g}."
        )
    seconds = (last - first) / motion.rate
    if not _SHORTEST <= seconds <= 2 * _LONGEST:
        raise SettingsError(
            f"The cycle from frame {first_frame:g} to {last_frame:g} lasts {seconds:.2g} s: choose "
            f"frames {_SHORTEST:g} to {2 * _LONGEST:g} s apart, from a step to the next one of the "
            "same foot."
        )
    return _Clip(character, motion).cycle(first, last)


# --- Where to go ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gait:
    """One round of a walk as its carrier sees it, as plain data, to blend another one with.

    speed [m/s], period [s]. height: of the body [m]. strikes: where feet come down in it, one of
    each. root (P, 3) [m], rotation (P, 4), angles (P, dofs) [rad], contacts (P, 2).
    """

    speed: float
    period: float
    height: float
    strikes: tuple[Strike, ...]
    root: Table
    rotation: Table
    angles: Table
    contacts: Table

    @classmethod
    def of(cls, character: Character, motion: Motion, cycle: Cycle) -> "Gait":
        """That of a clip's Cycle. Raises MotionError where feet do not come down once each."""
        *poses, contacts = _seamless(character, motion, cycle)
        strikes = _strikes(contacts)
        if sorted(one.side for one in strikes) != [-1, 1]:
            raise MotionError(
                f"'{motion.name}' cannot be blended with another walk: in its cycle a foot comes "
                "down more than once."
            )
        seconds = cycle.period / motion.rate
        tables = map(plain, (*poses, contacts))
        return cls(cycle.length / seconds, seconds, character.height, strikes, *tables)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Gait":
        """What `dataclasses.asdict` gave."""
        strikes = tuple(Strike(*one) for one in data["strikes"])
        tables = {name: plain(data[name]) for name in ("root", "rotation", "angles", "contacts")}
        return cls(**data | tables | {"strikes": strikes})

    @property
    def facing(self) -> float:
        """Where the body looks, against where it goes [rad]."""
        ahead = matrix_from_quaternion(np.array(self.rotation))[:, :, 0].mean(0)
        return float(np.arctan2(ahead[1], ahead[0]))

    @cached_property
    def flies(self) -> bool:
        """Whether it is a run."""
        return _flies(np.array(self.contacts, bool))

    def phase(self, share: np.ndarray, strikes: Sequence[Strike]) -> np.ndarray:
        """(N,) samples of it that go with shares (N,) of the round of another walk, whose feet come
        down at these strikes: so that both come down together."""
        (left, right), (own_left, own_right) = (
            [next(one.share for one in found if one.side == side) for side in (1, -1)]
            for found in (strikes, self.strikes)
        )
        first, own = (right - left) % 1, (own_right - own_left) % 1
        since = (share - left) % 1
        at = np.interp(since, (0.0, first, 1.0), (0.0, own, 1.0))
        return ((own_left + at) % 1) * len(self.root)


@dataclass(frozen=True)
class Walk:
    """What an endless walk is made of: plain data.

    cycle: Cycle. seconds: how long to go on [s]. points: (n, 2 or 3) [m] of a curve on the ground
    to follow from its start on, () to go on as the clip does. closed: whether the curve's end is
    its start. curve: its name, for messages. commands: how fast to walk and which way, in place of
    a curve. strikes: of the cycle, found where there are commands. trim: as `commands.journey` has
    it. other: the Gait that it goes over to at other speeds; by command alone. played: whether
    commands are known only when they come, as of a walk that is played live: see `played.Window`.
    placed: where it begins by command, turned about the vertical through the origin [rad] and then
    moved (x, y) [m] from where the clip does. acts: what it can be commanded to perform; passages:
    how each carries it on, found where there are acts.
    """

    cycle: Cycle
    seconds: float
    points: Sequence[Sequence[float]] = ()
    closed: bool = False
    curve: str = "Curve"
    commands: tuple[Command, ...] = ()
    strikes: tuple[Strike, ...] = ()
    trim: tuple[tuple[float, float], ...] = ()
    other: Gait | None = None
    played: bool = False
    placed: tuple[float, float, float] = (0.0, 0.0, 0.0)
    acts: tuple[Act, ...] = ()
    passages: tuple[Passage, ...] = ()

    @property
    def directed(self) -> bool:
        """Whether a curve or commands say where it goes, and not the clip alone."""
        return bool(len(self.points) or self.commands)

    def as_dict(self) -> dict[str, Any]:
        """It as JSON-able data; without a word of commands without any, so that what was written
        before there were such is still the same."""
        data = asdict(self)
        if not self.commands:
            del data["commands"], data["strikes"], data["trim"], data["other"]
        for command in data.get("commands", ()):
            for name in ("aside", "act"):
                if command[name] is None:
                    del command[name]
        if not self.acts:
            del data["acts"]
        del data["passages"]  # which are found again
        if not self.played:
            del data["played"]
        del data["placed"]  # of what follows when it has got up
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Walk":
        """What `as_dict` gave."""
        commands = tuple(Command.from_dict(one) for one in data.get("commands", ()))
        strikes = tuple(Strike(*one) for one in data.get("strikes", ()))
        trim = tuple((reached, told) for reached, told in data.get("trim", ()))
        other = Gait.from_dict(data["other"]) if data.get("other") else None
        acts = tuple(Act.from_dict(one) for one in data.get("acts", ()))
        made = {"commands": commands, "strikes": strikes, "trim": trim, "other": other}
        cycle = data["cycle"] | {"travel": tuple(data["cycle"]["travel"])}
        return cls(**data | made | {"cycle": Cycle(**cycle), "acts": acts})

    def motion(self, character: Character, motion: Motion, first: int = 0) -> "Endless":
        """The Endless motion that it makes of a clip, from a sample on.

        Raises SettingsError for a length or a curve that cannot be.
        """
        RANGES["walk"].check(self.seconds)
        if self.commands and not self.strikes:
            contacts = self._contacts(character, motion)
            demand(
                not self.played or not _flies(contacts),
                f"'{motion.name}' flies from step to step, and who runs or jumps is not played, "
                "since that falls with the first command: choose a walk.",
            )
            if strikes := _strikes(contacts):
                return replace(self, strikes=strikes).motion(character, motion, first)
        if len(self.passages) != len(self.acts):
            performed = _Round.of(character, motion, self.cycle).performed
            passages = tuple(performed(one).passage for one in self.acts)
            return replace(self, passages=passages).motion(character, motion, first)
        samples = np.arange(first, self.count(motion.rate))
        at = np.round(self.phase(motion.rate, samples)).astype(int) % self.cycle.period
        index = self.cycle.first + at
        points, yaw = self.places(character, motion, samples)
        carried, turned = _Round.of(character, motion, self.cycle).carrier
        turn = yaw - turned[at]
        shift = points - swivelled(carried[at], turn)
        # In double precision the landmarks are where the source has them, to the last digit.
        positions = swivelled(motion.positions[index], turn[:, None]) + shift[:, None]
        rotations = multiply(swivel(turn)[:, None], motion.rotations[index])
        return Endless(
            motion.name,
            motion.rate,
            rotations,
            positions,
            motion.frame(self.cycle.first + first),
            motion.frame_step,
            source=motion,
            walk=self,
            index=index,
            turn=turn,
            shift=shift,
            first=first,
        )

    def flies(self, character: Character, motion: Motion) -> bool:
        """Whether it is a run or a jump of a clip."""
        return _flies(self._contacts(character, motion))

    def steps(self, character: Character, motion: Motion) -> bool:
        """Whether a foot of a clip's comes down in it: else nobody can stand in it and walk on."""
        return bool(self.strikes or _strikes(self._contacts(character, motion)))

    def _contacts(self, character: Character, motion: Motion) -> np.ndarray:
        """(P, 2) of its cycle."""
        return _Clip(character, motion).contacts[self.cycle.first : self.cycle.last]

    def count(self, rate: float) -> int:
        """How many samples it has at a rate [Hz]."""
        return max(2, round(self.seconds * rate) + 1)

    def speed(self, rate: float) -> float:
        """Of its cycle [m/s]."""
        return self.cycle.length / self.cycle.period * rate

    def speeds(self, rate: float) -> tuple[float, float]:
        """The slowest and the fastest [m/s] that it can be commanded to go at, at a rate [Hz]."""
        return speeds(self.speed(rate), self.trim)

    def journey(self, rate: float) -> Journey:
        """What its commands make of it, at a rate [Hz]. Raises SettingsError."""
        seconds, speed, count = self.cycle.period / rate, self.speed(rate), self.count(rate)
        other = self.other and (self.other.speed, self.other.period, self.other.flies)
        acts = tuple(zip((one.name for one in self.acts), self.passages, strict=True))
        return journey(
            self.commands,
            self.strikes,
            speed,
            seconds,
            _MOST_TURN,
            rate,
            count,
            self.trim,
            other,
            acts,
        )

    def phase(self, rate: float, samples: np.ndarray) -> np.ndarray:
        """(N,) which sample of the cycle, counted on from round to round, samples of the walk
        show."""
        if not self.commands:
            return samples
        return self.journey(rate).at(samples).cycles * self.cycle.period

    def places(
        self, character: Character, motion: Motion, samples: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Points (N, 3) [m] and directions (N,) [rad] of the carrier at samples of the walk, which
        may be before its first or after its last one."""
        cycle = self.cycle
        carried, turned = _Round.of(character, motion, cycle).carrier
        if self.commands:
            gone, yaw = self.journey(motion.rate).at(samples), turned[0] + cycle.turn / 2
            (turn, x, y), points = self.placed, carried[0] + swivelled(gone.points, yaw)
            return swivelled(points, np.array(turn)) + [x, y, 0.0], gone.yaw + yaw + turn
        if len(self.points):
            if cycle.length < _LEAST_TRAVEL:
                raise SettingsError(
                    f"'{motion.name}' steps on the spot: it cannot follow the curve "
                    f"'{self.curve}'; take the curve away, or choose a clip that travels."
                )
            way = self.way(character, motion)
            assert way is not None  # of a curve
            return way.place(samples * (cycle.length / cycle.period))
        turn = cycle.turn if abs(cycle.turn) > _STRAIGHT else 0.0
        lap, within = np.divmod(samples, cycle.period)
        laps = np.arange(min(lap.min(), 0), max(lap.max(), 0) + 1)
        travel = swivelled(np.broadcast_to([*cycle.travel, 0.0], (len(laps), 3)), turn * laps)
        starts = np.cumsum(travel, axis=0) - travel
        starts -= starts[laps == 0]
        lap_at = lap - laps[0]
        share = within / cycle.period
        points = carried[0] + starts[lap_at] + share[:, None] * travel[lap_at]
        middle = turned[0] + cycle.turn / 2
        return points, middle + turn * (lap + share - 0.5)

    def way(self, character: Character, motion: Motion) -> Way | None:
        """The way along the curve of a clip, or as commanded; None for who is commanded not to go
        as far as a step. Raises SettingsError for a curve that is too short or too tight."""
        length = self.cycle.length
        speed = length / self.cycle.period * motion.rate
        if self.commands:  # which turn no faster than a body does
            if self.journey(motion.rate).distances[-1] < length / 2:
                return None
            points, _ = self.places(character, motion, np.arange(self.count(motion.rate)))
            return Way(points.tolist(), False, length, speed, self.curve)
        way = Way(self.points, self.closed, length, speed, self.curve)
        at, radius = way.sharpest()
        least = length / _MOST_TURN
        if radius < least:
            raise SettingsError(
                f"The curve '{self.curve}' is too tight {at:.1f} m from its start, where its "
                f"radius is {radius:.2f} m: give it at least {least:.2f} m there."
            )
        return way

    def straight(
        self, character: Character, motion: Motion, samples: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `places`, of a carrier that goes straight on from where the walk begins."""
        points, yaw = self.places(character, motion, np.zeros(1, int))
        x, y = float(np.cos(yaw[0])), float(np.sin(yaw[0]))
        gone, sidled = self.cycle.length / self.cycle.period * samples, np.zeros(len(samples))
        if self.commands:
            journey = self.journey(motion.rate).at(samples)
            gone, sidled = journey.distances, journey.sidled + journey.shifted
        points = points + gone[:, None] * [x, y, 0.0] + sidled[:, None] * [-y, x, 0.0]
        return points, np.repeat(yaw, len(samples))


def _flies(contacts: np.ndarray) -> bool:
    """Whether a round whose feet stand at its samples (P, 2) is one of a run or a jump."""
    return bool(np.mean(~contacts.any(1)) >= _FLIES)


def _strikes(contacts: np.ndarray) -> tuple[Strike, ...]:
    """Where in a round feet come down that stand at its samples (P, 2)."""
    down = contacts & ~np.roll(contacts, 1, axis=0)
    found = [
        Strike(float(at) / len(contacts), side)
        for foot, side in enumerate((1, -1))
        for at in np.flatnonzero(down[:, foot])
    ]
    return tuple(sorted(found))


class _Same:
    """What is the same as another one only if it is that one."""

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)


class _Round:
    """What is known of a clip's cycle, once for all walks of it: arrays that are only to be
    read."""

    def __init__(self, character: Character, source: Motion, cycle: Cycle) -> None:
        self._of = character, source, cycle
        self._performed: dict[int, tuple[Act, Performance]] = {}

    @classmethod
    def of(cls, character: Character, source: Motion, cycle: Cycle) -> "_Round":
        """That of a body, a clip and a Cycle; the last ones are remembered."""
        return _known_round(_Same(character), _Same(source), cycle)

    @cached_property
    def carrier(self) -> tuple[np.ndarray, np.ndarray]:
        """As `_carrier` has it."""
        return _carrier(*self._of)

    @cached_property
    def poses(self) -> "Poses":
        """As `_seamless` has them."""
        return _seamless(*self._of)

    @cached_property
    def borne(self) -> "Poses":
        """As `_borne` has them."""
        return _borne(*self._of, self.poses)

    @cached_property
    def stood(self) -> "_Stood":
        """As `_stood` has it."""
        return _stood(self._of[0], *self.poses)

    def performed(self, act: Act) -> Performance:
        """An act as it is performed by this walker; what was asked for is remembered."""
        known = self._performed.get(id(act))
        if known is None or known[0] is not act:
            stood = self.stood
            still = Trajectory(1.0, stood.root[None], stood.rotation[None], stood.angles[None])
            made = performance(self._of[0], act, self._of[1].rate, still)
            known = self._performed[id(act)] = act, made
        return known[1]


@lru_cache(maxsize=4)
def _known_round(character: _Same, source: _Same, cycle: Cycle) -> _Round:
    return _Round(character.thing, source.thing, cycle)


def _carrier(character: Character, motion: Motion, cycle: Cycle) -> tuple[np.ndarray, np.ndarray]:
    """Where the carrier is in the clip itself: points (P + 1, 3) [m], height 0, directions."""
    trajectory = character.trajectory(motion)
    share = np.arange(cycle.period + 1) / cycle.period
    start = trajectory.root[cycle.first] * [1, 1, 0]
    points = start + share[:, None] * [*cycle.travel, 0.0]
    x, y = cycle.travel
    if cycle.length < _LEAST_TRAVEL:
        _, frames = character.pose(trajectory)
        x, y = frames[cycle.first, 0, :2, 0]
    return points, np.arctan2(y, x) + cycle.turn * (share - 0.5)


@dataclass(frozen=True, kw_only=True)
class Endless(Motion):
    """A clip's cycle, as often as needed: rigid copies of its samples, each turned about the
    vertical and moved.

    source: the clip. walk: Walk. index: (N,) sample of the source; turn (N,) [rad], shift (N, 3)
    [m]: x of the source is R_z(turn) x + shift here. first: sample of the walk at which it begins.
    """

    source: Motion
    walk: Walk
    index: np.ndarray
    turn: np.ndarray
    shift: np.ndarray
    first: int = 0

    def followed(self, character: Character, com: np.ndarray) -> list[Followed]:
        """What came of the commands of the walk, by the centre of mass (n, 3) [m] of the body for
        as long as it stood."""
        walk, rate = self.walk, self.rate
        if not walk.commands:
            return []
        yaw, gone = self.heading(character), walk.journey(rate)
        return followed(walk.commands, gone, walk.strikes, com, rate, yaw, walk.speed(rate))

    def heading(self, character: Character) -> float:
        """In which the walk begins [rad]: from here headings of commands count."""
        return float(self.walk.places(character, self.source, np.zeros(1, int))[1][0])


# --- What a body can walk on ----------------------------------------------------------------------


def walking_target(
    character: Character, motion: Endless, cutoff: float, led: bool = False
) -> tuple[Trajectory, np.ndarray]:
    """What a character is to follow in an Endless motion.

    Where one round ends and the next begins the samples of `motion` have a small jump. Here what
    the two ends differ by is spread over the cycle, the motion is low-passed at `cutoff` [Hz] as
    if it had no ends, feet are planted and on the floor, and weight is above them. led: it goes
    straight on, for the body is led along its curve, see `way`. Returns the Trajectory and
    contacts (N, 2).
    """
    walk = motion.walk
    period = walk.cycle.period
    # A round more before and after: filters see no ends.
    samples = motion.first + np.arange(-period, len(motion) + period)
    known = _Round.of(character, motion.source, walk.cycle)
    root, rotation, angles, contacts = known.poses if walk.directed else known.borne
    phase = walk.phase(motion.rate, samples)
    at = np.round(phase).astype(int) % period
    if walk.commands:
        gone = walk.journey(motion.rate).at(samples)
        middle = root.mean(0)
        root, rotation, angles = (_between(values, phase) for values in (root, rotation, angles))
        contacts = contacts[at]
        if walk.other is not None:
            other = _other(walk, walk.other, phase / period, character.height, middle)
            root, rotation, angles, contacts = _blended(
                (root, rotation, angles, contacts), other, gone.blend[:, None]
            )
        rotation, at = unit(rotation), np.arange(len(samples))
        contacts[gone.standing == 1] = True
    places = walk.straight if led else walk.places
    points, yaw = places(character, motion.source, samples)
    leaning = exponential(_lean(walk, yaw, motion.rate)[:, None] * [-1.0, 0, 0])
    tilt = matrix_from_quaternion(leaning)
    target = Trajectory(
        motion.rate,
        points + swivelled((tilt @ root[at][..., None])[..., 0], yaw),
        continuous(multiply(swivel(yaw), multiply(leaning, rotation[at]))),
        angles[at],
    )
    if walk.commands:
        target = _strided(character, target, points, yaw, gone)
        if gone.sidled.any():
            target = _sidling(character, target, points, yaw, gone, contacts[at], known.stood)
        target = _standing(target, known.stood, points, yaw, gone)
        if walk.acts:
            performed = [known.performed(one) for one in walk.acts]
            target, contacts = _acting(target, contacts, performed, points, yaw, gone)
    smooth = target.smoothed(cutoff).trajectory
    smooth = rolled(character, smooth, contacts[at], _TREMOR)
    own = slice(period, period + len(motion))
    cut = replace(
        smooth, root=smooth.root[own], rotation=smooth.rotation[own], angles=smooth.angles[own]
    )
    return cut, contacts[at][own]


#: Root (N, 3), rotation (N, 4), joint angles (N, dofs) and contacts (N, 2) of a walk, as its
#: carrier sees them.
Poses = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _other(walk: Walk, gait: Gait, share: np.ndarray, height: float, middle: np.ndarray) -> Poses:
    """The Poses of a Gait at shares (N,) of the round of a walk, of a body of another height [m],
    beside the carrier where that is in the mean, `middle` (3,)."""
    at = gait.phase(share, walk.strikes)
    root = height / gait.height * np.array(gait.root)
    root[:, :2] += (middle - root.mean(0))[:2]
    down = np.array(gait.contacts, bool)[np.round(at).astype(int) % len(root)]
    rotation, angles = np.array(gait.rotation), np.array(gait.angles)
    return _between(root, at), _between(rotation, at), _between(angles, at), down


def _blended(own: Poses, other: Poses, share: np.ndarray) -> Poses:
    """Poses with a share (N, 1) of others; feet stand as in those of which there is more."""
    (root, rotation, angles, contacts), (its_root, turned, bent, down) = own, other
    near = np.sign((rotation * turned).sum(1, keepdims=True))
    return (
        root + share * (its_root - root),
        rotation + share * (near * turned - rotation),
        angles + share * (bent - angles),
        np.where(share > 0.5, down, contacts),
    )


def _between(values: np.ndarray, phase: np.ndarray) -> np.ndarray:
    """(N, m) of the values (P, m) of a round at phases (N,), straight between its samples."""
    before = np.floor(phase).astype(int)
    share = (phase - before)[:, None]
    first, then = values[before % len(values)], values[(before + 1) % len(values)]
    return first + share * (then - first)


def _strided(
    character: Character, target: Trajectory, points: np.ndarray, yaw: np.ndarray, gone: Journey
) -> Trajectory:
    """A walk whose steps are as long as its journey's: its ankles swing as much farther, or less,
    about the carrier, and hips sink where legs are too short for that."""
    joints, frames = character.pose(target)
    ahead = np.stack([np.cos(yaw), np.sin(yaw), 0 * yaw], 1)
    aims = []
    for foot in FEET:
        swing = ((joints[:, foot] - points) * ahead).sum(1)
        middle = np.average(swing, weights=1.001 - gone.standing)
        farther = (gone.strides - 1) * (1 - gone.standing) * (swing - middle)
        aims.append(joints[:, foot] + farther[:, None] * ahead)
    return _reaching(character, target.rate, joints, frames, aims)


def _reaching(
    character: Character,
    rate: float,
    joints: np.ndarray,
    frames: np.ndarray,
    aims: Sequence[np.ndarray],
) -> Trajectory:
    """A pose, as `Character.pose` has it, with both ankles where they aim (N, 3) [m], left before
    right; hips sink where legs are too short for that."""
    joints, frames = joints.copy(), frames.copy()
    joints[..., 2] -= bell(sinking(joints, aims), _SINKING, rate)[:, None]
    for side, aim in zip(SIDES, aims, strict=True):
        bend_leg(joints, frames, side, aim)
    return character.trajectory_of(rate, joints[:, 0], frames)


def _sidling(
    character: Character,
    target: Trajectory,
    points: np.ndarray,
    yaw: np.ndarray,
    gone: Journey,
    contacts: np.ndarray,
    stood: "_Stood",
) -> Trajectory:
    """A walk that goes sideways with its journey, of which only the carrier does so far: feet stay
    where they came down, and land farther apart where one would come down beside, or across, the
    other; on the spot they roll no more, which would have the body go ahead. Weight goes with them
    as one does that is borne by what they are moved by: c - c'' h / g = p has one answer that does
    not run away, p averaged by exp(-|t| sqrt(g / h))."""
    joints, frames = character.pose(target)
    frames = frames.copy()
    across = np.stack([-np.sin(yaw), np.cos(yaw), 0 * yaw], 1)
    left, right = (
        ((joints[:, foot] - points) * across).sum(1)[contacts[:, i]].mean()
        for i, foot in enumerate(FEET)
    )
    rate, speeds = target.rate, np.abs(np.gradient(gone.sidled))
    step = speeds * 0.5 / np.maximum(np.gradient(gone.cycles), 1e-3)  # [m]; of who stands, none
    flat = np.clip(1 - gone.strides / _FLATTENING, 0, 1)
    wide = np.maximum(step + _CLOSEST, _STEPPED * 2 * stood.aside * flat) - abs(left - right)
    near = np.where(speeds > _STAYS / rate, wide, 0.0)
    apart = bell(np.maximum(near, 0.0) / 2, _SPREADING, rate)
    apart *= np.sign(left - right)  # who walks backward has its left foot to the right
    aside = np.stack([_placed(gone.sidled, down) for down in contacts.T], 1)
    aside += apart[:, None] * [1.0, -1.0]
    load = np.where(contacts.any(1)[:, None], contacts, 1.0)
    pressed = (load * aside).sum(1) / load.sum(1)
    omega = np.sqrt(GRAVITY / (float(joints[:, 0, 2].mean()) - character.ground))
    moved = _averaged(pressed, omega / rate) - gone.sidled
    for part in (*FEET, *TOES):
        frame, (x, y) = frames[:, part], unit(frames[:, part, :2, 0]).T
        level = matrix_from_quaternion(swivel(arctan2(y, x)))
        turn = rotation_vector(quaternion_from_matrix(level @ frame.swapaxes(1, 2)))
        frames[:, part] = matrix_from_quaternion(exponential(flat[:, None] * turn)) @ frame
    aims = [
        joints[:, foot] + (aside[:, i] - gone.sidled)[:, None] * across
        for i, foot in enumerate(FEET)
    ]
    joints = joints + (moved[:, None] * across)[:, None]
    return _reaching(character, rate, joints, frames, aims)


def _placed(gone: np.ndarray, down: np.ndarray) -> np.ndarray:
    """(N,) how far aside [m] a foot is that stands where it is down (N,), and goes over to its next
    place where it is not, of a carrier that has gone so far (N,)."""
    places, stands = gone.copy(), runs(down)
    for start, stop in stands:
        places[start:stop] = gone[start:stop].mean()
    for (_, lifted), (lands, _) in pairwise(stands):
        share = eased((np.arange(lifted, lands) + 1 - lifted) / (lands + 1 - lifted))
        places[lifted:lands] = (1 - share) * places[lifted - 1] + share * places[lands]
    return places


def _averaged(values: np.ndarray, decay: float) -> np.ndarray:
    """(N,) values, averaged by exp(-decay |n|) of those n samples away."""
    reach = int(_AVERAGED / decay)
    bell = np.exp(-decay * np.abs(np.arange(-reach, reach + 1)))
    padded = np.pad(values, reach, mode="reflect", reflect_type="odd")
    return np.convolve(padded, bell / bell.sum(), "valid")


class _Stood(NamedTuple):
    """How a walker stands, relative to its carrier: root (3,) [m], rotation (4,), joint angles
    (dofs,) [rad]; aside: how far [m] from between the feet to either."""

    root: np.ndarray
    rotation: np.ndarray
    angles: np.ndarray
    aside: float


def _stood(
    character: Character,
    root: np.ndarray,
    rotation: np.ndarray,
    angles: np.ndarray,
    contacts: np.ndarray,
) -> _Stood:
    """How the body of a cycle stands, as `_seamless` has that: as it walks in the mean, on both
    soles, side by side under the hips or as far apart as they walk, with its weight above them and
    legs as long as ever in the cycle."""
    joints, frames = character.pose(Trajectory(1.0, root, rotation, angles))
    mean = Trajectory(1.0, root.mean(0)[None], unit(rotation.mean(0))[None], angles.mean(0)[None])
    own, turned = (values.copy() for values in character.pose(mean))
    walked = [joints[contacts[:, i], foot, 1].mean() for i, foot in enumerate(FEET)]
    hips = [own[0, hip, 1] for hip, _ in _LEGS]
    aside = max(hips[0] - hips[1], walked[0] - walked[1]) / 2
    # As high as both legs reach that are never longer.
    longest = [
        np.linalg.norm(joints[:, foot] - joints[:, hip], axis=1).max() for hip, foot in _LEGS
    ]
    aims, soles = [], []
    for i, (foot, toe) in enumerate(zip(FEET, TOES, strict=True)):
        shape, ahead = character.feet[i], unit(frames[contacts[:, i], foot, :2, 0].mean(0))
        soles.append((shape.ball - shape.heel) / 2 * ahead[0])
        aims.append(np.array([[0.0, (aside, -aside)[i], character.ground + shape.depth]]))
        turned[0, [foot, toe]] = rotation_about(2, float(np.arctan2(ahead[1], ahead[0])))
    for _ in range(_ROUNDS):
        com = character.body_centres(own, turned)[0].T @ character.masses / character.mass
        own[..., :2] += [sum(soles) / 2 - com[0], -com[1]]
        own[..., 2] -= max(
            float(too_high(own[:, hip], aim, np.array([most]))[0])
            for (hip, _), aim, most in zip(_LEGS, aims, longest, strict=True)
        )
        for side, aim in zip(SIDES, aims, strict=True):
            bend_leg(own, turned, side, aim)
    own[..., 1] += sum(walked) / 2
    pose = character.trajectory_of(1.0, own[:, 0], turned)
    return _Stood(pose.root[0], pose.rotation[0], pose.angles[0], aside)


def _standing(
    target: Trajectory, stood: _Stood, points: np.ndarray, yaw: np.ndarray, gone: Journey
) -> Trajectory:
    """A walk that stands where its journey does, leaning over a foot before it goes off."""
    share = gone.standing[:, None]
    aside = np.stack([-np.sin(yaw), np.cos(yaw), 0 * yaw], 1)
    root = points + swivelled(stood.root, yaw)
    rotation = multiply(swivel(yaw), stood.rotation)
    near = np.sign((target.rotation * rotation).sum(1, keepdims=True))
    root = target.root + share * (root - target.root)
    root += stood.aside * gone.leaning[:, None] * aside
    return replace(
        target,
        root=root,
        rotation=continuous(unit((1 - share) * target.rotation + share * near * rotation)),
        angles=target.angles + share * (stood.angles - target.angles),
    )


def _acting(
    target: Trajectory,
    contacts: np.ndarray,
    performed: Sequence[Performance],
    points: np.ndarray,
    yaw: np.ndarray,
    gone: Journey,
) -> tuple[Trajectory, np.ndarray]:
    """A walk that performs what its journey does, and its contacts (N, 2)."""
    root, rotation, angles = target.root.copy(), target.rotation.copy(), target.angles.copy()
    contacts = contacts.copy()
    for number, part in enumerate(performed):
        own = gone.act == number
        at = np.clip(np.round(gone.since[own] * target.rate), 0, len(part.root) - 1).astype(int)
        root[own] = points[own] + swivelled(part.root[at], yaw[own])
        rotation[own] = multiply(swivel(yaw[own]), part.rotation[at])
        angles[own], contacts[own] = part.angles[at], part.contacts[at]
    return replace(target, root=root, rotation=continuous(rotation), angles=angles), contacts


def _lean(walk: Walk, yaw: np.ndarray, rate: float) -> np.ndarray:
    """(N,) how far a body leans to its left [rad] that walks along a curve in directions (N,)
    [rad]: as far as its weight balances what its way bends it."""
    if not len(walk.points):
        return np.zeros(len(yaw))
    speed = walk.cycle.length / walk.cycle.period * rate
    lean = np.arctan(speed * np.gradient(yaw) * rate / GRAVITY)
    return bell(lean, _LEANING, rate)


def _seamless(
    character: Character, source: Motion, cycle: Cycle
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Root (P, 3) and rotation (P, 4) relative to the carrier, joint angles (P, dofs), contacts
    (P, 2) of one round that ends as it begins."""
    clip = _Clip(character, source)
    part = slice(cycle.first, cycle.last + 1)
    points, turned = _carrier(character, source, cycle)
    share = (np.arange(cycle.period + 1) / cycle.period)[:, None]
    root = swivelled(clip.trajectory.root[part] - points, -turned)
    rotation = continuous(multiply(swivel(-turned), clip.trajectory.rotation[part]))
    angles = clip.trajectory.angles[part]
    root = root - share * (root[-1] - root[0])
    angles = angles - share * (angles[-1] - angles[0])
    gap = rotation_vector(multiply(rotation[-1] * [1, -1, -1, -1], rotation[0]))
    rotation = multiply(rotation, exponential(share * gap))
    return root[:-1], rotation[:-1], angles[:-1], clip.contacts[part][:-1]


def _borne(character: Character, source: Motion, cycle: Cycle, poses: Poses) -> Poses:
    """Those of `_seamless`, of a body whose weight its feet bear, round after round."""
    root, rotation, angles, contacts = poses
    period, samples = cycle.period, np.arange(_BORNE_ROUNDS * cycle.period)
    _, turned = _carrier(character, source, cycle)
    heading = np.array(-turned[0] - cycle.turn / 2)
    travel = swivelled(np.array([*cycle.travel, 0.0]), heading)
    places, at = (samples / period)[:, None] * travel, samples % period
    walked = Trajectory(source.rate, places + root[at], continuous(rotation[at]), angles[at])
    walked = bearable(character, walked, contacts[at], TRAVEL_CUTOFF)
    middle = slice(_BORNE_ROUNDS // 2 * period, (_BORNE_ROUNDS // 2 + 1) * period)
    root = walked.root[middle] - places[middle]
    return root, walked.rotation[middle], walked.angles[middle], contacts

# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands to a walk: how fast to go from when on, and which way.

A walk that goes slower takes shorter steps and more time for each. So commands become a journey of
the carrier of a cycle: where it is, where it heads, and how far the cycle has come, at any time.
Speed and turning follow what is commanded no faster than a body that walks can. Who is to stand
slows down, and from where a foot comes down the other one is set beside it; from there the cycle
waits. Who is to walk again leans over the foot that came down last, and steps off with the other.
Who is to go sideways is carried aside, as well or without going ahead, and looks where it did.
Who is to perform an act stops for it, stands, and goes on afterwards as it is told.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import atan2, degrees, hypot, log, radians
from typing import Any, NamedTuple, NoReturn

import numpy as np

from .. import documents
from ..exceptions import SettingsError, demand
from ..geometry.rotations import arctan2
from ..geometry.skeleton import SEGMENTS
from ..geometry.stance import runs
from ..geometry.trajectory import eased
from ..ranges import RANGES, Range

VERSION = 1  # of scripts
_LARGEST = 1e5  # number in them
#: What every script can call for by name; whatever else it calls for is an act.
SKILLS = "stand", "walk"
_LONGEST_NAME = 100  # of an act
#: What a script can push: segments, and people's word for one of them.
PARTS = {name: name for name in SEGMENTS} | {"chest": "trunk"}

#: Of the clip's own, how slowly and how fast a walk goes on command: measured on captured walks.
SLOWEST, FASTEST = 0.5, 1.1

# By trial, as `researcher.md`, Directed walks, has it.
GATHERING = 0.3  # [m/s^2] by which speed changes
_SMOOTHING = 0.4  # [s] over which a change begins and ends
_EAGERNESS = 4.0  # [1/s] with which an error of the heading is turned off
_FASTEST_TURN = 0.95  # [rad/s]
#: ... by which speeds [m/s] up to the first are bent at most, and those from the second on by the
#: smaller rate: captured fast walks fall out of bends that slower ones walk.
_BRISK, _HASTY, _SLOWEST_TURN = 1.35, 1.65, 0.25
_SLEW = 4.4  # [rad/s^2] of its rate
#: [s] before and after the moment in which a walk becomes a run, or a run a walk, in which it goes
#: over; and when a foot may have come down last before that, as a share of the cycle. By trial on
#: a walk that becomes a run and a walk again, begun at ten moments: of these none fell, at other
#: shares one to all of them.
_GOES_OVER, _RUNS_AT, _WALKS_AT = 0.05, 0.1, 0.2
#: Of what a curve may turn a walker in a cycle; rounding makes it a little less.
_TURN_SHARE = 0.8
#: Who is to stand slows down to this [m/s] before, or to so much of the clip's speed if that is
#: more.
SLOW, _STOPPING_SHARE = 0.65, 0.44
_STANDING = 0.3  # [s] at least, between two walks
_BEFORE_TURNS = 1.0  # rounds that it walks straight on before it turns
_LEANING = 0.5  # [s] over which the weight goes over one foot before the other steps off
#: How fast anybody steps aside [m/s]. Who goes faster than _BRISK does so less, from _HASTY on not
#: at all.
SIDEWAYS = 0.3
#: So quickly steps on the spot become steps ahead [1/s]; in the time of those of a walk of the
#: first speed [m/s], or of the clip's if that is less: slower ones sway too far.
_SPREADING, _SPOT = 0.4, 1.2
#: Of the way there: what leans farther falls out over that foot, and the other steps across it.
_OVER = 0.87
#: A stride grows with this power of the speed, and so its time shrinks: so people walk.
_STRIDE_POWER = 0.5
#: So near to what is commanded a body that goes on has settled: its speed by this share, its
#: heading by this much [rad].
SETTLED = 0.08, radians(5)


@dataclass(frozen=True)
class Shove:
    """A push in a script: a force [N] on a segment for so long [s], level, towards a direction
    [rad], counter-clockwise from above, 0 where the walk begins."""

    newtons: float
    direction: float
    seconds: float
    segment: str = "trunk"


@dataclass(frozen=True)
class Toss:
    """A ball in a script, thrown at the neck: its mass [kg], and the direction [rad] in which it
    flies, counter-clockwise from above, 0 where the walk begins."""

    mass: float
    direction: float


@dataclass(frozen=True)
class Command:
    """From a time on [s] go with a speed [m/s], in a heading [rad], counter-clockwise from above, 0
    where the walk begins; or stand, or no more; aside: and so fast [m/s] to its left as well, which
    who stands does by steps on the spot. What is None stays as it was; who is given a speed
    alone walks, who is to stand alone goes nowhere. act: name of what it performs before it goes
    on. push: what it is pushed with then, toss: what is thrown at it; they do not command the
    walk."""

    at: float
    speed: float | None = None
    heading: float | None = None
    stands: bool | None = None
    push: Shove | None = None
    toss: Toss | None = None
    aside: float | None = None
    act: str | None = None

    @property
    def walks(self) -> bool:
        """Whether it commands the walk."""
        told = self.speed, self.heading, self.stands, self.aside, self.act
        return any(one is not None for one in told)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Command":
        """What `dataclasses.asdict` gave."""
        push, toss = data.get("push"), data.get("toss")
        made = {"push": Shove(**push) if push else None, "toss": Toss(**toss) if toss else None}
        return cls(**data | made)


@dataclass(frozen=True)
class Script:
    """Commands of a walk that lasts so long [s]. played: whether they were given while it walked,
    as `gait.Walk` has it."""

    seconds: float
    commands: tuple[Command, ...]
    played: bool = False

    def save(self, path: str | os.PathLike) -> None:
        """Write it to a file. Raises OSError."""
        content = {
            "version": VERSION,
            "played": self.played,
            "seconds": self.seconds,
            "commands": [_as_told(one) for one in self.commands],
        }
        documents.write(path, json.dumps(content, indent=1))

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Script":
        """Read a script, `{"version": 1, "seconds": 20, "commands": [{"at": 6, "speed": 1.0,
        "heading": 90}, {"at": 9, "sideways": 0.2}, {"at": 12, "skill": "stand"}, {"at": 15, "push":
        {"part": "chest", "newtons": 60, "direction": 180, "seconds": 0.3}}, {"at": 17, "throw":
        {"mass": 3, "direction": 90}}]}`: times in s, speeds in m/s, 0 to stand, or to step aside on
        the spot, sideways to the left, headings and directions in degrees, masses in kg, skills of
        SKILLS or names of acts, parts of PARTS. Raises SettingsError.
        """
        source = f"The script '{path}'"
        content = documents.read(path, source, _fail)
        keys = "version", "seconds", "commands"
        _has(source, content, (*keys, "played"), keys)
        if content["version"] != VERSION:
            _fail(source, f"is of version {content['version']!r}: this Poise reads {VERSION}")
        if not isinstance(content["commands"], list) or not content["commands"]:
            _fail(source, "has no list of commands: give at least one")
        found = []
        for number, one in enumerate(content["commands"], 1):
            name = f"Command {number} of the script '{path}'"
            known = "at", "speed", "sideways", "heading", "skill", "push", "throw"
            _has(name, one, known, ("at",))
            if len(one) < 2:
                _fail(
                    name,
                    "commands nothing: give it a speed, sideways, a heading, a skill, a push or a "
                    "throw",
                )
            pushed = f"The push of command {number} of the script '{path}'"
            thrown = f"The throw of command {number} of the script '{path}'"
            found.append(_command(name, pushed, thrown, one))
        seconds = _number(source, "seconds", content["seconds"])
        try:
            RANGES["walk"].check(seconds)
            _check_times(found)
        except SettingsError as error:
            text = str(error)
            raise SettingsError(f"{source}: {text[0].lower()}{text[1:]}") from None
        if found[-1].at > seconds:
            _fail(source, f"lasts {seconds:g} s, and its last command is at {found[-1].at:g} s")
        played = content.get("played", False)
        if not isinstance(played, bool):
            _fail(source, f"has {str(played)[:40]!r} as 'played': give it true or false")
        return cls(seconds, tuple(found), played)

    @property
    def speeds(self) -> tuple[float, ...]:
        """All that are commanded [m/s]."""
        return tuple(one.speed for one in self.commands if one.speed is not None)

    @property
    def acts(self) -> tuple[str, ...]:
        """All that are commanded, each once, in the order of their names."""
        return tuple(sorted({one.act for one in self.commands if one.act is not None}))


def _as_told(command: Command) -> dict[str, Any]:
    """A command as a script's file has it."""
    told: dict[str, Any] = {"at": command.at}
    if command.speed is not None:
        told["speed"] = command.speed
    if command.stands and (command.aside or command.act is not None):
        told["speed"] = 0
    elif command.stands is not None:
        told["skill"] = "stand" if command.stands else "walk"
    if command.act is not None:
        told["skill"] = command.act
    if command.aside is not None and not (command.stands and command.aside == 0):
        told["sideways"] = command.aside
    if command.heading is not None:
        told["heading"] = in_degrees(command.heading)
    return told | blows_as_told(command)


def blows_as_told(command: Command) -> dict[str, dict[str, float | str]]:
    """The push and the throw of a command as a script's file has them: those that it has."""
    told: dict[str, dict[str, float | str]] = {}
    if (push := command.push) is not None:
        told["push"] = {
            "part": push.segment,
            "newtons": push.newtons,
            "direction": in_degrees(push.direction),
            "seconds": push.seconds,
        }
    if (toss := command.toss) is not None:
        told["throw"] = {"mass": toss.mass, "direction": in_degrees(toss.direction)}
    return told


def in_degrees(angle: float) -> float:
    """An angle [rad] in degrees, so that who was told degrees reads the same."""
    return round(degrees(angle), 9) + 0.0  # which makes -0.0 of nothing


def _command(name: str, pushed: str, thrown: str, content: dict[str, Any]) -> Command:
    """The Command that an object of a script is; pushed, thrown: what errors call its push and its
    throw."""
    skill = content.get("skill")
    if skill is not None and not (isinstance(skill, str) and 0 < len(skill) <= _LONGEST_NAME):
        _fail(name, f"has {str(skill)[:40]!r} as 'skill': use stand, walk or the name of an act")
    act = None if skill in SKILLS else skill
    words = "skill", "push", "throw"
    numbers = {k: _number(name, k, value) for k, value in content.items() if k not in words}
    speed, heading, aside = (numbers.get(key) for key in ("speed", "heading", "sideways"))
    if speed is not None and speed < 0:
        _fail(name, f"has {speed:g} as 'speed': speeds are from 0 on, and headings say which way")
    if speed and skill == "stand":
        _fail(name, f"is to stand at {speed:g} m/s: take one of both away")
    if aside and skill == "stand":
        _fail(name, "is to stand and to go sideways: take its skill away, and give it speed 0")
    if speed == 0:
        if skill == "walk":
            _fail(name, "is to walk at 0 m/s: take one of both away")
        speed, skill = None, "stand"
    return Command(
        numbers["at"],
        None if skill == "stand" else speed,
        None if heading is None else radians(heading),
        None if skill not in SKILLS else skill == "stand",
        _shove(pushed, content["push"]) if "push" in content else None,
        _toss(thrown, content["throw"]) if "throw" in content else None,
        aside,
        act,
    )


def _shove(name: str, content: Any) -> Shove:
    """The Shove that an object of a script is."""
    keys = "part", "newtons", "direction", "seconds"
    _has(name, content, keys, keys[1:])
    part = content.get("part", "trunk")
    if not isinstance(part, str) or part not in PARTS:
        _fail(name, f"is on {str(part)[:40]!r}, which is none of {', '.join(PARTS)}")
    newtons = _within(name, "newtons", content, RANGES["force"])
    seconds = _within(name, "seconds", content, RANGES["push_time"])
    direction = _number(name, "direction", content["direction"])
    return Shove(newtons, radians(direction), seconds, PARTS[part])


def _toss(name: str, content: Any) -> Toss:
    """The Toss that an object of a script is."""
    _has(name, content, ("mass", "direction"), ("mass", "direction"))
    mass = _within(name, "mass", content, RANGES["thing"])
    return Toss(mass, radians(_number(name, "direction", content["direction"])))


def _within(name: str, key: str, content: dict[str, Any], allowed: Range) -> float:
    """A number of an object of a script, which may be within a range alone."""
    value = _number(name, key, content[key])
    if value not in allowed:
        _fail(name, f"has {value:g} as '{key}': give it {allowed}")
    return value


def _fail(source: object, problem: str) -> NoReturn:
    raise SettingsError(f"{source} {problem}.")


def _has(source: str, content: Any, known: Sequence[str], needed: Sequence[str]) -> None:
    """Raise SettingsError unless this is an object with the keys needed, and none but those
    known."""
    if not isinstance(content, dict):
        _fail(source, "is no JSON object")
    for key in content:
        if key not in known:
            names = ", ".join(known)
            _fail(source, f"has the key '{key[:40]}', which walks do not know: use {names}")
    for key in needed:
        if key not in content:
            _fail(source, f"lacks '{key}'")


def _number(source: str, key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        _fail(source, f"has {str(value)[:40]!r} as '{key}', which is no number")
    if not abs(value) < _LARGEST:
        _fail(source, f"has {str(value)[:40]} as '{key}': give it less than {_LARGEST:g}")
    return float(value)


class Strike(NamedTuple):
    """Where in a cycle a foot comes down: share of its period; side: 1 for the left one, else
    -1."""

    share: float
    side: int


class Passage(NamedTuple):
    """How an act carries the body on: how long it lasts [s]; between which times [s] it does; how
    far ahead and to the left [m] of where it began, and how far it turns to the left [rad]."""

    seconds: float
    begins: float
    ends: float
    ahead: float
    aside: float
    turn: float

    def share(self, times: np.ndarray) -> np.ndarray:
        """(N,) how much of the way is behind it at times [s]."""
        return eased((times - self.begins) / max(self.ends - self.begins, 1e-6))


class Journey(NamedTuple):
    """What commands make of a walk, at samples (N,) from its first one on: speeds [m/s] and yaw
    [rad] of the carrier; points (N, 3) [m] where it is, and distances [m] that it has gone ahead,
    sidled [m] to its left; cycles: how many rounds it has done; strides: how long they are, of the
    clip's own, or of what it is blended to; blend: share of the other gait in it; standing: from 0
    for who walks to 1 for who stands; leaning: how much, to the left, over a foot before it goes
    off from there, -1 to 1; turns: whether it may turn, as nobody does who stands or has just gone
    off; act: which act is performed, -1 for none, and since how long [s]; shifted: how far acts
    have carried it to its left [m]."""

    speeds: np.ndarray
    yaw: np.ndarray
    points: np.ndarray
    distances: np.ndarray
    sidled: np.ndarray
    cycles: np.ndarray
    strides: np.ndarray
    blend: np.ndarray
    standing: np.ndarray
    leaning: np.ndarray
    turns: np.ndarray
    act: np.ndarray
    since: np.ndarray
    shifted: np.ndarray

    def at(self, samples: np.ndarray) -> "Journey":
        """It at samples, which may be before its first or after its last one: there it goes evenly
        on."""
        last = len(self.speeds) - 1
        known = np.clip(samples, 0, last)
        beyond = samples - known
        # The last step is from the last sample but one.
        begun = np.minimum(known, last - 1)
        found = {name: values[known] for name, values in self._asdict().items()}
        for name in ("points", "distances", "sidled", "cycles", "shifted", "since"):
            values = getattr(self, name)
            step = values[begun + 1] - values[begun]
            if name == "since":  # an act goes on, too
                step = np.maximum(step, 0)
            found[name] = found[name] + beyond.reshape(-1, *[1] * (values.ndim - 1)) * step
        return Journey(**found)


@lru_cache(maxsize=4)
def journey(
    commands: tuple[Command, ...],
    strikes: tuple[Strike, ...],
    speed: float,
    period: float,
    most_turn: float,
    rate: float,
    count: int,
    trim: tuple[tuple[float, float], ...] = (),
    other: tuple[float, float, bool] | None = None,
    acts: tuple[tuple[str, Passage], ...] = (),
) -> Journey:
    """The Journey of a walk of a speed [m/s] and a period [s] of its cycle, in which feet come down
    at strikes, and that may turn by so much in one [rad], at so many samples at a rate [Hz]; it
    begins at the origin, along x. trim: of speeds that bodies reach, rising, and of those [m/s]
    with which the carrier is to go for that; () where they are the same. other: speed and period of
    another gait, to which it goes over between both speeds, and whether that is a run. All who make
    a walk ask for the same one, so that it is remembered: its arrays are only to be read.

    Raises SettingsError for commands that no walk follows.
    """
    demand(
        bool(strikes),
        "No foot comes down in the cycle, so that nobody can stop in it: choose other frames "
        "for it.",
    )
    known = [name for name, _ in acts]
    _check(commands, speed, trim, known)
    times = np.arange(count) / rate
    wanted, heading, sideways = np.full(count, speed), np.zeros(count), np.zeros(count)
    for one, then in zip(commands, meant(commands, speed), strict=True):
        later = times >= one.at - 1e-9
        wanted[later], heading[later], sideways[later] = then.goes, then.heading, then.aside
    spot = (wanted == 0) & (sideways != 0)
    wanted[spot] = min(speed, _SPOT)
    if trim:
        reached, told = zip(*trim, strict=True)
        wanted = np.where(wanted > 0, np.interp(wanted, reached, told), 0.0)
    gaits = _Gaits(speed, period, other, rate)
    carrier = _Carrier(strikes, speed, gaits, rate)
    asked = [
        (round(one.at * rate), known.index(one.act)) for one in commands if one.act is not None
    ]
    lasts = [round(passage.seconds * rate) for _, passage in acts]
    led = carrier.led(wanted, spot, asked, lasts)
    paces, cycles, standing, leaning, share, act, since = np.array(led).T
    speeds = paces * (1 - standing) * share
    blend = gaits.blend(paces, cycles, strikes)
    most_aside = SIDEWAYS * np.interp(paces, (_BRISK, _HASTY), (1.0, 0.0))
    aside = np.clip(_asides(sideways, standing, rate), -most_aside, most_aside)
    aside *= 1 - standing
    periods = gaits.period(paces)
    most = np.interp(paces, (_BRISK, _HASTY), (_FASTEST_TURN, _SLOWEST_TURN))
    stood = np.maximum.accumulate(np.where(standing > 0, cycles, -np.inf))
    turns = cycles - stood > _BEFORE_TURNS
    pivots, ahead, shifted = _carried([one for _, one in acts], act, since, rate)
    most = turns * np.minimum(most, _TURN_SHARE * most_turn / periods)
    yaw = _turned(heading, most, rate, pivots)
    along, across = np.cos(yaw), np.sin(yaw)
    went = speeds / rate + ahead
    steps = went[:, None] * np.stack([along, across, 0 * yaw], 1)
    steps += (aside / rate + shifted)[:, None] * np.stack([-across, along, 0 * yaw], 1)
    return Journey(
        speeds,
        yaw,
        _sums(steps),
        _sums(went),
        _sums(aside / rate),
        cycles,
        gaits.strides(paces, blend) * share,
        blend,
        standing,
        leaning,
        turns,
        act.astype(int),
        since,
        _sums(shifted),
    )


def _carried(
    passages: Sequence[Passage], act: np.ndarray, since: np.ndarray, rate: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(N,) each: how far acts turn the carrier to its left [rad], carry it ahead and to its left
    [m], from each sample to the next."""
    pivots, ahead, aside = np.zeros((3, len(act)))
    for number, passage in enumerate(passages):
        own = act == number
        times = since[own]
        share, then = passage.share(times), passage.share(times + 1 / rate)
        # As seen by one who turns on the way.
        turned = share * passage.turn
        cos, sin = np.cos(turned), np.sin(turned)
        pivots[own] = (then - share) * passage.turn
        ahead[own] = (then - share) * (cos * passage.ahead + sin * passage.aside)
        aside[own] = (then - share) * (cos * passage.aside - sin * passage.ahead)
    return pivots, ahead, aside


class Meant(NamedTuple):
    """What commands come to: at a speed [m/s], in a heading [rad], or to stand until it walks so
    again; and to its left at a speed, aside [m/s]."""

    speed: float
    heading: float
    stands: bool
    aside: float = 0.0

    @property
    def goes(self) -> float:
        """The speed ahead [m/s], 0 to stand or to step aside on the spot."""
        return 0.0 if self.stands else self.speed

    @property
    def way(self) -> tuple[float, float]:
        """How fast it is to get on [m/s], and which way [rad]."""
        if not self.aside:
            return self.goes, self.heading
        return hypot(self.goes, self.aside), self.heading + atan2(self.aside, self.goes)


def meant(commands: Sequence[Command], speed: float) -> list[Meant]:
    """What is meant from each command on, of a walk of a speed [m/s]."""
    found, heading, stands, aside = [], 0.0, False, 0.0
    for one in commands:
        aside = 0.0 if one.stands else aside
        aside = aside if one.aside is None else one.aside
        if one.speed is not None:
            speed, stands = one.speed, False
        stands = stands if one.stands is None else one.stands
        heading = heading if one.heading is None else one.heading
        found.append(Meant(speed, heading, stands, aside))
    return found


class _Gaits:
    """A walk of a speed [m/s] and a period [s], and another one that it goes over to."""

    def __init__(
        self, speed: float, period: float, other: tuple[float, float, bool] | None, rate: float
    ) -> None:
        """other: as `journey` has it. rate: of samples [Hz]."""
        self._own, self._other = (speed, period), other and other[:2]
        self._leaps, self._over = other is not None and other[2], round(_GOES_OVER * rate)
        #: The highest speed [m/s] that it can begin at: nobody begins in the air.
        self.begins = speed if self._leaps else np.inf
        speeds, periods = zip(*sorted({self._own, self._other or self._own}), strict=True)
        self._speeds, self._logs = speeds, (np.log(speeds), np.log(periods))
        self._ends = (speeds[0], speeds[-1]), (periods[0], periods[-1])
        self._ratio = log(speeds[-1] / speeds[0])

    def period(self, pace: Any) -> Any:
        """Of a cycle [s] at a speed [m/s]."""
        known = np.minimum(np.maximum(pace, self._speeds[0]), self._speeds[-1])
        return np.exp(np.interp(np.log(known), *self._logs)) * (pace / known) ** (_STRIDE_POWER - 1)

    def period_at(self, pace: float) -> float:
        """The same at one speed, which is asked for at every sample."""
        (slow, fast), (short, long) = self._ends
        known = min(max(pace, slow), fast)
        own = short if slow == fast else short * (long / short) ** (log(known / slow) / self._ratio)
        return own * (pace / known) ** (_STRIDE_POWER - 1)

    def blend(self, pace: np.ndarray, cycles: np.ndarray, strikes: Sequence[Strike]) -> np.ndarray:
        """Share of the other gait at the speeds (N,) of all samples [m/s], after so many cycles
        (N,). What is half of a walk and half of a run neither stands nor flies: from the middle on
        it runs, and goes over to that in a moment, beside a step."""
        if self._other is None:
            return np.zeros_like(pace)
        own, other = self._own[0], self._other[0]
        share = np.clip((pace - own) / (other - own), 0, 1)
        if self._leaps:
            share += self._running(share > 0.5, cycles, strikes) * (1 - share)
        return share

    def _running(
        self, asked: np.ndarray, cycles: np.ndarray, strikes: Sequence[Strike]
    ) -> np.ndarray:
        """How much it runs, 0 to 1 (N,), where that is asked for (N,): from the next moment beside
        a step on that serves."""
        runs = np.full(len(asked), float(asked[0]))
        moments = ((True, _RUNS_AT), (False, _WALKS_AT))
        for sample, begins in sorted(
            (sample, begins) for begins, at in moments for sample in _landings(cycles, strikes, at)
        ):
            if asked[sample] == begins:
                runs[sample:] = begins
        width = 2 * self._over + 1
        return np.convolve(
            np.pad(runs, self._over, mode="edge"), np.full(width, 1 / width), "valid"
        )

    def strides(self, pace: np.ndarray, share: np.ndarray) -> np.ndarray:
        """How long steps are at speeds (N,) [m/s], of those of the gait there, in which the other
        one has a share (N,)."""
        (own, period), (other, its) = self._own, self._other or self._own
        return pace * self.period(pace) / ((1 - share) * own * period + share * other * its)


class _Carrier:
    """How a carrier walks and stands, sample by sample."""

    def __init__(self, strikes: Sequence[Strike], speed: float, gaits: _Gaits, rate: float) -> None:
        self._strikes, self._gaits, self._rate = strikes, gaits, rate
        self._slow = max(_STOPPING_SHARE * speed, min(SLOW, speed))

    def led(
        self,
        wanted: np.ndarray,
        spot: np.ndarray,
        asked: Sequence[tuple[int, int]] = (),
        lasts: Sequence[int] = (),
    ) -> list[tuple[float, ...]]:
        """Speed that it has where it does not stand, cycles, `standing` and `leaning` of a Journey
        at each sample, of which the speeds wanted are (N,) [m/s], 0 to stand; and how far it goes
        ahead, of what steps of that speed do: 0 on the spot, where it is to be there (N,); `act`
        and `since`. asked: at which samples which acts are called for, that last so many samples
        each."""
        rate, to_do = self._rate, list(asked)
        found: list[tuple[float, ...]] = []
        pace = _Pace(min(float(wanted[0]) or self._slow, self._gaits.begins), rate)
        ahead = 1.0 - float(spot[0])
        share = _Pace(ahead, rate, _SPREADING)
        doing, since, cycles, standing, leaning = _WALKS, 0, 0.0, 0.0, 0.0
        begin = end = Strike(0.0, 1)
        if wanted[0] == 0 or (to_do and to_do[0][0] <= 0):
            doing, standing, end = _STANDS, 1.0, self._next(0.0)
            cycles = end.share
        for i, (speed, is_on_spot) in enumerate(zip(wanted.tolist(), spot.tolist(), strict=True)):
            acts = bool(to_do) and to_do[0][0] <= i
            speed = 0.0 if acts else speed
            ahead = ahead if speed == 0 else 1.0 - is_on_spot
            if standing == 1:  # nobody sees it
                share.rest(ahead)
            now = (to_do[0][1], (i - since) / rate) if doing == _ACTS else (-1, 0.0)
            found.append((pace.speed, cycles, standing, leaning, share.speed, *now))
            share.follow(ahead)
            step = 1 / (self._gaits.period_at(pace.speed) * rate)
            if doing == _WALKS:
                pace.follow(speed or self._slow)
                begin = self._next(cycles) if speed == 0 else begin
                cycles += step
                slow = pace.speed * share.speed <= self._slow + 1e-6
                if speed == 0 and slow and cycles >= begin.share:
                    doing, end = _STOPS, self._next(begin.share)
            elif doing == _STOPS:
                cycles = min(cycles + step, end.share)
                standing = _eased((cycles - begin.share) / (end.share - begin.share))
                if cycles == end.share:
                    doing, since = _STANDS, i
            elif doing == _STANDS:
                if i - since >= _STANDING * rate and acts:
                    doing, since = _ACTS, i + 1
                elif i - since >= _STANDING * rate and speed > 0:
                    doing, since = _LEANS, i
            elif doing == _ACTS:
                if i - since >= lasts[to_do[0][1]]:
                    doing, since = _STANDS, i
                    del to_do[0]
            elif doing == _LEANS:
                leaning = _OVER * end.side * _eased((i - since) / (_LEANING * rate))
                if i - since >= _LEANING * rate:
                    doing, begin, end = _STARTS, end, self._next(end.share)
            else:
                cycles += step
                standing = 1 - _eased((cycles - begin.share) / (end.share - begin.share))
                leaning = _OVER * begin.side * standing
                if cycles >= end.share:
                    doing = _WALKS
        return found

    def _next(self, cycles: float) -> Strike:
        """The first of the strikes after so many cycles; its share counts on from round to
        round."""
        later = [
            Strike(one.share + np.floor(cycles) + lap, one.side)
            for one in self._strikes
            for lap in (0, 1)
            if one.share + np.floor(cycles) + lap > cycles + 1e-6
        ]
        return min(later)


#: What a carrier does.
_WALKS, _STOPS, _STANDS, _LEANS, _STARTS, _ACTS = range(6)


class _Pace:
    """A speed [m/s] that follows others, evenly, by so much in a second at most, and smoothly by a
    mean over the time before."""

    def __init__(self, speed: float, rate: float, most: float = GATHERING) -> None:
        width = max(1, round(_SMOOTHING * rate)) | 1
        self._bell = np.hanning(width + 2)[1:-1] / np.hanning(width + 2).sum()
        self._most = most / rate
        self.rest(speed)

    def rest(self, speed: float) -> None:
        """Be at a speed [m/s] as if it had always been so."""
        self._before = [speed] * len(self._bell)
        self.speed, self._still = speed, True

    def follow(self, speed: float) -> None:
        """Go on by a sample."""
        if self._still and speed == self.speed:
            return
        now = self._before[-1]
        now += min(max(speed - now, -self._most), self._most)
        self._before = [*self._before[1:], now]
        self._still = min(self._before) == max(self._before)
        self.speed = now if self._still else float(self._bell @ self._before)


def _asides(wanted: np.ndarray, standing: np.ndarray, rate: float) -> np.ndarray:
    """(N,) speeds to the left [m/s] that follow wanted ones, from when it does not stand any
    more."""
    pace, found = _Pace(float(wanted[0]), rate), []
    for speed, share in zip(wanted.tolist(), standing.tolist(), strict=True):
        if share == 1:
            pace.rest(0.0)
        found.append(pace.speed)
        pace.follow(speed)
    return np.array(found)


def _eased(share: float) -> float:
    """0 to 1 without a start, a stop or a jerk, as a share goes from 0 to 1."""
    x = min(max(share, 0.0), 1.0)
    return x**3 * (10 - 15 * x + 6 * x * x)


class Followed(NamedTuple):
    """What came of a Command: at [s]; speed [m/s], 0 to stand, and heading [rad] as commanded, of
    its way, where it is to go to its left as well, aside [m/s]; and both as they were when the next
    one came, or at the end, over the last round, or since it stands; NaN for a body that had
    fallen, and where nothing goes there is no heading. steps: after how many it had SETTLED for
    good, or stood; None if it had not. act: what it was to perform, None for nothing; began, ended:
    when it did [s], None of what it did not begin, or end on its feet."""

    at: float
    speed: float
    heading: float
    reached_speed: float
    reached_heading: float
    steps: int | None
    aside: float = 0.0
    act: str | None = None
    began: float | None = None
    ended: float | None = None


def followed(
    commands: Sequence[Command],
    gone: Journey,
    strikes: Sequence[Strike],
    com: np.ndarray,
    rate: float,
    yaw: float,
    own: float,
) -> list[Followed]:
    """A Followed for each of the commands of a Journey, by the centre of mass (n, 3) [m] of a body
    that stood for n samples at a rate [Hz]. strikes: of the cycle. yaw: in which the walk begins
    [rad]; own: speed of its cycle [m/s]."""
    found, count, rounds = [], len(gone.speeds), _Rounds(gone, strikes, com, rate, yaw)
    performed = iter(runs(gone.act >= 0).tolist())
    ends = [*[one.at for one in commands[1:]], count / rate]
    for one, then, told in zip(commands, ends, meant(commands, own), strict=True):
        speed, heading = told.way
        begun, last = round(one.at * rate), min(int(then * rate), count - 1)
        first = int(np.searchsorted(gone.cycles, gone.cycles[last] - 1))
        stands = gone.standing[last] == 1
        if stands:
            moved = np.flatnonzero(gone.standing[: last + 1] < 1)
            first = max(begun, 1 + moved[-1] if len(moved) else 0)
        reached = turned = np.nan
        if begun <= first < last < len(com):
            x, y = ((com[last] - com[first])[:2] / (last - first) * rate).tolist()
            reached = float(np.hypot(x, y))
            if not stands:
                # Whole turns as the carrier has gone round.
                turned, own_yaw = float(np.arctan2(y, x)) - yaw, float(gone.yaw[last])
                turned = own_yaw + (turned - own_yaw + np.pi) % (2 * np.pi) - np.pi
        steps = rounds.steps(begun, last, speed, heading) if np.isfinite(reached) else None
        began, ended = (None, None) if one.act is None else next(performed, (None, None))
        found.append(
            Followed(
                one.at,
                speed,
                heading,
                reached,
                turned,
                steps,
                told.aside,
                one.act,
                began / rate if began is not None and began < len(com) else None,
                ended / rate if ended is not None and ended < len(com) else None,
            )
        )
    return found


def _landings(cycles: np.ndarray, strikes: Sequence[Strike], later: float = 0.0) -> np.ndarray:
    """Samples by which a foot has come down since the one before, or by which one had come down a
    share of a cycle before, of all samples, after so many cycles (N,)."""
    done = np.floor(cycles[:, None] - [one.share + later for one in strikes]).sum(1)
    return 1 + np.flatnonzero(np.diff(done) > 0)


class _Rounds:
    """How a body goes, step by step."""

    def __init__(
        self,
        gone: Journey,
        strikes: Sequence[Strike],
        com: np.ndarray,
        rate: float,
        yaw: float,
    ) -> None:
        landings = _landings(gone.cycles, strikes)
        self._landings, self._rate = landings[landings < len(com)], rate
        self._standing = gone.standing[: len(com)]
        # Over a round before each, in which it sways to both sides.
        before = len(strikes)
        self._ends = self._landings[before:]
        x, y, _ = (com[self._ends] - com[self._landings[: len(self._ends)]]).T
        times = (self._ends - self._landings[: len(self._ends)]) / rate
        self._speeds, self._headings = np.hypot(x, y) / times, arctan2(y, x) - yaw

    def steps(self, first: int, last: int, speed: float, heading: float) -> int | None:
        """After how many from a sample on it had settled until the sample `last`, or stood."""
        if speed == 0:
            stands = np.flatnonzero(self._standing[first : last + 1] == 1)
            if not len(stands):
                return None
            arrived = first + stands[0]
        else:
            own = (self._ends > first) & (self._ends <= last)
            apart = (self._headings[own] - heading + np.pi) % (2 * np.pi) - np.pi
            off = np.abs(self._speeds[own] - speed) > SETTLED[0] * speed
            ends, unsettled = self._ends[own], np.flatnonzero(off | (np.abs(apart) > SETTLED[1]))
            settled = 1 + unsettled[-1] if len(unsettled) else 0
            if settled == len(ends):
                return None
            arrived = ends[settled]
        return int(((self._landings > first) & (self._landings <= arrived)).sum())


def _check_times(commands: Sequence[Command]) -> None:
    first = commands[0].at
    demand(first >= 0, f"The command at {first:g} s comes before the walk: begin at 0 s.")
    before = first
    for one in commands:
        demand(
            one.at >= before,
            f"The command at {one.at:g} s comes after one at {before:g} s: sort them by time.",
        )
        before = one.at


def speeds(speed: float, trim: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The slowest and the fastest [m/s] that a walk of a speed can be commanded to go at."""
    return (trim[0][0], trim[-1][0]) if trim else (SLOWEST * speed, FASTEST * speed)


def _check(
    commands: Sequence[Command],
    speed: float,
    trim: Sequence[tuple[float, float]],
    acts: Sequence[str],
) -> None:
    slowest, fastest = speeds(speed, trim)
    for one in commands:
        if one.act is not None and one.act not in acts:
            known = ", ".join(("stand", "walk", *acts))
            raise SettingsError(
                f"The command at {one.at:g} s has the skill '{one.act[:40]}', which is not known: "
                f"use {known} or, of a .blend, the name of one of its actions."
            )
        told = one.at, one.speed or 0.0, one.heading or 0.0, one.aside or 0.0
        demand(
            bool(np.isfinite(told).all()),
            "A command has a time, a speed or a heading that is not a number: mend it.",
        )
        if one.aside is not None and abs(one.aside) > SIDEWAYS + 1e-9:
            raise SettingsError(
                f"The command at {one.at:g} s is to go sideways at {one.aside:g} m/s, and walks do "
                f"so at {SIDEWAYS:g} m/s at most: give it -{SIDEWAYS:g} to {SIDEWAYS:g}."
            )
        if one.speed is not None and not slowest - 0.005 <= one.speed <= fastest + 0.005:
            raise SettingsError(
                f"The command at {one.at:g} s is to walk at {one.speed:g} m/s; this clip, of "
                f"{speed:.2f} m/s, makes walks of {slowest:.2f} to {fastest:.2f} m/s: choose a "
                "speed between, or a clip that is slower or faster."
            )
    _check_times(commands)


def _turned(heading: np.ndarray, most: np.ndarray, rate: float, pivots: np.ndarray) -> np.ndarray:
    """(N,) yaw [rad] that follows headings, by at most so much [rad/s] at each sample, and pivots
    by so much [rad] from each to the next."""
    found, yaw, turning = np.empty_like(heading), 0.0, 0.0
    told = zip(heading.tolist(), most.tolist(), pivots.tolist(), strict=True)
    for i, (value, limit, pivot) in enumerate(told):
        aim = min(max(_EAGERNESS * (value - yaw), -limit), limit)
        turning += min(max(aim - turning, -_SLEW / rate), _SLEW / rate)
        yaw += turning / rate
        found[i] = yaw
        yaw += pivot
    return found


def _sums(steps: np.ndarray) -> np.ndarray:
    """What has been gone before each sample."""
    sums = np.cumsum(steps, axis=0)
    return sums - steps

# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands to a walk: how fast to go from when on, and which way.

A walk that goes slower takes shorter steps and more time for each. So commands become a journey of
the carrier of a cycle: where it is, where it heads, and how far the cycle has come, at any time.
Speed and turning follow what is commanded no faster than a body that walks can.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import radians
from typing import Any, NamedTuple, NoReturn

import numpy as np

from .. import documents
from ..exceptions import SettingsError, demand
from ..geometry.trajectory import bell
from ..ranges import RANGES

VERSION = 1  # of scripts

#: Of the clip's own, how slowly and how fast a walk goes on command: measured on captured walks.
SLOWEST, FASTEST = 0.5, 1.1

# By trial, as `researcher.md`, Directed walks, has it.
_GATHERING = 0.3  # [m/s^2] by which speed changes
_SMOOTHING = 0.4  # [s] over which a change begins and ends
_EAGERNESS = 4.0  # [1/s] with which an error of the heading is turned off
_FASTEST_TURN = 0.95  # [rad/s]
#: ... by which speeds [m/s] up to the first are bent at most, and those from the second on by the
#: smaller rate: captured fast walks fall out of bends that slower ones walk.
_BRISK, _HASTY, _SLOWEST_TURN = 1.35, 1.65, 0.25
_SLEW = 4.4  # [rad/s^2] of its rate
#: Of what a curve may turn a walker in a cycle; rounding makes it a little less.
_TURN_SHARE = 0.8
#: A stride grows with this power of the speed, and so its time shrinks: so people walk.
_STRIDE_POWER = 0.5


@dataclass(frozen=True)
class Command:
    """From a time on [s] go with a speed [m/s], in a heading [rad], counter-clockwise from above, 0
    where the walk begins; what is None stays as it was."""

    at: float
    speed: float | None = None
    heading: float | None = None


@dataclass(frozen=True)
class Script:
    """Commands of a walk that lasts so long [s]."""

    seconds: float
    commands: tuple[Command, ...]

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Script":
        """Read a script, `{"version": 1, "seconds": 20, "commands": [{"at": 6, "speed": 1.0,
        "heading": 90}]}`: times in s, speeds in m/s, headings in degrees. Raises SettingsError."""
        source = f"The script '{path}'"
        content = documents.read(path, source, _fail)
        keys = "version", "seconds", "commands"
        _has(source, content, keys, keys)
        if content["version"] != VERSION:
            _fail(source, f"is of version {content['version']!r}: this Poise reads {VERSION}")
        if not isinstance(content["commands"], list) or not content["commands"]:
            _fail(source, "has no list of commands: give at least one")
        found = []
        for number, one in enumerate(content["commands"], 1):
            name = f"Command {number} of the script '{path}'"
            _has(name, one, ("at", "speed", "heading"), ("at",))
            if len(one) < 2:
                _fail(name, "commands nothing: give it a speed or a heading")
            values = {key: _number(name, key, value) for key, value in one.items()}
            if "heading" in values:
                values["heading"] = radians(values["heading"])
            found.append(Command(**values))
        seconds = _number(source, "seconds", content["seconds"])
        RANGES["walk"].check(seconds)
        if found[-1].at > seconds:
            _fail(source, f"lasts {seconds:g} s, and its last command is at {found[-1].at:g} s")
        return cls(seconds, tuple(found))


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
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e6:
        _fail(source, f"has {str(value)[:40]!r} as '{key}', which is no number")
    return float(value)


class Journey(NamedTuple):
    """What commands make of a walk, at samples (N,) from its first one on: speeds [m/s] and yaw
    [rad] of the carrier; points (N, 3) [m] where it is, and distances [m] that it has gone; cycles:
    how many rounds it has done; strides: how long they are, of the clip's own."""

    speeds: np.ndarray
    yaw: np.ndarray
    points: np.ndarray
    distances: np.ndarray
    cycles: np.ndarray
    strides: np.ndarray

    def at(self, samples: np.ndarray) -> "Journey":
        """It at samples, which may be before its first or after its last one: there it goes evenly
        on."""
        last = len(self.speeds) - 1
        known = np.clip(samples, 0, last)
        beyond = samples - known
        # The last step is from the last sample but one.
        begun = np.minimum(known, last - 1)
        found = [values[known] for values in self]
        for index in (2, 3, 4):
            values = self[index]
            step = values[begun + 1] - values[begun]
            found[index] = found[index] + beyond.reshape(-1, *[1] * (values.ndim - 1)) * step
        return Journey(*found)


@lru_cache(maxsize=4)
def journey(
    commands: tuple[Command, ...],
    speed: float,
    period: float,
    most_turn: float,
    rate: float,
    count: int,
) -> Journey:
    """The Journey of a walk of a speed [m/s] and a period [s] of its cycle, that may turn by so
    much in one [rad], at so many samples at a rate [Hz]; it begins at the origin, along x. All who
    make a walk ask for the same one, so that it is remembered: its arrays are only to be read.

    Raises SettingsError for commands that no walk follows.
    """
    _check(commands, speed)
    times = np.arange(count) / rate
    wanted, heading = np.full(count, speed), np.zeros(count)
    for one in commands:
        later = times >= one.at - 1e-9
        if one.speed is not None:
            wanted[later] = one.speed
        if one.heading is not None:
            heading[later] = one.heading
    speeds = bell(_followed(wanted, _GATHERING / rate), _SMOOTHING, rate)
    share = speeds / speed
    periods = period * share ** (_STRIDE_POWER - 1)
    most = np.interp(speeds, (_BRISK, _HASTY), (_FASTEST_TURN, _SLOWEST_TURN))
    yaw = _turned(heading, np.minimum(most, _TURN_SHARE * most_turn / periods), rate)
    steps = speeds[:, None] / rate * np.stack([np.cos(yaw), np.sin(yaw), 0 * yaw], 1)
    return Journey(
        speeds,
        yaw,
        _sums(steps),
        _sums(speeds / rate),
        _sums(1 / (periods * rate)),
        share**_STRIDE_POWER,
    )


class Followed(NamedTuple):
    """What came of a Command: at [s]; speed [m/s] and heading [rad] as commanded; and both as they
    were when the next one came, or at the end, over the last round; NaN for a body that had
    fallen."""

    at: float
    speed: float
    heading: float
    reached_speed: float
    reached_heading: float


def followed(
    commands: Sequence[Command], gone: Journey, com: np.ndarray, rate: float, yaw: float
) -> list[Followed]:
    """A Followed for each of the commands of a Journey, by the centre of mass (n, 3) [m] of a body
    that stood for n samples at a rate [Hz]. yaw: in which the walk begins [rad]."""
    found, count = [], len(gone.speeds)
    speed, heading = float(gone.speeds[0]), 0.0
    for one, then in zip(commands, [*[c.at for c in commands[1:]], count / rate], strict=True):
        speed = speed if one.speed is None else one.speed
        heading = heading if one.heading is None else one.heading
        last = min(int(then * rate), count - 1)
        first = int(np.searchsorted(gone.cycles, gone.cycles[last] - 1))
        reached = turned = np.nan
        if first < last < len(com):
            x, y = ((com[last] - com[first])[:2] / (last - first) * rate).tolist()
            reached = float(np.hypot(x, y))
            turned = float(np.arctan2(y, x)) - yaw
            turned = heading + (turned - heading + np.pi) % (2 * np.pi) - np.pi
        found.append(Followed(one.at, speed, heading, reached, turned))
    return found


def _check(commands: Sequence[Command], speed: float) -> None:
    before = 0.0
    for one in commands:
        demand(
            bool(np.isfinite([one.at, one.speed or 0.0, one.heading or 0.0]).all()),
            "A command has a time, a speed or a heading that is not a number: mend it.",
        )
        demand(
            one.at >= before,
            f"The command at {one.at:g} s comes after one at {before:g} s: sort them by time.",
        )
        before = one.at
        slowest, fastest = SLOWEST * speed, FASTEST * speed
        if one.speed is not None and not slowest - 0.005 <= one.speed <= fastest + 0.005:
            raise SettingsError(
                f"The command at {one.at:g} s is to walk at {one.speed:g} m/s; this clip, of "
                f"{speed:.2f} m/s, makes walks of {slowest:.2f} to {fastest:.2f} m/s: choose a "
                "speed between, or a clip that is slower or faster."
            )


def _followed(wanted: np.ndarray, most: float) -> np.ndarray:
    """(N,) what follows wanted values by `most` a sample."""
    found, now = np.empty_like(wanted), float(wanted[0])
    for i, value in enumerate(wanted.tolist()):
        now += min(max(value - now, -most), most)
        found[i] = now
    return found


def _turned(heading: np.ndarray, most: np.ndarray, rate: float) -> np.ndarray:
    """(N,) yaw [rad] that follows headings, by at most so much [rad/s] at each sample."""
    found, yaw, turning = np.empty_like(heading), 0.0, 0.0
    for i, (value, limit) in enumerate(zip(heading.tolist(), most.tolist(), strict=True)):
        aim = min(max(_EAGERNESS * (value - yaw), -limit), limit)
        turning += min(max(aim - turning, -_SLEW / rate), _SLEW / rate)
        yaw += turning / rate
        found[i] = yaw
    return found


def _sums(steps: np.ndarray) -> np.ndarray:
    """What has been gone before each sample."""
    sums = np.cumsum(steps, axis=0)
    return sums - steps

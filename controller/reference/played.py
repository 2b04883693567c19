# SPDX-License-Identifier: GPL-3.0-or-later
"""Walks that are played: their commands are known only when they come.

A reference looks ahead: its filters, and the swings of feet that are under way, know what is to
come. Who plays has not decided that yet. So a walk that is played is performed window by window,
each of which is the reference of what has been commanded until it begins, a little further on. The
next one begins where a command comes, and at the latest while there is enough of the last one left.
Who does the same commands later, in one go, takes the same windows, and comes to the same keys.

Where the body falls, and gets up, another part of the walk begins: there it stands, elsewhere and
turned, for a moment, and then goes on as it is told.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..body.character import Character
from ..geometry.motion import Motion
from ..geometry.rotations import near
from ..geometry.stance import runs
from .commands import Command, Followed, meant
from .gait import Endless, Walk
from .reference import Reference
from .state_machine import State, states_at

#: [s] after which a window is followed by another one; how far it goes, beyond the longest swing
#: and what filters see of it; and how long before it the reference begins, so that the swings that
#: are under way are whole.
LASTS, _REACHES, _BEFORE = 2.0, 3.2, 1.2
#: [s] for which who has got up stands, whatever it is told. By trial.
STEADIES = 1.0


class Part(NamedTuple):
    """A part of a walk: from its beginning, or from the sample `since` at which the body has got
    up. placed: where the walk would have begun that comes there, as `gait.Walk` has it. stays:
    whether it stands there, whatever is commanded."""

    since: int = 0
    placed: tuple[float, float, float] = (0.0, 0.0, 0.0)
    stays: bool = False

    def commands(self, commands: Sequence[Command], rate: float) -> tuple[Command, ...]:
        """What the commands of the walk come to in it, at times from its own beginning on, of
        samples at a rate [Hz]."""
        if not self.since:
            return tuple(commands)
        if self.stays:
            return (Command(0.0, stands=True),)
        began = self.since / rate
        before = [one for one in commands if one.walks and one.at <= began + STEADIES]
        speed, heading, stands, aside = meant((Command(0.0), *before), 0.0)[-1]
        # It turns to where it is to head the shorter way; from there on as it is told.
        own = near(heading - self.placed[0], 0.0)
        later = [
            replace(
                one,
                at=one.at - began,
                heading=None if one.heading is None else one.heading + own - heading,
            )
            for one in commands
            if one.at > began + STEADIES
        ]
        # Without a speed, at the clip's own.
        told = Command(STEADIES, speed or None, own, stands, aside=aside or None)
        return Command(0.0, stands=True), told, *later

    def of(self, walk: Walk, rate: float) -> Walk:
        """The walk that is performed in it."""
        return replace(walk, commands=self.commands(walk.commands, rate), placed=self.placed)

    def followed(
        self, motion: Endless, character: Character, com: np.ndarray, found: Sequence[Followed]
    ) -> list[Followed]:
        """What came of the commands of a walk in this part of it, and before, as `found`: by the
        centre of mass (n, 3) [m] of the body for as long as the part lasted."""
        rate, commands = motion.rate, motion.walk.commands
        walk = replace(self.of(motion.walk, rate), seconds=(len(com) - 1) / rate)
        _, told, *own = replace(motion, walk=walk).followed(character, com)
        until = self.since / rate + STEADIES
        before = [at for at, one in enumerate(commands) if one.at <= until]
        walks = [at for at in before if commands[at].walks]
        later = [at for at, one in enumerate(commands) if one.at > until]
        # A push since the last one of the walk is followed by the same.
        same = before[before.index(walks[-1]) :] if walks else before
        pairs = [*((at, told) for at in same), *zip(later, own, strict=True)]
        found = list(found)
        for at, one in pairs:
            if np.isfinite(one.reached_speed):
                turn = found[at].heading - one.heading
                found[at] = found[at]._replace(
                    reached_speed=one.reached_speed,
                    reached_heading=one.reached_heading + turn,
                    steps=one.steps,
                )
            if one.act is not None:
                began, ended = (
                    None if when is None else when + self.since / rate
                    for when in (one.began, one.ended)
                )
                found[at] = found[at]._replace(began=began, ended=ended)
        return found


#: That of a walk in which nobody falls.
WHOLE = Part()


class Window:
    """What is performed from a sample of a walk on: `reference` of the samples from `first` on."""

    def __init__(
        self,
        character: Character,
        source: Motion,
        walk: Walk,
        rate: float,
        sample: int,
        cutoff: float | None = None,
        part: Part = WHOLE,
    ) -> None:
        """walk: with all commands, of which those that come later are not known yet. rate: wanted
        control rate [Hz]. part: of the walk, to which the sample belongs. Raises SettingsError,
        MotionError."""
        own, at = part.of(walk, source.rate), sample - part.since
        known = tuple(one for one in own.commands if sample_of(one, source.rate) <= at)
        known = known or (Command(0.0),)  # it walks as the clip does
        first = max(0, at - round(_BEFORE * source.rate))
        self.part, self.sample, self.first = part, sample, part.since + first
        seconds = at / source.rate + _REACHES
        motion = replace(own, commands=known, seconds=seconds).motion(character, source, first)
        self._walk, self._rate = motion.walk, source.rate
        self.reference = Reference.window(character, motion, rate, cutoff)

    def act(self, sample: int) -> str | None:
        """The act that is performed at a sample, or that comes as soon as the body stands; None if
        none is called for."""
        done = self._walk.journey(self._rate).act[: sample - self.part.since + 1] >= 0
        called = [one.act for one in self._walk.commands if one.act is not None]
        begun = len(runs(done)) - bool(done[-1])
        return called[begun] if begun < len(called) else None

    def state(self, sample: int) -> State:
        """What it is in at a sample, as it is told."""
        (found,), known = states_at(self._walk, self._rate, np.array([sample - self.part.since]))
        return known[found]

    def next(self, commands: Sequence[Command], rate: float) -> int:
        """The sample at which the next window begins, of a walk with such commands at a rate of
        samples [Hz]."""
        latest, since = self.sample + round(LASTS * rate), self.part.since
        own = self.part.commands([one for one in commands if one.walks], rate)
        later = (since + sample_of(one, rate) for one in own)
        return min((at for at in later if self.sample < at < latest), default=latest)


def followed_in(
    motion: Endless,
    character: Character,
    com: np.ndarray,
    ends: Sequence[int],
    parts: Sequence[Part],
) -> list[Followed]:
    """What came of the commands of a walk, by the centre of mass (n, 3) [m] of a body that fell
    and got up. ends: samples until it fell, or to the end, of the walk's beginning and of each of
    the parts that followed."""
    found = motion.followed(character, com[: ends[0]])
    for part, end in zip(parts, ends[1:], strict=True):
        if not part.stays and end - part.since > 1:
            found = part.followed(motion, character, com[part.since : end], found)
    return found


def sample_of(command: Command, rate: float) -> int:
    """The first sample, at a rate [Hz], that a command is known at."""
    return round(command.at * rate)

# SPDX-License-Identifier: GPL-3.0-or-later
"""Walks that are played: their commands are known only when they come.

A reference looks ahead: its filters, and the swings of feet that are under way, know what is to
come. Who plays has not decided that yet. So a walk that is played is performed window by window,
each of which is the reference of what has been commanded until it begins, a little further on. The
next one begins where a command comes, and at the latest while there is enough of the last one left.
Who does the same commands later, in one go, takes the same windows, and comes to the same keys.
"""

from collections.abc import Sequence
from dataclasses import replace

from ..body.character import Character
from ..geometry.motion import Motion
from .commands import Command
from .gait import Walk
from .reference import Reference

#: [s] after which a window is followed by another one; how far it goes, beyond the longest swing
#: and what filters see of it; and how long before it the reference begins, so that the swings that
#: are under way are whole.
LASTS, _REACHES, _BEFORE = 2.0, 3.2, 1.2


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
    ) -> None:
        """walk: with all commands, of which those that come later are not known yet. rate: wanted
        control rate [Hz]. Raises SettingsError, MotionError."""
        known = tuple(one for one in walk.commands if sample_of(one, source.rate) <= sample)
        known = known or (Command(0.0),)  # it walks as the clip does
        self.sample, self.first = sample, max(0, sample - round(_BEFORE * source.rate))
        seconds = sample / source.rate + _REACHES
        motion = replace(walk, commands=known, seconds=seconds).motion(
            character, source, self.first
        )
        self.reference = Reference.window(character, motion, rate, cutoff)

    def next(self, commands: Sequence[Command], rate: float) -> int:
        """The sample at which the next window begins, of a walk with such commands at a rate of
        samples [Hz]."""
        latest = self.sample + round(LASTS * rate)
        later = (sample_of(one, rate) for one in commands if one.walks)
        return min((at for at in later if self.sample < at < latest), default=latest)


def sample_of(command: Command, rate: float) -> int:
    """The first sample, at a rate [Hz], that a command is known at."""
    return round(command.at * rate)

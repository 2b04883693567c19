# SPDX-License-Identifier: GPL-3.0-or-later
"""The job of who plays: a walk that goes on as it is told, in real time, and then its take."""

from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ...controller.geometry.skeleton import SEGMENT_INDEX
from ...controller.simulation.play import STANDS, Play
from ...controller.skills.skill_set import Skill
from ..blender.evaluation import LastOfTurn
from ..scene.walks import WalkOptions
from ..shots.outdated import in_full, settings_of
from ..shots.shot import Shot, ShotOptions
from .job import Job, in_background, reading_source, reading_stages, simulating

if TYPE_CHECKING:
    import bpy

#: Of a simulation that is read before there is any take [s]: by judgement.
_FIRST = 2.0
#: Who falls behind the clock by more than this [s] goes on more slowly than it.
_BEHIND = 0.1
#: Who is pulled is pulled evenly for so many samples; by a spring of this strength [N/m], at most
#: so hard [N]: about what brings a walker to step aside, and what brings it down.
_EVEN, _SPRING, _HARDEST = 3, 400.0, 200.0
#: Less is not pulled [N].
_LEAST = 1.0


class Shown:
    """What the overlays draw of who is played: as a Shot, and as its recording, have it."""

    baked = stood = None

    def __init__(self, shot: Shot, play: Play) -> None:
        self.reading, self.character, self._play = shot.reading, shot.character, play
        self.body_positions, self.body_rotations = play.centres, play.turns
        self.contacts = play.touches

    @property
    def recording(self) -> "Shown":
        """Itself."""
        return self

    @property
    def fell_at(self) -> float | None:
        """When it fell [s], None while it stands."""
        return self._play.seconds if self._play.fell else None

    def __len__(self) -> int:
        return len(self._play.centres)


class PlayJob(Job):
    """Read an armature's walk, and have it walk as it is told. What was played until it is kept is
    simulated anew, to the last bit, and is the result.

    play: controller.simulation.play.Play, None before it begins. paused: whether it waits.
    pull: (segment, [m] (3,) where it is drawn to), None if nobody pulls. drawn: (3,) [m] where the
    pelvis was in the view that follows it when somebody saw where that is; None of a view that
    stays.
    """

    plays = True

    def __init__(
        self,
        scene: "bpy.types.Scene",
        options: ShotOptions,
        walk: WalkOptions | None = None,
        skill: Skill | None = None,
    ) -> None:
        """walk: WalkOptions with the cycle and the ball, None for the best one and none. skill:
        skill_set.Skill that is played, None for none."""
        begin = walk or WalkOptions(_FIRST)
        self._walk = replace(begin, seconds=_FIRST, heading=None, commands=STANDS, played=True)
        self._options, self._skill = options, skill
        self.play: Any = None
        self.shown: Shown | None = None
        self.pull: tuple[str, np.ndarray] | None = None
        self.drawn: np.ndarray | None = None
        self.paused = self._kept = False
        self._pulled = self._again = 0
        shot = Shot(scene, replace(options, walk=self._walk))
        ready, playing = in_background(self._ready), self._playing()
        super().__init__(
            shot,
            (
                *reading_stages(shot),
                ("getting ready", ready),
                ("playing", playing),
                ("simulating the take", self._taking()),
            ),
        )

    def _ready(self) -> None:
        shot, skill = self.shot, self._skill
        if skill is not None:
            skill.check_body(shot.character.height, shot.character.mass)
        self.play = Play(shot.simulation)
        self.shown = Shown(shot, self.play)

    @property
    def is_played(self) -> bool:
        """Whether it can be told something now."""
        return self.play is not None and not self._kept

    @property
    def text(self) -> str:
        """What is going on, for the progress bar."""
        if not self.is_played:
            return super().text
        return f"Playing: {self.play.seconds:.1f} s"

    def ghost(self) -> tuple[Shown, int] | None:
        """The newest pose."""
        return None if self.shown is None else (self.shown, self.play.sample)

    def cancel(self) -> None:
        """Stop, and leave the scene as it was."""
        super().cancel()
        if self.play is not None:
            self.play.close()

    @property
    def goes_back(self) -> bool:
        """Whether it is still on its way to where it went back to."""
        return self.is_played and bool(self.play.sample < self._again)

    @property
    def differs(self) -> bool:
        """Whether the take is not what was played, because the scene was changed meanwhile."""
        seen, taken = np.array(self.play.centres), self.shot.recording.body_positions
        count = min(len(seen), len(taken))
        return bool((seen[:count] != taken[:count]).any())

    def keep(self) -> None:
        """End with what was played."""
        self._kept = True

    def rewind(self, seconds: float) -> None:
        """Go so many seconds back, and wait there."""
        play = self.play
        last = max(play.sample, self._again)  # of one that is still going back, too
        self._again = max(0, last - round(seconds * play.rate))
        play.rewind(self._again)
        self.shown = Shown(self.shot, play)  # of which no pose was drawn yet
        self.paused, self.pull, self._pulled = True, None, 0

    def force(self) -> np.ndarray | None:
        """(3,) [N] with which it is pulled now, level; None if nobody pulls, or hardly."""
        if self.pull is None:
            return None
        apart = (self.aim() - self.held()) * [1.0, 1.0, 0.0]
        size = float(np.linalg.norm(apart))
        if _SPRING * size < _LEAST:
            return None
        return apart * min(_SPRING, _HARDEST / size)

    def aim(self) -> np.ndarray:
        """(3,) [m] where it is drawn to now."""
        assert self.pull is not None
        return self.pull[1] + self.gone()

    def gone(self) -> np.ndarray:
        """(3,) [m] how far it has gone on before its view does, as on a slow screen."""
        if self.drawn is None:
            return np.zeros(3)
        return self.play.centres[-1][0] - self.drawn

    def held(self) -> np.ndarray:
        """(3,) [m] the middle of what is pulled."""
        assert self.pull is not None
        return self.play.centres[-1][SEGMENT_INDEX[self.pull[0]]]

    # --- Stages -----------------------------------------------------------------------------------

    def _playing(self) -> Iterator[float]:
        play, begun, first = self.play, perf_counter(), self.play.sample
        while not self._kept or play.sample < self._again:
            late = (perf_counter() - begun) - (play.sample - first) / play.rate
            if play.sample < self._again:  # what it did before
                play.advance()
                begun, first = perf_counter(), play.sample
                yield 0.0
            elif self.paused or not play.goes_on or late > _BEHIND:
                begun, first = perf_counter(), play.sample
                yield LastOfTurn(0.0)
            elif late < 0 or not play.ready:
                yield LastOfTurn(0.0)
            else:
                self._pull()
                play.advance()
                yield 0.0

    def _pull(self) -> None:
        """Pull for the next few samples."""
        force, play = self.force(), self.play
        if self.pull is None or force is None or play.sample < self._pulled:
            return
        newtons = float(np.hypot(force[0], force[1]))
        direction = float(np.arctan2(force[1], force[0])) - play.yaw
        play.push(newtons, direction, _EVEN / play.rate, self.pull[0])
        self._pulled = play.sample + _EVEN

    def _taking(self) -> Iterator[float]:
        played = self.play.walk
        self.play.close()
        walk = replace(self._walk, seconds=played.seconds, commands=played.commands, ball=0.0)
        self.shot = shot = Shot(self.shot.scene, replace(self._options, walk=walk))
        settings = settings_of(shot.scene, shot.armature, shot.options)
        self.settings = in_full(settings, shot.armature)
        yield from reading_source(shot)
        yield from in_background(shot.prepare)
        yield from simulating(shot)
        yield from in_background(shot.judge)

# SPDX-License-Identifier: GPL-3.0-or-later
"""How a clip is learned: it is walked at more and more speeds, slower and faster than its own, for
as long as it stands.

    learning = Learning(character, motion, mass, seed, executor)
    while not learning.poll(): …
    learning.paces

In each try the body turns to its left and back, stops and walks again, under motor noise. What it
reaches is counted before all that. Then what it is to perform is tried between two walks. Tries
depend on their seeds alone.
"""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace
from math import pi

import numpy as np

from ..body.character import Character
from ..exceptions import PoiseError, SimulationError
from ..gains.gains import Gains
from ..geometry.motion import Motion
from ..reference.acts import Act
from ..reference.commands import Command
from ..reference.gait import Endless, Gait, Walk, find_cycle
from ..search.polling import Plan, Polled, Task
from ..search.trial import NOISE, Problem, Result, problem_of
from ..simulation.simulation import Settings
from .skill_set import Pace

#: Speeds that are tried, as shares of the clip's own; the next one only if the one before stood.
SLOWER, FASTER = (0.85, 0.7, 0.55, 0.4), (1.1, 1.2, 1.3, 1.4, 1.5)
#: Of a clip that goes over to another one: shares of the way to that, and shares of its speed.
OVER, BEYOND = (0.25, 0.5, 0.75, 1.0), (1.05, 1.1)
#: Clips can go over to each other if bodies look so alike against where they go [rad].
ALIKE = pi / 4
TRIES = 2  # of each speed
#: A try [s]: when it turns by 90°, back, stops and goes again, and how long it is.
_TURNS, _BACK, _STOPS, _GOES, _SECONDS = 8.0, 12.0, 16.0, 22.0, 28.0
#: How often an act is tried; when it is asked for, and how much longer than twice the act such a
#: try is [s].
ACT_TRIES, _BEGINS, _ENDS = 3, 3.0, 10.0
#: With how much help from outside it is tried, one after the other, until it stands.
HELPS = 0.0, 0.25, 0.5, 1.0
#: The same of a run, and of a walk that becomes one, until that is as fast as its clip. By
#: judgement: the captured run fell without, and stood with the first of them.
RUN_HELPS = 0.0, 0.1, 0.25
_ROUNDS = 3  # over which speed is measured, before the first turn


class Learning(Polled):
    """The paces of a clip, found one after the other: from its own speed, or where a body falls at
    that, from the first slower one.

    cycle: the Cycle that is walked. speed: of it [m/s]. outside_help: share of the weight that help
    from outside may be, 0 but for runs. paces: Pace each that stood in all tries,
    rising; acts: Act each that it performed, and stood in all tries, with the help that it needed.
    Both are complete when `ended` is "done".
    """

    def __init__(
        self,
        character: Character,
        motion: Motion,
        mass: float | None,
        seed: int,
        executor: Executor,
        budget: float | None = None,
        other: Gait | None = None,
        acts: Sequence[Act] = (),
    ) -> None:
        """mass: of the body [kg] as it was given, None from its height. seed: of the tries. other:
        a faster Gait that it goes over to. acts: what it tries to perform. The rest is as Polled
        has it. Raises MotionError for a clip without a cycle."""
        super().__init__(executor, budget)
        self.cycle = find_cycle(character, motion)
        self._character, self._motion, self._mass, self._seed = character, motion, mass, seed
        walk = Walk(self.cycle, _SECONDS)
        self.speed = walk.speed(motion.rate)
        self._other, self._acts, self.acts = other, tuple(acts), tuple[Act, ...]()
        runs = walk.flies(character, motion) or (other is not None and other.flies)
        self._helps = RUN_HELPS if runs else (0.0,)
        self._goal = self.speed if other is None else other.speed
        self.outside_help = 0.0
        slower = [share * self.speed for share in SLOWER]
        faster = [share * self.speed for share in FASTER]
        if other is not None:
            faster = [self.speed + share * (other.speed - self.speed) for share in OVER]
            faster += [share * other.speed for share in BEYOND]
        self._ways = slower, faster
        self._gains = Gains.default(character, walking=True).as_dict()
        self._found: dict[float, Pace] = {}
        self._begin()

    @property
    def paces(self) -> tuple[Pace, ...]:
        """Those that stood in all tries, from the clip's own outwards, rising."""
        slower, faster = self._ways
        down = [self._found.get(speed) for speed in (self.speed, *slower)]
        while down and down[0] is not None and down[0].fell:
            del down[0]
        up = [self._found.get(speed) for speed in faster] if len(down) > len(slower) else []
        low = _kept(down, -1)
        high = _kept([*low[:1], *up], 1)
        return tuple(sorted({*low, *high}, key=lambda pace: pace.told))

    def _steps(self) -> Plan:
        unhelped: dict[float, Pace] = {}
        for share in self._helps:
            self.outside_help, self._found = share, {}
            yield from self._tried([self.speed])
            while speeds := self._next():
                yield from self._tried(speeds)
            unhelped = unhelped or self._found
            if self.paces and self.paces[-1].told >= self._goal:
                break
        else:  # more help has not made it faster
            self.outside_help, self._found = 0.0, unhelped
        left = self._acts if self.paces else ()
        for share in HELPS:
            acts = [replace(act, outside_help=max(share, act.outside_help)) for act in left]
            items = [(act, number) for act in acts for number in range(ACT_TRIES)]
            if not items:
                break
            results = yield items
            tries = zip(items, results, strict=True)
            fell = [act for (act, _), one in tries if one["reached"] is None]
            self.acts += tuple(act for act in acts if act not in fell)
            left = tuple(act for act in acts if act in fell)
        return "done"

    def _next(self) -> list[float]:
        """The speeds to try now: the next one on each way that has not ended."""
        kept, found = {pace.told for pace in self.paces}, []
        for number, way in enumerate(self._ways):
            tried = [speed for speed in way if speed in self._found]
            last = tried[-1] if tried else self.speed
            goes_on = last in kept or (number == 0 and not kept)
            if goes_on and len(tried) < len(way):
                found.append(way[len(tried)])
        return found

    def _tried(self, speeds: Sequence[float]) -> Plan:
        """Try speeds [m/s]."""
        items = [(speed, number) for speed in speeds for number in range(TRIES)]
        results = yield items
        for speed in speeds:
            own = [one for (of, _), one in zip(items, results, strict=True) if of == speed]
            stood = [one["reached"] for one in own if one["reached"] is not None]
            reached = float(np.mean(stood)) if stood else 0.0
            self._found[speed] = Pace(speed, reached, TRIES, TRIES - len(stood))
        return ""

    def _task(self, item: tuple[float | Act, int]) -> Task:
        what, number = item
        if isinstance(what, Act):
            return self._performing(what, number)
        return self._trying(what, _walking(what), _SECONDS, number)

    def _performing(self, act: Act, number: int) -> Task:
        """A try of an act: at its own speed, or that which is nearest to it, at another moment of
        the cycle each time."""
        told = min(self.paces, key=lambda pace: abs(pace.told - self.speed)).told
        at = _BEGINS + number / ACT_TRIES * self.cycle.period / self._motion.rate
        commands = Command(0.0, speed=told), Command(at, act=act.name)
        return self._trying(told, commands, _ENDS + 2 * act.seconds, number, (act,))

    def _trying(
        self,
        told: float,
        commands: tuple[Command, ...],
        seconds: float,
        number: int,
        acts: tuple[Act, ...] = (),
    ) -> Task:
        """Do what is commanded for so long [s], at most at a speed [m/s]."""
        # Speeds go to the carrier as they are told.
        trim = ((min(told, self.speed) / 2,) * 2, (2 * max(told, self.speed),) * 2)
        walk = Walk(self.cycle, seconds, commands=commands, trim=trim, other=self._other, acts=acts)
        endless = walk.motion(self._character, self._motion)
        settings = Settings(noise=NOISE, outside_help=self.outside_help)
        problem = Problem(endless, self._mass, settings)
        return walked, problem.to_bytes(), self._gains, TRIES * self._seed + number + 1

    def _note(self, results: list[Result]) -> None:
        pass


def _walking(speed: float) -> tuple[Command, ...]:
    """What is commanded in a try of a speed [m/s]."""
    return (
        Command(0.0, speed=speed),
        Command(_TURNS, heading=pi / 2),
        Command(_BACK, heading=0.0),
        Command(_STOPS, stands=True),
        Command(_GOES, stands=False),
    )


def _kept(way: Sequence[Pace | None], sign: int) -> list[Pace]:
    """Those at the beginning of a way that stood, each slower than the one before (sign -1), or
    faster (1)."""
    kept: list[Pace] = []
    for one in way:
        if one is None or one.fell or (kept and sign * (one.reached - kept[-1].reached) <= 0):
            break
        kept.append(one)
    return kept


def walked(payload: bytes, gains: dict[str, object], seed: int) -> Result:
    """Walk once by the commands of a try.

    payload: of Problem.to_bytes. gains: of Gains.as_dict. seed: of the motor noise. Returns
    {"reached": speed [m/s], None if it fell}; {"error": …} as `trial.evaluate`.
    """
    try:
        problem = problem_of(payload)
        body, motion = problem.character, problem.motion
        simulation = problem.simulation(Gains.from_dict(gains, body, "candidate"), seed)
        try:
            stood = simulation.run().success
        except SimulationError:  # it was thrown about
            stood = False
        if not stood:
            return {"reached": None}
        assert isinstance(motion, Endless)
        return {"reached": _reached(motion, simulation.recording.com)}
    except PoiseError as error:
        return {"error": [type(error).__name__, str(error)]}


def _reached(motion: Endless, com: np.ndarray) -> float:
    """The speed [m/s] of a centre of mass (n, 3) [m] before the first turn."""
    cycles = motion.walk.journey(motion.rate).cycles
    last = round(_TURNS * motion.rate)
    first = int(np.searchsorted(cycles, cycles[last] - _ROUNDS))
    return float(np.hypot(*(com[last] - com[first])[:2])) / (last - first) * motion.rate

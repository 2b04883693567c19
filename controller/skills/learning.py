# SPDX-License-Identifier: GPL-3.0-or-later
"""How a clip is learned: it is walked at more and more speeds, slower and faster than its own, for
as long as it stands.

    learning = Learning(character, motion, mass, seed, executor)
    while not learning.poll(): …
    learning.paces

In each try the body turns to its left and back, stops and walks again, under motor noise. What it
reaches is counted before all that. Tries depend on their seeds alone.
"""

from collections.abc import Sequence
from concurrent.futures import Executor
from math import pi

import numpy as np

from ..body.character import Character
from ..exceptions import PoiseError, SimulationError
from ..gains.gains import Gains
from ..geometry.motion import Motion
from ..reference.commands import Command
from ..reference.gait import Endless, Walk, find_cycle
from ..search.polling import Plan, Polled, Task
from ..search.trial import NOISE, Problem, Result, problem_of
from ..simulation.simulation import Settings
from .skill_set import Pace

#: Speeds that are tried, as shares of the clip's own; the next one only if the one before stood.
SLOWER, FASTER = (0.85, 0.7, 0.55, 0.4), (1.1, 1.2, 1.3, 1.4, 1.5)
TRIES = 2  # of each
#: A try [s]: when it turns by 90°, back, stops and goes again, and how long it is.
_TURNS, _BACK, _STOPS, _GOES, _SECONDS = 8.0, 12.0, 16.0, 22.0, 28.0
_ROUNDS = 3  # over which speed is measured, before the first turn


class Learning(Polled):
    """The paces of a clip, found one after the other.

    cycle: the Cycle that is walked. speed: of it [m/s]. paces: Pace each that stood in all tries,
    rising; complete when `ended` is "done".
    """

    def __init__(
        self,
        character: Character,
        motion: Motion,
        mass: float | None,
        seed: int,
        executor: Executor,
        budget: float | None = None,
    ) -> None:
        """mass: of the body [kg] as it was given, None from its height. seed: of the tries. The
        rest is as Polled has it. Raises MotionError for a clip without a cycle."""
        super().__init__(executor, budget)
        self.cycle = find_cycle(character, motion)
        self._character, self._motion, self._mass, self._seed = character, motion, mass, seed
        self.speed = Walk(self.cycle, _SECONDS).speed(motion.rate)
        self._gains = Gains.default(character, walking=True).as_dict()
        self._found: dict[float, Pace] = {}
        self._begin()

    @property
    def paces(self) -> tuple[Pace, ...]:
        """Those that stood in all tries, from the clip's own outwards, rising."""
        if not self._stood(1.0):
            return ()
        rising = [self._found[1.0]]
        for shares, sign in ((SLOWER, -1), (FASTER, 1)):
            last = self._found[1.0]
            for one in map(self._found.get, shares):
                if one is None or one.fell or sign * (one.reached - last.reached) <= 0:
                    break
                rising.append(one)
                last = one
        return tuple(sorted(rising, key=lambda one: one.told))

    def _steps(self) -> Plan:
        yield from self._tried([1.0])
        for number in range(max(len(SLOWER), len(FASTER))):
            shares = [
                way[number]
                for way in (SLOWER, FASTER)
                if number < len(way) and all(map(self._stood, (1.0, *way[:number])))
            ]
            if shares:
                yield from self._tried(shares)
        return "done"

    def _stood(self, share: float) -> bool:
        """Whether it was walked at this share of the clip's own speed, and always stood."""
        return share in self._found and not self._found[share].fell

    def _tried(self, shares: Sequence[float]) -> Plan:
        """Try these shares of the clip's own speed."""
        items = [(share, number) for share in shares for number in range(TRIES)]
        results = yield items
        for share in shares:
            own = [one for (of, _), one in zip(items, results, strict=True) if of == share]
            stood = [one["reached"] for one in own if one["reached"] is not None]
            reached = float(np.mean(stood)) if stood else 0.0
            fell = TRIES - len(stood)
            self._found[share] = Pace(share * self.speed, reached, TRIES, fell)
        return ""

    def _task(self, item: tuple[float, int]) -> Task:
        share, number = item
        told = share * self.speed
        commands = (
            Command(0.0, speed=told),
            Command(_TURNS, heading=pi / 2),
            Command(_BACK, heading=0.0),
            Command(_STOPS, stands=True),
            Command(_GOES, stands=False),
        )
        # Speeds go to the carrier as they are told.
        trim = ((min(told, self.speed) / 2,) * 2, (2 * max(told, self.speed),) * 2)
        walk = Walk(self.cycle, _SECONDS, commands=commands, trim=trim)
        endless = walk.motion(self._character, self._motion)
        problem = Problem(endless, self._mass, Settings(noise=NOISE))
        return walked, problem.to_bytes(), self._gains, TRIES * self._seed + number + 1

    def _note(self, results: list[Result]) -> None:
        pass


def walked(payload: bytes, gains: dict[str, object], seed: int) -> Result:
    """Walk once by the commands of a try.

    payload: of Problem.to_bytes. gains: of Gains.as_dict. seed: of the motor noise. Returns
    {"reached": speed [m/s], None if it fell}; {"error": …} as `trial.evaluate`.
    """
    try:
        problem = problem_of(payload)
        body, motion = problem.character, problem.motion
        simulation = problem.simulation(Gains.from_dict(gains, body, "the gains"), seed)
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

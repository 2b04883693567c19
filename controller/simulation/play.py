# SPDX-License-Identifier: GPL-3.0-or-later
"""A character that is played: it is told how to walk, and pushed, while it walks.

    walk = Walk(cycle, 1.0, commands=STANDS, played=True)
    play = Play(Simulation(character, walk.motion(character, clip)))
    play.wants(speed=1.2, heading=0.5)
    while play.goes_on:
        play.advance()
        draw(play.centres[play.sample], play.turns[play.sample])
    again = play.walk

What is told takes effect a little later, once what it makes of the walk is known: see
`reference.played`. A Simulation of the walk `again` comes to the same poses, to the last bit.
"""

import copy
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from math import atan2, ceil, degrees, floor, hypot, radians, sqrt
from typing import Any, NamedTuple

import numpy as np

from ..exceptions import demand
from ..geometry.rotations import matrix_from_quaternion, near
from ..ranges import RANGES
from ..reference.commands import GATHERING, SLOW, Command, Meant, Shove, Toss, meant
from ..reference.gait import Endless, Walk
from ..reference.played import Window, sample_of
from .scenario import Scenario, Throw, shoves, tosses
from .simulation import Moment, Simulation

#: How it begins.
STANDS = (Command(0.0, stands=True),)

#: Of the time that a window takes to be made, how long a command waits for it; and at least and at
#: most [s]. By judgement: who plays must not wait, and each command delays all that come after.
_PATIENCE, _SOONEST, _LATEST = 1.5, 0.05, 0.5
#: A body whose centre of mass is lower than this share of where it began, or whose pelvis is no
#: more upright than this cosine, has fallen. By judgement.
_LOW, _UPRIGHT = 0.75, 0.5
#: Who goes to a place stands so far behind where it walks slowly [m], and begins to slow down so
#: much [s] after it is told to; nearer to it than this [m] it gathers no speed; it turns round as
#: slowly as it can where the place is farther aside than this [rad]; and is led anew where its
#: heading is this much off [rad]. By trial.
_STOPS, _HESITATES, _NEAR, _ASIDE, _STRAYS = 0.6, 0.2, 1.5, radians(20), radians(4)
#: Along a way it heads for what of it is so far ahead [m]: by trial, the least that does not sway.
_AHEAD = 1.2
#: [m/s] of any segment: thrown about.
_WILD = 15.0
#: [s] over which `pace` is the mean.
_PACE = 0.6
#: So many balls can be thrown at who is played: the engine must know of all from the beginning, to
#: go back to where some were not thrown yet. Until they are they start then [s].
BALLS, _NEVER = 12, 1e6


class _Taken(NamedTuple):
    """Where a window was taken, and with what: the noise that is to come."""

    window: Window
    moment: Moment
    noise: Any


class Play:
    """A character that walks as it is told while it does.

    sample: of its last pose. commands: all that it was told, and pushed, each at the time at which
    it takes effect. centres, turns, touches: (S, 3) [m] and (S, 4) of all segments, and (2,)
    whether either foot touches the floor, by sample. fell: whether it has fallen, after which it
    does not go on. speed [m/s], heading [rad], stands: what it is told now, effective or not.
    slowest, fastest [m/s]: what it can be told. goal: (x, y) [m] where it is to go now, None for
    nowhere. yaw: heading in which it begins, in the world [rad].
    """

    def __init__(self, simulation: Simulation) -> None:
        """simulation: of a walk that is played, as long as it likes, whose commands are those that
        it begins with. It must not have begun. What can be thrown is the last of its things, as
        `balls_of` gives them. Raises SettingsError for what moves around it, whose ways end with
        the simulation, and for what holds it."""
        motion, scenario = simulation.motion, simulation.scenario
        assert isinstance(motion, Endless)
        _check(scenario, bool(simulation.strength))
        self.character, self.rate = simulation.character, motion.rate
        self._simulation, self._scenario = simulation, scenario
        self._balls = tuple(one for one in scenario.things if one.start == _NEVER)
        self._others = scenario.things[: len(scenario.things) - len(self._balls)]
        self._walk, self.commands = motion.walk, motion.walk.commands
        self.yaw = motion.heading(self.character)
        self.speed, self.heading, self.stands = self._told()
        self.goal: tuple[float, float] | None = None
        self._way: list[tuple[float, float]] = []  # what follows the goal
        self.slowest, self.fastest = self._walk.speeds(self.rate)
        began = time.perf_counter()
        window = simulation.window(0)
        self._learn_delay(time.perf_counter() - began)
        simulation.begin(window)
        self._thread = ThreadPoolExecutor(1, "poise-play")
        #: The window that is in the making: where it begins, what is known there, and it.
        self._coming: tuple[int, tuple[Command, ...], Future[Window]] | None = None
        self._window, self.sample, self.fell = window, 0, False
        self._taken = [self._noted(window, simulation.take(window))]
        self.centres: list[np.ndarray] = []
        self.turns: list[np.ndarray] = []
        self.touches: list[tuple[bool, bool]] = []
        self._keep()
        self._height = float(self._com(0)[2])

    @property
    def seconds(self) -> float:
        """How long it has gone on [s]."""
        return self.sample / self.rate

    @property
    def goes_on(self) -> bool:
        """Whether there is more to come."""
        return not self.fell and self.seconds + 1 / self.rate <= RANGES["walk"].high

    @property
    def ready(self) -> bool:
        """Whether `advance` need not wait for what a command makes of the walk."""
        if self.sample < self._next():
            return True
        self._prepare()
        return self._coming is not None and self._coming[2].done()

    @property
    def walk(self) -> Walk:
        """What was played, to be done again: at least as long as the shortest walk."""
        seconds = max(self.seconds, RANGES["walk"].low)
        return replace(self._walk, seconds=seconds, commands=self.commands)

    @property
    def pace(self) -> float:
        """How fast it really goes [m/s]."""
        first = max(0, self.sample - round(_PACE * self.rate))
        if first == self.sample:
            return 0.0
        x, y, _ = self._com(self.sample) - self._com(first)
        return float(np.hypot(x, y)) / (self.sample - first) * self.rate

    def wants(
        self,
        speed: float | None = None,
        heading: float | None = None,
        stands: bool | None = None,
    ) -> None:
        """Tell it to go at a speed [m/s], within what it can, in a heading [rad], to stand, or
        not to. What is None stays."""
        self.goal, self._way = None, []
        if speed is not None:
            self.speed = min(max(speed, self.slowest), self.fastest)
        if heading is not None:
            self.heading = _written(heading)
        if stands is not None:
            self.stands = stands
        self._tell()

    def goes_to(self, goal: Sequence[float]) -> None:
        """Tell it to go to a place (x, y) [m] in the world, as fast as it is told now, and to stand
        there; what is told later comes first."""
        self.goes_along([goal])

    def goes_along(self, way: Sequence[Sequence[float]]) -> None:
        """The same of a way through places (x, y) [m], which it cuts a little."""
        first, *rest = ((float(place[0]), float(place[1])) for place in way)
        self.goal, self._way, self._cruise = first, rest, self.speed

    def push(
        self, newtons: float, direction: float, seconds: float = 0.3, segment: str = "trunk"
    ) -> None:
        """Push it now, with a force [N] towards a direction [rad], counter-clockwise from above, 0
        where the walk began. Raises SettingsError."""
        push = Shove(round(newtons, 1), _written(direction), seconds, segment)
        command = Command(self.seconds, push=push)
        made = replace(self._scenario, pushes=shoves((command,), self.yaw))
        made.check(float(self.character.masses.sum()))
        self._add(command)
        self._tell_blows()

    def throw(self, direction: float) -> None:
        """Throw a ball at its neck, which flies in a direction [rad] as those of `push`. Raises
        SettingsError if all have been thrown."""
        thrown = tosses(self.commands, self.yaw)
        demand(
            len(thrown) < len(self._balls),
            f"All {len(self._balls)} balls have been thrown: go back, or keep this.",
        )
        toss = Toss(self._balls[0].mass, _written(direction))
        self._add(Command(self.seconds, toss=toss))
        self._tell_blows()

    @property
    def balls(self) -> tuple[tuple[np.ndarray, float], ...]:
        """Where the balls are that have been thrown, (3,) [m], and their radii [m]."""
        places, _ = self._simulation.world.things()
        radii = (ball.solid.size[0] for ball in self._balls)
        pairs = zip(places[len(self._others) :], radii, strict=True)
        return tuple((place, radius) for place, radius in pairs if np.isfinite(place).all())

    def advance(self) -> None:
        """Go on to the next sample."""
        if self.goal is not None:
            self._follow()
        now, following = self.sample, self._next()
        if now == following:
            window = self._await()
            self._taken.append(self._noted(window, self._simulation.take(window)))
            self._window, self._coming = window, None
            self._tell()
        elif following - now <= self._delay:
            self._prepare()
        self._simulation.advance(now + 1)
        self.sample += 1
        self._keep()

    def rewind(self, sample: int) -> None:
        """Return to where a window was taken before a sample, or at the beginning: from there it
        does the same again until that sample, and then goes on as if nothing had come after."""
        last = max(sample, 1)
        self.commands = tuple(one for one in self.commands if sample_of(one, self.rate) < last)
        while self._taken[-1].window.sample >= last:
            self._simulation.forget(self._taken.pop().moment)
        window, moment, noise = self._taken[-1]
        self._simulation.retake(window, moment)
        self._simulation.controller.random.bit_generator.state = copy.deepcopy(noise)
        self._tell_blows()
        self._window, self._coming, self.fell = window, None, False
        self.goal, self._way = None, []
        self.sample = window.sample
        for values in (self.centres, self.turns, self.touches):
            del values[self.sample + 1 :]
        self.speed, self.heading, self.stands = self._told()

    def close(self) -> None:
        """Free the world."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._simulation.close()

    # --- What is told -----------------------------------------------------------------------------

    def _told(self) -> Meant:
        """What it is commanded at last."""
        return meant(self.commands, self._walk.speed(self.rate))[-1]

    @property
    def _last(self) -> int:
        """The sample at which the last command of the walk takes effect."""
        return max(sample_of(one, self.rate) for one in self.commands if one.walks)

    def _tell(self) -> None:
        """Command what is wanted, unless another command is still to take effect."""
        speed, heading, stands = self._told()
        wanted = self.speed, self.heading, self.stands
        if wanted == (speed, heading, stands) or self._last > self.sample:
            return
        self._add(
            Command(
                (self.sample + self._delay) / self.rate,
                None if self.stands or (self.speed == speed and not stands) else self.speed,
                None if self.heading == heading else self.heading,
                self.stands if self.stands or self.stands != stands else None,
            )
        )
        self._prepare()

    def _follow(self) -> None:
        """Go on along the way."""
        assert self.goal is not None
        com, way = self._com(self.sample), self._way
        while way and hypot(self.goal[0] - com[0], self.goal[1] - com[1]) < _AHEAD:
            self.goal = way.pop(0)
        self._lead(*self.goal)

    def _lead(self, x: float, y: float) -> None:
        """Tell it what brings it to a place [m], and lets it stand there if that is the last."""
        com, ahead = self._com(self.sample), matrix_from_quaternion(self.turns[-1][0])[:, 0]
        away = hypot(x - com[0], y - com[1])
        there = near(atan2(y - com[1], x - com[0]) - self.yaw, self.heading)
        off = near(there + self.yaw - atan2(ahead[1], ahead[0]), 0.0)
        goes_there = abs(off) < _ASIDE
        waits = (max(self._last - self.sample, 0) + self._delay) / self.rate + _HESITATES
        pace = self.pace + min(max(self.speed - self.pace, 0.0), GATHERING * (waits + _PACE / 2))
        slows = pace * waits + max(0.0, pace**2 - SLOW**2) / (2 * GATHERING)
        goal, way, cruise = self.goal, self._way, self._cruise
        # What is left of the way, as the crow flies from one place to the next.
        left = away + sum(hypot(a[0] - b[0], a[1] - b[1]) for a, b in pairwise(((x, y), *way)))
        if left < _STOPS * min(1.0, pace / SLOW) + slows * goes_there:
            self.wants(speed=cruise, stands=True)
            return
        # No faster than it can stop there; and in a small circle, if it is to turn round.
        able = SLOW**2 + 2 * GATHERING * max(0.0, left - _NEAR)
        fastest = min(cruise, floor(10 * sqrt(able)) / 10)
        self.wants(
            speed=fastest if goes_there else self.slowest,
            heading=there if abs(there - self.heading) > _STRAYS else None,
            stands=False,
        )
        self.goal, self._way = goal, way

    def _add(self, command: Command) -> None:
        self.commands = tuple(sorted((*self.commands, command), key=lambda one: one.at))

    def _tell_blows(self) -> None:
        """Have the world know all pushes, and all that is thrown."""
        made, thrown = shoves(self.commands, self.yaw), tosses(self.commands, self.yaw)
        things = *self._others, *thrown, *self._balls[len(thrown) :]
        world, pushes = self._simulation.world, (*self._scenario.pushes, *made)
        world.scenario = replace(world.scenario, pushes=pushes, things=things)

    # --- Windows ----------------------------------------------------------------------------------

    def _next(self) -> int:
        """The sample at which the next window begins."""
        return self._window.next(self.commands, self.rate)

    def _prepare(self) -> None:
        """Begin to make the window that comes next."""
        at = self._next()
        known = tuple(one for one in self.commands if one.walks and sample_of(one, self.rate) <= at)
        if self._coming is None or self._coming[:2] != (at, known):
            if self._coming is not None:
                self._coming[2].cancel()
            self._coming = at, known, self._thread.submit(self._timed, at, known)

    def _await(self) -> Window:
        """The window that begins here, when it is made."""
        self._prepare()
        assert self._coming is not None
        return self._coming[2].result()

    def _timed(self, sample: int, commands: tuple[Command, ...]) -> Window:
        began = time.perf_counter()
        window = self._simulation.window(sample, replace(self._walk, commands=commands))
        self._learn_delay(time.perf_counter() - began)
        return window

    def _learn_delay(self, seconds: float) -> None:
        """Take down how long a window takes to be made: so long commands wait, in samples."""
        waits = min(max(_PATIENCE * seconds, _SOONEST), _LATEST)
        self._delay = ceil(waits * self.rate)

    def _noted(self, window: Window, moment: Moment) -> _Taken:
        return _Taken(
            window, moment, copy.deepcopy(self._simulation.controller.random.bit_generator.state)
        )

    # --- Where it is ------------------------------------------------------------------------------

    def _keep(self) -> None:
        """Take down where the body is, and whether it has fallen."""
        seen = self._simulation.observe(self.sample)
        self.centres.append(np.array(seen.centres, float))
        self.turns.append(np.array(seen.turns, float))
        left, right = seen.contacts.touch
        self.touches.append((bool(left), bool(right)))
        if self.sample == 0:
            return
        moved = np.abs(self.centres[-1] - self.centres[-2]).max() * self.rate
        upright = matrix_from_quaternion(self.turns[-1][0])[2, 2]
        stands = self._com(self.sample)[2] > _LOW * self._height and upright > _UPRIGHT
        self.fell = not (stands and moved < _WILD)

    def _com(self, sample: int) -> np.ndarray:
        """The centre of mass (3,) [m] at a sample."""
        return self.centres[sample].T @ self.character.masses / self.character.mass


def balls_of(mass: float) -> tuple[Throw, ...]:
    """What can be thrown at who is played: balls of a mass [kg]."""
    return tuple(Throw(mass, _NEVER, 0.0, name="Ball") for _ in range(BALLS))


def _check(scenario: Scenario, strength: bool) -> None:
    """Raise SettingsError for what is only known for the frames of a clip."""
    for one in (*scenario.colliders, *scenario.limbs):
        demand(
            not one.moves,
            f"'{one.name}' moves by itself, and nobody knows how long who plays goes on: hide it, "
            "or let it be no collider. What stands still may stay.",
        )
    demand(
        not scenario.holds,
        "Holds begin and end at frames, and nobody knows how long who plays goes on: hide or "
        "remove them.",
    )
    demand(
        not strength,
        "Strength changes at frames, and nobody knows how long who plays goes on: set all strength "
        "to 1, and remove its keys.",
    )


def _written(angle: float) -> float:
    """An angle [rad] that is the same again when a script's degrees tell it."""
    return radians(round(degrees(angle), 1))

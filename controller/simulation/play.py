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
`reference.played`. A Simulation of the walk `again` comes to the same poses, to the last bit. Who
falls, and is to get up, then goes on as it is told.
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

from ..body.character import Character
from ..exceptions import demand
from ..geometry.rotations import matrix_from_quaternion, near
from ..ranges import RANGES
from ..reference.commands import GATHERING, SIDEWAYS, SLOW, Command, Meant, Shove, Toss, meant
from ..reference.gait import Endless, Walk
from ..reference.played import Part, Window, sample_of
from ..reference.state_machine import FALL, GET_UP, State, StateMachine, runs_from
from .recording import Observation
from .scenario import Scenario, Throw, shoves, tosses
from .simulation import Footing, Moment, Simulation

#: How it begins.
STANDS = (Command(0.0, stands=True),)

#: Of the time that a window takes to be made, how long a command waits for it; and at least and at
#: most [s]. By judgement: who plays must not wait, and each command delays all that come after.
_PATIENCE, _SOONEST, _LATEST = 1.5, 0.05, 0.5
#: Who goes to a place stands so far behind where it walks slowly [m], and begins to slow down so
#: much [s] after it is told to; nearer to it than this [m] it gathers no speed; it turns round as
#: slowly as it can where the place is farther aside than this [rad]; and is led anew where its
#: heading is this much off [rad]. By trial.
_STOPS, _HESITATES, _NEAR, _ASIDE, _STRAYS = 0.6, 0.2, 1.5, radians(20), radians(4)
#: Along a way it heads for what of it is so far ahead [m]: by trial, the least that does not sway.
_AHEAD = 1.2
#: [s] over which `pace` is the mean.
_PACE = 0.6
#: So many balls can be thrown at who is played: the engine must know of all from the beginning, to
#: go back to where some were not thrown yet. Until they are they start then [s].
BALLS, _NEVER = 12, 1e6


class _Taken(NamedTuple):
    """Where a window was taken, and with what: the noise that is to come."""

    window: Window
    moment: Moment
    footing: Footing
    noise: Any


class _Seen:
    """How it has moved: a simulation.Log that does not know how long it will be.

    body_positions, body_rotations, touches: (S, 3) [m] and (S, 4) of all segments, and (2,) whether
    either foot touches the floor, by sample. com: (3,) [m] by sample.
    """

    hangs, deepest = False, 0.0
    swing: int | None = None
    grounds: Any = None
    turn: np.ndarray | None = None

    def __init__(self, character: Character) -> None:
        self._shares = character.masses / character.mass
        self.body_positions: list[np.ndarray] = []
        self.body_rotations: list[np.ndarray] = []
        self.touches: list[tuple[bool, bool]] = []
        self.com: list[np.ndarray] = []
        #: What it is in who does not stand.
        self.down = FALL

    def __len__(self) -> int:
        return len(self.com)

    def add(self, sample: int, seen: Observation) -> bool:
        """As simulation.Log has it."""
        assert sample == len(self)
        self.body_positions.append(np.array(seen.centres, float))
        self.body_rotations.append(np.array(seen.turns, float))
        left, right = seen.contacts.touch
        self.touches.append((bool(left), bool(right)))
        self.com.append(self._shares @ seen.centres)
        return True

    def keep(self, count: int) -> None:
        """As simulation.Log has it."""
        for values in (self.body_positions, self.body_rotations, self.touches, self.com):
            del values[count:]

    def fall(self) -> None:
        """As simulation.Log has it."""
        self.down = FALL

    def rise(self, way: str) -> None:
        """As simulation.Log has it, and the next three: what nobody asks."""
        self.down = GET_UP

    def stands(self, part: Part | None, shown: np.ndarray | None) -> None: ...

    def lies(self, is_kept_down: bool) -> None: ...

    def add_help(self, sample: int, wrench: np.ndarray, rises: bool) -> None: ...


class Play:
    """A character that walks as it is told while it does.

    sample: of its last pose. commands: all that it was told, and pushed, each at the time at which
    it takes effect. centres, turns, touches: (S, 3) [m] and (S, 4) of all segments, and (2,)
    whether either foot touches the floor, by sample. fell: whether it has fallen, and does not go
    on after that. speed [m/s], heading [rad], stands, aside [m/s]: what it is told now, effective
    or not. slowest, fastest [m/s]: what it can be told. goal: (x, y) [m] where it is to go now,
    None for nowhere. yaw: heading in which it begins, in the world [rad].
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
        self.speed, self.heading, self.stands, self.aside = self._told()
        self.goal: tuple[float, float] | None = None
        self._way: list[tuple[float, float]] = []  # what follows the goal
        self.slowest, self.fastest = self._walk.speeds(self.rate)
        began = time.perf_counter()
        window = simulation.window(0)
        self._learn_delay(time.perf_counter() - began)
        simulation.begin(window)
        if simulation.settings.get_up:
            simulation.rising_to(0)  # nobody is to wait for it where it gets up
        self._thread = ThreadPoolExecutor(1, "poise-play")
        #: The window that is in the making: where it begins, what is known there, and it.
        self._coming: tuple[int, tuple[Command, ...], Future[Window]] | None = None
        self._seen = seen = _Seen(self.character)
        self.centres, self.turns = seen.body_positions, seen.body_rotations
        self.touches = seen.touches
        simulation.log, simulation.guide = seen, self
        simulation.count = 1 + round(RANGES["walk"].high * self.rate)
        self._taken: list[_Taken] = []
        self.fell = False
        self.took(window, simulation.take(window))
        seen.add(0, simulation.observe(0))
        self._going = simulation.go_on(0)

    @property
    def sample(self) -> int:
        """Of its last pose."""
        return max(0, len(self._seen) - 1)

    @property
    def is_down(self) -> bool:
        """Whether it falls, lies or gets up, and will go on as it is told once it stands."""
        return self._simulation.is_down and not self.fell

    @property
    def rises(self) -> bool:
        """Whether it tries to get up where it falls."""
        return self._simulation.rises

    @property
    def machine(self) -> StateMachine:
        """What it can be in, and what follows what."""
        walk = self._walk
        runs = runs_from(walk.speed(self.rate), walk.other, walk.trim)
        gets_up = self._simulation.settings.get_up
        return StateMachine.of(self.slowest, self.fastest, runs, self.acts, gets_up)

    @property
    def state(self) -> State:
        """What it is in now."""
        if self.is_down or self.fell:
            return self._seen.down
        return self._window.state(self.sample)

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
        if self.is_down or self.sample < self.next(self._window):
            return True
        self._prepare()
        return self._coming is not None and self._coming[2].done()

    @property
    def walk(self) -> Walk:
        """What was played, to be done again: at least as long as the shortest walk."""
        seconds = max(self.seconds, RANGES["walk"].low)
        return replace(self._walk, seconds=seconds, commands=self.commands)

    @property
    def way(self) -> tuple[float, float]:
        """How fast it is to get on [m/s], and which way [rad], as headings are."""
        return Meant(self.speed, self.heading, self.stands, self.aside).way

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
        aside: float | None = None,
    ) -> None:
        """Tell it to go at a speed [m/s], within what it can, in a heading [rad], to stand, or
        not to, and to its left at a speed [m/s]. What is None stays; who is to stand alone goes
        nowhere."""
        self.goal, self._way = None, []
        if speed is not None:
            self.speed = min(max(speed, self.slowest), self.fastest)
        if heading is not None:
            self.heading = _written(heading)
        if stands is not None:
            self.stands, self.aside = stands, 0.0 if stands else self.aside
        if aside is not None:
            self.aside = min(max(round(aside, 3), -SIDEWAYS), SIDEWAYS)
        self._tell()

    def goes_to(self, goal: Sequence[float]) -> None:
        """Tell it to go to a place (x, y) [m] in the world, as fast as it is told now, and to stand
        there; what is told later comes first."""
        self.goes_along([goal])

    def goes_along(self, way: Sequence[Sequence[float]]) -> None:
        """The same of a way through places (x, y) [m], which it cuts a little."""
        first, *rest = ((float(place[0]), float(place[1])) for place in way)
        self.goal, self._way, self._cruise = first, rest, self.speed
        self.aside = 0.0

    @property
    def acts(self) -> tuple[str, ...]:
        """What it can be told to perform, by name."""
        return tuple(one.name for one in self._walk.acts)

    @property
    def performs(self) -> str | None:
        """The act that it performs, or will as soon as it stands; None for none."""
        return None if self.is_down or self.fell else self._window.act(self.sample)

    def perform(self, act: str) -> None:
        """Tell it to stop, perform one of `acts`, and go on as it is told; what is told meanwhile
        waits for its end. Raises SettingsError for who is down."""
        demand(not self.is_down, f"Nobody performs '{act}' who is down: wait until it is up.")
        self.goal, self._way = None, []
        # After what is still to take effect.
        at = max(self.sample + self._delay, self._last + 1)
        self._add(Command(at / self.rate, act=act))
        self._prepare()

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
        """Go on to the next sample; or to one a little before, where the engine begins to throw it
        about that falls there."""
        if not self.is_down:
            if self.goal is not None:
                self._follow()
            if 0 < self.next(self._window) - self.sample <= self._delay:
                self._prepare()
        for sample in self._going:
            if sample is not None:
                return
        self.fell = True

    def rewind(self, sample: int) -> None:
        """Return to where a window was taken before a sample, or at the beginning: from there it
        does the same again until that sample, and then goes on as if nothing had come after."""
        last = max(sample, 1)
        self.commands = tuple(one for one in self.commands if sample_of(one, self.rate) < last)
        while self._taken[-1].window.sample >= last:
            gone = self._taken.pop()
            gone.footing.world.forget(gone.moment.world)
        window, moment, footing, noise = self._taken[-1]
        simulation = self._simulation
        simulation.stand_in(footing)
        self._tell_blows()
        simulation.retake(window, moment)
        simulation.controller.random.bit_generator.state = copy.deepcopy(noise)
        self._window, self._coming, self.fell = window, None, False
        self.goal, self._way = None, []
        self._seen.keep(window.sample + 1)
        self._going = simulation.go_on(window.sample)
        self.speed, self.heading, self.stands, self.aside = self._told()

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
        speed, heading, stands, aside = self._told()
        wanted = self.speed, self.heading, self.stands, self.aside
        if wanted == (speed, heading, stands, aside) or self._last > self.sample:
            return
        # To stand ends what it was told besides.
        aside = 0.0 if self.stands else aside
        self._add(
            Command(
                (self.sample + self._delay) / self.rate,
                None if self.stands or (self.speed == speed and not stands) else self.speed,
                None if self.heading == heading else self.heading,
                self.stands if self.stands or self.stands != stands else None,
                aside=None if self.aside == aside else self.aside,
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
        pushes, simulation = (*self._scenario.pushes, *made), self._simulation
        for one in (simulation, simulation.world):
            one.scenario = replace(one.scenario, pushes=pushes, things=things)

    # --- Windows ----------------------------------------------------------------------------------

    def next(self, window: Window) -> int:
        """The sample at which another window follows one."""
        return window.next(self.commands, self.rate)

    def took(self, window: Window, moment: Moment) -> None:
        """Learn that a window is performed from a Moment on."""
        noise = copy.deepcopy(self._simulation.controller.random.bit_generator.state)
        self._taken.append(_Taken(window, moment, self._simulation.footing, noise))
        self._window, self._coming = window, None
        if window.sample:
            self._tell()

    def _prepare(self) -> None:
        """Begin to make the window that comes next."""
        at, part = self.next(self._window), self._simulation.part
        known = tuple(one for one in self.commands if one.walks and sample_of(one, self.rate) <= at)
        if self._coming is None or self._coming[:2] != (at, known):
            if self._coming is not None:
                self._coming[2].cancel()
            self._coming = at, known, self._thread.submit(self._timed, at, known, part)

    def window(self, sample: int) -> Window:
        """That which begins at a sample, when it is made."""
        self._prepare()
        assert self._coming is not None
        return self._coming[2].result()

    def _timed(self, sample: int, commands: tuple[Command, ...], part: Part) -> Window:
        began = time.perf_counter()
        window = self._simulation.window(sample, replace(self._walk, commands=commands), part)
        self._learn_delay(time.perf_counter() - began)
        return window

    def _learn_delay(self, seconds: float) -> None:
        """Take down how long a window takes to be made: so long commands wait, in samples."""
        waits = min(max(_PATIENCE * seconds, _SOONEST), _LATEST)
        self._delay = ceil(waits * self.rate)

    # --- Where it is ------------------------------------------------------------------------------

    def _com(self, sample: int) -> np.ndarray:
        """The centre of mass (3,) [m] at a sample."""
        return self._seen.com[sample]


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

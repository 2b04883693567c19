# SPDX-License-Identifier: GPL-3.0-or-later
"""Rectification: a search for the small offsets with which a reference can be performed.

Sok, Kim, Lee, "Simulating Biped Behaviors from Human Motion Data", 2007, section 4, in three
dimensions and with balance control: a window slides over the clip; in it the offsets of the next
nodes are searched for, each candidate being a short simulation from the state that has been
reached; the first node is committed, and the window slides on. Where every candidate falls, it
goes back some nodes and searches harder.

pool = WorkerPool()
search = Rectification(Problem(motion), gains, RectifySettings("draft"), pool)
for node in search.run():
    print(node)
"""

import json
import math
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..exceptions import demand
from ..gains.gains import Gains
from ..geometry.trajectory import Trajectory
from ..options import check_options, option
from ..ranges import RANGES, check_all
from ..simulation.recording import Observation, Recording
from .correction import SCHEMA, SIZE, UNIT, UNITS, Correction
from .optimization import strategy
from .polling import Checkpoint, Plan, Polled, Task, engine
from .rollout import DECAY, FALL, costs, perform, simplex
from .trial import Problem, Result, digest

#: How to search: {value: (name, words)}. Simplex needs SciPy; sampling is as SAMCON has it.
METHODS = {
    "cma": ("Learning", "Learns which changes help (CMA-ES): the best for most clips"),
    "simplex": ("Simplex", "Downhill simplex, as Sok, Kim and Lee had it: slower"),
    "sampling": ("Random", "Random changes, the best of which go on: quick and rough"),
}
# Chosen by trial on captured clips: on a first prototype, which rectified walks, a run, a jog and
# jumping jacks, and then on all of them.
NODE = 0.1  # [s] from one node to the next, about; Sok's go with stance and swing
_BOUND = 4.0  # of the offsets, in units
#: First spread of a window's candidates, in units: small where the last one goes on well, which
#: costs less than this, since what the search adds to a motion that stands is also noise.
_SPREAD, _WIDE, _WELL = 0.15, 0.3, 2.0
#: What a window costs that is good as it is, as those of a walk that balance alone carries: it is
#: not searched if it stays so for twice the horizon.
_GOOD = 0.8
_CHUNK = 4  # candidates in a task
_MOST_TRIES = 6  # going back to a node: then it is stuck
_HARDEST = 2  # tries after which generations and horizon no longer grow
_BACK = 3  # nodes that it goes back at the first try, one more at each other
_ADVICE = {
    "budget": "; resume it, or give it more time",
    "stopped": "; resume it to go on",
    "stuck": "; see what the clip check says of these frames, or take a finer preset",
}
_RECENT = 10  # nodes from which the time left is told


@dataclass(frozen=True)
class Preset:
    """How hard to search: candidates in a generation, generations in a window, nodes that are
    free in a window and that it simulates."""

    population: int
    generations: int
    free: int = 2
    horizon: int = 3


#: By trial: what they take and bring is told in docs/researcher.md.
PRESETS = {"draft": Preset(16, 3), "normal": Preset(16, 6), "fine": Preset(24, 14)}
#: What a second of motion costs by each, about [CPU s]; and in words.
COSTS = {"draft": 10, "normal": 20, "fine": 60}
_QUALITIES = {
    "draft": (
        "Draft",
        "Rough, to see whether it works: about 10 s of a processor for a second of motion",
    ),
    "normal": ("Normal", "For most clips: about 20 s of a processor for a second of motion"),
    "fine": ("Fine", "Closest to the animation: about 60 s of a processor for a second of motion"),
}

# Each method may spend as many simulations on a window as CMA does.


@dataclass(frozen=True)
class RectifySettings:
    """How to rectify. budget: wall time [s] after which it ends with what it has, None without
    end."""

    preset: str = option(
        "normal",
        "Quality",
        "How long to search for each tenth of a second of the motion",
        choices=_QUALITIES,
    )
    method: str = option("cma", "Search", "How corrections are searched", choices=METHODS)
    seed: int = option(
        0,
        "Seed",
        "Number that all that is random is drawn from: the same seed finds the same. Where a clip "
        "gets stuck, another seed may get through",
        RANGES["seed"],
    )
    budget: float | None = None

    def __post_init__(self) -> None:
        check_options(self)
        check_all(self, optional=("budget",))


@dataclass(frozen=True)
class Node:
    """What the search did to commit one node. sample: of the motion, that is reached with it.
    cost: of the best candidate. evaluations: short simulations. tries: times that the search had
    to go back over it before. cpu [s]."""

    sample: int
    cost: float
    evaluations: int
    tries: int
    cpu: float


@dataclass(frozen=True)
class RectifyOutcome:
    """What came of it. correction; recording; ended: "done", "budget", "stopped" or "stuck";
    reached: [s] of the clip; why: a sentence; cpu, wall [s]; evaluations; backtracks; settings."""

    correction: Correction
    recording: Recording
    ended: str
    reached: float
    why: str
    cpu: float
    wall: float
    evaluations: int
    backtracks: int
    settings: RectifySettings

    @property
    def success(self) -> bool:
        """Whether the last frame was reached, and never far from the reference's pose."""
        return self.ended == "done" and self.recording.fell_at is None

    def as_dict(self) -> dict[str, Any]:
        """The outcome as JSON-able data, without the recording."""
        names = ("ended", "reached", "why", "cpu", "wall", "evaluations", "backtracks")
        return {
            **{name: getattr(self, name) for name in names},
            "success": self.success,
            "settings": asdict(self.settings),
            "correction": self.correction.as_dict(),
        }


class _Spent(NamedTuple):
    """What the search had spent when it began with a node: time [s], CPU [s], short simulations."""

    wall: float
    cpu: float
    evaluations: int


#: A part of the search: it yields batches and takes their results.
_Steps = Generator[list[Any], list[Result], None]


class Rectification(Polled):
    """A rectification that goes on, one `poll` after the other.

    recording: of what is committed so far. nodes: Node of each. ended: why it is over, None while
    it is not. warning: a sentence, if something went wrong that does not end it.
    """

    def __init__(
        self,
        problem: Problem,
        gains: Gains,
        settings: RectifySettings,
        executor: Executor,
        checkpoint: str | Path | None = None,
        start: tuple[Correction, int] | None = None,
    ) -> None:
        """problem: trial.Problem. gains: Gains to perform with. executor: takes the simulations;
        it stays the caller's to shut down. checkpoint: path of a file to resume from, if it is
        there, and to keep up to date; `forget` removes it. start: (Correction, sample) of an
        earlier result that is kept up to that sample, to search anew from there.

        Raises CheckpointError if the file belongs to another search, MotionError, SettingsError.
        """
        super().__init__(executor, settings.budget)
        self.problem, self.gains, self.settings = problem, gains, settings
        self._preset = PRESETS[settings.preset]
        self._payload = problem.to_bytes()
        self._gains = gains.as_dict()
        spacing = max(1, round(NODE * problem.motion.rate))
        self._start = np.zeros((1, SIZE))
        if start is not None:
            spacing, self._start = _kept(problem, *start)
        self._spacing = spacing
        simulation = problem.simulation(
            gains, problem.settings.seed, correction=Correction(spacing, self._start)
        )
        self.recording = simulation.recording
        self._last = len(simulation) - 1
        self._count = -(-self._last // spacing)  # of nodes after the first
        self.nodes: list[Node] = []
        self.warning = ""
        self.backtracks = self.evaluations = 0
        self._cpu = 0.0
        self._committed = self._start
        self._farthest = self._start
        #: By node: the window (free, 18) to begin with behind it.
        self._warm: dict[int, np.ndarray] = {}
        #: By node: how often the search has gone back over it.
        self._tries: dict[int, int] = {}
        #: [s] that each of this session's nodes took.
        self._paces: list[float] = []
        facts = "the clip, the gains, the settings or the version"
        self._checkpoint = Checkpoint(checkpoint, "rectification", facts)
        self._checkpoint.restore(self.key, self._restore)
        self._begin()

    # --- Going on -------------------------------------------------------------------------------

    def run(self) -> Iterator[Node]:
        """Go on to the end, and yield each Node as it is committed."""
        return self._run(self.nodes, len(self.nodes))

    def forget(self) -> None:
        """Remove the checkpoint: what was found is in safety, or not wanted."""
        self._checkpoint.forget()

    @property
    def progress(self) -> tuple[int, int]:
        """Samples of the motion that are committed, and how many there are."""
        return len(self.recording), self._last + 1

    def time_left(self) -> float | None:
        """Time to the end [s] at the pace of late, or to the end of the budget; None before there
        is one."""
        paces = self._paces[-_RECENT:]
        if self.ended or not paces:
            return 0.0 if self.ended else None
        left = self._count + 1 - len(self._committed)
        return min(left * sum(paces) / len(paces), self._left())

    @property
    def correction(self) -> Correction:
        """The Correction so far."""
        return Correction(self._spacing, self._committed)

    def outcome(self) -> RectifyOutcome:
        """The RectifyOutcome, or what it would be if it ended now."""
        ended = self.ended or "stopped"
        reached = (len(self.recording) - 1) / self.problem.motion.rate
        return RectifyOutcome(
            correction=self.correction,
            recording=self.recording,
            ended=ended,
            reached=max(0.0, reached),
            why=self._why(ended),
            cpu=self._cpu,
            wall=self.wall,
            evaluations=self.evaluations,
            backtracks=self.backtracks,
            settings=self.settings,
        )

    def target_trajectory(self) -> Trajectory:
        """Trajectory of the rectified target: the reference with the offsets, not simulated."""
        return self.correction.trajectory(self.problem.character, self.problem.reference)

    def _why(self, ended: str) -> str:
        motion = self.problem.motion
        if ended == "done":
            return self._strayed()
        at = max(0, len(self.recording) - 1)
        reasons = {
            "budget": "The budget ran out",
            "stopped": "Stopped",
            "stuck": "No way on was found",
        }
        return (
            f"{reasons[ended]} at {at / motion.rate:.2f} of {motion.duration:.2f} s "
            f"(frame {motion.frame(at):g}){_ADVICE[ended]}."
        )

    def _strayed(self) -> str:
        recording = self.recording
        if recording.fell_at is None:
            return ""
        return (
            f"It reached the last frame, but was more than "
            f"{recording.measures.maxima['pose_error']:g} m away from the animation's pose at "
            f"{recording.fell_at:.2f} s."
        )

    def _task(self, item: tuple[Callable[..., Result], tuple[Any, ...]]) -> Task:
        function, arguments = item
        return function, self._payload, self._gains, self._spacing, *arguments

    def _note(self, results: list[Result]) -> None:
        self._cpu += sum(result["cpu"] for result in results)

    # --- What is searched -----------------------------------------------------------------------

    def _steps(self) -> Plan:
        """All of the search: yields a list of (function, its arguments) to carry out, takes the
        list of their results, and returns why it ended."""
        for count in range(1, len(self._committed) + 1):
            yield from self._perform(self._committed[:count])
        while len(self._committed) <= self._count:
            node = len(self._committed)
            begun = _Spent(self.wall, self._cpu, self.evaluations)
            tries = self._tries.get(node, 0)
            cost, window = yield from self._window(node, tries)
            if cost < FALL:
                yield from self._commit(cost, window, tries, begun)
            elif tries == _MOST_TRIES:
                yield from self._return_to_farthest()
                return "stuck"
            else:
                self._go_back(node, tries)
        return "done"

    def _window(
        self, node: int, tries: int
    ) -> Generator[list[Any], list[Result], tuple[float, np.ndarray]]:
        """The lowest cost found for the nodes from `node` on, and their offsets (free, 18). The
        more often it has been tried, the harder is the search."""
        harder = 1 + min(tries, _HARDEST)
        horizon = self._preset.horizon + min(tries, _HARDEST)
        size, generations = self._preset.population * (1 + tries), self._preset.generations * harder
        begin = np.stack([np.zeros_like(self._warm_start), self._warm_start])
        ahead = yield [(costs, (self._committed, begin, k * horizon)) for k in (1, 2)]
        self.evaluations += len(ahead) * len(begin)
        for window, *own in zip(begin, *(result["costs"] for result in ahead), strict=True):
            if max(own) < _GOOD:
                return own[0], window
        if self.settings.method == "simplex":
            arguments = self._committed, self._warm_start, horizon, size * generations
            (result,) = yield [(simplex, arguments)]
            self.evaluations += result["evaluations"]
            return result["cost"], result["window"]
        random = np.random.default_rng([self.settings.seed, node, tries])
        spread = _SPREAD if ahead[0]["costs"][1] < _WELL else _WIDE
        if self.settings.method == "sampling":
            size, generations = size * generations, 1
        windows_of = _Strategy(self._warm_start, spread * (1 + tries / 2), size, random)
        cost, window = math.inf, self._warm_start
        for _ in range(generations):
            windows = windows_of.ask()
            results = yield [
                (costs, (self._committed, windows[i : i + _CHUNK], horizon))
                for i in range(0, len(windows), _CHUNK)
            ]
            found = [cost for result in results for cost in result["costs"]]
            self.evaluations += len(found)
            windows_of.tell(found)
            least = int(np.argmin(found))
            if found[least] < cost:
                cost, window = found[least], windows[least]
        return cost, window

    @property
    def _warm_start(self) -> np.ndarray:
        """The window (free, 18) to begin with: where the last one would have gone."""
        blank = np.zeros((self._preset.free, SIZE))
        return self._warm.get(len(self._committed), blank)

    def _commit(self, cost: float, window: np.ndarray, tries: int, begun: _Spent) -> _Steps:
        """Take the first node of a window."""
        self._committed = np.vstack([self._committed, window[:1]])
        count = len(self._committed)
        self._warm[count] = np.vstack([window[1:], DECAY * window[-1:]])
        yield from self._perform(self._committed)
        if count > len(self._farthest):
            self._farthest = self._committed
        evaluations, cpu = self.evaluations - begun.evaluations, self._cpu - begun.cpu
        self.nodes.append(Node(len(self.recording) - 1, cost, evaluations, tries, cpu))
        self._paces.append(self.wall - begun.wall)
        self._save()

    def _perform(self, committed: np.ndarray) -> _Steps:
        """Have the last interval of the committed nodes simulated, and take it down."""
        (result,) = yield [(perform, (committed,))]
        for sample in result["samples"]:
            self.recording.add(len(self.recording), Observation.of(sample))

    def _go_back(self, node: int, tries: int) -> None:
        """Take back some nodes, and search harder from there to here."""
        kept = max(len(self._start), node - _BACK - tries)
        for passed in range(kept, node + 1):
            self._tries[passed] = max(self._tries.get(passed, 0), tries + 1)
        self._keep(kept)
        self.backtracks += 1

    def _keep(self, count: int) -> None:
        """Take back all committed nodes but the first `count`."""
        taken_back = len(self._committed) - count
        del self.nodes[len(self.nodes) - taken_back :]
        self._committed = self._committed[:count]
        self.recording.keep(min((count - 1) * self._spacing, self._last) + 1)

    def _return_to_farthest(self) -> _Steps:
        """Go back to the way that led farthest."""
        shared = len(self._start)
        most = len(self._committed)
        while shared < most and (self._committed[shared] == self._farthest[shared]).all():
            shared += 1
        self._keep(shared)
        for count in range(shared + 1, len(self._farthest) + 1):
            self._committed = self._farthest[:count]
            yield from self._perform(self._committed)

    # --- Checkpoint -----------------------------------------------------------------------------

    @property
    def key(self) -> str:
        """A short name of the problem, the gains and the settings that decide what is found."""
        settings = asdict(self.settings)
        del settings["budget"]
        preset, offsets = asdict(self._preset), [SCHEMA, *UNITS]
        begin = self._start.tolist(), self._spacing
        facts = [settings, preset, offsets, self._gains, digest(self._payload), begin, engine()]
        return digest(json.dumps(facts, sort_keys=True).encode())

    def _save(self) -> None:
        """Write where the search is."""
        if self.ended:
            return
        data = {
            "committed": self._committed.tolist(),
            "farthest": self._farthest.tolist(),
            "warm": [[count, window.tolist()] for count, window in self._warm.items()],
            "tries": list(self._tries.items()),
            "nodes": [asdict(node) for node in self.nodes],
            "spent": [self._cpu, self.wall, self.evaluations, self.backtracks],
        }
        self.warning = self._checkpoint.write(self.key, data)

    def _restore(self, data: dict[str, Any]) -> None:
        self._committed = np.array(data["committed"])
        self._farthest = np.array(data["farthest"])
        self._warm = {count: np.array(window) for count, window in data["warm"]}
        self._tries = dict(data["tries"])
        self.nodes = [Node(**node) for node in data["nodes"]]
        self._cpu, self.wall, self.evaluations, self.backtracks = data["spent"]


class _Strategy:
    """CMA-ES over a window's offsets, in units."""

    def __init__(
        self, window: np.ndarray, spread: float, population: int, random: np.random.Generator
    ) -> None:
        """window: (free, 18) to begin with."""
        options = {"popsize": population, "bounds": [-_BOUND, _BOUND]}
        start = np.clip(window / UNIT, -_BOUND, _BOUND).ravel()
        self._strategy = strategy(start, spread, random, options)
        self._shape = window.shape

    def ask(self) -> np.ndarray:
        """(population + 1, free, 18) offsets to try: the mean is the last of them."""
        self._asked = self._strategy.ask()
        points = np.array([*self._asked, np.clip(self._strategy.mean, -_BOUND, _BOUND)])
        return points.reshape(-1, *self._shape) * UNIT

    def tell(self, found: Sequence[float]) -> None:
        """Learn from their costs."""
        self._strategy.tell(self._asked, found[:-1])


def _kept(problem: Problem, correction: Correction, sample: int) -> tuple[int, np.ndarray]:
    """Spacing and offsets of an earlier result up to a sample."""
    demand(
        0 <= sample < len(problem.motion),
        "The frame to rectify from is not in the clip: choose one that is.",
    )
    count = min(sample // correction.spacing + 1, len(correction.offsets))
    return correction.spacing, correction.offsets[:count]

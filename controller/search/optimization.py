# SPDX-License-Identifier: GPL-3.0-or-later
"""CMA-ES finds gains for a clip (SCA12, section 3.3), on any `concurrent.futures.Executor`.

search = Search(Problem(motion), start, SearchSettings(), executor)
for generation in search.run():
    print(generation.best)
search.outcome().gains.save("gains.json")

The search itself is a few milliseconds of arithmetic in each generation: the trials are what
takes time, and all that the executor is given. A trial depends on its gains and its seed alone, and
results are taken in the order of the candidates, so that neither the number of workers nor their
speed has any influence on what is found.
"""

import dataclasses
import importlib
import json
import math
import warnings
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..exceptions import GainsError
from ..gains.gains import LIMIT, WEIGHTS, Gains
from ..geometry.rotations import packed
from ..options import check_options, option
from ..ranges import RANGES, Range
from .polling import Checkpoint, Plan, Polled, Task, engine
from .trial import Problem, Result, describe, digest, evaluate

PARAMETRISATIONS = {
    "factors": ("Factors", "Factors on the gains in use: the quicker way"),
    "ranges": ("Ranges", "The same range for all joints, as in the paper"),
}

#: Gains, and the seed of the noise that they are tried on.
_Trial = tuple[Gains, int]

# What a random number is for.
_MUTATIONS, _TRIALS, _CONFIRMATIONS, _FINAL = range(4)


@dataclass(frozen=True)
class SearchSettings:
    """How to search. budget: wall time [s], None without limit. population: the paper's lambda, of
    which the better half are parents (mu). parametrisation: exp(x) as factors, or the paper's
    linear ranges. spread: standard deviation to start with, in units of x. With workers to spare,
    restarts cost no time. Population and target are SCA12's; `make study` chose parametrisation and
    spread; the others are by judgement."""

    target: float = option(
        1.8,
        "Target Score",
        "The search is over when this score is reached in new tries, with other noise. 1 is to "
        "stay upright to the end of 20 s, 2 to follow without any error. Papers call it the reward",
        RANGES["target"],
        step=0.05,
        digits=2,
    )
    generations: int = option(
        60,
        "Generations",
        "The search is over after so many rounds of candidates",
        Range("number of generations", 1, 100_000),
        most=500,
    )
    budget: float | None = option(
        None,
        "Budget (s)",
        "The search is over after this time [s]",
        RANGES["budget"],
        zero="no limit",
        most=3600,
        step=10,
        digits=0,
    )
    parametrisation: str = option(
        "factors", "Search Space", "What is searched", choices=PARAMETRISATIONS, seldom=True
    )
    seed: int = option(
        0,
        "Seed",
        "Number that all that is random is drawn from: the same seed finds the same",
        RANGES["seed"],
        seldom=True,
    )
    population: int = option(
        16,
        "Population",
        "Candidates of each generation, that is round; more search wider, but take longer",
        Range("population", 4, 4096),
        most=64,
        seldom=True,
    )
    spread: float = option(
        0.4,
        "Spread",
        "How far from the gains in use the search begins; 0.4 changes a gain by about a half",
        Range("spread", 0.01, 2),
        step=0.05,
        digits=2,
        seldom=True,
    )
    restarts: int = option(
        1,
        "Side by Side",
        "Searches with random numbers of their own; worth it with workers to spare",
        Range("number of searches", 1, 64),
        seldom=True,
    )
    confirmations: int = option(
        8,
        "Confirmations",
        "New tries, with noise that the search has not seen, all of which must reach the target",
        Range("number of confirmations", 1, 1000),
        most=32,
        seldom=True,
    )

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True)
class Candidate:
    """Gains, the reward of the trial that they had, and in which generation. fell_at [s],
    fell_measure: when and by which measure that trial ended early, None if it did not."""

    gains: Gains
    reward: float
    generation: int
    fell_at: float | None = None
    fell_measure: str | None = None


@dataclass(frozen=True)
class Generation:
    """What one generation gave; generation 0 is the gains to start from.

    rewards: of its candidates, in the order in which they were drawn, search after search.
    best, median, mean: of these. spread: standard deviation that the distribution has now.
    seconds: simulated. cpu: of all trials [s]. wall: since the generation before [s]. confirmed,
    confirmed_best: rewards of the distribution's mean and of the best candidate on unseen noise,
    None where this was not tried.
    """

    index: int
    rewards: list[float]
    best: float
    median: float
    mean: float
    spread: float
    seconds: float
    cpu: float
    wall: float
    confirmed: list[float] | None
    confirmed_best: list[float] | None


@dataclass(frozen=True)
class Outcome:
    """What a search came to.

    gains: the best, with `tuned` filled in. ended: "confirmed", "generations", "budget",
    "converged" or "stopped". success_at: generation of the first candidate that reached the target
    (the paper's success). confirmed_at: generation whose mean, or else best candidate, reached it
    on unseen noise throughout. chosen: which of them `gains` are, "start", "mean" or "best".
    unseen: rewards of `gains` on unseen noise; empty where the search was ended before any were
    tried. fell_at [s], fell_measure: when and by which measure the worst trial of `gains` ended
    early, None if none did. seconds: simulated, until the end; cpu, wall [s]. history: of
    Generation.
    """

    gains: Gains
    ended: str
    success_at: int | None
    confirmed_at: int | None
    chosen: str
    unseen: list[float]
    fell_at: float | None
    fell_measure: str | None
    seconds: float
    cpu: float
    wall: float
    settings: SearchSettings
    history: list[Generation]

    def as_dict(self) -> dict[str, Any]:
        """Everything as JSON-able data, the report."""
        report = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        report["gains"] = self.gains.as_dict()
        report["settings"] = asdict(self.settings)
        report["history"] = [asdict(generation) for generation in self.history]
        return report


class Factors:
    """x are logarithms of factors on the gains to start from: as many to half as to double."""

    bounds = None

    def __init__(self, start: Gains) -> None:
        self._start = start
        self._vector = _vector(start)
        self.size = len(self._vector)

    def gains(self, x: np.ndarray) -> Gains:
        """The Gains of a point x (2 n + 8,)."""
        return _gains(self._start, self._vector * np.exp(packed(x)))  # a column of the strategy's


class Ranges:
    """SCA12, table 2: x = -1 to 1 are the ranges that gains are first drawn from, the same for
    all joints. Bounds are the paper's too."""

    _FIRST = {"stiffness": (200, 500), "damping": (20, 50), "force": (300, 600), "turn": (100, 200)}

    def __init__(self, start: Gains) -> None:
        self._start = start
        n = len(start.names)
        kinds = ["stiffness"] * n + ["damping"] * n + ["force", "force", "turn", "turn"] * 2
        ranges = np.array([self._FIRST[kind] for kind in kinds])
        self._half = (ranges[:, 1] - ranges[:, 0]) / 2
        # A search that starts from tuned gains goes on around them.
        untuned = start.tuned is None
        self._centre = ranges.mean(1) if untuned else _vector(start)
        least = np.where(np.arange(len(kinds)) < 2 * n, 0.0, -LIMIT)
        self.bounds = [
            ((limit - self._centre) / self._half).tolist()
            for limit in (least, np.full(len(kinds), LIMIT))
        ]
        self.size = len(kinds)

    def gains(self, x: np.ndarray) -> Gains:
        """The Gains of a point x (2 n + 8,)."""
        return _gains(self._start, self._centre + self._half * x)


def _vector(gains: Gains) -> np.ndarray:
    """SCA12, equation 20: all parameters in a row, (2 n + 8,)."""
    return np.concatenate([gains.stiffness, gains.damping, gains.single, gains.dual])


def _gains(start: Gains, vector: np.ndarray) -> Gains:
    n, weights = len(start.names), len(WEIGHTS)
    vector = np.clip(vector, -LIMIT, LIMIT)
    stiffness, damping, single, dual = np.split(vector, [n, 2 * n, 2 * n + weights])
    return dataclasses.replace(
        start,
        stiffness=stiffness,
        damping=damping,
        single=single,
        dual=dual,
        tuned=None,
        name="",
        description="",
    )


def _random(seed: int, *purpose: int) -> np.random.Generator:
    """A generator for one purpose, independent of all others."""
    return np.random.default_rng(np.random.SeedSequence([seed, *purpose]))


def load_cma() -> Any:
    """The module cma, which takes a second to load; only a search needs it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it misses a library for plots, which nobody wants here
        return importlib.import_module("cma")


def strategy(
    start: np.ndarray, spread: float, random: np.random.Generator, options: dict[str, Any]
) -> Any:
    """A cma.CMAEvolutionStrategy that prints nothing.

    start: (n,). spread: standard deviation to start with. random: generator of all that it draws.
    options: of its own.
    """
    options = options | {
        "randn": lambda *shape: random.standard_normal(shape),
        "seed": math.nan,  # else it seeds NumPy's global state, which is not ours
        "verbose": -9,
    }
    return load_cma().CMAEvolutionStrategy(start, spread, options)


class _Evolution:
    """One CMA-ES."""

    def __init__(self, space: Factors | Ranges, settings: SearchSettings, number: int) -> None:
        random = _random(settings.seed, _MUTATIONS, number)
        options: dict[str, Any] = {
            "popsize": settings.population,
            "CMA_mu": settings.population // 2,
        }
        if space.bounds is not None:
            options["bounds"] = space.bounds
        self._space = space
        self._strategy = strategy(np.zeros(space.size), settings.spread, random, options)
        self._asked: list[np.ndarray] = []

    def ask(self) -> list[Gains]:
        """Gains of the next candidates."""
        self._asked = self._strategy.ask()
        return [self._space.gains(x) for x in self._asked]

    def tell(self, rewards: Sequence[float]) -> None:
        """Learn from their rewards."""
        self._strategy.tell(self._asked, [-reward for reward in rewards])

    @property
    def mean(self) -> Gains:
        """Gains of the distribution's mean."""
        return self._space.gains(self._strategy.result.xfavorite)

    @property
    def spread(self) -> float:
        """Standard deviation, in units of x."""
        return float(self._strategy.sigma * self._strategy.sm.variances.mean() ** 0.5)

    @property
    def converged(self) -> bool:
        """Whether more generations would find nothing new."""
        return bool(set(self._strategy.stop()) & {"tolx", "tolfacupx", "conditioncov"})


class Search(Polled):
    """A search that goes on, one `poll` after the other.

    generations: of those that have ended. best: Candidate with the highest reward so far, None
    before the first. success_at, confirmed_at: as Outcome has them, so far. ended: why it is over,
    None while it is not. warning: a sentence, if something went wrong that does not end it.
    """

    def __init__(
        self,
        problem: Problem,
        start: Gains,
        settings: SearchSettings,
        executor: Executor,
        checkpoint: str | Path | None = None,
    ) -> None:
        """problem: trial.Problem. start: Gains to begin with, for the problem's character and
        balance mode. executor: takes the trials; it stays the caller's to shut down. checkpoint:
        path of a file to resume from, if it is there, and to keep up to date; `forget` removes it.
        Raises CheckpointError if that file belongs to another search."""
        if start.balance != problem.settings.balance:
            raise GainsError(
                f"The gains to start from are for the balance mode '{start.balance}', not "
                f"'{problem.settings.balance}': choose that mode, or other gains."
            )
        super().__init__(executor, settings.budget)
        self.problem, self.start, self.settings = problem, start, settings
        self._payload = problem.to_bytes()
        self.generations: list[Generation] = []
        self.best: Candidate | None = None
        self.success_at: int | None = None
        self.confirmed_at: int | None = None
        self.warning = ""
        self.doing = ""
        self._chosen, self._kind = start, "start"
        self._unseen: list[float] = []
        self._worst: Result = {}
        self._taken: list[dict[str, Any]] = []
        self._features: Future | None = None
        self._last_wall = 0.0
        self._seconds = self._cpu = 0.0
        facts = "the clip, the gains to start from, the settings or the version"
        self._checkpoint = Checkpoint(checkpoint, "search", facts)
        self._begin()
        self._resume()

    # --- Going on -------------------------------------------------------------------------------

    def poll(self) -> bool:
        """Take the trials that are finished and hand out more; never waits for one. Returns
        whether the search is over. Raises PoiseError if it cannot go on."""
        if self._features is None and not self.ended:
            self._features = self._submit(describe, self._payload)
        return super().poll()

    def run(self) -> Iterator[Generation]:
        """Go on to the end, and yield each Generation as it ends."""
        return self._run(self.generations)

    def forget(self) -> None:
        """Remove the checkpoint: what was found is in safety, or not wanted."""
        self._checkpoint.forget()

    def time_left(self) -> float | None:
        """Of the budget [s]; None without one."""
        left = self._left()
        return None if math.isinf(left) else max(0.0, left)

    def outcome(self) -> Outcome:
        """The Outcome of a search that is over, or so far."""
        outcome = Outcome(
            gains=self._chosen,
            ended=self.ended or "stopped",
            success_at=self.success_at,
            confirmed_at=self.confirmed_at,
            chosen=self._kind,
            unseen=self._unseen,
            fell_at=self._worst.get("fell_at"),
            fell_measure=self._worst.get("fell_measure"),
            seconds=self._seconds,
            cpu=self._cpu,
            wall=self.wall,
            settings=self.settings,
            history=self.generations,
        )
        tuned = _provenance(self.problem, outcome)
        features = self._features
        if features is not None and features.done() and not features.cancelled():
            # Without the workers it is told without them.
            tuned |= {} if features.exception() else {"features": features.result()}
        # They are no longer the preset that they were made from.
        gains = dataclasses.replace(self._chosen, tuned=tuned, name="", description="")
        return dataclasses.replace(outcome, gains=gains)

    # --- What is searched -----------------------------------------------------------------------

    def _steps(self) -> Plan:
        """All of the search: yields a list of (gains, seed of the noise) to try, takes the list of
        their results, and returns why it ended."""
        settings = self.settings
        self.doing = "trying the gains to start from"
        results = yield [
            (self.start, self._noise(_TRIALS, 0)),
            *self._confirmation(self.start, _CONFIRMATIONS, 0),
        ]
        self._add(0, [self.start], results[:1], 0.0, results[1:])
        assert self.best is not None  # the start, at least
        if self._passed("start", self.start, 0, results[1:]):
            return "confirmed"
        kinds: dict[str, type[Factors | Ranges]] = {"factors": Factors, "ranges": Ranges}
        space = kinds[settings.parametrisation](self.start)
        evolutions = [_Evolution(space, settings, i) for i in range(settings.restarts)]
        for index in range(1, settings.generations + 1):
            self.doing = f"generation {index}"
            candidates = [gains for evolution in evolutions for gains in evolution.ask()]
            noise = self._noise(_TRIALS, index)
            results = yield [(gains, noise) for gains in candidates]
            rewards = np.reshape([r["reward"] for r in results], (len(evolutions), -1))
            for evolution, own in zip(evolutions, rewards.tolist(), strict=True):
                evolution.tell(own)
            medians = np.median(rewards, axis=1)
            leader = evolutions[int(np.argmax(medians))]
            record = rewards.max() > self.best.reward and rewards.max() >= settings.target
            if not record and medians.max() < settings.target:
                self._add(index, candidates, results, leader.spread)
            else:
                self.doing = f"confirming generation {index}"
                finalists = {"mean": leader.mean, "best": candidates[int(np.argmax(rewards))]}
                trials = yield from self._confirm(finalists, _CONFIRMATIONS, index)
                self._add(index, candidates, results, leader.spread, *trials.values())
                for name, gains in finalists.items():
                    if self._passed(name, gains, index, trials[name]):
                        return "confirmed"
            if all(evolution.converged for evolution in evolutions):
                break
        # Without success: the best on unseen noise, since a high reward may have been luck.
        self.doing = "choosing the best"
        finalists = {"mean": leader.mean, "best": self.best.gains}
        trials = yield from self._confirm(finalists, _FINAL, 0)
        name = max(finalists, key=lambda name: np.mean([r["reward"] for r in trials[name]]))
        if self._passed(name, finalists[name], index, trials[name]):
            return "confirmed"
        self._settle_on(name, finalists[name], trials[name])
        return "converged" if index < settings.generations else "generations"

    def _noise(self, *purpose: int) -> int:
        return int(_random(self.settings.seed, *purpose).integers(2**31))

    def _confirmation(self, gains: Gains, *purpose: int) -> list[_Trial]:
        return [
            (gains, self._noise(*purpose, i)) for i in range(1, self.settings.confirmations + 1)
        ]

    def _confirm(
        self, finalists: dict[str, Gains], *purpose: int
    ) -> Generator[list[_Trial], list[Result], dict[str, list[Result]]]:
        """Try gains by name on the same unseen noise; returns the results of each."""
        results = yield [
            trial for gains in finalists.values() for trial in self._confirmation(gains, *purpose)
        ]
        count = self.settings.confirmations
        return {name: results[i * count : (i + 1) * count] for i, name in enumerate(finalists)}

    def _passed(self, kind: str, gains: Gains, index: int, results: Sequence[Result]) -> bool:
        """Whether gains reach the target on noise that the search has not seen, throughout."""
        passed = min(result["reward"] for result in results) >= self.settings.target
        if passed:
            self.confirmed_at = index
            self._settle_on(kind, gains, results)
        return passed

    def _settle_on(self, kind: str, gains: Gains, results: Sequence[Result]) -> None:
        self._kind, self._chosen = kind, gains
        self._unseen = [result["reward"] for result in results]
        self._worst = min(results, key=lambda result: result["reward"])

    def _add(
        self,
        index: int,
        candidates: Sequence[Gains],
        results: Sequence[Result],
        spread: float,
        confirmed: Sequence[Result] = (),
        confirmed_best: Sequence[Result] = (),
    ) -> None:
        """Take down a generation."""
        rewards = [result["reward"] for result in results]
        best = int(np.argmax(rewards))
        if self.best is None or rewards[best] > self.best.reward:
            self._kind, self._chosen = "best" if index else "start", candidates[best]
            self._worst = results[best]
            fell = results[best]["fell_at"], results[best]["fell_measure"]
            self.best = Candidate(candidates[best], rewards[best], index, *fell)
        if self.success_at is None and rewards[best] >= self.settings.target:
            self.success_at = index
        trials = [*results, *confirmed, *confirmed_best]
        self.generations.append(
            Generation(
                index,
                rewards,
                rewards[best],
                float(np.median(rewards)),
                float(np.mean(rewards)),
                spread,
                sum(trial["seconds"] for trial in trials),
                sum(trial["cpu"] for trial in trials),
                self.wall - self._last_wall,
                [result["reward"] for result in confirmed] or None,
                [result["reward"] for result in confirmed_best] or None,
            )
        )
        self._last_wall = self.wall

    # --- Tasks

    def _task(self, item: _Trial) -> Task:
        gains, seed = item
        return evaluate, self._payload, gains.as_dict(), seed

    def _beside(self) -> list[Future]:
        return [] if self._features is None else [self._features]

    def _note(self, results: list[Result]) -> None:
        self._seconds += sum(result["seconds"] for result in results)
        self._cpu += sum(result["cpu"] for result in results)
        self._taken.append({"wall": self.wall, "results": results})

    def _came_in(self, results: list[Result]) -> None:
        super()._came_in(results)
        # With the same random numbers, what has come back so far leads to the same state.
        if not self.ended:
            self.warning = self._checkpoint.write(self.key, {"batches": self._taken})

    # --- Checkpoint -----------------------------------------------------------------------------

    @property
    def key(self) -> str:
        """A short name of the problem, the start and the settings that decide what is found."""
        settings = asdict(self.settings)
        del settings["generations"], settings["budget"]
        facts = [settings, self.start.as_dict(), digest(self._payload), engine()]
        return digest(json.dumps(facts, sort_keys=True).encode())

    def _resume(self) -> None:
        batches: list[dict[str, Any]] = []
        self._checkpoint.restore(self.key, lambda data: batches.extend(data["batches"]))
        for batch in batches:
            if self.ended is None:
                self.wall = batch["wall"]
                self._take(batch["results"])


def _provenance(problem: Problem, outcome: Outcome) -> dict[str, Any]:
    """What gains were tuned on, as their file tells it."""
    motion, character, settings = problem.motion, problem.character, outcome.settings
    unseen = outcome.unseen
    return {
        "clip": motion.name,
        "frames": [motion.frame(0), motion.frame(len(motion) - 1)],
        "duration": motion.duration,
        "body": {"mass": character.mass, "height": character.height},
        "morphology": problem.morphology.as_dict(),
        "rate": problem.settings.rate,
        "noise": problem.settings.noise,
        "balance": problem.settings.balance,
        "maxima": dict(problem.settings.maxima),
        "disturbance": dict(problem.disturbance),
        "engine": engine(),
        "optimiser": {
            "seed": settings.seed,
            "population": settings.population,
            "parametrisation": settings.parametrisation,
            "spread": settings.spread,
            "restarts": settings.restarts,
            "generations": len(outcome.history) - 1,
            "simulated_seconds": outcome.seconds,
        },
        "figures": {
            "target": settings.target,
            "success_at": outcome.success_at,
            "confirmed_at": outcome.confirmed_at,
            "chosen": outcome.chosen,
            "unseen_count": len(unseen),
            "unseen_mean": float(np.mean(unseen)) if unseen else None,
            "unseen_min": min(unseen) if unseen else None,
        },
    }

# SPDX-License-Identifier: GPL-3.0-or-later
"""What makes the search for gains faster: variants of it on clips that need one, several seeds.

A variant is told in generations and in simulated seconds until the first candidate reached the
target (the paper's success) and until the distribution's mean was confirmed on unseen noise. What
helps is in `controller.optimization` already, and is taken out here; what does not is put in.
"""

import argparse
import contextlib
import dataclasses
import json
import sys
from pathlib import Path
from unittest import mock

import numpy as np

from ..controller import Gains, Settings
from ..controller.processes.workers import WorkerPool
from ..controller.search import optimization
from ..controller.search.optimization import Search, SearchSettings
from ..controller.search.trial import Problem
from .clips import read

#: Clip, balance mode and target of each task: none is reached untuned.
TASKS = {
    "knee_raises, foot": ("knee_raises", "foot_forces", 1.8),
    "hula, virtual": ("hula", "virtual_forces", 1.8),
    "stand_shift, virtual": ("stand_shift", "virtual_forces", 1.8),
}


@contextlib.contextmanager
def plain():
    """The search as it is."""
    yield {}


@contextlib.contextmanager
def ranges():
    """The paper's linear ranges."""
    yield {"parametrisation": "ranges"}


def spread(value):
    """Another standard deviation to start with."""

    @contextlib.contextmanager
    def variant():
        yield {"spread": value}

    return variant


def population(size):
    """Another number of candidates."""

    @contextlib.contextmanager
    def variant():
        yield {"population": size}

    return variant


@contextlib.contextmanager
def restarts():
    """Two searches of half the population instead of one."""
    yield {"restarts": 2, "population": 8}


@contextlib.contextmanager
def alike():
    """The axes of one joint get factors that correlate by 0.8."""
    gains = optimization.Factors.gains

    def mixed(self, x):
        joints = [name.split("_")[0] for name in self._start.names]
        labels = np.array([*joints, *(f"d {j}" for j in joints), *map(str, range(8))])
        correlation = np.where(labels[:, None] == labels, 0.8, 0.0)
        np.fill_diagonal(correlation, 1.0)
        return gains(self, np.linalg.cholesky(correlation) @ x)

    with mock.patch.object(optimization.Factors, "gains", mixed):
        yield {}


@contextlib.contextmanager
def elites():
    """The two best of a generation are candidates of the next one too, with its noise."""
    ask, tell = optimization._Evolution.ask, optimization._Evolution.tell

    def ask_again(self):
        for x in getattr(self, "elites", []):
            self._strategy.inject([x])
        return ask(self)

    def tell_and_keep(self, rewards):
        order = np.argsort(rewards)[::-1]
        self.elites = [self._asked[i] for i in order[:2]]
        tell(self, rewards)

    with (
        mock.patch.object(optimization._Evolution, "ask", ask_again),
        mock.patch.object(optimization._Evolution, "tell", tell_and_keep),
    ):
        yield {}


VARIANTS = {
    "as it is": plain,
    "the paper's ranges": ranges,
    "axes of a joint alike": alike,
    "spread 0.25": spread(0.25),
    "spread 0.6": spread(0.6),
    "population 8": population(8),
    "population 32": population(32),
    "2 restarts of 8": restarts,
    "elites again": elites,
    "short trials first": plain,  # see `_stages`
}


def _stages(variant, seconds):
    """Lengths of the trials [s], one search after the other."""
    return [seconds / 4, seconds / 2, seconds] if variant == "short trials first" else [seconds]


def run(task, variant, seed, executor, generations, seconds=20.0):
    """One search. Returns {"success", "confirmed" (generations, None if not reached), "at_success",
    "at_confirmed", "seconds" (simulated)}."""
    clip, balance, target = TASKS[task]
    motion = read(clip)
    start, before, spent = None, 0, 0.0
    for length in _stages(variant, seconds):
        problem = Problem(motion, settings=Settings(duration=length, noise=5.0, balance=balance))
        start = start or Gains.default(problem.character, balance)
        with VARIANTS[variant]() as changes:
            settings = SearchSettings(
                **{"generations": generations - before, "seed": seed, "target": target} | changes
            )
            search = Search(problem, start, settings, executor)
            for _ in search.run():
                pass
        outcome = search.outcome()
        result = _told(outcome, before, spent)
        before += len(outcome.history) - 1
        spent = result["seconds"]
        if outcome.ended != "confirmed":
            break
        start = dataclasses.replace(outcome.gains, tuned=None)
    return result


def _told(outcome, before, spent):
    seconds = spent + np.cumsum([generation.seconds for generation in outcome.history])

    def at(index):
        return (None, None) if index is None else (before + index, float(seconds[index]))

    success, at_success = at(outcome.success_at)
    confirmed, at_confirmed = at(outcome.confirmed_at)
    return {
        "success": success,
        "at_success": at_success,
        "confirmed": confirmed,
        "at_confirmed": at_confirmed,
        "seconds": spent + outcome.seconds,
    }


def table(results):
    """The results {(task, variant): [of `run`]} as lines of text."""
    head = (
        f"{'task':22s} {'variant':22s} {'generations':>16s} {'confirmed':>16s} {'simulated s':>20s}"
    )
    lines = [head]
    for (task, variant), runs in results.items():
        cells = [
            " ".join("-" if run[name] is None else f"{run[name]:.0f}" for run in runs)
            for name in ("success", "confirmed", "at_confirmed")
        ]
        lines.append(f"{task:22s} {variant:22s} {cells[0]:>16s} {cells[1]:>16s} {cells[2]:>20s}")
    return lines


def main(arguments=None):
    """The command; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--seeds", type=int, default=3, help="searches of each (3)")
    parser.add_argument("--generations", type=int, default=25, help="at most (25)")
    parser.add_argument("--workers", type=int, help="processes (one per processor)")
    parser.add_argument("--output", type=Path, default=Path("build/study.json"))
    options = parser.parse_args(arguments)
    results = {}
    with WorkerPool(options.workers) as executor:
        for task in options.tasks:
            for variant in options.variants:
                runs = results[task, variant] = []
                for seed in range(options.seeds):
                    runs.append(run(task, variant, seed, executor, options.generations))
                print(table({(task, variant): runs})[1], file=sys.stderr, flush=True)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    data = [{"task": t, "variant": v, "runs": runs} for (t, v), runs in results.items()]
    options.output.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    print("\n".join(table(results)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

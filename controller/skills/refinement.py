# SPDX-License-Identifier: GPL-3.0-or-later
"""Adaptive refinement of what a walk goes by (Sok, Kim, Lee 2007, section 5.2).

    refinement = Refinement(problem, gains, samples, seconds, executor)
    while not refinement.poll(): …
    refinement.samples

Walks go on by samples, under noise of other seeds in each generation. Where one strays from all
samples, or falls, it goes back to where its cycle began, and what a walk by the clock does from
there is added: the paper warps a cycle and rectifies it. All of a generation go by the samples of
the one before, so that what is found does not depend on how many work on it.
"""

from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..exceptions import PoiseError
from ..gains.gains import Gains
from ..search.polling import Checkpoint, Plan, Polled, Task, engine
from ..search.trial import Problem, Result, digest, problem_of
from .regression import Attempt, Samples

#: Walks in a generation, generations at most, and rescues in a walk at most. By judgement.
WALKS, _GENERATIONS, _RESCUES = 4, 12, 8


@dataclass(frozen=True)
class Generation:
    """What became of the walks of a generation: how long each stood [s], how often samples were
    added, and how many there were then."""

    stood: tuple[float, ...]
    rescues: int
    samples: int


class Refinement(Polled):
    """Walks by samples, to which is added where they stray, until all of a generation stand and add
    nothing.

    samples: those that there are now. generations: Generation each. It has `ended` with "done", or
    "generations" where walks still stray after the last one.
    """

    def __init__(
        self,
        problem: Problem,
        gains: Gains,
        samples: Samples,
        seconds: float,
        executor: Executor,
        seed: int = 0,
        budget: float | None = None,
        checkpoint: str | Path | None = None,
    ) -> None:
        """problem: as Attempt has it. seconds: for which walks go on. seed: of the first one. The
        rest is as Polled has it; checkpoint: file to go on from, written after each generation.
        Raises CheckpointError."""
        super().__init__(executor, budget)
        self.samples = samples
        self.generations: list[Generation] = []
        self._payload, self._gains = problem.to_bytes(), gains.as_dict()
        self._seconds, self._first = seconds, seed
        facts = repr((self._gains, seconds, seed, engine())).encode()
        arrays = samples.features.tobytes() + samples.phases.tobytes()
        self._key = digest(self._payload + facts + arrays)
        self._checkpoint = Checkpoint(checkpoint, "refinement", "walk, body, gains or samples")
        self.warning = ""
        self._checkpoint.restore(self._key, self._resume)
        self._begin()

    @property
    def longest(self) -> float:
        """How long the walk stood that stood longest [s]."""
        return max((max(one.stood) for one in self.generations), default=0.0)

    def run(self) -> Iterator[Generation]:
        """Go on to the end, and yield each generation."""
        yield from self._run(self.generations, len(self.generations))

    def _steps(self) -> Plan:
        while len(self.generations) < _GENERATIONS:
            if self.generations and self._is_settled(self.generations[-1]):
                return "done"
            first = self._first + WALKS * len(self.generations)
            yield list(range(first, first + WALKS))
        return "done" if self._is_settled(self.generations[-1]) else "generations"

    def _is_settled(self, generation: Generation) -> bool:
        return generation.rescues == 0 and min(generation.stood) >= self._seconds

    def _task(self, item: int) -> Task:
        arrays = self.samples.features, self.samples.phases
        return walked, self._payload, self._gains, item, arrays, self._seconds, _RESCUES

    def _note(self, results: list[Result]) -> None:
        for one in results:
            self.samples += Samples(one["features"], one["phases"])
        stood = tuple(one["stood"] for one in results)
        rescues = sum(one["rescues"] for one in results)
        self.generations.append(Generation(stood, rescues, len(self.samples)))
        told = [[*one.stood, one.rescues, one.samples] for one in self.generations]
        self.warning = self._checkpoint.write(
            self._key,
            {
                "features": self.samples.features.tolist(),
                "phases": self.samples.phases.tolist(),
                "generations": told,
            },
        )

    def _resume(self, data: dict[str, Any]) -> None:
        self.samples = Samples(np.array(data["features"]), np.array(data["phases"]))
        for *stood, rescues, samples in data["generations"]:
            self.generations.append(Generation(tuple(stood), rescues, samples))


def walked(
    payload: bytes,
    gains: dict[str, Any],
    seed: int,
    samples: tuple[np.ndarray, np.ndarray] | None,
    seconds: float,
    rescues: int = 0,
    trust: float = 1.0,
) -> Result:
    """Walk once by samples (features, phases), or by the clock.

    payload: of Problem.to_bytes. gains: of Gains.as_dict. seed: of the motor noise. trust: as
    Regressed has it. Returns for how long it "stood" [s] and at which "speed" [m/s] it went, how
    often it was in need of "rescues", "features" and "phases" that they added, or that a walk by
    the clock has seen; {"error": …} as `trial.evaluate`.
    """
    try:
        problem = problem_of(payload)
        body = problem.character
        known = None if samples is None else Samples(*samples)
        own = Gains.from_dict(gains, body, "candidate")
        attempt = Attempt(problem, own, seed, known, trust)
        try:
            attempt.go_on(seconds, rescues)
        finally:
            attempt.close()
        found = attempt.seen() if known is None else attempt.samples
        assert found is not None
        had = 0 if known is None else len(known)
        return {
            "stood": attempt.seconds if attempt.fell is None else attempt.fell,
            "speed": attempt.speed,
            "rescues": attempt.added,
            "features": found.features[had:],
            "phases": found.phases[had:],
        }
    except PoiseError as error:
        return {"error": [type(error).__name__, str(error)]}

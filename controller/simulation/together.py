# SPDX-License-Identifier: GPL-3.0-or-later
"""Several characters simulated together: in one world, each by its own controller, step by step.

    together = Together({"Anna": Simulation(…), "Ben": Simulation(…)})
    for sample in together: …

What one does to another, it feels itself: the engine solves their contacts as one.
"""

import time
from collections.abc import Generator, Mapping

import numpy as np

from ..exceptions import SimulationError, demand
from .simulation import Simulation
from .simulation_options import STOP
from .world import MOST_TOGETHER, Engine

#: Rates [Hz] and frames that differ by less are the same.
_SAME = 1e-6


class Together:
    """Several Simulations in one world, which perform in step.

    Iterate over it as over a Simulation: each turn advances all of them to the next sample. The
    recording of each grows with it, and tells of the others' blows.
    """

    def __init__(self, simulations: Mapping[str, Simulation]) -> None:
        """simulations: by the names of who performs; none has begun, and each is to fall on when
        it falls: Settings(when_it_falls="limp"). Raises SettingsError for such as cannot be in one
        world."""
        # The engine's order of them is the same, whoever is named first.
        self.simulations = dict(sorted(simulations.items()))
        self.names = list(self.simulations)
        _check(self.simulations)
        first, *_ = self.simulations.values()
        self._engine = Engine(first.rate, shared=True)
        for member, simulation in enumerate(self.simulations.values()):
            simulation.join(self._engine, member, self.names)

    def __len__(self) -> int:
        """Samples in the whole motion."""
        return min(map(len, self.simulations.values()))

    def begin(self) -> None:
        """Put all of them at their start. Raises SettingsError if two are inside each other."""
        for simulation in self.simulations.values():
            simulation.begin()
        self._engine.demand_apart()
        for simulation in self.simulations.values():
            self._engine.meet(simulation.world)

    def __iter__(self) -> Generator[int, None, None]:
        for sample in self.pieces():
            if sample is not None:
                yield sample

    def pieces(self) -> Generator[int | None, None, None]:
        """The same in shorter pieces, for who cannot wait for a sample: yields None after each
        step."""
        demand(self._engine.close.alive, "These have been simulated together before: make others.")
        started = time.perf_counter()
        try:
            if not self._engine.worlds:
                self.begin()
            running = [_named(*item) for item in self.simulations.items()]
            for sample in range(len(self)):
                while {next(one) for one in running} != {sample}:
                    self._engine.step()
                    yield None
                wall = time.perf_counter() - started
                for simulation in self.simulations.values():
                    simulation.recording.wall_time = wall
                yield sample
        finally:
            self.close()

    def deepest(self) -> float:
        """How deep [m] two of the bodies are in each other now."""
        return self._engine.deepest()

    def run(self) -> None:
        """Simulate to the end."""
        for _ in self:
            pass

    def close(self) -> None:
        """Free the world."""
        for simulation in self.simulations.values():
            simulation.close()
        self._engine.close()


def _named(name: str, simulation: Simulation) -> Generator[int | None, None, None]:
    """The pieces of a simulation, which tells its name where it cannot go on."""
    try:
        yield from simulation.pieces()
    except SimulationError as error:
        raise SimulationError(f"'{name}': {error}") from error


def _check(simulations: Mapping[str, Simulation]) -> None:
    """Raise SettingsError for simulations that cannot share a world."""
    demand(
        2 <= len(simulations) <= MOST_TOGETHER,
        f"{len(simulations)} characters are to be simulated together: choose 2 to {MOST_TOGETHER}.",
    )
    demand(
        len({*map(id, simulations.values())}) == len(simulations),
        "The same one is to be two of those who are simulated together: make a simulation of each.",
    )
    (first_name, first), *rest = simulations.items()
    for name, one in simulations.items():
        demand(
            one.settings.when_it_falls != STOP,
            f"'{name}' is to stop when it falls, and the others would go on: let it fall limp, "
            "stiff or braced (when_it_falls).",
        )
        demand(
            not len(one.recording) and one.membership is None,
            f"The simulation of '{name}' has begun before, or is one of others: make another one.",
        )
        for hold in one.scenario.holds:
            demand(
                not hold.to_character or hold.to in {*simulations} - {name},
                f"The hold '{hold.name}' of '{name}' is to '{hold.to}', who is not simulated "
                "together with it: choose one of those who are.",
            )
        demand(
            one.correction is None and one.guide is None,
            f"'{name}' is rectified or played: simulate it together with others by balance alone.",
        )
    for name, one in rest:
        for what, own, others in (
            ("physics rate", first.rate, one.rate),
            ("frame rate", first.motion.rate, one.motion.rate),
            ("first frame", first.motion.frame(0), one.motion.frame(0)),
            ("number of samples", len(first), len(one)),
        ):
            demand(
                np.isclose(own, others, rtol=0, atol=_SAME),
                f"'{first_name}' and '{name}' have not the same {what} ({own:g} and {others:g}): "
                "give both the same.",
            )
        for kind in ("colliders", "limbs"):
            ours, theirs = (
                [(thing.name, thing.solid.kind) for thing in getattr(every.scenario, kind)]
                for every in (first, one)
            )
            demand(
                ours == theirs,
                f"'{first_name}' and '{name}' do not meet the same {kind}: give both the same.",
            )

# SPDX-License-Identifier: GPL-3.0-or-later
"""A body that gets to its waypoints.

A body that balances is centimetres off its reference, and at a waypoint by as much. The same
problem gives the same simulation, and takes hardly longer than a moment: so it is simulated, each
waypoint is put farther on by what is missing there, and it is simulated again.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..gains.gains import Gains
from ..simulation.simulation import Simulation
from .trial import Problem

#: A body that comes so near to a waypoint [m] is there ...
THERE = 0.03
#: ... and with less than this is let be.
_ENOUGH = 0.01
_TRIES = 5
_SAME = 0.001  # [m] nearer or farther: leads help no more
#: A waypoint is put on by so much at most [m]: a body that strays farther is about to fall.
_MOST_LEAD = 0.15


class Arrival:
    """Tries of a body to get to the waypoints of a problem.

    problem, simulation: of the try at work, and in the end of the best one.
    """

    def __init__(self, problem: Problem, gains: Gains | None, simulation: Simulation) -> None:
        """simulation: of the problem with these gains, the first try."""
        self.problem, self.simulation = problem, simulation
        self._gains = gains
        self._tries: list[tuple[float, Problem, Simulation]] = []

    def again(self) -> bool:
        """Once a try has ended: whether another one follows, which is prepared; if none does, the
        best one is taken again."""
        missed = self.simulation.recording.missed()
        worst = _worst(missed)
        self._tries.append((worst, self.problem, self.simulation))
        best = min(self._tries, key=lambda one: one[0])
        before = self._tries[-2][0] if len(self._tries) > 1 else np.inf
        in_vain = abs(worst - before) < _SAME or not np.isfinite(missed).any()
        if worst < _ENOUGH or in_vain or len(self._tries) == _TRIES:
            _, self.problem, self.simulation = best
            return False
        settings = self.problem.settings
        ahead = [
            replace(one, lead=_lead(one.lead, more))
            for one, more in zip(self.simulation.reference.waypoints, missed, strict=True)
        ]
        settings = replace(settings, waypoints=tuple(ahead))
        self.problem = self.problem.under(settings, self.problem.scenario)
        self.simulation = self.problem.simulation(self._gains, settings.seed)
        return True


def arrival_words(
    name: str, frame: float, missed: float | None, place: Sequence[float] = ()
) -> str:
    """How near [m] a body came to a waypoint of that name and frame, at a place, in a sentence
    without an end; None where it did not come so far."""
    if missed is None:
        return f"The waypoint '{name}' at frame {frame:g} is not reached: the body had fallen"
    if missed <= THERE:
        return f"The waypoint '{name}' at frame {frame:g} is reached within {100 * missed:.1f} cm"
    return f"The waypoint '{name}' at frame {frame:g} is missed by {100 * missed:.1f} cm"


def _worst(missed: np.ndarray) -> float:
    """How far [m] a body is from (n, 2) waypoints at most; infinite where it did not get to one."""
    if not len(missed):
        return 0.0
    return float(np.nan_to_num(np.linalg.norm(missed, axis=1), nan=np.inf).max())


def _lead(lead: tuple[float, float], missed: np.ndarray) -> tuple[float, float]:
    """What a waypoint has to be put on by."""
    whole = np.asarray(lead) + np.nan_to_num(missed)
    x, y = (whole * min(1.0, _MOST_LEAD / max(float(np.linalg.norm(whole)), 1e-9))).tolist()
    return x, y

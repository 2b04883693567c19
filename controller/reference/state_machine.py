# SPDX-License-Identifier: GPL-3.0-or-later
"""What a character that is directed can be in, and what follows what: a state machine as data.

    machine = StateMachine.of(slowest, fastest, runs_from(speed, other, trim))
    machine.after(WALK)                     # what can follow a walk
    visited(walk, rate, count)              # what it is in, by the commands of a walk

Stand, walk and run go on for as long as wanted, acts end by themselves, and into a fall nobody goes
by command. These are Sok, Kim and Lee 2007's stationary and transition controllers, section 5.3,
and what a body without a plane to stay in needs besides.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .gait import Gait, Walk

#: What a state is to whom directs it.
STATIONARY, TRANSITION, INVOLUNTARY = "stationary", "transition", "involuntary"
#: What changes states.
TOLD, FASTER, SLOWER, ENDS = "told", "faster", "slower", "ends"
OUT_OF_BALANCE, LIES, RISEN, FAILS = "out of balance", "lies still", "risen", "fails"


class State(NamedTuple):
    """One of them: its name, of "act" which one it is, and its kind."""

    name: str
    act: str = ""
    kind: str = STATIONARY

    def as_dict(self) -> dict[str, str]:
        """It as JSON-able data."""
        return {name: value for name, value in self._asdict().items() if value}


STAND, WALK, RUN = (State(name) for name in ("stand", "walk", "run"))
FALL, GET_UP = (State(name, kind=INVOLUNTARY) for name in ("fall", "get_up"))


class Change(NamedTuple):
    """That one state can follow another one, and what for: one of the words above."""

    before: State
    after: State
    why: str


@dataclass(frozen=True)
class StateMachine:
    """What a character can be in, and what follows what. speeds: the lowest and the highest [m/s]
    of those states that are commanded with one."""

    states: tuple[State, ...]
    changes: tuple[Change, ...]
    speeds: dict[State, tuple[float, float]]

    @classmethod
    def of(
        cls,
        slowest: float,
        fastest: float,
        runs_from: float | None = None,
        acts: Sequence[str] = (),
        gets_up: bool = True,
    ) -> "StateMachine":
        """That of who goes at speeds between two [m/s], and runs from one on, None for never;
        gets_up: whether it gets up once it has fallen."""
        walks = runs_from is None or slowest < runs_from
        speeds, changes = {}, []
        if walks:
            speeds[WALK] = slowest, fastest if runs_from is None else min(runs_from, fastest)
        if runs_from is not None and fastest > runs_from:
            speeds[RUN] = max(runs_from, slowest), fastest
        gaits = list(speeds)
        changes += [Change(STAND, gaits[0], TOLD), Change(gaits[0], STAND, TOLD)]
        if len(gaits) == 2:
            changes += [Change(WALK, RUN, FASTER), Change(RUN, WALK, SLOWER)]
        performed = [act_state(name) for name in acts]
        for act in performed:
            changes += [Change(STAND, act, TOLD), Change(act, STAND, ENDS)]
        willing = [STAND, *gaits, *performed]
        states = [*willing, FALL]
        changes += [Change(state, FALL, OUT_OF_BALANCE) for state in willing]
        if gets_up:
            states.append(GET_UP)
            changes += [
                Change(FALL, GET_UP, LIES),
                Change(GET_UP, STAND, RISEN),
                Change(GET_UP, FALL, FAILS),
            ]
        return cls(tuple(states), tuple(changes), speeds)

    def after(self, state: State) -> tuple[State, ...]:
        """What can follow one."""
        return tuple(change.after for change in self.changes if change.before == state)

    def as_dict(self) -> dict[str, Any]:
        """It as JSON-able data."""
        return {
            "states": [
                state.as_dict()
                | dict(zip(("slowest", "fastest"), self.speeds.get(state, ()), strict=False))
                for state in self.states
            ],
            "changes": [
                {
                    "before": self.states.index(one.before),
                    "after": self.states.index(one.after),
                    "why": one.why,
                }
                for one in self.changes
            ],
        }


def act_state(name: str) -> State:
    """That of an act."""
    return State("act", name, TRANSITION)


def runs_from(
    speed: float, other: Gait | None, trim: Sequence[tuple[float, float]]
) -> float | None:
    """The speed [m/s] that a body reaches from which on a walk runs; None for one that never does.
    speed: of its own cycle; other, trim: as `Walk` has them."""
    if other is None or not other.flies:
        return None
    told = (speed + other.speed) / 2
    if not trim:
        return told
    reached, wanted = zip(*trim, strict=True)
    return float(np.interp(told, wanted, reached, right=np.inf))


def states_at(
    walk: Walk, rate: float, samples: np.ndarray, flies: bool = False
) -> tuple[np.ndarray, list[State]]:
    """What a walk is in at samples (N,) of a rate [Hz], as it is told: which of the states that
    come with it. flies: whether its own cycle is a run."""
    known = [STAND, WALK, RUN, *(act_state(one.name) for one in walk.acts)]
    if not walk.commands:
        return np.full(len(samples), 1 + flies), known
    gone = walk.journey(rate).at(samples)
    other = walk.other is not None and walk.other.flies
    found = np.where(gone.standing == 1, 0, np.where(gone.blend > 0.5, 1 + other, 1 + flies))
    return np.where(gone.act >= 0, 3 + gone.act, found), known


def visited(walk: Walk, rate: float, count: int, flies: bool = False) -> list[tuple[int, State]]:
    """From which of so many samples on it is in what, else as `states_at`."""
    found, known = states_at(walk, rate, np.arange(count), flies)
    begins = np.flatnonzero(np.diff(found, prepend=-1))
    return [(int(at), known[found[at]]) for at in begins]

# SPDX-License-Identifier: GPL-3.0-or-later
"""What a character that is directed can be in, and what follows what."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from poise.controller.reference.acts import Act
from poise.controller.reference.commands import Command, Passage, Strike
from poise.controller.reference.gait import Cycle, Gait, Walk
from poise.controller.reference.state_machine import (
    FALL,
    GET_UP,
    INVOLUNTARY,
    RUN,
    STAND,
    TRANSITION,
    WALK,
    StateMachine,
    act_state,
    runs_from,
    visited,
)

RATE, SPEED, PERIOD = 120.0, 1.4, 66
STRIKES = (Strike(0.2, 1), Strike(0.7, -1))
#: It flies for half of its round.
RUNNING = Gait(
    2 * SPEED,
    0.45,
    1.7,
    STRIKES,
    ((0.0, 0.0, 1.0),) * 2,
    ((1.0, 0.0, 0.0, 0.0),) * 2,
    ((0.5,),) * 2,
    ((1.0, 0.0), (0.0, 0.0)),
)
BOW = Act("bow", RATE, 0.9, False, 0.0, *[((0.0,),)] * 4)
TRIM = ((0.3, 0.4), (3.0, 4.0))


def walk(*commands, other=None, acts=()):
    passages = (Passage(1.5, 0.0, 0.1, 0.0, 0.0, 0.0),) * len(acts)
    cycle = Cycle(0, PERIOD, (SPEED * PERIOD / RATE, 0.0), 0.0, 0.01)
    trim = () if other is None else TRIM
    return Walk(cycle, 60.0, (), False, "", commands, STRIKES, trim, other, False, acts=acts,
                passages=passages)  # fmt: skip


def names(found):
    return [state.act or state.name for _, state in found]


def test_whatever_it_is_in_it_can_fall_and_comes_to_stand_again():
    machine = StateMachine.of(0.5, 2.8, 2.0, ("bow", "run"))
    for state in machine.states:
        if state.kind != INVOLUNTARY:
            assert FALL in machine.after(state)
        reached = {state}
        while len(more := reached.union(*map(machine.after, reached))) > len(reached):
            reached = more
        assert reached >= {STAND, FALL}
    assert set(machine.after(GET_UP)) == {STAND, FALL}, "or it fails to"
    assert set(machine.after(STAND)) == {WALK, act_state("bow"), act_state("run"), FALL}
    assert act_state("run") != RUN, "whatever an act is called"
    assert machine.speeds == {WALK: (0.5, 2.0), RUN: (2.0, 2.8)}


def test_who_does_not_get_up_stays_down():
    machine = StateMachine.of(0.5, 1.5, gets_up=False)
    assert machine.after(FALL) == () and GET_UP not in machine.states and RUN not in machine.states


def test_a_run_alone_has_no_walk():
    machine = StateMachine.of(2.0, 2.8, 0.0)
    assert machine.speeds == {RUN: (2.0, 2.8)} and set(machine.after(STAND)) == {RUN, FALL}


def test_it_runs_from_the_middle_between_both_on_as_bodies_reach_that():
    """A tenth less is reached than is told; and of a run that is slower than is ever told, none."""
    assert runs_from(SPEED, None, TRIM) is None
    assert runs_from(SPEED, replace(RUNNING, contacts=((1.0, 0.0),)), TRIM) is None, "no run"
    assert runs_from(SPEED, RUNNING, ()) == pytest.approx(1.5 * SPEED)
    assert runs_from(SPEED, RUNNING, TRIM) == pytest.approx(0.3 + (1.5 * SPEED - 0.4) * 2.7 / 3.6)
    slow = ((0.3, 0.4), (1.2, 1.5))
    machine = StateMachine.of(0.3, 1.2, runs_from(SPEED, RUNNING, slow))
    assert machine.speeds == {WALK: (0.3, 1.2)}


def test_as_data_it_names_all_and_what_follows_what():
    machine = StateMachine.of(0.5, 1.5, acts=("bow",))
    data = machine.as_dict()
    assert data["states"][1] == {
        "name": "walk",
        "kind": "stationary",
        "slowest": 0.5,
        "fastest": 1.5,
    }
    assert {"name": "act", "act": "bow", "kind": TRANSITION} in data["states"]
    found = [
        (data["states"][one["before"]], data["states"][one["after"]]) for one in data["changes"]
    ]
    wanted = [(one.before.name, one.after.name) for one in machine.changes]
    assert [(before["name"], after["name"]) for before, after in found] == wanted


def test_it_is_in_what_it_is_told():
    told = (
        Command(0.0, stands=True),
        Command(2.0, 1.0),
        Command(6.0, 2.6),
        Command(16.0, 1.0),
        Command(24.0, act="bow"),
        Command(34.0, stands=True),
    )
    found = visited(walk(*told, other=RUNNING, acts=(BOW,)), RATE, round(45 * RATE))
    assert names(found) == [
        "stand",
        "walk",
        "run",
        "walk",
        "stand",
        "bow",
        "stand",
        "walk",
        "stand",
    ]
    times = [at / RATE for at, _ in found]
    later = [time - told.at for time, told in zip(times[1:4], told[1:4], strict=True)]
    assert times[0] == 0 and all(0 < late < 5 for late in later)
    began, ended = times[5:7]
    assert 24 < began < 30 and ended - began == pytest.approx(1.5, abs=2 / RATE)


@pytest.mark.parametrize("seed", range(5))
def test_one_follows_another_only_as_the_machine_has_it(seed):
    """Whatever is commanded, whenever."""
    random = np.random.default_rng(seed)
    told, at = [Command(0.0, stands=bool(seed % 2))], 0.0
    for _ in range(25):
        at += float(random.uniform(0.2, 4.0))
        kind = int(random.integers(4))
        speed = float(random.uniform(0.4, 2.9))
        heading = float(random.uniform(-3, 3))
        told.append(
            (
                Command(at, speed),
                Command(at, speed, heading),
                Command(at, stands=True),
                Command(at, act="bow"),
            )[kind]
        )
    made = walk(*told, other=RUNNING, acts=(BOW,))
    found = [state for _, state in visited(made, RATE, round(60 * RATE))]
    machine = StateMachine.of(0.4, 2.9, runs_from(SPEED, RUNNING, TRIM), ("bow",))
    assert set(found) >= {STAND, WALK, RUN, act_state("bow")}
    for before, after in pairwise(found):
        assert after in machine.after(before), (before, after)


def test_who_is_not_led_walks_or_runs():
    assert names(visited(walk(), RATE, 100)) == ["walk"]
    assert names(visited(walk(), RATE, 100, flies=True)) == ["run"]

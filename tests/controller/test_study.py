# SPDX-License-Identifier: GPL-3.0-or-later
"""The variants of the search that the study compares differ in what they say they do."""

import itertools

import numpy as np
import pytest

from poise.controller import Gains, Problem, SearchSettings
from poise.controller.processes.workers import SerialExecutor
from poise.controller.search import polling
from poise.controller.search.optimization import Factors
from poise.experiments import study


@pytest.fixture
def trials(monkeypatch, standing):
    """Trials that are not simulated, [(stiffness of all joints, seed)] as they come."""
    seen = []

    def trial(_payload, gains, seed):
        stiffness = np.array(list(gains["stiffness"].values()))
        seen.append((stiffness, seed))
        apart = float(np.abs(np.log(stiffness / 2000)).mean())
        told = {"fell_at": None, "fell_measure": None, "seconds": 1.0, "cpu": 0.0}
        return told | {"reward": 1.7 - 0.1 * apart}

    tasks = {"evaluate": trial, "describe": lambda _payload: {}}
    monkeypatch.setattr(polling, "Remote", lambda function: tasks[function.__name__])
    monkeypatch.setattr(study, "read", lambda _clip: standing)
    return seen


def run(variant, generations=3):
    return study.run("knee_raises, foot", variant, 0, SerialExecutor(), generations, 1.0)


@pytest.mark.parametrize("variant", study.VARIANTS)
def test_every_variant_searches(trials, variant):
    result = run(variant)
    assert result["success"] is None and result["confirmed"] is None
    assert result["seconds"] == len(trials) > 3 * 8


def test_elites_are_tried_again(trials):
    run("elites again", 2)
    first, second = trials[9:25], trials[25:41]
    assert {seed for _, seed in first}.isdisjoint(seed for _, seed in second)
    again = [any(np.allclose(x, y) for y, _ in second) for x, _ in first]
    assert sum(again) == 2


def test_axes_of_a_joint_are_drawn_alike(standing):
    problem = Problem(standing)
    start = Gains.default(problem.character)
    space = Factors(start)
    draws = np.random.default_rng(0).standard_normal((400, space.size))

    def likeness():
        factors = np.log([space.gains(x).stiffness / start.stiffness for x in draws])
        table = np.corrcoef(factors.T)
        names = [name.split("_")[0] for name in start.names]
        hips = [i for i, name in enumerate(names) if name == "hip"]
        knee = names.index("knee")
        return table[hips[0], hips[1]], table[hips[0], knee]

    assert np.allclose(likeness(), 0, atol=0.15)
    with study.alike():
        inside, across = likeness()
    assert inside == pytest.approx(0.8, abs=0.1) and abs(across) < 0.15
    assert np.allclose(likeness(), 0, atol=0.15)


def test_changes_are_settings_that_differ():
    """A variant that changes settings changes them from what they are; each goes its own way."""
    changed = {}
    for name, variant in study.VARIANTS.items():
        with variant() as changes:
            settings = SearchSettings(**changes)
        if changes:
            changed[name] = settings
    assert set(changed) == {
        "the paper's ranges",
        "spread 0.25",
        "spread 0.6",
        "population 8",
        "population 32",
        "2 restarts of 8",
    }
    everything = [SearchSettings(), *changed.values()]
    assert all(one != other for one, other in itertools.combinations(everything, 2))
    candidates = changed["2 restarts of 8"].restarts * changed["2 restarts of 8"].population
    assert candidates == SearchSettings().population


def test_table():
    runs = [
        {"success": 1, "confirmed": 2, "at_success": 10.0, "at_confirmed": 20.0, "seconds": 20.0},
        {"success": 3, "confirmed": None, "at_success": 1.0, "at_confirmed": None, "seconds": 99.0},
    ]
    line = study.table({("task", "variant"): runs})[1]
    assert line.split() == ["task", "variant", "1", "3", "2", "-", "20", "-"]

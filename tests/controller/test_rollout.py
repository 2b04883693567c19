# SPDX-License-Identifier: GPL-3.0-or-later
"""Short simulations from a saved state: the same to the last bit, whatever was before."""

import pickle
import sys
from dataclasses import replace

import numpy as np
import pytest

from poise.controller import Gains, Scenario, Settings, Solid
from poise.controller.search.correction import SIZE, UNITS
from poise.controller.search.rollout import FALL, Stage, _decaying, costs, perform, simplex
from poise.controller.search.trial import Problem
from poise.controller.simulation.scenario import Collider, Thing

SPACING = 6
_UNITS = np.array(list(UNITS.values()))


@pytest.fixture
def problem(make_motion, arms_swing):
    """Half a second, arms swinging."""
    return Problem(make_motion(0.5, sway=arms_swing), settings=Settings())


def stage_of(problem):
    return Stage(problem, Gains.default(problem.character), SPACING)


def way(nodes, size=0.3, seed=0):
    """Offsets of nodes after the first, which is none."""
    random = np.random.default_rng(seed)
    return np.vstack([np.zeros((1, SIZE)), size * random.standard_normal((nodes, SIZE)) * _UNITS])


def performed(stage, committed):
    """Bodies (n, S, 3) and turns of a whole way, interval by interval."""
    samples = [
        sample
        for count in range(1, len(committed) + 1)
        for sample in stage.perform(committed[:count])
    ]
    return tuple(np.array(part) for part in zip(*((s[0], s[1]) for s in samples), strict=True))


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_the_same_window_costs_the_same_every_time(problem):
    stage, committed = stage_of(problem), way(1)
    windows = [way(2, seed=seed)[1:] for seed in (1, 2)]
    found = [stage.cost(committed, window, 3) for window in windows]
    assert found[0] != found[1]
    assert [stage.cost(committed, window, 3) for window in windows] == found
    fresh = stage_of(problem)
    assert [fresh.cost(committed, window, 3) for window in windows[::-1]] == found[::-1]


def test_a_way_is_performed_the_same_after_any_other(problem):
    committed, other = way(4), way(4, seed=5)
    expected = performed(stage_of(problem), committed)
    stage = stage_of(problem)
    shared = np.vstack([committed[:3], other[3:]])
    performed(stage, other)
    performed(stage, shared)
    stage.cost(committed[:3], other[1:3], 3)
    assert same(performed(stage, committed), expected)


def test_a_way_may_be_entered_anywhere(problem):
    """As by a worker that was not there when its nodes were committed."""
    committed, window = way(3), way(2, seed=1)[1:]
    stage = stage_of(problem)
    performed(stage, committed)
    assert stage_of(problem).cost(committed, window, 3) == stage.cost(committed, window, 3)
    last = stage.perform(committed)
    entered = stage_of(problem).perform(committed)
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(last, entered, strict=True))


def test_the_last_interval_ends_with_the_clip(problem):
    stage = Stage(problem, Gains.default(problem.character), 7)
    centres, _ = performed(stage, way(5))
    assert len(centres) == len(stage) == 4 * 7 + 2 + 1


def test_the_reference_is_cheap_offsets_cost_and_a_fall_costs_most(problem):
    stage, start = stage_of(problem), np.zeros((1, SIZE))
    still = stage.cost(start, np.zeros((2, SIZE)), 3)
    some = stage.cost(start, way(2, 0.5)[1:], 3)
    assert 0 <= still < some < FALL
    window = np.zeros((2, SIZE))
    window[:, list(UNITS).index("com_z")] = -0.6  # drop to the knees
    window[:, [i for i, name in enumerate(UNITS) if name.startswith("hip")]] = 2.0
    early = stage.cost(start, window, 4)
    assert FALL <= early <= 2 * FALL


def test_offsets_die_away_behind_a_window():
    found = _decaying(way(2), 5)
    assert len(found) == 5
    assert np.array_equal(found[:3], way(2))
    assert np.allclose(found[3:], found[2] * np.array([[0.8], [0.64]]))
    assert np.array_equal(_decaying(way(4), 3), way(4)[:3])


def test_what_flies_and_what_is_stood_on_return_with_the_state(make_motion):
    """A sphere that hits in the second interval, another that starts in the third; a podium."""
    box = Collider("Podium", Solid("box", (0.6, 0.6, 0.05)), (0, 0, 0.05))
    motion = make_motion(0.5)
    motion = replace(motion, positions=motion.positions + [0, 0, 0.1])
    spheres = tuple(
        Thing(
            name,
            Solid("sphere", (0.1,)),
            2.0,
            start=start,
            position=(0.6, 0, z),
            velocity=(-4, 0, 1),
        )
        for name, start, z in (("First", 0.0, 1.3), ("Second", 0.2, 1.5))
    )
    problem = Problem(
        motion, settings=Settings(), scenario=Scenario(things=spheres, colliders=(box,))
    )
    stage, committed = stage_of(problem), way(4)

    def things():
        return [
            np.array(sample[3][0])
            for count in range(1, len(committed) + 1)
            for sample in stage.perform(committed[:count])
        ]

    paths = np.array(things())
    assert np.isnan(paths[11, 1]).all() and np.isfinite(paths[13, 1]).all()
    speed = np.diff(paths[:, 0, 0]) * motion.rate
    assert speed[1] < -3.5 and np.nanmax(speed) > -2  # it was stopped
    window = way(2, seed=1)[1:]
    costs_before = [stage.cost(committed[:count], window, 3) for count in (1, 3)]
    stage.perform(committed[:2])  # back to where neither has hit
    assert np.array_equal(things(), paths, equal_nan=True)
    assert [stage.cost(committed[:count], window, 3) for count in (1, 3)] == costs_before


def test_what_a_process_runs_is_plain_data(problem):
    gains = Gains.default(problem.character).as_dict()
    payload, committed = problem.to_bytes(), way(2)
    windows = [way(2, seed=seed)[1:] for seed in range(3)]
    result = costs(payload, gains, SPACING, committed, windows, 3)
    stage = stage_of(problem)
    assert result["costs"] == [stage.cost(committed, window, 3) for window in windows]
    assert result["cpu"] > 0
    samples = perform(payload, gains, SPACING, committed)["samples"]
    assert len(samples) == SPACING
    assert b"poise" not in pickle.dumps(samples)  # elsewhere it has another name


def test_what_is_wrong_comes_back_as_a_sentence(problem):
    gains = Gains.default(problem.character).as_dict()
    samples = np.zeros(len(problem.motion))
    held = replace(problem, scenario=Scenario(weights={"arms": samples}))
    other = replace(problem, settings=Settings(balance="virtual_forces"))
    other_gains = Gains.default(problem.character, "virtual_forces").as_dict()
    for wrong, with_gains, words in (
        (held, gains, "physics weights to 1"),
        (other, other_gains, "needs the balance mode 'foot_forces'"),
    ):
        for function, arguments in ((costs, ([], 3)), (perform, ())):
            result = function(wrong.to_bytes(), with_gains, SPACING, way(0), *arguments)
            name, sentence = result["error"]
            assert name == "SettingsError" and words in sentence


@pytest.mark.slow
def test_simplex_goes_downhill(problem):
    pytest.importorskip("scipy.optimize")
    gains = Gains.default(problem.character).as_dict()
    start = way(2, 2.0)[1:]
    result = simplex(problem.to_bytes(), gains, SPACING, way(1), start, 3, 60)
    stage = stage_of(problem)
    assert result["cost"] < stage.cost(way(1), start, 3)
    assert result["cost"] == stage.cost(way(1), result["window"], 3)
    assert result["window"].shape == (2, SIZE)
    assert 37 <= result["evaluations"] <= 61


def test_simplex_says_that_it_needs_scipy(problem, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    gains = Gains.default(problem.character).as_dict()
    result = simplex(problem.to_bytes(), gains, SPACING, way(1), way(2)[1:], 3, 60)
    assert result["error"][0] == "SettingsError"
    assert "needs SciPy: install it, or use the method 'cma'" in result["error"][1]

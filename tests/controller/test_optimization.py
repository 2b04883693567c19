# SPDX-License-Identifier: GPL-3.0-or-later
"""The search: what it draws, when it calls itself successful, what becomes of an interruption."""

import json
import math
from concurrent.futures import Executor, Future
from dataclasses import asdict, replace

import numpy as np
import pytest

from poise.controller import Gains, Settings
from poise.controller.exceptions import CheckpointError, GainsError, MotionError, SettingsError
from poise.controller.processes.workers import SerialExecutor
from poise.controller.search import polling
from poise.controller.search.optimization import Factors, Ranges, Search, SearchSettings
from poise.controller.search.trial import Problem


@pytest.fixture
def problem(standing):
    return Problem(standing, settings=Settings(duration=1.0, noise=5.0))


@pytest.fixture
def start(problem):
    return Gains.default(problem.character)


@pytest.fixture
def landscape(monkeypatch, start):
    """Trials that are not simulated: the reward falls with the distance of the stiffness from
    three times the start's, and a little with the noise's seed."""

    def trial(_payload, gains, seed):
        # Number by number: in arrays the last digit may hang on where in memory they are.
        ratios = zip(gains["stiffness"].values(), start.stiffness.tolist(), strict=True)
        apart = math.fsum(abs(math.log(own / first / 3)) for own, first in ratios)
        apart /= len(start.stiffness)
        reward = 2 - apart - (seed % 7) * 1e-3
        return {
            "reward": reward,
            "fell_at": None if reward > 1 else 0.5,
            "fell_measure": None if reward > 1 else "pose_error",
            "seconds": 1.0,
            "cpu": 0.01,
        }

    tasks = {"evaluate": trial, "describe": lambda _payload: {"dual": 1.0}}
    monkeypatch.setattr(polling, "Remote", lambda function: tasks[function.__name__])


def search(problem, start, checkpoint=None, **settings):
    settings = {"generations": 40, "population": 8} | settings
    return Search(problem, start, SearchSettings(**settings), SerialExecutor(), checkpoint)


def told(outcome):
    """Everything but how long it took."""
    report = outcome.as_dict()
    del report["wall"]
    for generation in report["history"]:
        del generation["wall"]
    return report


def test_factors_start_at_the_start(problem, start):
    space = Factors(start)
    assert space.size == 2 * len(start.names) + 8
    same = space.gains(np.zeros(space.size))
    assert np.array_equal(same.stiffness, start.stiffness)
    assert np.array_equal(same.single, start.single)
    doubled = space.gains(np.full(space.size, np.log(2)))
    assert np.allclose(doubled.stiffness, 2 * start.stiffness)
    assert np.allclose(doubled.dual, 2 * start.dual)
    far = space.gains(np.full(space.size, 50.0))
    assert far.stiffness.max() == 10000
    Gains.from_dict(far.as_dict(), problem.character)


def test_ranges_are_the_papers(problem, start):
    space = Ranges(start)
    low, high = (space.gains(np.full(space.size, x)) for x in (-1.0, 1.0))
    assert np.allclose(low.stiffness, 200) and np.allclose(high.stiffness, 500)
    assert np.allclose(low.damping, 20) and np.allclose(high.damping, 50)
    assert np.allclose(low.single, [300, 300, 100, 100])
    assert np.allclose(high.dual, [600, 600, 200, 200])
    least, most = (space.gains(np.array(bound)) for bound in space.bounds)
    assert np.allclose(least.stiffness, 0) and np.allclose(least.dual, -10000)
    assert np.allclose(most.damping, 10000)
    tuned = replace(start, tuned={"clip": "stand"})
    again = Ranges(tuned).gains(np.zeros(space.size))
    assert np.allclose(again.stiffness, start.stiffness) and np.allclose(again.single, start.single)


@pytest.mark.parametrize("parametrisation", ["factors", "ranges"])
def test_it_climbs(problem, start, landscape, parametrisation):
    going = search(problem, start, parametrisation=parametrisation, generations=15, target=2.0)
    records = list(going.run())
    assert [record.index for record in records] == list(range(16))
    assert records[15].median > records[1].median + 0.1
    assert going.outcome().ended == "generations"
    # The better of the mean and the best, on noise that nothing was chosen by.
    assert len(going.outcome().unseen) == 8
    assert np.mean(going.outcome().unseen) > records[0].best


def test_success_is_declared_and_confirmed(problem, start, landscape):
    going = search(problem, start, target=1.2)
    outcome = [list(going.run()), going.outcome()][1]
    assert outcome.ended == "confirmed"
    first = next(g.index for g in outcome.history if g.best >= 1.2)
    assert outcome.success_at == first <= outcome.confirmed_at == outcome.history[-1].index
    assert len(outcome.unseen) == 8 and min(outcome.unseen) >= 1.2
    last = outcome.history[-1]
    by_the_best = outcome.chosen == "best"
    assert outcome.unseen == (last.confirmed_best if by_the_best else last.confirmed)
    assert by_the_best == (min(last.confirmed) < 1.2)
    figures = outcome.gains.tuned["figures"]
    assert outcome.gains.tuned["features"] == {"dual": 1.0}
    assert figures["unseen_min"] == min(outcome.unseen) and figures["success_at"] == first
    json.dumps(outcome.as_dict(), allow_nan=False)


def test_the_best_is_confirmed_where_the_mean_lags(problem, start, landscape):
    outcomes = []
    for seed in range(6):
        going = search(problem, start, target=1.15, seed=seed)
        list(going.run())
        outcomes.append(going.outcome())
    assert {outcome.chosen for outcome in outcomes} == {"mean", "best"}
    for outcome in outcomes:
        assert outcome.ended == "confirmed" and min(outcome.unseen) >= 1.15


def test_good_gains_need_no_search(problem, start, landscape):
    good = replace(start, stiffness=3 * start.stiffness)
    going = search(problem, good, target=1.9)
    assert len(list(going.run())) == 1
    outcome = going.outcome()
    assert (outcome.ended, outcome.success_at, outcome.confirmed_at) == ("confirmed", 0, 0)
    assert np.array_equal(outcome.gains.stiffness, good.stiffness)


def test_a_lucky_start_is_not_confirmed(problem, start, landscape):
    """One unseen trial below the target is enough to go on."""
    good = replace(start, stiffness=3 * start.stiffness)
    going = search(problem, good, target=1.9975, generations=1, seed=1)
    first = next(iter(going.run()))
    assert min(first.confirmed) < 1.9975 <= max(first.confirmed)
    assert going.ended != "confirmed"


def test_same_seed_same_search(problem, start, landscape):
    outcomes = []
    for seed in (3, 3, 4):
        np.random.seed(len(outcomes))
        going = search(problem, start, seed=seed, target=2.0, generations=3)
        before = np.random.get_state()[1].copy()
        list(going.run())
        assert np.array_equal(before, np.random.get_state()[1]), "NumPy's own numbers were drawn"
        outcomes.append(told(going.outcome()))
    assert outcomes[0] == outcomes[1] != outcomes[2]


def test_restarts_are_searches_of_their_own(problem, start, landscape):
    alone = search(problem, start, generations=2, target=2.0)
    both = search(problem, start, generations=2, target=2.0, restarts=2)
    list(alone.run())
    list(both.run())
    rewards = both.generations[1].rewards
    assert len(rewards) == 16
    assert rewards[:8] == alone.generations[1].rewards
    assert rewards[:8] != rewards[8:]


class Shuffled(Executor):
    """Finishes tasks in another order than they came in, one at a time."""

    def __init__(self):
        self.tasks, self.random = [], np.random.default_rng(0)

    def submit(self, function, /, *args):
        future = Future()
        self.tasks.append((future, function, args))
        return future

    def work(self):
        future, function, args = self.tasks.pop(self.random.integers(len(self.tasks)))
        if future.set_running_or_notify_cancel():
            future.set_result(function(*args))


def test_order_of_results_does_not_matter(problem, start, landscape):
    serial = search(problem, start, generations=3, target=2.0)
    list(serial.run())
    executor = Shuffled()
    settings = SearchSettings(generations=3, population=8, target=2.0)
    polled = Search(problem, start, settings, executor)
    while not polled.poll():
        done, total = polled.progress
        assert 0 <= done < total
        if executor.tasks:
            executor.work()
    assert told(polled.outcome()) == told(serial.outcome())


def test_stop_keeps_the_best_and_drops_the_rest(problem, start, landscape, tmp_path):
    path = tmp_path / "search.json"
    executor = Shuffled()
    settings = SearchSettings(generations=9, population=8, target=2.0)
    going = Search(problem, start, settings, executor, path)
    while len(going.generations) < 3:
        going.poll()
        if executor.tasks:
            executor.work()
    going.poll()
    assert executor.tasks and path.exists()
    going.stop()
    assert going.poll() and path.exists()
    going.forget()
    assert not path.exists()
    assert all(future.cancelled() for future, _, _ in executor.tasks)
    outcome = going.outcome()
    assert outcome.ended == "stopped" and outcome.unseen == []
    assert np.array_equal(outcome.gains.stiffness, going.best.gains.stiffness)
    assert going.best.reward == max(generation.best for generation in going.generations)


def test_a_search_that_is_stopped_at_once_keeps_the_start(problem, start, landscape):
    going = search(problem, start)
    going.stop()
    assert going.best is None
    assert np.array_equal(going.outcome().gains.stiffness, start.stiffness)


def test_a_budget_ends_it(problem, start, landscape, monkeypatch):
    clock = iter(range(10000))
    monkeypatch.setattr(polling.time, "monotonic", lambda: next(clock) / 1000)
    going = search(problem, start, budget=0.3, target=2.0)
    list(going.run())
    outcome = going.outcome()
    assert outcome.ended == "budget" and 0.3 <= outcome.wall < 0.32
    assert 1 < len(outcome.history) < 40
    assert going.time_left() == 0


@pytest.mark.parametrize("batches", [1, 2, 5])
def test_resumed_is_as_if_never_interrupted(problem, start, landscape, tmp_path, batches):
    whole = search(problem, start, target=1.4)
    list(whole.run())
    path = tmp_path / "search.json"
    first = search(problem, start, path, target=1.4)
    while not path.exists() or len(json.loads(path.read_text())["data"]["batches"]) < batches:
        assert not first.poll()
    # Nothing but the file is left of the first.
    second = search(problem, start, path, target=1.4)
    assert len(second.generations) == len(first.generations) > 0
    list(second.run())
    assert told(second.outcome()) == told(whole.outcome())
    second.forget()
    assert not path.exists()


def test_gains_found_have_no_name_but_tell_their_clip(problem, start, landscape):
    going = search(problem, replace(start, name="Standing", description="…"), target=0.5)
    list(going.run())
    gains = going.outcome().gains
    assert (gains.name, gains.description) == ("", "")
    assert gains.tuned["features"] == {"dual": 1.0}


def test_a_checkpoint_of_another_search(problem, start, landscape, tmp_path):
    path = tmp_path / "search.json"
    going = search(problem, start, path, target=2.0)
    while not path.exists():
        going.poll()
    # More generations, or another budget, are the same search ...
    search(problem, start, path, target=2.0, generations=99, budget=1e6)
    # ... another seed, start or clip are not.
    with pytest.raises(CheckpointError, match="belongs to another search"):
        search(problem, start, path, target=2.0, seed=9)
    with pytest.raises(CheckpointError, match="belongs to another search"):
        search(problem, replace(start, stiffness=2 * start.stiffness), path, target=2.0)
    louder = replace(problem, settings=replace(problem.settings, noise=6.0))
    with pytest.raises(CheckpointError, match="belongs to another search"):
        search(louder, start, path, target=2.0)
    for text in ("{", "[]", '{"batches": []}', "\0"):
        path.write_text(text)
        with pytest.raises(CheckpointError, match=r"is not JSON|is none of a search"):
            search(problem, start, path, target=2.0)


def test_a_full_disk_ends_nothing(problem, start, landscape, tmp_path, monkeypatch):
    def full(*_args, **_keywords):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(polling.Path, "write_text", full)
    path = tmp_path / "search.json"
    going = search(problem, start, path, target=2.0, generations=2)
    while not going.warning:
        going.poll()
    assert "No space left on device" in going.warning and "goes on" in going.warning
    list(going.run())
    assert going.outcome().ended == "generations"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"budget": 0.0}, "budget"),
        ({"budget": -1.0}, "budget"),
        ({"generations": 0}, "generations"),
        ({"population": 3}, "population"),
        ({"seed": -1}, "seed"),
        ({"target": 2.5}, "2.5"),
        ({"parametrisation": "magic"}, "factors, ranges"),
        ({"spread": 0.0}, "spread"),
        ({"confirmations": 0}, "confirmations of 0 is out of range"),
        ({"restarts": 0}, "searches of 0 is out of range"),
    ],
)
def test_wrong_settings(wrong, words):
    with pytest.raises(SettingsError, match=words):
        SearchSettings(**wrong)


def test_gains_for_the_other_mode(problem):
    gains = Gains.default(problem.character, "virtual_forces")
    with pytest.raises(GainsError, match="'virtual_forces', not 'foot_forces'"):
        search(problem, gains)


def test_a_reference_in_the_air(standing, start):
    raised = replace(standing, positions=standing.positions.copy())
    raised.positions[:20, :, 2] += 0.4
    going = search(Problem(raised, settings=Settings(duration=1.0)), start)
    with pytest.raises(MotionError, match="starts in the air"):
        list(going.run())


def test_a_problem_survives_its_bytes(problem):
    again = Problem.from_bytes(problem.to_bytes())
    assert again.to_bytes() == problem.to_bytes()
    assert asdict(again.settings) == asdict(problem.settings)
    assert np.array_equal(again.motion.positions, problem.motion.positions, equal_nan=True)


@pytest.mark.slow
def test_a_real_search(problem, start):
    """Real trials, whose gains alone are the same twice."""
    outcomes = []
    for _ in range(2):
        going = search(problem, start, generations=1, population=4, target=2.0, confirmations=2)
        list(going.run())
        report = told(going.outcome())
        del report["cpu"]
        for generation in report["history"]:
            del generation["cpu"]
        outcomes.append(report)
    assert outcomes[0] == outcomes[1]
    assert len(set(outcomes[0]["history"][1]["rewards"])) == 4
    assert all(1 < reward < 2 for reward in outcomes[0]["unseen"])

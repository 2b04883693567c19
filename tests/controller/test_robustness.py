# SPDX-License-Identifier: GPL-3.0-or-later
"""How hard the character can be hit: the limit by its definition, on what is never tuned on, and
what feet in place can catch."""

import json
import math
from concurrent.futures import Executor, Future
from dataclasses import replace

import numpy as np
import pytest

from poise.controller import Gains, Search, SearchSettings, Settings
from poise.controller.body.momentum import GRAVITY
from poise.controller.exceptions import ExecutorError, MotionError, SettingsError
from poise.controller.geometry.rotations import matrix_from_quaternion, multiply
from poise.controller.processes.workers import SerialExecutor, WorkerPool
from poise.controller.search import polling, robustness
from poise.controller.search.robustness import (
    LimitSearch,
    LimitSettings,
    capture_bounds,
    capture_speed,
    ray_to_edge,
    withstand,
)
from poise.controller.search.trial import Problem
from poise.controller.simulation.scenario import PUSH_DURATION


@pytest.fixture
def problem(standing):
    return Problem(standing, settings=Settings(duration=5.0, noise=5.0))


def test_a_body_that_is_helped_from_outside_is_not_measured(problem, gains):
    helped = problem.under(Settings(duration=5.0, outside_help=0.5), problem.scenario)
    with pytest.raises(SettingsError, match="measured without help: set Help from Outside to 0"):
        LimitSearch(helped, gains, LimitSettings(), SerialExecutor())


@pytest.fixture
def gains(problem):
    return Gains.default(problem.character)


class Fakes:
    """Trials that are not simulated: each sequence stands up to a strength of its own, and single
    disturbances up to one that falls with the angle and the phase."""

    def __init__(self, settings, strengths, weak=()):
        self.strengths = dict(zip(settings.seeds(), strengths, strict=True))
        self.weak = weak
        self.single = []

    def evaluate(self, payload, _gains, seed):
        magnitude = Problem.from_bytes(payload).disturbance.get("pushes", 0.0)
        stands = magnitude <= self.strengths[seed] and magnitude not in self.weak
        fell = {} if stands else {"fell_at": 2.0, "fell_measure": "pose_error"}
        none = {"fell_at": None, "fell_measure": None}
        return none | {"reward": 1.9 if stands else 0.2, "seconds": 20.0, "cpu": 1.0} | fell

    def bounds(self, _payload, _kind, angles, shares):
        return {"bounds": [[150.0] * len(angles) for _ in shares], "seconds": 0.0, "cpu": 0.0}

    def withstand(self, _payload, _gains, seed, _kind, grid, angle, share):
        self.single.append((seed, angle, share))
        limit = grid * round((200 - 20 * angle - 40 * share) / grid)
        return {"limit": limit, "seconds": 8.0, "cpu": 0.5}


@pytest.fixture
def measure(problem, gains, monkeypatch):
    """measure(strengths, executor, weak, **settings) -> the LimitSearch, at its end."""

    def run(strengths, executor=None, weak=(), **settings):
        settings = LimitSettings(**({"sequences": len(strengths), "phases": 2} | settings))
        fakes = Fakes(settings, strengths, weak)
        monkeypatch.setattr(polling, "Remote", lambda f: getattr(fakes, f.__name__))
        search = LimitSearch(problem, gains, settings, executor or SerialExecutor())
        search.fakes = fakes
        list(search.run())
        return search

    return run


def told(search):
    """Everything but how long it took."""
    report = search.outcome().as_dict()
    del report["wall"]
    return report


# --- The limit ----------------------------------------------------------------------------------


def test_the_limit_is_the_last_that_enough_sequences_stand(measure):
    search = measure([60, 70, 80, 90, 100, 110, 120, 130, 140, 150])
    outcome = search.outcome()
    passed = {rate.magnitude: (rate.passed, rate.count) for rate in outcome.rates}
    assert passed[0] == passed[60] == (10, 10)
    assert passed[80] == (8, 10) and passed[100] == (6, 10)
    assert outcome.limit == 80 and outcome.found and outcome.ended == "measured"
    assert outcome.limits == [60, 60, 80, 80, 100, 100, 120, 120, 140, 140]
    assert measure(range(60, 160, 10), share=1.0).limit == 60
    assert measure(range(60, 160, 10), share=0.1).limit == 140


def test_it_ends_when_none_stand_twice(measure):
    rates = measure([60, 60, 100]).rates
    assert [rate.magnitude for rate in rates] == [0, 20, 40, 60, 80, 100, 120, 140]
    assert [rate.passed for rate in rates[-3:]] == [1, 0, 0]


def test_what_is_withstood_after_a_fall_does_not_count(measure):
    search = measure([120, 120], weak=(60,))
    assert [rate.passed for rate in search.rates[:6]] == [2, 2, 2, 0, 2, 2]
    assert search.limit == 40 and search.outcome().limits == [40, 40]


def test_steps_are_exact(measure):
    search = measure([0.95], start=0.1, step=0.1)
    assert [rate.magnitude for rate in search.rates[:4]] == [0, 0.1, 0.2, 0.1 + 2 * 0.1]
    assert search.limit == pytest.approx(0.9)


def test_speed_is_impulse_per_mass(measure, problem):
    outcome = measure([100]).outcome()
    mass = problem.character.mass
    rate = next(rate for rate in outcome.rates if rate.magnitude == 100)
    assert rate.speed == pytest.approx(100 * 0.2 / mass) == outcome.speed(100)
    spheres = replace(outcome, settings=LimitSettings("spheres"))
    assert spheres.speed(2.0) == pytest.approx(2.0 * 5.0 / mass) and spheres.unit == "kg"


def test_what_falls_undisturbed_has_no_limit(measure):
    search = measure([-1, -1, 100])
    outcome = search.outcome()
    assert outcome.ended == "falls" and outcome.limit == 0 and outcome.found
    assert outcome.rates[0].passed == 1 and len(outcome.rates) == 1
    assert (outcome.fell_at, outcome.fell_measure) == (2.0, "pose_error")
    assert outcome.single == [] and outcome.worst is None
    json.dumps(outcome.as_dict(), allow_nan=False)


def test_single_ones_come_from_everywhere_at_every_phase(measure):
    search = measure([60], directions=8, phases=4)
    outcome = search.outcome()
    assert np.shape(outcome.single) == np.shape(outcome.bounds) == (4, 8)
    assert {share for _, _, share in search.fakes.single} == {0, 0.25, 0.5, 0.75}
    assert sorted({angle for _, angle, _ in search.fakes.single}) == pytest.approx(
        np.arange(8) * math.pi / 4
    )
    assert len({seed for seed, _, _ in search.fakes.single}) == 4
    # The worst phase is the last one, where they are 40 * 0.75 N weaker.
    assert outcome.worst[0, 0] == 170 and outcome.worst[1, 0] == 150
    report = outcome.as_dict()
    assert report["worst_phase"][2]["angle"] == pytest.approx(math.pi / 2)
    assert report["measure"] == "push_limit" and report["units"]["limit"] == "N"
    assert report["seeds"]["sequences"] == LimitSettings(sequences=1).seeds()
    assert {"mass", "height", "clip", "rate", "physics_rate", "engine"} <= report.keys()
    json.dumps(report, allow_nan=False)


def test_without_phases_there_are_no_directions(measure):
    outcome = measure([60], phases=0).outcome()
    assert outcome.limit == 60 and outcome.single == [] and outcome.ended == "measured"


# --- Going on -----------------------------------------------------------------------------------


class Later(Executor):
    """Does what is submitted when it is asked, the last first."""

    def __init__(self):
        self.waiting = []

    def submit(self, function, /, *arguments):
        future = Future()
        self.waiting.append((future, function, arguments))
        return future

    def work(self):
        for future, function, arguments in reversed(self.waiting):
            if future.set_running_or_notify_cancel():
                future.set_result(function(*arguments))
        self.waiting.clear()


@pytest.fixture
def begin(problem, gains, monkeypatch):
    """begin(strengths, **settings) -> (LimitSearch that is not polled yet, its executor)."""

    def make(strengths, **settings):
        settings = LimitSettings(**({"sequences": len(strengths), "phases": 2} | settings))
        fakes = Fakes(settings, strengths)
        monkeypatch.setattr(polling, "Remote", lambda f: getattr(fakes, f.__name__))
        executor = Later()
        return LimitSearch(problem, gains, settings, executor), executor

    return make


def test_the_order_in_which_trials_end_has_no_influence(begin, measure):
    search, executor = begin([60, 70, 80])
    while not search.poll():
        executor.work()
    assert told(search) == told(measure([60, 70, 80]))


def test_stopped_it_keeps_what_is_measured(begin):
    search, executor = begin([60, 70, 80])
    while len(search.rates) < 3:
        search.poll()
        executor.work()
    search.poll()  # hands out more
    assert [rate.magnitude for rate in search.rates] == [0, 20, 40]
    assert search.time_left() > 0
    search.stop()
    assert search.poll()
    assert executor.waiting and all(future.cancelled() for future, *_ in executor.waiting)
    outcome = search.outcome()
    assert outcome.ended == "stopped" and outcome.limit == 40 and not outcome.found
    assert outcome.seconds == 9 * 20.0


def test_a_budget_that_is_over_ends_it(begin, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(polling.time, "monotonic", lambda: now[0])
    search, executor = begin([60, 70], budget=10.0)
    search.poll()
    executor.work()
    search.poll()
    now[0] = 10.5
    assert search.poll()
    outcome = search.outcome()
    assert outcome.ended == "budget" and len(outcome.rates) == 1 and not outcome.found


def test_workers_that_are_shut_down_are_told_of(begin):
    search, executor = begin([60])
    search.poll()
    for future, *_ in executor.waiting:
        future.cancel()
        future.set_running_or_notify_cancel()
    with pytest.raises(ExecutorError, match="shut down"):
        search.poll()


def test_errors_of_trials_are_raised(standing):
    fall = np.clip(0.5 - np.arange(len(standing)) / 30, 0, None)[:, None, None]
    landing = replace(standing, positions=standing.positions + fall * [0, 0, 1])
    problem = Problem(landing, settings=Settings(duration=1.0))
    gains = Gains.default(problem.character)
    search = LimitSearch(problem, gains, LimitSettings(sequences=1), SerialExecutor())
    with pytest.raises(MotionError, match="starts in the air"):
        list(search.run())


# --- Settings and seeds -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "stones"}, "no kind 'stones': use pushes, spheres"),
        ({"step": 0.0}, "A push of 0 N is out of range: give 0.1 to 100000 N"),
        ({"start": -20.0}, "A push of -20 N"),
        ({"kind": "spheres", "step": math.inf}, "A sphere of inf kg"),
        ({"sequences": 0}, "number of sequences of 0 is out of range: give 1 to 1000"),
        ({"share": 0.0}, "share of 0 is out of range"),
        ({"directions": 3}, "number of directions of 3 is out of range: give 4"),
        ({"phases": -1}, "number of moments of -1"),
        ({"seed": -1}, "seed of -1"),
        ({"target": 2.5}, "A reward of 2.5 is out of range"),
        ({"budget": 0.0}, "budget of 0 s is out of range"),
    ],
)
def test_odd_settings_are_refused(settings, message):
    with pytest.raises(SettingsError, match=message) as caught:
        LimitSettings(**settings)
    assert str(caught.value).endswith(".")


def test_the_start_is_a_step_unless_given():
    assert LimitSettings().start == LimitSettings().step == 20.0
    assert LimitSettings("spheres").start == 0.25
    assert LimitSettings(step=5.0).start == 5.0 and LimitSettings(start=60.0).step == 20.0


def test_no_search_for_gains_sees_these_seeds(problem, gains):
    seeds = LimitSettings(sequences=50).seeds() + LimitSettings(phases=50).phase_seeds()
    assert len(set(seeds)) == 100
    assert LimitSettings(sequences=10).seeds() == LimitSettings(sequences=50).seeds()[:10]
    assert not set(LimitSettings(seed=1, sequences=50).seeds()) & set(seeds)
    # Searches draw theirs from what lies below.
    search = Search(problem, gains, SearchSettings(), SerialExecutor())
    drawn = [search._noise(purpose, index) for purpose in range(4) for index in range(200)]
    assert max(drawn) < min(seeds)


# --- What feet in place can do ------------------------------------------------------------------


def test_from_inside_a_hull_to_its_edge():
    square = np.array([[-1, -1], [3, -1], [3, 2], [-1, 2], [0, 0], [1, 1]], float)
    right, diagonal = np.array([1.0, 0.0]), np.array([1.0, 1.0]) / math.sqrt(2)
    assert ray_to_edge(square, np.zeros(2), right) == pytest.approx(3)
    assert ray_to_edge(square, np.zeros(2), -right) == pytest.approx(1)
    assert ray_to_edge(square, np.zeros(2), diagonal) == pytest.approx(2 * math.sqrt(2))
    assert ray_to_edge(square, np.array([3.5, 0.0]), right) == 0
    assert ray_to_edge(square, np.array([-2.0, 0.0]), right) == 0
    assert ray_to_edge(square, np.array([0.0, 5.0]), right) == 0
    # Two soles apart: the hull between them counts.
    soles = np.array([[0, 1], [1, 1], [0, -1], [1, -1]], float)
    assert ray_to_edge(soles, np.array([0.5, 0.0]), right) == pytest.approx(0.5)


def test_capture_speed_is_what_a_pendulum_can_catch():
    reach, height, duration = 0.1, 0.95, 0.2
    omega = math.sqrt(GRAVITY / height)
    assert capture_speed(reach, height) == pytest.approx(omega * reach)
    assert capture_speed(reach, height, 1e-6) == pytest.approx(omega * reach, rel=1e-4)
    # The pendulum itself, pressure at the edge from the start: with a little less it comes back.
    speed = capture_speed(reach, height, duration)
    assert speed > 1.2 * omega * reach
    for factor, falls in ((0.99, False), (1.01, True)):
        position, velocity, step = 0.0, 0.0, 1e-4
        for i in range(round(3 / step)):
            push = factor * speed / duration if i * step < duration else 0.0
            velocity += step * (omega**2 * (position - reach) + push)
            position += step * velocity
        assert (position > reach) == falls


def test_bounds_of_someone_who_stands_are_those_of_the_soles(problem):
    character, reference = problem.character, problem.reference
    front, left, back, right = capture_bounds(
        character, reference, 60.0, [1.0], np.arange(4) * math.pi / 2
    )[0]
    corners = character.sole_corners(reference.smooth.joints[:1], reference.smooth.frames[:1])
    com = reference.goals[0, 0]
    omega = math.sqrt(GRAVITY / (com[2] - character.ground))
    x, y = corners[0, ..., 0], corners[0, ..., 1]
    assert front == pytest.approx(omega * (x.max() - com[0]), rel=0.01)
    assert back == pytest.approx(omega * (com[0] - x.min()), rel=0.01)
    assert left == pytest.approx(omega * y.max(), rel=0.01) == pytest.approx(right, rel=0.01)
    # 0.00087 m for each N at 71 kg: an adult is caught up to a hundred newtons or so.
    assert 60 < front * character.mass / PUSH_DURATION < 200


def test_directions_turn_with_the_character(standing):
    turn = np.array([math.cos(math.pi / 4), 0, 0, math.sin(math.pi / 4)])  # a quarter to the left
    turned = replace(
        standing,
        rotations=multiply(np.broadcast_to(turn, standing.rotations.shape), standing.rotations),
        positions=standing.positions @ matrix_from_quaternion(turn).T,
    )
    angles = np.arange(8) * math.pi / 4
    found = []
    for motion in (standing, turned):
        problem = Problem(motion, settings=Settings(duration=2.0))
        found.append(capture_bounds(problem.character, problem.reference, 60.0, [1.0], angles))
    assert np.allclose(*found, rtol=0.02)
    assert found[0].max() > 1.2 * found[0].min()


# --- Single disturbances ------------------------------------------------------------------------


@pytest.mark.parametrize("strength", [0.0, 35.0, 79.0, 80.0, 155.0, 163.0, 1234.0])
def test_single_ones_are_found_to_the_step(problem, gains, monkeypatch, strength):
    tried = []

    def stands(_problem, _gains, _seed, _kind, magnitude, _angle, _share):
        tried.append(magnitude)
        return magnitude <= strength, 4.0

    monkeypatch.setattr(robustness, "_stands", stands)
    result = withstand(problem.to_bytes(), gains.as_dict(), 1, "pushes", 10.0, 0.0, 0.5)
    assert result["limit"] == 10 * (strength // 10)
    assert result["seconds"] == 4.0 * len(tried) and len(tried) <= 12
    assert len(set(tried)) == len(tried) and 0 not in tried


def test_gains_of_another_character_are_told_of(problem, gains):
    data = gains.as_dict()
    del data["stiffness"]["knee_pitch"]
    result = withstand(problem.to_bytes(), data, 1, "pushes", 10.0, 0.0, 0.0)
    assert result["error"][0] == "GainsError" and "knee_pitch" in result["error"][1]


@pytest.mark.slow(captured=False)
@pytest.mark.parametrize(
    ("kind", "little", "much"), [("pushes", 20.0, 1500.0), ("spheres", 0.2, 40.0)]
)
def test_a_body_withstands_little_and_not_much(problem, gains, kind, little, much):
    data, payload = gains.as_dict(), problem.to_bytes()
    gains = Gains.from_dict(data, problem.character)
    problem = Problem.from_bytes(payload)
    for magnitude, expected in ((little, True), (much, False)):
        stands, seconds = robustness._stands(problem, gains, 1, kind, magnitude, 1.0, 0.0)
        assert stands == expected
        assert (seconds >= 1 + robustness.WATCH) == expected


@pytest.mark.slow
def test_workers_find_the_same(standing):
    # On feet that stay in place, which the bound is for: steps catch more.
    settings = Settings(duration=20.0, noise=5.0, recovery_steps=False)
    problem = Problem(standing, settings=settings)
    gains = Gains.default(problem.character)
    settings = LimitSettings(sequences=2, step=60.0, directions=4, phases=1)
    reports = []
    for executor in (SerialExecutor(), WorkerPool(2)):
        with executor:
            search = LimitSearch(problem, gains, settings, executor)
            list(search.run())
        reports.append(told(search))
        del reports[-1]["cpu"]
    assert reports[0] == reports[1]
    (front, left, back, right), bound = search.outcome().worst
    assert abs(left - right) <= 30
    # Hips and arms help a little; balance that is not tuned reaches half of the rest.
    assert (np.array([front, left, back, right]) > 0.4 * bound).all()
    assert (np.array([front, left, back, right]) < 1.4 * bound).all()
    assert 0 < search.limit < 300

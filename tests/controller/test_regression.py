# SPDX-License-Identifier: GPL-3.0-or-later
"""Walks that go by samples of what was done: what is compared, looked up, and added."""

import importlib

import numpy as np
import pytest

from poise.controller import Character, Gains, Settings
from poise.controller.control.legs import Legs
from poise.controller.exceptions import CheckpointError, SettingsError
from poise.controller.geometry.rotations import exponential, matrix_from_quaternion, rotation_about
from poise.controller.processes.workers import SerialExecutor, WorkerPool
from poise.controller.reference.gait import Walk
from poise.controller.search.trial import Problem
from poise.controller.skills import refinement, regression
from poise.controller.skills.refinement import Refinement
from poise.controller.skills.regression import ANGLES, FEET, Attempt, Features, Samples

# --- What is compared -----------------------------------------------------------------------------


def pose(body, seed=0):
    """A random pose with random speeds, as World.reset takes it."""
    random = np.random.default_rng(seed)
    angles = np.minimum(random.uniform(-0.3, 0.3, body.dofs), body.limits[:, 1] - 0.1)
    return {
        "root": np.array([0.3, -0.2, 1.1]),
        "frame": matrix_from_quaternion(exponential(random.normal(0, 0.3, 3))),
        "linear": random.normal(0, 1, 3),
        "angular": random.normal(0, 1, 3),
        "angles": np.maximum(angles, body.limits[:, 0] + 0.1),
        "speeds": random.normal(0, 1, body.dofs),
    }


def test_features_know_neither_heading_nor_place(adult, world):
    features, here = Features(adult, world.floor), pose(adult)
    world.reset(**here)
    found = features.of(world.state())
    turn = rotation_about(2, 2.1)
    there = here | {name: turn @ here[name] for name in ("root", "frame", "linear", "angular")}
    world.reset(**there | {"root": turn @ here["root"] + [4.0, -7.0, 0.0]})
    assert features.of(world.state()) == pytest.approx(found, abs=1e-3)
    world.reset(**here | {"root": here["root"] + [0.0, 0.0, 0.1]})
    assert np.abs(features.of(world.state()) - found).max() == pytest.approx(0.1, abs=1e-3)


def test_speeds_of_ankles_are_how_they_move_as_seen_from_the_pelvis(adult, world):
    """Central differences of where the ankles are, which are features themselves."""
    features, here, step = Features(adult, world.floor), pose(adult, 1), 1e-3
    still = {"linear": np.zeros(3), "angular": np.zeros(3)}
    places = []
    for side in (-1, 1):
        world.reset(**here | still | {"angles": here["angles"] + side * step * here["speeds"]})
        places.append(features.of(world.state())[-16:-10] / FEET)
    world.reset(**here | still)
    moved = (places[1] - places[0]) / (2 * step)
    assert features.of(world.state())[-10:-4] == pytest.approx(moved, abs=2e-3)
    assert np.abs(moved).max() > 0.1


def test_what_touches_is_felt_of_heels_and_balls(adult, world):
    count = adult.dofs
    flat = {"frame": np.eye(3), "linear": np.zeros(3), "angular": np.zeros(3)}
    flat |= {"angles": np.zeros(count), "speeds": np.zeros(count)}
    world.reset(np.array([0.0, 0.0, 3.0]), **flat)
    features = Features(adult, world.floor)
    ankle = world.state().positions[2, 2]
    assert features.of(world.state())[-4:].tolist() == [0, 0, 0, 0]
    height = 3.0 - ankle + world.floor + adult.feet[0].depth
    world.reset(np.array([0.0, 0.0, height]), **flat)
    assert features.of(world.state())[-4:].tolist() == [1, 1, 1, 1]
    raised = flat["angles"].copy()
    pitch = Legs(adult).dofs.start + 4  # of the left ankle
    raised[pitch] = 0.4
    world.reset(np.array([0.0, 0.0, height]), **flat | {"angles": raised})
    assert features.of(world.state())[-4:].tolist() == [0, 1, 1, 1], "its heel is up, nose down"
    assert features.of(world.state())[pitch] == pytest.approx(0.4 * ANGLES)


# --- What is looked up ----------------------------------------------------------------------------


def samples(places, phases):
    return Samples(np.array(places, float)[:, None], np.array(phases, float))


def test_the_phase_is_a_mean_by_the_inverse_of_distances():
    pair = samples([0.0, 1.0], [0.2, 0.3])
    phase, apart = pair.look_up(np.array([0.25]))
    turns = np.exp(2j * np.pi * np.array([0.2, 0.3])) / [0.25, 0.75]
    assert (phase, apart) == (pytest.approx(np.angle(turns.sum()) / (2 * np.pi)), 0.25)
    assert pair.look_up(np.array([1.0])) == (0.3, 0.0), "which is there already"


def test_the_end_of_a_cycle_is_beside_its_beginning():
    phase, _ = samples([0.0, 1.0], [0.98, 0.02]).look_up(np.array([0.5]))
    assert min(phase, 1 - phase) == pytest.approx(0.0, abs=1e-9)


def test_only_the_nearest_count():
    places = [0.0, *np.linspace(1.0, 1.4, regression.NEIGHBOURS - 1), 2.0]
    known = samples(places, [0.5] * regression.NEIGHBOURS + [0.1])
    assert known.look_up(np.array([0.7]))[0] == pytest.approx(0.5)


def test_without_scipy_a_sentence_says_what_to_do(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(SettingsError, match="looked up with SciPy, which is not installed: pip"):
        samples([0.0, 1.0], [0.1, 0.2]).look_up(np.array([0.5]))


# --- Walks ----------------------------------------------------------------------------------------


@pytest.fixture
def walking(walker):
    """(Problem, Gains) of the captured walk, which can go on for 5 s, under motor noise."""
    character, motion, cycle = walker
    endless = Walk(cycle, 15.0).motion(character, motion)
    problem = Problem(endless, character.mass, Settings(noise=5.0))
    return problem, Gains.default(problem.character)


def clocked(problem, gains, seconds):
    """An Attempt that has gone by the clock for so long [s]."""
    attempt = Attempt(problem, gains, 0)
    attempt.go_on(seconds)
    attempt.close()
    return attempt


def incomplete(problem, gains):
    """Samples of a walk without those of 0.3 of its cycle."""
    whole = clocked(problem, gains, 6.0).seen()
    part = (whole.phases > 0.15) & (whole.phases < 0.85)
    return Samples(whole.features[part], whole.phases[part])


@pytest.mark.slow(captured=False)
def test_by_the_clock_it_walks_as_ever(walking):
    problem, gains = walking
    simulation = problem.simulation(gains, 0)
    for sample in simulation:
        if sample == round(2.0 * problem.motion.rate):
            break
    simulation.close()
    walked = clocked(problem, gains, 2.0)
    assert np.array(walked.com) == pytest.approx(simulation.recording.com, abs=1e-12)


@pytest.mark.slow(captured=False)
def test_by_samples_it_walks_on_wherever_its_clock_is(walking):
    """Its clock is put forward, and back: it is in the phase again in which its body is."""
    problem, gains = walking
    known = clocked(problem, gains, 6.0).seen()
    attempt = Attempt(problem, gains, 1, known)
    try:
        assert attempt.go_on(3.5)
        controller = attempt._controller
        before, step = controller.ahead, round(3.5 * problem.reference.rate)
        for late in (-20, 20):  # steps, of about 340 in a cycle
            controller.ahead = before + late
            controller._look(step)
            assert abs(controller.ahead - before) < 7
        assert attempt.go_on(5.0)
    finally:
        attempt.close()


@pytest.mark.slow(captured=False)
def test_who_strays_goes_back_and_learns(walking):
    """Of incomplete samples, it adds what the clock does where these are missing."""
    problem, gains = walking
    known = incomplete(problem, gains)
    attempt = Attempt(problem, gains, 1, known)
    try:
        stands = attempt.go_on(5.0, rescues=3)
    finally:
        attempt.close()
    assert 1 <= attempt.added <= 3
    new = attempt.samples.phases[len(known) :]
    assert ((new <= 0.15) | (new >= 0.85)).any(), "of what was missing, too"
    assert stands and attempt.seconds == 5.0
    assert (attempt.samples.features[: len(known)] == known.features).all()


@pytest.mark.slow(captured=False)
def test_refinement_is_the_same_however_many_work_on_it_and_after_a_stop(
    walking, monkeypatch, tmp_path
):
    problem, gains = walking
    known = incomplete(problem, gains)
    monkeypatch.setattr(refinement, "WALKS", 2)
    monkeypatch.setattr(refinement, "_GENERATIONS", 2)
    path = tmp_path / "walk.checkpoint"

    def made(executor, **more):
        return Refinement(problem, gains, known, 4.5, executor, seed=3, **more)

    with WorkerPool(2) as pool:
        both = made(pool)
        told = list(both.run())
    begun = made(SerialExecutor(), checkpoint=path)
    next(begun.run())
    begun.stop()
    resumed = made(SerialExecutor(), checkpoint=path)
    assert resumed.generations == told[:1]
    assert [*resumed.run()] == told[1:] and resumed.ended == both.ended
    assert (resumed.samples.features == both.samples.features).all()
    assert len(both.samples) == told[-1].samples > len(known)
    assert both.longest == max(max(one.stood) for one in told) == 4.5
    with pytest.raises(CheckpointError, match="belongs to another refinement"):
        Refinement(problem, gains, known + known, 4.5, SerialExecutor(), seed=3, checkpoint=path)


def test_a_walk_of_nothing_says_so(walking):
    problem, _ = walking
    told = refinement.walked(problem.to_bytes(), {"no": "gains"}, 0, None, 1.0)
    kind, sentence = told["error"]
    assert kind == "GainsError" and sentence
    assert isinstance(problem.character, Character)

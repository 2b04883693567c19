# SPDX-License-Identifier: GPL-3.0-or-later
"""SCA12's measures on made-up trials."""

import numpy as np
import pytest

from poise.controller.geometry.stance import DUAL, FLIGHT, LEFT, RIGHT
from poise.controller.simulation.measures import MAXIMA, MEASURES, Measures, pose_error, slide_speed


def run(measures, samples, **errors):
    values = {"pose": 0.0, "stance_differs": False, "slide": 0.0, "torque": 0.0, **errors}
    return [measures.add(*values.values()) for _ in range(samples)]


def test_a_perfect_trial_earns_two():
    measures = Measures(10.0)
    assert all(run(measures, 201))
    assert measures.reward(20.0) == pytest.approx(2.0)


@pytest.mark.parametrize("seconds", [20, 5])
def test_reward_of_equation_21(seconds):
    """With the paper's maxima of 0.1 m, 0.5, 0.25 m/s and 1000 N m, its 20 s and its bonus of 1."""
    measures = Measures(2.0)  # so that a window is never shorter than a sample
    rest = {"pose": 0.025, "slide": 0.125, "torque": 750}
    samples = 2 * seconds + 1
    assert all(run(measures, samples - 5, **rest))
    # One sample in the four that a window of 2 s has, so four of all have a stance error of 1/4.
    assert all(run(measures, 1, stance_differs=True, **rest)) and all(run(measures, 4, **rest))
    shares = 0.75, 1 - (4 * 0.25 / samples) / 0.5, 0.5, 0.25
    assert measures.reward(20.0) == pytest.approx(seconds / 20 * (1 + sum(shares) / 4))


def test_the_maxima_are_the_papers():
    own = {"pose_error": 0.1, "stance_error": 0.5, "slide_error": 0.25, "torque_error": 1000}
    assert own == MAXIMA


def test_a_fall_ends_the_trial_and_names_the_measure():
    measures = Measures(10.0)
    run(measures, 50)
    assert not measures.add(0.11, False, 0, 0)
    assert measures.fell_at == pytest.approx(5.0)
    assert measures.fell_measure == "pose_error"
    assert measures.reward(20.0) < 0.25 * 2


def test_nan_is_a_fall():
    assert not Measures(10.0).add(float("nan"), False, 0, 0)


def test_windows_forget_after_two_seconds():
    measures = Measures(10.0)
    run(measures, 20, slide=0.2)
    assert measures.values[-1][2] == pytest.approx(0.2)
    run(measures, 20)
    assert measures.values[-1][2] == pytest.approx(0, abs=1e-12)


def test_the_first_steps_weigh_little():
    """A window is at least half a second, else one sample could end the trial."""
    measures = Measures(10.0)
    assert measures.add(0, True, 0, 0)
    assert measures.values[0][1] == pytest.approx(1 / 5)


def test_slide_counts_the_feet_that_stand():
    speeds = (0.1, 0.3)
    states = {DUAL: 0.4, LEFT: 0.1, RIGHT: 0.3, FLIGHT: 0.0}
    assert {s: slide_speed(s, speeds) for s in states} == pytest.approx(states)


def test_pose_error_ignores_a_shift():
    random = np.random.default_rng(0)
    centres, shares = random.normal(size=(5, 3)), np.full(5, 0.2)
    shift = np.array([1.0, 2, 3])
    com = shares @ centres
    assert pose_error(shares, centres + shift, com + shift, centres, com) == pytest.approx(0)
    moved = centres.copy()
    moved[0] += [0, 0, 1]
    error = pose_error(shares, moved, shares @ moved, centres, com)
    # One body 0.8 m from where it was beside the mean, four 0.2 m: mean 0.32 m.
    assert error == pytest.approx(0.32)


def test_a_trial_can_only_end_early_by_a_measure_past_half_its_maximum():
    measures = Measures(60.0)
    measures.add(0.02, False, 0.05, 300.0)
    assert not measures.end_fall()
    assert measures.fell_at is None
    measures.add(0.08, False, 0.05, 300.0)
    assert measures.end_fall()
    assert (measures.fell_at, measures.fell_measure) == (1 / 60, "pose_error")


def test_what_is_beyond_its_limit_never_reads_as_if_it_were_not():
    told = MEASURES["pose_error"].told_of
    assert "0.1003 m away" in told(0.10031, 0.1) and "0.106 m away" in told(0.1063, 0.1)
    assert "50.3% of" in MEASURES["stance_error"].told_of(0.503, 0.5)

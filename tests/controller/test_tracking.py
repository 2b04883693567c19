# SPDX-License-Identifier: GPL-3.0-or-later
"""Proportional-derivative control of one hinge against the closed-form damped oscillator."""

import numpy as np
import pytest

from poise.controller.control import tracking

INERTIA, STIFFNESS, DAMPING, START = 0.8, 50.0, 3.0, 0.4


def oscillator(time):
    """Angle of I q'' + k_d q' + k_p q = 0 from rest at START."""
    decay = DAMPING / (2 * INERTIA)
    omega = np.sqrt(STIFFNESS / INERTIA - decay**2)
    return (
        START
        * np.exp(-decay * time)
        * (np.cos(omega * time) + decay / omega * np.sin(omega * time))
    )


def simulate(mode, step, seconds, stiffness=STIFFNESS, damping=DAMPING):
    """Angles of the hinge beside a root that nothing turns, with Bullet's own integrator."""
    tracker = tracking.make(mode, np.array([stiffness]), np.array([damping]), step)
    matrix = np.diag([1.0] * 6 + [INERTIA])
    tracker.refresh(matrix)
    q, v, path = START, 0.0, [START]
    for _ in range(round(seconds / step)):
        zero = np.zeros(1)
        torque = tracker.torques(np.array([q]), np.array([v]), zero, zero, np.zeros(7))[0]
        v += step * torque / INERTIA
        q += step * v
        path.append(q)
    return np.array(path)


@pytest.mark.parametrize("mode", tracking.MODES)
def test_approaches_the_closed_form(mode):
    """The error is of first order in the step."""
    errors = []
    for step in (2e-3, 1e-3, 5e-4):
        path = simulate(mode, step, 1.0)
        errors.append(np.abs(path - oscillator(np.arange(len(path)) * step)).max())
    assert errors[-1] < 0.002
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.1)
    assert errors[1] / errors[2] == pytest.approx(2, rel=0.1)


def test_stable_pd_is_the_implicit_step():
    """With the whole inertia known, a step's torque is that of the angle the old speed leads to
    (here: none) and of the speed at the step's end."""
    step = 0.02
    path = simulate("stable_pd", step, step)
    v = (path[1] - path[0]) / step
    implied = -STIFFNESS * START - DAMPING * v
    assert INERTIA * v / step == pytest.approx(implied)


def test_stable_pd_holds_where_explicit_pd_diverges():
    stiff = {"stiffness": 1e5, "damping": 1e4}
    assert np.abs(simulate("stable_pd", 1 / 100, 2.0, **stiff)).max() <= START
    with np.errstate(over="ignore", invalid="ignore"):
        wild = simulate("explicit_pd", 1 / 100, 2.0, **stiff)
    assert not np.abs(wild[-1]) < 1e6


def test_known_forces_are_foreseen():
    """A force that acts anyway changes the torque only through the damping at the step's end."""
    step, known = 0.01, np.zeros(7)
    known[6] = 4.0
    tracker = tracking.make("stable_pd", np.array([STIFFNESS]), np.array([DAMPING]), step)
    tracker.refresh(np.diag([1.0] * 6 + [INERTIA]))
    still = np.zeros(1)
    torque = tracker.torques(still, still, still, still, known)[0]
    speed = step * (torque + known[6]) / INERTIA
    # The proportional term sees the angle of the old speed, the damping that of the new one.
    assert torque == pytest.approx(-DAMPING * speed)


@pytest.mark.parametrize("mode", tracking.MODES)
def test_stiffer_joints_are_as_those_of_that_stiffness(mode):
    random = np.random.default_rng(3)
    angles, speeds, target, target_speeds = random.normal(size=(4, 2))
    stiffness, damping = np.array([300.0, 500.0]), np.array([30.0, 50.0])
    inertia, known = np.diag(random.uniform(1, 3, 8)), random.normal(size=8)
    found = []
    for own, stiffer in ((stiffness, np.array([1.0, 4.0])), (stiffness * [1, 4], 1.0)):
        tracker = tracking.make(mode, own, damping, 1 / 300)
        tracker.refresh(inertia)
        found.append(tracker.torques(angles, speeds, target, target_speeds, known, stiffer))
    assert np.allclose(*found)

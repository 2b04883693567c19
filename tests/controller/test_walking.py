# SPDX-License-Identifier: GPL-3.0-or-later
"""When a walk's legs reach out, and when its body is drawn home."""

from types import SimpleNamespace

import numpy as np
import pytest

from poise.controller import Character, Settings, Simulation
from poise.controller.control.walking import _soon
from poise.controller.reference.reference import _load

RATE = 300.0


def test_a_body_is_drawn_home_just_before_a_foot_lands():
    phases = np.full((900, 2), -1.0)
    phases[300:420, 0] = np.linspace(0, 1, 120)  # lands at 1.4 s, and none after it
    soon = _soon(phases, RATE)
    time = np.arange(900) / RATE
    assert (soon[(time > 0.91) & (time < 1.4)] == 1).all()
    assert (soon[time < 0.69] == 0).all() and (soon[time > 1.41] == 0).all()
    assert (np.diff(soon[time < 1.4]) >= 0).all()


def test_a_foot_that_is_about_to_go_is_hardly_pressed_on():
    """Its share of the weight is small when it goes, and when it has just come."""
    contacts = np.ones((120, 2), bool)
    contacts[40:80, 0] = False
    load = _load(contacts, 60.0)
    assert (load[:, 1] == 1).all()
    assert load[20, 0] == 1 and load[100, 0] == 1 and (load[46:74, 0] == 0).all()
    assert load[39, 0] < 0.35 and load[80, 0] < 0.35
    assert (np.diff(load[:40, 0]) <= 0).all() and (np.diff(load[80:, 0]) >= 0).all()


@pytest.fixture
def stepping(make_motion):
    """A Simulation that has begun: a person lifts the left foot for half a second."""

    def lift(time):
        x = np.clip(1 - np.abs(time - 1.0) / 0.4, 0, 1)
        bend, zero = 0.8 * x * x * (3 - 2 * x), np.zeros_like(time)
        turns = {"thigh_l": -bend, "shin_l": 2 * bend, "foot_l": -bend}
        return {name: np.stack([zero, turn, zero], 1) for name, turn in turns.items()}

    motion = make_motion(seconds=2.0, sway=lift)
    # Away, so that it walks.
    motion.positions[..., 0] += 0.4 * np.arange(len(motion))[:, None] / len(motion) * 2
    simulation = Simulation(Character.from_motion(motion), motion, settings=Settings())
    simulation.begin()
    yield simulation
    simulation.close()


def test_legs_in_the_air_are_stiffer(stepping):
    balance = stepping.controller.balance
    air = np.flatnonzero(stepping.reference.support[:-2] == 2)
    assert len(air)
    stiffer = balance.stiffer(int(air[len(air) // 2]))
    left = np.arange(len(stiffer))[balance.legs.dofs][:7]
    assert (stiffer[left] == stiffer.max()).all() and stiffer.max() == 4
    assert (np.delete(stiffer, left) == 1).all()
    stands = int(np.flatnonzero(stepping.reference.support == 3)[0])
    assert np.all(balance.stiffer(stands) == 1)


def test_feet_that_stay_are_home(stepping):
    """Where no foot lands soon, a body whose feet stand elsewhere is not drawn off them."""
    balance = stepping.controller.balance
    balance.legs.soles = [SimpleNamespace(x=0.0, y=y) for y in (0.1, -0.1)]
    balance.stepping.offsets[:] = (0.05, 0.02)
    stands = int(np.flatnonzero(balance.stepping._soon == 0)[0])
    home = -balance.stepping.offsets[0]
    assert balance._way_back(stands, *home) == pytest.approx((0, 0), abs=1e-12)
    lands = int(np.flatnonzero(balance.stepping._soon == 1)[0])
    assert balance._way_back(lands, *home) == pytest.approx(balance.drift_gain * home)

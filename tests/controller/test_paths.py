# SPDX-License-Identifier: GPL-3.0-or-later
"""What a motion leaves behind: paths of free fall, flights and footprints."""

import numpy as np
import pytest

from poise.controller import Simulation
from poise.controller.body.momentum import GRAVITY
from poise.controller.body.paths import Animated, Performed, fall, footprints
from poise.controller.geometry.skeleton import FEET
from poise.controller.geometry.stance import AIR, BALL, HEEL, SOLE, flights, leaves_floor

RATE = 60.0


def test_a_fall_is_what_gravity_and_its_ends_make_it():
    """h = v t - g t^2 / 2 sideways at constant speed: a throw at 2 m/s up and 1 m/s ahead."""
    time = np.arange(19) / RATE
    thrown = np.stack([time, 0 * time, 0.9 + 2 * time - GRAVITY / 2 * time**2], 1)
    assert np.allclose(fall(thrown[0], thrown[-1], 18, RATE), thrown, atol=1e-12)


def test_who_is_in_the_air_for_long_must_rise_high():
    """g T^2 / 8: half a second takes 31 cm, however little an animation gives it."""
    arc = fall(np.zeros(3), np.zeros(3), 30, RATE)
    assert arc[:, 2].max() == pytest.approx(GRAVITY * 0.5**2 / 8)
    assert arc[[0, -1]] == pytest.approx(0)
    assert np.diff(arc[:, 2], 2) == pytest.approx(-GRAVITY / RATE**2)


def test_a_fall_of_no_time_is_where_it_is():
    assert fall(np.ones(3), np.ones(3), 0, RATE) == pytest.approx(np.ones((1, 3)))


def test_a_flight_lasts_longer_than_a_moment():
    stands = np.ones(40, bool)
    stands[5:8] = stands[20:24] = stands[36:] = False  # 0.05, 0.067 and 0.067 s
    assert flights(stands, RATE) == [(20, 24), (36, 40)]
    assert leaves_floor(np.stack([stands, stands], 1), RATE)
    assert not leaves_floor(np.stack([stands, ~stands], 1), RATE)


def test_a_footprint_is_of_the_whole_sole_if_that_ever_stands():
    left = [AIR, HEEL, SOLE, SOLE, SOLE, BALL, SOLE, AIR, BALL, BALL]
    right = [HEEL, HEEL, HEEL, AIR, AIR, AIR, AIR, AIR, AIR, AIR]
    corners = np.zeros((10, 2, 6, 3)) + np.arange(10)[:, None, None, None]
    found = footprints(np.stack([left, right], 1), corners)
    assert [(f.sample, f.foot, f.phase, f.corners[0, 0]) for f in found] == [
        (0, 1, HEEL, 1),
        (1, 0, SOLE, 3),
        (8, 0, BALL, 8),
    ]


def test_whoever_stands_leaves_two_prints_and_no_flight(adult, swinging):
    simulation = Simulation(adult, swinging)
    assert simulation.run().success
    recording = simulation.recording
    for path in (Performed(recording), Animated(recording)):
        assert path.flights == []
        assert [(f.sample, f.foot, f.phase) for f in path.footprints] == [(0, 0, 2), (0, 1, 2)]
        assert len(path.com) == len(recording)
        for footprint, ankle in zip(path.footprints, recording.joints()[0, FEET], strict=True):
            assert footprint.corners[:, 2] == pytest.approx(adult.ground, abs=5e-3)
            assert np.ptp(footprint.corners[:, 0]) > 0.2
            ahead, aside = footprint.corners.mean(0)[:2] - ankle[:2]
            assert 0 < ahead < 0.1 and abs(aside) < 0.02
    apart = np.linalg.norm(Performed(recording).com - Animated(recording).com, axis=1)
    assert apart.max() < 0.05

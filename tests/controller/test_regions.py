# SPDX-License-Identifier: GPL-3.0-or-later
from dataclasses import replace

import numpy as np
import pytest

from poise.controller import Character, Gains
from poise.controller.body.adult import adult as stand_in
from poise.controller.gains.gains import LIMIT
from poise.controller.gains.regions import (
    REGIONS,
    damping_ratio,
    frequency,
    inertias,
    with_damping_ratio,
    with_frequency,
)
from poise.controller.geometry.skeleton import SEGMENT_INDEX, SEGMENTS


@pytest.fixture
def gains(adult):
    return Gains.default(adult)


@pytest.fixture
def moved(adult):
    return inertias(adult)


def test_every_degree_of_freedom_belongs_to_one_region(gains):
    joints = [joint for region in REGIONS.values() for joint in region]
    assert sorted(joints) == sorted({name.split("_")[0] for name in gains.names})


def test_the_inertia_of_a_forearm_is_its_own(adult, moved):
    """About the elbow: its own, and its mass at the distance of its centre."""
    i = SEGMENT_INDEX["forearm_l"]
    expected = adult.inertias[i, 1] + adult.masses[i] * adult.centres[i, 2] ** 2
    assert moved["elbow_pitch"] == pytest.approx(expected, rel=1e-6)


def test_inertias_are_those_of_the_mass_matrix(adult, moved):
    """Kinetic energy of the body at hip speed w is I w^2 / 2, by finite differences."""
    name, step = "hip_l_pitch", 1e-4
    dof = adult.dof_names.index(name)
    upright = np.broadcast_to(np.eye(3), (3, len(SEGMENTS), 3, 3))
    angles = adult.trajectory_of(1.0, np.zeros((3, 3)), upright).angles
    angles[:, dof] += [-step, 0, step]
    joints, frames = adult.forward(np.zeros((3, 3)), upright[:, 0], angles)
    centres = adult.body_centres(joints, frames)
    velocity = (centres[2] - centres[0]) / (2 * step)
    turning = np.swapaxes(frames[0], 1, 2) @ frames[2]
    spin = np.stack([turning[:, 2, 1], turning[:, 0, 2], turning[:, 1, 0]], 1) / (2 * step)
    energy = (adult.masses * (velocity**2).sum(1)).sum() + (adult.inertias * spin**2).sum()
    assert moved["hip_pitch"] == pytest.approx(energy, rel=1e-3)


def test_ankles_carry_the_body(adult, moved):
    """Each ankle half of it: about as much as half the mass at the height of its centre."""
    assert moved["ankle_pitch"] == pytest.approx(
        adult.mass / 2 * (0.58 * adult.height) ** 2, rel=0.2
    )


def test_a_frequency_is_that_of_a_spring(gains, moved):
    """Only one joint: f = sqrt(k / I) / 2 pi, torque per radian k = (2 pi f)^2 I."""
    only = replace(gains, stiffness=np.where(np.array(gains.names) == "neck_pitch", 90.0, 0.0))
    f = frequency(only, moved, "neck")
    assert (2 * np.pi * f) ** 2 * moved["neck_pitch"] == pytest.approx(90.0)


@pytest.mark.parametrize("region", REGIONS)
def test_setting_and_reading_back(gains, moved, region):
    faster = with_frequency(gains, moved, region, 1.3)
    assert frequency(faster, moved, region) == pytest.approx(1.3, rel=1e-12)
    assert damping_ratio(faster, moved, region) == pytest.approx(
        damping_ratio(gains, moved, region), rel=1e-12
    )
    damped = with_damping_ratio(faster, moved, region, 0.9)
    assert damping_ratio(damped, moved, region) == pytest.approx(0.9, rel=1e-12)
    assert frequency(damped, moved, region) == frequency(faster, moved, region)


@pytest.mark.parametrize("region", REGIONS)
def test_setting_and_setting_back_gives_the_same_gains(gains, moved, region):
    f, z = frequency(gains, moved, region), damping_ratio(gains, moved, region)
    there = with_damping_ratio(with_frequency(gains, moved, region, 2.2), moved, region, 0.7)
    back = with_frequency(with_damping_ratio(there, moved, region, z), moved, region, f)
    assert np.allclose(back.stiffness, gains.stiffness, rtol=1e-12)
    assert np.allclose(back.damping, gains.damping, rtol=1e-12)


def test_other_regions_stay(gains, moved):
    stiffer = with_frequency(gains, moved, "arms", 5.0)
    changed = {
        name.split("_")[0]
        for name, a, b in zip(gains.names, gains.stiffness, stiffer.stiffness, strict=True)
        if a != b
    }
    assert changed == set(REGIONS["arms"])


def test_twice_the_frequency_is_four_times_the_torque_per_radian(gains, moved):
    double = with_frequency(gains, moved, "legs", 2 * frequency(gains, moved, "legs"))
    knee = gains.names.index("knee_pitch")
    assert double.stiffness[knee] == pytest.approx(4 * gains.stiffness[knee])


def test_sizes_do_not_change_the_frequency_much(make_motion):
    """At equal dynamics frequencies go as the square root of one over the height."""
    values = []
    for stature in (0.9, 1.8):
        body = Character.from_motion(make_motion(stature=stature))
        f = frequency(Gains.default(body), inertias(body), "legs")
        values.append(f * np.sqrt(body.height))
    assert values[0] == pytest.approx(values[1], rel=0.1)


def test_no_stiffness_at_all(gains, moved):
    limp = replace(gains, stiffness=0 * gains.stiffness, damping=0 * gains.damping)
    assert frequency(limp, moved, "arms") == damping_ratio(limp, moved, "arms") == 0
    stiff = with_frequency(limp, moved, "arms", 3.0)
    assert frequency(stiff, moved, "arms") == pytest.approx(3.0)
    assert damping_ratio(with_damping_ratio(stiff, moved, "arms", 0.5), moved, "arms") == (
        pytest.approx(0.5)
    )


def test_it_stops_at_what_a_file_can_hold(gains, moved, adult):
    hard = with_damping_ratio(with_frequency(gains, moved, "trunk", 500.0), moved, "trunk", 500.0)
    assert hard.stiffness.max() <= LIMIT * (1 + 1e-12)
    assert hard.damping.max() <= LIMIT * (1 + 1e-12)
    assert Gains.from_dict(hard.as_dict(), adult)


def test_the_stand_in_is_an_adult():
    body = stand_in()
    assert body.height == pytest.approx(1.73, abs=0.01)
    assert body.mass == pytest.approx(65, abs=1)
    assert stand_in() is body

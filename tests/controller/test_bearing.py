# SPDX-License-Identifier: GPL-3.0-or-later
"""A weight that feet can bear: zero-moment points in the soles, free fall in flight."""

import numpy as np
import pytest

from poise.controller import Character
from poise.controller.body.footing import level
from poise.controller.body.momentum import GRAVITY, com_dynamics, zero_moment_point
from poise.controller.geometry.skeleton import FEET
from poise.controller.geometry.stance import support_reach
from poise.controller.geometry.trajectory import butterworth
from poise.controller.support import bearing
from poise.controller.support.bearing import bearable
from poise.controller.support.rolling import rolled

CUTOFF, RATE = 6.0, 60.0


@pytest.fixture
def shaken(make_motion):
    """(Character, Trajectory, contacts) of a person on both feet, whose trunk is captured as if it
    trembled by a few millimetres, four times a second."""

    def tremble(time):
        zero, wave = np.zeros_like(time), np.sin(2 * np.pi * 4 * time)
        return {"trunk": np.stack([0.04 * wave, 0.03 * wave, zero], 1)}

    motion = make_motion(seconds=3.0, sway=tremble)
    character = Character.from_motion(motion)
    return character, character.trajectory(motion), np.ones((len(motion), 2), bool)


def dynamics_of(character, target):
    """Joints, frames and Dynamics of what the controller sees of a target."""
    smooth = target.smoothed(CUTOFF).trajectory
    joints, frames = character.pose(smooth)
    centres = character.body_centres(joints, frames)
    return joints, frames, com_dynamics(character, centres, frames, target.rate, CUTOFF)


def outside(character, target, contacts):
    """(F,) how far [m] the zero-moment point is outside of the soles."""
    joints, frames, dynamics = dynamics_of(character, target)
    point = zero_moment_point(character, dynamics)
    directions = np.arange(16) * np.pi / 8
    ways = np.stack([np.cos(directions), np.sin(directions)])
    reach = support_reach(character.sole_corners(joints, frames), contacts)
    return np.maximum((point @ ways - reach).max(1), 0)


def test_hips_move_until_the_soles_bear_the_weight(shaken):
    character, trajectory, contacts = shaken
    as_captured = rolled(character, trajectory, contacts)
    target = bearable(character, trajectory, contacts, CUTOFF)
    before, after = (outside(character, one, contacts) for one in (as_captured, target))
    assert before.max() > 0.03 and after.max() < 0.1 * before.max()
    moved = target.root - as_captured.root
    assert 1e-4 < np.abs(moved[:, :2]).max() < 0.02, "millimetres do"
    feet = character.pose(target)[0][:, FEET]
    assert np.ptp(feet, axis=0).max() < 0.001, "planted feet stay so"


def test_what_feet_bear_is_left_as_it_is(make_motion):
    def nod(time):
        zero = np.zeros_like(time)
        return {"head": np.stack([zero, 0.2 * np.sin(np.pi * time), zero], 1)}

    motion = make_motion(sway=nod)
    character = Character.from_motion(motion)
    trajectory, contacts = character.trajectory(motion), np.ones((len(motion), 2), bool)
    target = bearable(character, trajectory, contacts, CUTOFF)
    as_captured = rolled(character, trajectory, contacts)
    assert np.abs(target.root - as_captured.root).max() < 1e-9
    assert np.abs(target.angles - as_captured.angles).max() < 1e-9


@pytest.mark.parametrize("first", [0, 30])
def test_a_foot_is_set_below_a_weight_beside_it(make_motion, first):
    """Who leans over one foot for long: the stance goes some of the way, as a whole; but where a
    clip begins, feet stand on their marks, and the hips go all of it."""

    def lean(time):
        zero = np.zeros_like(time)
        return {"trunk": np.stack([zero - 0.5, zero, zero], 1)}  # to the right

    motion = make_motion(sway=lean)
    character = Character.from_motion(motion)
    contacts = np.zeros((len(motion), 2), bool)
    contacts[:first, 0] = contacts[first:, 1] = True
    trajectory = character.trajectory(motion)
    as_captured = rolled(character, trajectory, contacts)
    target = bearable(character, trajectory, contacts, CUTOFF)
    stepped = (character.pose(target)[0] - character.pose(as_captured)[0])[first:, FEET[1]]
    before, after = (outside(character, one, contacts)[first:] for one in (as_captured, target))
    assert after.mean() < 0.3 * before.mean()
    assert np.ptp(stepped[:, :2], axis=0).max() < 0.002
    away = np.linalg.norm(stepped[:, :2], axis=1)
    assert away.max() < 0.001 if first == 0 else away.min() > 0.01


@pytest.fixture
def hop(make_motion):
    """(Character, Trajectory, contacts): a hop whose flight, as captured, floats at half of
    gravity."""
    motion = make_motion(seconds=2.0)
    time = np.arange(len(motion)) / RATE
    flight = (time > 0.9) & (time < 1.1)
    height = np.zeros(len(time))
    height[flight] = GRAVITY / 4 * (time[flight] - 0.9) * (1.1 - time[flight])
    motion.positions[..., 2] += height[:, None]
    character = Character.from_motion(motion)
    return character, character.trajectory(motion), ~np.stack([flight, flight], 1)


def test_bodies_fall_freely_in_flight(hop):
    character, trajectory, contacts = hop
    errors = []
    for target in (
        rolled(character, trajectory, contacts),
        bearable(character, trajectory, contacts, CUTOFF),
    ):
        *_, dynamics = dynamics_of(character, target)
        air = np.flatnonzero(~contacts.any(1))[3:-3]
        errors.append(np.abs(dynamics.acceleration[air] + [0, 0, GRAVITY]).mean())
    assert errors[0] > 2.0 and errors[1] < 0.3 * errors[0]


def test_a_low_pass_leaves_what_was_sharpened_for_it():
    time = np.arange(120) / RATE
    values = np.exp(-(((time - 1.0) / 0.08) ** 2))[:, None]
    left = butterworth(bearing._sharpened(values, RATE, CUTOFF), RATE, CUTOFF)[0]
    plain = butterworth(values, RATE, CUTOFF)[0]
    assert np.abs(left - values).max() < 0.1 * np.abs(plain - values).max()


def test_sums_of_squares_are_solved_as_dense_ones_are():
    random, count, unknowns = np.random.default_rng(5), 9, 3
    rows, dense, wanted = [], [], []
    for _ in range(5):
        slopes = random.normal(size=(3, count, unknowns))
        residual, weight = random.normal(size=(count, 2)), random.uniform(0.5, 2, count)
        weight[[0, -1]] = 0  # their neighbours are not there
        rows.append(bearing._Rows(slopes, residual, weight))
        for t in range(1, count - 1):
            row = np.zeros((count, unknowns))
            row[t - 1 : t + 2] = slopes[:, t]
            dense.append(np.sqrt(weight[t]) * row.ravel())
            wanted.append(-np.sqrt(weight[t]) * residual[t])
    found = bearing._least_squares(rows)
    solution, *_ = np.linalg.lstsq(np.array(dense), np.array(wanted), rcond=None)
    assert np.allclose(found.reshape(-1, 2), solution, atol=1e-8)


def test_uneven_floors_are_borne_on_where_they_are(shaken):
    """On a floor that is half a metre higher nothing else changes."""
    character, trajectory, contacts = shaken
    low = bearable(character, trajectory, contacts, CUTOFF)
    lifted = trajectory.__class__(
        trajectory.rate, trajectory.root + [0, 0, 0.5], trajectory.rotation, trajectory.angles
    )
    floor = level(character.ground + 0.5, len(contacts))
    high = bearable(character, lifted, contacts, CUTOFF, floor)
    assert np.abs(high.root - low.root - [0, 0, 0.5]).max() < 1e-9

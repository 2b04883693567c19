# SPDX-License-Identifier: GPL-3.0-or-later
"""Corrections of a reference: smooth between their nodes, exact where they are zero."""

import json

import numpy as np
import pytest

from poise.controller import Reference, SettingsError
from poise.controller.search.correction import (
    JOINTS,
    SIZE,
    UNITS,
    Correction,
    _interpolated,
    blank,
    columns_of,
    write,
)

SPACING = 6
_FIELDS = ("angles", "speeds", "goals")


@pytest.fixture
def reference(adult, swinging):
    return Reference.build(adult, swinging)


def offsets(nodes, seed=0):
    """Random offsets of so many nodes, each about a unit."""
    random = np.random.default_rng(seed)
    return random.standard_normal((nodes, SIZE)) * list(UNITS.values())


def same(target, other):
    return all(np.array_equal(getattr(target, name), getattr(other, name)) for name in _FIELDS)


# --- Interpolation -------------------------------------------------------------------------------


def test_offsets_have_their_values_at_the_nodes_and_stay_behind_the_last():
    wanted = offsets(4)
    values, speeds = _interpolated(wanted, 30, 200, 300.0)
    assert np.allclose(values[:91:30], wanted)
    assert np.allclose(speeds[:91:30], 0, atol=1e-12)
    assert np.array_equal(values[90:], np.broadcast_to(wanted[3], (110, SIZE)))
    assert not speeds[90:].any()


def test_between_nodes_they_are_soks_bumps():
    """Each node adds a cosine bump that is as wide as two intervals."""
    wanted, period = offsets(5), 30
    at = np.arange(4 * period + 1)
    bumps = 0.0
    for node, value in enumerate(wanted):
        away = np.minimum(np.abs(at / period - node), 1)
        bumps = bumps + (1 + np.cos(np.pi * away))[:, None] / 2 * value
    values, _ = _interpolated(wanted, period, len(at), 300.0)
    assert np.allclose(values, bumps, atol=1e-12)


def test_speeds_are_those_of_the_values():
    period, rate = 300, 3000.0
    values, speeds = _interpolated(offsets(4), period, 3 * period + 1, rate)
    inside = np.arange(1, 3 * period)
    inside = inside[inside % period > 0]  # at the nodes the slope has a kink
    first = (values[inside + 1] - values[inside - 1]) * rate / 2
    assert np.allclose(speeds[inside], first, atol=1e-3 * np.abs(speeds).max())


# --- The corrected reference ---------------------------------------------------------------------


def test_no_correction_is_the_reference_to_the_last_bit(adult, reference):
    target = Correction(SPACING, np.zeros((4, SIZE))).corrected(adult, reference)
    assert same(target, reference)
    assert target.angles is not reference.angles  # it may be written into


def test_correction_turns_its_joints_and_shifts_the_goal_and_nothing_else(adult, reference):
    wanted = offsets(30)
    target = Correction(SPACING, wanted).corrected(adult, reference)
    period = SPACING * reference.steps_per_sample
    nodes = np.arange(0, len(reference.angles), period)
    turned = (target.angles - reference.angles)[nodes]
    shifted = (target.goals - reference.goals)[nodes]
    columns = columns_of(adult)
    assert [adult.dof_names[i] for i in columns] == JOINTS
    assert np.allclose(turned[:, columns], wanted[: len(nodes), :15])
    assert not np.delete(turned, columns, axis=1).any()
    assert np.allclose(shifted[:, 0], wanted[: len(nodes), 15:])
    assert np.allclose(shifted[:, 1:], 0, atol=1e-12)
    assert target.accelerations is reference.accelerations


def test_written_window_by_window_it_is_the_same(adult, reference):
    wanted = offsets(21)
    whole = Correction(SPACING, wanted).corrected(adult, reference)
    parts = blank(reference)
    last = len(reference) - 1
    for node in range(20):
        first = node * SPACING
        end = min(first + SPACING, last)
        part = wanted[node : node + 2]
        write(parts, reference, columns_of(adult), SPACING, first, end, part)
    assert same(parts, whole)


def test_a_window_does_not_touch_what_was_before(adult, reference):
    target = Correction(SPACING, offsets(21)).corrected(adult, reference)
    before = target.angles.copy()
    write(target, reference, columns_of(adult), SPACING, 60, 78, offsets(4, seed=1))
    step = 60 * reference.steps_per_sample
    assert np.array_equal(target.angles[:step], before[:step])
    assert not np.array_equal(target.angles[step + 5], before[step + 5])


def test_trajectory_is_the_reference_with_the_offsets(adult, reference):
    wanted = offsets(30)
    found = Correction(SPACING, wanted).trajectory(adult, reference)
    assert len(found) == len(reference)
    nodes = np.arange(0, len(reference), SPACING)
    turned = (found.angles - reference.trajectory.angles)[nodes]
    assert np.allclose(turned[:, columns_of(adult)], wanted[: len(nodes), :15], atol=1e-9)
    moved = (found.root - reference.trajectory.root)[nodes]
    assert np.allclose(moved, wanted[: len(nodes), 15:])
    assert np.array_equal(found.rotation, reference.trajectory.rotation)


# --- As JSON -------------------------------------------------------------------------------------


def test_it_comes_back_from_json_to_the_last_bit():
    written = Correction(7, offsets(5), drift_gain=0.25)
    read = Correction.from_dict(json.loads(json.dumps(written.as_dict())))
    assert (read.spacing, read.drift_gain) == (7, 0.25)
    assert np.array_equal(read.offsets, written.offsets)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"offsets": [[1.0, 2.0]]}, "no correction that Poise wrote"),
        ({"offsets": "many"}, "no correction that Poise wrote"),
        ({"spacing": None}, "no correction that Poise wrote"),
        ({"schema": 99}, "another version of Poise"),
        ({"names": ["hip_l_pitch"]}, "another version of Poise"),
        ({"spacing": 0}, "another version of Poise"),
        ({"offsets": []}, "another version of Poise"),
        ({"offsets": [[np.nan] * SIZE]}, "another version of Poise"),
    ],
)
def test_what_is_no_correction_is_refused(change, words):
    data = Correction(SPACING, offsets(2)).as_dict() | change
    with pytest.raises(SettingsError, match=words):
        Correction.from_dict(data)


@pytest.mark.parametrize("name", ["schema", "names", "spacing", "offsets", "drift_gain"])
def test_what_lacks_something_is_refused(name):
    data = Correction(SPACING, offsets(2)).as_dict()
    del data[name]
    with pytest.raises(SettingsError, match="rectify anew"):
        Correction.from_dict(data)

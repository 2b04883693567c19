# SPDX-License-Identifier: GPL-3.0-or-later
"""Feet that roll over their soles, and how they land and leave."""

import numpy as np
import pytest

from poise.controller.geometry.rotations import (
    arctan2,
    quaternion_from_matrix,
    rotation_about,
    rotation_vector,
)
from poise.controller.geometry.skeleton import FEET
from poise.controller.support.rolling import rolled

LEFT, PITCH, ROLL = FEET[0], np.radians(35), np.radians(30)


def turned(character, motion, yaw):
    """Trajectory of someone whose left foot is nose down on its edge, its heading as yaw (F,)."""
    trajectory = character.trajectory(motion)
    joints, frames = character.pose(trajectory)
    frames[:, LEFT] = (
        rotation_about(2, yaw)
        @ frames[:, LEFT]
        @ rotation_about(1, PITCH)
        @ rotation_about(0, ROLL)
    )
    return character.trajectory_of(trajectory.rate, joints[:, 0], frames)


def rolls(frames):
    """How feet (F, 3, 3) tip about their own axes [rad]."""
    return arctan2(frames[:, 2, 1], frames[:, 2, 2])


@pytest.fixture
def edge(adult, standing):
    """(frames captured, frames that roll, whether it is in the air) of a foot that is set down on
    its edge, lifted for half a second, and set down again, and turns by 20 degrees each time."""
    time = np.arange(len(standing)) / standing.rate
    contacts = np.ones((len(time), 2), bool)
    contacts[:, 0] = np.abs(time - time[-1] / 2) > 0.25
    captured = turned(adult, standing, np.radians(20) * np.sin(2 * np.pi * time))
    found = rolled(adult, captured, contacts)
    before, after = (adult.pose(one)[1][:, LEFT] for one in (captured, found))
    return before, after, ~contacts[:, 0]


def test_a_pitched_foot_tips_as_far_as_it_is_captured(edge):
    before, after, air = edge
    assert rolls(before) == pytest.approx(ROLL)
    assert rolls(after)[~air] == pytest.approx(ROLL, abs=1e-3)
    # Its side rises by less, and by how much depends on its pitch.
    assert (np.arcsin(before[:, 2, 1]) < ROLL - 0.05).all()


def test_a_foot_lands_and_leaves_as_captured(edge):
    """What it is turned by in its stances is led on beside them: on its edge it is in the air, too,
    and never farther from the capture than it is on the floor."""
    before, after, air = edge
    assert rolls(after)[air].min() > ROLL - np.radians(1)
    turns = quaternion_from_matrix(np.swapaxes(before, 1, 2) @ after)
    off = np.linalg.norm(rotation_vector(turns), axis=1)
    assert off[air].max() < 1.01 * off[~air].max()
    middle = np.flatnonzero(air)[len(np.flatnonzero(air)) // 2]
    assert off[middle] < np.radians(1), "there it is as captured"


@pytest.mark.parametrize("turn", [300.0, -300.0])
def test_a_foot_that_turns_round_in_one_stance_goes_the_way_it_is_captured(adult, standing, turn):
    """Also past where it looks away from where it is flat, by which it was thrown round."""
    time = np.arange(len(standing)) / standing.rate
    yaw = np.radians(turn) * time / time[-1]
    trajectory = adult.trajectory(standing)
    joints, frames = adult.pose(trajectory)
    frames[:, LEFT] = rotation_about(2, yaw) @ frames[:, LEFT]
    captured = adult.trajectory_of(trajectory.rate, joints[:, 0], frames)
    found = rolled(adult, captured, np.ones((len(time), 2), bool))
    ahead = adult.pose(found)[1][:, LEFT, :, 0]
    heading = np.unwrap(arctan2(ahead[:, 1], ahead[:, 0]))
    assert heading - heading[0] == pytest.approx(yaw - yaw[0], abs=np.radians(6))

# SPDX-License-Identifier: GPL-3.0-or-later
from types import SimpleNamespace

import numpy as np
import pytest

from poise.controller import Character
from poise.controller.body.foot import Foot, parts_down, sole_corners
from poise.controller.geometry import stance
from poise.controller.geometry.rotations import rotation_about

RATE = 60.0


def body(ground=0.0, height=1.8):
    return SimpleNamespace(ground=ground, height=height, leg=0.5 * height, actor=None)


def corners(heights, speed=0.0):
    """(F, 2, 4, 3) flat soles at (F, 2) heights that slide forward at `speed`."""
    heights = np.asarray(heights, float)
    square = np.array([[-0.05, -0.05], [-0.05, 0.05], [0.15, -0.05], [0.15, 0.05]])
    result = np.zeros((len(heights), 2, 4, 3))
    result[..., :2] = square
    result[..., 0] += np.arange(len(heights))[:, None, None] * speed / RATE
    result[..., 2] = heights[:, :, None]
    return result


def test_low_and_slow_feet_stand():
    heights = np.tile([0.01, 0.2], (60, 1))
    contacts = stance.reference_contacts(body(), corners(heights), RATE, True)
    assert contacts[:, 0].all() and not contacts[:, 1].any()
    assert (stance.stance_of(contacts) == stance.LEFT).all()
    fast = corners(heights, speed=1.0)
    assert not stance.reference_contacts(body(), fast, RATE, True).any()
    raised = corners(heights + 0.5)
    assert stance.reference_contacts(body(ground=0.5), raised, RATE, True)[:, 0].all()


def test_a_child_lifts_its_feet_less():
    lifted = corners(np.tile([0.025, 0.025], (60, 1)))
    assert stance.reference_contacts(body(), lifted, RATE, True).all()
    assert not stance.reference_contacts(body(height=1.0), lifted, RATE, True).any()


def test_a_flicker_is_outvoted_in_place():
    heights = np.tile([0.01, 0.01], (60, 1))
    heights[30, 0] = 0.1
    contacts = stance.reference_contacts(body(), corners(heights), RATE, True)
    assert contacts.all()


def test_a_foot_that_comes_down_where_it_was_has_not_stepped():
    heights = np.tile([0.01, 0.01], (120, 1))
    heights[40:80, 1] = 0.06
    in_place = corners(heights)
    assert stance.reference_contacts(body(), in_place, RATE, True).all()
    # ... but a step aside, a leg that is raised, and one that is up from the start are real.
    aside = in_place.copy()
    aside[60:, 1, :, 1] += 0.2
    raised = corners(np.where(heights > 0.05, 0.3, heights))
    for steps in (aside, raised, in_place[60:]):
        contacts = stance.reference_contacts(body(), steps, RATE, True)
        assert contacts[:, 0].all() and not contacts[:, 1].all()


def test_states():
    pairs = [[0, 0], [1, 0], [0, 1], [1, 1]]
    assert [stance.NAMES[s] for s in stance.stance_of(np.array(pairs))] == [
        "flight",
        "left",
        "right",
        "dual",
    ]


def test_base_of_support():
    ankles = np.array([[0.0, 0.2, 0.1], [0.4, -0.2, 0.1]])
    states = np.array([stance.LEFT, stance.RIGHT, stance.DUAL, stance.FLIGHT])
    bases = stance.base_of_support(np.tile(ankles, (4, 1, 1)), states)
    assert np.allclose(bases, [[0, 0.2], [0.4, -0.2], [0.2, 0], [0.2, 0]])


def test_support_reach():
    shape = corners([[0.0, 0.0]])
    shape[0, 1, :, 1] += 1.0
    both = stance.support_reach(shape, [[True, True]])[0]
    left = stance.support_reach(shape, [[True, False]])[0]
    east, north, west, south = 0, 4, 8, 12
    assert np.allclose(both[[east, north, west, south]], [0.15, 1.05, 0.05, 0.05])
    assert np.allclose(left[[east, north]], [0.15, 0.05])
    assert (stance.support_reach(shape, [[False, False]]) == -np.inf).all()


def test_phases_of_a_foot():
    """By what is down: within a centimetre of the lowest part."""
    height, width, ends = 0.1, 0.05, (-0.07, 0.12, 0.18)
    foot = Foot(-ends[0], ends[2], width, height, ends[1], 0.025)
    pitches = np.array([-0.3, -0.03, 0.0, 0.03, 0.3])
    turns = rotation_about(1, np.repeat(pitches[:, None], 2, 1).ravel()).reshape(5, 2, 3, 3)
    level = np.broadcast_to(np.eye(3), turns.shape)
    ankles = np.zeros((5, 2, 3))
    toes = np.where((pitches > 0)[:, None, None, None], level, turns)
    corners = sole_corners((foot, foot), ankles, turns, toes)
    parts = parts_down(corners)
    phases = stance.phases_of(np.full(5, stance.DUAL), parts)
    expected = [stance.HEEL, stance.SOLE, stance.SOLE, stance.SOLE, stance.BALL]
    assert phases.tolist() == [[phase, phase] for phase in expected]
    left = stance.phases_of(np.full(5, stance.LEFT), parts)
    assert left[:, 0].tolist() == expected and (left[:, 1] == stance.AIR).all()
    ramp = corners.copy()
    ramp[..., 2] += 0.3 * ramp[..., 0] - 0.2 * ramp[..., 1]
    assert parts_down(ramp, np.full((5, 2, 2), [0.3, -0.2])) == pytest.approx(parts)


def test_feet_that_step_elsewhere_travel(make_motion):
    """In place a foot may be lifted and put back; one that is set down 0.3 m away has left it."""
    still = make_motion(seconds=3.0)
    character = Character.from_motion(still)
    corners = character.sole_corners(*character.pose(character.trajectory(still)))
    root = still.positions[:, 0]
    lifted = corners.copy()
    lifted[60:120, 0, :, 2] += 0.2
    contacts = np.ones((len(still), 2), bool)
    contacts[60:120, 0] = False
    assert not stance.travels(character, contacts, lifted, still.rate, root)
    stepped = lifted.copy()
    stepped[120:, 0, :, 1] += 0.15
    assert not stance.travels(character, contacts, stepped, still.rate, root)
    stepped[120:, 0, :, 1] += 0.15
    assert stance.travels(character, contacts, stepped, still.rate, root)
    contacts[60:120, 1] = False
    assert stance.travels(character, contacts, corners, still.rate, root), "it leaves the floor"

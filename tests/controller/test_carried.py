# SPDX-License-Identifier: GPL-3.0-or-later
"""Contacts of feet that carry a body, whatever they seem to do."""

import numpy as np
import pytest

from poise.controller.body.momentum import GRAVITY
from poise.controller.contacts.carried import carried

RATE, COUNT = 60.0, 90


@pytest.fixture
def clip():
    """(contacts, heights of feet, centre of mass) of somebody who stands on the left foot, is not
    seen to from sample 30 to 60, and then stands on it again; the right one is in the air."""
    contacts = np.zeros((COUNT, 2), bool)
    contacts[:, 0] = True
    contacts[30:60] = False
    heights = np.tile([0.05, 0.3], (COUNT, 1))
    com = np.tile([0.0, 0.0, 1.0], (COUNT, 1))
    return contacts, heights, com


def test_the_lower_foot_carries_who_does_not_fall(clip):
    contacts, heights, com = clip
    found = carried(contacts, heights, com, RATE, 1.0)
    assert found[:, 0].all() and not found[:, 1].any()
    assert not contacts[30:60].any(), "what was found before is left as it was"


def test_nobody_carries_who_falls_freely(clip):
    contacts, heights, com = clip
    time = (np.arange(COUNT) - 45) / RATE
    com[:, 2] -= np.where(np.abs(time) < 0.25, GRAVITY / 2 * (time**2 - 0.25**2), 0)
    found = carried(contacts, heights, com, RATE, 1.0)
    assert not found[38:52].any()


def test_high_feet_carry_nobody(clip):
    contacts, heights, com = clip
    heights[30:60, 0] = 0.15
    assert not carried(contacts, heights, com, RATE, 1.0)[30:60].any()
    assert carried(contacts, heights, com, RATE, 2.0)[30:60, 0].all(), "but those of a giant"


def test_moments_are_no_stances_and_no_flights(clip):
    contacts, heights, com = clip
    contacts[10:12, 1] = True
    heights[30:60, 0] = 0.3
    contacts[70:72, 0] = False
    found = carried(contacts, heights, com, RATE, 1.0)
    assert not found[:, 1].any() and found[60:, 0].all() and not found[30:60].any()

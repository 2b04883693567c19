# SPDX-License-Identifier: GPL-3.0-or-later
"""The experiment that draws Wang's figures: its curves, its table, its picture."""

import dataclasses

import numpy as np
import pytest

from poise.controller.clean_up.clean_up import clean_up, propose
from poise.controller.clean_up.leg_chain import Body
from poise.experiments import wang


@pytest.fixture
def drifting(standing):
    """A person who stands on a carpet that is pulled away slowly: (Body, CleanUp)."""
    time = np.arange(len(standing)) / standing.rate
    way = np.stack([0.1 * time, 0 * time, 0.004 * np.sin(9 * time)], 1)
    motion = dataclasses.replace(standing, positions=standing.positions + way[:, None])
    body = Body.from_motion(motion)
    return body, clean_up(body, propose(body))


def test_curves_of_standing_feet_become_level(drifting):
    found = wang.curves(*drifting)
    assert all(np.shape(found[title]) == (2, len(drifting[0])) for title in wang.FIGURES)
    assert found["stands"].all()
    row = wang.figures_of(*drifting)
    for name in ("slip", "toes", "heel"):
        assert row[name][1] < 0.2 * row[name][0], name
    assert wang.table({"person": row})[2].startswith("| person | 0.1")


def test_picture_shows_both_curves_in_every_plot(drifting):
    pytest.importorskip("bpy")
    found = wang.curves(*drifting)
    pixels = wang.picture({"person": found, "another": found})
    assert pixels.shape[1] == 3 * wang._WIDE and np.isfinite(pixels).all()
    for column in range(3):
        part = pixels[:, column * wang._WIDE : (column + 1) * wang._WIDE, :3]
        for colour in (wang._BEFORE, wang._AFTER):
            assert (np.abs(part - colour).max(-1) < 0.02).sum() > 50

# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds a foot that stands: where it is to turn."""

from types import SimpleNamespace

import numpy as np
import pytest

from poise.controller.body.sole import Ground
from poise.controller.control.foot_hold import FootHold
from poise.controller.control.legs import Legs
from poise.controller.geometry.rotations import rotation_about

LEVEL = Ground(0.0, 0.0, 0.0)


@pytest.fixture
def held(adult, world):
    """held(pitch, feet) -> (the State of a body whose left foot is nose down by a pitch [rad], the
    turn that its ankle should have while the reference's feet are so, (3, 3), on the way)."""
    dofs = [adult.dof_names.index(f"ankle_l_{axis}") for axis in ("pitch", "roll", "twist")]

    def make(pitch, foot):
        world.bend(dofs[:1], [pitch])
        state, legs = world.state(True), Legs(adult)
        legs.update(state.positions, state.frames, state.angles)
        legs.set_down([LEVEL] * 2)
        reference = SimpleNamespace(
            travels=True, feet=np.tile(foot, (1, 2, 1, 1)), floors=np.zeros((1, 2, 3))
        )
        hold = FootHold(adult, reference, legs, 1.0)
        return state.angles[dofs[1:]], hold.goal(0, 0, state, LEVEL)

    return make


def test_a_foot_past_the_vertical_looks_where_it_did(held):
    """As it rolls over its toes its own axis points ahead, down, and then back."""
    for pitch, wanted in ((1.3, 1.8), (1.8, 1.3)):
        now, goal = held(pitch, rotation_about(1, wanted))
        assert (goal.roll, goal.twist) == pytest.approx(tuple(now), abs=1e-3)
        assert goal.yaw == pytest.approx(0.0, abs=1e-9)


def test_a_foot_is_turned_to_the_heading_of_the_reference(held):
    now, goal = held(0.0, rotation_about(2, 0.2))
    assert goal.yaw == pytest.approx(0.2)
    assert goal.twist - now[1] == pytest.approx(0.2, abs=0.01)
    assert goal.roll == pytest.approx(now[0], abs=0.01)

# SPDX-License-Identifier: GPL-3.0-or-later
"""A person in place whose feet tip onto their outer edges, stand there, and come down again."""

import numpy as np
import pytest
from helpers.motions import for_a_while

from poise.controller import Character, Motion, Simulation
from poise.controller.body.sole import Ground, carrying, on_edge, sole_of
from poise.controller.geometry.rotations import (
    exponential,
    matrix_from_quaternion,
    multiply,
    rotation_about,
)
from poise.controller.geometry.skeleton import FEET, SEGMENT_INDEX, SIDES
from poise.controller.reference.reference import Reference

MOST = 0.5  # [rad] that the feet tip
TIPS, COMES_DOWN = 3.0, 5.0  # [s], each for one second: it mostly stands flat, as rigs are read


@pytest.fixture
def tipped(make_motion):
    """The Motion: each foot turns about its ankle, soles to each other."""
    still = make_motion(seconds=9.0)
    angle = MOST * for_a_while(still, TIPS, COMES_DOWN)
    rotations = still.rotations.copy()
    for side, sign in zip(SIDES, (-1, 1), strict=True):
        foot = SEGMENT_INDEX[f"foot_{side}"]
        turn = exponential(sign * angle[:, None] * [1.0, 0.0, 0.0])
        rotations[:, foot] = multiply(turn, rotations[:, foot])
    return Motion("tipped", still.rate, rotations, still.positions)


@pytest.fixture
def held(tipped):
    """Slice of the samples in which it stands on its edges."""
    return slice(round((TIPS + 1.2) * tipped.rate), round((COMES_DOWN - 0.2) * tipped.rate))


def tilt_of(frames):
    """(..., 2) how far [rad] the outer sides of both feet (..., 2, 3, 3) are down."""
    return np.arcsin(frames[..., 2, 1]) * [-1, 1]


def outer_edges(character, joints, frames):
    """(F, 2, 2, 3) heel and ball [m] of the outer edges of both feet: left, then right."""
    corners = character.sole_corners(joints, frames)
    return np.stack([corners[:, 0, [1, 3]], corners[:, 1, [0, 2]]], 1)


def test_the_reference_rolls_over_the_outer_edges(tipped, held):
    character = Character.from_motion(tipped)
    reference = Reference.build(character, tipped)
    joints, frames = character.pose(reference.trajectory)
    # How a foot lies on the floor is taken of the whole clip, so a part of this is lost.
    wanted = tilt_of(reference.raw.frames[held][:, FEET])
    assert wanted.min() > 0.25
    assert tilt_of(frames[held][:, FEET]) == pytest.approx(wanted, abs=0.02)
    edges = outer_edges(character, joints, frames)
    # They are on the floor, and where they were.
    assert np.abs(edges[held][..., 2] - character.ground).max() < 0.002
    assert np.linalg.norm((edges - edges[0])[..., :2], axis=-1).max() < 0.005
    # The inner ones are as high as a sole of that width takes them.
    foot = character.feet[0]
    corners = character.sole_corners(joints, frames)[held]
    inner = np.stack([corners[:, 0, [0, 2]], corners[:, 1, [1, 3]]], 1)[..., 2]
    high = 2 * foot.half_width * np.sin(wanted.mean())
    assert inner - character.ground == pytest.approx(high, abs=0.004)


@pytest.mark.slow(captured=False)
def test_the_body_stands_on_its_edges(tipped, held):
    recording = Simulation(Character.from_motion(tipped), tipped).run()
    assert recording.success, recording.why()
    frames = matrix_from_quaternion(recording.body_rotations)
    wanted = tilt_of(recording.reference.raw.frames[held][:, FEET])
    assert np.abs(tilt_of(frames[held][:, FEET]) - wanted).max() < 0.1
    edges = outer_edges(recording.character, recording.joints(), frames)
    slid = np.linalg.norm((edges[held] - edges[held][:1])[..., :2], axis=-1)
    assert slid.max() < 0.01


@pytest.mark.parametrize("sign", [-1, 1])
def test_an_edge_that_is_meant_to_be_down_is_pressed_on_alone(make_motion, sign):
    foot = Character.from_motion(make_motion()).feet[0]
    ground = Ground(0.0, 0.0, 0.0)

    def pressed(tilt):
        frame = rotation_about(0, np.array(sign * tilt))
        high = foot.depth * np.cos(tilt) + foot.half_width * np.sin(tilt)
        sole = sole_of(foot, [0.0, 0.0, high], frame.T.tolist(), 0.0, ground)
        assert sole.clearance == pytest.approx(0, abs=1e-9)
        assert sole.tilt == pytest.approx(sign * np.sin(tilt))
        whole = carrying(sole, 1.0, 1.0)
        return sole, whole, on_edge(whole, sole, sole.tilt)

    _, whole, found = pressed(0.04)
    assert found == whole  # a foot that trembles
    sole, whole, found = pressed(0.3)
    edge = sole.right if sign > 0 else sole.left
    assert found[:6] == whole[:6]
    assert min(abs(found.right - edge), abs(found.left - edge)) == pytest.approx(0)
    assert found.left - found.right == pytest.approx(0.1 * (sole.left - sole.right))
    # No other way from the one to the other than over what lies between.
    widths = [found.left - found.right for _, _, found in map(pressed, np.linspace(0.04, 0.3, 9))]
    assert (np.diff(widths) < 1e-9).all()

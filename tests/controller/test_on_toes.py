# SPDX-License-Identifier: GPL-3.0-or-later
"""A person who rises onto the toes, stands there, and comes down again, in place."""

import numpy as np
import pytest
from helpers.motions import for_a_while

from poise.controller import Character, Motion, Push, Scenario, Settings, Simulation
from poise.controller.clean_up.clean_up import clean_up, propose
from poise.controller.clean_up.leg_chain import Body
from poise.controller.geometry.rotations import exponential, matrix_from_quaternion, multiply
from poise.controller.geometry.skeleton import FEET, LANDMARK_INDEX, SEGMENT_INDEX, SIDES, TOES
from poise.controller.geometry.stance import BALL
from poise.controller.reference.reference import Reference

HIGHEST = 0.5  # [rad] of the feet
RISES, COMES_DOWN = 1.0, 4.0  # [s], each for one second


def rising(still, highest):
    """A Motion: the feet turn so far [rad] about the balls, and lift all else but the toes with
    them."""
    pitch = highest * for_a_while(still, RISES, COMES_DOWN)
    turn = exponential(pitch[:, None] * [0.0, 1.0, 0.0])
    rotations, positions = still.rotations.copy(), still.positions.copy()
    balls = [LANDMARK_INDEX[f"ball_{side}"] for side in SIDES]
    ankles = [LANDMARK_INDEX[f"ankle_{side}"] for side in SIDES]
    arm = positions[:, ankles[0]] - positions[:, balls[0]]
    lifted = np.einsum("fij,fj->fi", matrix_from_quaternion(turn), arm) - arm
    stays = balls + [LANDMARK_INDEX[f"toe_{side}"] for side in SIDES]
    moves = np.setdiff1d(np.arange(positions.shape[1]), stays)
    # Forward with the heels, so that the weight is above the balls.
    positions[:, moves] += lifted[:, None]
    for side in SIDES:
        foot = SEGMENT_INDEX[f"foot_{side}"]
        rotations[:, foot] = multiply(turn, rotations[:, foot])
    return Motion("tiptoe", still.rate, rotations, positions)


@pytest.fixture
def tiptoe(make_motion):
    return rising(make_motion(seconds=6.0), HIGHEST)


@pytest.fixture
def held(tiptoe):
    """Slice of the samples in which it stands high."""
    return slice(round((RISES + 1.2) * tiptoe.rate), round((COMES_DOWN - 0.2) * tiptoe.rate))


def pitch_of(frames):
    """Pitch [rad] of frames (..., 3, 3), heel up above 0."""
    return np.arcsin(np.clip(-frames[..., 2, 0], -1, 1))


def test_the_foot_is_that_of_who_stands_flat(make_motion):
    """Though it is on its toes for half of the time."""
    still = make_motion(seconds=6.0)
    motion = rising(still, 0.7 * HIGHEST)
    flat, rises = Character.from_motion(still), Character.from_motion(motion)
    assert rises.feet[0].depth == pytest.approx(flat.feet[0].depth, abs=0.001)
    assert np.abs(rises.calibration - flat.calibration)[list(FEET)].max() < 0.05
    first = rises.pose(rises.trajectory(motion))[1][0, FEET]
    assert pitch_of(first) == pytest.approx(0, abs=0.05)


def test_a_clean_up_stays_on_its_toes(tiptoe, held):
    """About the joints that the animation keeps in place, not about the sole's edges below them."""
    axes = {
        s: matrix_from_quaternion(tiptoe.rotations[:, toe])
        for s, toe in zip(SIDES, TOES, strict=True)
    }
    body = Body.from_motion(tiptoe, axes)
    cleaned = clean_up(body, propose(body)).motion(tiptoe)
    for name in ("pelvis", "ankle_l", "ankle_r", "ball_l", "ball_r"):
        row = LANDMARK_INDEX[name]
        moved = (cleaned.positions - tiptoe.positions)[:, row]
        assert np.abs(moved[held]).max() < 0.003, name


def test_the_reference_stays_on_its_toes(tiptoe, held):
    character = Character.from_motion(tiptoe)
    reference = Reference.build(character, tiptoe)
    joints, frames = character.pose(reference.trajectory)
    assert not reference.travels
    high = pitch_of(frames[held][:, FEET])
    assert high == pytest.approx(HIGHEST, abs=0.06)
    assert np.abs(pitch_of(frames[held][:, TOES])).max() < 0.06  # flat on the floor
    # The balls stay where they were; their joints roll over the sole's edge below them.
    balls = joints[:, TOES]
    assert np.abs(balls - balls[0]).max() < 0.015
    # And the hips where the weight is above them.
    corners = character.sole_corners(joints, frames)[held]
    low = corners[..., 2] < character.ground + 0.01
    shares = character.masses / character.masses.sum()
    com = np.einsum("fsi,s->fi", character.body_centres(joints, frames)[held], shares)
    behind, ahead = (
        pick(np.where(low, corners[..., 0], empty), (1, 2))
        for pick, empty in ((np.min, np.inf), (np.max, -np.inf))
    )
    assert (com[:, 0] > behind + 0.005).all() and (com[:, 0] < ahead - 0.005).all()


def test_the_body_stands_on_its_toes(tiptoe, held):
    recording = Simulation(Character.from_motion(tiptoe), tiptoe).run()
    assert recording.success, recording.why()
    assert (recording.phases[held] == BALL).all()
    turns = matrix_from_quaternion(recording.body_rotations[held][:, FEET])
    assert np.abs(pitch_of(turns) - HIGHEST).max() < 0.15
    assert recording.summary()["slide_error"] < 0.01


@pytest.mark.slow(captured=False)
def test_who_falls_off_the_toes_sets_the_heels_down(tiptoe, held, monkeypatch):
    """And so stands, where a body that keeps its heels up falls."""
    from poise.controller.control import foot_forces

    def pushed():
        push = Push((RISES + COMES_DOWN) / 2, 0.2, (-60.0, 0.0, 0.0))
        settings = Settings(recovery_steps=False)
        return Simulation(
            Character.from_motion(tiptoe),
            tiptoe,
            settings=settings,
            scenario=Scenario(pushes=(push,)),
        ).run()

    caught = pushed()
    assert caught.success, caught.why()
    assert (caught.phases[held] != BALL).any()
    monkeypatch.setattr(foot_forces, "_TOE_ROOM", np.inf)
    assert not pushed().success

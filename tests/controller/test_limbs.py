# SPDX-License-Identifier: GPL-3.0-or-later
"""Limbs of other bodies hit with their speed, and are where the animation has them."""

from dataclasses import replace

import numpy as np
import pytest

from poise.controller import Character, Settings, SettingsError, Simulation
from poise.controller.body.limbs import limbs_of
from poise.controller.body.momentum import GRAVITY
from poise.controller.control.legs import Legs
from poise.controller.geometry.rotations import exponential, matrix_from_quaternion
from poise.controller.geometry.skeleton import LANDMARK_INDEX, SIDES
from poise.controller.geometry.solids import Limb, Solid, corners_of
from poise.controller.simulation.scenario import Scenario, Thing
from poise.controller.simulation.world import FLESH, World
from poise.controller.support.terrain import Terrain

RATE = 60.0
#: Where the body falls freely, out of the way of all else [m].
_AWAY = np.array([0.0, 50.0, 60.0])
_ASIDE = exponential(np.array([0.0, np.pi / 2, 0.0]))


def fist(start, speed, seconds=1.0, back_at=np.inf, part="right hand"):
    """A capsule of a fist's size that moves along x from (3,) [m] with a speed [m/s], and returns
    from a time on [s]."""
    time = np.arange(round(seconds * RATE) + 1) / RATE
    along = speed * np.minimum(time, 2 * back_at - time)
    path = np.asarray(start, float) + np.outer(along, [1.0, 0, 0])
    turns = np.tile(_ASIDE, (len(time), 1))
    return Limb("Boxer", Solid("capsule", (0.045, 0.06)), path, turns, part=part)


@pytest.fixture
def fly(adult):
    """fly(limb, steps, rate, at, **scenario) -> World of the limp body at (3,) [m] after so many
    steps."""

    def run(limb, steps, rate=1000.0, at=_AWAY, **scenario):
        legs = Legs(adult).segments
        world = World(adult, rate, legs, Scenario(limbs=(limb,), **scenario), RATE)
        zeros = np.zeros(adult.dofs)
        world.reset(np.asarray(at), np.eye(3), np.zeros(3), np.zeros(3), zeros, zeros)
        for step in range(steps):
            world.advance(step / rate)
            world.step()
        return world

    return run


# --- Momentum ------------------------------------------------------------------------------------


@pytest.mark.parametrize("speed", [1.0, 4.0, 10.0])
@pytest.mark.parametrize("mass", [0.5, 20.0])
def test_a_fist_gives_a_free_ball_its_own_speed_as_flesh_does(fly, speed, mass):
    """What nothing moves meets a mass m through stiffness k and damping c at a speed v: by
    m x'' + c x' + k x = 0, x'(0) = v, its speed v - x' goes to v, and nothing bounces."""
    stiffness, damping = FLESH
    start, after = np.array([0.0, 0.0, 100.0]), 0.03
    away = 0.045 + 0.03 + 0.1 + 0.01 * speed  # they meet in 10 ms, before the ball has fallen
    ball = Thing("Ball", Solid("sphere", (0.1,)), mass, 0.0, tuple(start + [away, 0, 0]))
    pair = [fly(fist(start, speed), steps, things=(ball,)).things()[0][0] for steps in (40, 41)]
    velocity = (pair[1] - pair[0]) * 1000
    root = np.sqrt(damping**2 - 4 * stiffness * mass)
    slow, fast = (-damping + root) / (2 * mass), (-damping - root) / (2 * mass)
    closing = (slow * np.exp(slow * after) - fast * np.exp(fast * after)) / (slow - fast)
    assert velocity[0] == pytest.approx(speed * (1 - closing), rel=0.03)
    assert velocity[0] == pytest.approx(speed, rel=0.05)


def momentum(adult, one, other):
    """(3,) [kg m/s] of the body between two worlds a step of 1 ms apart, without gravity's."""
    moved = adult.masses @ (other.body_transforms()[0] - one.body_transforms()[0])
    return moved * 1000


def test_the_impulse_on_a_body_grows_with_the_speed_of_the_fist(adult, fly):
    """Bodies at rest are linear in a blow: twice as fast, twice the momentum."""
    taken, back = [], -0.055 * adult.height - 0.075
    for speed in (1.0, 2.0, 4.0):
        limb = fist(_AWAY + [back - 0.01 * speed, 0, 0.35], speed)
        steps = 10 + 10  # to the trunk, and as long on with it
        pair = [fly(limb, count) for count in (steps, steps + 1)]
        taken.append(momentum(adult, *pair)[0])
    assert taken[0] > 5.0
    assert taken[1] == pytest.approx(2 * taken[0], rel=0.1)
    assert taken[2] == pytest.approx(2 * taken[1], rel=0.1)


def blow(motion, speed):
    """The recording of a standing body whose trunk a fist meets from behind with a speed [m/s],
    goes on with it for 10 cm, and returns to where it came from."""
    character = Character.from_motion(motion)
    neck = motion.positions[0, LANDMARK_INDEX["neck"]]
    start = neck + [-0.055 * character.height - 0.075 - 0.1, 0.0, -0.2]
    limb = fist(start, speed, motion.duration, 0.2 / speed)
    limb = replace(limb, positions=np.maximum(limb.positions, start))
    scenario = Scenario(limbs=(limb,))
    settings = Settings(when_it_falls="limp")
    return Simulation(character, motion, settings=settings, scenario=scenario).run()


@pytest.mark.slow(captured=False)
def test_a_body_leans_away_from_a_light_touch_and_falls_at_a_hard_one(make_motion):
    standing = make_motion(4.0)
    light, hard = (blow(standing, speed) for speed in (0.3, 6.0))
    assert light.fell_at is None
    way = light.com[:, 0] - light.com[0, 0]
    assert way.max() > 0.02, "it leaned away"
    assert abs(way[-1]) < 0.3 * way.max(), "and came back"
    assert hard.fell_at is not None and hard.filled
    assert hard.com[-1, 0] - hard.com[0, 0] > 0.3, "the way that it was hit"
    assert hard.com[-1, 2] < 0.5 * hard.com[0, 2]
    for found in (light, hard):
        first, *_ = found.hits()
        assert (first.by, first.part) == ("Boxer", "right hand")
        assert first.force > 10.0 and first.impulse > 1.0
        assert not found.blows[: first.sample].any() and found.blows[first.sample, 0, 0] > 0
    assert max(hit.force for hit in hard.hits()) > 3 * max(hit.force for hit in light.hits())


@pytest.mark.slow(captured=False)
def test_it_is_the_same_to_the_last_bit_every_time(make_motion):
    standing = make_motion(2.0)
    one, other = (blow(standing, 6.0) for _ in range(2))
    assert np.array_equal(one.body_positions, other.body_positions)
    assert np.array_equal(one.body_rotations, other.body_rotations)


def test_a_body_that_drops_on_another_lies_on_it_with_its_weight(adult):
    """Limp, onto a broad back a metre over the floor: nothing of it is below, and it is carried."""
    back = Limb("Whale", Solid("box", (3.0, 3.0, 0.5)), (0, 0, 0.5), (1.0, 0, 0, 0), part="back")
    world = World(adult, 300.0, Legs(adult).segments, Scenario(limbs=(back,)), RATE)
    lying = exponential(np.array([0.0, np.pi / 2, 0.0]))
    zeros = np.zeros(adult.dofs)
    start = np.array([0.0, 0.0, 1.4])
    world.reset(start, matrix_from_quaternion(lying), np.zeros(3), np.zeros(3), zeros, zeros)
    blows = np.zeros((1, 7))
    for step in range(900):
        world.advance(step / 300)
        world.step()
        if step >= 600:
            world.add_blows(blows)
    assert world.body_transforms()[0][:, 2].min() > 1.0
    assert 0.0 < max(world.touched().values()) < 0.03
    assert blows[0, 2] == pytest.approx(adult.mass * GRAVITY * 1.0, rel=0.05)


def test_the_blows_that_are_told_are_the_momentum_that_the_body_takes(adult):
    """In flight nothing else gives it any along the way of the fist, which meets a flat back."""
    start = _AWAY + [-0.055 * adult.height - 0.095, 0, 0.35]
    limb = fist(start, 3.0)
    world = World(adult, 1000.0, Legs(adult).segments, Scenario(limbs=(limb,)), RATE)
    zeros = np.zeros(adult.dofs)
    world.reset(_AWAY, np.eye(3), np.zeros(3), np.zeros(3), zeros, zeros)
    places, blows = [], np.zeros((1, 7))
    for step in range(30):
        world.advance(step / 1000)
        world.step()
        places.append(adult.masses @ world.body_transforms()[0])
        if step < 29:
            before = blows.copy()
        world.add_blows(blows)
    taken = (places[-1] - places[-2]) * 1000
    assert taken[0] > 10.0
    assert blows[0, 0] == pytest.approx(taken[0], rel=0.01)
    assert before[0, 0] <= blows[0, 0] == pytest.approx(blows[0, 3], rel=0.01)
    where = blows[0, 4:] / blows[0, 3]
    assert np.abs(where - _AWAY - [-0.055 * adult.height, 0, 0.35])[:2].max() < 0.06


# --- Where they are ------------------------------------------------------------------------------


@pytest.mark.parametrize("stature", [1.2, 1.8])
def test_limbs_lie_from_joint_to_joint_at_every_sample(make_motion, arms_swing, stature):
    motion = make_motion(2.0, stature, sway=arms_swing)
    limbs = {limb.part: limb for limb in limbs_of("Boxer", motion, 0.3)}
    for part, start, end in (
        ("upper arm", "shoulder", "elbow"),
        ("forearm", "elbow", "wrist"),
        ("thigh", "hip", "knee"),
        ("shin", "knee", "ankle"),
    ):
        for side, word in zip(SIDES, ("left", "right"), strict=True):
            limb = limbs[f"{word} {part}"]
            radius, length = limb.solid.size
            count = len(motion) if limb.moves else 1
            turns = matrix_from_quaternion(np.reshape(limb.rotations, (-1, 4)))
            reach = (radius + length / 2) * turns[..., 2]
            middles = np.reshape(limb.positions, (-1, 3))
            for tips, landmark in ((middles + reach, start), (middles - reach, end)):
                wanted = motion.positions[:count, LANDMARK_INDEX[f"{landmark}_{side}"]]
                assert np.abs(tips - wanted).max() < 1e-3
            assert limb.friction == 0.3 and limb.name == "Boxer"
    assert {limb.part for limb in limbs.values()} >= {"head", "trunk", "pelvis", "left hand"}
    hand = limbs["left hand"]
    wrist = motion.positions[:, LANDMARK_INDEX["wrist_l"]]
    away = np.linalg.norm(np.reshape(hand.positions, (-1, 3)) - wrist, axis=1)
    assert np.allclose(away, away[0]) and 0.02 * stature < away[0] < 0.05 * stature


def test_a_foot_of_a_limb_has_its_sole_on_the_floor(standing):
    limbs = {limb.part: limb for limb in limbs_of("Boxer", standing)}
    for part in ("left foot", "right foot", "left toe", "right toe"):
        limb = limbs[part]
        assert not limb.moves
        turn = matrix_from_quaternion(limb.rotations)
        corners = corners_of(limb.solid).reshape(-1, 3) @ turn.T + limb.positions
        assert corners[:, 2].min() == pytest.approx(0.0, abs=0.01)


def test_nothing_stands_on_a_limb(standing):
    """A floor with a body about is level: that of no collider."""
    limbs = limbs_of("Boxer", standing)
    assert Terrain.of(Scenario(limbs=limbs), 0.0, standing) is None
    world = World(Character.from_motion(standing), 300.0, [], Scenario(limbs=limbs), standing.rate)
    assert not world.has_colliders


# --- Refused, and kept ---------------------------------------------------------------------------


def test_two_bodies_inside_each_other_are_refused_by_name(standing):
    character = Character.from_motion(standing)
    simulation = Simulation(
        character, standing, scenario=Scenario(limbs=limbs_of("Boxer", standing))
    )
    with pytest.raises(SettingsError, match=r"of 'Boxer' is at least \d+ cm inside of the charact"):
        simulation.run()


def test_hands_that_touch_at_the_start_let_go_and_meet_again(adult, fly):
    """What overlaps a little at the start pushes nothing, until it has left."""
    chest = _AWAY + [-0.055 * adult.height - 0.075 + 0.02, 0, 0.35]
    still = Limb("Boxer", Solid("capsule", (0.045, 0.06)), chest, _ASIDE)
    pair = [fly(still, steps) for steps in (5, 6)]
    assert np.abs(momentum(adult, *pair)[:2]).max() < 0.01


def test_a_limb_that_jumps_is_refused_with_its_frame(make_motion):
    motion = make_motion(1.0)
    moved = motion.positions.copy()
    moved[30:] += [2.0, 0, 0]
    with pytest.raises(SettingsError, match="of 'Boxer' jumps from frame 30 to 31, at 120 m/s"):
        limbs_of("Boxer", replace(motion, positions=moved))


def test_scenarios_with_limbs_are_the_same_after_json_and_others_as_they_were(standing):
    scenario = Scenario(limbs=(fist((0, 0, 1), 2.0),))
    data = scenario.as_dict()
    again = Scenario.from_dict(data)
    assert again.as_dict() == data and isinstance(again.limbs[0], Limb)
    assert again.touches_body and not Scenario().touches_body
    assert "limbs" not in Scenario().as_dict()
    with pytest.raises(SettingsError, match="'Boxer' has no size"):
        Scenario(limbs=(replace(scenario.limbs[0], solid=Solid("capsule", (0.1,))),)).check(70)

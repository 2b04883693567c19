# SPDX-License-Identifier: GPL-3.0-or-later
"""Things and colliders obey mechanics, and the character stands on what is under its feet."""

from dataclasses import replace

import numpy as np
import pytest

from poise.controller import Character, Simulation
from poise.controller.body.momentum import GRAVITY
from poise.controller.control.legs import Legs
from poise.controller.exceptions import SettingsError
from poise.controller.geometry.rotations import exponential, matrix_from_quaternion, multiply
from poise.controller.geometry.skeleton import SEGMENT_INDEX
from poise.controller.geometry.solids import (
    corners_of,
    fewer_points,
    mass_properties,
    principal_axes,
    stands_at,
)
from poise.controller.simulation.scenario import Collider, Push, Scenario, Solid, Thing
from poise.controller.simulation.world import World

RATE = 300.0
STILL = (1.0, 0.0, 0.0, 0.0)
#: Where the body falls freely, out of the way of all else [m].
_AWAY = np.array([0.0, 50.0, 60.0])


def ball(radius=0.1, mass=1.0, name="Ball", **values):
    return Thing(name, Solid("sphere", (radius,)), mass, **values)


def crate(half=(0.1, 0.1, 0.1), mass=1.0, name="Crate", **values):
    return Thing(name, Solid("box", half), mass, **values)


@pytest.fixture
def drop(adult):
    """drop(seconds, rate, **scenario) -> positions (n, T, 3) and rotations (n, T, 4) after every
    step, with the limp body out of the way."""

    def run(seconds, rate=RATE, **scenario):
        world = World(adult, rate, Legs(adult).segments, Scenario(**scenario), 60.0)
        zeros = np.zeros(adult.dofs)
        world.reset(_AWAY, np.eye(3), np.zeros(3), np.zeros(3), zeros, zeros)
        steps = []
        for step in range(round(seconds * rate)):
            world.advance(step / rate)
            world.step()
            steps.append(world.things())
        world.close()
        positions, turns = zip(*steps, strict=True)
        return np.array(positions), np.array(turns)

    return run


def test_a_thing_flies_in_a_parabola_from_its_start_on(drop):
    thing = ball(start=0.2, position=(1, 2, 10), velocity=(1, 2, 3), spin=(0, 0, 2))
    path, turns = drop(1.2, things=(thing,))
    assert np.isnan(path[: round(0.2 * RATE)]).all()
    # Bullet moves with the velocity at the end of a step: half a step ahead.
    wanted = np.array([1 + 1, 2 + 2, 10 + 3 - GRAVITY / 2 * (1 + 1 / RATE)])
    assert np.allclose(path[-1, 0], wanted, atol=1e-6)
    assert 2 * np.arctan2(turns[-1, 0, 3], turns[-1, 0, 0]) == pytest.approx(2.0, abs=1e-6)


@pytest.mark.parametrize("bounce", [0.0, 0.5, 0.9])
def test_a_ball_bounces_as_high_as_its_restitution_says(adult, drop, bounce):
    start = adult.ground + 1.1
    path, _ = drop(1.2, 1000.0, things=(ball(position=(0, 0, start), restitution=bounce),))
    height = path[:, 0, 2] - adult.ground - 0.1
    lowest = np.argmin(height[:500])
    assert abs(height[lowest]) < 0.005
    assert height[lowest:].max() == pytest.approx(bounce**2, abs=0.05)


def test_a_hit_keeps_the_momentum(adult):
    """A ball meets the limp body in the air: what one loses the other gains."""
    rate = 1000.0
    thing = ball(mass=4.0, position=tuple(_AWAY + [2, 0, 0.2]), velocity=(-5, 0, 0))
    world = World(adult, rate, Legs(adult).segments, Scenario(things=(thing,)))
    zeros = np.zeros(adult.dofs)
    world.reset(_AWAY, np.eye(3), np.zeros(3), np.zeros(3), zeros, zeros)
    places = []
    for step in range(800):
        world.advance(step / rate)
        world.step()
        bodies = adult.masses @ world.body_transforms()[0]
        places.append([bodies, 4.0 * world.things()[0][0]])
    momenta = np.diff(np.array(places), axis=0) * rate
    total = momenta.sum(1)
    total[:, 2] += (adult.masses.sum() + 4.0) * GRAVITY * np.arange(2, 801) / rate
    assert np.allclose(total[0], [-20, 0, 0], atol=0.01)
    assert np.abs(total - total[0]).max() < 0.01 * 20
    assert momenta[-1, 0, 0] < -10  # the body has most of it


@pytest.mark.parametrize("friction", [1.0, 0.2])
def test_a_crate_on_a_ramp_rests_or_slides_by_its_friction(drop, friction):
    angle = np.radians(20)
    turn = tuple(exponential(np.array([0, angle, 0])))
    frame = matrix_from_quaternion(turn)
    ramp = Collider("Ramp", Solid("box", (8, 8, 0.1)), (0, 0, 2), turn)
    start = np.array([0, 0, 2.0]) + frame @ [0, 0, 0.1 + 0.15]
    thing = crate((0.2, 0.2, 0.15), 5.0, position=tuple(start), rotation=turn, friction=friction)
    path, _ = drop(2.0, things=(thing,), colliders=(ramp,))
    down, _, off = frame.T @ (path[-1, 0] - start)
    pull = max(0.0, GRAVITY * (np.sin(angle) - friction * np.cos(angle)))
    assert down == pytest.approx(pull / 2 * 2**2, abs=0.02)
    assert abs(off) < 0.003


def stairs(count=4, run=0.4, rise=0.2):
    """A mesh of steps down along x: nothing of it is convex."""
    vertices, faces = [], []
    for i in range(count):
        left, right, top = i * run, (i + 1) * run, (count - i) * rise
        n = len(vertices)
        vertices += [(left, -1, top), (right, -1, top), (right, 1, top), (left, 1, top)]
        vertices += [(right, -1, top - rise), (right, 1, top - rise)]
        faces += [(n, n + 1, n + 2), (n, n + 2, n + 3)]
        faces += [(n + 1, n + 4, n + 5), (n + 1, n + 5, n + 2)]
    return Solid("mesh", vertices=np.array(vertices, float), faces=np.array(faces))


def test_stairs_keep_their_steps(drop):
    steps = Collider("Stairs", stairs(), (0, 0, 1))
    things = tuple(
        crate(name=f"Crate {i}", position=(0.2 + 0.4 * i, 0, 1.8 - 0.2 * i + 0.12))
        for i in range(4)
    )
    path, _ = drop(1.0, things=things, colliders=(steps,))
    assert np.allclose(path[-1, :, 2], [1.9, 1.7, 1.5, 1.3], atol=0.003)


@pytest.mark.parametrize("kind", ["box", "mesh"])
def test_a_platform_carries_a_crate_by_friction(drop, kind):
    time = np.arange(181) / 60
    along = 0.3 * (1 - np.cos(np.pi * np.clip(time / 2.5, 0, 1)))
    path = np.stack([along, 0 * along, 1 + 0.3 * along], 1)
    turns = exponential(np.stack([0 * along, 0 * along, along], 1))
    solid = Solid("box", (1, 1, 0.1))
    if kind == "mesh":
        corners = np.array([(-1, -1, 0.1), (1, -1, 0.1), (1, 1, 0.1), (-1, 1, 0.1)])
        solid = Solid("mesh", vertices=corners, faces=np.array([(0, 1, 2), (0, 2, 3)]))
    lift = Collider("Lift", solid, path, turns)
    start = np.array([0.4, 0, 0.2])
    found, rotations = drop(
        3.0, things=(crate(position=tuple(path[0] + start)),), colliders=(lift,)
    )
    frame = matrix_from_quaternion(turns[-1])
    assert np.allclose(found[-1, 0], path[-1] + frame @ start, atol=0.01)
    turned = multiply(rotations[-1, 0], turns[-1] * [1, -1, -1, -1])
    assert abs(turned[0]) > np.cos(0.01)


def test_it_is_the_same_to_the_last_bit_every_time(drop):
    scenario = {
        "colliders": (Collider("Stairs", stairs(), (0, 0, 1)),),
        "things": (
            crate(position=(0.3, 0, 2.5), spin=(3, 1, 2)),
            ball(position=(0.3, 0.05, 3.0), restitution=0.5),
        ),
    }
    first, again = drop(1.0, **scenario), drop(1.0, **scenario)
    for a, b in zip(first, again, strict=True):
        assert np.array_equal(a, b, equal_nan=True)


# Shapes -----------------------------------------------------------------------------------------

_CUBE = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
_CUBE_FACES = np.array(
    [[0, 1, 3], [0, 3, 2], [4, 5, 7], [4, 7, 6], [0, 1, 5], [0, 5, 4]]
    + [[2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 3, 7], [1, 7, 5]]
)


def test_mass_properties_are_those_of_the_solid():
    """Of a turned box, by its formula, and of a tetrahedron, by integration at random."""
    size, turn = np.array([0.3, 0.5, 1.1]), matrix_from_quaternion(exponential(np.array([1, 2, 3])))
    volume, centre, inertia = mass_properties((_CUBE * size) @ turn.T + [5, 6, 7], _CUBE_FACES)
    assert volume == pytest.approx(size.prod())
    assert np.allclose(centre, turn @ (size / 2) + [5, 6, 7])
    square = size**2
    assert np.allclose(inertia, turn @ np.diag(square.sum() - square) @ turn.T / 12)
    axes = principal_axes(inertia)
    assert np.linalg.det(axes) == pytest.approx(1)
    principal = axes.T @ inertia @ axes
    assert np.allclose(principal, np.diag(np.diag(principal)), atol=1e-12)

    corners = np.array([[0, 0, 0], [1, 0, 0], [0.2, 0.8, 0], [0.3, 0.1, 0.9]])
    faces = [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]]
    volume, centre, inertia = mass_properties(corners, faces)
    shares = np.random.default_rng(1).dirichlet([1, 1, 1, 1], 200_000)
    points = shares @ corners - centre
    spread = points.T @ points / len(points)
    assert volume == pytest.approx(0.8 * 0.9 / 6)
    assert np.allclose(points.mean(0), 0, atol=0.002)
    assert np.allclose(inertia, np.trace(spread) * np.eye(3) - spread, atol=0.001)


def test_a_hull_turns_with_its_own_inertia(drop):
    """A spin about a middle axis tips over; about the others it stays."""
    solid = Solid("hull", vertices=(_CUBE - 0.5) * [0.2, 0.4, 0.8], faces=_CUBE_FACES)
    for axis, stays in ((0, True), (1, False), (2, True)):
        spin = np.full(3, 0.05)
        spin[axis] = 10.0
        thing = Thing("Stone", solid, 1.0, position=(0, 0, 30), spin=tuple(spin))
        _, turns = drop(2.0, 1000.0, things=(thing,))
        along = matrix_from_quaternion(turns[:, 0])[:, axis, axis]
        assert (along.min() > 0.9) == stays
        assert stays or along.min() < -0.5


def test_fewer_points_make_nearly_the_same_hull():
    points = np.random.default_rng(0).normal(size=(5000, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    few = fewer_points(points)
    assert len(few) <= 128
    assert (few @ points.T).max(0).min() > 0.95  # no direction reaches less far by a twentieth
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 9)] * 3), -1).reshape(-1, 3)
    kept = {tuple(point) for point in fewer_points(grid)}
    assert {tuple(corner) for corner in _CUBE} <= kept


# The character ----------------------------------------------------------------------------------


def raised(motion, height):
    """The motion so much higher."""
    return replace(motion, positions=motion.positions + [0, 0, height])


def simulated(motion, **scenario):
    """The Recording of a person on what the scenario has."""
    character = Character.from_motion(motion, floor=stands_at(scenario["colliders"], motion))
    return Simulation(character, motion, scenario=Scenario(**scenario)).run()


@pytest.mark.parametrize("height", [0.03, 0.1, 0.5])
def test_it_stands_on_a_box(standing, height):
    """The ground is the top of the box, whatever the soles of the clip are; the floor is below."""
    box = Collider("Podium", Solid("box", (0.6, 0.6, height / 2)), (0, 0, height / 2))
    motion = raised(standing, height)
    recording = simulated(motion, colliders=(box,), floor=0.0)
    assert recording.character.ground == pytest.approx(height, abs=1e-6)
    assert recording.success
    loads = recording.contact_forces[30:, :, 2].sum(1)
    assert loads.mean() == pytest.approx(recording.character.mass * GRAVITY, rel=0.03)
    cops = recording.cops[30:]
    assert np.allclose(cops[np.isfinite(cops[..., 0])][:, 2], height, atol=0.003)
    rise = recording.body_positions[-1, 0, 2] - recording.body_positions[0, 0, 2]
    assert abs(rise) < 0.01


@pytest.mark.parametrize("top", [-0.004, 0.0, 0.001])
@pytest.mark.parametrize("kind", ["box", "hull", "mesh"])
def test_a_collider_at_the_height_of_the_floor_decides(standing, kind, top):
    """Ice that nobody has lifted over the floor is ice: a push slides the feet off over it."""
    solid = Solid("box", (3, 3, 0.1))
    if kind != "box":
        corners = corners_of(solid).reshape(-1, 3)
        solid = Solid(kind, (), corners, np.arange(len(corners)).reshape(-1, 3))
    ice = Collider("Ice", solid, (0, 0, top - 0.1), friction=0.02)
    push = Push(0.5, 0.1, (60.0, 0.0, 0.0), "pelvis")
    recording = simulated(standing, colliders=(ice,), floor=min(0.0, top), pushes=(push,))
    forces = recording.contact_forces[30:50].sum(1)  # what falls later strikes it
    assert np.linalg.norm(forces[:, :2], axis=1).max() < 0.03 * forces[:, 2].max()


def test_colliders_elsewhere_are_where_they_are_called(adult):
    """Only those whose top is the floor's are lifted off it, by a hair."""
    box = Solid("box", (1, 1, 0.1))
    heights = {0.02: 0.02, 0.0: 0.001, -0.004: 0.001, -0.02: 0.0}
    for top, height in heights.items():
        scenario = Scenario(colliders=(Collider("Slab", box, (0, 0, top - 0.1)),), floor=0.0)
        world = World(adult, RATE, Legs(adult).segments, scenario, 60.0)
        assert world.height_at(0.5, 0.5) == pytest.approx(height, abs=1e-6)
        world.close()


def test_it_stands_on_a_slight_ramp(standing):
    turn = exponential(np.array([0, np.radians(3), 0]))
    down = matrix_from_quaternion(turn) @ [0, 0, -0.1]
    ramp = Collider("Ramp", Solid("box", (2, 2, 0.1)), down, turn)
    recording = simulated(standing, colliders=(ramp,), floor=-1.0)
    assert recording.success
    assert recording.reward > 1.7


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_it_rides_on_a_platform_that_moves_slowly(make_motion, axis):
    """Its feet do not slide on it, and it is carried along."""
    motion = make_motion(seconds=3.0)
    time = np.arange(len(motion)) / motion.rate
    path = np.tile([0, 0, -0.1], (len(motion), 1)).astype(float)
    path[:, axis] += 0.15 * (1 - np.cos(np.pi * np.clip((time - 0.5) / 2, 0, 1)))
    still = np.tile(STILL, (len(motion), 1))
    platform = Collider("Platform", Solid("box", (2, 2, 0.1)), path, still)
    recording = simulated(motion, colliders=(platform,), floor=-1.0)
    assert recording.success
    assert recording.summary()["slide_error"] < 0.01
    moved = recording.body_positions[-1] - recording.body_positions[0]
    assert moved[:, axis].mean() == pytest.approx(0.3, abs=0.03)


def test_the_step_under_one_foot_is_no_ground(standing):
    box = Collider("Step", Solid("box", (0.2, 0.06, 0.1)), (0, 0.1, 0.0))
    assert stands_at((box,), standing) is None
    both = Collider("Floor", Solid("box", (2, 2, 0.05)), (0, 0, -0.05))
    assert stands_at((both,), standing) == pytest.approx(0)
    assert stands_at((both, Collider("Sky", Solid("box", (2, 2, 1)), (0, 0, 5))), standing) == 0


@pytest.mark.parametrize("whole_body", [False, True])
def test_only_with_whole_body_contact_a_beam_meets_the_arms(swinging, whole_body):
    """A beam in front of the chest stops the swinging arms, or is not there for them."""
    beam = Collider("Beam", Solid("box", (0.03, 1.0, 0.03)), (0.28, 0, 1.0))
    recording = simulated(swinging, colliders=(beam,), whole_body=whole_body)
    hands = [SEGMENT_INDEX["forearm_l"], SEGMENT_INDEX["forearm_r"]]
    free = Simulation(recording.character, swinging).run()
    count = min(len(recording), len(free))
    apart = recording.body_positions[:count, hands] - free.body_positions[:count, hands]
    assert (np.abs(apart).max() > 0.03) == whole_body


def test_parts_of_the_body_stop_each_other_with_self_collision(make_motion):
    """An arm that is animated through the trunk stays outside of it."""

    def across(time):
        zero = np.zeros_like(time)
        swing = 1.2 * np.clip(time, 0, 1)
        return {
            "upper_arm_l": np.stack([-swing * 0.55, zero, zero], 1),
            "forearm_l": np.stack([-swing * 0.3, zero, zero], 1),
        }

    motion = make_motion(sway=across)
    character = Character.from_motion(motion)
    hand = SEGMENT_INDEX["forearm_l"]
    runs = [
        Simulation(character, motion, scenario=Scenario(self_collision=own)).run()
        for own in (False, True)
    ]
    inward = [run.body_positions[-1, hand, 1] for run in runs]
    assert inward[1] > inward[0] + 0.02


def test_a_ball_that_falls_on_the_head_is_felt(standing):
    character = Character.from_motion(standing)
    top = standing.positions[0, :, 2].max()
    thing = ball(0.15, 3.0, position=(0.0, 0.0, top + 0.5))
    recording = Simulation(character, standing, scenario=Scenario(things=(thing,))).run()
    height = recording.thing_positions[:, 0, 2]
    contact = np.argmax(height < top + 0.15 + 0.02)
    assert contact / standing.rate == pytest.approx(np.sqrt(2 * 0.35 / GRAVITY), abs=0.05)
    alone = Simulation(character, standing).run()
    head = SEGMENT_INDEX["head"]
    apart = recording.body_positions[:, head] - alone.body_positions[: len(recording), head]
    assert np.abs(apart[:contact]).max() < 1e-3 < 0.005 < np.abs(apart[contact:]).max()


def test_what_a_hand_lets_go_passes_the_hand(standing):
    """A ball that overlaps the forearm at its start is not shot away, and falls past it."""
    character = Character.from_motion(standing)
    frames = Simulation(character, standing)
    next(iter(frames))
    hand = frames.recording.body_positions[0, SEGMENT_INDEX["forearm_l"]]
    thing = ball(0.06, 0.5, position=tuple(hand + [0.0, 0.07, 0.0]))
    recording = Simulation(character, standing, scenario=Scenario(things=(thing,))).run()
    path = recording.thing_positions[2:20, 0]
    fall = np.diff(path[:, 2], n=2) * standing.rate**2
    assert np.allclose(fall[:10], -GRAVITY, atol=0.5)
    assert np.abs(np.diff(path[:, :2], axis=0)).max() * standing.rate < 0.2


def test_what_starts_inside_of_the_character_is_refused(standing):
    character = Character.from_motion(standing)
    trunk = standing.positions[0].mean(0)
    for scenario, sentence in (
        ({"things": (ball(position=tuple(trunk)),)}, "The thing 'Ball' is at least .* cm inside"),
        (
            {"colliders": (Collider("Wall", Solid("box", (0.5, 0.5, 0.1)), (0, 0, 0.05)),)},
            "The collider 'Wall' is at least .* cm inside of the character's foot_",
        ),
        (
            {
                "colliders": (Collider("Bar", Solid("box", (0.5, 0.5, 0.1)), (0, 0, 1.1)),),
                "whole_body": True,
            },
            "The collider 'Bar' is at least .* inside of the character's .* at its start: move it",
        ),
    ):
        with pytest.raises(SettingsError, match=sentence):
            Simulation(character, standing, scenario=Scenario(**scenario)).run()

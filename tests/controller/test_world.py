# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine against mechanics: momenta, forward dynamics, damping."""

import pickle
import subprocess
import sys

import numpy as np
import pybullet
import pytest

from poise.controller import Character
from poise.controller.control.legs import Legs
from poise.controller.geometry.rotations import exponential, matrix_from_quaternion, rotation_about
from poise.controller.simulation.world import GRAVITY, World


def throw(world, seed=0):
    """A random pose in the air, with random velocities."""
    random = np.random.default_rng(seed)
    count = world.character.dofs
    pose = {
        "root": np.array([0.3, -0.2, 3.0]),
        "frame": matrix_from_quaternion(exponential(random.normal(0, 0.7, 3))),
        "linear": random.normal(0, 1, 3),
        "angular": random.normal(0, 1, 3),
        "angles": np.minimum(random.uniform(-0.2, 0.2, count), world.character.limits[:, 1] - 0.1),
        "speeds": random.normal(0, 1, count),
    }
    world.reset(**pose)
    return pose


def bodies(world):
    """Masses (n,), centres, velocities, angular velocities (n, 3) and world inertias (n, 3, 3) of
    all of Bullet's links, those inside the joints included."""
    body, client = world.body, world._client
    count = world.character.dofs
    position, turn = pybullet.getBasePositionAndOrientation(body, client)
    linear, angular = pybullet.getBaseVelocity(body, client)
    rows = [(position, turn, linear, angular)]
    for state in pybullet.getLinkStates(body, list(range(count)), 1, 0, client):
        rows.append((state[0], state[1], state[6], state[7]))
    masses, inertias = [], []
    for link, row in zip(range(-1, count), rows, strict=True):
        info = pybullet.getDynamicsInfo(body, link, client)
        masses.append(info[0])
        frame = np.array(pybullet.getMatrixFromQuaternion(row[1])).reshape(3, 3)
        inertias.append(frame @ np.diag(info[2]) @ frame.T)
    centres, _, linear, angular = (np.array(column) for column in zip(*rows, strict=True))
    return np.array(masses), centres, linear, angular, np.array(inertias)


def test_links_are_where_the_base_is_after_a_step(world):
    """Bullet keeps the links of the step before unless it is told to compute them."""
    throw(world)
    for _ in range(5):
        world.step()
    state, character = world.state(), world.character
    root = state.root - state.frame @ character.centres[0]
    joints, frames = character.forward(root[None], state.frame[None], state.angles[None])
    centres, _ = world.body_transforms()
    assert np.abs(centres - character.body_centres(joints, frames)[0]).max() < 1e-6
    legs = Legs(character).segments
    assert np.abs(state.positions - joints[0, legs]).max() < 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_forward_kinematics_agree_with_the_engine(world, seed):
    pose = throw(world, seed)
    joints, frames = world.character.forward(
        pose["root"][None], pose["frame"][None], pose["angles"][None]
    )
    centres, turns = world.body_transforms()
    assert np.allclose(world.character.body_centres(joints, frames)[0], centres, atol=1e-12)
    assert np.allclose(frames[0], matrix_from_quaternion(turns), atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_momentum_of_the_mass_matrix_is_the_sum_over_bodies(world, seed):
    throw(world, seed)
    state = world.state()
    inertia = world.mass_matrix(state.angles)
    momenta = inertia[:6] @ state.speeds
    mass = world.character.mass
    local = np.array([inertia[2, 4], inertia[0, 5], inertia[1, 3]]) / mass
    com = state.root + state.frame @ local
    linear = state.frame @ momenta[3:]
    angular = state.frame @ (momenta[:3] - np.cross(local, momenta[3:]))

    masses, centres, velocities, spins, inertias = bodies(world)
    assert masses.sum() == pytest.approx(mass, rel=1e-12)
    sum_com = masses @ centres / mass
    orbit = np.cross(centres - sum_com, velocities * masses[:, None]).sum(0)
    assert np.allclose(com, sum_com, atol=1e-9)
    assert np.allclose(linear, (masses[:, None] * velocities).sum(0), atol=1e-9)
    assert np.allclose(angular, orbit + np.einsum("nij,nj->i", inertias, spins), atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_forward_dynamics_agree_with_the_engine(world, seed):
    throw(world, seed)
    state = world.state()
    inertia = world.mass_matrix(state.angles)
    torques = np.random.default_rng(seed).normal(0, 5, world.character.dofs)
    applied = np.concatenate([np.zeros(6), torques])
    acceleration = np.linalg.solve(inertia, applied - world.bias(state, inertia))
    world.apply(torques)
    world.step()
    measured = (world.state().speeds[6:] - state.speeds[6:]) * world.rate
    assert np.allclose(measured, acceleration[6:], rtol=1e-9, atol=1e-7)


def test_momentum_is_kept_in_flight(adult):
    """Nothing brakes: Bullet's motors and damping, 0.8 % of the momentum here, are off. What is
    left is its integrator's error, of first order in the step."""
    world = World(adult, 4000.0, Legs(adult).segments)
    throw(world)
    before = bodies(world)
    for _ in range(800):
        world.step()
    after = bodies(world)
    world.close()

    def total(masses, centres, velocities, spins, inertias):
        com = masses @ centres / masses.sum()
        orbit = np.cross(centres - com, velocities * masses[:, None]).sum(0)
        return masses @ velocities, orbit + np.einsum("nij,nj->i", inertias, spins)

    (p, spin), (p_after, spin_after) = total(*before), total(*after)
    fall = np.array([0, 0, -GRAVITY * 0.2 * adult.mass])
    assert np.linalg.norm(p_after - p - fall) < 0.002 * np.linalg.norm(p)
    assert np.linalg.norm(spin_after - spin) < 0.02 * np.linalg.norm(spin)


def test_knees_stop_at_their_limit(world):
    adult = world.character
    frame, zero = np.eye(3), np.zeros(adult.dofs)
    world.reset(np.array([0, 0, 3.0]), frame, np.zeros(3), np.zeros(3), zero, zero)
    knee = adult.dof_names.index("knee_l_pitch")
    push = zero.copy()
    push[knee] = -30
    for _ in range(300):
        world.apply(push)
        world.step()
    assert world.state().angles[knee] > adult.limits[knee, 0] - 0.05


def test_a_world_can_go_back(world):
    throw(world)
    world.step()
    handle = world.save()
    ends = []
    for _ in range(2):
        world.restore(handle)
        for _ in range(50):
            world.apply(np.full(world.character.dofs, 0.5))
            world.step()
        ends.append(world.state().angles)
    assert np.array_equal(*ends)


def test_a_world_knows_how_its_feet_are_held(world):
    def frictions():
        links = world.foot_links  # left and right, toes behind
        return [pybullet.getDynamicsInfo(world.body, i, world._client)[1] for i in links]

    throw(world)
    world.grip([0.25, 1.0])
    assert frictions() == [0.25, 1.0, 0.25, 1.0]
    handle = world.save()
    world.grip([1.0, 0.5])
    assert frictions() == [1.0, 0.5, 1.0, 0.5]
    world.restore(handle)
    assert frictions() == [0.25, 1.0, 0.25, 1.0]
    throw(world)
    assert frictions() == [1.0] * 4


def test_worlds_do_not_mix(adult, make_motion):
    """What one world answers does not depend on the others that are open."""
    child = Character.from_motion(make_motion(stature=1.1))
    alone = World(adult, 1000.0, Legs(adult).segments)
    throw(alone)
    state = alone.state()
    inertia = alone.mass_matrix(state.angles)
    expected = inertia, alone.bias(state, inertia)
    alone.close()
    other = World(child, 300.0, Legs(child).segments)
    beside = World(adult, 1000.0, Legs(adult).segments)
    throw(beside)
    state = beside.state()
    inertia = beside.mass_matrix(state.angles)
    assert np.array_equal(inertia, expected[0])
    assert np.array_equal(beside.bias(state, inertia), expected[1])
    beside.step()
    beside.close()
    other.close()


def test_a_world_that_nobody_closes_is_freed(adult):
    world = World(adult, 1000.0, Legs(adult).segments)
    client = world._client
    assert pybullet.isConnected(client)
    del world
    assert not pybullet.isConnected(client)


def test_a_world_at_the_end_of_the_program_says_nothing(adult, tmp_path):
    """Modules are emptied one after the other: PyBullet's before NumPy's, which has the world."""
    path = tmp_path / "adult"
    path.write_bytes(pickle.dumps(adult))
    script = f"""
import pathlib, pickle, numpy
from poise.controller.control.legs import Legs
from poise.controller.simulation.world import World
adult = pickle.loads(pathlib.Path({str(path)!r}).read_bytes())
numpy.world = World(adult, 1000.0, Legs(adult).segments)
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert found.returncode == 0 and "Error" not in found.stderr, found.stderr


@pytest.mark.parametrize(
    "pitch, roll, fewest, most", [(0, 0, 3, 16), (0.3, 0, 1, 4), (0.2, 0.2, 1, 2)]
)
def test_a_sole_carries_at_its_corners(adult, pitch, roll, fewest, most):
    """A rigid body that is let down: flat on both soles, on two tips, on one corner."""
    world = World(adult, 1000.0, Legs(adult).segments)
    try:
        frame = rotation_about(1, np.array(pitch)) @ rotation_about(0, np.array(roll))
        angles = np.zeros(adult.dofs)
        joints, frames = adult.forward(np.zeros((1, 3)), frame[None], angles[None])
        lowest = adult.sole_corners(joints, frames)[..., 2].min()
        root = np.array([0, 0, adult.ground - lowest - 1e-4])
        world.reset(root, frame, np.zeros(3), np.zeros(3), angles, np.zeros(adult.dofs))
        world.apply(np.zeros(adult.dofs))
        world.step()
        touch, forces, _, _, carrying = world.contacts()
        assert any(touch) and sum(force[2] for force in forces) > 0
        assert fewest <= carrying <= most
    finally:
        world.close()

# SPDX-License-Identifier: GPL-3.0-or-later
"""Pushes, things and colliders: what is drawn at random, what is refused, what physics does."""

import json
from dataclasses import replace

import numpy as np
import pytest

from poise.controller import Character, Simulation
from poise.controller.body.momentum import GRAVITY
from poise.controller.control.legs import Legs
from poise.controller.exceptions import SettingsError
from poise.controller.simulation.scenario import (
    Collider,
    Push,
    Scenario,
    Solid,
    Thing,
    Throw,
    random_pushes,
    random_throws,
)
from poise.controller.simulation.world import World


def test_random_pushes_are_those_of_the_measures():
    pushes = random_pushes(100.0, 20.0, 7)
    starts = np.array([push.start for push in pushes])
    assert np.allclose(np.diff(starts), 1.0)
    assert 1.0 <= starts[0] < 2.0
    assert starts[-1] >= 18.0
    forces = np.array([push.force for push in pushes])
    assert np.allclose(np.linalg.norm(forces, axis=1), 100.0)
    assert (forces[:, 2] == 0).all()
    assert {(push.segment, push.duration, push.point) for push in pushes} == {("trunk", 0.2, None)}
    assert pushes == random_pushes(100.0, 20.0, 7) != random_pushes(100.0, 20.0, 8)


def test_a_sphere_has_its_density_and_flies_to_the_neck():
    throw = random_throws(3.0, 20.0, 1)[0]
    (radius,) = throw.solid.size
    assert 4 / 3 * np.pi * radius**3 * 100.0 == pytest.approx(3.0)
    neck = np.array([1.0, 2.0, 1.5])
    thing = throw.launched(neck)
    away = np.array(thing.position) - neck
    assert np.hypot(*away[:2]) == pytest.approx(3.0)
    assert away[2] == pytest.approx(1.5)
    assert np.allclose(thing.velocity, -5.0 * away * [1, 1, 0] / 3.0)


def test_a_push_over_time_is_linear_between_its_values():
    push = Push(1.0, 0.5, ((0, 0, 0), (100, 0, 0), (0, 0, 0)))
    assert push.force_at(0.99).tolist() == [0, 0, 0]
    assert push.force_at(1.125)[0] == pytest.approx(50)
    assert push.force_at(1.25)[0] == pytest.approx(100)
    assert push.force_at(1.5).tolist() == [0, 0, 0]


def test_a_scenario_survives_json():
    cube = Solid(
        "hull", vertices=np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)])
    )
    scenario = Scenario(
        pushes=random_pushes(50.0, 5.0, 0),
        things=(Throw(2.0, 1.0, 0.5), Thing("Ball", Solid("sphere", (0.1,)), 1.0)),
        colliders=(Collider("Step", cube, np.zeros((4, 3)), np.tile([1.0, 0, 0, 0], (4, 1))),),
        weights={"arms": np.linspace(0, 1, 4)},
    )
    data = json.loads(json.dumps(scenario.as_dict()))
    again = Scenario.from_dict(data)
    again.check(70.0)
    assert again.as_dict() == scenario.as_dict()
    assert [type(thing) for thing in again.things] == [Throw, Thing]


_BALL = Thing("Ball", Solid("sphere", (0.1,)), 1.0)
_STEP = Collider("Step", Solid("box", (1.0, 1.0, 0.1)))


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        (Push(0, 0.2, (1, 0, 0), "tail"), "acts on 'tail', which no body has: choose one of"),
        (Push(0, 0.0, (1, 0, 0)), "lasts 0 s: give it a duration above 0 s"),
        (Push(0, 0.2, (np.nan, 0, 0)), "not a number"),
        (replace(_BALL, mass=0.0), "'Ball' has a mass of 0 kg: give it 0.0001 to 1000000 kg"),
        (replace(_BALL, mass=-2.0), "'Ball' has a mass of -2 kg"),
        (replace(_BALL, velocity=(np.inf, 0, 0)), "not a number"),
        (Throw(0.0, 1.0, 0.0), "'Sphere' has a mass of 0 kg"),
        (Throw(1.0, 1.0, 0.0, density=0.0), "density of 0 kg/m³"),
        (replace(_BALL, solid=Solid("sphere", (0.0,))), "'Ball' has no size"),
        (replace(_STEP, solid=Solid("mesh", vertices=np.eye(3))), "'Step' has no faces"),
        (
            replace(_BALL, solid=Solid("mesh", vertices=np.eye(3), faces=[[0, 1, 2]])),
            "its shape must be convex",
        ),
    ],
)
def test_what_cannot_be_is_refused(part, sentence):
    kind = "pushes" if isinstance(part, Push) else "colliders" if part is _STEP else "things"
    kind = "colliders" if isinstance(part, Collider) else kind
    with pytest.raises(SettingsError, match=sentence):
        Scenario(**{kind: (part,)}).check(70.0)


def test_a_push_is_at_most_what_a_body_takes():
    """A body of 70 kg takes 1092 N s, 15.6 m/s, within 0.2 s; a longer push may go on for ever."""
    spike = np.zeros((51, 3))  # 1 s, a sample every 0.02 s: 0.02 s times its height
    spike[20, 0] = 1.0
    for push, most in (
        (Push(1.0, 0.2, (0.0, 1.0, 0.0)), 5460),
        (Push(1.0, 0.1, (0.6, 0.8, 0.0)), 10920),
        (Push(1.0, 60.0, (1.0, 0.0, 0.0)), 5460),
        (Push(1.0, 1.0, tuple(map(tuple, spike))), 54600),
        (Push(1.0, 0.02, ((0.0, 0.0, 1.0), (0.0, 0.0, 1.0)), "forearm_l"), 54600),
    ):
        force = np.array(push.force)
        Scenario((replace(push, force=0.999 * most * force),)).check(70.0)
        with pytest.raises(SettingsError, match=f"at 1.00 s is beyond .* at most {most} N."):
            Scenario((replace(push, force=1e6 * force),)).check(70.0)


@pytest.mark.parametrize(
    ("segment", "rate"), [("trunk", 300.0), ("pelvis", 240.0), ("foot_l", 1000.0)]
)
def test_a_push_gives_its_momentum(adult, segment, rate):
    """In the air the whole body gains F t, wherever it is pushed and whatever the rate."""
    push = Push(0.0101, 0.0203, (300.0, -200.0, 100.0), segment)
    world = World(adult, rate, Legs(adult).segments, Scenario((push,)))
    still = np.zeros(adult.dofs)
    world.reset(np.array([0, 0, 5.0]), np.eye(3), np.zeros(3), np.zeros(3), still, still)
    shares = adult.masses / adult.masses.sum()
    steps = round(0.05 * rate)
    places = []
    for step in range(steps + 1):
        if step in (steps - 1, steps):
            places.append(shares @ world.body_transforms()[0])
        world.advance(step / rate)
        world.step()
    velocity = (places[1] - places[0]) * rate + [0, 0, GRAVITY * steps / rate]
    wanted = np.array(push.force) * push.duration / adult.mass
    assert np.allclose(velocity, wanted, atol=0.02 * np.linalg.norm(wanted))


def test_a_thrown_sphere_meets_the_trunk(standing):
    """It flies in a parabola to the body and bounces off; the body feels it."""
    character = Character.from_motion(standing)
    scenario = Scenario(things=(Throw(3.0, 0.2, 0.0),))
    recording = Simulation(character, standing, scenario=scenario).run()
    path = recording.thing_positions[:, 0]
    flying = np.flatnonzero(np.isfinite(path[:, 0]))
    assert flying[0] / standing.rate == pytest.approx(0.2, abs=1.5 / standing.rate)
    start = path[flying[0] + 2 : flying[0] + round(0.35 * standing.rate)]
    fall = np.diff(start[:, 2], n=2) * standing.rate**2
    assert np.allclose(fall, -9.81, atol=0.05)
    assert np.diff(start[:, 0]) * standing.rate == pytest.approx(-5.0, abs=0.01)
    neck = recording.joints()[0, 2]
    assert path[flying, 0].min() > neck[0] - 0.2  # it does not fly through

# SPDX-License-Identifier: GPL-3.0-or-later
"""Several characters in one world: what one does to another, and what keeps them apart."""

import gc
import weakref
from dataclasses import replace

import numpy as np
import pybullet
import pytest

from poise.controller import Character, Scenario, Settings, Simulation
from poise.controller.body.momentum import GRAVITY
from poise.controller.control.legs import Legs
from poise.controller.exceptions import SettingsError, SimulationError
from poise.controller.geometry.rotations import matrix_from_quaternion, multiply
from poise.controller.geometry.solids import Collider, Solid
from poise.controller.simulation.holds import Hold
from poise.controller.simulation.scenario import Push
from poise.controller.simulation.together import Together
from poise.controller.simulation.world import Engine, Membership, World

RATE = 300.0
LIMP = Settings(when_it_falls="limp")


def placed(motion, x=0.0, y=0.0, z=0.0, yaw=0.0):
    """A motion elsewhere: turned about the vertical [rad], then moved [m]."""
    turn = np.array([np.cos(yaw / 2), 0, 0, np.sin(yaw / 2)])
    positions = motion.positions @ matrix_from_quaternion(turn).T + [x, y, z]
    return replace(motion, positions=positions, rotations=multiply(turn, motion.rotations))


def simulation(motion, pushes=(), settings=LIMP, **scenario):
    """A Simulation of it, with pushes."""
    scenario = Scenario(pushes, **scenario)
    return Simulation(Character.from_motion(motion), motion, settings=settings, scenario=scenario)


def facing(make_motion, newtons=450.0, seconds=2.5, settings=LIMP, apart=0.6):
    """Two who stand face to face; the first is pushed at the other after half a second."""
    motion = make_motion(seconds=seconds)
    push = Push(0.5, 0.2, (newtons, 0, 0))
    return Together(
        {
            "Anna": simulation(motion, (push,) if newtons else (), settings),
            "Ben": simulation(placed(motion, apart, yaw=np.pi), settings=settings),
        }
    )


@pytest.fixture
def fliers(adult, standing):
    """Two bodies 50 m above the ground, one ahead of the other, that fly at each other."""
    engine = Engine(RATE, shared=True)
    worlds = []
    for member, (x, speed) in enumerate([(0.0, 2.5), (0.75, -1.5)]):
        membership = Membership(engine, member, "AB"[member])
        world = World(adult, RATE, Legs(adult).segments, membership=membership)
        frame = np.diag([-1.0, -1.0, 1.0]) if member else np.eye(3)
        zeros = np.zeros(adult.dofs)
        root = np.array([x, 0.03 * member, 50.0])
        world.reset(root, frame, np.array([speed, 0, 0]), np.zeros(3), zeros, zeros)
        worlds.append(world)
    yield engine, worlds
    for world in worlds:
        world.close()


def momentum(world):
    """(2, 3) linear [N s] and angular [N m s], about the origin, momentum of a body."""
    body, client = world.body, world.engine.client
    character = world.character
    linear, angular = np.zeros(3), np.zeros(3)
    for link in range(-1, pybullet.getNumJoints(body, client)):
        mass, _, inertia, *_ = pybullet.getDynamicsInfo(body, link, client)
        if link < 0:
            place, turn = pybullet.getBasePositionAndOrientation(body, client)
            velocity, spin = pybullet.getBaseVelocity(body, client)
        else:
            state = pybullet.getLinkState(body, link, 1, 1, client)
            place, turn, velocity, spin = state[0], state[1], state[6], state[7]
        frame = np.array(pybullet.getMatrixFromQuaternion(turn)).reshape(3, 3)
        linear += mass * np.array(velocity)
        angular += np.cross(place, mass * np.array(velocity))
        angular += frame @ (np.array(inertia) * (frame.T @ spin))
    assert character.mass > 0
    return np.array([linear, angular])


def test_a_collision_in_flight_keeps_the_momentum_of_the_pair(fliers):
    engine, worlds = fliers
    before = [momentum(world) for world in worlds]
    steps = 90
    for step in range(steps):
        for world in worlds:
            world.advance(step / RATE)
        engine.step()
    after = [momentum(world) for world in worlds]
    change = np.array(after) - before
    assert abs(change[0, 0, 0]) > 50, "they have met [N s]"
    fallen = steps / RATE * GRAVITY * sum(world.character.mass for world in worlds)
    size = np.abs(before[0][0]).max()
    total = change.sum(0)
    assert np.abs(total[0, :2]).max() < 1e-3 * size
    # Where its steps become finer, the engine has gravity act for a fraction of a step more.
    assert abs(total[0, 2] + fallen) < 3e-3 * size
    # Gravity turns nothing about the axis that it is along.
    assert abs(total[1, 2]) < 5e-3 * size


@pytest.mark.slow(captured=False)
def test_what_one_feels_the_other_feels(make_motion):
    together = facing(make_motion)
    together.run()
    anna, ben = (one.recording for one in together.simulations.values())
    assert len(anna) == len(ben) == len(together)
    blows = [one.blows[..., :3].sum((0, 1)) / one.motion.rate for one in (anna, ben)]
    assert blows[0][0] < -20 and np.allclose(blows[0], -blows[1], atol=1e-6)
    assert {hit.by for hit in anna.hits()} == {"Ben"} and {hit.by for hit in ben.hits()} == {"Anna"}
    told = [[(h.sample, h.impulse, h.force) for h in one.hits()] for one in (anna, ben)]
    assert np.allclose(*told), "and both are told the same of it"
    assert ben.com[-1, 0] > ben.com[0, 0] + 0.1, "she has shoved him away"
    alone = simulation(anna.motion, anna.scenario.pushes).run()
    assert alone.com[-1, 0] > anna.com[-1, 0] + 0.05, "whom he has stopped"


@pytest.mark.slow(captured=False)
def test_the_same_again_is_the_same_bit_for_bit(make_motion):
    recordings = []
    for _ in range(2):
        together = facing(make_motion, newtons=700.0)
        together.run()
        recordings.append([one.recording for one in together.simulations.values()])
    for first, second in zip(*recordings, strict=True):
        assert (first.body_positions == second.body_positions).all()
        assert (first.body_rotations == second.body_rotations).all()
        assert (first.blows == second.blows).all()


@pytest.mark.slow(captured=False)
def test_who_is_alone_among_others_stands_as_alone(make_motion):
    together = facing(make_motion, newtons=0.0, apart=5.0)
    together.run()
    for one in together.simulations.values():
        recording = one.recording
        assert recording.success and not recording.hits()
        alone = simulation(recording.motion).run()
        assert np.abs(recording.com - alone.com).max() < 2e-3


def test_each_stands_on_its_own_floor(make_motion):
    motion = make_motion(seconds=1.0)
    on_stage = placed(motion, 1.0, z=0.4)
    together = Together({"low": simulation(motion), "high": simulation(on_stage)})
    together.run()
    low, high = (together.simulations[name].recording for name in ("low", "high"))
    assert low.success and high.success
    assert np.allclose(high.com[-1] - low.com[-1], [1, 0, 0.4], atol=0.01)
    assert high.contacts[1:].all() and low.contacts[1:].all()


@pytest.mark.slow
def test_who_is_knocked_over_falls_lies_and_gets_up_among_others(make_motion):
    settings = Settings(when_it_falls="brace", get_up=True)
    together = facing(make_motion, newtons=900.0, seconds=14.0, settings=settings)
    together.run()
    falls = [one.recording.stood for one in together.simulations.values()]
    assert any(falls), "one is thrown down"
    for one in together.simulations.values():
        recording = one.recording
        assert len(recording) == len(together) and np.isfinite(recording.body_positions).all()
        assert recording.deepest < 0.01
    recordings = [one.recording for one in together.simulations.values()]
    # Who lies on the other, or is leant on, may take longer.
    assert any(one.stood is not None and one.stood_again for one in recordings), "and stands again"


def test_hands_that_hold_each_other_part_before_they_meet(make_motion):
    """Parts that overlap a little at the start pass until they have left each other."""
    motion = make_motion(seconds=1.0)
    width = Character.from_motion(motion).shapes
    assert width
    together = facing(make_motion, newtons=0.0, seconds=1.0, apart=0.28)
    together.begin()
    engine = together._engine
    assert engine._overlapping
    together.run()
    for one in together.simulations.values():
        assert one.recording.success and len(one.recording.hits()) == 0


def test_bodies_inside_each_other_are_refused(make_motion):
    together = facing(make_motion, apart=0.1)
    with pytest.raises(SettingsError, match=r"of 'Anna' is \d+ cm inside of the .* of 'Ben' at"):
        together.run()
    assert pybullet.isConnected(together._engine.client) == 0


def test_numbers_of_bodies_that_have_left_are_not_given_again(adult):
    engine = Engine(RATE, shared=True)
    first, second = (
        World(adult, RATE, Legs(adult).segments, membership=Membership(engine, member, name))
        for member, name in enumerate("ab")
    )
    left = {first.body, first._floor}
    first.close()
    third = World(adult, RATE, Legs(adult).segments, membership=Membership(engine, 0, "a"))
    assert not {third.body, third._floor} & left
    assert dict(engine.worlds) == {second.body: second, third.body: third}
    second.close()
    third.close()
    third.close()
    assert pybullet.isConnected(engine.client) == 0


def test_an_engine_that_nobody_closes_is_freed(make_motion):
    together = facing(make_motion, seconds=0.2)
    client, seen = together._engine.client, weakref.ref(together._engine)
    together.begin()
    del together
    gc.collect()
    assert seen() is None and pybullet.isConnected(client) == 0


def test_things_and_colliders_are_there_once_for_all(make_motion):
    slab = Collider("slab", Solid("box", (1.0, 1.0, 0.1)), (0.0, 5.0, 0.1))
    motion = make_motion(seconds=0.5)
    together = Together(
        {
            "Anna": simulation(motion, colliders=(slab,)),
            "Ben": simulation(placed(motion, 3.0), colliders=(slab,)),
        }
    )
    together.begin()
    one, other = (each.world for each in together.simulations.values())
    assert one._colliders == other._colliders
    together.run()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"settings": Settings()}, "'Ben' is to stop when it falls"),
        ({"settings": Settings(rate=600.0, when_it_falls="limp")}, "not the same physics rate"),
        ({"seconds": 1.5}, "not the same number of samples"),
        ({"colliders": 1}, "do not meet the same colliders"),
    ],
)
def test_what_cannot_be_in_one_world_is_refused(make_motion, change, words):
    motion = make_motion(seconds=change.get("seconds", 1.0))
    more = {}
    if "colliders" in change:
        more["colliders"] = (Collider("slab", Solid("box", (1.0, 1.0, 0.1)), (0.0, 5.0, 0.1)),)
    settings = change.get("settings", LIMP)
    ben = simulation(placed(motion, 2.0), settings=settings, **more)
    with pytest.raises(SettingsError, match=words):
        Together({"Anna": simulation(make_motion(seconds=1.0)), "Ben": ben})
    with pytest.raises(SettingsError, match="1 characters are to be simulated together"):
        Together({"Ben": ben})


def test_a_simulation_is_of_one_world_and_once(make_motion):
    together = facing(make_motion, newtons=0.0, seconds=0.1)
    anna, ben = together.simulations.values()
    with pytest.raises(SettingsError, match="'a' has begun before, or is one of others"):
        Together({"a": anna, "b": simulation(anna.motion)})
    together.run()
    with pytest.raises(SettingsError, match="have been simulated together before"):
        together.run()
    with pytest.raises(SettingsError, match="'b' has begun before, or is one of others"):
        Together({"a": simulation(anna.motion), "b": ben})
    one = simulation(anna.motion)
    with pytest.raises(SettingsError, match="The same one is to be two of those"):
        Together({"a": one, "b": one})


@pytest.mark.slow(captured=False)
def test_who_is_named_first_changes_nothing(make_motion):
    found = []
    for turned in (False, True):
        cast = list(facing(make_motion, seconds=1.5).simulations.items())
        fresh = {
            name: simulation(one.motion, one.scenario.pushes)
            for name, one in (reversed(cast) if turned else cast)
        }
        Together(fresh).run()
        found.append({name: one.recording.body_positions for name, one in fresh.items()})
    assert all((found[0][name] == found[1][name]).all() for name in ("Anna", "Ben"))


def test_who_blows_up_is_named(make_motion):
    together = facing(make_motion, newtons=0.0, seconds=0.5)
    ben = together.simulations["Ben"]
    together.begin()
    still = np.zeros((2, ben.character.dofs))
    away = np.array([90.0, 90.0, 9.0])
    ben.world.reset(away, np.eye(3), np.full(3, 9e3), np.zeros(3), *still)
    with pytest.raises(SimulationError, match=r"^'Ben': The simulation of 'person' blew up"):
        together.run()


# Holds -------------------------------------------------------------------------------------------


def holding(make_motion, newtons, breaking=2000.0, seconds=2.5, **settings):
    """Anna, whose left hand holds on to Ben in front of her from 0.2 s on, and Ben, who is pushed
    away from her."""
    motion = make_motion(seconds=seconds, sway=_arms_ahead)
    hold = Hold("forearm_l", 0.2, seconds, None, "Ben", breaking=breaking, to_character=True)
    ben = placed(make_motion(seconds=seconds), 0.85, yaw=np.pi)
    falls = Settings(**{"when_it_falls": "brace"} | settings)
    return Together(
        {
            "Anna": simulation(motion, settings=falls, holds=(hold,)),
            "Ben": simulation(ben, (Push(0.6, 0.2, (newtons, 0, 0)),), falls),
        }
    )


def _arms_ahead(time):
    """The left arm straight ahead."""
    return {"upper_arm_l": np.tile([0.0, -1.45, 0.0], (len(time), 1))}


@pytest.mark.slow(captured=False)
def test_who_is_held_drags_along_who_holds_and_is_held_back(make_motion):
    together = holding(make_motion, 250.0)
    together.run()
    anna, ben = (one.recording for one in together.simulations.values())
    (grasp,) = anna.grasps()
    assert grasp.began is not None and not grasp.broke and grasp.force > 30
    assert grasp.gap < 0.01
    assert not ben.scenario.holds and np.ptp(anna.com[:, 0]) > 0.02, "he drags her along"
    alone = simulation(ben.motion, ben.scenario.pushes).run()
    most = [one.com[:, 0].max() for one in (ben, alone)]
    assert most[0] < most[1] - 0.05, "and she holds him back"


@pytest.mark.slow(captured=False)
def test_a_hold_on_another_breaks(make_motion):
    together = holding(make_motion, 500.0, breaking=60.0)
    together.run()
    (grasp,) = together.simulations["Anna"].recording.grasps()
    assert grasp.broke and grasp.ended < len(together) - 30


@pytest.mark.slow(captured=False)
def test_a_hold_goes_on_where_both_fall(make_motion):
    together = holding(make_motion, 900.0, seconds=4.0)
    together.run()
    anna, ben = (one.recording for one in together.simulations.values())
    assert ben.stood is not None, "he has fallen"
    (grasp,) = anna.grasps()
    assert not grasp.broke and grasp.ended == len(together) - 1
    assert grasp.gap < 0.03
    assert np.isfinite(anna.body_positions).all() and np.isfinite(ben.body_positions).all()


def test_hands_that_hold_each_other_in_flight_keep_the_momentum(fliers):
    engine, worlds = fliers
    one = worlds[0]
    hold = Hold("forearm_l", 0.0, 9.0, None, "B", to_character=True)
    legs = Legs(one.character).segments
    holder = World(
        one.character, RATE, legs, Scenario(holds=(hold,)), membership=Membership(engine, 0, "A")
    )
    worlds[0] = holder
    one.close()
    zeros = np.zeros(holder.character.dofs)
    root = np.array([0.75, -0.52, 50.0])
    holder.reset(root, np.eye(3), np.array([-1.5, -2.0, 0]), np.zeros(3), zeros, zeros)
    engine.meet(holder)
    before, strains = sum(momentum(world)[0] for world in worlds), []
    for step in range(60):
        for world in worlds:
            world.advance(step / RATE)
        engine.step()
        for world in worlds:
            world.step()
        strains.append(holder.held[0].strain)
    assert holder.held[0].holds and holder.gaps()[0] < 0.02
    assert max(strains) > 20, "they pull at each other [N]"
    fallen = 60 / RATE * GRAVITY * sum(world.character.mass for world in worlds)
    change = sum(momentum(world)[0] for world in worlds) - before
    assert np.abs(change + [0, 0, fallen]).max() < 1e-3 * np.abs(momentum(holder)[0]).max()


def test_who_is_out_of_reach_is_not_held(make_motion):
    hold = Hold("forearm_l", 0.2, 0.8, None, "Ben", to_character=True)
    motion = make_motion(seconds=1.0)
    ben = simulation(placed(motion, 3.0))
    together = Together({"Anna": simulation(motion, holds=(hold,)), "Ben": ben})
    together.run()
    (grasp,) = together.simulations["Anna"].recording.grasps()
    assert grasp.began is None


def test_holds_to_who_is_not_there_are_refused(make_motion):
    hold = Hold("forearm_l", 0.2, 0.8, None, "Cara", name="grip", to_character=True)
    motion = make_motion(seconds=1.0)
    with pytest.raises(SettingsError, match="The hold 'grip' is to 'Cara', who is not simulated"):
        simulation(motion, holds=(hold,)).run()
    pair = {"Anna": simulation(motion, holds=(hold,)), "Ben": simulation(placed(motion, 2.0))}
    with pytest.raises(SettingsError, match="The hold 'grip' of 'Anna' is to 'Cara', who is not"):
        Together(pair)


@pytest.mark.slow(captured=False)
def test_who_is_thrown_about_by_the_engine_falls_from_before_that(make_motion):
    """Who is alone returns to before that with all of its world; others cannot."""
    together = facing(make_motion, newtons=0.0, seconds=2.0, apart=3.0)
    samples = iter(together)
    for _ in range(40):
        next(samples)
    ben = together.simulations["Ben"]
    before = ben.recording.body_positions[-1].copy()
    pybullet.resetBaseVelocity(ben.world.body, [0, 0, 20], physicsClientId=together._engine.client)
    for _ in samples:
        pass
    assert ben.recording.stood == 41 and len(ben.recording) == len(together)
    moved = np.linalg.norm(np.diff(ben.recording.body_positions, axis=0), axis=2) * 60
    assert np.abs(ben.recording.body_positions[40] - before).max() < 0.01 and moved.max() < 12
    assert together.simulations["Anna"].recording.success

# SPDX-License-Identifier: GPL-3.0-or-later
"""Walks on the spot: the belt under made-up feet is found to the millimetre per second, and none
where there is none; captured walks without their travel get it back, and are performed."""

from dataclasses import replace

import numpy as np
import pytest

from poise.controller import Character, Settings
from poise.controller.checks.clip_check import check
from poise.controller.checks.verdict import judge_motions
from poise.controller.geometry.belt import find_belt, way_over
from poise.controller.geometry.stance import Above
from poise.controller.reference.cleaning import clean
from poise.controller.reference.gait import Walk, find_cycle
from poise.controller.reference.performed import performed_motion
from poise.controller.search.trial import Problem
from poise.controller.support.terrain import Terrain

RATE = 60.0
#: A foot's corners, heels before tips [m].
SOLE = np.array([[-0.07, 0.05], [-0.07, -0.05], [0.18, 0.05], [0.18, -0.05]])


def steps(velocity, seconds=3.0, period=1.0, stance=0.6, lift=0.1):
    """(F, 2, 4, 3) corners of flat feet that walk on the spot over a belt with a velocity (2,)
    [m/s], half a period after each other: back with it while they stand, forward in the air."""
    time = np.arange(round(seconds * RATE) + 1) / RATE
    result = np.zeros((len(time), 2, 4, 3))
    for foot in range(2):
        share = (time / period + foot / 2) % 1
        stands = share < stance
        swing = np.clip((share - stance) / (1 - stance), 0, 1)
        along = np.where(stands, share - stance / 2, stance / 2 - stance * swing) * period
        plan = SOLE + [0, 0.1 * (1 - 2 * foot)]
        result[:, foot, :, :2] = plan + along[:, None, None] * np.array(velocity)
        result[:, foot, :, 2] = (lift * np.sin(np.pi * swing))[:, None]
    return result


def found(corners, root=None, drift=(0.0, 0.0)):
    """The belt under corners; drift: of the floor that is known."""
    drifts = np.zeros_like(corners)
    drifts[..., :2] = drift
    root = np.zeros((len(corners), 3)) if root is None else root
    return find_belt(corners, Above(corners[..., 2], drifts), root, RATE, 1.0)


@pytest.mark.parametrize("velocity", [(-1.2, 0.0), (0.0, 0.5), (0.9, -1.3)])
def test_the_belt_goes_as_the_feet_that_stand_on_it(velocity):
    belt = found(steps(velocity))
    np.testing.assert_allclose(belt, np.tile(velocity, (len(belt), 1)), atol=0.02)
    way = way_over(belt, RATE)
    np.testing.assert_allclose(way[-1, :2], -3 * np.array(velocity), rtol=0.01, atol=0.01)
    assert not way[0].any() and not way[:, 2].any()


def test_a_belt_that_starts_is_followed():
    slow, fast = steps((-0.5, 0.0)), steps((-1.0, 0.0))
    corners = np.concatenate([slow[:-1], fast])
    belt = found(corners, np.zeros((len(corners), 3)))
    np.testing.assert_allclose(belt[:150, 0], -0.5, atol=0.05)
    np.testing.assert_allclose(belt[-150:, 0], -1.0, atol=0.05)


def test_who_goes_stands_rides_or_slides_on_one_foot_walks_on_no_belt():
    walks = steps((-1.2, 0.0))
    way = np.zeros((len(walks), 3))
    way[:, 0] = 1.2 * np.arange(len(walks)) / RATE
    assert found(walks + way[:, None, None], way) is None  # goes where its feet take it
    stands = np.repeat(steps((0.0, 0.0))[:1], len(walks), 0)
    assert found(stands) is None
    assert found(stands + way[:, None, None], way) is None  # rides
    one = stands.copy()
    one[:, 0] = walks[:, 0]
    assert found(one) is None  # paws the floor with one foot
    assert found(walks[:20]) is None  # goes no half a metre
    assert found(steps((-0.2, 0.0))) is None  # shuffles
    assert found(walks, drift=(-1.2, 0.0)) is None  # has such a belt under it
    assert found(walks + [0, 0, 0.4]) is not None  # floats, and walks on the spot all the same


# --- Captured walks without their travel ----------------------------------------------------------


@pytest.fixture
def clip(clips, request):
    """clip(name) -> Motion."""

    def read(name):
        import bpy

        from poise.addon.rigs import reference

        armature = request.getfixturevalue("import_clip")(name)
        return reference.read(bpy.context.scene, armature).motion

    return read


def evenly(motion):
    """A motion without its way from the first sample to the last, as over a belt with one speed."""
    way = (motion.positions[-1, 0] - motion.positions[0, 0]) * [1, 1, 0]
    share = np.linspace(0, 1, len(motion))[:, None]
    return replace(motion, positions=motion.positions - (share * way)[:, None])


def wholly(motion):
    """A motion whose pelvis goes up and down alone, as games have it."""
    way = (motion.positions[:, 0] - motion.positions[0, 0]) * [1, 1, 0]
    return replace(motion, positions=motion.positions - way[:, None])


def length(motion):
    return np.linalg.norm((motion.positions[-1, 0] - motion.positions[0, 0])[:2])


def test_a_walk_without_its_travel_is_found_measured_and_cleaned_as_with_it(clip):
    walk = clip("walk")
    own = Character.from_motion(walk)
    assert own.travelled(walk) is walk
    for stays in (evenly(walk), wholly(walk)):
        body = Character.from_motion(stays)
        assert body.ground == pytest.approx(own.ground, abs=0.002)
        assert body.feet[0].depth == pytest.approx(own.feet[0].depth, abs=0.003)
        assert body.feet[0].ball == pytest.approx(own.feet[0].ball, abs=0.003)
        result = check(body, stays)
        (fault,) = result.faults
        assert fault.kind == "treadmill" and result.mends == ("travel",)
        assert fault.value == pytest.approx(length(walk) / walk.duration, rel=0.1)
        assert "as it walks, as on a treadmill" in result.verdict
        goes = body.travelled(stays)
        assert length(goes) == pytest.approx(length(walk), rel=0.06)
        trajectory = clean(body, body.trajectory(stays), ("travel",))
        np.testing.assert_allclose(trajectory.root, body.trajectory(goes).root, atol=1e-9)
        assert not [one for one in check(body, stays, ("travel",)).faults]
        shares = body.stance_summary(stays)
        assert shares["flight"] == pytest.approx(own.stance_summary(walk)["flight"], abs=0.05)


def test_what_stands_in_place_is_travelled_by_nothing(clip):
    for name in ("squat", "dance", "kick"):
        motion = clip(name)
        assert Character.from_motion(motion).travelled(motion) is motion


def test_one_round_of_a_walk_on_the_spot_is_a_cycle(clip):
    walk = clip("walk")
    cycle = find_cycle(Character.from_motion(walk), walk)
    part = slice(cycle.first, cycle.last + 1)
    one = replace(walk, rotations=walk.rotations[part], positions=walk.positions[part])
    stays = evenly(one)
    body = Character.from_motion(stays)
    goes = body.travelled(stays)
    again = find_cycle(body, goes)
    assert (again.first, again.last) == (0, cycle.period)
    assert again.length == pytest.approx(cycle.length, rel=0.06)


@pytest.mark.slow
def test_no_captured_clip_walks_on_the_spot(clip, clips):
    for name in clips:
        motion = clip(name)
        assert Character.from_motion(motion).travelled(motion) is motion, name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["walk", "walk_slow", "walk_fast"])
def test_captured_walks_without_their_travel_are_keepers(clip, name):
    for stays in (evenly(clip(name)), wholly(clip(name))):
        problem = Problem(stays, settings=Settings(cleaning=("travel",)))
        recording = problem.simulation(None, 0).run()
        source = performed_motion(recording.cleaned())
        verdict = judge_motions(source, performed_motion(recording), recording.success)
        assert recording.success and verdict.keeper, verdict.not_kept_for
        assert length(source) == pytest.approx(length(clip(name)), rel=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["walk", "walk_slow", "walk_fast", "walk_backward"])
def test_one_captured_round_on_the_spot_walks_on_for_half_a_minute(clip, name):
    walk = clip(name)
    cycle = find_cycle(Character.from_motion(walk), walk)
    part = slice(cycle.first, cycle.last + 1)
    one = replace(walk, rotations=walk.rotations[part], positions=walk.positions[part])
    for stays in (evenly(one), wholly(one)):
        body = Character.from_motion(stays)
        goes = body.travelled(stays)
        motion = Walk(find_cycle(body, goes), 30.0).motion(body, goes)
        recording = Problem(motion, settings=Settings()).simulation(None, 0).run()
        assert recording.success, recording.why()


def test_a_floor_that_goes_with_the_feet_is_no_fault(clip):
    from poise.controller.simulation.scenario import Collider, Scenario, Solid

    walk = clip("walk")
    stays = evenly(walk)
    speed = (walk.positions[-1, 0] - walk.positions[0, 0])[:2] / walk.duration
    time = np.arange(len(walk)) / walk.rate
    places = np.zeros((len(walk), 3))
    places[:, :2] = -time[:, None] * speed
    belt = Collider(
        "Belt",
        Solid("box", (20.0, 20.0, 0.1)),
        places - [0, 0, 0.1],
        np.tile([1.0, 0, 0, 0], (len(walk), 1)),
    )
    terrain = Terrain.of(Scenario(colliders=(belt,)), 0.0, stays)
    body = Character.from_motion(stays, floor=0.0, terrain=terrain)
    assert body.travelled(stays, terrain) is stays
    assert "treadmill" not in {one.kind for one in check(body, stays, (), terrain).findings}

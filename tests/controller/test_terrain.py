# SPDX-License-Identifier: GPL-3.0-or-later
"""The floor under each foot: found on boxes, ramps and meshes, followed where it moves, and walked
on."""

from dataclasses import replace

import numpy as np
import pytest

from poise.controller import Character, Scenario, Settings, Simulation
from poise.controller.checks.clip_check import check
from poise.controller.checks.verdict import judge_motions
from poise.controller.clean_up.clean_up import clean_up, propose
from poise.controller.clean_up.leg_chain import Body
from poise.controller.exceptions import MotionError, PlanError
from poise.controller.geometry.rotations import exponential, matrix_from_quaternion, multiply
from poise.controller.geometry.skeleton import FEET, LANDMARK_INDEX, SIDES
from poise.controller.geometry.solids import stands_at
from poise.controller.geometry.stance import runs
from poise.controller.reference.cleaning import CLEANING, clean
from poise.controller.reference.reference import Reference
from poise.controller.simulation.scenario import Collider, Solid
from poise.controller.support.terrain import Terrain
from poise.experiments import stairs

STILL = (1.0, 0.0, 0.0, 0.0)
_TURN = np.radians(20)


def terrain_of(motion, *colliders, floor=0.0):
    return Terrain.of(Scenario(colliders=colliders, floor=floor), 0.0, motion)


def ramp(angle=_TURN, half=2.0):
    """A slab whose top goes through the origin and comes down along x."""
    turn = exponential(np.array([0, angle, 0]))
    down = matrix_from_quaternion(turn) @ [0, 0, -0.1]
    return Collider("Ramp", Solid("box", (half, half, 0.1)), down, turn)


def slab(top, half=2.0, **values):
    return Collider("Slab", Solid("box", (half, half, 0.1)), (0.0, 0.0, top - 0.1), **values)


def carried(motion, path, turns):
    """A motion taken along: path (F, 3) [m], turns (F, 4)."""
    frames = matrix_from_quaternion(turns)
    positions = np.einsum("fij,flj->fli", frames, motion.positions) + path[:, None]
    rotations = multiply(turns[:, None], motion.rotations)
    return replace(motion, positions=positions, rotations=rotations)


# Surfaces ----------------------------------------------------------------------------------------


def test_heights_and_normals_are_those_of_the_highest_surface_below(standing):
    count = len(standing)
    points = np.random.default_rng(0).uniform([-1, -1, 0.5], [1, 1, 1.5], (count, 5, 3))
    sky = Collider("Sky", Solid("box", (2, 2, 0.1)), (0, 0, 3.0))
    heights, normals, owners = terrain_of(standing, ramp(), sky, floor=-2.0).under(points)
    assert np.allclose(heights, -np.tan(_TURN) * points[..., 0])
    assert np.allclose(normals, [np.sin(_TURN), 0, np.cos(_TURN)])
    assert (owners == 0).all()


def test_beside_colliders_there_is_the_floor(standing):
    points = np.array([[[0.1, 0, 0.5], [0.9, 0, 0.5], [0.1, 0, 0.02], [0.1, 0, 0.3]]])
    points = np.repeat(points, len(standing), 0)
    raised = replace(standing, positions=standing.positions + [0, 0, 0.3])
    heights, _, owners = terrain_of(raised, slab(0.3, half=0.5), floor=-0.1).under(points)
    # The third point is deeper in the box than a sole could be.
    assert np.allclose(heights, [0.3, -0.1, -0.1, 0.3])
    assert (owners == [0, -1, -1, 0]).all()


def test_a_mesh_of_steps_has_the_heights_of_its_treads(standing):
    vertices, faces = [], []
    for i in range(4):
        n = len(vertices)
        x, z = 0.3 * i - 0.5, 0.17 * i
        vertices += [(x, -1, z), (x + 0.3, -1, z), (x + 0.3, 1, z), (x, 1, z), (x, -1, z - 0.17)]
        vertices += [(x, 1, z - 0.17)]
        # One triangle is the other way round; risers are too steep to stand on.
        faces += [(n, n + 1, n + 2), (n, n + 3, n + 2), (n, n + 4, n + 5), (n, n + 5, n + 3)]
    solid = Solid("mesh", vertices=np.array(vertices), faces=np.array(faces))
    terrain = terrain_of(standing, Collider("Stairs", solid), floor=-1.0)
    x = np.linspace(-0.49, 0.69, 60)
    points = np.tile(np.stack([x, 0 * x, 0 * x + 2], 1), (len(standing), 1, 1))
    heights, normals, _ = terrain.under(points)
    assert np.allclose(heights, 0.17 * np.floor((x + 0.5) / 0.3))
    assert np.allclose(normals, [0, 0, 1])


def test_a_level_floor_is_no_terrain(standing):
    far = Collider("Far", Solid("box", (1, 1, 1)), (9, 0, 0))
    ball = Collider("Ball", Solid("sphere", (1.0,)), (0, 0, -1.0))
    table = Collider("Ceiling", Solid("box", (1, 1, 0.1)), (0, 0, 3.0))
    assert terrain_of(standing) is None
    assert terrain_of(standing, far, ball, table) is None


def test_a_slab_in_the_floor_changes_nothing(swinging):
    body = Character.from_motion(swinging)
    level = Reference.build(body, swinging)
    found = terrain_of(swinging, slab(0.0))
    reference = Reference.build(body, swinging, terrain=found)
    assert (reference.stance == level.stance).all()
    for name in ("angles", "goals", "wrench", "feet", "base", "floors"):
        assert np.allclose(getattr(reference, name), getattr(level, name), atol=1e-9), name


# Floors that move --------------------------------------------------------------------------------


def turntable(motion, rate=0.5):
    """Path and turns of a platform that turns about an axis beside the body, and goes along."""
    time = np.arange(len(motion)) / motion.rate
    turns = exponential(np.stack([0 * time, 0 * time, rate * time], 1))
    return np.stack([0.1 * time, 0 * time, 0.05 * time], 1), turns


def test_a_foot_that_rides_along_stands_still_on_it(make_motion):
    standing = make_motion(seconds=2.0)
    path, turns = turntable(standing)
    motion = carried(standing, path, turns)
    table = slab(0.0)
    table = replace(table, positions=path + table.positions, rotations=turns)
    terrain = terrain_of(motion, table, floor=-1.0)
    body = Character.from_motion(motion, floor=0.0, terrain=terrain)
    joints, frames = body.pose(body.trajectory(motion))
    corners = body.sole_corners(joints, frames)
    above, drifts = terrain.over(corners, joints[:, FEET])
    assert np.abs(above).max() < 0.02
    speeds = np.gradient(corners, axis=0) * motion.rate
    assert np.abs(speeds[1:-1] - drifts[1:-1]).max() < 1e-6
    assert np.abs(drifts).max() > 0.05
    footing = terrain.footings(body, body.trajectory(motion), np.ones((len(motion), 2), bool))[0]
    still, level = footing.still(joints[:, FEET[0]], frames[:, FEET[0]])
    assert np.ptp(still, axis=0).max() < 1e-9
    assert np.ptp(level, axis=0).max() < 1e-9
    assert np.allclose(footing.moved(still, True), joints[:, FEET[0]])


def test_a_lift_that_the_animation_does_not_follow_stays_where_it_begins(make_motion):
    motion = make_motion(seconds=2.0)
    time = np.arange(len(motion)) / motion.rate
    path = np.stack([0 * time, 0 * time, 0.15 * time], 1)
    lift = slab(0.0)
    turns = np.tile(STILL, (len(motion), 1))
    lift = replace(lift, positions=path + lift.positions, rotations=turns)
    points = np.zeros((len(motion), 1, 3)) + [0, 0, 1.0]
    still = terrain_of(motion, lift, floor=-1.0).under(points)[0]
    assert (np.abs(still) < 1e-9).all()
    along = carried(motion, path, turns)
    followed = terrain_of(along, lift, floor=-1.0).under(points)[0]
    assert np.allclose(followed[:, 0], path[:, 2])


@pytest.mark.parametrize("axis", [0, 2])
def test_it_performs_an_animation_that_rides_on_a_platform(make_motion, axis):
    """The reference's feet are planted on the platform, not in the world."""
    standing = make_motion(seconds=3.0)
    time = np.arange(len(standing)) / standing.rate
    path = np.zeros((len(time), 3))
    path[:, axis] = 0.15 * (1 - np.cos(np.pi * np.clip((time - 0.5) / 2, 0, 1)))
    turns = np.tile(STILL, (len(time), 1))
    motion = carried(standing, path, turns)
    platform = replace(slab(0.0), positions=path + [0, 0, -0.1], rotations=turns)
    scenario = Scenario(colliders=(platform,), floor=-1.0)
    terrain = Terrain.of(scenario, 0.0, motion)
    body = Character.from_motion(motion, floor=0.0, terrain=terrain)
    recording = Simulation(body, motion, scenario=scenario).run()
    assert recording.success
    assert (recording.reference.stance == 3).all()
    feet = recording.joints()[:, FEET] - path[: len(recording), None]
    assert np.ptp(feet, axis=0).max() < 0.02


@pytest.mark.parametrize("rises", [True, False])
def test_a_lift_that_is_level_with_the_floor_at_one_end_takes_the_body_along(make_motion, rises):
    """Where both are equally high it is the lift on which the feet stand."""
    standing = make_motion(seconds=3.0)
    time = np.clip(np.arange(len(standing)) / standing.rate / 2, 0, 1)
    path = np.zeros((len(time), 3))
    gone = 0.5 * (3 * time**2 - 2 * time**3)
    path[:, 2] = gone if rises else 0.5 - gone
    turns = np.tile(STILL, (len(time), 1))
    motion = carried(standing, path, turns)
    lift = replace(slab(0.0), positions=path + [0, 0, -0.1], rotations=turns)
    scenario = Scenario(colliders=(lift,), floor=0.0)
    terrain = Terrain.of(scenario, path[0, 2], motion)
    body = Character.from_motion(motion, floor=path[0, 2], terrain=terrain)
    recording = Simulation(body, motion, scenario=scenario).run()
    assert recording.success
    feet = recording.joints()[:, FEET] - path[: len(recording), None]
    assert np.ptp(feet, axis=0).max() < 0.02


# A floor that is not there -----------------------------------------------------------------------


def place_in_the_air(motion, colliders):
    floor = stands_at(colliders, motion)
    terrain = Terrain.of(Scenario(colliders=colliders, floor=0.0), 0.0, motion)
    return Character.from_motion(motion, floor=floor, terrain=terrain), terrain


@pytest.fixture
def walk(import_clip):
    """The function walk(name) -> Motion of a captured clip."""
    bpy = pytest.importorskip("bpy")
    from poise.addon.rigs import reference

    return lambda name="walk": reference.read(bpy.context.scene, import_clip(name)).motion


def performed(place, **values):
    body = stairs.body_of(place)
    return Simulation(body, place.motion, scenario=place.scenario, **values)


@pytest.mark.slow(captured=False)
def test_a_step_that_is_missing_is_told_with_foot_frames_and_height(walk):
    place = stairs.on_stairs(walk(), up=True)
    whole = place.scenario.colliders
    for colliders, missing in ((whole, False), ((*whole[:3], *whole[4:]), True)):
        body, terrain = place_in_the_air(place.motion, colliders)
        found = check(body, place.motion, terrain=terrain).findings
        hangs = [f for f in found if f.kind == "support"]
        assert bool(hangs) == missing
        assert not [f for f in found if f.kind == "float"]
    assert len(hangs) == 1
    assert hangs[0].subject == "right foot" and hangs[0].severity == "mend"
    assert hangs[0].value == pytest.approx(3 * stairs.RISE, abs=0.05)
    assert "the right foot stands 5" in hangs[0].sentence
    assert "cm above anything: put a collider under it" in hangs[0].sentence
    # Simulated all the same: it falls there, or steps down.
    recording = Simulation(
        body, place.motion, scenario=Scenario(colliders=colliders, floor=0.0)
    ).run()
    assert len(recording) > hangs[0].frames[0] - place.motion.first_frame


def test_cleaning_leaves_a_walk_on_stairs_alone(walk):
    place = stairs.on_stairs(walk(), up=True)
    body, terrain = place_in_the_air(place.motion, place.scenario.colliders)
    trajectory = body.trajectory(place.motion)
    cleaned = clean(body, trajectory, CLEANING, terrain)
    assert np.allclose(cleaned.root[:, 2], trajectory.root[:, 2], atol=0.02)
    assert np.ptp(clean(body, trajectory, ("ground",)).root[:, 2]) < np.ptp(
        cleaned.root[:, 2]
    )  # as it would be taken down to a level floor


# Clean-up ----------------------------------------------------------------------------------------


def soles(cleaned):
    """(F, 2, 3, 3) heel, ball and tip of either foot, and (F, 2, 3) where they are to stand."""
    body = cleaned.body
    points = body.pose(cleaned.corrections, slopes=False).points
    return np.stack([points[side] for side in SIDES], 1), cleaned.plan.marks(len(body), body.rate)


@pytest.mark.parametrize("kind", stairs.KINDS)
def test_a_clean_up_lets_feet_stand_on_what_is_under_them(walk, kind):
    place = stairs.made(walk(), kind)
    terrain = Terrain.of(place.scenario, 0.0, place.motion)
    body = Body.from_motion(place.motion, None, place.scenario)
    cleaned = clean_up(body, propose(body))
    assert cleaned.uncarried() == []
    before, after = cleaned.slip()
    assert after < 0.05 * before
    points, marks = soles(cleaned)
    flat = points.reshape(len(points), 6, 3)
    apart = (flat[..., 2] - terrain.highest(flat, flat[..., 2] + 0.05)).reshape(marks.shape)
    on_collider = marks & (body.floors != body.floor)
    assert on_collider.sum() > 0.3 * marks.sum()
    assert np.percentile(np.abs(apart[on_collider]), 95) < 0.012
    assert apart.min() > -0.04
    # What is simulated by that plan is what stands there.
    reference = performed(place, settings=Settings(contacts=cleaned.plan)).reference
    assert (reference.stance[:: reference.steps_per_sample] > 0).all()


def test_a_clean_up_on_a_lift_stands_still_on_it(make_motion):
    standing = make_motion(seconds=3.0)
    time = np.arange(len(standing)) / standing.rate
    gone = 0.4 * (1 - np.cos(np.pi * time / 3))
    path, turns = gone[:, None] * [1.0, 0.5, 1.0], np.tile(STILL, (len(time), 1))
    lift = replace(slab(0.0), positions=path + [0, 0, -0.1], rotations=turns)
    scenario = Scenario(colliders=(lift,), floor=-1.0)
    skates = 0.03 * np.sin(2 * np.pi * time)[:, None] * [1.0, 0, 0]
    body = Body.from_motion(carried(standing, path + skates, turns), None, scenario)
    plan = propose(body)
    assert plan.contacts(len(body), body.rate).all()
    cleaned = clean_up(body, plan)
    points, marks = soles(cleaned)
    assert marks.all()
    still = points - path[:, None, None]
    assert np.ptp(still, axis=0).max() < 0.005
    assert np.abs(still[..., 2]).max() < 0.003
    before, after = cleaned.slip()
    assert before > 0.1 and after < 0.05 * before


def test_a_clean_up_refuses_a_plan_where_the_floor_is_missing(walk):
    place = stairs.on_stairs(walk(), up=True)
    plan = propose(Body.from_motion(place.motion, None, place.scenario))
    colliders = place.scenario.colliders
    holed = replace(place.scenario, colliders=(*colliders[:3], *colliders[4:]))
    with pytest.raises(PlanError, match=r"where the animation has it 5\d cm above any floor"):
        clean_up(Body.from_motion(place.motion, None, holed), plan)


def test_no_foot_stands_in_the_air_over_a_floor_that_is_known(standing):
    scenario = Scenario(colliders=(slab(-0.5),), floor=-0.6)
    with pytest.raises(MotionError, match="No foot of 'person' ever stands"):
        propose(Body.from_motion(standing, None, scenario))


# Verdict -----------------------------------------------------------------------------------------


def test_a_body_that_a_lift_takes_up_is_a_keeper(make_motion):
    """The animation knows nothing of the lift."""
    standing = make_motion(seconds=3.0)
    time = np.arange(len(standing)) / standing.rate
    path = 0.25 * (1 - np.cos(np.pi * time / 3))[:, None] * [0.0, 0, 1.0]
    turns = np.tile(STILL, (len(time), 1))
    lift = replace(slab(0.0), positions=path + [0, 0, -0.1], rotations=turns)
    around = Scenario(colliders=(lift,), floor=0.0)
    taken = carried(standing, path, turns)
    assert judge_motions(standing, taken, surroundings=around).keeper
    assert "hanging" in judge_motions(standing, taken).not_kept_for
    hop = carried(standing, path + (time > 2)[:, None] * [0.0, 0, 0.1], turns)
    assert "hanging" in judge_motions(standing, hop, surroundings=around).not_kept_for
    slides = carried(standing, path + 0.1 * np.sin(2 * time)[:, None] * [1.0, 0, 0], turns)
    assert "slip" in judge_motions(standing, slides, surroundings=around).not_kept_for


@pytest.mark.parametrize("kind", stairs.KINDS)
def test_a_foot_that_slips_on_stairs_or_a_ramp_is_told(walk, kind):
    place = stairs.made(walk(), kind)
    source, around = place.motion, place.scenario
    assert judge_motions(source, source, surroundings=around).keeper
    time = np.arange(len(source)) / source.rate
    ankles = source.positions[:, [LANDMARK_INDEX[f"ankle_{side}"] for side in SIDES]]
    under = Terrain.of(around, 0.0, source).highest(ankles, ankles[..., 2])
    high = under.min(1) > around.floor + 0.1  # as the floor alone says nothing of it
    sway = 0.05 * np.sin(10 * time)[:, None, None] * high[:, None, None] * [1.0, 1.0, 0]
    slid = replace(source, positions=source.positions + sway)
    assert "slip" in judge_motions(source, slid, surroundings=around).not_kept_for


# Walks -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", stairs.KINDS)
def test_the_references_soles_lie_on_what_they_stand_on(walk, kind):
    place = stairs.made(walk(), kind)
    body = stairs.body_of(place)
    level = Character.from_motion(walk())
    assert body.feet[0].depth == pytest.approx(level.feet[0].depth, abs=0.01)
    reference = performed(place).reference
    terrain = Terrain.of(place.scenario, body.ground, place.motion)
    joints, frames = body.pose(reference.trajectory)
    corners = body.sole_corners(joints, frames)
    above, _ = terrain.over(corners, joints[:, FEET])
    # Toes may stick out over the edge of a tread: from its plane, then.
    height, rises = np.split(reference.floors[: -1 : reference.steps_per_sample], [1], axis=2)
    apart = corners[..., :2] - joints[:, FEET, None, :2]
    from_plane = corners[..., 2] - height - np.einsum("fsci,fsi->fsc", apart, rises)
    slope = 0.0 if "stairs" in kind else stairs.SLOPE
    for foot in range(2):
        for start, stop in runs((reference.stance & (1 << foot)) > 0):
            if stop - start < 12:  # cut off by an end of the clip
                continue
            lowest = above[start + 4 : stop - 4, foot].min(1)
            assert np.abs(lowest).max() < 0.025, kind
            flat = start + int(np.ptp(from_plane[start:stop, foot], axis=1).argmin())
            assert np.abs(from_plane[flat, foot]).max() < 0.01
            ahead = frames[flat, FEET[foot], 2, 0]
            assert abs(abs(ahead) - np.sin(slope)) < 0.03
    rises = np.abs(reference.floors[:, :, 1:]).max(2)
    assert np.allclose(np.median(rises), np.tan(slope), atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", stairs.KINDS)
def test_captured_walks_go_up_and_down(walk, kind):
    """Two clips of three at least reach the end, by balance alone, where they were animated."""
    reached = []
    for name in stairs.CLIPS:
        recording = performed(stairs.made(walk(name), kind)).run()
        reached.append(recording.success)
        if recording.success:
            apart = np.linalg.norm(recording.root_displacement(), axis=1)
            assert apart.mean() < 0.1, (name, kind)
    assert sum(reached) >= 2, dict(zip(stairs.CLIPS, reached, strict=True))

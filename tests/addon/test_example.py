# SPDX-License-Identifier: GPL-3.0-or-later
"""The example scene: whatever of it is simulated stands, and nobody else's scene is touched."""

from itertools import pairwise

import bpy
import numpy as np
import pytest

from poise.addon.blender import compat
from poise.addon.example import scene as example
from poise.addon.settings.properties import shot_options
from poise.addon.shots.shot import Shot
from poise.controller.geometry.skeleton import FEET

pytestmark = pytest.mark.usefixtures("registered")


@pytest.fixture
def scene():
    """The example, as the operator leaves it."""
    assert bpy.ops.poise.example_scene() == {"FINISHED"}
    return bpy.context.scene


def character(scene):
    """The armature in the example."""
    return next(thing for thing in scene.objects if thing.type == "ARMATURE")


def simulated(scene):
    """A shot of the example, simulated."""
    shot = Shot(scene)
    for step in (shot.read, shot.simulate):
        for _ in step():
            pass
    return shot


def test_it_is_a_scene_of_its_own(scene):
    others = [other for other in bpy.data.scenes if other != scene]
    before = [sorted(thing.name for thing in other.objects) for other in others]
    bpy.ops.poise.example_scene()
    assert bpy.context.scene != scene
    assert sorted(thing.name for thing in scene.objects) != []
    assert [sorted(thing.name for thing in other.objects) for other in others] == before


def test_the_character_has_three_actions_with_a_slot_each(scene):
    armature = character(scene)
    names = {"Wave (keyed)", "Squat (keyed)", "Hello (captured)"}
    assert names <= set(bpy.data.actions.keys())
    for name in names:
        action = bpy.data.actions[name]
        assert action.use_fake_user
        slot = compat.object_slot(action, armature)
        assert len(list(compat.curves(action, slot))) == 4 * len(armature.data.bones) + 3
        first, last = action.frame_range
        assert first == scene.frame_start and last <= scene.frame_end
    assert compat.assigned(armature)[0].name == "Wave (keyed)"


@pytest.mark.slow(captured=False)
@pytest.mark.parametrize("name", ["Wave (keyed)", "Squat (keyed)", "Hello (captured)"])
def test_each_action_stands_and_its_push_moves_it(scene, name):
    armature, action = character(scene), bpy.data.actions[name]
    compat.assign(armature, action, compat.object_slot(action, armature))
    pushed = simulated(scene)
    scene.poise.pushes.items[0].use = False
    calm = simulated(scene)
    assert pushed.recording.success, pushed.why
    assert calm.recording.success, calm.why
    calm, pushed = (shot.recording.root_displacement() for shot in (calm, pushed))
    assert np.abs(pushed - calm).max() > 0.02


@pytest.mark.slow(captured=False)
def test_the_other_one_falls_down_its_stairs():
    assert bpy.ops.poise.example_scene(example="STAIRS") == {"FINISHED"}
    scene = bpy.context.scene
    shot = Shot(scene, shot_options(bpy.context, character(scene)))
    for step in (shot.read, shot.simulate):
        for _ in step():
            pass
    recording, report = shot.recording, shot.report()
    assert report["when_it_falls"] == "brace" and report["get_up"] is False
    assert report["filled"] and report["range"] == [scene.frame_start, scene.frame_end]
    assert report["deepest"] < 10, "mm"
    rest = round(recording.rest_at * recording.motion.rate)
    assert recording.rest_at - recording.fell_at < 6, "s"
    # It came down on steps on the way, none of which it jumped over to the floor.
    down = recording.com[recording.stood, 2] - recording.com[rest, 2]
    assert down > 0.9 * example.STEPS * example.RISE
    lowest = recording.body_positions[rest, :, 2].min()
    assert -0.01 < lowest < 2 * example.RISE
    late = recording.body_positions[rest:]
    assert np.abs(late - late[0]).max() < 2e-3, "it settles at less than 5 mm/s"
    assert np.ptp(late[len(late) // 2 :], axis=0).max() < 1e-5, "and sleeps"


def test_its_stairs_go_down_from_under_its_feet_to_the_floor():
    bpy.ops.poise.example_scene(example="STAIRS")
    scene = bpy.context.scene
    steps = [thing for thing in scene.objects if thing.poise.role == "COLLIDER"]
    assert len(steps) == example.STEPS
    boxes = [np.array([s.matrix_world @ v.co for v in s.data.vertices]) for s in steps]
    boxes.sort(key=lambda box: -box[:, 1].max())
    tops = [box[:, 2].max() for box in boxes]
    assert np.allclose(np.diff(tops), -example.RISE) and tops[-1] == pytest.approx(example.RISE)
    assert tops[0] == pytest.approx(character(scene).location.z)
    assert all(box[:, 2].min() == pytest.approx(0, abs=1e-6) for box in boxes)
    for behind, ahead in pairwise(boxes):
        assert behind[:, 1].min() == pytest.approx(ahead[:, 1].max())
    assert all(polygon.normal.dot(polygon.center) > 0 for s in steps for polygon in s.data.polygons)


def test_feet_keep_their_direction_in_its_step(scene):
    """The foot that stays down does not pivot under the one that steps, the other lands straight:
    5 degrees are what a pushed stand is to keep."""
    shot = simulated(scene)
    assert shot.recording.steps
    judged = {judged.name: judged for judged in shot.judge().judged}
    assert judged["foot_turn"].after < 5
    turned = shot.recording.rotation_deltas()[-1, FEET]
    assert np.degrees(2 * np.arccos(np.abs(turned[:, 0]))).max() < 5


def test_the_captured_one_says_where_it_is_from():
    import json

    from poise.addon.example.actions import HELLO

    clip = json.loads(HELLO.read_text(encoding="utf-8"))
    assert "AnimatedDrawings" in clip["source"]
    assert clip["licence"].startswith("MIT License. Copyright (c) Meta Platforms")
    assert "above copyright notice and this permission notice" in clip["licence"]


def test_it_waits_for_a_job(scene):
    from poise.addon.blender import session
    from poise.addon.jobs.job import SimulateJob
    from poise.addon.shots.shot import ShotOptions

    job = SimulateJob(scene, ShotOptions(armature=character(scene).name))
    job.start()
    try:
        with pytest.raises(RuntimeError, match="poll"):
            bpy.ops.poise.example_scene()
    finally:
        job.cancel()
    assert session.job() is None

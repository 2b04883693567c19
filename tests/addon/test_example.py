# SPDX-License-Identifier: GPL-3.0-or-later
"""The example scene: whatever of it is simulated stands, and nobody else's scene is touched."""

import bpy
import numpy as np
import pytest

from poise.addon.blender import compat
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

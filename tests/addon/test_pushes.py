# SPDX-License-Identifier: GPL-3.0-or-later
"""Pushes in Blender: list, generator, animated empties, command line, and what is refused."""

import json
import math

import bpy
import numpy as np
import pytest

import poise
from poise.addon import pushes, session
from poise.addon.command_line import main
from poise.addon.shot import Shot, ShotOptions
from poise.controller.exceptions import SettingsError
from poise.controller.scenario import random_pushes
from poise.controller.skeleton import SEGMENT_INDEX


@pytest.fixture(autouse=True)
def registered(blender):
    """Poise as Blender has it when it is enabled."""
    poise.register()
    yield
    poise.unregister()


@pytest.fixture
def stand(import_clip):
    return import_clip("stand")


def add(**values):
    """A push of the scene's list."""
    bpy.ops.poise.add_push()
    push = pushes.active(bpy.context.scene)
    for name, value in values.items():
        setattr(push, name, value)
    return push


def prepared(**options):
    """A shot of the scene, ready to simulate."""
    shot = Shot(bpy.context.scene, ShotOptions(**options))
    for _ in shot.read():
        pass
    shot.prepare()
    return shot


@pytest.mark.parametrize("seed", range(5))
def test_angles_and_vector_are_inverse(seed):
    force = np.random.default_rng(seed).normal(0, 100, 3)
    strength = np.linalg.norm(force)
    assert np.allclose(pushes.vector(strength, *pushes.angles(force)), force, atol=1e-9)


def test_a_push_counts_seconds_from_the_first_frame(stand):
    add(frame=31, duration=0.3, strength=80.0, azimuth=math.radians(90), part="HEAD")
    (push,) = prepared(frames=(11, 60)).simulation.scenario.pushes
    assert push.start == pytest.approx(20 / 60)
    assert push.duration == pytest.approx(0.3)
    assert np.allclose(push.force, (0, 80, 0), atol=1e-4)
    assert (push.segment, push.point) == ("head", None)


def test_a_bone_and_a_point_off_its_centre(stand):
    add(part="BONE", bone="LeftForeArm", offset=(0.1, 0.0, -0.05))
    shot = prepared()
    (push,) = shot.simulation.scenario.pushes
    assert push.segment == "forearm_l"
    centre = shot.character.centres[SEGMENT_INDEX["forearm_l"]]
    assert np.allclose(np.subtract(push.point, centre), (0.1, 0, -0.05), atol=1e-6)


def test_a_push_that_is_off_does_nothing(stand):
    add(use=False, strength=0.0)
    assert prepared().simulation.scenario.pushes == ()


def empty_at(place, strengths, unit=1.0):
    """An empty that pushes along the scene's -Y, with keys {frame: strength [N]}."""
    empty = bpy.data.objects.new("Pusher", None)
    bpy.context.collection.objects.link(empty)
    empty.location = np.array(place) / unit
    empty.rotation_euler = (math.pi / 2, 0, 0)
    for frame, strength in strengths.items():
        empty.poise_strength = strength
        empty.keyframe_insert("poise_strength", frame=frame)
    return empty


def test_an_animated_empty_pushes(stand):
    trunk = np.array(stand.matrix_world @ stand.pose.bones["Neck"].head)
    empty = empty_at(trunk, {20: 0.0, 26: 150.0, 32: 0.0})
    add(kind="EMPTY", empty=empty)
    bpy.context.scene.frame_set(7)
    shot = prepared()
    assert bpy.context.scene.frame_current == 7
    (push,) = shot.simulation.scenario.pushes
    assert push.start == pytest.approx(19 / 60)
    assert push.duration == pytest.approx(12 / 60)
    assert np.allclose(push.force_at(25 / 60), (0, -150, 0), atol=1e-3)
    assert np.allclose(push.force_at(19.5 / 60)[[0, 2]], 0, atol=1e-3)
    recording = shot.simulation.run()
    frame = shot.simulation.reference.raw.frames[25, SEGMENT_INDEX["trunk"]]
    joint = shot.simulation.reference.raw.joints[25, SEGMENT_INDEX["trunk"]]
    neck = stand_neck(shot, 25)
    assert np.linalg.norm(joint + frame @ push.point - neck) < 0.05
    assert recording.scenario.pushes == (push,)


def stand_neck(shot, sample):
    from poise.controller.skeleton import LANDMARK_INDEX

    return shot.reading.motion.positions[sample, LANDMARK_INDEX["neck"]]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"part": "BONE", "bone": "LeftToeBase"}, "which carries no part of the body: choose one"),
        ({"part": "BONE", "bone": ""}, "on the bone '', which carries no part"),
        ({"strength": 0.0}, "has a strength of 0 N: give it one, or switch it off"),
        ({"duration": 0.0}, "lasts 0 s: give it a duration above 0 s"),
        ({"frame": 5000}, "begins at frame 5000, outside of the frames 1 to"),
        ({"kind": "EMPTY"}, "has no empty in this scene: choose one"),
    ],
)
def test_what_cannot_be_is_said(stand, values, sentence):
    add(**values)
    with pytest.raises(SettingsError, match=sentence):
        prepared()
    with pytest.raises(RuntimeError, match=sentence):
        bpy.ops.poise.simulate()


def test_an_empty_that_was_deleted(stand):
    empty = empty_at((0, 0, 1.2), {20: 100.0})
    add(kind="EMPTY", empty=empty)
    bpy.data.objects.remove(empty)
    with pytest.raises(SettingsError, match="has no empty in this scene"):
        prepared()


def test_an_empty_without_strength_or_far_away(stand):
    empty = empty_at((9, 9, 1), {20: 0.0})
    add(kind="EMPTY", empty=empty)
    with pytest.raises(SettingsError, match="strength of 0 N at all frames"):
        prepared()
    empty.poise_strength = 50.0
    empty.keyframe_insert("poise_strength", frame=30)
    with pytest.raises(SettingsError, match="m away from the trunk at frame"):
        prepared()


def test_the_generator_makes_the_pushes_of_the_measures(stand):
    bpy.context.scene.frame_set(5)
    own = add(name="Own").name
    action = stand.animation_data.action
    assert bpy.ops.poise.generate_pushes(force=60.0, seed=3) == {"FINISHED"}
    items = bpy.context.scene.poise.pushes.items
    first, last = action.frame_range
    drawn = random_pushes(60.0, (last - first) / 60, 3)
    made = [push for push in items if push.generated]
    assert len(made) == len(drawn) >= 1
    for push, wanted in zip(made, drawn, strict=True):
        assert push.frame == round(first + wanted.start * 60)
        force = pushes.vector(push.strength, push.azimuth, push.elevation)
        assert np.allclose(force, wanted.force, atol=1e-3)
    bpy.ops.poise.generate_pushes(force=60.0, seed=4)
    assert [push.name for push in items if not push.generated] == [own]
    assert len([push for push in items if push.generated]) == len(drawn)


def test_the_list_can_be_edited():
    add(strength=33.0)
    bpy.ops.poise.duplicate_push()
    chosen = bpy.context.scene.poise.pushes
    assert [round(push.strength) for push in chosen.items] == [33, 33]
    assert chosen.index == 1
    bpy.ops.poise.remove_push()
    assert (len(chosen.items), chosen.index) == (1, 0)
    bpy.ops.poise.clear_pushes()
    assert len(chosen.items) == 0
    with pytest.raises(RuntimeError, match="There is no push: add one first"):
        bpy.ops.poise.remove_push()


def test_a_pushed_body_moves_that_way(stand):
    bpy.ops.poise.simulate()
    still = session.result_of(bpy.context.scene, stand).recording.com
    add(frame=31, strength=60.0, azimuth=0.0)
    bpy.ops.poise.simulate()
    pushed = session.result_of(bpy.context.scene, stand).recording.com
    apart = (pushed - still)[:, :2]
    assert np.abs(apart[:30]).max() == 0
    along, aside = np.abs(apart[42]).tolist()
    assert apart[42, 0] > 0.01
    assert along > 3 * aside


def test_the_command_line_pushes(stand, tmp_path):
    shot = tmp_path / "shot.blend"
    add(strength=20.0)
    bpy.ops.wm.save_as_mainfile(filepath=str(shot))
    report = tmp_path / "report.json"
    arguments = [
        "bake",
        str(shot),
        "--output",
        str(tmp_path / "out.blend"),
        "--report",
        str(report),
    ]
    arguments += [
        "--report",
        str(report),
        "--push",
        "31,0.2,50,0,0,pelvis",
        "--pushes",
        "40",
        "--no-pushes",
    ]
    assert main(arguments) == 0
    data = json.loads(report.read_text())
    first, second = data["pushes"]
    assert first["segment"] == "pelvis"
    assert first["start"] == pytest.approx(0.5)
    mass = data["body"]["mass"]
    assert first["impulse_per_mass"] == pytest.approx(50 * 0.2 / mass, rel=1e-6)
    assert np.linalg.norm(second["force"]) == pytest.approx(40)
    assert data["units"]["impulse_per_mass"] == "m/s"


@pytest.mark.parametrize("text", ["40", "40,0.2,1,2", "40,0.2,x,0,0", "40,0.2,1,0,0,tail"])
def test_a_push_that_cannot_be_read_is_wrong_usage(text, capsys):
    assert main(["bake", "shot.blend", "--push", text]) == 2
    assert text.split(",")[-1] in capsys.readouterr().err

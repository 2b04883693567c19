# SPDX-License-Identifier: GPL-3.0-or-later
"""Pushes in Blender: list, generator, animated empties, command line, and what is refused."""

import json
import math
from types import SimpleNamespace

import bpy
import numpy as np
import pytest

from poise.addon.blender import evaluation, session
from poise.addon.command.command_line import main
from poise.addon.scene import pushes
from poise.addon.shots.shot import Shot, ShotOptions
from poise.addon.terminal import command_pushes
from poise.controller.body.morphology import Morphology
from poise.controller.exceptions import SettingsError
from poise.controller.geometry.skeleton import LANDMARK_INDEX, SEGMENT_INDEX
from poise.controller.simulation.scenario import random_pushes

pytestmark = pytest.mark.usefixtures("registered")


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


def test_a_point_off_the_centre(stand):
    add(part="FOREARM_L", offset=(0.1, 0.0, -0.05))
    shot = prepared()
    (push,) = shot.simulation.scenario.pushes
    assert push.segment == "forearm_l"
    centre = shot.character.centres[SEGMENT_INDEX["forearm_l"]]
    assert np.allclose(np.subtract(push.point, centre), (0.1, 0, -0.05), atol=1e-6)


def test_a_bone_is_pushed_in_its_middle(stand):
    hand = stand.pose.bones["LeftHand"]
    add(part="BONE", bone="LeftHand", frame=1)
    shot = prepared()
    (push,) = shot.simulation.scenario.pushes
    assert push.segment == "forearm_l"
    at = place_of(shot, push, 0)
    assert np.linalg.norm(at - stand.matrix_world @ (hand.head + hand.tail) / 2) < 0.03


def place_of(shot, push, sample):
    """Where on the animated body a push acts (3,) [m]."""
    raw, index = shot.simulation.reference.raw, SEGMENT_INDEX[push.segment]
    return raw.joints[sample, index] + raw.frames[sample, index] @ push.point


@pytest.mark.parametrize(
    ("bone", "segment"),
    [
        ("LeftToeBase", "foot_l"),
        ("RightShoulder", "trunk"),
        ("Spine1", "trunk"),
        ("Hips", "pelvis"),
    ],
)
def test_every_bone_of_the_map_belongs_to_a_body(stand, bone, segment):
    add(part="BONE", bone=bone)
    (push,) = prepared().simulation.scenario.pushes
    assert push.segment == segment


def test_another_body_is_pushed_at_the_same_place(stand):
    add(part="HEAD", offset=(0.0, 0.02, 0.05))
    plain = prepared()
    giant = prepared(morphology=Morphology({"head": (2.0, 1.5, 1.0)}))
    point, other = (np.array(s.simulation.scenario.pushes[0].point) for s in (plain, giant))
    index = SEGMENT_INDEX["head"]
    stretch = giant.character.centres[index, 2] / plain.character.centres[index, 2]
    assert stretch == pytest.approx(2, rel=0.1)
    assert other[2] == pytest.approx(point[2] * stretch, rel=0.05)
    assert 1.2 * point[1] < other[1] < 1.6 * point[1]


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


def neck_of(armature):
    return armature.matrix_world @ armature.pose.bones["Neck"].head


def test_an_animated_empty_pushes(stand):
    empty = empty_at(neck_of(stand), {20: 0.0, 26: 150.0, 32: 0.0})
    add(kind="EMPTY", empty=empty)
    bpy.context.scene.frame_set(7)
    shot = prepared()
    assert bpy.context.scene.frame_current == 7
    (push,) = shot.simulation.scenario.pushes
    assert push.start == pytest.approx(19 / 60)
    assert push.duration == pytest.approx(12 / 60)
    for frame in range(20, 33):
        bpy.context.scene.frame_set(frame)
        # At the very end a push is over; a little before it says the same.
        force = push.force_at((frame - 1) / 60 - 1e-9 if frame > 20 else 19 / 60)
        assert np.allclose(force, (0, -empty.poise_strength, 0), atol=1e-3)
    neck = shot.reading.motion.positions[25, LANDMARK_INDEX["neck"]]
    assert np.linalg.norm(place_of(shot, push, 25) - neck) < 0.05


def test_an_empty_may_push_several_times_at_several_places(stand):
    neck = np.array(neck_of(stand))
    empty = empty_at(neck, {20: 0.0, 25: 90.0, 30: 0.0, 60: 0.0, 65: 90.0, 70: 0.0})
    for frame, x in ((25, 0.1), (65, -0.1)):
        empty.location = neck + (x, 0, 0)
        empty.keyframe_insert("location", frame=frame)
    add(kind="EMPTY", empty=empty)
    shot = prepared()
    pushes = shot.simulation.scenario.pushes
    assert [push.start * 60 for push in pushes] == pytest.approx([19, 59])
    apart = place_of(shot, pushes[0], 24) - place_of(shot, pushes[1], 64)
    assert apart == pytest.approx((0.2, 0, 0), abs=0.02)
    steps = [push.impulse[1] for push in pushes]
    assert steps == pytest.approx([steps[0]] * 2) and steps[0] < -5


def test_scene_units_become_metres(import_clip):
    """In centimetres all is the same but for the numbers."""
    stand = import_clip("stand", global_scale=1.0)  # the clip's own unit, 0.056444 m
    unit = 0.056444
    bpy.context.scene.unit_settings.scale_length = unit
    empty = empty_at(np.array(neck_of(stand)) * unit, {20: 0.0, 26: 150.0, 32: 0.0}, unit)
    add(kind="EMPTY", empty=empty)
    add(part="HEAD", offset=(0.03, 0.0, 0.0))
    shot = prepared()
    assert shot.reading.metres_per_unit == pytest.approx(unit)
    pushed, head = shot.simulation.scenario.pushes
    neck = shot.reading.motion.positions[25, LANDMARK_INDEX["neck"]]
    assert np.linalg.norm(place_of(shot, pushed, 25) - neck) < 0.05
    assert np.allclose(pushed.force_at(25 / 60), (0, -150, 0), atol=1e-3)
    centre = shot.character.centres[SEGMENT_INDEX["head"]]
    assert np.subtract(head.point, centre) == pytest.approx((0.03, 0, 0), abs=1e-6)


def test_a_hidden_empty_pushes_as_well(stand):
    empty = empty_at(neck_of(stand), {20: 0.0, 26: 150.0, 32: 0.0})
    add(kind="EMPTY", empty=empty)
    (push,) = prepared().simulation.scenario.pushes
    empty.hide_set(True)
    assert prepared().simulation.scenario.pushes == (push,)


def test_a_strength_without_keys_counts_as_it_is_now(stand):
    empty = empty_at(neck_of(stand), {})
    add(kind="EMPTY", empty=empty)
    for strength in (30.0, 20.0):
        empty.poise_strength = strength
        (push,) = prepared().simulation.scenario.pushes
        assert np.allclose(push.force, (0, -strength, 0), atol=1e-4)


def test_drivers_and_constraints_move_an_empty(stand):
    empty = empty_at((0, 0, 0), {})
    follow = empty.constraints.new("COPY_LOCATION")
    follow.target, follow.subtarget = stand, "Neck"
    empty.driver_add("poise_strength").driver.expression = "80 if 30 <= frame <= 36 else 0"
    add(kind="EMPTY", empty=empty)
    shot = prepared()
    (push,) = shot.simulation.scenario.pushes
    assert (push.start * 60, push.duration * 60) == pytest.approx((28, 8))
    assert np.linalg.norm(push.impulse) == pytest.approx(80 * 7 / 60, rel=1e-5)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"part": "BONE", "bone": "tail"}, "'tail', which carries no part of the body: choose one"),
        ({"part": "BONE", "bone": ""}, "on the bone '', which carries no part"),
        ({"strength": 0.0}, "has a strength of 0 N: give it one, or switch it off"),
        ({"duration": 0.0}, "lasts 0 s: give it a duration above 0 s"),
        ({"frame": 5000}, "of 0.2 s begins at frame 5000, outside of the frames 1 to"),
        ({"frame": -20}, "of 0.2 s begins at frame -20, outside of the frames 1 to"),
        ({"strength": math.nan}, "The push 'Push 1' has a value that is not a number: mend it"),
        ({"kind": "EMPTY"}, "has no empty in this scene: choose one"),
    ],
)
def test_what_cannot_be_is_said(stand, values, sentence):
    add(**values)
    with pytest.raises(SettingsError, match=sentence):
        prepared()
    with pytest.raises(RuntimeError, match=sentence):
        bpy.ops.poise.simulate()


def test_a_push_that_has_begun_before_goes_on(stand):
    add(frame=-4, duration=0.2)
    (push,) = prepared().simulation.scenario.pushes
    assert push.start == pytest.approx(-5 / 60)
    assert push.force_at(0.0)[0] == pytest.approx(100)


def into_disabled_collection(thing):
    outer, inner = bpy.data.collections.new("Outer"), bpy.data.collections.new("Inner")
    bpy.context.scene.collection.children.link(outer)
    outer.children.link(inner)
    inner.objects.link(thing)
    bpy.context.scene.collection.objects.unlink(thing)
    assert evaluation.is_enabled(thing, bpy.context.view_layer)
    outer.hide_viewport = True


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda e: setattr(e, "scale", (1, 1, 0)), "has a scale of 0 at frame"),
        (lambda e: bpy.context.scene.collection.objects.unlink(e), "has no empty in this scene"),
        (lambda e: setattr(e, "poise_strength", math.nan), "is not a number at frame 1: mend"),
        (lambda e: setattr(e, "hide_viewport", True), "its collection is disabled in the viewport"),
        (into_disabled_collection, "its collection is disabled in the viewport"),
    ],
)
def test_an_empty_that_cannot_push(stand, spoil, sentence):
    empty = empty_at(neck_of(stand), {})
    empty.poise_strength = 100.0
    add(kind="EMPTY", empty=empty)
    spoil(empty)
    bpy.context.scene.frame_set(3)
    with pytest.raises(SettingsError, match=sentence):
        prepared()
    assert bpy.context.scene.frame_current == 3


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


def test_the_generator_fills_the_frames_that_are_simulated(stand):
    settings = bpy.context.scene.poise
    settings.frames, settings.first_frame, settings.last_frame = "CUSTOM", 61, 240
    bpy.ops.poise.generate_pushes(force=60.0, seed=3)
    frames = [push.frame for push in settings.pushes.items]
    assert frames == [61 + round(push.start * 60) for push in random_pushes(60.0, 179 / 60, 3)]
    # For fewer frames, those generated pushes that do not fit are left out.
    (first, *_), last = frames, frames[-1]
    assert len(prepared(frames=(61, last - 1)).simulation.scenario.pushes) == len(frames) - 1
    assert prepared(frames=(61, first - 1)).simulation.scenario.pushes == ()


def test_the_generator_without_an_animation():
    bpy.context.scene.frame_end = 30
    assert bpy.ops.poise.generate_pushes(force=60.0) == {"FINISHED"}
    assert not bpy.context.scene.poise.pushes.items


def test_each_change_of_the_list_is_one_step_of_undo(stand):
    def listed():
        return [(push.name, push.generated) for push in bpy.context.scene.poise.pushes.items]

    states = [listed()]
    bpy.ops.ed.undo_push(message="Before")
    for operator, options in (
        ("add_push", {}),
        ("duplicate_push", {}),
        ("generate_pushes", {"force": 50.0}),
        ("remove_push", {}),
        ("clear_pushes", {}),
    ):
        getattr(bpy.ops.poise, operator)(**options)
        bpy.ops.ed.undo_push(message=operator)
        states.append(listed())
    for state in reversed(states[:-1]):
        bpy.ops.ed.undo()
        assert listed() == state
    bpy.ops.ed.redo()
    assert listed() == states[1]


def test_the_list_can_be_edited():
    add(strength=33.0)
    bpy.ops.poise.duplicate_push()
    chosen = bpy.context.scene.poise.pushes
    assert [round(push.strength) for push in chosen.items] == [33, 33]
    assert chosen.index == 1
    chosen.items[0].name, chosen.items[1].name = "First", "Second"
    bpy.ops.poise.move_push(direction="UP")
    bpy.ops.poise.move_push(direction="UP")
    assert ([push.name for push in chosen.items], chosen.index) == (["Second", "First"], 0)
    bpy.ops.poise.move_push(direction="DOWN")
    assert ([push.name for push in chosen.items], chosen.index) == (["First", "Second"], 1)
    bpy.ops.poise.remove_push()
    assert (len(chosen.items), chosen.index) == (1, 0)
    bpy.ops.poise.clear_pushes()
    assert len(chosen.items) == 0
    with pytest.raises(RuntimeError, match="There is no push: add one first"):
        bpy.ops.poise.remove_push()


@pytest.mark.slow(captured=False)
def test_a_pushed_body_moves_that_way(stand):
    bpy.ops.poise.simulate()
    still = session.result_of(bpy.context.scene, stand).recording.com
    add(frame=31, strength=60.0, azimuth=0.0)
    bpy.ops.poise.simulate()
    pushed = session.result_of(bpy.context.scene, stand).recording.com
    apart = (pushed - still)[:, :2]
    assert np.abs(apart[:31]).max() == 0
    # At first nothing holds against it: it gains F / m, in its direction.
    mass = session.result_of(bpy.context.scene, stand).shot.character.mass
    time = 4 / 60
    assert apart[34, 0] == pytest.approx(60.0 / mass * time**2 / 2, rel=0.2)
    along, aside = np.abs(apart[42]).tolist()
    assert along > 0.01 and along > 3 * aside


def test_the_command_line_pushes(stand, tmp_path):
    shot = tmp_path / "shot.blend"
    add(strength=20.0)
    bpy.ops.wm.save_as_mainfile(filepath=str(shot))
    report = tmp_path / "report.json"
    arguments = ["bake", str(shot), "--output", str(tmp_path / "out.blend")]
    arguments += ["--report", str(report), "--no-pushes"]
    arguments += ["--push", "31,0.2,50,0,0,pelvis", "--pushes", "40"]
    assert main(arguments) == 0
    data = json.loads(report.read_text())
    first, second = data["pushes"]
    assert first["segment"] == "pelvis"
    assert (first["start"], first["frame"]) == pytest.approx((0.5, 31))
    mass = data["body"]["mass"]
    assert first["impulse_per_mass"] == pytest.approx(50 * 0.2 / mass, rel=1e-6)
    assert np.linalg.norm(second["force"]) == pytest.approx(40)
    assert data["units"]["impulse_per_mass"] == "m/s"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("31,0.2,0,0,0", "The push '--push 1' has a strength of 0 N"),
        ("31,0.2,9e4,0,0", r"The push of 90000 N on the trunk at .* s is beyond what a body takes"),
        ("9000,0.2,9,0,0", "The push '--push 1' of 0.2 s begins at frame 9000, outside of"),
    ],
)
def test_a_push_of_the_command_line_that_cannot_be(stand, text, sentence):
    options = command_pushes.push_options(
        SimpleNamespace(push=[command_pushes._push(text)], pushes=None, push_seed=0, no_pushes=True)
    )
    with pytest.raises(SettingsError, match=sentence):
        prepared(pushes=options)


@pytest.mark.parametrize("text", ["40", "40,0.2,1,2", "40,0.2,x,0,0", "40,0.2,1,0,0,tail"])
def test_a_push_that_cannot_be_read_is_wrong_usage(text, capsys):
    assert main(["bake", "shot.blend", "--push", text]) == 2
    assert text.split(",")[-1] in capsys.readouterr().err

# SPDX-License-Identifier: GPL-3.0-or-later
import math

import bpy
import numpy as np
import pytest

from poise.addon.blender import compat, pose
from poise.addon.rigs import reference
from poise.controller.exceptions import MotionError, RigError
from poise.controller.geometry.rotations import matrix_from_quaternion
from poise.controller.geometry.skeleton import LANDMARK_INDEX, SEGMENT_INDEX


@pytest.fixture
def scene(blender):
    return blender.context.scene


@pytest.fixture
def read(scene, biped, biped_map):
    def read(**options):
        return reference.read(scene, biped, rig_map=biped_map, **options)

    return read


def curve_of(armature, bone, index=0):
    return next(
        curve
        for curve in compat.curves(*compat.assigned(armature))
        if f'"{bone}"' in curve.data_path and curve.array_index == index
    )


def test_what_is_read_is_what_blender_shows(scene, biped, read):
    reading = read()
    assert reading.frames.tolist() == list(range(1, 31))
    scene.frame_set(12)
    world = biped.matrix_world @ biped.pose.bones["shin.L"].matrix
    index = reading.bone_index("shin.L")
    assert np.allclose(reading.bone_matrices[11, index], world, atol=1e-6)
    motion = reading.motion
    knee = motion.positions[11, LANDMARK_INDEX["knee_l"]]
    assert np.allclose(knee, world.translation, atol=1e-6)
    turn = matrix_from_quaternion(motion.rotations[11, SEGMENT_INDEX["shin_l"]])
    assert np.allclose(turn, world.to_3x3(), atol=1e-5)
    assert (motion.name, motion.rate, motion.first_frame) == ("walk", 25, 1)


def test_start_step_and_subframes(read):
    whole, part = read(), read(frames=(3.5, 12.5, 0.5))
    assert part.frames[0] == 3.5 and part.frames[1] == 4.0 and part.frames[-1] == 12.5
    assert part.rate == 50 and part.motion.frame_step == 0.5
    # At frame 4 both have a sample; at 3.5 the keys are interpolated.
    assert np.allclose(part.bone_matrices[1], whole.bone_matrices[3], atol=1e-6)
    assert not np.allclose(part.bone_matrices[0], whole.bone_matrices[3], atol=1e-4)


def test_frames_beside_the_animation(biped, read):
    with pytest.raises(MotionError, match=r"is animated from frame .* and nothing moves from 500"):
        read(frames=(500, 600, 1))
    action, slot = compat.assigned(biped)
    for curve in compat.curves(action, slot):
        curve.modifiers.new("CYCLES")
    action.update_tag()
    first, last = read().frames[[0, -1]]
    bpy.context.scene.frame_end = 90
    told = f"'{action.name}' goes on in cycles after frame {last:g}, which is not read: choose the "
    assert read().still == f"{told}frames {first:g} to 90 if it shall."
    bpy.context.scene.frame_end = int(last)
    assert not read().still
    going_on = read(frames=(500, 520, 1))
    assert len(going_on.frames) == 21 and not going_on.still, "a cyclic animation goes on"


def test_frames_partly_beside_the_animation_are_told_of(read):
    whole = read()
    first, last = whole.frames[0], whole.frames[-1]
    assert not whole.still and not read(frames=(first, last + 1, 1)).still
    animated = f"'biped' is animated from frame {first:g} to {last:g}, and nothing moves from "
    after, before = f"{last:g} to {last + 20:g}", f"{first - 9:g} to {first:g}"
    assert read(frames=(first, last + 20, 1)).still == f"{animated}{after}."
    assert read(frames=(first - 9, last + 20, 1)).still == f"{animated}{before} and from {after}."


def test_keys_of_single_precision_keep_their_last_frame(read):
    """Frames of a curve may lie a little before the number that they are."""
    first, last = 1.37, 25.37 - 2e-5
    assert len(read(frames=(first, last, 1)).frames) == 25


def test_frame_rate(scene, read):
    scene.render.fps_base = 1.001
    assert read().rate == pytest.approx(25 / 1.001)
    assert read(rate=60).rate == 60
    for rate in (0, 1e-9, 1e9, float("nan")):
        with pytest.raises(MotionError, match=r"frame rate of .* is impossible: give one from"):
            read(rate=rate)


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_scale_of_the_object_and_the_unit(scene, biped, read, scale):
    before = read().motion.positions
    biped.scale = (scale,) * 3
    reading = read()
    assert reading.metres_per_unit * scale == pytest.approx(1)
    assert np.allclose(reading.motion.positions, before, rtol=1e-4, atol=1e-5, equal_nan=True)


def test_the_scene_s_own_unit_is_used_if_it_gives_human_legs(scene, biped, read):
    scene.unit_settings.scale_length = 0.5
    assert read().metres_per_unit == 0.5
    assert read(metres_per_unit=2.0).metres_per_unit == 2.0
    assert not read(metres_per_unit=2.0).unit_guessed and not read().unit_guessed


@pytest.mark.parametrize(
    ("size", "unit"), [(0.2, 1.0), (2.3, 1.0), (3.4, 0.3048), (40.0, 0.0254), (0.01, 100.0)]
)
def test_giants_and_children_are_what_the_scene_says(scene, biped, read, size, unit):
    biped.scale = (size,) * 3
    reading = read()
    assert reading.metres_per_unit == unit
    assert reading.unit_guessed == (unit != 1.0)


def test_optional_landmarks(read, biped_map):
    motion = read().motion
    assert np.isfinite(motion.positions).all()
    bones = {k: v for k, v in biped_map.bones.items() if k[:3] not in ("toe", "han")}
    from poise.addon.rigs.rig import RigMap

    motion = read_with(read, RigMap(name="bare", bones=bones)).motion
    for name in ("ball_l", "fingertip_r"):
        assert np.isnan(motion.positions[:, LANDMARK_INDEX[name]]).all()
    for name in ("wrist_l", "toe_l"):
        assert np.isfinite(motion.positions[:, LANDMARK_INDEX[name]]).all()


def read_with(read, rig_map):
    scene, armature = bpy.context.scene, bpy.data.objects["biped"]
    return reference.read(scene, armature, rig_map=rig_map)


def test_constraints_and_parents_count(scene, biped, read):
    before = read()
    target = bpy.data.objects.new("target", None)
    scene.collection.objects.link(target)
    target.rotation_euler = (0, 0, 1.0)
    constraint = biped.pose.bones["head"].constraints.new("COPY_ROTATION")
    constraint.target = target
    biped.parent = target
    after = read()
    head = SEGMENT_INDEX["head"]
    assert np.allclose(after.motion.rotations[:, head], after.motion.rotations[0, head], atol=1e-5)
    moved = np.array(target.matrix_basis) @ np.append(before.motion.positions[5, 0], 1)
    assert np.allclose(after.motion.positions[5, 0], moved[:3], atol=1e-5)


def test_nla_strips_are_read(scene, biped, read):
    before = read()
    action, slot = compat.assigned(biped)
    compat.assign(biped, None)
    strip = biped.animation_data.nla_tracks.new().strips.new("walk", 11, action)
    if compat.HAS_SLOTS:
        strip.action_slot = slot
    reading = read()
    assert reading.action is None and reading.motion.name == "biped"
    assert reading.frames[0] == 11 and reading.frames[-1] == 40
    assert np.allclose(reading.bone_matrices, before.bone_matrices, atol=1e-6)


def test_another_action_is_read_and_the_own_one_put_back(scene, biped, read):
    action, slot = compat.assigned(biped)
    other = action.copy()
    other.name = "other"
    for curve in compat.curves(other, compat.object_slot(other, biped)):
        for key in curve.keyframe_points:
            key.co.x += 100
    scene.frame_set(7, subframe=0.25)
    reading = read(action="other")
    assert reading.action == "other" and reading.frames[0] == 101
    assert compat.assigned(biped) == (action, slot)
    assert (scene.frame_current, scene.frame_subframe) == (7, 0.25)


def test_everything_is_put_back_when_the_reading_is_given_up(scene, biped, biped_map):
    before = compat.assigned(biped)
    other = before[0].copy()
    scene.frame_set(9)
    generator = reference.reading(scene, biped, rig_map=biped_map, action=other)
    assert next(generator) == 0
    assert 0 < next(progress for progress in generator if progress) < 1
    assert compat.assigned(biped)[0] == other
    generator.close()
    assert compat.assigned(biped) == before and scene.frame_current == 9


def test_muted_curves_are_read_as_they_are_seen(biped, read):
    before = read()
    for index in range(3):
        curve_of(biped, "hips", index).mute = True
    assert not np.allclose(read().bone_matrices, before.bone_matrices, atol=1e-3)


def test_progress_ends_at_one(scene, biped, biped_map):
    steps = list(reference.reading(scene, biped, rig_map=biped_map))
    assert sorted(set(steps)) == pytest.approx(np.arange(31) / 30) and steps == sorted(steps)


def test_what_is_read_is_worked_on_in_pieces(scene, biped, biped_map, monkeypatch):
    """A rig of hundreds of bones would hold the window otherwise; the result is the same."""
    whole = reference.read(scene, biped, rig_map=biped_map)
    before = len(list(reference.reading(scene, biped, rig_map=biped_map)))
    monkeypatch.setattr(reference, "PIECE", 5)
    after = len(list(reference.reading(scene, biped, rig_map=biped_map)))
    pieces = math.ceil(len(whole.frames) / 5) - math.ceil(len(whole.frames) / 25)
    assert after - before == 2 * pieces, "matrices in the world, rotations of segments"
    pieced = reference.read(scene, biped, rig_map=biped_map)
    for name in ("bone_matrices", "object_matrices"):
        np.testing.assert_array_equal(getattr(pieced, name), getattr(whole, name))
    np.testing.assert_array_equal(pieced.motion.rotations, whole.motion.rotations)


def test_all_below_a_bone_are_those_that_blender_finds(biped):
    for bone in biped.data.bones:
        assert pose.all_below(bone) == list(bone.children_recursive)


# Bad input --------------------------------------------------------------------------------------


def test_no_armature(scene):
    with pytest.raises(RigError, match="There is no armature"):
        reference.read(scene, None)
    empty = bpy.data.objects.new("cube", None)
    with pytest.raises(RigError, match="'cube' is not an armature"):
        reference.read(scene, empty)


def test_no_action(biped, read):
    action, slot = compat.assigned(biped)
    compat.assign(biped, None)
    with pytest.raises(MotionError, match="'biped' has no animation"):
        read()
    # Constraints alone may move it, for as long as the scene lasts.
    biped.constraints.new("LIMIT_LOCATION")
    assert len(read().frames) == bpy.context.scene.frame_end - bpy.context.scene.frame_start + 1
    biped.constraints.clear()
    compat.assign(biped, *compat.new_action("empty"))
    with pytest.raises(MotionError, match="'empty' has no keys for 'biped'"):
        read()
    if compat.HAS_SLOTS:
        compat.assign(biped, action, None)
        with pytest.raises(MotionError, match="has no slot in the action 'walk'"):
            read()
    compat.assign(biped, action, slot)
    with pytest.raises(MotionError, match="no action named 'run'"):
        read(action="run")


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ((5, 5, 1), "1 frame in the range 5 to 5"),
        ((5, 2, 1), "0 frames"),
        (
            (1, 1e8, 1),
            "has 100000000 frames .*: choose a range of at most 500000, or a larger step",
        ),
        ((1, 9, 0), "are no range"),
        ((1, float("nan"), 1), "are no range"),
    ],
)
def test_too_few_or_too_many_frames(read, frames, message):
    with pytest.raises(MotionError, match=message):
        read(frames=frames)


@pytest.mark.parametrize(
    ("scale", "error", "message"),
    [
        ((0, 0, 0), RigError, "'biped' has a zero scale at frame 1"),
        ((1, 1, -1), RigError, "'biped' has a negative scale at frame 1"),
        ((1, 2, 1), RigError, "'biped' is sheared or scaled unevenly at frame 1"),
        ((1, float("nan"), 1), MotionError, "not a number at frame 1"),
    ],
)
def test_impossible_scales_of_the_object(scene, biped, read, scale, error, message):
    scene.frame_set(4)
    biped.scale = scale
    with pytest.raises(error, match=message):
        read()
    assert scene.frame_current == 4


def test_a_sheared_parent(scene, biped, read):
    parent = bpy.data.objects.new("parent", None)
    scene.collection.objects.link(parent)
    parent.scale = (1, 3, 1)
    biped.parent, biped.rotation_euler = parent, (0, 0, 0.7)
    with pytest.raises(RigError, match="sheared or scaled unevenly"):
        read()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_keys_that_are_not_finite(biped, read, value):
    curve_of(biped, "thigh.L").keyframe_points[11].co.y = value
    with pytest.raises(
        MotionError, match=r"'thigh.L' has a key .* not a finite number at frame 12"
    ):
        read()


def test_a_bone_without_size(biped, read):
    biped.pose.bones["shin.R"].scale = (0, 0, 0)
    with pytest.raises(RigError, match=r"'shin.R' has a zero or negative scale at frame 1"):
        read()


def test_a_pop(scene, biped, read):
    bone = biped.pose.bones["head"]
    bone.rotation_mode = "XYZ"
    for frame, angle in ((15, 0.0), (16, 2.8), (17, 0.0)):
        bone.rotation_euler.x = angle
        bone.keyframe_insert("rotation_euler", frame=frame)
    # At 10 frames a second that is still a possible turn.
    reference.check_pops(read(rate=10))
    popping = read()
    assert len(popping.motion) == 30
    with pytest.raises(MotionError, match=r"'head' pops: it turns by 16.° from frame 15 to 16"):
        reference.check_pops(popping)


def test_what_blender_does_not_evaluate(biped, read):
    biped.hide_viewport = True
    with pytest.raises(RigError, match="disabled in the viewport"):
        read()
    # Blender takes what a property of the scene points at for evaluated.
    bpy.types.Scene.chosen = bpy.props.PointerProperty(type=bpy.types.Object)
    bpy.context.scene.chosen = biped
    try:
        with pytest.raises(RigError, match="disabled in the viewport"):
            read()
    finally:
        del bpy.types.Scene.chosen
    biped.hide_viewport = False
    biped.data.pose_position = "REST"
    with pytest.raises(RigError, match="rest position"):
        read()


def test_tweak_mode(biped, read):
    action, slot = compat.assigned(biped)
    strip = biped.animation_data.nla_tracks.new().strips.new("walk", 1, action)
    if compat.HAS_SLOTS:
        strip.action_slot = slot
    compat.assign(biped, None)
    biped.animation_data.use_tweak_mode = True
    with pytest.raises(RigError, match="tweak mode"):
        read()


def test_a_bone_of_the_map_that_does_not_exist(scene, biped, biped_map):
    from poise.addon.rigs.rig import RigMap

    rig_map = RigMap(name="odd", bones={**biped_map.bones, "shin_l": ("calf.L",)})
    with pytest.raises(RigError, match=r"'odd' names 'calf.L' for shin_l"):
        reference.read(scene, biped, rig_map=rig_map)


def test_names_in_data_paths():
    assert reference.bone_of('pose.bones["a.L"].location') == "a.L"
    assert reference.bone_of(r'pose.bones["a\"b\\c"].location') == r"a\"b\c".replace('\\"', '"')
    assert reference.bone_of("location") is None


@pytest.mark.parametrize("name", ["walk", "wave", "kick", "bow", "run"])
def test_captured_clips(import_clip, clips, name):
    armature = import_clip(name)
    motion = reference.read(bpy.context.scene, armature).motion
    leg = [LANDMARK_INDEX[f"{joint}_l"] for joint in ("hip", "knee", "ankle")]
    hip, knee, ankle = motion.positions[:, leg].swapaxes(0, 1)
    length = np.linalg.norm(hip - knee, axis=1) + np.linalg.norm(knee - ankle, axis=1)
    assert len(motion) == clips[name].frames and motion.rate == clips[name].fps
    assert 0.5 < length.mean() < 1.0
    turn = (motion.rotations[1:] * motion.rotations[:-1]).sum(-1)
    assert np.abs(turn).min() > np.cos(np.radians(30))

# SPDX-License-Identifier: GPL-3.0-or-later
import re
from dataclasses import replace

import bpy
import numpy as np
import pytest
from mathutils import Matrix

from poise.addon.baking import bake
from poise.addon.baking.bake import BakeOptions
from poise.addon.blender import compat
from poise.addon.rigs import (
    bake_target,
    leg_stretch,
    loose_bones,
    reference,
    sampling,
    source_values,
)
from poise.addon.rigs.rig import label
from poise.addon.shots.shot import Shot, ShotOptions
from poise.controller.exceptions import BakeError, PoiseError, SettingsError
from poise.controller.geometry.rotations import multiply, rotation_vector
from poise.controller.geometry.skeleton import FEET, LANDMARK_INDEX, SEGMENTS, TOES

CONJUGATE = np.array([1, -1, -1, -1])


@pytest.fixture
def scene(blender):
    return blender.context.scene


@pytest.fixture
def rig(scene, biped, biped_map, differences):
    return Rig(scene, biped, biped_map, differences)


class Rig:
    """An armature with its map, to read, bake and compare."""

    def __init__(self, scene, armature, rig_map, differences):
        self.scene, self.armature, self.rig_map = scene, armature, rig_map
        self.differences = differences

    def read(self, **options):
        return reference.read(self.scene, self.armature, rig_map=self.rig_map, **options)

    def bake(self, reading=None, deltas=None, **options):
        reading = reading or self.read()
        rotations, displacement = deltas or self.differences(len(reading.frames))
        options = BakeOptions(**options)
        return bake.bake(self.scene, reading, rotations, displacement, options)

    def seen(self, reading):
        """What is animated now, at the frames of a reading."""
        first, last = reading.frames[0], reading.frames[-1]
        step = reading.frames[1] - first
        unit = reading.metres_per_unit
        return self.read(frames=(first, last, step), metres_per_unit=unit)

    def errors(self, reading, deltas):
        """Largest errors of segment rotations [rad] and of the pelvis [mm] after a bake."""
        after = self.seen(reading).motion
        wanted = multiply(deltas[0], reading.motion.rotations)
        wrong = rotation_vector(multiply(wanted * CONJUGATE, after.rotations))
        pelvis = LANDMARK_INDEX["pelvis"]
        moved = (after.positions - reading.motion.positions)[:, pelvis] - deltas[1]
        return np.linalg.norm(wrong, axis=-1).max(), 1000 * np.abs(moved).max()

    def curves(self):
        """(data path, index) -> curve of what is assigned."""
        curves = compat.curves(*compat.assigned(self.armature))
        return {(curve.data_path, curve.array_index): curve for curve in curves}


def snapshot(action, slot):
    """All that an action says."""
    return [
        (
            curve.data_path,
            curve.array_index,
            curve.mute,
            curve.lock,
            curve.group.name if curve.group else None,
            [
                (*key.co, *key.handle_left, *key.handle_right, key.interpolation)
                for key in curve.keyframe_points
            ],
        )
        for curve in compat.curves(action, slot)
    ]


def assert_exact(rig, **options):
    """A bake of nothing changes nothing, and one of differences puts them exactly there."""
    reading = rig.read(**options.pop("read", {}))
    count = len(reading.frames)
    nothing = np.tile([1.0, 0, 0, 0], (count, len(SEGMENTS), 1)), np.zeros((count, 3))
    result = rig.bake(reading, nothing, **options)
    after = rig.seen(reading)
    moved = np.linalg.norm(after.motion.positions - reading.motion.positions, axis=-1)
    assert 1000 * np.nanmax(moved) < 0.05 and result.error_mm < 0.05
    bake.restore(rig.scene, rig.armature)
    again = rig.seen(reading)
    assert np.allclose(again.bone_matrices, reading.bone_matrices, atol=1e-6)
    deltas = rig.differences(count)
    rig.bake(reading, deltas, **options)
    rotation, pelvis = rig.errors(reading, deltas)
    assert rotation < 1e-4 and pelvis < 0.05


# Exactness --------------------------------------------------------------------------------------


def test_a_plain_rig(rig):
    assert_exact(rig)


@pytest.mark.parametrize("interpolation", ["BEZIER", "CONSTANT"])
def test_other_interpolations(rig, interpolation):
    assert_exact(rig, interpolation=interpolation)
    keys = next(iter(rig.curves().values())).keyframe_points
    assert {key.interpolation for key in keys} == {interpolation}


@pytest.mark.parametrize("frames", [(3.25, 20.25, 0.5), (5, 29, 3), (10, 20, 1), (-5, 40, 1)])
def test_ranges_and_steps(rig, frames):
    assert_exact(rig, read={"frames": frames})


def test_a_small_turned_object(rig):
    rig.armature.scale = (0.01,) * 3
    rig.armature.rotation_euler = (0.3, 0.2, 1.0)
    rig.armature.location = (3, 4, 5)
    assert_exact(rig)


@pytest.fixture
def toed(rig):
    """The rig with a bone more at each toe, which is animated; as exporters of glTF have it."""
    bpy.ops.object.mode_set(mode="EDIT")
    bones = rig.armature.data.edit_bones
    for side in "LR":
        end = bones.new(f"toe_end.{side}")
        end.parent = bones[f"toe.{side}"]
        end.head, end.tail = end.parent.tail, end.parent.tail + end.parent.vector / 2
    bpy.ops.object.mode_set(mode="OBJECT")
    for frame in (1, 15, 30):
        for side in "LR":
            bone = rig.armature.pose.bones[f"toe_end.{side}"]
            bone.rotation_mode, bone.rotation_euler = "XYZ", (0.01 * frame, 0.02 * frame, 0)
            bone.keyframe_insert("rotation_euler", frame=frame)
    chains = {f"toe_{s}": (f"toe.{s.upper()}", f"toe_end.{s.upper()}") for s in "lr"}
    rig.rig_map = replace(rig.rig_map, bones=rig.rig_map.bones | chains)
    return rig


def keys_of(rig, *names):
    """Curves of some bones, as `snapshot` tells them."""
    rows = snapshot(*compat.assigned(rig.armature))
    return [row for row in rows if any(f'"{name}"' in row[0] for name in names)]


def test_several_toe_bones(toed):
    """The first one turns as the toes do, the others keep their own animation."""
    ends = ("toe_end.L", "toe_end.R")
    before = keys_of(toed, *ends)
    assert len(before) == 6
    toed.armature.scale = (0.01,) * 3
    assert_exact(toed)
    assert keys_of(toed, *ends) == before
    bake.restore(toed.scene, toed.armature)


def test_a_rig_without_toes(rig):
    toes = ("toe.L", "toe.R")
    bones = {slot: chain for slot, chain in rig.rig_map.bones.items() if slot[:3] != "toe"}
    rig.rig_map = replace(rig.rig_map, bones=bones)
    before, reading, deltas = keys_of(rig, *toes), rig.read(), rig.differences(30)
    deltas[0][:, TOES] = deltas[0][:, FEET]
    rig.bake(reading, deltas)
    assert before and keys_of(rig, *toes) == before
    assert rig.errors(reading, deltas)[0] < 1e-4


def test_toes_that_turn_with_the_feet_keep_their_keys(rig):
    """Exactly as the animation bends them, whatever the feet do."""
    reading, deltas = rig.read(), rig.differences(30)
    deltas[0][:, TOES] = deltas[0][:, FEET]
    rig.bake(reading, deltas)
    after = rig.seen(reading)
    for side in "LR":
        index = reading.bone_index(f"toe.{side}")
        apart = after.basis_matrices[:, index] - reading.basis_matrices[:, index]
        assert np.abs(apart).max() < 1e-5


def test_an_animated_object(rig):
    for frame in (1, 30):
        rig.armature.location = (0.1 * frame, 0.2, 0)
        rig.armature.rotation_euler = (0, 0, 0.03 * frame)
        rig.armature.keyframe_insert("location", frame=frame)
        rig.armature.keyframe_insert("rotation_euler", frame=frame)
    assert_exact(rig)
    bake.restore(rig.scene, rig.armature)
    assert_exact(rig, root_motion="OBJECT")


def test_slowed_down_scenes(rig):
    rig.scene.render.frame_map_old, rig.scene.render.frame_map_new = 100, 200
    assert_exact(rig, read={"frames": (2, 58, 2)})


@pytest.mark.parametrize("rotation", [True, False])
@pytest.mark.parametrize("scale", ["FIX_SHEAR", "ALIGNED", "AVERAGE", "NONE", "NONE_LEGACY"])
def test_partial_inheritance(rig, scale, rotation):
    for i, bone in enumerate(rig.armature.data.bones):
        bone.inherit_scale = scale
        bone.use_local_location = i % 2 == 0
        bone.use_inherit_rotation = rotation or i % 5 != 0
    for i, bone in enumerate(rig.armature.pose.bones):
        bone.scale = (1 + 0.02 * (i % 3),) * 3
    assert_exact(rig)


def test_scaled_bones_keep_their_scale_curves(rig):
    for i, bone in enumerate(rig.armature.pose.bones):
        for frame, size in ((1, 1 + 0.05 * (i % 3)), (30, 1 + 0.1 * (i % 2))):
            bone.scale = (size,) * 3
            bone.keyframe_insert("scale", frame=frame)
    before = {k: len(c.keyframe_points) for k, c in rig.curves().items() if "scale" in k[0]}
    assert_exact(rig)
    after = {k: len(c.keyframe_points) for k, c in rig.curves().items() if "scale" in k[0]}
    assert after == before


def test_uneven_scales(rig):
    for i, bone in enumerate(rig.armature.pose.bones):
        bone.scale = (1, 1 + 0.1 * (i % 3), 1)
    assert_exact(rig)


def test_legs_that_do_not_hang_from_the_pelvis(rig):
    bpy.ops.object.mode_set(mode="EDIT")
    bones = rig.armature.data.edit_bones
    ground = bones.new("ground")
    ground.head, ground.tail = (0, 0, 0), (0, 0, 0.2)
    for name in ("hips", "thigh.L", "thigh.R"):
        bones[name].parent = ground
    bpy.ops.object.mode_set(mode="OBJECT")
    assert_exact(rig)
    reading = rig.read(action="walk")
    deltas = rig.differences(30)
    rig.bake(reading, deltas)
    # The hips have carried the legs along: pelvis and hip joints stayed together.
    points = [LANDMARK_INDEX[name] for name in ("pelvis", "hip_l")]
    before = reading.motion.positions[:, points]
    after = rig.seen(reading).motion.positions[:, points]
    from poise.controller.geometry.rotations import matrix_from_quaternion

    turned = matrix_from_quaternion(deltas[0][:, 0]) @ (before[:, 1] - before[:, 0])[..., None]
    assert np.allclose(after[:, 1] - after[:, 0], turned[..., 0], atol=1e-5)


def test_turns_are_spread_over_a_chain(rig):
    reading = rig.read()
    rotations, displacement = np.tile([1.0, 0, 0, 0], (30, len(SEGMENTS), 1)), np.zeros((30, 3))
    rotations[:, 1] = [np.cos(0.3), 0, 0, np.sin(0.3)]
    rotations[:, 2] = rotations[:, 1]
    rig.bake(reading, (rotations, displacement))
    after = rig.seen(reading)
    for bone, angle in (("hips", 0), ("spine", 0.3), ("chest", 0.6), ("neck", 0.6), ("head", 0.6)):
        index = reading.bone_index(bone)
        turn = after.bone_matrices[:, index, :3, :3] @ np.linalg.inv(
            reading.bone_matrices[:, index, :3, :3]
        )
        assert np.allclose(np.arctan2(turn[:, 1, 0], turn[:, 0, 0]), angle, atol=1e-5)


# The world around ------------------------------------------------------------------------------


def test_the_source_is_not_changed(rig):
    source = compat.assigned(rig.armature)
    before = snapshot(*source)
    result = rig.bake()
    assert result.action == "walk Poise" and compat.assigned(rig.armature)[0].name == "walk Poise"
    assert snapshot(*source) == before
    rig.bake(rig.read(action="walk"))
    assert snapshot(*source) == before


def test_only_the_carrying_bones_are_keyed(rig):
    source = {
        (curve.data_path, curve.array_index): [tuple(key.co) for key in curve.keyframe_points]
        for curve in rig.curves().values()
    }
    result = rig.bake()
    after = {k: [tuple(key.co) for key in c.keyframe_points] for k, c in rig.curves().items()}
    changed = {key[0] for key in after if after[key] != source.get(key)}
    carried = {b for s, c in rig.rig_map.bones.items() for b in c if s[:4] not in ("clav", "hand")}
    assert {reference.bone_of(path) for path in changed} == carried
    assert set(after) == set(source)
    widths = {"XYZ": 3, "ZYX": 3, "QUATERNION": 4, "AXIS_ANGLE": 4}
    bones = rig.armature.pose.bones
    assert result.curves == 3 + sum(widths[bones[bone].rotation_mode] for bone in carried)
    assert result.keys == 30 * result.curves


def test_a_bake_of_a_bake_s_source_replaces_it(rig):
    reading = rig.read()
    rig.bake(reading)
    first = snapshot(*compat.assigned(rig.armature))
    bake.restore(rig.scene, rig.armature)
    rig.bake(reading)
    assert [action.name for action in bpy.data.actions] == ["walk", "walk Poise"]
    assert snapshot(*compat.assigned(rig.armature)) == first
    # Also while the bake is what is shown.
    rig.bake(reading)
    assert [action.name for action in bpy.data.actions] == ["walk", "walk Poise"]
    assert snapshot(*compat.assigned(rig.armature)) == first


def test_a_second_bake_keeps_what_somebody_else_made(rig):
    reading = rig.read()
    rig.bake(reading)
    hand = rig.curves()[rig.armature.pose.bones["hand.L"].path_from_id("rotation_euler"), 0]
    hand.keyframe_points[3].co.y = 0.77
    holder = compat.channels(*compat.assigned(rig.armature), ensure=True)
    compat.new_curve(holder, '["mood"]', 0).keyframe_points.insert(1, 5)
    bake.restore(rig.scene, rig.armature)
    path = next(path for path, index in rig.curves() if '"clavicle.R"' in path)
    rig.curves()[path, 0].keyframe_points[5].co.y = 0.5
    rig.bake(reading)
    curves = rig.curves()
    path_of_hand = rig.armature.pose.bones["hand.L"].path_from_id("rotation_euler")
    assert curves[path_of_hand, 0].keyframe_points[3].co.y == pytest.approx(0.77)
    assert curves['["mood"]', 0].keyframe_points[0].co.y == 5
    assert curves[path, 0].keyframe_points[5].co.y == pytest.approx(0.5)


def test_a_bake_of_an_equally_named_action_is_another_one(rig):
    bpy.data.actions.new("walk Poise")
    assert rig.bake().action == "walk Poise.001"
    assert len(bpy.data.actions) == 3


def test_show_and_restore(rig):
    source, reading = compat.assigned(rig.armature), rig.read()
    with pytest.raises(BakeError, match="'biped' has no bake"):
        bake.show(rig.scene, rig.armature, "baked")
    rig.bake(reading)
    baked = compat.assigned(rig.armature)
    bake.show(rig.scene, rig.armature, "source")
    assert compat.assigned(rig.armature) == source
    bake.show(rig.scene, rig.armature, "baked")
    assert compat.assigned(rig.armature) == baked
    bake.restore(rig.scene, rig.armature)
    assert np.allclose(rig.seen(reading).bone_matrices, reading.bone_matrices, atol=1e-6)


def test_channels_that_the_source_does_not_key_are_put_back(rig):
    for key, curve in rig.curves().items():
        if '"neck"' in key[0]:
            compat.channels(*compat.assigned(rig.armature)).fcurves.remove(curve)
    neck = rig.armature.pose.bones["neck"]
    neck.rotation_mode = "XYZ"
    neck.rotation_euler = (0.1, 0.2, 0.3)
    rig.bake()
    assert not np.allclose(neck.rotation_euler, (0.1, 0.2, 0.3), atol=1e-3)
    bake.restore(rig.scene, rig.armature)
    assert np.allclose(neck.rotation_euler, (0.1, 0.2, 0.3), atol=1e-6)


def test_the_source_survives_saving(rig, tmp_path):
    rig.bake()
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot.blend"))
    armature, scene = bpy.data.objects["biped"], bpy.context.scene
    assert compat.assigned(armature)[0].name == "walk Poise"
    bake.restore(scene, armature)
    assert compat.assigned(armature)[0].name == "walk"


def test_nla_strips_as_the_source(rig):
    action, slot = compat.assigned(rig.armature)
    compat.assign(rig.armature, None)
    strip = rig.armature.animation_data.nla_tracks.new().strips.new("walk", 11, action)
    if compat.HAS_SLOTS:
        strip.action_slot = slot
    assert_exact(rig)
    assert compat.assigned(rig.armature)[0].name == "biped Poise"
    bake.restore(rig.scene, rig.armature)
    assert compat.assigned(rig.armature)[0] is None


def test_a_slot_in_a_chosen_action(rig):
    chosen, _ = compat.new_action("take 1")
    if not compat.HAS_SLOTS:
        with pytest.raises(BakeError, match=r"needs Blender 4.4"):
            rig.bake(action="take 1")
        return
    source, reading = compat.assigned(rig.armature), rig.read()
    before, slots = snapshot(*source), len(chosen.slots)
    deltas = rig.differences(30)
    for _ in range(2):
        result = rig.bake(reading, deltas, action="take 1")
        assert result.action == "take 1" and len(chosen.slots) == slots + 1
        assert compat.slot_name(compat.assigned(rig.armature)[1]) == result.slot
        assert rig.errors(reading, deltas)[0] < 1e-4
        bake.restore(rig.scene, rig.armature)
        assert compat.assigned(rig.armature) == source and snapshot(*source) == before


# The range --------------------------------------------------------------------------------------


def test_frames_outside_look_as_before(rig):
    whole = rig.read()
    part = rig.read(frames=(10, 20, 1))
    result = rig.bake(part)
    after = rig.seen(whole)
    outside = [i for i, frame in enumerate(whole.frames) if not 10 <= frame <= 20]
    assert result.frames == (10, 20)
    assert np.allclose(after.bone_matrices[outside], whole.bone_matrices[outside], atol=1e-5)
    assert not np.allclose(after.bone_matrices[12], whole.bone_matrices[12], atol=1e-2)


def test_the_bake_ends_where_it_fell(rig):
    reading = rig.read()
    rotations, displacement = rig.differences(30)
    result = rig.bake(reading, (rotations[:12], displacement[:12]))
    assert result.frames == (1, 12)
    after = rig.seen(reading)
    # And stays as it lies: back to the animation would be a jump.
    pelvis = reading.bone_names.index(rig.rig_map.bones["pelvis"][0])
    assert np.allclose(after.bone_matrices[12:, pelvis], after.bone_matrices[11, pelvis], atol=1e-5)
    assert not np.allclose(
        reading.bone_matrices[12:, pelvis], after.bone_matrices[11, pelvis], atol=1e-2
    )


def test_blending_in_and_out(rig):
    reading, deltas = rig.read(), rig.differences(30)
    rig.bake(reading, deltas, blend_in=8, blend_out=6)
    after = rig.seen(reading)
    for end in (0, 29):
        assert np.allclose(after.bone_matrices[end], reading.bone_matrices[end], atol=1e-5)
    pelvis = reading.bone_index("hips")
    moved = (after.bone_matrices - reading.bone_matrices)[:, pelvis, :3, 3]
    assert np.allclose(moved[10:20], deltas[1][10:20], atol=1e-5)
    assert np.allclose(moved[4], 0.5 * deltas[1][4], atol=1e-5)


# Keys -------------------------------------------------------------------------------------------


def test_keys_every_nth_frame(rig):
    rig.bake(key_every=7)
    path = rig.armature.pose.bones["hips"].path_from_id("location")
    assert [key.co.x for key in rig.curves()[path, 0].keyframe_points] == [1, 8, 15, 22, 29, 30]


def test_keys_where_the_source_has_them(rig):
    hips = rig.armature.pose.bones["hips"]
    for (path, _), curve in rig.curves().items():
        if '"hips"' in path:
            for index in reversed(range(30)):
                if index % 6:
                    curve.keyframe_points.remove(curve.keyframe_points[index])
    rig.bake(source_keys=True)
    keys = rig.curves()[hips.path_from_id("location"), 2].keyframe_points
    assert [key.co.x for key in keys] == [1, 7, 13, 19, 25, 30]


@pytest.mark.parametrize(
    ("interpolation", "tolerance", "share"),
    [("LINEAR", 5, 0.85), ("BEZIER", 5, 0.5), ("BEZIER", 0.5, 0.8), ("CONSTANT", 200, 0.7)],
)
def test_simplified_keys_stay_within_the_tolerance(rig, interpolation, tolerance, share):
    reading, deltas = rig.read(), rig.differences(30)
    dense = rig.bake(reading, deltas)
    result = rig.bake(reading, deltas, interpolation=interpolation, tolerance=tolerance)
    assert result.error_mm <= tolerance
    assert result.keys < share * dense.keys


def test_keys_do_not_jump(rig):
    reading = rig.read()
    rotations, displacement = np.tile([1.0, 0, 0, 0], (30, len(SEGMENTS), 1)), np.zeros((30, 3))
    angle = np.linspace(0, 12, 30)
    rotations[..., 0], rotations[..., 3] = np.cos(angle / 2)[:, None], np.sin(angle / 2)[:, None]
    rig.bake(reading, (rotations, displacement))
    for (path, _), curve in rig.curves().items():
        values = np.array([key.co.y for key in curve.keyframe_points])
        limit = 1.5 if "angle" in path or "euler" in path else 0.5
        assert np.abs(np.diff(values)).max() < limit, path


def test_root_motion_on_the_object(rig):
    reading, deltas = rig.read(), rig.differences(30)
    rig.bake(reading, deltas, root_motion="OBJECT")
    after = rig.seen(reading)
    pelvis = after.bone_matrices[:, reading.bone_index("hips"), :3, 3]
    objects = after.object_matrices[:, :3, 3]
    assert np.allclose(objects[:, :2] - objects[0, :2], pelvis[:, :2] - pelvis[0, :2], atol=1e-5)
    assert np.allclose(objects[:, 2], 0, atol=1e-6)


def test_root_motion_on_an_object_with_parents(rig):
    parent = bpy.data.objects.new("parent", None)
    rig.scene.collection.objects.link(parent)
    parent.rotation_euler, parent.scale, parent.location = (0.2, 0.1, 2), (2, 2, 2), (1, 2, 3)
    rig.armature.parent = parent
    rig.armature.matrix_parent_inverse = Matrix.Rotation(0.5, 4, "X")
    rig.armature.delta_location = (0.1, 0.2, 0.3)
    assert_exact(rig, root_motion="OBJECT")


# Constrained rigs -------------------------------------------------------------------------------


def test_a_bake_that_somebody_has_made_their_own_is_left_alone(rig):
    reading = rig.read()
    first = rig.bake(reading)
    assert first.left is None
    again = rig.bake(reading)
    assert (again.action, again.left) == (first.action, None)  # nobody touched it
    action = bpy.data.actions[first.action]
    slot = compat.assigned(rig.armature)[1]
    curve = compat.curves(action, slot)[0]
    curve.keyframe_points[5].co.y += 0.5
    by_hand = [tuple(point.co) for point in curve.keyframe_points]
    polished = rig.bake(reading)
    assert polished.left == first.action != polished.action
    assert [tuple(point.co) for point in compat.curves(action, slot)[0].keyframe_points] == by_hand
    renamed = bpy.data.actions[polished.action]
    renamed.name = "final"
    last = rig.bake(reading)
    assert last.left == "final" and bpy.data.actions["final"] == renamed
    assert last.action not in ("final", first.action)


def constrained(rig):
    """Constraints on a leg, the head, an arm and a hand."""
    target = bpy.data.objects.new("target", None)
    rig.scene.collection.objects.link(target)
    target.location = (0.2, 0.3, 0.2)
    bones = rig.armature.pose.bones
    leg = bones["shin.L"].constraints.new("IK")
    leg.target, leg.chain_count = target, 2
    head = bones["head"].constraints.new("COPY_ROTATION")
    head.target, head.influence = target, 0.6
    arm = bones["upper_arm.L"].constraints.new("LIMIT_ROTATION")
    arm.use_limit_x, arm.max_x, arm.owner_space = True, 0.05, "LOCAL"
    arm.driver_add("influence").driver.expression = "0.7"
    hand = bones["hand.R"].constraints.new("COPY_ROTATION")
    hand.target = target
    return leg, head, arm, hand


def test_constraints_are_switched_off_and_on_again(rig):
    leg, head, arm, hand = constrained(rig)
    assert_exact(rig)
    assert leg.influence == 0 and head.influence == 0 and arm.mute
    # Not in the way of the bake: it stays.
    assert hand.influence == 1 and not hand.mute
    bake.restore(rig.scene, rig.armature)
    assert leg.influence == 1 and head.influence == pytest.approx(0.6) and not arm.mute


def heads(rig):
    """(F, B, 3) where bones are, at frames on both sides of the clip too."""
    frames = np.arange(-5, 40, 5)
    return sampling.run(sampling.sampling(rig.scene, rig.armature, frames))[1][..., :3, 3]


def test_source_and_bake_are_right_by_whatever_means_they_are_assigned(rig, tmp_path):
    constrained(rig)
    name = rig.armature.name
    source = compat.assigned(rig.armature)
    for curve in compat.curves(*source):
        if curve.data_path.startswith('pose.bones["shin.R"]'):
            compat.channels(*source).fcurves.remove(curve)
    before = heads(rig)
    rig.bake()
    bake.restore(rig.scene, rig.armature)
    rig.bake()  # in place of the first
    baked, after = compat.assigned(rig.armature), heads(rig)
    assert np.abs(after - before).max() > 0.01
    names = [pair[0].name for pair in (source, baked)]
    path = tmp_path / "given.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    bpy.ops.wm.open_mainfile(filepath=str(path))
    rig.scene, rig.armature = bpy.context.scene, bpy.data.objects[name]
    actions = [bpy.data.actions[name] for name in names]
    for i in (0, 1, 0, 1):
        slot = compat.object_slot(actions[i], rig.armature)
        compat.assign(rig.armature, actions[i], slot)
        assert np.abs(heads(rig) - (before, after)[i]).max() < 1e-5
    (track,) = rig.armature.animation_data.nla_tracks
    assert track.name == source_values.TRACK and len(bpy.data.actions) == 3
    bake.remove(rig.scene, rig.armature, compat.assigned(rig.armature))
    assert np.abs(heads(rig) - before).max() < 1e-5
    assert not rig.armature.animation_data.nla_tracks and len(bpy.data.actions) == 1


def test_where_the_source_is_not_right_by_itself_that_is_said(rig):
    assert rig.bake().warnings == (), "everything is keyed"
    constrained(rig)
    rig.armature.animation_data.action_influence = 0.6
    before = heads(rig)
    (told,) = rig.bake(rig.read()).warnings
    assert "by Poise's buttons Source and Baked alone" in told and "influence" in told
    assert not rig.armature.animation_data.nla_tracks
    bake.restore(rig.scene, rig.armature)
    assert np.abs(heads(rig) - before).max() < 1e-5


def test_what_strips_of_others_animate_stays_theirs(rig):
    leg = constrained(rig)[0]
    path = leg.path_from_id("influence")
    action, slot = compat.new_action("influence")
    curve = compat.new_curve(compat.channels(action, slot, ensure=True), path, 0)
    curve.keyframe_points.insert(1, 0.0)
    curve.keyframe_points.insert(30, 1.0)
    source = compat.assigned(rig.armature)
    strip = rig.armature.animation_data.nla_tracks.new().strips.new("influence", 1, action)
    if compat.HAS_SLOTS:
        strip.action_slot = slot
    before = heads(rig)
    rig.bake()
    assert np.abs(heads(rig) - before).max() > 0.01
    compat.assign(rig.armature, *source)
    assert np.abs(heads(rig) - before).max() < 1e-5


def test_a_strip_is_right_where_constraints_are_switched_and_so_is_the_source(rig):
    constrained(rig)
    before = heads(rig)
    result = rig.bake()
    after = heads(rig)
    bake.restore(rig.scene, rig.armature)
    assert rig.bake(nla=True).action == result.action, "in place of the first"
    assert compat.assigned(rig.armature)[0] is None
    assert np.abs(heads(rig) - after).max() < 1e-6
    bake.restore(rig.scene, rig.armature)
    assert np.abs(heads(rig) - before).max() < 1e-6
    held, stash, baked = rig.armature.animation_data.nla_tracks
    assert held.name == source_values.TRACK
    compat.assign(rig.armature, None)
    for shown, muted, expected in ((baked, stash, after), (stash, baked, before)):
        shown.mute, muted.mute = False, True
        assert np.abs(heads(rig) - expected).max() < 1e-5, shown.name
    bake.remove(rig.scene, rig.armature, *bake_target.bakes_of(rig.armature))
    assert not rig.armature.animation_data.nla_tracks and len(bpy.data.actions) == 1


def test_a_rig_that_only_constraints_move_is_baked_to_a_strip(rig):
    twin = rig.armature.copy()
    rig.scene.collection.objects.link(twin)
    twin.animation_data_clear()
    for bone in twin.pose.bones:
        follow = bone.constraints.new("COPY_TRANSFORMS")
        follow.target, follow.subtarget = rig.armature, bone.name
    rig.armature = twin
    before = heads(rig)
    rig.bake(rig.read(frames=(1, 30, 1)), nla=True)
    (track,) = (one for one in twin.animation_data.nla_tracks if not source_values.is_own(one))
    assert not track.mute and compat.assigned(twin)[0] is None
    inside = slice(2, 7)  # of frames -5, 0, 5, ...: those of the clip
    assert np.abs(heads(rig) - before)[inside].max() > 0.01
    bake.restore(rig.scene, twin)
    assert track.mute and np.abs(heads(rig) - before).max() < 1e-6
    assert len(bake_target.bakes_of(twin)) == 1
    bake.remove(rig.scene, twin, *bake_target.bakes_of(twin))
    assert np.abs(heads(rig) - before).max() < 1e-6


def test_a_source_of_which_all_is_keyed_needs_nothing_more(rig):
    rig.bake()
    assert not rig.armature.animation_data.nla_tracks


def test_a_rig_that_only_constraints_move(rig):
    twin = rig.armature.copy()
    rig.scene.collection.objects.link(twin)
    twin.animation_data_clear()
    for bone in twin.pose.bones:
        follow = bone.constraints.new("COPY_TRANSFORMS")
        follow.target, follow.subtarget = rig.armature, bone.name
    rig.armature = twin
    assert_exact(rig, read={"frames": (1, 30, 1)})


# Bad input --------------------------------------------------------------------------------------


def assert_refused(rig, error, message, reading=None, deltas=None, **options):
    """The bake is refused with a message, and leaves no trace."""
    reading = reading or rig.read()
    rig.scene.frame_set(7)
    before = compat.assigned(rig.armature)
    pose = [bone.matrix_basis.copy() for bone in rig.armature.pose.bones]
    actions = [action.name for action in bpy.data.actions]
    keys = [snapshot(*before)]
    with pytest.raises(error, match=message):
        rig.bake(reading, deltas, **options)
    assert compat.assigned(rig.armature) == before and rig.scene.frame_current == 7
    assert [action.name for action in bpy.data.actions] == actions
    assert keys == [snapshot(*before)]
    for bone, matrix in zip(rig.armature.pose.bones, pose, strict=True):
        assert np.allclose(bone.matrix_basis, matrix, atol=1e-6, equal_nan=True)


def test_deltas_that_are_no_numbers(rig):
    rotations, displacement = rig.differences(30)
    wrong = rotations.copy()
    wrong[4, 7] = np.nan
    message = "simulated thigh_l is not a number at frame 5"
    assert_refused(rig, BakeError, message, deltas=(wrong, displacement))
    displacement[9, 1] = np.inf
    message = "simulated pelvis is not a number at frame 10"
    assert_refused(rig, BakeError, message, deltas=(rotations, displacement))


def test_too_many_samples(rig):
    assert_refused(rig, BakeError, "31 simulated samples", deltas=rig.differences(31))


@pytest.mark.parametrize(
    "options",
    [
        {"key_every": 0},
        {"key_every": 1.5},
        {"tolerance": -1},
        {"tolerance": float("nan")},
        {"blend_in": -2},
        {"blend_out": float("inf")},
        {"interpolation": "SMOOTH"},
        {"root_motion": "WORLD"},
    ],
)
def test_impossible_options(rig, options):
    assert_refused(rig, SettingsError, str(next(iter(options.values()))), **options)


def _add_loose(armature, name, head, tail, parent=None):
    bpy.context.view_layer.objects.active = armature
    bpy.ops.object.mode_set(mode="EDIT")
    bone = armature.data.edit_bones.new(name)
    bone.head, bone.tail = head, tail
    bone.parent = armature.data.edit_bones[parent] if parent else None
    bpy.ops.object.mode_set(mode="OBJECT")
    return armature.pose.bones[name]


def _world(rig, bone):
    """(F, 4, 4) where a bone is at all frames."""
    reading = rig.read()
    return reading.bone_matrices[:, reading.bone_index(bone)]


def test_clavicles_and_hands_that_hang_on_nothing_go_with_the_body(rig):
    """They are of the map, but carry nothing that is simulated."""
    armature, scene = rig.armature, bpy.context.scene
    pairs = (("clavicle.L", "chest"), ("hand.L", "forearm.L"), ("breast", "chest"))
    _add_loose(armature, "breast", (0.06, -0.1, 1.38), (0.06, -0.2, 1.38), parent="chest")
    before = {b: _world(rig, b) for b in ("upper_arm.L", *(bone for bone, _ in pairs))}
    bpy.ops.object.mode_set(mode="EDIT")
    for bone in before:
        armature.data.edit_bones[bone].parent = None
    bpy.ops.object.mode_set(mode="OBJECT")
    for bone in before:
        armature.pose.bones[bone].rotation_mode = "QUATERNION"
        for frame in range(1, 31):
            scene.frame_set(frame)
            armature.pose.bones[bone].matrix = Matrix(before[bone][frame - 1])
            for channel in ("location", "rotation_quaternion"):
                armature.pose.bones[bone].keyframe_insert(channel, frame=frame)
    reading = rig.read()
    assert loose_bones.find(armature, reading) == dict(pairs)
    deltas = rig.differences(len(reading.frames))
    beside = [np.linalg.inv(_world(rig, host)) @ _world(rig, bone) for bone, host in pairs]
    rig.bake(reading, deltas)
    assert rig.errors(reading, deltas)[1] < 0.05
    for (bone, host), was in zip(pairs, beside, strict=True):
        assert np.abs(np.linalg.inv(_world(rig, host)) @ _world(rig, bone) - was).max() < 1e-4, bone


def test_a_clavicle_that_hangs_on_nothing_takes_its_arm_along(rig):
    armature, scene = rig.armature, bpy.context.scene
    before = _world(rig, "clavicle.L")
    bpy.ops.object.mode_set(mode="EDIT")
    armature.data.edit_bones["clavicle.L"].parent = None
    bpy.ops.object.mode_set(mode="OBJECT")
    bone = armature.pose.bones["clavicle.L"]
    bone.rotation_mode = "QUATERNION"
    for frame in range(1, 31):
        scene.frame_set(frame)
        bone.matrix = Matrix(before[frame - 1])
        for channel in ("location", "rotation_quaternion"):
            bone.keyframe_insert(channel, frame=frame)
    reading = rig.read()
    assert loose_bones.find(armature, reading) == {"clavicle.L": "chest"}
    deltas = rig.differences(len(reading.frames))
    beside = np.linalg.inv(_world(rig, "chest")) @ _world(rig, "clavicle.L")
    rig.bake(reading, deltas)
    now = np.linalg.inv(_world(rig, "chest")) @ _world(rig, "clavicle.L")
    assert np.abs(now - beside).max() < 1e-4
    assert rig.errors(reading, deltas)[1] < 0.05


def test_bones_that_hang_on_nothing_go_with_the_body(rig):
    """Of a rig that was stripped to its deforming bones: a jaw and a finger by their keys alone."""
    armature, scene = rig.armature, bpy.context.scene
    jaw = _add_loose(armature, "jaw", (0, -0.05, 1.6), (0, -0.12, 1.56))
    nail = _add_loose(armature, "nail", (0.8, 0, 1.44), (0.9, 0, 1.44))
    _add_loose(armature, "tongue", (0, -0.05, 1.6), (0, -0.1, 1.6), parent="jaw")
    _add_loose(armature, "chair", (1, 1, 0.5), (1, 1, 0.9))
    ear = _add_loose(armature, "ear", (0.08, 0, 1.65), (0.12, 0, 1.65), parent="chair")
    _add_loose(armature, "cape", (0, 0.2, 1.3), (0, 0.3, 0.9)).constraints.new("COPY_LOCATION")
    bones = {jaw: "head", nail: "hand.L", ear: "head"}
    beside = {b: armature.pose.bones[c].matrix.inverted() @ b.matrix for b, c in bones.items()}
    for frame in range(1, 31):
        scene.frame_set(frame)
        for bone, carrier in bones.items():
            bone.matrix = armature.pose.bones[carrier].matrix @ beside[bone]
            bone.keyframe_insert("location", frame=frame)
            bone.keyframe_insert("rotation_quaternion", frame=frame)
    reading = rig.read()
    found = {"jaw": "head", "nail": "hand.L", "chair": None, "ear": "head"}
    assert loose_bones.find(armature, reading) == found, "an ear by a bone that stays"
    chair = _world(rig, "chair")
    pairs = (("jaw", "head"), ("tongue", "head"), ("nail", "hand.L"), ("ear", "head"))
    before = [np.linalg.inv(_world(rig, c)) @ _world(rig, b) for b, c in pairs]
    deltas = rig.differences(len(reading.frames))
    rig.bake(reading, deltas)
    assert rig.errors(reading, deltas)[1] < 0.05
    for (bone, carrier), was in zip(pairs, before, strict=True):
        now = np.linalg.inv(_world(rig, carrier)) @ _world(rig, bone)
        assert np.abs(now - was).max() < 1e-4, bone
    assert np.array_equal(_world(rig, "chair"), chair)


def test_locks_are_for_hands_alone(rig):
    for bone in rig.armature.pose.bones:
        bone.lock_rotation = bone.lock_location = bone.lock_scale = (True,) * 3
        bone.lock_rotations_4d = bone.lock_rotation_w = True
    assert rig.bake().error_mm < 0.01


def test_locked_curves(rig):
    path = rig.armature.pose.bones["hips"].path_from_id("location")
    rig.curves()[path, 1].lock = True
    assert_refused(rig, BakeError, "curve location of the bone 'hips' in 'walk' is locked")
    rig.curves()[path, 1].lock = False
    reading = rig.read()
    rig.bake(reading)
    rig.curves()[path, 1].lock = True
    assert_refused(rig, BakeError, "in 'walk Poise' is locked", reading=reading)


def test_driven_channels(rig):
    shin = rig.armature.pose.bones["shin.L"]
    shin.driver_add("rotation_euler", 0)
    shin.rotation_mode = "XYZ"
    assert_refused(rig, BakeError, "has a driver")
    rig_map = rig.read().rig_map
    with pytest.raises(BakeError, match=r'\["shin.L"\].rotation_euler of .* has a driver'):
        bake_target.check_bones(rig.armature, rig_map)
    shin.driver_remove("rotation_euler", 0)
    rig.armature.pose.bones["hand.L"].driver_add("rotation_euler", 0)  # no bake keys that
    bake_target.check_bones(rig.armature, rig_map)
    # Of a limb's chain the first bone is keyed, of a spine each one.
    twisted = dict(rig_map.bones, shin_l=("shin.L", "hand.L"))
    bake_target.check_bones(rig.armature, replace(rig_map, bones=twisted))
    twisted = dict(rig_map.bones, shin_l=("hand.L", "shin.L"))
    with pytest.raises(BakeError, match=r'\["hand.L"\].rotation_euler of .* has a driver'):
        bake_target.check_bones(rig.armature, replace(rig_map, bones=twisted))
    controls = {slot: (bones[0],) for slot, bones in rig_map.bones.items()}
    with pytest.raises(BakeError, match=r'\["hand.L"\].rotation_euler of .* has a driver'):
        bake_target.check_bones(rig.armature, replace(rig_map, controls=controls))
    rig.armature.pose.bones["hips"].driver_add("location", 0)
    with pytest.raises(BakeError, match=r'\["hips"\].location of .* has a driver'):
        bake_target.check_bones(rig.armature, rig_map)


@pytest.mark.parametrize("without", ["pelvis", "thigh_l", "head"])
def test_parts_without_controls(rig, without):
    """It was found by the bake alone, after all was simulated."""
    rig_map = rig.read().rig_map
    controls = {slot: bones[:1] for slot, bones in rig_map.bones.items() if slot != without}
    mapped = replace(rig_map, controls=controls)
    with pytest.raises(BakeError, match=f"no control for the {label(without)}: correct the map"):
        bake_target.check_bones(rig.armature, mapped)


def test_a_knee_on_ik_is_the_thighs_control(rig):
    rig_map = rig.read().rig_map
    controls = {slot: bones[:1] for slot, bones in rig_map.bones.items() if slot != "shin_l"}
    knee = {"thigh_l": controls["thigh_l"]}
    bake_target.check_bones(rig.armature, replace(rig_map, controls=controls, ik_controls=knee))
    with pytest.raises(BakeError, match="no control for the left shin"):
        bake_target.check_bones(rig.armature, replace(rig_map, controls=controls))


def test_a_rig_that_does_not_follow_its_controls_is_told(rig):
    """As one of a map that names the wrong ones: what was baked was off, and said nothing."""
    controls = {slot: bones[-1:] for slot, bones in rig.rig_map.bones.items()}
    rig.rig_map = replace(rig.rig_map, controls=controls)
    assert rig.bake().warnings == ()
    rig.rig_map = replace(rig.rig_map, controls=controls | {"upper_arm_l": ("hand.R",)})
    result = rig.bake()
    assert result.error_mm > 15
    found = re.search(r"does not go where .*: '(.*)' is off by up to (\d+) mm", result.warnings[0])
    assert found[1] in ("upper_arm.L", "forearm.L", "hand.L")
    assert int(found[2]) == round(result.error_mm)
    assert rig.bake(tolerance=50.0).warnings, "however few keys are asked for"


def test_what_cannot_be_chosen_is_told_before_anything_is_simulated(rig):
    keys = BakeOptions(action="nope")
    shot = Shot(rig.scene, ShotOptions(armature=rig.armature.name, keys=keys))
    with pytest.raises(BakeError, match=r"There is no action named 'nope'|needs Blender 4\.4"):
        sampling.run(shot.read())


def test_blended_and_solo_actions(rig):
    animation = rig.armature.animation_data
    track = animation.nla_tracks.new()
    track.strips.new("strip", 200, bpy.data.actions.new("other"))
    animation.action_influence = 0.5
    assert_refused(rig, BakeError, "blended with its NLA tracks")
    animation.action_influence = 1
    track.is_solo = True
    assert_refused(rig, BakeError, "solo")


def test_an_action_that_cannot_be_chosen(rig):
    if compat.HAS_SLOTS:
        assert_refused(rig, BakeError, "no action named 'nope'", action="nope")
        assert_refused(rig, BakeError, "'walk' is the source", action="walk")


def test_a_source_that_is_gone(rig):
    reading = rig.read()
    compat.assigned(rig.armature)[0].name = "run"
    assert_refused(rig, BakeError, "'walk' is gone", reading=reading)


def test_a_bone_that_is_gone_or_renamed_is_told_by_its_name(rig):
    reading = rig.read()
    rig.armature.data.bones["hand.L"].name = "fist.L"
    assert_refused(rig, BakeError, "'hand.L' of 'biped' was deleted or renamed", reading=reading)
    rig.armature.data.bones["fist.L"].name = "hand.L"
    rig.bake(reading)


def test_bones_that_were_added_since_are_not_in_the_way(rig):
    """Also where the animation goes on beside what was simulated."""
    reading = rig.read(frames=(6, 10, 1))
    bpy.context.view_layer.objects.active = rig.armature
    bpy.ops.object.mode_set(mode="EDIT")
    for name, parent in (("added", None), ("tip.L", rig.armature.data.edit_bones["hand.L"])):
        bone = rig.armature.data.edit_bones.new(name)
        bone.parent, bone.head, bone.tail = parent, (0, 0, 1), (0, 0, 1.2)
    bpy.ops.object.mode_set(mode="OBJECT")
    assert rig.bake(reading).error_mm < 0.01


def test_a_failure_in_the_middle_leaves_no_trace(rig, monkeypatch):
    def fail(*_):
        raise BakeError("in the middle")

    reading = rig.read()
    monkeypatch.setattr(bake.bake_target.Target, "finish", fail)
    assert_refused(rig, BakeError, "in the middle", reading=reading)
    if compat.HAS_SLOTS:
        chosen, _ = compat.new_action("take 1")
        slots = len(chosen.slots)
        assert_refused(rig, BakeError, "in the middle", reading=reading, action="take 1")
        assert len(chosen.slots) == slots


def test_linked_and_overridden_armatures(rig, tmp_path):
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "library.blend"))
    bpy.ops.wm.read_factory_settings(use_empty=True)
    rig.scene = bpy.context.scene
    with bpy.data.libraries.load(str(tmp_path / "library.blend"), link=True) as (_, target):
        target.objects = ["biped"]
    rig.armature = target.objects[0]
    rig.scene.collection.objects.link(rig.armature)
    reading = rig.read()
    assert reading.library is not None and len(reading.frames) == 30
    with pytest.raises(BakeError, match="is linked from another file"):
        rig.bake(reading)
    with pytest.raises(PoiseError, match="no action named"):
        rig.read(action="local")
    rig.armature = rig.armature.override_create(remap_local_usages=True)
    deltas = rig.differences(30)
    result = rig.bake(rig.read(), deltas)
    assert rig.errors(reading, deltas)[0] < 1e-4
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "shot.blend"))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot.blend"))
    override = next(one for one in bpy.data.objects if one.override_library)
    assert compat.assigned(override)[0].name == result.action


# Legs that stretch ------------------------------------------------------------------------------


@pytest.fixture
def stretched(rig):
    """The rig with a left leg that IK stretches to a target out of its reach."""
    target = bpy.data.objects.new("target", None)
    rig.scene.collection.objects.link(target)
    for frame, height in ((1, 0.02), (15, -0.25), (30, 0.02)):
        target.location = 0.1, 0, height
        target.keyframe_insert("location", frame=frame)
    bones = rig.armature.pose.bones
    for name in ("thigh.L", "shin.L"):
        bones[name].ik_stretch = 0.1
    ik = bones["shin.L"].constraints.new("IK")
    ik.target, ik.chain_count, ik.use_stretch = target, 2, True
    return rig


def leg(motion):
    """(T, 2) lengths of the left thigh and shin [m]."""
    joints = motion.positions[:, [LANDMARK_INDEX[f"{name}_l"] for name in ("hip", "knee", "ankle")]]
    return np.linalg.norm(np.diff(joints, axis=1), axis=-1)


def nothing_for(reading):
    """The differences of a simulation that does as the animation does."""
    count = len(reading.frames)
    return np.tile([1.0, 0, 0, 0], (count, len(SEGMENTS), 1)), np.zeros((count, 3))


def test_legs_that_stretch_are_baked_as_long_as_the_body_has_them(stretched):
    """Feet would otherwise be as far from the simulated ones as legs are too long."""
    reading = stretched.read()
    before = leg(reading.motion)
    assert np.ptp(before, axis=0).min() > 0.01
    found = leg_stretch.find(stretched.armature, reading)
    assert found == ["thigh_l", "shin_l", "foot_l", "toe_l"]
    rigid, nothing = dict.fromkeys(found, 1.0), nothing_for(reading)
    result = bake.bake(stretched.scene, reading, *nothing, stretched=rigid)
    after = leg(stretched.seen(reading).motion)
    assert np.allclose(after, np.median(before, axis=0), atol=1e-4) and result.error_mm < 0.05


def test_legs_that_stretch_a_little_are_seen_and_what_is_rounding_is_not(rig):
    """Half a percent of a leg are 4 mm by which a planted foot bobs; single precision is no
    stretching."""
    for bone, size, found in (("shin.L", 1.005, 4), ("shin.L", 1 + 2e-6, 0)):
        reading = rig.read()
        matrices = reading.bone_matrices.copy()
        matrices[10:20, reading.bone_index(bone), :3, 1] *= size
        changed = replace(reading, bone_matrices=matrices)
        segments = leg_stretch.find(rig.armature, changed)
        assert bool(segments) == bool(found), size
    assert leg_stretch.find(rig.armature, rig.read()) == []


def test_legs_that_keys_stretch_stay_so(rig):
    """That is how they are to look."""
    for frame, length in ((1, 1.0), (15, 1.2), (30, 1.0)):
        rig.armature.pose.bones["thigh.L"].scale = 1, length, 1
        rig.armature.pose.bones["thigh.L"].keyframe_insert("scale", frame=frame)
    reading = rig.read()
    assert np.ptp(leg(reading.motion), axis=0).max() > 0.01
    assert leg_stretch.find(rig.armature, reading) == []


def test_legs_of_an_armature_that_grows_do_not_stretch(rig):
    """Nor do those that hang from nothing."""
    bpy.ops.object.mode_set(mode="EDIT")
    for side in "LR":
        rig.armature.data.edit_bones[f"thigh.{side}"].parent = None
    bpy.ops.object.mode_set(mode="OBJECT")
    for frame, size in ((1, 1.0), (30, 1.2)):
        rig.armature.scale = (size,) * 3
        rig.armature.keyframe_insert("scale", frame=frame)
    assert leg_stretch.find(rig.armature, rig.read()) == []


def test_what_is_judged_before_a_bake_has_such_legs_too(stretched):
    options = ShotOptions(armature=stretched.armature.name, frames=(10, 30, 1))
    shot = Shot(stretched.scene, options)
    for part in (shot.read(), shot.simulate()):
        sampling.run(part)
    performed, reading = shot.performed(), shot.reading
    assert np.ptp(leg(reading.motion)[: len(performed)], axis=0).min() > 0.01
    shot.bake()
    baked = stretched.read(
        frames=(reading.frames[0], reading.frames[len(performed) - 1], 1),
        metres_per_unit=reading.metres_per_unit,
    )
    apart = np.linalg.norm(baked.motion.positions - performed.positions, axis=-1)
    assert np.nanmax(apart) < 1e-4

# SPDX-License-Identifier: GPL-3.0-or-later
"""Exactness of the bake on captured clips and on a generated Rigify rig."""

import bpy
import numpy as np
import pytest
from helpers.rigify import animated_rigify, generated_rigify
from helpers.standins import captured

from poise.addon.baking import bake, bake_solver
from poise.addon.blender import compat, evaluation, keys
from poise.addon.rigs import bake_target, loose_bones, reference, rig, sampling
from poise.addon.scene.pushes import PushOptions
from poise.addon.scene.weights import WeightOptions
from poise.addon.shots import outdated
from poise.addon.shots.clean_up import CleanShot, CleanShotOptions
from poise.addon.shots.shot import Shot, ShotOptions
from poise.controller.geometry.rotations import multiply, rotation_vector
from poise.controller.geometry.skeleton import FEET, LANDMARK_INDEX, SEGMENTS, SIDES, TOES

FK = bake.BakeOptions(legs="FK")
CONJUGATE = np.array([1, -1, -1, -1])
CLIPS = (
    "stand arm wave squat bow hips_twist single knee_raises kick side_kick dance jumping_jacks "
    "jog_in_place jump walk walk_slow walk_fast walk_zombie walk_backward run run_leap"
).split()
QUICK = ("stand", "wave", "kick", "jump", "walk_fast", "run")


def now(armature, reading, first, last):
    """The Motion of an armature that was read before, as it is shown now."""
    return reference.read(
        bpy.context.scene,
        armature,
        rig_map=reading.rig_map,
        frames=(first, last, 1),
        metres_per_unit=reading.metres_per_unit,
    ).motion


def errors(armature, reading, deltas):
    """(largest joint distance [mm], rotation [rad], pelvis [mm]) of what is animated now. Toes that
    the rig does not have turn with their feet."""
    after = now(armature, reading, reading.frames[0], reading.frames[-1])
    before = reading.motion
    wanted = multiply(deltas[0], before.rotations)
    for toe, foot in zip(TOES, FEET, strict=True):
        if SEGMENTS[toe] not in reading.rig_map.bones:
            wanted[:, toe] = wanted[:, foot]
    turned = np.linalg.norm(rotation_vector(multiply(wanted * CONJUGATE, after.rotations)), axis=-1)
    moved = after.positions - before.positions
    pelvis = np.abs(moved[:, LANDMARK_INDEX["pelvis"]] - deltas[1]).max()
    return 1000 * np.nanmax(np.linalg.norm(moved, axis=-1)), turned.max(), 1000 * pelvis


@pytest.mark.parametrize("name", [*QUICK, *captured(*CLIPS)])
def test_clips_of_all_skeletons(import_clip, no_differences, differences, name):
    scene, armature = bpy.context.scene, import_clip(name)
    reading = reference.read(scene, armature)
    nothing, deltas = no_differences(len(reading.frames)), differences(len(reading.frames))
    bake.bake(scene, reading, *nothing)
    assert errors(armature, reading, nothing)[0] < 0.05
    bake.restore(scene, armature)
    bake.bake(scene, reading, *deltas)
    _, turned, pelvis = errors(armature, reading, deltas)
    assert turned < 1e-4 and pelvis < 0.05


def test_a_clip_in_its_own_units(import_clip, no_differences):
    scene, armature = bpy.context.scene, import_clip("run", global_scale=1.0)
    reading = reference.read(scene, armature)
    assert reading.metres_per_unit == 0.01
    nothing = no_differences(len(reading.frames))
    assert bake.bake(scene, reading, *nothing).error_mm < 0.05
    assert errors(armature, reading, nothing)[0] < 0.05


@pytest.fixture
def rigify(blender):
    """rigify(ik) -> a generated Rigify rig, animated by its FK or its IK controls."""
    import addon_utils

    addon_utils.enable("rigify", default_set=True)
    yield animated_rigify
    addon_utils.disable("rigify", default_set=True)


@pytest.mark.slow
@pytest.mark.parametrize("ik", [False, True])
def test_a_generated_rigify_rig(rigify, no_differences, differences, ik):
    scene, armature = bpy.context.scene, rigify(ik)
    reading = reference.read(scene, armature)
    assert reading.rig_map.controls
    source = outdated.in_full({}, armature)
    nothing = no_differences(len(reading.frames))
    result = bake.bake(scene, reading, *nothing, FK)
    assert errors(armature, reading, nothing)[0] < 0.5 and result.error_mm < 0.5
    switched = armature.pose.bones["thigh_parent.L"]
    assert switched["IK_FK"] == 1
    assert outdated.source_changed(source, armature) == []
    bake.restore(scene, armature)
    assert outdated.source_changed(source, armature) == []
    assert switched["IK_FK"] == (0 if ik else 1)
    assert errors(armature, reading, nothing)[0] < 0.01
    # By hand, as in the Action Editor.
    source, baked = compat.assigned(armature), bake_target.current(armature)
    compat.assign(armature, *baked)
    scene.frame_set(5)
    assert switched["IK_FK"] == 1
    compat.assign(armature, *source)
    assert errors(armature, reading, nothing)[0] < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("legs", ["IK", "FK"])
@pytest.mark.parametrize("ik", [False, True])
def test_a_strip_on_a_generated_rigify_rig(rigify, differences, ik, legs):
    scene, armature = bpy.context.scene, rigify(ik)
    reading = reference.read(scene, armature)
    before = heads(scene, armature)
    bake.bake(scene, reading, *differences(len(reading.frames)), bake.BakeOptions(legs=legs))
    after = heads(scene, armature)
    assert np.abs(after - before).max() > 0.01
    bake.restore(scene, armature)
    options = bake.BakeOptions(legs=legs, nla=True)
    bake.bake(scene, reading, *differences(len(reading.frames)), options)
    assert compat.assigned(armature)[0] is None
    assert np.abs(heads(scene, armature) - after).max() < 1e-5
    bake.restore(scene, armature)
    assert np.abs(heads(scene, armature) - before).max() < 1e-5


def heads(scene, armature):
    """(F, B, 3) where bones are, at frames on both sides of the clip too."""
    frames = np.arange(-5, 46, 5)
    return sampling.run(sampling.sampling(scene, armature, frames))[1][..., :3, 3]


@pytest.mark.slow
@pytest.mark.parametrize("ik", [False, True])
def test_differences_on_a_generated_rigify_rig(rigify, differences, ik):
    scene, armature = bpy.context.scene, rigify(ik)
    reading = reference.read(scene, armature, rig_map=rig.find(armature))
    deltas = differences(len(reading.frames))
    bake.bake(scene, reading, *deltas, FK)
    _, turned, pelvis = errors(armature, reading, deltas)
    assert turned < 1e-4 and pelvis < 0.05


@pytest.mark.slow
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("ik", [False, True])
def test_legs_of_a_generated_rigify_rig_on_ik(rigify, ik):
    """Whatever moved them before: its feet stand where the body's do, knees turn as its do."""
    scene, armature = bpy.context.scene, generated_rigify()
    bones, moves = armature.pose.bones, "foot_ik.L" if ik else "thigh_fk.L"
    for side in SIDES:
        bones[f"thigh_parent.{side.upper()}"]["IK_FK"] = float(not ik)
    bones[moves].rotation_mode = bones["torso"].rotation_mode = "XYZ"
    for frame, height in ((1, -0.01), (20, -0.06), (40, -0.01)):
        bones["torso"].location = 0, 0, height
        bones["torso"].rotation_euler = 0, 0, 2 * height
        bones["torso"].keyframe_insert("location", frame=frame)
        bones["torso"].keyframe_insert("rotation_euler", frame=frame)
        bones[moves].rotation_euler = 0, 0, 3 * height
        bones[moves].keyframe_insert("rotation_euler", frame=frame)
    shot = Shot(scene, ShotOptions(armature=armature.name))
    for part in (shot.read(), shot.simulate()):
        sampling.run(part)
    shot.bake()
    for side in SIDES:
        assert bones[f"thigh_parent.{side.upper()}"]["IK_FK"] == 0
    performed = shot.performed()
    frames = shot.reading.frames
    baked = now(armature, shot.reading, frames[0], frames[len(performed) - 1])
    feet = [
        LANDMARK_INDEX[f"{name}_{side}"]
        for name in ("hip", "ankle", "ball", "toe")
        for side in SIDES
    ]
    apart = np.linalg.norm((baked.positions - performed.positions)[:, feet], axis=-1)
    assert apart.max() < 5e-4
    turns = rotation_vector(multiply(performed.rotations * CONJUGATE, baked.rotations))
    assert np.linalg.norm(turns[:, FEET], axis=-1).max() < 1e-3
    knees = [SEGMENTS.index(f"thigh_{side}") for side in SIDES]
    assert np.abs(turns[:, knees, 2]).max() < 0.02, "knees point elsewhere"


@pytest.mark.slow
def test_how_controls_act_is_found_the_same_in_slices(rigify):
    """The window goes to the user's frame between two slices."""
    scene, armature = bpy.context.scene, rigify(False)
    pairs = {f"{bone}_fk.L": f"ORG-{bone}.L" for bone in ("upper_arm", "forearm", "thigh")}
    bones = tuple(pairs.values())
    whole, sliced = (bake_solver._Responses(armature, pairs, bones, ()) for _ in "12")
    scene.frame_set(31)
    before = [armature.pose.bones[name].matrix_basis.copy() for name in pairs]
    with evaluation.evaluating(scene, armature) as evaluated:
        sampling.run(evaluated.going_aside())
        sampling.run(whole.probe(evaluated, 31.0))
        scene.frame_set(3)
        for _ in sliced.probe(evaluated, 31.0):
            scene.frame_set(3)
    for control in pairs:
        assert sliced.inverse[control] == pytest.approx(whole.inverse[control], abs=1e-3)
    assert sliced.share == pytest.approx(whole.share, abs=1e-3)
    assert sliced.follow == pytest.approx(whole.follow, abs=1e-3)
    assert sliced.stretch == pytest.approx(whole.stretch, abs=1e-3)
    scene.frame_set(31)
    assert [armature.pose.bones[name].matrix_basis for name in pairs] == before


@pytest.mark.slow
def test_toes_of_a_generated_rigify_rig_are_the_simulated_ones(rigify):
    """A body that bends its knees; its toes are read from their IK and baked to their FK."""
    armature = generated_rigify()
    bpy.context.scene.render.fps = 30
    for frame, height in ((1, 0.0), (20, 0.0), (40, -0.06), (60, 0.0)):
        for name, channel, value in (
            ("torso", "location", (0.0, 0.0, height)),
            *((f"toe_ik.{s}", "rotation_euler", (5 * height, 0.0, 0.0)) for s in "LR"),
        ):
            bone = armature.pose.bones.get(name)
            if bone is not None:
                if channel == "rotation_euler":
                    bone.rotation_mode = "XYZ"
                setattr(bone, channel, value)
                bone.keyframe_insert(channel, frame=frame)
    shot = Shot(bpy.context.scene, ShotOptions(armature=armature.name))
    for part in (shot.read(), shot.simulate()):
        for _ in part:
            pass
    shot.bake()
    wanted, reading = shot.performed(), shot.reading
    after = now(armature, reading, reading.frames[0], reading.frames[len(wanted) - 1])
    points = [LANDMARK_INDEX[f"{name}_{side}"] for name in ("ball", "toe") for side in SIDES]
    apart = 1000 * np.linalg.norm((after.positions - wanted.positions)[:, points], axis=-1)
    assert apart.max() < 0.5
    moved = np.linalg.norm(
        rotation_vector(shot.recording.rotation_deltas())[:, TOES]
        - rotation_vector(shot.recording.rotation_deltas())[:, FEET],
        axis=-1,
    )
    assert moved.max() > 0.01, "toes bend otherwise than in the animation"


@pytest.mark.slow
@pytest.mark.parametrize("legs", ["IK", "FK"])
def test_legs_that_stretch_step_home_on_a_generated_rigify_rig(rigify, registered, legs):
    """Its feet stand in the bake until they are lifted, and then it is the animation, also in the
    lengths of legs."""
    keys = [(frame, 0.05 * (i % 2)) for i, frame in enumerate(range(1, 132, 10))]
    scene, armature = _bobbing_rigify(keys)
    options = ShotOptions(
        armature=armature.name,
        keys=bake.BakeOptions(legs=legs),
        weights=WeightOptions(hand_back=(55, 14)),
        pushes=PushOptions(((16, 0.2, (90.0, 200.0, 0.0), "trunk"),)),
    )
    shot = Shot(scene, options)
    for part in (shot.read(), shot.simulate()):
        sampling.run(part)
    assert shot.recording.success and len(shot.stretched) == 4
    shot.bake()
    after = now(armature, shot.reading, 1, 131)
    balls = [LANDMARK_INDEX[f"ball_{side}"] for side in SIDES]
    moved = (after.positions - shot.motion.positions)[:, balls]
    assert np.linalg.norm(moved[54], axis=1).max() > 0.2
    assert np.ptp(moved[54:66, 0], axis=0).max() < 2e-3, "it stands"
    assert np.linalg.norm(moved[80:], axis=2).max() < 5e-4


@pytest.mark.slow
def test_feet_of_legs_that_stretch_stand_before_a_fall_too(rigify):
    """As in a result that stands: their length is that of all frames, not of those before it."""
    scene, armature = _bobbing_rigify(((1, 0.0), (20, -0.1), (35, 0.08), (70, 0.08)))
    pushed = PushOptions(((15, 0.2, (900.0, 0.0, 0.0), "trunk"),))
    shot = Shot(scene, ShotOptions(armature=armature.name, pushes=pushed))
    for part in (shot.read(), shot.simulate()):
        sampling.run(part)
    assert shot.fell_frame < 35, "before most of it is stretched"
    shot.bake()
    after = now(armature, shot.reading, 1, 12)
    balls = [LANDMARK_INDEX[f"ball_{side}"] for side in SIDES]
    apart = after.positions[:12, balls, 2] - shot.motion.positions[:12, balls, 2]
    assert np.abs(apart).max() < 2e-3


def _bobbing_rigify(heights):
    """(scene, Rigify rig) whose torso is at heights at frames."""
    scene, armature = bpy.context.scene, generated_rigify()
    scene.render.fps = 30
    torso = armature.pose.bones["torso"]
    for frame, height in heights:
        torso.location = 0, 0, height
        torso.keyframe_insert("location", frame=frame)
    return scene, armature


@pytest.mark.slow
def test_a_generated_rigify_rig_that_was_stripped_to_its_deforming_bones(rigify, differences):
    """As it is exported to games: face, shoulders, breasts and sides of the pelvis hang on nothing,
    and stayed behind by centimetres."""
    scene, armature = bpy.context.scene, generated_rigify()
    bones = armature.pose.bones
    for name in ("torso", "chest", "head"):
        bones[name].rotation_mode = "XYZ"
    for frame, height in ((1, -0.01), (10, -0.08), (20, -0.02)):
        bones["torso"].location = height, 0, height
        bones["torso"].keyframe_insert("location", frame=frame)
        for name, turn in (("torso", (0, 0, 3)), ("chest", (4, 2, 0)), ("head", (4, 2, 0))):
            bones[name].rotation_euler = [height * angle for angle in turn]
            bones[name].keyframe_insert("rotation_euler", frame=frame)
    _strip(armature, range(1, 21))
    reading = reference.read(scene, armature)
    assert reading.rig_map.name == "Rigify deform bones"
    found = loose_bones.find(armature, reading)
    for bone, carrier in (
        ("DEF-jaw", "DEF-spine.006"),
        ("DEF-pelvis.L", "DEF-spine"),
        ("DEF-shoulder.L", "DEF-spine.003"),
        ("DEF-breast.R", "DEF-spine.003"),
    ):
        assert found[bone] == carrier
    assert None not in found.values()
    result = bake.bake(scene, reading, *differences(len(reading.frames)))
    assert result.error_mm < 0.1
    after = reference.read(scene, armature, rig_map=reading.rig_map, frames=(1, 20, 1))
    for bone, carrier in found.items():
        was, now = (
            np.linalg.inv(read.bone_matrices[:, read.bone_index(carrier)])
            @ read.bone_matrices[:, read.bone_index(bone)]
            for read in (reading, after)
        )
        assert np.abs(now - was).max() < 1e-4, bone


def _strip(armature, frames):
    """Leave the deforming bones alone, with the poses that they have for keys."""
    poses, scene = {}, bpy.context.scene
    names = [bone.name for bone in armature.data.bones if bone.use_deform]
    for frame in frames:
        scene.frame_set(frame)
        poses[frame] = {name: armature.pose.bones[name].matrix.copy() for name in names}
    armature.animation_data_clear()
    armature.data.animation_data_clear()
    for bone in armature.pose.bones:
        for constraint in list(bone.constraints):
            bone.constraints.remove(constraint)
    bpy.context.view_layer.objects.active = armature
    bpy.ops.object.mode_set(mode="EDIT")
    for bone in list(armature.data.edit_bones):
        if bone.name not in names:
            armature.data.edit_bones.remove(bone)
    bpy.ops.object.mode_set(mode="OBJECT")
    for name in names:
        bone, posed = armature.data.bones[name], armature.pose.bones[name]
        posed.rotation_mode = "QUATERNION"
        for frame in frames:
            wanted, rest = poses[frame][name], bone.matrix_local
            if bone.parent:
                wanted = poses[frame][bone.parent.name].inverted() @ wanted
                rest = bone.parent.matrix_local.inverted() @ rest
            posed.matrix_basis = rest.inverted() @ wanted
            posed.scale = 1, 1, 1
            posed.keyframe_insert("location", frame=frame)
            posed.keyframe_insert("rotation_quaternion", frame=frame)


@pytest.mark.slow
@pytest.mark.parametrize(
    "heights",
    [
        ((1, 0.0), (20, 0.05), (40, -0.05), (60, 0.0)),
        ((1, 0.05), (40, 0.06), (50, -0.2), (60, -0.2)),
        ((1, 0.1), (35, 0.1), (45, -0.12), (60, -0.12)),
        ((1, 0.08), (20, 0.0), (40, -0.02), (60, 0.08)),
    ],
)
def test_legs_that_stretch_on_a_generated_rigify_rig(rigify, heights):
    """The torso rises out of reach of planted feet, now and then or most of the time: the bake's
    stand where the body's do, and that where the animation's are."""
    scene, armature = _bobbing_rigify(heights)
    shot = Shot(scene, ShotOptions(armature=armature.name, keys=FK))
    for part in (shot.read(), shot.simulate()):
        sampling.run(part)
    shot.bake()
    after = now(armature, shot.reading, 1, 60)
    source, baked = shot.motion.positions, after.positions
    for side in SIDES:
        hip, knee, ankle, ball = (
            LANDMARK_INDEX[f"{name}_{side}"] for name in ("hip", "knee", "ankle", "ball")
        )
        assert np.ptp(_apart(source, hip, knee)) > 0.01
        assert np.ptp(_apart(baked, hip, knee)) < 1e-4
        assert np.ptp(_apart(baked, knee, ankle)) < 1e-4
        assert np.ptp(baked[:, ball, 2]) < 5e-4
        assert np.abs(baked[:, ball, 2] - source[:, ball, 2]).max() < 2e-3
    assert shot.verdict.keeper


def _apart(positions, one, other):
    """(T,) distance between two landmarks [m]."""
    return np.linalg.norm(positions[:, one] - positions[:, other], axis=-1)


@pytest.mark.slow
@pytest.mark.parametrize("ik", [False, True])
def test_a_clean_up_on_a_generated_rigify_rig(rigify, ik):
    """Toes included: they have a control."""
    scene, armature = bpy.context.scene, rigify(ik)
    shot = CleanShot(scene, CleanShotOptions(armature=armature.name, keys=FK))
    sampling.run(shot.read())
    cleaned = shot.solve()
    assert all(np.linalg.norm(leg.toe) > 0.9 for leg in cleaned.body.legs.values())
    before, after = cleaned.slip()
    assert after < 0.05 * before
    assert sampling.run(shot.baking()).error_mm < 0.5
    wanted = cleaned.motion(shot.reading.motion).positions
    read = reference.read(
        scene,
        armature,
        rig_map=shot.reading.rig_map,
        metres_per_unit=shot.reading.metres_per_unit,
    ).motion.positions
    assert np.nanmax(np.linalg.norm(read - wanted, axis=-1)) < 5e-4


def test_what_is_still_needs_no_keys_within(blender):
    frames = np.arange(1.0, 21)
    moving = np.sin(frames[:, None] * (0.3, 0.5, 0.7))
    moving[5:12] = moving[5]
    moving[17:] = moving[17]
    track = keys.Track("location", "Object Transforms", frames, moving, "LOCATION")
    few = keys.distinct(track, "LINEAR")
    assert few.tolist() == [0, 1, 2, 3, 4, 5, 11, 12, 13, 14, 15, 16, 17, 19]
    curves = []
    for kept in (np.arange(20), few):
        holder = compat.channels(*compat.new_action("still"), ensure=True)
        written = sampling.run(keys.write(holder, [track], [kept], "LINEAR"))
        assert written == (3, 3 * len(kept))
        curves.append(list(holder.fcurves))
    for all_keys, few_keys in zip(*curves, strict=True):
        for frame in np.arange(0, 22, 0.25):
            assert all_keys.evaluate(frame) == few_keys.evaluate(frame)
    assert len(keys.distinct(track, "BEZIER")) == 20, "their handles would bend what is still"
    assert keys.distinct(keys.Track("x", "x", frames[:1], moving[:1], "SCALE"), "LINEAR") == [0]


def test_all_keys_of_many_curves_are_written(blender):
    frames = np.arange(600.0)
    values = np.random.default_rng(0).normal(size=(600, 3))
    tracks = [
        keys.Track(f'pose.bones["b{i}"].rotation_euler', f"b{i}", frames, values + i, "XYZ")
        for i in range(50)
    ]
    holder = compat.channels(*compat.new_action("many"), ensure=True)
    writing, counts = keys.write(holder, tracks, [np.arange(600)] * 50, "LINEAR"), []
    while True:  # in pieces of one track each
        try:
            next(writing)
        except StopIteration as end:
            assert end.value == (150, 90000)
            break
        counts.append(len(holder.fcurves))
    assert counts == list(range(0, 150, 3))
    for curve in holder.fcurves:
        written = np.empty(1200)
        curve.keyframe_points.foreach_get("co", written)
        i = int(curve.data_path.split('"')[1][1:])
        assert np.abs(written[::2] - frames).max() == 0
        assert np.abs(written[1::2] - values[:, curve.array_index] - i).max() < 1e-5

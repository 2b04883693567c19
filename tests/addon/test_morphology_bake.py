# SPDX-License-Identifier: GPL-3.0-or-later
"""Other proportions reach the armature exactly, for as long as the bake is shown."""

from dataclasses import replace

import bpy
import numpy as np
import pytest
from helpers.standins import captured

from poise.addon.baking import bake
from poise.addon.blender import compat
from poise.addon.command.command_line import main
from poise.addon.rigs import reference, sampling
from poise.addon.rigs.rig import RigMap
from poise.addon.scene import morphology
from poise.addon.shots.shot import Shot, ShotOptions
from poise.controller import Character
from poise.controller.body.morphology import GROUPS, Morphology, Reshaping, presets
from poise.controller.exceptions import BakeError
from poise.controller.geometry.rotations import matrix_from_quaternion
from poise.controller.geometry.skeleton import (
    JOINT_OF,
    LANDMARK_INDEX,
    OPTIONAL_LANDMARKS,
    SEGMENT_INDEX,
)

#: A clip of each of the seven skeletons.
CLIPS = ("stand", "walk_fast", "squat", "side_kick", "wave", "bow", "run")
FRAMES = (1, 9, 1)
JOINTS = [i for name, i in LANDMARK_INDEX.items() if name not in OPTIONAL_LANDMARKS]


def read(armature, like=None, frames=FRAMES):
    more = {"rig_map": like.rig_map, "metres_per_unit": like.metres_per_unit} if like else {}
    return reference.read(bpy.context.scene, armature, frames=frames, **more)


def reshaping(reading, body):
    return Reshaping(Character.from_motion(reading.motion), reading.motion, body)


def apart(one, other):
    """Largest distance of a joint centre [mm]."""
    return 1e3 * np.linalg.norm((one.positions - other.positions)[:, JOINTS], axis=-1).max()


def state(armature):
    """What another look at an armature must find the same."""
    return (
        [(b.name, b.inherit_scale) for b in armature.data.bones],
        [(b.name, tuple(b.scale), tuple(b.location)) for b in armature.pose.bones],
    )


def keys(action, slot):
    return {
        (c.data_path, c.array_index): len(c.keyframe_points) for c in compat.curves(action, slot)
    }


@pytest.mark.parametrize("name", CLIPS)
def test_joints_are_where_the_body_has_them_on_every_rig(import_clip, no_differences, name):
    armature = import_clip(name)
    reading = read(armature)
    for body in ("stout", "long"):
        shape = reshaping(reading, presets()[body])
        deltas = no_differences(len(reading.frames))
        result = bake.bake(bpy.context.scene, reading, *deltas, reshaping=shape)
        baked = read(armature, reading)
        assert result.error_mm < 1
        assert apart(baked.motion, shape.motion) < 0.3
        assert apart(reading.motion, shape.motion) > 20
        # The same pose, bone by bone, between new lengths.
        np.testing.assert_allclose(
            matrix_from_quaternion(baked.motion.rotations),
            matrix_from_quaternion(reading.motion.rotations),
            atol=1e-5,
        )


def test_turned_joints_are_exact_as_well(import_clip, differences):
    armature = import_clip("squat")
    reading = read(armature, frames=(1, 20, 1))
    shape = reshaping(reading, presets()["stout"])
    turns, moves = differences(len(reading.frames))
    result = bake.bake(bpy.context.scene, reading, turns, moves, reshaping=shape)
    assert result.error_mm < 1
    baked = read(armature, reading, (1, 20, 1)).motion.positions
    motion = shape.motion.positions
    at = LANDMARK_INDEX
    np.testing.assert_allclose(baked[:, at["pelvis"]], motion[:, at["pelvis"]] + moves, atol=1e-5)
    for segment, start, end in (("pelvis", "pelvis", "hip_l"), ("shin_r", "knee_r", "ankle_r")):
        turn = matrix_from_quaternion(turns[:, SEGMENT_INDEX[segment]])
        arm = np.einsum("fij,fj->fi", turn, motion[:, at[end]] - motion[:, at[start]])
        np.testing.assert_allclose(baked[:, at[end]] - baked[:, at[start]], arm, atol=1e-4)


def test_other_gains_are_tried_on_the_same_body(import_clip):
    """A preview of a search, beside the shot that it is for, which stays as it is."""
    import_clip("stand")
    body = Morphology({"thigh": (1.2, 0.8, 1.0)})
    shot = Shot(bpy.context.scene, ShotOptions(frames=(1, 9), morphology=body))
    for _ in shot.read():
        pass
    shot.prepare()
    before, gains = shot.simulation, replace(shot.gains, single=2 * shot.gains.single)
    other = shot.with_gains(gains)
    for _ in other.simulation:
        pass
    assert other.recording.motion is shot.motion
    assert other.gains is gains and other.simulation.gains is gains
    assert shot.simulation is before and shot.gains is not gains


@pytest.mark.parametrize("name", ["stand", "bow", *captured("wave")])
def test_what_is_simulated_is_what_is_baked(import_clip, name):
    armature = import_clip(name)
    body = Morphology({"thigh": (1.2, 0.8, 1.0), "pelvis": (0.9, 1.2, 1), "trunk": (1.2, 1, 1.2)})
    shot = Shot(bpy.context.scene, ShotOptions(frames=(1, 20), morphology=body))
    for _ in (*shot.read(), *shot.simulate()):
        pass
    shot.bake()
    assert shot.baked.error_mm < 1
    baked = read(armature, shot.reading, (1, 20, 1)).motion.positions
    simulated = shot.recording.joints()
    clip, raw = shot.recording.motion.positions, shot.recording.reference.raw.joints
    for segment in ("pelvis", "trunk", "thigh_l", "shin_r", "foot_l", "head", "forearm_r"):
        landmark, row = LANDMARK_INDEX[JOINT_OF[segment]], SEGMENT_INDEX[segment]
        off = np.linalg.norm(baked[:, landmark] - simulated[:, row], axis=1).max()
        # The body's trunk is one solid: what the animated spine bends, it keeps in the bake.
        bends = np.linalg.norm(clip[:, landmark] - raw[:, row], axis=1).max()
        above = segment in ("head", "forearm_r")
        assert off < 1e-3 + above * 1.1 * bends, segment


def test_report_and_problem_tell_of_the_new_body(import_clip):
    import_clip("stand")
    body = Morphology({"thigh": (1.2, 0.8, 1.0)})
    shot = Shot(bpy.context.scene, ShotOptions(frames=(1, 20), morphology=body))
    for _ in (*shot.read(), *shot.simulate()):
        pass
    shot.bake()
    for _ in shot.measure():
        pass
    assert shot.measures["foot_penetration"][1] < 10
    report = shot.report()
    assert report["body"]["morphology"]["segments"]["thigh"]["length"] == 1.2
    assert report["body"]["mass"] == pytest.approx(shot.character.mass)
    assert shot.problem().character.height == shot.character.height > 1.75


def test_source_is_untouched_and_the_switch_restores_it(import_clip, no_differences):
    armature, scene = import_clip("squat"), bpy.context.scene
    action, slot = compat.assigned(armature)
    before, curves = state(armature), keys(action, slot)
    reading = read(armature)
    shape = reshaping(reading, presets()["child"])
    bake.bake(scene, reading, *no_differences(len(reading.frames)), reshaping=shape)
    assert keys(action, slot) == curves
    baked, flags = read(armature, reading), state(armature)[0]
    assert flags != before[0]
    bake.show(scene, armature, "source")
    assert state(armature) == before
    np.testing.assert_array_equal(read(armature, reading).bone_matrices, reading.bone_matrices)
    bake.show(scene, armature, "baked")
    assert state(armature)[0] == flags
    np.testing.assert_array_equal(read(armature, reading).bone_matrices, baked.bone_matrices)
    # A bake in the old proportions takes all of it back.
    bake.bake(scene, reading, *no_differences(len(reading.frames)))
    assert state(armature)[0] == before[0]
    assert apart(read(armature, reading).motion, reading.motion) < 0.1


def test_only_what_carries_a_segment_is_scaled_by_one_key(biped, biped_map, no_differences):
    reading = reference.read(bpy.context.scene, biped, rig_map=biped_map)
    shape = reshaping(reading, Morphology({"forearm": (1.5, 0.8, 1.2), "shin": (1.2, 1, 1.2)}))
    bake.bake(bpy.context.scene, reading, *no_differences(len(reading.frames)), reshaping=shape)
    counts = keys(*compat.assigned(biped))
    scaled = {path.split('"')[1] for path, _ in counts if path.endswith(".scale")}
    assert scaled == {f"{bone}.{s}" for bone in ("forearm", "hand", "shin") for s in "LR"}
    assert all(count == 1 for (path, _), count in counts.items() if path.endswith(".scale"))
    hand = biped.pose.bones["hand.L"].matrix.to_3x3()
    size = np.cbrt(1.5 * 0.8 * 0.8)
    np.testing.assert_allclose([c.length for c in hand.col], size, rtol=1e-5)
    for name in ("clavicle.L", "toe.R", "head", "spine"):
        lengths = [c.length for c in biped.pose.bones[name].matrix.to_3x3().col]
        np.testing.assert_allclose(lengths, 1, atol=1e-5)


def test_bake_is_one_step_of_undo(registered, import_clip):
    armature = import_clip("stand")
    name, before = armature.name, state(armature)
    scene = bpy.context.scene
    scene.poise.frames, scene.poise.last_frame = "CUSTOM", 20
    bpy.ops.poise.set_morphology(name="long")
    bpy.ops.ed.undo_push(message="Ready")
    bpy.ops.poise.simulate()
    bpy.ops.poise.bake()
    bpy.ops.ed.undo_push(message="Bake")
    assert state(bpy.data.objects[name]) != before
    bpy.ops.ed.undo()
    assert state(bpy.data.objects[name]) == before


def test_failure_leaves_the_armature_as_it_was(import_clip, no_differences, monkeypatch):
    armature = import_clip("squat")
    before = state(armature), compat.assigned(armature)
    reading = read(armature)
    shape = reshaping(reading, presets()["giant"])
    monkeypatch.setattr(bake, "_write", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        bake.bake(bpy.context.scene, reading, *no_differences(len(reading.frames)), reshaping=shape)
    assert (state(armature), compat.assigned(armature)) == before
    assert len(bpy.data.actions) == 1


@pytest.mark.parametrize("nla", [False, True])
def test_failure_leaves_a_reshaped_bake_as_it_was(import_clip, no_differences, monkeypatch, nla):
    armature, scene = import_clip("squat"), bpy.context.scene
    reading = read(armature)
    shape, nothing = reshaping(reading, presets()["giant"]), no_differences(len(reading.frames))
    bake.bake(scene, reading, *nothing, bake.BakeOptions(nla=nla), reshaping=shape)
    before, seen = state(armature), read(armature, reading).bone_matrices
    monkeypatch.setattr(bake, "_write", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        bake.bake(scene, reading, *nothing)
    assert state(armature) == before
    np.testing.assert_array_equal(read(armature, reading).bone_matrices, seen)


def test_frames_around_the_simulated_ones_have_the_proportions_too(import_clip, no_differences):
    armature = import_clip("squat")
    whole = read(armature, frames=(1, 60, 1))
    reading = read(armature, frames=(20, 30, 1))
    shape = reshaping(reading, presets()["giant"])
    bake.bake(bpy.context.scene, reading, *no_differences(11), reshaping=shape)
    baked = read(armature, reading, (1, 60, 1)).motion
    assert apart(baked, shape.applied(whole.motion)) < 0.1


def test_rigs_with_controls_are_refused_before_anything_is_simulated(biped, biped_map, monkeypatch):
    controls = {slot: bones for slot, bones in biped_map.bones.items()}
    shot = Shot(bpy.context.scene, ShotOptions(morphology=presets()["long"]))
    rig_map = RigMap(name="controls", bones=biped_map.bones, controls=controls)
    reading = reference.read(bpy.context.scene, biped, rig_map=rig_map)
    monkeypatch.setattr(reference, "reading", lambda *a, **b: (yield 1.0) or reading)
    with pytest.raises(BakeError) as caught:
        sampling.run(shot.read())
    assert "The rig map 'controls' bakes to controls" in str(caught.value)
    assert "choose a rig map of the deforming bones" in str(caught.value)


def test_sliders_and_menu(registered):
    settings = bpy.context.scene.poise.morphology
    assert not morphology.of(settings)
    assert morphology.label(settings) == "As in the Clip"
    bpy.data.objects.new("rig", bpy.data.armatures.new("rig"))
    bpy.context.collection.objects.link(bpy.data.objects["rig"])
    for stem, body in presets().items():
        bpy.ops.poise.set_morphology(name=stem)
        assert morphology.of(settings).factors == body.factors
        assert morphology.label(settings) == body.name
    settings.thigh.length = 133
    assert morphology.of(settings).factors["thigh"][0] == 1.33
    assert morphology.label(settings) == "Own"
    bpy.ops.poise.set_morphology()
    assert not morphology.of(settings)
    with pytest.raises(RuntimeError, match=r"There is no morphology 'tall': use .*long"):
        bpy.ops.poise.set_morphology(name="tall")
    assert not morphology.of(settings)
    settings.shin.girth = 0
    assert morphology.of(settings).factors["shin"] == (1.0, 0.3, 1.0)
    for group in GROUPS:
        for kind in ("length", "girth", "mass"):
            own = getattr(settings, group).bl_rna.properties[kind]
            assert "(%)" in own.name and own.description


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--scale", "thigh=0,1,1"], 2, "The length of the thigh cannot be scaled by 0"),
        (["--scale", "tail=1,1,1"], 2, "There is no segment 'tail' to scale"),
        (["--scale", "thigh=1"], 2, "The thigh needs three factors: length, girth, mass"),
        (["--scale", "thigh:1"], 2, "'thigh:1' is not a segment and three factors"),
        (["--morphology", "dwarf"], 1, "There is no morphology 'dwarf': use child"),
        (["--morphology", "none.json"], 1, "The morphology 'none.json' cannot be read"),
    ],
)
def test_command_line_refuses_in_words(import_clip, capsys, tmp_path, arguments, status, message):
    import_clip("stand")
    path = tmp_path / "shot.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    assert main(["inspect", str(path), *arguments]) == status
    assert message in capsys.readouterr().err


def test_command_line_scales(import_clip, capsys, tmp_path):
    import_clip("stand")
    path = tmp_path / "shot.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    assert main(["inspect", str(path)]) == 0
    plain = capsys.readouterr().out
    assert main(["inspect", str(path), "--morphology", "child", "--scale", "head=2,2,3"]) == 0
    child = capsys.readouterr().out
    (before,), (after,) = (
        [line for line in text.splitlines() if line.startswith("body")] for text in (plain, child)
    )
    assert before == "body      1.71 m, 62.1 kg"
    assert 1.3 < float(after.split()[1]) < 1.5

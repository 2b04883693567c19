# SPDX-License-Identifier: GPL-3.0-or-later
"""Feet and weight cleaned up in Blender: the keys, the operator, the panel, the command."""

import json
import re
from dataclasses import replace

import bpy
import numpy as np
import pytest
from helpers.commands import poise, save

from poise.addon.blender import compat, session
from poise.addon.operators.clean_up import CleanUpJob
from poise.addon.rigs import bake_target, reference, sampling
from poise.addon.shots.clean_up import CleanShot, CleanShotOptions, toes_of
from poise.addon.sidebar import clean_up_panel, panels, quick_panel
from poise.controller.checks.verdict import judge_motions
from poise.controller.clean_up.clean_up import CleanUpOptions
from poise.controller.contacts.contact_plan import ContactPlan
from poise.controller.geometry.skeleton import LANDMARK_INDEX
from poise.experiments.sok import _scene


def cleaned(armature, **options):
    """The CleanShot of an armature, with its keys written."""
    shot = CleanShot(bpy.context.scene, CleanShotOptions(armature=armature.name, **options))
    sampling.run(shot.read())
    shot.solve()
    sampling.run(shot.baking())
    return shot


def values(action, armature):
    """{curve: its values} of an action."""
    slot = compat.object_slot(action, armature)
    return {
        (curve.data_path, curve.array_index): [tuple(key.co) for key in curve.keyframe_points]
        for curve in compat.curves(action, slot)
    }


@pytest.mark.parametrize("clip", ["walk", "kick", "jump", "run"])
def test_keys_put_every_joint_where_the_solution_has_it(import_clip, clip):
    """On rigs with toe bones and without, with hip bones between pelvis and thigh."""
    armature = import_clip(clip)
    source = compat.assigned(armature)[0]
    before = values(source, armature)
    shot = cleaned(armature)
    assert shot.baked.error_mm < 0.05
    assert values(source, armature) == before
    action, slot = compat.assigned(armature)
    assert action.name == f"{source.name} Poise Clean"
    assert bake_target.mark_of(action, slot)["kind"] == "clean"
    for points in values(action, armature).values():
        assert np.isfinite(points).all()
    wanted = shot.cleaned.motion(shot.reading.motion).positions
    read = reference.read(
        bpy.context.scene, armature, metres_per_unit=shot.reading.metres_per_unit
    ).motion.positions
    assert np.nanmax(np.linalg.norm(read - wanted, axis=-1)) < 5e-4
    toe = np.linalg.norm(read - wanted, axis=-1)[:, LANDMARK_INDEX["toe_l"]]
    assert toe.max() < 5e-4


def test_standing_feet_slide_no_more(import_clip):
    shot = cleaned(import_clip("walk"))
    before, after = shot.slip
    assert before > 0.08 and after < 0.05 * before
    assert shot.report()["place"] < 0.01


@pytest.mark.parametrize("clip", ["walk", "jump", "spinkick"])
def test_clips_of_another_body(blender, clip):
    """PyBullet's humanoid, on which nothing was chosen."""
    pytest.importorskip("pybullet_data")
    scene = _scene(f"pybullet_{clip}")
    shot = cleaned(scene.objects[0])
    before, after = shot.slip
    assert after < 0.05 * before
    assert shot.baked.error_mm < 0.05
    assert shot.report()["place"] < 0.02


def test_another_clean_up_takes_the_place_of_the_first(import_clip):
    armature = import_clip("stand")
    source = compat.assigned(armature)
    first = cleaned(armature).baked.action
    compat.assign(armature, *source)
    second = cleaned(armature, clean=CleanUpOptions(2.0, "off")).baked.action
    assert first == second
    assert len(bpy.data.actions) == 2


def test_a_rig_with_ik_is_cleaned_too(import_clip):
    """Legs that follow IK targets: what is keyed are the bones, with the constraints off."""
    armature = import_clip("stand")
    bones = armature.pose.bones
    empty = bpy.data.objects.new("target", None)
    bpy.context.collection.objects.link(empty)
    empty.location = armature.matrix_world @ bones["LeftFoot"].head
    constraint = bones["LeftLeg"].constraints.new("IK")
    constraint.target, constraint.chain_count = empty, 2
    shot = cleaned(armature)
    assert shot.baked.error_mm < 0.05
    bpy.context.scene.frame_set(5)
    assert constraint.influence == 0


@pytest.mark.parametrize("first", ["{}ToeBase", "{}Toe0"])
def test_toes_side_by_side_turn_together(import_clip, first):
    """They are found by their numbers, or by what they are called; the first is the hinge."""
    armature = import_clip("walk")
    bpy.context.view_layer.objects.active = armature
    bpy.ops.object.mode_set(mode="EDIT")
    bones = armature.data.edit_bones
    others = {"l": [], "r": []}
    for side, word in (("l", "Left"), ("r", "Right")):
        toe = bones[f"{word}ToeBase"]
        toe.use_connect, toe.name = False, first.format(word)
        for number in range(1, 5):
            bone = bones.new(f"{toe.name.rstrip('0')}{number}")
            bone.head, bone.tail, bone.roll = toe.head, toe.tail, toe.roll
            bone.head.x, bone.tail.x = toe.head.x + 0.02 * number, toe.tail.x + 0.02 * number
            bone.parent = toe.parent
            others[side].append(bone.name)
        end = bones.new(f"{word}FootEnd")
        end.head, end.tail, end.parent = toe.tail, toe.tail + toe.tail - toe.head, toe.parent
    bpy.ops.object.mode_set(mode="OBJECT")
    before = reference.read(bpy.context.scene, armature)
    chains = before.rig_map.bones
    assert chains["toe_l"] == (first.format("Left"), *others["l"])
    assert chains["toe_r"] == (first.format("Right"), *others["r"])
    shot = cleaned(armature)
    assert shot.baked.error_mm < 0.05
    after = reference.read(bpy.context.scene, armature)
    turned = []
    for bone in chains["toe_l"]:
        one, two = (
            reading.bone_matrices[:, reading.bone_index(bone), :3, :3]
            for reading in (before, after)
        )
        turned.append(two @ np.swapaxes(one, 1, 2))
    assert np.abs(turned[0] - np.eye(3)).max() > 0.05
    assert np.allclose(turned[1:], turned[0], atol=1e-3)


def test_toes_behind_controls_turn_only_if_there_is_one(import_clip):
    armature = import_clip("walk")
    reading = reference.read(bpy.context.scene, armature)
    toes = toes_of(reading)
    assert toes["l"].shape == (len(reading.frames), 3, 3)
    assert np.allclose(toes["l"] @ toes["l"].swapaxes(1, 2), np.eye(3), atol=1e-6)
    object.__setattr__(reading.rig_map, "controls", {"foot_l": ("LeftFoot",)})
    assert toes_of(reading) == {"l": None, "r": None}


def test_operator_writes_one_action_and_leaves_the_frame(registered, import_clip):
    armature, scene = import_clip("wave"), bpy.context.scene
    scene.frame_set(7)
    scene.poise.clean_up.smoothness, scene.poise.clean_up.balance = 2.0, "OFF"
    assert bpy.ops.poise.clean_up() == {"FINISHED"}
    assert scene.frame_current == 7
    assert compat.assigned(armature)[0].name == "wave Poise Clean"
    assert bpy.ops.poise.show(which="source") == {"FINISHED"}
    assert compat.assigned(armature)[0].name == "wave"
    assert bpy.ops.poise.clean_up() == {"FINISHED"}
    assert len(bpy.data.actions) == 2


def test_operator_says_what_is_wrong_and_changes_nothing(registered, import_clip):
    """A clip that slides over the floor as a whole: no foot stands."""
    armature = import_clip("stand")
    action, slot = compat.assigned(armature)
    for curve in compat.curves(action, slot):
        if curve.data_path.endswith('["Hips"].location') and curve.array_index == 0:
            for point in curve.keyframe_points:
                point.co.y = 0.05 * point.co.x
            curve.update()
    with pytest.raises(RuntimeError, match="No foot of 'stand' ever stands"):
        bpy.ops.poise.clean_up()
    assert compat.assigned(armature) == (action, slot)
    assert len(bpy.data.actions) == 1


def test_panel_has_its_settings_and_the_button(registered, import_clip, draw_panels):
    text = draw_panels(clean_up_panel.CLASSES, import_clip("stand"))
    for word in ("smoothness", "balance", "Clean Feet and Weight"):
        assert word in text


def test_the_panels_of_a_simulation_are_drawn_meanwhile(
    registered, import_clip, draw_panels, monkeypatch
):
    armature = import_clip("stand")
    job = CleanUpJob(bpy.context.scene, CleanShotOptions())
    monkeypatch.setattr(session, "job", lambda: job)
    classes = [quick_panel.POISE_PT_quick, panels.POISE_PT_simulate]
    for cls, mode in zip(classes, ("QUICK", "FULL"), strict=True):
        bpy.context.scene.poise.mode = mode
        assert job.text in draw_panels([cls], armature)


def test_panel_says_whether_it_is_a_keeper(registered, import_clip, draw_panels):
    armature = import_clip("wave")
    assert not bpy.ops.poise.show_clean_flaw.poll()
    bpy.ops.poise.clean_up()
    text = draw_panels(clean_up_panel.CLASSES, armature)
    assert "Keeper" in text and re.search(r"0\.\d{3} to 0\.\d{3} m/s", text)
    clean = session.result_of(bpy.context.scene, armature).clean
    other = clean.cleaned.motion(clean.reading.motion)
    far = replace(other, positions=other.positions + [0.4, 0, 0])
    clean.verdict = judge_motions(clean.reading.motion, far)
    text = draw_panels(clean_up_panel.CLASSES, armature)
    assert "Keeper" not in text and "Cleaned, but:" in text and "0.40 m off place" in text
    assert bpy.ops.poise.show_clean_flaw(index=0) == {"FINISHED"}
    assert bpy.context.scene.frame_current == int(clean.verdict.findings[0].frame)
    with pytest.raises(RuntimeError, match="findings only"):
        bpy.ops.poise.show_clean_flaw(index=99)
    bpy.data.actions.remove(bpy.data.actions["wave Poise Clean"])
    assert "Cleaned, but:" not in draw_panels(clean_up_panel.CLASSES, armature)


# --- The command ---------------------------------------------------------------------------------


@pytest.fixture
def shot(tmp_path, import_clip):
    """A saved .blend with the armature 'wave' and its action; nothing else in its folder."""
    import_clip("wave")
    return save(tmp_path)


def command(*arguments):
    return poise("clean", *arguments)


def test_command_writes_beside_the_shot(shot, capsys):
    before = shot.read_bytes()
    report, plan = shot.with_name("report.json"), shot.with_name("plan.json")
    assert command(shot, "--report", report, "--write-contacts", plan) == 0
    assert shot.read_bytes() == before
    told = json.loads(report.read_text())
    assert told["baked_action"] == "wave Poise Clean" and told["source_action"] == "wave"
    assert told["contact_slip"]["after"] < told["contact_slip"]["before"]
    assert told["contacts"] == json.loads(plan.read_text())
    assert {"contact_slip", "place", "bake_error"} <= told["units"].keys()
    bpy.ops.wm.open_mainfile(filepath=str(shot.with_name("shot_clean.blend")))
    assert set(bpy.data.actions.keys()) == {"wave", "wave Poise Clean"}
    assert "is cleaned" in capsys.readouterr().err


def test_command_obeys_a_plan(shot):
    """A plan in which the left foot never stands: nothing holds it."""
    plan = shot.with_name("plan.json")
    assert command(shot, "--write-contacts", plan) == 0
    edited = ContactPlan.load(plan)
    edited = ContactPlan(edited.fps, {"right": edited.feet["right"]})
    edited.save(plan)
    report = shot.with_name("report.json")
    assert command(shot, "--contacts", plan, "--report", report, "--overwrite", "--com", "off") == 0
    contacts = json.loads(report.read_text())["contacts"]
    assert contacts["feet"]["left"] == {"heel": [], "ball": [], "tip": []}


def test_command_refuses_and_writes_nothing(shot, capsys):
    names = {path.name for path in shot.parent.iterdir()}
    plan = shot.with_name("plan.json")
    for content, sentence in (
        ("{", "is not JSON"),
        (
            '{"version":1,"fps":60,"feet":{"left":{"heel":[[0,99]]},"right":{}}}',
            "but the clip lasts from 0",
        ),
        (
            '{"version":1,"fps":60,"feet":{"left":{"heel":[[1,0.5]]},"right":{}}}',
            "not after its start",
        ),
        (
            '{"version":1,"fps":24,"feet":{"left":{},"right":{"ball":[[0,1]]}}}',
            "is for 24 frames a second, and the animation has 60: give it that rate (--fps), or, "
            "if the plan's seconds are right, change its 'fps' to 60.",
        ),
    ):
        plan.write_text(content)
        assert command(shot, "--contacts", plan) == 1
        assert poise("simulate", shot, "--contacts", plan) == 1
        assert sentence in capsys.readouterr().err
    plan.unlink()
    assert command(shot, "--smoothness", "99") == 2
    assert "'99' is not a number from 0.2 to 5" in capsys.readouterr().err
    assert command(shot, "--output", shot) == 2
    assert command(shot, "--write-contacts", shot) == 2
    assert {path.name for path in shot.parent.iterdir()} == names


@pytest.mark.slow(captured=False)
def test_a_batch_cleans_each_shot_and_simulates_nothing(shot, tmp_path):
    """In a process of its own: the source stays, and what was cleaned is not cleaned again."""
    before = shot.read_bytes()
    output, summary = tmp_path / "out", tmp_path / "night.json"
    for _ in range(2):
        arguments = ("--clean-only", "--output", output, "--json", summary)
        assert poise("batch", shot, *arguments) == 0
    assert shot.read_bytes() == before
    (told,) = json.loads(summary.read_text())["shots"]
    assert (told["state"], told["keeper"], told["compared_with"]) == ("cleaned", True, "source")
    assert told["contact_slip"]["after"] < told["contact_slip"]["before"]
    log = (output / told["log"]).read_text(errors="replace")
    assert log.count("== ") == 1
    bpy.ops.wm.open_mainfile(filepath=str(output / told["result"]))
    assert set(bpy.data.actions.keys()) == {"wave", "wave Poise Clean"}


def test_command_reads_a_bvh_file(clips, tmp_path):
    output = tmp_path / "stand.blend"
    assert command(clips["stand"].path, "--output", output) == 0
    bpy.ops.wm.open_mainfile(filepath=str(output))
    assert len(bpy.data.actions) == 2

# SPDX-License-Identifier: GPL-3.0-or-later
"""The clip check in Blender: the job, the panel with a stand-in for the layout, the command."""

import json

import bpy
import numpy as np
import pytest
from helpers.commands import poise, save
from mathutils import Vector

from poise.addon.blender import compat, session
from poise.addon.plots import clip_check_plot
from poise.addon.settings import properties
from poise.addon.shots import outdated
from poise.addon.shots.shot import Shot, ShotOptions
from poise.addon.sidebar import clip_check_panel


def pop(armature, bone, first, last):
    """Turn a bone over from frame `first` to `last`."""
    curves = compat.curves(*compat.assigned(armature))
    path = f'pose.bones["{bone}"].rotation_euler'
    curve = next(c for c in curves if c.data_path == path and c.array_index == 0)
    for point in curve.keyframe_points:
        point.co.y += np.radians(150) if first <= point.co.x <= last else 0.0
    curve.update()


@pytest.fixture
def popping(import_clip):
    """The armature of hips_twist, whose left elbow flips from frame 41 to 44."""
    armature = import_clip("hips_twist")
    pop(armature, "LeftElbow", 41, 44)
    return armature


def test_check_clip_finds_a_pop_in_keys_and_leaves_all_as_it_is(registered, popping):
    scene = bpy.context.scene
    scene.frame_set(7)
    assert bpy.ops.poise.check_clip() == {"FINISHED"}
    found = session.result_of(scene, popping).check
    assert found.faults[0].subject == "left elbow"
    assert {(f.kind, f.frames) for f in found.faults} == {("pop", (41, 44))}
    assert scene.frame_current == 7
    assert len(bpy.data.actions) == 1
    assert session.job() is None


def carry(armature, path, value):
    """Parent an armature to an empty whose location or rotation is keyed; returns the empty."""
    empty = bpy.data.objects.new("carrier", None)
    bpy.context.scene.collection.objects.link(empty)
    empty.keyframe_insert(path, frame=1)
    setattr(empty, path, value)
    empty.keyframe_insert(path, frame=60)
    armature.parent = empty
    return empty


@pytest.mark.parametrize(
    "path, value",
    [("location", (0, 0, 200)), ("rotation_euler", (0, 0, 2)), ("location", (90, 0, 0))],
)
def test_what_carries_feet_that_stand_on_it_has_to_be_a_collider(
    registered, import_clip, path, value
):
    carry(import_clip("arm"), path, value)
    bpy.ops.poise.check_clip()
    found = session.result_of(bpy.context.scene, bpy.context.object).check
    sentences = [finding.sentence for finding in found.faults if finding.kind == "support"]
    wanted = "the feet stand on 'carrier', which moves, and is no collider: mark it, or a mesh"
    assert any(wanted in sentence for sentence in sentences), sentences
    # That is why they are not where a floor is.
    assert not {finding.kind for finding in found.findings} & {"float", "sink", "start"}


def test_a_body_that_is_lowered_to_the_floor_by_no_collider_is_told_by_what(
    registered, import_clip
):
    armature = import_clip("arm")
    empty = carry(armature, "location", (0, 0, 0))
    (height,) = (c for c in compat.curves(*compat.assigned(empty)) if c.array_index == 2)
    height.keyframe_points[0].co.y = 2 / armature.matrix_world.to_scale().x
    with pytest.raises(RuntimeError, match="the feet stand on 'carrier', which moves, and is no"):
        bpy.ops.poise.simulate()


def test_a_walk_that_its_parent_moves_over_the_floor_rides_on_nothing(registered, import_clip):
    armature = import_clip("walk")
    bone, path = armature.data.bones[0], armature.pose.bones[0].path_from_id("location")
    curves = compat.curves(*compat.assigned(armature))
    (travel,) = (c for c in curves if c.data_path == path and c.array_index == 2)
    way = armature.matrix_world.to_3x3() @ bone.matrix_local.to_3x3() @ Vector((0, 0, 1))
    empty = bpy.data.objects.new("carrier", None)
    bpy.context.scene.collection.objects.link(empty)
    armature.parent = empty
    for point in travel.keyframe_points:
        empty.location = way * point.co.y
        empty.keyframe_insert("location", frame=point.co.x)
        point.co.y = 0
    bpy.ops.poise.check_clip()
    found = session.result_of(bpy.context.scene, armature).check
    assert found.travel > 1
    assert not [finding for finding in found.findings if finding.kind == "support"]


def test_a_finding_leads_to_its_frame(registered, popping):
    bpy.ops.poise.check_clip()
    assert bpy.ops.poise.show_finding(index=0) == {"FINISHED"}
    assert bpy.context.scene.frame_current == 41
    with pytest.raises(RuntimeError, match=r"There are \d+ findings only"):
        bpy.ops.poise.show_finding(index=99)


def test_what_is_cleaned_is_checked_simulated_and_reported(registered, popping):
    scene = bpy.context.scene
    scene.poise.clip_check.despike = True
    scene.poise.method = "BALANCE"
    assert bpy.ops.poise.check_clip() == {"FINISHED"}
    found = session.result_of(scene, popping).check
    assert found.cleaning == ("despike",)
    assert not found.faults
    scene.poise.frames, scene.poise.first_frame, scene.poise.last_frame = "CUSTOM", 30, 60
    assert bpy.ops.poise.simulate() == {"FINISHED"}
    shot = session.result_of(scene, popping).shot
    assert shot.recording.success
    assert shot.report()["cleaning"] == ["despike"]
    # Back from the flip: the forearm is turned by as much as it was.
    turn = shot.recording.rotation_deltas()[:, 4, 0]
    angle = 2 * np.degrees(np.arccos(np.clip(np.abs(turn), 0, 1)))
    assert angle[11:15].min() > 60 > 30 > np.delete(angle, np.s_[10:16]).max()


def test_automatic_cleans_what_pops_by_itself_and_says_so(registered, popping, draw_panels):
    scene = bpy.context.scene
    scene.poise.frames, scene.poise.first_frame, scene.poise.last_frame = "CUSTOM", 30, 60
    assert scene.poise.method == "AUTO"
    assert bpy.ops.poise.simulate() == {"FINISHED"}
    result = session.result_of(scene, popping)
    assert result.shot.recording.success
    said = "Cleaned by itself (Despike): frames 41-44: the left elbow flips ("
    why = result.shot.report()["method"]["why"]
    assert why.startswith(said) and "Balance alone will do" in why
    assert result.shot.report()["cleaning"] == ["despike"]
    assert not scene.poise.clip_check.despike, "what is set stays as it is"
    assert not outdated.changed(result.settings, session_settings(scene, popping))
    text = draw_panels(clip_check_panel.CLASSES, popping).replace("\n", " ")
    assert said in text and "check again" not in text and "Mend first" not in text
    assert bpy.ops.poise.bake() == {"FINISHED"}


def session_settings(scene, armature):
    """What a simulation of an armature would depend on now."""
    options = properties.shot_options(bpy.context, armature)
    return outdated.settings_of(scene, armature, options)


def test_the_command_cleans_what_pops_where_it_chooses(registered, popping, tmp_path, capsys):
    shot, report = save(tmp_path), tmp_path / "report.json"
    command = ("simulate", shot, "--frames=30:60", "--report", report)
    assert poise(*command) == 1
    assert "pops: it turns by 150° from frame 40 to 41" in capsys.readouterr().err
    assert poise(*command, "--method=auto") == 0
    assert "Cleaned by itself (Despike): frames 41-44: the left" in capsys.readouterr().err
    assert json.loads(report.read_text())["cleaning"] == ["despike"]


def test_an_endless_walk_that_pops_is_refused_as_nothing_of_it_is_cleaned(
    registered, import_clip, tmp_path, capsys
):
    pop(import_clip("walk"), "LeftForeArm", 61, 64)
    shot = save(tmp_path)
    assert poise("simulate", shot, "--walk=2", "--method=auto") == 1
    assert "pops: it turns by" in capsys.readouterr().err


def test_panel_before_and_after(registered, popping, draw_panels):
    settings = bpy.context.scene.poise.clip_check
    text = draw_panels(clip_check_panel.CLASSES, popping)
    assert "Check Clip" in text and "picture" not in text
    bpy.ops.poise.check_clip()
    text = draw_panels(clip_check_panel.CLASSES, popping).replace("\n", " ")
    assert "Mend first: frames 41-44: the left elbow flips (" in text
    assert "Clean it above and check again" in text
    assert "Frames 41-44: the left elbow flips" in text
    assert "picture of" in text
    settings.despike = True
    text = draw_panels(clip_check_panel.CLASSES, popping).replace("\n", " ")
    assert "Checked with nothing cleaned: check again." in text
    bpy.ops.poise.check_clip()
    text = draw_panels(clip_check_panel.CLASSES, popping).replace("\n", " ")
    assert "Balance alone will do" in text
    assert "check again" not in text


def test_buttons_that_need_a_check_say_so(registered, import_clip):
    import_clip("stand")
    for operator in (bpy.ops.poise.show_finding, bpy.ops.poise.show_check):
        assert not operator.poll()
    bpy.ops.poise.check_clip()
    assert bpy.ops.poise.show_check() == {"FINISHED"}
    (image,) = bpy.data.images
    assert image.name.startswith("Poise check ")
    assert tuple(image.size) == (1200, 1200)


def test_a_simulation_and_a_check_do_not_forget_each_other(registered, import_clip):
    armature, scene = import_clip("stand"), bpy.context.scene
    scene.poise.method = "BALANCE"
    bpy.ops.poise.simulate()
    recording = session.result_of(scene, armature).recording
    bpy.ops.poise.check_clip()
    assert session.result_of(scene, armature).recording is recording
    bpy.ops.poise.inspect()
    assert session.result_of(scene, armature).check is not None


def test_a_clip_that_starts_in_the_air_is_checked(airborne):
    top, last = airborne
    shot = Shot(bpy.context.scene, ShotOptions(frames=(top, last)))
    for _ in shot.read():
        pass
    shot.embody()
    (fault,) = shot.check().faults
    assert (fault.kind, fault.frames) == ("start", (top, top))
    assert "it starts in the air" in shot.check().verdict


def test_picture_marks_faults_and_what_is_beyond(popping):
    shot = Shot(bpy.context.scene, ShotOptions())
    for _ in shot.read():
        pass
    shot.embody()
    found, size = shot.check(), 400
    palette = clip_check_plot._ON_PAPER
    result = clip_check_plot._paper(size, palette)
    clip_check_plot.strips(result, found, palette, (0, 0, size, size))
    red = (result[..., 0] > result[..., 1] + 0.1) & (result[..., 1] == result[..., 2])
    columns = np.flatnonzero(red.mean(0) > 0.02)
    frames = 1 + columns / size * (len(found.frames) - 1)
    assert 38 < frames.min() < 42 < 43 < frames.max() < 47


# --- Command line ---------------------------------------------------------------------------------


def test_inspect_tells_and_draws_what_it_finds(popping, tmp_path, capsys):
    shot, report, plot = save(tmp_path), tmp_path / "r.json", tmp_path / "p.png"
    assert poise("inspect", shot, "--report", report, "--plot", plot) == 0
    text = capsys.readouterr().out
    assert "check     Mend first: frames 41-44: the left elbow flips (" in text
    assert "  ! frames 41-44: the left elbow flips (" in text
    found = json.loads(report.read_text())["check"]
    assert found["findings"][0]["subject"] == "left elbow"
    assert found["recommend"] == "balance"
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert poise("inspect", shot, "--clean", "despike") == 0
    text = capsys.readouterr().out
    assert "check     Balance alone will do" in text
    assert "cleaned   despike" in text
    assert "flips" not in text


def test_simulate_cleans(popping, tmp_path):
    shot, report = save(tmp_path), tmp_path / "r.json"
    arguments = ("simulate", shot, "--frames=30:60", "--report", report)
    assert poise(*arguments, "--clean", "unskate,despike") == 0
    assert json.loads(report.read_text())["cleaning"] == ["despike", "unskate"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--clean", "polish"),
            "'polish' is no cleaning: name some of despike, ground, travel, unskate",
        ),
        (("--plot", "p.jpg"), "--plot is to be a PNG file"),
    ],
)
def test_odd_arguments(popping, tmp_path, capsys, arguments, message):
    assert poise("inspect", save(tmp_path), *arguments) == 2
    assert message in capsys.readouterr().err

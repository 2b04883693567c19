# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line: what it writes, what it reports, what it leaves alone, how it ends."""

import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import bpy
import numpy as np
import pytest
from helpers.commands import listing, poise, save

from poise import addon
from poise.addon.blender import compat
from poise.addon.blender.locks import claimed
from poise.addon.command import command_line, command_rectify
from poise.addon.rigs import bake_marks, source_values
from poise.addon.shots import shot as shots
from poise.addon.shots.shot import find_armature, warnings_of
from poise.addon.terminal import command_files
from poise.controller.exceptions import RigError

#: Names of measures.md that are of one clip and one bake.
OF_CLIP = (
    "pose_error",
    "stance_error",
    "slide_error",
    "torque_error",
    "few_corners",
    "reward",
    "success",
    "fell_at",
    "tracking_error",
    "tracking_error_local",
    "residual",
)
OF_BAKE = ("foot_slide", "foot_penetration", "jitter", "zmp_inside", "pulls_on_ground")
FRAMES = "--frames=1:40"


@pytest.fixture
def shot(tmp_path, import_clip):
    """A saved .blend with the armature 'wave' and its action; nothing else in its folder."""
    import_clip("wave")
    return save(tmp_path)


def module(*arguments, **options):
    """Run `python -m poise` in a process of its own, somewhere else."""
    return subprocess.run(
        [sys.executable, "-m", "poise", *(str(argument) for argument in arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        **options,
    )


def opened(path, action_name):
    """Open a file and assign one of its actions to its armature: (object, action, slot)."""
    bpy.ops.wm.open_mainfile(filepath=str(path))
    (thing,) = (thing for thing in bpy.data.objects if thing.type == "ARMATURE")
    action = bpy.data.actions[action_name]
    slot = compat.object_slot(action, thing)
    compat.assign(thing, action, slot)
    return thing, action, slot


def keys(path, action_name):
    """Keys of an action in a saved file: {(path, index): [(frame, value), …]}."""
    _thing, action, slot = opened(path, action_name)
    return {
        (curve.data_path, curve.array_index): [tuple(key.co) for key in curve.keyframe_points]
        for curve in compat.curves(action, slot)
    }


def head_positions(path, action_name, bone, frames):
    """(frames, 3) world positions of a bone's head under an action in a saved file [m]."""
    thing, _action, _slot = opened(path, action_name)
    positions = []
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        positions.append(thing.matrix_world @ thing.pose.bones[bone].head)
    return np.array(positions)


def test_bake_writes_beside_the_shot_and_changes_nothing_else(shot):
    before = listing(shot.parent)
    assert poise("bake", shot, FRAMES) == 0
    after = listing(shot.parent)
    assert set(after) == {"shot.blend", "shot_poise.blend"}
    assert after["shot.blend"] == before["shot.blend"]
    assert not after["shot_poise.blend"].startswith(b"BLENDER"), "compressed"


def test_result_holds_both_actions_and_shows_the_baked_one(shot):
    source = keys(shot, "wave")
    report = shot.parent / "report.json"
    assert poise("bake", shot, FRAMES, "--report", report) == 0
    baked = json.loads(report.read_text())["baked_action"]
    result = shot.parent / "shot_poise.blend"
    bpy.ops.wm.open_mainfile(filepath=str(result))
    action, _slot = compat.assigned(bpy.data.objects["wave"])
    assert action.name == baked != "wave"
    assert keys(result, "wave") == source


def test_report_holds_every_measure_with_its_unit(shot):
    path = shot.parent / "report.json"
    assert poise("bake", shot, FRAMES, "--report", path, "--seed", 7, "--mass", 21) == 0
    report = json.loads(path.read_text())
    for name in OF_CLIP:
        assert name in report
    for name in OF_BAKE:
        assert set(report[name]) == {"before", "after"}
        assert all(isinstance(value, int | float) for value in report[name].values())
    for name in (*OF_CLIP, *OF_BAKE):
        assert name in report["units"] or name == "success"
    assert report["armature"] == report["source_action"] == "wave"
    assert report["frames"] == report["range"] == [1, 40]
    assert report["success"] is True
    assert report["fell_at"] is report["fell_frame"] is report["fell_measure"] is None
    assert report["why"] == ""
    assert report["real_time_factor"] > 0
    assert report["rate"] == 300
    assert report["fps"] == 60
    assert report["balance"] == report["gains"]["balance"] == "foot_forces"
    assert report["seed"] == 7
    assert report["noise"] == 0
    assert report["body"]["mass"] == pytest.approx(21)
    assert 0.9 < report["body"]["height"] < 1.3, "the child of the clip"
    assert report["bake_error"] < 0.5
    assert set(report["versions"]) == {"poise", "blender", "pybullet", "numpy", "python"}
    assert report["versions"]["blender"] == bpy.app.version_string
    assert "unknown" not in report["versions"].values()


def test_a_fall_is_baked_to_where_it_fell(tmp_path, import_clip, capsys):
    path = tmp_path / "report.json"
    import_clip("side_kick")
    shot = save(tmp_path)
    assert poise("bake", shot, "--report", path) == 3
    report = json.loads(path.read_text())
    assert report["success"] is False
    assert report["frames"][1] == report["fell_frame"] < report["range"][1]
    assert report["fell_at"] == pytest.approx((report["fell_frame"] - 1) / report["fps"])
    assert report["fell_measure"] in OF_CLIP
    assert f"frame {report['fell_frame']}" in report["why"]
    assert report["why"] in capsys.readouterr().err
    fell = report["fell_frame"]
    source, baked = (
        np.array(head_positions(tmp_path / "shot_poise.blend", name, "lfoot", (fell, fell + 20)))
        for name in ("side_kick", report["baked_action"])
    )
    assert np.linalg.norm(source - baked, axis=1)[0] > 0.01, "it has fallen"
    assert np.linalg.norm(source[1] - source[0]) > 0.05, "the source goes on"
    assert np.linalg.norm(baked[1] - baked[0]) < 5e-4, "the bake has ended"


def test_nothing_is_overwritten_unless_told(shot, capsys):
    target, report = shot.with_name("shot_poise.blend"), shot.with_name("report.json")
    target.write_bytes(b"precious")
    report.write_bytes(b"precious too")
    before = listing(shot.parent)
    assert poise("bake", shot, FRAMES) == 1
    assert "exists: name another file, or say --overwrite" in capsys.readouterr().err
    assert poise("bake", shot, FRAMES, "--output", shot.with_name("new.blend"), "--report", report)
    assert poise("inspect", shot, "--report", report) == 1
    assert listing(shot.parent) == before
    assert poise("bake", shot, FRAMES, "--overwrite", "--report", report) == 0
    assert json.loads(report.read_text())["file"] == str(target)
    assert target.read_bytes() != b"precious"


def test_in_place_replaces_the_shot_alone(shot):
    before = shot.read_bytes()
    assert poise("bake", shot, FRAMES, "--in-place") == 0
    assert set(listing(shot.parent)) == {"shot.blend"}
    assert shot.read_bytes() != before


def test_what_is_written_is_compressed_but_a_shot_that_was_not(shot):
    bpy.ops.wm.save_as_mainfile(filepath=str(shot), compress=False)
    assert shot.read_bytes().startswith(b"BLENDER")
    for verb, ending in (("bake", "poise"), ("clean", "clean")):
        assert poise(verb, shot, FRAMES) == 0
        written = shot.with_name(f"shot_{ending}.blend").read_bytes()
        assert not written.startswith(b"BLENDER")
        assert poise(verb, shot, FRAMES, "--in-place") == 0
        assert shot.read_bytes().startswith(b"BLENDER")
        assert shot.stat().st_size > 2 * len(written)


@pytest.mark.slow(captured=False)
@pytest.mark.once
def test_what_takes_long_is_told_beforehand(shot, capsys, monkeypatch):
    """By the speed of the first second: here each look at the clock is so much later."""
    for step, told in ((0.1, []), (15, ["0:14 min"]), (7200, ["1:58:00 h"])):
        ticking = SimpleNamespace(perf_counter=itertools.count(0, step).__next__)
        monkeypatch.setattr(command_rectify, "time", ticking)
        assert poise("simulate", shot, "--frames=1:120") == 0
        said = capsys.readouterr().err.splitlines()
        told = [f"Simulating 2 s will take about {time}." for time in told]
        assert [line for line in said if line.startswith("Simulating")] == told


def test_output_goes_where_it_is_told(shot):
    folder = shot.parent / "elsewhere"
    folder.mkdir()
    assert poise("bake", shot, FRAMES, "--output", folder / "out.blend") == 0
    assert set(listing(folder)) == {"out.blend"}


def test_the_open_file_is_baked_without_naming_it(shot):
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    assert poise("bake", FRAMES) == 0
    assert shot.with_name("shot_poise.blend").exists()


@pytest.mark.slow(captured=False)
def test_keys_are_thinned(shot):
    report = shot.with_name("report.json")
    counts = {}
    for option in ("--key-every=1", "--key-every=5", "--tolerance=5", "--source-keys"):
        assert poise("bake", shot, FRAMES, option, "--overwrite", "--report", report) == 0
        name = json.loads(report.read_text())["baked_action"]
        baked = keys(shot.with_name("shot_poise.blend"), name)
        counts[option] = sum(
            frame <= 40
            for (path, _index), points in baked.items()
            for frame, _value in points
            if '"LeftArm"' in path
        )
    assert counts["--source-keys"] == counts["--key-every=1"], "a captured clip keys every frame"
    assert counts["--key-every=5"] < 0.3 * counts["--key-every=1"]
    assert counts["--tolerance=5"] < 0.8 * counts["--key-every=1"]


def test_blending_starts_and_ends_on_the_source(shot):
    report = shot.with_name("report.json")
    options = ("--blend-in=10", "--blend-out=10", "--interpolation=linear", "--report", report)
    assert poise("bake", shot, FRAMES, *options) == 0
    told = json.loads(report.read_text())
    assert told["keys"]["blend_in"] == told["keys"]["blend_out"] == 10
    assert told["keys"]["interpolation"] == "LINEAR"
    result = shot.with_name("shot_poise.blend")
    frames = (1, 20, 40)
    source, baked = (
        head_positions(result, name, "LeftHand", frames) for name in ("wave", told["baked_action"])
    )
    apart = np.linalg.norm(baked - source, axis=1)
    assert apart[0] < 5e-4
    assert apart[1] > 5e-4, "in between it is simulated"
    assert apart[2] < 5e-4


@pytest.mark.slow(captured=False)
def test_a_bake_is_shown_by_a_strip_and_its_source_is_read_again(shot):
    report = shot.with_name("report.json")
    assert poise("bake", shot, FRAMES, "--nla", "--report", report) == 0
    told, result = json.loads(report.read_text()), shot.with_name("shot_poise.blend")
    assert told["keys"]["nla"] is True and told["tracks_over"] == []
    bpy.ops.wm.open_mainfile(filepath=str(result))
    (animation,) = (o.animation_data for o in bpy.data.objects if o.type == "ARMATURE")
    assert animation.action is None
    tracks = [(t.name, t.mute, t.strips[0].action.name) for t in animation.nla_tracks]
    assert tracks == [("wave", True, "wave"), ("wave Poise", False, told["baked_action"])]
    below, over = animation.nla_tracks
    for mutes in ((True, False), (False, True), (True, True)):  # as somebody may have muted them
        below.mute, over.mute = mutes
        bpy.ops.wm.save_as_mainfile(filepath=str(result), copy=True)
        for option in ((), ("--action", "wave")):
            command = ("inspect", result, FRAMES, *option, "--report", report, "--overwrite")
            assert poise(*command) == 0
            assert json.loads(report.read_text())["source_action"] == "wave"
        bpy.ops.wm.open_mainfile(filepath=str(result))
        (animation,) = (o.animation_data for o in bpy.data.objects if o.type == "ARMATURE")
        below, over = animation.nla_tracks


def test_frames_and_rate_of_the_clip_are_obeyed(shot):
    report = shot.with_name("report.json")
    assert poise("inspect", shot, "--frames=10:70:2", "--fps=120", "--report", report) == 0
    told = json.loads(report.read_text())
    assert told["range"] == [10, 70]
    assert told["samples"] == 31
    assert told["fps"] == 60, "every second frame at 120"
    # What begins with a minus is no option where it is a number.
    assert poise("inspect", shot, "--frames", "-5:20", "--report", report, "--overwrite") == 0
    assert json.loads(report.read_text())["range"] == [-5, 20]


def test_simulate_tells_and_writes_a_report_alone(shot, capsys):
    before = listing(shot.parent)
    assert poise("simulate", shot, FRAMES) == 0
    assert "It stood to the end." in capsys.readouterr().err
    assert listing(shot.parent) == before
    path = shot.parent / "report.json"
    push = "--push=20,0.2,400,0,0"
    assert poise("simulate", shot, FRAMES, push, "--report", path) == 3
    assert set(listing(shot.parent)) == {*before, "report.json"}
    report = json.loads(path.read_text())
    assert report["baked_action"] is report["frames"] is None
    assert report["success"] is False
    assert report["why"] in capsys.readouterr().err


def test_a_style_makes_the_arms_looser(shot):
    off = {}
    for style in ("close", "relaxed"):
        path = shot.parent / f"{style}.json"
        assert poise("simulate", shot, FRAMES, "--style", style, "--report", path) == 0
        report = json.loads(path.read_text())
        assert report["style"] == style
        off[style] = report["tracking_error_local"]
    assert off["relaxed"] > 1.05 * off["close"]


def test_inspect_tells_and_writes_nothing(shot, capsys):
    before = listing(shot.parent)
    assert poise("inspect", shot) == 0
    told = capsys.readouterr().out
    for word in ("wave", "body", "ground", "stance", "rig map", "LeftUpLeg", "upper_arm_r"):
        assert word in told
    assert " to the ball (by LeftToeBase, RightToeBase), " in told
    assert listing(shot.parent) == before


def test_inspect_reports_map_body_and_stance(shot):
    path = shot.with_name("report.json")
    assert poise("inspect", shot, "--report", path) == 0
    told = json.loads(path.read_text())
    assert told["rig"]["bones"]["thigh_l"] == ["LeftUpLeg"]
    assert sum(told["segment_masses"].values()) == pytest.approx(told["body"]["mass"], rel=1e-3)
    assert sum(told["stance"].values()) == pytest.approx(1)
    assert told["stance"]["dual"] > 0.9
    foot = told["foot"]
    assert foot["ball_bones"] == ["LeftToeBase", "RightToeBase"]
    assert 0 < foot["heel"] < foot["ball"] < foot["toe"] and foot["depth"] > 0
    assert told["units"]["foot"] == "m"
    assert set(listing(shot.parent)) == {"shot.blend", "report.json"}


def test_inspect_knows_colliders_and_frames_beside_the_animation(shot, import_clip, capsys):
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    import_clip("stand")
    bpy.ops.wm.save_mainfile()
    assert poise("inspect", shot) == 1
    assert "has several armatures: choose one of" in capsys.readouterr().err
    assert poise("inspect", shot, "--with", "stand", "--frames=0:900") == 0
    told = capsys.readouterr()
    assert told.out.startswith("armature  wave")
    assert "'wave' is animated from frame " in told.err and " to 900." in told.err


def test_the_animated_one_of_several_armatures_is_taken(tmp_path, import_clip):
    import_clip("wave")
    bpy.ops.object.armature_add()
    shot = tmp_path / "shot.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(shot))
    assert poise("inspect", shot, FRAMES) == 0


@pytest.mark.once
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "required"),
        (("tune",), "invalid choice"),
        (("bake", "--frames", "1-60"), "'1-60' is not a range of frames such as 1:120"),
        (("bake", "--frames", "1:"), "'1:' is not a range"),
        (("bake", "--mass", "-70"), "'-70' is not a number from"),
        (("bake", "--mass", "nan"), "'nan' is not a number from"),
        (("bake", "--rate", "fast"), "'fast' is not a number from"),
        (("bake", "--style", "angry"), "invalid choice"),
        (("bake", "--fps", "0"), "'0' is not a number from"),
        (("bake", "--noise", "-1"), "'-1' is not a number from 0"),
        (("bake", "--seed", "x"), "'x' is not a whole number from 0"),
        (("bake", "--seed", "-1"), "'-1' is not a whole number from 0"),
        (("bake", "--balance", "luck"), "invalid choice"),
        (("bake", "--key-every", "0"), "'0' is not a whole number from 1"),
        (("bake", "--tolerance", "0"), "'0' is not a number from"),
        (("bake", "--key-every", "2", "--tolerance", "1"), "not allowed with"),
        (("bake", "--blend-in", "-1"), "'-1' is not a whole number from 0"),
        (("bake", "--in-place", "--output", "x.blend"), "not allowed with"),
        (("bake", "--arm", "wave"), "unrecognized arguments"),
        (("inspect", "--output", "x.blend"), "unrecognized arguments"),
    ],
)
def test_wrong_usage_ends_with_2(shot, capsys, arguments, message):
    before = listing(shot.parent)
    arguments = (*arguments[:1], shot, *arguments[1:]) if arguments else ()
    assert poise(*arguments) == 2
    assert message in capsys.readouterr().err
    assert listing(shot.parent) == before


def test_targets_that_are_the_shot_itself_are_wrong_usage(shot, capsys):
    before = listing(shot.parent)
    assert poise("bake", shot, "--output", shot) == 2
    for verb in ("bake", "clean"):
        assert poise(verb, shot, "--output", shot.with_name("out.txt")) == 2
        assert "--output is to be a .blend file" in capsys.readouterr().err
    assert poise("bake", shot, "--report", shot, "--overwrite") == 2
    assert poise("inspect", shot, "--report", shot, "--overwrite") == 2
    assert listing(shot.parent) == before


def test_no_other_name_of_the_shot_lets_it_be_overwritten(shot, capsys):
    """Not through a link to it, a link to its folder, or a way round."""
    way_round, link, folder = shot.parent / "down", shot.parent / "link", shot.parent / "folder"
    way_round.mkdir()
    link.symlink_to(shot)
    folder.symlink_to(shot.parent, target_is_directory=True)
    before = shot.read_bytes()
    for name in (way_round / ".." / shot.name, link, folder / shot.name):
        for command, option in (
            ("bake", "--output"),
            ("clean", "--output"),
            ("bake", "--report"),
            ("bake", "--strip"),
            ("clean", "--write-contacts"),
            ("inspect", "--plot"),
            ("optimize", "--output"),
            ("robustness", "--output"),
        ):
            assert poise(command, shot, option, name, "--overwrite") == 2, (command, option, name)
    assert shot.read_bytes() == before and link.is_symlink()
    plan = shot.parent / "plan.json"
    first = shot.parent / "first.blend"
    assert poise("clean", shot, "--output", first, "--write-contacts", plan) == 0
    edited = plan.read_text()
    given = ("--contacts", plan, "--report", plan, "--overwrite")
    assert poise("clean", shot, "--output", shot.parent / "c.blend", *given) == 2
    assert "--report names 'plan.json' itself" in capsys.readouterr().err
    assert plan.read_text() == edited


@pytest.mark.parametrize(
    ("command", "option", "reads"),
    [
        ("bake", "--report", "--rig"),
        ("bake", "--strip", "--morphology"),
        ("simulate", "--report", "--gains"),
        ("simulate", "--write-contacts", "--rig"),
        ("inspect", "--report", "--rig"),
        ("inspect", "--plot", "--rig"),
        ("clean", "--report", "--rig"),
        ("optimize", "--output", "--warm-start"),
        ("optimize", "--report", "--morphology"),
        ("robustness", "--output", "--gains"),
        ("robustness", "--report", "--rig"),
    ],
)
def test_nothing_that_is_read_is_overwritten(shot, capsys, command, option, reads):
    read, link = shot.with_name("read.json"), shot.with_name("link.png")
    read.write_text("made by hand")
    link.symlink_to(read)
    assert poise(command, shot, reads, read, option, link, "--overwrite") == 2
    assert f"{option} names 'link.png' itself: name another file" in capsys.readouterr().err
    assert read.read_text() == "made by hand"


def test_libraries_are_not_overwritten(shot):
    """The set and the character of a shot are in files of their own."""
    library = shot.with_name("library.blend")
    bpy.data.libraries.write(str(library), {bpy.data.objects.new("set", None)})
    with bpy.data.libraries.load(str(library), link=True) as (_, into):
        into.objects = ["set"]
    bpy.context.scene.collection.objects.link(into.objects[0])
    bpy.ops.wm.save_as_mainfile(filepath=str(shot))
    before = library.read_bytes()
    for command in ("bake", "clean"):
        assert poise(command, shot, "--output", library, "--overwrite") == 2
    assert poise("inspect", shot, "--report", library, "--overwrite") == 2
    assert library.read_bytes() == before


def test_what_a_shot_uses_is_not_overwritten(shot, capsys):
    """Images, texts and the like."""
    image, text = shot.with_name("look.png"), shot.with_name("notes.py")
    made = bpy.data.images.new("look", 4, 4)
    made.filepath_raw, made.file_format, made.use_fake_user = str(image), "PNG", True
    made.save()
    text.write_text("made by hand")
    bpy.data.texts.load(str(text))
    bpy.ops.wm.save_as_mainfile(filepath=str(shot))
    before = image.read_bytes()
    for path, option in ((image, "--report"), (text, "--report"), (image, "--strip")):
        command = "bake" if option == "--strip" else "simulate"
        assert poise(command, shot, option, path, "--overwrite") == 2
        told = f"{option} names '{path.name}', which the shot uses: name another file"
        assert told in capsys.readouterr().err
    assert image.read_bytes() == before and text.read_text() == "made by hand"


def linked(library):
    """The object that is named as the file, linked from it."""
    with bpy.data.libraries.load(str(library), link=True, relative=True) as (_, into):
        into.objects = [library.stem]
    return into.objects[0]


@pytest.mark.slow(captured=False)
@pytest.mark.once
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("compressed", [False, True])
def test_a_library_that_is_a_pipe_is_waited_for_by_nobody(shot, compressed):
    """Nor one that a library links: Blender waits for what is written to it."""
    inner, outer = (shot.with_name(f"{name}.blend") for name in ("inner", "outer"))
    bpy.data.libraries.write(str(inner), {bpy.data.objects.new("inner", None)})
    made = bpy.data.objects.new("outer", None)
    made.parent = linked(inner)
    bpy.data.libraries.write(str(outer), {made}, compress=compressed)
    bpy.data.objects.remove(made)
    if bpy.app.version < (4, 3):
        pytest.skip("it writes no links to what is linked itself")
    bpy.context.scene.collection.objects.link(linked(outer))
    bpy.ops.wm.save_as_mainfile(filepath=str(shot), compress=compressed)
    inner.unlink()
    assert module("inspect", shot).returncode == 0, "one that is missing is none that is a pipe"
    os.mkfifo(inner)
    done = module("bake", shot, FRAMES)
    assert done.returncode == 1
    (told,) = done.stderr.strip().splitlines()
    assert "inner.blend' of '" in told and "outer.blend' is a device or a pipe: put" in told


def test_a_checkpoint_is_a_file_of_its_own(shot):
    """It is removed in the end."""
    output, before = shot.with_name("out.blend"), shot.read_bytes()
    rectified = ("--rectify", "draft", "--overwrite")
    for command, *names in (
        ("bake", "--output", output, "--checkpoint", output),
        ("bake", "--report", output, "--checkpoint", output),
        ("bake", "--checkpoint", shot),
        ("simulate", "--checkpoint", shot),
        ("simulate", "--report", output, "--checkpoint", output),
    ):
        assert poise(command, shot, *names, *rectified) == 2
    assert shot.read_bytes() == before and not output.exists()


@pytest.mark.once
@pytest.mark.parametrize("name", ["pipe.blend", "pipe.bvh"])
def test_only_files_are_read(tmp_path, monkeypatch, capsys, name):
    """Nothing waits for the other end of a pipe."""
    os.mkfifo(tmp_path / name)
    monkeypatch.setattr(command_files, "import_shot", lambda *_: pytest.fail("is read"))
    monkeypatch.setattr(command_files, "_starts_with", lambda *_: pytest.fail("is read"))
    for verb in ("bake", "simulate", "inspect", "clean", "optimize", "robustness"):
        assert poise(verb, tmp_path / name) == 1
        told = capsys.readouterr().err
        assert told == f"poise: '{tmp_path / name}' is a device or a pipe: name a file.\n"


def test_only_files_are_written_and_links_stay(shot, capsys):
    os.mkfifo(shot.parent / "pipe")
    assert poise("inspect", shot, "--report", shot.parent / "pipe", "--overwrite") == 1
    assert "is a device or a pipe: name a file" in capsys.readouterr().err
    assert (shot.parent / "pipe").is_fifo()
    kept, link = shot.parent / "kept.json", shot.parent / "link.json"
    kept.write_text("{}")
    link.symlink_to(kept)
    assert poise("inspect", shot, "--report", link, "--overwrite") == 0
    assert link.is_symlink() and json.loads(kept.read_text())["rig"]


def test_no_file_at_all_is_wrong_usage(capsys):
    assert poise("bake") == 2
    assert "no file is open: name shot.blend" in capsys.readouterr().err


def test_choices_are_in_small_letters_and_taken_in_any(capsys):
    assert poise("bake", "--help") == 0
    told = capsys.readouterr().out
    for choices in ("linear,bezier,constant", "bone,object,none", "ik,fk"):
        assert f"{{{choices}}}" in told
    parsed = command_line._parser("poise").parse_args(["bake", "--legs=FK", "--root-motion=Bone"])
    assert (parsed.legs, parsed.root_motion) == ("fk", "bone")


def test_help_and_version_end_with_0(capsys):
    assert poise("--help") == poise("bake", "--help") == poise("--version") == 0
    told = capsys.readouterr().out
    assert "3 baked, but it fell" in told
    assert "poise 0." in told


def test_blender_learns_the_command_and_forgets_it(monkeypatch):
    known = {}
    learn, forget = bpy.utils.register_cli_command, bpy.utils.unregister_cli_command

    def register(name, run):
        handle = learn(name, run)
        known[name] = handle, run
        return handle

    def unregister(handle):
        forget(handle)
        (name,) = (name for name, (own, _run) in known.items() if own is handle)
        del known[name]

    monkeypatch.setattr(bpy.utils, "register_cli_command", register)
    monkeypatch.setattr(bpy.utils, "unregister_cli_command", unregister)
    for _ in range(2):
        addon.register()
        assert list(known) == ["poise"]
        assert known["poise"][1](["--version"]) == 0
        addon.unregister()
        assert not known


def test_module_bakes_in_a_process_of_its_own(shot):
    """The same shot in this process and in another: the same keys, and the same report."""
    reports = [shot.with_name(f"report{i}.json") for i in range(2)]
    outputs = [shot.with_name(f"out{i}.blend") for i in range(2)]
    noise = ("--noise", 5, "--seed", 3)
    options = ("bake", shot.name, FRAMES, *noise, "--output", outputs[0].name)
    # From the shot's folder, so that relative names are tried too.
    done = module(*options, "--report", reports[0].name, cwd=shot.parent)
    assert done.returncode == 0, done.stderr
    assert "It stood to the end." in done.stderr
    assert poise("bake", shot, FRAMES, *noise, "--output", outputs[1], "--report", reports[1]) == 0
    told = [json.loads(path.read_text()) for path in reports]
    for report in told:
        for name in ("file", "real_time_factor", "bake_time"):
            del report[name]
    assert told[0] == told[1]
    name = told[0]["baked_action"]
    assert keys(outputs[0], name) == keys(outputs[1], name)
    other = shot.with_name("other.blend")
    assert poise("bake", shot, FRAMES, "--noise", 5, "--seed", 4, "--output", other) == 0
    assert keys(other, name) != keys(outputs[1], name)


def test_module_tells_that_bpy_is_missing():
    code = "import runpy, sys; sys.modules['bpy'] = None; runpy.run_module('poise', {}, '__main__')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "install `bpy` for Python 3.11 or 3.13" in done.stderr


def test_nothing_is_left_when_saving_fails(shot, monkeypatch, capsys):
    before = listing(shot.parent)

    def full_disk(path, compressed):
        path.write_bytes(b"half a file")
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(command_line, "save", full_disk)
    report = shot.with_name("report.json")
    assert poise("bake", shot, FRAMES, "--report", report) == 1
    assert "cannot be written (No space left on device)" in capsys.readouterr().err
    assert listing(shot.parent) == before


def test_nothing_is_left_when_the_report_fails(shot, monkeypatch):
    before = listing(shot.parent)

    def full_disk(path, text, **options):
        Path(path).touch()
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "write_text", full_disk)
    assert poise("bake", shot, FRAMES, "--report", shot.with_name("report.json")) == 1
    assert listing(shot.parent) == before


# --- Which scene, and what it says ---------------------------------------------------------------


def test_what_is_told_is_one_line_whatever_the_name(tmp_path, capsys):
    """Farms, and Poise's own batch, read the last line."""
    assert poise("inspect", tmp_path / "first\nsecond\tthird.blend") == 1
    told = capsys.readouterr().err.splitlines()
    assert told == [
        f"poise: There is no file '{tmp_path}/first\\nsecond\\tthird.blend': check its name."
    ]


def test_a_scene_is_chosen_by_its_name(shot, capsys):
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    bpy.data.scenes[0].name = "take"
    bpy.context.window.scene = bpy.data.scenes.new("empty")
    bpy.ops.wm.save_mainfile()
    assert poise("inspect", shot) == 1
    told = "The scene 'empty' has no armature: choose another scene, 'take', which has one."
    assert told in capsys.readouterr().err
    assert poise("inspect", shot, "--scene", "take") == 0
    assert poise("bake", shot, FRAMES, "--scene", "take") == 0
    assert poise("inspect", shot, "--scene", "none") == 1
    told = capsys.readouterr().err
    assert "There is no scene 'none': choose one of 'empty', 'take'." in told


def test_several_characters_are_baked_one_after_the_other(shot, import_clip):
    """Each from its source, and none touches what the one before has."""
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    twin = bpy.data.objects["wave"].copy()
    twin.name, twin.location.x = "twin", 3.0
    twin.animation_data.action = twin.animation_data.action.copy()
    bpy.context.scene.collection.objects.link(twin)
    bpy.ops.wm.save_mainfile()
    output = shot.with_name("both.blend")
    assert poise("bake", shot, FRAMES) == 1, "which of them?"
    assert poise("bake", shot, FRAMES, "--armature=wave", "--output", output) == 0
    bpy.ops.wm.open_mainfile(filepath=str(output))
    first = snapshot_of("wave")
    assert poise("bake", output, FRAMES, "--armature=twin", "--in-place") == 0
    bpy.ops.wm.open_mainfile(filepath=str(output))
    assert snapshot_of("wave") == first
    for name in ("wave", "twin"):
        action, slot = compat.assigned(bpy.data.objects[name])
        assert action.name.endswith(" Poise") and bake_marks.mark_of(action, slot)
    assert len({snapshot_of(name)[0] for name in ("wave", "twin")}) == 2


def snapshot_of(name):
    """Name of what animates an armature, and all its keys."""
    action, slot = compat.assigned(bpy.data.objects[name])
    curves = compat.curves(action, slot)
    keys = [(c.data_path, c.array_index, [tuple(k.co) for k in c.keyframe_points]) for c in curves]
    return action.name, keys


def test_gravity_that_is_not_followed_is_told(shot, capsys):
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    bpy.context.scene.gravity = (0, 0, -1.62)
    bpy.ops.wm.save_mainfile()
    report = shot.with_name("report.json")
    assert poise("bake", shot, FRAMES, "--report", report) == 0
    sentence = "The scene's gravity (0, 0, -1.62 m/s²) is not followed"
    assert sentence in capsys.readouterr().err
    assert json.loads(report.read_text())["warnings"][0].startswith(sentence)
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    bpy.context.scene.use_gravity = False
    assert next(warnings_of(bpy.context.scene)).startswith("The scene's gravity (off) is not")


def test_blocked_python_drivers_are_told(shot, capsys):
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    driver = bpy.data.objects["wave"].driver_add("delta_location", 0).driver
    driver.type, driver.expression = "SCRIPTED", "__import__('math').cos(0)"
    bpy.ops.wm.save_mainfile()
    before = bpy.context.preferences.filepaths.use_scripts_auto_execute
    bpy.context.preferences.filepaths.use_scripts_auto_execute = False
    report = shot.with_name("report.json")
    try:
        assert poise("inspect", shot, "--report", report) == 0
    finally:
        bpy.context.preferences.filepaths.use_scripts_auto_execute = before
    assert "Blender has blocked Python drivers" in capsys.readouterr().err
    assert "which may change the pose" in json.loads(report.read_text())["warnings"][0]


def test_what_rigify_leaves_in_its_files_is_no_reason_to_warn(monkeypatch):
    blocked = SimpleNamespace(autoexec_fail=True, autoexec_fail_message="Text 'rig_ui.py'")
    monkeypatch.setattr(shots, "bpy", SimpleNamespace(app=blocked))
    assert list(warnings_of(bpy.context.scene)) == []
    blocked.autoexec_fail_message = "Text 'moves_bones.py'"
    assert "which may change the pose" in next(warnings_of(bpy.context.scene))


def test_reports_are_no_shots_and_names_have_an_end(shot, capsys):
    """Another shot became JSON where its name was given by mistake."""
    other = shot.with_name("other.blend")
    other.write_bytes(shot.read_bytes())
    for option in ("--report", "--strip"):
        assert poise("bake", shot, f"{option}={other}", "--overwrite") == 2
        told = capsys.readouterr().err
        assert f"{option} names 'other.blend', which would be a shot: give it another" in told
    assert other.read_bytes() == shot.read_bytes()
    for name in ("q" * 248 + ".blend", "q" * 300 + ".blend"):
        assert poise("bake", shot, "--output", shot.with_name(name)) == 1
        assert "is too long for the disk: choose a shorter one." in capsys.readouterr().err


@pytest.mark.slow(captured=False)
def test_a_guessed_unit_is_told_and_can_be_overruled(shot, capsys):
    """Newtons mean nothing without it."""
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    bpy.data.objects["wave"].scale *= 100
    bpy.ops.wm.save_mainfile()
    report, short = shot.with_name("report.json"), ("--frames=1:20", "--overwrite")
    for unit, guessed in (((), True), (("--unit=0.02",), False)):
        for command in ("inspect", "bake", "simulate", "clean"):
            assert poise(command, shot, *short, *unit, "--report", report) == 0
            told = capsys.readouterr().err
            assert ("by the length of the legs: --unit says otherwise" in told) == guessed, command
            content = json.loads(report.read_text())
            content = content.get("body", content)
            assert content["unit_guessed"] == guessed
            assert (content["metres_per_unit"] == 0.02) != guessed


def test_an_armature_in_an_instance_is_told_of(import_clip):
    armature = import_clip("stand")
    inside = bpy.data.collections.new("character")
    inside.objects.link(armature)
    bpy.context.scene.collection.objects.unlink(armature)
    empty = bpy.data.objects.new("Character", None)
    empty.instance_type, empty.instance_collection = "COLLECTION", inside
    bpy.context.scene.collection.objects.link(empty)
    with pytest.raises(RigError, match="'stand' is in 'Character', an instance of a collection"):
        find_armature(bpy.context.scene)


def test_one_process_at_a_time_writes_an_output(shot, capsys):
    output = shot.with_name("out.blend")
    with claimed(output, ""):
        for verb in ("bake", "clean"):
            assert poise(verb, shot, FRAMES, "--output", output) == 1
            assert f"Another process writes '{output}': wait for it" in capsys.readouterr().err
    assert not output.exists()
    assert poise("bake", shot, FRAMES, "--output", output) == 0
    assert set(listing(shot.parent)) == {shot.name, "out.blend"}


@pytest.mark.slow(captured=False)
def test_cleaned_and_simulated_in_place_twice_reads_the_first_source(shot, capsys):
    for _ in range(2):
        assert poise("bake", shot, FRAMES, "--clean-feet", "--in-place") == 0
    told = capsys.readouterr().err
    assert "'wave Poise Clean' is a result of Poise: its source is read" in told
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    names = {action.name for action in bpy.data.actions if source_values.MARK not in action}
    assert names == {"wave", "wave Poise Clean", "wave Poise Clean Poise"}


@pytest.mark.slow(captured=False)
@pytest.mark.parametrize(("verb", "ending"), [("bake", "Poise"), ("clean", "Poise Clean")])
def test_in_place_twice_reads_the_source_again(shot, capsys, verb, ending):
    assert poise(verb, shot, FRAMES, "--in-place") == 0
    once = capsys.readouterr().err
    assert poise(verb, shot, FRAMES, "--in-place") == 0
    told = capsys.readouterr().err
    assert f"'wave {ending}' is a result of Poise: its source is read" in told
    assert ("It is a keeper." in once) == ("It is a keeper." in told)
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    assert [action.name for action in bpy.data.actions] == ["wave", f"wave {ending}"]
    assert poise(verb, shot, FRAMES, "--action", f"wave {ending}", "--in-place") == 0
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    assert f"wave {ending} {ending}" in bpy.data.actions


def test_how_large_a_body_is_that_is_no_person_is_told(shot, capsys):
    """A metre may have been taken for a foot."""
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    bpy.context.scene.unit_settings.scale_length = 0.3048
    bpy.ops.wm.save_as_mainfile(filepath=str(shot))
    report = shot.with_name("small.json")
    assert poise("simulate", shot, "--frames=1:30", "--report", report) in (0, 3)
    (told,) = (t for t in json.loads(report.read_text())["warnings"] if "The body is" in t)
    assert re.search(
        r"The body is 0\.\d\d m tall and has [\d.]+ kg, as one unit .* 0\.3048 m", told
    )
    assert told in capsys.readouterr().err

# SPDX-License-Identifier: GPL-3.0-or-later
"""Falls that go on, through Blender: the command line, the bake, what is told of them."""

import json

import bpy
import numpy as np
import pytest
from helpers.commands import poise, save

from poise.addon.plots import batch_strip
from poise.addon.rigs import reference
from poise.addon.rigs.sampling import run
from poise.addon.settings import method
from poise.addon.shots import rectify
from poise.addon.shots.shot import Shot, ShotOptions
from poise.addon.sidebar import takes_panel
from poise.controller.body.bake_measures import UNITS
from poise.controller.exceptions import SettingsError
from poise.controller.geometry.skeleton import LANDMARK_INDEX, SEGMENT_INDEX


@pytest.fixture
def fallen(import_clip):
    """fallen(kind) -> a Shot of somebody who loses balance in a kick, or another clip,
    simulated."""
    there = set()

    def perform(kind, clip="side_kick", **options):
        if clip not in there:
            import_clip(clip)
            there.add(clip)
        shot = Shot(bpy.context.scene, ShotOptions(when_it_falls=kind, **options))
        run(shot.read())
        run(shot.simulate())
        return shot

    return perform


def heights(armature, frames):
    """Height of the highest joint [scene units] at frames."""
    found = []
    for frame in frames:
        bpy.context.scene.frame_set(round(frame))
        found.append(max((armature.matrix_world @ b.head).z for b in armature.pose.bones))
    return np.array(found)


def test_a_fall_that_goes_on_is_baked_to_the_end(tmp_path, import_clip, capsys):
    """What ends with status 3 where it falls is what was asked for if it is to fall."""
    import_clip("dance")
    shot, path = save(tmp_path), tmp_path / "report.json"
    strip = tmp_path / "strip.svg"
    given = ("--when-it-falls", "limp", "--report", path, "--strip", strip)
    assert poise("bake", shot, *given) == 0
    report = json.loads(path.read_text())
    assert report["when_it_falls"] == "limp"
    assert report["success"] is False and report["filled"] is True
    assert report["frames"] == report["range"] and report["fell_frame"] < report["range"][1]
    assert report["why"].startswith(f"Fell at {report['fell_at']:.2f} s")
    told = capsys.readouterr().err
    assert report["why"] in told and "The bake ends at frame" not in told
    assert report["bake_error"] < 0.5 and report["deepest"] < 10
    assert report["verdict"]["keeper"] is False
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot_poise.blend"))
    armature = next(o for o in bpy.data.objects if o.type == "ARMATURE")
    first, last = heights(armature, report["range"])
    assert last < 0.4 * first, "it lies"
    assert batch_strip._FELL in strip.read_text()


@pytest.mark.slow(captured=False)
@pytest.mark.once
def test_what_the_source_measures_is_the_same_whatever_becomes_of_it(tmp_path, import_clip):
    import_clip("dance")
    shot, path, found = save(tmp_path), tmp_path / "report.json", []
    for way in ("limp", "stiff"):
        assert poise("bake", shot, "--when-it-falls", way, "--report", path, "--overwrite") == 0
        report = json.loads(path.read_text())
        found.append([report[name] for name in UNITS])
    limp, stiff = found
    assert [figure["before"] for figure in limp] == [figure["before"] for figure in stiff]
    assert [figure["after"] for figure in limp] != [figure["after"] for figure in stiff]


@pytest.mark.slow(captured=False)
@pytest.mark.once
def test_who_goes_on_is_baked_with_what_hangs_on_it(tmp_path, import_clip):
    """The hands' own bones stop in the fall, and go on where the report says."""
    armature = import_clip("arm")
    hand = armature.pose.bones["LeftWrist"]
    hand.rotation_mode = "XYZ"
    for frame in range(1, 613):
        hand.rotation_euler = (0.005 * frame, 0, 0)
        hand.keyframe_insert("rotation_euler", frame=frame)
    name, shot, path = hand.name, save(tmp_path), tmp_path / "report.json"
    given = ("--when-it-falls", "brace", "--get-up", "--once-up", "go_on", "--report", path)
    assert poise("bake", shot, *given, "--push", "60,0.2,0,600,0", "--frames=1:840") == 0
    report = json.loads(path.read_text())
    assert report["once_up"] == "go_on" and report["filled"] is True
    ((first, last),) = report["went_on"]
    assert first == pytest.approx(report["fell_frame"], abs=1)
    assert f"from frame {first:g}, as far as frame {last:g}" in report["why"]
    assert report["bake_error"] < 0.5
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot_poise.blend"))
    armature = next(o for o in bpy.data.objects if o.type == "ARMATURE")
    turned, rate = [], report["fps"]
    up = report["up_at"] * rate + 1
    for frame in (up - 2 * rate, up - 1.1 * rate, up, 840):
        bpy.context.scene.frame_set(round(frame))
        turned.append(armature.pose.bones[name].matrix_basis.to_euler().x / 0.005)
    assert turned[0] == pytest.approx(turned[1]) and turned[0] > first + 5, "it stops"
    assert turned[2] == pytest.approx(first, abs=0.5)
    slower = 0.75 * rate  # it stands for half a second, and comes to its speed in another one
    assert turned[3] == pytest.approx(last, abs=1)
    assert last == pytest.approx(first + 840 - up - slower, abs=1)


@pytest.mark.slow(captured=False)
@pytest.mark.once
def test_a_get_up_is_baked_and_told(tmp_path, import_clip, capsys):
    import_clip("side_kick")
    shot, path = save(tmp_path), tmp_path / "report.json"
    given = ("--when-it-falls", "limp", "--get-up", "--report", path)
    # The clip is short: it goes on for as long as the scene asks.
    last = bpy.context.scene.frame_end
    assert poise("bake", shot, *given, f"--frames=1:{last + 600}") == 0
    report = json.loads(path.read_text())
    assert report["get_up"] is True and report["filled"] is True and not report["success"]
    assert report["rest_at"] < report["up_at"] and report["up_at"] < report["rest_at"] + 7
    assert 0 < report["help"]["mean"] < report["help"]["most"]
    assert report["units"]["help"] == "N" and report["units"]["help_torque"] == "N m"
    assert "stands again from" in report["why"] and report["why"] in capsys.readouterr().err
    assert report["bake_error"] < 0.5
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot_poise.blend"))
    armature = next(o for o in bpy.data.objects if o.type == "ARMATURE")
    first, low, end = report["range"][0], report["rest_at"] * report["fps"] + 1, report["range"][1]
    stands, lies, up = heights(armature, (first, low, end))
    assert lies < 0.4 * stands and up > 0.85 * stands


def test_who_is_to_get_up_is_to_fall(tmp_path, import_clip, capsys):
    import_clip("side_kick")
    shot = save(tmp_path)
    for command in ("bake", "simulate"):
        assert poise(command, shot, "--get-up") == 2
        told = capsys.readouterr().err
        assert "--get-up needs --when-it-falls limp, brace, roll or stiff" in told
        falls = ("--when-it-falls", "limp")
        assert poise(command, shot, *falls, "--once-up", "go_on") == 2
        assert "--once-up needs --get-up" in capsys.readouterr().err


def test_stopping_is_the_default(tmp_path, import_clip):
    import_clip("side_kick")
    shot, path = save(tmp_path), tmp_path / "report.json"
    assert poise("simulate", shot, "--report", path) == 3
    report = json.loads(path.read_text())
    assert report["when_it_falls"] == "stop" and report["filled"] is False
    assert report["rest_at"] is report["deepest"] is None


def test_the_verdict_is_on_what_stood(fallen):
    stopped, fell = fallen("stop"), fallen("brace")
    assert fell.recording.standing <= len(stopped.recording) < len(fell.recording)
    found, before = (shot.judge().as_dict()["measures"] for shot in (fell, stopped))
    assert found["pose"]["after"] == pytest.approx(before["pose"]["after"], rel=0.3)
    assert not fell.judge().keeper


def test_the_keys_of_a_fall_are_what_was_simulated(fallen):
    shot = fallen("brace")
    run(shot.baking())
    run(shot.measure())
    assert shot.baked.error_mm < 0.5
    assert shot.baked.frames[1] == shot.reading.frames[-1]
    assert set(shot.measures) >= {"foot_slide", "jitter"}


def placed(shot, frames):
    """(F, landmarks, 3) of what the armature of a shot shows at frames [m], {bone: (F, 2, 3)} its
    heads and tails."""
    armature = shot.armature
    poses, ends = [], []
    for frame in frames:
        bpy.context.scene.frame_set(int(frame), subframe=float(frame % 1))
        world = armature.matrix_world
        poses.append([np.array(world @ bone.matrix) for bone in armature.pose.bones])
        ends.append([(world @ b.head, world @ b.tail) for b in armature.pose.bones])
    names = [bone.name for bone in armature.pose.bones]
    rig_map, unit = shot.reading.rig_map, shot.reading.metres_per_unit
    points = unit * reference.landmark_positions(armature, rig_map, names, np.array(poses))
    ends = unit * np.array(ends)
    return points, {name: ends[:, i] for i, name in enumerate(names)}


@pytest.mark.slow(captured=False)
def test_a_fall_is_baked_where_it_was_simulated(fallen):
    """Bones of spine and neck that share a turn put shoulders and head into the floor."""
    shot = fallen("limp", "dance", frames=(1, 180))
    recording = shot.recording
    run(shot.baking())
    points, _ = placed(shot, shot.reading.frames)
    wanted = shot.performed().positions
    known = np.isfinite(wanted).all((0, 2)) & np.isfinite(points).all((0, 2))
    assert np.abs(points - wanted)[:, known].max() < 2e-3
    after = slice(recording.stood + round(0.3 * recording.motion.rate), None)
    segments = [SEGMENT_INDEX[name] for name in ("head", "upper_arm_l", "upper_arm_r")]
    marks = [LANDMARK_INDEX[name] for name in ("neck", "shoulder_l", "shoulder_r")]
    apart = recording.joints()[after][:, segments] - points[after][:, marks]
    assert np.linalg.norm(apart, axis=2).max() < 1e-3


@pytest.mark.slow(captured=False)
def test_what_is_not_simulated_stops_on_a_body_that_lies(fallen):
    """Clavicles, hands and neck went on with the animation, and so did all after the range."""
    shot = fallen("limp", "dance", frames=(1, 230))
    recording, last = shot.recording, shot.reading.frames[-1]
    assert last + 20 < shot.armature.animation_data.action.frame_range[1]
    run(shot.baking())
    rest = shot.reading.frames[round(recording.rest_at * recording.motion.rate) + 1]
    _, ends = placed(shot, [*np.arange(rest, last + 1), last + 1, last + 20])
    most = {name: np.ptp(each, axis=0).max() for name, each in ends.items()}
    assert max(most.values()) < 0.003


def test_all_stops_where_the_simulation_does(fallen):
    """With Stop, too: bones that nobody mapped went on with the animation."""
    shot = fallen("stop", "dance", frames=(1, 230))
    armature, source = shot.armature, shot.armature.animation_data.action
    bpy.ops.object.mode_set(mode="EDIT")
    finger = armature.data.edit_bones.new("finger")
    hand = armature.data.edit_bones["LeftHand"]
    finger.head, finger.tail, finger.parent = hand.tail, hand.tail + 3 * hand.vector, hand
    bpy.ops.object.mode_set(mode="OBJECT")
    for frame in (1, 200):
        armature.pose.bones["finger"].rotation_mode = "XYZ"
        armature.pose.bones["finger"].rotation_euler.x = frame / 100
        armature.pose.bones["finger"].keyframe_insert("rotation_euler", frame=frame)
    run(shot.read())
    run(shot.simulate())
    run(shot.baking())
    last = shot.baked.frames[1]
    assert last + 50 < source.frame_range[1]
    points, ends = placed(shot, [*np.arange(1, last + 1), last + 1, last + 30, last + 50])
    most = {name: np.ptp(each[-4:], axis=0).max() for name, each in ends.items()}
    assert max(most.values()) < 1e-6, most
    wanted = shot.performed().positions
    known = np.isfinite(wanted).all((0, 2)) & np.isfinite(points).all((0, 2))
    assert np.abs(points[: len(wanted)] - wanted)[:, known].max() < 2e-3


@pytest.mark.parametrize("faints", [False, True], ids=["awake", "faints"])
def test_fingers_and_faces_live_on_as_fast_as_it_has_tone(registered, fallen, faints):
    """They used to stop with all else that is not simulated, however awake it was."""
    shot = fallen("limp", "dance", frames=(1, 160))
    armature = shot.armature
    bpy.ops.object.mode_set(mode="EDIT")
    for name, on in (("finger", "LeftHand"), ("jaw", "Head")):
        bone, parent = armature.data.edit_bones.new(name), armature.data.edit_bones[on]
        bone.head, bone.tail, bone.parent = parent.tail, parent.tail + parent.vector, parent
    bpy.ops.object.mode_set(mode="OBJECT")
    for name in ("finger", "jaw", "LeftShoulder"):
        armature.pose.bones[name].rotation_mode = "XYZ"
        for frame in range(1, 162):
            armature.pose.bones[name].rotation_euler = (0, 0, frame / 160)
            armature.pose.bones[name].keyframe_insert("rotation_euler", frame=frame)
    if faints:
        armature.data.poise_strength.use_knock_out = True
        armature.data.poise_strength.knock_out = 20
    shot = fallen("limp", "dance", frames=(1, 160))
    run(shot.baking())
    fell = shot.recording.stood + 1
    assert fell < 90
    turned = {name: [] for name in ("finger", "jaw", "LeftShoulder")}
    frames = np.arange(fell - 5, 161)
    for frame in frames:
        bpy.context.scene.frame_set(int(frame))
        for name, found in turned.items():
            found.append(armature.pose.bones[name].rotation_euler.z)
    finger, clavicle = np.array(turned["finger"]), np.array(turned["LeftShoulder"])
    assert np.abs(np.diff(finger)).max() < 1.2 / 160, "nothing pops"
    assert turned["jaw"] == pytest.approx(turned["finger"])
    assert finger[:4] == pytest.approx(frames[:4] / 160, abs=1e-3)
    stopped = np.ptp(finger[60:]) < 1e-6
    assert stopped if faints else finger == pytest.approx(frames / 160, abs=1e-3)
    assert np.ptp(clavicle[60:]) < 1e-6 and clavicle[-1] < 0.75, "a clavicle is carried along"


def test_frames_in_which_it_fell_again_are_reported(fallen):
    shot = fallen("limp")
    assert shot.report()["fell_again"] == []
    shot.recording.fell_again.append(shot.recording.stood + 7)
    report = shot.report()
    assert report["fell_again"] == [report["fell_frame"] + 7]
    assert report["units"]["fell_again"] == "frame"


def test_what_is_to_fall_is_not_rectified(fallen):
    shot = fallen("limp")
    assert method.refused(shot.simulation) == (
        " A body that is to fall is not rectified: balance alone."
    )
    with pytest.raises(SettingsError, match="rectified so that it does not fall"):
        rectify.problem_of(shot)
    shot.decide(method.choose(shot))
    assert shot.choice.method == "balance" and not method.not_kept(shot)


def test_a_fall_that_was_to_be_is_no_alarm(fallen):
    assert takes_panel.mark(fallen("stop")) == "CANCEL"
    assert takes_panel.mark(fallen("limp")) == "SORT_ASC"

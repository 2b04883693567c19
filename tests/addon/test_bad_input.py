# SPDX-License-Identifier: GPL-3.0-or-later
"""Input that cannot be simulated: each kind ends in one sentence that says what is wrong, where,
and what to do, and neither the disk nor the scene has changed."""

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import bpy
import numpy as np
import pytest
from helpers.commands import listing, poise, save

from poise.addon.blender import compat
from poise.controller import Character, Gains

pytestmark = pytest.mark.once

CLIP = "wave"


def scene_state():
    """What an animator would notice if it had changed."""
    scene = bpy.context.scene
    state = [scene.frame_current, scene.frame_subframe, sorted(bpy.data.objects.keys())]
    for action in bpy.data.actions:
        state.append((action.name, action.users, action.use_fake_user))
    for thing in scene.objects:
        action, slot = compat.assigned(thing)
        state.append((thing.name, action and action.name, compat.slot_name(slot)))
        curves = compat.curves(action, slot) if action else []
        for curve in curves:
            points = np.empty(2 * len(curve.keyframe_points))
            curve.keyframe_points.foreach_get("co", points)
            # As bytes, since a key that is not a number equals nothing.
            state.append((curve.data_path, curve.array_index, curve.mute, points.tobytes()))
    return state


def assert_refused(capfd, folder, shot, message, *options):
    """`bake` ends with 1 and one sentence that matches; disk and scene are as they were."""
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    disk, scene = listing(folder), scene_state()
    capfd.readouterr()
    assert poise("bake", shot, *options) == 1
    told = [x for x in capfd.readouterr().err.splitlines() if x.startswith("poise: ")]
    assert len(told) == 1, told
    assert re.search(message, told[0]), told[0]
    assert told[0].endswith(".")
    assert listing(folder) == disk
    assert scene_state() == scene


# --- The armature and its animation -------------------------------------------------------------


def no_armature(armature):
    bpy.data.objects.remove(armature)


def several_armatures(armature):
    copy = armature.copy()
    copy.name = "double"
    bpy.context.collection.objects.link(copy)


def no_action(armature):
    armature.animation_data_clear()


def empty_action(armature):
    action, slot = compat.new_action("nothing")
    compat.assign(armature, action, slot)


def one_key(armature):
    for curve in curves_of(armature):
        while len(curve.keyframe_points) > 1:
            curve.keyframe_points.remove(curve.keyframe_points[-1], fast=True)


def lost_leg(armature):
    remove_bones(armature, "LeftUpLeg")


def zero_scale(armature):
    armature.scale = (0, 0, 0)


def negative_scale(armature):
    armature.scale = (-1, 1, 1)


def sheared_parent(armature):
    parent = bpy.data.objects.new("squash", None)
    bpy.context.collection.objects.link(parent)
    parent.scale = (1, 2, 1)
    armature.parent = parent
    armature.rotation_euler[2] += math.radians(30)


def key_not_a_number(armature):
    curve_of(armature, "LeftArm").keyframe_points[20].co[1] = math.nan


def key_infinite(armature):
    curve = curve_of(armature, "Hips", "location")
    points = np.empty(2 * len(curve.keyframe_points), np.float32)
    curve.keyframe_points.foreach_get("co", points)
    points[41] = math.inf
    curve.keyframe_points.foreach_set("co", points)


def key_huge(armature):
    # What Blender makes of an infinite value that is set on a single key.
    curve_of(armature, "Hips", "location").keyframe_points[20].co[1] = math.inf


def far_away(armature):
    armature.location.x = 5e4


def rotation_pop(armature):
    for point in curve_of(armature, "RightArm").keyframe_points[30:33]:
        point.co[1] += 2.5


def linked(armature):
    """Replace the scene by one that links the armature, with its action, from another file."""
    name = armature.name
    path = str(Path(bpy.data.filepath).with_name("library.blend"))
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.read_factory_settings(use_empty=True)
    with bpy.data.libraries.load(path, link=True) as (_source, target):
        target.objects = [name]
    bpy.context.scene.collection.objects.link(target.objects[0])


def muted_curve(armature):
    curve_of(armature, "LeftArm").mute = True


def curves_of(armature):
    return compat.curves(*compat.assigned(armature))


def curve_of(armature, bone, channel="rotation"):
    """The first curve of a bone's channel."""
    return next(
        c for c in curves_of(armature) if f'"{bone}"' in c.data_path and channel in c.data_path
    )


def remove_bones(armature, *roots):
    """Delete bones with all that hangs on them."""
    bpy.context.view_layer.objects.active = armature
    bpy.ops.object.mode_set(mode="EDIT")
    bones = armature.data.edit_bones
    for root in roots:
        for bone in (*bones[root].children_recursive, bones[root]):
            bones.remove(bone)
    bpy.ops.object.mode_set(mode="OBJECT")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (no_armature, "'Scene' has no armature: open a shot"),
        (several_armatures, "several armatures: choose one of 'wave', 'double'"),
        (no_action, "'wave' has no animation: assign an action"),
        (empty_action, "'nothing' has no keys for 'wave': choose another"),
        (one_key, "'wave' has 1 frame in the range 1 to 1: choose a range of at least two"),
        (lost_leg, "leg|thigh"),
        (zero_scale, "'wave' has a zero scale at frame 1: make the scale"),
        (negative_scale, "'wave' has a negative scale at frame 1: make the scale"),
        (sheared_parent, "'wave' is sheared or scaled unevenly at frame 1: apply the scale"),
        (key_not_a_number, "'LeftArm' .* not a finite number at frame 21: mend or delete"),
        (key_infinite, "'Hips' .* not a finite number at frame 21: mend or delete"),
        (key_huge, "'Hips' .* not a finite number at frame 21: mend or delete"),
        (far_away, "'wave' is 50 km away from the origin at frame .*, or move the shot"),
        (rotation_pop, "'RightArm' pops: .* from frame 30 to 31: mend the keys there"),
        (linked, "'wave' is linked.*: make"),
        (muted_curve, "rotation_euler of the bone 'LeftArm' in 'wave' is muted: unmute it"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_spoiled_shot(tmp_path, import_clip, capfd, spoil, message):
    armature = import_clip(CLIP)
    save(tmp_path)
    spoil(armature)
    assert_refused(capfd, tmp_path, save(tmp_path), message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--action", "Bob"), "There is no action named 'Bob' in this file: choose one of 'wave'."),
        (("--armature", "Bob"), "'Scene' has no armature 'Bob': choose one of 'wave'"),
        (("--action", "Bob"), "no action named 'Bob'"),
        (("--frames", "5:5"), "1 frame in the range 5 to 5: choose a range of at least two"),
        (("--frames", "9:5"), "0 frames in the range 9 to 5: choose a range of at least two"),
        (("--frames", "1:60:-1"), "no range: give finite frames and a step above 0"),
        (("--rig", "Bob"), "Bob"),
        (("--rig", "nowhere/map.json"), "map.json"),
        (("--gains", "nowhere/gains.json"), "'nowhere/gains.json' cannot be read"),
        (("--into", "Bob", "--frames", "1:20"), "Bob"),
        (
            ("--blend-out", "61", "--frames", "1:60"),
            "out over 61 frames, and only 59 are simulated",
        ),
        (("--push", "9,0.2,1e5,0,0"), "push of 100000 N on the trunk .* beyond what a body takes"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_options_that_name_nothing(tmp_path, import_clip, capfd, options, message):
    import_clip(CLIP)
    assert_refused(capfd, tmp_path, save(tmp_path), message, *options)


def test_map_with_a_missing_leg(tmp_path, import_clip, capfd):
    from poise.addon.rigs import rig

    found = rig.find(import_clip(CLIP))
    path = tmp_path / "map.json"
    rig.save(found, path)
    content = json.loads(path.read_text())
    del content["bones"]["shin_r"]
    path.write_text(json.dumps(content))
    message = "'wave' has no bone for the right shin by the rig map"
    assert_refused(capfd, tmp_path, save(tmp_path), message, "--rig", path)


def test_quadruped(tmp_path, capfd):
    bpy.ops.preferences.addon_enable(module="rigify")
    bpy.ops.object.armature_basic_quadruped_metarig_add()
    beast = bpy.context.object
    for frame, angle in ((1, 0.0), (20, 0.3), (40, 0.0)):
        for bone in beast.pose.bones:
            bone.rotation_mode = "XYZ"
            bone.rotation_euler = (angle, 0, 0)
            bone.keyframe_insert("rotation_euler", frame=frame)
    assert_refused(capfd, tmp_path, save(tmp_path), "biped|legs|upright")


def test_clip_that_starts_in_the_air(tmp_path, airborne, capfd):
    top, last = airborne
    message = "starts in the air, .* cm above the ground: start the range at a frame with a foot"
    shot = save(tmp_path)
    assert_refused(capfd, tmp_path, shot, message, "--frames", f"{top}:{last}")


def test_motion_in_a_rest_position(tmp_path, import_clip, capfd):
    import_clip(CLIP).data.pose_position = "REST"
    assert_refused(capfd, tmp_path, save(tmp_path), "shows its rest position: set .* to Pose")


def test_armature_that_a_view_layer_excludes(tmp_path, import_clip, capfd):
    armature = import_clip(CLIP)
    armature.hide_viewport = True
    assert_refused(capfd, tmp_path, save(tmp_path), "'wave' .*: enable it in the Outliner")


def test_override_keeps_its_library(tmp_path, import_clip):
    """An overridden armature either bakes to an action of the shot's own, or is refused."""
    name = import_clip(CLIP).name
    library = tmp_path / "library.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(library))
    bpy.ops.wm.read_factory_settings(use_empty=True)
    with bpy.data.libraries.load(str(library), link=True) as (_source, target):
        target.objects = [name]
    scene = bpy.context.scene
    scene.render.fps = 60
    scene.collection.objects.link(target.objects[0])
    assert target.objects[0].override_create(remap_local_usages=True) is not None
    shot, before = save(tmp_path), library.read_bytes()
    assert poise("bake", shot, "--frames", "1:30") == 0
    assert library.read_bytes() == before
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot_poise.blend"))
    action, _slot = compat.assigned(bpy.context.scene.objects[name])
    assert action.library is None


def test_locked_curve(tmp_path, import_clip, capfd):
    curve_of(import_clip(CLIP), "LeftArm").lock = True
    message = "rotation_euler of the bone 'LeftArm' in '.*' is locked: unlock it"
    assert_refused(capfd, tmp_path, save(tmp_path), message, "--frames", "1:30")


def test_curves_of_other_bones_may_be_muted_and_locked(tmp_path, import_clip):
    armature = import_clip(CLIP)
    thumb = curve_of(armature, "LeftHandThumb1")
    thumb.mute = thumb.lock = True
    assert poise("bake", save(tmp_path), "--frames", "1:30") == 0


# --- Files --------------------------------------------------------------------------------------


@pytest.fixture
def shot(tmp_path, import_clip):
    import_clip(CLIP)
    return save(tmp_path)


def test_shot_that_does_not_exist(tmp_path, capfd):
    assert poise("bake", tmp_path / "none.blend") == 1
    assert "There is no file" in capfd.readouterr().err
    assert listing(tmp_path) == {}


@pytest.mark.parametrize("verb", [("bake",), ("batch", "--output=out", "--jobs=1")])
def test_a_link_that_leads_nowhere_is_told_as_one(tmp_path, capfd, monkeypatch, verb):
    monkeypatch.chdir(tmp_path)
    link = tmp_path / "shot.blend"
    link.symlink_to("moved.blend")
    assert poise(verb[0], link, *verb[1:]) == 1
    assert f"'{link}' is a link to 'moved.blend', which is not there" in capfd.readouterr().err


def test_shot_that_is_a_folder(tmp_path, capfd):
    assert poise("bake", tmp_path) == 1
    assert "is a folder: name a .blend file in it." in capfd.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a .blend file: name a file that Blender saved"),
        (b"HIERARCHY\nROOT Hips\n", "is not a .blend file: name a file that Blender saved"),
        (b"BLENDER-v402 and then nothing", "cannot open '.*shot.blend'"),
        (b"\x28\xb5\x2f\xfd no Zstandard after all", "cannot open '.*shot.blend'"),
    ],
)
def test_file_that_is_not_a_blend(tmp_path, capfd, content, message):
    path = tmp_path / "shot.blend"
    path.write_bytes(content)
    assert poise("bake", path) == 1
    assert re.search(message, capfd.readouterr().err)
    assert listing(tmp_path) == {path.name: content}


def test_missing_output_folder(tmp_path, shot, capfd):
    output = tmp_path / "none" / "out.blend"
    message = "There is no folder '.*none': make it, or name another one"
    assert_refused(capfd, tmp_path, shot, message, "--output", output)
    report = output.with_suffix(".json")
    assert_refused(capfd, tmp_path, shot, message, "--report", report)


def test_output_folder_that_is_a_file(tmp_path, shot, capfd):
    output = shot / "out.blend"
    assert_refused(capfd, tmp_path, shot, "There is no folder", "--output", output)


def test_output_that_is_a_folder(tmp_path, shot, capfd):
    assert_refused(
        capfd, tmp_path, shot, "is a folder: name a file in it", "--output", tmp_path, "--overwrite"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="needs a folder where nobody can write")
def test_read_only_output_folder(tmp_path, shot, capfd):
    # Even root cannot make files in /proc.
    message = "Nothing can be written in '/proc' .*: name another folder"
    assert_refused(capfd, tmp_path, shot, message, "--output", "/proc/out.blend")
    assert_refused(capfd, tmp_path, shot, message, "--report", "/proc/out.json")


@pytest.fixture
def gains(tmp_path, shot):
    """A gains file that fits the shot, as a function that saves changes to it."""
    from poise.addon.rigs import reference

    motion = reference.read(bpy.context.scene, bpy.data.objects[CLIP], frames=(1, 60, 1)).motion
    path = tmp_path / "gains.json"
    content = Gains.default(Character.from_motion(motion)).as_dict()

    def change(edit):
        edit(content)
        path.write_text(json.dumps(content))
        return path

    return change


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda c: c["stiffness"].update(tail=5.0), "is for another character: .* tail"),
        (lambda c: c["damping"].popitem(), "is for another character: in 'damping'"),
        (
            lambda c: c["stiffness"].update(dict.fromkeys(list(c["stiffness"])[:1], 1e6)),
            "out of range: it must be from 0 to 10000",
        ),
        (lambda c: c["single"].update(trunk="much"), "'much': it must be a number"),
        (lambda c: c.update(schema=99), "is not a gains file of schema"),
        (lambda c: c.update(balance="luck"), "names no balance mode"),
    ],
    ids=["another character", "lacks one", "out of range", "no number", "schema", "balance"],
)
def test_gains_file_that_does_not_fit(tmp_path, shot, gains, capfd, edit, message):
    path = gains(edit)
    assert_refused(capfd, tmp_path, shot, f"gains.json' .*{message}", "--gains", path)


def test_gains_file_for_the_other_balance_mode(tmp_path, shot, gains, capfd):
    path = gains(lambda content: None)
    message = "is for the balance mode 'foot_forces', not 'virtual_forces': choose that mode"
    options = ("--gains", path, "--balance", "virtual_forces")
    assert_refused(capfd, tmp_path, shot, message, *options)


def test_gains_file_that_is_no_json(tmp_path, shot, capfd):
    path = tmp_path / "gains.json"
    path.write_text("stiffness: 500")
    assert_refused(capfd, tmp_path, shot, "gains.json' is not JSON", "--gains", path)


@pytest.mark.slow(captured=False)
@pytest.mark.parametrize("name", ["none.blend", "text.blend"])
def test_module_ends_with_1_and_a_sentence(tmp_path, name):
    (tmp_path / "text.blend").write_text("no blend")
    done = subprocess.run(
        [sys.executable, "-m", "poise", "bake", name],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
    )
    assert done.returncode == 1
    assert re.search(r"^poise: .*'.*\.blend'.*: .*\.$", done.stderr, re.MULTILINE)
    assert "Traceback" not in done.stderr
    assert set(listing(tmp_path)) == {"text.blend"}


@pytest.mark.slow(captured=False)
@pytest.mark.parametrize(
    "told", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}]
)
def test_terminal_that_lacks_letters_of_a_name(tmp_path, import_clip, told):
    import_clip(CLIP).name = "Ĥéro ☃"
    shot = save(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "poise", "inspect", shot, "--frames=1:20"],
        capture_output=True,
        env=os.environ | told,
        timeout=120,
    )
    assert done.returncode == 0
    assert rb"\u0124\xe9ro \u2603" in done.stdout and b"Traceback" not in done.stderr


@pytest.mark.slow(captured=False)
@pytest.mark.skipif(sys.platform != "linux", reason="other systems know all letters")
def test_a_locale_that_lacks_letters_of_a_path(tmp_path, clips):
    path = tmp_path / "Größe ☃.bvh"
    path.write_bytes(clips[CLIP].path.read_bytes())
    done = subprocess.run(
        [sys.executable, "-m", "poise", "inspect", path],
        capture_output=True,
        text=True,
        env=os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"},
        timeout=120,
    )
    assert done.returncode == 1
    assert "Python cannot open such a name in this locale. Set PYTHONUTF8=1" in done.stderr


@pytest.mark.slow(captured=False)
@pytest.mark.skipif(sys.platform == "win32", reason="no descriptors to close there")
def test_streams_that_are_closed(tmp_path, import_clip):
    """As some daemons start programs: what is printed must not go into the file that is written."""
    import_clip(CLIP)
    shot, result = save(tmp_path), tmp_path / "result.blend"
    command = f'"{sys.executable}" -m poise bake "{shot}" --frames=1:20 --output "{result}"'
    done = subprocess.run(f"{command} <&- >&- 2>&-", shell=True, timeout=120)
    assert done.returncode == 0
    bpy.ops.wm.open_mainfile(filepath=str(result))
    assert [action.name for action in bpy.data.actions if "Poise" in action.name]


@pytest.mark.slow(captured=False)
def test_whoever_reads_it_may_go(tmp_path, import_clip):
    """As `head` does, once it has its lines."""
    import_clip(CLIP)
    command = [sys.executable, "-m", "poise", "inspect", save(tmp_path), "--frames=1:20"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    running.stdout.close()
    told = running.stderr.read().decode()
    assert running.wait(120) == 1
    assert "Traceback" not in told and "poise:" not in told and "Exception" not in told


@pytest.mark.slow(captured=False)
def test_module_ends_with_2_after_wrong_usage(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "poise", "bake", "--frames", "all"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
    )
    assert done.returncode == 2
    assert "'all' is not a range of frames" in done.stderr

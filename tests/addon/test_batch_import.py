# SPDX-License-Identifier: GPL-3.0-or-later
"""Shots that are imported on the command line: which way is up, how large, how fast; and files that
are none. Missing libraries."""

import json
import shutil
import struct

import bpy
import numpy as np
import pytest
from helpers.commands import poise

from poise.addon.blender import compat
from poise.addon.blender.files import FileError
from poise.addon.rigs import reference
from poise.addon.shots.shot import find_armature
from poise.addon.terminal import command_import, command_progress
from poise.addon.terminal.command_import import import_note, import_shot
from poise.controller.exceptions import RigError

#: What Blender's FBX exporter shall not do, so that it writes the one action as it is.
PLAIN = ("add_leaf_bones", "bake_anim_use_all_actions", "bake_anim_use_nla_strips")


def read():
    """The Reading of what was imported."""
    return reference.read(bpy.context.scene, find_armature(bpy.context.scene))


def head_height(reading):
    """Mean height of the neck over the ankles [m]."""
    names = reference.LANDMARKS
    at = {name: reading.motion.positions[:, names.index(name)] for name in ("neck", "ankle_l")}
    return float((at["neck"] - at["ankle_l"])[:, 2].mean())


@pytest.mark.parametrize("name", ["stand", "wave", "kick", "run", "bow"])
def test_bvh_stands_upright_at_its_own_rate(clips, name):
    clip = clips[name]
    import_shot(clip.path)
    scene = bpy.context.scene
    note = import_note(scene)
    assert (note["up"], bool(note["up_guessed"])) == (clip.up, True)
    assert scene.render.fps / scene.render.fps_base == note["fps"] == clip.fps
    assert (scene.frame_start, scene.frame_end) == (1, clip.frames)
    if name != "wave":  # a child, which no guess tells from a grown-up in other units
        assert note["unit"] == pytest.approx(clip.scale)
        assert 1.0 < head_height(read()) < 1.6


def test_up_and_unit_are_overruled(clips, tmp_path, capsys):
    report = tmp_path / "report.json"
    told = (clips["wave"].path, "--unit=0.0254", "--up", "z", "--report", report)
    assert poise("inspect", *told) == 0
    assert 0.9 < json.loads(report.read_text())["body"]["height"] < 1.3
    assert "Z is up (as told), its unit is 0.0254 m (as told)." in capsys.readouterr().err
    import_shot(clips["wave"].path, up="Y")
    assert import_note(bpy.context.scene)["up"] == "Y"
    assert abs(head_height(read())) < 0.3, "it lies on its side, as it was told to"


def test_bvh_is_baked_to_a_blend_beside_it(clips, tmp_path, capsys):
    source, report = shutil.copy(clips["stand"].path, tmp_path), tmp_path / "report.json"
    assert poise("bake", source, "--frames=1:20", "--report", report) == 0
    told = json.loads(report.read_text())
    assert told["import"]["file"] == str(source)
    assert told["import"]["up"] == "Y" and told["import"]["up_guessed"]
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "stand_poise.blend"))
    action, _slot = compat.assigned(find_armature(bpy.context.scene))
    assert action.name == told["baked_action"]
    assert import_note(bpy.context.scene)["unit"] == pytest.approx(0.056444)
    assert poise("bake", source, "--in-place") == 2
    capsys.readouterr()
    assert poise("bake", source, "--output", source, "--overwrite") == 2
    told = capsys.readouterr().err
    assert "--output is the shot itself: let its name end with .blend" in told


@pytest.fixture
def exported(import_clip, tmp_path):
    """exported(ending) -> path of a captured clip of 30 frames at 30 Hz in that format, and the
    heights of its head."""

    def export(ending):
        armature = import_clip("jump")
        scene = bpy.context.scene
        scene.frame_end = 30
        expected = read().motion.positions[:30]
        path = tmp_path / f"a shot{ending}"
        if ending == ".fbx":
            bpy.ops.export_scene.fbx(filepath=str(path), **dict.fromkeys(PLAIN, False))
        else:
            kind = "GLB" if ending == ".glb" else "GLTF_SEPARATE"
            bpy.ops.export_scene.gltf(filepath=str(path), export_format=kind)
        assert armature.name == "jump"
        return path, expected

    return export


@pytest.mark.parametrize("ending", [".fbx", ".glb", ".gltf"])
def test_other_formats_keep_rate_and_motion(exported, ending):
    path, expected = exported(ending)
    import_shot(path)
    scene = bpy.context.scene
    assert scene.render.fps / scene.render.fps_base == 30
    reading = read()
    assert len(reading.frames) >= 30
    hips = reading.motion.positions[:30, 0] - reading.motion.positions[0, 0]
    np.testing.assert_allclose(hips, expected[:, 0] - expected[0, 0], atol=2e-3)


@pytest.mark.parametrize(
    ("rate", "step", "expected"), [(30, 10, 24), (50, 10, 25), (25, 1, 25), (24, 5, 24)]
)
def test_few_keys_do_not_make_a_low_frame_rate(biped, tmp_path, rate, step, expected):
    """What the exporter does not sample has keys where the animator has set them."""
    scene = bpy.context.scene
    scene.render.fps = rate
    action, slot = compat.assigned(biped)
    for curve in compat.curves(action, slot):
        for point in reversed(curve.keyframe_points):
            if round(point.co[0]) % step:
                curve.keyframe_points.remove(point, fast=True)
    path = tmp_path / "keyed.glb"
    bpy.ops.export_scene.gltf(filepath=str(path), export_force_sampling=False)
    import_shot(path)
    assert bpy.context.scene.render.fps == expected


@pytest.mark.parametrize("rate", [30 / 1.001, 24 / 1.001, 100 / 3, 12.5, 120])
def test_gltf_of_an_odd_rate_keeps_its_frames(exported, rate):
    """It knows seconds alone: the rate is what lets its keys lie on frames."""
    path, expected = exported(".gltf")
    _slow_down(path, 30 / rate)
    import_shot(path)
    scene = bpy.context.scene
    told = scene.render.fps / scene.render.fps_base
    every = max(1, round(told / rate))
    assert told == pytest.approx(rate * every, rel=1e-6)
    reading = read()
    assert len(reading.frames) >= 29 * every + 1
    np.testing.assert_allclose(reading.frames % 1, 0, atol=1e-3)
    hips = reading.motion.positions[: 30 * every : every, 0]
    np.testing.assert_allclose(hips - hips[0], expected[:, 0] - expected[0, 0], atol=2e-3)


def _slow_down(path, factor):
    """Multiply all times of a .gltf file, of which the numbers are in another one."""
    told = json.loads(path.read_text())
    numbers = path.with_name(told["buffers"][0]["uri"].replace("%20", " "))
    content = bytearray(numbers.read_bytes())
    clocks = {sampler["input"] for clip in told["animations"] for sampler in clip["samplers"]}
    for clock in clocks:
        accessor = told["accessors"][clock]
        view = told["bufferViews"][accessor["bufferView"]]
        start = view["byteOffset"] + accessor.get("byteOffset", 0)
        times = np.frombuffer(content, "<f4", accessor["count"], start)
        times *= factor
    numbers.write_bytes(content)


def test_another_armature_in_the_file_is_no_obstacle(biped, tmp_path):
    twin = biped.copy()
    twin.name = "twin"
    bpy.context.collection.objects.link(twin)
    path = tmp_path / "two.glb"
    bpy.ops.export_scene.gltf(filepath=str(path))
    import_shot(path)
    with pytest.raises(RigError, match="several armatures: choose one of"):
        find_armature(bpy.context.scene)
    assert find_armature(bpy.context.scene, "biped").animation_data.action


# --- Bad input ----------------------------------------------------------------------------------


#: A file of version 7.4 with one node, that ends where its first value would begin.
CUT_FBX = b"Kaydara FBX Binary  \x00\x1a\x00" + struct.pack("<IIIIB1s", 7400, 99, 1, 9, 1, b"a")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("broken.bvh", b"HIERARCHY\nROOT Hips\n{\n OFFSET 0 0", "cannot be imported: line 2"),
        ("noise.bvh", bytes(range(128, 256)), "is not text in UTF-8"),
        ("text.fbx", b"; FBX 7.3.0 project file\n", "is not a binary FBX file: export it again."),
        ("cut.fbx", b"Kaydara FBX Binary  \x00\x1a\x00", "byte 27 was cut off or changed"),
        ("node.fbx", CUT_FBX, "byte 27 was cut off or changed"),
        ("noise.glb", b"nothing", "is not a glTF file: export it again."),
        ("cut.glb", b"glTF\x02\x00\x00\x00", "cannot be imported ("),
        ("noise.gltf", b"{", "cannot be imported ("),
    ],
)
def test_files_that_are_none(tmp_path, capsys, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    assert poise("bake", path) == 1
    lines = capsys.readouterr().err.splitlines()
    (told,) = (x for x in lines if x.startswith("poise: "))
    assert message in told and str(path) in told and told.endswith(".")
    assert not any("Traceback" in line for line in lines)  # nor of Blender's importers
    assert list(tmp_path.iterdir()) == [path]


def test_what_an_importer_stumbled_over_is_told_not_where(tmp_path):
    def stumble():
        raise RuntimeError("Error: Python: Traceback\n  File 'x'\nKeyError: 7\nLocation: /x:109\n")

    with pytest.raises(FileError, match=r"cannot be imported \(KeyError: 7\): see whether"):
        command_import._call(tmp_path / "x.bvh", "io_anim_bvh", stumble)


def test_no_armature_in_the_file(tmp_path, capsys):
    bpy.ops.mesh.primitive_cube_add()
    path = tmp_path / "cube.glb"
    bpy.ops.export_scene.gltf(filepath=str(path))
    with pytest.raises(FileError, match="holds no armature: export the character's skeleton"):
        import_shot(path)


def test_up_is_for_bvh_alone(tmp_path, capsys):
    assert poise("bake", tmp_path / "shot.glb", "--up=Z") == 1
    assert "say which way is up: leave out --up." in capsys.readouterr().err


# --- Libraries ----------------------------------------------------------------------------------


@pytest.fixture
def linked(import_clip, tmp_path):
    """linked(kind) -> a saved shot of which that is linked from a library that is then removed:
    "object", "data", "action" or something else, "text"."""

    def make(kind):
        armature = import_clip("stand")
        library = tmp_path / "lib.blend"
        parts = {
            "object": armature,
            "data": armature.data,
            "action": compat.assigned(armature)[0],
            "text": bpy.data.texts.new("note"),
        }
        part = parts[kind]
        bpy.data.libraries.write(str(library), {part}, fake_user=True)
        name, collection = part.name, f"{kind}s" if kind != "data" else "armatures"
        shot = tmp_path / "shot.blend"
        if kind == "object":
            bpy.data.objects.remove(armature)
        with bpy.data.libraries.load(str(library), link=True) as (_, into):
            setattr(into, collection, [name])
        (part,) = (p for p in getattr(bpy.data, collection) if p.library)
        if kind == "object":
            bpy.context.collection.objects.link(part)
        elif kind == "data":
            armature.data = part
        elif kind == "action":
            compat.assign(armature, part, compat.object_slot(part, armature))
        else:
            part.use_fake_user = True
            bpy.context.scene["note"] = part
        bpy.ops.wm.save_as_mainfile(filepath=str(shot))
        return shot, library

    return make


@pytest.mark.parametrize("kind", ["object", "data", "action"])
def test_character_from_a_missing_library(linked, capsys, kind):
    shot, library = linked(kind)
    library.unlink()
    assert poise("bake", shot) == 1
    (told,) = (x for x in capsys.readouterr().err.splitlines() if x.startswith("poise: "))
    assert told.startswith(f"poise: The linked library '{library}' is missing, and the character")
    assert not shot.with_name("shot_poise.blend").exists()


def test_other_missing_libraries_are_a_warning(linked, tmp_path, capsys):
    shot, library = linked("text")
    library.unlink()
    report = tmp_path / "report.json"
    assert poise("bake", shot, "--frames=1:20", "--report", report) == command_progress.DONE
    (warning,) = json.loads(report.read_text())["warnings"]
    assert str(library) in warning and warning in capsys.readouterr().err

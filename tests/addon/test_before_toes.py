# SPDX-License-Identifier: GPL-3.0-or-later
"""Data from before bodies had toes: completed or refused with a sentence; nothing is lost."""

import json
import shutil
from pathlib import Path

import bpy
import pytest
from helpers.commands import poise

from poise.addon.baking import bake
from poise.addon.blender import compat
from poise.addon.rigs import source_values
from poise.addon.settings import gains, presets
from poise.addon.shots.shot import Shot, ShotOptions
from poise.controller import Gains
from poise.controller.body.adult import adult

DATA = Path(__file__).resolve().parent.parent / "data" / "before_toes"
COMPLETED = "has no gains for toes: these have the defaults."
FRAMES = "--frames=1:12"


@pytest.fixture
def scene_file(tmp_path):
    """A copy of the scene; nothing else in its folder."""
    if bpy.app.version < (5, 0):
        pytest.skip("an older Blender cannot read the file, which 5.0 wrote")
    return Path(shutil.copy(DATA / "scene.blend", tmp_path / "shot.blend"))


@pytest.fixture
def old_scene(registered, scene_file):
    """The scene, opened in Poise as it is enabled in Blender."""
    bpy.ops.wm.open_mainfile(filepath=str(scene_file))
    scene = next(scene for scene in bpy.data.scenes if scene.objects)
    bpy.context.window.scene = scene
    return scene


@pytest.mark.parametrize("name", ["gains_1.json", "gains_2.json"])
def test_gains_are_completed_and_say_so(name, tmp_path):
    path = DATA / name
    found, given = Gains.load(path), json.loads(path.read_text())
    assert found.completed == f"The gains file '{path}' {COMPLETED}"
    assert dict(zip(found.names, found.stiffness, strict=True)).items() > given["stiffness"].items()
    body = adult()
    fitted, default = Gains.load(path, body), Gains.default(body)
    assert fitted.names == default.names
    for group in ("stiffness", "damping"):
        assert getattr(fitted, group)[-1] == pytest.approx(getattr(default, group)[-1])
    saved = tmp_path / "gains.json"
    found.save(saved)
    again = Gains.load(saved)
    assert again.completed == "" and json.loads(saved.read_text())["schema"] == 3
    assert again.as_dict() == found.as_dict()


def test_presets_that_come_with_poise_are_complete():
    shipped = [preset for preset in presets.load_presets() if preset.shipped]
    assert shipped and not any(preset.gains.completed for preset in shipped)


def test_the_command_line_tells_what_it_completed(scene_file, capsys):
    report = scene_file.with_name("report.json")
    path = DATA / "gains_2.json"
    command = ("simulate", scene_file, FRAMES, "--gains", path, "--report", report)
    assert poise(*command) in (0, 3)
    sentence = f"The gains file '{path}' {COMPLETED}"
    assert sentence in capsys.readouterr().err
    told = json.loads(report.read_text())
    assert told["gains_completed"] == sentence
    assert told["gains"]["schema"] == 3 and "toe_pitch" in told["gains"]["stiffness"]
    assert poise("simulate", scene_file, FRAMES, "--overwrite", "--report", report) in (0, 3)
    assert json.loads(report.read_text())["gains_completed"] == ""


def test_the_gains_of_a_scene(old_scene):
    settings = old_scene.poise.gains
    before = settings.custom
    assert settings.source == "CUSTOM" and "toe_pitch" not in before
    used = gains.view(old_scene).gains
    sentence = f"The scene's own set of gains {COMPLETED}"
    assert used.completed == sentence
    assert "toe_pitch" in gains.data_of(old_scene.poise)["stiffness"]
    assert settings.custom == before, "looking changes nothing"
    settings.single_trunk = 500.0
    assert "toe_pitch" in json.loads(settings.custom)["stiffness"]
    assert gains.view(old_scene).gains.completed == ""


def test_the_bake_of_a_scene_is_kept_and_replaced(old_scene):
    armature = bpy.data.objects["biped"]
    source = bpy.data.actions["sway"]

    def keys(action, slot):
        return {
            (curve.data_path, curve.array_index): [tuple(key.co) for key in curve.keyframe_points]
            for curve in compat.curves(action, slot)
        }

    assert compat.assigned(armature)[0].name == "sway Poise"
    old = keys(*compat.assigned(armature))
    bake.show(old_scene, armature, "source")
    assert compat.assigned(armature)[0] == source
    authored = keys(*compat.assigned(armature))
    bake.show(old_scene, armature, "baked")
    assert keys(*compat.assigned(armature)) == old
    bake.restore(old_scene, armature)
    shot = Shot(old_scene, ShotOptions(armature="biped", gains=gains.data_of(old_scene.poise)))
    for part in (shot.read(), shot.simulate()):
        for _ in part:
            pass
    shot.bake()
    assert shot.baked.action == "sway Poise" and shot.baked.error_mm < 0.05
    made = [action.name for action in bpy.data.actions if source_values.MARK not in action]
    assert made == ["sway", "sway Poise"]
    new = keys(*compat.assigned(armature))
    assert {path for path, _ in new} >= {path for path, _ in old}
    bake.restore(old_scene, armature)
    assert keys(*compat.assigned(armature)) == authored


def test_a_checkpoint_of_a_rectification_is_refused(scene_file, capsys):
    checkpoint = Path(shutil.copy(DATA / "rectification.checkpoint", scene_file.parent / "kept"))
    command = ("bake", scene_file, FRAMES, "--method=rectify", "--rectify=draft", "--workers=0")
    assert poise(*command, "--checkpoint", checkpoint) == 1
    assert (
        f"The checkpoint '{checkpoint}' belongs to another rectification: the clip, the gains, the "
        "settings or the version differ; delete it to start anew."
    ) in capsys.readouterr().err
    assert checkpoint.read_bytes() == (DATA / "rectification.checkpoint").read_bytes()
    assert {path.name for path in scene_file.parent.iterdir()} <= {"shot.blend", "kept"}


def test_a_checkpoint_of_a_search_is_refused(scene_file, capsys):
    checkpoint = scene_file.with_name("shot_gains.json.checkpoint")
    shutil.copy(DATA / "tuning.checkpoint", checkpoint)
    more = ("--population=4", "--target=1.99", "--generations=50", "--workers=0")
    assert poise("optimize", scene_file, FRAMES, *more) == 1
    assert (
        f"The checkpoint '{checkpoint}' belongs to another search: the clip, the gains to start "
        "from, the settings or the version differ; delete it to start anew."
    ) in capsys.readouterr().err
    assert checkpoint.read_bytes() == (DATA / "tuning.checkpoint").read_bytes()

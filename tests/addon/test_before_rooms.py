# SPDX-License-Identifier: GPL-3.0-or-later
"""Data of version 0.1.0, and from just before the source was divided into rooms: each is read and
means what it meant, or is refused with the reason."""

import json
import math
import shutil
from pathlib import Path

import bpy
import pytest
from helpers.commands import poise

from poise.addon.baking import bake
from poise.addon.blender import compat
from poise.addon.command import batch_report, batch_shot
from poise.addon.scene import contacts
from poise.addon.settings import gains as scene_gains
from poise.addon.shots.shot import Shot, ShotOptions
from poise.controller import Gains, SettingsError
from poise.controller.body.adult import adult
from poise.controller.search.correction import Correction

DATA = Path(__file__).resolve().parent.parent / "data" / "before_rooms"
VERSIONS = ("first", "last")
FRAMES = "--frames=1:12"
#: Sliders over the gains; what they show is the gains, which are compared as such.
VIEWS = ("frequency_", "damping", "stiffness", "single_", "dual_")


def load(version, name):
    """The content of a JSON file of the data."""
    return json.loads((DATA / version / name).read_text(encoding="utf-8"))


@pytest.fixture
def opened(registered, tmp_path):
    """opened(version) -> the scene of that version, opened in Poise as it is in Blender."""

    def open_(version):
        path = shutil.copy(DATA / version / "scene.blend", tmp_path / "shot.blend")
        bpy.ops.wm.open_mainfile(filepath=str(path))
        scene = bpy.data.scenes["Shot"]
        bpy.context.window.scene = scene
        return scene

    return open_


def differing(group, expected, path=""):
    """Where a property group is not what it was: lines of text."""
    found = []
    for name, value in expected.items():
        if name == "name" or name.startswith(VIEWS):
            continue
        if not hasattr(group, name):
            found.append(f"{path}{name} is gone")
            continue
        now = getattr(group, name)
        if isinstance(value, dict):
            found += differing(now, value, f"{path}{name}.")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            assert len(now) == len(value)
            for item, one in zip(now, value, strict=True):
                found += differing(item, one, f"{path}{name}.")
        else:
            if isinstance(now, bpy.types.ID):
                now = now.name
            elif isinstance(value, list):
                now = list(now)
            if now != value and not (isinstance(value, float) and math.isclose(now, value)):
                found.append(f"{path}{name}: {value!r} is {now!r}")
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_a_scene_opens_with_the_settings_that_it_was_saved_with(version, opened):
    scene = opened(version)
    assert differing(scene.poise, load(version, "settings.json")["scene"]) == []


def test_what_belongs_to_objects_armatures_and_actions_is_there(opened):
    opened("last")
    expected = load("last", "settings.json")
    assert differing(bpy.data.objects["box"].poise, expected["object"]) == []
    data = bpy.data.armatures["biped"]
    assert differing(data.poise_weights, expected["weights"]) == []
    (curve,) = compat.curves(*compat.assigned(data))
    assert curve.data_path == "poise_weights.arms" and len(curve.keyframe_points) == 1
    action = bpy.data.actions["sway"]
    (plan,) = expected["contacts"].values()
    slot = action.slots[0] if compat.HAS_SLOTS else None
    assert contacts.kept(action, slot).as_dict() == plan


@pytest.mark.parametrize("version", VERSIONS)
def test_the_gains_of_a_scene_are_its_own(version, opened):
    scene = opened(version)
    used = scene_gains.view(scene).gains
    given = json.loads(scene.poise.gains.custom)
    assert given["stiffness"].items() <= Gains.from_dict(given).as_dict()["stiffness"].items()
    whole = version == "last"
    assert ("toe_pitch" in given["stiffness"]) is whole
    assert bool(used.completed) is not whole


@pytest.mark.parametrize("version", VERSIONS)
def test_the_bake_of_a_scene_is_known_and_replaced_and_the_source_comes_back(version, opened):
    scene = opened(version)
    armature = bpy.data.objects["biped"]
    assert compat.assigned(armature)[0].name == "sway Poise"
    bake.show(scene, armature, "source")
    assert compat.assigned(armature)[0].name == "sway"
    bake.show(scene, armature, "baked")
    assert compat.assigned(armature)[0].name == "sway Poise"
    bake.restore(scene, armature)
    armature.data.poise_weights.use_start = armature.data.poise_weights.use_hand_back = False
    shot = Shot(scene, ShotOptions(armature="biped", frames=(1, 12)))
    for part in (shot.read(), shot.simulate()):
        for _ in part:
            pass
    shot.bake()
    assert shot.baked.action == "sway Poise", "the earlier bake is replaced"
    bake.restore(scene, armature)
    assert compat.assigned(armature)[0].name == "sway"


@pytest.mark.parametrize("version", VERSIONS)
def test_gains_files_are_read_and_completed(version):
    path = DATA / version / "gains.json"
    found, given = Gains.load(path), load(version, "gains.json")
    for group in ("stiffness", "damping"):
        values = dict(zip(found.names, getattr(found, group), strict=True))
        assert given[group].items() <= values.items()
    lacks = f"The gains file '{path}' has no gains for toes: these have the defaults."
    assert found.completed == ("" if version == "last" else lacks)
    assert found.tuned == given["tuned"] and found.name == given.get("name", "")
    assert Gains.load(path, adult()).names == Gains.default(adult()).names


def test_a_correction_of_another_reference_is_refused():
    with pytest.raises(SettingsError, match="is from another version of Poise: rectify anew"):
        Correction.from_dict(load("last", "correction.json"))


@pytest.fixture
def shot_file(biped, tmp_path):
    """A shot of today's."""
    path = tmp_path / "shot.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    return path


@pytest.mark.parametrize("version", VERSIONS)
def test_a_checkpoint_of_a_search_is_refused(version, shot_file, capsys):
    checkpoint = shot_file.with_name("shot_gains.json.checkpoint")
    shutil.copy(DATA / version / "tuning.checkpoint", checkpoint)
    assert poise("optimize", shot_file, FRAMES, "--population=4", "--workers=0") == 1
    assert (
        f"The checkpoint '{checkpoint}' belongs to another search: the clip, the gains to start "
        "from, the settings or the version differ; delete it to start anew."
    ) in capsys.readouterr().err
    assert checkpoint.read_bytes() == (DATA / version / "tuning.checkpoint").read_bytes()


def test_a_checkpoint_of_a_rectification_is_refused(shot_file, capsys):
    kept = Path(shutil.copy(DATA / "last" / "rectification.checkpoint", shot_file.parent / "kept"))
    command = ("bake", shot_file, FRAMES, "--method=rectify", "--rectify=draft", "--workers=0")
    assert poise(*command, "--checkpoint", kept) == 1
    assert (
        f"The checkpoint '{kept}' belongs to another rectification: the clip, the gains, the "
        "settings or the version differ; delete it to start anew."
    ) in capsys.readouterr().err
    assert kept.read_bytes() == (DATA / "last" / "rectification.checkpoint").read_bytes()


@pytest.mark.parametrize("version", VERSIONS)
def test_reports_say_what_they_said(version, shot_file):
    path = shot_file.with_name("report.json")
    verb = {"first": ("bake", "--output", path.with_name("baked.blend")), "last": ("simulate",)}
    name, *more = verb[version]
    assert poise(name, shot_file, FRAMES, *more, "--report", path) in (0, 3)
    now = json.loads(path.read_text())
    before = load(version, "report.json")
    assert set(now) >= set(before)
    # Of 0.1.0's `residual`, force and torque, the torque is `residual_torque` now.
    units = {name: unit for name, unit in before["units"].items() if name != "residual"}
    assert now["units"].items() >= units.items()
    for group in ("body", "keys", "gains"):
        assert set(now[group]) | {"tuned"} >= set(before[group])


def test_a_record_of_a_batch_is_read(tmp_path):
    path = tmp_path / "shot.blend.poise.json"
    shutil.copy(DATA / "last" / "record.json", path)
    record = batch_shot.read_record(path)
    assert record is not None and record["state"] == batch_shot.STOOD
    (shot,) = batch_report.summary(tmp_path, [record])["shots"]
    assert shot["reward"] == record["report"]["reward"] and shot["record"] == path.name
    page = batch_report.html(batch_report.summary(tmp_path, [record]), {}, tmp_path)
    assert "shot.blend" in page


def test_a_record_without_a_verdict_is_read(tmp_path):
    """As batches of earlier versions wrote them: of 0.1.0 there was none, but such reports."""
    record = load("last", "record.json") | {"report": load("first", "report.json")}
    (shot,) = batch_report.summary(tmp_path, [record])["shots"]
    assert shot["keeper"] is None and shot["reward"] == record["report"]["reward"]

# SPDX-License-Identifier: GPL-3.0-or-later
"""Strength in Blender: keys, knock-outs, the panel, the command line."""

import json
from types import SimpleNamespace

import bpy
import numpy as np
import pytest
from helpers.commands import poise, save

from poise.addon.rigs import sampling
from poise.addon.scene.strength import StrengthOptions, collect
from poise.addon.settings import method, quick
from poise.addon.shots import outdated
from poise.addon.shots.shot import Shot, ShotOptions
from poise.addon.staging import weights_panel
from poise.controller.exceptions import SettingsError
from poise.controller.falls.strength import LIMBS

pytestmark = pytest.mark.usefixtures("registered")


@pytest.fixture
def armature():
    """An armature object without bones."""
    made = bpy.data.objects.new("Ann", bpy.data.armatures.new("Ann"))
    bpy.context.collection.objects.link(made)
    return made


def collected(frames=range(1, 41), **options):
    """The strength at frames."""
    reading = SimpleNamespace(armature="Ann", frames=np.array(frames, float))
    return collect(bpy.context.scene, reading, StrengthOptions(**options))


def test_untouched_strength_is_none_at_all(armature):
    assert collected() == {}
    assert "Strength" not in quick.also_set(bpy.context.scene, armature)


def test_keys_and_knock_outs_are_read_at_the_frames(armature):
    chosen = armature.data.poise_strength
    for frame, value in ((10, 1.0), (20, 0.0)):
        chosen.leg_l = value
        assert chosen.keyframe_insert("leg_l", frame=frame)
    chosen.use_knock_out, chosen.knock_out = True, 30
    found = collected()
    assert sorted(found) == ["leg_l", "tone"]
    assert found["leg_l"][9] == pytest.approx(1) and found["leg_l"][19:] == pytest.approx(0)
    assert found["tone"][28] == 1 and not found["tone"][29:].any()
    assert "Strength" in quick.also_set(bpy.context.scene, armature)


def test_the_command_line_replaces_what_the_armature_has(armature):
    chosen = armature.data.poise_strength
    chosen.use_knock_out, chosen.knock_out, chosen.arm_l = True, 30, 0.2
    found = collected(knock_out=12.0, limbs={"arm_l": 1.0, "neck": 0.5})
    assert sorted(found) == ["neck", "tone"]
    assert found["tone"][10] == 1 and not found["tone"][11:].any()


def test_a_knock_out_outside_of_the_frames_is_told(armature):
    chosen = armature.data.poise_strength
    chosen.use_knock_out, chosen.knock_out = True, 41
    with pytest.raises(SettingsError, match="Knock Out is at frame 41, outside of the frames 1 to"):
        collected()
    chosen.use_knock_out = False
    assert collected() == {}


@pytest.mark.slow(captured=False)
def test_no_search_is_offered_to_who_is_knocked_out(import_clip):
    armature = import_clip("stand")
    armature.data.poise_strength.use_knock_out = True
    armature.data.poise_strength.knock_out = 10
    shot = Shot(bpy.context.scene, ShotOptions(armature=armature.name))
    list(shot.read())
    list(shot.simulate())
    assert not shot.recording.success and "unconscious from frame 10 on" in shot.why
    assert quick.steps_after_fall(shot) == ()


def test_sliders_say_what_they_mean(armature):
    known = armature.data.poise_strength.bl_rna.properties
    assert all("From 0, none, to 1" in known[name].description for name in LIMBS)
    assert "below 0.1 it faints" in known["tone"].description


def test_a_change_of_strength_is_one(armature):
    options = ShotOptions(armature="Ann")
    before = outdated.settings_of(bpy.context.scene, armature, options)
    armature.data.poise_strength.tone = 0.5
    now = outdated.settings_of(bpy.context.scene, armature, options)
    assert outdated.changed(before, now) == ["Strength"]


def test_the_panel_shows_when_and_what(armature):
    drawn = []

    class Layout:
        def column(self, **_):
            return self

        def prop(self, _owner, name, **_more):
            drawn.append(name)

    weights_panel.POISE_PT_strength.content(None, Layout(), bpy.context, armature, "")
    assert drawn == ["use_knock_out", *LIMBS]
    armature.data.poise_strength.use_knock_out = True
    drawn.clear()
    weights_panel.POISE_PT_strength.content(None, Layout(), bpy.context, armature, "")
    assert drawn[:2] == ["use_knock_out", "knock_out"]


@pytest.mark.slow(captured=False)
@pytest.mark.once
def test_who_is_knocked_out_falls_there(tmp_path, import_clip, capsys):
    import_clip("wave")
    shot, path = save(tmp_path), tmp_path / "report.json"
    given = ("--when-it-falls", "stiff", "--knock-out", "31", "--strength", "arm_l=0.5")
    assert poise("simulate", shot, *given, "--report", path) == 0
    report = json.loads(path.read_text())
    assert report["fell_frame"] == pytest.approx(31, abs=3)
    assert report["strength"] == {"tone": 0.0, "arm_l": 0.5}
    assert poise("simulate", shot, "--strength", "tail=0.5") == 2
    assert "'tail=0.5' is not a strength such as leg_l=0.2" in capsys.readouterr().err


@pytest.mark.slow(captured=False)
@pytest.mark.once
def test_who_is_knocked_out_goes_down_limp_though_falls_stop(tmp_path, import_clip, capsys):
    import_clip("wave")
    shot, path = save(tmp_path), tmp_path / "report.json"
    given = ("simulate", shot, "--report", path, "--overwrite", "--knock-out")
    assert poise(*given, "31") == 0
    report = json.loads(path.read_text())
    assert report["when_it_falls"] == "limp" and report["filled"]
    assert report["fell_frame"] is not None
    assert poise("simulate", shot, "--method=rectify", "--knock-out=31") == 1
    assert "strength" in capsys.readouterr().err
    assert poise(*given, "31", "--get-up") == 2
    assert "--get-up needs --when-it-falls" in capsys.readouterr().err


def test_who_is_weak_is_not_rectified(import_clip):
    import_clip("wave")
    shot = Shot(bpy.context.scene, ShotOptions(strength=StrengthOptions(limbs={"leg_l": 0.5})))
    sampling.run(shot.read())
    shot.prepare()
    assert "all of its strength" in method.refused(shot.simulation)
    assert "strength" in shot.left_out and not shot.problem().scenario.strength

# SPDX-License-Identifier: GPL-3.0-or-later
"""What is mixed with how a character falls: its keys, its panel, and the command line."""

import json
from types import SimpleNamespace

import bpy
import numpy as np
import pytest
from helpers.commands import poise, save

from poise.addon.scene.mixture import collect
from poise.addon.settings import quick
from poise.addon.shots import outdated
from poise.addon.shots.shot import ShotOptions
from poise.addon.staging import weights_panel
from poise.controller import SettingsError
from poise.controller.falls.behaviours import BEHAVIOURS

pytestmark = pytest.mark.usefixtures("registered")


@pytest.fixture
def armature():
    """An armature object without bones."""
    made = bpy.data.objects.new("Ann", bpy.data.armatures.new("Ann"))
    bpy.context.collection.objects.link(made)
    return made


def collected(options=None):
    """The shares at frames 1 to 40."""
    reading = SimpleNamespace(armature="Ann", frames=np.arange(1.0, 41.0))
    return collect(bpy.context.scene, reading, options)


def test_every_behaviour_can_be_mixed(armature):
    shares = armature.data.poise_mixture
    assert all(getattr(shares, name) == 0 for name in BEHAVIOURS)
    assert all("[share]" in shares.bl_rna.properties[name].description for name in BEHAVIOURS)
    assert collected() == {} and "Falls Like" not in quick.also_set(bpy.context.scene, armature)


def test_shares_are_keyed_and_replaced(armature):
    shares = armature.data.poise_mixture
    for frame, share in ((10, 0.0), (20, 0.6)):
        shares.limp = share
        assert shares.keyframe_insert("limp", frame=frame)
    assert "Falls Like" in quick.also_set(bpy.context.scene, armature)
    found = collected({"stiff": 0.4})
    assert sorted(found) == ["limp", "stiff"] and (found["stiff"] == 0.4).all()
    assert not found["limp"][:10].any() and found["limp"][19:] == pytest.approx(0.6)
    assert "limp" not in collected({"limp": 0.0})


def test_more_than_all_is_told_with_its_frame(armature):
    shares = armature.data.poise_mixture
    for frame, share in ((10, 0.0), (20, 0.8)):
        shares.roll = share
        shares.keyframe_insert("roll", frame=frame)
    with pytest.raises(SettingsError, match=r"Like of 'Ann' come to 1\.3 at frame 20: have them"):
        collected({"stiff": 0.5})


def test_what_is_no_number_is_told(armature):
    armature.data.poise_mixture.limp = float("nan")
    with pytest.raises(SettingsError, match="share of Limp in Falls Like of 'Ann' is not a number"):
        collected()


def test_a_driver_that_does_not_work_is_told(armature):
    driver = armature.data.driver_add("poise_mixture.stiff").driver
    driver.expression = "nobody_knows_this"
    bpy.context.view_layer.update()
    with pytest.raises(SettingsError, match=r"does not work \(poise_mixture\.stiff\): mend or"):
        collected()
    driver.expression = "0.25"
    bpy.context.view_layer.update()
    assert collected()["stiff"] == pytest.approx(0.25)


def test_shares_of_who_stops_are_a_mistake(armature, tmp_path, capsys):
    assert poise("simulate", save(tmp_path), "--falls-like", "limp=0.3") == 2
    assert "--falls-like needs --when-it-falls limp, brace, roll" in capsys.readouterr().err


def test_a_change_of_a_share_is_one(armature):
    options = ShotOptions(armature="Ann")
    before = outdated.settings_of(bpy.context.scene, armature, options)
    armature.data.poise_mixture.stiff = 0.5
    now = outdated.settings_of(bpy.context.scene, armature, options)
    assert outdated.changed(before, now) == ["Falls Like"]


def test_the_panel_says_where_nothing_falls(armature, monkeypatch):
    drawn, said = [], []

    class Layout:
        def column(self, **_):
            return self

        def prop(self, _owner, name, **_more):
            drawn.append(name)

    monkeypatch.setattr(weights_panel, "sentence", lambda *given: said.append(given[2]))
    panel = weights_panel.POISE_PT_mixture
    panel.content(None, Layout(), bpy.context, armature, "")
    assert drawn == [*BEHAVIOURS] and "choose When It Falls" in said[0]
    bpy.context.scene.poise.when_it_falls = "BRACE"
    panel.content(None, Layout(), bpy.context, armature, "")
    assert len(said) == 1


@pytest.mark.slow(captured=False)
@pytest.mark.once
def test_the_command_line_mixes(tmp_path, import_clip, capsys):
    import_clip("stand")
    shot, path, falls = save(tmp_path), tmp_path / "report.json", []
    given = ("--when-it-falls", "roll", "--push", "30,0.2,0,600,0", "--frames=1:420")
    for mixed in ((), ("--falls-like", "limp=0.5", "--falls-like", "stiff=0.2")):
        assert poise("simulate", shot, *given, *mixed, "--report", path, "--overwrite") == 0
        falls.append(json.loads(path.read_text()))
    plain, mixed = falls
    assert plain["when_it_falls"] == mixed["when_it_falls"] == "roll"
    assert plain["mixed"] == {} and mixed["mixed"] == {"limp": 0.5, "stiff": 0.2}
    assert plain["fell_at"] == mixed["fell_at"] and plain["rest_at"] != mixed["rest_at"]
    assert (
        poise("simulate", shot, *given, "--falls-like", "limp=0.5", "--falls-like", "stiff=1") != 0
    )
    assert "' come to 1.5 at frame 1: have" in capsys.readouterr().err

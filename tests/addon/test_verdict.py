# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict in Blender: in the sidebar, in reports, from keys, and beside a judge that knows
nothing of Poise."""

import importlib.util
import json
from pathlib import Path
from types import SimpleNamespace

import bpy
import pytest
from helpers.commands import poise, save
from mathutils import Vector

from poise.addon.blender import compat, session
from poise.addon.blender.translations import FOLDER, Catalog, read
from poise.addon.kit import parts
from poise.addon.shots.shot import Shot, ShotOptions
from poise.controller.checks.verdict import FEET, MEASURES

pytestmark = [pytest.mark.once, pytest.mark.usefixtures("registered")]


def baked(armature, **options):
    """A Shot of an armature's action that is simulated, baked and measured."""
    shot = Shot(bpy.context.scene, ShotOptions(armature=armature.name, **options))
    for stage in (shot.read, shot.simulate, shot.baking, shot.measure):
        for _ in stage():
            pass
    return shot


def simulate(frames=None):
    """Press Simulate; balance alone."""
    settings = bpy.context.scene.poise
    settings.method = "BALANCE"
    if frames:
        settings.frames, settings.first_frame, settings.last_frame = "CUSTOM", *frames
    bpy.ops.poise.simulate()


class Icons:
    """A stand-in for UILayout that takes down (text, icon) and the buttons."""

    def __init__(self, shown=None, buttons=None):
        self.shown = [] if shown is None else shown
        self.buttons = [] if buttons is None else buttons

    def label(self, text="", icon="NONE", **_options):
        self.shown.append((text, icon))

    def operator(self, name, text="", icon="NONE", **_options):
        self.buttons.append(SimpleNamespace(name=name, text=text, icon=icon))
        return self.buttons[-1]

    def _part(self, **_options):
        return Icons(self.shown, self.buttons)

    row = column = box = _part


def outcome(armature):
    """What the box in the sidebar shows: (all its text, its icons, its buttons)."""
    region = SimpleNamespace(width=260)
    preferences = SimpleNamespace(system=SimpleNamespace(ui_scale=1.0))
    context = SimpleNamespace(scene=bpy.context.scene, preferences=preferences, region=region)
    layout = Icons()
    parts.draw_outcome(layout, context, session.result_of(bpy.context.scene, armature))
    icons = {icon for _, icon in layout.shown} - {"BLANK1"}
    return " ".join(text for text, _ in layout.shown), icons, layout.buttons


# --- In the sidebar ------------------------------------------------------------------------------


def test_a_keeper_has_the_tick(import_clip):
    armature = import_clip("stand")
    simulate()
    assert outcome(armature) == ("Keeper: 1.68 s, to frame 102", {"CHECKMARK"}, [])
    with pytest.raises(RuntimeError, match="There are 0 findings only"):
        bpy.ops.poise.show_flaw(index=0)


def test_what_stood_and_is_no_keeper_says_why_and_leads_there(import_clip):
    armature, scene = import_clip("jump"), bpy.context.scene
    simulate()
    verdict = session.result_of(scene, armature).shot.verdict
    text, icons, buttons = outcome(armature)
    assert text.startswith("Stood, but (1.73 s, to frame 53):") and icons == {"INFO"}
    assert max(len(button.text) for button in buttons) < 32, "no line is cut"
    for i, finding in enumerate(verdict.findings):
        told = " ".join(button.text for button in buttons if button.index == i)
        assert told.lower() == finding.sentence.lower()
        scene.frame_set(1)
        assert bpy.ops.poise.show_flaw(index=i) == {"FINISHED"}
        assert scene.frame_current == finding.frame
        assert f"at frame {finding.frame:g}" in finding.sentence
    with pytest.raises(RuntimeError, match=r"There are \d+ findings only"):
        bpy.ops.poise.show_flaw(index=len(verdict.findings))


def test_a_fall_says_when_and_why_and_leads_there(import_clip):
    """First that it fell, then from where on it could not but fall, then what was wrong before."""
    armature, scene = import_clip("stand"), bpy.context.scene
    push = scene.poise.pushes.items.add()
    push.strength, push.frame = 600.0, 20
    simulate()
    shot = session.result_of(scene, armature).shot
    assert not shot.recording.success and not shot.verdict.keeper
    text, icons, buttons = outcome(armature)
    assert (text, icons) == ("", set()) and buttons[0].icon == "CANCEL"
    told = [" ".join(b.text for b in buttons if b.index == i) for i in range(len(shot.flaws))]
    assert told[0] == shot.why and told[0].startswith("Fell at ")
    fell, lost, *before = (flaw.frame for flaw in shot.flaws)
    assert told[1] == f"It loses its balance at frame {lost:g}" and lost < fell
    assert all(frame < lost for frame in before)
    for i, frame in enumerate((fell, lost)):
        assert bpy.ops.poise.show_flaw(index=i) == {"FINISHED"}
        assert scene.frame_current == frame


def test_buttons_of_no_result_are_grey(import_clip):
    import_clip("stand")
    assert not bpy.ops.poise.show_flaw.poll()


def test_after_a_bake_the_keys_count(import_clip):
    armature = import_clip("stand")
    simulate()
    shot = session.result_of(bpy.context.scene, armature).shot
    of_simulation = shot.verdict
    assert shot.verdict is of_simulation, "it is remembered"
    bpy.ops.poise.bake()
    of_keys = shot.verdict
    assert of_keys is not of_simulation and of_keys.keeper
    bpy.data.actions.remove(bpy.data.actions[shot.baked.action])
    assert shot.verdict is of_simulation, "the bake is gone"


@pytest.mark.slow(captured=False)
def test_what_was_cleaned_is_compared_with_the_cleaned_motion(import_clip, tmp_path, capsys):
    """A pop that Automatic has taken out is no flaw, and nothing that a search could mend."""
    armature = import_clip("stand")
    bone = armature.pose.bones[0]
    rest = armature.matrix_world.to_3x3() @ bone.bone.matrix_local.to_3x3()
    away = rest.inverted() @ Vector((40, 0, 10))
    for curve in compat.curves(*compat.assigned(armature)):
        if curve.data_path == bone.path_from_id("location"):
            curve.keyframe_points[50].co.y += away[curve.array_index]
    saved, path = save(tmp_path), tmp_path / "report.json"
    assert bpy.ops.poise.simulate() == {"FINISHED"}
    shot = session.result_of(bpy.context.scene, armature).shot
    assert shot.mended and shot.choice.method == "balance" and shot.rectified is None
    assert shot.judge().keeper, shot.judge().findings
    told = "Keeper: 1.68 s, to frame 102 Compared with the cleaned motion."
    assert outcome(armature)[0] == told
    bpy.ops.poise.bake()
    assert shot.verdict is not shot.judge() and shot.verdict.keeper
    assert poise("bake", saved, "--clean=despike", "--report", path) == 0
    assert "It is a keeper, compared with the cleaned motion." in capsys.readouterr().err
    verdict = json.loads(path.read_text())["verdict"]
    assert verdict["keeper"] and verdict["compared_with"] == "cleaned"


@pytest.mark.slow(captured=False)
def test_few_keys_are_judged_as_they_are(import_clip):
    """What a bow with a key in each second loses, only the keys can tell."""
    armature = import_clip("bow")
    simulate()
    bpy.context.scene.poise.keys, bpy.context.scene.poise.key_every = "NTH", 60
    bpy.ops.poise.bake()
    shot = session.result_of(bpy.context.scene, armature).shot
    of_keys, of_simulation = (
        {judged.name: judged.after for judged in verdict.judged}
        for verdict in (shot.verdict, shot.judge())
    )
    assert of_keys["pose"] > 1.5 * of_simulation["pose"]
    assert of_keys["jerk"] < of_simulation["jerk"]


# --- Before a bake, and after it -----------------------------------------------------------------


@pytest.mark.parametrize("clip", ["wave", "walk_slow"])
def test_before_a_bake_it_says_what_the_keys_will(import_clip, clip):
    shot = baked(import_clip(clip), frames=(1, 120))
    before = {judged.name: judged for judged in shot.judge().judged}
    for judged in shot.verdict.judged:
        near = pytest.approx(before[judged.name].after or 0.0, rel=1e-3, abs=1e-5)
        assert (judged.after or 0.0) == near
        assert judged.passes == before[judged.name].passes


# --- Reports -------------------------------------------------------------------------------------


def test_a_report_has_the_verdict_in_finite_numbers(import_clip, tmp_path, capsys):
    import_clip("stand")
    shot, path = tmp_path / "shot.blend", tmp_path / "report.json"
    bpy.ops.wm.save_as_mainfile(filepath=str(shot))
    assert poise("bake", shot, "--report", path) == 0
    assert "It is a keeper." in capsys.readouterr().err
    verdict = json.loads(path.read_text(), parse_constant=pytest.fail)["verdict"]
    assert verdict["keeper"] is True and verdict["not_kept_for"] == verdict["findings"] == []
    assert list(verdict["measures"]) == list(MEASURES)
    for name, measure in verdict["measures"].items():
        assert measure["unit"] == MEASURES[name].unit
        assert measure["passes"] and measure["after"] <= measure["limit"]
        assert 1 <= measure["frame"] <= 102


def test_the_command_line_says_why_it_would_not_be_kept(import_clip, tmp_path, capsys):
    import_clip("jump")
    shot, path = tmp_path / "shot.blend", tmp_path / "report.json"
    bpy.ops.wm.save_as_mainfile(filepath=str(shot))
    assert poise("simulate", shot, "--report", path) == 0
    told = capsys.readouterr().err
    verdict = json.loads(path.read_text())["verdict"]
    assert verdict["not_kept_for"] == ["hanging"] and not verdict["keeper"]
    assert "It stood to the end." in told and "But it would not be kept:" in told
    for finding in verdict["findings"]:
        assert finding["sentence"] in told


@pytest.mark.parametrize("foot", FEET)
@pytest.mark.parametrize(
    "words", [words for measure in MEASURES.values() for words in measure.words]
)
def test_findings_are_said_in_german(words, foot):
    german = Catalog(read(FOLDER / "de.po"))
    sentence = words.format(foot=foot, worst=23.456, ratio=1.5, frame=41.0)
    said = german.say(sentence[0].upper() + sentence[1:])
    assert said[0].isupper() and said.endswith(" bei Bild 41")
    assert foot not in said.lower()


# --- Beside others' ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def keepers():
    """The module that compares."""
    path = Path(__file__).resolve().parents[1] / "keepers.py"
    spec = importlib.util.spec_from_file_location("keepers", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("clip", ["stand", "wave", "bow", "squat", "walk_slow"])
def test_a_judge_that_knows_keys_alone_comes_to_the_same(import_clip, keepers, clip):
    judge = keepers.judge_module()
    if judge is None:
        pytest.skip("no judge; set POISE_KEEPERS to the folder of judge.py")
    for name, (ours, theirs) in keepers.compared(judge, baked(import_clip(clip))).items():
        assert ours[2] == theirs[2], name
        if theirs[1] is not None and ours[1] is not None:
            # It counts other joints of spine and head.
            assert ours[1] == pytest.approx(theirs[1], rel=0.07), name

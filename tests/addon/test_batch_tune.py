# SPDX-License-Identifier: GPL-3.0-or-later
"""`poise bake --optimize` and `--strip`: which gains are used, and what is drawn."""

import json
from dataclasses import replace
from types import SimpleNamespace
from xml.etree import ElementTree

import bpy
import numpy as np
import pytest
from helpers.commands import poise, save

from poise.addon.command import command_tune
from poise.addon.command.command_optimize import NoTrialError
from poise.addon.plots import batch_strip
from poise.addon.rigs.sampling import run
from poise.addon.shots.shot import Shot, ShotOptions
from poise.controller.geometry.skeleton import LANDMARK_INDEX
from poise.controller.reference.performed import performed_motion

pytestmark = pytest.mark.once

FRAMES = "--frames=1:60"


@pytest.fixture
def shot(tmp_path, import_clip):
    """A saved .blend of a clip that stands; nothing else in its folder."""
    import_clip("wave")
    return save(tmp_path)


def found(monkeypatch, factor, chosen, confirmed_at=None):
    """Let searches find the start's stiffness times a factor; returns the calls."""
    calls = []

    def search(options, problem, start, settings, checkpoint):
        calls.append((problem, start, settings))
        gains = replace(start, stiffness=factor * start.stiffness, damping=factor * start.damping)
        facts = {"ended": "budget", "success_at": None, "unseen": [], "seconds": 1.0, "cpu": 1.0}
        facts |= {"wall": 1.0, "settings": {}, "confirmed_at": confirmed_at}
        return SimpleNamespace(
            gains=gains,
            chosen=chosen,
            confirmed_at=confirmed_at,
            wall=1.0,
            history=[SimpleNamespace(index=0), SimpleNamespace(index=1)],
            as_dict=lambda: facts,
        )

    monkeypatch.setattr(command_tune, "search_gains", search)
    return calls


@pytest.mark.slow(captured=False)
@pytest.mark.parametrize(
    ("factor", "chosen", "confirmed_at", "used"),
    [
        (0.97, "mean", 1, "confirmed"),
        (0.01, "best", None, "start"),
        (1.0, "start", None, "start"),
    ],
)
def test_gains_are_used_if_they_are_better(
    shot, tmp_path, monkeypatch, capsys, factor, chosen, confirmed_at, used
):
    calls = found(monkeypatch, factor, chosen, confirmed_at)
    plain, tuned = tmp_path / "plain.json", tmp_path / "tuned.json"
    assert poise("bake", shot, FRAMES, "--report", plain) == 0
    more = ("--optimize=90s", "--workers=0", "--seed=4", "--overwrite", "--report", tuned)
    assert poise("bake", shot, FRAMES, *more) == 0
    (_problem, _start, settings) = calls[0]
    assert (settings.budget, settings.seed) == (90.0, 4)
    before, after = json.loads(plain.read_text()), json.loads(tuned.read_text())
    assert after["optimization"]["used"] == used
    assert after["optimization"]["generations"] == 1
    ratio = after["gains"]["stiffness"]["spine_pitch"] / before["gains"]["stiffness"]["spine_pitch"]
    assert ratio == pytest.approx(factor if used != "start" else 1.0)
    assert before["optimization"] is None


@pytest.mark.slow(captured=False)
def test_best_gains_are_used_if_the_shot_gets_further(tmp_path, import_clip, monkeypatch):
    """From gains that are far too weak."""
    import_clip("wave")
    shot = tmp_path / "shot.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(shot))
    report, gains = tmp_path / "report.json", tmp_path / "weak.json"
    assert poise("bake", shot, FRAMES, "--report", report) == 0
    weak = json.loads(report.read_text())["gains"]
    for kind in ("stiffness", "damping"):
        weak[kind] = {name: k / 1000 for name, k in weak[kind].items()}
    gains.write_text(json.dumps(weak))
    command = (
        "bake",
        shot,
        FRAMES,
        "--noise=10",
        "--gains",
        gains,
        "--overwrite",
        "--report",
        report,
    )
    assert poise(*command) == 3
    found(monkeypatch, 1000.0, "best")
    assert poise(*command, "--optimize=1min") == 0
    assert json.loads(report.read_text())["optimization"]["used"] == "best"


def test_search_without_a_trial_or_an_end(shot, tmp_path, monkeypatch, capsys):
    def no_trial(*_):
        raise NoTrialError("over")

    report = tmp_path / "report.json"
    monkeypatch.setattr(command_tune, "search_gains", no_trial)
    assert poise("bake", shot, FRAMES, "--optimize=1s", "--report", report) == 0
    assert json.loads(report.read_text())["optimization"]["used"] == "start"
    assert "the gains to start from are used" in capsys.readouterr().err
    monkeypatch.setattr(command_tune, "search_gains", lambda *_: None)  # Ctrl-C
    assert poise("bake", shot, FRAMES, "--optimize=1s", "--overwrite") == 1


def test_workers_need_a_search(shot, capsys):
    assert poise("bake", shot, "--workers=2") == 2
    assert "--workers needs --rectify" in capsys.readouterr().err
    assert poise("bake", shot, "--optimize=soon") == 2
    assert "'soon' is not a time" in capsys.readouterr().err


# --- The strip ----------------------------------------------------------------------------------


def strip_of(import_clip, clip):
    """(the strip of a simulated clip as an XML tree, the recording)."""
    import_clip(clip)
    shot = Shot(bpy.context.scene, ShotOptions())
    run(shot.read())
    for _sample in shot.simulate():
        pass
    text = batch_strip.strip(shot.recording)
    assert len(text.encode()) < 20_000
    return ElementTree.fromstring(text), shot.recording


def strokes(tree):
    """Colours of the stick figures, in order."""
    paths = [path for path in tree.iter() if path.tag.endswith("path")]
    return [path.get("stroke") for path in paths if path.get("d").count("M") > 3]


def test_strip_shows_both_rows(import_clip):
    tree, recording = strip_of(import_clip, "stand")
    assert recording.fell_at is None
    assert strokes(tree) == [batch_strip._SOURCE, batch_strip._RESULT] * batch_strip.MOMENTS
    times = [text.text for text in tree.iter() if text.tag.endswith("text")]
    assert times[0] == "0.0 s" and times[-1] == f"{recording.motion.duration:.1f} s"


def test_strip_has_toes_where_the_bake_has_them(import_clip):
    _tree, recording = strip_of(import_clip, "stand")
    samples = np.array([0, len(recording) - 1])
    result, source = (
        part(recording, samples) for part in (batch_strip._result, batch_strip._source)
    )
    baked = performed_motion(recording)
    for side in "lr":
        toe, ball = (LANDMARK_INDEX[f"{name}_{side}"] for name in ("toe", "ball"))
        assert result[:, ball] == pytest.approx(baked.positions[samples, ball], abs=2e-3)
        own, theirs = result[:, toe] - result[:, ball], source[:, toe] - source[:, ball]
        assert np.linalg.norm(own, axis=1) == pytest.approx(np.linalg.norm(theirs, axis=1))


def test_strip_is_red_where_it_fell_and_ends_there(import_clip):
    tree, recording = strip_of(import_clip, "side_kick")
    below = [colour for colour in strokes(tree) if colour != batch_strip._SOURCE]
    last, count = len(recording) - 1, len(recording.motion)
    moments = np.linspace(0, count - 1, batch_strip.MOMENTS).round()
    standing = int((moments < last).sum())
    assert below == [batch_strip._RESULT] * standing + [batch_strip._FELL]
    assert strokes(tree).count(batch_strip._SOURCE) == batch_strip.MOMENTS


def test_bake_writes_the_strip(shot, capsys):
    drawn = shot.with_name("strip.svg")
    assert poise("bake", shot, FRAMES, "--strip", drawn) == 0
    assert ElementTree.parse(drawn).getroot().tag.endswith("svg")
    assert poise("bake", shot, FRAMES, "--overwrite", "--strip", shot.with_name("gone") / "x") == 1
    assert "There is no folder" in capsys.readouterr().err

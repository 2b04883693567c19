# SPDX-License-Identifier: GPL-3.0-or-later
"""`poise bake --rectify` and `--method`: what is written and told, how it ends, and how it goes on
after an end. The searches are real, but as small as can be, of half a second of a walk."""

import json
import re
from types import SimpleNamespace

import bpy
import pytest
from helpers.commands import listing, poise, save

from poise.addon.blender import compat
from poise.addon.blender.locks import claimed
from poise.addon.command import command_rectify
from poise.addon.settings import method
from poise.addon.shots.shot import Shot
from poise.controller import documents
from poise.controller.search import rectification
from poise.controller.search.correction import Correction
from poise.controller.simulation import recording

pytestmark = pytest.mark.once

FRAMES = "--frames=1:31"  # five nodes
RECTIFY = (FRAMES, "--rectify=draft", "--workers=0")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Searches that are soon over."""
    preset = rectification.Preset(population=6, generations=1, free=1, horizon=1)
    monkeypatch.setitem(rectification.PRESETS, "draft", preset)


@pytest.fixture
def shot(tmp_path, import_clip):
    """A saved .blend with the armature 'walk' and its action; nothing else in its folder."""
    import_clip("walk")
    return save(tmp_path)


def budget_after(monkeypatch, count):
    """Let the budget be over after so many nodes."""
    left = rectification.Rectification._left
    monkeypatch.setattr(
        rectification.Rectification,
        "_left",
        lambda search: 0.0 if len(search.nodes) >= count else left(search),
    )


def test_bake_rectifies_and_reports(shot, capsys):
    path = shot.parent / "report.json"
    assert poise("bake", shot, *RECTIFY, "--seed=3", "--report", path) == 0
    assert set(listing(shot.parent)) == {"shot.blend", "shot_poise.blend", "report.json"}
    told = capsys.readouterr().err
    assert re.search(r"\nrectified 0\.50 of 0\.50 s: 5 nodes, went back 0 times, \d+ s elap", told)
    assert "It stood to the end." in told
    report = json.loads(path.read_text(), parse_constant=lambda word: pytest.fail(word))
    assert report["success"] is True and report["frames"] == report["range"] == [1, 31]
    assert report["method"] is None, "nothing was chosen"
    figures = report["rectification"]
    assert figures["ended"] == "done" and figures["reached"] == 0.5 and figures["cpu"] > 0
    assert figures["settings"] == {
        "preset": "draft",
        "method": "cma",
        "seed": 3,
        "budget": None,
    }
    assert len(Correction.from_dict(figures["correction"]).offsets) == 6
    assert report["units"]["reached"] == report["units"]["cpu"] == "s"
    assert report["foot_slide"]["after"] is not None


@pytest.mark.slow(captured=False)
def test_each_second_is_told(shot, capsys):
    assert poise("simulate", shot, "--frames=1:65", *RECTIFY[1:]) in (0, 3)
    lines = [line for line in capsys.readouterr().err.splitlines() if "rectified" in line]
    assert [line.split()[1] for line in lines] == ["1.00", "1.07"]
    assert set(listing(shot.parent)) == {"shot.blend"}


@pytest.mark.slow(captured=False)
def test_a_budget_bakes_what_it_reached_and_goes_on(shot, monkeypatch, capsys):
    whole, parts = shot.with_name("whole.json"), shot.with_name("parts.json")
    assert poise("simulate", shot, *RECTIFY, "--report", whole) == 0
    with monkeypatch.context() as patch:
        budget_after(patch, 2)
        assert poise("bake", shot, *RECTIFY, "--budget=1h", "--report", parts) == 3
    told = capsys.readouterr().err
    assert "The budget ran out at 0.20 of 0.50 s (frame 13)" in told
    assert "checkpoint' keeps what is done: the same command with more --budget goes on." in told
    report = json.loads(parts.read_text())
    assert report["success"] is False and report["frames"] == [1, 13]
    assert report["why"].startswith("The budget ran out")
    assert "shot_poise.blend.checkpoint" in set(listing(shot.parent))
    assert poise("bake", shot, *RECTIFY, "--report", parts, "--overwrite") == 0
    assert "Going on after 0.20 s." in capsys.readouterr().err
    assert "shot_poise.blend.checkpoint" not in set(listing(shot.parent))
    found = [json.loads(path.read_text())["rectification"] for path in (whole, parts)]
    assert found[0]["correction"] == found[1]["correction"]


def test_a_checkpoint_that_cannot_be_written_is_told(shot, monkeypatch, capsys):
    def full(path, text):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(documents, "write", full)
    budget_after(monkeypatch, 2)
    assert poise("bake", shot, *RECTIFY, "--budget=1h") == 3
    told = capsys.readouterr().err
    path = shot.with_name("shot_poise.blend.checkpoint")
    warning = f"poise: The checkpoint '{path}' cannot be written (No space left on device)"
    assert told.count(warning) == 1
    assert f"'{path}' could not be written: this cannot be resumed." in told
    assert set(listing(shot.parent)) == {"shot.blend", "shot_poise.blend"}


def test_a_place_without_checkpoints_is_told_before_any_work(shot, capsys):
    lost = shot.with_name("gone") / "mine.json"
    assert poise("bake", shot, *RECTIFY, "--checkpoint", lost) == 1
    told = capsys.readouterr().err
    assert f"poise: There is no folder '{lost.parent}': make it, or name another one." in told
    assert "reading" not in told and set(listing(shot.parent)) == {"shot.blend"}


def test_a_budget_that_reaches_nothing_writes_nothing(shot, monkeypatch, capsys):
    budget_after(monkeypatch, 0)
    assert poise("bake", shot, *RECTIFY, "--budget=1h") == 1
    assert "The budget ran out at 0.00 of 0.50 s" in capsys.readouterr().err
    assert set(listing(shot.parent)) == {"shot.blend"}


def test_interrupted_it_keeps_the_checkpoint(shot, monkeypatch, capsys):
    poll = rectification.Rectification.poll

    def interrupted(search):
        if len(search.nodes) == 2:
            raise KeyboardInterrupt
        return poll(search)

    with monkeypatch.context() as patch:
        patch.setattr(rectification.Rectification, "poll", interrupted)
        assert poise("bake", shot, *RECTIFY) == 1
    assert "Stopped. '" in (told := capsys.readouterr().err)
    assert "keeps what is done: the same command goes on from there." in told
    assert set(listing(shot.parent)) == {"shot.blend", "shot_poise.blend.checkpoint"}
    assert poise("bake", shot, *RECTIFY) == 0
    assert "Going on after 0.20 s." in capsys.readouterr().err
    assert set(listing(shot.parent)) == {"shot.blend", "shot_poise.blend"}


@pytest.mark.slow(captured=False)
def test_a_checkpoint_of_another_search_is_refused(shot, monkeypatch, capsys):
    mine = shot.with_name("mine.json")
    with monkeypatch.context() as patch:
        budget_after(patch, 1)
        poise("simulate", shot, *RECTIFY, "--budget=1h", "--checkpoint", mine)
    kept = mine.read_bytes()
    capsys.readouterr()
    for other in ("--seed=4", "--mass=40", "--frames=2:31", "--push=10,0.2,20,0,0"):
        assert poise("bake", shot, *RECTIFY, "--checkpoint", mine, other) == 1
        assert "belongs to another rectification" in capsys.readouterr().err
    mine.write_text("{")
    assert poise("bake", shot, *RECTIFY, "--checkpoint", mine) == 1
    assert "is not JSON" in capsys.readouterr().err
    mine.write_bytes(kept)
    assert poise("bake", shot, *RECTIFY, "--checkpoint", mine) == 0
    assert not mine.exists()


def test_two_at_once_are_refused(shot, capsys):
    checkpoint = shot.with_name("shot_poise.blend.checkpoint")
    with claimed(checkpoint, "mine"):
        assert poise("bake", shot, *RECTIFY) == 1
    assert "Another process works towards" in capsys.readouterr().err


def test_the_target_alone_is_an_action_of_its_own(shot):
    path = shot.with_name("report.json")
    assert poise("bake", shot, *RECTIFY, "--target-only", "--report", path) == 0
    assert json.loads(path.read_text())["baked_action"] == "walk Poise Target"
    bpy.ops.wm.open_mainfile(filepath=str(shot.with_name("shot_poise.blend")))
    assert [action.name for action in bpy.data.actions] == ["walk", "walk Poise Target"]


# --- Choosing ------------------------------------------------------------------------------------


def test_auto_balances_what_stands(tmp_path, import_clip, capsys):
    import_clip("wave")
    shot, path = save(tmp_path), tmp_path / "report.json"
    assert poise("simulate", shot, FRAMES, "--method=auto", "--report", path) == 0
    assert "Balance alone will do" in capsys.readouterr().err
    report = json.loads(path.read_text())
    assert report["method"]["method"] == "balance" and report["rectification"] is None
    assert "Balance alone will do" in report["method"]["why"]
    assert poise("bake", shot, FRAMES, "--method=auto", "--target-only") == 1
    assert "was not rectified" in capsys.readouterr().err
    assert not (tmp_path / "shot_poise.blend").exists()


def test_auto_tries_balance_first_on_what_travels(tmp_path, import_clip, monkeypatch, capsys):
    """A walk that comes out as a keeper is not searched for."""
    import_clip("walk_slow")
    shot = save(tmp_path)
    monkeypatch.setattr(command_rectify, "_rectify", lambda *_: pytest.fail("rectified"))
    path = shot.with_name("report.json")
    assert poise("simulate", shot, *RECTIFY[1:], "--method=auto", "--report", path) == 0
    assert "it leaves its place" in capsys.readouterr().err
    report = json.loads(path.read_text())
    assert report["method"]["method"] == "balance" and report["rectification"] is None
    assert report["method"]["why"].endswith(" Balance alone was enough.")
    assert report["verdict"]["keeper"] and report["verdict"]["score"] == 1


def test_auto_searches_for_nothing_while_the_timing_is_in_doubt(tmp_path, import_clip, capsys):
    """A capture of 60 frames a second that was imported into a scene of 24."""
    import_clip("walk")
    shot = save(tmp_path)
    assert poise("simulate", shot, "--method=auto", "--fps=24") in (0, 3)
    told = capsys.readouterr().err
    assert "it steps as if in slow motion" in told
    assert "A search takes long, and would be for a motion that may be timed otherwise" in told
    assert "rectifying" not in told and "Rectified" not in told


def test_what_is_helped_from_outside_is_not_searched_for(tmp_path, import_clip, capsys):
    """It is performed by balance, and told how much help that took."""
    import_clip("dance")
    shot = save(tmp_path)
    path, helped = shot.with_name("report.json"), ("--frames=1:60", "--outside-help=0.5")
    assert poise("simulate", shot, *helped, "--method=auto", "--report", path) in (0, 3)
    told, report = capsys.readouterr().err, json.loads(path.read_text())
    assert report["method"]["method"] == "balance" and report["outside_help"] == 0.5
    assert f"Help from outside: {report['residual']:.0f} N in the mean" in told
    assert poise("bake", shot, *helped, "--method=rectify") == 1
    assert "set Help from Outside to 0" in capsys.readouterr().err
    assert not (tmp_path / "shot_poise.blend").exists()


@pytest.mark.parametrize("nodes", [0, 1])
def test_auto_searches_for_what_is_no_keeper_and_takes_the_better(
    tmp_path, import_clip, monkeypatch, capsys, nodes
):
    """A search that was cut off at once, or after a tenth of a second, is worse than the longer
    fall."""
    import_clip("dance")
    shot = save(tmp_path)
    found = SimpleNamespace(recommend="tune", verdict="Tune: so it says", mends=(), doubts=())
    monkeypatch.setattr(Shot, "check", lambda _: found)
    path = shot.with_name("report.json")
    arguments = ("--frames=1:90", *RECTIFY[1:], "--method=auto", "--report", path)
    with monkeypatch.context() as patch:
        budget_after(patch, nodes)
        assert poise("simulate", shot, *arguments, "--budget=1h", "--without-help") == 3
    report = json.loads(path.read_text())
    assert report["method"]["method"] == "balance" and report["rectification"] is None
    why = report["method"]["why"]
    assert re.search("Fell at|Stopped at", why)
    assert why.endswith("does not go as far, so that is what is kept.")
    assert report["fell_at"] > 0.1
    assert "Tune: so it says." in capsys.readouterr().err


@pytest.mark.parametrize("disturbed", ["nothing", "push", "at once"])
def test_auto_helps_what_the_check_was_content_with(
    tmp_path, import_clip, monkeypatch, capsys, disturbed
):
    """But what is pushed out of that is to react, and who falls at once is carried by nothing."""
    import_clip("dance")
    shot = save(tmp_path)
    said = "Balance alone will do: so it says"
    found = SimpleNamespace(recommend="balance", verdict=said, mends=(), doubts=())
    monkeypatch.setattr(Shot, "check", lambda _: found)
    monkeypatch.setattr(command_rectify, "_rectify", lambda *_: pytest.fail("rectified"))
    monkeypatch.setattr(method, "keeps_help", lambda *asked: helped.append(asked) or True)
    if disturbed == "at once":
        monkeypatch.setattr(recording.Recording, "__len__", lambda _: 1)
    helped, path = [], shot.with_name("report.json")
    pushed = ("--push=40,0.2,0,1,0",) if disturbed == "push" else ()
    poise("simulate", shot, "--frames=1:90", *pushed, "--method=auto", "--report", path)
    assert len(helped) == (disturbed == "nothing")
    if disturbed == "push":
        why = json.loads(path.read_text())["method"]["why"]
        assert why == "Balance alone was tried: by itself so it says."


@pytest.mark.slow(captured=False)
def test_what_is_to_be_mended_is_told_before(tmp_path, import_clip, capsys):
    """Of held keys, whatever the method; a blown-up body was told of gains instead."""
    for curve in compat.curves(*compat.assigned(import_clip("run"))):
        for i in reversed(range(len(curve.keyframe_points))):
            curve.keyframe_points[i].interpolation = "CONSTANT"
            if i % 6:
                curve.keyframe_points.remove(curve.keyframe_points[i], fast=True)
        curve.update()
    shot, output = save(tmp_path), tmp_path / "out.blend"
    assert poise("inspect", shot, FRAMES) == 0
    out, _ = capsys.readouterr()
    (verdict,) = (line.removeprefix("check").strip() for line in out.splitlines() if "Mend" in line)
    assert verdict.startswith("Mend first: frames ") and "jumps" in verdict
    for command in (
        ("simulate", shot),
        ("bake", shot, "--output", output),
        ("bake", shot, "--output", output, "--overwrite", *RECTIFY[1:], "--budget=1s"),
        ("simulate", shot, "--method=auto", *RECTIFY[2:], "--budget=1s"),
    ):
        poise(*command, FRAMES)
        told = capsys.readouterr().err
        chosen = "--method=auto" in command
        work = "rectified" if "--budget=1s" in command[3:] and not chosen else "simulating"
        expected = "Cleaned by itself (Despike, Ground): frames " if chosen else verdict
        assert 0 < told.index(expected) < told.index(work), command


def test_without_a_word_nothing_is_rectified(tmp_path, import_clip, monkeypatch):
    import_clip("dance")
    shot = save(tmp_path)
    monkeypatch.setattr(command_rectify, "_rectify", lambda *_: pytest.fail("rectified"))
    assert poise("simulate", shot, "--frames=1:100") == 3


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("--rectify", "best"), "invalid choice: 'best' (choose from"),
        (("--rectify=draft", "--budget=soon"), "'soon' is not a time"),
        (("--rectify=draft", "--method=balance"), "not allowed with --method balance"),
        (("--budget=1min",), "--budget needs --rectify"),
        (("--target-only",), "--target-only needs --rectify"),
        (("--without-help",), "--without-help needs --method auto"),
        (("--method=balance", "--workers=2"), "--workers needs --rectify"),
        (("--rectify=draft", "--seed=-1"), "'-1' is not a whole number from 0"),
        (("--rectify=draft", "--search=luck"), "invalid choice: 'luck'"),
        (("--rectify=draft", "--balance=virtual_forces"), None),
    ],
)
def test_wrong_usage(shot, capsys, arguments, message):
    status = poise("bake", shot, FRAMES, *arguments)
    told = capsys.readouterr().err
    if message is None:
        assert status == 1
        assert "Rectification needs the balance mode 'foot_forces'" in told
    else:
        assert status == 2
        assert message in told
    assert set(listing(shot.parent)) == {"shot.blend"}


@pytest.mark.parametrize("way", ["balance", "auto"])
def test_nobody_lies_by_balance(tmp_path, import_clip, monkeypatch, capsys, way):
    """Who lies from the first frame on is refused in words, and not searched for."""
    armature = import_clip("stand")
    armature.rotation_euler.x += 1.5
    armature.location.z += 0.3
    shot = save(tmp_path)
    monkeypatch.setattr(command_rectify, "_rectify", lambda *_: pytest.fail("rectified"))
    assert poise("bake", shot, FRAMES, f"--method={way}") == 1
    assert "nobody lies, kneels or crawls by balance" in capsys.readouterr().err
    assert not (tmp_path / "shot_poise.blend").exists()

# SPDX-License-Identifier: GPL-3.0-or-later
"""`poise robustness`: what it tells and writes, how it ends, what it refuses; and tuning under
disturbances that every generation draws anew."""

import json
import re
import signal
from types import SimpleNamespace

import bpy
import numpy as np
import pytest
from helpers.commands import listing, poise, save

from poise.controller.search.trial import Problem

pytestmark = pytest.mark.once

SHORT = ("--sequences=2", "--phases=1", "--directions=4", "--workers=0")
#: What the stand-in for the body withstands, in steps of 20 N or 0.25 kg.
STEPS = 3


def trial(payload, _gains, seed):
    ((kind, magnitude),) = Problem.from_bytes(payload).disturbance.items()
    stands = magnitude <= STEPS * {"pushes": 20.0, "spheres": 0.25}[kind]
    fell = (None, None) if stands else (3.0, "pose_error")
    return {
        "reward": 1.9 if stands else 0.3,
        "fell_at": fell[0],
        "fell_measure": fell[1],
        "seconds": 20.0,
        "cpu": 1.0,
    }


def bounds(_payload, _kind, angles, shares):
    return {"bounds": [[120.5] * len(angles) for _ in shares], "seconds": 0.0, "cpu": 0.0}


def withstand(_payload, _gains, _seed, _kind, grid, angle, _share):
    return {"limit": grid * (4 + round(angle)), "seconds": 8.0, "cpu": 0.5}


for _function in (trial, bounds, withstand):
    _function.__module__ = "poise.controller.search.trial"


@pytest.fixture
def quick(monkeypatch):
    """Trials that simulate nothing."""
    monkeypatch.setattr("poise.controller.search.robustness.evaluate", trial)
    monkeypatch.setattr("poise.controller.search.robustness.bounds", bounds)
    monkeypatch.setattr("poise.controller.search.robustness.withstand", withstand)


@pytest.fixture
def shot(tmp_path, import_clip):
    """A saved .blend with the armature 'stand' and its action; nothing else in its folder."""
    import_clip("stand")
    return save(tmp_path)


def measure(shot, *arguments):
    return poise("robustness", shot, *SHORT, *arguments)


# --- What it tells and writes -------------------------------------------------------------------


@pytest.mark.slow(captured=False)
def test_table_plot_and_report(quick, shot, capsys):
    before = shot.read_bytes()
    assert measure(shot, "--report", shot.parent / "limit.json") == 0
    assert set(listing(shot.parent)) == {"shot.blend", "shot_limit.png", "limit.json"}
    assert shot.read_bytes() == before
    image = bpy.data.images.load(str(shot.parent / "shot_limit.png"))
    assert tuple(image.size) == (1200, 1200)

    out, err = capsys.readouterr()
    report = json.loads(
        (shot.parent / "limit.json").read_text(), parse_constant=lambda word: pytest.fail(word)
    )
    mass = report["body"]["mass"]
    rows = [line.split() for line in out.splitlines() if re.match(r" +\d+ ", line)]
    assert rows == [
        [f"{force:g}", f"{force * 0.2 / mass:.2f}", f"{2 if force <= 60 else 0}", "of", "2"]
        for force in (0, 20, 40, 60, 80, 100)
    ]
    assert re.search(r"^ +90\.0 +60 +0\.\d\d +120$", out, re.MULTILINE)
    assert "60 N: 2 of 2 stand, about" in err
    assert err.rstrip().endswith("2 of 2 sequences stand, 0 of 2 at 80 N.")

    assert report["measure"] == "push_limit" and report["limit"] == 60 and report["found"]
    assert report["limit_speed"] == pytest.approx(60 * 0.2 / mass)
    assert report["limits"] == [60, 60]
    assert len(report["seeds"]["sequences"]) == 2 and min(report["seeds"]["sequences"]) >= 2**31
    assert set(report["versions"]) == {"poise", "blender", "pybullet", "numpy", "python"}
    assert report["clip"] == "stand" and report["mass"] == mass
    assert report["units"]["limit"] == "N" and report["units"]["limit_speed"] == "m/s"
    assert report["units"]["mass"] == "kg" and report["units"]["height"] == "m"
    assert [row["limit"] for row in report["worst_phase"]] == [40, 60, 70, 90]
    assert report["gains"]["balance"] == "foot_forces"


@pytest.mark.slow(captured=False)
def test_spheres_in_kilograms(quick, shot, capsys):
    png, report = shot.parent / "s.png", shot.parent / "s.json"
    arguments = ("--kind=spheres", "--output", png, "--report", report)
    assert measure(shot, *arguments) == 0
    found = json.loads(report.read_text())
    assert found["measure"] == "object_limit" and found["limit"] == 0.75
    assert found["limit_speed"] == pytest.approx(0.75 * 5.0 / found["mass"])
    assert found["units"]["limit"] == "kg" and found["settings"]["step"] == 0.25
    assert "spheres [kg]" in capsys.readouterr().out and png.exists()


def test_start_step_and_share(quick, shot, capsys):
    assert measure(shot, "--start=50", "--step=5", "--phases=0", "--share=1") == 0
    out, err = capsys.readouterr()
    forces = [line.split()[0] for line in out.splitlines()[1:]]
    assert forces == ["0", "50", "55", "60", "65", "70"]
    assert "Push limit 60 N" in err and "towards" not in out
    assert set(listing(shot.parent)) == {"shot.blend"}  # no phases, no plot


def test_a_budget_that_runs_out_is_told(quick, shot, capsys, monkeypatch):
    now = [0.0]

    def lasting(payload, gains, seed):
        now[0] += 1.0
        return trial(payload, gains, seed)

    lasting.__module__ = "poise.controller.search.trial"
    monkeypatch.setattr("poise.controller.search.robustness.evaluate", lasting)
    clock = SimpleNamespace(monotonic=lambda: now[0], process_time=lambda: now[0])
    monkeypatch.setattr("poise.controller.search.polling.time", clock)
    assert measure(shot, "--budget=5s", "--report", shot.parent / "r.json") == 3
    out, err = capsys.readouterr()
    assert "Nothing was measured by direction, so there is no plot." in err
    assert re.search(r"Push limit at least 20 N .*the budget was over before larger pushes", err)
    report = json.loads((shot.parent / "r.json").read_text())
    assert report["ended"] == "budget" and not report["found"] and len(report["rates"]) == 2
    assert out.splitlines()[-1].split()[0] == "20"


def test_ctrl_c_keeps_what_is_measured(quick, shot, capsys, monkeypatch):
    asked = []

    def interrupted(payload, gains, seed):
        asked.append(seed)
        if len(asked) == 5:
            signal.raise_signal(signal.SIGINT)
        return trial(payload, gains, seed)

    interrupted.__module__ = "poise.controller.search.trial"
    monkeypatch.setattr("poise.controller.search.robustness.evaluate", interrupted)
    # A shell that starts a job in the background lets it ignore Ctrl-C.
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert measure(shot) == 3
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, inherited)
    assert "it was stopped before larger pushes were tried" in capsys.readouterr().err


def test_help_tells_the_exit_status(capsys):
    assert poise("robustness", "--help") == 0
    assert "--sequences" in capsys.readouterr().out
    assert poise("--help") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "the limit found" in text and "ended before the limit was found" in text


# --- What it refuses ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--step=0",), "'0' is not a number from"),
        (("--step=-20",), "'-20' is not a number from"),
        (("--start=0",), "'0' is not a number from"),
        (("--start=nan",), "'nan' is not a number from"),
        (("--sequences=0",), "'0' is not a whole number from 1"),
        (("--directions=3",), "'3' is not a whole number from 4 to 360"),
        (("--share=1.5",), "'1.5' is not a number from 0.01 to 1"),
        (("--kind=stones",), "invalid choice"),
        (("--budget=soon",), "'soon' is not a time"),
        (("--seed=-1",), "'-1' is not a whole number from 0"),
        (("--output=limit.jpg",), "--output is to be a PNG file"),
        (("--workers=1", "--scheduler=tcp://host:8786"), "not allowed with"),
    ],
)
def test_wrong_usage(shot, capsys, arguments, message):
    before = listing(shot.parent)
    assert poise("robustness", shot, *arguments) == 2
    assert message in capsys.readouterr().err
    assert listing(shot.parent) == before


def refused(capsys, *arguments):
    """The one sentence with which it ends."""
    assert poise("robustness", *arguments) == 1
    (sentence,) = (s for s in capsys.readouterr().err.splitlines() if s.startswith("poise: "))
    assert sentence.endswith(".")
    return sentence


def test_nowhere_to_write(shot, capsys):
    missing = shot.parent / "none" / "limit.png"
    assert "There is no folder" in refused(capsys, shot, "--output", missing)
    taken = shot.parent / "limit.png"
    taken.write_bytes(b"mine")
    assert "exists: name another file" in refused(capsys, shot, "--output", taken)
    assert taken.read_bytes() == b"mine"
    folder = shot.parent / "reports"
    folder.mkdir()
    assert "is a folder" in refused(capsys, shot, "--report", folder)


def test_a_folder_that_takes_nothing(shot, capsys, monkeypatch):
    def touch(self, **_options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.touch", touch)
    assert "Nothing can be written in" in refused(capsys, shot)


def test_gains_for_nobody(shot, capsys):
    assert "none.json" in refused(capsys, shot, *SHORT, "--gains", shot.parent / "none.json")


@pytest.mark.slow(captured=False)
def test_a_clip_that_falls_has_a_limit_of_zero(tmp_path, import_clip, capsys):
    import_clip("side_kick")  # falls after half a second, without a push
    shot = save(tmp_path)
    assert measure(shot, "--frames=1:60", "--report", tmp_path / "r.json") == 0
    out, err = capsys.readouterr()
    assert "The limit is 0: undisturbed, 0 of 2 sequences stand, and it falls at 0." in err
    assert "tune it first." in err and "there is no plot" in err
    assert out.splitlines()[-1].split() == ["0", "0.00", "0", "of", "2"]
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["ended"] == "falls" and report["limit"] == 0 and report["fell_at"] < 1


# --- Tuning under disturbances ------------------------------------------------------------------


def test_every_generation_draws_anew(tmp_path, import_clip, monkeypatch, capsys):
    import_clip("stand")
    shot = save(tmp_path)
    seen = []

    def noted(payload, _gains, seed):
        problem = Problem.from_bytes(payload)
        pushes = problem.scenario.with_drawn(problem.disturbance, 20.0, seed).pushes
        forces = np.array([push.force for push in pushes])
        assert np.allclose(np.hypot(*forces.T[:2]), 90.0)
        seen.append((seed, tuple(np.round(forces[:3].ravel(), 6))))
        return {
            "reward": 0.5,
            "fell_at": 5.0,
            "fell_measure": "pose_error",
            "seconds": 5.0,
            "cpu": 0.1,
        }

    noted.__module__ = "poise.controller.search.trial"
    monkeypatch.setattr("poise.controller.search.optimization.evaluate", noted)
    arguments = ("--pushes=90", "--population=4", "--generations=3", "--confirmations=2")
    assert poise("optimize", shot, *arguments, "--workers=0") == 3
    trials, final = seen[3:-4], seen[-4:]  # after the start, and before the choice
    generations = [trials[i : i + 4] for i in range(0, 12, 4)]
    assert len(trials) == 12
    for generation in generations:
        assert len({forces for _, forces in generation}) == 1  # the same for all candidates
    assert len({generation[0][1] for generation in generations}) == 3
    searched = {forces for _, forces in (*seen[:1], *trials)}
    confirming = {forces for _, forces in (*seen[1:3], *final)}
    assert len(confirming) == 4 and not searched & confirming
    assert max(seed for seed, _ in seen) < 2**31
    tuned = json.loads((tmp_path / "shot_gains.json").read_text())["tuned"]
    assert tuned["disturbance"] == {"pushes": 90.0}
    assert poise("optimize", shot, "--spheres=-1") == 2
    assert "'-1' is not a number from" in capsys.readouterr().err

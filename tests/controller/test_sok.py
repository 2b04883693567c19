# SPDX-License-Identifier: GPL-3.0-or-later
"""Sok's experiments: what is compared, the table, the picture, and a run that goes on."""

import json
from dataclasses import replace

import numpy as np
import pytest

from poise.controller import Gains, Settings
from poise.controller.search.trial import Problem
from poise.experiments import sok


@pytest.fixture
def performed(make_motion):
    """performed(component) -> Recording of a person who stands for 1.5 s."""
    problem = Problem(make_motion(1.5), settings=Settings(rate=120.0))
    gains = Gains.default(problem.character)
    return lambda component: sok.performed(problem, gains, component)


def row(**values):
    """What became of a clip, all well."""
    return {
        "duration": 3.0,
        "tracking_until": 0.5,
        "balance_until": 1.5,
        "trial_until": 0.25,
        "rectified_until": None,
        "ended": "done",
        "why": "",
        "reached": 3.0,
        "cpu": 24.0,
        "tracking_error": 45.4,
        "tracking_error_local": 20.6,
        "drift": 0.034,
        "speed": -1.25,
        "foot_slide": [0.2, 0.05],
        "jitter": [100.0, 120.0],
    } | values


def test_tracking_alone_falls_where_balance_stands(performed):
    assert sok.fell(performed(sok.BALANCE)) is None
    recording = performed(sok.TRACKING)
    assert 0.2 < sok.fell(recording) < 1.5
    assert recording.measures.fell_at is None  # it went on, for the picture


def test_tracking_alone_places_no_feet(make_motion):
    """Of a clip that travels balance lets feet land elsewhere; tracking does not."""
    motion = make_motion(1.0)
    glide = np.linspace(0, 1.5, len(motion))[:, None, None] * [1, 0, 0]
    motion = replace(motion, positions=motion.positions + glide)
    problem = Problem(motion, settings=Settings(rate=120.0))
    simulations = []
    for component in (sok.BALANCE, sok.TRACKING):
        simulations.append(problem.simulation(Gains.default(problem.character), 0))
        simulations[-1].balance = component.balance.get("foot_forces")
        simulations[-1].begin()
    assert [made.controller.balance.stepping is None for made in simulations] == [False, True]


def test_a_recording_that_ends_early_has_fallen_there(performed):
    recording = performed(sok.BALANCE)
    recording.keep(31)
    assert sok.fell(recording) == pytest.approx(0.5)


@pytest.mark.slow
def test_groups_are_all_captured_clips(motions):
    captured = {path.stem for path in motions.glob("*.bvh")}
    assert set(sok.GROUPS["all"]) == captured and len(sok.GROUPS["all"]) == 21
    assert set(sok.QUICK) <= set(sok.CLIPS)
    assert len(set(sok.PYBULLET)) == 10


def test_table_says_how_far_each_came():
    rows = {
        "walk": row(),
        "run": row(ended="stuck", reached=1.0, rectified_until=1.0, why="No way on.", speed=None),
        "jump": row(rectified_until=2.5, foot_slide=[None, None]),
        "wave": {"error": "It starts in the air."},
    }
    lines = sok.table(rows)
    assert lines[0].count("|") == lines[1].count("|") == lines[2].count("|") == lines[5].count("|")
    cells = [cell.strip() for cell in lines[2].strip("|").split("|")]
    assert cells == (
        "walk,3.0,0.50,1.50,0.25,end,8.0,45,21,0.03,-1.2,0.200 → 0.050,0.25,1.20".split(",")
    )
    assert "| 1.00 | 24.0 |" in lines[3]
    assert lines[6:] == [
        "",
        "to the last frame: 1 of 4",
        "- run: No way on.",
        "- jump: Away from the reference by more than 0.1 m at 2.50 s.",
        "- wave: It starts in the air.",
    ]


def test_an_interrupted_run_goes_on(monkeypatch, tmp_path, capsys):
    path, done = tmp_path / "sok.json", []

    def perform(clip, _options, _pool):
        if clip == "run" and "run" not in done:
            done.append(clip)
            raise KeyboardInterrupt
        done.append(clip)
        return row()

    monkeypatch.setattr(sok, "_row", perform)
    command = ["--quick", "--output", str(path)]
    with pytest.raises(SystemExit, match="the same command goes on from here"):
        sok.main(command)
    assert list(json.loads(path.read_text())["clips"]) == ["walk"]
    sok.main(command)
    assert done == ["walk", "run", "run"]
    report = json.loads(path.read_text())
    report["clips"]["walk"]["ended"] = "budget"
    path.write_text(json.dumps(report))
    sok.main([*command, "--budget", "9"])
    assert done[3:] == ["walk"]
    assert "to the last frame: 2 of 2" in capsys.readouterr().out
    with pytest.raises(SystemExit, match=r"is of other settings: name another --output"):
        sok.main([*command, "--seed", "1"])


@pytest.mark.slow
def test_picture_has_all_that_did_not_sink_into_the_floor(performed, tmp_path):
    pytest.importorskip("bpy")
    from poise.experiments import sticks

    stood, fallen = (performed(component) for component in (sok.BALANCE, sok.TRACKING))
    problem = Problem(stood.motion, settings=Settings())
    figures = sticks.figures(problem, stood, fallen)
    counts = [len(figures[name]) for name in sticks.COLUMNS]
    assert counts[:2] == [sticks.MOMENTS] * 2 and 0 < counts[2] <= sticks.MOMENTS
    points = np.array(figures["captured"])
    assert points[0, 0] == pytest.approx([0, problem.motion.positions[0, 0, 2]], abs=2e-3)
    assert -0.01 < points[..., 1].min() < 0.01 and 1.5 < points[..., 1].max() < 1.8
    pixels = sticks.picture({f"clip_{number}": figures for number in range(12)})
    dark = (pixels[..., :3] < 0.5).any(-1)
    third = dark.shape[1] // 3
    assert all(dark[:, i * third : (i + 1) * third].mean() > 0.01 for i in range(3))
    sticks.save(pixels, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size < 300_000

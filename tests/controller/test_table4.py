# SPDX-License-Identifier: GPL-3.0-or-later
"""The experiment on which clips gains carry: its tables, and how it tunes under pushes."""

import dataclasses
from types import SimpleNamespace

import pytest

from poise.experiments import clips, table4


def _trials(**fell):
    return {
        name.replace("_", " "): {"reward": 1.9 - count, "fell": count}
        for name, count in fell.items()
    }


def test_table4_stands_beside_the_papers():
    tuned = {"gains": None, "unseen": [1.9]}
    pushed = {"gains": {}, "unseen": [1.7, 1.8], "push": 80.0, "impulse": 0.225, "tried": 100.0}
    report = {
        "tuned": {"squat": tuned, "single": tuned},
        "pushed": {"squat": pushed | {"gains": {"dual": 1}}, "single": tuned | pushed},
        "trials": {
            "squat": _trials(default=0, pushed_squat=0, pushed_single=1),
            "single": _trials(default=1, pushed_squat=0, pushed_single=0),
        },
    }
    lines = table4.table(report)
    assert "| default | 1.90 | (0.90) |  |" in lines
    assert "| single = default | 1.90 | (0.90) | 100% |" in lines
    assert "| squat | 1.90 | 1.90 | 100% |" in lines
    assert "| squat | x |  | 0% |" in lines
    compared = [line for line in lines if line.startswith("Of 2 cells")]
    assert compared == [
        "Of 2 cells 1 are as in the paper; 1 carry that did not there, 0 do not that did.",
        "Of 2 cells 1 are as in the paper; 1 carry that did not there, 0 do not that did.",
    ]
    assert "| squat | 80 | 0.23 | 100 | 1.75 |" in lines


def test_papers_table4_has_our_kinds():
    kinds = {table4.KIND[clip] for clip in table4.CLIPS}
    assert kinds == table4.PAPER.keys()
    assert all(row in carried and set(carried) <= kinds for row, carried in table4.PAPER.items())


def test_pushes_rise_until_they_are_too_strong(monkeypatch, capsys):
    """Untuned gains withstand 60 N of an adult, tuned ones 80 N; the next are kept if better."""
    problem = clips.problem_of("front_swing", "foot_forces")
    scale = problem.character.mass / 71
    asked = []

    def search(problem, start, target, generations, options, _pool):
        push = problem.disturbance["pushes"] / scale
        asked.append((round(push), generations, start.tuned))
        tuned = dataclasses.replace(start, tuned={"clip": f"{push:.0f} N"})
        first = SimpleNamespace(best=1.0, confirmed=[1.0])
        if push < 70:
            return _outcome_of("start", start, [1.9], 0, [first])
        if push < 90:
            return _outcome_of("mean", tuned, [1.7], 2, [first] * 3)
        return _outcome_of("mean", tuned, [0.9], None, [first] * (generations + 1))

    def _outcome_of(chosen, gains, unseen, confirmed_at, history):
        return SimpleNamespace(
            chosen=chosen, gains=gains, unseen=unseen, confirmed_at=confirmed_at, history=history
        )

    monkeypatch.setattr(table4, "_search", search)
    options = SimpleNamespace(generations=5, seed=0)
    result = table4._tune_under_pushes("front_swing", options, None)
    assert asked == [(40, 5, None), (60, 5, None), (80, 5, None), (100, 3, {"clip": "80 N"})]
    assert result["gains"]["tuned"] == {"clip": "80 N"}, "100 N made it worse"
    assert result["push"] == pytest.approx(80 * scale)
    assert result["tried"] == pytest.approx(100 * scale)
    assert result["impulse"] == pytest.approx(80 * 0.2 / 71)


@pytest.mark.slow
def test_table4_runs_from_end_to_end_and_goes_on(tmp_path, capsys, monkeypatch):
    motion = clips.read("front_swing")
    part = {name: getattr(motion, name)[:60] for name in ("rotations", "positions")}
    monkeypatch.setattr(clips, "read", lambda _name: dataclasses.replace(motion, **part))
    monkeypatch.setattr(clips, "T_MAX", 3.0)
    monkeypatch.setattr(table4, "FIRST_PUSH", 2000.0)
    monkeypatch.setattr(table4, "CONFIRMATIONS", 1)
    output = tmp_path / "deep" / "table4.json"
    arguments = ["--quick", "--clips", "front_swing", "--workers", "1", "--output", str(output)]
    table4.main(arguments)
    first = capsys.readouterr()
    assert "| default | 1." in first.out and "| front_swing = default | 1." in first.out
    assert "generation 1" in first.err
    table4.main(arguments)
    again = capsys.readouterr()
    assert again.out == first.out
    assert "generation" not in again.err and "tried 0 gains" in again.err
    with pytest.raises(SystemExit, match="is of other settings: name another --output"):
        table4.main([*arguments, "--seed", "1"])

# SPDX-License-Identifier: GPL-3.0-or-later
"""SCA12's table 4 with Poise: which clips are carried by gains that were tuned on another one.

python -m poise.experiments.table4 --quick

The gains that nobody tuned are tried on every clip, and for each clip those that a search finds
without disturbances and those that it finds under random pushes. An interrupted run goes on from
its report.
"""

import argparse
import json
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path

from ..controller import Gains, PoiseError
from ..controller.processes.workers import Remote, WorkerPool
from ..controller.search.optimization import Search, SearchSettings
from ..controller.search.trial import evaluate, raise_error
from .clips import KINDS, problem_of

#: A clip, or two, for each of the paper's: captured, made where no capture is in place.
CLIPS = (
    "stand",
    "arm",
    "wave",
    "squat",
    "bow",
    "hips_twist",
    "single",
    "knee_raises",
    "front_swing",
    "side_swing",
)
KIND = {clip: kind.name for kind in KINDS for clip in kind.clips}
#: The paper's crosses: the clip that gains were tuned on, and those that they carry.
PAPER = {
    "stand": ("stand", "arm", "wave", "bow", "hips"),
    "arm": ("stand", "arm", "wave"),
    "wave": ("stand", "arm", "wave", "bow", "hips"),
    "squat": ("stand", "arm", "wave", "squat", "bow", "hips"),
    "bow": ("stand", "arm", "wave", "bow"),
    "hips": ("stand", "arm", "wave", "bow", "hips"),
    "single": ("stand", "arm", "wave", "single"),
    "kick": ("stand", "arm", "wave", "kick"),
    "side": ("stand", "arm", "wave", "side"),
}
TITLES = {
    "default": "Gains that nobody tuned",
    "tuned": "Gains tuned on the clip of the row until R ≥ 1.8, without disturbances",
    "pushed": "Gains tuned on the clip of the row, under pushes",
}

QUICK = 1  # generations
GENERATIONS = 3  # so that the whole takes less than half an hour of one processor
CONFIRMATIONS = 3
BALANCE = "foot_forces"
#: The rewards that the paper calls success, in tuning and under pushes.
TARGET, PUSHED_TARGET = 1.8, 1.6
#: Pushes on an adult of 71 kg [N], in proportion on others: at first, and what is added as long as
#: a search succeeds.
FIRST_PUSH, STEP, MASS = 40.0, 20.0, 71.0
#: Of the motor noise when gains are tried, which no search has drawn.
SEEDS = (2**31, 2**31 + 1)


def main(arguments=None):
    """Tune on each clip, try on all, print the tables and write a report."""
    options = _options(arguments)
    report, started = _resumed(options), time.monotonic()
    try:
        with WorkerPool(options.workers) as pool:
            for clip in options.clips:
                for mode, tune in (("tuned", _tune), ("pushed", _tune_under_pushes)):
                    if clip not in report[mode]:
                        _say(f"{clip}, {mode}")
                        report[mode][clip] = tune(clip, options, pool)
                        _write(options.output, report)
            for clip in options.clips:
                _try(clip, report, options, pool)
                _write(options.output, report)
    except PoiseError as error:
        sys.exit(f"table4: {error}")
    print("\n".join(table(report)))
    _say(f"table4: {time.monotonic() - started:.0f} s in all; written to {options.output}")


def _options(arguments):
    parser = argparse.ArgumentParser(prog="table4", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} generation for each clip")
    parser.add_argument("--clips", nargs="+", choices=CLIPS, default=CLIPS, metavar="CLIP")
    parser.add_argument("--generations", type=int, default=GENERATIONS, help="of each search")
    parser.add_argument("--seed", type=int, default=0, help="of the searches (0)")
    parser.add_argument("--workers", type=int, help="processes; as many as processors if not given")
    parser.add_argument("--output", type=Path, default=Path("build/table4.json"))
    options = parser.parse_args(arguments)
    if options.quick:
        options.generations = QUICK
    return options


def _resumed(options):
    """The report of an earlier run with the same settings, else an empty one."""
    settings = {"generations": options.generations, "seed": options.seed}
    if options.output.is_file():
        report = json.loads(options.output.read_text(encoding="utf-8"))
        if report["settings"] == settings:
            return report
        sys.exit(f"table4: '{options.output}' is of other settings: name another --output.")
    return {"settings": settings, "tuned": {}, "pushed": {}, "trials": {}}


# --- Tuning -------------------------------------------------------------------------------------


def _tune(clip, options, pool):
    """Gains for a clip alone, None if those that nobody tuned are good enough."""
    problem = problem_of(clip, BALANCE)
    start = Gains.default(problem.character, BALANCE)
    return _told(_search(problem, start, TARGET, options.generations, options, pool))


def _tune_under_pushes(clip, options, pool):
    """Gains under pushes that are drawn anew in each generation, the stronger the more often it
    succeeded; those of the last search are kept if they are better there than what it began with.
    "push" [N] is the strongest that was withstood on unseen sequences, "impulse" [m/s] what it
    gives to the body, "tried" [N] that of the last search."""
    quiet = problem_of(clip, BALANCE)
    mass = quiet.character.mass
    start, kept = Gains.default(quiet.character, BALANCE), {"gains": None, "unseen": []}
    push, withstood, left = FIRST_PUSH * mass / MASS, 0.0, options.generations
    while left > 0:
        problem = replace(quiet, disturbance={"pushes": push})
        outcome = _search(problem, start, PUSHED_TARGET, left, options, pool)
        tried, left = push, left - (len(outcome.history) - 1)
        before = [outcome.history[0].best, *outcome.history[0].confirmed]
        if outcome.chosen != "start" and statistics.mean(outcome.unseen) > statistics.mean(before):
            start, kept = outcome.gains, _told(outcome)
        if outcome.confirmed_at is None:
            break
        withstood, push = push, push + STEP * mass / MASS
    return kept | {"push": withstood, "impulse": 0.2 * withstood / mass, "tried": tried}


def _search(problem, start, target, generations, options, pool):
    settings = SearchSettings(
        generations=generations, seed=options.seed, target=target, confirmations=CONFIRMATIONS
    )
    search = Search(problem, start, settings, pool)
    for generation in search.run():
        _say(
            f"    {problem.disturbance or ''} generation {generation.index}: "
            f"best {generation.best:.2f}, median {generation.median:.2f}"
        )
    return search.outcome()


def _told(outcome):
    gains = None if outcome.chosen == "start" else outcome.gains.as_dict()
    return {"gains": gains, "unseen": outcome.unseen}


# --- Trying -------------------------------------------------------------------------------------


def _try(clip, report, options, pool):
    """Perform a clip, undisturbed, with the gains of all; takes down those that are new."""
    problem = problem_of(clip, BALANCE)
    payload = problem.to_bytes()
    gains = {"default": Gains.default(problem.character, BALANCE).as_dict()}
    for mode in ("tuned", "pushed"):
        gains |= {f"{mode} {row}": report[mode][row]["gains"] for row in options.clips}
    gains = {name: values for name, values in gains.items() if values is not None}
    done = report["trials"].setdefault(clip, {})
    futures = {
        name: [pool.submit(Remote(evaluate), payload, values, seed) for seed in SEEDS]
        for name, values in gains.items()
        if name not in done
    }
    for name, trials in futures.items():
        results = [trial.result() for trial in trials]
        for result in results:
            raise_error(result)
        done[name] = {
            "reward": statistics.mean(result["reward"] for result in results),
            "fell": sum(result["fell_at"] is not None for result in results),
        }
    _say(f"{clip}: tried {len(futures)} gains")


# --- The tables ---------------------------------------------------------------------------------


def table(report):
    """Lines of Markdown: one table for each way of tuning, and the paper's. A cell is the mean
    reward, in brackets where not every trial reached the end."""
    trials = report["trials"]
    columns = [clip for clip in CLIPS if clip in trials]
    lines = _head(TITLES["default"], columns)
    lines.append(_line("default", [_cell(trials[clip]["default"]) for clip in columns], ""))
    for mode in ("tuned", "pushed"):
        rows = {row: _row(report, mode, row, columns) for row in columns}
        shares = {row: reuse(row, results) for row, results in rows.items()}
        lines += ["", *_head(TITLES[mode], columns)]
        for row, results in rows.items():
            name = row if report[mode][row]["gains"] else f"{row} = default"
            lines.append(_line(name, map(_cell, results.values()), f"{shares[row]:.0%}"))
        lines += ["", f"reuse, mean: {statistics.mean(shares.values()):.0%}", _compared(rows)]
    return [*lines, "", *_paper([KIND[clip] for clip in columns]), "", *_pushes(report["pushed"])]


def _row(report, mode, row, columns):
    """What the gains of a row came to, {clip: result}."""
    trials = {clip: report["trials"][clip] for clip in columns}
    return {clip: own.get(f"{mode} {row}", own["default"]) for clip, own in trials.items()}


def reuse(row, results):
    """The share of the other clips (`measures.md`) that reach the end. row: the clip that the
    gains were tuned on. results: {clip: result}."""
    others = [not result["fell"] for clip, result in results.items() if clip != row]
    return sum(others) / max(1, len(others))


def _compared(rows):
    """How many cells are as in the paper, and how many are better or worse."""
    more = less = count = 0
    for row, results in rows.items():
        for clip, result in results.items():
            ours, theirs = not result["fell"], KIND[clip] in PAPER[KIND[row]]
            count += clip != row
            more += clip != row and ours and not theirs
            less += clip != row and theirs and not ours
    return (
        f"Of {count} cells {count - more - less} are as in the paper; {more} carry that did not "
        f"there, {less} do not that did."
    )


def _paper(kinds):
    """The paper's table 4 for these kinds of clip."""
    kinds = list(dict.fromkeys(kinds))
    lines = _head("The paper's, gains tuned under the largest push", kinds)
    for row in kinds:
        results = {kind: {"fell": kind not in PAPER[row]} for kind in kinds}
        marks = ["" if result["fell"] else "x" for result in results.values()]
        lines.append(_line(row, marks, f"{reuse(row, results):.0%}"))
    return lines


def _pushes(pushed):
    """What was withstood in tuning."""
    lines = [
        "| tuned on | withstood N | m/s | last tried N | R there, unseen |",
        "|---|---|---|---|---|",
    ]
    for clip, result in pushed.items():
        unseen = result["unseen"]
        reward = f"{statistics.mean(unseen):.2f}" if unseen else "-"
        lines.append(
            f"| {clip} | {result['push']:.0f} | {result['impulse']:.2f} | {result['tried']:.0f} "
            f"| {reward} |"
        )
    return lines


def _head(title, columns):
    names = [f"{clip} ({KIND[clip]})" if KIND.get(clip, clip) != clip else clip for clip in columns]
    return [
        f"{title}:",
        "",
        _line("gains of \\ clip", names, "reuse"),
        "|" + "---|" * (len(columns) + 2),
    ]


def _line(name, cells, share):
    return f"| {name} | {' | '.join(cells)} | {share} |"


def _cell(result):
    return f"({result['reward']:.2f})" if result["fell"] else f"{result['reward']:.2f}"


def _write(path, report):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1), encoding="utf-8")


def _say(text):
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

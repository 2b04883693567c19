# SPDX-License-Identifier: GPL-3.0-or-later
"""SCA12's table 3 with Poise: generations and time until a search has found gains for each clip.

python -m poise.experiments.table3 --quick
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np

from ..controller import BALANCE_MODES, Gains, PoiseError
from ..controller.processes.workers import WorkerPool
from ..controller.search.optimization import PARAMETRISATIONS, Ranges, Search, SearchSettings
from .clips import KINDS, problem_of

QUICK = 2  # generations
GENERATIONS = 12  # so that the whole takes less than 20 minutes on two processors

_COLUMNS = (
    "kind | clip | s | seed | R ≥ 1.8 in generation | the paper's | confirmed in | "
    "R unseen: mean | least | simulated s | wall s | CPU s | the paper's min"
)


def main(arguments=None):
    """Search all clips in both modes, print a table and write a report."""
    options = _options(arguments)
    rows, runs = [], _runs(options)
    started = time.monotonic()
    try:
        with WorkerPool(options.workers) as pool:
            for number, run in enumerate(runs, 1):
                _say(f"[{number}/{len(runs)}] {run['clip']}, {run['balance']}, seed {run['seed']}")
                rows.append(run | _search(run, options, pool))
                _write(options.output, rows)
    except PoiseError as error:
        sys.exit(f"table3: {error}")
    print("\n".join(table(rows)))
    _say(f"table3: {time.monotonic() - started:.0f} s in all; written to {options.output}")


def _options(arguments):
    parser = argparse.ArgumentParser(prog="table3", description=__doc__.splitlines()[0])
    known = [name for kind in KINDS for name in kind.clips]
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} generations for each clip")
    parser.add_argument("--clips", nargs="+", choices=known, default=known, metavar="CLIP")
    parser.add_argument("--balance", nargs="+", choices=BALANCE_MODES, default=BALANCE_MODES[::-1])
    parser.add_argument("--parametrisation", choices=PARAMETRISATIONS, default="factors")
    parser.add_argument("--generations", type=int, default=GENERATIONS, help="at most so many")
    parser.add_argument("--seeds", type=int, default=1, help="searches of each clip")
    parser.add_argument("--workers", type=int, help="processes; as many as processors if not given")
    parser.add_argument("--output", type=Path, default=Path("build/table3.json"))
    options = parser.parse_args(arguments)
    if options.quick:
        options.generations = QUICK
    return options


def _runs(options):
    """What is to be searched, mode by mode."""
    return [
        {"kind": kind.name, "clip": clip, "balance": balance, "seed": seed}
        for balance in options.balance
        for kind in KINDS
        for clip in kind.clips
        if clip in options.clips
        for seed in range(options.seeds)
    ]


def _search(run, options, pool):
    """Search for one clip's gains. Returns the Outcome as data, and the clip's length [s]."""
    problem = problem_of(run["clip"], run["balance"])
    start = Gains.default(problem.character, run["balance"])
    if options.parametrisation == "ranges":
        # The paper knows no better gains to start from than the middle of its ranges.
        ranges = Ranges(start)
        start = ranges.gains(np.zeros(ranges.size))
    search = Search(
        problem,
        start,
        SearchSettings(
            generations=options.generations,
            seed=run["seed"],
            parametrisation=options.parametrisation,
        ),
        pool,
    )
    for generation in search.run():
        _say(
            f"    generation {generation.index}: best {generation.best:.2f}, "
            f"median {generation.median:.2f}"
        )
    return {"duration": problem.motion.duration, **search.outcome().as_dict()}


def table(rows):
    """Lines of Markdown, one table for each balance mode, from what the searches came to."""
    lines = []
    for balance in dict.fromkeys(row["balance"] for row in rows):
        own = [row for row in rows if row["balance"] == balance]
        lines += [
            "",
            f"`{balance}`",
            "",
            f"| {_COLUMNS} |",
            "|" + "---|" * (_COLUMNS.count("|") + 1),
        ]
        lines += [_line(row) for row in own]
        done = sum(row["confirmed_at"] is not None for row in own)
        lines += ["", f"confirmed: {done} of {len(own)}"]
    return lines[1:]


def _line(row):
    kind = next(kind for kind in KINDS if kind.name == row["kind"])
    tried = len(row["history"]) - 1
    unseen = row["unseen"]
    cells = [
        kind.name,
        row["clip"],
        f"{row['duration']:.1f}",
        str(row["seed"]),
        _generation(row["success_at"], tried),
        str(kind.generations),
        _generation(row["confirmed_at"], tried),
        f"{statistics.mean(unseen):.2f}" if unseen else "-",
        f"{min(unseen):.2f}" if unseen else "-",
        f"{row['seconds']:.0f}",
        f"{row['wall']:.1f}",
        f"{row['cpu']:.1f}",
        str(kind.minutes),
    ]
    return f"| {' | '.join(cells)} |"


def _generation(index, tried):
    return f"> {tried}" if index is None else str(index)


def _write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, indent=1), encoding="utf-8")


def _say(text):
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

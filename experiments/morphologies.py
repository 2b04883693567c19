# SPDX-License-Identifier: GPL-3.0-or-later
"""SCA12's other bodies: each on the paper's eight kinds of clip, untuned and tuned.

python -m poise.experiments.morphologies --clips arm squat
"""

import argparse
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path

from ..controller import Gains, PoiseError
from ..controller.body.morphology import Morphology, presets
from ..controller.processes.workers import WorkerPool
from ..controller.search.optimization import Search, SearchSettings
from .clips import problem_of
from .table3 import _say, _write

#: One clip for each of the kinds on which the paper tried other bodies. Our dance travels; two
#: more of its kinds, alternating stance and shifts of weight, stand in for it.
CLIPS = ("stand", "arm", "wave", "squat", "bow", "hips_twist", "single", "knee_raises")
EXTRA = ("stand_shift",)
GENERATIONS = 30

_COLUMNS = "morphology | kg | m | clip | R untuned | R tuned | least | generations"


def main(arguments=None):
    """Search gains for each body on each clip, print a table and write a report."""
    options = _options(arguments)
    runs = [(body, clip) for body in options.morphologies for clip in options.clips]
    rows, started = [], time.monotonic()
    try:
        with WorkerPool(options.workers) as pool:
            for number, (body, clip) in enumerate(runs, 1):
                _say(f"[{number}/{len(runs)}] {body}, {clip}")
                rows.append(
                    {"morphology": body, "clip": clip, **_search(body, clip, options, pool)}
                )
                _write(options.output, rows)
    except PoiseError as error:
        sys.exit(f"morphologies: {error}")
    print("\n".join(table(rows)))
    _say(f"morphologies: {time.monotonic() - started:.0f} s; written to {options.output}")


def _options(arguments):
    parser = argparse.ArgumentParser(prog="morphologies", description=__doc__.splitlines()[0])
    known = list(presets())
    add = parser.add_argument
    add("--morphologies", nargs="+", choices=known, default=known, metavar="NAME")
    add("--clips", nargs="+", choices=CLIPS + EXTRA, default=CLIPS, metavar="CLIP")
    add("--generations", type=int, default=GENERATIONS, help="at most so many")
    add("--seed", type=int, default=0, help="of the searches")
    add("--workers", type=int, help="processes; as many as processors if not given")
    add("--output", type=Path, default=Path("build/morphologies.json"))
    return parser.parse_args(arguments)


def _search(body, clip, options, pool):
    """Search gains for a body on a clip. Returns the Outcome as data, and the body's size."""
    problem = replace(problem_of(clip, "foot_forces"), morphology=Morphology.named(body))
    start = Gains.default(problem.character)
    settings = SearchSettings(generations=options.generations, seed=options.seed)
    search = Search(problem, start, settings, pool)
    for generation in search.run():
        _say(
            f"    generation {generation.index}: best {generation.best:.2f}, "
            f"median {generation.median:.2f}"
        )
    size = {"mass": problem.character.mass, "height": problem.character.height}
    return size | search.outcome().as_dict()


def table(rows):
    """Lines of Markdown from what the searches came to."""
    lines = [f"| {_COLUMNS} |", "|" + "---|" * (_COLUMNS.count("|") + 1)]
    for row in rows:
        untuned, unseen, done = row["history"][0], row["unseen"], row["confirmed_at"]
        cells = (
            row["morphology"],
            f"{row['mass']:.0f}",
            f"{row['height']:.2f}",
            row["clip"],
            f"{statistics.mean(untuned['confirmed']):.2f}",
            f"{statistics.mean(unseen):.2f}",
            f"{min(unseen):.2f}",
            f"> {len(row['history']) - 1}" if done is None else str(done),
        )
        lines.append(f"| {' | '.join(cells)} |")
    reached = sum(row["confirmed_at"] is not None for row in rows)
    return [*lines, "", f"R >= 1.8 on all unseen seeds: {reached} of {len(rows)}"]


if __name__ == "__main__":
    main()

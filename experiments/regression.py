# SPDX-License-Identifier: GPL-3.0-or-later
"""Sok, Kim, Lee's sections 5 and 6 with Poise: walks that go by samples of what was done, refined.

Samples are of two walks of 14 s by the clock, under 1 and 5 N m of motor noise, and are refined.
Eight walks of other seeds go on under 5 N m: by the clock, by clock and samples together, by
samples alone, and by refined ones. *Pushed*: how many of sixteen walks of 14 s stand whose trunk is
pushed for 0.3 s, at 8 s, from all around.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from ..controller import Character, Gains, PoiseError, Push, Scenario, Settings
from ..controller.processes.workers import Remote, WorkerPool
from ..controller.reference.gait import Walk, find_cycle
from ..controller.search.trial import NOISE, Problem
from ..controller.skills.refinement import Refinement, walked
from ..controller.skills.regression import BOTH, Samples
from .clips import read

CLIPS = ("walk", "walk_slow", "walk_fast", "walk_backward")
COLLECTED, SEEDS, FROM = 14.0, 8, 9000
CLOCK = None, 0.0
PUSHES, PUSHED_AT, LASTING, DIRECTIONS = (60.0, 100.0), 8.0, 0.3, 16


def problem(name, seconds, noise=NOISE, push=None):
    """Problem of a clip's endless walk that Attempt can go on with for so long [s], and Gains."""
    motion = read(name)
    character = Character.from_motion(motion)
    walk = Walk(find_cycle(character, motion), 1.1 * seconds + 10.0)
    scenario = Scenario(pushes=() if push is None else (push,))
    made = Problem(walk.motion(character, motion), None, Settings(noise=noise), scenario=scenario)
    return made, Gains.default(character)


def _task(name, seconds, seed, way, noise=NOISE, push=None):
    """What is submitted for a walk. way: (Samples, trust in them), or (None, 0) for the clock."""
    made, gains = problem(name, seconds, noise, push)
    samples, trust = way
    arrays = samples and (samples.features, samples.phases)
    return Remote(walked), made.to_bytes(), gains.as_dict(), seed, arrays, seconds, 0, trust


def _results(pool, tasks):
    futures = [pool.submit(*task) for task in tasks]
    found = [future.result() for future in futures]
    for one in found:
        if "error" in one:
            raise PoiseError(": ".join(one["error"]))
    return found


def collected(name, pool):
    """Samples of two walks by the clock; None where one falls."""
    tasks = [_task(name, COLLECTED, seed, CLOCK, noise) for seed, noise in ((0, 1.0), (1, NOISE))]
    found = _results(pool, tasks)
    if any(one["stood"] < COLLECTED for one in found):
        return None
    parts = [Samples(one["features"], one["phases"]) for one in found]
    return parts[0] + parts[1]


def stood(name, seconds, way, pool):
    """How long walks of eight seeds stood [s], rising, and their mean speed [m/s]."""
    tasks = [_task(name, seconds, seed, way) for seed in range(FROM, FROM + SEEDS)]
    found = _results(pool, tasks)
    return sorted(one["stood"] for one in found), float(np.mean([one["speed"] for one in found]))


def pushed(name, way, force, pool):
    """How many of sixteen walks stand 6 s after a push [N]."""
    turns = 2 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS
    pushes = [
        Push(PUSHED_AT, LASTING, (force * float(np.cos(t)), force * float(np.sin(t)), 0.0))
        for t in turns
    ]
    tasks = [_task(name, COLLECTED, number, way, push=push) for number, push in enumerate(pushes)]
    return sum(one["stood"] >= COLLECTED for one in _results(pool, tasks))


def row(name, seconds, pool, budget, forces=PUSHES):
    """All that is told of a clip, plain data."""
    samples = collected(name, pool)
    if samples is None:
        return {"clip": name, "samples": 0}
    made, gains = problem(name, seconds)
    refinement = Refinement(made, gains, samples, seconds, pool, seed=100, budget=budget)
    for one in refinement.run():
        print(f"    {one}", file=sys.stderr, flush=True)
    refined = refinement.samples
    ways = {
        "clock": CLOCK,
        "both": (samples, BOTH),
        "samples": (samples, 1.0),
        "refined": (refined, 1.0),
    }
    return {
        "clip": name,
        "seconds": seconds,
        "samples": len(samples),
        "refined": len(refined),
        "rescues": sum(one.rescues for one in refinement.generations),
        "generations": len(refinement.generations),
        "ended": refinement.ended,
        "stood": {key: stood(name, seconds, way, pool) for key, way in ways.items()},
        "pushed": {
            f"{force:g} N": {key: pushed(name, way, force, pool) for key, way in ways.items()}
            for force in forces
        },
    }


def _cell(walks, seconds):
    times, speed = walks
    standing = sum(time >= seconds for time in times)
    fell = "" if standing == SEEDS else f", first falls at {times[0]:.0f} s"
    return f"{standing}{fell}; {speed:.2f} m/s"


WAYS = "by the clock", "both", "by samples", "by refined samples"


def table(rows):
    """Lines of Markdown of what `row` has."""
    columns = ["clip", "s", *WAYS, "samples, and refined", "rescues in generations"]
    columns += [f"pushed by {force:g} N" for force in PUSHES]
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for one in rows:
        if not one["samples"]:
            lines.append(f"| {one['clip']} | | falls by the clock |" + " |" * (len(columns) - 3))
            continue
        cells = [one["clip"], f"{one['seconds']:g}"]
        cells += [_cell(walks, one["seconds"]) for walks in one["stood"].values()]
        cells += [f"{one['samples']}, {one['refined']}"]
        cells += [f"{one['rescues']} in {one['generations']}"]
        cells += [", ".join(map(str, ways.values())) for ways in one["pushed"].values()]
        cells += [""] * (len(columns) - len(cells))
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def main(arguments=None):
    """Print the table."""
    parser = argparse.ArgumentParser(prog="sok --learned", description=__doc__.splitlines()[0])
    parser.add_argument("--clips", nargs="+", choices=CLIPS, default=CLIPS, metavar="CLIP")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each walk (60)")
    parser.add_argument("--budget", type=float, default=10.0, help="of a refinement [min] (10)")
    parser.add_argument("--unpushed", action="store_true", help="nobody is pushed")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--output", type=Path, default=Path("build/sok_learned.json"))
    options = parser.parse_args(arguments)
    rows, forces = [], () if options.unpushed else PUSHES
    with WorkerPool(options.workers) as pool:
        for name in options.clips:
            print(name, file=sys.stderr, flush=True)
            rows.append(row(name, options.seconds, pool, 60 * options.budget, forces))
            options.output.parent.mkdir(parents=True, exist_ok=True)
            options.output.write_text(json.dumps(rows, indent=1), encoding="utf-8")
            print("\n".join(table(rows[-1:])[0 if len(rows) == 1 else 2 :]), flush=True)


if __name__ == "__main__":
    main()

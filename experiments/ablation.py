# SPDX-License-Identifier: GPL-3.0-or-later
"""What each component of the balance controller does: leaves them out, one at a time.

python -m poise.experiments.ablation --clips single_made hula

With untuned gains, every clip is looped to 20 s, once without motor noise and a few times with it.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

from ..controller import BALANCE_MODES, Gains, PoiseError
from ..controller.processes.workers import WorkerPool
from ..controller.search.trial import NOISE
from .clips import KINDS, OTHERS, problem_of
from .components import COMPONENTS, trial

HOLDS = 1.8  # reward of a clip that the full controller holds

#: Clips that travel are left to walking: kicks that step, and the rest of the captured ones.
CLIPS = (
    *(name for kind in KINDS for name in kind.clips if name not in ("kick", "side_kick")),
    *OTHERS,
)


def main(arguments=None):
    """Run all trials, print the tables and write a report."""
    options = _options(arguments)
    started = time.monotonic()
    rows = []
    try:
        with WorkerPool(options.workers) as pool:
            pending = [(row, _submit(row, options, pool)) for row in _rows(options)]
            for number, (row, futures) in enumerate(pending, 1):
                results = [future.result() for future in futures]
                rows.append(row | {"still": results[0], "noisy": results[1:]})
                _say(
                    f"[{number}/{len(pending)}] {row['clip']}, {row['balance']}, without "
                    f"{COMPONENTS[row['without']].words}: {results[0]['reward']:.2f}"
                )
    except PoiseError as error:
        sys.exit(f"ablation: {error}")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    print("\n".join(tables(rows)))
    _say(f"ablation: {time.monotonic() - started:.0f} s in all; written to {options.output}")


def _options(arguments):
    parser = argparse.ArgumentParser(prog="ablation", description=__doc__.splitlines()[0])
    parser.add_argument("--clips", nargs="+", choices=CLIPS, default=CLIPS, metavar="CLIP")
    parser.add_argument("--balance", nargs="+", choices=BALANCE_MODES, default=BALANCE_MODES)
    parser.add_argument("--seeds", type=int, default=2, help="trials with noise")
    parser.add_argument("--tuned", type=Path, help="gains file to use in its balance mode")
    parser.add_argument("--workers", type=int, help="processes; as many as processors if not given")
    parser.add_argument("--output", type=Path, default=Path("build/ablation.json"))
    options = parser.parse_args(arguments)
    if options.tuned:
        options.balance = [Gains.load(options.tuned).balance]
    return options


def _rows(options):
    """What is to be tried."""
    return [
        {"clip": clip, "balance": mode, "without": name}
        for mode in options.balance
        for clip in options.clips
        for name, component in COMPONENTS.items()
        if mode in component.modes
    ]


def _submit(row, options, pool):
    """Hand out the trials of a row: one without noise, the others with it."""
    still, noisy = (problem_of(row["clip"], row["balance"], noise) for noise in (0.0, NOISE))
    character = still.character
    if options.tuned:
        gains = Gains.load(options.tuned, character)
    else:
        gains = Gains.default(character, row["balance"])
    gains = gains.as_dict()
    futures = [pool.submit(trial, still.to_bytes(), row["without"], gains, 0)]
    payload = noisy.to_bytes()
    for seed in range(options.seeds):
        futures.append(pool.submit(trial, payload, row["without"], gains, seed))
    return futures


def tables(rows):
    """Lines of Markdown: for each mode R of every clip without each component, then what the
    components do over all clips that the full controller holds."""
    lines = []
    for mode in dict.fromkeys(row["balance"] for row in rows):
        own = [row for row in rows if row["balance"] == mode]
        names = list(dict.fromkeys(row["without"] for row in own))
        found = {(row["clip"], row["without"]): row for row in own}
        clips = list(dict.fromkeys(row["clip"] for row in own))
        lines += ["", f"`{mode}`: R without each, and when it fell [s]; no noise / with noise", ""]
        lines += _markdown(
            ["clip", *names],
            [[clip, *(_cell(found[clip, name]) for name in names)] for clip in clips],
        )
        held = [clip for clip in clips if _reward(found[clip, names[0]]) >= HOLDS]
        lines += ["", f"`{mode}`: over the {len(held)} clips that hold with everything", ""]
        if held:
            lines += _markdown(
                ["without", "", "R lost, mean", "most", "on", "fall"],
                [_summary(name, [(clip, found) for clip in held]) for name in names[1:]],
            )
    return lines[1:]


def _summary(name, held):
    """What leaving out a component does to clips that hold."""
    lost = {clip: _reward(found[clip, "full"]) - _reward(found[clip, name]) for clip, found in held}
    fallen = sum(any(_fell(found[clip, name])) for clip, found in held)
    worst = max(lost, key=lost.get)
    return [
        name,
        COMPONENTS[name].words,
        f"{statistics.mean(lost.values()):.3f}",
        f"{lost[worst]:.2f}",
        worst,
        f"{fallen} of {len(held)}",
    ]


def _reward(row):
    """Mean R of all trials of a row."""
    return statistics.mean(result["reward"] for result in [row["still"], *row["noisy"]])


def _fell(row):
    return [result["fell_at"] is not None for result in [row["still"], *row["noisy"]]]


def _cell(row):
    """R without noise / mean with it, with the moments of the falls."""
    parts = [f"{row['still']['reward']:.2f}{_falls([row['still']])}"]
    if row["noisy"]:
        mean = statistics.mean(result["reward"] for result in row["noisy"])
        parts.append(f"{mean:.2f}{_falls(row['noisy'])}")
    return " / ".join(parts)


def _falls(results):
    times = [result["fell_at"] for result in results if result["fell_at"] is not None]
    return f" ({min(times):.1f} s)" if times else ""


def _markdown(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def _say(text):
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

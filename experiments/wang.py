# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures 4 to 6 of Wang and others, "Optimization Control for Biped Motion Trajectory", for ours.

python -m poise.experiments.wang --clips walk walk_fast

Speed of the centre of mass along the way, height of the toes and height of the heel, before the
clean-up and after it, one row a clip. Prints a table of what stands for a picture: how far the
curves of standing feet are from level, and the rhythm of the body from what it was.
"""

import argparse
import itertools
from pathlib import Path

import numpy as np

from ..controller.clean_up.clean_up import BALANCE, CleanUpOptions, clean_up, propose
from ..controller.clean_up.leg_chain import UNKNOWNS, Body
from ..controller.geometry.stance import runs
from .clips import ROOT, load
from .table3 import _say

CLIPS = ("walk", "walk_slow", "walk_fast", "walk_backward", "walk_zombie")
#: The paper's figures: what is drawn of the left foot and of the body, by title.
FIGURES = ("speed of the centre of mass [m/s]", "height of the toes [m]", "height of the heel [m]")
_BEFORE, _AFTER, _STANDS = (0.86, 0.30, 0.12), (0.15, 0.42, 0.78), (0.90, 0.92, 0.94)
_WIDE, _HIGH, _MARGIN, _HEADING = 560, 250, 56, 30  # pixels of a plot
_LINE = 2.0


def curves(body, cleaned):
    """{title: (before, after)} of FIGURES, each (F,); "stands": (F, 2) of the left foot's toes
    and heel; "seconds": (F,)."""
    rate, marks = body.rate, cleaned.plan.marks(len(body), body.rate)
    poses = [
        body.pose(values, slopes=False)
        for values in (np.zeros((len(body), UNKNOWNS)), cleaned.corrections)
    ]
    way = poses[0].com[-1, :2] - poses[0].com[0, :2]
    way = way / max(np.linalg.norm(way), 1e-9)
    speeds = [np.gradient(pose.com[:, :2] @ way) * rate for pose in poses]
    heel, _, tip = (
        np.stack([p.points["l"][:, i, 2] for p in poses]) - body.floor for i in range(3)
    )
    return {
        FIGURES[0]: speeds,
        FIGURES[1]: tip,
        FIGURES[2]: heel,
        "stands": np.stack([marks[:, 0, 2], marks[:, 0, 0]], 1),
        "seconds": np.arange(len(body)) / rate,
    }


def figures_of(body, cleaned):
    """What a row of the table says, by name: slip of what stands [m/s], spread of the heights of
    what stands [m], each before and after, and the change of the body's speed [m/s]."""
    found = curves(body, cleaned)
    spreads = []
    for title, column in ((FIGURES[1], 0), (FIGURES[2], 1)):
        spans = runs(found["stands"][:, column])
        spreads.append([_spread(heights, spans) for heights in found[title]])
    before, after = found[FIGURES[0]]
    return {
        "slip": cleaned.slip(),
        "toes": spreads[0],
        "heel": spreads[1],
        "speed": float(np.sqrt(np.mean((after - before) ** 2))),
    }


def _spread(heights, spans):
    """Standard deviation of heights (F,) within spans, over all of them [m]: no floor is level."""
    apart = [heights[first:stop] - np.mean(heights[first:stop]) for first, stop in spans]
    return float(np.std(np.concatenate(apart))) if apart else 0.0


def table(rows):
    """The lines of the table of {clip: what `figures_of` gave}."""
    lines = [
        "| clip | slip [m/s] | toes while they stand [mm] | heel [mm] | speed off by [m/s] |",
        "|---|---|---|---|---|",
    ]
    for clip, row in rows.items():
        pairs = [
            f"{1000 * row[name][0]:.1f} → {1000 * row[name][1]:.1f}" for name in ("toes", "heel")
        ]
        slip = f"{row['slip'][0]:.3f} → {row['slip'][1]:.4f}"
        lines.append(f"| {clip} | {slip} | {pairs[0]} | {pairs[1]} | {row['speed']:.3f} |")
    return lines


# --- Drawing -------------------------------------------------------------------------------------


def picture(rows):
    """(height, width, 4) of {clip: what `curves` gave}, from the bottom up: before red, after
    blue, grey where the point stands."""
    from ..addon.plots.limit_plot import _ON_PAPER, _write

    shape = len(rows) * _HIGH + _HEADING, len(FIGURES) * _WIDE
    # The tools draw squares.
    paper = np.ones((max(shape), max(shape), 4))
    for column, title in enumerate(FIGURES):
        at = ((column + 0.5) * _WIDE, shape[0] - 0.6 * _HEADING)
        _write(paper, title, at, 17, _ON_PAPER.text, "CENTER")
    for row, (clip, found) in enumerate(rows.items()):
        low = shape[0] - _HEADING - (row + 1) * _HIGH
        for column, title in enumerate(FIGURES):
            stands = found["stands"][:, column - 1] if column else None
            _plot(paper, (column * _WIDE, low), found["seconds"], found[title], stands)
        words = f"{clip.replace('_', ' ')}, {found['seconds'][-1]:.1f} s"
        _write(paper, words, (_MARGIN, low + 8), 14, _ON_PAPER.mean, "LEFT")
    return paper[: shape[0], : shape[1]]


def _plot(paper, corner, seconds, pair, stands):
    """One plot at its lower left corner [pixels]."""
    from ..addon.plots.limit_plot import _ON_PAPER, _write
    from ..addon.plots.tuning_plot import _blend, _cover_segment

    least, most = float(np.min(pair)), float(np.max(pair))
    left, low = corner[0] + _MARGIN, corner[1] + 34
    width, height = _WIDE - _MARGIN - 20, _HIGH - 50
    x = left + width * seconds / max(seconds[-1], 1e-9)
    if stands is not None:
        for at in x[stands]:
            paper[low : low + height, int(at) : int(at) + max(1, round(width / len(x))), :3] = (
                _STANDS
            )
    for values, colour in zip(pair, (_BEFORE, _AFTER), strict=True):
        y = low + height * (np.asarray(values) - least) / max(most - least, 1e-9)
        cover = np.zeros(paper.shape[:2])
        ends = np.stack([x, y], 1)
        for start, end in itertools.pairwise(ends):
            _cover_segment(cover, start, end, _LINE / 2)
        _blend(paper, cover, colour, 1.0)
    for value, at in ((least, low), (most, low + height - 12)):
        _write(paper, f"{value:.2f}", (corner[0] + 8, at), 13, _ON_PAPER.mean, "LEFT")


def main(arguments=None):
    """Clean the clips, print the table, draw the picture."""
    from ..addon.plots.limit_plot import png
    from ..addon.rigs import reference
    from ..addon.shots.clean_up import toes_of

    options = _parser().parse_args(arguments)
    rows, drawn = {}, {}
    for clip in options.clips:
        scene = load(clip)
        reading = reference.read(scene, scene.objects[0])
        body = Body.from_motion(reading.motion, toes_of(reading))
        cleaned = clean_up(body, propose(body), CleanUpOptions(balance=options.com))
        rows[clip], drawn[clip] = figures_of(body, cleaned), curves(body, cleaned)
        _say(f"{clip}: {cleaned.iterations} steps")
    print("\n".join(table(rows)), flush=True)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_bytes(png(picture(drawn)))
    _say(f"The curves are in '{options.output}'.")


def _parser():
    parser = argparse.ArgumentParser(prog="python -m poise.experiments.wang", description=__doc__)
    add = parser.add_argument
    add("--clips", nargs="+", default=CLIPS, metavar="CLIP", help="captured clips (five walks)")
    add("--com", choices=BALANCE, default=CleanUpOptions().balance, help="balance (light)")
    add("--output", type=Path, default=ROOT / "build" / "wang.png", help="the picture")
    return parser


if __name__ == "__main__":
    main()

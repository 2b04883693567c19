# SPDX-License-Identifier: GPL-3.0-or-later
"""Captured walks and runs whose travel was taken away: how far they go again, and what comes of it.

*Evenly*: without their way from the first sample to the last, as animated over a belt of one speed.
*Wholly*: the pelvis goes up and down alone, as many games have it. Then one round of each, on and
on for half a minute.
"""

import sys
from dataclasses import replace

import numpy as np

from ..controller import Character, Settings
from ..controller.checks.verdict import judge_motions
from ..controller.exceptions import MotionError
from ..controller.reference.gait import Walk, find_cycle
from ..controller.reference.performed import performed_motion
from ..controller.search.trial import Problem
from .clips import read

CLIPS = ("walk", "walk_slow", "walk_fast", "walk_backward", "walk_zombie", "run", "run_leap")
SECONDS, SEEDS, NOISE = 30.0, 3, 1.0  # [s] of an endless walk; of its motor noise [N m]


def evenly(motion):
    """A Motion without its way from the first sample to the last."""
    share = np.linspace(0, 1, len(motion))[:, None]
    return _without(motion, share * (motion.positions[-1, 0] - motion.positions[0, 0]))


def wholly(motion):
    """A Motion whose pelvis goes up and down alone."""
    return _without(motion, motion.positions[:, 0] - motion.positions[0, 0])


def _without(motion, way):
    return replace(motion, positions=motion.positions - (way * [1, 1, 0])[:, None])


def length(motion):
    """How far a Motion goes [m]."""
    return float(np.linalg.norm((motion.positions[-1, 0] - motion.positions[0, 0])[:2]))


def performed(motion):
    """How far a Motion goes [m] with *Travel*, by balance alone; and what its verdict says."""
    problem = Problem(motion, settings=Settings(cleaning=("travel",)))
    recording = problem.simulation(None, 0).run()
    moved = recording.cleaned()
    source = performed_motion(moved) if moved else recording.motion
    verdict = judge_motions(source, performed_motion(recording), recording.success)
    if not recording.success:
        return length(source), f"falls at {recording.standing / motion.rate:.1f} s"
    return length(source), "keeper" if verdict.keeper else ", ".join(verdict.not_kept_for)


def one_round(motion):
    """That of its cycle. Raises MotionError."""
    cycle = find_cycle(Character.from_motion(motion), motion)
    part = slice(cycle.first, cycle.last + 1)
    return replace(motion, rotations=motion.rotations[part], positions=motion.positions[part])


def stands(motion):
    """In how many runs a Motion of one round walks on to the end."""
    body = Character.from_motion(motion)
    goes = body.travelled(motion)
    endless = Walk(find_cycle(body, goes), SECONDS).motion(body, goes)
    settings = Settings(noise=NOISE)
    runs = [Problem(endless, settings=settings).simulation(None, seed) for seed in range(SEEDS)]
    return sum(run.run().success for run in runs)


def row(name):
    """A line of the table."""
    motion = read(name)
    cells = []
    for strip in (None, evenly, wholly):
        far, told = performed(strip(motion) if strip else motion)
        cells.append(f"{far:.2f} m; {told}")
    for strip in (evenly, wholly):
        try:
            cells.append(f"{stands(strip(one_round(motion)))} of {SEEDS}")
        except MotionError:
            cells.append("no cycle")
    return f"| {name} | {' | '.join(cells)} |"


def main(arguments):
    """Print the table; arguments: names of clips, for some of it."""
    print("| | as captured | evenly | wholly | a round, evenly | a round, wholly |")
    print("|---|---|---|---|---|---|")
    for name in CLIPS:
        if not arguments or name in arguments:
            print(row(name), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

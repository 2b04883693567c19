# SPDX-License-Identifier: GPL-3.0-or-later
"""What captured walkers perform between two walks: clips of other people, at random moments.

In each try the body stands or walks, at any speed that it has learned, is told to perform a clip
after 2 to 5 s, and then to walk on for 6 s, under motor noise. Of what more than 5 of 50 fall by,
it is tried how much help from outside brings it through. *Scripts*: those of `make skills`, in
which a third of the stands are a jump.
"""

import sys
from dataclasses import replace

import numpy as np

from ..controller import Gains, Settings
from ..controller.body.character import Character
from ..controller.processes.workers import WorkerPool
from ..controller.reference.acts import Act
from ..controller.reference.commands import Command
from ..controller.search.trial import NOISE, Problem
from ..controller.skills.learning import HELPS, walked
from .clips import read
from .skills import SCRIPTS, learned, script

WALKS = "walk", "walk_slow"
CLIPS = (
    *("jump", "jumping_jacks", "jog_in_place", "knee_raises", "hips_twist", "arm", "wave", "bow"),
    *("squat", "single", "dance", "kick"),
)
TRIES, MOST_FALLS, GOES_ON = 50, 5, 6.0


def acts(names):
    """An Act of each clip."""
    motions = map(read, names)
    return [
        Act.of(name, Character.from_motion(motion), motion)
        for name, motion in zip(names, motions, strict=True)
    ]


def tries(character, motion, walk, act):
    """(payload, gains, seed) of each try, as `walked` takes them."""
    gains = Gains.default(character, walking=True).as_dict()
    for seed in range(TRIES):
        random = np.random.default_rng(seed)
        told = float(random.uniform(walk.trim[0][0], walk.trim[-1][0]))
        at, stands = float(random.uniform(2, 5)), bool(random.random() < 1 / 3)
        commands = (
            Command(0.0, None if stands else told, stands=stands),
            Command(at, told, act=act.name),
        )
        own = replace(walk, commands=commands, acts=(act,)).motion(character, motion).walk
        begins = at if stands else at + 4.0  # it slows down first
        seconds = begins + own.passages[0].seconds + GOES_ON
        endless = replace(own, seconds=seconds).motion(character, motion)
        problem = Problem(endless, None, Settings(noise=NOISE))
        yield problem.to_bytes(), gains, seed + 1


def fallen(workers, problems):
    """How many bodies fall."""
    running = [workers.submit(walked, *problem) for problem in problems]
    return sum(one.result()["reached"] is None for one in running)


def cell(workers, walker, act):
    """How many fall without help, and with the least of HELPS by which few do."""
    told = []
    for share in HELPS:
        falls = fallen(workers, tries(*walker, replace(act, outside_help=share)))
        told.append(f"{falls} ({share:g})" if share else str(falls))
        if falls <= MOST_FALLS:
            break
    return ", ".join(told)


def main(chosen):
    """Print both tables."""
    with WorkerPool(2) as workers:
        walkers = [learned((name,), workers) for name in WALKS]
        print("| act | " + " | ".join(WALKS) + " |")
        print("|---|" + "---|" * len(WALKS), flush=True)
        for act in acts(chosen or CLIPS):
            cells = [cell(workers, walker, act) for walker in walkers]
            print(f"| {act.name} | " + " | ".join(cells) + " |", flush=True)
        if chosen:
            return
        print(f"\n| clip | of {SCRIPTS} scripts with jumps fall |")
        print("|---|---|")
        (jump,) = acts(("jump",))
        for name, (character, motion, walk) in zip(WALKS, walkers, strict=True):
            gains = Gains.default(character, walking=True).as_dict()
            problems = []
            for seed in range(1, SCRIPTS + 1):
                commands = script(seed, walk.trim[0][0], walk.trim[-1][0], False, jump.name)
                endless = replace(walk, commands=commands, acts=(jump,)).motion(character, motion)
                problem = Problem(endless, None, Settings(noise=NOISE))
                problems.append((problem.to_bytes(), gains, seed))
            print(f"| {name} | {fallen(workers, problems)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

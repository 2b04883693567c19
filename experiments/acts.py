# SPDX-License-Identifier: GPL-3.0-or-later
"""What captured walkers perform between two walks: clips of other people, at random moments.

In each try the body stands or walks, at 0.6 to 1.1 times its own speed, is told to perform a clip
after 2 to 5 s, and then to walk on for 6 s, under motor noise. *Help*: with help from outside, of
up to half of the weight. *Scripts*: those of `make skills`, in which a third of the stands are a
jump.
"""

import sys
from dataclasses import replace

import numpy as np

from ..controller import Gains, Settings
from ..controller.body.character import Character
from ..controller.processes.workers import WorkerPool
from ..controller.reference.acts import Act
from ..controller.reference.commands import Command
from ..controller.reference.gait import Walk, find_cycle
from ..controller.search.trial import NOISE, Problem
from ..controller.skills.learning import walked
from .clips import read
from .skills import SCRIPTS, learned, script

WALKS = "walk", "walk_slow"
CLIPS = (
    *("jump", "jumping_jacks", "jog_in_place", "knee_raises", "hips_twist", "arm", "wave", "bow"),
    *("squat", "single", "dance", "kick", "side_kick"),
)
TRIES, HELP, GOES_ON = 50, 0.5, 6.0


def acts(names):
    """An Act of each clip."""
    motions = map(read, names)
    return [
        Act.of(name, Character.from_motion(motion), motion)
        for name, motion in zip(names, motions, strict=True)
    ]


def tries(character, motion, cycle, act, outside_help):
    """(payload, gains, seed) of each try, as `walked` takes them."""
    gains = Gains.default(character, walking=True).as_dict()
    speed = Walk(cycle, 1.0).speed(motion.rate)
    for seed in range(TRIES):
        random = np.random.default_rng(seed)
        told, at = float(random.uniform(0.6, 1.1)) * speed, float(random.uniform(2, 5))
        stands = bool(random.random() < 1 / 3)
        commands = (
            Command(0.0, None if stands else told, stands=stands),
            Command(at, told, act=act.name),
        )
        walk = Walk(cycle, 1.0, commands=commands, acts=(act,)).motion(character, motion).walk
        begins = at if stands else at + 4.0  # it slows down first
        seconds = begins + walk.passages[0].seconds + GOES_ON
        endless = replace(walk, seconds=seconds).motion(character, motion)
        settings = Settings(noise=NOISE, outside_help=outside_help)
        yield Problem(endless, None, settings).to_bytes(), gains, seed + 1


def fallen(workers, problems):
    """How many bodies fall."""
    running = [workers.submit(walked, *problem) for problem in problems]
    return sum(one.result()["reached"] is None for one in running)


def main(chosen):
    """Print both tables."""
    with WorkerPool(2) as workers:
        print("| act | " + " | ".join(f"{one} | with help" for one in WALKS) + " |")
        print("|---|" + "---|---|" * len(WALKS), flush=True)
        walkers = []
        for name in WALKS:
            motion = read(name)
            character = Character.from_motion(motion)
            walkers.append((character, motion, find_cycle(character, motion)))
        for act in acts(chosen or CLIPS):
            cells = [
                str(fallen(workers, tries(*walker, act, share)))
                for walker in walkers
                for share in (0.0, HELP)
            ]
            print(f"| {act.name} | " + " | ".join(cells) + " |", flush=True)
        if chosen:
            return
        print(f"\n| clip | of {SCRIPTS} scripts with jumps fall |")
        print("|---|---|")
        (jump,) = acts(("jump",))
        for name in WALKS:
            character, motion, walk = learned((name,), workers)
            gains = Gains.default(character, walking=True).as_dict()
            problems = []
            for seed in range(1, SCRIPTS + 1):
                commands = script(seed, walk.trim[0][0], walk.trim[-1][0], False, jump.name)
                own = replace(walk, commands=commands, acts=(jump,))
                endless = own.motion(character, motion)
                problem = Problem(endless, None, Settings(noise=NOISE))
                problems.append((problem.to_bytes(), gains, seed))
            print(f"| {name} | {fallen(workers, problems)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

# SPDX-License-Identifier: GPL-3.0-or-later
"""What captured walks teach, and how they are directed: by scripts of 60 s of random commands,
within the speeds that are learned, with stops and pushes.

A script begins with a speed, and goes on every 2 to 5 s with a new speed, a new heading anywhere
from the one before, a stand, the walk again, or a push from anywhere for 0.3 s.
"""

import sys

import numpy as np

from ..controller import Gains, Settings, Simulation
from ..controller.body.character import Character
from ..controller.exceptions import SimulationError
from ..controller.processes.workers import WorkerPool
from ..controller.reference.commands import Command, Shove
from ..controller.reference.gait import Walk
from ..controller.search.trial import NOISE
from ..controller.simulation.scenario import Push, Scenario
from ..controller.skills.learning import Learning
from .clips import read

CLIPS = ("walk", "walk_slow", "walk_fast", "walk_backward")
SCRIPTS, SECONDS, WAITS = 20, 60.0, (2.0, 5.0)
PUSH, LASTING = 50.0, 0.3  # [N], [s]


def script(seed, slowest, fastest, pushes):
    """Random Commands between two speeds [m/s]."""
    random, heading, time = np.random.default_rng(seed), 0.0, 0.0
    found, stands = [], False
    while time < SECONDS - WAITS[0]:
        kind = random.random()
        if not found or (kind < 0.35 and not stands):
            found.append(Command(time, speed=float(random.uniform(slowest, fastest))))
        elif kind < 0.7 and not stands:
            heading += float(random.uniform(-np.pi, np.pi))
            found.append(Command(time, heading=heading))
        else:
            stands = not stands
            found.append(Command(time, stands=stands))
        if pushes:
            push = Shove(PUSH, float(random.uniform(-np.pi, np.pi)), LASTING)
            found.append(Command(time + 1.0, push=push))
        time += float(random.uniform(*WAITS))
    return tuple(found)


def learned(motion, workers):
    """Character, Cycle and trim of a clip."""
    character = Character.from_motion(motion)
    learning = Learning(character, motion, None, 0, workers)
    while not learning.poll():
        pass
    return character, learning.cycle, tuple((one.reached, one.told) for one in learning.paces)


def directed(character, motion, walk, seed):
    """Whether a body that does as a Walk commands stands to its end, and a Followed for each
    command."""
    endless = walk.motion(character, motion)
    yaw = endless.heading(character)
    scenario = Scenario(
        pushes=tuple(
            Push(
                one.at,
                one.push.seconds,
                (
                    one.push.newtons * np.cos(yaw + one.push.direction),
                    one.push.newtons * np.sin(yaw + one.push.direction),
                    0.0,
                ),
                one.push.segment,
            )
            for one in walk.commands
            if one.push is not None
        )
    )
    gains = Gains.default(character, walking=True)
    settings = Settings(noise=NOISE, seed=seed)
    simulation = Simulation(character, endless, gains, settings=settings, scenario=scenario)
    try:
        stands = simulation.run().success
    except SimulationError:  # it was thrown about
        stands = False
    return stands, endless.followed(character, simulation.recording.com)


def main(names):
    """Print the table."""
    print("| clip | learned | of 20 scripts fall | with pushes | speed off | turns of 60 to 120° |")
    print("|---|---|---|---|---|---|", flush=True)
    for name in names or CLIPS:
        motion = read(name)
        with WorkerPool(2) as workers:
            character, cycle, trim = learned(motion, workers)
        if not trim:
            print(f"| {name} | falls at its own speed | | | | |", flush=True)
            continue
        fell, off, steps = [], [], []
        for pushes in (False, True):
            fell.append(0)
            for seed in range(1, SCRIPTS + 1):
                commands = script(seed, trim[0][0], trim[-1][0], pushes)
                walk = Walk(cycle, SECONDS, commands=commands, trim=trim)
                stands, found = directed(character, motion, walk, seed)
                fell[-1] += not stands
                before = 0.0
                for one in found if not pushes else ():
                    turned, before = abs(one.heading - before), one.heading
                    if one.steps is None or not one.speed:
                        continue
                    off.append(abs(one.reached_speed / one.speed - 1))
                    if np.pi / 3 < turned < 2 * np.pi / 3:
                        steps.append(one.steps)
        cells = [f"{trim[0][0]:.2f} to {trim[-1][0]:.2f} m/s", *map(str, fell)]
        cells += [f"{100 * np.mean(off):.1f} %", f"{np.median(steps):.0f} steps"]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

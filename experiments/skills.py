# SPDX-License-Identifier: GPL-3.0-or-later
"""What captured walks teach, and how they are directed: by scripts of 60 s of random commands,
within the speeds that are learned, with stops and pushes.

A script begins with a speed, and goes on every 2 to 5 s with a new speed, a new heading anywhere
from the one before, a stand, the walk again, or a push from anywhere for 0.3 s.
*Played*: commands are known only when they come. *Get up*: of those that are pushed, who falls gets
up and goes on.
"""

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np

from ..controller import Gains, Settings, Simulation
from ..controller.body.character import Character
from ..controller.exceptions import SimulationError
from ..controller.processes.workers import WorkerPool
from ..controller.reference.commands import Command, Shove
from ..controller.reference.gait import Gait, Walk, find_cycle
from ..controller.search.trial import NOISE
from ..controller.simulation.scenario import Scenario, shoves
from ..controller.skills.learning import Learning
from .clips import read

CLIPS = (("walk_slow", "walk_fast"), ("walk",))
SCRIPTS, SECONDS, WAITS = 20, 60.0, (2.0, 5.0)
PUSH, LASTING = 50.0, 0.3  # [N], [s]
RUNS = 50  # walks that become runs


def script(seed, slowest, fastest, pushes, act=None):
    """Random Commands between two speeds [m/s]. act: name of what it performs in place of every
    third stand, None for nothing."""
    random, heading, time = np.random.default_rng(seed), 0.0, 0.0
    found, stands = [], False
    while time < SECONDS - WAITS[0]:
        kind = random.random()
        if not found or (kind < 0.35 and not stands):
            found.append(Command(time, speed=float(random.uniform(slowest, fastest))))
        elif kind < 0.7 and not stands:
            heading += float(random.uniform(-np.pi, np.pi))
            found.append(Command(time, heading=heading))
        elif act is not None and not stands and random.random() < 1 / 3:
            found.append(Command(time, act=act))
        else:
            stands = not stands
            found.append(Command(time, stands=stands))
        if pushes:
            push = Shove(PUSH, float(random.uniform(-np.pi, np.pi)), LASTING)
            found.append(Command(time + 1.0, push=push))
        time += float(random.uniform(*WAITS))
    return tuple(found)


def gait(name):
    """The Gait of a clip, which others go over to."""
    motion = read(name)
    body = Character.from_motion(motion)
    return Gait.of(body, motion, find_cycle(body, motion))


def learned(names, workers):
    """Character, Motion, Walk that commands need to be given to, of clips by their names: the
    second is what the first goes over to."""
    name, *others = names
    motion, other = read(name), None
    character = Character.from_motion(motion)
    for faster in others:
        other = gait(faster)
    learning = Learning(character, motion, None, 0, workers, other=other)
    while not learning.poll():
        time.sleep(0.01)
    trim = tuple((one.reached, one.told) for one in learning.paces)
    return character, motion, Walk(learning.cycle, SECONDS, trim=trim, other=other)


def directed(character, motion, walk, seed, rises=False):
    """Whether a body that does as a Walk commands stands at its end, a Followed for each command,
    and how often it fell. rises: whether it gets up where it falls."""
    endless = walk.motion(character, motion)
    scenario = Scenario(pushes=shoves(walk.commands, endless.heading(character)))
    gains = Gains.default(character, walking=True)
    settings = Settings(noise=NOISE, seed=seed)
    if rises:
        settings = replace(settings, when_it_falls="brace", get_up=True)
    simulation = Simulation(character, endless, gains, settings=settings, scenario=scenario)
    recording = simulation.recording
    try:
        simulation.run()
        stands = recording.success or recording.up is not None
    except SimulationError:  # it was thrown about
        stands = False
    falls = (recording.stood is not None) + len(recording.fell_again)
    return stands, recording.followed, falls


def becomes_run(names, outside_help, seed):
    """Whether a walk that becomes a run at a random moment, and a walk again some seconds later,
    stands 9 s after that; and the mean force [N] from outside."""
    slow, run = read(names[0]), gait(names[1])
    character = Character.from_motion(slow)
    cycle, random = find_cycle(character, slow), np.random.default_rng(seed)
    own = Walk(cycle, SECONDS).speed(slow.rate)
    begins, lasts = random.uniform(3.0, 5.0), random.uniform(6.0, 9.0)
    commands = (
        Command(0.0, speed=own),
        Command(begins, speed=run.speed),
        Command(begins + lasts, speed=own),
    )
    trim = ((own / 2, own / 2), (2 * run.speed, 2 * run.speed))
    walk = Walk(cycle, begins + lasts + 9.0, commands=commands, trim=trim, other=run)
    settings = Settings(noise=NOISE, seed=seed, outside_help=outside_help)
    gains = Gains.default(character, walking=True)
    simulation = Simulation(character, walk.motion(character, slow), gains, settings=settings)
    try:
        recording = simulation.run()
    except SimulationError:  # it was thrown about
        return False, 0.0
    return recording.success, float(recording.summary()["residual"])


def runs():
    """Print the table of walks that become runs."""
    print(f"| walk, run | help | of {RUNS} stand | mean force from outside [N] |")
    print("|---|---|---|---|", flush=True)
    for names in (("walk", "run"), ("walk_slow", "run")):
        for outside_help in (0.1, 0.25):
            with ProcessPoolExecutor(2) as pool:
                tries = pool.map(partial(becomes_run, names, outside_help), range(1, RUNS + 1))
                found = list(tries)
            stood, forces = zip(*found, strict=True)
            print(
                f"| {', '.join(names)} | {outside_help:g} | {sum(stood)} | {np.mean(forces):.0f} |",
                flush=True,
            )


def main(chosen):
    """Print the table; of walks that become runs, if that is chosen."""
    if chosen == ["--runs"]:
        return runs()
    fall = f"of {SCRIPTS} scripts fall | with pushes | played"
    print(f"| clips | learned | {fall} | get up: stand at the end, of falls | speed off | steps |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for names in [tuple(one.split("+")) for one in chosen] or CLIPS:
        with WorkerPool(2) as workers:
            character, motion, walk = learned(names, workers)
        slowest, fastest = walk.trim[0][0], walk.trim[-1][0]
        fell, off, steps = [], [], []
        for pushes, played in ((False, False), (True, False), (False, True)):
            fell.append(0)
            for seed in range(1, SCRIPTS + 1):
                commands = script(seed, slowest, fastest, pushes)
                own = replace(walk, commands=commands, played=played)
                stands, found, _ = directed(character, motion, own, seed)
                fell[-1] += not stands
                if not (pushes or played):
                    settled = [one for one in found if one.steps is not None and one.speed]
                    off += [abs(one.reached_speed / one.speed - 1) for one in settled]
                    steps += [one.steps for one in settled]
        stand = falls = 0
        for seed in range(1, SCRIPTS + 1):
            own = replace(walk, commands=script(seed, slowest, fastest, True))
            stands, _, times = directed(character, motion, own, seed, rises=True)
            stand, falls = stand + stands, falls + times
        cells = [f"{slowest:.2f} to {fastest:.2f} m/s", *map(str, fell), f"{stand}, {falls}"]
        cells += [f"{100 * np.mean(off):.1f} %", f"{np.median(steps):.0f}"]
        print(f"| {' to '.join(names)} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

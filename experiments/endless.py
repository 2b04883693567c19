# SPDX-License-Identifier: GPL-3.0-or-later
"""Captured walks and runs that go on and on, untuned: who stands, how fast, and who bears a push.

*20 s*: under 5 N m of motor noise. *A minute*: under 1 N m. *Off*: how far the centre of mass is
from its line at most in 12 s without noise. *Pushed*: by 100 N for 0.3 s on the trunk, from eight
directions at different moments of a step, once each.
"""

import sys
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from ..controller import Character, Push, Scenario, Settings, Simulation
from ..controller.exceptions import SimulationError
from ..controller.reference.gait import Walk, find_cycle
from ..controller.search.trial import NOISE
from .clips import read
from .commands import speed_of

CLIPS = (
    "walk_slow",
    "walk",
    "walk_fast",
    "walk_backward",
    "walk_zombie",
    "jog_in_place",
    "knee_raises",
    "run",
)
SEEDS = DIRECTIONS = 8
FIRST_SEED = 9000  # of the runs of 20 s, which chose nothing
CALM = 1.0  # [N m]
PUSH, LASTS, BEGINS, APART = 100.0, 0.3, 5.0, 0.13  # [N], [s], and so much later each [s]


def walked(name, seconds, noise=0.0, seed=0, pushes=()):
    """Whether a clip's cycle goes on for so long [s], and its Recording."""
    motion = read(name)
    body = Character.from_motion(motion)
    endless = Walk(find_cycle(body, motion), seconds).motion(body, motion)
    settings = Settings(noise=noise, seed=seed)
    simulation = Simulation(body, endless, settings=settings, scenario=Scenario(pushes=pushes))
    try:
        simulation.run()
    except SimulationError:  # it was thrown about
        return False, simulation.recording
    return simulation.recording.success, simulation.recording


def stands(task):
    """Of (name, seconds, noise, seed): whether it stands, and its mean speed [m/s]."""
    name, seconds, noise, seed = task
    stood, recording = walked(name, seconds, noise, seed)
    com = recording.com
    return stood, float(np.linalg.norm((com[-1] - com[0])[:2])) / (len(com) / recording.motion.rate)


def pushed(task):
    """Of (name, number): whether it stands under the push of that number."""
    name, number = task
    angle = 2 * np.pi * number / DIRECTIONS
    force = PUSH * np.cos(angle), PUSH * np.sin(angle), 0.0
    push = Push(BEGINS + number * APART, LASTS, force)
    return walked(name, BEGINS + 6.0, CALM, number, (push,))[0]


def off(name):
    """How far a walk is from its line at most [m]."""
    stood, recording = walked(name, 12.0)
    ahead = np.array(recording.motion.walk.cycle.travel)
    ahead /= np.linalg.norm(ahead)
    com = recording.com[:, :2] - recording.com[0, :2]
    # Hips sway: of whole rounds the mean.
    period = recording.motion.walk.cycle.period
    aside = com @ [-ahead[1], ahead[0]]
    mean = np.convolve(aside, np.full(period, 1 / period), "valid")
    return float(np.abs(mean - mean[0]).max()) if stood else np.nan


def row(name, pool, seconds):
    """A line of the table."""
    noisy = [(name, 20.0, NOISE, FIRST_SEED + seed) for seed in range(SEEDS)]
    calm = [(name, seconds, CALM, seed) for seed in range(SEEDS)]
    held, fast = zip(*pool.map(stands, noisy), strict=True)
    last = [stood for stood, _ in pool.map(stands, calm)]
    bear = list(pool.map(pushed, [(name, number) for number in range(DIRECTIONS)]))
    away = pool.submit(off, name).result()
    speeds = f"{speed_of(read(name)):.2f} | {np.mean(fast):.2f}"
    return f"| {name} | {speeds} | {sum(held)} | {sum(last)} | {sum(bear)} | {away:.2f} |"


def main(arguments):
    """Print the table; arguments: names of clips, for some of it, and --minutes N for longer
    ones."""
    minutes = 1.0
    if "--minutes" in arguments:
        at = arguments.index("--minutes")
        minutes = float(arguments[at + 1])
        arguments = arguments[:at] + arguments[at + 2 :]
    print(
        "| clip | speed [m/s] | reached | stands, 20 s, 5 N m "
        f"| stands, {minutes:g} min, 1 N m | pushed | off [m] |"
    )
    print("|---|---|---|---|---|---|---|")
    with ProcessPoolExecutor(2) as pool:
        for name in CLIPS:
            if not arguments or name in arguments:
                print(row(name, pool, 60 * minutes), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

# SPDX-License-Identifier: GPL-3.0-or-later
"""Captured walks that are commanded: steadily, and by scripts of random commands.

A script begins with a speed, and goes on with a new speed or a new heading every 2 to 5 s: so much
of the clip's own speed, and to anywhere from where it heads before. One with stops calls a third of
the time for a stand, or where there is one, for the walk again. Sideways it goes to both sides: as
it walks, on the spot from that, and on the spot from a stand.
"""

import sys
from dataclasses import replace

import numpy as np

from ..controller import Gains, Settings, Simulation
from ..controller.body.character import Character
from ..controller.exceptions import SimulationError
from ..controller.reference.commands import FASTEST, SLOWEST, Command
from ..controller.reference.gait import Walk, find_cycle
from ..controller.search.trial import NOISE
from .clips import read

CLIPS = ("walk", "walk_slow", "walk_fast", "walk_backward")
PACES = (0.5, 0.7, 0.85, 1.0, 1.1)
STEADY, SECONDS = 20.0, 60.0  # [s]
SEEDS, SCRIPTS = 2, 10
WAITS = 2.0, 5.0  # [s]
MOST_TURN = np.pi
STOPS = 1 / 3  # of all commands of a walker
#: [m/s] to either side; [s] when that begins, and how long it all lasts.
ASIDES = (0.15, 0.3)
BEGINS, LASTS = 2.0, 14.0
WALKS = 0.85  # of the clip's own speed
#: The last round before the next command is counted where the carrier was already as commanded: to
#: so much [m/s], [rad].
SETTLED = 0.02, np.radians(2)


def script(seed, speed, stops=False, seconds=SECONDS):
    """Random Commands of a walk of a speed [m/s]."""
    random, heading, time = np.random.default_rng(seed), 0.0, 0.0
    found, stands = [], False
    while time < seconds - WAITS[0]:
        if stops and found and (stands or random.random() < STOPS):
            stands = not stands
            found.append(Command(time, stands=stands))
        elif not found or random.random() < 0.5:
            found.append(Command(time, speed=float(random.uniform(SLOWEST, FASTEST) * speed)))
        else:
            heading += float(random.uniform(-MOST_TURN, MOST_TURN))
            found.append(Command(time, heading=heading))
        time += float(random.uniform(*WAITS))
    return tuple(found)


def performed(motion, commands, seconds, seed):
    """Whether a walk that is commanded stands to its end, its Recording, and a Followed for each
    command."""
    character = Character.from_motion(motion)
    endless = Walk(find_cycle(character, motion), seconds, commands=commands).motion(
        character, motion
    )
    settings = Settings(noise=NOISE, seed=seed)
    gains = Gains.default(character, walking=True)
    simulation = Simulation(character, endless, gains, settings=settings)
    try:
        stands = simulation.run().success
    except SimulationError:  # it was thrown about
        stands = False
    recording = simulation.recording
    return stands, recording, endless.followed(character, recording.com)


def speed_of(motion):
    """Of a clip's cycle [m/s]."""
    cycle = find_cycle(Character.from_motion(motion), motion)
    return cycle.length / cycle.period * motion.rate


def steady(motion, speed):
    """A cell for each of PACES: by how much the speed is off, or how many fell."""
    for pace in PACES:
        runs = [
            performed(motion, (Command(0.0, pace * speed),), STEADY, seed)
            for seed in range(1, SEEDS + 1)
        ]
        fell = sum(not stands for stands, _, _ in runs)
        off = np.mean([found[0].reached_speed / (pace * speed) - 1 for _, _, found in runs])
        yield f"{fell} of {SEEDS} fall" if fell else f"{100 * off:+.0f} %"


def scripted(motion, speed):
    """How many of SCRIPTS fall; and of what is settled the speed's errors [share] and the heading's
    [rad]."""
    fell, speeds, headings = 0, [], []
    for seed in range(1, SCRIPTS + 1):
        commands = script(seed, speed)
        stands, recording, found = performed(motion, commands, SECONDS, seed)
        fell += not stands
        gone = recording.motion.walk.journey(motion.rate)
        ends = [*[one.at for one in commands[1:]], SECONDS]
        for one, end in zip(found, ends, strict=True):
            last = min(int(end * motion.rate), len(gone.speeds) - 1)
            begun = int(np.searchsorted(gone.cycles, gone.cycles[last] - 1))
            off = abs(gone.speeds[begun] - one.speed), abs(gone.yaw[begun] - one.heading)
            if np.isfinite(one.reached_speed) and (off < np.array(SETTLED)).all():
                speeds.append(abs(one.reached_speed / one.speed - 1))
                headings.append(abs(one.reached_heading - one.heading))
    return fell, np.array(speeds), np.degrees(headings)


def stopped(motion, speed):
    """How many of SCRIPTS with stops fall, and how many stands were left on foot."""
    fell = starts = 0
    for seed in range(1, SCRIPTS + 1):
        stands, recording, _ = performed(motion, script(seed, speed, True), SECONDS, seed)
        fell += not stands
        standing = recording.motion.walk.journey(motion.rate).standing[: len(recording)]
        starts += np.count_nonzero((standing[1:] == 0) & (standing[:-1] > 0))
    return fell, starts


def sideways(motion, speed):
    """A cell for each of ASIDES as it walks, on the spot from a walk, and from a stand: how many
    fell, or by how much the way of those that stood was off: at most, in m/s."""
    for begin, onward in (
        (Command(0.0, WALKS * speed), Command(BEGINS)),
        (Command(0.0, SLOWEST * speed), Command(BEGINS, stands=True)),
        (Command(0.0, stands=True), Command(BEGINS, stands=True)),
    ):
        for aside in ASIDES:
            offs = []
            for own in (aside, -aside):
                for seed in range(1, SEEDS + 1):
                    commands = begin, replace(onward, aside=own)
                    stands, _, found = performed(motion, commands, LASTS, seed)
                    told = found[-1]
                    wanted = told.speed * np.exp(1j * told.heading)
                    off = abs(told.reached_speed * np.exp(1j * told.reached_heading) - wanted)
                    offs.append(off if stands else np.nan)
            fell = np.isnan(offs).sum()
            yield f"{fell} of {len(offs)} fall" if fell else f"{max(offs):.2f} m/s"


def main(names):
    """Print the tables."""
    print("| clip, its speed | " + " | ".join(f"{pace:g}" for pace in PACES), end="")
    print(f" | of {SCRIPTS} scripts fall | speed within 8 % | heading within 5°", end="")
    print(f" | of {SCRIPTS} scripts with stops fall |")
    print("|---|" + "---|" * (len(PACES) + 4))
    for name in names or CLIPS:
        motion = read(name)
        speed = speed_of(motion)
        cells = list(steady(motion, speed))
        fell, speeds, headings = scripted(motion, speed)
        cells += [f"{fell}", f"{100 * np.mean(speeds < 0.08):.0f} %"]
        cells += [f"{100 * np.mean(headings < 5):.0f} % of {len(headings)}"]
        cells += ["{} ({} starts)".format(*stopped(motion, speed))]
        print(f"| {name}, {speed:.2f} m/s | " + " | ".join(cells) + " |", flush=True)
    print()
    doing = "walking", "on the spot", "on the spot, from a stand"
    heads = [f"{one}, {aside:g} m/s" for one in doing for aside in ASIDES]
    print("| clip, its speed | " + " | ".join(heads) + " |")
    print("|---|" + "---|" * len(heads))
    for name in names or CLIPS:
        motion = read(name)
        speed = speed_of(motion)
        cells = sideways(motion, speed)
        print(f"| {name}, {speed:.2f} m/s | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

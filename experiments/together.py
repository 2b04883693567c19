# SPDX-License-Identifier: GPL-3.0-or-later
"""Sixty pairs simulated together: captured characters who are shoved, or walk, into each other.

Five clips in place meet each other: the first is pushed towards the second for 0.2 s with 150 to
600 N, from a distance of 0.75 to 1.1 m, each looking where chance has turned them. In twenty of the
sixty, somebody walks into the second, who stands 1 m ahead. Who falls braces. What is told of this
is in `researcher.md`, Met.
"""

import argparse
import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from ..controller import Character, PoiseError, Push, Scenario, Settings, Simulation, Together
from ..controller.geometry.motion import Motion
from ..controller.geometry.rotations import matrix_from_quaternion, multiply
from .clips import read

IN_PLACE = ("stand", "arm", "squat", "bow", "hips_twist")
WALKS = ("walk", "walk_slow")
PAIRS, WALKING = 60, 3  # every third one walks
SECONDS = 5.0
_SETTINGS = Settings(when_it_falls="brace")
#: Where feet of who walks pass, the other one stands so far ahead of the start [m].
_AHEAD = 1.0


@cache
def _clip(name):
    """A clip as Motion at 60 Hz: SECONDS of it, its last pose held, or all of a walk."""
    motion = read(name)
    seconds = min(SECONDS, motion.duration) if name in WALKS else SECONDS
    at = np.arange(round(seconds * 60) + 1) / 60 * motion.rate
    at = np.minimum(at, len(motion) - 1)
    low = np.minimum(at.astype(int), len(motion) - 2)
    part = (at - low)[:, None, None]
    first, second = motion.rotations[low], motion.rotations[low + 1]
    second = second * np.where((first * second).sum(-1, keepdims=True) < 0, -1, 1)
    turns = (1 - part) * first + part * second
    turns /= np.linalg.norm(turns, axis=-1, keepdims=True)
    places = (1 - part) * motion.positions[low] + part * motion.positions[low + 1]
    return Motion(name, 60.0, turns, places)


def _placed(motion, place, yaw):
    """A motion whose pelvis begins above a place (2,) [m], turned by a yaw [rad]."""
    turn = np.array([np.cos(yaw / 2), 0, 0, np.sin(yaw / 2)])
    positions = motion.positions @ matrix_from_quaternion(turn).T
    positions = positions + np.append(place - positions[0, 0, :2], 0.0)
    return replace(motion, positions=positions, rotations=multiply(turn, motion.rotations))


def pairs():
    """[(clip of the first, of the second, distance [m], yaws [rad] (2,), push [N])]; 0 N of who
    walks."""
    random, found = np.random.default_rng(29), []
    for number in range(PAIRS):
        walks = number % WALKING == WALKING - 1
        first = (WALKS if walks else IN_PLACE)[number % (2 if walks else 5)]
        second = IN_PLACE[(number // 5) % 5]
        yaws = random.uniform(0, 2 * np.pi, 2).tolist()
        force = 0.0 if walks else float(random.uniform(150, 600))
        found.append((first, second, float(random.uniform(0.75, 1.1)), yaws, force))
    return found


def cast(pair):
    """{name: Simulation} of a pair, and how each would be alone."""
    first, second, distance, yaws, force = pair
    one, other = _clip(first), _clip(second)
    count = min(len(one), len(other))
    one, other = (
        replace(m, rotations=m.rotations[:count], positions=m.positions[:count])
        for m in (one, other)
    )
    place = np.array([distance, 0.0])
    pushes = (Push(0.5, 0.2, (force, 0.0, 0.0)),) if force else ()
    if force:
        one = _placed(one, np.zeros(2), yaws[0])
    else:  # the second is where the first one will be
        way = one.positions[-1, 0, :2] - one.positions[0, 0, :2]
        one = _placed(one, np.zeros(2), -float(np.arctan2(way[1], way[0])))
        place = np.array([_AHEAD, 0.0])
    other = _placed(other, place, yaws[1])

    def made(motion, pushes):
        character = Character.from_motion(motion)
        return Simulation(character, motion, None, _SETTINGS, None, Scenario(pushes))

    return {"first": made(one, pushes), "second": made(other, ())}


def run(pair):
    """What became of a pair, plain data."""
    try:
        together = Together(cast(pair))
        deepest, since = 0.0, None
        started = time.process_time()
        for sample in together:
            depth = together.deepest()
            since = sample if since is None and depth > 0 else since
            if since is not None and sample > since + 6:  # after 0.1 s
                deepest = max(deepest, depth)
        spent = time.process_time() - started
    except PoiseError as error:
        return {"pair": pair, "error": str(error)}
    recordings = [one.recording for one in together.simulations.values()]
    started = time.process_time()
    for one in cast(pair).values():
        try:
            one.run()
        except PoiseError:
            return {"pair": pair, "error": "alone it cannot go on"}
    blows = [r.blows[..., :3].sum((0, 1)) / r.motion.rate for r in recordings]
    finite = all(np.isfinite(r.body_positions).all() for r in recordings)
    return {
        "pair": pair,
        "met": bool(recordings[0].hits()),
        "finite": finite,
        "complete": all(len(r) == len(together) for r in recordings),
        "fell": [r.stood is not None for r in recordings],
        "impulse": float(np.linalg.norm(blows[0])),
        "unequal": float(np.linalg.norm(blows[0] + blows[1])),
        "deepest": 1e3 * deepest,
        "floor": 1e3 * max(r.deepest for r in recordings),
        "seconds": recordings[0].motion.duration,
        "cpu": spent,
        "alone": time.process_time() - started,
    }


def main():
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="make together", description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    with ProcessPoolExecutor(options.workers) as executor:
        found = list(executor.map(run, pairs()))
    if options.output:
        options.output.write_text(json.dumps(found, indent=1))
    done = [one for one in found if "error" not in one]
    for one in found:
        if "error" in one:
            print(one["pair"], one["error"], file=sys.stderr)
    met = [one for one in done if one["met"]]
    whole = sum(one["finite"] and one["complete"] for one in done)
    print(f"to the last frame, and finite: {whole} of {len(found)}")
    print(f"met: {len(met)}; impulse [N s], median: {np.median([o['impulse'] for o in met]):.1f}")
    print(f"impulses that differ by [N s], at most: {max(o['unequal'] for o in met):.2g}")
    for name, who in (("first", 0), ("second", 1)):
        print(f"the {name} fell: {sum(one['fell'][who] for one in met)} of {len(met)}")
    deep = [one["deepest"] for one in met]
    print(f"deepest in each other [mm]: median {np.median(deep):.1f}, at most {max(deep):.1f}")
    print(f"deepest in the floor [mm]: {max(one['floor'] for one in done):.1f}")
    ratio = np.median([one["cpu"] / one["alone"] for one in done])
    fast = sum(one["seconds"] for one in done) / sum(one["cpu"] for one in done)
    print(f"times both alone, median: {ratio:.2f}; simulated s per s of a core: {fast:.2f}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: GPL-3.0-or-later
"""Captured clips that travel, and walks on stairs, with a waypoint beside their way.

One waypoint after 2.5 s, or at 85 % of a shorter clip: where the animation is then, or 10, 20 and
30 cm ahead of it, behind it, to its left and to its right; and the end of the animation.
"""

import sys

import numpy as np

from ..controller import Scenario, Settings
from ..controller.checks.verdict import judge_motions
from ..controller.reference.performed import performed_motion
from ..controller.reference.waypoints import Waypoint, sampled
from ..controller.search.arrival import Arrival
from ..controller.search.trial import Problem
from . import stairs
from .clips import read

CLIPS = ("walk", "walk_slow", "walk_fast", "walk_backward", "jog_in_place", "run", "jump")
#: Kinds of stairs.KINDS, of a walk.
ON = ("long stairs up", "long stairs down", "ramp up")
TIME, SHARE = 2.5, 0.85  # [s], of the clip
FAR = (0.1, 0.2, 0.3)  # [m]
WAYS = {"ahead": (1, 0), "behind": (-1, 0), "left": (0, 1), "right": (0, -1)}


def problem_of(motion, scenario, waypoint):
    """The Problem of a motion with a waypoint."""
    return Problem(motion, settings=Settings(waypoints=(waypoint,)), scenario=scenario)


def place_of(motion, scenario, time):
    """(2,) where the pelvis of the animation is at a time, [m], and (2, 2) ahead and left of it."""
    body = Problem(motion, scenario=scenario).character
    root = body.trajectory(motion).root[:, :2]
    ahead = root[-1] - root[0]
    ahead = ahead / np.linalg.norm(ahead)
    left = np.array([-ahead[1], ahead[0]])
    return sampled(root, np.array([time * motion.rate]))[0], np.stack([ahead, left])


def arrived(motion, scenario, waypoint):
    """How far [m] a body misses a waypoint at first and in the end, and whether the result is a
    keeper; and the Simulation."""
    problem = problem_of(motion, scenario, waypoint)
    arrival = Arrival(problem, None, problem.simulation(None, 0))
    arrival.simulation.run()
    first = missed(arrival.simulation)
    while arrival.again():
        arrival.simulation.run()
    recording = arrival.simulation.recording
    moved = recording.cleaned()
    source = performed_motion(moved) if moved else recording.motion
    verdict = judge_motions(source, performed_motion(recording), recording.success)
    return first, missed(arrival.simulation), verdict.keeper, arrival.simulation


def missed(simulation):
    """How far [m]; infinite where it has fallen before."""
    away = np.linalg.norm(simulation.recording.missed(), axis=1).max()
    return float(np.nan_to_num(away, nan=np.inf))


def row(name, motion, scenario):
    """A line of the table."""
    time = min(TIME, SHARE * motion.duration)
    place, axes = place_of(motion, scenario, time)
    cells = [_cell([arrived(motion, scenario, Waypoint(time))])]
    for way in WAYS.values():
        places = [tuple(place + far * np.array(way) @ axes) for far in FAR]
        cells.append(_cell([arrived(motion, scenario, Waypoint(time, at)) for at in places]))
    cells.append(_cell([arrived(motion, scenario, Waypoint(motion.duration))]))
    return f"| {name} | {' | '.join(cells)} |"


def _cell(results):
    firsts, lasts, keepers, _ = zip(*results, strict=True)
    kept = f"{sum(keepers)} of {len(keepers)}"
    return f"{100 * max(firsts):.1f}; {100 * max(lasts):.1f}; {kept}"


def main(arguments):
    """Print the table; arguments: names of clips, for some of it."""
    print(f"| | on the way | {' | '.join(WAYS)} | end |")
    print("|---" * (len(WAYS) + 3) + "|")
    for name in CLIPS:
        if not arguments or name in arguments:
            print(row(name, read(name), Scenario()), flush=True)
    for kind in ON:
        if not arguments or kind in arguments:
            place = stairs.made(read("walk"), kind)
            print(row(f"walk, {kind}", place.motion, place.scenario), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

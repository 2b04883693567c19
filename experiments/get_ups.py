# SPDX-License-Identifier: GPL-3.0-or-later
"""Get-ups of an animator's own: the Example Scene's character falls, and gets up as its two actions
for that have it, or without them.

Each of its three other actions is pushed from 16 directions by 550 N for 0.2 s, a second after it
began; it falls braced. What is told of this is in `researcher.md`, Fallen, and at rest.
"""

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import bpy
import numpy as np

from .. import addon
from ..addon.example import scene
from ..addon.rigs import reference
from ..addon.scene import get_ups
from ..controller import Character, Push, Scenario, Settings, Simulation
from ..controller.body.momentum import GRAVITY
from . import sticks

FORCE, START, DIRECTIONS, SECONDS = 550.0, 1.0, 16, 11.0
#: From one drawn fall to the next.
_EVERY = 9


def read():
    """(motions of the other actions, motions of the get-ups) of the example's character."""
    addon.register()
    made = scene.build(bpy.context)
    armature = made.objects["Character"]
    own = get_ups.of(armature)
    others = [one for one in bpy.data.actions if get_ups.fits(one, armature) and one not in own]
    return tuple(
        [reference.read(made, armature, action=action).motion for action in chosen]
        for chosen in (sorted(others, key=lambda one: one.name), own)
    )


def _longer(motion):
    """The motion, its last pose held for as long as it takes to get up."""
    more = round(SECONDS * motion.rate) + 1 - len(motion)
    return replace(
        motion,
        rotations=np.concatenate([motion.rotations, np.repeat(motion.rotations[-1:], more, 0)]),
        positions=np.concatenate([motion.positions, np.repeat(motion.positions[-1:], more, 0)]),
    )


def _fallen(task):
    """The Recording of one that is pushed."""
    motion, ups, number = task
    turn = 2 * np.pi * number / DIRECTIONS
    push = Push(START, 0.2, (FORCE * np.cos(turn), FORCE * np.sin(turn), 0.0))
    settings = Settings(when_it_falls="brace", get_up=True)
    scenario = Scenario(pushes=(push,), get_ups=tuple(ups))
    longer = _longer(motion)
    return Simulation(Character.from_motion(motion), longer, None, settings, None, scenario).run()


def _measured(task):
    recording = _fallen(task)
    summary, motion = recording.summary(), task[0]
    weight = GRAVITY * recording.character.mass
    lay = recording.stood is not None and summary["help"] is not None
    return {
        "lay": lay,
        "up": recording.up is not None,
        "way": recording.ways[0] if recording.ways else None,
        "again": len(recording.fell_again),
        "after": summary["up_at"] - summary["rest_at"] if recording.up else None,
        "help": summary["help"]["mean"] / weight if lay else None,
        "most": summary["help"]["most"] / weight if lay else None,
        "name": motion.name,
    }


def _told(results):
    """Cells of a Markdown row."""
    lay = [one for one in results if one["lay"]]
    up = [one for one in lay if one["up"]]
    times = [one["after"] for one in up]
    ways = Counter(one["way"] for one in up)
    named = ", ".join(f"{name or 'own way'} {number}" for name, number in sorted(ways.items()))
    return (
        f"| {len(lay)} | {len(up)} | {sum(one['again'] > 0 for one in lay)} "
        f"| {np.median(times):.1f}; {max(times):.1f} "
        f"| {np.mean([one['help'] for one in lay]):.2f}; {max(one['help'] for one in lay):.2f} "
        f"| {np.mean([one['most'] for one in lay]):.2f} | {named} |"
    )


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--strips", type=Path, help="draw some there, and nothing else")
    options = parser.parse_args(arguments)
    motions, ups = read()
    tasks = [(motion, ups, number) for motion in motions for number in range(DIRECTIONS)]
    if options.strips:
        rows = {}
        for motion, own, number in tasks[4::_EVERY][:4]:
            recording = _fallen((motion, own, number))
            last = min((recording.up or len(recording)) + round(motion.rate), len(recording)) - 1
            lying = recording.joints()[(recording.rested or last) - 1]
            way = lying[-1, :2] - lying[0, :2]
            title = f"{motion.name}, {', '.join(recording.ways) or 'lies'}"
            rows[title] = recording, recording.stood - 1, last, way / np.linalg.norm(way)
        sticks.save(sticks.strip(rows, 18), options.strips)
        return 0
    print("| | lay | stand | fell again | after [s] | help | most | by |\n" + "|---" * 8 + "|")
    with ProcessPoolExecutor(options.workers) as pool:
        for words, chosen in (("with its two", ups), ("without", ())):
            given = [(motion, chosen, number) for motion, _, number in tasks]
            print(f"| {words} {_told(list(pool.map(_measured, given)))}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

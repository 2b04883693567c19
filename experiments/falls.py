# SPDX-License-Identifier: GPL-3.0-or-later
"""Two hundred falls: captured clips, pushed until they fall, on the floor, down stairs and ramps.

Ten clips are pushed twenty times each, by 200 to 600 N for 0.2 s, from 16 directions in turn, at
drawn times: twelve times on the flat floor, four times each where stairs or a ramp go down in the
direction of the push. After sixty of those on the flat floor, limp and braced, they get up. What is
told of all this is in `researcher.md`, Fallen, and at rest.
"""

import argparse
import json
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np

from ..controller import Character, PoiseError, Push, Scenario, Settings, Simulation
from ..controller.body.momentum import GRAVITY
from ..controller.falls.behaviours import BEHAVIOURS, GO_ON, STAND
from ..controller.geometry.skeleton import SEGMENT_INDEX
from ..controller.geometry.solids import Collider, Solid
from . import sticks
from .clips import read

CLIPS = (
    *("stand", "arm", "wave", "squat", "bow", "hips_twist", "single", "knee_raises"),
    *("walk", "walk_slow"),
)
KINDS = tuple(BEHAVIOURS)
PUSHES, DIRECTIONS = 20, 16
#: What is under the pushes of a clip, in turn.
GROUNDS = ("flat", "flat", "flat", "stairs", "ramp")
SECONDS = 8.0
#: Of those that get up: so many falls of each clip, for so long.
RISING, RISING_SECONDS = 6, 14.0
#: Of those that are drawn rolling: (clip, force [N], direction [degrees], start [s]).
ROLLS = (
    ("stand", 450.0, 270.0, 0.6),
    ("walk", 350.0, 270.0, 0.8),
    ("walk_slow", 450.0, 240.0, 1.0),
    ("arm", 550.0, 90.0, 0.9),
)
_RISE, _TREAD, _STEPS, _SLOPE = 0.17, 0.29, 6, np.radians(20)
#: From the pelvis to where stairs and ramps begin [m].
_BEFORE = 0.35
_HEAD = SEGMENT_INDEX["head"]
_ARMS = [SEGMENT_INDEX[name] for name in ("forearm_l", "forearm_r")]


@cache
def _body(name):
    motion = read(name)
    return motion, Character.from_motion(motion)


def _turned(yaw, tilt=0.0):
    """Quaternion of a turn about z, and before it about y [rad]."""
    a, b = yaw / 2, tilt / 2
    return (
        float(np.cos(a) * np.cos(b)),
        float(-np.sin(a) * np.sin(b)),
        float(np.cos(a) * np.sin(b)),
        float(np.sin(a) * np.cos(b)),
    )


def ground(kind, start, top, yaw):
    """(colliders, height of the floor) of a place where it goes down in the direction `yaw` [rad],
    from a start (2,) at the height `top` [m]."""
    if kind == "flat":
        return (), None
    ahead = np.array([np.cos(yaw), np.sin(yaw)])

    def box(name, first, last, height):
        middle = np.append(start + (first + last) / 2 * ahead, height - 1.0)
        size = ((last - first) / 2, 3.0, 1.0)
        return Collider(name, Solid("box", size), tuple(middle), _turned(yaw))

    parts = [box("landing", -4.0, _BEFORE, top)]
    if kind == "stairs":
        for i in range(_STEPS - 1):
            low = _BEFORE + i * _TREAD
            parts.append(box(f"step {i + 1}", low, low + _TREAD, top - (i + 1) * _RISE))
    else:
        half = _STEPS * _RISE / np.sin(_SLOPE) / 2
        along = np.append(np.cos(_SLOPE) * ahead, -np.sin(_SLOPE))
        across = np.append(np.sin(_SLOPE) * ahead, np.cos(_SLOPE))
        middle = np.append(start + _BEFORE * ahead, top) + half * along - 0.5 * across
        solid = Solid("box", (half, 3.0, 0.5))
        parts.append(Collider("ramp", solid, tuple(middle), _turned(yaw, _SLOPE)))
    return tuple(parts), top - _STEPS * _RISE


def falls():
    """[(clip, ground, force [N], direction [rad], start [s])] of all."""
    found = []
    for number, name in enumerate(CLIPS):
        random = np.random.default_rng([number, 17])
        for push in range(PUSHES):
            turn = 2 * np.pi * ((3 * push + number) % DIRECTIONS) / DIRECTIONS
            found.append(
                (
                    name,
                    GROUNDS[push % len(GROUNDS)],
                    float(random.uniform(200, 600)),
                    float(turn),
                    float(random.uniform(0.3, 1.2)),
                )
            )
    return found


def risings():
    """[(clip, kind, ground, force [N], direction [rad], start [s])] of those that get up."""
    found = []
    for name in CLIPS:
        flat = [fall for fall in falls() if fall[0] == name and fall[1] == "flat"]
        for number, (_, *fall) in enumerate(flat[:RISING]):
            found.append((name, ("limp", "brace")[number % 2], *fall))
    return found


def simulation(clip, kind, place, force, turn, start, get_up=False, once_up=STAND):
    """The Simulation of one of them."""
    motion, character = _body(clip)
    at = motion.positions[round(start * motion.rate), 0, :2]
    ahead = [np.cos(turn), np.sin(turn)]
    if (motion.positions[0, 0, :2] - at) @ ahead > 0.1:
        place = "flat"  # a walk that comes from there
    colliders, floor = ground(place, at, character.ground, turn)
    push = Push(start, 0.2, (force * np.cos(turn), force * np.sin(turn), 0.0))
    return Simulation(
        character,
        motion,
        settings=Settings(
            duration=RISING_SECONDS if get_up else SECONDS,
            when_it_falls=kind,
            get_up=get_up,
            once_up=once_up,
        ),
        scenario=Scenario(pushes=(push,), colliders=colliders, floor=floor),
    )


def measured(clip, kind, *fall):
    """What one of them comes to: a dictionary of figures, with "why" if it ended early."""
    character = _body(clip)[1]
    simulated = simulation(clip, kind, *fall)
    recording, pushed = simulated.recording, fall[3] + 0.2
    beyond, toe, energies, head, hands = 0.0, 0.0, [], None, False
    toes = np.array([name.startswith("toe") for name in character.dof_names])
    result = {"clip": clip, "kind": kind, "fall": fall}
    try:
        for sample in simulated:
            if recording.stood is None or sample <= recording.stood:
                continue
            world = simulated.world
            state = world.state(False)
            limits = world.character.limits
            over = np.maximum(limits[:, 0] - state.angles, state.angles - limits[:, 1])
            beyond = max(beyond, float(over[~toes].max()))
            toe = max(toe, float(over[toes].max()))
            if sample / recording.motion.rate > pushed:
                inertia = world.mass_matrix(state.angles)
                height = character.masses @ recording.body_positions[-1][:, 2]
                energy = 0.5 * state.speeds @ inertia @ state.speeds + GRAVITY * height
                energies.append(float(energy))
            touched = world.touched()
            if head is None:
                hands = hands or any(arm in touched for arm in _ARMS)
                if _HEAD in touched:
                    places = recording.body_positions[-3:, _HEAD]
                    speeds = np.linalg.norm(np.diff(places, axis=0), axis=1)
                    head = float(speeds.max() * recording.motion.rate)
    except PoiseError as error:
        return result | {"why": str(error)}
    if recording.stood is None:
        return result | {"fell": False}
    rises = np.diff(energies) / (energies[0] - GRAVITY * character.mass * world.floor)
    moves = np.diff(recording.body_positions[-5:], axis=0)
    return result | {
        "fell": True,
        "rest": None if recording.rest_at is None else recording.rest_at - recording.fell_at,
        "last": float(np.linalg.norm(moves, axis=2).max() * recording.motion.rate),
        "deepest": 1e3 * recording.deepest,
        "beyond": float(np.degrees(beyond)),
        "toe": float(np.degrees(toe)),
        "rise": 100 * float(rises.max()),
        "head": head,
        "hands": hands,
        "factor": (len(recording) - 1) / recording.motion.rate / recording.wall_time,
    }


def risen(clip, kind, *fall):
    """What one of those comes to that get up."""
    simulated = simulation(clip, kind, *fall, get_up=True)
    recording, result = simulated.recording, {"clip": clip, "kind": kind, "fall": fall}
    try:
        simulated.run()
    except PoiseError as error:
        return result | {"why": str(error)}
    summary = recording.summary()
    lay = recording.stood is not None and summary["rest_at"] is not None
    weight = GRAVITY * simulated.character.mass
    up, helped = summary["up_at"], summary["help"]
    return result | {
        "lay": lay and helped is not None,
        "after": None if up is None else up - summary["rest_at"],
        "help": helped and helped["mean"] / weight,
        "most": helped and helped["most"] / weight,
        "torque": helped and summary["help_torque"]["mean"],
        "deepest": summary["deepest"],
        "factor": RISING_SECONDS / recording.wall_time,
    }


def went_on(clip, kind, *fall):
    """What becomes of one of those that get up, and are to go on: "lies", "stands" still, "fell"
    again, or "goes on" to the end."""
    recording = simulation(clip, kind, *fall, get_up=True, once_up=GO_ON).run()
    if not recording.stood_again:
        return "lies"
    if recording.fell_again:
        return "fell"
    return "stands" if recording.went_on[-1] is None else "goes on"


def strips(path, every):
    """Draw one in so many of those that get up, from the loss of balance to a second after they
    stand."""
    rows = {}
    for clip, kind, *fall in risings()[::every]:
        simulated = simulation(clip, kind, *fall, get_up=True)
        recording, rate = simulated.run(), simulated.motion.rate
        if recording.stood is None:
            continue
        last = len(recording) - 1 if recording.up is None else recording.up + round(rate)
        last = min(last, len(recording) - 1)
        push = f"{clip}, {kind}, {fall[1]:.0f} N"
        up = (
            ""
            if recording.up is None
            else f", up after {recording.up_at - recording.rest_at:.1f} s"
        )
        lying = recording.joints()[recording.rested - 1 if recording.rested else last]
        right = (lying[_HEAD] - lying[0])[:2]
        right = right / max(np.linalg.norm(right), 1e-6)
        rows[push + up] = recording, recording.stood - 1, last, right
    sticks.save(sticks.strip(rows, 18), path)


def rolls(path):
    """Draw falls of those that roll, from the loss of balance on."""
    rows = {}
    for clip, force, degrees, start in ROLLS:
        simulated = simulation(clip, "roll", "flat", force, np.radians(degrees), start)
        recording = simulated.run()
        first = recording.stood - 1
        joints = recording.joints()
        right = (joints[first + 60, 0] - joints[first, 0])[:2]
        rows[f"{clip}, {force:.0f} N"] = (
            recording,
            first,
            first + 150,
            right / np.linalg.norm(right),
        )
    sticks.save(sticks.strip(rows, 18), path)


def _risen_table(results):
    """Lines of a Markdown table of those that get up."""
    lay = [one for one in results if one.get("lay")]
    times = [one["after"] for one in lay if one["after"] is not None]
    yield "| | getting up |"
    yield "|---|---|"
    yield f"| explosions, NaN | {sum('why' in one for one in results)} |"
    yield f"| lay; stood again | {len(lay)}; {len(times)} |"
    yield f"| within 5 s of rest | {sum(time <= 5 for time in times)} |"
    yield f"| after, median; longest [s] | {np.median(times):.1f}; {max(times):.1f} |"
    for name, words, form in (
        ("help", "help, mean of each: mean; largest [share of the weight]", ".2f"),
        ("torque", "help's torque, mean of each: mean; largest [N m]", ".0f"),
        ("most", "largest help at any time: mean; largest [share of the weight]", ".2f"),
        ("deepest", "deepest: mean; largest [mm]", ".1f"),
    ):
        values = [one[name] for one in lay]
        yield f"| {words} | {np.mean(values):{form}}; {max(values):{form}} |"


def _table(results):
    """Lines of a Markdown table."""
    yield "| | " + " | ".join(KINDS) + " |"
    yield "|---|" + "---|" * len(KINDS)

    def row(name, figure, form="{:.1f}"):
        cells = []
        for kind in KINDS:
            value = figure([one for one in results if one["kind"] == kind])
            cells.append(value if isinstance(value, str) else form.format(value))
        return f"| {name} | " + " | ".join(cells) + " |"

    def fallen(values, name):
        return [one[name] for one in values if one.get("fell")]

    def rested(values):
        return [9e9 if rest is None else rest for rest in fallen(values, "rest")]

    yield row("pushes; falls", lambda v: f"{len(v)}; {len(fallen(v, 'rest'))}")
    yield row("explosions, NaN", lambda v: sum("why" in one for one in v), "{}")
    yield row("at rest within 6 s", lambda v: sum(r <= 6 for r in rested(v)), "{}")
    yield row("at rest within 4 s", lambda v: sum(r <= 4 for r in rested(v)), "{}")
    yield row("at rest after, median [s]", lambda v: np.median(rested(v)))
    yield row("fastest at the end, worst [mm/s]", lambda v: 1e3 * max(fallen(v, "last")))
    for name, words in (
        ("deepest", "deepest [mm]"),
        ("beyond", "beyond a limit [°]"),
        ("toe", "toes beyond theirs [°]"),
    ):
        yield row(
            f"{words}, median; worst",
            lambda v, n=name: f"{np.median(fallen(v, n)):.2f}; {max(fallen(v, n)):.1f}",
        )
    yield row("energy's rise, worst [%]", lambda v: max(fallen(v, "rise")), "{:.2f}")
    yield row(
        "head's speed at its first touch, mean (untouched: 0) [m/s]",
        lambda v: np.mean([one or 0.0 for one in fallen(v, "head")]),
        "{:.2f}",
    )
    yield row("hands or forearms first", lambda v: np.mean(fallen(v, "hands")), "{:.0%}")


def _tell_going_on(options):
    """Print what becomes of those that get up, and are to go on; returns the exit status."""
    chosen = risings()[:: options.every]
    with ProcessPoolExecutor(options.workers) as pool:
        found = list(pool.map(_went_on, chosen, chunksize=2))
    for clip in dict.fromkeys(one[0] for one in chosen):
        became = Counter(what for one, what in zip(chosen, found, strict=True) if one[0] == clip)
        print(f"{clip}: {', '.join(f'{number} {what}' for what, number in became.items())}")
    print(f"all: {dict(Counter(found))}")
    return 0


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("build/falls.json"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--every", type=int, default=1, help="take one of so many falls")
    parser.add_argument(
        "--going-on", action="store_true", help="those that go on, and nothing else"
    )
    parser.add_argument("--strips", type=Path, help="draw get-ups there, and nothing else")
    parser.add_argument("--rolls", type=Path, help="draw falls that roll there, and nothing else")
    options = parser.parse_args(arguments)
    if options.rolls:
        rolls(options.rolls)
        return 0
    if options.strips:
        strips(options.strips, options.every)
        return 0
    for name in CLIPS:  # read before there are processes: Blender is in one only
        _body(name)
    if options.going_on:
        return _tell_going_on(options)
    tasks = [(fall[0], kind, *fall[1:]) for fall in falls()[:: options.every] for kind in KINDS]
    with ProcessPoolExecutor(options.workers) as pool:
        results = list(pool.map(_measured, tasks, chunksize=4))
        raised = list(pool.map(_risen, risings()[:: options.every], chunksize=2))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps({"falls": results, "get_ups": raised}, indent=1))
    print("\n".join([*_table(results), "", *_risen_table(raised)]))
    return 0


def _measured(task):
    return measured(*task)


def _risen(task):
    return risen(*task)


def _went_on(task):
    return went_on(*task)


if __name__ == "__main__":
    sys.exit(main())

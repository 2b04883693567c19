# SPDX-License-Identifier: GPL-3.0-or-later
"""Three shots through Poise, and pictures of what it did: `make demo`, about 3 minutes.

    python demo/run.py --output build/demo [--only walk|captured|handkeyed] [--no-render]

walk: a walk that is keyed by hand, its feet from the side through one stance. captured: the crouch
before a captured jump that comes with PyBullet. handkeyed: a character that waves and squats,
keyed by hand without a thought of physics. For each: NAME.blend with both actions, NAME_strip.png,
NAME_feet.png and NAME_report.json.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import bpy
import captured
import handkeyed
import keyedwalk
import pictures
import staging

from poise.addon.example import character
from poise.addon.example.figure import build_body
from poise.addon.shots.shot import Shot, ShotOptions
from poise.controller import PoiseError

#: The captured clip and the part of it [s] before the feet leave the floor.
CLIP, PART = "jump", (0.0, 0.75)
#: The figures of the summary, and how they are written.
FIGURES = {
    "foot_slide": "{:.4f}",
    "foot_penetration": "{:.1f}",
    "jitter": "{:.1f}",
    "zmp_inside": "{:.2f}",
}
#: Sizes of the tiles [pixels].
FIGURE_TILE, FEET_TILE = (260, 360), (260, 200)


def load_walk():
    """The hand-keyed walk with a body -> (armature, height [m])."""
    armature = keyedwalk.load()
    build_body(armature, character.HEIGHT)
    return armature, character.HEIGHT


def load_captured():
    """The captured figure with a body -> (armature, height [m])."""
    armature = captured.load(CLIP, PART)
    build_body(armature, captured.HEIGHT)
    return armature, captured.HEIGHT


def load_handkeyed():
    """The hand-keyed character with a body -> (armature, height [m])."""
    armature = handkeyed.load()
    build_body(armature, character.HEIGHT)
    return armature, character.HEIGHT


SHOTS = {"walk": load_walk, "captured": load_captured, "handkeyed": load_handkeyed}


class Timer:
    """Says what is being done, and how long it took."""

    def __init__(self, name):
        self.name = name

    def __call__(self, what, work):
        print(f"demo: {self.name}: {what} …", end=" ", flush=True)
        started = time.perf_counter()
        result = work()
        print(f"{time.perf_counter() - started:.1f} s", flush=True)
        return result


def run_shot(name, folder, render):
    """Make everything of one shot -> lines of its summary."""
    say = Timer(name)
    bpy.ops.wm.read_factory_settings(use_empty=True)
    armature, height = say("building the scene", SHOTS[name])
    shot = Shot(bpy.context.scene, ShotOptions(armature=armature.name))
    say("reading the animation", lambda: list(shot.read()))
    say("simulating", lambda: list(shot.simulate()))
    say("baking", shot.bake)
    say("reading the bake back", lambda: list(shot.measure()))
    report = shot.report()
    files = [folder / f"{name}_report.json"]
    files[0].write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    rows = say("arranging original and bake", lambda: staging.arrange(shot, height))
    pictures.prepare(shot.scene)
    files.append(folder / f"{name}.blend")
    say("saving", lambda: bpy.ops.wm.save_as_mainfile(filepath=str(files[1]), copy=True))
    if render:
        whole = pictures.moments(*shot.baked.frames)
        stance = staging.stance(shot)
        strips = {
            folder / f"{name}_strip.png": (FIGURE_TILE, _figure_view(shot, height), whole),
            folder / f"{name}_feet.png": (
                FEET_TILE,
                _feet_view(shot, stance),
                pictures.moments(*stance.frames) if stance else whole,
            ),
        }
        for path, (size, view, frames) in strips.items():
            say(
                f"rendering {path.name}",
                lambda size=size, view=view, frames=frames, path=path: pictures.strip(
                    shot.scene, rows, frames, size, view, path
                ),
            )
        files += strips
    return _summary(name, shot, report, files)


def _figure_view(shot, height):
    """view(frame) -> (target, place, lens) of a camera on the whole figure: from the front left, or
    from the side and along with a figure that travels."""
    middle = staging.feet_middle(shot, len(shot.recording)) + (0, 0, 0.55 * height)
    if not shot.recording.reference.travels:
        return lambda _frame: (middle, middle + (1.6, -4.2, 0.35), 46)
    way = staging.pelvis(shot)

    def beside(frame):
        at = middle * (0, 0, 1) + way[frame - int(shot.baked.frames[0])] * (1, 1, 0)
        return at, at + (4.5, 0.0, 0.3), 46

    return beside


def _feet_view(shot, stance):
    """view(frame) -> (target, place, lens) of a camera on the feet, low and near; on the foot of a
    stance from the side, just above the floor."""
    if stance:
        middle = stance.place + (0, 0, 0.1)
        return lambda _frame: (middle, middle + (1.9 * stance.outwards, 0.0, 0.22), 68)
    middle = staging.feet_middle(shot, len(shot.recording)) + (0, -0.05, 0.06)
    return lambda _frame: (middle, middle + (0.5, -1.5, 0.75), 58)


def _summary(name, shot, report, files):
    first, last = report["frames"]
    outcome = "stood" if report["success"] else f"fell: {report['why']}"
    lines = [
        f"{name}: '{report['source_action']}', frames {first:g} to {last:g} "
        f"({(last - first) / report['fps']:.1f} s): {outcome}"
    ]
    for key, form in FIGURES.items():
        pair = [report[key][when] for when in ("before", "after")]
        before, after = ("-" if value is None else form.format(value) for value in pair)
        lines.append(f"  {key} {before} → {after} {report['units'][key]}")
    return lines + [f"  open {path}" for path in files]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("build/demo"), help="folder for it")
    parser.add_argument("--only", choices=sorted(SHOTS), help="only this shot")
    parser.add_argument("--no-render", action="store_true", help="no pictures")
    options = parser.parse_args()
    started = time.perf_counter()
    lines = []
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        for name in [options.only] if options.only else SHOTS:
            lines += run_shot(name, options.output.resolve(), not options.no_render)
    except (PoiseError, OSError, RuntimeError) as error:
        sys.exit(f"demo: {error}")
    print("\n".join(lines))
    print(f"demo: done in {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()

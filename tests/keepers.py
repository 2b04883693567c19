# SPDX-License-Identifier: GPL-3.0-or-later
"""Poise's own verdict on baked clips, beside that of a judge that knows nothing of Poise.

    python tests/keepers.py [CLIP …]

The judge is `judge.py`, which reads bones and keys through Blender alone. It lies in
`../shared/tools/keepers` beside the checkout, or in the folder that the environment variable
POISE_KEEPERS names. Prints a line for each measure of each clip: before and after by Poise, by the
judge, and where they differ in what passes.
"""

import argparse
import importlib.util
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: In place, deep, on one leg, travelling, in the air.
CLIPS = ("stand", "wave", "squat", "bow", "knee_raises", "walk_slow", "walk", "kick", "jump")
#: What the judge calls our measures.
NAMES = {"slip": "feet", "foot_turn": "soles", "jerk": "smooth"}


def judge_module():
    """The judge; None where there is none."""
    folder = os.environ.get("POISE_KEEPERS", ROOT.parent / "shared" / "tools" / "keepers")
    path = Path(folder, "judge.py")
    return _module("judge", path) if path.is_file() else None


def _module(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compared(judge, shot):
    """A baked and measured Shot by both -> {measure: ((before, after, passes) by Poise, the same by
    the judge)}; before is None for differences."""
    import bpy

    armature, motion = shot.armature, shot.reading.motion
    source = bpy.data.actions[shot.reading.action]
    points, feet, frames = judge.play(armature, source)
    after = judge.play(armature, bpy.data.actions[shot.baked.action], frames=frames)
    found = judge.compare(points, after[0], motion.rate, feet, after[1])
    before, after = found["reference"], found["baked"]
    figures = {
        "stands": (None, None),
        "pose": (None, found["pose_error_mean"]),
        "place": (None, found["com_drift_max"]),
        "slip": (before["slip_mean"], after["slip_mean"]),
        "foot_turn": (None, found["foot_turn_p95"]),
        "floor": (before["penetration_max"], after["penetration_max"]),
        "jerk": (before["jerk_mean"], after["jerk_mean"]),
        "speed": (None, found["speed_error"]),
        "rest": (None, found["fidget"]),
    }
    return {
        judged.name: (
            (judged.before, judged.after, judged.passes),
            (
                *figures[judged.name],
                NAMES.get(judged.name, judged.name) not in found["not_kept_for"],
            ),
        )
        for judged in shot.verdict.judged
        if judged.name in figures  # it knows no others
    }


def main():
    """Bake and compare."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("clips", nargs="*", default=CLIPS)
    names, judge = parser.parse_args().clips, judge_module()
    if judge is None:
        raise SystemExit("There is no judge: set POISE_KEEPERS to the folder of judge.py.")
    from poise.addon.shots.shot import Shot

    figures = _module("figures", ROOT / "tests" / "figures.py")
    folder = Path(os.environ.get("POISE_MOTIONS", ROOT.parent / "shared" / "motions"))
    known = {clip.name: clip for clip in figures.clips(folder)}
    for name in names:
        shot = Shot(figures.load(known[name]))
        for stage in (shot.read, shot.simulate, shot.baking, shot.measure):
            for _ in stage():
                pass
        simulated = {judged.name: judged for judged in shot.judge().judged}
        print(f"{name}: keeper {shot.verdict.keeper}, {shot.why or 'it stood'}", flush=True)
        for measure, (ours, theirs) in compared(judge, shot).items():
            differ = "   DIFFERENT" if ours[2] != theirs[2] else ""
            print(
                f"  {measure:10} Poise {_figures(ours)}   judge {_figures(theirs)}   before the "
                f"bake {_figure(simulated[measure].after)}{differ}"
            )
        for found in shot.verdict.findings:
            print(f"    {found.sentence}")


def _figures(values):
    return f"{_figure(values[0])} {_figure(values[1])} {'kept' if values[2] else 'not kept':8}"


def _figure(value):
    return f"{'-' if value is None else f'{value:.4g}':>8}"


if __name__ == "__main__":
    main()

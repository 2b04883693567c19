# SPDX-License-Identifier: GPL-3.0-or-later
"""The figures of captured clips in docs/researcher.md: `make figures`, about 2 minutes.

For each clip, untuned: a trial as SCA12 defines it (looped to 20 s, its reward), then the shot
itself, simulated, baked and read back. Writes build/figures.md.
"""

import importlib.util
import os
import sys
from pathlib import Path

import bpy

from poise.addon.shots.shot import Shot, ShotOptions
from poise.controller import Character, Settings, Simulation, SimulationError

ROOT = Path(__file__).resolve().parent.parent
HEAD = (
    "clip | R, 20 s | mass [kg] | height [m] | the shot | tracking_error_local [mm] | "
    "foot_slide [m/s] | ratio | jitter ratio | zmp_inside"
)


def clips(folder):
    """The clips of a folder, as the tests' set-up lists them."""
    spec = importlib.util.spec_from_file_location("setup", ROOT / "tests" / "conftest.py")
    setup = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(setup)
    return list(setup._table(folder))


def load(clip):
    """An empty file with the clip's armature."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    scene = bpy.context.scene
    scene.render.fps = clip.fps
    axes = {"axis_up": "Z", "axis_forward": "Y"} if clip.up == "Z" else {}
    bpy.ops.import_anim.bvh(filepath=str(clip.path), global_scale=clip.scale, **axes)
    return scene


def row(clip, balance):
    """One line of the table."""
    shot = Shot(load(clip), ShotOptions(balance=balance))
    for _ in shot.read():
        pass
    motion = shot.reading.motion
    character = Character.from_motion(motion)
    settings = Settings(balance=balance, duration=20.0)
    reward = _reward(Simulation(character, motion, settings=settings))
    for _ in shot.simulate():
        pass
    shot.bake()
    for _ in shot.measure():
        pass
    report = shot.report()
    stood = "stood" if report["success"] else f"fell at {report['fell_at']:.1f} s"
    slide, jitter, zmp = (report[n] for n in ("foot_slide", "jitter", "zmp_inside"))
    return " | ".join(
        [
            clip.name,
            reward,
            f"{character.mass:.0f}",
            f"{character.height:.2f}",
            f"{stood} ({motion.duration:.1f} s)",
            f"{report['tracking_error_local']:.1f}",
            _pair(slide, "{:.4f}"),
            _ratio(slide),
            _ratio(jitter),
            _pair(zmp, "{:.2f}"),
        ]
    )


def _reward(trial):
    """The reward of a trial, or what else came of it."""
    try:
        return f"{trial.run().summary()['reward']:.2f}"
    except SimulationError:
        return "blew up"


def _pair(values, form):
    before, after = values["before"], values["after"]
    return " → ".join("-" if v is None else form.format(v) for v in (before, after))


def _ratio(values):
    return f"{values['after'] / values['before']:.2f}" if values["before"] else "-"


def main():
    folder = Path(os.environ.get("POISE_MOTIONS", ROOT.parent / "shared" / "motions"))
    if not folder.is_dir():
        sys.exit(f"figures: no captured clips in '{folder}': set POISE_MOTIONS to their folder.")
    balance = sys.argv[1] if len(sys.argv) > 1 else "foot_forces"
    lines = [f"| {HEAD} |", "|" + "---|" * (HEAD.count("|") + 1)]
    for clip in clips(folder):
        lines.append(f"| {row(clip, balance)} |")
        print(lines[-1], flush=True)
    target = ROOT / "build" / "figures.md"
    target.parent.mkdir(exist_ok=True)
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"figures: written to {target.relative_to(ROOT)}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: GPL-3.0-or-later
"""Sok, Kim, Lee's experiments with Poise: captured clips as they are, and rectified.

python -m poise.experiments.sok --quick

Every clip is performed by joint tracking alone, by balance control, and rectified; the last is
baked in Blender and read back. Prints a table, and draws the paper's figure 7 for these clips. An
interrupted run goes on from its report, and from the node that it had reached; so does a clip whose
budget ran out.
"""

import argparse
import contextlib
import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from ..controller import PoiseError, Settings, SimulationError
from ..controller.processes.workers import WorkerPool
from ..controller.search.rectification import METHODS, PRESETS, Rectification, RectifySettings
from ..controller.search.trial import Problem
from ..controller.simulation.measures import MAXIMA, NAMES
from . import regression
from .clips import ROOT, load
from .components import Component, Tracking
from .table3 import _say

WALKS = ("walk", "walk_slow", "walk_fast", "walk_backward", "walk_zombie")
#: Those of the paper's kinds: walks in several styles, runs, jumps and kicks.
CLIPS = (
    *WALKS,
    "run",
    "run_leap",
    "jump",
    "jumping_jacks",
    "jog_in_place",
    "kick",
    "side_kick",
)
#: The other captured clips.
OTHERS = (
    "stand",
    "arm",
    "wave",
    "squat",
    "bow",
    "hips_twist",
    "single",
    "knee_raises",
    "dance",
)
#: PyBullet's own of its humanoid.
PYBULLET = tuple(
    f"pybullet_{name}"
    for name in (
        "backflip",
        "dance_a",
        "dance_b",
        "jump",
        "kick",
        "punch",
        "run",
        "spin",
        "spinkick",
        "walk",
    )
)
GROUPS = {"styles": CLIPS, "all": CLIPS + OTHERS, "pybullet": PYBULLET}
QUICK = ("walk", "run")
TRAVELS = 1.0  # [m] from which on a speed is compared

_COLUMNS = (
    "clip | s | tracking alone until [s] | balance until [s] | its trial ends [s] | "
    "rectified until [s] | CPU s per s | tracking_error [mm] | _local [mm] | drift [m] | "
    "speed [%] | foot_slide [m/s] | ratio | jitter ratio"
)


#: What the paper has: proportional-derivative control of the joints, and nothing else.
TRACKING = Component("all but joint tracking", balance={"foot_forces": Tracking})
BALANCE = Component("nothing")


def main(arguments=None):
    """Rectify all clips, print the table, write a report and draw the figure; or, learned, print
    that of walks by samples."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if "--learned" in arguments:
        arguments.remove("--learned")
        return regression.main(arguments)
    options = _options(arguments)
    report, started = _resumed(options), time.monotonic()
    rows = report["clips"]
    try:
        with WorkerPool(options.workers) as pool:
            for number, clip in enumerate(options.clips, 1):
                if rows.get(clip, {"ended": "budget"}).get("ended") == "budget":
                    _say(f"[{number}/{len(options.clips)}] {clip}")
                    rows[clip] = _row(clip, options, pool)
                    _write(options.output, report)
    except PoiseError as error:
        sys.exit(f"sok: {error}")
    except KeyboardInterrupt:
        sys.exit("sok: interrupted; the same command goes on from here.")
    shown = {clip: rows[clip] for clip in options.clips}
    print("\n".join(table(shown)))
    _draw(shown, options.output.with_suffix(".png"))
    _say(f"sok: {time.monotonic() - started:.0f} s in all; written to {options.output}")


def _options(arguments):
    parser = argparse.ArgumentParser(prog="sok", description=__doc__.splitlines()[0])
    known = [*GROUPS, *GROUPS["all"], *PYBULLET]
    add = parser.add_argument
    add("--quick", action="store_true", help=f"{' and '.join(QUICK)} alone, as a draft")
    add("--learned", action="store_true", help="walks by samples instead, see --learned --help")
    add("--clips", nargs="+", choices=known, default=["styles"], metavar="CLIP")
    add("--preset", choices=PRESETS, default="normal")
    add("--method", choices=METHODS, default="cma")
    add("--seed", type=int, default=0, help="of the searches (0)")
    add("--budget", type=float, help="minutes for each clip; no limit if not given")
    add("--workers", type=int, help="processes; as many as processors if not given")
    add("--output", type=Path, help="build/sok_PRESET.json if not given")
    options = parser.parse_args(arguments)
    if options.quick:
        options.clips, options.preset = QUICK, "draft"
    options.clips = list(
        dict.fromkeys(clip for name in options.clips for clip in GROUPS.get(name, (name,)))
    )
    options.output = options.output or Path(f"build/sok_{options.preset}.json")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    return options


def _resumed(options):
    """The report of an earlier run with the same settings, else an empty one."""
    names = ("preset", "method", "seed")
    settings = {name: getattr(options, name) for name in names}
    if options.output.is_file():
        report = json.loads(options.output.read_text(encoding="utf-8"))
        if report["settings"] == settings:
            return report
        sys.exit(f"sok: '{options.output}' is of other settings: name another --output.")
    return {"settings": settings, "clips": {}}


def _write(path, report):
    path.write_text(json.dumps(report, indent=1), encoding="utf-8")


# --- One clip ------------------------------------------------------------------------------------


def _row(clip, options, pool):
    """What became of a clip, as JSON-able data; {"error": sentence} if it was refused."""
    from ..addon.shots.shot import Shot
    from .sticks import figures

    try:
        shot = Shot(_scene(clip))
        for _ in shot.read():
            pass
        shot.prepare()
        problem = Problem(shot.reading.motion, settings=Settings())
        tracked = performed(problem, shot.gains, TRACKING)
        balanced = performed(problem, shot.gains, BALANCE)
        search = _rectify(clip, problem, shot.gains, options, pool)
        shot.settle(search)
        outcome = shot.rectified
        shot.bake()
    except PoiseError as error:
        _say(f"    {error}")
        return {"error": str(error)}
    for _ in shot.measure():
        pass
    if outcome.ended != "budget":
        search.forget()
    _say(f"    {outcome.why or 'to the end'}; {outcome.cpu:.0f} s of processor time")
    return {
        "duration": problem.motion.duration,
        "tracking_until": fell(tracked),
        "balance_until": fell(balanced),
        "trial_until": _trial_until(problem, shot.gains),
        **_told(outcome),
        **{name: shot.measures[name] for name in ("foot_slide", "jitter")},
        "figures": figures(problem, outcome.recording, balanced),
    }


def _scene(clip):
    """A scene with the clip's armature."""
    if clip not in PYBULLET:
        return load(clip)
    import bpy

    demo = str(ROOT / "demo")
    if demo not in sys.path:
        sys.path.append(demo)
    import captured

    bpy.ops.wm.read_factory_settings(use_empty=True)
    captured.load(clip.removeprefix("pybullet_"))
    return bpy.context.scene


def performed(problem, gains, component):
    """The Recording of a clip that is not rectified, to the end even if it falls."""
    settings = replace(problem.settings, recovery_steps=component is not TRACKING)
    trial = replace(problem, settings=settings).simulation(gains, 0)
    trial.balance = component.balance.get(settings.balance)
    trial.measures.ending = ()
    with contextlib.suppress(SimulationError):  # it is thrown about before it falls
        trial.run()
    return trial.recording


def fell(recording):
    """When the pose was farther from the reference than SCA12 allows [s], or None. What feet do
    does not count: a rectified clip's may step a little later, and elsewhere."""
    pose = [values[NAMES.index("pose_error")] for values in recording.measures.values]
    far = np.flatnonzero(~(np.array(pose) <= MAXIMA["pose_error"]))
    if len(far):
        return float(far[0] / recording.motion.rate)
    ended = len(recording) < len(recording.reference)
    return (len(recording) - 1) / recording.motion.rate if ended else None


def _trial_until(problem, gains):
    """When a trial with balance alone ends [s], by any measure; None if it does not."""
    trial = problem.simulation(gains, 0)
    with contextlib.suppress(SimulationError):
        trial.run()
    recording = trial.recording
    ended = len(recording) < len(recording.reference)
    return (len(recording) - 1) / recording.motion.rate if ended else recording.fell_at


def _rectify(clip, problem, gains, options, pool):
    """The Rectification of a clip, at its end."""
    settings = RectifySettings(
        options.preset,
        options.method,
        options.seed,
        None if options.budget is None else 60 * options.budget,
    )
    checkpoint = options.output.with_name(f"{options.output.stem}_{clip}.checkpoint")
    search = Rectification(problem, gains, settings, pool, checkpoint)
    told = time.monotonic()
    for _ in search.run():
        if time.monotonic() - told > 10:
            told, (reached, every) = time.monotonic(), search.progress
            left = search.time_left()
            _say(f"    {reached} of {every} samples, {left:.0f} s left")
    return search


def _told(outcome):
    """Figures of a rectification, as `measures.md` has them."""
    recording = outcome.recording
    summary = recording.summary()
    com, wanted = recording.com[:, :2], _reference_com(recording)
    travel, meant = com[-1] - com[0], wanted[-1] - wanted[0]
    length = float(np.linalg.norm(meant))
    speed = None
    if length > TRAVELS:
        speed = 100 * (float(travel @ meant) / length**2 - 1)
    return {
        "ended": outcome.ended,
        "why": outcome.why,
        "rectified_until": fell(recording),
        "reached": outcome.reached,
        "cpu": outcome.cpu,
        "wall": outcome.wall,
        "evaluations": outcome.evaluations,
        "backtracks": outcome.backtracks,
        "tracking_error": summary["tracking_error"],
        "tracking_error_local": summary["tracking_error_local"],
        "drift": float(np.linalg.norm(com[-1] - wanted[-1])),
        "speed": speed,
        "correction": outcome.correction.as_dict(),
    }


def _reference_com(recording):
    """(n, 2) of the reference, above the floor [m]."""
    masses = recording.character.masses
    centres = recording.reference.smooth.centres[: len(recording), :, :2]
    return np.einsum("s,fsi->fi", masses / masses.sum(), centres)


# --- The table ----------------------------------------------------------------------------------


def table(rows):
    """Lines of Markdown from {clip: what became of it}, and how many reached their last frame."""
    lines = [f"| {_COLUMNS} |", "|" + "---|" * (_COLUMNS.count("|") + 1)]
    lines += [_line(clip, row) for clip, row in rows.items()]
    done = [clip for clip, row in rows.items() if _stood(row)]
    lines += ["", f"to the last frame: {len(done)} of {len(rows)}"]
    for clip, row in rows.items():
        if clip not in done:
            fallen = row.get("rectified_until")
            away = f"Away from the reference by more than 0.1 m at {fallen or 0:.2f} s."
            lines.append(f"- {clip}: {row.get('error') or row['why'] or away}")
    return lines


def _stood(row):
    """Whether it came to the last frame, and stayed close to the reference."""
    return row.get("ended") == "done" and row["rectified_until"] is None


def _line(clip, row):
    columns = _COLUMNS.count("|") + 1
    if "error" in row:
        return f"| {' | '.join([clip, *['-'] * (columns - 1)])} |"
    until = (row[f"{name}_until"] for name in ("tracking", "balance", "trial", "rectified"))
    (before, after), jitter = row["foot_slide"], row["jitter"]
    cells = [
        clip,
        f"{row['duration']:.1f}",
        *("end" if moment is None else f"{moment:.2f}" for moment in until),
        f"{row['cpu'] / max(row['reached'], 0.1):.1f}",
        f"{row['tracking_error']:.0f}",
        f"{row['tracking_error_local']:.0f}",
        f"{row['drift']:.2f}",
        "-" if row["speed"] is None else f"{row['speed']:+.1f}",
        "-" if before is None else f"{before:.3f} → {after:.3f}",
        f"{after / before:.2f}" if before else "-",
        f"{jitter[1] / jitter[0]:.2f}",
    ]
    return f"| {' | '.join(cells)} |"


def _draw(rows, path):
    """Write the figure, of the clips that were simulated."""
    from .sticks import picture, save

    shown = {clip: row["figures"] for clip, row in rows.items() if "figures" in row}
    if shown:
        save(picture(shown), path)
        _say(f"sok: drawn to {path}")


if __name__ == "__main__":
    main()

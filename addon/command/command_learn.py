# SPDX-License-Identifier: GPL-3.0-or-later
"""`poise learn`: what clips a character walks by on command, and how fast; a file of skills.

What came of each speed goes to standard output, progress to standard error. No clip is ever saved.
"""

import argparse
import os
import time
from pathlib import Path
from typing import Any

from ...controller.exceptions import PoiseError
from ...controller.search.trial import NOISE
from ...controller.skills.learning import Learning
from ...controller.skills.skill_set import Clip, SkillSet, digest_of
from ..blender.files import FileError, check_target, same_file, write_json, written
from ..shots.shot import Shot, ShotOptions, versions
from ..terminal.command_arguments import number, reading_options, seconds, whole
from ..terminal.command_files import (
    chosen_scene,
    demand_other,
    is_shot,
    only_writer,
    open_shot,
    read_shot,
)
from ..terminal.command_libraries import warn
from ..terminal.command_progress import DONE, LiveLine, say
from ..terminal.command_workers import executor_of, interrupts, worker_arguments

#: Look for finished tries this often [s].
_TURN = 0.01
#: Arguments of reading that a file of skills keeps: who directs reads the clip with them again.
READING = ("scene", "armature", "action", "frames", "fps", "up", "unit", "rig", "mass")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `learn`, beside those of reading."""
    add = parser.add_argument
    add(
        "clips",
        nargs="+",
        type=Path,
        metavar="CLIP",
        help="walks and runs: .blend, .bvh, .fbx, .glb or .gltf files",
    )
    add("--output", type=Path, required=True, metavar="FILE", help="the skills to write")
    add("--mass", type=number("mass"), metavar="KG", help="of the body [kg] (from its height)")
    add("--seed", type=whole("seed"), default=0, metavar="N", help="of the motor noise (0)")
    add(
        "--budget",
        type=seconds,
        default=600.0,
        metavar="TIME",
        help="for all clips: 90, 120s, 10min; what is known by then is written (10min)",
    )
    worker_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """`poise learn`: write the skills; the exit status."""
    output, report_path = _targets(options)
    end = time.monotonic() + options.budget
    with only_writer(output):
        clips = tuple(_learned(options, path, output, end) for path in options.clips)
        skills = SkillSet(clips, versions(), NOISE, options.seed)
        try:
            with written(output) as temporary:
                skills.save(temporary)
        except OSError as error:
            raise FileError(f"'{output}' cannot be written ({error.strerror}).") from None
    if report_path:
        write_json(report_path, {"file": str(output), **_report(skills)})
    for clip in clips:
        say(
            f"'{clip.name}' walks at {clip.slowest:.2f} to {clip.fastest:.2f} m/s on command, "
            "stops and turns."
        )
    say(f"'{output}' is written: direct it with poise direct {output.name} --script take.json.")
    return DONE


def _targets(options: argparse.Namespace) -> tuple[Path, Path | None]:
    """Paths of the skills and the report, which may be None; checked to be writable, and to be
    none of the clips."""
    paths = [options.output.absolute()]
    if options.report is not None:
        paths.append(options.report.absolute())
    for option, path in zip(("--output", "--report"), paths, strict=False):
        for clip in options.clips:
            if same_file(path, clip):
                options.usage_error(f"{option} names the clip '{clip.name}': name another file")
        if is_shot(path):
            options.usage_error(f"{option} is no clip: let its name end with .skills, or .json")
        demand_other(options, option, path)
        check_target(path, options.overwrite)
    if len(paths) == 2 and same_file(*paths):
        options.usage_error("--report names the skills themselves: name another file")
    return paths[0], paths[1] if len(paths) == 2 else None


def _learned(options: argparse.Namespace, path: Path, output: Path, end: float) -> Clip:
    """The Clip of a file, learned until a time [s] of the clock at the latest."""
    path = path.absolute()
    options.file, up = str(path), options.up
    if path.suffix.lower() != ".bvh" and any(one.suffix.lower() == ".bvh" for one in options.clips):
        up = None
    open_shot(path, up, options.unit)
    warn(chosen_scene(options))
    shot = read_shot(Shot, options, ShotOptions(**reading_options(options), mass=options.mass))
    shot.embody()
    motion, body = shot.reading.motion, shot.character
    line = LiveLine()
    with executor_of(options) as executor, interrupts() as caught:
        budget = max(0.0, end - time.monotonic())
        learning = Learning(body, motion, options.mass, options.seed, executor, budget)
        try:
            _follow(learning, path, line, caught)
        finally:
            learning.stop()
            line.clear()
    if caught:
        raise KeyboardInterrupt
    if not learning.paces:
        raise PoiseError(_why(learning, path))
    for pace in learning.paces:
        print(f"{path.name}  {pace.told:5.2f} m/s commanded  {pace.reached:5.2f} m/s walked")
    if learning.ended == "budget":
        say(f"The budget was over before all speeds of '{path.name}' were tried.")
    cycle = learning.cycle
    return Clip(
        name=path.stem,
        file=_from(output.parent, path),
        digest=digest_of(path),
        reading={name: getattr(options, name) for name in READING},
        armature=shot.reading.armature,
        action=shot.reading.action,
        cycle=(motion.frame(cycle.first), motion.frame(cycle.last)),
        speed=learning.speed,
        height=body.height,
        mass=body.mass,
        paces=learning.paces,
    )


def _follow(learning: Learning, path: Path, line: LiveLine, caught: list[bool]) -> None:
    """Go on to the end, or to the first of those interrupts that are caught."""
    over = False
    while not over and not caught:
        over = learning.poll()
        done, tries = learning.progress
        known = f", {len(learning.paces)} speeds known" if learning.paces else ""
        line.show(f"learning '{path.name}': {done} of {tries} tries{known} ")
        time.sleep(0 if over else _TURN)


def _why(learning: Learning, path: Path) -> str:
    """Why nothing was learned."""
    if learning.ended == "budget":
        return f"The budget was over before '{path.name}' had been walked: give it more time."
    return (
        f"'{path.name}' cannot be learned: a body that walks, turns and stops by it falls at its "
        f"own speed of {learning.speed:.2f} m/s already. Choose another clip, or clean it first."
    )


def _from(folder: Path, path: Path) -> str:
    """A path as seen from a folder if it is below that, so that both can be moved; else whole."""
    try:
        return path.relative_to(folder).as_posix()
    except ValueError:
        return os.fspath(path)


def _report(skills: SkillSet) -> dict[str, Any]:
    """What was learned, as a dict for JSON."""
    return {
        "clips": [
            {
                "name": clip.name,
                "file": clip.file,
                "armature": clip.armature,
                "action": clip.action,
                "cycle": list(clip.cycle),
                "speed": clip.speed,
                "slowest": clip.slowest,
                "fastest": clip.fastest,
                "paces": [{"told": one.told, "reached": one.reached} for one in clip.paces],
            }
            for clip in skills.clips
        ],
        "seed": skills.seed,
        "noise": skills.noise,
        "versions": skills.versions,
        "units": {
            "cycle": "frame",
            "noise": "N m",
            **dict.fromkeys(("speed", "slowest", "fastest", "told", "reached"), "m/s"),
        },
    }

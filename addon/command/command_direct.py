# SPDX-License-Identifier: GPL-3.0-or-later
"""`poise direct`: what a character has learned, done by scripts; each take as a .blend."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...controller.exceptions import PoiseError
from ...controller.reference.commands import Command, Script, blows_as_told
from ...controller.skills.skill_set import Skill, SkillSet
from ..blender.files import FileError, write_json, written
from ..scene.walks import WalkOptions
from ..shots.shot import Shot, ShotOptions
from ..terminal import command_walk
from ..terminal.command_arguments import DIRECTED, add_options, check_falls, reading_options
from ..terminal.command_files import (
    chosen_scene,
    compresses,
    only_writer,
    open_shot,
    output_target,
    read_shot,
    report_target,
    save,
    take_falls,
)
from ..terminal.command_import import import_note
from ..terminal.command_libraries import warn
from ..terminal.command_progress import DONE, FAILED, MISSED, follow, say, tell_verdict
from .command_rectify import simulate


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `direct`."""
    add = parser.add_argument
    add("skills", type=Path, metavar="SKILLS", help="what `learn` wrote")
    add(
        "--script",
        type=Path,
        required=True,
        metavar="FILE|FOLDER",
        help="the commands, a JSON file; or a folder of such, for a crowd of takes",
    )
    add(
        "--output",
        type=Path,
        required=True,
        metavar="FILE|FOLDER",
        help="the .blend to write; of a crowd, the folder for takes called as their scripts",
    )
    add(
        "--report",
        type=Path,
        metavar="FILE|FOLDER",
        help="write a report as JSON; of a crowd, the folder for them",
    )
    add("--overwrite", action="store_true", help="replace files that exist")
    add_options(parser, DIRECTED)


def run(options: argparse.Namespace) -> int:
    """`poise direct`: simulate, bake, write takes and reports; the exit status."""
    check_falls(options, options)
    skills = SkillSet.load(options.skills)
    if options.script.is_dir():
        return _direct_crowd(options, skills)
    script = Script.load(options.script)
    return _prepared(options, skills, script, skills.choose(script))()


def _direct_crowd(options: argparse.Namespace, skills: SkillSet) -> int:
    """Do what all scripts of a folder command, one take after the other; the worst exit status.
    All that is told wrongly is said before any is begun."""
    scripts = sorted(options.script.glob("*.json"))
    if not scripts:
        raise FileError(f"There is no script in '{options.script}': put .json files there.")
    for name in ("output", "report"):
        folder = getattr(options, name)
        if folder is not None and folder.exists() and not folder.is_dir():
            options.usage_error(f"--{name} is to be a folder, as --script is one")
    wanted = [Script.load(path) for path in scripts]
    chosen = [skills.choose(script) for script in wanted]
    for folder in filter(None, (options.output, options.report)):
        folder.mkdir(exist_ok=True)
    own = [_of_crowd(options, path) for path in scripts]
    takes = [
        _prepared(options, skills, script, skill)
        for options, script, skill in zip(own, wanted, chosen, strict=True)
    ]
    found = []
    for path, direct in zip(scripts, takes, strict=True):
        try:
            found.append(direct())
        except PoiseError as error:
            say(f"'{path}' was not directed: {error}")
            found.append(FAILED)
    done, fell = found.count(DONE), found.count(MISSED)
    failed = len(found) - done - fell
    say(f"{len(found)} takes: {done} to their end, {fell} until they fell, {failed} failed.")
    return FAILED if FAILED in found else max(found)


def _of_crowd(options: argparse.Namespace, script: Path) -> argparse.Namespace:
    """The options for one script of a folder."""
    own = argparse.Namespace(**vars(options))
    own.script, own.output = script, options.output / f"{script.stem}.blend"
    if options.report is not None:
        own.report = options.report / script.name
    return own


def _prepared(
    options: argparse.Namespace, skills: SkillSet, script: Script, skill: Skill
) -> Callable[[], int]:
    """What does as a script commands by a skill, checked as far as can be before it begins."""
    source = skill.path(options.skills)
    options.in_place = False
    for name, value in skill.reading.items():
        setattr(options, name, tuple(value) if isinstance(value, list) else value)
    options.file = str(source)
    output = output_target(options, source, "_take.blend")
    report_path = report_target(options, source, output)

    def direct() -> int:
        with only_writer(output):
            return _direct_to(options, skills, skill, script, source, output, report_path)

    return direct


def _direct_to(
    options: argparse.Namespace,
    skills: SkillSet,
    skill: Skill,
    script: Script,
    source: Path,
    output: Path,
    report_path: Path | None,
) -> int:
    """The same, to files that nobody else writes."""
    open_shot(source, options.up, options.unit)
    take_falls(options)
    warnings = warn(chosen_scene(options))
    walk = WalkOptions(
        script.seconds,
        skill.cycle,
        commands=script.commands,
        trim=skill.trim,
        other=skill.other,
        played=script.played,
        acts=tuple(act for act in skills.acts_of(skill) if act.name in script.acts),
    )
    chosen = {name: getattr(options, name) for name in DIRECTED}
    chosen["outside_help"] = max(chosen["outside_help"], skill.outside_help)
    reading = reading_options(options)
    shot = read_shot(Shot, options, ShotOptions(**reading, mass=options.mass, walk=walk, **chosen))
    shot.prepare()
    skill.check_body(shot.character.height, shot.character.mass)
    simulate(shot)
    follow("baking", shot.baking())
    follow("measuring", shot.measure())
    warnings += shot.baked.warnings
    told = shot.report()
    report = {"file": str(output), **_report(shot, skill, script, told), "warnings": warnings}
    report["import"] = import_note(shot.scene)
    scene = chosen_scene(options)
    scene.frame_start, scene.frame_end = map(round, report["frames"])
    with written(output) as temporary:
        save(temporary, compresses(options, source))
        if report_path:
            write_json(report_path, report)
    _tell(report, told["commands"], shot)
    return DONE if report["filled"] else MISSED


def _report(shot: Shot, skill: Skill, script: Script, report: dict[str, Any]) -> dict[str, Any]:
    """The report of a bake, and what a script's form has."""
    followed = zip(script.commands, report["commands"], strict=True)
    return report | {
        "skill": skill.name,
        "slowest": skill.slowest,
        "fastest": skill.fastest,
        "allowed_help": skill.outside_help,
        "seconds": (len(shot.recording) - 1) / shot.reading.motion.rate,
        "action": report["baked_action"],
        "commands": [_command(wanted, came) for wanted, came in followed],
        "units": report["units"]
        | {"seconds": "s", "slowest": "m/s", "fastest": "m/s", "newtons": "N", "direction": "°"},
    }


def _command(command: Command, came: dict[str, Any]) -> dict[str, Any]:
    """A command for the report: when, what was wanted from then on, what was reached, and after
    how many steps."""
    stands = came["speed"] == 0
    wanted: dict[str, Any] = {
        "skill": came["act"] or ("stand" if stands else "walk"),
        "speed": came["speed"],
        "heading": came["heading"],
        "sideways": came["sideways"],
    }
    wanted |= blows_as_told(command)
    reached = {"speed": came["reached_speed"], "heading": came["reached_heading"]}
    return {
        "at": came["at"],
        "frame": came["frame"],
        "wanted": wanted,
        "reached": None if came["reached_speed"] is None else reached,
        "steps": came["steps"],
        "began": came["began"],
        "ended": came["ended"],
        "allowed_help": came["allowed_help"],
    }


def _tell(report: dict[str, Any], followed: list[dict[str, Any]], shot: Shot) -> None:
    """What became of it, in sentences. followed: commands as bakes report them."""
    first, last = report["frames"]
    say(
        f"'{report['skill']}' is directed for {report['seconds']:.1f} s, frames {first:g} to "
        f"{last:g}, and baked to '{report['action']}' in '{report['file']}'."
    )
    for sentence in shot.baked.warnings:
        say(sentence)
    say("It stood to the end." if report["success"] else report["why"])
    for sentence in command_walk.words_of(followed, report["fell_at"]):
        say(sentence)
    if told := shot.recording.outside:
        say(f"{told}.")
    for sentence in shot.ends:
        say(sentence)
    if report["success"]:
        tell_verdict(report["verdict"])

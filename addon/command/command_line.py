# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line: `poise bake shot.blend …`, and the same with `simulate`, `inspect`, `optimize`
and `robustness`; `poise batch shots/ …` bakes many.

`blender --background shot.blend --command poise …` and `python -m poise …` both end up in `main`.
Messages and progress go to standard error, because PyBullet writes to standard output.
"""

import argparse
import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from ...controller.exceptions import PoiseError
from ...controller.search.arrival import arrival_words
from ...controller.simulation.holds import grasp_words
from ...controller.simulation.recording import hit_words
from ..baking import ik_legs
from ..baking.bake import BakeOptions
from ..blender.files import check_target, write_json, write_text, written
from ..plots import batch_strip
from ..shots.cast import Cast
from ..shots.clean_up import CleanShot
from ..shots.shot import Shot, ShotOptions, versions
from ..terminal import (
    command_contacts,
    command_pushes,
    command_strength,
    command_walk,
    command_waypoints,
    command_weights,
)
from ..terminal.command_arguments import (
    SIMULATED,
    add_options,
    add_root_motion,
    file_argument,
    gains_named,
    number,
    reading_arguments,
    shot_arguments,
    shot_options,
    whole,
)
from ..terminal.command_files import (
    chosen_scene,
    compresses,
    demand_other,
    only_writer,
    open_shot,
    output_target,
    read_shot,
    report_target,
    save,
    take_falls,
    take_frames,
)
from ..terminal.command_import import import_note
from ..terminal.command_libraries import warn
from ..terminal.command_progress import (
    DONE,
    FAILED,
    MISSED,
    follow,
    outside_told,
    say,
    tell_verdict,
)
from . import (
    command_batch,
    command_clean,
    command_direct,
    command_learn,
    command_optimize,
    command_rectify,
    command_robustness,
    command_together,
    command_tune,
)
from .batch_shot import add_leash, end_with_parent
from .command_check import add_check_arguments, check_lines, plot_target, write_plot

#: So many bones that hang on no bone of the body are told, one by one.
_MOST_LOOSE = 12

#: Lower or taller [m] is no person, a child of three included.
_SMALLEST, _TALLEST = 0.9, 2.3


def main(arguments: Sequence[str], program: str = "poise") -> int:
    """Run the command with its arguments (a list of str); returns the exit status."""
    for stream in (sys.stdout, sys.stderr):
        # Terminals lack letters of some names; in the locale C, Python escapes none of them.
        if isinstance(stream, TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="backslashreplace")
    try:
        options = _parser(program).parse_args(_with_negatives(arguments))
        return int(options.run(options))
    except SystemExit as end:  # argparse has said why, or given its help
        return int(end.code or 0)
    except PoiseError as error:
        say(f"poise: {error}")
    except BrokenPipeError:  # whoever was to read it has gone, such as `head`
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    except OSError as error:  # of the names and places of files
        where = f"'{error.filename}'" if error.filename else "What is told cannot be written"
        say(f"poise: {where}: {error.strerror or error}.")
    except KeyboardInterrupt:
        say("poise: stopped; nothing was written.")
    return FAILED


def _with_negatives(arguments: Sequence[str]) -> list[str]:
    """Arguments in which what begins with a minus and a digit, as in `--frames -5:20`, belongs to
    the option before it, and is none itself."""
    joined: list[str] = []
    for argument in arguments:
        value = re.match(r"-[.\d]", argument) and joined and re.fullmatch(r"--[a-z-]+", joined[-1])
        if value:
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined


def stop_as_by_ctrl_c() -> None:
    """Let whatever asks the process to end, as farms do, leave as little behind as Ctrl-C, which
    Blender keeps to itself and `__main__` does not yet take."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) in (signal.SIG_DFL, None):
            # Raising SIGINT would do nothing in what a script starts in the background.
            signal.signal(number, signal.default_int_handler)


def run_in_blender(arguments: Sequence[str]) -> int:
    """What `blender --command poise …` does with its arguments; the exit status."""
    stop_as_by_ctrl_c()
    return main(arguments, program="blender --background shot.blend --command poise")


def _bake(options: argparse.Namespace) -> int:
    """`poise bake`: simulate, write the .blend and the report; the exit status."""
    command_rectify.check(options)
    command_together.check(options)
    if options.leash:
        end_with_parent()
    source = open_shot(options.file, options.up, options.unit)
    take_frames(options)
    take_falls(options)
    targets = _bake_targets(options, source)
    with only_writer(targets[0]):
        if options.together:
            return _bake_together(options, source, targets[0], targets[2])
        return _bake_to(options, source, *targets)


def _bake_to(
    options: argparse.Namespace,
    source: Path,
    output: Path,
    strip: Path | None,
    report_path: Path | None,
    checkpoint: Path,
    plan_path: Path | None,
) -> int:
    """The same, to files that nobody else writes."""
    warnings = warn(chosen_scene(options))
    cleaned = command_clean.clean_first(options) if options.clean_feet else None
    shot = _read_shot(options, cleaned)
    warnings += _told_of(shot)
    shot.prepare(mend=options.method == "auto")
    warnings += _told_of_body(shot)
    tuning, tuned = output.with_name(f"{output.name}.tuning"), None
    if options.optimize:
        tuned = command_tune.tune(options, shot, tuning)
        if tuned is None:
            return FAILED
    command_rectify.perform(options, shot, checkpoint)
    follow("baking", shot.baking_target() if options.target_only else shot.baking())
    follow("measuring", shot.measure())
    warnings += shot.baked.warnings

    report = {"file": str(output), **shot.report(), "optimization": tuned, "warnings": warnings}
    report["together"] = []
    report["import"] = import_note(shot.scene)
    report["clean"] = cleaned.report() if cleaned else None
    with written(output) as temporary:
        save(temporary, compresses(options, source))
        if strip:
            write_text(strip, batch_strip.strip(shot.recording))
        if plan_path:
            command_contacts.plan_of(shot).save(plan_path)
        if report_path:
            write_json(report_path, report)
    command_rectify.conclude(shot, checkpoint)
    tuning.unlink(missing_ok=True)
    _tell_result(report, shot)
    return DONE if report["filled"] else MISSED


def _bake_together(
    options: argparse.Namespace, source: Path, output: Path, report_path: Path | None
) -> int:
    """The same of several characters in one world, each with a bake of its own."""
    cast, told = _read_together(options)
    command_together.bake(cast)
    report = _report_together(cast, told, output)
    with written(output) as temporary:
        save(temporary, compresses(options, source))
        if report_path:
            write_json(report_path, report)
    for shot, one in command_together.each(cast, report):
        _tell_result(one, shot)
    return _status_of(cast)


def _read_together(options: argparse.Namespace) -> tuple[Cast, dict[Shot, list[str]]]:
    """The characters of `--together`, read and simulated; and what was to be noted of each."""
    warnings = warn(chosen_scene(options))
    cast = command_together.read(options, _shot_options(options, None))
    told = {shot: warnings + _told_of(shot) for shot in cast.shots}
    for shot in cast.shots:
        shot.prepare()
    for note in cast.notes:
        say(note)
        told[cast.shots[0]].append(note)
    command_together.simulate(cast)
    return cast, told


def _report_together(cast: Cast, told: dict[Shot, list[str]], file: Path) -> dict[str, Any]:
    """The report of the first of them, with those of the others under "together"."""
    nothing: dict[str, Any] = {"optimization": None, "clean": None}
    first, *others = (
        {
            "file": str(file),
            **shot.report(),
            **nothing,
            "warnings": [*told[shot], *(shot.baked.warnings if shot.baked else ())],
            "import": import_note(shot.scene),
        }
        for shot in cast.shots
    )
    return {**first, "together": others}


def _status_of(cast: Cast) -> int:
    """Say how many stood; the exit status of several: whether all were simulated to the end."""
    stood = sum(shot.recording.success for shot in cast.shots)
    say(f"{stood} of {len(cast.shots)} stood to the end.")
    return DONE if all(shot.recording.filled for shot in cast.shots) else MISSED


def _bake_targets(
    options: argparse.Namespace, source: Path
) -> tuple[Path, Path | None, Path | None, Path, Path | None]:
    """Paths of the output, the strip, the report, the checkpoint and the contact plan, of which
    strip, report and plan may be None; checked to be writable."""
    output = output_target(options, source, "_poise.blend")
    strip = options.strip and options.strip.absolute()
    if strip:
        demand_other(options, "--strip", strip, source, output)
        check_target(strip, options.overwrite)
    checkpoint = _checkpoint(options, source, output, strip)
    checkpoint = checkpoint or output.with_name(f"{output.name}.checkpoint")
    plan_path = command_contacts.writing_target(options, source, output, strip, checkpoint)
    report_path = report_target(options, source, output, strip, checkpoint, plan_path)
    return output, strip, report_path, checkpoint, plan_path


def _checkpoint(options: argparse.Namespace, *others: Path | None) -> Path | None:
    """Path of `--checkpoint`, None without; checked to be writable, and none of the others."""
    if options.checkpoint is not None:
        demand_other(options, "--checkpoint", options.checkpoint, *others)
        check_target(options.checkpoint, overwrite=True)
    return options.checkpoint


def _simulate(options: argparse.Namespace) -> int:
    """`poise simulate`: simulate and write the report, nothing else; the exit status."""
    command_rectify.check(options)
    command_together.check(options)
    source = open_shot(options.file, options.up, options.unit)
    take_frames(options)
    take_falls(options)
    checkpoint = _checkpoint(options, source)
    plan_path = command_contacts.writing_target(options, source)
    report_path = report_target(options, source, plan_path)
    if options.together:
        cast, told = _read_together(options)
        report = _report_together(cast, told, source)
        if report_path:
            write_json(report_path, report)
        for _, one in command_together.each(cast, report):
            _tell_figures(one)
        return _status_of(cast)
    warnings = warn(chosen_scene(options))
    shot = _read_shot(options)
    warnings += _told_of(shot)
    shot.prepare(mend=options.method == "auto")
    warnings += _told_of_body(shot)
    command_rectify.perform(options, shot, checkpoint)
    nothing: dict[str, Any] = {"optimization": None, "clean": None, "together": []}
    report = {"file": str(source), **shot.report(), **nothing, "warnings": warnings}
    report["import"] = import_note(shot.scene)
    if plan_path:
        command_contacts.plan_of(shot).save(plan_path)
    if report_path:
        write_json(report_path, report)
    command_rectify.conclude(shot, checkpoint)
    _tell_figures(report)
    return DONE if report["filled"] else MISSED


def _inspect(options: argparse.Namespace) -> int:
    """`poise inspect`: tell what would be simulated; the exit status."""
    source = open_shot(options.file, options.up, options.unit)
    take_frames(options)
    take_falls(options)
    plot = plot_target(options, source)
    report_path = report_target(options, source, plot)
    warnings = warn(chosen_scene(options))
    shot = _read_shot(options)
    warnings += _told_of(shot)
    shot.embody()
    inspection = {"file": str(source), **shot.inspection(), "warnings": warnings}
    if plot:
        write_plot(shot.check(), plot)
    if report_path:
        write_json(report_path, inspection)
    lines = *_lines_of_inspection(inspection), *check_lines(inspection["check"])
    print("\n".join(lines), flush=True)
    return DONE


#: What verbs need, before their options; else a file, or what is open.
_USAGE = {
    "learn": "CLIP … --output FILE",
    "direct": "SKILLS --script FILE|FOLDER --output FILE|FOLDER",
}

# --- Arguments ----------------------------------------------------------------------------------


def _parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program,
        description="Give an armature's action physics, and bake the result to a new action.",
        epilog="exit status: 0 it stood, tuned and confirmed, or the limit found; 1 could not run, "
        "nothing written; 2 wrong usage; 3 baked, but it fell, and the bake ends there; tuned, but "
        "not confirmed, and the best gains are written; or ended before the limit was found",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"poise {versions()['poise']}")
    verbs = parser.add_subparsers(
        dest="verb",
        required=True,
        metavar="bake | batch | simulate | clean | inspect | optimize | robustness | learn | "
        "direct",
    )
    common = [file_argument(), shot_arguments()]
    for name, parents, add_arguments, run, purpose in (
        (
            "bake",
            common,
            _add_bake_arguments,
            _bake,
            "simulate, and write the .blend with the new action",
        ),
        (
            "simulate",
            common,
            _add_simulate_arguments,
            _simulate,
            "simulate, and tell how it went; only a report is written",
        ),
        (
            "inspect",
            common,
            _add_inspect_arguments,
            _inspect,
            "tell what would be simulated: rig map, body, stance, ground, and what the clip asks",
        ),
        (
            "optimize",
            common,
            command_optimize.add_arguments,
            command_optimize.run,
            "search gains with which the body performs the action, and write them",
        ),
        (
            "robustness",
            common,
            command_robustness.add_arguments,
            command_robustness.run,
            "measure how hard the body can be hit, as a table, a plot and a report",
        ),
        (
            "clean",
            [file_argument(), reading_arguments()],
            command_clean.add_arguments,
            command_clean.run,
            "clean feet and weight without a simulation, and write the .blend with the new action",
        ),
        (
            "learn",
            [reading_arguments("all that are animated")],
            command_learn.add_arguments,
            command_learn.run,
            "learn by which clips a character walks on command, and how fast; writes its skills",
        ),
        (
            "direct",
            [],
            command_direct.add_arguments,
            command_direct.run,
            "let a character do what a script commands, by what it has learned; writes the take",
        ),
    ):
        verb = verbs.add_parser(
            name,
            parents=parents,
            allow_abbrev=False,
            help=purpose,
            usage=f"{program} {name} {_USAGE.get(name, '[FILE]')} [option …]",
        )
        add_arguments(verb)
        verb.set_defaults(run=run, usage_error=verb.error)
    command_batch.add_parser(verbs, parser, _add_keys_arguments)
    return parser


def _add_simulation_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of one simulation."""
    parser.add_argument(
        "--gains", metavar="FILE|NAME", help="gains of the controller, or a preset (defaults)"
    )
    add_options(parser, SIMULATED)


def _add_others_argument(parser: argparse.ArgumentParser) -> None:
    """The argument on armatures that are colliders."""
    parser.add_argument(
        "--with",
        dest="others",
        action="append",
        metavar="NAME",
        help="another armature that the body meets as a collider, beside those that are marked in "
        "the file; may be given for several",
    )


def _add_inspect_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `inspect`."""
    _add_simulation_arguments(parser)
    _add_others_argument(parser)
    add_check_arguments(parser)


def _add_performance_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `simulate` and `bake`: of the simulation, and what happens in it."""
    _add_simulation_arguments(parser)
    _add_others_argument(parser)
    command_strength.add_arguments(parser)
    command_weights.add_arguments(parser)
    command_pushes.add_arguments(parser)
    command_waypoints.add_arguments(parser)
    command_waypoints.add_hold_arguments(parser)
    command_rectify.add_arguments(parser)
    command_walk.add_arguments(parser)
    command_contacts.add_arguments(parser)


def _add_simulate_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `simulate`."""
    _add_performance_arguments(parser)
    command_together.add_argument(parser)
    command_contacts.add_writing_arguments(parser)


def _add_keys_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `bake`, and of `batch`: of the simulation, and which keys are written."""
    _add_performance_arguments(parser)
    command_tune.add_arguments(parser)
    default = BakeOptions()
    add = parser.add_argument_group("keys").add_argument
    thinning = parser.add_mutually_exclusive_group().add_argument
    thinning("--key-every", type=whole("key_every"), metavar="N", help="key every n-th frame (1)")
    thinning(
        "--tolerance",
        type=number("tolerance"),
        metavar="MM",
        help="as few keys as stay within it [mm]",
    )
    thinning("--source-keys", action="store_true", help="key where the source has keys")
    add(
        "--interpolation",
        type=str.lower,
        choices=("linear", "bezier", "constant"),
        default=default.interpolation.lower(),
        help="between keys (%(default)s)",
    )
    add_root_motion(add)
    add(
        "--legs",
        type=str.lower,
        choices=("ik", "fk"),
        default=default.legs.lower(),
        help="what is keyed of legs on rigs that have both, as those with IK (%(default)s)",
    )
    for name, end in (("--blend-in", "start"), ("--blend-out", "end")):
        add(
            name,
            type=whole("blend"),
            default=0,
            metavar="N",
            help=f"frames over which the {end} blends with the source (0)",
        )
    add(
        "--target-only",
        action="store_true",
        help="bake the rectified action without any physics: its kinematic correction only",
    )
    add(
        "--clean-feet",
        action="store_true",
        help="clean feet and weight first, as `clean` does, and simulate the cleaned action",
    )
    add(
        "--nla",
        action="store_true",
        help="bake to an NLA strip, with the source on a muted track below (to an action)",
    )
    add("--into", metavar="ACTION", help="add a slot to this action (Blender 4.4 and later)")


def _add_bake_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `bake`: what `batch` has too, and where it is written."""
    _add_keys_arguments(parser)
    command_together.add_argument(parser)
    command_contacts.add_writing_arguments(parser)
    where = parser.add_mutually_exclusive_group().add_argument
    where("--output", type=Path, metavar="FILE", help="the .blend to write (shot_poise.blend)")
    where("--in-place", action="store_true", help="write back to the file itself")
    parser.add_argument(
        "--strip",
        type=Path,
        metavar="FILE",
        help="draw the animation and the result as stick figures, as an SVG",
    )
    add_leash(parser)


def _read_shot(options: argparse.Namespace, cleaned: CleanShot | None = None) -> Shot:
    """The Shot that the arguments describe, read with progress. cleaned: the CleanShot whose
    result it reads, if there is one."""
    return read_shot(Shot, options, _shot_options(options, cleaned))


def _told_of(shot: Shot) -> list[str]:
    """Say what is to be noted of what was read; the sentences."""
    for sentence in shot.notes:
        say(sentence)
    return shot.notes


def _told_of_body(shot: Shot) -> list[str]:
    """Say how large a body is that is no person's; the sentences."""
    height, unit = shot.character.height, shot.reading.metres_per_unit
    if _SMALLEST < height < _TALLEST:
        return []
    told = (
        f"The body is {height:.2f} m tall and has {shot.character.mass:.1f} kg, as one unit of the "
        f"scene is {unit:g} m: if that is wrong, --unit says otherwise."
    )
    say(told)
    return [told]


def _shot_options(options: argparse.Namespace, cleaned: CleanShot | None) -> ShotOptions:
    """The ShotOptions of the arguments of `bake`, `simulate` or `inspect`."""
    keys, more = BakeOptions(), {name: getattr(options, name) for name in SIMULATED}
    more["others"] = tuple(options.others or ())
    if options.verb != "inspect":
        more |= {
            "weights": command_weights.weight_options(options),
            "strength": command_strength.strength_options(options),
            "mixed": dict(options.falls_like or ()),
            "get_up_by": tuple(options.get_up_by or ()),
            "pushes": command_pushes.push_options(options),
            "waypoints": command_waypoints.waypoint_options(options),
            "holds": command_waypoints.hold_options(options),
            "walk": command_walk.walk_options(options),
            "contacts": command_contacts.given(options),
        }
    if options.verb == "bake":
        keys = BakeOptions(
            key_every=options.key_every or 1,
            tolerance=options.tolerance or 0.0,
            source_keys=options.source_keys,
            interpolation=options.interpolation.upper(),
            root_motion=options.root_motion.upper(),
            legs=options.legs.upper(),
            blend_in=options.blend_in,
            blend_out=options.blend_out,
            action=options.into,
            nla=options.nla,
        )
    gains = gains_named(options.gains)
    chosen = shot_options(options, gains, keys=keys, **more)
    if cleaned is not None:
        plan = None if chosen.walk else cleaned.plan
        chosen = replace(chosen, action=cleaned.baked.action, contacts=plan)
    return chosen


# --- What is told -------------------------------------------------------------------------------


def _tell_result(report: dict[str, Any], shot: Shot) -> None:
    first, last = report["frames"]
    say(
        f"'{report['source_action'] or report['armature']}', frames {first:g} to {last:g}, "
        f"is baked to '{report['baked_action']}' in '{report['file']}'."
    )
    for sentence in ik_legs.sentences(report["leg_controls"], report["released_legs"]):
        say(sentence)
    for sentence in shot.baked.warnings:
        say(sentence)
    for track in report["tracks_over"]:
        say(f"The NLA track '{track}' over the bake changes it.")
    _tell_figures(report)
    for sentence in shot.ends:
        say(sentence)


def _tell_figures(report: dict[str, Any]) -> None:
    """Whether it stood, and the measures."""
    if report["gains_completed"]:
        say(report["gains_completed"])
    say("It stood to the end." if report["success"] else report["why"])
    for one in report["waypoints"]:
        say(f"{arrival_words(**one)}.")
    for sentence in command_walk.words_of(report["commands"], report["fell_at"]):
        say(sentence)
    for one in report["holds"]:
        say(f"{grasp_words(**one)}.")
    if report["success"]:
        tell_verdict(report["verdict"])
    if outside := outside_told(report):
        say(f"{outside}.")
    hardest = max(report["hits"], key=lambda hit: hit["force"], default=None)
    if hardest:
        say(f"{hit_words(**hardest)}.")
    for name, unit in report["units"].items():
        if name == "residual" and report.get("help"):
            continue  # the same force
        value, unit = report.get(name), "" if unit == "1" else unit
        if isinstance(value, dict) and "before" in value:
            say(f"  {name:22} {_figure(value['before'])} before, {_figure(value['after'])} {unit}")
        elif name.endswith(("_error", "reward", "residual", "factor")) and value is not None:
            say(f"  {name:22} {_figure(value)} {unit}")


def _figure(value: Any) -> str:
    return "none" if value is None else f"{value:.3g}"


def _lines_of_inspection(inspection: dict[str, Any]) -> Iterator[str]:
    """What `inspect` prints."""
    rig, body = inspection["rig"], inspection["body"]
    first, last = inspection["range"]
    action = inspection["source_action"]
    moved = "NLA strips or constraints alone" if action is None else f"action {action}"
    yield f"armature  {inspection['armature']}, {moved}"
    yield (
        f"frames    {first:g} to {last:g}, {inspection['samples']} samples at "
        f"{inspection['fps']:g} Hz"
    )
    yield f"body      {body['height']:.2f} m, {body['mass']:.1f} kg"
    loose = list(inspection["loose_bones"].items())
    for bone, carrier in loose[:_MOST_LOOSE]:
        goes = f"goes with {carrier}" if carrier else "hangs on nothing, and stays as animated"
        yield f"loose     {bone}: {goes}"
    if len(loose) > _MOST_LOOSE:
        yield f"loose     {len(loose) - _MOST_LOOSE} more, all in the report"
    guessed = " (guessed)" if body["unit_guessed"] else ""
    yield (
        f"ground    {body['ground']:.3f} m; 1 scene unit is {body['metres_per_unit']:g} m{guessed}"
    )
    foot = inspection["foot"]
    where = f"by {', '.join(foot['ball_bones'])}" if foot["ball_bones"] else "the rig has no toes"
    yield (
        f"foot      {100 * foot['heel']:.0f} cm to the heel, {100 * foot['ball']:.0f} to the ball "
        f"({where}), {100 * foot['toe']:.0f} to the tip; ankle {100 * foot['depth']:.0f} cm high"
    )
    if inspection["leg_controls"]:
        yield f"legs      IK moves them by {', '.join(inspection['leg_controls'])}"
    yield "stance    " + ", ".join(f"{k} {v:.0%}" for k, v in inspection["stance"].items())
    how = "detected from the skeleton" if rig["detected"] else "known by its names"
    yield f"rig map   {rig['name']}, {how}"
    for slot, bones in rig["bones"].items():
        yield f"  {slot:12} {', '.join(bones)}"
    if rig["missing"]:
        yield f"  not found (optional): {', '.join(rig['missing'])}"

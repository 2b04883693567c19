# SPDX-License-Identifier: GPL-3.0-or-later
"""`poise clean`: feet and weight of an animation cleaned up, without any simulation."""

import argparse
from pathlib import Path

from ...controller.clean_up.clean_up import CleanUpOptions
from ...controller.options import options_of
from ..baking import ik_legs
from ..baking.bake import BakeOptions
from ..blender.files import write_json, written
from ..shots.clean_up import CleanShot, CleanShotOptions
from ..terminal import command_contacts
from ..terminal.command_arguments import add_options, add_root_motion, reading_options
from ..terminal.command_files import (
    chosen_scene,
    compresses,
    only_writer,
    open_shot,
    output_target,
    read_shot,
    report_target,
    save,
    take_frames,
)
from ..terminal.command_import import import_note
from ..terminal.command_libraries import warn
from ..terminal.command_progress import DONE, follow, say, tell_verdict
from .batch_shot import add_leash, end_with_parent


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `clean`."""
    command_contacts.add_arguments(parser)
    command_contacts.add_writing_arguments(parser)
    add_options(parser, options_of(CleanUpOptions))
    add_root_motion(parser.add_argument)
    where = parser.add_mutually_exclusive_group().add_argument
    where("--output", type=Path, metavar="FILE", help="the .blend to write (shot_clean.blend)")
    where("--in-place", action="store_true", help="write back to the file itself")
    add_leash(parser)


def run(options: argparse.Namespace) -> int:
    """`poise clean`: write the .blend with the cleaned action, the plan and the report; the exit
    status."""
    if options.leash:
        end_with_parent()
    source = open_shot(options.file, options.up, options.unit)
    take_frames(options)
    targets = _targets(options, source)
    with only_writer(targets[0]):
        return _clean_to(options, source, *targets)


def _clean_to(
    options: argparse.Namespace,
    source: Path,
    output: Path,
    plan_path: Path | None,
    report_path: Path | None,
) -> int:
    """The same, to files that nobody else writes."""
    warnings = warn(chosen_scene(options))
    keys = BakeOptions(root_motion=options.root_motion.upper())
    shot = _read(options, CleanUpOptions(options.smoothness, options.balance), keys)
    shot.solve()
    follow("writing", shot.baking())
    warnings += [*shot.baked.warnings, *filter(None, [shot.doubt])]
    report = {"file": str(output), **shot.report(), "warnings": warnings}
    report["import"] = import_note(shot.scene)
    with written(output) as temporary:
        save(temporary, compresses(options, source))
        if plan_path:
            shot.plan.save(plan_path)
        if report_path:
            write_json(report_path, report)
    slip = report["contact_slip"]
    say(
        f"'{report['source_action'] or report['armature']}' is cleaned: "
        f"'{report['baked_action']}' in '{report['file']}'."
    )
    legs = ik_legs.sentences(report["leg_controls"], report["released_legs"])
    for sentence in (*legs, *shot.baked.warnings):
        say(f"  {sentence}")
    say(f"  points that stand slide at {slip['before']:.3g} m/s before, {slip['after']:.3g} after")
    for sentence in (*shot.notes, *filter(None, [shot.doubt])):
        say(f"  {sentence}")
    tell_verdict(report["verdict"])
    return DONE


def clean_first(options: argparse.Namespace) -> CleanShot:
    """Clean what the arguments of `bake` describe, before it is simulated -> CleanShot."""
    shot = _read(options, CleanUpOptions())
    shot.solve()
    follow("writing", shot.baking())
    return shot


def _targets(options: argparse.Namespace, source: Path) -> tuple[Path, Path | None, Path | None]:
    """Paths of the output, the plan and the report, of which the last two may be None; checked to
    be writable."""
    output = output_target(options, source, "_clean.blend")
    plan_path = command_contacts.writing_target(options, source, output)
    return output, plan_path, report_target(options, source, output, plan_path)


def _read(
    options: argparse.Namespace, clean: CleanUpOptions, keys: BakeOptions | None = None
) -> CleanShot:
    """A CleanShot of the arguments, read with progress. clean: CleanUpOptions; keys: BakeOptions,
    None for the defaults."""
    chosen = CleanShotOptions(
        **reading_options(options),
        clean=clean,
        contacts=command_contacts.given(options),
        keys=keys or BakeOptions(),
    )
    return read_shot(CleanShot, options, chosen)

# SPDX-License-Identifier: GPL-3.0-or-later
"""The options that say when feet stand: `--contacts` and `--write-contacts`."""

import argparse
from pathlib import Path

from ...controller.clean_up.clean_up import propose
from ...controller.contacts.contact_plan import ContactPlan
from ..blender.files import check_target
from ..shots.clean_up import body_of
from ..shots.shot import Shot
from .command_files import demand_other


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`--contacts`, of every command that follows a contact plan."""
    parser.add_argument(
        "--contacts",
        type=Path,
        metavar="FILE",
        help="when which part of a foot stands (as kept with the action, else found)",
    )


def add_writing_arguments(parser: argparse.ArgumentParser) -> None:
    """`--write-contacts`, of those for a single shot."""
    parser.add_argument(
        "--write-contacts", type=Path, metavar="FILE", help="write that plan as JSON, to be edited"
    )


def given(options: argparse.Namespace) -> ContactPlan | None:
    """The ContactPlan that `--contacts` names; None without. Raises PlanError."""
    return None if options.contacts is None else ContactPlan.load(options.contacts)


def writing_target(options: argparse.Namespace, *others: Path | None) -> Path | None:
    """Path of `--write-contacts`, None without; checked to be writable, and to be none of the
    others."""
    if options.write_contacts is None:
        return None
    path = options.write_contacts.absolute()
    demand_other(options, "--write-contacts", path, *others)
    for name in ("walk", "script"):
        if getattr(options, name, None):
            options.usage_error(f"--write-contacts is for the clip as it is: leave out --{name}")
    check_target(path, options.overwrite)
    return path


def plan_of(shot: Shot) -> ContactPlan:
    """The ContactPlan of a Shot that was read: the one in use, else as it is found."""
    return shot.plan or propose(body_of(shot.reading, shot.objects))

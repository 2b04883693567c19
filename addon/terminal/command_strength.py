# SPDX-License-Identifier: GPL-3.0-or-later
"""The strength of a character on the command line, how it falls, and by which actions it gets
up."""

import argparse

from ...controller.falls.behaviours import BEHAVIOURS
from ...controller.falls.strength import LIMBS
from ..scene.strength import StrengthOptions
from .command_arguments import frame, share


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what says how strong the body is."""
    add = parser.add_argument_group(
        "strength", "what the armature itself says, these options replace"
    ).add_argument
    add(
        "--knock-out",
        type=frame,
        metavar="FRAME",
        help="from this frame on, it has lost consciousness, and goes down limp, also with "
        "--when-it-falls stop",
    )
    add(
        "--strength",
        type=share("strength", LIMBS, "leg_l=0.2"),
        action="append",
        metavar="LIMB=0..1",
        help=f"share of its strength that it has; of {', '.join(LIMBS)}; may be given for each",
    )
    add(
        "--falls-like",
        type=share("share", BEHAVIOURS, "limp=0.3"),
        action="append",
        metavar="BEHAVIOUR=0..1",
        help=f"share of a behaviour in how it falls; of {', '.join(BEHAVIOURS)}; may be given for "
        "each; what they leave of 1 is --when-it-falls",
    )
    add(
        "--get-up-by",
        metavar="ACTION",
        action="append",
        help="an action of the file in which the character gets up, instead of those that are "
        "marked as get-ups; may be given several times (--get-up)",
    )


def strength_options(options: argparse.Namespace) -> StrengthOptions:
    """The StrengthOptions that the arguments describe."""
    return StrengthOptions(options.knock_out, dict(options.strength or ()))

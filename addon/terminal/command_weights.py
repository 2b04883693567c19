# SPDX-License-Identifier: GPL-3.0-or-later
"""Physics weights on the command line."""

import argparse
import re

from ...controller.gains.physics_weights import NAMES
from ..scene.weights import WeightOptions
from .command_arguments import SHOWN, frame, number


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what says where and when there is physics."""
    add = parser.add_argument_group(
        "physics", "what the armature itself says, these options replace"
    ).add_argument
    add(
        "--start-physics",
        type=frame,
        metavar="FRAME",
        help="exactly as animated up to this frame, simulated after it",
    )
    add(
        "--hand-back",
        type=_hand_back,
        metavar="FRAME[,FRAMES]",
        help="from this frame back to the animation, over so many frames (15); feet step back",
    )
    add(
        "--weight",
        type=_weight,
        action="append",
        metavar="REGION=0..1",
        help=f"0 as animated, 1 simulated; of {', '.join(NAMES)}; may be given for each",
    )


def weight_options(options: argparse.Namespace) -> WeightOptions:
    """The WeightOptions that the arguments describe."""
    return WeightOptions(options.start_physics, options.hand_back, dict(options.weight or ()))


def _hand_back(text: str) -> tuple[float, float]:
    """'FRAME' or 'FRAME,FRAMES' -> (frame, frames)."""
    first, _, over = text.partition(",")
    return frame(first), number("hand_back")(over or "15")


def _weight(text: str) -> tuple[str, float]:
    """'REGION=VALUE' -> (region, value)."""
    name, _, value = text.partition("=")
    if name not in NAMES or not re.fullmatch(r"0|1|0?\.\d+|[01]\.0*", value):
        raise argparse.ArgumentTypeError(
            f"'{text[:SHOWN]}' is not a weight such as arms=0.5, from 0 to 1, of {', '.join(NAMES)}"
        )
    return name, float(value)

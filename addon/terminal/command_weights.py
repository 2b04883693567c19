# SPDX-License-Identifier: GPL-3.0-or-later
"""Physics weights on the command line."""

import argparse

from ...controller.gains.physics_weights import NAMES
from ..scene.weights import WeightOptions
from .command_arguments import frame, number, share


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
        type=share("weight", NAMES, "arms=0.5"),
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

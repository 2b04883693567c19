# SPDX-License-Identifier: GPL-3.0-or-later
"""Endless walks on the command line."""

import argparse
import re
from functools import partial

from ...controller.ranges import RANGES
from ..scene.walks import WalkOptions
from .command_arguments import frame, seconds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add how the character walks on."""
    add = parser.add_argument_group("walk").add_argument
    add(
        "--walk",
        type=partial(seconds, allowed=RANGES["walk"]),
        metavar="TIME",
        help="loop the walk or run for so long: 20, 90s, 2min (the clip as it is)",
    )
    add(
        "--cycle",
        type=_cycle,
        metavar="A-B",
        help="the frames to loop, from a step to the next one of the same foot (the best ones)",
    )
    add("--heading", metavar="CURVE", help="a curve object on the ground to walk along")


def walk_options(options: argparse.Namespace) -> WalkOptions | None:
    """The WalkOptions that the arguments describe; None for none. Calls `usage_error` for those
    that do not go together."""
    if options.walk is None:
        for name in ("cycle", "heading"):
            if getattr(options, name) is not None:
                options.usage_error(f"--{name} needs --walk")
        return None
    if getattr(options, "method", "balance") == "rectify":
        options.usage_error("--walk is not allowed with --rectify: balance alone walks on")
    return WalkOptions(options.walk, options.cycle, options.heading)


def _cycle(text: str) -> tuple[float, float]:
    """'12-75' -> (12.0, 75.0)."""
    number = r"([-+]?\d+(?:\.\d+)?)"
    match = re.fullmatch(rf"{number}[-:]{number}", text)
    if not match:
        raise argparse.ArgumentTypeError(f"'{text}' is not two frames such as 12-75")
    return frame(match[1]), frame(match[2])

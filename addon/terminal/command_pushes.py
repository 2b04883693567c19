# SPDX-License-Identifier: GPL-3.0-or-later
"""Pushes on the command line."""

import argparse
from math import hypot

from ...controller.geometry.skeleton import SEGMENTS
from ...controller.ranges import RANGES
from ..scene.pushes import PushOptions
from .command_arguments import SHOWN, frame, number, whole


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what pushes the character."""
    add = parser.add_argument_group("pushes", "beside those of the scene").add_argument
    add(
        "--push",
        type=_push,
        action="append",
        metavar="FRAME,SECONDS,FX,FY,FZ[,PART]",
        help="a force [N] from a frame on, on the trunk or another part; may be given again",
    )
    add(
        "--pushes",
        type=number("force"),
        metavar="N",
        help="push the trunk every second for 0.2 s, horizontally, in random directions [N]",
    )
    add(
        "--push-seed",
        type=whole("seed"),
        default=0,
        metavar="N",
        help="of the random directions (0)",
    )
    add("--no-pushes", action="store_true", help="leave out those of the scene")


def push_options(options: argparse.Namespace) -> PushOptions:
    """The PushOptions that the arguments describe."""
    return PushOptions(
        tuple(options.push or ()), options.pushes, options.push_seed, options.no_pushes
    )


def _push(text: str) -> tuple[float, float, tuple[float, ...], str]:
    """'FRAME,SECONDS,FX,FY,FZ[,PART]' -> (frame, duration, force, segment)."""
    values = text.split(",")
    part = values.pop() if len(values) == 6 else "trunk"
    try:
        start, duration = frame(values[0]), number("push_time")(values[1])
        force = [float(value) for value in values[2:]]
    except (ValueError, IndexError):
        force = []
    if len(force) != 3:
        raise argparse.ArgumentTypeError(
            f"'{text[:SHOWN]}' is not a push such as 40,0.2,100,0,0 or 40,0.2,100,0,0,head"
        )
    most = RANGES["force"].high
    if not hypot(*force) <= most:
        raise argparse.ArgumentTypeError(f"'{text[:SHOWN]}' is not a push of at most {most:g} N")
    if part not in SEGMENTS:
        raise argparse.ArgumentTypeError(f"'{part}' is none of {', '.join(SEGMENTS)}")
    return start, duration, tuple(force), part

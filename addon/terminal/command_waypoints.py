# SPDX-License-Identifier: GPL-3.0-or-later
"""Waypoints on the command line."""

import argparse

from ...controller.ranges import RANGES
from ..scene.waypoints import WaypointOptions
from .command_arguments import SHOWN, frame


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add where the character is to be."""
    add = parser.add_argument_group("waypoints", "beside those of the scene").add_argument
    add(
        "--waypoint",
        type=_waypoint,
        action="append",
        metavar="FRAME:X,Y",
        help="have the hips of the body above this place of the floor [m] at a frame; may be given "
        "again",
    )
    add(
        "--end-in-place",
        action="store_true",
        help="at the last frame, have it where the animation ends",
    )


def waypoint_options(options: argparse.Namespace) -> WaypointOptions:
    """The WaypointOptions that the arguments describe."""
    return WaypointOptions(tuple(options.waypoint or ()), options.end_in_place)


def _waypoint(text: str) -> tuple[float, float, float]:
    """'FRAME:X,Y' -> (frame, x, y)."""
    at, _, place = text.partition(":")
    try:
        x, y = map(float, place.split(","))
    except ValueError:
        x = y = float("nan")
    allowed = RANGES["place"]
    if x not in allowed or y not in allowed:
        raise argparse.ArgumentTypeError(
            f"'{text[:SHOWN]}' is no waypoint such as 75:1.2,-0.3, its place [m] from {allowed}"
        )
    return frame(at), x, y

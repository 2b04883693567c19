# SPDX-License-Identifier: GPL-3.0-or-later
"""Waypoints and holds on the command line: where the body is to be, and its hands and feet."""

import argparse
import re

from ...controller.ranges import RANGES
from ...controller.simulation.holds import BREAKING, LIMBS
from ..scene.holds import HoldOptions
from ..scene.waypoints import WaypointOptions
from .command_arguments import SHOWN, frame, number


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


def add_hold_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what holds the character."""
    add = parser.add_argument_group("holds", "beside those of the scene").add_argument
    add(
        "--hold",
        type=_hold,
        action="append",
        metavar="LIMB@FIRST-LAST[,N][:OBJECT]",
        help="hold a hand or a foot from a frame to another where it is then, to the world, or to "
        f"a thing or collider of this name; {BREAKING:g} N or the force that is given break it; "
        f"LIMB is one of {', '.join(LIMBS)}; may be given again",
    )


def hold_options(options: argparse.Namespace) -> HoldOptions:
    """The HoldOptions that the arguments describe."""
    return HoldOptions(tuple(options.hold or ()))


def _hold(text: str) -> tuple[str, float, float, float, str]:
    """'LIMB@FIRST-LAST[,N][:OBJECT]' -> (limb, first, last, breaking force, object)."""
    at = r"([-+]?[^-,:]+)-([-+]?[^,:]+)"
    match = re.fullmatch(rf"({'|'.join(LIMBS)})@{at}(?:,([^:]*))?(?::(.+))?", text, re.DOTALL)
    if not match:
        raise argparse.ArgumentTypeError(
            f"'{text[:SHOWN]}' is no hold such as left_hand@1-60, right_foot@1-60,800 or "
            f"left_hand@1-60:Bar, of one of {', '.join(LIMBS)}"
        )
    limb, first, last, force, to = match.groups()
    breaking = BREAKING if force is None else number("hold")(force)
    return limb, frame(first), frame(last), breaking, to or ""


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

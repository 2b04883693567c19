# SPDX-License-Identifier: GPL-3.0-or-later
"""Endless walks on the command line."""

import argparse
import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import zip_longest
from math import degrees
from pathlib import Path

from ...controller.ranges import RANGES
from ...controller.reference.commands import SETTLED, Script
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
    add(
        "--script",
        type=Path,
        metavar="FILE",
        help="walk on as the commands in this JSON file say, for as long as it says: how fast and "
        "which way from when on, in place of the keys of Pace, Turn and Sideways",
    )


def walk_options(options: argparse.Namespace) -> WalkOptions | None:
    """The WalkOptions that the arguments describe; None for none. Calls `usage_error` for those
    that do not go together."""
    if options.script is not None:
        for name in ("walk", "heading"):
            if getattr(options, name) is not None:
                options.usage_error(f"--{name} is not allowed with --script, which says that")
        if getattr(options, "method", "balance") == "rectify":
            options.usage_error("--script is not allowed with --rectify: balance alone walks on")
        script = Script.load(options.script)
        return WalkOptions(
            script.seconds, options.cycle, commands=script.commands, played=script.played
        )
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


def words_of(commands: Sequence[dict], fell_at: float | None) -> Iterator[str]:
    """What came of the commands of a walk, as reports of bakes have them, in a sentence each.
    fell_at: when it fell [s], None if it did not."""
    for command, then in zip_longest(commands, commands[1:]):
        if command["act"] is not None:
            yield _act_told(command)
            if command["ended"] is None or command["reached_speed"] is None:
                continue
        wanted = f"{command['speed']:.2f} m/s, {command['heading']:.0f}°"
        if aside := command["sideways"]:
            wanted += f" with {abs(aside):.2f} m/s to its {'left' if aside > 0 else 'right'}"
        told = f"At {command['at']:g} s {wanted if command['speed'] else 'stand'}:"
        speed, heading = command["reached_speed"], command["reached_heading"]
        if speed is None:
            fell = fell_at is not None and (then is None or then["at"] > fell_at)
            why = "it has fallen" if fell else "no round was left for that"
            yield f"{told} {why}."
            continue
        reached = f"{speed:.2f} m/s, " + ("on its feet" if heading is None else f"{heading:.0f}°")
        count = command["steps"]
        steps = "1 step" if count == 1 else f"{count} steps"
        off = abs(speed - command["speed"]) > SETTLED[0] * command["speed"]
        if heading is not None:
            off |= abs(heading - command["heading"]) > degrees(SETTLED[1])
        settled = f"after {steps}" if count is not None else "not as told" if off else "at last"
        yield f"{told} {reached}, {settled}."


def _act_told(command: dict) -> str:
    """What came of an act that was commanded."""
    began, ended = command["began"], command["ended"]
    told = f"At {command['at']:g} s '{command['act']}':"
    if began is None:
        return f"{told} it did not come to that."
    if ended is None:
        return f"{told} from {began:.1f} s on, and not to its end."
    most = command["allowed_help"]
    helped = f", helped by up to {most:.0%} of its weight" if most else ""
    return f"{told} from {began:.1f} to {ended:.1f} s, on its feet{helped}."

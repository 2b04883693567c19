# SPDX-License-Identifier: GPL-3.0-or-later
"""`poise bake` and `simulate` of several characters in one world: `--together`."""

import argparse
import time
from collections.abc import Iterator
from typing import Any

from ...controller.exceptions import PoiseError
from ..scene import bodies
from ..shots.cast import Cast
from ..shots.shot import Shot, ShotOptions
from ..terminal.command_files import chosen_scene, read_with
from ..terminal.command_progress import follow, say

#: What is of one character alone, by its option.
_ALONE = ("optimize", "target_only", "clean_feet", "strip", "write_contacts", "checkpoint", "into")


def add_argument(parser: argparse.ArgumentParser) -> None:
    """The argument on who is simulated with the armature."""
    parser.add_argument(
        "--together",
        action="append",
        metavar="NAME",
        help="another armature that is simulated in the same world, by balance alone, with its own "
        "result and bake; each feels what it does to the other; may be given for several",
    )


def check(options: argparse.Namespace) -> None:
    """Call `usage_error` for arguments that are of one character alone."""
    if not options.together:
        return
    if options.method != "balance":
        options.usage_error("--together is by balance alone: leave out --method and --rectify")
    for name in _ALONE:
        if getattr(options, name, None):
            option = name.replace("_", "-")
            options.usage_error(f"--{option} is of one character: leave it out with --together")


def read(options: argparse.Namespace, chosen: ShotOptions) -> Cast:
    """The Cast of the arguments, each read with progress. Raises PoiseError."""
    cast = Cast(chosen_scene(options), chosen, tuple(options.together))
    for shot in cast.shots:
        read_with(shot, cast.reading(shot))
    return cast


def simulate(cast: Cast) -> None:
    """Simulate all of them, with progress and real-time factor. Raises PoiseError."""
    motion = cast.shots[0].reading.motion
    slow = bodies.slowness_together(len(cast.shots), motion.duration, cast.shots[0].options.rate)
    if slow:
        say(slow)
    started = time.perf_counter()

    def factor(share: float) -> str:
        return f", {share * motion.duration / (time.perf_counter() - started):.1f} times real time"

    def progress() -> Iterator[float]:
        for sample in cast.simulate():
            yield sample / (len(motion) - 1)

    follow("simulating together", progress(), factor)
    for shot in cast.shots:
        if len(shot.recording) < 2:
            raise PoiseError(f"'{shot.armature.name}': {shot.why} Nothing was written.")


def bake(cast: Cast) -> None:
    """Bake all of them, and compare with their sources, with progress. Raises PoiseError."""
    for shot in cast.shots:
        follow(f"baking {shot.armature.name}", shot.baking())
        follow("measuring", shot.measure())


def each(cast: Cast, told: dict[str, Any]) -> Iterator[tuple[Shot, dict[str, Any]]]:
    """Each shot with its report. told: that of the first one, with the others' in it."""
    for shot, one in zip(cast.shots, (told, *told["together"]), strict=True):
        say(f"'{shot.armature.name}':")
        yield shot, one

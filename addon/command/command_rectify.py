# SPDX-License-Identifier: GPL-3.0-or-later
"""Rectification on the command line, and the choice of the method.

What is done is kept beside the output as `….checkpoint` until the last frame is reached: the same
command goes on from there, however the one before ended.
"""

import argparse
import contextlib
import math
import time
from itertools import chain, islice
from pathlib import Path

from ...controller.exceptions import PoiseError, SettingsError, SimulationError
from ...controller.reference.gait import Endless
from ...controller.search.rectification import (
    COSTS,
    METHODS,
    PRESETS,
    Rectification,
    RectifySettings,
)
from ..blender.locks import claimed
from ..settings import method
from ..shots import rectify
from ..shots.shot import Shot
from ..shots.tuning import LONG, clock
from ..terminal.command_arguments import seconds
from ..terminal.command_progress import LiveLine, follow, say
from ..terminal.command_workers import executor_of, interrupts, worker_arguments

#: Look for finished simulations this often [s].
_TURN = 0.005


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add how the action is performed."""
    group = parser.add_argument_group("method")
    add = group.add_argument
    add(
        "--method",
        choices=method.METHODS,
        help="balance alone, or rectify: search small changes of the action with which the body "
        "performs it to the end; auto tries balance, then help from outside, then the search "
        "(balance)",
    )
    add(
        "--rectify",
        choices=tuple(PRESETS),
        metavar=" | ".join(PRESETS),
        help=f"rectify, at this quality ({RectifySettings.preset}); about "
        + ", ".join(f"{cost}" for cost in COSTS.values())
        + " s of a processor for a second of motion",
    )
    add(
        "--without-help",
        action="store_true",
        help="auto: where balance alone would not be kept, search at once, without trying help "
        "from outside first",
    )
    add(
        "--search",
        choices=tuple(METHODS),
        help=f"how changes are searched ({RectifySettings.method})",
    )
    add(
        "--budget",
        type=seconds,
        metavar="TIME",
        help="end the search after this time, with what it has reached: 90, 120s, 10min (no limit)",
    )
    add(
        "--checkpoint",
        type=Path,
        metavar="FILE",
        help="keeps what is done, to go on from (beside the output)",
    )
    worker_arguments(parser)


def check(options: argparse.Namespace) -> None:
    """Call `usage_error` for arguments that do not go together."""
    if options.rectify and options.method == "balance":
        options.usage_error("--rectify is not allowed with --method balance")
    if options.rectify and options.method is None:
        options.method = "rectify"
    options.method = options.method or "balance"
    given = [
        name
        for name in ("search", "budget", "checkpoint", "workers", "scheduler", "target_only")
        if getattr(options, name, None) not in (None, False)
    ]
    if getattr(options, "optimize", None):  # that search takes workers too
        given = [name for name in given if name not in ("workers", "scheduler")]
    if getattr(options, "without_help", False) and options.method != "auto":
        options.usage_error("--without-help needs --method auto: nothing else helps by itself")
    if given and options.method == "balance":
        name = given[0].replace("_", "-")
        options.usage_error(f"--{name} needs --rectify, or --method rectify or auto")


def perform(options: argparse.Namespace, shot: Shot, checkpoint: Path | None) -> None:
    """Simulate or rectify a prepared shot. checkpoint: path, or None for none. What is to be mended
    first is told before."""
    if options.method != "auto" and not isinstance(shot.simulation.motion, Endless):
        found = shot.check()
        if found.faults:
            say(f"{found.verdict}.")
        else:
            for doubt in found.doubts:
                say(f"{doubt.sentence[0].upper()}{doubt.sentence[1:]}.")
    if options.method == "rectify":
        _rectify(options, shot, checkpoint)
        if len(shot.recording) < 2:
            raise PoiseError(f"{shot.why} Nothing was written.")
        return
    if options.method == "auto":
        shot.decide(method.choose(shot))
        say(shot.choice.why)
    simulate(shot)
    why = method.look_back(shot)
    if why:
        say(why)
        if not options.without_help and _helped(shot):
            return
        _rectify(options, shot, checkpoint)
        method.take_better(shot)


def _helped(shot: Shot) -> bool:
    """Let it try with help from outside; whether that is kept."""
    first = shot.balanced()
    for tried in method.helps(shot):
        shot.help(tried.share, tried.rate)
        with contextlib.suppress(SimulationError):  # thrown about it is not kept
            simulate(shot)
        kept = method.keeps_help(shot, first, tried)
        say(tried.told[kept])
        if kept:
            return True
    return False


def conclude(shot: Shot, checkpoint: Path | None) -> None:
    """Once the result is safe: remove the checkpoint, or tell what it is for."""
    outcome = shot.rectified
    if outcome is None or checkpoint is None:
        return
    if outcome.ended != "budget":
        checkpoint.unlink(missing_ok=True)
    elif checkpoint.exists():
        say(f"'{checkpoint}' keeps what is done: the same command with more --budget goes on.")
    else:
        say(f"'{checkpoint}' could not be written: this cannot be resumed.")


def simulate(shot: Shot) -> None:
    """Simulate with progress and real-time factor; tell after a second of it how long the rest
    takes, if that is long."""
    motion = shot.reading.motion
    last = len(motion) - 1
    samples = shot.simulate()
    first = next(samples, 0)  # the world is made before it
    started = time.perf_counter()
    *_, reached = first, *islice(samples, math.ceil(motion.rate))
    left = (time.perf_counter() - started) * (last / max(reached, 1) - 1)
    if left > LONG and reached >= motion.rate:
        unit = "h" if left >= 3600 else "min"
        say(f"Simulating {motion.duration:.0f} s will take about {clock(left)} {unit}.")

    def factor(share: float) -> str:
        spent = time.perf_counter() - started
        return f", {share * motion.duration / spent:.1f} times real time" if spent else ""

    follow("simulating", (sample / last for sample in chain([reached], samples)), factor)


def _rectify(options: argparse.Namespace, shot: Shot, checkpoint: Path | None) -> None:
    """Rectify with progress. Raises PoiseError if it is interrupted."""
    try:
        given = {"preset": options.rectify, "method": options.search, "budget": options.budget}
        chosen = {name: value for name, value in given.items() if value is not None}
        settings = RectifySettings(seed=options.seed, **chosen)
    except SettingsError as error:
        options.usage_error(str(error))
    problem = rectify.problem_of(shot)
    with contextlib.ExitStack() as stack:
        if checkpoint is not None:
            taken = f"Another process works towards '{checkpoint}': wait for it, or name another."
            stack.enter_context(claimed(checkpoint, taken))
        executor = stack.enter_context(executor_of(options))
        caught = stack.enter_context(interrupts())
        search = Rectification(problem, shot.gains, settings, executor, checkpoint)
        try:
            _follow(search, caught)
        except (PoiseError, KeyboardInterrupt) as error:
            search.stop()
            why = "Stopped." if isinstance(error, KeyboardInterrupt) else str(error)
            raise PoiseError(f"{why} {_kept(checkpoint)}") from error
    shot.settle(search)


def _kept(checkpoint: Path | None) -> str:
    if checkpoint is None or not checkpoint.exists():
        return "Nothing was written."
    return f"'{checkpoint}' keeps what is done: the same command goes on from there."


def _follow(search: Rectification, caught: list[bool]) -> None:
    """Go on to the end, and tell of each second that is committed. Raises KeyboardInterrupt soon
    after there is one among those that are caught."""
    line = LiveLine()
    if search.nodes:
        say(f"Going on after {_reached(search, search.nodes[-1].sample):.2f} s.")
    told, over, warning = 0, False, ""
    try:
        while not over:
            over = search.poll()
            if caught and not over:
                raise KeyboardInterrupt
            if search.warning not in ("", warning):
                line.say(f"poise: {search.warning}")
            warning = search.warning
            reached = _reached(search, len(search.recording) - 1)
            if reached >= told + 1:
                told = int(reached)
                line.say(_line(search, reached))
            line.show(f"{_line(search, reached)} ")
            time.sleep(0 if over else _TURN)
        line.say(_line(search, reached))
    finally:
        line.clear()


def _reached(search: Rectification, sample: int) -> float:
    return max(0, sample) / search.problem.motion.rate


def _line(search: Rectification, reached: float) -> str:
    left = search.time_left()
    return (
        f"rectified {reached:.2f} of {search.problem.motion.duration:.2f} s: "
        f"{len(search.nodes)} nodes, went back {search.backtracks} times, "
        f"{search.wall:.0f} s elapsed{f', {left:.0f} s left' if left else ''}"
    )

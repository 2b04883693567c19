# SPDX-License-Identifier: GPL-3.0-or-later
"""`poise bake --optimize TIME`: search gains for the shot before it is baked."""

import argparse
from pathlib import Path
from typing import Any

from ...controller import Gains
from ...controller.search.optimization import Outcome, SearchSettings
from ..shots.shot import Shot
from ..terminal.command_arguments import seconds
from ..terminal.command_progress import say, tell_left_out
from .command_optimize import NoTrialError, search_gains


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add how long to search."""
    parser.add_argument(
        "--optimize",
        type=seconds,
        metavar="TIME",
        help="search gains for so long first, from --gains: 90, 120s, 2min, 1h (no search)",
    )


def tune(options: argparse.Namespace, shot: Shot, checkpoint: Path) -> dict[str, Any] | None:
    """Let a prepared shot use the gains that a search finds for it -> what the report says of the
    search; None if it was interrupted.

    Confirmed gains are used as they are; others only if the shot gets further with them than with
    those that it has, or is a keeper only so, or has more reward. checkpoint: path that keeps what
    is done.
    """
    start = shot.gains
    settings = SearchSettings(budget=options.optimize, seed=max(0, options.seed))
    problem = shot.problem(disturbance={"pushes": options.pushes})
    tell_left_out(shot)
    try:
        outcome = search_gains(options, problem, start, settings, checkpoint)
    except NoTrialError:
        say("The time was over before the first trial was; the gains to start from are used.")
        return {"used": "start", "generations": 0, "ended": "budget"}
    if outcome is None:
        return None
    used = "start"
    if outcome.confirmed_at is not None:
        used = "confirmed"
    elif outcome.chosen != "start" and _success(shot, outcome.gains) > _success(shot, start):
        used = "best"
    shot.prepare_with(start if used == "start" else outcome.gains)
    found = outcome.as_dict()
    names = ("ended", "success_at", "confirmed_at", "unseen", "seconds", "cpu", "wall", "settings")
    report = {"used": used, "generations": len(outcome.history) - 1}
    report |= {name: found[name] for name in names}
    say(_told(outcome, used))
    return report


def _success(shot: Shot, gains: Gains) -> tuple[bool, int, bool, float]:
    """How well the shot does with these gains, to be compared."""
    shot.prepare_with(gains)
    for _sample in shot.simulate():
        pass
    recording, verdict = shot.recording, shot.judge()
    # The reward hardly tells soft gains from firm ones on a body that stands; an animator does.
    keeper = verdict is not None and verdict.keeper
    return recording.success, len(recording), keeper, recording.reward


def _told(outcome: Outcome, used: str) -> str:
    last = outcome.history[-1].index
    found = "The gains to start from" if outcome.chosen == "start" else "Gains were found that"
    what = {
        "confirmed": f"{found} stand on unseen noise too, and are used",
        "best": "No gains were confirmed; the best so far get further than those to start from, "
        "and are used",
        "start": "No better gains were found; those to start from are used",
    }[used]
    return f"{what} ({last} generations, {outcome.wall:.0f} s)."

# SPDX-License-Identifier: GPL-3.0-or-later
"""`poise optimize`: search gains for a shot, and write them as a file.

What is done is kept beside that file as `….checkpoint` until the search is over: the same command
goes on from there, however the one before ended. The shot is never saved.
"""

import argparse
import json
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ...controller import Gains
from ...controller.exceptions import GainsError, PoiseError, SettingsError
from ...controller.options import options_of
from ...controller.search.optimization import Generation, Outcome, Search, SearchSettings
from ...controller.search.trial import DISTURBANCES, Problem
from ...controller.simulation.measures import LIMITS
from ...controller.simulation.measures import UNITS as MEASURE_UNITS
from ..blender.files import check_target, write_json
from ..blender.locks import claimed
from ..settings import presets
from ..shots.shot import Shot, units
from ..terminal import command_walk
from ..terminal.command_arguments import add_options, gains_named, shot_options
from ..terminal.command_files import (
    demand_other,
    demand_other_than_shot,
    open_shot,
    read_shot,
    report_target,
    take_frames,
    target,
)
from ..terminal.command_progress import DONE, FAILED, MISSED, LiveLine, say, tell_left_out
from ..terminal.command_workers import executor_of, interrupts, worker_arguments

#: Look for finished trials this often [s].
_TURN = 0.01

#: Largest allowed errors, by the option that sets them.
_LIMITS = {f"max_{name.removesuffix('_error')}": name for name in LIMITS}
LIMIT_OPTIONS = {option: LIMITS[name] for option, name in _LIMITS.items()}

_UNITS = {
    "success_at": "generation",
    "confirmed_at": "generation",
    "unseen": "reward",
    "seconds": "s, simulated",
    "cpu": "s",
    "wall": "s",
}


class NoTrialError(PoiseError):
    """A search ended before its first trial did."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `optimize` alone."""
    command_walk.add_arguments(parser)
    search = parser.add_argument_group("search")
    search.add_argument(
        "--warm-start",
        default="default",
        metavar="FILE|NAME|auto",
        help="gains to start from: a file, a preset, 'auto' for the preset that was tuned on the "
        "motion most like this, or 'default' (default)",
    )
    add_options(search, options_of(SearchSettings))
    during = parser.add_argument_group(
        "in every trial, once a second, from random directions that each generation draws anew"
    )
    add_options(during, DISTURBANCES)
    limits = parser.add_argument_group("a trial ends where it exceeds")
    add_options(limits, LIMIT_OPTIONS)
    worker_arguments(parser)
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="the gains file to write (shot_gains.json)"
    )


def run(options: argparse.Namespace) -> int:
    """Search, write the gains and the report; the exit status."""
    settings = _settings(options)
    source = open_shot(options.file, options.up, options.unit)
    take_frames(options)
    output = target(options, source, "_gains.json")
    checkpoint = output.with_name(f"{output.name}.checkpoint")
    demand_other_than_shot(options, output, source, "name a gains file")
    demand_other(options, "--output", output)
    report_path = report_target(options, source, output, checkpoint)
    check_target(output, options.overwrite)
    taken = f"Another process is working on '{output}': wait for it, or name another --output."
    with claimed(output, taken):
        shot = _prepared_shot(options)
        outcome = _outcome(options, shot, settings, checkpoint)
        if outcome is None:
            return FAILED
        _write(outcome.gains, output)
        checkpoint.unlink(missing_ok=True)
    if report_path:
        write_json(report_path, _report(shot, outcome, output))
    _tell(outcome, output)
    return DONE if outcome.confirmed_at is not None else MISSED


def _settings(options: argparse.Namespace) -> SearchSettings:
    """SearchSettings of the arguments."""
    names = SearchSettings.__dataclass_fields__
    try:
        return SearchSettings(**{k: v for k, v in vars(options).items() if k in names})
    except SettingsError as error:
        return options.usage_error(str(error))  # which does not come back


def _prepared_shot(options: argparse.Namespace) -> Shot:
    """The Shot, read and checked, with the gains to start from."""
    chosen = options.warm_start
    gains = None if chosen in ("default", "auto") else gains_named(chosen)
    walk = command_walk.walk_options(options)
    shot = read_shot(Shot, options, shot_options(options, gains, walk=walk))
    shot.prepare()
    if shot.gains.completed:
        say(shot.gains.completed)
    if chosen == "auto":
        _take_suggestion(shot)
    return shot


def _take_suggestion(shot: Shot) -> None:
    """Start from the preset for motion like this, if there is one."""
    try:
        preset, why = presets.suggest(shot.character, shot.reading.motion, shot.gains.balance)
    except GainsError as error:
        say(f"{error} The search starts from the defaults.")
        return
    say(f"The search starts from the preset '{preset.name}': {why}")
    shot.prepare_with(preset.gains)


# --- The search ---------------------------------------------------------------------------------


def _outcome(
    options: argparse.Namespace, shot: Shot, settings: SearchSettings, checkpoint: Path
) -> Outcome | None:
    """The Outcome of the search; None if it was interrupted."""
    tell_left_out(shot)
    problem = shot.problem(
        {name: getattr(options, option) for option, name in _LIMITS.items()},
        disturbance={name: getattr(options, name) for name in DISTURBANCES},
    )
    return search_gains(options, problem, shot.gains, settings, checkpoint)


def search_gains(
    options: argparse.Namespace,
    problem: Problem,
    start: Gains,
    settings: SearchSettings,
    checkpoint: Path,
) -> Outcome | None:
    """The Outcome of a search on the processes that the options name; None if it was interrupted,
    which has been told then. Raises NoTrialError."""
    if find_spec("cma") is None:
        raise PoiseError("The optimiser 'cma' is not installed: install it beside PyBullet.")
    # They are to be others', under a name that is not that of a preset.
    start = replace(start, name="", description="")
    with executor_of(options) as executor, interrupts() as caught:
        search = Search(problem, start, settings, executor, checkpoint)
        try:
            _follow(search, checkpoint, caught)
        except (PoiseError, KeyboardInterrupt) as error:
            search.stop()
            say("poise: stopped." if isinstance(error, KeyboardInterrupt) else f"poise: {error}")
            if checkpoint.exists():
                say(f"'{checkpoint}' keeps what is done: the same command goes on from there.")
            return None
        if search.best is None:
            raise NoTrialError(
                "The budget was over before the first trial was: give the search more time."
            )
        return search.outcome()  # while there is an executor, which it may ask


def _follow(search: Search, checkpoint: Path, caught: list[bool]) -> None:
    """Go on to the end, and tell of each generation. Raises KeyboardInterrupt soon after there is
    one among those that are caught."""
    shown, warning, line = len(search.generations), "", LiveLine()
    if checkpoint.exists():
        say(f"Going on after generation {shown - 1}, which '{checkpoint}' keeps.")
    over = False
    try:
        while not over:
            over = search.poll()
            if caught and not over:
                raise KeyboardInterrupt
            for generation in search.generations[shown:]:
                line.say(_line(search, generation))
            shown = len(search.generations)
            if search.warning not in ("", warning):
                line.say(f"poise: {search.warning}")
            warning = search.warning
            finished, trials = search.progress
            line.show(f"{search.doing}: {finished} of {trials} trials{_left(search)} ")
            time.sleep(0 if over else _TURN)
    finally:
        line.clear()


def _line(search: Search, generation: Generation) -> str:
    simulated = sum(g.seconds for g in search.generations[: generation.index + 1])
    return (
        f"generation {generation.index}: best {generation.best:.3f}, median "
        f"{generation.median:.3f}, mean {generation.mean:.3f}, spread {generation.spread:.3f}; "
        f"{simulated:.1f} s simulated, {search.wall:.1f} s elapsed{_left(search)}"
    )


def _left(search: Search) -> str:
    left = search.time_left()
    return "" if left is None else f", {left:.0f} s left"


# --- The result ---------------------------------------------------------------------------------


def _write(gains: Gains, path: Path) -> None:
    """Write the gains file; to standard output if that fails, since they took long to find."""
    try:
        gains.save(path)
    except GainsError:
        print(json.dumps(gains.as_dict()), flush=True)
        say("The gains could not be written, and are on standard output instead.")
        raise


def _report(shot: Shot, outcome: Outcome, output: Path) -> dict[str, Any]:
    """What was searched for and found, as a dict for JSON."""
    inspection = shot.inspection()
    of_gains = units("stiffness", "damping", "com_position", "com_velocity", "trunk", "momentum")
    more = {**units("fell_at", "rate", "noise", "reward"), **of_gains, **MEASURE_UNITS, **_UNITS}
    inspection["units"] |= more
    return {"file": str(output), **inspection, **outcome.as_dict()}


def _tell(outcome: Outcome, output: Path) -> None:
    """Sum up."""
    settings, unseen = outcome.settings, outcome.unseen
    if outcome.success_at is None:
        say(f"No candidate reached a reward of {settings.target:g}.")
    else:
        say(
            f"Success: generation {outcome.success_at} had the first candidate with a reward of "
            f"{settings.target:g} (generation 0 is the gains to start from)."
        )
    confirmed = outcome.confirmed_at is not None
    if confirmed:
        say(f"Confirmed: generation {outcome.confirmed_at} reached it on unseen seeds too.")
    else:
        best = max(generation.best for generation in outcome.history)
        say(f"Not confirmed {_ENDED[outcome.ended]}: the best reward was {best:.3f}.")
    if unseen:
        mean = sum(unseen) / len(unseen)
        say(f"Unseen seeds ({len(unseen)}): {mean:.3f} on average, {min(unseen):.3f} at least.")
    if outcome.fell_at is not None:
        name = outcome.fell_measure
        assert name is not None and outcome.gains.tuned is not None  # of what fell, once tuned
        limit, unit = outcome.gains.tuned["maxima"][name], MEASURE_UNITS[name]
        say(f"Its worst trial fell at {outcome.fell_at:.2f} s: {name} above {limit:g} [{unit}].")
    say(
        f"{outcome.seconds:.0f} s simulated in {outcome.wall:.1f} s. The "
        f"{'' if confirmed else 'best '}gains are written to '{output}'"
        f"{'' if confirmed else ' all the same'}."
    )


_ENDED = {
    "generations": "within the generations",
    "budget": "within the budget",
    "converged": "although the search has converged",
    "stopped": "when it was stopped",
}

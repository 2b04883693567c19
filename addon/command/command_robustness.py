# SPDX-License-Identifier: GPL-3.0-or-later
"""`poise robustness`: measure how hard a character can be hit, as a table, a plot and a report.

The table goes to standard output, progress to standard error. The shot is never saved.
"""

import argparse
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...controller.exceptions import PoiseError, SettingsError
from ...controller.options import options_of
from ...controller.search.robustness import STEPS, UNITS, LimitSearch, LimitSettings, Outcome
from ..blender.files import FileError, check_target, write_json, written
from ..plots import limit_plot
from ..shots.robustness import outcome_words
from ..shots.shot import Shot
from ..terminal import command_walk
from ..terminal.command_arguments import add_options, gains_named, number, shot_options
from ..terminal.command_files import (
    demand_other,
    demand_other_than_shot,
    open_shot,
    read_shot,
    report_target,
    take_frames,
    target,
)
from ..terminal.command_progress import DONE, MISSED, LiveLine, say, tell_left_out
from ..terminal.command_workers import executor_of, interrupts, worker_arguments

#: Look for finished trials this often [s].
_TURN = 0.01


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `robustness` alone."""
    command_walk.add_arguments(parser)
    parser.add_argument(
        "--gains", metavar="FILE|NAME", help="gains of the controller, or a preset (defaults)"
    )
    group = parser.add_argument_group("what is measured")
    add_options(group, options_of(LimitSettings))
    steps = " or ".join(f"{step:g} {UNITS[kind]}" for kind, step in STEPS.items())
    for name, of_what in (
        ("start", "the first magnitude [N] or [kg] (the step)"),
        ("step", f"by which it is raised [N] or [kg] ({steps})"),
    ):
        group.add_argument(f"--{name}", type=number("magnitude"), metavar="X", help=of_what)
    worker_arguments(parser)
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="the plot to write, a PNG (shot_limit.png)"
    )


def run(options: argparse.Namespace) -> int:
    """Measure, tell the table, write the plot and the report; the exit status."""
    settings = _settings(options)
    source = open_shot(options.file, options.up, options.unit)
    take_frames(options)
    output = target(options, source, "_limit.png") if settings.phases or options.output else None
    if output is not None:
        demand_other_than_shot(options, output, source, "name a PNG file")
        demand_other(options, "--output", output)
        if output.suffix.lower() != ".png":
            options.usage_error("--output is to be a PNG file: let its name end with .png")
        check_target(output, options.overwrite)
    report_path = report_target(options, source, output)
    walk = command_walk.walk_options(options)
    gains = gains_named(options.gains)
    shot = read_shot(Shot, options, shot_options(options, gains, walk=walk))
    shot.prepare()
    if shot.gains.completed:
        say(shot.gains.completed)
    outcome = _measure(options, shot, settings)
    print("\n".join(table(outcome)), flush=True)
    if output is not None:
        _write_plot(outcome, output)
    if report_path:
        write_json(report_path, _report(shot, outcome))
    say(f"{outcome_words(outcome)}.")
    return DONE if outcome.found else MISSED


def _settings(options: argparse.Namespace) -> LimitSettings:
    """LimitSettings of the arguments."""
    names = LimitSettings.__dataclass_fields__
    try:
        return LimitSettings(**{k: v for k, v in vars(options).items() if k in names})
    except SettingsError as error:
        return options.usage_error(str(error))  # which does not come back


def _measure(options: argparse.Namespace, shot: Shot, settings: LimitSettings) -> Outcome:
    """The Outcome, also of what is measured when it is interrupted."""
    problem = shot.problem()
    tell_left_out(shot)
    with executor_of(options) as executor, interrupts() as caught:
        search = LimitSearch(problem, shot.gains, settings, executor)
        try:
            _follow(search, caught)
        finally:
            search.stop()
    if not search.rates:
        if caught:
            raise KeyboardInterrupt
        raise PoiseError("The budget was over before the first sequences were: give it more time.")
    return search.outcome()


def _follow(search: LimitSearch, caught: list[bool]) -> None:
    """Go on to the end, or to the first of those interrupts that are caught."""
    shown, line = 0, LiveLine()
    over = False
    try:
        while not over and not caught:
            over = search.poll()
            for rate in search.rates[shown:]:
                magnitude = f"{rate.magnitude:g} {UNITS[search.settings.kind]}"
                line.say(f"{magnitude}: {rate.passed} of {rate.count} stand{_left(search)}")
            shown = len(search.rates)
            done, trials = search.progress
            line.show(f"{search.doing}: {done} of {trials} trials{_left(search)} ")
            time.sleep(0 if over else _TURN)
    finally:
        line.clear()


def _left(search: LimitSearch) -> str:
    left = search.time_left()
    return "" if left is None else f", about {left:.0f} s left"


# --- The result ---------------------------------------------------------------------------------


def table(outcome: Outcome) -> Iterator[str]:
    """The rates, and what is withstood in each direction, as lines."""
    unit, digits = f"[{outcome.unit}]", 0 if outcome.unit == "N" else 2
    yield f"{outcome.settings.kind:>13} {unit:4}  per mass [m/s]  stand"
    for rate in outcome.rates:
        yield f"{rate.magnitude:18g}  {rate.speed:14.2f}  {rate.passed} of {rate.count}"
    if not outcome.single:
        return
    yield ""
    phases, worst = len(outcome.single), outcome.worst
    assert worst is not None  # with phases
    yield (
        f"single ones, the worst of {phases} phase{'s' if phases > 1 else ''} of the clip; "
        "0° is towards the front, 90° towards the left"
    )
    yield f"{'towards [deg]':>18}  {'withstood ' + unit:>14}  per mass [m/s]  feet in place {unit}"
    for angle, (limit, bound) in zip(outcome.settings.angles, worst.T, strict=True):
        yield (
            f"{math.degrees(angle):18.1f}  {limit:14g}  {outcome.speed(limit):14.2f}  "
            f"{bound:{14 + len(unit)}.{digits}f}"
        )


def _write_plot(outcome: Outcome, path: Path) -> None:
    """Write the plot; say so if there is nothing to draw."""
    if not outcome.single:
        say("Nothing was measured by direction, so there is no plot.")
        return
    try:
        with written(path) as temporary:
            temporary.write_bytes(limit_plot.png(limit_plot.picture(outcome)))
    except FileError as error:  # the table is told, and the report can still be written
        say(f"poise: {error}")


def _report(shot: Shot, outcome: Outcome) -> dict[str, Any]:
    """What was measured, as a dict for JSON."""
    inspection, report = shot.inspection(), outcome.as_dict()
    return (
        inspection
        | report
        | {
            "gains": shot.gains.as_dict(),
            "units": inspection["units"] | report["units"],
        }
    )

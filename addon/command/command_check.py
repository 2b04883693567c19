# SPDX-License-Identifier: GPL-3.0-or-later
"""The clip check on the command line: `poise inspect … --plot FILE.png`."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...controller.checks.clip_check import ClipCheck
from ..blender.files import check_target, same_file, written
from ..plots import clip_check_plot, limit_plot
from ..terminal.command_files import demand_other

#: How findings are marked, by their severity.
_MARKS = {"mend": "!", "rectify": "-", "note": " "}


def add_check_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the check alone."""
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw what the clip asks, over time, as a PNG"
    )


def plot_target(options: argparse.Namespace, source: Path) -> Path | None:
    """Path of the plot, None without; checked to be writable."""
    if options.plot is None:
        return None
    path = options.plot.absolute()
    if source is not None and same_file(path, source):
        options.usage_error("--plot names the shot itself: name a PNG file")
    if path.suffix.lower() != ".png":
        options.usage_error("--plot is to be a PNG file: let its name end with .png")
    demand_other(options, "--plot", path)
    check_target(path, options.overwrite)
    return path


def write_plot(found: ClipCheck, path: Path) -> None:
    """Write the picture of a ClipCheck."""
    picture = limit_plot.png(clip_check_plot.picture(found))
    with written(path) as temporary:
        temporary.write_bytes(picture)


def check_lines(check: dict[str, Any]) -> Iterator[str]:
    """What is printed of ClipCheck.as_dict()."""
    yield f"check     {check['verdict']}"
    if check["cleaning"]:
        yield f"cleaned   {', '.join(check['cleaning'])}"
    for finding in check["findings"]:
        yield f"  {_MARKS[finding['severity']]} {finding['sentence']}"

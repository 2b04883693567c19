# SPDX-License-Identifier: GPL-3.0-or-later
"""What the command line tells on standard error; PyBullet writes to standard output."""

import sys
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ...controller.checks.verdict import COMPARED
from ...controller.control.outside import outside_words

if TYPE_CHECKING:
    from ..rigs.reference import Reading
    from ..shots.shot import Shot

#: Exit status, beside argparse's 2 for wrong usage: all is well; could not run, and nothing was
#: written; was written, but the body fell or the gains are not confirmed.
DONE, FAILED, MISSED = 0, 1, 3

#: At most so often a line is rewritten on a terminal [s].
_INTERVAL = 0.1


def say(text: str) -> None:
    """Tell a line, one whatever the names in it: line breaks and the like are written as escapes,
    because others read what is told line by line."""
    _print(_in_a_line(text))


def _in_a_line(text: str) -> str:
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def _print(text: str, end: str = "\n") -> None:
    print(text, end=end, file=sys.stderr, flush=True)


def follow(
    what: str, progress: Iterable[float], tell: Callable[[float], str] = lambda share: ""
) -> None:
    """Run a generator of progress (0 to 1), on one line that is rewritten on a terminal."""
    line = LiveLine()
    share = 0.0
    for share in progress:
        line.show(f"{what} {share:4.0%}{tell(share)} ")
    line.say(f"{what} {share:4.0%}{tell(share)} ")


def tell_unit(reading: "Reading") -> None:
    """How long a unit is, where that is not what the scene says."""
    if reading.unit_guessed:
        say(
            f"One unit of the scene is taken to be {reading.metres_per_unit:g} m, by the length of "
            "the legs: --unit says otherwise."
        )


def tell_left_out(shot: "Shot") -> None:
    """What of the scene the trials of a search leave out, where they do."""
    if shot.left_out:
        say(shot.left_out)


def outside_told(report: dict[str, Any]) -> str:
    """How much the report of a bake says it was helped from outside, in a sentence without its
    end; empty if it was not, or if an earlier version did not know."""
    if report.get("residual") is None or report.get("residual_most") is None:
        return ""
    return outside_words(report["residual"], report["residual_most"], report["body"]["mass"])


def tell_verdict(verdict: dict[str, Any]) -> None:
    """Whether a result is a keeper, else a line for each reason against it."""
    compared = COMPARED[verdict["compared_with"]]
    than = compared and f", {compared}"
    if verdict["keeper"]:
        say(f"It is a keeper{than}.")
        return
    say(f"But it would not be kept{than}:")
    for found in verdict["findings"]:
        say(f"  {found['sentence']}")


class LiveLine:
    """One line that is rewritten, on a terminal; elsewhere only what is said to last appears."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._shown = time.monotonic()
        self._width = 0

    def show(self, text: str) -> None:
        """Show it for now, unless that was just done."""
        if self._terminal and time.monotonic() - self._shown > _INTERVAL:
            self._shown = time.monotonic()
            text = _in_a_line(text)
            _print(f"\r{text:{self._width}}", end="")
            self._width = len(text)

    def say(self, text: str) -> None:
        """Tell a line that stays."""
        text = _in_a_line(text)
        _print(f"\r{text:{self._width}}" if self._terminal else text)
        self._width = 0

    def clear(self) -> None:
        """Leave nothing of what was shown for now."""
        if self._width:
            _print(f"\r{'':{self._width}}\r", end="")
            self._width = 0

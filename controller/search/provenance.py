# SPDX-License-Identifier: GPL-3.0-or-later
"""What the `tuned` of gains tells, in words. It may be anybody's file, so that everything in it
may be missing, or of another kind."""

from typing import Any

from ..gains.gains import Gains

#: So many clips that gains did not carry are named, so that the sentence stays one.
_NAMED = 3


def tuning_words(gains: Gains) -> str:
    """What gains were tuned on and what was measured of them; empty if they do not say."""
    tuned = gains.tuned or {}
    clip = text_of(tuned, "clip")
    if not clip:
        return ""
    count, mean, least = (
        number_of(tuned, "figures", f"unseen_{key}") for key in ("count", "mean", "min")
    )
    figures = ""
    if None not in (count, mean, least):
        figures = f": score {mean:.2f} in {count:.0f} new tries, {least:.2f} at least"
    first = f"Tuned on '{clip}'{_body_words(tuned)}{figures}."
    if not number_of(tuned, "optimiser", "generations"):
        first = f"Not tuned, tried on '{clip}'{_body_words(tuned)}{figures}."
    return " ".join(filter(None, (first, _limit_words(tuned), _reuse_words(tuned))))


def _body_words(tuned: dict[str, Any]) -> str:
    """Which body, and under what; in one piece, as a translation needs it."""
    pushes = number_of(tuned, "disturbance", "pushes")
    mass, height = (number_of(tuned, "body", key) for key in ("mass", "height"))
    if pushes and mass and height:
        return f" under pushes of {pushes:.0f} N for {height:.2f} m, {mass:.0f} kg"
    if mass and height:
        return f" for {height:.2f} m, {mass:.0f} kg"
    return f" under pushes of {pushes:.0f} N" if pushes else ""


def _limit_words(tuned: dict[str, Any]) -> str:
    force, speed = (number_of(tuned, "push_limit", key) for key in ("force", "speed"))
    if force is None or speed is None:
        return ""
    if not force:
        return "There it withstands no random pushes."
    return (
        f"There it withstands random pushes of {force:.0f} N, each of which changes its speed by "
        f"{speed:.2f} m/s."
    )


def _reuse_words(tuned: dict[str, Any]) -> str:
    reuse = tuned.get("reuse")
    carried, fell = (_names(reuse, key) for key in ("carried", "fell"))
    count = len(carried) + len(fell)
    if not count:
        return ""
    if not fell:
        return f"It also carries all {count} other clips that were tried."
    named = ", ".join(f"'{name}'" for name in fell[:_NAMED])
    words = f"It also carries {len(carried)} of {count} other clips, not {named}"
    return f"{words} and {len(fell) - _NAMED} more." if len(fell) > _NAMED else f"{words}."


def _names(data: Any, key: str) -> list[str]:
    """A list of texts of free JSON data; empty if it is something else."""
    names = data.get(key) if isinstance(data, dict) else None
    return [n for n in names if isinstance(n, str)] if isinstance(names, list) else []


def text_of(data: dict[str, Any], key: str) -> str:
    """A text of free JSON data; empty if it is something else."""
    value = data.get(key)
    return value if isinstance(value, str) else ""


def number_of(data: dict[str, Any], group: str, key: str) -> float | None:
    """A number of free JSON data; None if it is something else."""
    found = data.get(group)
    value = found.get(key) if isinstance(found, dict) else None
    return value if isinstance(value, int | float) else None

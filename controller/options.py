# SPDX-License-Identifier: GPL-3.0-or-later
"""Options, each described once, beside the value that it has unless someone chooses another.

Their ranges are checked by it, and whoever offers them makes all of it: properties and rows of
panels, arguments, tables of the documentation.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from .exceptions import demand
from .ranges import Range


@dataclass(frozen=True)
class Option:
    """What is to be known of an option.

    default. label: what panels call it, with its unit. words: what it does; a sentence without its
    end. range: of a number; one in [s] is a time. choices: {value: (name, words)} where it is none.
    zero: what 0 stands for where panels have no other word for None. most, step, digits: where a
    slider ends, by how much it goes, and how many digits it shows. seldom: whether it is seldom
    needed. needs: option without which it means nothing. argument: on the command line, if it is
    not called as it is; told: there, instead of the words.
    """

    default: Any
    label: str
    words: str
    range: Range | None = None
    choices: dict[str, tuple[str, str]] | None = None
    zero: str = ""
    most: float | None = None
    step: float | None = None
    digits: int | None = None
    seldom: bool = False
    needs: str = ""
    argument: str = ""
    told: str = ""

    def check(self, name: str, value: Any) -> None:
        """Raise SettingsError for a value of the option of that name that it may not have."""
        if self.choices is not None:
            known = ", ".join(self.choices)
            demand(value in self.choices, f"There is no {name} '{value}': use {known}.")
        elif self.range is not None and not (value is None and self.default is None):
            self.range.check(value)


def option(default: Any, label: str, words: str, *args: Any, **more: Any) -> Any:
    """A field of a dataclass with its Option, whose fields these are."""
    return field(default=default, metadata={"option": Option(default, label, words, *args, **more)})


def options_of(owner: Any) -> dict[str, Option]:
    """{field: Option} of a dataclass, or of an object of one, in the order of its fields."""
    return {f.name: f.metadata["option"] for f in fields(owner) if "option" in f.metadata}


def needed_by(options: Mapping[str, Option], name: str) -> list[str]:
    """Names of the options without which one means nothing: what it needs, what that needs, …"""
    needs = options[name].needs
    return [needs, *needed_by(options, needs)] if needs else []


def units_of(owner: Any) -> dict[str, str]:
    """{field: unit} of those of them that have one."""
    found = options_of(owner).items()
    return {name: one.range.unit for name, one in found if one.range and one.range.unit}


def check_options(owner: Any, *free: str) -> None:
    """Raise SettingsError if an object has an option with a value that it may not have; those of
    the names `free` may have any."""
    for name, one in options_of(owner).items():
        if name not in free:
            one.check(name, getattr(owner, name))

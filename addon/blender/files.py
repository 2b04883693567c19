# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that are written whole or not at all. Needs nothing of Blender's."""

import errno
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...controller.exceptions import PoiseError


class FileError(PoiseError):
    """A file cannot be read, or may not be written."""


def identity(path: Path) -> str:
    """What all names of a file have in common, through links, hard ones too, or `..`; it need not
    be there yet."""
    try:
        found = os.stat(path)
    except OSError:
        return os.path.normcase(os.path.realpath(path))
    return f"{found.st_dev}:{found.st_ino}"


def same_file(path: Path, other: Path) -> bool:
    """Whether two paths lead to one file, by whatever names; two hard links do."""
    return identity(path) == identity(other)


def check_target(path: Path, overwrite: bool) -> None:
    """Raise FileError unless a file can be written there; called before any work is done."""
    try:
        os.stat(_temporary(path))
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise FileError(
                f"The name '{path.name[:40]}…' is too long for the disk: choose a shorter one."
            ) from None
    if path.is_dir():
        raise FileError(f"'{path}' is a folder: name a file in it.")
    if path.exists() and not path.is_file():
        raise FileError(f"'{path}' is a device or a pipe: name a file.")
    if path.exists() and not overwrite:
        raise FileError(f"'{path}' exists: name another file, or say --overwrite.")
    if not path.parent.is_dir():
        raise FileError(f"There is no folder '{path.parent}': make it, or name another one.")
    probe = _temporary(path)
    try:
        probe.touch()  # a process of our number that was killed may have left one
        probe.unlink()
    except OSError as error:
        raise FileError(
            f"Nothing can be written in '{path.parent}' ({error.strerror}): name another folder."
        ) from None


def _temporary(path: Path) -> Path:
    """A name beside a file, under which it is written before it takes the file's place."""
    return path.with_name(f".{path.stem}-{os.getpid()}{path.suffix}")


def left_over(path: Path) -> list[Path]:
    """Paths under which processes were writing a file, or trying to, when they were killed; nobody
    may be writing it now."""
    name = re.compile(re.escape(f".{path.stem}-") + "[0-9]+" + re.escape(path.suffix))
    return [other for other in path.parent.iterdir() if name.fullmatch(other.name)]


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """Give a temporary name to write to; it becomes the file only if all goes well. A link stays:
    the file that it leads to is written."""
    path = path.resolve()
    temporary = _temporary(path)
    try:
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        raise FileError(f"'{path}' cannot be written ({error.strerror}).") from None
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file. What is in no encoding, as parts of the names of some files, is written as
    \\udc.., which JSON reads again as it was."""
    with written(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def write_json(path: Path, content: Any) -> None:
    """Write plain data, all numbers of which must be finite."""
    text = json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False)
    write_text(path, text + "\n")

# SPDX-License-Identifier: GPL-3.0-or-later
"""Small files of text: read within a bound, written as a whole or not at all."""

import contextlib
import os
from pathlib import Path

_MAX_BYTES = 1_000_000


def read(path, source, fail):
    """The bytes of a file. source: what errors call it; fail(source, problem) raises them."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        fail(source, f"cannot be read: {error.strerror}")
    if len(content) > _MAX_BYTES:
        fail(source, "is larger than 1 MB: choose a file that Poise wrote")
    return content


def write(path, text):
    """Write a file in UTF-8; one that is there is replaced as a whole, or not at all. Raises
    OSError."""
    path = Path(path).resolve()  # a link stays
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise

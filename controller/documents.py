# SPDX-License-Identifier: GPL-3.0-or-later
"""Small JSON documents, read and written as files."""

import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

#: More than Poise writes of most; by judgement.
_MAX_BYTES = 1_000_000


def read(
    path: str | os.PathLike,
    source: object,
    fail: Callable[[object, str], NoReturn],
    limit: int = _MAX_BYTES,
) -> Any:
    """The content of a JSON file.

    source: what errors call it; fail(source, problem) raises them: for what is no regular file,
    cannot be read, is larger than `limit` [bytes], is no text in UTF-8, no JSON, or JSON that gives
    a key twice or nests too deep.
    """
    path = Path(path)
    if path.exists() and not path.is_file():  # opening a pipe would wait for its other end
        fail(source, "is no file")
    try:
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except OSError as error:
        fail(source, f"cannot be read: {error.strerror}")
    if len(content) > limit:
        fail(source, f"is larger than {limit // 1_000_000} MB: choose a file that Poise wrote")
    try:
        return json.loads(content.decode("utf-8-sig"), object_pairs_hook=_without_duplicates)
    except UnicodeDecodeError:
        fail(source, "is not text in UTF-8: save it in this encoding")
    except RecursionError:
        fail(source, "is not JSON: it nests too deep")
    except ValueError as error:
        fail(source, f"is not JSON: {error}")


def digest(path: str | os.PathLike) -> str:
    """What tells a file's content from another: its SHA-256. Raises OSError."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write(path: str | os.PathLike, text: str) -> None:
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


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object as a dict, in which no key may stand twice."""
    result = dict(pairs)
    if len(result) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"it gives '{twice}' twice")
    return result

# SPDX-License-Identifier: GPL-3.0-or-later
"""One process at a time: several may tune the same shot, in windows and on the command line."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from ...controller.exceptions import PoiseError

try:
    import fcntl
except ImportError:  # Windows
    import msvcrt

#: Look whether a lock is free again this often [s].
_TURN = 0.1


class TakenError(PoiseError):
    """Another process works towards the same file."""


@contextmanager
def claimed(path: Path, refusal: str, patience: float = 0.0) -> Iterator[None]:
    """Be the only process that works towards a file, by a lock file beside it.

    patience: how long to wait for another one to end [s]. Raises TakenError with the sentence
    `refusal` if there still is one, OSError if the lock cannot be written. It is the system that
    holds the lock, so that a process that was killed leaves none.
    """
    lock = path.with_name(f"{path.name}.lock")
    with _locked(lock, refusal, time.monotonic() + patience):
        try:
            yield
        finally:
            with suppress(PermissionError):  # Windows keeps what is open
                lock.unlink(missing_ok=True)


def _locked(lock: Path, refusal: str, end: float) -> IO[bytes]:
    """The lock file, open and locked by this time [s]."""
    while True:
        file = lock.open("ab")
        try:
            if sys.platform == "win32":
                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            else:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            if time.monotonic() >= end:
                raise TakenError(refusal) from None
            time.sleep(_TURN)
            continue
        # Whoever had it may have removed the file between the two steps.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), lock.stat()):
                return file
        file.close()

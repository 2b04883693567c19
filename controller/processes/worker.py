# SPDX-License-Identifier: GPL-3.0-or-later
"""A process of `workers.WorkerPool`: it is started by file, and runs one task after the other.

Over its standard input come pickles: the parent's sys.path, then tasks, each as the bytes of a
pickled (function, args, kwargs). Over the standard output it was born with go pickles: None when
it is ready, then for each task (succeeded, bytes of the pickled result or exception or None,
text of the traceback).
"""

import importlib.util
import os
import pickle
import queue
import signal
import sys
import threading
import traceback
from pathlib import Path
from typing import IO, Any

#: By so much a window comes first, of the 19 that there are: by judgement.
_NICENESS = 5


def send(message: object, pipe: IO[bytes]) -> None:
    """Write one message. Raises OSError if nobody is at the other end."""
    pickle.dump(message, pipe, pickle.HIGHEST_PROTOCOL)
    pipe.flush()


def receive(pipe: IO[bytes]) -> Any:
    """Read one message. Raises EOFError or pickle.UnpicklingError at the end of the pipe."""
    return pickle.load(pipe)


def main() -> None:
    """Work until the parent closes the pipe, or is gone."""
    inbox, outbox = _take_pipes()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    if hasattr(os, "nice"):  # on Windows the parent sees to it
        os.nice(_NICENESS)
    path = receive(inbox)
    sys.path[:] = path + [entry for entry in sys.path if entry not in path]
    tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(inbox, tasks), daemon=True).start()
    _load_package()
    send(None, outbox)
    while True:
        send(_perform(tasks.get()), outbox)


def _take_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Standard input and output for messages alone: PyBullet prints to the C library's stdout."""
    inbox, outbox = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    return inbox, outbox


def _read(inbox: IO[bytes], tasks: "queue.SimpleQueue[bytes]") -> None:
    """Take in tasks; leave at once, in the middle of one too, when the parent has left."""
    try:
        while True:
            tasks.put(receive(inbox))
    finally:
        os._exit(0)


def _load_package() -> None:
    """Import this very package as `poise`, whatever the parent calls it and wherever on the path
    another `poise` is installed."""
    root = Path(__file__).resolve().parents[2]
    specification = importlib.util.spec_from_file_location(
        "poise", root / "__init__.py", submodule_search_locations=[str(root)]
    )
    assert specification is not None and specification.loader is not None  # it is a source file
    package = importlib.util.module_from_spec(specification)
    sys.modules["poise"] = package
    specification.loader.exec_module(package)
    importlib.import_module("poise.controller")
    world = importlib.import_module("poise.controller.simulation.world")
    world.load_engine()  # no task could do without


def _perform(task: bytes) -> tuple[bool, bytes | None, str]:
    try:
        function, args, kwargs = pickle.loads(task)
        return True, pickle.dumps(function(*args, **kwargs)), ""
    except BaseException as error:
        return False, _pickled(error), traceback.format_exc()


def _pickled(error: BaseException) -> bytes | None:
    """Bytes of an exception, None if it cannot be made again from them."""
    try:
        data = pickle.dumps(error)
        pickle.loads(data)
    except Exception:  # whatever a foreign class raises
        return None
    return data


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: GPL-3.0-or-later
"""What all searches share: tasks in batches on any `concurrent.futures.Executor`, one `poll` after
the other, so that a window need not wait for them, and a checkpoint to go on from."""

import contextlib
import json
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np

from .. import documents
from ..exceptions import CheckpointError, ExecutorError
from ..processes.workers import Remote
from ..simulation import world
from .trial import Result, digest, raise_error

#: A function of this package, and its arguments.
Task = tuple[Any, ...]
#: A search: it yields batches of items, takes their results, and returns why it ended.
Plan = Generator[list[Any], list[Result], str]
_Shown = TypeVar("_Shown")

#: Hand out tasks for about this long in one turn [s]: a window waits for it. By judgement.
_TURN = 0.01


def engine() -> dict[str, str]:
    """What computes: results are the same bit for bit only where these are."""
    cma = world.version_of("cma")
    return {"numpy": np.__version__, "cma": cma, "pybullet": world.version()}


class Polled(ABC):
    """A search that goes on, one `poll` after the other.

    Children define `_steps`, a generator that yields batches (lists of items), takes the list of
    their results and returns why it ended; `_task`, what is to be carried out for an item; and
    `_note`, which takes down results. They call `_begin` when all is ready for the first batch.

    ended: why it is over, None while it is not. wall: time since the start [s], before a resumption
    included.
    """

    def __init__(self, executor: Executor, budget: float | None) -> None:
        """executor: takes the tasks; it stays the caller's to shut down. budget: of wall time [s],
        None without limit."""
        self.ended: str | None = None
        self.wall = 0.0
        self._executor, self._budget = executor, budget
        self._clock: float | None = None
        self._futures: list[Future] = []
        self._batch: list[Any] = []

    def _begin(self) -> None:
        self._plan = self._steps()
        self._batch = next(self._plan)

    # --- What children define

    @abstractmethod
    def _steps(self) -> Plan:
        """The plan, as above."""

    @abstractmethod
    def _task(self, item: Any) -> Task:
        """(function of this package, its arguments) of an item of a batch."""

    @abstractmethod
    def _note(self, results: list[Result]) -> None:
        """Take down what a batch came to, before the search goes on with it."""

    def _beside(self) -> list[Future]:
        """Futures of tasks beside the batch, which are waited for together with the first one."""
        return []

    def _came_in(self, results: list[Result]) -> None:
        """A batch has come back from the executor: go on with it."""
        self._take(results)

    # --- Going on

    def poll(self) -> bool:
        """Take the tasks that are finished and hand out more; never waits for one. Returns whether
        the search is over. Raises PoiseError if it cannot go on."""
        if self.ended:
            return True
        self._tick()
        if self._left() <= 0:
            self._finish("budget")
            return True
        until = time.monotonic() + _TURN
        beside = self._beside()
        while not self._handed_out and time.monotonic() < until:
            self._futures.append(self._submit(*self._task(self._batch[len(self._futures)])))
        if self._handed_out and all(future.done() for future in [*beside, *self._futures]):
            self._came_in([_result(future) for future in self._futures])
        return self.ended is not None

    def _run(self, items: list[_Shown], shown: int = 0) -> Iterator[_Shown]:
        """Go on to the end, and yield what is added to a list; it may become shorter again.

        shown: how many of the items are known already.
        """
        while True:
            over = self.poll()
            shown = min(shown, len(items))
            yield from items[shown:]
            shown = len(items)
            if over:
                return
            if self._handed_out:
                left = self._left()
                wait(
                    [f for f in [*self._beside(), *self._futures] if not f.done()],
                    timeout=None if math.isinf(left) else max(0.0, left),
                    return_when=FIRST_COMPLETED,
                )

    def stop(self) -> None:
        """End now, with what there is."""
        self._finish("stopped")

    @property
    def progress(self) -> tuple[int, int]:
        """Tasks that are finished of those that are under way, and how many these are."""
        return sum(future.done() for future in self._futures), len(self._batch)

    @property
    def _handed_out(self) -> bool:
        return len(self._futures) == len(self._batch)

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Future:
        return self._executor.submit(Remote(function), *arguments)

    def _left(self) -> float:
        """Of the budget [s]."""
        return math.inf if self._budget is None else self._budget - self.wall

    def _tick(self) -> None:
        now = time.monotonic()
        self.wall += 0.0 if self._clock is None else now - self._clock
        self._clock = now

    def _finish(self, why: str) -> None:
        self.ended = self.ended or why
        for future in [*self._beside(), *self._futures]:
            future.cancel()

    def _take(self, results: list[Result]) -> None:
        """Go on with the results of the batch."""
        for result in results:
            raise_error(result)
        self._note(results)
        self._futures = []
        try:
            self._batch = self._plan.send(results)
        except StopIteration as end:
            self._finish(end.value)


def _result(future: Future) -> Result:
    try:
        return future.result()
    except CancelledError as error:
        raise ExecutorError("The workers were shut down while the search ran.") from error


#: [bytes] of a checkpoint: by judgement, more than any search writes.
_LARGEST = 1_000_000_000


def _digest(data: Any) -> str:
    return digest(json.dumps(data).encode())


def _fail(source: object, problem: str) -> NoReturn:
    raise CheckpointError(f"{source} {problem}: delete it to start anew.")


class Checkpoint:
    """A JSON file that a search goes on from; without a path there is none."""

    def __init__(self, path: str | Path | None, name: str, facts: str) -> None:
        """path: or None. name: of such a search. facts: what decides what it finds, in words."""
        self._path = None if path is None else Path(path)
        self._name, self._facts = name, facts

    def write(self, key: str, data: Any) -> str:
        """Write what is to be kept under the key of a search. Returns a sentence if it could not:
        a full disk ends nothing."""
        path = self._path
        if path is None:
            return ""
        head = json.dumps({self._name: key, "digest": _digest(data)})
        try:
            documents.write(path, head[:-1] + "," + json.dumps({"data": data})[1:])
        except OSError as error:
            return (
                f"The checkpoint '{path}' cannot be written ({error.strerror}): the search goes "
                "on, but could not be resumed from here."
            )
        return ""

    def restore(self, key: str, take: Callable[[Any], object]) -> None:
        """Call `take` with what was written under that key; nothing where there is no file.

        Raises CheckpointError if the file is another search's, or none at all.
        """
        path, source = self._path, f"The checkpoint '{self._path}'"
        if path is None or not path.exists():
            return
        content = documents.read(path, source, _fail, _LARGEST)
        if not isinstance(content, dict) or self._name not in content:
            _fail(source, f"is none of a {self._name}")
        if content[self._name] != key:
            raise CheckpointError(
                f"{source} belongs to another {self._name}: {self._facts} differ; delete it to "
                "start anew."
            )
        # Whoever changed anything in it did not know what depends on what.
        data = content.get("data")
        if _digest(data) != content.get("digest"):
            _fail(source, "was changed since it was written")
        take(data)

    def forget(self) -> None:
        """Remove the file: what was found is in safety, or not wanted."""
        if self._path is not None:
            with contextlib.suppress(OSError):  # it is in nobody's way
                self._path.unlink(missing_ok=True)

# SPDX-License-Identifier: GPL-3.0-or-later
"""An executor of many machines: Dask, an optional dependency (`poise[cluster]`).

On one machine:       dask scheduler
On each that works:   dask worker tcp://scheduler:8786 --nworkers auto --nthreads 1

Workers must be able to import `poise`: the same version of it, of NumPy and of PyBullet everywhere.
The scheduler need not. Trials hold Python's lock, so that threads within a worker gain nothing.
Not with --no-nanny: the nanny replaces workers that die, and gives them one BLAS thread.
"""

import asyncio
import concurrent.futures
import logging
import pickle
import weakref
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from ..exceptions import ExecutorError
from .workers import outliving

#: [s] until a scheduler answers, and until it has a worker: by judgement.
_PATIENCE = 5


def connect(address: str) -> concurrent.futures.Executor:
    """An Executor of the Dask cluster whose scheduler has this address ("tcp://host:8786").

    It takes what a WorkerPool takes; a task whose worker dies is run again on another one. Its
    futures can be cancelled until they are done, and raise ExecutorError if a task ends one worker
    after the other. `shutdown` closes the connection too, so that with wait=False nothing is run
    any more. Raises ExecutorError if Dask is not installed, if there is no such scheduler, if it
    has no workers, and if these cannot import Poise.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise ExecutorError(
            f"A cluster needs Dask, which cannot be imported here ({error}): install Dask's "
            "'distributed', or leave out the scheduler."
        ) from error
    _check_address(address)
    _check_scheduler(address)
    # For good: what is told of a lost connection may come after the client is closed.
    for name in ("tornado.application", "distributed.batched"):
        logging.getLogger(name).addFilter(_untold)
    with outliving():
        client = Client(address, timeout=_PATIENCE, set_as_default=False)
    try:
        _check_workers(client, address)
    except BaseException:
        client.close()
        raise
    return _Cluster(client)


def _untold(record: logging.LogRecord) -> bool:
    """Whether a record of Dask's event loop, or of its queue, is not of what the futures tell: that
    the connection is lost. For messages of that moment, and for results of cancelled tasks, they
    write tracebacks."""
    from distributed.comm import CommClosedError

    error = record.exc_info and record.exc_info[1]
    return not isinstance(error, (CommClosedError, concurrent.futures.InvalidStateError))


def _check_address(address: str) -> None:
    try:
        parts = urlsplit(address)
        valid = parts.scheme in ("tcp", "tls", "ws", "wss") and parts.hostname and parts.port
    except ValueError:  # a port that is no number, or too large
        valid = False
    if not valid:
        raise ExecutorError(
            f"'{address}' is not the address of a Dask scheduler: give one like tcp://host:8786."
        )


def _check_scheduler(address: str) -> None:
    """A Client of something that is no scheduler would wait for ever."""
    from distributed import rpc

    async def kind() -> str:
        async with rpc(address) as server:
            return (await server.identity())["type"]

    try:
        found = asyncio.run(asyncio.wait_for(kind(), _PATIENCE))
    except (OSError, ValueError) as error:
        raise ExecutorError(
            f"No Dask scheduler answers at {address}: start one there with 'dask scheduler', or "
            "see whether the address is right."
        ) from error
    if found != "Scheduler":
        raise ExecutorError(f"At {address} is a Dask {found}: give the address of its scheduler.")


def _check_workers(client: Any, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
    except TimeoutError as error:
        raise ExecutorError(
            f"The Dask scheduler at {address} has no workers: start some with "
            f"'dask worker {address} --nthreads 1'."
        ) from error
    answers = client.run(exec, "import poise.controller", {}, on_error="return")
    for worker, answer in answers.items():
        if isinstance(answer, Exception):
            raise ExecutorError(
                f"The Dask worker {worker} cannot import Poise ({type(answer).__name__}: "
                f"{answer}): install it there, with PyBullet."
            )


class _Call:
    """A call that is made where its pickle is loaded.

    With `pickle.loads` as the function that Dask knows, its scheduler passes bytes on; functions
    of Poise's it would import.
    """

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function

    def __reduce__(self) -> tuple[Callable[[], Any], tuple[()]]:
        return self._function, ()


class _Cluster(concurrent.futures.Executor):
    def __init__(self, client: Any) -> None:
        self._client = client
        # Not pure: or Dask would answer a task that it has met from memory.
        self._tasks = client.get_executor(pure=False)
        self._futures: weakref.WeakSet[concurrent.futures.Future] = weakref.WeakSet()

    def submit(
        self, function: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> concurrent.futures.Future:
        call = pickle.dumps(_Call(partial(function, *args, **kwargs)))
        theirs = self._tasks.submit(pickle.loads, call)
        ours: concurrent.futures.Future = concurrent.futures.Future()
        self._futures.add(ours)
        ours.add_done_callback(lambda ours: ours.cancelled() and theirs.cancel())
        theirs.add_done_callback(partial(_settle, ours))
        return ours

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        futures = list(self._futures)
        if cancel_futures or not wait:
            for future in futures:
                future.cancel()
        concurrent.futures.wait(futures)
        self._client.close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.shutdown(cancel_futures=kind is not None)


def _settle(ours: concurrent.futures.Future, theirs: Any) -> None:
    """Pass on what became of a task."""
    from distributed import KilledWorker

    if theirs.cancelled():
        ours.cancel()
    if not ours.set_running_or_notify_cancel():
        return
    error = theirs.exception()
    if isinstance(error, KilledWorker):
        error = ExecutorError(
            f"A task ended {error.allowed_failures + 1} Dask workers, the last one "
            f"{error.last_worker.address}: see the workers' logs."
        )
    if error:
        ours.set_exception(error)
    else:
        ours.set_result(theirs.result())

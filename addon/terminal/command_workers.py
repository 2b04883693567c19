# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes for commands that run trials, and Ctrl-C in the middle of them."""

import argparse
import logging
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import partial

from ...controller.processes import cluster
from ...controller.processes.workers import SerialExecutor, WorkerPool
from .command_arguments import whole

#: Signals that may end a command as Ctrl-C does; some systems lack one.
_ENDING = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


def worker_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that say who runs trials."""
    where = parser.add_mutually_exclusive_group().add_argument
    where(
        "--workers",
        type=whole("processes"),
        metavar="N",
        help="processes that run trials (one for each processor); 0 for none but this one",
    )
    where("--scheduler", metavar="ADDRESS", help="of a Dask cluster, such as tcp://host:8786")


@contextmanager
def executor_of(options: argparse.Namespace) -> Iterator[Executor]:
    """The Executor that the arguments name; nothing that it started is left behind."""
    executor: Executor
    end: Callable[[], None]
    if options.scheduler is not None:
        executor = cluster.connect(options.scheduler)
        # What becomes of a search whose scheduler is lost is told in words of our own.
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        end = partial(executor.shutdown, cancel_futures=True)
    elif options.workers == 0:
        executor = SerialExecutor()
        end = executor.shutdown
    else:
        executor = pool = WorkerPool(options.workers)
        end = pool.terminate
    try:
        yield executor
    finally:
        end()


@contextmanager
def interrupts() -> Iterator[list[bool]]:
    """A list that Ctrl-C, and whatever does the same, adds to. Raised at once, as it is only the
    second time, it would meet the optimiser in the middle of its arithmetic, parts of which take
    any exception for their own."""
    caught: list[bool] = []

    def note(*_: object) -> None:
        if caught:
            raise KeyboardInterrupt
        caught.append(True)

    # Not those that are ignored, as Ctrl-C for what a script starts in the background.
    before = {number: signal.getsignal(number) for number in _ENDING}
    before = {number: handler for number, handler in before.items() if callable(handler)}
    for number in before:
        signal.signal(number, note)
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

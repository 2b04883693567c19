# SPDX-License-Identifier: GPL-3.0-or-later
"""Executors on this machine, and functions that find their way into other processes.

with WorkerPool() as pool:
    futures = [pool.submit(Remote(evaluate), payload, gains, seed) for gains in candidates]

Python's own ProcessPoolExecutor does not do inside Blender: its workers run the user's script
again, cannot import the package under the name that Blender gives it, and none is replaced.
"""

import contextlib
import os
import pickle
import pkgutil
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from types import TracebackType
from typing import IO, Any

from ..exceptions import ExecutorError, SettingsError
from . import worker

#: A task is given up when it has ended this many processes: by judgement.
_DEATHS = 3

#: [s] that a process may take to end by itself: by judgement.
_LEAVING = 5

#: Threads of the BLAS make small problems many times slower.
_ONE_THREAD = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)

#: Zero where there is no such flag, which is everywhere but on Windows.
_CREATION_FLAGS = getattr(subprocess, "CREATE_NO_WINDOW", 0) | getattr(
    subprocess, "BELOW_NORMAL_PRIORITY_CLASS", 0
)


class Remote:
    """A function of this package that any executor can run.

    It pickles as `poise.<module>.<function>`, so that a process which knows the package by that
    name finds it, whatever name it has here. Called here, it calls the function.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        package, module = __package__.removesuffix(".controller.processes"), function.__module__
        if not module.startswith(f"{package}."):
            raise ValueError(f"{module}.{function.__qualname__} is not in {package}")
        self._function = function
        self._address = f"poise{module.removeprefix(package)}:{function.__qualname__}"
        self.__name__ = function.__name__  # Dask sorts its statistics by it

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        return pkgutil.resolve_name, (self._address,)


class SerialExecutor(Executor):
    """Runs each task in `submit`, in this process.

    With several BLAS threads in this process, which NumPy settles when it is loaded, trials differ
    in the last bit from those of processes with one.
    """

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future:
        """Run the task. Returns a Future that is done."""
        future: Future = Future()
        future.set_running_or_notify_cancel()
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def processors() -> int:
    """How many processes this machine runs at once."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class WorkerPool(Executor):
    """Persistent processes on this machine, clean ones: started by file, without Blender, one
    thread each, at a lower priority than the caller.

    A process that dies is replaced and its task run again. The processes end with the pool: when
    it is shut down, terminated or no longer referred to, and when this process ends, by whatever
    means.
    """

    def __init__(self, workers: int | None = None) -> None:
        """workers: how many; None for as many as there are processors. A process starts when there
        is a task for it. Raises SettingsError if there are none to be."""
        workers = processors() if workers is None else workers
        if workers < 1:
            raise SettingsError(f"A pool of {workers} workers can do nothing: give 1 or more.")
        self._crew = _Crew()
        # They must not know the pool, which could not be collected then.
        self._threads = [
            threading.Thread(target=_serve, args=(self._crew,), name=f"poise-{i}", daemon=True)
            for i in range(workers)
        ]
        for thread in self._threads:
            thread.start()
        weakref.finalize(self, self._crew.end)

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future:
        """Queue a task. The function must be importable by name in the processes: a Remote, or one
        of a library's. Returns its Future, which can be cancelled while no process has it, and
        which raises what the function raises; ExecutorError if that cannot be pickled, if no
        process can be started, if the task ended three of them, or if the pool is terminated.
        """
        future: Future = Future()
        self._crew.add(future, pickle.dumps((function, args, kwargs)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more tasks, and end the processes when those under way are done.

        wait: for that. cancel_futures: drop what no process has yet.
        """
        self._crew.close(cancel_futures)
        if wait:
            self._join()

    def terminate(self) -> None:
        """End the processes now, whatever they do. Queued tasks are cancelled; those under way
        raise ExecutorError."""
        self._crew.end()
        self._join()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.shutdown()
        else:
            self.terminate()

    def _join(self) -> None:
        for thread in self._threads:
            thread.join()


class _Crew:
    """What a pool and its threads share."""

    def __init__(self) -> None:
        #: None: leave.
        self.tasks: queue.SimpleQueue[tuple[Future, bytes] | None] = queue.SimpleQueue()
        self.processes: set[subprocess.Popen[bytes]] = set()
        # The garbage collector may call `end` from a thread that holds it.
        self.lock = threading.RLock()
        self.closed = self.ended = False

    def add(self, future: Future, data: bytes) -> None:
        with self.lock:
            if self.closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self.tasks.put((future, data))

    def close(self, cancel: bool) -> None:
        with self.lock:
            self.closed = True
            while cancel and not self.tasks.empty():
                with contextlib.suppress(queue.Empty):  # a thread was faster
                    task = self.tasks.get_nowait()
                    if task:
                        future, _ = task
                        future.cancel()
                        future.set_running_or_notify_cancel()
            self.tasks.put(None)

    def end(self) -> None:
        with self.lock:
            self.ended = True
            self.close(cancel=True)
            for process in list(self.processes):  # which threads change meanwhile
                process.kill()


class _DeathError(Exception):
    """A process ended in the middle of a task. Its message is how."""


class _Process:
    """One process that is ready for tasks."""

    def __init__(self, crew: _Crew) -> None:
        """Raises _DeathError if it was killed before it was ready, ExecutorError if it cannot be
        started."""
        self._crew = crew
        with crew.lock:
            self._process, self._errors = _start()
            assert self._process.stdin is not None and self._process.stdout is not None  # pipes
            self._inbox, self._outbox = self._process.stdin, self._process.stdout
            crew.processes.add(self._process)
            if crew.ended:
                self._process.kill()
        try:
            self.ask(list(sys.path))
        except _DeathError as death:
            if self._process.returncode < 0:
                raise
            raise ExecutorError(
                f"A worker process could not start ({self._last_words or death}): see whether "
                f"{sys.executable} finds all that Poise needs."
            ) from death

    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, message: object) -> Any:
        """Send a message and wait for the answer. Raises _DeathError."""
        try:
            worker.send(message, self._inbox)
            return worker.receive(self._outbox)
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_LEAVING)  # it may still be telling why
            self.end()
            code = self._process.returncode
            raise _DeathError(signal.strsignal(-code) if code < 0 else f"status {code}") from error

    def end(self) -> None:
        """End the process, if it has not ended, and close what it leaves."""
        process = self._process
        process.kill()
        process.wait()
        self._crew.processes.discard(process)
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").splitlines()
        self._last_words = next((line.strip() for line in reversed(lines) if line.strip()), "")
        for pipe in (self._inbox, self._outbox, self._errors):
            with contextlib.suppress(OSError):  # what was not sent cannot be
                pipe.close()


def _start() -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    """A new process and the file of its standard error."""
    try:
        errors = tempfile.TemporaryFile()  # noqa: SIM115 (it is open as long as the process)
        process = subprocess.Popen(
            # -P: the folder of the file is not to be searched for modules.
            [sys.executable, "-P", worker.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=os.environ | _ONE_THREAD,
            creationflags=_CREATION_FLAGS,
        )
    except OSError as error:
        raise ExecutorError(f"A worker process could not be started: {error}.") from error
    return process, errors


@contextlib.contextmanager
def outliving() -> Iterator[None]:
    """This thread, and those that it starts, are told by an error where somebody has ended that
    they write to. Python ignores the signal of that; Blender does not, and would end with all that
    is not saved."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows knows no such signal
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE})
    try:
        yield
    finally:
        if signal.SIGPIPE not in before and signal.SIGPIPE in signal.sigpending():
            signal.sigwait({signal.SIGPIPE})  # else it would come now
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(crew: _Crew) -> None:
    """A thread's life."""
    with outliving():
        _hand_out(crew)


def _hand_out(crew: _Crew) -> None:
    """Hand tasks to one process, and replace it when it dies, until there are no more."""
    process = None
    while (task := crew.tasks.get()) is not None:
        future, data = task
        if future.set_running_or_notify_cancel():
            process = _carry_out(crew, process, future, data)
        del task, future, data  # results may be large
    crew.tasks.put(None)  # for the other threads
    if process:
        process.end()


def _carry_out(
    crew: _Crew, process: _Process | None, future: Future, data: bytes
) -> _Process | None:
    """Have a task done. Returns the process that did it, None if it is lost."""
    for _ in range(_DEATHS):
        try:
            if process is not None and not process.alive():  # not this task's doing
                process.end()
                process = None
            process = process or _Process(crew)
            _settle(future, *process.ask(data))
            return process
        except _DeathError as death:
            process, reason = None, str(death)
            if crew.ended:
                future.set_exception(ExecutorError("The worker processes were ended early."))
                return None
        except ExecutorError as error:
            future.set_exception(error)
            return None
    future.set_exception(
        ExecutorError(
            f"A task ended {_DEATHS} worker processes, the last one with '{reason}': see whether "
            "memory runs short, and use fewer workers if it does."
        )
    )
    return None


def _settle(future: Future, succeeded: bool, data: bytes | None, trace: str) -> None:
    try:
        outcome = pickle.loads(data) if data is not None else None
    except Exception as error:  # whatever a foreign class raises
        outcome, trace, succeeded = None, trace or repr(error), False
    if succeeded:
        future.set_result(outcome)
    elif outcome is None:
        future.set_exception(ExecutorError(f"A task failed in its worker process: {trace}"))
    else:
        outcome.add_note(f"In a worker process: {trace}")
        future.set_exception(outcome)

# SPDX-License-Identifier: GPL-3.0-or-later
"""A Dask cluster as an executor: a real scheduler and real workers, on this machine."""

import asyncio
import concurrent.futures
import logging
import os
import select
import signal
import socket
import sys
import threading
from concurrent.futures import CancelledError

import numpy as np
import pytest
from helpers.processes import PATIENCE, dask_programs, free_port

from poise.controller.exceptions import ExecutorError
from poise.controller.gains.gains import Gains
from poise.controller.geometry import rotations
from poise.controller.processes import cluster
from poise.controller.processes.workers import Remote, SerialExecutor
from poise.controller.search.trial import Problem, evaluate
from poise.controller.simulation.simulation import Settings


@pytest.fixture(scope="module")
def dask():
    return pytest.importorskip("distributed", reason="Dask's distributed is not installed")


@pytest.fixture(scope="module")
def no_poise(tmp_path_factory):
    """The environment of a machine that cannot import Poise."""
    folder = tmp_path_factory.mktemp("path")
    (folder / "poise").mkdir()
    (folder / "poise" / "__init__.py").write_text("raise ImportError('not installed')")
    return os.environ | {"PYTHONPATH": str(folder)}


@pytest.fixture(scope="module")
def start(dask, tmp_path_factory):
    """start(program, *arguments, env) a program of Dask's that ends with the tests."""
    with dask_programs(lambda: tmp_path_factory.mktemp("dask") / "log") as start:
        yield start


@pytest.fixture(scope="module")
def start_scheduler(start, no_poise):
    """start_scheduler() -> the address of a new one. It knows nothing of Poise."""

    def start_scheduler():
        port = free_port()
        start("scheduler", f"--host=127.0.0.1:{port}", "--no-dashboard", env=no_poise)
        return f"tcp://127.0.0.1:{port}"

    return start_scheduler


@pytest.fixture(scope="module")
def start_workers(start, tmp_path_factory):
    """start_workers(address, count, env)"""

    def start_workers(address, count, env=None):
        options = ("--nthreads=1", "--no-dashboard", "--death-timeout=60", f"--nworkers={count}")
        folder = tmp_path_factory.mktemp("scratch")
        start("worker", address, *options, f"--local-directory={folder}", env=env)

    return start_workers


@pytest.fixture(scope="module")
def address(start_scheduler, start_workers):
    """A cluster of two workers."""
    address = start_scheduler()
    start_workers(address, 2)
    return address


@pytest.fixture
def executor(address, monkeypatch):
    monkeypatch.setattr(cluster, "_PATIENCE", PATIENCE)
    executor = cluster.connect(address)
    yield executor
    executor.shutdown(cancel_futures=True)  # not to wait for what a failed test has left


def result(future):
    return future.result(PATIENCE)


def test_functions_run_in_other_processes(executor):
    unit = executor.submit(Remote(rotations.unit), np.array([3.0, 0, 4]))
    assert result(unit).tolist() == [0.6, 0, 0.8]
    assert result(executor.submit(os.getpid)) != os.getpid()
    assert result(executor.submit(int, "z", base=36)) == 35


def test_nothing_is_answered_from_memory(executor, tmp_path):
    tally = tmp_path / "tally"
    source = f"open({str(tally)!r}, 'a').write('x')"
    for _ in range(3):
        result(executor.submit(exec, source, {}))
    assert tally.read_text() == "xxx"


def test_shutdown_finishes_what_was_submitted(address, monkeypatch):
    monkeypatch.setattr(cluster, "_PATIENCE", PATIENCE)
    with cluster.connect(address) as executor:
        futures = [executor.submit(pow, i, 2) for i in range(20)]
    assert [future.result(0) for future in futures] == [i**2 for i in range(20)]


def test_exceptions_of_a_task_come_back(executor):
    with pytest.raises(ValueError, match="seven"):
        result(executor.submit(int, "seven"))


@pytest.mark.slow
def test_results_are_those_of_this_process(executor, make_motion, arms_swing):
    problem = Problem(
        make_motion(seconds=0.5, sway=arms_swing), settings=Settings(duration=0.5, noise=5.0)
    )
    gains = Gains.default(problem.character, "foot_forces").as_dict()
    candidates = [
        gains | {"stiffness": {name: k * factor for name, k in gains["stiffness"].items()}}
        for factor in np.linspace(0.5, 2, 16).tolist()
    ]

    def generation(executor):
        payload = problem.to_bytes()
        futures = [executor.submit(Remote(evaluate), payload, c, 7) for c in candidates]
        return [{k: v for k, v in result(f).items() if k != "cpu"} for f in futures]

    expected = generation(SerialExecutor())
    assert len({trial["reward"] for trial in expected}) == 16
    assert generation(executor) == expected


def test_task_of_a_killed_worker_is_run_again(executor, tmp_path):
    path, go = tmp_path / "pipe", tmp_path / "go"
    os.mkfifo(path)
    pipe = os.open(path, os.O_RDWR)
    source = (
        "import os\n"
        f"pipe = os.open({str(path)!r}, os.O_WRONLY)\n"
        "os.write(pipe, b'%10d' % os.getpid())\n"
        f"while not os.path.exists({str(go)!r}): pass"
    )
    future = executor.submit(exec, source, {})

    def next_process():
        assert select.select([pipe], [], [], PATIENCE)[0], "no task began"
        return int(os.read(pipe, 10))

    first = next_process()
    os.kill(first, signal.SIGKILL)
    second = next_process()
    go.touch()
    assert result(future) is None
    assert first != second


def test_queued_tasks_can_be_cancelled(address, monkeypatch, tmp_path):
    monkeypatch.setattr(cluster, "_PATIENCE", PATIENCE)
    go = tmp_path / "go"
    wait = f"import os\nwhile not os.path.exists({str(go)!r}): pass"
    with pytest.raises(ZeroDivisionError), cluster.connect(address) as executor:
        futures = [executor.submit(exec, wait, {}) for _ in range(8)]
        assert futures[-1].cancel()
        raise ZeroDivisionError
    go.touch()
    for future in futures:
        with pytest.raises(CancelledError):
            future.result(0)


@pytest.fixture
def logged():
    """What Dask's event loop logs, as texts."""
    texts, logger = [], logging.getLogger("tornado.application")
    handler = logging.Handler()
    handler.emit = lambda record: texts.append(handler.format(record))
    logger.addHandler(handler)
    yield texts
    logger.removeHandler(handler)


@pytest.mark.parametrize("error", ["CommClosedError", "InvalidStateError", "ZeroDivisionError"])
def test_a_lost_connection_is_told_by_futures_alone(executor, logged, monkeypatch, error):
    comm = pytest.importorskip("distributed.comm")
    errors = {kind.__name__: kind for kind in (comm.CommClosedError, ZeroDivisionError)}
    errors["InvalidStateError"] = concurrent.futures.InvalidStateError
    ran = threading.Event()

    def send(*_messages):
        ran.set()
        raise errors[error]("as a test wants it")

    with monkeypatch.context() as context:
        context.setattr(executor._client.scheduler_comm, "send", send)
        future = executor.submit(abs, -1)
        assert ran.wait(PATIENCE)
        executor._client.sync(asyncio.sleep, 0)
    future.cancel()
    if error == "ZeroDivisionError":
        assert "as a test wants it" in "".join(logged)
    else:
        assert not logged


@pytest.mark.slow
def test_task_that_ends_every_worker_is_given_up(executor):
    with pytest.raises(ExecutorError, match=r"A task ended 4 Dask workers, the last one tcp://"):
        result(executor.submit(os._exit, 1))
    assert result(executor.submit(abs, -1)) == 1


# --- Bad input ----------------------------------------------------------------------------------


def test_dask_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ExecutorError, match="install Dask's 'distributed'"):
        cluster.connect("tcp://127.0.0.1:8786")


@pytest.mark.parametrize(
    "address", ["", "host", "host:8786", "tcp://host", "tcp://:1", "tcp://host:port", "tcp://h:1e5"]
)
def test_address_is_malformed(dask, address):
    with pytest.raises(ExecutorError, match=f"'{address}' is not the address of a Dask scheduler"):
        cluster.connect(address)


@pytest.mark.parametrize("listens", [False, True])
def test_no_scheduler_there(dask, monkeypatch, listens):
    monkeypatch.setattr(cluster, "_PATIENCE", 0.5)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        if listens:
            server.listen()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ExecutorError, match=f"No Dask scheduler answers at {address}: start"):
            cluster.connect(address)


@pytest.mark.slow(captured=False)
def test_scheduler_without_useful_workers(start_scheduler, start_workers, no_poise, monkeypatch):
    monkeypatch.setattr(cluster, "_PATIENCE", PATIENCE)
    address = start_scheduler()
    cluster._check_scheduler(address)
    monkeypatch.setattr(cluster, "_PATIENCE", 1)
    with pytest.raises(ExecutorError, match=f"scheduler at {address} has no workers: start some"):
        cluster.connect(address)
    monkeypatch.setattr(cluster, "_PATIENCE", PATIENCE)
    start_workers(address, 1, no_poise)
    with pytest.raises(ExecutorError, match=r"cannot import Poise \(ImportError: not installed\)"):
        cluster.connect(address)


def test_dask_s_queue_tells_of_other_faults_alone(executor, logged):
    comm = pytest.importorskip("distributed.comm")
    queue = logging.getLogger("distributed.batched")
    queue.addHandler(logging.getLogger("tornado.application").handlers[-1])  # that of `logged`
    try:
        queue.error("lost", exc_info=comm.CommClosedError("the connection"))
        queue.error("broken", exc_info=ValueError("something else"))
    finally:
        queue.removeHandler(queue.handlers[-1])
    assert len(logged) == 1 and "something else" in logged[0]

# SPDX-License-Identifier: GPL-3.0-or-later
"""Executors: clean processes that are replaced when they die, and of which none is left behind."""

import gc
import importlib
import multiprocessing
import os
import pickle
import select
import signal
import subprocess
import sys
from concurrent.futures import CancelledError, ProcessPoolExecutor, ThreadPoolExecutor, wait
from pathlib import Path

import numpy as np
import pytest

import poise
from poise.controller.exceptions import ExecutorError, SettingsError
from poise.controller.gains.gains import Gains
from poise.controller.geometry import rotations
from poise.controller.processes.workers import Remote, SerialExecutor, WorkerPool
from poise.controller.search.trial import Problem, evaluate
from poise.controller.simulation.simulation import Settings

ROOT = Path(poise.__file__).resolve().parent
PATIENCE = 60  # [s] at most, for what takes a moment

pytestmark = pytest.mark.skipif(
    not hasattr(os, "pidfd_open"), reason="waits for processes by Linux's pidfd_open"
)

#: What the processes are given to do, in a module that they can import.
TASKS = """
import ctypes, os, signal, sys
from pathlib import Path

def facts():
    return {
        "modules": list(sys.modules),
        "package": sys.modules["poise"].__file__,
        "threads": os.environ["OPENBLAS_NUM_THREADS"],
        "niceness": os.nice(0),
        "path": sys.path,
    }

def echo(value):
    return value

def noise():
    print("noise")
    sys.stdout.flush()
    os.write(1, b"noise")
    ctypes.CDLL(None).puts(b"noise")
    return "result"

def announce(pipe):
    descriptor = os.open(pipe, os.O_WRONLY)
    os.write(descriptor, b"%10d" % os.getpid())
    os.close(descriptor)

def busy(pipe, until=None):
    announce(pipe)
    while until is None or not os.path.exists(until):
        pass
    return "done"

DEATHS = {
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "exit": lambda: os._exit(3),
    "segfault": lambda: ctypes.string_at(0),
}

def die(how, times, tally):
    with open(tally, "a") as file:
        file.write("x")
    if os.path.getsize(tally) <= times:
        DEATHS[how]()
    return "alive"

class Awkward(Exception):
    def __init__(self, one, two):
        super().__init__(one)

def fail_awkwardly():
    raise Awkward("boom", 2)

def local_function():
    return lambda: None
"""

#: As in Blender: the package has another name, and there is no `poise`.
AS_EXTENSION = f"""
import importlib.util, os, sys, types
import numpy as np
sys.modules["poise"] = None
for name in ("bl_ext", "bl_ext.user_default"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = []
name = "bl_ext.user_default.poise"
specification = importlib.util.spec_from_file_location(
    name, {str(ROOT / "__init__.py")!r}, submodule_search_locations=[{str(ROOT)!r}]
)
sys.modules[name] = importlib.util.module_from_spec(specification)
specification.loader.exec_module(sys.modules[name])
from bl_ext.user_default.poise.controller.geometry import rotations
from bl_ext.user_default.poise.controller.processes.workers import Remote, WorkerPool
"""


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    """The module of TASKS."""
    folder = tmp_path_factory.mktemp("tasks")
    (folder / "poise_test_tasks.py").write_text(TASKS)
    sys.path.append(str(folder))
    yield importlib.import_module("poise_test_tasks")
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def pool(tasks):
    """Two processes that tests share."""
    with WorkerPool(2) as pool:
        yield pool


class Pipe:
    """A pipe with a name, through which tasks say that they run."""

    def __init__(self, path):
        os.mkfifo(path)
        self.path = str(path)
        self._pipe = os.open(path, os.O_RDWR)
        self._watched = []

    def next(self):
        """Id of the process whose task comes next."""
        ready, _, _ = select.select([self._pipe], [], [], PATIENCE)
        assert ready, "no task began"
        process = int(os.read(self._pipe, 10))
        self._watched.append(os.pidfd_open(process))  # stays valid after its end
        return process

    def all_end(self):
        """Wait for all processes that came; whether they ended."""
        return all(select.select([p], [], [], PATIENCE)[0] for p in self._watched)


@pytest.fixture
def pipe(tmp_path):
    return Pipe(tmp_path / "pipe")


def result(future):
    return future.result(PATIENCE)


# --- Where tasks run ----------------------------------------------------------------------------


def test_processes_are_clean(pool, tasks):
    facts = result(pool.submit(tasks.facts))
    assert "bpy" not in facts["modules"]
    assert facts["threads"] == "1"
    assert facts["niceness"] > os.nice(0)
    assert facts["package"] == str(ROOT / "__init__.py")
    assert set(sys.path) <= set(facts["path"])
    assert str(ROOT / "controller") not in facts["path"]  # `motion`, `world`, … are no modules


def test_processes_persist_and_work_side_by_side(tasks, pipe, tmp_path):
    go = tmp_path / "go"
    with WorkerPool(2) as pool:
        first = [pool.submit(tasks.busy, pipe.path, str(go)) for _ in range(2)]
        processes = {pipe.next(), pipe.next()}  # neither ends before both have come
        go.touch()
        assert [result(future) for future in first] == ["done"] * 2
        again = {result(pool.submit(os.getpid)) for _ in range(8)}
    assert len(processes) == 2
    assert again <= processes


def test_package_by_file_wins_over_another_on_the_path(monkeypatch, tmp_path):
    (tmp_path / "poise").mkdir()
    (tmp_path / "poise" / "__init__.py").write_text("raise ImportError('the wrong one')")
    monkeypatch.syspath_prepend(tmp_path)
    with WorkerPool(1) as pool:
        unit = result(pool.submit(Remote(rotations.unit), np.array([3.0, 0, 4])))
    assert unit.tolist() == [0.6, 0, 0.8]


def test_output_does_not_disturb_results(pool, tasks):
    assert [result(pool.submit(tasks.noise)) for _ in range(4)] == ["result"] * 4


def test_large_tasks_and_results(pool, tasks):
    data = np.random.default_rng(0).bytes(20_000_000)
    assert result(pool.submit(tasks.echo, data)) == data


def test_map_keeps_the_order(pool, tasks):
    assert list(pool.map(tasks.echo, range(50))) == list(range(50))


@pytest.mark.parametrize("workers", [0, -1])
def test_pool_without_workers(workers):
    with pytest.raises(SettingsError, match=f"A pool of {workers} workers can do nothing"):
        WorkerPool(workers)


# --- Functions in other processes ---------------------------------------------------------------


def test_remote_pickles_by_the_public_name_and_nothing_else():
    remote = Remote(rotations.unit)
    function, (name,) = remote.__reduce__()
    assert (function.__module__, name) == ("pkgutil", "poise.controller.geometry.rotations:unit")
    assert pickle.loads(pickle.dumps(remote)) is rotations.unit
    assert remote(np.array([0.0, 2])).tolist() == [0, 1]


def test_remote_refuses_functions_of_others():
    with pytest.raises(ValueError, match=r"fspath is not in poise"):
        Remote(os.fspath)


def test_the_same_call_on_every_executor(pool):
    spawn = multiprocessing.get_context("spawn")
    executors = (
        SerialExecutor(),
        ThreadPoolExecutor(1),
        ProcessPoolExecutor(1, mp_context=spawn),
        pool,
    )
    for executor in executors:
        unit = result(executor.submit(Remote(rotations.unit), np.array([3.0, 4])))
        assert unit.tolist() == [0.6, 0.8]
        if executor is not pool:
            executor.shutdown()


def test_package_under_the_name_that_blender_gives_it(tmp_path):
    code = f"""{AS_EXTENSION}
with WorkerPool(1) as pool:
    unit = pool.submit(Remote(rotations.unit), np.array([3.0, 4])).result({PATIENCE})
    assert unit.tolist() == [0.6, 0.8]
    error = pool.submit(Remote(rotations.unit), "text").exception({PATIENCE})
    assert isinstance(error, ValueError), error
assert [name for name in sys.modules if name.split(".")[0] == "poise"] == ["poise"]
print("fine")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, cwd=tmp_path
    )
    assert done.stdout.strip().endswith("fine"), done.stderr


# --- What goes wrong ----------------------------------------------------------------------------


def test_a_process_that_has_ended_does_not_end_blender(tmp_path):
    """Blender does not ignore the signal of a pipe that nobody reads."""
    code = f"""{AS_EXTENSION}
import signal
from bl_ext.user_default.poise.controller.processes import workers
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
workers._Process.alive = lambda process: True  # it ends between that and the task
with WorkerPool(1) as pool:
    for number in range(2):
        unit = pool.submit(Remote(rotations.unit), np.array([3.0, 4])).result({PATIENCE})
        assert unit.tolist() == [0.6, 0.8]
        for process in [*pool._crew.processes]:
            process.kill()
            process.wait()
print("fine")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, cwd=tmp_path
    )
    assert done.returncode == 0 and done.stdout.strip().endswith("fine"), done.stderr


def test_exceptions_of_a_task_come_back(pool):
    error = pool.submit(int, "seven").exception(PATIENCE)
    assert type(error) is ValueError
    assert "seven" in str(error)
    assert "Traceback" in error.__notes__[0]


def test_exception_that_cannot_be_pickled(pool, tasks):
    error = pool.submit(tasks.fail_awkwardly).exception(PATIENCE)
    assert type(error) is ExecutorError
    assert "Awkward: boom" in str(error)


def test_result_that_cannot_be_pickled(pool, tasks):
    error = pool.submit(tasks.local_function).exception(PATIENCE)
    assert "local_function.<locals>.<lambda>" in str(error)


def test_task_that_cannot_be_pickled(pool):
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pool.submit(lambda: None)


@pytest.mark.parametrize("how", ["kill", "exit", "segfault"])
def test_task_whose_process_dies_is_run_again(pool, tasks, tmp_path, how):
    tally = tmp_path / "tally"
    dying = pool.submit(tasks.die, how, 2, str(tally))
    others = [pool.submit(tasks.echo, i) for i in range(10)]
    assert result(dying) == "alive"
    assert tally.stat().st_size == 3
    assert [result(future) for future in others] == list(range(10))


def test_killed_from_outside(tasks, pipe, tmp_path):
    go = tmp_path / "go"
    with WorkerPool(1) as pool:
        future = pool.submit(tasks.busy, pipe.path, str(go))
        first = pipe.next()
        os.kill(first, signal.SIGKILL)
        second = pipe.next()
        go.touch()
        assert result(future) == "done"
    assert first != second
    assert pipe.all_end()


def test_ctrl_c_is_the_parent_s_to_answer(tasks, pipe, tmp_path):
    go = tmp_path / "go"
    with WorkerPool(1) as pool:
        future = pool.submit(tasks.busy, pipe.path, str(go))
        process = pipe.next()
        os.kill(process, signal.SIGINT)  # as the terminal does to all processes
        go.touch()
        assert result(future) == "done"
        assert result(pool.submit(os.getpid)) == process


def test_task_that_ends_three_processes_is_given_up(pool, tasks, tmp_path):
    tally = tmp_path / "tally"
    error = pool.submit(tasks.die, "kill", 99, str(tally)).exception(PATIENCE)
    assert type(error) is ExecutorError
    assert str(error).startswith("A task ended 3 worker processes, the last one with 'Killed': ")
    assert tally.stat().st_size == 3
    assert result(pool.submit(tasks.echo, "next")) == "next"


def test_process_that_dies_between_tasks_is_not_the_next_task_s_fault(tasks, pipe, tmp_path):
    (tmp_path / "go").touch()
    with WorkerPool(1) as pool:
        assert result(pool.submit(tasks.busy, pipe.path, str(tmp_path / "go"))) == "done"
        os.kill(pipe.next(), signal.SIGKILL)
        assert pipe.all_end()
        assert result(pool.submit(tasks.die, "kill", 2, str(tmp_path / "tally"))) == "alive"


def test_processes_that_cannot_start(monkeypatch, tmp_path):
    (tmp_path / "pybullet.py").write_text("raise ImportError('no PyBullet for this Python')")
    monkeypatch.syspath_prepend(tmp_path)
    with WorkerPool(2) as pool:
        errors = [pool.submit(os.getpid).exception(PATIENCE) for _ in range(3)]
    for error in errors:
        assert type(error) is ExecutorError
        assert str(error).startswith("A worker process could not start (")
        assert "no PyBullet for this Python" in str(error)


def test_no_python_to_start(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nothing"))
    with WorkerPool(1) as pool, pytest.raises(ExecutorError, match=r"could not be started: .*noth"):
        result(pool.submit(os.getpid))


# --- The end ------------------------------------------------------------------------------------


def test_queued_tasks_can_be_cancelled_and_running_ones_terminated(tasks, pipe):
    pool = WorkerPool(1)
    running = pool.submit(tasks.busy, pipe.path)
    queued = [pool.submit(os.getpid) for _ in range(3)]
    pipe.next()
    assert not running.cancel()
    assert queued[0].cancel()
    pool.terminate()
    assert pipe.all_end()
    assert wait([running, *queued], timeout=0).not_done == set()
    assert str(running.exception()) == "The worker processes were ended early."
    assert [future.cancelled() for future in queued] == [True] * 3
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(os.getpid)


def test_shutdown_finishes_what_was_submitted(tasks, pipe, tmp_path):
    (tmp_path / "go").touch()
    pool = WorkerPool(2)
    futures = [pool.submit(tasks.busy, pipe.path, str(tmp_path / "go")) for _ in range(6)]
    for _ in futures:
        pipe.next()
    pool.shutdown()
    assert [future.result(0) for future in futures] == ["done"] * 6
    assert pipe.all_end()
    pool.shutdown()  # a second time does no harm


def test_shutdown_can_drop_what_is_queued(tasks, pipe, tmp_path):
    go = tmp_path / "go"
    pool = WorkerPool(1)
    running = pool.submit(tasks.busy, pipe.path, str(go))
    queued = pool.submit(tasks.echo, 1)
    pipe.next()
    pool.shutdown(wait=False, cancel_futures=True)
    with pytest.raises(CancelledError):
        result(queued)
    go.touch()
    assert result(running) == "done"
    assert pipe.all_end()


def test_exception_in_with_ends_the_processes(tasks, pipe):
    with pytest.raises(ZeroDivisionError), WorkerPool(2) as pool:
        futures = [pool.submit(tasks.busy, pipe.path) for _ in range(4)]
        pipe.next(), pipe.next()
        raise ZeroDivisionError
    assert pipe.all_end()
    assert all(future.done() for future in futures)


def test_pool_that_nobody_refers_to_ends(tasks, pipe):
    pool = WorkerPool(2)
    futures = [pool.submit(tasks.busy, pipe.path) for _ in range(2)]
    pipe.next(), pipe.next()
    del pool
    gc.collect()
    assert pipe.all_end()
    assert isinstance(futures[0].exception(PATIENCE), ExecutorError)


@pytest.mark.parametrize(
    "ending", ["os.kill(os.getpid(), 9)", "os._exit(0)", "sys.exit()", "1 / 0"]
)
def test_no_process_outlives_its_parent(tasks, pipe, ending):
    code = f"""{AS_EXTENSION}
sys.path.append({os.path.dirname(tasks.__file__)!r})
import poise_test_tasks
pool = WorkerPool(2)
futures = [pool.submit(poise_test_tasks.busy, {pipe.path!r}) for _ in range(4)]
sys.stdin.read()
{ending}
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    )
    first, second = pipe.next(), pipe.next()  # in the middle of their tasks
    assert first != second
    parent.communicate(timeout=PATIENCE)
    assert pipe.all_end()


# --- Results ------------------------------------------------------------------------------------


def test_serial_executor_runs_at_once():
    future = SerialExecutor().submit(divmod, 7, 2)
    assert future.done()
    assert future.result() == (3, 1)
    assert isinstance(SerialExecutor().submit(divmod, 7, 0).exception(), ZeroDivisionError)


def test_results_do_not_depend_on_the_executor(make_motion, arms_swing):
    motion = make_motion(seconds=0.5, sway=arms_swing)
    problem = Problem(motion, settings=Settings(duration=0.5, noise=5.0))
    start = Gains.default(problem.character, "foot_forces").as_dict()
    candidates = [start | {"stiffness": _scaled(start["stiffness"], seed)} for seed in range(8)]
    payload = problem.to_bytes()

    def generation(executor):
        with executor:
            futures = [executor.submit(Remote(evaluate), payload, c, 7) for c in candidates]
            return [{k: v for k, v in result(f).items() if k != "cpu"} for f in futures]

    expected = generation(SerialExecutor())
    assert len({trial["reward"] for trial in expected}) == 8
    assert generation(WorkerPool(3)) == expected


def _scaled(stiffness, seed):
    factors = np.exp(np.random.default_rng(seed).normal(0, 0.4, len(stiffness)))
    return dict(zip(stiffness, factors * list(stiffness.values()), strict=True))

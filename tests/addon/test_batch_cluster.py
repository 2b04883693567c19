# SPDX-License-Identifier: GPL-3.0-or-later
"""`poise batch --scheduler`: on a real Dask scheduler with two workers on this machine, one of
which is killed in the middle of a shot."""

import json
import os
import select
import signal
import sys
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from helpers.commands import poise
from helpers.processes import PATIENCE, dask_programs, free_port

from poise.addon.command import command_batch
from poise.controller.exceptions import ExecutorError
from poise.controller.processes import cluster

pytestmark = pytest.mark.once

#: A package that the workers take for Poise's command: it says which shot it bakes for whom, waits
#: until it may go on, and, as Poise on its leash, writes nothing once who started it is dead.
FAKE = """
import os, select, sys, time
arguments = sys.argv[1:]
options = dict(a[2:].split("=", 1) for a in arguments if "=" in a)
source = arguments[1]
if "slow" in source:
    with open(os.environ["POISE_TEST_PIPE"], "w") as pipe:
        pipe.write(f"{os.getppid():10d}")
    while not os.path.exists(os.environ["POISE_TEST_GO"]):
        time.sleep(0.01)
    if select.select([0], [], [], 0)[0]:
        sys.exit("The worker is dead.")
report = '{"success": true, "why": ""}'
for name, text in (("output", "result"), ("strip", "<svg/>"), ("report", report)):
    with open(options[name], "w") as file:
        file.write(text)
"""


@pytest.fixture(scope="module")
def dask():
    return pytest.importorskip("distributed", reason="Dask's distributed is not installed")


@pytest.fixture
def start(dask, tmp_path):
    """start(program, *arguments) a program of Dask's that ends with the test."""
    environment = os.environ | {
        "POISE_TEST_PIPE": str(tmp_path / "pipe"),
        "POISE_TEST_GO": str(tmp_path / "go"),
    }
    numbers = count()
    with dask_programs(lambda: tmp_path / f"{next(numbers)}.log") as start:
        yield partial(start, env=environment)


@pytest.fixture
def address(start, tmp_path, monkeypatch):
    """The address of a cluster of two workers."""
    monkeypatch.setattr(cluster, "_PATIENCE", PATIENCE)
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    start("scheduler", f"--host=127.0.0.1:{port}", "--no-dashboard")
    scratch = f"--local-directory={tmp_path / 'scratch'}"
    start("worker", address, "--nthreads=1", "--nworkers=2", "--no-dashboard", scratch)
    return address


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """The stand-in as the program that bakes."""
    script = tmp_path / "fake.py"
    script.write_text(FAKE)
    own = command_batch._tasks

    def tasks(*arguments):
        program = (sys.executable, str(script))
        return [replace(task, program=program) for task in own(*arguments)]

    monkeypatch.setattr(command_batch, "_tasks", tasks)


@pytest.mark.slow
def test_shot_of_a_killed_worker_is_baked_by_another(address, fake, tmp_path, monkeypatch, capsys):
    shots, output, pipe = tmp_path / "in", tmp_path / "out", tmp_path / "pipe"
    shots.mkdir()
    for name in ("a.bvh", "b.bvh", "c.bvh", "slow.bvh"):
        (shots / name).write_text("")
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR)
    workers = []
    follow = command_batch._follow

    def killing(*arguments):
        """Kill the worker that has the slow shot, see it begin elsewhere, and let it go on."""
        for _ in range(2):
            assert select.select([reader], [], [], PATIENCE)[0], "the shot did not begin"
            workers.append(int(os.read(reader, 10)))
            if len(workers) == 1:
                os.kill(workers[0], signal.SIGKILL)
        (tmp_path / "go").touch()
        return follow(*arguments)

    summary = tmp_path / "night.json"
    command = ("batch", shots, "--output", output, "--json", summary, "--scheduler", address)
    with monkeypatch.context() as patch:
        patch.setattr(command_batch, "_follow", killing)
        assert poise(*command) == 0
    os.close(reader)
    assert len(set(workers)) == 2
    told = json.loads(summary.read_text())
    assert told["totals"] == {
        "cleaned": 0,
        "stood": 4,
        "fell": 0,
        "hung": 0,
        "failed": 0,
        "left": 0,
    }
    assert [shot["shot"] for shot in told["shots"]] == ["a.bvh", "b.bvh", "c.bvh", "slow.bvh"]
    logs = {path.name: path.read_text().count("== ") for path in output.glob("*.log")}
    assert logs == {"a.bvh.log": 1, "b.bvh.log": 1, "c.bvh.log": 1, "slow.bvh.log": 2}
    assert not [
        path for path in output.iterdir() if path.name.startswith(".") or ".lock" in path.name
    ]
    assert poise(*command) == 0
    assert "4 of 4 shots are done already." in capsys.readouterr().err


@pytest.mark.slow
def test_real_shot_on_a_cluster(address, clips, tmp_path):
    shots = tmp_path / "in"
    shots.mkdir()
    (shots / "stand.bvh").write_bytes(clips["stand"].path.read_bytes())
    command = ("batch", shots, "--output", tmp_path / "out", "--scheduler", address)
    assert poise(*command, "--frames=1:30") == 0
    assert (tmp_path / "out" / "stand.bvh.blend").is_file()


# --- What goes wrong, without a cluster ---------------------------------------------------------


class Cluster:
    """An executor whose tasks end as they are told to."""

    def __init__(self, outcome):
        self.outcome = outcome

    def submit(self, function, fields):
        future = Future()
        outcome = self.outcome(fields)
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
        return future

    def shutdown(self, **_options):
        pass


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        (lambda _: ExecutorError("A task ended 4 Dask workers: see their logs."), "A task ended 4"),
        (
            lambda fields: {"state": "stood", "shot": fields["name"]},
            "was written elsewhere and is not seen here: let the workers of the cluster have the",
        ),
    ],
)
def test_shots_that_the_cluster_loses(tmp_path, monkeypatch, capsys, outcome, why):
    shots = tmp_path / "in"
    shots.mkdir()
    (shots / "a.bvh").write_text("")
    monkeypatch.setattr(cluster, "connect", lambda address: Cluster(outcome))
    command = ("batch", shots, "--output", tmp_path / "out", "--scheduler=tcp://h:1")
    assert poise(*command) == 1
    assert f"a.bvh failed, 0 s: {why}" in capsys.readouterr().err.replace(
        str(tmp_path), ""
    ).replace("'/out/a.bvh.blend' ", "")
    assert not Path(tmp_path, "out", "a.bvh.poise.json").exists()


def test_no_such_scheduler(tmp_path, dask, capsys):
    (tmp_path / "a.bvh").write_text("")
    command = ("batch", tmp_path, "--output", tmp_path / "out", "--scheduler=nowhere")
    assert poise(*command) == 1
    assert "'nowhere' is not the address of a Dask scheduler" in capsys.readouterr().err

# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests of other processes share."""

import contextlib
import os
import select
import socket
import subprocess
import sys

PATIENCE = 180  # [s] at most, for what takes a moment, or a while on a busy machine


def assert_ends(pid):
    """A process has ended, or does so within moments."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    assert select.select([handle], [], [], PATIENCE)[0], "it goes on"
    os.close(handle)


def free_port():
    """A port of this machine that nobody listens to."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextlib.contextmanager
def dask_programs(make_log):
    """start(program, *arguments, env) a program of Dask's; all end with this. make_log() -> path of
    what one of them writes."""
    processes = []

    def start(program, *arguments, env):
        command = [sys.executable, "-m", f"distributed.cli.dask_{program}", *arguments]
        with open(make_log(), "w") as log:
            processes.append(subprocess.Popen(command, env=env, stdout=log, stderr=log))

    yield start
    for process in reversed(processes):  # workers first
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()

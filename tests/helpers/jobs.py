# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests of searches in the window share."""

import time
from concurrent.futures import Executor, Future

BUDGET = 0.005  # [s] of a slice of work
_PATIENCE = 120.0  # [s] at most, for what takes a moment on a quiet machine


class Pool(Executor):
    """Does at once what is submitted, in this process; counts the pools that are open."""

    open = 0

    def __init__(self, _workers):
        Pool.open += 1

    def submit(self, function, /, *arguments):
        future = Future()
        future.set_result(function(*arguments))
        return future

    def terminate(self):
        Pool.open -= 1


def step_until(job, condition):
    """Work in small slices until a condition holds."""
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        if condition():
            return
        assert not job.step(BUDGET), "it finished too early"
    raise AssertionError("it never came to that")


def finish(job):
    while not job.step(BUDGET):
        pass

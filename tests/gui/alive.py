# SPDX-License-Identifier: GPL-3.0-or-later
"""How long the window stands still: the longest time between two turns of its main loop while Poise
reads, simulates, bakes and searches; and what memory simulations leave behind.

The window is small here: without a graphics card most of a turn is Blender's own drawing.
Two things are checked. The longest time from one turn of the main loop to the next, as a share of
the whole job: a machine that is slow, or shares its cores, is as slow with either. What was done in
one piece, and so froze the window, has a share of nearly 1. And the longest that Blender's own
thread works in a turn of a job, in processor time, by what a fixed piece of work takes in this run.
The times are told beside it.
"""

import gc
import subprocess
import time

import bpy

SIZE = 640, 420
#: Length of a trial [s].
DURATION = 3.0
#: Most that one turn of the window's main loop may take, as a share of the job it is part of.
LONGEST_SHARE = 0.2
#: Most that Blender's own thread may work in a turn, beside drawing [yardsticks of processor time].
LONGEST_TURN = 5
#: Rounds of simulating, and how many of them each mean of the memory is over.
ROUNDS, MEAN_OF = 12, 3
#: What six rounds may add to the memory of the process [MB]; one shot has about 13. What a thread
#: took for a world is given back in lumps of up to 30.
GROWTH = 40.0


def scenario(driver):
    """Simulate, bake, bake anew, check, clean and search in a small window; then simulate and
    discard again and again."""
    yield from driver.open("arm")
    yield from _shrink(driver)
    driver.module("operators.optimize").DURATION = DURATION
    driver.hurry(False)
    driver.gaps.clear()
    found, turns = {}, driver.time_steps()
    for what, station in (
        ("simulate", _press(driver, "simulate")),
        ("bake", _press(driver, "bake")),
        ("bake anew", _press(driver, "bake")),
        ("check", _press(driver, "check_clip")),
        ("clean up", _press(driver, "clean_up")),
        ("optimize", _optimize(driver)),
        ("rectify", _rectify(driver)),
    ):
        yield 1.0
        driver.longest_gap, started = 0.0, time.perf_counter()
        yield from station
        found[what] = driver.longest_gap, time.perf_counter() - started
        yield 0.5
    words = "; ".join(
        f"{what} {1000 * gap:.0f} of {1000 * whole:.0f}" for what, (gap, whole) in found.items()
    )
    driver.say(f"longest time between two turns of the whole [ms]: {words}")
    words = ", ".join(f"{what} {1000 * gap:.0f} ms" for what, gap in driver.gaps.items())
    driver.say(f"in the stages of a job: {words}")
    yard = driver.yardstick()
    turns = {what.removesuffix(" (CPU)"): cpu for what, cpu in turns.items() if "(CPU)" in what}
    words = ", ".join(f"{what} {1000 * cpu:.0f} ms" for what, cpu in turns.items())
    driver.say(f"longest turn of a job, of its thread's processor time: {words}")
    driver.say(f"the yardstick: {1000 * yard:.1f} ms")
    for what, cpu in turns.items():
        longest = cpu / yard
        driver.check(f"short turns: {what}", longest < LONGEST_TURN, f"{longest:.1f} yardsticks")
    for what, (gap, whole) in found.items():
        share = gap / whole
        driver.check(f"no freeze: {what}", share < LONGEST_SHARE, f"{share:.2f} of the whole")
    yield from driver.shot("alive")
    driver.hurry()
    yield from _rounds(driver)


def _shrink(driver):
    found = subprocess.run(
        ["xdotool", "search", "--onlyvisible", "--class", "Blender"],
        capture_output=True,
        text=True,
        check=True,
    )
    window = found.stdout.split()[-1]
    subprocess.run(["xdotool", "windowsize", window, *map(str, SIZE)], check=True)
    yield 2.0


def _idle(driver):
    return lambda: driver.session.job() is None


def _press(driver, name):
    with _override(driver):
        getattr(bpy.ops.poise, name)("INVOKE_DEFAULT")
    yield _idle(driver)


def _optimize(driver):
    settings = bpy.context.scene.poise.tuning
    settings.target, settings.population, settings.workers = 1.99, 4, 1
    settings.generations = 1
    with _override(driver):
        bpy.ops.poise.optimize("INVOKE_DEFAULT")
    yield _idle(driver)


def _rectify(driver):
    settings = bpy.context.scene.poise
    before, settings.method, settings.rectification.preset = settings.method, "RECTIFY", "DRAFT"
    with _override(driver):
        bpy.ops.poise.simulate("INVOKE_DEFAULT")
    yield lambda: driver.nodes() > 2
    bpy.ops.poise.cancel()
    yield _idle(driver)
    settings.method = before


def _override(driver):
    return bpy.context.temp_override(window=driver.window, area=driver.area, region=driver.view)


def _rounds(driver):
    """Simulate and discard; what is left of it in memory."""
    sizes = []
    for _ in range(ROUNDS):
        yield from _press(driver, "simulate")
        yield 0.5
        with _override(driver):
            bpy.ops.poise.discard()
        yield 0.2
        gc.collect()
        sizes.append(_memory())
    words = " ".join(f"{size:.0f}" for size in sizes)
    driver.say(f"memory after each round [MB]: {words}")
    early, late = sizes[MEAN_OF : 2 * MEAN_OF], sizes[-MEAN_OF:]
    growth = (sum(late) - sum(early)) / MEAN_OF
    driver.check("memory does not grow", growth < GROWTH, f"{growth:.1f} MB; {words}")


def _memory():
    """Resident memory of this process [MB]."""
    with open("/proc/self/status", encoding="ascii") as file:
        line = next(line for line in file if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024

# SPDX-License-Identifier: GPL-3.0-or-later
"""Speed, as `measures.md` defines it: `make bench`, about 8 minutes. Writes build/bench.md.

Each figure is the median of rounds that take turns, with the least and the most. The bare steps of
`overhead` are those of a run whose recorded torques are applied again: the same body goes through
the same contacts, and only `stepSimulation` is timed. How long all of it took stands below.
"""

import importlib.util
import os
import platform
import statistics
import sys
import time
import types
from functools import partial
from pathlib import Path

import bpy
import numpy as np
import pybullet
import pybullet_data

from poise.addon.blender import compat, keys
from poise.addon.rigs import reference, sampling
from poise.addon.shots.shot import Shot, ShotOptions, versions
from poise.controller import (
    Character,
    Gains,
    Problem,
    Recording,
    Search,
    SearchSettings,
    Settings,
    Simulation,
    WorkerPool,
)
from poise.controller.control import foot_forces, legs, tracking
from poise.controller.control.controller import Controller
from poise.controller.processes.workers import Remote
from poise.controller.search.trial import evaluate
from poise.controller.simulation.world import World
from poise.experiments import falls, together
from poise.experiments.clips import captured

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 3
SECONDS = 10.0
TRIALS = 8
RATES = (240.0, 300.0, 600.0)
MODES = ("foot_forces", "virtual_forces")
#: Of `make falls` and `make together`, one in so many, from which on.
FALLS, PAIRS = slice(3, None, 25), slice(0, 12, 2)


def clip():
    """An empty file with the captured clip `arm`: feet in place, arms fast."""
    folder = Path(os.environ.get("POISE_MOTIONS", ROOT.parent / "shared" / "motions"))
    if not folder.is_dir():
        sys.exit(f"bench: no captured clips in '{folder}': set POISE_MOTIONS to their folder.")
    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.context.scene.render.fps = 60
    bpy.ops.import_anim.bvh(filepath=str(folder / "arm.bvh"), global_scale=0.056444)
    return bpy.context.scene


class Played:
    """A simulation to time, and what it applied, which is the same each time."""

    def __init__(self, character, motion, **settings):
        settings = Settings(duration=SECONDS, **settings)
        self._make = partial(Simulation, character, motion, settings=settings)
        self._torques, self._motors = [], []
        apply, drive = World.apply, World.drive

        def keep(world, values):
            self._torques.append(values.copy())
            apply(world, values)

        def keep_motor(world, *motor):
            self._motors.append(motor)
            drive(world, *motor)

        World.apply, World.drive = keep, keep_motor
        try:
            self._make().run()
        finally:
            World.apply, World.drive = apply, drive

    def round(self):
        """Wall seconds of the whole simulation, and of the same number of bare steps."""
        simulation = self._make()
        simulation.run()
        return simulation.recording.wall_time, bare(self._make(), self._torques, self._motors)


def bare(simulation, torques, motors):
    """Wall seconds of the steps alone while recorded torques and motors of the toes are applied."""
    torques, motors = iter(torques), iter(motors)
    computed, step = (Controller.torques, Controller.toe_motor), World.step
    spent = 0.0

    def timed(world):
        nonlocal spent
        started = time.perf_counter()
        step(world)
        spent += time.perf_counter() - started

    Controller.torques = lambda controller, number: next(torques)
    Controller.toe_motor = lambda controller, number: next(motors)
    World.step = timed
    try:
        simulation.run()
    finally:
        (Controller.torques, Controller.toe_motor), World.step = computed, step
    return spent


class Peer:
    """PyBullet's own stable-PD humanoid of `pybullet_envs.deep_mimic`, stepping its walk."""

    step = 1 / 240
    limits = [0] * 7 + [200] * 4 + [50] * 4 + [200] * 4 + [150] + [90] * 4 + [100] * 4 + [60]
    limits += [200] * 4 + [150] + [90] * 4 + [100] * 4 + [60]

    def __init__(self):
        # The package imports a `gym` that is no more: its modules are loaded past it.
        folder = Path(importlib.util.find_spec("pybullet_data").origin).parent.parent
        for name in ("pybullet_envs", "pybullet_envs.deep_mimic", "pybullet_envs.deep_mimic.env"):
            package = types.ModuleType(name)
            package.__path__ = [str(folder / name.replace(".", "/"))]
            sys.modules[name] = package
        from pybullet_envs.deep_mimic.env import humanoid_stable_pd, motion_capture_data
        from pybullet_utils import bullet_client

        client = bullet_client.BulletClient(connection_mode=pybullet.DIRECT)
        client.setAdditionalSearchPath(pybullet_data.getDataPath())
        client.setGravity(0, -9.8, 0)
        turn = client.getQuaternionFromEuler([-np.pi / 2, 0, 0])
        client.loadURDF("plane_implicit.urdf", [0, 0, 0], turn, useMaximalCoordinates=True)
        client.setPhysicsEngineParameter(numSolverIterations=10, numSubSteps=1)
        client.setTimeStep(self.step)
        data = motion_capture_data.MotionCaptureData()
        data.Load(pybullet_data.getDataPath() + "/data/motions/humanoid3d_walk.txt")
        self.client = client
        self.body = humanoid_stable_pd.HumanoidStablePD(client, data, self.step, False)

    def round(self):
        """Wall seconds of control and steps, and of the steps alone, of SECONDS simulated."""
        body, spent = self.body, 0.0
        body.setSimTime(0)
        body.resetPose()
        begun = time.perf_counter()
        for step in range(round(SECONDS / self.step)):
            body.setSimTime(step * self.step)
            pose = body.computePose(body._frameFraction)
            body.computeAndApplyPDForces(pose, maxForces=self.limits)
            started = time.perf_counter()
            self.client.stepSimulation()
            spent += time.perf_counter() - started
        return time.perf_counter() - begun, spent


def spread(values, form="{:.1f}"):
    """Median (least to most) as text."""
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{form.format(middle)} ({form.format(low)} to {form.format(high)})"


def table(head, rows):
    return [f"| {' | '.join(head)} |", "|" + "---|" * len(head)] + [
        f"| {' | '.join(row)} |" for row in rows
    ]


def simulations(character, motion):
    """Rounds over all settings and the peer, in turn: {label: [(real time factor, overhead)]}."""
    played = {
        (mode, rate): Played(character, motion, balance=mode, rate=rate)
        for mode in MODES
        for rate in RATES
    }
    played["peer", 240.0] = Peer()
    results = {label: [] for label in played}
    for _ in range(ROUNDS):
        for label, one in played.items():
            whole, steps = one.round()
            results[label].append((SECONDS / whole, whole / steps))
    return results


def parts(character, motion):
    """Where the time of a step at 300 Hz goes: {part: microseconds a step}."""
    places = [
        ("stepSimulation", World, "step"),
        ("read the state", World, "state"),
        ("mass matrix", World, "mass_matrix"),
        ("gravity and velocity terms", World, "bias"),
        ("tracking", tracking.StablePD, "torques"),
        ("invert for tracking", tracking.StablePD, "refresh"),
        ("legs", legs.Legs, "update"),
        ("pressure under the feet", foot_forces, "press"),
        ("transposed Jacobian", legs.Legs, "transposed_jacobian"),
        ("write the torques", World, "apply"),
        ("read bodies and contacts for the record", World, "body_transforms"),
        ("contacts", World, "contacts"),
        ("record and measure", Recording, "add"),
    ]
    spent, kept = {}, []
    for name, owner, attribute in places:
        original = getattr(owner, attribute)
        kept.append((owner, attribute, original))
        setattr(owner, attribute, _timed(original, spent, name))
    try:
        simulation = Simulation(character, motion, settings=Settings(duration=SECONDS))
        simulation.run()
    finally:
        for owner, attribute, original in kept:
            setattr(owner, attribute, original)
    steps = SECONDS * simulation.rate
    spent["all else"] = simulation.recording.wall_time - sum(spent.values())
    return {name: 1e6 * seconds / steps for name, seconds in spent.items()}


def _timed(function, spent, name):
    def timed(*arguments):
        started = time.perf_counter()
        result = function(*arguments)
        spent[name] = spent.get(name, 0.0) + time.perf_counter() - started
        return result

    return timed


def blender(scene):
    """Rounds of reading and of baking: seconds per 1000 bone-frames, and the bake in all [s]."""
    reading, writing, whole = [], [], []
    for _ in range(ROUNDS):
        shot = Shot(scene, ShotOptions(action="arm"))
        for stage in (shot.read, shot.simulate):
            for _ in stage():
                pass
        started = time.perf_counter()
        shot.bake()
        whole.append(time.perf_counter() - started)
        times = shot.report()["bake_time"]
        reading.append(1e3 * times["reading"])
        writing.append(1e3 * times["writing"])
    return reading, writing, whole


def falling():
    """{behaviour: ([real-time factor from the loss of balance to rest], [of the whole])}."""
    found = {kind: ([], []) for kind in falls.KINDS}
    for clip_name, *fall in falls.falls()[FALLS]:
        for kind, (down, whole) in found.items():
            simulation = falls.simulation(clip_name, kind, *fall)
            walls = [simulation.recording.wall_time for _ in simulation]
            recording = simulation.recording
            if recording.stood is None or recording.rest_at is None:
                continue
            rate, lost = recording.motion.rate, recording.stood - 1
            rest = round(recording.rest_at * rate)
            down.append((rest - lost) / rate / (walls[rest] - walls[lost]))
            whole.append((len(recording) - 1) / rate / walls[-1])
    return found


def pairs():
    """Real-time factors of two characters who are simulated together."""
    factors = []
    for pair in together.pairs()[PAIRS]:
        both = together.cast(pair)
        together.Together(both).run()
        recording = both["first"].recording
        factors.append((len(recording) - 1) / recording.motion.rate / recording.wall_time)
    return factors


def searches():
    """{clip: wall time [s] from nothing to gains that are confirmed, with two processes}."""
    times = {}
    for name in ("arm", "stand"):
        problem = Problem(captured(name))
        started = time.perf_counter()
        with WorkerPool(2) as pool:
            search = Search(problem, Gains.default(problem.character), SearchSettings(), pool)
            list(search.run())
            times[name] = time.perf_counter() - started
        assert search.ended == "confirmed"
    return times


def generations(motion):
    """Wall times [s] of TRIALS with one process, and with two, in turn: (ROUNDS, 2)."""
    problem = Problem(motion)
    payload, gains = problem.to_bytes(), Gains.default(problem.character).as_dict()
    with WorkerPool(1) as one, WorkerPool(2) as two:

        def timed(pool, count):
            started = time.perf_counter()
            trials = [pool.submit(Remote(evaluate), payload, gains, i) for i in range(count)]
            assert all("error" not in trial.result() for trial in trials)
            return time.perf_counter() - started

        for pool, count in ((one, 1), (two, 2)):  # starts the processes
            timed(pool, count)
        times = [[timed(pool, TRIALS) for pool in (one, two)] for _ in range(ROUNDS)]
    return times


def curves():
    """Rounds of writing 150 curves of 600 keys [ms]."""
    times, frames = [], np.arange(600.0)
    values = np.random.default_rng(0).normal(size=(600, 3))
    tracks = [keys.Track(f'["{i}"]', "bench", frames, values, "LOCATION") for i in range(50)]
    for _ in range(ROUNDS):
        action, slot = compat.new_action("bench")
        holder = compat.channels(action, slot, ensure=True)
        started = time.perf_counter()
        sampling.run(keys.write(holder, tracks, [np.arange(600)] * 50, "LINEAR"))
        times.append(1e3 * (time.perf_counter() - started))
        bpy.data.actions.remove(action)
    return times


def main():
    begun = time.perf_counter()
    scene = clip()
    motion = reference.read(scene, scene.objects["arm"]).motion
    character = Character.from_motion(motion)
    results = simulations(character, motion)
    theirs = results.pop(("peer", 240.0))
    lines = [
        f"{_processor()}, one core; {', '.join(f'{k} {v}' for k, v in versions().items())}. "
        f"Clip `arm`, {SECONDS:g} s, medians of {ROUNDS} rounds in turn (least to most).",
        "",
    ]
    rows = [
        [mode, f"{rate:g}", spread([r[0] for r in runs]), spread([r[1] for r in runs], "{:.2f}")]
        for (mode, rate), runs in results.items()
    ]
    rows.append(
        [
            "`pybullet_envs.deep_mimic`, walk",
            "240",
            spread([r[0] for r in theirs]),
            spread([r[1] for r in theirs], "{:.2f}"),
        ]
    )
    lines += table(["simulation", "rate [Hz]", "real_time_factor", "overhead"], rows)
    ours = results[("foot_forces", 240.0)]
    ratios = [a[0] / b[0] for a, b in zip(ours, theirs, strict=True)]
    lines += ["", f"Ours to theirs at 240 Hz: {spread(ratios, '{:.2f}')} times as fast.", ""]
    spent = parts(character, motion)
    total = sum(spent.values())
    lines += table(
        ["a step at 300 Hz", "µs", "share"],
        [[name, f"{time_:.1f}", f"{time_ / total:.0%}"] for name, time_ in spent.items()],
    )
    peer = statistics.median(r[0] for r in theirs)

    def fast(name, values):
        return [name, spread(values), f"{statistics.median(values) / peer:.2f}"]

    lines += [
        "",
        *table(
            ["at 300 Hz", "real_time_factor", "of theirs at 240 Hz"],
            [
                *(
                    fast(f"{kind}: {words}", values)
                    for kind, both in falling().items()
                    for words, values in zip(("loss of balance to rest", "all"), both, strict=True)
                ),
                fast("two together", pairs()),
            ],
        ),
    ]
    reading, writing, whole = blender(scene)
    lines += [
        "",
        *table(
            ["Blender", ""],
            [
                ["reading, per 1000 bone-frames [ms]", spread(reading, "{:.2f}")],
                ["writing keys, per 1000 bone-frames [ms]", spread(writing, "{:.2f}")],
                ["150 curves of 600 keys [ms]", spread(curves())],
                ["a whole bake, 612 frames, read back [s]", spread(whole, "{:.2f}")],
            ],
        ),
    ]
    rounds = generations(motion)
    ratios = [one / two for one, two in rounds]
    lines += [
        "",
        *table(
            ["tuning, two processes", "s"],
            [
                *(
                    [f"`{k}`: from nothing to gains that are confirmed", f"{v:.1f}"]
                    for k, v in searches().items()
                ),
                [f"{TRIALS} trials of 20 s of `arm`", spread([r[1] for r in rounds])],
                ["the same with one process", spread([r[0] for r in rounds])],
                ["one to two processes, ratio", spread(ratios, "{:.2f}")],
            ],
        ),
    ]
    lines += ["", f"All of it took {time.perf_counter() - begun:.0f} s."]
    target = ROOT / "build" / "bench.md"
    target.parent.mkdir(exist_ok=True)
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


def _processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines() if os.name == "posix" else ():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.processor() or platform.machine()


if __name__ == "__main__":
    main()

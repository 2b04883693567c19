# SPDX-License-Identifier: GPL-3.0-or-later
"""Tuning without a window: the job turned by hand, the operator with a stand-in for the window.

Most searches here ask a formula instead of a simulation, and run in this process."""

import errno
import json
import os
import subprocess
import sys
import time
from concurrent.futures import Future
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import bpy
import numpy as np
import pytest
from helpers.jobs import BUDGET, Pool, finish, step_until
from helpers.processes import PATIENCE

import poise
from poise.addon.blender import checkpoints, preferences, session
from poise.addon.blender.locks import claimed
from poise.addon.operators import optimize
from poise.addon.plots import tuning_plot
from poise.addon.settings import gains, properties
from poise.addon.shots import tuning
from poise.addon.sidebar import panels, tuning_panel
from poise.controller.exceptions import ExecutorError, PoiseError
from poise.controller.processes import workers
from poise.controller.search.optimization import SearchSettings
from poise.controller.simulation.measures import MAXIMA

#: What no gains reach.
TOO_HIGH = 1.99


def formula(_payload, gains, seed):
    """A trial that takes no time: the stiffer the hips and the weaker the spine, the better."""
    stiffness = gains["stiffness"]
    ratio = stiffness["hip_pitch"] / stiffness["spine_pitch"]
    noise = 1e-3 * np.random.default_rng(seed).random()
    reward = 1.9 * ratio / (0.5 + ratio) - noise
    fell = {"fell_at": None, "fell_measure": None}
    return {"reward": float(reward), "seconds": 1.0, "cpu": 0.1, **fell}


formula.__module__ = "poise.controller.search.trial"


@pytest.fixture(autouse=True)
def registered(blender, monkeypatch, tmp_path):
    """Poise as Blender has it when it is enabled, with a folder of its own."""
    monkeypatch.setattr(checkpoints, "folder", lambda: tmp_path)
    monkeypatch.setattr(optimize, "DURATION", 1.0)
    monkeypatch.setattr(Pool, "open", 0)
    poise.register()
    yield
    poise.unregister()
    assert Pool.open == 0, "a pool was left open"


@pytest.fixture
def quick(monkeypatch):
    """Searches that simulate nothing."""
    monkeypatch.setattr(optimize, "WorkerPool", Pool)
    monkeypatch.setattr("poise.controller.search.optimization.evaluate", formula)


@pytest.fixture
def armature(import_clip):
    """A quiet stand, of which a little is tuned, with a small search."""
    armature = import_clip("stand")
    bpy.context.scene.frame_set(40)
    settings = bpy.context.scene.poise
    settings.frames, settings.first_frame, settings.last_frame = "CUSTOM", 1, 40
    settings.tuning.population, settings.tuning.generations = 4, 3
    settings.tuning.target, settings.tuning.workers = TOO_HIGH, 1
    return armature


def new_job(armature):
    """A search that is at work."""
    options = properties.shot_options(bpy.context, armature)
    job = optimize.OptimizeJob(bpy.context.scene, options, bpy.context.scene.poise.tuning)
    job.start()
    return job


def generations(job):
    return 0 if job.search is None else len(job.search.generations)


def history(outcome):
    """All that was found, but for times."""
    times = ("wall", "cpu")
    return [
        {key: value for key, value in asdict(generation).items() if key not in times}
        for generation in outcome.history
    ]


def result(armature):
    return session.result_of(bpy.context.scene, armature)


def source():
    """Where the gains of the scene come from."""
    return bpy.context.scene.poise.gains.source


# --- To the end ----------------------------------------------------------------------------------


def test_optimize_uses_what_it_finds(quick, armature, tmp_path):
    pose = np.array(armature.pose.bones[0].matrix)
    assert bpy.ops.poise.optimize() == {"FINISHED"}
    outcome = result(armature).outcome
    assert outcome.ended == "generations"
    assert len(outcome.history) == 4
    assert outcome.history[-1].best > outcome.history[0].best
    assert source() == "CUSTOM"
    assert gains.data_of(bpy.context.scene.poise) == outcome.gains.as_dict()
    assert outcome.gains.tuned["clip"] == "stand"
    assert bpy.context.scene.frame_current == 40
    assert np.array_equal(armature.pose.bones[0].matrix, pose)
    assert session.job() is None
    assert not list(tmp_path.glob("*.json")), "what is over needs no checkpoint"


@pytest.mark.slow
def test_real_trials_and_processes(armature, monkeypatch):
    pools = []

    class Watched(workers.WorkerPool):
        def __init__(self, count):
            super().__init__(count)
            pools.append((self, count))

    monkeypatch.setattr(optimize, "WorkerPool", Watched)
    bpy.context.scene.poise.tuning.target = 1.0
    assert bpy.ops.poise.optimize() == {"FINISHED"}
    outcome = result(armature).outcome
    assert outcome.confirmed_at == 0
    assert all(1.0 <= reward <= 2.0 for reward in outcome.unseen)
    ((pool, count),) = pools
    assert count == 1
    assert not pool._crew.processes, "a process was left"
    assert source() == "CUSTOM"


def test_optimize_is_one_step_of_undo(quick, armature):
    bpy.ops.ed.undo_push(message="Imported")
    bpy.ops.poise.optimize("EXEC_DEFAULT", True)
    assert source() == "CUSTOM"
    bpy.ops.ed.undo()
    assert source() == "DEFAULT"
    assert bpy.context.scene.poise.tuning.population == 4
    bpy.ops.ed.redo()
    assert source() == "CUSTOM"


def test_success_ends_it(quick, armature):
    bpy.context.scene.poise.tuning.target = 0.9
    bpy.ops.poise.optimize()
    outcome = result(armature).outcome
    assert outcome.ended == "confirmed"
    words = tuning.outcome_words(outcome)
    mean = np.mean(outcome.unseen)
    assert words == f"Confirmed: score {mean:.2f}, reached in 8 of 8 new tries, generation 0"


@pytest.mark.parametrize(
    "ended, words",
    [
        ("generations", "after 2 generations"),
        ("budget", "when the budget was over, after generation 2"),
        ("converged", "when it found nothing new, after generation 2"),
        ("stopped", "when stopped after generation 2"),
    ],
)
def test_words_of_a_failure(ended, words):
    last = [SimpleNamespace(index=i, best=1.0 + i / 10) for i in range(3)]
    outcome = SimpleNamespace(
        ended=ended,
        confirmed_at=None,
        history=last,
        settings=SearchSettings(),
        unseen=[],
        fell_at=None,
    )
    assert tuning.outcome_words(outcome) == f"Not confirmed {words}: score 1.20 at best"
    outcome.unseen, outcome.fell_at, outcome.fell_measure = [1.9, 1.7], 3.21, "slide_error"
    expected = f"Not confirmed {words}: score 1.80, reached in 1 of 2 new tries; it falls at 3.2 s"
    assert tuning.outcome_words(outcome) == f"{expected} (the feet slide)"


def test_settings_become_those_of_the_search():
    settings = bpy.context.scene.poise.tuning
    assert tuning.search_settings(settings) == SearchSettings()
    assert tuning.maxima(settings) == MAXIMA
    assert preferences.workers(settings) == max(1, workers.processors() - 1)
    settings.budget, settings.parametrisation, settings.target = 90, "RANGES", 1.9
    settings.slide_error = 0.3
    search = tuning.search_settings(settings)
    assert (search.budget, search.parametrisation, search.target) == (90.0, "ranges", 1.9)
    assert tuning.maxima(settings)["slide_error"] == 0.3
    settings.budget = -5
    assert tuning.search_settings(settings).budget is None


def test_everything_has_a_tooltip():
    for prop in tuning.POISE_PG_tuning.bl_rna.properties:
        if prop.identifier not in ("rna_type", "name"):
            assert len(prop.description) > 10, prop.identifier
            assert not prop.description.endswith("."), prop.identifier


# --- Stop, discard, resume -----------------------------------------------------------------------


def test_stop_keeps_the_best(quick, armature):
    job = new_job(armature)
    assert not bpy.ops.poise.keep_best.poll()
    step_until(job, lambda: generations(job) > 1)
    assert bpy.ops.poise.keep_best() == {"FINISHED"}
    best = job.search.best
    finish(job)
    outcome = result(armature).outcome
    assert outcome.ended == "stopped"
    assert outcome.gains.stiffness.tolist() == best.gains.stiffness.tolist()
    assert session.job() is None


def test_discarded_and_resumed_it_finds_the_same(quick, armature):
    whole = new_job(armature)
    finish(whole)
    assert whole.resumed_at is None
    job = new_job(armature)
    step_until(job, lambda: generations(job) > 2)
    job.cancel()
    assert source() == "DEFAULT"
    assert result(armature).outcome is whole.outcome
    resumed = new_job(armature)
    step_until(resumed, lambda: resumed.search is not None)
    assert resumed.resumed_at == 3
    finish(resumed)
    assert history(resumed.outcome) == history(whole.outcome)
    assert resumed.outcome.gains.stiffness.tolist() == whole.outcome.gains.stiffness.tolist()


def test_other_settings_begin_anew(quick, armature):
    job = new_job(armature)
    step_until(job, lambda: generations(job) > 1)
    job.cancel()
    bpy.context.scene.poise.tuning.seed = 1
    job = new_job(armature)
    step_until(job, lambda: job.search is not None)
    assert job.resumed_at is None
    job.cancel()


def test_damaged_checkpoint_is_told_and_replaced(quick, armature, tmp_path):
    job = new_job(armature)
    step_until(job, lambda: generations(job) > 1)
    job.cancel()
    (path,) = tmp_path.glob("*.json")
    path.write_text(path.read_text()[:-20])
    job = new_job(armature)
    step_until(job, lambda: generations(job) > 0)
    assert job.resumed_at is None
    assert "damaged" in job.warning
    assert json.loads(path.read_text())["data"]["batches"]
    job.cancel()


def test_another_blender_with_the_same_search(quick, armature, tmp_path):
    job = new_job(armature)
    step_until(job, lambda: generations(job) > 1)
    job.cancel()
    (path,) = tmp_path.glob("*.json")
    with claimed(path, "taken"):
        job = new_job(armature)
        with pytest.raises(PoiseError, match="Another Blender tunes this very clip"):
            finish(job)
    assert session.job() is None
    assert path.exists()
    job = new_job(armature)
    step_until(job, lambda: job.search is not None)
    assert job.resumed_at == 2
    job.cancel()


def test_old_checkpoints_are_removed(tmp_path):
    old, new = tmp_path / "a.json", tmp_path / "b.json"
    for path in (old, new):
        path.write_text("{}")
    month = time.time() - 31 * 24 * 3600
    os.utime(old, (month, month))
    checkpoints.forget_old(tmp_path)
    assert list(tmp_path.iterdir()) == [new]


#: A Blender that searches until it is killed; tells its worker once there is something to resume.
BLENDER = """
import sys
from pathlib import Path
import bpy, poise
from poise.addon.blender import checkpoints
from poise.addon.blender.chosen import chosen_armature
from poise.addon.operators import optimize
from poise.addon.settings.properties import shot_options
from poise.controller.processes import workers

shot, folder = sys.argv[-2:]
pools = []

class Pool(workers.WorkerPool):
    def __init__(self, count):
        super().__init__(count)
        pools.append(self)

checkpoints.folder = lambda: Path(folder)
optimize.DURATION, optimize.WorkerPool = 1.0, Pool
poise.register()
bpy.ops.wm.open_mainfile(filepath=shot)
armature, _ = chosen_armature(bpy.context)
options = shot_options(bpy.context, armature)
job = optimize.OptimizeJob(bpy.context.scene, options, bpy.context.scene.poise.tuning)
job.start()
told = False
while not job.step(0.01):
    if not told and job.search and len(job.search.generations) > 1:
        told = True
        print("worker", *(process.pid for process in pools[0]._crew.processes), flush=True)
"""


@pytest.mark.slow
def test_killed_blender_leaves_no_process_and_is_resumed(armature, tmp_path):
    bpy.context.scene.poise.tuning.generations = 100000
    shot = tmp_path / "shot.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(shot))
    command = [sys.executable, "-c", BLENDER, shot, tmp_path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as blender:
        line = next(line for line in blender.stdout if line.startswith("worker"))
        (worker,) = map(int, line.split()[1:])
        os.kill(worker, 0)
        blender.kill()
    deadline = time.monotonic() + PATIENCE
    while _runs(worker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _runs(worker)
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    job = new_job(bpy.data.objects["stand"])
    step_until(job, lambda: job.search is not None)
    assert job.resumed_at >= 2
    job.cancel()


def _runs(process):
    """Whether a process is there; one that has ended may wait for its parent to notice."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


# --- What goes wrong -----------------------------------------------------------------------------


@pytest.fixture
def full_disk(monkeypatch):
    """full_disk(method, suffix): that method of a Path finds no room for such files."""

    def fill(method, suffix):
        original = getattr(Path, method)

        def full(path, *arguments, **options):
            if path.suffix == suffix:
                raise OSError(errno.ENOSPC, "No space left on device")
            return original(path, *arguments, **options)

        monkeypatch.setattr(Path, method, full)

    return fill


def test_full_disk_is_told_and_ends_nothing(quick, armature, full_disk, drawn):
    full_disk("write_text", f".{os.getpid()}")
    job = new_job(armature)
    step_until(job, lambda: generations(job) > 1)
    assert "No space left on device" in job.warning
    assert "No space left" in drawn(armature).replace("\n", " ")
    finish(job)
    assert job.outcome.ended == "generations"


def test_disk_that_is_full_from_the_start(quick, armature, full_disk):
    full_disk("open", ".lock")
    job = new_job(armature)
    finish(job)
    assert job.outcome.ended == "generations"
    assert "No space left on device): the search goes on" in job.warning


def test_no_folder_is_told_and_ends_nothing(quick, armature, monkeypatch):
    def refuse(*_arguments, **_options):
        raise PermissionError(errno.EACCES, "Permission denied", "tuning")

    monkeypatch.undo()
    monkeypatch.setattr(bpy.utils, "user_resource", refuse)
    monkeypatch.setattr(optimize, "WorkerPool", Pool)
    monkeypatch.setattr("poise.controller.search.optimization.evaluate", formula)
    job = new_job(armature)
    step_until(job, lambda: job.search is not None)
    assert "'tuning' for checkpoints cannot be made (Permission denied)" in job.warning
    finish(job)
    assert job.outcome.ended == "generations"


def test_budget_below_one_trial(quick, armature, monkeypatch):
    class Slow(Pool):
        def submit(self, *_arguments):
            return Future()

    monkeypatch.setattr(optimize, "WorkerPool", Slow)
    bpy.context.scene.poise.tuning.budget = 0.01
    with pytest.raises(RuntimeError, match="budget was over before the first trial"):
        bpy.ops.poise.optimize()
    assert source() == "DEFAULT"
    assert session.job() is None


def test_workers_that_keep_dying(quick, armature, monkeypatch):
    class Dying(Pool):
        def submit(self, *_arguments):
            future = Future()
            future.set_exception(ExecutorError("A task ended 3 worker processes."))
            return future

    monkeypatch.setattr(optimize, "WorkerPool", Dying)
    with pytest.raises(RuntimeError, match="A task ended 3 worker processes"):
        bpy.ops.poise.optimize()
    assert "3 worker processes" in result(armature).error
    assert source() == "DEFAULT"
    assert session.job() is None


def test_gains_for_another_character(quick, armature):
    bpy.ops.poise.optimize()
    settings = bpy.context.scene.poise.gains
    data = json.loads(settings.custom)
    del data["stiffness"]["neck_pitch"]
    settings.custom = json.dumps(data)
    with pytest.raises(RuntimeError, match="for another character"):
        bpy.ops.poise.optimize()
    assert json.loads(settings.custom) == data
    assert session.job() is None


def test_start_in_the_air(quick, armature):
    scene = bpy.context.scene
    curve = next(
        curve
        for curve in poise.addon.blender.compat.curves(
            *poise.addon.blender.compat.assigned(armature)
        )
        if curve.data_path.endswith("location") and curve.array_index == 1
    )
    assert curve is not None
    for point in curve.keyframe_points[:20]:
        point.co.y += 10.0
    with pytest.raises(RuntimeError, match="in the air"):
        bpy.ops.poise.optimize()
    assert source() == "DEFAULT"
    assert scene.frame_current == 40


@pytest.mark.parametrize("deleted", [True, False])
def test_armature_that_goes_away(quick, armature, deleted, tmp_path):
    name = armature.name
    job = new_job(armature)
    step_until(job, lambda: generations(job) > 1)
    if deleted:
        bpy.data.objects.remove(armature)
    else:
        armature.name = "Somebody"
    with pytest.raises(PoiseError, match=f"'{name}' was deleted or renamed while .*tuning"):
        job.step(BUDGET)
    assert session.job() is None
    assert source() == "DEFAULT"
    assert list(tmp_path.glob("*.json")), "nothing is lost"


def test_scene_that_goes_away(quick, armature, tmp_path):
    scene = bpy.context.scene
    other = bpy.data.scenes.new("Other")
    job = new_job(armature)
    step_until(job, lambda: generations(job) > 1)
    bpy.data.scenes.remove(scene)
    with pytest.raises(PoiseError, match="scene 'Scene' was deleted"):
        job.step(BUDGET)
    assert session.job() is None
    assert other.poise.gains.source == "DEFAULT"
    assert list(tmp_path.glob("*.json"))


def test_action_that_goes_away_does_not_matter(quick, armature):
    job = new_job(armature)
    step_until(job, lambda: generations(job) > 1)
    bpy.data.actions.remove(armature.animation_data.action)
    finish(job)
    assert job.outcome.ended == "generations"


def test_undo_meanwhile(quick, armature):
    bpy.ops.ed.undo_push(message="Imported")
    bpy.context.scene.frame_set(20)
    bpy.ops.ed.undo_push(message="Frame")
    job = new_job(armature)
    step_until(job, lambda: generations(job) > 1)
    bpy.ops.ed.undo()
    step_until(job, lambda: generations(job) > 2)
    bpy.ops.ed.redo()
    finish(job)
    assert job.outcome.ended == "generations"


def test_another_scene_meanwhile_gets_nothing(quick, window):
    operator = window.begin(optimize.POISE_OT_optimize)
    window.turn_until(operator, lambda: generations(session.job()) > 1)
    other = bpy.data.scenes.new("Other")
    window.scene = other
    while window.send(operator) != {"FINISHED"}:
        pass
    assert other.poise.gains.source == "DEFAULT"
    assert bpy.data.scenes["Scene"].poise.gains.source == "CUSTOM"


def test_another_file_ends_it(quick, armature, tmp_path):
    job = new_job(armature)
    step_until(job, lambda: generations(job) > 1)
    assert Pool.open == 1
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    assert Pool.open == 0
    assert session.job() is None
    assert list(tmp_path.glob("*.json"))


def test_disabling_ends_it(quick, armature, tmp_path):
    job = new_job(armature)
    step_until(job, lambda: generations(job) > 1)
    poise.unregister()
    assert Pool.open == 0
    assert list(tmp_path.glob("*.json"))
    poise.register()


def test_processes_end_in_the_middle_of_a_trial(armature, monkeypatch):
    made = []

    def pool(count):
        made.append(workers.WorkerPool(count))
        return made[-1]

    monkeypatch.setattr(optimize, "WorkerPool", pool)
    job = new_job(armature)
    step_until(job, lambda: job.search is not None and made[0]._crew.processes)
    processes = set(made[0]._crew.processes)
    job.cancel()
    assert processes
    assert all(process.poll() is not None for process in processes)


def test_one_job_at_a_time(quick, armature):
    job = new_job(armature)
    step_until(job, lambda: generations(job) > 0)
    for operator in ("simulate", "optimize", "inspect", "bake"):
        assert not getattr(bpy.ops.poise, operator).poll(), operator
    with pytest.raises(PoiseError, match="still tuning"):
        new_job(armature)
    job.cancel()
    assert bpy.ops.poise.optimize.poll()
    assert not bpy.ops.poise.keep_best.poll()
    assert not bpy.ops.poise.preview_best.poll()


# --- Preview -------------------------------------------------------------------------------------


def test_preview_shows_the_best(quick, armature):
    bpy.context.scene.poise.tuning.generations = 1000
    bpy.ops.poise.simulate()
    before = result(armature).recording
    job = new_job(armature)
    step_until(job, lambda: generations(job) > 1)
    assert job.ghost() is None
    assert bpy.ops.poise.preview_best() == {"FINISHED"}
    best = job.search.best
    step_until(job, lambda: job.ghost() is not None)
    shot, sample = job.ghost()
    assert sample == len(shot.recording) - 1, "while it is simulated, the newest sample"
    step_until(job, lambda: not job.previewing)
    shot, sample = job.ghost()
    assert sample is None
    assert len(shot.recording) == 40
    assert shot.gains is best.gains
    assert job.preview_words() == f"Ghost: generation {best.generation}, stands"
    assert shot is not job.shot
    job.cancel()
    assert result(armature).recording is before


def test_preview_follows(quick, armature):
    bpy.context.scene.poise.tuning.generations = 1000
    job = new_job(armature)
    step_until(job, lambda: generations(job) > 0)
    assert not job.previewing
    bpy.context.scene.poise.tuning.follow = True
    shown = []

    def another():
        words = job.preview_words()
        if words and words not in shown:
            shown.append(words)
        return len(shown) > 1

    step_until(job, another)
    job.cancel()


# --- The operator in a window --------------------------------------------------------------------


def test_escape_discards(quick, window, armature, tmp_path):
    operator = window.begin(optimize.POISE_OT_optimize)
    window.turn_until(operator, lambda: generations(session.job()) > 1)
    assert window.send(operator, "A") == {"PASS_THROUGH"}
    assert window.send(operator, "ESC") == {"CANCELLED"}
    assert window.timers == []
    assert Pool.open == 0
    assert source() == "DEFAULT"
    assert result(armature).outcome is None
    assert list(tmp_path.glob("*.json"))


def test_stop_in_the_window_reports(quick, window):
    operator = window.begin(optimize.POISE_OT_optimize)
    window.turn_until(operator, lambda: generations(session.job()) > 1)
    bpy.ops.poise.keep_best()
    while (ended := window.send(operator)) == {"PASS_THROUGH"}:
        pass
    assert ended == {"FINISHED"}
    assert window.timers == []
    assert source() == "CUSTOM"
    kind, words = operator.reports[-1]
    assert kind == "WARNING"
    assert words.startswith("Not confirmed when stopped after generation 1: ")


def test_only_reading_owns_the_scene(quick, armature):
    job = new_job(armature)
    owned = {}
    while not job.step(0.0005):
        owned[job.doing] = job.owns_scene
    assert owned["reading"]
    assert not owned["measuring the body"]
    assert not owned["tuning"]


# --- Panel and curves ----------------------------------------------------------------------------


@pytest.fixture
def drawn(draw_panels):
    """drawn(armature) -> all that the panels of tuning show now, as one text."""
    return lambda armature: draw_panels(tuning_panel.CLASSES, armature)


def test_panel_before_during_and_after(quick, armature, drawn):
    text = drawn(armature)
    assert "0: no limit" in text
    assert "Optimize" in text
    job = new_job(armature)
    step_until(job, lambda: generations(job) > 2)
    text = drawn(armature)
    assert "Generation 3" in text
    assert "3 of 3" in text
    assert f"{job.search.best.reward:.2f} (generation {job.search.best.generation})" in text
    assert "Elapsed\n0:0" in text
    assert "picture of 9 lines" in text
    assert "Stop and Keep" in text
    assert "Optimize" not in text
    finish(job)
    gains.keep(bpy.context.scene, job.outcome.gains)
    text = drawn(armature).replace("\n", " ")
    assert "Not confirmed after 3 generations" in text
    assert "Save as Preset…" in text
    gains.choose(bpy.context.scene, "")
    text = drawn(armature)
    assert "Save as Preset…" not in text
    assert "Other gains are in use now" in text


def test_panel_tells_resumption_and_time_left(quick, armature, drawn):
    settings = bpy.context.scene.poise.tuning
    settings.budget = 3700
    job = new_job(armature)
    step_until(job, lambda: generations(job) > 1)
    job.cancel()
    job = new_job(armature)
    step_until(job, lambda: job.search is not None)
    text = drawn(armature)
    assert "Resumed at generation 2" in text
    assert "Time left\n1:01:" in text
    job.cancel()


def _history(*rewards):
    return [
        SimpleNamespace(index=i, rewards=r, best=max(r), mean=float(np.mean(r)))
        for i, r in enumerate(rewards)
    ]


COLOURS = tuning_plot.Colours((0, 0, 0), (0.5, 0.5, 0.5), (0, 0, 1), (1, 1, 1), (1, 1, 0))


def test_curves_are_where_the_rewards_are():
    size, edge = 201, 0.05
    picture = tuning_plot.curves(size, edge, _history([0.5], [0.5, 1.5]), 5, 1.75, COLOURS)
    assert picture.shape == (size, size, 4)

    def row(reward):
        return int(size * (edge + (1 - 2 * edge) * reward / 2))

    def column(generation):
        return int(size * (0.03 + 0.94 * generation / 5))

    assert np.allclose(picture[row(1.5), column(1), :3], COLOURS.best, atol=0.1)
    assert np.allclose(picture[row(1.0), column(1), :3], COLOURS.mean, atol=0.1)
    assert np.allclose(picture[row(0.75), column(0.5), :3], COLOURS.mean, atol=0.1)
    assert np.allclose(picture[row(1.75), 1, :3], COLOURS.target, atol=0.1)
    band = picture[row(1.12), column(1) - 1, :3]
    assert band[2] > 0.2
    assert band[0] < 0.1
    assert not picture[row(1.75) :, column(1) + 12 :, 2].max() > 0.2, "nothing beyond the last"


def test_curves_of_nothing_and_of_much():
    empty = tuning_plot.curves(60, 0.05, [], 5, 1.8, COLOURS)
    assert empty[..., 2].max() < 0.2
    many = _history(*([1.0 + i / 1000, 0.5] for i in range(500)))
    assert tuning_plot.last_shown(many) == 600
    assert np.isfinite(tuning_plot.curves(60, 0.05, many, 600, 1.8, COLOURS)).all()


@pytest.mark.parametrize("count, last", [(0, 5), (1, 5), (6, 5), (7, 10), (12, 15), (62, 80)])
def test_right_edge_leaves_little_room(count, last):
    assert tuning_plot.last_shown([None] * count) == last


def test_panels_of_tuning_belong_to_simulate():
    assert tuning_panel.POISE_PT_tune.bl_parent_id == panels.POISE_PT_simulate.__name__

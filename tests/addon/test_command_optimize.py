# SPDX-License-Identifier: GPL-3.0-or-later
"""`poise optimize`: what it writes and tells, how it ends, and how it goes on after an end.

The searches are of a walk that is looped, at a low rate, which soon falls: trials take little time.
"""

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from helpers.commands import listing, poise, save

from poise.addon.blender.locks import claimed
from poise.addon.settings import presets
from poise.controller.exceptions import ExecutorError, GainsError
from poise.controller.gains.gains import Gains
from poise.controller.search import optimization, polling
from poise.controller.simulation.measures import MAXIMA

pytestmark = pytest.mark.once

SHORT = ("--frames=1:60", "--rate=120", "--population=4", "--generations=2", "--confirmations=2")
PATIENCE = 300  # [s] at most, for what takes a moment


@pytest.fixture
def shot(tmp_path, import_clip):
    """A saved .blend with the armature 'walk' and its action; nothing else in its folder."""
    import_clip("walk")
    return save(tmp_path)


def optimize(shot, *arguments):
    """A short search in this process; its exit status."""
    return poise("optimize", shot, *SHORT, "--workers=0", *arguments)


def search_report(path):
    """A report of a search without how long it took, and where it is."""
    report = json.loads(path.read_text())
    for record in (report, *report["history"]):
        del record["cpu"], record["wall"]
    del report["file"]
    return report


# --- What it writes and tells -------------------------------------------------------------------


@pytest.mark.slow(captured=False)
def test_gains_and_report_of_a_search_without_success(shot, capsys):
    before = shot.read_bytes()
    folder = shot.parent
    assert optimize(shot, "--report", folder / "report.json", "--max-pose=0.2", "--seed=3") == 3
    assert set(listing(folder)) == {"shot.blend", "shot_gains.json", "report.json"}
    assert shot.read_bytes() == before
    told = capsys.readouterr().err
    for index in range(3):
        assert f"\ngeneration {index}: best 0." in told
    assert "No candidate reached a reward of 1.8." in told
    assert "Not confirmed within the generations: the best reward was 0." in told
    assert "Unseen seeds (2): 0." in told
    assert "Its worst trial fell at " in told
    assert "gains are written to" in told and "all the same." in told

    text = (folder / "report.json").read_text()
    report = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert report["armature"] == report["source_action"] == "walk"
    assert report["range"] == [1, 60] and report["samples"] == 60
    assert report["body"]["height"] == pytest.approx(1.71, abs=0.01)
    assert report["gains"] == json.loads((folder / "shot_gains.json").read_text())
    assert report["ended"] == "generations"
    assert report["success_at"] is report["confirmed_at"] is None
    assert len(report["unseen"]) == 2
    assert [record["index"] for record in report["history"]] == [0, 1, 2]
    assert [len(record["rewards"]) for record in report["history"]] == [1, 4, 4]
    assert set(report["versions"]) == {"poise", "blender", "pybullet", "numpy", "python"}
    for name in ("pose_error", "stiffness", "seconds", "wall", "fell_at", "success_at"):
        assert report["units"][name]
    tuned = report["gains"]["tuned"]
    assert tuned["clip"] == "walk" and tuned["frames"] == [1, 60]
    assert tuned["maxima"] == MAXIMA | {"pose_error": 0.2}
    assert tuned["optimiser"]["seed"] == report["settings"]["seed"] == 3


@pytest.mark.slow(captured=False)
def test_success_is_told_and_confirmed(shot, capsys):
    options = ("--target=0.01", "--budget=1h", "--rate=300", "--output", shot.parent / "g.json")
    assert optimize(shot, *options) == 0
    assert set(listing(shot.parent)) == {"shot.blend", "g.json"}
    told = capsys.readouterr().err
    assert "s left\n" in told
    assert "Success: generation 0 had the first candidate with a reward of 0.01" in told
    assert "Confirmed: generation 0" in told and "all the same" not in told


@pytest.mark.slow
def test_the_same_seed_gives_the_same_file(shot):
    files = [shot.with_name(f"{name}.json") for name in "abc"]
    for file, seed in zip(files, (1, 1, 2), strict=True):
        assert optimize(shot, "--seed", seed, "--output", file) == 3
    contents = [file.read_bytes() for file in files]
    assert contents[0] == contents[1] != contents[2]


@pytest.mark.slow(captured=False)
def test_bake_uses_the_gains_bit_for_bit(shot):
    gains, report = shot.with_name("gains.json"), shot.with_name("report.json")
    assert optimize(shot, "--output", gains, "--mass=60") == 3
    bake = ("bake", shot, "--frames=1:60", "--overwrite", "--report", report, "--gains", gains)
    poise(*bake, "--mass=60")
    assert json.loads(report.read_text())["gains"] == json.loads(gains.read_text())
    poise(*bake, "--mass=80")
    other = json.loads(report.read_text())["gains"]
    assert other["stiffness"] != json.loads(gains.read_text())["stiffness"], "scaled to the body"


@pytest.mark.parametrize("name", ["Single Leg", "single_leg"])
def test_bake_takes_a_preset(shot, name):
    report = shot.with_name("report.json")
    poise("bake", shot, "--frames=1:60", "--report", report, "--gains", name)
    shipped = json.loads((presets.SHIPPED / "single_leg.json").read_text())
    assert json.loads(report.read_text())["gains"]["tuned"] == shipped["tuned"]


@pytest.mark.slow(captured=False)
def test_starts_from_a_file_a_preset_or_the_most_alike(tmp_path, import_clip, capsys):
    import_clip("kick")
    shot = save(tmp_path)

    def first_reward(start):
        report = shot.with_name("report.json")
        options = ("--generations=1", "--overwrite", "--report", report, "--warm-start", start)
        assert optimize(shot, *options) == 3
        (reward,) = json.loads(report.read_text())["history"][0]["rewards"]
        return reward

    default, alike = first_reward("default"), first_reward("auto")
    told = re.search(r"The search starts from the preset '(.+?)': ", capsys.readouterr().err)
    assert first_reward(told[1]) == alike != default
    tuned = shot.with_name("shot_gains.json").rename(shot.with_name("tuned.json"))
    assert first_reward(tuned) not in (default, alike)
    content = json.loads(shot.with_name("shot_gains.json").read_text())
    assert "name" not in content, "it is not the preset that it was made from"


@pytest.mark.slow(captured=False)
def test_no_preset_to_compare_with_ends_nothing(shot, capsys):
    options = ("--generations=1", "--warm-start=auto", "--balance=virtual_forces")
    assert optimize(shot, *options) == 3
    assert "The search starts from the defaults." in capsys.readouterr().err
    gains = json.loads(shot.with_name("shot_gains.json").read_text())
    assert gains["balance"] == "virtual_forces"


@pytest.mark.slow
def test_all_options_reach_the_search(shot):
    report = shot.with_name("report.json")
    options = ("--parametrisation=ranges", "--restarts=2", "--target=1.5", "--budget=2min")
    limits = ("--max-stance=0.4", "--max-slide=0.3", "--max-torque=900", "--rate=240")
    assert optimize(shot, "--report", report, "--generations=1", *options, *limits) == 3
    told = json.loads(report.read_text())
    settings = {"parametrisation": "ranges", "restarts": 2, "target": 1.5, "budget": 120}
    assert settings.items() <= told["settings"].items()
    assert len(told["history"][1]["rewards"]) == 2 * 4
    assert told["gains"]["tuned"]["rate"] == 240
    limits = {"stance_error": 0.4, "slide_error": 0.3, "torque_error": 900}
    assert told["gains"]["tuned"]["maxima"] == MAXIMA | limits


# --- Ends before its time, and goes on ----------------------------------------------------------


class Killed(BaseException):
    """What the process would not have noticed."""


def interrupted(shot, monkeypatch, interrupt, at, *options):
    """A search with a function that is called at every turn after a generation. Its status."""
    polls = optimization.Search.poll

    def poll(search):
        if len(search.generations) > at:
            interrupt()
        return polls(search)

    with monkeypatch.context() as context:
        context.setattr(optimization.Search, "poll", poll)
        return optimize(shot, *options)


def raises(error):
    """A function that raises an error."""

    def interrupt():
        raise error

    return interrupt


@pytest.fixture
def ctrl_c():
    """A function that does what Ctrl-C does."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
def test_it_goes_on_where_it_was_killed(shot, monkeypatch, capsys):
    folder = shot.parent
    whole = folder / "whole.json"
    assert optimize(shot, "--output", whole, "--report", folder / "whole_report.json") == 3
    options = ("--output", folder / "gains.json", "--report", folder / "report.json")
    with pytest.raises(Killed):
        interrupted(shot, monkeypatch, raises(Killed), 1, *options)
    checkpoint = folder / "gains.json.checkpoint"
    assert checkpoint.exists() and not (folder / "gains.json").exists()
    capsys.readouterr()
    assert optimize(shot, *options) == 3
    told = capsys.readouterr().err
    assert f"Going on after generation 1, which '{checkpoint}' keeps." in told
    assert "\ngeneration 1:" not in told and "\ngeneration 2:" in told
    assert (folder / "gains.json").read_bytes() == whole.read_bytes()
    assert search_report(folder / "report.json") == search_report(folder / "whole_report.json")
    assert not list(folder.glob("*.checkpoint*")) and not list(folder.glob("*.lock"))


@pytest.mark.slow(captured=False)
@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_keeps_the_checkpoint(shot, monkeypatch, capsys, ctrl_c, times):
    def interrupt():
        for _ in range(times):
            ctrl_c()
        assert times == 1, "the second one does not wait for the end of the turn"

    assert interrupted(shot, monkeypatch, interrupt, 1) == 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    checkpoint = shot.with_name("shot_gains.json.checkpoint")
    told = capsys.readouterr().err
    assert "poise: stopped." in told
    assert f"'{checkpoint}' keeps what is done: the same command goes on from there." in told
    assert set(listing(shot.parent)) == {"shot.blend", checkpoint.name}
    assert optimize(shot, "--generations=3") == 3, "more of the same search"
    told = capsys.readouterr().err
    assert "Going on after generation 1" in told and "\ngeneration 3:" in told


def test_an_error_keeps_the_checkpoint(shot, monkeypatch, capsys):
    error = ExecutorError("The scheduler is gone: start it.")
    assert interrupted(shot, monkeypatch, raises(error), 0) == 1
    told = capsys.readouterr().err
    assert "poise: The scheduler is gone: start it." in told and "the same command" in told


def test_the_budget_ends_it(shot, monkeypatch, capsys):
    later = SimpleNamespace(monotonic=lambda: time.monotonic() + 3600)

    def an_hour_passes():
        monkeypatch.setattr(polling, "time", later)

    options = ("--generations=1000", "--budget=1h")
    assert interrupted(shot, monkeypatch, an_hour_passes, 0, *options) == 3
    assert "Not confirmed within the budget" in capsys.readouterr().err
    assert set(listing(shot.parent)) == {"shot.blend", "shot_gains.json"}


def test_a_budget_too_short_for_one_trial(shot, capsys):
    assert optimize(shot, "--budget=0.001") == 1
    told = capsys.readouterr().err
    assert "poise: The budget was over before the first trial was: give the search more" in told
    assert set(listing(shot.parent)) == {"shot.blend"}


def test_on_a_terminal_trials_are_told(shot, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("poise.addon.terminal.command_progress._INTERVAL", 0.0)
    assert optimize(shot, "--generations=1") == 3
    told = capsys.readouterr().err
    assert "\rgeneration 1: 2 of 4 trials" in told
    assert "\rgeneration 1: best 0." in told
    line = told[: told.index("No candidate reached")].splitlines(keepends=True)[-1]
    assert line.endswith("\r") and not line.strip(), "the line is cleared"


@pytest.mark.slow(captured=False)
def test_gains_that_cannot_be_written_are_told(shot, monkeypatch, capsys):
    def full(_gains, path):
        raise GainsError(f"The gains file '{path}' cannot be written (No space left on device).")

    monkeypatch.setattr(Gains, "save", full)
    assert optimize(shot) == 1
    out, told = capsys.readouterr()
    content = json.loads(out[out.index('{"schema"') :].splitlines()[0])
    assert Gains.from_dict(content).tuned["clip"] == "walk"
    assert "No space left on device" in told and "standard output instead" in told


# --- Other processes ----------------------------------------------------------------------------


@pytest.fixture
def start(shot):
    """start(*options) -> a process of its own that searches, with two workers; it is ended."""
    processes = []

    def start(*options, workers="--workers=2", ctrl_c=signal.SIG_DFL):
        command = [sys.executable, "-m", "poise", "optimize", shot, *SHORT, workers, *options]
        process = subprocess.Popen(
            [str(part) for part in command],
            bufsize=0,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            # Whoever runs the tests in the background may have it ignored.
            preexec_fn=lambda: (
                signal.signal(signal.SIGINT, ctrl_c),
                signal.signal(signal.SIGHUP, signal.SIG_DFL),
            ),
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def read_until(process, word, told=""):
    """What a process tells, until a word was in it. told: what it has told before."""
    while word not in told:
        assert select.select([process.stderr], [], [], PATIENCE)[0], told
        part = os.read(process.stderr.fileno(), 65536)
        assert part, f"it ended: {told}"
        told += part.decode()
    return told


def ended(process):
    """Status of a process when it has ended, and what it has told."""
    _out, told = process.communicate(timeout=PATIENCE)
    return process.returncode, told.decode()


def children(pid):
    """Processes that a process has started: {pid: when it began}."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (facts := _facts(int(entry))) and facts[0] == pid:
            found[int(entry)] = facts[1]
    return found


def _facts(pid):
    """Parent and starting time of a process; None if it has ended."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] == "Z" else (int(fields[1]), fields[19])


def assert_ended(pids):
    """Processes, as `children` found them, end before long."""
    until = time.monotonic() + PATIENCE
    while left := [pid for pid, began in pids.items() if (_facts(pid) or (0, 0))[1] == began]:
        assert time.monotonic() < until, f"orphans: {left}"
        time.sleep(0.01)


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
LONG = "--generations=200"
SIGTERM, SIGHUP = (
    pytest.param(name, signal.SIG_DFL, marks=pytest.mark.slow) for name in ("SIGTERM", "SIGHUP")
)


@pytest.mark.slow(captured=False)
def test_a_second_process_for_the_same_output_is_refused(shot, capsys):
    gains = shot.with_name("shot_gains.json")
    with claimed(gains, "taken"):
        assert optimize(shot) == 1
    assert f"Another process is working on '{gains}': wait for it" in capsys.readouterr().err
    assert set(listing(shot.parent)) == {"shot.blend"}
    shot.with_name("shot_gains.json.lock").touch()  # as a process leaves it that is killed
    assert optimize(shot) == 3
    assert set(listing(shot.parent)) == {"shot.blend", gains.name}


@on_linux
@pytest.mark.parametrize(
    ("asked", "ctrl_c"),
    [("SIGINT", signal.SIG_DFL), ("SIGTERM", signal.SIG_IGN), SIGTERM, SIGHUP],
)
def test_no_process_is_left_after_ctrl_c_and_its_like(shot, start, asked, ctrl_c):
    """Also where Ctrl-C is ignored, as in what a script starts in the background."""
    process = start(LONG, ctrl_c=ctrl_c)
    read_until(process, "generation 1:")
    workers = children(process.pid)
    assert len(workers) == 2
    process.send_signal(signal.Signals[asked])
    status, told = ended(process)
    assert status == 1
    assert "poise: stopped." in told and "the same command goes on from there." in told
    assert "Traceback" not in told
    assert_ended(workers)
    assert set(listing(shot.parent)) == {"shot.blend", "shot_gains.json.checkpoint"}


@on_linux
@pytest.mark.slow
def test_killed_and_resumed_it_finds_the_same(shot, start):
    folder = shot.parent
    generations = "--generations=25"
    names = ("whole", "killed")
    outputs = {
        n: ("--output", folder / f"{n}.json", "--report", folder / f"{n}_report.json")
        for n in names
    }
    process = start(generations, *outputs["whole"])
    read_until(process, "generation 0:")
    workers = children(process.pid)
    assert ended(process)[0] == 3
    assert_ended(workers)
    checkpoint, lock = (folder / f"killed.json.{ending}" for ending in ("checkpoint", "lock"))
    for turn in range(3):
        process = start(generations, *outputs["killed"], workers=f"--workers={1 + turn % 2}")
        reached, told = -1, ""
        if turn:
            told = read_until(process, ", which '")
            reached = int(re.search(r"Going on after generation (\d+)", told)[1])
        read_until(process, f"generation {reached + 3}:", told)
        workers = children(process.pid)
        process.kill()
        process.wait(PATIENCE)
        assert workers
        assert_ended(workers)
        assert checkpoint.exists() and lock.exists() and not (folder / "killed.json").exists()
    status, told = ended(start(generations, *outputs["killed"]))
    assert status == 3 and "Going on after generation" in told
    assert (folder / "killed.json").read_bytes() == (folder / "whole.json").read_bytes()
    reports = [search_report(folder / f"{name}_report.json") for name in names]
    assert reports[0] == reports[1]
    assert set(listing(folder)) == {
        "shot.blend",
        *(f"{name}{ending}.json" for name in names for ending in ("", "_report")),
    }


@pytest.mark.slow
@pytest.mark.parametrize("restarts", ["--restarts=1", "--restarts=2"])
def test_the_number_of_workers_changes_nothing(shot, start, restarts):
    found = []
    for workers in range(4):
        gains, report = (shot.with_name(f"{name}{workers}.json") for name in ("gains", "report"))
        options = (restarts, "--output", gains, "--report", report)
        assert ended(start(*options, workers=f"--workers={workers}"))[0] == 3
        found.append((gains.read_bytes(), search_report(report)))
    assert found[0] == found[1] == found[2] == found[3]


@pytest.fixture
def scheduler(tmp_path_factory):
    """A Dask scheduler with two workers: (its process, its address)."""
    pytest.importorskip("distributed", reason="Dask's distributed is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    folder = tmp_path_factory.mktemp("dask")
    programs = {
        "scheduler": ("--host", address.removeprefix("tcp://")),
        "worker": (address, "--nworkers=2", "--nthreads=1", f"--local-directory={folder}"),
    }
    processes = []
    with (folder / "log").open("w") as log:
        for program, arguments in programs.items():
            command = [sys.executable, "-m", f"distributed.cli.dask_{program}", *arguments]
            command.append("--no-dashboard")
            processes.append(subprocess.Popen(command, stdout=log, stderr=log))
    until = time.monotonic() + PATIENCE
    while (folder / "log").read_text().count("Registered to:") < 2:
        assert time.monotonic() < until, (folder / "log").read_text()
        time.sleep(0.05)
    yield processes[0], address
    for process in reversed(processes):  # the nanny ends its workers
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()


@pytest.mark.slow
def test_a_cluster_changes_nothing(shot, start, scheduler):
    found = []
    for name, where in (("here", "--workers=2"), ("there", f"--scheduler={scheduler[1]}")):
        gains, report = (shot.with_name(f"{name}{ending}.json") for ending in ("", "_report"))
        status, told = ended(start("--output", gains, "--report", report, workers=where))
        assert status == 3, told
        found.append((gains.read_bytes(), search_report(report)))
    assert found[0] == found[1]


@pytest.mark.slow
def test_a_scheduler_that_ends_leaves_the_checkpoint(shot, start, scheduler):
    process = start(LONG, workers=f"--scheduler={scheduler[1]}")
    read_until(process, "generation 1:")
    scheduler[0].kill()
    status, told = ended(process)
    assert status == 1
    assert "poise: The workers were shut down while the search ran." in told
    assert "the same command goes on from there." in told
    assert "Traceback" not in told
    assert ended(start(LONG, "--budget=1s"))[0] == 3

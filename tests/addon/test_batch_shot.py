# SPDX-License-Identifier: GPL-3.0-or-later
"""One shot of a batch: processes that crash, hang or are killed, what is said of them, and what is
left on the disk. A small script stands in for `poise bake`."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers.processes import PATIENCE, assert_ends

from poise.addon.blender import locks
from poise.addon.blender.files import _temporary
from poise.addon.blender.locks import claimed
from poise.addon.command import batch_shot
from poise.addon.command.batch_shot import (
    FAILED,
    FELL,
    HUNG,
    RECORD,
    STOOD,
    ShotTask,
    finished,
    perform,
    perform_there,
)

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(
        not hasattr(os, "pidfd_open"), reason="waits for processes by Linux's pidfd_open"
    ),
]

#: Bakes as it is told by the text in the shot, and notes that it was called.
FAKE = """
import json, os, signal, subprocess, sys, time
arguments = sys.argv[1:]
assert arguments[0] == "bake" and "--leash" in arguments and "--overwrite" in arguments
options = dict(a[2:].split("=", 1) for a in arguments if "=" in a)
print("baking", arguments[1], flush=True)
if "FIFO" in os.environ:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with open(os.environ["FIFO"], "w") as pipe:
        pipe.write(f"{os.getpid()} {child.pid}")
text = open(arguments[1], encoding="utf-8").read()
exec(text)
def finish(status, why=""):
    with open(options["output"], "w") as file:
        file.write("a result of " + text)
    with open(options["strip"], "w") as file:
        file.write("<svg/>")
    with open(options["report"], "w") as file:
        told = {"success": status == 0, "why": why, "file": options["output"], "reward": 1.5}
        json.dump(told, file)
    sys.exit(status)
finish(3, "Fell at 1 s.") if "fall" in text else finish(0)
"""


@pytest.fixture
def make_task(tmp_path):
    """make_task(text, **fields) -> a ShotTask of a shot with this text."""
    script = tmp_path / "fake.py"
    script.write_text(FAKE)
    shots = tmp_path / "shots é 'q\" 日本"
    shots.mkdir()

    def make(text="", name="a shot.bvh", **fields):
        source = shots / name
        source.write_text(text, encoding="utf-8")
        task = ShotTask(
            source=str(source),
            name=name,
            folder=str(tmp_path / "baked"),
            arguments=("--noise=5",),
            files=(),
            workers=(),
            version="1",
            program=(sys.executable, str(script)),
            timeout=PATIENCE,
            overwrite=False,
        )
        (tmp_path / "baked").mkdir(exist_ok=True)
        return replace(task, **fields)

    return make


def calls(task):
    """How often the process was started."""
    return task.log.read_text().count("\n== ") + task.log.read_text().startswith("== ")


def left_over(task):
    """Names in the output folder, but for the result, the record and the log."""
    kept = {task.result, task.record, task.log}
    return {path.name for path in Path(task.folder).rglob("*")} - {path.name for path in kept}


def test_what_stands_is_whole_and_on_record(make_task):
    task = make_task()
    record = perform(task)
    assert (record["state"], record["why"]) == (STOOD, "")
    assert record == json.loads(task.record.read_text())
    report = {"success": True, "why": "", "file": str(task.result), "reward": 1.5}
    assert record["report"] == report
    assert record["strip"] == "<svg/>"
    assert task.result.read_text() == "a result of "
    assert (task.result.name, task.record.name) == ("a shot.bvh.blend", f"a shot.bvh{RECORD}")
    assert not left_over(task)


@pytest.mark.skipif(os.name == "nt", reason="names of files are text there")
def test_name_in_another_encoding(make_task):
    task = make_task(name=os.fsdecode(b"w\xe4lk.bvh"))
    assert perform(task)["state"] == STOOD
    assert finished(task)["shot"] == task.name
    assert os.fsencode(task.source) in task.log.read_bytes()


@pytest.mark.skipif(sys.platform != "linux", reason="names may be longer, or shorter, elsewhere")
def test_name_that_leaves_no_room_for_those_of_the_results(make_task):
    """What is being written has a longer name than what is there in the end."""
    for over in (1, 30):
        task = make_task(name=f"{'n' * (208 + over)}.bvh")
        record = perform(task)
        assert record["state"] == FAILED
        told = (
            f"The name of the shot is too long: shorten it by {over} plain letters (é counts as 2)."
        )
        assert record["why"] == told
        assert not left_over(task) and not task.log.exists()
    task = make_task(name=f"{'n' * 208}.bvh")
    assert perform(task)["state"] == STOOD
    assert not left_over(task)


def test_what_is_done_is_not_done_again(make_task):
    task = make_task("# fall")
    record = perform(task)
    before = task.result.stat().st_mtime_ns
    assert record["state"] == FELL and record["why"] == "Fell at 1 s."
    assert perform(task) == finished(task) == record
    assert (calls(task), task.result.stat().st_mtime_ns) == (1, before)


@pytest.mark.parametrize("change", ["source", "option", "version", "file", "no result", "record"])
def test_what_has_changed_is_done_again(make_task, tmp_path, change):
    gains = tmp_path / "gains.json"
    gains.write_text("{}")
    task = make_task(files=(str(gains),))
    perform(task)
    if change == "source":
        Path(task.source).write_text("# changed")
    elif change == "option":
        task = replace(task, arguments=("--noise=6",))
    elif change == "version":
        task = replace(task, version="2")
    elif change == "file":
        gains.write_text("{ }")
    elif change == "no result":
        task.result.unlink()
    else:
        task.record.write_text("{")
        task = replace(task, overwrite=True)
    assert finished(task) is None
    assert perform(task)["state"] == STOOD
    assert calls(task) == 2 and finished(task)


def test_workers_time_and_place_change_nothing(make_task, tmp_path):
    task = make_task()
    perform(task)
    assert finished(replace(task, workers=("--workers=3",), timeout=1.0))
    copy = shutil.copytree(task.folder, tmp_path / "elsewhere")
    assert finished(replace(task, folder=str(copy)))


FAILURES = {
    "sentence": ("print('poise: No feet.'); print('Blender quit'); sys.exit(1)", "^No feet.$"),
    "exception": ("1 / 0", r"status 1; the last that it told was 'ZeroDivisionError: division"),
    "silence": ("sys.exit(7)", "ended with status 7; the last that it told was 'baking "),
    "crash": ("os.kill(os.getpid(), signal.SIGSEGV)", r"by signal 11 \(Segmentation fault\); the"),
    "killed": ("os.kill(os.getpid(), signal.SIGKILL)", "as the system does where memory runs out"),
    "memory": ("raise MemoryError", "There was not enough memory for it: run fewer --jobs"),
    "no result": ("sys.exit(0)", "ended with status 0"),
}


@pytest.mark.parametrize("kind", FAILURES)
def test_failures_have_their_reason_in_a_sentence(make_task, kind):
    text, why = FAILURES[kind]
    record = perform(make_task(text))
    task = make_task(text)
    assert record["state"] == FAILED
    assert re.search(why, record["why"]) and record["why"].endswith(".")
    assert "\n" not in record["why"]
    assert json.loads(task.record.read_text()) == record
    assert not task.result.exists() and not left_over(task)
    Path(task.source).write_text("# mended")
    assert perform(task)["state"] == STOOD, "those that failed are tried again"


@pytest.fixture
def family(tmp_path, monkeypatch):
    """family() -> pids of the process of a shot and of its child, when it has started."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    monkeypatch.setenv("FIFO", str(pipe))

    def wait():
        with pipe.open() as file:
            return [int(pid) for pid in file.read().split()]

    return wait


HANG = "while True: time.sleep(1)"


@pytest.mark.slow(captured=False)
def test_hanging_shot_is_ended_with_its_children(make_task, family):
    task, records = make_task(HANG, timeout=4.0), []
    thread = threading.Thread(target=lambda: records.append(perform(task)))
    thread.start()
    pids = family()
    thread.join(PATIENCE)
    (record,) = records
    assert record["state"] == HUNG
    assert record["why"].startswith("Not done after 4 s, and ended; the last that it told was 'bak")
    for pid in pids:
        assert_ends(pid)


def test_stopped_shot_leaves_nothing(make_task, family):
    task, records, stop = make_task(HANG), [], threading.Event()
    thread = threading.Thread(target=lambda: records.append(perform(task, stop)))
    thread.start()
    pids = family()
    stop.set()
    thread.join(PATIENCE)
    assert records == [None]
    for pid in pids:
        assert_ends(pid)
    assert not task.record.exists() and not left_over(task)


def test_process_ends_with_the_one_that_started_it(tmp_path):
    """However that ends: its end of the pipe is closed then."""
    script = "from poise.addon.command.batch_shot import end_with_parent as f\n"
    script += "f(); print(1, flush=True)\n"
    script += "while True: pass"
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"1\n"
    assert process.poll() is None
    process.stdin.close()
    assert process.wait(PATIENCE) == 1


def test_workers_of_a_cluster_need_nothing_of_blender():
    script = "import sys; sys.modules['bpy'] = None; import poise.addon.command.batch_shot"
    assert subprocess.run([sys.executable, "-c", script], timeout=PATIENCE).returncode == 0


# --- The disk -----------------------------------------------------------------------------------


def test_what_no_batch_has_made_is_not_replaced(make_task):
    task = make_task()
    task.result.write_text("precious")
    for _ in range(2):
        record = perform(task)
        assert record["state"] == FAILED
        assert "exists, and no batch has made it: move it away" in record["why"]
        assert task.result.read_text() == "precious" and not task.log.exists()
    assert perform(replace(task, overwrite=True))["state"] == STOOD


@pytest.mark.parametrize("arguments", [("--noise=5",), ("--noise=6",)])
def test_what_was_changed_since_is_not_replaced(make_task, arguments):
    """Whether the batch is the same or another one; a failure in between forgets nothing."""
    task = make_task()
    made = perform(task)
    again = replace(task, arguments=arguments)
    task.result.write_text("edited  by h")
    for _ in range(2):
        record = perform(again)
        assert record["state"] == FAILED and finished(task) is None
        assert "exists, and is no longer as the batch made it: move it away" in record["why"]
        assert task.result.read_text() == "edited  by h" and calls(task) == 1
    task.result.write_text("a result of ")
    assert perform(again)["state"] == STOOD
    task.result.write_text("edited")
    assert perform(replace(again, overwrite=True))["state"] == STOOD
    assert task.result.read_text() == "a result of "
    assert made["owned"] and perform(again) == finished(again)


def test_records_that_do_not_tell_their_results_go_on_as_before(make_task):
    task = make_task()
    record = perform(task) | {"owned": True}
    task.record.write_text(json.dumps(record))
    task.result.write_text("edited")
    assert perform(task) == record
    assert perform(replace(task, arguments=("--noise=6",)))["state"] == STOOD


def test_result_without_a_record_is_made_anew_after_a_kill(make_task):
    task = make_task()
    task.result.write_text("made, and killed before it was on record")
    task.part("0123456789abcdef", ".json").write_text("{}")
    assert perform(task)["state"] == STOOD
    assert task.result.read_text() == "a result of "


def test_checkpoint_is_gone_on_from_only_if_nothing_has_changed(make_task):
    """What a search keeps beside its output: of a run that failed, and one with other options."""
    keep = "open(options['output'] + '.tuning', 'a').write('x')\n"
    task = make_task(keep + "sys.exit(1)", name="a [1].bvh")
    for times in (1, 2):
        assert perform(task)["state"] == FAILED
        (name,) = left_over(task)
        assert name.endswith(".tuning")
        assert task.result.with_name(name).read_text() == "x" * times
    other = replace(task, arguments=("--noise=6",))
    assert perform(other)["state"] == FAILED
    (kept,) = left_over(task)
    assert kept != name and task.result.with_name(kept).read_text() == "x"
    Path(task.source).write_text(keep)
    assert perform(other)["state"] == STOOD
    assert not left_over(task)


@pytest.mark.parametrize("text", ["", "sys.exit(1)"])
def test_what_was_being_written_at_a_kill_is_removed(make_task, text):
    task = make_task(text, name="a [1].bvh")
    part = task.part("0" * 64, ".blend")
    half, checkpoint = _temporary(part), part.with_name(f".{part.name}.tuning.12")
    other = half.with_name(half.name.replace("a [1]", "b"))
    outputs = [_temporary(path) for path in task.outputs]  # probes, and the record
    for path in (half, checkpoint, other, *outputs):
        path.write_text("half")
    perform(task)
    assert left_over(task) == {other.name}, "which is another shot's"
    assert [path.name for path in outputs if path.exists()] == []


def test_one_process_at_a_time(make_task):
    task = make_task()
    with claimed(task.record, "taken"):
        record = perform(task)
    assert record["state"] == FAILED
    assert record["why"] == "Another process works on 'a shot.bvh': wait for it, or end it."
    assert not task.record.exists(), "it is the other's"


def test_worker_that_dies_is_waited_for(make_task, monkeypatch):
    task = make_task()
    with contextlib.ExitStack() as dying:
        dying.enter_context(claimed(task.record, "taken"))
        clock = SimpleNamespace(monotonic=lambda: 0.0, sleep=lambda _: dying.close())
        monkeypatch.setattr(locks, "time", clock)
        assert perform_there(asdict(task))["state"] == STOOD


def test_full_disk_is_told_before_any_work(make_task, monkeypatch):
    task = make_task()
    usage = SimpleNamespace(free=1000)
    monkeypatch.setattr(batch_shot.shutil, "disk_usage", lambda _: usage)
    record = perform(task)
    assert record["state"] == FAILED
    assert record["why"] == f"The disk of '{task.folder}' is full: make room, and start again."
    assert not task.log.exists()


def test_disk_that_gets_full_costs_the_shot_alone(make_task, monkeypatch):
    task = make_task()

    def no_room(*_):
        raise OSError(28, "No space left on device", str(task.result))

    monkeypatch.setattr(batch_shot.os, "replace", no_room)
    record = perform(task)
    monkeypatch.undo()
    assert record["state"] == FAILED
    assert record["why"] == f"'{task.record}' cannot be written (No space left on device)."
    assert perform(task)["state"] == STOOD


def test_source_that_cannot_be_read(make_task, monkeypatch):
    task = make_task()

    def denied(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(batch_shot.hashlib, "file_digest", denied)
    record = perform(task)
    assert record["why"] == f"'{task.source}' cannot be read (Permission denied): check its rights."


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("which", ["result", "log"])
def test_only_files_are_written(make_task, which):
    """Nothing waits for the other end of a pipe, or takes its place."""
    task = make_task(overwrite=True)
    path = getattr(task, which)
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    record = perform(task)
    assert record["state"] == FAILED
    assert record["why"] == f"'{path}' is a device or a pipe: name a file."
    assert path.is_fifo()


def test_pipe_as_a_source_hangs_its_process_alone(make_task):
    task = make_task(timeout=0.5)
    Path(task.source).unlink()
    os.mkfifo(task.source)
    assert perform(task)["state"] == HUNG

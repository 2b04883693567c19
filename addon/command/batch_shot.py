# SPDX-License-Identifier: GPL-3.0-or-later
"""One shot of a batch, in a process of its own that may crash or hang, and the record of it.

Needs nothing of Blender's, so that the workers of a cluster can run it.
"""

import argparse
import contextlib
import glob
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...controller import documents
from ..blender.files import FileError, check_target, left_over, write_json
from ..blender.locks import TakenError, claimed
from ..terminal.command_progress import DONE, MISSED

#: Endings of what is kept for each shot, beside its result.
RECORD, LOG = ".poise.json", ".log"

#: What can become of a shot: baked, and it stood or fell; cleaned; or not done.
STOOD, FELL, CLEANED, FAILED, HUNG = "stood", "fell", "cleaned", "failed", "hung"

#: Of those the ones that have a result.
DONE_WITH = (STOOD, FELL, CLEANED)

#: Look whether the process has ended, or shall, this often [s].
_TURN = 0.1

#: A shot of a worker that died is begun elsewhere as soon as its connection is lost, which the
#: system may close before the lock: it is free within this time [s], by judgement.
_DYING = 10.0

#: Among so many last lines is the one that says why; Blender may say good-bye after it.
_ENDS = 3

#: What a record says.
_KEYS = set(
    "shot source state why seconds fingerprint owned version arguments report strip".split()
)

#: So much of a log tells why a process ended [bytes].
_TAIL = 20_000

#: Least room on the disk with which a shot is begun [bytes], beside the size of the source.
_ROOM = 1 << 20

#: What is not whole yet: its ending, and the option of `bake` that names it. `clean` has no strip.
_PARTS = {".blend": "output", ".json": "report", ".svg": "strip"}

#: So many letters tell what a file that is not whole yet is made of.
_MARK = 12

#: Longest name of a file [bytes], and what a file that is being written has more of it: Blender's
#: "@", or a dot before it and the number of the process behind.
_LONGEST, _TEMPORARY = 255, 12

#: Lines of a log that say nothing about the shot: our own, and what PyBullet greets with.
_NOISE = ("== ", "pybullet build time: ")

_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True)
class ShotTask:
    """What to do for one shot. All is plain, so that it finds its way to other machines.

    source: absolute path. name: of the shot, its path below the root, with "/". folder: absolute
    path of the output folder. arguments: of the verb. files: paths of what they name.
    workers: more arguments, which change nothing of what is found. version: of Poise. program: the
    command that runs Poise, None for `python -m poise`. timeout: [s]. overwrite: whether a result
    that no batch made may be replaced. verb: bake or clean.
    """

    source: str
    name: str
    folder: str
    arguments: tuple[str, ...]
    files: tuple[str, ...]
    workers: tuple[str, ...]
    version: str
    program: tuple[str, ...] | None
    timeout: float
    overwrite: bool
    verb: str = "bake"

    @property
    def result(self) -> Path:
        """Path of the .blend to write: shot.blend of shot.blend, walk.bvh.blend of walk.bvh."""
        return Path(self.folder, result_name(self.name))

    @property
    def record(self) -> Path:
        """Path of the record."""
        return Path(self.folder, self.name + RECORD)

    @property
    def log(self) -> Path:
        """Path of what its processes have told."""
        return Path(self.folder, self.name + LOG)

    @property
    def outputs(self) -> tuple[Path, ...]:
        """Paths of all that is there in the end."""
        return self.result, self.record, self.log

    def part(self, mark: str, ending: str) -> Path:
        """Path of what is not whole yet, for a fingerprint: a search goes on from its checkpoint
        only if nothing has changed. It is beside the result, as paths in that are relative."""
        return self.result.with_name(f".{self.result.name}.{mark[:_MARK]}.part{ending}")

    def parts(self, ending: str = "") -> list[Path]:
        """Paths of all that was not whole yet, whatever has changed."""
        pattern = f".{glob.escape(self.result.name)}.*.part{ending or '*'}"
        return list(self.result.parent.glob(pattern))

    def halves(self) -> list[Path]:
        """Paths of what processes wrote when they were killed, under temporary names."""
        name = glob.escape(self.result.name)
        ends = "part-*", "part.*.[0-9]*"  # of outputs, and of checkpoints
        parts = [path for end in ends for path in self.result.parent.glob(f"..{name}.*.{end}")]
        return parts + [path for output in self.outputs for path in left_over(output)]


def result_name(name: str) -> str:
    """Path of the result of the shot of this name, below the output folder."""
    return name if name.lower().endswith(".blend") else f"{name}.blend"


def fingerprint(task: ShotTask) -> str:
    """A text that changes when the source, the options, or Poise itself do."""
    digest = hashlib.sha256(json.dumps([task.version, task.verb, *task.arguments]).encode())
    for path in (task.source, *task.files):
        if Path(path).is_file():  # reading from a pipe might never end
            digest.update(bytes.fromhex(_digest(path)))
    return digest.hexdigest()


def _digest(path: str | Path) -> str:
    """What tells a file's content from another. Raises FileError."""
    try:
        return documents.digest(path)
    except OSError as error:
        raise FileError(f"'{path}' cannot be read ({error.strerror}): check its rights.") from None


def finished(task: ShotTask) -> dict[str, Any] | None:
    """The record of a shot that is done already; None if it is not. Raises FileError."""
    record = read_record(task.record) if os.path.isfile(task.result) else None
    if record is None or record["state"] not in DONE_WITH:
        return None
    if record["fingerprint"] != fingerprint(task):
        return None
    return record if record["owned"] in (True, _digest(task.result)) else None


def read_record(path: Path) -> dict[str, Any] | None:
    """The record in a file; None if there is none, or something else."""
    if not os.path.isfile(path):  # reading from a pipe might never end; names may be too long
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) and set(content) == _KEYS else None


def perform(
    task: ShotTask, stop: threading.Event | None = None, patience: float = 0.0
) -> dict[str, Any] | None:
    """Bake or clean a shot, unless that is done already -> its record, which is in its file too.

    stop: threading.Event that ends it early; the result is None then. patience: how long another
    process that works on it is waited for [s]. What is the shot's fault, or
    the disk's, is told in the record and nothing is raised.
    """
    try:
        _check_name(task)
        task.record.parent.mkdir(parents=True, exist_ok=True)
        taken = f"Another process works on '{task.name}': wait for it, or end it."
        with claimed(task.record, taken, patience):
            return finished(task) or _performed(task, stop)
    except (FileError, TakenError) as error:
        return _record(task, FAILED, str(error))
    except OSError as error:
        return _record(task, FAILED, _not_written(task, error))


def perform_there(fields: dict[str, Any]) -> dict[str, Any] | None:
    """`perform` for the fields of a ShotTask, on another machine."""
    return perform(ShotTask(**fields), patience=_DYING)


def lost(task: ShotTask, why: str) -> dict[str, Any]:
    """The record of a shot that nobody could perform."""
    return _record(task, FAILED, why)


# --- The process --------------------------------------------------------------------------------


def end_with_parent() -> None:
    """End this process when the one that started it ends: its standard input ends then. For
    `--leash`."""

    def wait() -> None:
        while os.read(0, 1):
            pass
        os._exit(1)

    threading.Thread(target=wait, name="leash", daemon=True).start()


def add_leash(parser: argparse.ArgumentParser) -> None:
    """The argument by which a batch takes what it starts along when it ends, however that is."""
    parser.add_argument("--leash", action="store_true", help=argparse.SUPPRESS)


def _performed(task: ShotTask, stop: threading.Event | None) -> dict[str, Any] | None:
    """Bake the shot, and write what became of it; None if it was stopped."""
    try:
        record = _baked(task, stop)
    except FileError as error:
        record = _record(task, FAILED, str(error))
    except OSError as error:
        record = _record(task, FAILED, _not_written(task, error))
    if record is not None:
        write_json(task.record, record)
        _tidy(task, record)
    return record


def _tidy(task: ShotTask, record: dict[str, Any]) -> None:
    """Remove what is not needed once there is this record: all but checkpoints to go on from."""
    mark = record["fingerprint"]
    if not mark:  # it was never begun
        return
    again = task.part(mark, "").name if record["state"] in (FAILED, HUNG) else None
    for path in (*task.parts(), *task.halves()):
        if again is None or not path.name.startswith(again) or path.suffix in _PARTS:
            path.unlink()


def _baked(task: ShotTask, stop: threading.Event | None) -> dict[str, Any] | None:
    """The record of a shot that was just baked, or could not be; None if it was stopped."""
    _check_room(task)
    for path in task.outputs:
        check_target(path, overwrite=True)
    if task.result.exists() and not task.overwrite:
        _check_ours(task)
    mark = fingerprint(task)
    told_before = task.log.stat().st_size if task.log.exists() else 0
    started = time.monotonic()
    status = _run(task, mark, stop)
    measured: dict[str, Any] = {
        "seconds": round(time.monotonic() - started, 2),
        "fingerprint": mark,
    }
    told = _tail(task.log, told_before)
    if status is None:
        if stop is not None and stop.is_set():
            return None
        why = f"Not done after {_clock(task.timeout)}, and ended; {_last_line(told)}."
        return _record(task, HUNG, why, **measured)
    part, report, drawn = (task.part(mark, ending) for ending in _PARTS)
    if status not in (DONE, MISSED) or not (part.is_file() and report.is_file()):
        return _record(task, FAILED, _why(status, told), **measured)
    content = json.loads(report.read_text(encoding="utf-8")) | {"file": str(task.result)}
    if task.verb == "clean":
        state, why, strip = CLEANED, "", ""
    else:
        state, why = STOOD if content["success"] else FELL, content["why"]
        strip = drawn.read_text(encoding="utf-8")
    os.replace(part, task.result)
    record = _record(task, state, why, **measured, strip=strip, report=content)
    return record | {"owned": _digest(task.result)}


def _owned(task: ShotTask) -> str | bool:
    """What tells the content of the result that a batch made from another; whether one made it,
    where that is all that is known: until there is a record of it, its report is there."""
    record = read_record(task.record)
    return bool(task.parts(".json")) or (record is not None and record["owned"])


def is_ours(task: ShotTask) -> bool:
    """Whether the result that is there is one that a batch made, as it made it."""
    return _owned(task) in (True, _digest(task.result))


def _check_ours(task: ShotTask) -> None:
    """Raise FileError where no batch made the result that is there."""
    if not is_ours(task):
        what = "is no longer as the batch made it" if _owned(task) else "no batch has made it"
        raise FileError(
            f"'{task.result}' exists, and {what}: move it away, name another --output, or say "
            "--overwrite."
        )


def _check_name(task: ShotTask) -> None:
    """Raise FileError where the disk has no names as long as those of the files for a shot."""
    longest = max(len(os.fsencode(task.part("0" * _MARK, end).name)) for end in _PARTS)
    over = longest + _TEMPORARY - _LONGEST
    if over > 0:
        raise FileError(
            f"The name of the shot is too long: shorten it by {over} plain letters (é counts as 2)."
        )


def _check_room(task: ShotTask) -> None:
    """Raise FileError where the disk is full: nothing is simulated for nothing."""
    free = shutil.disk_usage(task.folder).free
    source = Path(task.source)
    if free < _ROOM + (source.stat().st_size if source.is_file() else 0):
        raise FileError(f"The disk of '{task.folder}' is full: make room, and start again.")


def _run(task: ShotTask, mark: str, stop: threading.Event | None) -> int | None:
    """Run the process; its exit status, None if it took too long or was stopped."""
    program = task.program or (sys.executable, "-m", "poise")
    command = [*program, task.verb, task.source, *task.arguments, *task.workers]
    command += ["--leash", "--overwrite"]
    for ending, option in _PARTS.items():
        if option != "strip" or task.verb == "bake":
            command.append(f"--{option}={task.part(mark, ending)}")
    with task.log.open("ab") as log:
        told = f"== {time.strftime('%Y-%m-%d %H:%M:%S')} {' '.join(command)}\n"
        log.write(told.encode(errors="surrogateescape"))  # names in other encodings
        log.flush()
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env=os.environ | _ONE_THREAD,
            # Its own group: it is ended with all that it has started, and Ctrl-C is ours alone.
            start_new_session=os.name != "nt",
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        try:
            return _wait(process, task.timeout, stop)
        finally:
            _end(process)


def _wait(process: subprocess.Popen, timeout: float, stop: threading.Event | None) -> int | None:
    end = time.monotonic() + timeout
    while time.monotonic() < end and not (stop is not None and stop.is_set()):
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(_TURN)
    return None


def _end(process: subprocess.Popen) -> None:
    """End a process and all that it has started."""
    assert process.stdin is not None  # it was started with a pipe
    process.stdin.close()
    if os.name == "nt":
        process.kill()
    else:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


# --- Why it failed ------------------------------------------------------------------------------


def _why(status: int, told: str) -> str:
    """One sentence on a process that ended with a status and has told this."""
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    if any(line.startswith("MemoryError") for line in lines):
        return "There was not enough memory for it: run fewer --jobs, or fewer --frames."
    if status < 0:
        why = f"Its process was ended by signal {-status} ({signal.strsignal(-status)})"
        if -status == signal.SIGKILL:
            why += ", as the system does where memory runs out"
        return f"{why}; {_last_line(told)}."
    for line in reversed(lines[-_ENDS:]):
        if line.startswith("poise: "):
            return line.removeprefix("poise: ")
    return f"Its process ended with status {status}; {_last_line(told)}."


def _last_line(told: str) -> str:
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    return f"the last that it told was '{lines[-1][:200]}'" if lines else "it told nothing"


def _tail(log: Path, start: int) -> str:
    """The end of what was told since the log had this size."""
    with log.open("rb") as file:
        file.seek(max(start, log.stat().st_size - _TAIL))
        lines = file.read().decode(errors="replace").replace("\r", "\n").splitlines()
    return "\n".join(line for line in lines if not line.startswith(_NOISE))


def _clock(seconds: float) -> str:
    return f"{seconds / 60:g} min" if seconds >= 60 else f"{seconds:g} s"


def _not_written(task: ShotTask, error: OSError) -> str:
    return f"'{error.filename or task.folder}' cannot be written ({error.strerror})."


def _record(
    task: ShotTask,
    state: str,
    why: str,
    seconds: float = 0.0,
    fingerprint: str = "",
    strip: str = "",
    report: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """What became of a shot, as a dict for JSON.

    seconds: that its process took. owned: of the result, if there is one, as `_owned` has it.
    strip: text of an SVG. report: of `poise bake` or `poise clean`.
    """
    return {
        "shot": task.name,
        "source": task.source,
        "state": state,
        "why": why,
        "seconds": seconds,
        "fingerprint": fingerprint,
        "owned": _owned(task),
        "version": task.version,
        "arguments": list(task.arguments),
        "report": report,
        "strip": strip,
    }

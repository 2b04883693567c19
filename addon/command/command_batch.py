# SPDX-License-Identifier: GPL-3.0-or-later
"""`poise batch`: bake or clean many shots, each in a process of its own, and sum up.

A shot is done if its result and its record are there and nothing that made them has changed, so
that the same command goes on with what is missing, however the one before ended. No source is ever
written to.
"""

import argparse
import contextlib
import json
import os
import threading
import time
from concurrent.futures import FIRST_COMPLETED, CancelledError, ThreadPoolExecutor, wait
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import bpy

from ...controller.clean_up.clean_up import CleanUpOptions
from ...controller.exceptions import ExecutorError, PoiseError
from ...controller.gains.gains import Gains
from ...controller.options import options_of
from ...controller.processes import cluster
from ...controller.processes.workers import Remote, processors
from ..blender.files import FileError, check_target, identity, write_json, write_text
from ..blender.locks import claimed
from ..rigs import rig
from ..scene import morphology
from ..shots.shot import versions
from ..terminal import command_contacts
from ..terminal.command_arguments import (
    add_options,
    check_falls,
    gains_named,
    seconds,
    shot_arguments,
    whole,
)
from ..terminal.command_files import ENDINGS, demand_there, is_shot, open_shot
from ..terminal.command_libraries import used_files
from ..terminal.command_progress import DONE, MISSED, LiveLine, say
from ..terminal.command_progress import FAILED as FAILURE
from ..terminal.command_workers import interrupts
from . import command_rectify
from .batch_report import html, kept_words, summary
from .batch_shot import (
    CLEANED,
    DONE_WITH,
    FELL,
    RECORD,
    STOOD,
    ShotTask,
    finished,
    is_ours,
    lost,
    perform,
    perform_there,
    read_record,
)

#: Longest time for a shot [s], beside that for the search of its gains.
_TIMEOUT = 2 * 3600.0

#: Look for finished shots this often [s].
_TURN = 0.2

#: Options of `bake` that are the batch's own business.
_OWN = ("report", "overwrite", "workers", "scheduler", "checkpoint")

#: Options of `bake` whose value may be a file.
_FILES = ("gains", "rig", "morphology", "contacts", "script")

_BAR, _WIDTH = 20, 79  # characters


def add_parser(verbs, commands, add_bake_arguments):
    """Add the verb to the subparsers `verbs`.

    commands: the parser of all commands, which says whether `bake` takes what is passed on to it.
    add_bake_arguments: adds the arguments of `bake` that are passed on.
    """
    verb = verbs.add_parser(
        "batch",
        parents=[shot_arguments()],
        conflict_handler="resolve",
        allow_abbrev=False,
        help="bake many shots, each in a process of its own, and sum up",
        description="Bake many shots, each in a process of its own, and sum up. The same command "
        "goes on with what is missing, however the one before ended. All other options of `bake` "
        "are passed on to each shot.",
        usage=f"{commands.prog} batch FILE|FOLDER … --output FOLDER [--jobs N] [option …]",
        epilog="exit status: 0 all stood, or are cleaned; 1 some could not be done; 2 wrong usage; "
        "3 all are baked, but some fell",
    )
    own = verb.add_argument_group("batch")
    add_bake_arguments(verb)
    # `--balance` is that of a simulation.
    clean = {f"clean_{name}": _named(name, one) for name, one in options_of(CleanUpOptions).items()}
    add_options(verb.add_argument_group("with --clean-only"), clean)
    passed = [a for a in verb._actions if a.option_strings and a.dest not in ("help", *_OWN)]
    for action in passed:
        action.type = _checked(action.type)
    _add_own_arguments(verb, own.add_argument)
    verb.set_defaults(
        run=_run,
        usage_error=verb.error,
        passed_arguments=partial(_passed_arguments, commands, {a.dest: a for a in passed}),
    )


def _add_own_arguments(verb, add):
    verb.add_argument(
        "shots",
        nargs="*",
        type=Path,
        metavar="FILE|FOLDER",
        help=f"shots ({', '.join(ENDINGS)}), and folders of them",
    )
    add("--output", type=Path, metavar="FOLDER", help="for results, records and logs")
    add(
        "--clean-only",
        action="store_true",
        help="clean feet and weight of each, as `clean` does, and simulate nothing",
    )
    add("--jobs", type=whole("jobs"), default=1, metavar="N", help="shots at the same time (1)")
    add(
        "--workers",
        type=whole("jobs"),
        metavar="N",
        help="processes of each shot's search, 1 at least (shared by the jobs)",
    )
    add("--scheduler", metavar="ADDRESS", help="bake on this Dask cluster: tcp://host:8786")
    add("--recursive", action="store_true", help="take the folders in folders too")
    add("--root", type=Path, metavar="FOLDER", help="below it shots have names (where all are)")
    add(
        "--timeout",
        type=seconds,
        metavar="TIME",
        help="end a shot that takes longer: 90, 120s, 10min (2h, and the time of --optimize)",
    )
    add("--report", type=Path, metavar="FILE", help="write the summary as HTML")
    add("--json", type=Path, metavar="FILE", help="write the summary as JSON")
    add(
        "--overwrite",
        action="store_true",
        help="replace results that no batch has made, or that were changed since",
    )
    add(
        "--farm",
        action="store_true",
        help="as one task of many that share the output folder: lock the shots alone, and end "
        "with 0 once it is on record what became of them",
    )
    add(
        "--collect",
        type=Path,
        metavar="FOLDER",
        help="bake nothing, sum up the records in this output folder",
    )


# --- What is passed on --------------------------------------------------------------------------


def _checked(kind):
    """An argument's type that lets pass what another one takes, as it was written."""

    def check(text):
        value = kind(text) if kind else text
        return value if isinstance(value, str) else text

    return check


def _named(name, option):
    """A controller.options.Option whose argument does not depend on where its value is kept."""
    return replace(option, argument=option.argument or f"--{name}")


def _passed_arguments(commands, passed, options):
    """(arguments that are passed on to the verb, the files that they name, what it understands by
    them)."""
    arguments, files = [], []
    for dest, action in passed.items():
        value, name = getattr(options, dest), action.option_strings[0]
        if value == action.default:
            continue
        if action.nargs == 0:
            if isinstance(action, argparse.BooleanOptionalAction):
                name = action.option_strings[0 if value else 1]
            arguments.append(name)
            continue
        for text in value if isinstance(value, list) else [value]:
            if dest in _FILES and Path(text).is_file():
                text = str(Path(text).absolute())
                files.append(text)
            arguments.append(f"{name}={text}")
    understood, others = commands.parse_known_args([_verb(options), "shot.blend", *arguments])
    if others and options.clean_only:
        options.usage_error(f"--clean-only simulates nothing: leave out {' '.join(others)}")
    if others:
        options.usage_error(
            f"{' '.join(others)} is for --clean-only: leave it out, or say that too"
        )
    understood.usage_error = options.usage_error
    command_contacts.given(understood)
    if understood.rig:
        rig.named(understood.rig)
    if not options.clean_only:
        _check_simulation(understood)
    return arguments, files, understood


def _verb(options):
    return "clean" if options.clean_only else "bake"


def _check_simulation(understood):
    """Raise PoiseError, or call `usage_error`, for what no simulation could make use of."""
    check_falls(understood, understood)
    command_rectify.check(understood)
    morphology.chosen(understood)
    gains = gains_named(understood.gains)
    if isinstance(gains, str):
        Gains.load(gains)


def _workers(options, understood):
    """The arguments that say how many workers the search of each shot has."""
    if options.clean_only:
        return []
    searches = understood.optimize or understood.method != "balance"
    if not searches:
        return []
    share = 1 if options.scheduler else max(1, processors() // options.jobs)
    return [f"--workers={options.workers or share}"]


# --- Which shots --------------------------------------------------------------------------------


def _tasks(options, output):
    """The ShotTasks, in the order of their names. Raises FileError."""
    arguments, files, understood = options.passed_arguments(options)
    sources = {*_sources(options, output)}
    root = _absolute(options.root) if options.root else _root(options, sources)
    blender = _blender()
    task = ShotTask(
        source="",
        name="",
        folder=str(output),
        arguments=tuple(arguments),
        files=tuple(files),
        workers=tuple(_workers(options, understood)),
        version=versions()["poise"],
        program=(blender, "--background", "--command", "poise") if blender else None,
        timeout=options.timeout or _TIMEOUT + (getattr(understood, "optimize", None) or 0.0),
        overwrite=options.overwrite,
        verb=_verb(options),
    )
    tasks = [replace(task, source=str(path), name=_name(path, root)) for path in sources]
    tasks.sort(key=lambda task: task.name)
    searched = options.shots if options.recursive else ([options.root] if options.root else ())
    _check_results(tasks, [path for path in map(_absolute, searched) if path.is_dir()])
    _check_used(tasks)
    return tasks


def _blender():
    """Path of the program that this runs in; empty for the bpy module."""
    return bpy.app.binary_path


def _absolute(path):
    """An absolute path without '..', which would lead out of the output folder."""
    return Path(os.path.abspath(path))


def _sources(options, output):
    """Absolute paths of the shots."""
    for path in map(_absolute, options.shots):
        if path.is_dir():
            found = [*_in_folder(path, options.recursive, output)]
            if not found:
                raise FileError(
                    f"There is no shot in '{path}': name a folder with {', '.join(ENDINGS)} files."
                )
            yield from found
            continue
        demand_there(path)
        if not is_shot(path):
            raise FileError(f"'{path}' is no shot: name {', '.join(ENDINGS)} files, or folders.")
        yield path


def _in_folder(folder, recursive, output):
    results = output if folder in output.parents else None
    for path in folder.rglob("*") if recursive else folder.iterdir():
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        shot = is_shot(path) and not path.is_dir()
        if shot and not hidden and results not in path.parents:
            yield path


def _root(options, sources):
    """The folder below which all shots are."""
    if len(options.shots) == 1 and options.shots[0].is_dir():
        return _absolute(options.shots[0])
    return Path(os.path.commonpath([path.parent for path in sources]))


def _name(path, root):
    try:
        return path.relative_to(root).as_posix()
    except ValueError:
        raise FileError(f"'{path}' is not below '{root}': name another --root.") from None


def _is_foreign(task):
    """Whether what is there in place of a result of a batch is none."""
    return task.result.exists() and read_record(task.record) is None and not task.parts(".json")


def _check_results(tasks, folders):
    """Raise FileError where a result would replace a shot, as all in these folders may be, or
    another result; or where what is written beside it is another file by that name."""
    sources = {identity(task.source) for task in tasks}
    read = sources | {identity(path) for task in tasks for path in task.files}
    results = {}
    for task in tasks:
        for path in (task.record, task.log):
            if path.is_symlink() or identity(path) in read:
                raise FileError(
                    f"'{path}' is a link to another file, which would be written: remove the link, "
                    "or name another --output folder."
                )
        path = identity(task.result)
        if path in sources:
            raise FileError(
                f"'{task.result}' is a shot itself: name an --output folder without shots in it."
            )
        if any(folder in task.result.parents for folder in folders) and _is_foreign(task):
            raise FileError(
                f"'{task.result}' is in a folder of shots, and no batch has made it, so it may be "
                "one of them: name an --output folder elsewhere, or move it away."
            )
        other = results.setdefault(path, task)
        if other is not task:
            raise FileError(
                f"'{other.name}' and '{task.name}' would both become '{task.result}': rename one."
            )


def _check_used(tasks):
    """Raise FileError where what no batch has made, and would be replaced, is used by a shot, as a
    library. To know that the shots have to be opened, so it is asked only then."""
    there = [task for task in tasks if task.overwrite and task.result.is_file()]
    foreign = {identity(task.result): task for task in there if not is_ours(task)}
    for task in tasks if foreign else ():
        try:
            open_shot(task.source)
        except PoiseError:
            continue  # which its own process tells
        for path in map(identity, used_files()):
            if path in foreign:
                raise FileError(
                    f"'{foreign[path].result}' is used by the shot '{task.name}', and would be "
                    "replaced: name another --output folder, or move it away."
                )


# --- Running ------------------------------------------------------------------------------------


def _run(options):
    """`poise batch`: bake, or collect, and sum up; the exit status."""
    if options.collect:
        if options.shots:
            options.usage_error("--collect takes no shots: it reads the records that are there")
        _check_summaries(options)
        return _conclude(options, _absolute(options.collect), _collected(options.collect))
    if not options.shots:
        options.usage_error("name shots, or folders of them")
    if not options.output:
        options.usage_error("name an --output folder")
    if options.checkpoint:
        options.usage_error("--checkpoint is for a single shot: here each has its own")
    output = _absolute(options.output)
    tasks = _tasks(options, output)
    _make(output)
    _check_summaries(options, tasks)
    taken = f"Another batch writes to '{output}': wait for it, or name another --output."
    lock = contextlib.nullcontext() if options.farm else claimed(output / ".poise-batch", taken)
    with lock:
        return _conclude(options, output, _performed(options, tasks))


def _make(folder):
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(
            f"The folder '{folder}' cannot be made ({error.strerror}): name another --output."
        ) from None
    check_target(folder / ".poise-batch", overwrite=True)


def _performed(options, tasks):
    """The records of all shots that are done or were tried, in order, and how many are left."""
    records = [_finished(task) for task in tasks]
    left = [task for task, record in zip(tasks, records, strict=True) if record is None]
    if len(left) < len(tasks):
        say(f"{len(tasks) - len(left)} of {len(tasks)} shots are done already.")
    with interrupts() as caught, _executor(options) as (submit, stop):
        done = _follow({submit(task): task for task in left}, len(tasks), caught, stop)
    records = [done.get(task, record) for task, record in zip(tasks, records, strict=True)]
    return [record for record in records if record is not None], records.count(None)


def _finished(task):
    with contextlib.suppress(FileError):  # told when it is tried
        return finished(task)


@contextlib.contextmanager
def _executor(options):
    """(what submits a ShotTask and gives its Future, what stops all that are under way)."""
    if options.scheduler:
        executor = cluster.connect(options.scheduler)
        try:
            yield lambda task: executor.submit(Remote(perform_there), asdict(task)), _leave_to_end
        finally:
            executor.shutdown(cancel_futures=True)
        return
    event = threading.Event()
    with ThreadPoolExecutor(options.jobs) as executor:
        try:
            yield lambda task: executor.submit(perform, task, event), event.set
        finally:
            event.set()
            executor.shutdown(cancel_futures=True)


def _leave_to_end():
    say("What is under way on the cluster ends by itself.")


def _follow(futures, total, caught, stop):
    """Wait for all, and tell of each -> {task: record}. Ctrl-C ends them."""
    line, started, done, pending = LiveLine(), time.monotonic(), {}, set(futures)
    first = total - len(futures)
    while pending:
        ended, pending = wait(pending, _TURN, FIRST_COMPLETED)
        for future in ended:
            record = _result(future, futures[future])
            if record is not None:
                done[futures[future]] = record
                line.say(_line(record, first + len(done), total))
        if caught and pending:
            stop()
            for future in pending:
                future.cancel()
            caught.clear()
        now = ", ".join(sorted(futures[future].name for future in pending if future.running()))
        bar = _bar(first + len(done), total, len(done), time.monotonic() - started)
        line.show(f"{bar} {now}"[:_WIDTH])
    line.clear()
    return done


def _result(future, task):
    """The record that a future gives; None if its shot was stopped."""
    try:
        record = future.result()
    except CancelledError:
        return None
    except ExecutorError as error:
        return lost(task, str(error))
    if record and record["state"] in DONE_WITH and not task.result.exists():
        return lost(
            task,
            f"'{task.result}' was written elsewhere and is not seen here: let the workers of the "
            "cluster have the same folders at the same paths.",
        )
    return record


def _line(record, number, total):
    why = f": {record['why']}" if record["why"] else ""
    return f"[{number}/{total}] {record['shot']} {record['state']}, {record['seconds']:.0f} s{why}"


def _bar(number, total, done, elapsed):
    full = _BAR * number // total
    left = f", about {_clock(elapsed / done * (total - number))} left" if done else ""
    return f"[{'#' * full}{'.' * (_BAR - full)}] {number} of {total}{left}"


def _clock(time):
    minutes, time = divmod(round(time), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {time:02} s" if minutes else f"{time} s"


# --- Summing up ---------------------------------------------------------------------------------


def _collected(folder):
    """The records that are in an output folder and the folders in it, in order, and 0. Raises
    FileError if there are none."""
    records = []
    for path in sorted(folder.rglob(f"*{RECORD}")):
        record = read_record(path)
        if record is not None:
            name = path.relative_to(folder).as_posix().removesuffix(RECORD)
            records.append(record | {"shot": name})
    if not records:
        raise FileError(f"There are no records in '{folder}': name the --output folder of a batch.")
    return records, 0


def _check_summaries(options, tasks=()):
    """Raise FileError where a summary could not be written, or would replace something else."""
    sources = {identity(task.source) for task in tasks}
    taken = {identity(path) for task in tasks for path in (*task.outputs, *task.files)}
    for path in (options.report, options.json):
        if path is not None:
            path = path.absolute()
            if identity(path) in sources:
                raise FileError(f"'{path}' is a shot itself: name another file.")
            if is_shot(path) and path.exists():
                raise FileError(
                    f"'{path}' is a shot, if no other of this batch: name another file."
                )
            if identity(path) in taken:
                raise FileError(f"'{path}' is another file of the batch: name another one.")
            taken.add(identity(path))
            check_target(path, options.overwrite or _is_summary(path))


def _is_summary(path):
    if not path.is_file():  # reading from a pipe might never end
        return False
    with contextlib.suppress(OSError), path.open("rb") as file:
        return b"Poise batch" in file.read(200)
    return False


def _conclude(options, folder, outcome):
    """Write the summary and tell it; the exit status."""
    records, left = outcome
    total = summary(folder, records, left)
    strips = {record["shot"]: record["strip"] for record in records}
    written = True
    try:
        if options.json:
            write_json(options.json.absolute(), total)
        if options.report:
            page = options.report.absolute()
            write_text(page, html(total, strips, page.parent))
    except FileError as error:
        say(f"poise: {error} The summary is on standard output instead.")
        written = False
    if not written:
        print(json.dumps(total, indent=2, ensure_ascii=False), flush=True)
    return _told(options, total, written)


def _told(options, total, written):
    counts = total["totals"]
    told = [f"{number} {state}" for state, number in counts.items() if number]
    if any(shot["keeper"] is not None for shot in total["shots"]):
        told.append(f"{total['keepers']} {kept_words(total)}")
    say(", ".join(told) + ".")
    for shot in total["shots"]:
        if shot["state"] not in (STOOD, CLEANED):
            say(f"  {shot['shot']} {shot['state']}: {shot['why']}")
    if counts["left"]:
        say("Stopped: the same command goes on with those that are left.")
    bad = len(total["shots"]) - sum(counts[state] for state in DONE_WITH) + counts["left"]
    on_record = all(shot["record"] for shot in total["shots"])
    if options.farm and written and on_record and not counts["left"]:
        return DONE
    # A fall that goes on to the end is what was asked for.
    missed = any(shot["state"] == FELL and not shot["filled"] for shot in total["shots"])
    return FAILURE if bad or not written else MISSED if missed else DONE

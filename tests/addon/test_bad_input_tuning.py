# SPDX-License-Identifier: GPL-3.0-or-later
"""What `poise optimize` cannot work with: each kind ends in one sentence that says what is wrong,
where, and what to do, and the disk has not changed."""

import importlib.util
import json
import re
import socket
import sys
from pathlib import Path

import pytest
from helpers.commands import listing, poise, save

from poise.addon.command import command_optimize
from poise.addon.terminal import command_arguments
from poise.controller.processes import cluster
from poise.controller.search import optimization

pytestmark = pytest.mark.once

SHORT = ("--frames=1:60", "--rate=120", "--population=4", "--generations=2", "--confirmations=1")


@pytest.fixture
def shot(tmp_path, import_clip):
    import_clip("walk")
    return save(tmp_path)


def optimize(shot, *arguments):
    """A short search in this process; its exit status."""
    arguments = ("optimize", shot, *SHORT, *arguments)
    if not any(str(a).startswith(("--workers", "--scheduler")) for a in arguments):
        arguments += ("--workers=0",)
    return poise(*arguments)


def assert_refused(capfd, shot, message, *options):
    """It ends with 1 and one sentence that matches; the disk is as it was."""
    disk = listing(shot.parent)
    capfd.readouterr()
    assert optimize(shot, *options) == 1
    told = capfd.readouterr().err
    (sentence,) = (line for line in told.splitlines() if line.startswith("poise: "))
    assert re.search(message, sentence), sentence
    assert sentence.endswith(".")
    assert "goes on from there" not in told
    assert listing(shot.parent) == disk


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--budget", "0"), "'0' is not a time such as 90, 120s, 2min or 1h"),
        (("--budget=0s",), "'0s' is not a time"),
        (("--budget=-5s",), "'-5s' is not a time"),
        (("--budget", "soon"), "'soon' is not a time"),
        (("--budget", "1 day"), "'1 day' is not a time"),
        (("--budget", "9" * 400), "is not a time"),
        (("--generations", "0"), "'0' is not a whole number from 1"),
        (("--population", "3"), "'3' is not a whole number from 4 to 4096"),
        (("--target", "2.5"), "'2.5' is not a number from 0.001 to 2"),
        (("--target", "nan"), "'nan' is not a number from"),
        (("--seed", "-1"), "'-1' is not a whole number from 0"),
        (("--confirmations", "0"), "'0' is not a whole number from 1"),
        (("--restarts", "0"), "'0' is not a whole number from 1"),
        (("--parametrisation", "luck"), "invalid choice"),
        (("--max-pose", "0"), "'0' is not a number from"),
        (("--workers", "-1"), "'-1' is not a whole number from 0"),
        (("--workers", "1", "--scheduler", "tcp://host:8786"), "not allowed with"),
        (("--gains", "gains.json"), "unrecognized arguments"),
        (("--noise", "1"), "unrecognized arguments"),
    ],
    ids=lambda value: " ".join(value)[:30] if isinstance(value, tuple) else "",
)
def test_wrong_usage(tmp_path, capsys, arguments, message):
    assert optimize(tmp_path / "shot.blend", *arguments) == 2
    assert message in capsys.readouterr().err
    assert listing(tmp_path) == {}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("120s", 120), ("2min", 120), ("1h", 3600), ("1.5 h", 5400), (".5", 0.5)],
)
def test_times(text, seconds):
    assert command_arguments.seconds(text) == seconds


def test_targets_that_are_other_files_of_the_search(shot, capsys):
    before = listing(shot.parent)
    assert optimize(shot, "--output", shot, "--overwrite") == 2
    assert "--output is the shot itself: name a gains file" in capsys.readouterr().err
    for name in ("shot.blend", "shot_gains.json", "shot_gains.json.checkpoint"):
        assert optimize(shot, "--report", shot.with_name(name), "--overwrite") == 2
        assert f"--report names '{name}' itself" in capsys.readouterr().err
    assert listing(shot.parent) == before


def test_no_file_at_all(capsys):
    assert poise("optimize") == 2
    assert "no file is open: name shot.blend, or an --output" in capsys.readouterr().err


def test_reference_in_the_air(tmp_path, airborne, capfd):
    top, last = airborne
    message = "starts in the air, .* cm above the ground: start the range at a frame with a foot"
    assert_refused(capfd, save(tmp_path), message, f"--frames={top}:{last}")


# --- Gains to start from ------------------------------------------------------------------------


@pytest.fixture
def gains(shot):
    """A function that saves changes to a gains file that fits the shot, which is then open."""
    path = shot.with_name("gains.json")
    assert optimize(shot, "--generations=1", "--output", path) == 3
    content = json.loads(path.read_text())

    def change(edit):
        edit(content)
        path.write_text(json.dumps(content))
        return path

    return change


def test_gains_of_another_character(shot, gains, capfd):
    path = gains(lambda content: content["stiffness"].update(tail=5.0))
    message = f"gains file '{path}' is for another character: .* tail; use gains that"
    assert_refused(capfd, shot, message, "--warm-start", path)


def test_gains_of_another_balance_mode(shot, gains, capfd):
    path = gains(lambda content: None)
    message = (
        f"gains file '{path}' is for the balance mode 'foot_forces', not 'virtual_forces': "
        "choose that mode, or other gains"
    )
    options = ("--balance=virtual_forces", "--warm-start")
    assert_refused(capfd, shot, message, *options, path)
    message = "is for the balance mode 'foot_forces', not 'virtual_forces'"
    assert_refused(capfd, shot, message, *options, "Standing")


def test_gains_that_are_none(shot, capfd):
    path = shot.with_name("gains.json")
    assert_refused(capfd, shot, "'.*gains.json' cannot be read", "--warm-start", path)
    path.write_text("{")
    assert_refused(capfd, shot, "'.*gains.json' is not JSON", "--warm-start", path)
    message = "There is no preset 'Bob' of gains: choose one of .*Standing"
    assert_refused(capfd, shot, message, "--warm-start", "Bob")


# --- Files --------------------------------------------------------------------------------------


@pytest.mark.slow(captured=False)
def test_nothing_is_overwritten_unless_told(shot, capfd):
    gains, report = shot.with_name("shot_gains.json"), shot.with_name("report.json")
    gains.write_text("precious")
    report.write_text("precious too")
    message = "'.*shot_gains.json' exists: name another file, or say --overwrite"
    assert_refused(capfd, shot, message)
    options = ("--output", shot.with_name("new.json"), "--report", report)
    assert_refused(capfd, shot, "'.*report.json' exists: name another file", *options)
    assert optimize(shot, "--overwrite", "--report", report) == 3
    assert json.loads(report.read_text())["gains"] == json.loads(gains.read_text())


@pytest.mark.parametrize("option", ["--output", "--report"])
def test_folders_that_nothing_can_be_written_to(shot, capfd, monkeypatch, option):
    monkeypatch.setattr(command_optimize, "Shot", None)  # before any work
    message = "There is no folder '.*none': make it, or name another one"
    assert_refused(capfd, shot, message, option, shot.parent / "none" / "out.json")
    message = "is a folder: name a file in it"
    assert_refused(capfd, shot, message, option, shot.parent)
    if sys.platform == "linux":  # where even root cannot make files in /proc
        message = "Nothing can be written in '/proc' .*: name another folder"
        assert_refused(capfd, shot, message, option, "/proc/out.json")


@pytest.mark.slow(captured=False)
def test_full_disk_at_a_checkpoint(shot, monkeypatch, capsys):
    write = Path.write_text

    def full(path, *arguments, **options):
        if ".checkpoint" in path.name:
            path.touch()
            raise OSError(28, "No space left on device")
        return write(path, *arguments, **options)

    monkeypatch.setattr(Path, "write_text", full)
    assert optimize(shot) == 3
    told = capsys.readouterr().err
    checkpoint = shot.with_name("shot_gains.json.checkpoint")
    warning = f"poise: The checkpoint '{checkpoint}' cannot be written (No space left on device): "
    assert told.count(warning) == 1
    assert "the search goes on" in told and "\ngeneration 2:" in told
    assert set(listing(shot.parent)) == {"shot.blend", "shot_gains.json"}


@pytest.mark.slow(captured=False)
def test_report_that_cannot_be_written(shot, monkeypatch, capsys):
    write = Path.write_text

    def full(path, *arguments, **options):
        if "report" in path.name:
            path.touch()
            raise OSError(28, "No space left on device")
        return write(path, *arguments, **options)

    monkeypatch.setattr(Path, "write_text", full)
    assert optimize(shot, "--report", shot.with_name("report.json")) == 1
    assert "report.json' cannot be written (No space left on device)" in capsys.readouterr().err
    # What was found is worth more than the report of it.
    assert set(listing(shot.parent)) == {"shot.blend", "shot_gains.json"}


def make_checkpoint(shot, monkeypatch, *options):
    """Leave a checkpoint as a search that ends after generation 1 does."""

    def poll(search, poll=optimization.Search.poll):
        if len(search.generations) > 1:
            raise KeyboardInterrupt
        return poll(search)

    with monkeypatch.context() as context:
        context.setattr(optimization.Search, "poll", poll)
        assert optimize(shot, *options) == 1
    return shot.with_name("shot_gains.json.checkpoint")


@pytest.mark.slow(captured=False)
def test_checkpoint_of_another_search(shot, monkeypatch, capfd):
    checkpoint = make_checkpoint(shot, monkeypatch, "--seed=7")
    message = f"'{checkpoint}' belongs to another search: .* differ; delete it to start anew"
    for options in (("--seed=8",), ("--seed=7", "--frames=1:50"), ("--seed=7", "--max-pose=0.2")):
        assert_refused(capfd, shot, message, *options)
    assert optimize(shot, "--seed=7") == 3


@pytest.mark.slow(captured=False)
@pytest.mark.parametrize("damage", ["cut", "empty", "list"])
def test_damaged_checkpoint(shot, monkeypatch, capfd, damage):
    checkpoint = make_checkpoint(shot, monkeypatch)
    content = checkpoint.read_bytes()
    damaged = {"cut": content[:-10], "empty": b"", "list": b"[]"}
    checkpoint.write_bytes(damaged[damage])
    why = "(is none of a search|is not JSON.*)"
    message = f"The checkpoint '{checkpoint}' {why}: delete it to start anew"
    assert_refused(capfd, shot, message)


# --- Other processes ----------------------------------------------------------------------------

needs_dask = pytest.mark.skipif(
    importlib.util.find_spec("distributed") is None, reason="Dask's distributed is not installed"
)


@pytest.mark.slow(captured=False)
@needs_dask
def test_scheduler_that_is_not_there(shot, capfd, monkeypatch):
    monkeypatch.setattr(cluster, "_PATIENCE", 0.5)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        message = f"No Dask scheduler answers at {address}: start one there"
        assert_refused(capfd, shot, message, "--scheduler", address)
    message = "'host' is not the address of a Dask scheduler: give one like tcp://host:8786"
    assert_refused(capfd, shot, message, "--scheduler", "host")


def test_dask_is_not_installed(shot, capfd, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    message = "A cluster needs Dask, .*: install Dask's 'distributed', or leave out the scheduler"
    assert_refused(capfd, shot, message, "--scheduler", "tcp://127.0.0.1:8786")


def test_optimiser_is_not_installed(shot, capfd, monkeypatch):
    monkeypatch.setattr(command_optimize, "find_spec", lambda _name: None)
    assert_refused(capfd, shot, "The optimiser 'cma' is not installed: install it")

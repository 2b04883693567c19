# SPDX-License-Identifier: GPL-3.0-or-later
"""What the command line takes from the settings of a scene, as the window does: frames, falls."""

import json

import bpy
import pytest
from helpers.commands import poise, save

from poise.addon.command import command_line

pytestmark = pytest.mark.usefixtures("registered")


@pytest.fixture
def told(import_clip, tmp_path):
    """told(verb, *arguments) -> the report of a command about a shot whose scene says that it is
    braced, gets up and goes on, in frames 1 to 12."""
    import_clip("side_kick")
    settings = bpy.context.scene.poise
    settings.when_it_falls, settings.get_up, settings.once_up = "BRACE", True, "GO_ON"
    settings.frames, settings.first_frame, settings.last_frame = "CUSTOM", 1, 12
    shot, path = save(tmp_path), tmp_path / "report.json"

    def run(verb, *arguments):
        assert poise(verb, shot, "--overwrite", "--report", path, *arguments) in (0, 3)
        return json.loads(path.read_text())

    return run


def falls(report):
    """How it was to fall, and in which frames, by a report."""
    return *(report[name] for name in ("when_it_falls", "get_up", "once_up")), report["range"]


@pytest.mark.parametrize("verb", ["bake", "simulate"])
def test_the_scene_says_how_it_falls_and_in_which_frames(told, verb):
    assert falls(told(verb)) == ("brace", True, "go_on", [1, 12])


def test_arguments_win(told):
    given = ("--when-it-falls=limp", "--no-get-up", "--frames=3:9")
    assert falls(told("simulate", *given)) == ("limp", False, "go_on", [3, 9])
    given = ("--when-it-falls=stop", "--once-up=stand", "--frames=1:9")
    assert falls(told("simulate", *given))[::2] == ("stop", "stand")


def test_all_frames_are_still_to_be_had(told):
    first, last = bpy.data.actions[0].frame_range
    assert told("inspect")["range"] == [1, 12]
    assert told("inspect", "--frames=action")["range"] == [first, last]


def test_the_range_of_the_scene(told, tmp_path):
    scene = bpy.context.scene
    scene.poise.frames, scene.frame_start, scene.frame_end = "SCENE", 2, 15
    save(tmp_path)
    assert told("inspect")["range"] == [2, 15]
    scene = bpy.context.scene  # of the file that was opened
    scene.use_preview_range, scene.frame_preview_start, scene.frame_preview_end = True, 4, 10
    save(tmp_path)
    assert told("clean", "--output", tmp_path / "clean.blend")["range"] == [4, 10]


def test_what_is_asked_for_must_fit_what_the_scene_says(told, tmp_path, capsys):
    shot = tmp_path / "shot.blend"
    assert poise("simulate", shot, "--when-it-falls=stop", "--get-up") == 2
    assert "--get-up needs --when-it-falls" in capsys.readouterr().err
    assert poise("simulate", shot, "--no-get-up", "--once-up=go_on") == 2
    assert "--once-up needs --get-up" in capsys.readouterr().err


def test_a_batch_leaves_it_to_each_shot(told, tmp_path):
    """Its children are told nothing of falls that nobody said."""
    given = ["--output", tmp_path / "out"]
    assert poise("batch", tmp_path / "shot.blend", *given, "--json", tmp_path / "all.json") == 0
    record = json.loads((tmp_path / "out" / "shot.blend.poise.json").read_text())
    assert record["arguments"] == []
    assert falls(record["report"]) == ("brace", True, "go_on", [1, 12])


def test_a_batch_passes_on_what_is_switched_off():
    parser = command_line._parser("poise")
    options = parser.parse_args(["batch", "a.blend", "--no-get-up", "--no-steps"])
    passed, _, understood = options.passed_arguments(options)
    assert set(passed) == {"--no-get-up", "--no-steps"}
    assert understood.get_up is understood.recovery_steps is False
    options = parser.parse_args(["batch", "a.blend", "--get-up", "--frames=action"])
    assert set(options.passed_arguments(options)[0]) == {"--get-up", "--frames=action"}

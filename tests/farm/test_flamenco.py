# SPDX-License-Identifier: GPL-3.0-or-later
"""The Flamenco job type: compiled by Node, with Flamenco's documented interface in flamenco.js. Its
commands are those that `poise` understands."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

HERE = Path(__file__).resolve().parent
SCRIPT = HERE.parents[1] / "farm" / "poise-batch.js"
NODE = shutil.which("node")

pytestmark = pytest.mark.skipif(NODE is None, reason="Node is not installed")

SETTINGS = {
    "folder": "/shared/shots",
    "shots": "walk.bvh | a kick.fbx | é 'q\" 日本.blend",
    "output": "/shared/baked",
    "report": "/shared/night.html",
    "chunk": 1,
    "blender": "{blender}",
}
START = ["--background", "--command", "poise", "batch"]


def compiled(**changes):
    """What the script makes of a job: its type, its tasks, and the error that it throws."""
    settings = json.dumps({**SETTINGS, **changes})
    command = [NODE, str(HERE / "flamenco.js"), str(SCRIPT), settings]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def arguments(task):
    """The arguments of `poise batch` of a task with one command."""
    (command,) = task["commands"]
    assert command["name"] == "exec"
    assert command["parameters"]["exe"] == "{blender}"
    args = command["parameters"]["args"]
    assert args[:4] == START
    return args[4:]


def test_a_task_for_each_shot_and_one_that_collects():
    job = compiled()
    assert job["error"] is None
    *baking, collecting = job["tasks"]
    assert [task["name"] for task in baking] == ["walk.bvh", "a kick.fbx", "é 'q\" 日本.blend"]
    assert all(task["dependencies"] == [] for task in baking)
    assert collecting["dependencies"] == [0, 1, 2]
    assert {task["type"] for task in job["tasks"]} == {"blender"}
    shared = ["--farm", "--root", "/shared/shots", "--output", "/shared/baked"]
    for task, name in zip(baking, ("walk.bvh", "a kick.fbx", "é 'q\" 日本.blend"), strict=True):
        assert arguments(task) == [*shared, f"/shared/shots/{name}"]
    assert arguments(collecting) == [
        *("--farm", "--collect", "/shared/baked", "--report", "/shared/night.html"),
        *("--json", "/shared/night.json"),
    ]


def test_variants_have_folders_of_their_own():
    job = compiled(shots="walk.bvh|run.bvh", gains="firm | /my/soft.json", seeds="1|2")
    *baking, collecting = job["tasks"]
    assert len(baking) == 8 and collecting["dependencies"] == list(range(8))
    assert baking[5]["name"] == "run.bvh (soft, seed 1)"
    args = arguments(baking[5])
    assert args[args.index("--output") + 1] == "/shared/baked/soft, seed 1"
    assert {"--gains=/my/soft.json", "--seed=1"} < set(args)
    (one,) = compiled(shots="walk.bvh", gains="firm", seeds="3")["tasks"][:-1]
    args = arguments(one)
    assert args[args.index("--output") + 1] == "/shared/baked"
    assert {"--gains=firm", "--seed=3"} < set(args)


def test_options_reach_every_task_and_chunks_share_one():
    more = {
        "optimize": "60s",
        "method": "auto",
        "timeout": "1h",
        "options": "--frames=1:9 | --noise=5",
    }
    job = compiled(chunk=2, **more)
    *baking, collecting = job["tasks"]
    assert [task["name"] for task in baking] == ["walk.bvh and 1 more", "é 'q\" 日本.blend"]
    assert collecting["dependencies"] == [0, 1]
    for task in baking:
        args = arguments(task)
        given = {"--optimize=60s", "--method=auto", "--timeout=1h", "--frames=1:9", "--noise=5"}
        assert given < set(args)
    assert arguments(baking[0])[-2:] == ["/shared/shots/walk.bvh", "/shared/shots/a kick.fbx"]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"shots": ""}, "There are no shots: name some in the folder '/shared/shots'"),
        ({"shots": " | "}, "There are no shots"),
        ({"chunk": -1}, "A task of -1 shots is none"),
        ({"seeds": "1|1"}, "Two variants have the same name"),
        ({"gains": "/a/x.json|/b/x.json"}, "Two variants have the same name"),
    ],
)
def test_bad_jobs_are_refused(changes, error):
    job = compiled(**changes)
    assert error in job["error"]
    assert job["tasks"] == []


def test_settings_are_of_the_documented_kinds():
    job_type = compiled()["type"]
    known = {"key", "type", "subtype", "required", "default", "description", "visible", "eval"}
    known |= {"evalInfo", "choices", "propargs", "editable"}
    for setting in job_type["settings"]:
        assert set(setting) <= known, setting
        assert setting["type"] in ("string", "int32", "float", "bool")
        assert setting.get("visible", "visible") in ("visible", "hidden", "submission", "web")
    assert job_type["label"] == "Poise Batch"


def test_shots_and_report_are_found_as_the_add_on_evaluates(tmp_path):
    for name in ("walk.bvh", "b.BLEND", "notes.txt", "kick.glb"):
        (tmp_path / name).touch()
    settings = SimpleNamespace(folder=str(tmp_path), output=str(tmp_path))
    names = {"settings": settings, "Path": Path, "abspath": lambda path: Path(path).absolute()}
    by_key = {setting["key"]: setting for setting in compiled()["type"]["settings"]}
    assert eval(by_key["shots"]["eval"], names) == "b.BLEND | kick.glb | walk.bvh"
    assert eval(by_key["report"]["eval"], names) == str(tmp_path / "summary.html")


def test_poise_understands_what_the_tasks_run():
    pytest.importorskip("bpy")
    from poise.addon.command.command_line import _parser

    more = {"optimize": "60s", "method": "auto", "timeout": "1h", "options": "--frames=1:9"}
    job = compiled(gains="firm", seeds="3", **more)
    for task in job["tasks"]:
        options = _parser("poise").parse_args(["batch", *arguments(task)])
        assert options.farm
        assert options.shots or str(options.collect) == "/shared/baked"
        assert not options.shots or options.shots[0].parent == Path("/shared/shots")


@pytest.mark.slow
def test_a_job_is_baked_by_what_its_tasks_run(clips, tmp_path):
    """As workers would, one task after the other; Poise in Python stands in for Blender's."""
    pytest.importorskip("bpy")
    folder, output, report = tmp_path / "in é", tmp_path / "out", tmp_path / "night.html"
    folder.mkdir()
    for name in ("a 'q\" 日本.bvh", "b.bvh"):
        (folder / name).write_bytes(clips["stand"].path.read_bytes())
    (folder / "corrupt.blend").write_bytes(b"nothing")
    shots = " | ".join(path.name for path in folder.iterdir())
    paths = {"folder": str(folder), "output": str(output), "report": str(report)}
    job = compiled(**paths, shots=shots, seeds="1|2", options="--frames=1:30 | --noise=1")
    assert len(job["tasks"]) == 7
    for task in job["tasks"]:
        command = [sys.executable, "-m", "poise", "batch", *arguments(task)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    totals = json.loads(report.with_suffix(".json").read_text())["totals"]
    assert totals == {"cleaned": 0, "stood": 4, "fell": 0, "hung": 0, "failed": 2, "left": 0}
    assert (output / "seed 2" / "b.bvh.blend").is_file() and report.is_file()

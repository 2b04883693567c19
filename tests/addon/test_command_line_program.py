# SPDX-License-Identifier: GPL-3.0-or-later
"""`blender --command poise` in the real program, from an extension that was built and installed
by that program, with the published wheels of PyBullet and the optimiser inside.

Needs the tool real-blender (in ../shared/tools beside the checkout, or where the environment
variable REAL_BLENDER says) and the rights that it needs; otherwise skipped.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = Path(os.environ.get("REAL_BLENDER", ROOT.parent / "shared" / "tools" / "real-blender"))
#: Python of that Blender, and what it needs as wheels.
PYTHON, NEEDED = "3.13", ("pybullet-arm64", "cma")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not TOOL.is_file() or not hasattr(os, "geteuid") or os.geteuid() != 0,
        reason=f"needs {TOOL} and root's rights",
    ),
]

MAKE_SHOT = """
import sys
import bpy
clip, scale, up, forward, fps, shot = sys.argv[sys.argv.index("--") + 1:]
bpy.ops.wm.read_factory_settings(use_empty=True)
bpy.ops.preferences.addon_enable(module="io_anim_bvh")
bpy.ops.import_anim.bvh(
    filepath=clip, global_scale=float(scale), axis_up=up, axis_forward=forward
)
bpy.context.scene.render.fps = int(fps)
bpy.ops.wm.save_as_mainfile(filepath=shot)
"""


def source_with_wheels(folder):
    """A copy of the extension's source whose manifest brings the wheels."""
    ignored = shutil.ignore_patterns(".*", "build", "__pycache__", "*.egg-info", "tests", "demo")
    source = shutil.copytree(ROOT, folder / "source", ignore=ignored)
    manifest = source / "blender_manifest.toml"
    text = manifest.read_text(encoding="utf-8")
    if "\nwheels = " not in text:
        wheels = source / "wheels"
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", wheels]
        wanted = ["--only-binary=:all:", f"--python-version={PYTHON}", *NEEDED]
        subprocess.run([*pip, *wanted], check=True, timeout=300)
        names = [f"./wheels/{wheel.name}" for wheel in wheels.iterdir()]
        line = f"wheels = {json.dumps(names)}\n\n[permissions]"
        manifest.write_text(text.replace("[permissions]", line), encoding="utf-8")
    return source


@pytest.fixture(scope="module")
def blender_program(tmp_path_factory):
    """blender_program(*arguments) runs the real program with Poise installed; the attribute `start`
    of it is a function that starts it alone."""
    folder = tmp_path_factory.mktemp("program")
    environment = {
        **os.environ,
        "BLENDER_USER_RESOURCES": str(folder / "profile"),
        "REAL_BLENDER_BIND": os.pathsep.join((str(folder.parent), str(ROOT))),
    }

    def start(*arguments):
        return subprocess.Popen(
            [TOOL, "run", "--", *(str(argument) for argument in arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=folder,
        )

    def run(*arguments):
        process = start(*arguments)
        out, told = process.communicate(timeout=900)
        return subprocess.CompletedProcess(process.args, process.returncode, out, told)

    run.start = start
    (folder / "profile").mkdir()
    source, archive = source_with_wheels(folder), folder / "poise.zip"
    for command in (
        ("build", "--source-dir", source, "--output-filepath", archive),
        ("install-file", "--repo", "user_default", "--enable", archive),
    ):
        done = run("--command", "extension", *command)
        assert done.returncode == 0, done.stdout + done.stderr
    return run


@pytest.fixture
def shot(blender_program, clips, tmp_path):
    """shot(name) -> a .blend of a captured clip that the program itself saved."""

    def make(name):
        clip, path = clips[name], tmp_path / "shot.blend"
        script = tmp_path / "make_shot.py"
        script.write_text(MAKE_SHOT)
        copy = shutil.copy(clip.path, tmp_path)
        axes = ("Z", "Y") if clip.up == "Z" else ("Y", "-Z")
        options = (copy, clip.scale, *axes, clip.fps, path)
        start = ("--background", "--python-exit-code", 1, "--python", script)
        done = blender_program(*start, "--", *options)
        assert done.returncode == 0, done.stdout + done.stderr
        return path

    return make


def test_shot_is_baked(blender_program, shot, tmp_path):
    path, report = shot("wave"), tmp_path / "report.json"
    command = ("--background", path, "--command", "poise")
    options = ("--frames", "1:60", "--report", report)
    done = blender_program(*command, "bake", *options)
    assert done.returncode == 0, done.stderr
    told = json.loads(report.read_text())
    assert told["success"] is True
    assert told["frames"] == [1, 60]
    assert (tmp_path / "shot_poise.blend").is_file()
    assert "It stood to the end." in done.stderr

    done = blender_program(*command, "bake", *options)
    assert done.returncode == 1
    assert "exists: name another file, or say --overwrite." in done.stderr

    done = blender_program(*command, "bake", "--frames", "all")
    assert done.returncode == 2
    assert "not a range of frames" in done.stderr

    done = blender_program(*command, "inspect")
    assert done.returncode == 0, done.stderr
    assert "LeftUpLeg" in done.stdout


def test_fall_ends_with_3(blender_program, shot, tmp_path):
    path = shot("side_kick")
    done = blender_program("--background", path, "--command", "poise", "bake")
    assert done.returncode == 3, done.stderr
    assert "The bake ends at frame " in done.stderr
    assert (tmp_path / "shot_poise.blend").is_file()


SEARCH = ("--frames=1:60", "--population=4", "--confirmations=1", "--workers=2")


def test_gains_are_searched_and_used(blender_program, shot, tmp_path):
    command = ("--background", shot("walk"), "--command", "poise")
    report, gains = tmp_path / "report.json", tmp_path / "shot_gains.json"
    search = (*SEARCH, "--generations=2", "--report", report)
    done = blender_program(*command, "optimize", *search)
    assert done.returncode == 3, done.stderr
    assert "generation 2: best" in done.stderr and "Not confirmed" in done.stderr
    told = json.loads(report.read_text())
    assert told["gains"] == json.loads(gains.read_text())
    assert len(told["history"]) == 3
    assert not (tmp_path / "shot_poise.blend").exists()

    options = ("--frames=1:60", "--gains", gains, "--overwrite", "--report", report)
    done = blender_program(*command, "bake", *options)
    assert done.returncode == 0, done.stderr
    assert json.loads(report.read_text())["gains"] == told["gains"]

    done = blender_program(*command, "optimize", "--target=0.01", *SEARCH, "--overwrite")
    assert done.returncode == 0, done.stderr


def descendants(pid):
    """{pid: name} of all processes that a process and its children have started."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            name, fields = stat.read_text().split("(", 1)[1].rsplit(")", 1)
            parents[int(stat.parent.name)] = (int(fields.split()[1]), name)
    found, known = {}, {pid}
    while known:
        found |= {p: name for p, (parent, name) in parents.items() if parent in known}
        known = {p for p, (parent, _) in parents.items() if parent in known}
    return found


def test_ctrl_c_leaves_the_checkpoint_and_no_process(blender_program, shot, tmp_path):
    path = shot("walk")
    before = path.read_bytes()
    command = ("--background", path, "--command", "poise", "optimize", *SEARCH)
    process = blender_program.start(*command, "--generations=300")
    told = iter(process.stderr.readline, "")
    assert any("generation 1: best" in line for line in told)
    family = descendants(process.pid)
    (blender,) = (pid for pid, name in family.items() if name == "blender")
    assert len([pid for pid in descendants(blender) if "python" in family[pid]]) == 2
    os.kill(blender, signal.SIGINT)
    _out, told = process.communicate(timeout=60)
    assert process.returncode == 1, told
    assert "poise: stopped." in told and "the same command goes on from there." in told
    assert path.read_bytes() == before
    assert (tmp_path / "shot_gains.json.checkpoint").exists()
    assert not any(Path(f"/proc/{pid}").exists() for pid in family)

    done = blender_program(*command, "--generations=2")
    assert done.returncode == 3 and not done.stderr.count("generation 0:"), done.stderr


def test_folder_is_baked(blender_program, clips, tmp_path):
    """By Blenders of their own, which end with the one that started them."""
    shots, output, night = tmp_path / "in", tmp_path / "out é", tmp_path / "night.json"
    shots.mkdir()
    for name, clip in (("a 'q\" 日本.bvh", "stand"), ("fall.bvh", "side_kick")):
        (shots / name).write_bytes(clips[clip].path.read_bytes())
    (shots / "corrupt.blend").write_bytes(b"BLENDER" + bytes(99))
    command = ("--background", "--command", "poise", "batch", shots, "--output", output)
    command += ("--jobs=2", "--json", night, "--report", tmp_path / "night.html")
    done = blender_program(*command)
    assert done.returncode == 1, done.stderr
    told = json.loads(night.read_text())
    assert told["totals"] == {
        "cleaned": 0,
        "stood": 1,
        "fell": 1,
        "hung": 0,
        "failed": 1,
        "left": 0,
    }
    assert [shot["shot"] for shot in told["shots"]] == [
        *("corrupt.blend", "fall.bvh", "a 'q\" 日本.bvh")
    ]
    assert "cannot open" in told["shots"][0]["why"] and "Stopped at" in told["shots"][1]["why"]
    assert (output / "a 'q\" 日本.bvh.blend").is_file()

    header, motion = clips["stand"].path.read_text().split("MOTION")
    count, seconds, *frames = motion.strip().splitlines()
    frames = frames * 200  # minutes of work
    count = f"Frames: {len(frames)}"
    (shots / "long.bvh").write_text("\n".join([f"{header}MOTION", count, seconds, *frames, ""]))
    process = blender_program.start(*command, "--overwrite")
    told = iter(process.stderr.readline, "")
    assert any("2 of 4 shots are done already." in line for line in told)
    assert any("corrupt.blend failed" in line for line in told)
    family = descendants(process.pid)
    (blender, *_) = sorted(pid for pid, name in family.items() if name == "blender")
    os.kill(blender, signal.SIGINT)
    _out, told = process.communicate(timeout=60)
    assert process.returncode == 1, told
    assert "Stopped: the same command goes on with those that are left." in told
    assert not any(Path(f"/proc/{pid}").exists() for pid in family)

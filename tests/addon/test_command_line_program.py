# SPDX-License-Identifier: GPL-3.0-or-later
"""`blender --command poise` in the real program, from an extension that was built and installed
by that program, with the published wheel of PyBullet inside.

Needs the tool real-blender (in ../shared/tools beside the checkout, or where the environment
variable REAL_BLENDER says) and the rights that it needs; otherwise skipped.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = Path(os.environ.get("REAL_BLENDER", ROOT.parent / "shared" / "tools" / "real-blender"))
#: Python of that Blender, and the distribution of PyBullet that has a wheel for it.
PYTHON, PYBULLET = "3.13", "pybullet-arm64"

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


def source_with_wheel(folder):
    """A copy of the extension's source whose manifest brings the wheel."""
    ignored = shutil.ignore_patterns(".*", "build", "__pycache__", "*.egg-info", "tests", "demo")
    source = shutil.copytree(ROOT, folder / "source", ignore=ignored)
    manifest = source / "blender_manifest.toml"
    text = manifest.read_text(encoding="utf-8")
    if "\nwheels = " not in text:
        wheels = source / "wheels"
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", wheels]
        wanted = ["--only-binary=:all:", f"--python-version={PYTHON}", PYBULLET]
        subprocess.run([*pip, *wanted], check=True, timeout=300)
        (wheel,) = wheels.iterdir()
        line = f'wheels = ["./wheels/{wheel.name}"]\n\n[permissions]'
        manifest.write_text(text.replace("[permissions]", line), encoding="utf-8")
    return source


@pytest.fixture(scope="module")
def blender_program(tmp_path_factory):
    """blender_program(*arguments) runs the real program with Poise installed."""
    folder = tmp_path_factory.mktemp("program")
    environment = {
        **os.environ,
        "BLENDER_USER_RESOURCES": str(folder / "profile"),
        "REAL_BLENDER_BIND": os.pathsep.join((str(folder.parent), str(ROOT))),
    }

    def run(*arguments):
        return subprocess.run(
            [TOOL, "run", "--", *(str(argument) for argument in arguments)],
            capture_output=True,
            text=True,
            env=environment,
            cwd=folder,
            timeout=900,
        )

    (folder / "profile").mkdir()
    source, archive = source_with_wheel(folder), folder / "poise.zip"
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
    assert "The bake ends there." in done.stderr
    assert (tmp_path / "shot_poise.blend").is_file()

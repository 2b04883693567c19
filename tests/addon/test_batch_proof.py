# SPDX-License-Identifier: GPL-3.0-or-later
"""Twenty shots, of which one is corrupt, one hangs and one falls, and a kill -9 in the middle: then
seventeen stand, the three are named with their reasons, and nothing was done twice."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import bpy
import pytest
from helpers.commands import save_hanging
from helpers.processes import assert_ends

KILLED_AFTER = 6  # shots

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux"),
]


@pytest.fixture
def shots(tmp_path, import_clip, clips):
    """A folder of twenty shots in all formats."""
    folder = tmp_path / "night shots"
    (folder / "é 'q\" 日本").mkdir(parents=True)
    for i in range(12):
        name = f"é 'q\" 日本/stand {i}.bvh" if i % 3 else f"stand {i}.bvh"
        (folder / name).write_bytes(clips["stand"].path.read_bytes())
    import_clip("stand")
    for name in ("stand 3.blend", "small.blend", "é 'q\" 日本/small.blend"):
        bpy.ops.wm.save_as_mainfile(filepath=str(folder / name), copy=True)
    bpy.ops.export_scene.gltf(filepath=str(folder / "stand.glb"))
    bpy.ops.export_scene.fbx(
        filepath=str(folder / "stand.fbx"),
        add_leaf_bones=False,
        bake_anim_use_all_actions=False,
        bake_anim_use_nla_strips=False,
    )
    content = (folder / "small.blend").read_bytes()
    (folder / "corrupt.blend").write_bytes(content[: len(content) // 3])
    (folder / "fall.bvh").write_bytes(clips["side_kick"].path.read_bytes())
    save_hanging(folder / "hang.blend")
    return folder


def children(pid):
    """Processes that a process has started."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def facts(output):
    """{name: (modification time of the result, how often it was begun)} of what is on record."""
    found = {}
    for path in output.rglob("*.poise.json"):
        record = json.loads(path.read_text())
        if record["state"] in ("stood", "fell"):
            name = record["shot"]
            result = output / (name if name.endswith(".blend") else f"{name}.blend")
            begun = (output / f"{name}.log").read_text().count("== ")
            found[name] = (result.stat().st_mtime_ns, begun)
    return found


def test_a_night_with_everything_in_it(shots, tmp_path):
    output, night = tmp_path / "baked", tmp_path / "night.json"
    files = [path for path in shots.rglob("*") if path.is_file()]
    sources = {path: path.read_bytes() for path in files}
    assert len(files) == 20
    command = [sys.executable, "-m", "poise", "batch", shots, "--recursive", "--jobs=2"]
    command += ["--timeout=60s", f"--output={output}", f"--json={night}"]
    command += [f"--report={tmp_path / 'night.html'}"]

    batch = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    told = 0
    while told < KILLED_AFTER:
        line = batch.stderr.readline()
        assert line, "it has ended"
        told += line.startswith("[")
    family = children(batch.pid)
    os.kill(batch.pid, signal.SIGKILL)
    batch.communicate()
    assert family
    for pid in family:
        assert_ends(pid)
    before = facts(output)
    assert len(before) >= KILLED_AFTER - 1, "but for the corrupt one"

    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=900)
    assert done.returncode == 1, done.stderr
    assert f"{len(before)} of 20 shots are done already." in done.stderr
    total = json.loads(night.read_text())
    assert total["totals"] == {
        "cleaned": 0,
        "stood": 17,
        "fell": 1,
        "hung": 1,
        "failed": 1,
        "left": 0,
    }
    corrupt, hung, fell = total["shots"][:3]
    assert corrupt["shot"] == "corrupt.blend" and "cannot open '" in corrupt["why"]
    assert hung["shot"] == "hang.blend" and hung["why"].startswith(
        "Not done after 1 min, and ended"
    )
    assert fell["shot"] == "fall.bvh" and fell["why"].startswith("Stopped at ")

    after = facts(output)
    assert len(after) == 18
    assert {name: after[name] for name in before} == before, "nothing is done twice"
    again = [name for name in after if after[name][1] > 1]
    assert len(again) <= 2, "those that were under way at the kill"
    assert {path: path.read_bytes() for path in files} == sources
    kept = (".blend", ".poise.json", ".log")
    rest = [path for path in output.rglob("*") if not path.name.endswith(kept) and path.is_file()]
    assert not rest

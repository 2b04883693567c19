# SPDX-License-Identifier: GPL-3.0-or-later
"""What another segment takes: two entries in `geometry/skeleton.py`, and bones in a rig map. The
rest follows them, from reading to bake; gains of today are read and completed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent

BODY = """
import another_segment
import json, sys
import numpy as np
from poise.addon.rigs import rig
from poise.addon.scene import pushes
from poise.controller import Gains
from poise.controller.body.adult import adult
from poise.controller.body.morphology import GROUPS
from poise.controller.gains.regions import REGIONS, inertias

body, gains = adult(), Gains.load(sys.argv[1])
print(json.dumps({
    "dofs": body.dof_names,
    "limits": body.limits[-1].tolist(),
    "shapes": [shape.segment for shape in body.shapes],
    "words": body.joint_words(body.dofs - 1),
    "inertia": inertias(body)["jaw_pitch"],
    "stiffness": dict(zip(gains.names, gains.stiffness)),
    "completed": gains.completed,
    "group": GROUPS["head"],
    "region": REGIONS["neck"],
    "optional": [slot for slot in rig.SLOTS if slot not in rig.REQUIRED_SLOTS],
    "push": pushes.PARTS[-2],
}))
"""

BAKE = """
import another_segment
import json, math, sys
import bpy
import poise
from addon import conftest as kit
from poise.addon.blender import compat
from poise.addon.shots.shot import Shot, ShotOptions

kit.BONES = (*kit.BONES, ("jaw", "head", (0, -0.02, 1.58), (0, -0.1, 1.56)))
bpy.ops.wm.read_factory_settings(use_empty=True)
poise.register()
armature = kit._build(bpy)
for name, size in (("jaw", 0.25), ("chest", 0.08), ("upper_arm.R", 0.25)):
    bone = armature.pose.bones[name]
    bone.rotation_mode = "XYZ"
    for frame in range(1, 27, 5):
        bone.rotation_euler.x = size * math.sin(frame / 5)
        bone.keyframe_insert("rotation_euler", frame=frame)
shot = Shot(bpy.context.scene, ShotOptions(armature="biped", rig=sys.argv[1]))
for part in (shot.read(), shot.simulate()):
    for _ in part:
        pass
shot.bake()
curves = compat.curves(*compat.assigned(armature))
jaw = [c for c in curves if '"jaw"' in c.data_path and c.data_path.endswith("euler")]
angles = shot.recording.reference.trajectory.angles[:, -1]
print(json.dumps({
    "fell": shot.recording.fell_at,
    "error": shot.baked.error_mm,
    "keys": [len(curve.keyframe_points) for curve in jaw],
    "swing": float(angles.max() - angles.min()),
    "missing": shot.reading.rig_map.missing,
}))
sys.stdout.flush()
os = __import__("os")
os._exit(0)  # the module of Blender 4.2 crashes in Python's own clean-up
"""


def told(script, argument):
    """What the last line of a script tells, which runs in a Poise whose bodies have a jaw."""
    command = [sys.executable, "-c", script, str(argument)]
    run = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.slow(captured=False)
def test_all_that_is_told_of_segments_follows_from_their_entries():
    path = TESTS / "data" / "before_rooms" / "last" / "gains.json"
    found, given = told(BODY, path), json.loads(path.read_text())
    assert found["dofs"][-2:] == ["toe_r_pitch", "jaw_pitch"] and found["limits"] == [-0.3, 0.6]
    assert found["shapes"].count("jaw") == 1 and found["words"] == "jaw" and found["inertia"] > 0
    assert found["group"] == ["head", "jaw"] and found["region"] == ["neck", "jaw"]
    assert "jaw" in found["optional"] and found["push"] == ["JAW", "Jaw", "Push the jaw"]
    assert found["completed"] == (
        f"The gains file '{path}' has no gains for jaw: these have the defaults."
    )
    assert found["stiffness"].items() > given["stiffness"].items()
    assert found["stiffness"]["jaw_pitch"] > 0


@pytest.mark.slow
def test_it_is_read_simulated_and_baked(tmp_path, biped_map):
    path = tmp_path / "rig.json"
    bones = {slot: list(chain) for slot, chain in biped_map.bones.items()} | {"jaw": ["jaw"]}
    path.write_text(json.dumps({"name": "with a jaw", "bones": bones}))
    found = told(BAKE, path)
    assert found["fell"] is None and found["error"] < 0.01 and found["missing"] == []
    assert found["keys"] == [26] * 3
    assert found["swing"] > 0.3

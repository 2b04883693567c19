# SPDX-License-Identifier: GPL-3.0-or-later
"""Options, each described once: what was set before stays, and all is made of the description."""

import json
import shutil
from functools import reduce
from pathlib import Path

import bpy
import pytest

DATA = Path(__file__).resolve().parent.parent / "data" / "settings"


def test_a_saved_scene_has_the_same_settings(registered, tmp_path):
    if bpy.app.version < (5, 0):
        pytest.skip("an older Blender cannot read the file, which 5.0 wrote")
    copy = shutil.copy(DATA / "scene.blend", tmp_path / "shot.blend")
    bpy.ops.wm.open_mainfile(filepath=str(copy))
    (scene,) = bpy.data.scenes
    found = json.loads((DATA / "settings.json").read_text("utf-8"))
    assert len(found) > 120
    for place, value in found.items():
        kept = reduce(getattr, place.split("."), scene.poise)
        same = pytest.approx(value, rel=1e-6) if isinstance(value, float) else value
        assert kept == same, place

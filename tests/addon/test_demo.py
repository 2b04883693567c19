# SPDX-License-Identifier: GPL-3.0-or-later
"""The demo's two scenes: built in code, mapped by name, readable; and what is arranged of them."""

from pathlib import Path

import numpy as np
import pytest

from poise.addon.shot import Shot, ShotOptions

DEMO = Path(__file__).resolve().parents[2] / "demo"


@pytest.fixture
def demo(monkeypatch):
    """The demo's main module."""
    monkeypatch.syspath_prepend(str(DEMO))
    import run

    return run


@pytest.mark.parametrize("name", ["captured", "handkeyed"])
def test_scene_reads_simulates_and_shows_both_actions(blender, demo, name):
    import staging

    armature, height = demo.SHOTS[name]()
    shot = Shot(blender.context.scene, ShotOptions(armature=armature.name))
    list(shot.read())
    assert not shot.reading.rig_map.detected
    assert abs(shot.reading.metres_per_unit - 1) < 1e-9
    list(shot.simulate())
    assert abs(shot.character.height - height) < 0.15
    assert shot.recording.success, shot.recording.why()
    shot.bake()
    left, right = staging.arrange(shot, height)
    actions = [row.armature.animation_data.action.name for row in (left, right)]
    assert actions == [shot.reading.action, shot.baked.action]
    assert left.armature.data == right.armature.data
    bodies = [row.armature.children[0] for row in (left, right)]
    for row, body in zip((left, right), bodies, strict=True):
        assert body.modifiers["Armature"].object == row.armature


def test_sole_of_the_body_stands_on_the_floor(blender, demo):
    armature, _ = demo.load_handkeyed()
    body = armature.children[0]
    blender.context.scene.frame_set(1)
    shown = body.evaluated_get(blender.context.evaluated_depsgraph_get())
    heights = [(shown.matrix_world @ vertex.co).z for vertex in shown.data.vertices]
    assert abs(min(heights)) < 0.01
    assert 1.75 < max(heights) < 1.85


def test_every_captured_clip_loads(blender, demo):
    import captured

    assert len(captured.clips()) == 15
    armature = captured.load("walk", (0.0, 0.5))
    frames = np.array([point.co[0] for point in _first_curve(armature).keyframe_points])
    assert np.allclose(frames, np.arange(1, 17))
    # Bent knees point ahead: towards -Y.
    hip, knee, ankle = (
        armature.pose.bones[f"Left{name}"].head for name in ("UpLeg", "Leg", "Foot")
    )
    assert knee.y < (hip.y + ankle.y) / 2


def _first_curve(armature):
    from poise.addon import compat

    return compat.curves(*compat.assigned(armature))[0]

# SPDX-License-Identifier: GPL-3.0-or-later
"""The demo's scenes: the captured clips are where PyBullet has them, and a shot gives its files."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

pybullet = pytest.importorskip("pybullet")
DEMO = Path(__file__).resolve().parents[2] / "demo"

#: Joints of a clip's frame after the root: name in PyBullet's URDF, how many numbers.
CHANNELS = [("chest", 4), ("neck", 4)] + [
    (f"{side}_{joint}", size)
    for side in ("right", "left")
    for joint, size in (("hip", 4), ("knee", 1), ("ankle", 4), ("shoulder", 4), ("elbow", 1))
]
BONES = {"chest": "Spine", "neck": "Head"} | {
    f"{side.lower()}_{joint}": f"{side}{bone}"
    for side in ("Left", "Right")
    for joint, bone in (
        ("hip", "UpLeg"),
        ("knee", "Leg"),
        ("ankle", "Foot"),
        ("shoulder", "Arm"),
        ("elbow", "ForeArm"),
        ("wrist", "Hand"),
    )
}


@pytest.fixture
def demo(monkeypatch):
    """demo(name) -> a module of the demo, imported as its own script does."""
    monkeypatch.syspath_prepend(str(DEMO))
    return importlib.import_module


@pytest.fixture
def humanoid():
    """humanoid(values) -> {joint: (3,) world position [m]} of PyBullet's own body in a frame."""
    import pybullet_data

    client = pybullet.connect(pybullet.DIRECT)
    body = pybullet.loadURDF(
        f"{pybullet_data.getDataPath()}/humanoid/humanoid.urdf",
        globalScaling=0.25,
        useFixedBase=True,
        physicsClientId=client,
    )
    count = pybullet.getNumJoints(body, physicsClientId=client)
    links = {
        pybullet.getJointInfo(body, i, physicsClientId=client)[12].decode(): i for i in range(count)
    }

    def pose(values):
        w, *xyz = values[4:8]
        pybullet.resetBasePositionAndOrientation(body, values[1:4], [*xyz, w], client)
        at = 8
        for joint, size in CHANNELS:
            part = values[at : at + size]
            at += size
            target = [*part[1:], part[0]] if size == 4 else part
            pybullet.resetJointStateMultiDof(body, links[joint], target, physicsClientId=client)
        return {
            joint: np.array(
                pybullet.getLinkState(
                    body, links[joint], computeForwardKinematics=1, physicsClientId=client
                )[4]
            )
            for joint in BONES
        }

    yield pose
    pybullet.disconnect(client)


@pytest.mark.parametrize("clip", ["jump", "cartwheel", "getup_facedown"])
def test_captured_joints_are_where_pybullet_has_them(blender, demo, humanoid, clip):
    captured = demo("captured")
    path = captured.folder() / f"humanoid3d_{clip}.txt"
    frames = np.array(json.loads(path.read_text())["Frames"])
    armature = captured.load(clip)
    start = frames[0, 1:4] * (1, 0, 1)
    for number in range(0, len(frames), 20):
        blender.context.scene.frame_set(number + 1)
        for joint, place in humanoid(frames[number]).items():
            head = armature.matrix_world @ armature.pose.bones[BONES[joint]].head
            np.testing.assert_allclose(head, captured.AXES @ (place - start), atol=1e-5)


def test_captured_part_is_cut_from_the_clip(blender, demo):
    captured = demo("captured")
    heads = []
    for part, frame in ((None, 1 + 30), ((0.5, 1.0), 1)):
        blender.ops.wm.read_factory_settings(use_empty=True)
        armature = captured.load("jump", part)
        scene = blender.context.scene
        assert scene.render.fps == 60
        scene.frame_set(frame)
        heads.append(armature.pose.bones["Head"].head.z)
    assert scene.frame_end == 31
    assert heads[0] == pytest.approx(heads[1], abs=1e-5)


def test_hand_keyed_shot_gives_file_with_both_actions_and_report(blender, demo, tmp_path):
    run = demo("run")
    lines = run.run_shot("handkeyed", tmp_path, render=False)
    report = json.loads((tmp_path / "handkeyed_report.json").read_text())
    assert report["success"]
    assert report["foot_slide"]["after"] < 0.2 * report["foot_slide"]["before"]
    assert "stood" in lines[0]
    blender.ops.wm.open_mainfile(filepath=str(tmp_path / "handkeyed.blend"))
    shown = {
        thing.animation_data.action.name
        for thing in blender.data.objects
        if thing.type == "ARMATURE"
    }
    assert shown == {report["source_action"], report["baked_action"]}
    assert report["source_action"] != report["baked_action"]


def test_walk_is_kept_and_its_foot_is_shown_as_it_stands(blender, demo, tmp_path):
    run, staging = demo("run"), demo("staging")
    seen = []
    arrange = staging.arrange
    staging.arrange = lambda shot, height: (
        seen.append(staging.stance(shot)) or arrange(shot, height)
    )
    try:
        run.run_shot("walk", tmp_path, render=False)
    finally:
        staging.arrange = arrange
    report = json.loads((tmp_path / "walk_report.json").read_text())
    assert report["verdict"]["keeper"]
    slip = report["verdict"]["measures"]["slip"]
    assert slip["after"] < 0.3 * slip["before"]
    (stance,) = seen
    first, last = stance.frames
    assert report["frames"][0] < first < stance.flat < last < report["frames"][1]


def test_strip_joins_tiles_with_gaps(blender, demo):
    pictures = demo("pictures")
    tile = np.zeros((4, 3, 4), np.float32)
    row = pictures._joined([tile, tile], 1)
    assert row.shape == (4, 3 + pictures.GAP + 3, 4)
    assert (row[:, 3:-3] == 1).all()
    assert (row[:, :3] == 0).all()

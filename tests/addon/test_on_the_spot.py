# SPDX-License-Identifier: GPL-3.0-or-later
"""Walks on the spot in Blender: Automatic, endless, cleaned up, learned; and bakes that stay."""

import json

import bpy
import numpy as np
import pytest
from helpers.commands import poise, save

from poise.addon.baking.bake import BakeOptions
from poise.addon.blender import compat, session
from poise.addon.rigs import reference
from poise.addon.scene import walks
from poise.addon.scene.walks import WalkOptions
from poise.addon.shots.shot import Shot, ShotOptions
from poise.addon.sidebar import clean_up_panel, clip_check_panel, panels
from poise.controller import Character

SAID = "It walks on the spot, as on a treadmill: here it goes where its feet take it."


@pytest.fixture
def stays(import_clip):
    """The armature of a walk whose even travel was taken away."""
    armature = import_clip("walk")
    path = armature.pose.bones[0].path_from_id("location")
    for curve in compat.curves(*compat.assigned(armature)):
        if curve.data_path == path and curve.array_index != 1:
            points = curve.keyframe_points
            way = points[-1].co.y - points[0].co.y
            for i, point in enumerate(points):
                point.co.y -= way * i / (len(points) - 1)
            curve.update()
    return armature


def read(armature):
    return reference.read(bpy.context.scene, armature)


def way_of(motion):
    return (motion.positions[-1, 0] - motion.positions[0, 0])[:2]


def test_a_reading_that_goes_has_its_bones_where_its_motion_is(stays):
    reading = read(stays)
    body = Character.from_motion(reading.motion)
    goes = walks.going(reading, body)
    assert np.linalg.norm(way_of(reading.motion)) < 0.02 < 2 < np.linalg.norm(way_of(goes.motion))
    moved = goes.bone_matrices - reading.bone_matrices
    wanted = (goes.motion.positions - reading.motion.positions)[:, 0] / reading.metres_per_unit
    np.testing.assert_allclose(moved[:, 7, :3, 3], wanted, atol=1e-6)
    assert not moved[..., :3, :3].any() and goes.still == SAID
    assert walks.going(goes, Character.from_motion(goes.motion)) is goes


def test_automatic_lets_it_go_says_so_and_it_is_kept(registered, stays, draw_panels):
    scene = bpy.context.scene
    assert bpy.ops.poise.simulate() == {"FINISHED"}
    shot = session.result_of(scene, stays).shot
    assert shot.recording.success and shot.verdict.keeper
    report = shot.report()
    assert report["cleaning"] == ["travel"]
    said = "Cleaned by itself (Travel): frames "
    assert report["method"]["why"].startswith(said)
    assert "slide under the body as it walks, as on a treadmill (" in report["method"]["why"]
    text = draw_panels(clip_check_panel.CLASSES, stays).replace("\n", " ")
    assert said in text and "Mend first" not in text
    scene.poise.root_motion = "NONE"
    assert bpy.ops.poise.bake() == {"FINISHED"}
    text = draw_panels(panels.CLASSES, stays).replace("\n", " ")
    assert "It stays in place: its feet stand where it is moved along evenly, at 1." in text
    after = read(stays).motion
    assert np.linalg.norm(way_of(after)) < 1e-3
    assert np.linalg.norm(after.positions[:, 0, :2] - after.positions[0, 0, :2], axis=1).max() < 0.3
    assert shot.verdict.keeper, "the way that is left out is none of its flaws"
    assert shot.baked.error_mm < 0.05


def test_a_bake_in_place_is_the_other_one_without_an_even_way(registered, import_clip):
    armature = import_clip("walk")
    shot = Shot(bpy.context.scene, ShotOptions())
    for step in (shot.read, shot.simulate):
        for _ in step():
            pass
    motions, ways = [], []
    for kind in ("BONE", "NONE"):
        for _ in shot.baking(BakeOptions(root_motion=kind)):
            pass
        ways.append(np.array(shot.baked.way))
        assert shot.baked.error_mm < 0.05
        motions.append(read(armature).motion.positions)
    goes, stays = motions
    way = goes[-1, 0, :2] - goes[0, 0, :2]
    assert not ways[0].any()
    np.testing.assert_allclose(ways[1], way, atol=1e-4)
    share = np.linspace(0, 1, len(goes))[:, None, None]
    np.testing.assert_allclose(stays[..., :2], goes[..., :2] - share * way, atol=2e-4)
    np.testing.assert_allclose(stays[..., 2], goes[..., 2], atol=2e-4)


def test_it_walks_on_as_far_as_its_feet_go(registered, stays):
    shot = Shot(bpy.context.scene, ShotOptions(walk=WalkOptions(6.0)))
    for step in (shot.read, shot.simulate):
        for _ in step():
            pass
    assert shot.notes == [SAID]
    assert shot.recording.success
    assert np.linalg.norm(way_of(shot.reading.motion)) > 5
    baked = shot.bake()
    assert baked.error_mm < 0.05
    scene = bpy.context.scene
    scene.frame_set(int(baked.frames[1]))
    hips = np.array(stays.matrix_world @ stays.pose.bones[0].head)
    assert np.linalg.norm(hips - shot.recording.joints()[-1, 0]) < 0.15


def test_the_command_cleans_it_up_in_place(registered, stays, tmp_path, capsys, draw_panels):
    shot, report = save(tmp_path), tmp_path / "report.json"
    output = tmp_path / "clean.blend"
    command = ("clean", shot, "--output", output, "--report", report, "--root-motion=none")
    assert poise(*command) == 0
    told = capsys.readouterr().err
    assert SAID in told and "It stays in place: its feet stand where it is moved along" in told
    assert json.loads(report.read_text())["verdict"]["keeper"]
    armature = bpy.context.object
    motion = read(armature).motion
    assert np.linalg.norm(way_of(motion)) < 1e-3
    # What stands goes back with one speed: that of the game.
    body = Character.from_motion(motion)
    goes = body.travelled(motion)
    assert np.linalg.norm(way_of(goes)) == pytest.approx(1.2 * goes.duration, rel=0.15)


def test_the_panel_tells_what_was_cleaned_on_the_spot(registered, stays, draw_panels):
    assert bpy.ops.poise.clean_up() == {"FINISHED"}
    text = draw_panels(clean_up_panel.CLASSES, stays).replace("\n", " ")
    assert SAID in text and "Keeper" in text and "No foot stands" not in text


@pytest.mark.slow(captured=False)
def test_a_walk_on_the_spot_is_learned_as_it_goes(registered, stays, tmp_path):
    shot, skills = save(tmp_path), tmp_path / "hero.skills"
    assert poise("learn", shot, "--output", skills, "--budget=60s") == 0
    (skill,) = json.loads(skills.read_text())["skills"]
    assert skill["speed"] == pytest.approx(1.2, rel=0.1)

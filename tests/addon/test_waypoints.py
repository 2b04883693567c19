# SPDX-License-Identifier: GPL-3.0-or-later
"""Waypoints in Blender: empties, keys, the panel, the command line, what is told of them."""

import json

import bpy
import numpy as np
import pytest
from helpers.commands import poise, save

from poise.addon.blender import session
from poise.addon.blender.chosen import chosen_armature
from poise.addon.overlays import overlay_marks
from poise.addon.rigs import sampling
from poise.addon.scene import waypoints
from poise.addon.settings import method, quick
from poise.addon.settings.method import Choice
from poise.addon.settings.properties import shot_options
from poise.addon.shots import outdated
from poise.addon.shots.shot import Shot, ShotOptions
from poise.addon.staging import waypoints_panel
from poise.controller.exceptions import SettingsError

pytestmark = pytest.mark.once

pytestmark = pytest.mark.usefixtures("registered")

FRAME = 150


@pytest.fixture
def walker(import_clip):
    """An armature that walks, by balance alone."""
    bpy.context.scene.poise.method = "BALANCE"
    return import_clip("walk")


def add(frame=FRAME, at="BODY", **moved):
    """The empty of a waypoint at a frame, moved from where it was added."""
    bpy.context.scene.frame_set(frame)
    before = set(bpy.context.scene.objects)
    assert bpy.ops.poise.add_waypoint(at=at) == {"FINISHED"}
    (empty,) = set(bpy.context.scene.objects) - before
    for axis, way in moved.items():
        setattr(empty.location, axis, getattr(empty.location, axis) + way)
    return empty


def read(armature, **options):
    """The Waypoints of an armature, as a shot reads them."""
    shot = Shot(bpy.context.scene, ShotOptions(armature=armature.name, **options))
    list(shot.read())
    return shot._waypoints


def result(armature):
    """The Shot of the result of an armature."""
    return session.result_of(bpy.context.scene, armature).shot


def changed(armature):
    """What has changed since its result."""
    options = shot_options(bpy.context, armature)
    now = outdated.settings_of(bpy.context.scene, armature, options)
    return outdated.changed(session.result_of(bpy.context.scene, armature).settings, now)


def test_a_waypoint_is_added_below_the_hips_at_this_frame(walker):
    empty = add()
    pelvis = walker.matrix_world @ walker.pose.bones[0].head
    assert (empty.location - pelvis).xy.length < 1e-5
    assert empty.poise_waypoint.armature == walker and empty.poise_waypoint.frame == FRAME
    assert bpy.context.view_layer.objects.active == walker, "it stays what is simulated"
    assert read(walker)[0].time == pytest.approx((FRAME - 1) / bpy.context.scene.render.fps)
    bpy.context.scene.cursor.location = (3.0, 4.0, 5.0)
    assert add(at="CURSOR").location[:] == (3.0, 4.0, 0.0)


def test_a_keyed_empty_counts_where_it_is_at_its_frame(walker):
    empty = add()
    place = empty.location.copy()
    assert empty.keyframe_insert("location", frame=FRAME)
    empty.location.x += 2.0
    assert empty.keyframe_insert("location", frame=FRAME + 50)
    bpy.context.scene.frame_set(FRAME + 50)
    assert read(walker)[0].place == pytest.approx(place.xy, abs=1e-5)
    assert bpy.context.scene.frame_current == FRAME + 50
    empty.hide_viewport = True
    with pytest.raises(SettingsError, match="disabled in the viewport"):
        read(walker)


def test_a_selected_waypoint_means_its_character(walker, import_clip):
    empty = add()
    bpy.context.view_layer.objects.active = import_clip("stand")
    bpy.context.view_layer.objects.active = empty
    assert chosen_armature(bpy.context) == (walker, "")
    empty.poise_waypoint.armature = None
    armature, why = chosen_armature(bpy.context)
    assert armature is None and "several armatures" in why


def test_whose_they_are_and_whether_they_are_used(walker, import_clip):
    empty = add()
    other = import_clip("stand")
    assert len(read(walker)) == 1 and not read(other)
    empty.poise_waypoint.use = False
    assert not read(walker)
    assert "Waypoints" not in quick.also_set(bpy.context.scene, walker)
    bpy.context.scene.poise.waypoints.end_in_place = True
    (end,) = read(walker)
    assert end.place is None and end.name == waypoints.END
    assert "Waypoints" in quick.also_set(bpy.context.scene, walker)


@pytest.mark.slow(captured=False)
def test_a_body_gets_to_its_waypoint_and_says_so(walker):
    add(x=0.15, y=0.1)
    bpy.context.scene.poise.waypoints.end_in_place = False
    assert bpy.ops.poise.simulate() == {"FINISHED"}
    shot = result(walker)
    ((told, there),) = shot.arrivals
    assert there and told.startswith(f"The waypoint 'Waypoint {FRAME}' at frame {FRAME} is reached")
    assert shot.recording.success and shot.compared == "moved"
    place = dict((one.name, one) for one in shot.judge().judged)["place"]
    assert place.after < 0.1, "what it was moved by is not out of its place"
    assert not changed(walker)
    bpy.ops.poise.bake()
    bpy.context.scene.frame_set(FRAME)
    pelvis = walker.matrix_world @ walker.pose.bones[0].head
    empty = bpy.data.objects[f"Waypoint {FRAME}"]
    assert (pelvis - empty.location).xy.length < 0.03, "the keys are there"
    empty.location.x += 0.1
    assert changed(walker) == ["Waypoints"]
    # A ring and a dot in it.
    look = overlay_marks.Look.of(bpy.context.scene.poise.overlays)
    marks = overlay_marks._waypoints(shot.recording, 0, look)
    _, ring, dot = (points for points, *_ in marks)
    assert np.linalg.norm((ring.mean(0) - dot.mean(0))[:2]) < 0.03


@pytest.mark.slow(captured=False)
def test_tries_are_seen_one_after_the_other(walker):
    """The window shows each, and in the end the best is the result."""
    add(x=0.2)
    shot = Shot(bpy.context.scene, ShotOptions(armature=walker.name))
    list(shot.read())
    shot.prepare()
    begun = [sample for sample in shot.simulate() if sample == 0]
    assert 2 <= len(begun) <= 5
    assert shot.performance().settings.waypoints == shot._waypoints, "a search begins without leads"
    assert shot.simulation.settings.waypoints != shot._waypoints
    assert shot.problem().settings.waypoints == ()
    assert "waypoints" in shot.left_out


def test_what_no_body_reaches_is_refused_before_it_is_simulated(walker):
    empty = add(x=4.0)
    with pytest.raises(
        RuntimeError, match="No body can be at the waypoint 'Waypoint 150' at frame"
    ):
        bpy.ops.poise.simulate()
    empty.poise_waypoint.frame = 3000
    with pytest.raises(RuntimeError, match="is at frame 3000; the body begins at frame 1"):
        bpy.ops.poise.simulate()


def test_endless_walks_have_none(walker):
    bpy.context.scene.poise.waypoints.end_in_place = True
    bpy.context.scene.poise.walk.enabled = True
    bpy.context.scene.poise.walk.seconds = 4.0
    with pytest.raises(RuntimeError, match="goes where its heading leads it"):
        bpy.ops.poise.simulate()


@pytest.mark.slow(captured=False)
def test_automatic_prefers_what_comes_to_more_waypoints(walker, monkeypatch):
    add()
    shot = Shot(bpy.context.scene, ShotOptions(armature=walker.name))
    sampling.run(shot.read())
    list(shot.simulate())
    shot.decide(Choice("balance", "Why."))
    there = method._rank(shot)
    monkeypatch.setattr(Shot, "arrivals", [("missed", False)])
    assert method._rank(shot) < there


def test_buttons_go_to_a_waypoint_and_remove_it(walker):
    empty = add()
    bpy.context.scene.frame_set(3)
    assert bpy.ops.poise.go_to_waypoint(empty=empty.name) == {"FINISHED"}
    assert bpy.context.scene.frame_current == FRAME and empty.select_get()
    assert bpy.ops.poise.remove_waypoint(empty=empty.name) == {"FINISHED"}
    assert not waypoints.of(bpy.context.scene, walker)


def test_the_panel_lists_those_of_the_armature_by_frame(walker, monkeypatch):
    drawn = []

    class Layout:
        def row(self, **_):
            return self

        column = split = row

        def prop(self, owner, name, **_more):
            drawn.append((name, getattr(owner, name)))

        def operator(self, name, **_more):
            return type("Button", (), {})()

        def label(self, **_):
            pass

    add(120)
    add(60)
    monkeypatch.setattr(waypoints_panel, "sentence", lambda *_: None)
    waypoints_panel.POISE_PT_waypoints.content(None, Layout(), bpy.context, walker, "")
    frames = [value for name, value in drawn if name == "frame"]
    assert frames == [60, 120] and drawn[-1] == ("end_in_place", False)


@pytest.mark.slow(captured=False)
def test_the_command_line_takes_them_and_tells(walker, tmp_path, capsys):
    hips = walker.matrix_world @ walker.pose.bones[0].head
    shot, path = save(tmp_path), tmp_path / "report.json"
    bpy.context.scene.frame_set(FRAME)
    hips = walker.matrix_world @ walker.pose.bones[0].head
    given = f"--waypoint={FRAME}:{hips.x + 0.1:.3f},{hips.y:.3f}"
    assert poise("simulate", shot, given, "--end-in-place", "--report", path) == 0
    told = capsys.readouterr().err
    assert "The waypoint '--waypoint 1' at frame 150 is reached within" in told
    assert f"The waypoint '{waypoints.END}' at frame" in told
    report = json.loads(path.read_text())
    assert report["verdict"]["compared_with"] == "moved"
    assert [one["frame"] for one in report["waypoints"]] == [FRAME, report["range"][1]]
    assert all(one["missed"] < 0.03 for one in report["waypoints"])

# SPDX-License-Identifier: GPL-3.0-or-later
"""Endless walks of an armature: the reading that goes on, the bake, and what is refused."""

import json
import re

import bpy
import numpy as np
import pytest
from helpers.commands import poise, save

from poise.addon.blender import compat
from poise.addon.scene.walks import WalkOptions
from poise.addon.settings.properties import shot_options
from poise.addon.shots import outdated
from poise.addon.shots.shot import Shot, ShotOptions
from poise.addon.staging import walks_panel
from poise.controller import MotionError, SettingsError


@pytest.fixture
def walker(import_clip):
    """An armature that walks, and a curve of 20 m along y."""
    armature = import_clip("walk")
    curve = bpy.data.curves.new("Path", "CURVE")
    curve.dimensions = "3D"
    spline = curve.splines.new("POLY")
    spline.points.add(1)
    spline.points[0].co, spline.points[1].co = (1, 0, 0, 1), (1, 20, 0, 1)
    bpy.context.scene.collection.objects.link(bpy.data.objects.new("Path", curve))
    return armature


def performed(options):
    shot = Shot(bpy.context.scene, options)
    for _ in shot.read():
        pass
    for _ in shot.simulate():
        pass
    return shot


def test_a_walk_is_baked_beyond_the_end_of_its_clip(walker):
    """The bake is as exact as any, and its last frame is where the simulation ends."""
    toe = walker.pose.bones["LeftHandIndex1"]
    shot = performed(ShotOptions(walk=WalkOptions(3.6)))
    assert shot.recording.success
    assert len(shot.recording) == 217
    baked = shot.bake()
    assert baked.error_mm < 0.02
    first, last = baked.frames
    assert last - first == 216
    assert last > 194
    scene = bpy.context.scene
    scene.frame_set(int(last))
    hips = walker.matrix_world @ walker.pose.bones["Hips"].head
    assert np.linalg.norm(np.array(hips) - shot.recording.joints()[-1, 0]) < 0.15
    # What is not simulated repeats.
    period = shot.reading.motion.walk.cycle.period
    seen = []
    for frame in (first + 5, first + 5 + period):
        scene.frame_set(int(frame))
        seen.append(np.array(toe.matrix_basis))
    assert np.abs(seen[1] - seen[0]).max() < 1e-5


def test_a_walk_follows_a_curve_object(walker):
    shot = Shot(bpy.context.scene, ShotOptions(walk=WalkOptions(8.0, (100, 167), "Path")))
    for _ in shot.read():
        pass
    motion = shot.reading.motion
    root = motion.positions[:, 0, :2]
    assert np.abs(root[:, 0] - 1).max() < 0.1
    assert root[0, 1] == pytest.approx(0, abs=0.1)
    assert root[-1, 1] > 9
    assert shot.reading.frames[0] == 100


@pytest.mark.parametrize("seconds", [2.4, 5.0])
def test_a_walk_that_goes_on_rides_on_nothing(walker, seconds):
    """Its frames are not those of the clip, in which a turntable moves it."""
    table = bpy.data.objects.new("turntable", None)
    bpy.context.scene.collection.objects.link(table)
    for frame, angle in ((1, 0), (194, 2)):
        table.rotation_euler.z = angle
        table.keyframe_insert("rotation_euler", frame=frame)
    walker.parent = table
    shot = Shot(bpy.context.scene, ShotOptions(walk=WalkOptions(seconds)))
    for _ in shot.read():
        pass
    shot.embody()
    found = shot.check()
    assert len(found.frames) == 194 != len(shot.motion)
    assert "support" not in {finding.kind for finding in found.findings}


def test_a_baked_walk_does_not_jump_to_its_curve_and_back(walker):
    """The cycle begins and ends within the clip, metres away from the curve."""
    shot = performed(ShotOptions(walk=WalkOptions(1.0, (60, 127), "Path")))
    first, last = map(int, shot.bake().frames)
    places = []
    for frame in (1, first - 1, first, last, last + 1, 194):
        bpy.context.scene.frame_set(frame)
        places.append(np.array(walker.matrix_world @ walker.pose.bones["Hips"].head))
    assert first == 60 and last < 150
    assert np.ptp(places[:3], axis=0).max() < 1e-4 and np.ptp(places[3:], axis=0).max() < 1e-4
    assert np.linalg.norm(places[0][:2] - (1, 0)) < 0.2


def test_what_cannot_be_walked_is_refused(walker):
    scene = bpy.context.scene

    def read(*options):
        for _ in Shot(scene, ShotOptions(walk=WalkOptions(*options))).read():
            pass

    with pytest.raises(SettingsError, match="no curve 'Pth' to walk along: choose one of 'Path'"):
        read(5.0, None, "Pth")
    with pytest.raises(SettingsError, match="outside of 'walk'"):
        read(5.0, (100, 300))
    walker.location = (0, 0, 0)
    walker.keyframe_insert("location", frame=1)
    walker.location = (0, 0.5, 0)
    walker.keyframe_insert("location", frame=194)
    with pytest.raises(MotionError, match=r"is moved itself, by .* m in a cycle"):
        read(5.0)


def test_the_sidebar_finds_the_cycle(registered, walker, draw_panels):
    scene = bpy.context.scene
    settings = scene.poise.walk
    assert shot_options(bpy.context, walker).walk is None
    assert bpy.ops.poise.find_cycle() == {"FINISHED"}
    assert settings.use_cycle
    assert 1.0 < (settings.last - settings.first) / 60 < 1.2
    shown = draw_panels(walks_panel.CLASSES, walker).replace("\n", " ")
    assert settings.found in shown
    settings.enabled, settings.seconds = True, 4.0
    settings.heading = scene.objects["Path"]
    chosen = shot_options(bpy.context, walker).walk
    assert chosen == WalkOptions(4.0, (settings.first, settings.last), "Path")


@pytest.mark.slow(captured=False)
def test_the_cycle_is_one_of_the_source_while_a_bake_is_shown(registered, walker):
    settings = bpy.context.scene.poise.walk
    settings.enabled, settings.seconds = True, 4.0
    settings.heading = bpy.context.scene.objects["Path"]
    bpy.ops.poise.find_cycle()
    cycle = settings.first, settings.last
    bpy.ops.poise.simulate()
    bpy.ops.poise.bake()
    shown = compat.assigned(walker)
    bpy.ops.poise.find_cycle()
    assert (settings.first, settings.last) == cycle
    assert compat.assigned(walker) == shown


# --- Commands -------------------------------------------------------------------------------------


def read(armature, seconds=12.0, **more):
    shot = Shot(bpy.context.scene, ShotOptions(walk=WalkOptions(seconds, (100, 167), **more)))
    for _ in shot.read():
        pass
    return shot.reading.motion


def key(armature, name, **values):
    """Keys of *Pace* or *Turn* that hold, {"at120": value}."""
    commands = armature.data.poise_walk
    for frame, value in values.items():
        setattr(commands, name, value)
        commands.keyframe_insert(name, frame=int(frame.removeprefix("at")))
    for curve in compat.curves(*compat.assigned(armature.data)):
        for point in curve.keyframe_points:
            point.interpolation = "CONSTANT"


def test_pace_and_turn_are_commands_where_they_are_keyed(registered, walker):
    assert read(walker).walk.commands == ()
    key(walker, "pace", at100=0.8, at220=1.1)
    key(walker, "turn", at100=0.0, at160=np.pi / 2)
    motion = read(walker)
    speed = motion.walk.cycle.length / motion.walk.cycle.period * motion.rate
    found = [(one.at, one.speed, one.heading) for one in motion.walk.commands]
    wanted = [(0, 0.8, 0), (1.0, 0.8, np.pi / 2), (2.0, 1.1, np.pi / 2)]
    assert np.array(found) == pytest.approx(np.array(wanted) * [1, speed, 1], abs=1e-5)
    root = motion.positions[:, 0, :2]
    first, last = root[30] - root[0], root[-1] - root[-90]
    turned = np.angle(complex(*last) / complex(*first))
    assert turned == pytest.approx(np.pi / 2, abs=0.1), "counter-clockwise from above"


def test_who_is_paced_to_nothing_stands(registered, walker):
    key(walker, "pace", at100=0.3, at160=0.0, at300=0.2, at400=1.0)
    walk = read(walker).walk
    speed = walk.speed(60.0)
    first, stands, again = walk.commands
    assert first.speed == pytest.approx(0.5 * speed), "none walk slower"
    assert (stands.at, stands.speed, stands.stands) == (1.0, None, True)
    assert again.at == pytest.approx(5.0) and again.speed == pytest.approx(speed)
    assert not again.stands


def test_sideways_is_keyed_as_well(registered, walker):
    key(walker, "pace", at100=1.0, at220=0.0)
    key(walker, "sideways", at100=0.0, at160=0.3, at280=-0.1, at340=0.0)
    first, aside, spot, right, stands = read(walker).walk.commands
    assert (first.aside, first.stands) == (0.0, False)
    assert aside.at == pytest.approx(1.0) and aside.aside == pytest.approx(0.3, abs=1e-6)
    assert (spot.stands, spot.aside) == (True, aside.aside), "steps on the spot"
    assert right.stands and right.aside == pytest.approx(-0.1)
    assert (stands.stands, stands.aside) == (True, 0.0)


def test_a_curve_and_commands_do_not_lead_together(registered, walker):
    walker.data.poise_walk.turn = 1.0
    with pytest.raises(SettingsError, match="'Path' leads the walk, and so do its Pace, Turn and"):
        read(walker, heading="Path")
    assert read(walker).walk.commands[0].heading == pytest.approx(1.0)


@pytest.mark.slow(captured=False)
def test_a_commanded_walk_is_baked_exactly_and_told(registered, walker):
    key(walker, "turn", at108=0.0, at150=-0.7)
    walker.data.poise_walk.pace = 0.9
    shot = performed(ShotOptions(walk=WalkOptions(7.0)))
    assert shot.recording.success and shot.compared == "commanded"
    assert shot.bake().error_mm < 0.02
    report = shot.report()
    *_, last = report["commands"]
    assert last["heading"] == pytest.approx(np.degrees(-0.7), abs=0.01)
    assert last["reached_heading"] == pytest.approx(last["heading"], abs=5)
    assert last["reached_speed"] == pytest.approx(last["speed"], rel=0.1)
    assert report["units"]["reached_heading"] == "°" and report["units"]["at"] == "s"
    assert performed(ShotOptions()).report()["commands"] == []


def test_changed_commands_ask_to_simulate_again(registered, walker):
    scene = bpy.context.scene

    def now(walk):
        return outdated.settings_of(scene, walker, ShotOptions(walk=walk))

    for walk, told in ((WalkOptions(5.0), ["Locomotion"]), (None, [])):
        before = now(walk)
        walker.data.poise_walk.pace += 0.05
        assert outdated.changed(before, now(walk)) == told


@pytest.mark.slow(captured=False)
def test_the_command_line_walks_by_a_script(registered, walker, tmp_path, capsys):
    path, report, script = save(tmp_path), tmp_path / "report.json", tmp_path / "take.json"
    commands = [{"at": 0, "speed": 0.9}, {"at": 1, "heading": 45}, {"at": 7, "skill": "stand"}]
    script.write_text(json.dumps({"version": 1, "seconds": 14, "commands": commands}))
    assert poise("simulate", path, "--script", script, "--report", report) == 0
    told = capsys.readouterr().err
    assert re.search(r"At 1 s 0\.90 m/s, 45°: 0\.\d\d m/s, 4\d°, (after \d+ steps|not as)", told)
    assert re.search(r"At 7 s stand: 0\.0\d m/s, on its feet, after \d steps\.", told), told
    content = json.loads(report.read_text())
    assert [one["heading"] for one in content["commands"]] == pytest.approx([0, 45, 45])
    assert content["commands"][1]["reached_heading"] == pytest.approx(45, abs=6)
    first, last = content["range"]
    assert last - first == 840
    stands = content["commands"][2]
    assert stands["speed"] == 0 and stands["reached_heading"] is None
    assert poise("simulate", path, "--script", script, "--walk", "5") == 2
    assert "--walk is not allowed with --script" in capsys.readouterr().err
    script.write_text('{"version": 1, "seconds": 6, "commands": [{"at": 0, "skill": "jump"}]}')
    assert poise("simulate", path, "--script", script) == 1
    error = capsys.readouterr().err
    assert "has the skill 'jump', which is not known: use stand, walk" in error

# SPDX-License-Identifier: GPL-3.0-or-later
"""Several armatures simulated together: from the window, and from the command line."""

import json
import re

import bpy
import numpy as np
import pytest
from helpers.commands import listing, poise, save

from poise.addon.baking import bake
from poise.addon.blender import compat, session
from poise.addon.example import character as figure
from poise.addon.example.figure import build_armature, build_body
from poise.addon.jobs.job import TogetherJob
from poise.addon.operators.simulate import others_of
from poise.addon.overlays import overlay
from poise.addon.rigs import sampling
from poise.addon.scene import bodies
from poise.addon.scene.pushes import PushOptions
from poise.addon.scene.walks import WalkOptions
from poise.addon.settings.properties import shot_options
from poise.addon.shots.cast import Cast
from poise.addon.shots.shot import Shot, ShotOptions
from poise.controller.exceptions import PoiseError

pytestmark = pytest.mark.usefixtures("registered")

LAST = 60
STANCE = ((0, 0, -0.03), (2, 0, 2, 0), ((0.03, -0.12, 0), 0), ((0.02, 0.14, 0), 0))
APART = 0.6  # [m]


def character(name, last=LAST):
    """A figure of that name that stands, to frame `last`."""
    made = build_armature(name, figure.bones())
    build_body(made, figure.HEIGHT)
    compat.assign(made, *compat.new_action(f"{name} stands"))
    for frame in (1, last):
        figure.key(made, frame, *STANCE, (0, 0, 0), 10)
    return made


@pytest.fixture
def pair(blender):
    """Anna, who looks along -y, and Ben in front of her, who looks at her; Anna is pushed."""
    scene = bpy.context.scene
    scene.render.fps, scene.render.fps_base, scene.frame_end = 30, 1.0, LAST
    anna, ben = character("Anna"), character("Ben")
    ben.location, ben.rotation_euler.z = (0, -APART, 0), np.pi
    push = scene.poise.pushes.items.add()
    push.name, push.frame, push.strength = "shove", 20, 450.0
    push.azimuth = -np.pi / 2
    bpy.context.view_layer.update()
    for one in (anna, ben):
        one.select_set(True)
    bpy.context.view_layer.objects.active = anna
    return anna, ben


def simulated(*names, **options):
    """A Cast of these names, simulated to the end."""
    cast = Cast(bpy.context.scene, ShotOptions(armature=names[0], **options), names[1:])
    for shot in cast.shots:
        sampling.run(cast.reading(shot))
        shot.prepare()
    for _ in cast.simulate():
        pass
    return cast


@pytest.mark.slow(captured=False)
def test_who_is_shoved_shoves_the_other_who_feels_as_much(pair):
    anna, ben = simulated("Anna", "Ben").shots
    impulses = []
    for shot, other in ((anna, "Ben"), (ben, "Anna")):
        report = shot.report()
        assert report["met"] == [other] and report["hits"], "they have met"
        assert {hit["by"] for hit in report["hits"]} == {other}
        total = shot.recording.blows[..., :3].sum((0, 1)) / shot.recording.motion.rate
        impulses.append(total)
    assert np.abs(impulses[0]).max() > 20, "N s"
    assert np.allclose(*impulses * np.array([[1], [-1]]), atol=1e-6)
    assert not ben.recording.scenario.pushes, "a push that names nobody is the first one's"
    alone = Shot(bpy.context.scene, ShotOptions(armature="Ben"))
    sampling.run(alone.read())
    alone.prepare()
    assert alone.simulation.scenario.pushes, "and whoever's is simulated alone"


@pytest.mark.slow(captured=False)
def test_a_push_is_on_whom_it_names(pair):
    bpy.context.scene.poise.pushes.items[0].whom = pair[1]
    anna, ben = simulated("Anna", "Ben").shots
    assert not anna.recording.scenario.pushes and len(ben.recording.scenario.pushes) == 1


@pytest.mark.slow(captured=False)
def test_frames_are_those_of_all(pair):
    character("Cara", last=LAST + 15).location = (3, 0, 0)
    cast = simulated("Anna", "Cara")
    for shot in cast.shots:
        assert (shot.reading.frames[0], shot.reading.frames[-1]) == (1, LAST + 15)
        assert len(shot.recording) == LAST + 15
    assert "nothing moves from 60 to 75" in cast.shots[0].notes[0]


def test_colliders_among_them_are_simulated_and_no_colliders(pair):
    pair[1].poise.role = "COLLIDER"
    for thing in bpy.data.objects:
        if thing.type == "MESH":
            thing.poise.role = "COLLIDER"
    bpy.context.scene.poise.pushes.items.clear()
    for shot in simulated("Anna", "Ben", frames=(1, 10)).shots:
        assert not shot.recording.scenario.limbs


def test_what_cannot_share_a_world_is_refused(pair):
    with pytest.raises(PoiseError, match="'Ben' is named twice among those"):
        Cast(bpy.context.scene, ShotOptions(armature="Anna"), ("Ben", "Ben"))
    with pytest.raises(PoiseError, match="no armature 'Zoe': choose one of"):
        Cast(bpy.context.scene, ShotOptions(armature="Anna"), ("Zoe",))
    pair[1].scale = (0.01, 0.01, 0.01)
    with pytest.raises(PoiseError, match=r"1 m for 'Anna' and .* m for 'Ben': give it in Unit"):
        simulated("Anna", "Ben")
    pair[1].scale = (1, 1, 1)
    pair[1].location *= 0.1
    with pytest.raises(PoiseError, match=r"cm inside of the .* at its start: move them apart"):
        simulated("Anna", "Ben")


def test_the_window_simulates_and_bakes_all_that_are_selected(pair):
    anna, ben = pair
    scene, context = bpy.context.scene, bpy.context
    assert others_of(context, anna) == ("Ben",)
    assert bpy.ops.poise.simulate_together() == {"FINISHED"}
    for one, other in ((anna, "Ben"), (ben, "Anna")):
        result = session.result_of(scene, one)
        assert len(result.recording) == LAST and result.shot.options.together == (other,)
    assert len(overlay.ghosts(scene)) == 2
    assert bpy.ops.poise.bake() == {"FINISHED"}
    for one in pair:
        result = session.result_of(scene, one)
        baked = result.shot.baked
        assert baked.error_mm < 0.5 and result.shot.measures
        assert compat.assigned(one)[0].name == baked.action
    names = {session.result_of(scene, one).shot.baked.action for one in pair}
    assert len(names) == 2
    # Simulated anew and alone, one is baked alone.
    bake.restore(scene, anna)
    assert bpy.ops.poise.simulate() == {"FINISHED"}
    assert bpy.ops.poise.bake() == {"FINISHED"}
    assert session.result_of(scene, ben).shot.baked.action in names


def test_the_job_shows_all_of_them_and_stops_without_a_trace(pair):
    scene, anna = bpy.context.scene, pair[0]
    job = TogetherJob(scene, shot_options(bpy.context, anna), ("Ben",), lambda _one: None)
    job.start()
    while len(job.ghosts()) < 2 or job.ghosts()[0][1] < 5:
        assert not job.step(0.01)
    assert [shot.armature.name for shot, _ in overlay.ghosts(scene)] == ["Anna", "Ben"]
    assert job.doing == "simulating together" and 0 < job.progress < 1
    job.cancel()
    assert session.job() is None and not session.results_in(scene)


def test_one_alone_is_not_offered_together(pair):
    pair[1].select_set(False)
    assert not bpy.ops.poise.simulate_together.poll()
    pair[1].select_set(True)
    assert bpy.ops.poise.simulate_together.poll()
    pair[1].animation_data_clear()
    assert bpy.ops.poise.simulate_together.poll(), "who has no keys stands there"
    bpy.context.view_layer.objects.active = pair[1]
    bpy.context.scene.poise.armature = pair[0]
    bpy.ops.object.mode_set(mode="EDIT")
    assert not bpy.ops.poise.simulate_together.poll()
    bpy.ops.object.mode_set(mode="OBJECT")


@pytest.mark.slow(captured=False)
@pytest.mark.parametrize("keys", [0, 1])
def test_who_has_no_animation_stands_there_and_is_baked(pair, keys):
    ben = pair[1]
    ben.animation_data_clear()
    for bone in list(ben.pose.bones)[: 3 * keys]:
        bone.keyframe_insert("rotation_quaternion", frame=1)
    cast = simulated("Anna", "Ben")
    recording = cast.shots[1].recording
    assert len(recording) == LAST and recording.hits() and recording.com[-1, 1] < -APART - 0.05
    for shot in cast.shots:
        shot.bake()
        sampling.run(shot.measure())
        assert shot.baked.error_mm < 0.5
    assert compat.assigned(ben)[0].name == cast.shots[1].baked.action


@pytest.mark.slow(captured=False)
def test_who_is_with_a_walk_has_as_many_frames(pair, import_clip):
    walker = import_clip("walk")
    pair[1].location = (5, 5, 0)
    bpy.context.scene.poise.pushes.items.clear()
    cast = simulated(walker.name, "Ben", walk=WalkOptions(seconds=3.0))
    walk, ben = (shot.recording for shot in cast.shots)
    assert len(walk) == len(ben) and walk.motion.duration == pytest.approx(3.0, abs=0.05)
    assert walk.motion.frame(0) == ben.motion.frame(0)


def test_pushes_of_the_scene_are_left_out_for_all(pair):
    bpy.context.scene.poise.pushes.items[0].whom = pair[1]
    for shot in simulated("Anna", "Ben", pushes=PushOptions(ignore=True), frames=(1, 30)).shots:
        assert not shot.recording.scenario.pushes


def test_who_is_carried_by_another_is_no_body_of_its_own(pair):
    pair[1].parent = pair[0]
    with pytest.raises(PoiseError, match="'Ben' is parented to 'Anna', and so carried"):
        Cast(bpy.context.scene, ShotOptions(armature="Anna"), ("Ben",))
    pair[1].parent = None
    pair[1].data.poise_weights.arms = 0.5
    with pytest.raises(PoiseError, match="Parts of 'Ben' follow the animation"):
        simulated("Anna", "Ben")


def test_floors_that_differ_are_told(pair):
    pair[1].location.z = 0.3
    (told,) = simulated("Anna", "Ben", frames=(1, 40)).notes
    assert re.fullmatch(r"'Ben' stands on a floor of its own, \+0\.(29|30) m from .*'Anna'\.", told)


@pytest.mark.slow(captured=False)
def test_the_command_bakes_all_of_them_and_reports_each(pair, tmp_path, capsys):
    shot, report = save(tmp_path), tmp_path / "report.json"
    arguments = ("--armature", "Anna", "--together", "Ben", "--report", report)
    assert poise("bake", shot, *arguments) in (0, 3)
    told = capsys.readouterr().err
    assert "'Anna':" in told and "'Ben':" in told and "times real time" in told
    first = json.loads(report.read_text())
    (second,) = first["together"]
    assert (first["armature"], second["armature"]) == ("Anna", "Ben")
    assert first["met"] == ["Ben"] and second["met"] == ["Anna"]
    assert first["when_it_falls"] == "limp", "who is among others goes on"
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "shot_poise.blend"))
    for one in (first, second):
        armature = bpy.data.objects[one["armature"]]
        assert compat.assigned(armature)[0].name == one["baked_action"]
        assert one["bake_error"] < 0.5


def test_a_crowd_is_told_beforehand(pair):
    assert not bodies.slowness_together(2, 5.0, 300.0)
    assert "20 characters of 10 s: it will take about" in bodies.slowness_together(20, 10.0, 300.0)


def test_the_command_tells_it_before_it_begins(pair, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(bodies, "_LONG_TOGETHER", 1.0)

    def begin(_cast):
        raise PoiseError("It has begun.")

    monkeypatch.setattr(Cast, "simulate", begin)
    given = ("--armature", "Anna", "--together", "Ben")
    assert poise("simulate", save(tmp_path), *given) == 1
    told = capsys.readouterr().err
    beforehand = bodies.slowness_together(2, (LAST - 1) / 30, 300.0)
    assert beforehand and told.index(beforehand) < told.index("It has begun.")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--method", "auto"), "--together is by balance alone"),
        (("--strip", "a.svg"), "--strip is of one character"),
        (("--optimize", "2"), "--optimize is of one character"),
    ],
)
def test_what_is_of_one_alone_is_no_part_of_it(pair, tmp_path, capsys, arguments, words):
    shot = save(tmp_path)
    before = listing(tmp_path)
    assert poise("bake", shot, "--armature", "Anna", "--together", "Ben", *arguments) == 2
    assert words in capsys.readouterr().err and listing(tmp_path) == before


@pytest.mark.slow(captured=False)
def test_a_hand_holds_on_to_another_character(pair, tmp_path, capsys):
    scene = bpy.context.scene
    scene.poise.pushes.items.clear()
    empty = bpy.data.objects.new("grip", None)
    scene.collection.objects.link(empty)
    hold = empty.poise_hold
    hold.armature, hold.limb, hold.to, hold.holder = pair[0], "LEFT_HAND", "OBJECT", pair[1]
    hold.first, hold.last = 5, 50
    pair[1].location.y = -0.4
    cast = simulated("Anna", "Ben")
    (told,) = cast.shots[0].report()["holds"]
    assert told["to"] == "Ben" and told["broke"] is None
    assert not cast.shots[1].report()["holds"]
    alone = Shot(scene, ShotOptions(armature="Anna"))
    with pytest.raises(PoiseError, match="is to 'Ben', who is not simulated together"):
        sampling.run(alone.read())
    scene.collection.objects.unlink(empty)
    bpy.context.view_layer.update()
    report = tmp_path / "report.json"
    arguments = ("--armature", "Anna", "--together", "Ben", "--hold", "left_hand@5-50:Ben")
    assert poise("simulate", save(tmp_path), *arguments, "--report", report) == 0
    assert json.loads(report.read_text())["holds"][0]["to"] == "Ben"
    assert "left hand" in capsys.readouterr().err

# SPDX-License-Identifier: GPL-3.0-or-later
"""Playing a character: the job turned by hand, the operator with a stand-in for the window, and
what is kept. The real window is driven by tests/gui."""

import json
from math import radians
from types import SimpleNamespace

import bpy
import numpy as np
import pytest
from helpers.commands import poise, save
from helpers.jobs import finish, step_until
from mathutils import Euler

from poise.addon.blender import session
from poise.addon.jobs import play_job
from poise.addon.jobs.job import InspectJob
from poise.addon.jobs.play_job import PlayJob
from poise.addon.overlays import overlay, play_marks
from poise.addon.settings import properties, takes
from poise.addon.shots import outdated
from poise.addon.staging import play as operators
from poise.controller.exceptions import PoiseError
from poise.controller.reference.commands import Script
from poise.controller.simulation.play import Play
from poise.controller.skills.skill_set import Pace, Skill, SkillSet

pytestmark = pytest.mark.usefixtures("registered")


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes on by a little more than a sample whenever somebody looks at it."""
    now = SimpleNamespace(time=0.0)

    def tick():
        now.time += 0.02
        return now.time

    monkeypatch.setattr(play_job, "perf_counter", tick)
    return now


@pytest.fixture
def armature(import_clip, monkeypatch):
    """A walk; commands wait as long on every machine."""
    monkeypatch.setattr(Play, "_learn_delay", lambda self, _: setattr(self, "_delay", 6))
    return import_clip("walk")


@pytest.fixture
def job(armature, clock):
    """One that is being played."""
    found = PlayJob(bpy.context.scene, properties.shot_options(bpy.context, armature))
    found.start()
    step_until(found, lambda: found.is_played and found.play.sample > 0)
    yield found
    if session.job() is found:
        found.cancel()


def go_on(job, samples):
    last = job.play.sample + samples
    step_until(job, lambda: job.play.sample >= last)


@pytest.mark.slow(captured=False)
@pytest.mark.once
def test_what_was_played_is_the_result_to_the_last_bit(job, armature):
    job.play.wants(stands=False)
    go_on(job, 200)
    job.play.wants(heading=0.5)
    go_on(job, 100)
    actions = len(bpy.data.actions)
    job.keep()
    finish(job)
    shot = session.result_of(bpy.context.scene, armature).shot
    seen = np.array(job.play.centres)
    assert len(shot.recording) == len(seen) and shot.recording.success
    assert (shot.recording.body_positions == seen).all()
    assert len(bpy.data.actions) == actions, "nothing in the scene changes"
    walk = shot.options.walk
    assert walk.played and len(walk.commands) == 3
    assert operators.played(bpy.context) == walk
    assert shot.bake().error_mm < 0.05


def test_a_take_does_not_depend_on_the_panel_locomotion(job, armature):
    go_on(job, 40)
    job.keep()
    finish(job)
    scene = bpy.context.scene
    settings = session.result_of(scene, armature).settings
    scene.poise.walk.enabled, scene.poise.walk.seconds = True, 33.0

    def changed():
        options = properties.shot_options(bpy.context, armature)
        return outdated.changed(settings, outdated.settings_of(scene, armature, options))

    assert changed() == []
    scene.render.fps = 48
    assert "Frame Rate" in changed()


@pytest.mark.slow(captured=False)
def test_who_pauses_stands_still_and_who_goes_back_waits(job):
    job.play.wants(stands=False)
    go_on(job, 150)
    job.paused = True
    sample = job.play.sample
    for _ in range(50):
        job.step(0.005)
    assert job.play.sample == sample
    shown = job.shown
    job.rewind(1.0)
    assert job.shown is not shown, "what was drawn of it is not what is to come"
    back = sample - round(job.play.rate)
    step_until(job, lambda: job.play.sample >= back)
    for _ in range(50):
        job.step(0.005)
    assert job.play.sample == back and job.paused


@pytest.mark.slow(captured=False)
@pytest.mark.once
def test_three_seconds_back_are_three_seconds(job):
    job.play.wants(stands=False)
    go_on(job, 280)
    sample, rate = job.play.sample, job.play.rate
    for _ in range(3):
        job.rewind(1.0)
    assert job.goes_back, "and nothing leads it on its way"
    step_until(job, lambda: not job.goes_back)
    assert job.play.sample == sample - round(3 * rate)
    job.rewind(1.0)
    job.keep()
    finish(job)
    assert len(job.shot.recording) == 1 + sample - round(4 * rate), "to where it went back to"
    assert not job.differs


@pytest.mark.slow(captured=False)
def test_a_take_of_a_scene_that_was_changed_says_so(job, armature):
    job.play.wants(stands=False)
    go_on(job, 60)
    armature.location.x += 1.0
    job.keep()
    finish(job)
    assert job.differs


@pytest.fixture
def pushed_over(armature, clock):
    """What pushes over one that is played, with When It Falls and Get Up as given."""

    def push(falls, gets_up=False):
        settings = bpy.context.scene.poise
        settings.when_it_falls, settings.get_up = falls, gets_up
        job = PlayJob(bpy.context.scene, properties.shot_options(bpy.context, armature))
        job.start()
        step_until(job, lambda: job.is_played and job.play.sample > 30)
        job.play.push(700.0, 0.0, 0.4)
        step_until(job, lambda: job.play.fell or job.play.is_down)
        return job

    return push


def test_it_ends_where_it_falls_if_it_is_to_stop_there(pushed_over, armature):
    job = pushed_over("STOP")
    assert job.play.fell and not job.play.goes_on
    assert play_marks.lines(job)[-1].startswith("It fell: Backspace goes back")
    job.keep()
    finish(job)
    recording = job.shot.recording
    assert not recording.success and not job.differs
    assert recording.fell_at == pytest.approx(job.play.seconds, abs=0.3)
    scene, options = bpy.context.scene, properties.shot_options(bpy.context, armature)
    settings = session.result_of(scene, armature).settings
    assert outdated.changed(settings, outdated.settings_of(scene, armature, options)) == []


@pytest.mark.slow(captured=False)
def test_it_falls_and_lies_as_it_is_to(pushed_over):
    """Told what it will do all the same; the take is the same to the last bit, and says when it
    lost its balance."""
    job = pushed_over("LIMP")
    play = job.play
    assert play.goes_on and not play.rises
    assert play_marks.lines(job)[-1].startswith("It lies: Backspace goes back")
    lost = play.seconds
    play.wants(stands=False)
    assert play_marks.marks(job)[0] is None, "it heads nowhere"
    step_until(job, lambda: play.seconds > lost + 2)
    assert play.centres[-1][0, 2] < 0.4
    job.keep()
    finish(job)
    recording = job.shot.recording
    assert recording.filled and recording.fell_at == pytest.approx(lost, abs=0.05)
    assert (recording.body_positions == np.array(play.centres)).all()


def test_it_says_that_it_gets_up(pushed_over):
    job = pushed_over("BRACE", gets_up=True)
    assert job.play.rises
    assert play_marks.lines(job)[-1] == "It is down: once it has got up it goes on as it is told"
    job.cancel()


def test_the_mouse_pulls_by_a_spring_that_the_take_knows(job):
    go_on(job, 30)
    centre = job.play.centres[-1][0]
    job.pull = "pelvis", centre + [0.0, 0.1, 0.5]
    assert job.force() == pytest.approx([0.0, 40.0, 0.0])
    job.pull = "pelvis", centre + [3.0, 0.0, 0.0]
    assert np.linalg.norm(job.force()) == pytest.approx(200.0), "as hard as it gets"
    job.pull = "pelvis", centre + [0.0, 0.1, 0.0]
    first = job.play.sample
    go_on(job, 12)
    pulled, job.pull = job.play.sample - first, None
    go_on(job, 10)
    pushes = [one.push for one in job.play.commands if one.push]
    assert len(pushes) == -(-pulled // 3), "a new one every three samples"
    assert {one.segment for one in pushes} == {"pelvis"}
    assert 5.0 < pushes[0].newtons < 60.0
    assert all(one.seconds == pytest.approx(3 / job.play.rate) for one in pushes)


def test_who_walks_on_is_pulled_as_far_as_the_mouse_is_in_a_view_that_follows(job):
    """However seldom that is drawn."""
    go_on(job, 30)
    job.drawn = job.play.centres[-1][0]
    job.pull = "pelvis", job.drawn + [0.0, 0.1, 0.0]
    job.play.wants(stands=False)
    for _ in range(120):
        job.play.advance()
        assert job.force() == pytest.approx([0.0, 40.0, 0.0])
    assert np.linalg.norm(job.play.centres[-1][0] - job.drawn) > 0.1, "it has walked on"


def test_the_ghost_and_the_figures_show_who_is_played(job, armature):
    go_on(job, 20)
    ((shown, sample),) = overlay.ghosts(bpy.context.scene)
    assert shown is job.shown and sample == job.play.sample
    palette = overlay.colours_of_ghosts()
    points, _, _ = overlay.posed(shown, sample, np.zeros(3), palette)
    assert np.linalg.norm(points.mean(0) - job.play.centres[-1].mean(0)) < 0.4
    assert overlay.recorded(bpy.context.scene) == [], "marks need what only a recording has"
    heading, pull = play_marks.marks(job)
    assert heading is None and pull is None
    job.play.wants(stands=False, heading=0.0)
    (tail, tip), _ = play_marks.marks(job)
    along = (tip - tail) / np.linalg.norm(tip - tail)
    assert along == pytest.approx([np.cos(job.play.yaw), np.sin(job.play.yaw), 0.0])
    seconds, told, goes = play_marks.lines(job)
    assert seconds == f"{job.play.seconds:.1f} s"
    assert told == f"Told: {job.play.speed:.2f} m/s, 0°" and goes.startswith("Goes: 0.0")
    job.play.wants(stands=True, aside=-0.2)
    assert play_marks.lines(job)[1] == "Told: on the spot, 0.2 m/s to its right"
    (tail, tip), _ = play_marks.marks(job)
    along = (tip - tail) / np.linalg.norm(tip - tail)
    assert along == pytest.approx([np.sin(job.play.yaw), -np.cos(job.play.yaw), 0.0], abs=1e-6)


@pytest.mark.slow(captured=False)
def test_keys_lead_it(armature, window):
    operator = window.begin(operators.POISE_OT_play)
    job = operator._job
    window.turn_until(operator, lambda: job.is_played)
    play = job.play
    for key, told in (
        ("UP_ARROW", lambda: not play.stands),
        ("DOWN_ARROW", lambda: play.speed == pytest.approx(1.2)),
        ("LEFT_ARROW", lambda: play.heading == pytest.approx(np.radians(15))),
        ("RIGHT_ARROW", lambda: play.heading == pytest.approx(0.0)),
        ("RIGHT_ARROW", lambda: play.heading == pytest.approx(np.radians(-15))),
        ("A", lambda: play.aside == pytest.approx(0.1)),
        ("D", lambda: play.aside == 0),
        ("D", lambda: play.aside == pytest.approx(-0.1)),
        ("SPACE", lambda: play.stands and play.aside == 0),
        ("A", lambda: play.stands and play.aside == pytest.approx(0.1)),
        ("SPACE", lambda: play.stands and play.aside == 0),
        ("P", lambda: job.paused),
        ("P", lambda: not job.paused),
    ):
        assert window.send(operator, key) == {"RUNNING_MODAL"}
        assert told(), key
    event = SimpleNamespace(type="LEFT_ARROW", value="PRESS", ctrl=True, shift=False, alt=False)
    event.oskey, event.is_repeat = False, False
    assert not operator._press(window, event), "Ctrl and left is another key"
    event.ctrl, event.is_repeat = False, True
    assert operator._press(window, event) and play.heading < 0, "held down, it counts once"
    assert window.send(operator, "MIDDLEMOUSE") == {"PASS_THROUGH"}, "the view may be turned"
    assert window.send(operator, "X") == {"RUNNING_MODAL"}, "and nothing else happens"
    window.turn_until(operator, lambda: play.sample > 20)
    window.send(operator, "RET")
    while window.send(operator) == {"PASS_THROUGH"}:
        pass
    (row, take) = takes.rows(bpy.context.scene, armature)[0]
    assert take.shot.options.walk.played and row.label == "Take 1"
    assert operator.reports[-1][0] == "INFO" and "kept as 'Take 1'" in operator.reports[-1][1]


@pytest.fixture
def view(window, monkeypatch):
    """A view from behind and above, in which no part of the body is near the mouse."""
    looks = Euler((radians(60), 0.0, 0.0)).to_quaternion()  # along y, and down
    region = SimpleNamespace(type="WINDOW", x=0, y=0, width=800, height=600)
    space = SimpleNamespace(region_3d=SimpleNamespace(view_rotation=looks))
    window.preferences = bpy.context.preferences
    window.area = SimpleNamespace(
        type="VIEW_3D", regions=[region], spaces=SimpleNamespace(active=space)
    )
    monkeypatch.setattr(operators.POISE_OT_play, "_follow", lambda *_: None)
    utils = operators.view3d_utils
    monkeypatch.setattr(utils, "location_3d_to_region_2d", lambda *_: None)


@pytest.mark.slow(captured=False)
@pytest.mark.parametrize("means", ["T", "LEFTMOUSE"])
def test_a_ball_is_thrown_from_where_one_looks_and_baked(armature, window, view, means):
    scene = bpy.context.scene
    scene.poise.walk.ball = 4.0
    operator = window.begin(operators.POISE_OT_play)
    job = operator._job
    window.turn_until(operator, lambda: job.is_played and job.play.sample > 5)
    over = SimpleNamespace(type="UI", x=0, y=0, width=100, height=600)
    window.area.regions.append(over)
    assert window.send(operator, "LEFTMOUSE") == {"RUNNING_MODAL"}
    assert not [one for one in job.play.commands if one.toss], "that was a click on the sidebar"
    window.area.regions.remove(over)
    assert window.send(operator, means) == {"RUNNING_MODAL"}
    (command,) = (one for one in job.play.commands if one.toss)
    assert command.toss.mass == pytest.approx(4.0)
    along = job.play.yaw + command.toss.direction
    assert (np.cos(along), np.sin(along)) == pytest.approx((0.0, 1.0), abs=2e-3)
    window.turn_until(operator, lambda: job.play.sample > 60)
    assert len(job.play.balls) == 1 and not operator.reports
    window.send(operator, "RET")
    while window.send(operator) == {"PASS_THROUGH"}:
        pass
    shot = session.result_of(scene, armature).shot
    assert not job.differs and [one.name for one in shot.recording.scenario.things] == ["Ball"]
    shot.bake()
    (name,) = shot.baked_objects
    end = len(shot.recording) - 1
    scene.frame_set(round(shot.reading.motion.frame(end)))
    there = scene.objects[name].matrix_world.translation * shot.reading.metres_per_unit
    last = shot.recording.thing_positions[end, 0]
    assert tuple(there) == pytest.approx(last, abs=1e-3)


@pytest.fixture
def curve():
    """A curve as Heading, two metres to the left and then back."""
    data = bpy.data.curves.new("Path", "CURVE")
    spline = data.splines.new("POLY")
    spline.points.add(2)
    for point, place in zip(spline.points, ((0, 0), (0, 2), (-3, 2)), strict=True):
        point.co = (*place, 0, 1)
    thing = bpy.data.objects.new("Path", data)
    bpy.context.scene.collection.objects.link(thing)
    bpy.context.scene.poise.walk.heading = thing
    yield thing
    bpy.context.scene.poise.walk.heading = None


@pytest.mark.parametrize("leads", ["curve", "object", "nothing"])
def test_a_key_sends_it_along_the_curve_or_to_what_is_selected(armature, window, curve, leads):
    scene = bpy.context.scene
    scene.poise.ghost = "OVER"
    if leads != "curve":
        scene.poise.walk.heading = None
    mark = bpy.data.objects.new("Mark", None)
    mark.location = (1.0, -2.0, 7.0)
    scene.collection.objects.link(mark)
    bpy.context.view_layer.update()
    window.selected_objects = [armature, mark] if leads == "object" else [armature]
    operator = window.begin(operators.POISE_OT_play)
    window.turn_until(operator, lambda: operator._job.is_played)
    play, unit = operator._job.play, operator._job.shot.reading.metres_per_unit
    assert window.send(operator, "G") == {"RUNNING_MODAL"}
    if leads == "nothing":
        assert play.goal is None
        assert "choose a curve as Heading, or select an object" in operator.reports[-1][1]
    else:
        places = [(0, 0), (0, 2), (-3, 2)] if leads == "curve" else [(1, -2)]
        assert np.array([play.goal, *play._way]) == pytest.approx(unit * np.array(places))
    window.send(operator, "ESC")


def test_esc_keeps_nothing(armature, window):
    operator = window.begin(operators.POISE_OT_play)
    job = operator._job
    window.turn_until(operator, lambda: job.is_played)
    assert window.send(operator, "ESC") == {"CANCELLED"}
    assert session.job() is None and window.status is None and window.timers == []
    assert session.result_of(bpy.context.scene, armature).shot is None


def test_a_clip_without_a_cycle_says_so(import_clip):
    armature = import_clip("stand")
    job = PlayJob(bpy.context.scene, properties.shot_options(bpy.context, armature))
    job.start()
    with pytest.raises(PoiseError, match="has no cycle to walk on"):
        finish(job)
    assert session.job() is None


def test_who_runs_is_not_played(import_clip):
    armature = import_clip("run")
    job = PlayJob(bpy.context.scene, properties.shot_options(bpy.context, armature))
    job.start()
    with pytest.raises(PoiseError, match=r"'run' flies from step to step, .* choose a walk"):
        finish(job)
    assert session.job() is None


@pytest.mark.slow(captured=False)
@pytest.mark.once
def test_a_script_of_a_take_is_baked_the_same(job, armature, tmp_path):
    job.play.wants(stands=False)
    go_on(job, 100)
    job.keep()
    finish(job)
    script, report = tmp_path / "take.json", tmp_path / "report.json"
    result = bpy.ops.poise.save_script(filepath=str(script))
    assert result == {"FINISHED"} and Script.load(script).played
    seen = session.result_of(bpy.context.scene, armature).shot.recording.com[-1]
    file = save(tmp_path)
    output = tmp_path / "out.blend"
    arguments = ("--script", script, "--output", output, "--report", report)
    assert poise("bake", file, *arguments) == 0
    told = json.loads(report.read_text())
    assert told["success"] and len(told["commands"]) == 2
    assert told["frames"][1] - told["frames"][0] == len(job.play.centres) - 1
    assert np.isfinite(seen).all()


@pytest.fixture
def skills(armature, tmp_path):
    """skills(**changes) names a file of what the armature has learned in the panel -> Skill."""
    settings = bpy.context.scene.poise.walk

    def make(**changes):
        paces = Pace(0.8, 0.7, 2, 0), Pace(1.5, 1.6, 2, 0)
        values = {"height": 1.8, "mass": 70.0, **changes}
        names = {"armature": armature.name, "action": armature.animation_data.action.name}
        skill = Skill(
            **{"name": "walk", "file": "walk.bvh", "digest": "", "reading": {}, "speed": 1.25},
            **{"cycle": (15.0, 78.0), "paces": paces, **names, **values},
        )
        path = tmp_path / "hero.skills"
        SkillSet((skill,), {}, 5.0, 0).save(path)
        settings.skills = str(path)
        return skill

    yield make
    settings.skills = ""


@pytest.mark.slow(captured=False)
def test_skills_say_how_fast_it_is_played(armature, window, skills):
    inspect = InspectJob(bpy.context.scene, properties.shot_options(bpy.context, armature))
    inspect.start()
    finish(inspect)
    body = inspect.shot.character
    skills(height=body.height, mass=body.mass)
    operator = window.begin(operators.POISE_OT_play)
    job = operator._job
    window.turn_until(operator, lambda: job.is_played)
    assert (job.play.slowest, job.play.fastest) == (0.7, 1.6)
    job.play.wants(stands=False, speed=0.7)
    go_on(job, 40)
    walk = job.play.walk
    assert walk.trim == ((0.7, 0.8), (1.6, 1.5))
    assert (job.shot.reading.frames[0], walk.commands[-1].speed) == (15.0, 0.7)
    window.send(operator, "ESC")


def test_skills_of_another_body_or_animation_are_refused(armature, window, skills):
    scene = bpy.context.scene
    skills(action="run")
    with pytest.raises(AssertionError):
        window.begin(operators.POISE_OT_play)
    error = session.result_of(scene, armature).error
    assert "Nothing was learned from 'walk' of 'walk', but from 'run' of 'walk'" in error
    skills(height=1.0)
    operator = window.begin(operators.POISE_OT_play)
    with pytest.raises(AssertionError):
        window.turn_until(operator, lambda: operator._job.is_played)
    assert "was learned by a body of 1.00 m" in session.result_of(scene, armature).error
    scene.poise.walk.skills = "/none.skills"
    with pytest.raises(AssertionError):
        window.begin(operators.POISE_OT_play)
    assert "none.skills' cannot be read" in session.result_of(scene, armature).error

# SPDX-License-Identifier: GPL-3.0-or-later
"""Acts: actions that are marked as such, performed by who is played, or walks by a script, learned
from clips of their own."""

import json
import re
import shutil

import bpy
import pytest
from helpers.commands import poise, save
from helpers.jobs import step_until

from poise.addon.blender import compat
from poise.addon.jobs.play_job import PlayJob
from poise.addon.overlays import play_marks
from poise.addon.scene.marked import ACTS, GET_UPS
from poise.addon.scene.walks import WalkOptions
from poise.addon.settings import properties
from poise.addon.shots import outdated
from poise.addon.shots.shot import ShotOptions
from poise.addon.staging import marked, walks_panel
from poise.addon.staging import play as operators
from poise.controller.exceptions import SettingsError
from poise.controller.reference.commands import Command
from poise.controller.simulation.play import Play
from poise.controller.skills import learning
from poise.controller.skills.skill_set import SkillSet

pytestmark = pytest.mark.usefixtures("registered")

NAME = "breathe"
SCRIPT = {
    "version": 1,
    "seconds": 14,
    "commands": [{"at": 0, "skill": "stand"}, {"at": 1, "skill": NAME, "speed": 0.9}],
}


@pytest.fixture
def armature(import_clip, monkeypatch):
    """An armature that walks, and an action that is marked as an act of it: it stands."""
    monkeypatch.setattr(Play, "_learn_delay", lambda self, _: setattr(self, "_delay", 6))
    other = import_clip("stand")
    action = other.animation_data.action
    action.name = NAME
    action.poise_act = True
    bpy.data.objects.remove(other)
    return import_clip("walk")


# --- The list -------------------------------------------------------------------------------------


def test_acts_are_marked_actions_of_the_armature(armature):
    action = bpy.data.actions[NAME]
    assert action.use_fake_user, "or it would be lost with the file"
    assert ACTS.of(armature) == [action] and GET_UPS.of(armature) == []
    assert bpy.ops.poise.remove_act(action=NAME) == {"FINISHED"} and ACTS.of(armature) == []
    assert bpy.ops.poise.add_act(action=str(action.session_uid)) == {"FINISHED"}
    assert ACTS.of(armature) == [action]
    horse = bpy.data.objects.new("Horse", bpy.data.armatures.new("Horse"))
    assert ACTS.of(horse) == []


def test_what_a_walk_performs_is_asked_for(armature):
    action, own = bpy.data.actions[NAME], armature.animation_data.action
    named = Command(0.0, act=own.name)
    assert WalkOptions(9.0).offered(armature) == []
    assert WalkOptions(9.0, played=True).offered(armature) == [action], "all that are marked"
    assert WalkOptions(9.0, commands=(named,)).performed(armature) == [own], "marked or not"
    assert WalkOptions(9.0, commands=(Command(0.0, act="none"),)).offered(armature) == []
    action.name = "stand"
    with pytest.raises(SettingsError, match="The act 'stand' has the name of what every walker"):
        WalkOptions(9.0, played=True).offered(armature)


def test_the_panel_lists_acts_with_their_keys(armature, draw_panels):
    text = draw_panels((walks_panel.POISE_PT_play,), armature)
    assert f"1  {NAME}" in text and "Add Act" in text


def test_a_change_of_an_act_that_was_performed_asks_to_simulate_again(armature):
    scene, action = bpy.context.scene, bpy.data.actions[NAME]

    def now(*commands):
        options = ShotOptions(walk=WalkOptions(9.0, commands=commands))
        return outdated.in_full(outdated.settings_of(scene, armature, options), armature)

    before, without = now(Command(0.0, act=NAME)), now(Command(0.0, 1.0))
    assert "Acts" in before and "Acts" not in without
    assert not outdated.source_changed(before, armature)
    compat.curves(action, compat.object_slot(action, armature))[3].keyframe_points[1].co.y += 0.1
    assert outdated.source_changed(before, armature)
    assert not outdated.source_changed(without, armature)


# --- By a script ----------------------------------------------------------------------------------


@pytest.mark.once
@pytest.mark.slow(captured=False)
def test_a_script_has_a_walk_perform_actions_of_the_file(armature, tmp_path, capsys):
    path, report, script = save(tmp_path), tmp_path / "report.json", tmp_path / "take.json"
    script.write_text(json.dumps(SCRIPT))
    frame = bpy.context.scene.frame_current
    output = tmp_path / "take.blend"
    command = "bake", path, "--script", script, "--output", output, "--report", report
    assert poise(*command) == 0
    told = capsys.readouterr().err
    assert re.search(rf"At 1 s '{NAME}': from 1\.0 to \d\.\d s, on its feet\.", told), told
    stands, acts = json.loads(report.read_text())["commands"]
    assert (stands["act"], stands["began"], stands["ended"]) == (None, None, None)
    assert (stands["allowed_help"], acts["allowed_help"]) == (None, 0.0)
    assert acts["act"] == NAME and 1.0 <= acts["began"] < acts["ended"] < 12
    assert json.loads(report.read_text())["bake_error"] < 0.05
    bpy.ops.wm.open_mainfile(filepath=str(path))
    assert bpy.context.scene.frame_current == frame


@pytest.mark.once
def test_acts_that_are_not_there_are_told(armature, tmp_path, capsys):
    path, script = save(tmp_path), tmp_path / "take.json"
    script.write_text(json.dumps(SCRIPT).replace(NAME, "sing"))
    assert poise("simulate", path, "--script", script) == 1
    told = "The command at 1 s has the skill 'sing', which is not known: use stand, walk or, of a"
    assert told in capsys.readouterr().err


# --- Learned --------------------------------------------------------------------------------------


@pytest.fixture
def quick(monkeypatch):
    """Tries that simulate nothing: who is to perform `fall` falls, and `helped` without help."""

    def walked(payload, _gains, _seed):
        walk = learning.problem_of(payload).motion.walk
        needs = {"fall": 2.0, "helped": 0.5}
        falls = any(act.outside_help < needs.get(act.name, 0.0) for act in walk.acts)
        return {"reached": None if falls else 0.98 * walk.commands[0].speed}

    walked.__module__ = learning.__name__
    monkeypatch.setattr(learning, "walked", walked)


@pytest.fixture
def folder(armature, tmp_path, standins):
    """A folder with shot.blend, in which somebody walks, and bow.bvh, in which somebody bows."""
    save(tmp_path)
    shutil.copy(standins["bow"].path, tmp_path / "bow.bvh")
    return tmp_path


def learn(folder, *arguments):
    skills = folder / "hero.skills"
    command = "learn", folder / "shot.blend", "--output", skills, "--workers=0", "--overwrite"
    return poise(*command, *arguments)


@pytest.mark.once
@pytest.mark.slow(captured=False)
def test_acts_are_learned_with_the_walk_kept_and_performed(folder, quick, capsys):
    report = folder / "learned.json"
    assert learn(folder, "--act", folder / "bow.bvh", "--report", report) == 0
    assert f"stops and turns, and performs {NAME}, bow." in capsys.readouterr().err
    skills = SkillSet.load(folder / "hero.skills")
    assert skills.skills[0].performs == (NAME, "bow") == tuple(act.name for act in skills.acts)
    content = json.loads(report.read_text())
    assert [one["name"] for one in content["acts"]] == [NAME, "bow"]
    assert content["units"]["lasts"] == "s"
    skills.save(folder / "again.skills")
    assert SkillSet.load(folder / "again.skills") == skills
    (folder / "bow.bvh").unlink()  # what it does is in the skills
    script = folder / "take.json"
    script.write_text(json.dumps(SCRIPT).replace(NAME, "bow"))
    names = folder / "hero.skills", "--script", script, "--output", folder / "take.blend"
    assert poise("direct", *names, "--report", report, "--overwrite") == 0
    *_, bows = json.loads(report.read_text())["commands"]
    assert bows["wanted"]["skill"] == "bow" and bows["ended"] > bows["began"] + 3
    assert bows["allowed_help"] == 0.0
    assert "At 1 s 'bow': from 1.0 to" in capsys.readouterr().err
    script.write_text(json.dumps(SCRIPT).replace(NAME, "sing"))
    assert poise("direct", *names, "--overwrite") == 1
    told = f"performs all of 'sing', as the script commands: 'shot' performs {NAME}, bow. Learn"
    assert told in capsys.readouterr().err


@pytest.mark.once
def test_what_it_falls_by_is_not_kept(folder, quick, capsys):
    (folder / "bow.bvh").rename(folder / "fall.bvh")
    assert learn(folder, "--act", folder / "fall.bvh") == 3
    assert "'fall' cannot be performed: a body falls by it between" in capsys.readouterr().err
    skills = SkillSet.load(folder / "hero.skills")
    assert skills.skills[0].performs == (NAME,) == tuple(act.name for act in skills.acts)


@pytest.mark.once
def test_names_of_acts_mean_one_thing(folder, quick, capsys):
    for name in ("stand", NAME):
        shutil.copy(folder / "bow.bvh", folder / f"{name}.bvh")
        assert learn(folder, "--act", folder / f"{name}.bvh") == 1
        assert f"'{name}' means two things: rename the file, or" in capsys.readouterr().err
    assert learn(folder, "--act", folder / "shot.blend") == 2
    assert "is named twice" in capsys.readouterr().err
    bow = folder / "bow.bvh"
    assert poise("learn", folder / "shot.blend", "--act", bow, "--output", bow) == 2
    assert not (folder / "hero.skills").exists()


@pytest.mark.once
@pytest.mark.slow(captured=False)
def test_what_it_falls_by_is_tried_with_help_and_performed_with_it(folder, quick, capsys):
    (folder / "bow.bvh").rename(folder / "helped.bvh")
    report = folder / "report.json"
    assert learn(folder, "--act", folder / "helped.bvh", "--report", report) == 0
    assert "and performs breathe, helped (helped by up to 50% of the" in capsys.readouterr().err
    (skill,) = json.loads(report.read_text())["skills"]
    assert skill["acts"][1] == {"name": "helped", "outside_help": 0.5}
    skills = SkillSet.load(folder / "hero.skills")
    assert [act.outside_help for act in skills.acts_of(skills.skills[0])] == [0.0, 0.5]
    script = folder / "take.json"
    script.write_text(json.dumps(SCRIPT).replace(NAME, "helped"))
    names = folder / "hero.skills", "--script", script, "--output", folder / "take.blend"
    assert poise("direct", *names, "--report", report, "--overwrite") == 0
    content = json.loads(report.read_text())
    assert content["residual_most"] > 0 and "Help from outside" in capsys.readouterr().err


# --- Played ---------------------------------------------------------------------------------------


@pytest.mark.slow(captured=False)
def test_a_key_has_it_perform_an_act(armature, window):
    operator = window.begin(operators.POISE_OT_play)
    job = operator._job
    window.turn_until(operator, lambda: job.is_played)
    play = job.play
    assert play.acts == (NAME,)
    assert window.send(operator, "TWO") == {"RUNNING_MODAL"}
    assert operator.reports[-1][0] == {"WARNING"} or "no act 2" in operator.reports[-1][1]
    assert not any(one.act for one in play.commands)
    assert window.send(operator, "NUMPAD_1") == {"RUNNING_MODAL"}
    (told,) = (one for one in play.commands if one.act)
    assert told.act == NAME and told.at > play.seconds and play.performs is None
    window.turn_until(operator, lambda: play.seconds > told.at)
    assert play.performs == NAME and f"Performs: {NAME}" in play_marks.lines(job)
    window.turn_until(operator, lambda: play.seconds > told.at + 1.0)
    window.send(operator, "RET")
    while window.send(operator) == {"PASS_THROUGH"}:
        pass
    assert not job.differs, "the take is what was played, to the last bit"
    assert job.shot.recording.followed[-1].began is not None


@pytest.mark.slow(captured=False)
def test_nobody_performs_who_is_down(armature):
    settings = bpy.context.scene.poise
    settings.when_it_falls, settings.get_up = "BRACE", True
    job = PlayJob(bpy.context.scene, properties.shot_options(bpy.context, armature))
    job.start()
    step_until(job, lambda: job.is_played and job.play.sample > 5)
    job.play.push(900.0, 0.0, 0.4)
    step_until(job, lambda: job.play.is_down)
    with pytest.raises(SettingsError, match=f"Nobody performs '{NAME}' who is down"):
        job.play.perform(NAME)
    job.cancel()


def test_what_lists_ask_for_is_told_by_each_operator_itself():
    """Blender looks for `bl_property` in the class alone: without it the search finds nothing."""
    for operator in (marked.POISE_OT_add_act, marked.POISE_OT_add_get_up):
        assert operator.__dict__["bl_property"] == "action"

# SPDX-License-Identifier: GPL-3.0-or-later
"""`poise learn` and `poise direct`: what they write and tell, and what they refuse."""

import json
import re
import shutil

import bpy
import pytest
from helpers.commands import listing, poise, save

from poise.addon.command import command_learn
from poise.controller.exceptions import MotionError
from poise.controller.skills import learning
from poise.controller.skills.skill_set import SkillSet

pytestmark = pytest.mark.once

TAKE = {
    "version": 1,
    "seconds": 8,
    "commands": [
        {"at": 0, "speed": 1.0},
        {"at": 3, "heading": 30},
        {"at": 5, "push": {"part": "chest", "newtons": 40, "direction": 90, "seconds": 0.2}},
    ],
}


@pytest.fixture
def quick(monkeypatch):
    """Tries that simulate nothing: bodies reach 0.98 of what they are told, and fall above 1.2 of
    the clip's own speed, but where they go over to another."""

    def walked(payload, _gains, _seed):
        motion = learning.problem_of(payload).motion
        told, walk = motion.walk.commands[0].speed, motion.walk
        stands = told < 1.25 * walk.speed(motion.rate) or walk.other is not None
        return {"reached": 0.98 * told if stands else None}

    walked.__module__ = learning.__name__
    monkeypatch.setattr(learning, "walked", walked)


@pytest.fixture
def folder(tmp_path, import_clip):
    """A folder with shot.blend, in which an armature walks."""
    import_clip("walk")
    save(tmp_path)
    return tmp_path


@pytest.fixture
def hero(folder, quick):
    """The same with hero.skills."""
    assert learn(folder) == 0
    return folder


def learn(folder, *arguments):
    skills = folder / "hero.skills"
    return poise("learn", folder / "shot.blend", "--output", skills, "--workers=0", *arguments)


def direct(folder, take=TAKE, *arguments):
    (folder / "take.json").write_text(take if isinstance(take, str) else json.dumps(take))
    names = (folder / name for name in ("hero.skills", "take.json", "take.blend"))
    skills, script, output = names
    return poise("direct", skills, "--script", script, "--output", output, *arguments)


# --- What they write and tell ---------------------------------------------------------------------


@pytest.mark.slow(captured=False)
def test_what_was_learned_is_told_and_written(folder, quick, capsys):
    before = (folder / "shot.blend").read_bytes()
    assert learn(folder, "--report", folder / "learned.json") == 0
    told = capsys.readouterr()
    assert len(re.findall(r"shot +\d\.\d\d m/s commanded", told.out)) == 7
    assert "'shot' walks at 0.48 to 1.45 m/s on command, stops and turns." in told.err
    assert "poise direct hero.skills --script take.json" in told.err
    (skill,) = SkillSet.load(folder / "hero.skills").skills
    assert skill.file == "shot.blend", "both can be moved"
    report = json.loads((folder / "learned.json").read_text())
    assert report["skills"][0]["fastest"] == pytest.approx(skill.fastest)
    assert report["units"]["fastest"] == "m/s" and report["noise"] == 5
    assert (folder / "shot.blend").read_bytes() == before
    first = (folder / "hero.skills").read_bytes()
    assert learn(folder, "--overwrite") == 0
    assert (folder / "hero.skills").read_bytes() == first


@pytest.mark.slow(captured=False)
def test_a_script_is_directed_baked_and_reported(hero, capsys):
    moved = hero / "elsewhere"
    moved.mkdir()
    for name in ("shot.blend", "hero.skills"):
        shutil.move(hero / name, moved / name)
    assert direct(moved, TAKE, "--report", moved / "report.json") == 0
    told = capsys.readouterr().err
    assert "It stood to the end." in told and "times real time" in told
    assert re.search(r"At 0 s 1\.00 m/s, 0°: (0\.9|1\.0)\d m/s, .* after \d steps\.", told), told
    report = json.loads((moved / "report.json").read_text())
    assert report["seconds"] == pytest.approx(8) and report["fell_at"] is None
    assert report["skill"] == "shot" and report["bake_error"] < 0.05
    walks = {"at": 0, "frame": report["frames"][0], "name": "walk", "kind": "stationary"}
    assert report["states"] == [walks]
    first, turned, pushed = report["commands"]
    wanted = {"skill": "walk", "speed": 1, "heading": 0, "sideways": 0}
    assert (first["at"], first["wanted"]) == (0, wanted)
    assert first["reached"]["speed"] == pytest.approx(1.0, rel=0.08) and first["steps"] >= 1
    assert turned["wanted"]["heading"] == pytest.approx(30)
    assert pushed["wanted"]["push"] == {
        "part": "trunk",
        "newtons": 40,
        "direction": pytest.approx(90),
        "seconds": 0.2,
    }
    assert pushed["reached"]["heading"] == pytest.approx(30, abs=6)
    (push,) = report["pushes"]
    x, y, z = push["force"]
    assert (x * x + y * y) ** 0.5 == pytest.approx(40) and z == 0
    bpy.ops.wm.open_mainfile(filepath=str(moved / "take.blend"))
    action = bpy.data.actions[report["action"]]
    scene = bpy.context.scene
    assert scene.objects[report["armature"]].animation_data.action == action
    assert [scene.frame_start, scene.frame_end] == report["frames"], "all of it plays"
    start, end = report["frames"]
    assert end - start == 8 * report["fps"] and action.frame_range[1] == end


@pytest.mark.slow(captured=False)
def test_a_push_goes_where_the_script_says_from_where_the_walk_heads(hero):
    """To the left of the walk: the mean of its centre of mass goes there."""
    assert direct(hero, TAKE, "--report", hero / "report.json") == 0
    (push,) = json.loads((hero / "report.json").read_text())["pushes"]
    bpy.ops.wm.open_mainfile(filepath=str(hero / "take.blend"))
    scene, places = bpy.context.scene, []
    for frame in (push["frame"] - 300, push["frame"] - 150):  # before it turns
        scene.frame_set(int(frame))
        rig = scene.objects[0]
        places.append((rig.matrix_world @ rig.pose.bones[0].matrix).translation.copy())
    ahead = (places[1] - places[0]).xy.normalized()
    assert -ahead.y * push["force"][0] + ahead.x * push["force"][1] > 39


@pytest.mark.slow(captured=False)
def test_clips_go_over_to_faster_ones(folder, quick, capsys, import_clip):
    """The second is the same walk at a higher rate, so that it is faster."""
    bpy.context.scene.render.fps = 72
    bpy.ops.wm.save_as_mainfile(filepath=str(folder / "fast.blend"), copy=True)
    skills = folder / "hero.skills"
    clips = folder / "fast.blend", folder / "shot.blend"
    assert poise("learn", *clips, "--output", skills, "--workers=0") == 0
    known = {skill.name: skill for skill in SkillSet.load(skills).skills}
    assert set(known) == {"fast", "shot", "shot to fast"}
    both = known["shot to fast"]
    assert both.file == "shot.blend" and both.other.speed == pytest.approx(1.2 * both.speed, 1e-3)
    assert both.fastest > known["shot"].fastest
    capsys.readouterr()
    take = TAKE | {"commands": [{"at": 0, "speed": 0.8}, {"at": 3, "speed": 1.3}]}
    assert direct(folder, take, "--report", folder / "report.json") == 0
    report = json.loads((folder / "report.json").read_text())
    assert report["skill"] in known and report["bake_error"] < 0.05


@pytest.mark.slow(captured=False)
def test_the_same_take_again(hero):
    found = []
    for _ in range(2):
        report = hero / "report.json"
        assert direct(hero, TAKE, "--report", report, "--overwrite", "--seed=3", "--noise=5") == 0
        content = json.loads(report.read_text())
        found.append([content["commands"], content["tracking_error"], content["verdict"]])
    assert found[0] == found[1]


@pytest.mark.slow(captured=False)
def test_who_falls_as_told_to_ends_with_0(hero):
    shove = {"newtons": 900, "direction": 90, "seconds": 0.3}
    take = TAKE | {"commands": [{"at": 0, "speed": 1.0}, {"at": 3, "push": shove}]}
    report = hero / "report.json"
    assert direct(hero, take, "--when-it-falls=limp", "--report", report) == 0
    content = json.loads(report.read_text())
    assert content["fell_at"] < 5 and content["seconds"] == pytest.approx(8)
    assert [state["name"] for state in content["states"]] == ["walk", "fall"]
    assert content["states"][1]["at"] == pytest.approx(content["fell_at"], abs=0.02)


@pytest.mark.slow(captured=False)
def test_a_clip_whose_feet_come_down_twice_is_learned_alone(folder, quick, capsys, monkeypatch):
    def refuses(_character, motion, _cycle):
        raise MotionError(f"'{motion.name}' cannot be blended")

    monkeypatch.setattr(command_learn.Gait, "of", refuses)
    bpy.ops.wm.save_as_mainfile(filepath=str(folder / "more.blend"), copy=True)
    clips = folder / "shot.blend", folder / "more.blend"
    assert poise("learn", *clips, "--output", folder / "hero.skills", "--workers=0") == 0
    assert "cannot be blended" in capsys.readouterr().err
    names = [one.name for one in SkillSet.load(folder / "hero.skills").skills]
    assert names == ["shot", "more"]


def test_a_budget_keeps_what_is_known_of_each_clip(folder, quick, capsys, monkeypatch):
    """The first is learned; then the budget is over."""
    bpy.ops.wm.save_as_mainfile(filepath=str(folder / "more.blend"), copy=True)
    clock, known = command_learn.time.monotonic, []

    def later():
        return clock() + (1e6 if known else 0.0)

    follow = command_learn._follow

    def noted(learning, name, line, caught):
        follow(learning, name, line, caught)
        known.append(name)

    monkeypatch.setattr(command_learn.time, "monotonic", later)
    monkeypatch.setattr(command_learn, "_follow", noted)
    clips = folder / "shot.blend", folder / "more.blend"
    assert poise("learn", *clips, "--output", folder / "hero.skills", "--workers=0") == 3
    told = capsys.readouterr().err
    assert "The budget was over before" in told and "more.blend' had been walked" in told
    assert [one.name for one in SkillSet.load(folder / "hero.skills").skills] == ["shot"]


@pytest.mark.slow(captured=False)
def test_who_falls_ends_with_3_and_says_when(hero, capsys):
    shove = {"part": "trunk", "newtons": 900, "direction": 90, "seconds": 0.3}
    take = TAKE | {"commands": [{"at": 0, "speed": 1.0}, {"at": 3, "push": shove}]}
    assert direct(hero, take, "--report", hero / "report.json") == 3
    assert "Fell at" in capsys.readouterr().err
    report = json.loads((hero / "report.json").read_text())
    assert 3 < report["fell_at"] < 5 and report["seconds"] == pytest.approx(
        report["fell_at"], abs=0.1
    )
    assert report["commands"][1]["reached"] is None and report["commands"][1]["steps"] is None
    assert (hero / "take.blend").exists()


@pytest.mark.slow(captured=False)
def test_scripts_push_a_baked_walk_too(folder, capsys):
    (folder / "take.json").write_text(json.dumps(TAKE))
    report = folder / "report.json"
    script = folder / "take.json"
    shot, output = folder / "shot.blend", folder / "take.blend"
    assert poise("bake", shot, "--script", script, "--output", output, "--report", report) == 0
    content = json.loads(report.read_text())
    told = f"It goes on to frame {content['frames'][1]:g}, and the scene ends at"
    assert told in capsys.readouterr().err
    assert [push["segment"] for push in content["pushes"]] == ["trunk"]
    assert content["commands"][2]["steps"] >= 1, "it was pushed, and goes on as it went"


# --- What they refuse -----------------------------------------------------------------------------


def refused(folder, capsys, status, *arguments):
    """What is told by a command that refuses, and writes nothing."""
    before = listing(folder)
    assert poise(*arguments) == status
    assert listing(folder) == before
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("commands", "told"),
    [
        ([{"at": 0, "speed": 1.9}], "Nothing was learned that goes at 1.9 m/s"),
        ([{"at": 0, "spede": 1.0}], "has the key 'spede'"),
        ([{"at": 3, "speed": 1.0}, {"at": 2, "speed": 1.0}], "comes after one at 3 s: sort them"),
        ([{"at": -1, "speed": 1.0}], "the command at -1 s comes before the walk: begin at 0 s."),
        ([{"at": 1, "speed": -1.0}], "has -1 as 'speed': speeds are from 0 on"),
        ([{"at": 1, "heading": 1e9}], "has 1000000000.0 as 'heading': give it less than 100000"),
        ([{"at": 1, "skill": "fly"}], "Nothing was learned that performs all of 'fly'"),
        ([{"at": 9, "speed": 1.0}], "lasts 8 s, and its last command is at 9 s"),
    ],
)
def test_scripts_that_cannot_be_followed(hero, capsys, commands, told):
    capsys.readouterr()
    assert direct(hero, TAKE | {"commands": commands}) == 1
    error = capsys.readouterr().err
    assert told in error and "Traceback" not in error
    assert not (hero / "take.blend").exists()


def test_what_was_learned_from_has_to_be_as_it_was(hero, capsys):
    with (hero / "shot.blend").open("ab") as file:
        file.write(b"!")
    assert direct(hero) == 1
    assert "shot.blend', from which 'hero.skills' was learned, was changed since" in (
        capsys.readouterr().err
    )
    (hero / "shot.blend").unlink()
    assert direct(hero) == 1
    assert "is not there: put it back, or learn again" in capsys.readouterr().err
    assert not (hero / "take.blend").exists()


def test_skills_of_another_body_are_not_used(hero, capsys):
    skills = SkillSet.load(hero / "hero.skills")
    object.__setattr__(skills.skills[0], "height", 1.5)
    skills.save(hero / "hero.skills")
    assert direct(hero) == 1
    assert "'shot' was learned by a body of 1.50 m" in capsys.readouterr().err
    assert not (hero / "take.blend").exists()


def test_skills_that_were_changed_are_not_used(hero, capsys):
    path = hero / "hero.skills"
    path.write_text(path.read_text().replace('"fell": 0', '"fell": 1', 1))
    assert direct(hero) == 1
    assert "hero.skills' are not as `poise learn` wrote them" in capsys.readouterr().err


def test_nothing_that_is_read_is_written_to(hero, capsys):
    take, skills, shot = (hero / name for name in ("take.json", "hero.skills", "shot.blend"))
    take.write_text(json.dumps(TAKE))
    common = "direct", skills, "--script", take, "--overwrite"
    for more, told in (
        (("--output", shot), "--output is the shot itself"),
        (("--output", hero / "t.blend", "--report", take), "--report names 'take.json' itself"),
        (("--output", hero / "t.blend", "--report", skills), "--report names 'hero.skills' itself"),
        (("--output", hero / "t.fbx"), "--output is to be a .blend file"),
    ):
        assert told in refused(hero, capsys, 2, *common, *more)
    common = "learn", shot, "--workers=0", "--overwrite"
    for more, told in (
        (("--output", shot), "--output names the clip 'shot.blend'"),
        (("--output", hero / "t.blend"), "--output is no clip"),
        (("--output", take, "--report", take), "--report names the skills themselves"),
        (("--output", take, "--report", shot), "--report names the clip 'shot.blend'"),
    ):
        assert told in refused(hero, capsys, 2, *common, *more)
    assert "exists" in refused(hero, capsys, 1, "learn", shot, "--output", skills)
    twice = refused(hero, capsys, 2, "learn", shot, shot, "--output", hero / "t.skills")
    assert "shot.blend' is named twice" in twice


def test_what_cannot_be_learned_says_why(folder, capsys, monkeypatch, import_clip):
    def falls(_payload, _gains, _seed):
        return {"reached": None}

    falls.__module__ = learning.__name__
    monkeypatch.setattr(learning, "walked", falls)
    assert learn(folder) == 1
    told = "shot.blend' cannot be learned by itself: a body that walks, turns and stops by it falls"
    assert told in capsys.readouterr().err
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    import_clip("wave")
    save(folder)
    before = listing(folder)
    assert learn(folder) == 1
    assert "has no cycle to walk on" in capsys.readouterr().err
    assert listing(folder) == before


def test_clips_that_are_not_there(folder, capsys):
    error = refused(
        folder, capsys, 1, "learn", folder / "gone.bvh", "--output", folder / "hero.skills"
    )
    assert "There is no file" in error and "gone.bvh" in error


@pytest.mark.slow(captured=False)
def test_a_folder_of_scripts_becomes_a_crowd(hero):
    scripts = hero / "takes"
    scripts.mkdir()
    short = {"version": 1, "seconds": 2, "commands": [{"at": 0, "speed": 0.9}]}
    for name, speed in (("anna", 0.9), ("bert", 9.0)):
        content = short | {"commands": [{"at": 0, "speed": speed}]}
        (scripts / f"{name}.json").write_text(json.dumps(content))
    crowd, reports = hero / "crowd", hero / "reports"
    arguments = ("--script", scripts, "--output", crowd, "--report", reports)
    assert poise("direct", hero / "hero.skills", *arguments) == 1
    assert not crowd.exists() and not reports.exists(), "what is wrong is said before"
    (scripts / "bert.json").write_text(json.dumps(short))
    assert poise("direct", hero / "hero.skills", *arguments) == 0
    assert sorted(listing(crowd)) == ["anna.blend", "bert.blend"]
    told = [json.loads((reports / f"{name}.json").read_text()) for name in ("anna", "bert")]
    assert [one["success"] for one in told] == [True, True]
    assert [one["file"] for one in told] == [str(crowd / f"{n}.blend") for n in ("anna", "bert")]
    assert poise("direct", hero / "hero.skills", *arguments) == 1, "nothing is replaced unasked"


def test_an_empty_folder_of_scripts_is_told(hero, capfd):
    (hero / "takes").mkdir()
    arguments = ("--script", hero / "takes", "--output", hero / "crowd")
    assert poise("direct", hero / "hero.skills", *arguments) == 1
    assert "There is no script in" in capfd.readouterr().err
    assert not (hero / "crowd").exists()

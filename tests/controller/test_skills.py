# SPDX-License-Identifier: GPL-3.0-or-later
"""What a character learns to walk by, and the files that keep it."""

import re
from dataclasses import replace

import numpy as np
import pytest

from poise.controller import documents
from poise.controller.exceptions import MotionError, SettingsError
from poise.controller.processes.workers import SerialExecutor
from poise.controller.reference.commands import Command, Script, Strike
from poise.controller.reference.gait import Gait
from poise.controller.skills import learning
from poise.controller.skills.learning import BEYOND, FASTER, SLOWER, TRIES, Learning
from poise.controller.skills.skill_set import Pace, Skill, SkillSet

STRIKES = (Strike(0.2, 1), Strike(0.7, -1))
GAIT = Gait(
    1.7, 0.97, 1.7, STRIKES, ((0.0, 0.0, 1.0),), ((1.0, 0.0, 0.0, 0.0),), ((0.5,),), ((1.0, 0.0),)
)


def skill(name, *speeds, own=1.25, other=None):
    """A Skill that reaches a tenth less than it is told."""
    paces = tuple(Pace(speed / 0.9, speed, 2, 0) for speed in speeds)
    nothing = dict.fromkeys(("scene", "armature", "action"))
    read = f"{name}.bvh", "", nothing, "Rig", name
    return Skill(name, *read, (3, 70), own, 1.8, 70.0, paces, other)


def script(*speeds):
    return Script(60.0, tuple(Command(i, speed) for i, speed in enumerate(speeds)))


WALK, FAST = skill("walk", 0.6, 1.3), skill("fast", 1.0, 1.8, own=1.7)
SKILLS = SkillSet((WALK, FAST), {"poise": "0"}, 5.0, 3)
BOTH = skill("walk to fast", 0.6, 1.8, other=GAIT)


# --- Files ----------------------------------------------------------------------------------------


def test_skills_come_back_as_they_were_saved(tmp_path):
    for known in (replace(SKILLS, skills=(BOTH,)), SKILLS):
        known.save(tmp_path / "hero.skills")
        assert SkillSet.load(tmp_path / "hero.skills") == known
    helped = replace(SKILLS, skills=(replace(BOTH, outside_help=0.25),))
    helped.save(tmp_path / "helped.skills")
    assert SkillSet.load(tmp_path / "helped.skills") == helped
    first = (tmp_path / "hero.skills").read_bytes()
    assert b"acts" not in first and b"outside_help" not in first, (
        "as it was before there were such, and as those are read"
    )
    SKILLS.save(tmp_path / "hero.skills")
    assert (tmp_path / "hero.skills").read_bytes() == first


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda text: text[:-40], "is not JSON"),
        (lambda text: text.replace('"speed": 1.7', '"speed": 1.9'), "are not as `poise learn`"),
        (lambda text: text.replace('"version": 1', '"version": 7'), "of version '7', and this"),
        (lambda _: '{"version": 1, "seconds": 2}', "are none: name a file"),
        (lambda _: "[]", "are none: name a file"),
        (lambda text: text.replace('"seed": 3', '"seed": 3, "more": 1'), "are not as `poise"),
    ],
)
def test_what_is_no_file_of_skills_is_refused(tmp_path, change, told):
    path = tmp_path / "hero.skills"
    SKILLS.save(path)
    changed = change(path.read_text())
    assert changed != path.read_text()
    path.write_text(changed)
    with pytest.raises(SettingsError, match=told):
        SkillSet.load(path)


def test_a_clip_is_found_beside_its_skills_and_only_as_it_was(tmp_path):
    (tmp_path / "walk.bvh").write_text("as captured")
    known = replace(WALK, digest=documents.digest(tmp_path / "walk.bvh"))
    skills = tmp_path / "hero.skills"
    assert known.path(skills) == tmp_path / "walk.bvh"
    assert replace(known, file=str(tmp_path / "walk.bvh")).path(skills) == tmp_path / "walk.bvh"
    (tmp_path / "walk.bvh").write_text("as edited")
    with pytest.raises(SettingsError, match=r"walk\.bvh', from .* was changed since: learn again"):
        known.path(skills)
    (tmp_path / "walk.bvh").unlink()
    with pytest.raises(SettingsError, match="is not there: put it back"):
        known.path(skills)


# --- Which clip -----------------------------------------------------------------------------------


def test_the_skill_is_chosen_that_has_all_speeds_and_is_nearest():
    assert SKILLS.choose(script(0.6, 1.2)) == WALK
    assert SKILLS.choose(script(1.1, 1.75)) == FAST
    assert SKILLS.choose(script(1.05, 1.3)) == WALK
    assert SKILLS.choose(script(1.3, 1.8)) == FAST
    assert SKILLS.choose(Script(9.0, (Command(0.0, heading=1.0),))) == WALK


def test_one_that_goes_over_to_another_is_near_to_all_between():
    known = replace(SKILLS, skills=(WALK, FAST, BOTH))
    assert known.choose(script(0.7, 1.7)) == BOTH
    assert known.choose(script(1.1, 1.2)) == WALK, "a clip alone comes first"
    assert known.choose(script(1.3, 1.6)) == BOTH


def test_a_speed_is_gone_at_that_is_reached_but_for_a_little():
    """The clip's own, of which it comes short by a twentieth."""
    assert SKILLS.choose(script(1.36)) == WALK and SKILLS.choose(script(0.575)) == WALK
    assert SKILLS.choose(script(1.38)) == FAST
    with pytest.raises(SettingsError):
        SKILLS.choose(script(0.56))


def test_speeds_that_no_skill_has_are_refused_with_what_there_is():
    told = (
        "goes at 0.7 m/s and at 1.7 m/s, as the script commands: 'walk' walks at 0.60 to 1.30 m/s"
    )
    with pytest.raises(SettingsError, match=re.escape(told)):
        SKILLS.choose(script(0.7, 1.7))
    with pytest.raises(SettingsError, match=r"goes at 2\.5 m/s"):
        SKILLS.choose(script(2.5))


def test_what_is_told_for_a_speed_is_what_reached_it():
    assert np.interp(1.0, *zip(*WALK.trim, strict=True)) == pytest.approx(1.0 / 0.9)


# --- Learning -------------------------------------------------------------------------------------


@pytest.fixture
def walk(blender, import_clip):
    """(Character, Motion) of the walk."""
    from poise.addon.rigs import reference
    from poise.controller import Character

    motion = reference.read(blender.context.scene, import_clip("walk")).motion
    return Character.from_motion(motion), motion


def learned(walk, monkeypatch, stands, seed=0, other=None):
    """A Learning that is over, and what was tried, [(share of the own speed, seed)]; stands(share,
    number) tells of a try whether it stood. Bodies reach 0.98 of what they are told."""
    tried = []

    def walked(payload, _gains, seed):
        motion = learning.problem_of(payload).motion
        own = motion.walk.speed(motion.rate)
        share = round(motion.walk.commands[0].speed / own, 6)
        tried.append((share, seed))
        number = sum(one == share for one, _ in tried)
        return {"reached": 0.98 * share * own if stands(share, number) else None}

    walked.__module__ = learning.__name__
    monkeypatch.setattr(learning, "walked", walked)
    found = Learning(*walk, None, seed, SerialExecutor(), other=other)
    while not found.poll():
        pass
    return found, tried


def told(found):
    """What was told of a Learning's paces, as shares of the own speed."""
    return [pytest.approx(pace.told / found.speed) for pace in found.paces]


def test_speeds_are_tried_outwards_until_one_falls(walk, monkeypatch):
    found, tried = learned(walk, monkeypatch, lambda share, _: 0.6 < share < 1.25)
    assert found.ended == "done"
    shares = list(dict.fromkeys(share for share, _ in tried))
    assert shares == [1.0, SLOWER[0], FASTER[0], SLOWER[1], FASTER[1], SLOWER[2], FASTER[2]]
    assert told(found) == [0.7, 0.85, 1.0, 1.1, 1.2]
    for pace in found.paces:
        assert pace.reached == pytest.approx(0.98 * pace.told)


def test_who_falls_at_its_own_speed_goes_slower(walk, monkeypatch):
    found, tried = learned(walk, monkeypatch, lambda share, _: 0.5 < share < 0.8)
    assert told(found) == [0.55, 0.7]
    assert {share for share, _ in tried} == {1.0, *SLOWER}
    nothing, tried = learned(walk, monkeypatch, lambda *_: False)
    assert nothing.paces == () and len(tried) == TRIES * (1 + len(SLOWER))


def test_a_speed_counts_only_if_every_try_stood(walk, monkeypatch):
    found, tried = learned(walk, monkeypatch, lambda share, number: share <= 1 or number == 1)
    assert told(found)[-1] == 1.0
    assert len(tried) == TRIES * (1 + len(SLOWER) + 1)


def test_every_try_has_its_own_noise(walk, monkeypatch):
    _, tried = learned(walk, monkeypatch, lambda *_: True, seed=4)
    assert {seed for _, seed in tried} == {TRIES * 4 + 1, TRIES * 4 + 2}
    assert len(tried) == TRIES * (1 + len(SLOWER) + len(FASTER))


def test_who_goes_over_to_another_gait_is_tried_up_to_that(walk, monkeypatch):
    found, _ = learned(walk, monkeypatch, lambda *_: True, other=GAIT)
    speeds = [pace.told for pace in found.paces if pace.told > found.speed]
    assert speeds[3:] == [pytest.approx(share * GAIT.speed) for share in (1.0, *BEYOND)]
    assert speeds[0] == pytest.approx((3 * found.speed + GAIT.speed) / 4)


#: One that flies for half of its round.
RUN = replace(GAIT, contacts=((1.0, 0.0), (0.0, 0.0)))


@pytest.mark.parametrize(("needs", "helped"), [(0.0, 0.0), (0.2, 0.25), (9.0, 0.0)])
def test_a_run_is_helped_by_no_more_than_it_needs(walk, monkeypatch, needs, helped):
    """The less is tried first, until it is as fast as the run's clip; where no help is enough,
    there is none."""

    def stands(share, number):
        return share < 1.05 or given[-1] >= needs

    given = []
    real = learning.problem_of

    def problem_of(payload):
        problem = real(payload)
        given.append(problem.settings.outside_help)
        return problem

    monkeypatch.setattr(learning, "problem_of", problem_of)
    found, _ = learned(walk, monkeypatch, stands, other=RUN)
    assert found.outside_help == helped
    if needs < 1:
        assert found.paces[-1].told == pytest.approx(BEYOND[-1] * RUN.speed)
    else:
        assert found.paces[-1].told == pytest.approx(found.speed), "as without"
    assert set(given) <= set(learning.RUN_HELPS) and max(given) >= min(needs, 0.25)
    walked, _ = learned(walk, monkeypatch, lambda share, _: share < 1.05)
    assert walked.outside_help == 0 and given[-1] == 0, "a walk is not helped"


def test_a_budget_ends_it_with_what_is_known(walk):
    found = Learning(*walk, None, 0, SerialExecutor(), budget=0.0)
    assert found.poll() and found.ended == "budget" and found.paces == ()


def test_a_clip_without_a_cycle_cannot_be_learned(blender, import_clip):
    from poise.addon.rigs import reference
    from poise.controller import Character

    motion = reference.read(blender.context.scene, import_clip("wave")).motion
    with pytest.raises(MotionError, match="has no cycle to walk on"):
        Learning(Character.from_motion(motion), motion, None, 0, SerialExecutor())


@pytest.mark.slow(captured=False)
def test_a_body_reaches_what_it_is_told(walk):
    """One real try, as a worker runs it: it turns twice, stops and goes on, and what is counted is
    the speed before."""
    found = Learning(*walk, None, 0, SerialExecutor())
    function, *arguments = found._task((0.7 * found.speed, 0))
    result = function(*arguments)
    assert result["reached"] == pytest.approx(0.7 * found.speed, rel=0.06)
    assert function(*arguments) == result

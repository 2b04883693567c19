# SPDX-License-Identifier: GPL-3.0-or-later
"""Contact plans that are kept with an action: what is read by whom, and what is refused."""

import json

import bpy
import numpy as np
import pytest
from helpers.commands import poise, save

from poise.addon.blender import compat
from poise.addon.rigs import sampling
from poise.addon.scene import contacts
from poise.addon.shots.clean_up import CleanShot, CleanShotOptions
from poise.addon.shots.shot import Shot, ShotOptions
from poise.controller.contacts.contact_plan import ContactPlan
from poise.controller.exceptions import PlanError, SettingsError


@pytest.fixture
def armature(import_clip):
    """An armature that walks, 194 frames at 60 Hz."""
    return import_clip("walk")


def read(armature, **options):
    """A CleanShot that was read."""
    shot = CleanShot(bpy.context.scene, CleanShotOptions(armature=armature.name, **options))
    sampling.run(shot.read())
    return shot


def kept_for(armature, change=None):
    """Find contacts, keep them with the action, changed or not -> Kept."""
    shot = read(armature)
    found = contacts.Kept.of(shot.reading, shot.find())
    found = change(found) if change else found
    contacts.keep(*compat.assigned(armature), found)
    return found


def span(found, foot="left", point="ball", index=1):
    """(first frame, frame of its end) of a span."""
    return tuple(found.frame(time) for time in found.plan.feet[foot][point][index])


def test_what_is_kept_is_read_again(armature):
    found = kept_for(armature)
    action, slot = compat.assigned(armature)
    again = contacts.kept(action, slot)
    assert (again.first, again.last) == (1, 194)
    whole = [(*names, round(a), round(b)) for *names, a, b in again.spans()]
    assert whole == [(*names, round(a), round(b)) for *names, a, b in found.spans()]
    assert whole[0] == ("left", "heel", 34, 51)
    shot = read(armature)
    marks = found.plan.marks(194, 60.0)
    assert np.array_equal(shot.plan.marks(194, 60.0), marks)


def test_simulation_and_clean_up_follow_it(armature):
    def shorter(found):
        end = span(found)[1]
        return found.ended("left", "ball", end - 4).ended("left", "tip", end - 4)

    found = kept_for(armature, shorter)
    expected = found.plan.contacts(194, 60.0)
    shot = Shot(bpy.context.scene, ShotOptions(armature=armature.name))
    sampling.run(shot.read())
    shot.prepare()
    stance = shot.simulation.reference.stance
    assert np.array_equal(stance & 1, expected[:, 0]) and np.array_equal(
        stance >> 1, expected[:, 1]
    )
    assert shot.problem(duration=None).reference.stance.tolist() == stance.tolist()
    clean = read(armature)
    clean.solve()
    assert np.array_equal(clean.plan.contacts(194, 60.0), expected)


def test_a_part_of_the_frames_has_its_part_of_the_plan(armature):
    found = kept_for(armature)
    marks = found.plan.marks(194, 60.0)
    part = read(armature, frames=(41.0, 140.0))
    assert np.array_equal(part.plan.marks(100, 60.0), marks[40:140])
    every_second = read(armature, frames=(1.0, 193.0, 2.0))
    assert every_second.reading.rate == 30.0
    assert (every_second.plan.marks(97, 30.0) != marks[::2]).mean() < 0.02


def test_frames_stay_where_they_are_if_the_rate_of_the_scene_changes(armature):
    found = kept_for(armature)
    bpy.context.scene.render.fps = 24
    shot = read(armature)
    assert shot.reading.rate == 24.0
    assert np.array_equal(shot.plan.marks(194, 24.0), found.plan.marks(194, 60.0))


def test_it_goes_with_copies_files_and_undo(armature, tmp_path):
    kept_for(armature)
    action, slot = compat.assigned(armature)
    plan = contacts.kept(action, slot)
    copy = action.copy()
    assert contacts.kept(copy, compat.object_slot(copy, armature)) == plan
    path = tmp_path / "shot.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    bpy.ops.wm.read_factory_settings(use_empty=True)
    for link in (False, True):
        with bpy.data.libraries.load(str(path), link=link) as (_, into):
            into.actions = ["walk"]
        loaded = into.actions[0]
        slot = loaded.slots[0] if compat.HAS_SLOTS else None
        assert contacts.kept(loaded, slot) == plan
    with pytest.raises(PlanError, match=r"'walk' is linked from .*: make it local"):
        contacts.keep(loaded, slot, plan)


@pytest.mark.skipif(not compat.HAS_SLOTS, reason="needs slots")
def test_each_slot_has_its_own(armature):
    kept_for(armature)
    action, slot = compat.assigned(armature)
    plan = contacts.kept(action, slot)
    other = compat.new_slot(action, "other")
    assert contacts.kept(action, other) is None
    contacts.keep(action, other, plan.deleted("left", "heel", 40))
    assert contacts.kept(action, slot) == plan != contacts.kept(action, other)
    contacts.keep(action, other, None)
    assert contacts.kept(action, other) is None and contacts.kept(action, slot) == plan
    contacts.keep(action, slot, None)
    assert contacts.PROPERTY not in action


@pytest.mark.skipif(not compat.HAS_SLOTS, reason="needs slots")
def test_a_slot_that_is_renamed_keeps_it(armature):
    kept_for(armature)
    action, slot = compat.assigned(armature)
    plan = contacts.kept(action, slot)
    slot.name_display = "renamed"
    assert contacts.kept(action, slot) == plan


def test_spans_change_at_a_frame(armature):
    found = kept_for(armature)
    start, end = span(found)
    begun = found.begun("left", "ball", start + 2)
    assert span(begun) == pytest.approx((start + 2, end), abs=0.1)
    ended = found.ended("left", "ball", end + 1)
    assert span(ended) == pytest.approx((start, end + 2), abs=0.1), "it stands at that frame, too"
    gone = found.plan.feet["left"]["heel"]
    fewer = found.deleted("left", "heel", found.frame(gone[0][0]))
    assert fewer.plan.feet["left"]["heel"] == gone[1:]
    back = fewer.added("left", "heel", found.frame(gone[0][0]))
    length = np.diff(back.plan.feet["left"]["heel"][0])
    assert length == pytest.approx(contacts.ADDED, abs=2e-3)
    assert found.near("left", "heel", 1e6) == len(gone) - 1
    # From between two contacts each end goes to its own one.
    first, second = found.plan.feet["left"]["ball"][:2]
    between = (found.frame(first[1]) + found.frame(second[0])) // 2
    longer = found.ended("left", "ball", between).plan.feet["left"]["ball"]
    assert found.frame(longer[0][1]) == pytest.approx(between + 1, abs=0.1) and longer[1] == second
    longer = found.begun("left", "ball", between).plan.feet["left"]["ball"]
    assert found.frame(longer[1][0]) == pytest.approx(between, abs=0.1) and longer[0] == first
    # One that would touch another makes that longer.
    joined = found.added("left", "ball", start - 2).plan.feet["left"]["ball"]
    assert len(joined) == len(found.plan.feet["left"]["ball"])
    assert any(found.frame(s) == pytest.approx(start - 2, abs=0.1) for s, _ in joined)


def test_changes_that_make_no_sense_are_refused(armature):
    found = kept_for(armature)
    start, _ = span(found)
    one = {"left": {"tip": [(0.1, 0.2)]}}
    for change, sentence in (
        (lambda: found.begun("left", "ball", 500), "Frame 500 is not among those"),
        (lambda: found.added("left", "ball", start + 1), "stands at frame .* already"),
        (
            lambda: contacts.Kept(ContactPlan(60, one), 1, 99).begun("left", "tip", 50),
            "The tip of the left foot does not stand at frame .* nor later",
        ),
        (
            lambda: contacts.Kept(ContactPlan(60, one), 1, 99).ended("left", "tip", 3),
            "The tip of the left foot does not stand at frame .* nor earlier",
        ),
        (
            lambda: found.deleted("left", "ball", start - 1),
            "does not stand at frame .*, but from frame 98 to 124: go there",
        ),
        (
            lambda: contacts.Kept(ContactPlan(60, {}), 1, 9).ended("left", "tip", 3),
            "The tip of the left foot never stands: add a span",
        ),
    ):
        with pytest.raises(PlanError, match=sentence):
            change()


def test_more_frames_than_it_is_for_are_refused(armature):
    shot = read(armature, frames=(20.0, 100.0))
    contacts.keep(*compat.assigned(armature), contacts.Kept.of(shot.reading, shot.find()))
    with pytest.raises(PlanError, match="is for frames 20 to 100, and 1 to 194 are read"):
        read(armature)


def with_property(armature, text):
    action, _ = compat.assigned(armature)
    action[contacts.PROPERTY] = text
    return action


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (lambda text: text[:40], "cannot be read, perhaps it was edited by hand"),
        (lambda text: 7, "cannot be read"),
        (lambda text: "[1]", "cannot be read"),
        (lambda text: text.replace('"version": 1', '"version": 9'), "is not of version 1"),
        (lambda text: text.replace('"frames": [1.0, 194.0]', '"frames": [3]'), "for which frames"),
        (lambda text: text.replace('"frames"', '"frame"'), "has 'frame', which no plan has"),
    ],
)
def test_what_was_edited_by_hand_is_told_and_stays(armature, edit, sentence):
    kept_for(armature)
    action, _ = compat.assigned(armature)
    text = edit(action[contacts.PROPERTY])
    action[contacts.PROPERTY] = text
    with pytest.raises(PlanError, match=sentence) as caught:
        read(armature)
    assert "'walk'" in str(caught.value)
    assert action[contacts.PROPERTY] == text
    contacts.discard(action)
    assert read(armature).plan is None


def test_a_given_plan_comes_first_and_walks_have_none(armature):
    kept_for(armature)
    plan = read(armature).find().deleted("left", "heel", 0)
    assert read(armature, contacts=plan).plan == plan
    from poise.addon.scene.walks import WalkOptions

    shot = Shot(
        bpy.context.scene,
        ShotOptions(armature=armature.name, contacts=plan, walk=WalkOptions(seconds=5)),
    )
    with pytest.raises(SettingsError, match="finds its own contacts"):
        sampling.run(shot.read())


def test_without_an_action_there_is_no_place_for_it(armature):
    compat.assign(armature, None)
    with pytest.raises(PlanError, match="has no action of its own"):
        contacts.source_of(armature)


# --- The commands --------------------------------------------------------------------------------


@pytest.fixture
def shot(tmp_path, import_clip):
    """A saved .blend with the armature 'wave' and its action; nothing else in its folder."""
    import_clip("wave")
    return save(tmp_path)


@pytest.mark.slow(captured=False)
def test_commands_write_and_follow_a_plan(shot, capsys):
    plan, report = shot.with_name("plan.json"), shot.with_name("report.json")
    assert poise("simulate", shot, "--write-contacts", plan) == 0
    loaded = ContactPlan.load(plan)
    loaded.deleted("left", "heel", 0).save(plan)
    changed = json.loads(plan.read_text())
    assert poise("simulate", shot, "--contacts", plan, "--report", report) == 0
    assert json.loads(report.read_text())["contacts"] == changed
    more = "--frames", "1:60", "--overwrite"
    assert poise("bake", shot, "--contacts", plan, *more) == 1
    assert "but the clip lasts from 0 to 1.000 s" in capsys.readouterr().err
    again = shot.with_name("again.json")
    assert poise("bake", shot, "--write-contacts", again, *more) == 0
    assert again.is_file() and shot.with_name("shot_poise.blend").is_file()


@pytest.mark.slow(captured=False)
def test_a_stance_that_is_missing_is_told_where_the_body_falls(shot, capsys):
    plan, report = shot.with_name("plan.json"), shot.with_name("report.json")
    assert poise("simulate", shot, "--write-contacts", plan) == 0
    loaded = ContactPlan.load(plan)
    feet = {
        foot: {"ball": [[0.0, 1.0], [2.0, loaded.feet[foot]["ball"][-1][1]]]}
        for foot in ("left", "right")
    }
    ContactPlan(loaded.fps, feet).save(plan)
    capsys.readouterr()
    assert poise("simulate", shot, "--contacts", plan, "--report", report) == 3
    told = json.loads(report.read_text())["why"]
    assert told.endswith(
        "No foot stands from frame 61 to 120, though the body does not fall: correct the contacts "
        "there, or see whether the clip skates or hovers."
    )
    assert told in capsys.readouterr().err


@pytest.mark.slow(captured=False)
def test_commands_read_what_is_kept_in_the_file(shot):
    bpy.ops.wm.open_mainfile(filepath=str(shot))
    (armature,) = (thing for thing in bpy.context.scene.objects if thing.type == "ARMATURE")
    kept_for(armature, lambda found: found.deleted("right", "heel", 1))
    bpy.ops.wm.save_mainfile()
    for verb in ("simulate", "clean"):
        report = shot.with_name(f"{verb}.json")
        assert poise(verb, shot, "--report", report) == 0
        assert json.loads(report.read_text())["contacts"]["feet"]["right"]["heel"] == []


def test_commands_refuse_to_write_a_plan_over_the_shot_or_of_an_endless_walk(shot):
    assert poise("simulate", shot, "--write-contacts", shot) == 2
    plan = shot.with_name("plan.json")
    assert poise("simulate", shot, "--walk", "5", "--write-contacts", plan) == 2
    assert not plan.exists()


@pytest.mark.slow(captured=False)
def test_bake_cleans_feet_first(shot, tmp_path):
    """What is simulated is the cleaned action, by the same contacts; the source stays."""
    output, report = tmp_path / "out.blend", tmp_path / "report.json"
    assert poise("bake", shot, "--clean-feet", "--output", output, "--report", report) == 0
    told = json.loads(report.read_text())
    assert told["source_action"] == "wave Poise Clean"
    assert told["clean"]["source_action"] == "wave"
    assert told["contacts"] == told["clean"]["contacts"]
    bpy.ops.wm.open_mainfile(filepath=str(output))
    assert set(bpy.data.actions.keys()) == {"wave", "wave Poise Clean", "wave Poise Clean Poise"}


@pytest.mark.slow
def test_batch_cleans_feet_of_each_shot_and_follows_a_plan(shot, tmp_path):
    plan, folder = tmp_path / "plan.json", tmp_path / "baked"
    assert poise("clean", shot, "--write-contacts", plan, "--output", tmp_path / "c.blend") == 0
    options = "--output", folder, "--json", tmp_path / "sum.json"
    assert poise("batch", shot, "--clean-feet", "--contacts", plan, *options) == 0
    record = json.loads((folder / "shot.blend.poise.json").read_text())
    assert record["report"]["clean"]["contacts"] == json.loads(plan.read_text())
    assert f"--contacts={plan}" in record["arguments"]
    fingerprint = record["fingerprint"]
    ContactPlan.load(plan).deleted("left", "heel", 0).save(plan)
    assert poise("batch", shot, "--clean-feet", "--contacts", plan, *options) == 0
    record = json.loads((folder / "shot.blend.poise.json").read_text())
    assert record["fingerprint"] != fingerprint, "another plan is another result"

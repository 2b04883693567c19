# SPDX-License-Identifier: GPL-3.0-or-later
"""Holds in Blender: empties, keys, the panel, the command line, what is told of them."""

import json
import re

import bpy
import numpy as np
import pytest
from helpers.commands import poise, save

from poise.addon.blender import session
from poise.addon.command import batch_report
from poise.addon.overlays import overlay_marks
from poise.addon.scene import objects
from poise.addon.settings import quick
from poise.addon.settings.properties import shot_options
from poise.addon.shots import outdated
from poise.addon.shots.shot import Shot, ShotOptions
from poise.addon.staging import holds_panel
from poise.controller.body.momentum import GRAVITY
from poise.controller.exceptions import SettingsError
from poise.controller.geometry.skeleton import SEGMENT_INDEX

pytestmark = pytest.mark.usefixtures("registered")

LAST = 40


@pytest.fixture
def stander(import_clip):
    """An armature that stands, simulated for 40 frames by balance alone."""
    settings = bpy.context.scene.poise
    settings.method = "BALANCE"
    settings.frames, settings.first_frame, settings.last_frame = "CUSTOM", 1, LAST
    return import_clip("stand")


def add(limb="LEFT_HAND", frame=1, **values):
    """The empty of a hold that is added at a frame."""
    bpy.context.scene.frame_set(frame)
    before = set(bpy.context.scene.objects)
    assert bpy.ops.poise.add_hold(limb=limb) == {"FINISHED"}
    (empty,) = set(bpy.context.scene.objects) - before
    for name, value in values.items():
        setattr(empty.poise_hold, name, value)
    return empty


def box(name, place, role="COLLIDER"):
    """A box of 10 cm that takes part."""
    bpy.ops.mesh.primitive_cube_add(size=0.1, location=place)
    made = bpy.context.object
    made.name, made.poise.role = name, role
    return made


def read(armature, **options):
    """The Shot of an armature, read, and its holds."""
    options.setdefault("frames", (1.0, float(LAST)))
    shot = Shot(bpy.context.scene, ShotOptions(armature=armature.name, **options))
    list(shot.read())
    return shot, shot.objects.get("holds", ())


def result(armature):
    """The Shot of the result of an armature."""
    return session.result_of(bpy.context.scene, armature).shot


def changed(armature):
    """What has changed since its result."""
    options = shot_options(bpy.context, armature)
    now = outdated.settings_of(bpy.context.scene, armature, options)
    return outdated.changed(session.result_of(bpy.context.scene, armature).settings, now)


def activate(armature):
    bpy.context.view_layer.objects.active = armature


@pytest.mark.parametrize("limb", ["LEFT_HAND", "RIGHT_HAND", "LEFT_FOOT", "RIGHT_FOOT"])
def test_a_hold_is_added_where_the_limb_is(stander, limb):
    empty = add(limb, 5)
    hold = empty.poise_hold
    assert (hold.armature, hold.limb, hold.first, hold.to) == (stander, limb, 5, "WORLD")
    assert hold.last == bpy.context.scene.frame_end
    assert bpy.context.view_layer.objects.active == stander, "it stays what is simulated"
    shot, (found,) = read(stander)
    assert found.start == pytest.approx(4 / bpy.context.scene.render.fps)
    shot.prepare()
    held, raw = shot.simulation.scenario.holds[0], shot.simulation.reference.raw
    side, kind = limb[0].lower(), limb.split("_")[1]
    assert held.segment == {"HAND": "forearm", "FOOT": "foot"}[kind] + f"_{side}"
    own = SEGMENT_INDEX[held.segment]
    point = raw.joints[4, own] + raw.frames[4, own] @ np.array(held.point)
    assert np.linalg.norm(point - found.target) < 0.03, "nothing has to move"


def finger(armature, hand):
    """A bone on a bone on a hand, in Pose Mode."""
    bpy.ops.object.mode_set(mode="EDIT")
    above = armature.data.edit_bones[hand]
    for name in ("LeftHandIndex1", "LeftHandIndex2"):
        bone = armature.data.edit_bones.new(name)
        bone.head, bone.tail, bone.parent = above.tail, 2 * above.tail - above.head, above
        above = bone
    bpy.ops.object.mode_set(mode="POSE")
    return armature.data.bones["LeftHandIndex2"]


def test_of_the_active_bone(stander):
    bpy.ops.object.mode_set(mode="POSE")
    names = stander.data.bones.keys()
    hand = next(name for name in names if re.search("left.?hand$|hand.?l$", name.lower()))
    head = next(name for name in names if name.lower().endswith("head"))
    stander.data.bones.active = stander.data.bones[hand]
    assert add("BONE").poise_hold.limb == "LEFT_HAND"
    stander.data.bones.active = finger(stander, hand)
    assert add("BONE").poise_hold.limb == "LEFT_HAND", "on which it hangs"
    stander.data.bones.active = stander.data.bones[head]
    before = len(bpy.context.scene.objects)
    with pytest.raises(RuntimeError, match="is of no hand and no foot: choose one, or the limb"):
        bpy.ops.poise.add_hold(limb="BONE")
    assert len(bpy.context.scene.objects) == before
    bpy.ops.object.mode_set(mode="OBJECT")


def test_a_body_is_held_and_the_keys_are_there(stander):
    empty = add(frame=1)
    add("RIGHT_HAND")
    empty.location.z += 0.04
    bpy.context.view_layer.update()
    assert bpy.ops.poise.simulate() == {"FINISHED"}
    shot = result(stander)
    assert shot.recording.success and len(shot.grasps) == 2
    told, held = shot.grasps[0]
    assert held and re.match(r"The hold 'Hold 1' of the left hand bore \d+ N at most", told)
    assert not changed(stander)
    bpy.ops.poise.bake()
    bpy.context.scene.frame_set(LAST)
    bpy.context.view_layer.update()
    hand = next(b for b in stander.pose.bones if re.search("left.?hand$|hand.?l$", b.name.lower()))
    wrist = stander.matrix_world @ hand.head
    assert (wrist - empty.location).length < 0.09, "the palm is at the empty"
    look = overlay_marks.Look.of(bpy.context.scene.poise.overlays)
    assert len(overlay_marks.hold_arrows(shot.recording, 20, look.newtons_per_metre)) == 2
    empty.poise_hold.breaking = 500.0
    assert changed(stander) == ["Holds"]
    empty.poise_hold.breaking = 2000.0
    assert not changed(stander)
    empty.location.x += 0.1
    assert changed(stander) == ["Holds"]


def test_who_hangs_in_the_air_is_carried_until_a_hold_breaks(stander):
    stander.location.z += 0.8
    bpy.context.view_layer.update()
    add("LEFT_HAND"), add("RIGHT_HAND")
    shot, _ = read(stander, when_it_falls="limp")
    list(shot.simulate())
    recording = shot.recording
    assert recording.filled and recording.fell_at is None
    weight = recording.character.mass * GRAVITY
    assert recording.hold_forces[20:].sum(1).mean(0)[2] == pytest.approx(weight, rel=0.1)
    for thing in bpy.context.scene.objects:
        if thing.type == "EMPTY":
            thing.poise_hold.breaking = 200.0
    shot, _ = read(stander, when_it_falls="limp")
    list(shot.simulate())
    com = shot.recording.com[:, 2]
    assert com[0] - com[25] > 0.3, "nothing carries it any more"
    told, held = shot.grasps[0]
    assert not held and re.search(r"broke at frame \d+: it bears 200 N", told)
    (first, *_) = shot.report()["holds"]
    assert first["broke"] == first["frames"][1] and 200 < first["force"] < 260


def test_it_is_held_to_an_object(stander):
    spot = add("RIGHT_HAND").location.copy()
    bpy.ops.poise.remove_hold(empty="Hold 1")
    bar = box("Bar", spot)
    bar.select_set(True)
    activate(stander)
    empty = add("RIGHT_HAND")
    assert empty.poise_hold.to == "OBJECT" and empty.poise_hold.holder == bar
    _, (found,) = read(stander)
    assert found.to == "Bar" and found.target == pytest.approx((0.0, 0.0, 0.0), abs=1e-3)
    empty.location.z += 0.05
    bpy.context.view_layer.update()
    _, (found,) = read(stander)
    assert np.linalg.norm(found.target) == pytest.approx(0.05, abs=1e-3)
    bar.poise.role = "NONE"
    with pytest.raises(SettingsError, match="to 'Bar', which takes no part in these frames: mark"):
        read(stander)
    bpy.data.objects.remove(bar)
    with pytest.raises(SettingsError, match="is to an object, and that is not in the scene"):
        read(stander)


def test_a_thing_is_carried(stander):
    spot = add("RIGHT_HAND").location.copy()
    bpy.ops.poise.remove_hold(empty="Hold 1")
    bag = box("Bag", spot, "THING")
    bag.poise.mass = 5.0
    bag.select_set(True)
    activate(stander)
    add("RIGHT_HAND")
    assert [thing.name for thing in objects.marked(bpy.context.scene)] == ["Bag"]
    shot, _ = read(stander)
    list(shot.simulate())
    assert shot.recording.success
    force = shot.recording.hold_forces[-10:, 0].mean(0)
    assert force[2] == pytest.approx(-5.0 * GRAVITY, rel=0.1)
    assert np.ptp(shot.recording.thing_positions[5:, 0, 2]) < 0.05, "it does not fall"


def test_whose_they_are_and_whether_they_are_used(stander, import_clip):
    empty = add()
    other = import_clip("stand")
    assert len(read(stander)[1]) == 1 and not read(other)[1]
    assert "Holds" in quick.also_set(bpy.context.scene, stander)
    empty.poise_hold.use = False
    assert not read(stander)[1]
    assert "Holds" not in quick.also_set(bpy.context.scene, stander)


def test_frames_that_are_not_simulated(stander):
    hold = add().poise_hold
    hold.first, hold.last = -20, 10
    _, (found,) = read(stander)
    assert found.start == 0.0, "it is held already"
    hold.first, hold.last = 500, 600
    with pytest.raises(SettingsError, match="from frame 500 to 600, and frames 1 to 40 are"):
        read(stander)
    hold.first, hold.last = 20, 20
    with pytest.raises(SettingsError, match="from frame 20 to 20: let it end after it begins"):
        read(stander)


def test_what_cannot_be_is_refused_and_the_scene_stays(stander):
    empty = add(frame=3)
    bpy.context.scene.frame_set(7)
    empty.location.x += 3.0
    before = {thing.name for thing in bpy.context.scene.objects}
    with pytest.raises(RuntimeError, match=r"is 3.\d\d m away from the left hand at frame 3"):
        bpy.ops.poise.simulate()
    empty.location.x -= 3.0
    add(frame=9)
    with pytest.raises(RuntimeError, match="both hold the left hand at frame 9: remove one"):
        bpy.ops.poise.simulate()
    empty.hide_viewport = True
    with pytest.raises(RuntimeError, match="disabled in the viewport"):
        bpy.ops.poise.simulate()
    assert {thing.name for thing in bpy.context.scene.objects} >= before
    assert bpy.context.scene.frame_current == 9


def test_gains_are_tuned_without_holds(stander):
    add()
    shot, _ = read(stander)
    shot.prepare()
    assert shot.problem().scenario.holds == () and "holds" in shot.left_out
    assert len(shot.performance().scenario.holds) == 1


def test_buttons_go_to_a_hold_and_remove_it(stander):
    empty = add(frame=9)
    bpy.context.scene.frame_set(3)
    assert bpy.ops.poise.go_to_hold(empty=empty.name) == {"FINISHED"}
    assert bpy.context.scene.frame_current == 9 and empty.select_get()
    assert bpy.ops.poise.remove_hold(empty=empty.name) == {"FINISHED"}
    assert not any(thing.type == "EMPTY" for thing in bpy.context.scene.objects)


def test_the_panel_shows_each(stander, monkeypatch):
    drawn = []

    class Layout:
        def row(self, **_):
            return self

        column = box = grid_flow = row

        def prop(self, owner, name, **_more):
            drawn.append((name, getattr(owner, name)))

        def operator(self, name, **_more):
            return type("Button", (), {})()

    add(frame=20)
    add("RIGHT_HAND", frame=10).poise_hold.to = "OBJECT"
    monkeypatch.setattr(holds_panel, "sentence", lambda *_: None)
    holds_panel.POISE_PT_holds.content(None, Layout(), bpy.context, stander, "")
    assert [value for name, value in drawn if name == "first"] == [10, 20]
    assert [name for name, _ in drawn].count("holder") == 1, "the world is no object"


def test_the_command_line_takes_them_and_tells(stander, tmp_path, capsys):
    add("RIGHT_HAND")
    shot, path = save(tmp_path), tmp_path / "report.json"
    given = ("--hold", "left_hand@1-30", "--hold", "left_foot@5-20,900", "--frames", f"1:{LAST}")
    assert poise("simulate", shot, *given, "--report", path) == 0
    told = capsys.readouterr().err
    assert re.search(r"The hold '--hold 1' of the left hand bore \d+ N at most\.", told)
    report = json.loads(path.read_text())
    one, foot, own = report["holds"]
    assert (one["frames"], one["breaking"], one["to"]) == ([1, 30], 2000, "")
    assert (foot["limb"], foot["frames"], foot["breaking"]) == ("left foot", [5, 20], 900)
    assert own["name"] == "Hold 1" and own["gap"] < 5 and own["broke"] is None
    page = dict(batch_report._figures(batch_report._shot(tmp_path, _record(report)), {"units": {}}))
    assert page["hold"].startswith("The hold 'Hold 1' of the right hand bore")
    wrong = ("head@1-9", "left_hand@1", "left_hand@9", "left_hand@1-9,0", "left_hand@1-9,nan")
    for text in wrong:
        assert poise("simulate", shot, "--hold", text) == 2
    assert "is no hold such as left_hand@1-60" in capsys.readouterr().err
    assert poise("simulate", shot, "--hold", "left_hand@1-9:Gone") == 1
    assert "is to 'Gone', which is neither a thing nor a collider" in capsys.readouterr().err


def test_a_hold_to_an_armature_asks_for_together(stander, tmp_path, capsys):
    bpy.ops.object.armature_add()
    bpy.context.object.name = "Partner"
    shot = save(tmp_path)
    given = ("--armature", stander.name, "--hold", "left_hand@1-9:Partner")
    assert poise("simulate", shot, *given) == 1
    told = capsys.readouterr().err
    assert "The hold '--hold 1' is to 'Partner', an armature that is not simulated toge" in told
    assert "name it by --together, too" in told


def test_who_hangs_by_its_hands_is_not_told_to_float(stander, monkeypatch):
    for side in ("LEFT", "RIGHT"):
        add(f"{side}_HAND").location.z += 1.0
    stander.location.z += 1.0
    bpy.context.view_layer.update()
    shot, _ = read(stander)
    shot.embody()
    assert not {one.kind for one in shot.check().findings} & {"float", "start", "support"}
    monkeypatch.setattr(shot, "_held", lambda: None)
    shot.checked = None
    assert shot.check().findings[0].kind == "float", "as who is held by nothing there is"


def _record(report):
    return {
        "shot": "shot",
        "source": "shot.blend",
        "state": "stood",
        "why": "",
        "seconds": 1.0,
        "report": report,
    }

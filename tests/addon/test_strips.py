# SPDX-License-Identifier: GPL-3.0-or-later
"""Bakes on NLA strips: exact, beside each other, and gone without a trace."""

from dataclasses import replace

import bpy
import numpy as np
import pytest

from poise.addon.baking.bake import BakeOptions
from poise.addon.blender import compat, session
from poise.addon.overlays import overlay
from poise.addon.rigs import bake_marks, bake_target, sampling, strips
from poise.addon.scene import contacts
from poise.addon.settings import takes
from poise.addon.shots.shot import Shot, ShotOptions
from poise.controller.exceptions import MotionError

pytestmark = pytest.mark.usefixtures("registered")

#: Frame to which is simulated.
LAST = 30
#: Frames at which poses are compared, some beside the clip.
FRAMES = (-20, 0, 1, 2, 7.25, 15, LAST, LAST + 1, 80, 400)


@pytest.fixture
def armature(import_clip):
    """A quiet stand, to be baked to strips."""
    armature = import_clip("stand")
    bpy.context.scene.poise.bake_to = "NLA"
    return armature


def simulate(style="CLOSE"):
    """Press Simulate: balance alone, in a style, the beginning of the clip."""
    settings = bpy.context.scene.poise
    settings.method, settings.style = "BALANCE", style
    settings.frames, settings.first_frame, settings.last_frame = "CUSTOM", 1, LAST
    assert bpy.ops.poise.simulate() == {"FINISHED"}


def bake(style="CLOSE", take=True):
    """Simulate, keep that as a take, and bake it -> (action, slot)."""
    simulate(style)
    if take:
        bpy.ops.poise.keep_take()
    assert bpy.ops.poise.bake() == {"FINISHED"}
    return strips.shown(bpy.context.active_object)


def poses(armature, frames=FRAMES):
    """(frames, bones, 4, 4) where all bones and the object are."""
    found = []
    for frame in frames:
        bpy.context.scene.frame_set(int(frame // 1), subframe=frame % 1)
        found.append([armature.matrix_world @ bone.matrix for bone in armature.pose.bones])
    bpy.context.scene.frame_set(1)
    return np.array(found)


def played(armature, action, slot, frames=FRAMES):
    """The poses that an action gives by itself, all tracks muted."""
    before = compat.assigned(armature), [t.mute for t in tracks(armature)]
    for track in tracks(armature):
        track.mute = True
    compat.assign(armature, action, slot)
    found = poses(armature, frames)
    compat.assign(armature, *before[0])
    for track, mute in zip(tracks(armature), before[1], strict=True):
        track.mute = mute
    return found


def tracks(armature):
    """The armature's NLA tracks, the lowest first."""
    return list(armature.animation_data.nla_tracks)


def heard(armature):
    """{name: whether it is heard} of the tracks, the lowest first."""
    return {track.name: not track.mute for track in tracks(armature)}


def user_track(armature, name, path, value, blend="ADD"):
    """A track of somebody's with one curve."""
    action, slot = compat.new_action(name)
    curve = compat.new_curve(compat.channels(action, slot, ensure=True), path, 0)
    curve.keyframe_points.insert(1, value)
    track = armature.animation_data.nla_tracks.new()
    track.name = name
    strip = track.strips.new(name, 1, action)
    if compat.HAS_SLOTS:
        strip.action_slot = slot
    strip.blend_type = blend
    return track


# --- Exact ---------------------------------------------------------------------------------------


def test_a_strip_gives_the_pose_of_its_action_at_every_frame_and_the_source_returns(armature):
    source, before = compat.assigned(armature), poses(armature)
    action, slot = bake()
    assert compat.assigned(armature)[0] is None
    assert heard(armature) == {"stand": False, "Take 1": True}
    (strip,) = tracks(armature)[1].strips
    assert strip.name == "Take 1" and compat.of_strip(strip) == (action, slot)
    keys = [curve.range() for curve in compat.curves(action, slot)]
    first, last = min(k[0] for k in keys), max(k[1] for k in keys)
    assert (strip.frame_start, strip.frame_end) == (first, last) == tuple(source[0].frame_range)
    np.testing.assert_array_equal(poses(armature), played(armature, action, slot))
    assert np.abs(poses(armature) - before).max() > 1e-3, "it is another motion"
    bpy.ops.poise.show(which="source")
    assert compat.assigned(armature) == source
    assert heard(armature) == {"stand": False, "Take 1": False}
    np.testing.assert_array_equal(poses(armature), before)
    bpy.ops.poise.show(which="baked")
    np.testing.assert_array_equal(poses(armature), played(armature, action, slot))


def test_the_muted_track_has_the_source_for_whoever_has_no_poise(armature):
    before = poses(armature)
    bake()
    below, over = tracks(armature)
    below.mute, over.mute = False, True
    np.testing.assert_array_equal(poses(armature), before)
    assert strips.shown(armature)[0].name == "stand"
    assert len(bake_target.bakes_of(armature)) == 1, "the panel still lists it"
    below.mute = True
    assert len(bake_target.bakes_of(armature)) == 1, "also while nothing is heard"
    bpy.ops.poise.show(which="source")
    np.testing.assert_array_equal(poses(armature), before)


def test_what_goes_on_beyond_its_keys_does_so_to_the_end_of_the_scene(armature):
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = 0, 333
    holder = compat.channels(*compat.assigned(armature))
    curve = compat.new_curve(holder, "delta_location", 2)
    for frame in (1, 2):
        curve.keyframe_points.insert(frame, 0.0001 * frame)
    curve.extrapolation = "LINEAR"
    pair = bake()
    (strip,) = tracks(armature)[1].strips
    assert (strip.frame_start, strip.frame_end) == (0, 333)
    frames = [0, 20, 40, 250, 333]
    np.testing.assert_array_equal(poses(armature, frames), played(armature, *pair, frames))


def test_keys_between_frames_stay_there(armature):
    """As those of clips of other rates; and before the scene's first frame, too."""
    for curve in compat.curves(*compat.assigned(armature)):
        for key in curve.keyframe_points:
            key.co.x -= 10.25
        curve.update()
    scene = bpy.context.scene
    action, slot = bake()
    strip = tracks(armature)[1].strips[0]
    assert strip.scale == strip.repeat == 1
    np.testing.assert_array_equal(poses(armature), played(armature, action, slot))
    assert scene.frame_current == 1


# --- Several takes -------------------------------------------------------------------------------


def test_each_take_has_a_strip_and_one_is_heard(armature):
    pairs = [bake(), bake("RELAXED")]
    assert heard(armature) == {"stand": False, "Take 1": False, "Take 2: Style": True}
    for number, pair in enumerate(pairs, 1):
        bpy.ops.poise.show(which="baked", bake=number)
        assert strips.shown(armature) == pair
        np.testing.assert_array_equal(poses(armature), played(armature, *pair))
        assert sum(heard(armature).values()) == 1
    bpy.ops.poise.show(which="baked", bake=1)
    assert heard(armature)["Take 1"]


def test_a_take_that_is_baked_again_replaces_its_own_strip(armature):
    bake()
    bake("RELAXED")
    bpy.context.window_manager.poise_takes.index = 0
    bpy.context.scene.poise.blend_in = 10
    assert bpy.ops.poise.bake() == {"FINISHED"}
    assert heard(armature) == {"stand": False, "Take 1": True, "Take 2: Style": False}
    pair = strips.shown(armature)
    np.testing.assert_array_equal(poses(armature), played(armature, *pair))
    assert len(bake_target.bakes_of(armature)) == 2


def test_a_strip_without_a_take_is_named_after_its_action(armature):
    bake(take=False)
    assert heard(armature) == {"stand": False, "stand Poise": True}


def test_what_shows_a_strip_is_simulated_from_its_source(armature):
    source = compat.assigned(armature)
    bake()
    simulate("HEAVY")
    shot = session.result_of(bpy.context.scene, armature).shot
    assert shot.reading.action == "stand"
    assert heard(armature) == {"stand": False, "Take 1": True}, "as before"
    assert contacts.source_of(armature) == source


def test_a_ghost_makes_room_for_its_strip(armature):
    bake()
    shot = session.result_of(bpy.context.scene, armature).shot
    assert overlay.is_baked(bpy.context.scene, shot)
    bpy.ops.poise.show(which="source")
    assert not overlay.is_baked(bpy.context.scene, shot)


# --- What is somebody's --------------------------------------------------------------------------


def move(strip, frames):
    """Let a strip begin so much later."""
    begin, end = strip.frame_start + frames, strip.frame_end + frames
    strip.frame_end, strip.frame_start = end, begin


def test_a_take_is_baked_again_into_its_strip_wherever_somebody_has_moved_it(armature):
    bake()
    shot = session.result_of(bpy.context.scene, armature).shot
    before, measured = poses(armature), shot.measures
    move(tracks(armature)[1].strips[0], 40)
    bpy.ops.poise.bake()
    assert shot.baked.left is None and len(bake_target.bakes_of(armature)) == 1
    assert heard(armature) == {"stand": False, "Take 1": True}
    (strip,) = tracks(armature)[1].strips
    assert (strip.frame_start, strip.scale) == (41, 1)
    assert compat.of_strip(strip) == strips.shown(armature) == bake_target.current(armature)
    np.testing.assert_array_equal(poses(armature, np.add(FRAMES, 40)), before)
    assert shot.measures == measured, "it is compared frame by frame all the same"
    bpy.ops.poise.show(which="source")
    assert heard(armature) == {"stand": False, "Take 1": False}
    bpy.ops.poise.show(which="baked")
    np.testing.assert_array_equal(poses(armature, np.add(FRAMES, 40)), before)
    bpy.ops.poise.delete_bake()
    assert not tracks(armature)


def test_a_strip_that_somebody_changed_stays(armature):
    bake()
    (strip,) = tracks(armature)[1].strips
    strip.repeat = 2
    changed = strip.frame_start, strip.frame_end, strip.action.name
    bpy.ops.poise.bake()
    assert session.result_of(bpy.context.scene, armature).shot.baked.left == "stand Poise Take 1"
    old = next(s for t in tracks(armature) for s in t.strips if s.repeat == 2)
    assert (old.frame_start, old.frame_end, old.action.name) == changed
    assert strips.shown(armature)[0].name == "stand Poise Take 1.001"
    bpy.ops.poise.show(which="source")
    assert compat.assigned(armature)[0].name == "stand"
    assert changed[2] in bpy.data.actions


def test_a_track_that_somebody_deleted_is_made_again(armature):
    bake()
    nla = armature.animation_data.nla_tracks
    nla.remove(tracks(armature)[1])
    bpy.ops.poise.bake()
    assert heard(armature) == {"stand": False, "Take 1": True}
    assert len(bake_target.bakes_of(armature)) == 1


def test_tracks_of_others_stay_and_those_above_are_told_of(armature):
    user_track(armature, "Below", "location", 0.5, "REPLACE")
    bake()
    assert session.result_of(bpy.context.scene, armature).shot.baked.over == ()
    user_track(armature, "Layer", "location", 0.5)
    user_track(armature, "Elsewhere", "delta_location", 0.0)
    bpy.context.scene.poise.root_motion = "OBJECT"
    bpy.ops.poise.bake()
    names = ["Below", "stand", "Take 1", "Layer", "Elsewhere"]
    assert [track.name for track in tracks(armature) if not track.name.startswith("Poise")] == names
    assert session.result_of(bpy.context.scene, armature).shot.baked.over == ("Layer",)
    before = [t.mute for t in tracks(armature) if t.name in ("Below", "Layer", "Elsewhere")]
    bpy.ops.poise.delete_bake()
    left = {track.name: track.mute for track in tracks(armature)}
    assert left == dict.fromkeys(("Below", "Layer", "Elsewhere"), False) and not any(before)


def test_values_that_are_held_for_the_source_stay_below_strips(armature):
    """Here the place of the object, which the source does not key."""
    for curve in list(compat.channels(*compat.assigned(armature)).fcurves):
        if curve.data_path in ("location", "rotation_euler", "rotation_quaternion", "scale"):
            compat.channels(*compat.assigned(armature)).fcurves.remove(curve)
    armature.location = 0.5, 0.25, 0.0
    before = poses(armature)
    bake()
    bpy.context.scene.poise.root_motion = "OBJECT"
    pair = bake("RELAXED")
    expected = played(armature, *pair)
    assert np.abs(expected[..., 3] - before[..., 3]).max() > 1e-3
    assert [track.name for track in tracks(armature)][:2] == ["stand", "Poise Source"]
    np.testing.assert_array_equal(poses(armature), expected)
    bpy.ops.poise.show(which="source")
    armature.location = 9, 9, 9
    np.testing.assert_allclose(poses(armature), before, atol=1e-6)
    stash = tracks(armature)[0]
    compat.assign(armature, None)
    stash.mute = False
    np.testing.assert_allclose(poses(armature), before, atol=1e-6)


@pytest.mark.parametrize(
    "disturb, told",
    [
        (lambda data: setattr(data, "use_nla", False), "NLA of its animation is switched off"),
        (lambda data: setattr(data, "action_influence", 0.5), "influence, blending or extrapola"),
        (lambda data: setattr(data, "action_extrapolation", "NOTHING"), "or extrapolation counts"),
    ],
)
def test_what_would_not_be_the_same_on_a_strip_is_refused(armature, disturb, told):
    simulate()
    disturb(armature.animation_data)
    actions = set(bpy.data.actions.keys())
    with pytest.raises(RuntimeError, match=told):
        bpy.ops.poise.bake()
    assert set(bpy.data.actions.keys()) == actions and not tracks(armature)
    bpy.context.scene.poise.bake_to = "ACTION"
    assert bpy.ops.poise.bake() == {"FINISHED"}


# --- Gone ----------------------------------------------------------------------------------------


def test_deleting_takes_strips_away_and_the_source_with_the_last(armature):
    source, before = compat.assigned(armature), poses(armature)
    bake()
    bake("RELAXED")
    bpy.ops.poise.delete_bake()
    assert compat.assigned(armature) == source
    assert heard(armature) == {"stand": False, "Take 1": False}
    bpy.ops.poise.delete_bake()
    assert not tracks(armature) and compat.assigned(armature) == source
    assert set(bpy.data.actions.keys()) == {"stand"}
    np.testing.assert_array_equal(poses(armature), before)


def test_a_bake_to_an_action_takes_the_place_of_one_on_a_strip_and_back(armature):
    bake()
    bpy.context.scene.poise.bake_to = "ACTION"
    bpy.ops.poise.bake()
    assert not tracks(armature)
    assert compat.assigned(armature)[0].name == "stand Poise Take 1"
    assert len(bake_target.bakes_of(armature)) == 1
    bpy.context.scene.poise.bake_to = "NLA"
    bpy.ops.poise.bake()
    assert heard(armature) == {"stand": False, "Take 1": True}
    assert len(bake_target.bakes_of(armature)) == 1


def test_a_bake_to_a_strip_is_one_undo_step(armature):
    name = armature.name
    simulate()
    bpy.ops.poise.keep_take()
    bpy.ops.ed.undo_push(message="Simulated")
    bpy.ops.poise.bake("EXEC_DEFAULT", True)
    assert heard(bpy.data.objects[name]) == {"stand": False, "Take 1": True}
    bpy.ops.ed.undo()
    armature = bpy.data.objects[name]
    assert not tracks(armature) and compat.assigned(armature)[0].name == "stand"
    bpy.ops.ed.redo()
    armature = bpy.data.objects[name]
    assert heard(armature) == {"stand": False, "Take 1": True}
    assert strips.shown(armature)[0].name == "stand Poise Take 1"


def test_a_file_keeps_them(armature, tmp_path):
    bake()
    name, expected = armature.name, poses(armature)
    path = str(tmp_path / "strips.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.open_mainfile(filepath=path)
    armature = bpy.data.objects[name]
    np.testing.assert_array_equal(poses(armature), expected)
    bpy.context.view_layer.objects.active = armature
    bpy.ops.poise.show(which="source")
    assert compat.assigned(armature)[0].name == "stand"
    assert heard(armature) == {"stand": False, "Take 1": False}
    assert not takes.rows(bpy.context.scene)
    bpy.ops.poise.delete_bake()
    assert not tracks(armature)


@pytest.mark.skipif(not compat.HAS_SLOTS, reason="actions have slots from Blender 4.4 on")
def test_slots_of_a_chosen_action_have_strips(armature):
    bpy.context.scene.poise.action = bpy.data.actions.new("Shared")
    for style in ("CLOSE", "HEAVY"):
        pair = bake(style)
        assert pair[0].name == "Shared"
        np.testing.assert_array_equal(poses(armature), played(armature, *pair))
    bpy.ops.poise.bake()
    assert heard(armature) == {"stand": False, "Take 1": False, "Take 2: Style": True}
    bpy.ops.poise.delete_bake()
    assert heard(armature) == {"stand": False, "Take 1": False}
    assert len(bpy.data.actions["Shared"].slots) == 1


# --- Read and baked from -------------------------------------------------------------------------


def shot_of(armature, action=None, style="close"):
    """A Shot that was read and simulated to frame LAST, to be baked to a strip."""
    keys = BakeOptions(nla=True, take=style)
    options = ShotOptions(armature.name, action, (1, LAST), style=style, keys=keys)
    shot = Shot(bpy.context.scene, options)
    sampling.run(shot.read())
    for _ in shot.simulate():
        pass
    return shot


def test_a_clean_up_on_a_strip_is_a_source(armature):
    assert bpy.ops.poise.clean_up() == {"FINISHED"}
    clean = strips.shown(armature)
    expected = played(armature, *clean)
    simulate()  # read in the window while the clean-up is shown: of the capture
    assert session.result_of(bpy.context.scene, armature).shot.reading.action == "stand"
    muted = heard(armature)
    shot = shot_of(armature, clean[0].name)
    assert heard(armature) == muted and compat.assigned(armature)[0] is None, "as before"
    assert shot.reading.action == clean[0].name
    shot.bake()
    action, slot = strips.shown(armature)
    assert bake_marks.source_of(bake_target.mark_of(action, slot)) == clean
    assert action.name == f"{clean[0].name} Poise close"
    np.testing.assert_array_equal(poses(armature), played(armature, action, slot))
    simulate()  # now of the clean-up, which is the source of what is shown
    assert session.result_of(bpy.context.scene, armature).shot.reading.action == clean[0].name
    assert strips.shown(armature) == (action, slot), "as before"
    bpy.ops.poise.show(which="source")
    assert compat.assigned(armature) == clean and not any(heard(armature).values())
    np.testing.assert_array_equal(poses(armature), expected)


@pytest.mark.skipif(not compat.HAS_SLOTS, reason="actions have slots from Blender 4.4 on")
def test_a_slot_that_is_the_source_of_another_bake_is_not_deleted(armature):
    bpy.context.scene.poise.bake_to = "ACTION"
    bpy.context.scene.poise.action = bpy.data.actions.new("Shared")
    bpy.ops.poise.clean_up()
    clean = strips.shown(armature)
    assert clean[0].name == "Shared"
    shot = shot_of(armature, "Shared")
    shot.options = replace(shot.options, keys=BakeOptions())
    shot.bake()
    bpy.ops.poise.show(which="source")
    assert strips.shown(armature) == clean
    with pytest.raises(RuntimeError, match="as the source of another bake"):
        bpy.ops.poise.delete_bake()
    assert strips.shown(armature) == clean and len(clean[0].slots) == 1
    bpy.data.actions.remove(bpy.data.actions["Shared Poise"])
    bpy.ops.poise.delete_bake()
    assert len(bpy.data.actions["Shared"].slots) == 0


def test_reading_leaves_tracks_as_somebody_muted_them(armature):
    bake()
    below, over = tracks(armature)
    for mutes in ((False, True), (False, False), (True, True), (True, False)):
        below.mute, over.mute = mutes
        simulate()
        shot = session.result_of(bpy.context.scene, armature).shot
        assert shot.reading.action == "stand"
        assert (below.mute, over.mute) == mutes
        assert compat.assigned(armature)[0] is None


def test_strips_of_somebodys_are_a_source_also_while_their_bake_is_shown(armature):
    action, slot = compat.assigned(armature)
    strip = armature.animation_data.nla_tracks.new().strips.new("stand", 1, action)
    if compat.HAS_SLOTS:
        strip.action_slot = slot
    compat.assign(armature, None)
    bake()
    muted, seen = heard(armature), poses(armature)
    before = session.result_of(bpy.context.scene, armature).shot.reading
    assert before.action is None
    simulate()
    after = session.result_of(bpy.context.scene, armature).shot.reading
    np.testing.assert_array_equal(after.bone_matrices, before.bone_matrices)
    assert heard(armature) == muted
    np.testing.assert_array_equal(poses(armature), seen)


def test_a_bake_that_is_stopped_or_fails_leaves_all_as_it_was(armature, monkeypatch):
    bake()
    below, over = tracks(armature)
    shot = shot_of(armature, "stand", "relaxed")
    below.mute = over.mute = False  # nothing that could be guessed

    def state():
        return heard(armature), compat.assigned(armature), set(bpy.data.actions.keys())

    before, seen = state(), poses(armature)
    for share in (0.0, 0.5):
        work = shot.baking()
        while next(work) < share:
            pass
        work.close()
        assert state() == before
    monkeypatch.setattr(bake_target.Target, "finish", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        shot.bake()
    assert state() == before
    np.testing.assert_array_equal(poses(armature), seen)
    assert len(bpy.data.scenes) == 1


def test_strips_that_are_all_muted_are_no_animation(armature):
    source, _ = compat.assigned(armature)
    track = armature.animation_data.nla_tracks.new()
    track.strips.new("stand", 1, source)
    compat.assign(armature, None)
    assert shot_of(armature).reading.action is None
    for silent in (track, track.strips[0]):
        silent.mute = True
        with pytest.raises(MotionError, match="add NLA strips that are not muted"):
            shot_of(armature)
        silent.mute = False
    armature.animation_data.use_nla = False
    with pytest.raises(MotionError, match="add NLA strips that are not muted"):
        shot_of(armature)


# --- When something has changed since ------------------------------------------------------------


@pytest.mark.parametrize("style", ["CLOSE", "RELAXED"])
def test_the_track_of_the_source_has_what_that_has_by_now(armature, style):
    """Of a source that has become longer: in another bake of the same take, and in a new one."""
    bake()
    action, slot = bake_marks.source_of(bake_target.mark_of(*strips.shown(armature)))
    frames = (*FRAMES, 500)
    for curve in compat.curves(action, slot):
        curve.keyframe_points.insert(500, curve.evaluate(1) + 0.01)
    expected = played(armature, action, slot, frames)
    if style == "CLOSE":
        bpy.ops.poise.bake()
    else:
        bake(style)
    stash, *bakes = tracks(armature)
    assert len(bakes) == (1 if style == "CLOSE" else 2)
    assert stash.strips[0].frame_end == 500
    for track in bakes:
        track.mute = True
    stash.mute = False
    np.testing.assert_array_equal(poses(armature, frames), expected)
    for _ in bakes:
        bpy.ops.poise.delete_bake()
    assert not tracks(armature)


@pytest.mark.skipif(not compat.HAS_SLOTS, reason="actions have slots from Blender 4.4 on")
def test_a_slot_that_a_strip_of_somebodys_plays_is_not_deleted(armature):
    bpy.context.scene.poise.action = bpy.data.actions.new("Shared")
    source = compat.assigned(armature)
    action, slot = bake()
    (strip,) = tracks(armature)[1].strips
    strip.repeat = 2
    compat.assign(armature, *source)
    seen = poses(armature)
    with pytest.raises(RuntimeError, match="'Shared' is used elsewhere too, as by an NLA strip"):
        bpy.ops.poise.delete_bake()
    assert compat.of_strip(strip) == (action, slot)
    np.testing.assert_array_equal(poses(armature), seen)
    armature.animation_data.nla_tracks.remove(tracks(armature)[1])
    bpy.ops.poise.delete_bake()
    assert len(action.slots) == 0


@pytest.mark.skipif(not compat.HAS_SLOTS, reason="actions have slots from Blender 4.4 on")
def test_a_copy_of_a_strip_of_a_slot_plays_the_next_bake_too(armature):
    bpy.context.scene.poise.action = bpy.data.actions.new("Shared")
    action, slot = bake()
    track = armature.animation_data.nla_tracks.new()
    copy = track.strips.new("Copy", 1000, action)
    copy.action_slot = slot
    bpy.ops.poise.bake()
    assert len(action.slots) == 1
    assert compat.of_strip(copy) == (action, action.slots[0]) == strips.shown(armature)


def test_two_armatures_have_strips_of_their_own(armature):
    """Also of the same action, and of takes of the same name."""
    source, twin = compat.assigned(armature), armature.copy()
    twin.name = "Twin"
    bpy.context.scene.collection.objects.link(twin)
    bake()
    first, seen = strips.shown(armature), poses(armature)
    still = poses(twin)
    assert not tracks(twin)
    bpy.context.view_layer.objects.active = twin
    second = bake("HEAVY")
    assert strips.shown(armature) == first and first != second
    assert heard(armature) == {"stand": False, "Take 1": True}
    assert heard(twin) == {"stand": False, "Take 1": True}
    np.testing.assert_array_equal(poses(armature), seen)
    np.testing.assert_array_equal(poses(twin), played(twin, *second))
    assert bake_target.bakes_of(twin) == [second]
    bpy.ops.poise.delete_bake()
    assert not tracks(twin) and compat.assigned(twin)[0] == source[0]
    np.testing.assert_array_equal(poses(twin), still)
    np.testing.assert_array_equal(poses(armature), seen)
    bpy.context.view_layer.objects.active = armature
    bpy.ops.poise.delete_bake()
    assert not tracks(armature) and compat.assigned(armature) == source
    assert set(bpy.data.actions.keys()) == {"stand"}

# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes: kept, compared, chosen, named, baked each to an action of its own."""

from types import SimpleNamespace

import bpy
import numpy as np
import pytest

import poise
from poise.addon.blender import compat, session
from poise.addon.overlays import overlay
from poise.addon.rigs import bake_target, sampling
from poise.addon.settings import takes
from poise.addon.shots.shot import Shot, ShotOptions
from poise.addon.sidebar import panels, takes_panel

pytestmark = pytest.mark.usefixtures("registered")

#: Frame to which is simulated.
LAST = 30


@pytest.fixture
def armature(import_clip):
    """A quiet stand."""
    return import_clip("stand")


def simulate(style="CLOSE"):
    """Press Simulate: balance alone, in a style, a quarter of the clip."""
    settings = bpy.context.scene.poise
    settings.method, settings.style = "BALANCE", style
    settings.frames, settings.first_frame, settings.last_frame = "CUSTOM", 1, LAST
    assert bpy.ops.poise.simulate() == {"FINISHED"}


def keep(style="CLOSE"):
    """Simulate, and keep that -> its name."""
    simulate(style)
    assert bpy.ops.poise.keep_take() == {"FINISHED"}
    return names()[-1]


def listed():
    """The list of the window."""
    return bpy.context.window_manager.poise_takes


def names():
    """What is in the list of the scene."""
    return [row.label for row, _ in takes.rows(bpy.context.scene)]


def result(armature):
    """The result of the armature in the current scene."""
    return session.result_of(bpy.context.scene, armature)


def pose(armature):
    """Where all bones are."""
    return np.round([np.array(bone.matrix) for bone in armature.pose.bones], 6).tolist()


def keys(action):
    """All keys of an action: what another bake must not change."""
    slots = action.slots if compat.HAS_SLOTS else [None]
    curves = [curve for slot in slots for curve in compat.curves(action, slot)]
    return [[tuple(point.co) for point in curve.keyframe_points] for curve in curves]


# --- Keeping -------------------------------------------------------------------------------------


def test_nothing_can_be_kept_before_a_simulation(armature):
    assert not bpy.ops.poise.keep_take.poll() and not bpy.ops.poise.remove_take.poll()
    bpy.ops.poise.inspect()
    assert not bpy.ops.poise.keep_take.poll()


def test_a_take_outlives_the_next_simulation(armature):
    keep()
    shot = result(armature).shot
    assert listed().index == 0 and not bpy.ops.poise.keep_take.poll(), "it is kept already"
    centres = shot.recording.com.copy()
    simulate("RELAXED")
    assert listed().index == -1 and bpy.ops.poise.keep_take.poll()
    assert result(armature).shot is not shot
    ((_, take),) = takes.rows(bpy.context.scene)
    assert take.shot is shot and np.array_equal(shot.recording.com, centres)
    assert shot.simulation.world._client < 0, "its world is freed"


def test_names_tell_what_was_set_otherwise(armature):
    assert keep() == "Take 1"
    assert keep("HEAVY") == "Take 2: Style"
    bpy.context.scene.poise.noise = 1.0
    assert keep("HEAVY") == "Take 3: Motor Noise"
    listed().index = 1
    bpy.ops.poise.remove_take()
    assert keep("HEAVY") == "Take 2", "nothing differs from the last one; the number is free"


def test_names_are_unique(armature):
    keep()
    keep("HEAVY")
    first, second = listed().items
    second.label = "Take 1"
    assert names() == ["Take 1", "Take 1 2"]
    second.label = "  soft  "
    first.label = ""
    assert names() == ["Take", "soft"]


def test_takes_of_one_animation_share_what_was_read(armature):
    keep()
    keep("HEAVY")
    (_, one), (_, other) = takes.rows(bpy.context.scene)
    assert one.shot.reading is not other.shot.reading
    assert one.shot.reading.bone_matrices is other.shot.reading.bone_matrices
    assert one.shot.reading.basis_matrices is other.shot.reading.basis_matrices


# --- Choosing ------------------------------------------------------------------------------------


def test_the_chosen_take_is_the_result_and_nothing_is_lost(armature):
    keep()
    first = result(armature).shot
    simulate("HEAVY")
    second = result(armature).shot
    listed().index = 0
    assert result(armature).shot is first
    assert names() == ["Take 1", "Take 2: Style"], "what was not kept is, now"
    assert takes.row_of(second).label == "Take 2: Style"
    listed().index = 1
    assert result(armature).shot is second and len(names()) == 2
    assert result(armature).settings["Style"] == ("heavy",)


def test_removing_chooses_another_one_and_keeps_the_last_as_the_result(armature):
    for style in ("CLOSE", "NATURAL", "HEAVY"):
        keep(style)
    shots = [take.shot for _, take in takes.rows(bpy.context.scene)]
    listed().index = 1
    bpy.ops.poise.remove_take()
    assert names() == ["Take 1", "Take 3: Style"]
    assert result(armature).shot is shots[0]
    bpy.ops.poise.remove_take()
    assert result(armature).shot is shots[2] and listed().index == 0
    bpy.ops.poise.remove_take()
    assert names() == [] and result(armature).shot is shots[2]
    assert not bpy.ops.poise.remove_take.poll() and bpy.ops.poise.keep_take.poll()


def test_discarding_the_result_leaves_the_takes(armature):
    keep()
    shot = result(armature).shot
    bpy.ops.poise.discard()
    assert result(armature).shot is None and names() == ["Take 1"]
    assert listed().index == -1
    listed().index = 0
    assert result(armature).shot is shot


def test_each_armature_has_its_own(armature, import_clip):
    keep()
    other = import_clip("stand")
    assert listed().index == -1
    keep()
    assert names() == ["Take 1", "Take 1"], "of two armatures"
    listed().index = 0
    assert listed().index == 1, "a row of another armature cannot be chosen"
    rows = takes_panel.POISE_UL_takes.filter_items
    shown, _ = rows(SimpleNamespace(bitflag_filter_item=8), bpy.context, listed(), "items")
    assert shown == [0, 8]
    bpy.context.view_layer.objects.active = armature
    assert listed().index == 0
    assert result(other).recording is not None


# --- Undo, files, the add-on ---------------------------------------------------------------------


def test_results_and_takes_follow_renamed_armatures_and_scenes(armature, import_clip):
    """They stayed under the old name, and whatever got that was given them."""
    scene = bpy.context.scene
    first, other = keep(), armature.copy()
    scene.collection.objects.link(other)
    simulate("HEAVY")
    recording = result(armature).recording
    armature.name, scene.name = "Renamed", "Act 2"
    other.name = "stand"
    assert result(armature).recording is recording
    assert result(other).recording is None
    assert names() == [first] and not takes.rows(scene, other)
    assert takes.rows(scene, armature)[0][1].shot.armature == armature
    assert [shot for shot, _ in overlay.ghosts(scene)] == [result(armature).shot]
    bpy.context.view_layer.objects.active = armature
    scene.poise.armature = armature
    assert bpy.ops.poise.bake() == {"FINISHED"}
    assert bake_target.mark_of(*compat.assigned(armature))
    assert bake_target.mark_of(*compat.assigned(other)) is None


def test_only_what_is_renamed_is_told_its_name(armature):
    keep()
    other = armature.copy()
    bpy.context.scene.collection.objects.link(other)
    shot = Shot(bpy.context.scene, ShotOptions(other.name, frames=(1, 30)))
    sampling.run(shot.read())
    session.keep(bpy.context.scene.name, other.name, shot)
    reading = shot.reading
    armature.name = "Renamed"
    assert result(armature).shot.reading.armature == "Renamed"
    assert result(other).shot is shot and shot.reading is reading


def test_names_that_are_swapped(armature):
    keep()
    scene, recording = bpy.context.scene, result(armature).recording
    other = armature.copy()
    other.name = "other"
    scene.collection.objects.link(other)
    armature.name = "between"
    other.name, armature.name = "stand", "other"
    assert result(armature).recording is recording and result(other).recording is None
    assert len(takes.rows(scene, armature)) == 1 and not takes.rows(scene, other)


def test_what_takes_the_name_of_a_deleted_armature_gets_none_of_its_results(armature):
    keep()
    scene, other = bpy.context.scene, armature.copy()
    scene.collection.objects.link(other)
    bpy.data.objects.remove(armature)
    other.name = "stand"
    assert result(other).recording is None and not takes.rows(scene)


def test_undo_neither_loses_nor_doubles_a_take(armature):
    name = armature.name
    bpy.ops.ed.undo_push(message="Imported")
    keep()
    bpy.context.scene.frame_set(25)
    bpy.ops.ed.undo_push(message="Frame")
    keep("HEAVY")
    listed().items[0].label = "first"
    bpy.ops.poise.bake("EXEC_DEFAULT", True)
    bpy.ops.ed.undo()
    bpy.ops.ed.undo()
    armature = bpy.data.objects[name]
    assert bpy.context.scene.frame_current != 25, "it is undone"
    assert names() == ["first", "Take 2: Style"] and listed().index == 1
    bpy.ops.ed.redo()
    bpy.ops.ed.redo()
    assert names() == ["first", "Take 2: Style"]
    bpy.ops.poise.remove_take()
    bpy.ops.ed.undo()
    assert names() == ["first"], "no undo brings it back, as it says"
    assert bpy.ops.poise.bake() == {"FINISHED"}, "which is still possible"
    assert compat.assigned(bpy.data.objects[name])[0].name == "stand Poise first"


def test_another_file_has_none(armature, tmp_path):
    keep()
    path = str(tmp_path / "kept.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    assert names() == ["Take 1"], "saving changes nothing"
    scene = bpy.context.scene.name
    bpy.ops.wm.open_mainfile(filepath=path, load_ui=True)
    assert bpy.context.scene.name == scene
    assert names() == [] and listed().index == -1
    bpy.ops.wm.read_homefile(use_empty=True)
    assert names() == []


def test_rows_of_another_session_are_nothing(armature):
    stale = listed().items.add()
    stale.name, stale.label = "gone", "Take 1"
    assert names() == [] and listed().index == -1
    listed().index = 0
    assert result(armature).shot is None
    assert keep() == "Take 1"
    assert listed().items[0].name != "gone" and len(listed().items) == 1


def test_without_the_add_on_there_are_none(armature):
    keep()
    poise.unregister()
    assert not hasattr(bpy.types.WindowManager, "poise_takes")
    poise.register()
    assert names() == []


# --- Ghosts --------------------------------------------------------------------------------------


def test_ghosts_of_takes_stand_beside_that_of_the_result(armature):
    scene = bpy.context.scene
    keep()
    first = result(armature).shot
    assert overlay.ghosts(scene) == [(first, 0)] and overlay.compared(scene) == []
    keep("NATURAL")
    second = result(armature).shot
    simulate("HEAVY")
    scene.frame_set(20)
    assert overlay.ghosts(scene) == [(result(armature).shot, 19)]
    assert overlay.compared(scene) == [(first, 19, 1), (second, 19, 2)]
    listed().items[0].show = False
    assert overlay.compared(scene) == [(second, 19, 1)]
    listed().index = 0
    assert overlay.ghosts(scene) == [(first, 19)], "what is chosen is shown, whatever its eye says"
    bpy.ops.poise.discard()
    assert [place for _, _, place in overlay.compared(scene)] == [0, 1]
    scene.poise.ghost, scene.poise.ghost_distance = "BESIDE", 0.8
    motion = first.reading.motion
    apart = overlay.displacement(scene.poise, motion, 2) - overlay.displacement(scene.poise, motion)
    assert np.linalg.norm(apart) == pytest.approx(1.6)


def test_each_ghost_has_its_own_colour(armature):
    shots = []
    for style in ("CLOSE", "NATURAL"):
        keep(style)
        shots.append(result(armature).shot)
    simulate("HEAVY")
    shots.append(result(armature).shot)
    bodies = [overlay.colours_of(shot)[0] for shot in shots]
    assert len(set(bodies)) == 3 and bodies[2] == overlay.colours_of_ghosts()[0]
    assert {overlay.colours_of(shot)[1:] for shot in shots} == {overlay.colours_of_ghosts()[1:]}
    listed().items[0].colour = (0.25, 0.5, 0.75)
    assert overlay.colours_of(shots[0])[0][:3] == (0.25, 0.5, 0.75)


# --- Baking --------------------------------------------------------------------------------------


def test_takes_are_baked_one_after_the_other(armature):
    scene = bpy.context.scene
    simulate()
    bpy.ops.poise.bake()
    bpy.ops.poise.keep_take()
    keep("RELAXED")
    listed().items[1].label = "Loose"
    poses = []
    for index, named in ((1, "stand Poise Loose"), (0, "stand Poise Take 1")):
        listed().index = index
        assert bpy.ops.poise.bake() == {"FINISHED"}
        action, _ = compat.assigned(armature)
        assert action.name == named
        scene.frame_set(LAST)
        poses.append(pose(armature))
        scene.frame_set(1)
    assert poses[0] != poses[1]
    bakes = [action for action, _ in bake_target.bakes_of(armature)]
    assert [action.name for action in bakes] == [
        "stand Poise",
        "stand Poise Loose",
        "stand Poise Take 1",
    ]
    plain, loose, first = bakes
    assert keys(plain) == keys(first), "the same simulation"
    before = keys(plain), keys(loose)
    bpy.ops.poise.bake()
    assert len(bake_target.bakes_of(armature)) == 3, "its own earlier bake is replaced"
    bakes = {action.name: action for action, _ in bake_target.bakes_of(armature)}
    assert (keys(bakes["stand Poise"]), keys(bakes["stand Poise Loose"])) == before
    for number, expected in ((2, poses[0]), (3, poses[1])):
        bpy.ops.poise.show(which="baked", bake=number)
        scene.frame_set(LAST)
        assert pose(armature) == expected
        scene.frame_set(1)


def test_no_take_has_the_name_of_a_baked_one_that_is_gone(armature):
    """Its bake would be replaced, and nothing could make it again."""
    assert keep() == "Take 1"
    assert bpy.ops.poise.bake() == {"FINISHED"}
    listed().items[0].label = "Take 1"
    assert names() == ["Take 1"], "its own bake"
    bpy.ops.poise.remove_take()
    assert keep("HEAVY") == "Take 2"
    listed().items[0].label = "Take 1"
    assert names() == ["Take 1 2"]
    assert bpy.ops.poise.bake() == {"FINISHED"}
    assert {"stand Poise Take 1", "stand Poise Take 1 2"} <= set(bpy.data.actions.keys())


def test_a_bake_of_a_take_that_is_yours_now_stays(armature):
    keep()
    bpy.ops.poise.bake()
    action, _ = compat.assigned(armature)
    action.name = "mine"
    bpy.ops.poise.bake()
    assert compat.assigned(armature)[0].name == "stand Poise Take 1"
    assert "mine" in bpy.data.actions
    assert result(armature).shot.baked.left == "mine"


def test_a_ghost_makes_room_for_its_own_bake_only(armature):
    scene = bpy.context.scene
    simulate()
    bpy.ops.poise.bake()
    first = result(armature).shot
    bpy.ops.poise.keep_take()
    simulate("HEAVY")
    bpy.ops.poise.bake()
    second = result(armature).shot
    assert first.baked.action == second.baked.action, "neither was baked as a take"
    assert overlay.is_baked(scene, second) and not overlay.is_baked(scene, first)


@pytest.mark.skipif(not compat.HAS_SLOTS, reason="actions have slots from Blender 4.4 on")
def test_takes_have_slots_of_their_own_in_a_chosen_action(armature):
    bpy.context.scene.poise.action = bpy.data.actions.new("Shared")
    for style in ("CLOSE", "HEAVY"):
        keep(style)
        bpy.ops.poise.bake()
    slots = [slot.name_display for slot in bpy.data.actions["Shared"].slots]
    assert slots == [f"{armature.name} Poise {name}" for name in names()]


# --- In the sidebar ------------------------------------------------------------------------------


class Rows:
    """A stand-in for UILayout: takes down labels, operators, lists, and (property, icon)."""

    def __init__(self, found=None):
        self.found = [] if found is None else found

    def label(self, text="", **_options):
        self.found.append(text)

    def operator(self, name, **_options):
        self.found.append(name)

    def template_list(self, kind, _id, data, items, _active, index, rows):
        assert hasattr(bpy.types, kind) and len(getattr(data, items)) and rows >= 2
        assert getattr(data, index) >= -1
        self.found.append(kind)

    def prop(self, data, name, icon="NONE", **_options):
        assert hasattr(data, name)
        self.found.append((name, icon))

    def row(self, **_options):
        return Rows(self.found)

    column = box = row


def test_the_list_is_over_the_verdict_once_it_is_needed(armature):
    scene, region = bpy.context.scene, SimpleNamespace(width=260)
    preferences = SimpleNamespace(system=SimpleNamespace(ui_scale=1.0))
    scene.poise.mode = "FULL"

    def drawn():
        layout, panel = Rows(), panels.POISE_PT_result
        context = SimpleNamespace(
            scene=scene,
            preferences=preferences,
            region=region,
            screen=SimpleNamespace(is_animation_playing=False),
            window_manager=bpy.context.window_manager,
            active_object=armature,
        )
        assert panel.poll(context)
        panel.content(None, layout, context, armature, "")
        return [one for one in layout.found if isinstance(one, str)]

    simulate()
    keeper, *_, button = drawn()
    assert keeper.startswith("Keeper") and button == "poise.keep_take"
    bpy.ops.poise.keep_take()
    rows = ["POISE_UL_takes", "poise.keep_take", "poise.remove_take"]
    assert drawn() == [*rows, keeper]
    bpy.ops.poise.discard()
    assert drawn() == rows, "takes can still be chosen"


def test_a_row_tells_how_it_ended(import_clip):
    fallen = import_clip("side_kick")
    bpy.context.scene.poise.method = "BALANCE"
    bpy.ops.poise.simulate()
    bpy.ops.poise.keep_take()
    assert not result(fallen).recording.success
    stood = import_clip("stand")
    keep()
    layouts = []
    for row, _ in takes.rows(bpy.context.scene):
        layouts.append(Rows())
        takes_panel.POISE_UL_takes.draw_item(None, None, layouts[-1], None, row, 0, None, "")
    listed().items[1].show = False
    takes_panel.POISE_UL_takes.draw_item(None, None, layouts[-1], None, listed().items[1], 0, 0, "")
    assert layouts[0].found == [("label", "CANCEL"), ("colour", "NONE"), ("show", "HIDE_OFF")]
    assert layouts[1].found[0] == ("label", "CHECKMARK") and result(stood).recording.success
    assert layouts[1].found[-1] == ("show", "HIDE_ON")

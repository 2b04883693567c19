# SPDX-License-Identifier: GPL-3.0-or-later
"""The operators without a window: a job turned by hand, and the modal operator with a stand-in
for the window. The real window is driven by tests/gui."""

import functools
import gc
import re
import weakref
from types import SimpleNamespace

import bpy
import numpy as np
import pytest
from helpers.jobs import BUDGET, step_until

import poise
from poise.addon import operators
from poise.addon.blender import compat, redrawing, session
from poise.addon.blender.chosen import chosen_armature
from poise.addon.blender.evaluation import LastOfTurn
from poise.addon.jobs import job as job_module
from poise.addon.jobs import modal
from poise.addon.jobs.job import SimulateJob
from poise.addon.overlays import overlay
from poise.addon.rigs import bake_target
from poise.addon.settings import gains, properties
from poise.addon.shots import outdated
from poise.addon.shots.shot import Shot, ShotOptions
from poise.addon.sidebar import panels
from poise.controller.exceptions import PoiseError

pytestmark = pytest.mark.usefixtures("registered")


@pytest.fixture
def armature(import_clip):
    """A quiet stand, at a frame in its middle."""
    armature = import_clip("stand")
    bpy.context.scene.frame_set(40, subframe=0.25)
    return armature


def state(armature):
    """What a user would miss if it changed."""
    scene = bpy.context.scene
    bones = [np.array(bone.matrix) for bone in armature.pose.bones]
    return {
        "frame": (scene.frame_current, scene.frame_subframe),
        "actions": sorted(action.name for action in bpy.data.actions),
        "assigned": compat.assigned(armature),
        "pose": np.round(bones, 6).tolist(),
        "keys": [len(curve.keyframe_points) for curve in compat.curves(*compat.assigned(armature))],
    }


def new_job(armature):
    """A simulation that is at work."""
    job = SimulateJob(bpy.context.scene, properties.shot_options(bpy.context, armature))
    job.start()
    return job


def result(armature):
    """The result of the armature in the current scene."""
    return session.result_of(bpy.context.scene, armature)


# --- Registration --------------------------------------------------------------------------------


def registered_names():
    """All that Poise could leave behind in Blender."""
    return {
        "classes": {name for name in dir(bpy.types) if "poise" in name.lower()},
        "operators": set(dir(bpy.ops.poise)),
        "scene": hasattr(bpy.types.Scene, "poise"),
        "handlers": len(bpy.app.handlers.load_pre),
    }


def test_registration_leaves_nothing():
    enabled = registered_names()
    assert len(enabled["classes"]) >= len(operators.CLASSES)
    poise.unregister()
    disabled = registered_names()
    assert disabled["classes"] == set()
    assert disabled["operators"] == set()
    assert not disabled["scene"]
    assert disabled["handlers"] == enabled["handlers"] - 1
    poise.register()
    assert registered_names() == enabled


def test_unregistering_stops_what_runs(armature):
    job = new_job(armature)
    step_until(job, lambda: job.recording)
    poise.unregister()
    assert session.job() is None
    poise.register()


def own_properties(rna):
    """The properties that Poise defines itself."""
    return [p for p in rna.properties if p.identifier not in ("rna_type", "name", "bl_idname")]


def test_everything_has_a_tooltip():
    for cls in operators.CLASSES:
        rna = getattr(bpy.ops.poise, cls.bl_idname.split(".")[1]).get_rna_type()
        assert len(rna.description) > 20, cls.bl_idname
        assert "\n" not in rna.description
        for prop in own_properties(rna):
            assert prop.description or prop.is_hidden, f"{cls.bl_idname}.{prop.identifier}"
    for prop in own_properties(properties.POISE_PG_settings.bl_rna):
        assert len(prop.description) > 10, prop.identifier
        assert not prop.description.endswith("."), prop.identifier
        for item in prop.enum_items if prop.type == "ENUM" else ():
            assert item.description, f"{prop.identifier} {item.identifier}"


def test_every_number_has_a_unit():
    # A frame number and a seed are names rather than amounts.
    without = {"first_frame", "last_frame", "seed"}
    for prop in own_properties(properties.POISE_PG_settings.bl_rna):
        if prop.type in ("INT", "FLOAT") and prop.identifier not in without:
            unit = re.search(r"\((.+)\)$", prop.name)
            assert unit, f"{prop.identifier}: '{prop.name}'"
            assert f"[{unit.group(1)}]" in prop.description, prop.identifier


# --- Settings ------------------------------------------------------------------------------------


def test_settings_become_options(armature):
    scene, settings = bpy.context.scene, bpy.context.scene.poise
    options = properties.shot_options(bpy.context, armature)
    assert (options.armature, options.frames, options.mass) == (armature.name, None, None)
    assert (options.balance, options.rate, options.noise) == ("foot_forces", 300.0, 0.0)
    settings.frames = "SCENE"
    scene.frame_start, scene.frame_end = 3, 50
    assert properties.shot_options(bpy.context, armature).frames == (3, 50)
    scene.use_preview_range = True
    scene.frame_preview_start, scene.frame_preview_end = 10, 20
    assert properties.shot_options(bpy.context, armature).frames == (10, 20)
    settings.frames = "CUSTOM"
    settings.first_frame, settings.last_frame = 5, 9
    settings.use_mass, settings.mass = True, 42
    gains.choose(scene, "Standing")
    options = properties.shot_options(bpy.context, armature)
    assert (options.frames, options.mass) == ((5, 9), 42)
    assert options.gains["tuned"]["clip"] == "arm"
    assert options.balance is None, "a preset knows its own balance mode"


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("EVERY", (1, 0.0, False)),
        ("NTH", (4, 0.0, False)),
        ("SOURCE", (1, 0.0, True)),
        ("TOLERANCE", (1, 2.5, False)),
    ],
)
def test_settings_become_bake_options(keys, expected):
    settings = bpy.context.scene.poise
    settings.keys, settings.key_every, settings.tolerance = keys, 4, 2.5
    options = properties.bake_options(settings)
    assert (options.key_every, options.tolerance, options.source_keys) == expected


def test_armature_is_chosen_or_active_or_the_only_one(armature, import_clip):
    scene, choose = bpy.context.scene, lambda: chosen_armature(bpy.context)
    bpy.context.view_layer.objects.active = None
    assert choose() == (armature, "")
    other = import_clip("stand")
    assert choose() == (other, "")
    bpy.context.view_layer.objects.active = None
    found, reason = choose()
    assert found is None
    assert "several" in reason
    scene.poise.armature = armature
    assert choose() == (armature, "")
    scene.collection.objects.unlink(armature)
    found, reason = choose()
    assert found is None
    assert armature.name in reason


def test_a_mesh_stands_for_its_armature(armature):
    mesh = bpy.data.objects.new("Body", bpy.data.meshes.new("Body"))
    bpy.context.scene.collection.objects.link(mesh)
    mesh.modifiers.new("Armature", "ARMATURE").object = armature
    bpy.context.view_layer.objects.active = mesh
    assert chosen_armature(bpy.context) == (armature, "")


# --- The job -------------------------------------------------------------------------------------


def test_simulation_changes_nothing_and_gives_a_result(armature):
    before = state(armature)
    job = new_job(armature)
    progress = []
    while not job.step(BUDGET):
        progress.append((job.doing, job.progress))
        assert state(armature) == before
    assert state(armature) == before
    assert session.job() is None
    stages = list(dict.fromkeys(doing for doing, _ in progress))
    assert stages[0] == "reading"
    assert stages[-2:] == ["simulating", "judging"]
    for stage in stages:
        own = [value for doing, value in progress if doing == stage]
        assert own == sorted(own)
    recording = result(armature).recording
    assert recording is job.recording
    assert len(recording) == 102
    assert recording.success
    assert job.real_time_factor > 0
    assert result(armature).summary["success"]


def test_a_long_simulation_tells_how_long_it_will_take(armature, monkeypatch):
    job = new_job(armature)
    step_until(job, lambda: job.recording is not None and len(job.recording) > 1)
    began, job.progress = job._since, 0.5
    for spent, told in ((0.5, ""), (4, ""), (75, ", 1:15 left")):
        now = SimpleNamespace(perf_counter=lambda spent=spent: began + spent)
        monkeypatch.setattr(job_module, "time", now)
        assert job.note == f"{job.real_time_factor:.1f} × real time{told}"
    monkeypatch.undo()
    job.cancel()


@pytest.mark.parametrize("stage", ["reading", "simulating"])
def test_cancelling_leaves_the_scene(armature, stage):
    before = state(armature)
    job = new_job(armature)
    step_until(job, lambda: job.doing == stage and job.progress > 0.1)
    job.cancel()
    assert state(armature) == before
    assert session.job() is None
    assert result(armature).shot is None
    new_job(armature).run()
    assert result(armature).recording.success


def test_cancelling_keeps_the_result_from_before(armature):
    new_job(armature).run()
    recording = result(armature).recording
    job = new_job(armature)
    step_until(job, lambda: job.recording)
    job.cancel()
    assert result(armature).recording is recording


def test_only_one_job_at_a_time(armature):
    job = new_job(armature)
    with pytest.raises(PoiseError, match="still reading"):
        new_job(armature)
    assert session.job() is job
    assert not bpy.ops.poise.simulate.poll()


@pytest.mark.parametrize("stage", ["reading", "simulating"])
@pytest.mark.parametrize("deleted", [True, False])
def test_armature_that_goes_away_is_told(armature, stage, deleted):
    name = armature.name
    job = new_job(armature)
    step_until(job, lambda: job.doing == stage and job.progress > 0.1)
    if deleted:
        bpy.data.objects.remove(armature)
    else:
        armature.name = "Somebody"
    with pytest.raises(PoiseError, match=f"'{name}' was deleted or renamed while .*{stage}"):
        job.step(BUDGET)
    assert session.job() is None


def test_another_file_forgets_everything(armature):
    scene_name, name = bpy.context.scene.name, armature.name
    new_job(armature).run()
    job = new_job(armature)
    step_until(job, lambda: job.recording)
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    assert session.job() is None
    same = SimpleNamespace(name=scene_name), SimpleNamespace(name=name)
    assert session.result_of(*same).shot is None


# --- The operators -------------------------------------------------------------------------------


def test_simulate_bake_compare_discard(armature):
    before = state(armature)
    assert not bpy.ops.poise.bake.poll()
    assert bpy.ops.poise.inspect() == {"FINISHED"}
    assert result(armature).shot.character.height == pytest.approx(1.7, abs=0.2)
    assert result(armature).recording is None
    assert bpy.ops.poise.simulate() == {"FINISHED"}
    assert state(armature) == before
    assert bpy.ops.poise.bake() == {"FINISHED"}
    baked = state(armature)
    assert len(baked["actions"]) == len(before["actions"]) + 1
    assert bake_target.mark_of(*compat.assigned(armature)) is not None
    assert baked["pose"] != before["pose"]
    assert set(result(armature).shot.measures) >= {name for name, *_ in panels.BAKE_ROWS}
    assert bpy.ops.poise.show(which="source") == {"FINISHED"}
    assert state(armature)["pose"] == before["pose"]
    assert bpy.ops.poise.show(which="baked") == {"FINISHED"}
    assert state(armature)["pose"] == baked["pose"]
    assert bpy.ops.poise.discard() == {"FINISHED"}
    assert result(armature).shot is None
    assert state(armature) == baked


def test_every_bake_is_shown_and_deleted_by_its_name(armature):
    source = state(armature)
    bpy.ops.poise.clean_up()
    cleaned = state(armature)
    bpy.ops.poise.show(which="source")
    bpy.ops.poise.simulate()
    bpy.ops.poise.bake()
    baked = state(armature)
    assert len({str(s["pose"]) for s in (source, cleaned, baked)}) == 3
    assert [a.name for a, _ in bake_target.bakes_of(armature)] == [
        "stand Poise Clean",
        "stand Poise",
    ]
    text = drawn()
    assert text.count("poise.delete_bake") == 2 and text.count("poise.show") == 4
    for number, shown in ((1, cleaned), (2, baked), (1, cleaned)):
        assert bpy.ops.poise.show(which="baked", bake=number) == {"FINISHED"}
        assert state(armature)["pose"] == shown["pose"]
    assert bpy.ops.poise.inspect() == {"FINISHED"}, "which reads the source"
    assert state(armature)["pose"] == cleaned["pose"]
    assert bpy.ops.poise.show(which="source") == {"FINISHED"}
    assert state(armature)["pose"] == source["pose"]
    with pytest.raises(RuntimeError, match="has 2 bakes only"):
        bpy.ops.poise.show(which="baked", bake=3)
    bpy.ops.poise.show(which="baked", bake=1)
    assert bpy.ops.poise.delete_bake() == {"FINISHED"}, "the one that is shown"
    assert [a.name for a, _ in bake_target.bakes_of(armature)] == ["stand Poise"]
    assert state(armature)["pose"] == source["pose"]
    track = armature.animation_data.nla_tracks.new()
    track.strips.new("kept", 1, bpy.data.actions["stand Poise"])
    with pytest.raises(RuntimeError, match="'stand Poise' is used elsewhere too"):
        bpy.ops.poise.delete_bake()
    armature.animation_data.nla_tracks.remove(track)
    bpy.ops.poise.show(which="source")
    assert bpy.ops.poise.delete_bake() == {"FINISHED"}, "the newest"
    assert not bake_target.bakes_of(armature) and not bpy.ops.poise.delete_bake.poll()
    assert [action.name for action in bpy.data.actions] == ["stand"]


def test_simulating_again_reads_the_source_not_its_bake(armature):
    bpy.ops.poise.simulate()
    first = result(armature).recording.root_displacement()
    bpy.ops.poise.bake()
    baked = state(armature)
    bpy.ops.poise.simulate()
    assert result(armature).shot.reading.action == "stand"
    assert np.array_equal(result(armature).recording.root_displacement(), first)
    assert state(armature) == baked


def test_bake_is_one_step_of_undo(armature):
    name = armature.name
    bpy.ops.ed.undo_push(message="Imported")
    before = state(armature)
    bpy.ops.poise.simulate("EXEC_DEFAULT", True)
    bpy.ops.poise.bake("EXEC_DEFAULT", True)
    baked = state(armature)
    bpy.ops.ed.undo()
    undone = state(bpy.data.objects[name])
    assert undone["actions"] == before["actions"]
    assert undone["pose"] == before["pose"]
    assert "poise.show" not in drawn()
    assert "Before" not in drawn()
    assert result(bpy.data.objects[name]).recording.success, "the simulation outlives undo"
    bpy.ops.ed.redo()
    redone = state(bpy.data.objects[name])
    assert redone["actions"] == baked["actions"]
    assert redone["pose"] == baked["pose"]
    assert "poise.show" in drawn()
    assert "Before" in drawn()


def test_error_is_reported_and_shown(armature):
    before = state(armature)
    bpy.context.scene.poise.rig = "nobody's rig"
    with pytest.raises(RuntimeError, match="nobody's rig"):
        bpy.ops.poise.simulate()
    assert "nobody's rig" in result(armature).error
    assert state(armature) == before
    assert session.job() is None
    bpy.context.scene.poise.rig = ""
    bpy.ops.poise.simulate()
    assert result(armature).error == ""


def test_showing_a_bake_that_is_not_there_is_told(armature):
    with pytest.raises(RuntimeError, match="has no bake"):
        bpy.ops.poise.show(which="baked")


def test_map_is_saved_and_used(armature, tmp_path):
    assert not bpy.ops.poise.save_map.poll()
    bpy.ops.poise.inspect()
    path = tmp_path / "map.json"
    assert bpy.ops.poise.save_map(filepath=str(path)) == {"FINISHED"}
    bpy.context.scene.poise.rig = str(path)
    assert bpy.ops.poise.inspect() == {"FINISHED"}


def test_nothing_to_simulate_greys_the_button(armature):
    assert bpy.ops.poise.simulate.poll()
    bpy.ops.object.mode_set(mode="EDIT")
    assert not bpy.ops.poise.simulate.poll()
    bpy.ops.object.mode_set(mode="OBJECT")
    armature.animation_data_clear()
    assert not bpy.ops.poise.simulate.poll()
    bpy.data.objects.remove(armature)
    assert not bpy.ops.poise.simulate.poll()
    assert not bpy.ops.poise.cancel.poll()


# --- The modal operator with a stand-in for the window -------------------------------------------


@pytest.fixture
def started(window):
    """The operator at work in a window."""
    operator = window.begin(operators.POISE_OT_simulate)
    assert len(window.timers) == 1
    assert "Esc" in window.status
    return window, operator


def assert_left(window):
    assert window.timers == []
    assert window.status is None


def test_what_failed_is_told_of_the_armature_whatever_it_is_called(started, armature):
    window, operator = started
    scene, name = bpy.context.scene, armature.name
    armature.name = "Somebody"
    assert result(armature).error == "", "as when a panel is drawn"
    outcomes = (window.send(operator) for _ in range(50))
    assert next(outcome for outcome in outcomes if outcome != {"PASS_THROUGH"}) == {"CANCELLED"}
    assert f"'{name}' was deleted or renamed" in result(armature).error
    other = armature.copy()
    scene.collection.objects.link(other)
    other.name = name
    assert result(other).error == ""
    assert session.job() is None


class Workspace:
    """One with a status bar of its own."""

    status = None

    def status_text_set(self, text):
        self.status = text


def test_the_status_bar_goes_with_the_user_and_is_cleared_where_it_is(started):
    window, operator = started
    began, window.workspace = window.workspace, Workspace()
    said = began.status
    assert "Esc" in said
    window.send(operator)
    assert (began.status, window.workspace.status) == (None, said)
    left, window.workspace = window.workspace, Workspace()
    assert window.send(operator, "ESC") == {"CANCELLED"}
    assert left.status is window.workspace.status is None


def test_modal_to_the_end(started, armature):
    window, operator = started
    for _ in range(5000):
        outcome = window.send(operator)
        if outcome != {"PASS_THROUGH"}:
            break
    assert outcome == {"FINISHED"}
    assert_left(window)
    assert result(armature).recording.success
    assert operator.reports[-1][0] == "INFO"


@pytest.mark.parametrize("simulating", [False, True])
def test_modal_escape(started, armature, simulating):
    window, operator = started
    before = state(armature)
    if simulating:
        window.turn_until(operator, lambda: session.job().recording)
    assert window.send(operator, "ESC") == {"CANCELLED"}
    assert_left(window)
    assert state(armature) == before
    assert "as it was" in operator.reports[-1][1]


def test_modal_stopped_by_the_button(started):
    window, operator = started
    window.turn_until(operator, lambda: session.job().recording)
    assert bpy.ops.poise.cancel() == {"FINISHED"}
    assert window.send(operator) == {"CANCELLED"}
    assert_left(window)


def test_timers_of_others_do_not_turn_the_job(started):
    window, operator = started
    steps = []
    session.job().step = steps.append
    for _ in range(20):
        assert window.send(operator, own=False) == {"PASS_THROUGH"}
    assert steps == []
    for _ in range(20):
        window.send(operator)
    assert steps


def test_a_turn_works_or_has_the_window_drawn(started, monkeypatch):
    window, operator = started
    did = []
    session.job().step = lambda _budget: did.append("works")
    for name in ("redraw_views", "redraw_sidebars", "redraw_editors"):
        monkeypatch.setattr(redrawing, name, lambda: did.append("draws"))
    monkeypatch.setattr(modal, "redraw_sidebars", lambda: did.append("draws"))
    before = 0
    for _ in range(20):
        window.send(operator)
        assert len(did) == before + 1
        before = len(did)
        session.job().progress += 0.01
    assert set(did) == {"works", "draws"}


def test_no_turn_draws_more_than_one_part_of_the_window(monkeypatch):
    drawn, now = [], 0.0
    for name in ("views", "sidebars", "editors"):
        monkeypatch.setattr(redrawing, f"redraw_{name}", functools.partial(drawn.append, name))
    monkeypatch.setattr(redrawing, "time", SimpleNamespace(monotonic=lambda: now))
    parts = redrawing.Parts()
    for pause, expected in (
        (1 / 32, ["views", "sidebars", *["views"] * 6, "editors", *["views"] * 3]),
        (0.3, ["sidebars", "views", "editors", "views"] * 3),
    ):
        for _ in range(12):
            now += pause
            parts.draw()
        assert drawn == expected
        drawn.clear()


def test_modal_ended_by_blender(started):
    window, operator = started
    operator.cancel(window)
    assert_left(window)


def test_modal_error(started, armature):
    window, operator = started
    window.turn_until(operator, lambda: session.job().recording)
    name, armature.name = armature.name, "Somebody"
    while (outcome := window.send(operator)) == {"PASS_THROUGH"}:
        pass  # a turn may but draw
    assert outcome == {"CANCELLED"}
    assert_left(window)
    kind, message = operator.reports[-1]
    assert kind == "ERROR"
    armature.name = name
    assert result(armature).error == message


@pytest.mark.parametrize("reading_back", [False, True])
def test_escape_while_the_keys_are_made_leaves_no_bake(window, armature, reading_back):
    bpy.ops.poise.simulate()
    before = state(armature)
    operator = window.begin(operators.POISE_OT_bake)
    there = len(before["actions"]) + reading_back
    window.turn_until(operator, lambda: len(bpy.data.actions) == there)
    assert session.job().doing == "baking"
    assert window.send(operator, "ESC") == {"CANCELLED"}
    assert_left(window)
    assert state(armature) == before
    assert "as it was" in operator.reports[-1][1]


def test_escape_while_the_bake_is_compared_keeps_it(window, armature):
    bpy.ops.poise.simulate()
    before = state(armature)
    operator = window.begin(operators.POISE_OT_bake)
    window.turn_until(operator, lambda: session.job().doing == "comparing")
    assert window.send(operator, "ESC") == {"FINISHED"}
    assert_left(window)
    assert len(state(armature)["actions"]) == len(before["actions"]) + 1
    assert "comparison" in operator.reports[-1][1]


def test_a_bake_of_a_fall_says_where_it_ends(window, armature, import_clip, draw_panels):
    """And stays there: the animation, in which nothing falls, would be a jump away."""
    bpy.data.objects.remove(armature)
    armature = import_clip("side_kick")
    bpy.context.scene.poise.armature = armature
    bpy.context.scene.poise.method = "BALANCE"
    bpy.ops.poise.simulate()
    shot = result(armature).shot
    assert not shot.recording.success
    fell, last = shot.fell_frame, shot.reading.frames[-1]
    operator = window.begin(operators.POISE_OT_bake)
    while window.send(operator) == {"PASS_THROUGH"}:
        pass
    (words,) = (text for _, text in operator.reports if "The bake ends" in text)
    assert f"at frame {fell:g}, as the result does: the animation goes on to {last:g}" in words
    assert words in draw_panels(panels.CLASSES, armature).replace("\n", " ")
    assert bpy.ops.poise.delete_bake() == {"FINISHED"}
    assert "The bake ends" not in draw_panels(panels.CLASSES, armature)


@pytest.mark.parametrize("longer", [False, True])
def test_a_bake_that_goes_on_beyond_the_scene_says_so(window, armature, longer):
    bpy.ops.poise.simulate()
    last = result(armature).shot.reading.frames[-1]
    bpy.context.scene.frame_end = int(last) - longer
    operator = window.begin(operators.POISE_OT_bake)
    while window.send(operator) == {"PASS_THROUGH"}:
        pass
    told = [text for _, text in operator.reports if "lengthen the scene" in text]
    assert len(told) == longer and (not told or f"frame {last:g}" in told[0])


def test_a_bake_says_that_keys_were_changed_since_the_simulation(window, armature):
    source, slot = compat.assigned(armature)

    def told():
        operator = window.begin(operators.POISE_OT_bake)
        while window.send(operator) == {"PASS_THROUGH"}:
            pass
        return any("changed since then: Keys" in text for _, text in operator.reports)

    bpy.ops.poise.simulate()
    assert [told(), told()] == [False, False], "also while a bake is shown"
    key = compat.curves(source, slot)[5].keyframe_points[7]
    before, key.co.y = key.co.y, key.co.y + 0.01
    assert told()
    key.co.y = before
    assert not told(), "it was undone"
    key.co.y += 0.01
    bpy.ops.poise.simulate()
    assert not told()


def _move_a_key(armature):
    curve = compat.curves(*compat.assigned(armature))[5]
    curve.keyframe_points[7].co.y += 0.01


def _move_a_joint(armature):
    bpy.context.view_layer.objects.active = armature
    with bpy.context.temp_override(active_object=armature, object=armature):
        bpy.ops.object.mode_set(mode="EDIT")
        armature.data.edit_bones[5].tail.z += 0.01
        bpy.ops.object.mode_set(mode="OBJECT")


def _constrain(armature):
    armature.pose.bones[5].constraints.new("LIMIT_ROTATION")


def _mute_a_curve(armature):
    compat.curves(*compat.assigned(armature))[5].mute = True


def _shake(armature):
    compat.curves(*compat.assigned(armature))[5].modifiers.new("NOISE")


def _step(armature):
    for point in compat.curves(*compat.assigned(armature))[5].keyframe_points:
        point.interpolation = "CONSTANT"


def _pose(armature):
    bone = armature.pose.bones[5]
    bone.scale.x = 1.1
    assert f'pose.bones["{bone.name}"].scale' not in {
        curve.data_path for curve in compat.curves(*compat.assigned(armature))
    }


def _switch(armature):
    armature.pose.bones[5]["IK_FK"] = 1.0


def _drive(armature):
    armature.pose.bones[5].driver_add("scale", 1).driver.expression = "1.2"


def _add_a_strip(armature):
    action, _ = compat.new_action(armature.name)
    track = armature.animation_data.nla_tracks.new()
    track.strips.new("more", 1, action)


_ALWAYS = (
    (_move_a_key, "Keys"),
    (_mute_a_curve, "Keys"),
    (_shake, "Keys"),
    (_step, "Keys"),
    (_move_a_joint, "Rest Pose"),
)
#: What a bake switches and keys, so that it is not compared once there is one.
_UNBAKED = (
    (_pose, "Pose"),
    (_switch, "Pose"),
    (_constrain, "Bone Constraints"),
    (_drive, "Drivers"),
    (_add_a_strip, "NLA Strips"),
)


@pytest.mark.parametrize(
    ("change", "name", "baked"),
    [(*one, False) for one in _ALWAYS + _UNBAKED] + [(*one, True) for one in _ALWAYS],
)
def test_the_panel_says_what_of_the_source_has_changed(armature, draw_panels, change, name, baked):
    bpy.ops.poise.simulate()
    if baked:
        bpy.ops.poise.bake()
        assert "Changed since then" not in draw_panels(panels.CLASSES, armature)
        bpy.ops.poise.show(which="source")
    assert "Changed since then" not in draw_panels(panels.CLASSES, armature)
    change(armature)
    result(armature).lately = None  # there is a lull between two looks
    shown = " ".join(draw_panels(panels.CLASSES, armature).split())
    assert re.search(f"Changed since then, so simulate again: (Pose, )?{name}", shown)
    if change is not _mute_a_curve:  # which is refused
        bpy.ops.poise.simulate()
        assert "Changed since then" not in draw_panels(panels.CLASSES, armature)


def test_what_takes_long_to_look_at_is_looked_at_seldom(armature):
    bpy.ops.poise.simulate()
    lately = outdated.Lately(result(armature).settings)
    times = iter([10.0, 10.1, 15.0, 15.2, 15.3])  # [s]
    assert lately.names(armature, lambda: next(times)) == []
    _move_a_key(armature)
    assert lately.names(armature, lambda: next(times)) == [], "a look took 0.1 s: none for 5 s"
    assert lately.names(armature, lambda: next(times)) == ["Keys"]


@pytest.mark.parametrize("leave", ["finish", "escape", "ended"])
def test_an_operator_that_is_over_keeps_no_shot(started, leave):
    window, operator = started
    shot = weakref.ref(session.job().shot)
    if leave == "ended":
        operator.cancel(window)
    kind = "ESC" if leave == "escape" else "TIMER"
    while leave != "ended" and window.send(operator, kind) == {"PASS_THROUGH"}:
        pass
    session.clear()
    gc.collect()
    assert shot() is None, "Blender remembers operators, and they their shots"


def test_modal_bug_leaves_nothing_and_is_raised(started, monkeypatch):
    window, operator = started
    monkeypatch.setattr(SimulateJob, "_step", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        for _ in range(2):  # the first turn may but draw
            window.send(operator)
    assert_left(window)


def test_only_harmless_events_pass_while_the_scene_is_read(started):
    window, operator = started
    alone = {
        "Z": False,
        "X": False,
        "MOUSEMOVE": True,
        "WHEELUPMOUSE": True,
        "NUMPAD_1": True,
        "LEFTMOUSE": False,
    }
    for kind, passes in alone.items():
        expected = {"PASS_THROUGH" if passes else "RUNNING_MODAL"}
        assert window.send(operator, kind) == expected, kind
    in_sidebar = window.send(operator, "LEFTMOUSE", x=1100, y=300)
    assert in_sidebar == {"PASS_THROUGH"}
    window.turn_until(operator, lambda: session.job().recording)
    for kind in alone:
        assert window.send(operator, kind) == {"PASS_THROUGH"}, kind
    session.stop()


# --- The ghost -----------------------------------------------------------------------------------


def test_ghost_is_the_newest_sample_then_the_one_of_the_frame(armature):
    scene = bpy.context.scene
    job = new_job(armature)
    assert overlay.ghosts(scene) == []
    step_until(job, lambda: job.recording and len(job.recording) > 20)
    assert overlay.ghosts(scene) == [(job.shot, len(job.recording) - 1)]
    job.run()
    for frame, sample in ((-5, 0), (1, 0), (40, 39), (102, 101), (500, 101)):
        scene.frame_set(frame)
        assert overlay.ghosts(scene) == [(job.shot, sample)]
    armature.name = "Somebody"
    assert overlay.ghosts(scene) == [(job.shot, sample)]
    bpy.data.objects.remove(armature)
    assert overlay.ghosts(scene) == []


def test_ghost_makes_room_for_the_bake(armature):
    job = new_job(armature)
    job.run()
    scene = bpy.context.scene
    assert not overlay.is_baked(scene, job.shot)
    bpy.ops.poise.bake()
    assert overlay.is_baked(scene, job.shot)
    bpy.ops.poise.show(which="source")
    assert not overlay.is_baked(scene, job.shot)


def test_an_action_that_is_renamed_is_baked_all_the_same(armature, draw_panels):
    """Nor is the simulation out of date; a bake of it is known by the action itself."""
    assert bpy.ops.poise.simulate() == {"FINISHED"}
    action, slot = compat.assigned(armature)
    action.name = "Take seven"
    if slot is not None:
        slot.name_display = "Hero"
    assert "Changed since then" not in draw_panels(panels.CLASSES, armature)
    assert result(armature).shot.reading.action == "Take seven"
    assert bpy.ops.poise.bake() == {"FINISHED"}
    assert bake_target.bakes_of(armature) == [compat.assigned(armature)]
    assert bpy.ops.poise.show(which="source") == {"FINISHED"}
    assert compat.assigned(armature) == (action, slot)
    bpy.data.actions.remove(action)
    assert result(armature).shot.reading.action == "Take seven", "undo may bring it back"


def test_ghost_stands_where_the_body_is(armature):
    new_job(armature).run()
    shot = result(armature).shot
    points, normals, colours = overlay.posed(shot, 0, np.zeros(3), overlay.colours_of_ghosts())
    assert points.shape == normals.shape
    assert len(colours) == len(points)
    assert np.allclose(np.linalg.norm(normals, axis=1), 1, atol=1e-6)
    ground, height = shot.character.ground, shot.character.height
    assert points[:, 2].min() == pytest.approx(ground, abs=0.03)
    assert points[:, 2].max() == pytest.approx(ground + height, abs=0.15 * height)
    pelvis = np.array(armature.matrix_world @ armature.pose.bones["Hips"].head)
    assert np.linalg.norm(points.mean(0)[:2] - pelvis[:2]) < 0.2
    touching = shot.recording.contacts[0]
    assert (colours == overlay.colours_of_ghosts()[1]).all(1).any() == touching.any()
    sample = len(shot.recording) - 1
    assert shot.recording.contacts[sample].all()
    _, _, colours = overlay.posed(shot, sample, np.zeros(3), overlay.colours_of_ghosts())
    solid = len(colours) // len(shot.character.shapes)
    shown = (colours == overlay.colours_of_ghosts()[1]).all(1).reshape(-1, solid).all(1)
    marked = {shape.segment for shape, on in zip(shot.character.shapes, shown, strict=True) if on}
    assert marked == {"foot_l", "toe_l", "foot_r", "toe_r"}
    aside = overlay.aside(shot.reading.motion, 2.0)
    moved, *_ = overlay.posed(shot, 0, aside, overlay.colours_of_ghosts())
    assert np.linalg.norm(aside) == pytest.approx(2.0)
    assert np.allclose(moved - points, aside / shot.reading.metres_per_unit)


@pytest.mark.parametrize(
    ("kind", "size", "half", "volume"),
    [
        ("sphere", (0.5,), (0.5, 0.5, 0.5), 4 / 3 * np.pi * 0.125),
        ("capsule", (0.1, 0.6), (0.1, 0.1, 0.4), np.pi * 0.01 * (0.6 + 4 / 30)),
        ("box", (0.3, 0.2, 0.1), (0.3, 0.2, 0.1), 8 * 0.3 * 0.2 * 0.1),
    ],
)
def test_solids_are_closed_and_of_their_size(kind, size, half, volume):
    points, normals = overlay.solid(kind, size)
    assert np.allclose(points.max(0), half)
    assert np.allclose(points.min(0), np.negative(half))
    triangles = overlay.triangles(2)
    assert triangles.max() == 2 * len(points) - 1
    a, b, c = points[triangles[: len(triangles) // 2]].swapaxes(0, 1)
    # A closed surface that faces outwards encloses a positive volume.
    enclosed = (a * np.cross(b, c)).sum() / 6
    assert 0.85 * volume < enclosed < volume
    across = np.cross(b - a, c - a)
    facing = (across * normals[triangles[: len(triangles) // 2, 0]]).sum(1)
    assert (facing >= -1e-12).all()


# --- The panels ----------------------------------------------------------------------------------


class Layout:
    """Takes down what a panel draws; refuses properties and operators that do not exist."""

    def __init__(self, texts):
        self.__dict__.update(texts=texts)

    def prop(self, data, name, **_options):
        assert hasattr(data, name), name
        self.texts.append(name)

    def operator(self, name, **_options):
        group, verb = name.split(".")
        getattr(getattr(bpy.ops, group), verb).get_rna_type()
        self.texts.append(name)
        return SimpleNamespace()

    def label(self, text="", **_options):
        self.texts.append(text)

    def separator(self, factor):
        assert factor == 0, "nothing is seen of it"

    def progress(self, factor, text):
        assert 0 <= factor <= 1
        self.texts.append(text)

    def _part(self, **_options):
        return Layout(self.texts)

    row = column = split = box = grid_flow = _part


class Drawn:
    """A context that panels can draw in: the sidebar 260 pixels wide."""

    def __init__(self):
        self.region = SimpleNamespace(width=260)
        self.preferences = SimpleNamespace(system=SimpleNamespace(ui_scale=1.0))
        self.scene, self.active_object = bpy.context.scene, bpy.context.active_object
        self.selected_objects = list(bpy.context.selected_objects)
        self.screen = SimpleNamespace(is_animation_playing=False)


def drawn():
    """All that the panels of the full mode show now, as one text."""
    bpy.context.scene.poise.mode = "FULL"
    texts, context = [], Drawn()
    armature, reason = chosen_armature(context)
    for cls in panels.CLASSES:
        poll = getattr(cls, "poll", None)
        if poll is None or cls.poll.__func__(cls, context):
            texts.append(cls.bl_label)
            cls.content(None, Layout(texts), context, armature, reason)
    return "\n".join(texts)


def test_panels_without_a_character():
    text = drawn()
    assert "no armature" in text.replace("\n", " ")
    assert "Measures" not in text


def test_panels_tell_what_to_do_with_a_linked_collection(armature, tmp_path):
    """Its instance is all that there is in the scene, as *File > Link* makes it."""
    cast, library = bpy.data.collections.new("Cast"), str(tmp_path / "library.blend")
    cast.objects.link(armature)
    bpy.data.libraries.write(library, {cast})
    bpy.data.objects.remove(armature)
    shown = bpy.data.objects.new("Hero", None)
    shown.instance_type, shown.instance_collection = "COLLECTION", cast
    bpy.context.collection.objects.link(shown)
    assert "The scene has no armature" in drawn().replace("\n", " "), "an own collection"
    with bpy.data.libraries.load(library, link=True) as (_, linked):
        linked.collections = ["Cast"]
    shown.instance_collection = linked.collections[0]
    text = drawn().replace("\n", " ")
    assert "'Hero' shows a character of another file" in text and "Library Override > Make" in text
    assert not bpy.ops.poise.simulate.poll()


def test_panels_from_first_look_to_bake(armature):
    text = drawn()
    assert "CMU" in text
    assert "bone names" in text
    assert "1 to 102" in text
    job = new_job(armature)
    step_until(job, lambda: job.recording and len(job.recording) > 2)
    text = drawn()
    assert "poise.cancel" in text
    assert "of 1.68 s" in text
    assert "real time" in text
    job.run()
    text = drawn()
    assert "Keeper: 1.68 s" in text
    assert re.search(r"\d+\.\d kg", text)
    assert "poise.show" not in text
    bpy.ops.poise.bake()
    text = drawn()
    assert "After" in text
    assert "poise.show" in text


def test_the_range_is_of_the_source_while_a_bake_is_shown(armature):
    bpy.ops.poise.simulate()
    bpy.ops.poise.bake()
    baked, slot = compat.assigned(armature)
    for curve in compat.curves(baked, slot):
        curve.keyframe_points.insert(300, 0.0)
    assert "1 to 102" in drawn()
    bpy.ops.poise.generate_pushes(force=60.0)
    assert max(push.frame for push in bpy.context.scene.poise.pushes.items) < 102


@pytest.mark.skipif(not compat.HAS_SLOTS, reason="actions have slots from Blender 4.4 on")
def test_bake_into_a_chosen_action(armature):
    chosen = bpy.data.actions.new("Shared")
    bpy.context.scene.poise.action = chosen
    bpy.ops.poise.simulate()
    bpy.ops.poise.bake()
    action, slot = compat.assigned(armature)
    assert action == chosen
    assert compat.curves(action, slot)


def test_panels_tell_what_cannot_be_measured(armature):
    bpy.ops.poise.simulate()
    bpy.ops.poise.bake()
    shot = result(armature).shot
    shot.measures["foot_slide"] = (None, None)
    assert "–" in drawn()


def test_help_in_getting_up_is_among_the_measures(import_clip, monkeypatch):
    armature = import_clip("stand")
    bpy.ops.poise.simulate()
    assert "0 N" in drawn().split("Help from outside")[1].split("On edges")[0]
    told = result(armature).summary | {"help": {"mean": 74.2, "most": 200.0}}
    monkeypatch.setitem(vars(result(armature)), "summary", told)
    assert "74 N" in drawn().split("Help from outside")[1].split("On edges")[0]


def test_panels_tell_a_guessed_scale(import_clip):
    import_clip("stand", global_scale=1.0)
    bpy.ops.poise.inspect()
    assert "1 unit = 0.05644 m" in drawn() and "guessed by the size" in drawn()


def test_panels_after_a_fall_and_an_error(import_clip):
    armature = import_clip("side_kick")
    new_job(armature).run()
    recording = result(armature).recording
    assert not recording.success
    shown = drawn().replace("\n", " ")
    assert recording.why() == result(armature).shot.flaws[0].sentence
    assert "poise.show_flaw" in shown
    session.complain(session.uids(bpy.context.scene, armature), "Something is wrong.")
    assert "Something is wrong." in drawn().replace("\n", " ")


def test_panels_for_an_unknown_rig(import_clip):
    import_clip("stand", rename=True)
    assert "at the first reading" in drawn()
    bpy.ops.poise.inspect()
    assert "geometry (detected)" in drawn()
    bpy.context.scene.poise.rig = "nobody's rig"
    assert "nobody's rig" in drawn()


def test_garbage_is_sought_in_all_again_once_a_job_is_over(armature):
    gc.unfreeze()
    job = new_job(armature)
    assert gc.get_freeze_count() > 0
    job.cancel()
    assert gc.get_freeze_count() == 0


@pytest.mark.parametrize("cost", [0.004, 0.01, 0.1])
def test_drawing_takes_at_most_a_quarter_of_the_time(monkeypatch, cost):
    now, drawn = 1.0, 0
    monkeypatch.setattr(modal, "time", SimpleNamespace(perf_counter=lambda: now))
    operator = modal.JobOperator()
    operator._job = SimpleNamespace(waits=False)
    while now < 21.0:
        operator._begin_turn()
        now += modal.BUDGET
        draws = operator.may_draw()
        drawn += draws
        now += max(modal.PERIOD, cost * draws)
    most = 20.0 * min(modal.RATE, modal.SHARE / cost)
    assert 0.7 * most < drawn <= most + 1


def test_a_stage_without_progress_does_not_hold_up_drawing(monkeypatch):
    now = 1.0
    monkeypatch.setattr(modal, "time", SimpleNamespace(perf_counter=lambda: now))
    operator = modal.JobOperator()
    operator._job = SimpleNamespace(waits=False)
    assert operator.may_draw()
    while now < 2.0:
        now += modal.PERIOD
        operator._begin_turn()
    assert operator.may_draw()


def test_what_takes_blender_long_begins_a_turn_of_its_own(armature):
    """Else its work, ours and the drawing of the window would come on top of each other."""
    seen = []

    def stage():
        for share in (0.1, LastOfTurn(0.2), 0.3, 0.4):
            seen.append(share)
            yield share

    shot = Shot(bpy.context.scene, ShotOptions())
    work = job_module.Job(shot, [("dreaming", stage()), ("waking", stage())])
    turns = []
    while not work.step(60.0):
        turns.append(len(seen))
    assert turns == [0, 2, 4, 6]


def test_mere_progress_is_drawn_less_often(monkeypatch):
    now, drawn = 1.0, 0
    monkeypatch.setattr(modal, "time", SimpleNamespace(perf_counter=lambda: now))
    operator = modal.JobOperator()
    operator._job = SimpleNamespace(waits=False)
    while now < 21.0:
        operator._begin_turn()
        now += modal.BUDGET
        drawn += operator.may_draw(modal.PROGRESS_RATE)
    assert 0.9 * 20.0 * modal.PROGRESS_RATE < drawn <= 20.0 * modal.PROGRESS_RATE + 1


def test_others_are_looked_at_less_often_than_turns_come(monkeypatch):
    now = 1.0
    monkeypatch.setattr(modal, "time", SimpleNamespace(perf_counter=lambda: now))
    operator = modal.JobOperator()
    turns = {}
    for waits in (False, True):
        operator._job = SimpleNamespace(waits=waits)
        turns[waits] = 0
        for _ in range(200):
            now += modal.PERIOD
            turns[waits] += operator._begin_turn()
    assert turns[False] == 200 and 40 <= turns[True] <= 50

# SPDX-License-Identifier: GPL-3.0-or-later
"""Rectification in Blender without a window: the job turned by hand, the operator with a stand-in
for the window, the panels with a stand-in for the layout.

The searches are real, but as small as can be, of half a second of a walk, in this process."""

import json
import re
from types import SimpleNamespace

import bpy
import numpy as np
import pytest
from helpers.jobs import BUDGET, Pool, finish, step_until

import poise
from poise.addon.blender import checkpoints, compat, session
from poise.addon.jobs import modal
from poise.addon.operators import rectify as operators
from poise.addon.operators import simulate
from poise.addon.rigs import bake_target
from poise.addon.settings import method, properties
from poise.addon.shots import outdated
from poise.addon.shots import rectify as settings_of_rectify
from poise.addon.shots.shot import Shot
from poise.addon.sidebar import panels, rectify_panel
from poise.controller.checks.verdict import Verdict
from poise.controller.exceptions import ExecutorError, PoiseError
from poise.controller.search import rectification

pytestmark = pytest.mark.once

FRAMES = 31  # five nodes


@pytest.fixture(autouse=True)
def registered(blender, monkeypatch, tmp_path):
    """Poise as Blender has it when it is enabled, with a folder of its own and small searches."""
    monkeypatch.setattr(checkpoints, "folder", lambda: tmp_path)
    monkeypatch.setattr(operators, "WorkerPool", Pool)
    monkeypatch.setattr(Pool, "open", 0)
    small = rectification.Preset(population=6, generations=1, free=1, horizon=1)
    monkeypatch.setitem(rectification.PRESETS, "draft", small)
    monkeypatch.setattr(rectification, "_GOOD", 0.0)  # no window is good enough unsearched
    monkeypatch.setattr(settings_of_rectify, "_LOOK_AGAIN", 0.0)
    poise.register()
    yield
    poise.unregister()
    assert Pool.open == 0, "a pool was left open"


@pytest.fixture
def armature(import_clip):
    """A walk, the first half second of which is rectified."""
    return prepared(import_clip("walk"))


@pytest.fixture
def squat(import_clip):
    """What stands by balance alone."""
    return prepared(import_clip("squat"))


def prepared(armature):
    bpy.context.scene.frame_set(20)
    settings = bpy.context.scene.poise
    settings.frames, settings.first_frame, settings.last_frame = "CUSTOM", 1, FRAMES
    settings.rectification.preset = "DRAFT"
    return armature


def scene_settings():
    return bpy.context.scene.poise


def new_job(armature, **options):
    """A rectification that is at work."""
    shot_options = properties.shot_options(bpy.context, armature)
    job = operators.RectifyJob(bpy.context.scene, shot_options, 1, **options)
    job.start()
    return job


def nodes(job):
    return 0 if job is None or job.search is None else len(job.search.nodes)


def result(armature):
    return session.result_of(bpy.context.scene, armature)


def places(recording):
    return recording.body_positions.copy()


def action_names():
    return sorted(action.name for action in bpy.data.actions)


def rectified(armature):
    """The finished result of a rectification."""
    assert bpy.ops.poise.rectify() == {"FINISHED"}
    return result(armature).shot


@pytest.fixture
def drawn(draw_panels):
    """drawn(armature) -> all that the panels of rectification show now, as one text."""
    classes = (panels.POISE_PT_simulate, *rectify_panel.CLASSES)
    return lambda armature: draw_panels(classes, armature).replace("\n", " ")


# --- The job and what it leaves ------------------------------------------------------------------


def test_rectify_gives_a_result_like_a_simulation(armature, tmp_path):
    assert not bpy.ops.poise.bake.poll()
    shot = rectified(armature)
    assert action_names() == ["walk"]
    assert bpy.context.scene.frame_current == 20
    assert shot.rectified.ended == "done" and shot.rectified.reached == pytest.approx(0.5)
    assert len(result(armature).recording) == FRAMES
    assert result(armature).recording is shot.rectified.recording
    assert not list(tmp_path.glob("*.json")), "nothing to resume is left"
    assert bpy.ops.poise.bake() == {"FINISHED"}
    report = shot.report()
    assert report["frames"] == [1, FRAMES] and report["success"] is True and report["why"] == ""
    assert report["rectification"]["evaluations"] >= 5 * 7
    assert 0 < report["real_time_factor"] < 100, "of the search, not of a simulation"
    json.dumps(report, allow_nan=False)


@pytest.mark.slow(captured=False)
def test_the_bake_is_what_was_rectified(armature):
    shot = rectified(armature)
    bpy.ops.poise.bake()
    assert shot.baked.error_mm < 0.02
    expected = shot.recording.joints()[-1, 0] - shot.simulation.reference.raw.joints[FRAMES - 1, 0]
    hips = shot.reading.rig_map.bones["pelvis"][-1]
    heads = []
    for which in ("source", "baked"):
        bpy.ops.poise.show(which=which)
        bpy.context.scene.frame_set(FRAMES)
        heads.append(np.array((armature.matrix_world @ armature.pose.bones[hips].matrix)[:3])[:, 3])
    moved = (heads[1] - heads[0]) * shot.reading.metres_per_unit
    assert moved == pytest.approx(expected, abs=1e-4)
    assert np.linalg.norm(expected) > 1e-4, "it has moved at all"


@pytest.mark.slow(captured=False)
def test_stopped_is_kept_and_resumed_exactly(armature, tmp_path):
    whole = places(rectified(armature).recording)
    bpy.ops.poise.discard()
    job = new_job(armature)
    step_until(job, lambda: nodes(job) == 2)
    job.stop_searching()
    finish(job)
    assert Pool.open == 0 and session.job() is None
    shot = result(armature).shot
    assert shot.rectified.ended == "stopped" and len(shot.recording) == 13
    assert "Stopped at 0.20 of 0.50 s (frame 13)" in shot.why
    assert bpy.ops.poise.bake() == {"FINISHED"}
    assert shot.baked.frames == (1, 13)
    (path,) = tmp_path.glob("rectify_*.json")
    job = new_job(armature)
    step_until(job, lambda: job.search is not None)
    assert job.resumed_at == pytest.approx(0.2)
    finish(job)
    assert np.array_equal(places(result(armature).recording), whole)
    assert not path.exists()


def test_discard_leaves_what_was_there(armature):
    scene_settings().method = "BALANCE"
    bpy.ops.poise.simulate()
    before = result(armature).shot
    job = new_job(armature)
    step_until(job, lambda: nodes(job) == 2)
    assert bpy.ops.poise.discard_rectified() == {"FINISHED"}
    assert session.job() is None and Pool.open == 0
    assert result(armature).shot is before and before.rectified is None


def test_keep_ends_at_the_next_turn(armature):
    job = new_job(armature)
    assert not bpy.ops.poise.keep_rectified.poll(), "it is still reading"
    step_until(job, lambda: nodes(job) == 2)
    assert bpy.ops.poise.keep_rectified.poll()
    recording, job.search.recording = job.search.recording, ()
    assert not bpy.ops.poise.keep_rectified.poll(), "resumed, but not shown yet"
    job.search.recording = recording
    assert bpy.ops.poise.keep_rectified() == {"FINISHED"}
    finish(job)
    assert result(armature).shot.rectified.ended == "stopped"
    assert not bpy.ops.poise.keep_rectified.poll()
    assert not bpy.ops.poise.discard_rectified.poll()


def test_stopped_before_anything_was_reached_changes_nothing(armature):
    job = new_job(armature)
    step_until(job, lambda: job.doing == "measuring the body")
    job.cancel()
    assert result(armature).shot is None
    assert Pool.open == 0


def test_budget_ends_it_with_what_it_has(armature, monkeypatch):
    settings = scene_settings().rectification
    settings.budget = 1.0
    assert settings_of_rectify.rectify_settings(settings).budget == 60.0
    job = new_job(armature)
    step_until(job, lambda: nodes(job) == 1)
    monkeypatch.setattr(job.search, "wall", 61.0)
    finish(job)
    shot = result(armature).shot
    assert shot.rectified.ended == "budget"
    assert shot.why.startswith("The budget ran out at 0.10 of 0.50 s")


def test_budget_that_ends_before_the_first_node_is_told(armature, monkeypatch):
    scene_settings().rectification.budget = 1.0
    job = new_job(armature)
    step_until(job, lambda: job.search is not None)
    monkeypatch.setattr(job.search, "wall", 61.0)
    with pytest.raises(PoiseError, match=r"The budget ran out at 0\.00"):
        finish(job)
    assert session.job() is None
    assert result(armature).recording is None


def test_lost_workers_lose_nothing(armature, monkeypatch):
    job = new_job(armature)
    step_until(job, lambda: nodes(job) == 2)

    def lost(*_):
        raise ExecutorError("The workers are gone.")

    monkeypatch.setattr(job.search, "poll", lost)
    with pytest.raises(ExecutorError):
        finish(job)
    assert session.job() is None and Pool.open == 0
    assert result(armature).shot is None
    job = new_job(armature)
    step_until(job, lambda: job.search is not None)
    assert job.resumed_at == pytest.approx(0.2)
    job.cancel()


def test_a_damaged_checkpoint_is_no_hindrance(armature, tmp_path):
    job = new_job(armature)
    step_until(job, lambda: nodes(job) == 1)
    job.cancel()
    (path,) = tmp_path.glob("rectify_*.json")
    path.write_text("{")
    job = new_job(armature)
    step_until(job, lambda: job.search is not None)
    assert "damaged" in job.warning and job.resumed_at is None
    job.cancel()


@pytest.mark.slow(captured=False)
def test_other_settings_begin_anew(armature, tmp_path):
    job = new_job(armature)
    step_until(job, lambda: nodes(job) == 2)
    job.cancel()
    scene_settings().rectification.seed = 5
    job = new_job(armature)
    step_until(job, lambda: nodes(job) == 1)
    assert job.resumed_at is None
    job.cancel()
    assert len(list(tmp_path.glob("rectify_*.json"))) == 2
    assert bpy.ops.poise.forget_rectification() == {"FINISHED"}
    assert not list(tmp_path.glob("rectify_*.json"))
    assert not bpy.ops.poise.forget_rectification.poll()


def test_without_a_folder_it_goes_on(armature, monkeypatch):
    def none():
        raise checkpoints.CheckpointError("No room.")

    monkeypatch.setattr(checkpoints, "folder", none)
    job = new_job(armature)
    step_until(job, lambda: nodes(job) == 1)
    assert "No room." in job.warning
    job.cancel()


def test_a_clip_at_a_wrong_frame_rate_is_told_while_it_is_searched(import_clip, drawn):
    armature = import_clip("walk")
    bpy.context.scene.render.fps = 24  # it has 60
    bpy.context.scene.poise.method = "RECTIFY"
    job = new_job(armature)
    step_until(job, lambda: job.search is not None)
    assert job.warning.startswith("The clip may be timed otherwise: ")
    assert job.warning in drawn(armature)
    job.cancel()


def test_armature_that_goes_away(armature):
    job = new_job(armature)
    step_until(job, lambda: nodes(job) == 1)
    bpy.data.objects.remove(armature)
    with pytest.raises(PoiseError, match="deleted or renamed while Poise was rectifying"):
        job.step(BUDGET)
    assert session.job() is None and Pool.open == 0


def test_another_file_ends_it(armature):
    job = new_job(armature)
    step_until(job, lambda: nodes(job) == 1)
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    assert session.job() is None and Pool.open == 0


# --- The ghost -----------------------------------------------------------------------------------


def test_the_committed_part_plays(armature, monkeypatch):
    job = new_job(armature)
    step_until(job, lambda: nodes(job) == 2)
    now, shown = [job._began], []
    with monkeypatch.context() as patch:
        patch.setattr(operators.time, "perf_counter", lambda: now[0])
        for _ in range(60):
            shot, sample = job.ghost()
            assert shot is job.shot
            shown.append(sample)
            now[0] += 1 / 60 + 1e-6
    assert shown[:13] == list(range(13)), "in real time"
    assert set(shown[13:43]) == {12}, "it rests at the end"
    assert shown[43:50] == list(range(7)), "and begins again"
    scene_settings().rectification.play = False
    assert job.ghost() == (job.shot, None), "the current frame"
    job.cancel()


# --- The method ----------------------------------------------------------------------------------


def checked(monkeypatch, recommend):
    """Let the clip check say something else."""
    verdict = f"{recommend.capitalize()}: so it says"
    found = SimpleNamespace(recommend=recommend, verdict=verdict, mends=(), doubts=())
    monkeypatch.setattr(Shot, "check", lambda _: found)


def test_automatic_lets_a_squat_be_balanced(squat):
    assert scene_settings().method == "AUTO"
    assert bpy.ops.poise.simulate() == {"FINISHED"}
    shot = result(squat).shot
    assert shot.choice.method == "balance" and "Balance alone will do" in shot.choice.why
    assert shot.rectified is None and shot.recording.success
    automatic = places(shot.recording)
    scene_settings().method = "BALANCE"
    bpy.ops.poise.simulate()
    assert result(squat).shot.choice is None
    assert np.array_equal(places(result(squat).recording), automatic)


def test_what_balance_alone_was_to_do_is_told_as_tried_where_it_is_no_keeper(squat, monkeypatch):
    monkeypatch.setattr(Verdict, "keeper", property(lambda _: False))
    bpy.ops.poise.simulate()
    why = result(squat).shot.choice.why
    assert why.startswith("Balance alone was tried: by itself it stays in place")
    assert "will do" not in why


def test_automatic_rectifies_a_walk_that_balance_does_not_keep(armature, monkeypatch):
    scene_settings().last_frame = 70
    scene_settings().help_if_needed = False
    monkeypatch.setattr(method, "not_kept", lambda _shot: "It slides.")
    job = new_job(armature, choosing=True)
    step_until(job, lambda: nodes(job) == 1)
    choice = job.shot.choice
    assert choice.method == "rectify" and "It slides." in choice.why
    assert "leaves its place" in choice.why
    job.cancel()


@pytest.fixture
def jump(import_clip, monkeypatch):
    """What would not be kept by balance alone, as these tests have it."""
    monkeypatch.setattr(method, "not_kept", lambda _shot: "It slides.")
    bpy.context.scene.poise.rectification.preset = "DRAFT"
    return import_clip("jump")


def test_automatic_tries_help_from_outside_before_a_search(jump, monkeypatch):
    monkeypatch.setattr(Verdict, "keeper", property(lambda _: True))
    assert bpy.ops.poise.simulate() == {"FINISHED"}
    shot = result(jump).shot
    assert shot.rectified is None and shot.recording.success
    assert shot.choice.method == "balance"
    assert shot.choice.why.endswith(" With help from outside it is kept.")
    force = np.linalg.norm(shot.recording.residual[:, :3], axis=1)
    weight = 9.81 * shot.character.mass
    assert 0.01 < force.mean() / weight < force.max() / weight < 0.501
    now = properties.shot_options(bpy.context, jump)
    assert (
        outdated.changed(result(jump).settings, outdated.settings_of(bpy.context.scene, jump, now))
        == []
    ), "it is what is asked for"
    assert shot.recording.outside.startswith("Help from outside: ")
    assert shot.report()["outside_help"] == 0.5


def test_where_help_from_outside_will_not_do_either_the_search_follows(jump, monkeypatch):
    monkeypatch.setattr(Verdict, "keeper", property(lambda _: False))
    job = new_job(jump, choosing=True)
    step_until(job, lambda: nodes(job) == 1)
    shot = job.shot
    assert shot.choice.method == "rectify" and shot.options.outside_help == 0
    told = [tried.told[False] for tried in method.HELPS]
    assert len(told) == 2 and shot.choice.why.endswith(" " + " ".join(told))
    assert shot.simulation.settings.outside_help == 0 and not shot.simulation.recording.outside
    job.cancel()


@pytest.mark.slow(captured=False)
@pytest.mark.parametrize("better", [True, False])
def test_the_best_of_what_is_not_kept_is_the_result(jump, monkeypatch, better):
    """By balance alone, with help, or rectified, which comes out as balance alone here."""
    monkeypatch.setattr(Verdict, "keeper", property(lambda _: False))
    job = new_job(jump, choosing=True)
    step_until(job, lambda: nodes(job) == 1)
    job.cancel()
    shot = job.shot
    assert shot.helped.recording.success and shot.helped.recording.outside
    helped = shot.helped.judge()
    monkeypatch.setattr(
        Verdict, "score", property(lambda v: (2.0 if better else 0.0) if v is helped else 1.0)
    )
    shot.rectified = None
    method.take_better(shot)
    assert shot.choice.method == "balance"
    assert bool(shot.recording.outside) == better == bool(shot.options.outside_help)
    assert ("But it is better with it." in shot.choice.why) == better


@pytest.mark.parametrize("what", ["pushed", "not to be"])
def test_nothing_is_helped_that_is_not_to_be(jump, what):
    if what == "pushed":  # it would feel that less
        push = scene_settings().pushes.items.add()
        push.frame, push.strength = 5, 20.0
    else:
        scene_settings().help_if_needed = False
    job = new_job(jump, choosing=True)
    step_until(job, lambda: nodes(job) == 1)
    assert job.shot.choice.method == "rectify" and "outside" not in job.shot.choice.why
    job.cancel()


def test_escape_of_automatic_keeps_what_balance_did(window, armature, monkeypatch, drawn):
    scene_settings().method = "BALANCE"
    bpy.ops.poise.simulate()
    before = result(armature).shot
    scene_settings().method, scene_settings().help_if_needed = "AUTO", False
    checked(monkeypatch, "rectify")
    monkeypatch.setattr(method, "not_kept", lambda _shot: "It slides.")
    operator = window.begin(simulate.POISE_OT_simulate)
    window.turn_until(operator, lambda: nodes(session.job()) == 1)
    assert "keeps balance" in drawn(armature)
    assert window.send(operator, "ESC") == {"CANCELLED"}
    words = "Stopped: what balance alone did stays. Rectify goes on where this search stopped"
    assert operator.reports == [("INFO", words)]
    shot = result(armature).shot
    assert shot is not before and shot.rectified is None and shot.verdict is not None
    assert np.array_equal(places(shot.recording), places(before.recording))
    assert shot.choice.method == "balance" and "It slides." not in shot.choice.why
    assert shot.choice.why.endswith(" Rectifying was stopped.")
    assert not outdated.changed(
        result(armature).settings,
        outdated.settings_of(bpy.context.scene, armature, shot.options),
    )
    assert bpy.ops.poise.bake() == {"FINISHED"}


@pytest.mark.parametrize(
    "name, value, message, refusal",
    [
        (
            "balance",
            "VIRTUAL_FORCES",
            "only the balance mode Foot Forces",
            "needs the balance mode",
        ),
        ("when_it_falls", "LIMP", "to fall is not rectified", "so that it does not fall"),
        ("noise", 2.0, "motor noise cannot be rectified", "motor noise cannot be rectified"),
    ],
)
def test_what_cannot_be_rectified_is_balanced_and_says_why(
    squat, monkeypatch, name, value, message, refusal
):
    checked(monkeypatch, "rectify")
    setattr(scene_settings(), name, value)
    bpy.ops.poise.simulate()
    choice = result(squat).shot.choice
    assert choice.method == "balance" and message in choice.why
    with pytest.raises(RuntimeError, match=refusal):
        bpy.ops.poise.rectify()


def test_the_border_takes_gains_for_such_motion(squat, monkeypatch):
    checked(monkeypatch, "tune")
    bpy.ops.poise.simulate()
    shot = result(squat).shot
    assert shot.choice.gains and f"'{shot.choice.gains}'" in shot.choice.why
    assert shot.gains.name == shot.choice.gains
    assert shot.rectified is None and shot.recording.success
    assert scene_settings().gains.source == "DEFAULT", "the scene's own stay"


def test_the_border_is_rectified_where_gains_fall(squat, monkeypatch):
    checked(monkeypatch, "tune")
    push = scene_settings().pushes.items.add()
    push.name, push.frame, push.strength = "Hard", 5, 4000.0
    job = new_job(squat, choosing=True)
    step_until(job, lambda: job.search is not None)
    assert job.shot.choice.method == "rectify"
    assert "Tune: so it says." in job.shot.choice.why and "Fell at" in job.shot.choice.why
    job.cancel()


@pytest.mark.slow(captured=False)
def test_method_rectify_is_the_same_button(armature):
    scene_settings().method = "RECTIFY"
    bpy.ops.poise.simulate()
    assert result(armature).shot.rectified.ended == "done"


# --- Push here -----------------------------------------------------------------------------------


def add_push(frame, strength=60.0):
    push = scene_settings().pushes.items.add()
    push.name, push.frame, push.strength = "Push", frame, strength


@pytest.mark.slow(captured=False)
def test_push_here_keeps_the_calm_part(armature):
    assert not bpy.ops.poise.push_here.poll()
    calm = rectified(armature)
    add_push(16)
    assert bpy.ops.poise.push_here() == {"FINISHED"}
    pushed = result(armature).shot
    assert pushed is not calm and pushed.rectified.ended == "done"
    kept, found = calm.rectified.correction.offsets, pushed.rectified.correction.offsets
    assert np.array_equal(found[:3], kept[:3])
    before, after = places(calm.recording), places(pushed.recording)
    assert np.array_equal(after[:13], before[:13]), "bit for bit up to the last node before it"
    assert np.abs(after[25:] - before[25:]).max() > 1e-3
    (push,) = pushed.recording.scenario.pushes
    assert push.start == pytest.approx(15 / 60)


@pytest.mark.slow(captured=False)
def test_push_here_from_the_current_frame(armature):
    calm = rectified(armature)
    scene_settings().rectification.since = "FRAME"
    scene_settings().rectification.seed = 3
    assert bpy.context.scene.frame_current == 20
    bpy.ops.poise.push_here()
    kept = calm.rectified.correction.offsets
    found = result(armature).shot.rectified.correction.offsets
    assert np.array_equal(found[:4], kept[:4]) and not np.array_equal(found[4], kept[4])


@pytest.mark.slow
def test_a_push_that_was_stopped_is_resumed_exactly(armature, drawn):
    calm = rectified(armature)
    add_push(16)
    bpy.ops.poise.push_here()
    whole = places(result(armature).recording)
    job = new_job(armature, earlier=calm)
    step_until(job, lambda: nodes(job) == 1)
    job.cancel()
    text = drawn(armature)
    assert "Resume Push" in text and "An unfinished search" not in text
    job = new_job(armature, earlier=result(armature).shot)
    step_until(job, lambda: job.search is not None)
    assert job.resumed_at == pytest.approx(0.3)
    finish(job)
    assert np.array_equal(places(result(armature).recording), whole)
    assert "Push Here" in drawn(armature)


@pytest.mark.slow(captured=False)
@pytest.mark.parametrize(
    "change, message",
    [
        (lambda s: None, "Nothing pushes or hits the character"),
        (lambda s: setattr(s, "last_frame", 40), "have changed since it was rectified"),
    ],
)
def test_push_here_says_what_it_needs(armature, change, message):
    before = rectified(armature)
    change(scene_settings())
    with pytest.raises(RuntimeError, match=message):
        bpy.ops.poise.push_here()
    assert message in result(armature).error
    assert result(armature).shot is before
    assert session.job() is None


def test_push_here_beyond_what_was_rectified(armature):
    job = new_job(armature)
    step_until(job, lambda: nodes(job) == 2)
    job.stop_searching()
    finish(job)
    add_push(26)
    with pytest.raises(RuntimeError, match="ends at frame 13, before frame 25"):
        bpy.ops.poise.push_here()


# --- The corrected animation alone ---------------------------------------------------------------


@pytest.mark.slow
def test_the_correction_is_an_action_beside_the_others(armature):
    assert not bpy.ops.poise.bake_target.poll()
    shot = rectified(armature)
    bpy.ops.poise.bake()
    assert bpy.ops.poise.bake_target() == {"FINISHED"}
    assert action_names() == ["walk", "walk Poise", "walk Poise Target"]
    action, slot = compat.assigned(armature)
    assert action.name == "walk Poise Target"
    assert bake_target.mark_of(action, slot)["kind"] == "target"
    assert set(shot.measures) >= {name for name, *_ in panels.BAKE_ROWS}
    bpy.ops.poise.bake_target()
    bpy.ops.poise.bake()
    assert action_names() == ["walk", "walk Poise", "walk Poise Target"], "each in its own place"
    bpy.ops.poise.show(which="source")
    assert compat.assigned(armature)[0].name == "walk"


@pytest.mark.slow(captured=False)
def test_the_correction_is_the_reference_and_its_offsets(armature):
    shot = rectified(armature)
    target, reference = shot.target, shot.simulation.reference
    recording = settings_of_rectify.target_recording(shot)
    joints, _ = shot.character.pose(target)
    assert recording.joints() == pytest.approx(joints[:FRAMES], abs=1e-9)
    offsets = shot.rectified.correction.offsets
    moved = target.root[FRAMES - 1] - reference.trajectory.root[FRAMES - 1]
    assert moved == pytest.approx(offsets[-1, 15:], abs=1e-9)
    assert not np.allclose(recording.joints()[:, 0], shot.recording.joints()[:, 0], atol=1e-6)


# --- The operator in a window --------------------------------------------------------------------


@pytest.mark.slow(captured=False)
def test_escape_discards_and_says_so(window, armature):
    before = rectified(armature)
    operator = window.begin(operators.POISE_OT_rectify)
    window.turn_until(operator, lambda: nodes(session.job()) == 2)
    assert window.send(operator, "A") == {"PASS_THROUGH"}
    assert window.send(operator, "ESC") == {"CANCELLED"}
    assert window.timers == [] and Pool.open == 0
    words = "Stopped: the result is as it was. Rectify goes on where this search stopped"
    assert operator.reports == [("INFO", words)]
    assert result(armature).shot is before
    operator = window.begin(operators.POISE_OT_rectify)
    window.turn_until(operator, lambda: session.job().search is not None)
    assert session.job().resumed_at == pytest.approx(0.2)
    session.job().cancel()


def test_keep_in_the_window_says_so(window, armature):
    operator = window.begin(operators.POISE_OT_rectify)
    window.turn_until(operator, lambda: nodes(session.job()) == 2)
    bpy.ops.poise.keep_rectified()
    while session.job() is not None:
        window.send(operator)
    assert operator.reports == [("WARNING", "Stopped at 0.20 of 0.50 s")]
    assert len(result(armature).recording) == 13


def test_discard_in_the_window_says_so(window, armature):
    operator = window.begin(operators.POISE_OT_rectify)
    window.turn_until(operator, lambda: nodes(session.job()) == 1)
    bpy.ops.poise.discard_rectified()
    assert window.send(operator) == {"CANCELLED"}
    words = "Stopped: the result is as it was. Rectify goes on where this search stopped"
    assert operator.reports == [("INFO", words)]
    assert result(armature).shot is None


def test_only_reading_owns_the_scene(armature):
    job = new_job(armature, choosing=True)
    owned = {}
    while not job.step(0.0005):
        owned[job.doing] = job.owns_scene
    assert owned.pop("reading")
    assert owned and not any(owned.values())


# --- Panels --------------------------------------------------------------------------------------


@pytest.mark.slow(captured=False)
def test_panel_before_during_and_after(armature, drawn):
    text = drawn(armature)
    assert "10 CPU s a second" in text
    assert "Budget (min), 0: no limit" in text
    assert "Push Here" not in text
    job = new_job(armature)
    step_until(job, lambda: nodes(job) == 2)
    text = drawn(armature)
    assert "Rectifying: 0.20 of 0.50 s" in text
    assert "× real time" not in text
    assert "Pieces kept 2" in text and "Went back 0 ×" in text and re.search(r"0:0\d left", text)
    assert "Keep Discard" in text and "discards" in text
    job.stop_searching()
    finish(job)
    text = drawn(armature)
    assert "Resume" in text and "An unfinished search is kept" in text
    assert "Stopped at 0.20 of 0.50 s" in text
    bpy.ops.poise.rectify()
    text = drawn(armature)
    assert "Resume" not in text and "Rectified: 0.50 s" in text
    assert "Push Here Changes without Physics" in text


def test_panel_shows_the_choice(squat, drawn):
    bpy.ops.poise.simulate()
    assert "Balance alone will do: it stays in place" in drawn(squat)
    scene_settings().method = "BALANCE"
    assert "Balance alone will do" not in drawn(squat)


def test_the_result_tells_why_it_ended(armature, draw_panels):
    job = new_job(armature)
    step_until(job, lambda: nodes(job) == 1)
    job.stop_searching()
    finish(job)
    text = draw_panels((panels.POISE_PT_result,), armature).replace("\n", " ")
    assert "Stopped at 0.10 of 0.50 s (frame 7); resume it to go on." in text


def test_the_window_stays_responsive_to_escape_of_playback(window, armature):
    operator = window.begin(operators.POISE_OT_rectify)
    window.turn_until(operator, lambda: nodes(session.job()) == 1)
    window.screen = SimpleNamespace(is_animation_playing=True)
    assert window.send(operator, "ESC") == {"PASS_THROUGH"}
    assert session.job() is not None
    session.job().cancel()
    assert isinstance(operator, modal.JobOperator)

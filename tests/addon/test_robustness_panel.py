# SPDX-License-Identifier: GPL-3.0-or-later
"""Find Limit without a window: the job turned by hand, the operator with a stand-in for the
window, the panels with a stand-in for the layout. Trials ask a formula, in this process."""

from concurrent.futures import Future

import bpy
import pytest
from helpers.jobs import Pool, step_until

import poise
from poise.addon.blender import session
from poise.addon.operators import robustness as operators
from poise.addon.settings import properties
from poise.addon.shots import robustness
from poise.addon.sidebar import robustness_panel
from poise.controller.exceptions import PoiseError
from poise.controller.search.trial import Problem

#: What the stand-in for the body withstands [N].
STRENGTH = 70.0


def trial(payload, _gains, _seed):
    (magnitude,) = Problem.from_bytes(payload).disturbance.values()
    stands = magnitude <= STRENGTH
    why = (None, None) if stands else (3.0, "pose_error")
    fell = dict(zip(("fell_at", "fell_measure"), why, strict=True))
    return {"reward": 1.9 if stands else 0.3, "seconds": 20.0, "cpu": 1.0} | fell


def falling(payload, gains, seed):
    return trial(payload, gains, seed) | {
        "reward": 0.2,
        "fell_at": 0.5,
        "fell_measure": "slide_error",
    }


def bounds(_payload, _kind, angles, shares):
    return {"bounds": [[120.0] * len(angles) for _ in shares], "seconds": 0.0, "cpu": 0.0}


def withstand(_payload, _gains, _seed, _kind, _grid, _angle, _share):
    return {"limit": 90.0, "seconds": 8.0, "cpu": 0.5}


for _function in (trial, falling, bounds, withstand):
    _function.__module__ = "poise.controller.search.trial"


@pytest.fixture(autouse=True)
def registered(blender, monkeypatch):
    """Poise as Blender has it when it is enabled; trials simulate nothing."""
    monkeypatch.setattr(Pool, "open", 0)
    monkeypatch.setattr(operators, "DURATION", 1.0)
    monkeypatch.setattr(operators, "WorkerPool", Pool)
    monkeypatch.setattr("poise.controller.search.robustness.evaluate", trial)
    monkeypatch.setattr("poise.controller.search.robustness.bounds", bounds)
    monkeypatch.setattr("poise.controller.search.robustness.withstand", withstand)
    poise.register()
    yield
    poise.unregister()
    assert Pool.open == 0, "a pool was left open"


@pytest.fixture
def armature(import_clip):
    """A quiet stand, of which a little is measured."""
    armature = import_clip("stand")
    settings = bpy.context.scene.poise
    settings.frames, settings.first_frame, settings.last_frame = "CUSTOM", 1, 40
    settings.robustness.sequences, settings.robustness.phases = 2, 1
    settings.robustness.directions = 4
    return armature


def new_job(armature):
    """A measurement that is at work."""
    settings = bpy.context.scene.poise
    options = properties.shot_options(bpy.context, armature)
    job = operators.LimitJob(bpy.context.scene, options, settings.robustness, 1)
    job.start()
    return job


def rates(job):
    return 0 if job.search is None else len(job.search.rates)


def limit_of(armature):
    return session.result_of(bpy.context.scene, armature).limit


# --- The job and the operator -------------------------------------------------------------------


def test_the_operator_measures_and_remembers(armature):
    actions = {action.name: tuple(action.frame_range) for action in bpy.data.actions}
    frame = bpy.context.scene.frame_current
    assert bpy.ops.poise.find_limit() == {"FINISHED"}
    outcome = limit_of(armature)
    assert outcome.limit == 60.0 and outcome.found and outcome.ended == "measured"
    assert outcome.single == [[90.0] * 4] and outcome.settings.sequences == 2
    assert session.job() is None
    assert bpy.context.scene.frame_current == frame
    assert {a.name: tuple(a.frame_range) for a in bpy.data.actions} == actions
    # A simulation afterwards keeps it, another measurement replaces it.
    bpy.ops.poise.simulate()
    assert limit_of(armature) is outcome
    bpy.context.scene.poise.robustness.push_step = 35.0
    bpy.ops.poise.find_limit()
    assert limit_of(armature).limit == 55.0


def test_only_reading_owns_the_scene(armature):
    job = new_job(armature)
    owned = {}
    while not job.step(0.0005):
        owned[job.doing] = job.owns_scene
        assert 0 <= job.progress <= 1 and job.text
    assert owned["reading"] and not owned["measuring the body"]
    assert not owned["finding the limit"]


def test_two_at_once_are_refused(armature):
    job = new_job(armature)
    with pytest.raises(PoiseError, match="Poise is still reading: wait for it"):
        new_job(armature)
    step_until(job, lambda: rates(job) > 0)
    with pytest.raises(RuntimeError, match="finding the limit"):
        bpy.ops.poise.optimize()
    job.cancel()


def test_escape_keeps_what_is_measured(window, armature):
    operator = window.begin(operators.POISE_OT_find_limit)
    window.turn_until(operator, lambda: rates(session.job()) == 3)
    assert window.send(operator, "ESC") == {"CANCELLED"}
    assert window.timers == [] and Pool.open == 0 and session.job() is None
    outcome = limit_of(armature)
    assert outcome.ended == "stopped" and outcome.limit == 40.0 and not outcome.found
    assert operator.reports[-1][0] == "INFO"
    assert operator.reports[-1][1].startswith("Push limit at least 40 N (0.1")


def test_the_stop_button_keeps_it_too(window, armature):
    operator = window.begin(operators.POISE_OT_find_limit)
    window.turn_until(operator, lambda: rates(session.job()) == 2)
    bpy.ops.poise.cancel()
    assert window.send(operator) == {"CANCELLED"}
    assert limit_of(armature).limit == 20.0


def test_escape_before_anything_is_measured_says_so(window, armature):
    operator = window.begin(operators.POISE_OT_find_limit)
    assert window.send(operator, "ESC") == {"CANCELLED"}
    assert operator.reports == [("INFO", "Stopped: nothing was measured yet")]
    assert limit_of(armature) is None


class IdlePool(Pool):
    """Never comes to do anything."""

    def submit(self, function, /, *arguments):
        return Future()


def test_a_budget_too_small_for_anything(armature, monkeypatch):
    monkeypatch.setattr(operators, "WorkerPool", IdlePool)
    bpy.context.scene.poise.robustness.budget = 0.001
    with pytest.raises(RuntimeError, match="budget was over before the first sequences"):
        bpy.ops.poise.find_limit()
    assert session.job() is None


# --- In words -----------------------------------------------------------------------------------


def words(armature):
    bpy.ops.poise.find_limit()
    return robustness.outcome_words(limit_of(armature))


def test_words_for_a_limit(armature):
    mass = limit_of(armature) or (bpy.ops.poise.find_limit() and limit_of(armature).mass)
    assert words(armature) == (
        f"Push limit 60 N ({60 * 0.2 / mass:.2f} m/s): 2 of 2 sequences stand, 0 of 2 at 80 N"
    )
    bpy.context.scene.poise.robustness.push_start = 100.0
    assert words(armature) == (
        "Push limit 0 N (0.00 m/s): 2 of 2 sequences stand, 0 of 2 at 100 N; begin with less for "
        "a finer answer"
    )
    bpy.context.scene.poise.robustness.kind = "SPHERES"
    bpy.context.scene.poise.robustness.sphere_start = 60.0
    bpy.context.scene.poise.robustness.sphere_step = 10.0
    assert words(armature).startswith("Object limit 70 kg (")


def test_words_for_a_clip_that_falls(armature, monkeypatch):
    monkeypatch.setattr("poise.controller.search.robustness.evaluate", falling)
    assert words(armature) == (
        "The limit is 0: undisturbed, 0 of 2 sequences stand, and it falls at 0.5 s (the feet "
        "slide); tune it first"
    )


# --- Panels and plot ----------------------------------------------------------------------------


@pytest.fixture
def drawn(draw_panels):
    """drawn(armature) -> all that the panels of robustness show now, as one text."""
    return lambda armature: draw_panels(robustness_panel.CLASSES, armature)


def test_panels_before_during_and_after(armature, drawn):
    text = drawn(armature)
    assert "Find Limit" in text and "Budget (s), 0: no limit" in text
    assert "push_step" in text and "sphere_step" not in text
    job = new_job(armature)
    step_until(job, lambda: rates(job) == 3)
    text = drawn(armature)
    assert "Stop and Keep" in text and "Find Limit" not in text
    assert "Time left\nabout 0:0" in text
    assert "40 N\n0.1" in text and "2 of 2" in text
    while not job.step(0.01):
        pass
    text = drawn(armature)
    assert "80 N\n0.2" in text and "0 of 2" in text
    assert "Push limit 60 N" in text.replace("\n", " ")
    assert "Front" in text and "picture of 9 lines" in text and "Show Plot of Limit" in text
    assert "5 rings: 25 to 125 N; worst of 1 moment" in text


def test_show_plot_makes_an_image(armature):
    with pytest.raises(RuntimeError, match="Nothing is measured by direction yet"):
        bpy.ops.poise.show_limit()
    bpy.ops.poise.find_limit()
    assert bpy.ops.poise.show_limit() == {"FINISHED"}
    (image,) = bpy.data.images
    assert image.name.startswith("Poise limit ") and image.packed_file is not None


def test_every_property_says_its_unit_and_what_it_is_for():
    for prop in bpy.context.scene.poise.robustness.bl_rna.properties:
        if prop.identifier not in ("rna_type", "name"):
            assert len(prop.description) > 10, prop.identifier
            if prop.type == "FLOAT":
                assert "(" in prop.name and "[" in prop.description, prop.identifier

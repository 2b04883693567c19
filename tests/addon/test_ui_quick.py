# SPDX-License-Identifier: GPL-3.0-or-later
"""The quick mode: a view of the same settings, from a clip to its bake."""

from dataclasses import replace
from types import SimpleNamespace

import bpy
import numpy as np
import pytest
from mathutils import Matrix

import poise
from poise.addon.blender import compat, session
from poise.addon.settings import gains, properties, quick
from poise.addon.shots import outdated
from poise.addon.sidebar import panels, quick_panel
from poise.controller import Gains
from poise.controller.body.adult import adult
from poise.controller.gains.styles import STYLES

pytestmark = pytest.mark.usefixtures("registered")


@pytest.fixture
def settings():
    """The settings of the scene."""
    return bpy.context.scene.poise


@pytest.fixture
def armature(import_clip):
    """A wave, which stands in every style."""
    return import_clip("wave")


@pytest.fixture
def drawn(draw_panels):
    """drawn(armature) -> what the quick mode shows, in one line."""

    def draw(armature):
        return draw_panels(quick_panel.CLASSES, armature).replace("\n", " ")

    return draw


def result(armature):
    """The result of the armature in the current scene."""
    return session.result_of(bpy.context.scene, armature)


def test_what_it_does_once_up_has_its_name(drawn, armature):
    bpy.context.scene.poise.when_it_falls, bpy.context.scene.poise.get_up = "BRACE", True
    assert "get_up Once Up once_up" in drawn(armature)


def test_why_nothing_can_be_simulated_is_seen(drawn):
    """Not only when the mouse rests on the button."""
    bpy.ops.object.armature_add()
    bare = bpy.context.object
    assert f"'{bare.name}' has no animation: give it an action." in drawn(bare)
    bare.animation_data_create().action = bpy.data.actions.new("moves")
    assert "no animation" not in drawn(bare)


# --- A view --------------------------------------------------------------------------------------


def test_quick_hides_the_panels_of_full(settings):
    roots = [c for c in poise.addon._classes() if issubclass(c, bpy.types.Panel)]
    roots = [c for c in roots if not hasattr(c, "bl_parent_id") and c.__name__.startswith("POISE")]
    assert len(roots) >= 6
    assert settings.mode == "QUICK"
    assert [c for c in roots if c.poll(bpy.context)] == [quick_panel.POISE_PT_quick]
    settings.mode = "FULL"
    shown = [c for c in roots if c.poll(bpy.context)]
    assert shown[0] is quick_panel.POISE_PT_quick and panels.POISE_PT_bake in shown


def test_full_has_nothing_of_quick_but_the_switch_in_its_header(settings, armature, drawn):
    settings.mode = "FULL"
    assert drawn(armature) == ""
    shown = []
    row = SimpleNamespace(prop=lambda _settings, name, **_options: shown.append(name))
    panel = SimpleNamespace(layout=SimpleNamespace(row=lambda: row))
    quick_panel.POISE_PT_quick.draw_header(panel, bpy.context)
    assert shown == ["mode"]


def test_visiting_quick_changes_nothing(settings, armature):
    gains.keep(bpy.context.scene, Gains.default(adult()))
    settings.mode, settings.noise = "FULL", 3.0
    settings.method = "RECTIFY"
    full = properties.shot_options(bpy.context, armature)
    settings.mode = "QUICK"
    assert properties.shot_options(bpy.context, armature) == full
    assert settings.method == "RECTIFY"


def test_without_a_character_there_is_an_example(drawn, draw_panels):
    bpy.context.scene.poise.mode = "QUICK"
    assert "Example Scene" in drawn(None)
    bpy.ops.object.armature_add()
    bpy.ops.object.armature_add()
    assert "Example Scene" not in drawn(None), "choose one of those that are there"


def test_what_has_changed_since_is_named(settings, armature, drawn):
    bpy.ops.mesh.primitive_cube_add(location=(0, 9, 0))
    scene, crate = bpy.context.scene, bpy.context.object
    settings.armature = armature
    push = settings.pushes.items.add()
    settings.seed = 3  # of no noise
    bpy.ops.poise.inspect()
    settings.seed = 4
    since = result(armature).settings

    def changed():
        options = properties.shot_options(bpy.context, armature)
        return outdated.changed(since, outdated.settings_of(scene, armature, options))

    assert changed() == [] and outdated.changed(None, since) == []
    for owner, name, value, told in (
        (scene.render, "fps", 24, "Frame Rate"),
        (push, "strength", 120.0, "Pushes"),
        (settings, "frames", "SCENE", "Frames"),
        (crate.poise, "role", "COLLIDER", "Objects"),
    ):
        before = getattr(owner, name)
        setattr(owner, name, value)
        assert changed() == [told]
        setattr(owner, name, before)
    assert changed() == []
    crate.poise.role = "COLLIDER"
    bpy.ops.poise.inspect()
    since = result(armature).settings
    assert changed() == []
    idle = settings.pushes.items.add()
    idle.use = False
    push.keyframe_insert("strength", frame=1)
    assert changed() == ["Pushes"], "what is keyed is not compared any more"
    bpy.ops.poise.inspect()
    since = result(armature).settings
    push.strength = 300.0
    assert changed() == [], "a keyed value is another one at each frame"
    crate.location.x = 1.0
    armature.data.poise_weights.arms = 0.5
    assert changed() == ["Objects", "Physics Weights"]
    text = drawn(armature)
    assert "simulate again" not in text, "nothing is simulated yet"


def test_whatever_moves_or_shapes_what_is_in_the_scene_is_named(settings, armature):
    scene, data = bpy.context.scene, bpy.data
    bpy.ops.mesh.primitive_cube_add(location=(0, 9, 0))
    lift = bpy.context.object
    bpy.ops.mesh.primitive_cube_add(location=(0, 19, 0))
    lift.poise.role = bpy.context.object.poise.role = "COLLIDER"
    wave, subdivided = lift.modifiers.new("w", "WAVE"), lift.modifiers.new("s", "SUBSURF")
    cast = lift.modifiers.new("c", "CAST")
    things = {name: data.objects.new(name, None) for name in ("shaft", "house", "aim", "wind", "x")}
    things["path"] = data.objects.new("path", data.curves.new("path", "CURVE"))
    things["path"].data.splines.new("POLY").points.add(2)
    for thing in things.values():
        scene.collection.objects.link(thing)
    lift.parent, things["shaft"].parent = things["shaft"], things["house"]
    follow = things["house"].constraints.new("COPY_LOCATION")
    follow.target, cast.object = things["aim"], things["x"]
    things["shaft"].keyframe_insert("location", frame=1)
    (rise, *_) = compat.curves(*compat.assigned(things["shaft"]))
    armature.data.poise_weights.keyframe_insert("arms", frame=1)
    (weight,) = compat.curves(*compat.assigned(armature.data))
    sway = weight.modifiers.new("NOISE")
    push = settings.pushes.items.add()
    push.kind, push.empty = "EMPTY", things["wind"]
    settings.walk.enabled, settings.walk.heading = True, things["path"]

    def now():
        return outdated.settings_of(scene, armature, properties.shot_options(bpy.context, armature))

    changes = (
        (things["shaft"].parent, "location", (0, 0, 1), "Objects"),
        (things["shaft"], "matrix_parent_inverse", Matrix.Scale(2, 4), "Objects"),
        (things["aim"], "scale", (2, 1, 1), "Objects"),
        (things["x"], "location", (2, 1, 1), "Objects"),
        (follow, "use_offset", True, "Objects"),
        (rise.keyframe_points[0], "handle_left", (-9.0, 2.0), "Objects"),
        (rise, "extrapolation", "LINEAR", "Objects"),
        (wave, "height", 2.0, "Objects"),
        (subdivided, "levels", 3, "Objects"),
        (lift.data.vertices[3], "co", (5, 5, 5), "Objects"),
        (sway, "strength", 9.0, "Physics Weights"),
        (things["wind"], "rotation_euler", (1, 0, 0), "Pushes"),
        (things["path"].data.splines[0].points[1], "co", (1, 2, 3, 1), "Locomotion"),
        (armature, "location", (1, 0, 0), "Armature"),
    )
    for owner, name, value, told in changes:
        before, was = now(), getattr(owner, name)
        was = was.copy() if hasattr(was, "copy") else was
        setattr(owner, name, value)
        assert outdated.changed(before, now()) == [told], name
        setattr(owner, name, was)
        assert outdated.changed(before, now()) == [], name
    for thing in (armature, lift, *things.values()):
        thing.name = f"z {thing.name}"
    assert outdated.changed(before, now()) == [], "names move nothing"


@pytest.mark.slow(captured=False)
def test_a_bake_is_no_change_of_what_it_was_made_from(settings, armature):
    bpy.ops.mesh.primitive_cube_add(location=(0, 9, 5))
    bpy.context.object.poise.role = "THING"
    armature.location.x = 1.0
    settings.root_motion = "OBJECT"
    bpy.ops.poise.simulate()
    bpy.ops.poise.bake()
    assert bpy.context.scene.objects["Cube"].animation_data.action
    options = properties.shot_options(bpy.context, armature)
    now = outdated.settings_of(bpy.context.scene, armature, options)
    assert outdated.changed(result(armature).settings, now) == []


# --- What is set in Full -------------------------------------------------------------------------


def test_a_new_scene_has_nothing_set(armature):
    assert quick.also_set(bpy.context.scene, armature) == []


def test_what_full_has_set_is_named(settings, armature, drawn):
    settings.rate, settings.noise, settings.walk.enabled = 600, 2.0, True
    settings.seed, settings.mass = 4, 90.0  # mean nothing without noise and Own Mass
    settings.pushes.items.add()
    settings.clip_check.ground = True
    settings.morphology.thigh.length = 120
    armature.data.poise_weights.arms = 0.5
    settings.objects.throw = settings.objects.self_collision = True
    # As Rigify has for the visibility of its collections.
    armature.data.driver_add("show_axes")
    names = ["Rate (Hz)", "Motor Noise (N m)", "Proportions", "Locomotion", "Pushes", "Clip Check"]
    names += ["Self-Collision", "Throw Spheres"]
    assert quick.also_set(bpy.context.scene, armature) == [*names, "Physics Weights"]
    assert "Also set in Full, and in effect: Rate (Hz), Motor Noise (N m)" in drawn(armature)
    settings.pushes.items[0].use = False
    assert "Pushes" not in quick.also_set(bpy.context.scene, armature)


def test_gains_of_full_are_named_and_can_be_left(settings, armature, drawn):
    assert "poise.gains_choose" not in drawn(armature)
    gains.keep(bpy.context.scene, Gains.default(adult()))
    assert "Default (changed) poise.gains_choose" in drawn(armature)
    bpy.ops.poise.gains_choose(name="")
    assert settings.gains.source == "DEFAULT"


# --- Styles --------------------------------------------------------------------------------------


def test_the_styles_are_those_of_the_controller(settings, armature):
    items = settings.bl_rna.properties["style"].enum_items
    assert [item.identifier.lower() for item in items] == list(STYLES)
    assert properties.shot_options(bpy.context, armature).style == "close"
    settings.style = "HEAVY"
    assert properties.shot_options(bpy.context, armature).style == "heavy"


def test_from_a_clip_to_its_bake_in_a_style(settings, armature, drawn):
    bpy.ops.poise.simulate()
    close = result(armature).recording
    text = drawn(armature)
    assert "Simulate" in text and "Keeper: 3.98 s, to frame 240" in text and "Bake" in text
    assert "Rectify" not in text and "simulate again" not in text
    settings.style = "HEAVY"
    assert "Changed since then, so simulate again: Style" in drawn(armature)
    bpy.ops.poise.bake()
    assert "Changed since then, so simulate again: Style" in drawn(armature)
    bpy.ops.poise.simulate()
    shot = result(armature).shot
    assert shot.recording.success and shot.report()["style"] == "heavy"
    forearm = [part.body_positions[:, 5] for part in (close, shot.recording)]
    assert np.abs(forearm[0] - forearm[1]).max() > 0.01
    bpy.ops.poise.bake()
    assert "Source Baked" in drawn(armature)
    assert shot.problem().settings.style == "heavy", "what is tuned is what is simulated"


# --- After a fall --------------------------------------------------------------------------------


def fallen(shot, ended=None):
    """A stand-in for a shot that fell, after rectification if that has ended in some way."""
    rectified = SimpleNamespace(ended=ended) if ended else None
    return SimpleNamespace(rectified=rectified, simulation=shot.simulation)


@pytest.mark.slow(captured=False)
def test_what_of_the_scene_is_not_followed_is_said(armature, drawn, draw_panels):
    scene = bpy.context.scene
    bpy.ops.poise.simulate()
    assert "is not followed" not in drawn(armature) and "guessed" not in drawn(armature)
    scene.gravity = (0, -3, 0)
    armature.scale = (40,) * 3
    bpy.ops.poise.simulate()
    full = draw_panels((panels.POISE_PT_character, panels.POISE_PT_result), armature)
    for text in (drawn(armature), full.replace("\n", " ")):
        assert "The scene's gravity (0, -3, 0 m/s²) is not followed" in text
        assert "guessed by the size" in text


def test_after_a_fall_the_next_step_is_a_button(settings, armature, drawn):
    settings.frames, settings.last_frame = "CUSTOM", 120
    settings.first_frame, settings.method = 1, "BALANCE"
    push = settings.pushes.items.add()
    push.frame, push.strength, push.duration = 30, 900.0, 0.3
    bpy.ops.poise.simulate()
    shot = result(armature).shot
    assert not shot.recording.success
    assert quick.steps_after_fall(shot) == ("rectify", "optimize")
    text = drawn(armature)
    assert text.index("Fell at") < text.index("Rectify") < text.index("Optimize")
    for ended, step in (("stopped", "resume"), ("budget", "resume"), ("stuck", "finer")):
        assert quick.steps_after_fall(fallen(shot, ended)) == (step,)


@pytest.mark.slow(captured=False)
def test_after_a_fall_that_was_to_be_nothing_is_to_mend(settings, armature, drawn):
    settings.when_it_falls = "LIMP"
    assert "When It Falls" in drawn(armature) and "Also set in Full" not in drawn(armature)
    push = settings.pushes.items.add()
    push.frame, push.strength, push.duration = 30, 900.0, 0.3
    bpy.ops.poise.simulate()
    recording = result(armature).shot.recording
    assert recording.filled and not recording.success
    text = drawn(armature)
    assert recording.why() in text and "Rectify" not in text and "Optimize" not in text
    assert "simulate again" not in text
    settings.when_it_falls = "STIFF"
    assert "When It Falls" in drawn(armature).split("simulate again")[1]
    settings.when_it_falls = "LIMP"
    assert "simulate again" not in drawn(armature)
    settings.once_up = "GO_ON"
    assert "simulate again" not in drawn(armature), "it does not get up"
    settings.get_up = True
    assert "When It Falls" in drawn(armature).split("simulate again")[1], "it goes with that"


def test_what_cannot_be_rectified_is_optimized(settings, armature):
    settings.noise, settings.method = 1.0, "BALANCE"
    settings.frames, settings.last_frame = "CUSTOM", 30
    settings.first_frame = 1
    bpy.ops.poise.simulate()
    assert quick.steps_after_fall(result(armature).shot) == ("optimize",)


def test_an_error_is_told(armature, drawn):
    session.complain(session.uids(bpy.context.scene, armature), "Something is wrong.")
    assert "Something is wrong." in drawn(armature)


def test_gains_that_cannot_be_used_are_told(settings, armature, drawn):
    settings.gains.source, settings.gains.preset = "PRESET", "gone"
    assert "gone" in drawn(armature)


def test_a_job_shows_how_far_it_is(armature, drawn):
    job = SimpleNamespace(
        shot=SimpleNamespace(choice=None),
        scene_name=bpy.context.scene.name,
        doing="dreaming",
        tunes=True,
        progress=0.25,
        text="Generation 3",
        cancel=lambda: None,
    )
    session.start(job)
    assert "Generation 3 Stop and Keep Discard" in drawn(armature)
    session.end(job)
    job = SimpleNamespace(**{**vars(job), "tunes": False}, note="2.0 × real time", rectifies=False)
    session.start(job)
    assert "Generation 3 poise.cancel 2.0 × real time" in drawn(armature)
    assert "in the scene" not in drawn(armature)
    session.end(job)


def test_a_job_in_another_scene_is_seen(armature, settings, draw_panels):
    """Where there is no character, too, and in Full."""
    bpy.context.scene.name = "Walks"
    job = SimpleNamespace(
        scene_name="Walks",
        shot=SimpleNamespace(choice=None),
        doing="simulating",
        progress=0.25,
        text="Simulating: 25%",
        note="",
        tunes=False,
        rectifies=False,
        finds_limit=False,
        checks=False,
        plays=False,
        cancel=lambda: None,
    )
    session.start(job)
    bpy.context.window.scene = bpy.data.scenes.new("Empty")
    text = draw_panels(quick_panel.CLASSES, None).replace("\n", " ")
    assert text.startswith("Poise is simulating in the scene 'Walks'.")
    assert "Simulating: 25% poise.cancel" in text
    why = "Poise is simulating in the scene 'Walks': wait, or press Esc to stop it"
    for button in (bpy.ops.poise.example_scene, bpy.ops.poise.simulate):
        with pytest.raises(RuntimeError, match=why):
            button()
    bpy.context.scene.poise.mode = "FULL"
    text = draw_panels((*quick_panel.CLASSES, panels.POISE_PT_simulate), None).replace("\n", " ")
    assert text.count("Poise is simulating in the scene 'Walks'.") == 1
    assert text.count("Simulating: 25% poise.cancel") == 1
    session.end(job)


def test_gains_found_by_a_search_are_told(settings, armature, drawn):
    found = replace(Gains.default(adult()), tuned=None)
    outcome = SimpleNamespace(
        gains=found,
        unseen=[1.9],
        settings=SimpleNamespace(target=1.8),
        confirmed_at=2,
    )
    session.keep_outcome(bpy.context.scene.name, armature.name, outcome)
    assert "Confirmed" not in drawn(armature), "other gains are in use"
    gains.keep(bpy.context.scene, found)
    assert "Confirmed: score 1.90, reached in 1 of 1 new tries, generation 2" in drawn(armature)

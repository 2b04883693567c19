# SPDX-License-Identifier: GPL-3.0-or-later
"""Physics weights in Blender: keys, frames, linked characters, the bake, the command line."""

import json
from types import SimpleNamespace

import bpy
import numpy as np
import pytest

import poise
from poise.addon.blender import compat, session
from poise.addon.blender.chosen import chosen_armature
from poise.addon.command.command_line import main
from poise.addon.rigs import sampling
from poise.addon.scene.weights import WeightOptions, collect
from poise.addon.shots.shot import Shot, ShotOptions
from poise.addon.staging import weights_panel
from poise.controller import Push, Scenario, Simulation
from poise.controller.exceptions import SettingsError
from poise.controller.gains.physics_weights import NAMES

pytestmark = pytest.mark.usefixtures("registered")


@pytest.fixture
def weighed():
    """An armature object without bones, and what would be known of its reading."""
    armature = bpy.data.objects.new("Ann", bpy.data.armatures.new("Ann"))
    bpy.context.collection.objects.link(armature)
    return armature


def collected(frames=range(1, 41), **options):
    """The weights at frames."""
    reading = SimpleNamespace(armature="Ann", frames=np.array(frames, float))
    return collect(bpy.context.scene, reading, options=WeightOptions(**options))


def key(armature, name, *points):
    """Key a weight at (frame, value)."""
    weights = armature.data.poise_weights
    for frame, value in points:
        setattr(weights, name, value)
        assert weights.keyframe_insert(name, frame=frame)


def test_untouched_weights_are_none_at_all(weighed):
    assert collected() == {}


def test_keys_are_read_between_frames_too(weighed):
    key(weighed, "arms", (10, 0.0), (20, 1.0))
    weighed.data.poise_weights.neck = 0.25
    found = collected(np.arange(1, 41, 0.5))
    assert sorted(found) == ["arms", "neck"]
    assert found["neck"] == pytest.approx(0.25)
    assert found["arms"][:19] == pytest.approx(0) and found["arms"][38:] == pytest.approx(1)
    assert found["arms"][28] == pytest.approx(0.5, abs=1e-6)
    assert (np.diff(found["arms"][18:39]) > 0).all()


def test_keys_outlive_the_action_of_the_object(weighed):
    key(weighed, "arms", (10, 0.0), (20, 1.0))
    before = collected()["arms"]
    weighed.animation_data_create()
    compat.assign(weighed, *compat.new_action("bake"))
    assert np.array_equal(collected()["arms"], before)


def test_mapped_time(weighed):
    """With time stretched to 200 %, frame 40 shows what is keyed at 20."""
    key(weighed, "legs", (10, 0.0), (20, 1.0))
    render = bpy.context.scene.render
    render.frame_map_old, render.frame_map_new = 100, 200
    found = collected()["legs"]
    assert found[18] == pytest.approx(0) and found[29] == pytest.approx(0.5, abs=1e-6)


def test_a_muted_curve_says_nothing(weighed):
    key(weighed, "arms", (10, 0.0), (20, 1.0))
    (curve,) = compat.curves(*compat.assigned(weighed.data))
    curve.mute = True
    weighed.data.poise_weights.arms = 0.75
    assert collected()["arms"] == pytest.approx(0.75)


def test_driven_weights_are_evaluated(weighed):
    driver = weighed.data.driver_add("poise_weights.legs").driver
    driver.expression = "frame / 40"
    bpy.context.scene.frame_set(7)
    found = collected(range(0, 41, 10))
    assert found["legs"] == pytest.approx([0, 0.25, 0.5, 0.75, 1])
    assert bpy.context.scene.frame_current == 7


def test_start_and_hand_back(weighed):
    weights = weighed.data.poise_weights
    weights.use_start, weights.start = True, 10
    weights.use_hand_back, weights.hand_back, weights.over = True, 20, 4
    weights.arms = 0.5
    found = collected()
    assert set(found) == set(NAMES)
    assert not found["root"][:10].any() and (found["root"][10:20] == 1).all()
    assert found["root"][20:24] == pytest.approx([0.75, 0.5, 0.25, 0])
    assert not found["root"][23:].any()
    assert np.array_equal(found["arms"], 0.5 * found["root"])


def test_options_replace_what_the_armature_says(weighed):
    weights = weighed.data.poise_weights
    weights.use_start, weights.start, weights.arms = True, 10, 0.5
    found = collected(start=15, hand_back=(30, 5), regions={"arms": 1.0, "neck": 0.0})
    assert not found["root"][:15].any() and found["root"][15] == 1 and found["root"][34] == 0
    assert np.array_equal(found["arms"], found["root"])
    assert not found["neck"].any()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"start": 40}, "Physics starts at frame 40, but the simulation ends at frame 40"),
        ({"hand_back": (1, 9)}, "handed back at frame 1, but begins at frame 1: hand it back"),
        ({"start": 20, "hand_back": (20, 9)}, "handed back at frame 20, but begins at frame 20"),
    ],
)
def test_no_time_for_physics(weighed, options, words):
    with pytest.raises(SettingsError, match=words):
        collected(**options)


def test_unregistered_there_are_no_weights(weighed):
    poise.unregister()
    assert collected() == {}
    poise.register()


def test_frames_are_no_curves(weighed):
    with pytest.raises(TypeError, match="not animatable"):
        weighed.data.poise_weights.keyframe_insert("start", frame=1)


def test_an_override_gets_weights_of_its_own(weighed, tmp_path):
    weighed.data.poise_weights.arms = 0.5
    library = str(tmp_path / "library.blend")
    bpy.ops.wm.save_as_mainfile(filepath=library)
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    with bpy.data.libraries.load(library, link=True) as (_, linked):
        linked.objects = ["Ann"]
    scene, layer = bpy.context.scene, bpy.context.view_layer
    (linked,) = linked.objects
    scene.collection.objects.link(linked)
    scene.poise.armature = linked
    assert not bpy.ops.poise.weights_own.poll()
    own = linked.override_hierarchy_create(scene, layer, do_fully_editable=True)
    scene.poise.armature = own
    assert own.data.library is not None
    assert bpy.ops.poise.weights_own() == {"FINISHED"}
    assert not bpy.ops.poise.weights_own.poll()
    assert own.data.poise_weights.arms == 0.5
    key(own, "arms", (10, 0.0), (20, 1.0))
    own.data.override_library.operations_update()
    shot = str(tmp_path / "shot.blend")
    bpy.ops.wm.save_as_mainfile(filepath=shot)
    bpy.ops.wm.open_mainfile(filepath=shot)
    data = bpy.context.scene.poise.armature.data
    assert data.library is None
    (curve,) = compat.curves(*compat.assigned(data))
    assert curve.evaluate(10) == 0 and curve.evaluate(20) == 1


def heads(armature, frames):
    """(F, B, 3) heads of all bones [m]."""
    _, poses, _, objects, _ = sampling.run(sampling.sampling(bpy.context.scene, armature, frames))
    return (objects[:, None] @ poses)[:, :, :3, 3]


def test_the_bake_is_the_source_outside_of_physics(import_clip):
    armature = import_clip("wave")
    weights = armature.data.poise_weights
    weights.use_start, weights.start = True, 40
    weights.use_hand_back, weights.hand_back, weights.over = True, 90, 20
    before = heads(armature, np.arange(1.0, 131.0))
    source = compat.curves(*compat.assigned(armature))
    values = {
        (curve.data_path, curve.array_index): [curve.evaluate(frame) for frame in (20, 40, 110)]
        for curve in source
    }
    shot = Shot(bpy.context.scene, ShotOptions(armature=armature.name, frames=(1, 130)))
    for _ in shot.read():
        pass
    for _ in shot.simulate():
        pass
    shot.bake()
    after = heads(armature, np.arange(1.0, 131.0))
    apart = 1e3 * np.linalg.norm(after - before, axis=-1).max(1)
    outside = np.r_[:40, 109:130]
    assert apart[outside].max() < 0.001
    assert apart[50:88].max() > 1
    for curve in compat.curves(*compat.assigned(armature)):
        baked = [curve.evaluate(frame) for frame in (20, 40, 110)]
        expected = values.get((curve.data_path, curve.array_index))
        assert expected is None or baked == pytest.approx(expected, abs=1e-4)
    report = shot.report()
    assert report["residual"] > 0 and report["units"]["residual"] == "N"
    assert report["units"]["residual_torque"] == "N m"


@pytest.mark.slow(captured=False)
def test_command_line(import_clip, tmp_path, capsys):
    import_clip("stand")
    shot, report = tmp_path / "shot.blend", tmp_path / "report.json"
    bpy.ops.wm.save_as_mainfile(filepath=str(shot))
    assert main(["bake", str(shot), "--frames", "1:60", "--report", str(report)]) == 0
    assert json.loads(report.read_text())["residual"] == 0
    options = ["--start-physics", "20", "--hand-back", "40,10", "--weight", "arms=0.5"]
    common = ["bake", str(shot), "--frames", "1:60", "--report", str(report), "--overwrite"]
    assert main([*common, *options]) == 0
    assert json.loads(report.read_text())["residual"] > 0
    assert "residual" in capsys.readouterr().err
    assert main([*common, "--hand-back", "60"]) == 1
    assert "handed back at frame 60, but the simulation ends at frame 60" in capsys.readouterr().err
    for option, words in (
        (["--weight", "hand=1"], "'hand=1' is not a weight such as arms=0.5"),
        (["--weight", "arms=1.5"], "'arms=1.5' is not a weight such as arms=0.5"),
        (["--hand-back", "40,0"], "'0' is not a number from 1 to 10000 frames"),
        (["--start-physics", "soon"], "'soon' is not a frame such as 40"),
    ):
        assert main([*common, *option]) == 2
        assert words in capsys.readouterr().err


class _Layout:
    """Stands in for a layout: takes down what is drawn."""

    def __init__(self, drawn):
        object.__setattr__(self, "drawn", drawn)

    def __setattr__(self, name, value):
        self.drawn.append((name, value))

    def column(self, **_):
        return self

    row = column

    def prop(self, _owner, name, **_):
        self.drawn.append(("prop", name))

    def label(self, text="", **_):
        self.drawn.append(("label", text))


def test_the_panel_shows_what_there_is(weighed):
    drawn = []
    context = SimpleNamespace(
        scene=bpy.context.scene,
        preferences=SimpleNamespace(system=SimpleNamespace(ui_scale=1.0)),
        region=SimpleNamespace(width=400),
        active_object=weighed,
    )
    armature, reason = chosen_armature(context)
    weighed.data.poise_weights.use_start = True
    twin = bpy.data.objects.new("Twin", weighed.data)
    assert session.job() is None and twin
    weights_panel.POISE_PT_weights.content(None, _Layout(drawn), context, armature, reason)
    names = [value for kind, value in drawn if kind == "prop"]
    assert names == ["use_start", "start", "use_hand_back", *NAMES]
    words = " ".join(value for kind, value in drawn if kind == "label")
    assert "'Ann' has 2 users" in words


@pytest.mark.slow
def test_the_example_steps_back():
    """Pushed away by a step, its feet stand in the bake until they are lifted."""
    assert bpy.ops.poise.example_scene() == {"FINISHED"}
    armature = next(thing for thing in bpy.context.scene.objects if thing.type == "ARMATURE")
    action = bpy.data.actions["Hello (captured)"]
    compat.assign(armature, action, compat.object_slot(action, armature))
    frames = np.arange(55.0, 85.0)
    before = heads(armature, frames)
    shot = Shot(bpy.context.scene, ShotOptions(armature=armature.name))
    weights = armature.data.poise_weights
    weights.use_hand_back, weights.hand_back, weights.over = True, 55, 15
    for step in (shot.read, shot.simulate):
        for _ in step():
            pass
    shot.bake()
    moved = heads(armature, frames) - before
    feet = [armature.pose.bones.find(shot.reading.rig_map.bones[f"foot_{s}"][0]) for s in "lr"]
    for foot in feet:
        steps = np.linalg.norm(np.diff(moved[:, foot], axis=0), axis=1)
        assert np.linalg.norm(moved[0, foot]) > 0.1
        low = moved[:, foot, 2] < 0.004
        assert steps[low[1:] & low[:-1]].sum() < 0.02 and steps.max() > 0.02
    assert np.abs(moved[22:]).max() < 1e-4
    back = shot.report()["back_frame"]
    assert shot.ends[0] == f"It is exactly the animation again from frame {back:g} on."
    home = round(back - frames[0])
    assert np.abs(moved[home:]).max() < 1e-5 < np.abs(moved[home - 1]).max()


@pytest.mark.slow
@pytest.mark.parametrize(("clip", "start", "back"), [("walk", 60, 78), ("kick", 132, 168)])
def test_hand_over_of_captured_clips(import_clip, clip, start, back):
    """A pushed walk and kick are handed back: exact once the feet are home, which takes them
    their next swing; calm at both seams."""
    armature = import_clip(clip)
    shot = Shot(bpy.context.scene, ShotOptions(armature=armature.name))
    for _ in shot.read():
        pass
    shot.prepare()
    weights = collect(
        bpy.context.scene, shot.reading, options=WeightOptions(start=start, hand_back=(back, 27))
    )
    push = Push((start + 4) / 60, 0.2, (0, 50.0, 0))
    scenario = Scenario(pushes=(push,), weights=weights)
    simulation = Simulation(shot.character, shot.reading.motion, shot.gains, scenario=scenario)
    recording = simulation.run()
    assert recording.success
    moved = recording.root_displacement()
    turned = recording.rotation_deltas()[..., 1:]
    home = back + 75
    outside = np.r_[:start, home : len(recording)]
    assert not moved[outside].any() and np.abs(turned[outside]).max() < 1e-9
    assert np.abs(moved).max() > 0.01
    # No harder than the clip itself moves its joints.
    joints = recording.motion.positions[:, np.isfinite(recording.motion.positions).all((0, 2))]
    assert np.abs(np.diff(moved, 3, axis=0)).max() < np.abs(np.diff(joints, 3, axis=0)).max()
    assert np.linalg.norm(recording.residual[:, :3], axis=1).max() < 3000

# SPDX-License-Identifier: GPL-3.0-or-later
"""Armatures as colliders: what of them the simulated body meets, where it is, what is refused."""

import json
import math
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import MagicMock

import bpy
import numpy as np
import pytest
from helpers.commands import poise, save

from poise.addon.blender import compat, session
from poise.addon.blender.chosen import chosen_armature
from poise.addon.example import character as figure
from poise.addon.example.figure import build_armature, build_body
from poise.addon.kit import parts
from poise.addon.overlays import overlay_marks
from poise.addon.rigs import sampling
from poise.addon.scene import bodies, objects
from poise.addon.settings.properties import shot_options
from poise.addon.shots import outdated
from poise.addon.shots.shot import Shot, ShotOptions, find_armature
from poise.addon.staging import objects_panel
from poise.controller.exceptions import PoiseError, RigError, SettingsError
from poise.controller.geometry.rotations import matrix_from_quaternion
from poise.controller.geometry.solids import Limb, Solid
from poise.controller.simulation.recording import hit_words

pytestmark = pytest.mark.usefixtures("registered")

LAST = 12
#: Bones of what is no biped: name, parent, head, tail [m].
WORM = (
    ("a", None, (0, 0, 0), (0, 0, 0.6)),
    ("b", "a", (0, 0, 0.6), (0, 0.1, 0.9)),
    ("c", "b", (0, 0.1, 0.9), (0.2, 0.1, 1.1)),
)
STANCE = ((0, 0, -0.03), (2, 0, 2, 0), ((0.03, -0.12, 0), 0), ((0.02, 0.14, 0), 0))


def animate(armature, name, key):
    """Give an armature an action, by key(frame) at its first and last frame."""
    compat.assign(armature, *compat.new_action(name))
    for frame in (1, LAST):
        key(frame)


@pytest.fixture
def worm(blender):
    """An armature "Worm" that is no biped, moved by keys, a driver and a constraint; scaled."""
    made = build_armature("Worm", WORM)
    made.location, made.scale = (3.0, 1.0, 0.5), (2.0, 2.0, 2.0)
    bones = made.pose.bones

    def key(frame):
        bones["a"].rotation_quaternion = (1, 0.03 * frame, 0, 0.05 * frame)
        bones["a"].keyframe_insert("rotation_quaternion", frame=frame)
        made.location.x = 3.0 + 0.02 * frame
        made.keyframe_insert("location", frame=frame)

    animate(made, "crawl", key)
    bones["b"].rotation_mode = "XYZ"
    driver = bones["b"].driver_add("rotation_euler", 0).driver
    driver.type, driver.expression = "SCRIPTED", "frame * 0.03"
    follow = bones["c"].constraints.new("COPY_ROTATION")
    follow.target, follow.subtarget = made, "a"
    made.poise.role = "COLLIDER"
    return made


@pytest.fixture
def boxer(blender):
    """A biped "Boxer" with a body of mesh, whose right fist goes ahead."""
    made = build_armature("Boxer", figure.bones())
    build_body(made, figure.HEIGHT)
    made.location, made.rotation_euler.z = (4.0, 2.0, 0.0), math.pi

    def key(frame):
        figure.key(made, frame, *STANCE, (12, 0, -4 * frame), 90 - 3 * frame)

    animate(made, "punch", key)
    made.poise.role = "COLLIDER"
    return made


@pytest.fixture
def stander(import_clip):
    """A captured character that stands."""
    return import_clip("stand")


def limbs_by(armature, **options):
    """{part: Limb} that a character meets."""
    options = ShotOptions(armature=armature.name, frames=(1, LAST), **options)
    shot = Shot(bpy.context.scene, options)
    sampling.run(shot.read())
    limbs = shot.objects["limbs"]
    assert len({limb.part for limb in limbs}) == len(limbs)
    return {limb.part: limb for limb in limbs}


def tips(limb, sample, beyond):
    """The two ends of a capsule [m]: of its axis, and `beyond` of its radius."""
    radius, length = limb.solid.size
    turn = matrix_from_quaternion(limb.rotations[sample])
    reach = (length / 2 + beyond * radius) * turn[:, 2]
    return limb.positions[sample] + reach, limb.positions[sample] - reach


# Where they are ---------------------------------------------------------------------------------


def test_capsules_go_from_head_to_tail_as_keys_drivers_and_constraints_say(stander, worm):
    bpy.context.scene.frame_set(7)
    limbs = limbs_by(stander)
    assert limbs.keys() == {"a", "b", "c"} and bpy.context.scene.frame_current == 7
    for sample in range(LAST):
        bpy.context.scene.frame_set(1 + sample)
        for bone in worm.pose.bones:
            end, start = tips(limbs[bone.name], sample, 0)
            for found, wanted in ((start, bone.head), (end, bone.tail)):
                assert np.allclose(found, worm.matrix_world @ wanted, atol=1e-5)
    for bone in worm.data.bones:
        radius, length = limbs[bone.name].solid.size
        assert length == pytest.approx(2 * bone.length, rel=1e-5)
        assert radius == pytest.approx(length / 6)
    spins = np.diff(limbs["a"].rotations, axis=0)
    assert np.abs(spins).max() < 0.1, "it turns about itself no faster than its bone"


def test_envelopes_and_deform_say_how_thick_capsules_are_and_which_there_are(stander, worm):
    worm.data.display_type = "ENVELOPE"
    worm.data.bones["a"].head_radius, worm.data.bones["a"].tail_radius = 0.1, 0.3
    worm.data.bones["c"].use_deform = False
    limbs = limbs_by(stander)
    assert limbs.keys() == {"a", "b"}
    assert limbs["a"].solid.size[0] == pytest.approx(0.4)  # on an object of scale 2
    for bone in worm.data.bones:
        bone.use_deform = False
    with pytest.raises(SettingsError, match="'Worm' has no bone that deforms: tick Deform"):
        limbs_by(stander)


def test_a_biped_is_met_by_the_shapes_of_its_body_on_its_animated_joints(stander, boxer):
    boxer.poise.friction = 0.4
    limbs = limbs_by(stander)
    assert {"head", "trunk", "pelvis", "right hand", "left foot", "right toe"} <= limbs.keys()
    bones = {"upper arm": "Arm", "forearm": "ForeArm", "thigh": "UpLeg", "shin": "Leg"}
    moving = limbs["right forearm"]
    for sample in range(LAST):
        bpy.context.scene.frame_set(1 + sample)
        for part, name in bones.items():
            for side in ("left", "right"):
                limb = limbs[f"{side} {part}"]
                bone = boxer.pose.bones[f"{side.capitalize()}{name}"]
                if limb.moves:
                    start, end = tips(limb, sample, 1)
                    assert np.allclose(start, boxer.matrix_world @ bone.head, atol=2e-3)
                    assert np.allclose(end, boxer.matrix_world @ bone.tail, atol=2e-3)
        hand = boxer.matrix_world @ boxer.pose.bones["RightHand"].head
        away = np.linalg.norm(limbs["right hand"].positions[sample] - hand)
        assert 0.03 < away < 0.08
    assert moving.moves and moving.friction == pytest.approx(0.4)
    assert moving.name == "Boxer"


def test_units_of_the_scene_are_those_of_the_character(stander, worm):
    bpy.context.scene.unit_settings.scale_length = 0.5
    half = limbs_by(stander, unit=0.5)["a"]
    whole = limbs_by(stander, unit=1.0)["a"]
    assert np.allclose(2 * half.positions, whole.positions)
    assert np.allclose(2 * np.array(half.solid.size), whole.solid.size)


def skin(armature):
    """A mesh along the bones of the worm, with a group for each."""
    bpy.ops.mesh.primitive_cylinder_add(vertices=12, radius=0.2, depth=1.2, location=(0, 0, 0.6))
    made = bpy.context.object
    made.name = "Skin"
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.mesh.select_all(action="SELECT")
    bpy.ops.mesh.bisect(plane_co=(0, 0, 0.7), plane_no=(0, 0, 1))
    bpy.ops.object.mode_set(mode="OBJECT")
    made.data.transform(made.matrix_world)
    made.matrix_world.identity()
    for name, inside in (("a", lambda z: z < 0.75), ("b", lambda z: z >= 0.65)):
        group = made.vertex_groups.new(name=name)
        group.add([v.index for v in made.data.vertices if inside(v.co.z)], 1.0, "REPLACE")
    made.parent = armature
    made.modifiers.new("Armature", "ARMATURE").object = armature
    made.poise.role = "COLLIDER"
    return made


def test_a_mesh_that_an_armature_deforms_is_met_where_its_bones_carry_it(stander, worm):
    worm.poise.role = "NONE"
    made = skin(worm)
    bones = worm.data.bones
    limbs = limbs_by(stander)
    assert limbs.keys() == {"a", "b"}
    for part, limb in limbs.items():
        assert limb.solid.kind == "hull" and limb.name == "Skin"
        end = 0.0 if part == "a" else 1.2
        moved = [v for v in made.data.vertices if abs(v.co.z - end) < 1e-3]
        assert len(moved) == 12
        for sample in (0, 5, LAST - 1):
            bpy.context.scene.frame_set(1 + sample)
            turn = matrix_from_quaternion(limb.rotations[sample])
            corners = limb.solid.vertices @ turn.T + limb.positions[sample]
            to_world = worm.matrix_world @ worm.pose.bones[part].matrix
            to_world = to_world @ bones[part].matrix_local.inverted()
            for vertex in moved:
                away = np.linalg.norm(corners - np.array(to_world @ vertex.co), axis=1)
                assert away.min() < 1e-4


def test_a_mesh_on_an_armature_that_rests_is_a_collider_as_any(stander, worm):
    skin(worm)
    for bone in worm.pose.bones:
        for constraint in list(bone.constraints):
            bone.constraints.remove(constraint)
    worm.animation_data_clear()
    worm.poise.role = "NONE"
    shot = Shot(bpy.context.scene, ShotOptions(armature=stander.name, frames=(1, LAST)))
    sampling.run(shot.read())
    assert shot.objects["limbs"] == () and len(shot.objects["colliders"]) == 1


# Which take part --------------------------------------------------------------------------------


def test_an_armature_is_no_collider_of_itself_and_one_that_is_named_is_one(stander, boxer):
    stander.poise.role = "COLLIDER"
    assert {limb.name for limb in limbs_by(stander).values()} == {"Boxer"}
    assert {limb.name for limb in limbs_by(boxer).values()} == {stander.name}
    boxer.poise.role = "NONE"
    assert not limbs_by(stander)
    assert {limb.name for limb in limbs_by(stander, others=("Boxer",)).values()} == {"Boxer"}
    own = f"'{stander.name}' is simulated, and cannot be its own collider: name another"
    for name, sentence in ((stander.name, own), ("Nobody", "no armature 'Nobody' to meet: choose")):
        with pytest.raises(SettingsError, match=sentence):
            limbs_by(stander, others=(name,))


def test_who_is_a_collider_is_not_whom_a_command_means(stander, boxer, worm):
    scene = bpy.context.scene
    assert find_armature(scene) == stander
    worm.poise.role = "NONE"
    with pytest.raises(RigError, match="has several armatures"):
        find_armature(scene)
    assert find_armature(scene, others=("Worm",)) == stander


def edit(worm):
    select(worm)
    bpy.ops.object.mode_set(mode="EDIT")


def disable(worm):
    worm.hide_viewport = True
    bpy.context.view_layer.update()


def grow(worm):
    bone = worm.pose.bones["a"]
    for frame, size in ((1, 1.0), (LAST, 2.0)):
        bone.scale = (size,) * 3
        bone.keyframe_insert("scale", frame=frame)


def jump(worm):
    for frame, x in ((5, 0.0), (6, 9.0)):
        worm.location.x = x
        worm.keyframe_insert("location", frame=frame)
    for curve in compat.curves(*compat.assigned(worm)):
        for point in curve.keyframe_points:
            point.interpolation = "LINEAR"


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (edit, "'Worm' is in Edit Mode: leave it"),
        (disable, "'Worm' or its collection is disabled in the viewport"),
        (grow, "bone 'a' of the collider 'Worm' is 2 times as large at frame 12 as at frame 1"),
        (jump, r"The a of 'Worm' jumps from frame 5 to 6, at \d+ m/s: keep it below 20 m/s, or"),
    ],
)
def test_what_cannot_take_part_is_told_and_nothing_changes(stander, worm, spoil, sentence):
    spoil(worm)
    frame = bpy.context.scene.frame_current
    with pytest.raises(PoiseError, match=sentence):
        limbs_by(stander)
    assert bpy.context.scene.frame_current == frame


def test_what_is_deleted_while_it_is_read_is_told(stander, worm):
    shot = Shot(bpy.context.scene, ShotOptions(armature=stander.name, frames=(1, LAST)))
    with pytest.raises(SettingsError, match="The collider 'Worm' was deleted or renamed while it"):
        for _ in shot.read():
            if bpy.context.scene.frame_current == 5 and "Worm" in bpy.data.objects:
                bpy.data.objects.remove(worm)


def test_what_is_in_no_view_layer_takes_no_part_unless_it_is_named(stander, worm):
    hidden = bpy.data.collections.new("Hidden")
    bpy.context.scene.collection.children.link(hidden)
    bpy.context.scene.collection.objects.unlink(worm)
    hidden.objects.link(worm)
    bpy.context.view_layer.layer_collection.children["Hidden"].exclude = True
    assert not limbs_by(stander)
    with pytest.raises(RigError, match="'Worm' is in no view layer of the scene"):
        limbs_by(stander, others=("Worm",))


def test_the_skin_of_the_character_itself_is_refused(stander, boxer):
    boxer.poise.role = "NONE"
    body = next(thing for thing in boxer.children if thing.type == "MESH")
    body.poise.role = "COLLIDER"
    with pytest.raises(SettingsError, match="is the skin of 'Boxer', which is simulated and canno"):
        limbs_by(boxer)
    assert {limb.name for limb in limbs_by(stander).values()} == {body.name}


def test_two_in_one_place_are_refused_before_anything_is_simulated(stander, boxer):
    boxer.matrix_world = stander.matrix_world.copy()
    hips = stander.matrix_world @ stander.pose.bones[0].head
    boxer.location = (hips.x, hips.y, 0)
    shot = Shot(bpy.context.scene, ShotOptions(armature=stander.name, frames=(1, LAST)))
    sampling.run(shot.read())
    shot.prepare()
    with pytest.raises(SettingsError, match=r"The .* of 'Boxer' is at least \d+ cm inside of the"):
        list(shot.simulate())


# In the sidebar, and without --------------------------------------------------------------------


def select(*chosen):
    for thing in bpy.context.scene.objects:
        thing.select_set(thing in chosen)
    bpy.context.view_layer.objects.active = chosen[0]


def test_selected_armatures_are_marked_as_colliders_alone(worm):
    worm.poise.role = "NONE"
    select(worm)
    assert not bpy.ops.poise.make_thing.poll()
    assert bpy.ops.poise.make_collider() == {"FINISHED"}
    assert worm.poise.role == "COLLIDER"
    assert objects.marked(bpy.context.scene) == [worm]
    assert bpy.ops.poise.unmark() == {"FINISHED"}
    assert worm.poise.role == "NONE" and not bpy.ops.poise.unmark.poll()


def test_the_panel_says_that_the_character_itself_is_met_by_others_only(stander, worm, draw_panels):
    select(worm)
    panels = (objects_panel.POISE_PT_objects,)
    shown = draw_panels(panels, stander)
    assert "friction" in shown and "shape" not in shown
    assert "met by" not in shown
    assert "Simulated itself, it is met by others only" in draw_panels(panels, worm).replace(
        "\n", " "
    )


def test_twenty_characters_are_said_to_be_slow_before_anything_is_simulated(
    stander, worm, monkeypatch
):
    scene, told = bpy.context.scene, []
    monkeypatch.setattr(parts, "sentence", lambda *row: told.append(row[2]))
    layout = SimpleNamespace(row=lambda: layout, prop=lambda *_, **__: None)
    monkeypatch.setattr(parts, "fact", lambda *_: None)
    scene.poise.frames = "SCENE"
    scene.frame_end = scene.frame_start + 10 * scene.render.fps
    parts.draw_range(layout, bpy.context, stander)
    assert not told, "one is no matter"
    for number in range(19):
        other = bpy.data.objects.new(f"Extra {number}", worm.data)
        scene.collection.objects.link(other)
        other.poise.role = "COLLIDER"
    parts.draw_range(layout, bpy.context, stander)
    (sentence,) = told
    assert sentence.startswith("20 armatures are colliders: it will take about 26 s longer.")
    limb = Limb("Extra", Solid("sphere", (0.1,)), (0, 0, 0), (1, 0, 0, 0))
    assert bodies.slowness_of((limb,) * 17, 10.0, 300.0) == ""
    crowd = tuple(replace(limb, name=f"Extra {i % 20}") for i in range(340))
    assert bodies.slowness_of(crowd, 10.0, 300.0) == sentence
    assert "about 51 s longer" in bodies.slowness_of(crowd, 10.0, 600.0)


def test_a_shot_is_old_once_what_it_meets_moves_otherwise(stander, worm):
    scene = bpy.context.scene
    select(stander)

    def now():
        return outdated.settings_of(scene, stander, shot_options(bpy.context, stander))

    before = now()
    scene.frame_set(9)
    assert outdated.changed(before, now()) == [], "another frame is no change"
    curve = compat.curves(*compat.assigned(worm))[0]
    for change, undo in (
        (lambda: setattr(curve.keyframe_points[0].co, "y", 9), "a key"),
        (lambda: setattr(worm.pose.bones["c"].constraints[0], "influence", 0.5), "a constraint"),
        (lambda: setattr(worm.pose.bones["c"], "location", (0, 0, 1)), "a pose without keys"),
        (lambda: setattr(worm.data, "display_type", "ENVELOPE"), "what is met of it"),
        (lambda: setattr(worm.poise, "friction", 0.2), "its friction"),
        (lambda: setattr(worm.poise, "role", "NONE"), "whether it takes part"),
    ):
        before = now()
        change()
        assert outdated.changed(before, now()) == ["Objects"], undo


def test_a_blow_is_simulated_and_baked_exactly(stander, boxer):
    """From the button to the keys; the boxer keeps its own."""
    scene = bpy.context.scene
    scene.poise.frames, scene.poise.first_frame, scene.poise.last_frame = "CUSTOM", 1, 40
    select(stander)
    assert bpy.ops.poise.simulate() == {"FINISHED"}
    shot = session.result_of(scene, stander).shot
    free = shot.recording.body_positions.copy()
    hips = stander.matrix_world @ stander.pose.bones[0].head
    boxer.location = (hips.x + 0.1, hips.y - 0.6, 0.0)
    keys = outdated._posed(boxer)
    assert bpy.ops.poise.simulate() == {"FINISHED"}
    shot = session.result_of(scene, stander).shot
    report = shot.report()
    assert report["met"] == ["Boxer"]
    hit = report["hits"][0]
    assert hit["by"] == "Boxer" and hit["impulse"] > 0 and report["units"]["impulse"] == "N s"
    hardest = max(report["hits"], key=lambda one: one["force"])
    assert shot.hit == hit_words(**hardest)
    sample = round(hit["frame"] - 1)
    for tail, tip in overlay_marks.blow_arrows(shot.recording, sample, 500.0):
        body = shot.recording.body_positions[sample]
        assert np.linalg.norm(body - tip, axis=1).min() < 0.4 and np.linalg.norm(tip - tail) > 0
    assert overlay_marks.blow_arrows(shot.recording, sample, 500.0)
    assert not overlay_marks.blow_arrows(shot.recording, 0, 500.0)
    count = min(len(free), len(shot.recording))
    assert np.abs(shot.recording.body_positions[:count] - free[:count]).max() > 0.01
    assert bpy.ops.poise.bake() == {"FINISHED"}
    sampling.run(shot.measure())
    assert shot.baked.error_mm < 1.0
    assert outdated._posed(boxer) == keys
    assert shot.left_out.endswith("other bodies.")


def test_the_command_line_meets_whom_it_is_told_to(tmp_path, stander, boxer, capsys):
    hips = stander.matrix_world @ stander.pose.bones[0].head
    boxer.location = (hips.x + 0.1, hips.y - 0.6, 0.0)
    boxer.poise.role = "NONE"
    path = save(tmp_path)
    report = tmp_path / "report.json"
    told = ["simulate", path, "--armature", stander.name, "--frames=1:12", "--report", report]
    assert poise(*told, "--with", "Boxer") in (0, 3)
    content = json.loads(report.read_text())
    assert content["met"] == ["Boxer"] and content["hits"]
    hardest = max(content["hits"], key=lambda hit: hit["force"])
    told = capsys.readouterr().err
    where = hardest["part"].replace("_", " ")
    assert f"'Boxer' ({where}) hits it at frame {hardest['frame']:g} with" in told


def test_who_is_marked_itself_is_told_so(tmp_path, stander, boxer, capsys, monkeypatch):
    """In the window and on the command line; not where others are marked, whom it meets."""
    stander.poise.role, boxer.poise.role = "COLLIDER", "NONE"
    own = f"'{stander.name}' is simulated, and cannot be its own collider: others alone meet it."
    told = []
    monkeypatch.setattr(parts, "sentence", lambda _layout, _context, text, _icon: told.append(text))
    layout, name = MagicMock(), stander.name
    select(stander)
    parts.draw_range(layout, bpy.context, stander)
    assert [text.startswith(own) for text in told] == [True]
    report = tmp_path / "report.json"
    given = ["--armature", name, "--frames=1:6", "--report", report, "--overwrite"]
    assert poise("simulate", save(tmp_path), *given) == 0
    (warning,) = json.loads(report.read_text())["warnings"]
    assert warning.startswith(own) and warning in capsys.readouterr().err
    assert poise("simulate", tmp_path / "shot.blend", *given, "--with", "Boxer") == 0
    assert not json.loads(report.read_text())["warnings"]
    for thing in bpy.data.objects:
        if thing.type == "ARMATURE":
            thing.poise.role = "COLLIDER"
    parts.draw_range(layout, bpy.context, bpy.data.objects[name])
    assert len(told) == 1


def test_which_armature_is_the_character_that_others_meet(stander, boxer, worm):
    """Whoever is marked is there for others, if just one is not."""
    scene = bpy.context.scene
    select(boxer)
    worm.poise.role = "COLLIDER"
    boxer.poise.role = "COLLIDER"
    assert chosen_armature(bpy.context)[0] == stander
    bpy.context.view_layer.objects.active = None
    assert chosen_armature(bpy.context)[0] == stander
    scene.poise.armature = boxer
    assert chosen_armature(bpy.context)[0] == boxer, "as the panel says"
    scene.poise.armature = None
    select(boxer)
    stander.poise.role = "COLLIDER"
    assert chosen_armature(bpy.context)[0] == boxer, "they meet each other"
    worm.poise.role = stander.poise.role = "NONE"
    assert chosen_armature(bpy.context)[0] == boxer, "others may be meant as well"

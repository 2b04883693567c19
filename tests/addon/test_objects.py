# SPDX-License-Identifier: GPL-3.0-or-later
"""Marked objects: what becomes of them in the simulation, and what is refused."""

import math
from types import SimpleNamespace

import bpy
import numpy as np
import pytest
from mathutils import Matrix

from poise.addon.blender import compat, session
from poise.addon.rigs import bake_target, sampling
from poise.addon.scene import objects
from poise.addon.settings.properties import bake_options
from poise.addon.shots.shot import Shot, ShotOptions
from poise.addon.staging import objects_panel
from poise.controller.exceptions import PoiseError, SettingsError
from poise.controller.geometry.rotations import matrix_from_quaternion
from poise.controller.geometry.skeleton import LANDMARKS
from poise.controller.simulation.scenario import Throw

pytestmark = pytest.mark.usefixtures("registered")

FPS = 25.0


def collected(frames=range(1, 31), unit=1.0):
    """What a scene's objects give for a character that stands at the origin."""
    frames = np.array(frames, float)
    step = frames[1] - frames[0]
    motion = SimpleNamespace(
        rate=FPS / step,
        frame_step=step,
        duration=(len(frames) - 1) * step / FPS,
        positions=np.zeros((len(frames), len(LANDMARKS), 3)),
    )
    reading = SimpleNamespace(armature="", frames=frames, metres_per_unit=unit, motion=motion)
    return sampling.run(objects.collecting(bpy.context.scene, reading))


def only(role, **settings):
    """Mark the active object, and give what it becomes."""
    thing = bpy.context.object
    thing.poise.role = role
    for name, value in settings.items():
        setattr(thing.poise, name, value)
    (found,) = collected()["things" if role == "THING" else "colliders"]
    return found


def ball(**values):
    bpy.ops.mesh.primitive_uv_sphere_add(**values)
    return bpy.context.object


def cube(**values):
    bpy.ops.mesh.primitive_cube_add(**values)
    return bpy.context.object


# Shapes -----------------------------------------------------------------------------------------


def test_a_sphere_is_a_sphere():
    ball(radius=0.3, location=(1, 2, 3))
    found = only("THING", mass_from="DENSITY", density=100.0)
    assert found.solid.kind == "sphere"
    assert found.solid.size[0] == pytest.approx(0.3, abs=1e-5)
    assert found.mass == pytest.approx(4 / 3 * math.pi * 0.3**3 * 100, rel=1e-4)
    assert np.allclose(found.position, (1, 2, 3), atol=1e-6)


def test_a_box_is_a_box_however_it_is_scaled_and_divided():
    thing = cube(size=1.0, rotation=(0.3, 0.2, 0.9))
    thing.scale = (1.0, 2.0, -0.5)
    bpy.ops.object.mode_set(mode="EDIT")
    bpy.ops.mesh.subdivide(number_cuts=3)
    bpy.ops.object.mode_set(mode="OBJECT")
    found = only("THING")
    assert found.solid.kind == "box"
    assert np.allclose(sorted(found.solid.size), [0.25, 0.5, 1.0], atol=1e-5)
    # Its corners are the object's.
    signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    turn = matrix_from_quaternion(np.array(found.rotation))
    corners = signs * found.solid.size @ turn.T + found.position
    own = np.array(thing.matrix_world) @ np.vstack([signs.T / 2, np.ones(8)])
    for corner in own[:3].T:
        assert np.linalg.norm(corners - corner, axis=1).min() < 1e-5


def test_what_is_hollow_is_filled_for_a_thing_and_kept_for_a_collider():
    bpy.ops.mesh.primitive_torus_add(major_radius=1.0, minor_radius=0.25)
    assert only("THING").solid.kind == "hull"
    found = only("COLLIDER")
    assert found.solid.kind == "mesh"
    assert len(found.solid.faces) == 2 * len(bpy.context.object.data.polygons)
    assert only("COLLIDER", shape="BOX").solid.size == pytest.approx((1.25, 1.25, 0.25), abs=0.01)


def test_a_hull_starts_at_its_centre_of_mass_along_its_principal_axes():
    bpy.ops.mesh.primitive_cone_add(depth=2.0, location=(1, 0, 5), rotation=(0.5, 0, 0))
    thing = bpy.context.object
    found = only("THING")
    turn = matrix_from_quaternion(np.array(found.rotation))
    world = np.array(thing.matrix_world)
    # The centre of a cone is a quarter of its height above its base.
    assert np.allclose(found.position, (world @ [0, 0, -0.5, 1])[:3], atol=1e-4)
    corners = found.solid.vertices @ turn.T + found.position
    for vertex in thing.data.vertices:
        place = world @ [*vertex.co, 1]
        assert np.linalg.norm(corners - place[:3], axis=1).min() < 1e-5


def test_modifiers_and_parents_count():
    thing = cube(size=1.0)
    thing.modifiers.new("Array", "ARRAY").count = 3
    thing.parent = bpy.data.objects.new("Empty", None)
    thing.parent.scale = (2, 2, 2)
    bpy.context.collection.objects.link(thing.parent)
    found = only("THING")
    assert np.allclose(sorted(found.solid.size), [1.0, 1.0, 3.0], atol=1e-5)
    assert np.allclose(found.position, (2, 0, 0), atol=1e-5)


def test_scene_units_become_metres():
    ball(radius=30.0, location=(100, 200, 300))
    bpy.context.object.poise.role = "THING"
    bpy.context.object.poise.velocity = (1, 2, 3)
    bpy.context.object.poise.velocity_from = "GIVEN"
    (found,) = collected(unit=0.01)["things"]
    assert found.solid.size[0] == pytest.approx(0.3, abs=1e-5)
    assert np.allclose(found.position, (1, 2, 3), atol=1e-5)
    assert found.velocity == (1, 2, 3)


# Release ----------------------------------------------------------------------------------------


def test_a_thing_goes_on_as_its_animation_moved_it():
    thing = cube(size=0.2)
    for frame in range(1, 21):
        t = (frame - 1) / FPS
        thing.location = (2 * t, 0, 1 + 3 * t - 2 * t * t)
        thing.rotation_euler = (0, 0, 5 * t)
        thing.keyframe_insert("location", frame=frame)
        thing.keyframe_insert("rotation_euler", frame=frame)
    found = only("THING", release=11)
    t = 10 / FPS
    assert found.start == pytest.approx(t)
    assert np.allclose(found.position, (2 * t, 0, 1 + 3 * t - 2 * t * t), atol=1e-5)
    assert np.allclose(found.velocity, (2, 0, 3 - 4 * t), atol=1e-3)
    assert np.allclose(found.spin, (0, 0, 5), atol=1e-3)
    (found,) = collected(np.arange(1, 31, 0.5))["things"]
    assert np.allclose(found.velocity, (2, 0, 3 - 4 * t), atol=1e-3)
    assert found.start == pytest.approx(t)


def test_a_given_velocity_is_as_given():
    cube()
    found = only("THING", velocity_from="GIVEN", velocity=(1, 2, 3), spin=(0, 0.5, 0), release=-9)
    assert found.velocity == (1, 2, 3)
    assert np.allclose(found.spin, (0, math.pi, 0))
    assert found.start == 0.0


def test_what_is_released_after_the_shot_takes_no_part():
    cube().poise.role = "THING"
    bpy.context.object.poise.release = 31
    assert collected()["things"] == ()


def test_a_collider_that_moves_has_a_path():
    thing = cube(size=1.0)
    for frame, x in ((1, 0.0), (30, 2.9)):
        thing.location.x = x
        thing.keyframe_insert("location", frame=frame)
    for curve in compat.curves(*compat.assigned(thing)):
        for point in curve.keyframe_points:
            point.interpolation = "LINEAR"
    bpy.context.scene.frame_set(7)
    found = only("COLLIDER")
    assert found.moves
    assert np.allclose(found.positions[:, 0], 0.1 * np.arange(30), atol=1e-5)
    assert bpy.context.scene.frame_current == 7


def test_an_animated_collider_that_stays_is_static():
    thing = cube(size=1.0)
    thing.keyframe_insert("location", frame=1)
    assert not only("COLLIDER").moves


def test_switches_and_spheres_of_the_scene():
    settings = bpy.context.scene.poise.objects
    found = collected(range(1, 101))
    assert found["things"] == () and not found["whole_body"] and not found["self_collision"]
    settings.whole_body = settings.self_collision = settings.throw = True
    settings.throw_mass = 3.0
    found = collected(range(1, 101))
    assert found["whole_body"] and found["self_collision"]
    assert {type(thing) for thing in found["things"]} == {Throw}
    assert [thing.mass for thing in found["things"]] == [3.0] * len(found["things"])
    first = found["things"]
    settings.throw_seed = 1
    assert collected(range(1, 101))["things"] != first


def test_objects_come_in_the_order_of_their_names():
    for name in ("b", "c", "a"):
        thing = cube(size=1.0)
        thing.name, thing.poise.role = name, "COLLIDER"
    assert [collider.name for collider in collected()["colliders"]] == ["a", "b", "c"]


# Refused ----------------------------------------------------------------------------------------


def no_faces(thing):
    thing.data.clear_geometry()
    thing.data.from_pydata([(0, 0, 0)], [], [])


def jump(thing):
    for frame, x in ((1, 0.0), (10, 0.0), (11, 3.0)):
        thing.location.x = x
        thing.keyframe_insert("location", frame=frame)
    for curve in compat.curves(*compat.assigned(thing)):
        for point in curve.keyframe_points:
            point.interpolation = "LINEAR"


def flat(thing):
    thing.scale.z = 0.0


def nowhere(thing):
    thing.location.x = float("nan")


def turned_nowhere(thing):
    thing.rotation_euler.z = float("nan")


def endlessly_far(thing):
    thing.location.z = float("inf")


def growing(thing):
    for frame, x in ((1, 1.0), (30, 2.0)):
        thing.scale.x = x
        thing.keyframe_insert("scale", frame=frame)


def uneven_parent(thing):
    parent = bpy.data.objects.new("Slab", None)
    parent.scale, parent.rotation_euler = (1, 2, 1), (0, 0, 0.5)
    bpy.context.collection.objects.link(parent)
    thing.parent = parent
    bpy.context.view_layer.update()


def undone_parent(thing):
    """Its uneven scale is taken back by the inverse from the time of parenting."""
    uneven_parent(thing)
    thing.matrix_parent_inverse = thing.parent.matrix_world.inverted()


def child_of_thing(thing):
    parent = cube()
    parent.name, parent.poise.role = "Cart", "THING"
    thing.parent = parent


def disabled(thing):
    thing.hide_viewport = True


def sheet(thing):
    thing.data.clear_geometry()
    thing.data.from_pydata([(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)], [], [(0, 1, 2, 3)])


def rigid_body(thing):
    bpy.context.view_layer.objects.active = thing
    bpy.ops.rigidbody.object_add(type="ACTIVE")


@pytest.mark.parametrize(
    ("role", "spoil", "settings", "sentence"),
    [
        ("COLLIDER", no_faces, {}, "'Odd' has no faces, so nothing can touch it: give it faces"),
        ("THING", no_faces, {}, "'Odd' has no faces"),
        ("THING", flat, {}, "'Odd' is scaled to zero along an axis: give it a scale above 0"),
        ("COLLIDER", flat, {}, "'Odd' is scaled to zero"),
        ("COLLIDER", jump, {}, "'Odd' jumps from frame 10 to 11, at 75 m/s: keep it below 20"),
        ("COLLIDER", nowhere, {}, "'Odd' has a place, a turn or a scale that is not a number"),
        ("COLLIDER", turned_nowhere, {}, "'Odd' has a place, a turn or a scale that is not a"),
        ("COLLIDER", endlessly_far, {}, "'Odd' has a place, a turn or a scale that is not a"),
        ("THING", nowhere, {}, "'Odd' has a place, a turn or a scale that is not a number"),
        ("COLLIDER", growing, {}, "'Odd' changes its size at frame 2"),
        ("THING", uneven_parent, {}, "parent 'Slab' of 'Odd' is scaled unevenly"),
        ("THING", child_of_thing, {}, "'Odd' and its parent 'Cart' are both things"),
        ("COLLIDER", disabled, {}, "'Odd' or its collection is disabled in the viewport"),
        ("THING", sheet, {}, "'Odd' is flat, so it has no inside: give it thickness"),
        ("THING", rigid_body, {}, "'Odd' is an active rigid body, which overrules keys"),
    ],
)
def test_what_cannot_take_part_is_told(role, spoil, settings, sentence):
    thing = cube(size=1.0)
    thing.name, thing.poise.role = "Odd", role
    for name, value in settings.items():
        setattr(thing.poise, name, value)
    if spoil:
        spoil(thing)
    bpy.context.scene.frame_set(5)
    with pytest.raises(PoiseError, match=sentence):
        collected()
    assert bpy.context.scene.frame_current == 5


def test_a_parent_whose_scale_is_taken_back_is_fine():
    thing = cube(size=1.0)
    undone_parent(thing)
    assert only("THING").solid.kind == "box"


def test_a_mesh_of_too_many_faces_is_refused_with_a_way_out():
    bpy.ops.mesh.primitive_grid_add(x_subdivisions=200, y_subdivisions=200)
    thing = bpy.context.object
    thing.name = "Terrain"
    # Uneven, so that it is not flat.
    heights = np.zeros((len(thing.data.vertices), 3), np.float32)
    thing.data.vertices.foreach_get("co", heights.ravel())
    heights[:, 2] = 0.1 * np.sin(9 * heights[:, 0]) * np.cos(9 * heights[:, 1])
    thing.data.vertices.foreach_set("co", heights.ravel())
    thing.data.update()
    with pytest.raises(SettingsError, match="'Terrain' has 40000 faces, more than the 20000"):
        only("COLLIDER")
    assert only("COLLIDER", shape="HULL").solid.kind == "hull"
    assert len(only("THING").solid.vertices) <= 128
    bpy.context.object.poise.shape = "AUTO"
    thing.modifiers.new("Decimate", "DECIMATE").ratio = 0.2
    assert len(only("COLLIDER").solid.faces) <= 20_000


# In the sidebar ---------------------------------------------------------------------------------


def test_selected_meshes_are_marked_and_unmarked():
    assert not bpy.ops.poise.make_thing.poll()
    one, other = cube(), ball()
    one.select_set(True)
    bpy.context.scene.frame_set(12)
    assert bpy.ops.poise.make_thing() == {"FINISHED"}
    assert [(t.poise.role, t.poise.release) for t in (one, other)] == [("THING", 12)] * 2
    one.select_set(False)
    assert bpy.ops.poise.make_collider() == {"FINISHED"}
    assert (one.poise.role, other.poise.role) == ("THING", "COLLIDER")
    other.poise.shape = "MESH"
    assert bpy.ops.poise.make_thing() == {"FINISHED"}
    assert other.poise.shape == "AUTO"  # what moves is convex
    assert bpy.ops.poise.unmark() == {"FINISHED"}
    assert other.poise.role == "NONE"
    assert not bpy.ops.poise.unmark.poll()


def test_the_list_follows_the_active_object():
    one, other = cube(), ball()
    settings = bpy.context.scene.poise.objects
    assert bpy.context.scene.objects[settings.index] == other
    settings.index = bpy.context.scene.objects.find(one.name)
    assert bpy.context.view_layer.objects.active == one
    assert one.select_get() and not other.select_get()


def test_the_list_shows_what_is_marked():
    cube().poise.role = "THING"
    ball()
    bpy.data.objects.new("Empty", None)
    rows = SimpleNamespace(bitflag_filter_item=1, filter_name="")
    draw = objects_panel.POISE_UL_objects.filter_items
    shown, _ = draw(rows, bpy.context, bpy.context.scene, "objects")
    assert [t.name for t, on in zip(bpy.context.scene.objects, shown, strict=True) if on] == [
        "Cube"
    ]


# The whole way ----------------------------------------------------------------------------------


def test_a_falling_crate_is_baked_with_the_body_and_undone_with_it(import_clip):
    """Simulate, bake, switch, simulate again: what was baked is no source of the next one."""
    armature = import_clip("stand")
    scene = bpy.context.scene
    scene.poise.frames, scene.poise.first_frame, scene.poise.last_frame = "CUSTOM", 1, 40
    crate = cube(size=0.3, location=(2.0, 4.0, 2.0))
    crate.poise.role = "THING"
    crate.matrix_world = Matrix.Translation((2.0, 4.0, 2.0))
    bpy.context.view_layer.objects.active = armature
    assert bpy.ops.poise.simulate() == {"FINISHED"}
    recording = session.result_of(scene, armature).recording
    path = recording.thing_positions[:, 0]
    assert bpy.ops.poise.bake() == {"FINISHED"}
    assert bake_options(scene.poise).key_every == 1
    for obj in (armature, crate):
        assert bake_target.mark_of(*compat.assigned(obj))
    scene.frame_set(20)
    assert np.allclose(crate.matrix_world.translation, path[19], atol=1e-5)
    assert path[19, 2] < 1.9
    assert bpy.ops.poise.show(which="source") == {"FINISHED"}
    scene.frame_set(20)
    assert crate.location.z == pytest.approx(2.0)
    assert bpy.ops.poise.show(which="baked") == {"FINISHED"}
    assert bpy.ops.poise.simulate() == {"FINISHED"}
    again = session.result_of(scene, armature).recording.thing_positions[:, 0]
    assert np.array_equal(path, again, equal_nan=True)
    assert bake_target.mark_of(*compat.assigned(crate))
    bpy.data.objects.remove(crate)
    keys = len(compat.curves(*compat.assigned(armature)))
    with pytest.raises(RuntimeError, match="'Cube' was in the simulation, but is not in the scene"):
        bpy.ops.poise.bake()
    assert len(compat.curves(*compat.assigned(armature))) == keys


def test_it_stands_on_a_box_that_it_was_lifted_on(import_clip):
    armature = import_clip("stand")
    bpy.context.scene.poise.frames = "CUSTOM"
    bpy.context.scene.poise.last_frame = 30
    armature.location.z += 0.1
    bpy.context.view_layer.update()
    hips = armature.matrix_world @ armature.pose.bones[0].head
    podium = cube(size=1.0, location=(hips.x, hips.y, 0.05))
    podium.scale, podium.poise.role = (1.5, 1.5, 0.1), "COLLIDER"
    bpy.context.view_layer.objects.active = armature
    assert bpy.ops.poise.simulate() == {"FINISHED"}
    result = session.result_of(bpy.context.scene, armature)
    assert result.shot.character.ground == pytest.approx(0.1, abs=1e-5)
    assert result.shot.simulation.scenario.floor == 0.0
    assert result.recording.success


def test_trials_of_gains_see_what_stands_in_the_scene_and_say_what_they_leave_out(import_clip):
    armature = import_clip("stand")
    armature.location.z += 0.1
    bpy.context.view_layer.update()
    hips = armature.matrix_world @ armature.pose.bones[0].head
    podium = cube(size=1.0, location=(hips.x, hips.y, 0.05))
    podium.scale, podium.poise.role = (1.5, 1.5, 0.1), "COLLIDER"
    prepared = Shot(bpy.context.scene, ShotOptions(armature=armature.name, frames=(1, 30)))
    sampling.run(prepared.read())
    prepared.prepare()
    assert prepared.left_out == ""
    problem = prepared.problem(duration=None)
    assert problem.scenario.colliders == prepared.simulation.scenario.colliders
    assert problem.character.ground == prepared.character.ground == pytest.approx(0.1, abs=1e-5)

    ball(location=(3.0, 0.0, 1.0))
    bpy.context.object.poise.role = "THING"
    door = cube(size=0.5, location=(4.0, 0.0, 1.0))
    door.poise.role = "COLLIDER"
    for frame, x in ((1, 4.0), (30, 5.0)):
        door.location.x = x
        door.keyframe_insert("location", frame=frame)
    sampling.run(prepared.read())
    prepared.prepare()
    assert len(prepared.simulation.scenario.colliders) == 2
    assert prepared.left_out == (
        "Trials repeat the clip and leave out what happens once: things, colliders that move."
    )
    scenario = prepared.problem(duration=None).scenario
    assert not scenario.things
    assert [collider.name for collider in scenario.colliders] == [podium.name]

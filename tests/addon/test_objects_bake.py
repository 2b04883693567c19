# SPDX-License-Identifier: GPL-3.0-or-later
"""The bake of things: exactly where the physics took them, whatever stands around an object."""

import math

import bpy
import numpy as np
import pytest
from mathutils import Matrix

from poise.addon.baking import bake_objects
from poise.addon.blender import compat
from poise.addon.rigs import bake_target, reference, sampling
from poise.addon.scene import objects
from poise.controller.exceptions import BakeError
from poise.controller.geometry.rotations import exponential, matrix_from_quaternion, multiply
from poise.controller.simulation.scenario import Scenario, Throw

pytestmark = pytest.mark.usefixtures("registered")

RELEASE = 10


@pytest.fixture
def box(biped):
    """A box that is thrown, in the scene of an animated biped."""
    bpy.ops.mesh.primitive_cube_add(size=0.4, location=(1.5, 0.3, 1.2), rotation=(0.4, -0.2, 0.9))
    thing = bpy.context.object
    thing.name, thing.scale = "Crate", (1.0, 0.5, 2.0)
    thing.poise.role, thing.poise.release = "THING", RELEASE
    return thing


class Recorded:
    """What a simulation would have recorded: things on smooth paths from their releases on."""

    def __init__(self, reading, things):
        self.scenario = Scenario(things=things)
        count = len(reading.frames)
        self.thing_positions = np.full((count, len(things), 3), np.nan)
        self.thing_rotations = np.full((count, len(things), 4), np.nan)
        time = np.arange(count) / reading.motion.rate
        for i, thing in enumerate(things):
            if isinstance(thing, Throw):
                thing = thing.launched(np.array([0.0, 0.0, 1.5]))
            after = time > thing.start + 1e-6
            t = (time[after] - thing.start)[:, None]
            path = t * np.array([2.0, -1.0, 3.0]) - t**2 * np.array([0.3, 0.1, 4.9])
            self.thing_positions[after, i] = thing.position + path
            turns = exponential(t * np.array([3.0, 8.0, -5.0]))
            self.thing_rotations[after, i] = multiply(turns, thing.rotation)

    def __len__(self):
        return len(self.thing_positions)


def world(thing, frame):
    """Evaluated world matrix of an object at a frame."""
    scene = bpy.context.scene
    scene.frame_set(frame)
    return np.array(thing.evaluated_get(bpy.context.evaluated_depsgraph_get()).matrix_world, float)


def bake(armature, biped_map, take=""):
    """Collect, pretend to simulate, bake: (reading, recording)."""
    scene = bpy.context.scene
    reading = reference.read(scene, armature, rig_map=biped_map)
    found = sampling.run(objects.collecting(scene, reading))
    recording = Recorded(reading, found["things"])
    planned = bake_objects.plan(scene, reading, recording)
    bake_objects.bake_things(scene, reading, planned, take)
    return reading, recording


def wanted(reading, recording, start, sample, number=0):
    """World matrix of an object that starts at `start`, in scene units, after a rigid motion."""
    thing, unit = recording.scenario.things[number], reading.metres_per_unit
    turn = matrix_from_quaternion(recording.thing_rotations[sample, number])
    turn = turn @ matrix_from_quaternion(np.array(thing.rotation)).T
    place = np.array(start)
    place[:3, :3] = turn @ start[:3, :3]
    arm = start[:3, 3] - np.array(thing.position) / unit
    place[:3, 3] = recording.thing_positions[sample, number] / unit + turn @ arm
    return place


def plain(_box, _armature):
    pass


def keyed(box, _armature):
    for frame, x in ((1, 0.0), (RELEASE, 1.0), (40, 9.0)):
        box.location.x, box.rotation_euler.z = x, x / 3
        box.keyframe_insert("location", frame=frame)
        box.keyframe_insert("rotation_euler", frame=frame)


def quaternion(box, _armature):
    box.rotation_mode = "QUATERNION"
    box.rotation_quaternion = (0.5, 0.5, -0.5, 0.5)
    box.delta_rotation_quaternion = (0.8, 0.0, 0.6, 0.0)


def axis_angle(box, _armature):
    box.rotation_mode = "AXIS_ANGLE"
    box.rotation_axis_angle = (0.7, 0.0, 0.6, 0.8)


def deltas(box, _armature):
    box.rotation_mode = "ZXY"
    box.delta_location, box.delta_rotation_euler = (0.1, 0.2, -0.3), (0.3, 0.4, -0.5)
    box.delta_scale = (1.5, 1.0, 0.5)


def mirrored(box, _armature):
    box.scale = (-1.0, 0.7, 1.3)


def parented(box, _armature):
    parent = bpy.data.objects.new("Truck", None)
    bpy.context.collection.objects.link(parent)
    for frame, x in ((1, 0.0), (30, 2.0)):
        parent.location.x, parent.rotation_euler.z = x, x
        parent.keyframe_insert("location", frame=frame)
        parent.keyframe_insert("rotation_euler", frame=frame)
    parent.scale = (2.0, 2.0, 2.0)
    box.parent = parent
    box.matrix_parent_inverse = Matrix.Translation((0.2, 0.1, 0.4))


def in_hand(box, armature):
    box.parent, box.parent_type, box.parent_bone = armature, "BONE", "hand.R"


def held(box, armature):
    box.location, box.rotation_euler = (0.0, 0.1, 0.0), (0, 0, 0.5)
    hold = box.constraints.new("COPY_TRANSFORMS")
    hold.target, hold.subtarget, hold.mix_mode = armature, "hand.L", "BEFORE_FULL"
    hold.target_space = hold.owner_space = "WORLD"


def centimetres(box, armature):
    bpy.context.scene.unit_settings.scale_length = 0.01
    armature.scale = (100.0, 100.0, 100.0)
    box.scale, box.location = (80.0, 100.0, 120.0), (150.0, 30.0, 120.0)


@pytest.mark.parametrize(
    "arrange",
    [
        plain,
        keyed,
        quaternion,
        axis_angle,
        deltas,
        mirrored,
        parented,
        in_hand,
        held,
        centimetres,
    ],
)
def test_a_bake_is_where_the_physics_was(box, biped, biped_map, arrange):
    arrange(box, biped)
    before = [world(box, frame) for frame in range(1, RELEASE + 1)]
    reading, recording = bake(biped, biped_map)
    assert reading.metres_per_unit == pytest.approx(0.01 if arrange is centimetres else 1.0)
    assert compat.assigned(box)[0].name.endswith(" Poise")
    for frame, matrix in enumerate(before, 1):
        assert np.allclose(world(box, frame), matrix, atol=1e-5 / reading.metres_per_unit)
    for sample in range(RELEASE, len(recording)):
        found = world(box, int(reading.frames[sample]))
        error = found - wanted(reading, recording, before[-1], sample)
        # 0.01 mm at all corners of the box, whose coordinates are up to 0.2.
        assert np.abs(error[:3, 3]).max() * reading.metres_per_unit < 5e-6
        assert np.abs(error[:3, :3]).max() * 0.6 * reading.metres_per_unit < 5e-6


def test_source_and_bake_can_be_switched(box, biped, biped_map):
    held(box, biped)
    source = world(box, 20)
    bake(biped, biped_map)
    baked = world(box, 20)
    assert not np.allclose(source, baked, atol=0.1)
    bake_objects.show(bpy.context.scene, biped, "source")
    assert np.allclose(world(box, 20), source, atol=1e-6)
    assert compat.assigned(box)[0] is None
    bake_objects.show(bpy.context.scene, biped, "baked")
    assert np.allclose(world(box, 20), baked, atol=1e-6)


def test_things_have_a_bake_for_each_take(box, biped, biped_map):
    for take in ("soft", "", "hard"):
        bake(biped, biped_map, take)
    actions = {action.name for action in bpy.data.actions if "Crate" in action.name}
    assert actions == {"Crate Poise", "Crate Poise soft", "Crate Poise hard"}
    for take in ("soft", "hard", "soft", ""):
        bake_objects.show(bpy.context.scene, biped, "baked", take)
        assert compat.assigned(box)[0].name == f"Crate Poise {take}".rstrip()
    bake_objects.show(bpy.context.scene, biped, "baked", "gone")
    assert compat.assigned(box)[0] is None, "its source"


def test_a_second_bake_replaces_the_first(box, biped, biped_map):
    keyed(box, biped)
    source = compat.assigned(box)[0]
    keys = [tuple(p.co) for c in compat.curves(*compat.assigned(box)) for p in c.keyframe_points]
    bake(biped, biped_map)
    first = world(box, 25)
    actions = sorted(action.name for action in bpy.data.actions)
    bake(biped, biped_map)
    assert np.allclose(world(box, 25), first, atol=1e-6)
    assert sorted(action.name for action in bpy.data.actions) == actions
    again = [
        tuple(p.co)
        for c in compat.curves(source, compat.object_slot(source, box))
        for p in c.keyframe_points
    ]
    assert again == keys


def test_an_object_deleted_since_is_told_before_anything_is_written(box, biped, biped_map):
    scene = bpy.context.scene
    reading = reference.read(scene, biped, rig_map=biped_map)
    found = sampling.run(objects.collecting(scene, reading))
    recording = Recorded(reading, found["things"])
    bpy.data.objects.remove(box)
    actions = set(bpy.data.actions)
    with pytest.raises(BakeError, match="'Crate' was in the simulation, but is not in the scene"):
        bake_objects.plan(scene, reading, recording)
    assert set(bpy.data.actions) == actions


@pytest.mark.parametrize("what", ["driver", "lock", "solo"])
def test_what_cannot_be_keyed_is_told_before_anything_is_written(box, biped, biped_map, what):
    scene = bpy.context.scene
    keyed(box, biped)
    reading = reference.read(scene, biped, rig_map=biped_map)
    recording = Recorded(reading, sampling.run(objects.collecting(scene, reading))["things"])
    if what == "driver":
        box.driver_add("rotation_euler", 1)
    elif what == "lock":
        compat.curves(*compat.assigned(box))[0].lock = True
    else:
        box.animation_data.nla_tracks.new().is_solo = True
    sentence = {"driver": "has a driver", "lock": "is locked", "solo": "is solo"}[what]
    actions = set(bpy.data.actions)
    with pytest.raises(BakeError, match=sentence):
        bake_objects.plan(scene, reading, recording)
    assert set(bpy.data.actions) == actions


def test_thrown_spheres_become_objects_that_come_and_go(biped, biped_map):
    scene = bpy.context.scene
    settings = scene.poise.objects
    settings.throw, settings.throw_mass = True, 3.0
    reading = reference.read(scene, biped, rig_map=biped_map)
    things = (Throw(3.0, 0.4, 0.0, name="Sphere 1"), Throw(3.0, 0.8, 1.0, name="Sphere 2"))
    mine = bpy.data.objects.new("Sphere 9", None)
    scene.collection.objects.link(mine)
    for _ in range(2):  # the second bake replaces the first
        recording = Recorded(reading, things)
        planned = bake_objects.plan(scene, reading, recording)
        assert bake_objects.bake_things(scene, reading, planned) == ["Sphere 1", "Sphere 2"]
    spheres = bake_objects.spheres_of(scene, biped)
    assert [s.name for s in bpy.data.collections["Poise"].objects] == ["Sphere 1", "Sphere 2"]
    assert mine.name in scene.objects
    assert len([a for a in bpy.data.actions if bake_target.MARK in a]) == 2
    first = spheres[0]
    radius = max(vertex.co.length for vertex in first.data.vertices)
    assert 4 / 3 * math.pi * radius**3 * 100.0 == pytest.approx(3.0, rel=1e-4)
    shown = np.flatnonzero(np.isfinite(recording.thing_positions[:, 0, 0]))[0]
    scene.frame_set(int(reading.frames[shown]) - 1)
    assert first.hide_render and first.hide_viewport
    scene.frame_set(int(reading.frames[shown]))
    assert not first.hide_render and not first.hide_viewport
    place = world(first, int(reading.frames[shown + 5]))[:3, 3]
    assert np.allclose(place, recording.thing_positions[shown + 5, 0], atol=1e-5)
    bake_objects.show(scene, biped, "source")
    scene.frame_set(int(reading.frames[shown + 5]))
    assert first.hide_render and first.hide_viewport
    bake_objects.show(scene, biped, "baked")
    scene.frame_set(int(reading.frames[shown + 5]))
    assert not first.hide_render

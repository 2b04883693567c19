# SPDX-License-Identifier: GPL-3.0-or-later
"""Evaluating an armature aside: the same poses, the user's scene untouched, nothing left behind."""

import contextlib

import bpy
import numpy as np
import pytest

from poise.addon.baking import bake
from poise.addon.blender import evaluation
from poise.addon.rigs import reference, sampling

FRAMES = 1.0, 4.25, 30.0, 12.0, -3.5, 2.0, 2.0


def by_scene(armature, frames=FRAMES):
    """Poses and world matrices as the user's scene shows them."""
    scene, found = bpy.context.scene, []
    for frame in frames:
        scene.frame_set(int(np.floor(frame)), subframe=frame - np.floor(frame))
        evaluated = armature.evaluated_get(bpy.context.evaluated_depsgraph_get())
        found.append(evaluation._pose(evaluated))
    scene.frame_set(1)
    return np.array(found)


@contextlib.contextmanager
def aside(armature):
    """An Evaluation that went aside if it may."""
    with evaluation.evaluating(bpy.context.scene, armature) as one:
        sampling.run(one.going_aside())
        yield one


def evaluated(armature, frames=FRAMES):
    """The same as an Evaluation sees them, and whether it was aside."""
    with aside(armature) as one:
        found = [evaluation._pose(one.at(frame)) for frame in frames]
        return np.array(found), len(bpy.data.scenes) > 1


def driver_of(owner, path, expression=None):
    driver = owner.driver_add(path, *([0] if path == "location" else [])).driver
    driver.type = "SCRIPTED" if expression else "AVERAGE"
    if expression:
        driver.expression = expression
    return driver


def variable(driver, kind, id_type, target, path):
    added = driver.variables.new()
    added.name, added.type = "x", kind
    if kind == "SINGLE_PROP":
        added.targets[0].id_type = id_type
        added.targets[0].id = target
    added.targets[0].data_path = path


def constrained(armature):
    """A parent that turns, an IK target that a driver moves, a remapped and renamed time."""
    scene = bpy.context.scene
    parent, target = (bpy.data.objects.new(name, None) for name in ("turntable", "target"))
    for thing in (parent, target):
        scene.collection.objects.link(thing)
    for frame in (1, 30):
        parent.rotation_euler.z = frame / 20
        parent.keyframe_insert("rotation_euler", frame=frame)
    armature.parent = parent
    driver_of(target, "location", "0.3 * sin(frame / 9)")
    ik = armature.pose.bones["hand.L"].constraints.new("IK")
    ik.target, ik.chain_count = target, 3
    scene.render.fps, scene.render.frame_map_new = 24, 150
    return target


def test_aside_all_is_as_in_the_scene(biped):
    constrained(biped)
    wanted = by_scene(biped)
    found, aside = evaluated(biped)
    assert aside and np.array_equal(found, wanted)
    assert np.ptp(wanted, axis=0).max() > 0.1


def test_the_users_scene_stays_where_it_is(biped):
    scene, thing = bpy.context.scene, bpy.data.objects.new("clock", None)
    scene.collection.objects.link(thing)
    thing.driver_add("location", 0).driver.expression = "frame"
    scene.frame_set(7)
    seen = thing.evaluated_get(bpy.context.view_layer.depsgraph)
    own = evaluation._pose(biped)
    with aside(biped) as one:
        for frame in (3.0, 9.5, 30.2):
            one.at(frame)
            assert one.is_at(frame) and scene.frame_current == 7
            assert (evaluation._pose(biped) == own).all()
            bpy.context.view_layer.update()
            assert seen.matrix_world.translation.x == 7


def test_all_that_a_pose_depends_on_is_found_in_slices(biped):
    constrained(biped)
    users = bpy.data.user_map()
    needed, before = {biped}, set()
    while needed != before:
        before = needed
        needed = needed | {one for one, by in users.items() if by & needed}
    assert {one.name for one in needed} >= {"biped", "walk", "turntable", "target"}
    looks = evaluation._needed(biped)
    assert next(looks) == 0.0
    found = sampling.run(looks)
    assert found == needed and bpy.context.scene not in found


def scene_driver(armature):
    bpy.context.scene["side"] = 0.2
    driver = driver_of(armature, "location")
    variable(driver, "SINGLE_PROP", "SCENE", bpy.context.scene, "frame_current")


def context_driver(armature):
    variable(driver_of(armature, "location"), "CONTEXT_PROP", None, None, "frame_current")


def python_driver(armature):
    driver_of(armature, "location", "len(str(frame)) + __import__('math').sin(frame)")


def simulated_target(armature):
    target = constrained(armature)
    mesh = bpy.data.objects.new("cloth", bpy.data.meshes.new("cloth"))
    bpy.context.scene.collection.objects.link(mesh)
    mesh.modifiers.new("cloth", "CLOTH")
    target.parent = mesh


def rigid_target(armature):
    target = constrained(armature)
    mesh = bpy.data.objects.new("stone", bpy.data.meshes.new("stone"))
    bpy.context.scene.collection.objects.link(mesh)
    bpy.ops.rigidbody.world_add()
    bodies = bpy.data.collections.new("bodies")
    bpy.context.scene.rigidbody_world.collection = bodies
    bodies.objects.link(mesh)
    bpy.context.view_layer.update()
    target.parent = mesh


def camera_target(armature):
    armature.pose.bones["head"].constraints.new("CAMERA_SOLVER")


def simulated_ik(armature):
    armature.pose.ik_solver = "ITASC"


@pytest.mark.parametrize(
    "depends",
    [
        scene_driver,
        context_driver,
        python_driver,
        simulated_target,
        rigid_target,
        camera_target,
        simulated_ik,
    ],
)
def test_where_the_scene_has_a_say_it_is_asked(biped, depends):
    depends(biped)
    wanted = by_scene(biped)
    found, aside = evaluated(biped)
    assert not aside and np.array_equal(found, wanted)


def test_a_pose_that_differs_aside_is_the_scenes(biped, monkeypatch):
    monkeypatch.setattr(evaluation, "_RENDER", ())
    bpy.context.scene.render.frame_map_new = 50
    bpy.context.scene.frame_set(20)
    found, aside = evaluated(biped)
    assert not aside and np.array_equal(found, by_scene(biped))


@pytest.mark.parametrize("name", ["frame_change_pre", "depsgraph_update_post"])
def test_handlers_of_others_see_the_users_scene_alone(biped, name):
    seen, handlers = set(), getattr(bpy.app.handlers, name)

    def handler(scene, *_):
        seen.add(scene.name)

    handlers.append(handler)
    try:
        _, aside = evaluated(biped)
    finally:
        handlers.remove(handler)
    assert not aside and seen <= {bpy.context.scene.name}


def test_nothing_is_left_of_what_is_stopped(biped):
    scene = bpy.context.scene
    generator = reference.reading(scene, biped)
    for _ in range(5):
        next(generator)
    assert len(bpy.data.scenes) == 2
    generator.close()
    assert bpy.data.scenes[:] == [scene] and biped.users_scene == (scene,)


def test_nothing_is_left_of_an_error(biped, biped_map, no_differences, monkeypatch):
    scene = bpy.context.scene
    reading = reference.read(scene, biped, rig_map=biped_map)
    monkeypatch.setattr(bake.Clip, "__init__", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        bake.bake(scene, reading, *no_differences(len(reading.frames)))
    assert bpy.data.scenes[:] == [scene]


def test_what_is_saved_meanwhile_has_no_scene_aside(biped, tmp_path):
    path = str(tmp_path / "meanwhile.blend")
    with aside(biped) as one:
        one.at(5.0)
        assert len(bpy.data.scenes) == 2
        bpy.ops.wm.save_as_mainfile(filepath=path, copy=True)
    with bpy.data.libraries.load(path) as (held, _):
        assert held.scenes == [bpy.context.scene.name] and "biped" in held.objects


def test_an_undo_step_of_meanwhile_brings_no_scene_back(biped):
    scene = bpy.context.scene.name
    evaluation.register()
    try:
        bpy.ops.ed.undo_push(message="before")
        with aside(biped):
            bpy.ops.ed.undo_push(message="meanwhile")
        bpy.ops.ed.undo_push(message="after")
        bpy.ops.ed.undo()
        assert [one.name for one in bpy.data.scenes] == [scene]
        bpy.ops.ed.undo()
        bpy.ops.ed.redo()
        assert [one.name for one in bpy.data.scenes] == [scene]
    finally:
        evaluation.unregister()

# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects in the window: mark, simulate, bake, undo the bake of body and objects in one step."""

import bpy

THING, COLLIDER = "bpy.ops.poise.make_thing()", "bpy.ops.poise.make_collider()"
SIMULATE, BAKE = "bpy.ops.poise.simulate()", "bpy.ops.poise.bake()"

#: Panels that would push those of the objects out of sight.
CLOSED = ("character", "gains")


def scenario(driver):
    """All stations, in the order in which a user meets them."""
    driver.module("staging.objects_panel").POISE_PT_objects.bl_options = set()
    driver.rearrange(closed=CLOSED, opened=("objects", "contact"))
    yield from driver.open("stand")
    crate, step = _furnish(driver)
    yield from driver.click(THING)
    driver.check("the crate is a thing", crate().poise.role == "THING", crate().poise.role)
    _select(step())
    yield 0.3
    yield from driver.click(COLLIDER, across=0.7)
    driver.check("the step is a collider", step().poise.role == "COLLIDER", step().poise.role)
    _select(crate())
    settings = bpy.context.scene.poise.objects
    settings.throw = settings.whole_body = True
    bpy.ops.ed.undo_push(message="Settings")
    yield 0.5
    driver.sidebar.tag_redraw()
    yield 0.5
    yield from driver.shot("objects_1_marked")
    yield from driver.click(SIMULATE)
    yield lambda: driver.session.job() is None
    driver.check("it is simulated", driver.result.recording is not None, driver.result.error)
    before = _state()
    yield from driver.click(BAKE)
    yield lambda: driver.session.job() is None
    yield 0.5
    after = _state()
    driver.check("the body and the crate have new actions", _new(before, after) >= 2, after)
    bpy.context.scene.frame_set(60)
    yield 0.5
    yield from driver.shot("objects_2_baked")
    yield from driver.press("ctrl+z")
    driver.check("one undo removes all of it", _state() == before, _state())
    yield 0.5
    yield from driver.shot("objects_3_undone")
    yield from driver.press("ctrl+shift+z")
    driver.check("redo brings it back", _state() == after, _state())


def _furnish(driver):
    """A crate over the character and a step beside it; functions that give them, since undo makes
    references invalid."""
    hips = driver.armature.matrix_world @ driver.armature.pose.bones[0].head
    bpy.ops.mesh.primitive_cube_add(size=1, location=(hips.x, hips.y + 0.9, 0.15))
    bpy.context.object.name, bpy.context.object.scale = "Step", (1.5, 0.6, 0.3)
    bpy.ops.mesh.primitive_cube_add(size=0.3, location=(hips.x, hips.y + 0.1, 2.4))
    bpy.context.object.name = "Crate"
    bpy.context.scene.poise.armature = driver.armature
    return (lambda: bpy.data.objects["Crate"]), (lambda: bpy.data.objects["Step"])


def _select(thing):
    bpy.ops.object.select_all(action="DESELECT")
    thing.select_set(True)
    bpy.context.view_layer.objects.active = thing


def _state():
    """What a bake changes: actions, objects, and what animates each object."""
    animated = {
        thing.name: thing.animation_data.action.name
        for thing in bpy.data.objects
        if thing.animation_data and thing.animation_data.action
    }
    return sorted(a.name for a in bpy.data.actions), sorted(bpy.data.objects.keys()), animated


def _new(before, after):
    return len(set(after[0]) - set(before[0]))

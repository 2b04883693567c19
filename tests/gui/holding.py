# SPDX-License-Identifier: GPL-3.0-or-later
"""Holds in the window: the example's character hangs from a bar by both hands, one of them breaks,
and it swings by the other."""

import bpy

EXAMPLE = "bpy.ops.poise.example_scene()"
LEFT = "bpy.ops.poise.add_hold(limb='LEFT_HAND')"
RIGHT = "bpy.ops.poise.add_hold(limb='RIGHT_HAND')"
SIMULATE = "bpy.ops.poise.simulate()"
CLOSED = ("character", "gains")
FRAMES = 110
_UP = 0.95  # [m] that it is above where it would stand


def scenario(driver):
    """Holds by buttons, their forces, and a break."""
    driver.module("staging.holds_panel").POISE_PT_holds.bl_options = set()
    driver.rearrange(closed=CLOSED, opened=("holds",))
    yield from driver.open("hips_twist")
    bpy.ops.wm.read_homefile(use_empty=True)
    yield 0.3
    yield from driver.show_sidebar()
    bpy.context.scene.poise.mode = "QUICK"
    yield 0.3
    yield from driver.click(EXAMPLE)
    yield 0.5
    bpy.context.scene.poise.mode = "FULL"
    _hang(driver)
    yield 0.5
    yield from driver.click(LEFT)
    yield from driver.click(RIGHT, across=0.7)
    empties = [one for one in bpy.data.objects if one.name.startswith("Hold")]
    limbs = sorted(one.poise_hold.limb for one in empties)
    driver.check("each hand has a hold", limbs == ["LEFT_HAND", "RIGHT_HAND"], limbs)
    yield from driver.shot("holding_1_set")
    yield from driver.click(SIMULATE)
    yield lambda: driver.session.job() is None
    recording = driver.result.recording
    driver.check("it is simulated", recording is not None, driver.result.error)
    driver.check("it hangs to the end", recording.filled and not recording.why(), recording.why())
    weight = recording.character.mass * 9.81
    borne = recording.hold_forces[48:, :, 2].sum(1).mean() / weight
    driver.check("both hands carry it", 0.95 < borne < 1.05, borne)
    bpy.context.scene.frame_set(60)
    yield 0.5
    yield from driver.shot("holding_2_hangs")
    left = next(one for one in empties if one.poise_hold.limb == "LEFT_HAND")
    left.poise_hold.breaking = 0.25 * weight
    yield from driver.simulate_anew("Weak")
    swings = driver.result.recording
    broke = [one.broke for one in swings.grasps()]
    driver.check("one of them breaks", sum(broke) == 1, broke)
    bpy.context.scene.frame_set(29)
    yield 0.5
    yield from driver.shot("holding_3_breaks")
    yield from driver.bake()


def _hang(driver):
    """Keys of who hangs, legs drawn up and down, and a bar in the hands."""
    scene, armature = bpy.context.scene, driver.armature
    armature.animation_data.action = bpy.data.actions.new("Hang")
    key = driver.module("example.character").key
    for frame, bend in ((1, 0.0), (40, 0.22), (75, 0.02), (FRAMES, 0.0)):
        foot = ((0, 0.1 * bend, _UP + bend), -10)
        turned = (4 * bend, 0, 6 * bend, 0)
        key(armature, frame, (0, 0, _UP), turned, foot, foot, (-6, 0, -172), 10)
    scene.frame_end = FRAMES
    scene.poise.pushes.items[0].use = False
    scene.frame_set(1)
    hands = [armature.pose.bones[f"{side}Hand"] for side in ("Left", "Right")]
    x, y, z = sum(((one.head + one.tail) / 2 for one in hands), start=hands[0].head * 0) / 2
    bpy.ops.mesh.primitive_cylinder_add(radius=0.02, depth=1.4, location=(x, y, z + 0.02))
    bar = bpy.context.object
    bar.name, bar.rotation_euler = "Bar", (0.0, 1.5708, 0.0)
    scene.poise.armature, scene.poise.method, scene.poise.ghost = armature, "BALANCE", "OVER"
    scene.poise.overlays.forces = True
    bpy.ops.object.select_all(action="DESELECT")
    driver.look_at((0.0, 0.0, 1.9), 4.6, (1.35, 0.0, 0.75))
    bpy.ops.ed.undo_push(message="Bar")

# SPDX-License-Identifier: GPL-3.0-or-later
"""The example's character sits down on a chair, by careless keys, leans to and fro, and is pushed
off it: by the buttons of Quick."""

import bpy

EXAMPLE = "bpy.ops.poise.example_scene()"
SIMULATE = "bpy.ops.poise.simulate()"
FRAMES = 150
#: Poses as `example.character.key` takes them, by frame: hips, turns, feet, arm, elbow.
_FOOT = ((0, 0, 0), 0)
_UP = (0, 0, 0), (0, 0, 2, 0), _FOOT, _FOOT, (8, 0, 0), 12
_LEANS = (0, 0.22, -0.27), (34, 0, 22, 0), _FOOT, _FOOT, (10, 0, -35), 25
_SITS = (0, 0.3, -0.385), (-5, 0, 4, 0), _FOOT, _FOOT, (10, 0, -22), 60
_TELLS = (0, 0.3, -0.385), (0, 4, 10, 4), _FOOT, _FOOT, (30, -30, -50), 85
KEYS = ((1, _UP), (8, _UP), (30, _LEANS), (50, _SITS), (75, _TELLS), (100, _SITS), (FRAMES, _SITS))
#: Boxes of the chair: middle and size [m].
CHAIR = (
    ((0, 0.24, 0.43), (0.46, 0.44, 0.04)),
    ((0, 0.45, 0.72), (0.46, 0.03, 0.34)),
    *(((x, y, 0.2), (0.04, 0.04, 0.42)) for x in (-0.2, 0.2) for y in (0.06, 0.44)),
)


def scenario(driver):
    """Sits, is looked at, is pushed hard, and falls off."""
    yield from driver.open("hips_twist", mode="QUICK")
    bpy.ops.wm.read_homefile(use_empty=True)
    yield 0.3
    yield from driver.show_sidebar()
    yield from driver.find(EXAMPLE)
    yield from driver.click(EXAMPLE)
    yield 0.5
    _furnish(driver)
    yield 0.5
    yield from driver.shot("sitting_1_example")
    yield from driver.click(SIMULATE)
    yield lambda: driver.session.job() is None
    recording = driver.result.recording
    driver.check("it is simulated", recording is not None, driver.result.error)
    driver.check("it sits to the end", recording.success, recording.why())
    weight = recording.character.mass * 9.81
    borne = recording.presses[-1, :, 2].sum() / weight
    driver.check("the chair carries it", 0.6 < borne < 1.05, borne)
    for frame in (30, 44, 75, FRAMES):
        bpy.context.scene.frame_set(frame)
        yield 0.5
        yield from driver.shot(f"sitting_2_frame_{frame}")
    scene = bpy.context.scene
    push = scene.poise.pushes.items[0]
    push.use, push.frame, push.strength, push.azimuth = True, 90, 800.0, 0.3
    scene.poise.when_it_falls = "BRACE"
    yield from driver.simulate_anew("Push")
    fallen = driver.result.recording
    driver.check("it falls off", fallen.stood is not None and fallen.com[-1, 2] < 0.5, fallen.why())
    for frame in (98, 108, FRAMES):
        scene.frame_set(frame)
        yield 0.5
        yield from driver.shot(f"sitting_3_frame_{frame}")
    yield from driver.bake()


def _furnish(driver):
    """The character's own keys, and a chair behind it."""
    scene, armature = bpy.context.scene, driver.armature
    armature.animation_data.action = bpy.data.actions.new("Sit Down")
    key = driver.module("example.character").key
    for frame, pose in KEYS:
        key(armature, frame, *pose)
    scene.frame_end = FRAMES
    scene.poise.pushes.items[0].use = False
    for middle, size in CHAIR:
        bpy.ops.mesh.primitive_cube_add(size=1, location=middle)
        bpy.context.object.scale = size
    for part in [one for one in bpy.data.objects if one.name.startswith("Cube")]:
        part.select_set(True)
    bpy.ops.object.join()
    chair = bpy.context.object
    chair.name = "Chair"
    chair.poise.role, chair.poise.shape = "COLLIDER", "MESH"
    scene.poise.armature, scene.poise.method, scene.poise.ghost = armature, "BALANCE", "OVER"
    scene.poise.overlays.forces = True
    driver.look_at((0.0, 0.2, 0.6), 3.6, (1.3, 0.0, 0.95))
    bpy.ops.ed.undo_push(message="Chair")

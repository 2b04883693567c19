# SPDX-License-Identifier: GPL-3.0-or-later
"""The example's stairs, from an empty file: a shove, the fall down all of them, at rest, baked."""

import bpy

EXAMPLE = "bpy.ops.poise.example_scene(example='STAIRS')"
OTHER, SIMULATE = "bpy.ops.poise.example_scene()", "bpy.ops.poise.simulate()"


def scenario(driver):
    """All by the buttons of Quick."""
    yield from driver.open("hips_twist", mode="QUICK")
    bpy.ops.wm.read_homefile(use_empty=True)
    yield 0.3
    yield from driver.show_sidebar()
    yield 0.3
    yield from driver.find(OTHER)
    yield from driver.find(EXAMPLE)
    yield from driver.shot("stairs_1_nobody")
    yield from driver.click(EXAMPLE)
    yield 0.5
    driver.check("the example has a character", driver.armature is not None)
    yield from driver.shot("stairs_2_example")
    yield from driver.click(SIMULATE)
    yield lambda: driver.session.job() is None
    recording = driver.result.recording
    driver.check("it falls, and lies still", recording.rest_at is not None, recording.why())
    driver.check("down the stairs", recording.com[0, 2] - recording.com[-1, 2] > 1.5)
    for frame in (46, 58, 82, 140):
        bpy.context.scene.frame_set(frame)
        yield 0.5
        yield from driver.shot(f"stairs_3_frame_{frame}")
    yield from driver.bake()
    yield from driver.shot("stairs_4_baked")

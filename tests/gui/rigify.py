# SPDX-License-Identifier: GPL-3.0-or-later
"""A generated Rigify rig of 700 bones in the window: how long five seconds of it take to simulate
and to bake, and how much of a turn Blender's own thread works.

The rig sways and breathes on its IK feet, which any body can do: what is timed is Blender.
"""

import random
import subprocess
import time

import addon_utils
import bpy
from mathutils import Euler

SIZE = 640, 420
#: Last frame of the clip, at 30 a second, and the distance of its keys.
LAST, EVERY = 151, 15
#: Most that Blender's own thread may work in a turn, beside what the rig's dependency graph takes
#: to be built and evaluated once [yardsticks of processor time]: nothing divides that.
OWN = 4


def scenario(driver):
    """Simulate and bake in a small window."""
    bpy.ops.wm.read_homefile(use_empty=False)
    yield 0.2
    for name in ("Cube", "Light", "Camera"):
        bpy.data.objects.remove(bpy.data.objects[name])
    _animate(_generate())
    bpy.context.scene.poise.mode = "FULL"
    yield from driver.show_sidebar()
    driver.look_at((0.0, 0.0, 0.9), 4.2)
    window = subprocess.run(
        ["xdotool", "search", "--onlyvisible", "--class", "Blender"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()[-1]
    subprocess.run(["xdotool", "windowsize", window, *map(str, SIZE)], check=True)
    yield 2.0
    driver.hurry(False)
    graph, yard = _graph(), driver.yardstick()
    driver.say(f"redraw {1000 * (yield from driver.redraw_gap()):.0f} ms, graph {1000 * graph:.0f}")
    driver.say(f"the yardstick: {1000 * yard:.1f} ms")
    longest = driver.time_steps()
    for what in ("simulate", "bake"):
        yield 1.0
        driver.gaps.clear()
        longest.clear()
        driver.longest_gap = 0.0
        started, cpu = time.perf_counter(), time.process_time()
        with bpy.context.temp_override(window=driver.window, area=driver.area, region=driver.view):
            getattr(bpy.ops.poise, what)("INVOKE_DEFAULT")
        yield lambda: driver.session.job() is None
        took, cpu = time.perf_counter() - started, time.process_time() - cpu
        gaps = ", ".join(f"{k} {1000 * v:.0f}" for k, v in driver.gaps.items())
        turns = ", ".join(f"{k} {1000 * v:.0f}" for k, v in longest.items() if "CPU" in k)
        driver.say(
            f"{what}: {took:.1f} s, CPU {cpu:.1f} s; longest gaps [ms] {gaps}; turns {turns}"
        )
        most = (max(v for k, v in longest.items() if "CPU" in k) - graph) / yard
        driver.check(f"short turns but for the graph: {what}", most < OWN, f"{most:.1f} yardsticks")
    driver.check("it is baked", driver.result.shot.measures)
    error = driver.result.shot.baked.error_mm
    driver.check("to the millimetre", error < 1, f"{error:.3f} mm")
    yield 1.0
    yield from driver.shot("rigify")


def _graph():
    """How long Blender takes to build the graph of the scene and to evaluate it [s of processor]:
    the least of a few times."""
    scene, times = bpy.context.scene, []
    for _ in range(5):
        thing = bpy.data.objects.new("thing", None)
        scene.collection.objects.link(thing)
        started = time.thread_time()
        scene.frame_set(scene.frame_current)
        times.append(time.thread_time() - started)
        bpy.data.objects.remove(thing)
    return min(times)


def _generate():
    addon_utils.enable("rigify", default_set=True)
    bpy.ops.object.armature_human_metarig_add()
    metarig = bpy.context.object
    bpy.ops.pose.rigify_generate()
    bpy.data.objects.remove(metarig)
    return next(thing for thing in bpy.context.scene.objects if thing.type == "ARMATURE")


def _animate(armature):
    scene, bones, drawn = bpy.context.scene, armature.pose.bones, random.Random(1)
    scene.render.fps, scene.frame_start, scene.frame_end = 30, 1, LAST
    for side in "LR":
        bones[f"thigh_parent.{side}"]["IK_FK"] = 0.0
        bones[f"upper_arm_parent.{side}"]["IK_FK"] = 1.0
    upper = {"torso": 0.05, "chest": 0.08, "hips": 0.08, "neck": 0.08, "head": 0.08}
    arms = {f"{bone}_fk.{side}": 0.3 for bone in ("upper_arm", "forearm") for side in "LR"}
    for frame in range(1, LAST + 1, EVERY):
        for name, size in (upper | arms).items():
            bone = bones[name]
            bone.rotation_mode = "QUATERNION"
            turn = Euler([size * drawn.gauss(0, 1) for _ in range(3)])
            bone.rotation_quaternion = turn.to_quaternion()
            bone.keyframe_insert("rotation_quaternion", frame=frame)
        bones["torso"].location = 0.0, 0.0, -0.08 * drawn.random()
        bones["torso"].keyframe_insert("location", frame=frame)
    scene.frame_set(1)

# SPDX-License-Identifier: GPL-3.0-or-later
"""Physics weights, strength and mixed falls in the window: set, key, undo, redo, simulate."""

from itertools import pairwise
from math import degrees, radians

import bpy
from mathutils import Quaternion, Vector

START, BACK, OVER = 40, 100, 20
#: Frame in which it faints.
OUT = 30


def scenario(driver):
    """All stations, in the order in which a user meets them."""
    panels = driver.module("staging.weights_panel")
    panels.POISE_PT_weights.bl_options = set()
    driver.rearrange(closed=("character", "tune", "bake"))
    yield from driver.open("hips_twist")
    yield from _set(driver)
    yield from _simulate(driver)
    panels.POISE_PT_weights.bl_options = {"DEFAULT_CLOSED"}
    panels.POISE_PT_strength.bl_options = set()
    driver.rearrange()
    yield from driver.open("hips_twist")
    yield from _faint(driver)
    panels.POISE_PT_strength.bl_options = {"DEFAULT_CLOSED"}
    panels.POISE_PT_mixture.bl_options = set()
    driver.rearrange()
    yield from driver.open("walk")
    yield from _roll(driver)


def _weights(driver):
    return driver.armature.data.poise_weights


def _set(driver):
    weights = _weights(driver)
    weights.use_start, weights.start = True, START
    weights.use_hand_back, weights.hand_back, weights.over = True, BACK, OVER
    bpy.ops.ed.undo_push(message="Frames")
    for frame, value in ((START, 1.0), (70, 0.25)):
        weights.arms = value
        weights.keyframe_insert("arms", frame=frame)
    bpy.ops.ed.undo_push(message="Keys")
    bpy.context.scene.frame_set(70)
    yield 0.5
    yield from driver.shot("weights_1_set")
    bpy.ops.ed.undo()
    yield 0.3
    weights = _weights(driver)
    animation = driver.armature.data.animation_data
    driver.check("undo takes the keys", animation is None or animation.action is None)
    driver.check("undo leaves the frames", (weights.use_start, weights.start) == (True, START))
    bpy.ops.ed.redo()
    yield 0.3
    driver.check("redo brings the keys", len(_keys(driver)) == 2, _keys(driver))


def _keys(driver):
    compat = driver.module("blender.compat")
    (curve,) = compat.curves(*compat.assigned(driver.armature.data))
    return [tuple(point.co) for point in curve.keyframe_points]


def _simulate(driver):
    scene = bpy.context.scene
    scene.poise.frames, scene.poise.first_frame, scene.poise.last_frame = "CUSTOM", 1, 140
    yield from driver.click("bpy.ops.poise.simulate()")
    yield lambda: driver.session.job() is None and driver.result.recording is not None
    recording = driver.result.recording
    driver.check("it stands", recording.success, recording.why())
    regions = recording.weights.regions
    driver.check(
        "physics has its frames", not regions["root"][START - 1] and regions["root"][START]
    )
    driver.check("arms follow their keys", abs(regions["arms"][69] - 0.25) < 1e-6)
    driver.check("it says how much help there was", recording.summary()["residual"] > 0)
    scene.frame_set(70)
    yield 0.5
    yield from driver.shot("weights_2_simulated")


def _faint(driver):
    strength, settings = driver.armature.data.poise_strength, bpy.context.scene.poise
    strength.use_knock_out, strength.knock_out, strength.arm_l = True, OUT, 0.5
    settings.when_it_falls = "BRACE"
    settings.frames, settings.first_frame, settings.last_frame = "CUSTOM", 1, 140
    yield from driver.click("bpy.ops.poise.simulate()")
    yield lambda: driver.session.job() is None and driver.result.recording is not None
    recording = driver.result.recording
    driver.check("it faints in its frame", recording.stood == OUT, recording.why())
    driver.check("and goes down", recording.com[-1, 2] < 0.5 * recording.com[0, 2])
    bpy.context.scene.frame_set(60)
    yield 0.5
    yield from driver.shot("weights_3_faints")


def _roll(driver):
    """Forward out of a walk; then limp from the loss of balance on, by keys."""
    scene, shares = bpy.context.scene, driver.armature.data.poise_mixture
    settings = scene.poise
    settings.when_it_falls = "ROLL"
    settings.frames, settings.first_frame, settings.last_frame = "CUSTOM", 1, 240
    push = settings.pushes.items.add()
    push.name, push.frame, push.strength, push.azimuth = "Shove", 48, 350.0, radians(-90)
    yield from driver.click("bpy.ops.poise.simulate()")
    yield lambda: driver.session.job() is None and driver.result.recording is not None
    rolled = driver.result.recording
    driver.check("it goes over", _turned(rolled) > 180, _turned(rolled))
    driver.check("nothing is mixed", rolled.scenario.mixed == {})
    scene.frame_set(rolled.stood + 40)
    yield 0.5
    yield from driver.shot("weights_4_rolls")
    for frame, share in ((rolled.stood, 0.0), (rolled.stood + 2, 1.0)):
        shares.limp = share
        shares.keyframe_insert("limp", frame=frame)
    bpy.ops.ed.undo_push(message="Shares")
    yield 0.5
    outdated, properties = driver.module("shots.outdated"), driver.module("settings.properties")
    options = properties.shot_options(bpy.context, driver.armature)
    now = outdated.settings_of(scene, driver.armature, options)
    changed = outdated.changed(driver.result.settings, now)
    driver.check("it is to be simulated again", changed == ["Falls Like"], changed)
    yield from driver.click("bpy.ops.poise.simulate()")
    yield lambda: driver.session.job() is None and driver.result.recording is not rolled
    recording = driver.result.recording
    driver.check("keys are read", recording.scenario.mixed["limp"][-1] == 1.0)
    later = rolled.stood + 40
    apart = abs(recording.body_positions[later] - rolled.body_positions[later]).max()
    driver.check("it goes limp", apart > 0.3, apart)
    driver.check("it falls in the same frame", recording.stood == rolled.stood)
    yield from driver.shot("weights_5_mixed")


def _turned(recording):
    """How far [degrees] the pelvis turns to the side of its fall, from the loss of balance on."""
    quaternions = [Quaternion(row[0]) for row in recording.body_rotations[recording.stood :]]
    turns = [after @ before.inverted() for before, after in pairwise(quaternions)]
    axes = sum((turn.to_exponential_map() for turn in turns), Vector())
    return degrees(axes.length)

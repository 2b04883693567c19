# SPDX-License-Identifier: GPL-3.0-or-later
"""A walk that an animator has taken up stairs of the scene: simulated, baked, judged."""

import bpy
import numpy as np
import pytest

from poise.addon.baking import bake
from poise.addon.rigs import reference, sampling
from poise.addon.shots import shot
from poise.addon.shots.clean_up import CleanShot, CleanShotOptions
from poise.controller.geometry.rotations import multiply
from poise.controller.geometry.skeleton import LANDMARK_INDEX
from poise.experiments import stairs

pytestmark = pytest.mark.usefixtures("registered")


def up_the_stairs(armature):
    """Animate a captured walk up steps, and put these into the scene as colliders. Returns the
    stairs.Place and the frames of it."""
    scene = bpy.context.scene
    place = stairs.on_stairs(reference.read(scene, armature).motion, True, stairs.TREAD)
    motion = place.motion
    frames = (motion.first_frame, motion.frame(len(motion) - 1))
    reading = reference.read(scene, armature, frames=(*frames, 1.0))
    before = reading.motion
    conjugate = before.rotations * [1, -1, -1, -1]
    pelvis = LANDMARK_INDEX["pelvis"]
    result = bake.bake(
        scene,
        reading,
        multiply(motion.rotations, conjugate),
        motion.positions[:, pelvis] - before.positions[:, pelvis],
    )
    for collider in place.scenario.colliders:
        bpy.ops.mesh.primitive_cube_add(size=2.0)
        box = bpy.context.object
        box.location, box.scale = collider.positions, collider.solid.size
        box.rotation_mode, box.rotation_quaternion = "QUATERNION", collider.rotations
        box.name, box.poise.role = collider.name, "COLLIDER"
    return place, frames, result


@pytest.mark.slow
def test_a_walk_up_the_stairs_of_the_scene_is_simulated_and_baked(import_clip):
    armature = import_clip("walk")
    _, frames, _ = up_the_stairs(armature)
    options = shot.ShotOptions(armature=armature.name, frames=frames)
    performed = shot.Shot(bpy.context.scene, options)
    sampling.run(performed.read())
    for _ in performed.simulate():
        pass
    assert performed.recording.success, performed.why
    assert not [f for f in performed.check().findings if f.kind in ("support", "float", "start")]
    performed.bake()
    sampling.run(performed.measure())
    # Toes go a little into the floor at push-off, before and after; not by a step.
    assert performed.measures["foot_penetration"][1] < 60
    assert performed.recording.com[-1, 2] - performed.recording.com[0, 2] > 3.5 * stairs.RISE
    assert np.linalg.norm(performed.recording.root_displacement(), axis=1).max() < 0.1

    missing = bpy.data.objects["Step 3"]
    bpy.data.objects.remove(missing)
    performed = shot.Shot(bpy.context.scene, options)
    sampling.run(performed.read())
    performed.embody()
    told = [f.sentence for f in performed.check().findings if f.kind == "support"]
    assert told and "above anything: put a collider under it" in told[0]


@pytest.mark.slow
def test_contacts_that_are_found_on_the_stairs_of_the_scene_carry_a_simulation(import_clip):
    armature = import_clip("walk")
    _, frames, _ = up_the_stairs(armature)
    options = CleanShotOptions(armature=armature.name, frames=frames)
    clean = CleanShot(bpy.context.scene, options)
    sampling.run(clean.read())
    clean.solve()
    assert not clean.doubt and clean.verdict.keeper
    before, after = clean.slip
    assert after < 0.05 * before
    chosen = shot.ShotOptions(armature=armature.name, frames=frames, contacts=clean.plan)
    performed = shot.Shot(bpy.context.scene, chosen)
    sampling.run(performed.read())
    for _ in performed.simulate():
        pass
    assert performed.recording.success, performed.why

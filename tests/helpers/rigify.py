# SPDX-License-Identifier: GPL-3.0-or-later
"""A generated Rigify rig."""

import tempfile
from pathlib import Path

import bpy
import numpy as np
from mathutils import Euler

_generated = None


def generated_rigify():
    """Rigify's own human, generated; its add-on has to be enabled. Only once, which takes seconds:
    then it is appended."""
    global _generated
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rig.blend"
        if _generated is None:
            before = set(bpy.data.objects)
            bpy.ops.object.armature_human_metarig_add()
            metarig = bpy.context.object
            bpy.ops.pose.rigify_generate()
            armatures = (one for one in bpy.data.objects if one.type == "ARMATURE")
            bpy.data.libraries.write(str(path), {one for one in armatures if one is not metarig})
            _generated = path.read_bytes()
            bpy.data.batch_remove(set(bpy.data.objects) - before)
            bpy.ops.outliner.orphans_purge(do_recursive=True)
        path.write_bytes(_generated)
        with bpy.data.libraries.load(str(path)) as (there, wanted):
            wanted.objects = there.objects
    (rig,) = (one for one in wanted.objects if one.type == "ARMATURE")
    bpy.context.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    rig.select_set(True)
    return rig


def animated_rigify(ik):
    """One that is animated by its FK or its IK controls, frames 1 to 31."""
    armature = generated_rigify()
    bones, random = armature.pose.bones, np.random.default_rng(1)
    limbs = (
        ("hand_ik", "foot_ik")
        if ik
        else tuple(
            f"{limb}_fk"
            for limb in ("upper_arm", "forearm", "hand", "thigh", "shin", "foot", "toe")
        )
    )
    for side in "LR":
        for limb in ("upper_arm", "thigh"):
            bones[f"{limb}_parent.{side}"]["IK_FK"] = 0.0 if ik else 1.0
    moving = ["torso", "chest", "hips", "neck", "head", "spine_fk.002", "shoulder.L"]
    moving += [f"{limb}.{side}" for limb in limbs for side in "LR"]
    for frame in range(1, 32, 10):
        for name in moving:
            bone = bones[name]
            turn = Euler(0.15 * random.normal(size=3))
            bone.rotation_mode = "QUATERNION"
            bone.rotation_quaternion = turn.to_quaternion()
            bone.keyframe_insert("rotation_quaternion", frame=frame)
            if name == "torso" or "_ik" in name:
                bone.location = 0.05 * random.normal(size=3)
                bone.keyframe_insert("location", frame=frame)
    return armature

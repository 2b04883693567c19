# SPDX-License-Identifier: GPL-3.0-or-later
"""A generated Rigify rig."""

import bpy
import numpy as np
from mathutils import Euler


def generated_rigify():
    """Rigify's own human, generated; its add-on has to be enabled."""
    bpy.ops.object.armature_human_metarig_add()
    metarig = bpy.context.object
    bpy.ops.pose.rigify_generate()
    return next(one for one in bpy.data.objects if one.type == "ARMATURE" and one is not metarig)


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

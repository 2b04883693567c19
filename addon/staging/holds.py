# SPDX-License-Identifier: GPL-3.0-or-later
"""Add holds, go to them, take them away."""

import bpy
from bpy.props import EnumProperty

from ...controller.geometry.skeleton import SIDE_WORDS, SIDES
from ..blender import session
from ..blender.chosen import chosen_armature
from ..blender.redrawing import redraw
from ..blender.translations import tr
from ..kit.known_map import known_map
from ..scene import holds, objects
from .waypoints import EmptyOperator, scale_of

#: Size of an empty that is added [m].
_SIZE = 0.08
#: The palm is so much of the forearm's length beyond the wrist: as `controller.simulation.holds`
#: has it.
_PALM = 0.22


class POISE_OT_add_hold(bpy.types.Operator):
    """Add a hold."""

    bl_idname = "poise.add_hold"
    bl_label = "Add Hold"
    bl_description = (
        "Add an empty that holds a hand or a foot from the current frame on, where it is now: to "
        "the object that is selected besides, if that is a thing or a collider, else to the world"
    )
    bl_options = {"REGISTER", "UNDO"}

    limb: EnumProperty(
        name="Limb",
        description="What is held",
        items=(
            ("BONE", "Active Bone", "The hand or foot that the active pose bone belongs to"),
            *holds.LIMB_ITEMS,
        ),
    )

    @classmethod
    def poll(cls, context):
        """Needs an armature whose bones are known, while nothing runs."""
        armature, reason = chosen_armature(context)
        why = session.busy() or ("" if armature else reason)
        if not why and known_map(context, armature)[0] is None:
            why = "Hands and feet are not known yet: simulate once, or choose a rig map"
        if why:
            cls.poll_message_set(tr(why))
        return not why

    def execute(self, context):
        """Where the limb is, with the armature as the active object."""
        scene, (armature, _) = context.scene, chosen_armature(context)
        rig_map, _ = known_map(context, armature)
        limb = self.limb
        if limb == "BONE":
            bone = context.active_pose_bone
            limb = bone and bone.id_data == armature and _limb_of(rig_map, bone)
            if not limb:
                self.report(
                    {"ERROR"},
                    tr("The active bone is of no hand and no foot: choose one, or the limb."),
                )
                return {"CANCELLED"}
        empty = bpy.data.objects.new(f"Hold {scene.frame_current}", None)
        empty.empty_display_type = "SPHERE"
        empty.empty_display_size = _SIZE / scale_of(context, armature)
        empty.show_name = True
        empty.location = _place(armature, rig_map, limb)
        hold = getattr(empty, holds.PROPERTY)
        hold.armature, hold.limb = armature, limb
        hold.first = scene.frame_current
        hold.last = max(scene.frame_end, hold.first + 1)
        taking = [one for one in objects.marked(scene) if one.type == "MESH" and one.select_get()]
        if taking:
            hold.to, hold.holder = "OBJECT", taking[0]
        scene.collection.objects.link(empty)
        redraw()
        return {"FINISHED"}


class POISE_OT_go_to_hold(EmptyOperator, bpy.types.Operator):
    """Go to a hold."""

    bl_idname = "poise.go_to_hold"
    bl_label = "Go to Hold"
    bl_description = "Select this hold, and go to its first frame"

    def change(self, context, empty):
        """Only it is selected."""
        self.select(context, empty, getattr(empty, holds.PROPERTY).first)


class POISE_OT_remove_hold(EmptyOperator, bpy.types.Operator):
    """Remove a hold."""

    bl_idname = "poise.remove_hold"
    bl_label = "Remove Hold"
    bl_description = "Remove this hold and its empty"

    def change(self, _context, empty):
        """All of it."""
        bpy.data.objects.remove(empty)


def _limb_of(rig_map, bone):
    """The limb that a pose bone is of, or hangs on as a finger does, as properties have it; None
    for others."""
    limbs = {
        name: f"{SIDE_WORDS[side]}_{limb}".upper()
        for side in SIDES
        for limb, slots in (("hand", ("hand", "forearm")), ("foot", ("foot", "toe")))
        for slot in slots
        for name in rig_map.bones.get(f"{slot}_{side}", ())
    }
    above = (one.name for one in (bone, *bone.parent_recursive))
    return next((limbs[name] for name in above if name in limbs), None)


def _place(armature, rig_map, limb):
    """Where a limb is held [scene units]: the palm, or the ankle."""
    side, kind = limb[0].lower(), limb.rpartition("_")[2]
    bones = armature.pose.bones
    if kind == "FOOT":
        return armature.matrix_world @ bones[rig_map.bones[f"foot_{side}"][0]].head
    chain = rig_map.bones[f"forearm_{side}"]
    hand = rig_map.bones.get(f"hand_{side}", ())
    wrist = bones[hand[0]].head if hand else bones[chain[-1]].tail
    palm = wrist + _PALM * (wrist - bones[chain[0]].head)
    return armature.matrix_world @ palm

# SPDX-License-Identifier: GPL-3.0-or-later
"""The armature takes the proportions of the simulated body, for as long as the bake is shown.

Each bone that carries a segment has one key of scale, along its own axes: its length by the
segment's length, its other axes by the girth. This way was chosen over a copy of the armature with
new rest lengths, because a skin is bound to the rest: it would stay as it is, and the bones would
move inside it. Scaled bones stretch the skin with them, the source action knows nothing of it, and
to switch back to the source is to switch an action, as with any bake.

Blender hands a bone's scale down to its children, and sheared if they are turned against it. So
the carrying bones are told to keep their own scale (`inherit_scale` NONE) while the bake is shown;
without keys of scale that flag has no effect, so nobody sees it in the source. All others inherit
as they did: clavicles, twist bones and the face are part of their segment and stretch with it.
Hands, whose wrists turn too far for that, take the size of their forearm evenly, fingers with them.
"""

import bpy
import numpy as np

from ...controller.exceptions import BakeError
from ...controller.geometry.motion import Motion
from ...controller.geometry.rotations import unit
from ...controller.geometry.skeleton import LANDMARK_INDEX, SEGMENT_INDEX, SEGMENTS, SIDES
from ..blender.pose import nearest_rotation
from ..rigs import reference

_PELVIS = LANDMARK_INDEX["pelvis"]


def check(armature, rig_map):
    """Raise BakeError unless the bones of an armature can be given other proportions."""
    if rig_map.controls:
        raise BakeError(refusal(rig_map))
    data = armature.data
    if data.library is not None or data.override_library is not None:
        raise BakeError(
            f"The bones of '{armature.name}' are linked from another file, so that they cannot "
            "take other proportions: make the armature and its data local."
        )


def refusal(rig_map):
    """Why a rig map with controls cannot have other proportions."""
    return (
        f"The rig map '{rig_map.name}' bakes to controls, whose mechanism cannot take other "
        "proportions: choose a rig map of the deforming bones, or the proportions of the clip."
    )


class Proportions:
    """What new proportions mean for the bones.

    factors: {carrying bone: (3,)} scale along its own axes. sizes: {bone: scale} of hands. flags:
    {data path: value} to be set while the bake is shown. shift: (T, 3) of the pelvis [m].
    """

    def __init__(self, armature, reading, clip, reshaping):
        """reshaping: controller.morphology.Reshaping. Raises BakeError."""
        check(armature, reading.rig_map)
        self._reshaping, self._clip, self._bones = reshaping, clip, reading.rig_map.bones
        self.factors = {
            bone: factors
            for segment in SEGMENTS
            for bone, factors in self._factors_of(segment, reading.rig_map)
        }
        self.sizes = {
            self._bones[f"hand_{side}"][0]: float(reshaping.sizes[SEGMENT_INDEX[f"forearm_{side}"]])
            for side in SIDES
            if f"hand_{side}" in self._bones
        }
        roots = self._bones["pelvis"]
        self.flags = {
            f'data.bones["{bpy.utils.escape_identifier(bone)}"].inherit_scale': "NONE"
            for bone in (*self.factors, *self.sizes)
            if bone not in roots
        }
        self.shift = self._pelvis_shift(armature, reading)

    def _world(self, bone):
        return self._clip.objects @ self._clip.poses[:, self._clip.names.index(bone)]

    def _factors_of(self, segment, rig_map):
        """Each bone of a segment that is put in place, and its factors."""
        row, carrier = SEGMENT_INDEX[segment], reference.carrier(rig_map, segment)
        turns = nearest_rotation(self._world(carrier)[:, :3, :3])
        for bone in reference.carriers(rig_map, segment):
            own = nearest_rotation(self._world(bone)[:, :3, :3])
            direction = (own.swapaxes(1, 2) @ turns).mean(0) @ self._reshaping.directions[row]
            yield bone, self._reshaping.factors_along(row, unit(direction))

    def _pelvis_shift(self, armature, reading):
        """(T, 3) from the pelvis of the clip to that of the clip with the new proportions [m]."""
        clip, rig_map = self._clip, reading.rig_map
        worlds = clip.objects[:, None] @ clip.poses
        points = reference.landmark_positions(armature, rig_map, clip.names, worlds)
        motion = Motion(
            reading.motion.name,
            reading.rate,
            reference.segment_rotations(rig_map, clip.names, worlds),
            points * reading.metres_per_unit,
            float(clip.frames[0]),
        )
        after = self._reshaping.applied(motion)
        return after.positions[:, _PELVIS] - motion.positions[:, _PELVIS]

    def arm(self, slot, bone, parent_slot, parent):
        """(T, 3) in the world from the head of a carrying bone to that of the next one."""
        start, end = self._world(parent)[:, :3, 3], self._world(bone)[:, :3, 3]
        length = self._reshaping.lengths[SEGMENT_INDEX[parent_slot]]
        if slot.startswith("thigh"):
            return self._stretched(parent, end - start)
        if slot.startswith("upper_arm"):
            neck = self._world(self._bones["head"][0])[:, :3, 3]
            return length * (neck - start) + self._stretched(parent, end - neck)
        return length * (end - start)

    def _stretched(self, bone, arms):
        """(T, 3) world vectors that are fixed to a bone, after its scaling."""
        turns = nearest_rotation(self._world(bone)[:, :3, :3])
        local = np.einsum("tji,tj->ti", turns, arms) * self.factors[bone]
        return np.einsum("tij,tj->ti", turns, local)

# SPDX-License-Identifier: GPL-3.0-or-later
"""What is not simulated comes to a stop on a body that falls: clavicles, hands, twist bones, by
their curves; and the bones of the body stay where they are then on those before them. Fingers and
faces live on, as fast as the body has tone."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...controller.geometry.rotations import matrix_from_quaternion, quaternion_from_matrix
from ...controller.geometry.skeleton import PARENTS, SEGMENTS, SIDES
from ...controller.reference.lying import Hold
from ..blender import keys
from ..blender.pose import compose, inverse, nearest_rotation, scale_of
from ..rigs import reference
from ..rigs.rig import RigMap
from .clip import Clip

if TYPE_CHECKING:
    import bpy

#: Bones whose heads are nearer than this share of a bone's length begin where it does.
_BESIDE = 0.02


def held(
    armature: "bpy.types.Object",
    rig_map: RigMap,
    clip: Clip,
    hold: Hold,
    lines: Mapping[str, tuple[str, ...]],
) -> Clip:
    """A Clip in which bones stay on what carries them as a Hold has it, of all its frames.

    The bones that carry segments turn as they did all the same: what they turn by is of them.
    lines: as `loose_bones` has them.
    """
    poses, bases = clip.poses.copy(), clip.bases.copy()
    ends, living = _ends(rig_map), living_of(armature, rig_map)
    for bone, parent in _parents(armature, rig_map, lines).items():
        row, above = clip.names.index(bone), clip.names.index(parent)
        apart = inverse(clip.poses[:, above]) @ clip.poses[:, row]
        if bone in living:
            poses[hold.stood :, row] = (poses[:, above] @ _lived(hold, apart))[hold.stood :]
            bases[:, row] = _lived(hold, clip.bases[:, row])
            continue
        apart = _shown(hold, apart)
        pose = poses[:, above] @ apart
        if bone in ends:
            pose[:, :3, :3] = clip.poses[:, row, :3, :3]
            end = clip.poses[:, clip.names.index(ends[bone])]
            if ends[bone] != bone:
                turn = np.zeros_like(end)
                turn[:, :3, :3], turn[:, 3, 3] = nearest_rotation(end[:, :3, :3]), 1
                apart = _shown(hold, inverse(turn) @ clip.poses[:, row])
                pose[:, :3, :3] = (turn @ apart)[:, :3, :3]
        poses[hold.stood :, row] = pose[hold.stood :]
        if bone not in ends:
            bases[:, row] = _shown(hold, clip.bases[:, row])
    return replace(clip, poses=poses, bases=bases)


def still(
    holder: "bpy.types.ActionChannelbag | bpy.types.Action",
    bones: Iterable[str],
    living: Iterable[str],
    clip: Clip,
    hold: Hold,
) -> None:
    """Let the curves of bones in a new action come to a stop as a Hold has it, and those of living
    ones among them go on."""
    chosen, living = frozenset(bones), frozenset(living)
    for curve in holder.fcurves:
        moves = len(curve.keyframe_points) > 1 or len(curve.modifiers) > 0
        bone = reference.bone_of(curve.data_path)
        lives = bone in living
        if not moves or bone not in chosen or (lives and hold.lives):
            continue
        own = hold.of_the_living if lives else hold
        values = _evaluated(curve, clip, own)
        if lives and hold.comes.any():
            values += hold.comes * (_evaluated(curve, clip, hold.meaning) - values)
        keys.replace(curve, clip.times, values)


def _evaluated(curve: "bpy.types.FCurve", clip: Clip, hold: Hold) -> np.ndarray:
    """(T,) values of a curve, as a Hold shows them."""
    times = np.interp(hold.at, np.arange(len(clip.times)), clip.times)
    return np.array([curve.evaluate(time) for time in times])


def living_of(armature: "bpy.types.Object", rig_map: RigMap) -> frozenset[str]:
    """Names of fingers and of a face: what hangs on hands and head, or on the controls and the
    mechanism of these, which begin where they do."""
    bones = armature.data.bones
    carriers = {bone for chain in rig_map.bones.values() for bone in chain}
    found: set[str] = set()
    for slot in ("head", *(f"hand_{side}" for side in SIDES)):
        if chain := rig_map.bones.get(slot):
            end = bones[chain[-1]]
            near = _BESIDE * end.length
            beside = {one.name for one in bones if (one.head_local - end.head_local).length < near}
            for name in beside:
                found |= {bone.name for bone in bones[name].children_recursive} - beside
    return frozenset(found - carriers)


def bones_of(
    armature: "bpy.types.Object",
    rig_map: RigMap,
    keyed: Iterable[str],
    lines: Mapping[str, tuple[str, ...]],
) -> frozenset[str]:
    """Names of the bones whose curves come to a stop: all that hang on the body, or, among
    controls, all but those that are keyed and what carries them."""
    bones = armature.data.bones
    if rig_map.controls:
        first, *rest = keyed
        line = {one.name for one in bones[first].parent_recursive}
        return frozenset(bones.keys()) - line - {first, *rest}
    return frozenset(_parents(armature, rig_map, lines))


def _ends(rig_map: RigMap) -> dict[str, str]:
    """{bone that carries a segment: the last of its chain}."""
    found: dict[str, str] = {}
    for segment in SEGMENTS:
        chain = reference.carriers(rig_map, segment)
        for bone in chain:
            found.setdefault(bone, chain[-1])
    return found


def _parents(
    armature: "bpy.types.Object", rig_map: RigMap, lines: Mapping[str, tuple[str, ...]]
) -> dict[str, str]:
    """{bone: the bone that it stays on}, parents first; a mechanism's are those of the body."""
    ends = _ends(rig_map)
    if not rig_map.controls:
        pelvis = reference.carrier(rig_map, SEGMENTS[0])
        found = {}
        for bone in armature.data.bones:
            line = [one.name for one in bone.parent_recursive]
            if bone.name in lines:
                found[bone.name] = next(one for one in lines[bone.name] if one in ends)
            elif pelvis in line or any(one in lines for one in line):
                found[bone.name] = line[0]
        return found
    found = {}
    for segment in SEGMENTS[1:]:
        before = reference.carriers(rig_map, PARENTS[segment])[-1]
        for bone in reference.carriers(rig_map, segment):
            if bone not in found and bone != before:
                found[bone] = before
            before = bone
    for side in SIDES:
        hand = rig_map.bones.get(f"hand_{side}")
        if hand:
            found[hand[0]] = reference.carrier(rig_map, f"forearm_{side}")
    return found


def _lived(hold: Hold, matrices: np.ndarray) -> np.ndarray:
    """(T, 4, 4) matrices of the animation, as fingers and faces show them."""
    shown, share = _shown(hold.of_the_living, matrices), hold.comes[:, None, None]
    return shown + share * (_shown(hold.meaning, matrices) - shown) if share.any() else shown


def _shown(hold: Hold, matrices: np.ndarray) -> np.ndarray:
    """(T, 4, 4) matrices of the animation, as they are shown; shear is left out where they stop."""
    scale = scale_of(matrices)
    turns = quaternion_from_matrix(nearest_rotation(matrices[:, :3, :3] / scale[:, None, :]))
    rotation = matrix_from_quaternion(hold.shown_turns(turns))
    result = compose(hold.shown(matrices[:, :3, 3]), rotation, hold.shown(scale))
    result[: hold.stood] = matrices[: hold.stood]
    return result

# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones that would stay behind when the body moves, and go with it all the same: those of the skin
that hang on no bone of the body, as when a rig was stripped to its deforming bones, if they did so
by their keys; and those of the body that constraints hold where another armature has them."""

from collections.abc import Iterable, Iterator, Set
from typing import TYPE_CHECKING

import numpy as np

from ...controller.geometry.skeleton import SEGMENTS
from ..blender.pose import inverse
from .reference import Reading, carriers
from .rig import RigMap

if TYPE_CHECKING:
    import bpy

#: A bone that goes with another stays so near to where it is beside that [m, adult], and by this
#: share of its own way.
_NEAR, _SHARE = 0.02, 0.25
#: A bone that moves less [m] goes with nothing.
_MOVES = 1e-3
#: Constraints that hold a bone at a place.
_PLACES = ("COPY_TRANSFORMS", "COPY_LOCATION", "CHILD_OF")
#: So many samples tell.
_SAMPLES = 60


def find(armature: "bpy.types.Object", reading: Reading) -> dict[str, str | None]:
    """{bone: the carrying bone that it goes with, None if it goes its own way} of the deforming
    bones that hang on no bone of the body; of what hangs on one of them, only what goes with the
    body although that does not.

    Rigs that are baked to controls have a mechanism for theirs: none.
    """
    rig_map = reading.rig_map
    if rig_map.controls:
        return {}
    carrying = _carrying(rig_map)
    # Of a bone that was added since then nothing was read.
    pelvis = carriers(rig_map, SEGMENTS[0])
    loose = [bone for bone in _loose(armature, carrying, pelvis) if bone in reading.bone_names]
    if not loose:
        return {}
    driven = _driven(armature)
    chosen = np.unique(np.linspace(0, len(reading.frames) - 1, _SAMPLES).astype(int))
    matrices = reading.bone_matrices[chosen]
    mapped = {bone for chain in rig_map.bones.values() for bone in chain}
    hosts = [bone for bone in reading.bone_names if bone in mapped and bone not in loose]
    spaces = inverse(matrices[:, [reading.bone_index(bone) for bone in hosts]])
    found: dict[str, str | None] = {}
    tops = set(loose)
    for bone in loose:  # which grows by what hangs on those that go with nothing
        heads = matrices[:, reading.bone_index(bone), :, 3]
        beside = (spaces @ heads[:, None, :, None])[..., :3, 0]
        strays = _ways(beside) * reading.metres_per_unit * _sizes(spaces)
        best = int(np.argmin(strays))
        way = float(_ways(heads[:, None, :3])[0]) * reading.metres_per_unit
        if way > _MOVES and strays[best] < min(_NEAR, _SHARE * way):
            found[bone] = hosts[best]
            if bone in tops:
                continue
        elif bone in tops:
            found[bone] = None
        below = armature.data.bones[bone].children
        loose += [
            one.name
            for one in below
            if one.name in reading.bone_names and _is_free(armature, one, carrying, driven)
        ]
    return found


def lines(armature: "bpy.types.Object", reading: Reading) -> dict[str, tuple[str, ...]]:
    """{bone: the bone that it goes with, and all above that} of those that go with the body."""
    bones = armature.data.bones
    found = find(armature, reading)
    goes = {bone: carrier for bone, carrier in found.items() if carrier is not None}
    goes |= {bone: bones[bone].parent.name for bone in _retargeted(armature, reading.rig_map)}
    return {
        bone: (carrier, *(one.name for one in bones[carrier].parent_recursive))
        for bone, carrier in goes.items()
    }


def _retargeted(armature: "bpy.types.Object", rig_map: RigMap) -> list[str]:
    """Names of the bones below those that carry the body which a constraint holds where another
    armature's bones are, or at the place of something that does not go with the body, parents
    first."""
    if rig_map.controls:
        return []
    carrying = _carrying(rig_map)
    found = []
    for bone in armature.data.bones:
        line = {one.name for one in bone.parent_recursive}
        if bone.name not in carrying and line & carrying:
            held = (one for one in armature.pose.bones[bone.name].constraints if _holds(one))
            if any(_stays_behind(one, armature, carrying) for one in held):
                found.append(bone.name)
    return found


def _carrying(rig_map: RigMap) -> set[str]:
    """Names of the bones that a bake places; clavicles and hands hang on them, as a rule."""
    return {bone for segment in SEGMENTS for bone in carriers(rig_map, segment)}


def _holds(constraint: "bpy.types.Constraint") -> bool:
    return not constraint.mute and constraint.influence > 0


def _stays_behind(
    constraint: "bpy.types.Constraint", armature: "bpy.types.Object", carrying: Set[str]
) -> bool:
    target = getattr(constraint, "target", None)
    if target is None:
        return False
    if target == armature:
        bone = armature.data.bones.get(constraint.subtarget)
        line = {bone.name, *(one.name for one in bone.parent_recursive)} if bone else carrying
        return constraint.type in _PLACES and not line & carrying
    goes_along = any(one == armature for one in _lineage(target))
    return not goes_along and (target.type == "ARMATURE" or constraint.type in _PLACES)


def _lineage(thing: "bpy.types.Object") -> "Iterator[bpy.types.Object]":
    """An object and all above it."""
    while thing is not None:
        yield thing
        thing = thing.parent


def _loose(armature: "bpy.types.Object", carrying: Set[str], pelvis: Iterable[str]) -> list[str]:
    """Names of the uppermost deforming bones that nothing of the body carries, and that nothing
    but their keys moves."""
    bones = armature.data.bones
    # Where the body hangs is its own; a clavicle that hangs on nothing has an arm below it, too.
    above = {one.name for name in pelvis for one in bones[name].parent_recursive}
    driven = _driven(armature)
    found: list[str] = []
    for bone in bones:  # parents first
        line = {one.name for one in bone.parent_recursive}
        if line & (carrying | {*found}):
            continue
        if _is_free(armature, bone, carrying | above, driven):
            found.append(bone.name)
    return found


def _driven(armature: "bpy.types.Object") -> set[str]:
    animation = armature.animation_data
    return {driver.data_path for driver in animation.drivers} if animation else set()


def _is_free(
    armature: "bpy.types.Object", bone: "bpy.types.Bone", others: Set[str], driven: Set[str]
) -> bool:
    """Whether a bone is a deforming one, none of the others, and nothing but its keys moves it."""
    if not bone.use_deform or bone.name in others:
        return False
    pose = armature.pose.bones[bone.name]
    held = any(map(_holds, pose.constraints))
    return not held and not any(path.startswith(pose.path_from_id()) for path in driven)


def _ways(points: np.ndarray) -> np.ndarray:
    """(n,) how far (F, n, 3) points are from their means at most."""
    return np.linalg.norm(points - points.mean(0), axis=-1).max(0)


def _sizes(spaces: np.ndarray) -> np.ndarray:
    """(n,) scene units in a unit of each space."""
    return 1 / np.linalg.norm(spaces[0, :, :3, 0], axis=-1)

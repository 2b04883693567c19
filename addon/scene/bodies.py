# SPDX-License-Identifier: GPL-3.0-or-later
"""Armatures that are colliders, and meshes that armatures deform: what the simulated body meets of
them, part by part, on their animated path."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ...controller.body.limbs import limbs_of, settled
from ...controller.exceptions import MotionError, RigError, SettingsError
from ...controller.geometry.motion import Motion
from ...controller.geometry.rotations import quaternion_from_matrix
from ...controller.geometry.solids import Limb, Solid
from ..blender import evaluation
from ..blender.pose import inverse
from ..rigs import rig
from ..rigs.reference import MOST_GROWTH, Reading, landmark_positions, segment_rotations
from .object_shapes import hull, split

if TYPE_CHECKING:
    import bpy

#: Where an armature is no biped, so many of its bones take part: more cost time at every step.
MOST_BONES = 60
#: The radius of such a bone's capsule, as a share of its length: as a forearm's. By judgement.
_RADIUS = 1 / 6
#: What each part takes in a simulated second at the usual rate [s]; parts of a biped. Measured on
#: two processors.
_TAKES, _USUAL_RATE, _PARTS = 0.0075, 300.0, 17
#: What takes longer in all is told beforehand [s].
_LONG = 5.0
#: What each of several that are simulated together takes in a simulated second at that rate [s],
#: and how long [s] is told beforehand there. Measured likewise.
_TAKES_EACH, _LONG_TOGETHER = 0.35, 20.0
#: A bone that is shorter than this share of the longest is none to touch.
_SHORT = 1e-3


def skinned_by(thing: "bpy.types.Object") -> "bpy.types.Object | None":
    """The armature that deforms a mesh object; None if none does."""
    for modifier in thing.modifiers:
        if modifier.type == "ARMATURE" and modifier.show_viewport and modifier.object is not None:
            return modifier.object
    return thing.parent if thing.parent_type == "ARMATURE" else None


def others(
    scene: "bpy.types.Scene", reading: Reading, names: tuple[str, ...]
) -> "list[bpy.types.Object]":
    """The armatures that are colliders for the character of a reading, in the order of their names:
    those that are marked, and those of these names. Raises SettingsError."""
    found = {
        thing.name
        for thing in scene.objects
        if thing.type == "ARMATURE" and thing.poise.role == "COLLIDER"
        if any(thing.name in layer.objects for layer in scene.view_layers)
    }
    found.discard(reading.armature)  # it is one for others

    def may_meet(one: "bpy.types.Object") -> bool:
        return one.type == "ARMATURE" and one.name != reading.armature

    for name in names:
        thing = scene.objects.get(name)
        if thing is None or thing.type != "ARMATURE":
            known = ", ".join(f"'{one.name}'" for one in scene.objects if may_meet(one))
            raise SettingsError(
                f"The scene '{scene.name}' has no armature '{name}' to meet: "
                + (f"choose one of {known}." if known else "it has no other one.")
            )
        if not may_meet(thing):
            raise SettingsError(
                f"'{name}' is simulated, and cannot be its own collider: name another armature."
            )
        found.add(name)
    return [scene.objects[name] for name in sorted(found)]


def own_collider(scene: "bpy.types.Scene", character: "bpy.types.Object | None") -> str:
    """A sentence on a character that is marked as a collider itself, where nobody else is; empty if
    it is not."""
    marked = [
        one for one in scene.objects if one.type == "ARMATURE" and one.poise.role == "COLLIDER"
    ]
    if character is None or marked != [character]:
        return ""
    return (
        f"'{character.name}' is simulated, and cannot be its own collider: others alone meet it. "
        "Unmark it, or mark whom it is to meet."
    )


def slowness(
    scene: "bpy.types.Scene", character: "bpy.types.Object | None", seconds: float, rate: float
) -> str:
    """A sentence on how much longer the armatures that are marked will make a simulation of a
    character that lasts so many seconds at a rate [Hz]; empty where that is not long."""
    marked = [
        one
        for one in scene.objects
        if one.type == "ARMATURE" and one.poise.role == "COLLIDER" and one != character
    ]
    return _slowness(len(marked), _PARTS * len(marked), seconds, rate)


def slowness_together(count: int, seconds: float, rate: float) -> str:
    """A sentence on how long it takes to simulate so many characters together that last so many
    seconds at a rate [Hz]; empty where that is not long."""
    takes = _TAKES_EACH * count * seconds * rate / _USUAL_RATE
    if takes < _LONG_TOGETHER:
        return ""
    return (
        f"{count} characters of {seconds:.0f} s: it will take about {takes:.0f} s, and longer "
        "where bodies fall."
    )


def slowness_of(limbs: tuple[Limb, ...], seconds: float, rate: float) -> str:
    """The same of Limbs."""
    return _slowness(len({limb.name for limb in limbs}), len(limbs), seconds, rate)


def _slowness(bodies: int, parts: int, seconds: float, rate: float) -> str:
    longer = _TAKES * parts * seconds * rate / _USUAL_RATE
    if longer < _LONG:
        return ""
    return (
        f"{bodies} armatures are colliders: it will take about {longer:.0f} s longer. Unmark those "
        "that touch nobody."
    )


class Body:
    """What is seen of an armature that is a collider, or of a mesh that one deforms.

    thing: the armature, or the mesh. friction: of what is to touch.
    """

    def __init__(self, scene: "bpy.types.Scene", thing: "bpy.types.Object", reading: Reading):
        """Raises SettingsError or RigError for what cannot take part."""
        self.name, self._scene, self._reading = thing.name, scene, reading
        self.friction = thing.poise.friction
        skinned = None if thing.type == "ARMATURE" else skinned_by(thing)
        armature = skinned or thing
        self._armature = armature.name
        self._layer = evaluation.view_layer(scene, armature)
        for one in {thing, armature}:
            if one.mode == "EDIT":
                raise SettingsError(f"'{one.name}' is in Edit Mode: leave it, to see its shape.")
        if armature.name == reading.armature:
            raise SettingsError(
                f"'{thing.name}' is the skin of '{armature.name}', which is simulated and cannot "
                "be its own collider: unmark it."
            )
        if not armature.pose.bones:
            raise SettingsError(
                f"The collider '{armature.name}' has no bones: give it some, or unmark it."
            )
        self._names = tuple(armature.pose.bones.keys())
        count = len(reading.frames)
        self._poses = np.empty((count, len(self._names), 4, 4), np.float32)
        self._objects = np.empty((count, 4, 4))

    def see(self, at: int) -> None:
        """Take down how it stands at the sample `at`, which the scene shows."""
        armature = self._there(self._armature)
        seen = armature.evaluated_get(self._layer.depsgraph)
        if not seen.is_evaluated:
            raise SettingsError(
                f"'{armature.name}' or its collection is disabled in the viewport, so that Blender "
                "does not move it: enable it in the Outliner, or unmark it."
            )
        flat = np.empty(len(self._names) * 16, np.float32)
        seen.pose.bones.foreach_get("matrix", flat)
        self._poses[at] = flat.reshape(-1, 4, 4).swapaxes(1, 2)
        self._objects[at] = seen.matrix_world
        if at == 0:
            mesh = self._there(self.name).evaluated_get(self._layer.depsgraph)
            self._bound = np.linalg.inv(self._objects[at]) @ np.array(mesh.matrix_world)

    def limbs(self) -> tuple[Limb, ...]:
        """Its Limbs, once it was seen at all samples. Raises SettingsError."""
        armature = self._there(self._armature)
        worlds = self._objects[:, None] @ self._poses
        finite = np.isfinite(worlds).all((1, 2, 3))
        if not finite.all():
            raise SettingsError(
                f"The collider '{armature.name}' has a bone that is not a number at frame "
                f"{self._reading.frames[np.argmin(finite)]:g}: mend or delete the keys there."
            )
        thing = self._there(self.name)
        if thing.type == "MESH":
            return self._of_skin(thing, armature, worlds)
        try:
            rig_map = rig.find(armature, worlds)
            motion = self._motion(
                segment_rotations(rig_map, self._names, worlds),
                landmark_positions(armature, rig_map, self._names, worlds),
            )
            return limbs_of(self.name, motion, self.friction)
        except (RigError, MotionError):  # no biped
            return self._of_bones(armature, worlds)

    def _there(self, name: str) -> "bpy.types.Object":
        """The object of that name. Raises SettingsError if it has gone meanwhile."""
        thing = self._scene.objects.get(name)
        if thing is None:
            raise SettingsError(
                f"The collider '{name}' was deleted or renamed while it was read: undo that, or "
                "start again."
            )
        return thing

    def _motion(self, rotations: np.ndarray, positions: np.ndarray) -> Motion:
        own, unit = self._reading.motion, self._reading.metres_per_unit
        first = float(self._reading.frames[0])
        return Motion(self.name, own.rate, rotations, positions * unit, first, own.frame_step)

    def _of_bones(self, armature: "bpy.types.Object", worlds: np.ndarray) -> tuple[Limb, ...]:
        """A capsule for each of the bones that deform, its ends round about head and tail."""
        bones = [bone for bone in armature.data.bones if bone.use_deform]
        bones.sort(key=lambda bone: bone.length, reverse=True)
        bones = [bone for bone in bones[:MOST_BONES] if bone.length > _SHORT * bones[0].length]
        if not bones:
            raise SettingsError(
                f"The collider '{armature.name}' has no bone that deforms: tick Deform in Bone "
                "Properties where something is to be met, or unmark it."
            )
        limbs = []
        for bone in bones:
            own = worlds[:, self._names.index(bone.name)]
            turns, _ = self._placed(bone.name, own)
            ways = own[:, :3, 1] * bone.length * self._reading.metres_per_unit
            length = float(np.median(np.linalg.norm(ways, axis=1)))
            radius = _RADIUS
            if armature.data.display_type == "ENVELOPE":
                radius = max((bone.head_radius + bone.tail_radius) / 2 / bone.length, _SHORT)
            # A bone lies along its y, a capsule along its z.
            frames = np.stack([turns[..., 0], -turns[..., 2], turns[..., 1]], -1)
            solid = Solid("capsule", (radius * length, length))
            middles = own[:, :3, 3] * self._reading.metres_per_unit + ways / 2
            limbs.append(self._limb(bone.name, solid, middles, frames))
        return tuple(limbs)

    def _of_skin(
        self, thing: "bpy.types.Object", armature: "bpy.types.Object", worlds: np.ndarray
    ) -> tuple[Limb, ...]:
        """The convex hull of what each bone moves most of a mesh."""
        unit = self._reading.metres_per_unit
        limbs = []
        for name, vertices in _shares(thing, armature).items():
            own = worlds[:, self._names.index(name)]
            turns, stretch = self._placed(name, own)
            rest = inverse(np.array(armature.data.bones[name].matrix_local)) @ self._bound
            local = vertices @ rest[:3, :3].T + rest[:3, 3]
            made = hull(local @ stretch.T * unit)
            if made is None:  # flat
                continue
            centre = made[0].mean(0)
            solid = Solid("hull", vertices=made[0] - centre)
            places = own[:, :3, 3] * unit + turns @ centre
            limbs.append(self._limb(name, solid, places, turns))
        if not limbs:
            raise SettingsError(
                f"'{thing.name}' has no part that a bone of '{armature.name}' moves and that has "
                "an inside: give it vertex groups of the bones' names, or unmark it."
            )
        return tuple(limbs)

    def _placed(self, bone: str, matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rotations (F, 3, 3) of a bone, and its stretch (3, 3) at the first sample, from its
        world matrices (F, 4, 4). Raises SettingsError if it grows or shrinks."""
        turns, stretches = split(f"{self._armature}: {bone}", matrices)
        sizes = np.cbrt(np.abs(np.linalg.det(stretches)))
        least, most = int(np.argmin(sizes)), int(np.argmax(sizes))
        if sizes[most] > MOST_GROWTH * sizes[least]:
            frames = self._reading.frames
            raise SettingsError(
                f"The bone '{bone}' of the collider '{self._armature}' is "
                f"{sizes[most] / sizes[least]:.2g} times as large at frame {frames[most]:g} as at "
                f"frame {frames[least]:g}: a collider must keep its size."
            )
        return turns, stretches[0]

    def _limb(self, part: str, solid: Solid, places: np.ndarray, frames: np.ndarray) -> Limb:
        turns = quaternion_from_matrix(frames)
        limb = Limb(self.name, solid, places, turns, self.friction, part)
        return settled(limb, self._reading.motion)


def _shares(thing: "bpy.types.Object", armature: "bpy.types.Object") -> dict[str, Any]:
    """{bone: (n, 3)} vertices of the faces of a mesh, as it is without modifiers, that have a
    corner which the bone moves more than any other does."""
    mesh, bones = thing.data, armature.data.bones
    groups = {
        group.index: group.name
        for group in thing.vertex_groups
        if group.name in bones and bones[group.name].use_deform
    }
    owners: list[str | None] = []
    for vertex in mesh.vertices:
        weights = {groups[one.group]: one.weight for one in vertex.groups if one.group in groups}
        best = max(weights, key=weights.__getitem__, default=None)
        owners.append(best if best and weights[best] > 0 else None)
    corners: dict[str, set[int]] = {}
    for face in mesh.polygons:
        own = tuple(face.vertices)
        for owner in {owners[one] for one in own} - {None}:
            corners.setdefault(owner, set()).update(own)
    flat = np.empty(3 * len(mesh.vertices), np.float32)
    mesh.vertices.foreach_get("co", flat)
    places = flat.reshape(-1, 3).astype(float)
    return {name: places[sorted(corners[name])] for name in sorted(corners)}

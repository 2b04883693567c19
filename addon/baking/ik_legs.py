# SPDX-License-Identifier: GPL-3.0-or-later
"""Legs that Blender's own IK constraint moves, on rigs without a map of controls: found by their
constraints, and baked on IK by keys for the bones that it pulls them to.

Thigh, shin and foot are keyed, too, as on FK: IK starts from that pose and finds it solved, so that
it comes out the same with the constraint or without. Where anything else than one plain chain of
two bones pulls a leg, it is none of these.
"""

from collections.abc import Callable, Collection, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ...controller.exceptions import BakeError
from ...controller.geometry.rotations import unit
from ...controller.geometry.skeleton import SIDE_WORDS, SIDES
from ..blender import compat
from ..blender.pose import all_below, nearest_rotation, rotation_property
from ..rigs import source_values
from ..rigs.bake_target import Switch
from ..rigs.reference import carrier
from ..rigs.rig import RigMap

if TYPE_CHECKING:
    import bpy

#: A knee's pole stays at least so far from the line from hip to ankle, per length of the leg.
_POLE = 0.25
#: What says whether a constraint acts: {property: value that turns it off}.
_SWITCHES = {"influence": 0.0, "mute": 1.0}


@dataclass(frozen=True)
class IkLeg:
    """A leg on IK.

    side: of SIDES. thigh, shin, foot: the bones that carry it. control: the bone that the shin's
    end is pulled to, which may be the foot. follows: the bone whose rotation the foot copies; else
    the foot itself.
    pole, pole_angle: the bone that the knee points at, None if there is none, and how [rad].
    constraints: {(bone, constraint)} names of those that act. on, off: Switches that make these act
    throughout, where keys say whether they do, or not at all.
    """

    side: str
    thigh: str
    shin: str
    foot: str
    control: str
    follows: str
    pole: str | None
    pole_angle: float
    constraints: frozenset
    on: tuple
    off: tuple

    @property
    def controls(self) -> Sequence[str]:
        """The bones by which IK moves it."""
        return (self.control,) if self.pole is None else (self.control, self.pole)

    def poses(
        self,
        armature: "bpy.types.Object",
        before: Callable[[str], np.ndarray],
        wanted: Callable[[str], np.ndarray],
    ) -> dict[str, np.ndarray]:
        """{control: (T, 4, 4) poses in the armature's space} that go with a leg where it is wanted,
        but for the foot, if that is a control itself.

        before, wanted: functions from one of its bones to its (T, 4, 4) poses in the animation and
        as wanted.
        """
        found = {}
        if self.control != self.foot:
            control = found[self.control] = before(self.control).copy()
            turn = _turned(wanted(self.foot)) @ _turned(before(self.follows)).swapaxes(1, 2)
            control[:, :3, :3] = turn @ control[:, :3, :3]
            control[:, :3, 3] = self._end(armature, wanted)
        if self.pole is not None:
            pole = found[self.pole] = before(self.pole).copy()
            pole[:, :3, 3] = self._pole(armature, before, wanted)
        return found

    def _end(self, armature: "bpy.types.Object", poses: Callable[[str], np.ndarray]) -> np.ndarray:
        """(T, 3) where the shin ends."""
        shin = poses(self.shin)
        return shin[:, :3, 3] + armature.data.bones[self.shin].length * shin[:, :3, 1]

    def _pole(
        self,
        armature: "bpy.types.Object",
        before: Callable[[str], np.ndarray],
        wanted: Callable[[str], np.ndarray],
    ) -> np.ndarray:
        """(T, 3) where the pole is to be: beside the leg as far and as high as it was, on the side
        that the thigh turns to it."""
        line, hip, length = self._line(armature, before)
        assert self.pole is not None  # as asked for by `poses`
        arm = before(self.pole)[:, :3, 3] - hip
        along = (arm * line).sum(-1, keepdims=True)
        beside = np.linalg.norm(arm - along * line, axis=-1, keepdims=True)
        beside = np.maximum(beside, _POLE * length)
        line, hip, _ = self._line(armature, wanted)
        thigh = _turned(wanted(self.thigh))
        up = np.cos(self.pole_angle) * thigh[:, :, 0] + np.sin(self.pole_angle) * thigh[:, :, 2]
        up = unit(up - (up * line).sum(-1, keepdims=True) * line)
        return hip + along * line + beside * up

    def _line(
        self, armature: "bpy.types.Object", poses: Callable[[str], np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(T, 3) direction from hip to ankle, (T, 3) hip, and (T, 1) length between them."""
        hip = poses(self.thigh)[:, :3, 3]
        line = self._end(armature, poses) - hip
        length = np.linalg.norm(line, axis=-1, keepdims=True)
        return line / length, hip, length


def _turned(poses: np.ndarray) -> np.ndarray:
    """(T, 3, 3) rotations of poses."""
    return nearest_rotation(poses[:, :3, :3])


def controls(armature: "bpy.types.Object", rig_map: RigMap) -> Sequence[str]:
    """Names of the bones by which IK moves legs, by the map or by constraints."""
    parts = [f"{part}_{side}" for side in SIDES for part in ("thigh", "foot")]
    named = [bone for part in parts for bone in rig_map.ik_controls.get(part, ())]
    return named or [bone for leg in find(armature, rig_map) for bone in leg.controls]


def sentences(keyed: tuple[str, ...], released: tuple[str, ...]) -> Iterator[str]:
    """On what a bake keyed of legs on IK; none on rigs without.

    keyed, released: as BakeResult has them, leg_controls and released_legs.
    """
    if keyed:
        yield f"Its legs are keyed on IK, by {', '.join(keyed)}."
    for side in released:
        yield (
            f"IK puts the {SIDE_WORDS[side]} leg elsewhere than the body has it, as where a limit "
            "of a bone hinders it: it is keyed on FK, with its constraint off."
        )


def find(armature: "bpy.types.Object", rig_map: RigMap) -> tuple[IkLeg, ...]:
    """The IkLegs of an armature, none of maps that name controls."""
    if rig_map.controls or armature.pose.ik_solver != "LEGACY":
        return ()
    found = _Finder(armature, rig_map)
    return tuple(leg for leg in map(found.leg, SIDES) if leg is not None)


# Constraints ------------------------------------------------------------------------------------


def moved_by(bone: "bpy.types.PoseBone", constraint: "bpy.types.Constraint") -> set[str]:
    """Names of the bones that a constraint on a bone moves."""
    if constraint.type not in ("IK", "SPLINE_IK"):
        return {bone.name}
    tip = bone if constraint.type == "SPLINE_IK" or constraint.use_tail else bone.parent
    chain = [] if tip is None else [tip, *tip.parent_recursive]
    return {one.name for one in chain[: constraint.chain_count or None]}


def is_off(constraint: "bpy.types.Constraint", animated: Set[str]) -> bool:
    """Whether a constraint never does anything. animated: data paths with keys or drivers."""
    paths = (constraint.path_from_id("influence"), constraint.path_from_id("mute"))
    if any(path in animated for path in paths):
        return False
    return constraint.mute or constraint.influence == 0 or not constraint.is_valid


def animated_paths(armature: "bpy.types.Object") -> tuple[set[str], set[str]]:
    """The data paths of an armature with drivers, and those with keys, of the assigned action and
    of the NLA strips that are heard."""
    animation = armature.animation_data
    driven = {driver.data_path for driver in animation.drivers} if animation else set()
    played = source_values.nested(source_values.heard(animation))
    pairs = [compat.assigned(armature), *map(compat.of_strip, played)]
    return driven, {curve.data_path for pair in pairs for curve in compat.curves(*pair)}


def switch_off(
    bone: "bpy.types.PoseBone", constraint: "bpy.types.Constraint", driven: Set[str]
) -> Switch:
    """The switch that turns a constraint off by keys. driven: data paths with drivers."""
    for name, value in _SWITCHES.items():
        path = constraint.path_from_id(name)
        if path not in driven:
            return Switch(path, bone.name, value)
    raise BakeError(
        f"The constraint '{constraint.name}' of the bone '{bone.name}' is driven, so that it "
        "cannot be turned off: remove its drivers, or bake to controls with a rig map."
    )


class _Finder:
    """What is asked of both legs. Panels ask at every drawing, and a rig may have hundreds of bones
    and thousands of curves: only what can move a leg is looked at."""

    def __init__(self, armature: "bpy.types.Object", rig_map: RigMap) -> None:
        self._armature, self._map = armature, rig_map
        self._mapped = {bone for chain in rig_map.bones.values() for bone in chain}

    @cached_property
    def _paths(self) -> tuple[set[str], set[str]]:
        return animated_paths(self._armature)

    @property
    def _driven(self) -> set[str]:
        return self._paths[0]

    @property
    def _keyed(self) -> set[str]:
        return self._paths[1]

    @cached_property
    def _animated(self) -> set[str]:
        return self._driven | self._keyed

    def _moving(
        self, names: Collection[str]
    ) -> "list[tuple[bpy.types.PoseBone, bpy.types.Constraint, set[str]]]":
        """(bone, constraint, names of those that it moves) of all constraints on some bones, or on
        bones below whose chains reach up to these."""
        tops = [self._armature.data.bones[name] for name in names]
        owners = dict.fromkeys(one.name for top in tops for one in (top, *all_below(top)))
        bones = [self._armature.pose.bones[name] for name in owners]
        held = [(bone, one, moved_by(bone, one)) for bone in bones for one in bone.constraints]
        return [(bone, one, moved) for bone, one, moved in held if not moved.isdisjoint(names)]

    def _holding(
        self, names: Collection[str]
    ) -> "list[tuple[bpy.types.PoseBone, bpy.types.Constraint, set[str]]]":
        """Those of `_moving` that act."""
        return [held for held in self._moving(names) if not is_off(held[1], self._animated)]

    def leg(self, side: str) -> IkLeg | None:
        """The IkLeg of a side, None if none is found, or one that is not understood."""
        names = [carrier(self._map, f"{part}_{side}") for part in ("thigh", "shin", "foot")]
        if not any(one.type == "IK" for _, one, _ in self._moving(names)):
            return None
        holding = self._holding(names)
        held = [(bone, one) for bone, one, _ in holding]
        solvers = [one for _, one in held if one.type == "IK"]
        copies = [one for bone, one in held if bone.name == names[2] and one.type != "IK"]
        if len(solvers) != 1 or len(copies) > 1 or len(held) != 1 + len(copies):
            return None
        (ik,), control, follows = solvers, solvers[0].subtarget, names[2]
        chain = next(moved for _, one, moved in holding if one == ik)
        if not (
            chain == set(names[:2])
            and self._is_plain(ik, chain)
            and self._is_control(control, names, ())
        ):
            return None
        if ik.pole_target is not None and not self._is_pole(ik, names):
            return None
        if copies:
            follows = copies[0].subtarget
            if not self._is_copy(copies[0], control):
                return None
        return IkLeg(
            side,
            thigh=names[0],
            shin=names[1],
            foot=names[2],
            control=control,
            follows=follows,
            pole=ik.pole_subtarget if ik.pole_target is not None else None,
            pole_angle=ik.pole_angle,
            constraints=frozenset((bone.name, one.name) for bone, one in held),
            on=tuple(switch for bone, one in held for switch in self._on(bone, one)),
            off=tuple(switch_off(bone, one, self._driven) for bone, one in held),
        )

    def _is_plain(self, ik: "bpy.types.Constraint", chain: Set[str]) -> bool:
        """Whether an IK constraint pulls a chain of bones to a bone, and does nothing else."""
        bones = self._armature.pose.bones
        stretches = ik.use_stretch and any(bones[name].ik_stretch > 0 for name in chain)
        return (
            ik.target == self._armature
            and ik.ik_type == "COPY_POSE"
            and ik.use_location
            and not ik.use_rotation
            and not stretches
            and self._is_still(ik)
        )

    def _is_still(self, constraint: "bpy.types.Constraint") -> bool:
        """Whether nothing of a constraint is animated but whether it acts, and not all of that
        driven: where it acts makes no difference, but it must be possible to turn it off."""
        switches = {constraint.path_from_id(name) for name in _SWITCHES}
        paths = self._animated - switches
        start = f"{constraint.path_from_id()}."
        own = any(path.startswith(start) for path in paths)
        return not own and not switches <= self._driven

    def _is_control(
        self,
        name: str,
        leg: Sequence[str],
        besides: Collection[str],
        locks: tuple[str, ...] = ("lock_location", "lock_rotation"),
    ) -> bool:
        """Whether a bone is there to be keyed: only its keys move it, and what the thigh hangs on,
        or one of the bones besides."""
        bones = self._armature.pose.bones
        bone = bones.get(name)
        if bone is None or name in self._mapped - {leg[2]}:
            return False
        line = {one.name for one in bones[leg[0]].parent_recursive}
        channels = {"location", "scale", rotation_property(bone.rotation_mode)}
        return (
            name not in line
            and {one.name for one in bone.parent_recursive} <= {*line, *besides}
            and not self._holding({name})
            and not {bone.path_from_id(channel) for channel in channels} & self._driven
            and not any(any(getattr(bone, lock)) for lock in locks)
        )

    def _is_pole(self, ik: "bpy.types.Constraint", leg: Sequence[str]) -> bool:
        """Whether the pole of an IK constraint can be keyed."""
        line = {one.name for one in self._armature.pose.bones[ik.subtarget].parent_recursive}
        own = ik.pole_target == self._armature and ik.pole_subtarget != ik.subtarget
        besides = {ik.subtarget, *line}
        return own and self._is_control(ik.pole_subtarget, leg, besides, ("lock_location",))

    def _is_copy(self, copy: "bpy.types.Constraint", control: str) -> bool:
        """Whether a constraint of a foot makes it turn as the control does, or as a bone on it."""
        followed = self._armature.pose.bones.get(copy.subtarget)
        return (
            copy.type == "COPY_ROTATION"
            and copy.target == self._armature
            and followed is not None
            and (followed.name == control or self._rides(followed, control))
            and copy.mix_mode == "REPLACE"
            and copy.use_x
            and copy.use_y
            and copy.use_z
            and not (copy.invert_x or copy.invert_y or copy.invert_z)
            and copy.owner_space == copy.target_space
            and copy.owner_space in ("WORLD", "POSE")
            and self._is_still(copy)
        )

    def _rides(self, bone: "bpy.types.PoseBone", control: str) -> bool:
        """Whether a bone hangs right on the control, and nothing else moves it."""
        rides = bone.parent is not None and bone.parent.name == control
        return rides and not self._holding({bone.name})

    def _on(
        self, bone: "bpy.types.PoseBone", constraint: "bpy.types.Constraint"
    ) -> Iterator[Switch]:
        """Switches that have a constraint act throughout, where keys say whether it does."""
        for name, off in _SWITCHES.items():
            path = constraint.path_from_id(name)
            if path in self._keyed - self._driven:
                yield Switch(path, bone.name, 1.0 - off)

# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a reference motion from an armature, as Blender evaluates it.

Every frame is sampled with constraints, drivers, IK, NLA, parents and object transforms in
effect, so what is read is what is seen.
"""

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...controller.exceptions import MotionError, RigError
from ...controller.geometry.motion import Motion
from ...controller.geometry.rotations import quaternion_from_matrix
from ...controller.geometry.skeleton import JOINT_OF, LANDMARKS, PARENTS, SEGMENTS, SIDES
from ...controller.reference.faults import find_flips
from ..blender import compat
from ..blender.pose import all_below, nearest_rotation
from . import rig, source_values, strips
from .sampling import (
    animated_range,
    is_constrained,
    key_count,
    run,
    sampled_frames,
    sampling,
    unchanged,
)

if TYPE_CHECKING:
    import bpy

#: Lengths of scene units in use [m]: motion capture, centimetres, inches, feet, …
KNOWN_UNITS = (1.0, 0.01, 0.0254, 0.056444, 0.1, 0.001, 0.3048, 0.9144, 10.0, 100.0)
#: Leg lengths (thigh and shin) of bipeds that the scene's own unit may give, and a usual one [m].
LEG_RANGE, USUAL_LEG = (0.14, 2.2), 0.85
#: No key that means anything is larger.
LARGEST_KEY = 1e9
#: How much the axes of an armature object may differ in length, or lean, to count as similar.
SHEAR_TOLERANCE = 1e-3
#: By which factor an armature may grow or shrink: its body is simulated as large as in the mean.
MOST_GROWTH = 1.25
#: Fewer frames than that beside the animation are not told of.
_BESIDE = 2
#: So many frames are worked on at once where a window waits.
PIECE = 25
#: Lowest and highest frame rate of an animation [Hz].
_RATES = 0.1, 10_000
#: So many names are listed of those that there are.
_LISTED = 8


@dataclass
class Reading:
    """A reference motion and all that the bake needs to know of the frames it came from.

    armature, action, slot: names; action and slot are None where only NLA strips animate.
        The slot is named by its identifier. library: file that the action is linked from.
    frames: (F,) scene frames. rate: samples per second [Hz].
    metres_per_unit: size of a scene unit [m]. unit_guessed: whether it is concluded from the legs.
    rig_map: which bones carry which segment.
    bone_names: (B,) all bones of the armature.
    bone_matrices: (F, B, 4, 4) evaluated world matrices, in scene units.
    basis_matrices: (F, B, 4, 4) what the channels (keys and drivers) alone say, bone by bone.
    object_matrices: (F, 4, 4) evaluated world matrices of the armature object.
    object_bases: (F, 4, 4) what the object's own channels say.
    motion: the same in SI units, for the controller.
    looped: (F,) scene frames that were read, where they are looped into something longer (see
        `walks`); None where they are `frames`.
    still: a sentence on frames beside the animation, in which nothing moves, or on those in which
        it goes on in cycles and that are not read; empty without.
    source: what tells action and slot whatever they are called by now, as `compat.numbers` has it.
    """

    armature: str
    action: str | None
    slot: str | None
    library: str | None
    frames: np.ndarray
    rate: float
    metres_per_unit: float
    unit_guessed: bool
    rig_map: rig.RigMap
    bone_names: tuple
    bone_matrices: np.ndarray
    basis_matrices: np.ndarray
    object_matrices: np.ndarray
    object_bases: np.ndarray
    motion: Motion
    looped: np.ndarray | None = None
    still: str = ""
    source: tuple[int, int | None] | None = None

    def bone_index(self, name: str) -> int:
        """Where a bone stands in the arrays."""
        return self.bone_names.index(name)


def read(scene: "bpy.types.Scene", armature: "bpy.types.Object", **options: Any) -> Reading:
    """`reading` from beginning to end; returns the Reading."""
    return run(reading(scene, armature, **options))


def reading(
    scene: "bpy.types.Scene",
    armature: "bpy.types.Object",
    frames: tuple[float, ...] | None = None,
    action: "bpy.types.Action | str | tuple | None" = None,
    rig_map: rig.RigMap | None = None,
    rate: float | None = None,
    metres_per_unit: float | None = None,
    stands: bool = False,
) -> Generator[float, None, Reading]:
    """Sample an armature's animation: yields the progress from 0 to 1 and returns a Reading.

    scene: a scene, or a context for its scene.
    frames: (start, end, step) in scene frames, fractions allowed; None for all keys.
    action: read this action (or the one of that name, or an (action, slot)) instead of the assigned
        one.
    rig_map: which bones carry what; None to find it.
    rate: frames per second [Hz]; None for the scene's.
    metres_per_unit: size of a scene unit [m]; None to conclude it from the length of the legs.
    stands: whether it may have no animation in these frames, and stand as it does.

    The current frame and the assigned action and slot are the same afterwards, even if the
    generator is closed half-way. Raises RigError and MotionError.
    """
    scene = getattr(scene, "scene", scene)
    check_armature(armature)
    with unchanged(scene, armature):
        chosen, slot = _animation(armature, action, stands)
        sampled = sampled_frames(scene, armature, chosen, slot, frames)
        rate = _sample_rate(scene, sampled, rate)
        samples = yield from sampling(scene, armature, sampled)
        yield 1.0
    yield 1.0
    names, matrices, basis, objects, object_bases = samples
    still = _still(armature, chosen, slot, sampled, matrices, objects, stands)
    if frames is None:
        still = still or _cycles_on(scene, chosen, slot, sampled)
    check_object(armature, sampled, objects)
    yield 1.0
    for start in range(0, len(sampled), PIECE):
        piece = slice(start, start + PIECE)
        matrices[piece] = objects[piece, None] @ matrices[piece]
        yield 1.0
    found = rig.find(armature, matrices) if rig_map is None else rig_map
    yield 1.0
    _check_keys(chosen, slot, found)
    yield 1.0
    _check_bones(found, names, matrices, sampled)
    yield 1.0
    pieces = []
    for start in range(0, len(sampled), PIECE):
        pieces.append(segment_rotations(found, names, matrices[start : start + PIECE]))
        yield 1.0
    rotations = np.concatenate(pieces)
    yield 1.0
    positions = landmark_positions(armature, found, names, matrices)
    scale = metres_per_unit or _metres_per_unit(scene, positions)
    return Reading(
        armature=armature.name,
        action=chosen.name if chosen else None,
        slot=compat.slot_name(slot),
        library=chosen.library.filepath if chosen and chosen.library else None,
        frames=sampled,
        rate=rate,
        metres_per_unit=scale,
        unit_guessed=not metres_per_unit and scale != scene.unit_settings.scale_length,
        rig_map=found,
        bone_names=names,
        bone_matrices=matrices,
        basis_matrices=basis,
        object_matrices=objects,
        object_bases=object_bases,
        motion=Motion(
            name=chosen.name if chosen else armature.name,
            rate=rate,
            rotations=rotations,
            positions=positions * scale,
            first_frame=float(sampled[0]),
            frame_step=float(sampled[1] - sampled[0]),
        ),
        still=still,
        source=compat.numbers(chosen, slot),
    )


def check_armature(armature: "bpy.types.Object") -> None:
    """Raise RigError unless this is an armature object that can be evaluated in its pose."""
    if armature is None:
        raise RigError("There is no armature: select the armature object to simulate.")
    if getattr(armature, "type", None) != "ARMATURE":
        raise RigError(f"'{armature.name}' is not an armature: select an armature object.")
    if armature.mode != "EDIT" and not armature.data.bones:
        raise RigError(f"'{armature.name}' has no bones: choose the character's armature.")
    if armature.mode == "EDIT":
        raise RigError(f"'{armature.name}' is in Edit Mode: leave it, to see the animation.")
    if armature.data.pose_position == "REST":
        raise RigError(
            f"'{armature.name}' shows its rest position: set the armature's data to Pose Position."
        )
    if armature.animation_data is not None and armature.animation_data.use_tweak_mode:
        raise RigError(
            f"'{armature.name}' is in the NLA editor's tweak mode: leave it (Tab) and try again."
        )


def _animation(
    armature: "bpy.types.Object", action: "bpy.types.Action | str | tuple | None", stands: bool
) -> "tuple[bpy.types.Action | None, bpy.types.ActionSlot | None]":
    """The (action, slot) to read, assigned to the armature; (None, None) if others move it, or if
    it stands still and may."""
    if action is not None:
        return _assign_action(armature, action)
    own, slot = compat.assigned(armature)
    played = source_values.heard(armature.animation_data)
    if own is None or (compat.HAS_SLOTS and slot is None):
        if played:
            return None, None
        if own is None:
            if stands or is_constrained(armature):
                return None, None
            raise MotionError(
                f"'{armature.name}' has no animation: assign an action, or add NLA strips that are "
                "not muted."
            )
        raise MotionError(
            f"'{armature.name}' has no slot in the action '{own.name}': choose one in the "
            "Action editor."
        )
    if not any(key_count(curve) for curve in compat.curves(own, slot)):
        if played or stands:
            return own, slot
        raise MotionError(
            f"The action '{own.name}' has no keys for '{armature.name}': choose another one."
        )
    return own, slot


def _assign_action(
    armature: "bpy.types.Object", chosen: "bpy.types.Action | str | tuple"
) -> "tuple[bpy.types.Action | None, bpy.types.ActionSlot | None]":
    """Assign a chosen action (by name, itself, or with a slot) to the armature: (action, slot)."""
    if isinstance(chosen, tuple):
        strips.assign(armature, *chosen)
        return chosen
    action = compat.find_action(chosen) if isinstance(chosen, str) else chosen
    if action is None:
        known = [f"'{name}'" for name in compat.action_names()]
        more = ", …" if len(known) > _LISTED else ""
        listed = f"choose one of {', '.join(known[:_LISTED])}{more}" if known else "it has none"
        raise MotionError(f"There is no action named '{chosen}' in this file: {listed}.")
    slot = compat.object_slot(action, armature)
    if not any(key_count(curve) for curve in compat.curves(action, slot)):
        raise MotionError(
            f"The action '{action.name}' has no keys for '{armature.name}': choose another one."
        )
    if armature.library is None:
        strips.assign(armature, action, slot)
    elif (action, slot) != compat.assigned(armature):
        raise RigError(
            f"'{armature.name}' is linked, so that it can only be read with the action it has: "
            "make a library override of it, or make it local."
        )
    return action, slot


def _still(
    armature: "bpy.types.Object",
    action: "bpy.types.Action | None",
    slot: "bpy.types.ActionSlot | None",
    frames: np.ndarray,
    matrices: np.ndarray,
    objects: np.ndarray,
    stands: bool,
) -> str:
    """A sentence on frames that are beside the animation and in which nothing moves: what is
    cyclic, constrained or driven goes on. Raises MotionError if they all are, unless it `stands`.

    matrices: (F, B, 4, 4) of the bones, objects: (F, 4, 4) of the armature.
    """
    try:
        first, last = animated_range(armature, action, slot)
    except MotionError:
        return ""
    spans: list[tuple[float, float]] = []
    for beside in (frames <= first, frames >= last):
        found = frames[beside]
        # Where whole frames are asked for, one may be beside it that is nobody's.
        if len(found) < 2 or (np.ptp(found) < _BESIDE and not beside.all()):
            continue
        if np.ptp(matrices[beside], axis=0).max() or np.ptp(objects[beside], axis=0).max():
            continue
        spans.append((found[0], found[-1]))
        if beside.all() and not stands:
            raise MotionError(
                f"'{armature.name}' is animated from frame {first:g} to {last:g}, and nothing "
                f"moves from {found[0]:g} to {found[-1]:g}: choose frames among those."
            )
    if not spans:
        return ""
    (start, end), (again, until) = spans[0], spans[-1]
    if len(spans) == 1:
        return (
            f"'{armature.name}' is animated from frame {first:g} to {last:g}, and nothing moves "
            f"from {start:g} to {end:g}."
        )
    return (
        f"'{armature.name}' is animated from frame {first:g} to {last:g}, and nothing moves from "
        f"{start:g} to {end:g} and from {again:g} to {until:g}."
    )


def _cycles_on(
    scene: "bpy.types.Scene",
    action: "bpy.types.Action | None",
    slot: "bpy.types.ActionSlot | None",
    frames: np.ndarray,
) -> str:
    """A sentence on an action that goes on in cycles beyond what is read of it; empty without."""
    modifiers = [one for curve in compat.curves(action, slot) for one in curve.modifiers]
    cyclic = any(one.type == "CYCLES" and not one.mute for one in modifiers)
    if action is None or not cyclic or scene.frame_end <= frames[-1]:
        return ""
    return (
        f"'{action.name}' goes on in cycles after frame {frames[-1]:g}, which is not read: choose "
        f"the frames {frames[0]:g} to {scene.frame_end} if it shall."
    )


def _sample_rate(scene: "bpy.types.Scene", frames: np.ndarray, rate: float | None) -> float:
    """Samples per second, at `rate` or the scene's own frames per second."""
    fps = scene.render.fps / scene.render.fps_base if rate is None else float(rate)
    low, high = _RATES
    if not low <= fps <= high:
        raise MotionError(
            f"A frame rate of {fps:g} is impossible: give one from {low:g} to {high:g}."
        )
    return fps / (frames[1] - frames[0])


def check_object(armature: "bpy.types.Object", frames: np.ndarray, objects: np.ndarray) -> None:
    """Raise RigError unless the object only moves, turns and scales evenly, at every frame."""
    name = armature.name
    finite = np.isfinite(objects).all((1, 2))
    if not finite.all():
        raise MotionError(
            f"The object '{name}' has a transform that is not a number at frame "
            f"{frames[np.argmin(finite)]:g}: mend or delete the keys there."
        )
    axes = objects[:, :3, :3]
    lengths = np.linalg.norm(axes, axis=1)
    determinants = np.linalg.det(axes)
    wrong = (lengths.min(1) < 1e-8) | (determinants <= 0)
    if wrong.any():
        i = np.argmax(wrong)
        kind = "negative" if lengths[i].min() >= 1e-8 else "zero"
        raise RigError(
            f"The object '{name}' has a {kind} scale at frame {frames[i]:g}: "
            "make the scale of the object and its parents positive."
        )
    size = np.cbrt(determinants)[:, None, None]
    gram = axes.swapaxes(1, 2) @ axes / size**2
    wrong = np.abs(gram - np.eye(3)).max((1, 2)) > SHEAR_TOLERANCE
    if wrong.any():
        raise RigError(
            f"The object '{name}' is sheared or scaled unevenly at frame "
            f"{frames[np.argmax(wrong)]:g}: apply the scale of the object and its parents."
        )
    least, most = np.argmin(size), np.argmax(size)
    if size[most] > MOST_GROWTH * size[least]:
        raise MotionError(
            f"The object '{name}' is {size[most].item() / size[least].item():.2g} times as large "
            f"at frame {frames[most]:g} as at frame {frames[least]:g}, and a simulated body has "
            "one size: choose frames between which it does not grow."
        )


def _check_keys(
    action: "bpy.types.Action | None", slot: "bpy.types.ActionSlot | None", rig_map: rig.RigMap
) -> None:
    """Raise MotionError for keys that are no numbers on bones of the map or on the object."""
    bones = {bone for chain in rig_map.bones.values() for bone in chain}
    for curve in compat.curves(action, slot):
        bone = bone_of(curve.data_path)
        if bone is not None and bone not in bones:
            continue
        keys = np.empty(2 * len(curve.keyframe_points))
        curve.keyframe_points.foreach_get("co", keys)
        # Blender stores an infinite value as the largest number that there is.
        wrong = ~(np.abs(keys.reshape(-1, 2)) < LARGEST_KEY).all(1)
        if wrong.any():
            frame = keys[2 * np.argmax(wrong)]
            owner = f"bone '{bone}'" if bone else f"channel '{curve.data_path}'"
            raise MotionError(
                f"The {owner} has a key that is not a finite number at frame {frame:g}: "
                "mend or delete that key."
            )


def bone_of(data_path: str) -> str | None:
    """Name of the bone that a curve's data path is about; None if it is about something else."""
    start = 'pose.bones["'
    if not data_path.startswith(start):
        return None
    # The name is quoted: a quote or a backslash inside it has a backslash before it.
    name: list[str] = []
    escaped = False
    for letter in data_path[len(start) :]:
        if not escaped and letter == '"':
            return "".join(name)
        if not escaped and letter == "\\":
            escaped = True
            continue
        name.append(letter)
        escaped = False
    return None


def _check_bones(
    rig_map: rig.RigMap, names: Sequence[str], matrices: np.ndarray, frames: np.ndarray
) -> None:
    """Raise unless every bone of the map exists and has a finite, right-handed matrix."""
    for slot, chain in rig_map.bones.items():
        for bone in chain:
            if bone not in names:
                raise RigError(
                    f"The rig map '{rig_map.name}' names '{bone}' for {slot}, which the armature "
                    "does not have: correct the map."
                )
            own = matrices[:, names.index(bone)]
            finite = np.isfinite(own).all((1, 2))
            if not finite.all():
                raise MotionError(
                    f"The bone '{bone}' is not a finite number at frame "
                    f"{frames[np.argmin(finite)]:g}: mend or delete the keys there."
                )
            axes = own[:, :3, :3]
            size = np.linalg.norm(axes, axis=1).max(1)
            wrong = np.linalg.det(axes) <= 1e-9 * size**3
            if wrong.any():
                raise RigError(
                    f"The bone '{bone}' has a zero or negative scale at frame "
                    f"{frames[np.argmax(wrong)]:g}: make its scale positive."
                )


def carrier(rig_map: rig.RigMap, segment: str) -> str:
    """The bone whose orientation is that of a segment: toes without a bone turn with the foot."""
    chain = rig_map.bones.get(segment) or rig_map.bones[PARENTS[segment]]
    return chain[-1] if segment in ("pelvis", "trunk", "head") else chain[0]


def carriers(rig_map: rig.RigMap, segment: str) -> tuple[str, ...]:
    """The bones that share the turn of a segment, its carrier the last: all of a spine or neck."""
    if segment in ("trunk", "head"):
        return rig_map.bones[segment]
    return (carrier(rig_map, segment),)


def segment_rotations(
    rig_map: rig.RigMap, names: Sequence[str], matrices: np.ndarray
) -> np.ndarray:
    """(F, len(SEGMENTS), 4) world orientations of the carriers, w first."""
    rows = [names.index(carrier(rig_map, segment)) for segment in SEGMENTS]
    return quaternion_from_matrix(nearest_rotation(matrices[:, rows, :3, :3]))


def check_pops(reading: Reading) -> None:
    """Raise MotionError where a segment turns too far within one sample."""
    for sample, segment, angle in find_flips(reading.motion):
        raise MotionError(
            f"The bone '{carrier(reading.rig_map, SEGMENTS[segment])}' pops: it turns by "
            f"{math.degrees(angle):.0f}° from frame {reading.frames[sample]:g} to "
            f"{reading.frames[sample + 1]:g}: mend the keys there, or clean it with 'despike'."
        )


def landmark_positions(
    armature: "bpy.types.Object", rig_map: rig.RigMap, names: Sequence[str], matrices: np.ndarray
) -> np.ndarray:
    """(F, len(LANDMARKS), 3) world positions in scene units; NaN for bones the rig lacks."""
    bones = rig_map.bones
    points = np.full((len(matrices), len(LANDMARKS), 3), np.nan)

    def put(landmark: str, bone: str, tail: bool = False) -> None:
        own = matrices[:, names.index(bone)]
        offset = own[:, :3, 1] * armature.data.bones[bone].length if tail else 0.0
        points[:, LANDMARKS.index(landmark)] = own[:, :3, 3] + offset

    for segment, joint in JOINT_OF.items():
        if segment in bones:
            put(joint, bones[segment][-1 if segment == "pelvis" else 0])
    put("head_top", bones["head"][-1], tail=True)
    for side in SIDES:
        forearm = bones[f"forearm_{side}"]
        hand, toe = bones.get(f"hand_{side}"), bones.get(f"toe_{side}")
        put(f"wrist_{side}", hand[0] if hand else forearm[-1], tail=not hand)
        tip = _fingertip(armature, forearm[0], hand[0]) if hand else None
        if tip:
            put(f"fingertip_{side}", tip, tail=True)
        others = rig.beside(armature, rig_map, f"toe_{side}")
        ends = [bone for bone in toe or (bones[f"foot_{side}"][0],) if bone not in others]
        put(f"toe_{side}", ends[-1], tail=True)
    return points


def _fingertip(armature: "bpy.types.Object", forearm: str, hand: str) -> str | None:
    """The bone at whose tail the hand ends: the farthest fingertip in rest, else the hand itself.

    Things held in the hand are often its children too, and no hand is longer than its forearm.
    None if nothing has a hand's proportions: some rigs end at the wrist.
    """
    end = armature.data.bones[hand]
    wrist = end.head_local
    limit = (armature.data.bones[forearm].head_local - wrist).length
    tips = [bone for bone in all_below(end) if not bone.children]
    for bones in (tips, [end]):
        lengths = {bone.name: (bone.tail_local - wrist).length for bone in bones}
        fitting = [name for name, length in lengths.items() if 0.2 * limit < length <= limit]
        if fitting:
            return max(fitting, key=lengths.__getitem__)
    return None


def _metres_per_unit(scene: "bpy.types.Scene", positions: np.ndarray) -> float:
    """Size of a scene unit [m] that gives the legs a human length."""
    joints = [LANDMARKS.index(f"{name}_{s}") for s in SIDES for name in ("hip", "knee", "ankle")]
    hip, knee, ankle = positions[:, joints].reshape(len(positions), 2, 3, 3).swapaxes(0, 2)
    leg = np.linalg.norm(knee - hip, axis=-1) + np.linalg.norm(ankle - knee, axis=-1)
    leg = float(np.median(leg))
    if leg <= 0:
        raise RigError("The legs have no length: correct the rig map.")
    own = scene.unit_settings.scale_length
    if LEG_RANGE[0] <= leg * own <= LEG_RANGE[1]:
        return own
    return min(KNOWN_UNITS, key=lambda unit: abs(math.log(leg * unit / USUAL_LEG)))

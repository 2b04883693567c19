# SPDX-License-Identifier: GPL-3.0-or-later
"""Sampling an armature: which frames are animated, and how its bones stand at them."""

import contextlib
import math
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ...controller.exceptions import MotionError, RigError
from ..blender import compat
from ..blender.evaluation import Evaluation, LastOfTurn, evaluating, is_enabled, view_layer
from . import source_values, strips

if TYPE_CHECKING:
    import bpy

Returned = TypeVar("Returned")
#: Names of bones, and matrices as `sampled` has them.
Sampled = tuple[tuple[str, ...], np.ndarray, np.ndarray, np.ndarray, np.ndarray]

#: Frames that are so little apart are one: keys have single precision.
_SAME_FRAME = 1e-3
#: As many as that are a slip of the keyboard, and do not fit into any memory.
_MOST_FRAMES = 500_000


@contextlib.contextmanager
def unchanged(scene: "bpy.types.Scene", armature: "bpy.types.Object") -> Iterator[None]:
    """Put back the current frame, the assigned action and slot, and which NLA tracks are muted,
    whatever happens inside."""
    frame, subframe = scene.frame_current, scene.frame_subframe
    before, muted = compat.assigned(armature), strips.mutes(armature)
    try:
        yield
    finally:
        if compat.assigned(armature) != before:
            compat.assign(armature, *before)
        strips.set_mutes(armature, muted)
        scene.frame_set(frame, subframe=subframe)


def sampling(
    scene: "bpy.types.Scene", armature: "bpy.types.Object", frames: np.ndarray
) -> Generator[float, None, Sampled]:
    """`sampled` of all bones of an armature."""
    with evaluating(scene, armature) as evaluation:
        yield from evaluation.going_aside()
        yield 0.0
        found = yield from sampled(evaluation, frames)
    yield LastOfTurn(1.0)
    return found


def sampled(
    evaluation: Evaluation, frames: np.ndarray, bones: Sequence[str] | None = None
) -> Generator[float, None, Sampled]:
    """Evaluate frames: yields the progress from 0 to 1.

    evaluation: evaluation.Evaluation of the armature.
    bones: names of the bones to sample; None for all.
    Returns the names, their pose matrices (F, B, 4, 4) in the armature's space, their channel
    (basis) matrices (F, B, 4, 4), and the object's world and basis matrices (F, 4, 4).
    """
    armature = evaluation.armature
    names = tuple(armature.pose.bones.keys())
    total = len(names)
    rows: slice | list[int] = slice(None)
    if bones is not None:
        rows = [names.index(bone) for bone in bones]
    buffer = np.empty(total * 16, np.float32)
    chosen = total if bones is None else len(bones)
    poses = np.empty((len(frames), chosen, 4, 4))
    basis = np.empty((len(frames), chosen, 4, 4))
    objects = np.empty((len(frames), 4, 4))
    object_bases = np.empty((len(frames), 4, 4))
    yield from evaluation.comparing()
    yield LastOfTurn(0.0)  # the first evaluation may build what all depends on
    for i, frame in enumerate(frames):
        evaluated = evaluation.at(frame)
        if not evaluated.is_evaluated:
            raise _disabled(armature)
        objects[i] = evaluated.matrix_world
        object_bases[i] = evaluated.matrix_basis
        for target, attribute in ((poses, "matrix"), (basis, "matrix_basis")):
            evaluated.pose.bones.foreach_get(attribute, buffer)
            target[i] = buffer.reshape(total, 4, 4)[rows].swapaxes(1, 2)
        yield (i + 1) / len(frames)
    enabled = is_enabled(armature, view_layer(evaluation.scene, armature))
    if not enabled and np.ptp(poses, axis=0).max() == 0 and np.ptp(objects, axis=0).max() == 0:
        raise _disabled(armature)
    return (names if bones is None else tuple(bones)), poses, basis, objects, object_bases


def _disabled(armature: "bpy.types.Object") -> RigError:
    return RigError(
        f"'{armature.name}' or its collection is disabled in the viewport, so that Blender does "
        "not animate it: enable it in the Outliner."
    )


def run(generator: Generator[Any, None, Returned]) -> Returned:
    """What a generator returns in the end, without its progress."""
    while True:
        try:
            next(generator)
        except StopIteration as end:
            return end.value


def sampled_frames(
    scene: "bpy.types.Scene",
    armature: "bpy.types.Object",
    action: "bpy.types.Action | None",
    slot: "bpy.types.ActionSlot | None",
    frames: tuple[float, ...] | None = None,
) -> np.ndarray:
    """(F,) frames to sample: of (start, end, step), or all that the keys or NLA strips span; those
    of the scene where constraints or drivers alone move the armature."""
    if frames is not None:
        start, end, step = (float(value) for value in frames)
        if not (math.isfinite(start) and math.isfinite(end) and math.isfinite(step) and step > 0):
            raise MotionError(
                f"The frames {start:g} to {end:g} in steps of {step:g} are no range: "
                "give finite frames and a step above 0."
            )
    else:
        (start, end), step = _whole_range(scene, armature, action, slot), 1.0
    name = action.name if action else armature.name
    count = math.floor((end - start) / step + _SAME_FRAME) + 1
    if count > _MOST_FRAMES:
        raise MotionError(
            f"'{name}' has {count} frames in the range {start:g} to {end:g}: choose a range of at "
            f"most {_MOST_FRAMES}, or a larger step."
        )
    if count < 2:
        raise MotionError(
            f"'{name}' has {max(count, 0)} frame{'s' * (count != 1)} in the range {start:g} to "
            f"{end:g}: choose a range of at least two frames."
        )
    return start + step * np.arange(count)


def _whole_range(
    scene: "bpy.types.Scene",
    armature: "bpy.types.Object",
    action: "bpy.types.Action | None",
    slot: "bpy.types.ActionSlot | None",
) -> tuple[float, float]:
    try:
        return animated_range(armature, action, slot)
    except MotionError:
        if not is_constrained(armature):
            raise
        return scene.frame_start, scene.frame_end


def animated_range(
    armature: "bpy.types.Object",
    action: "bpy.types.Action | None",
    slot: "bpy.types.ActionSlot | None",
) -> tuple[float, float]:
    """First and last frame that the keys, or without keys the NLA strips, span.

    Raises MotionError if there are neither.
    """
    if action is not None and action.use_frame_range:
        return action.frame_start, action.frame_end
    ends = [curve.range() for curve in compat.curves(action, slot) if key_count(curve)]
    if not ends:
        played = source_values.heard(armature.animation_data)
        ends = [(strip.frame_start, strip.frame_end) for strip in played]
    if not ends:
        raise MotionError(
            f"'{armature.name}' has no keys and no NLA strips that are not muted: give the range "
            "of frames."
        )
    return _whole(min(start for start, _ in ends)), _whole(max(end for _, end in ends))


def _whole(frame: float) -> float:
    """A frame, or the whole one that is nearly there: importers compute them from seconds."""
    return float(round(frame)) if abs(frame - round(frame)) < _SAME_FRAME else frame


def is_constrained(armature: "bpy.types.Object") -> bool:
    """Whether an armature without keys may still move: by constraints or drivers."""
    owners = (armature, *armature.pose.bones)
    animation = armature.animation_data
    return any(owner.constraints for owner in owners) or bool(animation and animation.drivers)


def key_count(curve: "bpy.types.FCurve") -> int:
    """How many keys or samples a curve has."""
    return len(curve.keyframe_points) or len(curve.sampled_points)

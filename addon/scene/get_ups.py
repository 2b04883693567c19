# SPDX-License-Identifier: GPL-3.0-or-later
"""Get-ups of the animator's own: actions that are marked as such, `action.poise_get_up`.

The mark is the action's, so that it goes with it into other files.
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager

import bpy
from bpy.props import BoolProperty

from ...controller.exceptions import MotionError, RigError
from ...controller.geometry.motion import Motion
from ..blender import compat
from ..rigs.bake_target import set_value_at, value_at
from ..rigs.reference import Reading, bone_of, reading

#: Name of the property of actions.
PROPERTY = "poise_get_up"


def _kept(action: "bpy.types.Action", _context: "bpy.types.Context") -> None:
    """An action on the list stays in the file, whatever else uses it."""
    if getattr(action, PROPERTY):
        action.use_fake_user = True


def register() -> None:
    """Give every action its mark."""
    setattr(
        bpy.types.Action,
        PROPERTY,
        BoolProperty(
            name="Get-Up",
            description="In this action the character gets up from the floor: who has fallen as it "
            "begins gets up as it does",
            update=_kept,
        ),
    )


def unregister() -> None:
    """Undo `register`."""
    delattr(bpy.types.Action, PROPERTY)


def fits(action: "bpy.types.Action", armature: "bpy.types.Object") -> bool:
    """Whether most of the bones for which an action has keys are an armature's."""
    curves = compat.curves(action, compat.object_slot(action, armature))
    paths = {curve.data_path for curve in curves}  # panels ask each time that they are drawn
    keyed = {bone_of(path) for path in paths} - {None}
    return 2 * sum(name in armature.data.bones for name in keyed) > len(keyed)


def marked() -> "list[bpy.types.Action]":
    """All actions of the file that are get-ups, of whatever character."""
    return [action for action in bpy.data.actions if getattr(action, PROPERTY, False)]


def of(armature: "bpy.types.Object") -> "list[bpy.types.Action]":
    """The get-ups of an armature."""
    return [action for action in marked() if fits(action, armature)]


def collecting(
    scene: "bpy.types.Scene", source: Reading, names: Sequence[str], rate: float | None
) -> Generator[float, None, tuple[Motion, ...]]:
    """Read the get-ups of the armature of a Reading; yields while it goes on, and returns the
    Motion of each.

    names: of actions, instead of those that are marked. rate: frames per second [Hz]; None for the
    scene's. Raises MotionError for an action that is not there, or cannot be read.
    """
    armature = scene.objects[source.armature]
    found = []
    for action in names or of(armature):
        read = reading(
            scene,
            armature,
            action=action,
            rig_map=source.rig_map,
            rate=rate,
            metres_per_unit=source.metres_per_unit,
        )
        name = action if isinstance(action, str) else action.name
        with _values_kept(scene, armature, compat.find_action(name)):
            try:
                one = yield from _at_end(read)
            except (MotionError, RigError) as error:
                raise MotionError(f"The get-up '{name}' cannot be read: {error}") from error
        found.append(one.motion)
    return tuple(found)


@contextmanager
def _values_kept(
    scene: "bpy.types.Scene", armature: "bpy.types.Object", action: "bpy.types.Action | None"
) -> Iterator[None]:
    """Put back what an action keys: what the armature's own does not key stays as the one that is
    read has left it."""
    slot = action and compat.object_slot(action, armature)
    values = {}
    for path in {curve.data_path for curve in compat.curves(action, slot)}:
        try:
            values[path] = value_at(armature, path)
        except ValueError:  # of what the armature does not have
            continue
    try:
        yield
    finally:
        left = [path for path, value in values.items() if value_at(armature, path) != value]
        for path in left:
            set_value_at(armature, path, values[path])
        if left:
            scene.frame_set(scene.frame_current, subframe=scene.frame_subframe)


def _at_end(read: Generator[float, None, Reading]) -> Generator[float, None, Reading]:
    """The same, of which the progress is that of what is nearly done."""
    while True:
        try:
            next(read)
        except StopIteration as done:
            result: Reading = done.value
            return result
        yield 1.0

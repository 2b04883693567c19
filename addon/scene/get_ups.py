# SPDX-License-Identifier: GPL-3.0-or-later
"""Get-ups of the animator's own: actions that are marked as such, `action.poise_get_up`.

The mark is the action's, so that it goes with it into other files.
"""

from collections.abc import Generator, Sequence

import bpy
from bpy.props import BoolProperty

from ...controller.geometry.motion import Motion
from ..blender import compat
from ..rigs.reference import Reading, bone_of, reading

#: Name of the property of actions.
PROPERTY = "poise_get_up"


def register() -> None:
    """Give every action its mark."""
    setattr(
        bpy.types.Action,
        PROPERTY,
        BoolProperty(
            name="Get-Up",
            description="In this action the character gets up from the floor: who has fallen as it "
            "begins gets up as it does",
        ),
    )


def unregister() -> None:
    """Undo `register`."""
    delattr(bpy.types.Action, PROPERTY)


def fits(action: "bpy.types.Action", armature: "bpy.types.Object") -> bool:
    """Whether an action has keys for bones of an armature."""
    bones = armature.data.bones
    curves = compat.curves(action, compat.object_slot(action, armature))
    return any(bone_of(curve.data_path) in bones for curve in curves if bone_of(curve.data_path))


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
    scene's. Raises MotionError for an action that is not there, or has no keys for the armature.
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
        found.append((yield from _at_end(read)).motion)
    return tuple(found)


def _at_end(read: Generator[float, None, Reading]) -> Generator[float, None, Reading]:
    """The same, of which the progress is that of what is nearly done."""
    while True:
        try:
            next(read)
        except StopIteration as done:
            result: Reading = done.value
            return result
        yield 1.0

# SPDX-License-Identifier: GPL-3.0-or-later
"""Actions with a mark: get-ups, by which a character gets up, and acts, which it can perform.

The mark is the action's, so that it goes with it into other files.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import bpy
from bpy.props import BoolProperty, FloatProperty

from ...controller.exceptions import MotionError, RigError
from ...controller.geometry.motion import Motion
from ..blender import compat
from ..rigs.bake_target import set_value_at, value_at
from ..rigs.reference import Reading, bone_of, reading

Result = TypeVar("Result")

#: So many bones of another rig are named.
_MOST_NAMED = 6


class Marked:
    """Actions with a mark. property: the name of that, of actions; more: names of properties that
    lists show beside them."""

    def __init__(self, property: str, **described: Any) -> None:
        """described: what `bpy.props` gave for the mark, and for what else is told of such actions,
        by names of properties."""
        self.property, self._described = property, described
        self.more = tuple(name for name in described if name != property)

    def register(self) -> None:
        """Give every action its mark."""
        for name, one in self._described.items():
            setattr(bpy.types.Action, name, one)

    def unregister(self) -> None:
        """Undo `register`."""
        for name in self._described:
            delattr(bpy.types.Action, name)

    def has(self, action: "bpy.types.Action") -> bool:
        """Whether an action is marked."""
        return bool(getattr(action, self.property, False))

    def marked(self) -> "list[bpy.types.Action]":
        """All such actions of the file, of whatever character."""
        return [action for action in bpy.data.actions if self.has(action)]

    def of(self, armature: "bpy.types.Object") -> "list[bpy.types.Action]":
        """Those of an armature."""
        return [action for action in self.marked() if fits(action, armature)]


def _kept(name: str) -> "Callable[[bpy.types.Action, bpy.types.Context], None]":
    """What keeps an action in the file that is marked by a property, whatever else uses it."""

    def keep(action: "bpy.types.Action", _context: "bpy.types.Context") -> None:
        if getattr(action, name):
            action.use_fake_user = True

    return keep


GET_UPS = Marked(
    "poise_get_up",
    poise_get_up=BoolProperty(
        name="Get-Up",
        description="In this action the character gets up from the floor: who has fallen as it "
        "begins gets up as it does",
        update=_kept("poise_get_up"),
    ),
)
ACTS = Marked(
    "poise_act",
    poise_act=BoolProperty(
        name="Act",
        description="This action begins and ends on its feet: who walks on command performs it "
        "where it stands",
        update=_kept("poise_act"),
    ),
    poise_act_help=FloatProperty(
        name="Help (× weight)",
        description="What this act asks for beyond what feet can press is given from outside, with "
        "at most so much of the weight, for as long as it lasts [× weight]",
        min=0.0,
        max=1.0,
        precision=2,
        step=5,
        subtype="FACTOR",
    ),
)


def fits(action: "bpy.types.Action", armature: "bpy.types.Object") -> bool:
    """Whether most of the bones for which an action has keys are an armature's."""
    keyed = _keyed(action, armature)
    return 2 * sum(name in armature.data.bones for name in keyed) > len(keyed)


def _keyed(action: "bpy.types.Action", armature: "bpy.types.Object") -> set[str]:
    """Names of the bones for which an action has keys in the slot that is an armature's."""
    curves = compat.curves(action, compat.object_slot(action, armature))
    paths = {curve.data_path for curve in curves}  # panels ask each time that they are drawn
    return {bone for bone in map(bone_of, paths) if bone is not None}


def _check_rig(action: "bpy.types.Action", armature: "bpy.types.Object") -> None:
    """Raise MotionError for an action that has keys for bones, and for none of an armature's."""
    keyed = sorted(_keyed(action, armature))
    if not keyed or any(name in armature.data.bones for name in keyed):
        return
    names = ", ".join(f"'{name}'" for name in keyed[:_MOST_NAMED])
    more = f" and {len(keyed) - _MOST_NAMED} more" if len(keyed) > _MOST_NAMED else ""
    raise MotionError(
        f"The action '{action.name}' is of another rig: it keys {names}{more}, and "
        f"'{armature.name}' has none of them. Choose an action of '{armature.name}'."
    )


def collecting(
    scene: "bpy.types.Scene",
    source: Reading,
    actions: "Sequence[str | bpy.types.Action]",
    rate: float | None,
) -> Generator[float, None, tuple[Motion, ...]]:
    """Read actions of the armature of a Reading, or those with names; yields while it goes on, and
    returns the Motion of each.

    rate: frames per second [Hz]; None for the scene's. Raises MotionError for an action that is not
    there, that is of another rig, or that cannot be read.
    """
    armature = scene.objects[source.armature]
    found = []
    for action in actions:
        read = reading(
            scene,
            armature,
            action=action,
            rig_map=source.rig_map,
            rate=rate,
            metres_per_unit=source.metres_per_unit,
        )
        name = action if isinstance(action, str) else action.name
        known = compat.find_action(action) if isinstance(action, str) else action
        if known is not None:
            _check_rig(known, armature)
        with _values_kept(scene, armature, known):
            try:
                one = yield from _at_end(read)
            except (MotionError, RigError) as error:
                raise MotionError(f"The action '{name}' cannot be read: {error}") from error
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


def exhausted(work: Generator[float, None, Result]) -> Result:
    """What a generator returns, once it has gone on to its end."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            found: Result = done.value
            return found


def _at_end(read: Generator[float, None, Reading]) -> Generator[float, None, Reading]:
    """The same, of which the progress is that of what is nearly done."""
    while True:
        try:
            next(read)
        except StopIteration as done:
            result: Reading = done.value
            return result
        yield 1.0

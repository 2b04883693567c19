# SPDX-License-Identifier: GPL-3.0-or-later
"""Holds: empties at which a hand or a foot of a character is held for a while.

`object.poise_hold` makes an empty one. All that is Blender's is read by `collecting`, on the main
thread, together with the animation.
"""

from dataclasses import dataclass

import bpy
import numpy as np
from bpy.props import BoolProperty, EnumProperty, FloatProperty, IntProperty, PointerProperty

from ...controller.exceptions import SettingsError, demand
from ...controller.geometry.rotations import matrix_from_quaternion
from ...controller.ranges import RANGES
from ...controller.simulation.holds import BREAKING, LIMBS, Hold
from ..blender import evaluation
from ..blender.redrawing import on_change
from .waypoints import empties_of

#: Name of the property.
PROPERTY = "poise_hold"
#: What can be held: controller.simulation.holds.LIMBS, as properties have them.
LIMB_ITEMS = (
    ("LEFT_HAND", "Left Hand", "Hold its palm"),
    ("RIGHT_HAND", "Right Hand", "Hold its palm"),
    ("LEFT_FOOT", "Left Foot", "Hold its ankle"),
    ("RIGHT_FOOT", "Right Foot", "Hold its ankle"),
)


def _takes_part(hold, thing):
    if thing.type == "ARMATURE":
        return thing != hold.armature
    return thing.type == "MESH" and thing.poise.role in ("THING", "COLLIDER")


class POISE_PG_hold(bpy.types.PropertyGroup):
    """How an empty holds a limb. It holds none without an armature."""

    armature: PointerProperty(
        name="Armature", description="Armature that is held there", type=bpy.types.Object
    )
    use: BoolProperty(
        name="Use", description="Let this hold the body", default=True, update=on_change
    )
    limb: EnumProperty(
        name="Limb",
        description="The hand or foot that is held at this empty",
        items=LIMB_ITEMS,
        update=on_change,
    )
    to: EnumProperty(
        name="Held To",
        description="What holds it",
        items=(
            ("WORLD", "World", "It stays where the empty is at the first frame"),
            (
                "OBJECT",
                "Object",
                "A thing or a collider, which takes it along; a thing is carried. Or the armature "
                "of a character that is simulated together with this one: the part of that which "
                "is nearest when the hold begins",
            ),
        ),
        update=on_change,
    )
    holder: PointerProperty(
        name="Object",
        description="The thing or collider at which it is held, where the empty is at the first "
        "frame, or as a thing is released; or the armature of another character",
        type=bpy.types.Object,
        poll=_takes_part,
        update=on_change,
    )
    first: IntProperty(
        name="First Frame",
        description="Frame from which on it is held",
        **RANGES["frame"].limits,
        update=on_change,
    )
    last: IntProperty(
        name="Last Frame",
        description="Frame at which it is let go",
        **RANGES["frame"].limits,
        update=on_change,
    )
    breaking: FloatProperty(
        name="Breaking Force (N)",
        description="Force beyond which it breaks, and holds no more [N]; an adult weighs 700 N",
        default=BREAKING,
        **RANGES["hold"].limits,
        soft_max=5000.0,
        step=5000,
        precision=0,
        update=on_change,
    )


CLASSES = (POISE_PG_hold,)


def register():
    """Let every object be a hold."""
    setattr(
        bpy.types.Object,
        PROPERTY,
        PointerProperty(
            name="Hold",
            description="Which hand or foot is held at this empty, and when",
            type=POISE_PG_hold,
        ),
    )


def unregister():
    """Undo `register`."""
    delattr(bpy.types.Object, PROPERTY)


@dataclass(frozen=True)
class HoldOptions:
    """What there is beside the scene's own holds, as the command line has it.

    holds: (limb, first frame, last frame, breaking force [N], name of an object or "") each, held
    where the limb is when it begins.
    """

    holds: tuple = ()


def of(scene, armature):
    """The empties of a scene that hold an armature, in the order of their frames."""
    return empties_of(scene, armature, PROPERTY, "first")


def used(scene, armature):
    """Those of them that are not switched off."""
    return [thing for thing in of(scene, armature) if getattr(thing, PROPERTY).use]


def collecting(scene, reading, around, options=None, together=()):
    """Read the holds of the reading's armature: yields the progress from 0 to 1, returns a tuple of
    controller Hold, times counted from the first sample.

    around: what objects.collecting gave of the scene. options: HoldOptions. together: names of the
    armatures that are simulated together with it. The scene is as before.
    Raises SettingsError for one that cannot be read.
    """
    found = []
    for number, (limb, first, last, breaking, to) in enumerate((options or HoldOptions()).holds, 1):
        name = f"--hold {number}"
        span = _span(reading, name, first, last)
        holder = scene.objects.get(to)
        demand(
            to in together or holder is None or holder.type != "ARMATURE",
            f"The hold '{name}' is to '{to}', an armature that is not simulated together with "
            f"'{reading.armature}': name it by --together, too.",
        )
        found.append(
            Hold(LIMBS[limb], *span, None, to, None, breaking, name, to_character=to in together)
        )
    if hasattr(scene, "poise"):
        found += yield from _sampling(scene, reading, around, together)
    return tuple(found)


def _sampling(scene, reading, around, together):
    """The scene's own, each where it is at its first frame; yields the progress, returns a list."""
    empties, found = used(scene, scene.objects[reading.armature]), []
    before = scene.frame_current, scene.frame_subframe
    try:
        for empty in empties:
            layer = evaluation.view_layer(scene, empty)
            demand(
                evaluation.is_enabled(empty, layer),
                f"The hold '{empty.name}' or its collection is disabled in the viewport, so that "
                "Blender does not move it: enable it in the Outliner.",
            )
            found.append(_hold(scene, reading, around, together, empty, layer))
            yield len(found) / len(empties)
    finally:
        if empties:
            scene.frame_set(before[0], subframe=before[1])
    return found


def _hold(scene, reading, around, together, empty, layer):
    settings = getattr(empty, PROPERTY)
    start, end = _span(reading, empty.name, settings.first, settings.last)
    limb, force = LIMBS[settings.limb.lower()], settings.breaking
    if settings.to == "OBJECT" and settings.holder is not None:
        character = settings.holder
        if character.type == "ARMATURE":
            demand(
                character.name in together,
                f"The hold '{empty.name}' is to '{character.name}', who is not simulated together "
                "with this one: select both and press Simulate Together, or switch it off.",
            )
            name = character.name
            return Hold(limb, start, end, None, name, None, force, empty.name, to_character=True)
    held, at = _holder(scene, settings, empty.name, around), start
    if held is not None and hasattr(held, "start"):  # where a thing is beforehand, it is not held
        at = held.start
    frame = reading.motion.frame(at * reading.motion.rate)
    scene.frame_set(int(frame // 1), subframe=float(frame % 1))
    matrix = np.array(empty.evaluated_get(layer.depsgraph).matrix_world)
    place = matrix[:3, 3] * reading.metres_per_unit
    if held is not None:
        place = _on(held, place, round(at * reading.motion.rate))
    name = "" if held is None else held.name
    place = tuple(place.tolist())
    return Hold(limb, start, end, place, name, None, force, empty.name)


def _holder(scene, settings, name, around):
    """The thing or collider of the controller that a hold is to; None for the world."""
    if settings.to == "WORLD":
        return None
    target = settings.holder
    demand(
        target is not None and target.name in scene.objects,
        f"The hold '{name}' is to an object, and that is not in the scene: choose one, or hold the "
        "limb to the world.",
    )
    for one in (*around.get("colliders", ()), *around.get("things", ())):
        if one.name == target.name:
            return one
    raise SettingsError(
        f"The hold '{name}' is to '{target.name}', which takes no part in these frames: mark it as "
        "a thing or a collider, or hold the limb to the world."
    )


def _on(held, place, sample):
    """A place (3,) [m] of the world at a sample, in the frame of a thing's or collider's solid."""
    if hasattr(held, "positions"):
        position, turn = np.asarray(held.positions), np.asarray(held.rotations)
        if held.moves:
            position, turn = position[sample], turn[sample]
    else:
        position, turn = np.asarray(held.position), np.asarray(held.rotation)
    return matrix_from_quaternion(turn).T @ (place - position)


def _span(reading, name, first, last):
    """(start, end) [s] from the first sample of a hold from a frame to another, as far as frames
    are simulated. Raises SettingsError where none is."""
    motion = reading.motion
    begins, ends = motion.frame(0), motion.frame(len(motion) - 1)
    demand(
        first < last,
        f"The hold '{name}' is from frame {first:g} to {last:g}: let it end after it begins.",
    )
    demand(
        last > begins and first < ends,
        f"The hold '{name}' is from frame {first:g} to {last:g}, and frames {begins:g} to {ends:g} "
        "are simulated: choose frames among those.",
    )
    start, end = (
        (frame - motion.first_frame) / (motion.frame_step * motion.rate) for frame in (first, last)
    )
    return max(start, 0.0), end

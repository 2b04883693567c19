# SPDX-License-Identifier: GPL-3.0-or-later
"""What the quick mode of the sidebar needs to know: what was set in the full one and is still in
effect, and what to do next after a fall. Both modes are views of the same settings."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ...controller.falls.behaviours import BEHAVIOURS
from ...controller.falls.strength import LIMBS
from ...controller.gains.physics_weights import NAMES
from ...controller.options import options_of
from ...controller.reference.gait import Endless
from ..blender import compat
from ..scene import holds, mixture, morphology, strength, waypoints
from ..scene.marked import GET_UPS
from ..scene.weights import PROPERTY
from ..shots import clip_check
from ..shots.shot import Shot, ShotOptions
from . import method

if TYPE_CHECKING:
    import bpy

#: Settings that quick mode shows itself, and those that mean nothing without another one.
_SHOWN = {
    *("mode", "armature", "frames", "first_frame", "last_frame"),
    *("style", "when_it_falls", "ghost"),
}
#: How the body meets things, which the panel Objects has.
_MEETS = ("whole_body", "self_collision", "throw")
_FOLLOWING = {
    *("ghost_distance", "mass", "key_every", "tolerance"),
    *(name for name, one in options_of(ShotOptions).items() if one.needs),
}


def also_set(scene: "bpy.types.Scene", armature: "bpy.types.Object | None") -> list[str]:
    """Names of the settings that differ from their defaults, though quick mode does not show them.

    armature: the object whose physics weights count, or None.
    """
    settings = scene.poise
    names = []
    for prop in settings.bl_rna.properties:
        if prop.is_readonly or prop.identifier in _SHOWN | _FOLLOWING | {"name"}:
            continue
        default = None if prop.type == "POINTER" else prop.default
        if getattr(settings, prop.identifier) != default:
            names.append(prop.name)
    groups = {
        "morphology": morphology.of(settings.morphology),
        "walk": settings.walk.enabled,
        "pushes": any(push.use for push in settings.pushes.items),
        "waypoints": settings.waypoints.end_in_place
        or bool(armature is not None and waypoints.used(scene, armature)),
        "clip_check": clip_check.cleaning_of(settings.clip_check),
        "objects": any(thing.poise.role != "NONE" for thing in scene.objects),
    }
    names += [settings.bl_rna.properties[group].name for group, used in groups.items() if used]
    meets = settings.objects.bl_rna.properties
    names += [meets[kind].name for kind in _MEETS if getattr(settings.objects, kind)]
    if armature is not None:
        if holds.used(scene, armature):
            names.append("Holds")
        if settings.get_up and GET_UPS.of(armature):
            names.append("Get-Ups")
        owners = (
            (PROPERTY, NAMES, 1.0),
            (strength.PROPERTY, tuple(LIMBS), 1.0),
            (mixture.PROPERTY, tuple(BEHAVIOURS), 0.0),
        )
        names += [
            armature.data.bl_rna.properties[owner].name
            for owner, shares, untouched in owners
            if _is_changed(armature.data, owner, shares, untouched)
        ]
    return names


def _is_changed(
    data: "bpy.types.Armature", owner: str, shares: Iterable[str], untouched: float
) -> bool:
    """Whether any share in a property group of an armature is not untouched throughout, or may not
    be at some frame."""
    group = getattr(data, owner)
    switches = [p.identifier for p in group.bl_rna.properties if p.identifier.startswith("use_")]
    animated = compat.curves(*compat.assigned(data))
    if data.animation_data is not None:
        animated += data.animation_data.drivers
    return (
        any(getattr(group, name) for name in switches)
        or any(getattr(group, name) != untouched for name in shares)
        or any(curve.data_path.startswith(f"{owner}.") for curve in animated)
    )


def steps_after_fall(shot: Shot) -> tuple[str, ...]:
    """What may help a shot that did not perform all of its motion: some of "resume", "finer",
    "rectify" and "optimize", the most promising first; none of them gives a weak body strength."""
    if shot.rectified is not None:
        return ("resume",) if shot.rectified.ended in ("budget", "stopped") else ("finer",)
    if shot.recording.weakness:
        return ()
    if isinstance(shot.simulation.motion, Endless) or method.refused(shot.simulation):
        return ("optimize",)
    return "rectify", "optimize"

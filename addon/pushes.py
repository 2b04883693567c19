# SPDX-License-Identifier: GPL-3.0-or-later
"""Pushes: `scene.poise.pushes` lists them, `collecting` and `collect` make controller pushes of it.

A push of kind Empty has its force along the empty's Z axis, as strong as the empty's animatable
`poise_strength`, at the place of the empty. It is sampled while the animation is read, on the main
thread; everything else is arithmetic.
"""

from dataclasses import dataclass
from math import atan2, cos, hypot, sin

import bpy
import numpy as np
from bpy.props import (
    BoolProperty,
    CollectionProperty,
    EnumProperty,
    FloatProperty,
    FloatVectorProperty,
    IntProperty,
    PointerProperty,
    StringProperty,
)

from ..controller.exceptions import SettingsError
from ..controller.scenario import Push, random_pushes
from ..controller.skeleton import SEGMENT_INDEX, SEGMENTS
from . import reference

STRENGTH = "poise_strength"
#: An empty may be so far from the middle of the part that it pushes [statures].
_NEAR = 0.25
#: Parts of the body by what the panel calls them.
_LABELS = {"l": "Left", "r": "Right"}


def _label(segment):
    name, _, side = segment.rpartition("_")
    if side not in _LABELS:
        return segment.capitalize()
    return f"{_LABELS[side]} {name.replace('_', ' ').title()}"


PARTS = (
    *((name.upper(), _label(name), f"Push the {_label(name).lower()}") for name in SEGMENTS),
    ("BONE", "By Bone", "Push the part of the body that a bone carries"),
)


def _redraw(_push, _context):
    from .properties import redraw

    redraw()


def _is_empty(_push, thing):
    return thing.type == "EMPTY"


def _bones(_push, context, _text):
    from .properties import chosen_armature

    armature, _ = chosen_armature(context)
    return list(armature.data.bones.keys()) if armature else []


class POISE_PG_push(bpy.types.PropertyGroup):
    """One push."""

    use: BoolProperty(
        name="Use", description="Whether it takes part in the simulation", default=True
    )
    kind: EnumProperty(
        name="Kind",
        description="Where its direction and strength come from",
        items=(
            ("VECTOR", "Arrow", "Set here, or by dragging the arrow in the 3D view"),
            ("EMPTY", "Empty", "From an empty and its animation: along its Z axis, at its place"),
        ),
        update=_redraw,
    )
    frame: IntProperty(name="Start (frame)", description="Frame at which it begins", default=20)
    duration: FloatProperty(
        name="Duration (s)",
        description="How long it acts [s]",
        default=0.2,
        min=0.0,
        soft_min=0.02,
        soft_max=2.0,
        step=5,
        precision=2,
    )
    strength: FloatProperty(
        name="Strength (N)",
        description="Its force [N]; an adult in place stands about 100 N for 0.2 s",
        default=100.0,
        min=0.0,
        soft_max=500.0,
        step=1000,
        precision=0,
        update=_redraw,
    )
    azimuth: FloatProperty(
        name="Direction",
        description="Where it pushes to, seen from above: 0° along the scene's X axis, 90° along Y",
        subtype="ANGLE",
        update=_redraw,
    )
    elevation: FloatProperty(
        name="Upwards",
        description="How far it pushes up (or, below 0°, down)",
        subtype="ANGLE",
        min=-np.pi / 2,
        max=np.pi / 2,
        update=_redraw,
    )
    part: EnumProperty(
        name="Part",
        description="What part of the body it pushes",
        items=PARTS,
        default="TRUNK",
        update=_redraw,
    )
    bone: StringProperty(
        name="Bone",
        description="Bone whose part of the body it pushes",
        search=_bones,
        update=_redraw,
    )
    offset: FloatVectorProperty(
        name="Off Centre (m)",
        description="Where on the part it acts, from its centre of mass: forward, left and up of "
        "an upright body [m]",
        size=3,
        soft_min=-0.5,
        soft_max=0.5,
        step=1,
        precision=3,
    )
    empty: PointerProperty(
        name="Empty",
        description="Empty that pushes along its Z axis, at its place, as strongly as its Strength "
        "says; all of it can be keyed",
        type=bpy.types.Object,
        poll=_is_empty,
    )
    generated: BoolProperty(description="Made by Generate Pushes, which replaces it")


class POISE_PG_pushes(bpy.types.PropertyGroup):
    """All pushes of a scene."""

    items: CollectionProperty(type=POISE_PG_push)
    index: IntProperty(name="Active Push", description="Push that is shown", update=_redraw)


CLASSES = (POISE_PG_push, POISE_PG_pushes)


def register():
    """Give every object the strength with which it pushes, if it is an empty of a push."""
    setattr(
        bpy.types.Object,
        STRENGTH,
        FloatProperty(
            name="Strength (N)",
            description="Force with which this empty pushes along its Z axis [N]; key it to let it "
            "act for a while",
            min=0.0,
            soft_max=500.0,
            step=1000,
            precision=0,
        ),
    )


def unregister():
    """Undo `register`."""
    delattr(bpy.types.Object, STRENGTH)


def vector(strength, azimuth, elevation):
    """(3,) force [N] of a strength and a direction."""
    level = strength * cos(elevation)
    return level * cos(azimuth), level * sin(azimuth), strength * sin(elevation)


def angles(force):
    """(azimuth, elevation) [rad] of a force (3,)."""
    x, y, z = force
    return atan2(y, x), atan2(z, hypot(x, y))


def active(scene):
    """The active push of a scene, or None."""
    pushes = scene.poise.pushes
    return pushes.items[pushes.index] if 0 <= pushes.index < len(pushes.items) else None


@dataclass(frozen=True)
class PushOptions:
    """What replaces the scene's own pushes, as the command line does.

    pushes: (frame, duration [s], force (3,) [N], segment) each. force [N], seed: of the random
    ones of measures.md; None for none. ignore: leave out those of the scene.
    """

    pushes: tuple = ()
    force: float | None = None
    seed: int = 0
    ignore: bool = False


@dataclass(frozen=True)
class Path:
    """What an empty does at the frames of a reading: forces (F, 3) [N], places (F, 3) [m]."""

    forces: np.ndarray
    places: np.ndarray


def collecting(scene, reading, options=None):
    """Sample the empties that push: yields the progress from 0 to 1, returns {name: Path}. The
    scene is as before. Raises SettingsError for one that is missing."""
    if not hasattr(scene, "poise") or (options and options.ignore):
        return {}
    empties = {}
    for push in scene.poise.pushes.items:
        if push.use and push.kind == "EMPTY":
            if push.empty is None or push.empty.name not in scene.objects:
                raise SettingsError(
                    f"The push '{push.name}' has no empty in this scene: choose one, or switch the "
                    "push off."
                )
            empties[push.empty.name] = push.empty
    if not empties:
        return {}
    layers = {name: reference.view_layer(scene, empty) for name, empty in empties.items()}
    samples = {name: ([], []) for name in empties}
    before = scene.frame_current, scene.frame_subframe
    try:
        for index, frame in enumerate(reading.frames):
            scene.frame_set(int(np.floor(frame)), subframe=float(frame % 1))
            for name, empty in empties.items():
                seen = empty.evaluated_get(layers[name].depsgraph)
                matrix = np.array(seen.matrix_world)
                along = matrix[:3, 2] / max(np.linalg.norm(matrix[:3, 2]), 1e-9)
                forces, places = samples[name]
                forces.append(getattr(seen, STRENGTH) * along)
                places.append(matrix[:3, 3] * reading.metres_per_unit)
            yield (index + 1) / len(reading.frames)
    finally:
        scene.frame_set(before[0], subframe=before[1])
    return {name: Path(np.array(f), np.array(p)) for name, (f, p) in samples.items()}


def collect(scene, reading, character, paths, options=None):
    """Tuple of controller pushes of a scene, times counted from the first frame of the reading.

    paths: what `collecting` gave. options: PushOptions. Raises SettingsError for a push that cannot
    be.
    """
    options = options or PushOptions()
    motion = reading.motion
    found = []
    for frame, duration, force, segment in options.pushes:
        found.append(Push(_time(reading, frame), duration, tuple(force), segment))
    if options.force is not None:
        found += random_pushes(options.force, motion.duration, options.seed)
    if hasattr(scene, "poise") and not options.ignore:
        for push in scene.poise.pushes.items:
            if push.use:
                found.append(_made(push, reading, character, paths))
    for push in found:
        _check(push, reading)
    return tuple(found)


def _time(reading, frame):
    """Seconds from the first frame of a reading to a frame of the scene."""
    motion = reading.motion
    return (frame - motion.first_frame) / (motion.frame_step * motion.rate)


def _made(push, reading, character, paths):
    """The controller's Push of one in the list."""
    segment = _segment(push, reading)
    if push.kind == "EMPTY":
        return _of_path(push, paths[push.empty.name], reading, character, segment)
    if push.strength <= 0:
        raise SettingsError(
            f"The push '{push.name}' has a strength of 0 N: give it one, or switch it off."
        )
    if push.duration <= 0:
        raise SettingsError(
            f"The push '{push.name}' lasts 0 s: give it a duration above 0 s, or switch it off."
        )
    point = None
    if any(push.offset):
        point = tuple((character.centres[SEGMENT_INDEX[segment]] + push.offset[:]).tolist())
    force = vector(push.strength, push.azimuth, push.elevation)
    return Push(_time(reading, push.frame), push.duration, force, segment, point)


def _segment(push, reading):
    """The segment that a push acts on."""
    if push.part != "BONE":
        return push.part.lower()
    for slot, bones in reading.rig_map.bones.items():
        if push.bone in bones and slot in SEGMENTS:
            return slot
    carried = ", ".join(
        bones[0] for slot, bones in reading.rig_map.bones.items() if slot in SEGMENTS and bones
    )
    raise SettingsError(
        f"The push '{push.name}' is on the bone '{push.bone}', which carries no part of the body: "
        f"choose one such as {carried}."
    )


def _of_path(push, path, reading, character, segment):
    """The Push of an animated empty: from the first to the last frame at which it has a force, at
    the point of the body that is under the empty where it is strongest."""
    strength = np.linalg.norm(path.forces, axis=1)
    acts = np.flatnonzero(strength > 0)
    if not len(acts):
        raise SettingsError(
            f"The empty '{push.empty.name}' of the push '{push.name}' has a strength of 0 N at all "
            "frames: give it one in the panel, or key it."
        )
    rate = reading.motion.rate
    first, last = max(acts[0] - 1, 0), min(acts[-1] + 1, len(strength) - 1)
    strongest = int(np.argmax(strength))
    joints, frames = character.pose(character.trajectory(reading.motion))
    index = SEGMENT_INDEX[segment]
    arm = path.places[strongest] - joints[strongest, index]
    local = frames[strongest, index].T @ arm
    away = float(np.linalg.norm(local - character.centres[index]))
    if away > _NEAR * character.height:
        raise SettingsError(
            f"The empty '{push.empty.name}' of the push '{push.name}' is {away:.2f} m away from "
            f"the {segment.replace('_', ' ')} at frame {reading.frames[strongest]:g}, where it is "
            "strongest: move it to the body."
        )
    point = tuple(local.tolist())
    forces = tuple(map(tuple, path.forces[first : last + 1].tolist()))
    return Push(first / rate, (last - first) / rate, forces, segment, point)


def _check(push, reading):
    """Raise SettingsError for a push that never acts."""
    push.check()
    duration = reading.motion.duration
    if push.start >= duration or push.start + push.duration <= 0:
        motion = reading.motion
        frame = motion.frame(push.start * motion.rate)
        raise SettingsError(
            f"A push on the {push.segment.replace('_', ' ')} begins at frame {frame:g}, outside of "
            f"the frames {motion.frame(0):g} to {motion.frame(len(motion) - 1):g} that are "
            "simulated: move it, or switch it off."
        )

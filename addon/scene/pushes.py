# SPDX-License-Identifier: GPL-3.0-or-later
"""Pushes: `scene.poise.pushes` lists them, `collecting` and `collect` make controller pushes of it.

A push of kind Empty has its force along the empty's Z axis, as strong as the empty's animatable
`poise_strength`, at the place of the empty. All that is Blender's is read by `collecting`, on the
main thread, together with the animation; `collect` is arithmetic.
"""

from dataclasses import dataclass
from functools import cached_property
from math import atan2, cos, hypot, isfinite, sin

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

from ...controller.exceptions import SettingsError, demand
from ...controller.geometry.skeleton import ENTRIES, SEGMENT_INDEX, SEGMENTS, SIDES, segment_name
from ...controller.ranges import RANGES
from ...controller.simulation.scenario import Push, random_pushes
from ..blender import evaluation
from ..blender.chosen import chosen_armature
from ..blender.redrawing import on_change

STRENGTH = "poise_strength"
#: Parts of a rig map that are no body of their own, and the body that they belong to.
_PART_OF = {f"hand_{side}": f"forearm_{side}" for side in SIDES}
_PART_OF |= {name: entry.parent for name, entry in ENTRIES.items() if entry.minor}
_PART_OF |= {f"clavicle_{side}": "trunk" for side in SIDES}
#: An empty may be so far from the middle of the part that it pushes [statures].
_NEAR = 0.25
PARTS = (
    *(
        (name.upper(), segment_name(name).title(), f"Push the {segment_name(name)}")
        for name in SEGMENTS
    ),
    ("BONE", "By Bone", "Push the part of the body that a bone carries"),
)


def _is_empty(_push, thing):
    return thing.type == "EMPTY"


def _is_armature(_push, thing):
    return thing.type == "ARMATURE"


def _bones(push, context, _text):
    armature = push.whom or chosen_armature(context)[0]
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
        update=on_change,
    )
    frame: IntProperty(
        name="Start (frame)",
        description="Frame at which it begins",
        default=20,
        **RANGES["frame"].limits,
    )
    duration: FloatProperty(
        name="Duration (s)",
        description="How long it acts [s]",
        default=0.2,
        **RANGES["push_time"].limits_from_zero,
        soft_min=0.02,
        soft_max=2.0,
        step=5,
        precision=2,
    )
    strength: FloatProperty(
        name="Strength (N)",
        description="Its force [N]; an adult in place stands about 100 N for 0.2 s",
        default=100.0,
        **RANGES["force"].limits_from_zero,
        soft_max=500.0,
        step=1000,
        precision=0,
        update=on_change,
    )
    azimuth: FloatProperty(
        name="Direction",
        description="Where it pushes to, seen from above: 0° along the scene's X axis, 90° along Y",
        subtype="ANGLE",
        update=on_change,
        **RANGES["turn"].limits,
    )
    elevation: FloatProperty(
        name="Upwards",
        description="How far it pushes up (or, below 0°, down)",
        subtype="ANGLE",
        min=-np.pi / 2,
        max=np.pi / 2,
        update=on_change,
    )
    whom: PointerProperty(
        name="Character",
        description="Armature that it pushes; none: the one that is chosen above",
        type=bpy.types.Object,
        poll=_is_armature,
    )
    part: EnumProperty(
        name="Part",
        description="What part of the body it pushes",
        items=PARTS,
        default="TRUNK",
        update=on_change,
    )
    bone: StringProperty(
        name="Bone",
        description="Bone that it pushes, with the part of the body that the bone carries",
        search=_bones,
        update=on_change,
    )
    offset: FloatVectorProperty(
        name="Off Centre (m)",
        description="Where on the part it acts, from its centre of mass or the middle of the bone: "
        "forward, left and up of an upright body [m]",
        size=3,
        soft_min=-0.5,
        soft_max=0.5,
        step=1,
        precision=3,
        **RANGES["offset"].limits,
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

    items: CollectionProperty(
        type=POISE_PG_push, name="Pushes", description="The pushes of this scene, in order"
    )
    index: IntProperty(name="Active Push", description="Push that is shown", update=on_change)


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
            **RANGES["force"].limits_from_zero,
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


# --- Reading -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Listed:
    """A push as the scene's list has it, without Blender's data.

    frame: of the scene. duration [s], force (3,) [N]. offset (3,) [m]: in the segment's frame, from
    its centre of mass, or from `places`. generated: one of many random ones.
    places (F, 3) [m]: of the bone, or of the empty; None to push the segment as a whole.
    empty: name of the empty; forces (F, 3) [N]: its force. None for an arrow.
    """

    name: str
    segment: str
    frame: float
    duration: float
    force: tuple
    offset: tuple = (0.0, 0.0, 0.0)
    generated: bool = False
    places: np.ndarray | None = None
    empty: str | None = None
    forces: np.ndarray | None = None


def collecting(scene, reading, options=None, led=True):
    """Read the scene's list and sample the empties that push: yields the progress from 0 to 1,
    returns a tuple of Listed.

    options: PushOptions. led: whether pushes that name no character are this one's. The scene is
    as before. Raises SettingsError for a push that cannot be.
    """
    if not hasattr(scene, "poise") or (options and options.ignore):
        return ()
    used = [
        push
        for push in scene.poise.pushes.items
        if push.use and (led if push.whom is None else push.whom.name == reading.armature)
    ]
    segments = [_segment(push, reading) for push in used]
    paths = yield from _sampling(scene, reading, _empties(scene, used))
    return tuple(
        _listed(scene, reading, push, segment, paths)
        for push, segment in zip(used, segments, strict=True)
    )


def _segment(push, reading):
    """The segment that a push acts on."""
    if push.part != "BONE":
        return push.part.lower()
    rig_map = reading.rig_map
    for slots in (rig_map.bones, rig_map.controls):
        for slot, bones in slots.items():
            if push.bone in bones:
                return _PART_OF.get(slot, slot)
    carried = ", ".join(rig_map.bones[segment][0] for segment in SEGMENTS)
    raise SettingsError(
        f"The push '{push.name}' is on the bone '{push.bone}', which carries no part of the body: "
        f"choose one such as {carried}."
    )


def _empties(scene, used):
    """{name: object} of the empties that push."""
    empties = {}
    for push in used:
        if push.kind == "EMPTY":
            if push.empty is None or push.empty.name not in scene.objects:
                raise SettingsError(
                    f"The push '{push.name}' has no empty in this scene: choose one, or switch the "
                    "push off."
                )
            empties[push.empty.name] = push.empty
    return empties


def _sampling(scene, reading, empties):
    """Sample empties: yields the progress, returns {name: (forces (F, 3) [N], places (F, 3) [m])}.

    Raises SettingsError for one that Blender does not move, or that has no force.
    """
    if not empties:
        return {}
    layers = {name: evaluation.view_layer(scene, empty) for name, empty in empties.items()}
    for name, empty in empties.items():
        demand(
            evaluation.is_enabled(empty, layers[name]),
            f"The empty '{name}' or its collection is disabled in the viewport, so that Blender "
            "does not move it: enable it in the Outliner.",
        )
        empty.update_tag()  # a strength that was set by a script is else not seen
    count = len(reading.frames)
    samples = {name: (np.zeros((count, 3)), np.zeros((count, 3))) for name in empties}
    before = scene.frame_current, scene.frame_subframe
    try:
        for index, frame in enumerate(reading.frames):
            scene.frame_set(int(np.floor(frame)), subframe=float(frame % 1))
            for name, empty in empties.items():
                seen = empty.evaluated_get(layers[name].depsgraph)
                forces, places = samples[name]
                forces[index], places[index] = _see(seen, frame)
            yield (index + 1) / count
    finally:
        scene.frame_set(before[0], subframe=before[1])
    return {
        name: (forces, places * reading.metres_per_unit)
        for name, (forces, places) in samples.items()
    }


def _see(empty, frame):
    """Force [N] and place [scene units] of an evaluated empty."""
    matrix, strength = np.array(empty.matrix_world), getattr(empty, STRENGTH)
    demand(
        np.isfinite(matrix).all() and isfinite(strength),
        f"The empty '{empty.name}' has a transform or a strength that is not a number at frame "
        f"{frame:g}: mend or delete the keys there.",
    )
    along = matrix[:3, 2]
    length = np.linalg.norm(along)
    demand(
        length > 0 or strength == 0,
        f"The empty '{empty.name}' has a scale of 0 at frame {frame:g}, so that it points nowhere: "
        "scale it up.",
    )
    return (strength * along / length if strength else np.zeros(3)), matrix[:3, 3]


def _listed(scene, reading, push, segment, paths):
    """What one of the list is, without Blender's data."""
    places = empty = forces = None
    if push.kind == "EMPTY":
        empty = push.empty.name
        forces, places = paths[empty]
    elif push.part == "BONE":
        places = _middles(scene, reading, push.bone)
    return Listed(
        name=push.name,
        segment=segment,
        frame=float(push.frame),
        # What is shown as 0.2 is not quite that in single precision.
        duration=round(push.duration, 6),
        force=vector(push.strength, push.azimuth, push.elevation),
        offset=tuple(push.offset),
        generated=push.generated,
        places=places,
        empty=empty,
        forces=forces,
    )


def _middles(scene, reading, bone):
    """(F, 3) [m] where the middle of a bone is."""
    matrices = reading.bone_matrices[:, reading.bone_index(bone)]
    half = scene.objects[reading.armature].data.bones[bone].length / 2
    return (matrices[:, :3, 3] + half * matrices[:, :3, 1]) * reading.metres_per_unit


# --- Making --------------------------------------------------------------------------------------


def collect(listed, motion, character, options=None, reshaping=None):
    """Tuple of controller pushes, times counted from the first sample of the motion.

    listed: what `collecting` gave. motion, character: as they were read. options: PushOptions.
    reshaping: controller.morphology.Reshaping, if another body will be pushed. Raises SettingsError
    for a push that cannot be.
    """
    options = options or PushOptions()
    body = _Body(motion, character, reshaping)
    found = []
    for number, (frame, duration, force, segment) in enumerate(options.pushes):
        found.append(_arrow(Listed(f"--push {number + 1}", segment, frame, duration, force), body))
    if options.force is not None:
        found += random_pushes(options.force, motion.duration, options.seed)
    for push in listed:
        if push.empty is not None:
            found += _bursts(push, body)
        elif not push.generated or _overlaps(push, motion):
            found.append(_arrow(push, body))
    return tuple(found)


class _Body:
    """Where the segments of a character are while it moves."""

    def __init__(self, motion, character, reshaping):
        self.motion, self.character, self._reshaping = motion, character, reshaping

    @cached_property
    def _pose(self):
        return self.character.pose(self.character.trajectory(self.motion))

    def local(self, segment, places):
        """(F, 3) places [m] in the segment's frame."""
        joints, frames = (part[:, SEGMENT_INDEX[segment]] for part in self._pose)
        return np.einsum("fji,fj->fi", frames, places - joints)

    def centre(self, segment):
        """(3,) centre of mass in the segment's frame [m]."""
        return self.character.centres[SEGMENT_INDEX[segment]]

    def point(self, segment, point):
        """The point of a Push for a point (3,) of the character as it was read."""
        if self._reshaping is not None:
            point = self._reshaping.point(segment, point)
        return tuple(np.asarray(point, float).tolist())


def _arrow(push, body):
    """The Push of one with a force that does not change."""
    _check(push, body.motion)
    point = None
    if push.places is not None or any(push.offset):
        point = body.centre(push.segment)
        if push.places is not None:
            point = np.median(body.local(push.segment, push.places), axis=0)
        point = body.point(push.segment, point + push.offset)
    start = _time(body.motion, push.frame)
    return Push(start, push.duration, push.force, push.segment, point)


def _time(motion, frame):
    """Seconds from the first sample of a motion to a frame of the scene."""
    return (frame - motion.first_frame) / (motion.frame_step * motion.rate)


def _overlaps(push, motion):
    """Whether a push acts while the motion lasts."""
    start = _time(motion, push.frame)
    return start < motion.duration and start + push.duration > 0


def _check(push, motion):
    """Raise SettingsError for a push without effect, or with none that could be computed."""
    name = f"The push '{push.name}'"
    demand(
        isfinite(push.frame) and isfinite(push.duration) and np.isfinite(push.force).all(),
        f"{name} has a value that is not a number: mend it.",
    )
    demand(any(push.force), f"{name} has a strength of 0 N: give it one, or switch it off.")
    demand(
        push.duration > 0,
        f"{name} lasts {push.duration:g} s: give it a duration above 0 s, or switch it off.",
    )
    demand(
        _overlaps(push, motion),
        f"{name} of {push.duration:g} s begins at frame {push.frame:g}, outside of the frames "
        f"{motion.frame(0):g} to {motion.frame(len(motion) - 1):g} that are simulated: move it, or "
        "switch it off.",
    )


def _bursts(push, body):
    """The pushes of an animated empty: one each time that it has a force, at the point of the body
    that is under it where it is strongest. Between two frames its force changes evenly."""
    strength = np.linalg.norm(push.forces, axis=1)
    demand(
        strength.any(),
        f"The empty '{push.empty}' of the push '{push.name}' has a strength of 0 N at all frames "
        "that are simulated: give it one in the panel, or key it.",
    )
    local = body.local(push.segment, push.places)
    rate = body.motion.rate
    edges = np.flatnonzero(np.diff(np.concatenate([[0], strength > 0, [0]])))
    pushes = []
    for begin, end in edges.reshape(-1, 2):
        strongest = begin + int(np.argmax(strength[begin:end]))
        _check_near(push, body, local[strongest], strongest)
        first, last = max(begin - 1, 0), min(end, len(strength) - 1)
        forces = tuple(map(tuple, push.forces[first : last + 1].tolist()))
        point = body.point(push.segment, local[strongest])
        start, duration = float(first / rate), float((last - first) / rate)
        pushes.append(Push(start, duration, forces, push.segment, point))
    return pushes


def _check_near(push, body, point, sample):
    """Raise SettingsError if a point (3,) of an empty is not on the segment."""
    away = float(np.linalg.norm(point - body.centre(push.segment)))
    demand(
        away <= _NEAR * body.character.height,
        f"The empty '{push.empty}' of the push '{push.name}' is {away:.2f} m away from the "
        f"{push.segment.replace('_', ' ')} at frame {body.motion.frame(sample):g}, where it is "
        "strongest: move it to the body.",
    )

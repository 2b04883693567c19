# SPDX-License-Identifier: GPL-3.0-or-later
"""Endless walks of an armature: the settings `scene.poise.walk`, and the reading that goes on.

A walk is read like a clip that is as long as the walk: rigid copies of the cycle's poses, one
after the other, along the way. Simulation and bake need not know more.
"""

from dataclasses import dataclass, replace
from math import pi

import bpy
import numpy as np
from bpy.props import BoolProperty, FloatProperty, PointerProperty, StringProperty

from ...controller import Character
from ...controller.exceptions import MotionError, SettingsError
from ...controller.ranges import RANGES
from ...controller.reference.acts import Act
from ...controller.reference.commands import FASTEST, SIDEWAYS, SKILLS, SLOWEST, Command
from ...controller.reference.gait import Endless, Gait, Walk, cycle_between, find_cycle
from ...controller.simulation.play import balls_of
from ...controller.simulation.scenario import shoves, tosses
from ..blender.redrawing import on_change_in_sidebar
from . import marked
from .marked import ACTS, fits
from .weights import OVERRIDABLE, values_at

#: Name of the property of an armature's data that commands its walk, and so the beginning of its
#: F-curves' paths; and the names in it.
PROPERTY, NAMES = "poise_walk", ("pace", "turn", "sideways")

#: Who is to go slower than this, against the animation's own speed, stands.
_STANDS = SLOWEST / 2

#: An armature object that moves farther than this [m] in its cycle is animated itself.
_STILL = 0.01


@dataclass(frozen=True)
class WalkOptions:
    """How to walk on.

    seconds: for how long [s]. cycle: (first, last) scene frames, None for the best one. heading:
    name of a curve object to follow, None to go on as the clip does. commands: Command each, in
    place of those that are keyed. trim, other, played: as controller.gait.Walk has them. acts:
    what it can perform besides the actions that are marked. ball: mass [kg] of what can be thrown
    at who is played, 0 for nothing.
    """

    seconds: float
    cycle: tuple[float, float] | None = None
    heading: str | None = None
    commands: tuple[Command, ...] = ()
    trim: tuple[tuple[float, float], ...] = ()
    other: Gait | None = None
    played: bool = False
    acts: tuple[Act, ...] = ()
    ball: float = 0.0

    def performed(self, armature: "bpy.types.Object") -> "list[bpy.types.Action]":
        """The actions of an armature that its commands name, besides its acts."""
        named = {one.act for one in self.commands} - {one.name for one in self.acts}
        if not named - {None}:
            return []
        return [one for one in bpy.data.actions if one.name in named and fits(one, armature)]

    def offered(self, armature: "bpy.types.Object") -> "list[bpy.types.Action]":
        """The same, and of who is played those that are marked, in the order of their list. Raises
        SettingsError for names that mean something else."""
        listed = ACTS.of(armature) if self.played else []
        found = listed + [one for one in self.performed(armature) if one not in listed]
        for action in found:
            if action.name in SKILLS:
                raise SettingsError(
                    f"The act '{action.name}' has the name of what every walker does: rename the "
                    "action."
                )
        return found


def _is_curve(_settings, thing):
    return thing.type == "CURVE"


class POISE_PG_commands(bpy.types.PropertyGroup):
    """What commands the walk of an armature, with keys on its data as strength has them."""

    pace: FloatProperty(
        name="Pace",
        description="How fast to walk, against the animation's own speed, or 0 to stand; key it to "
        "change it. Slower walks take shorter steps, below 0.5 none are slower, below 0.25 it "
        "stands. Speed follows by 0.3 m/s in a second [share]",
        default=1.0,
        min=0.0,
        max=FASTEST,
        precision=2,
        step=5,
        override=OVERRIDABLE,
    )
    turn: FloatProperty(
        name="Turn",
        description="Where to head, from where the walk begins, counter-clockwise from above; key "
        "it to change it. A body turns by about 45° in a second",
        default=0.0,
        min=-100 * pi,
        max=100 * pi,
        subtype="ANGLE",
        override=OVERRIDABLE,
    )
    sideways: FloatProperty(
        name="Sideways (m/s)",
        description="How fast to go to its left besides, below 0 to its right; key it to change "
        "it. It looks ahead, and goes diagonally, or steps aside on the spot where Pace is 0 [m/s]",
        default=0.0,
        min=-SIDEWAYS,
        max=SIDEWAYS,
        precision=2,
        step=5,
        override=OVERRIDABLE,
    )


class POISE_PG_walk(bpy.types.PropertyGroup):
    """How a character of this scene walks on."""

    enabled: BoolProperty(
        name="Walk On",
        description="Loop a walk or run for as long as wanted. Every step lands where the body "
        "needs it, so that pushes on the way do not bring it down at once",
        update=on_change_in_sidebar,
    )
    seconds: FloatProperty(
        name="Length (s)",
        description="How long to walk [s]",
        default=20.0,
        **RANGES["walk"].limits,
        soft_max=60.0,
        step=100,
        precision=1,
    )
    use_cycle: BoolProperty(
        name="Own Cycle",
        description="Loop the frames below instead of the best cycle of the animation",
    )
    first: FloatProperty(
        name="First Frame",
        description="Where the cycle begins [frame]",
        default=1.0,
        step=100,
        precision=0,
        **RANGES["frame"].limits,
    )
    last: FloatProperty(
        name="Last Frame",
        description="Where the cycle ends: the frame that looks like the first one, after a step "
        "of each foot [frame]",
        default=60.0,
        step=100,
        precision=0,
        **RANGES["frame"].limits,
    )
    heading: PointerProperty(
        type=bpy.types.Object,
        name="Heading",
        description="A curve on the ground to walk along, from its start on; none to go on as the "
        "animation does",
        poll=_is_curve,
    )
    skills: StringProperty(
        name="Skills",
        description="What the command learn has written for this animation: with it the character "
        "is played at exactly the speeds that it has learned, and goes over to other animations at "
        "those that need them; none to play the animation as it is",
        subtype="FILE_PATH",
    )
    push: FloatProperty(
        name="Push (N)",
        description="How hard F pushes who is played, for 0.3 s, away from the view [N]",
        default=60.0,
        min=RANGES["force"].low,
        max=RANGES["force"].high,
        soft_max=200.0,
        step=1000,
        precision=0,
    )
    ball: FloatProperty(
        name="Ball (kg)",
        description="What T throws at who is played, from where you look, at 5 m/s [kg]",
        default=3.0,
        min=RANGES["thing"].low,
        max=RANGES["thing"].high,
        soft_max=10.0,
        step=50,
        precision=1,
    )
    follow: BoolProperty(
        name="View Follows",
        description="Move the view along with who is played",
        default=True,
    )
    found: StringProperty(
        name="Cycle", description="What the last search for a cycle came to", options={"HIDDEN"}
    )


_ON_THE_SPOT = "It walks on the spot, as on a treadmill: here it goes where its feet take it."


def walk_options(settings):
    """The WalkOptions that `scene.poise.walk` holds; None where nobody is to walk on."""
    if not settings.enabled:
        return None
    cycle = (settings.first, settings.last) if settings.use_cycle else None
    return WalkOptions(settings.seconds, cycle, settings.heading.name if settings.heading else None)


def cycle_of(reading, mass=None, frames=None):
    """The Character of a Reading and its Cycle: between two frames, or the best one.

    Raises PoiseError.
    """
    character = Character.from_motion(reading.motion, mass)
    motion = character.travelled(reading.motion)
    if frames is None:
        return character, find_cycle(character, motion)
    return character, cycle_between(character, motion, *frames)


def going(reading, character):
    """A Reading that goes where its feet take it, if it walks on the spot; the very same one if it
    does not."""
    motion = character.travelled(reading.motion)
    if motion is reading.motion:
        return reading
    way = motion.positions[:, 0] - reading.motion.positions[:, 0]
    matrices = reading.bone_matrices.copy()
    matrices[:, :, :3, 3] += way[:, None] / reading.metres_per_unit
    still = f"{reading.still} {_ON_THE_SPOT}".lstrip()
    return replace(reading, motion=motion, bone_matrices=matrices, still=still)


def describe(reading, cycle):
    """A cycle in words: its frames, its length and its speed."""
    motion = reading.motion
    seconds = cycle.period / motion.rate
    return (
        f"Frames {motion.frame(cycle.first):g} to {motion.frame(cycle.last):g}: {seconds:.2f} s, "
        f"{cycle.length / seconds:.2f} m/s, ends {1000 * cycle.error:.0f} mm apart"
    )


def acts_of(scene, reading, actions, mass=None, rate=None):
    """Read actions as Acts; yields while it goes on, and returns them. Arguments as `collecting`
    has them. Raises PoiseError."""
    motions = yield from marked.collecting(scene, reading, actions, rate)
    return tuple(
        Act.of(action.name, Character.from_motion(motion, mass), motion, action.poise_act_help)
        for action, motion in zip(actions, motions, strict=True)
    )


def collecting(scene, reading, options, mass=None, rate=None):
    """Read what a Reading is to perform as WalkOptions say; yields while it goes on, and returns
    the Acts, those of actions first; what is among the acts of the options is not read. mass: of
    the body [kg], rate: frames per second [Hz], None as the scene has them. Raises PoiseError."""
    known = {act.name: act for act in options.acts}
    offered = options.offered(scene.objects[reading.armature])
    actions = [action for action in offered if action.name not in known]
    acts = yield from acts_of(scene, reading, actions, mass, rate)
    read = {act.name: act for act in acts}
    first = [action.name for action in offered]
    both = known | read
    return tuple(both[name] for name in dict.fromkeys((*first, *known)))


def endless(scene, reading, options, mass=None, acts=()):
    """The Reading that walks on, as WalkOptions say, and performs Acts. mass: of the body [kg],
    None by its height.

    Its motion is a controller.gait.Endless; its frames go on from the cycle's first one. Raises
    PoiseError.
    """
    character, cycle = cycle_of(reading, mass, options.cycle)
    read, reading = reading, going(reading, character)
    still = "" if reading is read else _ON_THE_SPOT
    name = options.heading
    points, closed = ((), False) if name is None else _points(scene, name, reading)
    walk = Walk(cycle, options.seconds, points, closed, name or "")
    commands = options.commands or _keyed(scene, reading, walk)
    if commands and name is not None:
        raise SettingsError(
            f"The curve '{name}' leads the walk, and so do its Pace, Turn and Sideways: take the "
            "curve away, or set Pace to 1, the others to 0, and remove their keys."
        )
    walk = replace(
        walk,
        commands=commands,
        trim=options.trim,
        other=options.other,
        played=options.played,
        acts=tuple(acts) if commands else (),
    )
    motion = walk.motion(character, reading.motion)
    index, step = motion.index, reading.frames[1] - reading.frames[0]
    objects = reading.object_matrices[cycle.first : cycle.last + 1]
    moved = np.linalg.norm(np.ptp(objects[:, :3, 3], axis=0)) * reading.metres_per_unit
    if moved > _STILL:
        raise MotionError(
            f"The object '{reading.armature}' is moved itself, by {moved:.2f} m in a cycle: put "
            "its movement on the root bone to walk on."
        )
    return replace(
        reading,
        frames=reading.frames[cycle.first] + step * np.arange(len(index)),
        looped=reading.frames[index],
        still=still,
        bone_matrices=_transforms(motion, reading)[:, None] @ reading.bone_matrices[index],
        basis_matrices=reading.basis_matrices[index],
        object_matrices=reading.object_matrices[index],
        object_bases=reading.object_bases[index],
        motion=motion,
    )


def commanded_blows(motion, character, walk):
    """Tuples of controller pushes and throws that the commands of a walk are, and of what can be
    thrown besides, by its WalkOptions; none of other motions."""
    commands = motion.walk.commands if isinstance(motion, Endless) else ()
    if not commands:
        return (), ()
    yaw = motion.heading(character)
    more = balls_of(walk.ball) if walk is not None and walk.ball else ()
    return shoves(commands, yaw), tosses(commands, yaw) + more


def _keyed(scene, reading, walk):
    """The Commands that *Pace*, *Turn* and *Sideways* of the armature's data are at the frames of a
    Walk; none where they are 1, 0 and 0 throughout."""
    motion, cycle = reading.motion, walk.cycle
    step = reading.frames[1] - reading.frames[0]
    frames = reading.frames[cycle.first] + step * np.arange(walk.count(motion.rate))
    armature = scene.objects[reading.armature]
    if getattr(armature.data, PROPERTY, None) is None:  # as a script without the extension has it
        return ()
    found = values_at(scene, armature, frames, PROPERTY, NAMES)
    pace, turn, sideways = (found[name] for name in NAMES)
    if (pace == 1.0).all() and not turn.any() and not sideways.any():
        return ()
    # Single precision of a property is a little more than the most that may be commanded.
    sideways = np.clip(sideways, -SIDEWAYS, SIDEWAYS)
    speed = walk.speed(motion.rate)
    stands, pace = pace < _STANDS, np.maximum(pace, SLOWEST)
    values = np.stack([stands, np.where(stands, SLOWEST, pace), turn, sideways])
    changed = np.concatenate([[True], (np.diff(values) != 0).any(0)])
    sidles = bool(sideways.any())
    return tuple(
        Command(
            float(at / motion.rate),
            None if stands[at] else float(pace[at] * speed),
            float(turn[at]),
            bool(stands[at]),
            aside=float(sideways[at]) if sidles else None,
        )
        for at in np.flatnonzero(changed)
    )


def _transforms(motion, reading):
    """(N, 4, 4) from the source to each sample of an Endless motion, in scene units."""
    cos, sin = np.cos(motion.turn), np.sin(motion.turn)
    result = np.tile(np.eye(4), (len(cos), 1, 1))
    result[:, 0, 0] = result[:, 1, 1] = cos
    result[:, 1, 0], result[:, 0, 1] = sin, -sin
    result[:, :3, 3] = motion.shift / reading.metres_per_unit
    return result


def _points(scene, name, reading):
    """Points (n, 2) [m] of the first spline of a curve object, seen from above, as tuples; and
    whether it is closed. Raises SettingsError."""
    points = plan_of(scene, name) * reading.metres_per_unit
    closed = bool(scene.objects[name].data.splines[0].use_cyclic_u)
    return tuple(map(tuple, points.tolist())), closed


def plan_of(scene, name):
    """Points (n, 2) of the first spline of a curve object, seen from above, in scene units. Raises
    SettingsError."""
    curve = scene.objects.get(name)
    if curve is None or curve.type != "CURVE":
        names = ", ".join(f"'{thing.name}'" for thing in scene.objects if thing.type == "CURVE")
        raise SettingsError(
            f"The scene '{scene.name}' has no curve '{name}' to walk along: "
            + (f"choose one of {names}." if names else "add a curve object.")
        )
    if not curve.data.splines:
        raise SettingsError(f"The curve '{name}' is empty: draw it where the character is to walk.")
    corners = _corners(curve.data)
    matrix = np.array(curve.matrix_world)
    return (corners @ matrix[:3, :3].T + matrix[:3, 3])[:, :2]


def _corners(data):
    """(n, 3) points along the first spline of a curve, in its own space."""
    bare = data.copy()
    bare.dimensions, bare.bevel_mode, bare.bevel_depth, bare.extrude = "3D", "ROUND", 0.0, 0.0
    for spline in list(bare.splines)[1:]:
        bare.splines.remove(spline)
    thing = bpy.data.objects.new(data.name, bare)
    try:
        vertices = thing.to_mesh().vertices
        corners = np.empty(3 * len(vertices))
        vertices.foreach_get("co", corners)
        return corners.reshape(-1, 3)
    finally:
        bpy.data.objects.remove(thing)
        bpy.data.curves.remove(bare)


def loop_curves(holder, reading):
    """Let all curves of a new action repeat what they do in the cycle, at the frames of a walk:
    those of fingers and faces, and of what drives a rig."""
    frames = reading.frames
    for curve in holder.fcurves:
        values = [curve.evaluate(frame) for frame in reading.looped]
        if np.ptp(values) == 0:
            continue
        for key in reversed(curve.keyframe_points):
            if key.co.x > frames[0]:
                curve.keyframe_points.remove(key, fast=True)
        count = len(curve.keyframe_points)
        curve.keyframe_points.add(len(frames))
        for key, frame, value in zip(
            list(curve.keyframe_points)[count:], frames, values, strict=True
        ):
            key.co, key.interpolation = (frame, value), "LINEAR"
        curve.update()


def register():
    """Let every armature be commanded."""
    setattr(
        bpy.types.Armature,
        PROPERTY,
        PointerProperty(
            name="Walk",
            description="How fast this armature's character walks on, and where to",
            type=POISE_PG_commands,
            override=OVERRIDABLE,
        ),
    )


def unregister():
    """Undo `register`."""
    delattr(bpy.types.Armature, PROPERTY)


CLASSES = (POISE_PG_walk, POISE_PG_commands)

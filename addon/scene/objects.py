# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects that take part: `object.poise` marks them, `scene.poise.objects` says how they meet
the body, and `collecting` makes things and colliders of them for the simulation."""

import contextlib
import math

import bpy
import numpy as np
from bpy.props import BoolProperty, EnumProperty, FloatProperty, FloatVectorProperty, IntProperty

from ...controller.exceptions import SettingsError
from ...controller.geometry.rotations import quaternion_from_matrix, rotation_vector
from ...controller.geometry.solids import Collider, stands_at
from ...controller.ranges import RANGES
from ...controller.simulation.scenario import Thing, random_throws
from ..blender import compat, evaluation
from ..rigs import bake_target
from . import bodies
from .object_shapes import measure, split

#: A collider that is faster than this has jumped [m/s].
JUMP_SPEED = 20.0
#: How much the size of a collider may change [share].
_SAME_SIZE = 1e-3

_SHAPES = (
    ("AUTO", "Automatic", "A sphere or a box if it is one, else its convex hull; a collider that "
     "is not convex keeps its faces"),
    ("SPHERE", "Sphere", "The sphere around it"),
    ("BOX", "Box", "The box around it, along its own axes"),
    ("HULL", "Hull", "Its convex hull: hollows are filled"),
    ("MESH", "Mesh", "Its faces, hollows included: for colliders"),
)  # fmt: skip


def _shapes(settings, _context):
    """What moves must be convex."""
    return _SHAPES[:4] if settings.role == "THING" else _SHAPES


class POISE_PG_object(bpy.types.PropertyGroup):
    """What an object is in the simulation: `object.poise`. SI units in any scene."""

    role: EnumProperty(
        name="Role",
        description="What the object is in the simulation",
        items=(
            ("NONE", "None", "It takes no part"),
            ("THING", "Thing", "It is thrown or falls, and can hit the character"),
            ("COLLIDER", "Collider", "It stands in the way, or moves as it is animated"),
        ),
    )
    shape: EnumProperty(
        name="Shape", description="What it is to touch, instead of its faces", items=_shapes
    )
    friction: FloatProperty(
        name="Friction",
        description="How much it holds what slides on it; 0 is ice, 1 is rubber. What slides on "
        "what counts together: the product of both",
        default=1.0,
        **RANGES["friction"].limits,
        soft_max=2.0,
        step=5,
        precision=2,
    )
    # --- Things
    mass_from: EnumProperty(
        name="Mass From",
        description="How its mass is given",
        items=(
            ("MASS", "Mass", "Give its mass"),
            ("DENSITY", "Density", "Give its density; the mass follows from its shape"),
        ),
    )
    mass: FloatProperty(
        name="Mass (kg)",
        description="Mass [kg]",
        default=1.0,
        soft_min=0.05,
        soft_max=50.0,
        step=25,
        precision=3,
        **RANGES["thing"].limits,
    )
    density: FloatProperty(
        name="Density (kg/m³)",
        description="Mass per volume of its shape [kg/m³]: 100 is foam, 600 is wood, 1000 is water",
        default=100.0,
        soft_min=10.0,
        soft_max=8000.0,
        step=1000,
        precision=0,
        **RANGES["density"].limits,
    )
    release: IntProperty(
        name="Release (frame)",
        description="Up to this frame it follows its animation, from here on the physics; before "
        "the first simulated frame: from the beginning",
        default=1,
        **RANGES["frame"].limits,
    )
    velocity_from: EnumProperty(
        name="Velocity",
        description="How it moves at its release",
        items=(
            ("MOTION", "Animated", "As its animation moves it just before the release"),
            ("GIVEN", "Given", "Give velocity and spin"),
        ),
    )
    velocity: FloatVectorProperty(
        name="Velocity (m/s)",
        description="Velocity of its centre of mass along the world's axes at its release [m/s]",
        size=3,
        soft_min=-30.0,
        soft_max=30.0,
        step=50,
        precision=2,
        **RANGES["velocity"].limits,
    )
    spin: FloatVectorProperty(
        name="Spin (turns/s)",
        description="Turns about the world's axes at its release [turns/s]",
        size=3,
        soft_min=-10.0,
        soft_max=10.0,
        step=25,
        precision=2,
        **RANGES["spin"].limits,
    )
    bounciness: FloatProperty(
        name="Bounciness",
        description="Share of its speed that it keeps when it bounces on the floor, a collider or "
        "another thing that bounces as well; a body swallows the bounce",
        min=0.0,
        max=1.0,
        precision=2,
    )


class POISE_PG_objects(bpy.types.PropertyGroup):
    """How objects and the body meet in this scene: `scene.poise.objects`."""

    whole_body: BoolProperty(
        name="Whole-Body Contact",
        description="All of the body meets the floor and the colliders, not the feet alone; "
        "things always meet all of it. Slower",
    )
    self_collision: BoolProperty(
        name="Self-Collision",
        description="The parts of the body cannot pass through each other. Slower",
    )
    throw: BoolProperty(
        name="Throw Spheres",
        description="Throw a sphere at the neck every second, from random directions, at 5 m/s "
        "from 3.0 m away and 1.5 m above, of 100 kg/m³. A bake makes them objects in the "
        "collection 'Poise'",
    )
    throw_mass: FloatProperty(
        name="Mass (kg)",
        description="Mass of each sphere [kg]",
        default=2.0,
        **RANGES["sphere"].limits,
        soft_min=0.25,
        soft_max=10.0,
        step=25,
        precision=2,
    )
    throw_seed: IntProperty(
        name="Seed",
        description="Number that times and directions of the spheres are drawn from: the same "
        "seed gives the same ones",
        **RANGES["seed"].limits,
    )
    index: IntProperty(
        name="Object",
        description="The active object",
        get=lambda settings: settings.id_data.objects.find(_active_name()),
        set=lambda settings, index: _activate(settings.id_data.objects[index]),
    )


CLASSES = (POISE_PG_object, POISE_PG_objects)


def register():
    """Give every object its settings."""
    bpy.types.Object.poise = bpy.props.PointerProperty(type=POISE_PG_object)


def unregister():
    """Undo `register`."""
    del bpy.types.Object.poise


def _active_name():
    active = bpy.context.view_layer.objects.active
    return active.name if active else ""


def _activate(thing):
    layer = bpy.context.view_layer
    if thing.name not in layer.objects:
        return
    for other in list(bpy.context.selected_objects):
        other.select_set(False)
    thing.select_set(True)
    layer.objects.active = thing


def marked(scene, role=None):
    """The objects of a scene that take part, in the order of their names. role: "THING" or
    "COLLIDER", None for both."""
    roles = ("THING", "COLLIDER") if role is None else (role,)
    found = (thing for thing in scene.objects if takes_part(thing) and thing.poise.role in roles)
    return sorted(found, key=lambda thing: thing.name)


def takes_part(thing):
    """Whether an object is marked: a mesh, or an armature, which can be a collider alone."""
    roles = {"MESH": ("THING", "COLLIDER"), "ARMATURE": ("COLLIDER",)}
    return thing.poise.role in roles.get(thing.type, ())


def collecting(scene, reading, also=(), together=()):
    """Make things and colliders of a scene's objects: yields the progress from 0 to 1.

    reading: addon.reference.Reading of the character. also: names of armatures that are colliders
    whether they are marked or not. together: of those that are simulated with it, and so are none,
    nor are their skins. Returns {"things", "colliders", "limbs", "whole_body",
    "self_collision", "floor"} of controller.scenario.Scenario. The scene is as before. Raises
    SettingsError or BakeError for an object that cannot take part.
    """
    if not hasattr(scene, "poise"):  # without Blender's classes there are no marks either
        return {}
    settings = scene.poise.objects
    objects = _present(scene)
    skins = [thing for thing in objects if _is_skin(thing)]
    objects = [thing for thing in objects if thing not in skins]
    met = [*bodies.others(scene, reading, also), *skins]
    ours = {*together, reading.armature} if together else set()
    met = [thing for thing in met if not {thing.name, _armature_of(thing)} & ours]
    seen = [bodies.Body(scene, thing, reading) for thing in met]
    with unchanged(scene, objects):
        samples = yield from _sampling(scene, reading, objects, seen)
    limbs = []
    for body in seen:
        yield 1.0
        limbs += body.limbs()
    things, colliders = [], []
    for thing in objects:
        if thing.poise.role == "COLLIDER":
            colliders.append(_collider(thing, reading, samples[thing.name]))
        elif _release(thing, reading) <= reading.frames[-1]:
            things.append(_thing(thing, reading, samples[thing.name]))
    if settings.throw:
        motion = reading.motion
        things += random_throws(settings.throw_mass, motion.duration, settings.throw_seed)
    top = stands_at(colliders, reading.motion)
    return {
        "floor": None if top is None else min(0.0, top),
        "things": tuple(things),
        "colliders": tuple(colliders),
        "limbs": tuple(limbs),
        "whole_body": settings.whole_body,
        "self_collision": settings.self_collision,
    }


def _present(scene):
    """The marked meshes that are in a view layer; an excluded collection takes no part."""
    objects = [
        thing
        for thing in marked(scene)
        if thing.type == "MESH" and any(thing.name in layer.objects for layer in scene.view_layers)
    ]
    for thing in objects:
        if thing.mode == "EDIT":
            raise SettingsError(f"'{thing.name}' is in Edit Mode: leave it, to see its shape.")
        if thing.poise.role == "THING":
            bake_target.check_editable(thing)
            _check_free(thing)
    return objects


def _armature_of(thing):
    """Name of the armature that deforms an object; None without one."""
    armature = bodies.skinned_by(thing) if thing.type == "MESH" else None
    return armature.name if armature else None


def _is_skin(thing):
    """Whether a collider is deformed by an armature that moves: it is met part by part."""
    armature = bodies.skinned_by(thing) if thing.poise.role == "COLLIDER" else None
    return armature is not None and (_may_move(armature) or _is_posed(armature))


def _is_posed(armature):
    """Whether constraints move bones of an armature that has no animation of its own."""
    return any(bone.constraints for bone in armature.pose.bones)


def _check_free(thing):
    """Raise SettingsError if something else would move or skew an object that has keys."""
    body = thing.rigid_body
    if body is not None and body.type == "ACTIVE" and not body.kinematic:
        raise SettingsError(
            f"'{thing.name}' is an active rigid body, which overrules keys: set it to Animated, or "
            "remove its rigid body."
        )
    if thing.parent is None:
        return
    if thing.parent.type == "MESH" and thing.parent.poise.role == "THING":
        raise SettingsError(
            f"'{thing.name}' and its parent '{thing.parent.name}' are both things: clear the "
            "parent, or unmark one of them."
        )
    space = thing.parent.matrix_world
    if thing.parent_type == "BONE" and thing.parent_bone in thing.parent.pose.bones:
        space = space @ thing.parent.pose.bones[thing.parent_bone].matrix
    sizes = np.linalg.svd(np.array(space @ thing.matrix_parent_inverse)[:3, :3], compute_uv=False)
    if sizes[0] > sizes[2] * (1 + _SAME_SIZE):
        raise SettingsError(
            f"The parent '{thing.parent.name}' of '{thing.name}' is scaled unevenly, which would "
            "skew it as it turns: apply the parent's scale, or clear the parent."
        )


@contextlib.contextmanager
def unchanged(scene, objects):
    """Show the objects' own animation instead of their bakes inside; put all back after it."""
    frame, subframe = scene.frame_current, scene.frame_subframe
    before = [(thing, compat.assigned(thing)) for thing in objects]
    baked = [(thing, pair) for thing, pair in before if bake_target.mark_of(*pair)]
    try:
        for thing, pair in baked:
            mark = bake_target.mark_of(*pair)
            compat.assign(thing, *bake_target.without_bake(*pair))
            bake_target.restore_values(thing, mark)
        yield
    finally:
        for thing, pair in baked:
            compat.assign(thing, *pair)
        scene.frame_set(frame, subframe=subframe)


# Sampling ---------------------------------------------------------------------------------------


class _Sample:
    """What was seen of an object: its frames, its (n, 4, 4) world matrices, and its Shape."""

    def __init__(self, frames, shaped_at):
        self.frames, self.shaped_at = np.asarray(frames, float), shaped_at
        self.matrices = np.zeros((len(frames), 4, 4))
        self.shape = None


def _sampling(scene, reading, objects, seen):
    """Evaluate the frames that the objects need: yields the progress, returns {name: _Sample}.
    seen: bodies.Body that are to see all frames."""
    samples = {thing.name: _Sample(*_frames(thing, reading)) for thing in objects}
    frames = {frame for sample in samples.values() for frame in sample.frames}
    places = {float(frame): at for at, frame in enumerate(reading.frames)} if seen else {}
    frames = sorted(frames | places.keys())
    layers = {thing.name: evaluation.view_layer(scene, thing) for thing in objects}
    for count, frame in enumerate(frames):
        whole = math.floor(frame)
        scene.frame_set(whole, subframe=frame - whole)
        for thing in objects:
            sample = samples[thing.name]
            at = np.flatnonzero(sample.frames == frame)
            if len(at):
                _see(thing, layers[thing.name], sample, at[0], frame, reading.metres_per_unit)
        if frame in places:
            for body in seen:
                body.see(places[frame])
        yield (count + 1) / len(frames)
    return samples


def _frames(thing, reading):
    """The frames at which an object is to be seen, and the one of its shape."""
    first = float(reading.frames[0])
    if thing.poise.role == "COLLIDER":
        return (reading.frames if _may_move(thing) else [first]), first
    release = _release(thing, reading)
    moves = thing.poise.velocity_from == "MOTION" and _may_move(thing)
    return [release - back for back in range(3 if moves else 1)], release


def _release(thing, reading):
    """Scene frame from which physics moves a thing."""
    return max(float(thing.poise.release), float(reading.frames[0]))


def _may_move(thing):
    """Whether anything could move an object."""
    while thing is not None:
        if thing.animation_data is not None or thing.constraints or thing.rigid_body:
            return True
        thing = thing.parent
    return False


def _see(thing, layer, sample, at, frame, unit):
    """Take down an object's world matrix at a frame, and its shape if it is the frame for that."""
    seen = thing.evaluated_get(layer.depsgraph)
    if not seen.is_evaluated:
        raise SettingsError(
            f"'{thing.name}' or its collection is disabled in the viewport, so that Blender does "
            "not move it: enable it in the Outliner, or unmark it."
        )
    sample.matrices[at] = seen.matrix_world
    if frame != sample.shaped_at:
        return
    _, stretch = split(thing.name, sample.matrices[at])
    mesh = seen.to_mesh()
    settings = thing.poise
    try:
        kind = settings.shape or "AUTO"  # empty: a thing that was a collider of shape Mesh
        convex = settings.role == "THING"
        sample.shape = measure(thing.name, mesh, stretch * unit, kind, convex)
    finally:
        seen.to_mesh_clear()


# Making -----------------------------------------------------------------------------------------


def _poses(name, matrices, shape, unit):
    """Positions (n, 3) [m] and rotations (n, 3, 3) of a solid, from its object's matrices; and the
    object's stretches (n, 3, 3)."""
    turns, stretches = split(name, matrices)
    return matrices[:, :3, 3] * unit + turns @ shape.centre, turns @ shape.axes, stretches


def _collider(thing, reading, sample):
    unit, shape = reading.metres_per_unit, sample.shape
    positions, turns, stretches = _poses(thing.name, sample.matrices, shape, unit)
    size = np.abs(stretches[0]).max()
    changed = np.abs(stretches - stretches[0]).max((1, 2)) > _SAME_SIZE * size
    if changed.any():
        raise SettingsError(
            f"The collider '{thing.name}' changes its size at frame "
            f"{sample.frames[changed.argmax()]:g}: a collider must keep it."
        )
    solid, friction = shape.solid, thing.poise.friction
    if np.ptp(sample.matrices, axis=0).max() < 1e-6 * max(1.0, np.abs(sample.matrices).max()):
        return Collider(thing.name, solid, positions[0], quaternion_from_matrix(turns[0]), friction)
    corners = turns[:, None] @ shape.corners[..., None]
    corners = corners[..., 0] + positions[:, None]
    speed = np.linalg.norm(np.diff(corners, axis=0), axis=2).max(1) * reading.motion.rate
    if speed.max() > JUMP_SPEED:
        worst = int(speed.argmax())
        raise SettingsError(
            f"The collider '{thing.name}' jumps from frame {sample.frames[worst]:g} to "
            f"{sample.frames[worst + 1]:g}, at {speed[worst]:.0f} m/s: keep it below "
            f"{JUMP_SPEED:g} m/s."
        )
    return Collider(thing.name, solid, positions, quaternion_from_matrix(turns), friction)


def _thing(thing, reading, sample):
    settings, shape, unit = thing.poise, sample.shape, reading.metres_per_unit
    positions, turns, _ = _poses(thing.name, sample.matrices, shape, unit)
    motion, step = reading.motion, reading.motion.frame_step
    velocity = np.array(settings.velocity)
    spin = 2 * np.pi * np.array(settings.spin)
    if settings.velocity_from == "MOTION":
        velocity, spin = _velocities(positions, turns, motion.rate * step)
    mass = settings.mass
    if settings.mass_from == "DENSITY":
        mass = settings.density * shape.volume
    made = Thing(
        name=thing.name,
        solid=shape.solid,
        mass=float(mass),
        start=(sample.frames[0] - reading.frames[0]) / step / motion.rate,
        position=tuple(positions[0].tolist()),
        rotation=tuple(quaternion_from_matrix(turns[0]).tolist()),
        velocity=tuple(velocity.tolist()),
        spin=tuple(spin.tolist()),
        friction=settings.friction,
        restitution=settings.bounciness,
    )
    made.check()
    return made


def _velocities(positions, turns, rate):
    """Velocity [m/s] and spin [rad/s] at the first of frames that go back in time, at `rate` [Hz];
    zeros for a single one. What the last two frames say is carried on to the release."""
    if len(positions) == 1:
        return np.zeros(3), np.zeros(3)
    moves = positions[:-1] - positions[1:]
    turned = turns[:-1] @ turns[1:].swapaxes(-1, -2)
    spins = rotation_vector(quaternion_from_matrix(turned))
    return tuple(rate * (1.5 * values[0] - 0.5 * values[1]) for values in (moves, spins))

# SPDX-License-Identifier: GPL-3.0-or-later
"""Write how things moved in a simulation to keys of their objects, and thrown spheres to new ones.

As with the body, the difference is written: where the physics took a thing from its release on is
applied to where its object was then. Up to the release an object keeps its own animation.
"""

import contextlib
import math
from dataclasses import dataclass

import bpy
import numpy as np

from ...controller.exceptions import BakeError, MotionError
from ...controller.geometry.rotations import matrix_from_quaternion
from ...controller.simulation.scenario import Throw
from ..blender import compat, evaluation, keys
from ..blender.keys import Track
from ..blender.pose import nearest_rotation, rotation_matrices, rotation_property, rotation_values
from ..rigs import bake_target, identity, sampling
from ..scene import objects
from . import bake

COLLECTION = "Poise"
#: Custom property of the spheres that a bake made: the identity of what they were thrown at.
SPHERE = "poise_sphere"
_SEGMENTS, _RINGS = 32, 16


@dataclass(frozen=True)
class Flight:
    """How an object moved from its release on.

    name: of the object. release: scene frame. start: (4, 4) its world matrix then.
    frames: (n,) samples after that; moves: (n, 4, 4) from `start` to there, in scene units.
    """

    name: str
    release: float
    start: np.ndarray
    frames: np.ndarray
    moves: np.ndarray


@dataclass(frozen=True)
class Plan:
    """What is to be written: a Flight for every object; for every sphere its Throw, frames (n,),
    positions (n, 3) in scene units and rotations (n, 4)."""

    flights: tuple
    spheres: tuple


def plan(scene, reading, recording):
    """What a bake will write -> Plan. Raises BakeError if an object cannot take it; nothing is
    written, and the scene is as before."""
    flights, spheres = [], []
    if not recording.scenario.things:
        return Plan((), ())
    frames, unit = reading.frames[: len(recording)], reading.metres_per_unit
    armature = scene.objects[reading.armature]
    names = [thing.name for thing in recording.scenario.things if not isinstance(thing, Throw)]
    present = [_checked(scene, name) for name in names]
    with objects.unchanged(scene, [armature, *present]):
        for number, thing in enumerate(recording.scenario.things):
            positions = recording.thing_positions[:, number]
            turns = recording.thing_rotations[:, number]
            free = np.isfinite(positions[:, 0])
            if not free.any():
                continue
            if isinstance(thing, Throw):
                spheres.append((thing, frames[free], positions[free] / unit, turns[free]))
                continue
            first = reading.motion.frame(thing.start * reading.motion.rate)
            flights.append(
                Flight(
                    thing.name,
                    float(first),
                    _matrix(scene, scene.objects[thing.name], first),
                    frames[free],
                    _moves(thing, positions[free], turns[free], unit),
                )
            )
    return Plan(tuple(flights), tuple(spheres))


def _moves(thing, positions, turns, unit):
    """(n, 4, 4) rigid motions from a thing's start to where it was later, in scene units."""
    moves = np.tile(np.eye(4), (len(positions), 1, 1))
    turned = matrix_from_quaternion(turns) @ matrix_from_quaternion(thing.rotation).T
    moves[:, :3, :3] = turned
    moves[:, :3, 3] = (positions - turned @ np.array(thing.position)) / unit
    return moves


def _matrix(scene, thing, frame):
    """(4, 4) world matrix of an object at a frame."""
    whole = math.floor(frame)
    scene.frame_set(whole, subframe=frame - whole)
    layer = evaluation.view_layer(scene, thing)
    return np.array(thing.evaluated_get(layer.depsgraph).matrix_world, float)


def _checked(scene, name):
    """The object of that name, if it can be keyed."""
    thing = scene.objects.get(name)
    if thing is None:
        raise BakeError(
            f"The object '{name}' was in the simulation, but is not in the scene any more: undo "
            "that, or simulate again."
        )
    bake_target.check_editable(thing)
    if thing.mode == "EDIT":
        raise BakeError(f"'{name}' is in Edit Mode: leave it first.")
    paths = ("location", rotation_property(thing.rotation_mode))
    bake_target.check_undriven(thing, paths)
    source, slot = _source(thing)
    for curve in compat.curves(source, slot):
        if curve.data_path in paths and (curve.lock or (curve.group and curve.group.lock)):
            raise BakeError(
                f"The curve {curve.data_path} of '{name}' in '{source.name}' is locked: unlock it, "
                "since the bake must replace it."
            )
    return thing


def _source(thing):
    """The (action, slot) that an object has without its bake."""
    return bake_target.without_bake(*compat.assigned(thing))


def bake_things(scene, reading, planned, take=""):
    """Write a Plan to new actions, and assign those -> names of all objects that have keys now.

    take: name of the take that is baked, empty for none. The actions that the objects had are not
    changed. Raises BakeError; everything is then as before.
    """
    frame, subframe = scene.frame_current, scene.frame_subframe
    scale = scene.render.frame_map_old / scene.render.frame_map_new
    try:
        _bake_flights(scene, planned.flights, scale, take)
        spheres = _bake_spheres(scene, reading, planned.spheres, scale)
    finally:
        if planned != Plan((), ()):
            scene.frame_set(frame, subframe=subframe)
    return [flight.name for flight in planned.flights] + spheres


# Objects ----------------------------------------------------------------------------------------


def _bake_flights(scene, flights, scale, take):
    """Write all flights, or none."""
    with contextlib.ExitStack() as stack:
        writers = [_Writer(scene, flight, scale, take, stack) for flight in flights]
        frames = sorted({frame for writer in writers for frame in writer.frames})
        for frame in frames:
            whole = math.floor(frame)
            scene.frame_set(whole, subframe=frame - whole)
            for writer in writers:
                writer.see(frame)
        for writer in writers:
            writer.write()
        for writer in writers:
            writer.finish()


class _Writer:
    """The bake of one object: opened, shown every frame, written, finished."""

    def __init__(self, scene, flight, scale, take, stack):
        self.flight, self._scale = flight, scale
        self._thing = thing = scene.objects[flight.name]
        self._layer = evaluation.view_layer(scene, thing)
        self._mode = thing.rotation_mode
        self._rotation = rotation_property(self._mode)
        source, slot = _source(thing)
        self._state = bake_target.State(thing)
        stack.push(self._undo)
        self._state.show_source(source, slot)
        # Once released, nothing holds it any more.
        held = [c for c in thing.constraints if not c.mute]
        mutes = [c.path_from_id("mute") for c in held]
        self._state.values = {
            path: bake_target.value_at(thing, path) for path in ("location", self._rotation, *mutes)
        }
        self.frames = self._all_frames(thing, source, slot)
        self._switches = [self._track(path, *self._release()) for path in mutes]
        self._target = stack.enter_context(bake_target.Target(thing, source, slot, take=take))
        sampling.run(self._target.filling())
        _write(self._target, self._switches)
        self._worlds, self._bases = [], []
        self._locations, self._rotations, self._scales = [], [], []

    def _undo(self, kind, *_):
        if kind is not None:
            self._state.put_back()

    def _all_frames(self, thing, source, slot):
        """Those of the flight, and all before at which its own animation has it elsewhere."""
        flight = self.flight
        first = flight.release
        if source is not None or thing.animation_data is not None:
            with contextlib.suppress(MotionError):
                first = min(first, sampling.animated_range(thing, source, slot)[0])
        before = np.arange(math.floor(first), flight.release)
        return np.concatenate([before, [flight.release], flight.frames])

    def _release(self):
        """Frames and values of a switch that is thrown at the release."""
        return self.frames[[0, -len(self.flight.frames)]], np.array([[0.0], [1.0]])

    def _track(self, path, frames, values, kind="CONSTANT"):
        return Track(path, "Object Transforms", frames * self._scale, values, kind)

    def see(self, frame):
        """Take down the object at the frame that is shown, if it is one of its own."""
        if frame not in self.frames:
            return
        seen = self._thing.evaluated_get(self._layer.depsgraph)
        self._worlds.append(np.array(seen.matrix_world, float))
        self._bases.append(np.array(seen.matrix_basis, float))
        self._locations.append(list(seen.location))
        self._rotations.append(list(getattr(seen, self._rotation)))
        self._scales.append(np.array(seen.scale) * np.array(seen.delta_scale))

    def write(self):
        """Write the keys."""
        count = len(self.flight.frames)
        locations, rotations = np.array(self._locations), np.array(self._rotations)
        worlds, bases = np.array(self._worlds)[-count:], np.array(self._bases)[-count:]
        # What parents do to the channels, deltas included in the bases.
        space = worlds @ np.linalg.inv(bases)
        wanted = np.linalg.inv(space) @ self.flight.moves @ self.flight.start
        locations[-count:] += wanted[:, :3, 3] - bases[:, :3, 3]
        scales = np.array(self._scales)[-count:, None]
        own = rotation_matrices(self._mode, rotations[-count:])
        delta = nearest_rotation(bases[:, :3, :3] / scales) @ own.swapaxes(1, 2)
        turns = delta.swapaxes(1, 2) @ nearest_rotation(wanted[:, :3, :3] / scales)
        rotations[-count:] = rotation_values(self._mode, turns, rotations[-count - 1])
        tracks = [
            *self._switches,
            self._track("location", self.frames, locations, "LOCATION"),
            self._track(self._rotation, self.frames, rotations, self._mode),
        ]
        _write(self._target, tracks)

    def finish(self):
        """Make it valid."""
        self._target.finish(self._state.values)


def _write(target, tracks):
    """Write the keys without which something would be lost."""
    kept = [keys.distinct(track, "LINEAR") for track in tracks]
    sampling.run(target.write(tracks, kept, "LINEAR"))


# Spheres ----------------------------------------------------------------------------------------


def spheres_of(scene, armature):
    """The sphere objects that bakes of an armature made, in the order of their names."""
    spheres = (thing for thing in scene.objects if SPHERE in thing)
    found = (thing for thing in spheres if identity.owner(thing[SPHERE]) == armature)
    return sorted(found, key=lambda thing: thing.name)


def _bake_spheres(scene, reading, spheres, scale):
    """Make as many sphere objects as were thrown, those of an earlier bake anew; their names."""
    for old in spheres_of(scene, scene.objects[reading.armature]):
        _remove(old)
    return [
        _bake_sphere(scene, reading, throw, frames * scale, positions, turns)
        for throw, frames, positions, turns in spheres
    ]


def _remove(sphere):
    """Remove a sphere that a bake made, with its mesh and its keys."""
    mesh, baked = sphere.data, bake_target.current(sphere)
    bpy.data.objects.remove(sphere)
    if mesh.users == 0:
        bpy.data.meshes.remove(mesh)
    if baked is not None:
        bpy.data.actions.remove(baked[0])


def _bake_sphere(scene, reading, throw, frames, positions, turns):
    """A new object that flies as a sphere did, and is there only from then on; its name."""
    import bmesh  # exists only once bpy is loaded

    mesh = bpy.data.meshes.new(throw.name)
    build = bmesh.new()
    try:
        bmesh.ops.create_uvsphere(
            build,
            u_segments=_SEGMENTS,
            v_segments=_RINGS,
            radius=throw.solid.size[0] / reading.metres_per_unit,
        )
        for face in build.faces:
            face.smooth = True
        build.to_mesh(mesh)
    finally:
        build.free()
    sphere = bpy.data.objects.new(throw.name, mesh)
    sphere[SPHERE] = identity.of(scene.objects[reading.armature])
    _collection(scene).objects.link(sphere)
    sphere.rotation_mode = "QUATERNION"
    hidden = {"hide_viewport": True, "hide_render": True}
    switch = np.array([frames[0] - 1, frames[0]]), np.array([[1.0], [0.0]])
    tracks = [
        Track("location", "Object Transforms", frames, positions, "LOCATION"),
        Track("rotation_quaternion", "Object Transforms", frames, turns, "QUATERNION"),
        *(Track(path, "Visibility", *switch, "CONSTANT") for path in hidden),
    ]
    with bake_target.Target(sphere, None, None) as target:
        sampling.run(target.filling())
        _write(target, tracks)
        target.finish(hidden)
    return sphere.name


def _collection(scene):
    """The collection of the spheres, in the scene."""
    collection = bpy.data.collections.get(COLLECTION)
    if collection is None:
        collection = bpy.data.collections.new(COLLECTION)
    if collection.name not in scene.collection.children:
        scene.collection.children.link(collection)
    return collection


# Compare ----------------------------------------------------------------------------------------


def show(scene, armature, which, take=""):
    """Show the "source" or the "baked" animation of all things and spheres of an armature.

    take: whose bake is shown of what has one for each take; things that have none for it show
    their source.
    """
    for thing in objects.marked(scene, "THING"):
        bakes = bake_target.bakes_of(thing)
        of_take = [b for b in bakes if bake_target.take_of(bake_target.mark_of(*b)) == take]
        if bakes:
            bake.show(scene, thing, which if of_take else "source", next(reversed(of_take), None))
    for sphere in spheres_of(scene, armature):  # of the last bake alone
        if bake_target.current(sphere) is not None:
            bake.show(scene, sphere, which)

# SPDX-License-Identifier: GPL-3.0-or-later
"""Evaluate an armature at other frames while the window stays at the user's.

For that the armature is put into a scene of its own, aside: with nothing but what its pose depends
on, so that no mesh that hangs on it is deformed, and no window is drawn anew at every frame. Where
the user's scene itself may have a say in the pose, it is that scene which goes to each frame. What
is read is the same.

The scene aside is never saved. An undo step that somebody's script or click makes meanwhile holds
it; it is removed as soon as such a step is restored.
"""

import contextlib
import math

import bpy
import numpy as np

from ...controller.exceptions import RigError

#: Name of a scene aside, which lists leave out for its dot, and the property that marks it.
NAME, MARK = ".poise", "poise_aside"
#: What of a scene's `render` the state at a frame depends on.
_RENDER = (
    "fps",
    "fps_base",
    "frame_map_old",
    "frame_map_new",
    "use_simplify",
    "simplify_subdivision",
)
#: Constraints that ask for the scene's own camera or clip.
_SOLVERS = {"CAMERA_SOLVER", "FOLLOW_TRACK", "OBJECT_SOLVER"}
#: Modifiers that go on from the frame before.
_SIMULATED = {"CLOTH", "DYNAMIC_PAINT", "FLUID", "NODES", "PARTICLE_SYSTEM", "SOFT_BODY"}


class LastOfTurn(float):
    """Progress after which a window begins another turn: Blender is going to draw it anew, or what
    comes next takes it a turn of its own."""


class Evaluation:
    """Evaluates an armature of a scene. scene, armature: the user's."""

    def __init__(self, scene, armature):
        """Raises RigError if the armature is in no view layer."""
        self.scene, self.armature = scene, armature
        self._layer = view_layer(scene, armature)
        self._aside, self._compared = None, False

    def going_aside(self):
        """Evaluate in a scene of its own, if the user's has no say in the pose; yields 0.0 while
        it finds out."""
        enabled = is_enabled(self.armature, self._layer)
        if enabled and not (yield from _scene_counts(self.armature)):
            yield LastOfTurn(0.0)
            self._aside = bpy.data.scenes.new(NAME)
            _furnish(self._aside, self.scene, self.armature)
            yield LastOfTurn(0.0)
            # Unlike an update of its view layer, this leaves the armature's own channels alone.
            scene = self.scene
            self._aside.frame_set(scene.frame_current, subframe=scene.frame_subframe)
            yield LastOfTurn(0.0)

    def close(self):
        """Leave nothing aside."""
        aside, self._aside = self._aside, None
        if aside is not None:
            with contextlib.suppress(ReferenceError):  # another file was loaded, or an undo step
                _remove(aside)

    def is_at(self, frame):
        """Whether it is evaluated at a frame; Blender keeps fractions in single precision."""
        scene = self._aside or self.scene
        return abs(scene.frame_current + scene.frame_subframe - frame) < 1e-5

    def at(self, frame):
        """The evaluated armature object at a frame."""
        for _ in self.comparing():
            pass
        aside, whole = self._aside, math.floor(frame)
        if aside and whole >= 0:  # a property takes none below, but by a preference
            if self.is_at(frame):
                aside.frame_current = whole  # as it was: evaluated once more
            else:
                _set_all("frame_current", aside, whole)
                _set_all("frame_subframe", aside, frame - whole)
            return self.updated()
        (aside or self.scene).frame_set(whole, subframe=frame - whole)
        return self._now()

    def updated(self):
        """The evaluated armature object at the same frame, after its channels were changed."""
        self._at_work.depsgraph.update()
        return self._now()

    def show(self):
        """From now on the armature itself has the channels of the frame at which it is evaluated,
        so that they can be changed; without this it keeps those of the user's frame."""
        self._at_work.update()

    @property
    def _at_work(self):
        """The view layer that is evaluated."""
        return self._aside.view_layers[0] if self._aside else self._layer

    def _now(self):
        return self.armature.evaluated_get(self._at_work.depsgraph)

    def comparing(self):
        """Stay aside only if the pose there is the one that the user's scene shows at its frame,
        if that is not known yet; yields 0.0 in between."""
        if self._aside is None or self._compared:
            return
        self._compared = True
        frame = self.scene.frame_current + self.scene.frame_subframe
        aside, shown = _pose(self.at(frame)), Evaluation(self.scene, self.armature)
        yield LastOfTurn(0.0)
        shown.at(frame)
        yield LastOfTurn(0.0)
        if not np.array_equal(aside, _pose(shown._now())):
            self.close()


@contextlib.contextmanager
def evaluating(scene, armature):
    """An Evaluation of an armature of a scene, which may go aside.

    Raises RigError if the armature is in no view layer.
    """
    evaluation = Evaluation(scene, armature)
    try:
        yield evaluation
    finally:
        evaluation.close()


def _set_all(name, scene, value):
    """Set a property of one of all scenes: to set it by itself would have all others, too,
    evaluated anew at every frame."""
    scenes = bpy.data.scenes
    values = [0] * len(scenes)
    scenes.foreach_get(name, values)
    values[scenes.find(scene.name)] = value
    scenes.foreach_set(name, values)


def _furnish(aside, scene, armature):
    """Put an armature into a new scene alone."""
    aside[MARK] = aside.is_runtime_data = True
    for name in _RENDER:
        setattr(aside.render, name, getattr(scene.render, name))
    aside.collection.objects.link(armature)


def _scene_counts(armature):
    """Whether a pose may depend on the scene in which it is evaluated, or on what was evaluated
    there before; yields while it finds out."""
    handlers = bpy.app.handlers
    if (  # functions of others may know but one scene
        handlers.frame_change_pre
        or handlers.frame_change_post
        or handlers.depsgraph_update_pre
        or handlers.depsgraph_update_post
    ):
        return True
    return any(_asks_scene(block) for block in (yield from _needed(armature)))


def _needed(block):
    """A data-block with all that it points to, by whatever setting, and what these point to; yields
    between looks, each at what all data-blocks of one kind point to."""
    found = new = {block}
    while new:
        used = set()
        for kind in sorted({one.id_type for one in new}):
            users = bpy.data.user_map(value_types={kind})
            used |= {one for one, by in users.items() if not by.isdisjoint(new)}
            yield 0.0
        new = used - found
        found = found | new
    return found


def _asks_scene(block):
    if isinstance(block, bpy.types.Scene):
        return True
    animation = getattr(block, "animation_data", None)
    if animation and any(_driver_asks_scene(curve.driver) for curve in animation.drivers):
        return True
    return isinstance(block, bpy.types.Object) and _object_asks_scene(block)


def _object_asks_scene(thing):
    pose = thing.pose
    owners = (thing, *(pose.bones if pose else ()))
    return (
        thing.rigid_body is not None
        or (pose is not None and pose.ik_solver != "LEGACY")
        or any(modifier.type in _SIMULATED for modifier in thing.modifiers)
        or any(one.type in _SOLVERS for owner in owners for one in owner.constraints)
    )


def _driver_asks_scene(driver):
    """Whether a driver asks for a scene, or runs Python, which may."""
    if driver.type == "SCRIPTED" and not driver.is_simple_expression:
        return True
    return any(variable.type == "CONTEXT_PROP" for variable in driver.variables)


def _pose(armature):
    """All that is read of an evaluated armature object."""
    bones = armature.pose.bones
    values = np.empty((2, len(bones) * 16), np.float32)
    for row, name in zip(values, ("matrix", "matrix_basis"), strict=True):
        bones.foreach_get(name, row)
    return np.concatenate([values.ravel(), np.ravel(armature.matrix_world)])


def view_layer(scene, armature):
    """A view layer of the scene in which the armature object is."""
    for layer in scene.view_layers:
        if layer.depsgraph is None or armature.name not in layer.objects:
            # Blender brings a layer up to date only when somebody looks at it.
            layer.update()
        if armature.name in layer.objects:
            return layer
    raise RigError(
        f"'{armature.name}' is in no view layer of the scene '{scene.name}': "
        "link it to the scene or include its collection."
    )


def is_enabled(thing, layer):
    """Whether an object is enabled in the viewport. If it is not, Blender animates it only for
    others that need it, but takes it for evaluated as soon as a setting of the scene names it."""

    def holds(branch):
        collection = branch.collection
        if collection.hide_viewport:
            return False
        own = not branch.exclude and thing.name in collection.objects
        return own or any(holds(child) for child in branch.children)

    return not thing.hide_viewport and holds(layer.layer_collection)


@bpy.app.handlers.persistent
def _sweep(*_):
    """Remove what an undo step held."""
    for scene in [one for one in bpy.data.scenes if MARK in one]:
        _remove(scene)


def _remove(scene):
    """Remove a scene. Blender 4.3 crashes in `scenes.remove` where there is no window."""
    if bpy.context.window is None:
        bpy.data.batch_remove([scene])
    else:
        bpy.data.scenes.remove(scene)


def register():
    """Leave nothing behind in undone or recovered files, from now on."""
    for handlers in _restored():
        handlers.append(_sweep)


def unregister():
    """Undo `register`."""
    for handlers in _restored():
        handlers.remove(_sweep)


def _restored():
    handlers = bpy.app.handlers
    return handlers.undo_post, handlers.redo_post, handlers.load_post

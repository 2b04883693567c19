# SPDX-License-Identifier: GPL-3.0-or-later
"""Waypoints: empties that say where a character is to be, and at which frame.

`object.poise_waypoint` makes an empty one, `scene.poise.waypoints` has what goes for all. All that
is Blender's is read by `collecting`, on the main thread, together with the animation.
"""

from dataclasses import dataclass

import bpy
import numpy as np
from bpy.props import BoolProperty, IntProperty, PointerProperty

from ...controller.exceptions import demand
from ...controller.ranges import RANGES
from ...controller.reference.waypoints import Waypoint
from ..blender import evaluation
from ..blender.redrawing import on_change

#: Name of the property.
PROPERTY = "poise_waypoint"
#: What the end of the animation is called, as a switch and as a waypoint.
END = "End Where the Source Ends"


class POISE_PG_waypoint(bpy.types.PropertyGroup):
    """How an empty is a waypoint. It is none without an armature."""

    armature: PointerProperty(
        name="Armature", description="Armature that is to be there", type=bpy.types.Object
    )
    frame: IntProperty(
        name="Frame",
        description="Frame at which the hips of the body are to be above this empty",
        **RANGES["frame"].limits,
        update=on_change,
    )
    use: BoolProperty(
        name="Use", description="Let the body go by this waypoint", default=True, update=on_change
    )


class POISE_PG_waypoints(bpy.types.PropertyGroup):
    """What goes for all waypoints of a scene."""

    end_in_place: BoolProperty(
        name=END,
        description="At the last frame the body is to be where the animation is: steps take it "
        "back from wherever balance, pushes or waypoints had led it",
        update=on_change,
    )


CLASSES = (POISE_PG_waypoint, POISE_PG_waypoints)


def register():
    """Let every object be a waypoint."""
    setattr(
        bpy.types.Object,
        PROPERTY,
        PointerProperty(
            name="Waypoint",
            description="Which character is to be at this empty, and when",
            type=POISE_PG_waypoint,
        ),
    )


def unregister():
    """Undo `register`."""
    delattr(bpy.types.Object, PROPERTY)


@dataclass(frozen=True)
class WaypointOptions:
    """What there is beside the scene's own waypoints, as the command line has it.

    waypoints: (frame, x [m], y [m]) each. end_in_place: end where the animation ends.
    """

    waypoints: tuple = ()
    end_in_place: bool = False


def of(scene, armature):
    """The empties of a scene that are waypoints of an armature, in the order of their frames."""
    return empties_of(scene, armature, PROPERTY, "frame")


def empties_of(scene, armature, group, frame):
    """The empties of a scene whose property group of that name is of an armature, in the order of a
    frame in it."""
    found = [
        thing
        for thing in scene.objects
        if thing.type == "EMPTY" and getattr(thing, group).armature == armature
    ]
    return sorted(found, key=lambda thing: (getattr(getattr(thing, group), frame), thing.name))


def used(scene, armature):
    """Those of them that are not switched off."""
    return [thing for thing in of(scene, armature) if getattr(thing, PROPERTY).use]


def collecting(scene, reading, options=None):
    """Read the waypoints of the reading's armature: yields the progress from 0 to 1, returns a
    tuple of controller Waypoint, times counted from the first sample.

    options: WaypointOptions. The scene is as before. Raises SettingsError for one that cannot be
    read.
    """
    options, motion = options or WaypointOptions(), reading.motion
    found = [
        Waypoint(_time(motion, frame), (x, y), name=f"--waypoint {number}")
        for number, (frame, x, y) in enumerate(options.waypoints, 1)
    ]
    end = options.end_in_place
    if hasattr(scene, "poise"):
        end = end or scene.poise.waypoints.end_in_place
        found += yield from _sampling(scene, reading)
    if end:
        found.append(Waypoint(motion.duration, name=END))
    return tuple(found)


def _sampling(scene, reading):
    """The scene's own, each where it is at its frame; yields the progress, returns a list."""
    empties, found = used(scene, scene.objects[reading.armature]), []
    before = scene.frame_current, scene.frame_subframe
    try:
        for empty in empties:
            layer = evaluation.view_layer(scene, empty)
            demand(
                evaluation.is_enabled(empty, layer),
                f"The waypoint '{empty.name}' or its collection is disabled in the viewport, so "
                "that Blender does not move it: enable it in the Outliner.",
            )
            frame = getattr(empty, PROPERTY).frame
            scene.frame_set(frame)
            place = np.array(empty.evaluated_get(layer.depsgraph).matrix_world)[:2, 3]
            x, y = (place * reading.metres_per_unit).tolist()
            time = _time(reading.motion, frame)
            found.append(Waypoint(time, (x, y), name=empty.name))
            yield len(found) / len(empties)
    finally:
        if empties:
            scene.frame_set(before[0], subframe=before[1])
    return found


def _time(motion, frame):
    """Seconds from the first sample of a motion to a frame of the scene."""
    return (frame - motion.first_frame) / (motion.frame_step * motion.rate)

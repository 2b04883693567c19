# SPDX-License-Identifier: GPL-3.0-or-later
"""The armature and the frames that the settings of a scene and the selection mean."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import bpy


def chosen_armature(context: "bpy.types.Context") -> "tuple[bpy.types.Object | None, str]":
    """The armature that the settings and the selection mean; (object, reason why there is none)."""
    scene = context.scene
    chosen = scene.poise.armature
    if chosen is not None:
        if chosen.name in scene.objects and chosen.type == "ARMATURE":
            return chosen, ""
        return None, f"'{chosen.name}' is not in this scene any more: choose another armature"
    armatures = [thing for thing in scene.objects if thing.type == "ARMATURE"]
    for_others = [thing for thing in armatures if thing.poise.role == "COLLIDER"]
    alone = len(armatures) - len(for_others) == 1  # then the others are there for it to meet
    for thing in _meant_by(context.active_object):
        if thing in armatures and not (alone and thing in for_others):
            return thing, ""
    if alone:
        return next(thing for thing in armatures if thing not in for_others), ""
    if len(armatures) == 1:
        return armatures[0], ""
    if armatures:
        return None, "The scene has several armatures: choose or select one"
    for thing in scene.objects:
        if _shows_linked_armature(thing):
            return None, (
                f"'{thing.name}' shows a character of another file, which cannot be animated here: "
                "select it and take Object > Library Override > Make"
            )
    return None, "The scene has no armature: add or import an animated character"


def _meant_by(active: "bpy.types.Object | None") -> "list[bpy.types.Object]":
    """What the active object may stand for: itself, whose skin it is, and whose waypoint or
    hold."""
    if active is None:
        return []
    directs = active.poise_waypoint.armature, active.poise_hold.armature
    found = active, active.find_armature(), *directs
    return [thing for thing in found if thing is not None]


def _shows_linked_armature(thing: "bpy.types.Object") -> bool:
    """Whether an object is an instance of a linked collection with an armature in it."""
    collection = thing.instance_collection if thing.instance_type == "COLLECTION" else None
    if collection is None or collection.library is None:
        return False
    return any(one.type == "ARMATURE" for one in collection.all_objects)


def chosen_frames(scene: "bpy.types.Scene") -> tuple[float, float] | None:
    """(first, last) frame that the settings of a scene name; None for all that is animated."""
    settings = scene.poise
    ranges = {
        "ACTION": None,
        "CUSTOM": (settings.first_frame, settings.last_frame),
        "SCENE": (scene.frame_start, scene.frame_end),
    }
    if scene.use_preview_range:
        ranges["SCENE"] = (scene.frame_preview_start, scene.frame_preview_end)
    return ranges[settings.frames]

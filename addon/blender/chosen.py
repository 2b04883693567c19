# SPDX-License-Identifier: GPL-3.0-or-later
"""The armature and the frames that the settings of a scene and the selection mean."""


def chosen_armature(context):
    """The armature that the settings and the selection mean; (object, reason why there is none)."""
    scene = context.scene
    chosen = scene.poise.armature
    if chosen is not None:
        if chosen.name in scene.objects and chosen.type == "ARMATURE":
            return chosen, ""
        return None, f"'{chosen.name}' is not in this scene any more: choose another armature"
    active = context.active_object
    for thing in (active, active.find_armature() if active else None):
        if thing is not None and thing.type == "ARMATURE":
            return thing, ""
    armatures = [thing for thing in scene.objects if thing.type == "ARMATURE"]
    if len(armatures) == 1:
        return armatures[0], ""
    if armatures:
        return None, "The scene has several armatures: choose or select one"
    return None, "The scene has no armature: add or import an animated character"


def chosen_frames(scene):
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

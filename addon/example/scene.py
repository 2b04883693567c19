# SPDX-License-Identifier: GPL-3.0-or-later
"""A scene to try Poise on: a character that waves, and a push that meets it on the way."""

import math

import bpy

from ..blender import compat
from . import actions, character
from .figure import build_armature, build_body

NAME = "Poise Example"
#: The push: begins at this frame, this strong [N], to its left and back [rad].
PUSH_FRAME, PUSH_FORCE, PUSH_AZIMUTH = 30, 160.0, math.radians(60)


def build(context):
    """Add the scene to the file, with character, actions, push, light and camera -> Scene.

    Other scenes stay as they are. It becomes the one that the window shows.
    """
    scene = bpy.data.scenes.new(NAME)
    context.window.scene = scene
    armature = build_armature("Character", character.bones())
    build_body(armature, character.HEIGHT)
    made = actions.add(armature)
    compat.assign(armature, *made[0])
    scene.render.fps, scene.render.fps_base = actions.FPS, 1.0
    scene.frame_start = 1
    scene.frame_end = max(int(action.frame_range[1]) for action, _ in made)
    scene.frame_set(scene.frame_start)
    _add_push(scene)
    _add_light(scene)
    _add_camera(scene)
    return scene


def _add_push(scene):
    pushes = scene.poise.pushes
    push = pushes.items.add()
    push.name = "Push"
    push.frame, push.strength, push.azimuth = PUSH_FRAME, PUSH_FORCE, PUSH_AZIMUTH


def _add_light(scene):
    light = bpy.data.objects.new("Sun", bpy.data.lights.new("Sun", "SUN"))
    light.data.energy = 3.0
    light.location = 4.0, -8.0, 6.0  # out of sight: where it stands makes no difference
    light.rotation_euler = math.radians(40), math.radians(20), 0
    scene.collection.objects.link(light)


def _add_camera(scene):
    camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
    camera.data.display_size = 0.2  # or its mark stands before the character in the first view
    camera.location = 1.5, -4.2, 1.4
    camera.rotation_euler = math.radians(83), 0, math.radians(19)
    scene.collection.objects.link(camera)
    scene.camera = camera

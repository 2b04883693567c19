# SPDX-License-Identifier: GPL-3.0-or-later
"""A scene to try Poise on: a character that waves, and a push that meets it on the way; or a shove
down a flight of stairs."""

import math
from itertools import pairwise, product

import bpy

from ..blender import compat
from . import actions, character
from .figure import build_armature, build_body, material

NAME = "Poise Example"
#: The push: begins at this frame, this strong [N], to its left and back [rad].
PUSH_FRAME, PUSH_FORCE, PUSH_AZIMUTH = 30, 160.0, math.radians(60)
#: The shove down the stairs: this strong [N], ahead [rad]; and a frame in which it lies still.
SHOVE_FORCE, SHOVE_AZIMUTH, SHOVE_END = 350.0, math.radians(-90), 192
#: The stairs: how many steps, how high and deep each is, how wide all are [m]; and the landing,
#: which begins behind the character and ends ahead of it.
STEPS, RISE, TREAD, WIDTH, BEHIND, AHEAD = 8, 0.17, 0.29, 3.0, 1.2, 0.35
#: Colour (linear RGB) of the stairs.
_STONE = (0.4, 0.38, 0.35)
#: Corners of a box's faces, the corners as `product` counts them.
_FACES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))


def build(context, stairs=False):
    """Add the scene to the file, with character, actions, push, light and camera -> Scene.

    stairs: whether it is shoved down a flight of stairs, and to fall, instead of being pushed on
    the floor. Other scenes stay as they are. It becomes the one that the window shows.
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
    if stairs:
        armature.location.z = STEPS * RISE
        _add_stairs(scene)
        _add_push(scene, "Shove", SHOVE_FORCE, SHOVE_AZIMUTH)
        scene.poise.when_it_falls, scene.poise.frames = "BRACE", "SCENE"
        scene.frame_end = max(scene.frame_end, SHOVE_END)
    else:
        _add_push(scene, "Push", PUSH_FORCE, PUSH_AZIMUTH)
    scene.frame_set(scene.frame_start)
    _add_light(scene)
    _add_camera(scene, stairs)
    return scene


def _add_push(scene, name, force, azimuth):
    push = scene.poise.pushes.items.add()
    push.name = name
    push.frame, push.strength, push.azimuth = PUSH_FRAME, force, azimuth


def _add_stairs(scene):
    """Colliders: a landing under the character, and steps ahead of it, down to the floor."""
    edges = [BEHIND, *(-AHEAD - TREAD * step for step in range(STEPS))]
    for number, (back, front) in enumerate(pairwise(edges)):
        name = f"Step {number}" if number else "Landing"
        half = WIDTH / 2, (back - front) / 2, (STEPS - number) * RISE / 2
        mesh = bpy.data.meshes.new(name)
        mesh.from_pydata(list(product(*((-side, side) for side in half))), [], _FACES)
        mesh.materials.append(material("stairs", _STONE))
        step = bpy.data.objects.new(name, mesh)
        step.location = 0.0, (back + front) / 2, half[2]
        step.poise.role = "COLLIDER"
        scene.collection.objects.link(step)


def _add_light(scene):
    light = bpy.data.objects.new("Sun", bpy.data.lights.new("Sun", "SUN"))
    light.data.energy = 3.0
    light.location = 4.0, -8.0, 6.0  # out of sight: where it stands makes no difference
    light.rotation_euler = math.radians(40), math.radians(20), 0
    scene.collection.objects.link(light)


def _add_camera(scene, stairs):
    camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
    camera.data.display_size = 0.2  # or its mark stands before the character in the first view
    if stairs:
        camera.location = 10.0, -5.9, 2.3
        camera.rotation_euler = math.radians(85), 0, math.radians(65)
    else:
        camera.location = 1.5, -4.2, 1.4
        camera.rotation_euler = math.radians(83), 0, math.radians(19)
    scene.collection.objects.link(camera)
    scene.camera = camera

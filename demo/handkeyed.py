# SPDX-License-Identifier: GPL-3.0-or-later
"""A hand-keyed character: nine poses with Bézier curves between them, careless of physics.

It shifts its weight, waves and squats; meanwhile the feet slide, float and tilt.
"""

import bpy

from poise.addon.example.character import bones, key
from poise.addon.example.figure import build_armature

FPS = 24
#: Poses, as `key` takes them.
POSES = (
    (1, (0, 0, 0), (0, 0, 2, 0), ((0, 0, 0), 0), ((0, 0, 0), 0), (8, 0, 0), 12),
    (
        16,
        (0.035, 0, -0.012),
        (1, 3, 3, -3),
        ((0.012, 0, 0), 0),
        ((0.03, -0.01, 0), 0),
        (14, -10, 0),
        20,
    ),
    (
        30,
        (0.05, 0.01, -0.016),
        (2, 6, 2, 5),
        ((0.03, -0.015, 0), 0),
        ((0.055, -0.035, 0.004), 2),
        (100, -85, 0),
        85,
    ),
    (
        39,
        (0.05, 0.01, -0.016),
        (2, 5, 2, 6),
        ((0.035, -0.02, 0), 0),
        ((0.06, -0.045, 0.006), 3),
        (104, -85, 0),
        45,
    ),
    (
        48,
        (0.05, 0.01, -0.016),
        (2, 6, 2, 4),
        ((0.035, -0.02, 0), 0),
        ((0.055, -0.05, 0.006), 3),
        (100, -85, 0),
        92,
    ),
    (
        57,
        (0.048, 0.01, -0.014),
        (2, 5, 2, 6),
        ((0.03, -0.015, 0), 0),
        ((0.05, -0.045, 0.004), 2),
        (104, -85, 0),
        48,
    ),
    (
        72,
        (0.005, 0, -0.01),
        (1, 0, 3, 0),
        ((0.0, 0.0, 0), 0),
        ((0.02, -0.01, 0), 0),
        (12, -10, 0),
        22,
    ),
    (
        88,
        (0, 0.075, -0.14),
        (16, -2, 16, 0),
        ((0.02, 0.025, 0.004), 2),
        ((-0.005, 0.02, 0.004), 2),
        (14, 0, -38),
        34,
    ),
    (108, (0, 0, 0), (0, 0, 2, 0), ((0.0, 0, 0), 0), ((0.0, 0.0, 0), 0), (8, 0, 0), 12),
)


def load():
    """The animated armature; the scene gets its frame rate and range."""
    scene = bpy.context.scene
    scene.render.fps, scene.render.fps_base = FPS, 1.0
    scene.frame_start, scene.frame_end = POSES[0][0], POSES[-1][0]
    armature = build_armature("character", bones())
    for pose in POSES:
        key(armature, *pose)
    armature.animation_data.action.name = "wave (hand-keyed)"
    scene.frame_set(1)
    return armature

# SPDX-License-Identifier: GPL-3.0-or-later
"""A made-up person in plain NumPy, so that the physics is tested without Blender; and the captured
walk, which is read with it."""

import numpy as np
import pytest

from poise.controller import Character, Motion
from poise.controller.control.legs import Legs
from poise.controller.geometry.rotations import (
    exponential,
    matrix_from_quaternion,
    quaternion_from_matrix,
)
from poise.controller.geometry.skeleton import LANDMARKS, PARENTS, SEGMENTS
from poise.controller.reference.gait import find_cycle
from poise.controller.simulation.world import World

#: Joint centres of an upright person of stature 1 [m], x forward, y left.
_UPRIGHT = {
    "pelvis": (0.0, 0.0, 0.56),
    "lumbar": (0.0, 0.0, 0.60),
    "neck": (0.0, 0.0, 0.82),
    "head_top": (0.0, 0.0, 1.0),
    "shoulder": (0.0, 0.11, 0.81),
    "elbow": (0.0, 0.11, 0.64),
    "wrist": (0.01, 0.11, 0.49),
    "fingertip": (0.01, 0.11, 0.39),
    "hip": (0.0, 0.055, 0.53),
    "knee": (0.005, 0.055, 0.285),
    "ankle": (-0.01, 0.055, 0.045),
    "ball": (0.07, 0.055, 0.02),
    "toe": (0.10, 0.055, 0.015),
}


def _make_motion(seconds=2.0, stature=1.8, rate=60.0, sway=None, name="person"):
    """Motion of a person who stands, with segments turned about their joints.

    sway: function of time (n,) to {segment: (n, 3) rotation vectors [rad], world axes}; feet stay
    where the chain takes them.
    """
    time = np.arange(round(seconds * rate) + 1) / rate
    turns = sway(time) if sway else {}
    count = len(time)
    rest = {}
    for landmark in LANDMARKS:
        base, _, side = landmark.rpartition("_")
        point = np.array(_UPRIGHT[landmark if landmark in _UPRIGHT else base], float)
        rest[landmark] = stature * point * [1, -1 if side == "r" else 1, 1]
    joint = {"pelvis": "pelvis", "trunk": "lumbar", "head": "neck"}
    own = {"pelvis": ["pelvis", "lumbar", "hip_l", "hip_r"], "head": ["head_top"]}
    own["trunk"] = ["neck", "shoulder_l", "shoulder_r"]
    for s in "lr":
        joint |= {f"upper_arm_{s}": f"shoulder_{s}", f"forearm_{s}": f"elbow_{s}"}
        joint |= {f"thigh_{s}": f"hip_{s}", f"shin_{s}": f"knee_{s}", f"foot_{s}": f"ankle_{s}"}
        own |= {f"upper_arm_{s}": [f"elbow_{s}"], f"thigh_{s}": [f"knee_{s}"]}
        own |= {f"forearm_{s}": [f"wrist_{s}", f"fingertip_{s}"], f"shin_{s}": [f"ankle_{s}"]}
        joint |= {f"toe_{s}": f"ball_{s}"}
        own |= {f"foot_{s}": [f"ball_{s}"], f"toe_{s}": [f"toe_{s}"]}
    frames = {}
    positions = {"pelvis": np.tile(rest["pelvis"], (count, 1))}
    for segment in SEGMENTS:
        parent = frames.get(PARENTS.get(segment), np.tile(np.eye(3), (count, 1, 1)))
        turn = matrix_from_quaternion(exponential(turns.get(segment, np.zeros((count, 3)))))
        frames[segment] = parent @ turn
        for landmark in own[segment]:
            offset = rest[landmark] - rest[joint[segment]]
            positions[landmark] = positions[joint[segment]] + frames[segment] @ offset
    return Motion(
        name,
        rate,
        np.stack([quaternion_from_matrix(frames[s]) for s in SEGMENTS], 1),
        np.stack([positions[n] for n in LANDMARKS], 1),
    )


def _arms_swing(time):
    """A motion that leaves the feet alone: both arms forward and back, the head nodding."""
    wave = np.sin(2 * np.pi * 0.5 * time)
    zero = np.zeros_like(time)
    swing = np.stack([zero, -0.6 * wave, zero], 1)
    return {
        "upper_arm_l": swing,
        "upper_arm_r": swing,
        "forearm_l": np.stack([zero, -0.4 * (1 - wave), zero], 1),
        "head": np.stack([zero, 0.2 * wave, zero], 1),
    }


@pytest.fixture(scope="session")
def make_motion():
    """The function make_motion(seconds, stature, rate, sway, name) -> Motion."""
    return _make_motion


@pytest.fixture
def arms_swing():
    """A sway for make_motion that leaves the feet alone."""
    return _arms_swing


@pytest.fixture
def standing():
    """A person who stands still."""
    return _make_motion()


@pytest.fixture
def swinging():
    """A person who stands and swings the arms."""
    return _make_motion(sway=_arms_swing)


@pytest.fixture
def adult(standing):
    """The body of that person."""
    return Character.from_motion(standing)


@pytest.fixture
def world(adult):
    """A World of that body, of 1000 Hz."""
    world = World(adult, 1000.0, Legs(adult).segments)
    yield world
    world.close()


#: The walk, read once for all tests.
_read = {}


@pytest.fixture
def walker(request):
    """(Character, Motion, Cycle) of the captured walk."""
    if not _read:
        bpy = request.getfixturevalue("blender")
        from poise.addon.rigs import reference

        armature = request.getfixturevalue("import_clip")("walk")
        motion = reference.read(bpy.context.scene, armature).motion
        character = Character.from_motion(motion)
        _read["walk"] = character, motion, find_cycle(character, motion)
    return _read["walk"]

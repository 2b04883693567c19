# SPDX-License-Identifier: GPL-3.0-or-later
"""The ten kinds of clip of SCA12, table 3: the nearest captured ones, and ones made here.

Captured clips are read through Blender, as Poise itself reads them.
"""

import contextlib
import importlib.util
import io
import os
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..controller import Settings
from ..controller.search.trial import NOISE, Problem
from ..controller.simulation.measures import MAXIMA, T_MAX
from .made import MADE

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Kind:
    """A row of SCA12, table 3: seconds, generations and minutes are the paper's; captured and
    made: names of our clips of that kind."""

    name: str
    seconds: float
    generations: int
    minutes: int
    captured: tuple = ()
    made: tuple = ()

    @property
    def clips(self):
        """Names of all clips of this kind."""
        return self.captured + self.made


KINDS = (
    Kind("stand", 10.5, 7, 3, ("stand",), ("stand_shift",)),
    Kind("arm", 11.0, 2, 1, ("arm",)),
    Kind("wave", 11.0, 2, 1, ("wave",)),
    Kind("squat", 9.2, 27, 16, ("squat",), ("squat_made",)),
    Kind("bow", 6.4, 37, 17, ("bow",)),
    Kind("hips", 20.2, 33, 28, ("hips_twist",), ("hula",)),
    Kind("single", 9.8, 62, 36, ("single", "knee_raises"), ("single_made",)),
    Kind("kick", 19.7, 61, 34, ("kick",), ("front_swing",)),
    Kind("side", 19.7, 307, 274, ("side_kick",), ("side_swing",)),
    Kind("dance", 17.0, 600, 329, ("dance",)),
)

#: Captured clips in place that are of none of these kinds.
OTHERS = ("jumping_jacks", "jog_in_place")

#: Largest errors that the paper allows the dance alone.
_DANCE_MAXIMA = {"stance_error": 1.0, "slide_error": 0.35}


def problem_of(name, balance, noise=NOISE):
    """The Problem of a clip as the paper poses it: 20 s, with its noise and its largest errors."""
    maxima = MAXIMA | (_DANCE_MAXIMA if name == "dance" else {})
    settings = Settings(balance=balance, duration=T_MAX, noise=noise, maxima=maxima)
    return Problem(read(name), settings=settings)


@cache
def read(name):
    """The Motion of a clip, made or captured."""
    return MADE[name]() if name in MADE else captured(name)


def captured(name):
    """The Motion of a captured clip. Raises ModuleNotFoundError without the bpy module."""
    from ..addon.rigs import reference

    scene = load(name)
    return reference.read(scene, scene.objects[0]).motion


def load(name):
    """An otherwise empty scene with the armature of a captured clip. Raises ModuleNotFoundError
    without the bpy module."""
    import bpy

    clip = next(clip for clip in _table() if clip.name == name)
    axes = {"axis_up": "Z", "axis_forward": "Y"} if clip.up == "Z" else {}
    bpy.ops.wm.read_factory_settings(use_empty=True)
    scene = bpy.context.scene
    scene.render.fps = clip.fps
    with contextlib.redirect_stdout(io.StringIO()):  # the importer talks
        bpy.ops.import_anim.bvh(filepath=str(clip.path), global_scale=clip.scale, **axes)
    return scene


def _table():
    """What the README of the captured clips lists, by the reader that the tests have."""
    folder = Path(os.environ.get("POISE_MOTIONS", ROOT.parent / "shared" / "motions"))
    if not folder.is_dir():
        sys.exit(f"No captured clips in '{folder}': set POISE_MOTIONS to their folder.")
    spec = importlib.util.spec_from_file_location("setup", ROOT / "tests" / "conftest.py")
    setup = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(setup)
    return setup._table(folder)

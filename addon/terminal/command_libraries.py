# SPDX-License-Identifier: GPL-3.0-or-later
"""Linked libraries that are missing: whether the shot can do without them."""

from contextlib import contextmanager
from pathlib import Path

import bpy

from ...controller.exceptions import MotionError, RigError
from ..blender import compat
from ..blender.files import FileError
from ..shots.shot import warnings_of
from .command_progress import say


def libraries():
    """Absolute paths of the library files that are linked, in order."""
    return sorted({_path(library) for library in bpy.data.libraries if not library.packed_file})


def used_files():
    """Paths of all files that what is open uses: libraries, images, texts, sounds, caches."""
    return bpy.utils.blend_paths(absolute=True)


def missing_libraries():
    """Those of them that are not there."""
    return [path for path in libraries() if not Path(path).exists()]


def warn(scene):
    """Tell of libraries that are missing, and of what else in a scene is not followed; the
    sentences."""
    warnings = [
        f"The linked library '{path}' is missing; the shot is simulated without what is in it."
        for path in missing_libraries()
    ]
    warnings += warnings_of(scene)
    for warning in warnings:
        say(warning)
    return warnings


@contextmanager
def libraries_blamed():
    """Where the armature or its animation cannot be found or read because the library that it is
    linked from is missing, say that. Raises FileError."""
    try:
        yield
    except (RigError, MotionError) as error:
        lost = sorted({_path(thing.library) for thing in _performers() if _is_lost(thing)})
        if not lost:
            raise
        raise FileError(
            f"The linked library '{lost[0]}' is missing, and the character or its animation comes "
            "from it: put it back, or relink it with File > External Data > Find Missing Files."
        ) from error


def _performers():
    """All that a character may be made of: objects, armatures and actions of the scene."""
    for thing in bpy.context.scene.objects:
        yield thing
        if thing.type == "ARMATURE":
            yield thing.data
            yield compat.assigned(thing)[0]


def _is_lost(thing):
    return thing is not None and thing.library is not None and thing.is_missing


def _path(library):
    return bpy.path.abspath(library.filepath, library=library.parent)

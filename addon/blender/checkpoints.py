# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the window keeps searches that have not ended, so that they can be resumed."""

import contextlib
import time
from pathlib import Path

import bpy

from ...controller.exceptions import CheckpointError
from . import preferences
from .folders import user_folder
from .locks import TakenError, claimed

#: Name of the folder in the one that the preferences name: there, too, nothing else is touched.
OWN = "poise_checkpoints"
#: A search that nobody has resumed for this long [s] is forgotten.
_LIFETIME = 30 * 24 * 3600.0


def folder():
    """The folder of checkpoints, made if need be: by the preferences. Raises CheckpointError."""
    chosen = preferences.of().cache
    if not chosen:
        return user_folder("tuning", "DATAFILES", "checkpoints", CheckpointError)
    path = Path(bpy.path.abspath(chosen)) / OWN
    if not path.is_absolute():
        raise CheckpointError(
            f"The cache folder '{chosen}' is no full path: choose another one in the preferences "
            "of Poise, or none."
        )
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise CheckpointError(
            f"The cache folder '{path}' cannot be made ({problem.strerror}): choose another one "
            "in the preferences of Poise, or none."
        ) from problem
    return path


def forget_old(directory):
    """Remove the checkpoints in a folder that nobody has resumed for 30 days."""
    for path in directory.glob("*.json*"):
        with contextlib.suppress(OSError):  # another Blender may be as tidy
            if time.time() - path.stat().st_mtime > _LIFETIME:
                path.unlink()


def kept():
    """Paths of all checkpoints. Raises CheckpointError."""
    return sorted(folder().glob("*.json"))


def size_words():
    """How many checkpoints there are, and how large, for a label; else why nobody knows."""
    try:
        sizes = [path.stat().st_size for path in kept()]
    except (CheckpointError, OSError) as error:
        return str(error)
    return f"{len(sizes)}, {sum(sizes) / 1e6:.1f} MB" if sizes else "None"


def clear():
    """Remove all checkpoints but those that another Blender is at work on -> how many are left.
    Raises CheckpointError."""
    left = 0
    for path in kept():
        try:
            with claimed(path, ""):
                path.unlink(missing_ok=True)
        except (TakenError, OSError):
            left += 1
    return left

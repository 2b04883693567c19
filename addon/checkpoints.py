# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the window keeps searches that have not ended, so that they can be resumed."""

import contextlib
import time
from pathlib import Path

import bpy

from ..controller.exceptions import CheckpointError

#: A search that nobody has resumed for this long [s] is forgotten.
_LIFETIME = 30 * 24 * 3600.0


def folder():
    """The user's folder of checkpoints, made if need be. Raises CheckpointError."""
    package = __package__.rpartition(".")[0]
    try:
        if package.startswith("bl_ext."):
            found = bpy.utils.extension_path_user(package, path="tuning", create=True)
        else:
            found = bpy.utils.user_resource("DATAFILES", path="poise/tuning", create=True)
    except OSError as error:
        raise CheckpointError(
            f"The folder '{error.filename}' for checkpoints cannot be made ({error.strerror}): "
            "make room, or change its rights."
        ) from error
    if not found:
        raise CheckpointError(
            "Blender gives no folder for checkpoints: check the rights of its settings."
        )
    return Path(found)


def forget_old(directory):
    """Remove the checkpoints in a folder that nobody has resumed for 30 days."""
    for path in directory.glob("*.json*"):
        with contextlib.suppress(OSError):  # another Blender may be as tidy
            if time.time() - path.stat().st_mtime > _LIFETIME:
                path.unlink()

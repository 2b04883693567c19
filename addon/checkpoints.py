# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the window keeps searches that have not ended, so that they can be resumed."""

import contextlib
import time

from ..controller.exceptions import CheckpointError
from .folders import user_folder

#: A search that nobody has resumed for this long [s] is forgotten.
_LIFETIME = 30 * 24 * 3600.0


def folder():
    """The user's folder of checkpoints, made if need be. Raises CheckpointError."""
    return user_folder("tuning", "DATAFILES", "checkpoints", CheckpointError)


def forget_old(directory):
    """Remove the checkpoints in a folder that nobody has resumed for 30 days."""
    for path in directory.glob("*.json*"):
        with contextlib.suppress(OSError):  # another Blender may be as tidy
            if time.time() - path.stat().st_mtime > _LIFETIME:
                path.unlink()

# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of Poise, and where Blender lets it keep what is the user's over updates of Poise."""

from pathlib import Path

import bpy

#: The folder of the package, and its name, which is another one in Blender.
ROOT = Path(__file__).resolve().parents[2]
PACKAGE = __package__.removesuffix(".addon.blender")


def user_folder(name, kind, purpose, error, create=True):
    """A folder of the user's.

    name: of the folder. kind: where it is if Poise is no extension, "CONFIG" or "DATAFILES".
    purpose: what it is for, in a word. error: class of what is raised if it cannot be made.
    """
    try:
        if PACKAGE.startswith("bl_ext."):
            found = bpy.utils.extension_path_user(PACKAGE, path=name, create=create)
        else:
            found = bpy.utils.user_resource(kind, path=f"poise/{name}", create=create)
    except OSError as problem:
        raise error(
            f"The folder '{problem.filename}' for {purpose} cannot be made ({problem.strerror}): "
            "make room, or change its rights."
        ) from problem
    if not found:
        raise error(f"Blender gives no folder for {purpose}: check the rights of its settings.")
    return Path(found)

# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests of the command line share."""

import os
from pathlib import Path

import bpy

from poise.addon.command import command_line


def poise(*arguments):
    """Run the command in this process; its exit status."""
    return command_line.main([str(argument) for argument in arguments])


def save(folder):
    """Save what is open as shot.blend."""
    path = Path(folder) / "shot.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path), compress=True)
    return path


def save_hanging(path):
    """Save what is open as a shot that is read without end: a cache of a mesh is a pipe."""
    cache, mesh = path.parent.parent / "pipe.mdd", bpy.data.meshes.new("hangs")
    mesh.from_pydata([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [], [(0, 1, 2)])
    made = bpy.data.objects.new("hangs", mesh)
    bpy.context.scene.collection.objects.link(made)
    made.modifiers.new("cache", "MESH_CACHE").filepath = str(cache)
    bpy.ops.wm.save_as_mainfile(filepath=str(path), copy=True)
    os.mkfifo(cache)


def listing(folder):
    """{relative name: content} of all files below a folder."""
    files = (path for path in Path(folder).rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}

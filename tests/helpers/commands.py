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
    """Save what is open as a shot that opens without end: it links a pipe, beside its folder."""
    library, mesh = path.parent.parent / "pipe.blend", bpy.data.meshes.new("linked")
    bpy.data.libraries.write(str(library), {mesh})
    with bpy.data.libraries.load(str(library), link=True) as (_, linked):
        linked.meshes = [mesh.name]
    bpy.context.scene.collection.objects.link(bpy.data.objects.new("hangs", *linked.meshes))
    bpy.ops.wm.save_as_mainfile(filepath=str(path), copy=True)
    library.unlink()
    os.mkfifo(library)


def listing(folder):
    """{relative name: content} of all files below a folder."""
    files = (path for path in Path(folder).rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}

# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests of the command line share."""

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


def listing(folder):
    """{relative name: content} of all files below a folder."""
    files = (path for path in Path(folder).rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}

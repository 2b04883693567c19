# SPDX-License-Identifier: GPL-3.0-or-later
"""Look into the folder of unfinished searches, and empty it."""

import bpy

from ...controller.exceptions import CheckpointError
from ..blender import checkpoints, session
from ..blender.translations import tr


class POISE_OT_open_cache(bpy.types.Operator):
    """Show the folder of unfinished searches."""

    bl_idname = "poise.open_cache"
    bl_label = "Open Cache Folder"
    bl_description = "Show the folder of unfinished searches in the system's file browser"
    bl_options = {"INTERNAL"}

    def execute(self, _context):
        """Open it."""
        try:
            folder = checkpoints.folder()
        except CheckpointError as error:
            self.report({"ERROR"}, tr(str(error)))
            return {"CANCELLED"}
        return bpy.ops.wm.path_open(filepath=str(folder))


class POISE_OT_clear_cache(bpy.types.Operator):
    """Remove all unfinished searches."""

    bl_idname = "poise.clear_cache"
    bl_label = "Clear Cache Folder"
    bl_description = "Remove all unfinished searches of all files: none of them can be resumed"
    bl_options = {"INTERNAL"}

    @classmethod
    def poll(cls, _context):
        """Needs some, and none at work."""
        why = session.busy()
        try:
            if not why and not checkpoints.kept():
                why = "No unfinished search is kept"
        except CheckpointError as error:
            why = str(error)
        if why:
            cls.poll_message_set(tr(why))
        return not why

    def invoke(self, context, event):
        """Ask."""
        return context.window_manager.invoke_confirm(self, event)

    def execute(self, _context):
        """Remove the files."""
        left = checkpoints.clear()
        if left:
            self.report({"WARNING"}, tr(f"Kept, since another Blender works on them: {left}"))
        return {"FINISHED"}


CLASSES = (POISE_OT_open_cache, POISE_OT_clear_cache)

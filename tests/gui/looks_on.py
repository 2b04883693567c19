# SPDX-License-Identifier: GPL-3.0-or-later
"""A startup script of Blender's, put there by starting.py: notes for three seconds, and as long as
Poise takes to be there, what of it is, writes that to the file that POISE_TEST_NOTES names, and
quits."""

import contextlib
import json
import os
import sys
import time

import bpy

EXTENSION, TAB = "bl_ext.user_default.poise", "Poise"
NOTES, SECONDS = os.environ["POISE_TEST_NOTES"], 3.0
#: Longer than this [s] even a busy machine does not take.
PATIENCE = 40.0


def sidebar():
    """The sidebar of the 3D view, open."""
    (area,) = (a for a in bpy.context.window_manager.windows[0].screen.areas if a.type == "VIEW_3D")
    area.spaces.active.show_region_ui = True
    return next(region for region in area.regions if region.type == "UI")


def age():
    """How long ago this process began [s]."""
    with open("/proc/self/stat") as file:
        began = int(file.read().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    with open("/proc/uptime") as file:
        return float(file.read().split()[0]) - began


class Notes:
    """What was seen, turn by turn of the main loop."""

    def __init__(self):
        self.found, self._first = {"gaps": []}, None

    def turn(self):
        """Look; returns when to look again [s]."""
        now, found = time.monotonic(), self.found
        if self._first is None:
            self._first = self._last = now
            found["start"] = age()
            found["first"] = [name for name in sys.modules if name.startswith(EXTENSION)]
            found["waits at first"] = hasattr(bpy.types, "POISE_PT_starting")
            self._sidebar = sidebar()
        if "tab" not in found:
            found["gaps"].append(now - self._last)
        self._last = now
        if "waits when chosen" not in found and found["waits at first"]:
            with contextlib.suppress(AttributeError, TypeError):  # until the sidebar is drawn
                self._sidebar.active_panel_category = TAB
                found["waits when chosen"] = hasattr(bpy.types, "POISE_PT_starting")
        there = hasattr(bpy.types.Scene, "poise")
        if there:
            found.setdefault("there", now - self._first)
        waits = hasattr(bpy.types, "POISE_PT_starting")
        if now - self._first < (PATIENCE if waits else SECONDS):
            return 0.0
        if "tab" not in found:
            found["tab"] = self._sidebar.active_panel_category
            found["waits"] = hasattr(bpy.types, "POISE_PT_starting")
            found["mode"] = there and bpy.context.scene.poise.mode
            bpy.context.workspace.use_filter_by_owner = True  # which hides all add-ons
            self._sidebar.tag_redraw()
            return 1.0
        found["tab of none"] = self._sidebar.active_panel_category
        with open(NOTES, "w") as file:
            json.dump(found, file)
        bpy.ops.wm.quit_blender()
        return None


def register():
    """Called by Blender."""
    bpy.app.timers.register(Notes().turn, persistent=True)


def unregister():
    """Called by Blender."""

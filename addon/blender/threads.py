# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes on beside Blender's own thread: long work, and importing Poise as Blender starts.

To import all of Poise takes a quarter of the time in which Blender opens its window. So that is
done once the window is drawn, and everything is registered when it is done. Until then the tab is
there, and empty. Whoever may ask for Poise at once gets it at once: without a window, a script or a
file on the command line (its drivers, handlers that read it), and where it is enabled later on.
"""

import contextlib
import os
import sys
import threading

import _bpy
import bpy

from .redrawing import redraw
from .translations import tr

#: The tab of the sidebar.
TAB = "Poise"
#: Look so often whether everything is imported [s].
_LOOK = 0.02
#: Drawing a panel asks for the interpreter a hundred times, and waits this long for each [s].
_SWITCH = 0.0002
#: What on a command line brings a script, or a file, and what ends the options that Blender reads.
_BRING, _END = ("-P", "--python", "-c", "--command", "--addons", "--open-last"), "--"


@contextlib.contextmanager
def switching_often():
    """While a thread works in Python: the window does not wait for it."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


def is_start():
    """Whether Blender is about to open its window, and nothing may ask for Poise before."""
    callers, frame = set(), sys._getframe()
    while frame is not None:
        callers.add(frame.f_code.co_name)
        frame = frame.f_back
    # A Mac opens a file once Blender runs, which its command line does not tell.
    tells = not bpy.app.background and sys.platform != "darwin"
    return tells and comes_later(sys.argv, callers)


def comes_later(arguments, callers):
    """Whether there is nobody to miss Poise before the window is there.

    arguments: the command line. callers: names of the functions that are at work; the one with
    which Blender enables add-ons as it starts is `load_scripts` or `load_scripts_extensions`.
    """
    own = arguments[1 : arguments.index(_END)] if _END in arguments else arguments[1:]
    asked = any(one.startswith(_BRING) or os.path.isfile(one) for one in own)
    return not asked and any(name.startswith("load_scripts") for name in callers)


class POISE_PT_starting(bpy.types.Panel):
    """The tab while Poise is imported: one that was in front stays there."""

    bl_label = TAB
    bl_space_type = "VIEW_3D"
    bl_region_type = "UI"
    bl_category = TAB

    problem = ""

    def draw(self, _context):
        """Nothing, or why there is nothing."""
        if self.problem:
            self.layout.label(text=tr(self.problem), icon="ERROR")


class Start:
    """Poise as Blender starts: imported in a thread once the window is drawn, then registered."""

    def __init__(self, load, register):
        """load: imports everything. register: what registers it, in Blender's own thread."""
        self._load, self._register = load, register
        self._owner = _bpy._bl_owner_id_get()  # which add-on a panel is of, for workspaces
        self._thread = self._error = None
        self._drawn = False  # the first turn comes before Blender first draws its window
        self._switching = contextlib.ExitStack()
        self.timer = self.turn  # one object, by which Blender knows it
        POISE_PT_starting.problem = ""
        bpy.utils.register_class(POISE_PT_starting)
        bpy.app.timers.register(self.timer, persistent=True)

    def turn(self):
        """What the timer does: returns when to look again [s], None once everything is there.

        Raises what importing raised: the tab says so, too."""
        if not self._drawn:
            self._drawn = True
            return 0.0
        if self._thread is None:
            self._switching.enter_context(switching_often())
            self._thread = threading.Thread(target=self._import)
            self._thread.start()
            return _LOOK
        if self._thread.is_alive():
            return _LOOK
        self._switching.close()
        if self._error is not None:
            POISE_PT_starting.problem = f"Poise did not start: {self._error}"
            redraw()
            raise self._error
        bpy.utils.unregister_class(POISE_PT_starting)
        before = _bpy._bl_owner_id_get()
        _bpy._bl_owner_id_set(self._owner)
        try:
            self._register()
        finally:
            _bpy._bl_owner_id_set(before)
        redraw()
        return None

    def _import(self):
        try:
            self._load()
        except Exception as error:
            self._error = error

    def give_up(self):
        """Poise is disabled before it is there."""
        self._switching.close()
        if bpy.app.timers.is_registered(self.timer):
            bpy.app.timers.unregister(self.timer)
        bpy.utils.unregister_class(POISE_PT_starting)

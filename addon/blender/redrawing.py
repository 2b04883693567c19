# SPDX-License-Identifier: GPL-3.0-or-later
"""Drawing again what shows results and settings: 3D views, panels, animation editors."""

import itertools
import time

import bpy

#: Of what a job draws, panels and animation editors are drawn so often [Hz], in turns.
_RATE = 5.0
_EDITORS = ("DOPESHEET_EDITOR", "GRAPH_EDITOR")


def redraw():
    """Draw all 3D views again, ghosts and panels, and the stance bars of the animation editors."""
    _redraw_areas("VIEW_3D", *_EDITORS)


def redraw_editors():
    """Draw the animation editors again, with their stance bars."""
    _redraw_areas(*_EDITORS)


def redraw_sidebars():
    """Draw the panels in all 3D views again, and nothing else."""
    _redraw_regions("UI")


def redraw_views():
    """Draw what all 3D views show again, without their panels."""
    _redraw_regions("WINDOW")


class Parts:
    """What `redraw` draws, one part in a turn of the window: without a graphics card all of it at
    once takes as long as three."""

    def __init__(self) -> None:
        self._rest, self._due = itertools.cycle((redraw_sidebars, redraw_editors)), 0.0
        self._seen = False

    def draw(self) -> None:
        """Draw the next part: 3D views, and now and then what stands beside them."""
        now = time.monotonic()
        self._seen = not self._seen or now < self._due
        if self._seen:
            redraw_views()
        else:
            next(self._rest)()
            self._due = now + 1 / _RATE


def _areas(*types):
    windows = bpy.context.window_manager.windows
    return [area for one in windows for area in one.screen.areas if area.type in types]


def _redraw_areas(*types):
    for area in _areas(*types):
        area.tag_redraw()


def _redraw_regions(kind):
    for area in _areas("VIEW_3D"):
        for region in area.regions:
            if region.type == kind:
                region.tag_redraw()


def on_change(_settings, _context):
    """`update` of a property that 3D views or animation editors show."""
    redraw()


def on_change_in_views(_settings, _context):
    """`update` of a property that 3D views show, and no panel."""
    redraw_views()


def on_change_in_sidebar(_settings, _context):
    """`update` of a property that panels alone show."""
    redraw_sidebars()

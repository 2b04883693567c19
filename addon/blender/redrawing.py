# SPDX-License-Identifier: GPL-3.0-or-later
"""Drawing again what shows results and settings: 3D views, panels, animation editors."""

import time

import bpy

from . import session

#: While a job is at work, animation editors are drawn again after this time [s]: it takes long.
_EDITORS_PERIOD = 0.5

_editors_drawn = 0.0


def redraw():
    """Draw all 3D views again, ghosts and panels, and the stance bars of the animation editors."""
    global _editors_drawn
    types, now = {"VIEW_3D"}, time.monotonic()
    if session.job() is None or now > _editors_drawn + _EDITORS_PERIOD:
        types |= {"DOPESHEET_EDITOR", "GRAPH_EDITOR"}
        _editors_drawn = now
    for window in bpy.context.window_manager.windows:
        for area in window.screen.areas:
            if area.type in types:
                area.tag_redraw()


def redraw_sidebars():
    """Draw the panels in all 3D views again, and nothing else."""
    _redraw_regions("UI")


def redraw_views():
    """Draw what all 3D views show again, without their panels."""
    _redraw_regions("WINDOW")


def _redraw_regions(kind):
    for window in bpy.context.window_manager.windows:
        for area in window.screen.areas:
            for region in area.regions if area.type == "VIEW_3D" else ():
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

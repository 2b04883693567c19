# SPDX-License-Identifier: GPL-3.0-or-later
"""What is drawn of who is played: where it is told to go, what pulls it, and figures of both."""

from math import cos, degrees, sin

import blf
import bpy
import numpy as np

from ..blender import session
from ..blender.translations import tr
from . import overlay
from .overlay_marks import arrows, ball, discs

#: Arrow of the heading: from so far before the body, so long for each m/s [m], at least so long.
_BEFORE, _PER_SPEED, _SHORTEST = 0.35, 0.6, 0.15
#: Arrow of a pull [N/m], and the ball where it is held [m].
_NEWTONS_PER_METRE, _BALL = 200.0, 0.03
_HEIGHT = 0.02  # [m] over the floor
_RING = 0.22, 0.26  # [m] where it is to go: inner and outer radius
_HEADING, _PULL = (0.35, 0.75, 1.0, 0.9), (1.0, 0.5, 0.1, 1.0)
_THROWN = (0.85, 0.8, 0.7, 1.0)
#: Letters, their distance from the edges, from line to line [pixels of a standard screen].
_TEXT, _LEFT, _BOTTOM, _LINE = 13, 24, 28, 20

_handles = []


def register():
    """Draw in all 3D views from now on."""
    for function, when in ((_draw, "POST_VIEW"), (_write, "POST_PIXEL")):
        _handles.append(bpy.types.SpaceView3D.draw_handler_add(function, (), "WINDOW", when))


def unregister():
    """Undo `register`."""
    while _handles:
        bpy.types.SpaceView3D.draw_handler_remove(_handles.pop(), "WINDOW")


def _playing():
    """The job of who plays in the scene that is drawn; None if nobody does."""
    job = session.job()
    here = job is not None and job.plays and job.scene_name == bpy.context.scene.name
    return job if here and job.is_played else None


def goal(job):
    """(3,) [m] where it is to go, on the floor; None for nowhere."""
    place = job.play.goal
    return None if place is None else np.array([*place, job.play.character.ground + _HEIGHT])


def marks(job):
    """(tail, tip) [m] of the arrow of where it is told to go, None for who is to stand or is down,
    and of the pull, None where nobody pulls."""
    play = job.play
    heading = pull = None
    root = play.centres[-1][0]
    speed, way = play.way
    if speed and not play.is_down:
        yaw = play.yaw + way
        ahead = np.array([cos(yaw), sin(yaw), 0.0])
        tail = [root[0], root[1], play.character.ground + _HEIGHT] + _BEFORE * ahead
        heading = tail, tail + (_SHORTEST + _PER_SPEED * speed) * ahead
    force = job.force()
    if force is not None:
        centre = job.held()
        pull = centre, centre + force / _NEWTONS_PER_METRE
    return heading, pull


def _draw():
    job = _playing()
    if job is None:
        return
    parts = []
    place = goal(job)
    if place is not None:
        parts.append((discs(place[None], *_RING), _HEADING))
    for ends, colour in zip(marks(job), (_HEADING, _PULL), strict=True):
        if ends is None:
            continue
        tail, tip = (np.asarray(end, float)[None] for end in ends)
        parts.append((arrows(tail, tip), colour))
        if colour is _PULL:
            parts.append((ball(tail[0], _BALL), colour))
    parts += ((ball(*one), _THROWN) for one in job.play.balls)
    context, reading = bpy.context, job.shown.reading
    offset = overlay.displacement(context.scene.poise, reading.motion)
    for (points, normals, triangles), colour in parts:
        colours = np.tile(colour, (len(points), 1))
        places = (points + offset) / reading.metres_per_unit
        found = overlay.batch(places, normals, colours, triangles)
        overlay.draw_mesh(context.region, context.region_data, found)


def lines(job):
    """What is written of who is played."""
    play = job.play
    told = f"{play.speed:.2f} m/s, {degrees(play.heading):.0f}°"
    if play.stands:
        told = tr("on the spot") if play.aside else tr("stand")
    if play.aside:
        aside, left = f"{abs(play.aside):.1f} m/s", play.aside > 0
        told += ", " + (tr(f"{aside} to its left") if left else tr(f"{aside} to its right"))
    found = [f"{play.seconds:.1f} s", tr(f"Told: {told}"), tr(f"Goes: {play.pace:.2f} m/s")]
    if (act := play.performs) is not None:
        found.append(tr(f"Performs: {act}"))
    if play.fell:
        found.append(tr("It fell: Backspace goes back, Enter keeps this, Esc discards it"))
    elif play.is_down and play.rises:
        found.append(tr("It is down: once it has got up it goes on as it is told"))
    elif play.is_down:
        found.append(tr("It lies: Backspace goes back, Enter keeps this, Esc discards it"))
    elif job.paused:
        found.append(tr("It waits: any key that leads it lets it go on"))
    return found


def _write():
    job = _playing()
    if job is None:
        return
    scale = bpy.context.preferences.system.ui_scale
    blf.size(0, _TEXT * scale)
    blf.color(0, 1.0, 1.0, 1.0, 1.0)
    blf.enable(0, blf.SHADOW)
    blf.shadow(0, 3, 0.0, 0.0, 0.0, 0.8)
    for number, line in enumerate(reversed(lines(job))):
        blf.position(0, _LEFT * scale, (_BOTTOM + number * _LINE) * scale, 0)
        blf.draw(0, line)
    blf.disable(0, blf.SHADOW)

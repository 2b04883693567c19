# SPDX-License-Identifier: GPL-3.0-or-later
"""Marks over the ghost in the 3D views: what acts on the simulated body, and how it balances.

All that is drawn is made by pure functions, in metres where the simulation took place.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import bpy
import numpy as np

from ...controller.geometry.rotations import matrix_from_quaternion
from ...controller.geometry.skeleton import SEGMENT_INDEX
from ...controller.geometry.stance import DOWN, LEFT, RIGHT
from ...controller.search.arrival import THERE
from ..settings.overlay_settings import MARKS
from . import overlay

#: Radius of an arrow's shaft, radius and length of its head [m]; short arrows have smaller ones.
SHAFT, HEAD_RADIUS, HEAD_LENGTH = 0.011, 0.034, 0.085
#: Radii [m]: the ball at the centre of mass, its plumb line and foot, and the edge of the support.
BALL, PLUMB, FOOT, EDGE = 0.042, 0.005, (0.0, 0.024), 0.006
#: Radii [m] of the dot under each foot, and of the ring for both.
DOT, RING = (0.0, 0.02), (0.026, 0.038)
#: Height of the pole at a waypoint [m].
POLE = 0.5
#: Length of a dash, and distance from dash to dash [m].
DASH, DASH_PERIOD = 0.045, 0.075
#: Flat marks lie so far above the floor, one over the other [m].
SUPPORT_HEIGHT, FOOT_HEIGHT, COP_HEIGHT = 0.002, 0.005, 0.008
#: Forces below this are not drawn [N].
LEAST_FORCE = 1.0
#: Opacity of the support polygon and of what was thrown; of all that is hidden by other things.
SUPPORT_OPACITY, THING_OPACITY, HIDDEN = 0.35, 0.75, 0.65

_UP = np.array([0.0, 0.0, 1.0])

_handle = None


def register():
    """Draw marks in all 3D views from now on."""
    global _handle
    _handle = bpy.types.SpaceView3D.draw_handler_add(_draw, (), "WINDOW", "POST_VIEW")


def unregister():
    """Undo `register`."""
    bpy.types.SpaceView3D.draw_handler_remove(_handle, "WINDOW")
    _batch.cache_clear()


@dataclass(frozen=True)
class Look:
    """What is drawn, and how. colours: ((name of the mark, (red, green, blue)), …)."""

    newtons_per_metre: float
    colours: tuple

    @classmethod
    def of(cls, settings):
        """The look that a scene's settings of overlays give."""
        shown = (name for name in MARKS if getattr(settings, name))
        colours = tuple((name, tuple(getattr(settings, f"{name}_colour"))) for name in shown)
        return cls(settings.newtons_per_metre, colours)

    def without_forces(self):
        """The same for a moment at which nothing is simulated, so that no force acts."""
        kept = tuple(one for one in self.colours if one[0] not in _FORCES)
        return replace(self, colours=kept)


def mesh(recording, sample, look):
    """All marks of a sample as one mesh: points and normals (V, 3), colours (V, 4), triangles
    (T, 3); None if there is nothing to see."""
    parts = []
    for name, colour in look.colours:
        for points, normals, triangles, opacity in _PARTS[name](recording, sample, look):
            colours = np.tile([*colour, opacity], (len(points), 1))
            parts.append((points, normals, colours, triangles))
    if not parts:
        return None
    points, normals, colours, triangles = zip(*parts, strict=True)
    starts = np.cumsum([0, *map(len, points[:-1])])
    faces = [part + start for part, start in zip(triangles, starts, strict=True)]
    return tuple(map(np.concatenate, (points, normals, colours, faces)))


# --- What is where -------------------------------------------------------------------------------


def contact_arrows(recording, sample, newtons_per_metre):
    """(tail, tip) [m] of an arrow for each foot, and each other segment, that is pressed: it starts
    at the centre of pressure."""
    feet = zip(recording.cops[sample], recording.contact_forces[sample], strict=True)
    others = ((press[3:], press[:3]) for press in recording.presses[sample])
    return [
        (cop, cop + force / newtons_per_metre)
        for cop, force in (*feet, *others)
        if np.isfinite(cop).all() and np.linalg.norm(force) >= LEAST_FORCE
    ]


def push_arrows(recording, sample, newtons_per_metre):
    """(tail, tip) [m] of an arrow for each push that acts in the interval around a sample: it ends
    at the point that is pushed."""
    found = []
    for push in recording.scenario.pushes:
        span = push_span(recording, push)
        begin, end = max(span[0], sample - 0.5), min(span[1], sample + 0.5)
        if begin >= end:
            continue
        force = push.force_at((begin + end) / 2 / recording.motion.rate)
        if np.linalg.norm(force) >= LEAST_FORCE:
            tip = _point_on_body(recording, sample, push.segment, push.point)
            found.append((tip - force / newtons_per_metre, tip))
    return found


def blow_arrows(recording, sample, newtons_per_metre):
    """(tail, tip) [m] of an arrow for each limb of another body that presses at a sample: it ends
    where the two touch."""
    return [
        (blow[3:] - blow[:3] / newtons_per_metre, blow[3:])
        for blow in recording.blows[sample]
        if np.linalg.norm(blow[:3]) >= LEAST_FORCE
    ]


def hold_arrows(recording, sample, newtons_per_metre):
    """(tail, tip) [m] of an arrow for each hold that pulls at a sample: it starts at the point that
    is held."""
    found = []
    pulled = zip(recording.scenario.holds, recording.hold_forces[sample], strict=True)
    for hold, force in pulled:
        if np.linalg.norm(force) >= LEAST_FORCE:
            tail = _point_on_body(recording, sample, hold.segment, hold.point)
            found.append((tail, tail + force / newtons_per_metre))
    return found


def push_span(recording, push):
    """(begin, end) of a push, counted in samples from the first."""
    rate = recording.motion.rate
    return push.start * rate, (push.start + push.duration) * rate


def centre_of_pressure(recording, sample):
    """(3,) centre of pressure [m] of both feet together; None in the air."""
    cops, loads = recording.cops[sample], recording.contact_forces[sample, :, 2]
    pressed = np.isfinite(cops).all(1) & (loads > 0)
    return loads[pressed] @ cops[pressed] / loads[pressed].sum() if pressed.any() else None


def floor_height(recording, sample):
    """Height of what the lower foot stands on [m]; in the air, of the floor."""
    cops = recording.cops[sample]
    pressed = np.isfinite(cops).all(1)
    return float(cops[pressed, 2].min()) if pressed.any() else recording.character.ground


def support_polygon(recording, sample):
    """(m, 3) corners [m] of the convex hull of what stands of the soles, counter-clockwise as seen
    from above; none in flight.

    Of a foot that stands, the parts count that are down: its heel, its ball, the tip of its toes.
    """
    stance, one = int(recording.stance[sample]), slice(sample, sample + 1)
    standing = np.array([stance & LEFT, stance & RIGHT], bool)
    parts = (recording.parts_down(one)[0] >= DOWN) & standing[:, None]
    points = recording.sole_corners(one)[0][np.repeat(parts, 2, axis=1)]
    return points[hull(points[:, :2])]


def hull(points):
    """Indices of the corners of the convex hull of (n, 2) points, counter-clockwise."""
    order = np.lexsort(points.T[::-1]).tolist()
    if len(order) < 3:
        return np.array(order, int)

    def chain(indices):
        kept = []
        for i in indices:
            while len(kept) > 1 and _turn(points[kept[-2]], points[kept[-1]], points[i]) <= 1e-12:
                kept.pop()
            kept.append(i)
        return kept[:-1]

    return np.array(chain(order) + chain(order[::-1]), int)


def _turn(a, b, c):
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _point_on_body(recording, sample, segment, point):
    """(3,) world position [m] of a point (3,) in a segment's frame, None for its centre of mass."""
    index = SEGMENT_INDEX[segment]
    centre = recording.body_positions[sample, index]
    if point is None:
        return centre
    frame = matrix_from_quaternion(recording.body_rotations[sample, index])
    return centre + frame @ (np.asarray(point, float) - recording.character.centres[index])


# --- Marks: lists of (points, normals, triangles, opacity) ---------------------------------------


def _forces(recording, sample, look):
    found = contact_arrows(recording, sample, look.newtons_per_metre)
    return _arrows(found + hold_arrows(recording, sample, look.newtons_per_metre))


def _pushes(recording, sample, look):
    found = push_arrows(recording, sample, look.newtons_per_metre)
    return _arrows(found + blow_arrows(recording, sample, look.newtons_per_metre))


def _arrows(ends):
    return [(*arrows(*np.swapaxes(ends, 0, 1)), 1.0)] if ends else []


def _cop(recording, sample, _look):
    both = centre_of_pressure(recording, sample)
    if both is None:
        return []
    cops, above = recording.cops[sample], COP_HEIGHT * _UP
    dots = cops[np.isfinite(cops).all(1)]
    return [(*discs(both[None] + above, *RING), 1.0), (*discs(dots + above, *DOT), 1.0)]


def _com(recording, sample, _look):
    com = recording.com[sample]
    foot = np.array([*com[:2], floor_height(recording, sample) + FOOT_HEIGHT])
    drops = np.arange(BALL, com[2] - foot[2], DASH_PERIOD)[:, None]
    ends = np.minimum(drops + DASH, com[2] - foot[2])
    dashes = rods(com - drops * _UP, com - ends * _UP, PLUMB)
    return [(*part, 1.0) for part in (ball(com, BALL), dashes, discs(foot[None], *FOOT))]


def _support(recording, sample, _look):
    if recording.is_down(sample):
        return []
    points = support_polygon(recording, sample)
    if len(points) < 2:
        return []
    uneven = recording.scenario.colliders
    floor = floor_height(recording, sample) if uneven else recording.character.ground
    points[:, 2] = np.maximum(points[:, 2], floor) + SUPPORT_HEIGHT
    fan = np.arange(1, len(points) - 1)
    triangles = np.stack([0 * fan, fan, fan + 1], 1)
    area = (points, np.tile(_UP, (len(points), 1)), triangles, SUPPORT_OPACITY)
    return [area, (*rods(points, np.roll(points, -1, 0), EDGE), 1.0)]


def _waypoints(recording, sample, _look):
    found = recording.reference.waypoints
    if not found:
        return []
    floor = recording.character.ground + COP_HEIGHT
    places = np.array([[*one.place, floor] for one in found])
    left = np.pad(recording.missed(), ((0, 0), (0, 1)))
    hips = (places - left)[np.isfinite(left).all(1)]
    poles = rods(places, places + POLE * _UP, PLUMB)
    rings = discs(places, THERE, THERE + PLUMB)
    return [(*part, 1.0) for part in (poles, rings, discs(hips, 0.0, DOT[1] / 2))]


def _things(recording, sample, _look):
    found = []
    positions, turns = recording.thing_positions[sample], recording.thing_rotations[sample]
    for thing, position, turn in zip(recording.scenario.things, positions, turns, strict=True):
        if np.isfinite(position).all():
            points, normals, triangles = _solid_mesh(thing.solid)
            frame = matrix_from_quaternion(turn)
            found.append((points @ frame.T + position, normals @ frame.T, triangles, THING_OPACITY))
    return found


#: Marks of forces: they act only where something is simulated.
_FORCES = "pushes", "forces", "cop"
_PARTS = {
    "pushes": _pushes,
    "waypoints": _waypoints,
    "things": _things,
    "forces": _forces,
    "cop": _cop,
    "com": _com,
    "support": _support,
}


# --- Solids: points and normals (V, 3), triangles (T, 3) -----------------------------------------


def arrows(tails, tips):
    """Arrows from (n, 3) to (n, 3) [m]."""
    length = np.linalg.norm(tips - tails, axis=1)
    size = np.minimum(1.0, 0.5 * length / HEAD_LENGTH)
    none, neck = np.zeros(len(length)), length - size * HEAD_LENGTH
    along = [none, none, neck, neck, length]
    radius = [none, size * SHAFT, size * SHAFT, size * HEAD_RADIUS, none]
    return _turned(tails, tips, np.array([along, radius]).T, 16)


def rods(starts, ends, radius):
    """Cylinders from (n, 3) to (n, 3) [m]."""
    length = np.linalg.norm(ends - starts, axis=1)
    none, full = np.zeros(len(length)), np.full(len(length), radius)
    profiles = np.array([[none, none, length, length], [none, full, full, none]]).T
    return _turned(starts, ends, profiles, 8)


def discs(centres, inner, outer):
    """Rings that lie flat about (n, 3) [m]; without a hole if the inner radius is 0."""
    profile = np.array([[0.0, outer], [0.0, inner]])
    return _turned(centres, centres + _UP, np.tile(profile, (len(centres), 1, 1)), 24)


def ball(centre, radius):
    """A sphere about (3,) [m]."""
    points, normals = overlay.solid("sphere", (radius,))
    return points + centre, normals, overlay.triangles(1)


def _turned(starts, ends, profiles, count):
    """What lines through (n, k, 2) points, distance along the axis and radius [m], become when
    they are turned about the axes from (n, 3) to (n, 3); outside is to the right of the lines."""
    axes = (ends - starts) / np.linalg.norm(ends - starts, axis=1, keepdims=True)
    across = np.cross(axes, np.eye(3)[np.abs(axes).argmin(1)])
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    turns = (2 * np.pi * np.arange(count) / count)[:, None]
    round_about = np.cos(turns) * across[:, None] + np.sin(turns) * np.cross(axes, across)[:, None]
    # From here on: solids, bands between two points, their two ends, turns, coordinates.
    axes, round_about = axes[:, None, None, None], round_about[:, None, None]
    bands = np.stack([profiles[:, :-1], profiles[:, 1:]], 2)[..., None, None, :]
    rise, spread = np.moveaxis(bands[:, :, 1:] - bands[:, :, :1], -1, 0)
    normals = (rise * round_about - spread * axes) / np.hypot(rise, spread)
    points = starts[:, None, None, None] + bands[..., 0] * axes + bands[..., 1] * round_about
    here = np.arange(count)
    beside = np.roll(here, -1)
    quads = np.stack([here, beside, beside + count, here, beside + count, here + count], 1)
    first = 2 * count * np.arange(points.shape[0] * points.shape[1])
    triangles = quads.reshape(-1, 3) + first[:, None, None]
    normals = np.broadcast_to(normals, points.shape)
    return points.reshape(-1, 3), normals.reshape(-1, 3), triangles.reshape(-1, 3)


def _solid_mesh(solid):
    """Of a scenario's Solid, in its own frame."""
    if solid.kind != "hull":
        return (*overlay.solid(solid.kind, solid.size), overlay.triangles(1))
    corners = np.asarray(solid.vertices, float)[np.asarray(solid.faces, int)]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    # The faces may be in either direction, but the origin is inside.
    inward = np.einsum("ti,ti->t", normals, corners[:, 0]) < 0
    corners[inward] = corners[inward, ::-1]
    normals[inward] *= -1
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    triangles = np.arange(3 * len(corners)).reshape(-1, 3)
    return corners.reshape(-1, 3), np.repeat(normals, 3, axis=0), triangles


# --- Drawing -------------------------------------------------------------------------------------


def _draw():
    """Draw the marks of all ghosts of the scene in the 3D view that is being drawn."""
    context = bpy.context
    settings = context.scene.poise
    look, shown = Look.of(settings.overlays), context.space_data.overlay.show_overlays
    if settings.ghost == "HIDDEN" or not (look.colours and shown):
        return
    for shot, sample in overlay.recorded(context.scene):
        offset = tuple(overlay.displacement(settings, shot.reading.motion))
        seen = look.without_forces() if overlay.rests(context.scene, shot) else look
        found = _batch(shot.recording, sample, seen, offset, shot.reading.metres_per_unit)
        if found is not None:
            overlay.draw_mesh(context.region, context.region_data, found, hidden=HIDDEN)


@lru_cache(maxsize=4)
def _batch(recording, sample, look, offset, unit):
    """What `overlay.draw_mesh` needs for the marks of a sample; a sample never changes again."""
    found = mesh(recording, sample, look)
    if found is None:
        return None
    points, *others = found
    return overlay.batch((points + offset) / unit, *others)

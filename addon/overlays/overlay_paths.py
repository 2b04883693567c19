# SPDX-License-Identifier: GPL-3.0-or-later
"""What a result leaves behind in the 3D views: the trail of its centre of mass, arcs of its flights
and its footprints; fainter, those of the animation, where that is.

All of a result is one batch of flat triangles, made once by pure functions in metres. The shader
makes lines and dots as wide as they shall be on the screen, and knows which frame is the present.
"""

from functools import lru_cache

import bpy
import gpu
import numpy as np
from gpu_extras.batch import batch_for_shader
from mathutils import Vector

from ...controller.body import paths
from ...controller.geometry.stance import BALL, HEEL, SOLE
from ..settings.overlay_settings import PATHS
from . import overlay

#: Widths of the trail, of arcs, of what is between arc and trail, of footprints; of a dot [pixels].
TRAIL, ARC, RIB, EDGE, DOT = 2.0, 2.5, 1.0, 2.0, 5.0
#: Opacity of the animation's paths, of ribs, and of the filling of a footprint.
FAINT, RIBS, FILLING = 0.5, 0.6, 0.35
#: Opacity of what is ahead of the present frame, and of what is so long behind it [s].
AHEAD, OLD, AGE = 0.3, 0.6, 4.0
#: Opacity of what other things hide.
HIDDEN = 0.5
#: Every frame has a dot where they are so far apart on average [pixels], else each fifth; none
#: where those are closer still.
APART, FIFTH, CLOSE = 7.0, 5, 3.0
#: Footprints of the animation, and of the result, lie so far above the floor [m].
HEIGHTS = (0.003, 0.005)
#: A left sole: from heel (0) over ball (1) to tip (2), and aside in half widths, outside positive.
OUTLINE = np.array(
    [
        *[(0.0, 0.0), (0.02, 0.4), (0.1, 0.68), (0.25, 0.8), (0.5, 0.82), (0.8, 0.95)],
        *[(1.0, 1.0), (1.3, 0.92), (1.6, 0.7), (1.85, 0.35), (1.97, -0.05)],
        *[(2.0, -0.4), (1.93, -0.72), (1.65, -0.92), (1.3, -1.0), (1.0, -0.98)],
        *[(0.8, -0.8), (0.6, -0.5), (0.42, -0.45), (0.25, -0.62), (0.1, -0.6), (0.02, -0.35)],
    ]
)
#: What of it stands.
_ZONES = {HEEL: (0.0, 0.4), SOLE: (0.0, 2.0), BALL: (0.9, 2.0)}

_handle = None


def register():
    """Draw paths in all 3D views from now on."""
    global _handle
    _handle = bpy.types.SpaceView3D.draw_handler_add(_draw, (), "WINDOW", "POST_VIEW")


def unregister():
    """Undo `register`."""
    bpy.types.SpaceView3D.draw_handler_remove(_handle, "WINDOW")
    _batch.cache_clear()


def colours_of(settings):
    """((name of the path, its colours), …) of what a scene's settings of overlays show."""
    own = {name: (f"{name}_colour",) for name in PATHS}
    own["footprints"] = ("left_colour", "right_colour")
    return tuple(
        (name, tuple(tuple(getattr(settings, colour)) for colour in own[name]))
        for name in PATHS
        if getattr(settings, name)
    )


def mesh(recording, colours, offset=(0.0, 0.0, 0.0)):
    """All paths of a recording as one mesh, the result's displaced by (3,) [m]: {"pos", "next":
    (V, 3) [m], "color": (V, 4), "place": (V, 4)}; None if there is nothing to see.

    next: where the line goes on that a point is on; of dots and fillings the point itself. place:
    how far ahead and aside of it a corner is, in half widths; its frame; half its width [pixels].
    """
    parts = []
    for path in (paths.Animated(recording), paths.Performed(recording)):
        done = isinstance(path, paths.Performed)
        shift, opacity = (offset, 1.0) if done else ((0.0, 0.0, 0.0), FAINT)
        for name, own in colours:
            for part in _PARTS[name](recording, path, done, own):
                part["pos"], part["next"] = part["pos"] + shift, part["next"] + shift
                part["color"] = part["color"] * [1, 1, 1, opacity]
                parts.append(part)
    if not parts:
        return None
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def spacing(recording):
    """Mean way of the centre of mass from frame to frame [m]."""
    steps = np.linalg.norm(np.diff(recording.com, axis=0), axis=1)
    return float(steps.mean() / recording.motion.frame_step) if len(steps) else 0.0


def dots_at(pixels):
    """At which frames there are dots that are so far apart on average [pixels]: 1 for every one,
    5 for each fifth, -1 for none."""
    if pixels >= APART:
        return 1
    return FIFTH if FIFTH * pixels >= CLOSE else -1


# --- Paths: lists of parts of the mesh -----------------------------------------------------------


def _trail(recording, path, done, colours):
    com, frames = path.com, recording.motion.frame(np.arange(len(path.com)))
    found = [lines(com[:-1], com[1:], frames[:-1], frames[1:], colours[0], TRAIL)]
    if done:
        whole = np.abs(frames - np.round(frames)) < 1e-3
        found.append(dots(com[whole], frames[whole], colours[0], DOT))
    return found


def _arcs(recording, path, _done, colours):
    found, com = [], path.com
    for start, stop in path.flights:
        way = com[start:stop]
        arc = paths.fall(way[0], way[-1], len(way) - 1, recording.motion.rate)
        frames = recording.motion.frame(np.arange(start, stop))
        found += [
            lines(arc[:-1], arc[1:], frames[:-1], frames[1:], colours[0], ARC),
            lines(way, arc, frames, frames, (*colours[0], RIBS), RIB),
        ]
    return found


def _footprints(recording, path, done, colours):
    found = []
    level = None if recording.scenario.colliders else recording.character.ground
    for footprint in path.footprints:
        edge = sole(footprint, level) + [0.0, 0.0, HEIGHTS[done]]
        frame = recording.motion.frame(footprint.sample)
        frames, colour = np.full(len(edge), frame), colours[footprint.foot]
        found.append(lines(edge, np.roll(edge, -1, 0), frames, frames, colour, EDGE))
        if done:
            found.append(_filled(edge, frame, (*colour, FILLING)))
    return found


def sole(footprint, level=None):
    """(n, 3) outline [m] of what stands of a sole. level: height of a floor [m] that it is put on,
    None to leave it where it is."""
    along, aside = OUTLINE.T
    along = np.clip(along, *_ZONES[footprint.phase])
    ends = footprint.corners.reshape(3, 2, 3)  # heel, ball, tip; the right side, the left one
    share = np.maximum(0, 1 - np.abs(along[:, None] - np.arange(3)))
    outward = -1 if footprint.foot else 1
    half = outward * (ends[:, 1] - ends[:, 0]) / 2
    edge = share @ ends.mean(1) + aside[:, None] * (share @ half)
    if level is not None:
        edge[:, 2] = level
    return edge


_PARTS = {"trail": _trail, "arcs": _arcs, "footprints": _footprints}


# --- Parts of the mesh, three vertices for each triangle -----------------------------------------


def lines(starts, ends, frames, end_frames, colour, width):
    """Lines from (n, 3) to (n, 3) [m] at (n,) frames, so wide on the screen [pixels]."""
    # At its end a line goes on where it came from, so that the sides are the other way round.
    ahead, back = ([0.0, 1.0], [0.0, -1.0])
    corners = [(0, ahead), (0, back), (1, ahead), (0, ahead), (1, ahead), (1, back)]
    points, others, times = (starts, ends), (ends, starts), (frames, end_frames)
    return _part(
        np.stack([points[end] for end, _ in corners], 1),
        np.stack([others[end] for end, _ in corners], 1),
        np.array([side for _, side in corners]),
        np.stack([times[end] for end, _ in corners], 1),
        colour,
        width,
    )


def dots(points, frames, colour, width):
    """Dots at (n, 3) [m] and (n,) frames, so wide on the screen [pixels]."""
    corners = np.array([(-1.0, -1), (1, -1), (1, 1), (-1, -1), (1, 1), (-1, 1)])
    six = np.repeat(points[:, None], 6, axis=1)
    return _part(six, six, corners, np.repeat(frames[:, None], 6, axis=1), colour, width)


def _filled(edge, frame, colour):
    """What an outline (n, 3) [m] encloses that its middle sees all of."""
    middle = np.broadcast_to(edge.mean(0), edge.shape)
    points = np.stack([middle, edge, np.roll(edge, -1, 0)], 1)
    return _part(points, points, np.zeros((3, 2)), np.full((len(edge), 3), frame), colour, 0.0)


def _part(points, others, corners, frames, colour, width):
    """points, others: (n, k, 3); corners: (k, 2); frames: (n, k)."""
    place = np.empty((*frames.shape, 4))
    place[..., :2], place[..., 2], place[..., 3] = corners, frames, width / 2
    paint = np.ones(4)
    paint[: len(colour)] = colour
    return {
        "pos": points.reshape(-1, 3),
        "next": others.reshape(-1, 3),
        "color": np.tile(paint, (frames.size, 1)),
        "place": place.reshape(-1, 4),
    }


# --- Drawing -------------------------------------------------------------------------------------

_VERTEX = """
void main()
{
  vec4 here = matrix * vec4(pos, 1.0);
  vec4 there = matrix * vec4(next, 1.0);
  float width = place.w * screen.z;
  corner = vec3(place.xy, width);
  float age = time.x - place.z;
  float seen = age < -0.5 ? time.y : mix(1.0, time.w, clamp(age / time.z, 0.0, 1.0));
  shade = vec4(color.rgb, color.a * seen);
  gl_Position = here;
  if (width == 0.0) {
    return;
  }
  float every = screen.w;
  float apart = mod(place.z + 0.01, max(every, 1.0));
  bool alone = distance(pos, next) == 0.0;
  if ((alone && (every < 0.0 || apart > 0.02)) || min(here.w, there.w) <= 0.0) {
    gl_Position = vec4(2.0, 2.0, 2.0, 1.0);
    return;
  }
  vec2 along = (there.xy / there.w - here.xy / here.w) * screen.xy;
  along = alone || length(along) < 1e-6 ? vec2(1.0, 0.0) : normalize(along);
  vec2 aside = vec2(-along.y, along.x);
  gl_Position.xy += (place.x * along + place.y * aside) * width * here.w / screen.xy;
}
"""

_FRAGMENT = """
void main()
{
  float soft = clamp((1.0 - length(corner.xy)) * corner.z + 0.5, 0.0, 1.0);
  result = vec4(shade.rgb, shade.a * opacity * (corner.z > 0.0 ? soft : 1.0));
}
"""


@lru_cache
def _shader():
    """screen: half the size of the region [pixels], pixels per standard one, `dots_at`. time: the
    present frame, AHEAD, how long frames take to be old, OLD."""
    between = gpu.types.GPUStageInterfaceInfo("poise_paths")
    between.smooth("VEC4", "shade")
    between.smooth("VEC3", "corner")
    info = gpu.types.GPUShaderCreateInfo()
    info.push_constant("MAT4", "matrix")
    info.push_constant("VEC4", "screen")
    info.push_constant("VEC4", "time")
    info.push_constant("FLOAT", "opacity")
    info.vertex_in(0, "VEC3", "pos")
    info.vertex_in(1, "VEC3", "next")
    info.vertex_in(2, "VEC4", "color")
    info.vertex_in(3, "VEC4", "place")
    info.vertex_out(between)
    info.fragment_out(0, "VEC4", "result")
    info.vertex_source(_VERTEX)
    info.fragment_source(_FRAGMENT)
    return gpu.shader.create_from_info(info)


def _draw():
    """Draw the paths of all results of the scene in the 3D view that is being drawn."""
    context = bpy.context
    scene = context.scene
    colours = colours_of(scene.poise.overlays)
    shown = context.space_data.overlay.show_overlays
    if scene.poise.ghost == "HIDDEN" or not (colours and shown):
        return
    for shot in overlay.finished(scene):
        recording, unit = shot.recording, shot.reading.metres_per_unit
        offset = tuple(overlay.displacement(scene.poise, shot.reading.motion))
        found = _batch(recording, len(recording), colours, offset, unit)
        if found is not None:
            batch, step = found
            sample = overlay.sample_at(shot, scene.frame_current_final)
            centre = (recording.com[sample] + offset) / unit
            every = dots_at(step * _pixels_per_unit(context, centre))
            _draw_batch(context, batch, recording.motion, every)


@lru_cache(maxsize=4)
def _batch(recording, _count, colours, offset, unit):
    """The paths of a result on the graphics card, and the mean way between frames [scene units]."""
    found = mesh(recording, colours, offset)
    if found is None:
        return None
    found["pos"], found["next"] = found["pos"] / unit, found["next"] / unit
    return batch(found), spacing(recording) / unit


def batch(arrays):
    """What `mesh` gives, on the graphics card."""
    content = {name: np.ascontiguousarray(array, np.float32) for name, array in arrays.items()}
    return batch_for_shader(_shader(), "TRIS", content)


def _pixels_per_unit(context, point):
    """How large a scene unit at (3,) [scene units] is on the screen [pixels]."""
    view = context.region_data
    x, y, z = point
    depth = (view.perspective_matrix @ Vector((x, y, z, 1.0))).w
    return view.window_matrix[0][0] * context.region.width / 2 / max(depth, 1e-6)


def _draw_batch(context, batch, motion, every):
    scale, region = context.preferences.system.ui_scale, context.region
    present = context.scene.frame_current_final
    shader, state = _shader(), gpu.state
    shader.bind()
    shader.uniform_float("matrix", context.region_data.perspective_matrix)
    shader.uniform_float("screen", (region.width / 2, region.height / 2, scale, every))
    age = AGE * motion.rate * motion.frame_step
    shader.uniform_float("time", (present, AHEAD, age, OLD))
    before = state.depth_test_get(), state.depth_mask_get(), state.blend_get()
    state.blend_set("ALPHA")
    state.depth_mask_set(False)
    for test, opacity in (("GREATER", HIDDEN), ("LESS_EQUAL", 1.0)):
        state.depth_test_set(test)
        shader.uniform_float("opacity", opacity)
        batch.draw(shader)
    state.depth_test_set(before[0])
    state.depth_mask_set(before[1])
    state.blend_set(before[2])

# SPDX-License-Identifier: GPL-3.0-or-later
"""The ghost: the simulated body, drawn over or beside the original in the 3D views.

While a simulation runs the ghost shows its newest sample, afterwards the one of the current frame.
Only what is drawn changes, nothing in the scene.
"""

from functools import lru_cache

import bpy
import gpu
import numpy as np
from gpu_extras.batch import batch_for_shader

from ...controller.geometry.rotations import matrix_from_quaternion
from ...controller.geometry.skeleton import LANDMARK_INDEX, SEGMENT_INDEX
from ..blender import preferences, session
from ..rigs import bake_target, strips
from ..settings import takes

#: Colour (red, green, blue, opacity) of the outline, as on the screen.
OUTLINE = (0.03, 0.10, 0.18, 0.85)
#: Opacity of what is hidden behind or inside other things, relative to what is not.
HIDDEN = 0.3
#: Width of the outline [pixels].
LINE = 1.5
#: Rounding of boxes relative to their smallest half extent; points per quarter of a circle.
ROUNDING, POINTS = 0.45, 6

_handle = None


def register():
    """Draw ghosts in all 3D views from now on."""
    global _handle
    _handle = bpy.types.SpaceView3D.draw_handler_add(_draw, (), "WINDOW", "POST_VIEW")


def unregister():
    """Undo `register`."""
    bpy.types.SpaceView3D.draw_handler_remove(_handle, "WINDOW")
    _batch.cache_clear()


# --- What to draw --------------------------------------------------------------------------------


def ghosts(scene):
    """What is to be drawn in a scene: a list of (shot, index of the sample)."""
    shown = [*_running(scene), *((shot, None) for shot in finished(scene))]
    frame = scene.frame_current_final
    return [(shot, sample_at(shot, frame) if at is None else at) for shot, at in shown]


def recorded(scene):
    """The same without who is played, of whom poses alone are known."""
    played = _played(scene)
    return [(shot, at) for shot, at in ghosts(scene) if shot is not played]


def finished(scene):
    """The shots of a scene that have a result, and no other in the making."""
    running = [shot.reading.armature for shot, _ in _running(scene)]
    return [
        result.shot
        for result in session.results_in(scene)
        if result.recording is not None and result.shot.reading.armature not in running
    ]


def _running(scene):
    """What the job that is at work in a scene shows, see Job.ghosts."""
    job = session.job()
    return job.ghosts() if job is not None and job.scene_name == scene.name else []


def _played(scene):
    """Who is played in a scene, as `_running` shows it; None if nobody is."""
    running = _running(scene)
    return running[0][0] if running and session.job().plays else None


def compared(scene):
    """The takes that are to be drawn beside `ghosts`: a list of (shot, index of the sample, how
    many ghosts of the armature stand nearer to it)."""
    drawn = [shot for shot, _ in ghosts(scene)]
    found = []
    for row, take in takes.rows(scene):
        shot = take.shot
        if row.show and shot not in drawn and take.armature in scene.objects:
            nearer = sum(one.reading.armature == take.armature for one in drawn)
            found.append((shot, sample_at(shot, scene.frame_current_final), nearer))
            drawn.append(shot)
    return found


def is_baked(scene, shot):
    """Whether the armature itself stands where the ghost would: it shows the bake of its shot."""
    armature = scene.objects.get(shot.reading.armature)
    if armature is None or shot.baked is None:
        return False
    action, slot = strips.shown(armature)
    mark = bake_target.mark_of(action, slot)
    shown = mark and (action.name, mark["number"])
    return shown == (shot.baked.action, shot.baked.number)


def sample_at(shot, frame):
    """Index of the simulated sample that is nearest to a frame of the scene."""
    return min(max(round(_samples_to(shot, frame)), 0), len(shot.recording) - 1)


def _samples_to(shot, frame):
    """How many samples a frame of the scene is behind the first one."""
    motion = shot.reading.motion
    return (frame - motion.first_frame) / motion.frame_step


def rests(scene, shot):
    """Whether a ghost of `ghosts` only keeps the pose of its first or last sample, since the
    current frame is before or beyond what was simulated."""
    if any(one is shot and sample is not None for one, sample in _running(scene)):
        return False
    sample = _samples_to(shot, scene.frame_current_final)
    return not -0.5 <= sample <= len(shot.recording) - 0.5


def aside(motion, distance):
    """(3,) displacement [m] by a distance to the left of the character, as it first stands."""
    hips = motion.positions[0, [LANDMARK_INDEX["hip_l"], LANDMARK_INDEX["hip_r"]], :2]
    left = hips[0] - hips[1]
    length = np.linalg.norm(left)
    left = left / length if length > 1e-6 else np.array([1.0, 0.0])
    return distance * np.array([*left, 0.0])


def displacement(settings, motion, nearer=0):
    """(3,) displacement [m] of what is drawn, by a scene's settings. nearer: how many ghosts stand
    between it and the original."""
    distance = settings.ghost_distance if settings.ghost == "BESIDE" else 0.0
    return aside(motion, (nearer + 1) * distance)


def colours_of_ghosts():
    """((red, green, blue, opacity) as on the screen of the body, of a foot that touches the ground,
    of a body that has fallen), by the preferences."""
    chosen = preferences.of()
    return tuple(chosen.body), tuple(chosen.contact), tuple(chosen.fallen)


def colours_of(shot):
    """The same for the ghost of a shot: the body of a take has its own colour."""
    body, contact, fallen = colours_of_ghosts()
    row = takes.row_of(shot)
    return (body if row is None else (*row.colour, body[3])), contact, fallen


def posed(shot, sample, offset, palette):
    """World positions (V, 3) in scene units, normals (V, 3) and colours (V, 4) of a sample.

    palette: what `colours_of_ghosts` gives.
    """
    body, contact, fallen = palette
    recording = shot.recording
    rotations = matrix_from_quaternion(recording.body_rotations[sample])
    origins = recording.body_positions[sample] + offset
    ends = recording.fell_at is not None and recording.stood is None
    fell = ends and sample == len(recording) - 1
    colours = np.full((len(rotations), 4), fallen if fell else body)
    for side, touches in zip("lr", recording.contacts[sample], strict=True):
        if touches and not fell:
            colours[[SEGMENT_INDEX[f"foot_{side}"], SEGMENT_INDEX[f"toe_{side}"]]] = contact
    points, normals, owners = _solids(shot.character)
    turns = rotations[owners]
    return (
        (np.einsum("vij,vj->vi", turns, points) + origins[owners]) / shot.reading.metres_per_unit,
        np.einsum("vij,vj->vi", turns, normals),
        colours[owners],
    )


# --- Solids --------------------------------------------------------------------------------------


def _solids(character):
    """All shapes of a character as one mesh in the frames of their segments: points (V, 3) [m],
    normals (V, 3), index of the segment (V,)."""
    parts = []
    for shape in character.shapes:
        points, normals = solid(shape.kind, shape.size)
        turn = matrix_from_quaternion(np.array(shape.rotation, float))
        owner = np.full(len(points), SEGMENT_INDEX[shape.segment])
        parts.append((points @ turn.T + shape.position, normals @ turn.T, owner))
    return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))


def solid(kind, size):
    """Points and normals (V, 3) of a solid about its origin: a box with rounded edges, a capsule
    along z, or a sphere. All of them are spheres that were cut into octants and pulled apart."""
    directions, octants = _sphere()
    if kind == "box":
        half = np.array(size)
        radius = ROUNDING * half.min()
        stretch = half - radius
    elif kind == "capsule":
        radius, stretch = size[0], np.array([0.0, 0.0, size[1] / 2])
    else:
        radius, stretch = size[0], np.zeros(3)
    return radius * directions + stretch * octants, directions


@lru_cache
def _sphere():
    """Directions (V, 3) on a sphere and the signs (V, 3) of the octant that each belongs to; the
    borders of the octants are there twice."""
    quarter = np.linspace(0, np.pi / 2, POINTS)
    height = np.concatenate([quarter - np.pi / 2, quarter])
    turn = np.concatenate([quarter + i * np.pi / 2 for i in range(4)])
    z_sign = np.repeat([-1.0, 1.0], POINTS)
    x_sign, y_sign = (np.repeat(signs, POINTS) for signs in ([1.0, -1, -1, 1], [1.0, 1, -1, -1]))
    height, turn = np.meshgrid(height, turn, indexing="ij")
    directions = np.stack(
        [np.cos(height) * np.cos(turn), np.cos(height) * np.sin(turn), np.sin(height)], -1
    )
    octants = np.stack(np.broadcast_arrays(x_sign, y_sign, z_sign[:, None]), -1)
    return directions.reshape(-1, 3), octants.reshape(-1, 3)


@lru_cache
def triangles(count):
    """(T, 3) vertex indices of `count` solids after one another, counter-clockwise from outside."""
    rows, columns = 2 * POINTS, 4 * POINTS
    grid = np.arange(rows * columns).reshape(rows, columns)
    a, b = grid[:-1], np.roll(grid, -1, 1)[:-1]
    c, d = np.roll(grid, -1, 1)[1:], grid[1:]
    sides = np.stack([np.stack([a, b, c], -1), np.stack([a, c, d], -1)]).reshape(-1, 3)
    # A box is open at its poles: the four octants' corners there are a flat face.
    low, high = grid[0, ::POINTS], grid[-1, ::POINTS]
    caps = [low[[0, 2, 1]], low[[0, 3, 2]], high[[0, 1, 2]], high[[0, 2, 3]]]
    faces = np.concatenate([sides, caps])
    starts = np.arange(count)[:, None, None] * grid.size
    return (faces + starts).reshape(-1, 3).astype(np.int32)


# --- Drawing -------------------------------------------------------------------------------------

_VERTEX = """
void main()
{
  shade = color;
  direction = normal;
  view = eye.xyz - eye.w * pos;
  gl_Position = matrix * vec4(pos, 1.0);
  vec2 side = (matrix * vec4(normal, 0.0)).xy * line.yz;
  gl_Position.xy += line.x * gl_Position.w * normalize(side + 1e-9) / line.yz;
}
"""

_FRAGMENT = (
    f"const vec4 outline = vec4{OUTLINE};"
    + """
void main()
{
  if (line.x > 0.0) {
    result = vec4(outline.rgb, outline.a * line.w);
    return;
  }
  vec3 n = normalize(direction);
  float facing = abs(dot(n, normalize(view)));
  float light = 0.45 + 0.35 * facing + 0.35 * max(n.z, 0.0);
  float rim = pow(1.0 - facing, 2.0);
  result = vec4(shade.rgb * light + 0.25 * rim, min(1.0, shade.a + 0.3 * rim) * line.w);
}
"""
)


@lru_cache
def _shader():
    """One lit colour a vertex, or a flat outline.

    matrix: from world to clip space. eye: where one looks from (w 1), or the direction to there
    (w 0). line: swelling [pixels], half the size of the region [pixels], opacity.
    """
    between = gpu.types.GPUStageInterfaceInfo("poise_ghost")
    between.smooth("VEC4", "shade")
    between.smooth("VEC3", "direction")
    between.smooth("VEC3", "view")
    info = gpu.types.GPUShaderCreateInfo()
    info.push_constant("MAT4", "matrix")
    info.push_constant("VEC4", "eye")
    info.push_constant("VEC4", "line")
    info.vertex_in(0, "VEC3", "pos")
    info.vertex_in(1, "VEC3", "normal")
    info.vertex_in(2, "VEC4", "color")
    info.vertex_out(between)
    info.fragment_out(0, "VEC4", "result")
    info.vertex_source(_VERTEX)
    info.fragment_source(_FRAGMENT)
    return gpu.shader.create_from_info(info)


def _draw():
    """Draw all ghosts of the scene in the 3D view that is being drawn."""
    context = bpy.context
    scene = context.scene
    settings = scene.poise
    hidden = settings.ghost == "HIDDEN" or not context.space_data.overlay.show_overlays
    if hidden and _played(scene) is None:  # whoever plays wants to see it
        return
    found = [(shot, sample, 0) for shot, sample in ghosts(scene)]
    for shot, sample, nearer in found + compared(scene):
        if settings.ghost == "OVER" and is_baked(scene, shot):
            continue
        offset = tuple(displacement(settings, shot.reading.motion, nearer))
        drawn = _batch(shot, shot.recording, sample, offset, colours_of(shot))
        draw_mesh(context.region, context.region_data, drawn)


@lru_cache(maxsize=8)
def _batch(shot, _recording, sample, offset, palette):
    """What `draw_mesh` needs for a ghost; a sample never changes again."""
    return batch(*posed(shot, sample, offset, palette), triangles(len(shot.character.shapes)))


def batch(points, normals, colours, indices):
    """What `draw_mesh` needs for a mesh.

    points [scene units], normals (V, 3), colours (V, 4), indices (T, 3).
    """
    arrays = {"pos": points, "normal": normals, "color": colours}
    content = {name: np.ascontiguousarray(array, np.float32) for name, array in arrays.items()}
    indices = np.ascontiguousarray(indices, np.int32)
    return batch_for_shader(_shader(), "TRIS", content, indices=indices)


def draw_mesh(region, view, mesh, hidden=HIDDEN):
    """Draw what `batch` gave in a 3D view. hidden: opacity of what is behind other things."""
    shader = _shader()
    shader.bind()
    shader.uniform_float("matrix", view.perspective_matrix)
    back = view.view_matrix.inverted()
    eye = back.translation if view.is_perspective else back.col[2].xyz
    shader.uniform_float("eye", (*eye, float(view.is_perspective)))
    half = (region.width / 2, region.height / 2)

    def draw(swelling=0.0, opacity=1.0):
        shader.uniform_float("line", (swelling, *half, opacity))
        mesh.draw(shader)

    state = gpu.state
    before = state.depth_test_get(), state.depth_mask_get(), state.blend_get()
    state.blend_set("ALPHA")
    state.depth_mask_set(False)
    state.depth_test_set("GREATER")
    draw(opacity=hidden)
    # Depth first, so that the ghost's own parts do not shine through each other.
    state.depth_test_set("LESS_EQUAL")
    state.depth_mask_set(True)
    state.color_mask_set(False, False, False, False)
    draw()
    state.color_mask_set(True, True, True, True)
    state.depth_mask_set(False)
    draw()
    state.face_culling_set("FRONT")
    draw(swelling=LINE)
    state.face_culling_set("NONE")
    state.depth_test_set(before[0])
    state.depth_mask_set(before[1])
    state.blend_set(before[2])

# SPDX-License-Identifier: GPL-3.0-or-later
"""The arrow of the active push in the 3D views, to be dragged with the mouse.

It stands at the middle of the bones that carry the pushed part, at the current frame, whatever the
push's own offset and frame are.
"""

from itertools import pairwise
from math import hypot, pi, radians

import bpy
import numpy as np
from bpy.props import EnumProperty
from bpy_extras import view3d_utils
from mathutils import Matrix, Vector

from ...controller.geometry.rotations import near
from ..blender import session
from ..blender.chosen import chosen_armature
from ..blender.translations import tr
from ..kit.known_map import known_map
from ..scene import pushes

#: Force that an arrow of a metre stands for [N].
NEWTONS_PER_METRE = 200.0
#: Radius of the arrow's shaft, radius and length of its head [m].
SHAFT, HEAD_RADIUS, HEAD = 0.008, 0.04, 0.12
#: Radius of the ring, and of its tube [m].
RING, TUBE = 0.35, 0.006
#: With Ctrl, values jump by these steps [N], [rad].
FORCE_STEP, ANGLE_STEP = 10.0, radians(5.0)
#: A force whose level part is a smaller share of it than this has no compass direction.
_UPRIGHT = 1e-6
_COLOUR, _BRIGHT = (1.0, 0.5, 0.1), (1.0, 0.8, 0.4)


# --- Arithmetic ----------------------------------------------------------------------------------


def arrow(strength, azimuth, elevation, metres_per_unit):
    """(3,) from tail to tip, in the scene's units, of a force [N] and its angles [rad]."""
    units = 1.0 / (NEWTONS_PER_METRE * metres_per_unit)
    return np.multiply(pushes.vector(strength, azimuth, elevation), units)


def force_of(along, before, metres_per_unit):
    """(strength [N], azimuth [rad], elevation [rad]) of an arrow (3,) in the scene's units.

    before: the same three of before; what an arrow without length, or an upright one, does not
    tell stays as there, and the azimuth goes on without a jump after a full turn.
    """
    length = float(np.linalg.norm(along))
    if length == 0.0:
        return 0.0, before[1], before[2]
    azimuth, elevation = pushes.angles(along)
    if hypot(along[0], along[1]) < _UPRIGHT * length:
        azimuth = before[1]
    return length * NEWTONS_PER_METRE * metres_per_unit, near(azimuth, before[1]), elevation


def snapped(force):
    """A force, as (strength [N], azimuth [rad], elevation [rad]), in whole steps."""
    steps = FORCE_STEP, ANGLE_STEP, ANGLE_STEP
    return tuple(step * round(value / step) for value, step in zip(force, steps, strict=True))


# --- Where it stands -----------------------------------------------------------------------------


def shown(context):
    """The active push, if its arrow can be shown; else None."""
    if not context.space_data.overlay.show_overlays or session.job() is not None:
        return None
    push = pushes.active(context.scene)
    return push if push is not None and push.use and push.kind == "VECTOR" else None


def place(context, push):
    """(Vector to the middle of the pushed part in the scene, metres per unit); None if it is not
    known which bones carry that part."""
    armature, _ = chosen_armature(context)
    if armature is None:
        return None
    if push.part == "BONE":
        names = (push.bone,)
    else:
        rig_map, _ = known_map(context, armature)
        names = rig_map.bones.get(push.part.lower(), ()) if rig_map is not None else ()
    bones = [armature.pose.bones[name] for name in names if name in armature.pose.bones]
    if not bones:
        return None
    middle = sum(((bone.head + bone.tail) / 2 for bone in bones), Vector()) / len(bones)
    shot = session.result_of(context.scene, armature).shot
    scale = shot.reading.metres_per_unit if shot else context.scene.unit_settings.scale_length
    return armature.matrix_world @ middle, scale


# --- Dragging ------------------------------------------------------------------------------------


class POISE_OT_drag_push(bpy.types.Operator):
    """Drag the arrow of the active push."""

    bl_idname = "poise.drag_push"
    bl_label = "Drag Push"
    bl_description = (
        "Drag the arrow of the active push. Ctrl: in steps; Shift: only the strength; Esc: as it "
        "was"
    )
    bl_options = {"UNDO", "INTERNAL", "BLOCKING"}

    handle: EnumProperty(
        name="Handle",
        description="What of the arrow is dragged",
        items=(
            ("TIP", "Tip", "Strength and direction, in the plane that faces the view"),
            ("RING", "Ring", "Direction seen from above"),
        ),
    )

    @classmethod
    def poll(cls, context):
        """Needs an arrow in a 3D view."""
        space = context.space_data
        if space is None or space.type != "VIEW_3D" or shown(context) is None:
            cls.poll_message_set(tr("There is no arrow: add a push of kind Arrow"))
            return False
        return True

    def invoke(self, context, event):
        """Begin, and go on in `modal`."""
        push = shown(context)
        stands = place(context, push)
        if stands is None or context.region_data is None:
            self.report(
                {"ERROR"}, tr("There is no arrow: the bones of the pushed part are not known.")
            )
            return {"CANCELLED"}
        self._base, self._scale = stands
        self._before = _force(push)
        self._tip = self._base + Vector(arrow(*self._before, self._scale))
        self._grabbed = self._under(context, event)
        if self._grabbed is None:
            return {"CANCELLED"}
        context.window_manager.modal_handler_add(self)
        _tell(context, self._before)
        return {"RUNNING_MODAL"}

    def modal(self, context, event):
        """One event of the window."""
        push = shown(context)
        if push is None or event.type in {"ESC", "RIGHTMOUSE"}:
            return self._end(context, push, self._before)
        if event.type == "LEFTMOUSE" and event.value == "RELEASE":
            return self._end(context, push, _force(push))
        if event.type in {"MOUSEMOVE", "LEFT_CTRL", "RIGHT_CTRL", "LEFT_SHIFT", "RIGHT_SHIFT"}:
            force = self._dragged(context, event)
            if force is not None:
                _set(push, force)
                _tell(context, force)
        return {"RUNNING_MODAL"}

    def cancel(self, context):
        """Blender ends the operator itself, with its window or its file."""
        context.area.header_text_set(None)

    def _end(self, context, push, force):
        """Leave a force behind; no undo step without a change."""
        context.area.header_text_set(None)
        if push is None or force == self._before:
            if push is not None and _force(push) != force:
                _set(push, force)
            return {"CANCELLED"}
        return {"FINISHED"}

    def _dragged(self, context, event):
        """The force that the mouse is at, None if it is nowhere."""
        under = self._under(context, event)
        if under is None:
            return None
        strength, azimuth, elevation = self._before
        if self.handle == "RING":
            start, now = self._grabbed - self._base, under - self._base
            turned = pushes.angles(now)[0] - pushes.angles(start)[0]
            force = strength, near(azimuth + turned, azimuth), elevation
        else:
            along = self._tip + (under - self._grabbed) - self._base
            if event.shift:
                direction = Vector(pushes.vector(1.0, azimuth, elevation))
                along = direction * max(0.0, along.dot(direction))
                force = force_of(along, self._before, self._scale)[0], azimuth, elevation
            else:
                force = force_of(along, self._before, self._scale)
        return snapped(force) if event.ctrl else force

    def _under(self, context, event):
        """Where the mouse is: on the level of the ring, or as far away as the tip; None where the
        mouse does not point at that level."""
        mouse = event.mouse_x - context.region.x, event.mouse_y - context.region.y
        view = context.region, context.region_data, mouse
        if self.handle == "TIP":
            return view3d_utils.region_2d_to_location_3d(*view, self._tip)
        origin = view3d_utils.region_2d_to_origin_3d(*view)
        ray = view3d_utils.region_2d_to_vector_3d(*view)
        if abs(ray.z) < 1e-4:
            return None
        distance = (self._base.z - origin.z) / ray.z
        return origin + distance * ray if distance > 0 else None


def _force(push):
    return push.strength, push.azimuth, push.elevation


def _set(push, force):
    push.strength, push.azimuth, push.elevation = force


def _tell(context, force):
    strength, azimuth, elevation = force
    context.area.header_text_set(
        tr(
            f"Push: {strength:.0f} N, direction {np.degrees(azimuth):.0f}°, upwards "
            f"{np.degrees(elevation):.0f}°   |   Ctrl: steps, Shift: strength only, Esc: cancel"
        )
    )


# --- Gizmos --------------------------------------------------------------------------------------


def lathe(profile, corners):
    """Triangles, as a list of points (x, y, z), of a profile of (radius, height) turned about Z."""
    angles = np.linspace(0.0, 2 * pi, corners + 1)
    circle = np.stack([np.cos(angles), np.sin(angles)], 1)
    rows = [np.column_stack([radius * circle, np.full(len(angles), z)]) for radius, z in profile]
    triangles = []
    for low, high in pairwise(rows):
        quads = low[:-1], low[1:], high[1:], low[:-1], high[1:], high[:-1]
        triangles.append(np.stack(quads, 1).reshape(-1, 3))
    return np.concatenate(triangles).tolist()


class _Handle:
    """A gizmo of meshes that starts a drag. The built-in arrow draws itself a second time, and in
    the wrong place, while an operator drags it."""

    def prepare(self, handle):
        """Made once, after it was added to its group."""
        self.target_set_operator(POISE_OT_drag_push.bl_idname).handle = handle
        self.color, self.color_highlight = _COLOUR, _BRIGHT
        self.alpha = self.alpha_highlight = 1.0
        self.use_draw_scale = False
        self.use_draw_modal = True

    def draw(self, _context):
        """Blender calls this for every drawing."""
        for shape, matrix in self.pieces():
            self.draw_custom_shape(shape, matrix=self.matrix_world @ matrix)

    def draw_select(self, _context, select_id):
        """The same, to find out what the mouse is on."""
        for shape, matrix in self.pieces():
            self.draw_custom_shape(shape, matrix=self.matrix_world @ matrix, select_id=select_id)


class POISE_GT_push_arrow(_Handle, bpy.types.Gizmo):
    """An arrow along Z, as long as its attribute `reach` says [m]."""

    bl_idname = "POISE_GT_push_arrow"
    __slots__ = ("head", "reach", "shaft")

    def setup(self):
        """Make the meshes."""
        self.reach = 0.0
        self.shaft = self.new_custom_shape("TRIS", lathe(((SHAFT, 0.0), (SHAFT, 1.0)), 12))
        head = (0.0, -HEAD), (HEAD_RADIUS, -HEAD), (0.0, 0.0)
        self.head = self.new_custom_shape("TRIS", lathe(head, 24))

    def pieces(self):
        """Shaft and head; an arrow shorter than its head is nothing but that."""
        yield self.head, Matrix.Translation((0.0, 0.0, max(self.reach, HEAD)))
        if self.reach > HEAD:
            yield self.shaft, Matrix.Diagonal((1.0, 1.0, self.reach - HEAD, 1.0))


class POISE_GT_push_ring(_Handle, bpy.types.Gizmo):
    """A ring about Z."""

    bl_idname = "POISE_GT_push_ring"
    __slots__ = ("ring",)

    def setup(self):
        """Make the mesh."""
        corners = np.linspace(0.0, 2 * pi, 9)
        tube = [(RING + TUBE * np.cos(angle), TUBE * np.sin(angle)) for angle in corners]
        self.ring = self.new_custom_shape("TRIS", lathe(tube, 64))

    def pieces(self):
        """Only the one."""
        yield self.ring, Matrix()


class POISE_GGT_push(bpy.types.GizmoGroup):
    """The arrow, and a ring round the vertical to turn it."""

    bl_idname = "POISE_GGT_push"
    bl_label = "Push Arrow"
    bl_space_type = "VIEW_3D"
    bl_region_type = "WINDOW"
    bl_options = {"3D", "PERSISTENT", "SHOW_MODAL_ALL"}

    @classmethod
    def poll(cls, context):
        """Whether there is an arrow to show."""
        push = shown(context)
        return push is not None and place(context, push) is not None

    def setup(self, _context):
        """Make both gizmos; Blender calls this once for each view."""
        self.ring = self.gizmos.new(POISE_GT_push_ring.bl_idname)
        self.ring.prepare("RING")
        self.arrow = self.gizmos.new(POISE_GT_push_arrow.bl_idname)
        self.arrow.prepare("TIP")

    def draw_prepare(self, context):
        """Put both where they belong now."""
        push = shown(context)
        stands = place(context, push) if push is not None else None
        self.arrow.hide = self.ring.hide = stands is None
        if stands is None:
            return
        base, scale = stands
        sized = Matrix.Translation(base) @ Matrix.Scale(1.0 / scale, 4)
        turned = Matrix.Rotation(push.azimuth, 4, "Z") @ Matrix.Rotation(
            pi / 2 - push.elevation, 4, "Y"
        )
        self.ring.matrix_basis = sized
        self.arrow.matrix_basis = sized @ turned
        self.arrow.reach = push.strength / NEWTONS_PER_METRE


CLASSES = (POISE_OT_drag_push, POISE_GT_push_arrow, POISE_GT_push_ring, POISE_GGT_push)

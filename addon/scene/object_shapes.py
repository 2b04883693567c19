# SPDX-License-Identifier: GPL-3.0-or-later
"""The shape of a mesh object as a solid: what it is exactly, or what was chosen for it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...controller.exceptions import SettingsError
from ...controller.geometry.solids import (
    Solid,
    fewer_points,
    mass_properties,
    principal_axes,
)
from ..blender.pose import nearest_rotation
from ..rigs.reference import LARGEST_KEY

if TYPE_CHECKING:
    import bpy

#: More faces than this cost too much time at every contact.
MOST_FACES = 20_000
#: Two shapes are the same if they differ by no more than this share of their size.
_SAME = 1e-3
#: A sphere of few faces is a polyhedron: it fills less than this share of the round one.
_ROUND = 0.8
#: An axis that is shorter than this share of the longest is flat.
_FLAT = 1e-4


@dataclass(frozen=True)
class Shape:
    """A solid, and where it is in the object's own rigid frame.

    The rigid frame has the object's origin and its nearest rotation; its scale, even a skewed one,
    is in the solid. centre: (3,) [m] of mass, for a mesh of its bounding box. axes: (3, 3) columns
    of the solid's frame. volume [m^3] of what is convex. corners: (8, 3) of the bounding box [m],
    in the solid's frame.
    """

    solid: Solid
    centre: np.ndarray
    axes: np.ndarray
    volume: float
    corners: np.ndarray


def split(name: str, matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """World matrices (..., 4, 4) of an object to rotations (..., 3, 3) and stretches (..., 3, 3)
    with rotation @ stretch = matrix.

    Raises SettingsError if the object has no extent along an axis, or is nowhere.
    """
    # Blender stores an infinite value as the largest number that there is.
    if not (np.abs(matrices) < LARGEST_KEY).all():
        raise SettingsError(
            f"'{name}' has a place, a turn or a scale that is not a number: mend its transform."
        )
    linear = matrices[..., :3, :3]
    size = np.abs(linear).max()
    if (np.abs(np.linalg.det(linear)) <= (1e-6 * size) ** 3).any():
        raise SettingsError(
            f"'{name}' is scaled to zero along an axis: give it a scale above 0 on all three."
        )
    turns = nearest_rotation(linear)
    # A mirrored object is a turned one with a mirrored shape.
    turns = turns * np.sign(np.linalg.det(turns))[..., None, None]
    return turns, turns.swapaxes(-1, -2) @ linear


def measure(
    name: str, mesh: "bpy.types.Mesh", stretch: np.ndarray, kind: str, convex: bool
) -> Shape:
    """The Shape of an object.

    mesh: evaluated bpy.types.Mesh. stretch: (3, 3) from its coordinates to the rigid frame [m].
    kind: "AUTO", "SPHERE", "BOX", "HULL" or "MESH". convex: whether it fills its hollows,
    as what is thrown must.

    Raises SettingsError if there is nothing to touch, or too much.
    """
    count = len(mesh.polygons)
    if not count:
        raise SettingsError(
            f"'{name}' has no faces, so nothing can touch it: give it faces, or unmark it."
        )
    local = np.empty(3 * len(mesh.vertices), np.float32)
    mesh.vertices.foreach_get("co", local)
    vertices = local.reshape(-1, 3).astype(float) @ stretch.T
    if not np.isfinite(vertices).all():
        raise SettingsError(f"'{name}' has a vertex that is not a number: mend its mesh.")
    low, high = vertices.min(0), vertices.max(0)
    corners = np.array(
        [[(low, high)[(i >> axis) & 1][axis] for axis in range(3)] for i in range(8)]
    )
    if kind == "MESH" or (kind == "AUTO" and not convex and not _is_convex(mesh, vertices)):
        return _mesh(name, mesh, vertices, count, corners)
    return _convex(name, vertices, kind, corners)


def _triangles(mesh: "bpy.types.Mesh") -> np.ndarray:
    """(m, 3) triangles of a mesh."""
    mesh.calc_loop_triangles()
    faces = np.empty(3 * len(mesh.loop_triangles), np.int32)
    mesh.loop_triangles.foreach_get("vertices", faces)
    return faces.reshape(-1, 3)


def _mesh(
    name: str, mesh: "bpy.types.Mesh", vertices: np.ndarray, count: int, corners: np.ndarray
) -> Shape:
    if count > MOST_FACES:
        raise SettingsError(
            f"'{name}' has {count} faces, more than the {MOST_FACES} that a collider may have: "
            "add a Decimate modifier, or choose the shape Box or Hull."
        )
    centre = corners.mean(0)
    solid = Solid("mesh", vertices=vertices - centre, faces=_triangles(mesh))
    return Shape(solid, centre, np.eye(3), 0.0, corners - centre)


def _is_convex(mesh: "bpy.types.Mesh", vertices: np.ndarray) -> bool:
    """Whether a mesh encloses as much as its hull."""
    made = hull(vertices)
    if made is None:
        return False
    a, b, c = (vertices[_triangles(mesh)] - vertices.mean(0)).swapaxes(0, 1)
    inside = (a * np.cross(b, c)).sum() / 6
    return abs(abs(inside) / mass_properties(*made)[0] - 1) < _SAME * 10


def hull(vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Vertices and triangles of the convex hull of (n, 3) points; None if that is flat."""
    import bmesh  # exists only once bpy is loaded

    points = fewer_points(vertices)
    build = bmesh.new()
    try:
        for point in points:
            build.verts.new(point)
        made = bmesh.ops.convex_hull(build, input=build.verts)
        unused = {*made["geom_interior"], *made["geom_unused"]}
        for vertex in unused:
            if isinstance(vertex, bmesh.types.BMVert) and vertex.is_valid:
                build.verts.remove(vertex)
        bmesh.ops.triangulate(build, faces=build.faces)
        build.verts.index_update()
        corners = np.array([vertex.co for vertex in build.verts], float)
        faces = np.array([[v.index for v in face.verts] for face in build.faces], int)
    finally:
        build.free()
    if len(corners) < 4 or len(faces) < 4:
        return None
    size = np.ptp(corners, axis=0).max()
    volume = mass_properties(corners, faces)[0]
    return (corners, faces) if volume > _FLAT * size**3 else None


def _convex(name: str, vertices: np.ndarray, kind: str, corners: np.ndarray) -> Shape:
    """The Shape of what is convex, of a kind that is not "MESH"."""
    found = hull(vertices)
    extent = corners[7] - corners[0]
    if found is None or extent.min() < _FLAT * extent.max():
        raise SettingsError(
            f"'{name}' is flat, so it has no inside: give it thickness, with a Solidify modifier."
        )
    volume, centre, inertia = mass_properties(*found)
    middle = corners.mean(0)
    radius = np.linalg.norm(found[0] - middle, axis=1)
    ball = 4 / 3 * np.pi * radius.max() ** 3
    if kind == "AUTO":
        even = np.ptp(radius) < _SAME * radius.max()
        if even and volume > _ROUND * ball:
            kind = "SPHERE"
        else:
            kind = "BOX" if volume > (1 - _SAME) * extent.prod() else "HULL"
    if kind == "SPHERE":
        solid = Solid("sphere", (float(radius.max()),))
        return Shape(solid, middle, np.eye(3), ball, corners - middle)
    if kind == "BOX":
        solid = Solid("box", tuple((extent / 2).tolist()))
        return Shape(solid, middle, np.eye(3), float(extent.prod()), corners - middle)
    axes = principal_axes(inertia)
    solid = Solid("hull", vertices=(found[0] - centre) @ axes, faces=found[1])
    return Shape(solid, centre, axes, volume, (corners - centre) @ axes)

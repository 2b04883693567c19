# SPDX-License-Identifier: GPL-3.0-or-later
"""Mass properties of convex hulls, exactly, and hulls of fewer points."""

import numpy as np

#: A hull has at most so many points: more cost time at every step, and change nothing that shows.
MOST_POINTS = 128

_GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))


def mass_properties(vertices, faces):
    """Of a convex solid of even density.

    vertices: (n, 3) [m]; faces: (m, 3) triangles that close it, in either direction.
    Returns its volume [m^3], centre of mass (3,) [m], and the inertia about that per mass
    (3, 3) [m^2].
    """
    vertices = np.asarray(vertices, float)
    middle = vertices.mean(0)
    # Tetrahedra from a point inside to each triangle.
    corners = vertices[np.asarray(faces, int)] - middle
    volumes = np.abs(np.linalg.det(corners)) / 6
    volume = volumes.sum()
    sums = corners.sum(1)
    centre = volumes @ sums / 4 / max(volume, 1e-300)
    spread = np.einsum("t,tci,tcj->ij", volumes, corners, corners)
    spread += np.einsum("t,ti,tj->ij", volumes, sums, sums)
    spread = spread / 20 / max(volume, 1e-300) - np.outer(centre, centre)
    return float(volume), middle + centre, np.trace(spread) * np.eye(3) - spread


def principal_axes(inertia):
    """(3, 3) rotation whose columns are the principal axes, each nearest to the axis it stands
    for: the identity for an inertia that is diagonal already."""
    scale = np.abs(inertia).max()
    if np.abs(inertia - np.diag(np.diag(inertia))).max() < 1e-6 * scale:
        return np.eye(3)
    _, axes = np.linalg.eigh(inertia)
    order = []
    for row in np.abs(axes):
        order.append(max(set(range(3)) - set(order), key=lambda i, row=row: row[i]))
    axes = axes[:, order] * np.sign(np.diag(axes[:, order]) + 1e-300)
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    return axes


def fewer_points(vertices, most=MOST_POINTS):
    """At most `most` of (n, 3) points: those that reach farthest, in directions all round."""
    vertices = np.asarray(vertices, float)
    if len(vertices) <= most:
        return vertices
    z = 1 - (2 * np.arange(most) + 1) / most
    turn = _GOLDEN_ANGLE * np.arange(most)
    radius = np.sqrt(1 - z * z)
    directions = np.stack([radius * np.cos(turn), radius * np.sin(turn), z], 0)
    return vertices[np.unique([np.argmax(vertices @ d) for d in directions.T])]

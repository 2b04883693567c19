# SPDX-License-Identifier: GPL-3.0-or-later
"""Balance: forces that should act on the body, brought about by the legs' joints.

Both modes end in the transposed Jacobian of the leg chains. Counted in a tree that is rooted at
the pelvis, a leg's joint turns the foot, so a wrench that the *floor* exerts on the foot appears
at the joint as J^T w, and the torque that lets the leg press with it is the negative.
"""

from dataclasses import dataclass

import numpy as np

#: Variance of foot moments against forces [m^2] about x, y, z of the foot: how readily a foot is
#: loaded at its edge instead of the weight being shifted.
MOMENT_SPREAD = np.array([0.002, 0.017, 0.01])
EDGE_SHARE = 0.8  # of the sole's half width, heel and toe that the centre of pressure may use
FRICTION_SHARE = 0.8  # tangential to normal force

# r[:, _CYCLE] * f[:, _SHIFT] - ...: a cross product by two gathers is faster than np.cross.
_NEXT, _LAST = [1, 2, 0], [2, 0, 1]


def cross(a, b):
    """Cross products of (..., 3) arrays."""
    return a[..., _NEXT] * b[..., _LAST] - a[..., _LAST] * b[..., _NEXT]


@dataclass
class Legs:
    """Both legs in the world, joints from the hip down, left before right.

    axes, anchors: (2, n, 3) of their degrees of freedom [-, m]. ankles: (2, 3) [m]. feet:
    (2, 3, 3) frames.
    """

    axes: np.ndarray
    anchors: np.ndarray
    ankles: np.ndarray
    feet: np.ndarray

    def transposed_jacobian(self, points, forces, moments):
        """(2, n) joint torques J^T w of wrenches (2, 3), (2, 3) at points (2, 3) of the feet
        (SCA12, equations 5 and 7)."""
        arms = points[:, None] - self.anchors
        total = cross(arms, forces[:, None]) + moments[:, None]
        return np.einsum("ijk,ijk->ij", self.axes, total)


def wanted_wrench(weights, error, error_velocity, orientation_error, momentum_error):
    """Force [N] and torque [N m], each (3,), of SCA12's equations 12, 13 (with the vector in the
    world frame, where equation 7 wants it) and 15."""
    position, velocity, trunk, momentum = weights
    force = position * error + velocity * error_velocity
    torque = trunk * orientation_error + momentum * momentum_error
    return force, torque


def distribute(force, torque, com, points, feet, load):
    """Share a wrench between the feet.

    Minimises sum(|f_i|^2 / a_i + m_i^T W_i^-1 m_i / a_i) subject to sum f_i = force and
    sum((p_i - com) x f_i + m_i) = torque, a_i the load share of a foot, W_i its moment spread.
    force, torque, com (3,); points (2, 3) under the ankles; feet (2, 3, 3); load (2,), not both 0.
    Returns forces and moments, (2, 3) each. With the multipliers eliminated, one 3 x 3 system.
    """
    arms = points - com
    total = load[0] + load[1]
    mean = (load @ arms) / total
    offset = arms - mean
    spread = (feet * (MOMENT_SPREAD * load[:, None])[:, None]) @ np.swapaxes(feet, 1, 2)
    matrix = spread[0] + spread[1]
    weighted = load[:, None] * offset
    matrix -= weighted.T @ offset
    diagonal = np.einsum("ij,ij->", weighted, offset)
    matrix[0, 0] += diagonal
    matrix[1, 1] += diagonal
    matrix[2, 2] += diagonal
    multiplier = np.linalg.solve(matrix, torque - cross(mean, force))
    forces = load[:, None] * (force / total + cross(multiplier[None], offset))
    return forces, spread @ multiplier


def within_feet(forces, moments, feet, soles):
    """Clip wrenches (2, 3), (2, 3) to what box feet on a floor can press.

    No pulling; friction; the centre of pressure inside the sole: moments about the foot's x to
    its half width, about y from the toe to the heel. feet: (2, 3, 3); soles: (2, 3) of half
    width, heel, toe [m].
    """
    normal = np.maximum(forces[:, 2], 0.0)
    tangent = np.hypot(forces[:, 0], forces[:, 1])
    limit = FRICTION_SHARE * normal
    scale = np.minimum(1.0, limit / np.maximum(tangent, 1e-9))
    forces = np.stack([forces[:, 0] * scale, forces[:, 1] * scale, normal], 1)
    local = (moments[:, None] @ feet)[:, 0]
    edges = EDGE_SHARE * normal[:, None] * soles
    roll = np.clip(local[:, 0], -edges[:, 0], edges[:, 0])
    pitch = np.clip(local[:, 1], -edges[:, 2], edges[:, 1])
    # Twisting friction of a sole: about as far as half its length from the ankle.
    twist = np.clip(local[:, 2], -edges[:, 0], edges[:, 0])
    local = np.stack([roll, pitch, twist], 1)
    return forces, (feet @ local[:, :, None])[:, :, 0]

# SPDX-License-Identifier: GPL-3.0-or-later
"""Balance: forces that should act on the body, brought about by the legs' joints.

Both modes end in the transposed Jacobian of the leg chains. Counted in a tree that is rooted at
the pelvis, a leg's joint turns the foot, so a wrench that the *floor* exerts on the foot appears
at the joint as J^T w, and the torque that lets the leg press with it is the negative.
"""

from collections.abc import Callable, Sequence

import numpy as np

from ..body.sole import Ground, Region

#: (x, y) on the floor [m].
Point = tuple[float, float]
#: What divides the weight between the feet, as `shift_weight` does.
Weigh = Callable[[float, float, Point, Point, float, float], float]

#: Of a sole's half width, while the other foot takes a recovery step: a foot that is pressed onto
#: one corner of its sole pivots about it. By trial on the pushed character of the example scene.
STEP_EDGE_SHARE = 0.48
#: Of which the second one finds the floor between feet of different heights. By trial on stairs.
_FLOOR_ROUNDS = 2
_NEAR_ENOUGH = 1e-8  # [m^2]: a tenth of a millimetre does not show
#: Tangential to normal force: within the friction of soles, which is 1. By trial, on a prototype.
FRICTION_SHARE = 0.8
#: Twisting moment to normal force times the width of both regions together: by trial on captured
#: walks; and where help from outside turns the body instead, by trial on kicks and PyBullet's run:
#: feet that are near their limit twist.
TWIST_SHARE, HELPED_TWIST_SHARE = 0.25, 0.12


def centres_of_pressure(
    x: float, y: float, left: Region, right: Region, least: float, most: float, weigh: Weigh
) -> tuple[float, Point, Point]:
    """Bring the body's centre of pressure to (x, y), or as near as the soles allow.

    left, right: sole.Region of each foot; `weigh` (as `shift_weight`) keeps the left foot's share
    of the weight from `least` to `most`. Weight is shifted along the line between the feet, the
    rest of the way is taken by both soles. Returns the left share and both centres of pressure [m].
    """
    a, b = (left.x, left.y), (right.x, right.y)
    for _ in range(3):
        share = weigh(x, y, a, b, least, most)
        rest = 1 - share
        rx = x - share * a[0] - rest * b[0]
        ry = y - share * a[1] - rest * b[1]
        a = left.nearest(a[0] + rx, a[1] + ry)
        b = right.nearest(b[0] + rx, b[1] + ry)
        rx = x - share * a[0] - rest * b[0]
        ry = y - share * a[1] - rest * b[1]
        if rx * rx + ry * ry < _NEAR_ENOUGH:
            break
    return share, a, b


def shift_weight(x: float, y: float, a: Point, b: Point, least: float, most: float) -> float:
    """Weight of point a against b that brings their mean nearest to (x, y)."""
    dx, dy = a[0] - b[0], a[1] - b[1]
    square = dx * dx + dy * dy
    if square < 1e-9:
        return 0.5 * (least + most)
    share = ((x - b[0]) * dx + (y - b[1]) * dy) / square
    return min(max(share, least), most)


def press(
    force: Sequence[float],
    torque: Sequence[float],
    com: Sequence[float],
    grounds: Sequence[Ground],
    left: Region,
    right: Region,
    load: Sequence[float],
    weigh: Weigh = shift_weight,
    twist: float = TWIST_SHARE,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Forces of the floor on the feet that come closest to a wanted wrench on the body.

    force (3,) [N] on the centre of mass `com` (3,) [m], torque (3,) [N m] about it; grounds:
    sole.Ground under each foot; left, right: sole.Region of each; load (2,): largest
    share of the weight of each foot; weigh: what divides the weight between them; twist: the most
    twisting moment, as TWIST_SHARE has it.
    The floor can only push, inside the regions and within friction. Where a force and a torque need
    a centre of pressure outside, the torque is kept and the horizontal force gives way: the body
    leans instead of spinning. Returns points, forces and moments, each (2, 3).
    """
    fx, fy, fz = force
    tx, ty, tz = torque
    cx, cy, cz = com
    left_ground, right_ground = grounds
    low, high = right_ground.at(right.x, right.y), left_ground.at(left.x, left.y)
    fz = max(fz, 1.0)
    least, share = min(1 - load[1], load[0]), load[0] / (load[0] + load[1])
    # On feet of different heights the floor is between them, where the weight is.
    for _ in range(1 if low == high else _FLOOR_ROUNDS):
        height = max(cz - (low + share * (high - low)), 0.1)
        wanted_x = cx - (ty + height * fx) / fz
        wanted_y = cy + (tx - height * fy) / fz
        share, a, b = centres_of_pressure(wanted_x, wanted_y, left, right, least, load[0], weigh)
    px = share * a[0] + (1 - share) * b[0]
    py = share * a[1] + (1 - share) * b[1]
    fx -= fz * (px - wanted_x) / height
    fy -= fz * (py - wanted_y) / height
    tangent = (fx * fx + fy * fy) ** 0.5
    if tangent > FRICTION_SHARE * fz:
        scale = FRICTION_SHARE * fz / tangent
        fx, fy = fx * scale, fy * scale
    # Yaw: what the forces do not already turn, as far as the soles can twist on the floor.
    tz -= (px - cx) * fy - (py - cy) * fx
    grip = twist * fz * (left.left - left.right + right.left - right.right)
    tz = min(max(tz, -grip), grip)
    rest = 1 - share
    return (
        np.array(((*a, left_ground.at(*a)), (*b, right_ground.at(*b)))),
        np.array(((share * fx, share * fy, share * fz), (rest * fx, rest * fy, rest * fz))),
        np.array(((0.0, 0.0, share * tz), (0.0, 0.0, rest * tz))),
    )

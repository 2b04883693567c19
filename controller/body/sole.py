# SPDX-License-Identifier: GPL-3.0-or-later
"""A sole on the floor at one moment: which parts of it are down, and where they can be pressed on.

Plain numbers in tuples: they are made anew for each balance.
"""

from math import cos, sin
from typing import NamedTuple, Protocol

#: Cosine of the steepest slope that a foot can stand on: 60 degrees, by estimate; a friction of 1
#: holds to 45.
STEEPEST = 0.5
#: A part of the sole that is this much higher [m] than its lowest one carries nothing. This and
#: the rest were settled on captured walks: `researcher.md`, Feet that stand.
CLEARANCE = 0.02
#: Ahead of the ball the centre of pressure stays within this share of the toes: at their very tip
#: a foot stands on its tip, and snaps.
_FRONT = 0.6
#: Of the sole's half width, what the centre of pressure may use; where weight can be shifted to the
#: other foot instead; and where the heel is up, since a foot on its ball tips over more easily: by
#: trial on the captured clips, without the last of which the feet of walks tipped farther.
EDGE_SHARE, DUAL_EDGE_SHARE, _RAISED_EDGE_SHARE = 0.95, 0.8, 0.4
#: From the first of these tilts on a foot is meant to stand on its edge, and by so much more on
#: that alone: this share of its width. By trial on a captured squat.
_TILTED, _MORE_TILTED, _EDGE = 0.1, 0.15, 0.1
#: A range along the foot keeps from heel and tip by this share of the sole's length.
_ROOM = 0.03
#: From here on the ball counts as down.
_BALL_DOWN = 0.2


class Ground(NamedTuple):
    """The plane under a foot: height [m] at (x, y) [m], and how it rises along x and y."""

    x: float
    y: float
    height: float
    slope_x: float = 0.0
    slope_y: float = 0.0

    def at(self, x: float, y: float) -> float:
        """Height [m] of it at (x, y) [m]."""
        return self.height + self.slope_x * (x - self.x) + self.slope_y * (y - self.y)


class Sole(NamedTuple):
    """x, y: plan of the ankle [m]; ahead_x, ahead_y: unit vector along the foot; clearance: of its
    lowest corner [m] from the ground. Along the foot from the ankle [m]: heel, ball, tip, and hinge
    of the toes, with the hinge's height. heel_down, ball_down, tip_down: from 1 for the lowest of
    them to 0 for one that is higher by CLEARANCE. right, left: the sole's edges across from the
    ankle [m], where a foot that is tipped has them; tilt: how its left axis rises from the ground;
    floor: height of the ground there [m]."""

    x: float
    y: float
    ahead_x: float
    ahead_y: float
    clearance: float
    heel: float
    ball: float
    tip: float
    hinge: float
    hinge_height: float
    heel_down: float
    ball_down: float
    tip_down: float
    right: float
    left: float
    tilt: float
    floor: float


class Region(NamedTuple):
    """Where the centre of pressure may be: x, y of the ankle [m] and the unit vector along the
    foot; from back to front along it and from right to left across [m]."""

    x: float
    y: float
    ahead_x: float
    ahead_y: float
    back: float
    front: float
    right: float
    left: float

    def place(self, along: float, across: float) -> tuple[float, float]:
        """The point (x, y) [m] at shares of the way from back to front and from right to left."""
        ahead = self.back + along * (self.front - self.back)
        left = self.right + across * (self.left - self.right)
        return (
            self.x + ahead * self.ahead_x - left * self.ahead_y,
            self.y + ahead * self.ahead_y + left * self.ahead_x,
        )

    def nearest(self, x: float, y: float) -> tuple[float, float]:
        """The point of it that is nearest to (x, y) [m]."""
        at_x, at_y, ahead_x, ahead_y, back, front, right, left = self
        dx, dy = x - at_x, y - at_y
        along = min(max(dx * ahead_x + dy * ahead_y, back), front)
        across = min(max(dy * ahead_x - dx * ahead_y, right), left)
        return (
            at_x + along * ahead_x - across * ahead_y,
            at_y + along * ahead_y + across * ahead_x,
        )


class Box(Protocol):
    """What a sole asks of a `foot.Foot`, all [m]."""

    @property
    def heel(self) -> float: ...

    @property
    def toe(self) -> float: ...

    @property
    def half_width(self) -> float: ...

    @property
    def depth(self) -> float: ...

    @property
    def ball(self) -> float: ...

    @property
    def thickness(self) -> float: ...


def sole_of(
    foot: Box, ankle: list[float], frame: list[list[float]], bend: float, ground: Ground
) -> Sole:
    """The Sole of a foot.Foot: ankle (3,) [m], its frame's columns (3, 3), all as lists; bend of
    its toes [rad], up below 0; the Ground under it."""
    (ahead_x, ahead_y, ahead_z), left, up = frame
    size = (ahead_x * ahead_x + ahead_y * ahead_y) ** 0.5 or 1.0
    ahead_x, ahead_y = ahead_x / size, ahead_y / size
    up_ahead, up_z = up[0] * ahead_x + up[1] * ahead_y, up[2]
    c, s = cos(bend), sin(bend)
    # The toes' own axes, along the foot and up.
    toes_ahead, toes_ahead_z = c * size - s * up_ahead, c * ahead_z - s * up_z
    toes_up, toes_up_z = s * size + c * up_ahead, s * ahead_z + c * up_z
    depth, thickness, ball = foot.depth, foot.thickness, foot.ball
    # Heights above the ground, which rises by so much along the foot, and across it.
    rise = ground.slope_x * ahead_x + ground.slope_y * ahead_y
    tilt = left[2] - ground.slope_x * left[0] - ground.slope_y * left[1]
    floor = ground.at(ankle[0], ankle[1])
    base = ankle[2] - floor - foot.half_width * abs(tilt)
    hinge = ball * size + (thickness - depth) * up_ahead
    heel = -foot.heel * size - depth * up_ahead
    hind_edge, toe_edge = ball * size - depth * up_ahead, hinge - thickness * toes_up
    tip = hinge + (foot.toe - ball) * toes_ahead - thickness * toes_up
    hinge_z = base + ball * ahead_z + (thickness - depth) * up_z
    heel_z = base - foot.heel * ahead_z - depth * up_z - rise * heel
    ball_z = min(
        base + ball * ahead_z - depth * up_z - rise * hind_edge,
        hinge_z - thickness * toes_up_z - rise * toe_edge,
    )
    tip_z = hinge_z + (foot.toe - ball) * toes_ahead_z - thickness * toes_up_z - rise * tip
    lowest = min(heel_z, ball_z, tip_z)
    half = foot.half_width * abs(left[1] * ahead_x - left[0] * ahead_y)
    under = depth * (up[1] * ahead_x - up[0] * ahead_y)
    return Sole(
        ankle[0],
        ankle[1],
        ahead_x,
        ahead_y,
        lowest,
        heel,
        max(hind_edge, toe_edge),
        tip,
        hinge,
        hinge_z + floor,
        max(1 - (heel_z - lowest) / CLEARANCE, 0.0),
        max(1 - (ball_z - lowest) / CLEARANCE, 0.0),
        max(1 - (tip_z - lowest) / CLEARANCE, 0.0),
        -half - under,
        half - under,
        tilt,
        floor,
    )


def edge_share(share: float, heel: float) -> float:
    """A share of the half width, smaller the less of the heel (1 to 0) is down."""
    return share + (1 - heel) * (min(_RAISED_EDGE_SHARE, share) - share)


def carrying(sole: Sole, heel: float, share: float) -> Region:
    """The Region of a Sole in which it can be pressed on.

    heel: how much of it (0 to 1) is pressed on. share: of the width.
    """
    tip, ball = sole.tip_down, sole.ball_down
    ends = sole.heel, sole.ball, sole.tip
    back = heel * ends[0] + (1 - heel) * (ball * ends[1] + (1 - ball) * ends[2])
    front = tip * ends[2] + (1 - tip) * (ball * ends[1] + (1 - ball) * ends[0])
    back, front = min(back, front), max(back, front)
    room = _ROOM * (ends[2] - ends[0])
    if ball > _BALL_DOWN:
        front = min(front, ends[1] + _FRONT * (ends[2] - ends[1]))
    back, front = max(min(back, front), ends[0] + room), min(front, ends[2] - room)
    middle, half = (sole.right + sole.left) / 2, share * (sole.left - sole.right) / 2
    return Region(*sole[:4], min(back, front), max(back, front), middle - half, middle + half)


def edge_of(tilt: float) -> float:
    """How much a sole with a tilt (as Sole has it) stands on its edge alone, from 0 to 1."""
    return min(max((abs(tilt) - _TILTED) / _MORE_TILTED, 0.0), 1.0)


def on_edge(region: Region, sole: Sole, tilt: float) -> Region:
    """The part of a Region on the edge of a Sole that is meant to be down; tilt: as Sole has it, of
    the foot as it is meant to be."""
    share = edge_of(tilt)
    if share == 0:
        return region
    width = _EDGE * (sole.left - sole.right)
    right, left = sole.right, sole.right + width
    if tilt < 0:
        right, left = sole.left - width, sole.left
    return region._replace(
        right=region.right + share * (right - region.right),
        left=region.left + share * (left - region.left),
    )

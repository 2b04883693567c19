# SPDX-License-Identifier: GPL-3.0-or-later
"""A reference that a body with these feet can perform: soles on the floor, weight above them.

A captured stance foot skates, tilts and floats by a few centimetres and degrees. The simulated
foot is a box on a floor: asked to follow, its ankle would work against its balance. So the soles
of the reference are laid flat and still, and the hips moved by the little that brings the
zero-moment point inside the soles; two-bone inverse kinematics bends the legs to suit.
"""

import numpy as np

from .footing import floors_under, level
from .leg_bending import bend_leg, blend, in_plane
from .momentum import GRAVITY, com_dynamics, zero_moment_point
from .rotations import unit
from .skeleton import FEET, SIDES, TOES
from .stance import DIRECTIONS, around, moving_mean, runs, support_reach

_RAMP = 0.2  # [s] into and out of the planted pose
_MAX_SHIFT = 0.2  # [m] a foot may wander in one stance and still be held in one place
_MAX_TURN = np.radians(40)
#: Of the sole's half width: what the zero-moment point keeps from the edge of one foot, of two.
_MARGIN, _DUAL_MARGIN = 0.6, 1.5
_ROUNDS = 2


def physical(character, trajectory, contacts, cutoff, footings=None, on_mark=True):
    """Trajectory with planted feet and the weight above them.

    contacts: (F, 2) stance of left and right. cutoff [Hz]: what the controller will see of it.
    footings: (left, right) Footing, None on the level. on_mark: feet begin where they are at the
    first sample, and else in the middle of where they are in their stance.
    """
    footings = footings or level(character.ground, len(contacts))
    shift = np.zeros_like(trajectory.root)
    planted = plant(character, trajectory, contacts, footings, on_mark, shift)
    for _ in range(_ROUNDS):
        shift = shift + _weight_shift(character, planted, contacts, cutoff, footings)
        planted = plant(character, trajectory, contacts, footings, on_mark, shift)
    return planted


def _weight_shift(character, trajectory, contacts, cutoff, footings):
    """(F, 3) horizontal displacement of the hips [m] that takes the zero-moment point inside.

    With the correction d of the centre of mass at height z, the zero-moment point moves by
    d - (z / g) d''; the bounded solution for a wanted movement is its convolution with
    exp(-|t| / T) / 2T, T = sqrt(z / g): the body leans before it must.
    """
    smooth, _, _, _ = trajectory.smoothed(cutoff)
    joints, frames = character.pose(smooth)
    centres = character.body_centres(joints, frames)
    dynamics = com_dynamics(character, centres, frames, trajectory.rate, cutoff)
    floors = floors_under(footings, joints[:, FEET], contacts)
    point = zero_moment_point(character, dynamics, floors)
    corners = character.sole_corners(joints, frames)
    margin = np.where(contacts.all(1), _DUAL_MARGIN, _MARGIN) * character.feet[0].half_width
    reach = support_reach(corners, contacts) - margin[:, None]
    wanted = _inside(point, reach) - point
    over = dynamics.com[:, 2] - (floors - character.ground)
    height = float(np.median(over)) - character.ground
    pad = len(wanted) - 1
    mirrored = np.concatenate([wanted, wanted[pad - 1 : 0 : -1]])
    frequency = np.fft.rfftfreq(len(mirrored), 1 / trajectory.rate)[:, None]
    gain = 1 / (1 + (height / GRAVITY) * (2 * np.pi * frequency) ** 2)
    shift = np.fft.irfft(np.fft.rfft(mirrored, axis=0) * gain, len(mirrored), axis=0)
    return np.pad(shift[: len(wanted)], ((0, 0), (0, 1)))


def _inside(points, reach):
    """(F, 2) points moved into the regions that extend (F, 16) along DIRECTIONS; those without a
    region stay."""
    points = points.copy()
    for _ in range(3):
        for direction, limit in zip(DIRECTIONS, reach.T, strict=True):
            beyond = np.maximum(points @ direction - limit, 0.0)
            points -= np.where(np.isfinite(beyond), beyond, 0.0)[:, None] * direction
    return points


def plant(character, trajectory, contacts, footings, on_mark, shift):
    """Trajectory with the feet planted on their footings while `contacts` (F, 2) hold, and the hips
    moved by shift (F, 3) [m] over them: feet stay where the animation has them. on_mark: as
    `physical` has it."""
    joints, frames = character.pose(trajectory)
    ankles, frames = joints[:, FEET].copy(), frames.copy()
    joints = joints + shift[:, None]
    weight = _weights(contacts, trajectory.rate)
    for side, label in enumerate(SIDES):
        foot, toe = FEET[side], TOES[side]
        own, footing = ankles[:, side], footings[side]
        still = footing.still(own, frames[:, foot])
        ankle, heading = _targets(*still, contacts[:, side], on_mark)
        # The ankle is over a sole that lies in its plane.
        depth = character.feet[side].depth / footing.normals[:, 2]
        ankle[:, 2] = footing.heights(ankle) + depth
        ankle, up = footing.moved(ankle, True), footing.moved(footing.normals)
        heading = in_plane(footing.moved(heading), up)
        share = weight[:, side, None]
        ankle = own + share * (ankle - own)
        bend_leg(joints, frames, label, ankle)
        straight = np.stack([heading, np.cross(up, heading), up], -1)
        frames[:, toe] = blend(frames[:, toe], straight, share)
        frames[:, foot] = blend(frames[:, foot], straight, share)
    return character.trajectory_of(trajectory.rate, joints[:, 0], frames)


def _weights(contacts, rate):
    """(F, 2) from 0 to 1, 1 throughout each stance but for ramps inside its ends."""
    half = max(1, round(_RAMP * rate)) // 2
    # Eroded by half a window, then averaged over one: 0 at the ends of the stance.
    linear = moving_mean(around(contacts, half, np.all), half)
    return linear * linear * (3 - 2 * linear)


def _targets(ankles, frames, contact, on_mark):
    """Where each stance holds the ankle (F, 3) and which way the flat foot looks (F, 3)."""
    ankles = ankles.copy()
    heading = unit(frames[:, :, 0] * [1, 1, 0])
    for start, stop in runs(contact):
        until = 1 if on_mark and start == 0 else stop
        place = np.median(ankles[start:until, :2], axis=0)
        ahead = unit(heading[start:stop].mean(0))
        apart = np.linalg.norm(ankles[start:stop, :2] - place, axis=1).max()
        turned = np.arccos(np.clip(heading[start:stop] @ ahead, -1, 1)).max()
        if apart < _MAX_SHIFT and turned < _MAX_TURN:
            ankles[start:stop, :2] = place
            heading[start:stop] = ahead
    return ankles, heading

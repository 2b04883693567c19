# SPDX-License-Identifier: GPL-3.0-or-later
"""Feet of a walk on the floor: standing ones on it, swinging ones well above it.

A captured foot bends at the toes; the body's is a stiff box. At push-off its toes would hang in
the air, at heel strike and in mid-swing it would be in the floor. There a real sole strikes early
or late, and each strike brakes the walk.
"""

import numpy as np

from .planting import bend_leg
from .rotations import rotation_about
from .skeleton import SEGMENT_INDEX, SIDES
from .stance import runs

_CLEARANCE = 0.05  # [m] of a sole in mid-swing, at least
#: The pelvis is lower [m] than captured: a straight leg cannot step any longer.
_LOWERED = 0.015
_MOST_PITCH = 0.06  # [m] that toes are brought down
_SMOOTHING = 0.05  # [s]


def grounded(character, trajectory, contacts):
    """Trajectory whose lowest sole corners are on the floor while `contacts` (F, 2) hold, and
    clear of it else."""
    joints, frames = (values.copy() for values in character.pose(trajectory))
    lowered = joints - [0, 0, _LOWERED]
    for side, label in enumerate(SIDES):
        foot = SEGMENT_INDEX[f"foot_{label}"]
        contact, sole = contacts[:, side], character.feet[side]
        ankle = joints[:, foot].copy()
        height = _height(sole, ankle, frames[:, foot]) - character.ground
        # The toes of a heel that is lifted go down to the floor.
        heel_off = contact & (frames[:, foot, 2, 0] < 0.05)
        turn = np.where(heel_off, np.clip(height, 0, _MOST_PITCH) / sole.toe, 0.0)
        turn = _smooth(_bridged(turn, contact), trajectory.rate)
        frames[:, foot] = frames[:, foot] @ rotation_about(1, turn)
        height = _height(sole, ankle, frames[:, foot]) - character.ground
        rise = _bridged(np.where(contact, -height, 0.0), contact)
        rise += np.maximum(_clearance(contact) - (height + rise), 0) * ~contact
        ankle[:, 2] += _smooth(rise, trajectory.rate)
        bend_leg(lowered, frames, label, ankle)
    return character.trajectory_of(trajectory.rate, lowered[:, 0], frames)


def _height(sole, ankle, frames):
    """(F,) height of the lowest sole corner [m]."""
    return (ankle[:, None] + np.einsum("fij,cj->fci", frames, sole.corners))[..., 2].min(1)


def _phases(contact):
    """(start, stop, phases) of each swing: phases from above 0 to below 1."""
    for start, stop in runs(~contact):
        yield start, stop, (np.arange(stop - start) + 1) / (stop - start + 1)


def _bridged(values, contact):
    """(F,) values of stances, led smoothly from each to the next one."""
    values, last = values.copy(), len(values) - 1
    for start, stop, phase in _phases(contact):
        before = values[start - 1] if start else values[min(stop, last)]
        after = values[stop] if stop <= last else before
        values[start:stop] = before + phase**2 * (3 - 2 * phase) * (after - before)
    return values


def _clearance(contact):
    """(F,) least height of a sole [m]."""
    wanted = np.zeros(len(contact))
    for start, stop, phase in _phases(contact):
        wanted[start:stop] = _CLEARANCE * np.minimum(1, 4.8 * phase * (1 - phase))
    return wanted


def _smooth(values, rate):
    """(F,) values, averaged over a short bell."""
    width = max(1, round(_SMOOTHING * rate)) | 1
    bell = np.hanning(width + 2)[1:-1]
    return np.convolve(np.pad(values, width // 2, mode="edge"), bell / bell.sum(), "valid")

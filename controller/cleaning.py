# SPDX-License-Identifier: GPL-3.0-or-later
"""Mending a motion that no body can do: pops, floating, skating feet.

Works on the motion that is tracked; the animation itself stays as it is, and what is baked is the
whole way from there to the simulation. What has no fault is not touched at all.
"""

from dataclasses import replace

import numpy as np

from .exceptions import SettingsError
from .faults import (
    AIR_HEIGHT,
    DEPTH,
    NEED,
    around,
    find_pops,
    meet_ground,
    relative_frames,
    size_of,
)
from .planting import plant
from .rotations import exponential, matrix_from_quaternion, multiply, rotation_vector
from .stance import runs

#: What there is, in the order in which it is done.
CLEANING = ("despike", "ground", "unskate")

_TURN_SPEED = 10.0  # [rad/s] at most, where a jump to another pose is spread
_TOLERANCE = 0.02  # [m, adult] above the floor that a foot may stay, and 0.03 below
_FLIGHT_EDGE = 0.1  # [s] before and after a flight in which heights are not judged
_DRIFT = 0.5  # [s]


def check_names(names):
    """Raise SettingsError for a name that is none of CLEANING."""
    for name in names:
        if name not in CLEANING:
            raise SettingsError(f"There is no cleaning '{name}': use {', '.join(CLEANING)}.")


def clean(character, trajectory, names):
    """The trajectory, mended. names: of CLEANING. The very same one if it has no fault."""
    check_names(names)
    steps = {"despike": despike, "ground": ground, "unskate": unskate}
    for name in CLEANING:
        if name in names:
            trajectory = steps[name](character, trajectory)
    return trajectory


# --- Pops ----------------------------------------------------------------------------------------


def despike(character, trajectory, pops=None):
    """Trajectory without pops (None: find them): joints and root go straight over them. A jump to
    another pose is spread over some time; one to another place is taken back."""
    pops = find_pops(character, trajectory) if pops is None else pops
    if not pops:
        return trajectory
    root = trajectory.root.copy()
    _, frames = character.pose(trajectory)
    turns = relative_frames(character, frames)
    for pop in pops:
        if pop.channel is not None:
            _mend_turn(turns[:, pop.channel], pop, trajectory.rate)
        elif pop.stays:
            root[pop.last :] -= _unexpected(root, pop)
        else:
            _mend_root(root, pop)
    if all(pop.channel is None for pop in pops):
        return replace(trajectory, root=root)
    return character.trajectory_of(trajectory.rate, root, _chained(character, turns))


def _chained(character, turns):
    """(F, S, 3, 3) frames of rotations (F, S, 4) against the parents."""
    frames = matrix_from_quaternion(turns)
    for joint in character.joints:
        frames[:, joint.segment] = frames[:, joint.parent] @ frames[:, joint.segment]
    return frames


def _ends(pop, count):
    """Samples before and after a pop; both the same where the clip begins or ends with it."""
    before, after = pop.first - 1, pop.last + 1
    if before < 0:
        return after, after
    return (before, before) if after >= count else (before, after)


def _mend_root(root, pop):
    before, after = _ends(pop, len(root))
    inside = np.arange(pop.first, pop.last + 1)
    share = ((inside - before) / max(1, after - before))[:, None]
    root[inside] = root[before] + share * (root[after] - root[before])


def _unexpected(root, pop):
    """(3,) what a root moves in a jump beyond what it did before and does after."""
    steps = np.diff(root, axis=0)
    near = np.r_[steps[max(0, pop.first - 4) : pop.first], steps[pop.last : pop.last + 4]]
    return root[pop.last] - root[pop.first] - np.median(near, axis=0) * (pop.last - pop.first)


def _mend_turn(path, pop, rate):
    if not pop.stays:
        before, after = _ends(pop, len(path))
        inside = np.arange(pop.first, pop.last + 1)
        share = ((inside - before) / max(1, after - before))[:, None]
        path[inside] = _between(path[before], path[after], share)
        return
    jump = rotation_vector(multiply(path[pop.last], path[pop.first] * [1, -1, -1, -1]))
    half = max(1, round(0.75 * np.linalg.norm(jump) / _TURN_SPEED * rate))
    for first, last, sign in (
        (max(0, pop.last - half), pop.last, 1),
        (pop.last, min(len(path), pop.last + half), -1),
    ):
        at = np.arange(first, last)
        x = (at - (pop.last - half - 0.5)) / (2 * half)
        weight = x * x * (3 - 2 * x) - (sign < 0)
        path[at] = multiply(exponential(weight[:, None] * jump), path[at])


def _between(start, end, share):
    """(n, 4) rotations from one to another, by shares (n, 1)."""
    turn = rotation_vector(multiply(end, start * [1, -1, -1, -1]))
    return multiply(exponential(share * turn), start)


# --- Ground --------------------------------------------------------------------------------------


def ground(character, trajectory):
    """Trajectory whose feet are on the floor where it needs the floor: what floats comes down,
    what drifts or sinks is brought back. Flights keep their height above where they start."""
    sound = despike(character, trajectory)
    meets = meet_ground(character, trajectory, sound)
    size = size_of(character)
    level = around(meets.low, trajectory.rate, _DRIFT)
    if not meets.floats.any() and level.min() > -AIR_HEIGHT * size and meets.low.min() > -DEPTH:
        return trajectory
    high = np.maximum(meets.low - _TOLERANCE * size, 0)
    deep = np.minimum(meets.low + 1.5 * _TOLERANCE * size, 0)
    offset = high + deep
    judged = ~_flights(meets, size, trajectory.rate)
    if not judged.any():
        return trajectory
    offset = np.interp(np.arange(len(offset)), np.flatnonzero(judged), offset[judged])
    root = trajectory.root.copy()
    root[:, 2] -= offset
    return replace(trajectory, root=root)


def _flights(meets, size, rate):
    """(F,) samples in the air for good, with what leads there and back."""
    flies = (meets.low > _TOLERANCE * size) & (meets.need < NEED)
    edge = round(_FLIGHT_EDGE * rate)
    wide = np.zeros_like(flies)
    for start, stop in runs(flies):
        wide[max(0, start - edge) : stop + edge] = True
    return wide


# --- Feet ----------------------------------------------------------------------------------------


def unskate(character, trajectory):
    """Trajectory whose skating feet are planted, each stance in one place."""
    meets = meet_ground(character, trajectory, despike(character, trajectory))
    planted = np.zeros_like(meets.contacts)
    for foot in range(2):
        for start, stop in runs(meets.contacts[:, foot] | meets.skates[:, foot]):
            planted[start:stop, foot] = meets.skates[start:stop, foot].any()
    return plant(character, trajectory, planted) if planted.any() else trajectory

# SPDX-License-Identifier: GPL-3.0-or-later
"""Mending a motion that no body can do: pops, floating, walks on the spot, skating feet.

Works on the motion that is tracked; the animation itself stays as it is, and what is baked is the
whole way from there to the simulation. What has no fault is not touched at all.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..body.character import Character
from ..exceptions import SettingsError
from ..geometry.belt import way_over
from ..geometry.leg_bending import bend_leg
from ..geometry.motion import Motion
from ..geometry.rotations import (
    exponential,
    matrix_from_quaternion,
    multiply,
    quaternion_from_matrix,
    rotation_vector,
)
from ..geometry.skeleton import SEGMENT_INDEX, SIDES
from ..geometry.stance import adult_size, around, runs
from ..geometry.trajectory import Trajectory
from ..support.terrain import Terrain
from .faults import DEPTH, Ground, Pop, find_pops, find_turn_pops, meet_ground, relative_frames

#: What there is, in the order in which it is done.
CLEANING = ("despike", "ground", "travel", "unskate")

# By trial on captured motion with faults put in, as tests/controller/test_clip_check.py has it.
_TURN_SPEED = 10.0  # [rad/s] at most, where a jump to another pose is spread
_TOLERANCE, _SUNK = 0.02, 0.03  # [m, adult] above and below the floor that a foot may stay
_LONGEST_FLIGHT = 0.5  # [s] that keeps its height above what floats
_REACH = 0.25  # [m] that a leg may be turned away


def check_names(names: Sequence[str]) -> None:
    """Raise SettingsError for a name that is none of CLEANING."""
    for name in names:
        if name not in CLEANING:
            raise SettingsError(f"There is no cleaning '{name}': use {', '.join(CLEANING)}.")


def clean(
    character: Character,
    trajectory: Trajectory,
    names: Sequence[str],
    terrain: Terrain | None = None,
) -> Trajectory:
    """The trajectory, mended. names: of CLEANING; terrain: terrain.Terrain that it stands on, None
    for a level floor. The very same one if it has no fault."""
    check_names(names)
    if "despike" in names:
        trajectory = despike(character, trajectory)
    if "ground" in names:
        trajectory = ground(character, trajectory, terrain)
    if "travel" in names:
        trajectory = travel(character, trajectory, terrain)
    if "unskate" in names:
        trajectory = unskate(character, trajectory, terrain)
    return trajectory


# --- Pops ----------------------------------------------------------------------------------------


def despike(
    character: Character, trajectory: Trajectory, pops: Sequence[Pop] | None = None
) -> Trajectory:
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
            for channel in (pop.channel, *_bearers(character, pop.channel)):
                _mend_turn(turns[:, channel], pop, trajectory.rate)
        elif pop.stays:
            root[pop.last :] -= _unexpected(root, pop)
        else:
            _mend_root(root, pop)
    if all(pop.channel is None for pop in pops):
        return replace(trajectory, root=root)
    return character.trajectory_of(trajectory.rate, root, _chained(character, turns))


class Despiked(NamedTuple):
    """A motion without pops: trajectory of the body, and (F, S, 4) turns of what carries its
    segments, None if nothing popped."""

    trajectory: Trajectory
    bones: np.ndarray | None


def despike_motion(character: Character, trajectory: Trajectory, motion: Motion) -> Despiked:
    """A motion, and its trajectory, without pops of joints and root, nor of what carries a segment
    beside what its joints can do.

    A forearm that turns over about itself does not show in a body whose elbow is a hinge, nor does
    what a flip has of that: the hand would keep it.
    """
    raw = quaternion_from_matrix(character.pose(trajectory)[1])
    apart = multiply(raw * [1, -1, -1, -1], motion.rotations)
    pops = [*find_pops(character, trajectory), *find_turn_pops(apart, trajectory.rate)]
    if not pops:
        return Despiked(trajectory, None)
    for pop in pops:
        if pop.channel is not None:
            hanging = [joint.segment for joint in character.joints if joint.parent == pop.channel]
            for channel in (pop.channel, *_bearers(character, pop.channel), *hanging):
                _mend_turn(apart[:, channel], pop, trajectory.rate)
    return Despiked(despike(character, trajectory, pops), multiply(raw, apart))


def _bearers(character: Character, channel: int | None) -> list[int]:
    """The segment on which one hangs by a hinge, if it does: that turns as the hinge needs it."""
    joints = (joint for joint in character.joints if joint.segment == channel)
    return [joint.parent for joint in joints if len(joint.axes) == 1]


def _chained(character: Character, turns: np.ndarray) -> np.ndarray:
    """(F, S, 3, 3) frames of rotations (F, S, 4) against the parents."""
    frames = matrix_from_quaternion(turns)
    for joint in character.joints:
        frames[:, joint.segment] = frames[:, joint.parent] @ frames[:, joint.segment]
    return frames


def _ends(pop: Pop, count: int) -> tuple[int, int]:
    """Samples before and after a pop; both the same where the clip begins or ends with it."""
    before, after = pop.first - 1, pop.last + 1
    if before < 0:
        return after, after
    return (before, before) if after >= count else (before, after)


def _mend_root(root: np.ndarray, pop: Pop) -> None:
    before, after = _ends(pop, len(root))
    inside = np.arange(pop.first, pop.last + 1)
    share = ((inside - before) / max(1, after - before))[:, None]
    root[inside] = root[before] + share * (root[after] - root[before])


def _unexpected(root: np.ndarray, pop: Pop) -> np.ndarray:
    """(3,) what a root moves in a jump beyond what it did before and does after."""
    steps = np.diff(root, axis=0)
    near = np.r_[steps[max(0, pop.first - 4) : pop.first], steps[pop.last : pop.last + 4]]
    return root[pop.last] - root[pop.first] - np.median(near, axis=0) * (pop.last - pop.first)


def _mend_turn(path: np.ndarray, pop: Pop, rate: float) -> None:
    if not pop.stays:
        before, after = _ends(pop, len(path))
        inside = np.arange(pop.first, pop.last + 1)
        share = ((inside - before) / max(1, after - before))[:, None]
        path[inside] = _between(path[before], path[after], share)
        return
    jump = rotation_vector(multiply(path[pop.last], path[pop.first] * [1, -1, -1, -1]))
    # The curve is steepest in its middle: 0.75 of the jump over `half`.
    half = max(1, round(0.75 * np.linalg.norm(jump) / _TURN_SPEED * rate))
    for first, last, sign in (
        (max(0, pop.last - half), pop.last, 1),
        (pop.last, min(len(path), pop.last + half), -1),
    ):
        at = np.arange(first, last)
        x = (at - (pop.last - half - 0.5)) / (2 * half)
        weight = x * x * (3 - 2 * x) - (sign < 0)
        path[at] = multiply(exponential(weight[:, None] * jump), path[at])


def _between(start: np.ndarray, end: np.ndarray, share: np.ndarray) -> np.ndarray:
    """(n, 4) rotations from one to another, by shares (n, 1)."""
    turn = rotation_vector(multiply(end, start * [1, -1, -1, -1]))
    return multiply(exponential(share * turn), start)


# --- Ground --------------------------------------------------------------------------------------


def ground(
    character: Character, trajectory: Trajectory, terrain: Terrain | None = None
) -> Trajectory:
    """Trajectory whose feet are on the floor where they should be: what floats comes down, with
    the flights that there are in it, and what sinks comes up."""
    meets = meet_ground(character, trajectory, despike(character, trajectory), terrain)
    size = adult_size(character)
    if not meets.floats.any() and meets.low.min() > -DEPTH * size:
        return trajectory
    offset = np.minimum(meets.low + _SUNK * size, 0)
    # All of what is high, nothing of what is within the tolerance, and no step between.
    high = meets.low * np.clip(meets.low / (_TOLERANCE * size) - 1, 0, 1)
    level = _opened(high, max(1, round(_LONGEST_FLIGHT * trajectory.rate / 2)))
    for start, stop in runs(high > 0):
        if meets.floats[start:stop].any():
            offset[start:stop] = level[start:stop]
    root = trajectory.root.copy()
    root[:, 2] -= offset
    return replace(trajectory, root=root)


def _opened(values: np.ndarray, half: int) -> np.ndarray:
    """(F,) values without the bumps that are shorter than 2 * half + 1 samples."""
    low = around(values, half, np.min)
    return around(low, half, np.max)


# --- Feet ----------------------------------------------------------------------------------------


def travel(
    character: Character, trajectory: Trajectory, terrain: Terrain | None = None
) -> Trajectory:
    """Trajectory that goes where its feet take it, if it walks on the spot, as on a treadmill."""
    meets = meet_ground(character, trajectory, despike(character, trajectory), terrain)
    if meets.belt is None:
        return trajectory
    return replace(trajectory, root=trajectory.root + way_over(meets.belt, trajectory.rate))


def unskate(
    character: Character, trajectory: Trajectory, terrain: Terrain | None = None
) -> Trajectory:
    """Trajectory whose skating feet stand: where all feet that carry slide, the body moves against
    it; where one does, its leg reaches for the place where it stood."""
    trajectory = travel(character, trajectory, terrain)
    meets = meet_ground(character, trajectory, despike(character, trajectory), terrain)
    if not meets.skates.any():
        return trajectory
    trajectory = _anchored(trajectory, meets)
    meets = meet_ground(character, trajectory, despike(character, trajectory), terrain)
    return _reaching(character, trajectory, meets) if meets.skates.any() else trajectory


def _anchored(trajectory: Trajectory, meets: Ground) -> Trajectory:
    """Where all feet that carry skate, the body goes as if they did not."""
    whole = meets.skates.any(1) & (meets.skates == meets.carries).all(1)
    count = np.maximum(meets.skates.sum(1), 1)[:, None]
    slip = (meets.slip * meets.skates[..., None]).sum(1) / count
    root = trajectory.root.copy()
    root[:, :2] -= np.cumsum(slip * whole[:, None], axis=0) / trajectory.rate
    return replace(trajectory, root=root)


def _reaching(character: Character, trajectory: Trajectory, meets: Ground) -> Trajectory:
    """Each leg bent to where its skating foot stands, and back while it swings."""
    joints, frames = character.pose(trajectory)
    joints, frames = joints.copy(), frames.copy()
    time = np.arange(len(joints)) / trajectory.rate
    for foot, label in enumerate(SIDES):
        ankle = joints[:, SEGMENT_INDEX[f"foot_{label}"]].copy()
        offset = _held(ankle[:, :2], meets, foot)
        known = np.flatnonzero(meets.carries[:, foot])
        if len(known) and offset[known].any():
            ankle[:, :2] += _spread(offset, known, time)
            bend_leg(joints, frames, label, ankle)
    return character.trajectory_of(trajectory.rate, joints[:, 0], frames)


def _held(plan: np.ndarray, meets: Ground, foot: int) -> np.ndarray:
    """(F, 2) way from an ankle's plan (F, 2) to where each skating stance holds it."""
    offset = np.zeros_like(plan)
    for start, stop in runs(meets.carries[:, foot]):
        if meets.skates[start:stop, foot].any():
            place = np.median(plan[start:stop], axis=0)
            way = place - plan[start:stop]
            size = np.linalg.norm(way, axis=1, keepdims=True)
            offset[start:stop] = way * np.minimum(1, _REACH / np.maximum(size, 1e-9))
    return offset


def _spread(offset: np.ndarray, known: np.ndarray, time: np.ndarray) -> np.ndarray:
    """(F, 2) offsets as they are at the known samples, and between those on the way."""
    return np.stack([np.interp(time, time[known], column[known]) for column in offset.T], 1)

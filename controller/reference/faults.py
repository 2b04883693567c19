# SPDX-License-Identifier: GPL-3.0-or-later
"""What no body can do in a motion, sample by sample: pops, floating, skating feet.

Found here once, for the clip check to tell and for cleaning to mend. The limits are those of a
person, with room to spare: none of them lies near what captured motion does. What is
the most in 21 captured clips, walks, runs, kicks and leaps among them, is told at each.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..body.character import Character
from ..body.momentum import GRAVITY, com_dynamics
from ..geometry.belt import find_belt
from ..geometry.motion import Motion
from ..geometry.rotations import multiply, quaternion_from_matrix, rotation_vector
from ..geometry.skeleton import FEET, MINOR, SEGMENTS
from ..geometry.stance import (
    FLIGHT,
    Above,
    adult_size,
    is_in_place,
    reference_contacts,
    runs,
    stance_of,
)
from ..geometry.trajectory import Trajectory
from ..support.terrain import Terrain

#: A joint that is so much faster [rad/s], or a root so much faster [m/s], than in the 0.15 s
#: around has popped: as if it had gained that speed in a single sample. Captured: 26 and 1.5.
POP_SPEED = 30.0
TELEPORT_SPEED = 3.0
#: What carries a segment has flipped if it turns faster and further than this between two samples
#: [rad/s], [rad], even where the motion of a body with hinges shows nothing of it. Captured: 26
#: rad/s, 35 degrees.
FLIP_SPEED, FLIP_ANGLE = 60.0, np.radians(90)
#: Fastest joint that a motion may have in a kick or a throw [rad/s], apart from pops. Captured: 30,
#: in a kick.
JOINT_SPEED = 40.0
#: Feet at least this high [m, adult] are in the air, and no foot may be this deep below the floor:
#: a sole without toes goes 3 to 5 cm under it at push-off. Captured: 6 cm.
AIR_HEIGHT, DEPTH = 0.05, 0.08
#: A foot that carries and goes faster [m/s] over more than this [m, adult] skates. Captured: none.
SKATE_SPEED, SKATE_LENGTH = 0.3, 0.12

#: Of its weight, the least that a body asks of the floor where it is not in flight: half way from
#: falling freely to standing.
NEED = 0.5
# By trial on the captured clips, and on faults put into them.
_HEIGHT_CUTOFF = 6.0  # [Hz] of the motion that need is computed from
_END = 0.1  # [s] at the ends of a clip in which that says nothing
_AROUND = 0.07  # [s] to each side that a step is compared with
_RETURN = 0.4  # [s] in which a pop is over; what takes longer has jumped and stays
_SHORTEST = 0.1  # [s] of floating, and of having no foot that stands
_SHORTEST_SKATE = 0.05
_LEVEL = 0.01  # [m, adult] within which two feet are equally low


@dataclass(frozen=True)
class Pop:
    """What leaves its course from one sample to the next.

    channel: index of the segment whose joint turns, 0 for the body as a whole; None for a root
    that moves. first, last: samples that are off; where `stays`, the samples before and after the
    jump, and the course goes on from there. speed [rad/s] or [m/s].
    """

    channel: int | None
    first: int
    last: int
    stays: bool
    speed: float

    @property
    def name(self) -> str:
        """Name of the segment, "root" for one that moves."""
        return "root" if self.channel is None else SEGMENTS[self.channel]


def relative_frames(character: Character, frames: np.ndarray) -> np.ndarray:
    """(F, S, 4) rotation of each segment against its parent, of the pelvis against the world, w
    first, of frames (F, S, 3, 3)."""
    relative = frames.copy()
    for joint in character.joints:
        parent = np.swapaxes(frames[:, joint.parent], 1, 2)
        relative[:, joint.segment] = parent @ frames[:, joint.segment]
    return quaternion_from_matrix(relative)


def joint_velocities(turns: np.ndarray, rate: float) -> np.ndarray:
    """(F - 1, S, 3) angular velocity [rad/s] from each sample to the next, of (F, S, 4)."""
    return rotation_vector(multiply(turns[1:], turns[:-1] * [1, -1, -1, -1])) * rate


def find_pops(character: Character, trajectory: Trajectory) -> tuple[Pop, ...]:
    """Tuple of Pop: joints, in the order of SEGMENTS, then the root. Toes do not count: captures
    often have noise there, and no body stands or falls by it."""
    turns = relative_frames(character, character.pose(trajectory)[1])
    found = find_turn_pops(turns, trajectory.rate)
    velocity = np.diff(trajectory.root, axis=0)[:, None] * trajectory.rate
    speeds = _departure(velocity, trajectory.rate)[:, 0]
    apart = _distances(trajectory.root)
    return tuple(found + _pops(None, speeds, TELEPORT_SPEED, apart, trajectory.rate))


def find_turn_pops(turns: np.ndarray, rate: float) -> list[Pop]:
    """[Pop] of turns (F, S, 4) of segments, in the order of SEGMENTS, but of toes."""
    speeds = _departure(joint_velocities(turns, rate), rate)
    found = []
    for channel in range(len(SEGMENTS)):
        if channel not in MINOR:
            path = turns[:, channel]
            found += _pops(channel, speeds[:, channel], POP_SPEED, _angles(path), rate)
    return found


def find_flips(motion: Motion) -> list[tuple[int, int, float]]:
    """[(sample, segment, angle [rad])]: from this sample to the next what carries the segment, but
    toes, turns by so much."""
    turns = rotation_vector(multiply(motion.rotations[1:], motion.rotations[:-1] * [1, -1, -1, -1]))
    angles = np.linalg.norm(turns, axis=-1)
    flips = (angles > FLIP_ANGLE) & (angles * motion.rate > FLIP_SPEED)
    flips[:, MINOR] = False
    return [(int(i), int(s), float(angles[i, s])) for i, s in np.argwhere(flips)]


def around(values: np.ndarray, rate: float, seconds: float = _AROUND) -> np.ndarray:
    """(n, …) running median of values over `seconds` to each side: what they are without what is
    shorter than that."""
    half = min(max(2, round(seconds * rate)), len(values) - 1)
    padded = np.pad(values, ((half, half), *[(0, 0)] * (values.ndim - 1)), mode="reflect")
    return np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1, axis=0), -1)


def _departure(velocities: np.ndarray, rate: float) -> np.ndarray:
    """(F - 1, …) how far velocities (F - 1, …, 3) are from those around."""
    return np.linalg.norm(velocities - around(velocities, rate), axis=-1)


#: How far samples are from a sample.
Apart = Callable[[int, np.ndarray], np.ndarray]


def _angles(path: np.ndarray) -> Apart:
    def apart(one: int, others: np.ndarray) -> np.ndarray:
        return np.linalg.norm(
            rotation_vector(multiply(path[others], path[one] * [1, -1, -1, -1])), axis=-1
        )

    return apart


def _distances(path: np.ndarray) -> Apart:
    return lambda one, others: np.linalg.norm(path[others] - path[one], axis=-1)


def _pops(
    channel: int | None, speeds: np.ndarray, limit: float, apart: Apart, rate: float
) -> list[Pop]:
    """Pops of one channel. speeds: (F - 1,) departure of each step; apart: Apart."""
    steps = np.flatnonzero(speeds > limit).tolist()
    longest, count = round(_RETURN * rate), len(speeds) + 1
    found = []
    while steps:
        start = steps[0]
        end = _back(start, [s for s in steps[1:] if s - start <= longest], apart)
        if end is not None:
            first, last, stays = start + 1, end, False
        else:
            end = start
            while end + 1 in steps:  # one jump, over several steps
                end += 1
            first, last, stays = start, end + 1, True
            if start < 2:  # the clip begins with it
                first, last, stays = 0, end, False
            elif end > count - 4:
                first, last, stays = start + 1, count - 1, False
        found.append(Pop(channel, first, last, stays, float(speeds[start : end + 1].max())))
        steps = [s for s in steps if s > end]
    return found


def _back(start: int, ends: list[int], apart: Apart) -> int | None:
    """The first of these steps after which a channel is back on its course, or None."""
    for end in ends:
        excursion = apart(start, np.arange(start + 1, end + 1)).max()
        if apart(start, np.array([end + 1]))[0] < 0.5 * excursion:
            return end
    return None


@dataclass(frozen=True)
class Ground:
    """How a motion meets the floor, over F samples.

    contacts: (F, 2); stance: (F,) states. low: (F,) height of the lowest sole corner above the
    floor [m]. need: (F,) share of its weight that the body asks of the floor. slip: (F, 2, 2)
    horizontal velocity of heel or toe of each foot, the slower one [m/s]. carries: (F, 2) feet
    that are on the floor while it is needed; skates: those of them that slide. floats: (F,) in the
    air though it is no flight; hangs: (F, 2) feet that stand still meanwhile, over colliders that
    should have another one there. heights: (F, 2) of each foot's lowest corner, as `low`. belt:
    (F, 2) velocity [m/s] with which the floor would have to go for the feet to stand on it, None
    where it stands still; contacts, slip and what skates are told against it.
    """

    in_place: bool
    contacts: np.ndarray
    stance: np.ndarray
    low: np.ndarray
    need: np.ndarray
    slip: np.ndarray
    carries: np.ndarray
    skates: np.ndarray
    floats: np.ndarray
    hangs: np.ndarray
    heights: np.ndarray
    belt: np.ndarray | None


def meet_ground(
    character: Character, trajectory: Trajectory, sound: Trajectory, terrain: Terrain | None = None
) -> Ground:
    """The Ground of a trajectory. terrain: terrain.Terrain, None for a level floor. sound: the same
    without pops, which all but its height is taken of: a jump of the root would look like a blow,
    and like a step."""
    rate, size = trajectory.rate, adult_size(character)
    in_place = is_in_place(sound.root)
    joints, frames = character.pose(sound)
    corners = character.sole_corners(joints, frames)
    if terrain is None:
        over = Above(corners[..., 2] - character.ground, np.zeros_like(corners))
    else:
        over = terrain.over(corners, joints[:, FEET])
    belt = find_belt(corners, over, sound.root, rate, size)
    if belt is not None:
        in_place = False
        over.drifts[..., :2] += belt[:, None, None]
    heights, drifts = over.heights.min(-1), over.drifts
    contacts = reference_contacts(character, corners, rate, in_place, over)
    stance = stance_of(contacts)
    low = heights.min(1)
    lower = heights < low[:, None] + _LEVEL * size
    if trajectory is not sound:
        low = _lowest(character, trajectory, terrain)
    need = _need(character, sound)
    slip = _slip(corners, drifts, rate)
    # Both feet may be too fast to be told from feet in the air.
    lost = _lasting((stance == FLIGHT) & (need > NEED), _SHORTEST * rate)
    near = (heights < AIR_HEIGHT * size) & (need > NEED)[:, None]
    centres = character.body_centres(joints, frames)
    floats = _floats(low, centres @ _UP, character, rate, size)
    hangs = np.zeros_like(contacts)
    if terrain is not None:
        still = np.linalg.norm(slip, axis=-1) < SKATE_SPEED
        hangs = still & (lost & floats)[:, None] & (heights > AIR_HEIGHT * size)
        hangs = np.stack([_lasting(foot, _SHORTEST * rate) for foot in hangs.T], 1)
    carries = near & (contacts | (lost[:, None] & lower))
    return Ground(
        in_place,
        contacts,
        stance,
        low,
        need,
        slip,
        carries,
        skates=_skates(carries, np.linalg.norm(slip, axis=-1), rate, size),
        floats=floats,
        hangs=hangs,
        heights=heights,
        belt=belt,
    )


def _lowest(character: Character, trajectory: Trajectory, terrain: Terrain | None) -> np.ndarray:
    """(F,) height of the lowest sole corner above the floor [m]."""
    joints, frames = character.pose(trajectory)
    corners = character.sole_corners(joints, frames)
    if terrain is not None:
        return terrain.over(corners, joints[:, FEET]).heights.min((1, 2))
    return corners[..., 2].min((1, 2)) - character.ground


_UP = np.array([0.0, 0, 1])


def _slip(corners: np.ndarray, drifts: np.ndarray, rate: float) -> np.ndarray:
    # Heel and tip: the middles of the sole's ends.
    ends = np.stack([corners[:, :, :2].mean(2), corners[:, :, 4:].mean(2)], 2)[..., :2]
    velocity = np.gradient(ends, axis=0) * rate
    velocity -= np.stack([drifts[:, :, :2].mean(2), drifts[:, :, 4:].mean(2)], 2)[..., :2]
    slower = np.argmin(np.linalg.norm(velocity, axis=-1), axis=-1)
    return np.take_along_axis(velocity, slower[..., None, None], 2)[:, :, 0]


def _skates(carries: np.ndarray, speeds: np.ndarray, rate: float, size: float) -> np.ndarray:
    skates = np.zeros_like(carries)
    for foot in range(2):
        for start, stop in runs(carries[:, foot] & (speeds[:, foot] > SKATE_SPEED)):
            far = speeds[start:stop, foot].sum() / rate > SKATE_LENGTH * size
            skates[start:stop, foot] = far and stop - start > _SHORTEST_SKATE * rate
    return skates


def _floats(
    low: np.ndarray, heights: np.ndarray, character: Character, rate: float, size: float
) -> np.ndarray:
    """(F,) stretches in the air that are no free fall. heights: (F, S) of body centres [m]."""
    com = heights @ (character.masses / character.mass)
    floats = np.zeros(len(low), bool)
    for start, stop in runs(low > AIR_HEIGHT * size):
        if stop - start < max(3, _SHORTEST * rate):
            continue
        time = np.arange(stop - start) / rate
        falls = -2 * np.polyfit(time - time.mean(), com[start:stop], 2)[0]
        floats[start:stop] = falls < NEED * GRAVITY
    return floats


def _need(character: Character, trajectory: Trajectory) -> np.ndarray:
    """(F,) vertical force on the floor over the weight."""
    smooth = trajectory.smoothed(_HEIGHT_CUTOFF).trajectory
    joints, frames = character.pose(smooth)
    centres = character.body_centres(joints, frames)
    dynamics = com_dynamics(character, centres, frames, trajectory.rate, _HEIGHT_CUTOFF)
    need = 1 + dynamics.acceleration[:, 2] / GRAVITY
    # The low-pass takes a motion on beyond its ends without any acceleration there.
    edge = min(round(_END * trajectory.rate), (len(need) - 1) // 2)
    need[:edge], need[len(need) - edge :] = need[edge], need[-1 - edge]
    return need


def _lasting(mask: np.ndarray, length: float) -> np.ndarray:
    """The stretches of a mask that last at least `length` samples."""
    mask = mask.copy()
    for start, stop in runs(mask):
        if stop - start < length:
            mask[start:stop] = False
    return mask

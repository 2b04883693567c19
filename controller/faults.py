# SPDX-License-Identifier: GPL-3.0-or-later
"""What no body can do in a motion, sample by sample: pops, floating, skating feet.

Found here once, for the clip check to tell and for cleaning to mend. The limits are those of a
person, with room to spare: none of them lies near what captured motion does.
"""

from dataclasses import dataclass

import numpy as np

from .momentum import GRAVITY, com_dynamics
from .rotations import multiply, quaternion_from_matrix, rotation_vector
from .skeleton import SEGMENTS
from .stance import ADULT, FLIGHT, is_in_place, reference_contacts, runs, stance_of

#: A joint that is so much faster [rad/s], or a root so much faster [m/s], than in the 0.15 s
#: around has popped: as if it had gained that speed in a single sample.
POP_SPEED = 30.0
TELEPORT_SPEED = 3.0
#: Fastest joint that anybody has in a kick or a throw [rad/s], apart from pops.
JOINT_SPEED = 40.0
#: Feet at least this high [m, adult] are in the air, and no foot may be this deep below the floor:
#: a sole without toes goes 3 to 5 cm under it at push-off.
AIR_HEIGHT, DEPTH = 0.05, 0.08
#: A foot that carries and goes faster [m/s] over more than this [m, adult] skates.
SKATE_SPEED, SKATE_LENGTH = 0.3, 0.12

#: Of its weight, the least that a body asks of the floor where it is not in flight.
NEED = 0.5
_HEIGHT_CUTOFF = 6.0  # [Hz] of the motion that need is computed from
_END = 0.1  # [s] at the ends of a clip in which that says nothing
_AROUND = 0.07  # [s] to each side that a step is compared with
_RETURN = 0.4  # [s] in which a pop is over; what takes longer has jumped and stays
_SHORTEST = 0.1  # [s] of floating, and of having no foot that stands
_SHORTEST_SKATE = 0.05


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
    def name(self):
        """Name of the segment, "root" for one that moves."""
        return "root" if self.channel is None else SEGMENTS[self.channel]


def size_of(character):
    """How heights of the feet compare with an adult's, as `stance` has them."""
    actor = character.actor or character
    return min(1.0, actor.height / ADULT) * character.leg / actor.leg


def relative_frames(character, frames):
    """(F, S, 4) rotation of each segment against its parent, of the pelvis against the world, w
    first, of frames (F, S, 3, 3)."""
    relative = frames.copy()
    for joint in character.joints:
        parent = np.swapaxes(frames[:, joint.parent], 1, 2)
        relative[:, joint.segment] = parent @ frames[:, joint.segment]
    return quaternion_from_matrix(relative)


def joint_velocities(turns, rate):
    """(F - 1, S, 3) angular velocity [rad/s] from each sample to the next, of (F, S, 4)."""
    return rotation_vector(multiply(turns[1:], turns[:-1] * [1, -1, -1, -1])) * rate


def find_pops(character, trajectory):
    """Tuple of Pop: joints, in the order of SEGMENTS, then the root."""
    turns = relative_frames(character, character.pose(trajectory)[1])
    speeds = _departure(joint_velocities(turns, trajectory.rate), trajectory.rate)
    found = []
    for channel in range(len(SEGMENTS)):
        path = turns[:, channel]
        found += _pops(channel, speeds[:, channel], POP_SPEED, _angles(path), trajectory.rate)
    velocity = np.diff(trajectory.root, axis=0)[:, None] * trajectory.rate
    speeds = _departure(velocity, trajectory.rate)[:, 0]
    apart = _distances(trajectory.root)
    return tuple(found + _pops(None, speeds, TELEPORT_SPEED, apart, trajectory.rate))


def around(values, rate, seconds=_AROUND):
    """(n, …) running median of values over `seconds` to each side: what they are without what is
    shorter than that."""
    half = min(max(2, round(seconds * rate)), len(values) - 1)
    padded = np.pad(values, ((half, half), *[(0, 0)] * (values.ndim - 1)), mode="reflect")
    return np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1, axis=0), -1)


def _departure(velocities, rate):
    """(F - 1, …) how far velocities (F - 1, …, 3) are from those around."""
    return np.linalg.norm(velocities - around(velocities, rate), axis=-1)


def _angles(path):
    def apart(one, others):
        return np.linalg.norm(
            rotation_vector(multiply(path[others], path[one] * [1, -1, -1, -1])), axis=-1
        )

    return apart


def _distances(path):
    return lambda one, others: np.linalg.norm(path[others] - path[one], axis=-1)


def _pops(channel, speeds, limit, apart, rate):
    """Pops of one channel. speeds: (F - 1,) departure of each step; apart(one, others): how far
    samples are from a sample."""
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


def _back(start, ends, apart):
    """The first of these steps after which a channel is back on its course, or None."""
    for end in ends:
        excursion = apart(start, np.arange(start + 1, end + 1)).max()
        if apart(start, np.array([end + 1]))[0] < 0.5 * excursion:
            return end
    return None


@dataclass(frozen=True)
class Ground:
    """How a motion meets the floor, over F samples.

    corners: (F, 2, 4, 3) of the soles [m]; contacts: (F, 2); stance: (F,) states. low: (F,)
    height of the lowest corner above the floor [m]. need: (F,) share of its weight that the body
    asks of the floor. slide: (F, 2) horizontal speed of heel or toe, the slower one [m/s].
    floats: (F,) in the air though it needs the floor; skates: (F, 2) feet that carry and slide.
    """

    in_place: bool
    corners: np.ndarray
    contacts: np.ndarray
    stance: np.ndarray
    low: np.ndarray
    need: np.ndarray
    slide: np.ndarray
    floats: np.ndarray
    skates: np.ndarray


def meet_ground(character, trajectory, sound):
    """The Ground of a trajectory. sound: the same without pops, which forces are computed of: a
    jump of the root would look like a blow."""
    rate, size = trajectory.rate, size_of(character)
    in_place = is_in_place(sound.root)
    corners = character.sole_corners(*character.pose(trajectory))
    contacts = reference_contacts(character, corners, rate, in_place)
    stance = stance_of(contacts)
    heights = corners[..., 2] - character.ground
    low = heights.min((1, 2))
    need = _need(character, sound)
    # Heel and toe: the middles of the sole's ends.
    ends = np.stack([corners[:, :, :2].mean(2), corners[:, :, 2:].mean(2)], 2)
    slide = np.linalg.norm(np.gradient(ends[..., :2], axis=0), axis=-1).min(-1) * rate
    floats = _lasting((low > AIR_HEIGHT * size) & (need > NEED), _SHORTEST * rate)
    on_floor = (heights.min(-1) < AIR_HEIGHT * size) & (need > NEED)[:, None]
    # Both feet may be too fast to be told from feet in the air.
    lost = _lasting((stance == FLIGHT) & (need > NEED), _SHORTEST * rate)
    carries = on_floor & (contacts | lost[:, None])
    skates = np.zeros_like(contacts)
    for foot in range(2):
        fast = carries[:, foot] & (slide[:, foot] > SKATE_SPEED)
        for start, stop in runs(fast):
            far = slide[start:stop, foot].sum() / rate > SKATE_LENGTH * size
            skates[start:stop, foot] = far and stop - start > _SHORTEST_SKATE * rate
    return Ground(in_place, corners, contacts, stance, low, need, slide, floats, skates)


def _need(character, trajectory):
    """(F,) vertical force on the floor over the weight."""
    smooth, *_ = trajectory.smoothed(_HEIGHT_CUTOFF)
    joints, frames = character.pose(smooth)
    centres = character.body_centres(joints, frames)
    dynamics = com_dynamics(character, centres, frames, trajectory.rate, _HEIGHT_CUTOFF)
    need = 1 + dynamics.acceleration[:, 2] / GRAVITY
    # The low-pass takes a motion on beyond its ends without any acceleration there.
    edge = min(round(_END * trajectory.rate), (len(need) - 1) // 2)
    need[:edge], need[len(need) - edge :] = need[edge], need[-1 - edge]
    return need


def _lasting(mask, length):
    """The stretches of a mask that last at least `length` samples."""
    mask = mask.copy()
    for start, stop in runs(mask):
        if stop - start < length:
            mask[start:stop] = False
    return mask

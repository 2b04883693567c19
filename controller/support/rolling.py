# SPDX-License-Identifier: GPL-3.0-or-later
"""A reference whose feet roll: over the heel to flat, over the ball and the toes to lift-off.

A captured foot skates by centimetres, floats, and pivots about a point that this body's sole does
not have. Each stance gets a sole that rolls without slip instead: up to where it is flat at the
pitch it was captured with, afterwards at the one that has the ankle as high as it was captured; the
toes stay back on the floor. Wang and others, "Optimization Control for Biped Motion Trajectory",
ask for the same: the heel does not move from strike to flat, the toe does not from heel-off to
toe-off.
"""

import numpy as np

from ..body.character import Character
from ..body.foot import Foot
from ..body.footing import Footing, level
from ..body.sole import CLEARANCE
from ..geometry.leg_bending import LONGEST, bend_leg, in_plane, leg_length, too_high
from ..geometry.rotations import (
    arctan2,
    exponential,
    matrix_from_quaternion,
    quaternion_from_matrix,
    rotation_about,
    rotation_vector,
    unit,
)
from ..geometry.skeleton import FEET, SEGMENT_INDEX, SIDES, TOES
from ..geometry.stance import around, bridged, runs, swings
from ..geometry.trajectory import Trajectory, bell, eased
from .terrain import Terrain

# By trial on four captured walks and jumping jacks, and in place on eight clips; `researcher.md`,
# The reference and Feet, has the equations and what comes of them.
_MOST_BEND = 0.95  # [rad] of the toes
#: The ankle rises so far [m] before the heel is said to.
_HEEL_OFF = 0.003
#: Flatter than these [rad] a foot is flat: for the height of its floor, for its place.
_LEVEL, _FLAT = 0.06, 0.1
_FEWEST = 3  # samples that are flat, else the flattest ones
_FLATTEST = 5
#: A standing foot turns and tips as much as captured from twice its tremor on [rad], and by little
#: below it, smoothed over so long [s]; so much it is not on its heel in place [rad].
_TREMOR, _BELL, _DEAD_ZONE = np.radians(5), 0.15, np.radians(3)
_MOST_ROLL = 0.7  # [rad] that a standing foot tips: a captured squat tips by 0.8
_RAMP = 0.12  # [s] beside a stance in which the foot still is as it stood
_CLEARANCE = 0.05  # [m] of a sole in mid-swing, or ...
_MORE_CLEARANCE = 0.03  # ... so much more than captured, if that is less
#: A foot is lifted over the nose of a step within so many seconds, and early in its swing.
_RISING, _EARLY = 0.1, 10
_ASIDE = 0.04  # [m] that heel and toes keep from what they pass
_SMOOTHING = 0.05  # [s]
_FLOOR = 0.8  # [s] over which the pelvis follows the clip's own floor
_MOST_MISSED = 0.01  # [m] that a leg is aimed again by: one that is too short misses by more
#: [rad] of a pitch, and at how many of them the height of the ankle is known: every hundredth.
_STEEPEST, _PITCHES = 1.3, 131


def rolled(
    character: Character,
    trajectory: Trajectory,
    contacts: np.ndarray,
    tremor: float = _TREMOR,
) -> Trajectory:
    """Trajectory whose feet roll on a level floor while `contacts` (F, 2) hold, and clear it else.

    tremor: how far a standing foot turns and tips without meaning it [rad]. The pelvis is lower by
    what the clip's own floor is higher, and else where it was; the legs reach the feet by bending.
    """
    return RolledFeet(character, trajectory, contacts, tremor=tremor).trajectory()


class RolledFeet:
    """The same in two stages, so that a body can be moved over its feet.

    in_place: feet that stand as long as they like, on the ball with all of their toes, instead of
    passing over them as they do in a walk; on_mark: a foot that stands at the first sample stands
    where it is then, and else in the middle of where it is while flat. steps: (F, 2, 2) how far
    elsewhere [m] the left and the right foot stand, None for nowhere. footings: (left, right)
    Footing, None on the level; terrain: terrain.Terrain that lies between them, None on the level.
    """

    def __init__(
        self,
        character: Character,
        trajectory: Trajectory,
        contacts: np.ndarray,
        footings: tuple[Footing, Footing] | None = None,
        terrain: Terrain | None = None,
        in_place: bool = False,
        on_mark: bool = True,
        steps: np.ndarray | None = None,
        tremor: float = _TREMOR,
    ) -> None:
        self._character, self._rate = character, trajectory.rate
        # A walk's legs are too short for moments alone, and by millimetres.
        self._sinks = contacts if in_place else np.zeros_like(contacts)
        self._joints, self._frames = (values.copy() for values in character.pose(trajectory))
        footings = footings or level(character.ground, len(contacts))
        if steps is None:
            steps = np.zeros((len(contacts), 2, 2))
        floors, self._ankles = [], []
        for side, label in enumerate(SIDES):
            foot, toe = FEET[side], TOES[side]
            rolling = (_Standing if in_place else _Rolling)(
                character.feet[side],
                trajectory.rate,
                contacts[:, side],
                self._joints[:, foot],
                self._frames[:, foot],
                footings[side],
                terrain,
                on_mark,
                steps[:, side],
                tremor,
            )
            self._frames[:, foot] = rolling.frames
            self._frames[:, toe] = rolling.frames @ rotation_about(1, rolling.bend)
            floors.append(rolling.floor)
            self._ankles.append((label, rolling.ankle))
        self._joints[..., 2] -= bell(np.mean(floors, 0), _FLOOR, trajectory.rate)[:, None]

    def trajectory(self, shift: np.ndarray | None = None) -> Trajectory:
        """Trajectory of the body on these feet, its hips moved by shift (F, 3) [m]."""
        joints, frames = self._joints.copy(), self._frames.copy()
        if shift is not None:
            joints += shift[:, None]
        if self._sinks.any():
            joints[..., 2] -= self._drop(joints)[:, None]
        aims = [ankle for _, ankle in self._ankles]
        bent = self._bent(joints, frames, aims)
        # Where a knee is not exactly below its hip the leg misses: it is aimed again.
        ankles = self._character.pose(bent)[0][:, FEET]
        for side, aim in enumerate(aims):
            aims[side] = aim + np.clip(aim - ankles[:, side], -_MOST_MISSED, _MOST_MISSED)
        return self._bent(joints, frames, aims)

    def _bent(self, joints: np.ndarray, frames: np.ndarray, aims: list[np.ndarray]) -> Trajectory:
        """Trajectory with the ankles at aims, two of (F, 3) [m]; joints and frames are changed."""
        for (label, _), aim in zip(self._ankles, aims, strict=True):
            bend_leg(joints, frames, label, aim)
        return self._character.trajectory_of(self._rate, joints[:, 0], frames)

    def _drop(self, joints: np.ndarray) -> np.ndarray:
        """(F,) how far [m] the hips are too high for legs that stand."""
        drop = np.zeros(len(joints))
        for side, (label, ankle) in enumerate(self._ankles):
            hip = joints[:, SEGMENT_INDEX[f"thigh_{label}"]]
            over = too_high(hip, ankle, LONGEST * leg_length(joints, label))
            drop = np.maximum(drop, over * self._sinks[:, side])
        half = round(_SMOOTHING * self._rate)
        return bell(around(drop, half, np.max), _SMOOTHING, self._rate)


class _Rolling:
    """One foot. ankle: (F, 3) [m]; frames: (F, 3, 3); bend: (F,) of its toes [rad]; floor: (F,)
    how much higher [m] the clip has its floor."""

    #: Toes bend by this share of the foot's pitch; a foot that slides farther in one stance [m] is
    #: left to itself.
    toe_share, most_wander = 0.25, np.inf

    def __init__(
        self,
        foot: Foot,
        rate: float,
        contact: np.ndarray,
        ankle: np.ndarray,
        frames: np.ndarray,
        footing: Footing,
        terrain: Terrain | None,
        on_mark: bool,
        steps: np.ndarray,
        tremor: float,
    ) -> None:
        self._tremor = tremor
        self._steps = np.column_stack([steps, np.zeros(len(steps))])
        self._foot, self._rate, self._contact = foot, rate, contact
        self._footing, self._terrain, self._on_mark = footing, terrain, on_mark
        # Of a floor that moves, all as if it had stayed where it is in the middle of the stance.
        self._captured, self._frames = footing.still(ankle, frames)
        self._heading = unit(self._frames[:, :, 0] * [1, 1, 0])
        # From the floor, not from the horizontal.
        self._height = _along(self._captured - footing.points, footing.normals)
        self._pitch = np.arcsin(np.clip(-_along(self._frames[:, :, 0], footing.normals), -1, 1))
        # About its own axis, as `_turned` has it: a pitched foot tips farther than its side rises.
        self._roll = arctan2(
            _along(self._frames[:, :, 1], footing.normals),
            _along(self._frames[:, :, 2], footing.normals),
        )
        near = _near(contact, _RAMP, self._rate)
        pitch = self._solve_pitch(near)
        bend = np.where(contact, self._bend_of(pitch), 0.0)
        self.bend = bell_smooth(_released(bend, contact, self._rate), self._rate)
        ahead, roll = self._place(ankle, pitch)
        up = footing.moved(footing.normals)
        stands = _turned(in_plane(ahead, up), up, pitch, roll)
        self.frames = _led(frames, stands, contact, near)
        upright = foot.profile(pitch, self.bend)[:, :, 1].min(1)
        lowest = _along(foot.points(self.frames, self.bend), up[:, None]).min(1)
        self._clear(upright, lowest)

    def _stances(self) -> np.ndarray:
        return runs(self._contact)

    def _solve_pitch(self, near: np.ndarray) -> np.ndarray:
        """(F,) pitch [rad]: where the foot stands, that of the rolling sole."""
        pitch, foot = self._pitch.copy(), self._foot
        table = np.linspace(0, _STEEPEST, _PITCHES)
        height = np.maximum.accumulate(self._height_at(table))
        self.floor = np.zeros(len(pitch))
        for start, stop in self._stances():
            own, ankle = self._pitch[start:stop], self._height[start:stop]
            flat = _flattest(own, _LEVEL)
            # A foot that is never flat stands on its ball, or its heel.
            under = np.where(np.abs(own) < _FLAT, foot.depth, self._height_at(own))
            # Where all of the sole leaves it, its floor does, not its heel.
            low = ankle + foot.profile(own, np.zeros(len(own)))[:, :, 1].min(1)
            afloat = bell(np.maximum(low - np.median(low[flat]), 0), _BELL, self._rate)
            self.floor[start:stop] = floor = np.median((ankle - under)[flat]) + afloat
            rises = np.maximum(ankle - floor - _HEEL_OFF, 0)
            lifted = np.interp(rises, height, table)
            pitch[start:stop] = self._pitches(own, lifted, flat)
        turned = bridged(np.where(self._contact, pitch - self._pitch, 0.0), self._contact, True)
        self.floor = bridged(self.floor, self._contact)
        return bell_smooth(self._pitch + near * turned, self._rate)

    def _pitches(self, own: np.ndarray, lifted: np.ndarray, flat: np.ndarray) -> np.ndarray:
        """(n,) pitch of the sole in a stance [rad]: own: captured; lifted: with which the ankle is
        as high as captured; flat: which samples are."""
        # Before it is flat the heel is where the capture has it; later the ball.
        later = (np.arange(len(own)) > int(np.flatnonzero(flat).mean())) | (own > 0)
        return np.where(later, lifted, np.minimum(own, 0))

    def _bend_of(self, pitch: np.ndarray) -> np.ndarray:
        """Bend of the toes [rad], up below 0, of a foot of this pitch whose toes are down."""
        return -np.clip(self.toe_share * np.maximum(pitch, 0), 0, _MOST_BEND)

    def _height_at(self, pitch: np.ndarray) -> np.ndarray:
        """(n,) height of the ankle [m] above the lowest point of a sole of these pitches [rad]."""
        return -self._foot.profile(pitch, self._bend_of(pitch))[:, :, 1].min(1)

    def _place(self, ankle: np.ndarray, pitch: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Put the ankle of each stance where it rolls without slip, and lead it from each to the
        next one. Returns the direction (F, 3) that it looks in, and its roll (F,) [rad]."""
        ahead, roll = self._heading.copy(), np.zeros(len(pitch))
        moved = np.zeros((len(pitch), 3))
        for start, stop in self._stances():
            part = slice(start, stop)
            flat = _flattest(pitch[part], _FLAT)
            look = unit(self._heading[part][flat].mean(0))
            point, up = self._footing.points[start], self._footing.normals[start]
            look = in_plane(look, up)
            across = np.cross(up, look)
            ahead[part] = self._pivoted(look, across, part, flat)
            roll[part] = np.clip(self._kept_turn(self._roll[part]), -_MOST_ROLL, _MOST_ROLL)
            captured = self._captured[part] - point
            frames = _turned(ahead[part], up, pitch[part], roll[part])
            rolled, lowest = self._rolled(frames, self.bend[part], up)
            # The clip begins on its mark, whatever it does later.
            at = slice(1) if start == 0 and self._on_mark else flat
            off = captured - rolled
            along = rolled @ look + np.median((off @ look)[at])
            aside = rolled @ across + np.median((off @ across)[at])
            target = along[:, None] * look + aside[:, None] * across
            own = (captured @ look)[:, None] * look + (captured @ across)[:, None] * across
            if np.linalg.norm(own - target, axis=1).max() > self.most_wander:
                target = own
            step = self._steps[start]
            target = target + step - np.array([0.0, 0.0, step @ up / up[2]])
            moved[part] = point + target - lowest[:, None] * up
        moved = np.where(self._contact[:, None], self._footing.moved(moved, True) - ankle, 0.0)
        moved = np.stack([bridged(axis, self._contact, True) for axis in moved.T], 1)
        self.ankle = ankle + moved
        return self._footing.moved(ahead), roll

    def _rolled(
        self, frames: np.ndarray, bend: np.ndarray, up: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """How the ankle of a foot goes (n, 3) [m] that rolls without slip, over edges and tips as
        well, and the height (n,) of its lowest corner above the ankle."""
        corners = self._foot.points(frames, bend)
        heights = corners @ up
        lowest = heights.min(1)
        carries = np.clip(1 - (heights - lowest[:, None]) / CLEARANCE, 0, 1)
        carries /= carries.sum(1, keepdims=True)
        # What carries at a sample has stayed where it was at the one before.
        steps = ((corners[:-1] - corners[1:]) * carries[1:, :, None]).sum(1)
        return np.concatenate([np.zeros((1, 3)), np.cumsum(steps, 0)]), lowest

    def _pivoted(
        self, look: np.ndarray, across: np.ndarray, part: slice, flat: np.ndarray
    ) -> np.ndarray:
        """(n, 3) directions of a stance that looks along `look` where it is `flat` (n,), as far as
        it pivots: by any angle, for a dancer turns round on one foot."""
        heading = self._heading[part]
        turn = np.unwrap(np.arctan2(heading @ across, heading @ look))
        turn -= 2 * np.pi * np.round(turn[flat].mean() / (2 * np.pi))
        turn = self._kept_turn(turn)[:, None]
        return np.cos(turn) * look + np.sin(turn) * across

    def _kept_turn(self, angles: np.ndarray) -> np.ndarray:
        """What angles (n,) [rad] of a standing foot keep: one that pivots in the clip pivots, one
        that trembles does not."""
        kept = angles * (1 - np.exp(-((angles / self._tremor) ** 2)))
        return bell(kept, _BELL, self._rate)

    def _way(self) -> np.ndarray:
        """(F,) height [m] of what the foot has to clear: from the floor of one stance to that of
        the next one, and over what is higher between them, such as the nose of a step."""
        if self._terrain is None:
            return self._footing.points[:, 2]  # of a level floor
        foot, base = self._foot, self._footing.planes(self.ankle)[:, 0]
        ends = [-foot.heel - _ASIDE, 0.0, foot.ball, foot.toe + _ASIDE]
        soles = np.array([(x, 0.0, -foot.depth) for x in ends])
        points = self.ankle[:, None] + np.einsum("fij,pj->fpi", self.frames, soles)
        most = np.maximum(self.ankle[:, 2], base)
        for start, stop, _ in swings(self._contact):
            most[start:stop] = np.maximum(
                most[start:stop], base[max(start - 1, 0) : stop + 1].max()
            )
        top = self._terrain.highest(points, np.tile(most[:, None] + _ASIDE, 4)).max(1)
        half = round(_RISING / 2 * self._rate)
        top = around(np.where(self._contact, base, top), half, np.max)
        way = base.copy()
        for start, stop, phase in swings(self._contact):
            over = np.maximum(top[start:stop] - base[start:stop], 0)
            way[start:stop] += over * np.minimum(1, _EARLY * phase * (1 - phase))
        return way

    def _clear(self, upright: np.ndarray, lowest: np.ndarray) -> None:
        """Lift the swinging foot over the floor. upright, lowest: (F,) height [m] of its sole's
        lowest corner from the ankle, if it did not tip, and as it does: beside its stances it lands
        and leaves by an edge, on its way that clears the floor, too."""
        height = self.ankle[:, 2] + upright - self._way()
        wanted = np.zeros(len(height))
        for start, stop, phase in swings(self._contact):
            # All of it from 0.3 to 0.7 of the swing.
            share = np.minimum(1, 4.8 * phase * (1 - phase))
            height[start:stop] += share * np.minimum(lowest - upright, 0)[start:stop]
            most = min(_CLEARANCE, max(height[start:stop].max(), 0.0) + _MORE_CLEARANCE)
            wanted[start:stop] = most * share
        rise = np.maximum(wanted - height, 0) * ~self._contact
        seconds = _SMOOTHING if self._terrain is None else _RISING
        self.ankle[:, 2] += bell(rise, seconds, self._rate)


class _Standing(_Rolling):
    """A foot that stands as long as it likes: on flat toes when it stands on the ball, and no
    higher on it than captured. What is smaller than the capture's own tremor it does not do."""

    toe_share, most_wander = 1.0, 0.2

    def _pitches(self, own: np.ndarray, lifted: np.ndarray, flat: np.ndarray) -> np.ndarray:
        raised, tipped = np.maximum(own, 0), np.minimum(own + _DEAD_ZONE, 0)
        return np.minimum(lifted, raised) + tipped


def _turned(ahead: np.ndarray, up: np.ndarray, pitch: np.ndarray, roll: np.ndarray) -> np.ndarray:
    """(n, 3, 3) frames of feet that look along ahead (n, 3) on a floor with the normal up (n, 3)
    or (3,), then nose down by a pitch (n,) and tipped by a roll (n,) [rad]."""
    up = np.broadcast_to(up, ahead.shape)
    lying = np.stack([ahead, np.cross(up, ahead), up], -1)
    return lying @ rotation_about(1, pitch) @ rotation_about(0, roll)


def _led(
    frames: np.ndarray, stands: np.ndarray, contact: np.ndarray, near: np.ndarray
) -> np.ndarray:
    """(F, 3, 3) frames of a foot: those of `stands` in contact (F,). Beside it, what they are
    turned by from `frames` is led on, by `near` (F,) of it: a foot lands and leaves as captured."""
    off = rotation_vector(quaternion_from_matrix(stands @ np.swapaxes(frames, 1, 2)))
    off = np.stack([bridged(axis, contact, True) for axis in (off * contact[:, None]).T], 1)
    return matrix_from_quaternion(exponential(off * near[:, None])) @ frames


def _along(vectors: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """(...,) parts of vectors (..., 3) along unit vectors (..., 3)."""
    return (vectors * directions).sum(-1)


def _flattest(pitch: np.ndarray, limit: float) -> np.ndarray:
    """(n,) which samples of a stance are flatter than a limit, or else the flattest few."""
    size = np.abs(pitch)
    flat = size < limit
    if flat.sum() >= min(_FEWEST, len(size)):
        return flat
    return size <= np.sort(size)[min(len(size), _FLATTEST) - 1]


def _near(contact: np.ndarray, ramp: float, rate: float) -> np.ndarray:
    """(F,) 1 in stances, eased to 0 within `ramp` [s] beside them."""
    if not contact.any():
        return np.zeros(len(contact))
    apart = np.abs(_nearest(contact) - np.arange(len(contact)))
    return eased(1 - apart / rate / ramp)


def _nearest(contact: np.ndarray) -> np.ndarray:
    """(F,) the sample in a stance that is nearest to each; there is one."""
    at, index = np.flatnonzero(contact), np.arange(len(contact))
    after = np.clip(np.searchsorted(at, index), 0, len(at) - 1)
    before = np.maximum(after - 1, 0)
    nearer = np.abs(at[before] - index) <= np.abs(at[after] - index)
    return np.where(nearer, at[before], at[after])


def _released(values: np.ndarray, contact: np.ndarray, rate: float) -> np.ndarray:
    """(F,) values of stances, led to 0 within the ramp beside them."""
    values = values.copy()
    for start, stop in runs(~contact):
        after = np.arange(stop - start) / rate / _RAMP
        before = np.arange(stop - start)[::-1] / rate / _RAMP
        last = values[start - 1] if start else 0.0
        following = values[stop] if stop < len(values) else 0.0
        values[start:stop] = last * (1 - eased(after)) + following * (1 - eased(before))
    return values


def bell_smooth(values: np.ndarray, rate: float) -> np.ndarray:
    """(F,) values, averaged over a short bell."""
    return bell(values, _SMOOTHING, rate)

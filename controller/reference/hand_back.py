# SPDX-License-Identifier: GPL-3.0-or-later
"""The way back from the simulation to the animation, on feet that step.

Where physics ends, the body stands elsewhere than the animation has it. Each foot that stands
stays where it is, and goes home while it is in the air: in the animation's own next swing, or,
where that stands, in a step of its own, one foot after the other. The pelvis follows between them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..geometry.leg_bending import LONGEST, bend_leg, leg_length, unstretched, usual
from ..geometry.rotations import arctan2, quaternion_from_matrix, rotation_about
from ..geometry.skeleton import FEET, LANDMARK_INDEX, SEGMENT_INDEX, SIDES, TOES
from ..geometry.stance import LEFT, RIGHT, adult_size, around, runs
from ..geometry.trajectory import bell
from .performed import Performance

# By trial; `researcher.md`, Physics weights, has the equations.
#: A foot closer to the animation's than this [m, adult], and turned less [rad], need not step.
_NEAR, _TURNED = 0.01, np.radians(5)
#: The animation's own next swing is waited for so long, and takes at least so long [s].
_PATIENCE, _SHORTEST = 1.0, 0.15
#: A step that is added takes from, to so long [s], with a rest on both feet between two.
_QUICK, _SLOW, _REST = 0.3, 0.45, 0.04
#: How high it lifts a foot at least, and from which length on how high [m, adult] and how pitched
#: [rad]; in the first and last so much of it the foot only rises and comes down.
_LOW, _LONG, _LIFT, _HEEL_OFF = 0.015, 0.2, 0.05, np.radians(12)
_EARLY = 0.06
#: The most of x^2 (1 - x)^3, at x = 0.4: the curve by which it is pitched.
_HIGHEST_PITCH = 0.03456
#: Body and feet go on as they did for so long, a foot that stands for so long; one that is higher
#: than the animation's comes down in so long [s].
_COAST, _STANDING_COAST, _DOWN = 0.06, 0.02, 0.2
_PELVIS = 0.3  # [s] over which the pelvis follows the feet
_ROLL = 0.015  # [m] of height between heel and ball over which the weight passes
_AIMED, _MISSED = 3, 0.01  # times, and [m] at most, that a leg is aimed
#: A leg that stands while one steps is no straighter than this share of its length; ...
_STRAIGHT = 0.985
#: ... one that has to reach farther than it is long has so much room [m] to become straight in.
_ROOM, _GENTLY = 0.002, 6


def stepped_back(
    recording: Performance,
    turns: np.ndarray,
    displacement: np.ndarray,
    stretched: Sequence[str] = (),
) -> tuple[np.ndarray, np.ndarray]:
    """What a recording bakes if its feet step on each way back, from what it does if they slide.

    turns: (n, S, 3, 3) from the animation in the world, displacement: (n, 3) of the pelvis [m].
    stretched: segments of legs whose length changes in the animation, and no more in the bake where
    they are simulated.
    Returns both anew; whatever is on no way back, or need not step, is as it was.
    """
    turns, displacement = turns.copy(), displacement.copy()
    ways = recording.weights.ways_back(recording.motion.rate) if recording.weights else ()
    for begin, stop, limit in ways:
        if begin > 0 and stop < len(turns):
            limit = min(limit, len(turns))
            way = _Way(recording, turns, displacement, begin, stop, limit, stretched)
            turned, moved = way.taken()
            part = slice(begin, begin + len(turned))
            turns[part], displacement[part] = turned, moved
    return turns, displacement


@dataclass(frozen=True)
class _Move:
    """A swing in which a foot goes home. added: whether the animation's foot stands meanwhile."""

    first: int
    stop: int
    added: bool

    def share(self, at: np.ndarray) -> np.ndarray:
        """(n,) of the way home still to go at samples."""
        # One that is added has left the floor before it goes anywhere.
        early = _EARLY * self.added
        return 1 - _smooth(np.clip((self.phase(at) - early) / (1 - 2 * early), 0, 1))

    def phase(self, at: np.ndarray) -> np.ndarray:
        """(n,) from 0 to 1 over the samples of the swing."""
        return np.clip((at - self.first) / (self.stop - self.first), 0, 1)

    def swings(self, at: np.ndarray) -> np.ndarray:
        """(n,) whether the foot is in the air at samples."""
        return (at > self.first) & (at < self.stop)


class _Foot:
    """One foot on a way back, in the animation and as it slides.

    held: the sample from which it stays where it stands.
    """

    def __init__(self, way: "_Way", side: int) -> None:
        self._way, self.side = way, side
        self.segment, self.toe = FEET[side], TOES[side]
        shape = way.character.feet[side]
        self._ball = np.array([shape.ball, 0, -shape.depth])
        heel = np.array([-shape.heel, 0, -shape.depth])
        self.source = way.landmarks(f"ankle_{SIDES[side]}")
        self._frames, self._turns = way.raw[:, self.segment], way.turns[:, self.segment].copy()
        # What a standing foot turns about: what is lowest of it. (The bound keeps exp finite.)
        lower = _rotated(self._frames, self._ball - heel)[:, 2] / _ROLL
        self._about = heel + (self._ball - heel) / (1 + np.exp(np.clip(lower, -50, 50)))[:, None]
        twists = quaternion_from_matrix(self._turns)
        yaws = np.unwrap(2 * arctan2(twists[:, 3], twists[:, 0]))
        self._yaws = yaws - 2 * np.pi * np.round(yaws[1] / (2 * np.pi))
        down = np.flatnonzero(way.stands[1:, side] & way.touches[1:, side])
        self.held = 1 + down[0] if len(down) else len(way.at) - 1
        self._points = self.source + _rotated(self._frames, self._about)
        slid = way.joints[:, self.segment] + _rotated(self._turns @ self._frames, self._about)
        self._slides, self._stays = slid - self._points, self._standing(slid) - self._points

    def _standing(self, slid: np.ndarray) -> np.ndarray:
        """(n, 3) where a foot is that slides (n, 3) until it is held, and then stands [m]."""
        way, held = self._way, self.held
        there = _rotated(_about_z(self._yaws[held]), self._points - self._points[held]) + slid[held]
        speed = (slid[held] - slid[held - 1]) - (there[held] - there[held - 1])
        there += way.coasted(_STANDING_COAST, held)[:, None] * speed
        if not way.uneven:
            share = _smooth(np.clip((way.at - held) / (_DOWN * way.rate), 0, 1))
            there[:, 2] += share * (self._points - there)[:, 2]
        return np.where((way.at < held)[:, None], slid, there)

    @property
    def needs(self) -> bool:
        """Whether it is too far from the animation's to slide there."""
        far = float(_length(self.offset)) > _NEAR * self._way.size
        return far or abs(float(self._yaws[1])) > _TURNED

    @property
    def offset(self) -> np.ndarray:
        """(2,) from the animation's foot at the first sample of the way [m]."""
        return self._slides[1, :2]

    def stepped(self, move: _Move) -> tuple[np.ndarray, np.ndarray]:
        """Ankle (n, 3) [m] and turns (n, 3, 3) of a foot that goes home in a move."""
        way, held = self._way, self.held
        share, away, yaws = move.share(way.at), self._slides, self._yaws
        if move.first >= held:
            away, kept = self._stays, way.coasted(_STANDING_COAST, held)
            kept = yaws[held] + kept * (yaws[held] - yaws[held - 1])
            yaws = np.where(way.at < held, yaws, kept)
        # How it is tipped fades as everything does.
        tipped = self._turns @ np.swapaxes(_about_z(self._yaws), 1, 2)
        turns = tipped @ _about_z(share * yaws)
        frames = turns @ self._frames
        ankle = self._points + share[:, None] * away - _rotated(frames, self._about)
        if not move.added:
            return ankle, turns
        phase = move.phase(way.at)
        far = min(1.0, float(_length(self.offset)) / (_LONG * way.size))
        lift = way.size * (_LOW + far * (_LIFT - _LOW))
        # 16: the most of x^2 (1 - x)^2 is 1 / 16.
        ankle[:, 2] += lift * 16 * (phase * (1 - phase)) ** 2
        pitch = far * _HEEL_OFF * phase**2 * (1 - phase) ** 3 / _HIGHEST_PITCH
        ball = _rotated(frames, self._ball)
        rolled = frames @ rotation_about(1, pitch) @ np.swapaxes(frames, 1, 2)
        return ankle + ball - _rotated(rolled, ball), rolled @ turns


class _Way:
    """One way back: from its first sample to that from which all is as animated, and no farther
    than a limit. Sample 0 of all arrays is the one before the first.

    at: (n,) the samples. stands, touches: (n, 2) whether the animation's and the simulation's feet
    do. uneven: whether there is more to stand on than a level floor.
    """

    def __init__(
        self,
        recording: Performance,
        turns: np.ndarray,
        displacement: np.ndarray,
        begin: int,
        stop: int,
        limit: int,
        stretched: Sequence[str],
    ) -> None:
        part = slice(begin - 1, limit)
        self.character, self.rate = recording.character, recording.motion.rate
        self.size = adult_size(self.character)
        self._positions = recording.motion.positions[part]
        self._arms = {
            (name, side): self._arm(recording, part, f"{name}_{side}", stretched)
            for name in ("thigh", "shin")
            for side in SIDES
        }
        self.turns, self.moved = turns[part].copy(), displacement[part].copy()
        self.raw = recording.reference.raw.frames[part]
        self._frames = self.turns @ self.raw
        self.stands = (recording.reference_stance[part, None] & [LEFT, RIGHT]) > 0
        self.touches = recording.contacts[part]
        self.at = np.arange(len(self.turns))
        self._last, self._over = len(self.at) - 1, stop - begin
        self.uneven = bool(recording.scenario.colliders)
        self.joints = self._legs()
        self._feet = [_Foot(self, side) for side in range(2)]
        self._moves = self._planned()

    def landmarks(self, name: str) -> np.ndarray:
        """(n, 3) where the animation has a landmark [m]."""
        return self._positions[:, LANDMARK_INDEX[name]]

    def coasted(self, seconds: float, since: int = 1) -> np.ndarray:
        """(n,) for how many samples a speed at a sample lasts, if it dies away in so many
        seconds."""
        coast = seconds * self.rate
        return coast * (1 - np.exp(-(self.at - since).clip(0) / coast))

    def taken(self) -> tuple[np.ndarray, np.ndarray]:
        """Turns (m, S, 3, 3) and displacement (m, 3) from the first sample to that from which both
        feet are home; of no samples if none has to step."""
        if not any(self._moves):
            return self.turns[:0], self.moved[:0]
        home = self._home
        ankles, offsets = [], []
        for foot, move in zip(self._feet, self._moves, strict=True):
            ankle = self.joints[:, foot.segment]
            if move:
                ankle, turn = foot.stepped(move)
                toes = np.swapaxes(self.turns[:, foot.segment], 1, 2) @ self.turns[:, foot.toe]
                self.turns[:, foot.segment], self.turns[:, foot.toe] = turn, turn @ toes
            ankles.append(ankle)
            offsets.append((ankle - foot.source)[:, :2])
        shift = np.zeros_like(self.moved)
        shift[:, :2] = self._followed(np.mean(offsets, 0)) - self.moved[:, :2]
        shift[:, 2] = -self._drop(shift, ankles)
        self.moved += shift
        for side, ankle in zip(SIDES, ankles, strict=True):
            self._bend(side, shift, self._reached(side, shift, ankle))
        return self.turns[1:home], self.moved[1:home]

    # --- When which foot goes

    def _planned(self) -> list[_Move | None]:
        """The _Move of the left and of the right foot, None for one that slides."""
        feet = [foot for foot in self._feet if foot.needs]
        moves: list[_Move | None] = [None, None]
        swings = [self._swing(foot) for foot in self._feet]
        for foot in feet:
            swing = swings[foot.side]
            if swing and swing.first <= _PATIENCE * self.rate:
                moves[foot.side] = swing
        rest = [foot for foot in feet if not moves[foot.side]]
        # Legs do not cross: first the foot that is nearer to where both go.
        home = -np.sum([foot.offset for foot in feet], 0)
        rest.sort(key=lambda foot: -(self.joints[1, foot.segment, :2] @ home))
        seconds = min(self._over, self._end) / max(len(rest), 1) / self.rate - _REST
        for foot in rest:
            room = self._room(moves[1 - foot.side], np.clip(seconds, _QUICK, _SLOW))
            moves[foot.side] = room or swings[foot.side]
        return moves

    @property
    def _home(self) -> int:
        """The sample from which all is as animated."""
        landed = max(move.stop for move in self._moves if move)
        return max(landed + round(_PELVIS / 2 * self.rate), self._over) + 1

    @property
    def _end(self) -> int:
        """The last sample at which a foot may land, so that the pelvis can follow it."""
        return self._last - round(_PELVIS / 2 * self.rate) - 1

    def _swing(self, foot: _Foot) -> _Move | None:
        """The animation's own next swing of a foot that is long enough, or None."""
        for first, stop in (runs(~self.stands[1:, foot.side]) + 1).tolist():
            long = stop - first >= _SHORTEST * self.rate
            if long and (first == 1 or first >= foot.held) and stop <= self._end:
                return _Move(first, stop, False)
        return None

    def _room(self, other: _Move | None, seconds: float) -> _Move | None:
        """The first _Move of so many seconds during which both feet stand otherwise, or None.
        other: the other foot's move or None."""
        length, rest = max(2, round(seconds * self.rate)), round(_REST * self.rate)
        free = np.all(self.stands, 1)
        free[: max(foot.held for foot in self._feet) + rest] = False
        if other:
            free[max(other.first - rest, 0) : other.stop + rest] = False
        for first, stop in runs(free).tolist():
            if stop - first > length and first + length <= self._end:
                return _Move(first, first + length, True)
        return None

    # --- What the body does

    def _followed(self, feet: np.ndarray) -> np.ndarray:
        """(n, 2) displacement of the pelvis, of feet that are displaced by (n, 2) [m]."""
        smooth = np.stack([bell(axis, _PELVIS, self.rate) for axis in feet.T], 1)
        apart = (self.moved[:, :2] - smooth)[:2]
        away = apart[1] + self.coasted(_COAST)[:, None] * (apart[1] - apart[0])
        fade = 1 - _smooth(np.clip((self.at - 1) / self._over, 0, 1))
        return smooth + fade[:, None] * away

    def _drop(self, shift: np.ndarray, ankles: list[np.ndarray]) -> np.ndarray:
        """(n,) how far [m] a pelvis that is shifted (n, 3) must come down for the legs to reach
        the feet that stand."""
        drop = np.zeros(len(self.at))
        steps = any(move and move.added for move in self._moves)
        for i, (side, ankle) in enumerate(zip(SIDES, ankles, strict=True)):
            hip, own = self._ends(side)
            longest = _STRAIGHT * leg_length(self.joints, side)
            if not steps:
                longest = np.maximum(longest, _length(own - hip))
            way, move = ankle - hip - shift, self._moves[i]
            reach = np.sqrt(np.maximum(longest**2 - (way[:, :2] ** 2).sum(1), 0))
            stands = self.stands[:, i] & ~(move.swings(self.at) if move else False)
            drop = np.maximum(drop, stands * (-way[:, 2] - reach))
        half = max(1, round(_DOWN / 2 * self.rate))
        smooth = bell(around(drop, half, np.max), _DOWN, self.rate)
        edge = np.minimum(self.at - 1, self._home - self.at) / (2 * half)
        return smooth * _smooth(np.clip(edge, 0, 1))

    def _ends(self, side: str) -> tuple[np.ndarray, np.ndarray]:
        """Hip and ankle (n, 3) [m] of a leg that slides."""
        hip, ankle = SEGMENT_INDEX[f"thigh_{side}"], SEGMENT_INDEX[f"foot_{side}"]
        return self.joints[:, hip], self.joints[:, ankle]

    def _reached(self, side: str, shift: np.ndarray, ankle: np.ndarray) -> np.ndarray:
        """(n, 3) the ankle, no farther from the hip than a leg is long, and that gently [m]."""
        hip, own = self._ends(side)
        way, length = ankle - hip - shift, _length(own - hip)
        farther = _length(way) - length
        room = np.maximum(LONGEST * leg_length(self.joints, side) - length, _ROOM)
        share = farther.clip(0) / room
        missed = farther.clip(0) * (1 - (1 + share**_GENTLY) ** (-1 / _GENTLY))
        return ankle - (missed / _length(way))[:, None] * way

    def _legs(self) -> np.ndarray:
        """(n, S, 3) joints [m] of which those of the legs are known."""
        joints = np.zeros((*self.turns.shape[:2], 3))
        pelvis = self.landmarks("pelvis")
        for side in SIDES:
            arm, joint, parent = self.landmarks(f"hip_{side}") - pelvis, pelvis + self.moved, 0
            for segment in ("thigh", "shin", "foot"):
                index = SEGMENT_INDEX[f"{segment}_{side}"]
                joint = joint + _rotated(self.turns[:, parent], arm)
                joints[:, index] = joint
                arm, parent = self._arms.get((segment, side)), index
        return joints

    @staticmethod
    def _arm(
        recording: Performance, part: slice, segment: str, stretched: Sequence[str]
    ) -> np.ndarray:
        """(n, 3) along a thigh or shin in the animation [m], as long as in the bake."""
        motion, count, (name, side) = recording.motion, len(recording), segment.split("_")
        ends = {"thigh": ("hip", "knee"), "shin": ("knee", "ankle")}[name]
        start, end = (motion.positions[:, LANDMARK_INDEX[f"{n}_{side}"]] for n in ends)
        whole, rotations = end - start, motion.rotations[:, SEGMENT_INDEX[segment]]
        arm = whole[:count]
        if segment in stretched:
            own = usual(rotations, whole)
            arm = unstretched(rotations[:count], arm, recording.simulated_legs(), own)
        return arm[part]

    def _bend(self, side: str, shift: np.ndarray, ankle: np.ndarray) -> None:
        """Turn thigh and shin so that a pelvis that is shifted (n, 3) has the ankle at (n, 3): by
        the difference between two solutions, so that nothing changes on no way."""
        pair = [SEGMENT_INDEX[f"{name}_{side}"] for name in ("thigh", "shin")]
        foot = SEGMENT_INDEX[f"foot_{side}"]
        own = self._solved(side, self.joints, self.joints[:, foot])
        start, shifted, aim = self.turns[:, pair], self.joints + shift[:, None], ankle
        for _ in range(_AIMED):
            solved = self._solved(side, shifted, aim)
            self.turns[:, pair] = solved @ np.swapaxes(own, -1, -2) @ start
            # A captured knee is no hinge: what the leg misses by, it is aimed again by.
            aim = aim + np.clip(ankle - self._legs()[:, foot], -_MISSED, _MISSED)

    def _solved(self, side: str, joints: np.ndarray, ankle: np.ndarray) -> np.ndarray:
        """(n, 2, 3, 3) frames of a thigh and a shin that bring the ankle to (n, 3)."""
        joints, frames = joints.copy(), self._frames.copy()
        bend_leg(joints, frames, side, ankle)
        return frames[:, [SEGMENT_INDEX[f"{name}_{side}"] for name in ("thigh", "shin")]]


def _length(vectors: np.ndarray) -> np.ndarray:
    return np.linalg.norm(vectors, axis=-1)


def _smooth(share: np.ndarray) -> np.ndarray:
    """From 0 to 1 with the least jerk."""
    return share**3 * (10 - 15 * share + 6 * share**2)


def _about_z(angles: float | np.ndarray) -> np.ndarray:
    return rotation_about(2, angles)


def _rotated(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return (matrices @ np.asarray(vectors)[..., None])[..., 0]

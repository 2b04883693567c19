# SPDX-License-Identifier: GPL-3.0-or-later
"""Captured walks on stairs and ramps: made by moving level ones, and what becomes of them.

A level walk is taken onto steps, a tread for each of its stances, or onto a ramp: each standing
foot goes rigidly with what it stands on, one that swings from one place to the next over the nose
of the step, the pelvis rises evenly and comes down as far as both legs reach, and legs bend by
two-bone inverse kinematics. Upper bodies stay as they were captured.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..controller import Character, Scenario, Settings, Simulation
from ..controller.geometry.leg_bending import bend_leg
from ..controller.geometry.rotations import (
    exponential,
    matrix_from_quaternion,
    quaternion_from_matrix,
    unit,
)
from ..controller.geometry.skeleton import FEET, LANDMARK_INDEX, SEGMENT_INDEX, SIDES
from ..controller.geometry.solids import Collider, Solid, stands_at
from ..controller.geometry.stance import around, bridged, find_contacts, runs, swings
from ..controller.geometry.trajectory import bell
from ..controller.support.rolling import bell_smooth
from ..controller.support.terrain import Terrain
from .clips import read

#: Height of a step, depth of its tread [m], and slope of a ramp [rad].
RISE, TREAD = 0.17, 0.30
SLOPE = np.radians(15)

_BEFORE, _BEHIND = 1.2, 1.5  # [m] of floor at either end
_WIDTH = 2.0  # [m] to each side
_THICK = 0.4  # [m] of a step
_REACH = 0.985  # of a leg that stands
#: Share of a step that the pelvis has made when the foot lands, up and down.
_BEFORE_LANDING = (0.4, 0.7)
#: Over which the pelvis comes down for the legs to reach, and is lifted by a step [s].
_EVENLY, _LIFTING = 0.25, 0.2
#: On the way down a foot lands on its toes, pitched so far down [rad]; the time it takes [s].
_TOES_DOWN, _PITCHING = np.radians(8), 0.12
_OVERHANG = 0.03  # [m] of toes over the edge of a tread
_NOSE = 0.04  # [m] by which a swinging sole clears a step


@dataclass(frozen=True)
class Place:
    """A walk and what it walks on: Motion and Scenario."""

    motion: object
    scenario: Scenario


def made(motion, kind):
    """Place of a walk, of one of KINDS."""
    return KINDS[kind](motion)


def body_of(place):
    """The Character of a Place."""
    floor = stands_at(place.scenario.colliders, place.motion)
    terrain = Terrain.of(place.scenario, floor or 0.0, place.motion)
    return Character.from_motion(place.motion, floor=floor, terrain=terrain)


class _Walk:
    """A level walk, its stances, and where it goes."""

    def __init__(self, motion):
        self.body = body = Character.from_motion(motion)
        joints, frames = body.pose(body.trajectory(motion))
        corners = body.sole_corners(joints, frames)
        contacts, _ = find_contacts(body, corners, motion.rate, joints[:, 0])
        # From both feet to both feet: one in the air would come from a step that is not there.
        dual = np.flatnonzero(contacts.all(1))
        part = slice(dual[0], dual[-1] + 1)
        self.motion = motion = replace(
            motion,
            positions=motion.positions[part],
            rotations=motion.rotations[part],
            first_frame=motion.frame(int(dual[0])),
        )
        self.rate, self.frames, self.contacts = motion.rate, frames[part], contacts[part]
        points = motion.positions
        travel = (points[-1] - points[0])[LANDMARK_INDEX["pelvis"]] * [1, 1, 0]
        self.ahead = unit(travel)
        self.across = np.cross([0.0, 0, 1], self.ahead)
        self.ankles = [points[:, LANDMARK_INDEX[f"ankle_{side}"]] for side in SIDES]
        self.stances = sorted(
            (start + stop, side, start, stop)
            for side in range(2)
            for start, stop in runs(self.contacts[:, side])
        )
        #: Ankle of each stance, along the way [m].
        self.places = np.array(
            [np.median(self.ankles[side][a:b] @ self.ahead) for _, side, a, b in self.stances]
        )

    def bridge(self, side, values):
        """(F, ...) of a foot: values of its stances, one each, and the way from one to the next:
        early on it is up, late it is down."""
        contact = self.contacts[:, side]
        result = np.zeros((len(contact), *np.shape(values[0])))
        own = [v for v, stance in zip(values, self.stances, strict=True) if stance[1] == side]
        for value, (start, stop) in zip(own, runs(contact), strict=True):
            result[start:stop] = value
        flat = result.reshape(len(contact), -1)
        flat = np.stack([bridged(column, contact) for column in flat.T], 1)
        return flat.reshape(result.shape)


def on_stairs(motion, up, tread=None, rise=RISE):
    """Place of a walk up or down steps. tread [m]: None for as long as its steps are."""
    walk = _Walk(motion)
    own = np.polyfit(np.arange(len(walk.places)), walk.places, 1)[0]
    tread = own if tread is None else tread
    count = len(walk.stances)
    levels = np.arange(count) if up else np.arange(count)[::-1]
    # The first ankle stays; the others are a tread apart.
    targets = walk.places[0] + tread * np.arange(count)
    share = tread / own
    pelvis = walk.motion.positions[:, LANDMARK_INDEX["pelvis"]] @ walk.ahead
    middle = np.polyval(np.polyfit(np.arange(count), walk.places, 1), 0)
    shift = walk.places[0] + (pelvis - middle) * share - pelvis
    heights = rise * levels.astype(float)
    foot = walk.body.feet[0]
    room = tread - foot.heel - foot.toe
    # Down the steps toes may stick out: heels pass close to the nose of the step above.
    behind = foot.heel + (room / 2 if up or room > 0.2 else room + _OVERHANG)
    noses = targets[1:] - behind

    def top(along):
        return heights[np.searchsorted(noses, along)]

    moved = _moved(walk, targets - walk.places, shift, heights, np.zeros(count), top)
    boxes = []
    for i in range(count):
        start = targets[i] - behind - (_BEFORE if i == 0 else 0)
        end = targets[i] - behind + tread + (_BEHIND if i == count - 1 else 0)
        boxes.append(_box(walk, f"Step {i}", start, end, heights[i]))
    return Place(moved, Scenario(colliders=tuple(boxes), floor=0.0))


def on_ramp(motion, up, slope=SLOPE):
    """Place of a walk up or down a ramp."""
    walk = _Walk(motion)
    slope = slope if up else -slope
    rise = np.tan(slope)
    share = np.cos(slope)  # a step is as long on the ramp as on the level
    targets = walk.places[0] + share * (walk.places - walk.places[0])
    heights = rise * (targets - targets[0])
    pelvis = walk.motion.positions[:, LANDMARK_INDEX["pelvis"]] @ walk.ahead
    shift = (share - 1) * (pelvis - walk.places[0])
    count = len(walk.stances)
    moved = _moved(walk, targets - walk.places, shift, heights, np.full(count, slope))
    start, end = targets[0] - _BEFORE, targets[-1] + _BEHIND
    turn = exponential(-slope * walk.across)
    middle = (start + end) / 2 * walk.ahead + _aside(walk) * walk.across
    middle[2] = rise * ((start + end) / 2 - targets[0])
    down = matrix_from_quaternion(turn) @ [0, 0, _THICK / 2]
    heading = _heading(walk)
    rotation = quaternion_from_matrix(matrix_from_quaternion(turn) @ heading)
    size = ((end - start) / 2 / np.cos(slope), _WIDTH, _THICK / 2)
    ramp = Collider("Ramp", Solid("box", size), middle - down, rotation)
    low = float(min(middle[2] - abs(rise) * (end - start), 0.0)) - 1.0
    return Place(moved, Scenario(colliders=(ramp,), floor=low))


def _aside(walk):
    return float(np.mean([ankle @ walk.across for ankle in walk.ankles]))


def _heading(walk):
    return np.stack([walk.ahead, walk.across, [0.0, 0, 1]], -1)


def _box(walk, name, start, end, top):
    middle = (start + end) / 2 * walk.ahead + _aside(walk) * walk.across
    middle = middle + [0, 0, top - _THICK / 2]
    size = ((end - start) / 2, _WIDTH, _THICK / 2)
    return Collider(name, Solid("box", size), middle, quaternion_from_matrix(_heading(walk)))


def _moved(walk, alongs, shift, heights, slopes, top=None):
    """The Motion with stances moved along the way (n,) [m], up (n,) [m] and tilted (n,) [rad]; the
    pelvis moved along by shift (F,). top: height [m] of the floor along the way, None of a ramp."""
    motion = walk.motion
    pelvis = motion.positions[:, LANDMARK_INDEX["pelvis"]] @ walk.ahead
    middles = np.array([(a + b - 1) / 2 for _, _, a, b in walk.stances])
    samples = np.arange(len(motion))
    if top is not None:
        lifted = _stepwise(samples, middles, heights, walk)
    else:  # up and down the ramp as it goes ahead
        lifted = np.tan(slopes[0]) * (pelvis + shift - walk.places[0])
    offset = shift[:, None] * walk.ahead + lifted[:, None] * [0, 0, 1]
    points = motion.positions + offset[:, None]
    rotations = matrix_from_quaternion(motion.rotations)
    feet = []
    for side, label in enumerate(SIDES):
        pivot = walk.bridge(side, walk.places)
        angle = walk.bridge(side, slopes)
        if top is not None and heights[-1] < heights[0]:
            angle = angle - _toes_first(walk, side)
            pivot = pivot + walk.body.feet[side].ball
        turn = matrix_from_quaternion(exponential(-angle[:, None] * walk.across))
        here = pivot[:, None] * walk.ahead
        apart = motion.positions[:, LANDMARK_INDEX[f"ankle_{label}"]] - here
        ankle = np.einsum("fij,fj->fi", turn, apart) + here
        ankle += walk.bridge(side, alongs)[:, None] * walk.ahead
        ankle[:, 2] += walk.bridge(side, heights)
        if top is not None:
            ankle[:, 2] += _late_or_early(walk, side, heights)
            ankle[:, 2] += _over_the_nose(walk, side, ankle, turn, top)
        feet.append((label, turn, ankle))
    points[:, :, 2] -= _needed(walk, points, feet)[:, None]
    frames = walk.frames.copy()
    names = "hip", "knee", "ankle", "ball", "toe"
    for label, turn, ankle in feet:
        hip, knee, foot, ball, toe = (LANDMARK_INDEX[f"{name}_{label}"] for name in names)
        segments = [SEGMENT_INDEX[f"{name}_{label}"] for name in ("thigh", "shin", "foot", "toe")]
        joints = np.zeros((len(motion), len(SEGMENT_INDEX), 3))
        for segment, landmark in zip(segments, (hip, knee, foot), strict=False):
            joints[:, segment] = points[:, landmark]
        before = frames.copy()
        # The knee stays in the plane that the thigh has at the moment.
        bend_leg(joints, before, label, before_ankle(motion, offset, points, label))
        bent = before.copy()
        bend_leg(joints, bent, label, ankle)
        for segment in segments[:2]:
            change = bent[:, segment] @ before[:, segment].swapaxes(1, 2)
            rotations[:, segment] = change @ rotations[:, segment]
        for segment in segments[2:]:
            rotations[:, segment] = turn @ rotations[:, segment]
        original = motion.positions
        points[:, knee], points[:, foot] = joints[:, segments[1]], joints[:, segments[2]]
        for landmark in (ball, toe):
            arm = original[:, landmark] - original[:, foot]
            points[:, landmark] = points[:, foot] + np.einsum("fij,fj->fi", turn, arm)
    return replace(motion, rotations=quaternion_from_matrix(rotations), positions=points)


def before_ankle(motion, offset, points, label):
    """Where the ankle (F, 3) would be if the leg hung from the moved pelvis unchanged."""
    ankle, hip = (LANDMARK_INDEX[f"{name}_{label}"] for name in ("ankle", "hip"))
    return points[:, hip] + motion.positions[:, ankle] - motion.positions[:, hip]


def _stepwise(samples, middles, heights, walk):
    """(F,) height [m] that the pelvis is lifted by: from stance to stance, without a jerk."""
    # Most of a step down is done before the foot lands on it, most of a step up afterwards.
    up = heights[-1] > heights[0]
    landings = (middles[:-1] + middles[1:]) / 2
    share = _BEFORE_LANDING[0] if up else _BEFORE_LANDING[1]
    between = heights[:-1] + share * np.diff(heights)
    times = np.concatenate([middles, landings])
    order = np.argsort(times)
    lifted = np.interp(samples, times[order], np.concatenate([heights, between])[order])
    return bell(lifted, 2 * _LIFTING, walk.rate)


def _late_or_early(walk, side, heights):
    """(F,) what a swinging foot is lifted by besides: it is up early and comes down late."""
    contact = walk.contacts[:, side]
    straight = walk.bridge(side, heights)
    extra = np.zeros(len(contact))
    for start, stop, phase in swings(contact):
        if start == 0 or stop == len(contact):
            continue
        a, b = straight[start - 1], straight[stop]
        warped = np.clip(phase / 0.6 if b > a else (phase - 0.4) / 0.6, 0, 1)
        smooth = warped**3 * (10 - 15 * warped + 6 * warped**2)
        extra[start:stop] = a + smooth * (b - a) - straight[start:stop]
    return extra


def _toes_first(walk, side):
    """(F,) how much further a foot is pitched down [rad] around its landings."""
    contact = walk.contacts[:, side]
    pitch = np.arcsin(np.clip(-walk.frames[:, FEET[side], 2, 0], -1, 1))
    extra = np.zeros(len(contact))
    for start, _ in runs(contact):
        if start:
            after = (np.arange(len(contact)) - start) / walk.rate / _PITCHING
            share = np.clip(np.where(after < 0, 1 + after / 2, 1 - after), 0, 1)
            share = share * share * (3 - 2 * share)
            extra += share * np.maximum(_TOES_DOWN - pitch[max(start - 2, 0)], 0)
    return extra


def _over_the_nose(walk, side, ankle, turn, top):
    """(F,) what a swinging foot is lifted by for its sole to clear the steps; ankle: (F, 3) [m]."""
    contact, foot = walk.contacts[:, side], walk.body.feet[side]
    profile = np.array([(x, 0, -foot.depth) for x in np.linspace(-foot.heel, foot.toe, 8)])
    soles = ankle[:, None] + np.einsum("fij,pj->fpi", turn @ walk.frames[:, FEET[side]], profile)
    need = (top(soles @ walk.ahead) - soles[..., 2]).max(1)
    need = around(need, round(0.06 * walk.rate), np.max)
    lift = np.zeros(len(need))
    for start, stop, phase in swings(contact):
        envelope = np.minimum(1, 10 * phase * (1 - phase))
        lift[start:stop] = envelope * np.maximum(need[start:stop] + _NOSE, 0)
    return bell_smooth(bell_smooth(lift, walk.rate), walk.rate) * ~contact


def _needed(walk, points, feet):
    """(F,) how far [m] the pelvis must come down for legs that stand to reach."""
    drop = np.zeros(len(points))
    for side, (label, _, ankle) in enumerate(feet):
        hip = points[:, LANDMARK_INDEX[f"hip_{label}"]]
        own = walk.motion.positions
        names = ("hip", "knee", "ankle")
        a, b, c = (own[:, LANDMARK_INDEX[f"{name}_{label}"]] for name in names)
        length = np.linalg.norm(b - a, axis=1) + np.linalg.norm(c - b, axis=1)
        longest = _REACH * length
        flat = np.linalg.norm((hip - ankle)[:, :2], axis=1)
        most = ankle[:, 2] + np.sqrt(np.maximum(longest**2 - flat**2, 0.01))
        need = np.maximum(hip[:, 2] - most, 0)
        stands = around(walk.contacts[:, side], round(0.1 * walk.rate), np.any)
        drop = np.maximum(drop, np.where(stands, need, 0))
    # So evenly that the body is not thrown up and down.
    drop = around(drop, round(_EVENLY * walk.rate), np.max)
    return bell(drop, 2 * _EVENLY, walk.rate)


#: What is walked on, by name.
KINDS = {
    "stairs up": lambda motion: on_stairs(motion, True, TREAD),
    "stairs down": lambda motion: on_stairs(motion, False, TREAD),
    "long stairs up": lambda motion: on_stairs(motion, True),
    "long stairs down": lambda motion: on_stairs(motion, False),
    "ramp up": lambda motion: on_ramp(motion, True),
    "ramp down": lambda motion: on_ramp(motion, False),
}
CLIPS = ("walk", "walk_slow", "walk_fast")
SEEDS = (0, 1, 2, 3, 4)


def main():
    """Print what becomes of each clip on each, with and without motor noise."""
    print("on | clip | of 5 | farthest from place [cm], median | pose [mm], median")
    for kind in KINDS:
        for clip in CLIPS:
            place = made(read(clip), kind)
            body = body_of(place)
            reached, places, poses = 0, [], []
            for seed in SEEDS:
                settings = Settings(noise=1.0 if seed else 0.0, seed=seed)
                recording = Simulation(
                    body, place.motion, settings=settings, scenario=place.scenario
                ).run()
                reached += recording.success
                away = np.linalg.norm(recording.root_displacement(), axis=1).max()
                places.append(100 * away)
                poses.append(recording.summary()["tracking_error_local"])
            figures = f"{reached} | {np.median(places):.0f} | {np.median(poses):.0f}"
            print(f"{kind} | {clip} | {figures}", flush=True)


if __name__ == "__main__":
    main()

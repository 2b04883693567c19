# SPDX-License-Identifier: GPL-3.0-or-later
"""A made person on chairs: who sits, comes to sit, gets up, is pushed there, and falls off.

Hips and trunk are keyed, feet stay where they are, legs by inverse kinematics. Nothing is as a body
would have it: a person leans forward and comes down at the speed of the keys.
"""

from dataclasses import replace

import numpy as np

from ..controller import Motion, Problem, Push, Scenario, Settings
from ..controller.body.momentum import GRAVITY
from ..controller.geometry.rotations import quaternion_from_matrix
from ..controller.geometry.skeleton import FEET, LANDMARK_INDEX, LANDMARKS, SIDES
from ..controller.geometry.solids import Collider, Solid, corners_of
from .person import RATE, Score

#: Height of a chair, of a couch and of a stool, and of hip joints above each [m].
CHAIR, COUCH, STOOL, HIPS = 0.45, 0.21, 0.75, 0.085
#: Of who stands, hips above the floor; of who sits, how far they are behind the ankles [m].
_STANDING, _BEHIND = 0.895, 0.3
_PLATE = (0.21, 0.25, 0.02)  # half extents of a seat [m]
_AHEAD = 0.07  # [m] of hips, where the middle of a seat is
#: Pushes: at 1 s, for so long [s], in so many directions, this strong [N].
_FOR, _DIRECTIONS, _FORCES = 0.2, 8, (100.0, 200.0, 300.0)
_SETTLED = 0.25  # [s] after which feet are compared

#: Poses: how far hips are ahead of the ankles, and above the floor [m]; pitch of pelvis and trunk,
#: and how far arms are raised forward [rad].
_UP = (0.0, _STANDING, 0.0, 0.0, 0.0)
_LEANS = (-0.24, 0.62, 0.7, 1.0, 0.9)
_RISES = (0.03 - _BEHIND, CHAIR + HIPS + 0.01, 0.6, 1.0, 0.9)


def _sits(height=CHAIR, behind=_BEHIND, pelvis=-0.15, trunk=0.0, arms=0.4):
    return (-behind, height + HIPS, pelvis, trunk, arms)


def keyed(name, seconds, *keys):
    """The Motion of a person through keys (time [s], pose as above)."""
    score = Score(name, np.arange(round(seconds * RATE) + 1) / RATE)
    ahead, height, pelvis, trunk, arms = score.keyed(*keys).T
    score.pelvis[:, 1], score.trunk[:, 1] = pelvis, trunk
    score.arms[:, :, 0] += arms[:, None]
    plan = np.stack([ahead, np.zeros(len(ahead))], 1)
    _, points = score.pose(plan)
    score.lower = (points["hip_l"][:, 2] + points["hip_r"][:, 2]) / 2 - height
    frames, points = score.pose(plan)
    positions = np.stack([points[landmark] for landmark in LANDMARKS], 1)
    return Motion(name, RATE, quaternion_from_matrix(frames), positions)


def sits(height=CHAIR, seconds=4.0, **pose):
    """The Motion of who sits, leans to and fro, and moves both arms."""
    rest, ahead, back = (
        _sits(height, **pose | moved)
        for moved in ({}, {"trunk": 0.25, "arms": 1.0}, {"trunk": -0.15, "arms": 0.0})
    )
    times = np.linspace(0, seconds, 5)
    return keyed("sits", seconds, *zip(times, (rest, ahead, back, ahead, rest), strict=True))


def sits_down(slower=1.0):
    """The Motion of who stands and sits down; the slower, the longer it takes than 1.2 s."""
    end = 2 + 2 * slower
    times = 0.4 + np.array([0.0, 0.6, 1.2]) * slower
    down = zip(times, (_UP, _LEANS, _sits()), strict=True)
    return keyed("sits down", end, (0, _UP), *down, (end, _sits()))


def gets_up(slower=1.0):
    """The Motion of who sits and gets up; the slower, the longer it takes than 1.7 s."""
    end = 2 + 1.7 * slower
    times = 0.5 + np.array([0.0, 0.6, 0.9, 1.7]) * slower
    up = zip(times, (_sits(), _RISES, _LEANS, _UP), strict=True)
    return keyed("gets up", end, (0, _sits()), *up, (end, _UP))


def on_the_floor():
    """The Motion of who sits on the floor, knees up."""
    return sits(0.0, 3.0, behind=0.62, pelvis=-0.3)


def on_a_couch():
    """The Motion of who sits so low that the knees are above the hips."""
    return sits(COUCH, behind=0.55, pelvis=-0.4)


def on_a_stool():
    """The Motion of who sits so high that the feet hang."""
    motion = sits()
    return replace(motion, positions=motion.positions + [0.0, 0.0, STOOL - CHAIR])


def plate(motion, height=CHAIR):
    """A seat of that height [m] under where a motion's hips are lowest: a Collider."""
    x, y = _under(motion)
    return Collider("Chair", Solid("box", _PLATE), (x, y, height - _PLATE[2]))


def chair(motion, height=CHAIR):
    """The same with four legs and a back, as one mesh."""
    long, wide, thick = _PLATE
    back = (0.02 - long, 0, height + 0.25), (0.02, wide, 0.25)
    parts = [((0, 0, height - thick), _PLATE), back]
    half = height / 2 - thick
    for ahead in (-1, 1):
        for aside in (-1, 1):
            at = (ahead * (long - 0.02), aside * (wide - 0.02), half)
            parts.append((at, (0.02, 0.02, half)))
    corners = np.concatenate([corners_of(Solid("box", size)) + at for at, size in parts])
    faces = np.arange(3 * len(corners)).reshape(-1, 3)
    solid = Solid("mesh", (), corners.reshape(-1, 3), faces)
    return Collider("Chair", solid, (*_under(motion), 0.0))


def carried(motion, chair, speed=2.0):
    """The Motion and the Colliders of who sits in something that starts off, and reaches that speed
    [m/s] within 2 s: the seat, and what feet stand on."""
    time = np.arange(len(motion)) / motion.rate
    ahead = np.where(time < 2, speed * time**2 / 4, speed * (time - 1))
    way = np.stack([ahead, 0 * ahead, 0 * ahead], 1)
    still = np.tile([1.0, 0.0, 0.0, 0.0], (len(way), 1))
    bed = Collider("Bed", Solid("box", (1.5, 1.5, 0.05)), way - [0.0, 0.0, 0.05], still)
    seat = replace(chair, positions=way + np.array(chair.positions), rotations=still)
    return replace(motion, positions=motion.positions + way[:, None]), (seat, bed)


def _under(motion):
    hips = motion.positions[:, [LANDMARK_INDEX[f"hip_{side}"] for side in SIDES]].mean(1)
    x, y, _ = hips[hips[:, 2].argmin()]
    return float(x) + _AHEAD, float(y)


def performed(motion, colliders, when_it_falls="stop", **scenario):
    """The Recording of a motion among colliders."""
    scenario = Scenario(colliders=tuple(colliders), **scenario)
    settings = Settings(when_it_falls=when_it_falls)
    return Problem(motion, settings=settings, scenario=scenario).simulation(None, 0).run()


def strayed(recording):
    """(n,) how far the pelvis is from where the animation has it [m]."""
    count = len(recording)
    apart = recording.body_positions[:, 0] - recording.reference.raw.centres[:count, 0]
    return np.linalg.norm(apart, axis=1)


def shifted(recording):
    """(n - s, 2) how far feet have moved since a quarter of a second after the start [m]."""
    feet = recording.body_positions[round(_SETTLED * recording.motion.rate) :, list(FEET)]
    return np.linalg.norm((feet - feet[0])[..., :2], axis=2)


#: Name, motion, what is sat on.
CASES = {
    "sits": lambda: (motion := sits(), (plate(motion),)),
    "sits, chair with a back": lambda: (motion := sits(), (chair(motion),)),
    "sits, couch": lambda: (motion := on_a_couch(), (plate(motion, COUCH),)),
    "sits, stool, feet hang": lambda: (motion := on_a_stool(), (plate(motion, STOOL),)),
    "sits, floor": lambda: (on_the_floor(), ()),
    "sits, starts off": lambda: carried(motion := sits(), plate(motion)),
    **{
        f"sits down in {1.2 * slower:g} s": lambda slower=slower: (
            motion := sits_down(slower),
            (chair(motion),),
        )
        for slower in (1.0, 1.5, 2.0)
    },
    **{
        f"gets up in {1.7 * slower:.2g} s": lambda slower=slower: (
            motion := gets_up(slower),
            (chair(motion),),
        )
        for slower in (1.0, 1.5, 2.0)
    },
}


def main():
    """Print what becomes of each, and of who sits and is pushed."""
    print("case | to its end | pelvis off, most; at the end [cm] | feet moved [cm] | on the seat")
    for name, made in CASES.items():
        motion, colliders = made()
        recording = performed(motion, colliders)
        away, weight = 100 * strayed(recording), recording.character.mass * GRAVITY
        bears = recording.presses[:, :, 2].sum(1).max() / weight
        feet = 100 * shifted(recording).max()
        ends = "yes" if recording.success else "no"
        print(f"{name} | {ends} | {away.max():.1f}; {away[-1]:.1f} | {feet:.1f} | {bears:.2f}")
    motion = sits()
    for force in _FORCES:
        kept = 0
        for way in np.arange(_DIRECTIONS) * 2 * np.pi / _DIRECTIONS:
            push = Push(1.0, _FOR, (force * np.cos(way), force * np.sin(way), 0.0))
            recording = performed(motion, (chair(motion),), "brace", pushes=(push,))
            kept += recording.standing == len(recording)
        print(f"pushed with {force:g} N: {kept} of {_DIRECTIONS} go on sitting", flush=True)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: GPL-3.0-or-later
"""Get-ups of an animator's own: motions that begin on the floor and end standing.

The one is chosen that begins most as the body lies, mirrored if that fits better; it is turned and
moved to where the body is. The body comes into its pose, goes through it as it is animated, sets
one foot beside the other where it is to stand otherwise, and stands.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..body.character import Character
from ..exceptions import demand
from ..geometry.motion import Motion
from ..geometry.rotations import arctan2, matrix_from_quaternion, rotation_about
from ..geometry.skeleton import LANDMARK_INDEX, SEGMENT_INDEX, SEGMENTS, SIDES
from ..geometry.trajectory import eased
from .compliance import Arm
from .posing import BodyPose, Placed, Tree
from .rising import KNOTS, Knot, Rising, heading
from .stages import STAND, STEP_UP, Stage

#: Poses a second that are kept of a motion; a body lies until its centre of mass is higher than
#: this share of how high it comes; it ends standing above that share of it, and comes to that
#: share of its stature.
_POSES, _LIES, _ENDS, _STANDS = 30.0, 0.45, 0.85, 0.4
#: What points of a body lie apart [statures], root mean square, and still are as one lies.
_FITS = 0.2
#: How far [statures] ahead of their joints points are that tell a back from a front.
_AHEAD = 0.28
_FACING = [SEGMENT_INDEX[name] for name in ("pelvis", "trunk", "head")]
#: How fast [statures/s] points come to the pose in which it begins, and how long that takes [s].
_SPEED, _SOONEST, _LATEST = 0.45, 0.3, 1.2
#: A foot that moves faster along the floor [statures/s] does not stand.
_MOVES = 0.25
#: A foot that is so near [statures] to where it will stand need not step there.
_BESIDE = 0.03
_ENTER = Stage(_SOONEST, 0, 0.0, {}, rises=False)
_ACT = Stage(1.0, 0, 0.0, {}, over={"all": 1.0}, rises=False)
_MIRROR = np.diag([1.0, -1.0, 1.0])
_OTHER = [
    SEGMENT_INDEX[name[:-1] + {"l": "r", "r": "l"}[name[-1]] if name[-2:-1] == "_" else name]
    for name in SEGMENTS
]


@dataclass(frozen=True)
class Acted:
    """A get-up, as it is animated or mirrored.

    name: of its motion. interval [s] from one of its poses to the next. knots: those, on a floor at
    height 0. outlines: (n, P, 3) points [m] of the first n of them, in which it lies.
    """

    name: str
    mirrored: bool
    interval: float
    knots: tuple[Knot, ...]
    outlines: np.ndarray

    @property
    def told(self) -> str:
        """Its name, and whether it is mirrored."""
        return f"{self.name} (mirrored)" if self.mirrored else self.name


def acted(character: Character, motions: Iterable[Motion]) -> tuple[Acted, ...]:
    """All get-ups that motions of the character's rig are, both ways. Raises SettingsError for one
    that does not begin on the floor, or does not end standing."""
    return tuple(
        _acted(character, motion, mirrored) for motion in motions for mirrored in (False, True)
    )


def _acted(character: Character, motion: Motion, mirrored: bool) -> Acted:
    step = max(1, round(motion.rate / _POSES))
    at = np.unique([*range(0, len(motion), step), len(motion) - 1])
    root = motion.positions[:, LANDMARK_INDEX["pelvis"]]
    frames = character.segment_frames(motion)
    if mirrored:
        root, frames = root @ _MIRROR, _MIRROR @ frames[:, _OTHER] @ _MIRROR
    whole = character.trajectory_of(motion.rate, root, frames)
    joints, turned = character.pose(whole)
    ground = float(character.sole_corners(joints[-1:], turned[-1:])[..., 2].min())
    tree = Tree(character)
    knots, outlines = [], []
    for root, frame, angles in zip(
        whole.root[at] - [0.0, 0.0, ground],
        matrix_from_quaternion(whole.rotation[at]),
        whole.angles[at],
        strict=True,
    ):
        placed = tree.placed(BodyPose(root, frame, angles))
        knots.append(Knot(placed.pose, placed.com))
        outlines.append(_outline(character, placed))
    heights = np.array([knot.com[2] for knot in knots])
    top = max(float(heights.max()), _STANDS * character.height)
    demand(
        heights[0] < _LIES * top,
        f"The get-up '{motion.name}' does not begin on the floor: at its first frame, "
        f"{motion.frame(0):g}, its centre of mass is {heights[0]:.2f} m high, and {top:.2f} m "
        "where it stands. Let it begin in a pose that lies or sits, or take it off the list.",
    )
    demand(
        heights[-1] > _ENDS * top,
        f"The get-up '{motion.name}' does not end standing: at its last frame, "
        f"{motion.frame(len(motion) - 1):g}, its centre of mass is {heights[-1]:.2f} m above its "
        f"feet, and {top:.2f} m where one stands. Let it end in a pose that stands, or take it off "
        "the list.",
    )
    lies = int(np.argmax(heights >= _LIES * top))
    return Acted(motion.name, mirrored, step / motion.rate, tuple(knots), np.array(outlines[:lies]))


def _outline(character: Character, placed: Placed) -> np.ndarray:
    """(P, 3) points [m] by which poses are compared: joints, and what is ahead of the trunk."""
    ahead = placed.frames[_FACING, :, 0]
    facing = placed.positions[_FACING] + _AHEAD * character.height * ahead
    return np.concatenate([placed.positions, facing])


def _placing(own: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How outlines (n, P, 3) are turned about the vertical (n,) [rad] and moved (n, 3) [m] along
    the floor to come to another (P, 3) as near as can be, and how far they are then from it,
    root mean square (n,) [m]."""
    middle, end = own.mean(1), wanted.mean(0)
    x, y = np.moveaxis((own - middle[:, None])[..., :2], -1, 0)
    to = wanted - end
    yaws = arctan2((x * to[:, 1] - y * to[:, 0]).sum(1), (x * to[:, 0] + y * to[:, 1]).sum(1))
    turns = rotation_about(2, yaws)
    moves = end - np.einsum("nij,nj->ni", turns, middle)
    moves[:, 2] = 0.0
    apart = np.einsum("nij,npj->npi", turns, own) + moves[:, None] - wanted
    return yaws, moves, np.sqrt((apart**2).sum(2).mean(1))


def fitting(
    acts: Sequence[Acted], character: Character, placed: Placed, floor: float
) -> tuple[Acted, int] | None:
    """The get-up that begins most as a body lies on a floor [m], and its pose that is most as the
    body's; None if none is nearly so."""
    wanted = _outline(character, placed) - [0.0, 0.0, floor]
    best, found = _FITS * character.height, None
    for act in acts:
        apart = _placing(act.outlines, wanted)[2]
        nearest = int(np.argmin(apart))
        if apart[nearest] < best:
            best, found = float(apart[nearest]), (act, nearest)
    return found


class ActedRising(Rising):
    """The way of a body that gets up as an animator has it."""

    def __init__(
        self,
        tree: Tree,
        arms: Sequence[Arm],
        standing: BodyPose,
        floor: float,
        fit: tuple[Acted, int],
        placed: Placed,
    ) -> None:
        """fit: of `fitting`. placed: the body as it lies. The rest is as Rising has it."""
        self._act, first = fit
        self._own = self._act.knots[first:]
        end = tree.placed(self._own[-1].pose)
        lead = _lead(end)
        super().__init__(tree, arms, standing, floor, lead, heading(placed.pose.frame))
        apart = tree.placed(self._placed_entry(placed)).positions - placed.positions
        way = float(np.linalg.norm(apart, axis=1).max())
        enters = min(max(way / (_SPEED * tree.character.height), _SOONEST), _LATEST)
        self._enter = replace(_ENTER, seconds=enters)
        count = max(len(self._own) - 1, 1)
        self._acting = replace(_ACT, seconds=count * self._act.interval)
        beside = np.linalg.norm(_to_trailing(end, lead) - _to_trailing(tree.placed(standing), lead))
        steps = beside > _BESIDE * tree.character.height
        feet = [SEGMENT_INDEX[f"foot_{side}"] for side in SIDES]
        at = [tree.placed(own.pose).positions[feet, :2] for own in (self._own[0], *self._own)]
        speeds = np.linalg.norm(np.diff(at, axis=0), axis=2) / self._act.interval
        #: (n, 2) whether either foot moves, from pose to pose.
        self._moving = speeds > _MOVES * tree.character.height
        self.stages = (self._enter, self._acting, *(STEP_UP,) * int(steps), STAND)

    def begin(self, stage: Stage, pose: BodyPose, last: Knot) -> tuple[list[Knot], np.ndarray]:
        """As Rising has it: coming into the first pose, then those of the action, as many as it
        has."""
        nowhere = np.zeros((0, 3))
        here = self._tree.placed(pose)
        if stage is self._enter:
            key = self._placed_entry(here)
            knots = [Knot(pose, here.com)]
            for share in eased(np.arange(1, KNOTS + 1) / KNOTS):
                mixed = self.between(pose, key, share, knots[-1].pose.angles)
                knots.append(Knot(mixed, self._tree.placed(mixed).com))
            return knots, nowhere
        if stage is not self._acting:
            return super().begin(stage, pose, last)
        turn, move = self._placing(here)
        knots, near = [], last.pose.angles
        for own in self._own:
            angles = np.clip(own.pose.angles, *self._limits.T)
            for arm in self._arms:  # the same pose, in angles as near as can be
                angles[arm.dofs] = arm.angles(arm.frame(angles), near[arm.dofs])
            near = angles
            moved = BodyPose(turn @ own.pose.root + move, turn @ own.pose.frame, angles)
            knots.append(Knot(moved, turn @ own.com + move))
        return [knots[0], *knots] if len(knots) == 1 else knots, nowhere

    def steps(self, stage: Stage, share: float, lands: bool) -> str:
        """As Rising has it: feet that move along the floor carry nothing."""
        if stage is not self._acting:
            return super().steps(stage, share, lands)
        moving = self._moving[min(int(share * len(self._moving)), len(self._moving) - 1)]
        return "".join(side for side, moves in zip(SIDES, moving, strict=True) if moves)

    def _placing(self, here: Placed) -> tuple[np.ndarray, np.ndarray]:
        """How its poses are turned (3, 3) and moved (3,) [m], for its first to be where a body
        is."""
        own = self._tree.placed(self._own[0].pose)
        outlines = [_outline(self._character, one) for one in (own, here)]
        yaws, moves, _ = _placing(outlines[0][None], outlines[1])
        return rotation_about(2, yaws[0]), moves[0] + [0.0, 0.0, self.floor]

    def _placed_entry(self, here: Placed) -> BodyPose:
        """Its first pose, where a body is."""
        turn, move = self._placing(here)
        root, frame, angles = self._own[0].pose
        return BodyPose(turn @ root + move, turn @ frame, np.clip(angles, *self._limits.T))


def _lead(placed: Placed) -> str:
    """The side of the foot that is ahead."""
    way = placed.pose.frame[:2, 0]
    ahead = [placed.positions[SEGMENT_INDEX[f"foot_{side}"], :2] @ way for side in SIDES]
    return SIDES[int(np.argmax(ahead))]


def _to_trailing(placed: Placed, lead: str) -> np.ndarray:
    """(2,) [m] from the ankle of the leading foot to the other one's, as the pelvis faces."""
    ankles = {side: placed.positions[SEGMENT_INDEX[f"foot_{side}"]] for side in SIDES}
    other = next(side for side in SIDES if side != lead)
    yaw = math.atan2(placed.pose.frame[1, 0], placed.pose.frame[0, 0])
    return (rotation_about(2, -yaw) @ (ankles[other] - ankles[lead]))[:2]

# SPDX-License-Identifier: GPL-3.0-or-later
"""How a body stands once it has got up: still, in a pose of its animation, or as it goes on."""

from dataclasses import dataclass, replace

import numpy as np

from ..body.character import Character
from ..geometry.motion import Motion
from ..geometry.rotations import (
    exponential,
    matrix_from_quaternion,
    multiply,
    quaternion_from_matrix,
    rotation_about,
    rotation_vector,
)
from ..geometry.skeleton import SEGMENT_INDEX, SIDES
from ..geometry.stance import DUAL
from ..geometry.trajectory import eased
from ..reference.lying import Hold, started
from ..reference.performed import Changed, performed_motion
from ..reference.reference import Reference
from .loss import Moving
from .posing import BodyPose, Goals, Tree, meet
from .rising import marks_of

#: Rounds in which the pose is found. How much goals weigh: points of the soles and the centre of
#: mass [1/m], the pelvis' turn and joints [1/rad]. By trial.
_ROUNDS, _SOLES, _COM, _TURN, _JOINTS = 20, 10.0, 5.0, 2.0, 0.5
#: A pose that is this much [m] less well over its feet than the best one is as good: the last of
#: those is taken. One is, if the centre of mass is at least so far [m] within the soles. By trial.
_AS_GOOD, _WITHIN = 0.03, 0.01
#: What a metre counts by which the centre of mass is lower than it ever is, and a foot in the air
#: [m]. By trial.
_LOWER, _LIFTED = 1.0, 1.0
#: Who goes on does so in a pose at most so much [m] lower than the highest and no faster [m/s], and
#: is as it is in the animation after so long [s]. By trial.
_CROUCHED, _SLOW, _AS_ANIMATED = 0.12, 0.2, 1.0
#: What never moves faster [m/s] from a sample on has ended there.
_MOVES = 0.02
#: [rad] by which thighs and shins are tilted of one who gets up from a seat. By judgement.
_BENT = 0.1


@dataclass(frozen=True)
class Standing:
    """A motion of somebody who stands, the pose in which it begins, on its character's ground, and
    which samples of the animation it shows (n,), None of one who stands still."""

    motion: Motion
    pose: BodyPose
    shown: np.ndarray | None = None

    def placed(self, turn: np.ndarray, move: np.ndarray, first_frame: float) -> Motion:
        """The motion, turned (3, 3) about the vertical through the origin, then moved (3,) [m]."""
        motion = self.motion
        whole = np.broadcast_to(quaternion_from_matrix(turn), motion.rotations.shape)
        return replace(
            motion,
            first_frame=first_frame,
            rotations=multiply(whole, motion.rotations),
            positions=motion.positions @ turn.T + move,
        )


def standing_still(
    character: Character, motion: Motion, reference: Reference, count: int
) -> Standing:
    """Somebody who stands for so many samples in the last pose of a motion in which one can stand:
    with both feet flat on the floor, side by side if they are not so already, and the centre of
    mass above them. reference: of the motion."""
    moving, both, stands = _seen(character, motion, reference)
    low = moving.height.max() - moving.height
    cost = np.maximum(moving.outside, -_WITHIN) + _LOWER * low + _LIFTED * ~both
    sample = int(np.flatnonzero(cost <= cost.min() + _AS_GOOD)[-1])
    pose, turns, moved = _posed(character, motion, reference, sample, bool(stands[sample]))
    return Standing(_changed(motion, np.full(count, sample), turns, moved, np.ones(count)), pose)


def going_on(
    character: Character, motion: Motion, reference: Reference, lost: int, count: int
) -> Standing | None:
    """Somebody who goes on with a motion for so many samples, from a pose in which one can stand:
    the first one since a sample at which balance was lost, or the last before; None if there is
    none, or nothing moves any more. reference: of the motion."""
    moving, _, stands = _seen(character, motion, reference)
    stands &= np.linalg.norm(moving.velocity, axis=1) < _SLOW
    steps = np.linalg.norm(np.diff(reference.raw.joints[: len(stands)], axis=0), axis=2).max(1)
    moves = np.flatnonzero(steps * motion.rate > _MOVES)
    stands[moves[-1] if len(moves) else 0 :] = False
    if not stands.any() or lost >= moves[-1]:
        return None
    able = np.flatnonzero(stands & (moving.height >= moving.height[stands].max() - _CROUCHED))
    sample = int(next((one for one in able if one >= lost), able[-1]))
    pose, turns, moved = _posed(character, motion, reference, sample, True)
    shown = np.minimum(started(sample, count, motion.rate), len(motion) - 1)
    shares = 1 - eased(np.arange(count) / (_AS_ANIMATED * motion.rate))
    return Standing(_changed(motion, shown, turns, moved, shares), pose, shown)


def _changed(
    motion: Motion, shown: np.ndarray, turns: np.ndarray, moved: np.ndarray, shares: np.ndarray
) -> Motion:
    """Samples (n,) of a motion, changed by turns (S, 4) and a displacement (3,) [m] of its pelvis
    as far as shares (n,) say."""
    hold = Hold(0, shown.astype(float), np.zeros(len(shown)))
    rotations, positions = hold.shown_turns(motion.rotations), hold.shown(motion.positions)
    partly = exponential(shares[:, None, None] * rotation_vector(turns))
    played = replace(motion, rotations=rotations, positions=positions)
    return performed_motion(Changed(played, partly, shares[:, None] * moved))


def _posed(
    character: Character, motion: Motion, reference: Reference, sample: int, stands: bool
) -> tuple[BodyPose, np.ndarray, np.ndarray]:
    """How one stands in a sample of a motion, and the turns (S, 4) and the displacement (3,) [m] of
    the pelvis that make it so. stands: whether feet are there as they are to be."""
    trajectory = reference.trajectory
    pose = BodyPose(
        trajectory.root[sample],
        matrix_from_quaternion(trajectory.rotation[sample]),
        trajectory.angles[sample],
    )
    if reference.seats is not None and reference.seats.sits[sample]:
        pose, stands = _upright(character, pose), False
    pose = _on_both_feet(character, pose, stands)
    placed = Tree(character).placed(pose)
    raw = reference.raw
    turns = quaternion_from_matrix(placed.frames @ raw.frames[sample].swapaxes(1, 2))
    return pose, turns, pose.root - raw.joints[sample, 0]


def _upright(character: Character, pose: BodyPose) -> BodyPose:
    """The pose of one who sits, on nearly straight legs."""
    frames = Tree(character).placed(pose).frames.copy()
    x, y, _ = pose.frame[:, 0].tolist()
    ahead = rotation_about(2, float(np.arctan2(y, x)))
    frames[0] = ahead
    for side in SIDES:
        for name, pitch in (("thigh", -_BENT), ("shin", _BENT), ("foot", 0.0), ("toe", 0.0)):
            frames[SEGMENT_INDEX[f"{name}_{side}"]] = ahead @ rotation_about(1, pitch)
    angles = character.trajectory_of(1.0, pose.root[None], frames[None]).angles[0]
    root = np.array([*pose.root[:2], character.ground + character.leg])
    return BodyPose(root, ahead, angles)


def _seen(
    character: Character, motion: Motion, reference: Reference
) -> tuple[Moving, np.ndarray, np.ndarray]:
    """How a motion moves, by sample, whether both feet carry it (n,), and whether they are besides
    where they are to be (n,)."""
    count = min(len(motion), len(reference))
    smooth = reference.smooth
    corners = character.sole_corners(smooth.joints[:count], smooth.frames[:count])
    com = np.einsum("fsi,s->fi", smooth.centres[:count], character.masses / character.mass)
    moving = Moving(com, corners, motion.rate)
    both = reference.stance[:count] == DUAL
    return moving, both, both & (moving.outside <= -_WITHIN)


def _on_both_feet(character: Character, pose: BodyPose, stands: bool) -> BodyPose:
    """The pose nearest to one in which the soles are on the ground, and carry. stands: whether feet
    are where they are to be."""
    tree, marks = Tree(character), marks_of(character)
    placed = tree.placed(pose)
    ahead = pose.frame[:2, 0]
    ahead = ahead / max(float(np.linalg.norm(ahead)), 1e-6)
    left = np.array([-ahead[1], ahead[0]])
    foot, points = character.feet[0], []
    for side in SIDES:
        for name, way in (("heel", -foot.heel), ("ball", foot.ball)):
            mark = marks[f"{name}_{side}"]
            place = placed.point(mark.segment, mark.point)[:2]
            if not stands:  # side by side, as far apart as the hips
                hip = placed.positions[SEGMENT_INDEX[f"thigh_{side}"], :2] - pose.root[:2]
                middle = (foot.ball - foot.heel) / 2
                place = placed.com[:2] + (way - middle) * ahead + (hip @ left) * left
            points.append((mark.segment, mark.point, np.array([*place, character.ground])))
    over = np.mean([place for _, _, place in points], axis=0)
    weights = np.full(3, _SOLES)
    goals = Goals(
        [(*point, weights) for point in points],
        (pose.frame, _TURN),
        (pose.root, np.zeros(3)),
        (over, np.array([_COM, _COM, 0.0])),
        (pose.angles, np.full(len(pose.angles), _JOINTS)),
    )
    return meet(tree, pose, goals, character.limits, _ROUNDS)

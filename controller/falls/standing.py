# SPDX-License-Identifier: GPL-3.0-or-later
"""How a body stands once it has got up: still, in a pose of its animation."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..body.character import Character
from ..geometry.motion import Motion
from ..geometry.rotations import matrix_from_quaternion, multiply, quaternion_from_matrix
from ..geometry.skeleton import SEGMENT_INDEX, SIDES
from ..geometry.stance import DUAL
from ..reference.performed import performed_motion
from ..reference.reference import Reference
from .compliance import arms_of
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


@dataclass(frozen=True)
class Standing:
    """A motion of somebody who stands still, and the pose of that, on its character's ground."""

    motion: Motion
    pose: BodyPose

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
    sample, stands = _sample(character, motion, reference)
    trajectory = reference.trajectory
    pose = BodyPose(
        trajectory.root[sample],
        matrix_from_quaternion(trajectory.rotation[sample]),
        trajectory.angles[sample],
    )
    pose = _on_both_feet(character, pose, stands)
    still = replace(
        motion,
        rotations=np.repeat(motion.rotations[sample : sample + 1], count, axis=0),
        positions=np.repeat(motion.positions[sample : sample + 1], count, axis=0),
    )
    placed = Tree(character).placed(pose)
    raw = reference.raw
    turns = quaternion_from_matrix(placed.frames @ raw.frames[sample].swapaxes(1, 2))
    moved = pose.root - raw.joints[sample, 0]
    performed = performed_motion(
        _Still(still, np.repeat(turns[None], count, axis=0), np.repeat(moved[None], count, axis=0))
    )
    return Standing(performed, pose)


def as_near(character: Character, reference: Reference, angles: np.ndarray) -> Reference:
    """The Reference of somebody who stands still, with the angles of its shoulders that are nearest
    to those of a pose (dofs,) [rad]: arms have come to where they are by other ways."""
    wanted, speeds = reference.angles.copy(), reference.speeds.copy()
    for arm in arms_of(character, angles):
        wanted[:, arm.dofs] = arm.angles(arm.frame(wanted[0]), angles[arm.dofs])
        speeds[:, arm.dofs] = 0.0
    return replace(reference, angles=wanted, speeds=speeds)


@dataclass(frozen=True)
class _Still:
    """What `performed_motion` asks of a recording."""

    motion: Motion
    turns: np.ndarray
    moved: np.ndarray
    hold: None = None

    def __len__(self) -> int:
        return len(self.motion)

    def differences(self, stretched: Sequence[str] = ()) -> tuple[np.ndarray, np.ndarray]:
        """Turns (n, S, 4) and displacement (n, 3) [m] from the motion."""
        return self.turns, self.moved

    def simulated_legs(self) -> np.ndarray:
        """(n,) all of them."""
        return np.ones(len(self.motion))


def _sample(character: Character, motion: Motion, reference: Reference) -> tuple[int, bool]:
    """The last sample of a motion in which one can stand, and whether feet are there as they are
    to be."""
    count = min(len(motion), len(reference))
    smooth, rate = reference.smooth, motion.rate
    corners = character.sole_corners(smooth.joints[:count], smooth.frames[:count])
    com = np.einsum("fsi,s->fi", smooth.centres[:count], character.masses / character.mass)
    outside = Moving(com, corners, rate).outside
    high = com[:, 2] - corners[..., 2].min((1, 2))
    both = reference.stance[:count] == DUAL
    cost = np.maximum(outside, -_WITHIN) + _LOWER * (high.max() - high) + _LIFTED * ~both
    sample = int(np.flatnonzero(cost <= cost.min() + _AS_GOOD)[-1])
    return sample, bool(both[sample] and outside[sample] <= -_WITHIN)


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

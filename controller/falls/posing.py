# SPDX-License-Identifier: GPL-3.0-or-later
"""Poses of a whole body that meet goals: inverse kinematics by damped least squares."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..body.character import Character
from ..geometry.rotations import (
    cross,
    exponential,
    matrix_from_quaternion,
    rotation_about,
    vector_of_matrix,
)
from ..geometry.skeleton import SEGMENTS

#: Largest change of a pose in a round [rad], [m], and damping of the least squares: by trial.
_MOST, _DAMPING = 0.3, 1e-3
#: Times that joints at their limits are looked for in a round.
_ACTIVE = 4


class BodyPose(NamedTuple):
    """Where a body is: pelvis joint (3,) [m], pelvis frame (3, 3), joint angles (dofs,) [rad]."""

    root: np.ndarray
    frame: np.ndarray
    angles: np.ndarray


class Placed:
    """A body in a pose: joint positions (S, 3) [m] and frames (S, 3, 3) of its segments, axes
    (dofs, 3) of its degrees of freedom and the points (dofs, 3) [m] that they turn about; com (3,)
    [m]."""

    def __init__(self, tree: "Tree", pose: BodyPose) -> None:
        self._tree, self.pose = tree, pose
        character = tree.character
        self.positions = np.empty((len(SEGMENTS), 3))
        self.frames = np.empty((len(SEGMENTS), 3, 3))
        self.axes, self.anchors = np.empty((2, character.dofs, 3))
        turns = np.empty((character.dofs, 3, 3))
        for axis, dofs in tree.about:
            turns[dofs] = rotation_about(axis, pose.angles[dofs])
        self.positions[0], self.frames[0] = pose.root, pose.frame
        for joint in character.joints:
            parent = self.frames[joint.parent]
            place = self.positions[joint.parent] + parent @ joint.offset
            frame = parent @ joint.basis
            for number, axis in enumerate(joint.axes, joint.first):
                self.axes[number], self.anchors[number] = frame[:, axis], place
                frame = frame @ turns[number]
            self.positions[joint.segment], self.frames[joint.segment] = place, frame
        arms = np.einsum("sij,sj->si", self.frames, character.centres)
        self.centres = self.positions + arms
        self.com = tree.shares @ self.centres

    def point(self, segment: int, local: np.ndarray) -> np.ndarray:
        """(3,) where a point (3,) of a segment is [m]."""
        return self.positions[segment] + self.frames[segment] @ local

    def slope(self, segment: int, point: np.ndarray) -> np.ndarray:
        """(3, 6 + dofs) how a point (3,) of a segment moves with the root, with turns of the pelvis
        about the world's axes, and with the joints."""
        slope = np.zeros((3, 6 + len(self.axes)))
        slope[:, :3] = np.eye(3)
        slope[:, 3:6] = _turning(point - self.pose.root)
        moves = self._tree.moves[segment]
        slope[:, 6 + moves] = cross(self.axes[moves], point - self.anchors[moves]).T
        return slope

    def com_slope(self) -> np.ndarray:
        """(3, 6 + dofs) the same of the centre of mass."""
        slope = np.zeros((3, 6 + len(self.axes)))
        slope[:, :3] = np.eye(3)
        slope[:, 3:6] = _turning(self.com - self.pose.root)
        lever = self._tree.weighs.T @ self.centres - self._tree.total[:, None] * self.anchors
        slope[:, 6:] = cross(self.axes, lever).T
        return slope


def _turning(arm: np.ndarray) -> np.ndarray:
    """(3, 3) how the end of an arm (3,) moves with turns about the world's axes."""
    x, y, z = arm.tolist()
    return np.array([[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]])


class Tree:
    """What hangs on what. moves: {segment: degrees of freedom that move it}; about: (axis, degrees
    of freedom about it), for all axes; shares: (S,) of the mass; weighs: (S, dofs) the same where a
    degree of freedom moves the segment, else 0; total: (dofs,) share that it moves."""

    def __init__(self, character: Character) -> None:
        self.character = character
        self.shares = character.masses / character.masses.sum()
        chains: dict[int, list[int]] = {0: []}
        for joint in character.joints:
            own = range(joint.first, joint.first + len(joint.axes))
            chains[joint.segment] = [*chains[joint.parent], *own]
        self.moves = {segment: np.array(dofs, int) for segment, dofs in chains.items()}
        axes = np.array([axis for joint in character.joints for axis in joint.axes])
        self.about = [(axis, np.flatnonzero(axes == axis)) for axis in range(3)]
        self.weighs = np.zeros((len(SEGMENTS), character.dofs))
        for segment, dofs in chains.items():
            self.weighs[segment, dofs] = self.shares[segment]
        self.total = self.weighs.sum(0)

    def placed(self, pose: BodyPose) -> Placed:
        """The body in a pose."""
        return Placed(self, pose)


@dataclass(frozen=True)
class Goals:
    """What a pose should meet, as far as weights say.

    points: (segment, point (3,) of it [m], place (3,) [m], weights (3,)) of what is to be where.
    frame: of the pelvis, and its weight. root: place (3,) of the pelvis [m], and weights (3,).
    com: the same of the centre of mass. angles (dofs,) [rad], and weights (dofs,) for the rest.
    """

    points: Sequence[tuple[int, np.ndarray, np.ndarray, np.ndarray]]
    frame: tuple[np.ndarray, float]
    root: tuple[np.ndarray, np.ndarray]
    com: tuple[np.ndarray, np.ndarray]
    angles: tuple[np.ndarray, np.ndarray]


def _within(square: np.ndarray, right: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """(6 + n,) the change that solves, of joints no more than from `low` to `high` (n,): what would
    go beyond stays there, and the others make up for it."""
    change = np.zeros(len(right))
    free = np.ones(len(right), bool)
    low = np.concatenate([np.full(6, -np.inf), np.minimum(low, 0)])
    high = np.concatenate([np.full(6, np.inf), np.maximum(high, 0)])
    for _ in range(_ACTIVE):
        rest = right[free] - square[np.ix_(free, ~free)] @ change[~free]
        change[free] = np.linalg.solve(square[np.ix_(free, free)], rest)
        beyond = free & ((change < low) | (change > high))
        change = np.clip(change, low, high)
        if not beyond.any():
            break
        free &= ~beyond
    return change * (_MOST / max(_MOST, float(np.abs(change).max())))


def meet(tree: Tree, pose: BodyPose, goals: Goals, limits: np.ndarray, rounds: int) -> BodyPose:
    """The pose near `pose` that meets goals, after so many rounds. limits (dofs, 2) [rad]."""
    for _ in range(rounds):
        placed = tree.placed(pose)
        rows, errors = [], []
        for segment, local, place, weights in goals.points:
            point = placed.point(segment, local)
            rows.append(weights[:, None] * placed.slope(segment, point))
            errors.append(weights * (place - point))
        count = 6 + len(pose.angles)
        frame, weight = goals.frame
        turn = np.zeros((3, count))
        turn[:, 3:6] = weight * np.eye(3)
        rows.append(turn)
        errors.append(weight * np.array(vector_of_matrix(frame @ pose.frame.T)))
        place, weights = goals.root
        move = np.zeros((3, count))
        move[:, :3] = np.diag(weights)
        rows.append(move)
        errors.append(weights * (place - pose.root))
        place, weights = goals.com
        rows.append(weights[:, None] * placed.com_slope())
        errors.append(weights * (place - placed.com))
        matrix, error = np.concatenate(rows), np.concatenate(errors)
        square = matrix.T @ matrix
        right = matrix.T @ error
        angles, weights = goals.angles
        own = range(6, count)
        square[own, own] += weights**2
        right[6:] += weights**2 * (angles - pose.angles)
        square[range(count), range(count)] += _DAMPING
        change = _within(square, right, *(limits - pose.angles[:, None]).T)
        pose = BodyPose(
            pose.root + change[:3],
            matrix_from_quaternion(exponential(change[3:6])) @ pose.frame,
            pose.angles + change[6:],
        )
    return pose

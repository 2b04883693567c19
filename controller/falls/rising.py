# SPDX-License-Identifier: GPL-3.0-or-later
"""The poses through which a body gets up, from where it is: each stage's last, and those before.

Inverse kinematics of the whole body: what stays on the floor stays there, what is set down comes to
its place, and the centre of mass comes over what is to carry it.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..body.character import Character
from ..gains.gains import unmirrored
from ..geometry.rotations import (
    cross,
    exponential,
    matrix_from_quaternion,
    rotation_about,
    unit,
    vector_of_matrix,
)
from ..geometry.skeleton import SEGMENT_INDEX, SIDES
from .compliance import Arm
from .posing import BodyPose, Goals, Placed, Tree, meet
from .stages import FLAT, PELVIS, STAND, STANDING, Stage

#: Poses of a stage; rounds in which its last one is found, and the others. By trial, as all below.
KNOTS, _ROUNDS, _FEWER = 8, 25, 3
#: How much goals weigh: points [1/m], the pelvis' turn [1/rad], its place and its height [1/m], the
#: centre of mass [1/m], joints [1/rad]: pitch, what turns aside, and arms.
_POINT, _TURN, _PLACE, _HEIGHT, _COM = 6.0, 3.0, 0.3, 6.0, 5.0
_PITCH, _ASIDE, _ARMS = 0.3, 0.5, 0.1


class Knot(NamedTuple):
    """A pose on the way, and where its centre of mass is (3,) [m]."""

    pose: BodyPose
    com: np.ndarray


class Mark(NamedTuple):
    """A point (3,) of a segment [m], and how high it is [m] when that lies on the floor."""

    segment: int
    point: np.ndarray
    rest: float


def marks_of(character: Character) -> dict[str, Mark]:
    """{name and side: Mark} of all that stages speak of."""
    shapes = {shape.segment: shape for shape in character.shapes}
    marks = {}
    for side, foot in zip(SIDES, character.feet, strict=True):
        shape = shapes[f"forearm_{side}"]
        index = SEGMENT_INDEX[shape.segment]
        end = shape.position[2] + character.centres[index][2] - shape.size[1] / 2
        marks[f"hand_{side}"] = Mark(index, np.array([0.0, 0.0, end]), shape.size[0])
        shape = shapes[f"shin_{side}"]
        marks[f"knee_{side}"] = Mark(SEGMENT_INDEX[shape.segment], np.zeros(3), shape.size[0])
        index = SEGMENT_INDEX[f"foot_{side}"]
        marks[f"heel_{side}"] = Mark(index, np.array([-foot.heel, 0.0, -foot.depth]), 0.0)
        marks[f"ball_{side}"] = Mark(index, np.array([foot.ball, 0.0, -foot.depth]), 0.0)
        tip = np.array([foot.toe - foot.ball, 0.0, -foot.thickness])
        marks[f"tip_{side}"] = Mark(SEGMENT_INDEX[f"toe_{side}"], tip, 0.0)
    return marks


class Rising:
    """The way of one body.

    yaw [rad]: to where it gets up, along x at 0; from stage to stage it goes by how the body is.
    floor: height of what it lies on [m].
    """

    def __init__(
        self,
        tree: Tree,
        arms: Sequence[Arm],
        standing: BodyPose,
        floor: float,
        lead: str,
        yaw: float,
    ) -> None:
        """tree: of the body, with its limits; arms: left and right; standing: how it will stand, on
        its character's ground, wherever that is; floor: height of what it lies on [m]; lead: the
        side that leads."""
        self._tree, self._arms, self.floor = tree, arms, floor
        self._character = tree.character
        self._limits = tree.character.limits
        self._sides = {"L": lead, "T": "r" if lead == "l" else "l"}
        self._marks = marks_of(tree.character)
        self._stand = standing
        self._tall = float(standing.root[2]) - tree.character.ground
        self.yaw = yaw
        #: How the standing pose is turned (3, 3) and moved (3,) to where it will stand.
        self.turn, self.move = np.eye(3), np.zeros(3)
        names = tree.character.dof_names
        aside = [
            _ASIDE if axis != "pitch" and joint != "neck" else _PITCH
            for joint, axis in (unmirrored(name).split("_") for name in names)
        ]
        arms_too = [name.startswith(("shoulder", "elbow")) for name in names]
        self._weights = np.where(arms_too, _ARMS, aside)

    def mark(self, name: str) -> Mark:
        """The Mark of a point of a stage."""
        point, _, side = name.partition("_")
        return self._marks[f"{point}_{self._sides[side]}"]

    def side(self, name: str) -> str:
        """The side of a point or joint of a stage."""
        return self._sides[name[-1]]

    def steps(self, stage: Stage, _share: float, lands: bool) -> str:
        """Sides of the feet that are in the air, once a share of a stage is over. lands: whether
        what goes through the air is down again."""
        return "" if lands or not stage.lifts else self.side(next(iter(stage.lifts)))

    def begin(self, stage: Stage, pose: BodyPose, last: Knot) -> tuple[list[Knot], np.ndarray]:
        """The KNOTS + 1 poses of a stage of a body in a pose, from the `last` that it was to have
        on; and where its moving points are to come (n, 3) [m], in the order of stage.places."""
        here = self._tree.placed(pose)
        before = self._tree.placed(self._caught_up(stage, here, last.pose))
        standing = self._place_standing(here)
        start, end = self._ends(stage, here, standing)
        final = stage is STAND
        if final:
            root, frame, angles = standing.pose
        else:
            angles = self._wanted_angles(stage, before.pose.angles)
            frame = self._frame(stage)
            high = self.floor + stage.height * self._tall
            root = np.array([*before.pose.root[:2], high])
        com = np.zeros(3)
        if stage.over:
            places = {name: end.get(name, self._at(here, name)) for name in stage.over}
            weights = list(stage.over.values())
            com = np.average([places[name] for name in stage.over], axis=0, weights=weights)
        angles = np.clip(angles, *self._limits.T)

        def goals(share: float, frame: np.ndarray, angles: np.ndarray, moving: bool) -> Goals:
            points = []
            for name, place in end.items():
                mark, weights = self.mark(name), np.full(3, _POINT)
                place = start[name] + share * (place - start[name])
                if moving and name in stage.lifts:
                    rise = stage.lifts[name] * self._character.height
                    place = place + [0.0, 0.0, rise * math.sin(math.pi * share)]
                    weights[:2] = 0.0
                points.append((mark.segment, mark.point, place, weights))
            way = before.pose.root + share * (root - before.pose.root)
            near = _HEIGHT if final else 0.0 if stage.over else _PLACE
            over = before.com + share * (com - before.com)
            heavy = _COM if stage.over else 0.0
            return Goals(
                points,
                (frame, _TURN),
                (way, np.array([near, near, _HEIGHT])),
                (over, np.array([heavy, heavy, 0.0])),
                (angles, self._weights),
            )

        shift = (com - before.com) * [1, 1, 0] if stage.over else np.zeros(3)
        key = BodyPose(root + shift, frame, angles)
        key = meet(self._tree, key, goals(1.0, frame, angles, False), self._limits, _ROUNDS)
        knots = [Knot(before.pose, before.com)]
        via = self._pitches(stage.via)
        for number in range(1, KNOTS):
            share = number / KNOTS
            share = share * share * (3 - 2 * share)
            place, frame, angles = self.between(before.pose, key, share, knots[-1].pose.angles)
            bent = np.clip(angles + math.sin(math.pi * share) * via, *self._limits.T)
            wanted = goals(share, frame, bent, True)
            pose = meet(self._tree, BodyPose(place, frame, bent), wanted, self._limits, _FEWER)
            knots.append(Knot(pose, self._tree.placed(pose).com))
        for arm in self._arms:  # the same pose, in angles as near as can be
            near = knots[-1].pose.angles[arm.dofs]
            key.angles[arm.dofs] = arm.angles(arm.frame(key.angles), near)
        knots.append(Knot(key, self._tree.placed(key).com))
        return knots, np.array([end[name] for name in stage.places]).reshape(-1, 3)

    def between(self, before: BodyPose, key: BodyPose, share: float, near: np.ndarray) -> BodyPose:
        """A pose between two, arms on their shortest ways, in angles as near to others (dofs,)
        [rad] as can be."""
        turn = np.array(vector_of_matrix(key.frame @ before.frame.T))
        frame = matrix_from_quaternion(exponential(share * turn)) @ before.frame
        angles = before.angles + share * (key.angles - before.angles)
        for arm in self._arms:
            start = arm.frame(before.angles)
            swing = np.array(vector_of_matrix(arm.frame(key.angles) @ start.T))
            turned = matrix_from_quaternion(exponential(share * swing)) @ start
            angles[arm.dofs] = arm.angles(turned, near[arm.dofs])
        return BodyPose(before.root + share * (key.root - before.root), frame, angles)

    def missed(self, stage: Stage, pose: BodyPose, places: np.ndarray) -> float:
        """How far [m] the points that a stage moves through the air are from their places."""
        placed = self._tree.placed(pose)
        found = [
            float(np.linalg.norm(self._at(placed, name) - place))
            for name, place in zip(stage.places, places, strict=True)
            if name in stage.lifts
        ]
        return max(found, default=0.0)

    def _at(self, placed: Placed, name: str) -> np.ndarray:
        mark = self.mark(name)
        return placed.point(mark.segment, mark.point)

    def _caught_up(self, stage: Stage, here: Placed, last: BodyPose) -> BodyPose:
        """The last pose, where the body is, and turned as it is."""
        if not stage.side:
            was, now = (heading(frame) for frame in (last.frame, here.pose.frame))
            if stage.over or stage is STAND:
                self.yaw = now
                last = last._replace(frame=rotation_about(2, now - was) @ last.frame)
        shift = (here.com - self._tree.placed(last).com) * [1, 1, 0]
        return last._replace(root=last.root + shift)

    def _place_standing(self, here: Placed) -> Placed:
        """The standing pose where the leading foot is."""
        pose = self._stand
        self.turn = rotation_about(2, self.yaw - math.atan2(pose.frame[1, 0], pose.frame[0, 0]))
        turned = BodyPose(self.turn @ pose.root, self.turn @ pose.frame, pose.angles)
        placed = self._tree.placed(turned)
        apart = [self._at(here, name) - self._at(placed, name) for name in ("heel_L", "ball_L")]
        rise = self.floor - self._character.ground
        self.move = np.array([*np.mean(apart, axis=0)[:2].tolist(), rise])
        return self._tree.placed(turned._replace(root=turned.root + self.move))

    def _ends(
        self, stage: Stage, here: Placed, standing: Placed
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Where points are (3,) [m] that stay or move, and where they are to come."""
        turn, tall = rotation_about(2, self.yaw), self._character.height
        foot, side = self._character.feet[0], 1.0 if self._sides["L"] == "l" else -1.0
        lengths = {"ball": foot.heel + foot.ball, "tip": foot.heel + foot.toe}
        start = {name: self._at(here, name) for name in (*stage.keeps, *stage.places)}
        end = {name: start[name] for name in stage.keeps}
        for name, (origin, ahead, aside) in stage.places.items():
            if origin == STANDING:
                end[name] = self._at(standing, name)
                continue
            if origin == FLAT:
                point, _, which = name.partition("_")
                base, way = end[f"heel_{which}"], [lengths[point], 0.0, 0.0]
            else:
                at = here.positions[0] if origin == PELVIS else self._at(here, origin)
                base = end.get(origin, at)
                way = [ahead * tall, side * aside * tall, 0.0]
            end[name] = base + turn @ way
        for name, place in end.items():
            end[name] = np.array([*place[:2], self.floor + self.mark(name).rest])
        return start, end

    def _frame(self, stage: Stage) -> np.ndarray:
        """(3, 3) of the pelvis."""
        turn = rotation_about(2, self.yaw)
        if not stage.side:
            return turn @ rotation_about(1, math.radians(stage.pitch))
        down = np.array([0.0, 0.0, 1.0 if self._sides["L"] == "l" else -1.0])
        return np.stack([cross(down, turn[:, 0]), down, turn[:, 0]], 1)

    def _pitches(self, degrees: dict[str, float]) -> np.ndarray:
        """(dofs,) [rad] of joints, 0 elsewhere."""
        sides = {side: which for which, side in self._sides.items()}
        found = []
        for name in self._character.dof_names:
            joint, *side, axis = name.split("_")
            value = degrees.get(joint, 0.0)
            if side:
                value = degrees.get(f"{joint}_{sides[side[0]]}", value)
            found.append(math.radians(value) if axis == "pitch" else 0.0)
        return np.array(found)

    def _wanted_angles(self, stage: Stage, now: np.ndarray) -> np.ndarray:
        angles = self._pitches(stage.pose)
        for arm, sign in zip(self._arms, (1, -1), strict=True):
            along, bent = (np.array(way) * [1, sign, 1] for way in stage.arms)
            angles[arm.dofs] = _pointing(arm, along, bent, now[arm.dofs])
        return angles


def heading(frame: np.ndarray) -> float:
    """[rad] to where a pelvis faces that is upright, or to where the head of one is that lies on
    its front."""
    way = frame[:, 0] + frame[:, 2]
    return math.atan2(way[1], way[0])


def _pointing(arm: Arm, along: np.ndarray, bent: np.ndarray, now: np.ndarray) -> np.ndarray:
    """(3,) angles [rad] of a shoulder with which the upper arm points along a direction (3,) of the
    trunk, and the elbow bends to another: those nearest to `now` (3,)."""
    up = -unit(along)
    ahead = unit(bent - (bent @ up) * up)
    return arm.angles(np.stack([ahead, cross(up, ahead), up], 1), now)

# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller of a body that gets up, until it stands.

What should act on the body as a whole follows from where it is to be (`rising`): a force on its
centre of mass and a torque about that. Feet, shins and forearms press the floor so (`supporting`),
as far as they touch it; whatever is missing is help from outside, on the pelvis, and is recorded.
"""

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ..body.character import Character
from ..body.momentum import GRAVITY
from ..body.state import State
from ..geometry.rotations import (
    cross,
    exponential,
    matrix_from_quaternion,
    shortened,
    vector_of_matrix,
)
from ..geometry.skeleton import FEET, SEGMENT_INDEX, SIDES, TOES
from .acted import Acted, ActedRising, fitting
from .mover import Mover, MovingWorld
from .posing import BodyPose, Placed, Tree
from .rising import Knot, Rising
from .stages import FOOT, FOREARM, FROM_BACK, FROM_FRONT, SHIN, STAND, STEP_UP, Stage
from .supporting import presses

# By trial on fifty bodies that lay.
#: How fast [rad/s] the centre of mass goes where it should be, along and up, and the body turns; by
#: how much speed decays [1/s] that has no goal.
_ALONG, _UP, _TURNING, _CALMING = 6.3, 7.7, 8.9, 4.0
#: Largest force along the floor and up, as shares of the weight; largest torque [N m] of an adult.
_MOST_ALONG, _MOST_UP, _MOST_TORQUE = 0.4, 1.6, 300.0
#: Largest help: share of the weight, and torque [N m] of an adult.
MOST_HELP, _MOST_HELPING = 0.5, 120.0
#: By how much more one is helped who gets up as an animator has it, which may be beyond a body.
_AS_ACTED = 2.0
#: What lags behind by more than this [m], [rad] is helped besides: [1/s^2], [N m/rad] of an adult.
_LAG, _LAG_TURN, _LAGGING, _LAGGING_TURN = 0.06, 0.3, 30.0, 200.0
#: A foot in the air bears after this share of its stage.
_LANDS = 0.8
#: Of what rests of a body that lies, so much is taken anew each time: contacts tremble.
_TAKEN = 0.3
#: A stage goes on so long [s] while the body is not where it should be: turned [rad], high [m].
_WAITING, _TILTED, _LOWER = 0.1, math.radians(25), 0.06
#: A foot that has not come within this [m, adult] of its place is set down again, so many times,
#: in this share of the time.
_MISSED, _AGAIN, _QUICKER = 0.32, 1, 0.6
#: And one that steps up to where the body is to stand firmly.
_BESIDE, _UNTIL_BESIDE = 0.1, 3
#: [s] in which the help ends once the body stands: turned [rad] and moved [m] less than this from
#: where it should be, no more [m/s] faster or slower; else it comes back in that time. And after
#: which it has failed to.
_LETTING_GO, _STEADYING = 0.38, 1.5
_UPRIGHT, _IN_PLACE, _STEADY = math.radians(15), 0.06, 0.3
#: Its capture point is no farther [m] than this from its place, where it is not to step.
_FIRM = 0.05
#: A body below this share of the height that it should have has fallen; looked at from when it has
#: no hands on the floor.
_FALLEN = 0.65
#: Less than this [m], the floor rises or sinks where it is level, so far [m] around; of an adult.
_LEVEL, _AROUND = 0.03, 0.6
#: A face that looks up by more than this (the sine) lies on its back or side.
_FACE_DOWN = -0.3
#: Stature [m] for which lengths are.
_ADULT = 1.8

_BEARING = {
    FOREARM: {SEGMENT_INDEX[f"forearm_{side}"] for side in SIDES},
    SHIN: {SEGMENT_INDEX[f"shin_{side}"] for side in SIDES},
    FOOT: {*FEET, *TOES},
}
_LEGS = {
    side: {SEGMENT_INDEX[f"{name}_{side}"] for name in ("shin", "foot", "toe")} for side in SIDES
}


class Touching(Protocol):
    """A point of contact, as simulation.world.Touch has it."""

    @property
    def segment(self) -> int: ...

    @property
    def place(self) -> tuple[float, float, float]: ...

    @property
    def force(self) -> tuple[float, ...]: ...

    @property
    def depth(self) -> float: ...


class Floor(MovingWorld, Protocol):
    """What is asked of a world besides."""

    def touches(self) -> Sequence[Touching]:
        """All points at which the body touches the floor or a collider."""


def is_level(world: Floor, character: Character) -> bool:
    """Whether what a body lies on is level enough to get up from."""
    x, y, _ = world.state(False).root.tolist()
    around = _AROUND * character.height / _ADULT
    turns = [math.pi / 4 * i for i in range(8)]
    heights = [world.height_at(x, y)]
    heights += [world.height_at(x + around * math.cos(t), y + around * math.sin(t)) for t in turns]
    return max(heights) - min(heights) < _LEVEL * character.height / _ADULT


class GetUp(Mover[Floor]):
    """One get-up. done: it stands by itself; failed: it never will."""

    def __init__(
        self,
        character: Character,
        world: Floor,
        rate: float,
        standing: BodyPose,
        firmly: bool = False,
        acts: Sequence[Acted] = (),
    ) -> None:
        """world: with the body as it lies; standing: how it will stand, on the character's ground,
        wherever that is. firmly: it is done when it stands so still that it need not step. acts:
        the animator's own get-ups, of which it takes the one that fits, if any does."""
        super().__init__(character, world, rate)
        self._firmly = firmly
        pose = self._pose(world.state(False))
        self._tree = Tree(character)
        self._compliance.tone[:] = 1.0
        placed, arms = self._tree.placed(pose), self._compliance.arms
        floor = world.height_at(*pose.root[:2].tolist())
        self._last = Knot(pose, placed.com)
        #: The animator's get-up that it performs, None where it gets up in stages.
        self.act: Acted | None = None
        self._stages: Sequence[Stage]
        self._rising: Rising
        fit = fitting(acts, character, placed, floor)
        if fit is None:
            self._stages, lead, yaw = _chosen(character, pose)
            self._rising = Rising(self._tree, arms, standing, floor, lead, yaw)
        else:
            self.act = fit[0]
            self._rising = ActedRising(self._tree, arms, standing, floor, fit, placed)
            self._stages = self._rising.stages
        self._number, self._again, self._began, self._seconds = -1, 0, 0.0, 0.0
        self._stage = self._stages[0]
        self._knots: list[Knot] = []
        self._places = np.zeros((0, 3))
        self._pressed = np.zeros(6 + character.dofs)
        self._leaning = np.zeros(6)
        self._assist = 1.0
        self.done = self.failed = False

    @property
    def placing(self) -> tuple[np.ndarray, np.ndarray]:
        """How the standing pose is turned (3, 3) and moved (3,) [m] to where the body stands."""
        return self._rising.turn, self._rising.move

    def friction(self) -> tuple[Sequence[int], Sequence[float], Sequence[float]]:
        """What World.drive needs in that step: joints are free."""
        return self._dofs, self._zeros, self._zeros

    def _outside(self, state: State) -> np.ndarray:
        pressed, back = self._pressed.copy(), state.frame.T
        pressed[:3] += back @ self.help[3:]
        pressed[3:6] += back @ self.help[:3]
        return pressed

    def _pose(self, state: State) -> BodyPose:
        root = state.root - state.frame @ self._character.centres[0]
        return BodyPose(root, state.frame.copy(), state.angles.copy())

    def _decide(self, time: float, state: State) -> None:
        placed = self._tree.placed(self._pose(state))
        if self._number < 0 or (time >= self._ends and self._may_go_on(time, state, placed)):
            self._go_on(time, placed.pose)
        rates, moves, turns = self._follow(time)
        compliance = self._compliance
        compliance.target, compliance.target_speeds = self._last.pose.angles, rates
        compliance.rest = state.angles
        compliance.tone[:] = self.strength
        velocity = state.frame @ (self._inertia[3:6] @ state.speeds) / self._character.mass
        self._press(time, state, placed, (velocity, moves, turns))
        self._judge(time, state, placed, velocity, moves)

    @property
    def _ends(self) -> float:
        return self._began + self._seconds

    def _may_go_on(self, time: float, state: State, placed: Placed) -> bool:
        """Whether the stage is over, and another follows."""
        if self._stage is STAND:
            return False
        turned = np.linalg.norm(vector_of_matrix(self._last.pose.frame @ state.frame.T))
        low = abs(self._last.com[2] - placed.com[2])
        return bool(time >= self._ends + _WAITING or (turned < _TILTED and low < _LOWER))

    def _go_on(self, time: float, pose: BodyPose) -> None:
        """Begin the next stage, or this one again where a foot is not where it should be."""
        missed = self._number >= 0 and self._rising.missed(self._stage, pose, self._places)
        most, times = _MISSED, _AGAIN
        if self._firmly and self._stage is STEP_UP:
            most, times = _BESIDE, _UNTIL_BESIDE
        if missed > most * self._character.height / _ADULT and self._again < times:
            self._again += 1
        else:
            self._number, self._again = self._number + 1, 0
        self._stage = self._stages[self._number]
        self._knots, self._places = self._rising.begin(self._stage, pose, self._last)
        self._began = time
        self._seconds = self._stage.seconds * (_QUICKER if self._again else 1.0)

    def _follow(self, time: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Take the pose of now as the last one; how fast its joints change (dofs,) [rad/s], its
        centre of mass (3,) [m/s] and the turn of its pelvis (3,) [rad/s]."""
        share = min(1.0, (time - self._began) / self._seconds)
        count = len(self._knots) - 1
        low = min(int(share * count), count - 1)
        part, rate = share * count - low, count / self._seconds
        (a, com), (b, ahead) = self._knots[low], self._knots[low + 1]
        turn = np.array(vector_of_matrix(b.frame @ a.frame.T))
        frame = matrix_from_quaternion(exponential(part * turn)) @ a.frame
        bend, move = b.angles - a.angles, ahead - com
        root = a.root + part * (b.root - a.root)
        self._last = Knot(BodyPose(root, frame, a.angles + part * bend), com + part * move)
        rate *= share < 1
        return rate * bend, rate * move, rate * turn

    def _wanted(
        self, state: State, placed: Placed, speeds: tuple[np.ndarray, np.ndarray, np.ndarray]
    ) -> np.ndarray:
        """(6,) force [N] that should act on the centre of mass, and torque [N m] about it. speeds:
        of that, and what it and the pelvis' turn should have."""
        velocity, moves, turns = speeds
        mass, frame, stage = self._character.mass, state.frame, self._stage
        pull = np.array([_ALONG, _ALONG, _UP])
        change = pull**2 * (self._last.com - placed.com) + 2 * pull * (moves - velocity)
        if not stage.over and stage is not STAND:
            change[:2] = -_CALMING * velocity[:2]
        force = mass * (change + [0.0, 0.0, GRAVITY])
        weight = mass * GRAVITY
        force[:2] = np.clip(force[:2], -_MOST_ALONG * weight, _MOST_ALONG * weight)
        force[2] = min(max(force[2], 0.0), _MOST_UP * weight)
        arm = frame.T @ (placed.com - state.root)
        moved = mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
        whole = frame @ (self._inertia[:3, :3] - moved) @ frame.T
        turn = np.array(vector_of_matrix(self._last.pose.frame @ frame.T))
        spin = frame @ state.speeds[:3]
        torque = whole @ (_TURNING**2 * turn + 2 * _TURNING * (turns - spin))
        return np.concatenate([force, shortened(torque, _MOST_TORQUE * self._compliance.size)])

    def _behind(self, state: State, placed: Placed) -> np.ndarray:
        """(6,) force [N] and torque [N m] for what lags behind in spite of all that should press:
        joints may be at their limits of strength."""
        mass = self._character.mass
        away = self._last.com - placed.com
        if not self._stage.over and self._stage is not STAND:
            away[:2] = 0.0
        turn = np.array(vector_of_matrix(self._last.pose.frame @ state.frame.T))
        force = mass * _LAGGING * _beyond(away, _LAG)
        torque = self._compliance.size * _LAGGING_TURN * _beyond(turn, _LAG_TURN)
        return np.concatenate([force, torque])

    def _press(
        self,
        time: float,
        state: State,
        placed: Placed,
        speeds: tuple[np.ndarray, np.ndarray, np.ndarray],
    ) -> None:
        """Have the floor pressed, and be helped."""
        stage, com = self._stage, placed.com
        bearing = set().union(*(_BEARING[name] for name in stage.bears))
        lands = time >= self._began + _LANDS * self._seconds
        share = min(1.0, (time - self._began) / self._seconds)
        for side in self._rising.steps(stage, share, lands):
            bearing -= _LEGS[side]
        points, segments, leaning = [], [], np.zeros(6)
        depths: dict[int, float] = {}
        for touch in self._world.touches():
            depths[touch.segment] = max(depths.get(touch.segment, touch.depth), touch.depth)
            if touch.segment in bearing:
                points.append(touch.place)
                segments.append(touch.segment)
            elif touch.segment not in _BEARING[FOOT]:
                leaning[:3] += touch.force
                leaning[3:] += cross(touch.place - com, np.array(touch.force))
        self.touched.see(time, depths)
        self._leaning += _TAKEN * (leaning - self._leaning)
        wrench = self._wanted(state, placed, speeds)
        places = np.array(points).reshape(-1, 3)
        asked = wrench if stage.rises else wrench - self._leaning
        forces = presses(places, com, asked)
        given = np.concatenate([forces.sum(0), cross(places - com, forces).sum(0)])
        missing = wrench - given - self._leaning
        missing += self._behind(state, placed)
        missing[2] = max(missing[2], 0.0)
        weight = self._character.mass * GRAVITY
        more = 1.0 if self.act is None else _AS_ACTED
        force = shortened(missing[:3], more * self._assist * MOST_HELP * weight)
        torque = missing[3:] - cross(state.root - com, force)
        most = more * self._assist * _MOST_HELPING * self._compliance.size
        self.help = np.concatenate([force, shortened(torque, most)])
        self._pressed[:] = 0.0
        back = state.frame.T
        for place, segment, force in zip(places, segments, forces, strict=True):
            self._pressed[6:] += placed.slope(segment, place)[:, 6:].T @ force
            self._pressed[:3] += back @ cross(place - state.root, force)
            self._pressed[3:6] += back @ force

    def _judge(
        self,
        time: float,
        state: State,
        placed: Placed,
        velocity: np.ndarray,
        moves: np.ndarray,
    ) -> None:
        """See whether it stands, or has failed."""
        stage = self._stage
        low = placed.com[2] - self._rising.floor
        if FOREARM not in stage.bears:
            self.failed = bool(low < _FALLEN * (self._last.com[2] - self._rising.floor))
        if stage is not STAND:
            return
        turned = np.linalg.norm(vector_of_matrix(self._last.pose.frame @ state.frame.T))
        off = np.linalg.norm((self._last.com - placed.com)[:2])
        error = np.linalg.norm(velocity - moves)
        balanced = turned < _UPRIGHT and off < _IN_PLACE and error < _STEADY
        if self._firmly:
            capture = placed.com - self._last.com + math.sqrt(low / GRAVITY) * velocity
            balanced &= np.linalg.norm(capture[:2]) < _FIRM
        less = self._interval / _LETTING_GO * (1 if balanced else -1)
        self._assist = min(max(self._assist - less, 0.0), 1.0)
        self.done = bool(balanced and time >= self._ends and self._assist == 0)
        self.failed |= not self.done and time > self._ends + _STEADYING


def _chosen(character: Character, pose: BodyPose) -> tuple[tuple[Stage, ...], str, float]:
    """The stages in which a body gets up that lies in a pose, the side that leads, and the yaw
    [rad] to where it gets up: that of its head."""
    front, left, up = pose.frame.T
    ahead = up if math.hypot(up[0], up[1]) > -_FACE_DOWN else front
    yaw = math.atan2(ahead[1], ahead[0])
    if front[2] > _FACE_DOWN:
        # Over the side on which it lies: the other leg is free.
        return FROM_BACK, "r" if left[2] < 0 else "l", yaw
    bends = [pose.angles[character.dof_names.index(f"knee_{side}_pitch")].item() for side in SIDES]
    return FROM_FRONT, "l" if bends[0] > bends[1] else "r", yaw


def _beyond(vector: np.ndarray, least: float) -> np.ndarray:
    """What of a vector is longer than a length."""
    long = float(np.linalg.norm(vector))
    return vector * (max(0.0, long - least) / max(long, 1e-12))

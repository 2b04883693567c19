# SPDX-License-Identifier: GPL-3.0-or-later
"""How a body falls: what its muscles still do.

To brace is to do what people do who fall (after Ha, Ye, Liu, "Falling and Landing Motion Control
for Character Animation", SIGGRAPH Asia 2012, and Zordan, Majkowska, Chiu, Fast, "Dynamic Response
for Motion Capture Animation", SIGGRAPH 2005): hands go where the trunk will land, elbows and legs
give and brake, chin and trunk curl away from the floor. All figures below are by trial on falls.
"""

import math
from itertools import chain
from typing import NamedTuple, Protocol

import numpy as np

from ..body.character import Character
from ..body.momentum import GRAVITY
from ..gains.gains import unmirrored
from ..geometry.rotations import cross, unit
from ..geometry.skeleton import SEGMENT_INDEX, SIDES
from .compliance import ARM_REACH, Arm, Compliance

#: That the simulation ends there.
STOP = "stop"
#: And what whoever is knocked out does then all the same.
LIMP = "limp"
#: What a body does when it falls: {value: (name, words)}.
WHEN_IT_FALLS = {
    STOP: ("Stop", "The simulation ends where the body loses its balance"),
    LIMP: ("Limp", "It goes down like somebody who has lost consciousness, and lies"),
    "brace": ("Brace", "Hands reach for the floor, chin and trunk curl, legs brake; then it lies"),
    "roll": ("Roll", "If it has the speed, it rolls over shoulders and back; else it braces"),
    "stiff": ("Stiff", "It holds the pose in which it loses its balance, down to the floor"),
}
#: That it stands still once it has got up, or goes on: {value: (name, words)}.
STAND, GO_ON = "stand", "go_on"
ONCE_UP = {
    STAND: ("Stand", "It stands still; a walk that is led by commands is walked on"),
    GO_ON: ("Go On", "It goes on with the animation, from where it lost its balance"),
}

#: Stature [m] for which lengths are.
_ADULT = 1.8
#: Share of gravity with which a body that pivots on its feet comes down.
_COMING_DOWN = 0.75
#: The neck counts as landed at this height [m]; looked ahead at most so far [s].
_LANDED, _AHEAD = 0.15, 0.6
#: Share of the neck's speed [1/(m/s)] in the direction of a fall, beside the trunk's lean.
_BY_SPEED = 0.3
#: Beyond this a fall is one backward: the cosine to the trunk's front.
_BACKWARD = -0.3
#: Of where hands go [m]: apart and ahead of where the neck lands; of falls backward, apart from and
#: behind the shoulder.
_APART, _AHEAD_OF, _APART_BACK, _BEHIND = 0.22, 0.12, 0.18, 0.25
#: Share of its length to which an arm stretches and bends, and of its reach that it uses [rad].
_STRETCHED, _BENT, _REACHED = 0.93, 0.45, ARM_REACH - math.radians(7)
#: Directions in the trunk, to the left, into which elbows point: forward, and in falls backward.
_ELBOW, _ELBOW_BACK = np.array([-0.25, 1.0, -0.4]), np.array([-0.8, 0.6, 0.0])
#: How far [rad] a pose stays inside of what joints can.
_INSIDE = 0.02
#: Fastest change of a pose [rad/s], and time until muscles have their tone [s].
_FASTEST, _RISING = 14.0, 0.08
#: [s] for which legs brake after the hips have landed, and in which they let go.
_HOLDING, _LETTING_GO = 0.15, 0.5

#: Pose [degrees] of falls (backward, forward, sideways), by degree of freedom; what tips does so
#: away from the side to which it falls, and what is straight is so in all.
_CURL = {"neck_pitch": (45, -35, 15), "spine_pitch": (45, 15, 25)}
_LEGS = {"hip_pitch": (-85, -25, -50), "knee_pitch": (95, 60, 60), "ankle_pitch": (0, 0, 0)}
_TIPS = {"neck_roll": 35, "spine_roll": 20}
_STRAIGHT = ("neck_twist", "spine_twist")
#: Tone, and braking [N m s/rad], by joint: before and, of arms, after the hand has touched.
_TONES = {"neck": 1.0, "spine": 0.35, "hip": 0.2, "knee": 0.2, "ankle": 0.1}
_BRAKES = {"hip_pitch": 25.0, "knee_pitch": 25.0, "ankle_pitch": 10.0}
_ARM_TONE, _LANDED_ARM_TONE, _LANDED_ARM_BRAKE = 0.6, 0.35, 10.0
_LOOSE_BRAKE = 3.0

#: Who rolls has so much speed [m/s] of the pelvis along the floor, and so long [s] before the neck
#: lands, of an adult. Falls forward are those beyond this cosine to the trunk's front.
_ROLLING_SPEED, _IN_TIME, _DIVING = 1.0, 0.38, 0.3
#: Poses [degrees] of who rolls: always, of legs that dive, and of a ball.
_ROUND = {"spine_pitch": 60, "neck_pitch": 45}
_DIVE = {"hip_pitch": -60, "knee_pitch": 20, "ankle_pitch": 30}
_BALL = {"hip_pitch": -110, "knee_pitch": 120}
#: And what brings the left shoulder down first; with the right one, mirrored.
_OVER_A_SHOULDER = {"neck_roll": 25, "neck_twist": -30, "spine_twist": -35}
_CURLED = ("spine", "neck")
_ROLLING_TONES = {"spine": 0.6, "neck": 1.0, "hip": 0.4, "knee": 0.4, "ankle": 0.4}
_DIVING_TONE = 0.8
#: Of hands that take the weight, from the shoulder [m]: ahead and inward; their tone and braking.
_DIVE_AHEAD, _DIVE_INWARD, _DIVING_ARM_TONE, _DIVING_ARM_BRAKE = 0.55, 0.1, 1.3, 20.0
#: From the left shoulder to where hands are else, in the trunk [m]: ahead of it, not in its fold;
#: their tone.
_HUG, _HUGGING_ARM_TONE = np.array([0.38, 0.05, -0.1]), 0.5
#: A ball that turns slower than this [rad/s] from so long after its first touch on [s] has rolled,
#: as has one after so long.
_STOPPED, _SOONEST, _LONGEST = 1.5, 0.25, 1.2
#: Rolled over are these.
_ROLLED_OVER = ("pelvis", "trunk", "head", "upper_arm_l", "upper_arm_r")


class Pose(NamedTuple):
    """A body at one moment: joint positions (S, 3) [m] and frames (S, 3, 3) of its segments, joint
    angles (dofs,) [rad], and the speed (S, 3) [m/s] of the positions."""

    positions: np.ndarray
    frames: np.ndarray
    angles: np.ndarray
    speeds: np.ndarray


class Surroundings(Protocol):
    """What is asked of a world, as simulation.World has it."""

    def height_at(self, x: float, y: float, /) -> float:
        """Of the floor, or of what lies on it [m]."""


class Limp:
    """Does nothing.

    target, tone, braking (dofs,): what it would have of a Compliance.
    """

    def __init__(
        self,
        character: Character,
        compliance: Compliance,
        limits: np.ndarray,
        world: Surroundings,
        period: float,
    ) -> None:
        """compliance: of the body as it begins to fall; limits (dofs, 2) [rad] of the joints;
        period [s] of `update`."""
        self.target = compliance.target.copy()
        self.tone, self.braking = np.zeros((2, len(self.target)))

    def update(self, time: float, pose: Pose, touched: set[int]) -> None:
        """Set tone and target at a time [s] after the loss of balance. touched: segments that have
        touched something."""


class Stiff(Limp):
    """Holds the pose in which it lost its balance."""

    def update(self, time: float, pose: Pose, touched: set[int]) -> None:
        self.tone[:] = 1.0


class Brace(Limp):
    """Catches itself."""

    def __init__(
        self,
        character: Character,
        compliance: Compliance,
        limits: np.ndarray,
        world: Surroundings,
        period: float,
    ) -> None:
        super().__init__(character, compliance, limits, world, period)
        self._world, self._period = world, period
        self._low, self._high = limits.T + [[_INSIDE], [-_INSIDE]]
        self._size = character.height / _ADULT
        names = character.dof_names
        self._dofs = {
            name: [i for i, dof in enumerate(names) if unmirrored(dof) == name]
            for name in map(unmirrored, names)
        }
        self._joints = {
            joint: [i for i, dof in enumerate(names) if dof.partition("_")[0] == joint]
            for joint in _TONES
        }
        self._tones, self._brakes, self._tips = np.zeros((3, len(names)))
        for joint, dofs in self._joints.items():
            self._tones[dofs] = _TONES[joint]
        for name, brake in _BRAKES.items():
            self._brakes[self._dofs[name]] = brake
        self._curls = np.zeros((len(names), 3))
        for name, degrees in (_CURL | _LEGS).items():
            self._curls[self._dofs[name]] = np.radians(degrees)
        for name, tip in _TIPS.items():
            self._tips[self._dofs[name]] = math.radians(tip)
        posed = [self._dofs[name] for name in (*_CURL, *_LEGS, *_TIPS, *_STRAIGHT)]
        self._posed = sorted(chain.from_iterable(posed))
        self._legs = [i for joint in ("hip", "knee", "ankle") for i in self._joints[joint]]
        shapes = {shape.segment: shape for shape in character.shapes}
        self._arms = []
        for number, side in enumerate(SIDES):
            lower = SEGMENT_INDEX[f"forearm_{side}"]
            joints = {joint.segment: joint for joint in character.joints}
            reach = shapes[f"forearm_{side}"].position[2] + character.centres[lower][2]
            self._arms.append(
                _BracingArm(
                    compliance.arms[number],
                    1.0 if side == "l" else -1.0,
                    (SEGMENT_INDEX[f"upper_arm_{side}"], lower),
                    joints[lower].first,
                    (-float(joints[lower].offset[2]), 2 * abs(float(reach))),
                )
            )
        landing = ("pelvis", "trunk", "thigh_l", "thigh_r")
        self._landing = {SEGMENT_INDEX[name] for name in landing}
        self._landed: float | None = None
        self._wanted = self.target.copy()

    def update(self, time: float, pose: Pose, touched: set[int]) -> None:
        wanted, tone, braking = self._wish(time, pose, touched)
        np.clip(wanted, self._low, self._high, out=wanted)
        most = _FASTEST * self._period
        self.target += np.clip(wanted - self.target, -most, most)
        share = min(1.0, time / _RISING)
        self.tone, self.braking = share * tone, share * braking

    def _wish(
        self, time: float, pose: Pose, touched: set[int]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The pose that it wants at last, and the tone and braking for it, (dofs,) each."""
        wanted, tone, braking = self._wanted, self._tones.copy(), self._brakes.copy()
        neck = SEGMENT_INDEX["head"]  # where the head hangs
        trunk = pose.frames[SEGMENT_INDEX["trunk"]]
        toward, ahead, aside = self._direction(pose)
        shares = max(0.0, -ahead), max(0.0, ahead), 1 - abs(ahead)
        wanted[self._posed] = (self._curls @ shares + aside * self._tips)[self._posed]
        time_left = self._time_left(pose.positions[neck], pose.speeds[neck], toward)
        land = (pose.positions[neck] + min(time_left, _AHEAD) * pose.speeds[neck])[:2]
        left = unit(trunk[:2, 1])
        for arm in self._arms:
            shoulder = pose.positions[arm.segments[0]]
            if ahead < _BACKWARD:
                place = (
                    shoulder[:2] + (_BEHIND * toward + arm.sign * _APART_BACK * left) * self._size
                )
            else:
                place = land + (_AHEAD_OF * toward + arm.sign * _APART * left) * self._size
            goal = np.array([*place, self._world.height_at(*place.tolist())])
            pole = _ELBOW_BACK if ahead < _BACKWARD else _ELBOW
            angles, elbow = arm.reach_for(goal, shoulder, trunk, pole, pose.angles)
            dofs = arm.dofs
            wanted[dofs] = [*angles, elbow]
            down = arm.segments[1] in touched
            tone[dofs] = _LANDED_ARM_TONE if down else _ARM_TONE
            braking[dofs] = _LANDED_ARM_BRAKE if down else 0.0
        if self._landed is None and touched & self._landing:
            self._landed = time
        if self._landed is not None:
            since = (time - self._landed - _HOLDING) / _LETTING_GO
            held = min(max(1 - since, 0.0), 1.0)
            tone[self._legs] *= held
            braking[self._legs] = held * braking[self._legs] + (1 - held) * _LOOSE_BRAKE
        return wanted, tone, braking

    def _direction(self, pose: Pose) -> tuple[np.ndarray, float, float]:
        """(2,) along the floor in which it falls, and how much of that is forward and to the left,
        both -1 to 1."""
        neck, trunk = SEGMENT_INDEX["head"], pose.frames[SEGMENT_INDEX["trunk"]]
        lean = unit(pose.positions[neck] - pose.positions[0])[:2]
        toward = unit(_BY_SPEED * pose.speeds[neck][:2] + lean)
        return toward, float(toward @ unit(trunk[:2, 0])), float(toward @ unit(trunk[:2, 1]))

    def _time_left(self, neck: np.ndarray, speed: np.ndarray, toward: np.ndarray) -> float:
        """[s] until the neck lands."""
        before = (neck[:2] + 0.3 * toward).tolist()
        height = max(0.0, neck[2] - self._world.height_at(*before) - _LANDED * self._size)
        pull = _COMING_DOWN * GRAVITY
        return float(speed[2] + math.sqrt(speed[2] ** 2 + 2 * pull * height)) / pull


class _BracingArm:
    """An arm that reaches for the floor.

    sign: 1 of the left one, -1 of the right one. segments: numbers of upper arm and forearm. dofs:
    of shoulder and elbow. lengths: of both segments [m], the hand included.
    """

    def __init__(
        self,
        arm: Arm,
        sign: float,
        segments: tuple[int, int],
        elbow: int,
        lengths: tuple[float, float],
    ) -> None:
        self._arm, self.sign, self.segments, self._lengths = arm, sign, segments, lengths
        self.dofs = [*range(arm.dofs.start, arm.dofs.stop), elbow]

    def reach_for(
        self,
        goal: np.ndarray,
        shoulder: np.ndarray,
        trunk: np.ndarray,
        pole: np.ndarray,
        angles: np.ndarray,
    ) -> tuple[np.ndarray, float]:
        """Angles of the shoulder (3,) and of the elbow [rad] that bring the hand towards a place
        (3,) [m]. shoulder (3,) [m]; trunk: its frame; pole: where in it the left elbow points;
        angles (dofs,): those of now, to which the shoulder's are as near as can be."""
        upper, lower = self._lengths
        way = goal - shoulder
        far = float(np.linalg.norm(way))
        far = min(max(far, _BENT * (upper + lower)), _STRETCHED * (upper + lower))
        along = trunk @ self._within_reach(trunk.T @ unit(way))
        aside = trunk @ (pole * [1.0, self.sign, 1.0])
        aside = unit(aside - (aside @ along) * along)
        cosine = (upper**2 + far**2 - lower**2) / (2 * upper * far)
        cosine = max(-1.0, min(1.0, cosine))
        first = cosine * along + math.sqrt(1 - cosine**2) * aside
        second = unit(far * along - upper * first)
        bend = float(first @ second)
        ahead = unit(second - bend * first)
        frame = np.stack([ahead, cross(-first, ahead), -first], 1)
        nearest = self._arm.angles(trunk.T @ frame, angles[self._arm.dofs])
        return nearest, -math.acos(max(-1.0, min(1.0, bend)))

    def _within_reach(self, along: np.ndarray) -> np.ndarray:
        """The direction (3,) in the trunk that an arm can point in nearest to one."""
        axis = self._arm.axis
        cosine = max(-1.0, min(1.0, float(along @ axis)))
        if math.acos(cosine) <= _REACHED:
            return along
        aside = unit(along - cosine * axis)
        return math.cos(_REACHED) * axis + math.sin(_REACHED) * aside


class Roll(Brace):
    """Rolls on over shoulders and back, if it has the speed and the time; braces if not.

    Falling forward it bends over its legs, takes its weight on both arms and dives between them;
    falling backward or to the side it sits down. Once trunk or upper arms have touched it is a
    ball, until that turns no more.
    """

    def __init__(
        self,
        character: Character,
        compliance: Compliance,
        limits: np.ndarray,
        world: Surroundings,
        period: float,
    ) -> None:
        super().__init__(character, compliance, limits, world, period)
        self._rolling, self._over = [SEGMENT_INDEX[name] for name in _ROLLED_OVER], False
        #: How far forward (-1 to 1), and to which side, it goes; None until it is decided.
        self._course: tuple[float, float] | None = None
        self._begun: float | None = None  # when what it rolls over has touched
        self._trunk = np.eye(3)

    @property
    def rolls(self) -> bool:
        """Whether it has had the speed and the time to roll."""
        return self._course is not None

    def _wish(
        self, time: float, pose: Pose, touched: set[int]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        wanted, tone, braking = super()._wish(time, pose, touched)
        toward, ahead, aside = self._direction(pose)
        trunk = pose.frames[SEGMENT_INDEX["trunk"]]
        before, self._trunk = self._trunk, trunk.copy()
        if self._course is None and not self._over:
            neck, pelvis = SEGMENT_INDEX["head"], pose.speeds[0]
            scale = math.sqrt(self._size)  # of times and speeds
            soon = self._time_left(pose.positions[neck], pose.speeds[neck], toward)
            if soon < _IN_TIME * scale:
                self._over = True
            elif float(np.hypot(*pelvis[:2])) > _ROLLING_SPEED * scale:
                self._course = ahead, math.copysign(1.0, aside)
        if self._begun is None and not touched.isdisjoint(self._rolling):
            self._begun = time
        if self._course is not None and self._begun is not None:
            # The axis of a turn by a small angle, times that.
            turn = cross(before.T, trunk.T).sum(0) / 2 / self._period
            since = time - self._begun
            stopped = since > _SOONEST and float(np.linalg.norm(turn)) < _STOPPED
            self._over |= stopped or since > _LONGEST
        if self._course is None or self._over:
            return wanted, tone, braking
        ahead, side = self._course
        dives = ahead > _DIVING and self._begun is None
        # Whoever does not dive sits down as one who braces, on legs that brake.
        legs = _BALL if self._begun is not None else _DIVE if dives else {}
        for name, degrees in (_ROUND | legs).items():
            wanted[self._dofs[name]] = math.radians(degrees)
        for name, degrees in _OVER_A_SHOULDER.items():
            share = max(ahead, 0.0) if name == "spine_twist" else 1.0
            wanted[self._dofs[name]] = math.radians(degrees) * share * side
        for joint in _CURLED if not legs else _ROLLING_TONES:
            tone[self._joints[joint]] = _ROLLING_TONES[joint]
        if dives:
            tone[[*self._joints["hip"], *self._joints["knee"]]] = _DIVING_TONE
        if legs:
            braking[:] = 0.0
        for arm in self._arms:
            shoulder, left = pose.positions[arm.segments[0]], unit(trunk[:2, 1])
            if dives:
                inward = _DIVE_INWARD * arm.sign * left
                place = shoulder[:2] + (_DIVE_AHEAD * toward - inward) * self._size
                goal = np.array([*place, self._world.height_at(*place.tolist())])
            else:
                goal = shoulder + trunk @ (_HUG * [1.0, arm.sign, 1.0]) * self._size
            angles, elbow = arm.reach_for(goal, shoulder, trunk, _ELBOW, pose.angles)
            wanted[arm.dofs] = [*angles, elbow]
            tone[arm.dofs] = _DIVING_ARM_TONE if dives else _HUGGING_ARM_TONE
            if ahead > _DIVING and arm.segments[1] in touched:
                braking[arm.dofs] = _DIVING_ARM_BRAKE
        return wanted, tone, braking


BEHAVIOURS: dict[str, type[Limp]] = {LIMP: Limp, "brace": Brace, "roll": Roll, "stiff": Stiff}

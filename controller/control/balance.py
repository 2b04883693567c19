# SPDX-License-Identifier: GPL-3.0-or-later
"""What every way of keeping balance knows and owns: where the body is and what it stands on, where
both should be, and the wrench that would bring it there (SCA12, equations 9 to 15).

The ways themselves, `foot_forces.FootForces` and `virtual_forces.VirtualForces`, say how the legs
bring that wrench about, what of it is known beforehand, and how often it is taken anew.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import hypot
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..body.character import Character
from ..body.sole import Ground
from ..body.state import Pull, State
from ..gains.gains import Gains, size_of
from ..geometry.rotations import vector_of_matrix
from ..geometry.stance import LEFT, RIGHT, SIMULATED_CLEARANCE, around
from ..reference.reference import COM, HEIGHT, MOMENTUM, VELOCITY, Reference
from ..reference.way import CourseMemory
from .foot_hold import FootHold
from .legs import AXES, LegPlan, Legs
from .outside import OutsideHelp
from .stepping import MOMENTUM_SHARE, Stepping
from .walking import Walking

#: [m/s] at which a body that has drifted off goes back. By trial, on a first prototype.
_MOST_DRIFT = 0.3
#: How fast [1/s] one that travels does; in the study that chose this and walking._HOME 12 of 12
#: runs of four walks were kept with both. And one that walks on by itself: by trial, see
#: `researcher.md`, Walks that travel.
_DRIFT_GAIN, _DRIFT_GAIN_ENDLESS = 2.0, 1.0
#: So much stiffer is a leg in the air of a walk, since where it lands decides on all that follows:
#: with 1 feet of captured walks landed up to 3 cm off. In that study 3 to 5 were alike.
_REACHING = 4.0
#: [s] before it sits and after it has got up, in which nobody takes a recovery step: who comes down
#: to a seat is behind the feet. By trial on made clips.
_ABOUT_TO = 0.5


class Engine(Protocol):
    """What the control asks of the engine, as simulation.world.World has it."""

    @property
    def floor(self) -> float: ...

    @property
    def has_colliders(self) -> bool: ...

    def supports(self, ankles: Sequence[Sequence[float]], /) -> list[Ground]:
        """What is under either foot."""

    def state(self, legs: bool = True, /) -> State:
        """Where the body is, with or without what only the balance needs."""

    def mass_matrix(self, angles: np.ndarray, /) -> np.ndarray:
        """(6 + dofs, 6 + dofs) at the last state."""

    def bias(self, state: State, inertia: np.ndarray, /) -> np.ndarray:
        """(6 + dofs,) gravity and velocity-dependent forces."""

    def grip(self, shares: Sequence[float], /) -> None:
        """Let what is under either foot hold it by a share of its friction."""

    def pulls(self) -> Sequence[Pull]:
        """All that holds the body now, and what it sits on."""

    def held_jacobians(self) -> list[np.ndarray]:
        """(3, dofs) of each of these points, by joint angles."""


class Choices(Protocol):
    """What is to be chosen of the control, as simulation.Settings has it."""

    @property
    def balance(self) -> str: ...

    @property
    def tracking(self) -> str: ...

    @property
    def torque_limit(self) -> float: ...

    @property
    def noise(self) -> float: ...

    @property
    def seed(self) -> int: ...

    @property
    def style(self) -> str: ...

    @property
    def recovery_steps(self) -> bool: ...

    @property
    def outside_help(self) -> float: ...


class Memory(NamedTuple):
    """What a balance knows besides what the world holds: the legs' plan and the step at which it
    was made, what moves feet, and what leads the body."""

    plan: LegPlan | None
    planned: int
    steps: Any
    course: CourseMemory | None


class Balance(ABC):
    """One character's balance over a reference.

    com (3,) [m]: its centre of mass, after `update`. legs: legs.Legs. grounds: sole.Ground under
    either foot, as it is seen where the body is led; supports: in the world. stepping: what moves
    feet elsewhere, None where nothing does. torques (14,): what the legs press with [N m]. period,
    inertia_period: steps from one `update`, and from one mass matrix, to the next.
    """

    period = inertia_period = 1
    #: Factor on the torque of all joints, and on the friction of soles.
    strength = 1.0
    #: What keeps standing feet from tipping and twisting; to be replaced in experiments.
    holder = FootHold

    def __init__(
        self,
        character: Character,
        reference: Reference,
        gains: Gains,
        settings: Choices,
        world: Engine,
    ) -> None:
        self.reference, self.world = reference, world
        self.goals = reference.goals
        self.legs = Legs(character)
        self.grounds = self.supports = [Ground(0.0, 0.0, world.floor)] * 2
        self.stepping: Stepping | Walking | None = None
        #: What leads the body along its way; None where nothing does.
        self.course = None if reference.way is None else reference.way.course()
        self.torques = np.zeros(2 * AXES)
        #: What feet lack and is given from outside; None where nothing is.
        self.help: OutsideHelp | None = None
        #: (dofs,) that bear the body by what holds it [N m], where no foot does; else None.
        self.hanging: np.ndarray | None = None
        self.foot_hold = self.holder(
            character, reference, self.legs, size_of(character), self.course
        )
        #: Whether it has a place that it goes back to, on the way.
        self.keeps_place = reference.travels and not reference.directed
        #: How fast [1/s] to go back to where the reference is on the floor.
        self.drift_gain = 0.0
        if self.keeps_place:
            self.drift_gain = _DRIFT_GAIN_ENDLESS if reference.endless else _DRIFT_GAIN
        scales = self.weight_factors()
        self.weights = {1: (scales * gains.single).tolist(), 2: (scales * gains.dual).tolist()}
        #: (steps,) how much of the body's place is simulated, where not all of it is throughout.
        self.shares: np.ndarray | None = None
        self._mass, self._step = character.mass, 1 / reference.rate
        #: (steps,) where it sits in place, or is about to; None where it never does.
        self._sits: np.ndarray | None = None
        if reference.seats is not None and not reference.travels:
            near = around(
                reference.seats.sits,
                round(_ABOUT_TO * reference.rate / reference.steps_per_sample),
                np.any,
            )
            self._sits = np.append(np.repeat(near, reference.steps_per_sample), near[-1])
        self._pelvis_arm = character.centres[0]
        #: Of the legs after a step, and the step at which it was made.
        self._plan: LegPlan | None = None
        self._planned = 0
        #: Rows as those of goals, in the pelvis frame.
        self._local = np.empty((3, 3))

    def weight_factors(self) -> np.ndarray:
        """Factors (4,) on the weights of com_position, com_velocity, trunk and momentum."""
        return np.ones(4)

    def firmness(self, step: int) -> tuple[float, float]:
        """Factors on the weights of com_position and com_velocity at a step."""
        return 1.0, 1.0

    def soften(self, stiffness: np.ndarray, damping: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Stiffness and damping (dofs,) of the joints' tracking, as this balance wants them."""
        return stiffness, damping

    @abstractmethod
    def feed_forward(
        self, step: int, state: State, inertia: np.ndarray, bias: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | float]:
        """(what the tracking knows of the joints' torques (6 + dofs,), what to add to its own
        (dofs,)) of a step, from the mass matrix and the bias forces (6 + dofs,)."""

    @abstractmethod
    def press(self, step: int, state: State, standing: Sequence[int]) -> np.ndarray:
        """(14,) torques of both legs [N m] that bring the wrench about, while at least one foot is
        `standing`."""

    def hang(self, step: int, state: State) -> np.ndarray | None:
        """(dofs,) torques [N m] by which what holds the body bears it, while no foot stands; None
        where nothing holds it."""
        return None

    def memory(self) -> Memory:
        """What it knows besides what the world holds, for `recall`."""
        steps = None if self.stepping is None else self.stepping.memory()
        course = None if self.course is None else self.course.memory()
        return Memory(self._plan, self._planned, steps, course)

    def recall(self, memory: Memory) -> None:
        """Go on with nothing but what the world holds, and this memory."""
        self._plan, self._planned = memory.plan, memory.planned
        if self.stepping is not None:
            self.stepping.recall(memory.steps)
        if self.course is not None and memory.course is not None:
            self.course.recall(memory.course)

    def take_inertia(self, inertia: np.ndarray) -> None:
        """Take a new mass matrix H. Its rows of the root give the momenta, and the centre of mass
        in the pelvis frame is (H[2, 4], H[0, 5], H[1, 3]) / m."""
        self._root_rows = inertia[:6].copy()
        self._local[COM] = inertia[2, 4], inertia[0, 5], inertia[1, 3]
        self._local[COM] /= self._mass

    def update(self, step: int, state: State) -> None:
        """See where the body is, take steps, and press."""
        self._update_momentum(state)
        self.legs.update(state.positions, state.frames, state.angles)
        if self.world.has_colliders:
            self._find_grounds()
        self.legs.set_down(self.grounds)
        if self.stepping is not None:
            self._step_aside(self.stepping, step, state)
        self.foot_hold.release()
        standing = self.standing()
        self.torques = self.press(step, state, standing) if any(standing) else np.zeros(2 * AXES)
        self.hanging = None if any(standing) else self.hang(step, state)
        if self.course is not None:
            turns = self.reference.turns
            self.course.steer(
                step,
                self.com,
                state.root,
                self._step * self.period,
                turns is None or bool(turns[step]),
            )

    def targets(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Angles and speeds (dofs,) that the joints should have at a step."""
        angles, speeds = self.reference.angles[step], self.reference.speeds[step]
        if self._plan is None:
            return angles, speeds
        plan = self._plan if self.shares is None else self._plan.scaled(self.share(step))
        turn, speed, acceleration = plan
        ahead = (step - self._planned) * self._step
        angles, speeds = angles.copy(), speeds.copy()
        angles[self.legs.dofs] += turn + ahead * (speed + ahead / 2 * acceleration)
        speeds[self.legs.dofs] += speed + ahead * acceleration
        return angles, speeds

    def stiffer(self, step: int) -> np.ndarray | float:
        """Factors (dofs,) on the joints' stiffness at a step."""
        if self.stepping is None or not (shares := self.stepping.reaching(step)).any():
            return 1.0
        stiffer = np.ones(len(self.reference.angles[step]))
        stiffer[self.legs.dofs] += (_REACHING - 1) * np.repeat(shares, AXES)
        return stiffer

    def share(self, step: int) -> float:
        """How much of the body's place is simulated: 0 where the animation has it."""
        return 1.0 if self.shares is None else self.shares[step]

    @property
    def swing(self) -> int | None:
        """The foot (0, 1) that takes a recovery step now, or None."""
        return None if self.stepping is None else self.stepping.swing

    def standing(self) -> list[int]:
        """[left, right] 1 for each foot that has a sole corner close to the floor, else 0."""
        left, right = self.legs.soles
        return [
            int(self.swing != 0 and left.clearance < SIMULATED_CLEARANCE),
            int(self.swing != 1 and right.clearance < SIMULATED_CLEARANCE),
        ]

    def base(self, step: int) -> tuple[float, float]:
        """Base of support (SCA12, equation 9), by the stance of the reference."""
        support = self.reference.support[step]
        left, right = self.legs.soles
        if self.stepping is not None:
            moved = self.stepping.base(step, self.legs.soles)
            if moved is not None:
                return moved
        if support == LEFT:
            return left.x, left.y
        if support == RIGHT:
            return right.x, right.y
        return (left.x + right.x) / 2, (left.y + right.y) / 2

    def wrench(
        self, step: int, state: State, standing: Sequence[int]
    ) -> tuple[list[float], list[float]]:
        """Force [N] and torque [N m] on the body, [x, y, z] each: SCA12, equations 12, 13 (with
        the vector in the world frame, where equation 7 wants it) and 15."""
        reference = self.reference
        (x, y, z), (vx, vy, vz), (lx, ly, lz) = (self.goals[step] - self._current).tolist()
        base_x, base_y = self.base(step)
        goal_x, goal_y = reference.base[step].tolist()
        z += self._rise(step)
        if self.drift_gain:
            back_x, back_y = self._way_back(step, x, y)
            vx, vy = vx + back_x, vy + back_y
        position, velocity, trunk, momentum = self.weights[sum(standing)]
        firm, firm_too = self.firmness(step)
        position, velocity = firm * position, firm_too * velocity
        if self.swing is not None:
            momentum *= MOMENTUM_SHARE
        if self.shares is not None:
            # Where the root is held, the balance's goals are met: it would only fight the hold.
            share = self.share(step)
            position, velocity = share * position, share * velocity
            trunk, momentum = share * trunk, share * momentum
        rx, ry, rz = vector_of_matrix(reference.pelvis[step] @ state.frame.T)
        force = [
            position * (x + base_x - goal_x) + velocity * vx,
            position * (y + base_y - goal_y) + velocity * vy,
            position * z + velocity * vz,
        ]
        torque = [
            trunk * rx + momentum * lx,
            trunk * ry + momentum * ly,
            trunk * rz + momentum * lz,
        ]
        return force, torque

    def _update_momentum(self, state: State) -> None:
        """Centre of mass, its velocity and the angular momentum about it, from H u."""
        hx, hy, hz, px, py, pz = (self._root_rows @ state.speeds).tolist()
        wx, wy, wz, vx, vy, vz = state.speeds[:6].tolist()
        local = self._local
        x, y, z = local[COM].tolist()
        mass, step = self._mass, self._step * self.period
        cx, cy, cz = px / mass, py / mass, pz / mass
        local[VELOCITY] = cx, cy, cz
        local[MOMENTUM] = hx - y * pz + z * py, hy - z * px + x * pz, hz - x * py + y * px
        self._current = current = local @ state.frame.T
        self.com = current[COM]
        self.com += state.root
        # In the pelvis frame the centre of mass moves on until the next mass matrix or balance.
        local[COM] = (
            x + (cx - vx - wy * z + wz * y) * step,
            y + (cy - vy - wz * x + wx * z) * step,
            z + (cz - vz - wx * y + wy * x) * step,
        )

    def _find_grounds(self) -> None:
        """What either foot has under it, in the world and as it is seen."""
        ankles = self.legs.anchors[:, 2]
        if self.course is None:
            self.grounds = self.supports = self.world.supports(ankles.tolist())
            return
        self.supports = self.world.supports(self.course.outside(ankles).tolist())
        self.grounds = [self.course.inside(ground) for ground in self.supports]

    def _step_aside(self, stepping: Stepping | Walking, step: int, state: State) -> None:
        """Take a recovery step where one is needed, and go on with one that has begun."""
        goals = self.goals[step]
        if self.drift_gain:
            goals = goals.copy()
            goals[VELOCITY, :2] += self._way_back(step, *(goals[COM, :2] - self.com[:2]).tolist())
        stepping.update(
            step,
            self.com.tolist(),
            self._current[VELOCITY].tolist(),
            goals,
            self.base(step),
            self.legs.soles,
            self.standing(),
            # A foot that is held goes nowhere, nor do those of one that sits, or is about to.
            self.share(step) == 1
            and not (self._sits is not None and self._sits[step])
            and all(pull.lets_step for pull in self.world.pulls()),
        )
        if self.share(step) == 0:
            stepping.forget()
            self._plan = None
        if stepping.active:
            root = state.root - state.frame @ self._pelvis_arm
            velocity = state.frame @ state.speeds[3:6]
            seconds = self._step * self.period
            self._plan = stepping.plan(step * self._step, root, velocity, state.frame, seconds)
            self._planned = step

    def _way_back(self, step: int, x: float, y: float) -> tuple[float, float]:
        """Velocity (x, y) [m/s] with which to go home from where the reference is (x, y) [m] away:
        to its place, or above feet that stay where they are."""
        if self.stepping is not None:
            stays = 1 - self.stepping.soon(step)
            (base_x, base_y), (goal_x, goal_y) = self.base(step), self.reference.base[step].tolist()
            x, y = x + stays * (base_x - goal_x), y + stays * (base_y - goal_y)
        back = min(self.drift_gain, _MOST_DRIFT / max(hypot(x, y), 1e-9))
        return back * x, back * y

    def _rise(self, step: int) -> float:
        """How much higher [m] than in the reference the floor is under the feet that stand: of
        those that the reference has standing, if they do."""
        support, standing = int(self.reference.support[step]), self.standing()
        heights = self.reference.floors[step, :, HEIGHT].tolist()
        rises = [
            (bool(support & bit) and standing[foot], self.legs.soles[foot].floor - heights[foot])
            for foot, bit in enumerate((LEFT, RIGHT))
        ]
        if not any(stands for stands, _ in rises):
            rises = [(stands, rise) for stands, (_, rise) in zip(standing, rises, strict=True)]
        found = [rise for stands, rise in rises if stands]
        drop = 0.0 if self.stepping is None else self.stepping.drop
        return sum(found) / max(len(found), 1) - drop

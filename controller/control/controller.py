# SPDX-License-Identifier: GPL-3.0-or-later
"""Torques of one step from the state of the world: tracking, balance, limits, noise.

The controller's own state is what `World` holds, and the mass matrix it last took.
"""

from collections.abc import Sequence
from math import sqrt

import numpy as np

from ..body.character import Character
from ..body.state import Pull, State
from ..gains.gains import Gains, size_of
from ..gains.physics_weights import Hold
from ..geometry.skeleton import SIDES, hanging_on
from ..reference.reference import Reference
from . import tracking
from .balance import Balance, Choices, Engine, Memory
from .foot_forces import FootForces
from .virtual_forces import VirtualForces

#: SCA12's motor noise of 5 N m is drawn every 0.3 ms; at another step it shrinks with the root.
NOISE_STEP = 0.0003
#: [rad] off its animation's angles from which on a limb that is held yields. By trial: a body whose
#: arm waves in the animation, and is held down, is 3 cm off its pose, and more than 10 without it;
#: arms by which a body is drawn along stay as stiff as they need to be.
_YIELDING = 1.0
#: The ways of keeping balance, by gains.BALANCE_MODES.
MODES: dict[str, type[Balance]] = {"foot_forces": FootForces, "virtual_forces": VirtualForces}


class Controller:
    """One character's controller over a reference."""

    def __init__(
        self,
        character: Character,
        reference: Reference,
        gains: Gains,
        settings: Choices,
        world: Engine,
        balance: type[Balance] | None = None,
    ) -> None:
        """balance: a subclass of balance.Balance, None for that of the settings' mode."""
        self.world, self.character = world, character
        self._made_with = character, gains, settings, world, balance
        make = balance or MODES[settings.balance]
        self.balance = make(character, reference, gains, settings, world)
        stiffness, damping = self.balance.soften(*gains.per_dof(character))
        self.tracker = tracking.make(settings.tracking, stiffness, damping, 1 / reference.rate)
        #: (6,) force [N] and torque [N m] from outside on the pelvis in the step that begins now,
        #: and torques [N m] about the vertical on either foot.
        self.outside, self.foot_turns = np.zeros(6), [0.0, 0.0]
        #: Where not all of the body is simulated throughout.
        self.hold: Hold | None = None
        self._origin = 0  # the step from which the intervals of balance and mass matrix count
        size = size_of(character)
        self.limit = settings.torque_limit * size * self.balance.strength
        self.noise = settings.noise * sqrt(NOISE_STEP * reference.rate) * size
        self.random = np.random.default_rng(settings.seed)
        tops = [f"{segment}_{side}" for segment in ("upper_arm", "thigh") for side in SIDES]
        self._limbs = {top: _dofs_of(character, top) for top in tops} | {"pelvis": []}

    def take_hold(self, hold: Hold) -> None:
        """Have what is not simulated held."""
        self.hold, self.balance.shares = hold, hold.weights.root

    @property
    def is_helped(self) -> bool:
        """Whether there may be anything from outside."""
        return self.hold is not None or self.balance.help is not None

    def memory(self) -> Memory:
        """What it knows besides what the world holds, for `restart`."""
        return self.balance.memory()

    def restart(self, step: int, memory: Memory) -> None:
        """Go on from `step` with nothing but what the world holds, and this memory."""
        self._origin = step
        self.balance.recall(memory)

    def over(self, reference: Reference, step: int, memory: Memory) -> "Controller":
        """The one that goes on over another reference, from a step of that, with a memory of it;
        its noise goes on."""
        character, gains, settings, world, balance = self._made_with
        found = Controller(character, reference, gains, settings, world, balance)
        found.restart(step, memory)
        found.random = self.random
        return found

    def torques(self, step: int) -> np.ndarray:
        """(dofs,) joint torques [N m] for the step that begins now."""
        balance, hold = self.balance, self.hold
        count = step - self._origin
        balancing = count % balance.period == 0
        self._state = state = self.world.state(balancing)
        if balance.course is not None:
            balance.course.show(state)
        if hold is not None and not hold.acts(step):
            hold.rest()
            hold = None
        # What is held stiffly shakes with an old mass matrix once the body moves fast.
        pulls = self.world.pulls()
        if count % balance.inertia_period == 0 or hold or pulls:
            self.inertia = self.world.mass_matrix(state.angles)
            self.tracker.refresh(self.inertia)
            balance.take_inertia(self.inertia)
        bias = self.world.bias(state, self.inertia)
        known, added = balance.feed_forward(step, state, self.inertia, bias)
        targets, stiffer = balance.targets(step + 1), balance.stiffer(step)
        if pulls:
            stiffer = stiffer * self._yielding(pulls, targets[0] - state.angles)
        if hold is None:
            limit: float | np.ndarray = self.limit
            torques = self.tracker.torques(state.angles, state.speeds[6:], *targets, known, stiffer)
        else:
            limit = hold.limits(step, self.limit)
            torques = hold.torques(step, state, *targets, known, self.inertia, stiffer)
        torques += added
        if balancing:
            balance.update(step, state)
        torques[balance.legs.dofs] += balance.torques
        if balance.hanging is not None:
            torques += balance.hanging
        balance.foot_hold.add_to(torques, state, balance.share(step))
        if self.is_helped:
            self.outside = self._outside(step, state)
        np.maximum(torques, -limit, out=torques)
        np.minimum(torques, limit, out=torques)
        if self.noise:
            torques += self.random.uniform(-self.noise, self.noise, len(torques))
        return torques

    def _outside(self, step: int, state: State) -> np.ndarray:
        """(6,) what holds the root, and what feet lack."""
        balance, held = self.balance, np.zeros(6) if self.hold is None else self.hold.residual
        if balance.help is None:
            return held
        share = balance.share(step)
        own = share * balance.help.at(balance.com, state.root)
        self.foot_turns = [share * turn for turn in balance.help.turns]
        if balance.course is not None:
            own = balance.course.turned_out(own.reshape(2, 3)).ravel()
        return held + own

    def _yielding(self, pulls: Sequence[Pull], errors: np.ndarray) -> np.ndarray:
        """Factors (dofs,) on the joints' stiffness at errors (dofs,) [rad]: a limb that is held
        elsewhere than the animation has it does not drag the body there."""
        factors = np.ones(len(errors))
        for pull in pulls:
            limb = self._limbs[pull.top]
            factors[limb] = 1 / (1 + (errors[limb] @ errors[limb] / _YIELDING**2) ** 2)
        return factors

    def toe_motor(self, step: int) -> tuple[list[int], list[float], list[float]]:
        """What World.drive needs in the step that begins now, after `torques`."""
        return self.balance.foot_hold.toe_motor(step, self._state, self.balance.share(step))


def _dofs_of(character: Character, top: str) -> list[int]:
    """The degrees of freedom of a limb, by the segment that is nearest to the trunk."""
    limb = hanging_on(top)
    return [
        joint.first + i
        for joint in character.joints
        if joint.segment in limb
        for i in range(len(joint.axes))
    ]

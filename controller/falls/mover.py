# SPDX-License-Identifier: GPL-3.0-or-later
"""What moves a body that has lost its balance: what it decides, every few steps of the physics."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np

from ..body.character import Character
from ..body.state import State
from .behaviours import Surroundings
from .compliance import Compliance

#: [Hz] of what such a body decides, and of its mass matrix. This and the next by trial on falls.
_DECIDING = 75.0
#: What has touched for so long [s] is not deep in the floor because it has just hit it.
_HIT = 0.1


class MovingWorld(Surroundings, Protocol):
    """What is asked of a world, as simulation.world.World has it."""

    def state(self, legs: bool = True, /) -> State:
        """Where the body is."""

    def mass_matrix(self, angles: np.ndarray, /) -> np.ndarray:
        """(6 + dofs, 6 + dofs) at the last state."""

    def bias(self, state: State, inertia: np.ndarray, /) -> np.ndarray:
        """(6 + dofs,) gravity and velocity-dependent forces."""


World = TypeVar("World", bound=MovingWorld)


class Touched:
    """What touches the floor or a collider.

    since: {segment: when it began to touch [s]} of all that do now; ever: all that have. deepest:
    how deep [m] one has been, but for the first moments of its touch.
    """

    def __init__(self) -> None:
        self.since: dict[int, float] = {}
        self.ever: set[int] = set()
        self.deepest = 0.0

    def see(self, time: float, depths: dict[int, float]) -> None:
        """Take what World.touched tells at a time [s]."""
        self.since = {segment: self.since.get(segment, time) for segment in depths}
        self.ever |= depths.keys()
        for segment, since in self.since.items():
            if time - since > _HIT:
                self.deepest = max(self.deepest, depths[segment])


class Mover(ABC, Generic[World]):
    """One fall, or one get-up.

    help (6,): force [N] and torque [N m] from outside on the pelvis' centre of mass, in the world,
    in the step that begins. strength: share that the body has of it, of each joint (dofs,) or in
    all. touched: what touches something.
    """

    strength: np.ndarray | float = 1.0

    def __init__(self, character: Character, world: World, rate: float) -> None:
        """character: a `compliance.falling_body`; world: with it as it is; rate: of the world's
        steps [Hz]."""
        self._character, self._world = character, world
        self._period = max(1, round(rate / _DECIDING))
        self._step, self._interval = 0, self._period / rate
        self._compliance = Compliance(character, 1 / rate, world.state(False).angles)
        self._dofs, self._zeros = list(range(character.dofs)), [0.0] * character.dofs
        self.touched = Touched()
        self.help = np.zeros(6)

    def torques(self) -> np.ndarray:
        """(dofs,) joint torques [N m] for the step that begins now."""
        world = self._world
        state = world.state(False)
        if self._step % self._period == 0:
            self._inertia = world.mass_matrix(state.angles)
            self._decide(self._step // self._period * self._interval, state)
        self._step += 1
        bias = world.bias(state, self._inertia)
        return self._compliance.torques(state, self._inertia, bias, self._outside(state))

    @abstractmethod
    def friction(self) -> tuple[Sequence[int], Sequence[float], Sequence[float]]:
        """What World.drive needs in that step: dry friction in all joints."""

    @abstractmethod
    def _decide(self, time: float, state: State) -> None:
        """Decide at a time [s] since it began."""

    def _outside(self, state: State) -> np.ndarray | None:
        """(6 + dofs,) what presses a body that carries itself; None for one that hangs."""
        return None

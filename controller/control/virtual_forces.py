# SPDX-License-Identifier: GPL-3.0-or-later
"""Balance by virtual forces (SCA12, equations 5 to 16): a force at the centre of mass and torques
at the pelvis, through the transposed Jacobian of the legs that stand."""

from collections.abc import Sequence

import numpy as np

from ..body.character import Character
from ..body.state import State
from ..gains.gains import Gains
from ..reference.reference import Reference
from .balance import Balance, Choices, Engine


class VirtualForces(Balance):
    """The paper's own mode. Less steady than `foot_forces`, it is taken anew at every step, with a
    new mass matrix."""

    def __init__(
        self,
        character: Character,
        reference: Reference,
        gains: Gains,
        settings: Choices,
        world: Engine,
    ) -> None:
        super().__init__(character, reference, gains, settings, world)
        if character.actor is not None:
            self.goals = reference.goals_over_base()

    def feed_forward(
        self, step: int, state: State, inertia: np.ndarray, bias: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """Weight and velocity, which the tracking is to know; nothing is added."""
        return -bias, 0.0

    def press(self, step: int, state: State, standing: Sequence[int]) -> np.ndarray:
        """Half of the wrench each if both legs stand."""
        force, torque = self.wrench(step, state, standing)
        self.foot_hold.stand(standing)
        share = np.array(standing, float)[:, None] / sum(standing)
        points = np.broadcast_to(self.com, (2, 3))
        return -self.legs.transposed_jacobian(
            points, share * np.array(force), share * np.array(torque)
        )

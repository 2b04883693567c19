# SPDX-License-Identifier: GPL-3.0-or-later
"""Centre of mass, angular momentum and zero-moment point of a motion, vectorised over time."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..geometry.rotations import quaternion_from_matrix, rotation_vector
from ..geometry.trajectory import butterworth

GRAVITY = 9.81  # [m/s^2], the standard 9.80665 rounded


@dataclass(frozen=True)
class Dynamics:
    """Over F samples, each (F, 3): com [m], velocity [m/s], acceleration [m/s^2]; angular
    momentum about the com [kg m^2/s] (SCA12, equation 14) and its rate [N m]."""

    com: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    momentum: np.ndarray
    momentum_rate: np.ndarray


class Weighted(Protocol):
    """What is asked of a `character.Character`: its mass, that of its S segments [kg], their
    principal moments (S, 3) [kg m^2], and the height of its floor [m]."""

    @property
    def mass(self) -> float: ...

    @property
    def masses(self) -> np.ndarray: ...

    @property
    def inertias(self) -> np.ndarray: ...

    @property
    def ground(self) -> float: ...


def com_dynamics(
    character: Weighted, centres: np.ndarray, frames: np.ndarray, rate: float, cutoff: float
) -> Dynamics:
    """Dynamics of body centres (F, S, 3) [m] and frames (F, S, 3, 3) at `rate` [Hz].

    Derivatives are low-passed at twice `cutoff` [Hz], that of the motion itself.
    """
    com = np.einsum("fsi,s->fi", centres, character.masses / character.mass)
    momentum = angular_momentum(character, centres, frames, com, rate)
    values, slopes = butterworth(np.concatenate([com, momentum], 1), rate, 2 * cutoff)
    velocity = slopes[:, :3]
    _, acceleration = butterworth(velocity, rate, 2 * cutoff)
    return Dynamics(com, velocity, acceleration, values[:, 3:], slopes[:, 3:])


def angular_momentum(
    character: Weighted, centres: np.ndarray, frames: np.ndarray, com: np.ndarray, rate: float
) -> np.ndarray:
    """(F, 3) about the centre of mass (F, 3) (SCA12, equation 14) [kg m^2/s]."""
    velocity = np.gradient(centres - com[:, None], axis=0) * rate
    angular = np.empty_like(centres)
    turn = frames[2:] @ np.swapaxes(frames[:-2], -1, -2)
    angular[1:-1] = rotation_vector(quaternion_from_matrix(turn)) * rate / 2
    for edge, (low, high) in ((0, (0, 1)), (-1, (-2, -1))):
        turn = frames[high] @ np.swapaxes(frames[low], -1, -2)
        angular[edge] = rotation_vector(quaternion_from_matrix(turn)) * rate
    local = np.einsum("fsji,fsj->fsi", frames, angular)
    spin = np.einsum("fsij,fsj->fi", frames, local * character.inertias)
    orbit = np.cross(centres - com[:, None], velocity)
    return spin + np.einsum("fsi,s->fi", orbit, character.masses)


def zero_moment_point(
    character: Weighted, dynamics: Dynamics, floors: np.ndarray | None = None
) -> np.ndarray:
    """(F, 2) where on the ground the floor's force must act [m]. Where the body hardly presses
    on the floor it has no meaning; there it is kept finite. floors: (F,) height of the ground [m],
    None for the character's."""
    up = np.maximum(GRAVITY + dynamics.acceleration[:, 2], 0.2 * GRAVITY)[:, None]
    ground = character.ground if floors is None else floors
    height = (dynamics.com[:, 2] - ground)[:, None]
    tilt = np.stack([-dynamics.momentum_rate[:, 1], dynamics.momentum_rate[:, 0]], 1)
    lean = height * dynamics.acceleration[:, :2] - tilt / character.mass
    return dynamics.com[:, :2] - lean / up

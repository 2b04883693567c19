# SPDX-License-Identifier: GPL-3.0-or-later
"""Physics where it is wanted: each region of the body from animated (0) to simulated (1).

What is animated stays in the simulation, so that its mass and its motion load the balance: its
joints follow the reference as stiffly as the time step allows. The "root" is the place of the whole
body; while it is animated, a force and a torque from outside hold the pelvis, and the balance has
nothing to do but to press on the floor as the motion itself does. That help is recorded as
`residual`. With every weight 1 none of this exists.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import pi
from typing import Any

import numpy as np

from ..body.character import Character
from ..body.state import State
from ..exceptions import SettingsError
from ..geometry.motion import Motion
from ..geometry.rotations import (
    continuous,
    exponential,
    matrix_from_quaternion,
    multiply,
    quaternion_from_matrix,
    rotation_vector,
    vector_of_matrix,
)
from ..geometry.skeleton import ENTRIES, FEET, PARENTS, SEGMENT_INDEX, SEGMENTS, joint_of_dof
from ..geometry.stance import FLIGHT, runs
from ..reference.reference import Reference, hermite
from .gains import unmirrored
from .regions import REGIONS, inertias

#: What has a weight.
NAMES = (*REGIONS, "root")

# By trial, where nothing else is said.

#: Natural frequency [Hz] with which joints at weight 0 follow, and the help on the root.
JOINT_FREQUENCY = 25.0
ROOT_FREQUENCY = 4.0
#: Control steps that a swing of a joint takes at least: Stable PD needs more than pi.
_STEPS = 12
#: Share of its vertical stiffness that the help keeps while feet stand: the floor shall carry.
_AFLOAT = 0.1
#: Feet farther from the animation [m] are put back to it where nothing is simulated.
_STRAY = 0.005
#: A joint without stiffness of its own begins at this frequency [Hz].
_SOFTEST = 0.1
#: The bake passes from the animation to the simulation in no less than this [s]: the reference of
#: the simulation is smoothed and stands firmly, the animation may not.
_PASSAGE = 0.25


def checked(weights: dict[str, Any], samples: int) -> dict[str, np.ndarray]:
    """{name: (samples,) float} of those weights that are anywhere below 1.

    weights: {name: one number or (samples,)}. Raises SettingsError for an unknown region, a wrong
    number of samples, or a value outside 0 to 1.
    """
    result = {}
    for name, values in weights.items():
        if name not in NAMES:
            raise SettingsError(
                f"There is no region '{name}' to weigh: choose one of {', '.join(NAMES)}."
            )
        values = np.asarray(values, float)
        if values.shape not in ((), (samples,)):
            raise SettingsError(
                f"The physics weight of '{name}' has {values.size} values for {samples} samples: "
                "give one for each, or one number."
            )
        if not ((values >= 0) & (values <= 1)).all():
            raise SettingsError(
                f"The physics weight of '{name}' is not always from 0 to 1: mend it."
            )
        if (values < 1).any():
            result[name] = np.broadcast_to(values, samples)
    return result


@dataclass(frozen=True)
class PhysicsWeights:
    """The weights of one simulation.

    regions: {name: (F,)} at the samples. animated: (F,) where nothing is simulated. joints:
    (K, dofs), root: (K,) at the control steps.
    """

    regions: dict[str, np.ndarray]
    animated: np.ndarray
    joints: np.ndarray
    root: np.ndarray

    @classmethod
    def build(
        cls, character: Character, motion: Motion, reference: Reference, weights: dict[str, Any]
    ) -> "PhysicsWeights | None":
        """The weights of a simulation of a motion; None if all are 1. Beyond the motion's end, in
        a loop, the last value holds. Raises SettingsError, see `checked`."""
        given = checked(weights, len(motion))
        if not given:
            return None
        samples = np.minimum(np.arange(len(reference)), len(motion) - 1)
        ones = np.ones(len(reference))
        regions = {name: given[name][samples] if name in given else ones for name in NAMES}
        at = np.arange(len(reference.angles)) / reference.steps_per_sample
        steps = {
            name: np.interp(at, np.arange(len(reference)), values)
            for name, values in regions.items()
        }
        columns = [steps[joint_of_dof(name).region] for name in character.dof_names]
        animated = ~np.any(list(regions.values()), axis=0)
        return cls(regions, animated, np.stack(columns, 1), steps["root"])

    def blended(self, turns: np.ndarray, rate: float) -> np.ndarray:
        """World rotations (n, S, 3, 3) from the animation to the simulation, as far as the weights
        let them: each segment's, beyond what its parent has."""
        result = turns.copy()
        for index, segment in enumerate(SEGMENTS):
            share = self.shown(ENTRIES[segment].region, rate)[: len(turns)]
            base = before = np.broadcast_to(np.eye(3), turns[:, 0].shape)
            if index:
                parent = SEGMENT_INDEX[PARENTS[segment]]
                base, before = result[:, parent], turns[:, parent]
            own = rotation_vector(
                quaternion_from_matrix(np.swapaxes(before, 1, 2) @ turns[:, index])
            )
            result[:, index] = base @ matrix_from_quaternion(exponential(share[:, None] * own))
        return result

    def blended_root(self, displacement: np.ndarray, rate: float) -> np.ndarray:
        """Displacement (n, 3) of the pelvis, as far as the weight of the root lets it."""
        return displacement * self.shown("root", rate)[: len(displacement), None]

    def ways_back(self, rate: float) -> Iterator[tuple[int, int, int]]:
        """(first, stop, limit) samples of each way back to the animation: the bake leaves the
        simulation at the first, and nothing is simulated from stop to limit."""
        shares = np.max([self.shown(name, rate) for name in self.regions], axis=0)
        rises = np.r_[True, shares[:-1] <= shares[1:]]
        for stop, limit in runs(self.animated).tolist():
            if stop:
                yield int(np.flatnonzero(rises[:stop])[-1]), stop, limit

    def shown(self, name: str, rate: float) -> np.ndarray:
        """(F,) share of the simulation in the bake: the weight, where it does not change too fast
        for a smooth passage; 0 wherever the weight is."""
        slope = np.arange(len(self.regions[name])) / (_PASSAGE * rate)
        after = np.minimum.accumulate(self.regions[name] - slope) + slope
        before = np.minimum.accumulate((after + slope)[::-1])[::-1] - slope
        share = np.clip(before, 0.0, 1.0)
        return share * share * (3 - 2 * share)


class Hold:
    """Stable PD, as `tracking.StablePD`, with gains that change with the weights, and with a hold
    on the root, of which `residual` (6,) is the force [N] and the torque [N m] about the pelvis'
    centre of mass, in the world, at the last step."""

    def __init__(
        self,
        character: Character,
        reference: Reference,
        weights: PhysicsWeights,
        stiffness: np.ndarray,
        damping: np.ndarray,
        lifts: np.ndarray,
    ) -> None:
        """stiffness [N m/rad], damping [N m s/rad] (dofs,) at weight 1; lifts: (F,) how much
        higher [m] than in the reference the root is held."""
        self.reference, self.weights, self.step = reference, weights, 1 / reference.rate
        moved = inertias(character)
        inertia = np.array([moved[unmirrored(name)] for name in character.dof_names])
        turn = 2 * pi * min(JOINT_FREQUENCY, reference.rate / _STEPS)
        self._stiff, self._damped = turn**2 * inertia, 2 * turn * inertia
        softest = (2 * pi * _SOFTEST) ** 2 * inertia
        self._softer = np.maximum(stiffness, softest) / self._stiff
        self._looser = np.maximum(damping, 2 * np.sqrt(softest * inertia)) / self._damped
        self._root, self._root_speeds = _root_path(character, reference, lifts)
        self._centre = character.centres[0]
        joints, _ = character.pose(reference.trajectory)
        self._ankles = joints[:, FEET]
        self._ankles[..., 2] += lifts[:, None]
        self._acts = ((weights.joints < 1).any(1) | (weights.root < 1)).tolist()
        self.residual = np.zeros(6)

    def rest(self) -> None:
        """Hold nothing in the step that begins now."""
        self.residual[:] = 0

    def torques(
        self,
        step: int,
        state: State,
        angles: np.ndarray,
        speeds: np.ndarray,
        known: np.ndarray,
        inertia: np.ndarray,
        stiffer: np.ndarray | float,
    ) -> np.ndarray:
        """(n,) joint torques [N m] for the step that begins now, towards the angles and speeds (n,)
        of the next; known, stiffer: as in StablePD, inertia: (6 + n, 6 + n) the mass matrix."""
        joints, root = self.weights.joints[step], self.weights.root[step]
        self._take(joints, root, inertia, stiffer)
        errors = np.concatenate([self._root_errors(step, state), angles - state.angles])
        target = np.concatenate([(self._root_speeds[step + 1] @ state.frame).ravel(), speeds])
        errors -= self.step * state.speeds
        force = self._multiply(self._k, self._root_k, errors)
        force += self._multiply(self._d, self._root_d, target - state.speeds)
        ahead = np.linalg.solve(self._matrix, known + force)
        force -= self.step * self._multiply(self._d, self._root_d, ahead)
        self.residual[:3] = state.frame @ force[3:6]
        self.residual[3:] = state.frame @ force[:3]
        return force[6:]

    def strays(self, sample: int, state: State) -> bool:
        """Whether the feet are not where the reference has them at a sample at which nothing is
        simulated: the floor holds them where they were pushed to, or where they land first."""
        if not self.weights.animated[sample]:
            return False
        apart = state.positions[[2, 5]] - self._ankles[sample]
        return bool(np.linalg.norm(apart, axis=1).max() > _STRAY)

    def pose(
        self, step: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """What World.reset needs to put the body where the reference is at a step."""
        reference = self.reference
        frame, (spin, velocity) = reference.pelvis[step], self._root_speeds[step]
        arm = frame @ self._centre
        return (
            self._root[step] - arm,
            frame,
            velocity - np.cross(spin, arm),
            spin,
            reference.angles[step],
            reference.speeds[step],
        )

    def acts(self, step: int) -> bool:
        """Whether anything is held at a step."""
        return self._acts[step]

    def limits(self, step: int, limit: float) -> np.ndarray:
        """(n,) largest torques [N m]: `limit` at weight 1, without bound towards 0."""
        return limit / np.maximum(self.weights.joints[step], 1e-6)

    def _take(
        self, joints: np.ndarray, root: float, inertia: np.ndarray, stiffer: np.ndarray | float
    ) -> None:
        """Gains at these weights, and what they need of the mass matrix."""
        self._k = self._stiff * (self._softer * stiffer) ** joints
        self._d = self._damped * self._looser**joints
        turn = 2 * pi * ROOT_FREQUENCY * (1 - root)
        block = inertia[:6, :6]
        self._root_k, self._root_d = turn**2 * block, 2 * turn * block
        matrix = inertia.copy()
        matrix[:6, :6] += self.step * self._root_d
        diagonal = np.arange(6, len(matrix))
        matrix[diagonal, diagonal] += self.step * self._d
        self._matrix = matrix

    def _root_errors(self, step: int, state: State) -> np.ndarray:
        """(6,) rotation vector and displacement to the next step's root, in the pelvis frame."""
        position, frame = self._root[step + 1], self.reference.pelvis[step + 1]
        turn = vector_of_matrix(frame @ state.frame.T)
        apart = position - state.root
        apart[2] *= 1 - (1 - _AFLOAT) * min(1.0, self.reference.load[step + 1].sum())
        return np.concatenate([turn @ state.frame, apart @ state.frame])

    @staticmethod
    def _multiply(joints: np.ndarray, root: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Gains times values (6 + n,)."""
        return np.concatenate([root @ values[:6], joints * values[6:]])


def standing_lifts(character: Character, reference: Reference) -> np.ndarray:
    """(F,) how much higher [m] than in the reference a body is whose lower foot touches the floor,
    while one stands; between, linear."""
    joints, frames = character.pose(reference.trajectory)
    lowest = character.sole_corners(joints, frames)[..., 2].min((1, 2))
    stands = np.flatnonzero(reference.stance != FLIGHT)
    if not len(stands):
        stands = np.array([0])
    return np.interp(np.arange(len(lowest)), stands, character.ground - lowest[stands])


def _root_path(
    character: Character, reference: Reference, lifts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Pelvis centre of mass (K, 3) [m], and its angular [rad/s] and linear [m/s] velocity
    (K, 2, 3) in the world, at the control steps."""
    trajectory = reference.trajectory
    count = len(reference.angles)
    at = np.minimum(np.arange(count) / reference.steps_per_sample, len(trajectory) - 1)
    arm = matrix_from_quaternion(trajectory.rotation) @ character.centres[0]
    centres = trajectory.root + arm
    centres[:, 2] += lifts
    path = hermite(centres, np.gradient(centres, axis=0) * trajectory.rate, at, trajectory.rate)
    turns = continuous(trajectory.rotation)
    rates = 2 * trajectory.rate * multiply(np.gradient(turns, axis=0), turns * [1, -1, -1, -1])
    spin = [np.interp(at, np.arange(len(rates)), rates[:, i]) for i in (1, 2, 3)]
    return path[0], np.stack([np.stack(spin, 1), path[1]], 1)

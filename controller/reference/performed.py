# SPDX-License-Identifier: GPL-3.0-or-later
"""The motion that a bake is going to write, before it is written."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from ..body.character import Character
from ..geometry.leg_bending import unstretched, usual
from ..geometry.motion import Motion
from ..geometry.rotations import exponential, matrix_from_quaternion, multiply, rotation_vector
from ..geometry.skeleton import JOINT_OF, LANDMARK_INDEX, PARENTS, POINTS, SEGMENT_INDEX
from ..geometry.trajectory import low_passed_turns
from ..support.terrain import Surroundings
from .lying import Hold
from .reference import Reference

#: Bones between two segments turn with what is slower than this [Hz]: a capture's own tremor
#: cancels along a chain of bones, and would show if it were taken from the ends alone. Without it
#: the head of a captured walk had 2.5 times the source's jerk.
CHAIN_CUTOFF = 6.0

#: The segment that carries each landmark about its own joint, from the pelvis outwards.
_CARRIERS = {name: point.carrier for name, point in POINTS.items() if point.carrier}
_CONJUGATE = np.array([1.0, -1.0, -1.0, -1.0])


class Weights(Protocol):
    """What a way back asks of `physics_weights.PhysicsWeights`."""

    def ways_back(self, rate: float) -> Iterable[tuple[int, int, int]]: ...


class Changes(Protocol):
    """How an animation is changed, as a `recording.Recording` has it."""

    @property
    def motion(self) -> Motion: ...

    @property
    def hold(self) -> Hold | None: ...

    def __len__(self) -> int: ...

    def differences(self, stretched: Sequence[str] = ()) -> tuple[np.ndarray, np.ndarray]: ...

    def simulated_legs(self) -> np.ndarray: ...


class Performance(Changes, Protocol):
    """What a bake asks of a `recording.Recording`."""

    @property
    def character(self) -> Character: ...

    @property
    def reference(self) -> Reference: ...

    @property
    def scenario(self) -> Surroundings: ...

    @property
    def weights(self) -> Weights | None: ...

    @property
    def contacts(self) -> np.ndarray: ...

    @property
    def reference_stance(self) -> np.ndarray: ...


@dataclass(frozen=True)
class Changed:
    """An animation that is changed all along by turns (n, S, 4) and a displacement (n, 3) [m] of
    its pelvis, as `Changes` has them."""

    motion: Motion
    turns: np.ndarray
    moved: np.ndarray
    hold: None = None

    def __len__(self) -> int:
        return len(self.motion)

    def differences(self, stretched: Sequence[str] = ()) -> tuple[np.ndarray, np.ndarray]:
        """The turns and the displacement."""
        return self.turns, self.moved

    def simulated_legs(self) -> np.ndarray:
        """(n,) all of them."""
        return np.ones(len(self.motion))


def performed_motion(
    recording: Changes,
    chains: dict[str, np.ndarray] | None = None,
    legs: Sequence[str] = (),
    controls: bool = False,
) -> Motion:
    """The animation as far as it was simulated, moved by what the simulation changes as a bake
    moves it -> Motion of at least two samples.

    chains: {"trunk" or "head": (at least n, k, 3) where the k bones begin [m] over which a bake
    spreads the segment's turn}, in the animation; those of one bone may be left out.
    legs: segments whose length changes in the animation, and no more where they are simulated.
    controls: whether a rig's controls move the chains, which share turns in a fall, too.
    """
    motion, count = recording.motion, len(recording)
    deltas, moved = recording.differences(legs)
    share = recording.simulated_legs()
    turns = matrix_from_quaternion(deltas)
    chains, hold = chains or {}, recording.hold
    if hold and controls:
        hold = hold.sharing()
    slow = low_passed_turns(deltas, motion.rate, CHAIN_CUTOFF) if chains else deltas
    before, after = motion.positions[:count], motion.positions[:count].copy()
    after[:, LANDMARK_INDEX["pelvis"]] += moved
    for name, carrier in _CARRIERS.items():
        if not np.isfinite(before[:, LANDMARK_INDEX[JOINT_OF[carrier]]]).all():
            carrier = PARENTS[carrier]  # a rig without toes
        landmark, joint = LANDMARK_INDEX[name], LANDMARK_INDEX[JOINT_OF[carrier]]
        start, place = before[:, joint], after[:, joint]
        rotations = motion.rotations[:count, SEGMENT_INDEX[carrier]]
        if carrier in chains:
            heads = chains[carrier][:count]
            start = heads[:, -1]
            arms = [heads[:, i + 1] - heads[:, i] for i in range(heads.shape[1] - 1)]
            if hold:
                arms = [hold.carried(rotations, arm) for arm in arms]
            place = place + _bent(arms, slow, deltas, hold, carrier)
        arm = before[:, landmark] - start
        if hold:
            arm = hold.carried(rotations, arm)
        if carrier in legs:
            whole = motion.positions[:, landmark] - motion.positions[:, joint]
            own = usual(motion.rotations[:, SEGMENT_INDEX[carrier]], whole)
            arm = unstretched(rotations, arm, share, own)
        after[:, landmark] = place + _turned(turns[:, SEGMENT_INDEX[carrier]], arm)
    rotations = multiply(deltas, motion.rotations[:count])
    return replace(motion, rotations=rotations, positions=after)


def _bent(
    arms: Sequence[np.ndarray],
    slow: np.ndarray,
    turns: np.ndarray,
    hold: Hold | None,
    segment: str,
) -> np.ndarray:
    """(n, 3) from the first to the last bone of a chain between a segment's parent and itself, all
    but the last of which share the slow part of their turns (n, S, 4), or make them as one where
    that holds. arms: (n, 3) each, from bone to bone in the animation."""
    ends = SEGMENT_INDEX[PARENTS[segment]], SEGMENT_INDEX[segment]
    start, end = np.moveaxis(slow[:, ends], 1, 0)
    between = rotation_vector(multiply(start * _CONJUGATE, end))
    bones = len(arms) + 1
    reach = np.zeros((len(slow), 3))
    for i, arm in enumerate(arms):
        share = multiply(start, exponential((i + 1) / bones * between))
        if hold:
            rest = multiply(share * _CONJUGATE, turns[:, ends[1]])
            rest = hold.whole[:, None] * rotation_vector(rest)
            share = multiply(share, exponential(rest))
        reach += _turned(matrix_from_quaternion(share), arm)
    return reach


def _turned(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return np.einsum("fij,fj->fi", matrices, vectors)

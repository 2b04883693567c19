# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller of a body that falls, until it rests."""

from collections.abc import Collection, Sequence
from typing import Protocol

import numpy as np

from ..body.character import Character
from ..body.state import State
from ..geometry.rotations import matrix_from_quaternion
from ..geometry.skeleton import SEGMENT_INDEX
from .behaviours import BEHAVIOURS, Pose, Roll
from .compliance import Compliance
from .mover import Mover, MovingWorld

# By trial on falls.
#: [s] after the loss of balance before which no body lets go. From then on one does that lies and
#: has been slower than this [m/s] for so long [s], and one that lies after so long [s] anyway.
_SOONEST, _SLOW, _CALM, _LATEST = 0.6, 0.4, 0.2, 2.2
#: [s] after which one that is propped on limbs alone lets go as one that lies.
_PROPPED = 3.0
#: [s] in which tone fades, and in which passive springs come to rest where they are.
_FADING, _RELAXING = 0.6, 0.4
#: Dry friction [N m] in joints, as a share of their passive damping [N m s/rad]; how much of it
#: locks a body that has been slower than this [m/s] for so long [s], and in what time [s].
_DRY, _LOCK = 1.0, 60.0
_STILL, _SETTLED, _LOCKING = 0.05, 0.15, 0.25
#: [s] after which one that has let go and does not sleep yet is restless: on edges of stairs and on
#: ramps one step of the physics in one of the control may keep a body moving.
_RESTLESS = 1.0
#: What touches the floor where a body lies.
_LYING = {
    SEGMENT_INDEX[name]
    for name in ("pelvis", "trunk", "head", "thigh_l", "thigh_r", "upper_arm_l", "upper_arm_r")
}


class FallingWorld(MovingWorld, Protocol):
    """What is asked of a world besides.

    calm: whether the body lies and hardly moves, which takes fewer steps of the physics.
    """

    calm: bool

    def body_transforms(self) -> tuple[np.ndarray, np.ndarray]:
        """Centres of mass and orientations of all segments."""

    def touched(self) -> dict[int, float]:
        """{segment: how deep [m] it is in what it touches}."""


class Fall(Mover[FallingWorld]):
    """One fall, without help from outside.

    shares: of each behaviour that is mixed with its own, in the step that begins; they come to 1 at
    most.
    """

    def __init__(
        self,
        character: Character,
        world: FallingWorld,
        behaviour: str,
        rate: float,
        mixed: Collection[str] = (),
    ) -> None:
        """world: with the body as it is when it loses its balance; behaviour: one of
        `behaviours.BEHAVIOURS`; mixed: others, of which it may have shares."""
        super().__init__(character, world, rate)
        self._named = behaviour
        self._behaviours = {
            name: BEHAVIOURS[name](
                character, self._compliance, character.limits, world, self._interval
            )
            for name in dict.fromkeys((behaviour, *mixed))
        }
        self._rest = _Rest(self._compliance, self._interval)
        self.shares: dict[str, float] = dict.fromkeys(mixed, 0.0)
        #: Joint positions and centres of mass (2, S, 3) [m] of the last decision.
        self._before: np.ndarray | None = None

    @property
    def asleep(self) -> bool:
        """Whether the body lies so still that it moves no more."""
        return self._rest.asleep

    @property
    def braces_instead(self) -> bool:
        """Whether it was to roll, and braces, since it has neither the speed nor the time."""
        one = self._behaviours[self._named]
        return isinstance(one, Roll) and not one.rolls

    def friction(self) -> tuple[Sequence[int], Sequence[float], Sequence[float]]:
        """What World.drive needs in that step: dry friction in all joints."""
        return self._dofs, self._zeros, self._rest.friction.tolist()

    def _decide(self, time: float, state: State) -> None:
        centres, turns = self._world.body_transforms()
        frames = matrix_from_quaternion(turns)
        positions = centres - np.einsum("sij,sj->si", frames, self._character.centres)
        now = np.stack([positions, centres])
        moved = np.zeros_like(now) if self._before is None else now - self._before
        self._before, speeds = now, moved / self._interval
        self.touched.see(time, self._world.touched())
        if time > _SOONEST:
            fastest = float(np.sqrt((speeds[1] ** 2).sum(1)).max())
            self._rest.settle(
                time, fastest, not _LYING.isdisjoint(self.touched.since), state.angles
            )
            self._world.calm = self._rest.calm and fastest < _SLOW
        if self._rest.awake:
            self._act(time, Pose(positions, frames, state.angles, speeds[0]))
        else:  # whatever a behaviour would have it do, nothing of it is left
            self._compliance.tone[:] = self._compliance.braking[:] = 0.0

    def _act(self, time: float, pose: Pose) -> None:
        """Do of each behaviour its share: what their torques would be, in these shares."""
        for one in self._behaviours.values():
            one.update(time, pose, self.touched.ever)
        given = dict.fromkeys(self._behaviours, 0.0) | self.shares
        given[self._named] += max(0.0, 1.0 - sum(given.values()))
        shares = np.array([*given.values()])[:, None]
        tones, targets, brakings = np.array(
            [(one.tone, one.target, one.braking) for one in self._behaviours.values()]
        ).swapaxes(0, 1)
        tone = (shares * tones).sum(0)
        held = tone > 0
        parts = (shares * tones)[:, held] / tone[held]
        compliance, firmness = self._compliance, self._rest.awake * self.strength
        compliance.target[held] = (parts * targets[:, held]).sum(0)
        compliance.tone = firmness * tone
        compliance.braking = firmness * (shares * brakings).sum(0)


class _Rest:
    """How a body that lies comes to rest.

    What moves in the end is the creep of passive springs: they are relaxed where they are, dry
    friction holds the joints, and locks them once nothing moves. awake: share of its tone that the
    body still has. friction (dofs,) [N m].
    """

    def __init__(self, compliance: Compliance, interval: float) -> None:
        """interval [s] from one `settle` to the next."""
        self._compliance, self._interval = compliance, interval
        #: For how long [s] it has been slow, and still, and has had no tone.
        self._slow = self._still = self._toneless = 0.0
        self._lock = 0.0
        self.awake = 1.0
        self.friction = np.zeros(len(compliance.rest))

    @property
    def calm(self) -> bool:
        """Whether it lets go, or has not done so for long: by then it sleeps, or is restless, which
        few steps of the physics may be the reason of."""
        return self.awake < 1 and self._toneless < _RESTLESS

    @property
    def asleep(self) -> bool:
        """Whether it lies still, all locked: what still creeps is the engine's solver."""
        return self._lock == 1.0

    def settle(self, time: float, fastest: float, lies: bool, angles: np.ndarray) -> None:
        """Go on at a time [s] after the loss of balance. fastest: speed [m/s] of the fastest
        segment. lies: whether more than feet, shins and forearms touch: what stands on those holds
        itself, for a while. angles (dofs,) [rad]."""
        passed, compliance = self._interval, self._compliance
        lies = lies or time > _PROPPED
        self._slow = self._slow + passed if lies and fastest < _SLOW else 0.0
        if lies and (self._slow > _CALM or time > _LATEST or self.awake < 1):
            self.awake = max(0.0, self.awake - passed / _FADING)
        loose = 1 - self.awake
        compliance.rest += min(1.0, passed / _RELAXING) * loose * (angles - compliance.rest)
        self._toneless += passed * (self.awake == 0)
        still = fastest < _STILL and self.awake == 0
        self._still = self._still + passed if still else 0.0
        firmer = passed / _LOCKING if self._still > _SETTLED else -2 * passed / _LOCKING
        self._lock = min(max(self._lock + firmer, 0.0), 1.0)
        self.friction = (loose * _DRY + self._lock * _LOCK) * compliance.damping

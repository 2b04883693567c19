# SPDX-License-Identifier: GPL-3.0-or-later
"""Sok's controller in three dimensions: what to do next is looked up in samples of what was done.

Sok, Kim, Lee, "Simulating Biped Behaviors from Human Motion Data", SIGGRAPH 2007, section 5.1, over
this project's tracking and balance. A sample is how a body was while it walked, and where in its
cycle that was. Where a body goes on in its cycle is then no matter of the clock: it is the mean of
the samples that are nearest to how it is. Their poses are those of one cycle, so that the mean of
poses, which the paper takes, is the pose of that mean.

    clocked = Attempt(problem, gains, 0)
    clocked.go_on(14.0)
    Attempt(problem, gains, 1, clocked.seen()).go_on(600.0)
"""

import importlib
from dataclasses import dataclass
from functools import cached_property, partial
from math import pi
from typing import Any

import numpy as np

from ..body.character import Character
from ..body.sole import CLEARANCE
from ..body.state import State
from ..control.balance import Memory
from ..control.controller import Controller
from ..control.legs import Legs
from ..exceptions import SettingsError
from ..gains.gains import Gains
from ..reference.gait import Endless
from ..search.trial import Problem
from ..simulation.simulation import Moment

#: With which share of what samples say, clock and samples together stand longest, by trial: with
#: 0.2 one of six fast walks fell, with 0.5 five, with 1 all.
BOTH = 0.1
#: Neighbours that are asked, and weights of what is compared, where they are not one: Table 2 of
#: the paper, NormalWalk.
NEIGHBOURS = 6
FEET, UP, ANGLES = 15.0, 2.0, 0.1
#: A distance below which the nearest sample alone counts. By judgement.
_SAME = 1e-6
#: [Hz] at which samples are looked up. By judgement: at 30 Hz walks stood as long.
LOOKED_UP = 60.0
#: A walk goes by the clock for so long [s]: who begins is like none who walks.
_STARTS = 3.0
#: Share of the height of its centre of mass at the start below which a body has fallen.
_FALLEN = 0.75
#: A body strays that is farther from all samples, for so many frames (the paper's), than so many
#: times what these are apart. By trial on walks that fell.
_FRAMES, _STRAYED = 5, 3.0
#: Cycles whose beginning is kept to go back to, and cycles that are added from there.
_BACK, _ADDED = 3, 2


class Features:
    """What of a body is compared (the paper's section 5.1), whatever its heading and its place:
    angles and speeds of its joints; height and velocity of its pelvis, and which way is up there;
    ankles as seen from it, and how fast they move so; whether heels and balls touch."""

    def __init__(self, character: Character, floor: float) -> None:
        """floor: its height [m]."""
        self._legs, self._feet, self._floor = Legs(character), character.feet, floor

    def of(self, state: State) -> np.ndarray:
        """(f,) of a state that knows its legs, each by its weight."""
        legs, frame = self._legs, state.frame
        legs.update(state.positions, state.frames, state.angles)
        x, y = frame[:2, 0] / np.hypot(*frame[:2, 0])
        heading = np.array([[x, y, 0.0], [-y, x, 0.0], [0.0, 0.0, 1.0]])
        ankles = legs.anchors[:, 2]
        # Hip and knee move the ankle: J q', as seen from the pelvis.
        turning = state.speeds[6:][legs.dofs].reshape(2, -1)[:, :4, None]
        arms = ankles[:, None] - legs.anchors[:, [0, 0, 0, 1]]
        moving = (np.cross(legs.axes[:, :4], arms) * turning).sum(1)
        touching = []
        for foot, ankle, columns in zip(self._feet, ankles, state.frames[[3, 6]], strict=True):
            heights = ankle[2] + foot.corners @ columns[:, 2] - self._floor
            touching += [float(part.min() < CLEARANCE) for part in (heights[:2], heights[2:])]
        return np.concatenate(
            [
                ANGLES * state.angles,
                state.speeds[6:],
                [state.root[2] - self._floor],
                heading @ frame @ state.speeds[3:6],
                UP * (heading @ frame[:, 2]),
                FEET * ((ankles - state.root) @ frame).ravel(),
                (moving @ frame).ravel(),
                touching,
            ]
        )


@dataclass(frozen=True)
class Samples:
    """How a body was, features (n, f) as Features has them, and where in its cycle, phases (n,)
    from 0 to 1."""

    features: np.ndarray
    phases: np.ndarray

    def __len__(self) -> int:
        return len(self.phases)

    def __add__(self, other: "Samples") -> "Samples":
        return Samples(
            np.concatenate([self.features, other.features]),
            np.concatenate([self.phases, other.phases]),
        )

    @cached_property
    def _tree(self) -> Any:
        try:
            spatial = importlib.import_module("scipy.spatial")
        except ImportError as error:
            raise SettingsError(
                "Samples are looked up with SciPy, which is not installed: pip install scipy."
            ) from error
        return spatial.cKDTree(self.features)

    @cached_property
    def spread(self) -> float:
        """How far a sample is from the nearest other one: 95 of 100 are nearer."""
        apart, _ = self._tree.query(self.features, 2)
        return float(np.percentile(apart[:, 1], 95))

    def look_up(self, features: np.ndarray, neighbours: int = NEIGHBOURS) -> tuple[float, float]:
        """The phase at features (f,), a mean of the nearest samples by the inverse of their
        distances (the paper's equation of the controller), and the least of these distances."""
        apart, nearest = self._tree.query(features, [*range(1, 1 + min(neighbours, len(self)))])
        if apart[0] < _SAME:
            return float(self.phases[nearest[0]]), float(apart[0])
        mean = (np.exp(2j * pi * self.phases[nearest]) / apart).sum()
        return float(np.angle(mean) / (2 * pi) % 1), float(apart[0])


class Regressed(Controller):
    """The controller of an endless walk of which samples tell where in its cycle it is.

    samples: None to go by the clock. trust: by such a share of what they say the clock is put
    forward or back, each time that it looks; 1 goes by them alone, as the paper's controller.
    ahead: steps by which it is ahead of the clock. seen: features, and phase, each time that it
    looked at the body. apart: how far that was from the nearest sample then.
    """

    samples: Samples | None = None
    trust = 1.0

    def __init__(self, period: int, *arguments: Any) -> None:
        """period: steps of a cycle. arguments: of a Controller."""
        super().__init__(*arguments)
        self._period = period
        self._last = len(self.balance.reference.angles) - period
        self._every = max(1, round(self.balance.reference.rate / LOOKED_UP))
        self._features = Features(self.character, self.world.floor)
        self.ahead = 0
        self.seen: list[tuple[np.ndarray, float]] = []
        self.apart: list[float] = []

    def restart(self, step: int, memory: Memory) -> None:
        """Go on from `step` of the clock."""
        super().restart(step + self.ahead, memory)

    def torques(self, step: int) -> np.ndarray:
        """(dofs,) joint torques [N m] for the step that begins now."""
        if step % self._every == 0:
            self._look(step)
        return super().torques(step + self.ahead)

    def toe_motor(self, step: int) -> tuple[list[int], list[float], list[float]]:
        """What World.drive needs in the step that begins now, after `torques`."""
        return super().toe_motor(step + self.ahead)

    def _look(self, step: int) -> None:
        """See how the body is, and go on where samples have that."""
        features = self._features.of(self.world.state())
        if self.samples is not None:
            phase, apart = self.samples.look_up(features)
            self.apart.append(apart)
            now = step + self.ahead
            share = (phase - now / self._period + 0.5) % 1 - 0.5
            missing = round(self.trust * share * self._period)
            if missing and 0 <= now + missing < self._last:
                memory = self.memory()
                self.ahead += missing
                self.restart(step, memory._replace(planned=memory.planned + missing))
        self.seen.append((features, (step + self.ahead) / self._period % 1))


@dataclass(frozen=True)
class _Begun:
    """The moment at which a cycle began: a sample of the motion, the state, by how many steps it
    was ahead of the clock, and how much had been seen."""

    sample: int
    moment: Moment
    ahead: int
    seen: int


class Attempt:
    """A walk that goes on by samples for as long as it stands.

    samples: that it goes by, with those that were added; None to go by the clock. added: how often
    some were. fell: when [s], None while it stands.
    """

    def __init__(
        self,
        problem: Problem,
        gains: Gains,
        seed: int,
        samples: Samples | None = None,
        trust: float = 1.0,
    ) -> None:
        """problem: of an Endless motion, which is a tenth longer than what is to be walked, and
        10 s. seed: of the motor noise. trust: as Regressed has it."""
        motion = problem.motion
        assert isinstance(motion, Endless)
        self._simulation = simulation = problem.simulation(gains, seed)
        self._rate, self._period = motion.rate, motion.walk.cycle.period
        steps = self._period * problem.reference.steps_per_sample
        simulation.controlled_by = partial(Regressed, steps)
        simulation.begin()
        assert isinstance(simulation.controller, Regressed)
        self._controller = simulation.controller
        self._controller.trust = trust
        self.samples, self.added = samples, 0
        self.fell: float | None = None
        self._masses = problem.character.masses / problem.character.mass
        self.com = [self._centre()]
        self._begun: list[_Begun] = []

    def close(self) -> None:
        """Free the engine's memory."""
        self._simulation.close()

    @property
    def seconds(self) -> float:
        """For how long it has walked."""
        return (len(self.com) - 1) / self._rate

    @property
    def speed(self) -> float:
        """Mean speed [m/s] over the floor."""
        return float(np.hypot(*(self.com[-1] - self.com[0])[:2])) / max(self.seconds, 1e-9)

    def seen(self) -> Samples:
        """What it has seen of itself since its start was over."""
        return _samples(self._controller.seen[round(_STARTS * LOOKED_UP) :])

    def go_on(self, seconds: float, rescues: int = 0) -> bool:
        """Go on until it has walked for so many seconds, or falls. rescues: how often at most
        samples are added where it strays. Returns whether it stands."""
        controller = self._controller
        while self.seconds < seconds and self.fell is None:
            walks = self.seconds >= _STARTS
            controller.samples = self.samples if walks else None
            begins = not self._begun or (len(self.com) - 1) % self._period == 0
            if rescues and walks and begins:
                self._keep()
            stands = self._advance()
            if stands and not (rescues and self._strays()):
                continue
            at = self.seconds
            if self.added < rescues and self._rescued():
                self.added += 1
            elif self.added < rescues or not stands:
                self.fell = at
        return self.fell is None

    def _advance(self) -> bool:
        """Go on by a sample of the motion. Returns whether it stands."""
        self._simulation.advance(len(self.com))
        self.com.append(self._centre())
        return bool(self.com[-1][2] > _FALLEN * self.com[0][2])

    def _centre(self) -> np.ndarray:
        """Its centre of mass now (3,) [m]."""
        centres, _ = self._simulation.world.body_transforms()
        return self._masses @ centres

    def _strays(self) -> bool:
        """Whether it has been farther from all samples for some frames than these from each
        other."""
        last = self._controller.apart[-_FRAMES:]
        if self.samples is None or len(last) < _FRAMES:
            return False
        return min(last) > _STRAYED * self.samples.spread

    def _keep(self) -> None:
        """Keep the moment at which a cycle begins, and some before that."""
        sample = len(self.com) - 1
        moment = self._simulation.settle(sample)
        seen = len(self._controller.seen)
        self._begun.append(_Begun(sample, moment, self._controller.ahead, seen))
        if len(self._begun) > _BACK:
            self._simulation.forget(self._begun.pop(0).moment)

    def _return(self, begun: _Begun) -> None:
        """Be where a cycle began."""
        controller = self._controller
        controller.ahead = begun.ahead
        self._simulation.rewind(begun.moment, begun.sample)
        del self.com[begun.sample + 1 :], controller.seen[begun.seen :]
        controller.apart.clear()

    def _rescued(self) -> bool:
        """Go back to where a cycle began, and add what the clock does from there; from one cycle
        earlier if it falls, too. Returns whether that stood."""
        controller = self._controller
        while self._begun:
            begun = self._begun.pop()
            self._return(begun)
            controller.samples = None
            stands = all(self._advance() for _ in range(_ADDED * self._period))
            added = _samples(controller.seen[begun.seen :])
            self._return(begun)
            self._simulation.forget(begun.moment)
            if stands and self.samples is not None:
                self.samples += added
                return True
        return False


def _samples(seen: list[tuple[np.ndarray, float]]) -> Samples:
    return Samples(np.array([one for one, _ in seen]), np.array([phase for _, phase in seen]))

# SPDX-License-Identifier: GPL-3.0-or-later
"""Short simulations of a corrected reference, all from the same moment, and what each costs.

A search asks for many of them: `costs` and `perform` are what any process can run, plain data in
and plain data out. A process keeps the world that it has simulated last, with its state at every
node, so that it goes on where it was asked last time.
"""

import importlib
import json
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..body.character import Character
from ..exceptions import PoiseError, SettingsError, SimulationError
from ..gains.gains import Gains
from ..geometry.rotations import (
    matrix_from_quaternion,
    multiply,
    quaternion_from_matrix,
    rotation_vector,
    unit,
)
from ..geometry.skeleton import FEET, SEGMENTS, TOES
from ..geometry.stance import LEFT, RIGHT, SIMULATED_CLEARANCE
from ..reference.reference import Reference
from ..simulation.recording import Observation
from .correction import SIZE, UNIT, Correction, columns_of, write
from .trial import Problem, Result, problem_of

#: Centres (S, 3) [m] and orientations (S, 4) of all segments.
Transforms = tuple[np.ndarray, np.ndarray]

# Chosen by trial, where nothing else is said: a first prototype rectified walks, a run, a jog and
# jumping jacks with them.

#: What the offsets behind the last free node of a window keep of it, from node to node.
DECAY = 0.8

# A sample ends as a fall: pelvis turned [rad], centre of mass too high or low [m], bodies [m].
_MOST_TURN, _MOST_RISE, _MOST_APART = 0.9, 0.3, 0.3
#: What a fall costs, at least.
FALL = 30.0

# Weights of the costs: of squared errors in SI units.
_POSE = 100.0  # bodies, relative to the centre of mass in plan
_FEET = 40.0  # against the target's, which are where they bear the weight
# A foot in the air should land farther out on the side to which the body has strayed, by so much
# per m/s and per m: only so does it come back. By trial on captured walks and jumping jacks.
_STEP_SPEED, _STEP_DRIFT = 0.25, 0.2
_PELVIS = 2.0
_DRIFT = 12.0
_VELOCITY, _RETURN = 6.0, 1.5  # of the centre of mass, which should come back at 1.5 / s
_SOLES = 3.0  # roll and yaw of feet that stand
_SPIN = 0.02
_SLIP = 2.0
_OFFSETS = 0.02
_EARLY = 0.3  # c of Sok's weight over the window, (t / T)^2 + c, which they do not give

_EDGE = 0.5  # of the first simplex, in units: as wide as the prototype's candidates were spread


def costs(
    payload: bytes,
    gains: dict[str, Any],
    spacing: int,
    committed: np.ndarray,
    candidates: Sequence[np.ndarray],
    horizon: int,
) -> Result:
    """What candidates cost, each in a simulation of its own.

    payload, gains: as `trial.evaluate`. spacing: samples between nodes. committed: (k + 1, 18)
    offsets up to the node k at which all begin. candidates: (n, free, 18) offsets of the nodes
    that follow. horizon: nodes that are simulated. Returns {"costs": (n,), "cpu": [s]}, a cost of
    30 or more being a fall, or {"error": …} as `trial.evaluate`.
    """
    started = time.process_time()
    try:
        stage = _stage(payload, json.dumps(gains, sort_keys=True), spacing)
        found = [stage.cost(committed, window, horizon) for window in candidates]
    except PoiseError as error:
        return {"error": [type(error).__name__, str(error)]}
    return {"costs": found, "cpu": time.process_time() - started}


def perform(payload: bytes, gains: dict[str, Any], spacing: int, committed: np.ndarray) -> Result:
    """Simulate the last interval of the committed nodes, (k + 1, 18) offsets.

    Returns {"samples": `Observation.plain` of each sample of the interval, "cpu": [s]}; for the
    first node, the start alone. {"error": …} as `trial.evaluate`.
    """
    started = time.process_time()
    try:
        stage = _stage(payload, json.dumps(gains, sort_keys=True), spacing)
        samples = [seen.plain() for seen in stage.perform(committed)]
    except PoiseError as error:
        return {"error": [type(error).__name__, str(error)]}
    return {"samples": samples, "cpu": time.process_time() - started}


def simplex(
    payload: bytes,
    gains: dict[str, Any],
    spacing: int,
    committed: np.ndarray,
    window: np.ndarray,
    horizon: int,
    evaluations: int,
) -> Result:
    """Sok's downhill simplex (Nelder and Mead) from one window on. Needs SciPy.

    window: (free, 18); evaluations: how many at most; the rest as `costs`. Returns {"cost",
    "window", "evaluations", "cpu"} of the best, or {"error": …}.
    """
    started = time.process_time()
    try:
        optimize = _scipy()
        stage = _stage(payload, json.dumps(gains, sort_keys=True), spacing)
        start = (window / UNIT).ravel()
        corners = start + np.vstack([np.zeros(start.size), _EDGE * np.eye(start.size)])
        found = optimize.minimize(
            lambda x: stage.cost(committed, x.reshape(window.shape) * UNIT, horizon),
            start,
            method="Nelder-Mead",
            options={"maxfev": evaluations, "initial_simplex": corners, "adaptive": True},
        )
    except PoiseError as error:
        return {"error": [type(error).__name__, str(error)]}
    return {
        "cost": float(found.fun),
        "window": found.x.reshape(window.shape) * UNIT,
        "evaluations": int(found.nfev),
        "cpu": time.process_time() - started,
    }


def _scipy() -> Any:
    try:
        return importlib.import_module("scipy.optimize")
    except ImportError as error:
        raise SettingsError(
            "Rectification by the simplex method needs SciPy: install it, or use the method 'cma'."
        ) from error


@lru_cache(maxsize=2)
def _stage(payload: bytes, gains: str, spacing: int) -> "Stage":
    problem = problem_of(payload)
    return Stage(problem, Gains.from_dict(json.loads(gains), problem.character), spacing)


class Stage:
    """A simulation that can go on from every node at which it has been."""

    def __init__(self, problem: Problem, gains: Gains, spacing: int) -> None:
        """problem: trial.Problem; spacing: samples between nodes."""
        self.spacing = spacing
        correction = Correction(spacing, np.zeros((1, SIZE)))
        self._simulation = problem.simulation(gains, problem.settings.seed, correction=correction)
        self._reference = self._simulation.reference
        self._columns = columns_of(problem.character)
        self._goal = _Goal(problem.character, self._reference)
        self._simulation.begin()
        self._first = self._simulation.observe(0)
        #: The state at each node of the way that was taken last.
        self._committed = np.zeros((1, SIZE))
        self._saved = [self._simulation.settle(0)]

    def __len__(self) -> int:
        """Samples of the motion."""
        return len(self._reference)

    def cost(self, committed: np.ndarray, window: np.ndarray, horizon: int) -> float:
        """What the offsets `window` (free, 18) of the nodes after the committed ones cost."""
        first, last = self._return(committed), len(self) - 1
        last = min(last, first + horizon * self.spacing)
        offsets = _decaying(np.vstack([committed[-1:], window]), horizon + 1)
        self._write(first, last, offsets)
        goal, simulation, states = self._goal, self._simulation, []
        goal.begin(first, simulation.world.body_transforms())
        for sample in range(first + 1, last + 1):
            simulation.advance(sample)
            states.append(simulation.world.body_transforms())
            if goal.fell(sample, *states[-1]):
                left = (last - sample) / (last - first)
                return FALL * (1 + left)
        size = np.square(window / UNIT).mean()
        return float(goal.cost(first, states) + _OFFSETS * size)

    def perform(self, committed: np.ndarray) -> list[Observation]:
        """What there is to record of the last interval of the committed nodes."""
        if len(committed) == 1:
            self._return(committed)
            return [self._first]
        first = self._return(committed[:-1])
        return self._go_on(first, committed)

    def _go_on(self, first: int, committed: np.ndarray) -> list[Observation]:
        """Simulate from the node at sample `first` to the next one, or to the end."""
        last = min(first + self.spacing, len(self) - 1)
        self._write(first, last, committed[-2:])
        samples = []
        for sample in range(first + 1, last + 1):
            self._simulation.advance(sample)
            samples.append(self._simulation.observe(sample))
        if not np.isfinite(samples[-1].centres).all():
            raise SimulationError(
                "The simulation blew up: take softer gains (a lower frequency) or a higher rate."
            )
        self._saved.append(self._simulation.settle(last))
        self._committed = committed.copy()
        return samples

    def _return(self, committed: np.ndarray) -> int:
        """Go to the last committed node, and there simulate what has not been simulated yet.
        Returns the sample at which it is."""
        shared = 1
        most = min(len(committed), len(self._committed))
        while shared < most and (committed[shared] == self._committed[shared]).all():
            shared += 1
        for saved in self._saved[shared:]:
            self._simulation.forget(saved)
        del self._saved[shared:]
        self._committed = self._committed[:shared]
        node = shared - 1
        while node + 1 < len(committed):
            self._simulation.rewind(self._saved[node], node * self.spacing)
            self._go_on(node * self.spacing, committed[: node + 2])
            node += 1
        self._simulation.rewind(self._saved[node], node * self.spacing)
        return node * self.spacing

    def _write(self, first: int, last: int, offsets: np.ndarray) -> None:
        target = self._simulation.target
        write(target, self._reference, self._columns, self.spacing, first, last, offsets)


def _decaying(offsets: np.ndarray, count: int) -> np.ndarray:
    """The first `count` nodes of offsets that die away behind the last of them."""
    behind = count - len(offsets)
    if behind <= 0:
        return offsets[:count]
    shares = DECAY ** np.arange(1, behind + 1)
    return np.vstack([offsets, shares[:, None] * offsets[-1]])


class _Goal:
    """How far a simulation is from the reference, sample by sample."""

    def __init__(self, character: Character, reference: Reference) -> None:
        centres = reference.smooth.centres
        self._rate = reference.trajectory.rate
        self._shares = character.masses / character.masses.sum()
        self._com = np.einsum("s,fsi->fi", self._shares, centres)
        self._centres = centres - self._com[:, None] * [1, 1, 0]
        joints, frames = character.pose(reference.trajectory)
        target = character.body_centres(joints, frames)
        self._feet = target[:, FEET] - np.einsum("s,fsi->fi", self._shares, target)[:, None]
        self._soles = frames[:, FEET]
        stance = reference.stance[:, None]
        self._swings = (stance & np.array([LEFT, RIGHT]) == 0).astype(float)
        turns = quaternion_from_matrix(reference.smooth.frames[:, 0])
        self._unturned = turns * [1, -1, -1, -1]
        steps = reference.steps_per_sample
        self._floors = reference.floors[: len(centres) * steps : steps]
        self._ankles = joints[:, FEET, :2]
        shapes = {shape.segment: shape for shape in character.shapes}
        signs = np.array([[x, y, -1] for x in (-1, 1) for y in (-1, 1)])
        self._corners = np.stack(
            [shapes[SEGMENTS[s]].position + signs * shapes[SEGMENTS[s]].size for s in FEET + TOES]
        )

    def begin(self, first: int, transforms: Transforms) -> None:
        """Begin at a sample, in this state."""
        self._before = transforms
        self._first = first

    def fell(self, sample: int, centres: np.ndarray, turns: np.ndarray) -> bool:
        """Whether this state is that of a fall."""
        com = self._shares @ centres
        if not abs(com[2] - self._com[sample, 2]) < _MOST_RISE:
            return True
        w = abs(float(multiply(turns[0], self._unturned[sample])[0]))
        if w < np.cos(_MOST_TURN / 2):
            return True
        apart = centres - self._centres[sample]
        apart[:, :2] -= com[:2]
        return float(self._shares @ np.square(apart).sum(1)) > _MOST_APART**2

    def cost(self, first: int, states: list[Transforms]) -> float:
        """The mean cost of the samples that follow `first`, weighted as Sok does."""
        states = [self._before, *states]
        centres = np.array([centres for centres, _ in states])
        turns = np.array([turns for _, turns in states])
        samples = slice(first, first + len(states))
        com = self._shares @ centres
        flat = com * [1, 1, 0]
        apart = centres - flat[:, None] - self._centres[samples]
        total = _POSE * (np.square(apart).sum(2) @ self._shares)
        turn = rotation_vector(multiply(turns[:, 0], self._unturned[samples]))
        total += _PELVIS * np.square(turn).sum(1)
        drift = com - self._com[samples]
        velocity = np.diff(drift, axis=0, prepend=drift[:1]) * self._rate
        feet = (centres - com[:, None])[:, FEET] - self._feet[samples]
        aside = _STEP_SPEED * velocity[:, :2] + _STEP_DRIFT * drift[:, :2]
        feet[..., :2] -= self._swings[samples, :, None] * aside[:, None]
        total += _FEET * np.square(feet).sum((1, 2))
        total += _DRIFT * np.square(drift[:, :2]).sum(1)
        total += _SOLES * self._tipped(samples, turns)
        total = total[1:]
        velocity = velocity[1:]
        velocity[:, :2] += _RETURN * drift[1:, :2]
        total += _VELOCITY * np.square(velocity).sum(1)
        total += _SPIN * np.square(np.diff(turn, axis=0) * self._rate).sum(1)
        total += _SLIP * self._slip(first, centres, turns)
        time = np.arange(1, len(total) + 1) / len(total)
        weight = time**2 + _EARLY
        return (weight @ total) / weight.sum()

    def _tipped(self, samples: slice, turns: np.ndarray) -> np.ndarray:
        """(n,) squared roll and yaw [rad] of feet that are to stand, both feet's."""
        goal = self._soles[samples]
        turn = matrix_from_quaternion(turns[:, FEET]) @ goal.swapaxes(-1, -2)
        vector = rotation_vector(quaternion_from_matrix(turn))
        across = unit(goal[..., 1] * [1, 1, 0])
        square = np.square(vector).sum(-1) - np.square((vector * across).sum(-1))
        return (square * (1 - self._swings[samples])).sum(1)

    def _slip(self, first: int, centres: np.ndarray, turns: np.ndarray) -> np.ndarray:
        """(n,) squared horizontal speed [m/s] of the sole corners on the floor, both feet's."""
        frames = matrix_from_quaternion(turns[:, FEET + TOES])
        corners = np.einsum("nfij,fcj->nfci", frames, self._corners)
        corners += centres[:, FEET + TOES, None]
        speed = np.square(np.diff(corners[..., :2], axis=0) * self._rate).sum(-1)
        samples = slice(first + 1, first + len(corners))
        floors = np.tile(self._floors[samples], (1, 2, 1))  # of feet, then of their toes
        apart = corners[1:, ..., :2] - np.tile(self._ankles[samples], (1, 2, 1))[:, :, None]
        ground = floors[..., :1] + np.einsum("nfci,nfi->nfc", apart, floors[..., 1:])
        low = corners[1:, ..., 2] < ground + SIMULATED_CLEARANCE
        return (speed * low).sum((1, 2)) / np.maximum(low.sum((1, 2)), 1)

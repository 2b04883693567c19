# SPDX-License-Identifier: GPL-3.0-or-later
"""One candidate's trial, as any process can run it: plain data in, plain data out.

Pickled classes would carry the name under which the package is loaded, which inside Blender is
another one than in a worker process.
"""

import hashlib
import io
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from .. import exceptions
from ..body.character import Character
from ..body.morphology import Morphology, Reshaping
from ..exceptions import PoiseError, SettingsError, SimulationError
from ..gains.gains import Gains
from ..geometry.motion import Motion
from ..geometry.solids import stands_at
from ..geometry.trajectory import Trajectory
from ..options import Option
from ..ranges import RANGES
from ..reference.gait import Endless, Walk
from ..reference.reference import Reference
from ..simulation.measures import T_MAX
from ..simulation.scenario import Scenario
from ..simulation.simulation import Correcting, Settings, Simulation, held_at, reference_of
from ..support.planting import physical
from ..support.terrain import Terrain
from .clip_features import clip_features

#: What a task comes to, by names: plain data that crosses processes. {"error": [class, sentence]}
#: if the input is at fault, as `raise_error` raises it.
Result = dict[str, Any]

#: SCA12's motor noise [N m].
NOISE = 5.0

#: What can happen in every trial, drawn anew from its seed.
DISTURBANCES = {
    "pushes": Option(
        0.0,
        "Pushes (N)",
        "Push the trunk with this force in every trial, for 0.2 s once a second, in random "
        "directions that each generation draws anew [N]",
        RANGES["force"],
        zero="none",
        most=300,
        step=10,
        digits=0,
    ),
    "spheres": Option(
        0.0,
        "Spheres (kg)",
        "Throw a sphere of this mass at the neck in every trial, once a second, from random "
        "directions that each generation draws anew [kg]",
        RANGES["sphere"],
        zero="none",
        most=10,
        step=0.25,
        digits=2,
    ),
}


@dataclass(frozen=True)
class Problem:
    """What gains are tuned for: a clip, a body and the conditions of a trial.

    mass: of the body [kg], None from its height. scenario: what happens in every trial.
    disturbance: what else happens, drawn anew from each trial's seed: {"pushes": N} or
    {"spheres": kg}, see `scenario.random_pushes` and `scenario.random_throws`. morphology: the
    proportions of the body.
    """

    motion: Motion
    mass: float | None = None
    settings: Settings = field(default_factory=lambda: Settings(duration=T_MAX, noise=NOISE))
    disturbance: dict[str, float] = field(default_factory=dict)
    scenario: Scenario = field(default_factory=Scenario)
    morphology: Morphology = field(default_factory=Morphology)

    def __post_init__(self) -> None:
        unknown = self.disturbance.keys() - DISTURBANCES.keys()
        if unknown or not all(0 <= v < np.inf for v in self.disturbance.values()):
            raise SettingsError(
                "Random disturbances are 'pushes' [N] and 'spheres' [kg], from 0 up."
            )

    @cached_property
    def _embodied(self) -> tuple[Character, Motion, Reshaping | None]:
        floor = stands_at(self.scenario.colliders, self.motion)
        clip = self.motion.source if isinstance(self.motion, Endless) else self.motion
        terrain = Terrain.of(self.scenario, floor or 0.0, clip)
        held = held_at(self.scenario, floor or 0.0, clip)
        character = Character.from_motion(clip, self.mass, floor, terrain, held)
        if not self.morphology:
            return character, self.motion, None
        reshaping = Reshaping(character, self.motion, self.morphology)
        return reshaping.character, reshaping.motion, reshaping

    @property
    def character(self) -> Character:
        """The body."""
        return self._embodied[0]

    @property
    def shaped_motion(self) -> Motion:
        """The motion with the proportions of the body."""
        return self._embodied[1]

    @property
    def reshaping(self) -> Reshaping | None:
        """What gave the body other proportions than the motion has, None if it has the same."""
        return self._embodied[2]

    def under(self, settings: Settings, scenario: Scenario) -> "Problem":
        """The same clip and body under other settings, in a scenario with the same colliders."""
        other = replace(self, settings=settings, scenario=scenario)
        vars(other)["_embodied"] = self._embodied
        return other

    @cached_property
    def reference(self) -> Reference:
        """The reference, which all trials share. Raises MotionError."""
        return self.build_reference()

    def build_reference(self, plant: Callable[..., Trajectory] = physical) -> Reference:
        """A Reference of this problem; plant: as Reference.build has it. Raises MotionError."""
        return reference_of(self.character, self.shaped_motion, self.settings, self.scenario, plant)

    def simulation(
        self,
        gains: Gains | None,
        seed: int,
        scenario: Scenario | None = None,
        correction: Correcting | None = None,
    ) -> Simulation:
        """A Simulation of this problem with these gains and this seed of the motor noise and of
        the random disturbances. scenario: what happens, None for the problem's own. correction: of
        the reference, if it is rectified."""
        settings, reference = replace(self.settings, seed=seed), self.reference
        duration = (len(reference) - 1) / self.motion.rate
        scenario = (scenario or self.scenario).with_drawn(self.disturbance, duration, seed)
        motion = self.shaped_motion
        return Simulation(self.character, motion, gains, settings, reference, scenario, correction)

    def to_bytes(self) -> bytes:
        """The problem as bytes, the same for equal problems."""
        motion, walk = self.motion, None
        if isinstance(self.motion, Endless):
            motion, walk = self.motion.source, self.motion.walk.as_dict()
        header = {
            "name": motion.name,
            "rate": motion.rate,
            "first_frame": motion.first_frame,
            "frame_step": motion.frame_step,
            "mass": self.mass,
            "settings": self.settings.as_dict(),
            "disturbance": self.disturbance,
            "scenario": self.scenario.as_dict(),
            "morphology": self.morphology.as_dict(),
            "walk": walk,
        }
        buffer = io.BytesIO()
        np.savez(
            buffer,
            header=np.array(json.dumps(header)),
            rotations=motion.rotations,
            positions=motion.positions,
        )
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, payload: bytes) -> "Problem":
        """The problem that `to_bytes` wrote."""
        with np.load(io.BytesIO(payload), allow_pickle=False) as arrays:
            header = json.loads(str(arrays["header"]))
            motion = Motion(
                header["name"],
                header["rate"],
                arrays["rotations"],
                arrays["positions"],
                header["first_frame"],
                header["frame_step"],
            )
        if header["walk"] is not None:
            character = Character.from_motion(motion, header["mass"])
            motion = Walk.from_dict(header["walk"]).motion(character, motion)
        return cls(
            motion,
            header["mass"],
            Settings.from_dict(header["settings"]),
            header["disturbance"],
            Scenario.from_dict(header["scenario"]),
            Morphology.from_dict(header["morphology"]),
        )


def digest(payload: bytes) -> str:
    """A short name of a problem's bytes, the same everywhere."""
    return hashlib.sha256(payload).hexdigest()[:16]


@lru_cache(maxsize=4)
def problem_of(payload: bytes) -> Problem:
    """The Problem of these bytes. A process keeps those that it has met lately, with what they
    have computed."""
    return Problem.from_bytes(payload)


def evaluate(payload: bytes, gains: dict[str, Any], seed: int) -> Result:
    """Run one trial.

    payload: of Problem.to_bytes. gains: of Gains.as_dict. seed: of the motor noise. Returns
    {"reward", the four mean errors, "fell_at" [s] or None, "fell_measure", "seconds" simulated,
    "cpu" [s]}; {"error": [class name, sentence]} if the problem or the gains are at fault.
    """
    started = time.process_time()
    try:
        problem = problem_of(payload)
        simulation = problem.simulation(
            Gains.from_dict(gains, problem.character, "candidate"), seed
        )
        result = _run(simulation)
    except PoiseError as error:
        return {"error": [type(error).__name__, str(error)]}
    return result | {"cpu": time.process_time() - started}


def describe(payload: bytes) -> Result:
    """Features of a problem's clip, as `clip_features` has them; {"error": …} as `evaluate`."""
    try:
        problem = problem_of(payload)
        return clip_features(problem.character, problem.shaped_motion)
    except PoiseError as error:
        return {"error": [type(error).__name__, str(error)]}


def _run(simulation: Simulation) -> Result:
    recording = simulation.recording
    reward, blew_up = None, False
    try:
        simulation.run()
        reward = recording.reward
    except SimulationError:  # these gains do; the next may not
        reward, blew_up = 0.0, True
    measures = recording.measures
    return {
        "reward": reward,
        **measures.averages(),
        "fell_at": measures.duration if blew_up else recording.fell_at,
        "fell_measure": "pose_error" if blew_up else recording.fell_measure,
        "seconds": measures.duration,
    }


def raise_error(result: Result) -> None:
    """Raise the PoiseError that a trial came back with, if it did."""
    if "error" in result:
        name, sentence = result["error"]
        raise getattr(exceptions, name)(sentence)

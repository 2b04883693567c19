# SPDX-License-Identifier: GPL-3.0-or-later
"""The physics of Poise: a library of its own, without Blender.

character = Character.from_motion(motion)
recording = Simulation(character, motion).run()
print(recording.summary())
"""

from .body.bake_measures import measures_of_bake
from .body.character import Character, Shape
from .contacts.contact_plan import ContactPlan
from .exceptions import (
    BakeError,
    CheckpointError,
    ExecutorError,
    GainsError,
    MotionError,
    PlanError,
    PoiseError,
    RigError,
    SettingsError,
    SimulationError,
)
from .gains.gains import BALANCE_MODES, Gains
from .geometry.motion import Motion
from .geometry.skeleton import LANDMARKS, SEGMENTS
from .geometry.solids import Collider, Solid
from .processes.workers import SerialExecutor, WorkerPool
from .reference.reference import Reference
from .search.optimization import Search, SearchSettings
from .search.robustness import LimitSearch, LimitSettings
from .search.trial import Problem
from .simulation.holds import Hold
from .simulation.recording import Recording
from .simulation.scenario import (
    Push,
    Scenario,
    Thing,
    Throw,
    random_pushes,
    random_throws,
)
from .simulation.simulation import Settings, Simulation
from .simulation.together import Together

__all__ = [
    "BALANCE_MODES",
    "LANDMARKS",
    "SEGMENTS",
    "BakeError",
    "Character",
    "CheckpointError",
    "Collider",
    "ContactPlan",
    "ExecutorError",
    "Gains",
    "GainsError",
    "Hold",
    "LimitSearch",
    "LimitSettings",
    "Motion",
    "MotionError",
    "PlanError",
    "PoiseError",
    "Problem",
    "Push",
    "Recording",
    "Reference",
    "RigError",
    "Scenario",
    "Search",
    "SearchSettings",
    "SerialExecutor",
    "Settings",
    "SettingsError",
    "Shape",
    "Simulation",
    "SimulationError",
    "Solid",
    "Thing",
    "Throw",
    "Together",
    "WorkerPool",
    "measures_of_bake",
    "random_pushes",
    "random_throws",
]

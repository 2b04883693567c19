# SPDX-License-Identifier: GPL-3.0-or-later
"""The physics of Poise: a library of its own, without Blender.

character = Character.from_motion(motion)
recording = Simulation(character, motion).run()
print(recording.summary())
"""

from .bake_measures import measures_of_bake
from .character import Character, Shape
from .contact_plan import ContactPlan
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
from .gains import BALANCE_MODES, Gains
from .motion import Motion
from .optimization import Search, SearchSettings
from .recording import Recording
from .reference import Reference
from .robustness import LimitSearch, LimitSettings
from .scenario import (
    Collider,
    Push,
    Scenario,
    Solid,
    Thing,
    Throw,
    random_pushes,
    random_throws,
)
from .simulation import Settings, Simulation
from .skeleton import LANDMARKS, SEGMENTS
from .trial import Problem
from .workers import SerialExecutor, WorkerPool

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
    "WorkerPool",
    "measures_of_bake",
    "random_pushes",
    "random_throws",
]

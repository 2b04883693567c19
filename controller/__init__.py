# SPDX-License-Identifier: GPL-3.0-or-later
"""The physics of Poise: a library of its own, without Blender.

character = Character.from_motion(motion)
recording = Simulation(character, motion).run()
print(recording.summary())
"""

from .bake_measures import measures_of_bake
from .character import Character, Shape
from .exceptions import (
    BakeError,
    GainsError,
    MotionError,
    PoiseError,
    RigError,
    SettingsError,
    SimulationError,
)
from .gains import BALANCE_MODES, Gains
from .motion import Motion
from .recording import Recording
from .reference import Reference
from .simulation import Settings, Simulation
from .skeleton import LANDMARKS, SEGMENTS

__all__ = [
    "BALANCE_MODES",
    "LANDMARKS",
    "SEGMENTS",
    "BakeError",
    "Character",
    "Gains",
    "GainsError",
    "Motion",
    "MotionError",
    "PoiseError",
    "Recording",
    "Reference",
    "RigError",
    "Settings",
    "SettingsError",
    "Shape",
    "Simulation",
    "SimulationError",
    "measures_of_bake",
]

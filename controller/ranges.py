# SPDX-License-Identifier: GPL-3.0-or-later
"""How large numbers may be: the one table that settings, panels and the command line follow."""

from dataclasses import dataclass
from numbers import Real
from typing import Any

from .exceptions import demand


@dataclass(frozen=True)
class Range:
    """What a number is called, the least and the most that it may be, and its unit."""

    what: str
    low: float
    high: float
    unit: str = ""

    def __contains__(self, value: float) -> bool:
        """Whether it may be; what is not a number may not."""
        return self.low <= value <= self.high

    def __str__(self) -> str:
        """ "50 to 10000 Hz"."""
        return f"{self.low:.10g} to {self.high:.10g} {self.unit}".rstrip()

    @property
    def limits(self) -> dict[str, float]:
        """The same as Blender's properties have it."""
        return {"min": self.low, "max": self.high}

    @property
    def limits_from_zero(self) -> dict[str, float]:
        """The same where 0 stands for none."""
        return {"min": 0.0, "max": self.high}

    def check(self, value: float) -> None:
        """Raise SettingsError for a number that may not be, and for what is none."""
        demand(isinstance(value, Real), f"A {self.what} of {value!r} is no number: give {self}.")
        told = f"{value:.10g} {self.unit}".rstrip()
        demand(value in self, f"A {self.what} of {told} is out of range: give {self}.")


#: By the name of the option; by judgement, wider than anybody needs. Those of frames are Blender's
#: own.
RANGES = {
    "blend": Range("blend", 0, 10_000, "frames"),
    "budget": Range("budget", 0.001, 1e7, "s"),
    "density": Range("density", 0.01, 1e5, "kg/m³"),
    "force": Range("push", 0.1, 1e5, "N"),
    "fps": Range("frame rate", 0.1, 10_000, "Hz"),
    "frame": Range("frame", -1_048_574, 1_048_574),
    "friction": Range("friction", 0, 100),
    "hand_back": Range("way back", 1, 10_000, "frames"),
    "hold": Range("breaking force", 1, 1e6, "N"),
    "jobs": Range("number of processes", 1, 1024),
    "key_every": Range("distance of keys", 1, 1000, "frames"),
    "magnitude": Range("magnitude", 0.001, 1e5, "N or kg"),
    "mass": Range("mass", 1, 1000, "kg"),
    "offset": Range("offset", -10, 10, "m"),
    "place": Range("place", -1e6, 1e6),
    "processes": Range("number of processes", 0, 1024),
    "push_time": Range("duration", 0.001, 10_000, "s"),
    "seed": Range("seed", 0, 2**31 - 1),
    "spin": Range("spin", -1000, 1000, "turns/s"),
    "sphere": Range("sphere", 0.001, 10_000, "kg"),
    "target": Range("reward", 0.001, 2),
    "thing": Range("mass", 0.0001, 1e6, "kg"),
    "tolerance": Range("tolerance", 0.001, 1000, "mm"),
    "turn": Range("turn", -10_000, 10_000, "rad"),
    "unit": Range("unit", 1e-6, 1000, "m"),
    "velocity": Range("velocity", -1000, 1000, "m/s"),
    "walk": Range("walk", 0.5, 3600, "s"),
}


def check_all(owner: Any, *names: str, optional: tuple[str, ...] = ()) -> None:
    """Raise SettingsError if one of an object's numbers of these names is out of its range;
    optional ones may be None."""
    for name in (*names, *optional):
        value = getattr(owner, name)
        if value is not None or name not in optional:
            RANGES[name].check(value)

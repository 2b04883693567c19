# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's parameters (SCA12, equation 20): stiffness and damping of each degree of
freedom, left and right the same, and the balance weights of single and of dual stance."""

import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .exceptions import GainsError

SCHEMA = 1
BALANCE_MODES = ("foot_forces", "virtual_forces")
WEIGHTS = ("com_position", "com_velocity", "trunk", "momentum")

#: Stiffness [N m/rad] of an adult of 71 kg and 1.80 m; damping is a tenth of it [N m s/rad].
_STIFFNESS = {
    "spine": 1000.0,
    "neck": 100.0,
    "shoulder": 300.0,
    "elbow": 150.0,
    "hip": 500.0,
    "knee": 500.0,
    "ankle": 400.0,
}
_DAMPING_SHARE = 0.1
_MASS, _HEIGHT = 71.0, 1.80

#: Balance weights of that adult: [N/m], [N s/m], [N m/rad], [1/s].
_WEIGHTS = {
    "foot_forces": (1000.0, 500.0, 400.0, 40.0),
    "virtual_forces": (2000.0, 500.0, 400.0, 20.0),
}

#: Largest magnitude that a gains file may hold (SCA12, table 2).
_LIMIT = 10000.0


def unmirrored(name):
    """Name of a degree of freedom without its side: hip_l_pitch and hip_r_pitch are hip_pitch."""
    return name.replace("_l_", "_").replace("_r_", "_")


def _scales(mass, height):
    """How stiffness, damping and the weights change with body size at equal dynamics (Froude):
    torques as m h, times as the square root of h."""
    torque = mass * height / (_MASS * _HEIGHT)
    time = math.sqrt(height / _HEIGHT)
    force = mass / _MASS
    weights = np.array([force * _HEIGHT / height, force / time, torque, 1 / time])
    return torque, torque * time, weights


@dataclass(frozen=True)
class Gains:
    """Parameters of one controller.

    names: unmirrored degrees of freedom. stiffness [N m/rad], damping [N m s/rad]: (n,).
    single, dual: (4,) weights for com_position [N/m], com_velocity [N s/m], trunk [N m/rad],
    momentum [1/s]. balance: the mode that they are for. body: (mass [kg], height [m]) they fit.
    """

    names: tuple
    stiffness: np.ndarray
    damping: np.ndarray
    single: np.ndarray
    dual: np.ndarray
    balance: str
    body: tuple

    @classmethod
    def default(cls, character, balance="foot_forces"):
        """Untuned gains, scaled to the body."""
        if balance not in BALANCE_MODES:
            raise GainsError(f"There is no balance mode '{balance}': use {_listed(BALANCE_MODES)}.")
        names = tuple(dict.fromkeys(unmirrored(n) for n in character.dof_names))
        torque, damping, weights = _scales(character.mass, character.height)
        stiffness = np.array([_STIFFNESS[n.split("_")[0]] for n in names])
        weights = weights * _WEIGHTS[balance]
        return cls(
            names,
            stiffness * torque,
            stiffness * _DAMPING_SHARE * damping,
            weights,
            weights.copy(),
            balance,
            (character.mass, character.height),
        )

    def per_dof(self, character):
        """Stiffness and damping (dofs,) of every degree of freedom of a character."""
        index = {name: i for i, name in enumerate(self.names)}
        order = [index[unmirrored(name)] for name in character.dof_names]
        return self.stiffness[order], self.damping[order]

    def as_dict(self):
        """The gains as JSON-able data, the content of a gains file."""
        return {
            "schema": SCHEMA,
            "balance": self.balance,
            "body": {"mass": self.body[0], "height": self.body[1]},
            "stiffness": dict(zip(self.names, map(float, self.stiffness), strict=True)),
            "damping": dict(zip(self.names, map(float, self.damping), strict=True)),
            "single": dict(zip(WEIGHTS, map(float, self.single), strict=True)),
            "dual": dict(zip(WEIGHTS, map(float, self.dual), strict=True)),
        }

    def save(self, path):
        """Write a gains file."""
        Path(path).write_text(json.dumps(self.as_dict(), indent=2) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path, character):
        """Read a gains file for a character; gains of a body of another size are rescaled.

        Raises GainsError, naming the file, if it cannot be read, is not a gains file, is for
        other joints, or holds a value out of range.
        """
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise GainsError(
                f"The gains file '{path}' cannot be read: {error.strerror}."
            ) from error
        except ValueError as error:
            raise GainsError(f"The gains file '{path}' is not JSON: {error}.") from error
        return _from_dict(cls, data, path, character)


def _listed(names):
    return ", ".join(names)


def _from_dict(cls, data, path, character):
    def fail(problem):
        raise GainsError(f"The gains file '{path}' {problem}.")

    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        fail(f"is not a gains file of schema {SCHEMA}: save it again with this version of Poise")
    if data.get("balance") not in BALANCE_MODES:
        fail(f"names no balance mode: it must be one of {_listed(BALANCE_MODES)}")
    body = data.get("body")
    if not isinstance(body, dict):
        fail("does not say what body it is for: it needs 'body' with 'mass' and 'height'")
    mass = _number(body.get("mass"), "body mass", 1e-3, 1000, fail)
    height = _number(body.get("height"), "body height", 1e-3, 10, fail)
    names = tuple(dict.fromkeys(unmirrored(n) for n in character.dof_names))
    values = {}
    for group, keys, low in (
        ("stiffness", names, 0.0),
        ("damping", names, 0.0),
        ("single", WEIGHTS, -_LIMIT),
        ("dual", WEIGHTS, -_LIMIT),
    ):
        given = data.get(group)
        if not isinstance(given, dict):
            fail(f"has no '{group}'")
        if set(given) != set(keys):
            odd = sorted(set(given) ^ set(keys))
            fail(
                f"is for another character: in '{group}' it and this character differ in "
                f"{_listed(odd)}; use gains that were tuned on this kind of rig"
            )
        values[group] = np.array(
            [_number(given[k], f"{group} of {k}", low, _LIMIT, fail) for k in keys]
        )
    torque, damping, weights = (
        np.divide(new, old)
        for new, old in zip(
            _scales(character.mass, character.height), _scales(mass, height), strict=True
        )
    )
    return cls(
        names,
        values["stiffness"] * torque,
        values["damping"] * damping,
        values["single"] * weights,
        values["dual"] * weights,
        data["balance"],
        (character.mass, character.height),
    )


def _number(value, what, low, high, fail):
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        fail(f"gives {what} as {value!r}: it must be a number")
    if not low <= value <= high:
        fail(f"gives {what} as {value:g}, out of range: it must be from {low:g} to {high:g}")
    return float(value)

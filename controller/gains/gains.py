# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's parameters (SCA12, equation 20): stiffness and damping of each degree of
freedom, left and right the same, and the balance weights of single and of dual stance."""

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from .. import documents
from ..body.character import Character
from ..exceptions import GainsError
from ..geometry.skeleton import UNMIRRORED_DOFS, joint_of_dof

SCHEMA = 3
_READABLE = (1, 2, SCHEMA)  # 1 had no name, description and tuned, both had no toes
BALANCE_MODES = ("foot_forces", "virtual_forces")
WEIGHTS = ("com_position", "com_velocity", "trunk", "momentum")

#: A joint's entry has its stiffness [N m/rad] for an adult of 71 kg and 1.80 m, by trial on the
#: captured clips; damping is a tenth of it [N m s/rad], with which Stable PD is stable from 100 Hz.
_DAMPING_SHARE = 0.1
#: Mass [kg] and height [m] of that adult.
ADULT_MASS, ADULT_HEIGHT = 71.0, 1.80

#: Balance weights of that adult in single and dual stance: [N/m], [N s/m], [N m/rad], [1/s], by
#: trial on the captured clips. `virtual_forces` divide theirs between the legs that stand.
_WEIGHTS = {
    "foot_forces": ((1000.0, 500.0, 400.0, 40.0), (1000.0, 500.0, 400.0, 40.0)),
    "virtual_forces": ((2000.0, 500.0, 400.0, 20.0), (4000.0, 1000.0, 800.0, 40.0)),
}

#: Of that adult in endless walks that are directed, tuned on some of 0.9 and 1.25 m/s under pushes
#: of 50 N: softer legs and back (by their joints' `walking_stiffness`), an upright trunk,
#: little say for angular momentum.
_WALKING_DAMPING_SHARE = 0.088
_WALKING_WEIGHTS = ((1170.0, 490.0, 900.0, 24.0), (880.0, 350.0, 575.0, 15.0))

#: Largest magnitude of a gain (SCA12, table 2); for bodies larger than that adult it grows.
LIMIT = 10000.0

_Fail = Callable[[str], NoReturn]

#: How much a gains file may tell in words and in `tuned`: far more than any does.
_MAX_DEPTH, _MAX_ITEMS, _MAX_LETTERS = 8, 10_000, 10_000


def size_of(character: Character) -> float:
    """How much more torque a body has than that adult, at equal dynamics (Froude)."""
    return character.mass * character.height / (ADULT_MASS * ADULT_HEIGHT)


def unmirrored(name: str) -> str:
    """Name of a degree of freedom without its side: hip_l_pitch and hip_r_pitch are hip_pitch."""
    return name.replace("_l_", "_").replace("_r_", "_")


def _scales(mass: float, height: float) -> tuple[float, float, np.ndarray]:
    """How stiffness, damping and the weights change with body size at equal dynamics (Froude):
    torques as m h, times as the square root of h."""
    torque = mass * height / (ADULT_MASS * ADULT_HEIGHT)
    time = math.sqrt(height / ADULT_HEIGHT)
    force = mass / ADULT_MASS
    weights = np.array([force * ADULT_HEIGHT / height, force / time, torque, 1 / time])
    return torque, torque * time, weights


@dataclass(frozen=True)
class Gains:
    """Parameters of one controller.

    names: unmirrored degrees of freedom. stiffness [N m/rad], damping [N m s/rad]: (n,).
    single, dual: (4,) weights for com_position [N/m], com_velocity [N s/m], trunk [N m/rad],
    momentum [1/s]. balance: the mode that they are for. body: (mass [kg], height [m]) they fit.
    tuned: what they were tuned on, as plain JSON data (clip, body, rate, engine, optimiser,
    figures, features); None if they were not. name, description: for people. completed: a sentence
    if they were made before bodies had some joint, whose gains are then the defaults.
    """

    names: tuple[str, ...]
    stiffness: np.ndarray
    damping: np.ndarray
    single: np.ndarray
    dual: np.ndarray
    balance: str
    body: tuple[float, float]
    tuned: dict[str, Any] | None = None
    name: str = ""
    description: str = ""
    completed: str = ""

    @classmethod
    def default(
        cls, character: Character, balance: str = "foot_forces", walking: bool = False
    ) -> "Gains":
        """Gains for any clip, scaled to the body. walking: for an endless walk
        that is directed, by `foot_forces`."""
        if balance not in BALANCE_MODES:
            raise GainsError(f"There is no balance mode '{balance}': use {_listed(BALANCE_MODES)}.")
        torque, damping, weights = _scales(character.mass, character.height)
        entries = [joint_of_dof(dof) for dof in UNMIRRORED_DOFS]
        if walking and balance == "foot_forces":
            stiffness = np.array([entry.walking_stiffness for entry in entries])
            share, stances = _WALKING_DAMPING_SHARE, _WALKING_WEIGHTS
        else:
            stiffness = np.array([entry.stiffness for entry in entries])
            share, stances = _DAMPING_SHARE, _WEIGHTS[balance]
        single, dual = (weights * values for values in stances)
        return cls(
            UNMIRRORED_DOFS,
            stiffness * torque,
            stiffness * share * damping,
            single,
            dual,
            balance,
            (character.mass, character.height),
        )

    def per_dof(self, character: Character) -> tuple[np.ndarray, np.ndarray]:
        """Stiffness and damping (dofs,) of every degree of freedom of a character."""
        index = {name: i for i, name in enumerate(self.names)}
        order = [index[unmirrored(name)] for name in character.dof_names]
        return self.stiffness[order], self.damping[order]

    def as_dict(self) -> dict[str, Any]:
        """The gains as JSON-able data, the content of a gains file."""
        words = {"name": self.name, "description": self.description}
        return {
            "schema": SCHEMA,
            **{key: text for key, text in words.items() if text},
            "balance": self.balance,
            "body": {"mass": float(self.body[0]), "height": float(self.body[1])},
            "stiffness": dict(zip(self.names, map(float, self.stiffness), strict=True)),
            "damping": dict(zip(self.names, map(float, self.damping), strict=True)),
            "single": dict(zip(WEIGHTS, map(float, self.single), strict=True)),
            "dual": dict(zip(WEIGHTS, map(float, self.dual), strict=True)),
            "tuned": self.tuned,
        }

    def save(self, path: str | Path) -> None:
        """Write a gains file; one that is there is replaced as a whole, or not at all.

        Raises GainsError if the folder cannot be written to or the disk is full.
        """
        text = json.dumps(self.as_dict(), indent=2, ensure_ascii=False, allow_nan=False)
        try:
            documents.write(path, text + "\n")
        except OSError as error:
            raise GainsError(
                f"The gains file '{Path(path)}' cannot be written ({error.strerror}): make room, "
                "or choose another folder."
            ) from error

    @classmethod
    def load(cls, path: str | Path, character: Character | None = None) -> "Gains":
        """Read a gains file, as `from_dict` does.

        Raises GainsError, naming the file, also if it cannot be read or is not JSON.
        """
        source = f"the gains file '{path}'"
        return cls.from_dict(documents.read(path, source, _fail), character, source)

    @classmethod
    def from_dict(
        cls, data: Any, character: Character | None = None, source: str = "the set of gains"
    ) -> "Gains":
        """Gains from what `as_dict` gave, for a character; those of a body of another size are
        rescaled.

        character: None for the body that they are for. source: what errors call the data. Raises
        GainsError if the data are no gains, are for other joints, or hold a value out of range.
        """
        return _from_dict(cls, data, character, source)


def _fail(source: object, problem: str) -> NoReturn:
    source = str(source)
    raise GainsError(f"{source[:1].upper()}{source[1:]} {problem}.")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _completed(
    data: dict[str, Any], scales: tuple[float, float, np.ndarray], source: str
) -> tuple[dict[str, Any], str]:
    """The data with the default for every degree of freedom that they say nothing of, as those of
    earlier bodies do, and a sentence on it; scales: of the body that they are for."""
    torque, damping, _ = scales
    stiffness, dampings = data.get("stiffness"), data.get("damping")
    if not (stiffness and isinstance(stiffness, dict) and isinstance(dampings, dict)):
        return data, ""
    missing = [dof for dof in UNMIRRORED_DOFS if dof not in stiffness and dof not in dampings]
    if not missing:
        return data, ""
    default = {dof: joint_of_dof(dof).stiffness for dof in missing}
    stiffness = stiffness | {dof: k * torque for dof, k in default.items()}
    dampings = dampings | {dof: k * _DAMPING_SHARE * damping for dof, k in default.items()}
    return data | {"stiffness": stiffness, "damping": dampings}, (
        f"{source[:1].upper()}{source[1:]} has no gains for {_listed(_joints_in_words(missing))}: "
        "these have the defaults."
    )


def _joints_in_words(missing: list[str]) -> Iterable[str]:
    """What is missing: joints, or degrees of freedom of those of which others are there."""
    whole = {
        dof: all(f"{entry.joint}_{axis}" in missing for axis in entry.ranges)
        for dof, entry in ((dof, joint_of_dof(dof)) for dof in missing)
    }
    return dict.fromkeys(
        joint_of_dof(dof).words if whole[dof] else dof.replace("_", " ") for dof in missing
    )


def _from_dict(cls: type[Gains], data: Any, character: Character | None, source: str) -> Gains:
    def fail(problem: str) -> NoReturn:
        _fail(source, problem)

    if not isinstance(data, dict) or data.get("schema") not in _READABLE:
        known = " or ".join(map(str, _READABLE))
        fail(f"is not a gains file of schema {known}: save it again with this version of Poise")
    if data.get("balance") not in BALANCE_MODES:
        fail(f"names no balance mode: it must be one of {_listed(BALANCE_MODES)}")
    body = data.get("body")
    if not isinstance(body, dict):
        fail("does not say what body it is for: it needs 'body' with 'mass' and 'height'")
    old_body = (
        _number(body.get("mass"), "body mass", 1e-3, 1000, fail),
        _number(body.get("height"), "body height", 1e-3, 10, fail),
    )
    new_body = old_body if character is None else (character.mass, character.height)
    old, new = _scales(*old_body), _scales(*new_body)
    data, completed = _completed(data, old, source)

    def values(group: str, keys: tuple[str, ...], i: int, least: float) -> np.ndarray:
        top, new_top = (np.broadcast_to(LIMIT * np.maximum(1, s[i]), len(keys)) for s in (old, new))
        given = _values(data, group, keys, least * top, top, fail)
        return np.clip(given * (new[i] / old[i]), -new_top, new_top)

    return cls(
        UNMIRRORED_DOFS,
        values("stiffness", UNMIRRORED_DOFS, 0, 0),
        values("damping", UNMIRRORED_DOFS, 1, 0),
        values("single", WEIGHTS, 2, -1),
        values("dual", WEIGHTS, 2, -1),
        data["balance"],
        new_body,
        _tuned(data, fail),
        _words(data, "name", fail),
        _words(data, "description", fail),
        completed,
    )


def _values(
    data: dict[str, Any],
    group: str,
    keys: tuple[str, ...],
    low: np.ndarray,
    high: np.ndarray,
    fail: _Fail,
) -> np.ndarray:
    """(n,) numbers of a group, each between its entries of low and high (n,)."""
    given = data.get(group)
    if not isinstance(given, dict) or not given:
        fail(f"has no '{group}'")
    if set(given) != set(keys):
        odd = sorted(set(given) ^ set(keys))
        fail(
            f"is for another character: in '{group}' it and this character differ in "
            f"{_listed(odd)}; use gains that were tuned on this kind of rig"
        )
    limits = zip(keys, low, high, strict=True)
    return np.array([_number(given[k], f"{group} of {k}", a, b, fail) for k, a, b in limits])


def _number(value: Any, what: str, low: float, high: float, fail: _Fail) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        fail(f"gives {what} as {_short(value)}: it must be a number")
    if not low <= value <= high:
        fail(f"gives {what} as {value:g}, out of range: it must be from {low:g} to {high:g}")
    return float(value)


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number with hundreds of digits
        return False


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 40 else f"{text[:40]}…"


def _words(data: dict[str, Any], key: str, fail: _Fail) -> str:
    """An optional text."""
    text = data.get(key, "")
    if not isinstance(text, str) or len(text) > _MAX_LETTERS:
        fail(
            f"gives '{key}' as {_short(text)}: it must be a text of at most {_MAX_LETTERS} letters"
        )
    return text


def _tuned(data: dict[str, Any], fail: _Fail) -> dict[str, Any] | None:
    """What it was tuned on, checked to be plain data of sensible size; None if nothing is told."""
    tuned = data.get("tuned")
    if data["schema"] == 1 or tuned is None:
        return None
    if not isinstance(tuned, dict):
        fail(f"gives 'tuned' as {_short(tuned)}: it must tell what it was tuned on, or be null")
    if _count_items(tuned, 0, fail) > _MAX_ITEMS:
        fail(f"tells more than {_MAX_ITEMS} values in 'tuned': shorten it")
    return tuned


def _count_items(value: Any, depth: int, fail: _Fail) -> int:
    """How many values there are in plain data; fails at what is not plain."""
    if depth > _MAX_DEPTH:
        fail(f"nests 'tuned' deeper than {_MAX_DEPTH} levels: flatten it")
    if isinstance(value, dict):
        keys = [key for key in value if not isinstance(key, str) or len(key) > _MAX_LETTERS]
        if keys:
            fail(f"has the key {_short(keys[0])} in 'tuned': it must be a short text")
        value = list(value.values())
    if isinstance(value, list):
        return 1 + sum(_count_items(item, depth + 1, fail) for item in value)
    if value is not None and not isinstance(value, str | int | float):
        fail(f"has {_short(value)} in 'tuned': it must be a number, text, list or group")
    if isinstance(value, int | float) and not _is_finite(value):
        fail(f"has {_short(value)} in 'tuned': numbers must be finite")
    if isinstance(value, str) and len(value) > _MAX_LETTERS:
        fail(f"has a text of more than {_MAX_LETTERS} letters in 'tuned': shorten it")
    return 1

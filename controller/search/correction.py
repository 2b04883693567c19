# SPDX-License-Identifier: GPL-3.0-or-later
"""What rectification adds to a reference: small smooth offsets, node by node.

Sok, Kim, Lee, "Simulating Biped Behaviors from Human Motion Data", 2007, section 4: the target is
the reference plus a sum of cosine bumps, each as wide as two intervals between nodes, which is the
same as cosine interpolation between the nodes' values.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..body.character import Character
from ..exceptions import SettingsError
from ..geometry.trajectory import Trajectory
from ..reference.reference import COM, VELOCITY, Reference

#: 2: what offsets are added to bears the weight of clips that travel (`support/bearing.py`). 3:
#: its feet roll over their edges, too (`support/rolling.py`).
SCHEMA = 3

#: What is offset, in the order of a node's numbers, and by how much [rad, m] one unit is: by trial,
#: on a first prototype that rectified walks, runs and jumping jacks.
UNITS = {
    **{
        f"hip_{side}_{axis}": unit
        for side in "lr"
        for axis, unit in (("pitch", 0.12), ("roll", 0.08), ("twist", 0.08))
    },
    "knee_l_pitch": 0.12,
    "knee_r_pitch": 0.12,
    "ankle_l_pitch": 0.12,
    "ankle_l_roll": 0.08,
    "ankle_r_pitch": 0.12,
    "ankle_r_roll": 0.08,
    "spine_pitch": 0.08,
    "spine_roll": 0.06,
    "spine_twist": 0.06,
    "com_x": 0.04,
    "com_y": 0.04,
    "com_z": 0.03,
}
SIZE = len(UNITS)
#: The same as an array (18,).
UNIT = np.array(list(UNITS.values()))
JOINTS = [name for name in UNITS if not name.startswith("com_")]
#: How fast [1/s] a body that has drifted off goes back: as without a correction.
DRIFT_GAIN = 2.0


@dataclass(frozen=True)
class Correction:
    """Offsets of a reference.

    spacing: samples of the motion from one node to the next. offsets: (N, 18) those of UNITS, node
    i at sample i * spacing; behind the last node they stay. drift_gain [1/s].
    """

    spacing: int
    offsets: np.ndarray
    drift_gain: float = DRIFT_GAIN

    def corrected(self, character: Character, reference: Reference) -> Reference:
        """The Reference with the offsets."""
        target = blank(reference)
        last = len(reference) - 1
        write(target, reference, columns_of(character), self.spacing, 0, last, self.offsets)
        return target

    def trajectory(self, character: Character, reference: Reference) -> Trajectory:
        """Trajectory of the corrected reference, at the motion's samples."""
        target, steps = self.corrected(character, reference), reference.steps_per_sample
        at = slice(0, (len(reference) - 1) * steps + 1, steps)
        moved = target.goals[at, COM] - reference.goals[at, COM]
        source = reference.trajectory
        return replace(source, root=source.root + moved, angles=target.angles[at])

    def as_dict(self) -> dict[str, Any]:
        """The correction as JSON-able data."""
        return {
            "schema": SCHEMA,
            "names": list(UNITS),
            "spacing": self.spacing,
            "drift_gain": self.drift_gain,
            "offsets": self.offsets.tolist(),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Correction":
        """The correction that `as_dict` wrote. Raises SettingsError for anything else."""
        try:
            offsets = np.array(data["offsets"], float).reshape(-1, SIZE)
            known = data["schema"] == SCHEMA and data["names"] == list(UNITS)
            result = cls(int(data["spacing"]), offsets, float(data["drift_gain"]))
        except (KeyError, TypeError, ValueError) as error:
            raise SettingsError("This is no correction that Poise wrote: rectify anew.") from error
        if not (known and result.spacing > 0 and len(offsets) and np.isfinite(offsets).all()):
            raise SettingsError("This correction is from another version of Poise: rectify anew.")
        return result


def columns_of(character: Character) -> np.ndarray:
    """Numbers (15,) of the degrees of freedom that a correction turns."""
    return np.array([character.dof_names.index(name) for name in JOINTS])


def blank(reference: Reference) -> Reference:
    """A copy of a reference to write corrected values into."""
    return replace(
        reference,
        angles=reference.angles.copy(),
        speeds=reference.speeds.copy(),
        goals=reference.goals.copy(),
        walks=True,
    )


def write(
    target: Reference,
    reference: Reference,
    columns: np.ndarray,
    spacing: int,
    first: int,
    last: int,
    offsets: np.ndarray,
) -> None:
    """Write reference + offsets into a target, from sample `first`, a node, to sample `last`.

    offsets: (n, 18) of that node and those that follow; behind the last they stay.
    """
    steps = reference.steps_per_sample
    period = spacing * steps
    rows = slice(first * steps, last * steps + 2)  # Stable PD looks one step ahead
    count = len(reference.angles[rows])
    # Accelerations of cosines jump at every node from one sign to the other: fed forward, they
    # would make the body jerk.
    values, speeds = _interpolated(offsets, period, count, reference.rate)
    turns = len(columns)
    target.angles[rows] = reference.angles[rows]
    target.angles[rows, columns] += values[:, :turns]
    target.speeds[rows] = reference.speeds[rows]
    target.speeds[rows, columns] += speeds[:, :turns]
    target.goals[rows] = reference.goals[rows]
    target.goals[rows, COM] += values[:, turns:]
    target.goals[rows, VELOCITY] += speeds[:, turns:]


def _interpolated(
    offsets: np.ndarray, period: int, count: int, rate: float
) -> tuple[np.ndarray, np.ndarray]:
    """(count, n) values and speeds of offsets (nodes, n) that are `period` steps apart, by
    cosines."""
    at = np.arange(count)
    low = np.minimum(at // period, len(offsets) - 1)
    high = np.minimum(low + 1, len(offsets) - 1)
    delta = offsets[high] - offsets[low]
    turn = np.pi / period
    phase = turn * (at % period)[:, None]
    values = offsets[low] + delta * (1 - np.cos(phase)) / 2
    speeds = delta * (np.sin(phase) * turn / 2 * rate)
    return values, speeds

# SPDX-License-Identifier: GPL-3.0-or-later
"""How strong a body is over time: the whole of it, which may faint, and single limbs, as a leg that
is shot. What it has is a share of the largest torques of its joints, and of its tone in a fall."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..body.character import Character
from ..exceptions import SettingsError

#: {name: prefixes of the joints} of what has a strength; of an empty one it is all.
LIMBS: dict[str, tuple[str, ...]] = {
    "tone": ("",),
    "trunk": ("spine",),
    "neck": ("neck",),
    "arm_l": ("shoulder_l", "elbow_l"),
    "arm_r": ("shoulder_r", "elbow_r"),
    "leg_l": ("hip_l", "knee_l", "ankle_l", "toe_l"),
    "leg_r": ("hip_r", "knee_r", "ankle_r", "toe_r"),
}
#: What sentences call them.
CALLED = {
    "tone": "whole body",
    "trunk": "trunk",
    "neck": "neck",
    "arm_l": "left arm",
    "arm_r": "right arm",
    "leg_l": "left leg",
    "leg_r": "right leg",
}
#: Whoever has less than this of all tone stands no more; of any limb's strength, does not get up.
#: By judgement.
_FAINT, _WEAK = 0.1, 0.5


def lasting(shares: np.ndarray, samples: int) -> np.ndarray:
    """(samples,) of which the last one given holds beyond the end of those."""
    return shares[np.minimum(np.arange(samples), len(shares) - 1)]


@dataclass(frozen=True)
class Strength:
    """joints: (F, dofs) share at the samples. tone: (F,) of the whole body. shares: {name of LIMBS:
    (F,)} of what has not all of its own."""

    joints: np.ndarray
    tone: np.ndarray
    shares: dict[str, np.ndarray]

    @classmethod
    def build(cls, character: Character, given: dict[str, Any], samples: int) -> "Strength | None":
        """That of a simulation of so many samples; None if it is full. given: {name of LIMBS: one
        number or one for each sample of the motion}, of which the last one holds beyond its end.
        Raises SettingsError for an unknown name, or a value outside of 0 to 1."""
        joints, tone = np.ones((samples, character.dofs)), np.ones(samples)
        shares: dict[str, np.ndarray] = {}
        for name, values in given.items():
            if name not in LIMBS:
                known = ", ".join(LIMBS)
                raise SettingsError(f"There is no limb '{name}' to be weak: choose one of {known}.")
            share = np.atleast_1d(np.asarray(values, float))
            if not ((share >= 0) & (share <= 1)).all():
                raise SettingsError(f"The strength of '{name}' is not always from 0 to 1: mend it.")
            share = lasting(share, samples)
            chosen = [dof.startswith(LIMBS[name]) for dof in character.dof_names]
            joints[:, chosen] *= share[:, None]
            shares[name] = share
            if name == "tone":
                tone = share
        return cls(joints, tone, shares) if (joints < 1).any() else None

    def faints(self, sample: int) -> bool:
        """Whether the body has too little tone to stand."""
        return bool(self.tone[sample] < _FAINT)

    def fainted(self, sample: int) -> int:
        """The sample from which on the body faints, up to this one, in which it does."""
        awake = np.flatnonzero(self.tone[:sample] >= _FAINT)
        return int(awake[-1]) + 1 if len(awake) else 0

    def wakes(self, sample: int) -> int | None:
        """The sample in which it comes to, after this one, in which it faints; None if it does
        not."""
        awake = np.flatnonzero(self.tone[sample:] >= _FAINT)
        return sample + int(awake[0]) if len(awake) else None

    def weakest(self, sample: int) -> tuple[str, float]:
        """What has the smallest share of its strength, as sentences call it, and that share."""
        name = min(self.shares, key=lambda one: self.shares[one][sample])
        return CALLED[name], float(self.shares[name][sample])

    def may_rise(self, sample: int) -> bool:
        """Whether it is strong enough to get up."""
        return bool(self.joints[sample].min() >= _WEAK)

# SPDX-License-Identifier: GPL-3.0-or-later
"""How a body falls where it has shares of several behaviours: what they would do, in these shares,
as long as they last. What is left is how it falls by the settings."""

from typing import Any

import numpy as np

from ..exceptions import SettingsError
from .behaviours import BEHAVIOURS
from .strength import lasting

#: What shares come to at most: those of 0.1 and 0.9 may come to a little more than 1.
ALL = 1 + 1e-6


def build(given: dict[str, Any], samples: int) -> dict[str, np.ndarray]:
    """{behaviour: (samples,) its share}. given: {behaviour: one number or one for each sample of
    the motion}, of which the last one holds beyond its end. Raises SettingsError for an unknown
    behaviour, for a share outside of 0 to 1, and where they come to more than 1."""
    shares: dict[str, np.ndarray] = {}
    for name, values in given.items():
        if name not in BEHAVIOURS:
            known = ", ".join(BEHAVIOURS)
            raise SettingsError(f"Nobody falls '{name}': mix one of {known}.")
        share = np.atleast_1d(np.asarray(values, float))
        if not ((share >= 0) & (share <= 1)).all():
            raise SettingsError(f"The share of '{name}' is not always from 0 to 1: mend it.")
        shares[name] = lasting(share, samples)
    sample, total = most(shares, samples)
    if total > ALL:
        names = " and ".join(shares)
        raise SettingsError(
            f"The shares of {names} come to {total:.2g} at sample {sample}: have them come "
            "to 1 at most; what is left is how the body falls else."
        )
    return shares


def most(shares: dict[str, np.ndarray], samples: int) -> tuple[int, float]:
    """The sample at which shares (samples,) come to most, and to how much."""
    total = sum(shares.values(), np.zeros(samples))
    return int(total.argmax()), float(total.max())

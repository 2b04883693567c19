# SPDX-License-Identifier: GPL-3.0-or-later
"""How a body falls where it has shares of several behaviours: what they would do, in these shares,
as long as they last. What is left is how it falls by the settings."""

from typing import Any

import numpy as np

from ..exceptions import SettingsError
from .behaviours import BEHAVIOURS

#: Shares of 0.1 and 0.9 may come to a little more than 1.
_ROUNDED = 1e-6


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
        shares[name] = share[np.minimum(np.arange(samples), len(share) - 1)]
    total = sum(shares.values(), np.zeros(samples))
    if (total > 1 + _ROUNDED).any():
        names, sample = " and ".join(shares), int(total.argmax())
        raise SettingsError(
            f"The shares of {names} come to {total[sample]:.2g} at sample {sample}: have them come "
            "to 1 at most; what is left is how the body falls else."
        )
    return shares

# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests that make motions share."""

import numpy as np


def for_a_while(motion, begins, ends):
    """(F,) from 0 to 1 in the second from `begins` [s] on, and back in the one from `ends` on."""
    time = np.arange(len(motion)) / motion.rate
    phase = np.clip(time - begins, 0, 1) - np.clip(time - ends, 0, 1)
    return phase**2 * (3 - 2 * phase)

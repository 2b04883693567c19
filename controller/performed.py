# SPDX-License-Identifier: GPL-3.0-or-later
"""The motion that a bake is going to write, before it is written."""

from dataclasses import replace

import numpy as np

from .rotations import matrix_from_quaternion, multiply
from .skeleton import JOINT_OF, LANDMARK_INDEX, PARENTS, SEGMENT_INDEX, SIDES

#: The segment that carries each landmark about its own joint, from the pelvis outwards.
_CARRIERS = {
    JOINT_OF[segment]: parent for segment, parent in PARENTS.items() if segment in JOINT_OF
} | {
    "head_top": "head",
    **{f"{tip}_{s}": f"forearm_{s}" for s in SIDES for tip in ("wrist", "fingertip")},
    **{f"{tip}_{s}": f"foot_{s}" for s in SIDES for tip in ("ball", "toe")},
}


def performed_motion(recording):
    """The animation as far as it was simulated, moved by what the simulation changes -> Motion of
    at least two samples.

    A bake does the same to the bones; only within spine and neck, where it spreads a turn over
    several bones, is this coarser by some millimetres.
    """
    motion, count = recording.motion, len(recording)
    deltas = recording.rotation_deltas()
    turns = matrix_from_quaternion(deltas)
    before, after = motion.positions[:count], motion.positions[:count].copy()
    after[:, LANDMARK_INDEX["pelvis"]] += recording.root_displacement()
    for name, segment in _CARRIERS.items():
        landmark, joint = LANDMARK_INDEX[name], LANDMARK_INDEX[JOINT_OF[segment]]
        arm = before[:, landmark] - before[:, joint]
        turn = turns[:, SEGMENT_INDEX[segment]]
        after[:, landmark] = after[:, joint] + np.einsum("fij,fj->fi", turn, arm)
    rotations = multiply(deltas, motion.rotations[:count])
    return replace(motion, rotations=rotations, positions=after)

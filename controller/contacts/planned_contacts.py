# SPDX-License-Identifier: GPL-3.0-or-later
"""Contacts of a reference as a contact plan has them, instead of those that are found."""

import numpy as np

from ..body.character import Character
from ..geometry.motion import Motion
from ..geometry.stance import Above, adult_size
from .contact_finding import airborne
from .contact_plan import ContactPlan


def planned_contacts(
    character: Character,
    corners: np.ndarray,
    centres: np.ndarray,
    motion: Motion,
    plan: ContactPlan,
    over: Above | None = None,
) -> np.ndarray:
    """(F, 2) contacts of a motion by a plan.

    corners: (F, 2, n, 3) sole corners [m]; centres: (F, S, 3) of the segments [m]; plan:
    ContactPlan; over: as `stance.reference_contacts` has it. Raises PlanError for a plan that does
    not fit: spans that the clip has not, a stance in free flight or far above the floor, no stance
    at all.
    """
    count, rate = len(corners), motion.rate
    heights = corners[..., 2] - character.ground if over is None else over.heights
    size = adult_size(character)
    rises = heights.min(-1) / size
    com = np.einsum("fsi,s->fi", centres, character.masses / character.masses.sum())
    moves = np.gradient(corners, axis=0) * rate - (0 if over is None else over.drifts)
    speeds = np.linalg.norm(moves[..., :2], axis=-1).min(-1) / size
    plan.check(count, rate, airborne(com, rate), rises, motion.frame, speeds)
    return plan.contacts(count, rate)

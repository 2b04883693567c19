# SPDX-License-Identifier: GPL-3.0-or-later
"""Somebody must carry a body that does not fall: contacts that heights and speeds of feet miss.

A foot that pushes off fast, or skids in the capture, is taken for one in the air. Where the centre
of mass says that the floor presses all the same, the lower foot stands.
"""

import numpy as np

from ..body.character import Character
from ..geometry.stance import Above, adult_size, find_contacts, runs
from .contact_finding import borne_share, smoothed

# By trial on captured runs, jumps and leaps.
_BORNE = 0.5  # of the weight, from which somebody must carry it
_HIGHEST = 0.1  # [m, adult] of a sole that may be the one
_SHORTEST = 0.05  # [s] of a stance, and of a gap in one
_WEIGHT_FILTER = 0.12  # [s] that the centre of mass is smoothed over


def carrying_contacts(
    character: Character,
    corners: np.ndarray,
    centres: np.ndarray,
    rate: float,
    root: np.ndarray,
    over: Above | None = None,
    held: np.ndarray | None = None,
) -> tuple[np.ndarray, bool]:
    """(F, 2) contacts as `stance.find_contacts` finds them, of a body that travels with those that
    carry it, and whether it does. corners: (F, 2, n, 3) of the soles, centres: (F, S, 3) of the
    segments [m]; the rest as there."""
    contacts, travels = find_contacts(character, corners, rate, root, over, held)
    if travels:
        found = carried_on(character, contacts, corners, centres, rate, over)
        # Of a body that is held, what holds it may carry it.
        contacts = found if held is None else np.where(held[:, None], contacts, found)
    return contacts, travels


def carried_on(
    character: Character,
    contacts: np.ndarray,
    corners: np.ndarray,
    centres: np.ndarray,
    rate: float,
    over: Above | None = None,
) -> np.ndarray:
    """(F, 2) contacts as they were found of a body that travels, with those that carry it; the
    rest as `carrying_contacts` has it."""
    com = np.einsum("fsi,s->fi", centres, character.masses / character.mass)
    heights = corners[..., 2] - character.ground if over is None else over.heights
    return carried(contacts, heights.min(-1), com, rate, adult_size(character))


def carried(
    contacts: np.ndarray, heights: np.ndarray, com: np.ndarray, rate: float, size: float
) -> np.ndarray:
    """(F, 2) contacts in which a foot stands wherever the body is carried.

    contacts: (F, 2) as they were found. heights: (F, 2) of either sole's lowest point over what is
    under it [m]. com: (F, 3) centre of mass [m], at `rate` [Hz]. size: of the body against an
    adult.
    """
    contacts = contacts.copy()
    borne = borne_share(smoothed(com, _WEIGHT_FILTER, rate), rate) > _BORNE
    lower = heights.argmin(1)[:, None] == np.arange(2)
    alone = borne & ~contacts.any(1)
    contacts |= alone[:, None] & lower & (heights < _HIGHEST * size)
    for foot in contacts.T:
        for stands in (True, False):
            for start, stop in runs(foot == stands):
                if stop - start < _SHORTEST * rate and start > 0 and stop < len(foot):
                    foot[start:stop] = not stands
    return contacts

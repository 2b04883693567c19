# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for all files: Edit ▸ Preferences ▸ Add-ons ▸ Poise.

`of()` gives it to whoever wants to know. Where Poise is a module and no add-on, as under
`python -m poise`, there is no such entry and the defaults hold.
"""

from dataclasses import dataclass

import bpy

from ...controller.processes.workers import processors
from .folders import PACKAGE


@dataclass(frozen=True)
class Defaults:
    """The preferences that nobody has changed; their descriptions are in `preferences_panel`."""

    workers: int = 0
    cache: str = ""
    body: tuple = (0.10, 0.42, 0.78, 0.66)
    contact: tuple = (1.0, 0.52, 0.08, 0.85)
    fallen: tuple = (0.80, 0.16, 0.13, 0.66)


DEFAULTS = Defaults()


def of():
    """The preferences of Poise, or their defaults where it is no add-on."""
    addon = bpy.context.preferences.addons.get(PACKAGE)
    return DEFAULTS if addon is None else addon.preferences or DEFAULTS


def workers(settings):
    """How many processes to run. settings: `scene.poise.tuning`, which may leave that to the
    preferences, and these to the number of processors."""
    return settings.workers or of().workers or max(1, processors() - 1)

# SPDX-License-Identifier: GPL-3.0-or-later
"""What is mended of an animation before it is simulated, `scene.poise.clip_check`."""

import bpy
from bpy.props import BoolProperty

from ...controller.reference.cleaning import CLEANING


class POISE_PG_clip_check(bpy.types.PropertyGroup):
    """How the animation is cleaned in this scene; it is never changed itself."""

    despike: BoolProperty(
        name="Despike",
        description="Go straight over joints that flip and bodies that jump to another place. The "
        "animation itself is not changed: what is simulated and baked is the cleaned motion",
    )
    ground: BoolProperty(
        name="Ground",
        description="Bring a body that floats down to the floor, and feet that are in the floor "
        "up. The animation itself is not changed: what is simulated and baked is the cleaned "
        "motion",
    )
    travel: BoolProperty(
        name="Travel",
        description="Let a body that walks on the spot, as on a treadmill, go where its feet take "
        "it. The animation itself is not changed: what is simulated and baked is the cleaned "
        "motion",
    )
    unskate: BoolProperty(
        name="Unskate",
        description="Let feet that slide while they carry the body stand in one place. The "
        "animation itself is not changed: what is simulated and baked is the cleaned motion",
    )


def cleaning_of(settings):
    """The names of what is switched on, in the order of CLEANING."""
    return tuple(name for name in CLEANING if getattr(settings, name))


def words(names):
    """What is cleaned, for a label."""
    return ", ".join(name.capitalize() for name in names) or "nothing"


CLASSES = (POISE_PG_clip_check,)

# SPDX-License-Identifier: GPL-3.0-or-later
"""Behaviours that are mixed with how a character falls, `armature.data.poise_mixture`: shares of
each, keyed. They belong to the armature's data, as its strength does."""

import bpy
import numpy as np
from bpy.props import PointerProperty

from ...controller.exceptions import demand
from ...controller.falls.behaviours import BEHAVIOURS
from ...controller.falls.mixture import ALL, most
from .weights import OVERRIDABLE, share_property, values_at

#: Name of the property, and so the beginning of its F-curves' paths.
PROPERTY = "poise_mixture"


def _share(name):
    return share_property(
        name,
        description=f"Share of {name} in how the body falls. What the shares leave of 1 is When It "
        "Falls [share]",
        default=0.0,
    )


class POISE_PG_mixture(bpy.types.PropertyGroup):
    """What is mixed with how a character falls."""

    limp: _share("Limp")
    brace: _share("Brace")
    roll: _share("Roll")
    stiff: _share("Stiff")


CLASSES = (POISE_PG_mixture,)


def register():
    """Give every armature its mixture."""
    setattr(
        bpy.types.Armature,
        PROPERTY,
        PointerProperty(
            name="Falls Like",
            description="What is mixed with how this armature's character falls",
            type=POISE_PG_mixture,
            override=OVERRIDABLE,
        ),
    )


def unregister():
    """Undo `register`."""
    delattr(bpy.types.Armature, PROPERTY)


def collect(scene, reading, options=None):
    """{behaviour: (F,) share at the frames of the reading} of those that are not 0 throughout.
    options: {behaviour: share at all frames}, which replace them. Raises SettingsError where they
    come to more than 1."""
    armature, frames = scene.objects[reading.armature], reading.frames
    if getattr(armature.data, PROPERTY, None) is None:
        return {}
    found = values_at(scene, armature, frames, PROPERTY, tuple(BEHAVIOURS))
    found |= {name: np.full(len(frames), share) for name, share in (options or {}).items()}
    for name, shares in found.items():
        demand(
            np.isfinite(shares).all(),
            f"The share of {name.title()} in Falls Like of '{armature.name}' is not a number at "
            "all frames: mend it.",
        )
    sample, total = most(found, len(frames))
    demand(
        total <= ALL,
        f"The shares in Falls Like of '{armature.name}' come to {total:.2g} at frame "
        f"{frames[sample]:g}: have them come to 1 at most. What they leave of 1 is When It Falls.",
    )
    return {name: shares for name, shares in found.items() if shares.any()}

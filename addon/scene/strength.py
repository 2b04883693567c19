# SPDX-License-Identifier: GPL-3.0-or-later
"""How strong a character is, `armature.data.poise_strength`: when it faints, which limbs are weak.

It belongs to the armature's data, as physics weights do, so that its keys outlive every bake.
"""

from dataclasses import dataclass, field

import bpy
import numpy as np
from bpy.props import PointerProperty

from ...controller.exceptions import demand
from ...controller.falls.strength import LIMBS
from .weights import (
    OVERRIDABLE,
    frame_property,
    share_property,
    switch_property,
    values_at,
)

#: Name of the property, and so the beginning of its F-curves' paths.
PROPERTY = "poise_strength"


def _strength(name, description):
    return share_property(
        name,
        description=f"{description}. From 0, none, to 1, all that it has; "
        "below 0.5 it does not get up [share]",
    )


class POISE_PG_strength(bpy.types.PropertyGroup):
    """How strong an armature's character is."""

    tone: _strength("Tone", "Strength of the whole body; below 0.1 it faints, and goes down")
    trunk: _strength("Trunk", "Strength of the spine")
    neck: _strength("Neck", "Strength of the neck")
    arm_l: _strength("Left Arm", "Strength of the left shoulder and elbow")
    arm_r: _strength("Right Arm", "Strength of the right shoulder and elbow")
    leg_l: _strength(
        "Left Leg", "Strength of the left hip, knee, ankle and toes, as if it were shot"
    )
    leg_r: _strength(
        "Right Leg", "Strength of the right hip, knee, ankle and toes, as if it were shot"
    )
    use_knock_out: switch_property(
        "Knock Out",
        "Have it lose consciousness at a frame: from there on it has no tone and goes down limp, "
        "also where When It Falls is Stop",
    )
    knock_out: frame_property(
        "Knock Out at (frame)", "First frame without consciousness [frame]", 40
    )


CLASSES = (POISE_PG_strength,)


def register():
    """Give every armature its strength."""
    setattr(
        bpy.types.Armature,
        PROPERTY,
        PointerProperty(
            name="Strength",
            description="How strong this armature's character is, and when it faints",
            type=POISE_PG_strength,
            override=OVERRIDABLE,
        ),
    )


def unregister():
    """Undo `register`."""
    delattr(bpy.types.Armature, PROPERTY)


@dataclass(frozen=True)
class StrengthOptions:
    """What replaces the armature's own settings, as the command line does.

    knock_out: first frame without consciousness, None for the armature's. limbs: {name of LIMBS:
    strength at all frames}.
    """

    knock_out: float | None = None
    limbs: dict = field(default_factory=dict)


def knock_out(armature, options=None):
    """First frame without consciousness; None if it stays conscious. options: StrengthOptions."""
    chosen = getattr(armature.data, PROPERTY, None)
    if options is not None and options.knock_out is not None:
        return options.knock_out
    return chosen.knock_out if chosen is not None and chosen.use_knock_out else None


def collect(scene, reading, options=None):
    """{name of LIMBS: (F,) strength at the frames of the reading} of those that are not 1
    throughout. options: StrengthOptions. Raises SettingsError for a knock-out at another frame."""
    options = options or StrengthOptions()
    armature, frames = scene.objects[reading.armature], reading.frames
    chosen = getattr(armature.data, PROPERTY, None)
    if chosen is None:
        return {}
    found = values_at(scene, armature, frames, PROPERTY, tuple(LIMBS))
    found |= {name: np.full(len(frames), value) for name, value in options.limbs.items()}
    out = knock_out(armature, options)
    if out is not None:
        demand(
            frames[0] <= out <= frames[-1],
            f"The Knock Out is at frame {out:g}, outside of the frames {frames[0]:g} to "
            f"{frames[-1]:g} that are simulated: move it, or switch it off.",
        )
        found["tone"] = np.where(frames < out, found["tone"], 0.0)
    return {name: values for name, values in found.items() if (values < 1).any()}

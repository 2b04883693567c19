# SPDX-License-Identifier: GPL-3.0-or-later
"""Physics weights of an armature, `armature.data.poise_weights`: what of it is simulated, and when.

They belong to the armature's data, so that their keys live in an action of their own: the object's
action changes with every bake.
"""

from dataclasses import dataclass, field

import bpy
import numpy as np
from bpy.props import BoolProperty, FloatProperty, IntProperty, PointerProperty

from ...controller.exceptions import SettingsError, demand
from ...controller.gains.physics_weights import NAMES
from ...controller.ranges import RANGES
from ..blender import compat
from ..blender.evaluation import view_layer
from ..blender.redrawing import on_change

#: Name of the property, and so the beginning of its F-curves' paths.
PROPERTY = "poise_weights"

#: What a library override may change.
OVERRIDABLE = {"LIBRARY_OVERRIDABLE"}


def share_property(name, description, default=1.0):
    """A property from 0 to 1 that can be keyed, and overridden where its owner is linked."""
    return FloatProperty(
        name=name,
        description=description,
        default=default,
        min=0.0,
        max=1.0,
        subtype="FACTOR",
        override=OVERRIDABLE,
    )


def frame_property(name, description, default):
    """A frame that can be overridden."""
    return IntProperty(
        name=name,
        description=description,
        default=default,
        **RANGES["frame"].limits,
        options=set(),
        override=OVERRIDABLE,
    )


def switch_property(name, description):
    """A switch that can be overridden."""
    return BoolProperty(
        name=name, description=description, options=set(), override=OVERRIDABLE, update=on_change
    )


def _weight(name, description):
    return share_property(
        name,
        description=f"{description}: 0 follows the animation exactly, 1 is simulated [share]",
    )


class POISE_PG_weights(bpy.types.PropertyGroup):
    """What of an armature is simulated, and when."""

    trunk: _weight("Trunk", "The spine")
    neck: _weight("Neck", "The head")
    arms: _weight("Arms", "Shoulders and elbows")
    legs: _weight("Legs", "Hips and knees")
    feet: _weight("Feet", "The ankles")
    root: _weight(
        "Root",
        "The place of the whole body. Below 1, a force from outside helps to hold it where the "
        "animation has it; Measures shows that force in newtons",
    )
    use_start: switch_property(
        "Start at Frame", "Follow the animation up to a frame, simulate after it"
    )
    start: frame_property(
        "Start at (frame)",
        "Last frame that is exactly as animated; physics begins with this pose and its speed "
        "[frame]",
        1,
    )
    use_hand_back: switch_property("Hand Back", "Go from the simulation back to the animation")
    hand_back: frame_property("Hand Back at (frame)", "First frame of the way back [frame]", 100)
    over: IntProperty(
        name="Over (frames)",
        description="Length of the way back, at the end of which all is exactly as animated. Feet "
        "that were pushed elsewhere step back: where that takes longer, so does the way [frames]",
        default=15,
        **RANGES["hand_back"].limits,
        soft_max=100,
        options=set(),
        override=OVERRIDABLE,
    )


CLASSES = (POISE_PG_weights,)


def register():
    """Give every armature its weights."""
    setattr(
        bpy.types.Armature,
        PROPERTY,
        PointerProperty(
            name="Physics Weights",
            description="What of this armature is simulated, and when",
            type=POISE_PG_weights,
            override=OVERRIDABLE,
        ),
    )


def unregister():
    """Undo `register`."""
    delattr(bpy.types.Armature, PROPERTY)


@dataclass(frozen=True)
class WeightOptions:
    """What replaces the armature's own settings, as the command line does.

    start: last frame as animated, None for the armature's. hand_back: (first frame, frames) of the
    way back, None for the armature's. regions: {name: weight at all frames}.
    """

    start: float | None = None
    hand_back: tuple[float, float] | None = None
    regions: dict = field(default_factory=dict)


def collect(scene, reading, options=None):
    """{region: (F,) weight at the frames of the reading} of those that are not 1 throughout.

    options: WeightOptions. Raises SettingsError where start and hand-over do not fit the frames.
    """
    options = options or WeightOptions()
    armature, frames = scene.objects[reading.armature], reading.frames
    chosen = getattr(armature.data, PROPERTY, None)
    if chosen is None:
        return {}
    start, back = options.start, options.hand_back
    if start is None and chosen.use_start:
        start = chosen.start
    if back is None and chosen.use_hand_back:
        back = chosen.hand_back, chosen.over
    _check(frames, start, back)
    own = values_at(scene, armature, frames, PROPERTY, NAMES)
    shared = _envelope(frames, start, back)
    weights = {}
    for name in NAMES:
        given = options.regions.get(name)
        weights[name] = shared * (own[name] if given is None else given)
    return {name: values for name, values in weights.items() if (values < 1).any()}


def _check(frames, start, back):
    """Raise SettingsError unless there is time for physics."""
    last = frames[-1]
    if start is not None and start >= last:
        raise SettingsError(
            f"Physics starts at frame {start:g}, but the simulation ends at frame {last:g}: start "
            "earlier, or simulate more frames."
        )
    if back is None:
        return
    first = frames[0] if start is None else start
    if back[0] <= first:
        raise SettingsError(
            f"Physics is handed back at frame {back[0]:g}, but begins at frame {first:g}: hand it "
            "back later."
        )
    if back[0] >= last:
        raise SettingsError(
            f"Physics is handed back at frame {back[0]:g}, but the simulation ends at frame "
            f"{last:g}: hand it back earlier, or simulate more frames."
        )


def _envelope(frames, start, back):
    """(F,) share of physics that start and hand-over leave."""
    share = np.ones(len(frames))
    if start is not None:
        share[frames <= start] = 0.0
    if back is not None:
        share *= np.clip(1 - (frames - back[0]) / back[1], 0, 1)
    return share


def values_at(scene, armature, frames, owner, names):
    """{name: (F,)} properties of a property group of an armature's data, as they are at the frames.
    owner: name of the group."""
    data = armature.data
    chosen = getattr(data, owner)
    animation = data.animation_data
    paths = {f"{owner}.{name}": name for name in names}
    for driver in animation.drivers if animation else ():
        demand(
            driver.data_path not in paths or driver.driver.is_valid,
            f"A driver of '{data.name}' that Poise needs does not work ({driver.data_path}): mend "
            "or delete it.",
        )
    if animation and (
        any(driver.data_path in paths for driver in animation.drivers)
        or (animation.use_nla and animation.nla_tracks)
    ):
        return _evaluated(scene, armature, frames, owner, names)
    found = {name: np.full(len(frames), getattr(chosen, name)) for name in names}
    times = frames * scene.render.frame_map_old / scene.render.frame_map_new
    for curve in compat.curves(*compat.assigned(data)):
        name = paths.get(curve.data_path)
        if name and not (curve.mute or (curve.group and curve.group.mute)):
            values = np.array([curve.evaluate(time) for time in times])
            allowed = chosen.bl_rna.properties[name]
            found[name] = np.clip(values, allowed.hard_min, allowed.hard_max)
    return found


def _evaluated(scene, armature, frames, owner, names):
    """The same where drivers or NLA strips have a say: Blender evaluates frame by frame."""
    layer = view_layer(scene, armature)
    frame, subframe = scene.frame_current, scene.frame_subframe
    rows = []
    try:
        for time in frames:
            scene.frame_set(int(time // 1), subframe=float(time % 1))
            data = armature.evaluated_get(layer.depsgraph).data
            rows.append([getattr(getattr(data, owner), name) for name in names])
    finally:
        scene.frame_set(frame, subframe=subframe)
    return dict(zip(names, np.array(rows).T, strict=True))

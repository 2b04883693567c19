# SPDX-License-Identifier: GPL-3.0-or-later
"""The gains that a scene uses: `scene.poise.gains`.

Defaults, a preset, or gains of the scene's own: those that were tuned, or moved with the sliders.
The own ones are kept as JSON text, so that they are saved with the file and undone with undo.
"""

import json
import operator
from dataclasses import dataclass, replace

import bpy
import numpy as np
from bpy.props import EnumProperty, FloatProperty, FloatVectorProperty, StringProperty

from ...controller import Character, Gains, GainsError
from ...controller.body.adult import adult
from ...controller.gains import regions as body_regions
from ...controller.gains.gains import LIMIT, WEIGHTS
from ...controller.geometry.skeleton import UNMIRRORED_DOFS
from ...controller.search.provenance import text_of
from ..blender import session
from ..blender.chosen import chosen_armature
from . import presets

#: The two sets of balance weights, as they are named for people.
STANCES = {"single": "On One Leg", "dual": "On Both Feet"}
#: Balance weights as an animator knows them: name, unit, what it does.
_WEIGHTS = {
    "com_position": (
        "Position",
        "N/m",
        "How hard the body is pulled back when its weight is not over the feet as in the animation",
    ),
    "com_velocity": (
        "Velocity",
        "N s/m",
        "How hard it is slowed down when its weight moves otherwise than in the animation",
    ),
    "trunk": (
        "Uprightness",
        "N m/rad",
        "How hard the hips are turned back to where the animation has them",
    ),
    "momentum": (
        "Momentum",
        "1/s",
        "How hard spinning is stopped that the animation does not have, as by arms that windmill",
    ),
}
_REGIONS = {
    "trunk": "the joints of the spine",
    "neck": "the joints of the neck",
    "arms": "shoulders and elbows",
    "legs": "hips and knees",
    "feet": "the ankles",
}


@dataclass(frozen=True)
class View:
    """The gains of a scene, for the body at hand.

    character: the measured one, or an adult while none is (measured is False). moved: inertias that
    its joints move, for `controller.regions`.
    """

    gains: Gains
    character: Character
    measured: bool
    moved: dict


def data_of(settings):
    """The gains of a scene's settings as `Gains.as_dict` gives them; None for the defaults. Raises
    GainsError if they cannot be used."""
    chosen = _chosen(settings)
    return chosen and chosen.as_dict()


def _chosen(settings):
    """The Gains of a scene's settings, for the body that they were made for; None for the defaults.
    Raises GainsError."""
    gains = settings.gains
    if gains.source == "PRESET":
        return presets.find(gains.preset).gains
    return _own(gains) if gains.source == "CUSTOM" else None


def keep(scene, gains):
    """Use gains in a scene that are no preset (yet): those that a search has found."""
    settings = scene.poise.gains
    settings.custom = json.dumps(gains.as_dict())
    settings.source, settings.preset, settings.reason = "CUSTOM", "", ""


def choose(scene, name, reason=""):
    """Use a preset in a scene, or the defaults if there is no name. reason: why it was suggested.
    Raises GainsError if the preset cannot be used."""
    if name:
        presets.find(name)
    settings = scene.poise.gains
    settings.source = "PRESET" if name else "DEFAULT"
    settings.preset, settings.custom, settings.reason = name, "", reason


def label(settings):
    """What is chosen, in a few words, for the menu."""
    gains = settings.gains
    if gains.source == "PRESET":
        return gains.preset
    if gains.source == "DEFAULT":
        return "Default"
    try:
        tuned = _own(gains).tuned
    except GainsError:
        tuned = None
    if tuned:
        return f"Tuned on {text_of(tuned, 'clip') or 'a clip'}"
    return f"{gains.preset or 'Default'} (changed)"


_last = None


def view(scene):
    """The View of a scene's gains. Raises GainsError if they cannot be used.

    The last one is kept: sixty sliders ask for it at every drawing.
    """
    global _last
    settings = scene.poise
    gains, character = settings.gains, _measured(scene)
    preset = presets.find(gains.preset).gains if gains.source == "PRESET" else None
    texts, things = (gains.source, gains.custom, settings.balance), (preset, character)
    if _last is None or _last[0] != texts or any(map(operator.is_not, things, _last[1])):
        body = character or adult()
        chosen = _chosen(settings)
        if chosen is None:
            used = Gains.default(body, settings.balance.lower())
        else:
            used = Gains.from_dict(chosen.as_dict(), body, "the chosen set of gains")
            used = replace(used, completed=chosen.completed)
        moved = body_regions.inertias(body)
        _last = (texts, things, View(used, body, character is not None, moved))
    return _last[2]


def _measured(scene):
    """The character of the chosen armature, None until it was measured."""
    armature, _ = chosen_armature(bpy.context)
    shot = session.result_of(scene, armature).shot if armature else None
    return shot.character if shot else None


def _own(gains):
    """The scene's own Gains. Raises GainsError if somebody damaged them."""
    try:
        data = json.loads(gains.custom)
    except ValueError as error:
        raise GainsError(
            f"The own gains of this scene are damaged ({error}): choose a preset."
        ) from error
    return Gains.from_dict(data, source="the scene's own set of gains")


# --- Sliders -------------------------------------------------------------------------------------


def _shown(settings):
    """The View for a slider, which cannot complain: the defaults if the gains cannot be used."""
    scene = settings.id_data
    try:
        return view(scene)
    except GainsError:
        body = adult()
        gains = Gains.default(body, scene.poise.balance.lower())
        return View(gains, body, False, body_regions.inertias(body))


def _change(settings, gains):
    """Keep what a slider made. It is not what was tuned any more."""
    gains = replace(gains, tuned=None, name="", description="", completed="")
    settings.custom = json.dumps(gains.as_dict())
    settings.reason = ""
    settings.source = "CUSTOM"


def _region_slider(region, get, put, **options):
    """A FloatProperty that shows a figure of a region and scales the gains of its joints."""

    def read(settings):
        shown = _shown(settings)
        return get(shown.gains, shown.moved, region)

    def write(settings, value):
        shown = _shown(settings)
        _change(settings, put(shown.gains, shown.moved, region, value))

    return FloatProperty(get=read, set=write, **options)


def _weight_slider(stance, weight):
    """A FloatProperty for a balance weight."""
    name, unit, description = _WEIGHTS[weight]
    i = WEIGHTS.index(weight)

    def read(settings):
        return float(getattr(_shown(settings).gains, stance)[i])

    def write(settings, value):
        gains = _shown(settings).gains
        values = getattr(gains, stance).copy()
        values[i] = value
        _change(settings, replace(gains, **{stance: values}))

    return FloatProperty(
        name=f"{name} ({unit})",
        description=f"{description} [{unit}]",
        get=read,
        set=write,
        min=-LIMIT,
        max=LIMIT,
        soft_min=0.0,
        soft_max=100.0 if weight == "momentum" else 3000.0,
        step=100 if weight == "momentum" else 1000,
        precision=1 if weight == "momentum" else 0,
    )


def _raw_slider(group, name, unit):
    """A FloatVectorProperty for the gains of all degrees of freedom."""

    def read(settings):
        return getattr(_shown(settings).gains, group).tolist()

    def write(settings, values):
        gains = _shown(settings).gains
        old = getattr(gains, group)
        # Blender gives all of them, in single precision: only one was moved.
        moved = np.float32(old) != np.float32(values)
        _change(settings, replace(gains, **{group: np.where(moved, values, old)}))

    return FloatVectorProperty(
        name=f"{name} ({unit})",
        description=f"{name} of a joint, left and right the same [{unit}]",
        size=len(UNMIRRORED_DOFS),
        get=read,
        set=write,
        min=0.0,
        max=LIMIT,
        soft_max=2000.0,
        step=100,
        precision=1,
    )


def _sliders():
    """Every slider by its property's name: frequency_arms, damping_arms, single_trunk, …"""
    for region, joints in _REGIONS.items():
        yield (
            f"frequency_{region}",
            _region_slider(
                region,
                body_regions.frequency,
                body_regions.with_frequency,
                name=f"Frequency of {region.title()} (Hz)",
                description=f"How fast {joints} swing back when pushed: stiffness as a natural "
                "frequency, the mean over the joints. Higher follows the animation more closely, "
                "lower is softer [Hz]",
                min=0.05,
                max=200.0,
                soft_min=0.2,
                soft_max=3.0 if region == "feet" else 15.0,
                step=10,
                precision=2,
            ),
        )
        yield (
            f"damping_{region}",
            _region_slider(
                region,
                body_regions.damping_ratio,
                body_regions.with_damping_ratio,
                name=f"Damping of {region.title()}",
                description=f"How soon {joints} come to rest: below 1 they overshoot and swing, "
                "at 1 they just do not, above they creep back",
                min=0.005,
                max=100.0,
                soft_min=0.05,
                soft_max=4.0,
                step=5,
                precision=2,
            ),
        )
    for stance in STANCES:
        for weight in WEIGHTS:
            yield f"{stance}_{weight}", _weight_slider(stance, weight)
    yield "stiffness", _raw_slider("stiffness", "Stiffness", "N m/rad")
    yield "damping", _raw_slider("damping", "Damping", "N m s/rad")


def _source_items():
    return (
        ("DEFAULT", "Default", "The default gains of the balance mode, scaled to the body"),
        ("PRESET", "Preset", "A preset"),
        ("CUSTOM", "Own", "Gains of this scene: tuned, or moved with the sliders"),
    )


class POISE_PG_gains(bpy.types.PropertyGroup):
    """Which gains a scene uses, and sliders for them."""

    __annotations__ = {
        "source": EnumProperty(
            name="Gains", description="Where the gains come from", items=_source_items()
        ),
        "preset": StringProperty(
            name="Preset", description="The preset in use, or the one that was changed"
        ),
        "custom": StringProperty(
            name="Own Gains", description="The gains of this scene, as JSON text"
        ),
        "reason": StringProperty(
            name="Reason", description="Why this preset was suggested, if it was"
        ),
        **dict(_sliders()),
    }


CLASSES = (POISE_PG_gains,)

# SPDX-License-Identifier: GPL-3.0-or-later
"""The proportions of the body: `scene.poise.morphology`, and arguments of the command line."""

import argparse
from functools import lru_cache

import bpy
from bpy.props import FloatProperty, PointerProperty

from ...controller.body import morphology as core
from ...controller.body.morphology import GROUPS, KINDS, Morphology
from ...controller.exceptions import SettingsError
from ..blender.redrawing import on_change_in_sidebar

_WORDS = {
    "length": "Length of the segment, from joint to joint",
    "girth": "Thickness of the segment; of trunk and pelvis also the width of shoulders and hips",
    "mass": "Mass of the segment. Twice as long, or twice as thick both ways, is twice as heavy",
}


def _percentage(kind):
    low, high = KINDS[kind]
    return FloatProperty(
        name=f"{kind.capitalize()} (%)",
        description=f"{_WORDS[kind]}, relative to the clip's [%]",
        default=100.0,
        min=100 * low,
        max=100 * high,
        soft_min=50.0,
        soft_max=200.0,
        step=100,
        precision=0,
        update=on_change_in_sidebar,
    )


class POISE_PG_segment_scale(bpy.types.PropertyGroup):
    """How one group of segments is scaled, in percent."""

    length: _percentage("length")
    girth: _percentage("girth")
    mass: _percentage("mass")


def _group(name):
    return PointerProperty(
        name=name, description=f"Proportions: {name.lower()}", type=POISE_PG_segment_scale
    )


class POISE_PG_morphology(bpy.types.PropertyGroup):
    """The proportions of the body: how each of GROUPS is scaled."""

    head: _group("Head")
    trunk: _group("Trunk")
    pelvis: _group("Pelvis")
    upper_arm: _group("Upper Arms")
    forearm: _group("Forearms")
    thigh: _group("Thighs")
    shin: _group("Shins")
    foot: _group("Feet")


def of(settings):
    """The Morphology that the sliders show."""
    factors = {
        # What is shown as 75 is not quite that in single precision.
        group: tuple(round(getattr(getattr(settings, group), kind) / 100, 5) for kind in KINDS)
        for group in GROUPS
    }
    return Morphology(factors)


def put(settings, morphology):
    """Set the sliders."""
    for group, values in morphology.factors.items():
        for kind, value in zip(KINDS, values, strict=True):
            setattr(getattr(settings, group), kind, 100 * value)


@lru_cache(maxsize=1)
def known():
    """The morphologies that come with Poise, by the names of their files. Read once: panels are
    drawn all the time."""
    return core.presets()


def label(settings):
    """What the sliders come to, in a word."""
    chosen = of(settings)
    if not chosen:
        return "As in the Clip"
    same = [one.name for one in known().values() if one.factors == chosen.factors]
    return same[0] if same else "Own"


# --- Command line --------------------------------------------------------------------------------


def add_arguments(parser):
    """The arguments of the proportions, to a parser."""
    parser.add_argument(
        "--morphology",
        metavar="NAME|FILE",
        help=f"other proportions: {', '.join(known())}, or a .json file (those of the armature)",
    )
    parser.add_argument(
        "--scale",
        type=_scale,
        action="append",
        default=[],
        metavar="SEGMENT=LENGTH,GIRTH,MASS",
        help=f"factors of a segment, such as thigh=1.2,1,1.1; again for each: {', '.join(GROUPS)}",
    )


def _scale(text):
    """'thigh=1.2,1,1.1' -> (group, factors)."""
    group, _, values = text.partition("=")
    try:
        factors = tuple(float(value) for value in values.split(","))
        Morphology({group: factors})
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a segment and three factors, such as thigh=1.2,1,1.1"
        ) from None
    except SettingsError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return group, factors


def chosen(options):
    """The Morphology that the arguments mean. Raises SettingsError."""
    base = Morphology.named(options.morphology) if options.morphology else Morphology()
    return base.scaled(options.scale)


CLASSES = (POISE_PG_segment_scale, POISE_PG_morphology)

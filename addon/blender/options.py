# SPDX-License-Identifier: GPL-3.0-or-later
"""Described options as properties of Blender."""

from inspect import get_annotations

import numpy as np
from bpy.props import BoolProperty, EnumProperty, FloatProperty, IntProperty


def offers(options):
    """Give a PropertyGroup a property of each of these options, {name: controller.options.Option},
    unless it has one of that name."""

    def give(cls):
        made = {name: property_of(one) for name, one in options.items()}
        cls.__annotations__ = made | get_annotations(cls)
        return cls

    return give


def property_of(option, kind=None, **more):
    """An option as a property. kind: of which kind its numbers are, None to tell by its default.
    more: arguments of the property."""
    zero = f"; 0 for {option.zero}" if option.zero else ""
    said = {"name": option.label, "description": option.words + zero}
    if option.choices is not None:
        items = tuple((value.upper(), *words) for value, words in option.choices.items())
        return EnumProperty(items=items, default=option.default.upper(), **said)
    if isinstance(option.default, bool):
        return BoolProperty(default=option.default, **said)
    if kind is None:
        kind = IntProperty if isinstance(option.default, int) else FloatProperty
    look = option.range.limits_from_zero if option.zero else option.range.limits
    if option.most is not None:
        look["soft_max"] = option.most
    if option.step is not None:  # of floats in hundredths
        look["step"] = round(option.step if kind is IntProperty else 100 * option.step)
    if option.digits is not None:
        look["precision"] = option.digits
    if (option.range.low, option.range.high) == (0, 1):  # a share: a bar that fills
        look["subtype"] = "FACTOR"
    number = int if kind is IntProperty else float
    return kind(default=number(option.default or 0), **look, **said, **more)


def values_of(options, group):
    """{name: value} of what a PropertyGroup holds of these options."""
    return {name: _value(one, getattr(group, name)) for name, one in options.items()}


def _value(option, value):
    if option.choices is not None:
        return value.lower()
    if option.zero and not value:
        return option.default
    if isinstance(value, float):  # 1.8 is not quite that in single precision
        value = float(str(np.float32(value)))
    return value if option.default is None else type(option.default)(value)

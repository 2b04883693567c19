# SPDX-License-Identifier: GPL-3.0-or-later
"""Numbers that nobody can mean: every option of every command and every property of the panels has
a range, and says it."""

import argparse
import math
import re
from pathlib import Path

import bpy
import pytest

from poise.addon.command import command_line
from poise.controller.ranges import RANGES

pytestmark = pytest.mark.once

HOSTILE = ("nan", "inf", "-inf", "-1e308", "1e308", "1e-300", "9" * 400, "-" + "9" * 30, "1e400")
#: Of these the least number is as good as nothing.
_MAY_BE_LITTLE = ("--noise", "--outside-help")
#: Around a hostile number where an option takes more than one.
FORMS = {
    "--frames": ("{}:9", "1:{}", "1:9:{}"),
    "--scale": ("thigh={},1,1", "thigh=1,1,{}"),
    "--weight": ("arms={}",),
    "--hand-back": ("{}", "{},9", "9,{}"),
    "--push": ("{},0.2,9,0,0", "1,{},9,0,0", "1,0.2,{},0,0", "1,0.2,0,0,{},head"),
    "--cycle": ("{}-9", "1-{}"),
    "--hold": ("left_hand@{}-9", "left_hand@1-{}", "left_hand@1-9,{}"),
    "--waypoint": ("{}:1,1", "1:{},1", "1:1,{}"),
}


def _commands():
    """{name: parser} of the verbs."""
    parser = command_line._parser("poise")
    (verbs,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return verbs.choices


def _numeric():
    """(command, option) of all options that take numbers."""
    texts = (None, str, Path)
    for name, parser in _commands().items():
        for action in parser._actions:
            kind = getattr(action.type, "__closure__", None)  # a batch passes on what it was given
            kind = kind[0].cell_contents if kind and name == "batch" else action.type
            if (
                action.option_strings
                and not action.choices
                and kind not in texts
                and "cleaning" not in repr(kind)
            ):
                yield name, action.option_strings[0]


@pytest.mark.parametrize(("command", "option"), list(_numeric()), ids=lambda text: text)
def test_no_option_takes_a_number_that_cannot_be(command, option, capsys):
    parser = _commands()[command]
    for form in FORMS.get(option, ("{}",)):
        for value in HOSTILE:
            if value == "1e-300" and (option in _MAY_BE_LITTLE or ",0.2," in form or "1:" in form):
                continue  # as good as nothing, which may be
            with pytest.raises(SystemExit) as end:
                parser.parse_args([f"{option}={form.format(value)}"])
            told = capsys.readouterr().err.splitlines()[-1]
            assert end.value.code == 2 and len(told) < 400
            sense = r"from -?[\d.e+-]+ to \d|not a (push|range|weight|segment)|cannot be scaled"
            assert re.search(f"argument {option}: .*({sense}|frames such as)", told), told


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("--blend-in=1000000", "'1000000' is not a whole number from 0 to 10000 frames"),
        ("--hand-back=40,900000", "'900000' is not a number from 1 to 10000 frames"),
        ("--hand-back=9000000", "'9000000' is not a frame such as 40, from -1048574 to 1048574"),
        ("--key-every=100000", "'100000' is not a whole number from 1 to 1000 frames"),
        ("--rate=20", "'20' is not a number from 50 to 10000 Hz"),
        ("--mass=2000", "'2000' is not a number from 1 to 1000 kg"),
        ("--push=20,0.2,1e6,0,0", "'20,0.2,1e6,0,0' is not a push of at most 100000 N"),
        ("--walk=2h", "'2h' is not a time such as 90, 120s, 2min or 1h, from 0.5 to 3600 s"),
    ],
)
def test_the_range_is_told(option, sentence, capsys):
    assert command_line.main(["bake", "shot.blend", option]) == 2
    assert sentence in capsys.readouterr().err


def test_every_property_has_ends(registered):
    kinds = bpy.types.PropertyGroup, bpy.types.Operator, bpy.types.AddonPreferences
    classes = [cls for kind in kinds for cls in kind.__subclasses__() if "POISE" in cls.__name__]
    assert len(classes) > 50
    bare = []
    for cls in classes:
        for prop in cls.bl_rna.properties:
            if prop.type == "INT":
                ends = prop.hard_min, prop.hard_max
                free = prop.identifier == "index" or "seed" in prop.identifier
                if not free and (min(ends) <= -(2**31) or max(ends) >= 2**31 - 1):
                    bare.append((cls.__name__, prop.identifier))
            elif prop.type == "FLOAT" and max(map(abs, (prop.hard_min, prop.hard_max))) > 1e9:
                bare.append((cls.__name__, prop.identifier))
    assert not bare


def test_ranges_have_room():
    for name, one in RANGES.items():
        assert one.low < one.high and math.isfinite(one.high - one.low), name
        assert math.nan not in one and math.inf not in one

# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of panels: facts, tables, sentences, and what several panels show alike."""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ...controller.checks import clip_check, verdict
from ...controller.options import Option, needed_by
from ..blender import session
from ..blender.translations import tr

if TYPE_CHECKING:
    import bpy

#: What a check or a verdict has found.
Found = clip_check.Finding | verdict.Finding


def fact(layout: "bpy.types.UILayout", label: str, text: str, translate: bool = True) -> None:
    """A label and a value, aligned like the properties. translate: the value is no name."""
    row = layout.row()
    row.scale_y = 0.8
    split = row.split(factor=0.4)
    left = split.row()
    left.alignment = "RIGHT"
    left.label(text=tr(label), translate=False)
    split.label(text=tr(text) if translate else text, translate=False)


def table_row(
    layout: "bpy.types.UILayout", label: str, *values: str, head: bool = False, factor: float = 0.36
) -> None:
    """A line of a table: figures stand right, in columns of equal width."""
    row = layout.row()
    row.scale_y = 0.8
    row.active = not head
    split = row.split(factor=factor)
    split.label(text=tr(label), translate=False)
    cells = split.grid_flow(columns=len(values), even_columns=True)
    for value in values:
        cell = cells.row()
        cell.alignment = "RIGHT"
        cell.label(text=tr(value), translate=False)


def figure(form: str, value: float | None) -> str:
    """A measure in words; None where a foot never stands, so that there is nothing to measure."""
    return "–" if value is None else form.format(value)


def sentence(
    layout: "bpy.types.UILayout", context: "bpy.types.Context", text: str, icon: str
) -> None:
    """A sentence, broken into lines as the sidebar's width has it."""
    column = layout.column(align=True)
    column.scale_y = 0.8
    for i, line in enumerate(_lines(context, text)):
        column.label(text=line, icon="BLANK1" if i else icon, translate=False)


def draw_findings(
    layout: "bpy.types.UILayout",
    context: "bpy.types.Context",
    findings: Sequence[Found],
    shower: "type[bpy.types.Operator]",
    icon: Callable[[Found], str] = lambda _: "ERROR",
) -> None:
    """Each as a sentence in lines that are buttons of an operator, which goes to its frames. icon:
    of a finding."""
    column = layout.column(align=True)
    for i, finding in enumerate(findings):
        text, sign = finding.sentence, icon(finding)
        for number, line in enumerate(_lines(context, f"{text[0].upper() + text[1:]}")):
            row = column.row()
            row.alignment, row.scale_y, row.alert = "LEFT", 0.8, sign == "CANCEL"
            button = row.operator(
                shower.bl_idname,
                text=line,
                icon="BLANK1" if number else sign,
                emboss=False,
                translate=False,
            )
            button.index = i


def _lines(context: "bpy.types.Context", text: str) -> list[str]:
    """A text in the user's language, in lines as the sidebar's width has it."""
    scale = context.preferences.system.ui_scale
    return textwrap.wrap(tr(text), max(16, int((context.region.width / scale - 70) / 6.2)))


def draw_options(
    layout: "bpy.types.UILayout",
    settings: "bpy.types.PropertyGroup",
    options: Mapping[str, Option],
    seldom: bool = False,
) -> "bpy.types.UILayout":
    """A column with rows of the options {name: controller.options.Option} of a property group: of
    those that are seldom needed, or of the others."""
    column = layout.column(align=True)
    # Names with units are too long to stand beside their fields.
    column.use_property_split = False
    for name, one in options.items():
        if one.seldom == seldom:
            # While a job is at work all is inactive; an inactive part would be bright again.
            needed = needed_by(options, name)
            idle = any(getattr(settings, need) == _default(settings, need) for need in needed)
            row = column.column(align=True)
            row.active = not idle or session.job() is not None
            if one.choices is not None:  # which have no room beside their name
                row.label(text=tr(one.label), translate=False)
            row = row.row()
            zero = one.zero and not getattr(settings, name)
            text = {"text": tr(f"{one.label}, 0: {one.zero}")} if zero else {}
            row.prop(settings, name, expand=one.choices is not None, **text)
    return column


def _default(settings: "bpy.types.PropertyGroup", name: str) -> object:
    """What a property is unless someone chooses otherwise."""
    return settings.bl_rna.properties[name].default


def draw_workers(layout: "bpy.types.UILayout", context: "bpy.types.Context") -> None:
    """How many processes search; the scene may leave that to the preferences."""
    settings = context.scene.poise.tuning
    text = "Workers" if settings.workers else "Workers, 0: automatic"
    layout.prop(settings, "workers", text=text)


def draw_heir(layout: "bpy.types.UILayout") -> None:
    """What stands in place of a progress bar that is gone; nothing is seen of it.

    Blender tells texts, gaps and bars apart by their order alone: where the mouse is on a bar that
    is gone, the text that comes next would be drawn as a bar until the mouse moves.
    """
    layout.separator(factor=0)

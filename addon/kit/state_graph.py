# SPDX-License-Identifier: GPL-3.0-or-later
"""What a character that is directed can be in, and what follows what, as a graph in a panel."""

from itertools import pairwise
from typing import TYPE_CHECKING

from ...controller.reference.state_machine import (
    FALL,
    GET_UP,
    STAND,
    TRANSITION,
    State,
    StateMachine,
)
from ..blender.translations import tr

if TYPE_CHECKING:
    import bpy

#: Share of the width that what stands on the left has, with the arrow to its right, and how wide
#: that is, in buttons.
_LEFT, _ARROW = 0.48, 1.2


def draw_states(
    layout: "bpy.types.UILayout", machine: StateMachine, current: State | None = None
) -> None:
    """Its states in boxes, and arrows to what can follow. current: what it is in now, None of who
    does not move."""
    layout = layout.column(align=True)
    acts = [state for state in machine.states if state.kind == TRANSITION]
    if acts:
        grid = layout.box().grid_flow(row_major=True, columns=2, even_columns=True, align=True)
        for key, state in enumerate(acts, 1):  # by which it is told to
            _draw_name(grid, state, current, f"{key} ")
        _draw_words(layout, "⇅", tr("on command, and back at their end"))
    gaits = list(machine.speeds)
    _draw_pair(layout, machine, STAND, gaits[0], current)
    for slower, faster in pairwise(gaits):
        _draw_words(layout, "", tr(f"⇅ from {machine.speeds[slower][1]:.1f} m/s on"))
        _draw_pair(layout, machine, None, faster, current)
    rises = GET_UP in machine.states
    _draw_words(layout, "↑" if rises else "", tr("out of balance  ↓"))
    _draw_pair(layout, machine, GET_UP if rises else None, FALL, current)


def _draw_pair(
    layout: "bpy.types.UILayout",
    machine: StateMachine,
    left: State | None,
    right: State,
    current: State | None,
) -> None:
    """Two states that follow each other, or the right one alone."""
    parts = layout.split(factor=_LEFT, align=True)
    if left is None:
        parts.label(text="")
    else:
        row = parts.row(align=True)
        _draw_state(row, machine, left, current)
        arrow = row.row()
        arrow.ui_units_x = _ARROW
        arrow.label(text="⇄", translate=False)
    _draw_state(parts, machine, right, current)


def _draw_state(
    row: "bpy.types.UILayout", machine: StateMachine, state: State, current: State | None
) -> None:
    """A state in a box, with its speeds."""
    column = row.box().column(align=True)
    column.scale_y = 0.8
    _draw_name(column, state, current)
    if state in machine.speeds:
        slowest, fastest = machine.speeds[state]
        column.label(text=f"{slowest:.1f} - {fastest:.1f} m/s", translate=False)


def _draw_name(
    layout: "bpy.types.UILayout", state: State, current: State | None, before: str = ""
) -> None:
    """Its name after some words, with a lamp that is lit while it is the current one."""
    text = before + (state.act or _name(state))
    lamp = "RADIOBUT_ON" if state == current else "RADIOBUT_OFF"
    layout.label(text=text, icon=lamp, translate=False)


def _name(state: State) -> str:
    return {
        "stand": tr("Stand"),
        "walk": tr("Walk"),
        "run": tr("Run"),
        "fall": tr("Fall"),
        "get_up": tr("Get Up"),
    }[state.name]


def _draw_words(layout: "bpy.types.UILayout", left: str, right: str) -> None:
    """What stands between two rows of states."""
    row = layout.row()
    row.scale_y = 0.8
    row.label(text=left, translate=False)
    words = row.row()
    words.alignment = "RIGHT"
    words.label(text=right, translate=False)

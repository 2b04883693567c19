# SPDX-License-Identifier: GPL-3.0-or-later
"""Robustness in the sidebar: what to measure, how it goes, what came of it."""

import bpy

from ..blender import session
from ..blender.translations import tr
from ..kit.panel import Panel
from ..kit.rows import draw_heir, draw_options, draw_workers, fact, sentence, table_row
from ..operators import POISE_OT_cancel, POISE_OT_find_limit, POISE_OT_show_limit
from ..plots import limit_plot, tuning_plot
from ..shots import robustness
from ..shots.robustness import outcome_words
from ..shots.tuning import clock
from .tuning_panel import _rows


class POISE_PT_robustness(Panel, bpy.types.Panel):
    """How hard can it be hit?"""

    bl_label = "Robustness"
    bl_parent_id = "POISE_PT_simulate"
    bl_options = {"DEFAULT_CLOSED"}

    def content(self, layout, context, armature, _reason):
        """Settings and button; while it measures, how it goes; afterwards, what came of it."""
        job = session.job()
        if job is not None and job.finds_limit:
            _draw_measurement(layout, context, job)
            return
        draw_heir(layout)
        settings = context.scene.poise.robustness
        column = layout.column()
        column.active = job is None
        draw_workers(draw_options(column, settings, robustness.LIMIT), context)
        row = layout.row()
        row.scale_y = 1.5
        row.operator(POISE_OT_find_limit.bl_idname, text="Find Limit", icon="MOD_PHYSICS")
        outcome = session.result_of(context.scene, armature).limit if armature else None
        if outcome is not None:
            _draw_outcome(layout, context, outcome)


class POISE_PT_robustness_advanced(Panel, bpy.types.Panel):
    """What is seldom needed."""

    bl_label = "Advanced"
    bl_parent_id = "POISE_PT_robustness"
    bl_options = {"DEFAULT_CLOSED"}

    def content(self, layout, context, _armature, _reason):
        """Magnitudes, what counts as withstood, the plot."""
        settings = context.scene.poise.robustness
        layout.active = session.job() is None
        layout.use_property_split = False
        word = "push" if settings.kind == "PUSHES" else "sphere"
        column = layout.column(align=True)
        column.prop(settings, f"{word}_start")
        column.prop(settings, f"{word}_step")
        draw_options(layout, settings, robustness.LIMIT, seldom=True)


def _draw_measurement(layout, context, job):
    """Progress, the button that stops it, and the rates so far."""
    row = layout.row()
    row.scale_y = 1.5
    row.progress(factor=job.progress, text=tr(job.text))
    row = layout.row()
    row.scale_y = 1.2
    row.operator(POISE_OT_cancel.bl_idname, text="Stop and Keep", icon="EVENT_ESC")
    if job.search is None:
        return
    if job.shot.left_out:
        sentence(layout, context, job.shot.left_out, "INFO")
    left = job.search.time_left()
    column = layout.column(align=True)
    fact(column, "Elapsed", clock(job.search.wall))
    fact(column, "Time left", "–" if left is None else f"about {clock(left)}")
    outcome = job.outcome
    if outcome is not None:
        _draw_rates(layout, outcome)


def _draw_outcome(layout, context, outcome):
    """In a box that tells at a glance what was found; rates; the plot."""
    box = layout.box()
    complete = outcome.found and outcome.ended != "falls"
    sentence(box, context, outcome_words(outcome), "CHECKMARK" if complete else "INFO")
    _draw_rates(layout, outcome)
    if outcome.single:
        _draw_plot(layout, context, outcome)


def _draw_rates(layout, outcome):
    """How many sequences stand, by magnitude."""
    table = layout.box().column(align=True)
    name = "Push" if outcome.settings.kind == "pushes" else "Sphere"
    table_row(table, name, "Per mass", "Stand", head=True)
    for rate in outcome.rates:
        figures = f"{rate.speed:.2f} m/s", f"{rate.passed} of {rate.count}"
        table_row(table, f"{rate.magnitude:g} {outcome.unit}", *figures)


def _draw_plot(layout, context, outcome):
    """The shapes between the names of the sides, what is what, and the button for more."""

    def word(row, text):
        cell = row.column()
        cell.alignment = "CENTER"
        cell.label(text=text)

    def centred():
        row = column.row()
        row.alignment = "CENTER"
        return row

    rows = _rows(context)
    column = layout.column(align=True)
    word(centred(), "Front")
    centred().template_icon(limit_plot.panel_icon(context, outcome, rows), scale=rows)
    word(centred(), "Back")
    column = layout.column(align=True)
    row = centred()
    row.label(text="Withstood", icon_value=tuning_plot.swatch_icon(context, "best"))
    row.label(text="Feet in place", icon_value=tuning_plot.swatch_icon(context, "target"))
    step, count = limit_plot.rings(outcome)
    reach = f"{step:g} to {count * step:g} {outcome.unit}"
    phases = len(outcome.single)
    plural = "s" if phases > 1 else ""
    centred().label(text=tr(f"{count} rings: {reach}; worst of {phases} moment{plural}"))
    layout.operator(POISE_OT_show_limit.bl_idname, text="Show Plot of Limit", icon="IMAGE_DATA")


CLASSES = (POISE_PT_robustness, POISE_PT_robustness_advanced)

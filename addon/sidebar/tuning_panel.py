# SPDX-License-Identifier: GPL-3.0-or-later
"""Tuning in the sidebar: how to search, how it goes, what came of it."""

import bpy

from ...controller.exceptions import GainsError
from ...controller.search.trial import DISTURBANCES
from ...controller.simulation.measures import LIMITS
from ..blender import session
from ..blender.translations import tr
from ..kit.panel import Panel
from ..kit.rows import draw_heir, draw_options, draw_workers, fact, sentence
from ..operators import (
    POISE_OT_cancel,
    POISE_OT_keep_best,
    POISE_OT_optimize,
    POISE_OT_preview_best,
    POISE_OT_simulate,
)
from ..plots import tuning_plot
from ..settings import gains
from ..shots import tuning
from ..shots.tuning import clock, outcome_words
from .gains_panel import POISE_OT_gains_add

#: Lines of text that the curves are high, at least and at most, and width of the numbers.
_LEAST_ROWS, _MOST_ROWS, _NUMBERS = 7, 15, 1.3


class POISE_PT_tune(Panel, bpy.types.Panel):
    """Look for gains."""

    bl_label = "Tune"
    bl_parent_id = "POISE_PT_simulate"
    bl_options = {"DEFAULT_CLOSED"}

    def content(self, layout, context, armature, _reason):
        """Settings and button; while it searches, how it goes; afterwards, what came of it."""
        job = session.job()
        if job is not None and job.tunes:
            _draw_search(layout, context, job)
            return
        draw_heir(layout)
        settings = context.scene.poise.tuning
        column = layout.column()
        column.active = job is None
        draw_workers(draw_options(column, settings, tuning.SEARCH), context)
        draw_options(column, settings, DISTURBANCES)
        row = layout.row()
        row.scale_y = 1.5
        row.operator(POISE_OT_optimize.bl_idname, text="Optimize", icon="GRAPH")
        outcome = session.result_of(context.scene, armature).outcome if armature else None
        if outcome is not None:
            _draw_outcome(layout, context, outcome)


class POISE_PT_tune_advanced(Panel, bpy.types.Panel):
    """What is seldom needed."""

    bl_label = "Advanced"
    bl_parent_id = "POISE_PT_tune"
    bl_options = {"DEFAULT_CLOSED"}

    def content(self, layout, context, _armature, _reason):
        """The search, and where a trial ends."""
        settings = context.scene.poise.tuning
        layout.active = session.job() is None
        draw_options(layout, settings, tuning.SEARCH, seldom=True)
        layout.label(text="A trial ends beyond")
        draw_options(layout, settings, LIMITS)


# --- While it searches ---------------------------------------------------------------------------


def _draw_search(layout, context, job):
    """Progress, figures, curves, and the buttons."""
    row = layout.row()
    row.scale_y = 1.5
    row.progress(factor=job.progress, text=tr(job.text))
    row = layout.row(align=True)
    row.scale_y = 1.2
    row.operator(POISE_OT_keep_best.bl_idname, text="Stop and Keep", icon="CHECKMARK")
    row.operator(POISE_OT_cancel.bl_idname, text="Discard", icon="EVENT_ESC")
    search = job.search
    if search is None:
        return
    _draw_figures(layout, search)
    if job.resumed_at is not None:
        sentence(layout, context, f"Resumed at generation {job.resumed_at}", "FILE_REFRESH")
    if job.shot.left_out:
        sentence(layout, context, job.shot.left_out, "INFO")
    if job.warning:
        sentence(layout, context, job.warning, "ERROR")
    _draw_curves(layout, context, search.generations, search.settings.target)
    row = layout.row(align=True)
    row.operator(POISE_OT_preview_best.bl_idname, text="Preview Best", icon="GHOST_ENABLED")
    row.prop(context.scene.poise.tuning, "follow", text="", icon="TRACKING_FORWARDS")
    words = job.preview_words()
    if words:
        sentence(layout, context, words, "BLANK1")


def _draw_figures(layout, search):
    column = layout.column(align=True)
    history = search.generations
    running = min(len(history), search.settings.generations)
    fact(column, "Generation", f"{running} of {search.settings.generations}")
    done, count = search.progress
    fact(column, "Trials", f"{done} of {count}")
    if search.best is not None:
        fact(column, "Best", f"{search.best.reward:.2f} (generation {search.best.generation})")
        fact(column, "Mean", f"{history[-1].mean:.2f}")
    left = search.time_left()
    if left is None:
        fact(column, "Elapsed", clock(search.wall))
    else:
        fact(column, "Time left", clock(left))


# --- Afterwards ----------------------------------------------------------------------------------


def _draw_outcome(layout, context, outcome):
    """In a box that tells at a glance whether it worked; curves; what to do with it."""
    confirmed = outcome.confirmed_at is not None
    box = layout.box()
    sentence(box, context, outcome_words(outcome), "CHECKMARK" if confirmed else "INFO")
    _draw_curves(layout, context, outcome.history, outcome.settings.target)
    if not _in_use(context.scene, outcome.gains):  # undone, or others were chosen since
        sentence(layout, context, "Other gains are in use now.", "INFO")
        return
    layout.operator_context = "INVOKE_DEFAULT"
    layout.operator(POISE_OT_gains_add.bl_idname, text="Save as Preset…", icon="ADD")
    layout.operator(POISE_OT_simulate.bl_idname, text="Simulate with These", icon="PLAY")


def _in_use(scene, found):
    """Whether a scene has these gains, under whatever name."""
    try:
        used = gains.data_of(scene.poise)
    except GainsError:
        return False
    values = ("balance", "body", "stiffness", "damping", "single", "dual")
    return used is not None and all(used[key] == found.as_dict()[key] for key in values)


# --- Curves --------------------------------------------------------------------------------------


def _draw_curves(layout, context, history, target):
    """The curves between the numbers of their axes, and what is what."""
    rows = _rows(context)
    column = layout.column(align=True)
    row = column.row(align=True)
    row.alignment = "CENTER"
    numbers = row.column(align=True)
    numbers.ui_units_x = _NUMBERS
    for i in range(rows):
        cell = numbers.row()
        cell.alignment = "RIGHT"
        reward = 2 - 2 * i / (rows - 1)
        cell.label(text=f"{reward:.0f}" if reward in (0.0, 1.0, 2.0) else "")
    row.template_icon(tuning_plot.plot_icon(context, history, target, rows), scale=rows)
    row = column.row()
    row.alignment = "CENTER"
    row.scale_y = 0.8
    row.label(text=tr(f"Score over {tuning_plot.last_shown(history)} generations"))
    row = column.row(align=True)
    row.alignment = "CENTER"
    row.label(text="Best", icon_value=tuning_plot.swatch_icon(context, "best"))
    row.label(text="Mean", icon_value=tuning_plot.swatch_icon(context, "mean"))
    row.label(text="Target", icon_value=tuning_plot.swatch_icon(context, "target"))


def _rows(context):
    """So many lines, an odd number, that the curves fill the sidebar's width."""
    width = context.region.width / context.preferences.system.ui_scale
    rows = int((width - 45) / 20 - _NUMBERS)
    rows = min(max(rows, _LEAST_ROWS), _MOST_ROWS)
    return rows if rows % 2 else rows - 1


CLASSES = (POISE_PT_tune, POISE_PT_tune_advanced)

# SPDX-License-Identifier: GPL-3.0-or-later
"""The top of the sidebar: how much of it to show; and the quick mode, three decisions and a
button."""

import bpy

from ...controller.exceptions import GainsError
from ..blender import session
from ..blender.translations import tr
from ..kit.panel import Panel
from ..kit.parts import (
    draw_choice,
    draw_ghost,
    draw_job,
    draw_outcome,
    draw_outdated,
    draw_range,
    draw_scale,
    draw_start,
    draw_switch,
    draw_together,
    draw_unreadable,
    draw_warnings,
)
from ..kit.rows import draw_heir, sentence
from ..operators import (
    POISE_OT_bake,
    POISE_OT_cancel,
    POISE_OT_discard,
    POISE_OT_example_scene,
    POISE_OT_keep_best,
    POISE_OT_optimize,
    POISE_OT_rectify,
    POISE_OT_simulate,
)
from ..settings import gains, quick
from ..shots.tuning import outcome_words
from .gains_panel import POISE_OT_gains_choose
from .tuning_panel import _in_use


class POISE_PT_quick(Panel, bpy.types.Panel):
    """The switch between quick and full, and all of quick mode."""

    # The switch stands in its header: a panel without one would put the tab before all others.
    bl_label = ""
    bl_options = {"HEADER_LAYOUT_EXPAND"}

    @classmethod
    def poll(cls, _context):
        """The switch is always there."""
        return True

    def draw_header(self, context):
        """The switch."""
        self.layout.row().prop(context.scene.poise, "mode", expand=True)

    def content(self, layout, context, armature, reason):
        """Whom, which frames, in what style; simulate; what came of it; bake."""
        settings, job = context.scene.poise, session.job()
        if session.is_elsewhere(job, context.scene):
            text = f"Poise is {job.doing} in the scene '{job.scene_name}'."
            sentence(layout, context, text, "INFO")
        if settings.mode == "FULL":
            return
        column = layout.column()
        column.active = job is None
        column.prop(settings, "armature", placeholder=armature.name if armature else "")
        if armature is None:
            _draw_nobody(layout, context, reason)
            if job is not None:
                _draw_button(layout, context, armature, job)
            return
        draw_range(column, context, armature)
        _draw_style(column, context)
        _draw_fall(column, context)
        _draw_also_set(column, context, armature)
        if job is None:
            draw_heir(layout)
            draw_unreadable(layout, context, armature)
        _draw_button(layout, context, armature, job)
        result = session.result_of(context.scene, armature)
        shot = job.shot if job else result.shot
        if settings.method == "AUTO":
            draw_choice(layout, context, shot)
        if job is None:
            _draw_result(layout, context, armature, result)


def _draw_nobody(layout, context, reason):
    """Without a character."""
    sentence(layout, context, f"{reason}.", "INFO")
    if not any(thing.type == "ARMATURE" for thing in context.scene.objects):
        row = layout.row()
        row.scale_y = 1.5
        row.operator(POISE_OT_example_scene.bl_idname, text="Example Scene", icon="SCENE_DATA")
        stairs = layout.operator(POISE_OT_example_scene.bl_idname, text="Example Scene: Stairs")
        stairs.example = "STAIRS"


def _draw_style(layout, context):
    """How firmly the upper body holds on to the animation."""
    settings = context.scene.poise
    try:
        balance = gains.view(context.scene).gains.balance
    except GainsError as error:
        sentence(layout, context, str(error), "ERROR")
        return
    column = layout.column(align=True)
    column.use_property_split = False
    column.active = layout.active and balance == "foot_forces"
    column.label(text="Style")
    column.row(align=True).prop(settings, "style", expand=True)


def _draw_fall(layout, context):
    """What it does once its balance is lost."""
    column = layout.column(align=True)
    column.use_property_split = False
    column.label(text="When It Falls")
    settings = context.scene.poise
    column.row(align=True).prop(settings, "when_it_falls", expand=True)
    falls = layout.active and settings.when_it_falls != "STOP"
    row = column.row()
    row.active = falls
    row.prop(settings, "get_up")
    once_up = column.column(align=True)
    once_up.active = falls and settings.get_up
    once_up.label(text="Once Up")
    once_up.row(align=True).prop(settings, "once_up", expand=True)


def _draw_also_set(layout, context, armature):
    """What is in effect though it is not shown here."""
    settings = context.scene.poise
    if settings.gains.source != "DEFAULT":
        row = layout.row(align=True)
        row.label(text=tr(gains.label(settings)), icon="PRESET", translate=False)
        row.operator(POISE_OT_gains_choose.bl_idname, text="", icon="X").name = ""
    names = quick.also_set(context.scene, armature)
    if names:
        sentence(layout, context, "Also set in Full, and in effect:", "INFO")
        sentence(layout, context, ", ".join(map(tr, names)), "BLANK1")


def _draw_button(layout, context, armature, job):
    """The button, another one where several are selected, or how far it is."""
    row = layout.row(align=True)
    if job is None:
        row.scale_y = 2.0
        row.operator(POISE_OT_simulate.bl_idname, text="Simulate", icon="PLAY")
        draw_together(layout, context, armature)
    elif job.tunes:
        row.scale_y = 1.5
        row.progress(factor=job.progress, text=tr(job.text))
        row = layout.row(align=True)
        row.operator(POISE_OT_keep_best.bl_idname, text="Stop and Keep", icon="CHECKMARK")
        row.operator(POISE_OT_cancel.bl_idname, text="Discard", icon="EVENT_ESC")
    else:
        draw_job(layout, job)


def _draw_result(layout, context, armature, result):
    """Stood or fell, and why; what to do next; the ghost; bake and compare."""
    settings = context.scene.poise
    if result.error:
        sentence(layout, context, result.error, "ERROR")
    if result.outcome is not None and _in_use(context.scene, result.outcome.gains):
        sentence(layout, context, outcome_words(result.outcome), "GRAPH")
    if result.recording is not None:
        shot = result.shot
        draw_outcome(layout, context, result)
        draw_warnings(layout, context, result)
        if shot.reading.unit_guessed:
            draw_scale(layout, shot)
        draw_outdated(layout, context, armature, result)
        if shot.why and not shot.recording.filled:
            _draw_next(layout, context, shot)
        draw_ghost(layout, settings)
        row = layout.row(align=True)
        row.scale_y = 1.5
        draw_start(row, POISE_OT_bake, "Bake", "ACTION")
        row.operator(POISE_OT_discard.bl_idname, text="", icon="TRASH")
    draw_switch(layout, context, armature)


def _draw_next(layout, context, shot):
    """Buttons for what may help, the most promising first."""
    column = layout.column(align=True)
    for step in quick.steps_after_fall(shot):
        if step == "optimize":
            column.operator(POISE_OT_optimize.bl_idname, text="Optimize", icon="GRAPH")
            continue
        if step == "finer":
            sentence(column, context, "A finer quality may find a way on.", "INFO")
            row = column.row(align=True)
            row.use_property_split = False
            row.prop(context.scene.poise.rectification, "preset", expand=True)
        text = "Resume" if step == "resume" else "Rectify"
        column.operator(POISE_OT_rectify.bl_idname, text=text, icon="MOD_SMOOTH")


CLASSES = (POISE_PT_quick,)

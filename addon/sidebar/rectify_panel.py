# SPDX-License-Identifier: GPL-3.0-or-later
"""Rectification in the sidebar: how to search, how it goes, what came of it."""

import bpy

from ...controller.search.rectification import COSTS
from ..blender import session
from ..kit.panel import Panel
from ..kit.parts import draw_start
from ..kit.rows import draw_workers, fact, sentence
from ..operators import (
    POISE_OT_bake_target,
    POISE_OT_forget_rectification,
    POISE_OT_push_here,
    POISE_OT_rectify,
)
from ..shots import rectify
from ..shots.tuning import clock


class POISE_PT_rectify(Panel, bpy.types.Panel):
    """Change the animation a little, so that a body can perform it."""

    bl_label = "Rectify"
    bl_parent_id = "POISE_PT_simulate"
    bl_options = {"DEFAULT_CLOSED"}

    def content(self, layout, context, armature, _reason):
        """Settings and button; while it searches, how it goes; afterwards, what came of it."""
        job, settings = session.job(), context.scene.poise.rectification
        if job is not None and job.rectifies and job.search is not None:
            _draw_search(layout, context, job)
            return
        column = layout.column()
        column.active = job is None
        column.row().prop(settings, "preset", expand=True)
        shot = session.result_of(context.scene, armature).shot if armature else None
        fact(column, "Takes about", _cost_words(settings, shot))
        column = column.column(align=True)
        column.use_property_split = False
        text = "Budget (min)" if settings.budget else "Budget (min), 0: no limit"
        column.prop(settings, "budget", text=text)
        draw_workers(column, context)
        column.prop(settings, "seed")
        kept = rectify.kept(context.scene, armature, pushed=False) if armature else []
        row = layout.row(align=True)
        row.scale_y = 1.5
        row.operator(
            POISE_OT_rectify.bl_idname, text="Resume" if kept else "Rectify", icon="MOD_SMOOTH"
        )
        if kept:
            row.operator(POISE_OT_forget_rectification.bl_idname, text="", icon="TRASH")
            sentence(
                layout,
                context,
                "An unfinished search is kept: with the same animation and settings it goes on "
                "where it was.",
                "FILE_REFRESH",
            )
        if shot is not None and shot.rectified is not None:
            _draw_result(layout, context, armature, shot)


class POISE_PT_rectify_advanced(Panel, bpy.types.Panel):
    """What is seldom needed."""

    bl_label = "Advanced"
    bl_parent_id = "POISE_PT_rectify"
    bl_options = {"DEFAULT_CLOSED"}

    def content(self, layout, context, _armature, _reason):
        """How it searches, and what the ghost does meanwhile."""
        settings = context.scene.poise.rectification
        column = layout.column()
        column.active = session.job() is None
        column.prop(settings, "search")
        layout.prop(settings, "play")


def _cost_words(settings, shot):
    """How long the processors have to work."""
    cost = COSTS[settings.preset.lower()]
    if shot is None or shot.reading is None:
        return f"{cost} CPU s a second"
    return f"{clock(cost * shot.reading.motion.duration)} of CPU time"


def _draw_search(layout, context, job):
    """How it goes."""
    search = job.search
    column = layout.column(align=True)
    fact(column, "Reached", f"{job.seconds:.2f} of {job.shot.reading.motion.duration:.2f} s")
    left = search.time_left()
    fact(column, "Elapsed", clock(search.wall))
    fact(column, "Time left", "–" if left is None else f"about {clock(left)}")
    fact(column, "Pieces kept", str(len(search.nodes)))
    fact(column, "Went back", f"{search.backtracks} ×")
    if search.nodes:
        fact(column, "Error", f"{search.nodes[-1].cost:.2f} (30 is a fall)")
    if job.resumed_at is not None:
        sentence(layout, context, f"Resumed at {job.resumed_at:.2f} s", "FILE_REFRESH")
    if job.warning:
        sentence(layout, context, job.warning, "ERROR")
    layout.prop(context.scene.poise.rectification, "play")


def _draw_result(layout, context, armature, shot):
    """What came of it, and what can be done with it."""
    outcome, settings = shot.rectified, context.scene.poise.rectification
    box = layout.box()
    words = rectify.outcome_words(outcome, shot.reading.motion.duration)
    kept = outcome.success and shot.verdict.keeper
    sentence(box, context, words, "CHECKMARK" if kept else "INFO")
    column = box.column(align=True)
    fact(column, "CPU time", clock(outcome.cpu))
    fact(column, "Elapsed", clock(outcome.wall))
    fact(column, "Tried", f"{outcome.evaluations} variants")
    fact(column, "Went back", f"{outcome.backtracks} ×")
    column = layout.column(align=True)
    row = column.row(align=True)
    row.use_property_split = False
    row.prop(settings, "since", expand=True)
    kept = rectify.kept(context.scene, armature, pushed=True)
    column.operator(
        POISE_OT_push_here.bl_idname,
        text="Resume Push" if kept else "Push Here",
        icon="FORCE_WIND",
    )
    draw_start(layout, POISE_OT_bake_target, "Changes without Physics", "ACTION")


CLASSES = (POISE_PT_rectify, POISE_PT_rectify_advanced)

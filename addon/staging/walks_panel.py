# SPDX-License-Identifier: GPL-3.0-or-later
"""Endless walks in the sidebar."""

import bpy

from ...controller.reference.state_machine import TRANSITION
from ..blender import session
from ..blender.translations import tr
from ..kit.panel import Panel
from ..kit.parts import draw_job
from ..kit.rows import sentence
from ..kit.state_graph import draw_states
from ..scene.walks import NAMES, PROPERTY
from .marked import POISE_OT_add_act, POISE_OT_remove_act, draw_marked
from .play import POISE_OT_play, POISE_OT_save_script, learned, played
from .walks import POISE_OT_find_cycle


class POISE_PT_walk(Panel, bpy.types.Panel):
    """Walk or run for as long as wanted."""

    bl_label = "Locomotion"
    bl_parent_id = "POISE_PT_simulate"
    bl_options = {"DEFAULT_CLOSED"}

    def draw_header(self, context):
        """The switch."""
        row = self.layout.row()
        row.active = session.job() is None
        row.prop(context.scene.poise.walk, "enabled", text="")

    def content(self, layout, context, armature, _reason):
        """How long, which frames, where to."""
        settings = context.scene.poise.walk
        layout.active = settings.enabled and session.job() is None
        layout.prop(settings, "seconds")
        layout.prop(settings, "heading", icon="CURVE_DATA")
        if armature is not None:
            column = layout.column(align=True)
            column.active = layout.active and settings.heading is None
            for name in NAMES:
                column.prop(getattr(armature.data, PROPERTY), name)
        layout.operator(POISE_OT_find_cycle.bl_idname, text="Find Cycle", icon="FILE_REFRESH")
        if settings.found:
            sentence(layout, context, f"{settings.found}.", "INFO")
        row = layout.row(heading=tr("Cycle"))
        row.prop(settings, "use_cycle", text="Own Frames")
        column = layout.column(align=True)
        column.active = layout.active and settings.use_cycle
        column.prop(settings, "first")
        column.prop(settings, "last")
        if settings.enabled:
            sentence(
                layout,
                context,
                "Simulate walks on by balance, with the gains in use; Bake writes an action as "
                "long as the walk. Key Pace, Turn and Sideways to lead it.",
                "INFO",
            )


class POISE_PT_play(Panel, bpy.types.Panel):
    """Lead a character with the keyboard."""

    bl_label = "Play Live"
    bl_parent_id = "POISE_PT_simulate"
    bl_options = {"DEFAULT_CLOSED"}

    def content(self, layout, context, armature, _reason):
        """What it is played with, the button, and what it was told."""
        settings, job = context.scene.poise.walk, session.job()
        if job is not None and job.plays and job.is_played:
            # Nothing of how it began can be changed now.
            row = layout.row()
            row.scale_y = 1.5
            row.progress(factor=job.progress, text=tr(job.text))
            sentence(layout, context, "Enter keeps it as a take, Esc discards it.", "INFO")
            draw_states(layout, job.play.machine, job.play.state)
            return
        column = layout.column()
        column.active = job is None
        column.prop(settings, "skills")
        column.prop(settings, "push")
        column.prop(settings, "ball")
        column.prop(settings, "follow")
        if armature is not None:
            row = layout.row()
            row.label(text="Acts")
            own = draw_marked(
                layout, context, armature, POISE_OT_add_act, POISE_OT_remove_act, numbered=True
            )
            if own:
                row.label(text="Help (× weight)")
            if settings.skills:
                _draw_learned(layout, context, armature)
        if job is not None and job.plays:
            draw_job(layout, job)
            return
        row = layout.row()
        row.scale_y = 1.5
        row.operator(POISE_OT_play.bl_idname, text="Play", icon="PLAY")
        sentence(
            layout,
            context,
            "Arrow keys lead a walk that loops, as Locomotion has it, while physics moves it; "
            "Enter keeps what was played as a take.",
            "INFO",
        )
        if played(context) is not None:
            layout.operator(POISE_OT_save_script.bl_idname, text="Save Script", icon="EXPORT")


def _draw_learned(layout, context, armature):
    """What an armature can do by its skills, or why it can do nothing by them."""
    machine, problem = learned(context, armature)
    if problem is not None:
        sentence(layout, context, problem, "ERROR")
        return
    if any(state.kind == TRANSITION for state in machine.states):
        sentence(layout, context, "The acts of the skills follow by the next keys.", "INFO")
    draw_states(layout, machine)


CLASSES = (POISE_PT_walk, POISE_PT_play)

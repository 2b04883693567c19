# SPDX-License-Identifier: GPL-3.0-or-later
"""The tab *Poise* in the sidebar of the 3D view.

Whatever is shown here is looked up anew at each drawing, so undo and redo cannot leave it behind.
"""

import bpy

from ...controller.simulation.measures import MEASURES
from ..baking import ik_legs
from ..blender import compat, session
from ..blender.chosen import chosen_armature
from ..blender.translations import tr
from ..kit.known_map import known_map
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
from ..kit.rows import draw_heir, draw_options, fact, figure, sentence, table_row
from ..operators import (
    POISE_OT_bake,
    POISE_OT_discard,
    POISE_OT_inspect,
    POISE_OT_keep_take,
    POISE_OT_save_map,
    POISE_OT_simulate,
)
from ..rigs import bake_target, rig
from ..settings import takes
from ..settings.properties import CHOSEN
from . import takes_panel

#: Figures of a simulation as they are shown: key of the report, label, format with the unit.
OTHER_ROWS = (
    ("tracking_error", "Off the animation", "{:.0f} mm"),
    ("tracking_error_local", "Off its pose", "{:.0f} mm"),
    ("residual", "Help from outside", "{:.0f} N"),
    ("few_corners", "On edges of feet", "{:.0%}"),
    ("recovery_steps", "Recovery steps", "{:d}"),
    ("reward", "Score (0 to 2)", "{:.2f}"),
    ("real_time_factor", "Speed", "{:.1f} × real time"),
)
#: Measures of a bake: before and after.
BAKE_ROWS = (
    ("foot_slide", "Foot slide", "{:.3f} m/s"),
    ("foot_penetration", "Below floor", "{:.0f} mm"),
    ("jitter", "Jitter (m/s³)", "{:.0f}"),
    ("zmp_inside", "Weight over feet", "{:.0%}"),
    ("pulls_on_ground", "Pulled down", "{:.0%}"),
)


#: The style is beside the gains.
_CHOSEN_HERE = {name: one for name, one in CHOSEN.items() if name != "style"}


class POISE_PT_character(Panel, bpy.types.Panel):
    """Whom to simulate."""

    bl_label = "Character"

    def content(self, layout, context, armature, reason):
        """The armature, its rig map, its body."""
        settings = context.scene.poise
        # While a job is at work all is inactive; an inactive part of that would be bright again.
        layout.active = session.job() is None
        placeholder = armature.name if armature else ""
        layout.prop(settings, "armature", placeholder=placeholder)
        if armature is None:
            sentence(layout, context, f"{reason}.", "INFO")
            return
        layout.prop(settings, "rig", placeholder="Automatic", icon="ARMATURE_DATA")
        result = session.result_of(context.scene, armature)
        _draw_map(layout, context, armature)
        column = layout.column()
        column.use_property_split = False  # this is too long to stand beside the field
        text = "Unit (m)" if settings.unit else "Unit, 0: automatic"
        column.prop(settings, "unit", text=text)
        row = layout.row(heading="Mass (kg)")
        row.prop(settings, "use_mass", text="")
        sub = row.row()
        sub.active = settings.use_mass or session.job() is not None
        sub.prop(settings, "mass", text="")
        _draw_body(layout, result)


def _draw_map(layout, context, armature):
    """Which rig map was found, and how; what it lacks."""
    rig_map, problem = known_map(context, armature)
    column = layout.column(align=True)
    if problem:
        sentence(column, context, problem, "ERROR")
    elif rig_map is None:
        fact(column, "Found", "at the first reading")
    else:
        fact(column, "Found", rig_map.name, translate=False)
        fact(column, "By", "geometry (detected)" if rig_map.detected else "bone names")
        missing = ", ".join(tr(rig.label(slot)) for slot in rig_map.missing)
        fact(column, "Missing", missing or "nothing")


def _draw_body(layout, result):
    """What is known of the body."""
    shot = result.shot
    column = layout.column(align=True)
    if shot is not None and shot.character is not None:
        character = shot.character
        given = "given" if shot.options.mass is not None else "from height"
        given = "reshaped" if shot.options.morphology else given
        fact(column, "Mass", f"{character.mass:.1f} kg ({given})")
        fact(column, "Height", f"{character.height:.2f} m")
        fact(column, "Ground", f"{character.ground:.3f} m")
        draw_scale(column, shot)
    draw_start(layout, POISE_OT_inspect, "Measure Body", "DRIVER_DISTANCE")


class POISE_PT_bones(Panel, bpy.types.Panel):
    """Which bones carry what."""

    bl_label = "Bones"
    bl_parent_id = "POISE_PT_character"
    bl_options = {"DEFAULT_CLOSED"}

    @classmethod
    def poll(cls, context):
        """Needs a map."""
        armature, _ = chosen_armature(context)
        return armature is not None and known_map(context, armature)[0] is not None

    def content(self, layout, context, armature, _reason):
        """One line a part of the body."""
        rig_map, _ = known_map(context, armature)
        column = layout.column(align=True)
        for slot, bones in rig_map.bones.items():
            for number, bone in enumerate(bones):  # a line for each, which would be cut together
                label = "" if number else rig.label(slot).capitalize()
                fact(column, label, bone, translate=False)
        layout.operator(POISE_OT_save_map.bl_idname, text="Save Map", icon="EXPORT")


class POISE_PT_simulate(Panel, bpy.types.Panel):
    """How to simulate, and the button."""

    bl_label = "Simulate"

    def content(self, layout, context, armature, _reason):
        """Range, controller, button; progress while a job is at work."""
        settings = context.scene.poise
        job = session.job()
        column = layout.column()
        column.active = job is None
        row = column.row()
        row.use_property_split = False
        row.prop(settings, "method", expand=True)
        if settings.method == "AUTO":
            row = column.row()
            row.use_property_split = False
            row.prop(settings, "help_if_needed")
        draw_range(column, context, armature)
        draw_options(column, settings, _CHOSEN_HERE)
        if job is None or job.tunes or job.finds_limit or job.checks or job.plays:
            draw_heir(layout)
            draw_unreadable(layout, context, armature)
            row = layout.row()
            row.scale_y = 1.5
            row.operator(POISE_OT_simulate.bl_idname, text="Simulate", icon="PLAY")
            draw_together(layout, context, armature)
        else:
            draw_job(layout, job)
        shot = job.shot if job else armature and session.result_of(context.scene, armature).shot
        if settings.method == "AUTO":
            draw_choice(layout, context, shot)


class POISE_PT_result(Panel, bpy.types.Panel):
    """What became of it."""

    bl_label = "Result"

    @classmethod
    def poll(cls, context):
        """Needs an attempt."""
        armature, _ = chosen_armature(context)
        if armature is None or not super().poll(context):
            return False
        result = session.result_of(context.scene, armature)
        return bool(result.error or result.recording or takes.rows(context.scene, armature))

    def content(self, layout, context, armature, _reason):
        """Success or fall, measures, the ghost."""
        result = session.result_of(context.scene, armature)
        kept = takes.rows(context.scene, armature)
        if kept:  # above all else, so that the rows stay where they are when one is chosen
            takes_panel.draw_takes(layout, context, len(kept))
        if result.error:
            sentence(layout, context, result.error, "ERROR")
        if result.recording is None:
            return
        draw_outcome(layout, context, result)
        draw_warnings(layout, context, result)
        draw_outdated(layout, context, armature, result)
        if not kept:
            layout.operator(POISE_OT_keep_take.bl_idname, text="Keep Take", icon="ADD")
        draw_ghost(layout, context.scene.poise)


class POISE_PT_measures(Panel, bpy.types.Panel):
    """The figures of the result."""

    bl_label = "Measures"
    bl_parent_id = "POISE_PT_result"

    @classmethod
    def poll(cls, context):
        """Needs a simulation."""
        armature, _ = chosen_armature(context)
        return bool(armature and session.result_of(context.scene, armature).recording)

    def content(self, layout, context, armature, _reason):
        """Tables against the reference, and of the bake before and after."""
        result = session.result_of(context.scene, armature)
        shot = result.shot
        summary = result.summary
        if summary["help"]:  # of getting up, which the result tells
            summary = summary | {"residual": summary["help"]["mean"]}
        maxima = result.recording.measures.maxima
        table = layout.box().column(align=True)
        table_row(table, "Error", "Mean", "Limit", head=True)
        for name, measure in MEASURES.items():
            values = (measure.form.format(found[name]) for found in (summary, maxima))
            table_row(table, measure.label, *values)
        table = layout.box().column(align=True)
        for name, label, form in OTHER_ROWS:
            table_row(table, label, form.format(summary[name]), factor=0.55)
        # An undo takes the bake away, but not what is remembered of it.
        if not shot.measures or not bake_target.is_there(shot.baked):
            return
        table = layout.box().column(align=True)
        table_row(table, "Bake", "Before", "After", head=True, factor=0.46)
        for name, label, form in BAKE_ROWS:
            values = (figure(form, value) for value in shot.measures[name])
            table_row(table, label, *values, factor=0.46)


class POISE_PT_bake(Panel, bpy.types.Panel):
    """How to bake, and the button; afterwards, compare."""

    bl_label = "Bake"

    def content(self, layout, context, armature, _reason):
        """Keys, root motion, blending, button, switch."""
        settings = context.scene.poise
        column = layout.column()
        column.active = session.job() is None
        column.prop(settings, "keys")
        if settings.keys == "NTH":
            column.prop(settings, "key_every")
        elif settings.keys == "TOLERANCE":
            column.prop(settings, "tolerance")
        column.prop(settings, "interpolation")
        column.row().prop(settings, "bake_to", expand=True)
        if compat.HAS_SLOTS:
            column.prop(settings, "action", placeholder="New action")
        column.row().prop(settings, "root_motion", expand=True)
        rig_map = known_map(context, armature)[0] if armature else None
        if rig_map is not None and ik_legs.controls(armature, rig_map):
            column.row().prop(settings, "legs", expand=True)
        sub = column.column(align=True)
        sub.use_property_split = False
        sub.prop(settings, "blend_in")
        sub.prop(settings, "blend_out")
        row = layout.row(align=True)
        row.scale_y = 1.5
        draw_start(row, POISE_OT_bake, "Bake", "ACTION")
        row.operator(POISE_OT_discard.bl_idname, text="", icon="TRASH")
        if armature is not None:
            draw_switch(layout, context, armature)


CLASSES = (
    POISE_PT_character,
    POISE_PT_bones,
    POISE_PT_simulate,
    POISE_PT_result,
    POISE_PT_measures,
    POISE_PT_bake,
)

# SPDX-License-Identifier: GPL-3.0-or-later
"""The tab *Poise* in the sidebar of the 3D view.

Whatever is shown here is looked up anew at each drawing, so undo and redo cannot leave it behind.
"""

import contextlib
import textwrap
from functools import lru_cache

import bpy
import numpy as np

from ...controller.exceptions import GainsError, MotionError, RigError
from ..actions import bake_target, strips
from ..baking import ik_legs
from ..blender import compat, session
from ..blender.chosen import chosen_armature
from ..blender.translations import tr
from ..jobs.modal import unreadable
from ..operators import (
    POISE_OT_bake,
    POISE_OT_cancel,
    POISE_OT_delete_bake,
    POISE_OT_discard,
    POISE_OT_discard_rectified,
    POISE_OT_inspect,
    POISE_OT_keep_rectified,
    POISE_OT_keep_take,
    POISE_OT_save_map,
    POISE_OT_show,
    POISE_OT_show_flaw,
    POISE_OT_simulate,
)
from ..rigs import reference, rig
from ..scene import contacts
from ..settings import takes
from ..settings.properties import shot_options
from ..shots import outdated
from ..shots.shot import warnings_of
from . import takes_panel

#: Errors of a simulation as they are shown: key of the report, label, format with the unit.
ERROR_ROWS = (
    ("pose_error", "Pose", "{:.3f} m"),
    ("stance_error", "Wrong feet", "{:.0%}"),
    ("slide_error", "Foot slide", "{:.3f} m/s"),
    ("torque_error", "Torque", "{:.0f} N m"),
)
#: Other figures of a simulation, likewise.
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
    ("jitter", "Jitter", "{:.0f} m/s³"),
    ("zmp_inside", "Weight over feet", "{:.0%}"),
    ("pulls_on_ground", "Pulled down", "{:.0%}"),
)


class _Panel:
    bl_space_type = "VIEW_3D"
    bl_region_type = "UI"
    bl_category = "Poise"

    @classmethod
    def poll(cls, context):
        """Quick mode has a panel of its own; what belongs to another panel is hidden with it."""
        return context.scene.poise.mode == "FULL"

    def draw(self, context):
        """Blender calls this for every drawing."""
        layout = self.layout
        layout.use_property_split = True
        layout.use_property_decorate = False
        armature, reason = chosen_armature(context)
        self.content(layout, context, armature, reason)


class POISE_PT_character(_Panel, bpy.types.Panel):
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
            _sentence(layout, context, f"{reason}.", "INFO")
            return
        layout.prop(settings, "rig", placeholder="Automatic", icon="ARMATURE_DATA")
        result = session.result_of(context.scene, armature)
        _draw_map(layout, context, armature)
        text = "Unit (m)" if settings.unit else "Unit, 0: automatic"
        layout.prop(settings, "unit", text=text)
        row = layout.row(heading="Mass (kg)")
        row.prop(settings, "use_mass", text="")
        sub = row.row()
        sub.active = settings.use_mass or session.job() is not None
        sub.prop(settings, "mass", text="")
        _draw_body(layout, result)


def _draw_map(layout, context, armature):
    """Which rig map was found, and how; what it lacks."""
    rig_map, problem = _known_map(context, armature)
    column = layout.column(align=True)
    if problem:
        _sentence(column, context, problem, "ERROR")
    elif rig_map is None:
        _fact(column, "Found", "at the first reading")
    else:
        _fact(column, "Found", rig_map.name, translate=False)
        _fact(column, "By", "geometry (detected)" if rig_map.detected else "bone names")
        missing = ", ".join(tr(rig.label(slot)) for slot in rig_map.missing)
        _fact(column, "Missing", missing or "nothing")


def _known_map(context, armature):
    """The RigMap of an armature and the problem with it: as it was read, else as the names of its
    bones say. Both are empty if it has to be detected."""
    shot = session.result_of(context.scene, armature).shot
    name = context.scene.poise.rig
    if shot is not None and (shot.options.rig or "") == name:
        return shot.reading.rig_map, ""
    return _map_by_names(armature.name, tuple(armature.data.bones.keys()), name)


@lru_cache(maxsize=16)
def _map_by_names(armature_name, _bones, name):
    """The map that fits the names of an armature's bones. Cached: panels are drawn all the time."""
    armature = bpy.data.objects[armature_name]
    # Without frames the map would be looked for in the animation, which may not be sampled here.
    rest = np.array([[bone.matrix_local for bone in armature.data.bones]], float)
    try:
        found = rig.find(armature, rest, name or None)
    except RigError as error:
        return None, str(error) if name else ""
    return (None if found.detected else found), ""


def _draw_body(layout, result):
    """What is known of the body."""
    shot = result.shot
    column = layout.column(align=True)
    if shot is not None and shot.character is not None:
        character, scale = shot.character, shot.reading.metres_per_unit
        given = "given" if shot.options.mass is not None else "from height"
        given = "reshaped" if shot.options.morphology else given
        _fact(column, "Mass", f"{character.mass:.1f} kg ({given})")
        _fact(column, "Height", f"{character.height:.2f} m")
        _fact(column, "Ground", f"{character.ground:.3f} m")
        guessed = " (guessed)" if shot.reading.unit_guessed else ""
        _fact(column, "Scale", f"1 unit = {scale:.4g} m{guessed}")
    layout.operator(POISE_OT_inspect.bl_idname, text="Measure Body", icon="DRIVER_DISTANCE")


class POISE_PT_bones(_Panel, bpy.types.Panel):
    """Which bones carry what."""

    bl_label = "Bones"
    bl_parent_id = "POISE_PT_character"
    bl_options = {"DEFAULT_CLOSED"}

    @classmethod
    def poll(cls, context):
        """Needs a map."""
        armature, _ = chosen_armature(context)
        return armature is not None and _known_map(context, armature)[0] is not None

    def content(self, layout, context, armature, _reason):
        """One line a part of the body."""
        rig_map, _ = _known_map(context, armature)
        column = layout.column(align=True)
        for slot, bones in rig_map.bones.items():
            _fact(column, rig.label(slot).capitalize(), ", ".join(bones), translate=False)
        layout.operator(POISE_OT_save_map.bl_idname, text="Save Map", icon="EXPORT")


class POISE_PT_simulate(_Panel, bpy.types.Panel):
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
        _draw_range(column, context, armature)
        # Names with units are too long to stand beside their fields.
        column = column.column(align=True)
        column.use_property_split = False
        column.prop(settings, "rate")
        column.prop(settings, "noise")
        sub = column.row()
        sub.active = settings.noise > 0 or job is not None
        sub.prop(settings, "seed")
        column.prop(settings, "recovery_steps")
        if job is None or job.tunes or job.finds_limit or job.checks:
            _draw_heir(layout)
            _draw_unreadable(layout, context, armature)
            row = layout.row()
            row.scale_y = 1.5
            row.operator(POISE_OT_simulate.bl_idname, text="Simulate", icon="PLAY")
        else:
            _draw_job(layout, job)
        shot = job.shot if job else armature and session.result_of(context.scene, armature).shot
        if settings.method == "AUTO":
            _draw_choice(layout, context, shot)


def _draw_unreadable(layout, context, armature):
    """Why there is nothing to simulate."""
    why = unreadable(armature) if armature else ""
    if why:
        _sentence(layout, context, f"{why}.", "INFO")


def _draw_range(layout, context, armature):
    """Which frames."""
    settings = context.scene.poise
    layout.row().prop(settings, "frames", expand=True)
    if settings.frames == "CUSTOM":
        sub = layout.column(align=True)
        sub.prop(settings, "first_frame", text="First")
        sub.prop(settings, "last_frame", text="Last")
    else:
        _fact(layout, "Range", _range_words(context, armature))


def _draw_choice(layout, context, shot):
    """What Automatic chose for a shot, and why. shot: None if there is none."""
    if shot is not None and shot.choice is not None:
        icon = {"balance": "CON_FLOOR", "rectify": "MOD_SMOOTH"}[shot.choice.method]
        _sentence(layout, context, shot.choice.why, icon)


def _draw_heir(layout):
    """What stands in place of a progress bar that is gone; nothing is seen of it.

    Blender tells texts, gaps and bars apart by their order alone: where the mouse is on a bar that
    is gone, the text that comes next would be drawn as a bar until the mouse moves.
    """
    layout.separator(factor=0)


def _draw_job(layout, job):
    """Progress of the job at work, and the button that stops it."""
    row = layout.row(align=True)
    row.scale_y = 1.5
    row.progress(factor=job.progress, text=tr(job.text))
    rectifies = job.rectifies and job.search is not None
    if rectifies:
        row = layout.row(align=True)
        row.operator(POISE_OT_keep_rectified.bl_idname, text="Keep", icon="CHECKMARK")
        row.operator(POISE_OT_discard_rectified.bl_idname, text="Discard", icon="TRASH")
    else:
        row.operator(POISE_OT_cancel.bl_idname, text="", icon="X")
    row = layout.row()
    row.label(text=tr(job.note), translate=False)
    sub = row.row()
    sub.alignment = "RIGHT"
    sub.label(text="discards" if rectifies else "stops", icon="EVENT_ESC")


def _range_words(context, armature):
    """The frames that will be simulated."""
    scene = context.scene
    if scene.poise.frames == "SCENE":
        if scene.use_preview_range:
            return f"{scene.frame_preview_start} to {scene.frame_preview_end} (preview)"
        return f"{scene.frame_start} to {scene.frame_end}"
    if armature is None or armature.animation_data is None:
        return "–"
    try:
        first, last = reference.animated_range(armature, *strips.shown(armature))
    except MotionError:
        return "–"
    return f"{first:g} to {last:g}"


class POISE_PT_result(_Panel, bpy.types.Panel):
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
            _sentence(layout, context, result.error, "ERROR")
        if result.recording is None:
            return
        _draw_outcome(layout, context, result)
        for warning in warnings_of(context.scene):
            _sentence(layout, context, warning, "INFO")
        _draw_outdated(layout, context, armature, result)
        if not kept:
            layout.operator(POISE_OT_keep_take.bl_idname, text="Keep Take", icon="ADD")
        _draw_ghost(layout, context.scene.poise)


class POISE_PT_measures(_Panel, bpy.types.Panel):
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
        maxima = result.recording.measures.maxima
        table = layout.box().column(align=True)
        _table_row(table, "Error", "Mean", "Limit", head=True)
        for name, label, form in ERROR_ROWS:
            _table_row(table, label, form.format(summary[name]), form.format(maxima[name]))
        table = layout.box().column(align=True)
        for name, label, form in OTHER_ROWS:
            _table_row(table, label, form.format(summary[name]), factor=0.55)
        # An undo takes the bake away, but not what is remembered of it.
        if not shot.measures or not bake_target.is_there(shot.baked):
            return
        table = layout.box().column(align=True)
        _table_row(table, "Bake", "Before", "After", head=True)
        for name, label, form in BAKE_ROWS:
            _table_row(table, label, *(_figure(form, value) for value in shot.measures[name]))


def _draw_outcome(layout, context, result):
    """Whether it is a keeper, or stood at least, in a box that tells at a glance."""
    recording, motion = result.recording, result.shot.reading.motion
    box = layout.box()
    last = motion.frame(len(motion) - 1)
    if not recording.success:
        box.alert = True
        _sentence(box, context, result.shot.why, "CANCEL")
    elif result.shot.verdict.keeper:
        text = f"Keeper: {motion.duration:.2f} s, to frame {last:g}"
        _sentence(box, context, text, "CHECKMARK")
    else:
        text = f"Stood, but ({motion.duration:.2f} s, to frame {last:g}):"
        _sentence(box, context, text, "INFO")
        _draw_flaws(box, result.shot.verdict.findings, POISE_OT_show_flaw)


def _draw_outdated(layout, context, armature, result):
    """What has changed since."""
    if contacts.outdated(result.shot):
        _sentence(layout, context, "The contacts have changed: simulate again.", "FILE_REFRESH")
    with contextlib.suppress(GainsError):
        options = shot_options(context, armature)
        now = outdated.settings_of(context.scene, armature, options)
        names = outdated.changed(result.settings, now)
        if names:
            _sentence(layout, context, "Changed since then, so simulate again:", "FILE_REFRESH")
            _sentence(layout, context, ", ".join(map(tr, names)), "BLANK1")


def _draw_flaws(layout, findings, shower):
    """A button for each, an operator that goes to the frame where it is worst."""
    column = layout.column(align=True)
    for i, finding in enumerate(findings):
        row = column.row()
        row.alignment = "LEFT"
        sentence = finding.sentence
        text = tr(f"{sentence[0].upper() + sentence[1:]}")
        button = row.operator(shower.bl_idname, text=text, icon="ERROR", emboss=False)
        button.index = i


def _draw_ghost(layout, settings):
    """How the ghost is shown."""
    layout.row().prop(settings, "ghost", expand=True)
    if settings.ghost == "BESIDE":
        row = layout.row()
        row.use_property_split = False
        row.prop(settings, "ghost_distance")


class POISE_PT_bake(_Panel, bpy.types.Panel):
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
        rig_map = _known_map(context, armature)[0] if armature else None
        if rig_map is not None and ik_legs.controls(armature, rig_map):
            column.row().prop(settings, "legs", expand=True)
        sub = column.column(align=True)
        sub.use_property_split = False
        sub.prop(settings, "blend_in")
        sub.prop(settings, "blend_out")
        row = layout.row(align=True)
        row.scale_y = 1.5
        row.operator(POISE_OT_bake.bl_idname, text="Bake", icon="ACTION")
        row.operator(POISE_OT_discard.bl_idname, text="", icon="TRASH")
        if armature is not None:
            _draw_switch(layout, context, armature)


def _draw_switch(layout, context, armature):
    """The switch between source and bake, if there is a bake."""
    animation = strips.shown(armature)
    baked = bake_target.mark_of(*animation) is not None
    bakes = bake_target.bakes_of(armature)
    if not bakes:
        return
    row = layout.row(align=True)
    for which, label, pressed in (("source", "Source", not baked), ("baked", "Baked", baked)):
        row.operator(POISE_OT_show.bl_idname, text=label, depress=pressed).which = which
    if len(bakes) == 1:
        row.operator(POISE_OT_delete_bake.bl_idname, text="", icon="TRASH")
        action = animation[0].name if animation[0] else tr("NLA strips")
        _fact(layout, "Action", action, translate=False)
        return
    column = layout.column(align=True)
    for number, (action, slot) in enumerate(bakes, 1):
        row = column.row(align=True)
        name = action.name if bake_target.mark_of(action, slot)["whole"] else slot.name_display
        button = row.operator(
            POISE_OT_show.bl_idname,
            text=name,
            translate=False,
            depress=(action, slot) == animation,
        )
        button.which, button.bake = "baked", number
        row.operator(POISE_OT_delete_bake.bl_idname, text="", icon="TRASH").bake = number


# --- Pieces --------------------------------------------------------------------------------------


def _draw_workers(layout, context):
    """How many processes search; the scene may leave that to the preferences."""
    settings = context.scene.poise.tuning
    text = "Workers" if settings.workers else "Workers, 0: automatic"
    layout.prop(settings, "workers", text=text)


def _fact(layout, label, text, translate=True):
    """A label and a value, aligned like the properties. translate: the value is no name."""
    row = layout.row()
    row.scale_y = 0.8
    split = row.split(factor=0.4)
    left = split.row()
    left.alignment = "RIGHT"
    left.label(text=tr(label), translate=False)
    split.label(text=tr(text) if translate else text, translate=False)


def _table_row(layout, label, *values, head=False, factor=0.36):
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


def _figure(form, value):
    """A measure in words; None where a foot never stands, so that there is nothing to measure."""
    return "–" if value is None else form.format(value)


def _sentence(layout, context, text, icon):
    """A sentence, broken into lines as the sidebar's width has it."""
    scale = context.preferences.system.ui_scale
    letters = max(16, int((context.region.width / scale - 70) / 6.2))
    column = layout.column(align=True)
    column.scale_y = 0.8
    for i, line in enumerate(textwrap.wrap(tr(text), letters)):
        column.label(text=line, icon="BLANK1" if i else icon, translate=False)


CLASSES = (
    POISE_PT_character,
    POISE_PT_bones,
    POISE_PT_simulate,
    POISE_PT_result,
    POISE_PT_measures,
    POISE_PT_bake,
)

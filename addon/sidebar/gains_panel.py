# SPDX-License-Identifier: GPL-3.0-or-later
"""Gains in the sidebar: the menu of presets, sliders per region of the body, raw numbers."""

from pathlib import Path

import bpy
from bpy_extras.io_utils import ExportHelper, ImportHelper

from ...controller import GainsError, PoiseError
from ...controller.gains.gains import WEIGHTS
from ...controller.gains.regions import REGIONS
from ...controller.geometry.skeleton import UNMIRRORED_DOFS
from ...controller.search.provenance import tuning_words
from ..blender import session
from ..blender.chosen import chosen_armature
from ..blender.redrawing import redraw
from ..blender.translations import tr
from ..kit.panel import Panel
from ..kit.rows import fact, sentence
from ..settings import gains, presets

# --- Operators -----------------------------------------------------------------------------------


class _GainsOperator:
    """An operator on the gains of a scene: `act(context)` does it, and may raise PoiseError."""

    bl_options = {"REGISTER", "UNDO", "INTERNAL"}

    @classmethod
    def poll(cls, context):
        """What is at work shall end with the gains that it began with."""
        why = cls.obstacle(context) or session.busy()
        if why:
            cls.poll_message_set(tr(why))
        return not why

    @classmethod
    def obstacle(cls, _context):
        """Why this operator cannot be used now, empty if it can."""
        return ""

    def execute(self, context):
        """Do it, or say why not."""
        try:
            self.act(context)
        except PoiseError as error:
            self.report({"ERROR"}, tr(str(error)))
            return {"CANCELLED"}
        redraw()
        return {"FINISHED"}


class POISE_OT_gains_choose(_GainsOperator, bpy.types.Operator):
    """Use a preset of gains."""

    bl_idname = "poise.gains_choose"
    bl_label = "Use Gains Preset"
    bl_description = "Control the body with the gains of this preset"
    name: bpy.props.StringProperty(name="Name", description="Preset; empty: the defaults")

    @classmethod
    def description(cls, _context, properties):
        """What the preset is for and what it was tuned on, or what is wrong with it."""
        if not properties.name:
            return tr("Gains of the balance mode that nobody tuned, scaled to the body")
        try:
            used = presets.find(properties.name).gains
        except GainsError as error:
            return str(error).rstrip(".")
        words = (used.description, tuning_words(used))
        return tr(" ".join(filter(None, words)).rstrip(".") or "A preset of your own")

    def act(self, context):
        """Choose it."""
        gains.choose(context.scene, self.name)


class POISE_OT_gains_add(_GainsOperator, bpy.types.Operator):
    """Save the gains in use as a preset."""

    bl_idname = "poise.gains_add"
    bl_label = "Add Gains Preset"
    bl_description = "Save the gains in use as a preset of your own"
    name: bpy.props.StringProperty(name="Name", description="Name of the preset", maxlen=60)

    def invoke(self, context, _event):
        """Ask for the name."""
        self.name = ""
        return context.window_manager.invoke_props_dialog(self)

    def act(self, context):
        """Save and choose it."""
        preset = presets.add(self.name, gains.view(context.scene).gains)
        gains.choose(context.scene, preset.name)


class POISE_OT_gains_remove(_GainsOperator, bpy.types.Operator):
    """Delete the chosen preset."""

    bl_idname = "poise.gains_remove"
    bl_label = "Remove Gains Preset"
    bl_description = "Delete the chosen preset; those that come with Poise stay"
    bl_options = {"INTERNAL"}

    @classmethod
    def obstacle(cls, context):
        """Needs a preset of the user's."""
        settings = context.scene.poise.gains
        own = {preset.name for preset in presets.load_presets() if not preset.shipped}
        if settings.source != "PRESET" or settings.preset not in own:
            return "Choose a preset of your own: the others cannot be removed"
        return ""

    def invoke(self, context, event):
        """Ask."""
        return context.window_manager.invoke_confirm(self, event)

    def act(self, context):
        """Delete the file; the scene keeps the gains as its own."""
        preset = presets.named(context.scene.poise.gains.preset)
        presets.remove(preset.name)
        if preset.gains is None:
            gains.choose(context.scene, "")
        else:
            gains.keep(context.scene, preset.gains)


class POISE_OT_gains_import(_GainsOperator, ImportHelper, bpy.types.Operator):
    """Take a gains file into the presets."""

    bl_idname = "poise.gains_import"
    bl_label = "Import Gains"
    bl_description = "Take a gains file, from anyone, into your presets and use it"
    filename_ext = ".json"
    filter_glob: bpy.props.StringProperty(
        name="Filter", description="Files to list", default="*.json", options={"HIDDEN"}
    )

    def act(self, context):
        """Copy, check and choose it."""
        gains.choose(context.scene, presets.import_file(self.filepath).name)


class POISE_OT_gains_export(_GainsOperator, ExportHelper, bpy.types.Operator):
    """Write the gains in use to a file."""

    bl_idname = "poise.gains_export"
    bl_label = "Export Gains"
    bl_description = "Write the gains in use to a file, for others or for the command line"
    bl_options = {"INTERNAL"}
    filename_ext = ".json"
    filter_glob: bpy.props.StringProperty(
        name="Filter", description="Files to list", default="*.json", options={"HIDDEN"}
    )

    def act(self, context):
        """Write it."""
        gains.view(context.scene).gains.save(Path(self.filepath))
        self.report({"INFO"}, tr(f"Saved '{self.filepath}'"))


class POISE_OT_gains_reset(_GainsOperator, bpy.types.Operator):
    """Undo all changes of the sliders."""

    bl_idname = "poise.gains_reset"
    bl_label = "Reset Gains"
    bl_description = "Go back to the preset, or to the defaults, that were changed"

    @classmethod
    def obstacle(cls, context):
        """Needs changes."""
        if context.scene.poise.gains.source != "CUSTOM":
            return "The gains are not changed"
        return ""

    def act(self, context):
        """Choose again what was changed."""
        gains.choose(context.scene, context.scene.poise.gains.preset)


class POISE_OT_gains_suggest(_GainsOperator, bpy.types.Operator):
    """Choose the preset that was tuned on the most similar clip."""

    bl_idname = "poise.gains_suggest"
    bl_label = "Suggest Gains Preset"
    bl_description = "Choose the preset that was tuned on motion most like this"

    @classmethod
    def obstacle(cls, context):
        """Needs the clip to have been read."""
        if _shot(context) is None:
            return "Measure the body or simulate first, which reads the animation"
        return ""

    def act(self, context):
        """Compare, and choose."""
        shot = _shot(context)
        mode = context.scene.poise.balance.lower()
        preset, why = presets.suggest(shot.character, shot.reading.motion, mode)
        gains.choose(context.scene, preset.name, why)


def _shot(context):
    """The shot of the chosen armature, if its clip was read; else None."""
    armature, _ = chosen_armature(context)
    shot = session.result_of(context.scene, armature).shot if armature else None
    return shot if shot is not None and shot.character is not None else None


# --- Menu and panels -----------------------------------------------------------------------------


class POISE_MT_gains(bpy.types.Menu):
    """All presets."""

    bl_label = "Gains Presets"
    bl_description = (
        "Choose gains: how firmly the joints follow the animation, and how hard the body keeps its "
        "balance"
    )

    def draw(self, context):
        """Defaults, presets, files."""
        layout = self.layout
        layout.operator_context = "EXEC_DEFAULT"
        _menu_item(layout, context, "", tr("Default"))
        shipped = True
        layout.separator()
        for preset in presets.load_presets():
            if shipped and not preset.shipped:
                layout.separator()
            shipped = preset.shipped
            icon = "ERROR" if preset.error else "NONE"
            _menu_item(layout, context, preset.name, preset.name, icon)
        layout.separator()
        layout.operator_context = "INVOKE_DEFAULT"
        layout.operator(POISE_OT_gains_import.bl_idname, text="Import…", icon="IMPORT")
        layout.operator(POISE_OT_gains_export.bl_idname, text="Export…", icon="EXPORT")


def _menu_item(layout, context, name, text, icon="NONE"):
    settings = context.scene.poise.gains
    chosen = settings.source == ("PRESET" if name else "DEFAULT") and settings.preset == name
    icon = "CHECKMARK" if chosen and icon == "NONE" else icon
    operator = layout.operator(
        POISE_OT_gains_choose.bl_idname, text=text, translate=False, icon=icon
    )
    operator.name = name


class _GainsPanel(Panel):
    """A panel that shows numbers of gains; without usable gains it is left out."""

    bl_options = {"DEFAULT_CLOSED"}

    @classmethod
    def poll(cls, context):
        """Needs gains that can be used."""
        try:
            gains.view(context.scene)
        except GainsError:
            return False
        return True


class POISE_PT_gains(Panel, bpy.types.Panel):
    """Which gains, and how stiff each region of the body is."""

    bl_label = "Gains"
    bl_parent_id = "POISE_PT_simulate"
    bl_options = {"DEFAULT_CLOSED"}

    def draw_header_preset(self, context):
        """What is chosen, also while the panel is closed."""
        self.layout.label(text=tr(gains.label(context.scene.poise)), translate=False)

    def content(self, layout, context, _armature, _reason):
        """Menu, provenance, sliders."""
        settings = context.scene.poise
        layout.active = session.job() is None
        _draw_menu(layout, settings)
        try:
            shown = gains.view(context.scene)
        except GainsError as error:
            sentence(layout, context, str(error), "ERROR")
            return
        if settings.gains.source == "DEFAULT":
            layout.prop(settings, "balance")
        else:
            fact(layout, "Balance", shown.gains.balance.replace("_", " ").title())
        row = layout.row()
        row.active = layout.active and shown.gains.balance == "foot_forces"
        row.prop(settings, "style")
        text = settings.gains.reason or tuning_words(shown.gains)
        if text:
            sentence(layout, context, text, "INFO")
        if shown.gains.completed:
            sentence(layout, context, shown.gains.completed, "INFO")
        if not shown.measured:
            text = f"For a body of {shown.character.height:.2f} m until this one is measured."
            sentence(layout, context, text, "INFO")
        _draw_regions(layout, settings.gains)


def _draw_menu(layout, settings):
    """The row of Blender's preset menus: name, add, remove; and reset."""
    row = layout.row(align=True)
    row.use_property_split = False
    row.menu(POISE_MT_gains.__name__, text=tr(gains.label(settings)), translate=False)
    row.operator(POISE_OT_gains_add.bl_idname, text="", icon="ADD")
    row.operator(POISE_OT_gains_remove.bl_idname, text="", icon="REMOVE")
    row = layout.row(align=True)
    row.operator(POISE_OT_gains_suggest.bl_idname, text="Suggest", icon="VIEWZOOM")
    row.operator(POISE_OT_gains_reset.bl_idname, text="Reset", icon="LOOP_BACK")


def _draw_regions(layout, settings):
    """Frequency and damping ratio, region by region."""
    split = layout.split(factor=0.2)
    split.use_property_split = False
    names, frequency, damping = split.column(align=True), *_halves(split)
    names.label(text="")
    frequency.label(text="Frequency (Hz)")
    damping.label(text="Damping")
    for region in REGIONS:
        names.label(text=region.title())
        frequency.prop(settings, f"frequency_{region}", text="", slider=True)
        damping.prop(settings, f"damping_{region}", text="", slider=True)


def _halves(split):
    """Two columns of equal width in what is left of a split."""
    row = split.row(align=True)
    return row.column(align=True), row.column(align=True)


class POISE_PT_gains_balance(_GainsPanel, bpy.types.Panel):
    """How hard balance is kept."""

    bl_label = "Balance"
    bl_parent_id = "POISE_PT_gains"

    def content(self, layout, context, _armature, _reason):
        """Four weights for each stance."""
        layout.active = session.job() is None
        layout.use_property_split = False
        for stance, name in gains.STANCES.items():
            column = layout.column(align=True)
            column.label(text=name)
            for weight in WEIGHTS:
                column.prop(context.scene.poise.gains, f"{stance}_{weight}", slider=True)


class POISE_PT_gains_raw(_GainsPanel, bpy.types.Panel):
    """The gains as the controller has them."""

    bl_label = "Raw Values"
    bl_parent_id = "POISE_PT_gains"

    def content(self, layout, context, _armature, _reason):
        """Stiffness and damping of each degree of freedom."""
        layout.active = session.job() is None
        settings = context.scene.poise.gains
        split = layout.split(factor=0.4)
        split.use_property_split = False
        names, stiffness, damping = split.column(align=True), *_halves(split)
        names.label(text="")
        stiffness.label(text="N m/rad")
        damping.label(text="N m s/rad")
        for i, name in enumerate(UNMIRRORED_DOFS):
            names.label(text=name.replace("_", " ").capitalize())
            stiffness.prop(settings, "stiffness", index=i, text="")
            damping.prop(settings, "damping", index=i, text="")


CLASSES = (
    POISE_OT_gains_choose,
    POISE_OT_gains_add,
    POISE_OT_gains_remove,
    POISE_OT_gains_import,
    POISE_OT_gains_export,
    POISE_OT_gains_reset,
    POISE_OT_gains_suggest,
    POISE_MT_gains,
    POISE_PT_gains,
    POISE_PT_gains_balance,
    POISE_PT_gains_raw,
)

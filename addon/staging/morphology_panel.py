# SPDX-License-Identifier: GPL-3.0-or-later
"""Other proportions in the sidebar: a menu of bodies, and a table of sliders."""

import bpy
from bpy.props import StringProperty

from ...controller.body.morphology import GROUPS, KINDS, Morphology
from ...controller.exceptions import SettingsError
from ..baking import bake_proportions
from ..blender import session
from ..blender.translations import tr
from ..jobs.modal import poll_idle
from ..kit.known_map import known_map
from ..kit.panel import Panel
from ..kit.rows import sentence
from ..scene import morphology


class POISE_OT_set_morphology(bpy.types.Operator):
    """Set all sliders."""

    bl_idname = "poise.set_morphology"
    bl_label = "Set Proportions"
    bl_description = "Set all proportions of the body at once"
    bl_options = {"REGISTER", "UNDO", "INTERNAL"}

    name: StringProperty(
        name="Body",
        description="Name of a body that comes with Poise, or path of a .json file; empty: as in "
        "the clip",
        options={"SKIP_SAVE"},
    )

    @classmethod
    def description(cls, _context, properties):
        """What the body is like."""
        if not properties.name:
            return tr("The proportions that the armature has")
        try:
            return tr(Morphology.named(properties.name).description)
        except SettingsError as error:
            return tr(str(error)).rstrip(".")

    @classmethod
    def poll(cls, context):
        """Needs an armature, and no job."""
        return poll_idle(cls, context)

    def execute(self, context):
        """Set them."""
        try:
            body = Morphology.named(self.name) if self.name else Morphology()
        except SettingsError as error:
            self.report({"ERROR"}, tr(str(error)))
            return {"CANCELLED"}
        morphology.put(context.scene.poise.morphology, body)
        return {"FINISHED"}


class POISE_MT_morphology(bpy.types.Menu):
    """The bodies that come with Poise."""

    bl_label = "Proportions"

    def draw(self, _context):
        """One line a body, and the way back."""
        operator = POISE_OT_set_morphology.bl_idname
        self.layout.operator(operator, text="As in the Clip", icon="LOOP_BACK").name = ""
        self.layout.separator()
        for stem, body in morphology.known().items():
            self.layout.operator(operator, text=body.name).name = stem


class POISE_PT_morphology(Panel, bpy.types.Panel):
    """Other proportions than the armature's."""

    bl_label = "Proportions"
    bl_parent_id = "POISE_PT_character"
    bl_options = {"DEFAULT_CLOSED"}

    def content(self, layout, context, armature, _reason):
        """Menu, and the sliders as a table in percent."""
        settings = context.scene.poise.morphology
        layout.active = session.job() is None
        text = tr(morphology.label(settings))
        layout.menu(POISE_MT_morphology.__name__, text=text, translate=False)
        table = layout.column(align=True)
        table.use_property_split = False
        head = table.row()
        head.active = False
        _row(head, "in %", lambda cell, kind: cell.label(text=kind.capitalize()))
        for group in GROUPS:
            own = getattr(settings, group)
            label = settings.bl_rna.properties[group].name
            _row(table.row(), label, lambda cell, kind, own=own: cell.prop(own, kind, text=""))
        rig_map = known_map(context, armature)[0] if armature else None
        if morphology.of(settings) and rig_map is not None and rig_map.controls:
            sentence(layout, context, bake_proportions.refusal(rig_map), "ERROR")


def _row(row, label, fill):
    """A line of the table: fill(cell, kind) draws each of its cells."""
    split = row.split(factor=0.31)
    split.label(text=label)
    cells = split.grid_flow(columns=len(KINDS), even_columns=True, align=True)
    for kind in KINDS:
        fill(cells.row(align=True), kind)


CLASSES = (POISE_OT_set_morphology, POISE_MT_morphology, POISE_PT_morphology)

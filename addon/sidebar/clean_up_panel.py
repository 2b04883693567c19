# SPDX-License-Identifier: GPL-3.0-or-later
"""The clean-up of feet and weight in the sidebar."""

import bpy

from ...controller.exceptions import PlanError
from ..blender import session
from ..kit.panel import Panel
from ..kit.parts import draw_start
from ..kit.rows import draw_findings, draw_options, fact, sentence
from ..operators import POISE_OT_clean_up, POISE_OT_show_clean_flaw
from ..scene import live_contacts
from ..shots.clean_up import CLEAN
from ..staging import (
    POISE_OT_add_contact,
    POISE_OT_automatic_contacts,
    POISE_OT_begin_contact,
    POISE_OT_delete_contact,
    POISE_OT_drag_contacts,
    POISE_OT_end_contact,
    POISE_OT_find_contacts,
)


class POISE_PT_clean_up(Panel, bpy.types.Panel):
    """Clean without a simulation."""

    bl_label = "Feet and Weight"
    bl_parent_id = "POISE_PT_simulate"
    bl_options = {"DEFAULT_CLOSED"}

    def content(self, layout, context, armature, _reason):
        """What to choose, and the button."""
        settings = context.scene.poise.clean_up
        draw_options(layout, settings, CLEAN)
        row = layout.row()
        row.scale_y = 1.5
        draw_start(row, POISE_OT_clean_up, POISE_OT_clean_up.bl_label, "BRUSH_DATA")
        if armature is None:
            return
        _draw_outcome(layout, context, armature)
        _draw_contacts(layout, context, armature)


def _draw_outcome(layout, context, armature):
    """Whether what was cleaned is a keeper."""
    clean = session.result_of(context.scene, armature).clean
    # An undo takes the action away, but not what is remembered of it.
    if clean is None or clean.baked.action not in bpy.data.actions:
        return
    box = layout.box()
    before, after = clean.slip
    fact(box, "Slip", f"{before:.3f} to {after:.3f} m/s")
    if clean.verdict.keeper:
        sentence(box, context, "Keeper", "CHECKMARK")
    else:
        sentence(box, context, "Cleaned, but:", "INFO")
        draw_findings(box, context, clean.verdict.findings, POISE_OT_show_clean_flaw)
    for told in clean.notes:
        sentence(box, context, told, "INFO")
    if clean.doubt:
        sentence(box, context, clean.doubt, "ERROR")
    if live_contacts.clean_outdated(context.scene, armature):
        sentence(box, context, "The contacts have changed: clean again.", "FILE_REFRESH")


def _draw_contacts(layout, context, armature):
    """What is known of contacts, and how to change them."""
    settings, kept = context.scene.poise.clean_up, None
    column = layout.column(align=True)
    row = column.row(align=True)
    row.operator(POISE_OT_find_contacts.bl_idname, icon="VIEWZOOM")
    row.operator(POISE_OT_automatic_contacts.bl_idname, text="", icon="LOOP_BACK")
    try:
        kept = live_contacts.known(context.scene, armature)
    except PlanError as error:
        sentence(column, context, str(error), "ERROR")
    if kept is None:
        return
    fact(column, "Contacts", f"frames {kept.first:g} to {kept.last:g}")
    column = layout.column()
    column.row().prop(settings, "foot", expand=True)
    column.row().prop(settings, "point", expand=True)
    column = layout.column(align=True)
    row = column.row(align=True)
    row.operator(POISE_OT_begin_contact.bl_idname, text="Begin Here")
    row.operator(POISE_OT_end_contact.bl_idname, text="End Here")
    row = column.row(align=True)
    row.operator(POISE_OT_add_contact.bl_idname, text="Add Here")
    row.operator(POISE_OT_delete_contact.bl_idname, text="Delete")
    column.operator(POISE_OT_drag_contacts.bl_idname, icon="ARROW_LEFTRIGHT")
    layout.prop(context.scene.poise.overlays, "contacts")


CLASSES = (POISE_PT_clean_up,)

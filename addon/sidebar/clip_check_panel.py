# SPDX-License-Identifier: GPL-3.0-or-later
"""The clip check in the sidebar: what to clean, the verdict, what was found, a plot."""

import bpy
import numpy as np

from ...controller.checks.clip_check import LIMITS, MEASURES
from ...controller.reference.cleaning import CLEANING
from ..blender import session
from ..blender.translations import tr
from ..kit.panel import Panel
from ..kit.rows import draw_findings, draw_heir, sentence, table_row
from ..operators import (
    POISE_OT_cancel,
    POISE_OT_check_clip,
    POISE_OT_show_check,
    POISE_OT_show_finding,
)
from ..plots import clip_check_plot, tuning_plot
from ..shots.clip_check import cleaning_of, words

_ICONS = {"mend": "ERROR", "rectify": "MOD_SMOOTH", "note": "INFO"}
#: Findings that are listed.
_MOST = 12
#: Lines of text that the plot may be high.
_LEAST_ROWS, _MOST_ROWS = 6, 20


class POISE_PT_clip_check(Panel, bpy.types.Panel):
    """Can a body do this?"""

    bl_label = "Clip Check"
    bl_parent_id = "POISE_PT_simulate"
    bl_options = {"DEFAULT_CLOSED"}

    def content(self, layout, context, armature, _reason):
        """Button, what to clean, what was found."""
        job, settings = session.job(), context.scene.poise.clip_check
        if job is not None and job.checks:
            row = layout.row(align=True)
            row.scale_y = 1.5
            row.progress(factor=job.progress, text=tr(job.text))
            row.operator(POISE_OT_cancel.bl_idname, text="", icon="X")
            return
        draw_heir(layout)
        row = layout.row(align=True)
        row.active = job is None
        row.use_property_split = False
        for name in CLEANING:
            row.prop(settings, name, toggle=True)
        row = layout.row()
        row.scale_y = 1.5
        row.operator(POISE_OT_check_clip.bl_idname, text="Check Clip", icon="VIEWZOOM")
        result = session.result_of(context.scene, armature) if armature else None
        found = result and result.check
        if found is not None:
            mended = result.shot.mended if result.shot and result.shot.checked is found else ""
            _draw_verdict(layout, context, found, cleaning_of(settings), mended)
            _draw_findings(layout, context, found)
            _draw_plot(layout, context, found)


def _draw_verdict(layout, context, found, cleaning, mended):
    """In a box that tells at a glance whether a body can do it, and what was mended for that."""
    box = layout.box()
    box.alert = bool(found.faults)
    icon = "ERROR" if found.faults else "CHECKMARK" if found.recommend == "balance" else "INFO"
    sentence(box, context, f"{found.verdict}.", icon)
    if mended:
        sentence(layout, context, mended, "INFO")
    elif cleaning != found.cleaning:
        text = f"Checked with {words(found.cleaning)} cleaned: check again."
        sentence(layout, context, text, "FILE_REFRESH")
    elif found.faults:
        text = "Clean it above and check again, mend the keys, or go on as it is."
        sentence(layout, context, text, "INFO")


def _draw_findings(layout, context, found):
    """A button for each, which goes to its frames."""
    draw_findings(
        layout,
        context,
        found.findings[:_MOST],
        POISE_OT_show_finding,
        lambda finding: _ICONS[finding.severity],
    )
    rest = len(found.findings) - _MOST
    if rest > 0:
        layout.label(text=tr(f"and {rest} more"), icon="BLANK1", translate=False)


def _draw_plot(layout, context, found):
    """The strips, and what they are from the top down."""
    width = context.region.width / context.preferences.system.ui_scale
    rows = min(max(int((width - 45) / 20), _LEAST_ROWS), _MOST_ROWS)
    row = layout.row()
    row.alignment = "CENTER"
    row.template_icon(clip_check_plot.panel_icon(context, found, rows), scale=rows)
    table = layout.box().column(align=True)
    table_row(table, "From the top", "Most", "Limit", head=True, factor=0.5)
    for name, (label, unit) in MEASURES.items():
        known = found.measures[name][np.isfinite(found.measures[name])]
        most = f"{known.max():.2g}" if len(known) else "–"
        limit = f"{np.max(LIMITS[name]):g} {unit}"
        table_row(table, label, most, limit, factor=0.5)
    table_row(table, "Left, right foot", "stands", "", factor=0.5)
    row = layout.row()
    row.alignment = "CENTER"
    row.label(text="Beyond the limit", icon_value=tuning_plot.swatch_icon(context, "target"))
    layout.operator(POISE_OT_show_check.bl_idname, text="Show Plot of Check", icon="IMAGE_DATA")


CLASSES = (POISE_PT_clip_check,)

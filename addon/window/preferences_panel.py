# SPDX-License-Identifier: GPL-3.0-or-later
"""The preferences of Poise, as Blender shows them."""

import bpy
from bpy.props import FloatVectorProperty, IntProperty, StringProperty

from ...controller.processes.workers import processors
from ...controller.ranges import RANGES
from ..blender import checkpoints
from ..blender.folders import PACKAGE
from ..blender.preferences import DEFAULTS
from ..blender.redrawing import on_change_in_views
from ..blender.translations import tr


def _colour(key, name, description):
    return FloatVectorProperty(
        name=name,
        description=description,
        subtype="COLOR_GAMMA",
        size=4,
        min=0.0,
        max=1.0,
        default=getattr(DEFAULTS, key),
        update=on_change_in_views,
    )


class POISE_AP_preferences(bpy.types.AddonPreferences):
    """The preferences of Poise."""

    bl_idname = PACKAGE

    workers: IntProperty(
        name="Workers",
        description="Processes that Rectify, Optimize and Find Limit run, unless a scene says "
        "otherwise. They change how long it takes, not what is found. 0: one less than there are "
        "processors, so that one is left to Blender",
        default=DEFAULTS.workers,
        **RANGES["processes"].limits,
        soft_max=processors(),
    )
    cache: StringProperty(
        name="Cache Folder",
        description="In a folder of its own in here, searches that have not ended are kept, so "
        "that they can be resumed; empty: in Blender's folder for Poise",
        subtype="DIR_PATH",
        default=DEFAULTS.cache,
    )
    body: _colour("body", "Ghost", "Colour of the ghost, and how opaque it is")
    contact: _colour(
        "contact", "Touching Foot of Ghost", "Colour of a foot of the ghost that touches something"
    )
    fallen: _colour("fallen", "Fallen Ghost", "Colour of the ghost in the frame in which it fell")

    def draw(self, _context):
        """Workers, the cache and what is in it, colours."""
        layout = self.layout
        layout.use_property_split = True
        layout.use_property_decorate = False
        layout.prop(self, "workers", text="Workers" if self.workers else "Workers, 0: automatic")
        column = layout.column(align=True)
        column.prop(self, "cache", placeholder="Automatic")
        split = column.split(factor=0.4)
        left = split.row()
        left.alignment = "RIGHT"
        left.label(text="Unfinished Searches")
        row = split.row(align=True)
        row.label(text=tr(checkpoints.size_words()), translate=False)
        row.operator("poise.open_cache", text="Open", icon="FILE_FOLDER")
        row.operator("poise.clear_cache", text="Clear", icon="TRASH")
        column = layout.column()
        for name in ("body", "contact", "fallen"):
            column.prop(self, name)


CLASSES = (POISE_AP_preferences,)

# SPDX-License-Identifier: GPL-3.0-or-later
"""What all panels of the sidebar have in common."""

from typing import TYPE_CHECKING

from ..blender.chosen import chosen_armature
from ..blender.threads import TAB

if TYPE_CHECKING:
    import bpy


class Panel:
    """A panel in the tab *Poise*; what it shows is in `content`."""

    bl_space_type = "VIEW_3D"
    bl_region_type = "UI"
    bl_category = TAB

    @classmethod
    def poll(cls, context: "bpy.types.Context") -> bool:
        """Quick mode has a panel of its own; what belongs to another panel is hidden with it."""
        return context.scene.poise.mode == "FULL"

    def draw(self, context: "bpy.types.Context") -> None:
        """Blender calls this for every drawing."""
        layout = self.layout  # type: ignore[attr-defined]  # Blender's own
        layout.use_property_split = True
        layout.use_property_decorate = False
        armature, reason = chosen_armature(context)
        self.content(layout, context, armature, reason)  # type: ignore[attr-defined]  # a child's

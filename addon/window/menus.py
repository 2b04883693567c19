# SPDX-License-Identifier: GPL-3.0-or-later
"""Poise in Blender's menus: *Object ▸ Animation* and *Pose ▸ Animation*, which are one and the same
menu to Blender. F3 searches menus, and finds Poise by these names."""

import bpy

from ..operators import (
    POISE_OT_bake,
    POISE_OT_discard,
    POISE_OT_example_scene,
    POISE_OT_optimize,
    POISE_OT_rectify,
    POISE_OT_show,
    POISE_OT_simulate,
)


class POISE_MT_physics(bpy.types.Menu):
    """What an animator would look for."""

    bl_label = "Physics (Poise)"
    bl_description = "Let a physically simulated body perform the animation, with Poise"

    def draw(self, _context):
        """In the order of the work."""
        layout = self.layout
        layout.operator_context = "INVOKE_DEFAULT"
        layout.operator(POISE_OT_simulate.bl_idname, icon="PLAY")
        layout.operator(POISE_OT_rectify.bl_idname, icon="MOD_SMOOTH")
        layout.operator(POISE_OT_optimize.bl_idname, icon="GRAPH")
        layout.separator()
        layout.operator(POISE_OT_bake.bl_idname, icon="ACTION")
        for which, text in (("source", "Show Source Action"), ("baked", "Show Baked Action")):
            layout.operator(POISE_OT_show.bl_idname, text=text).which = which
        layout.operator(POISE_OT_discard.bl_idname, icon="TRASH")
        layout.separator()
        layout.operator(POISE_OT_example_scene.bl_idname, icon="SCENE_DATA")
        stairs = layout.operator(POISE_OT_example_scene.bl_idname, text="Example Scene: Stairs")
        stairs.example = "STAIRS"


def _draw(menu, _context):
    menu.layout.separator()
    menu.layout.menu(POISE_MT_physics.__name__, icon="PHYSICS")


CLASSES = (POISE_MT_physics,)


def register():
    """Add the menu to Blender's."""
    bpy.types.VIEW3D_MT_object_animation.append(_draw)


def unregister():
    """Undo `register`."""
    bpy.types.VIEW3D_MT_object_animation.remove(_draw)

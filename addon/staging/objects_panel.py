# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects in the sidebar: which take part, the settings of the active one, how they meet."""

import bpy

from ..blender import session
from ..kit.panel import Panel
from ..kit.rows import sentence
from ..scene.objects import takes_part
from .objects import POISE_OT_make_collider, POISE_OT_make_thing, POISE_OT_unmark

_ICONS = {"THING": "PHYSICS", "COLLIDER": "MOD_PHYSICS"}


class POISE_UL_objects(bpy.types.UIList):
    """The objects of the scene that take part."""

    def draw_item(self, _context, layout, _data, thing, _icon, _active, _name):
        """A name and a role."""
        row = layout.row()
        icon = _ICONS.get(thing.poise.role, "NONE")
        row.label(text=thing.name, icon=icon, translate=False)
        sub = row.row()
        sub.alignment = "RIGHT"
        sub.label(text=thing.poise.role.capitalize())

    def filter_items(self, _context, data, property_name):
        """Only those that are marked, and named as searched."""
        things = getattr(data, property_name)
        text = self.filter_name.lower()
        shown = [
            self.bitflag_filter_item if takes_part(t) and text in t.name.lower() else 0
            for t in things
        ]
        return shown, bpy.types.UI_UL_list.sort_items_by_name(things)


class POISE_PT_objects(Panel, bpy.types.Panel):
    """Things and colliders."""

    bl_label = "Objects"
    bl_options = {"DEFAULT_CLOSED"}

    def content(self, layout, context, armature, _reason):
        """Buttons, list, the active object."""
        scene = context.scene
        idle = session.job() is None
        row = layout.row(align=True)
        row.operator(POISE_OT_make_thing.bl_idname, text="Thing", icon=_ICONS["THING"])
        row.operator(POISE_OT_make_collider.bl_idname, text="Collider", icon=_ICONS["COLLIDER"])
        row.operator(POISE_OT_unmark.bl_idname, text="", icon="X")
        if any(takes_part(thing) for thing in scene.objects):
            settings = scene.poise.objects
            layout.template_list(
                POISE_UL_objects.__name__, "", scene, "objects", settings, "index", rows=3
            )
        active = context.active_object
        if active is not None and takes_part(active):
            column = layout.column()
            column.active = idle
            _draw_object(column, active)
            if active == armature:
                text = "Simulated itself, it is met by others only"
                sentence(column, context, text, "INFO")


def _draw_object(layout, thing):
    """The settings of a marked object."""
    settings = thing.poise
    if thing.type == "MESH":
        layout.prop(settings, "shape")
    if settings.role == "THING":
        layout.row().prop(settings, "mass_from", expand=True)
        layout.row().prop(settings, "velocity_from", expand=True)
    column = layout.column(align=True)
    column.use_property_split = False
    if settings.role == "THING":
        column.prop(settings, "density" if settings.mass_from == "DENSITY" else "mass")
        column.prop(settings, "release")
        if settings.velocity_from == "GIVEN":
            _draw_vector(column, settings, "velocity", "Velocity (m/s)")
            _draw_vector(column, settings, "spin", "Spin (turns/s)")
        column.prop(settings, "bounciness")
    column.prop(settings, "friction")


def _draw_vector(layout, settings, name, label):
    """Three numbers side by side under their name."""
    layout.label(text=label)
    layout.row(align=True).prop(settings, name, text="")


class POISE_PT_contact(Panel, bpy.types.Panel):
    """How objects and the body meet."""

    bl_label = "Contact"
    bl_parent_id = "POISE_PT_objects"

    def content(self, layout, context, _armature, _reason):
        """What meets what, and thrown spheres."""
        settings = context.scene.poise.objects
        layout.active = session.job() is None
        layout.use_property_split = False
        column = layout.column()
        column.prop(settings, "whole_body")
        column.prop(settings, "self_collision")
        column.prop(settings, "throw")
        spheres = column.column(align=True)
        spheres.active = settings.throw
        spheres.prop(settings, "throw_mass")
        spheres.prop(settings, "throw_seed")


CLASSES = (POISE_UL_objects, POISE_PT_objects, POISE_PT_contact)

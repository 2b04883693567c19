# SPDX-License-Identifier: GPL-3.0-or-later
"""Physics weights in the sidebar: from when to when, and how much of what is simulated."""

import bpy

from ..controller.physics_weights import NAMES
from . import session
from .panels import _Panel, _sentence
from .weights import PROPERTY


class POISE_PT_weights(_Panel, bpy.types.Panel):
    """What of the body is simulated, and when."""

    bl_label = "Physics Weights"
    bl_parent_id = "POISE_PT_simulate"
    bl_options = {"DEFAULT_CLOSED"}

    def content(self, layout, context, armature, reason):
        """Start and hand-over, and below them the weights to key."""
        layout.active = session.job() is None
        if armature is None:
            _sentence(layout, context, f"{reason}.", "INFO")
            return
        data = armature.data
        _draw_owner(layout, context, armature)
        weights = getattr(data, PROPERTY)
        layout.enabled = data.is_editable
        _draw_times(layout, weights)
        column = layout.column(align=True)
        column.use_property_decorate = True
        for name in NAMES:
            column.prop(weights, name, slider=True)


def _draw_owner(layout, context, armature):
    """Whose weights these are, where that is not plain."""
    data = armature.data
    if not data.is_editable:
        words = (
            f"'{data.name}' is linked: make a library override of it, or make it local "
            "(Object > Relations), to change its weights here."
        )
        _sentence(layout, context, words, "LIBRARY_DATA_DIRECT")
    elif data.users > 1:
        words = f"'{data.name}' has {data.users} users: these weights are those of all of them."
        _sentence(layout, context, words, "INFO")


def _draw_times(layout, weights):
    """The frames from and to which there is physics at all."""
    for switch, names in (("use_start", ("start",)), ("use_hand_back", ("hand_back", "over"))):
        layout.prop(weights, switch)
        if getattr(weights, switch):
            # Names with units are too long to stand beside their fields.
            column = layout.column(align=True)
            column.use_property_split = False
            for name in names:
                column.prop(weights, name)


CLASSES = (POISE_PT_weights,)

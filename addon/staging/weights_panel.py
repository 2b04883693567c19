# SPDX-License-Identifier: GPL-3.0-or-later
"""Physics weights in the sidebar: from when to when, and how much of what is simulated; and how
strong the character is, and how it falls."""

import bpy

from ...controller.falls.behaviours import BEHAVIOURS, STOP
from ...controller.falls.strength import LIMBS
from ...controller.gains.physics_weights import NAMES
from ..blender import session
from ..blender.chosen import chosen_armature
from ..blender.translations import tr
from ..kit.panel import Panel
from ..kit.rows import sentence
from ..scene import mixture, strength
from ..scene.weights import PROPERTY


class POISE_OT_weights_own(bpy.types.Operator):
    """Give a linked character weights of its own."""

    bl_idname = "poise.weights_own"
    bl_label = "Make Physics Weights Editable"
    bl_description = (
        "Make a library override of the linked armature data: an override of the character does "
        "not include it"
    )
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context):
        """Needs linked data of an object that is not."""
        armature, reason = chosen_armature(context)
        if armature is None:
            problem = reason
        elif armature.library is not None:
            problem = f"'{armature.name}' is linked itself: make a library override of it first"
        elif armature.data.library is None:
            problem = "They are: the armature data is not linked"
        else:
            return True
        cls.poll_message_set(tr(problem))
        return False

    def execute(self, context):
        """Override the data."""
        armature, _ = chosen_armature(context)
        if armature.data.override_create(remap_local_usages=True) is None:
            self.report(
                {"ERROR"}, tr(f"Blender cannot override '{armature.data.name}': make it local")
            )
            return {"CANCELLED"}
        return {"FINISHED"}


class POISE_PT_weights(Panel, bpy.types.Panel):
    """What of the body is simulated, and when."""

    bl_label = "Physics Weights"
    bl_parent_id = "POISE_PT_simulate"
    bl_options = {"DEFAULT_CLOSED"}

    def content(self, layout, context, armature, reason):
        """Start and hand-over, and below them the weights to key."""
        body = _begun(layout, context, armature, reason)
        if body is not None:
            weights = getattr(armature.data, PROPERTY)
            _draw_switched(body, weights, "use_start", ("start",))
            _draw_switched(body, weights, "use_hand_back", ("hand_back", "over"))
            _draw_shares(body, weights, NAMES)


class POISE_PT_strength(Panel, bpy.types.Panel):
    """How strong the body is, and when it faints."""

    bl_label = "Strength"
    bl_parent_id = "POISE_PT_simulate"
    bl_options = {"DEFAULT_CLOSED"}

    def content(self, layout, context, armature, reason):
        """When it faints, and below that the strengths to key."""
        body = _begun(layout, context, armature, reason)
        if body is not None:
            chosen = getattr(armature.data, strength.PROPERTY)
            _draw_switched(body, chosen, "use_knock_out", ("knock_out",))
            _draw_shares(body, chosen, LIMBS)


class POISE_PT_mixture(Panel, bpy.types.Panel):
    """What is mixed with how it falls."""

    bl_label = "Falls Like"
    bl_parent_id = "POISE_PT_simulate"
    bl_options = {"DEFAULT_CLOSED"}

    def content(self, layout, context, armature, reason):
        """The shares to key."""
        body = _begun(layout, context, armature, reason)
        if body is not None:
            if context.scene.poise.when_it_falls == STOP.upper():
                words = "The simulation ends where balance is lost: choose When It Falls."
                sentence(layout, context, words, "INFO")
            _draw_shares(body, getattr(armature.data, mixture.PROPERTY), BEHAVIOURS)


def _begun(layout, context, armature, reason):
    """The layout for what belongs to the armature's data, below whose they are; None without an
    armature."""
    layout.active = session.job() is None
    if armature is None:
        sentence(layout, context, f"{reason}.", "INFO")
        return None
    _draw_owner(layout, context, armature)
    body = layout.column()
    body.enabled = armature.data.library is None
    return body


def _draw_shares(layout, owner, names):
    """Sliders that can be keyed."""
    column = layout.column(align=True)
    column.use_property_decorate = True
    for name in names:
        column.prop(owner, name, slider=True)


def _draw_owner(layout, context, armature):
    """Whose weights these are, where that is not plain."""
    data = armature.data
    if data.library is not None:
        words = f"The armature data '{data.name}' is linked, and its weights with it."
        sentence(layout, context, words, "LIBRARY_DATA_DIRECT")
        layout.operator(
            POISE_OT_weights_own.bl_idname,
            text="Make Weights Editable",
            icon="LIBRARY_DATA_OVERRIDE",
        )
    elif data.users > 1:
        words = f"'{data.name}' has {data.users} users: these weights are those of all of them."
        sentence(layout, context, words, "INFO")


def _draw_switched(layout, owner, switch, names):
    """A switch, and below it what it switches on."""
    layout.prop(owner, switch)
    if getattr(owner, switch):
        # Names with units are too long to stand beside their fields.
        column = layout.column(align=True)
        column.use_property_split = False
        for name in names:
            column.prop(owner, name)


CLASSES = (POISE_OT_weights_own, POISE_PT_weights, POISE_PT_strength, POISE_PT_mixture)

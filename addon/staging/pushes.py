# SPDX-License-Identifier: GPL-3.0-or-later
"""Add pushes to the list, take them away, generate the paper's."""

import contextlib

import bpy
from bpy.props import EnumProperty, FloatProperty, IntProperty

from ...controller.exceptions import MotionError
from ...controller.ranges import RANGES
from ...controller.simulation.scenario import FIRST, PERIOD, PUSH_DURATION, random_pushes
from ..blender import session
from ..blender.chosen import chosen_armature, chosen_frames
from ..blender.redrawing import redraw
from ..blender.translations import tr
from ..rigs import bake_target, sampling
from ..scene import pushes

_SAME = (
    *("use", "kind", "frame", "duration", "strength", "azimuth", "elevation"),
    *("whom", "part", "bone"),
)


class _PushOperator:
    """An operator on the list of pushes."""

    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context):
        """Nothing may run; most need a push."""
        why = session.busy()
        if not why and cls.needs_push and not context.scene.poise.pushes.items:
            why = "There is no push: add one first"
        if why:
            cls.poll_message_set(tr(why))
        return not why

    needs_push = True

    def execute(self, context):
        """Change the list."""
        chosen = context.scene.poise.pushes
        self.change(context, chosen)
        chosen.index = max(0, min(chosen.index, len(chosen.items) - 1))
        redraw()
        return {"FINISHED"}


class POISE_OT_add_push(_PushOperator, bpy.types.Operator):
    """Add a push."""

    bl_idname = "poise.add_push"
    bl_label = "Add Push"
    bl_description = "Push the character at the current frame; drag the arrow in the 3D view to aim"
    needs_push = False

    def change(self, context, chosen):
        """At the current frame, on the trunk."""
        push = chosen.items.add()
        push.name = f"Push {len(chosen.items)}"
        push.frame = context.scene.frame_current
        chosen.index = len(chosen.items) - 1


class POISE_OT_duplicate_push(_PushOperator, bpy.types.Operator):
    """Duplicate the active push."""

    bl_idname = "poise.duplicate_push"
    bl_label = "Duplicate Push"
    bl_description = "Add a copy of the chosen push"

    def change(self, _context, chosen):
        """Behind the others."""
        push = chosen.items.add()
        source = chosen.items[chosen.index]  # after `add`, which moves what was there
        for name in _SAME:
            setattr(push, name, getattr(source, name))
        push.offset, push.empty = source.offset, source.empty
        push.name = f"{source.name} copy"
        chosen.index = len(chosen.items) - 1


class POISE_OT_remove_push(_PushOperator, bpy.types.Operator):
    """Remove the active push."""

    bl_idname = "poise.remove_push"
    bl_label = "Remove Push"
    bl_description = "Remove the chosen push"

    def change(self, _context, chosen):
        """And choose the next."""
        chosen.items.remove(chosen.index)


class POISE_OT_move_push(_PushOperator, bpy.types.Operator):
    """Move the active push in the list."""

    bl_idname = "poise.move_push"
    bl_label = "Move Push"
    bl_description = "Move the chosen push up or down in the list; the order changes nothing else"
    bl_options = {"REGISTER", "UNDO", "INTERNAL"}

    direction: EnumProperty(
        name="Direction",
        description="Where to move it",
        items=(("UP", "Up", "Before the one above"), ("DOWN", "Down", "Behind the one below")),
    )

    def change(self, _context, chosen):
        """It stays the active one."""
        target = chosen.index + (1 if self.direction == "DOWN" else -1)
        if 0 <= target < len(chosen.items):
            chosen.items.move(chosen.index, target)
            chosen.index = target


class POISE_OT_clear_pushes(_PushOperator, bpy.types.Operator):
    """Remove all pushes."""

    bl_idname = "poise.clear_pushes"
    bl_label = "Remove All Pushes"
    bl_description = "Remove all pushes of this scene"

    def change(self, _context, chosen):
        """All of them."""
        chosen.items.clear()


class POISE_OT_generate_pushes(_PushOperator, bpy.types.Operator):
    """Fill the list with random pushes."""

    bl_idname = "poise.generate_pushes"
    bl_label = "Generate Random Pushes"
    bl_description = (
        "Push the trunk once every second for 0.2 s, horizontally, in random directions, over the "
        "frames to simulate. Replaces what was generated before, and nothing else"
    )
    needs_push = False

    force: FloatProperty(
        name="Strength (N)",
        description="Force of each push [N]",
        default=100.0,
        **RANGES["force"].limits,
        soft_max=300.0,
        step=1000,
        precision=0,
    )
    seed: IntProperty(
        name="Seed",
        description="Number that directions are drawn from: the same seed gives the same pushes",
        **RANGES["seed"].limits,
    )

    def invoke(self, context, _event):
        """Ask first."""
        return context.window_manager.invoke_props_dialog(self)

    def change(self, context, chosen):
        """Replace what was generated before."""
        for index in reversed(range(len(chosen.items))):
            if chosen.items[index].generated:
                chosen.items.remove(index)
        rate = context.scene.render.fps / context.scene.render.fps_base
        first, last = _range(context)
        found = random_pushes(self.force, (last - first) / rate, self.seed)
        for number, drawn in enumerate(found):
            push = chosen.items.add()
            push.name = f"Random {number + 1}"
            push.generated = True
            push.frame = round(first + drawn.start * rate)
            push.duration, push.strength = PUSH_DURATION, self.force
            push.azimuth, push.elevation = pushes.angles(drawn.force)
        if not found:
            self.report(
                {"WARNING"},
                tr(
                    f"The animation is too short: the first push comes {FIRST:g} to "
                    f"{FIRST + PERIOD:g} s after its start"
                ),
            )


def _range(context):
    """First and last frame that will be simulated; the scene's if there is no animation."""
    scene = context.scene
    chosen, (armature, _) = chosen_frames(scene), chosen_armature(context)
    if chosen is None and armature is not None and armature.animation_data is not None:
        with contextlib.suppress(MotionError):  # nothing is keyed yet
            chosen = sampling.animated_range(armature, *bake_target.unbaked(armature))
    return chosen or (scene.frame_start, scene.frame_end)

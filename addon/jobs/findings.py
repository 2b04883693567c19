# SPDX-License-Identifier: GPL-3.0-or-later
"""What operators share that go to the frame of something that was found."""

import math

from bpy.props import IntProperty

from ..blender import session
from ..blender.chosen import chosen_armature
from ..blender.translations import tr


class ShowFinding:
    """An operator that goes to a frame. Children define `findings(result)`: (frame, sentence) of
    each."""

    index: IntProperty(name="Finding", description="Its number in the list, from 0", min=0)

    @classmethod
    def description(cls, context, properties):
        """The finding itself, which the sidebar may be too narrow for."""
        armature, _ = chosen_armature(context)
        found = cls.findings(session.result_of(context.scene, armature)) if armature else ()
        if properties.index >= len(found):
            return tr(cls.bl_description)
        sentence = found[properties.index][1].removesuffix(".")
        return tr(f"{sentence[0].upper() + sentence[1:]}.") + "\n" + tr(cls.bl_description)

    def execute(self, context):
        """Go there."""
        armature, _ = chosen_armature(context)
        found = self.findings(session.result_of(context.scene, armature))
        if self.index >= len(found):
            self.report({"ERROR"}, tr(f"There are {len(found)} findings only."))
            return {"CANCELLED"}
        frame = found[self.index][0]
        whole = math.floor(frame)
        context.scene.frame_set(whole, subframe=frame - whole)
        return {"FINISHED"}

# SPDX-License-Identifier: GPL-3.0-or-later
"""Save the rig map of an armature, to correct it or to use it elsewhere."""

import bpy
from bpy_extras.io_utils import ExportHelper

from ...controller.exceptions import PoiseError
from ..blender import session
from ..blender.chosen import chosen_armature
from ..blender.translations import tr
from ..jobs.modal import poll_idle
from ..rigs import rig


class POISE_OT_save_map(ExportHelper, bpy.types.Operator):
    """Write the rig map of the armature to a file."""

    bl_idname = "poise.save_map"
    bl_label = "Save Rig Map"
    bl_description = (
        "Save which bones carry which part of the body to a .json file, which can be edited and "
        "then be chosen as rig map"
    )
    bl_options = {"REGISTER"}

    filename_ext = ".json"
    filter_glob: bpy.props.StringProperty(
        name="Filter", description="Files to list", default="*.json", options={"HIDDEN"}
    )

    @classmethod
    def poll(cls, context):
        """Needs a map that was read."""
        if not poll_idle(cls, context):
            return False
        armature, _ = chosen_armature(context)
        if session.result_of(context.scene, armature).shot is None:
            cls.poll_message_set(tr("Measure the body or simulate first, which finds the map"))
            return False
        return True

    def execute(self, context):
        """Write the file."""
        armature, _ = chosen_armature(context)
        try:
            rig.save(session.result_of(context.scene, armature).shot.reading.rig_map, self.filepath)
        except PoiseError as error:
            self.report({"ERROR"}, tr(str(error)))
            return {"CANCELLED"}
        self.report({"INFO"}, tr(f"Saved '{self.filepath}'"))
        return {"FINISHED"}

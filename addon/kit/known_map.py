# SPDX-License-Identifier: GPL-3.0-or-later
"""The rig map of an armature, as far as it is known without reading its animation."""

from functools import lru_cache

import bpy
import numpy as np

from ...controller.exceptions import RigError
from ..blender import session
from ..rigs import rig


def known_map(
    context: bpy.types.Context, armature: bpy.types.Object
) -> tuple[rig.RigMap | None, str]:
    """The RigMap of an armature and the problem with it: as it was read, else as the names of its
    bones say. Both are empty if it has to be detected."""
    shot = session.result_of(context.scene, armature).shot
    name = context.scene.poise.rig
    if shot is not None and (shot.options.rig or "") == name:
        return shot.reading.rig_map, ""
    return _map_by_names(armature.name, tuple(armature.data.bones.keys()), name)


@lru_cache(maxsize=16)
def _map_by_names(
    armature_name: str, _bones: tuple[str, ...], name: str
) -> tuple[rig.RigMap | None, str]:
    """The map that fits the names of an armature's bones. Cached: panels are drawn all the time."""
    armature = bpy.data.objects[armature_name]
    # Without frames the map would be looked for in the animation, which may not be sampled here.
    rest = np.array([[bone.matrix_local for bone in armature.data.bones]], float)
    try:
        found = rig.find(armature, rest, name or None)
    except RigError as error:
        return None, str(error) if name else ""
    return (None if found.detected else found), ""

# SPDX-License-Identifier: GPL-3.0-or-later
"""Contacts in the window: those of an armature, and what follows when they are changed."""

from typing import TYPE_CHECKING, Any

from ...controller.exceptions import PlanError
from ..blender import session
from ..rigs import bake_target, strips
from . import contacts

if TYPE_CHECKING:
    import bpy


def known(scene: "bpy.types.Scene", armature: "bpy.types.Object") -> contacts.Kept | None:
    """The contacts.Kept of an armature: with its action, else as its last clean-up found them; None
    without either. Raises PlanError for one that cannot be read."""
    try:
        action, slot = contacts.source_of(armature)
    except PlanError:  # told when they are to be found
        return None
    kept = contacts.kept(action, slot)
    clean = _clean_of(scene, armature, action)
    if kept is None and clean is not None and clean.found is not None:
        return contacts.Kept.of(clean.reading, clean.found)
    return kept


def shown(scene: "bpy.types.Scene", armature: "bpy.types.Object") -> Any:
    """The CleanShot of what animates an armature, which follows its contacts; None for anything
    else. Raises PlanError."""
    action, _ = contacts.source_of(armature)
    return _clean_of(scene, armature, action) if _shows_clean(armature) else None


def clean_outdated(scene: "bpy.types.Scene", armature: "bpy.types.Object") -> bool:
    """Whether contacts have changed since the last clean-up of an armature."""
    clean = session.result_of(scene, armature).clean
    return clean is not None and contacts.outdated(clean)


def _shows_clean(armature: "bpy.types.Object") -> bool:
    mark = bake_target.mark_of(*strips.shown(armature))
    return mark is not None and mark.get("kind") == "clean"


def _clean_of(
    scene: "bpy.types.Scene", armature: "bpy.types.Object", action: "bpy.types.Action"
) -> Any:
    """The CleanShot of an armature's action that is remembered; None without."""
    clean = session.result_of(scene, armature).clean
    same = clean is not None and clean.reading.action == action.name
    return clean if same and clean.reading.library is None else None

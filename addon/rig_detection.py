# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the biped in an armature from its hierarchy and its animated geometry."""

from ..controller.exceptions import RigError


def detect(armature, frames=None):
    """Slot -> bones. Raises RigError."""
    raise RigError(f"'{armature.name}' matches no rig map: pick one.")

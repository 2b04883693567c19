# SPDX-License-Identifier: GPL-3.0-or-later
"""The reference as a whole."""

from dataclasses import replace

import numpy as np
import pytest

from poise.controller import Character, Simulation


@pytest.mark.parametrize("name", ["walk", "run", "squat"])
def test_a_reference_ends_as_its_source_does(import_clip, name):
    """Also one that stops dead; the reference of a walk went on for a metre."""
    import bpy

    from poise.addon.rigs import reference

    motion = reference.read(bpy.context.scene, import_clip(name)).motion
    last = np.minimum(np.arange(len(motion) + int(motion.rate)), len(motion) - 1)
    motion = replace(motion, rotations=motion.rotations[last], positions=motion.positions[last])
    character = Character.from_motion(motion)
    smooth = Simulation(character, motion).reference.smooth
    joints, frames = character.pose(character.trajectory(motion))
    source = character.body_centres(joints, frames)
    masses = character.masses / character.mass
    ends = [np.einsum("si,s->i", centres[-1], masses) for centres in (source, smooth.centres)]
    assert np.linalg.norm(ends[1] - ends[0]) < 0.005

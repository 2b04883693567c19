# SPDX-License-Identifier: GPL-3.0-or-later
"""Real captured motion, untuned, as `measures.md` defines a trial: looped to 20 s."""

import numpy as np
import pytest

from poise.controller import Character, Settings, Simulation

bpy = pytest.importorskip("bpy")

IN_PLACE = ("stand", "arm", "hips_twist", "wave", "bow")


@pytest.fixture
def read_motion(import_clip):
    """The function read_motion(name) -> Motion of a captured clip."""
    from poise.addon.rigs import reference

    def read(name):
        return reference.read(bpy.context.scene, import_clip(name)).motion

    return read


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_PLACE)
def test_untuned_defaults_carry_the_clip(read_motion, name):
    motion = read_motion(name)
    character = Character.from_motion(motion)
    recording = Simulation(character, motion, settings=Settings(duration=20.0)).run()
    assert recording.success, recording.why()
    assert recording.summary()["reward"] >= 1.8


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kick", "dance"])
def test_what_falls_alone_is_performed_with_help_from_outside(read_motion, name):
    motion = read_motion(name)
    character = Character.from_motion(motion)
    alone, helped, again = (
        Simulation(character, motion, settings=Settings(outside_help=share)).run()
        for share in (0.0, 0.5, 0.5)
    )
    assert not alone.success and helped.success, helped.why()
    assert 0.1 < helped.summary()["residual"] / (character.mass * 9.81) < 0.3
    assert (helped.body_positions == again.body_positions).all()


@pytest.mark.slow
def test_every_clip_is_simulated_or_falls_with_an_account(read_motion, clips):
    for name in clips:
        motion = read_motion(name)
        character = Character.from_motion(motion)
        recording = Simulation(character, motion).run()
        assert np.isfinite(recording.rotation_deltas()).all(), name
        assert np.isfinite(recording.root_displacement()).all(), name
        # Nothing flies apart: the body stays in one piece, near where the clip has it.
        apart = recording.body_positions - recording.com[:, None]
        assert np.linalg.norm(apart, axis=-1).max() < character.height, name
        assert np.linalg.norm(recording.root_displacement(), axis=1).max() < 2, name
        speed = np.linalg.norm(np.diff(recording.com, axis=0), axis=1) * motion.rate
        assert speed.max() < 12, name
        if not recording.success:
            flung = "fling its limbs" in recording.why()  # from there on it would fall
            words = "Stopped at " if recording.upright and not flung else "Fell at "
            assert recording.why().startswith(words), name

# SPDX-License-Identifier: GPL-3.0-or-later
"""Styles: the upper body follows the animation more loosely, and the body stands all the same."""

import numpy as np
import pytest

from poise.controller import Character, Problem, Settings, SettingsError, Simulation
from poise.controller.gains.styles import STYLES, of_joints
from poise.controller.geometry.skeleton import SEGMENT_INDEX


@pytest.fixture
def performed(swinging):
    """performed(**settings) -> Recording of a person whose arms swing."""
    character = Character.from_motion(swinging)
    return lambda **given: Simulation(character, swinging, settings=Settings(**given)).run()


def apart(recording, other):
    """How far the forearms of two recordings are apart in the mean [m]."""
    arms = [part.body_positions[:, SEGMENT_INDEX["forearm_l"]] for part in (recording, other)]
    return float(np.linalg.norm(arms[0] - arms[1], axis=1).mean())


def test_close_is_as_if_there_were_no_styles():
    assert (np.array(of_joints("close", ("hip_l_pitch", "elbow_r", "neck_roll"))) == 1).all()
    assert Settings().style == "close"


def test_only_the_regions_of_a_style_are_held_more_loosely():
    names = ("hip_l_pitch", "ankle_r_roll", "shoulder_l_pitch", "elbow_r")
    factors = np.array(of_joints("relaxed", names))
    assert (factors[:, :2] == 1).all()
    assert (factors[:3, 2:] < 1).all()
    assert (factors[3] == 1).all()  # relaxed arms do not sink, heavy ones do
    assert of_joints("heavy", ("elbow_r",)).support < 1


@pytest.mark.slow
def test_every_style_stands_and_shows(performed):
    close = performed()
    loose = {name: performed(style=name) for name in STYLES if name != "close"}
    for name, recording in loose.items():
        assert recording.success, (name, recording.why())
    lag = {name: apart(recording, close) for name, recording in loose.items()}
    assert 0.005 < lag["natural"] < lag["relaxed"] / 1.5


def test_heavy_arms_hang_lower(performed):
    close, heavy = (performed(style=name) for name in ("close", "heavy"))
    raised = close.body_positions[:, SEGMENT_INDEX["forearm_l"], 2]
    assert (heavy.body_positions[:, SEGMENT_INDEX["forearm_l"], 2] - raised).mean() < -0.001


@pytest.mark.slow(captured=False)
def test_virtual_forces_know_no_styles(performed):
    plain, styled = (performed(balance="virtual_forces", style=name) for name in ("close", "heavy"))
    assert np.array_equal(plain.body_positions, styled.body_positions)


def test_an_unknown_style_is_refused():
    with pytest.raises(SettingsError, match="no style 'angry': use close, natural, relaxed, heavy"):
        Settings(style="angry")


def test_workers_are_told_the_style(swinging):
    problem = Problem(swinging, settings=Settings(style="relaxed", duration=1.0))
    assert Problem.from_bytes(problem.to_bytes()).settings.style == "relaxed"


@pytest.mark.slow
@pytest.mark.parametrize("style", STYLES)
def test_captured_clips_stand_in_every_style(import_clip, style):
    bpy = pytest.importorskip("bpy")
    from poise.addon.rigs import reference

    for name in ("stand", "arm", "wave", "hips_twist", "bow"):
        motion = reference.read(bpy.context.scene, import_clip(name)).motion
        character = Character.from_motion(motion)
        recording = Simulation(character, motion, settings=Settings(style=style)).run()
        assert recording.success, (name, recording.why())
        # How far off the joints are [mm], from a wave that is all but exact to arms that whirl.
        off = recording.summary()["tracking_error_local"]
        most = {"close": 12, "natural": 20, "relaxed": 30, "heavy": 35}[style]
        if name == "hips_twist":
            most += 10  # feet that pivot under all of the weight, as captured, turn the hips, too
        assert off < most, name

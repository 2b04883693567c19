# SPDX-License-Identifier: GPL-3.0-or-later
from dataclasses import replace

import numpy as np
import pytest

from poise.controller import Character, RigError
from poise.controller.checks.clip_check import check
from poise.controller.geometry.skeleton import LANDMARK_INDEX, SIDES


def moved(motion, **offsets):
    """A motion with landmarks elsewhere relative to their ankles. offsets: {"ball": (x, y, z) [m],
    "toe": from the ball}."""
    positions = motion.positions.copy()
    for side in SIDES:
        start = positions[:, LANDMARK_INDEX[f"ankle_{side}"]]
        for name in ("ball", "toe"):
            at = LANDMARK_INDEX[f"{name}_{side}"]
            if name in offsets:
                positions[:, at] = start + offsets[name]
            start = positions[:, at]
    return replace(motion, positions=positions)


def notes(motion):
    """The sentences on feet, and the ball of the foot that is simulated [m]."""
    character = Character.from_motion(motion)
    findings = check(character, motion).findings
    foot = character.feet[0]
    return [f.sentence for f in findings if f.kind == "feet"], foot


def test_feet_of_people_are_not_odd(standing):
    assert notes(standing)[0] == []


def test_toes_that_point_backward(standing):
    backward = moved(standing, ball=(-0.13, 0, -0.05), toe=(-0.05, 0, 0))
    with pytest.raises(RigError, match="left toes of 'person' point backward: swap left and right"):
        Character.from_motion(backward)
    tip = moved(standing, ball=(np.nan,) * 3, toe=(np.nan,) * 3)
    assert notes(tip)[0] == []


def test_toes_above_the_ankle(standing):
    above = moved(standing, ball=(0.12, 0, 0.06), toe=(0.05, 0, 0))
    with pytest.raises(RigError, match="left toes of 'person' lie above the ankle: choose other"):
        Character.from_motion(above)


def test_toes_above_the_ankle_of_a_foot_that_is_lifted_too(standing):
    """They point down in the air, where every foot does."""
    above = moved(standing, ball=(0.12, 0, 0.06), toe=(0.05, 0, 0))
    positions = above.positions.copy()
    lifted = slice(0, len(above) // 3)
    for side in SIDES:
        ankle, ball = (LANDMARK_INDEX[f"{name}_{side}"] for name in ("ankle", "ball"))
        positions[lifted, ankle, 2] += 0.1
        positions[lifted, ball, 2] -= 0.1
    with pytest.raises(RigError, match="left toes of 'person' lie above the ankle: choose other"):
        Character.from_motion(replace(above, positions=positions))


def test_high_heels_and_hooves(standing):
    heels = moved(standing, ball=(0.06, 0, -0.12), toe=(0.05, 0, 0))
    (sentence,), foot = notes(heels)
    assert "the feet never lie flat, as on high heels, hooves or the toes" in sentence
    assert f"taken to be {100 * foot.ball:.0f} cm ahead of the ankle" in sentence
    assert "choose another bone for the toes in the rig map" in sentence


@pytest.mark.parametrize("toe", [(-0.06, 0, 0), (0.01, 0, 0.06), (0.0, 0.0, -0.05)])
def test_toe_bones_that_point_elsewhere(standing, toe):
    (sentence,), foot = notes(moved(standing, ball=(0.13, 0, -0.06), toe=toe))
    assert "the toe bones do not point where the feet do, so the toes are" in sentence
    assert f"to be {100 * (foot.toe - foot.ball):.0f} cm long" in sentence


def test_long_toe_bones(standing):
    (sentence,), _ = notes(moved(standing, ball=(0.1, 0, -0.06), toe=(0.3, 0, 0)))
    assert "the toe bones are 30 cm long, so the toes are taken to be" in sentence


def test_a_toe_bone_at_the_ankle(standing):
    (sentence, *_), foot = notes(moved(standing, ball=(0.0, 0, -0.001), toe=(0.2, 0, -0.06)))
    assert "the toe bone begins at the ankle" in sentence and foot.ball > 0.05


def test_toes_without_length(standing):
    (sentence,), foot = notes(moved(standing, toe=(0.0, 0, 0)))
    assert "the toe bones have no length" in sentence
    assert foot.toe - foot.ball > 0.045
    assert f"taken to be {100 * (foot.toe - foot.ball):.0f} cm long" in sentence


def test_a_body_that_kneels_says_nothing_of_its_toes(standing):
    """Its shins lie flat, and its feet behind them."""
    positions = standing.positions.copy()
    for side in SIDES:
        knee = positions[:, LANDMARK_INDEX[f"knee_{side}"]].copy()
        for name, arm in (("ankle", (-0.42, 0, 0.0)), ("ball", (-0.55, 0, -0.02))):
            positions[:, LANDMARK_INDEX[f"{name}_{side}"]] = knee + arm
        positions[:, LANDMARK_INDEX[f"toe_{side}"]] = knee + (-0.6, 0, -0.02)
    kneeling = replace(standing, positions=positions)
    sentences, foot = notes(kneeling)
    assert sentences == []
    assert foot.ball == pytest.approx(np.hypot(0.13, 0.02), abs=0.003)

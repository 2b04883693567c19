# SPDX-License-Identifier: GPL-3.0-or-later
from dataclasses import replace

import numpy as np
import pytest

from poise.controller import Character, Gains
from poise.controller.search.clip_features import clip_features, suggest


def test_standing_still(adult, standing):
    features = clip_features(adult, standing)
    assert (features["dual"], features["single"], features["flight"]) == (1, 0, 0)
    assert features["steps"] == features["joint_speed"] == features["com_range"] == 0
    assert features["stance_width"] == pytest.approx(0.11 * 1.8 / adult.height, abs=1e-3)
    assert features["duration"] == 2.0
    assert all(isinstance(value, float) for value in features.values())


def test_swinging_arms(adult, swinging):
    features = clip_features(adult, swinging)
    assert features["dual"] == 1
    assert 0.1 < features["joint_speed"] < 1.0


def test_going_away(adult, standing):
    """At a constant speed the travel is that speed, in heights of the body."""
    way = np.arange(len(standing))[:, None, None] / standing.rate * [1.5, 0, 0]
    features = clip_features(adult, replace(standing, positions=standing.positions + way))
    assert features["travel"] == pytest.approx(1.5 / adult.height, rel=1e-3)
    assert features["com_speed"] == pytest.approx(1.5 / adult.height, rel=1e-3)


def test_size_does_not_count(make_motion, arms_swing):
    """A child that does the same has the same features."""
    motions = [make_motion(stature=s, sway=arms_swing) for s in (1.0, 1.8)]
    small, tall = (clip_features(Character.from_motion(m), m) for m in motions)
    assert small == pytest.approx(tall, abs=2e-3)


@pytest.fixture
def preset(adult):
    """The function preset(name, clip, features) -> Gains tuned on that."""

    def make(name, clip, features):
        tuned = {"clip": clip, "features": features}
        return replace(Gains.default(adult), name=name, tuned=tuned)

    return make


FEATURES = {
    "dual": 1.0,
    "flight": 0.0,
    "steps": 0.0,
    "stance_width": 0.15,
    "com_range": 0.02,
    "com_speed": 0.02,
    "joint_speed": 0.5,
    "travel": 0.0,
}


def test_the_nearest_is_suggested_with_a_reason(preset):
    low = preset("Squats", "squat", FEATURES | {"com_range": 0.15})
    one = preset("One Leg", "single", FEATURES | {"dual": 0.1})
    found, why = suggest(FEATURES | {"dual": 0.2}, [low, one])
    assert found is one
    assert why == (
        "This clip stands on both feet 20% of the time, and 'single', which 'One Leg' is "
        "for, stands on both feet 10% of the time. Of 2 presets it is the nearest, 0.5 apart, "
        "before 'Squats', 4.3 apart; beyond 3 motion is of another kind. Not tuned, tried on "
        "'single'."
    )


def test_nothing_alike_is_said(preset):
    found, why = suggest(FEATURES | {"flight": 0.6}, [preset("Standing", "stand", FEATURES)])
    assert found.name == "Standing"
    assert why.startswith("No preset was tuned on motion like this, but this clip ")
    assert "They are 6.0 apart; beyond 3 motion is of another kind." in why


def test_the_reason_tells_what_was_measured(preset):
    found = preset("Standing", "stand", FEATURES)
    found.tuned.update(
        optimiser={"generations": 3},
        body={"mass": 71.0, "height": 1.8},
        disturbance={"pushes": 100.0},
        figures={"unseen_count": 8, "unseen_mean": 1.93, "unseen_min": 1.92},
        push_limit={"force": 120.0, "speed": 0.338},
        reuse={"carried": ["arm", "wave"], "fell": ["single"]},
    )
    _, why = suggest(FEATURES, [found])
    assert why.endswith(
        " Tuned on 'stand' under pushes of 100 N for 1.80 m, 71 kg: score 1.93 in 8 new "
        "tries, 1.92 at least. There it withstands random pushes of 120 N, each of which changes "
        "its speed by 0.34 m/s. It also carries 2 of 3 other clips, not 'single'."
    )


@pytest.mark.parametrize(
    "tuned",
    [
        None,
        {},
        {"features": "many"},
        {"features": {"dual": 1.0}},
        {"features": FEATURES | {"dual": "all"}},
    ],
)
def test_presets_that_do_not_tell_take_no_part(adult, tuned):
    found, why = suggest(FEATURES, [replace(Gains.default(adult), tuned=tuned)])
    assert found is None
    assert why == "No preset says on what kind of motion it was tuned."


def test_order_does_not_count(preset):
    both = [preset("A", "a", FEATURES), preset("B", "b", FEATURES | {"steps": 2.0})]
    assert suggest(FEATURES, both)[0] is suggest(FEATURES, both[::-1])[0]

# SPDX-License-Identifier: GPL-3.0-or-later
import math
from dataclasses import replace

import pytest

from poise.controller import Gains
from poise.controller.search.provenance import tuning_words


@pytest.fixture
def words(adult):
    """The function words(**tuned) -> what gains say that tell this."""

    def tell(**tuned):
        return tuning_words(replace(Gains.default(adult), tuned={"clip": "arm"} | tuned))

    return tell


def test_untuned_gains_say_nothing(adult):
    assert tuning_words(Gains.default(adult)) == ""


@pytest.mark.parametrize(
    ("carried", "fell", "sentence"),
    [
        (["a", "b"], [], "It also carries all 2 other clips that were tried."),
        (["a"], ["b"], "It also carries 1 of 2 other clips, not 'b'."),
        ([], list("abcde"), "It also carries 0 of 5 other clips, not 'a', 'b', 'c' and 2 more."),
    ],
)
def test_other_clips(words, carried, fell, sentence):
    told = words(reuse={"carried": carried, "fell": fell})
    assert told == f"Not tuned, tried on 'arm'. {sentence}"


def test_pushes_are_told_with_what_they_do_to_the_body(words):
    told = words(
        optimiser={"generations": 2},
        disturbance={"pushes": 86.7, "spheres": 0.0},
        push_limit={"force": 120.0, "speed": 0.39},
    )
    assert told == (
        "Tuned on 'arm' under pushes of 87 N. There it withstands random pushes of 120 N"
        ", each of which changes its speed by 0.39 m/s."
    )


def test_pushes_that_are_too_much(words):
    told = words(push_limit={"force": 0.0, "speed": 0.0})
    assert told == "Not tuned, tried on 'arm'. There it withstands no random pushes."


@pytest.mark.parametrize(
    "tuned",
    [
        {"reuse": 5, "push_limit": "many", "disturbance": [], "body": None},
        {"reuse": {"carried": "all", "fell": None}, "push_limit": {"force": 9.0}},
        {"reuse": {"carried": [3], "fell": [math.inf]}, "disturbance": {"pushes": "strong"}},
    ],
)
def test_what_makes_no_sense_is_passed_over(words, tuned):
    assert words(**tuned) == "Not tuned, tried on 'arm'."

# SPDX-License-Identifier: GPL-3.0-or-later
"""The contact plan: what it marks, how it is changed, what it refuses."""

import json

import numpy as np
import pytest

from poise.controller.contacts.contact_finding import airborne, find_plan
from poise.controller.contacts.contact_plan import FEET, POINTS, ContactPlan
from poise.controller.exceptions import PlanError, PoiseError

LEFT = {"heel": [[0.1, 0.4]], "ball": [[0.15, 0.6]], "tip": [[0.3, 0.7]]}
DATA = {
    "version": 1,
    "fps": 60,
    "feet": {"left": LEFT, "right": {"heel": [], "ball": [[0.0, 0.2], [0.65, 1.0]], "tip": []}},
}


@pytest.fixture
def plan():
    return ContactPlan.from_dict(DATA)


def _changed(**more):
    return json.loads(json.dumps(DATA)) | more


def _with_left(**points):
    return _changed(feet={"left": LEFT | points, "right": {}})


def test_form_is_kept(plan, tmp_path):
    assert plan.as_dict() == DATA
    plan.save(tmp_path / "plan.json")
    assert json.loads((tmp_path / "plan.json").read_text()) == DATA
    assert ContactPlan.load(tmp_path / "plan.json") == plan
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


def test_marks_are_those_samples_whose_time_is_inside(plan):
    marks = plan.marks(60, 60.0)
    assert marks.shape == (60, len(FEET), len(POINTS))
    assert np.flatnonzero(marks[:, 0, 0]).tolist() == list(range(6, 24))
    assert np.array_equal(plan.contacts(60, 60.0), marks.any(2))
    finer = plan.marks(300, 300.0)
    assert np.flatnonzero(finer[:, 0, 0])[[0, -1]].tolist() == [30, 119]
    assert plan.marks(10, 60.0).shape == (10, 2, 3)


@pytest.mark.parametrize("rate", [24.0, 29.97, 30.0, 60.0, 119.88, 120.0])
def test_marks_survive_the_file(rate):
    marks = np.random.default_rng(3).random((200, 2, 3)) < 0.5
    marks = np.repeat(marks, 12, axis=0)
    marks[:, :, 1] = True
    plan = ContactPlan.from_marks(marks, rate)
    again = ContactPlan.from_dict(json.loads(json.dumps(plan.as_dict())))
    assert np.array_equal(again.marks(len(marks), rate), marks)


def test_spans_are_grown_shrunk_added_and_deleted(plan):
    grown = plan.grown("left", "heel", 0, start=0.05, end=0.5)
    assert grown.feet["left"]["heel"] == ((0.05, 0.5),)
    assert grown.grown("left", "heel", 0, start=0.1, end=0.4) == plan
    added = plan.added("right", "tip", 0.7, 0.9)
    assert added.span_at("right", "tip", 0.8) == 0 and added.span_at("right", "tip", 0.9) is None
    assert added.deleted("right", "tip", 0) == plan
    assert plan.feet["left"]["heel"] == ((0.1, 0.4),), "the plan itself never changes"


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ([], "is not an object"),
        (_changed(version=2), "is not of version 1"),
        (_changed(version=True), "is not of version 1"),
        (_changed(fps=None), "gives 'fps' as None"),
        (_changed(fps="60"), "gives 'fps' as '60': it must be a number"),
        (_changed(fps=0), "gives 0 frames a second"),
        (_changed(pins=[1]), "has pins"),
        (_changed(floor=0.1, pins=[]), None),
        (_changed(toes=[]), "has 'toes', which no plan has"),
        (_changed(feet={"middle": {}}), "names 'middle' in 'feet': known are left, right"),
        (_changed(feet={"left": {"sole": []}, "right": {}}), "names 'sole' in the left foot"),
        (_changed(feet={"left": {}}), "has no 'right' in 'feet': give that foot {} if it never"),
        (_changed(feet=[]), "has no spans for each of left, right"),
        (_with_left(heel="0.1"), "has no list of spans for the heel of the left foot"),
        (_with_left(heel=[[0.1]]), "that is not a start and an end"),
        (_with_left(heel=[["a", 0.3]]), "gives a time of the heel of the left foot as 'a'"),
        (_with_left(heel=[[float("inf"), 0.3]]), "it must be a finite number"),
        (_with_left(heel=[[0.4, 0.1]]), "that ends at 0.1 s, not after its start at 0.4 s"),
        (_with_left(heel=[[0.1, 0.3], [0.2, 0.4]]), "that overlap from 0.2 to 0.3 s"),
        (_with_left(ball=[[0.73, 0.9]], tip=[]), None),
        (_with_left(ball=[[0.43, 0.9]], tip=[]), "no point of the left foot from 0.400 to 0.430"),
    ],
)
def test_refuses_what_is_no_plan(data, sentence):
    if sentence is None:
        ContactPlan.from_dict(data)
        return
    with pytest.raises(PlanError) as caught:
        ContactPlan.from_dict(data)
    assert sentence in str(caught.value) and str(caught.value).endswith(".")
    assert isinstance(caught.value, PoiseError)


def test_refuses_files_that_hold_no_plan(tmp_path):
    path = tmp_path / "plan.json"
    for content, sentence in (
        (b"{", "is not JSON"),
        (b"\xff\xfe\x00", "is not text in UTF-8"),
        (b'{"version": 1, "fps": NaN, "feet": {"left": {}, "right": {}}}', "gives 'fps' as nan"),
        (b" " * 1_100_000, "is larger than 1 MB"),
    ):
        path.write_bytes(content)
        with pytest.raises(PlanError, match=sentence) as caught:
            ContactPlan.load(path)
        assert str(path) in str(caught.value)
    with pytest.raises(PlanError, match="cannot be read"):
        ContactPlan.load(tmp_path / "none.json")
    with pytest.raises(PlanError, match="cannot be written"):
        ContactPlan(60, {}).save(tmp_path / "none" / "plan.json")


def test_refuses_a_clip_that_it_does_not_fit(plan):
    plan.check(60, 60.0)
    with pytest.raises(PlanError, match=r"but the clip lasts from 0 to 0\.833 s"):
        plan.check(50, 60.0)
    airborne = np.zeros(60, bool)
    airborne[43:57] = True  # the tip is let go at sample 42, the other foot stands from 39 on
    with pytest.raises(PlanError, match="the right foot stand while the body is in the air"):
        plan.check(60, 60.0, airborne)
    plan.deleted("right", "ball", 1).check(60, 60.0, airborne)
    speeds = np.zeros((60, 2))
    at = int(plan.feet["left"]["ball"][0][0] * 60) + 1
    speeds[at : at + 3, 0] = 3.0
    plan.check(60, 60.0, speeds=speeds)  # a moment's noise
    speeds[at : at + 9, 0] = 3.0
    with pytest.raises(PlanError, match=r"left foot stand from .* on its way at up to 3\.0 m/s"):
        plan.check(60, 60.0, speeds=speeds)


@pytest.mark.parametrize("rate", [12.0, 24.0, 30.0, 60.0, 120.0, 300.0])
def test_whatever_feet_do_the_proposal_is_a_plan(rate):
    """Feet that wander about without sense, close to the floor: each proposal passes all checks."""
    for seed in range(12):
        random = np.random.default_rng(seed)
        count = round(4 * rate)
        knots = random.normal(size=(40, 2, 3, 3)) * [0.05, 0.05, 0.02]
        time = np.linspace(0, 39, count)
        low = time.astype(int).clip(0, 38)
        share = (time - low)[:, None, None, None]
        points = (1 - share) * knots[low] + share * knots[low + 1]
        com = points.mean((1, 2)) + [0, 0, 1]
        plan = find_plan(points, com, rate)
        plan.check(count, rate, airborne(com, rate))
        again = ContactPlan.from_dict(json.loads(json.dumps(plan.as_dict())))
        assert np.array_equal(again.marks(count, rate), plan.marks(count, rate))

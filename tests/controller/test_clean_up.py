# SPDX-License-Identifier: GPL-3.0-or-later
"""Feet and weight cleaned up without simulation: exactness, slopes, and what feet do then."""

import dataclasses

import numpy as np
import pytest

from poise.controller import Motion
from poise.controller.clean_up.clean_problem import Facts, Problem
from poise.controller.clean_up.clean_up import CleanUpOptions, clean_up, propose, update
from poise.controller.clean_up.leg_chain import COLUMNS, UNKNOWNS, Body, exponential_and_jacobian
from poise.controller.contacts.contact_plan import ContactPlan
from poise.controller.exceptions import MotionError, PlanError, RigError, SettingsError
from poise.controller.geometry.rotations import (
    matrix_from_quaternion,
    quaternion_from_matrix,
    rotation_about,
)
from poise.controller.geometry.skeleton import LANDMARK_INDEX, SEGMENT_INDEX, SIDES


def _stepping(time):
    """Steps on the spot: one leg after the other is lifted, knees and ankles bent."""
    phase = 2 * np.pi * time / 1.2
    zero = np.zeros_like(time)
    turns = {}
    for side, lift in (("l", np.sin(phase)), ("r", -np.sin(phase))):
        lift = np.maximum(lift, 0) ** 2
        turns[f"thigh_{side}"] = np.stack([zero, -0.7 * lift, zero], 1)
        turns[f"shin_{side}"] = np.stack([zero, 1.2 * lift, zero], 1)
        turns[f"foot_{side}"] = np.stack([zero, -0.3 * lift, zero], 1)
    return turns


def _skating(motion, metres=0.06, seconds=1.2):
    """The motion on a carpet that is pulled to and fro, so that its feet slide while they stand."""
    time = np.arange(len(motion)) / motion.rate
    way = metres * np.sin(2 * np.pi * time / seconds)
    shift = np.stack([way, 0.5 * way, 0 * way], 1)
    return dataclasses.replace(motion, positions=motion.positions + shift[:, None])


@pytest.fixture
def stepping(make_motion):
    return make_motion(seconds=3.0, sway=_stepping)


@pytest.fixture
def skating(stepping):
    return _skating(stepping)


def _toes(motion):
    """Axes of toe bones that hang on the feet as they are."""
    rows = {s: SEGMENT_INDEX[f"foot_{s}"] for s in SIDES}
    return {s: matrix_from_quaternion(motion.rotations[:, row]) for s, row in rows.items()}


def _speeds(cleaned):
    """(F - 1, 2, 3) speed in plan of each point of a sole, and where it is marked throughout."""
    pose = cleaned.body.pose(cleaned.corrections, slopes=False)
    points = np.stack([pose.points[s] for s in SIDES], 1)
    marks = cleaned.plan.marks(len(cleaned.body), cleaned.body.rate)
    speed = np.linalg.norm(np.diff(points[..., :2], axis=0), axis=-1) * cleaned.body.rate
    return speed, marks[1:] & marks[:-1]


def test_left_jacobian_is_that_of_the_exponential():
    random = np.random.default_rng(0)
    for size in (1e-6, 0.3, 2.5):
        vector = random.normal(size=3) * size
        rotation, jacobian = exponential_and_jacobian(vector)
        assert np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-12)
        for axis in range(3):
            step = 1e-6 * np.eye(3)[axis]
            more, less = (exponential_and_jacobian(vector + s)[0] for s in (step, -step))
            turn = (more - less) / 2e-6 @ rotation.T
            seen = np.array([turn[2, 1], turn[0, 2], turn[1, 0]])
            assert np.allclose(seen, jacobian[:, axis], atol=1e-8)


@pytest.mark.parametrize("toes", [True, False])
def test_slopes_of_all_terms_are_those_of_finite_differences(skating, toes):
    body = Body.from_motion(skating, _toes(skating) if toes else None)
    part = slice(20, 50)
    plan = propose(body)
    facts = Facts.of(body, plan.marks(len(body), body.rate)).part(part)
    # The feet sink, so that no term is silent, and the weight is far off.
    facts = dataclasses.replace(facts, zmp=facts.zmp + [0.3, 0.1])
    problem = Problem(facts, balance=0.05)
    random = np.random.default_rng(1)
    at = random.normal(size=(30, UNKNOWNS)) * 0.05
    at[:, 2] -= 0.1
    support = problem.support(facts.body.pose(at))
    rows = {r.name: r for r in problem.rows(at, support=support)}
    assert set(rows) >= {"place", "spot", "contact", "height", "soles", "balance"}
    all_rows = list(problem.rows(at, support=support))
    way = random.normal(size=at.shape)
    step = 1e-6
    more, less = (
        list(problem.rows(at + sign * step * way, slopes=False, support=support))
        for sign in (1, -1)
    )
    for row, high, low in zip(all_rows, more, less, strict=True):
        seen = (high.residual - low.residual) / (2 * step)
        count = len(row.residual)
        told = sum(
            np.einsum("tmn,tn->tm", slope, way[k : k + count][:, row.columns])
            for k, slope in enumerate(row.slopes)
        )
        counts = row.weight > 0
        assert np.abs(told[counts]).max() > 0.01, row.name
        assert np.allclose(seen[counts], told[counts], rtol=1e-4, atol=1e-5), row.name


def test_normal_equations_hold_the_gradient_of_the_cost(skating):
    body = Body.from_motion(skating, _toes(skating))
    plan = propose(body)
    problem = Problem(Facts.of(body, plan.marks(len(body), body.rate)))
    random = np.random.default_rng(2)
    at, way = (random.normal(size=(len(body), UNKNOWNS)) * size for size in (0.01, 1.0))
    _, right, cost = problem.normal_equations(at)
    assert cost == pytest.approx(problem.cost(at))
    step = 1e-7
    slope = (problem.cost(at + step * way) - problem.cost(at - step * way)) / (2 * step)
    assert slope == pytest.approx(-2 * (right * way).sum(), rel=1e-4)


def test_a_clean_motion_stays(swinging):
    """Feet that stand still, weight that is over them: there is nothing to correct."""
    body = Body.from_motion(swinging, _toes(swinging))
    cleaned = clean_up(body, propose(body), CleanUpOptions(balance="strong"))
    assert np.abs(cleaned.corrections).max() < 1e-9
    again = cleaned.motion(swinging)
    assert np.allclose(again.positions, swinging.positions, atol=1e-9)
    assert np.allclose(again.rotations, swinging.rotations, atol=1e-9)


@pytest.mark.parametrize("toes", [True, False])
def test_marked_points_stand_still_and_the_rest_stays(skating, toes):
    body = Body.from_motion(skating, _toes(skating) if toes else None)
    plan = propose(body)
    before, after = clean_up(body, plan).slip()
    assert before > 0.1 and after < 0.02 * before
    cleaned = clean_up(body, plan)
    speed, marked = _speeds(cleaned)
    assert speed[marked].max() < 0.05
    motion = cleaned.motion(skating)
    off = np.linalg.norm(motion.positions - skating.positions, axis=-1)
    assert np.median(off[:, LANDMARK_INDEX["head_top"]]) < 0.03
    assert off[:, LANDMARK_INDEX["ankle_l"]].max() < 0.15


def test_bones_keep_their_lengths_and_hang_together(skating):
    body = Body.from_motion(skating, _toes(skating))
    cleaned = clean_up(body, propose(body))
    motion = cleaned.motion(skating)
    for side in SIDES:
        for start, end in (("hip", "knee"), ("knee", "ankle"), ("ankle", "ball"), ("ball", "toe")):
            rows = [LANDMARK_INDEX[f"{name}_{side}"] for name in (start, end)]
            lengths = [
                np.linalg.norm(np.diff(m.positions[:, rows], axis=1), axis=-1)
                for m in (skating, motion)
            ]
            assert np.allclose(*lengths, atol=1e-9), (start, end)
    assert isinstance(motion, Motion)
    pelvis = LANDMARK_INDEX["pelvis"]
    moved = motion.positions[:, pelvis] - skating.positions[:, pelvis]
    assert np.allclose(moved, cleaned.displacement(), atol=1e-12)
    assert np.allclose(np.linalg.norm(cleaned.rotation_deltas(), axis=-1), 1)


def test_feet_in_the_air_stay_over_the_floor(stepping):
    body = Body.from_motion(stepping, _toes(stepping))
    plan = propose(body)
    facts = Facts.of(body, plan.marks(len(body), body.rate))
    cleaned = clean_up(body, plan)
    pose = body.pose(cleaned.corrections, slopes=False)
    points = np.stack([pose.points[s] for s in SIDES], 1)
    assert (points[..., 2] - facts.ground).min() > -0.005
    gone = np.abs(points[..., 2] - facts.heights)[facts.grip == 1]
    assert gone.max() < 0.005


def test_balance_brings_the_zero_moment_point_over_the_feet(make_motion):
    """Hips that sway too far to the side for a body that stands on one foot's width."""

    def sway(time):
        lean = 0.22 * np.sin(2 * np.pi * 0.8 * time)
        zero = np.zeros_like(time)
        return {"trunk": np.stack([2.5 * lean, zero, zero], 1)}

    motion = make_motion(seconds=4.0, sway=sway)
    body = Body.from_motion(motion, _toes(motion))
    plan = propose(body)
    outside = {}
    for balance in ("off", "light", "strong"):
        cleaned = clean_up(body, plan, CleanUpOptions(balance=balance))
        problem = Problem(Facts.of(body, plan.marks(len(body), body.rate)), balance=0.02)
        rows = {r.name: r for r in problem.rows(cleaned.corrections, slopes=False)}
        outside[balance] = float(rows["balance"].residual.mean())
    assert outside["off"] > 0.01
    assert outside["strong"] < 0.8 * outside["off"]
    assert outside["strong"] < outside["light"] < outside["off"]


def test_less_smoothness_lets_corrections_change_faster(skating):
    body = Body.from_motion(skating, _toes(skating))
    plan = propose(body)
    bent = [
        np.abs(np.diff(clean_up(body, plan, CleanUpOptions(smoothness=s)).corrections, 2, 0)).mean()
        for s in (2.0, 0.5)
    ]
    assert bent[1] > 1.1 * bent[0]


def test_a_body_that_no_foot_carries_is_told(stepping):
    body = Body.from_motion(stepping, _toes(stepping))
    plan = propose(body)
    assert clean_up(body, plan).uncarried() == []
    away = plan.marks(len(body), body.rate)
    away[20:40] = False
    away[60:64] = False  # no longer than a moment
    found = clean_up(body, ContactPlan.from_marks(away, body.rate)).uncarried()
    assert found == [(body.frame(20), body.frame(39))]


@pytest.mark.parametrize("samples", [2, 3, 4, 7])
def test_clips_of_a_few_samples(stepping, samples):
    part = slice(30, 30 + samples)
    motion = dataclasses.replace(
        stepping, positions=stepping.positions[part], rotations=stepping.rotations[part]
    )
    body = Body.from_motion(motion, _toes(motion))
    cleaned = clean_up(body, propose(body))
    assert cleaned.corrections.shape == (samples, UNKNOWNS)
    assert np.isfinite(cleaned.corrections).all()


def test_the_same_again_to_the_bit(skating):
    body = Body.from_motion(skating, _toes(skating))
    first, second = (clean_up(body, propose(body)).corrections for _ in range(2))
    assert np.array_equal(first, second)


@pytest.mark.parametrize(("balance", "off"), [("off", 5e-4), ("light", 2e-3)])
def test_an_edited_span_is_solved_anew_around_it_alone(make_motion, balance, off):
    """As the whole solve: with balance there are several answers that are next to as good."""
    motion = _skating(make_motion(seconds=8.0, sway=_stepping), metres=0.03)
    body = Body.from_motion(motion, _toes(motion))
    plan = propose(body)
    options = CleanUpOptions(balance=balance)
    cleaned = clean_up(body, plan, options)
    # The span of the left heel in mid-clip: its end goes 0.08 s earlier.
    spans = plan.feet["left"]["heel"]
    index = next(i for i, (start, _) in enumerate(spans) if start > 3)
    edited = plan.grown("left", "heel", index, end=spans[index][1] - 0.08)
    part, whole = update(cleaned, edited), clean_up(body, edited, options)
    poses = [body.pose(one.corrections, slopes=False) for one in (cleaned, part, whole)]
    joints = [np.stack([p.joints[s] for s in SIDES], 1) for p in poses]
    moved = np.linalg.norm(joints[1] - joints[0], axis=-1)
    assert moved.max() > 1e-4, "the edit does something"
    assert np.linalg.norm(joints[1] - joints[2], axis=-1).max() < off
    untouched = np.flatnonzero((moved > 0).any((1, 2)))
    assert untouched[0] > 0.5 * body.rate and untouched[-1] < len(body) - 0.5 * body.rate
    same = update(cleaned, plan)
    assert np.array_equal(same.corrections, cleaned.corrections) and same.iterations == 0


def test_the_proposed_plan_is_that_of_the_steps(stepping):
    body = Body.from_motion(stepping, _toes(stepping))
    contacts = propose(body).contacts(len(body), body.rate)
    time = np.arange(len(body)) / body.rate
    for foot, lift in enumerate((np.sin(2 * np.pi * time / 1.2), -np.sin(2 * np.pi * time / 1.2))):
        assert not contacts[lift > 0.8, foot].any()
        assert contacts[lift < 0.0, foot].all()


def test_refuses_what_cannot_be_cleaned(stepping):
    body = Body.from_motion(stepping)
    with pytest.raises(PlanError, match="the clip lasts from"):
        clean_up(body, ContactPlan(60, {"left": {"ball": [[1, 99]]}}))
    with pytest.raises(SettingsError, match="There is no balance 'some'"):
        clean_up(body, propose(body), CleanUpOptions(balance="some"))
    with pytest.raises(SettingsError, match="A smoothness of nan is out of range"):
        clean_up(body, propose(body), CleanUpOptions(smoothness=float("nan")))
    time = np.arange(len(stepping)) / stepping.rate
    way = np.stack([3 * time, 0 * time, 0 * time], 1)
    sliding = dataclasses.replace(stepping, positions=stepping.positions[:1] + way[:, None])
    with pytest.raises(MotionError, match="No foot of 'person' ever stands"):
        propose(Body.from_motion(sliding))


def test_a_body_that_floats_or_flies_has_no_contacts(stepping):
    """Its feet are where they are: that is no floor."""
    time = np.arange(len(stepping)) / stepping.rate

    def raised(height):
        up = np.stack([0 * time, 0 * time, height], 1)
        return dataclasses.replace(stepping, positions=stepping.positions + up[:, None])

    drifting, leaping = raised(2 + 0.6 * np.sin(2 * time)), raised(2 - 9.81 / 2 * (time - 0.2) ** 2)
    few = slice(round(0.3 * stepping.rate))
    leaping = dataclasses.replace(
        leaping, positions=leaping.positions[few], rotations=leaping.rotations[few]
    )
    for motion in (drifting, leaping):
        with pytest.raises(MotionError, match="No foot of 'person' stands anywhere from frame 1"):
            propose(Body.from_motion(motion))
    on_a_floor_of_its_own = Body.from_motion(raised(1.0 + 0 * time))
    assert propose(on_a_floor_of_its_own) == propose(Body.from_motion(stepping))


def test_a_foot_may_not_stand_far_above_the_floor(stepping):
    time = np.arange(len(stepping)) / stepping.rate
    up = 0.5 * np.clip((time - 1) / 0.5, 0, 1)
    positions = stepping.positions + np.stack([0 * up, 0 * up, up], 1)[:, None]
    body = Body.from_motion(dataclasses.replace(stepping, positions=positions))
    plan = propose(body).added("right", "tip", 2.0, 2.3)
    with pytest.raises(PlanError, match="cm above any floor: shorten or delete that span"):
        clean_up(body, plan)


def test_a_foot_may_not_stand_in_a_flight(stepping):
    time = np.arange(len(stepping)) / stepping.rate
    up = np.where((time > 1) & (time < 1.6), 9.81 / 2 * (time - 1) * (1.6 - time), 0)
    positions = stepping.positions + np.stack([0 * up, 0 * up, up], 1)[:, None]
    body = Body.from_motion(dataclasses.replace(stepping, positions=positions))
    clean_up(body, propose(body))
    with pytest.raises(PlanError, match="the right foot stand while the body is in the air"):
        clean_up(body, propose(body).added("right", "tip", 1.1, 1.5))


def test_refuses_feet_that_no_leg_stands_on(stepping):
    for landmark, offset, sentence in (
        ("ball", [-0.3, 0, 0], "left toes of 'person' point backward"),
        ("ball", [0, 0, 0.2], "left toes of 'person' lie 16 cm above its ankle"),
    ):
        positions = stepping.positions.copy()
        positions[:, LANDMARK_INDEX[f"{landmark}_l"]] += offset
        with pytest.raises(RigError, match=sentence):
            Body.from_motion(dataclasses.replace(stepping, positions=positions))


def test_giants_are_cleaned_as_people_are(make_motion):
    """Knees that go a little beyond straight are no toes that point backward."""

    def sway(time):
        turns, zero = _stepping(time), np.zeros_like(time)
        for side in SIDES:
            turns[f"shin_{side}"] = np.stack([zero, zero - 0.12, zero], 1)
        return turns

    motion = make_motion(seconds=3.0, sway=sway)
    for size in (1, 2, 4):
        grown = dataclasses.replace(motion, positions=size * motion.positions)
        body = Body.from_motion(grown)
        assert body.size == pytest.approx(max(1, 1.75 * size / 2.1), rel=0.1)
        assert clean_up(body, propose(body)).slip()[1] < 0.02 * size


def test_which_way_up_a_body_is_says_nothing_of_its_toes(stepping):
    """On its hands and knees the toes are behind everything, on its back they are above."""
    for angle in (np.pi / 2, -np.pi / 2):
        lying = rotation_about(1, angle)
        frames = lying @ matrix_from_quaternion(stepping.rotations)
        motion = dataclasses.replace(
            stepping,
            positions=stepping.positions @ lying.T,
            rotations=quaternion_from_matrix(frames),
        )
        assert len(Body.from_motion(motion)) == len(motion)


def test_toes_that_wiggle_do_not_tip_the_feet(stepping):
    """They turn about their own hinge, which need not lie across the foot, and lie flat again."""
    hinge = np.array([0.4, 0.9, 0.0])
    hinge /= np.linalg.norm(hinge)
    angle = np.radians(15) * (1 + np.sin(18 * np.arange(len(stepping)) / stepping.rate))
    wiggle = exponential_and_jacobian(angle[:, None] * hinge)[0]
    body = Body.from_motion(stepping, {s: foot @ wiggle for s, foot in _toes(stepping).items()})
    for leg in body.legs.values():
        assert leg.toe == pytest.approx(hinge, abs=1e-6)
    cleaned = clean_up(body, propose(body))
    pose = body.pose(cleaned.corrections, slopes=False)
    marks = cleaned.plan.marks(len(body), body.rate)
    for foot, side in enumerate(SIDES):
        ups = pose.turns[side][marks[:, foot].any(1), 2, 2, 2]
        assert np.degrees(np.arccos(np.clip(ups, -1, 1))).max() < 3.5


def test_points_move_with_no_correction_of_the_other_leg(stepping):
    body = Body.from_motion(stepping, _toes(stepping))
    at = np.zeros((len(body), UNKNOWNS))
    still = body.pose(at, slopes=False)
    at[:, COLUMNS["l"][6:]] = 0.1
    moved = body.pose(at, slopes=False)
    assert np.array_equal(still.points["r"], moved.points["r"])
    assert np.abs(still.points["l"] - moved.points["l"]).max() > 0.01

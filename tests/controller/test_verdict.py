# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict: each measure against what it must be, and what becomes of odd input."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from poise.controller.checks.verdict import (
    MEASURES,
    Body,
    contact_speed,
    jerk,
    judge,
    judge_motions,
)
from poise.controller.geometry.rotations import exponential, matrix_from_quaternion, multiply
from poise.controller.geometry.skeleton import LANDMARK_INDEX, OPTIONAL_LANDMARKS, SEGMENTS
from poise.controller.reference.performed import performed_motion

RATE = 120.0


@pytest.fixture
def person(make_motion):
    """The Body of somebody who stands still for two seconds."""
    return Body.of(make_motion(rate=RATE))


def times(body):
    """(n,) [s]."""
    return np.arange(len(body)) / RATE


def moved(body, offsets):
    """A body moved by offsets (3,) or (n, 3) [m]."""
    return Body(body.points + np.reshape(offsets, (-1, 1, 3)), body.feet)


def turned(body, foot, vector, degrees):
    """A body one of whose feet is turned, the bone alone."""
    feet = body.feet.copy()
    turn = matrix_from_quaternion(exponential(np.radians(degrees) * np.array(vector, float)))
    feet[:, foot] = turn @ feet[:, foot]
    return Body(body.points, feet)


def measured(source, result, **options):
    """{measure: Judged}."""
    return {judged.name: judged for judged in judge(source, result, RATE, **options).judged}


def missed(source, result, **options):
    """What the result is not kept for."""
    return judge(source, result, RATE, **options).not_kept_for


# --- Contact -------------------------------------------------------------------------------------


def rim(radius, speed, spin):
    """(n, 360, 3) points on a wheel that moves and spins in the x-z plane."""
    time = np.arange(121) / RATE
    angles = np.radians(np.arange(360)) + spin * time[:, None]
    x = speed * time[:, None] + radius * np.sin(angles)
    return np.stack([x, np.zeros_like(x), radius + radius * np.cos(angles)], -1)


def test_a_rolling_wheel_does_not_slip():
    speeds, lows = contact_speed(rim(0.3, 1.2, 1.2 / 0.3), RATE)
    assert speeds[1:-1].max() < 0.003
    assert np.abs(lows).max() < 1e-3


def test_a_wheel_that_spins_in_place_or_locks_slips():
    # At the edge of what touches, 2 cm up, the rim goes sideways by cos(angle) of its speed.
    spinning, _ = contact_speed(rim(0.3, 0.0, 4.0), RATE)
    assert spinning[1:-1] == pytest.approx(1.2 * (1 - 0.02 / 0.3), abs=0.01)
    locked, _ = contact_speed(rim(0.3, 1.2, 0.0), RATE)
    assert locked == pytest.approx(1.2)


def test_feet_on_ice_slip_at_their_speed(person):
    time = times(person)
    offsets = np.stack([0.06 * time, 0.08 * time, 0 * time], 1)
    found = measured(person, moved(person, offsets))
    assert found["slip"].before == pytest.approx(0.0, abs=1e-9)
    assert found["slip"].after == pytest.approx(0.1)
    assert found["speed"].after == pytest.approx(0.1, rel=0.05)  # it begins with the window
    assert found["place"].after == pytest.approx(0.2)
    assert found["place"].worst[0].sample == len(person) - 1
    assert {foot.foot for foot in found["slip"].worst} == {0, 1}
    assert not found["slip"].passes and found["speed"].passes


def test_a_foot_that_rolls_over_its_toes_does_not_slip(person):
    # The toes reach 7 cm beyond the ball; the heel rises about their end by 50 degrees.
    time = times(person)
    pitch = np.radians(50) * np.sin(np.pi * time / time[-1]) ** 2
    turns = matrix_from_quaternion(exponential(pitch[:, None] * [0.0, 1.0, 0.0]))
    names = ("ankle_l", "ball_l", "toe_l")
    tip = person.points[0, LANDMARK_INDEX["ball_l"]] + [0.07, 0, -0.025]
    points, feet = person.points.copy(), person.feet.copy()
    for name in names:
        at = LANDMARK_INDEX[name]
        points[:, at] = tip + np.einsum("nij,nj->ni", turns, points[:, at] - tip)
    feet[:, 0] = turns @ feet[:, 0]
    assert measured(person, Body(points, feet))["slip"].after < 0.002


def test_feet_slip_only_where_the_source_stands(person):
    lifted = moved(person, [0.0, 0.0, 0.3])
    both = Body(np.concatenate([person.points, lifted.points]), np.tile(person.feet, (2, 1, 1, 1)))
    offsets = np.zeros((len(both), 3))
    offsets[len(person) :, 0] = np.arange(len(person)) / RATE  # only in the air
    found = measured(both, moved(both, offsets))
    assert found["slip"].after == pytest.approx(0.0, abs=0.01)


# --- Each measure --------------------------------------------------------------------------------


@pytest.mark.parametrize(("foot", "subject"), [(0, "left foot"), (1, "right foot")])
@pytest.mark.parametrize(("axis", "words"), [((0, 0, 1), "twists"), ((1, 0, 0), "tips")])
def test_a_foot_turned_by_20_degrees_measures_20(person, foot, subject, axis, words):
    both = turned(turned(person, 0, axis, 20), 1, axis, 20)
    found = measured(person, both)["foot_turn"]
    assert found.after == pytest.approx(20)
    assert not found.passes and len(found.worst) == 2
    verdict = judge(person, turned(person, foot, axis, 40), RATE, frame=lambda sample: sample + 7)
    (finding,) = verdict.findings
    assert finding.foot == foot and finding.frame == 7 + finding.sample
    assert finding.sentence == f"the {subject} {words} by 40° at frame {finding.frame}"


def test_pitch_of_a_foot_is_free(person):
    assert measured(person, turned(person, 0, (0, 1, 0), 30))["foot_turn"].after < 1e-6


def test_a_foot_in_the_air_may_turn(person):
    raised = person.points.copy()
    raised[:, [LANDMARK_INDEX[name] for name in ("ankle_l", "ball_l", "toe_l")], 2] += 0.05
    result = turned(Body(raised, person.feet), 0, (0, 0, 1), 60)
    assert measured(person, result)["foot_turn"].after == pytest.approx(0, abs=1e-6)


def test_a_turn_is_told_where_it_is_most(person):
    feet = person.feet.copy()
    angles = np.radians(30) * np.exp(-(((np.arange(len(person)) - 41) / 20.0) ** 2))
    turns = matrix_from_quaternion(exponential(angles[:, None] * [0.0, 0.0, 1.0]))
    feet[:, 0] = turns @ feet[:, 0]
    finding = measured(person, Body(person.points, feet))["foot_turn"].worst[0]
    assert (finding.sample, finding.foot) == (41, 0)


def test_a_shifted_motion_has_that_error_of_place_and_no_other(person):
    found = measured(person, moved(person, [0.12, -0.16, 0.0]))
    assert found["place"].after == pytest.approx(0.2)
    others = {judged.after for name, judged in found.items() if name != "place"}
    assert max(others) == pytest.approx(0, abs=1e-9)
    assert missed(person, moved(person, [0.12, -0.16, 0.0])) == ("place",)
    assert missed(person, moved(person, [0.08, -0.06, 0.0])) == ()


def test_a_body_that_grows_about_its_centre_of_mass_has_that_error_of_pose(person):
    away = person.points - person.com[:, None]
    grown = Body(person.com[:, None] + 1.1 * away, person.feet)
    assert np.allclose(grown.com, person.com)
    apart = np.linalg.norm(person.joints - person.com[:, None], axis=-1).mean()
    assert measured(person, grown)["pose"].after == pytest.approx(0.1 * apart)


def test_a_sinusoid_has_its_jerk(person):
    size, omega = 0.02, 2 * np.pi * 1.5
    shaken = moved(person, size * np.sin(omega * times(person))[:, None] * [0, 0, 1.0])
    found = measured(person, shaken)["jerk"]
    assert found.before == pytest.approx(0, abs=1e-6)
    assert found.after == pytest.approx(size * omega**3 * 2 / np.pi, rel=0.03)
    assert jerk(shaken.points[:, :2], RATE).shape == (len(person),)


def test_a_cubic_has_a_constant_jerk():
    time = np.arange(60) / RATE
    points = (time**3)[:, None, None] * np.array([1.0, 2.0, 2.0])
    assert jerk(points, RATE)[3:-3] == pytest.approx(18.0)


def test_shaking_counts_against_the_source(person):
    wave = np.sin(2 * np.pi * 4 * times(person))[:, None] * [0, 0, 1.0]
    source = moved(person, 0.003 * wave)
    assert "jerk" not in missed(source, moved(person, 0.0034 * wave))
    findings = judge(source, moved(person, 0.006 * wave), RATE).findings
    (shakes,) = [found for found in findings if found.measure == "jerk"]
    assert shakes.sentence.startswith("it shakes 1.7 × the limit at frame ")


def test_somebody_who_stands_still_may_sway_a_little(person):
    sway = 0.005 * np.sin(2 * np.pi * 0.5 * times(person))[:, None] * [1.0, 0, 0]
    assert missed(person, moved(person, sway)) == ()


def test_a_body_that_moves_on_while_its_source_rests(person):
    time, omega = times(person), 2 * np.pi
    found = measured(person, moved(person, 0.05 * np.sin(omega * time)[:, None] * [1.0, 0, 0]))
    assert found["rest"].after == pytest.approx(0.05 * omega * 2 / np.pi, rel=0.05)
    assert not found["rest"].passes
    walking = moved(person, np.stack([time, 0 * time, 0 * time], 1))
    assert measured(walking, walking)["rest"].after is None


def test_feet_in_the_floor(person):
    found = measured(person, moved(person, [0, 0, -0.05]))["floor"]
    assert (found.before, found.limit) == (0.0, pytest.approx(0.02))
    assert found.after == pytest.approx(0.05)
    assert found.worst[0].sentence == "the left foot sinks 0.05 m in at frame 0"


def test_a_body_that_hops_on_where_its_source_stops(person):
    """A metre on, to end with both feet in the air, and leaning."""
    late = np.clip(times(person) - 1, 0, 1)[:, None]
    hop = moved(person, late * [1.0, 0, 0.1])
    lean = matrix_from_quaternion(exponential(late * np.radians(22) * [0.0, 1.0, 0.0]))
    pelvis = hop.points[:, [LANDMARK_INDEX["pelvis"]]]
    feet = [at for name, at in LANDMARK_INDEX.items() if name[:-2] in ("knee", "ankle", "ball")]
    points = pelvis + np.einsum("nij,nkj->nki", lean, hop.points - pelvis)
    points[:, feet] = hop.points[:, feet]
    verdict = judge(person, Body(points, hop.feet), RATE)
    assert not verdict.keeper and {"place", "speed", "rest"} <= {*verdict.not_kept_for}
    (place,) = (finding for finding in verdict.findings if finding.measure == "place")
    assert place.sample == len(person) - 1


def test_both_feet_in_the_air_at_the_end(person):
    up = moved(person, np.where(times(person) > 1.7, 1.0, 0.0)[:, None] * [0, 0, 0.1])
    verdict = judge(person, up, RATE)
    (found,) = (one for one in verdict.findings if one.measure == "hanging")
    assert found.sample == len(person) - 3, "before feet come and go"
    assert found.sentence.startswith("both feet hang in the air for 0.2")
    assert "hanging" not in missed(up, up)


def test_a_foot_in_the_air_hangs_only_if_the_other_does(person):
    points = person.points.copy()
    left = [at for name, at in LANDMARK_INDEX.items() if name in ("ankle_l", "ball_l", "toe_l")]
    points[:, left, 2] += 0.1
    assert measured(person, Body(points, person.feet))["hanging"].after == 0.0


def test_a_lean_of_the_last_moment(person):
    """22° about the ankles within half a second of 20: nothing of it is left in the mean."""
    late = np.clip((times(person) - 1.5) / 0.5, 0, 1)[:, None]
    lean = matrix_from_quaternion(exponential(late * np.radians(22) * [1.0, 0.0, 0.0]))
    long = Body(np.tile(person.points, (10, 1, 1)), np.tile(person.feet, (10, 1, 1, 1)))
    points = long.points.copy()
    points[-len(person) :] = np.einsum("nij,nkj->nki", lean, person.points)
    found = measured(long, Body(points, long.feet))
    assert found["pose"].passes and found["place"].after > 0
    assert found["ending"].after > 0.08 and not found["ending"].passes
    assert "in its pose" in found["ending"].worst[0].sentence


def test_a_body_that_is_down(person):
    low = person.points.copy()
    low[100:, LANDMARK_INDEX["neck"], 2] *= 0.5
    (found, *_) = judge(person, Body(low, person.feet), RATE).findings
    assert (found.measure, found.sample) == ("stands", 100)
    assert "stands" in missed(person, person, reached=False)


# --- The whole -----------------------------------------------------------------------------------


def test_a_motion_is_a_keeper_of_itself(make_motion, arms_swing):
    motion = make_motion(sway=arms_swing)
    verdict = judge_motions(motion, motion)
    assert verdict.keeper and verdict.findings == () and verdict.not_kept_for == ()


def test_scene_axes_and_places_do_not_count(person):
    turn = matrix_from_quaternion(exponential(np.array([0, 0, 2.0])))
    result = turned(moved(person, [0.05, 0.1, 0.01]), 0, (1, 0, 0), 25)
    before = measured(person, result)
    there = [
        Body(body.points @ turn.T + [30.0, -4.0, 2.0], turn @ body.feet)
        for body in (person, result)
    ]
    after = measured(*there)
    for name in MEASURES:
        assert after[name].after == pytest.approx(before[name].after, abs=1e-6), name


def spun(body, angles):
    """A body turned about the vertical through the origin by angles (n,) [rad]."""
    turn = matrix_from_quaternion(exponential(np.outer(angles, [0.0, 0.0, 1.0])))[:, None]
    return Body((turn @ body.points[..., None])[..., 0], turn @ body.feet)


def test_where_a_led_body_is_and_heads_does_not_count(person):
    """It comes behind by metres and up to 60°; of what is left nothing is missed."""
    late = spun(person, np.radians(30) * (1 - np.cos(np.pi * times(person))))
    late = moved(late, np.outer(0.8 * times(person) ** 2, [1.0, 0.3, 0.0]))
    assert {"place", "speed", "foot_turn"} <= set(missed(person, late))
    found = measured(person, late, led=True)
    assert {"place", "speed"}.isdisjoint(found)
    assert found["pose"].after < 0.01


def test_feet_of_a_led_body_turn_since_they_came_down(person):
    """Those of the source turn with it as they stand; feet that stay are none the worse, and those
    that turn, are."""
    source = spun(person, np.radians(40) * times(person) / 2)
    stays = Body(source.points, person.feet)
    assert measured(source, stays, led=True)["foot_turn"].after < 0.1
    assert measured(source, stays)["foot_turn"].after > 30
    turns = measured(source, source, led=True)["foot_turn"]
    assert turns.after == pytest.approx(0.95 * 40, abs=3)
    assert "twists by" in turns.worst[0].sentence


def test_a_foot_of_a_led_body_that_tips_does(person):
    led = spun(person, np.full(len(person), 2.0))
    along = person.points[0, LANDMARK_INDEX["toe_l"]] - person.points[0, LANDMARK_INDEX["ankle_l"]]
    tipped = turned(person, 0, along * [1, 1, 0] / np.hypot(*along[:2]), 20)
    found = measured(person, spun(tipped, np.full(len(person), 2.0)), led=True)
    assert found["foot_turn"].after == pytest.approx(20, abs=0.5)
    assert measured(person, led, led=True)["foot_turn"].after < 0.1


def test_a_result_that_ends_earlier_is_judged_as_far_as_it_goes(person):
    short = moved(person, [0.3, 0, 0]).start(100)
    verdict = judge(person, short, RATE, reached=False)
    assert verdict.not_kept_for == ("stands", "place")
    assert all(found.sample < 100 for found in verdict.findings)
    assert verdict.findings[0].sample == 99


@pytest.mark.parametrize("absent", [("ball",), ("ball", "toe"), ("ball", "toe", "head", "finger")])
@pytest.mark.parametrize("count", [2, 3, 20, 241])
def test_reports_are_finite_whatever_a_rig_lacks_and_however_short_it_is(person, absent, count):
    lacking = person.points[:count].copy()
    for name in OPTIONAL_LANDMARKS:
        if name.startswith(absent):
            lacking[:, LANDMARK_INDEX[name]] = np.nan
    body = Body(lacking, person.feet[:count])
    for result in (body, moved(body, [1.0, 0, -0.5])):
        report = judge(body, result, RATE).as_dict()
        assert json.loads(json.dumps(report, allow_nan=False)) == report
        assert set(report["measures"]) == set(MEASURES)
    assert judge(body, body, RATE).keeper


def test_a_foot_without_toes_is_measured_by_its_end(person):
    points = person.points.copy()
    for side in "lr":
        points[:, LANDMARK_INDEX[f"toe_{side}"]] = points[:, LANDMARK_INDEX[f"ball_{side}"]]
        points[:, LANDMARK_INDEX[f"ball_{side}"]] = np.nan
    bare = Body(points, person.feet)
    result = turned(bare, 1, (1, 0, 0), 30)
    whole = measured(person, turned(person, 1, (1, 0, 0), 30))["foot_turn"].after
    assert measured(bare, result)["foot_turn"].after == pytest.approx(whole)


def test_nothing_is_measured_twice_or_left_out_of_the_report(person):
    verdict = judge(person, moved(person, [0.3, 0, 0]), RATE)
    report = verdict.as_dict()
    assert report["not_kept_for"] == ["place"] and report["keeper"] is False
    place = report["measures"]["place"]
    assert (place["unit"], place["limit"], place["passes"]) == ("m", 0.15, False)
    assert place["after"] == pytest.approx(0.3) and place["before"] is None
    assert [found["sentence"] for found in report["findings"]] == [
        found.sentence for found in verdict.findings
    ]


# --- Before it is baked --------------------------------------------------------------------------


def recording_of(motion, deltas, displacement, count=None):
    """A stand-in for a Recording."""

    class Stand(SimpleNamespace):
        def __len__(self):
            return count or len(motion)

    return Stand(
        motion=motion,
        hold=None,
        differences=lambda _stretched: (deltas[:count], displacement[:count]),
        simulated_legs=lambda: np.ones(count or len(motion)),
    )


def test_a_simulation_without_differences_is_its_animation(make_motion, arms_swing):
    motion = make_motion(sway=arms_swing)
    deltas = np.tile([1.0, 0, 0, 0], (len(motion), len(SEGMENTS), 1))
    same = performed_motion(recording_of(motion, deltas, np.zeros((len(motion), 3))))
    assert np.allclose(same.positions, motion.positions)
    assert np.allclose(same.rotations, motion.rotations)


def test_equal_differences_turn_the_body_as_one(make_motion, arms_swing):
    motion = make_motion(sway=arms_swing)
    turn = exponential(np.array([0.2, -0.4, 0.7]))
    deltas = np.tile(turn, (len(motion), len(SEGMENTS), 1))
    offset = np.array([0.3, 0.1, -0.2])
    recording = recording_of(motion, deltas, np.tile(offset, (len(motion), 1)), count=50)
    found = performed_motion(recording)
    assert len(found) == 50
    pelvis = motion.positions[:50, :1]
    expected = pelvis + offset + (motion.positions[:50] - pelvis) @ matrix_from_quaternion(turn).T
    assert np.allclose(found.positions, expected)
    assert np.allclose(found.rotations, multiply(turn, motion.rotations[:50]))


def test_differences_of_a_thigh_move_what_hangs_on_it(make_motion):
    motion = make_motion()
    deltas = np.tile([1.0, 0, 0, 0], (len(motion), len(SEGMENTS), 1))
    deltas[:, SEGMENTS.index("thigh_l")] = exponential(np.array([0, -0.5, 0]))
    found = performed_motion(recording_of(motion, deltas, np.zeros((len(motion), 3))))
    knee, ankle, ball, other = (
        LANDMARK_INDEX[name] for name in ("knee_l", "ankle_l", "ball_l", "knee_r")
    )
    away = found.positions - motion.positions
    assert np.linalg.norm(away[:, knee], axis=-1).min() > 0.1
    assert np.allclose(away[:, knee], away[:, ankle]) and np.allclose(away[:, knee], away[:, ball])
    assert not away[:, other].any()


def test_a_spine_of_two_bones_bends_by_half_at_the_first(make_motion):
    motion = make_motion()
    neck, lumbar = (motion.positions[:, LANDMARK_INDEX[name]] for name in ("neck", "lumbar"))
    heads = np.stack([lumbar, (lumbar + neck) / 2], 1)
    deltas = np.tile([1.0, 0, 0, 0], (len(motion), len(SEGMENTS), 1))
    for name in (
        "trunk",
        "head",
        *(f"{arm}_{s}" for arm in ("upper_arm", "forearm") for s in "lr"),
    ):
        deltas[:, SEGMENTS.index(name)] = exponential(np.array([0, np.radians(60), 0]))
    recording = recording_of(motion, deltas, np.zeros((len(motion), 3)))
    bent = performed_motion(recording, {"trunk": heads}).positions
    length = np.linalg.norm(neck - lumbar, axis=1)[0] / 2
    sine, cosine = (length * sum(f(np.radians([30, 60]))) for f in (np.sin, np.cos))
    assert np.allclose(bent[:, LANDMARK_INDEX["neck"]] - lumbar, [sine, 0, cosine])
    apart = motion.positions[:, LANDMARK_INDEX["shoulder_l"]] - neck
    turn = matrix_from_quaternion(deltas[0, SEGMENTS.index("trunk")])
    found = bent[:, LANDMARK_INDEX["shoulder_l"]] - bent[:, LANDMARK_INDEX["neck"]]
    assert np.allclose(found, apart @ turn.T)
    straight = performed_motion(recording, {"trunk": heads[:, :1]}).positions
    assert np.allclose(straight, performed_motion(recording).positions)


def test_toes_turn_by_themselves_where_there_are_any(make_motion):
    motion = make_motion()
    bare = motion.positions.copy()
    bare[:, LANDMARK_INDEX["ball_l"]] = np.nan
    deltas = np.tile([1.0, 0, 0, 0], (len(motion), len(SEGMENTS), 1))
    deltas[:, SEGMENTS.index("toe_l")] = exponential(np.array([0, -0.5, 0]))
    still = np.zeros((len(motion), 3))
    toe = LANDMARK_INDEX["toe_l"]
    for positions, moves in ((motion.positions, True), (bare, False)):
        animation = replace(motion, positions=positions)
        found = performed_motion(recording_of(animation, deltas, still))
        assert np.allclose(found.positions[:, toe], positions[:, toe]) != moves


def test_a_verdict_is_of_motions_by_their_own_frames(make_motion):
    motion = replace(make_motion(), first_frame=101.0, frame_step=2.0)
    moved_on = replace(motion, positions=motion.positions + [0.5, 0, 0])
    (found,) = judge_motions(motion, moved_on).findings
    assert found.frame == 101 + 2 * found.sample

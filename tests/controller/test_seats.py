# SPDX-License-Identifier: GPL-3.0-or-later
"""Who sits is carried by what is under pelvis and thighs, as mechanics has it."""

from dataclasses import replace

import numpy as np
import pytest

from poise.controller import Problem, Push, Scenario, Settings
from poise.controller.body.momentum import GRAVITY
from poise.controller.body.paths import Animated, Performed
from poise.controller.checks.clip_check import check
from poise.controller.checks.verdict import judge_motions
from poise.controller.clean_up.clean_up import CleanUpOptions, clean_up, propose
from poise.controller.clean_up.leg_chain import Body
from poise.controller.geometry.rotations import (
    exponential,
    matrix_from_quaternion,
    multiply,
    quaternion_from_matrix,
)
from poise.controller.geometry.skeleton import LANDMARK_INDEX, SEGMENT_INDEX
from poise.controller.support.seats import Seats, seats_of, sitting_body
from poise.controller.support.terrain import Terrain
from poise.experiments import sitting
from poise.experiments.sitting import CHAIR, HIPS, STOOL

SHORT = 1.5  # [s]


def found(motion, *colliders):
    """The Seats of a motion among colliders on a floor at 0."""
    return seats_of(Scenario(colliders=colliders), 0.0, motion)


def tipped(motion, angle):
    """A motion that lies back by an angle [rad] about its hips at first."""
    turn = exponential(np.array([[0.0, -angle, 0.0]]))
    about = motion.positions[0, LANDMARK_INDEX["hip_l"]]
    positions = (motion.positions - about) @ matrix_from_quaternion(turn)[0].T + about
    return replace(motion, positions=positions, rotations=multiply(turn[:, None], motion.rotations))


def test_who_sits_is_found_by_hips_that_rest():
    motion = sitting.sits(seconds=SHORT)
    seats = found(motion, sitting.plate(motion))
    assert seats.sits.all()
    assert seats.depth == pytest.approx(HIPS, abs=1e-3)
    assert 0 < seats.thickness < HIPS
    assert found(motion) is None, "nothing is under it"
    lower = sitting.plate(motion, CHAIR - 0.1)
    assert found(motion, lower) is None, "hips 18 cm above a chair are not on it"
    assert found(tipped(motion, 1.3), sitting.plate(motion)) is None, "who lies does not sit"
    floor = sitting.on_the_floor()
    assert found(floor).sits.all()


def test_it_sits_once_it_has_come_down_and_until_it_rises():
    down, up = sitting.sits_down(), sitting.gets_up()
    for motion, first, last in ((down, 1.3, 1.7), (up, 0.9, 1.5)):
        sits = found(motion, sitting.chair(motion)).sits
        (at,) = np.flatnonzero(np.diff(sits.astype(int)))
        assert first < at / motion.rate < last
    assert not found(down, sitting.chair(down)).sits[0]
    hips = down.positions[:, [LANDMARK_INDEX[f"hip_{side}"] for side in "lr"], 2].mean(1)
    sits = found(down, sitting.chair(down)).sits
    assert hips[sits].max() < CHAIR + HIPS + 0.04


@pytest.mark.parametrize("sinks", [0.02, 0.05])
def test_a_seat_may_give(sinks):
    """Hips that sank by 4 cm were no longer on it, and the body squatted before it."""
    rest, low = sitting._sits(), sitting._sits(CHAIR - sinks)
    motion = sitting.keyed("sinks", 4.0, (0, rest), (1, rest), (1.4, low), (3, low), (4, rest))
    assert found(motion, sitting.plate(motion)).sits.all()
    recording = sitting.performed(motion, (sitting.plate(motion),))
    assert recording.success and sitting.strayed(recording).max() < sinks + 0.005


@pytest.mark.parametrize("edge", [0.0, 0.01, 0.03])
def test_thighs_do_not_begin_in_the_edge_of_a_seat(edge):
    """They were looked at in eight places, and pushed feet aside in the first frames."""
    rest = sitting._sits()
    motion = sitting.keyed("rests", 1.0, (0, rest), (1, rest))
    seat = sitting.plate(motion)
    x, y, z = seat.positions
    recording = sitting.performed(motion, (replace(seat, positions=(x - edge, y, z)),))
    feet = recording.body_positions[:, [SEGMENT_INDEX["foot_l"], SEGMENT_INDEX["foot_r"]]]
    assert np.linalg.norm(feet - feet[0], axis=-1).max() < 0.005


def test_a_seat_takes_the_weight_gradually():
    shares = Seats(np.repeat([False, True, False], [10, 120, 10]), 0.08, 0.05).shares(60.0)
    assert not shares[:11].any() and not shares[129:].any()
    assert shares[22] == 1 and shares[93] == 1
    assert (np.diff(shares[10:22]) > 0).all() and (np.diff(shares[94:130]) < 0).all()
    throughout = Seats(np.ones(30, bool), 0.08, 0.05)
    assert (throughout.shares(60.0) == 1).all()


def test_of_rounds_it_sits_between_two_if_it_does_at_both_ends():
    rests = Seats(np.array([True, False, True]), 0.08, 0.05).looped(5, 12)
    assert rests.sits.tolist() == [True, False, True, True, True] * 2 + [True, False]
    rises = Seats(np.array([True, True, False]), 0.08, 0.05).looped(4, 8)
    assert rises.sits.tolist() == [True, True, False, False] * 2


def test_flesh_is_as_thick_as_the_animation_leaves_room():
    motion = sitting.sits(seconds=SHORT)
    problem = Problem(motion, scenario=Scenario(colliders=(sitting.plate(motion),)))
    seats = found(motion, sitting.plate(motion))
    body = sitting_body(problem.character, seats)
    assert body.mass == problem.character.mass
    shapes = {shape.segment: shape for shape in body.shapes}
    radius, _ = shapes["pelvis"].size
    hips = np.mean([j.offset for j in body.joints if j.name.startswith("hip")], axis=0)
    bottom = body.centres[0] + shapes["pelvis"].position - [0, 0, radius]
    assert hips[2] - bottom[2] == pytest.approx(seats.depth)
    assert shapes["thigh_l"].size[0] == pytest.approx(seats.thickness)


def test_seat_and_feet_carry_the_weight_and_the_body_stays():
    motion = sitting.sits(seconds=3.0)
    recording = sitting.performed(motion, (sitting.plate(motion),))
    assert recording.success
    assert sitting.strayed(recording).max() < 0.03
    weight = recording.character.mass * GRAVITY
    later = slice(60, None)
    seat = recording.presses[later, :, 2].sum(1)
    feet = recording.contact_forces[later, :, 2].sum(1)
    assert (seat + feet).mean() == pytest.approx(weight, rel=0.02)
    assert 0.01 < feet.mean() / weight < 0.4
    assert sitting.shifted(recording).max() < 0.01
    seated = [SEGMENT_INDEX[name] for name in ("pelvis", "thigh_l", "thigh_r")]
    assert not np.delete(recording.presses, seated, 1).any(), "and nothing else of it"


def test_who_sits_comes_to_the_same_every_time():
    motion = sitting.sits(seconds=SHORT)
    one, other = (sitting.performed(motion, (sitting.chair(motion),)) for _ in range(2))
    assert np.array_equal(one.body_positions, other.body_positions)


def test_a_state_that_is_restored_knows_the_seat():
    motion = sitting.sits(seconds=SHORT)
    scenario = Scenario(colliders=(sitting.plate(motion),))
    simulation = Problem(motion, settings=Settings(), scenario=scenario).simulation(None, 0)
    simulation.begin()
    for sample in range(1, 30):
        simulation.advance(sample)
    saved = simulation.settle(29)
    ends = []
    for _ in range(2):
        simulation.rewind(saved, 29)
        for sample in range(30, 45):
            simulation.advance(sample)
        ends.append((simulation.world.body_transforms()[0], simulation.world.pulls()))
    simulation.close()
    (one, pull), (other, again) = ends
    assert np.array_equal(one, other) and pull == again
    assert [one.top for one in pull] == ["pelvis"] and pull[0].force[2] > 300


@pytest.mark.slow(captured=False)
def test_feet_that_hang_from_a_stool_bear_nothing():
    motion = sitting.on_a_stool()
    recording = sitting.performed(motion, (sitting.plate(motion, STOOL),), floor=0.0)
    assert recording.filled and not recording.why()
    assert not recording.contacts.any()
    weight = recording.character.mass * GRAVITY
    assert recording.presses[60:, :, 2].sum(1).mean() == pytest.approx(weight, rel=0.02)
    assert sitting.strayed(recording).max() < 0.06
    assert recording.borne.all() and recording.hanging_feet.all()
    assert not Performed(recording).flights and not Animated(recording).flights


def test_feet_that_hang_while_something_carries_the_body_are_not_down():
    """However low: a result was told to slip where its feet dangled a metre above the floor."""
    motion = sitting.on_a_stool()
    time = np.arange(len(motion)) / motion.rate
    dangles = motion.positions.copy()
    for name in ("ankle", "ball", "toe"):
        for side in "lr":
            dangles[:, LANDMARK_INDEX[f"{name}_{side}"], 0] += 0.05 * np.sin(2 * np.pi * time)
    dangling = replace(motion, positions=dangles)
    hangs = np.ones((len(motion), 2), bool)
    told = {one.name: one for one in judge_motions(dangling, dangling).judged}
    spared = {one.name: one for one in judge_motions(dangling, dangling, hangs=hangs).judged}
    assert told["slip"].after > 0.05
    assert spared["slip"].after is None and spared["slip"].passes
    assert spared["foot_turn"].after is None and spared["floor"].after == 0
    only_left = hangs & [True, False]
    rest = {one.name: one for one in judge_motions(dangling, dangling, hangs=only_left).judged}
    assert rest["slip"].after == pytest.approx(told["slip"].after, rel=0.2), "the other foot counts"


@pytest.mark.slow(captured=False)
@pytest.mark.parametrize("made", [sitting.on_the_floor, sitting.on_a_couch])
def test_knees_may_be_above_hips(made):
    """Legs of who sits low used to be read as if knees bent backward."""
    motion = made()
    colliders = () if made is sitting.on_the_floor else (sitting.plate(motion, sitting.COUCH),)
    recording = sitting.performed(motion, colliders)
    assert recording.success and sitting.strayed(recording).max() < 0.06
    character, joints = recording.character, recording.joints()
    names = [name for name in character.dof_names if name.startswith("knee")]
    angles = recording.reference.angles[:, [character.dof_names.index(name) for name in names]]
    assert angles.min() > 1.0, "knees bend"
    hip, knee = (joints[:, SEGMENT_INDEX[name], 2] for name in ("thigh_l", "shin_l"))
    assert (knee > hip).all()


@pytest.mark.slow(captured=False)
def test_who_sits_in_what_drives_off_goes_with_it():
    motion = sitting.sits()
    motion, colliders = sitting.carried(motion, sitting.plate(motion))
    recording = sitting.performed(motion, colliders)
    assert recording.success and sitting.strayed(recording).max() < 0.03
    assert recording.com[-1, 0] - recording.com[0, 0] > 5.5


@pytest.mark.slow(captured=False)
@pytest.mark.parametrize("made", [sitting.sits_down, sitting.gets_up])
def test_who_comes_to_sit_and_gets_up_does_it_under_physics(made):
    motion = made(1.5)
    recording = sitting.performed(motion, (sitting.chair(motion),))
    assert recording.success
    away, feet = sitting.strayed(recording), sitting.shifted(recording)
    assert away.max() < 0.12 and away[-1] < 0.05 and feet.max() < 0.05
    seat = recording.presses[10:, :, 2].sum(1) / (recording.character.mass * GRAVITY)
    sits = recording.reference.seats.sits[10:]
    standing, sitting_ = seat[[0, -1]][~sits[[0, -1]]], seat[[0, -1]][sits[[0, -1]]]
    assert standing == 0, "who stands is borne by feet alone"
    assert 0.7 < sitting_ < 1.1


@pytest.mark.slow(captured=False)
def test_who_sits_bears_pushes_and_falls_off_by_stronger_ones():
    motion = sitting.sits()
    chair = (sitting.chair(motion),)
    light, hard = (Push(1.0, 0.2, (0.0, force, 0.0)) for force in (200.0, 900.0))
    stays = sitting.performed(motion, chair, "brace", pushes=(light,))
    assert stays.standing == len(stays) and sitting.strayed(stays)[-1] < 0.03
    falls = sitting.performed(motion, chair, "brace", pushes=(hard,))
    assert falls.standing < len(falls) == len(motion)
    assert falls.com[-1, 2] < stays.com[-1, 2] - 0.15
    assert falls.deepest < 0.02


@pytest.mark.slow(captured=False)
def test_who_faints_on_a_chair_does_not_sink_through_it():
    motion = sitting.sits()
    faints = {"tone": np.where(np.arange(len(motion)) < 60, 1.0, 0.0)}
    recording = sitting.performed(motion, (sitting.chair(motion),), "limp", strength=faints)
    assert recording.standing < len(recording)
    on = recording.body_positions[recording.standing :, 0]
    inside = np.abs(on[:, :2] - recording.body_positions[0, 0, :2]) < 0.1
    assert on[inside.all(1), 2].min() > CHAIR


@pytest.mark.slow(captured=False)
def test_who_has_fallen_off_a_chair_gets_up_to_stand_upright():
    """Not to sit in the air, as its clip does throughout."""
    motion = sitting.sits()
    longer = replace(
        motion,
        rotations=np.concatenate([motion.rotations] * 3),
        positions=np.concatenate([motion.positions] * 3),
    )
    scenario = Scenario(
        colliders=(sitting.chair(motion),), pushes=(Push(1.0, 0.2, (700.0, 0.0, 0.0)),)
    )
    settings = Settings(when_it_falls="brace", get_up=True)
    recording = Problem(longer, settings=settings, scenario=scenario).simulation(None, 0).run()
    assert recording.up is not None
    assert recording.body_positions[-1, 0, 2] > 0.5 * recording.character.height
    frames = matrix_from_quaternion(recording.body_rotations[-1])
    shin, thigh = (frames[SEGMENT_INDEX[name]] for name in ("shin_l", "thigh_l"))
    turn = quaternion_from_matrix(thigh.T @ shin)
    assert 2 * np.arccos(min(abs(turn[0]), 1.0)) < 0.5, "on straight legs"


def test_the_clip_check_knows_who_sits():
    motion = sitting.sits(seconds=SHORT)
    scenario = Scenario(colliders=(sitting.plate(motion),))
    problem = Problem(motion, scenario=scenario)
    terrain = Terrain.of(scenario, 0.0, motion)
    seats = seats_of(scenario, 0.0, motion)
    told = check(problem.character, motion, terrain=terrain, seats=seats)
    assert told.recommend == "balance"
    assert "pelvis and thighs carry it where it sits" in told.verdict
    assert told.outside == 0
    assert not told.findings


def test_a_chair_that_is_not_marked_is_told():
    """The body would squat before it, and nothing said why."""
    motion = sitting.sits(seconds=SHORT)
    findings = check(Problem(motion).character, motion).findings
    assert findings
    for finding in findings:
        assert finding.kind == "support" and finding.subject == "body"
        assert 0.08 < finding.value < 0.3
        assert "mark what it sits or leans on as a collider" in finding.sentence


def test_a_clean_up_does_not_draw_who_sits_over_the_feet():
    motion = sitting.sits(seconds=SHORT)
    body = Body.from_motion(motion, None, Scenario(colliders=(sitting.plate(motion),), floor=0.0))
    assert body.sits.all() and body.part(slice(0, 10)).sits.shape == (10,)
    strong = CleanUpOptions(balance="strong")
    kept = clean_up(body, propose(body), strong).corrections
    drawn = clean_up(replace(body, sits=None), propose(body), strong).corrections
    assert np.abs(kept).max() < 1e-4
    assert np.abs(drawn).max() > 0.005

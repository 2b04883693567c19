# SPDX-License-Identifier: GPL-3.0-or-later
"""Other proportions: masses, inertias and lengths scale as they should, and the body stands."""

import json
from dataclasses import replace

import numpy as np
import pytest

from poise.controller import Character, Gains, Settings, SettingsError, Simulation
from poise.controller.body.morphology import GROUPS, Morphology, Reshaping, presets
from poise.controller.control.controller import Controller
from poise.controller.geometry.rotations import rotation_about
from poise.controller.geometry.skeleton import LANDMARK_INDEX, SEGMENT_INDEX
from poise.controller.geometry.stance import DIRECTIONS, support_reach
from poise.controller.reference.reference import Reference
from poise.controller.search.trial import Problem, evaluate
from poise.experiments import morphologies

NAMES = ("stout", "long", "child", "giant")
ODD = Morphology({"thigh": (1.3, 0.8, 1.1), "trunk": (0.7, 1.2, 1.5), "foot": (1.2, 1.1, 0.9)})


def reshape(character, motion, morphology):
    reshaping = Reshaping(character, motion, morphology)
    return reshaping.character, reshaping.motion


def offset(character, name):
    return next(joint.offset for joint in character.joints if joint.name == name)


def com(character, pose):
    joints, frames = pose
    centres = character.body_centres(joints, frames)
    return np.einsum("fsi,s->fi", centres, character.masses / character.mass)


def test_presets_are_those_of_the_paper_and_more():
    assert set(presets()) >= set(NAMES)
    for stem, body in presets().items():
        assert body and body.name and body.description
        assert Morphology.named(stem) == Morphology.named(body.name) == body


def test_no_change_gives_the_same_body_and_motion(adult, standing):
    assert not Morphology()
    problem = Problem(standing, morphology=Morphology({"head": (1, 1, 1)}))
    assert problem.shaped_motion is standing and problem.reshaping is None
    assert np.array_equal(problem.character.masses, adult.masses)


def test_masses_are_scaled_one_by_one(adult, standing):
    body, _ = reshape(adult, standing, ODD)
    for group, segments in GROUPS.items():
        for segment in segments:
            wanted = adult.segment_masses[segment] * ODD.factors[group][2]
            assert body.segment_masses[segment] == pytest.approx(wanted)
    assert body.mass == pytest.approx(body.masses.sum())
    assert body.mass > adult.mass


@pytest.mark.parametrize("segment", ["thigh_l", "trunk", "foot_r"])
def test_inertia_is_that_of_the_stretched_solid(adult, standing, segment):
    """Against sums over the points of a box with the segment's own moments."""
    index, group = SEGMENT_INDEX[segment], segment.split("_")[0]
    length, girth, heavier = ODD.factors[group]
    mass, inertia = adult.masses[index], adult.inertias[index]
    half = np.sqrt(3 * (inertia.sum() / 2 - inertia) / mass)
    cells = (np.arange(60) + 0.5) / 30 - 1
    points = np.stack(np.meshgrid(*(cells * h for h in half), indexing="ij"), -1).reshape(-1, 3)
    stretch = [length, girth, girth] if group == "foot" else [girth, girth, length]
    for scale, factor, wanted in (
        (np.ones(3), 1.0, inertia),
        (np.array(stretch), heavier, reshape(adult, standing, ODD)[0].inertias[index]),
    ):
        squares = (points * scale) ** 2
        moments = factor * mass * (squares.sum(1, keepdims=True) - squares).mean(0)
        np.testing.assert_allclose(moments, wanted, rtol=1e-3)


def test_a_body_twice_as_large_all_over_is_a_scaled_copy(adult, swinging):
    double = Morphology(dict.fromkeys(GROUPS, (2, 2, 8)))
    body, motion = reshape(adult, swinging, double)
    assert body.mass == pytest.approx(8 * adult.mass)
    assert body.height == pytest.approx(2 * adult.height)
    np.testing.assert_allclose(body.inertias, 32 * adult.inertias)
    np.testing.assert_allclose(body.centres, 2 * adult.centres, atol=1e-12)
    origin = swinging.positions[0, LANDMARK_INDEX["pelvis"]] * [1, 1, 0]
    np.testing.assert_allclose(
        motion.positions - origin, 2 * (swinging.positions - origin), atol=1e-9
    )


def test_joints_turn_as_in_the_clip_between_new_lengths(adult, swinging):
    body, motion = reshape(adult, swinging, ODD)
    before, after = adult.trajectory(swinging), body.trajectory(motion)
    np.testing.assert_allclose(after.angles, before.angles, atol=1e-9)
    np.testing.assert_allclose(after.rotation, before.rotation, atol=1e-12)
    assert offset(body, "knee_l")[2] == pytest.approx(1.3 * offset(adult, "knee_l")[2])
    assert offset(body, "ankle_r")[2] == pytest.approx(offset(adult, "ankle_r")[2])
    np.testing.assert_allclose(offset(body, "neck"), 0.7 * offset(adult, "neck"))
    # Shoulders come with the girth of the trunk, to the side, and its length, upwards.
    shoulder = offset(adult, "shoulder_l") * [1.2, 1.2, 0.7]
    np.testing.assert_allclose(offset(body, "shoulder_l")[1:], shoulder[1:], atol=1e-9)


def test_the_motion_and_the_body_agree_on_every_joint(adult, swinging):
    body, motion = reshape(adult, swinging, ODD)
    joints, _ = body.pose(body.trajectory(motion))
    for segment, landmark in (("foot_l", "ankle_l"), ("head", "neck"), ("forearm_r", "elbow_r")):
        there = motion.positions[:, LANDMARK_INDEX[landmark]]
        before = adult.pose(adult.trajectory(swinging))[0][:, SEGMENT_INDEX[segment]]
        was = np.linalg.norm(before - swinging.positions[:, LANDMARK_INDEX[landmark]], axis=1)
        apart = np.linalg.norm(joints[:, SEGMENT_INDEX[segment]] - there, axis=1)
        assert apart.max() < 1.5 * was.max() + 1e-9


@pytest.mark.parametrize("name", NAMES)
def test_soles_stay_on_the_ground(adult, swinging, name):
    body, motion = reshape(adult, swinging, presets()[name])
    lowest = body.sole_corners(*body.pose(body.trajectory(motion)))[..., 2].min((1, 2))
    before = adult.sole_corners(*adult.pose(adult.trajectory(swinging)))[..., 2].min((1, 2))
    np.testing.assert_allclose(lowest - body.ground, before - adult.ground, atol=2e-3)


def _on_one_leg(time):
    """Lift the left foot by bending hip and knee, and set it down again."""
    lift = np.sin(np.pi * np.clip((time - 0.6) / 1.0, 0, 1)) ** 2
    zero = np.zeros_like(lift)
    return {
        "thigh_l": np.stack([zero, -1.0 * lift, zero], 1),
        "shin_l": np.stack([zero, 1.4 * lift, zero], 1),
    }


@pytest.mark.parametrize("name", NAMES)
def test_feet_stand_when_the_actor_did(make_motion, name):
    motion = make_motion(sway=_on_one_leg)
    actor = Character.from_motion(motion)
    body, moved = reshape(actor, motion, presets()[name])
    before, after = Reference.build(actor, motion), Reference.build(body, moved)
    assert len(np.unique(before.stance)) == 2
    assert (before.stance == after.stance).mean() > 0.97


@pytest.mark.parametrize("name", NAMES)
def test_centre_of_mass_is_above_the_base_of_support(adult, swinging, name):
    body, motion = reshape(adult, swinging, presets()[name])
    reference = Reference.build(body, motion)
    pose = body.pose(reference.trajectory)
    reach = support_reach(body.sole_corners(*pose), np.ones((len(reference), 2), bool))
    assert (com(body, pose)[:, :2] @ DIRECTIONS.T <= reach - 0.01).all()
    # SCA12 asks for the base itself, at rest, and for no angular momentum.
    goals = reference.goals_over_base()
    np.testing.assert_array_equal(goals[:, 0, :2], reference.base)
    assert not goals[:, 1, :2].any() and not goals[:, 2].any()
    np.testing.assert_array_equal(goals[:, 0, 2], reference.goals[:, 0, 2])


def test_each_mode_of_balance_has_its_goals(adult, swinging):
    body, motion = reshape(adult, swinging, ODD)

    class World:
        floor = 0.0

    for balance, who, own in (
        ("foot_forces", body, True),
        ("virtual_forces", adult, True),
        ("virtual_forces", body, False),
    ):
        reference = Reference.build(who, motion if who is body else swinging)
        gains, settings = Gains.default(who, balance), Settings(balance=balance)
        controller = Controller(who, reference, gains, settings, World())
        assert (controller.balance.goals is reference.goals) == own


@pytest.mark.parametrize("name", NAMES)
def test_every_body_stands(adult, swinging, name):
    body, motion = reshape(adult, swinging, presets()[name])
    recording = Simulation(body, motion).run()
    assert recording.success, recording.why()
    weight = body.mass * 9.81
    assert recording.contact_forces[60:, :, 2].sum(1).mean() == pytest.approx(weight, rel=0.03)
    assert recording.summary()["tracking_error"] < 40
    assert np.abs(recording.root_displacement()).max() < 0.08


def test_gains_grow_with_the_body(adult, standing):
    giant, _ = reshape(adult, standing, presets()["giant"])
    size = giant.mass * giant.height / (adult.mass * adult.height)
    ratio = Gains.default(giant).stiffness / Gains.default(adult).stiffness
    np.testing.assert_allclose(ratio, size)


def test_a_problem_carries_its_morphology_to_the_workers(swinging):
    settings = Settings(duration=1.0)
    problem = Problem(swinging, settings=settings, morphology=presets()["long"])
    again = Problem.from_bytes(problem.to_bytes())
    assert again.morphology.factors == problem.morphology.factors
    assert again.to_bytes() == problem.to_bytes()
    assert again.character.mass == problem.character.mass
    gains = Gains.default(problem.character)
    reward = problem.simulation(gains, 3).run().reward
    assert evaluate(problem.to_bytes(), gains.as_dict(), 3)["reward"] == reward
    plain = Problem(swinging, settings=settings)
    assert evaluate(plain.to_bytes(), gains.as_dict(), 3)["reward"] != reward


def test_oblique_axes_share_length_and_girth(adult, standing):
    """A bone that lies at 45 degrees in its segment can only be scaled evenly."""
    index = SEGMENT_INDEX["pelvis"]
    calibration = adult.calibration.copy()
    calibration[index] = rotation_about(0, np.pi / 4) @ calibration[index]
    tilted = replace(adult, calibration=calibration)
    factors = Reshaping(tilted, standing, Morphology({"pelvis": (2, 0.5, 1)})).factors[index]
    np.testing.assert_allclose(factors, [0.5, 1.0, 1.0])


def test_data_go_round(tmp_path):
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(ODD.as_dict()))
    assert Morphology.load(path) == Morphology.named(str(path)) == ODD
    assert Morphology.from_dict({"segments": {"shin": {"length": 1.1}}}).factors["shin"] == (
        1.1,
        1.0,
        1.0,
    )
    assert ODD.scaled([("thigh", (1, 1, 1))]).factors["thigh"] == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ({"tail": (1, 1, 1)}, "There is no segment 'tail' to scale: use head, trunk"),
        ({"shin": (0, 1, 1)}, "The length of the shin cannot be scaled by 0: give a factor from"),
        ({"shin": (1, -2, 1)}, "The girth of the shin cannot be scaled by -2: give a factor from"),
        ({"head": (1, 1, float("nan"))}, "The mass of the head cannot be scaled by nan"),
        ({"head": (1, 1, float("inf"))}, "The mass of the head cannot be scaled by inf"),
        ({"head": (1, 1, 11)}, "cannot be scaled by 11: give a factor from 0.1 to 10"),
        ({"head": (1, "2", 1)}, "The girth of the head cannot be scaled by '2'"),
        ({"head": (1, 1)}, "The head needs three factors: length, girth, mass"),
        ([], "names segments and their factors"),
    ],
)
def test_impossible_factors_are_refused(factors, message):
    with pytest.raises(SettingsError) as caught:
        Morphology(factors)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "names no 'segments'"),
        ('{"segments": {"head": 2}}', "gives 2 for the head: give length, girth, mass"),
        ('{"segments": {"head": {"width": 2}}}', "gives 'width' for the head"),
        ('{"segments": {"head": {"length": 0}}}', "is of no use: The length of the head"),
    ],
)
def test_files_of_no_use_are_refused(tmp_path, text, message):
    path = tmp_path / "body.json"
    path.write_text(text)
    with pytest.raises(SettingsError) as caught:
        Morphology.load(path)
    assert str(path) in str(caught.value) and message in str(caught.value)


def test_names_that_nothing_has_are_refused(tmp_path):
    with pytest.raises(SettingsError, match="There is no morphology 'dwarf': use child, giant"):
        Morphology.named("dwarf")
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        Morphology.load(tmp_path / "none.json")


def test_a_body_out_of_all_proportion_is_refused(adult, standing):
    light = Morphology(dict.fromkeys(GROUPS, (0.3, 0.3, 0.1)))
    heavy = Morphology(dict.fromkeys(GROUPS, (3, 3, 10)))
    for body, extra in ((light, None), (heavy, 110.0)):
        character = Character.from_motion(standing, mass=extra or 9.0)
        with pytest.raises(SettingsError, match=r"The morphology makes a body of .* m and .* kg"):
            reshape(character, standing, body)


@pytest.mark.slow
def test_experiment_runs_from_end_to_end(tmp_path, capsys, monkeypatch, swinging):
    settings = Settings(duration=1.0, noise=5.0)
    monkeypatch.setattr(morphologies, "problem_of", lambda *_: Problem(swinging, settings=settings))
    output = tmp_path / "report" / "morphologies.json"
    arguments = ["--morphologies", "stout", "--clips", "arm", "--generations", "1"]
    morphologies.main([*arguments, "--workers", "1", "--output", str(output)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("| morphology | kg | m | clip | R untuned")
    cells = [cell.strip() for cell in lines[2].strip("|").split("|")]
    assert cells[0] == "stout" and cells[3] == "arm" and cells[-1] == "0"
    assert float(cells[4]) == float(cells[5]) >= 1.8
    assert lines[-1] == "R >= 1.8 on all unseen seeds: 1 of 1"
    (row,) = json.loads(output.read_text())
    assert row["gains"]["tuned"]["morphology"]["name"] == "Stout"

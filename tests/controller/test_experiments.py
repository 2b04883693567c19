# SPDX-License-Identifier: GPL-3.0-or-later
"""The experiments: made clips that a body can do, and tables that say what was measured."""

from types import SimpleNamespace

import numpy as np
import pytest

from poise.controller import Character, Gains, Motion, Reference, Settings
from poise.controller.body.sole import Ground, sole_of
from poise.controller.control.foot_forces import FootForces
from poise.controller.gains.gains import WEIGHTS
from poise.controller.geometry.skeleton import LANDMARK_INDEX
from poise.controller.geometry.stance import DIRECTIONS, support_reach
from poise.controller.search.optimization import Generation
from poise.controller.search.trial import Problem
from poise.controller.simulation.measures import MAXIMA
from poise.experiments import ablation, clips, components, table3
from poise.experiments.made import MADE


@pytest.fixture(scope="module", params=MADE)
def made(request):
    """Each made clip: its Motion, its body, and (joints, frames) of that body in it."""
    motion = clips.read(request.param)
    body = Character.from_motion(motion)
    return motion, body, body.pose(body.trajectory(motion))


def _standing(motion, body, pose):
    """(F, 2) feet with all of their sole on the floor."""
    corners = body.sole_corners(*pose)
    return np.abs(corners[..., 2] - body.ground).max(-1) < 1e-3


def test_made_clips_last_as_long_as_the_papers(made):
    motion, body, _ = made
    (kind,) = (kind for kind in clips.KINDS if motion.name in kind.made)
    assert motion.duration == pytest.approx(kind.seconds, abs=1 / motion.rate)
    assert body.height == pytest.approx(1.75, abs=0.01)


def test_made_clips_are_the_same_every_time(made):
    motion, *_ = made
    again = MADE[motion.name]()
    assert np.array_equal(motion.positions, again.positions)
    assert np.array_equal(motion.rotations, again.rotations)


def test_feet_of_made_clips_stay_where_they_stand(made):
    _, body, pose = made
    corners = body.sole_corners(*pose)
    standing = _standing(*made)
    assert standing.any(1).all()
    assert corners[..., 2].min() > body.ground - 1e-3
    for foot in range(2):
        there = corners[standing[:, foot], foot]
        assert np.ptp(there, axis=0).max() < 1e-3


def test_made_clips_start_and_end_at_rest_on_both_feet(made):
    motion, _, _ = made
    assert _standing(*made)[[0, -1]].all()
    for ends in (motion.positions[:3], motion.positions[-3:]):
        assert np.ptp(ends, axis=0).max() < 1e-3
    assert np.abs(motion.positions[0] - motion.positions[-1]).max() < 2e-3


def test_knees_of_made_clips_bend_forward_and_nothing_pops(made):
    motion, body, _ = made
    trajectory = body.trajectory(motion)
    angles = dict(zip(body.dof_names, trajectory.angles.T, strict=True))
    for side in "lr":
        assert angles[f"knee_{side}_pitch"].min() > np.radians(5)
        assert angles[f"knee_{side}_pitch"].max() < np.radians(100)
    accelerations = np.diff(trajectory.angles, 2, axis=0) * motion.rate**2
    assert np.abs(accelerations).max() < 40  # [rad/s^2]: of a foot that comes off the floor
    assert np.abs(np.diff(accelerations, axis=0)).max() < 10  # none between two samples


def test_weight_of_made_clips_is_above_the_feet(made):
    _, body, (joints, frames) = made
    com = np.einsum("fsi,s->fi", body.body_centres(joints, frames), body.masses / body.mass)
    reach = support_reach(body.sole_corners(joints, frames), _standing(*made))
    assert (reach - com[:, :2] @ DIRECTIONS.T).min() > 0.02


@pytest.mark.parametrize(
    ("name", "shares"),
    [
        ("stand_shift", (0.0, 0.0)),
        ("squat_made", (0.0, 0.0)),
        ("hula", (0.0, 0.0)),
        ("single_made", (0.5, 0.0)),
        ("front_swing", (0.3, 0.3)),
        ("side_swing", (0.3, 0.3)),
    ],
)
def test_poise_sees_the_stances_that_were_meant(name, shares):
    motion = clips.read(name)
    found = Character.from_motion(motion).stance_summary(motion)
    assert (found["left"], found["right"]) == pytest.approx(shares, abs=0.05)
    assert found["flight"] == 0


def test_made_clips_do_what_they_are_called():
    at = LANDMARK_INDEX
    squat = clips.read("squat_made")
    body = Character.from_motion(squat)
    knee = body.trajectory(squat).angles[:, body.dof_names.index("knee_l_pitch")]
    assert np.degrees(knee.max()) == pytest.approx(60, abs=2)
    side, front = (clips.read(n).positions for n in ("side_swing", "front_swing"))
    assert -side[:, at["ankle_r"], 1].min() > 0.4 and side[:, at["ankle_l"], 1].max() > 0.4
    assert front[:, at["ankle_r"], 0].max() > 0.4 and front[:, at["ankle_l"], 0].max() > 0.4
    hips = clips.read("hula").positions[300:900, at["pelvis"], :2]
    radius = np.linalg.norm(hips - hips.mean(0), axis=1)
    assert radius.min() > 0.03


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_untuned_foot_forces_carry_the_made_clip(name):
    problem = Problem(clips.read(name), settings=Settings(duration=20.0))
    recording = problem.simulation(Gains.default(problem.character), 0).run()
    assert recording.success, recording.why()
    assert recording.reward >= 1.8


@pytest.mark.slow
def test_captured_clips_are_read_as_the_product_reads_them(import_clip):
    bpy = pytest.importorskip("bpy")
    from poise.addon.rigs import reference

    expected = reference.read(bpy.context.scene, import_clip("kick")).motion
    motion = clips.captured("kick")
    assert motion.rate == expected.rate
    assert np.array_equal(motion.positions, expected.positions, equal_nan=True)


def test_trials_are_the_papers():
    settings = clips.problem_of("hula", "virtual_forces").settings
    assert (settings.duration, settings.noise, settings.balance) == (20.0, 5.0, "virtual_forces")
    assert settings.maxima == MAXIMA


def test_every_kind_of_the_paper_has_a_clip():
    assert [kind.name for kind in clips.KINDS] == (
        "stand arm wave squat bow hips single kick side dance".split()
    )
    assert all(kind.clips for kind in clips.KINDS)


# --- Ablation -------------------------------------------------------------------------------------


@pytest.fixture
def problem(make_motion, arms_swing):
    """A short trial."""
    return Problem(make_motion(1.0, sway=arms_swing), settings=Settings())


def test_leaving_out_a_weight_zeroes_it_alone(adult):
    gains = Gains.default(adult)
    for i, name in enumerate(WEIGHTS):
        without = components.COMPONENTS[name].gains(gains)
        for own, before in ((without.single, gains.single), (without.dual, gains.dual)):
            assert own[i] == 0
            assert np.array_equal(np.delete(own, i), np.delete(before, i))
        assert np.array_equal(without.stiffness, gains.stiffness)
    without = components.COMPONENTS["feedback"].gains(gains)
    assert not without.single.any() and not without.dual.any()


def test_full_trial_is_the_products_own(problem):
    gains = Gains.default(problem.character)
    expected = problem.simulation(gains, 3).run().reward
    result = components.trial(problem.to_bytes(), "full", gains.as_dict(), 3)
    assert result["reward"] == expected


@pytest.mark.slow
def test_each_component_changes_the_trial_and_leaves_nothing_behind():
    problem = Problem(clips.read("front_swing"), settings=Settings(duration=2.5))
    payload, gains = problem.to_bytes(), Gains.default(problem.character).as_dict()
    full = components.trial(payload, "full", gains, 0)
    for name in components.COMPONENTS:
        if name != "full":
            assert components.trial(payload, name, gains, 0) != full, name
    components._prepared.cache_clear()
    assert components.trial(payload, "full", gains, 0) == full


def test_without_acceleration_the_floor_carries_the_weight_alone(problem):
    body, reference = problem.character, problem.reference
    still = components.COMPONENTS["acceleration"].reference(body, reference)
    assert not still.accelerations.any()
    assert np.allclose(still.wrench, [0, 0, body.mass * 9.81, 0, 0, 0])
    assert np.array_equal(still.angles, reference.angles)


def test_without_the_soles_limits_there_are_none(problem):
    gains, reference = Gains.default(problem.character), problem.reference
    foot = problem.character.feet[0]
    sole = sole_of(foot, [0.0, 0.0, foot.depth], np.eye(3).tolist(), 0.0, Ground(0, 0, 0.0))

    def region(balance):
        world = SimpleNamespace(floor=0.0)
        made = balance(problem.character, reference, gains, Settings(), world)
        return made.region(0, 0, sole, 1.0, (0, 0))

    assert region(components.COMPONENTS["soles"].balance["foot_forces"]).front > 10 > foot.toe
    assert 0 < region(FootForces).front < foot.toe


def test_without_planting_the_reference_is_the_clip(problem):
    body, motion = problem.character, problem.motion
    sunk = motion.positions - [0, 0, 0.02]  # soles in the floor, which planting mends
    motion = Motion("sunk", motion.rate, motion.rotations, sunk)
    for name, lowest in (("full", 0.0), ("planting", -0.02)):
        reference = Reference.build(body, motion, plant=components.COMPONENTS[name].plant)
        assert reference.lowest - body.ground == pytest.approx(lowest, abs=1e-3)


def test_without_balance_the_legs_are_only_tracked(problem):
    gains = Gains.default(problem.character)
    result = components.trial(problem.to_bytes(), "balance", gains.as_dict(), 0)
    assert result["fell_at"] is not None
    names = components.COMPONENTS
    assert set(WEIGHTS) <= set(names) and "balance" in names
    virtual = [n for n, component in names.items() if "virtual_forces" in component.modes]
    assert virtual == ["full", *WEIGHTS, "lean", "planting", "balance"]


def _row(clip, without, reward, fell_at=None):
    result = {"reward": reward, "fell_at": fell_at, "fell_measure": None}
    return {
        "clip": clip,
        "balance": "foot_forces",
        "without": without,
        "still": result,
        "noisy": [result],
    }


def test_ablation_table_shows_what_is_lost_where_it_held():
    rows = [
        _row("stand", "full", 1.9),
        _row("stand", "trunk", 1.7),
        _row("wave", "full", 1.9),
        _row("wave", "trunk", 0.4, 3.0),
        _row("dance", "full", 0.3, 4.0),
        _row("dance", "trunk", 0.2, 2.0),
    ]
    lines = ablation.tables(rows)
    assert "| wave | 1.90 / 1.90 | 0.40 (3.0 s) / 0.40 (3.0 s) |" in lines
    assert lines[-1] == "| trunk | the weight trunk | 0.850 | 1.50 | wave | 1 of 2 |"


# --- Table 3 --------------------------------------------------------------------------------------


def _outcome(clip, kind, success_at, confirmed_at, unseen):
    generation = Generation(0, [1.0], 1.0, 1.0, 1.0, 0.4, 20.0, 2.0, 1.0, None, None)
    return {
        "kind": kind,
        "clip": clip,
        "balance": "virtual_forces",
        "seed": 0,
        "duration": 10.5,
        "success_at": success_at,
        "confirmed_at": confirmed_at,
        "unseen": unseen,
        "seconds": 1234.0,
        "wall": 61.0,
        "cpu": 120.5,
        "history": [vars(generation)] * 4,
    }


def test_table_stands_beside_the_papers():
    lines = table3.table(
        [
            _outcome("stand_shift", "stand", 2, 3, [1.9, 1.8]),
            _outcome("side_swing", "side", None, None, [0.5]),
        ]
    )
    assert lines[0] == "`virtual_forces`"
    assert (
        "| stand | stand_shift | 10.5 | 0 | 2 | 7 | 3 | 1.85 | 1.80 | 1234 | 61.0 | 120.5 | 3 |"
        in lines
    )
    assert "| side | side_swing | 10.5 | 0 | > 3 | 307 | > 3 | 0.50 | 0.50 | 1234 |" in lines[5]
    assert lines[-1] == "confirmed: 1 of 2"


@pytest.mark.slow
def test_table3_runs_from_end_to_end(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(clips, "T_MAX", 0.5)
    output = tmp_path / "deep" / "table3.json"
    table3.main(
        ["--clips", "squat_made", "--balance", "virtual_forces", "--generations", "1"]
        + ["--workers", "1", "--output", str(output)]
    )
    assert "| squat | squat_made | 9.2 | 0 |" in capsys.readouterr().out
    assert output.is_file()

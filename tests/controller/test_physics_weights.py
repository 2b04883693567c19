# SPDX-License-Identifier: GPL-3.0-or-later
"""Physics where it is wanted: exact where it is not, continuous, and honest about help."""

from dataclasses import replace

import numpy as np
import pytest

from poise.controller import Character, Push, Scenario, Settings, SettingsError, Simulation
from poise.controller.body.momentum import GRAVITY
from poise.controller.gains.physics_weights import NAMES, PhysicsWeights
from poise.controller.geometry.rotations import matrix_from_quaternion, quaternion_from_matrix
from poise.controller.geometry.rotations import rotation_vector as vector
from poise.controller.geometry.skeleton import PARENTS, SEGMENT_INDEX
from poise.controller.reference.performed import performed_motion


@pytest.fixture
def body(swinging):
    """The body of the person who swings the arms."""
    return Character.from_motion(swinging)


def simulate(body, motion, weights, pushes=(), **settings):
    """The recording of a simulation with these weights."""
    scenario = Scenario(pushes=pushes, weights=weights)
    return Simulation(body, motion, settings=Settings(**settings), scenario=scenario).run()


def everything(value):
    """The same weight for all."""
    return dict.fromkeys(NAMES, value)


def window(motion, first, last, over=12):
    """Weights of all: 1 between two samples, and then back to 0."""
    samples = np.arange(len(motion))
    return everything((samples > first) * np.clip(1 - (samples - last) / over, 0, 1))


def baked_frames(recording):
    """(n, S, 3, 3) world frames of the bake."""
    deltas = matrix_from_quaternion(recording.rotation_deltas())
    return deltas @ recording.reference.raw.frames[: len(recording)]


def local(frames, segment):
    """(n, 3, 3) frames of a segment in its parent's."""
    parent = SEGMENT_INDEX[PARENTS[segment]]
    return np.swapaxes(frames[:, parent], 1, 2) @ frames[:, SEGMENT_INDEX[segment]]


def degrees(frames):
    """(n,) angles of rotations."""
    return np.degrees(np.linalg.norm(vector(quaternion_from_matrix(frames)), axis=-1))


PUSH = Push(0.7, 0.2, (60.0, 20.0, 0.0))
PULL = (100.0, 0.0, 300.0)
ARMS = ("upper_arm_l", "forearm_l", "upper_arm_r", "forearm_r")


def test_without_weights_nothing_changes(body, swinging):
    free = simulate(body, swinging, {}, (PUSH,))
    weighed = simulate(body, swinging, everything(1.0), (PUSH,))
    assert weighed.weights is None
    assert np.array_equal(free.body_positions, weighed.body_positions)
    assert np.array_equal(free.rotation_deltas(), weighed.rotation_deltas())
    assert not weighed.residual.any()
    assert weighed.summary()["residual"] == 0


@pytest.mark.slow(captured=False)
def test_a_walk_goes_as_without_weights_until_it_is_handed_back(walker):
    """Also the leg in the air is as stiff as that decides where it lands."""
    body, motion, _ = walker
    last = len(motion) // 2
    samples = np.arange(len(motion))
    weights = everything(np.clip(1 - (samples - last) / 10, 0, 1))
    whole = Simulation(body, motion).run()
    handed = simulate(body, motion, weights)
    assert np.array_equal(handed.body_positions[:last], whole.body_positions[:last])
    assert not handed.residual[1 : last + 1].any() and handed.residual[last + 5].any()


def test_held_throughout_the_bake_is_the_animation(body, swinging):
    recording = simulate(body, swinging, everything(0.0), (PUSH,))
    assert recording.success
    assert np.array_equal(recording.root_displacement(), np.zeros((len(recording), 3)))
    assert np.allclose(recording.rotation_deltas(), [1, 0, 0, 0], atol=1e-12)


def test_held_throughout_the_simulation_is_near_the_animation_too(body, swinging):
    recording = simulate(body, swinging, everything(0.0))
    reference = recording.reference
    apart = recording.joints()[:, 0] - reference.trajectory.root
    assert np.abs(apart).max() < 0.003
    frames = matrix_from_quaternion(recording.body_rotations)
    for arm in ARMS:
        turn = np.swapaxes(local(reference.smooth.frames, arm), 1, 2) @ local(frames, arm)
        assert degrees(turn).max() < 0.3


@pytest.mark.slow
@pytest.mark.parametrize("balance", ["foot_forces", "virtual_forces"])
def test_animated_arms_on_a_body_that_stands_for_20_seconds(body, make_motion, arms_swing, balance):
    motion = make_motion(seconds=20.0, rate=30.0, sway=arms_swing)
    recording = simulate(Character.from_motion(motion), motion, {"arms": 0.0}, balance=balance)
    assert recording.success
    assert not recording.residual.any()
    frames, raw = baked_frames(recording), recording.reference.raw.frames
    for arm in ARMS:
        assert np.allclose(local(frames, arm), local(raw, arm), atol=1e-9)
    assert not np.allclose(frames[:, SEGMENT_INDEX["trunk"]], raw[:, SEGMENT_INDEX["trunk"]])


def test_exact_before_and_after_physical_between(body, swinging):
    recording = simulate(body, swinging, window(swinging, 30, 80), (PUSH,))
    turned = degrees(matrix_from_quaternion(recording.rotation_deltas())).max(1)
    moved = np.linalg.norm(recording.root_displacement(), axis=1)
    outside = np.r_[:31, 92 : len(recording)]
    assert turned[outside].max() < 1e-6 and moved[outside].max() == 0
    assert moved[60:80].max() > 0.01


def test_the_bake_has_no_seams(body, swinging):
    recording = simulate(body, swinging, window(swinging, 30, 80), (PUSH,))
    position = recording.root_displacement()
    acceleration = np.linalg.norm(np.diff(position, 2, axis=0), axis=1) * swinging.rate**2
    pushed = np.linalg.norm(PUSH.force) / body.mass
    assert acceleration.max() < 4 * pushed


def test_the_simulation_ends_where_the_animation_is(body, swinging):
    recording = simulate(body, swinging, window(swinging, 30, 60), (PUSH,))
    apart = recording.joints()[:, 0] - recording.reference.trajectory.root
    # The floor holds the feet: the body leans a little where they were pushed to.
    assert np.linalg.norm(apart[60:62, :2], axis=1).max() > 0.01
    assert np.linalg.norm(apart[-10:, :2], axis=1).max() < 0.006


def test_animated_feet_keep_the_animation_s_toes(body, swinging):
    """Whatever the legs do."""
    recording = simulate(body, swinging, {"feet": 0.0}, [PUSH])
    frames, raw = baked_frames(recording), recording.reference.raw.frames[: len(recording)]
    for segment in ("foot_l", "toe_l", "foot_r", "toe_r"):
        apart = np.swapaxes(local(raw, segment), 1, 2) @ local(frames, segment)
        assert degrees(apart).max() < 1e-5
    shins = np.swapaxes(raw[:, SEGMENT_INDEX["shin_l"]], 1, 2) @ frames[:, SEGMENT_INDEX["shin_l"]]
    assert degrees(shins).max() > 0.5


def test_help_is_what_gravity_and_the_floor_leave_open(body, swinging):
    """m a = m g + floor + help, at one step a sample."""
    ramp = np.linspace(0, 0.9, len(swinging))
    recording = simulate(
        body, swinging, {"root": ramp, "legs": ramp}, (Push(0.5, 0.5, PULL),), rate=60.0
    )
    mass, rate = body.mass, swinging.rate
    acceleration = np.diff(recording.com, 2, axis=0) * rate**2
    known = recording.contact_forces.sum(1) + recording.residual[:, :3]
    known += np.array([0, 0, -GRAVITY * mass])
    known[31:61] += PULL
    apart = mass * acceleration - known[2:]
    assert np.abs(recording.residual[:, :3]).max() > 30
    assert np.sqrt((apart**2).mean()) < 3.0


def test_help_is_shown_in_newtons(body, swinging):
    recording = simulate(body, swinging, {"root": 0.5}, (PUSH,))
    mean = np.linalg.norm(recording.residual[:, :3], axis=1).mean()
    assert recording.summary()["residual"] == pytest.approx(mean)
    assert mean > 1
    assert recording.summary()["residual_torque"] > 0


@pytest.mark.slow(captured=False)
def test_help_falls_as_the_weight_rises(body, swinging):
    sway = [
        np.abs(simulate(body, swinging, {"root": w}, (PUSH,)).root_displacement()[:, :2]).max()
        for w in (0.2, 0.6, 1.0)
    ]
    assert sway[0] < sway[1] < sway[2]


def test_weights_hold_their_last_value_in_a_loop(body, swinging):
    weights = window(swinging, 30, 60)
    simulation = Simulation(
        body, swinging, settings=Settings(duration=4.0), scenario=Scenario(weights=weights)
    )
    root = simulation.weights.regions["root"]
    assert len(root) == len(simulation) > len(swinging)
    assert (root[len(swinging) :] == 0).all()


def test_animated_legs_hang_on_a_simulated_pelvis(body, swinging):
    # Such legs keep no balance, and before long it falls.
    weights = {"legs": 0.0, "feet": 0.0}
    simulation = Simulation(body, swinging, scenario=Scenario(weights=weights))
    for sample in simulation:
        if sample == 30:
            break
    recording = simulation.recording
    assert len(recording) == 31
    assert np.abs(recording.root_displacement()).max() > 1e-3, "the pelvis is simulated"
    frames, raw = baked_frames(recording), recording.reference.raw.frames
    for segment in ("thigh_l", "shin_l", "foot_l", "thigh_r", "shin_r", "foot_r"):
        n = len(recording)
        assert np.allclose(local(frames, segment), local(raw[:n], segment), atol=1e-9)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ({"hands": 0.5}, "There is no region 'hands' to weigh: choose one of trunk, neck, arms"),
        ({"arms": 1.5}, "The physics weight of 'arms' is not always from 0 to 1"),
        ({"root": np.nan}, "The physics weight of 'root' is not always from 0 to 1"),
        ({"legs": [0.0, 1.0]}, "'legs' has 2 values for 121 samples: give one for each"),
    ],
)
def test_weights_that_cannot_be(body, swinging, weights, words):
    with pytest.raises(SettingsError, match=words):
        simulate(body, swinging, weights)


def test_explicit_tracking_cannot_hold(body, swinging):
    with pytest.raises(SettingsError, match="need the tracking mode 'stable_pd'"):
        simulate(body, swinging, {"arms": 0.0}, tracking="explicit_pd")


def test_only_weights_below_one_count(body, swinging):
    reference = Simulation(body, swinging).reference
    assert PhysicsWeights.build(body, swinging, reference, {"arms": np.ones(121)}) is None
    built = PhysicsWeights.build(body, swinging, reference, {"arms": np.full(121, 0.5).tolist()})
    moved = [name.split("_")[0] in ("shoulder", "elbow") for name in body.dof_names]
    assert np.array_equal(built.joints[0], np.where(moved, 0.5, 1.0))


def test_what_is_cleaned_is_so_where_it_is_simulated(standing):
    """And what is not simulated keeps its pop; without one the animation is compared as it is."""
    positions = standing.positions.copy()
    positions[[20, 90], :, 0] += 0.4
    popping = replace(standing, positions=positions)
    character, settings = Character.from_motion(standing), Settings(cleaning=("despike",))
    assert Simulation(character, standing, settings=settings).recording.cleaned() is None
    root = np.r_[np.zeros(60), np.ones(len(standing) - 60)]
    scenario = Scenario(weights={"root": root})
    for weighed, wanted in ((Scenario(), [20, 90]), (scenario, [90])):
        simulation = Simulation(character, popping, settings=settings, scenario=weighed)
        found = performed_motion(simulation.recording.cleaned()).positions[..., 0]
        moved = np.abs(found - positions[..., 0])
        assert np.flatnonzero(np.nanmax(moved, axis=1) > 1e-6).tolist() == wanted
        assert np.nanmin(moved[wanted]) == pytest.approx(0.4)

# SPDX-License-Identifier: GPL-3.0-or-later
"""The loop: statics, determinism, recordings, errors."""

import hashlib
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from poise.controller import (
    BALANCE_MODES,
    Character,
    Gains,
    Motion,
    MotionError,
    Reference,
    Settings,
    SettingsError,
    Simulation,
    SimulationError,
    measures_of_bake,
)
from poise.controller.body.momentum import GRAVITY
from poise.controller.geometry.rotations import quaternion_from_matrix, rotation_vector
from poise.controller.geometry.skeleton import LANDMARK_INDEX
from poise.controller.geometry.stance import DUAL, SOLE
from poise.controller.simulation.measures import MAXIMA
from poise.controller.simulation.recording import Observation, Recording
from poise.controller.simulation.scenario import Push, Scenario
from poise.controller.simulation.world import Contacts, World


def simulate(motion, **settings):
    return Simulation(Character.from_motion(motion), motion, settings=Settings(**settings)).run()


@pytest.fixture
def still(standing):
    return simulate(standing)


def test_standing_still_carries_the_weight(still):
    """Statics: the floor's forces sum to the weight, under the centre of mass."""
    settled = slice(60, None)
    total = still.contact_forces[settled].sum(1)
    weight = still.character.mass * GRAVITY
    assert np.abs(total[:, 2] - weight).max() < 0.01 * weight
    assert np.abs(total[:, :2]).max() < 0.01 * weight
    assert (still.stance[1:] == DUAL).all() and still.contacts[1:].all()
    assert np.abs(np.diff(still.com[settled], axis=0)).max() * 60 < 0.0005


def test_standing_still_is_on_flat_soles(still):
    assert (still.carrying[60:] >= 3).all() and still.summary()["few_corners"] < 0.1
    assert (still.phases[60:] == SOLE).all() and (still.reference_phases == SOLE).all()


def test_standing_still_needs_the_torques_of_statics(still):
    """The knee holds what the forces on its foot turn, less the leg's own weight."""
    character, last = still.character, len(still) - 1
    joints, centres = still.joints()[last], still.body_positions[last]
    names = ("thigh_l", "shin_l", "foot_l")
    from poise.controller.geometry.skeleton import SEGMENT_INDEX

    _, shin, foot = (SEGMENT_INDEX[n] for n in names)
    knee = joints[shin]
    force = still.contact_forces[last, 0]
    ankle = joints[foot]
    ankle_pitch = still.torques[last, character.dof_names.index("ankle_l_pitch")]
    knee_pitch = still.torques[last, character.dof_names.index("knee_l_pitch")]
    down = np.array([0, 0, -GRAVITY])
    foot_pull = np.cross(centres[foot] - knee, character.masses[foot] * down)
    shin_pull = np.cross(centres[shin] - knee, character.masses[shin] * down)
    # The foot in balance: ankle torque + moment of the floor about the ankle + its weight = 0;
    # with it the floor's centre of pressure drops out.
    own = np.cross(centres[foot] - ankle, character.masses[foot] * down)[1]
    floor_about_ankle = -ankle_pitch - own
    floor_about_knee = floor_about_ankle + np.cross(ankle - knee, force)[1]
    expected = -(floor_about_knee + foot_pull[1] + shin_pull[1])
    assert knee_pitch == pytest.approx(expected, abs=1.0)


def test_arms_swing_while_the_feet_stay(swinging):
    recording = simulate(swinging)
    summary = recording.summary()
    assert recording.success and recording.why() == ""
    assert summary["pose_error"] < 0.01
    assert summary["slide_error"] < 0.005
    assert summary["residual"] == 0


def test_samples_come_one_by_one(swinging):
    character = Character.from_motion(swinging)
    simulation = Simulation(character, swinging)
    for expected, sample in enumerate(simulation):
        assert sample == expected
        assert len(simulation.recording) == expected + 1
        if sample == 10:
            break
    assert len(simulation.recording.com) == 11


@pytest.mark.slow(captured=False)
def test_pieces_of_a_sample_are_of_few_steps_and_change_nothing(standing):
    character, whole = Character.from_motion(standing), simulate(standing, rate=1000)
    simulation = Simulation(character, standing, settings=Settings(rate=1000))
    simulation.begin()
    step, counts, taken = simulation.world.step, [], []
    simulation.world.step = lambda: (taken.append(1), step())
    for _ in simulation.pieces():
        counts.append(len(taken))
        taken.clear()
    assert sum(counts) == (len(standing) - 1) * simulation.reference.steps_per_sample
    assert max(counts) == 5
    assert np.array_equal(simulation.recording.com, whole.com)


@pytest.mark.parametrize("rate, expected", [(300, 300), (240, 240), (100, 120), (1000, 1020)])
def test_samples_fall_on_steps(standing, rate, expected):
    character = Character.from_motion(standing)
    simulation = Simulation(character, standing, settings=Settings(rate=rate))
    assert simulation.rate == expected


@pytest.mark.parametrize("rate", [120, 240, 600])
def test_stands_at_every_rate(make_motion, rate):
    assert simulate(make_motion(seconds=1), rate=rate).success


def test_explicit_pd_and_virtual_forces_run(make_motion):
    motion = make_motion(seconds=0.5)
    assert len(simulate(motion, balance="virtual_forces")) == 31
    assert len(simulate(motion, tracking="explicit_pd", rate=2000)) > 5


_SCRIPT = """
import sys, hashlib
sys.path.insert(0, {folder!r})
import importlib.util
spec = importlib.util.spec_from_file_location("people", {conftest!r})
people = importlib.util.module_from_spec(spec)
spec.loader.exec_module(people)
from poise.controller import Character, Settings, Simulation
motion = people._make_motion(sway=people._arms_swing)
settings = Settings(noise=5.0, seed=3)
recording = Simulation(Character.from_motion(motion), motion, settings=settings).run()
print("DIGEST", hashlib.sha256(recording.rotation_deltas().tobytes()).hexdigest())
"""


@pytest.mark.slow(captured=False)
def test_same_seed_same_result_in_another_process(swinging):
    recordings = [simulate(swinging, noise=5.0, seed=seed) for seed in (3, 3, 4)]
    digests = [hashlib.sha256(r.rotation_deltas().tobytes()).hexdigest() for r in recordings]
    assert digests[0] == digests[1] != digests[2]
    folder = Path(__file__).parent
    script = _SCRIPT.format(folder=str(folder), conftest=str(folder / "conftest.py"))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert digests[0] in done.stdout


def test_a_simulation_that_is_the_reference_bakes_the_reference(swinging):
    """The differences vanish, but for the capture's tremble across the knees' hinges."""
    character = Character.from_motion(swinging)
    simulation = Simulation(character, swinging)
    raw = simulation.reference.raw
    recording = Recording(
        character, swinging, simulation.reference, simulation.measures, simulation.scenario
    )
    standing = Contacts([True] * 2, np.zeros((2, 3)), np.full((2, 3), np.nan), np.zeros((2, 2)), 0)
    idle = np.zeros(character.dofs)
    for i in range(len(swinging)):
        turns = quaternion_from_matrix(raw.frames[i])
        recording.add(i, Observation(raw.centres[i], turns, standing, None, 0.0, idle))
    assert np.abs(recording.root_displacement()).max() < 1e-12
    assert np.abs(rotation_vector(recording.rotation_deltas())).max() < 1e-6


def test_a_fall_is_told(make_motion):
    """Weight that the reference shifts off its feet is lost, and the sentence says when and why."""

    def lean(time):
        tilt = np.clip((time - 0.5) / 0.3, 0, 1) * 0.9
        zero = np.zeros_like(time)
        turn = np.stack([zero, tilt, zero], 1)
        return {"thigh_l": turn, "thigh_r": turn}  # both legs swing back: the feet leave the floor

    recording = simulate(make_motion(seconds=4, sway=lean))
    assert not recording.success
    assert 0 < recording.fell_at < 4
    assert recording.why().startswith(f"Fell at {recording.fell_at:.2f} s (frame ")
    assert np.isfinite(recording.rotation_deltas()).all()
    assert len(recording) < 241


def test_a_body_that_stands_on_a_missed_limit_has_not_fallen(standing):
    recording = simulate(standing, maxima=MAXIMA | {"pose_error": 1e-4})
    at = f"Stopped at {recording.fell_at:.2f} s (frame "
    assert recording.why().startswith(at) and "), still upright: its pose is" in recording.why()
    assert not recording.success and recording.upright


@pytest.mark.parametrize(("force", "words"), [(2000.0, "its pose is"), (7000.0, "is thrown, ")])
def test_what_pushes_it_over_is_told_by_how_fast(standing, force, words):
    """An impulse J gives a body of mass m a speed of J / m, less what its feet hold."""
    character = Character.from_motion(standing)
    scenario = Scenario(pushes=(Push(0.5, 0.1, (0.0, force, 0.0)),))
    recording = Simulation(character, standing, scenario=scenario).run()
    assert recording.why().startswith("Fell at ") and words in recording.why()
    if force > 5000:
        speed = float(recording.why().partition("thrown, ")[2].partition(" m/s")[0])
        lasted = recording.fell_at - 0.5
        assert 0.5 < speed / (force * lasted / character.mass) <= 1.1


def test_a_reference_does_not_depend_on_where_memory_lies(swinging):
    """Bit for bit, whatever was allocated before."""
    random, hold, digests = np.random.default_rng(0), [], set()
    for _ in range(6):
        hold.append([np.empty(size) for size in random.integers(1, 2000, 50)])
        reference = Reference.build(Character.from_motion(swinging), swinging, duration=6.0)
        digest = hashlib.sha256(reference.angles.tobytes())
        digest.update(reference.goals.tobytes())
        digest.update(reference.accelerations.tobytes())
        digests.add(digest.hexdigest())
    assert len(digests) == 1


def test_noise_is_not_there_unless_asked(standing):
    quiet, noisy = simulate(standing), simulate(standing, noise=5.0)
    assert (
        np.abs(np.diff(noisy.torques, axis=0)).mean()
        > 5 * np.abs(np.diff(quiet.torques, axis=0)).mean()
    )


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"rate": 10}, "rate of 10 Hz is out of range"),
        ({"rate": float("nan")}, "out of range"),
        ({"rate": "fast"}, "rate of 'fast' is no number: give 50 to"),
        ({"outside_help": None}, "of None is no number"),
        ({"balance": "magic"}, "no balance mode 'magic': use foot_forces, virtual_forces"),
        ({"tracking": "magic"}, "no tracking mode 'magic'"),
        ({"noise": -1}, "noise of -1 N m is out of range: give 0 to 1000 N m"),
        ({"torque_limit": 0}, "torque limit must be above 0"),
    ],
)
def test_odd_settings_are_refused(settings, message):
    with pytest.raises(SettingsError, match=message):
        Settings(**settings)


def test_a_clip_that_starts_in_the_air_is_refused(make_motion):
    motion = make_motion()
    drop = np.linspace(0.4, 0, len(motion)).clip(0, None)
    drop[20:] = 0
    motion.positions[..., 2] += drop[:, None]
    character = Character.from_motion(motion)
    with pytest.raises(MotionError, match=r"starts in the air, \d+ cm above the ground: start"):
        Simulation(character, motion)


def test_a_pop_is_refused(make_motion):
    def pop(time):
        angle = np.where(time > 1, 2.6, 0.0)
        return {"forearm_l": np.stack([0 * time, -angle, 0 * time], 1)}

    motion = make_motion(sway=pop, rate=120)
    with pytest.raises(MotionError, match=r"turns the left elbow at \d+ rad/s at frame 12\d"):
        Simulation(Character.from_motion(motion), motion)


def test_an_explosion_is_an_error_not_a_result(standing, monkeypatch):
    transforms = World.body_transforms
    # Bullet itself limits speeds, so the state is spoilt by hand.
    monkeypatch.setattr(
        World, "body_transforms", lambda self: (np.nan * transforms(self)[0], transforms(self)[1])
    )
    simulation = Simulation(Character.from_motion(standing), standing)
    simulation.measures.maxima = dict.fromkeys(simulation.measures.maxima, np.inf)
    with pytest.raises(
        SimulationError, match=r"blew up at frame \d+, at the \w+: take softer gains"
    ):
        simulation.run()


def test_a_push_that_tears_a_limb_away_is_blamed_not_the_gains(standing):
    push = Push(0.5, 0.05, (1e4, 0.0, 0.0), "forearm_l")
    scenario = Scenario((replace(push, force=(9.0, 0.0, 0.0), segment="trunk"), push))
    simulation = Simulation(Character.from_motion(standing), standing, scenario=scenario)
    with pytest.raises(
        SimulationError, match=r"at the \w+: the push of 10000 N on the forearm l is too much, give"
    ):
        simulation.run()
    assert simulation._advice(0.4).startswith("take softer gains")  # before it
    assert simulation._advice(1.3).startswith("take softer gains")  # long after it


@pytest.mark.parametrize("samples", [0, 1])
def test_too_short_a_motion_is_refused(standing, samples):
    with pytest.raises(MotionError, match="at least two frames"):
        Motion("short", 60.0, standing.rotations[:samples], standing.positions[:samples])


def test_a_motion_that_is_not_a_number_is_refused(standing):
    positions = standing.positions.copy()
    positions[7, LANDMARK_INDEX["knee_l"], 1] = np.nan
    with pytest.raises(MotionError, match="'bad' is not a number at frame 8"):
        Motion("bad", 60.0, standing.rotations, positions)


def test_measures_of_a_bake(make_motion):
    """A body that is dragged forward slides as fast as that; one that hops is pulled down."""
    motion = make_motion(seconds=2)
    character = Character.from_motion(motion)
    dragged = make_motion(seconds=2)
    dragged.positions[..., 0] += (0.25 * np.arange(121) / 60)[:, None]
    dragged.positions[..., 2] -= 0.02
    contacts = np.ones((121, 2), bool)
    figures = measures_of_bake(character, motion, dragged, (contacts, contacts))
    assert figures["foot_slide"] == pytest.approx((0, 0.25), abs=1e-9)
    assert figures["foot_penetration"] == pytest.approx((0, 20), abs=0.5)
    assert figures["jitter"] == pytest.approx((0, 0), abs=1e-3)
    assert figures["zmp_inside"] == (1, 1)
    assert figures["pulls_on_ground"] == (0, 0)
    time = np.arange(121) / 60
    shaken = make_motion(seconds=2)
    shaken.positions[..., 2] += (0.1 * np.sin(2 * np.pi * 3 * time))[:, None]
    figures = measures_of_bake(character, motion, shaken, (contacts, contacts))
    assert figures["pulls_on_ground"][1] > 0.2
    # The third derivative of 0.1 sin(wt): mean size 0.1 w^3 2/pi, less what differences lose.
    assert figures["jitter"][1] == pytest.approx(0.1 * (6 * np.pi) ** 3 * 2 / np.pi, rel=0.05)
    none = measures_of_bake(character, motion, motion, (~contacts, ~contacts))
    assert none["foot_slide"] == (None, None)
    figures = measures_of_bake(character, dragged, motion, (contacts, ~contacts))
    assert figures["foot_slide"] == (pytest.approx(0.25), None), "each by its own contacts"


@pytest.mark.parametrize("balance", BALANCE_MODES)
def test_weights_of_the_stance_that_there_is(swinging, balance):
    """On both feet the weights of dual stance act, and those of single stance do not."""
    character = Character.from_motion(swinging)
    gains = Gains.default(character, balance)
    changes = ({}, {"single": 2 * gains.single}, {"dual": 2 * gains.dual})
    paths = []
    for change in changes:
        settings = Settings(balance=balance, duration=0.5)
        recording = Simulation(character, swinging, replace(gains, **change), settings).run()
        assert (recording.stance[1:] == DUAL).all()
        paths.append(recording.com)
    assert np.array_equal(paths[0], paths[1])
    assert not np.array_equal(paths[0], paths[2])


@pytest.mark.parametrize("size", [1.5, 2.3])
def test_giants_stand_as_people_do(standing, size):
    """At equal dynamics: what a giant's joints may give grows with its size."""
    giant = replace(standing, positions=size * standing.positions)
    character = Character.from_motion(giant)
    recording = Simulation(character, giant).run()
    assert recording.success, recording.why()
    assert recording.measures.maxima["torque_error"] > 1000 * (character.height / 2.2) ** 4
    assert recording.measures.maxima["stance_error"] == MAXIMA["stance_error"]


def test_the_floor_is_where_the_character_is(standing):
    """Sets are built kilometres away from the origin, too."""
    away = replace(standing, positions=standing.positions + [3140.0, -2710.0, 0.0])
    recording = Simulation(Character.from_motion(away), away).run()
    assert recording.success, recording.why()
    here = Simulation(Character.from_motion(standing), standing).run()
    drift = recording.root_displacement() - here.root_displacement()
    assert np.abs(drift).max() < 1e-4


@pytest.mark.parametrize("newtons, degrees", [(280, 105), (350, 165), (550, 315), (600, 135)])
def test_who_falls_flings_no_limb_in_the_last_sample(standing, newtons, degrees):
    """Which bakes hold to their end."""
    way = np.radians(degrees)
    push = Push(0.5, 0.2, newtons * np.array([np.cos(way), np.sin(way), 0.0]))
    scenario = Scenario(pushes=(push,))
    recording = Simulation(Character.from_motion(standing), standing, scenario=scenario).run()
    assert recording.fell_at is not None
    moved = np.linalg.norm(np.diff(recording.body_positions, axis=0), axis=2)
    assert (moved * standing.rate).max() < 15.0, "[m/s]"


def test_a_fall_that_the_engine_ends_is_called_that(standing):
    recording = Simulation(Character.from_motion(standing), standing).run()
    measures = recording.measures
    measures.values[-1] = (0.09, *measures.values[-1][1:])
    assert measures.end_fall()
    assert recording.why().endswith("the engine would fling its limbs about from here on.")
    measures.values[-1] = (0.13, *measures.values[-1][1:])
    assert recording.why().endswith("its pose is 0.130 m away from the animation's (at most 0.1).")

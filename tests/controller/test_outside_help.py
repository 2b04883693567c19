# SPDX-License-Identifier: GPL-3.0-or-later
"""Help from outside: what feet lack, no more than is allowed, and none where they bear all."""

import numpy as np
import pytest

from poise.controller import Character, Motion, Push, Scenario, Settings, Simulation
from poise.controller.control import foot_forces, outside
from poise.controller.control.outside import OutsideHelp, helped_strength, outside_words
from poise.controller.control.pressure import TWIST_SHARE
from poise.controller.exceptions import SettingsError
from poise.controller.geometry.rotations import (
    arctan2,
    exponential,
    matrix_from_quaternion,
    multiply,
    rotation_vector,
)
from poise.controller.geometry.skeleton import FEET
from poise.controller.search.correction import SIZE, Correction

G = 9.81


@pytest.fixture
def person(make_motion):
    motion = make_motion(seconds=2.0)
    return Character.from_motion(motion), motion


def pushed(person, share, force):
    """A recording of a push of 0.2 s forward [N], of a body that keeps its feet in place."""
    character, motion = person
    scenario = Scenario((Push(0.5, 0.2, (force, 0.0, 0.0)),)) if force else None
    settings = Settings(outside_help=share, recovery_steps=False)
    return Simulation(character, motion, settings=settings, scenario=scenario).run()


def test_each_of_both_is_shortened_to_its_limit(person):
    character, _ = person
    given = OutsideHelp(character)
    most = 0.25 * character.mass * G
    given.give(np.array([3.0, -4.0, 0.0, 0.0, 0.0, 5.0]), 0.25)
    assert given.wrench.tolist() == [3, -4, 0, 0, 0, 5]
    given.give(np.array([3e4, -4e4, 0.0, 0.0, 0.0, 5e4]), 0.25)
    assert given.wrench[:3] == pytest.approx([0.6 * most, -0.8 * most, 0])
    assert given.wrench[3:] == pytest.approx([0, 0, 0.3 * character.height * most])


def test_on_another_point_it_has_the_same_moment_about_any(person):
    given = OutsideHelp(person[0])
    given.give(np.array([30.0, 20.0, -10.0, 1.0, 2.0, 3.0]), 1.0)
    com, point, other = np.array([[0.1, 0.2, 1.0], [0.0, 0.3, 0.9], [5.0, -2.0, 1.0]])
    moved = given.at(com, point)
    about = given.wrench[3:] + np.cross(com - other, given.wrench[:3])
    assert moved[3:] + np.cross(point - other, moved[:3]) == pytest.approx(about)


def test_a_body_comes_back_to_its_place_without_swinging_past_it(person):
    """As anything that is damped critically, x(t) = x(0) (1 + w t) exp(-w t)."""
    character, _ = person
    given, step, frequency = OutsideHelp(character), 1e-4, 12.0
    off = np.zeros((2, 3))
    off[0] = 0.1, -0.05, 0.02
    start = off[0].copy()
    for count in range(5000):
        shown = (1 + frequency * count * step) * np.exp(-frequency * count * step)
        assert off[0] == pytest.approx(shown * start, abs=1e-4)
        off[1] -= step * given.back(off, 1.0) / character.mass
        off[0] += step * off[1]


def test_near_its_place_a_body_is_left_alone(person):
    given = OutsideHelp(person[0])
    for away, share, is_left in ((0.029, 0.5, True), (0.031, 0.5, False), (0.001, 1.0, False)):
        off = np.array([[away, 0.0, 0.0], [0.0, 1.0, 0.0]])
        assert (given.back(off, share) == 0).all() == is_left


def test_feet_are_turned_no_harder_than_for_the_farthest_angle(person):
    character, _ = person
    given = OutsideHelp(character)
    stiffness = 0.12 * character.mass * G * character.height
    given.turn((0.1, -3.0), 0.5)
    assert given.turns == pytest.approx([0.05 * stiffness, -0.3 * stiffness])
    given.turn((0.1, -3.0), 0.0)
    assert given.turns == [0.0, 0.0]


def test_joints_are_stronger_where_there_may_be_help(person):
    character, motion = person

    def limit(share):
        simulation = Simulation(character, motion, settings=Settings(outside_help=share))
        simulation.begin()
        return simulation.controller.limit

    assert limit(1.0) == pytest.approx(1.5 * limit(0.0))
    assert [helped_strength(share) for share in (0.0, 0.5)] == [1.0, 1.25]


def test_who_stands_by_himself_is_not_helped(person):
    helped, alone = (pushed(person, share, 0.0) for share in (0.5, 0.0))
    assert np.linalg.norm(helped.residual, axis=1).max() < 0.5
    assert np.abs(helped.body_positions - alone.body_positions).max() < 1e-3
    assert (alone.residual == 0).all() and alone.outside == ""
    # Where all of the weight may be help, who sways by a millimetre is brought back.
    forces = np.linalg.norm(pushed(person, 1.0, 0.0).residual[:, :3], axis=1)
    assert forces.max() < 0.005 * person[0].mass * G


def test_what_feet_lack_after_a_push_is_given(person):
    character, _ = person
    assert not pushed(person, 0.0, 300.0).success
    recording = pushed(person, 0.5, 300.0)
    assert recording.success, recording.why()
    sizes, most = np.linalg.norm(recording.residual[:, :3], axis=1), 0.5 * character.mass * G
    before = round(0.5 * recording.motion.rate)
    assert sizes[:before].max() < 0.5 and 0.2 * most < sizes.max() < 1.001 * most
    summary = recording.summary()
    assert summary["residual_most"] == pytest.approx(sizes.max())
    assert summary["residual"] == pytest.approx(sizes.mean())
    assert summary["help"] is None  # which is that of getting up
    assert f"{sizes.max():.0f} N at most" in recording.outside


def test_what_is_helped_twists_less_on_the_floor(make_motion, monkeypatch):
    """A foot near its limit pivots: of a twist that the floor just bears, help bears a part."""

    def shake(time):
        wave, zero = np.sin(2 * np.pi * 2.0 * time), np.zeros_like(time)
        return {"trunk": np.stack([zero, zero, 0.25 * wave], 1)}

    motion = make_motion(seconds=1.0, sway=shake)
    character = Character.from_motion(motion)

    def twisted():
        """The most that help turns the body about the vertical [N m]."""
        recording = Simulation(character, motion, settings=Settings(outside_help=0.5)).run()
        assert recording.success, recording.why()
        return np.abs(recording.residual[:, 5]).max()

    assert twisted() > 2.0
    monkeypatch.setattr(foot_forces, "HELPED_TWIST_SHARE", TWIST_SHARE)
    monkeypatch.setattr(outside, "_FOOT_TURN", 0.0)  # which turns the feet besides
    assert twisted() < 0.1


def test_what_stands_of_its_feet_is_turned_as_the_animation_turns_it(make_motion):
    """That much is in what is told of help."""
    still = make_motion(seconds=2.0)
    time = np.arange(len(still)) / still.rate
    turn = exponential((0.7 * np.clip(time - 0.5, 0, 1))[:, None] * [0.0, 0.0, 1.0])
    rotations = multiply(turn[:, None], still.rotations)
    around = still.positions - still.positions[:, :1] * [1, 1, 0]
    positions = np.einsum("fij,fkj->fki", matrix_from_quaternion(turn), around)
    motion = Motion("turning", still.rate, rotations, positions)
    character = Character.from_motion(motion)

    def off(share):
        recording = Simulation(character, motion, settings=Settings(outside_help=share)).run()
        assert recording.success, recording.why()
        frames = matrix_from_quaternion(recording.body_rotations[:, FEET[0]])
        heading = arctan2(frames[:, 1, 0], frames[:, 0, 0])
        wanted = rotation_vector(turn)[:, 2]
        return np.abs(heading - heading[0] - wanted).max(), recording.residual[:, 5]

    (alone, _), (helped, twist) = off(0.0), off(1.0)
    assert helped < 0.8 * alone
    assert twist.max() > 5.0


def test_more_than_it_may_be_it_is_not(person):
    assert not pushed(person, 0.02, 300.0).success


def test_it_is_in_words():
    assert outside_words(0.0, 0.0, 70.0) == ""
    assert outside_words(70.0, 350.0, 70.0) == (
        "Help from outside: 70 N in the mean, 350 N at most (10% and 51% of its weight)"
    )


def test_settings_that_have_none_are_written_as_before():
    assert "outside_help" not in Settings().as_dict()
    settings = Settings(outside_help=0.5)
    assert Settings.from_dict(settings.as_dict()) == settings


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan")])
def test_shares_are_from_0_to_1(share):
    with pytest.raises(SettingsError, match=r"A help from outside of .* is out of range"):
        Settings(outside_help=share)


def test_only_foot_forces_know_what_feet_lack():
    with pytest.raises(SettingsError, match="set Help from Outside to 0"):
        Settings(outside_help=0.5, balance="virtual_forces")


def test_what_is_rectified_is_not_helped(person):
    character, motion = person
    correction = Correction(6, np.zeros((4, SIZE)))
    with pytest.raises(SettingsError, match="a motion that needs no help"):
        Simulation(character, motion, settings=Settings(outside_help=0.5), correction=correction)

# SPDX-License-Identifier: GPL-3.0-or-later
"""Waypoints: steps that are moved whole, hips that go with them, and what no body reaches."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from poise.controller import Character, Scenario, Settings, Simulation
from poise.controller.exceptions import SettingsError
from poise.controller.gains.physics_weights import NAMES
from poise.controller.geometry.skeleton import FEET
from poise.controller.geometry.stance import runs
from poise.controller.reference.waypoints import (
    MOST_STEP,
    Detour,
    Waypoint,
    _passing,
    sampled,
)
from poise.controller.search.arrival import Arrival, arrival_words
from poise.controller.search.trial import Problem

RATE, END = 60.0, 6.0


@pytest.fixture
def steps(make_motion):
    """A person who lifts the left foot and the right foot in turn, every half second."""

    def lift(time):
        turns, zero = {}, np.zeros_like(time)
        for side, late in (("l", 0.0), ("r", 0.5)):
            x = 1 - np.abs((time - late) % 1.0 - 0.25) / 0.2
            x = np.clip(x, 0, 1) * (time < END - 0.6)
            bend = 0.7 * x * x * (3 - 2 * x)
            for part, much in (("thigh", -1), ("shin", 2), ("foot", -1)):
                turns[f"{part}_{side}"] = np.stack([zero, much * bend, zero], 1)
        return turns

    return make_motion(seconds=END, sway=lift)


@pytest.fixture
def character(steps):
    """Who does that."""
    return Character.from_motion(steps)


@pytest.fixture
def contacts(steps):
    """(F, 2) when the feet stand."""
    time = np.arange(len(steps)) / RATE
    swings = [np.abs((time - late) % 1.0 - 0.25) < 0.2 for late in (0.0, 0.5)]
    return ~np.stack(swings, 1) | (time >= END - 0.6)[:, None]


@pytest.fixture
def detour(steps, character, contacts):
    """The function detour(*waypoints) -> Detour."""
    trajectory = character.trajectory(steps)
    return lambda *waypoints: Detour(character, trajectory, contacts, waypoints, steps)


def way(time, x, y, name="Here"):
    """A waypoint off the place of who steps there."""
    return Waypoint(time, (x, y), name=name)


def pelvis_at(trajectory, time):
    """(2,) [m]."""
    return sampled(trajectory.root[:, :2], np.array([time * RATE]))[0]


# --- The curve ------------------------------------------------------------------------------------


def test_a_curve_goes_through_all_values_from_rest_to_rest():
    at, values = np.array([40.0, 90.0, 130.0]), np.array([0.3, -0.2, 0.1])
    curve = _passing(at, 200) @ values
    assert curve[[0, 40, 90, 130]] == pytest.approx([0, *values], abs=1e-12)
    assert curve[130:] == pytest.approx(values[-1])
    assert np.abs(np.diff(curve)[[0, 129]]).max() < 3e-3, "it begins and ends at rest"
    bends = np.diff(curve[:131], 2)
    assert np.abs(np.diff(bends)).max() < 1e-4, "no acceleration jumps at a value"


def test_no_other_curve_through_them_is_accelerated_less():
    at, values = np.array([40.0, 90.0]), np.array([0.3, 0.2])
    curve = _passing(at, 91) @ values
    grid = np.arange(91) / 90
    for bump in (np.sin(np.pi * grid) ** 2, np.sin(2 * np.pi * grid) ** 2):
        other = curve + 0.01 * bump * (np.arange(91) - 40) / 50  # 0 at all of them
        assert (np.diff(other, 2) ** 2).sum() > (np.diff(curve, 2) ** 2).sum()


# --- The steps ------------------------------------------------------------------------------------


def test_feet_stand_still_where_they_stood_still_and_hips_get_there(detour, character, contacts):
    found = detour(way(2.5, 0.2, 0.1), way(4.5, 0.1, -0.1))
    moved = found.moved()
    assert pelvis_at(moved, 2.5) == pytest.approx([0.2, 0.1], abs=1e-3)
    assert pelvis_at(moved, 4.5) == pytest.approx([0.1, -0.1], abs=1e-3)
    before, after = (character.pose(one)[0][:, FEET] for one in (found._clip.trajectory, moved))
    apart = after - before
    assert np.abs(apart[..., 2]).max() < 2e-3, "no foot rises or sinks"
    for foot in range(2):
        for start, stop in runs(contacts[:, foot]):
            assert np.ptp(apart[start:stop, foot], axis=0).max() < 2e-3
    assert np.abs(apart[0]).max() < 1e-3 and np.abs(moved.root[0, :2]).max() < 1e-9
    assert np.linalg.norm(apart[-1, 0] - apart[-1, 1]) < 0.05, "the feet end side by side"


def test_waypoints_on_the_way_change_nothing(detour):
    found = detour(Waypoint(2.5), way(END, 0.0, 0.0))
    assert found.moved() is found._clip.trajectory
    assert [one.place for one in found.waypoints] == [(0.0, 0.0), (0.0, 0.0)]


def test_leads_move_what_is_followed_and_not_what_is_asked_for(detour):
    found = detour(replace(way(2.5, 0.2, 0.0), lead=(0.05, 0.02)))
    assert pelvis_at(found.moved(), 2.5) == pytest.approx([0.2, 0.0], abs=1e-3)
    assert pelvis_at(found.moved(leading=True), 2.5) == pytest.approx([0.25, 0.02], abs=1e-3)


# --- What no body reaches -------------------------------------------------------------------------


def test_what_is_too_far_is_refused_and_how_near_it_gets_can_be_reached(detour):
    with pytest.raises(SettingsError) as refused:
        detour(way(1.5, 0.0, 0.1, "Door"), way(2.5, 0.0, 3.0, "Far"))
    told = str(refused.value)
    assert told.startswith("No body can be at the waypoint 'Far' at frame 151: the step at frame")
    assert f"{MOST_STEP:.2f} m is the most" in told
    away, x, y = map(float, re.search(r"be (\S+) m away .* X (\S+) m, Y (\S+) m:", told).groups())
    assert y + away == pytest.approx(3.0, abs=0.02) and 0.3 < y < 2.5
    detour(way(1.5, 0.0, 0.1), way(2.5, x, y))
    with pytest.raises(SettingsError):
        detour(way(1.5, 0.0, 0.1), way(2.5, x, y + 0.05))


def test_what_comes_too_soon_is_refused(detour):
    with pytest.raises(SettingsError, match=r"No body can be at .* at frame 11: "):
        detour(way(10 / RATE, 0.3, 0.0))


def test_who_does_not_step_leans_by_centimetres_and_no_more(standing):
    body = Character.from_motion(standing)
    trajectory, contacts = body.trajectory(standing), np.ones((len(standing), 2), bool)
    leaning = Detour(body, trajectory, contacts, [way(1.5, 0.02, 0.0)], standing).moved()
    assert pelvis_at(leaning, 1.5) == pytest.approx([0.02, 0.0], abs=1e-3)
    with pytest.raises(SettingsError, match=r"no foot steps there before\. It can be 0\.2"):
        Detour(body, trajectory, contacts, [way(1.5, 0.25, 0.0)], standing)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ((way(0.0, 0.1, 0.0, "A"),), "The waypoint 'A' is at frame 1; the body"),
        ((way(END + 1, 0.1, 0.0),), "simulated to frame 361: choose"),
        ((way(2.0, float("nan"), 0.0),), "not a number"),
        (
            (way(2.0, 0.1, 0.0, "the first"), way(2.0, 0.2, 0.0)),
            "'the first' and 'Here' are both",
        ),
    ],
)
def test_what_cannot_be_is_told(detour, given, told):
    with pytest.raises(SettingsError, match=told):
        detour(*given)


def test_loops_and_bodies_that_are_held_have_no_waypoints(steps, character):
    with pytest.raises(SettingsError, match="looped passes its waypoints again"):
        Settings(duration=20.0, waypoints=(Waypoint(1.0),))
    weights = {name: np.where(np.arange(len(steps)) < 60, 1.0, 0.0) for name in NAMES}
    with pytest.raises(SettingsError, match="stays where that is"):
        Simulation(
            character,
            steps,
            settings=Settings(waypoints=(Waypoint(1.0),)),
            scenario=Scenario(weights=weights),
        )


def test_settings_keep_waypoints_through_json():
    settings = Settings(waypoints=(way(1.0, 0.1, 0.2), Waypoint(2.0)))
    assert Settings.from_dict(json.loads(json.dumps(settings.as_dict()))) == settings
    assert "waypoints" not in Settings().as_dict(), "older files are still the same"


# --- The body -------------------------------------------------------------------------------------


@pytest.mark.slow(captured=False)
def test_a_body_gets_there_by_looking_where_it_came_to(steps):
    settings = Settings(waypoints=(way(3.0, 0.1, 0.1), way(END, 0.0, 0.0, "the end")))
    problem = Problem(steps, settings=settings)
    first = problem.simulation(None, 0)
    arrival = Arrival(problem, None, first)
    first.run()
    before = np.linalg.norm(first.recording.missed(), axis=1).max()
    while arrival.again():
        arrival.simulation.run()
    recording = arrival.simulation.recording
    after = np.linalg.norm(recording.missed(), axis=1).max()
    assert recording.success and after < 0.03 and after <= before
    places = [one.place for one in arrival.simulation.reference.waypoints]
    assert places == [(0.1, 0.1), (0.0, 0.0)], "what was asked for is what it is measured by"
    pelvis = recording.joints()[:, 0, :2]
    assert np.linalg.norm(pelvis[round(3.0 * RATE)] - [0.1, 0.1]) < 0.03
    assert recording.cleaned() is not None, "it is compared with the animation as it is moved"


def test_who_has_fallen_has_come_to_no_waypoint(make_motion):
    def topple(time):
        turn = np.clip(time - 0.5, 0, 1)
        return {"pelvis": np.stack([0 * turn, turn, 0 * turn], 1)}

    motion = make_motion(seconds=2.0, sway=topple)
    problem = Problem(motion, settings=Settings(waypoints=(Waypoint(0.2), Waypoint(2.0))))
    arrival = Arrival(problem, None, problem.simulation(None, 0))
    arrival.simulation.run()
    missed = arrival.simulation.recording.missed()
    assert np.isfinite(missed[0]).all() and np.isnan(missed[1]).all()


def test_words_of_a_waypoint():
    told = "The waypoint 'the end' at frame 194 is"
    assert arrival_words("the end", 194.0, 0.0123) == f"{told} reached within 1.2 cm"
    assert arrival_words("the end", 194.0, 0.0412) == f"{told} missed by 4.1 cm"
    assert "had fallen" in arrival_words("the end", 194.0, None)

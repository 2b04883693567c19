# SPDX-License-Identifier: GPL-3.0-or-later
"""The way of an endless walk: a body that is led comes to it; what the controller sees of it."""

from math import cos, hypot, pi, sin

import numpy as np
import pytest

from poise.controller.body.sole import Ground
from poise.controller.body.state import State
from poise.controller.geometry.rotations import rotation_about
from poise.controller.reference.way import Way

RATE = 75.0  # [Hz] at which it is steered
SPEED = 1.2  # [m/s]
STRAIGHT = ((0.0, 0.0), (30.0, 0.0))


def circle(radius):
    """Points of a circle from the origin to the left, begun along x."""
    angles = np.linspace(0, 2 * pi, 200, endpoint=False)
    return np.stack([radius * np.sin(angles), radius - radius * np.cos(angles)], 1).tolist()


def course(points, closed=False):
    return Way(points, closed, 1.3, SPEED, "Path").course()


def state_at(root, heading):
    """A body whose seven frames all head so, with its legs' joints around its root."""
    frames = np.broadcast_to(rotation_about(2, heading).T, (7, 3, 3)).copy()
    places = np.array(root) + np.vstack([np.zeros(3), np.eye(3), -np.eye(3)])
    return State(places, frames, np.zeros(1), np.zeros(7))


def led(way, start, seconds):
    """Places (n, 2) [m] of a body that goes on at its speed as the course turns it."""
    places = [np.array([*start, 0.9])]
    for _ in range(int(seconds * RATE)):
        state = state_at(places[-1], 0.0)
        way.show(state)
        way.steer(0, state.root, state.root, 1 / RATE)
        places.append(places[-1] + SPEED / RATE * np.array([cos(way.turn), sin(way.turn), 0]))
    return np.array(places)[:, :2]


def test_a_body_beside_its_way_comes_back_to_it():
    places = led(course(STRAIGHT), (0.0, 0.6), 10.0)
    assert abs(places[-1, 1]) < 0.02
    assert places[:, 1].min() > -0.1, "it does not cross to the other side"
    assert places[-1, 0] > 0.9 * 10 * SPEED


@pytest.mark.parametrize("radius", [1.5, 3.0])
def test_a_body_stays_on_a_circle(radius):
    places = led(course(circle(radius), True), (0.0, 0.0), 25.0)
    away = np.hypot(places[:, 0], places[:, 1] - radius) - radius
    assert np.abs(away).max() < 0.1, "round and round, however far it has come"
    assert hypot(*np.ptp(places, axis=0)) > 2 * radius


def test_who_is_slower_turns_later():
    """What turns a body is where it is, not when."""
    corner = ((0.0, 0.0), (4.0, 0.0), (4.0, 8.0))
    quick, slow = course(corner), course(corner)
    led(quick, (0.0, 0.0), 1.5)
    place = np.array([0.0, 0.0, 0.9])
    for _ in range(int(1.5 * RATE)):
        state = state_at(place, 0.0)
        slow.show(state)
        slow.steer(0, state.root, state.root, 1 / RATE)
        place = place + 0.5 * SPEED / RATE * np.array([1.0, 0, 0])
    assert slow.turn == pytest.approx(0, abs=0.01)
    assert led(quick, (1.8, 0.0), 8.0)[-1, 0] == pytest.approx(4.0, abs=0.1)
    assert quick.turn == pytest.approx(pi / 2, abs=0.05)


def test_what_is_seen_turns_about_the_body():
    way = course(circle(2.0), True)
    led(way, (0.0, 0.0), 2.0)
    root, heading = [0.3, -0.2, 0.9], 0.4
    before = state_at(root, heading)
    way.show(before)
    way.steer(0, before.root, before.root, 1 / RATE)
    after = state_at(root, heading)
    way.show(after)
    np.testing.assert_allclose(after.root, before.root, atol=1e-12)
    turned = before.frame.T @ after.frame
    assert turned[0, 1] == pytest.approx(sin(way.rate / RATE), abs=1e-9)
    arm = after.positions - after.root
    np.testing.assert_allclose(np.linalg.norm(arm, axis=1), 1.0)
    np.testing.assert_allclose(
        way.outside(after.positions), state_at(root, heading).positions, atol=1e-12
    )


def test_a_slope_is_seen_with_the_height_that_it_has():
    way = course(circle(2.0), True)
    led(way, (0.0, 0.0), 2.0)
    ground = Ground(0.5, -0.3, 0.2, 0.1, -0.05)
    place = np.array([[0.8, 0.4, 0.0]])
    seen = state_at(place[0], 0.0)
    way.show(seen)
    x, y, _ = seen.root.tolist()
    assert way.inside(ground).at(x, y) == pytest.approx(ground.at(0.8, 0.4))


def test_a_standing_foot_keeps_the_heading_in_which_it_landed():
    way = course(circle(2.0), True)
    assert way.stand(0, 0.2) == 0
    turned = way.turn
    led(way, (0.0, 0.0), 1.0)
    assert way.turn > turned + 0.2
    # Unmoved in the world it is seen turned back by as much: it has nothing to turn.
    assert way.stand(0, 0.2 - (way.turn - turned)) == pytest.approx(0)
    assert way.stand(0, 0.2) == pytest.approx(turned - way.turn)
    way.lift(0)
    assert way.stand(0, 0.2) == 0


def test_a_course_goes_on_as_it_did_before():
    way = course(circle(2.0), True)
    led(way, (0.0, 0.0), 1.0)
    way.stand(1, 0.1)
    memory = way.memory()
    places = led(way, (1.0, 0.2), 1.0)
    way.lift(1)
    way.recall(memory)
    np.testing.assert_array_equal(led(way, (1.0, 0.2), 1.0), places)
    assert way.stand(1, 0.1 - way.turn) == pytest.approx(memory.turn)

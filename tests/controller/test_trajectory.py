# SPDX-License-Identifier: GPL-3.0-or-later
import numpy as np
import pytest

from poise.controller import Character
from poise.controller.geometry.rotations import exponential
from poise.controller.geometry.trajectory import butterworth, low_passed_rotations, low_passed_turns

RATE = 60.0
TIME = np.arange(241) / RATE


@pytest.mark.parametrize("frequency, gain", [(0.5, 0.99976), (4.0, 0.5), (16.0, 1 / 257)])
def test_gain_of_both_passes(frequency, gain):
    """1 / (1 + (f / 4 Hz)^4), without a shift in time."""
    wave = np.sin(2 * np.pi * frequency * TIME)[:, None]
    smooth, _ = butterworth(wave, RATE, 4.0)
    middle = slice(60, 180)
    fitted = (smooth[middle] * wave[middle]).sum() / (wave[middle] ** 2).sum()
    assert fitted == pytest.approx(gain, rel=0.02, abs=0.001)
    assert np.abs(smooth - gain * wave)[middle].max() < 0.02


def test_turns_stay_away_where_nothing_turns():
    """What begins late does not reach back, and is filtered as it would be alone."""
    vectors = np.zeros((len(TIME), 2, 3))
    vectors[80:160, 0, 2] = 0.3 * np.sin(np.arange(1, 81) / 3)
    vectors[200:, 1, 0] = 0.2 * np.arange(41) / 40
    turns = exponential(vectors)
    slow = low_passed_turns(turns, RATE, 6.0)
    still = np.r_[:80, 160:201]
    assert np.abs(slow[still, :, 1:]).max() < 1e-8
    assert slow[79:161] == pytest.approx(low_passed_rotations(turns[79:161], RATE, 6.0))
    assert slow[200:] == pytest.approx(low_passed_rotations(turns[200:], RATE, 6.0))
    assert np.abs(slow[80:160, 0, 3]).max() > 0.05


def test_slopes_are_derivatives_up_to_the_ends():
    values = np.stack([np.sin(2 * TIME), 0.3 * TIME + 1, np.full_like(TIME, 2.0)], 1)
    smooth, slopes = butterworth(values, RATE, 8.0)
    exact = np.stack([2 * np.cos(2 * TIME), np.full_like(TIME, 0.3), 0 * TIME], 1)
    assert np.abs(slopes - exact)[10:-10].max() < 0.01
    assert np.abs(slopes[[0, -1]] - exact[[0, -1]]).max() < 0.15
    assert np.abs(smooth - values).max() < 0.01


@pytest.fixture
def swing(make_motion, arms_swing):
    motion = make_motion(seconds=1.7, sway=arms_swing)
    return Character.from_motion(motion).trajectory(motion)


def test_a_loop_repeats_the_clip(swing):
    looped, period = swing.looped(10.0, np.array([0.5, 0, 0]))
    assert len(looped) == 601
    count = len(swing)
    assert period >= count + 0.5 * RATE - 1
    for start in range(0, 600 - count, period):
        assert np.array_equal(looped.angles[start : start + count], swing.angles)
        moved = swing.root + [0.5 * start / period, 0, 0]
        assert np.allclose(looped.root[start : start + count], moved)


def test_the_seam_of_a_loop_is_no_faster_than_the_clip(swing):
    looped, _ = swing.looped(10.0, np.zeros(3))
    own = np.abs(np.diff(swing.angles, axis=0)).max(0)
    seam = np.abs(np.diff(looped.angles, axis=0)).max(0)
    assert (seam <= np.maximum(own, np.median(own)) * 1.05 + 1e-9).all()


def test_a_clip_longer_than_the_loop_is_cut(swing):
    looped, _ = swing.looped(0.5, np.zeros(3))
    assert len(looped) == 31
    assert np.array_equal(looped.angles, swing.angles[:31])

# SPDX-License-Identifier: GPL-3.0-or-later
"""A motion in a character's own coordinates: smoothing, derivatives, looping."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .rotations import continuous, exponential, multiply, rotation_vector, unit

#: A loop's end is blended into its start over so long [s], as `measures.md` has it, at most so long
#: where the clip is slow, and in so long its speed dies away in a blend: by trial.
_MIN_BLEND, _MAX_BLEND, _COAST = 0.5, 3.0, 0.2
_LONGER = 0.1  # [s] by which longer blends are tried
_LOOP_CUTOFF = 6.0  # [Hz] of the speeds at its ends, as of travelling clips
_STILL = 1e-9  # no turn but for rounding


@dataclass(frozen=True)
class Trajectory:
    """A motion in the character's own coordinates.

    rate: samples per second [Hz]. root: (samples, 3) pelvis landmark [m]. rotation: (samples, 4)
    pelvis frame, w first. angles: (samples, dofs) joint angles [rad], continuous in time.
    """

    rate: float
    root: np.ndarray
    rotation: np.ndarray
    angles: np.ndarray

    def __len__(self) -> int:
        return len(self.root)

    def smoothed(self, cutoff: float) -> "Smoothed":
        """Low-passed trajectory and its velocities.

        cutoff [Hz]: a second-order Butterworth run forwards and backwards, so without lag.
        """
        columns = np.concatenate([self.root, continuous(self.rotation), self.angles], 1)
        values, slopes = butterworth(columns, self.rate, cutoff)
        size = np.linalg.norm(values[:, 3:7], axis=1, keepdims=True)
        rotation = values[:, 3:7] / size
        slope = slopes[:, 3:7] / size
        conjugate = rotation * [1, -1, -1, -1]
        angular = 2 * multiply(slope, conjugate)[:, 1:]
        smooth = Trajectory(self.rate, values[:, :3], rotation, values[:, 7:])
        return Smoothed(smooth, slopes[:, :3], angular, slopes[:, 7:])

    def looped(self, duration: float, travel: np.ndarray) -> tuple["Trajectory", int]:
        """Repeat the trajectory until it lasts `duration` [s].

        travel: (3,) displacement [m] from the first sample to the first of the next round. The
        end is blended into the start over as long as nothing moves or accelerates faster in it
        than in the clip (or than the clip's median joint), from 0.5 to 3 s. Returns the
        trajectory and its period in samples.
        """
        count = round(duration * self.rate) + 1
        if len(self) >= count:
            cut = Trajectory(
                self.rate, self.root[:count], self.rotation[:count], self.angles[:count]
            )
            return cut, count
        bridge = self._bridge(travel)
        period = len(self) + len(bridge)
        rounds = -(-count // period)
        root = [np.concatenate([self.root, bridge.root]) + k * travel for k in range(rounds)]
        rotation = np.concatenate([self.rotation, bridge.rotation])
        angles = np.concatenate([self.angles, bridge.angles])
        looped = Trajectory(
            self.rate,
            np.concatenate(root)[:count],
            continuous(np.tile(rotation, (rounds, 1))[:count]),
            np.tile(angles, (rounds, 1))[:count],
        )
        return looped, period

    def _bridge(self, travel: np.ndarray) -> "Trajectory":
        """The samples between the last one and the first of the next round."""
        smooth, velocity, _, speeds = self.smoothed(_LOOP_CUTOFF)
        limits = _extremes(np.concatenate([smooth.root, smooth.angles], 1), self.rate)
        # What hardly moves in the clip may move as much as most of it does.
        limits = np.maximum(limits, np.median(limits[:, 3:], axis=1, keepdims=True))
        turns = 2 * np.pi * np.round((self.angles[-1] - self.angles[0]) / (2 * np.pi))
        start = np.concatenate([self.root[-1], self.angles[-1]])
        # A joint angle that went round fully in the clip takes the short way back.
        goal = np.concatenate([self.root[0] + travel, self.angles[0] + turns])
        leave = np.concatenate([velocity[-1], speeds[-1]])
        arrive = np.concatenate([velocity[0], speeds[0]])
        turn = rotation_vector(multiply(self.rotation[-1] * [1, -1, -1, -1], self.rotation[0]))
        steps = round(_MIN_BLEND * self.rate)
        while True:
            time = np.arange(1, steps)[:, None] / self.rate
            left = steps / self.rate - time
            x = time / (steps / self.rate)
            weight = x**3 * (10 - 15 * x + 6 * x**2)
            settle = start + leave * _COAST * (1 - np.exp(-time / _COAST))
            depart = goal - arrive * _COAST * (1 - np.exp(-left / _COAST))
            path = (1 - weight) * settle + weight * depart
            whole = np.concatenate([start[None], path, goal[None]])
            fast = _extremes(whole, self.rate)
            if steps >= _MAX_BLEND * self.rate or (fast <= limits).all():
                break
            steps += max(1, round(_LONGER * self.rate))
        rotation = multiply(self.rotation[-1], exponential(weight * turn))
        return Trajectory(self.rate, path[:, :3], rotation, path[:, 3:])


class Smoothed(NamedTuple):
    """A low-passed trajectory and how fast it is: velocity (F, 3) of the root [m/s], angular (F, 3)
    of the pelvis in the world [rad/s], speeds (F, dofs) of the joints [rad/s]."""

    trajectory: Trajectory
    velocity: np.ndarray
    angular: np.ndarray
    speeds: np.ndarray


def _extremes(path: np.ndarray, rate: float) -> np.ndarray:
    """(2, n) largest speed and acceleration of (samples, n) values."""
    return np.stack([np.abs(np.diff(path, k, axis=0)).max(0) * rate**k for k in (1, 2)])


def butterworth(values: np.ndarray, rate: float, cutoff: float) -> tuple[np.ndarray, np.ndarray]:
    """Zero-phase second-order Butterworth low-pass of (samples, n) values, and the derivative.

    Filters in the frequency domain with the gain of a forward and a backward pass,
    1 / (1 + (f / cutoff)^4). The ends are continued by odd reflection over at least 0.3 s,
    without which the first velocities are wrong.
    """
    count = len(values)
    # A second, where the clip is as long: well more than that.
    pad = min(count - 1, max(round(rate), 8)) if count > 1 else 0
    before = 2 * values[0] - values[pad:0:-1]
    after = 2 * values[-1] - values[-2 : -pad - 2 : -1]
    extended = np.concatenate([before, values, after])
    # A straight line through the ends is taken out, so that the periodic continuation of the
    # Fourier transform has no jump.
    total = len(extended)
    line = np.linspace(0, 1, total)[:, None] * (extended[-1] - extended[0])
    spectrum = np.fft.rfft(extended - line, axis=0)
    frequency = np.fft.rfftfreq(total, 1 / rate)[:, None]
    spectrum = spectrum / (1 + (frequency / cutoff) ** 4)
    window = slice(pad, pad + count)
    smooth = np.fft.irfft(spectrum, total, axis=0) + line
    slope = np.fft.irfft(spectrum * (2j * np.pi * frequency), total, axis=0)
    slope = slope + (extended[-1] - extended[0]) / (total - 1) * rate
    return smooth[window], slope[window]


def low_passed_rotations(rotations: np.ndarray, rate: float, cutoff: float) -> np.ndarray:
    """(F, ..., 4) quaternions without what is faster than `cutoff` [Hz]; constant ones stay."""
    flat = continuous(rotations).reshape(len(rotations), -1)
    return unit(butterworth(flat, rate, cutoff)[0].reshape(rotations.shape))


def bell(values: np.ndarray, seconds: float, rate: float) -> np.ndarray:
    """(F,) values, averaged over a bell of so many seconds."""
    width = max(1, round(seconds * rate)) | 1
    bell = np.hanning(width + 2)[1:-1]
    padded = np.pad(values, width // 2, mode="edge")
    return np.convolve(padded, bell / bell.sum(), "valid")


def linear(values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """(n, ...) of values (samples, ...) at places (n,) among the samples, straight between them."""
    low = np.minimum(at.astype(int), len(values) - 2)
    part = (at - low).reshape(-1, *([1] * (values.ndim - 1)))
    return values[low] + part * (values[low + 1] - values[low])


def eased(x: np.ndarray) -> np.ndarray:
    """Shares x, limited to 0..1, that begin and end level."""
    x = np.clip(x, 0, 1)
    return x * x * (3 - 2 * x)


def low_passed_turns(turns: np.ndarray, rate: float, cutoff: float) -> np.ndarray:
    """(F, S, 4) quaternions, as `low_passed_rotations`. Where none of them turns anything they go
    on doing so: each stretch between is filtered alone, from rest to rest."""
    result = turns.copy()
    still = np.concatenate([[True], (np.abs(turns[..., 1:]) < _STILL).all((1, 2)), [True]])
    edges = np.flatnonzero(np.diff(still.astype(int))).reshape(-1, 2)
    for first, stop in edges:
        stretch = slice(max(first - 1, 0), stop + 1)
        result[stretch] = low_passed_rotations(turns[stretch], rate, cutoff)
    return result

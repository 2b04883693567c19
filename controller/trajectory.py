# SPDX-License-Identifier: GPL-3.0-or-later
"""A motion in a character's own coordinates: smoothing, derivatives, looping."""

from dataclasses import dataclass

import numpy as np

from .rotations import continuous, multiply, rotation_vector

_MIN_BLEND = 0.5  # [s]
_MAX_BLEND = 3.0  # [s]


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

    def __len__(self):
        return len(self.root)

    def smoothed(self, cutoff):
        """Low-passed trajectory and its velocities.

        cutoff [Hz]: a second-order Butterworth run forwards and backwards, so without lag.
        Returns (trajectory, root velocity (F, 3) [m/s], angular velocity (F, 3) [rad/s, world],
        joint velocities (F, dofs) [rad/s]).
        """
        columns = np.concatenate([self.root, continuous(self.rotation), self.angles], 1)
        values, slopes = butterworth(columns, self.rate, cutoff)
        size = np.linalg.norm(values[:, 3:7], axis=1, keepdims=True)
        rotation = values[:, 3:7] / size
        slope = slopes[:, 3:7] / size
        conjugate = rotation * [1, -1, -1, -1]
        angular = 2 * multiply(slope, conjugate)[:, 1:]
        smooth = Trajectory(self.rate, values[:, :3], rotation, values[:, 7:])
        return smooth, slopes[:, :3], angular, slopes[:, 7:]

    def looped(self, duration, travel):
        """Repeat the trajectory until it lasts `duration` [s].

        travel: (3,) displacement [m] from the first sample to the first of the next round. The
        end is blended into the start by quintic polynomials over as long as no joint gets faster
        in it than in the clip (or than the clip's median joint), from 0.5 to 3 s.
        """
        count = round(duration * self.rate) + 1
        if len(self) >= count:
            return Trajectory(
                self.rate, self.root[:count], self.rotation[:count], self.angles[:count]
            )
        bridge = self._bridge(travel)
        period = len(self) + len(bridge)
        rounds = -(-count // period)
        root = [np.concatenate([self.root, bridge.root]) + k * travel for k in range(rounds)]
        rotation = np.concatenate([self.rotation, bridge.rotation])
        angles = np.concatenate([self.angles, bridge.angles])
        return Trajectory(
            self.rate,
            np.concatenate(root)[:count],
            continuous(np.tile(rotation, (rounds, 1))[:count]),
            np.tile(angles, (rounds, 1))[:count],
        )

    def _bridge(self, travel):
        """The samples between the last one and the first of the next round."""
        smooth, velocity, _, speeds = self.smoothed(6.0)
        fastest = np.abs(speeds).max(0)
        allowed = np.maximum(fastest, np.median(fastest))
        start = np.concatenate([self.root[-1], self.angles[-1]])
        turns = 2 * np.pi * np.round((self.angles[-1] - self.angles[0]) / (2 * np.pi))
        # A joint angle that went round fully in the clip takes the short way back.
        goal = np.concatenate([self.root[0] + travel, self.angles[0] + turns])
        leave = np.concatenate([velocity[-1], speeds[-1]])
        arrive = np.concatenate([velocity[0], speeds[0]])
        turn = rotation_vector(multiply(self.rotation[-1] * [1, -1, -1, -1], self.rotation[0]))
        steps = round(_MIN_BLEND * self.rate)
        while True:
            x = np.arange(1, steps) / steps
            time = steps / self.rate
            path = _quintic(x, start, goal, leave * time, arrive * time)
            fast = np.abs(np.diff(path[:, 3:], axis=0)).max(0) * self.rate
            if steps >= _MAX_BLEND * self.rate or (fast <= allowed * 1.001).all():
                break
            steps += max(1, round(0.1 * self.rate))
        weight = _quintic(x, np.zeros(1), np.ones(1), np.zeros(1), np.zeros(1))
        rotation = multiply(self.rotation[-1], _exponential(weight * turn))
        return Trajectory(self.rate, path[:, :3], rotation, path[:, 3:])


def _quintic(x, start, goal, leave, arrive):
    """Polynomials (len(x), n) with given ends and slopes, and no acceleration at the ends."""
    x = x[:, None]
    blend = x**3 * (10 - 15 * x + 6 * x**2)
    first = x - x**3 * (6 - 8 * x + 3 * x**2)
    last = -(x**3) * (4 - 7 * x + 3 * x**2)
    return start + (goal - start) * blend + leave * first + arrive * last


def _exponential(vectors):
    """(..., 3) exponential maps to unit quaternions."""
    angle = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.concatenate([np.cos(angle / 2), 0.5 * np.sinc(angle / 2 / np.pi) * vectors], -1)


def butterworth(values, rate, cutoff):
    """Zero-phase second-order Butterworth low-pass of (samples, n) values, and the derivative.

    Filters in the frequency domain with the gain of a forward and a backward pass,
    1 / (1 + (f / cutoff)^4). The ends are continued by odd reflection over at least 0.3 s,
    without which the first velocities are wrong.
    """
    count = len(values)
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

# SPDX-License-Identifier: GPL-3.0-or-later
"""The four error measures, early termination and the reward (SCA12, section 3.3)."""

from dataclasses import dataclass, field

import numpy as np

from ..geometry.stance import DUAL, FLIGHT, LEFT, RIGHT, giant_size

NAMES = ("pose_error", "stance_error", "slide_error", "torque_error")
UNITS = {"pose_error": "m", "stance_error": "share", "slide_error": "m/s", "torque_error": "N m"}
MAXIMA = {"pose_error": 0.1, "stance_error": 0.5, "slide_error": 0.25, "torque_error": 1000.0}
#: Factors on the maxima. Of clips that travel: soles that roll over heel and toes count as sliding.
TRAVELLING = {"slide_error": 4.0}
#: Of endless walks: pushed walkers step elsewhere, too.
WALKING = TRAVELLING | {"pose_error": 2.0}

#: How maxima grow with the height of a giant, at equal dynamics (Froude).
_GROWTH = {"pose_error": 1.0, "slide_error": 0.5, "torque_error": 4.0}

WINDOW = 2.0  # [s]
_SHORTEST_WINDOW = 0.5  # [s]: else one contact-less first step ends the trial
T_MAX = 20.0  # [s]
BONUS = 1.0


def pose_error(shares, centres, com, reference_centres, reference_com):
    """SCA12's e_pose [m]: mean distance of body centres (S, 3), weighted with their shares (S,)
    of the mass, each relative to its own body's centre of mass (3,)."""
    apart = centres - reference_centres
    apart -= com - reference_com
    return float(np.sqrt((apart * apart).sum(-1)) @ shares)


def slide_speed(stance, foot_speeds):
    """Horizontal speed of the stance foot [m/s], both feet's sum in dual stance; foot_speeds
    (2,)."""
    if stance == DUAL:
        return foot_speeds[0] + foot_speeds[1]
    if stance == LEFT:
        return foot_speeds[0]
    return foot_speeds[1] if stance == RIGHT else 0.0


def for_giants(maxima, height):
    """Largest allowed errors {name: value} of a body of that height [m]: those of people, larger
    for what is taller than any of them."""
    size = giant_size(height)
    return {name: size ** _GROWTH.get(name, 0.0) * value for name, value in maxima.items()}


@dataclass
class Measures:
    """Running errors of one simulation.

    rate: samples per second [Hz]. maxima: largest allowed errors. ending: names of those that end
    the trial where their maximum is exceeded. Add one sample at a time.
    """

    rate: float
    maxima: dict = field(default_factory=lambda: dict(MAXIMA))
    ending: tuple = NAMES
    fell_at: float | None = None
    fell_measure: str | None = None
    values: list = field(default_factory=list)
    _raw: list = field(default_factory=list)
    _sums: list = field(default_factory=lambda: [(0.0, 0.0, 0.0)])  # after each sample

    def add(self, pose, stance_differs, slide, torque):
        """Take the momentary errors of a sample and update the windowed ones. Returns False when
        a maximum is exceeded."""
        raw, sums = self._raw, list(self._sums[-1])
        now = (float(stance_differs), float(slide), float(torque))
        raw.append(now)
        length = max(1, round(WINDOW * self.rate))
        leaving = raw[-1 - length] if len(raw) > length else (0.0, 0.0, 0.0)
        for i in range(3):
            sums[i] += now[i] - leaving[i]
        self._sums.append(tuple(sums))
        size = max(min(len(raw), length), _SHORTEST_WINDOW * self.rate)
        values = (float(pose), *(max(0.0, total / size) for total in sums))
        self.values.append(values)
        for name, value in zip(NAMES, values, strict=True):
            if not value <= self.maxima[name] and name in self.ending:
                if self.fell_at is None:  # a rectified motion may come back
                    self.fell_at, self.fell_measure = self.duration, name
                return False
        return True

    def keep(self, count):
        """Forget all samples but the first `count`."""
        del self.values[count:], self._raw[count:], self._sums[count + 1 :]
        self.fell_at = self.fell_measure = None

    def end_fall(self):
        """End the trial at the newest sample, if a measure is past half of its maximum there.
        Returns whether one is."""
        last = self.values[-1] if self.values else ()
        shares = [value / self.maxima[name] for name, value in zip(NAMES, last, strict=False)]
        if not max(shares, default=0.0) >= 0.5:
            return False
        self.fell_at, self.fell_measure = self.duration, NAMES[shares.index(max(shares))]
        return True

    @property
    def duration(self):
        """Time until termination [s]."""
        return max(0.0, (len(self._raw) - 1) / self.rate)

    def averages(self):
        """Mean of each error until termination, by name."""
        return dict(zip(NAMES, np.mean(self.values, axis=0).tolist(), strict=True))

    def reward(self, t_max):
        """SCA12, equation 21, for a trial of t_max [s]."""
        reached = min(1.0, self.duration / t_max) if t_max > 0 else 1.0
        averages = self.averages()
        share = np.mean([1 - averages[n] / self.maxima[n] for n in NAMES])
        return float(reached + BONUS * reached * share)


__all__ = ["FLIGHT", "MAXIMA", "NAMES", "T_MAX", "UNITS", "Measures", "pose_error", "slide_speed"]

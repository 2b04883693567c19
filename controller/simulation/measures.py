# SPDX-License-Identifier: GPL-3.0-or-later
"""The four error measures, early termination and the reward (SCA12, section 3.3)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..geometry.stance import DUAL, LEFT, RIGHT, giant_size
from ..options import Option
from ..ranges import Range


@dataclass(frozen=True)
class Measure:
    """One error of a trial.

    range: of the largest allowed one. maximum: that of people (SCA12, section 4). averaged: it
    is a mean over the last WINDOW seconds. travelling, walking: factors on the maximum for clips
    that travel and for endless walks; helped: one for all of the weight as help from outside, by
    which it can come back. growth: how the maximum grows with the height of a giant, at equal
    dynamics (Froude). label, form: name and value of it in a table. words: what its maximum
    does. ended, told: why a trial ended, in a few words and in a sentence with {value} and {limit}.
    """

    range: Range
    maximum: float
    label: str
    form: str
    words: str
    ended: str
    told: str
    averaged: bool = True
    travelling: float = 1.0
    walking: float = 1.0
    helped: float = 1.0
    growth: float = 0.0

    def told_of(self, value: float, limit: float) -> str:
        """Why a trial ended, with so many digits that a value beyond its limit reads as one."""
        usual = self.told.partition("{value:")[2].partition("}")[0]
        for more in range(4):
            spec = f".{int(usual[1]) + more}{usual[2]}"
            told = self.told.replace(usual, spec, 1)
            if format(value, spec) != format(limit, spec):
                break
        return told.format(value=value, limit=limit)

    @property
    def unit(self) -> str:
        """Of its values."""
        return self.range.unit

    @property
    def option(self) -> Option:
        """Its maximum, to be chosen."""
        return Option(
            self.maximum,
            f"{self.label.title()} ({self.unit})",
            self.words,
            self.range,
            most=10 * self.maximum,
            step=self.maximum / 10,
            digits=0 if self.maximum > 100 else 3,
        )


#: By name, in the order of `Measures.add`.
MEASURES = {
    "pose_error": Measure(
        Range("pose error", 0.001, 10, "m"),
        0.1,
        "Pose",
        "{:.3f} m",
        "A trial ends where the body is this far from its pose [m]",
        "too far from its pose",
        "its pose is {value:.3f} m away from the animation's (at most {limit:g})",
        averaged=False,
        walking=2.0,  # pushed walkers step elsewhere; by trial on endless walks
        helped=4.0,  # by trial on PyBullet's spin and backflip, which come back
        growth=1.0,
    ),
    "stance_error": Measure(
        Range("share of wrong feet", 0.01, 1, "share"),
        0.5,
        "Wrong feet",
        "{:.0%}",
        "A trial ends where other feet stand than in the animation for this share of 2 s [share]",
        "on the wrong feet",
        "its feet stand otherwise than in the animation for {value:.0%} of 2 s "
        "(at most {limit:.0%})",
    ),
    "slide_error": Measure(
        Range("sliding speed", 0.001, 100, "m/s"),
        0.25,
        "Foot slide",
        "{:.3f} m/s",
        "A trial ends where the feet slide faster [m/s]",
        "the feet slide",
        "the feet slide at {value:.3f} m/s (at most {limit:g})",
        # Soles that roll over heel and toes count as sliding. By trial on captured walks.
        travelling=4.0,
        walking=4.0,
        growth=0.5,
    ),
    "torque_error": Measure(
        Range("torque", 1, 1e6, "N m"),
        1000.0,
        "Torque",
        "{:.0f} N m",
        "A trial ends where all joints together need more torque [N m]",
        "too much torque",
        "the joints need {value:.0f} N m together (at most {limit:g})",
        growth=4.0,
    ),
}
NAMES = tuple(MEASURES)
UNITS = {name: measure.unit for name, measure in MEASURES.items()}
MAXIMA = {name: measure.maximum for name, measure in MEASURES.items()}
LIMITS = {name: measure.option for name, measure in MEASURES.items()}

WINDOW = 2.0  # [s]: SCA12, section 3.3
#: [s]: else one contact-less first step ends the trial. By trial, on a first prototype.
_SHORTEST_WINDOW = 0.5
T_MAX = 20.0  # [s]: SCA12, section 4
BONUS = 1.0  # w_bonus of SCA12, equation 21
#: Share of its maximum from which a measure counts as the end of a fall. By trial.
_FALLING = 0.5


def pose_error(
    shares: np.ndarray,
    centres: np.ndarray,
    com: np.ndarray,
    reference_centres: np.ndarray,
    reference_com: np.ndarray,
) -> float:
    """SCA12's e_pose [m]: mean distance of body centres (S, 3), weighted with their shares (S,)
    of the mass, each relative to its own body's centre of mass (3,)."""
    apart = centres - reference_centres
    apart -= com - reference_com
    return float(np.sqrt((apart * apart).sum(-1)) @ shares)


def slide_speed(stance: int, foot_speeds: Sequence[float]) -> float:
    """Horizontal speed of the stance foot [m/s], both feet's sum in dual stance; foot_speeds
    (2,)."""
    if stance == DUAL:
        return foot_speeds[0] + foot_speeds[1]
    if stance == LEFT:
        return foot_speeds[0]
    return foot_speeds[1] if stance == RIGHT else 0.0


def for_motion(maxima: dict[str, float], travels: bool, endless: bool) -> dict[str, float]:
    """Largest allowed errors {name: value} of a clip that stays, of one that travels, or of an
    endless walk, from those of the first."""
    if not travels:
        return maxima
    kind = "walking" if endless else "travelling"
    return {name: getattr(MEASURES[name], kind) * value for name, value in maxima.items()}


def for_helped(maxima: dict[str, float], share: float) -> dict[str, float]:
    """Largest allowed errors {name: value} where help from outside may be that share of the weight,
    from those without."""
    return {n: (1 + share * (MEASURES[n].helped - 1)) * value for n, value in maxima.items()}


def for_giants(maxima: dict[str, float], height: float) -> dict[str, float]:
    """Largest allowed errors {name: value} of a body of that height [m]: those of people, larger
    for what is taller than any of them."""
    size = giant_size(height)
    return {name: size ** MEASURES[name].growth * value for name, value in maxima.items()}


@dataclass
class Measures:
    """Running errors of one simulation.

    rate: samples per second [Hz]. maxima: largest allowed errors. ending: names of those that end
    the trial where their maximum is exceeded. Add one sample at a time.
    """

    rate: float
    maxima: dict[str, float] = field(default_factory=lambda: dict(MAXIMA))
    ending: tuple[str, ...] = NAMES
    fell_at: float | None = None
    fell_measure: str | None = None
    values: list[tuple[float, ...]] = field(default_factory=list)
    _raw: list[tuple[float, ...]] = field(default_factory=list)
    #: After each sample.
    _sums: list[tuple[float, ...]] = field(default_factory=lambda: [(0.0,) * len(NAMES)])

    def add(self, *errors: float) -> bool:
        """Take the momentary errors of a sample, in the order of MEASURES, and update the windowed
        ones. Returns False when a maximum is exceeded."""
        raw, now = self._raw, tuple(map(float, errors))
        raw.append(now)
        length = max(1, round(WINDOW * self.rate))
        leaving = raw[-1 - length] if len(raw) > length else (0.0,) * len(now)
        sums = tuple(
            total + (new - old)
            for total, new, old in zip(self._sums[-1], now, leaving, strict=True)
        )
        self._sums.append(sums)
        size = max(min(len(raw), length), _SHORTEST_WINDOW * self.rate)
        values = tuple(
            max(0.0, total / size) if measure.averaged else error
            for measure, error, total in zip(MEASURES.values(), now, sums, strict=True)
        )
        self.values.append(values)
        for name, value in zip(NAMES, values, strict=True):
            if not value <= self.maxima[name] and name in self.ending:
                if self.fell_at is None:  # a rectified motion may come back
                    self.fell_at, self.fell_measure = self.duration, name
                return False
        return True

    def keep(self, count: int) -> None:
        """Forget all samples but the first `count`."""
        del self.values[count:], self._raw[count:], self._sums[count + 1 :]
        self.fell_at = self.fell_measure = None

    def end(self) -> None:
        """End the trial at the newest sample, unless a measure has ended it."""
        if self.fell_at is None:
            self.fell_at = self.duration

    def end_fall(self) -> bool:
        """End the trial at the newest sample, if a measure is past half of its maximum there.
        Returns whether one is."""
        last = self.values[-1] if self.values else ()
        shares = [value / self.maxima[name] for name, value in zip(NAMES, last, strict=False)]
        if not max(shares, default=0.0) >= _FALLING:
            return False
        self.fell_at, self.fell_measure = self.duration, NAMES[shares.index(max(shares))]
        return True

    @property
    def duration(self) -> float:
        """Time until termination [s]."""
        return max(0.0, (len(self._raw) - 1) / self.rate)

    def averages(self) -> dict[str, float]:
        """Mean of each error until termination, by name."""
        return dict(zip(NAMES, np.mean(self.values, axis=0).tolist(), strict=True))

    def reward(self, t_max: float) -> float:
        """SCA12, equation 21, for a trial of t_max [s]."""
        reached = min(1.0, self.duration / t_max) if t_max > 0 else 1.0
        averages = self.averages()
        share = np.mean([1 - averages[n] / self.maxima[n] for n in NAMES])
        return float(reached + BONUS * reached * share)

# SPDX-License-Identifier: GPL-3.0-or-later
"""What a motion leaves behind in space: its centre of mass's way, its flights, its footprints."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..geometry.motion import Motion
from ..geometry.stance import AIR, SOLE, flights, runs
from .character import Character
from .momentum import GRAVITY


@dataclass(frozen=True)
class Footprint:
    """Where a foot is set down. sample: when; foot: 0 left, 1 right; phase: what of it stands, of
    `stance`; corners: (6, 3) of its sole [m], see `foot`."""

    sample: int
    foot: int
    phase: int
    corners: np.ndarray


class _Raw(Protocol):
    @property
    def centres(self) -> np.ndarray: ...

    @property
    def joints(self) -> np.ndarray: ...

    @property
    def frames(self) -> np.ndarray: ...


class _Reference(Protocol):
    @property
    def raw(self) -> _Raw: ...


class Recorded(Protocol):
    """What is asked of a `recording.Recording` of n samples, and of its `reference.Reference`."""

    character: Character
    motion: Motion

    @property
    def reference(self) -> _Reference: ...

    @property
    def com(self) -> np.ndarray: ...

    @property
    def contacts(self) -> np.ndarray: ...

    @property
    def stance(self) -> np.ndarray: ...

    @property
    def phases(self) -> np.ndarray: ...

    @property
    def reference_stance(self) -> np.ndarray: ...

    @property
    def reference_phases(self) -> np.ndarray: ...

    def sole_corners(self, samples: slice) -> np.ndarray: ...

    @property
    def borne(self) -> np.ndarray: ...

    def is_down(self, sample: int) -> bool: ...

    def __len__(self) -> int: ...


class Performed:
    """The paths of what was simulated, by its recording."""

    def __init__(self, recording: Recorded) -> None:
        self._recording = recording

    @property
    def com(self) -> np.ndarray:
        """(n, 3) centre of mass [m]."""
        return self._recording.com

    @property
    def flights(self) -> list[tuple[int, int]]:
        """[(start, stop)] of each stretch without a foot on the floor; a body that is down, lying
        or not, or held, or sits, is in none."""
        recording = self._recording
        down = [recording.is_down(sample) for sample in range(len(recording))]
        stands = recording.contacts.any(1) | (recording.stance > 0) | down | recording.borne
        return flights(stands, recording.motion.rate)

    @property
    def footprints(self) -> list[Footprint]:
        """The Footprint of each contact, in the order of time."""
        return footprints(self._recording.phases, self._recording.sole_corners(slice(None)))


class Animated:
    """Those of the animation that was simulated, so far as that went."""

    def __init__(self, recording: Recorded) -> None:
        self._recording, self._raw = recording, recording.reference.raw

    @property
    def com(self) -> np.ndarray:
        """As of Performed."""
        character = self._recording.character
        shares = character.masses / character.mass
        return np.einsum("fsi,s->fi", self._raw.centres[: len(self._recording)], shares)

    @property
    def flights(self) -> list[tuple[int, int]]:
        """As of Performed."""
        recording = self._recording
        stands = (recording.reference_stance > 0) | recording.borne
        return flights(stands, recording.motion.rate)

    @property
    def footprints(self) -> list[Footprint]:
        """As of Performed."""
        recording, raw, count = self._recording, self._raw, len(self._recording)
        corners = recording.character.sole_corners(raw.joints[:count], raw.frames[:count])
        return footprints(recording.reference_phases, corners)


def footprints(phases: np.ndarray, corners: np.ndarray) -> list[Footprint]:
    """The Footprint of each contact: from the middle of the first time at which the whole sole
    stands; of a foot that never sets it down, at which anything of it does.

    phases: (n, 2) of both feet, see `stance`; corners: (n, 2, 6, 3) of their soles [m].
    """
    found = []
    for foot in range(2):
        for first, stop in runs(phases[:, foot] != AIR):
            stance = phases[first:stop, foot]
            phase = SOLE if SOLE in stance else int(stance[0])
            start, end = runs(stance == phase)[0]
            place = corners[first + (start + end - 1) // 2, foot]
            found.append(Footprint(int(first), foot, phase, place))
    return sorted(found, key=lambda footprint: footprint.sample)


def fall(start: np.ndarray, end: np.ndarray, steps: int, rate: float) -> np.ndarray:
    """(steps + 1, 3) places [m] of a body in free fall from (3,) to (3,) [m] in so many steps at
    `rate` [Hz]: a parabola that only they and gravity decide."""
    time = np.arange(steps + 1)[:, None] / rate
    duration = max(steps, 1) / rate
    line = start + (end - start) * time / duration
    return line + [0.0, 0.0, GRAVITY / 2] * time * (duration - time)

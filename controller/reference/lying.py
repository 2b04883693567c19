# SPDX-License-Identifier: GPL-3.0-or-later
"""What a body that has fallen shows of its animation: what is not simulated comes to a stop, and
starts again where it goes on with that. Fingers and faces live on, as fast as it has tone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..geometry.rotations import matrix_from_quaternion, quaternion_from_matrix
from ..geometry.trajectory import eased

#: The animation of what is not simulated runs down in so long [s], and the bones of spine and neck
#: stop to share a turn in so long [s]: before anybody is on the floor. By judgement.
_STOPS, _WHOLE = 0.3, 0.2
#: Who goes on with its animation stands still for so long [s], and takes so long until it has the
#: speed of that; what is not simulated has come to where it is to go on for so long [s] before.
_STANDS, _STARTS, _COMES = 0.5, 0.5, 1.0


def started(sample: float, count: int, rate: float) -> np.ndarray:
    """(count,) which samples of an animation are shown by who goes on with it from one of them."""
    since = np.maximum(np.arange(count) / rate - _STANDS, 0)
    share = np.clip(since / _STARTS, 0, 1)
    # The integral of a speed that rises from 0 to 1 smoothly.
    run = _STARTS * (share**3 - share**4 / 2) + np.maximum(since - _STARTS, 0)
    return sample + rate * run


def _slowed(stood: int, samples: np.ndarray, rate: float, tone: np.ndarray | None) -> np.ndarray:
    """(n,) which samples (n,) are shown by what goes on from a fall as fast as there is tone."""
    if tone is None:
        return samples.astype(float)
    speed = np.where(samples < stood, 1.0, tone[: len(samples)])
    width = max(1, round(_STOPS * rate))
    # Behind what it is to be, so that nothing slows down before it falls.
    padded = np.concatenate([np.ones(width - 1), speed])
    mean = np.convolve(padded, np.full(width, 1 / width), "valid")
    return np.concatenate([[0.0], np.cumsum(mean[:-1])]) if (mean < 1).any() else samples * 1.0


@dataclass(frozen=True)
class Hold:
    """Which sample of the animation each of n samples shows of what is not simulated.

    stood: samples before the fall. at: (n,) which sample, with fractions. whole: (n,) from 0 to 1,
    how far a chain of bones turns as one. living: (n,) which sample fingers and faces show, None if
    they stop like all else; coming: (n,) how far they have come from that to the sample meant (n,).
    """

    stood: int
    at: np.ndarray
    whole: np.ndarray
    living: np.ndarray | None = None
    coming: np.ndarray | None = None
    meant: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        stood: int | None,
        count: int,
        rate: float,
        again: Sequence[tuple[int, np.ndarray, int | None]] = (),
        tone: np.ndarray | None = None,
    ) -> "Hold | None":
        """That of a body that falls after so many of its samples; None if it does not. again: for
        each time that it goes on with its animation, how many samples there are before, which of
        the animation the following ones show, and how many there are until it falls again. tone:
        (n or more,) that it has, with which share of its speed the animation of fingers and faces
        goes on; None for one that ends there, with all of it."""
        if stood is None:
            return None
        samples = np.arange(count)
        at, whole = samples.astype(float), np.zeros(count)
        living, coming, meant = _slowed(stood, samples, rate, tone), np.zeros(count), at.copy()
        falls = [stood, *(falls for _, _, falls in again if falls is not None)]
        for number, fall in enumerate(falls):
            last = max(fall - 1, 0)
            share = np.clip((samples[last:] - last) / (_STOPS * rate), 0, 1)
            # The integral of a speed that falls from 1 to 0 smoothly.
            run = _STOPS * rate * (share - share**3 + share**4 / 2)
            at[last:] = at[last] + run
            whole[fall:] = eased((samples[fall:] - last) / (_WHOLE * rate))
            if number < len(again):
                begin, shown, _ = again[number]
                came = max(last, begin - round(_COMES * rate))
                share = eased((samples[came:begin] - came) / max(begin - came, 1))
                at[came:begin] += share * (shown[0] - at[came:begin])
                coming[came:begin], meant[came:begin] = share, shown[0]
                at[begin:] = living[begin:] = shown[: count - begin]
                whole[begin:] = 1 - eased((samples[begin:] - begin) / (_WHOLE * rate))
        if tone is None:
            return cls(stood, at, whole)
        return cls(stood, at, whole, living, coming, meant)

    @property
    def lives(self) -> bool:
        """Whether fingers and faces are as the animation has them, throughout."""
        return self.living is not None and np.array_equal(self.living, np.arange(len(self.living)))

    @property
    def of_the_living(self) -> "Hold":
        """What fingers and faces show, but for what they are coming to."""
        return self if self.living is None else replace(self, at=self.living)

    @property
    def meaning(self) -> "Hold":
        """What they are coming to."""
        return self if self.meant is None else replace(self, at=self.meant)

    @property
    def comes(self) -> np.ndarray:
        """(n,) how far they have come to that, from 0 to 1."""
        return np.zeros(len(self.at)) if self.coming is None else self.coming

    def sharing(self) -> "Hold":
        """The same of chains that share their turns all along, as those of controls do."""
        return replace(self, whole=np.zeros_like(self.whole))

    def after(self, count: int) -> "Hold":
        """The same behind so many more samples."""
        before, none = np.arange(count), np.zeros(count)

        def later(values: np.ndarray | None, ahead: np.ndarray, more: int) -> np.ndarray | None:
            return None if values is None else np.concatenate([ahead, more + values])

        return replace(
            self,
            stood=self.stood + count,
            at=np.concatenate([before, count + self.at]),
            whole=np.concatenate([none, self.whole]),
            living=later(self.living, before, count),
            coming=later(self.coming, none, 0),
            meant=later(self.meant, before, count),
        )

    def shown(self, values: np.ndarray) -> np.ndarray:
        """(n, …) values of the animation as they are shown; until the fall as they are."""
        return np.concatenate([values[: self.stood], self._between(*self._ends(values))])

    def shown_turns(self, turns: np.ndarray) -> np.ndarray:
        """The same of (n, …, 4) quaternions."""
        low, high = self._ends(turns)
        high = np.where((low * high).sum(-1, keepdims=True) < 0, -high, high)
        mixed = self._between(low, high)
        mixed /= np.linalg.norm(mixed, axis=-1, keepdims=True)
        return np.concatenate([turns[: self.stood], mixed])

    def carried(self, turns: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """(n, 3) vectors that turn with what has (n, 4) turns, as they are shown in that."""
        frames = matrix_from_quaternion(turns)
        own = self.shown(np.einsum("fji,fj->fi", frames, vectors))
        held = np.einsum("fij,fj->fi", frames, own)
        return np.concatenate([vectors[: self.stood], held[self.stood :]])

    def turns(self, before: np.ndarray, after: np.ndarray, bones: np.ndarray) -> np.ndarray:
        """(n, S, 3, 3) turns of bones that carry segments, whose frames are (n, S, 3, 3) before and
        after, with what is between the two as it is shown. bones: (n, S, 4) in the animation."""
        own = matrix_from_quaternion(bones)
        apart = self.shown_turns(quaternion_from_matrix(np.swapaxes(before, -1, -2) @ own))
        held = after @ matrix_from_quaternion(apart) @ np.swapaxes(own, -1, -2)
        plain = after @ np.swapaxes(before, -1, -2)
        return np.concatenate([plain[: self.stood], held[self.stood :]])

    def _ends(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        low = np.floor(self.at[self.stood :]).astype(int)
        return values[low], values[np.minimum(low + 1, len(values) - 1)]

    def _between(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        share = self.at[self.stood :] % 1
        share = share.reshape(-1, *[1] * (low.ndim - 1))
        return (1 - share) * low + share * high

# SPDX-License-Identifier: GPL-3.0-or-later
"""What a body that has fallen shows of its animation: what is not simulated comes to a stop, and
starts again where it goes on with that. Fingers and faces live on, as far as it has tone."""

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


@dataclass(frozen=True)
class Hold:
    """Which sample of the animation each of n samples shows of what is not simulated.

    stood: samples before the fall. at: (n,) which sample, with fractions. whole: (n,) from 0 to 1,
    how far a chain of bones turns as one. living: (n,) which sample fingers and faces show, None if
    they stop like all else, and tone: (n,) from 0 to 1, how much of that; the rest is at rest.
    """

    stood: int
    at: np.ndarray
    whole: np.ndarray
    living: np.ndarray | None = None
    tone: np.ndarray | None = None

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
        (n or more,) that it has, None for one that ends there: fingers and faces stop, too."""
        if stood is None:
            return None
        samples = np.arange(count)
        at, whole, living = samples.astype(float), np.zeros(count), samples.astype(float)
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
                for one in (at, living):
                    one[came:begin] += share * (shown[0] - one[came:begin])
                    one[begin:] = shown[: count - begin]
                whole[begin:] = 1 - eased((samples[begin:] - begin) / (_WHOLE * rate))
        if tone is None:
            return cls(stood, at, whole)
        shares = np.where(samples < stood, 1.0, tone[:count])
        return cls(stood, at, whole, living, shares)

    @property
    def lives(self) -> bool:
        """Whether fingers and faces are as the animation has them, throughout."""
        if self.living is None:
            return False
        same = np.array_equal(self.living, np.arange(len(self.living)))
        return same and bool(np.all(self.tone == 1))

    @property
    def shares(self) -> np.ndarray:
        """(n,) of their animation that fingers and faces show."""
        return np.ones(len(self.at)) if self.tone is None else self.tone

    @property
    def of_the_living(self) -> "Hold":
        """What fingers and faces show, of all of their animation."""
        return self if self.living is None else replace(self, at=self.living)

    def sharing(self) -> "Hold":
        """The same of chains that share their turns all along, as those of controls do."""
        return replace(self, whole=np.zeros_like(self.whole))

    def after(self, count: int) -> "Hold":
        """The same behind so many more samples."""
        before = np.arange(count)
        return replace(
            self,
            stood=self.stood + count,
            at=np.concatenate([before, count + self.at]),
            whole=np.concatenate([np.zeros(count), self.whole]),
            living=None if self.living is None else np.concatenate([before, count + self.living]),
            tone=None if self.tone is None else np.concatenate([np.ones(count), self.tone]),
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

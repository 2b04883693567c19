# SPDX-License-Identifier: GPL-3.0-or-later
"""A sampled motion: what an armature's animation looks like from outside."""

from dataclasses import dataclass

import numpy as np

from ..exceptions import MotionError
from .skeleton import LANDMARK_INDEX, LANDMARKS, OPTIONAL_LANDMARKS, SEGMENTS

#: Share of the samples in which a body may be upside down and still count as upright: the majority
#: decides, so that a somersault is.
FEW_UPSIDE_DOWN = 0.5


@dataclass(frozen=True)
class Motion:
    """World transforms of a biped's segments over time. SI units, Z up.

    name: of the clip, for messages and reports.
    rate: samples per second [Hz].
    rotations: (samples, len(SEGMENTS), 4) unit quaternions, w first: the orientation of whatever
        carries the segment (a bone). Its axes may be any, as long as they are rigid in the segment.
    positions: (samples, len(LANDMARKS), 3) world positions [m]; NaN for optional landmarks that
        the rig does not have.
    first_frame, frame_step: number of the first sample and the distance to the next, in the
        frames that messages speak of.
    """

    name: str
    rate: float
    rotations: np.ndarray
    positions: np.ndarray
    first_frame: float = 1.0
    frame_step: float = 1.0

    def __post_init__(self) -> None:
        samples = len(self.rotations)
        if self.rotations.shape != (samples, len(SEGMENTS), 4):
            raise ValueError(f"rotations have shape {self.rotations.shape}")
        if self.positions.shape != (samples, len(LANDMARKS), 3):
            raise ValueError(f"positions have shape {self.positions.shape}")
        if samples < 2:
            raise MotionError(
                f"'{self.name}' has {samples} frame{'s' * (samples != 1)} in the range: "
                "choose a range of at least two frames."
            )
        if not (np.isfinite(self.rate) and self.rate > 0):
            raise MotionError(f"'{self.name}' has a frame rate of {self.rate}: it must be above 0.")
        required = [i for i, n in enumerate(LANDMARKS) if n not in OPTIONAL_LANDMARKS]
        finite = np.isfinite(self.rotations).all((1, 2))
        finite &= np.isfinite(self.positions[:, required]).all((1, 2))
        if not finite.all():
            raise MotionError(
                f"'{self.name}' is not a number at frame {self.frame(int(np.argmin(finite))):g}: "
                "mend or delete the keys there."
            )

    def __len__(self) -> int:
        return len(self.rotations)

    @property
    def duration(self) -> float:
        """Time from the first to the last sample [s]."""
        return (len(self) - 1) / self.rate

    def upside_down(self) -> float:
        """Share of the samples in which both feet are above the pelvis, 0 if those are few: a
        somersault is upright."""
        pelvis, *ankles = (LANDMARK_INDEX[n] for n in ("pelvis", "ankle_l", "ankle_r"))
        heights = self.positions[..., 2]
        share = float((heights[:, ankles].min(1) > heights[:, pelvis]).mean())
        return share if share > FEW_UPSIDE_DOWN else 0.0

    def demand_upright(self) -> None:
        """Raise MotionError if the body is upside down."""
        share = self.upside_down()
        if share:
            raise MotionError(
                f"'{self.name}' is upside down: its feet are above its pelvis in {share:.0%} of "
                "the frames. Turn the armature upright, with Z up, or choose frames in which it "
                "stands."
            )

    def frame(self, sample: float) -> float:
        """Frame number of a sample."""
        return self.first_frame + self.frame_step * sample

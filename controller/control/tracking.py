# SPDX-License-Identifier: GPL-3.0-or-later
"""Joint tracking: torques that follow the reference's joint angles."""

import numpy as np

MODES = ("stable_pd", "explicit_pd")


class StablePD:
    """Proportional-derivative control that looks one step ahead.

    Tan, Liu, Turk, "Stable Proportional-Derivative Controllers", 2011: the errors are those at
    the end of the step, for which the step's acceleration is predicted from the mass matrix;
    stable at any stiffness.
    """

    _inertia: np.ndarray  # from `refresh` on
    _inverse: np.ndarray | None  # rows of the joints, once they are needed

    def __init__(self, stiffness: np.ndarray, damping: np.ndarray, step: float) -> None:
        """stiffness (n,) [N m/rad], damping (n,) [N m s/rad], step [s]."""
        self.stiffness, self.damping, self.step = stiffness, damping, step
        count = len(stiffness)
        self._implicit = step * damping
        self._diagonal = np.zeros((6 + count, 6 + count))
        self._diagonal[range(6, 6 + count), range(6, 6 + count)] = self._implicit

    def refresh(self, inertia: np.ndarray) -> None:
        """Take a new mass matrix (6 + n, 6 + n)."""
        self._inertia, self._inverse = inertia, None

    def torques(
        self,
        angles: np.ndarray,
        speeds: np.ndarray,
        target: np.ndarray,
        target_speeds: np.ndarray,
        known: np.ndarray,
        stiffer: np.ndarray | float = 1.0,
    ) -> np.ndarray:
        """(n,) torques [N m] towards the target (n,) of the next step. known: (6 + n,) sum of the
        generalised forces that act besides, gravity and inertia included. stiffer: factors (n,) on
        the stiffness in this step."""
        ahead = angles + self.step * speeds
        force = stiffer * self.stiffness * (target - ahead)
        force += self.damping * (target_speeds - speeds)
        if self._inverse is None:
            self._inverse = np.linalg.inv(self._inertia + self._diagonal)[6:]
        right = known.copy()
        right[6:] += force
        return force - self._implicit * (self._inverse @ right)


class ExplicitPD:
    """SCA12, equation 1: torques from the present errors. Stable only for damping below half the
    joint's inertia per step, so at high rates."""

    def __init__(self, stiffness: np.ndarray, damping: np.ndarray, step: float) -> None:
        self.stiffness, self.damping, self.step = stiffness, damping, step

    def refresh(self, inertia: np.ndarray) -> None:
        """Needs no mass matrix."""

    def torques(
        self,
        angles: np.ndarray,
        speeds: np.ndarray,
        target: np.ndarray,
        target_speeds: np.ndarray,
        known: np.ndarray,
        stiffer: np.ndarray | float = 1.0,
    ) -> np.ndarray:
        """(n,) torques [N m], as StablePD has them."""
        return stiffer * self.stiffness * (target - angles) + self.damping * (
            target_speeds - speeds
        )


def make(
    mode: str, stiffness: np.ndarray, damping: np.ndarray, step: float
) -> StablePD | ExplicitPD:
    """The tracker of that name."""
    trackers: dict[str, type[StablePD | ExplicitPD]] = {
        "stable_pd": StablePD,
        "explicit_pd": ExplicitPD,
    }
    return trackers[mode](stiffness, damping, step)

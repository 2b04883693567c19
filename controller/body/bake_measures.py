# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures of a bake, read back from its keys, beside those of the original animation."""

import numpy as np

from ..geometry.motion import Motion
from ..geometry.rotations import matrix_from_quaternion
from ..geometry.skeleton import FEET, LANDMARK_INDEX, OPTIONAL_LANDMARKS, SIDES, TOES
from ..geometry.stance import DIRECTIONS, support_reach
from .character import Character, Terrain
from .foot import sole_corners
from .footing import floors_under
from .momentum import GRAVITY, Dynamics, com_dynamics, zero_moment_point

UNITS = {
    "foot_slide": "m/s",
    "foot_penetration": "mm",
    "jitter": "m/s^3",
    "zmp_inside": "share",
    "pulls_on_ground": "share",
}

_GROWN = 0.05  # [m] by which soles count as larger: animated ones are not the body's (estimated)
_CUTOFF = 6.0  # [Hz] of the motion that the zero-moment point is computed from: as of references


def measures_of_bake(
    character: Character,
    before: Motion,
    after: Motion,
    contacts: tuple[np.ndarray, np.ndarray],
    terrain: Terrain | None = None,
) -> dict[str, tuple[float | None, ...]]:
    """Compare the animation before and after.

    before, after: Motion of n samples each; contacts: (n, 2) which feet stand, of each; terrain:
    terrain.Terrain that they stand on, None for a level floor. Returns {name: (before, after)}:
    foot_slide [m/s], foot_penetration [mm], jitter [m/s^3], zmp_inside and pulls_on_ground [share],
    as `measures.md` defines them; None where no foot ever stands.
    """
    pairs = [
        _measure(character, motion, np.asarray(stands, bool), terrain)
        for motion, stands in zip((before, after), contacts, strict=True)
    ]
    return {name: tuple(pair[name] for pair in pairs) for name in UNITS}


def soles(character: Character, motion: Motion) -> np.ndarray:
    """(n, 2, 6, 3) sole corners [m], straight from the animated feet and toes."""
    frames, toes = (
        matrix_from_quaternion(motion.rotations[:, segments]) @ character.calibration[segments]
        for segments in (FEET, TOES)
    )
    ankles = motion.positions[:, [LANDMARK_INDEX[f"ankle_{side}"] for side in SIDES]]
    return sole_corners(character.feet, ankles, frames, toes)


def jerk(points: np.ndarray, rate: float) -> float:
    """Mean size [m/s^3] of the third derivative of (n, k, 3) points."""
    if len(points) < 4:
        return 0.0
    return float(np.linalg.norm(np.diff(points, 3, axis=0), axis=-1).mean() * rate**3)


def _measure(
    character: Character, motion: Motion, contacts: np.ndarray, terrain: Terrain | None
) -> dict[str, float | None]:
    corners = soles(character, motion)
    # Heel and tip: the middles of the sole's ends.
    ends = np.stack([corners[:, :, :2].mean(2), corners[:, :, 4:].mean(2)], 2)
    speed = np.linalg.norm(np.diff(ends[..., :2], axis=0), axis=-1).mean(-1) * motion.rate
    standing = contacts[1:] & contacts[:-1]
    joints = [i for n, i in LANDMARK_INDEX.items() if n not in OPTIONAL_LANDMARKS]
    trajectory = character.trajectory(motion)
    positions, frames = character.pose(trajectory)
    if terrain is None:
        lowest = float(corners[..., 2].min()) - character.ground
        floors = None
    else:
        lowest = float(terrain.over(corners, positions[:, FEET])[0].min())
        footings = terrain.footings(character, trajectory, contacts)
        floors = floors_under(footings, positions[:, FEET], contacts)
    centres = character.body_centres(positions, frames)
    dynamics = com_dynamics(character, centres, frames, motion.rate, _CUTOFF)
    return {
        "foot_slide": float(speed[standing].mean()) if standing.any() else None,
        "foot_penetration": 1e3 * max(0.0, -lowest),
        "jitter": jerk(motion.positions[:, joints], motion.rate),
        "zmp_inside": _zmp_inside(character, dynamics, corners, contacts, floors),
        "pulls_on_ground": float((dynamics.acceleration[:, 2] < -GRAVITY).mean()),
    }


def _zmp_inside(
    character: Character,
    dynamics: Dynamics,
    corners: np.ndarray,
    contacts: np.ndarray,
    floors: np.ndarray | None,
) -> float | None:
    stands = contacts.any(1)
    if not stands.any():
        return None
    point = zero_moment_point(character, dynamics, floors)
    reach = support_reach(corners, contacts) + _GROWN
    inside = (point @ DIRECTIONS.T <= reach).all(1)
    return float(inside[stands].mean())

# SPDX-License-Identifier: GPL-3.0-or-later
"""Gains as animators think of them: how fast and how springy a region of the body is.

A joint that is pushed swings back like a weight on a spring: f = sqrt(k / I) / (2 pi) is how often
per second, zeta = d / (2 sqrt(k I)) how soon that dies out (1: without overshoot). I is what the
joint moves: the inertia about its axis of all that hangs on it while the body stands upright with
arms hanging. The spine moves trunk, head and arms; a hip the whole leg, as in a swing; an ankle its
half of the body that stands on it. Gravity is left aside.
"""

from dataclasses import replace

import numpy as np

from ..body.character import Character, Joint
from ..geometry.rotations import rotation_about
from ..geometry.skeleton import FEET, JOINTS, SEGMENTS, TOES, joint_of_dof
from .gains import LIMIT, Gains, unmirrored

#: Joints of each region. Toes change with the ankles, but a foot's figures are those of its ankle.
REGIONS = {
    region: tuple(joint for joint, entry in JOINTS.items() if entry.region == region)
    for region in dict.fromkeys(entry.region for entry in JOINTS.values())
}


def inertias(character: Character) -> dict[str, float]:
    """{unmirrored degree of freedom: inertia that it moves [kg m^2]}, the mean of both sides."""
    axes, positions, frames = _upright(character)
    centres = character.body_centres(positions, frames)[0]
    moved: dict[str, list[float]] = {}
    for joint in character.joints:
        parts, share = _moved_by(character, joint)
        arms = centres[parts] - positions[0, joint.segment]
        for i in range(joint.first, joint.first + len(joint.axes)):
            spin = (np.einsum("sji,j->si", frames[0, parts], axes[i]) ** 2) * character.inertias[
                parts
            ]
            swing = character.masses[parts] * (np.cross(axes[i], arms) ** 2).sum(-1)
            name = unmirrored(character.dof_names[i])
            moved.setdefault(name, []).append(share * float(spin.sum() + swing.sum()))
    return {name: float(np.mean(sides)) for name, sides in moved.items()}


def frequency(gains: Gains, moved: dict[str, float], region: str) -> float:
    """Natural frequency [Hz] of a region, the geometric mean over its joints.

    moved: of `inertias`. Joints without stiffness do not count; 0 if none has any.
    """
    k, _, inertia = _of(gains, moved, region)[:, _counts(gains, region)]
    return _mean(np.sqrt(k / inertia) / (2 * np.pi))


def damping_ratio(gains: Gains, moved: dict[str, float], region: str) -> float:
    """Damping ratio of a region, the geometric mean over its joints; see `frequency`."""
    k, d, inertia = _of(gains, moved, region)[:, _counts(gains, region)]
    stiff = k > 0
    return _mean(d[stiff] / (2 * np.sqrt(k[stiff] * inertia[stiff])))


def with_frequency(gains: Gains, moved: dict[str, float], region: str, value: float) -> Gains:
    """Gains of which a region has another frequency [Hz], above 0, and the same damping ratio.

    All its joints change by the same factor, as far as the largest gains that a file may hold.
    """
    k, d, inertia = _of(gains, moved, region)
    now = frequency(gains, moved, region)
    if now == 0:
        return _replaced(gains, region, inertia * (2 * np.pi * value) ** 2, d)
    factor = _within(value / now, d)
    factor = np.sqrt(_within(factor**2, k))
    return _replaced(gains, region, k * factor**2, d * factor)


def with_damping_ratio(gains: Gains, moved: dict[str, float], region: str, value: float) -> Gains:
    """Gains of which a region has another damping ratio, above 0; see `with_frequency`."""
    k, d, inertia = _of(gains, moved, region)
    now = damping_ratio(gains, moved, region)
    if now == 0:
        return _replaced(gains, region, k, 2 * value * np.sqrt(k * inertia))
    return _replaced(gains, region, k, d * _within(value / now, d))


def _members(gains: Gains, region: str) -> list[int]:
    """Indices of a region's degrees of freedom."""
    return [i for i, name in enumerate(gains.names) if joint_of_dof(name).region == region]


def _counts(gains: Gains, region: str) -> list[bool]:
    """(n,) which members of a region its figures are told of."""
    return [not joint_of_dof(gains.names[i]).minor for i in _members(gains, region)]


def _of(gains: Gains, moved: dict[str, float], region: str) -> np.ndarray:
    """(3, n) stiffness, damping and inertia of a region."""
    members = _members(gains, region)
    inertia = np.array([moved[gains.names[i]] for i in members])
    return np.stack([gains.stiffness[members], gains.damping[members], inertia])


def _mean(values: np.ndarray) -> float:
    """Geometric mean of those above 0; 0 if there is none."""
    values = values[values > 0]
    return float(np.exp(np.log(values).mean())) if len(values) else 0.0


def _within(factor: float, values: np.ndarray) -> float:
    """A factor, no larger than leaves every value within the limit."""
    return min(factor, max(1.0, LIMIT / max(values.max(), 1e-9)))


def _replaced(gains: Gains, region: str, k: np.ndarray, d: np.ndarray) -> Gains:
    members = _members(gains, region)

    def put(old: np.ndarray, new: np.ndarray) -> np.ndarray:
        values = old.copy()
        values[members] = np.minimum(new, np.maximum(LIMIT, old[members]))
        return values

    return replace(gains, stiffness=put(gains.stiffness, k), damping=put(gains.damping, d))


def _upright(character: Character) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """World axes of all degrees of freedom (dofs, 3), joints (1, S, 3) [m] and segment frames
    (1, S, 3, 3) of the body upright, arms hanging."""
    goal = np.broadcast_to(np.eye(3), (1, len(SEGMENTS), 3, 3))
    angles = character.trajectory_of(1.0, np.zeros((1, 3)), goal).angles
    positions, frames = character.forward(np.zeros((1, 3)), goal[:, 0], angles)
    axes = np.empty((character.dofs, 3))
    for joint in character.joints:
        frame = frames[0, joint.parent] @ joint.basis
        for i, axis in enumerate(joint.axes, joint.first):
            axes[i] = frame[:, axis]
            frame = frame @ rotation_about(axis, angles[0, i])
    return axes, positions, frames


def _moved_by(character: Character, joint: Joint) -> tuple[list[int], float]:
    """Indices of the segments that a joint moves, and which share of them."""
    if joint.name.startswith("ankle"):
        return [i for i in range(len(SEGMENTS)) if i not in FEET + TOES], 0.5
    parts = {joint.segment}
    for other in character.joints:  # parents come before children
        if other.parent in parts:
            parts.add(other.segment)
    return sorted(parts), 1.0

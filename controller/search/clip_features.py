# SPDX-License-Identifier: GPL-3.0-or-later
"""What kind of motion a clip is, in a few numbers: to choose gains that were tuned on the like.

Lengths are in body heights and speeds in body heights per second, so that bodies compare.
"""

import math
from collections.abc import Sequence

import numpy as np

from ..body.character import Character
from ..gains.gains import Gains
from ..geometry.motion import Motion
from ..geometry.skeleton import SEGMENT_INDEX, joint_of_dof
from ..geometry.stance import DUAL, FLIGHT, find_contacts, stance_of
from .provenance import tuning_words

#: A clip that differs this much from all others is like none of them. By trial on the
#: captured clips, as are the differences below.
_ALIKE = 3.0
#: Difference of each feature that counts as one, and how the feature is told.
_COMPARED = {
    "dual": (0.2, "stands on both feet {:.0%} of the time"),
    "flight": (0.1, "is in the air {:.0%} of the time"),
    "steps": (1.0, "takes {:.1f} steps per second"),
    "stance_width": (0.08, "stands with the ankles {:.2f} body heights apart"),
    "com_range": (0.08, "goes up and down by {:.2f} body heights"),
    "com_speed": (0.2, "moves its weight at {:.2f} body heights per second"),
    "joint_speed": (0.7, "turns its joints at {:.1f} rad/s"),
    "travel": (0.2, "travels {:.2f} body heights per second"),
}


def clip_features(character: Character, motion: Motion) -> dict[str, float]:
    """Features of a motion of a character, as a dict of floats.

    dual, single, flight: shares of the stance states. steps: feet set down per second.
    stance_width: median distance of the ankles in dual stance. com_range: between the 5th and the
    95th percentile of the height of the centre of mass. com_speed: root mean square. joint_speed:
    root mean square of all degrees of freedom but the toes' [rad/s]. travel: horizontal distance
    from start to end, per second. duration [s].
    """
    trajectory = character.trajectory(motion)
    joints, frames = character.pose(trajectory)
    corners = character.sole_corners(joints, frames)
    contacts, _ = find_contacts(character, corners, motion.rate, joints[:, 0])
    stance = stance_of(contacts)
    com = character.body_centres(joints, frames).transpose(0, 2, 1) @ character.masses
    com /= character.mass * character.height
    low, high = np.percentile(com[:, 2], (5, 95))
    # Toes often are a capture's noise, or stiff.
    own = [i for i, name in enumerate(character.dof_names) if not joint_of_dof(name).minor]
    speeds = np.diff(trajectory.angles[:, own], axis=0) * motion.rate
    duration = max(motion.duration, 1 / motion.rate)
    features = {
        "dual": (stance == DUAL).mean(),
        "single": ((stance != DUAL) & (stance != FLIGHT)).mean(),
        "flight": (stance == FLIGHT).mean(),
        "steps": (np.diff(contacts.astype(int), axis=0) == 1).sum() / duration,
        "stance_width": _stance_width(joints, stance) / character.height,
        "com_range": high - low,
        "com_speed": _rms(np.linalg.norm(np.diff(com, axis=0), axis=1) * motion.rate),
        "joint_speed": _rms(speeds),
        "travel": np.linalg.norm((com[-1] - com[0])[:2]) / duration,
        "duration": duration,
    }
    return {name: round(float(value), 4) for name, value in features.items()}


def suggest(features: dict[str, float], presets: Sequence[Gains]) -> tuple[Gains | None, str]:
    """The Gains that were tuned on the clip most like this one, and why.

    features: of `clip_features`. presets: Gains, those without `tuned` features do not take part.
    Returns (one of the presets, the reason: how like its clip is, what was measured of it), or
    (None, a sentence) if there is nothing to compare.
    """
    told = {i: _known_features(preset) for i, preset in enumerate(presets)}
    known = {i: values for i, values in told.items() if values}
    if not known:
        return None, "No preset says on what kind of motion it was tuned."
    apart = {i: _differences(features, values) for i, values in known.items()}
    near = sorted(apart, key=lambda i: math.hypot(*apart[i].values()))
    best = near[0]
    name = _most_telling(apart, best)
    words, preset = _COMPARED[name][1], presets[best]
    clip = (preset.tuned or {}).get("clip", "the clip")
    far = [math.hypot(*apart[i].values()) for i in near]
    like = (
        f"clip {words.format(features[name])}, and '{clip}', which "
        f"'{preset.name}' is for, {words.format(known[best][name])}."
    )
    reason = f"This {like}"
    if far[0] > _ALIKE:
        reason = f"No preset was tuned on motion like this, but this {like}"
    nearness = _nearness([presets[i] for i in near], far)
    return preset, f"{reason} {nearness} {tuning_words(preset)}".strip()


def _nearness(presets: Sequence[Gains], far: Sequence[float]) -> str:
    """How far the presets, the nearest first, are from a clip, in a sentence."""
    limit = f"beyond {_ALIKE:g} motion is of another kind"
    if len(presets) == 1:
        return f"They are {far[0]:.1f} apart; {limit}."
    return (
        f"Of {len(presets)} presets it is the nearest, {far[0]:.1f} apart, before "
        f"'{presets[1].name}', {far[1]:.1f} apart; {limit}."
    )


def _most_telling(apart: dict[int, dict[str, float]], best: int) -> str:
    """The feature that speaks most for the best preset: alike there, and not in the others."""

    def tells(name: str) -> float:
        others = [abs(values[name]) for i, values in apart.items() if i != best]
        return sum(others) - 3 * abs(apart[best][name])

    return max(apart[best], key=tells)


def _known_features(preset: Gains) -> dict[str, float] | None:
    """The features that a preset tells, None unless all that are compared are there."""
    features = (preset.tuned or {}).get("features")
    if not isinstance(features, dict):
        return None
    values = [features.get(name) for name in _COMPARED]
    if any(isinstance(v, bool) or not isinstance(v, int | float) for v in values):
        return None
    return features


def _differences(features: dict[str, float], others: dict[str, float]) -> dict[str, float]:
    """Scaled difference of each feature that is compared."""
    return {name: (features[name] - others[name]) / scale for name, (scale, _) in _COMPARED.items()}


def _stance_width(joints: np.ndarray, stance: np.ndarray) -> float:
    """Median horizontal distance of the ankles [m] in dual stance, in any if there is none."""
    apart = joints[:, SEGMENT_INDEX["foot_l"], :2] - joints[:, SEGMENT_INDEX["foot_r"], :2]
    dual = stance == DUAL
    return np.median(np.linalg.norm(apart[dual] if dual.any() else apart, axis=1))


def _rms(values: np.ndarray) -> float:
    return np.sqrt(np.mean(values**2))

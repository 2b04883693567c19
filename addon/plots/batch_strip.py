# SPDX-License-Identifier: GPL-3.0-or-later
"""A strip of stick figures as SVG: the animation above, what became of it below."""

import numpy as np

from ...controller.geometry.skeleton import JOINT_OF, LANDMARK_INDEX, SEGMENT_INDEX, SIDES, TOES
from ...controller.simulation.recording import Recording

#: So many moments of the shot.
MOMENTS = 8

#: The same strokes above and below, by landmark.
_STROKES = (
    ("hip_l", "pelvis", "hip_r"),
    ("pelvis", "lumbar", "neck", "head_top"),
    ("shoulder_l", "neck", "shoulder_r"),
    *((f"shoulder_{s}", f"elbow_{s}", f"wrist_{s}") for s in SIDES),
    *((f"hip_{s}", f"knee_{s}", f"ankle_{s}", f"ball_{s}", f"toe_{s}") for s in SIDES),
)

#: Size of the picture of one moment, and the room below it [px].
_WIDTH, _HEIGHT, _ROOM = 96, 84, 14

#: Grey, blue and red that can be seen on white and on black.
_SOURCE, _RESULT, _FELL = "#8a8a8a", "#2f7fd6", "#d9352b"

#: Which landmarks each segment carries, beside its own joint. The ball is the foot's: the hinge of
#: the simulated toes is where the sole has it.
_CARRIED = {
    "head": ("head_top",),
    **{f"forearm_{s}": (f"wrist_{s}",) for s in SIDES},
    **{f"foot_{s}": (f"ball_{s}", f"toe_{s}") for s in SIDES},
    **{f"toe_{s}": (f"toe_{s}",) for s in SIDES},
}


def strip(recording: Recording) -> str:
    """The strip of a recording, as the text of an SVG file of less than 20 kB.

    Eight moments of the animation, evenly over it, each in the view in which the character faces
    three quarters to the right at the start. Below is the simulation at the same moments, in the
    same place relative to the animation; the last moment that it reached is red if it fell, or all
    of a fall that goes on, and nothing is below after that.
    """
    motion, reached = recording.motion, len(recording)
    samples = np.linspace(0, len(motion) - 1, MOMENTS).round().astype(int)
    source = _source(recording, samples)
    shown = np.minimum(samples, reached - 1)
    result = _result(recording, shown)
    ends = recording.fell_at is not None and not recording.filled
    first_after = int(np.searchsorted(samples, reached - 1)) if ends else MOMENTS
    ground = recording.character.ground
    right = _right(source[0])
    scale = (_HEIGHT - 6) / (1.1 * recording.character.height)
    parts = []
    for i, sample in enumerate(samples):
        centre = source[i, LANDMARK_INDEX["pelvis"]] @ right
        x = _WIDTH * (i + 0.5)
        seconds = sample / motion.rate
        parts.append(_figure(source[i], right, centre, ground, scale, x, _HEIGHT, _SOURCE))
        if i <= first_after and (i == first_after or sample < reached):
            falls = i == first_after or sample >= recording.standing
            colour = _FELL if falls else _RESULT
            floor = 2 * _HEIGHT + _ROOM
            parts.append(_figure(result[i], right, centre, ground, scale, x, floor, colour))
        parts.append(f'<text x="{x:.0f}" y="{_HEIGHT + 11}">{seconds:.1f} s</text>')
    return _svg(parts, first_after, ends)


def _svg(parts: list[str], first_after: int, fallen: bool) -> str:
    width, height = MOMENTS * _WIDTH, 2 * _HEIGHT + _ROOM + 4
    floors = [
        f'<path d="M0 {y}H{width}" stroke="{_SOURCE}" stroke-width="1"/>'
        for y in (_HEIGHT, 2 * _HEIGHT + _ROOM)
    ]
    if fallen:
        x, y = _WIDTH * first_after, 2 * _HEIGHT + _ROOM
        floors.append(f'<path d="M{x} {y}H{width}" stroke="{_FELL}" stroke-width="2"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" fill="none" stroke-linecap="round" '
        f'stroke-linejoin="round" stroke-width="2.2"><title>The animation above, the result '
        f'below</title>{"".join(floors)}<g font-family="sans-serif" font-size="10" '
        f'text-anchor="middle" fill="{_SOURCE}">{"".join(parts)}</g></svg>\n'
    )


def _figure(
    points: np.ndarray,
    right: np.ndarray,
    centre: float,
    ground: float,
    scale: float,
    x: float,
    floor: float,
    colour: str,
) -> str:
    """One stick figure as a path."""
    strokes = []
    for names in _STROKES:
        line = points[[LANDMARK_INDEX[name] for name in names]]
        line = line[np.isfinite(line).all(1)]
        flat = [(x + (p @ right - centre) * scale, floor - (p[2] - ground) * scale) for p in line]
        strokes.append("M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in flat))
    return f'<path d="{"".join(strokes)}" stroke="{colour}" fill="none"/>'


def _source(recording: Recording, samples: np.ndarray) -> np.ndarray:
    """(moments, landmarks, 3) of the animation."""
    return recording.motion.positions[samples]


def _result(recording: Recording, samples: np.ndarray) -> np.ndarray:
    """(moments, landmarks, 3) of the simulation: joints, and what moves with their segments."""
    source = _source(recording, samples)
    points = np.full_like(source, np.nan)
    joints = recording.joints()[samples]
    turned = recording.rotation_deltas()[samples]
    for segment, joint in JOINT_OF.items():
        s, at = SEGMENT_INDEX[segment], LANDMARK_INDEX[joint]
        if s not in TOES:
            points[:, at] = joints[:, s]
        elif np.isnan(source[:, at]).any():
            continue  # a rig without toes
        for name in _CARRIED.get(segment, ()):
            arm = source[:, LANDMARK_INDEX[name]] - source[:, at]
            points[:, LANDMARK_INDEX[name]] = points[:, at] + _turned(turned[:, s], arm)
    return points


def _turned(quaternions: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    w, axis = quaternions[:, :1], quaternions[:, 1:]
    cross = np.cross(axis, vectors)
    return vectors + 2 * (w * cross + np.cross(axis, cross))


def _right(points: np.ndarray) -> np.ndarray:
    """(3,) the direction that is to the right in the picture: three quarters of the view from the
    character's left, so that both its arms and its strides show."""
    across = points[LANDMARK_INDEX["hip_l"]] - points[LANDMARK_INDEX["hip_r"]]
    across = np.array([across[0], across[1], 0.0])
    across /= np.linalg.norm(across) or 1.0
    forward = np.cross(across, [0.0, 0.0, 1.0])
    right = 0.6 * across + 0.8 * forward
    return right

# SPDX-License-Identifier: GPL-3.0-or-later
"""The shapes of an animated body as limbs that another one meets."""

from dataclasses import replace

import numpy as np

from ..exceptions import SettingsError
from ..geometry.motion import Motion
from ..geometry.rotations import (
    matrix_from_quaternion,
    multiply,
    quaternion_from_matrix,
    unit,
)
from ..geometry.skeleton import (
    JOINT_OF,
    LANDMARK_INDEX,
    SEGMENT_INDEX,
    SIDE_WORDS,
    SIDES,
    TOES,
    segment_name,
)
from ..geometry.solids import Limb, Solid
from .character import Character

#: A limb that is faster than this has jumped [m/s]: a kick is as fast as that.
JUMP_SPEED = 20.0
#: What moves less [m, or of a turn] does not move.
_STILL = 1e-6
#: A hand is a fist: its radius, and how far its middle is from the wrist, as shares of stature. By
#: eye.
_FIST, _FIST_AHEAD = 0.026, 0.032


def limbs_of(name: str, motion: Motion, friction: float = 1.0) -> tuple[Limb, ...]:
    """The limbs of an animated body: the shapes that it would be simulated with, as large as it is,
    on the animation's joints, and a fist on each wrist.

    Raises RigError where no body can be measured, SettingsError for one that jumps.
    """
    character = Character.from_motion(motion)
    frames = character.segment_frames(motion)
    limbs = []
    for shape in character.shapes:
        index = SEGMENT_INDEX[shape.segment]
        turns = frames[:, index]
        if index in TOES:  # their hinge is the sole's
            foot = SEGMENT_INDEX[shape.segment.replace("toe", "foot")]
            origins = _points(motion, JOINT_OF[shape.segment.replace("toe", "foot")])
            origins = origins + frames[:, foot] @ character.feet[0].hinge
        else:
            origins = _points(motion, JOINT_OF[shape.segment])
        middle = character.centres[index] + shape.position
        turned = multiply(quaternion_from_matrix(turns), np.asarray(shape.rotation))
        limbs.append(
            Limb(
                name,
                Solid(shape.kind, shape.size),
                origins + turns @ middle,
                turned,
                friction,
                segment_name(shape.segment),
            )
        )
    limbs += [_fist(name, motion, character.height, side, friction) for side in SIDES]
    return tuple(settled(limb, motion) for limb in limbs)


def _fist(name: str, motion: Motion, height: float, side: str, friction: float) -> Limb:
    elbow, wrist, tip = (
        _points(motion, f"{landmark}_{side}") for landmark in ("elbow", "wrist", "fingertip")
    )
    ahead = unit(np.where(np.isfinite(tip), tip, 2 * wrist - elbow) - wrist)
    solid = Solid("sphere", (_FIST * height,))
    turns = np.tile([1.0, 0.0, 0.0, 0.0], (len(wrist), 1))
    centres = wrist + _FIST_AHEAD * height * ahead
    return Limb(name, solid, centres, turns, friction, f"{SIDE_WORDS[side]} hand")


def _points(motion: Motion, landmark: str) -> np.ndarray:
    return motion.positions[:, LANDMARK_INDEX[landmark]]


def settled(limb: Limb, motion: Motion) -> Limb:
    """A limb with a path, or without one if that does not move. motion: for its rate and frames.

    Raises SettingsError where it jumps.
    """
    positions, rotations = np.asarray(limb.positions), np.asarray(limb.rotations)
    matrices = matrix_from_quaternion(rotations)
    if max(np.ptp(positions, axis=0).max(), np.ptp(matrices, axis=0).max()) < _STILL:
        return replace(limb, positions=positions[0], rotations=rotations[0])
    speeds = np.linalg.norm(np.diff(positions, axis=0), axis=1) * motion.rate
    worst = int(speeds.argmax())
    if speeds[worst] > JUMP_SPEED:
        raise SettingsError(
            f"The {limb.part} of '{limb.name}' jumps from frame {motion.frame(worst):g} to "
            f"{motion.frame(worst + 1):g}, at {speeds[worst]:.0f} m/s: keep it below "
            f"{JUMP_SPEED:g} m/s, or let '{limb.name}' be no collider."
        )
    return limb

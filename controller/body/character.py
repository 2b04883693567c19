# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulated body: geometry measured from a motion, masses, joints, shapes, kinematics.

Every segment has a *frame*: its origin at the joint to its parent, x forward, y left, z up when
the body stands upright with arms hanging. The frames come from an animated pose, never from a
rest pose. A joint's rotation is R_parent^T R_child = B Ry(pitch) Rx(roll) Rz(twist), B constant.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import numpy as np

from ..exceptions import RigError
from ..geometry.belt import find_belt, way_over
from ..geometry.leg_bending import bend_leg, sinking
from ..geometry.motion import Motion
from ..geometry.rotations import (
    angles_yxz,
    arctan2,
    frame_from_up,
    matrix_from_quaternion,
    quaternion_from_matrix,
    rotation_about,
    unit,
)
from ..geometry.skeleton import (
    ENTRIES,
    FEET,
    JOINT_OF,
    LANDMARK_INDEX,
    PARENTS,
    PARTS,
    SEGMENT_INDEX,
    SEGMENTS,
    SIDES,
    TOES,
    Segment,
    joint_name,
    joint_of_dof,
)
from ..geometry.stance import NAMES as STANCE_NAMES
from ..geometry.stance import Above, adult_size, find_contacts, is_in_place, stance_of
from ..geometry.trajectory import Trajectory
from ..ranges import RANGES
from . import anthropometry as body
from .foot import Foot, sole_corners
from .foot_check import check_feet
from .footing import Footing, level

PITCH, ROLL, TWIST = 1, 0, 2  # coordinate axes y, x, z
_Numbers = Sequence[float] | np.ndarray

_AXES = {"pitch": PITCH, "roll": ROLL, "twist": TWIST}
_AXIS_NAMES = {axis: name for name, axis in _AXES.items()}

#: How far ahead of the ankle the toes may begin: they are so long [m, adult of 1.75 m]. This and
#: the next four were settled on captured walks: `researcher.md`, Feet that stand.
_TOE_LENGTHS = (0.05, 0.08)
_TOE_THICKNESS = 0.025  # [m, adult]: so high is their hinge, wherever the rig has it
#: Of a foot's mass, what is ahead of the ball, and of its moments of inertia, what is behind it.
_TOE_MASS, _HIND_INERTIA = 0.2, 0.7
#: Where the ball is if the rig does not say, as a share of the way from ankle to tip: estimated.
_BALL_SHARE = 0.65
#: Of a flat foot, the sine of its pitch: by trial on captured clips.
_FLAT = 0.06
#: Toes turn as slowly as if they were so much heavier: light ones between a floor and 70 kg are
#: thrown about by the engine in a hard landing. By trial on such.
_TOE_ARMATURE = 10.0
#: A foot whose lowest ankle is this much higher than the other's [m] never stood flat: by trial on
#: captured clips.
_FLAT_FOOT_HEIGHT = 0.03
#: An ankle that is so much higher [m] than when it is lowest, and slower than this [m/s], is that
#: of a foot on its toes; where that is so in less than this share of the samples, it hardly tips
#: the foot that is estimated. By trial on captured clips.
_ON_TOES, _STAYS, _HARDLY = 0.035, 0.05, 0.1
#: Feet in place whose heights over the ground differ by less than this [m] both stand on it: by
#: trial on clips that stand on slopes.
_SLOPED = 0.08
#: Of a thigh that tells where its knee is ahead of, how much it points down (sine): those of who
#: sits low point up. By judgement.
_LOWERED = 0.3
_RANGE_MARGIN = 0.3  # [rad] beyond the clip's own range, so that a correction has room: estimated
#: A leg that changes its length by more than this share of it is stretched: 2 mm. Captured ones
#: keep theirs to a hundredth of that.
_STRETCHED = 0.002
#: Stature of the adult for whom lengths are told [m].
_ADULT = 1.75


@dataclass(frozen=True)
class Joint:
    """How a segment hangs on its parent.

    offset: (3,) joint centre in the parent's frame [m]. basis: (3, 3) the constant B.
    axes: coordinate axis of each degree of freedom. first: index of the first one.
    """

    name: str
    segment: int
    parent: int
    offset: np.ndarray
    basis: np.ndarray
    axes: tuple[int, ...]
    first: int


@dataclass(frozen=True)
class Shape:
    """A solid for drawing and for contact, in the segment's body frame (origin: centre of mass).

    kind and size: "box" with half extents (x, y, z) [m], "capsule" with (radius, length of the
    cylinder along z) [m], "sphere" with (radius,) [m]. rotation: w-first quaternion.
    """

    segment: str
    kind: str
    size: tuple[float, ...]
    position: tuple[float, ...]
    rotation: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Character:
    """A biped's body. Build one with `from_motion`.

    mass [kg]; height: stature [m]; ground: height of the floor [m]; arrays over SEGMENTS:
    masses [kg], centres (S, 3) centre of mass in the segment's frame [m], inertias (S, 3)
    principal moments about the frame's axes at the centre of mass [kg m^2]; calibration (S, 3, 3)
    from a motion's segment axes to the frames; feet: left and right sole; limits (dofs, 2) [rad].
    actor: the body that the motion was captured from, where this one has other proportions (see
    `morphology`); else None.
    """

    mass: float
    height: float
    ground: float
    masses: np.ndarray
    centres: np.ndarray
    inertias: np.ndarray
    joints: tuple[Joint, ...]
    feet: tuple[Foot, Foot]
    limits: np.ndarray
    calibration: np.ndarray
    shapes: tuple[Shape, ...] = field(repr=False)
    actor: "Character | None" = field(default=None, repr=False)

    @property
    def dofs(self) -> int:
        """Number of actuated degrees of freedom."""
        return len(self.dof_names)

    @property
    def dof_names(self) -> tuple[str, ...]:
        """Names such as hip_l_pitch, in the order of every array over degrees of freedom."""
        return tuple(f"{j.name}_{_AXIS_NAMES[a]}" for j in self.joints for a in j.axes)

    @property
    def leg(self) -> float:
        """Length of a thigh and a shin [m]."""
        return -sum(j.offset[2] for j in self.joints if j.name in ("knee_l", "ankle_l"))

    @property
    def segment_masses(self) -> dict[str, float]:
        """Mass of each segment by name [kg]."""
        return dict(zip(SEGMENTS, self.masses.tolist(), strict=True))

    @classmethod
    def from_motion(
        cls,
        motion: Motion,
        mass: float | None = None,
        floor: float | None = None,
        terrain: "Terrain | None" = None,
        held: np.ndarray | None = None,
    ) -> "Character":
        """Measure a body from an animated motion.

        mass: [kg], or None for that of a person of the same stature. floor: height [m] of what it
        stands on, None for the scene's own. The soles reach it, or have a floor of their own if
        that is too far away. terrain: terrain.Terrain that it walks on, None for a level floor.
        A motion that walks on the spot is measured as if it went where its feet take it.
        held: (F,) samples in which something holds it, so that it may hang: what is under its feet
        then need not be a floor, and of whoever begins so the floor is that height.
        Raises RigError if the limbs have no length or the toes point backward or up, SettingsError
        for a mass that nobody has.
        """
        if mass is not None:
            RANGES["mass"].check(mass)
        measured = _measure(cls, motion, mass, floor or 0.0, terrain, held)
        travelled = measured.travelled(motion, terrain)
        if travelled is motion:
            return measured
        return _measure(cls, travelled, mass, floor or 0.0, terrain, held)

    def travelled(self, motion: Motion, terrain: "Terrain | None" = None) -> Motion:
        """A motion that goes where its feet take it, if it walks on the spot, as on a treadmill;
        the very same one if it does not."""
        trajectory = self.trajectory(motion)
        joints, frames = self.pose(trajectory)
        corners = self.sole_corners(joints, frames)
        if terrain is None:
            over = Above(corners[..., 2] - self.ground, np.zeros_like(corners))
        else:
            over = terrain.over(corners, joints[:, FEET])
        belt = find_belt(corners, over, trajectory.root, motion.rate, adult_size(self))
        if belt is None:
            return motion
        way = way_over(belt, motion.rate)
        return replace(motion, positions=motion.positions + way[:, None])

    def joint_words(self, dof: int) -> str:
        """The joint of a degree of freedom, by its index, in words: "left elbow"."""
        joint = next(joint for joint in reversed(self.joints) if joint.first <= dof)
        return joint_name(SEGMENTS[joint.segment])

    def stance_summary(self, motion: Motion) -> dict[str, float]:
        """Share of the motion's samples in each stance state, by its name."""
        joints, frames = self.pose(self.trajectory(self.travelled(motion)))
        corners = self.sole_corners(joints, frames)
        contacts, _ = find_contacts(self, corners, motion.rate, joints[:, 0])
        share = np.bincount(stance_of(contacts), minlength=4) / len(motion)
        return dict(zip(STANCE_NAMES, share.tolist(), strict=True))

    def forward(
        self, root: np.ndarray, rotation: np.ndarray, angles: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Forward kinematics of (samples,) poses.

        root (F, 3) [m], rotation (F, 3, 3), angles (F, dofs) [rad]. Returns joint positions
        (F, S, 3) [m] and segment frames (F, S, 3, 3).
        """
        count = len(root)
        positions = np.empty((count, len(SEGMENTS), 3))
        frames = np.empty((count, len(SEGMENTS), 3, 3))
        positions[:, 0] = root
        frames[:, 0] = rotation
        for joint in self.joints:
            parent = frames[:, joint.parent]
            positions[:, joint.segment] = positions[:, joint.parent] + parent @ joint.offset
            frame = parent @ joint.basis
            for i, axis in enumerate(joint.axes):
                frame = frame @ rotation_about(axis, angles[:, joint.first + i])
            frames[:, joint.segment] = frame
        return positions, frames

    def pose(self, trajectory: Trajectory) -> tuple[np.ndarray, np.ndarray]:
        """Joint positions (F, S, 3) [m] and segment frames (F, S, 3, 3) of a trajectory."""
        return self.forward(
            trajectory.root, matrix_from_quaternion(trajectory.rotation), trajectory.angles
        )

    def body_centres(self, positions: np.ndarray, frames: np.ndarray) -> np.ndarray:
        """Centres of mass (F, S, 3) [m] of all segments."""
        return positions + np.einsum("fsij,sj->fsi", frames, self.centres)

    def sole_corners(self, positions: np.ndarray, frames: np.ndarray) -> np.ndarray:
        """(F, 2, 6, 3) world positions of the sole corners of both feet [m], see
        `foot.sole_corners`."""
        return sole_corners(self.feet, positions[:, FEET], frames[:, FEET], frames[:, TOES])

    def soles_of(self, centres: np.ndarray, turns: np.ndarray) -> np.ndarray:
        """(F, 2, 6, 3) the same, of segments whose centres of mass are at (F, S, 3) [m], with
        orientations (F, S, 4)."""
        frames = matrix_from_quaternion(turns)
        return self.sole_corners(centres - np.einsum("fsij,sj->fsi", frames, self.centres), frames)

    def trajectory(self, motion: Motion) -> Trajectory:
        """Project a motion of the same rig on the character's degrees of freedom.

        Legs that the animation stretches are so that feet are where it has them, see `reached`.
        """
        return self.reached(self.as_animated(motion), motion)

    def as_animated(self, motion: Motion) -> Trajectory:
        """The same, with all segments turned as they are animated.

        Hinges cannot follow everything: the limb's plane is kept by turning its upper segment
        about itself, so that wrists and ankles stay where the animation has them.
        """
        root = motion.positions[:, LANDMARK_INDEX["pelvis"]]
        return self.trajectory_of(motion.rate, root, self.segment_frames(motion))

    def reached(self, trajectory: Trajectory, motion: Motion) -> Trajectory:
        """A trajectory `as_animated`, or mended since, whose ankles are where the motion has them:
        it stretches legs, and these have one length. Where they do not reach so far, the body is
        lower. The same trajectory where no leg is stretched."""
        if not any(_stretches(motion, side) for side in SIDES):
            return trajectory
        joints, frames = self.pose(trajectory)
        pelvis, *ankles = _points(motion, "pelvis", *(f"ankle_{side}" for side in SIDES))
        aims = [trajectory.root + ankle - pelvis for ankle in ankles]
        joints[..., 2] -= sinking(joints, aims)[:, None]
        for side, aim in zip(SIDES, aims, strict=True):
            bend_leg(joints, frames, side, aim)
        return self.trajectory_of(trajectory.rate, joints[:, 0], frames)

    def segment_frames(self, motion: Motion) -> np.ndarray:
        """(F, S, 3, 3) frames of a motion of the same rig, as it is animated."""
        return _segment_frames(motion, self.calibration)

    def trajectory_of(self, rate: float, root: np.ndarray, frames: np.ndarray) -> Trajectory:
        """Project segment frames (F, S, 3, 3), with the pelvis landmark at (F, 3) [m]."""
        rotation = frames[:, 0]
        angles = np.empty((len(root), self.dofs))
        tree = np.empty_like(frames)
        tree[:, 0] = rotation
        for joint in self.joints:
            base = tree[:, joint.parent] @ joint.basis
            relative = np.swapaxes(base, 1, 2) @ frames[:, joint.segment]
            columns = slice(joint.first, joint.first + len(joint.axes))
            if joint.axes == (PITCH,):
                # Only the limb's own direction counts: R_y(a) z = (sin a, 0, cos a).
                values = arctan2(relative[:, 0, 2], relative[:, 2, 2])[:, None]
            else:
                values = angles_yxz(relative)[:, : len(joint.axes)]
            angles[:, columns] = np.unwrap(values, axis=0)
            frame = base
            for i, axis in enumerate(joint.axes):
                frame = frame @ rotation_about(axis, angles[:, joint.first + i])
            tree[:, joint.segment] = frame
        return Trajectory(rate, root.copy(), quaternion_from_matrix(rotation), angles)


class Terrain(Protocol):
    """What is asked of a `terrain.Terrain`."""

    def under(
        self, points: np.ndarray, most: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...

    def over(self, corners: np.ndarray, ankles: np.ndarray) -> Above: ...

    def footings(
        self, character: Character, trajectory: Trajectory, contacts: np.ndarray
    ) -> tuple[Footing, Footing]: ...


# --- Measuring -----------------------------------------------------------------------------------


def _points(motion: Motion, *names: str) -> list[np.ndarray]:
    return [motion.positions[:, LANDMARK_INDEX[name]] for name in names]


def _length(motion: Motion, start: str, end: str) -> float:
    """Median distance [m] of two landmarks."""
    a, b = _points(motion, start, end)
    return float(np.median(np.linalg.norm(b - a, axis=1)))


def _stretches(motion: Motion, side: str) -> bool:
    """Whether a leg changes its length."""
    hip, knee, ankle = _points(motion, f"hip_{side}", f"knee_{side}", f"ankle_{side}")
    length = np.linalg.norm(knee - hip, axis=1) + np.linalg.norm(ankle - knee, axis=1)
    return bool(np.ptp(length) > _STRETCHED * length.max())


def _upright_sample(motion: Motion) -> int:
    """The sample whose trunk and legs are closest to vertical."""
    cost = np.zeros(len(motion))
    pairs = [("lumbar", "neck"), ("pelvis", "neck")]
    pairs += [(f"knee_{s}", f"hip_{s}") for s in SIDES]
    pairs += [(f"ankle_{s}", f"knee_{s}") for s in SIDES]
    for low, high in pairs:
        a, b = _points(motion, low, high)
        cost = cost - unit(b - a)[:, 2]
    return int(np.argmin(cost))


def _heading(motion: Motion) -> np.ndarray:
    """(samples, 3, 3) frames that turn with the hips about the vertical."""
    left = np.subtract(*_points(motion, "hip_l", "hip_r"))
    return frame_from_up(np.broadcast_to([0.0, 0, 1], left.shape), left)


def _hinge(
    upper_frames: np.ndarray,
    upper: np.ndarray,
    lower: np.ndarray,
    guess: np.ndarray,
    flexion: float,
) -> np.ndarray:
    """Axis of a hinge in the axes of `upper_frames`: the mean normal of the plane of the limb,
    where it is bent, and `guess` (same axes) as far as it never is.

    upper, lower: (samples, 3) directions towards the distal end. flexion: sign of the normal.
    """
    normal = flexion * np.cross(unit(upper), unit(lower))
    local = np.einsum("fji,fj->fi", upper_frames, normal)
    sine = np.linalg.norm(local, axis=1, keepdims=True)
    agrees = (local @ guess)[:, None] > 0
    total = (local * sine * agrees).sum(0)  # weight: squared sine of the bend
    enough = 0.07 * len(local)  # as much as a bend of 15 degrees throughout
    share = min(1.0, float(np.linalg.norm(total)) / enough)
    return unit(share * unit(total) + (1 - share) * guess)


def _calibrate(motion: Motion, terrain: Terrain | None) -> np.ndarray:
    """Constant rotations (S, 3, 3) from the motion's segment axes to the anatomical frames."""
    at = _upright_sample(motion)
    axes = matrix_from_quaternion(motion.rotations)
    heading = _heading(motion)[at]
    forward, left, up = heading.T
    frames = dict.fromkeys(SEGMENTS, heading)
    lumbar, neck = (p[at] for p in _points(motion, "lumbar", "neck"))
    frames["trunk"] = frame_from_up(neck - lumbar, left)
    samples = {}
    for side in SIDES:
        for upper, lower, names, flexion in (
            ("thigh", "shin", ("hip", "knee", "ankle"), 1),
            ("upper_arm", "forearm", ("shoulder", "elbow", "wrist"), -1),
        ):
            a, b, c = _points(motion, *(f"{n}_{side}" for n in names))
            along = unit(b[at] - a[at])
            # The hinge's axis when the limb is straight: a leg bends in the direction of the
            # foot, an arm brings the hand forward.
            toward = _foot_direction(motion, side)[at] if upper == "thigh" else forward
            if upper == "thigh" and along[2] > -_LOWERED:  # of one that sits the shin is lower
                along = unit(c[at] - b[at])
            guess = np.cross(toward, along) if flexion > 0 else -np.cross(along, toward)
            if np.linalg.norm(guess) < 0.2:  # sine of 12 degrees: it hardly tells an axis
                guess = left
            index = SEGMENT_INDEX[f"{upper}_{side}"]
            own = axes[:, index]
            axis = own[at] @ _hinge(own, b - a, c - b, own[at].T @ unit(guess), flexion)
            frames[f"{upper}_{side}"] = frame_from_up(a[at] - b[at], axis)
            frames[f"{lower}_{side}"] = frame_from_up(b[at] - c[at], axis)
        foot_at = at
        if terrain is not None:  # on stairs a foot may be anyhow while the legs are straightest
            planted = np.flatnonzero(_planted(motion, side, terrain)[1])
            foot_at = planted[len(planted) // 2]
        samples[f"foot_{side}"] = samples[f"toe_{side}"] = foot_at
        ahead = _foot_direction(motion, side)[foot_at]
        frames[f"foot_{side}"] = frames[f"toe_{side}"] = frame_from_up(up, np.cross(up, ahead))
    calibration = np.stack(
        [axes[samples.get(name, at), i].T @ frames[name] for i, name in enumerate(SEGMENTS)]
    )
    _level_feet(motion, calibration, terrain)
    _straighten_toes(motion, calibration, terrain)
    return calibration


def _foot_direction(motion: Motion, side: str) -> np.ndarray:
    """(samples, 3) horizontal direction from ankle to toes."""
    ankle, ball, toe = _points(motion, f"ankle_{side}", f"ball_{side}", f"toe_{side}")
    tip = np.where(np.isfinite(ball), ball, toe)
    forward = _heading(motion)[:, :, 0]
    direction = np.where(np.isfinite(tip), tip - ankle, forward) * [1, 1, 0]
    flat = np.linalg.norm(direction, axis=1, keepdims=True) > 1e-3
    return unit(np.where(flat, direction, forward))


def _level_feet(motion: Motion, calibration: np.ndarray, terrain: Terrain | None) -> None:
    """Remove the mean pitch and roll that each foot has while it is low and slow. A foot that
    never comes down flat (its ankle stays higher than the other's) takes the slope between ankle
    and toes from the other one."""
    heights, slopes = {}, {}
    for side in SIDES:
        index = SEGMENT_INDEX[f"foot_{side}"]
        ankle, planted, ups = _planted(motion, side, terrain)
        heights[side] = float(np.median(ankle[planted, 2]))
        frames = matrix_from_quaternion(motion.rotations[planted, index]) @ calibration[index]
        back = np.swapaxes(frames, 1, 2)
        ups = back @ [0.0, 0, 1] if terrain is None else np.einsum("fij,fj->fi", back, ups[planted])
        up = unit(ups.mean(0))
        calibration[index] = calibration[index] @ frame_from_up(up, np.array([0.0, 1, 0]))
        slopes[side] = _toe_slope(motion, calibration, side)
    flat, tilted = sorted(SIDES, key=lambda side: heights[side])
    if heights[tilted] - heights[flat] > _FLAT_FOOT_HEIGHT:
        turn = slopes[tilted] - slopes[flat]
        if np.isfinite(turn):
            index = SEGMENT_INDEX[f"foot_{tilted}"]
            calibration[index] = calibration[index] @ rotation_about(PITCH, turn)


def _straighten_toes(motion: Motion, calibration: np.ndarray, terrain: Terrain | None) -> None:
    """Let the toes go on straight where the foot does while it is low and slow."""
    axes = matrix_from_quaternion(motion.rotations)
    for side, foot, toe in zip(SIDES, FEET, TOES, strict=True):
        _, planted, _ = _planted(motion, side, terrain)
        frames = axes[planted, foot] @ calibration[foot]
        toes = axes[planted, toe] @ calibration[toe]
        relative = np.swapaxes(frames, 1, 2) @ toes
        bend = float(np.median(arctan2(relative[:, 0, 2], relative[:, 2, 2])))
        calibration[toe] = calibration[toe] @ rotation_about(PITCH, -bend)


def _toe_slope(motion: Motion, calibration: np.ndarray, side: str) -> float:
    """Angle [rad] of the line from ankle to toes below the foot's x axis; NaN without toes."""
    ankle, ball, toe = _points(motion, f"ankle_{side}", f"ball_{side}", f"toe_{side}")
    tip = ball if np.isfinite(ball).all() else toe
    index = SEGMENT_INDEX[f"foot_{side}"]
    frames = matrix_from_quaternion(motion.rotations[:, index]) @ calibration[index]
    local = np.einsum("fji,fj->fi", frames, tip - ankle).mean(0)
    return float(np.arctan2(-local[2], local[0]))


def _planted(
    motion: Motion, side: str, terrain: Terrain | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ankle (F, 3) [m] as if what is under it were at 0, in which samples it is lowest and slowest,
    and the upward normals (F, 3) of that."""
    (ankle,) = _points(motion, f"ankle_{side}")
    normals = np.tile([0.0, 0.0, 1.0], (len(ankle), 1))
    if terrain is not None:
        heights, normals, _ = terrain.under(ankle[:, None], ankle[:, None, 2])
        ankle, normals = ankle - heights * [0, 0, 1], normals[:, 0]
    return ankle, _low_and_slow(ankle, motion.rate), normals


def _low_and_slow(points: np.ndarray, rate: float) -> np.ndarray:
    """Which samples (a tenth, and all that are as good) of (samples, 3) points are lowest and
    slowest: 5 cm higher counts as much as 0.3 m/s faster, by trial on captured clips. A foot that
    stays on its toes is slow, but not low."""
    speed = np.linalg.norm(np.gradient(points, axis=0), axis=1) * rate
    span = max(np.ptp(points[:, 2]), 1e-3)
    cost = (points[:, 2] - points[:, 2].min()) / min(span, 0.05) + speed / 0.3
    chosen = cost <= max(1.0, float(np.quantile(cost, 0.1)))
    high = points[:, 2] > np.quantile(points[chosen, 2], 0.1) + _ON_TOES
    on_toes = chosen & high & (speed < _STAYS)
    return chosen & ~on_toes if on_toes.sum() > _HARDLY * chosen.sum() else chosen


def _segment_frames(motion: Motion, calibration: np.ndarray) -> np.ndarray:
    """(samples, S, 3, 3) anatomical frames, limbs exactly along their joints and hinged limbs in
    one plane."""
    frames = matrix_from_quaternion(motion.rotations) @ calibration
    for side in SIDES:
        for upper, lower, names, flexion in (
            ("thigh", "shin", ("hip", "knee", "ankle"), 1),
            ("upper_arm", "forearm", ("shoulder", "elbow", "wrist"), -1),
        ):
            a, b, c = _points(motion, *(f"{n}_{side}" for n in names))
            index = SEGMENT_INDEX[f"{upper}_{side}"]
            normal = flexion * np.cross(unit(b - a), unit(c - b))
            sine2 = (normal**2).sum(1, keepdims=True)
            left = frames[:, index, :, 1]
            # The plane of a nearly straight limb is noise: trust it as the bend grows (10 deg).
            aligned = np.sign((normal * left).sum(1, keepdims=True))
            weight = sine2 / (sine2 + 0.03)
            left = (1 - weight) * left + weight * aligned * unit(normal)
            frames[:, index] = frame_from_up(a - b, left)
            index = SEGMENT_INDEX[f"{lower}_{side}"]
            frames[:, index] = frame_from_up(b - c, left)
    return frames


def _offsets(motion: Motion, frames: np.ndarray, height: float) -> dict[str, np.ndarray]:
    """Joint centres in the parent's frame, (3,) [m] by segment: medians over the motion."""
    offsets = {}
    for segment, parent in PARENTS.items():
        if SEGMENT_INDEX[segment] in TOES:  # its hinge is the sole's, see `_hinged`
            offsets[segment] = np.zeros(3)
            continue
        origin, point = _points(motion, JOINT_OF[parent], JOINT_OF[segment])
        local = np.einsum("fji,fj->fi", frames[:, SEGMENT_INDEX[parent]], point - origin)
        offsets[segment] = np.median(local, axis=0)
        if not np.isfinite(offsets[segment]).all():
            offsets[segment] = np.multiply(ENTRIES[segment].place, height)
        if ENTRIES[parent].end:
            # Limbs are straight along their own z by construction.
            offsets[segment] = np.array([0, 0, -np.median(np.linalg.norm(point - origin, axis=1))])
    return offsets


def _ball_basis(frames: np.ndarray, parent: str, limb: str) -> np.ndarray:
    """Basis of the left shoulder or hip: its first axis where neither limb ever points.

    A ball joint made of three hinges locks where the limb lies along the first axis. The axis is
    chosen among directions of a hemisphere as the one that stays farthest from both limbs
    (the right one mirrored).
    """
    base = frames[:, SEGMENT_INDEX[parent]]
    both = []
    for side, mirror in (("l", 1), ("r", -1)):
        along = frames[:, SEGMENT_INDEX[f"{limb}_{side}"], :, 2]
        both.append(np.einsum("fji,fj->fi", base, along) * [1, mirror, 1])
    limbs = np.concatenate(both)
    k = np.arange(128)
    z = (k + 0.5) / 128
    turn = k * np.pi * (3 - np.sqrt(5))
    radius = np.sqrt(1 - z**2)
    axes = np.stack([radius * np.cos(turn), radius * np.sin(turn), z], 1)
    axes = np.concatenate([[[0.0, 1, 0], [1.0, 0, 0]], axes])
    closest = np.abs(limbs @ axes.T).max(0)
    first = axes[np.argmin(closest)]
    # Anatomical axes are kept while they are safe: 30 degrees at least (by estimate).
    for axis in range(2):
        if closest[axis] < 0.87:
            first = axes[axis]
            break
    helper = np.array([0.0, 0, 1]) if abs(first[2]) < 0.9 else np.array([1.0, 0, 0])
    x = unit(np.cross(first, helper))
    return np.stack([x, first, np.cross(x, first)], 1)


def _mirror(basis: np.ndarray) -> np.ndarray:
    """The same basis on the other side of the body, right-handed."""
    flip = np.diag([1.0, -1, 1])
    return flip @ basis @ flip


def _bases(frames: np.ndarray) -> dict[str, np.ndarray]:
    """Constant rotations B by segment."""
    bases = {segment: np.eye(3) for segment in PARENTS}
    for parent, limb in (("trunk", "upper_arm"), ("pelvis", "thigh")):
        bases[f"{limb}_l"] = _ball_basis(frames, parent, limb)
        bases[f"{limb}_r"] = _mirror(bases[f"{limb}_l"])
    for side in SIDES:
        # A straight knee or elbow is not quite straight sideways: its carrying angle.
        for upper, lower in (("thigh", "shin"), ("upper_arm", "forearm")):
            above, below = (frames[:, SEGMENT_INDEX[f"{n}_{side}"]] for n in (upper, lower))
            along = np.einsum("fji,fj->fi", above, below[:, :, 2])
            along = along[along[:, 2] > 0.7]  # bent by less than 45 degrees
            if len(along):
                _, y, z = along.mean(0)
                bases[f"{lower}_{side}"] = rotation_about(0, np.arctan2(-y, z))
        # The hinge of the knee need not look where the foot does: toe-out is part of the body.
        shin, foot = (frames[:, SEGMENT_INDEX[f"{n}_{side}"]] for n in ("shin", "foot"))
        ahead = (np.swapaxes(shin, 1, 2) @ foot)[:, :2, 0].mean(0)
        bases[f"foot_{side}"] = rotation_about(2, np.arctan2(ahead[1], ahead[0]))
    return bases


def _joints(offsets: dict[str, np.ndarray], bases: dict[str, np.ndarray]) -> tuple[Joint, ...]:
    joints: list[Joint] = []
    first = 0
    for segment in SEGMENTS[1:]:
        entry = ENTRIES[segment]
        axes = tuple(_AXES[axis] for axis in entry.ranges)
        joints.append(
            Joint(
                segment.replace(entry.name, entry.joint),
                SEGMENT_INDEX[segment],
                SEGMENT_INDEX[PARENTS[segment]],
                offsets[segment],
                bases[segment],
                axes,
                first,
            )
        )
        first += len(axes)
    return tuple(joints)


def _foot(motion: Motion, height: float, terrain: Terrain | None) -> Foot:
    """The Foot on both sides, as long as the animated ones if that is plausible."""
    feet = []
    for side in SIDES:
        ankle, ball, toe = _points(motion, f"ankle_{side}", f"ball_{side}", f"toe_{side}")
        _, planted, ups = _planted(motion, side, terrain)
        ahead = _foot_direction(motion, side)[planted]
        reach = body.FOOT_LENGTH_SHARE - body.HEEL_SHARE
        # The tip is about 4 % of stature beyond the ball; what is far from Winter's foot is none.
        # Both by estimate.
        for tip, beyond in ((toe, 0.0), (ball, 0.04)):
            length = np.median(((tip - ankle)[planted] * ahead).sum(1)) / height + beyond
            if 0.8 * reach < length < 1.3 * reach:
                reach = length
                break
        drop = body.ANKLE_HEIGHT_SHARE * height
        for tip in (ball, toe):
            if np.isfinite(tip).all():
                fall = np.median(((ankle - tip) * ups).sum(1)[planted])
                fall += 0.01 * height / _ADULT  # the toes' bones are above the sole; by estimate
                drop = max(drop, min(float(fall), 2 * drop))
        feet.append((body.HEEL_SHARE * height, reach * height, drop))
    heel, reach, drop = np.mean(feet, axis=0).tolist()  # left and right are alike
    size = height / _ADULT
    shortest, longest = (length * size for length in _TOE_LENGTHS)
    hinge = min(max(_ball(motion, reach, terrain), reach - longest), reach - shortest)
    half_width = body.FOOT_WIDTH_SHARE * height / 2
    return Foot(heel, reach, half_width, drop, hinge, _TOE_THICKNESS * size)


def _ball(motion: Motion, reach: float, terrain: Terrain | None) -> float:
    """How far ahead of the ankle [m] the rig has the ball of the foot, while that is planted."""
    found = []
    for side in SIDES:
        ankle, ball = _points(motion, f"ankle_{side}", f"ball_{side}")
        if np.isfinite(ball).all():
            _, planted, _ = _planted(motion, side, terrain)
            ahead = _foot_direction(motion, side)[planted]
            found.append(np.median(((ball - ankle)[planted] * ahead).sum(1)))
    return float(np.mean(found)) if found else _BALL_SHARE * reach


def _hinged(joints: tuple[Joint, ...], foot: Foot) -> tuple[Joint, ...]:
    """Joints of which the toes' are where the sole has their hinge."""
    return tuple(
        replace(joint, offset=foot.hinge) if joint.segment in TOES else joint for joint in joints
    )


def _ground_quantile(lowest: np.ndarray) -> float:
    """The floor [m] under (samples,) lowest sole corners: their median, or a lower quantile if
    the body leaves the ground: by trial on captured clips."""
    span = np.quantile(lowest, 0.9) - np.quantile(lowest, 0.1)
    return float(np.quantile(lowest, 0.5 if span < 0.05 else 0.25))


def _measure(
    cls: type[Character],
    motion: Motion,
    mass: float | None,
    floor: float,
    terrain: Terrain | None,
    held: np.ndarray | None,
) -> Character:
    lengths = [_length(motion, f"hip_{s}", f"knee_{s}") for s in SIDES]
    lengths += [_length(motion, f"knee_{s}", f"ankle_{s}") for s in SIDES]
    lengths += [_length(motion, f"shoulder_{s}", f"elbow_{s}") for s in SIDES]
    lengths += [_length(motion, f"elbow_{s}", f"wrist_{s}") for s in SIDES]
    lengths += [_length(motion, "lumbar", "neck")]
    if min(lengths) < 0.01:
        raise RigError(
            f"'{motion.name}' has a limb shorter than 1 cm: check the rig map and the scale."
        )
    height = body.stature_from_legs(sum(lengths[:4]) / 2)
    if not 0.3 < height < 6:
        raise RigError(
            f"'{motion.name}' would be {height:.2f} m tall: set the scale (metres per unit)."
        )
    check_feet(motion, height, [_planted(motion, side, terrain)[1:] for side in SIDES])
    mass = body.mass_from_stature(height) if mass is None else float(mass)
    calibration = _calibrate(motion, terrain)
    frames = _segment_frames(motion, calibration)
    joints = _joints(_offsets(motion, frames, height), _bases(frames))
    foot = _foot(motion, height, terrain)
    joints = _hinged(joints, foot)
    solids, shapes = _solids(motion, height, mass, foot, {j.segment: j for j in joints})
    character = cls(
        mass=mass,
        height=height,
        ground=0.0,
        masses=np.array([solid.mass for solid in solids]),
        centres=np.stack([solid.centre for solid in solids]),
        inertias=np.stack([solid.inertia for solid in solids]),
        joints=joints,
        feet=(foot, foot),
        limits=np.zeros((0, 2)),
        calibration=calibration,
        shapes=shapes,
    )
    return _stand_on_ground(character, motion, floor, terrain, held)


def _stand_on_ground(
    character: Character,
    motion: Motion,
    floor: float,
    terrain: Terrain | None,
    held: np.ndarray | None,
) -> Character:
    """Find the floor, and give the joints room for what the motion does."""
    trajectory = character.trajectory(motion)
    joints, frames = character.pose(trajectory)
    corners = character.sole_corners(joints, frames)
    lowest = corners[..., 2].min((1, 2))
    if terrain is not None:
        feet = floor + terrain.over(corners, joints[:, FEET])[0].min(2)
        # Of feet that were animated on the level one is in a slope as far as the other is over it.
        both = is_in_place(joints[:, 0]) & (np.ptp(feet, axis=1) < _SLOPED)
        lowest = np.where(both, feet.mean(1), feet.min(1))
    free = lowest if held is None or held.all() else lowest[~held]
    ground = _ground_quantile(free)
    depth = character.feet[0].depth + ground - floor
    if _is_plausible(character, depth):
        # The clip's own floor is where the scene's is: take that and let the soles reach it.
        ground = floor
        character = _with_depth(character, depth)
    elif held is not None and held[0]:
        ground = floor  # it may hang as high above it as it likes
    character = replace(character, ground=ground)
    depth = _depth_in_stance(character, trajectory, terrain)
    if _is_plausible(character, depth):
        character = _with_depth(character, depth)
    limits = []
    for name, values in zip(character.dof_names, trajectory.angles.T, strict=True):
        entry = joint_of_dof(name)
        low, high = entry.ranges[name.rpartition("_")[2]]
        if not entry.rigid:
            low, high = (
                min(low, values.min() - _RANGE_MARGIN),
                max(high, values.max() + _RANGE_MARGIN),
            )
        limits.append((low, high))
    return replace(character, limits=np.array(limits))


def _is_plausible(character: Character, depth: float) -> bool:
    """Whether a sole may be so deep [m] below the ankle, beside a person's: barefoot to high soles,
    by estimate."""
    share = body.ANKLE_HEIGHT_SHARE * character.height
    return 0.5 * share < depth < 2.2 * share


def _with_depth(character: Character, depth: float) -> Character:
    """The character on soles so deep [m] below the ankles."""
    foot = replace(character.feet[0], depth=depth)
    shapes = tuple(
        _foot_shape(s.segment, foot, character.centres[SEGMENT_INDEX[s.segment]])
        if SEGMENT_INDEX[s.segment] in FEET + TOES
        else s
        for s in character.shapes
    )
    joints = _hinged(character.joints, foot)
    return replace(character, feet=(foot, foot), shapes=shapes, joints=joints)


def _depth_in_stance(
    character: Character, trajectory: Trajectory, terrain: Terrain | None
) -> float:
    """How far [m] the ankles are from the floor while their feet stand flat on it, so that soles of
    that depth are as high as the clip has them; NaN if they never do."""
    joints, frames = character.pose(trajectory)
    corners, ankles = character.sole_corners(joints, frames), joints[:, FEET]
    over = None if terrain is None else terrain.over(corners, ankles)
    contacts, _ = find_contacts(character, corners, trajectory.rate, trajectory.root, over)
    if terrain is None:
        footings = level(character.ground, len(contacts))
    else:
        footings = terrain.footings(character, trajectory, contacts)
    found = []
    for side, (foot, footing) in enumerate(zip(FEET, footings, strict=True)):
        up = footing.moved(footing.normals)
        apart = ankles[:, side] - footing.moved(footing.points, True)
        flat = contacts[:, side] & (np.abs((frames[:, foot, :, 0] * up).sum(1)) < _FLAT)
        found.append((apart * up).sum(1)[flat])
    depths = np.concatenate(found)
    return float(np.median(depths)) if len(depths) else np.nan


class Solid(NamedTuple):
    """A segment's mass [kg], its centre (3,) [m] in the segment's frame, and its principal moments
    (3,) [kg m^2] there."""

    mass: float
    centre: np.ndarray
    inertia: np.ndarray


def _foot_shape(segment: str, foot: Foot, centre: np.ndarray) -> Shape:
    """The box under the ankle, from the sole to half the ankle's height, or that of the toes."""
    if SEGMENT_INDEX[segment] in TOES:
        half_height, half_length = foot.thickness / 2, (foot.toe - foot.ball) / 2
        middle = np.array([half_length, 0, -half_height])
    else:
        half_height, half_length = foot.depth / 4, (foot.ball + foot.heel) / 2
        middle = np.array([foot.ball - half_length, 0, half_height - foot.depth])
    size = (half_length, foot.half_width, half_height)
    return Shape(segment, "box", size, tuple(middle - centre))


def _toes(foot: Foot, mass: float) -> Solid:
    """The toes from their hinge: a uniform box, which turns as slowly as the engine needs."""
    long, wide, thick = foot.toe - foot.ball, 2 * foot.half_width, foot.thickness
    squares = np.array([wide**2 + thick**2, long**2 + thick**2, long**2 + wide**2])
    moments = _TOE_ARMATURE * mass * squares / 12
    return Solid(mass, np.array([long / 2, 0, -thick / 2]), moments)


def _limb(name: str, length: float, mass: float) -> Solid:
    """A limb that hangs along -z from its joint."""
    table = body.TABLE[name]
    own = table.mass * mass
    gyration = np.array(table.gyration) * length
    return Solid(own, np.array([0, 0, -table.centre * length]), own * gyration**2)


def _joined(parts: list[Solid]) -> Solid:
    """One rigid body of several on one z axis, by the parallel axis rule."""
    mass = sum(part.mass for part in parts)
    centre = np.sum([part.mass * part.centre for part in parts], axis=0) / mass
    inertia = np.zeros(3)
    for own, position, moments in parts:
        square = float((position - centre)[2] ** 2)
        inertia += moments + own * np.array([square, square, 0])
    return Solid(mass, centre, inertia)


def _solids(
    motion: Motion, height: float, mass: float, foot: Foot, joints: dict[int, Joint]
) -> tuple[list[Solid], tuple[Shape, ...]]:
    """The solids and the shapes of all segments."""
    entries = ENTRIES.values()
    lengths = {
        name: float(
            np.mean([_length(motion, e.landmark, e.end) for e in entries if e.name == name])
        )
        for name, one in PARTS.items()
        if one.end
    }
    arms = lengths["forearm"]
    hand = _limb("hand", body.HAND_SHARE * height, mass)
    hand = hand._replace(centre=hand.centre - [0, 0, arms])
    forearm = _joined([_limb("forearm", arms, mass), hand])
    pelvis_joint = np.mean([joints[SEGMENT_INDEX[f"thigh_{s}"]].offset for s in SIDES], axis=0)
    # What is short stands on its joint; pelvis and trunk are where the landmarks are.
    own = {name: _central(entry, height, mass) for name, entry in ENTRIES.items() if entry.length}
    own["pelvis"].centre[:] = pelvis_joint + [0, 0, body.PELVIS_CENTRE_SHARE * height]
    reach = _length(motion, "lumbar", "neck")
    own["trunk"].centre[2] = body.TABLE["trunk"].centre * reach
    table = body.TABLE["foot"]
    length = foot.heel + foot.toe
    # A foot lies along x: its longitudinal radius belongs there.
    gyration = np.array([table.gyration[2], table.gyration[1], table.gyration[0]]) * length
    sole = np.array([table.centre * length - foot.heel, 0, -foot.depth / 2])
    mass_of_foot = table.mass * mass
    toes = _toes(foot, _TOE_MASS * mass_of_foot)
    # Both together have the foot's centre along x.
    ahead = foot.ball + toes.centre[0] - sole[0]
    middle = sole - [_TOE_MASS / (1 - _TOE_MASS) * ahead, 0, 0]
    hind_mass = (1 - _TOE_MASS) * mass_of_foot
    hind = Solid(hind_mass, middle, _HIND_INERTIA * hind_mass * gyration**2)
    for side in SIDES:
        for name, long in lengths.items():
            own[f"{name}_{side}"] = _limb(name, long, mass)
        own[f"forearm_{side}"] = forearm
        own[f"foot_{side}"], own[f"toe_{side}"] = hind, toes
    solids = [own[segment] for segment in SEGMENTS]
    top = _length(motion, "neck", "head_top")
    return solids, _shapes(height, lengths, reach, foot, solids, pelvis_joint, top)


def _central(entry: Segment, height: float, mass: float) -> Solid:
    """What rises along z from its joint."""
    own = entry.mass * mass
    centre = np.array([0.0, 0.0, entry.centre * entry.length * height])
    return Solid(own, centre, own * (np.array(entry.gyration) * (entry.length * height)) ** 2)


def _shapes(
    height: float,
    lengths: dict[str, float],
    reach: float,
    foot: Foot,
    solids: list[Solid],
    hips: np.ndarray,
    top: float,
) -> tuple[Shape, ...]:
    """One solid per segment, about as thick as a person: by eye, as shares of stature. top: of the
    head above the neck [m], NaN where the rig has none."""
    shapes: list[Shape] = []

    def add(segment: str, kind: str, size: _Numbers, middle: _Numbers) -> None:
        centre = solids[SEGMENT_INDEX[segment]].centre
        shapes.append(
            Shape(segment, kind, tuple(map(float, size)), tuple(np.asarray(middle) - centre))
        )

    pelvis = np.array([0.055, 0.085, 0.05]) * height
    add("pelvis", "box", pelvis, hips + [0, 0, body.PELVIS_CENTRE_SHARE * height])
    trunk = np.array([0.055 * height, 0.09 * height, 0.42 * reach])
    add("trunk", "box", trunk, [0, 0, 0.5 * reach])
    for name, entry in ENTRIES.items():
        if entry.length and entry.thickness:
            radius, own = entry.thickness * height, solids[SEGMENT_INDEX[name]].centre
            if name == "head":  # as high as the rig's, unless that wears a hat
                high = min(np.fmax(top - radius, 0.085 * height), 0.13 * height)
                own = np.array([0.0, 0.0, high])
            add(name, "sphere", [radius], own)
    for side in SIDES:
        for name, entry in PARTS.items():
            if not entry.end:
                continue
            radius = entry.thickness * height
            long = max(lengths[name] - 2 * radius, 0.01)
            add(f"{name}_{side}", "capsule", (radius, long), [0, 0, -lengths[name] / 2])
        for segment in (f"foot_{side}", f"toe_{side}"):
            shapes.append(_foot_shape(segment, foot, solids[SEGMENT_INDEX[segment]].centre))
    return tuple(shapes)

# SPDX-License-Identifier: GPL-3.0-or-later
"""The nine bones that a clean-up corrects - pelvis, thighs, shins, feet, toes - as an animation has
them, where their corrections put them, and by how much each correction moves what.

Corrections are 22 numbers a sample, all 0 for the animation itself: where the pelvis is moved to
[m] and how it is turned, both in the world; then for each leg how thigh, shin, foot and toes are
turned in their own axes, as rotation vectors [rad]. Knee and toes are hinges. Whatever hangs on a
bone rides along with it, so rigs of any kind of skeleton are alike.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from ..body import anthropometry
from ..exceptions import RigError
from ..geometry.motion import Motion
from ..geometry.rotations import matrix_from_quaternion, unit
from ..geometry.skeleton import LANDMARK_INDEX, SEGMENT_INDEX, SIDE_WORDS, SIDES
from ..geometry.stance import ADULT, giant_size
from ..support.seats import seats_of
from ..support.terrain import Surroundings, Terrain, Under

UNKNOWNS = 22
MOVE, TURN = slice(0, 3), slice(3, 6)
#: Columns of each leg's own corrections, and among them those of each joint.
FIRST = {"l": 6, "r": 14}
HIP, KNEE, ANKLE, TOES = slice(0, 3), 3, slice(4, 7), 7
#: Columns (14,) that a leg's points depend on: the pelvis' and its own.
COLUMNS = {s: np.r_[0:6, first : first + 8] for s, first in FIRST.items()}
#: Among those the ones of hip, knee, ankle and toes.
_OF_JOINTS = slice(6, 9), slice(9, 10), slice(10, 13), slice(13, 14)
#: Bones of a leg, in the order of arrays; its joints are where they begin.
BONES = ("thigh", "shin", "foot", "toe")
#: Axes (F, 3, 3) in the world of the toes' bone of each side, None without one.
Toes = Mapping[str, np.ndarray | None]

# By trial on captured clips of seven rigs.
#: Heel behind the ankle, and the tip of the toes ahead of their joint [m], of an adult.
_HEEL, _TIP = 0.05, 0.07
#: Least height of the ankle above the sole, and that of the ball [m], of an adult.
_ANKLE_HEIGHT, _BALL_HEIGHT = 0.04, 0.025
#: A floor that is closer than this to the scene's own [m], of an adult, is that.
_SAME_FLOOR = 0.05
_BENT = 0.03  # [m, adult] of a knee beside the line from hip to ankle that tells where front is
_FLAT_SHARE = 6  # of the samples, one in so many tells how a foot stands flat
_LOWEST = 5  # percentile of heights that is a foot's on its floor: single samples are lower
_APART = 0.05  # [m, adult] by which one foot stays higher than the other that is never down
#: Up to this height over where it stands [m, adult] a ball is low, and its joint stays in place if
#: it slides by less than this share of an edge's way: captured ones by 0.8 to 1.1, keyed ones by 0.
_LOW, _IN_PLACE = 0.01, 0.5
#: Toes that turn by more than this (root mean square of the sine), and about other axes by less
#: than such a share of that, tell their hinge if its cosine from across the foot is above the last.
_TURNS, _ASKEW, _ALIKE = 0.1, 0.3, 0.7
#: Toes point backward where the cosine from how the knee bends is less, and lie above the ankle if
#: they are higher by so much [m, adult].
_BACKWARD, _ABOVE = -0.3, 0.02


def skew(vectors: np.ndarray) -> np.ndarray:
    """(..., 3) to (..., 3, 3): what a cross product with each is as a matrix."""
    x, y, z = np.moveaxis(vectors, -1, 0)
    matrix = np.zeros((*np.shape(x), 3, 3))
    matrix[..., 0, 1], matrix[..., 0, 2], matrix[..., 1, 2] = -z, y, -x
    matrix[..., 1, 0], matrix[..., 2, 0], matrix[..., 2, 1] = z, -y, x
    return matrix


def exponential_and_jacobian(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rotations (..., 3, 3) of rotation vectors (..., 3) [rad], and the left Jacobians (..., 3, 3):
    turns in fixed axes for changes of the vectors."""
    square = (vectors * vectors).sum(-1)[..., None, None]
    small = square < 1e-8
    angle = np.sqrt(np.where(small, 1.0, square))
    sine = np.where(small, 1 - square / 6, np.sin(angle) / angle)
    cosine = np.where(small, 0.5 - square / 24, (1 - np.cos(angle)) / angle**2)
    rest = np.where(small, 1 / 6 - square / 120, (angle - np.sin(angle)) / angle**3)
    cross = skew(vectors)
    twice = cross @ cross
    return np.eye(3) + sine * cross + cosine * twice, np.eye(3) + cosine * cross + rest * twice


@dataclass(frozen=True)
class Leg:
    """One leg of an animation of F samples.

    joints: (F, 4, 3) hip, knee, ankle, ball [m]. frames: (F, 4, 3, 3) axes of the bones of thigh,
    shin, foot and toes in the world; toes without a bone have their foot's. knee, toe: (3,) hinges
    in the axes of shin and toes; that of toes without a bone is 0: they ride on the foot. heel,
    ball: (F, 3) ways from the ankle, tip: (F, 3) from the ball, to the points of the sole [m].
    """

    joints: np.ndarray
    frames: np.ndarray
    knee: np.ndarray
    toe: np.ndarray
    heel: np.ndarray
    ball: np.ndarray
    tip: np.ndarray

    def part(self, samples: slice) -> "Leg":
        """The same leg in a slice of the samples."""
        per_sample = ("joints", "frames", "heel", "ball", "tip")
        return replace(self, **{name: getattr(self, name)[samples] for name in per_sample})


@dataclass(frozen=True)
class Body:
    """The nine bones of an animation, and the mass that they carry.

    rate [Hz]. pelvis: (F, 3) its landmark [m]. upper: (F, 3) centre of mass of all that rides on
    it [m], upper_share its share of the body's mass. legs: {side: Leg}. size: of the body against
    an adult. floor: its height [m]; under: Under of heel, ball and tip of each sole in the
    animation, None for a level floor. sits: (F,) where it sits, and feet do not bear it, None for
    never. name: of the clip, frame: gives the frame of a sample, for messages.
    """

    name: str
    rate: float
    pelvis: np.ndarray
    upper: np.ndarray
    upper_share: float
    legs: dict[str, Leg]
    size: float
    floor: float
    frame: Callable[[float], float]
    under: Under | None = None
    sits: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.pelvis)

    @classmethod
    def from_motion(
        cls,
        motion: Motion,
        toes: Toes | None = None,
        surroundings: Surroundings | None = None,
    ) -> "Body":
        """Read the bones from a motion.

        toes: Toes. surroundings: the colliders that it may stand on, None for a level floor. Raises
        RigError if toes point backward or lie above the ankles, MotionError for a body that is
        upside down.
        """
        motion.demand_upright()
        toes = toes or {}
        terrain = Terrain.of(surroundings, 0.0, motion) if surroundings else None
        body = _read(motion, toes, terrain)
        seats = seats_of(surroundings, body.floor, motion)
        if seats is not None:
            body = replace(body, sits=seats.sits)
        if surroundings is None or terrain is None:
            return body
        if body.floor and surroundings.floor is None:  # it has a floor of its own beside them
            terrain = Terrain.of(surroundings, body.floor, motion) or terrain
            body = replace(_read(motion, toes, terrain), sits=body.sits)
        return replace(body, floor=terrain.floor, under=_under(body, terrain))

    def part(self, samples: slice) -> "Body":
        """The same body in a slice of the samples."""
        legs = {side: leg.part(samples) for side, leg in self.legs.items()}
        under = self.under and self.under.part(samples)
        return replace(
            self,
            pelvis=self.pelvis[samples],
            upper=self.upper[samples],
            legs=legs,
            under=under,
            sits=None if self.sits is None else self.sits[samples],
        )

    @property
    def floors(self) -> np.ndarray:
        """(F, 2, 3) heights of what is under the points of either sole [m]."""
        return np.full((len(self), 2, 3), self.floor) if self.under is None else self.under.heights

    @property
    def drifts(self) -> np.ndarray:
        """(F, 2, 3, 3) how fast that moves [m/s]."""
        return np.zeros((len(self), 2, 3, 3)) if self.under is None else self.under.drifts

    def pose(self, corrections: np.ndarray, slopes: bool = True) -> "Pose":
        """The Pose of (F, 22) corrections. slopes: whether with its Jacobians."""
        return Pose(self, corrections, slopes)


class Pose:
    """Where corrections put the bones.

    pelvis: (F, 3) [m]. turn: (F, 3, 3) of the pelvis, from the animation. com: (F, 3) [m].
    joints: {side: (F, 4, 3)} [m]. turns: {side: (F, 4, 3, 3)} of thigh, shin, foot and toes.
    points: {side: (F, 3, 3)} heel, ball, tip of the sole [m].

    With slopes also com_slope (F, 3, 22), point_slopes {side: (F, 3, 3, 14)} over COLUMNS, and
    foot_slopes {side: (F, 3, 14)}: turn of the foot in the world [rad].
    """

    def __init__(self, body: Body, corrections: np.ndarray, slopes: bool) -> None:
        self._body, self._slopes = body, slopes
        self.pelvis = body.pelvis + corrections[:, MOVE]
        self.turn, self._spin = exponential_and_jacobian(corrections[:, TURN])
        upper = self.pelvis + _turned(self.turn, body.upper - body.pelvis)
        self.com = body.upper_share * upper
        self.joints: dict[str, np.ndarray] = {}
        self.turns: dict[str, np.ndarray] = {}
        self.points: dict[str, np.ndarray] = {}
        if slopes:
            self.com_slope = np.zeros((len(body), 3, UNKNOWNS))
            self.com_slope[..., :6] = body.upper_share * self._root_slope(upper)
            self.point_slopes: dict[str, np.ndarray] = {}
            self.foot_slopes: dict[str, np.ndarray] = {}
        for side in SIDES:
            self._add_leg(side, corrections[:, FIRST[side] : FIRST[side] + 8])

    def _root_slope(self, points: np.ndarray) -> np.ndarray:
        """(F, 3, 6) of points (F, 3) that ride on the pelvis."""
        slope = np.zeros((len(points), 3, 6))
        slope[..., MOVE] = np.eye(3)
        slope[..., TURN] = -skew(points - self.pelvis) @ self._spin
        return slope

    def _add_leg(self, side: str, own: np.ndarray) -> None:
        leg = self._body.legs[side]
        vectors = np.stack(
            [
                own[:, HIP],
                own[:, KNEE, None] * leg.knee,
                own[:, ANKLE],
                own[:, TOES, None] * leg.toe,
            ],
            1,
        )
        rotations, jacobians = exponential_and_jacobian(vectors)
        turns, spins, joints = (
            [],
            [],
            [self.pelvis + _turned(self.turn, leg.joints[:, 0] - self._body.pelvis)],
        )
        before = self.turn
        for i in range(4):
            axes = before @ leg.frames[:, i]
            spins.append(axes @ jacobians[:, i])
            before = axes @ rotations[:, i] @ np.swapaxes(leg.frames[:, i], 1, 2)
            turns.append(before)
            if i < 3:
                way = leg.joints[:, i + 1] - leg.joints[:, i]
                joints.append(joints[i] + _turned(before, way))
        spins[1] = (spins[1] @ leg.knee)[..., None]
        spins[3] = (spins[3] @ leg.toe)[..., None]
        (_, _, ankle, ball), (_, _, foot, toe) = joints, turns
        points = np.stack(
            [
                ankle + _turned(foot, leg.heel),
                ankle + _turned(foot, leg.ball),
                ball + _turned(toe, leg.tip),
            ],
            1,
        )
        self.joints[side], self.turns[side] = np.stack(joints, 1), np.stack(turns, 1)
        self.points[side] = points
        shares = _leg_shares()
        self.com = self.com + np.einsum("fji,j->fi", self.joints[side], shares)
        if self._slopes:
            slopes = [self._slope(points[:, i], joints, spins, (3, 3, 4)[i]) for i in range(3)]
            self.point_slopes[side] = np.stack(slopes, 1)
            columns = COLUMNS[side]
            for i, share in enumerate(shares):
                self.com_slope[..., columns] += share * self._slope(joints[i], joints, spins, i)
            slope = np.zeros((len(own), 3, 14))
            slope[..., TURN] = self._spin
            for columns, spin in zip(_OF_JOINTS[:3], spins[:3], strict=True):
                slope[..., columns] = spin
            self.foot_slopes[side] = slope

    def _slope(
        self, point: np.ndarray, joints: list[np.ndarray], spins: list[np.ndarray], depth: int
    ) -> np.ndarray:
        """(F, 3, 14) of points (F, 3) behind so many joints."""
        slope = np.zeros((len(point), 3, 14))
        slope[..., :6] = self._root_slope(point)
        for i, columns in enumerate(_OF_JOINTS):
            if i < depth:
                slope[..., columns] = -skew(point - joints[i]) @ spins[i]
        return slope


def _turned(turns: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return (turns @ vectors[..., None])[..., 0]


# --- Masses --------------------------------------------------------------------------------------


def _leg_shares() -> np.ndarray:
    """(4,) shares of the body's mass that hip, knee, ankle and ball of one leg count for."""
    table = anthropometry.TABLE
    shares = np.zeros(4)
    for i, name in enumerate(("thigh", "shin", "foot")):
        mass, centre = table[name].mass, table[name].centre
        shares[i] += mass * (1 - centre)
        shares[i + 1] += mass * centre
    return shares


def _upper_body(at: Callable[[str], np.ndarray], height: float) -> tuple[np.ndarray, float]:
    """(F, 3) centre of mass of all but the legs, and its share of the mass, from landmarks."""
    table, total, moment = anthropometry.TABLE, 0.0, np.zeros(3)
    hips = (at("hip_l") + at("hip_r")) / 2
    top = at("head_top")
    parts = [
        ("pelvis", hips, hips + [0, 0, 2 * anthropometry.PELVIS_CENTRE_SHARE * height], 0.5),
        ("trunk", at("lumbar"), at("neck"), table["trunk"].centre),
        ("head", at("neck"), np.where(np.isfinite(top), top, at("neck")), table["head"].centre),
    ]
    for s in SIDES:
        wrist, tip = at(f"wrist_{s}"), at(f"fingertip_{s}")
        tip = np.where(np.isfinite(tip), tip, wrist)
        parts += [
            ("upper_arm", at(f"shoulder_{s}"), at(f"elbow_{s}"), table["upper_arm"].centre),
            ("forearm", at(f"elbow_{s}"), wrist, table["forearm"].centre),
            ("hand", wrist, tip, table["hand"].centre),
        ]
    for name, start, end, centre in parts:
        moment = moment + table[name].mass * (start + centre * (end - start))
        total += table[name].mass
    return moment / total, total


# --- Reading -------------------------------------------------------------------------------------


def _under(body: Body, terrain: Terrain) -> Under:
    """What the soles of an animation are above."""
    pose = body.pose(np.zeros((len(body), UNKNOWNS)), slopes=False)
    points = np.stack([pose.points[side] for side in SIDES], 1)
    return terrain.below(points)


def _read(motion: Motion, toes: Toes, terrain: Terrain | None) -> Body:
    def at(landmark: str) -> np.ndarray:
        return motion.positions[:, LANDMARK_INDEX[landmark]]

    lengths = [
        np.median(np.linalg.norm(at(f"{end}_{s}") - at(f"{start}_{s}"), axis=1))
        for s in SIDES
        for start, end in (("hip", "knee"), ("knee", "ankle"))
    ]
    height = anthropometry.stature_from_legs(sum(lengths) / 2)
    size = min(1.0, height / ADULT) * giant_size(height)
    upper, share = _upper_body(at, height)
    legs = {s: _Sole(motion, at, s, toes.get(s), size, terrain) for s in SIDES}
    lows = {name: [getattr(legs[s], name) for s in SIDES] for name in ("ankle_low", "ball_low")}
    for values in lows.values():
        # A foot that is never down tells nothing.
        if abs(values[0] - values[1]) > _APART * size:
            values[:] = [min(values)] * 2
    floor = min(lows["ball_low"]) - _BALL_HEIGHT * size
    if abs(floor) < _SAME_FLOOR * size:
        floor = 0.0
    return Body(
        name=motion.name,
        rate=motion.rate,
        pelvis=at("pelvis"),
        upper=upper,
        upper_share=share,
        legs={
            s: legs[s].leg(lows["ankle_low"][i], lows["ball_low"][i]) for i, s in enumerate(SIDES)
        },
        size=size,
        floor=floor,
        frame=motion.frame,
    )


class _Sole:
    """Finds how a foot stands flat, from the samples in which it seems to."""

    def __init__(
        self,
        motion: Motion,
        at: Callable[[str], np.ndarray],
        side: str,
        toes: np.ndarray | None,
        size: float,
        terrain: Terrain | None,
    ) -> None:
        self._motion, self._side, self._size = motion, side, size
        self._words = SIDE_WORDS[side]
        ball, toe = at(f"ball_{side}"), at(f"toe_{side}")
        ball = ball if np.isfinite(ball).all() else toe
        joints = [at(f"hip_{side}"), at(f"knee_{side}"), at(f"ankle_{side}"), ball]
        self._joints = np.stack(joints, 1)
        segments = [SEGMENT_INDEX[f"{name}_{side}"] for name in ("thigh", "shin", "foot")]
        frames = matrix_from_quaternion(motion.rotations[:, segments])
        self._has_toes = toes is not None
        last = frames[:, 2] if toes is None else toes
        self._frames = np.concatenate([frames, last[:, None]], 1)
        self._left_of_body = unit((at("hip_l") - at("hip_r")) * [1, 1, 0])
        foot = self._joints[:, 2:]
        self._heights = foot[..., 2]
        if terrain is not None:
            self._heights = self._heights - terrain.under(foot)[0]
        self.ankle_low, self.ball_low = np.percentile(self._heights, _LOWEST, axis=0).tolist()

    def leg(self, ankle_low: float, ball_low: float) -> Leg:
        """The Leg whose ankle and ball are so high [m] when the foot stands."""
        size, frames = self._size, self._frames
        ankle, ball = self._joints[:, 2], self._joints[:, 3]
        flat = self._flat(*(self._heights - [ankle_low, ball_low]).T)
        along = unit(ball - ankle)
        left = unit(np.cross([0, 0, 1.0], along))
        self._check(flat, along)
        foot, toes = frames[:, 2], frames[:, 3]
        ahead = unit(_into(foot, along)[flat].mean(0))
        aside = _into(foot, left)[flat].mean(0)
        aside = unit(aside - aside @ ahead * ahead)
        up = np.cross(ahead, aside)
        # When flat, the line from ankle to ball dips by this angle.
        length = np.median(np.linalg.norm(ball - ankle, axis=1))
        dip = np.arcsin(np.clip((ankle_low - ball_low) / max(length, 1e-6), -0.9, 0.9))
        level = np.cos(dip) * ahead + np.sin(dip) * up
        upright = np.cos(dip) * up - np.sin(dip) * ahead
        sole = _BALL_HEIGHT * size
        depth = max(ankle_low - ball_low + sole, _ANKLE_HEIGHT * size)
        way = np.median(_into(foot, ball - ankle), axis=0)
        tip = foot @ (_TIP * size * level - sole * upright)
        tip = np.median(_into(toes, tip)[flat], axis=0)
        hinge = _into(toes, foot @ aside)[flat].mean(0)
        return Leg(
            joints=self._joints,
            frames=frames,
            knee=self._knee(),
            toe=self._hinge(unit(hinge), flat[0]) if self._has_toes else np.zeros(3),
            heel=foot @ (-_HEEL * size * level - depth * upright),
            ball=self._ball(foot @ (way - sole * upright), sole, ball_low),
            tip=toes @ tip,
        )

    def _hinge(self, guess: np.ndarray, flat: int) -> np.ndarray:
        """(3,) hinge of the toes in their axes: about which they turn from how they are at a sample
        in which the foot is flat; a guess where they hardly turn, or about anything else."""
        foot, toes = self._frames[:, 2], self._frames[:, 3]
        bent = np.swapaxes(foot, 1, 2) @ toes
        turn = bent[flat].T @ bent
        odd = turn - np.swapaxes(turn, 1, 2)
        vector = np.stack([odd[:, 2, 1], odd[:, 0, 2], odd[:, 1, 0]], 1) / 2
        values, axes = np.linalg.eigh(vector.T @ vector / len(vector))
        axis = axes[:, -1]
        along = axis @ guess
        turns = values[-1] > _TURNS**2 and values[-2] < _ASKEW**2 * values[-1]
        return axis * np.sign(along) if turns and abs(along) > _ALIKE else guess

    def _ball(self, edge: np.ndarray, sole: float, ball_low: float) -> np.ndarray:
        """(F, 3) way from the ankle to the ball: to an edge (F, 3), about which captured feet roll;
        or under the joint, where the animation keeps that in place as the heel rises."""
        ankle, ball = self._joints[:, 2], self._joints[:, 3]
        low = ball[1:, 2] < ball_low + _LOW * self._size
        edge_slides, joint_slides = (
            np.linalg.norm(np.diff(points[:, :2], axis=0), axis=1)[low].sum()
            for points in (ankle + edge, ball)
        )
        if joint_slides < _IN_PLACE * edge_slides:
            return ball - ankle - [0, 0, sole]
        return edge

    def _flat(self, ankle: np.ndarray, ball: np.ndarray) -> np.ndarray:
        """Numbers of the samples in which the foot seems to stand flat, by heights (F,) [m]."""
        rate = self._motion.rate
        speed = np.linalg.norm(np.gradient(self._joints[:, 2:], axis=0), axis=-1).sum(1) * rate
        # Level first, then low, then slow; weights by trial.
        doubt = 10 * np.abs(ankle - ball) + 3 * np.maximum(ankle, ball) + 0.3 * speed
        return np.argsort(doubt, kind="stable")[: max(5, len(ankle) // _FLAT_SHARE)]

    def _check(self, flat: np.ndarray, along: np.ndarray) -> None:
        """Raise RigError for feet that no leg stands on."""
        hip, knee, ankle, ball = np.moveaxis(self._joints, 1, 0)
        shin = unit(ankle - knee)
        # A knee bends to where the toes are, seen along the shin, whatever the body does.
        bend = _beside(shin, knee - (hip + ankle) / 2)
        leg = np.linalg.norm(hip - knee, axis=1) + np.linalg.norm(knee - ankle, axis=1)
        size = anthropometry.stature_from_legs(float(np.median(leg))) / ADULT
        bent = np.linalg.norm(bend, axis=1) > _BENT * size
        same = (unit(bend) * unit(_beside(shin, along))).sum(1)
        if bent.any() and np.median(same[bent]) < _BACKWARD:
            raise RigError(
                f"The {self._words} toes of '{self._motion.name}' point backward: correct the "
                "foot and toes in the rig map."
            )
        upright = flat[(hip - ankle)[flat, 2] > leg[flat] / 2]
        rise = np.median((ankle - ball)[upright, 2]) if len(upright) else 0.0
        if rise < -_ABOVE * self._size:
            raise RigError(
                f"The {self._words} toes of '{self._motion.name}' lie {-100 * rise:.0f} cm above "
                "its ankle where it stands: correct the foot and toes in the rig map."
            )

    def _knee(self) -> np.ndarray:
        """(3,) hinge of the knee in the shin's axes: the mean normal of the plane of the leg."""
        hip, knee, ankle = np.moveaxis(self._joints[:, :3], 1, 0)
        normal = _into(self._frames[:, 1], np.cross(knee - hip, ankle - knee))
        values, axes = np.linalg.eigh(normal.T @ normal)
        if values[-1] < 1e-12:  # a leg that is always straight
            return unit(np.median(_into(self._frames[:, 1], self._left_of_body), axis=0))
        return unit(axes[:, -1])


def _beside(along: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """(F, 3) vectors without what they have along unit vectors (F, 3)."""
    return vectors - (vectors * along).sum(1, keepdims=True) * along


def _into(frames: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """(F, 3) vectors in the axes of frames (F, 3, 3)."""
    return np.einsum("fji,fj->fi", frames, vectors)

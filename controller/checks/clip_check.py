# SPDX-License-Identifier: GPL-3.0-or-later
"""Before anything is simulated: what a clip asks of a body, and what no body can do in it.

    found = check(character, motion)
    print(found.verdict)
    for finding in found.findings: print(finding.sentence)

Every limit is one of physics or of people, in units that a smaller body and a slower clip scale;
the captured clips lie well to either side of each.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..body.character import Character
from ..body.foot_check import odd_feet
from ..body.footing import floors_under, level
from ..body.momentum import GRAVITY, com_dynamics, zero_moment_point
from ..geometry.belt import BELT_SPEED
from ..geometry.motion import FEW_UPSIDE_DOWN, Motion
from ..geometry.skeleton import FEET, LANDMARK_INDEX, SEGMENTS, SIDES, joint_name, segment_name
from ..geometry.stance import DIRECTIONS, FLIGHT, NAMES, adult_size, runs, support_reach
from ..geometry.trajectory import Trajectory
from ..reference import faults
from ..reference.cleaning import CLEANING, clean, despike
from ..reference.faults import Ground, Pop
from ..reference.reference import (
    MAX_JOINT_SPEED,
    START_CLEARANCE,
    joint_speeds,
)
from ..support.bearing import TRAVEL_CUTOFF
from ..support.planting import IN_PLACE_CUTOFF, physical
from ..support.seats import Seats
from ..support.terrain import Terrain
from .stepped import samples_held
from .tempo import FAST, SLOW, USUAL, likely_rate, oddity, step_product


class Measure(NamedTuple):
    """What a measure is called, and its unit."""

    label: str
    unit: str


#: What is measured over time.
MEASURES = {
    "joint_speed": Measure("Fastest joint", "rad/s"),
    "com_acceleration": Measure("Weight acceleration", "m/s²"),
    "zmp_outside": Measure("Weight beyond feet", "m"),
    "friction": Measure("Grip needed", ""),
    "foot_slide": Measure("Foot slide", "m/s"),
    "clearance": Measure("Feet above floor", "m"),
}
#: What each may be at most: joints and slides as `faults` has them, the others by trial on captured
#: clips ...
_MOST = {
    "joint_speed": faults.JOINT_SPEED,
    "com_acceleration": 20.0,
    "zmp_outside": 0.05,
    "friction": 0.8,  # of what the feet press, as much as the balance plans with
    "foot_slide": faults.SKATE_SPEED,
}
#: ... and clearance: deepest, and highest where the body needs the floor, of an adult.
LIMITS: dict[str, float | tuple[float, float]] = {
    **_MOST,
    "clearance": (-faults.DEPTH, faults.AIR_HEIGHT),
}
#: In the order of weight: no body can do it; gains alone will not carry it; good to know.
SEVERITIES = ("mend", "rectify", "note")


class _Bounds(NamedTuple):
    """From where on gains have to be found for a clip, and from where on there are none."""

    tune: float
    rectify: float


# By trial on captured clips, of which balance alone carries some, and others fall.
#: Forces are told where the body asks the floor for so much of its weight.
_LOADED = 0.3
_LASTING = 0.08  # [s] that a force must be out of reach
_POP_EDGE = 0.15  # [s] to each side of a pop that a low-pass spreads it over
_IMPOSSIBLE_ACCELERATION = 60.0  # [m/s^2]
#: Stances may change so often in the time T = sqrt(height of the centre of mass / g) in which a
#: body tips by e.
_CHANGES = _Bounds(0.75, 1.25)
#: Likewise the share of the time in which the zero-moment point is outside by more than 3 cm.
_OUTSIDE = 0.03
_OUTSIDE_SHARES = _Bounds(0.015, 0.05)
#: A foot that is slower stands [m/s, adult]; feet ride if they stand for longer than this [s] on
#: what moves, and for less than half of that on the floor meanwhile. By trial.
_STANDS, _RIDES = 0.06, 0.3
#: What mends which kind of fault without asking anybody: nothing of it can be meant.
_MENDED_BY = {"pop": "despike", "teleport": "despike", "float": "ground", "treadmill": "travel"}
#: Kinds of findings on how a clip is timed: the verdict has them, whatever else it says.
_TIMING = ("tempo", "stepped")
_FLIGHT_SHARE, _FLIGHT = 0.02, 0.05  # of the time, and [s], in the air
#: A weight that is farther beside the feet [m, adult], slower than this [m/s], for so long [s], is
#: carried by something else. By trial on captured clips, in which it never is.
_BESIDE, _RESTS, _RESTING = 0.08, 0.3, 0.5


@dataclass(frozen=True)
class Finding:
    """One thing to know about some frames.

    kind: "pop", "teleport", "speed", "axis", "float", "start", "sink", "treadmill", "skate",
    "acceleration", "zmp", "friction", "flight", "support", "feet", "upright", "tempo", "stepped".
    frames: (first, last) in the motion's own numbers. subject: such as "left elbow". value, limit:
    in `unit`.
    severity: of SEVERITIES. sentence: all of it in words.
    """

    kind: str
    frames: tuple[float, float]
    subject: str
    value: float
    limit: float
    unit: str
    severity: str
    sentence: str


@dataclass(frozen=True)
class Ride:
    """What moves a whole body, such as a turntable that its armature is parented to.

    positions (F, 3) [m], rotations (F, 3, 3): of it in the world.
    """

    name: str
    positions: np.ndarray
    rotations: np.ndarray


@dataclass(frozen=True)
class ClipCheck:
    """What `check` found.

    clip: name. frames: (F,) numbers of the samples. measures: {name: (F,)} as MEASURES has them,
    NaN where a measure has no meaning. stance: (F,) states; shares: {state: share}. travel: how
    far it goes [m]; in_place; changes: of stance per second; outside: share of the time in which
    the zero-moment point is outside the feet. findings: tuple of Finding, the heaviest first.
    recommend: "balance", "tune" or "rectify", from what there is besides faults; why: that in
    words. verdict: one line. cleaning: what was mended before.
    """

    clip: str
    frames: np.ndarray
    measures: dict[str, np.ndarray]
    stance: np.ndarray
    shares: dict[str, float]
    travel: float
    in_place: bool
    changes: float
    outside: float
    findings: tuple[Finding, ...]
    recommend: str
    why: str
    verdict: str
    cleaning: tuple[str, ...] = ()

    @property
    def faults(self) -> tuple[Finding, ...]:
        """The findings that no body can do."""
        return tuple(finding for finding in self.findings if finding.severity == "mend")

    @property
    def mends(self) -> tuple[str, ...]:
        """The names of `cleaning.CLEANING` that faults of this clip ask for."""
        needed = {_MENDED_BY.get(finding.kind) for finding in self.faults}
        return tuple(name for name in CLEANING if name in needed)

    @property
    def mending(self) -> str:
        """What `mends` mends, the worst first, in a sentence; empty if there is nothing."""
        found = [finding for finding in self.faults if finding.kind in _MENDED_BY]
        if not found:
            return ""
        found.sort(key=lambda finding: -finding.value / finding.limit)
        told = "; ".join(finding.sentence for finding in found)
        names = ", ".join(name.capitalize() for name in self.mends)
        return f"Cleaned by itself ({names}): {told}."

    @property
    def doubts(self) -> tuple[Finding, ...]:
        """The findings that the clip's frames are not those of its motion."""
        return tuple(finding for finding in self.findings if finding.kind in _TIMING)

    def as_dict(self) -> dict[str, Any]:
        """For JSON; the measures as their extremes."""
        return {
            "verdict": self.verdict,
            "recommend": self.recommend,
            "why": self.why,
            "cleaning": list(self.cleaning),
            "in_place": self.in_place,
            "travel": round(self.travel, 4),
            "stance_changes": round(self.changes, 4),
            "zmp_outside_share": round(self.outside, 4),
            "stance": {name: round(share, 4) for name, share in self.shares.items()},
            "measures": {
                name: {
                    "least": _extreme(np.nanmin, values),
                    "most": _extreme(np.nanmax, values),
                    "unit": MEASURES[name].unit,
                }
                for name, values in self.measures.items()
            },
            "findings": [asdict(finding) for finding in self.findings],
        }


def check(
    character: Character,
    motion: Motion,
    cleaning: Sequence[str] = (),
    terrain: Terrain | None = None,
    ride: Ride | None = None,
    held: np.ndarray | None = None,
    seats: Seats | None = None,
) -> ClipCheck:
    """The ClipCheck of a motion that a character is to perform; never refuses one.

    cleaning: names of `cleaning.CLEANING`, to judge the motion that they leave. terrain:
    terrain.Terrain that it stands on, None for a level floor. ride: Ride that moves it, where
    nothing that moves is part of the terrain; None if nothing does. held: (F,) samples in which
    holds may carry it, so that it needs no floor; None for none. seats: Seats of the motion, None
    where it never sits.
    """
    trajectory = clean(character, character.trajectory(motion), cleaning, terrain)
    pops = faults.find_pops(character, trajectory)
    sound = despike(character, trajectory, pops)
    meets = faults.meet_ground(character, trajectory, sound, terrain)
    held = np.zeros(len(motion), bool) if held is None else held
    sits = np.zeros(len(motion), bool) if seats is None else seats.sits
    held = held | sits
    meets = replace(meets, floats=meets.floats & ~held, hangs=meets.hangs & ~held[:, None])
    measures, change, outside = _measures(character, trajectory, sound, meets, sits, terrain)
    words = _Words(motion, pops, meets, held, measures, adult_size(character))
    rides = list(words.rides(ride))
    found = [
        *words.upside_down(motion),
        *rides,
        *words.pops(),
        *words.speeds(),
        *words.axes(character, trajectory),
    ]
    if "despike" not in cleaning:
        found += words.flips()
    if not rides:  # else the feet are where nothing is by now
        found += [*words.hangs(), *words.floats(), *words.sinks(), *words.start(character.height)]
    found += [*words.treadmill(), *words.skates()]
    found += [*words.forces(), *words.flights(), *words.feet(character)]
    found += words.rests(character, sound)
    found += [*words.tempo(character), *words.stepped()]
    findings = tuple(sorted(found, key=_weight))
    recommend, why = _choose(findings, sound, meets, held, sits, change, outside)
    return ClipCheck(
        clip=motion.name,
        frames=motion.first_frame + motion.frame_step * np.arange(len(motion)),
        measures=measures,
        stance=meets.stance,
        shares=_shares(meets.stance),
        travel=_travel(sound),
        in_place=meets.in_place,
        changes=_changes(meets.stance, motion.rate),
        outside=outside,
        findings=findings,
        recommend=recommend,
        why=why,
        verdict=_verdict(findings, recommend, why),
        cleaning=tuple(cleaning),
    )


# --- Measures ------------------------------------------------------------------------------------


def _measures(
    character: Character,
    trajectory: Trajectory,
    sound: Trajectory,
    meets: Ground,
    sits: np.ndarray,
    terrain: Terrain | None,
) -> tuple[dict[str, np.ndarray], float, float]:
    """{name: (F,)} measures; stance changes in the time T; share of zero-moment points outside,
    where it does not sit (F,)."""
    rate = trajectory.rate
    cutoff = IN_PLACE_CUTOFF if meets.in_place else TRAVEL_CUTOFF
    target, footings = sound, level(character.ground, len(sound))
    if terrain is not None:
        footings = terrain.footings(character, sound, meets.contacts)
    if meets.in_place:
        target = physical(character, sound, meets.contacts, cutoff, footings, held=sits)
    joints, frames = character.pose(target.smoothed(cutoff).trajectory)
    centres = character.body_centres(joints, frames)
    dynamics = com_dynamics(character, centres, frames, rate, cutoff)
    stands = (meets.stance != FLIGHT) & (meets.need > _LOADED) & ~sits
    reach = support_reach(character.sole_corners(joints, frames), meets.contacts)
    floors = floors_under(footings, joints[:, FEET], meets.contacts)
    point = zero_moment_point(character, dynamics, floors)
    outside = np.where(stands, (point @ DIRECTIONS.T - reach).max(1), np.nan)
    upward = GRAVITY + dynamics.acceleration[:, 2]
    sideways = np.linalg.norm(dynamics.acceleration[:, :2], axis=1)
    loaded = upward > _LOADED * GRAVITY
    turns = faults.relative_frames(character, character.pose(trajectory)[1])
    speeds = faults.joint_velocities(turns, rate)
    slide = np.linalg.norm(meets.slip, axis=-1)
    slide = np.where(meets.contacts | meets.skates, slide, np.nan)
    measures = {
        "joint_speed": np.r_[0.0, np.linalg.norm(speeds, axis=-1).max(1)],
        "com_acceleration": np.linalg.norm(dynamics.acceleration, axis=1),
        "zmp_outside": np.maximum(outside, 0.0),
        "friction": np.where(loaded, sideways / np.where(loaded, upward, 1.0), np.nan),
        "foot_slide": np.fmax(*slide.T),
        "clearance": meets.low,
    }
    over = dynamics.com[:, 2] - (floors - character.ground)
    height = float(np.median(over)) - character.ground
    tips = np.sqrt(max(height, 0.1) / GRAVITY)
    share = np.mean(outside[stands] > _OUTSIDE) if stands.any() else 0.0
    return measures, _changes(meets.stance, rate) * tips, float(share)


def _changes(stance: np.ndarray, rate: float) -> float:
    """Stance changes per second."""
    return float(np.count_nonzero(np.diff(stance)) * rate / max(1, len(stance) - 1))


def _shares(stance: np.ndarray) -> dict[str, float]:
    share = np.bincount(stance, minlength=len(NAMES)) / len(stance)
    return dict(zip(NAMES, share.tolist(), strict=True))


def _travel(trajectory: Trajectory) -> float:
    """Farthest horizontal distance from the start [m]."""
    away = trajectory.root[:, :2] - trajectory.root[0, :2]
    return float(np.linalg.norm(away, axis=1).max())


def _extreme(function: Callable[[np.ndarray], float], values: np.ndarray) -> float | None:
    known = values[np.isfinite(values)]
    return round(float(function(known)), 4) if len(known) else None


# --- Findings ------------------------------------------------------------------------------------


class _Words:
    """Findings of one clip, each kind by a method."""

    def __init__(
        self,
        motion: Motion,
        pops: Sequence[Pop],
        meets: Ground,
        held: np.ndarray,
        measures: dict[str, np.ndarray],
        size: float,
    ) -> None:
        self.motion, self.rate, self.found_pops = motion, motion.rate, pops
        self.meets, self.held, self.measures, self.size = meets, held, measures, size

    def pops(self) -> Iterator[Finding]:
        """Joints that flip and roots that jump, at the frames that are off."""
        for pop in self.found_pops:
            place = pop.channel is None
            subject = "whole body" if pop.channel in (None, 0) else joint_name(pop.name)
            does = f"the {subject} jumps" if place else f"the {subject} flips"
            yield self._finding(
                "teleport" if place else "pop",
                (pop.first, pop.last),
                subject,
                pop.speed,
                faults.TELEPORT_SPEED if place else faults.POP_SPEED,
                "m/s" if place else "rad/s",
                "mend",
                does if pop.channel != 0 else "the whole body flips round",
            )

    def flips(self) -> Iterator[Finding]:
        """Bones that turn over where the joints of a body do not show it."""
        for sample, segment, angle in faults.find_flips(self.motion):
            if any(pop.first - 1 <= sample <= pop.last for pop in self.found_pops):
                continue
            subject = segment_name(SEGMENTS[segment])
            does = f"the bone of the {subject} turns over by {np.degrees(angle):.0f}°"
            value, limit = angle * self.rate, faults.FLIP_SPEED
            span = sample, sample + 1
            yield self._finding("pop", span, subject, value, limit, "rad/s", "mend", does, False)

    def speeds(self) -> Iterator[Finding]:
        """Joints that are too fast for longer than a pop."""
        values = self.measures["joint_speed"].copy()
        for pop in self.found_pops:
            values[pop.first : pop.last + 2] = 0
        does = "a joint turns faster than any can"
        limit = _MOST["joint_speed"]
        yield from self._beyond("speed", "joint_speed", limit, "mend", "a joint", does, values)

    def axes(self, character: Character, trajectory: Trajectory) -> Iterator[Finding]:
        """Single axes of a joint that no simulation follows, beside its pops."""
        speeds = joint_speeds(character, trajectory)
        for pop in self.found_pops:
            edge = round(_POP_EDGE * self.rate)
            speeds[max(0, pop.first - edge) : pop.last + edge + 1] = 0
        for start, stop in runs(speeds.max(1) > MAX_JOINT_SPEED):
            value = float(speeds[start:stop].max())
            dof = int(np.argmax(speeds[start:stop].max(0)))
            yield self._finding(
                "axis",
                (start, stop - 1),
                character.dof_names[dof],
                value,
                MAX_JOINT_SPEED,
                "rad/s",
                "mend",
                f"the {character.joint_words(dof)} spins",
            )

    def upside_down(self, motion: Motion) -> Iterator[Finding]:
        """A body that stands on its head, or whose armature does."""
        if value := motion.upside_down():
            does = f"the feet are above the pelvis in {value:.0%} of the frames: it is upside down"
            span, limit = (0, len(motion) - 1), FEW_UPSIDE_DOWN
            yield self._finding("upright", span, "body", value, limit, "", "mend", does, False)

    def rides(self, ride: Ride | None) -> Iterator[Finding]:
        """Feet that stand on what moves the body, and not on a floor that does not."""
        if ride is None:
            return
        ankles = self.motion.positions[:, [LANDMARK_INDEX[f"ankle_{side}"] for side in SIDES]]
        own = (ankles - ride.positions[:, None]) @ ride.rotations
        on_floor, on_it = (self._speeds(points) for points in (ankles, own))
        slow = _STANDS * self.size
        # Where it moves under a foot that stands on it, or moves a foot that stands on the floor.
        moves = np.abs(on_floor - on_it) > slow
        stands, rides = ((moves & (speeds < slow)).any(1).sum() for speeds in (on_floor, on_it))
        if rides > max(_RIDES * self.rate, 2 * stands):
            does = (
                f"the feet stand on '{ride.name}', which moves, and is no collider: mark it, or a "
                "mesh that goes with it, as one"
            )
            at = np.flatnonzero(moves.any(1))
            span = int(at[0]), int(at[-1])
            value = rides / self.rate
            yield self._finding("support", span, "feet", value, _RIDES, "s", "mend", does, False)

    def _speeds(self, points: np.ndarray) -> np.ndarray:
        """(F, n) speeds of points (F, n, 3) [m/s]."""
        return np.linalg.norm(np.gradient(points, axis=0), axis=-1) * self.rate

    def start(self, height: float) -> Iterator[Finding]:
        """A clip that begins in a flight: a body can only begin on its feet."""
        value, limit = float(self.meets.low[0]), START_CLEARANCE * height
        if value > limit and not (self.meets.floats[0] or self.held[0]):
            does = f"it starts in the air, {100 * value:.0f} cm above the floor"
            yield self._finding("start", (0, 0), "body", value, limit, "m", "mend", does, False)

    def rests(self, character: Character, trajectory: Trajectory) -> Iterator[Finding]:
        """A weight that is at rest beside the feet: what carries it there is not known."""
        joints, frames = character.pose(trajectory)
        shares = character.masses / character.mass
        com = np.einsum("fsi,s->fi", character.body_centres(joints, frames), shares)
        contacts = self.meets.contacts
        reach = support_reach(character.sole_corners(joints, frames), contacts)
        beside = (com[:, :2] @ DIRECTIONS.T - reach).max(1)
        limit = _BESIDE * self.size
        rests = self._speeds(com[:, None])[:, 0] < _RESTS * self.size
        unknown = contacts.any(1) & ~self.held & rests & (beside > limit)
        for start, stop in runs(unknown):
            if stop - start < _RESTING * self.rate:
                continue
            value = float(np.median(beside[start:stop]))
            does = (
                f"its weight rests {100 * value:.0f} cm beside its feet: mark what it sits or "
                "leans on as a collider, right under its hips, or add holds"
            )
            span = start, stop - 1
            yield self._finding("support", span, "body", value, limit, "m", "note", does, False)

    def hangs(self) -> Iterator[Finding]:
        """Feet that stand where there is nothing to stand on."""
        limit = faults.AIR_HEIGHT * self.size
        for foot, subject in enumerate(("left foot", "right foot")):
            for start, stop in runs(self.meets.hangs[:, foot]):
                value = float(np.median(self.meets.heights[start:stop, foot]))
                does = (
                    f"the {subject} stands {100 * value:.0f} cm above anything: put a collider "
                    "under it"
                )
                span = start, stop - 1
                yield self._finding(
                    "support", span, subject, value, limit, "m", "mend", does, False
                )

    def floats(self) -> Iterator[Finding]:
        """In the air where the body needs the floor."""
        for start, stop in runs(self.meets.floats):
            if self.meets.hangs[start:stop].any():
                continue
            value = float(self.meets.low[start:stop].max())
            limit = faults.AIR_HEIGHT * self.size
            does = f"the body floats, its feet up to {100 * value:.0f} cm above the floor"
            span = start, stop - 1
            yield self._finding("float", span, "body", value, limit, "m", "mend", does, False)

    def sinks(self) -> Iterator[Finding]:
        """Soles under the floor."""
        limit = faults.DEPTH * self.size
        for start, stop in runs(self.meets.low < -limit):
            value = -float(self.meets.low[start:stop].min())
            does = f"the feet sink {100 * value:.0f} cm into the floor"
            span = start, stop - 1
            yield self._finding("sink", span, "feet", value, limit, "m", "note", does, False)

    def treadmill(self) -> Iterator[Finding]:
        """Feet that walk on while the body stays behind."""
        if self.meets.belt is None:
            return
        speed = np.linalg.norm(self.meets.belt, axis=1)
        moves = np.flatnonzero(speed > BELT_SPEED)
        value, limit = float(np.median(speed[moves])), BELT_SPEED
        does = "the feet slide under the body as it walks, as on a treadmill"
        span = int(moves[0]), int(moves[-1])
        yield self._finding("treadmill", span, "feet", value, limit, "m/s", "mend", does)

    def skates(self) -> Iterator[Finding]:
        """Feet that carry and slide."""
        for foot, subject in enumerate(("left foot", "right foot")):
            for start, stop in runs(self.meets.skates[:, foot]):
                alone = _slides(self.meets)[start:stop].mean() > 0.5
                slip = self.meets.slip[start:stop, foot]
                value = float(np.linalg.norm(slip, axis=-1).max())
                yield self._finding(
                    "skate",
                    (start, stop - 1),
                    subject,
                    value,
                    faults.SKATE_SPEED,
                    "m/s",
                    "mend" if alone else "note",
                    f"the {subject} skates",
                )

    def forces(self) -> Iterator[Finding]:
        """What the floor would have to give."""
        for kind, name, subject, does in (
            (
                "acceleration",
                "com_acceleration",
                "body",
                "the body starts, stops or lands too hard",
            ),
            ("zmp", "zmp_outside", "body", "the weight is thrown beyond the feet"),
            ("friction", "friction", "feet", "the feet need more grip than a floor has"),
        ):
            limit = _MOST[name] * (self.size if name == "zmp_outside" else 1)
            yield from self._beyond(kind, name, limit, "rectify", subject, does)

    def flights(self) -> Iterator[Finding]:
        """Phases in the air, as they should be."""
        flies = _flies(self.meets) & ~(self.meets.floats | self.held)
        for start, stop in runs(flies):
            seconds = (stop - start) / self.rate
            if seconds >= _FLIGHT:
                does, span = f"in the air for {seconds:.2f} s", (start, stop - 1)
                yield self._finding(
                    "flight", span, "body", seconds, _FLIGHT, "s", "rectify", does, False
                )

    def feet(self, character: Character) -> Iterator[Finding]:
        """What the rig says of its feet, and what is taken instead."""
        span = 0, len(self.motion) - 1
        for value, limit, unit, does in odd_feet(character, self.motion):
            yield self._finding("feet", span, "feet", value, limit, unit, "note", does, False)

    def tempo(self, character: Character) -> Iterator[Finding]:
        """Steps that nobody takes at this pace: the clip may be of another frame rate."""
        product = step_product(self.motion, self.meets.contacts, character.ground)
        odd = oddity(product)
        if product is None or odd is None:
            return
        rate = self.rate * self.motion.frame_step
        how, limit = {"slow": ("in slow motion", SLOW), "fast": ("played too fast", FAST)}[odd]
        does = (
            f"it steps as if {how}, at {USUAL / product:.2g} times the usual pace: perhaps it is "
            f"of {likely_rate(rate, product):g} frames a second, not {rate:g}"
        )
        span = 0, len(self.motion) - 1
        yield self._finding("tempo", span, "body", product, limit, "", "note", does, False)

    def stepped(self) -> Iterator[Finding]:
        """Poses that are held, between which a body would have to jump."""
        held = samples_held(self.motion)
        if held is not None:
            frames = held * self.motion.frame_step
            does = (
                f"it holds each pose for {frames:g} frames and then jumps, as animated on twos or "
                "threes: let its keys interpolate"
            )
            span = 0, len(self.motion) - 1
            yield self._finding("stepped", span, "body", frames, 1.0, "frame", "note", does, False)

    def _beyond(
        self,
        kind: str,
        name: str,
        limit: float,
        severity: str,
        subject: str,
        does: str,
        values: np.ndarray | None = None,
    ) -> Iterator[Finding]:
        """Findings where a measure exceeds its limit for a while. values: (F,) of it, None for all
        that were measured."""
        values = self.measures[name] if values is None else values
        values = np.nan_to_num(values, nan=-np.inf)
        for start, stop in _joined(runs(values > limit), round(_LASTING * self.rate)):
            if severity != "mend" and stop - start < _LASTING * self.rate:
                continue
            value = float(values[start:stop].max())
            if kind == "acceleration" and value > _IMPOSSIBLE_ACCELERATION:
                severity = "mend"
            unit = MEASURES[name].unit
            span = start, stop - 1
            yield self._finding(kind, span, subject, value, limit, unit, severity, does)

    def _finding(
        self,
        kind: str,
        span: tuple[int, int],
        subject: str,
        value: float,
        limit: float,
        unit: str,
        severity: str,
        does: str,
        figure: bool = True,
    ) -> Finding:
        first, last = span
        frames = float(self.motion.frame(first)), float(self.motion.frame(last))
        sentence = f"{frames_words(frames)}: {does}"
        if figure:
            sentence += f" ({_number(value)}{' ' + unit if unit else ''})"
        value, limit = round(float(value), 4), round(float(limit), 4)
        return Finding(kind, frames, subject, value, limit, unit, severity, sentence)


def _joined(spans: np.ndarray, gap: int) -> list[tuple[int, int]]:
    """(start, stop) spans, those at most `gap` samples apart as one."""
    result: list[tuple[int, int]] = []
    for start, stop in spans.tolist():
        if result and start - result[-1][1] <= gap:
            start, _ = result.pop()
        result.append((start, stop))
    return result


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def frames_words(frames: tuple[float, float]) -> str:
    """(first, last) frame in words."""
    first, last = frames
    return f"frame {first:g}" if first == last else f"frames {first:g}-{last:g}"


# --- Choice --------------------------------------------------------------------------------------


def _choose(
    findings: Sequence[Finding],
    sound: Trajectory,
    meets: Ground,
    held: np.ndarray,
    sits: np.ndarray,
    change: float,
    outside: float,
) -> tuple[str, str]:
    """("balance", "tune" or "rectify", why)."""
    if not meets.in_place:
        return "rectify", f"it leaves its place by {_travel(sound):.1f} m"
    flies = _flies(meets)
    air, slides = float((flies & ~held).mean()), float(_slides(meets).mean())
    if air > _FLIGHT_SHARE or any(f.kind == "flight" for f in findings):
        return "rectify", f"it is in the air {air:.0%} of the time"
    if slides > _FLIGHT_SHARE:
        return "rectify", f"no foot stands still {slides:.0%} of the time"
    for value, limits, words in (
        (change, _CHANGES, "it steps too fast from foot to foot for balance alone"),
        (outside, _OUTSIDE_SHARES, f"its weight is beyond its feet {outside:.0%} of the time"),
    ):
        if value > limits.rectify:
            return "rectify", words
    for kind, words in (
        ("acceleration", "it starts, stops or lands too hard"),
        ("friction", "its feet need more grip than a floor has"),
    ):
        if any(f.kind == kind for f in findings):
            return "rectify", words
    if change > _CHANGES.tune:
        return "tune", "it steps fast from foot to foot"
    if outside > _OUTSIDE_SHARES.tune:
        return "tune", f"its weight is beyond its feet {outside:.1%} of the time"
    if sits.any():
        return "balance", "it stays in place, and pelvis and thighs carry it where it sits"
    if (flies & held).any():
        return "balance", "it stays in place, and what is held carries it where its feet do not"
    return "balance", "it stays in place, on its feet, with its weight above them"


def _flies(meets: Ground) -> np.ndarray:
    """(F,) samples without a foot on the floor."""
    return (meets.stance == FLIGHT) & ~meets.carries.any(1)


def _slides(meets: Ground) -> np.ndarray:
    """(F,) samples in which all feet on the floor are too fast to stand."""
    return (meets.stance == FLIGHT) & meets.carries.any(1)


def _weight(finding: Finding) -> tuple[int, tuple[float, float], float]:
    """Findings in this order: the severe ones, by frames, the farthest beyond its limit first."""
    return SEVERITIES.index(finding.severity), finding.frames, -finding.value / finding.limit


def _verdict(findings: Sequence[Finding], recommend: str, why: str) -> str:
    """One line: what to mend first, else what will do."""
    mend = [finding for finding in findings if finding.severity == "mend"]
    timing = [finding for finding in findings if finding.kind in _TIMING]
    if mend:
        # What is wrong with its timing makes it jump and float, too.
        worst = [*timing, *mend]
        first = f"Mend first: {worst[0].sentence}"
        return f"{first}, and {len(worst) - 1} more" if len(worst) > 1 else first
    for finding in timing:
        why = f"{why}; {finding.sentence}"
    if recommend == "balance":
        return f"Balance alone will do: {why}"
    if recommend == "rectify":
        return f"Balance alone may not do: {why}"
    return f"Tune: {why}"


__all__ = ["LIMITS", "MEASURES", "ClipCheck", "Finding", "check", "frames_words"]

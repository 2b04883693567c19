# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything the controller needs of the reference, computed in one pass before the loop."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from ..body.character import Character
from ..body.footing import Footing, level
from ..body.momentum import GRAVITY, Dynamics, com_dynamics
from ..body.sole import CLEARANCE
from ..contacts.carried import carrying_contacts
from ..contacts.contact_plan import ContactPlan
from ..contacts.planned_contacts import planned_contacts
from ..exceptions import MotionError, demand
from ..geometry.motion import Motion
from ..geometry.rotations import (
    arctan2,
    continuous,
    matrix_from_quaternion,
    quaternion_from_matrix,
    unit,
)
from ..geometry.skeleton import FEET, joint_of_dof
from ..geometry.stance import (
    Above,
    base_of_support,
    hanging,
    moving_mean,
    reference_contacts,
    stance_of,
    travels,
)
from ..geometry.trajectory import Trajectory, butterworth, linear
from ..support.bearing import TRAVEL_CUTOFF, bearable
from ..support.planting import IN_PLACE_CUTOFF, physical
from ..support.seats import Seats, borne
from ..support.terrain import Terrain
from .cleaning import clean, despike_motion
from .gait import Endless, walking_target
from .way import Headings, Way
from .waypoints import Detour, Waypoint

#: Fastest joint axis that a motion may have [rad/s]: anything above is a fault of the clip. Of 21
#: captured ones, kicks among them, the fastest has 27.
MAX_JOINT_SPEED = 60.0
#: Of its height, how far above the ground a body may start. Captured clips start on it.
START_CLEARANCE = 0.03

#: Low-passes [Hz] of an endless walk, which is smooth already, and of joints that may be too fast;
#: by trial on captured clips.
_ENDLESS_CUTOFF, _SPEED_CUTOFF = 10.0, 12.0
#: Over so long [s] a foot takes its share of the weight, so much of it while it stands already
#: (0: half of it before), so that a foot that is about to go is hardly pressed on; by trial.
_LOAD_RAMP, _LOAD_INSIDE = 0.15, 0.5

#: Rows of a step's goals, and where a foot's floor has its height and its rises.
COM, VELOCITY, MOMENTUM = range(3)
HEIGHT, SLOPES = 0, slice(1, 3)


@dataclass(frozen=True)
class Pose:
    """Poses of all segments at the reference's own samples: body centres (F, S, 3) [m], frames
    (F, S, 3, 3), joints (F, S, 3) [m]."""

    centres: np.ndarray
    frames: np.ndarray
    joints: np.ndarray


class Start(NamedTuple):
    """How a body begins: position of its root (3,) [m], its frame (3, 3), velocity (3,) [m/s] and
    angular velocity (3,) [rad/s]."""

    root: np.ndarray
    frame: np.ndarray
    velocity: np.ndarray
    angular: np.ndarray


#: Rows of `Reference.goals`: place and velocity of the centre of mass, angular momentum about it.
COM, VELOCITY, MOMENTUM = 0, 1, 2


@dataclass(frozen=True)
class Reference:
    """A reference motion, sampled at the control rate (K steps) and at its own (F samples).

    steps_per_sample: control steps from one sample to the next. start: Start; lowest: sole corner
    [m] of that pose, if what is under it were as high as the character's ground. raw: Pose as the
    animation has it (of a looped clip: cleaned); cleaned: Pose as it was cleaned and moved by
    waypoints, None where it has no fault and passes them, or is looped; bones: (F, S, 4) turns of
    what carries its segments where those were cleaned, else None. smooth: Pose after all that and
    the low-pass; everything below also has the feet planted. stance: (F,) states at the samples.
    Over the K steps, in SI units: angles, speeds (K, dofs); goals (K, 3, 3), of which COM, VELOCITY
    and MOMENTUM are the rows; wrench (K, 6) force and torque on the body that the motion itself
    takes, weight included; accelerations (K, 6 + dofs) of the pelvis, angular and linear in the
    world, and of the joints; pelvis (K, 3, 3) frame; base (K, 2) of support; support (K,) stance;
    load (K, 2) share that each foot may carry, ramped around every step; heels (K, 2) from 1 for
    one that is as low as the lowest part of its sole to 0; feet (K, 2, 3, 3) frames; floors
    (K, 2, 3) of what either foot stands on: height under its ankle [m], rises along x and y.
    travels: whether the body leaves its place or the floor; endless: it is a walk that goes on;
    directed: and a curve or commands say where to, so that it has no place of its own.
    walks: whether feet in the air land where the body is going, see `walking`. way: along which the
    body is led, or its headings, while all of this goes straight on; None where nothing leads it.
    turns: (K,) whether it may turn there, and does not stand on command; leaning: (K,) as
    `commands.Journey` has it; None where nothing commands it. helps: (K,) share of the weight that
    help from outside may be in what it performs, None for never.
    waypoints: those by which it goes, in the order of time, each with its place. seats: Seats, of
    its samples, and seated (K,) how much of what they may carry they carry; None where it never
    sits.
    """

    rate: float
    steps_per_sample: int
    trajectory: Trajectory
    start: Start
    lowest: float
    raw: Pose
    smooth: Pose
    stance: np.ndarray
    angles: np.ndarray
    speeds: np.ndarray
    goals: np.ndarray
    wrench: np.ndarray
    accelerations: np.ndarray
    pelvis: np.ndarray
    base: np.ndarray
    support: np.ndarray
    load: np.ndarray
    heels: np.ndarray
    feet: np.ndarray
    floors: np.ndarray
    travels: bool = False
    endless: bool = False
    directed: bool = False
    walks: bool = False
    way: Way | Headings | None = None
    turns: np.ndarray | None = None
    leaning: np.ndarray | None = None
    helps: np.ndarray | None = None
    cleaned: Pose | None = None
    bones: np.ndarray | None = None
    waypoints: tuple[Waypoint, ...] = ()
    seats: Seats | None = None
    seated: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.stance)

    @cached_property
    def tilts(self) -> np.ndarray:
        """(K, 2) how the side axis of either foot rises from its floor, as sole.Sole has it."""
        left, rises = self.feet[..., 1], self.floors[..., SLOPES]
        return left[..., 2] - rises[..., 0] * left[..., 0] - rises[..., 1] * left[..., 1]

    @cached_property
    def pivots(self) -> np.ndarray:
        """(K, 2) how fast either foot turns about the vertical [rad/s]."""
        heading = np.unwrap(arctan2(self.feet[..., 1, 0], self.feet[..., 0, 0]), axis=0)
        return np.gradient(heading, axis=0) * self.rate

    @classmethod
    def window(
        cls, character: Character, motion: Endless, rate: float, cutoff: float | None = None
    ) -> "Reference":
        """That of a part of a walk, to be performed and not to be compared with: `raw` is what it
        is to do itself. Arguments as `build` has them."""
        return _endless(cls, character, motion, rate, cutoff, True, compared=False)

    def goals_over_base(self) -> np.ndarray:
        """(K, 3, 3) goals that ask nothing of how the masses are spread, as SCA12 has them for a
        body that is not the actor's: the centre of mass at rest above the base of support, and no
        angular momentum. Its height stays the reference's."""
        goals = self.goals.copy()
        goals[:, COM, :2] = self.base
        goals[:, VELOCITY, :2] = 0
        goals[:, MOMENTUM] = 0
        return goals

    @classmethod
    def build(
        cls,
        character: Character,
        motion: Motion,
        rate: float = 300.0,
        duration: float | None = None,
        cutoff: float | None = None,
        cleaning: Sequence[str] = (),
        terrain: Terrain | None = None,
        plan: ContactPlan | None = None,
        plant: Callable[..., Trajectory] = physical,
        led: bool = False,
        waypoints: Sequence[Waypoint] = (),
        held: np.ndarray | None = None,
        helped: bool = False,
        seats: Seats | None = None,
    ) -> "Reference":
        """Prepare a motion for a character.

        rate: wanted control rate [Hz]; the nearest multiple of the motion's own is taken, so
        that samples fall on steps. duration [s]: loop (or cut) the clip to this length. cutoff:
        low-pass [Hz], None for 4 Hz in place and 6 Hz for travelling clips. cleaning: names of
        `cleaning.CLEANING`, what to mend first. terrain: terrain.Terrain that it is performed on,
        None for a level floor; plan: ContactPlan of the clip, before it is looped, None to find
        contacts; an endless motion has neither. plant: what lets the body stand in a clip in
        place, as planting.physical does. led: let the reference of a walk along a curve go straight
        on, for the body is led along it, see `way`. waypoints: Waypoint each, by which the motion
        is moved; a looped or an endless one has none. held: (F,) samples in which something holds
        the body, so that it may hang, None for never. helped: whether help from outside gives what
        feet lack. seats: Seats of the motion, None where it never sits. Raises MotionError for a
        clip that is upside down, starts in the air or that no joint can follow, PlanError for a
        plan that does not fit, SettingsError for a waypoint that no body reaches.
        """
        demand(
            held is None or (duration is None and not isinstance(motion, Endless)),
            "A walk or a clip that goes on and on has no frames at which holds begin and end: take "
            "the holds away, or simulate the clip as it is.",
        )
        if isinstance(motion, Endless):
            demand(
                not waypoints,
                "An endless walk goes where its heading leads it, and by no waypoints: take a "
                "curve as its Heading, or simulate the clip as it is.",
            )
            return _endless(cls, character, motion, rate, cutoff, led)
        motion.demand_upright()
        raw_trajectory, bones = character.as_animated(motion), None
        reached = cleaned = character.reached(raw_trajectory, motion)
        if "despike" in cleaning:
            despiked, bones = despike_motion(character, raw_trajectory, motion)
            if despiked is not raw_trajectory:
                cleaned = character.reached(despiked, motion)
        others = [name for name in cleaning if name != "despike"]
        cleaned = clean(character, cleaned, others, terrain)
        joints, frames = character.pose(cleaned)
        corners = character.sole_corners(joints, frames)
        over = terrain.over(corners, joints[:, FEET]) if terrain else None
        centres = character.body_centres(joints, frames)
        held = borne(held, seats)
        if plan is None:
            contacts, travelling = carrying_contacts(
                character, corners, centres, motion.rate, cleaned.root, over, held
            )
        else:
            contacts = planned_contacts(character, corners, centres, motion, plan, over)
            travelling = travels(character, contacts, corners, motion.rate, cleaned.root, held)
        lowest = _lowest(character, corners[:1], over)
        _check(character, motion, cleaned, lowest, held is not None and bool(held[0]))
        if held is not None:
            held = hanging(contacts, held)
        if duration is not None:
            travel = _travel(joints[:, FEET], contacts, cleaned.root)
            cleaned, period = cleaned.looped(duration, travel)
            if seats is not None:
                seats = seats.looped(period, len(cleaned))
                held = seats.sits
            raw_trajectory = reached = cleaned
            bones = None  # a loop is never baked
            joints, frames = character.pose(cleaned)
            corners = character.sole_corners(joints, frames)
            over = terrain.over(corners, joints[:, FEET]) if terrain else None
            contacts = _looped_contacts(character, contacts, period, corners, motion.rate, over)
        aimed = cleaned
        if waypoints:
            detour = Detour(character, cleaned, contacts, waypoints, motion)
            waypoints = detour.waypoints
            cleaned, aimed = detour.moved(), detour.moved(leading=True)
            joints, frames = character.pose(cleaned)
        if terrain is None:
            footings = level(character.ground, len(contacts))
        else:
            footings = terrain.footings(character, aimed, contacts)
        if cutoff is None:
            cutoff = TRAVEL_CUTOFF if travelling else IN_PLACE_CUTOFF
        if travelling:  # its weight is where its speed takes it
            target = bearable(character, aimed, contacts, cutoff, footings, terrain, held, helped)
        else:
            # A loop is for trials: its feet come round again, and there is no mark to stand on.
            on_mark = duration is None
            if held is not None:
                plant = partial(plant, held=held)
            target = plant(character, aimed, contacts, cutoff, footings, on_mark, terrain)
        raw = Pose(character.body_centres(joints, frames), frames, joints)
        mended = None if cleaned is reached else raw
        if cleaned is not raw_trajectory:
            joints, frames = character.pose(raw_trajectory)
            raw = Pose(character.body_centres(joints, frames), frames, joints)
        parts = (raw, cleaned, target)
        reference = _sample(cls, character, parts, contacts, rate, cutoff, footings, terrain)
        seated = None
        if seats is not None:
            at = np.arange(len(reference.angles)) / reference.steps_per_sample
            seated = linear(seats.shares(motion.rate)[:, None], np.minimum(at, len(cleaned) - 1))
        return replace(
            reference,
            seats=seats,
            seated=None if seated is None else seated[:, 0],
            travels=travelling,
            walks=travelling,
            cleaned=mended,
            bones=bones,
            waypoints=tuple(waypoints),
        )


def _endless(
    cls: type[Reference],
    character: Character,
    motion: Endless,
    rate: float,
    cutoff: float | None,
    led: bool,
    compared: bool = True,
) -> Reference:
    """The Reference of an Endless motion: as long as that is, whatever was asked for. compared:
    whether a result is compared with it."""
    walk = motion.walk
    leads = led and walk.directed
    # Along a way everybody looks where it goes.
    heads = leads and (walk.played or any(one.aside for one in walk.commands))
    way: Way | Headings | None = None
    if leads and not heads:
        way = walk.way(character, motion.source)
    straight = heads or way is not None
    target, contacts = walking_target(character, motion, cutoff or TRAVEL_CUTOFF, straight)
    joints, frames = character.pose(target)
    corners = character.sole_corners(joints[:1], frames[:1])
    begins = motion.first == 0  # else it goes on, and may fly
    _check(character, motion, target, _lowest(character, corners), not begins)
    joints, frames = character.pose(character.as_animated(motion) if compared else target)
    raw = Pose(character.body_centres(joints, frames), frames, joints)
    parts = (raw, target, target)
    footings = level(character.ground, len(contacts))
    reference = _sample(cls, character, parts, contacts, rate, _ENDLESS_CUTOFF, footings)
    commanded = turns = leaning = helps = None
    if walk.commands:
        gone, steps = walk.journey(motion.rate), reference.steps_per_sample
        at = np.arange(len(reference.angles))
        now = gone.at(motion.first + at // steps)
        turns, leaning = now.turns, now.leaning
        shares = np.array([*(one.outside_help for one in walk.acts), 0.0])[now.act]
        helps = shares if shares.any() else None
        if heads:
            yaw = np.interp(motion.first + at / steps, np.arange(len(gone.yaw)), gone.yaw)
            way = Headings(yaw, 1 / reference.rate, walk.cycle.period / motion.rate)
        if compared:
            if straight:  # and so it is not where the target is
                target, _ = walking_target(character, motion, cutoff or TRAVEL_CUTOFF)
            joints, frames = character.pose(target)
            commanded = Pose(character.body_centres(joints, frames), frames, joints)
    return replace(
        reference,
        travels=True,
        endless=True,
        directed=walk.directed,
        walks=True,
        way=way,
        turns=turns,
        leaning=leaning,
        helps=helps,
        cleaned=commanded,
    )


def _lowest(character: Character, corners: np.ndarray, over: Above | None = None) -> float:
    """Height [m] of the lowest of sole corners (1, 2, n, 3), if what is under them were as high as
    the character's ground. over: as `stance.reference_contacts` has it."""
    if over is None:
        return float(corners[..., 2].min())
    return character.ground + float(over.heights[0].min())


def _check(
    character: Character,
    motion: Motion,
    trajectory: Trajectory,
    lowest: float,
    held: bool = False,
) -> None:
    """Refuse what cannot be tracked, in words. lowest: sole corner at the start [m]. held: whether
    it may be in the air there."""
    clearance = lowest - character.ground
    if not held and clearance > START_CLEARANCE * character.height:
        raise MotionError(
            f"'{motion.name}' starts in the air, {100 * clearance:.0f} cm above the ground: start "
            "the range at a frame with a foot on the ground, or clean it with 'ground' if it "
            "floats."
        )
    fastest = joint_speeds(character, trajectory)
    if fastest.max() > MAX_JOINT_SPEED:
        sample, dof = map(int, np.unravel_index(np.argmax(fastest), fastest.shape))
        frame = motion.frame(sample)
        raise MotionError(
            f"'{motion.name}' turns the {character.joint_words(dof)} at {fastest.max():.0f} rad/s "
            f"at frame {frame:g}: mend the rotation pop there, or clean it with "
            "'despike'."
        )


def joint_speeds(character: Character, trajectory: Trajectory) -> np.ndarray:
    """(F, dofs) sizes of the joint velocities [rad/s] that must not exceed MAX_JOINT_SPEED; 0 for
    toes, which the reference bends by itself."""
    speeds = trajectory.smoothed(_SPEED_CUTOFF).speeds
    return np.abs(speeds) * [not joint_of_dof(name).minor for name in character.dof_names]


def _travel(ankles: np.ndarray, contacts: np.ndarray, root: np.ndarray) -> np.ndarray:
    """Displacement (3,) [m] that carries a looped clip on where it ended: of the feet that stand
    at both ends, or of the root."""
    both = contacts[0] & contacts[-1]
    step = (ankles[-1] - ankles[0])[both].mean(0) if both.any() else root[-1] - root[0]
    return step * [1, 1, 0]


def _looped_contacts(
    character: Character,
    contacts: np.ndarray,
    period: int,
    corners: np.ndarray,
    rate: float,
    over: Above | None,
) -> np.ndarray:
    """(F, 2) contacts of a looped clip: its own, and between two rounds those of feet that stand
    at both ends, or that the blended pose puts on the floor."""
    result = reference_contacts(character, corners, rate, True, over)
    count, total = len(contacts), len(result)
    stays = contacts[0] & contacts[-1]
    for start in range(0, total, period):
        result[start : start + count] = contacts[: total - start]
        result[start + count : start + period] |= stays
    return result


def _sample(
    cls: type[Reference],
    character: Character,
    motions: tuple[Pose, Trajectory, Trajectory],
    contacts: np.ndarray,
    rate: float,
    cutoff: float,
    footings: tuple[Footing, Footing],
    terrain: Terrain | None = None,
) -> Reference:
    raw, cleaned, target = motions
    sample_rate = target.rate
    steps = max(1, round(rate / sample_rate))
    rate = sample_rate * steps
    wanted = cleaned.smoothed(cutoff).trajectory
    joints, frames = character.pose(wanted)
    smooth_pose = Pose(character.body_centres(joints, frames), frames, joints)
    smooth, root_velocity, angular, speeds = target.smoothed(cutoff)
    joints, frames = character.pose(smooth)
    centres = character.body_centres(joints, frames)
    dynamics = com_dynamics(character, centres, frames, sample_rate, cutoff)
    stance = stance_of(contacts)
    base = base_of_support(joints[:, FEET], stance)
    corners = character.sole_corners(joints, frames)
    over = terrain.over(corners, joints[:, FEET]) if terrain else None
    count = (len(cleaned) - 1) * steps + 2  # one step beyond the end: Stable PD looks ahead
    at = np.minimum(np.arange(count) / steps, len(cleaned) - 1)
    nearest = np.minimum(np.round(at).astype(int), len(stance) - 1)
    angles, velocities = hermite(smooth.angles, speeds, at, sample_rate)

    def between(values: np.ndarray) -> np.ndarray:
        return linear(values, at)

    return cls(
        rate=rate,
        steps_per_sample=steps,
        trajectory=smooth,
        start=Start(smooth.root[0], frames[0, 0], root_velocity[0], angular[0]),
        lowest=_lowest(character, corners[:1], over),
        raw=raw,
        smooth=smooth_pose,
        stance=stance,
        angles=angles,
        speeds=velocities,
        goals=between(np.stack([dynamics.com, dynamics.velocity, dynamics.momentum], 1)),
        wrench=between(_wrench(character, dynamics)),
        accelerations=between(_accelerations(centres, angular, speeds, sample_rate, cutoff)),
        pelvis=matrix_from_quaternion(_unit_linear(frames[:, 0], at)),
        base=between(base),
        support=stance[nearest],
        load=between(_load(contacts, sample_rate)),
        heels=between(_heels(corners, footings)),
        feet=np.stack(
            [matrix_from_quaternion(_unit_linear(frames[:, foot], at)) for foot in FEET], 1
        ),
        floors=between(
            np.stack([footings[i].planes(joints[:, foot]) for i, foot in enumerate(FEET)], 1)
        ),
    )


def _wrench(character: Character, dynamics: Dynamics) -> np.ndarray:
    """(F, 6) force [N] and torque about the centre of mass [N m] behind a motion."""
    force = character.mass * (dynamics.acceleration + [0, 0, GRAVITY])
    return np.concatenate([force, dynamics.momentum_rate], 1)


def _accelerations(
    centres: np.ndarray, angular: np.ndarray, speeds: np.ndarray, rate: float, cutoff: float
) -> np.ndarray:
    """(F, 6 + dofs) angular and linear acceleration of the pelvis, and of the joints."""
    _, velocity = butterworth(centres[:, 0], rate, 2 * cutoff)
    rates = np.concatenate([angular, velocity, speeds], 1)
    return butterworth(rates, rate, 2 * cutoff)[1]


def _heels(corners: np.ndarray, footings: tuple[Footing, Footing]) -> np.ndarray:
    """(F, 2) how much of each heel is as low as the lowest part of its sole (F, 2, n, 3)."""
    heights = np.stack([footings[foot].untilted(corners[:, foot]) for foot in range(2)], 1)
    return np.clip(1 - (heights[:, :, :2].min(2) - heights.min(2)) / CLEARANCE, 0, 1)


def _load(contacts: np.ndarray, rate: float) -> np.ndarray:
    """(F, 2) share of its weight that each foot may take: its contact, averaged over the ramp, as
    it was and will be a little before and later, whatever is less."""
    half = max(1, round(_LOAD_RAMP * rate)) // 2
    inside, count = round(_LOAD_INSIDE * half), len(contacts)
    padded = np.pad(contacts.astype(float), ((inside, inside), (0, 0)), mode="edge")
    shares = moving_mean(padded, half)
    return np.minimum(shares[:count], shares[2 * inside :])


def _unit_linear(frames: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Quaternions between samples: close neighbours, so linear and normalised."""
    return unit(linear(continuous(quaternion_from_matrix(frames)), at))


def hermite(
    values: np.ndarray, slopes: np.ndarray, at: np.ndarray, rate: float
) -> tuple[np.ndarray, np.ndarray]:
    """Cubic interpolation of (F, n) values with known slopes, and its own slopes."""
    low = np.minimum(at.astype(int), len(values) - 2)
    x = (at - low)[:, None]
    start, end = values[low], values[low + 1]
    leave, arrive = slopes[low] / rate, slopes[low + 1] / rate
    delta = end - start
    cubic = leave + arrive - 2 * delta
    square = 3 * delta - 2 * leave - arrive
    position = start + x * (leave + x * (square + x * cubic))
    return position, (leave + x * (2 * square + 3 * x * cubic)) * rate

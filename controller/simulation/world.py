# SPDX-License-Identifier: GPL-3.0-or-later
"""The physics engine: the only module that talks to PyBullet.

Bullet's x-y-z-w quaternions, link numbers and argument order end here. A link is a degree of
freedom: joints of several axes are stacks of hinges with light links between them, since
Bullet's ball joints have no limits and take torques in the parent's frame.
"""

import contextlib
import importlib
import sys
import weakref
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import chain, combinations
from math import hypot
from typing import Any, NamedTuple

import numpy as np

from ..body.character import Character, Joint, Shape
from ..body.momentum import GRAVITY
from ..body.sole import STEEPEST, Ground
from ..body.state import Pull, State
from ..exceptions import SettingsError, SimulationError
from ..geometry.rotations import (
    columns_from_bullet,
    exponential,
    matrix_from_quaternion,
    multiply,
    quaternion_from_matrix,
    rotation_vector,
)
from ..geometry.skeleton import FEET, SEGMENT_INDEX, SEGMENTS, TOES, segment_name
from ..geometry.solids import mass_properties
from ..geometry.stance import SIMULATED_CLEARANCE
from .holds import Hold
from .scenario import Collider, Limb, Scenario, Solid, Thing, Throw

FRICTION = 1.0  # of soles on the floor (SCA12, section 4)

#: Mass [share of the body's] and radius of gyration [m] of the links inside a joint: so little that
#: they do not show, and as much as keeps the engine steady. By trial, on a first prototype.
_INNER_MASS = 0.0003
_INNER_GYRATION = 0.1
#: The same of a body that falls: with 0.1 the engine threw 60 of 170 falls about. By trial.
_FALLING_GYRATION = 0.3
#: Of a body that falls, steps of the physics in one of the control, until it lies calmly, for which
#: one will do (up to a quarter less time until it rests); the same of one that gets up,
#: which presses hands and feet (with 3 up to 11 mm into the floor), and of one below this stature
#: [m], which moves quicker (with 4 a hip of a child was 4.5 degrees beyond its limit). Of 5 at 300
#: Hz PyBullet rounds the first away. By trial on falls, as the next two.
_FALLING_STEPS, _FINE_STEPS, _SMALL = 3, 6, 1.4
#: [kg m2] that the toes of an adult of this mass [kg] and stature [m] turn heavier by. What a body
#: of three hundred times their mass presses turns them 20 degrees beyond their limit, with this 3:
#: else it would take twice the steps, and twice the time.
_TOE_ARMATURE, _ADULT = 0.01, (71.0, 1.8)
#: Iterations of the engine's solver in one step of those, and else, which is the engine's own.
_FALLING_ITERATIONS, _ITERATIONS = 20, 50
#: A limb's only link, by the number of its part.
_ONLY_PART = {-1: 0}
#: The contact solver stops here: measured, a quarter faster, and the same result to 0.1 mm.
_RESIDUAL = 1e-4
#: How deep things may rest in each other [m]. Without it boxes that part by a micrometre lose all
#: contact for a step, in which an ankle that carries the body spins its foot into the floor. The
#: floor and colliders are so much higher than they are called, and soles are where they are called.
#: By trial, on soles that lost contact.
_SLOP = 0.001
#: A collider whose top is so far [m] below the floor, or less than the second above it, is brought
#: to that over it: of two surfaces at one height the rougher one would hold the feet. The first by
#: judgement; with the second, what rests in the collider is out of the floor.
_FLUSH, _OVER_FLOOR = 0.005, _SLOP
#: Half the length and width of the floor [m]: twice the step in which it follows.
_FLOOR_SIZE = 1000.0
#: The floor lies under the character, in steps of so many metres: most lie on one and the same.
_FLOOR_STEP = 500.0
#: [N] at a point of contact that counts as carrying: by the definition of `few_corners`.
_CARRIES = 1.0
#: Mass [kg] of a collider on a path: so large that nothing moves it.
_HEAVY = 1e6
#: Stiffness [N/m] and damping [N s/m] where a limb touches. Nothing moves it, and hard it would
#: press a foot that it steps on with a million newtons; so it is less than ten thousand. With so
#: much damping nothing bounces, and a fist of 6 m/s is in the trunk by 4 cm. By trial on a walk
#: that meets somebody, and on blows.
FLESH = 20e3, 3e3
#: What is deeper than this [m] in the body at its start is a mistake. By trial.
_DEEP = 0.05
#: What is deeper than this [m] in a collider as it begins to fall has been in it. By trial.
_INSIDE = 0.02
#: What is in the floor then, that lifts out with [1/s2] and [1/s], by its mass. By trial.
_LIFT, _LIFT_DAMPING = 100.0, 12.0
#: So is what has swallowed a foot but for this share of its thickness. By trial.
_SWALLOWED = 0.9
#: Things that have not started wait so far [m] below the floor, and from each other.
_WAITING = 1000.0
#: How far [m] above and below the floor something to fall on is looked for.
_RAY = 20.0
#: A thing that overlaps the body at its start has left it at this distance [m]. By trial.
_APART = 0.02
#: A limb gets to where it is held at this speed [m/s]. By judgement: as hands reach.
_REACHING = 1.0
#: [s] over which the force at a hold is taken: shorter blows do not break it. By judgement.
_HOLD_TIME = 0.05
#: Share of what a held point is off that the engine takes back in a step: with its own 0.2 a hand
#: on its way was 13 mm behind, with this 3 mm. By trial.
_RECOVERED = 0.5
#: Of another character a limb holds on to what is so near [m]. By judgement: an arm's thickness.
_WITHIN = 0.15
#: The segment at which a limb begins, by that of its parts; without sides.
_TOPS = {
    **dict.fromkeys(("upper_arm", "forearm"), "upper_arm"),
    **dict.fromkeys(("thigh", "shin", "foot", "toe"), "thigh"),
}
#: A hold gives way to nothing below this [N], before it breaks.
_FIRM = 1e6
#: The segments that one sits on, and what bears who does not sit.
_SEAT = ("pelvis", "thigh_l", "thigh_r")
#: How these give, as FLESH: by trial on made clips, they sink by 2 to 3 mm where they sit.
_SEAT_FLESH = 120e3, 4e3
_NO_SEAT = Pull("pelvis", (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
_ON_TIME = 1e-9  # [s]

# What may touch what, as bits of Bullet's collision groups; that of rays is Bullet's default.
_RAYS, _STATIC, _FOOT, _BODY, _THING, _LIMB = 1, 2, 4, 8, 16, 32
#: Bodies that can be simulated together: each has a floor of its own, with a group for it.
MOST_TOGETHER = 20
_FLOORS = sum(_LIMB << number for number in range(1, MOST_TOGETHER + 1))

# Places in what PyBullet tells, by its Quickstart Guide: of a point of contact, the body first,
_OTHER_BODY = 2
_LINK, _OTHER_LINK, _ON_BODY, _ON_OTHER, _NORMAL, _DISTANCE = range(3, 9)
# where a force [N] and its direction are, across and along what is touched,
_ACROSS, _ALONG, _ALONG_TOO = (9, _NORMAL), (10, 11), (12, 13)
# and of a link: its centre of mass, the frame of its joint and how fast the first is.
_CENTRE, _ORIGIN, _TURN, _VELOCITY = 0, 4, 5, 6

_AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
_W_FIRST = [3, 0, 1, 2]
_ANGULAR_FIRST = [3, 4, 5, 0, 1, 2]
_UPRIGHT = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]


class Contacts(NamedTuple):
    """What the feet stand on at one moment, left before right.

    touch: which of them touch the floor or a collider. forces: on each [N]; cops: centre of
    pressure under each [m], NaN without contact; (2, 3) both. drifts: (2, 2) how fast what they
    touch moves there [m/s]. carrying: at how many points they carry.
    """

    touch: Sequence[bool]
    forces: Sequence[Sequence[float]]
    cops: Sequence[Sequence[float]]
    drifts: Sequence[Sequence[float]]
    carrying: int


class Membership(NamedTuple):
    """Which of several bodies that meet a body is: their Engine, its number among them, and its
    name."""

    engine: "Engine"
    member: int
    name: str


class Touch(NamedTuple):
    """A point at which a segment touches the floor or a collider: place (3,) [m], the force across
    [N] it is pressed with (3,), and how deep [m] it is in there."""

    segment: int
    place: tuple[float, float, float]
    force: tuple[float, ...]
    depth: float


class Held(NamedTuple):
    """How a hold is: whether it holds now, has ended, or has broken; its place (3,) [m] in the
    world or on what it is to, and what is missing to that (3,) [m]; the force (3,) [N] with which
    it pulls the body, in the last step, and over a while; the link of what it is to."""

    holds: bool = False
    over: bool = False
    broken: bool = False
    place: tuple[float, ...] = (0.0, 0.0, 0.0)
    missing: tuple[float, ...] = (0.0, 0.0, 0.0)
    pull: tuple[float, ...] = (0.0, 0.0, 0.0)
    force: tuple[float, ...] = (0.0, 0.0, 0.0)
    link: int = -1

    @property
    def strain(self) -> float:
        """How hard it pulls [N], over a while."""
        return hypot(*self.force)


class Saved(NamedTuple):
    """A state of the world, in the engine's memory.

    number: the engine's. launched: things that have started. parting: as World has it. grips: as
    World.grip takes them. held: Held of each hold. seat: what bears it where it sits.
    """

    number: int
    launched: set[int]
    parting: dict[int, set[int]]
    grips: list[float]
    held: list[Held]
    seat: Pull


def _bullet(quaternion: Sequence[float] | np.ndarray) -> list[float]:
    """w-x-y-z to x-y-z-w."""
    return [*quaternion[1:], quaternion[0]]


def _segment_link(joint: Joint) -> int:
    """Number of the link that carries a joint's segment."""
    return joint.first + len(joint.axes) - 1


def _substeps_of(world: "World") -> int:
    """Steps of the physics in one of the control of a body that falls, or touches another."""
    coarse = world.character.height > _SMALL and not world.rising
    return _FALLING_STEPS if coarse else _FINE_STEPS


def _ordered(pair: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """Two links of two bodies, (body, link, body, link), the lower body first."""
    own, one, other, two = pair
    return min(pair, (other, two, own, one))


class _Path:
    """How a collider moves: straight and evenly from sample to sample."""

    def __init__(self, collider: Collider, rate: float, raised: float) -> None:
        """rate: of its samples [Hz]. raised: how much higher it is [m] than it is called."""
        self._rate = rate
        self._positions = np.asarray(collider.positions, float) + [0.0, 0.0, raised]
        self._rotations = np.asarray(collider.rotations, float)
        matrices = matrix_from_quaternion(self._rotations)
        turns = matrices[1:] @ matrices[:-1].swapaxes(1, 2)
        self._steps = np.diff(self._positions, axis=0)
        self._turns = rotation_vector(quaternion_from_matrix(turns))
        self._turns[np.abs(self._turns).max(1) < 1e-9] = 0

    def at(self, time: float) -> tuple[list[float], list[float], list[float], list[float]]:
        """Position (3,) [m], Bullet's quaternion, velocity (3,) [m/s] and spin (3,) [rad/s] at a
        time [s], as lists."""
        at, last = time * self._rate, len(self._steps)
        low = min(int(at), last - 1)
        part = min(at - low, 1.0)
        step, turn = self._steps[low], self._turns[low]
        rotation = self._rotations[low]
        if turn.any():
            rotation = multiply(exponential(part * turn), rotation)
        speed = self._rate if at < last else 0.0
        position = self._positions[low] + part * step
        return (
            position.tolist(),
            _bullet(rotation),
            (speed * step).tolist(),
            (speed * turn).tolist(),
        )


pybullet: Any = None  # imported with the first world


def load_engine() -> None:
    """Import PyBullet, which writes a line to standard output: where nothing is simulated, as while
    Blender starts, nothing is written. Raises SimulationError."""
    global pybullet
    if pybullet is None:
        try:
            pybullet = importlib.import_module("pybullet")
        except ImportError as error:
            raise SimulationError(
                f"PyBullet does not load into Python {sys.version_info.major}."
                f"{sys.version_info.minor} ({error}): remove Poise and install the zip that is "
                "made for this system."
            ) from error


class Engine:
    """A world of PyBullet's, for one body, or for several that meet.

    substeps: steps of the physics in the last one of the control, of which PyBullet tells the last
    one's impulses over the time of all. shared: several bodies are to be in it; who drives them
    steps it once for all. scenery: {(kind, name): Bullet's number} of things, colliders and limbs
    that are in it. started: the things among them that have. touching: whether two of
    the bodies do, or are about to.
    """

    def __init__(self, rate: float, shared: bool = False) -> None:
        """rate: steps of the control per second [Hz]. Raises SimulationError."""
        load_engine()
        self.substeps, self.shared, self.touching = 1, shared, False
        self.client = pybullet.connect(pybullet.DIRECT)
        if self.client < 0:
            raise SimulationError("PyBullet could not open another world: close some simulations.")
        # No __del__: at the end of the program that might find the module empty.
        self.close = weakref.finalize(self, pybullet.disconnect, self.client)
        self.scenery: dict[tuple[str, tuple[Any, ...]], int] = {}
        self.started: set[int] = set()
        #: The worlds that are in it, by the numbers of their bodies.
        self.worlds: weakref.WeakValueDictionary[int, World] = weakref.WeakValueDictionary()
        #: Pairs of links of two bodies, (body, link, body, link), that overlap since one of them
        #: was put there.
        self._overlapping: set[tuple[int, int, int, int]] = set()
        pybullet.setGravity(0, 0, -GRAVITY, self.client)
        pybullet.setPhysicsEngineParameter(
            fixedTimeStep=1 / rate,
            deterministicOverlappingPairs=1,
            solverResidualThreshold=_RESIDUAL,
            contactSlop=_SLOP,
            physicsClientId=self.client,
        )
        if shared:  # what two touch, both must: else each body would touch all floors
            pybullet.setPhysicsEngineParameter(collisionFilterMode=0, physicsClientId=self.client)

    @property
    def next_substeps(self) -> int:
        """Steps of the physics in the next one of the control: several while a body falls, or
        touches another one, but for one that lies."""
        fine = [
            _substeps_of(one)
            for one in self.worlds.values()
            if (one.falling or self.touching) and not one.calm
        ]
        return max(fine, default=1)

    def step(self) -> None:
        """Advance by a step of the control."""
        if self._overlapping:
            self._part()
        substeps = self.next_substeps
        if substeps != self.substeps:
            self.substeps = substeps
            pybullet.setPhysicsEngineParameter(
                numSubSteps=substeps if substeps > 1 else 0,  # which is PyBullet's own
                numSolverIterations=_FALLING_ITERATIONS if substeps > 1 else _ITERATIONS,
                physicsClientId=self.client,
            )
        pybullet.stepSimulation(self.client)
        if self.shared:
            self.touching = any(
                pybullet.getContactPoints(one, other, physicsClientId=self.client)
                for one, other in combinations(self.worlds, 2)
            )

    def meet(self, world: "World") -> None:
        """Let a body that was put where it is pass what it overlaps of others until it has left
        that: hands that hold each other, say."""
        for own, other, depths in self._met_by(world):
            for one, two in depths:
                self.let_pass((own, one, other, two))

    def let_pass(self, pair: tuple[int, int, int, int]) -> None:
        """Let two links (body, link, body, link) of two bodies pass until they have left each
        other, and are not held."""
        own, one, other, two = pair
        self._overlapping.add(_ordered(pair))
        pybullet.setCollisionFilterPair(own, other, one, two, 0, self.client)

    def body_of(self, name: str) -> "World":
        """The newest world of a body of that name."""
        return [world for world in self.worlds.values() if world.name == name][-1]

    def demand_apart(self) -> None:
        """Raise SettingsError if two bodies are inside each other."""
        for world in self.worlds.values():
            for _, other, depths in self._met_by(world):
                pair = max(depths, key=depths.__getitem__, default=None)
                if pair is not None and depths[pair] > _DEEP:
                    part, partner = world.segment_of(pair[0]), self.worlds[other]
                    raise SettingsError(
                        f"The {part} of '{world.name}' is {100 * depths[pair]:.0f} cm inside of "
                        f"the {partner.segment_of(pair[1])} of '{partner.name}' at its start: "
                        "move them apart, or start from another frame."
                    )

    def deepest(self) -> float:
        """How deep [m] two bodies are in each other now."""
        pairs = (pair for world in self.worlds.values() for pair in self._met_by(world))
        return max((max(depths.values(), default=0.0) for _, _, depths in pairs), default=0.0)

    def _part(self) -> None:
        """Let parts of two bodies meet that have left each other."""
        there = {
            pair for pair in self._overlapping if pair[0] in self.worlds and pair[2] in self.worlds
        }
        gripped = {_ordered(pair) for world in self.worlds.values() for pair in world.gripped()}
        touching = {
            (own, one, other, two)
            for own, other in {(own, other) for own, _, other, _ in there - gripped}
            for one, two in self._depths(own, other, _APART)
        }
        left = there - gripped - touching
        for own, one, other, two in sorted(left):
            pybullet.setCollisionFilterPair(own, other, one, two, 1, self.client)
        self._overlapping = there - left

    def _met_by(self, world: "World") -> Iterable[tuple[int, int, dict[tuple[int, int], float]]]:
        """The body of a world, that of each other one, and how deep [m] which pairs of their links
        are in each other."""
        for other, partner in self.worlds.items():
            if partner.member != world.member:
                yield world.body, other, self._depths(world.body, other, 0.0)

    def _depths(self, own: int, other: int, within: float) -> dict[tuple[int, int], float]:
        """How deep [m] which pairs of links of two bodies are in each other, or as close as
        `within` [m]."""
        depths: dict[tuple[int, int], float] = {}
        for point in pybullet.getClosestPoints(own, other, within, physicsClientId=self.client):
            pair = point[_LINK], point[_OTHER_LINK]
            depths[pair] = max(depths.get(pair, -within), -point[_DISTANCE])
        return depths

    def leave(self, world: "World", bodies: Iterable[int]) -> None:
        """Take a body of several out, with what belongs to it."""
        if not self.close.alive or world.body not in self.worlds:
            return
        del self.worlds[world.body]
        if not self.worlds:
            self.close()
            return
        for body in bodies:
            pybullet.removeBody(body, physicsClientId=self.client)
            # What takes its number does not touch anything: what may touch what is remembered by
            # numbers.
            pybullet.createMultiBody(0, -1, physicsClientId=self.client)


class World:
    """A floor, one character and what its scenario adds. Built anew for every simulation, which
    makes runs repeatable. Several that meet share an Engine, and what is in all their scenarios."""

    def __init__(
        self,
        character: Character,
        rate: float,
        leg_segments: Sequence[int],
        scenario: Scenario | None = None,
        sample_rate: float = 1.0,
        falling: bool = False,
        membership: "Membership | None" = None,
        may_fall: bool = False,
        sits: bool = False,
    ) -> None:
        """rate: steps per second [Hz]. leg_segments: indices of thigh, shin and foot of both legs.
        sample_rate: of the colliders' paths [Hz]. falling: the body is to fall, with all of it and
        hard; the physics then takes several steps in one. membership: of a body that meets others,
        None for one alone. may_fall: into colliders, which all of it meets then whatever the
        scenario says, but for what it begins in. sits: on the floor or a collider, now and
        then: pelvis and thighs meet these, and give as flesh does."""
        self.character = character
        self.rate = rate
        #: Whether the body is to fall, and, of one that does, whether it gets up, and whether it
        #: lies and hardly moves.
        self.falling, self.rising, self.calm = falling, False, False
        self.member, self.name = 0, ""
        if membership is None:
            self.engine = Engine(rate)
        else:
            self.engine, self.member, self.name = membership
        heavy = falling or self.engine.shared
        self._gyration = _FALLING_GYRATION if heavy else _INNER_GYRATION
        self._toe_armature = 0.0
        if heavy:
            mass, stature = _ADULT
            scale = character.mass / mass * (character.height / stature) ** 2
            self._toe_armature = scale * _TOE_ARMATURE
        self.scenario = scenario or Scenario()
        #: Whether what the body begins in is passed, and not refused.
        self._passes = may_fall and bool(self.scenario.colliders) and not self.scenario.whole_body
        if self._passes:
            self.scenario = replace(self.scenario, whole_body=True)
        self._whole = self.scenario.touches_body or self.engine.shared
        self._sits = sits
        self._client = self.engine.client
        self._keywords = {"physicsClientId": self._client}
        # Each of several has a floor of its own.
        self._ground = _LIMB << (1 + self.member) if self.engine.shared else _STATIC
        self._floor, self._below = self._make_floor(), (0.0, 0.0)
        self.body = self._make_body()
        self.engine.worlds[self.body] = self
        self._colliders = [self._shared("collider", c) for c in self.scenario.colliders]
        self._limbs = [self._shared("limb", limb) for limb in self.scenario.limbs]
        ways = (*self.scenario.colliders, *self.scenario.limbs)
        self._paths = {
            body: _Path(way, sample_rate, self._raised(way))
            for body, way in zip((*self._colliders, *self._limbs), ways, strict=True)
            if way.moves
        }
        self._things = [self._shared("thing", thing) for thing in self.scenario.things]
        self._launched: set[int] = set()  # numbers in the scenario of the things that have started
        self._detected = False
        #: Body of a thing or collider: links that it still overlaps since its start.
        self._parting: dict[int, set[int]] = {}
        self.links = {0: -1, **{j.segment: _segment_link(j) for j in character.joints}}
        #: The segment that each of these links carries.
        self.carried = {link: segment for segment, link in self.links.items()}
        self._leg_links = [self.links[segment] for segment in leg_segments]
        #: Left and right foot, left and right toes: in what belongs to a foot by its number, those
        #: of toes are 2 higher.
        self.foot_links = [self.links[segment] for segment in FEET + TOES]
        self._seat_links = [self.links[SEGMENT_INDEX[segment]] for segment in _SEAT] if sits else []
        #: What bears it where it sits, over a while.
        self._seat = _NO_SEAT
        self._grips = [1.0, 1.0]  # as `grip` takes them
        self._dofs = list(range(character.dofs))
        self._segment_links = [self.links[i] for i in range(1, len(SEGMENTS))]
        self._rest = [0.0] * (6 + character.dofs)
        self._torque_mode = pybullet.TORQUE_CONTROL
        # All that will ever hold, without force: the engine's order of them is always the same. Of
        # what a character is held by, none knows beforehand.
        self._holds = [
            None if hold.to_character else self._make_hold(hold, self._holder(hold), -1)
            for hold in self.scenario.holds
        ]
        self._held = [Held()] * len(self._holds)

    def close(self) -> None:
        """Free the engine's memory. Safe to call twice."""
        if self.engine.shared:
            if self.engine.close.alive:
                for number in range(len(self._holds)):
                    self._drop_hold(number)
            self.engine.leave(self, (self.body, self._floor))
        else:
            self.engine.close()
        self._client = -1

    @property
    def _substeps(self) -> int:
        """Steps of the physics in one of the control."""
        return self.engine.substeps

    def segment_of(self, link: int) -> str:
        """Name of the segment that a link carries, in words."""
        return segment_name(SEGMENTS[self.carried[link]])

    def _shared(self, kind: str, one: Any) -> int:
        """Bullet's number of a thing, a collider or a limb, which is there once for all bodies that
        are in the engine."""
        scenery = self.engine.scenery
        key: tuple[str, tuple[Any, ...]]
        key = kind, (one.name, getattr(one, "part", ""))
        if isinstance(one, Throw):
            key = kind, (one.name, one.start, self.member)
        if self.engine.shared and key in scenery:
            return scenery[key]
        made = self._make_thing(one) if kind == "thing" else self._make_collider(one)
        scenery[key] = made
        return made

    def _change(self, body: int, link: int, **values: object) -> None:
        """Set dynamic properties one call each: PyBullet 3.2.8 ignores some that come together."""
        for name, value in values.items():
            pybullet.changeDynamics(body, link, **{name: value}, **self._keywords)

    def _make_floor(self) -> int:
        # A slab, not a plane: Bullet finds all corners of a box on a box at once, but of a box on
        # a plane one a step, and a foot would tip over its first corner.
        slab = pybullet.createCollisionShape(
            pybullet.GEOM_BOX, halfExtents=[_FLOOR_SIZE, _FLOOR_SIZE, 1], **self._keywords
        )
        floor = pybullet.createMultiBody(
            0, slab, basePosition=[0, 0, self.floor + _SLOP - 1], **self._keywords
        )
        # Bullet multiplies both bodies' restitution: here the thing alone decides how it bounces.
        self._change(floor, -1, lateralFriction=FRICTION, restitution=1.0)
        self._group(floor, -1, _STATIC, self._ground)
        return floor

    @property
    def floor(self) -> float:
        """Height of the floor [m]."""
        floor = self.scenario.floor
        return float(self.character.ground if floor is None else floor)

    def _group(self, body: int, link: int, kind: int, group: int | None = None) -> None:
        """Say what a body or link of a kind may touch. group: of the floor, where each body has
        its own."""
        shared = self.engine.shared
        whole, meets = self.scenario.whole_body, self.scenario.self_collision or shared
        floors, grounds = (_FLOORS, _STATIC | self._ground) if shared else (0, _STATIC)
        masks = {
            _STATIC: _RAYS | _FOOT | _THING | (_BODY if whole or shared else 0),
            _FOOT: grounds | _THING | _LIMB | (_FOOT | _BODY if meets else 0),
            _BODY: _THING | _LIMB | (grounds if whole else 0) | (_FOOT | _BODY if meets else 0),
            _THING: _STATIC | floors | _FOOT | _BODY | _THING | _LIMB,
            _LIMB: _FOOT | _BODY | _THING,
        }
        pybullet.setCollisionFilterGroupMask(
            body, link, kind if group is None else group, masks[kind], **self._keywords
        )

    def _make_solid(self, solid: Solid) -> int:
        """Bullet's number of a collision shape."""
        if solid.kind == "sphere":
            values = {"shapeType": pybullet.GEOM_SPHERE, "radius": solid.size[0]}
        elif solid.kind == "box":
            values = {"shapeType": pybullet.GEOM_BOX, "halfExtents": list(solid.size)}
        elif solid.kind == "capsule":
            radius, length = solid.size
            values = {"shapeType": pybullet.GEOM_CAPSULE, "radius": radius, "height": length}
        else:
            values = {
                "shapeType": pybullet.GEOM_MESH,
                "vertices": np.asarray(solid.vertices, float).tolist(),
            }
            if solid.kind == "mesh":
                values["indices"] = np.asarray(solid.faces, int).ravel().tolist()
                values["flags"] = pybullet.GEOM_FORCE_CONCAVE_TRIMESH
        number = pybullet.createCollisionShape(**values, **self._keywords)
        if number < 0:
            raise SettingsError("PyBullet cannot take the shape of an object: simplify it.")
        return number

    def _raised(self, collider: Collider) -> float:
        """How much higher [m] a collider is than it is called."""
        if isinstance(collider, Limb):
            return 0.0
        over = collider.top - self.floor
        return _SLOP + (_OVER_FLOOR - over if -_FLUSH <= over < _OVER_FLOOR else 0.0)

    def _make_collider(self, collider: Collider) -> int:
        position = np.asarray(collider.positions, float)
        rotation = np.asarray(collider.rotations, float)
        if collider.moves:
            position, rotation = position[0], rotation[0]
        body = pybullet.createMultiBody(
            _HEAVY if collider.moves else 0,
            self._make_solid(collider.solid),
            basePosition=(position + [0.0, 0.0, self._raised(collider)]).tolist(),
            baseOrientation=_bullet(rotation),
            **self._keywords,
        )
        self._change(body, -1, lateralFriction=collider.friction, restitution=1.0)
        self._change(body, -1, linearDamping=0.0, angularDamping=0.0)
        self._group(body, -1, _STATIC)
        if isinstance(collider, Limb):
            self._group(body, -1, _LIMB)
            self._soften(body, -1, FLESH)
        return body

    def _soften(self, body: int, link: int, flesh: tuple[float, float]) -> None:
        """Have a link of a body give with a stiffness [N/m] and a damping [N s/m]."""
        stiffness, damping = flesh
        pybullet.changeDynamics(
            body, link, contactStiffness=stiffness, contactDamping=damping, **self._keywords
        )

    def advance(self, time: float) -> None:
        """Let the scenario happen in the step that begins at `time` [s]: pushes, things that
        start, colliders that move. Raises SettingsError for what starts inside of the body."""
        scenario = self.scenario
        if time == 0:
            self._check_start()
        for push in scenario.pushes:
            # By the part of the step in which it acts: the impulse is the same at any rate.
            begin = max(time, push.start)
            acts = min(time + 1 / self.rate, push.start + push.duration) - begin
            if acts > 1e-9:
                force = push.force_at(begin + acts / 2) * (acts * self.rate)
                self.push(push.segment, force, push.point)
        for number, thing in enumerate(scenario.things):
            if number not in self._launched and time >= thing.start:
                self._launch(number, thing)
        if self._parting:
            self._part()
            self._float()
        for body, path in self._paths.items():
            self._move(body, path, time)
        for number, hold in enumerate(scenario.holds):
            self._hold_on(number, hold, time)

    # --- Holds ------------------------------------------------------------------------------------

    def _make_hold(self, hold: Hold, holder: int, link: int) -> int:
        """Bullet's number of a constraint that holds a point of a segment to a link of a body, with
        no force yet."""
        index = SEGMENT_INDEX[hold.segment]
        number = pybullet.createConstraint(
            self.body,
            self.links[index],
            holder,
            link,
            pybullet.JOINT_POINT2POINT,
            [0, 0, 0],
            (hold.grip(self.character) - self.character.centres[index]).tolist(),
            [0, 0, 0],
            **self._keywords,
        )
        pybullet.changeConstraint(number, maxForce=0.0, **self._keywords)
        # What the engine calls solved without holds is off by a tenth of a millimetre with them.
        pybullet.setPhysicsEngineParameter(
            solverResidualThreshold=0.0, erp=_RECOVERED, **self._keywords
        )
        return int(number)

    def _holder(self, hold: Hold) -> int:
        """The body that a hold is to, -1 for the world."""
        if not hold.to:
            return -1
        if hold.to_character:
            return self.engine.body_of(hold.to).body
        pairs = (
            *zip(self.scenario.colliders, self._colliders, strict=True),
            *zip(self.scenario.things, self._things, strict=True),
        )
        return next(body for one, body in pairs if one.name == hold.to)

    def _hold_on(self, number: int, hold: Hold, time: float) -> None:
        """Begin a hold, end it, or go on with it, in the step that begins at `time` [s]."""
        now = self._held[number]
        if not (now.holds or now.over) and time > hold.start - _ON_TIME:
            now = self._begin_hold(hold)
        if now.holds and (time > hold.end - _ON_TIME or now.strain > hold.breaking):
            now = Held(over=True, broken=now.strain > hold.breaking)
        elif now.holds:
            size = hypot(*now.missing)
            left = max(0.0, 1 - _REACHING / self.rate / size) if size else 0.0
            now = now._replace(missing=tuple(left * part for part in now.missing))
        self._hold_as(number, now)

    def _begin_hold(self, hold: Hold) -> Held:
        """A hold that begins where the limb is."""
        place = np.array(self._held_point(hold))
        body, held = self._holder(hold), -1
        link = self.links[SEGMENT_INDEX[hold.segment]]
        if hold.to_character:
            near = pybullet.getClosestPoints(
                self.body, body, _WITHIN, linkIndexA=link, physicsClientId=self._client
            )
            if not near:  # nothing to hold on to
                return Held(over=True)
            held = min((point[_DISTANCE], point[_OTHER_LINK]) for point in near)[1]
        if body >= 0:
            centre, frame = self._frame_of(body, held)
            place = frame.T @ (place - centre)
        # What grips something does not bounce off it.
        if hold.to_character:
            self.engine.let_pass((self.body, link, body, held))
        elif body >= 0:
            self._pass(body, self._parting.get(body, set()) | {link})
        target = place if hold.target is None else np.array(hold.target)
        missing = tuple((target - place).tolist())
        return Held(True, place=tuple(target.tolist()), missing=missing, link=held)

    def _frame_of(self, body: int, link: int) -> tuple[np.ndarray, np.ndarray]:
        """Centre of mass (3,) [m] and frame (3, 3) of a link of any body."""
        if link < 0:
            centre, turn = pybullet.getBasePositionAndOrientation(body, self._client)
        else:
            state = pybullet.getLinkState(body, link, 0, 1, self._client)
            centre, turn = state[_CENTRE], state[1]
        return np.array(centre), matrix_from_quaternion(np.array(turn)[_W_FIRST])

    def gripped(self) -> Iterable[tuple[int, int, int, int]]:
        """(body, link, body, link) of each hold to another character that holds now."""
        for hold, now in zip(self.scenario.holds, self._held, strict=True):
            if hold.to_character and now.holds:
                link = self.links[SEGMENT_INDEX[hold.segment]]
                yield self.body, link, self._holder(hold), now.link

    def _drop_hold(self, number: int) -> None:
        """Have the engine forget a hold to another character."""
        made = self._holds[number]
        if made is not None and self.scenario.holds[number].to_character:
            pybullet.removeConstraint(made, **self._keywords)
            self._holds[number] = None

    def _grip_anew(self, before: "World") -> None:
        """Go on holding whoever was held in another world."""
        for number, (hold, now) in enumerate(zip(self.scenario.holds, self._held, strict=True)):
            if hold.to_character and hold.to == before.name and now.holds:
                self._drop_hold(number)
                self._hold_as(number, now)

    def _hold_as(self, number: int, now: Held) -> None:
        """Have the engine hold as that says."""
        before, self._held[number] = self._held[number], now
        hold = self.scenario.holds[number]
        if now.holds and self._holds[number] is None:
            self._holds[number] = self._make_hold(hold, self._holder(hold), now.link)
        if now.holds:
            pivot = [a - b for a, b in zip(now.place, now.missing, strict=True)]
            pybullet.changeConstraint(
                self._holds[number], pivot, maxForce=_FIRM, physicsClientId=self._client
            )
        elif before.holds:
            pybullet.changeConstraint(self._holds[number], maxForce=0.0, **self._keywords)

    def _feel_holds(self) -> None:
        """See with what force each hold has pulled in the last step."""
        share = min(1.0, 1 / self.rate / _HOLD_TIME)
        for number, now in enumerate(self._held):
            if now.holds:
                # What the engine tells is how the body pulls.
                state = pybullet.getConstraintState(self._holds[number], self._client)
                pull = tuple(-part for part in state[:3])
                force = tuple(f + share * (p - f) for f, p in zip(now.force, pull, strict=True))
                self._held[number] = now._replace(pull=pull, force=force)

    def _held_point(self, hold: Hold) -> list[float]:
        """Where in the world [m] the point of the body is that a hold holds."""
        index = SEGMENT_INDEX[hold.segment]
        state = pybullet.getLinkState(self.body, self.links[index], 0, 1, self._client)
        turn = matrix_from_quaternion(np.array(state[_TURN])[_W_FIRST])
        return (np.array(state[_ORIGIN]) + turn @ hold.grip(self.character)).tolist()

    @property
    def held(self) -> list[Held]:
        """How each hold of the scenario is now."""
        return self._held

    def gaps(self) -> list[float]:
        """How far [m] each held point is from where it is to be held; NaN where nothing holds."""
        gaps = []
        for hold, now in zip(self.scenario.holds, self._held, strict=True):
            gaps.append(np.nan)
            if now.holds:
                place, body = np.subtract(now.place, now.missing), self._holder(hold)
                if body >= 0:
                    centre, frame = self._frame_of(body, now.link)
                    place = frame @ place + centre
                gaps[-1] = float(np.linalg.norm(place - self._held_point(hold)))
        return gaps

    def pulls(self) -> list[Pull]:
        """Each hold that holds now, each limb by which another character is held to it, and what it
        sits on."""
        own = [
            Pull(hold.top, self._held_point(hold), now.force)
            for hold, now in zip(self.scenario.holds, self._held, strict=True)
            if now.holds
        ]
        seat = [self._seat] if self._seat.force[2] > _CARRIES else []
        return own + [pull for _, pull in self._held_by_others()] + seat

    def _held_by_others(self) -> Iterable[tuple[str, Pull]]:
        """The segment of a limb that another character holds on to, and the Pull of that."""
        for other in self.engine.worlds.values() if self.engine.shared else ():
            for hold, now in zip(other.scenario.holds, other.held, strict=True):
                if hold.to_character and hold.to == self.name and now.holds:
                    segment = SEGMENTS[self.carried[now.link]]
                    top = _TOPS.get(segment.rpartition("_")[0])
                    if top is not None:
                        force = tuple(-part for part in now.force)
                        name = top + segment[-2:]
                        yield segment, Pull(name, other._held_point(hold), force)

    def held_jacobians(self) -> list[np.ndarray]:
        """(3, dofs) of each point that is held now: by how much it moves [m] in the world as the
        joints turn [rad]."""
        held = [
            (hold.segment, self._held_point(hold))
            for hold, now in zip(self.scenario.holds, self._held, strict=True)
            if now.holds
        ]
        held += [(segment, [*pull.place]) for segment, pull in self._held_by_others()]
        found = []
        for segment, place in held:
            jacobian, point = np.zeros((3, len(self._dofs))), np.array(place)
            for joint in self._joints_to(segment):
                links = [joint.first + i for i in range(len(joint.axes))]
                states = pybullet.getLinkStates(self.body, links, 0, 1, self._client)
                for link, axis, state in zip(links, joint.axes, states, strict=True):
                    frame = matrix_from_quaternion(np.array(state[_TURN])[_W_FIRST])
                    jacobian[:, link] = np.cross(frame[:, axis], point - state[_ORIGIN])
            found.append(jacobian)
        # No joint turns the pelvis.
        return found + [np.zeros((3, len(self._dofs)))] * (len(self.pulls()) - len(found))

    def _joints_to(self, segment: str) -> list[Joint]:
        """The joints between the pelvis and a segment."""
        joints = {joint.segment: joint for joint in self.character.joints}
        found, index = [], SEGMENT_INDEX[segment]
        while index:
            found.append(joints[index])
            index = joints[index].parent
        return found

    def push(self, segment: str, force: np.ndarray, point: Sequence[float] | None = None) -> None:
        """A force (3,) [N] on a segment during the next step, at a point (3,) in the segment's
        frame [m], None for its centre of mass."""
        index = SEGMENT_INDEX[segment]
        link = self.links[index]
        if link < 0:
            centre, turn = pybullet.getBasePositionAndOrientation(self.body, self._client)
        else:
            state = pybullet.getLinkState(self.body, link, 0, 1, self._client)
            centre, turn = state[_CENTRE], state[_TURN]
        if point is not None:
            arm = np.asarray(point) - self.character.centres[index]
            centre = centre + matrix_from_quaternion(np.array(turn)[_W_FIRST]) @ arm
        self._push_link(link, np.asarray(force, float).tolist(), list(centre))

    def hold(self, wrench: np.ndarray, foot_turns: Sequence[float] = (0.0, 0.0)) -> None:
        """Help from outside during the next step: force [N] and torque [N m] (6,) on the pelvis,
        at its centre of mass, in the world, and torques [N m] about the vertical on either foot."""
        centre, _ = pybullet.getBasePositionAndOrientation(self.body, self._client)
        force, torque = wrench[:3].tolist(), wrench[3:].tolist()
        frame = pybullet.WORLD_FRAME
        pybullet.applyExternalForce(self.body, -1, force, centre, frame, self._client)
        pybullet.applyExternalTorque(self.body, -1, torque, frame, self._client)
        for foot, turn in enumerate(foot_turns):
            if turn:
                link = self.foot_links[foot]
                pybullet.applyExternalTorque(self.body, link, [0, 0, turn], frame, self._client)

    def _make_thing(self, thing: Thing | Throw) -> int:
        """Bullet's number of a thing that has not started: it falls freely, far below the floor. A
        state of the engine can be restored only with the bodies that it was saved with."""
        waiting = sum(kind == "thing" for kind, _ in self.engine.scenery)
        below = self.floor - _WAITING * (waiting + 1)
        body = pybullet.createMultiBody(
            thing.mass,
            self._make_solid(thing.solid),
            basePosition=[0, 0, below],
            **self._keywords,
        )
        self._change(body, -1, linearDamping=0.0, angularDamping=0.0)
        self._change(body, -1, lateralFriction=thing.friction, restitution=thing.restitution)
        vertices, faces = thing.solid.vertices, thing.solid.faces
        if vertices is not None and faces is not None:  # Bullet's guess is its bounding box's
            _, _, inertia = mass_properties(vertices, faces)
            moments = (thing.mass * np.diag(inertia)).tolist()
            self._change(body, -1, localInertiaDiagonal=moments)
        self._group(body, -1, _THING)
        return body

    def _launch(self, number: int, thing: Thing | Throw) -> None:
        """Let a thing start; a thrown one aims at the neck as it is now."""
        link = self.links[SEGMENT_INDEX["head"]]
        state = pybullet.getLinkState(self.body, link, 0, 1, self._client)
        thing, body = thing.launched(state[_ORIGIN]), self._things[number]
        if body not in self.engine.started or not self.engine.shared:
            position, rotation = list(thing.position), _bullet(thing.rotation)
            pybullet.resetBasePositionAndOrientation(body, position, rotation, self._client)
            speeds = list(thing.velocity), list(thing.spin)
            pybullet.resetBaseVelocity(body, *speeds, **self._keywords)
        self.engine.started.add(body)
        self._launched.add(number)
        self._let_go(f"The thing '{thing.name}'", body)

    def _let_go(self, what: str, body: int) -> None:
        """Let a thing that starts in a hand, say, pass what it overlaps until it has left that."""
        depths = self._depths(body)
        self._demand_outside(what, depths)
        self._pass(body, depths.keys())

    def _pass(self, body: int, links: Collection[int]) -> None:
        """Let a thing or collider pass links of the body until it has left them."""
        for link in links:
            pybullet.setCollisionFilterPair(self.body, body, link, -1, 0, **self._keywords)
        if links:
            self._parting[body] = set(links)

    def _part(self) -> None:
        """Let them meet the parts of the body that they have left."""
        gripping = {
            (self._holder(hold), self.links[SEGMENT_INDEX[hold.segment]])
            for hold, now in zip(self.scenario.holds, self._held, strict=True)
            if now.holds and not hold.to_character
        }
        for body, links in list(self._parting.items()):
            left = links - self._depths(body, _APART).keys()
            left = {link for link in left if (body, link) not in gripping}
            for link in left:
                pybullet.setCollisionFilterPair(self.body, body, link, -1, 1, **self._keywords)
            links -= left
            if not links:
                del self._parting[body]

    def _float(self) -> None:
        """Lift limbs out of the floor that were in it as the body began to fall."""
        if self._floor not in self._parting:
            return
        deepest: dict[int, tuple[float, Sequence[float]]] = {}
        for point in pybullet.getClosestPoints(self.body, self._floor, 0.0, **self._keywords):
            link, found = point[_LINK], (-point[_DISTANCE], point[_ON_BODY])
            deepest[link] = max(deepest.get(link, found), found)
        for link in sorted(self._parting[self._floor] & deepest.keys()):
            depth, place = deepest[link]
            rises = pybullet.getLinkState(self.body, link, 1, 1, self._client)[_VELOCITY][2]
            lift = GRAVITY + _LIFT * depth - _LIFT_DAMPING * rises
            mass = self.character.masses[self.carried[link]]
            self._push_link(link, [0.0, 0.0, float(mass * max(lift, 0.0))], place)

    def _push_link(self, link: int, force: list[float], place: Sequence[float]) -> None:
        frame = pybullet.WORLD_FRAME
        pybullet.applyExternalForce(self.body, link, force, list(place), frame, self._client)

    def _check_start(self) -> None:
        """Raise SettingsError if the body begins inside of what it can touch. Of another body's
        limbs, which may hold it, it passes those that it overlaps a little."""
        whole = self.scenario.whole_body and not self._passes
        touching = set(self.links.values() if whole else self.foot_links) - set(self._seat_links)
        for collider, body in zip(self.scenario.colliders, self._colliders, strict=True):
            depths = self._depths(body)
            if self._passes:
                self._pass(body, depths.keys() - set(self.foot_links) - set(self._seat_links))
            depths = {link: depths[link] for link in touching if link in depths}
            self._demand_outside(f"The collider '{collider.name}'", depths)
        for limb, body in zip(self.scenario.limbs, self._limbs, strict=True):
            self._let_go(f"The {limb.part} of '{limb.name}'", body)

    def _depths(self, body: int, within: float = 0.0) -> dict[int, float]:
        """{link: how deep [m] another body reaches into it} of all links that it overlaps, or is
        as close to as `within` [m]."""
        depths: dict[int, float] = {}
        for point in pybullet.getClosestPoints(self.body, body, within, **self._keywords):
            link = point[_LINK]
            depths[link] = max(depths.get(link, 0.0), -point[_DISTANCE])
        return depths

    def _demand_outside(self, what: str, depths: dict[int, float]) -> None:
        """Raise SettingsError if something is deep inside of the body."""
        foot = self.character.feet[0]
        thick = [foot.depth / 2] * 2 + [foot.thickness] * 2
        most = {
            link: min(_DEEP, _SWALLOWED * own)
            for link, own in zip(self.foot_links, thick, strict=True)
        }
        deep = {link: depth for link, depth in depths.items() if depth > most.get(link, _DEEP)}
        if deep:
            link = max(deep, key=deep.__getitem__)
            segment = next(SEGMENTS[index] for index, own in self.links.items() if own == link)
            raise SettingsError(
                f"{what} is at least {100 * deep[link]:.0f} cm inside of the character's {segment} "
                "at its start: move it out of there."
            )

    def _move(self, body: int, path: _Path, time: float) -> None:
        """Put a collider where its path has it at `time` [s], with the path's velocity."""
        position, rotation, velocity, spin = path.at(time)
        pybullet.resetBasePositionAndOrientation(body, position, rotation, self._client)
        # Gravity would pull it down in the step: so much upwards beforehand, in the mean of all.
        substeps = self.engine.next_substeps
        velocity[2] += GRAVITY / self.rate * (substeps + 1) / (2 * substeps)
        pybullet.resetBaseVelocity(body, velocity, spin, self._client)

    def supports(self, ankles: Sequence[Sequence[float]]) -> list[Ground]:
        """sole.Ground under the left and the right foot: the collider within the clearance of a
        standing foot that is highest under its ankle (3,) [m], else the floor."""
        grounds = [Ground(x, y, self.floor) for x, y, _ in ankles]
        for number, link in enumerate(self.foot_links):
            foot = number % 2
            x, y, _ = ankles[foot]
            for collider in self._colliders:
                points = pybullet.getClosestPoints(
                    self.body, collider, SIMULATED_CLEARANCE, link, **self._keywords
                )
                for point in points:
                    (nx, ny, nz), (px, py, pz) = point[_NORMAL], point[_ON_OTHER]
                    if nz < STEEPEST:
                        continue
                    plane = Ground(px, py, pz, -nx / nz, -ny / nz)
                    ground = plane._replace(x=x, y=y, height=plane.at(x, y))
                    grounds[foot] = max(grounds[foot], ground, key=lambda g: g.height)
        return grounds

    @property
    def has_colliders(self) -> bool:
        """Whether there is more to stand on than the floor."""
        return bool(self._colliders)

    def things(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions (T, 3) [m] and orientations (T, 4), w first, of all things; NaN for those that
        have not started."""
        count = len(self.scenario.things)
        positions, turns = np.full((count, 3), np.nan), np.full((count, 4), np.nan)
        for number in self._launched:
            body = self._things[number]
            position, turn = pybullet.getBasePositionAndOrientation(body, self._client)
            positions[number], turns[number] = position, np.array(turn)[_W_FIRST]
        return positions, turns

    def _make_body(self) -> int:
        character = self.character
        inner = _INNER_MASS * character.mass
        links: dict[str, list[Any]] = {
            "linkMasses": [],
            "linkCollisionShapeIndices": [],
            "linkPositions": [],
            "linkOrientations": [],
            "linkInertialFramePositions": [],
            "linkParentIndices": [],
            "linkJointAxis": [],
        }
        inertias = []
        shapes = {shape.segment: shape for shape in character.shapes}
        numbers = {0: 0}  # Bullet counts a link's parent from 1, the base is 0
        for joint in character.joints:
            segment = SEGMENTS[joint.segment]
            offset = joint.offset - (character.centres[0] if joint.parent == 0 else 0)
            parent = numbers[joint.parent]
            turn = _bullet(quaternion_from_matrix(joint.basis))
            for i, axis in enumerate(joint.axes):
                last = i == len(joint.axes) - 1
                own = character.masses[joint.segment] - inner * (len(joint.axes) - 1)
                moments = character.inertias[joint.segment]
                if joint.segment in TOES:
                    moments = moments + self._toe_armature
                collision = -1
                meets = joint.segment in FEET + TOES or (self._sits and segment in _SEAT)
                if last and (meets or self._whole):
                    collision = self._make_shape(shapes[segment], character.centres[joint.segment])
                links["linkMasses"].append(own if last else inner)
                links["linkCollisionShapeIndices"].append(collision)
                links["linkPositions"].append(offset if i == 0 else [0, 0, 0])
                links["linkOrientations"].append(turn if i == 0 else [0, 0, 0, 1])
                links["linkInertialFramePositions"].append(
                    character.centres[joint.segment] if last else [0, 0, 0]
                )
                links["linkParentIndices"].append(parent)
                links["linkJointAxis"].append(_AXES[axis])
                inertias.append(moments if last else [inner * self._gyration**2] * 3)
                parent = joint.first + i + 1
            numbers[joint.segment] = parent
        count = len(inertias)
        base = -1
        if self._whole or self._sits:
            base = self._make_shape(shapes["pelvis"], np.zeros(3))
        # Else Bullet numbers links depth first, and the toes come behind their foot.
        flags = pybullet.URDF_MAINTAIN_LINK_ORDER
        if self.scenario.self_collision:
            flags |= pybullet.URDF_USE_SELF_COLLISION
        body = pybullet.createMultiBody(
            baseMass=character.masses[0],
            baseCollisionShapeIndex=base,
            basePosition=[0, 0, 1],
            flags=flags,
            linkVisualShapeIndices=[-1] * count,
            linkInertialFrameOrientations=[[0, 0, 0, 1]] * count,
            linkJointTypes=[pybullet.JOINT_REVOLUTE] * count,
            **links,
            **self._keywords,
        )
        change = self._change
        change(body, -1, linearDamping=0.0, angularDamping=0.0, maxJointVelocity=1e4)
        change(body, -1, localInertiaDiagonal=character.inertias[0].tolist())
        for link, (moments, limits) in enumerate(zip(inertias, character.limits, strict=True)):
            change(body, link, localInertiaDiagonal=list(map(float, moments)))
            if np.isfinite(limits).all():
                pybullet.changeDynamics(
                    body,
                    link,
                    jointLowerLimit=limits[0],
                    jointUpperLimit=limits[1],
                    **self._keywords,
                )
        for index, number in numbers.items():
            foot, seat = index in FEET + TOES, self._sits and SEGMENTS[index] in _SEAT
            self._group(body, number - 1, _FOOT if foot or seat else _BODY)
            if foot or seat or self._whole:
                change(body, number - 1, lateralFriction=FRICTION)
            if seat:
                self._soften(body, number - 1, _SEAT_FLESH)
        # Bullet's joints brake on their own unless told not to.
        pybullet.setJointMotorControlArray(
            body,
            list(range(count)),
            pybullet.VELOCITY_CONTROL,
            forces=[0.0] * count,
            **self._keywords,
        )
        return body

    def _make_shape(self, shape: Shape, centre: np.ndarray) -> int:
        """Bullet's number of a segment's shape. centre: (3,) centre of mass in the link's frame."""
        place = {
            "collisionFramePosition": np.add(shape.position, centre),
            "collisionFrameOrientation": _bullet(shape.rotation),
        }
        if shape.kind == "box":
            solid = {"shapeType": pybullet.GEOM_BOX, "halfExtents": shape.size}
        elif shape.kind == "sphere":
            solid = {"shapeType": pybullet.GEOM_SPHERE, "radius": shape.size[0]}
        else:
            radius, length = shape.size
            solid = {"shapeType": pybullet.GEOM_CAPSULE, "radius": radius, "height": length}
        return pybullet.createCollisionShape(**solid, **place, **self._keywords)

    def reset(
        self,
        root: np.ndarray,
        frame: np.ndarray,
        linear: np.ndarray,
        angular: np.ndarray,
        angles: np.ndarray,
        speeds: np.ndarray,
    ) -> None:
        """Put the body in a pose: pelvis joint position (3,), frame (3, 3), velocities of the
        pelvis joint point, joint angles and speeds."""
        self.grip([1.0, 1.0])
        arm = frame @ self.character.centres[0]
        quaternion = _bullet(quaternion_from_matrix(frame))
        joints = np.stack([angles, speeds], 1)
        self._place((root + arm, quaternion), (linear + np.cross(angular, arm), angular), joints)

    def bend(self, dofs: Sequence[int], angles: Sequence[float]) -> None:
        """Have some joints at other angles [rad], at rest."""
        for dof, angle in zip(dofs, angles, strict=True):
            pybullet.resetJointState(self.body, dof, angle, 0.0, **self._keywords)

    def follow(self, before: "World") -> None:
        """Go on where another world of the same scene and body is, with what moves in it."""
        self._place(*before.placing())
        self._launched = set(before._launched)
        for own, other in zip(self._things, before._things, strict=True):
            place = pybullet.getBasePositionAndOrientation(other, before._client)
            speeds = pybullet.getBaseVelocity(other, before._client)
            pybullet.resetBasePositionAndOrientation(own, *place, **self._keywords)
            pybullet.resetBaseVelocity(own, *speeds, **self._keywords)
            self._pass(own, self._depths(own).keys())
        # Where feet alone met them, the rest of the body may be in the middle of one.
        others = (*before._colliders, *before._limbs)
        for body, other in zip((*self._colliders, *self._limbs), others, strict=True):
            if body in self._paths:
                place = pybullet.getBasePositionAndOrientation(other, before._client)
                pybullet.resetBasePositionAndOrientation(body, *place, **self._keywords)
            depths = self._depths(body)
            deep = {link for link, depth in depths.items() if depth > _INSIDE}
            self._pass(body, deep - set(self._seat_links))
        if self.falling:  # so may a hand that was not to touch the floor, in that
            depths = self._depths(self._floor)
            deep = {link for link, depth in depths.items() if depth > _INSIDE}
            self._pass(self._floor, deep - {*self.foot_links})
        for number, (hold, now) in enumerate(zip(self.scenario.holds, before._held, strict=True)):
            if now.holds and hold.to and not hold.to_character:
                holder, link = self._holder(hold), self.links[SEGMENT_INDEX[hold.segment]]
                self._pass(holder, self._parting.get(holder, set()) | {link})
            self._hold_as(number, now)
        if self.engine.shared:
            self.engine.meet(self)
            for pair in self.gripped():
                self.engine.let_pass(pair)
            for partner in [*self.engine.worlds.values()]:
                if partner.member != self.member:
                    partner._grip_anew(before)

    def placing(self) -> tuple[Sequence[Any], Sequence[Any], list[Any]]:
        """How the body is now, without what else is in the world, for `put_back`."""
        place = pybullet.getBasePositionAndOrientation(self.body, self._client)
        speeds = pybullet.getBaseVelocity(self.body, self._client)
        joints = pybullet.getJointStates(self.body, self._dofs, self._client)
        return place, speeds, [joint[:2] for joint in joints]

    def put_back(self, placing: tuple[Sequence[Any], Sequence[Any], list[Any]]) -> None:
        """Have the body as it was, while all else in the world stays as it is."""
        self._place(*placing)

    def _place(self, place: Sequence[Any], speeds: Sequence[Any], joints: Iterable[Any]) -> None:
        """Put the body at a place (position (3,) of the pelvis' centre of mass, Bullet's
        quaternion) with speeds (linear (3,), angular (3,)) and (angle, speed) of each joint."""
        self._bring_floor(place[0])
        pybullet.resetBasePositionAndOrientation(self.body, *place, **self._keywords)
        pybullet.resetBaseVelocity(self.body, *speeds, **self._keywords)
        for link, (angle, speed) in enumerate(joints):
            pybullet.resetJointState(self.body, link, angle, speed, **self._keywords)
        if self.scenario.self_collision:
            self._allow_overlaps()

    def _bring_floor(self, root: np.ndarray) -> None:
        below = tuple(_FLOOR_STEP * np.round(np.asarray(root[:2]) / _FLOOR_STEP))
        if below == self._below:
            return
        self._below = below
        place = [*below, self.floor + _SLOP - 1]
        pybullet.resetBasePositionAndOrientation(self._floor, place, [0, 0, 0, 1], **self._keywords)

    def _allow_overlaps(self) -> None:
        """Let neighbours and parts that overlap in this pose do so: they belong together."""
        links = list(self.links.values())
        pairs = {(links[j.segment], links[j.parent]) for j in self.character.joints}
        pybullet.performCollisionDetection(**self._keywords)
        for point in pybullet.getContactPoints(self.body, self.body, **self._keywords):
            pairs.add((point[_LINK], point[_OTHER_LINK]))
        for one, other in pairs:
            pybullet.setCollisionFilterPair(self.body, self.body, one, other, 0, **self._keywords)

    def state(self, legs: bool = True) -> State:
        """The body's State now, with or without what only the balance needs of the legs."""
        client = self._client
        position, turn = pybullet.getBasePositionAndOrientation(self.body, client)
        linear, angular = pybullet.getBaseVelocity(self.body, client)
        joints = pybullet.getJointStates(self.body, self._dofs, client)
        transforms = [position + turn]
        if legs:  # the last 1: without it, links are where they were a step ago
            links = pybullet.getLinkStates(self.body, self._leg_links, 0, 1, client)
            transforms += [link[_ORIGIN] + link[_TURN] for link in links]
        angles, rates, _, _ = zip(*joints, strict=True)
        places = np.array(transforms)
        frames = columns_from_bullet(places[:, 3:])
        speeds = np.array(angular + linear + rates)
        return State(places[:, :3], frames, np.array(angles), speeds)

    def mass_matrix(self, angles: np.ndarray) -> np.ndarray:
        """Joint-space inertia (6 + dofs, 6 + dofs) at the last `state`: the root first, angular
        before linear, both in the pelvis frame at its centre of mass."""
        rows = pybullet.calculateMassMatrix(
            self.body, angles.tolist(), physicsClientId=self._client
        )
        size = len(rows)
        flat = np.fromiter(chain.from_iterable(rows), float, size * size)
        return flat.reshape(size, size)

    def bias(self, state: State, inertia: np.ndarray) -> np.ndarray:
        """Gravity and velocity-dependent forces (6 + dofs,), in the order of `mass_matrix`.

        Bullet turns gravity wrongly for a tilted root: it is asked at the identity orientation,
        and the difference, an apparent acceleration of the root, is added through the inertia.
        Its answer has the root's linear part first, unlike the mass matrix.
        """
        forces = np.array(
            pybullet.calculateInverseDynamics(
                self.body,
                _UPRIGHT + state.angles.tolist(),
                state.speeds.tolist(),
                self._rest,
                physicsClientId=self._client,
            )
        )
        forces[:6] = forces[_ANGULAR_FIRST]
        up = state.frame[2] * GRAVITY
        up[2] -= GRAVITY
        return forces + inertia[:, 3:6] @ up

    def apply(self, torques: np.ndarray) -> None:
        """Set the joint torques (dofs,) [N m] of the next step."""
        pybullet.setJointMotorControlArray(
            self.body,
            self._dofs,
            self._torque_mode,
            forces=torques.tolist(),
            physicsClientId=self._client,
        )

    def drive(self, dofs: Sequence[int], speeds: Sequence[float], torques: Sequence[float]) -> None:
        """Let Bullet's own motors bring joints to speeds [rad/s] with torques [N m] at most, during
        the next step and besides what `apply` has set."""
        pybullet.setJointMotorControlArray(
            self.body,
            dofs,
            pybullet.VELOCITY_CONTROL,
            targetVelocities=speeds,
            forces=torques,
            physicsClientId=self._client,
        )

    def grip(self, shares: Sequence[float]) -> None:
        """Let what is under either foot hold it by a share of its friction (2,), from now on. A
        foot that is held besides does not slide anyway: the two would only fight."""
        held = {
            hold.segment
            for hold, now in zip(self.scenario.holds, self._held, strict=True)
            if now.holds
        }
        for foot, share in enumerate(shares):
            if SEGMENTS[FEET[foot]] in held:
                share = 0.0
            if share == self._grips[foot]:
                continue
            self._grips[foot] = share
            for link in self.foot_links[foot::2]:
                self._change(self.body, link, lateralFriction=share * FRICTION)

    def step(self) -> None:
        """Advance by 1 / rate; where several bodies are in the engine, see what its step did."""
        if not self.engine.shared:
            self.engine.step()
        if self._holds:
            self._feel_holds()
        if self._seat_links and not self.falling:
            self._feel_seat()

    @property
    def meets_more(self) -> bool:
        """Whether more of the body than its feet meets floor and colliders."""
        return self.scenario.whole_body or self._sits

    def contacts(self) -> Contacts:
        """How the feet touch the floor and colliders now."""
        forces = [[0.0] * 3, [0.0] * 3]
        moments = [[0.0] * 3, [0.0] * 3]
        loads = [0.0, 0.0]
        touch = [False, False]
        drifts = [[0.0] * 2, [0.0] * 2]
        carrying = 0
        for point in self._points(self.foot_links):
            ground, foot = point[_OTHER_BODY], self.foot_links.index(point[_LINK]) % 2
            load = self._substeps * point[_ACROSS[0]]
            touch[foot] = True
            if ground in self._paths:
                drifts[foot] = self._drift(ground, point[_ON_OTHER])
            loads[foot] += load
            carrying += load > _CARRIES
            for i in range(3):
                moments[foot][i] += load * point[_ON_BODY][i]
            for i, part in enumerate(self._force(point)):
                forces[foot][i] += part
        cops = [
            [value / load for value in moment] if load > 0 else [np.nan] * 3
            for moment, load in zip(moments, loads, strict=True)
        ]
        return Contacts(touch, forces, cops, drifts, carrying)

    def _points(self, links: Collection[int]) -> Iterable[Sequence[Any]]:
        """What the engine tells of each point at which links touch the floor or a collider, in an
        order of its own: Bullet's depends on what was restored before."""
        for ground in (self._floor, *self._colliders):
            points = pybullet.getContactPoints(self.body, ground, physicsClientId=self._client)
            for point in sorted(points, key=lambda point: (point[_LINK], point[_ON_BODY])):
                if point[_LINK] in links:
                    yield point

    def _force(self, point: Sequence[Any]) -> list[float]:
        """(3,) [N] on the body at a point of contact."""
        # Bullet turns the normal, but not the friction, where it has the bodies the other way
        # round; its axes of friction are right-handed with its own normal.
        (ax, ay, _), (bx, by, _) = point[_ALONG[1]], point[_ALONG_TOO[1]]
        sign = 1.0 if (ax * by - ay * bx) * point[_NORMAL][2] > 0 else -1.0
        force = [0.0, 0.0, 0.0]
        for size, axis in (_ACROSS, _ALONG, _ALONG_TOO):
            share = self._substeps * point[size] * (1.0 if axis == _NORMAL else sign)
            for i in range(3):
                force[i] += share * point[axis][i]
        return force

    def _feel_seat(self) -> None:
        """See what bore the body in the last step where it sits."""
        force, moment, load = np.zeros(3), np.zeros(3), 0.0
        for point in self._points(self._seat_links):
            force += self._force(point)
            moment += point[_ACROSS[0]] * np.array(point[_ON_BODY])
            load += point[_ACROSS[0]]
        share = min(1.0, 1 / self.rate / _HOLD_TIME)
        before = np.array(self._seat.force)
        place = tuple((moment / load).tolist()) if load else self._seat.place
        self._seat = Pull("pelvis", place, tuple((before + share * (force - before)).tolist()))

    def touched(self) -> dict[int, float]:
        """{segment: how deep [m] it is in the floor, a collider or a limb} of all that touch
        one."""
        depths: dict[int, float] = {}
        for touch in self.touches():
            depths[touch.segment] = max(depths.get(touch.segment, touch.depth), touch.depth)
        return depths

    def touches(self) -> list[Touch]:
        """All points at which the body touches the floor, a collider or a limb."""
        segments = {link: segment for segment, link in self.links.items()}
        found = [
            Touch(
                segments[point[_LINK]],
                point[_ON_OTHER],
                tuple(self._substeps * point[_ACROSS[0]] * part for part in point[_NORMAL]),
                -point[_DISTANCE] - _SLOP,
            )
            for ground in (self._floor, *self._colliders, *self._limbs)
            for point in pybullet.getContactPoints(self.body, ground, **self._keywords)
        ]
        return sorted(found)

    def presses(self) -> np.ndarray:
        """(S, 6) force [N] across what touches with which floor and colliders press each segment
        but the feet now, and where [m]; 0 where nothing does."""
        found = np.zeros((len(SEGMENTS), 6))
        for touch in self.touches():
            if touch.segment not in FEET + TOES:
                force = np.array(touch.force)
                found[touch.segment, :3] += force
                found[touch.segment, 3:] += np.linalg.norm(force) * np.array(touch.place)
        loads = np.linalg.norm(found[:, :3], axis=1)
        pressed = loads > 0
        found[pressed, 3:] /= loads[pressed, None]
        return found

    def add_blows(self, blows: np.ndarray) -> None:
        """Add to (L, 7) what each limb, and each segment of every other body in the engine, in the
        order of Recording.blowers, has pressed the body with in the last step: the impulse
        [N s] (3,) across what touches; its size, and that times its place [m] (3,)."""
        others = [(body, number, _ONLY_PART) for number, body in enumerate(self._limbs)]
        if self.engine.touching:
            for body, other in self.engine.worlds.items():
                if other is not self:
                    rank = other.member - (other.member > self.member)
                    others.append((body, len(self._limbs) + rank * len(SEGMENTS), other.carried))
        for body, number, carried in others:
            for point in pybullet.getContactPoints(self.body, body, physicsClientId=self._client):
                load = point[_ACROSS[0]] * self._substeps / self.rate
                if load > 0:
                    blow = blows[number + carried[point[_OTHER_LINK]]]
                    blow[:3] += np.multiply(load, point[_NORMAL])
                    blow[3] += load
                    blow[4:] += np.multiply(load, point[_ON_OTHER])

    def height_at(self, x: float, y: float) -> float:
        """Height [m] of the floor, or of the highest collider, at a place."""
        above = pybullet.rayTestBatch(
            [[x, y, self.floor + _RAY]],
            [[x, y, self.floor - _RAY]],
            collisionFilterMask=_STATIC | self._ground,
            **self._keywords,
        )
        body, height = above[0][0], above[0][3][2]
        return float(height) - _SLOP if body >= 0 else self.floor

    def _drift(self, body: int, point: Sequence[float]) -> list[float]:
        """Horizontal velocity [x, y] [m/s] of a moving collider at a point [m]."""
        (vx, vy, _), (wx, wy, wz) = pybullet.getBaseVelocity(body, self._client)
        centre, _ = pybullet.getBasePositionAndOrientation(body, self._client)
        x, y, z = (a - b for a, b in zip(point, centre, strict=True))
        return [vx + wy * z - wz * y, vy + wz * x - wx * z]

    def body_transforms(self) -> tuple[np.ndarray, np.ndarray]:
        """Centres of mass (S, 3) [m] and orientations (S, 4), w first, of all segments."""
        position, orientation = pybullet.getBasePositionAndOrientation(self.body, self._client)
        links = pybullet.getLinkStates(self.body, self._segment_links, 0, 1, self._client)
        positions = np.array([position, *(link[_CENTRE] for link in links)])
        turns = np.array([orientation, *(link[_TURN] for link in links)])
        return positions, turns[:, _W_FIRST]

    def save(self) -> Saved:
        """A handle to the whole state, for `restore`, until `forget`."""
        if not self._detected:
            # Before its first step the engine has no contacts to save.
            pybullet.performCollisionDetection(**self._keywords)
            self._detected = True
        handle = pybullet.saveState(**self._keywords)
        parting = {body: set(links) for body, links in self._parting.items()}
        launched, grips = set(self._launched), list(self._grips)
        return Saved(handle, launched, parting, grips, list(self._held), self._seat)

    def restore(self, handle: Saved) -> None:
        """Return to a saved state."""
        number, launched, parting, grips, held, self._seat = handle
        pybullet.restoreState(number, **self._keywords)
        self.grip(grips)
        for hold, now in enumerate(held):
            self._hold_as(hold, now)
        self._launched = set(launched)
        for body in self._parting.keys() | parting.keys():
            before, after = self._parting.get(body, set()), parting.get(body, set())
            for link in before ^ after:
                passes = int(link in before)
                pybullet.setCollisionFilterPair(self.body, body, link, -1, passes, **self._keywords)
        self._parting = {body: set(links) for body, links in parting.items()}

    def forget(self, handle: Saved) -> None:
        """Free the memory of a saved state."""
        pybullet.removeState(handle.number, **self._keywords)


def version() -> str:
    """Version of PyBullet's package, which the module itself does not know."""
    return version_of("pybullet-arm64", "pybullet")


def version_of(*packages: str) -> str:
    """Version of the first of these packages that is installed, else "unknown"."""
    # Imported here: it takes a sixteenth of the time to import Poise.
    metadata = importlib.import_module("importlib.metadata")
    for name in packages:
        with contextlib.suppress(metadata.PackageNotFoundError):
            return str(metadata.version(name))
    return "unknown"

# SPDX-License-Identifier: GPL-3.0-or-later
"""What happens to the character: pushes, things that fly or fall, colliders, held regions.

Plain data in SI units and the world frame. Times are in seconds from the first sample of the
motion. SCA12, section 4, and `measures.md` define the random pushes and spheres.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from math import cos, pi, sin
from typing import Any, TypeVar

import numpy as np

from ..exceptions import SettingsError, demand
from ..geometry.motion import Motion
from ..geometry.skeleton import SEGMENTS
from ..geometry.solids import Collider, Limb, Solid, finite
from ..ranges import RANGES
from ..reference.commands import Command
from .holds import Hold

# The disturbances of SCA12, section 4, one second of quiet before the first besides.
PUSH_DURATION = 0.2  # [s]
PERIOD = 1.0  # [s] from one random push or sphere to the next
FIRST = 1.0  # [s] of quiet before the first one
SPHERE_DENSITY = 100.0  # [kg/m^3]
SPHERE_SPEED = 5.0  # [m/s]
SPHERE_DISTANCE = 3.0  # [m] from the neck
SPHERE_HEIGHT = 1.5  # [m] above the neck
#: Change of speed [m/s] in a frontal crash at 56 km/h, the fastest that belted dummies are tested
#: in: 49 CFR 571.208 (FMVSS 208), S5.1.
MOST_SPEED = 15.6

_Made = TypeVar("_Made")

#: Set apart from the streams of the motor noise, which take the same seeds.
_STREAM = 0x50757368


@dataclass(frozen=True)
class Push:
    """A force on one segment.

    start, duration [s]; force: (3,) [N] in the world, or (n, 3) spread evenly over the duration
    and linear in between; segment: name; point: (3,) in the segment's frame [m], None for its
    centre of mass.
    """

    start: float
    duration: float
    force: Sequence[float] | Sequence[Sequence[float]]
    segment: str = "trunk"
    point: Sequence[float] | None = None

    def force_at(self, time: float) -> np.ndarray:
        """The force (3,) [N] at a time [s]; zeros outside of the push."""
        share = (time - self.start) / self.duration
        if not 0 <= share < 1:
            return np.zeros(3)
        force = np.asarray(self.force, float)
        if force.ndim == 1:
            return force
        at = share * (len(force) - 1)
        low = min(int(at), max(len(force) - 2, 0))
        high = min(low + 1, len(force) - 1)
        return force[low] + (at - low) * (force[high] - force[low])

    @property
    def impulse(self) -> np.ndarray:
        """(3,) by how much it changes the momentum of the whole [N s]."""
        force = np.atleast_2d(np.asarray(self.force, float))
        if len(force) > 1:
            force = (force[:-1] + force[1:]) / 2
        return self.duration * force.mean(0)

    @property
    def peak(self) -> float:
        """Its largest force [N]."""
        return float(np.linalg.norm(np.atleast_2d(np.asarray(self.force, float)), axis=1).max())

    @property
    def jolt(self) -> float:
        """Its largest impulse within PUSH_DURATION [N s]."""
        forces = np.linalg.norm(np.atleast_2d(np.asarray(self.force, float)), axis=1)
        if len(forces) == 1:
            return float(forces[0] * min(self.duration, PUSH_DURATION))
        step = self.duration / (len(forces) - 1)
        count = max(1, min(round(PUSH_DURATION / step), len(forces) - 1))
        return float(step * np.convolve((forces[:-1] + forces[1:]) / 2, np.ones(count)).max())

    def check_strength(self, mass: float) -> None:
        """Raise SettingsError if it is beyond what a body of that mass [kg] takes."""
        speed, part = self.jolt / mass, self.segment.replace("_", " ")
        if speed > MOST_SPEED:
            raise SettingsError(
                f"The push of {self.peak:.10g} N on the {part} at {self.start:.2f} s is beyond "
                f"what a body takes: it would hurl its {mass:.0f} kg away at {speed:.4g} m/s, and "
                f"a car crash is {MOST_SPEED:g} m/s. Give it at most "
                f"{int(self.peak * MOST_SPEED / speed)} N."
            )

    def check(self) -> None:
        """Raise SettingsError if no body can be pushed so."""
        demand(
            self.segment in SEGMENTS,
            f"A push acts on '{self.segment}', which no body has: choose one of "
            f"{', '.join(SEGMENTS)}.",
        )
        demand(
            finite(self.start, self.duration, self.force, self.point or 0.0),
            f"A push on the {self.segment} has a value that is not a number: mend it.",
        )
        demand(
            self.duration > 0,
            f"The push on the {self.segment} at {self.start:g} s lasts {self.duration:g} s: give "
            "it a duration above 0 s.",
        )


@dataclass(frozen=True)
class Thing:
    """A body that moves freely, in the world from `start` [s] on; before that it is not there.

    mass [kg]; position (3,) [m] of its centre of mass, which is the origin of its shape's frame;
    rotation: w-first; velocity (3,) [m/s]; spin (3,) [rad/s].
    """

    name: str
    solid: Solid
    mass: float
    start: float = 0.0
    position: Sequence[float] = (0.0, 0.0, 0.0)
    rotation: Sequence[float] = (1.0, 0.0, 0.0, 0.0)
    velocity: Sequence[float] = (0.0, 0.0, 0.0)
    spin: Sequence[float] = (0.0, 0.0, 0.0)
    friction: float = 1.0
    restitution: float = 0.0

    def launched(self, _neck: Sequence[float]) -> "Thing":
        """Itself: it knows where it starts."""
        return self

    def check(self) -> None:
        """Raise SettingsError if it cannot be."""
        _check_mass(self.name, self.mass)
        numbers = (self.start, self.position, self.rotation, self.velocity, self.spin)
        demand(
            finite(*numbers, self.friction, self.restitution),
            f"'{self.name}' has a value that is not a number: mend it.",
        )
        demand(
            self.solid.kind != "mesh",
            f"'{self.name}' moves, so its shape must be convex: choose sphere, box or hull.",
        )
        self.solid.check(self.name)


@dataclass(frozen=True)
class Throw:
    """A sphere that is thrown at the character wherever it is then (SCA12, section 4).

    mass [kg]; start [s]; direction: compass direction [rad] from the character, 0 along x, in which
    it starts, `distance` [m] from the neck joint and `height` [m] above it; it flies horizontally
    towards the neck at `speed` [m/s]. density [kg/m^3].
    """

    mass: float
    start: float
    direction: float
    speed: float = SPHERE_SPEED
    distance: float = SPHERE_DISTANCE
    height: float = SPHERE_HEIGHT
    density: float = SPHERE_DENSITY
    name: str = "Sphere"

    # Those that any Thing has, unless it says otherwise.
    friction = Thing.friction
    restitution = Thing.restitution

    @property
    def solid(self) -> Solid:
        """Its shape, from mass and density."""
        return Solid("sphere", ((3 * self.mass / (4 * pi * self.density)) ** (1 / 3),))

    def launched(self, neck: Sequence[float]) -> Thing:
        """The Thing that starts now, with the neck joint at (3,) [m]."""
        away = np.array([cos(self.direction), sin(self.direction), 0.0])
        return Thing(
            self.name,
            self.solid,
            self.mass,
            self.start,
            tuple(np.asarray(neck) + self.distance * away + [0, 0, self.height]),
            velocity=tuple(-self.speed * away),
        )

    def check(self) -> None:
        """Raise SettingsError if it cannot be."""
        _check_mass(self.name, self.mass)
        numbers = (self.start, self.direction, self.speed, self.distance, self.height)
        demand(finite(*numbers), f"'{self.name}' has a value that is not a number: mend it.")
        allowed = RANGES["density"]
        demand(
            self.density in allowed,
            f"'{self.name}' has a density of {self.density:g} kg/m³: give it {allowed}.",
        )


@dataclass(frozen=True)
class Scenario:
    """Everything that happens to a character.

    pushes; things: Thing and Throw; colliders; whole_body: all of the body meets the floor and the
    colliders, not the feet alone; self_collision: its parts meet each other. weights: {region:
    (F,)} share of physics at the samples of the motion, see `physics_weights`. floor: its height
    [m], None for where the motion stands. strength: {limb: (F,)} share of its strength that the
    body has, see `strength`. mixed: {behaviour: (F,)} share of it in how the body falls, see
    `mixture`. limbs: of other bodies, which all of this one meets. holds: of hands
    and feet. get_ups: motions of the same rig by which it gets up once it has fallen.
    """

    pushes: tuple[Push, ...] = ()
    things: tuple[Thing | Throw, ...] = ()
    colliders: tuple[Collider, ...] = ()
    whole_body: bool = False
    self_collision: bool = False
    weights: dict[str, Any] = field(default_factory=dict)
    floor: float | None = None
    strength: dict[str, Any] = field(default_factory=dict)
    limbs: tuple[Limb, ...] = ()
    holds: tuple[Hold, ...] = ()
    get_ups: tuple[Motion, ...] = field(default=(), compare=False)
    mixed: dict[str, Any] = field(default_factory=dict)

    @property
    def touches_body(self) -> bool:
        """Whether more of the body than its feet can be touched."""
        return bool(self.things or self.limbs) or self.whole_body or self.self_collision

    def check(self, mass: float) -> None:
        """Raise SettingsError for what cannot be. mass: of the character [kg]."""
        for part in (*self.pushes, *self.things, *self.colliders, *self.limbs, *self.holds):
            part.check()
        for push in self.pushes:
            push.check_strength(mass)

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain lists and numbers, for JSON; without a word of strength that is full,
        or of limbs, holds, get-ups and mixed behaviours where there are none, so that what was
        written before is still the same."""
        data = {item.name: getattr(self, item.name) for item in fields(self)}
        for name in ("strength", "limbs", "holds", "get_ups", "mixed"):
            if not data[name]:
                del data[name]
        data["things"] = [{"kind": type(thing).__name__, **asdict(thing)} for thing in self.things]
        for name in {"pushes", "colliders", "limbs", "holds", "get_ups"} & data.keys():
            data[name] = [asdict(part) for part in data[name]]
        for hold in data.get("holds", ()):  # as it was written before there were such
            if not hold["to_character"]:
                del hold["to_character"]
        for motion in data.get("get_ups", ()):  # JSON knows no NaN
            places = motion["positions"].astype(object)
            places[~np.isfinite(motion["positions"])] = None
            motion["positions"] = places
        return _plain(data)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Scenario":
        """The scenario that `as_dict` gave."""
        kinds = {"Thing": Thing, "Throw": Throw}

        def made(kind: type[_Made], values: dict[str, Any]) -> _Made:
            if "solid" in values:
                values = values | {"solid": Solid(**values["solid"])}
            return kind(**values)

        things = [dict(values) for values in data["things"]]
        return cls(
            **data
            | {
                "pushes": tuple(Push(**values) for values in data["pushes"]),
                "things": tuple(made(kinds[values.pop("kind")], values) for values in things),
                "colliders": tuple(made(Collider, values) for values in data["colliders"]),
                "limbs": tuple(made(Limb, values) for values in data.get("limbs", ())),
                "holds": tuple(Hold(**values) for values in data.get("holds", ())),
                "get_ups": tuple(_motion(values) for values in data.get("get_ups", ())),
            }
        )

    def with_drawn(self, disturbance: dict[str, float], duration: float, seed: int) -> "Scenario":
        """This scenario with random disturbances. disturbance: {"pushes": N} or {"spheres": kg} or
        both; duration of the trial [s]; seed of directions and phase."""
        pushes, things = self.pushes, self.things
        if disturbance.get("pushes"):
            pushes += random_pushes(disturbance["pushes"], duration, seed)
        if disturbance.get("spheres"):
            things += random_throws(disturbance["spheres"], duration, seed)
        return replace(self, pushes=pushes, things=things)


def _motion(values: dict[str, Any]) -> Motion:
    """The Motion of what `as_dict` says of it; optional landmarks are NaN where it says null."""
    arrays = {name: np.array(values[name], float) for name in ("rotations", "positions")}
    return Motion(**values | arrays)


def _plain(value: Any) -> Any:
    """Arrays and tuples as lists."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _check_mass(name: str, mass: float) -> None:
    allowed = RANGES["thing"]
    demand(mass in allowed, f"'{name}' has a mass of {mass:g} kg: give it {allowed}.")


def _starts(duration: float, seed: int) -> tuple[np.ndarray, np.random.Generator]:
    """When random disturbances begin [s], and a generator for their directions. The first comes
    after a second of quiet and a random part of the period: the phase of the clip is random."""
    random = np.random.default_rng([_STREAM, seed])
    return np.arange(FIRST + random.uniform(0, PERIOD), duration, PERIOD), random


def shoves(commands: Sequence[Command], yaw: float) -> tuple[Push, ...]:
    """The pushes among the commands of a walk that begins in a direction [rad]."""
    found = []
    for one in commands:
        if one.push is not None:
            angle, newtons = yaw + one.push.direction, one.push.newtons
            force = newtons * cos(angle), newtons * sin(angle), 0.0
            found.append(Push(one.at, one.push.seconds, force, one.push.segment))
    return tuple(found)


def tosses(commands: Sequence[Command], yaw: float) -> tuple[Throw, ...]:
    """The balls that are thrown among the commands of a walk that begins in a direction [rad]."""
    return tuple(
        Throw(one.toss.mass, one.at, yaw + one.toss.direction + pi, name="Ball")
        for one in commands
        if one.toss is not None
    )


def random_pushes(force: float, duration: float, seed: int) -> tuple[Push, ...]:
    """Pushes of `force` [N] on the trunk for 0.2 s, one every second, horizontal, in random
    directions, over `duration` [s]."""
    starts, random = _starts(duration, seed)
    turns = random.uniform(0, 2 * pi, len(starts))
    return tuple(
        Push(float(start), PUSH_DURATION, (force * cos(turn), force * sin(turn), 0.0))
        for start, turn in zip(starts, turns, strict=True)
    )


def random_throws(mass: float, duration: float, seed: int) -> tuple[Throw, ...]:
    """Spheres of `mass` [kg], one every second, from random directions, over `duration` [s]."""
    starts, random = _starts(duration, seed)
    turns = random.uniform(0, 2 * pi, len(starts))
    return tuple(
        Throw(mass, float(start), float(turn), name=f"Sphere {i + 1}")
        for i, (start, turn) in enumerate(zip(starts, turns, strict=True))
    )

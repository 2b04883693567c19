# SPDX-License-Identifier: GPL-3.0-or-later
"""How hard the character can be hit: `push_limit` and `object_limit` of `measures.md`.

search = LimitSearch(problem, gains, LimitSettings("pushes"), executor)
for rate in search.run():
    print(rate.magnitude, rate.passed, rate.count)
print(search.outcome().limit)

Two questions are asked. How large may the forces (or spheres) of SCA12's random sequences be? And
how large may a single one be, by the direction and the phase of the clip in which it comes? Trials
depend on their seeds alone, which no search for gains ever draws, so that neither the number of
workers nor their speed has any influence on what is found.
"""

import contextlib
import math
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from ..body.character import Character
from ..body.momentum import GRAVITY
from ..exceptions import PoiseError, SimulationError, demand
from ..gains.gains import Gains
from ..geometry.stance import LEFT, RIGHT
from ..options import check_options, option
from ..ranges import RANGES, Range
from ..reference.reference import COM, Reference
from ..simulation import world
from ..simulation.scenario import FIRST, PUSH_DURATION, SPHERE_DISTANCE, SPHERE_SPEED, Push, Throw
from .polling import Plan, Polled, Task
from .trial import Problem, Result, evaluate

KINDS = {
    "pushes": ("Pushes", "Pushes on the trunk, 0.2 s each, once a second"),
    "spheres": ("Spheres", "Spheres thrown at the neck, 5 m/s, once a second"),
}
#: Unit of each kind of disturbance, the steps in which it is raised, and what a unit of it adds to
#: a body's momentum [N s]: a push lasts 0.2 s, a sphere comes at 5 m/s. All of SCA12, section 4.
UNITS = {"pushes": "N", "spheres": "kg"}
STEPS = {"pushes": 20.0, "spheres": 0.25}
IMPULSES = {"pushes": PUSH_DURATION, "spheres": SPHERE_SPEED}

#: How long a single disturbance acts [s]: the pressure under the feet can answer meanwhile.
_ACTING = {"pushes": PUSH_DURATION, "spheres": 0.0}
#: From its start to its end [s].
_OVER = {"pushes": PUSH_DURATION, "spheres": SPHERE_DISTANCE / SPHERE_SPEED}

#: Whoever stands so long after it [s] has withstood a single disturbance. By judgement.
WATCH = 3.0
#: Single disturbances are measured in so many parts of a step, and so many parts are tried first:
#: 80 N. By judgement.
_PARTS, _FIRST_TRY = 2, 8

#: Searches for gains draw seeds below this.
_UNSEEN = 2**31
_SEQUENCES, _PHASES = range(2)  # what a seed is for


_problem = lru_cache(maxsize=2)(Problem.from_bytes)


@dataclass(frozen=True)
class LimitSettings:
    """What to measure. start: the first magnitude, step: by which it is raised, None for 20 N or
    0.25 kg. target: reward that a sequence must reach to count as withstood. budget: wall time [s],
    None without limit. Steps and target are SCA12's, the other numbers by judgement."""

    kind: str = option("pushes", "Kind", "What the character is hit by", choices=KINDS)
    start: float = None  # type: ignore[assignment] # __post_init__ makes a number of it
    step: float = None  # type: ignore[assignment] # this too
    sequences: int = option(
        10,
        "Sequences",
        "Random sequences of 20 s for each magnitude, the same directions for all; more give surer "
        "rates and take longer",
        Range("number of sequences", 1, 1000),
        most=50,
    )
    share: float = option(
        0.8,
        "Must Stand (share)",
        "Share of the sequences that must stand for a magnitude to count as withstood; 0.8 are 8 "
        "of 10 [share]",
        Range("share", 0.01, 1),
        step=0.1,
        digits=2,
        seldom=True,
    )
    directions: int = option(
        16,
        "Directions",
        "Directions all round from which single ones come, for the plot",
        Range("number of directions", 4, 360),
        most=32,
        seldom=True,
    )
    phases: int = option(
        4,
        "Moments",
        "Moments of the clip at which single ones come, for the plot, which shows the worst of "
        "them; 0 for no plot",
        Range("number of moments", 0, 100),
        most=10,
        seldom=True,
    )
    seed: int = option(
        0,
        "Seed",
        "Number that directions and moments are drawn from; none of them is ever seen in tuning, "
        "whatever its seed",
        RANGES["seed"],
        seldom=True,
    )
    target: float = 1.6
    budget: float | None = option(
        None,
        "Budget (s)",
        "The measurement ends after this time, with what is known then [s]",
        RANGES["budget"],
        zero="no limit",
        most=3600,
        step=10,
        digits=0,
    )

    def __post_init__(self) -> None:
        check_options(self)
        default = STEPS[self.kind]
        for name in ("step", "start"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, self.step if name == "start" else default)
            RANGES["force" if self.kind == "pushes" else "sphere"].check(getattr(self, name))
        RANGES["target"].check(self.target)

    @property
    def angles(self) -> np.ndarray:
        """(directions,) towards which single disturbances push [rad], from the front to the
        left."""
        return np.arange(self.directions) * 2 * np.pi / self.directions

    def seeds(self) -> list[int]:
        """Of the sequences: the same for every magnitude."""
        return _seeds(self.seed, _SEQUENCES, self.sequences)

    def phase_seeds(self) -> list[int]:
        """Of the motor noise of single disturbances."""
        return _seeds(self.seed, _PHASES, self.phases)


def _seeds(seed: int, purpose: int, count: int) -> list[int]:
    random = np.random.default_rng([_UNSEEN, seed, purpose])
    return [_UNSEEN + int(random.integers(_UNSEEN)) for _ in range(count)]


@dataclass(frozen=True)
class Rate:
    """How many sequences of one magnitude were withstood.

    magnitude [N] or [kg]; speed: momentum that one disturbance adds per body mass [m/s]; rewards:
    of the sequences, in their order; passed: how many reach the target.
    """

    magnitude: float
    speed: float
    rewards: list[float]
    passed: int

    @property
    def count(self) -> int:
        """Of all sequences."""
        return len(self.rewards)


@dataclass(frozen=True)
class Outcome:
    """What was measured.

    limit: the largest magnitude that was withstood, with all before it; 0 if none was. found:
    whether a larger one was not, so that the limit is one. limits: of each sequence. rates: of
    Rate, from no disturbance up. single: (phases, directions) the largest single disturbance that
    was withstood, of the phases so far; bounds: the ones that `capture_bounds` allows, of all.
    ended: "measured", "falls" (undisturbed, the worst at fell_at [s] by fell_measure), "budget" or
    "stopped". seconds: simulated; cpu, wall [s].
    """

    clip: str
    mass: float
    height: float
    rate: float
    settings: LimitSettings
    ended: str
    found: bool
    limit: float
    limits: list[float]
    rates: list[Rate]
    single: list[list[float]]
    bounds: list[list[float]]
    fell_at: float | None
    fell_measure: str | None
    seconds: float
    cpu: float
    wall: float

    @property
    def unit(self) -> str:
        """N or kg."""
        return UNITS[self.settings.kind]

    def speed(self, magnitude: float) -> float:
        """Momentum that a disturbance adds per body mass [m/s]."""
        return magnitude * IMPULSES[self.settings.kind] / self.mass

    @property
    def worst(self) -> np.ndarray | None:
        """(2, directions) smallest of all phases: single, bounds; None before there are any."""
        if not self.single:
            return None
        return np.array([np.min(self.single, 0), np.min(self.bounds[: len(self.single)], 0)])

    def as_dict(self) -> dict[str, Any]:
        """Everything as JSON-able data, the report."""
        report = asdict(self)
        settings, unit = self.settings, self.unit
        report["measure"] = {"pushes": "push_limit", "spheres": "object_limit"}[settings.kind]
        report["limit_speed"] = self.speed(self.limit)
        report["physics_rate"] = self.rate
        report["engine"] = {"numpy": np.__version__, "pybullet": world.version()}
        report["angles"] = settings.angles.tolist()
        report["seeds"] = {"sequences": settings.seeds(), "phases": settings.phase_seeds()}
        worst = self.worst
        if worst is not None:
            report["worst_phase"] = [
                {"angle": angle, "limit": limit, "speed": self.speed(limit), "bound": bound}
                for angle, (limit, bound) in zip(report["angles"], worst.T.tolist(), strict=True)
            ]
        magnitudes = ("limit", "limits", "magnitude", "start", "step", "single", "bound", "bounds")
        report["units"] = dict.fromkeys(magnitudes, unit) | {
            "limit_speed": "m/s",
            "speed": "m/s",
            "angle": "rad, from the front to the left",
            "angles": "rad, from the front to the left",
            "mass": "kg",
            "height": "m",
            "rate": "Hz",
            "physics_rate": "Hz",
            "fell_at": "s",
            "seconds": "s, simulated",
            "cpu": "s",
            "wall": "s",
        }
        return report


# --- What feet that stay in place can do --------------------------------------------------------


def ray_to_edge(points: np.ndarray, origin: np.ndarray, direction: np.ndarray) -> float:
    """How far it is from a point to the edge of the convex hull of others.

    points: (n, 2) [m]; origin, direction: (2,), a unit vector. Returns [m]; 0 from outside.
    """
    apart = np.asarray(points) - origin
    along = apart @ direction
    across = apart @ [-direction[1], direction[0]]
    left, right = np.flatnonzero(across >= 0), np.flatnonzero(across <= 0)
    if not len(left) or not len(right):
        return 0.0
    # Where the lines between all points of the two sides meet the ray's own line.
    i, j = (index.ravel() for index in np.meshgrid(left, right))
    width = across[i] - across[j]
    share = np.divide(across[i], width, out=np.zeros_like(width), where=width > 0)
    meets = along[i] + share * (along[j] - along[i])
    return float(meets.max()) if meets.min() <= 0 <= meets.max() else 0.0


def capture_speed(reach: float, height: float, duration: float = 0.0) -> float:
    """The largest change of speed [m/s] after which feet that stay in place can still catch a body.

    The pressure under the feet can go `reach` [m] further in the direction of the push; height [m]
    of the centre of mass. The capture point (Pratt et al., Humanoids 2006), v / ω ahead of the
    centre of mass with ω² = g / height, must not come past the edge: v = ω reach. Of a push that
    lasts for `duration` T [s], pressure at the edge already takes back a part, since the capture
    point moves at ω times its distance from there: v = ω reach · ω T / (1 − exp(−ω T)). It holds
    for a body that bends at the ankles alone; arms and hips can add to it.
    """
    omega = math.sqrt(GRAVITY / height)
    return omega * reach * (omega * duration / -math.expm1(-omega * duration) if duration else 1.0)


def capture_bounds(
    character: Character,
    reference: Reference,
    rate: float,
    times: Sequence[float],
    angles: np.ndarray,
    duration: float = 0.0,
) -> np.ndarray:
    """(times, directions) largest change of speed [m/s] that feet in place can catch.

    reference: of controller.Reference, of samples at `rate` [Hz]; times [s]; angles: of the
    directions [rad], from the front to the left; duration of a push [s]. The reference's own
    acceleration is wanted, so that pressure starts from its zero-moment point. 0 in flight.
    """
    result = np.zeros((len(times), len(angles)))
    smooth = reference.smooth
    corners = character.sole_corners(smooth.joints, smooth.frames)
    for row, moment in zip(result, times, strict=True):
        sample = min(round(moment * rate), len(reference) - 1)
        stance = reference.stance[sample]
        feet = [foot for foot, bit in enumerate((LEFT, RIGHT)) if stance & bit]
        if not feet:
            continue
        step = sample * reference.steps_per_sample
        com = reference.goals[step, COM]
        height = com[2] - character.ground
        x, y, z, roll, pitch, _ = reference.wrench[step]
        pressure = com[:2] - np.array([height * x + pitch, height * y - roll]) / z
        points = corners[sample, feet].reshape(-1, 3)[:, :2]
        for i, direction in enumerate(_directions(reference, sample, angles)):
            reach = ray_to_edge(points, pressure, direction)
            row[i] = capture_speed(reach, height, duration)
    return result


def _directions(reference: Reference, sample: int, angles: np.ndarray) -> np.ndarray:
    """(directions, 2) unit vectors in the world, for angles from where the pelvis faces."""
    ahead = reference.smooth.frames[sample, 0, :2, 0]
    ahead = ahead / np.linalg.norm(ahead)
    left = np.array([-ahead[1], ahead[0]])
    return np.cos(angles)[:, None] * ahead + np.sin(angles)[:, None] * left


# --- Tasks, as any process can do them ----------------------------------------------------------


def bounds(payload: bytes, kind: str, angles: Sequence[float], shares: Sequence[float]) -> Result:
    """What `capture_bounds` gives in units of the disturbance, as lists: phases, directions.

    payload: of Problem.to_bytes. shares: of the clip. {"error": …} as `evaluate` has it.
    """
    try:
        problem = _problem(payload)
        character, reference = problem.character, problem.reference
        times = [_moment(problem, kind, share) for share in shares]
        speeds = capture_bounds(
            character, reference, problem.motion.rate, times, np.array(angles), _ACTING[kind]
        )
        magnitudes = (speeds * character.mass / IMPULSES[kind]).tolist()
    except PoiseError as error:
        return _told(error)
    return {"bounds": magnitudes, "seconds": 0.0, "cpu": 0.0}


def withstand(
    payload: bytes,
    gains: dict[str, Any],
    seed: int,
    kind: str,
    grid: float,
    angle: float,
    share: float,
) -> Result:
    """Find the largest single disturbance that is withstood, to a multiple of `grid` [N] or [kg].

    payload: of Problem.to_bytes; gains: of Gains.as_dict; seed: of the motor noise; angle: towards
    which it pushes [rad], from the front to the left; share: of the clip at which it comes. What
    is withstood is taken to be so at all smaller magnitudes. Returns {"limit", "seconds"
    simulated, "cpu" [s]}; {"error": …} as `evaluate` has it.
    """
    started, simulated = time.process_time(), 0.0
    try:
        problem = _problem(payload)
        own = Gains.from_dict(gains, problem.character, "candidate")
        stood, parts = 0, _FIRST_TRY
        fell: float = math.inf
        while fell - stood > 1:
            stands, seconds = _stands(problem, own, seed, kind, parts * grid, angle, share)
            simulated += seconds
            stood, fell = (parts, fell) if stands else (stood, parts)
            parts = 2 * stood if math.isinf(fell) else (stood + int(fell)) // 2
    except PoiseError as error:
        return _told(error)
    return {
        "limit": stood * grid,
        "seconds": simulated,
        "cpu": time.process_time() - started,
    }


def _told(error: PoiseError) -> Result:
    return {"error": [type(error).__name__, str(error)]}


def _moment(problem: Problem, kind: str, share: float) -> float:
    """When a single disturbance comes [s], so that what becomes of it can be watched."""
    length = (len(problem.reference) - 1) / problem.motion.rate
    latest = length - FIRST - _OVER[kind] - WATCH
    return FIRST + share * max(0.0, min(problem.motion.duration, latest))


def _stands(
    problem: Problem,
    gains: Gains,
    seed: int,
    kind: str,
    magnitude: float,
    angle: float,
    share: float,
) -> tuple[bool, float]:
    """Whether a single disturbance is withstood, and the time that was simulated [s]."""
    start = _moment(problem, kind, share)
    sample = min(round(start * problem.motion.rate), len(problem.reference) - 1)
    direction = _directions(problem.reference, sample, np.array([angle]))[0]
    scenario = problem.scenario
    if kind == "pushes":
        push = Push(start, PUSH_DURATION, (*(magnitude * direction).tolist(), 0.0))
        scenario = replace(scenario, pushes=(*scenario.pushes, push))
    else:
        throw = Throw(magnitude, start, math.atan2(-direction[1], -direction[0]))
        scenario = replace(scenario, things=(*scenario.things, throw))
    simulation = problem.simulation(gains, seed, scenario)
    last = math.ceil((start + _OVER[kind] + WATCH) * problem.motion.rate)
    try:
        with contextlib.closing(iter(simulation)) as samples:
            for sample in samples:
                if sample >= last:
                    break
    except SimulationError:
        return False, simulation.measures.duration
    return simulation.recording.fell_at is None, simulation.measures.duration


# --- The search ---------------------------------------------------------------------------------


class LimitSearch(Polled):
    """A measurement that goes on, one `poll` after the other.

    rates: of Rate, so far. single: limits by direction, a list for each phase, so far. doing: in
    words. ended: why it is over, None while it is not.
    """

    def __init__(
        self, problem: Problem, gains: Gains, settings: LimitSettings, executor: Executor
    ) -> None:
        """problem: trial.Problem of 20 s without disturbance. gains: Gains to measure. executor:
        takes the trials; it stays the caller's to shut down. Raises SettingsError for a problem
        with help from outside."""
        demand(
            not problem.settings.outside_help,
            "What a body withstands is measured without help: set Help from Outside to 0.",
        )
        super().__init__(executor, settings.budget)
        self.problem, self.gains, self.settings = problem, gains, settings
        self._payload = problem.to_bytes()
        self.rates: list[Rate] = []
        self.single: list[list[float]] = []
        self._bounds: list[list[float]] = []
        self.doing = ""
        self._fell: Result = {}
        self._raising = True
        self._done, self._seconds, self._cpu = 0, 0.0, 0.0
        self._begin()

    # --- Going on

    def run(self) -> Iterator[Rate]:
        """Go on to the end, and yield each Rate as it is known."""
        return self._run(self.rates)

    def time_left(self) -> float | None:
        """How much longer it takes [s], as a guess; None before there is anything to go by."""
        finished, _ = self.progress
        done = self._done + finished
        if not self.rates:
            return None
        settings, rows = self.settings, len(self.rates)
        if self._raising:
            # Where feet in place give up in most directions, the rates are near their end.
            largest = np.median(self._bounds) if self._bounds else 0.0
            rows = max(rows + 1, math.ceil((largest - settings.start) / settings.step + 3))
        expected = rows * settings.sequences + settings.phases * settings.directions
        guess = self.wall / done * max(0, expected - done)
        return min(guess, max(0.0, self._left()))

    def _task(self, item: Task) -> Task:
        return item

    def _note(self, results: list[Result]) -> None:
        self._seconds += sum(result["seconds"] for result in results)
        self._cpu += sum(result["cpu"] for result in results)
        self._done += len(results)

    # --- What is measured

    def _steps(self) -> Plan:
        """All of it: yields a list of tasks, takes the list of their results, and returns why it
        ended."""
        settings = self.settings
        shares = [phase / settings.phases for phase in range(settings.phases)]
        angles = settings.angles.tolist()
        self.doing = "undisturbed"
        kind = settings.kind
        # The bounds come last, after what may raise an error about the gains.
        *results, bound = yield [
            *self._sequences(0.0),
            (bounds, self._payload, kind, angles, shares),
        ]
        self._bounds = bound["bounds"]
        if not self._add(0.0, results):
            self._fell = min(results, key=lambda result: result["reward"])
            return "falls"
        magnitude, without = settings.start, 0
        while without < 2:
            self.doing = f"{kind} of {magnitude:g} {UNITS[kind]}"
            self._add(magnitude, (yield self._sequences(magnitude)))
            without = 0 if self.rates[-1].passed else without + 1
            # Sums of steps would not be the numbers that they are meant to be.
            magnitude = settings.start + (len(self.rates) - 1) * settings.step
        self._raising = False
        grid, gains = settings.step / _PARTS, self.gains.as_dict()
        for phase, (share, seed) in enumerate(zip(shares, settings.phase_seeds(), strict=True)):
            self.doing = f"directions, moment {phase + 1} of {len(shares)}"
            results = yield [
                (withstand, self._payload, gains, seed, kind, grid, angle, share)
                for angle in angles
            ]
            self.single.append([result["limit"] for result in results])
        return "measured"

    def _sequences(self, magnitude: float) -> list[Task]:
        """The tasks of one magnitude."""
        disturbance = {self.settings.kind: magnitude}
        payload = replace(self.problem, disturbance=disturbance).to_bytes()
        gains = self.gains.as_dict()
        return [(evaluate, payload, gains, seed) for seed in self.settings.seeds()]

    def _add(self, magnitude: float, results: Sequence[Result]) -> bool:
        """Take down a magnitude; returns whether it is withstood."""
        rewards = [result["reward"] for result in results]
        passed = sum(reward >= self.settings.target for reward in rewards)
        speed = magnitude * IMPULSES[self.settings.kind] / self.problem.character.mass
        self.rates.append(Rate(magnitude, speed, rewards, passed))
        return self._withstood(self.rates[-1])

    def _withstood(self, rate: Rate) -> bool:
        return rate.passed >= self.settings.share * rate.count - 1e-9

    # --- What came of it

    @property
    def limit(self) -> float:
        """The largest magnitude withstood so far, with all before it."""
        return _largest(self.rates, [self._withstood(rate) for rate in self.rates])

    def outcome(self) -> Outcome:
        """The Outcome of a measurement that is over, or so far."""
        problem, settings = self.problem, self.settings
        target = settings.target
        return Outcome(
            clip=problem.motion.name,
            mass=problem.character.mass,
            height=problem.character.height,
            rate=problem.settings.rate,
            settings=settings,
            ended=self.ended or "stopped",
            found=not all(self._withstood(rate) for rate in self.rates),
            limit=self.limit,
            limits=[
                _largest(self.rates, [rate.rewards[i] >= target for rate in self.rates])
                for i in range(settings.sequences)
            ],
            rates=list(self.rates),
            single=list(self.single),
            bounds=self._bounds,
            fell_at=self._fell.get("fell_at"),
            fell_measure=self._fell.get("fell_measure"),
            seconds=self._seconds,
            cpu=self._cpu,
            wall=self.wall,
        )


def _largest(rates: Sequence[Rate], good: Sequence[bool]) -> float:
    """The magnitude before the first that is not good."""
    result = 0.0
    for rate, is_good in zip(rates, good, strict=True):
        if not is_good:
            break
        result = rate.magnitude
    return result

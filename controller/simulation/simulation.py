# SPDX-License-Identifier: GPL-3.0-or-later
"""The loop: reference, torques, step, record. A generator that yields sample by sample."""

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..body.character import Character
from ..contacts.contact_plan import ContactPlan
from ..control import tracking
from ..control.balance import Balance, Memory
from ..control.controller import Controller
from ..control.legs import Legs
from ..exceptions import SettingsError, SimulationError, demand
from ..falls import mixture
from ..falls.acted import acted
from ..falls.compliance import arms_of, falling_body, relaxed_limits, with_hands
from ..falls.fall import Fall
from ..falls.get_up import GetUp, is_level
from ..falls.loss import BalanceLoss
from ..falls.mover import Mover
from ..falls.posing import BodyPose
from ..falls.standing import Standing, going_on, standing_still
from ..falls.strength import Strength
from ..gains.gains import BALANCE_MODES, Gains
from ..gains.physics_weights import Hold, PhysicsWeights, standing_lifts
from ..geometry.motion import Motion
from ..geometry.rotations import matrix_from_quaternion
from ..geometry.skeleton import SEGMENTS
from ..geometry.trajectory import Trajectory
from ..options import check_options
from ..reference.cleaning import check_names
from ..reference.gait import Endless, Walk
from ..reference.played import WHOLE, Part, Window
from ..reference.reference import Reference
from ..reference.waypoints import Waypoint
from ..support.planting import physical
from ..support.seats import borne, seats_of, sitting_body
from ..support.terrain import Terrain
from .holds import at_times, check_holds
from .measures import MAXIMA, Measures, for_giants, for_helped, for_motion
from .recording import Observation, Recording
from .scenario import Scenario
from .simulation_options import STAND, STOP, SimulationOptions
from .world import Engine, Membership, Saved, World, load_engine

#: Steps in a piece: about 5 ms. By trial.
_PIECE = 5
#: [m/s] of any segment: not a motion any more. By trial, on falls that the engine threw about.
_FASTEST = 30.0
#: Nor is this that of a body that stands: from a little before it, such a one falls. By trial.
_WILD = 15.0
#: Unless the animation has such a speed within so many seconds: then it is from so many times that.
#: By judgement; the foot of PyBullet's spin kick comes to 14 m/s.
_AROUND, _FASTER = 0.1, 1.5
#: Nor [rad/s] of a joint, before its segment has gone anywhere. The fastest of captured kicks has
#: 27; by trial.
_SPINNING = 100.0
#: [s] in which it comes to that. By trial, on bodies that are pushed hard while they stand.
_BURST = 0.05
#: [m] off its ground: there who is to walk on is on it.
_OFF = 0.01
#: So often a body tries to get up that does not come to stand. By judgement.
_TRIES = 3
#: [s] after a push in which a body that flies apart does so because of it. By trial.
_AFTER = 0.5


#: The part of a walk in which a body stands that has got up anywhere.
_SOMEWHERE = Part(1, stays=True)


#: What was written of settings first, as digests of problems have it ever since.
_WRITTEN = (
    *("rate", "balance", "tracking", "noise", "seed"),
    *("torque_limit", "duration", "cutoff", "maxima"),
)


@dataclass(frozen=True)
class Settings(SimulationOptions):
    """How to simulate: what users choose of it, and

    balance: "foot_forces" or "virtual_forces" (SCA12). tracking: "stable_pd" or "explicit_pd".
    torque_limit: largest torque of a joint [N m] of an adult of 71 kg and 1.80 m, scaled to the
    body. duration: loop the clip to this length [s], None for the clip as it is. cutoff: low-pass
    of the reference [Hz], None to choose. maxima: largest allowed errors by name, as
    `measures.MAXIMA` has them: a trial ends where one is exceeded. contacts: ContactPlan of the
    clip, which says when feet stand; None to find that. An endless motion always finds it.
    waypoints: where the body is to be, and when.
    """

    balance: str = "foot_forces"
    tracking: str = "stable_pd"
    torque_limit: float = 300.0  # by trial; SCA12 have 200
    duration: float | None = None
    cutoff: float | None = None
    maxima: dict[str, float] = field(default_factory=lambda: dict(MAXIMA))
    contacts: ContactPlan | None = None
    waypoints: tuple[Waypoint, ...] = ()

    def __post_init__(self) -> None:
        check_names(self.cleaning)
        object.__setattr__(self, "cleaning", tuple(self.cleaning))  # JSON knows lists only
        demand(
            not self.waypoints or self.duration is None,
            "A clip that is looped passes its waypoints again and again: leave them out, or "
            "simulate the clip as it is.",
        )
        check_options(self, "seed")  # trials draw larger ones than users may choose
        demand(
            self.balance in BALANCE_MODES,
            f"There is no balance mode '{self.balance}': use {', '.join(BALANCE_MODES)}.",
        )
        demand(
            self.tracking in tracking.MODES,
            f"There is no tracking mode '{self.tracking}': use {', '.join(tracking.MODES)}.",
        )
        demand(
            not self.outside_help or self.balance == "foot_forces",
            "Only the balance mode 'foot_forces' knows what feet lack: choose that one, or set "
            "Help from Outside to 0.",
        )
        demand(self.torque_limit > 0, "The torque limit must be above 0 N m.")
        demand(
            self.maxima.keys() == MAXIMA.keys() and all(v > 0 for v in self.maxima.values()),
            f"The largest allowed errors must be numbers above 0 for {', '.join(MAXIMA)}.",
        )

    def as_dict(self) -> dict[str, Any]:
        """The settings as JSON-able data; without contacts if they are to be found, and without a
        word of waypoints without any, nor of falls if they end the simulation, so that what was
        written before there were such is still the same."""
        data = asdict(self)
        del data["contacts"]
        if self.when_it_falls == STOP:
            del data["when_it_falls"]
        if not self.outside_help:
            del data["outside_help"]
        if not self.get_up:
            del data["get_up"]
        if self.once_up == STAND or not self.get_up:
            del data["once_up"]
        data = {name: data[name] for name in (*_WRITTEN, *data)}
        if not self.waypoints:
            del data["waypoints"]
        return data if self.contacts is None else data | {"contacts": self.contacts.as_dict()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Settings":
        """The settings that `as_dict` gave. Raises SettingsError, PlanError."""
        plan = data.get("contacts")
        return cls(
            **data
            | {
                "contacts": None if plan is None else ContactPlan.from_dict(plan),
                "waypoints": tuple(Waypoint(**one) for one in data.get("waypoints", ())),
            }
        )


def held_at(scenario: Scenario, ground: float, motion: Motion) -> np.ndarray | None:
    """(F,) samples of a motion in which something holds the body, or it sits; None for never.
    ground [m]: of the floor, where the scenario has none."""
    return borne(at_times(scenario.holds, motion), seats_of(scenario, ground, motion))


def reference_of(
    character: Character,
    motion: Motion,
    settings: Settings,
    scenario: Scenario,
    plant: Callable[..., Trajectory] = physical,
) -> Reference:
    """What a simulation of a motion in a scenario performs; plant: as Reference.build has it.
    Raises MotionError, PlanError, SettingsError, as that does."""
    return Reference.build(
        character,
        motion,
        settings.rate,
        settings.duration,
        settings.cutoff,
        settings.cleaning,
        terrain=Terrain.of(scenario, character.ground, motion),
        plan=settings.contacts,
        plant=plant,
        led=not scenario.weights,
        waypoints=settings.waypoints,
        held=at_times(scenario.holds, motion),
        helped=settings.outside_help > 0,
        seats=None if isinstance(motion, Endless) else seats_of(scenario, character.ground, motion),
    )


class Correcting(Protocol):
    """What a search adds to a reference, as search.correction.Correction does."""

    @property
    def spacing(self) -> int: ...

    @property
    def drift_gain(self) -> float: ...

    def corrected(self, character: Character, reference: Reference) -> Reference:
        """The Reference with the offsets."""


class Log(Protocol):
    """What takes down how a body moves, sample by sample, as Recording does.

    com (n, 3) [m]; body_positions (n, S, 3) [m] and body_rotations (n, S, 4) of all segments. The
    rest is told it: what a Recording has by these names.
    """

    swing: int | None
    grounds: Any
    turn: np.ndarray | None
    deepest: float

    def __len__(self) -> int: ...

    @property
    def com(self) -> Any: ...

    @property
    def body_positions(self) -> Any: ...

    @property
    def body_rotations(self) -> Any: ...

    @property
    def hangs(self) -> bool:
        """Whether what holds it bears it."""

    def add(self, sample: int, seen: Observation, /) -> bool:
        """Append a sample. Returns whether the simulation may go on."""

    def keep(self, count: int, /) -> None:
        """Forget all samples but the first `count`."""

    def fall(self) -> None:
        """From now on, samples are those of a fall."""

    def rise(self, way: str, /) -> None:
        """From now on, it gets up. way: the animator's get-up that it does, empty if none."""

    def stands(self, part: Part | None, shown: np.ndarray | None, /) -> None:
        """From now on, it stands again, in a part of its walk, or None. shown: which samples (n,)
        of the animation follow, None of one who stands still."""

    def lies(self, is_kept_down: bool, /) -> None:
        """It lies still, and would get up, if what it lies on were level, or not."""

    def add_help(self, sample: int, wrench: np.ndarray, rises: bool, /) -> None:
        """Take down the mean force and torque (6,) from outside since the last sample. rises:
        whether that helped a body to get up."""


class Guide(Protocol):
    """Who tells a walk what to do while it goes on, as play.Play does."""

    def next(self, window: Window, /) -> int:
        """The sample at which another window follows one."""

    def window(self, sample: int, /) -> Window:
        """That which begins at a sample."""

    def took(self, window: Window, moment: "Moment", /) -> None:
        """Learn that a window is performed from a Moment on."""


#: What World.drive is given: degrees of freedom, speeds, torques.
Motor = tuple[Sequence[int], Sequence[float], Sequence[float]]


class Moment(NamedTuple):
    """What `Simulation.rewind` returns to: a state of the world, and what the controller knows
    besides."""

    world: Saved
    memory: Memory


class Footing(NamedTuple):
    """What a body performs a part of a walk in, and by: until it falls, and gets up in another."""

    world: World
    controller: Controller
    part: Part


class Simulation:
    """One character performing one motion.

    Iterate over it: each turn advances to the next sample of the motion and yields its index,
    from 0 to the last one or to where a measure exceeded its maximum. `recording` grows with it.
    """

    #: The engine, and what moves the body in it: from `begin` on.
    world: World
    controller: Controller
    #: What makes the latter; to be replaced in experiments, where nobody falls and gets up.
    controlled_by: Callable[..., Controller] = Controller

    def __init__(
        self,
        character: Character,
        motion: Motion,
        gains: Gains | None = None,
        settings: Settings | None = None,
        reference: Reference | None = None,
        scenario: Scenario | None = None,
        correction: Correcting | None = None,
        balance: type[Balance] | None = None,
    ) -> None:
        """reference: what `Reference.build` gave for the same character, motion and settings, to
        share it between simulations; None to build it. scenario: what happens to the character.
        correction: correction.Correction of the reference, None to perform it as it is. balance: a
        subclass of control.balance.Balance to keep balance by, None for that of the settings' mode.
        Raises SettingsError for a scenario that cannot be."""
        load_engine()  # often in a thread; the first step would have a window wait for it
        self.character = character
        self.motion = motion
        self.settings = settings or Settings()
        self.scenario = scenario or Scenario()
        self.scenario.check(float(character.masses.sum()))
        self.reference = reference or reference_of(character, motion, self.settings, self.scenario)
        endless = isinstance(motion, Endless)
        demand(
            self.reference.helps is None or self.settings.balance == "foot_forces",
            "Only the balance mode 'foot_forces' knows what feet lack: choose that one, or acts "
            "without help from outside.",
        )
        if self.scenario.holds:
            self._check_holds()
            # Where they grip is the same of a body that falls, whose shapes are others.
            held = tuple(one.gripping(character) for one in self.scenario.holds)
            self.scenario = replace(self.scenario, holds=held)
        directed = self.reference.directed
        self.gains = gains or Gains.default(character, self.settings.balance, walking=directed)
        self.rate = self.reference.rate
        maxima = for_motion(self.settings.maxima, self.reference.walks, endless)
        maxima = for_giants(maxima, character.height)
        if not endless:
            maxima = for_helped(maxima, self.settings.outside_help)
        self.measures = Measures(motion.rate, maxima)
        self.weights = PhysicsWeights.build(
            character, motion, self.reference, self.scenario.weights
        )
        if self.weights and self.settings.tracking != "stable_pd":
            raise SettingsError(
                "Physics weights below 1 need the tracking mode 'stable_pd': choose that one, or "
                "simulate the whole body."
            )
        if self.weights and self.reference.waypoints:
            raise SettingsError(
                "A body of which parts follow the animation stays where that is: set all physics "
                "weights to 1, or take away the waypoints, End Where the Source Ends too."
            )
        self.strength = Strength.build(character, self.scenario.strength, len(self.reference))
        if self.strength and self.weights:
            raise SettingsError(
                "A body of which parts follow the animation has all of its strength: set all "
                "physics weights to 1, or all strength."
            )
        self._mixed = mixture.build(self.scenario.mixed, len(self.reference))
        self.recording = Recording(character, motion, self.reference, self.measures, self.scenario)
        self.recording.weights = self.weights
        self.recording.strength = self.strength
        self.recording.gets_up = self.settings.get_up
        self.recording.goes_on = self.settings.once_up != STAND
        self._spins = False  # a joint, at the newest sample
        #: What also takes down what happens, and who tells a walk that is played.
        self.log: Log = self.recording
        self.guide: Guide | None = None
        #: How many samples there are to be.
        self.count = len(self.reference)
        #: Of a body that meets others, what it is among them.
        self.membership: Membership | None = None
        #: Of a walk, that which is performed now; whether it has lost its balance, and not got up
        #: yet; and whether it tries to.
        self.part = WHOLE
        self.is_down, self.rises = False, self.settings.get_up
        #: The animator's own get-ups.
        self._acts = acted(character, self.scenario.get_ups) if self.rises else ()
        self._left: list[World] = []  # to which who is played may go back
        self._loss = self._foresee_fall()
        self._kept: deque[tuple[int, Saved]] = deque()
        self._placings: deque[Any] = deque(maxlen=1 + round(_BURST * motion.rate))
        self._begun = False
        #: The sample at which what the controller performs begins: of one that has got up, later,
        #: and of a walk that is played, again and again.
        self._since = 0
        #: Of a walk that is played, what is performed now.
        self._window: Window | None = None
        demand(
            not (self._is_played and self.weights),
            "A walk that is played moves the whole body throughout: set all physics weights to 1, "
            "and switch Start at Frame and Hand Back off.",
        )
        #: What is performed, while the recording compares with the reference itself.
        self.target = self.reference
        self.correction, self.balance = correction, balance
        if correction is not None:
            self._demand_correctable()
            self.target = correction.corrected(character, self.reference)
            # Its feet may land a little later than the reference's, and elsewhere.
            self.measures.ending = ("pose_error",)
            # Where a foot goes is the search's to say.
            self.settings = replace(self.settings, recovery_steps=False)

    def _check_holds(self) -> None:
        """Raise SettingsError for holds that cannot be."""
        holds, settings = self.scenario.holds, self.settings
        demand(
            settings.balance == "foot_forces",
            "Only the balance mode 'foot_forces' counts what hands carry: choose that one, or take "
            "the holds away.",
        )
        demand(
            not self.scenario.weights,
            "A body of which parts follow the animation is held by that: set all physics weights "
            "to 1, or take the holds away.",
        )
        raw, scenario = self.reference.raw, self.scenario
        pose = raw.joints, raw.frames
        check_holds(holds, self.character, self.motion, pose, scenario.colliders, scenario.things)

    def _demand_correctable(self) -> None:
        """Raise SettingsError for what a corrected reference cannot be performed with."""
        if self.weights:
            raise SettingsError(
                "Rectification moves the whole body: set all physics weights to 1, or simulate "
                "with balance alone."
            )
        if self.settings.outside_help:
            raise SettingsError(
                "Rectification finds a motion that needs no help: set Help from Outside to 0, or "
                "simulate with balance alone."
            )
        if self.strength:
            raise SettingsError(
                "Rectification needs a body with all of its strength: set all strength to 1, or "
                "simulate with balance alone."
            )
        if self.settings.balance != "foot_forces":
            raise SettingsError(
                "Rectification needs the balance mode 'foot_forces': choose that one, or simulate "
                "with balance alone."
            )

    def __len__(self) -> int:
        """Samples in the whole motion."""
        return len(self.reference)

    def __iter__(self) -> Generator[int, None, None]:
        for sample in self.pieces():
            if sample is not None:
                yield sample

    def pieces(self) -> Generator[int | None, None, None]:
        """The same in shorter pieces, for who cannot wait for a sample: yields None between two of
        them where a sample takes more than a few steps."""
        started = time.perf_counter()
        try:
            for sample in self._run():
                self.recording.wall_time += time.perf_counter() - started
                yield sample
                started = time.perf_counter()
        finally:
            self.close()

    def join(self, engine: Engine, member: int, names: Sequence[str]) -> None:
        """Have the body meet others in an engine. names: of all of them, its own by its number."""
        self.membership = Membership(engine, member, names[member])
        self.recording.meet([name for number, name in enumerate(names) if number != member])

    def close(self) -> None:
        """Free the world."""
        if hasattr(self, "world"):
            self.world.close()
        for world in self._left:
            world.close()

    def run(self) -> Recording:
        """Simulate to the end. Returns the Recording."""
        for _ in self:
            pass
        return self.recording

    @property
    def _is_played(self) -> bool:
        """Whether what is performed is not known beforehand."""
        motion = self.motion
        return isinstance(motion, Endless) and motion.walk.played and bool(motion.walk.commands)

    def window(self, sample: int, walk: Walk | None = None, part: Part | None = None) -> Window:
        """What is performed from a sample of a walk on. walk: the walk with the commands that are
        known by then, None for that of the motion. part: to which the sample belongs, None for that
        which is performed now."""
        motion, settings = self.motion, self.settings
        assert isinstance(motion, Endless)
        return Window(
            self.character,
            motion.source,
            walk or motion.walk,
            settings.rate,
            sample,
            settings.cutoff,
            part or self.part,
        )

    def take(self, window: Window) -> Moment:
        """Go on by a window that begins where the body is. Returns the state there, for `retake`
        and `forget`."""
        world, ahead = self.world.save(), window.first - self._since
        memory = self.controller.memory()
        saved = Moment(world, memory._replace(planned=memory.planned - ahead * len(self.efforts)))
        self.retake(window, saved)
        return saved

    def retake(self, window: Window, saved: Moment) -> None:
        """Return to the state with which a window was taken."""
        self.world.restore(saved.world)
        own = (window.sample - window.first) * len(self.efforts)
        self.controller = self.controller.over(window.reference, own, saved.memory)
        self._since, self._window = window.first, window
        if self.guide is not None or self.settings.when_it_falls != STOP:
            self._loss = self._loss_of(window.reference)
            while self._kept:
                self.world.forget(self._kept.pop()[1])
            self._keep_state(window.sample)

    @property
    def footing(self) -> Footing:
        """What the body stands in, for `stand_in`."""
        return Footing(self.world, self.controller, self.part)

    def stand_in(self, footing: Footing) -> None:
        """Return to where the body stood before it fell, to take a window there again. What came
        after that is no more."""
        self.is_down, self.rises = False, self.settings.get_up
        if footing.world is not self.world:
            self._kept.clear()  # they go with their worlds
            self.world.close()
            while self._left[-1] is not footing.world:
                self._left.pop().close()
            self.world = self._left.pop()
        self.controller, self.part = footing.controller, footing.part

    def _leave(self, world: World) -> None:
        """Have done with a world; who is played may go back to one in which the body stood."""
        if self.guide is None or world.falling:
            world.close()
        else:
            self._left.append(world)

    def begin(self, window: Window | None = None) -> None:
        """Make the world, with the character at the start of the motion. window: of a walk that is
        played, what it begins with; None to make that, too."""
        if self._is_played:
            self._window = window or self.window(0)
        for one in self.scenario.holds:
            demand(
                not one.to_character or self.membership is not None,
                f"The hold '{one.name}' is to '{one.to}', who is not simulated together with "
                "this one: simulate both together.",
            )
        self.world = self._make_world()
        reference, world = self.target, self.world
        if self._window is not None:
            reference = self._window.reference
        self.controller = self.controlled_by(
            self.character, reference, self.gains, self.settings, world, self.balance
        )
        balance = self.controller.balance
        if balance.stepping is not None:
            self.recording.steps = balance.stepping.steps
        if self.correction is not None:
            balance.drift_gain = self.correction.drift_gain
        root, frame, velocity, angular = reference.start
        # Stand on the floor, neither above it nor in it; or hang.
        lift = self.character.ground - reference.lowest
        held = borne(at_times(self.scenario.holds, self.motion), self.reference.seats)
        if held is not None and held[0] and not reference.stance[0]:
            lift = 0.0
        world.reset(
            root + [0, 0, lift],
            frame,
            velocity,
            angular,
            reference.angles[0],
            reference.speeds[0],
        )
        if self.weights:
            tracker = self.controller.tracker
            lifts = np.full(len(reference), lift)
            if not self.scenario.colliders and world.floor == self.character.ground:
                lifts = standing_lifts(self.character, reference)
            gains = tracker.stiffness, tracker.damping
            hold = Hold(self.character, reference, self.weights, *gains, lifts)
            self.controller.take_hold(hold)
        steps = reference.steps_per_sample
        self.efforts = np.zeros((steps, self.character.dofs))
        self._helps = np.zeros((steps, 6))
        self._blows = np.zeros((len(self.recording.blowers), 7))
        self._pulls = np.zeros((steps, len(self.scenario.holds), 4))
        self._begun = True

    def _make_world(self) -> World:
        """The world in which the body stands: with hands, where it meets others. Of one that is
        weak, knees and elbows bend backward no farther than relaxed ones."""
        body = self._body if self.membership is None else with_hands(self._body)
        if self.strength is not None:
            hinges = [name.startswith(("knee", "elbow")) for name in body.dof_names]
            limits = relaxed_limits(body, self.reference.angles)
            body = replace(body, limits=np.where(np.c_[hinges], limits, body.limits))
        return World(
            body,
            self.rate,
            Legs(self.character).segments,
            self.scenario,
            self.motion.rate,
            membership=self.membership,
            may_fall=self.settings.when_it_falls != STOP,
            sits=self.reference.seats is not None,
        )

    @cached_property
    def _body(self) -> Character:
        """The character, as it is in the engine."""
        reference = self.reference
        if reference.seats is None:
            return self.character
        return sitting_body(self.character, reference.seats)

    def advance(self, sample: int) -> None:
        """Go on from one sample of the motion to the next one, which is `sample`."""
        for _ in self._advancing(sample):
            pass

    def _advancing(self, sample: int) -> Iterator[None]:
        """The same in pieces."""
        world, controller = self.world, self.controller
        steps = len(self.efforts)
        self._blows[:] = 0
        for i, step in enumerate(range((sample - 1) * steps, sample * steps)):
            if i and i % _PIECE == 0 and self.membership is None:
                yield
            world.advance(step / self.rate)
            own = step - self._since * steps
            torques = controller.torques(own)
            motor: Motor = controller.toe_motor(own)
            if self.strength is not None:
                torques, motor = self._weaken(self.strength.joints[sample], torques, motor)
            self.efforts[i] = torques
            if controller.is_helped:
                self._helps[i] = controller.outside
                world.hold(controller.outside, controller.foot_turns)
                self._helps[i, 5] += sum(controller.foot_turns)
            world.apply(torques)
            world.drive(*motor)
            if self.membership is not None:
                yield
            world.step()
            self._feel(i)

    def _add_help(self, sample: int) -> None:
        """Take down what has helped a body that stands, where anything may."""
        if self.controller.is_helped:
            self.log.add_help(sample, self._helps.mean(0), False)

    def _feel(self, step: int) -> None:
        """Take down how the body is hit and held in a step since the last sample."""
        if len(self._blows):
            self.world.add_blows(self._blows)
        if self.scenario.holds:
            self._pulls[step] = [(*held.pull, held.strain) for held in self.world.held]

    def _weaken(self, shares: np.ndarray, torques: np.ndarray, motor: Motor) -> tuple[Any, Motor]:
        """Torques (dofs,) and what World.drive is given, of joints with shares (dofs,) of their
        strength."""
        most = shares * self.controller.limit
        dofs, speeds, forces = motor
        forces = [force * shares[dof].item() for dof, force in zip(dofs, forces, strict=True)]
        return np.clip(torques, -most, most), (dofs, speeds, forces)

    def settle(self, sample: int) -> Moment:
        """Begin anew with exactly the state at `sample`, from which others can then go on as often
        as they like."""
        saved = Moment(self.world.save(), self.controller.memory())
        self.rewind(saved, sample)
        return saved

    def rewind(self, saved: Moment, sample: int) -> None:
        """Return to the state at `sample`."""
        self.world.restore(saved.world)
        self.controller.restart(sample * len(self.efforts), saved.memory)

    def forget(self, saved: Moment) -> None:
        """Free the memory of a state."""
        self.world.forget(saved.world)

    def _run(self) -> Iterator[int | None]:
        if not self._begun:
            self.begin()
        self._begun = False
        if self._window is not None:
            self.forget(self.take(self._window))
            if self.settings.when_it_falls != STOP:
                self._record(0, self.observe(0))
                yield 0
                yield from self.go_on(0)
                return
        controller, steps = self.controller, len(self.efforts)
        for sample in range(len(self.reference)):
            if sample:
                if controller.hold and controller.hold.strays(sample - 1, self.world.state()):
                    self.world.reset(*controller.hold.pose((sample - 1) * steps))
                if self.correction is not None and (sample - 1) % self.correction.spacing == 0:
                    self.forget(self.settle(sample - 1))
                self._take_next(sample - 1)
                yield from self._advancing(sample)
            if self.weights is None or not self.weights.animated[sample]:
                self._add_help(sample)
            observation = self.observe(sample)
            if self._loss is not None:
                if self._is_wild(sample, observation.centres):
                    first = yield from self._out_of_burst(sample, observation)
                    yield from self._go_on_past_falls(first)
                    return
                self._keep_state(sample)
            elif self._bursts(sample, observation.centres):
                return
            going_on = self._record(sample, observation)
            if self._loss is not None and sample:
                going_on = going_on and not self._loses_balance(sample)
                going_on = going_on and not self._faints(sample)
            yield sample
            if not going_on:
                if self._loss is not None:
                    yield from self._go_on_past_falls(sample)
                return

    def go_on(self, sample: int) -> Iterator[int | None]:
        """Have a body that stands in the first pose of a window, at a sample, go on to the end, or
        to where it is down if it is to stop there. Yields as `pieces` does."""
        last, stands = yield from self._stand(sample)
        if not stands and self.settings.when_it_falls != STOP:
            yield from self._go_on_past_falls(last)

    def _take_next(self, sample: int) -> None:
        """Take another window at a sample, if one is to follow there."""
        window, guide = self._window, self.guide
        if window is None:
            return
        if guide is not None:
            if sample == guide.next(window):
                self._take_told(guide.window(sample))
            return
        assert isinstance(self.motion, Endless)
        if sample == window.next(self.motion.walk.commands, self.motion.rate):
            self._take_told(self.window(sample))

    def _take_told(self, window: Window) -> None:
        """Take a window, and let who tells know."""
        moment = self.take(window)
        if self.guide is None:
            self.forget(moment)
        else:
            self.guide.took(window, moment)

    def _record(self, sample: int, observation: Observation) -> bool:
        """Take down a sample of a body that stands. Returns False when a measure exceeds its
        maximum."""
        controller, log = self.controller, self.log
        if controller.balance.stepping is not None:
            log.swing = controller.balance.swing
        if self.world.has_colliders:
            log.grounds = controller.balance.supports
        if controller.balance.course is not None:
            log.turn = controller.balance.course.matrix
        return log.add(sample, observation)

    def _foresee_fall(self) -> BalanceLoss | None:
        """What tells when balance is lost, where the body is to fall then. Raises SettingsError."""
        if self.settings.when_it_falls == STOP:
            return None
        if self.weights:
            raise SettingsError(
                "A body of which parts follow the animation cannot fall: set all physics weights "
                "to 1, or choose 'stop' for when it falls."
            )
        # It may slide and step; only a body that is far from its pose falls, and one that is played
        # only if it loses its balance: what it will be told, and so its pose, nobody knows.
        self.measures.ending = () if self._is_played else ("pose_error",)
        return self._loss_of(self.reference)

    @cached_property
    def _standing(self) -> Standing:
        """How it stands once it has got up."""
        count = len(self.reference)
        return standing_still(self.character, self.motion, self.reference, count)

    @cached_property
    def walks_on(self) -> bool:
        """Whether who has got up begins another part of a walk."""
        motion = self.motion
        return isinstance(motion, Endless) and motion.walk.steps(self.character, motion.source)

    @cached_property
    def _stays(self) -> bool:
        """Whether it stands in that to the end: one that is not led by commands, or runs, which
        nobody does from standing."""
        motion = self.motion
        assert isinstance(motion, Endless)
        walk = motion.walk
        stands = not walk.commands and self.settings.once_up == STAND
        return stands or (not walk.played and walk.flies(self.character, motion.source))

    def rising_to(self, lost: int) -> tuple[BodyPose, Standing | None]:
        """How it stands as soon as it has got up that lost its balance in a sample of the
        animation, on its character's ground, wherever that is, and what it does then; None if it
        walks on."""
        if self.walks_on:
            return self._walking, None
        upright = None
        if self.settings.once_up != STAND and not isinstance(self.motion, Endless):
            count = len(self.reference)
            upright = going_on(self.character, self.motion, self.reference, lost, count)
        upright = upright or self._standing
        return upright.pose, upright

    @cached_property
    def _walking(self) -> BodyPose:
        """How it stands as soon as it has got up to walk on."""
        reference = self.window(_SOMEWHERE.since, part=_SOMEWHERE).reference
        root, frame, *_ = reference.start
        lift = self.character.ground - reference.lowest
        return BodyPose(root + [0, 0, lift], frame, reference.angles[0])

    def _loss_of(self, reference: Reference) -> BalanceLoss:
        character, wanted = self.character, reference.smooth
        corners = character.sole_corners(wanted.joints, wanted.frames)
        com = np.einsum("fsi,s->fi", wanted.centres, character.masses / character.mass)
        return BalanceLoss(com, corners, self.motion.rate, character.height)

    def _loses_balance(self, sample: int) -> bool:
        assert self._loss is not None
        log, loss, own = self.log, self._loss, sample - self._since
        now = slice(sample - 1, sample + 1)
        com, turns = np.array(log.com[now]), np.array(log.body_rotations[now])
        corners = self.character.soles_of(np.array(log.body_positions[now]), turns)
        lost = self.settings.when_it_falls != STOP and loss.lost(own, com, corners)
        if self._window is not None:
            upright = matrix_from_quaternion(turns[1, 0])[2, 2]
            lost |= loss.down(own, com[1], corners[1], float(upright))
        return lost and not log.hangs

    def _faints(self, sample: int) -> bool:
        return self.strength is not None and self.strength.faints(sample)

    def _is_wild(self, sample: int, centres: np.ndarray) -> bool:
        """Whether the engine throws about a body that stands, or begins to. Where one that goes on
        and runs lands on its light toes, these and the ankle spin for less than two samples."""
        spins = not np.abs(self.world.state(False).speeds[6:]).max() < _SPINNING
        before, self._spins = self._spins or not isinstance(self.motion, Endless), spins
        return bool(self._is_thrown(sample, centres) or (before and spins))

    def _keep_state(self, sample: int) -> None:
        """Keep the state of a sample, unless the last one that was kept is newer than a burst
        takes, and one before that; where others are in it, of the body alone, of each."""
        if self.membership is not None:
            self._placings.append(self.world.placing())
            return
        if self._kept and sample - self._kept[-1][0] < _BURST * self.motion.rate:
            return  # to save one takes as long as three steps of the physics
        self._kept.append((sample, self.world.save()))
        if len(self._kept) > 2:
            self.world.forget(self._kept.popleft()[1])

    def _out_of_burst(
        self, sample: int, observation: Observation
    ) -> Generator[int | None, None, int]:
        """Have a body that the engine has begun to throw about fall, from before that; where others
        are in it, who go on, from how it was then. Returns the sample."""
        if self.membership is not None:
            if self._placings:
                self.world.put_back(self._placings[0])
            centres, turns = self.world.body_transforms()
            self._record(sample, observation._replace(centres=centres, turns=turns))
            yield sample
            return sample
        sample, state = self._kept[0]
        self.world.restore(state)
        self.log.keep(sample + 1)
        return sample

    def _go_on_past_falls(self, first: int) -> Iterator[int | None]:
        """Go on to the end with a body that has lost its balance at the sample `first`, and again
        and again, if it gets up."""
        last, log = self.count - 1, self.log
        tries, self.is_down = 0, True
        lost = first  # in the animation
        log.fall()
        while first < last:
            self.rises = self.settings.get_up and tries < _TRIES
            first = yield from self._fall(self._begin_fall(), first)
            if first == last:
                return
            tries += 1
            pose, upright = self.rising_to(lost)
            acts = () if tries > 1 else self._acts  # what has failed it does not try again
            rising = GetUp(self.world.character, self.world, self.rate, pose, self.walks_on, acts)
            log.rise("" if rising.act is None else rising.act.told)
            first = yield from self._get_up(rising, first)
            if rising.done:
                tries, self.is_down = 0, False
                self._begin_standing(rising, upright, first)
                shown, since = None if upright is None else upright.shown, first
                log.stands(self.part if self.walks_on else None, shown)
                first, stands = yield from self._stand(first)
                if stands:
                    return
                if shown is not None:
                    lost = int(shown[first - since])
            elif first == last:
                return
            self.is_down = True
            log.fall()

    def _begin_fall(self) -> Fall:
        """Have the body in a world in which it can fall."""
        before = self.world
        body = falling_body(self._body, before.state(False).angles)
        self.world = World(
            body,
            self.rate,
            Legs(self.character).segments,
            replace(self.scenario, whole_body=True, self_collision=True),
            self.motion.rate,
            falling=True,
            membership=self.membership,
            sits=self.reference.seats is not None,
        )
        self.world.follow(before)
        self._leave(before)
        self.log.swing = None
        return Fall(body, self.world, self.settings.when_it_falls, self.rate, tuple(self._mixed))

    def _fall(self, fall: Fall, first: int) -> Generator[int | None, None, int]:
        """Go on with a fall until the body gets up, if it tries to, or to the end. Returns the last
        sample."""
        around = (*self.scenario.colliders, *self.scenario.limbs)
        alone = not self.scenario.things and not any(one.moves for one in around)
        quiet = max((push.start + push.duration for push in self.scenario.pushes), default=0.0)
        alone &= not self._is_played  # at which something may be thrown any time
        alone &= self.membership is None
        observation, sample = None, first
        for sample in range(first + 1, self.count):
            sleeps = fall.asleep and alone and (sample - 1) / self.motion.rate > quiet
            if observation is None or not sleeps:
                fall.shares = {name: share[sample] for name, share in self._mixed.items()}
                observation = yield from self._moving_to(sample, fall)
            self.log.add(sample, observation)
            self.recording.braces_instead = fall.braces_instead
            yield sample
            if fall.asleep and self._gets_up(sample):
                break
        return sample

    def _gets_up(self, sample: int) -> bool:
        """Whether a body that sleeps tries to get up."""
        able = self.strength is None or self.strength.may_rise(sample)
        if not (self.rises and able):
            return False
        # Elsewhere than on its ground nobody knows how to walk on.
        x, y, _ = self.world.state(False).root.tolist()
        grounded = not self.walks_on or abs(self.world.height_at(x, y) - self.world.floor) < _OFF
        level = grounded and is_level(self.world, self.character)
        self.log.lies(not level)
        return level

    def _get_up(self, rising: GetUp, first: int) -> Generator[int | None, None, int]:
        """Go on until the body stands, or has failed to, or to the end. Returns the last sample."""
        sample, self.world.rising, self.world.calm = first, True, False
        for sample in range(first + 1, self.count):
            observation = yield from self._moving_to(sample, rising)
            self.log.add_help(sample, self._helps.mean(0), True)
            self.log.add(sample, observation)
            yield sample
            weak = self.strength is not None and not self.strength.may_rise(sample)
            if rising.done or rising.failed or weak:
                break
        self.world.rising = False
        return sample

    def _begin_standing(self, rising: GetUp, upright: Standing | None, first: int) -> None:
        """Have the body that has got up at the sample `first` in a world in which it stands, or, if
        that is None, walks on."""
        before = self.world
        self.world = self._make_world()
        self.world.follow(before)
        before.close()
        self._kept.clear()  # they went with their world
        self._placings.clear()
        settings, scenario = self.settings, self.scenario
        if upright is None:
            turn, (x, y, _) = rising.placing
            placed = float(np.arctan2(turn[1, 0], turn[0, 0])), float(x), float(y)
            self.part = Part(first, placed, self._stays)
            window = self.window(first)
            self._turn_arms(window.reference.angles[0])
            self.controller = Controller(
                self.character, window.reference, self.gains, settings, self.world, self.balance
            )
            self._since = window.first
            self._take_told(window)
            return
        motion = upright.placed(*rising.placing, self.motion.frame(first))
        reference = Reference.build(
            self.character,
            motion,
            settings.rate,
            cutoff=settings.cutoff,
            terrain=Terrain.of(scenario, self.character.ground, motion),
        )
        self._turn_arms(reference.angles[0])
        self.controller = Controller(
            self.character, reference, self.gains, settings, self.world, self.balance
        )
        self._since, self._window = first, None
        self._keep_state(first)
        self._loss = self._loss_of(reference)

    def _turn_arms(self, wanted: np.ndarray) -> None:
        """Have the angles of the shoulders, of the same pose, that are nearest to wanted ones
        (dofs,) [rad]: arms have come to where they are by other ways."""
        angles = self.world.state(False).angles
        for arm in arms_of(self.character, angles):
            own = arm.angles(arm.frame(angles), wanted[arm.dofs])
            if not np.allclose(own, angles[arm.dofs]):
                self.world.bend(range(arm.dofs.start, arm.dofs.stop), own.tolist())

    def _stand(self, first: int) -> Generator[int | None, None, tuple[int, bool]]:
        """Go on with a body that stands, or walks as it is told, until it loses its balance, or to
        the end. Returns the last sample, and whether it stands there."""
        sample = first
        for sample in range(first + 1, self.count):
            self._take_next(sample - 1)
            yield from self._advancing(sample)
            self._add_help(sample)
            observation = self.observe(sample)
            if self._is_wild(sample, observation.centres):
                return (yield from self._out_of_burst(sample, observation)), False
            self._keep_state(sample)
            self._record(sample, observation)
            yield sample
            if self._loses_balance(sample) or self._faints(sample):
                return sample, False
        return sample, self._loss is None or not self._loss.topples

    def _moving_to(self, sample: int, mover: Mover) -> Generator[None, None, Observation]:
        """`_advancing` and `observe` of a body that falls or gets up."""
        world, steps = self.world, len(self.efforts)
        self._blows[:] = 0
        if self.strength is not None:
            mover.strength = self.strength.joints[sample]
        for i, step in enumerate(range((sample - 1) * steps, sample * steps)):
            if i and i % _PIECE == 0 and self.membership is None:
                yield
            world.advance(step / self.rate)
            torques = self.efforts[i] = mover.torques()
            self._helps[i] = mover.help
            if mover.help.any():
                world.hold(mover.help)
            world.apply(torques)
            world.drive(*mover.friction())
            if self.membership is not None:
                yield
            world.step()
            self._feel(i)
        observation = self.observe(sample)
        self._demand_whole(sample, observation.centres)
        self.log.deepest = max(self.log.deepest, mover.touched.deepest)
        return observation

    def _bursts(self, sample: int, centres: np.ndarray) -> bool:
        """Whether a body that falls is thrown about by the engine, or flings a limb as no body
        does: the trial ends a sample before that. Raises SimulationError for one that stood."""
        if not self._is_thrown(sample, centres):
            return False
        if self.measures.end_fall():
            return True
        self._demand_whole(sample, centres)
        return False

    def _is_thrown(self, sample: int, centres: np.ndarray) -> bool:
        """Whether a segment moves faster than that of any body that stands."""
        if not self._too_fast(sample, centres, _WILD).any():
            return False
        half = round(_AROUND * self.motion.rate)
        near = self.motion.positions[max(sample - half, 0) : sample + half + 1]
        animated = np.linalg.norm(np.diff(near, axis=0), axis=-1) * self.motion.rate
        most = _FASTER * np.nanmax(animated, initial=0.0)
        return bool(self._too_fast(sample, centres, max(_WILD, most)).any())

    def _too_fast(self, sample: int, centres: np.ndarray, most: float = _FASTEST) -> np.ndarray:
        """(S,) which segments move faster [m/s] than any motion."""
        before = self.log.body_positions[-1] if sample else centres
        moved = np.linalg.norm(centres - before, axis=1)
        return ~(moved * self.motion.rate < most)

    def _demand_whole(self, sample: int, centres: np.ndarray) -> None:
        """Raise SimulationError if the engine has thrown the body about."""
        fast = self._too_fast(sample, centres)
        if not fast.any():
            return
        raise SimulationError(
            f"The simulation of '{self.motion.name}' blew up at frame "
            f"{self.motion.frame(sample):g}, at the {SEGMENTS[int(np.argmax(fast))]}: "
            + self._advice(sample / self.motion.rate)
        )

    def _advice(self, time: float) -> str:
        """What to do about a simulation that blew up at a time [s]."""
        pushes = [p for p in self.scenario.pushes if 0 <= time - p.start <= p.duration + _AFTER]
        if not pushes:
            return "take softer gains (a lower frequency) or a higher rate."
        push = max(pushes, key=lambda one: one.peak)
        part = push.segment.replace("_", " ")
        return f"the push of {push.peak:.0f} N on the {part} is too much, give it less force."

    def observe(self, sample: int) -> Observation:
        """What `Recording.add` wants to know of a sample that has just been reached."""
        spent = np.abs(self.efforts)
        if self.weights:  # what holds a joint to the animation is no torque of the body's
            spent = spent * self.weights.joints[sample * len(spent)]
        things = self.world.things() if self.scenario.things else None
        effort = float(spent.sum()) / len(spent)
        centres, turns = self.world.body_transforms()
        contacts, last = self.world.contacts(), self.efforts[-1].copy()
        blows, held = self._mean_blows(), self._mean_pulls()
        presses = self.world.presses() if self.world.meets_more else None
        return Observation(centres, turns, contacts, things, effort, last, blows, held, presses)

    def _mean_pulls(self) -> np.ndarray | None:
        """What Observation has of holds."""
        if not self.scenario.holds:
            return None
        held = self.world.held
        found = np.full((len(held), 6), np.nan)
        found[:, :3], found[:, 3] = self._pulls[..., :3].mean(0), self._pulls[..., 3].max(0)
        found[:, 4] = self.world.gaps()
        found[:, 5] = [one.broken for one in held]
        return found

    def _mean_blows(self) -> np.ndarray | None:
        """What Observation has of blows."""
        if not len(self._blows):
            return None
        found = np.zeros((len(self._blows), 6))
        found[:, :3] = self._blows[:, :3] * self.motion.rate
        hit = self._blows[:, 3] > 0
        found[hit, 3:] = self._blows[hit, 4:] / self._blows[hit, 3:4]
        return found

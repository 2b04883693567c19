# SPDX-License-Identifier: GPL-3.0-or-later
"""The loop: reference, torques, step, record. A generator that yields sample by sample."""

import time
from dataclasses import dataclass

import numpy as np

from . import tracking
from .balance import EDGE_SHARE, Legs, Sole, press, wanted_wrench
from .exceptions import SettingsError, SimulationError
from .gains import BALANCE_MODES, Gains
from .measures import Measures
from .momentum import GRAVITY
from .recording import Recording
from .reference import Reference
from .rotations import matrix_from_quaternion
from .skeleton import SEGMENTS
from .stance import SIMULATED_CLEARANCE
from .world import World

#: The mass matrix changes slowly: it is taken anew every so many seconds.
_INERTIA_PERIOD = 1 / 75
#: SCA12's motor noise of 5 N m is drawn every 0.3 ms; at another step it shrinks with the root.
NOISE_STEP = 0.0003
_SINK = 0.0003  # [m] the soles start below the floor, as deep as they stand later


@dataclass(frozen=True)
class Settings:
    """How to simulate.

    rate: control and physics rate [Hz]. balance: "foot_forces" or "virtual_forces" (SCA12).
    tracking: "stable_pd" or "explicit_pd". noise: motor noise [N m] as SCA12 counts it (their
    value is 5). seed: of the noise. torque_limit: largest torque of a joint [N m] of an adult of
    71 kg and 1.80 m, scaled to the body. duration: loop the clip to this length [s], None for the
    clip as it is. cutoff: low-pass of the reference [Hz], None to choose.
    """

    rate: float = 300.0
    balance: str = "foot_forces"
    tracking: str = "stable_pd"
    noise: float = 0.0
    seed: int = 0
    torque_limit: float = 300.0
    duration: float | None = None
    cutoff: float | None = None

    def __post_init__(self):
        def demand(condition, problem):
            if not condition:
                raise SettingsError(problem)

        demand(
            50 <= self.rate <= 10000,
            f"A control rate of {self.rate:g} Hz is out of range: give 50 to 10000 Hz.",
        )
        demand(
            self.balance in BALANCE_MODES,
            f"There is no balance mode '{self.balance}': use {', '.join(BALANCE_MODES)}.",
        )
        demand(
            self.tracking in tracking.MODES,
            f"There is no tracking mode '{self.tracking}': use {', '.join(tracking.MODES)}.",
        )
        demand(0 <= self.noise <= 1000, "Motor noise must be from 0 to 1000 N m.")
        demand(self.torque_limit > 0, "The torque limit must be above 0 N m.")


class Simulation:
    """One character performing one motion.

    Iterate over it: each turn advances to the next sample of the motion and yields its index,
    from 0 to the last one or to where a measure exceeded its maximum. `recording` grows with it.
    """

    def __init__(self, character, motion, gains=None, settings=None):
        self.character = character
        self.motion = motion
        self.settings = settings or Settings()
        self.gains = gains or Gains.default(character, self.settings.balance)
        self.reference = Reference.build(
            character, motion, self.settings.rate, self.settings.duration, self.settings.cutoff
        )
        self.rate = self.reference.rate
        self.measures = Measures(motion.rate)
        self.recording = Recording(character, motion, self.reference, self.measures)
        self.world = None

    def __len__(self):
        """Samples in the whole motion."""
        return len(self.reference)

    def __iter__(self):
        started = time.perf_counter()
        self.world = World(self.character, self.rate)
        try:
            for sample in self._run():
                self.recording.wall_time += time.perf_counter() - started
                yield sample
                started = time.perf_counter()
        finally:
            self.world.close()

    def run(self):
        """Simulate to the end. Returns the Recording."""
        for _ in self:
            pass
        return self.recording

    def _run(self):
        reference, world = self.reference, self.world
        controller = Controller(self.character, reference, self.gains, self.settings, world)
        root, frame, velocity, angular = reference.start
        # Stand on the floor, neither above it nor in it.
        lift = self.character.ground - reference.lowest - _SINK
        world.reset(
            root + [0, 0, lift],
            frame,
            velocity,
            angular,
            reference.angles[0],
            reference.speeds[0],
        )
        steps = reference.steps_per_sample
        efforts = np.zeros((steps, self.character.dofs))
        step = 0
        for sample in range(len(reference)):
            if sample:
                for i in range(steps):
                    efforts[i] = controller.torques(step)
                    world.apply(efforts[i])
                    world.step()
                    step += 1
            if not self._record(sample, controller.low_feet(), efforts):
                yield sample
                return
            yield sample

    def _record(self, sample, low, efforts):
        """Take down a sample. Returns False when the trial is over."""
        world, reference = self.world, self.reference
        centres, frames = world.body_transforms()
        if not np.isfinite(centres).all() or np.abs(centres).max() > 1e4:
            worst = SEGMENTS[int(np.argmax(~np.isfinite(centres).all(1)))]
            raise SimulationError(
                f"The simulation of '{self.motion.name}' blew up at frame "
                f"{self.motion.frame(sample):g}, at the {worst}: lower the gains or raise the rate."
            )
        touch, forces = world.contacts()
        effort = float(np.abs(efforts).sum(1).mean())
        return self.recording.add(sample, centres, frames, touch, forces, low, effort, efforts[-1])


class Controller:
    """Torques of one step from the state of the world: tracking, balance, limits, noise."""

    def __init__(self, character, reference, gains, settings, world):
        self.reference, self.world = reference, world
        stiffness, damping = gains.per_dof(character)
        self.step = 1 / reference.rate
        self.tracker = tracking.make(settings.tracking, stiffness, damping, self.step)
        self.weights = {False: gains.single, True: gains.dual}
        self.mass = character.mass
        self.weight = np.array([0, 0, character.mass * GRAVITY])
        size = character.mass * character.height / (71 * 1.80)
        self.limit = settings.torque_limit * size
        scale = settings.noise * np.sqrt(NOISE_STEP * reference.rate) * size
        self.noise = scale if settings.noise else 0.0
        self.random = np.random.default_rng(settings.seed)
        self.balance = getattr(self, f"_{settings.balance}")
        self.feedforward = settings.balance == "foot_forces"
        self.ground = character.ground
        self.corners = np.stack([foot.corners for foot in character.feet])
        self.reach = [
            (EDGE_SHARE * f.heel, EDGE_SHARE * f.toe, EDGE_SHARE * f.half_width)
            for f in character.feet
        ]
        legs = len(world.leg_links) // 2
        self.leg_columns = np.array(world.leg_links)
        self.leg_axes = _axes_of(character, world.leg_links)
        self.legs = legs
        self.period = max(1, round(_INERTIA_PERIOD * reference.rate))
        self.inertia = None
        self.com = None

    def torques(self, step):
        """(dofs,) joint torques [N m] for the step that begins now."""
        state = self.world.state()
        reference = self.reference
        local_angular = state.angular @ state.frame
        local_linear = state.linear @ state.frame
        speeds = np.concatenate((local_angular, local_linear, state.speeds))
        if step % self.period == 0:
            self.inertia = self.world.mass_matrix(state.angles)
            self.tracker.refresh(self.inertia)
            self._root_rows = self.inertia[:6].copy()
            self.local_com = (
                np.array([self.inertia[2, 4], self.inertia[0, 5], self.inertia[1, 3]]) / self.mass
            )
        momenta = self._root_rows @ speeds
        linear = momenta[3:]
        self.com = state.root + state.frame @ self.local_com
        self.com_velocity = state.frame @ (linear / self.mass)
        local = self.local_com
        spin = momenta[:3].copy()
        spin[0] -= local[1] * linear[2] - local[2] * linear[1]
        spin[1] -= local[2] * linear[0] - local[0] * linear[2]
        spin[2] -= local[0] * linear[1] - local[1] * linear[0]
        self.momentum = state.frame @ spin
        # The centre of mass moves on between two mass matrices.
        self.local_com = local + (linear / self.mass - local_linear - _cross3(local_angular, local)) * self.step
        bias = self.world.bias(state, local_angular, local_linear, self.inertia)
        if self.feedforward:
            wanted = reference.accelerations[step].copy()
            wanted[:3] = wanted[:3] @ state.frame
            wanted[3:6] = wanted[3:6] @ state.frame
            known = self.inertia @ wanted
            bias += known
        else:
            known = -bias
        torques = self.tracker.torques(
            state.angles,
            state.speeds,
            reference.angles[step + 1],
            reference.speeds[step + 1],
            known,
        )
        self.balance(step, state, bias, torques)
        limit = self.limit
        np.clip(torques, -limit, limit, out=torques)
        if self.noise:
            torques += self.random.uniform(-self.noise, self.noise, len(torques))
        return torques

    def low_feet(self):
        """(2,) which soles are on or just above the floor."""
        return self._standing(self._legs_now(self.world.state()))

    def _legs_now(self, state):
        links = state.links
        frames = matrix_from_quaternion(links[:, [6, 3, 4, 5]])
        count = self.legs
        axes = frames[self._rows, :, self.leg_axes].reshape(2, count, 3)
        anchors = links[:, :3].reshape(2, count, 3)
        return Legs(axes, anchors, anchors[:, -1], frames.reshape(2, count, 3, 3)[:, -1])

    @property
    def _rows(self):
        return np.arange(len(self.leg_axes))

    def _standing(self, legs):
        """Which feet stand: those with a sole corner close to the floor."""
        heights = legs.ankles[:, 2, None] + np.einsum("si,sci->sc", legs.feet[:, 2], self.corners)
        return heights.min(1) - self.ground < SIMULATED_CLEARANCE

    def _errors(self, step, state, legs):
        """Errors of the centre of mass, its velocity, the trunk and the angular momentum."""
        reference = self.reference
        base = self._base(step, legs)
        error = reference.com[step] - self.com
        error[:2] += base - reference.base[step]
        velocity = reference.com_velocity[step] - self.com_velocity
        turn = reference.pelvis[step] @ state.frame.T
        momentum = reference.momentum[step] - self.momentum
        return error, velocity, _vector(turn), momentum

    def _sole(self, legs, side):
        """The plan of a foot on the floor."""
        x, y, _ = legs.ankles[side].tolist()
        ahead_x, ahead_y = legs.feet[side, :2, 0].tolist()
        size = (ahead_x * ahead_x + ahead_y * ahead_y) ** 0.5 or 1.0
        return Sole(x, y, ahead_x / size, ahead_y / size, *self.reach[side])

    def _base(self, step, legs):
        """Base of support (SCA12, equation 9), by the stance of the reference."""
        support = self.reference.support[step]
        if support in (1, 2):
            return legs.ankles[support - 1, :2]
        return (legs.ankles[0, :2] + legs.ankles[1, :2]) / 2

    def _foot_forces(self, step, state, bias, torques):
        """Spread the wanted wrench over the feet and let the legs press it."""
        legs = self._legs_now(state)
        standing = self._standing(legs)
        torques += bias[6:]
        if not standing.any():
            return
        load = self.reference.load[step] * standing
        if load[0] + load[1] < 0.05:
            load = standing.astype(float)
        error, velocity, turn, momentum = self._errors(step, state, legs)
        weights = self.weights[bool(standing.all())]
        force, torque = wanted_wrench(weights, error, velocity, turn, momentum)
        force = force + self.mass * self.reference.com_acceleration[step] + self.weight
        torque = torque + self.reference.momentum_rate[step]
        left, right = (self._sole(legs, i) for i in (0, 1))
        points, forces, moments = press(
            force, torque, self.com, self.ground, left, right, (load / load.max()).tolist()
        )
        joint = legs.transposed_jacobian(points, forces, moments)
        torques[self.leg_columns] -= joint.ravel()

    def _virtual_forces(self, step, state, bias, torques):
        """SCA12, equations 5 to 16: a force at the centre of mass and torques at the pelvis,
        through the legs that stand, half each if both do."""
        legs = self._legs_now(state)
        standing = self._standing(legs)
        count = standing.sum()
        if not count:
            return
        error, velocity, turn, momentum = self._errors(step, state, legs)
        weights = self.weights[bool(count == 2)]
        force, torque = wanted_wrench(weights, error, velocity, turn, momentum)
        share = (standing / count)[:, None]
        points = np.broadcast_to(self.com, (2, 3))
        joint = legs.transposed_jacobian(points, share * force, share * torque)
        torques[self.leg_columns] -= joint.ravel()


def _axes_of(character, links):
    """Coordinate axis of each link's hinge."""
    axes = [axis for joint in character.joints for axis in joint.axes]
    return np.array([axes[link] for link in links])


def _cross3(a, b):
    return np.array(
        (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])
    )


def _vector(matrix):
    """Exponential map (3,) of a rotation matrix (3, 3)."""
    (a, b, c), (d, e, f), (g, h, i) = matrix.tolist()
    vector = np.array((h - f, c - g, d - b)) * 0.5
    sine = float(np.sqrt(vector @ vector))
    cosine = (a + e + i - 1) / 2
    if sine < 1e-9:
        return vector
    return vector * (np.arctan2(sine, cosine) / sine)


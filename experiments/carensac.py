# SPDX-License-Identifier: GPL-3.0-or-later
"""Walks at low rates of control: what Carensac, Pronost and Bouakaz, "Physics-based control of
walking virtual characters in low frequency simulations" (CASA 2018) report of theirs, for ours.

An endless captured walk, with the noise of a search, at rates of control and physics that are
multiples of the clip's own 60 Hz: who walks to the end, undisturbed and pushed from anywhere; what
a step costs; how often few corners of a sole carry, or its centre of pressure is near an edge
(their Figure 1); and by which common factor on all gains the walk can be softened and stiffened
before it falls or is no more within 5 % of its speed (their Figure 2 searches each gain by CMA-ES).
All but the last also with a *ground contact stabiliser*.
"""

import sys
import time
from dataclasses import replace

import numpy as np

from ..controller import Gains, Settings, Simulation
from ..controller.body.character import Character
from ..controller.control.foot_forces import FootForces
from ..controller.control.foot_hold import FootHold
from ..controller.control.legs import AXES
from ..controller.exceptions import SimulationError
from ..controller.geometry.skeleton import FEET
from ..controller.geometry.stance import LEFT, RIGHT
from ..controller.reference.gait import Walk, find_cycle
from ..controller.search.trial import NOISE
from ..controller.simulation.scenario import Push, Scenario
from .clips import read

CLIP = "walk"
RATES = (60, 120, 180, 240, 300, 600)  # [Hz]
SEEDS, SECONDS = 4, 20.0
PUSH, LASTING, EVERY = 50.0, 0.3, 3.0  # [N], [s], [s]
#: Of the ground's force, how much there is to be on each half of a sole (their l_cor, l_sag); less
#: force is no contact to stabilise [N].
LEAST, WEAK = 0.15, 100.0
#: A part of a sole is down by at least so much.
DOWN = 0.5
#: Where a leg has the pitch and the roll of its ankle.
ANKLE = AXES - 3, AXES - 2
#: Common factors on all gains that are tried; how long; how far off the speed may be.
SOFTEST, STIFFEST, HALVINGS = 0.05, 20.0, 5
TRIED, SPEED = 10.0, 0.05  # [s], share


class Stabiliser(FootHold):
    """Torques of the ankles that take the centre of pressure of either foot to where at least LEAST
    of its force is on each half of the sole: along the foot while all of it is down, across it
    always. Theirs are sampled by CMA-ES on a model without arms, head and the other leg; of a foot
    without mass they are known, and with the smallest torques."""

    world = None

    def add_to(self, torques, state, share):
        """The springs' torques and these, to those of all joints (dofs,) [N m]."""
        super().add_to(torques, state, share)
        contacts = self.world.contacts()
        parts = zip(self._legs.soles, contacts.forces, contacts.cops, strict=True)
        for foot, (sole, force, cop) in enumerate(parts):
            if force[2] < WEAK:
                continue
            moment = np.cross(moved(sole, cop), force)
            for axis in ANKLE:
                dof = self._legs.dofs.start + foot * AXES + axis
                torques[dof] -= share * (self._legs.axes[foot, axis] @ moment)


def moved(sole, cop):
    """(3,) by how much the centre of pressure (3,) of a sole is to move [m]."""
    ahead = np.array([sole.ahead_x, sole.ahead_y, 0.0])
    left = np.array([-sole.ahead_y, sole.ahead_x, 0.0])
    arm = np.array([cop[0] - sole.x, cop[1] - sole.y, 0.0])
    shift = (within(arm @ left, sole.right, sole.left) - arm @ left) * left
    if min(sole.heel_down, sole.ball_down) > DOWN:
        shift += (within(arm @ ahead, sole.heel, sole.tip) - arm @ ahead) * ahead
    return shift


def within(value, low, high):
    """A value with room to both ends."""
    room = LEAST * (high - low)
    return min(max(value, low + room), high - room)


class Stabilised(FootForces):
    """Balance with it."""

    holder = Stabiliser

    def __init__(self, character, reference, gains, settings, world):
        super().__init__(character, reference, gains, settings, world)
        self.foot_hold.world = world


class Walker:
    """A captured walk that goes on and on."""

    def __init__(self, name):
        self.motion = read(name)
        self.character = Character.from_motion(self.motion)
        self.cycle = find_cycle(self.character, self.motion)
        self.gains = Gains.default(self.character)
        self.speed = Walk(self.cycle, SECONDS).speed(self.motion.rate)

    def performed(self, rate, seconds, seed, pushes=(), factor=1.0, balance=None):
        """(whether it walks to the end, Recording, CPU seconds a step)."""
        endless = Walk(self.cycle, seconds).motion(self.character, self.motion)
        simulation = Simulation(
            self.character,
            endless,
            self._scaled(factor),
            settings=Settings(rate=rate, noise=NOISE, seed=seed),
            scenario=Scenario(pushes=pushes),
            balance=balance,
        )
        started = time.process_time()
        try:
            walks = simulation.run().success
        except SimulationError:  # it was thrown about
            walks = False
        recording = simulation.recording
        steps = max(1, len(recording) - 1) * simulation.reference.steps_per_sample
        return walks, recording, (time.process_time() - started) / steps

    def _scaled(self, factor):
        """The gains, those of the joints times a factor."""
        stiffness, damping = self.gains.stiffness, self.gains.damping
        return replace(self.gains, stiffness=factor * stiffness, damping=factor * damping)

    def walks(self, rate, factor):
        """Whether it walks at its speed with gains times a factor."""
        walks, recording, _ = self.performed(rate, TRIED, 1, factor=factor)
        return walks and abs(speed_of(recording) / self.speed - 1) <= SPEED

    def extreme(self, rate, factor):
        """The factor nearest to that one with which it still walks; None if it does with none."""
        if self.walks(rate, factor):
            return factor
        good, bad = 1.0, factor
        if not self.walks(rate, good):
            return None
        for _ in range(HALVINGS):
            middle = float(np.sqrt(good * bad))
            good, bad = (middle, bad) if self.walks(rate, middle) else (good, middle)
        return good


def speed_of(recording):
    """Of a walk's second half [m/s]."""
    com = recording.com[len(recording) // 2 :, :2]
    return float(np.linalg.norm(com[-1] - com[0])) / (len(com) - 1) * recording.motion.rate


def pushes(seed):
    """Pushes from anywhere, all along."""
    random = np.random.default_rng(seed)
    found = []
    for start in np.arange(EVERY, SECONDS - LASTING, EVERY):
        angle = random.uniform(-np.pi, np.pi)
        force = PUSH * np.array([np.cos(angle), np.sin(angle), 0.0])
        found.append(Push(float(start), LASTING, tuple(force)))
    return tuple(found)


def unbalanced(recording):
    """Of single stance, the shares in which fewer than three corners carry, and in which less than
    LEAST of the force is on one side of the sole, or on its front or back half."""
    few, aside, along = [], [], []
    corners = recording.sole_corners(slice(None))
    frames = recording.joints()
    for side, state in enumerate((LEFT, RIGHT)):
        single = np.flatnonzero(recording.stance == state)
        single = single[np.isfinite(recording.cops[single, side]).all(-1)]
        few.append(recording.carrying[single] < 3)
        sole, cop = corners[single, side], recording.cops[single, side]
        middle = sole.mean(1)
        ahead = sole[:, :, :2] - frames[single][:, FEET[side], None, :2]
        # The foot's own axes: along it from heel to tip, and across.
        _, _, axes = np.linalg.svd(ahead - ahead.mean(1, keepdims=True))
        for axis, shares in ((0, along), (1, aside)):
            way = axes[:, axis]
            reach = np.einsum("npi,ni->np", sole[..., :2] - middle[:, None, :2], way)
            at = np.einsum("ni,ni->n", cop[:, :2] - middle[:, :2], way)
            share = (at - reach.min(1)) / np.ptp(reach, axis=1)
            shares.append((share < LEAST) | (share > 1 - LEAST))
    return tuple(float(np.concatenate(found).mean()) for found in (few, aside, along))


def row(walker, rate, balance):
    """The cells of one rate, with a balance.Balance or None for the usual one."""
    seeds = range(1, SEEDS + 1)
    runs = [walker.performed(rate, SECONDS, seed, balance=balance) for seed in seeds]
    pushed = [
        walker.performed(rate, SECONDS, seed, pushes(seed), balance=balance) for seed in seeds
    ]
    good = [recording for walks, recording, _ in runs if walks]
    yield f"{len(good)}"
    yield f"{sum(walks for walks, _, _ in pushed)}"
    if not good:
        yield from [""] * 6
        return
    yield f"{1e3 * np.median([cost for _, _, cost in runs + pushed]):.2f}"
    yield f"{np.mean([speed_of(recording) for recording in good]):.2f}"
    few, aside, along = np.mean([unbalanced(recording) for recording in good], axis=0)
    for share in (few, aside, along):
        yield f"{share:.0%}"
    if balance is not None:
        yield ""
        return
    least, most = (walker.extreme(rate, factor) for factor in (SOFTEST, STIFFEST))
    if least is None:
        yield "none"
    else:
        beyond = " or less" * (least == SOFTEST), " or more" * (most == STIFFEST)
        yield f"{least:.2f}{beyond[0]} to {most:.2g}{beyond[1]}"


def main(rates):
    """Print the table."""
    walker = Walker(CLIP)
    print(f"{CLIP}, {walker.speed:.2f} m/s; {SEEDS} runs of {SECONDS:g} s each")
    heads = (
        "rate [Hz]",
        "stabiliser",
        "walk to the end",
        f"pushed by {PUSH:g} N",
        "a step [ms]",
        "speed [m/s]",
        "few corners",
        "near a side",
        "near heel or tip",
        "factor on gains",
    )
    print("| " + " | ".join(heads) + " |")
    print("|---|" + "---|" * (len(heads) - 1))
    for rate in rates or RATES:
        for name, balance in (("off", None), ("on", Stabilised)):
            cells = f"{rate:g}", name, *row(walker, rate, balance)
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main([float(rate) for rate in sys.argv[1:]])

# SPDX-License-Identifier: GPL-3.0-or-later
"""What a simulation did: one record for preview, report and bake."""

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from ..body.character import Character
from ..body.foot import parts_down
from ..body.sole import Ground
from ..contacts.contact_finding import uncarried
from ..control.outside import outside_words
from ..falls.loss import BalanceLoss
from ..falls.strength import Strength
from ..gains.physics_weights import PhysicsWeights
from ..geometry.motion import Motion
from ..geometry.rotations import (
    exponential,
    matrix_from_quaternion,
    multiply,
    quaternion_from_matrix,
)
from ..geometry.skeleton import (
    FEET,
    LANDMARK_INDEX,
    SEGMENT_INDEX,
    SEGMENTS,
    SIDES,
    TOES,
    hanging_on,
    segment_name,
)
from ..geometry.stance import FLIGHT, LEFT, RIGHT, SIMULATED_CLEARANCE, SIMULATED_SPEED, phases_of
from ..geometry.trajectory import butterworth
from ..reference.commands import Followed
from ..reference.gait import Endless
from ..reference.hand_back import stepped_back
from ..reference.lying import Hold
from ..reference.performed import Changed
from ..reference.played import WHOLE, Part, followed_in
from ..reference.reference import Reference
from ..reference.state_machine import FALL, GET_UP, State, visited
from ..reference.waypoints import sampled
from ..support.seats import borne
from .holds import at_times
from .measures import MEASURES, NAMES, Measures, pose_error, slide_speed
from .scenario import Scenario
from .world import Contacts

#: [Hz] of what counts as slow in how an animation's ankles differ from those of perfect hinges: a
#: body of 1 m on its ankles sways at sqrt(g / h) / 2 pi, which is that.
_SWAY = 0.5
#: [m/s] of a segment that does not move: too slow to be seen.
_REST = 0.005
#: [m/s] more than the animation's, at which a body does not stumble but is thrown. By judgement:
#: who runs into a wall loses as much.
_THROWN = 4.0
#: [m, and half of rad] by which a sample differs from the animation that is not exactly it.
_AWAY = 1e-6
#: A time that is a sample's is so near to it, in samples.
_ROUNDED = 1e-6
#: A plane has so many corners.
_CORNERS = 3


class Observation(NamedTuple):
    """A sample that has just been reached, as `Recording.add` takes it.

    centres (S, 3) [m] and turns (S, 4), w first, of the body. contacts; things: positions (T, 3)
    and orientations (T, 4) of World.things, None without things; effort: summed torques, in the
    mean since the last sample, and torques (dofs,): the last ones [N m]. blows: (L, 6) force [N]
    with which each limb of another body has pressed this one, in the mean since the last sample,
    and where [m]; None without limbs. held: (H, 6) force [N] with which each hold has pulled the
    body, in the mean since the last sample, the largest over a while, how far [m] the point is
    from where it is held, NaN where nothing holds it, and 1 where it has broken; None without
    holds. presses: as World.presses gives them, None where feet alone meet anything.
    """

    centres: np.ndarray
    turns: np.ndarray
    contacts: Contacts
    things: tuple[np.ndarray, np.ndarray] | None
    effort: float
    torques: np.ndarray
    blows: np.ndarray | None = None
    held: np.ndarray | None = None
    presses: np.ndarray | None = None

    def plain(self) -> tuple[Any, ...]:
        """The same without classes, for another process, which knows the package by another
        name."""
        return self.centres, self.turns, tuple(self.contacts), *self[3:]

    @classmethod
    def of(cls, plain: Sequence[Any]) -> "Observation":
        """The one that `plain` gave."""
        centres, turns, contacts, *rest = plain
        return cls(centres, turns, Contacts(*contacts), *rest)


class Hit(NamedTuple):
    """Another body meets this one: from which sample on, whose, with which part of it above all,
    with what impulse [N s] in all, and force [N] at most, in the mean of a sample."""

    sample: int
    by: str
    part: str
    impulse: float
    force: float


class Grasp(NamedTuple):
    """How a hold went: its name, the limb, the samples between which it held (None where it never
    did), whether it broke at the last one, the greatest force [N] over a while, and how far [m] the
    limb was from where it was held at most."""

    name: str
    limb: str
    began: int | None
    ended: int | None
    broke: bool
    force: float
    gap: float


def hit_words(by: str, part: str, impulse: float, force: float, frame: float) -> str:
    """A Hit, and the frame from which on it was, in a sentence without an end."""
    where = part.replace("_", " ")
    return (
        f"'{by}' ({where}) hits it at frame {frame:g} with {force:.0f} N, {impulse:.1f} N s in all"
    )


class Recording:
    """Samples of one simulation, in the order of the motion's. n is how many there are."""

    def __init__(
        self,
        character: Character,
        motion: Motion,
        reference: Reference,
        measures: Measures,
        scenario: Scenario,
    ) -> None:
        count, dofs, things = len(reference), character.dofs, len(scenario.things)
        self.character, self.motion, self.reference = character, motion, reference
        self.measures = measures
        #: What happened to the character.
        self.scenario = scenario
        #: Where not all of the body is simulated throughout.
        self.weights: PhysicsWeights | None = None
        #: Where it has not all of its strength; and whether it is to get up where it falls.
        self.strength: Strength | None = None
        self.gets_up = False
        #: Recovery steps: (time [s], 0 for the left or 1 for the right foot) each.
        self.steps: list[tuple[float, int]] = []
        #: The foot that takes one now, 0 or 1, or None: it does not stand, however low it is.
        self.swing: int | None = None
        #: What is under either foot now, where there is more to stand on than the floor.
        self.grounds: list[Ground] | None = None
        #: (3, 3) how the body has turned from a reference that goes straight on.
        self.turn: np.ndarray | None = None
        self.wall_time = 0.0
        #: Samples until balance was lost, where the body has fallen from there on, and until it was
        #: lost again by a body that stood again; how deep [m] it has been in what it lies on.
        self.stood: int | None = None
        self.fell_again: list[int] = []
        self.deepest = 0.0
        #: Samples until it began to get up for the last time, if it does.
        self.rested: int | None = None
        #: From which sample on it falls, and gets up, each time.
        self._downs: list[tuple[int, State]] = []
        #: Samples until it stood again, each time, and the parts of its walk that began there.
        self.stood_again: list[int] = []
        self.parts: list[Part] = []
        #: Which of the animator's get-ups it did, each time; empty of none of them.
        self.ways: list[str] = []
        self._tried: list[str] = []  # since it last stood
        #: Which samples of the animation it shows from then on, if it goes on with that.
        self.shown: list[np.ndarray | None] = []
        #: Whether it was to go on with the animation once it stands.
        self.goes_on = False
        #: Whether it would get up, if what it lies on were level.
        self.is_kept_down = False
        #: Whether who was to roll in the last fall has braced instead.
        self.braces_instead = False
        self._count = 0
        self._upright: bool | None = None  # until somebody asks
        self._toppled: int | None = None  # so is this
        self._centres = np.zeros((count, len(SEGMENTS), 3))
        self._turns = np.zeros((count, len(SEGMENTS), 4))
        self._contacts = np.zeros((count, 2), bool)
        self._forces = np.zeros((count, 2, 3))
        self._cops = np.full((count, 2, 3), np.nan)
        self._carrying = np.zeros(count, int)
        self._slopes = np.zeros((count, 2, 2))
        self._thing_positions = np.full((count, things, 3), np.nan)
        self._thing_turns = np.full((count, things, 4), np.nan)
        self._room = count
        self.meet(())
        self._held = np.full((count, len(scenario.holds), 6), np.nan)
        self._presses = np.zeros((count, len(SEGMENTS), 6))
        self._residual = np.zeros((count, 6))
        #: Samples in which that helped it to get up, and in which it may help a body that stands.
        self._rising, self._standing_helped = np.zeros((2, count), bool)
        self._stance = np.zeros(count, int)
        self._torques = np.zeros((count, dofs))
        self._com = np.zeros((count, 3))
        self._shares = character.masses / character.masses.sum()
        # Where a limb that is held is, the hold says, and not the animation.
        self._unheld = np.ones((len(scenario.holds), len(SEGMENTS)))
        for row, hold in zip(self._unheld, scenario.holds, strict=True):
            row[hanging_on(hold.top)] = 0
        shapes = {shape.segment: shape for shape in character.shapes}
        self._boxes = {
            segment: (
                shapes[SEGMENTS[segment]].size,
                [*map(float, shapes[SEGMENTS[segment]].position)],
            )
            for segment in FEET + TOES
        }
        self._reference_com = np.einsum("fsi,s->fi", reference.smooth.centres, self._shares)

    def __len__(self) -> int:
        return self._count

    def meet(self, others: Sequence[str]) -> None:
        """Take down how other bodies of these names press this one, too, part by part."""
        limbs = [(limb.name, limb.part) for limb in self.scenario.limbs]
        parts = [segment_name(segment) for segment in SEGMENTS]
        #: Whose limbs may press the body, and which: of the scenario, and of who meets it.
        self.blowers = limbs + [(name, part) for name in others for part in parts]
        self._blows = np.zeros((self._room, len(self.blowers), 6))
        self._blowing = np.zeros(len(self.blowers), bool)  # which have, once

    @property
    def partners(self) -> list[str]:
        """Names of all other bodies that this one may meet."""
        return sorted({name for name, _ in self.blowers})

    def add(self, sample: int, seen: Observation) -> bool:
        """Append a sample. Returns False when a measure exceeds its maximum."""
        centres = seen.centres
        touch, forces, cops, drifts, carrying = seen.contacts
        com = self._shares @ centres
        self._centres[sample] = centres
        self._turns[sample] = seen.turns
        self._contacts[sample] = touch
        self._forces[sample] = forces
        self._cops[sample] = cops
        self._carrying[sample] = carrying
        if self.grounds is not None:
            self._slopes[sample] = [(ground.slope_x, ground.slope_y) for ground in self.grounds]
        self._torques[sample] = seen.torques
        if seen.things is not None:
            self._thing_positions[sample], self._thing_turns[sample] = seen.things
        if seen.blows is not None and seen.blows.any():  # what is never written takes no memory
            self._blows[sample] = seen.blows
            self._blowing |= seen.blows[:, :3].any(1)
        if seen.held is not None:
            self._held[sample] = seen.held
        if seen.presses is not None:
            self._presses[sample] = seen.presses
        self._com[sample] = com
        self._count, self._upright, self._toppled = sample + 1, None, None
        smooth = self.reference.smooth.centres[sample]
        smooth_com = self._reference_com[sample]
        if self.turn is not None:
            smooth, smooth_com = smooth @ self.turn.T, self.turn @ smooth_com
        shares, about = self._shares, com
        if self.scenario.holds and self.held[sample].any():
            shares = shares * self._unheld[self.held[sample]].min(0)
            about, smooth_com = (shares @ points / shares.sum() for points in (centres, smooth))
        pose = pose_error(shares, centres, about, smooth, smooth_com)
        stance, slide = self._feet(touch, drifts)
        self._stance[sample] = stance
        if self.stood is not None:
            return True
        differs = float(stance != self.reference.stance[sample])
        if self.weights:  # a body that is held follows the animation, whatever that does
            share = self.weights.regions["root"][sample]
            pose, differs = share * pose, share * differs
            slide *= share == 1  # on the way back feet have to slide
        if self.scenario.holds and self.held[sample].any():
            differs = slide = 0.0  # who is held need not stand
            pose *= not self.hangs
        if self.reference.seats is not None and self.reference.seats.sits[sample]:
            differs = slide = 0.0  # nor need who sits
        return self.measures.add(pose, differs, slide, seen.effort)

    def fall(self) -> None:
        """From now on, samples are those of a fall, which no measure counts."""
        if self.stood is None:
            self.stood = self._count
            self.measures.end()
        elif self.up is not None:
            self.fell_again.append(self._count)
            self._tried.clear()
        self.rested = None
        self._downs.append((self._count, FALL))

    def rise(self, way: str) -> None:
        """From now on, it gets up. way: the animator's get-up that it does, empty if none."""
        self.rested = self._count
        self._downs.append((self._count, GET_UP))
        self._tried.append(way)

    def stands(self, part: Part | None, shown: np.ndarray | None) -> None:
        """From now on, it stands again. part: of its walk that begins there, None of none. shown:
        which samples (n,) of the animation follow, None of one who stands still."""
        self.stood_again.append(self._count)
        self.ways.append(self._tried[-1])
        self.shown.append(shown)
        if part is not None:
            self.parts.append(part)

    @property
    def up(self) -> int | None:
        """Samples until a body that has fallen stood again, None while it does not."""
        return self.stood_again[-1] if len(self.stood_again) > len(self.fell_again) else None

    @property
    def borne(self) -> np.ndarray:
        """(n,) samples in which something else than feet may carry the animation: a hold, or what
        it sits on."""
        found = borne(at_times(self.scenario.holds, self.motion), self.reference.seats)
        return np.zeros(self._count, bool) if found is None else found[: self._count]

    @property
    def hanging_feet(self) -> np.ndarray | None:
        """(n, 2) feet of the animation that are in the air meanwhile; None where that never is."""
        borne = self.borne
        if not borne.any():
            return None
        stands = self.reference.stance[: self._count, None] & [LEFT, RIGHT] > 0
        return borne[:, None] & ~stands

    def is_down(self, sample: int) -> bool:
        """Whether the body falls, lies or gets up at a sample."""
        if self.stood is None:
            return False
        falls = sum(sample >= fell for fell in (self.stood, *self.fell_again))
        return falls > sum(sample >= stood for stood in self.stood_again)

    def lies(self, is_kept_down: bool) -> None:
        """It lies still. is_kept_down: it would get up, if what it lies on were level."""
        self.is_kept_down = is_kept_down

    @property
    def followed(self) -> list[Followed]:
        """What came of the commands of its walk, if it is led by such."""
        if not isinstance(self.motion, Endless) or not self.motion.walk.commands:
            return []
        return followed_in(self.motion, self.character, self.com, self._stood_until, self.parts)

    @property
    def states(self) -> list[tuple[int, State]]:
        """What a body that walks on is in, from which sample on each; empty of any other."""
        if not isinstance(self.motion, Endless):
            return []
        motion, found = self.motion, list(self._downs)
        flies = motion.walk.flies(self.character, motion.source)
        for part, end in zip((WHOLE, *self.parts), self._stood_until, strict=True):
            own = part.of(motion.walk, motion.rate)
            own = own if motion.walk.commands else motion.walk
            told = visited(own, motion.rate, end - part.since, flies)
            found += [(part.since + at, state) for at, state in told]
        return sorted(found, key=lambda one: one[0])

    @property
    def _stood_until(self) -> list[int]:
        """Samples until it lost its balance, or to the end, of a walk's beginning and of each part
        that followed."""
        ends = self.stood, *self.fell_again, self._count
        return [end for end in ends if end is not None][: 1 + len(self.parts)]

    def add_help(self, sample: int, wrench: np.ndarray, rises: bool) -> None:
        """As simulation.Log has it."""
        self._residual[sample] = wrench
        self._rising[sample], self._standing_helped[sample] = rises, not rises

    def keep(self, count: int) -> None:
        """Forget all samples but the first `count`."""
        self._count, self._upright, self._toppled = min(self._count, count), None, None
        if self.stood is not None and count < self.stood:
            self.stood = None
            after = self.fell_again, self.stood_again, self.ways, self.parts, self.shown
            for events in (*after, self._downs):
                events.clear()
            self._tried.clear()
        self._residual[count:] = 0
        self._rising[count:] = self._standing_helped[count:] = False
        if self.stood is None:  # else they have ended where it first fell
            self.measures.keep(self._count)
        if self._count:
            last = self._count - 1
            self._plans = [self._sole(last, foot)[:2] for foot in FEET]

    def _feet(self, touch: Sequence[bool], drifts: Sequence[Sequence[float]]) -> tuple[int, float]:
        """Stance state of the newest sample, and the horizontal speed of the feet that stand,
        relative to what they stand on."""
        sample = self._count - 1
        plans, speeds, stance = [], [], 0
        for foot, bit in enumerate((LEFT, RIGHT)):
            x, y, lowest = self._sole(sample, FEET[foot])
            lowest = min(lowest, self._sole(sample, TOES[foot])[2])
            plans.append((x, y))
            before = self._plans[foot] if sample else (x, y)
            drift_x, drift_y = drifts[foot] if sample else (0.0, 0.0)
            speed_x = (x - before[0]) * self.motion.rate - drift_x
            speed_y = (y - before[1]) * self.motion.rate - drift_y
            speeds.append(math.hypot(speed_x, speed_y))
            if self.scenario.colliders:  # what is under it is anywhere
                near = touch[foot]
            else:
                near = lowest < self.character.ground + SIMULATED_CLEARANCE
            near = near and foot != self.swing
            if near and (touch[foot] or speeds[foot] < SIMULATED_SPEED):
                stance += bit
        self._plans = plans
        return stance, slide_speed(stance, speeds)

    def _sole(self, sample: int, segment: int) -> tuple[float, float, float]:
        """Plan of the middle of a sole (x, y), and height of its lowest corner [m]."""
        centre, (w, i, j, k) = self._centres[sample, segment], self._turns[sample, segment].tolist()
        (half_x, half_y, half_z), (a, b, c) = self._boxes[segment]
        x = (1 - 2 * (j * j + k * k)) * a + 2 * (i * j - w * k) * b + 2 * (i * k + w * j) * c
        y = 2 * (i * j + w * k) * a + (1 - 2 * (i * i + k * k)) * b + 2 * (j * k - w * i) * c
        up_x, up_y = 2 * (i * k - w * j), 2 * (j * k + w * i)
        up_z = 1 - 2 * (i * i + j * j)
        z = up_x * a + up_y * b + up_z * c
        z -= half_x * abs(up_x) + half_y * abs(up_y) + half_z * up_z
        at_x, at_y, at_z = centre.tolist()
        return at_x + x, at_y + y, at_z + z

    @property
    def _frames(self) -> np.ndarray:
        return matrix_from_quaternion(self._turns[: self._count])

    @property
    def body_positions(self) -> np.ndarray:
        """(n, S, 3) centres of mass of the segments [m]."""
        return self._centres[: self._count]

    @property
    def body_rotations(self) -> np.ndarray:
        """(n, S, 4) orientations of the segments, w first."""
        return self._turns[: self._count]

    @property
    def com(self) -> np.ndarray:
        """(n, 3) centre of mass [m]."""
        return self._com[: self._count]

    @property
    def contacts(self) -> np.ndarray:
        """(n, 2) whether the left and the right foot touch the floor."""
        return self._contacts[: self._count]

    @property
    def contact_forces(self) -> np.ndarray:
        """(n, 2, 3) force of the floor on the left and the right foot [N]."""
        return self._forces[: self._count]

    @property
    def cops(self) -> np.ndarray:
        """(n, 2, 3) centre of pressure under the left and the right foot [m]; NaN in the air."""
        return self._cops[: self._count]

    @property
    def thing_positions(self) -> np.ndarray:
        """(n, T, 3) centres of mass of the scenario's things [m]; NaN before they start."""
        return self._thing_positions[: self._count]

    @property
    def thing_rotations(self) -> np.ndarray:
        """(n, T, 4) orientations of the scenario's things, w first; NaN before they start."""
        return self._thing_turns[: self._count]

    @property
    def presses(self) -> np.ndarray:
        """(n, S, 6) force [N] with which floor and colliders press each segment but the feet, and
        where [m]."""
        return self._presses[: self._count]

    @property
    def blows(self) -> np.ndarray:
        """(n, L, 6) force [N] with which each of the `blowers` presses the body, in the mean since
        the last sample, and where [m]; zeros where they do not."""
        return self._blows[: self._count]

    def hits(self) -> list[Hit]:
        """Each time that a limb of a body that is animated meets this one, or any part of one that
        is simulated: both are told the same of that. The first one first."""
        found, limbs = [], len(self.scenario.limbs)
        touching = np.flatnonzero(self._blowing)
        meetings = [[number] for number in touching if number < limbs]
        for start in range(limbs, len(self.blowers), len(SEGMENTS)):
            own = (touching >= start) & (touching < start + len(SEGMENTS))
            meetings += [touching[own].tolist()] if own.any() else []
        for numbers in meetings:
            blows = self.blows[:, numbers, :3]
            forces = np.linalg.norm(blows.sum(1), axis=1)
            pressed = np.diff(blows.any((1, 2)).astype(int), prepend=0, append=0)
            for start, stop in zip(
                np.flatnonzero(pressed > 0), np.flatnonzero(pressed < 0), strict=True
            ):
                totals = blows[start:stop].sum(0) / self.motion.rate
                most = float(forces[start:stop].max())
                impulse = float(np.linalg.norm(totals.sum(0)))
                hardest = numbers[int(np.argmax(np.linalg.norm(totals, axis=1)))]
                name, part = self.blowers[hardest]
                found.append(Hit(int(start), name, part, impulse, most))
        return sorted(found)

    @property
    def hardest_hit(self) -> Hit | None:
        """The one of the hits with the greatest force; None if there was none."""
        return max(self.hits(), key=lambda hit: hit.force, default=None)

    @property
    def held(self) -> np.ndarray:
        """(n, H) whether each of the scenario's holds holds."""
        return np.isfinite(self._held[: self._count, :, 4])

    @property
    def hold_forces(self) -> np.ndarray:
        """(n, H, 3) force [N] with which the scenario's holds pull the body, in the mean since the
        last sample; zeros where they do not."""
        return np.nan_to_num(self._held[: self._count, :, :3])

    @property
    def hold_gaps(self) -> np.ndarray:
        """(n, H) how far [m] each held point is from where it is held; NaN where nothing holds
        it."""
        return self._held[: self._count, :, 4]

    @property
    def hangs(self) -> bool:
        """Whether at the newest sample something holds the body, and no foot stands."""
        last = self._count - 1
        return bool(self.held[last].any() and not self._contacts[last].any())

    def grasps(self) -> list[Grasp]:
        """How each of the scenario's holds went, in their order."""
        found = []
        for number, hold in enumerate(self.scenario.holds):
            held, of = self.held[:, number], self._held[: self._count, number]
            at, broken = np.flatnonzero(held), np.flatnonzero(of[:, 5] == 1)
            began, ended = (int(at[0]) - 1, int(at[-1])) if len(at) else (None, None)
            broke = bool(len(broken))
            if broke:
                ended = int(broken[0])
                began = ended - 1 if began is None else began
            force = float(np.nanmax(of[:, 3], initial=0.0))
            gap = float(of[held, 4].max(initial=0.0))
            found.append(Grasp(hold.name, hold.limb, began, ended, broke, force, gap))
        return found

    @property
    def residual(self) -> np.ndarray:
        """(n, 6) help from outside on the root: force [N] and torque [N m] in the world, where
        anything is simulated."""
        return self._residual[: self._count]

    @property
    def stance(self) -> np.ndarray:
        """(n,) stance states of the simulation, see `stance`."""
        return self._stance[: self._count]

    @property
    def reference_stance(self) -> np.ndarray:
        """(n,) stance states of the reference."""
        return self.reference.stance[: self._count]

    @property
    def slopes(self) -> np.ndarray:
        """(n, 2, 2) how what is under the left and the right foot rises along x and y."""
        return self._slopes[: self._count]

    @property
    def carrying(self) -> np.ndarray:
        """(n,) at how many points the feet carry."""
        return self._carrying[: self._count]

    def sole_corners(self, samples: slice) -> np.ndarray:
        """(m, 2, 6, 3) sole corners of both feet [m] at samples, a slice; see `foot`."""
        return self.character.soles_of(self.body_positions[samples], self.body_rotations[samples])

    def parts_down(self, samples: slice) -> np.ndarray:
        """(m, 2, 3) how much of heel, ball and tip of both feet is down at samples, a slice; see
        `foot.parts_down`."""
        return parts_down(self.sole_corners(samples), self.slopes[samples])

    @property
    def phases(self) -> np.ndarray:
        """(n, 2) phases of both feet of the simulation, see `stance`."""
        return phases_of(self.stance, self.parts_down(slice(None)))

    @property
    def reference_phases(self) -> np.ndarray:
        """(n, 2) phases of both feet of the reference."""
        return self._reference_phases[: self._count]

    @cached_property
    def _reference_phases(self) -> np.ndarray:
        corners = self.character.sole_corners(*self.character.pose(self.reference.trajectory))
        return phases_of(self.reference.stance, parts_down(corners))

    @property
    def torques(self) -> np.ndarray:
        """(n, dofs) joint torques of the last step before each sample [N m]."""
        return self._torques[: self._count]

    def __getattr__(self, name: str) -> np.ndarray:
        if name in NAMES:
            column = NAMES.index(name)
            return np.array([values[column] for values in self.measures.values])
        raise AttributeError(name)

    @property
    def fell_at(self) -> float | None:
        """First moment at which a measure exceeded its maximum [s], or None."""
        return self.measures.fell_at

    @property
    def fell_measure(self) -> str | None:
        """The measure that did, or None."""
        return self.measures.fell_measure

    @property
    def success(self) -> bool:
        """Whether the last sample was reached with no maximum exceeded."""
        return self._count == len(self.reference) and self.fell_at is None

    @property
    def standing(self) -> int:
        """How many samples there are before a body that falls has lost its balance, or at all."""
        return self._count if self.stood is None else self.stood

    @property
    def filled(self) -> bool:
        """Whether the last sample was reached as it was to be: standing, or after a fall."""
        return self.success or (self.stood is not None and self._count == len(self.reference))

    @property
    def reward(self) -> float:
        """SCA12, equation 21, over the length of the reference."""
        return self.measures.reward((len(self.reference) - 1) / self.motion.rate)

    def why(self) -> str:
        """When and why it fell, in a sentence or two, or an empty string."""
        name = self.fell_measure
        if self.fell_at is None:
            return ""
        if self.stood is not None:
            *before, last = self.stood, *self.fell_again
            ups = [self._got_up(*one) for one in zip(before, self.went_on, strict=False)]
            parts = [
                *(*ups, self._what_fell(last), self._braced(), self._by_which_way()),
                *(self._what_follows(), self.weakness),
            ]
            told = " ".join(filter(None, parts))
            if self.is_kept_down and self.rested is None and self.rest_at is not None:
                told += " It does not get up where the floor is not level."
            return told
        if name is None:
            return ""
        value, limit = self.measures.values[-1][NAMES.index(name)], self.measures.maxima[name]
        frame = self.motion.frame(self._count - 1)
        if self.strength is not None and self.strength.faints(self._count - 1):
            told = f"Fell at {self.fell_at:.2f} s (frame {frame:g})."
            return f"{told} {self.weakness}"
        words = MEASURES[name].told_of(value, limit)
        if value <= limit:  # it was past half of that, as `Measures.end_fall` has it
            words = "the body falls, and the engine would fling its limbs about from here on"
        elif self.upright:
            return f"Stopped at {self.fell_at:.2f} s (frame {frame:g}), still upright: {words}."
        elif (faster := self._faster) > _THROWN:
            words = f"the body is thrown, {faster:.0f} m/s faster than the animation moves"
        elif name == "pose_error" and self.toppled is not None:
            words = (
                f"it has lost its balance, and its pose is more than {limit:g} m away from the "
                "animation's"
            )
        told = f"Fell at {self.fell_at:.2f} s (frame {frame:g}): {words}."
        return f"{told} {self.weakness}".rstrip()

    def uncarried(self) -> list[tuple[int, int]]:
        """(first, last) sample of each stretch of the animation in which no foot stands, though the
        body does not fall, see `contact_finding.uncarried`: also those to come, for balance is
        planned ahead."""
        com = np.einsum("fsi,s->fi", self.reference.raw.centres, self._shares)
        return uncarried(self.reference.stance != FLIGHT, com, self.motion.rate)

    @property
    def upright(self) -> bool:
        """Whether at the newest sample the body neither falls nor is where it falls from, see
        `BalanceLoss`, and is in the air only where the animation is."""
        if self._upright is None:  # panels ask each time that they are drawn
            self._upright = self._count < 2 or self._is_upright()
        return self._upright

    def _is_upright(self) -> bool:
        loss = self._loss(slice(self._count - 2, self._count))
        on_feet = self.contacts[-1].any() or self.reference_stance[-1] == FLIGHT
        return bool(on_feet and not loss.topples and not loss.sinks)

    def _loss(self, two: slice) -> BalanceLoss:
        """What the second of two samples tells of the balance."""
        pose = self.reference.smooth
        corners = self.character.sole_corners(pose.joints[two], pose.frames[two])
        loss = BalanceLoss(
            self._reference_com[two], corners, self.motion.rate, self.character.height
        )
        loss.lost(1, self.com[two], self.sole_corners(two))
        return loss

    @property
    def toppled(self) -> int | None:
        """The sample from which on, until it fell, it was where a body falls from, see
        `BalanceLoss`; None if it was not, or did not fall."""
        if self.fell_at is None:
            return None
        fell = min(round(self.fell_at * self.motion.rate), self._count - 1)
        if self._toppled is None:  # panels ask each time that they are drawn
            first = fell + 1
            while first > 1 and self._loss(slice(first - 2, first)).topples:
                first -= 1
            self._toppled = first
        return self._toppled if self._toppled <= fell else None

    @property
    def _faster(self) -> float:
        """How much faster [m/s] than the animation's the centre of mass moves at the newest
        sample."""
        last = slice(self._count - 2, self._count)
        apart = self.com[last] - self._reference_com[last]
        return float(np.linalg.norm(np.diff(apart, axis=0)) * self.motion.rate)

    @property
    def weakness(self) -> str:
        """A sentence on what it had too little strength for, to stand or to get up; an empty string
        if that was no reason to fall."""
        strength = self.strength
        if strength is None or self.fell_at is None:
            return ""
        stays = self.stood is not None and self.gets_up and self.up is None
        sample = self._count - 1 if stays else self.standing - 1
        if strength.may_rise(sample):
            return ""
        if strength.faints(sample):
            frame = self.motion.frame(strength.fainted(sample))
            if stays:
                return f"It is unconscious from frame {frame:g} on, and does not get up."
            wakes = strength.wakes(sample)
            if wakes is None or wakes >= self._count:
                return f"It is unconscious from frame {frame:g} on."
            return f"It is unconscious from frame {frame:g} to {self.motion.frame(wakes - 1):g}."
        frame, (name, share) = self.motion.frame(sample), strength.weakest(sample)
        if stays:
            return f"It is too weak to get up at frame {frame:g}: {name} at {share:.0%}."
        return f"It is weak at frame {frame:g}: {name} at {share:.0%} of its strength."

    def _got_up(self, stood: int, went: tuple[float, float] | None) -> str:
        at, lost = (stood - 1) / self.motion.rate, self.motion.frame(stood - 1)
        if went is not None:
            return (
                f"Fell at {at:.2f} s (frame {lost:g}), got up, and went on with the animation from "
                f"frame {went[0]:g}, as far as frame {went[1]:g}."
            )
        return f"Fell at {at:.2f} s (frame {lost:g}), and got up."

    def _what_fell(self, stood: int) -> str:
        at, lost = (stood - 1) / self.motion.rate, self.motion.frame(stood - 1)
        rests, up = self.rest_at, self.up_at
        if up is not None:
            stands = self.motion.frame(up * self.motion.rate)
            mean = self.helped[0, 0]
            return (
                f"Fell at {at:.2f} s (frame {lost:g}), and stands again from {up:.2f} s "
                f"(frame {stands:g}) on; {mean:.0f} N from outside helped it up, in the mean."
            )
        if rests is None:
            return f"Fell at {at:.2f} s (frame {lost:g}), and still moves at the end."
        rest = self.motion.frame(rests * self.motion.rate)
        if self.rested is not None:
            return (
                f"Fell at {at:.2f} s (frame {lost:g}), lies still at {rests:.2f} s (frame "
                f"{rest:g}), and has not got up at the end."
            )
        return (
            f"Fell at {at:.2f} s (frame {lost:g}), and lies still from {rests:.2f} s "
            f"(frame {rest:g}) on."
        )

    def _braced(self) -> str:
        """A sentence on who was to roll, and has not."""
        return "It had neither the speed nor the time to roll, and braced." * self.braces_instead

    def _by_which_way(self) -> str:
        """A sentence on how it got up, if it was to do so as an animator has it."""
        if not self.scenario.get_ups:
            return ""
        tried = next(filter(None, self._tried), "")
        if self.up is None:
            return f"It tried to get up as in '{tried}'." if tried else ""
        if self.ways[-1]:
            return f"It got up as in '{self.ways[-1]}'."
        if tried:
            return f"It got up in a way of Poise's own: it had failed as in '{tried}'."
        return "It got up in a way of Poise's own: no get-up of the list begins nearly as it lay."

    def _what_follows(self) -> str:
        """A sentence on what it does once it stands, if it was to go on with its animation."""
        if not self.goes_on or self.up is None:
            return ""
        if self.parts:
            return "" if self.parts[-1].stays else "It walks on."
        if self.shown[-1] is None:
            return (
                "It does not go on: what is left of the animation does not move, or in no frame of "
                "it could one stand still, upright and on both feet. Walks go on with Locomotion."
            )
        if self.went_on[-1] is None:
            return "No time is left for it to go on: choose a longer range."
        first, last = self.went_on[-1]
        return f"It goes on with the animation from frame {first:g}, as far as frame {last:g}."

    @property
    def went_on(self) -> list[tuple[float, float] | None]:
        """From which frame on to which one it has shown its animation, each time that it stood
        again; None where it stood still."""
        found: list[tuple[float, float] | None] = []
        for begin, shown, falls in self._ups:
            went = None
            if shown is not None:
                end = max((falls or self._count) - 1 - begin, 0)
                first, last = (self.motion.frame(int(shown[at])) for at in (0, end))
                went = (first, last) if first < last else None
            found.append(went)
        return found

    @property
    def _ups(self) -> Iterator[tuple[int, np.ndarray | None, int | None]]:
        """Each time that it stood again: after how many samples, which of the animation it shows
        from then on, and how many there are until it fell again; None of what is not so."""
        return zip_longest(self.stood_again, self.shown, self.fell_again)

    def missed(self) -> np.ndarray:
        """(n, 2) way [m] that is left in plan from the pelvis to each of the reference's waypoints,
        at its time; NaN for one that the body did not come to on its feet."""
        waypoints = self.reference.waypoints
        if not waypoints:
            return np.zeros((0, 2))
        at = np.array([one.time for one in waypoints]) * self.motion.rate
        pelvis = self.joints()[: self.standing, 0, :2]
        left = np.array([one.place for one in waypoints]) - sampled(pelvis, at)
        left[at > len(pelvis) - 1 + _ROUNDED] = np.nan
        return left

    @property
    def rest_at(self) -> float | None:
        """From when on [s] no segment of a body that has fallen moves, or until it gets up; or
        None."""
        if self.stood is None or self._count - self.stood < 2:
            return None
        if self.rested is not None:
            return (self.rested - 1) / self.motion.rate
        steps = np.diff(self.body_positions[self.stood :], axis=0)
        speeds = np.linalg.norm(steps, axis=2).max(1) * self.motion.rate
        moving = np.flatnonzero(speeds > _REST)
        rest = self.stood + (int(moving[-1]) + 1 if len(moving) else 0)
        return rest / self.motion.rate if rest < self._count - 1 else None

    @property
    def up_at(self) -> float | None:
        """From when on [s] a body that has fallen stands again, or None."""
        return None if self.up is None else (self.up - 1) / self.motion.rate

    @property
    def outside(self) -> str:
        """How much help from outside the motion had that stands, in words; empty for none."""
        (mean, most), _ = self._outside.tolist()
        return outside_words(mean, most, self.character.mass)

    @property
    def _outside(self) -> np.ndarray:
        """(2, 2) mean and largest help from outside, force [N] and torque [N m], while a body that
        may be helped stands."""
        helped = self._standing_helped[: self._count]
        sizes = np.linalg.norm(self.residual.reshape(-1, 2, 3), axis=2)[helped]
        if not len(sizes):
            return np.zeros((2, 2))
        return np.stack([sizes.mean(0), sizes.max(0)], 1)

    @property
    def helped(self) -> np.ndarray:
        """(2, 2) mean and largest help from outside in all getting up: force [N], torque [N m]."""
        sizes = np.linalg.norm(self.residual.reshape(-1, 2, 3), axis=2)[self._rising[: self._count]]
        if not len(sizes):
            return np.zeros((2, 2))
        return np.stack([sizes.mean(0), sizes.max(0)], 1)

    @property
    def hold(self) -> Hold | None:
        """How what is not simulated comes to a stop in a fall, and goes on after it; None for a
        body that stands."""
        going = [(begin, shown, falls) for begin, shown, falls in self._ups if shown is not None]
        tone = np.ones(self._count) if self.strength is None else self.strength.tone
        return Hold.of(self.stood, self._count, self.motion.rate, going, tone)

    def joints(self) -> np.ndarray:
        """(n, S, 3) joint centres of the simulation [m]."""
        offset = np.einsum("fsij,sj->fsi", self._frames, self.character.centres)
        return self.body_positions - offset

    def rotation_deltas(self) -> np.ndarray:
        """(n, S, 4) world rotations from the reference, as the animation has it, to the
        simulation, w first. Turning each segment of the animation by them bakes the result.

        The animation's knees are no perfect hinges, so the character cannot follow its ankles to
        the last tenth of a millimetre, and what is missing trembles with the capture. The legs
        are turned by that little more that brings each ankle where the simulation has it, but for
        a slowly varying offset.
        """
        return self.differences()[0]

    def _deltas(self) -> np.ndarray:
        """(n, S, 3, 3) the same, of a body that is simulated throughout."""
        raw, hold = self.reference.raw.frames[: self._count], self.hold
        turns = self._frames @ np.swapaxes(raw, -1, -2)
        bones = self.reference.bones
        if hold:
            shown = self.motion.rotations if bones is None else bones
            turns = hold.turns(raw, self._frames, shown[: self._count])
        if bones is not None:
            turns = turns @ self._despiked(bones)[: self._count]
        for side in SIDES:
            self._correct_leg(turns, side, hold)
        return turns

    def _despiked(self, bones: np.ndarray) -> np.ndarray:
        """(F, S, 3, 3) turns from what carries the segments to the same without pops."""
        return matrix_from_quaternion(multiply(bones, self.motion.rotations * [1, -1, -1, -1]))

    def _correct_leg(self, turns: np.ndarray, side: str, hold: Hold | None) -> None:
        n = self._count
        thigh, shin, foot = (SEGMENT_INDEX[f"{part}_{side}"] for part in ("thigh", "shin", "foot"))
        pelvis, hip, knee, ankle = (
            self.motion.positions[:n, LANDMARK_INDEX[name]]
            for name in ("pelvis", f"hip_{side}", f"knee_{side}", f"ankle_{side}")
        )
        apart = ankle - self.reference.raw.joints[:n, foot]
        joints = self.joints()
        kept = _slow_part(apart, self.motion.rate)
        arms = [hip - pelvis, knee - hip, ankle - knee]
        if hold:
            bones = self.motion.rotations[:n]
            *arms, kept = (
                hold.carried(bones[:, bone], arm)
                for bone, arm in zip((0, thigh, shin, shin), (*arms, kept), strict=True)
            )
            # What lies has turned with its legs.
            kept[hold.stood :] = _rotate(turns[hold.stood :, shin], kept[hold.stood :])
        target = joints[:, foot] + kept
        reach = _rotate(turns[:, thigh], arms[1]) + _rotate(turns[:, shin], arms[2])
        baked = joints[:, 0] + _rotate(turns[:, 0], arms[0]) + reach
        square = (reach**2).sum(1, keepdims=True)
        vector = np.cross(reach, target - baked) / square
        turn = matrix_from_quaternion(exponential(vector))
        turns[:, thigh] = turn @ turns[:, thigh]
        turns[:, shin] = turn @ turns[:, shin]

    def root_displacement(self) -> np.ndarray:
        """(n, 3) world displacement of the pelvis landmark from the animation [m]."""
        return self._weighed(self.weights, ())[1] if self.weights else self._apart()

    def differences(self, stretched: Sequence[str] = ()) -> tuple[np.ndarray, np.ndarray]:
        """(`rotation_deltas`, `root_displacement`). stretched: segments of legs whose length
        changes in the animation, and no more in a bake where they are simulated."""
        if not self.weights:
            return quaternion_from_matrix(self._deltas()), self._apart()
        turns, displacement = self._weighed(self.weights, stretched)
        return quaternion_from_matrix(turns), displacement

    def back_at(self, turns: np.ndarray, displacement: np.ndarray) -> float | None:
        """From when on [s] a body that was handed back is exactly as animated, by its
        `differences`; None where it is not, and without weights."""
        if not self.weights:
            return None
        away = np.abs(turns[..., 1:]).max((1, 2)) + np.abs(displacement).max(1) > _AWAY
        last = np.flatnonzero(away)
        if not len(last) or last[-1] == len(away) - 1:
            return None
        return float((last[-1] + 1) / self.motion.rate)

    def cleaned(self) -> Changed | None:
        """All of the animation as far as cleaning, waypoints and commands alone change what is
        simulated of it; None where they change nothing."""
        raw, mended, rate = self.reference.raw, self.reference.cleaned, self.motion.rate
        if mended is None:
            return None
        turns = mended.frames @ np.swapaxes(raw.frames, -1, -2)
        if self.reference.bones is not None:
            turns = turns @ self._despiked(self.reference.bones)
        moved = mended.joints[:, 0] - raw.joints[:, 0]
        if self.weights:
            turns = self.weights.blended(turns, rate)
            moved = self.weights.blended_root(moved, rate)
        return Changed(self.motion, quaternion_from_matrix(turns), moved)

    def simulated_legs(self) -> np.ndarray:
        """(n,) how far the legs of a bake are those of the simulation, from 0 to 1."""
        if not self.weights:
            return np.ones(self._count)
        return self.weights.shown("legs", self.motion.rate)[: self._count]

    def _apart(self) -> np.ndarray:
        return self.joints()[:, 0] - self.reference.raw.joints[: self._count, 0]

    def _weighed(
        self, weights: PhysicsWeights, stretched: Sequence[str]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Turns (n, S, 3, 3) and displacement (n, 3) [m] as far as the weights let them, of feet
        that step on the way back to the animation."""
        rate = self.motion.rate
        turns = weights.blended(self._deltas(), rate)
        displacement = weights.blended_root(self._apart(), rate)
        return stepped_back(self, turns, displacement, stretched)

    def summary(self) -> dict[str, Any]:
        """Figures of `measures.md` for this simulation, by name."""
        n = self.standing
        # What leads a body may turn it elsewhere than its reference: then as the animation has it.
        wanted = self.reference.smooth if self.turn is None else self.reference.raw
        apart = self.joints()[:n] - wanted.joints[:n]
        local = apart - apart[:, :1]
        result: dict[str, Any] = dict(self.measures.averages())
        result["few_corners"] = self._few_corners()
        result["recovery_steps"] = len(self.steps)
        result["reward"] = self.reward
        result["success"] = self.success
        result["filled"] = self.filled
        result["fell_at"] = self.fell_at
        result["fell_measure"] = self.fell_measure
        result["rest_at"] = self.rest_at
        result["deepest"] = None if self.stood is None else 1e3 * self.deepest
        for name, values in zip(("help", "help_torque"), self.helped.tolist(), strict=True):
            tried = bool(self._rising.any())
            result[name] = dict(zip(("mean", "most"), values, strict=True)) if tried else None
        result["up_at"] = self.up_at
        result["got_up_by"] = [way or None for way in self.ways]
        result["went_on"] = [one and list(one) for one in self.went_on]
        result["tracking_error"] = 1e3 * float(np.linalg.norm(apart, axis=-1).mean())
        result["tracking_error_local"] = 1e3 * float(np.linalg.norm(local, axis=-1).mean())
        (result["residual"], result["residual_most"]), (result["residual_torque"], _) = (
            self._outside.tolist()
        )
        seconds = (self._count - 1) / self.motion.rate
        result["real_time_factor"] = seconds / max(self.wall_time, 1e-9)
        return result

    def _few_corners(self) -> float:
        """Share of the time on the floor in which fewer corners carry than a plane has."""
        n = self.standing
        standing = self.contacts[:n].any(1)
        return float((self.carrying[:n] < _CORNERS)[standing].mean()) if standing.any() else 0.0


def _rotate(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return np.einsum("fij,fj->fi", matrices, vectors)


def _slow_part(values: np.ndarray, rate: float) -> np.ndarray:
    """(n, 3) values without what changes faster than the body can sway."""
    if len(values) < 8:
        return np.broadcast_to(values.mean(0), values.shape)
    return butterworth(values, rate, _SWAY)[0]

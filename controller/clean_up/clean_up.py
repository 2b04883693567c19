# SPDX-License-Identifier: GPL-3.0-or-later
"""Clean feet and weight of an animation without any simulation.

    body = Body.from_motion(motion, toes)
    plan = propose(body)
    cleaned = clean_up(body, plan)
    cleaned.motion(motion)

Feet that stand are still, feet that swing stay over the floor, the weight stays over what carries
it, and all else is as it was: one smooth problem over the whole clip (`clean_problem`), solved by
Gauss and Newton's method.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from ..contacts.contact_finding import airborne, find_plan, uncarried
from ..contacts.contact_plan import ContactPlan
from ..exceptions import MotionError
from ..geometry import banded
from ..geometry.motion import Motion
from ..geometry.rotations import matrix_from_quaternion, quaternion_from_matrix
from ..geometry.skeleton import LANDMARK_INDEX, SEGMENTS, SIDES
from ..geometry.stance import Above
from ..options import check_options, option
from ..ranges import Range
from .clean_problem import Facts, Problem
from .leg_chain import BONES, MOVE, UNKNOWNS, Body

#: How far outside of what carries the zero-moment point may be [m]; None: the weight stays. By
#: trial on captured clips: 0.01 brought no more than 0.02.
BALANCE = {"off": None, "light": 0.05, "strong": 0.02}
#: The same for those who choose.
BALANCE_WORDS = {
    "off": ("Off", "Feet alone are cleaned: the weight stays where it is"),
    "light": ("Light", "The weight comes over the feet where little is missing"),
    "strong": ("Strong", "The weight comes over the feet, also if the body must move more"),
}

#: A body over no floor that is known floats or flies if it neither stands nor falls for more than
#: this share of the time that it does not fall. By trial: at most 0.21 in captured clips, in a run,
#: from 0.34 on where one swims, drifts or is in the middle of a leap.
_FLOATS = 0.28

#: The bone that carries each landmark of a leg.
_RIDES_ON = {"knee": "shin", "ankle": "foot", "ball": "toe", "toe": "toe"}

_ITERATIONS = 8  # at most; captured clips take 4 to 6, with balance often all
_ENOUGH = 1e-3  # share by which the sum of squares must still fall (by trial)
_SHORTEST_STEP = 0.1  # share of a step below which no shorter one is tried (by trial)
_WINDOW = 1.0  # [s] to each side of a change that are solved anew: within 0.2 mm of the whole
#: Samples at either end of a window that stay: as far as the equations of one reach.
_HELD, _HELD_WEIGHT = 3, 1e8


@dataclass(frozen=True)
class CleanUpOptions:
    """How to clean up. smoothness: 1; less lets the body follow its feet sooner and change faster.
    Raises SettingsError."""

    smoothness: float = option(
        1.0,
        "Smoothness",
        "How slowly the body changes to follow its feet. More is nearer to the captured rhythm, "
        "less to the captured poses",
        Range("smoothness", 0.2, 5),
    )
    balance: str = option(
        "light",
        "Balance",
        "How firmly the weight is brought over the feet that carry it",
        choices=BALANCE_WORDS,
        argument="--com",
    )

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True)
class CleanUp:
    """What a clean-up found.

    body, plan, options: what was cleaned, and how. corrections: (F, 22), as leg_chain has them.
    iterations: steps that were taken.
    """

    body: Body
    plan: ContactPlan
    options: CleanUpOptions
    corrections: np.ndarray
    iterations: int
    _facts: Facts = field(repr=False)

    def turns(self) -> dict[str, np.ndarray]:
        """{part: (F, 3, 3)} rotations in the world, from the animation to its clean-up, of pelvis,
        thighs, shins, feet and toes; whatever is not among them turns with the pelvis."""
        pose = self.body.pose(self.corrections, slopes=False)
        turns = {"pelvis": pose.turn}
        for side in SIDES:
            for i, name in enumerate(BONES):
                turns[f"{name}_{side}"] = pose.turns[side][:, i]
        return turns

    def displacement(self) -> np.ndarray:
        """(F, 3) how far the pelvis is moved [m]."""
        return self.corrections[:, MOVE].copy()

    def rotation_deltas(self) -> np.ndarray:
        """(F, len(SEGMENTS), 4) the same turns of the segments, as quaternions."""
        turns = self.turns()
        deltas = [turns.get(segment, turns["pelvis"]) for segment in SEGMENTS]
        return quaternion_from_matrix(np.stack(deltas, 1))

    def motion(self, motion: Motion) -> Motion:
        """The Motion that was read, cleaned up."""
        pose = self.body.pose(self.corrections, slopes=False)
        rotations = quaternion_from_matrix(
            matrix_from_quaternion(self.rotation_deltas())
            @ matrix_from_quaternion(motion.rotations)
        )
        from_pelvis = motion.positions - self.body.pelvis[:, None]
        positions = pose.pelvis[:, None] + np.einsum("fij,flj->fli", pose.turn, from_pelvis)
        for side in SIDES:
            joints, source = pose.joints[side], self.body.legs[side].joints
            for landmark, bone in _RIDES_ON.items():
                row, joint = LANDMARK_INDEX[f"{landmark}_{side}"], BONES.index(bone)
                way = motion.positions[:, row] - source[:, joint]
                turned = np.einsum("fij,fj->fi", pose.turns[side][:, joint], way)
                positions[:, row] = joints[:, joint] + turned
        return replace(motion, rotations=rotations, positions=positions)

    def com_shift(self) -> float:
        """How far the centre of mass is from where it was at most, in plan [m]."""
        com = self.body.pose(self.corrections, slopes=False).com
        return float(np.linalg.norm((com - self._facts.com)[:, :2], axis=1).max())

    def uncarried(self) -> list[tuple[float, float]]:
        """(first, last) frame of each stretch in which the plan lets no foot stand, and yet the
        body does not fall, see `contact_finding.uncarried`."""
        stands, frame = self._facts.marks.any((1, 2)), self.body.frame
        found = uncarried(stands, self._facts.com, self.body.rate)
        return [(float(frame(first)), float(frame(last))) for first, last in found]

    def slip(self) -> tuple[float, float]:
        """Mean speeds in plan of what the plan marks [m/s], of the animation and of the result."""
        source = np.zeros_like(self.corrections)
        return self._slip(source), self._slip(self.corrections)

    def _slip(self, corrections: np.ndarray) -> float:
        points = self.body.pose(corrections, slopes=False).points
        plan = np.stack([points[s][..., :2] for s in SIDES], 1)
        drifts = self.body.drifts[1:, ..., :2]
        speed = np.linalg.norm(np.diff(plan, axis=0) * self.body.rate - drifts, axis=-1)
        marks = self._facts.marks
        held = marks[1:] & marks[:-1]
        return float(speed[held].mean()) if held.any() else 0.0


def propose(body: Body) -> ContactPlan:
    """The ContactPlan that an animation seems to follow. Raises MotionError without any stance, and
    for a body that swims, drifts or flies above no floor that is known."""
    pose = body.pose(np.zeros((len(body), UNKNOWNS)), slopes=False)
    points = np.stack([pose.points[s] for s in SIDES], 1)
    heights = points[..., 2] - body.floors
    over = None if body.under is None else Above(heights, body.drifts)
    plan = find_plan(points, pose.com, body.rate, body.size, body.name, over)
    if body.floor and over is None:  # that is where its feet are, whatever they do
        held = ~airborne(pose.com, body.rate)
        lost = held & ~plan.contacts(len(body), body.rate).any(1)
        if lost.sum() > _FLOATS * held.sum():
            raise MotionError(
                f"No foot of '{body.name}' stands anywhere from frame {body.frame(0):g} to "
                f"{body.frame(len(body) - 1):g}: it floats or flies, with no floor under it. "
                "Choose frames in which the body is on the floor, mark what it stands on as a "
                "collider, or give a contact plan."
            )
    return plan


def clean_up(body: Body, plan: ContactPlan, options: CleanUpOptions | None = None) -> CleanUp:
    """The CleanUp of a body's animation in which feet stand as a plan has it.

    Raises PlanError for a plan that does not fit the clip, SettingsError for an odd option.
    """
    options = options or CleanUpOptions()
    facts = _facts(body, plan)
    problem = Problem(facts, options.smoothness, BALANCE[options.balance])
    corrections, iterations = _solved(problem, np.zeros((len(body), UNKNOWNS)))
    return CleanUp(body, plan, options, corrections, iterations, facts)


def update(cleaned: CleanUp, plan: ContactPlan) -> CleanUp:
    """The CleanUp with another plan, solved anew only around what that changes, while a span is
    dragged: within a millimetre of the whole, two with balance. Raises as `clean_up` does."""
    facts = _facts(cleaned.body, plan)
    changed = np.flatnonzero(facts.differ(cleaned._facts))
    corrections, iterations = cleaned.corrections.copy(), 0
    if len(changed):
        around = round(_WINDOW * cleaned.body.rate)
        count = len(corrections)
        window = slice(max(0, changed[0] - around), min(count, changed[-1] + 1 + around))
        start = corrections[window]
        held = np.zeros(start.shape)
        if window.start > 0:
            held[:_HELD] = _HELD_WEIGHT
        if window.stop < count:
            held[-_HELD:] = _HELD_WEIGHT
        options = cleaned.options
        balance = BALANCE[options.balance]
        problem = Problem(facts.part(window), options.smoothness, balance, held, start)
        corrections[window], iterations = _solved(problem, start)
    return CleanUp(cleaned.body, plan, cleaned.options, corrections, iterations, facts)


def _facts(body: Body, plan: ContactPlan) -> Facts:
    """The Facts of a body and a plan that fits it."""
    pose = body.pose(np.zeros((len(body), UNKNOWNS)), slopes=False)
    soles = np.stack([pose.points[side] for side in SIDES], 1)
    moves = np.gradient(soles, axis=0) * body.rate - body.drifts
    speeds = np.linalg.norm(moves[..., :2], axis=-1).min(-1) / body.size
    rises = (soles[..., 2] - body.floors).min(-1) / body.size
    airs = airborne(pose.com, body.rate)
    plan.check(len(body), body.rate, airs, rises, body.frame, speeds)
    return Facts.of(body, plan.marks(len(body), body.rate))


def _solved(problem: Problem, corrections: np.ndarray) -> tuple[np.ndarray, int]:
    """The corrections (F, 22) of least squares, from a start, and the number of steps."""
    steps = 0
    while steps < _ITERATIONS:
        bands, right, before = problem.normal_equations(corrections)
        step, share = banded.solve(bands, right), 1.0
        if not np.isfinite(step).all():
            raise MotionError(
                f"'{problem.facts.body.name}' cannot be cleaned: see what the clip check says."
            )
        after = problem.cost(corrections + step)
        while after > before * (1 + 1e-9) and share > _SHORTEST_STEP:
            share /= 2
            after = problem.cost(corrections + share * step)
        if after > before * (1 + 1e-9):
            break
        corrections, steps = corrections + share * step, steps + 1
        if before - after < _ENOUGH * before:
            break
    return corrections, steps

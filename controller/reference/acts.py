# SPDX-License-Identifier: GPL-3.0-or-later
"""Acts: what a character that walks on command does between two walks: a jump, a kick, a bow.

    act = Act.of("jump", its_character, its_motion)
    performed = performance(character, act, rate, still)

An act is a clip that begins and ends on its feet. It is performed by a body that stands before and
after: feet begin where those of that body are, each one that is lifted comes down where the act has
it, and the last ones come down as the body stands. The act of a body of another size is as much
larger, and as much slower as that one falls more slowly. Then the feet roll, and bear the weight,
as in any reference.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from ..body.character import Character
from ..contacts.carried import carrying_contacts
from ..exceptions import MotionError
from ..geometry.leg_bending import bend_leg, sinking
from ..geometry.motion import Motion
from ..geometry.rotations import (
    arctan2,
    continuous,
    multiply,
    near,
    rotation_about,
    swivel,
    swivelled,
    unit,
)
from ..geometry.skeleton import FEET, SIDES, TOES
from ..geometry.stance import adult_size, runs
from ..geometry.trajectory import Trajectory, bell, butterworth, eased, linear
from ..support.bearing import TRAVEL_CUTOFF, bearable
from ..support.planting import IN_PLACE_CUTOFF, physical
from .commands import Passage

# By judgement, and trial on thirteen captured clips.
#: [s] over which a body goes over from standing into an act, and back; and for which it has both
#: feet down before, or after, where the act has one in the air.
_ENTERS, _STANDS = 0.6, 0.3
#: Whose feet are so much [m, adult] farther apart, or nearer, in an act than standing steps into
#: it, and out of it: the foot that is turned out more stands so long [s], is so long in the air and
#: stands again.
_APART, _STEP = 0.1, (0.5, 0.45, 0.3)
#: A foot that comes down so far [m, adult] from where it stood first is where the act has it.
_RETURNS = 0.3
#: Feet that come down for the last time within so long [s] do so together.
_TOGETHER = 0.12
#: [s] over which the weight goes with feet that stand elsewhere; over which hips sink for them.
_FOLLOWS, _SINKING = 0.2, 0.25
#: What is shorter than this [s], or goes faster [m/s, adult] where it begins or ends, is no act;
#: low-pass [Hz] of that.
_SHORTEST, _FASTEST, _SPEED = 0.3, 0.8, 3.0

#: (P, m) values of a clip, as plain data.
Table = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Act:
    """What a clip does on its feet, as plain data.

    name: by which it is commanded. rate [Hz]: of its samples. leg [m]: of its body. travels:
    whether it leaves its place, or the floor. outside_help: share of the weight that help from
    outside may be while it is performed. root (P, 3) [m] from the floor, rotation (P, 4),
    angles (P, dofs) [rad], contacts (P, 2).
    """

    name: str
    rate: float
    leg: float
    travels: bool
    outside_help: float
    root: Table
    rotation: Table
    angles: Table
    contacts: Table

    @classmethod
    def of(
        cls, name: str, character: Character, motion: Motion, outside_help: float = 0.0
    ) -> "Act":
        """That of a motion, from where it first stands to where it last does. Raises MotionError
        for one that does not stand, or stands on its head."""
        motion.demand_upright()
        whole = character.trajectory(motion)
        joints, frames = character.pose(whole)
        contacts, travels = carrying_contacts(
            character,
            character.sole_corners(joints, frames),
            character.body_centres(joints, frames),
            motion.rate,
            whole.root,
        )
        stands = np.flatnonzero(contacts.any(1))
        if not len(stands):
            raise MotionError(
                f"'{name}' cannot be performed: an act begins and ends on its feet, and in "
                f"'{motion.name}' none stands; put them on the ground."
            )
        first, last = int(stands[0]), int(stands[-1])
        seconds = (last - first) / motion.rate
        if seconds < _SHORTEST:
            raise MotionError(
                f"'{name}' cannot be performed: it stands for {seconds:.2f} s, and an act lasts "
                f"{_SHORTEST:g} s at least."
            )
        _check_slow(name, character, whole, first, last)
        part = slice(first, last + 1)
        tables = map(
            plain,
            (
                whole.root[part] - [0.0, 0.0, character.ground],
                continuous(whole.rotation[part]),
                whole.angles[part],
                contacts[part],
            ),
        )
        return cls(name, motion.rate, character.leg, travels, outside_help, *tables)

    @property
    def seconds(self) -> float:
        """How long it lasts [s]."""
        return (len(self.root) - 1) / self.rate

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Act":
        """What `dataclasses.asdict` gave."""
        names = "root", "rotation", "angles", "contacts"
        return cls(**data | {name: plain(data[name]) for name in names})

    def of_body(self, character: Character, rate: float) -> tuple[Trajectory, np.ndarray]:
        """It as a body of another size does it, at samples of another rate [Hz], and its contacts
        (n, 2)."""
        size, last = character.leg / self.leg, len(self.root) - 1
        step = self.rate / sqrt(size) / rate
        at = np.minimum(np.arange(round(last / step) + 1) * step, last)
        tables = self.root, self.rotation, self.angles
        root, rotation, angles = (linear(np.array(table), at) for table in tables)
        root = size * root + [0.0, 0.0, character.ground]
        moved = Trajectory(rate, root, unit(rotation), angles)
        return moved, np.array(self.contacts, bool)[np.round(at).astype(int)]


def _check_slow(name: str, character: Character, whole: Trajectory, first: int, last: int) -> None:
    """Raise MotionError for an act that goes somewhere where it begins or ends."""
    _, velocity = butterworth(whole.root[:, :2], whole.rate, min(_SPEED, whole.rate / 4))
    most = _FASTEST * adult_size(character)
    begins, ends = (float(np.hypot(*velocity[sample])) for sample in (first, last))
    if begins > most:
        raise MotionError(
            f"'{name}' cannot be performed: it begins at {begins:.1f} m/s, and an act begins and "
            "ends standing; choose frames between which it does."
        )
    if ends > most:
        raise MotionError(
            f"'{name}' cannot be performed: it ends at {ends:.1f} m/s, and an act begins and ends "
            "standing; choose frames between which it does."
        )


def plain(values: Any) -> Table:
    """Values (P, m) as plain data."""
    return tuple(map(tuple, np.asarray(values, float).tolist()))


class Performance(NamedTuple):
    """An act from a stand to a stand, as its carrier sees it: root (P, 3) [m], rotation (P, 4),
    joint angles (P, dofs) [rad], contacts (P, 2); and how the carrier goes."""

    root: np.ndarray
    rotation: np.ndarray
    angles: np.ndarray
    contacts: np.ndarray
    passage: Passage


def performance(character: Character, act: Act, rate: float, still: Trajectory) -> Performance:
    """The Performance of an act at samples of a rate [Hz], by a body that stands before and after
    as `still`, of one sample, has it from its carrier."""
    moved, contacts = act.of_body(character, rate)
    stood, stood_frames = character.pose(still)
    joints, frames = character.pose(moved)
    apart, size = _apart(stood, stood_frames)[0], adult_size(character)
    ends = _apart(joints[[0, -1]], frames[[0, -1]])
    steps_in, steps_out = (
        _steps(frames[at]) if np.linalg.norm(one - apart) > size * _APART else None
        for at, one in zip((0, -1), ends, strict=True)
    )
    if steps_in is not None and steps_out is not None:
        steps_out = steps_in  # the other one looks as it stood
    at, contacts = _waited(contacts, rate, steps_in, steps_out)
    joints, frames = joints[at], frames[at]
    feet = _Feet(
        _Places(stood[:, FEET, :2], _headings(stood_frames[:, FEET])),
        float(_headings(stood_frames[:, 0])[0]),
        _Places(joints[:, FEET, :2], np.unwrap(_headings(frames[:, FEET]), axis=0)),
        np.unwrap(_headings(frames[:, 0])),
        contacts,
        rate,
        steps_in,
        size * _RETURNS,
    )
    target = _on_feet(character, joints, frames, contacts, feet, rate)
    # From where the carrier begins, and then as it goes.
    passage, (x, y, yaw) = feet.passage, feet.start
    root = swivelled(target.root - [x, y, 0.0], np.array(-yaw))
    rotation = multiply(swivel(np.array(-yaw)), target.rotation)
    times = np.arange(len(at)) / rate
    gone = passage.share(times)
    points = gone[:, None] * [passage.ahead, passage.aside, 0.0]
    heading = gone * passage.turn
    # Who waits longer goes over meanwhile.
    enters, leaves = (max(_ENTERS, (at == end).sum() / rate) for end in (0, at[-1]))
    share = (eased(times / enters) * eased((times[-1] - times) / leaves))[:, None]
    stands = points + swivelled(still.root, heading)
    looks = multiply(swivel(heading), still.rotation)
    looks *= np.sign((looks * rotation).sum(1, keepdims=True))
    target = Trajectory(
        rate,
        stands + share * (root - stands),
        continuous(unit(looks + share * (rotation - looks))),
        still.angles + share * (target.angles - still.angles),
    )
    if act.travels:
        cutoff, helped = TRAVEL_CUTOFF, act.outside_help > 0
        target = bearable(character, target, contacts, cutoff, helped=helped)
    else:
        cutoff = IN_PLACE_CUTOFF
        target = physical(character, target, contacts, cutoff)
    target = target.smoothed(cutoff).trajectory
    return Performance(
        swivelled(target.root - points, -heading),
        continuous(multiply(swivel(-heading), target.rotation)),
        target.angles,
        contacts,
        passage,
    )


def _apart(joints: np.ndarray, frames: np.ndarray) -> np.ndarray:
    """(n, 3) [m] from the right ankle to the left one, as the pelvis sees it from above."""
    left, right = (joints[:, foot] * [1.0, 1.0, 0.0] for foot in FEET)
    return swivelled(left - right, -_headings(frames[:, 0]))


def _steps(frames: np.ndarray) -> int:
    """Which foot of frames (S, 3, 3) looks farther from where the pelvis does: 0 for the left
    one."""
    looks = _headings(frames[FEET]) - _headings(frames[0])
    return int(np.argmax([abs(near(float(look), 0.0)) for look in looks]))


def _waited(
    contacts: np.ndarray, rate: float, steps_in: int | None, steps_out: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Which samples of an act with contacts (P, 2) are shown (n,), and contacts (n, 2): its first
    and last pose wait for who is not in them before a foot is lifted, or only after the last one
    has come down; who has one in the air there stands on both before, and after. steps_in,
    steps_out: which foot steps there then, None for none."""
    before, first = _waits(contacts, rate, steps_in)
    after, then = _waits(contacts[::-1], rate, steps_out)
    at = np.clip(np.arange(-before, len(contacts) + after), 0, len(contacts) - 1)
    shown = contacts[at]
    shown[: len(first)] = first
    shown[len(shown) - len(then) :] = then[::-1]
    return at, shown


def _waits(contacts: np.ndarray, rate: float, steps: int | None) -> tuple[int, np.ndarray]:
    """For how many samples the first pose of an act waits, and the contacts (n, 2) of the first n
    of those if they are not as in it."""
    if steps is not None:
        counts = [round(seconds * rate) for seconds in _STEP]
        shown = np.ones((sum(counts), 2), bool)
        shown[counts[0] : counts[0] + counts[1], steps] = False
        return len(shown), shown
    if not contacts[0].all():
        return round((_ENTERS + _STANDS) * rate), np.ones((round(_STANDS * rate), 2), bool)
    both = contacts.all(1)
    stays = len(both) if both.all() else int(np.argmin(both))
    return max(0, round(_ENTERS * rate) - stays), np.ones((0, 2), bool)


def _on_feet(
    character: Character,
    joints: np.ndarray,
    frames: np.ndarray,
    contacts: np.ndarray,
    feet: "_Feet",
    rate: float,
) -> Trajectory:
    """A pose, as `Character.pose` has it and which is changed, with its feet elsewhere and its
    weight with those that stand."""
    aims = []
    for i, (foot, toe) in enumerate(zip(FEET, TOES, strict=True)):
        aims.append(joints[:, foot] + np.pad(feet.moved[:, i], ((0, 0), (0, 1))))
        turn = rotation_about(2, feet.turned[:, i])
        frames[:, [foot, toe]] = turn[:, None] @ frames[:, [foot, toe]]
    load = np.where(contacts.any(1)[:, None], contacts, 0.5)
    left = bell(load[:, 0] / load.sum(1), _FOLLOWS, rate)[:, None]
    joints[..., :2] += (left * feet.moved[:, 0] + (1 - left) * feet.moved[:, 1])[:, None]
    joints[..., 2] -= bell(sinking(joints, aims), _SINKING, rate)[:, None]
    for side, aim in zip(SIDES, aims, strict=True):
        bend_leg(joints, frames, side, aim)
    return character.trajectory_of(rate, joints[:, 0], frames)


class _Places(NamedTuple):
    """Where both feet are (n, 2, 2) [m], and look (n, 2) [rad]."""

    ankles: np.ndarray
    looks: np.ndarray


class _Foot(NamedTuple):
    """Where a foot stands (2,) [m], and looks [rad]."""

    ankle: np.ndarray
    look: float

    def on(self, carrier: tuple[float, float, float]) -> "_Foot":
        """It as a carrier sees it, in the world: (x, y) [m] and yaw [rad] of the carrier."""
        x, y, yaw = carrier
        return _Foot([x, y] + rotation_about(2, yaw)[:2, :2] @ self.ankle, self.look + yaw)


class _Feet:
    """How feet are set in a performance: moved (P, 2, 2) [m] and turned (P, 2) [rad] against the
    act. start: where the carrier begins in it, (x, y) [m] and yaw [rad]; passage: Passage."""

    def __init__(
        self,
        still: _Places,
        facing: float,
        act: _Places,
        pelvis: np.ndarray,
        contacts: np.ndarray,
        rate: float,
        steps_in: int | None,
        returns: float,
    ) -> None:
        """still: of the standing body, of one sample; facing: where its pelvis looks [rad]; as its
        carrier has both. act: of the act; pelvis (P,): where that looks [rad]. contacts (P, 2).
        steps_in: the foot that steps first to where the act has it beside the other, None for
        none. returns: what comes down farther [m] from where it stood is where the act has it."""
        stood = [_Foot(still.ankles[0, i], float(still.looks[0, i])) for i in range(2)]
        spans = [runs(down) for down in contacts.T]
        own = [  # of each stance
            [
                _Foot(np.median(act.ankles[a:b, i], 0), float(np.median(act.looks[a:b, i])))
                for a, b in stances
            ]
            for i, stances in enumerate(spans)
        ]
        yaw = float(pelvis[0]) - facing
        if steps_in is None:
            self.start = _under([one[0] for one in own], stood, yaw)
        else:
            stays = 1 - steps_in
            self.start = _under([own[stays][0]], [stood[stays]], yaw)
        set_feet = [
            _kept(stances, foot.on(self.start), returns if steps_in is None else 0.0)
            for stances, foot in zip(own, stood, strict=True)
        ]
        end = self._end(spans, set_feet, stood, float(pelvis[-1]) - facing, rate)
        for i in range(2):
            if len(own[i]) > 1:
                set_feet[i][-1] = stood[i].on(end)
        count = len(contacts)
        self.moved, self.turned = np.zeros((count, 2, 2)), np.zeros((count, 2))
        for i, stances in enumerate(spans):
            pairs = [*zip(own[i], set_feet[i], strict=True)]
            moved = np.array([there.ankle - here.ankle for here, there in pairs])
            turned = np.array([near(there.look - here.look, 0.0) for here, there in pairs])
            self.moved[:, i] = _spread(moved, stances, count)
            self.turned[:, i] = _spread(turned[:, None], stances, count)[:, 0]
        steps = [stances for stances in spans if len(stances) > 1]
        begins = min((int(stances[0][1]) for stances in steps), default=0)
        ends = max((int(stances[-1][0]) for stances in steps), default=1)
        x, y, yaw = self.start
        ahead, aside = (rotation_about(2, -yaw)[:2, :2] @ [end[0] - x, end[1] - y]).tolist()
        self.passage = Passage(
            (count - 1) / rate, begins / rate, ends / rate, ahead, aside, end[2] - yaw
        )

    def _end(
        self,
        spans: Sequence[np.ndarray],
        feet: Sequence[Sequence[_Foot]],
        stood: Sequence[_Foot],
        yaw: float,
        rate: float,
    ) -> tuple[float, float, float]:
        """Where the carrier ends, as `start` has it: under both feet if they come down together,
        looking along yaw [rad]; else under the one that stands first, which the other comes down
        beside."""
        if not any(len(stances) > 1 for stances in spans):
            return self.start
        lands = [int(stances[-1][0]) for stances in spans]
        if min(lands) > 0 and abs(lands[0] - lands[1]) <= _TOGETHER * rate:
            return _under([one[-1] for one in feet], stood, yaw)
        stays = int(np.argmin(lands))
        foot = feet[stays][-1]
        return _under([foot], [stood[stays]], near(foot.look - stood[stays].look, yaw))


def _kept(stances: Sequence[_Foot], first: _Foot, returns: float) -> list[_Foot]:
    """Where a foot stands that begins elsewhere than in the act: as far from there where it comes
    back to within so much [m], and else where the act has it."""
    found = [first]
    for one in stances[1:]:
        away = float(np.linalg.norm(one.ankle - stances[0].ankle))
        share = 1 - float(eased(np.array(away / returns))) if returns else 0.0
        moved, turned = first.ankle - stances[0].ankle, near(first.look - stances[0].look, 0.0)
        found.append(_Foot(one.ankle + share * moved, one.look + share * turned))
    return found


def _under(feet: Sequence[_Foot], stood: Sequence[_Foot], yaw: float) -> tuple[float, float, float]:
    """(x, y) [m] and yaw [rad] of a carrier that looks along yaw, and whose feet, as it stands, are
    in the mean where these are."""
    own = np.mean([one.ankle for one in stood], axis=0)
    middle = np.mean([one.ankle for one in feet], axis=0)
    x, y = (middle - rotation_about(2, yaw)[:2, :2] @ own).tolist()
    return x, y, yaw


def _spread(values: np.ndarray, stances: np.ndarray, count: int) -> np.ndarray:
    """(count, m) values of stances (n, m), that go over from one to the next in the air."""
    found = np.empty((count, values.shape[1]))
    found[: stances[0][0]] = values[0]
    for i, (start, stop) in enumerate(stances):
        found[start:stop] = values[i]
        then = stances[i + 1][0] if i + 1 < len(stances) else count
        share = eased((np.arange(stop, then) + 1 - stop) / (then + 1 - stop))[:, None]
        found[stop:then] = values[i] + share * (values[min(i + 1, len(values) - 1)] - values[i])
    return found


def _headings(frames: np.ndarray) -> np.ndarray:
    """(...) where frames (..., 3, 3) look, from above [rad]."""
    return arctan2(frames[..., 1, 0], frames[..., 0, 0])

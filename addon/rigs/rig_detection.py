# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the biped in an armature from its hierarchy and its animated geometry.

A limb is three bones of one descending chain: the first joint (hip, shoulder), the middle one
(knee, elbow) and the end (ankle, wrist). Every such triple costs what its proportions lack of a
human limb's; two triples make a pair by their symmetry; the cheapest legs and arms that fit one
body win. Proportions are those of Drillis and Contini's mean body, with wide tolerances, and no
cost grows beyond a cap, so that one odd proportion cannot decide alone. Names, rest poses, bone
axes, lengths of bones (but of forearms without hands), and the scale play no part.
"""

import contextlib
import copy
import functools
import itertools
from dataclasses import dataclass

import numpy as np

from ...controller.exceptions import MotionError, RigError
from ...controller.geometry.skeleton import SIDES
from ..blender import compat
from . import sampling

#: Frames that are looked at, and the share of them, the most upright ones, that is judged.
_FRAMES, _UPRIGHT = 24, 0.5
#: Triples shorter than this share of the longest are fingers and the like.
_SHORTEST = 0.12
#: More pairs of parts of limbs than this take gigabytes; a generated Rigify rig has 13,224.
_MOST_PAIRS = 30_000_000
#: How many triples are paired, and how many pairs are tried as legs and as arms of one body.
_TRIPLES, _LEGS, _ARMS = 250, 40, 150
#: Joints closer than this, per length of the limb, are one place.
_COINCIDENT = 0.015
#: Costs above which legs, arms or a body are none.
_LEGS_LIMIT, _ARMS_LIMIT, _BODY_LIMIT = 14.0, 16.0, 20.0
#: The least cosine between the trunk and the vertical, when it is most upright.
_ERECT = 0.5
#: Longest distance between two neck bones, per length of the leg; beyond it the head ends.
_NECK_STEP = 0.165
#: How far the head's joint rises above the shoulders at least, per length of the leg: cartoon
#: characters carry it lower than people do.
_HEAD_RISE = -0.05


@dataclass(frozen=True)
class _Limb:
    """Proportions of a limb: (most likely value, tolerance of its logarithm)."""

    middle: tuple  # first segment per second
    end: tuple  # foot or hand per second segment
    apart: tuple  # distance of both first joints per first segment


_LEG = _Limb(middle=(1.0, 0.3), end=(0.35, 0.5), apart=(0.42, 0.4))
_ARM = _Limb(middle=(1.27, 0.3), end=(0.5, 0.5), apart=(1.25, 0.4))
#: Of a body: per length of the leg, the length of the arm and of the trunk up to the shoulders.
_ARM_PER_LEG, _TRUNK_PER_LEG = (0.62, 0.25), (0.52, 0.3)


def detect(armature, frames=None):
    """Slot -> bones of a biped, for rig.RigMap.

    frames: (F, B, 4, 4) evaluated world matrices of all pose bones; None to sample the assigned
        animation. Raises RigError with the reason if there is no biped to be found.
    """
    names = armature.pose.bones.keys()
    tree = _Tree(armature, _sampled(armature) if frames is None else frames)
    try:
        slots = _slots(armature, tree)
    except RigError as refusal:
        try:  # forearms may be the last bones
            slots = _slots(armature, tree.with_tips())
        except RigError:
            raise refusal from None
    chains = {slot: [bone for bone in chain if bone < len(names)] for slot, chain in slots.items()}
    return {slot: tuple(names[bone] for bone in chain) for slot, chain in chains.items() if chain}


def _slots(armature, tree):
    """Slot -> indices of bones. Raises RigError with the reason if there is no biped."""
    legs = tree.pairs(tree.triples(_LEG), _LEG)
    legs = [pair for pair in legs if pair.cost < _LEGS_LIMIT][:_LEGS]
    if not legs:
        raise _refusal(armature, "has no two legs of thigh, shin and foot")
    arms = tree.pairs(tree.triples(_ARM), _ARM)
    arms = [pair for pair in arms if pair.cost < _ARMS_LIMIT][:_ARMS]
    if not arms:
        raise _refusal(armature, "has no two arms of upper arm, forearm and hand")
    body = _best_body(tree, legs, arms)
    if body is None:
        raise _refusal(armature, "has no two legs and two arms on one trunk with a head")
    if body.erect < _ERECT:
        raise _refusal(armature, "never stands upright on two legs, like a quadruped")
    return body.slots()


def _best_body(tree, legs, arms):
    """The cheapest body with a head that can be made of these legs and arms, or None."""
    best, limit = None, _BODY_LIMIT
    pairs = sorted(itertools.product(legs, arms), key=lambda pair: pair[0].cost + pair[1].cost)
    for leg, arm in pairs:
        if leg.cost + arm.cost >= limit:
            break
        body = _Body(tree, leg, arm)
        if body.cost < limit and body.head:
            best, limit = body, body.cost
    return best


def stands(armature, slots, frames=None):
    """Whether the body of a map that was found by names ever stands on its legs.

    slots: slot -> bones. frames: as in `detect`. The animation is looked at only if trunk and
    legs are not in line in the rest pose, as an animal's.
    """
    bones = armature.data.bones
    rest = {slot: np.array(bones[chain[0]].head_local) for slot, chain in slots.items()}
    hips, shoulders, ankles = (
        (rest[f"{part}_l"] + rest[f"{part}_r"]) / 2 for part in ("thigh", "upper_arm", "foot")
    )
    trunk, leg = shoulders - hips, ankles - hips
    if abs(trunk @ leg) >= _ERECT * np.linalg.norm(trunk) * np.linalg.norm(leg):
        return True
    names = armature.pose.bones.keys()
    frames = np.asarray(_sampled(armature) if frames is None else frames, float)
    hips, shoulders = (
        frames[:, [names.index(slots[f"{part}_{side}"][0]) for side in SIDES], :3, 3].mean(1)
        for part in ("thigh", "upper_arm")
    )
    return bool((_unit(shoulders - hips)[:, 2] >= _ERECT).any())


def _refusal(armature, reason):
    return RigError(
        f"'{armature.name}' matches no rig map and {reason}: "
        "pick the armature of a biped, or give a rig map that names its bones."
    )


def _sampled(armature):
    """(F, B, 4, 4) world matrices at some frames of the assigned animation, or as it stands."""
    import bpy

    scene = bpy.context.scene
    with sampling.unchanged(scene, armature):
        start = end = scene.frame_current
        if armature.animation_data is not None:
            with contextlib.suppress(MotionError):  # without keys it is detected as it stands
                start, end = sampling.animated_range(armature, *compat.assigned(armature))
        frames = np.unique(np.linspace(start, end, _FRAMES).round())
        _, poses, _, objects, *_ = sampling.run(sampling.sampling(scene, armature, frames))
    return objects[:, None] @ poses


class _Tree:
    """Bones as a tree of joints that move.

    parents: (B,) indices, -1 for none. points: (F, B, 3) heads in the upright frames.
    rest, rest_tails: (1, B, 3) heads and tails in the rest pose. tails: (F, B, 3). turns: (B,) see
    _turns. bones: how many of them there are, without tips.
    lengths: (B,) distance to the parent. reach: (B,) longest way down from here along bones.
    tips: (F, B, 3) where that way ends.
    """

    def __init__(self, armature, matrices):
        matrices = np.asarray(matrices, float)
        rows = np.unique(np.linspace(0, len(matrices) - 1, _FRAMES).round().astype(int))
        matrices = matrices[rows]
        matrices = matrices[np.isfinite(matrices).all((1, 2, 3))]
        if not len(matrices):
            raise RigError(f"'{armature.name}' has no frame in which all bones are finite numbers.")
        points = matrices[..., :3, 3]
        height = np.ptp(points[..., 2], axis=1)
        upright = np.argsort(-height, kind="stable")[: max(1, round(_UPRIGHT * len(height)))]
        bones = armature.pose.bones
        index = {name: i for i, name in enumerate(bones.keys())}
        self.parents = np.array([index[b.parent.name] if b.parent else -1 for b in bones])
        self.points = points[upright]
        self.rest = np.array([bone.bone.head_local for bone in bones])[None]
        self.rest_tails = np.array([bone.bone.tail_local for bone in bones])[None]
        size = np.array([bone.bone.length for bone in bones])
        self.tails = self.points + matrices[upright][..., :3, 1] * size[:, None]
        self.turns = _turns(matrices, self.parents)
        self.bones = len(self.parents)
        self._measure()

    def with_tips(self):
        """This tree with a joint at the tail of each last bone, after all bones."""
        tree = copy.copy(self)
        last = [b for b in range(self.bones) if not self.children[b] and not self.twists[b]]
        tree.parents = np.append(self.parents, last)
        tree.points = np.append(self.points, self.tails[:, last], axis=1)
        tree.rest = np.append(self.rest, self.rest_tails[:, last], axis=1)
        tree.tails = np.append(self.tails, self.tails[:, last], axis=1)
        tree.turns = np.append(self.turns, np.zeros(len(last)))
        tree._measure()
        tree.twists[: self.bones] = self.twists
        return tree

    def _measure(self):
        """Lengths, reaches and ancestry."""
        count = len(self.parents)
        steps = np.linalg.norm(self.points - self.points[:, self.parents], axis=-1)
        steps[:, self.parents < 0] = 0.0
        self.steps = steps
        self.lengths = np.median(steps, axis=0)
        self.children = [[] for _ in range(count)]
        self.above = np.zeros((count, count), bool)  # [a, b]: a is b or an ancestor of b
        self.along = np.zeros((len(steps), count))  # way from the root
        self.chains = [None] * count
        for bone in self._downwards():
            parent = self.parents[bone]
            self.above[bone, bone] = True
            self.chains[bone] = [bone]
            if parent >= 0:
                self.children[parent].append(bone)
                self.above[:, bone] |= self.above[:, parent]
                self.along[:, bone] = self.along[:, parent] + steps[:, bone]
                self.chains[bone] = [*self.chains[parent], bone]
        way = np.median(self.along, axis=0)
        self.reach = np.where(self.above, way[None], -np.inf).max(1) - way
        self.family = self.above.sum(1)
        self.tips = self.tails[:, np.where(self.above, way[None], -np.inf).argmax(1)]
        self.twists = self._find_twists()

    def _find_twists(self):
        """(B,) whether a bone lies on the straight way to another one's head and leads nowhere."""
        tiny = _COINCIDENT * self.reach.max()
        anchor = self.parents.copy()
        for bone in self._downwards():
            if anchor[bone] >= 0 and self.lengths[anchor[bone]] <= tiny:
                anchor[bone] = anchor[anchor[bone]] if anchor[anchor[bone]] >= 0 else anchor[bone]
        twists = np.zeros(len(anchor), bool)
        for start in np.unique(anchor[anchor >= 0]):
            bones = np.nonzero((anchor == start) & (self.lengths > tiny))[0]
            ways = self.points[:, bones] - self.points[:, [start]]
            sizes = np.median(np.linalg.norm(ways, axis=-1), axis=0)
            ways = _unit(ways)
            in_line = np.einsum("fai,fbi->fab", ways, ways).min(0) > 0.985
            shorter = sizes[:, None] * 1.15 < sizes
            twists[bones] = (in_line & shorter).any(1) & (self.reach[bones] <= tiny)
        return twists

    def _downwards(self):
        """All bones, parents before children, else in their order."""
        depth = np.zeros(len(self.parents), int)
        bone = self.parents.copy()
        while (bone >= 0).any():
            depth += bone >= 0
            bone = np.where(bone >= 0, self.parents[bone], -1)
        return np.argsort(depth, kind="stable").tolist()

    def common(self, a, b):
        """The closest bone that is above both, or -1."""
        return next((bone for bone in reversed(self.chains[a]) if self.above[bone, b]), -1)

    def distance(self, a, b):
        """Usual distance between two heads."""
        return float(np.median(np.linalg.norm(self.points[:, a] - self.points[:, b], axis=-1)))

    def between(self, high, low):
        """Bones on the way from one down to another, without both."""
        chain = self.chains[low]
        return chain[chain.index(high) + 1 : -1]

    def triples(self, limb):
        """(N, 3) first, middle and end bones of what may be a limb, and (N,) costs."""
        joints = self.above & ~np.eye(len(self.above), dtype=bool)
        joints[:, self.twists] = joints[self.twists] = False
        high, low = np.nonzero(joints)
        arc = self.along[:, low] - self.along[:, high]
        chord = np.linalg.norm(self.points[:, low] - self.points[:, high], axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            straight = np.where(arc > 0, chord / arc, 0.0).min(0)
        size = np.median(chord, axis=0)
        keep = (straight > 0.9) & (size > 0)
        high, low, straight, size = high[keep], low[keep], straight[keep], size[keep]
        ends, begins = (np.bincount(one, minlength=len(self.above)) for one in (low, high))
        if ends @ begins > _MOST_PAIRS:
            raise RigError(
                f"{len(self.above)} bones that hang on each other are too many to find a body "
                "among them: choose a rig map."
            )
        first, second = _joined(low, high)
        a, b = size[first], size[second]
        keep = (a + b > _SHORTEST * (a + b).max(initial=0.0)) & (np.abs(np.log(a / b)) < 0.9)
        first, second = first[keep], second[keep]
        bones = np.stack((high[first], low[first], low[second]), 1)
        bend = _capped((1 - straight[first]) / 0.02, 6) + _capped((1 - straight[second]) / 0.02, 6)
        cost = bend + _off(size[first] / size[second], limb.middle, 6)
        end = self.reach[bones[:, 2]] / size[second]
        cost += np.where(end > 0.05, _off(end, limb.end, 4), 1.5)  # it may have no bones
        depth = self.above.sum(0)
        cost += 0.5 * (depth[bones[:, 2]] - depth[bones[:, 0]] - 2)  # bones within segments
        if limb is _LEG:
            cost += self._hanging(bones) + np.where(bones[:, 2] < self.bones, 0.0, np.inf)
        best = np.argsort(cost, kind="stable")[:_TRIPLES]
        return bones[best], cost[best]

    def _hanging(self, bones):
        """Cost of legs that do not hang down."""
        hip, knee, ankle = (self.points[:, bones[:, i]] for i in range(3))
        length = np.linalg.norm(knee - hip, axis=-1) + np.linalg.norm(ankle - knee, axis=-1)
        drop = np.median((hip - ankle)[..., 2] / length, axis=0)
        return _capped((1 - drop) / 0.3, 12)

    def pairs(self, triples, limb):
        """Pairs of limbs, the cheapest first."""
        bones, cost = triples
        if len(bones) < 2:
            return []
        one, other = np.triu_indices(len(bones), 1)
        start = bones[:, 0]
        apart = ~(self.above[start[one], start[other]] | self.above[start[other], start[one]])
        one, other = one[apart], other[apart]
        first, second = (
            np.median(
                np.linalg.norm(
                    self.points[:, bones[:, i + 1]] - self.points[:, bones[:, i]], axis=-1
                ),
                axis=0,
            )
            for i in range(2)
        )
        ends = self.points[:, start[one]] - self.points[:, start[other]]
        width = np.median(np.linalg.norm(ends, axis=-1), axis=0)
        steps = np.array([len(self.chains[k]) for k in bones[:, 2]])
        total = cost[one] + cost[other]
        total += _off(first[one] / first[other], (1.0, 0.08), 8)
        total += _off(second[one] / second[other], (1.0, 0.08), 8)
        total += _capped(0.7 * (steps[one] - steps[other]), 4)
        total += _off(2 * width / (first[one] + first[other]), limb.apart, 6)
        best = np.argsort(total, kind="stable")[: 2 * _ARMS]
        length = first + second
        return [
            _Pair(
                tuple(bones[one[n]].tolist()),
                tuple(bones[other[n]].tolist()),
                float(total[n]),
                float(length[one[n]] + length[other[n]]) / 2,
            )
            for n in best
        ]


@dataclass(frozen=True)
class _Pair:
    """Two limbs (first, middle and end bone each), their cost and mean length."""

    one: tuple
    other: tuple
    cost: float
    length: float


class _Body:
    """Legs and arms, and how well they make one body."""

    def __init__(self, tree, legs, arms):
        self.tree, self.legs, self.arms = tree, legs, arms
        self.erect = 0.0
        self.cost = np.inf
        hips = tree.common(legs.one[0], legs.other[0])
        chest = tree.common(arms.one[0], arms.other[0])
        hub = tree.common(hips, chest) if hips >= 0 and chest >= 0 else -1
        if (
            hub < 0
            or hub == chest
            or any(tree.above[leg[0], chest] for leg in (legs.one, legs.other))
        ):
            return
        self.hub, self.chest = hub, chest
        points = tree.points
        hip = points[:, [legs.one[0], legs.other[0]]].mean(1)
        shoulder = points[:, [arms.one[0], arms.other[0]]].mean(1)
        trunk = np.linalg.norm(shoulder - hip, axis=-1)
        if not trunk.min() > 0:
            return
        self.erect = float(np.max((shoulder - hip)[:, 2] / trunk))
        offset = np.median(np.linalg.norm(points[:, hub] - hip, axis=-1)) / legs.length
        self.cost = (
            legs.cost
            + arms.cost
            + float(
                _off(arms.length / legs.length, _ARM_PER_LEG, 9)
                + _off(np.median(trunk) / legs.length, _TRUNK_PER_LEG, 9)
                + _capped((1 - np.clip(self.erect, -1, 1)) / 0.3, 9)
                + _capped(offset / 0.3, 9)
            )
        )

    def slots(self):
        """Slot -> bone indices."""
        tree = self.tree
        left_leg, right_leg, left_arm, right_arm = self._sides()
        chest, head = self.head
        slots = {"pelvis": (self.hub,), "trunk": (*tree.between(self.hub, chest), chest)}
        slots["head"] = tuple(self._neck(head, self._up()))
        for side, leg, arm in zip(SIDES, (left_leg, right_leg), (left_arm, right_arm), strict=True):
            between = tree.between(chest, arm[0])
            if between:
                slots[f"clavicle_{side}"] = tuple(between)
            arm, leg = self._settle(arm), self._settle(leg)
            for part, bone in zip(("upper_arm", "forearm", "hand"), arm, strict=True):
                slots[f"{part}_{side}"] = (bone,)
            for part, bone in zip(("thigh", "shin", "foot"), leg, strict=True):
                slots[f"{part}_{side}"] = (bone,)
            toe = self._toe(leg)
            if toe is not None:
                slots[f"toe_{side}"] = (toe,)
        return slots

    def _settle(self, limb):
        """Of bones with one head, that which carries the next joint; of ends, the first."""
        tree = self.tree
        near = _COINCIDENT * (tree.lengths[limb[1]] + tree.lengths[limb[2]])
        settled = []
        for bone, lower in itertools.pairwise(limb):
            for step in tree.between(bone, lower):
                if tree.lengths[step] > near:
                    break
                bone = step
            settled.append(bone)
        end = limb[2]
        while tree.lengths[end] <= near and tree.parents[end] != settled[-1]:
            end = int(tree.parents[end])
        return (*settled, end)

    def _toe(self, leg):
        """The toe bone: the farthest child of the foot; of several, that with most below it."""
        tree = self.tree
        children = [c for c in tree.children[leg[2]] if tree.lengths[c] > 0.04 * self.legs.length]
        if not children:
            return None
        farthest = max(tree.lengths[child] for child in children)
        near = [child for child in children if tree.lengths[child] > 0.9 * farthest]
        return max(near, key=lambda child: (tree.family[child], -child))

    def _up(self):
        """(F, 3) directions from the hips to the shoulders."""
        points, (legs, arms) = self.tree.points, (self.legs, self.arms)
        up = points[:, [arms.one[0], arms.other[0]]].sum(1)
        return _unit(up - points[:, [legs.one[0], legs.other[0]]].sum(1))

    def _sides(self):
        """Legs and arms as (left leg, right leg, left arm, right arm), by where the body faces."""
        points, (legs, arms) = self.tree.points, (self.legs, self.arms)
        across = _unit(points[:, legs.one[0]] - points[:, legs.other[0]])
        ahead = np.cross(across, self._up())  # if the first leg is the left one
        evidence = sum(self._forward(leg) for leg in (legs.one, legs.other))
        votes = float((evidence * ahead).sum(-1).mean())
        if abs(votes) < 0.02:
            votes = float(-ahead[:, 1].mean())  # as Blender's own rigs: facing -Y
        leg = (legs.one, legs.other) if votes > 0 else (legs.other, legs.one)
        return (*leg, *((arms.one, arms.other) if self._same_side(leg) else (arms.other, arms.one)))

    def _same_side(self, legs):
        """Whether the first arm is on the side of the first leg.

        The rest pose tells, even where it is not human, as long as hips and shoulders are
        parallel in it: in motion a trunk may stay twisted by more than a right angle.
        """
        arms = (self.arms.one, self.arms.other)
        for points in (self.tree.rest, self.tree.points):
            hips, shoulders = (_unit(points[:, a[0]] - points[:, b[0]]) for a, b in (legs, arms))
            cosine = float((hips * shoulders).sum(-1).mean())
            if abs(cosine) > 0.7:
                break
        return cosine > 0

    def _forward(self, leg):
        """(F, 3) where a leg points: along its foot, and to where its knee bends."""
        tree = self.tree
        hip, knee, ankle = (tree.points[:, bone] for bone in leg)
        toe = self._toe(leg)
        if toe is not None:
            foot = tree.points[:, toe] - ankle
        else:
            foot = tree.tails[:, leg[2]] - ankle
            size = np.linalg.norm(foot, axis=-1, keepdims=True) / self.legs.length
            foot = np.where((size > 0.06) & (size < 0.5), foot, 0.0)
        line = _unit(ankle - hip)
        bend = knee - hip
        bend = bend - (bend * line).sum(-1, keepdims=True) * line
        return foot / self.legs.length + bend / self.legs.length

    @functools.cached_property
    def head(self):
        """The bone that carries arms and neck, and the first neck bone; None if there is none."""
        tree = self.tree
        up = self._up()
        shoulders = tree.points[:, [self.arms.one[0], self.arms.other[0]]].mean(1)
        starts = [arm[0] for arm in (self.arms.one, self.arms.other)]
        chest = self.chest
        while chest != self.hub:
            best, height = None, -np.inf
            others = [c for c in tree.children[chest] if not tree.above[c, starts].any()]
            for child in others:
                if tree.above[child, self.chest] or self._has_twin(child, others):
                    continue
                below = np.nonzero(tree.above[child])[0]
                rise = ((tree.points[:, below] - shoulders[:, None]) * up[:, None]).sum(-1)
                rise = np.median(rise, axis=0)
                if rise.max() <= _HEAD_RISE * self.legs.length:
                    continue
                top = rise[np.isin(below, self._middle(child))].max()  # wings rise higher
                if top > height:
                    best, height = child, top
            if best is not None:
                return chest, best
            chest = int(tree.parents[chest])
        return None

    def _middle(self, bone):
        """A bone and those below it that are not of a pair, nor below one of a pair."""
        found = [bone]
        for one in found:
            children = self.tree.children[one]
            found += [child for child in children if not self._has_twin(child, children)]
        return found

    def _neck(self, bone, up):
        """The chain upwards from the first neck bone to the head."""
        tree, chain = self.tree, [bone]
        while True:
            bone = chain[-1]
            steps = [
                child
                for child in tree.children[bone]
                if self._is_upward(bone, child, up) and not self._is_end(bone, child)
            ]
            if len(steps) != 1:
                return chain
            chain.append(steps[0])

    def _is_upward(self, bone, child, up):
        """Whether a child is the next neck bone or head: above, and not too far."""
        tree = self.tree
        length = tree.lengths[child] / self.legs.length
        if not 0.02 < length < _NECK_STEP:
            return False
        step = tree.points[:, child] - tree.points[:, bone]
        if self._has_twin(child, tree.children[bone]):
            return False
        return np.median((_unit(step) * up).sum(-1)) > 0.7

    def _has_twin(self, bone, siblings):
        """Whether one of the siblings is the other one of a pair, by where they begin or where they
        end: eyes, ears, breasts, wings."""
        tree = self.tree
        starts = tree.points[:, [self.arms.one[0], self.arms.other[0]]]
        across = _unit(starts[:, 0] - starts[:, 1])
        base = tree.points[:, tree.parents[bone]]
        for other in siblings:
            for ends, least in ((tree.points, 0.3), (tree.tips, 0.1)):
                step = ends[:, other] - ends[:, bone]
                one, two = (
                    np.median(np.linalg.norm(ends[:, end] - base, axis=-1)) for end in (bone, other)
                )
                near = np.linalg.norm(step, axis=-1).min() < least * one
                alike = abs(two - one) < 0.15 * one
                beside = np.median(np.abs((_unit(step) * across).sum(-1))) > 0.7
                if alike and not near and beside:
                    return True
        return False

    def _is_end(self, bone, child):
        """Whether a child only marks where its parent ends: it has no child and never turns."""
        tree = self.tree
        return not tree.children[child] and tree.turns[child] < 1e-4 < 1e-2 < tree.turns[bone]


def _joined(low, high):
    """Indices of all (p, q) with low[p] == high[q]."""
    order = np.argsort(high, kind="stable")
    start = np.searchsorted(high[order], low, "left")
    count = np.searchsorted(high[order], low, "right") - start
    p = np.repeat(np.arange(len(low)), count)
    within = np.arange(len(p)) - np.repeat(np.cumsum(count) - count, count)
    return p, order[np.repeat(start, count) + within]


def _turns(matrices, parents):
    """(B,) how far each bone turns about its parent over the frames [rad, about]."""
    axes = matrices[..., :3, :3]
    axes = axes / np.maximum(np.linalg.norm(axes, axis=-2, keepdims=True), 1e-12)
    local = np.where((parents < 0)[:, None, None], axes, axes[:, parents].swapaxes(-1, -2) @ axes)
    return np.linalg.norm(local - local[:1], axis=(-2, -1)).max(0)


def _unit(vectors):
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


def _capped(deviation, cap):
    return np.minimum(np.square(deviation), cap)


def _off(ratio, likely, cap):
    """Cost of a proportion: (most likely value, tolerance of its logarithm), at most the cap."""
    value, tolerance = likely
    return _capped(np.log(np.maximum(ratio, 1e-3) / value) / tolerance, cap)

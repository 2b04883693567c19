# SPDX-License-Identifier: GPL-3.0-or-later
"""Write a simulated performance to a new action, by differences from the reference.

For each body segment the world rotation from reference to simulation is applied to the bones
that carry it; everything else keeps its local animation. What is written is then read back
through Blender, and corrected where hidden mechanisms stand between the keys and the bones.
"""

import contextlib
import functools
import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...controller.body.morphology import Reshaping
from ...controller.exceptions import BakeError, MotionError, SettingsError
from ...controller.geometry.rotations import matrix_from_quaternion
from ...controller.geometry.skeleton import ENTRIES, PARENTS, SEGMENT_INDEX, SEGMENTS, SIDES
from ...controller.geometry.trajectory import low_passed_turns
from ...controller.reference.gait import Endless
from ...controller.reference.lying import Hold
from ...controller.reference.performed import CHAIN_CUTOFF
from ..blender import compat, keys
from ..blender.evaluation import Evaluation, LastOfTurn, evaluating
from ..blender.pose import inverse, nearest_rotation, slerp
from ..rigs import bake_target, loose_bones, reference, rig, sampling, source_values, strips
from ..rigs.bake_target import KINDS
from ..scene import walks
from . import bake_proportions, bake_solver, ik_legs, lying
from .clip import Clip

if TYPE_CHECKING:
    import bpy

#: A bake is read back exactly enough at this error of a joint [mm]; more is corrected.
EXACT = 0.02
#: One with all its keys that is off by more than this [mm] is told. By judgement: it is seen, and
#: chains of controls that share out turns which they cannot make are off by up to 6.
SEEN = 15.0
#: How often a bake is corrected, and how often its keys are thinned anew.
SWEEPS, THINNINGS = 6, 6

#: The part of the body that bones are which go with it without hanging on it.
LOOSE = "loose"


@dataclass(frozen=True)
class BakeOptions:
    """How a bake is written.

    key_every: distance of the keys [samples]; the last sample is always keyed.
    tolerance: leave out keys as long as no joint moves by more than this [mm]; 0 for none.
    source_keys: key only where the source action has keys.
    interpolation: "LINEAR", "BEZIER" or "CONSTANT".
    root_motion: "BONE", "OBJECT" to move the armature object horizontally with the pelvis, or
        "NONE" to leave out the way from the first sample to the last, evenly: it stays in place.
    legs: "IK" to key feet and knees where the rig has controls for that, or "FK".
    blend_in, blend_out: frames over which the bake starts and ends on the original pose.
    action: name of an existing action to add a slot to (Blender 4.4 and later); None for a new
        action.
    take: name of the take that is baked, which has a bake of its own; empty for none.
    nla: bake to an NLA strip, and keep the source on a muted track below.
    """

    key_every: int = 1
    tolerance: float = 0.0
    source_keys: bool = False
    interpolation: str = "LINEAR"
    root_motion: str = "BONE"
    legs: str = "IK"
    blend_in: float = 0
    blend_out: float = 0
    action: str | None = None
    take: str = ""
    nla: bool = False

    def check(self) -> None:
        """Raise SettingsError for a value that an option cannot have."""
        if int(self.key_every) != self.key_every or self.key_every < 1:
            raise SettingsError(f"Keys every {self.key_every} frames: give a whole number above 0.")
        for name in ("tolerance", "blend_in", "blend_out"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise SettingsError(f"The option {name} is {value}: give 0 or more.")
        for name, known in (
            ("interpolation", tuple(keys.INTERPOLATIONS)),
            ("root_motion", ("BONE", "OBJECT", "NONE")),
            ("legs", ("IK", "FK")),
        ):
            if getattr(self, name) not in known:
                raise SettingsError(
                    f"The option {name} is '{getattr(self, name)}': choose one of "
                    f"{', '.join(known)}."
                )

    def check_blends(self, frames: np.ndarray) -> None:
        """Raise SettingsError for a blend that is longer than what is baked. frames: (F,) read."""
        span = frames[-1] - frames[0]
        for word, length in (("in", self.blend_in), ("out", self.blend_out)):
            if length > span:
                raise SettingsError(
                    f"The bake is to blend {word} over {length:g} frames, and only {span:g} are "
                    "simulated: blend over fewer."
                )

    def keyed(self, rig_map: rig.RigMap) -> rig.RigMap:
        """A rig map with the controls that are keyed."""
        return rig_map.on_ik() if self.legs == "IK" else rig_map


@dataclass(frozen=True)
class BakeResult:
    """What was written: action and slot by name, (first, last) simulated frame, numbers of curves
    and keys, and the largest distance of a joint from where it should be [mm], read back through
    Blender at every sampled frame; of knees that inverse kinematics bends, sideways alone.

    leg_controls: names of the keyed bones by which IK moves legs. released_legs: sides of the legs
    that are on FK since IK puts them elsewhere.
    number: among all bakes. left: name of an earlier bake that has been renamed or changed by hand
    since, and is left as it is; None if there is none. over: names of NLA tracks over its strip
    that change it. warnings: sentences, where the rig does not go where it is to, or its source is
    not right by itself any more. way: (x, y) that was left out for it to stay in place [m].
    """

    action: str
    slot: str | None
    frames: tuple
    curves: int
    keys: int
    error_mm: float
    number: int
    left: str | None = None
    leg_controls: tuple = ()
    released_legs: tuple = ()
    over: tuple = ()
    warnings: tuple = ()
    way: tuple = (0.0, 0.0)

    def stays(self, reading: reference.Reading) -> str:
        """A sentence on how fast it would go that stays in place; empty where it goes."""
        if not any(self.way):
            return ""
        first, last = np.searchsorted(reading.frames, self.frames)
        x, y = np.array(self.way) / ((last - first) / reading.motion.rate)
        return (
            f"It stays in place: its feet stand where it is moved along evenly, at "
            f"{np.hypot(x, y):.2f} m/s ({x:.2f}, {y:.2f})."
        )


def bake(*arguments: Any, **options: Any) -> BakeResult:
    """`baking` from beginning to end; returns the BakeResult."""
    return sampling.run(baking(*arguments, **options))


def baking(
    scene: "bpy.types.Scene",
    reading: reference.Reading,
    rotation_deltas: np.ndarray,
    root_displacement: np.ndarray,
    options: BakeOptions | None = None,
    reshaping: Reshaping | None = None,
    kind: str = KINDS[0],
    stretched: Mapping[str, np.ndarray] | None = None,
    hold: Hold | None = None,
) -> Generator[float, None, BakeResult]:
    """Write what differs from the reference to a new action, and assign that: yields the progress
    from 0 to 1.

    reading: the Reading that was simulated.
    rotation_deltas: (n, len(SEGMENTS), 4) world rotations from reference to simulation; n may be
        less than the samples of the reading: the bake ends there.
    root_displacement: (n, 3) world displacement of the pelvis [m].
    reshaping: controller.morphology.Reshaping, if the body has other proportions than the armature.
        The differences are then those from its motion.
    kind: what is baked, of bake_target.KINDS; it takes the place of an earlier bake of that kind.
    stretched: {segment of a leg that stretches in the animation: (n,) how far, from 0 to 1, it is
        to do so no more}.
    hold: how what is not simulated comes to a stop in a fall, of the n samples; the bake ends with
        them then. None for a body that stands, or does to where the bake ends: all stops there.

    Returns a BakeResult. The source action is not changed. Raises BakeError or SettingsError; the
    scene is then as before, as it is if the generator is closed half-way.
    """
    options = options or BakeOptions()
    options.check()
    options.check_blends(reading.frames)
    scene = getattr(scene, "scene", scene)
    armature = scene.objects.get(reading.armature)
    reference.check_armature(armature)
    _check_bones(armature, reading)
    _check_deltas(reading, rotation_deltas, root_displacement)
    bake_target.check_editable(armature)
    source = compat.find_action(reading.action, reading.library) if reading.action else None
    if reading.action and source is None:
        raise BakeError(f"The action '{reading.action}' is gone: read the animation again.")
    slot = compat.find_slot(source, reading.slot)
    if options.nla:
        strips.check(armature, source, slot)
    yield 0.0
    frame, subframe = scene.frame_current, scene.frame_subframe
    state = bake_target.State(armature)
    stack = contextlib.ExitStack()
    try:
        # A bake that is shown has switched constraints off: the source needs them.
        state.show_source(source, slot)
        yield 0.0
        evaluation = stack.enter_context(evaluating(scene, armature))
        yield from evaluation.going_aside()
        yield 0.0
        count = len(rotation_deltas)
        fell = hold is not None or count < len(reading.frames)
        if fell and hold is None:  # it ends there, all of it
            hold = Hold.of(count, count, reading.rate)
        clip = yield from _extended(evaluation, reading, source, slot, count, fell)
        yield 0.0
        lines = {} if reshaping else loose_bones.lines(armature, reading)
        if hold is not None:
            hold = hold.after(clip.simulated.start)
            if reading.rig_map.controls:
                hold = hold.sharing()
            clip = lying.held(armature, reading.rig_map, clip, hold, lines)
            yield 0.0
        proportions = None
        if reshaping is not None:
            proportions = bake_proportions.Proportions(armature, reading, clip, reshaping)
            state.change(proportions.flags)
        deltas = rotation_deltas, root_displacement
        rig_map = options.keyed(reading.rig_map)
        legs = ik_legs.find(armature, rig_map) if options.legs == "IK" else ()
        loose = lines
        for leg in legs:
            loose = {bone: line for bone, line in loose.items() if bone not in leg.controls}
        beside = {slot: rig.beside(armature, rig_map, slot) for slot in rig_map.bones}
        yield 0.0
        wanted = _Wanted(
            reading, rig_map, clip, deltas, options, proportions, loose, beside, stretched, hold
        )
        yield from wanted.spread({})
        keyed = bake_solver.solver(armature, rig_map, clip, wanted, legs)
        yield 0.0
        state.keep(keyed.bones, [*keyed.switches, *keyed.spare])
        yield 0.0
        tracks = yield from keyed.tracks()
        bake_target.check_undriven(armature, [track.path for track in tracks])
        prepare = _prepared(reading, clip, hold, keyed.bones, lines, armature)
        chosen, take = options.action, options.take
        ceiling = strips.lowest(armature)
        yield 0.0
        with bake_target.Target(armature, source, slot, chosen, kind, prepare, take) as target:
            yield from target.filling()
            yield LastOfTurn(0.0)
            error, fit = yield from _write(evaluation, clip, wanted, keyed, tracks, target, options)
            counts = target.counts
            stack.close()
            yield LastOfTurn(1.0)
            target.finish(state.values, proportions.flags if proportions else {})
        baked = target.action, target.slot
        unheld = source_values.hold(armature, (source, slot), baked, state.values, ceiling)
        if options.nla:
            strips.place(scene, armature, (source, slot), baked)
        else:
            strips.remove(armature, baked)
    except BaseException:
        state.put_back()
        stack.close()
        scene.frame_set(frame, subframe=subframe)
        raise
    try:
        yield LastOfTurn(1.0)
    finally:  # it is baked, whoever stops now
        scene.frame_set(frame, subframe=subframe)
    simulated = clip.frames[clip.simulated]
    return BakeResult(
        action=target.action.name,
        slot=compat.slot_name(target.slot),
        frames=(float(simulated[0]), float(simulated[-1])),
        curves=counts[0],
        keys=counts[1],
        error_mm=error,
        number=target.number,
        left=target.left,
        leg_controls=keyed.leg_controls,
        released_legs=tuple(leg.side for leg in keyed.released),
        over=strips.over(armature, baked),
        way=tuple((wanted.way[:2] * wanted.unit).tolist()),
        warnings=tuple(filter(None, (_missed(armature, fit), _unheld(armature, unheld)))),
    )


def _prepared(
    reading: reference.Reading,
    clip: Clip,
    hold: Hold | None,
    keyed: Sequence[str],
    lines: Mapping[str, tuple[str, ...]],
    armature: "bpy.types.Object",
) -> Callable[[Any], None] | None:
    """What is done to the curves that are taken over from the source, or None."""
    if hold is None:
        if reading.looped is None:
            return None
        return functools.partial(walks.loop_curves, reading=reading)
    bones = lying.bones_of(armature, reading.rig_map, keyed, lines)
    living = lying.living_of(armature, reading.rig_map)

    def prepare(holder: Any) -> None:
        if reading.looped is not None:
            walks.loop_curves(holder, reading)
        lying.still(holder, bones, living, clip, hold)

    return prepare


def _missed(armature: "bpy.types.Object", fit: "_Off") -> str:
    if fit.mm < SEEN:
        return ""
    return (
        f"'{armature.name}' does not go where it was simulated: '{fit.bone}' is off by up to "
        f"{fit.mm:.0f} mm, at frame {fit.frame:g}. The rig moves it beside what is keyed, by "
        "constraints or drivers, as where it is bent more than its controls bend: look for them "
        "there, or choose the bones to key in a rig map."
    )


def _unheld(armature: "bpy.types.Object", why: str) -> str:
    if not why:
        return ""
    return (
        f"The source of '{armature.name}' is right by Poise's buttons Source and Baked alone, not "
        f"where it is assigned by hand or without Poise: {why}."
    )


def show(
    scene: "bpy.types.Scene",
    armature: "bpy.types.Object",
    which: str,
    chosen: "tuple[bpy.types.Action, bpy.types.ActionSlot | None] | None" = None,
) -> None:
    """Show the "source" or the "baked" animation of an armature.

    chosen: (action, slot) of one of its bakes; None for that which is shown, or else the newest.
    Raises BakeError if the armature has no bake.
    """
    scene = getattr(scene, "scene", scene)
    baked = chosen or bake_target.current(armature)
    if baked is None:
        raise BakeError(f"'{armature.name}' has no bake: bake a simulation first.")
    shown = strips.shown(armature, muted=True)
    if which == "source" or baked != strips.shown(armature):
        mark = bake_target.mark_of(*shown)
        strips.assign(armature, *bake_target.unbaked(armature))
        if mark is not None:
            bake_target.restore_values(armature, mark)
        if which == "baked":
            strips.show(armature, *baked)
            bake_target.set_values(armature, bake_target.mark_of(*baked))
    scene.frame_set(scene.frame_current, subframe=scene.frame_subframe)


def remove(
    scene: "bpy.types.Scene",
    armature: "bpy.types.Object",
    bake: "tuple[bpy.types.Action, bpy.types.ActionSlot | None]",
) -> None:
    """Remove a bake (action, slot) of an armature, which then shows its source if it showed that.

    Raises BakeError if something else uses the action.
    """
    action, slot = bake
    shown = bake == strips.shown(armature)
    if strips.is_shared(armature, bake):
        raise BakeError(
            f"'{action.name}' is used elsewhere too, as by an NLA strip or as the source of "
            "another bake: take it away there first."
        )
    if shown:
        show(scene, armature, "source")
    strips.remove(armature, bake)
    bake_target.remove(action, slot)
    if not bake_target.has_bakes(armature):
        source_values.release(armature)


def restore(scene: "bpy.types.Scene", armature: "bpy.types.Object") -> None:
    """Put the source action (and slot) back, with everything that the bake switched."""
    show(scene, armature, "source")


def _check_bones(armature: "bpy.types.Object", reading: reference.Reading) -> None:
    """Raise BakeError if a bone that was read is gone, or has another name now."""
    gone = [name for name in reading.bone_names if name not in armature.data.bones]
    if gone:
        raise BakeError(
            f"The bone '{gone[0]}' of '{armature.name}' was deleted or renamed after it was read: "
            "undo that, or simulate again."
        )


def _check_deltas(
    reading: reference.Reading, rotations: np.ndarray, displacement: np.ndarray
) -> None:
    """Raise BakeError unless there are finite deltas for at most the samples of the reading."""
    count = len(rotations)
    if rotations.shape != (count, len(SEGMENTS), 4) or displacement.shape != (count, 3):
        raise ValueError(f"deltas have shapes {rotations.shape} and {displacement.shape}")
    if not 1 <= count <= len(reading.frames):
        raise BakeError(
            f"{count} simulated samples do not fit the {len(reading.frames)} that were read: "
            "simulate again."
        )
    finite = np.isfinite(rotations).all(-1)
    if not finite.all():
        sample, segment = np.argwhere(~finite)[0]
        raise BakeError(
            f"The simulated {SEGMENTS[segment]} is not a number at frame "
            f"{reading.frames[sample]:g}: simulate again with softer gains or a higher rate."
        )
    finite = np.isfinite(displacement).all(-1)
    if not finite.all():
        raise BakeError(
            f"The simulated pelvis is not a number at frame "
            f"{reading.frames[np.argmin(finite)]:g}: simulate again with softer gains or a higher "
            "rate."
        )


def _extended(
    evaluation: Evaluation,
    reading: reference.Reading,
    source: "bpy.types.Action | None",
    slot: "bpy.types.ActionSlot | None",
    count: int,
    fell: bool,
) -> Generator[float, None, Clip]:
    """The Clip of a reading of which `count` samples were simulated, to a fall or not; yields the
    progress of reading those around them."""
    frames = reading.frames[:count]
    try:
        first, last = sampling.animated_range(evaluation.armature, source, slot)
    except MotionError:
        # What others move, by constraints, has no range of its own.
        first, last = frames[0], frames[-1]
    before = np.arange(math.floor(first), math.ceil(frames[0]))
    after = np.arange(math.floor(frames[-1]) + 1, math.ceil(last) + 1)
    if fell:
        after = after[:0]  # back to the animation would be a jump
    if reading.looped is not None:
        after = after[:0]  # so it would from a walk that has gone on elsewhere
        assert isinstance(reading.motion, Endless)  # as all that is looped
        if reading.motion.walk.points:
            before = before[:0]  # and to the beginning of its curve
    outside = []
    names = reading.bone_names
    for part in (before, after):
        sampled = yield from sampling.sampled(evaluation, part, names) if len(part) else ()
        outside.append(sampled)
    to_armature = inverse(reading.object_matrices[:count])[:, None]
    local = np.empty_like(reading.bone_matrices[:count])
    for start in range(0, count, reference.PIECE):
        piece = slice(start, start + reference.PIECE)
        local[piece] = to_armature[piece] @ reading.bone_matrices[:count][piece]
        yield 1.0
    own: Sequence[np.ndarray] = (
        local,
        reading.basis_matrices[:count],
        reading.object_matrices[:count],
        reading.object_bases[:count],
    )
    if outside != [None, None]:
        around = [sampled and sampled[1:] for sampled in outside]
        parts = [part for part in (around[0], own, around[1]) if part is not None]
        own = [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]
        yield 1.0
    poses, bases, objects, object_bases = own
    frames = np.concatenate([before, frames, after])
    render = evaluation.scene.render
    return Clip(
        frames=frames,
        simulated=slice(len(before), len(before) + count),
        times=frames * render.frame_map_old / render.frame_map_new,
        names=reading.bone_names,
        poses=poses,
        bases=bases,
        objects=objects,
        object_bases=object_bases,
    )


class _Wanted:
    """Where the carrying bones and the object are to be, at every frame of the clip.

    bones: carrying bones, parents before children. parents: bone -> the one that carries it, None
    for the pelvis. slots: bone -> its body part. matrices: bone -> (T, 4, 4) world matrices.
    objects: (T, 4, 4) world matrices of the armature object. unit: metres per scene unit. way: (3,)
    what is left out of where it goes from the first simulated frame to the last.
    factors, sizes: {bone: scale} of carrying bones and of hands that have other proportions.
    rigid: {bone of a leg that stretches in the animation: (T,) how far it does so no more}.
    """

    def __init__(
        self,
        reading: reference.Reading,
        rig_map: rig.RigMap,
        clip: Clip,
        deltas: tuple[np.ndarray, np.ndarray],
        options: BakeOptions,
        proportions: bake_proportions.Proportions | None = None,
        loose: Mapping[str, tuple[str, ...]] | None = None,
        beside: Mapping[str, tuple[str, ...]] | None = None,
        stretched: Mapping[str, np.ndarray] | None = None,
        hold: Hold | None = None,
    ) -> None:
        """loose: {bone: the bone that it goes with, and all above that} of those that go with the
        body without hanging on it. beside: {slot: toes that turn with its first}. stretched: as
        `baking` has it. hold: of all frames of the clip. Nothing is anywhere before `spread`."""
        rotations, displacement = deltas
        self.unit = reading.metres_per_unit
        self._proportions, self._loose, self._hold = proportions, loose or {}, hold
        self._beside = beside or {}
        self.factors = proportions.factors if proportions else {}
        self.sizes = proportions.sizes if proportions else {}
        weight = _blend_weights(clip, options)
        turns = np.zeros((len(clip.frames), len(SEGMENTS), 4))
        turns[..., 0] = 1
        norms = np.linalg.norm(rotations, axis=-1, keepdims=True)
        turns[clip.simulated] = slerp(turns[clip.simulated], rotations / norms, weight[:, None])
        self.rigid = {}
        for segment, share in (stretched or {}).items():
            bone = reference.carrier(reading.rig_map, segment)
            self.rigid[bone] = np.zeros(len(clip.frames))
            self.rigid[bone][clip.simulated] = weight * share
        self._slow = turns.copy()
        self._slow[clip.simulated] = low_passed_turns(
            turns[clip.simulated], reading.motion.rate, CHAIN_CUTOFF
        )
        moved = np.zeros((len(clip.frames), 3))
        moved[clip.simulated] = displacement * weight[:, None] / self.unit
        if proportions:
            moved += proportions.shift / self.unit
        self.way = np.zeros(3)
        if options.root_motion == "NONE":
            ends = [clip.simulated.start, clip.simulated.stop - 1]
            starts = reading.motion.positions[[0, ends[1] - ends[0]], 0] / self.unit
            self.way[:2] = np.diff(starts + moved[ends], axis=0)[0, :2]
            moved -= np.interp(np.arange(len(moved)), ends, [0, 1])[:, None] * self.way
        self._clip, self._deltas, self._moved = clip, turns, moved
        self._reading, self._rig_map, self._root_motion = reading, rig_map, options.root_motion

    def spread(self, shares: Mapping[str, float]) -> Iterator[float]:
        """Put everything in place, part by part, of which each yields; shares: bone -> share of its
        segment's turn, in a chain."""
        self.matrices: dict[str, np.ndarray] = {}
        self.parents: dict[str, str | None] = {}
        self.slots: dict[str, str] = {}
        self._turns: dict[str, np.ndarray] = {}
        chains, controls = self._rig_map.bones, self._rig_map.controls
        for segment in SEGMENTS:
            # A rig need not have toes, and a map of a control rig no controls for them.
            minor = ENTRIES[segment].minor
            if not minor or (segment in chains and (segment in controls or not controls)):
                yield 0.0
                self._add(segment, shares)
        for side in SIDES:
            # Hands go with their forearms, but must be keyed where controls replace their bones.
            hand, forearm = f"hand_{side}", f"forearm_{side}"
            if hand in chains and hand in controls:
                delta = self._deltas[:, SEGMENT_INDEX[forearm]]
                self._put(hand, chains[hand][0], chains[forearm][0], delta)
            toe, foot = f"toe_{side}", f"foot_{side}"
            for bone in self._beside.get(toe, ()):
                self._put(toe, bone, chains[foot][0], self._deltas[:, SEGMENT_INDEX[toe]])
        for bone, line in self._loose.items():
            yield 0.0
            carrier = next(one for one in line if one in self.matrices)
            self._carry(LOOSE, bone, carrier, self._turns[carrier])
        self.bones = tuple(self.matrices)
        self.objects = self._objects()

    def world(self, bone: str) -> np.ndarray:
        """(T, 4, 4) reference world matrices of a bone."""
        return self._clip.objects @ self._clip.poses[:, self._clip.names.index(bone)]

    def _add(self, segment: str, shares: Mapping[str, float]) -> None:
        """Add the bones of a segment, the last of which turns with it."""
        delta = self._deltas[:, SEGMENT_INDEX[segment]]
        *between, last = reference.carriers(self._rig_map, segment)
        if segment == "pelvis":
            self._put(segment, last, None, delta)
            self.matrices[last][:, :3, 3] += self._moved
            return
        parent = PARENTS[segment]
        # What rides along on its parent turns as that does, with nothing to spread.
        rides = np.array_equal(delta, self._deltas[:, SEGMENT_INDEX[parent]])
        turns = self._deltas if rides else self._slow
        start, end = (turns[:, SEGMENT_INDEX[s]] for s in (parent, segment))
        before = next(b for b in reversed(self.matrices) if self.slots[b] == parent)
        for i, bone in enumerate(between):
            share = shares.get(bone, (i + 1) / (len(between) + 1))
            turn = slerp(start, end, share)
            if self._hold:
                turn = slerp(turn, delta, self._hold.whole)
            self._put(segment, bone, before, turn)
            before = bone
        self._put(segment, last, before, delta)

    def _put(self, slot: str, bone: str, parent: str | None, delta: np.ndarray) -> None:
        """Turn a bone in the world, and carry its head along with the bone that carries it."""
        self._carry(slot, bone, parent, matrix_from_quaternion(delta))

    def _carry(self, slot: str, bone: str, parent: str | None, turn: np.ndarray) -> None:
        matrix = self.world(bone)
        if parent is not None:
            arm = matrix[:, :3, 3] - self.world(parent)[:, :3, 3]
            if self._proportions:
                arm = self._proportions.arm(slot, bone, self.slots[parent], parent)
            elif parent in self.rigid:
                arm = self._unstretched(parent, arm[..., None], bone)[..., 0]
            carried = (self._turns[parent] @ arm[..., None])[..., 0]
            matrix[:, :3, 3] = self.matrices[parent][:, :3, 3] + carried
        if bone in self.rigid:
            matrix[:, :3, :3] = self._unstretched(bone, matrix[:, :3, :3])
        matrix[:, :3, :3] = turn @ matrix[:, :3, :3] * self.factors.get(bone, 1.0)
        self.matrices[bone], self.parents[bone] = matrix, parent
        self.slots[bone], self._turns[bone] = slot, turn

    def _unstretched(
        self, bone: str, vectors: np.ndarray, carried: str | None = None
    ) -> np.ndarray:
        """(T, 3, n) vectors that turn with a bone, as long as they mostly are in all that was read,
        as the body's are. carried: the bone to which they lead, None for axes of its own."""
        turn = nearest_rotation(self.world(bone)[:, :3, :3])
        own = inverse(turn) @ vectors
        read = self._reading.bone_matrices
        matrices = read[:, self._reading.bone_index(bone)]
        axes = whole = matrices[:, :3, :3]
        if carried is not None:
            whole = (read[:, self._reading.bone_index(carried), :3, 3] - matrices[:, :3, 3])[
                ..., None
            ]
        usual = np.median(inverse(nearest_rotation(axes)) @ whole, axis=0)
        return turn @ (own + self.rigid[bone][:, None, None] * (usual - own))

    def _objects(self) -> np.ndarray:
        """World matrices of the object: the reference's, or moving along with the pelvis."""
        objects = self._clip.objects.copy()
        if self._root_motion == "OBJECT":
            simulated = self._clip.simulated
            pelvis = self.matrices[self.bones[0]][simulated, :2, 3]
            objects[simulated, :2, 3] = objects[simulated, :2, 3][0] + pelvis - pelvis[0]
        return objects

    def poses(self, bone: str) -> np.ndarray:
        """(T, 4, 4) wanted poses of a bone in the armature's space."""
        return inverse(self.objects) @ self.matrices[bone]

    def joints(
        self, armature: "bpy.types.Object", matrices: Mapping[str, np.ndarray]
    ) -> np.ndarray:
        """(T, 2 bones, 3) heads and tails of the carrying bones at world matrices of theirs."""
        points = []
        for bone in self.bones:
            length = armature.data.bones[bone].length
            points += [matrices[bone][:, :3, 3]]
            points += [matrices[bone][:, :3, 3] + length * matrices[bone][:, :3, 1]]
        return np.stack(points, 1)


def _blend_weights(clip: Clip, options: BakeOptions) -> np.ndarray:
    """(n,) weight of the differences at the simulated frames."""
    frames = clip.frames[clip.simulated]
    weight = np.ones(len(frames))
    for length, distance in (
        (options.blend_in, frames - frames[0]),
        (options.blend_out, frames[-1] - frames),
    ):
        if length > 0:
            weight *= 0.5 - 0.5 * np.cos(np.pi * np.clip(distance / length, 0, 1))
    return weight


class _Off(NamedTuple):
    """The largest distance of a joint from where it should be [mm], the bone whose it is, and the
    frame."""

    mm: float
    bone: str
    frame: float


def _write(
    evaluation: Evaluation,
    clip: Clip,
    wanted: _Wanted,
    keyed: bake_solver.PlainSolver | bake_solver.ControlSolver,
    tracks: list[keys.Track],
    target: bake_target.Target,
    options: BakeOptions,
) -> Generator[float, None, tuple[float, _Off]]:
    """Write the keys, read them back and correct them; yields the progress of each of these
    stages, and returns the remaining error [mm] and that of all keys."""
    armature = evaluation.armature

    def error_after(
        tracks: list[keys.Track], keep: Callable[[keys.Track], np.ndarray], interpolation: str
    ) -> Generator[float, None, tuple[_Off, Any]]:
        kept = []
        for track in tracks:
            yield 0.0
            kept.append(keep(track))
        yield from target.write(tracks, kept, interpolation)
        sampled = yield from sampling.sampled(evaluation, clip.frames, keyed.watched)
        names, poses, _, objects, _ = sampled
        seen = dict(zip(names, poses.swapaxes(0, 1), strict=True))
        worlds = {}
        for bone in wanted.bones:
            yield 1.0
            worlds[bone] = objects @ seen[bone]
        yield 1.0
        offsets = wanted.joints(armature, worlds) - wanted.joints(armature, wanted.matrices)
        yield 1.0
        distances = keyed.distances(offsets, worlds)
        sample, joint = np.unravel_index(np.argmax(distances), distances.shape)
        most = 1000 * wanted.unit * float(distances[sample, joint])
        return _Off(most, wanted.bones[joint // 2], float(clip.frames[sample])), seen

    thinning = options.tolerance > 0 or options.source_keys or options.key_every > 1
    interpolation = "LINEAR" if thinning else options.interpolation
    full = functools.partial(keys.distinct, interpolation=interpolation)

    def fitted(
        tracks: list[keys.Track],
    ) -> Generator[float, None, tuple[list[keys.Track], _Off, Any]]:
        error, seen = yield from error_after(tracks, full, interpolation)
        for _ in range(SWEEPS):
            if error.mm <= EXACT:
                break
            better = yield from keyed.corrected(evaluation, seen)
            better_error, better_seen = yield from error_after(better, full, interpolation)
            if better_error.mm > error.mm:
                error, seen = yield from error_after(tracks, full, interpolation)
                break
            gain = better_error.mm / error.mm
            tracks, error, seen = better, better_error, better_seen
            if gain > 0.95:
                break
        return tracks, error, seen

    tracks, fit, seen = yield from fitted(tracks)
    if keyed.release(seen):
        tracks, fit, _ = yield from fitted((yield from keyed.tracks()))
    if options.tolerance > 0:
        return (yield from _simplify(tracks, error_after, wanted, options)), fit
    if thinning:
        error, _ = yield from error_after(
            tracks, lambda track: _kept(track, clip, target, options), options.interpolation
        )
        return error.mm, fit
    return fit.mm, fit


def _simplify(
    tracks: list[keys.Track],
    error_after: Callable[..., Generator[float, None, tuple[_Off, Any]]],
    wanted: _Wanted,
    options: BakeOptions,
) -> Generator[float, None, float]:
    """Write as few keys as stay within the tolerance; yields progress, returns the error [mm].

    Errors of the bones on the way to a joint may add up or cancel, so what each bone is allowed is
    sought between what was too much and what was not.
    """
    kind, tolerance = options.interpolation, options.tolerance

    def error_with(allowed: Any) -> Generator[float, None, float]:
        keep = functools.partial(keys.simplified, tolerance=allowed, interpolation=kind)
        return (yield from error_after(tracks, keep, kind))[0].mm

    start = 0.7 * tolerance / 1000 / wanted.unit
    good, bad, allowed, error = 0.0, np.inf, start, np.inf
    for _ in range(THINNINGS):
        error = yield from error_with(allowed)
        if error <= tolerance:
            good = allowed
            if error > 0.75 * tolerance:
                return error
        else:
            bad = allowed
        allowed *= 0.9 * tolerance / max(error, 1e-9)
        if not good < allowed < bad:
            allowed = (good + min(bad, 2 * good)) / 2
    return error if good and error <= tolerance else (yield from error_with(good))


def _kept(
    track: keys.Track, clip: Clip, target: bake_target.Target, options: BakeOptions
) -> np.ndarray:
    """Indices of the samples of a track to key."""
    count = len(track.frames)
    if count < len(clip.frames):
        return np.arange(count)
    first, last = clip.simulated.start, clip.simulated.stop - 1
    if options.source_keys:
        times = np.array(target.source_times(track.group))
        after = np.clip(np.searchsorted(clip.times, times), 1, count - 1)
        nearer = np.abs(clip.times[after - 1] - times) <= np.abs(clip.times[after] - times)
        return np.unique(np.concatenate([after - nearer, [0, first, last, count - 1]]))
    outside = [*range(first), *range(last + 1, count)]
    return np.unique([*outside, *range(first, last, int(options.key_every)), last])

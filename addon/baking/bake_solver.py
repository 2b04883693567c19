# SPDX-License-Identifier: GPL-3.0-or-later
"""Which channels put the carrying bones where they are wanted.

On a plain rig Blender's bone arithmetic tells, also past bones in between that keep their own
animation. On a control rig the mechanism between control and bone is unknown: it is probed, and
the controls are corrected by what is read back.
"""

import functools

import numpy as np
from mathutils import Matrix

from ...controller.exceptions import BakeError
from ...controller.geometry.rotations import (
    matrix_from_quaternion,
    quaternion_from_matrix,
    rotation_vector,
    unit,
)
from ...controller.geometry.skeleton import SIDES
from ..blender import compat
from ..blender.keys import Track
from ..blender.pose import (
    compose,
    inverse,
    nearest_rotation,
    parent_space,
    rotation_property,
    rotation_values,
    scale_of,
    slerp,
)
from ..rigs import reference
from ..rigs.bake_target import Switch, without_control
from . import ik_legs

#: A location is keyed where without it a joint would be off by more than this [m].
LOCATION_TOLERANCE = 2e-5
#: A scale is keyed where it differs from its channel by more than this share.
SCALE_TOLERANCE = 1e-4
#: How often a rotation is improved where uneven scales shear the space that it acts in.
SHEAR_STEPS = 8
#: A leg on IK whose knee or ankle is off by more than this [m] goes back to FK. In straight legs a
#: rounded place of the ankle turns the knee out by some tenths of a millimetre.
STRAY = 1e-3
#: Channels of a bone, and how many values each has.
_CHANNELS = {
    "location": 3,
    "rotation_quaternion": 4,
    "rotation_euler": 3,
    "rotation_axis_angle": 4,
    "scale": 3,
}
#: By how much a control is turned to see what follows [rad].
PROBE = 0.1


def solver(armature, rig_map, clip, wanted, legs=()):
    """The solver that fits a rig: for its controls if it has any. legs: IkLegs to bake on IK."""
    if rig_map.controls:
        return ControlSolver(armature, rig_map, clip, wanted)
    return PlainSolver(armature, clip, wanted, legs)


class _Solver:
    """What both kinds share.

    bones: names of the bones to key. watched: names of the bones to read back.
    switches: what must be switched while the bake is shown. spare: what may have to be, too.
    leg_controls: names of the bones to key by which IK moves legs. released: IkLegs that are on
    FK since IK puts them elsewhere.
    """

    def __init__(self, armature, clip, wanted):
        self.armature, self._clip, self._wanted = armature, clip, wanted
        self.bones, self.watched, self.leg_controls = (), (), ()
        self.switches, self.spare, self.released = (), (), []
        self._starts = {}

    def distances(self, offsets, _worlds):
        """(T, 2 bones) how far joints are off, of their (T, 2 bones, 3) offsets."""
        return np.linalg.norm(offsets, axis=-1)

    def release(self, _seen):
        """Put legs on FK that IK does not put where they are wanted; whether there are any."""
        return False

    def _pose(self, bone):
        """(T, 4, 4) reference poses of a bone."""
        return self._clip.poses[:, self._clip.names.index(bone)]

    def _channels(self, bone):
        """(T, 4, 4) reference basis of a bone, of its channels alone."""
        return self._clip.bases[:, self._clip.names.index(bone)]

    def _bone_tracks(self, bone, location, rotation, scale, reach):
        """Tracks of the (T, …) channels of a bone; any of them may be None."""
        owner, times = self.armature.pose.bones[bone], self._clip.times
        if rotation is not None:
            name = rotation_property(owner.rotation_mode)
            path = owner.path_from_id(name)
            start = self._start(path, list(getattr(owner, name)))
            values = rotation_values(owner.rotation_mode, rotation, start)
            yield Track(path, bone, times, values, owner.rotation_mode, reach)
        size = self._unit_length(bone)
        if location is not None:
            path = owner.path_from_id("location")
            yield Track(path, bone, times, location, "LOCATION", size)
        if scale is not None:
            yield self._scale_track(bone, scale, reach)

    def _scale_track(self, bone, scale, reach):
        """The track of a bone's scale (T, 3): of one key, if it never changes."""
        path, times = self.armature.pose.bones[bone].path_from_id("scale"), self._clip.times
        if np.ptp(scale, axis=0).max() < SCALE_TOLERANCE:
            return Track(path, bone, times[:1], scale[:1], "CONSTANT")
        return Track(path, bone, times, scale, "SCALE", reach)

    def _start(self, path, values):
        """Values that the source's curves have at the first frame, else those of now."""
        if not self._starts:
            for curve in compat.curves(*compat.assigned(self.armature)):
                if not curve.mute:
                    value = curve.evaluate(self._clip.times[0])
                    self._starts[curve.data_path, curve.array_index] = value
        found = [self._starts.get((path, i), value) for i, value in enumerate(values)]
        return np.array(found, float)

    def _unit_length(self, bone):
        """How far a unit of a bone's location moves it at most, in scene units."""
        owner = self.armature.data.bones[bone]
        parent = self._pose(owner.parent.name) if owner.parent else self._clip.poses[:, 0]
        place = parent_space(owner, parent[:1]).place
        return np.linalg.norm(self._clip.objects[0, :3, :3] @ place[0, :3, :3], 2)

    def _reach(self, bone, carried):
        """Largest distance of a bone's head from the joints of bones that it carries."""
        rows = [i for i, name in enumerate(self._wanted.bones) for _ in range(2) if name in carried]
        rows = [2 * i + tail for i in sorted(set(rows)) for tail in range(2)]
        head = self._wanted.world(bone)[:, None, :3, 3]
        return float(np.linalg.norm(self._joints[:, rows] - head, axis=-1).max()) if rows else 0.0

    @functools.cached_property
    def _joints(self):
        """(T, 2 bones, 3) joints of the reference."""
        matrices = {name: self._wanted.world(name) for name in self._wanted.bones}
        return self._wanted.joints(self.armature, matrices)

    def _carried(self, bone):
        """A carrying bone and all that hang from it."""
        carried, parents = set(), self._wanted.parents
        for name in self._wanted.bones:
            if name == bone or parents[name] in carried:
                carried.add(name)
        return carried

    def _common_tracks(self):
        """Tracks of switches, and of the object if that moves."""
        for switch in self.switches:
            value = np.array([[switch.value]], float)
            yield Track(switch.path, switch.group, self._clip.times[:1], value, "CONSTANT")
        clip, wanted = self._clip, self._wanted
        moved = wanted.objects[:, :3, 3] - clip.objects[:, :3, 3]
        if not np.any(moved):
            return
        if any(not one.mute and one.influence > 0 for one in self.armature.constraints):
            raise BakeError(
                f"The object '{self.armature.name}' has constraints, which overrule its keys: "
                "leave the root motion on the bone, or mute them."
            )
        parent = (clip.objects @ inverse(clip.object_bases))[:, :3, :3]
        location = clip.object_bases[:, :3, 3] - np.array(self.armature.delta_location)
        location = location + (inverse(parent) @ moved[..., None])[..., 0]
        size = np.linalg.norm(parent[0], 2)
        yield Track("location", "Object Transforms", clip.times, location, "LOCATION", size)


class PlainSolver(_Solver):
    """For rigs whose carrying bones can be keyed themselves.

    legs: IkLegs, of which the bones are keyed, too, that IK pulls them to.
    """

    def __init__(self, armature, clip, wanted, legs=()):
        super().__init__(armature, clip, wanted)
        self._legs = legs
        kept = {one for leg in legs for one in leg.constraints}
        self.switches, freed = _freed(armature, wanted.bones, kept)
        self.switches += [switch for leg in legs for switch in leg.on]
        self.spare = [switch for leg in legs for switch in leg.off]
        self.leg_controls = tuple(control for leg in legs for control in leg.controls)
        self.bones = (*wanted.bones, *freed, *wanted.sizes, *self.leg_controls)
        self.watched = _with_ancestors(armature, self.bones)
        self._keyed = {}
        # Of each watched bone, from the first tracks on.
        self._first, self._local = {}, {}

    def _space(self, bone, pose):
        """The ParentSpace of a bone; pose: bone -> its (T, 4, 4) poses."""
        owner = self.armature.data.bones[bone]
        return parent_space(owner, pose(owner.parent.name if owner.parent else bone))

    def _effective(self, bone, pose):
        """The basis that would give a bone its poses if nothing but its parent had a say."""
        return self._space(bone, pose).basis(pose(bone))

    def tracks(self):
        """The tracks that put all bones where they are wanted; yields progress from 0 to 1."""
        poses, tracks = {}, []
        controls = self._controls()
        for i, bone in enumerate(self.watched):
            yield i / len(self.watched)
            if bone not in self._first:
                self._first[bone] = self._local[bone] = self._effective(bone, self._pose)
                yield i / len(self.watched)
            # A root bone has no parent: any poses do.
            poses[bone] = self._pose(bone)
            space, basis = self._space(bone, poses.__getitem__), self._local[bone]
            if bone in controls:
                leg, pose = controls[bone]
                basis = space.basis(pose)
                tracks += self._control_tracks(bone, leg, basis)
                poses[bone] = space.pose(basis)
                continue
            if bone in self._wanted.sizes:
                scale = scale_of(basis) * self._wanted.sizes[bone]
                basis = basis.copy()
                basis[:, :3, :3] *= self._wanted.sizes[bone]
                tracks.append(self._scale_track(bone, scale, 0.0))
            elif bone in self.bones:
                is_carrier = bone in self._wanted.matrices
                basis = space.basis(self._wanted.poses(bone)) if is_carrier else self._first[bone]
                location, rotation, scale = self._solved(bone, space, basis)
                basis = compose(*self._complete(bone, location, rotation, scale))
                carried = self._carried(bone) if is_carrier else self._wanted.bones
                yield i / len(self.watched)
                tracks += self._bone_tracks(
                    bone, location, rotation, scale, self._reach(bone, carried)
                )
            poses[bone] = space.pose(basis)
        return [*tracks, *self._common_tracks()]

    def _controls(self):
        """{bone that IK pulls a leg to: (its IkLeg, its (T, 4, 4) wanted poses)}."""
        return {
            bone: (leg, pose)
            for leg in self._legs
            for bone, pose in leg.poses(self.armature, self._pose, self._wanted.poses).items()
        }

    def _control_tracks(self, bone, leg, basis):
        """Tracks of a bone that IK pulls a leg to: a pole is placed, the other turned, too."""
        rotation = None
        if bone == leg.control:
            rotation = nearest_rotation(basis[:, :3, :3] / scale_of(basis)[:, None, :])
        reach = self._reach(bone, self._carried(leg.foot))
        return self._bone_tracks(bone, basis[:, :3, 3], rotation, None, reach)

    def release(self, seen):
        """As above. Their controls go along all the same. seen: bone -> (T, 4, 4) poses."""
        on = [leg for leg in self._legs if leg not in self.released]
        strayed = [leg for leg in on if self._off(leg, seen) > STRAY]
        for leg in strayed:
            self.switches = [one for one in self.switches if one not in leg.on] + [*leg.off]
            self.leg_controls = tuple(c for c in self.leg_controls if c not in leg.controls)
        self.released += strayed
        return bool(strayed)

    def _off(self, leg, seen):
        """How far knee and ankle of a leg are off at most [m]."""
        lacks = [(seen[b] - self._wanted.poses(b))[:, :3, 3] for b in (leg.shin, leg.foot)]
        size = self._wanted.unit * np.linalg.norm(self._clip.objects[0, :3, 0])
        return size * float(np.linalg.norm(lacks, axis=-1).max())

    def _solved(self, bone, space, basis):
        """Location or None, rotation, scale or None of the channels for a basis."""
        channels, effective = self._channels(bone), self._first[bone]
        scale = scale_of(effective) * self._wanted.factors.get(bone, 1.0)
        if bone in self._wanted.rigid:
            scale = scale_of(basis)  # all of it, with what it inherited
        rotation = _rotation_for(space, basis, scale)
        key_location, key_scale = self._keyed.setdefault(
            bone,
            (
                self._needs_location(bone, space, basis, channels),
                bool(np.abs(scale / scale_of(channels) - 1).max() > SCALE_TOLERANCE),
            ),
        )
        return basis[:, :3, 3] if key_location else None, rotation, scale if key_scale else None

    def _needs_location(self, bone, space, basis, channels):
        """Whether the location channels must change to put the bone's head where it is wanted."""
        if self._wanted.parents.get(bone, bone) is None:
            return True
        if self.armature.data.bones[bone].use_connect:
            return False
        off = space.place[:, :3, :3] @ (basis - channels)[:, :3, 3, None]
        off = self._clip.objects[:, :3, :3] @ off
        return bool(np.abs(off).max() * self._wanted.unit > LOCATION_TOLERANCE)

    def _complete(self, bone, location, rotation, scale):
        """The channels with those that are not keyed."""
        channels = self._channels(bone)
        if location is None:
            connected = self.armature.data.bones[bone].use_connect
            location = channels[:, :3, 3] * (not connected)
        return location, rotation, scale_of(channels) if scale is None else scale

    def corrected(self, evaluation, seen):
        """Tracks that also account for where bones in between were seen; yields progress.

        seen: bone -> (T, 4, 4) poses.
        """
        for bone in self.watched:
            if bone not in self.bones:
                yield 0.0
                self._local[bone] = self._effective(bone, seen.__getitem__)
        return (yield from self.tracks())


def _rotation_for(space, basis, scale):
    """(n, 3, 3) rotation channels with which the pose of a bone has the rotation that a basis
    gives it. In a sheared space the basis is none that channels could hold."""
    rotation = nearest_rotation(basis[:, :3, :3] / scale[:, None, :])
    wanted = nearest_rotation(space.turn @ basis[:, :3, :3] * space.stretch[:, None, :])
    for _ in range(SHEAR_STEPS):
        channels = rotation * scale[:, None, :]
        own = nearest_rotation(space.turn @ channels * space.stretch[:, None, :])
        if np.abs(own - wanted).max() < 1e-7:
            break
        missing = inverse(space.turn) @ wanted @ own.swapaxes(1, 2) @ space.turn
        rotation = nearest_rotation(missing @ rotation)
    return rotation


class ControlSolver(_Solver):
    """For rigs whose carrying bones are driven by controls through a mechanism."""

    def __init__(self, armature, rig_map, clip, wanted):
        super().__init__(armature, clip, wanted)
        self._pairs = _paired(rig_map, wanted)
        self._knees, self._feet = _on_ik(rig_map)
        self.bones = tuple(self._pairs)
        self.leg_controls = tuple(c for c in self._pairs if c in (*self._knees, *self._feet))
        missing = [bone for bone in self.bones if bone not in armature.pose.bones]
        if missing:
            raise BakeError(f"'{armature.name}' has no control '{missing[0]}': correct the map.")
        self.watched = (*dict.fromkeys((*wanted.bones, *self.bones)),)
        self.switches = _property_switches(armature, rig_map.properties)
        self._before = {
            control: self._control_before(control, carrier)
            for control, carrier in self._pairs.items()
        }
        self._bases = {control: self._channels(control).copy() for control in self.bones}
        self._stretched = set()
        self._responses = None

    def _control_before(self, control, carrier):
        """The control that is closest before this one on the way from the pelvis, or None."""
        order = list(self._pairs)
        while carrier is not None:
            found = [
                other for other in order[: order.index(control)] if self._pairs[other] == carrier
            ]
            if found:
                return found[-1]
            carrier = self._wanted.parents[carrier]
        return None

    def tracks(self):
        """The tracks of the controls as they are known by now; yields progress from 0 to 1."""
        tracks = []
        for i, (control, carrier) in enumerate(self._pairs.items()):
            yield i / len(self._pairs)
            basis = self._bases[control]
            tracks += self._bone_tracks(
                control,
                basis[:, :3, 3] if self._is_placed(control) else None,
                nearest_rotation(basis[:, :3, :3] / scale_of(basis)[:, None, :]),
                scale_of(basis) if control in self._stretched else None,
                self._reach(carrier, self._carried(carrier)),
            )
        return [*tracks, *self._common_tracks()]

    def distances(self, offsets, worlds):
        """As above; of knees that inverse kinematics bends, by what turns them sideways alone: how
        far they bend is the rig's, for its legs stretch a little."""
        distances = super().distances(offsets, worlds)
        for thigh, shin, foot in self._knees.values():
            hip, knee, ankle = (worlds[bone][:, :3, 3] for bone in (thigh, shin, foot))
            line = unit(ankle - hip)
            bow = np.linalg.norm(np.cross(line, knee - hip), axis=-1)
            wanted, own = (m[thigh][:, :3, :3] for m in (self._wanted.matrices, worlds))
            angle = np.abs((line * _between(own, wanted)).sum(-1))
            for bone, end in ((thigh, 1), (shin, 0)):
                distances[:, 2 * self._wanted.bones.index(bone) + end] = bow * angle
        return distances

    def _about_limb(self, control, turns):
        """What (T, 3) turns of a thigh do about the line from hip to ankle."""
        thigh, _, foot = self._knees[control]
        line = unit((self._wanted.poses(foot) - self._wanted.poses(thigh))[:, :3, 3])
        return line * (line * turns).sum(-1, keepdims=True)

    def _is_placed(self, control):
        """Whether a control's location is keyed, too."""
        return self._before[control] is None or control in self._feet

    def corrected(self, evaluation, seen):
        """Tracks that turn each control by what its bone still lacks; yields progress.

        seen: bone -> (T, 4, 4) poses.
        """
        if self._responses is None:
            responses = _Responses(self.armature, self._pairs, self._wanted.bones, self._knees)
            yield from responses.probe(evaluation, self._clip.frames[-1])
            self._responses = responses
            yield from self._wanted.spread(self._shares())
        yield from self._stretch(seen)
        turned = {}
        for i, (control, carrier) in enumerate(self._pairs.items()):
            yield i / len(self._pairs)
            inherited = self._inherited(control, turned)
            axes = inherited @ nearest_rotation(seen[control][:, :3, :3])
            wanted = self._wanted.poses(carrier)[:, :3, :3]
            rest = _between(inherited @ seen[carrier][:, :3, :3], wanted)
            if control in self._knees:
                rest = self._about_limb(control, rest)
            local = axes.swapaxes(1, 2) @ rest[..., None]
            turn = _exponential((self._responses.inverse[control] @ local)[..., 0])
            if self._is_placed(control):
                self._move(control, carrier, seen, axes @ turn @ axes.swapaxes(1, 2))
            self._bases[control][:, :3, :3] = self._turned(control, turn)
            turned[control] = axes @ turn @ axes.swapaxes(1, 2) @ inherited
        return (yield from self.tracks())

    def _shares(self):
        """Bone -> share of the turn of its segment that the controls can give it."""
        shares = {}
        for slot in dict.fromkeys(self._wanted.slots.values()):
            bones = [bone for bone in self._wanted.bones if self._wanted.slots[bone] == slot]
            controls = [one for one in self._pairs if self._pairs[one] in bones]
            for bone in bones[:-1]:
                follows = [self._responses.follow[control, bone] for control in controls]
                shares[bone] = float(np.mean(follows))
            shares[bones[-1]] = 1.0
        return shares

    def _stretch(self, seen):
        """Scale the controls of limbs that were longer or shorter, by IK that stretches; yields
        before each."""
        stretched = {}
        for control, carrier in self._pairs.items():
            yield 0.0
            wanted = np.linalg.norm(self._wanted.poses(carrier)[:, :3, 1], axis=-1)
            own = np.linalg.norm(seen[carrier][:, :3, 1], axis=-1)
            lacks = np.log(wanted / own)
            for other, factor in stretched.items():
                lacks = lacks - self._responses.stretch[other, carrier] * factor
            response = self._responses.stretch[control, carrier]
            # Where a knee goes, IK stretches by itself.
            locked = self.armature.pose.bones[control].lock_scale[1] or control in self._knees
            enough = SCALE_TOLERANCE if control not in self._stretched else 0.0
            if np.abs(lacks).max() < enough or response < PROBE or locked:
                continue
            stretched[control] = lacks / response
            self._bases[control][:, :3, 1] *= np.exp(stretched[control])[:, None]
            self._stretched.add(control)

    def _turned(self, control, turn):
        """The control's basis axes after a rotation in its own frame."""
        basis = self._bases[control]
        scale = scale_of(basis)[:, None, :]
        return nearest_rotation(basis[:, :3, :3] / scale) @ turn * scale

    def _inherited(self, control, turned):
        """(T, 3, 3) by how much a control turns along with the ones before it."""
        before = self._before[control]
        while before is not None:
            share = self._responses.share[before, control]
            if share > 0.02:
                identity = np.array([1.0, 0, 0, 0])
                turn = quaternion_from_matrix(turned[before])
                return matrix_from_quaternion(
                    slerp(np.broadcast_to(identity, turn.shape), turn, np.full(len(turn), share))
                )
            before = self._before[before]
        return np.broadcast_to(np.eye(3), (len(self._clip.frames), 3, 3))

    def _move(self, control, carrier, seen, turn):
        """Move a control so that its bone, after the turn, is where it is wanted."""
        basis = self._bases[control]
        space = seen[control] @ inverse(basis)
        arm = seen[carrier][:, :3, 3] - seen[control][:, :3, 3]
        goal = self._wanted.poses(carrier)[:, :3, 3] - (turn @ arm[..., None])[..., 0]
        offset = (goal - space[:, :3, 3])[..., None]
        basis[:, :3, 3] = (inverse(space[:, :3, :3]) @ offset)[..., 0]


class _Responses:
    """How bones follow controls, found by turning and stretching each a little.

    inverse: control -> (3, 3): what to turn it by, in its own frame, for a turn of its bone;
        directions in which the bone does not follow are left out.
    share: (control, other control) -> share of a turn that the other one inherits.
    follow: (control, carrying bone) -> share of a turn that the bone makes.
    stretch: (control, carrying bone) -> share of a stretch along its length that the bone makes.
    """

    def __init__(self, armature, pairs, bones, knees):
        """knees: controls that turn a bent limb about the line between its ends."""
        self._armature, self._pairs, self._bones = armature, pairs, bones
        names = dict.fromkeys((*pairs, *bones))
        #: Where each stands in what is seen, the controls first, and among all bones.
        self._places = {name: place for place, name in enumerate(names)}
        self._rows = [armature.pose.bones.find(name) for name in names]
        self._knees, self._still, self._channels = knees, None, None
        self._evaluation, self._frame = None, 0.0
        self.inverse, self.share, self.follow, self.stretch = {}, {}, {}, {}

    def probe(self, evaluation, frame):
        """Find them, at a frame; yields progress from 0 to 1."""
        self._evaluation, self._frame = evaluation, float(frame)
        evaluation.show()
        self._still = self._seen(evaluation.at(self._frame))
        self._channels = self._read()
        yield 0.0
        for i, control in enumerate(self._pairs):
            yield from self._turn(control, i / len(self._pairs))
            yield i / len(self._pairs)
            self._lengthen(control)
            yield i / len(self._pairs)

    def _read(self):
        """{channel: (B, n)} what the channels of all bones say now."""
        bones = self._armature.pose.bones
        values = {name: np.empty(len(bones) * n, np.float32) for name, n in _CHANNELS.items()}
        for name, array in values.items():
            bones.foreach_get(name, array)
        return {name: array.reshape(len(bones), -1) for name, array in values.items()}

    def _write(self, channels):
        """Set them all at once: unlike one by one that has no window drawn anew."""
        for name, array in channels.items():
            self._armature.pose.bones.foreach_set(name, array.ravel())
        self._armature.update_tag(refresh={"DATA"})

    def _seen(self, evaluated):
        """(axes (N, 3, 3) and rotations (N, 3, 3) of controls and bones, rotations (C, 3, 3) of
        what the controls inherit) of the evaluated armature."""
        bones = evaluated.pose.bones
        poses = np.empty(len(bones) * 16, np.float32)
        bones.foreach_get("matrix", poses)  # one by one that would take a while
        poses = poses.reshape(-1, 4, 4)[self._rows].swapaxes(1, 2)
        axes = poses[:, :3, :3].astype(float, order="C")
        own = np.array([bones[name].matrix_basis for name in self._pairs])[:, :3, :3]
        spaces = axes[: len(own)] @ np.linalg.inv(own)
        return axes, nearest_rotation(axes), nearest_rotation(spaces)

    def _after(self, control, change):
        """What is seen after a change to a control's basis, which is then taken back: the next
        evaluation sees that."""
        evaluation = self._evaluation
        now, before = self._read(), self._channels
        moved = any((now[name] != before[name]).any() for name in before)
        if moved or not evaluation.is_at(self._frame):
            # Between two slices the window went to the user's frame.
            evaluation.at(self._frame)
        bones = self._armature.pose.bones
        bone, row = bones[control], bones.find(control)
        basis = np.array(bone.matrix_basis @ change)[None]
        scale, name = scale_of(basis), rotation_property(bone.rotation_mode)
        rotation = nearest_rotation(basis[:, :3, :3] / scale[:, None, :])
        after = {channel: values.copy() for channel, values in before.items()}
        after["scale"][row] = scale
        after[name][row] = rotation_values(bone.rotation_mode, rotation, before[name][row])
        try:
            self._write(after)
            return self._seen(evaluation.updated())
        finally:
            self._write(before)

    def _turn(self, control, progress):
        """Turn a control about its own three axes, one after the other; yields its progress."""
        _, still, still_spaces = self._still
        own = still[self._places[control]]
        response = np.zeros((3, 3))
        follow, share = dict.fromkeys(self._bones, 0.0), dict.fromkeys(self._pairs, 0.0)
        for axis in (1,) if control in self._knees else range(3):
            change = Matrix.Rotation(PROBE, 4, "XYZ"[axis])
            _, seen, spaces = self._after(control, change)
            yield progress
            turned, inherited = _vectors(seen, still), _vectors(spaces, still_spaces)
            turns = {name: own.T @ turned[self._places[name]] / PROBE for name in follow}
            response[:, axis] = turns[self._pairs[control]]
            for name, turn in turns.items():
                follow[name] += turn[axis] / 3
            for name, turn in zip(share, inherited, strict=True):
                share[name] += (own.T @ turn)[axis]
        self.inverse[control] = np.linalg.pinv(response, rcond=0.1)
        self.follow |= {(control, name): np.clip(part, 0, 1) for name, part in follow.items()}
        self.share |= {
            (control, name): np.clip(part / PROBE / 3, 0, 1) for name, part in share.items()
        }

    def _lengthen(self, control):
        """Stretch a control along its length."""
        axes, _, _ = self._after(control, Matrix.Diagonal((1, np.exp(PROBE), 1, 1)))
        for name in self._bones:
            now, still = (seen[self._places[name]][:, 1] for seen in (axes, self._still[0]))
            longer = np.log(np.linalg.norm(now) / np.linalg.norm(still))
            self.stretch[control, name] = longer / PROBE


def _between(start, end):
    """(n, 3) rotation vectors from (n, 3, 3) axes of any lengths to others."""
    turn = nearest_rotation(end) @ nearest_rotation(start).swapaxes(1, 2)
    return rotation_vector(quaternion_from_matrix(turn))


def _vectors(ends, starts):
    """(n, 3) rotation vectors from (n, 3, 3) rotations to others."""
    return rotation_vector(quaternion_from_matrix(ends @ starts.swapaxes(1, 2)))


def _exponential(vectors):
    """(n, 3) rotation vectors to (n, 3, 3) rotations."""
    angle = np.linalg.norm(vectors, axis=-1, keepdims=True)
    axis = vectors / np.maximum(angle, 1e-12)
    return matrix_from_quaternion(np.concatenate([np.cos(angle / 2), np.sin(angle / 2) * axis], -1))


def _paired(rig_map, wanted):
    """{control: the carrying bone that it is to put in place}, parents first.

    With fewer controls than bones in a chain, the last ones belong together.
    """
    pairs = {}
    for slot in dict.fromkeys(wanted.slots.values()):
        bones = [bone for bone in wanted.bones if wanted.slots[bone] == slot]
        controls = rig_map.controls.get(slot)
        if not controls and rig_map.is_bent(slot):
            continue
        if not controls:
            raise without_control(rig_map, slot)
        for i, control in enumerate(controls):
            pairs[control] = bones[-(-(i + 1) * len(bones) // len(controls)) - 1]
    return pairs


def _on_ik(rig_map):
    """Of legs that inverse kinematics bends: {control of the knee: (bones that carry thigh, shin
    and foot)}, and the controls of the feet."""
    knees, feet = {}, set()
    for side in SIDES:
        if f"shin_{side}" not in rig_map.controls:
            leg = tuple(
                reference.carrier(rig_map, f"{part}_{side}") for part in ("thigh", "shin", "foot")
            )
            knees[rig_map.controls[f"thigh_{side}"][0]] = leg
            feet.add(rig_map.controls[f"foot_{side}"][-1])
    return knees, feet


def _property_switches(armature, properties):
    """Switches for custom properties of bones."""
    switches = []
    for bone, values in properties.items():
        owner = armature.pose.bones.get(bone)
        for name, value in values.items():
            if owner is not None and name in owner:
                path = f'{owner.path_from_id()}["{name}"]'
                switches.append(Switch(path, bone, value))
    return switches


def _with_ancestors(armature, bones):
    """The bones and all above them, parents first."""
    found = {}
    for name in bones:
        bone = armature.data.bones[name]
        for one in (*reversed(bone.parent_recursive), bone):
            found[one.name] = None
    return tuple(found)


def _freed(armature, carriers, kept):
    """Switches that turn off the constraints on the carrying bones, and the bones that these
    constraints also moved: they are then to be keyed as they were.

    kept: {(bone, constraint)} names of those that stay.
    """
    driven, keyed = ik_legs.animated_paths(armature)
    switches, freed = [], {}
    for bone in armature.pose.bones:
        for constraint in bone.constraints:
            moved = ik_legs.moved_by(bone, constraint)
            off = ik_legs.is_off(constraint, driven | keyed)
            if not moved & set(carriers) or off or (bone.name, constraint.name) in kept:
                continue
            switches.append(ik_legs.switch_off(bone, constraint, driven))
            freed |= {name: None for name in moved if name not in carriers}
    return switches, tuple(freed)

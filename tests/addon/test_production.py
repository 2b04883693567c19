# SPDX-License-Identifier: GPL-3.0-or-later
"""Scenes as productions have them: each kind alone, then two at a time, read as a shot and baked
exactly, the source untouched and right by itself; or refused in a sentence before any work."""

import itertools

import bpy
import numpy as np
import pytest
from helpers.rigify import animated_rigify

from poise.addon.baking import bake
from poise.addon.blender import compat
from poise.addon.rigs import reference, source_values
from poise.addon.shots import outdated
from poise.addon.shots.shot import Shot, ShotOptions
from poise.controller.exceptions import PoiseError
from poise.controller.geometry.rotations import multiply, rotation_vector
from poise.controller.geometry.skeleton import LANDMARK_INDEX, SEGMENTS

pytestmark = pytest.mark.slow

CONJUGATE = np.array([1, -1, -1, -1])
#: So many pairs of kinds, drawn with this seed.
PAIRS, SEED = 200, 14


class Case:
    """The biped, walking on the spot, whose scene the kinds change."""

    def __init__(self, armature):
        self.name, self.scene = armature.name, bpy.context.scene
        for curve in compat.curves(*compat.assigned(armature)):
            if curve.data_path.endswith("location"):
                for point in curve.keyframe_points:
                    point.co[1] *= 0.02
                curve.update()

    @property
    def armature(self):
        return self.scene.objects[self.name]

    @property
    def bones(self):
        return self.armature.pose.bones

    def curves(self):
        return compat.curves(*compat.assigned(self.armature))

    def edit(self):
        """The bones in Edit Mode; `done` leaves it."""
        bpy.context.view_layer.objects.active = self.armature
        bpy.ops.object.mode_set(mode="EDIT")
        return self.armature.data.edit_bones

    def done(self):
        bpy.ops.object.mode_set(mode="OBJECT")

    def choose(self):
        """Let it be what is active, and chosen alone."""
        if self.armature.mode != "OBJECT":
            bpy.ops.object.mode_set(mode="OBJECT")
        bpy.ops.object.select_all(action="DESELECT")
        bpy.context.view_layer.objects.active = self.armature
        self.armature.select_set(True)

    def apply(self):
        """Make the object's transform one of its data."""
        self.choose()
        bpy.ops.object.transform_apply(location=False)

    def add_bone(self, name, parent, head, tail):
        bones = self.edit()
        bone = bones.new(name)
        bone.head, bone.tail = head, tail
        bone.parent = bones[parent] if parent else None
        self.done()
        return self.bones[name]

    def remove_bones(self, *names):
        bones = self.edit()
        for name in names:
            for child in bones[name].children:
                child.use_connect = False
                child.parent = bones[name].parent
            bones.remove(bones[name])
        self.done()

    def shift_keys(self, by):
        for curve in self.curves():
            for point in curve.keyframe_points:
                point.co[0] += by
                point.handle_left[0] += by
                point.handle_right[0] += by
            curve.update()

    def empty(self, name="empty"):
        thing = bpy.data.objects.new(name, None)
        self.scene.collection.objects.link(thing)
        return thing


# --- Kinds: each changes a Case ------------------------------------------------------------------


def hundredth(case):
    case.armature.scale = (0.01,) * 3


def turned_and_moved(case):
    case.armature.rotation_euler = (0.0, 0.0, 2.0)
    case.armature.location = (30, -4, 0.5)


def quarter_turned(case):
    case.armature.rotation_mode = "QUATERNION"
    case.armature.rotation_quaternion = (0.5**0.5, 0, 0, 0.5**0.5)


def under_a_scaled_empty(case):
    parent = case.empty("parent")
    parent.scale, parent.location = (0.1,) * 3, (1, 2, 0)
    case.armature.parent = parent


def under_a_turntable(case):
    parent = case.empty("turntable")
    parent.rotation_euler = (0, 0, 0)
    parent.keyframe_insert("rotation_euler", frame=1)
    parent.rotation_euler = (0, 0, 1.0)
    parent.keyframe_insert("rotation_euler", frame=30)
    case.armature.parent = parent


def in_inches(case):
    case.scene.unit_settings.system = "IMPERIAL"
    case.scene.unit_settings.scale_length = 0.0254
    case.armature.delta_scale = (39.37,) * 3


def delta_transform(case):
    case.armature.delta_location = (0.3, 0, 0)
    case.armature.delta_rotation_euler = (0, 0, 0.7)


def object_keys(case):
    for frame, x in ((1, 0.0), (30, 0.5)):
        case.armature.location = (x, 0, 0)
        case.armature.keyframe_insert("location", frame=frame)


def at_23_976(case):
    case.scene.render.fps, case.scene.render.fps_base = 24, 1.001


def at_120(case):
    case.scene.render.fps = 120


def remapped_time(case):
    case.scene.render.frame_map_old, case.scene.render.frame_map_new = 100, 150


def negative_frames(case):
    case.shift_keys(-40)


def between_frames(case):
    case.shift_keys(0.375)


def nearly_whole_frames(case):
    """As importers leave them that compute frames from seconds."""
    for curve in case.curves():
        curve.keyframe_points[0].co[0] = 1 - 3e-7
        curve.update()


def far_frames(case):
    case.shift_keys(100_000)


def flipped_signs(case):
    for curve in case.curves():
        if curve.data_path.endswith("rotation_quaternion"):
            for point in curve.keyframe_points:
                point.interpolation = "CONSTANT"
            for point in list(curve.keyframe_points)[::7]:
                point.co[1] *= -1


def stepped(case):
    for curve in case.curves():
        for point in curve.keyframe_points:
            point.interpolation = "CONSTANT"


def on_threes(case):
    for curve in case.curves():
        for i in reversed(range(1, len(curve.keyframe_points) - 1)):
            if i % 3:
                curve.keyframe_points.remove(curve.keyframe_points[i], fast=True)
        curve.update()


def cyclic(case):
    for curve in case.curves():
        curve.modifiers.new("CYCLES")


def own_range(case):
    action = compat.assigned(case.armature)[0]
    action.use_frame_range, action.frame_start, action.frame_end = True, 5, 25


def locked(case):
    for bone in case.bones:
        bone.lock_rotation = bone.lock_location = (True,) * 3


def props(case):
    case.add_bone('sword "of" \\ doom', "hand.R", (-0.85, 0, 1.42), (-0.85, -0.9, 1.42))
    case.add_bone("auge.L", "head", (0.03, -0.08, 1.65), (0.03, -0.1, 1.65))


def twist_bones(case):
    case.add_bone("forearm_twist.L", "forearm.L", (0.55, 0, 1.42), (0.6, 0, 1.42))
    bone = case.add_bone("thigh_twist.L", "thigh.L", (0.1, 0, 0.7), (0.1, 0, 0.6))
    follow = bone.constraints.new("COPY_ROTATION")
    follow.target, follow.subtarget, follow.influence = case.armature, "shin.L", 0.5


def no_toes(case):
    case.remove_bones("toe.L", "toe.R")


def no_hands(case):
    case.remove_bones("hand.L", "hand.R")


def no_clavicles(case):
    case.remove_bones("clavicle.L", "clavicle.R")


def root_bone(case):
    case.add_bone("root", None, (0, 0, 0), (0, 0.3, 0))
    bones = case.edit()
    bones["hips"].parent = bones["root"]
    case.done()
    for frame, x in ((1, 0.0), (30, 0.4)):
        root = case.bones["root"]
        root.location = (x, 0, 0)
        root.keyframe_insert("location", frame=frame)


def connected(case):
    for bone in case.edit():
        if bone.parent is not None and (bone.head - bone.parent.tail).length < 1e-4:
            bone.use_connect = True
    case.done()


def scale_not_inherited(case):
    for bone in case.armature.data.bones:
        bone.inherit_scale = "NONE"


def rotation_not_inherited(case):
    for name in ("upper_arm.L", "upper_arm.R", "head"):
        case.armature.data.bones[name].use_inherit_rotation = False


def world_location(case):
    case.armature.data.bones["hips"].use_local_location = False


def bendy(case):
    for name in ("spine", "chest", "upper_arm.L"):
        case.armature.data.bones[name].bbone_segments = 4


def wild_names(case):
    """Of which no preset knows a word."""
    for i, bone in enumerate(list(case.armature.data.bones)):
        bone.name = f"Кость.{i:03d} \N{BONE}"


def namespace(case):
    for bone in list(case.armature.data.bones):
        bone.name = f"hero:{bone.name}"


def wild_object_name(case):
    armature = case.armature
    armature.name = 'Ĥéro "A" \\ \N{STANDING PERSON}'
    case.name = armature.name


def long_action_name(case):
    compat.assigned(case.armature)[0].name = "a" * 63


def strips_alone(case):
    armature = case.armature
    action, slot = compat.assigned(armature)
    strip = armature.animation_data.nla_tracks.new().strips.new("walk", 1, action)
    if compat.HAS_SLOTS:
        strip.action_slot = slot
    armature.animation_data.action = None


def strip_below(case):
    """A pose under the action."""
    action, slot = compat.new_action("under")
    holder = compat.channels(action, slot, ensure=True)
    path = case.bones["hand.L"].path_from_id("scale") if "hand.L" in case.bones else "scale"
    for i in range(3):
        compat.new_curve(holder, path, i).keyframe_points.insert(1, 1.0)
    strip = case.armature.animation_data.nla_tracks.new().strips.new("under", 1, action)
    if compat.HAS_SLOTS:
        strip.action_slot = slot


def leg_ik(case):
    target = case.empty("knee")
    target.location = (0.1, -0.1, 0.3)
    ik = case.bones["shin.L"].constraints.new("IK")
    ik.target, ik.chain_count = target, 2


def limits(case):
    for name in ("upper_arm.L", "head", "thigh.R"):
        limit = case.bones[name].constraints.new("LIMIT_ROTATION")
        limit.use_limit_x, limit.min_x, limit.max_x = True, -0.1, 0.1
        limit.owner_space = "LOCAL"


def retargeted(case):
    """Onto a twin, which moves by constraints alone."""
    twin = case.armature.copy()
    twin.name = "twin"
    case.scene.collection.objects.link(twin)
    twin.animation_data_clear()
    for bone in twin.pose.bones:
        follow = bone.constraints.new("COPY_TRANSFORMS")
        follow.target, follow.subtarget = case.armature, bone.name
    case.name = twin.name
    case.scene.frame_start, case.scene.frame_end = 1, 30


def retargeted_through_bones(case):
    """By bones of its own that follow another armature."""
    carried = [bone.name for bone in case.bones]
    retargeted(case)
    bones = case.edit()
    for name in carried:
        between = bones.new(f"MCH-{name}")
        between.head, between.tail, between.roll = (
            bones[name].head,
            bones[name].tail,
            bones[name].roll,
        )
    case.done()
    for name in carried:
        follow = case.bones[name].constraints[-1]
        between = case.bones[f"MCH-{name}"].constraints.new("COPY_TRANSFORMS")
        between.target, between.subtarget = follow.target, name
        follow.target, follow.subtarget = case.armature, f"MCH-{name}"


def retargeted_through_empties(case):
    carried = [bone.name for bone in case.bones]
    retargeted(case)
    for name in carried:
        follow = case.bones[name].constraints[-1]
        empty = case.empty(name)
        between = empty.constraints.new("COPY_TRANSFORMS")
        between.target, between.subtarget = follow.target, name
        follow.target = empty


def part_of_a_quaternion(case):
    """As a clean-up of channels leaves it."""
    holder = compat.channels(*compat.assigned(case.armature))
    for curve in list(holder.fcurves):
        if curve.data_path.endswith("rotation_quaternion") and curve.array_index == 2:
            holder.fcurves.remove(curve)


def half_influence(case):
    """Which means nothing without NLA tracks."""
    animation = case.armature.animation_data
    animation.action_influence, animation.action_extrapolation = 0.5, "NOTHING"


def nla_off(case):
    case.armature.animation_data.use_nla = False


def muted_strip(case):
    strip_below(case)
    track = case.armature.animation_data.nla_tracks[0]
    track.mute = True
    path = case.bones["forearm.L"].path_from_id("scale")
    holder = compat.channels(*compat.of_strip(track.strips[0]))
    compat.new_curve(holder, path, 0).keyframe_points.insert(1, 3.0)


def track_of_that_name(case):
    strip_below(case)
    case.armature.animation_data.nla_tracks[0].name = source_values.TRACK


def driven_prop(case):
    bone = case.add_bone("tail", "hips", (0, 0.1, 1.0), (0, 0.4, 1.0))
    bone.rotation_mode = "XYZ"
    bone.driver_add("rotation_euler", 0).driver.expression = "0.1 * frame"


def second_armature(case):
    other = bpy.data.objects.new("other", bpy.data.armatures.new("other"))
    case.scene.collection.objects.link(other)


def hidden(case):
    case.armature.hide_set(True)


def pose_mode(case):
    bpy.context.view_layer.objects.active = case.armature
    bpy.ops.object.mode_set(mode="POSE")


def muted_constraint(case):
    mute = case.bones["head"].constraints.new("COPY_ROTATION")
    mute.mute = True


def posed_by_hand(case):
    """Bones without keys have a pose of their own."""
    bone = case.add_bone("jaw", "head", (0, -0.05, 1.6), (0, -0.12, 1.56))
    bone.rotation_mode = "XYZ"
    bone.rotation_euler = (0.4, 0, 0)


def unkeyed_arm(case):
    holder = compat.channels(*compat.assigned(case.armature))
    for curve in list(holder.fcurves):
        if '"forearm.L"' in curve.data_path:
            holder.fcurves.remove(curve)


def keyed_scale(case):
    for frame, size in ((1, 1.0), (30, 1.05)):
        bone = case.bones["chest"]
        bone.scale = (size,) * 3
        bone.keyframe_insert("scale", frame=frame)


def odd_scene(case):
    case.scene.gravity = (0, 0, -1.62)
    case.scene.sync_mode = "FRAME_DROP"
    case.scene.use_preview_range = True


def looped_strips(case):
    """A stack: one action twice, blended over, above a pose, below one that is muted."""
    strip_below(case)
    armature = case.armature
    action, slot = compat.assigned(armature)
    armature.animation_data.action = None
    for name, start in (("walk", 1), ("again", 25)):
        strip = armature.animation_data.nla_tracks.new().strips.new(name, start, action)
        if compat.HAS_SLOTS:
            strip.action_slot = slot
    strip.blend_in = 5
    above = armature.animation_data.nla_tracks.new()
    above.strips.new("above", 1, bpy.data.actions.new("above"))
    above.mute = True


def library_override(case):
    """All of it linked from another file, and overridden."""
    armature, path = case.armature, f"{bpy.app.tempdir}poise_library.blend"
    bpy.data.libraries.write(path, {armature}, fake_user=True)
    with bpy.data.libraries.load(path, link=True) as (_, to):
        to.objects = [armature.name]
    layer = bpy.context.view_layer
    override = to.objects[0].override_hierarchy_create(case.scene, layer, do_fully_editable=True)
    armature.user_remap(override)
    name = armature.name
    bpy.data.objects.remove(armature)
    override.name = name
    assert override.override_library
    case.name = override.name


def _exchanged(case, export, read):
    """Written to a file of another format, and read back alone."""
    scene = case.scene
    case.choose()
    scene.frame_start, scene.frame_end = 1, 30
    path = f"{bpy.app.tempdir}poise_exchanged"
    export(path)
    for thing in list(bpy.data.objects):
        bpy.data.objects.remove(thing)
    for action in list(bpy.data.actions):
        bpy.data.actions.remove(action)
    read(path)
    case.name = next(thing.name for thing in scene.objects if thing.type == "ARMATURE")


def through_gltf(case):
    _exchanged(
        case,
        lambda path: bpy.ops.export_scene.gltf(filepath=path, use_selection=True),
        lambda path: bpy.ops.import_scene.gltf(filepath=f"{path}.glb"),
    )


def through_fbx(case):
    _exchanged(
        case,
        lambda path: bpy.ops.export_scene.fbx(filepath=path, use_selection=True),
        lambda path: bpy.ops.import_scene.fbx(filepath=path),
    )


# What is refused, and what is said.


def sheared(case):
    case.armature.scale = (1, 1, 2)


def growing(case):
    for frame, size in ((1, 1.0), (30, 1.5)):
        case.armature.scale = (size,) * 3
        case.armature.keyframe_insert("scale", frame=frame)


def mirrored(case):
    case.armature.scale = (-1, 1, 1)


def muted_curve(case):
    curve = next(c for c in case.curves() if '"thigh.L"' in c.data_path)
    curve.mute = True


def driven_bone(case):
    bone = case.bones["thigh.L"]
    bone.rotation_mode = "XYZ"
    bone.driver_add("rotation_euler", 0)


def nan_key(case):
    curve = next(c for c in case.curves() if '"thigh.L"' in c.data_path)
    curve.keyframe_points[7].co[1] = np.inf


def one_leg(case):
    case.remove_bones("thigh.L", "shin.L", "foot.L", "toe.L")


def out_of_the_scene(case):
    layer = case.scene.view_layers[0]
    collection = bpy.data.collections.new("away")
    case.scene.collection.children.link(collection)
    collection.objects.link(case.armature)
    case.scene.collection.objects.unlink(case.armature)
    layer.layer_collection.children["away"].exclude = True


def solo(case):
    track = case.armature.animation_data.nla_tracks.new()
    track.strips.new("other", 200, bpy.data.actions.new("other"))
    track.is_solo = True


def no_keys(case):
    holder = compat.channels(*compat.assigned(case.armature))
    for curve in list(holder.fcurves):
        holder.fcurves.remove(curve)


def data_in_centimetres(case):
    """As exporters of FBX leave them."""
    case.armature.scale = (100,) * 3
    case.apply()
    case.armature.scale = (0.01,) * 3


def lying_data(case):
    """Y up in the data, Z up in the scene."""
    case.armature.rotation_euler = (-np.pi / 2, 0, 0)
    case.apply()
    case.armature.rotation_euler = (np.pi / 2, 0, 0)


def quaternions_of_any_length(case):
    for curve in case.curves():
        if curve.data_path.endswith("rotation_quaternion"):
            for point in curve.keyframe_points:
                point.co[1] *= 3
            curve.update()


def keys_of_another_mode(case):
    """Some that Blender does not look at."""
    path = case.bones["head"].path_from_id("rotation_euler")
    for index in range(3):
        holder = compat.channels(*compat.assigned(case.armature))
        if holder is not None and holder.fcurves.find(path, index=index) is None:
            compat.new_curve(holder, path, index).keyframe_points.insert(1, 2.0)
    case.bones["head"].rotation_mode = "AXIS_ANGLE"


def strip_of_other_speed(case):
    strips_alone(case)
    strip = case.armature.animation_data.nla_tracks[0].strips[0]
    strip.scale, strip.repeat = 1.5, 2


def slot_of_another(case):
    """The action animates a lamp first."""
    if compat.HAS_SLOTS:
        action, _ = compat.assigned(case.armature)
        holder = compat.channels(action, compat.new_slot(action, "lamp"), ensure=True)
        compat.new_curve(holder, "location", 0).keyframe_points.insert(1, 5.0)


def shared_data(case):
    twin = bpy.data.objects.new("twin", case.armature.data)
    case.scene.collection.objects.link(twin)


def hidden_bones(case):
    for bone in case.armature.data.bones:
        bone.hide = True


def stretching_arm(case):
    target = case.empty("reach")
    target.location = (0.9, -0.2, 1.2)
    stretch = case.bones["forearm.L"].constraints.new("STRETCH_TO")
    stretch.target = target


def tracking_head(case):
    target = case.empty("look")
    for frame, x in ((1, -1.0), (30, 1.0)):
        target.location = (x, -3, 1.5)
        target.keyframe_insert("location", frame=frame)
    track = case.bones["head"].constraints.new("DAMPED_TRACK")
    track.target, track.track_axis = target, "TRACK_Z"


def held_prop(case):
    prop = case.empty("prop")
    prop.parent, prop.parent_type = case.armature, "BONE"
    prop.parent_bone = "forearm.R"


def on_a_lift(case):
    """Bone of another armature."""
    other = bpy.data.objects.new("lift", bpy.data.armatures.new("lift"))
    case.scene.collection.objects.link(other)
    bpy.context.view_layer.objects.active = other
    bpy.ops.object.mode_set(mode="EDIT")
    bone = other.data.edit_bones.new("platform")
    bone.tail = (0, 0.2, 0)
    bpy.ops.object.mode_set(mode="OBJECT")
    case.armature.parent, case.armature.parent_type = other, "BONE"
    case.armature.parent_bone = "platform"


def two_keys(case):
    for curve in case.curves():
        while len(curve.keyframe_points) > 2:
            curve.keyframe_points.remove(curve.keyframe_points[1], fast=True)
        curve.update()


def linear_extrapolation(case):
    for curve in case.curves():
        curve.extrapolation = "LINEAR"


def drawn_rest(case):
    """Bones with a pose of their own, as after Apply Pose as Rest Pose of a part."""
    bones = case.edit()
    for bone in bones:
        bone.roll += 1.0
    case.done()


def in_rest_position(case):
    case.armature.data.pose_position = "REST"


FINE = (
    hundredth, turned_and_moved, quarter_turned, under_a_scaled_empty, under_a_turntable, in_inches,
    delta_transform, object_keys, at_23_976, at_120, remapped_time, negative_frames, between_frames,
    far_frames, nearly_whole_frames, flipped_signs, stepped, on_threes, cyclic, own_range, locked,
    props, twist_bones,
    no_toes, no_hands, no_clavicles, root_bone, connected, scale_not_inherited,
    rotation_not_inherited, world_location, bendy, data_in_centimetres, lying_data,
    quaternions_of_any_length, keys_of_another_mode, slot_of_another, shared_data, hidden_bones,
    stretching_arm, tracking_head, held_prop, on_a_lift, two_keys, linear_extrapolation, drawn_rest,
    wild_object_name, long_action_name, leg_ik, limits, driven_prop, second_armature, hidden,
    pose_mode, muted_constraint, posed_by_hand, unkeyed_arm, keyed_scale, odd_scene,
    part_of_a_quaternion, half_influence, nla_off, muted_strip, track_of_that_name,
    strip_of_other_speed, strip_below, retargeted, retargeted_through_bones,
    retargeted_through_empties, namespace, wild_names, strips_alone, looped_strips,
    library_override, through_gltf, through_fbx,
)  # fmt: skip
#: What contradicts itself, leaves nothing to be read, or has times that keys of single precision
#: cannot tell.
_NEVER = {
    (on_a_lift, under_a_turntable),
    (in_inches, data_in_centimetres),
    (under_a_scaled_empty, in_inches),
    (remapped_time, far_frames),
    *((half_influence, kind) for kind in (muted_strip, track_of_that_name, strip_below)),
    *((nla_off, kind) for kind in (strip_of_other_speed, strips_alone, looped_strips)),
    *((half_influence, kind) for kind in (strips_alone, looped_strips)),
    *itertools.combinations((strip_of_other_speed, strips_alone, looped_strips), 2),
    # Exporters write each strip as a clip of its own, nothing that is hidden; one knows no unit.
    (in_inches, through_gltf),
    *itertools.product(
        (muted_strip, track_of_that_name, strip_below, looped_strips, hidden),
        (through_gltf, through_fbx),
    ),
    # What follows by constraints alone has no action for a strip, and none to be alone in a file.
    *itertools.product(
        (retargeted, retargeted_through_bones, retargeted_through_empties),
        (strips_alone, looped_strips, library_override, through_gltf, through_fbx),
    ),
}
#: Where an NLA track would change the source, so that Poise's own button has to show it.
_BY_BUTTON = {part_of_a_quaternion, half_influence, nla_off}
_TWINS = {retargeted, retargeted_through_bones, retargeted_through_empties}
#: Of which strips alone are heard, to which that does not apply.
_STRIPS = {strips_alone, looped_strips, strip_of_other_speed}
REFUSED = {
    sheared: "scaled unevenly",
    mirrored: "negative scale",
    growing: r"1.5 times as large at frame 30 as at frame 1, .*: choose frames",
    muted_curve: "is muted",
    driven_bone: "has a driver",
    nan_key: "not a finite number",
    one_leg: "leg|thigh",
    out_of_the_scene: "disabled in the viewport",
    solo: "is solo",
    no_keys: "has no keys",
    in_rest_position: "shows its rest position",
}


def _pairs():
    every = [pair for pair in itertools.combinations(FINE, 2) if pair not in _NEVER]
    chosen = np.random.default_rng(SEED).choice(len(every), PAIRS, replace=False)
    return [every[i] for i in sorted(chosen)]


def _named(kinds):
    return "+".join(kind.__name__ for kind in kinds)


def read(case):
    """The Shot of a case, as far as all that can refuse it."""
    shot = Shot(case.scene, ShotOptions(armature=case.name))
    for _ in shot.read():
        pass
    shot.embody()
    return shot


@pytest.mark.parametrize("kinds", [*((kind,) for kind in FINE), *_pairs()], ids=_named)
def test_it_comes_right(biped, differences, kinds):
    case = Case(biped)
    for kind in kinds:
        kind(case)
    shot = comes_right(case, differences, kinds)
    assert shot.character.height == pytest.approx(1.75, rel=0.15)


def comes_right(case, differences, kinds, bent=()):
    """Read it as a shot, bake differences and look what came of them -> Shot. bent: segments whose
    bones inverse kinematics turns."""
    case.scene.frame_set(3)
    source = compat.assigned(case.armature)
    kept = snapshot(*source)
    shot = read(case)
    reading = shot.reading
    whole = outdated.in_full({}, case.armature)
    deltas = differences(len(reading.frames), *((0.1, 0.02) if bent else ()))
    result = bake.bake(case.scene, reading, *deltas)
    # Turns about which chains of controls cannot agree are shared out in a rig.
    assert result.error_mm < (10 if bent else 0.1)
    assert outdated.source_changed(whole, case.armature) == []
    after = _again(case, reading)
    wanted = multiply(deltas[0], reading.motion.rotations)
    turned = rotation_vector(multiply(wanted * CONJUGATE, after.motion.rotations))
    has = [i for i, s in enumerate(SEGMENTS) if s in reading.rig_map.bones and s not in bent]
    assert np.linalg.norm(turned[:, has], axis=-1).max() < (1e-3 if bent else 2e-4)
    moved = (after.motion.positions - reading.motion.positions)[:, LANDMARK_INDEX["pelvis"]]
    assert 1000 * np.abs(moved - deltas[1]).max() < 0.1
    assert snapshot(*source) == kept
    if _BY_BUTTON & {*kinds} and not (_TWINS | _STRIPS) & {*kinds}:
        bake.restore(case.scene, case.armature)
        assert not [t for t in case.armature.animation_data.nla_tracks if source_values.is_own(t)]
    else:
        compat.assign(case.armature, *source)  # by hand, as in the Action Editor
    assert outdated.source_changed(whole, case.armature) == []
    again = _again(case, reading)
    assert (
        np.abs(again.bone_matrices - reading.bone_matrices).max() < 1e-4 / reading.metres_per_unit
    )
    return shot


# --- A generated Rigify rig, on its IK controls ---------------------------------------------------


class Rigged(Case):
    """A rig of 700 bones, as it is."""

    def __init__(self, armature):
        self.name, self.scene = armature.name, bpy.context.scene


RIGGED = (
    hundredth, turned_and_moved, under_a_scaled_empty, object_keys, at_23_976, remapped_time,
    negative_frames, between_frames, own_range, locked, strips_alone, looped_strips, strip_below,
    hidden, pose_mode, wild_object_name, namespace, library_override,
)  # fmt: skip


@pytest.fixture(scope="module")
def rigify_file(tmp_path_factory):
    """A file with one: to generate it takes longer than all else."""
    import addon_utils

    path = str(tmp_path_factory.mktemp("rigify") / "rigify.blend")
    bpy.ops.wm.read_factory_settings(use_empty=True)
    addon_utils.enable("rigify", default_set=True)
    rig = animated_rigify(True)
    for thing in [thing for thing in bpy.data.objects if thing.type == "ARMATURE" and thing != rig]:
        bpy.data.objects.remove(thing)
    bpy.ops.wm.save_as_mainfile(filepath=path)
    addon_utils.disable("rigify", default_set=True)
    return path


@pytest.mark.parametrize("kind", RIGGED, ids=lambda kind: kind.__name__)
def test_a_rigify_rig_comes_right(blender, rigify_file, differences, kind):
    bpy.ops.wm.open_mainfile(filepath=rigify_file)
    case = Rigged(bpy.data.objects["rig"])
    kind(case)
    bent = [f"{part}_{side}" for part in ("thigh", "shin") for side in "lr"]
    shot = comes_right(case, differences, (kind,), bent)
    assert shot.reading.rig_map.ik_controls and shot.reading.rig_map.name.startswith("Rigify")


def snapshot(action, slot):
    """All keys of an action."""
    return [
        (curve.data_path, curve.array_index, [tuple(key.co) for key in curve.keyframe_points])
        for curve in compat.curves(action, slot)
    ]


def _again(case, reading):
    frames = reading.frames
    return reference.read(
        case.scene,
        case.armature,
        rig_map=reading.rig_map,
        frames=(frames[0], frames[-1], frames[1] - frames[0]),
        metres_per_unit=reading.metres_per_unit,
    )


@pytest.mark.parametrize("kind", REFUSED, ids=lambda kind: kind.__name__)
def test_it_is_refused_before_any_work(biped, kind):
    case = Case(biped)
    kind(case)
    before = [action.name for action in bpy.data.actions]
    with pytest.raises(PoiseError, match=REFUSED[kind]) as told:
        read(case)
    assert "\n" not in str(told.value)
    assert [action.name for action in bpy.data.actions] == before

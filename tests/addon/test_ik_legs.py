# SPDX-License-Identifier: GPL-3.0-or-later
"""Legs that Blender's IK constraint moves, on rigs that no map knows."""

import math

import bpy
import numpy as np
import pytest
from mathutils import Matrix, Vector

from poise.addon.baking import bake, ik_legs
from poise.addon.baking.bake import BakeOptions
from poise.addon.blender import compat
from poise.addon.operators.clean_up import POISE_OT_clean_up
from poise.addon.rigs import reference, sampling
from poise.addon.rigs.rig import find as find_map
from poise.addon.shots.shot import Shot, ShotOptions
from poise.addon.sidebar import panels
from poise.controller.exceptions import RigError
from poise.controller.geometry.rotations import multiply, rotation_vector
from poise.controller.geometry.skeleton import LANDMARK_INDEX, SIDES

CONJUGATE = np.array([1, -1, -1, -1])
LEGS = [f"{bone}.{side}" for bone in ("thigh", "shin") for side in "LR"]


class IkRig:
    """The biped with legs on IK: each foot's control goes where the foot went, the pole of each
    knee stands before it."""

    def __init__(self, armature, rig_map, differences, pole, foot, root):
        self.scene, self.armature, self.map = bpy.context.scene, armature, rig_map
        self.differences, self.bones = differences, armature.pose.bones
        frames = np.arange(1.0, 31)
        names, poses, *_ = sampling.run(sampling.sampling(self.scene, armature, frames))
        self._edit(pole, foot, root)
        cleared = LEGS if foot == "child" else [*LEGS, "foot.L", "foot.R"]
        curves = compat.channels(*compat.assigned(armature)).fcurves
        for curve in [c for c in curves if reference.bone_of(c.data_path) in cleared]:
            curves.remove(curve)
        for name in cleared:
            self.bones[name].matrix_basis = Matrix()
        for side in "LR":
            seen = [poses[:, names.index(f"{bone}.{side}")] for bone in ("shin", "foot")]
            self._constrain(side, pole, foot)
            self._animate(side, pole, frames, *seen)

    def _edit(self, pole, foot, root):
        bpy.ops.object.mode_set(mode="EDIT")
        bones = self.armature.data.edit_bones
        if root:
            bones.new("root").tail = 0, 0.3, 0
            bones["hips"].parent = bones["root"]
        for side in "LR":
            end, control = bones[f"foot.{side}"], bones.new(f"foot_ik.{side}")
            control.head, control.tail, control.roll = end.head, end.tail, end.roll
            control.parent = bones.get("root")
            if pole:
                knee = bones.new(f"knee.{side}")
                knee.head = bones[f"shin.{side}"].head
                knee.head.y -= 0.5
                knee.tail = knee.head
                knee.tail.y -= 0.1
                knee.parent = (end if foot == "pulls" else control) if root else None
            if foot == "hangs":
                end.parent = control
            elif foot == "pulls":
                end.parent = bones.get("root")
                bones.remove(control)
        bpy.ops.object.mode_set(mode="OBJECT")

    def _constrain(self, side, pole, foot):
        ik = self.bones[f"shin.{side}"].constraints.new("IK")
        ik.target, ik.chain_count = self.armature, 2
        ik.subtarget = self.control(side).name
        if pole:
            ik.pole_target, ik.pole_subtarget = self.armature, f"knee.{side}"
            axes = self.armature.data.bones[f"thigh.{side}"].matrix_local
            ik.pole_angle = math.atan2(-axes[1][2], -axes[1][0])  # forward is -Y
        if foot == "copy":
            copy = self.bones[f"foot.{side}"].constraints.new("COPY_ROTATION")
            copy.target, copy.subtarget = self.armature, f"foot_ik.{side}"

    def _animate(self, side, pole, frames, shins, feet):
        control = self.control(side)
        control.rotation_mode = "QUATERNION" if side == "L" else "YXZ"
        for frame, foot in zip(frames, feet, strict=True):
            control.matrix = Matrix(foot)
            for channel in ("location", _rotation(control)):
                control.keyframe_insert(channel, frame=frame)
        if pole:
            knee = self.bones[f"knee.{side}"]
            for frame in frames[::7]:
                knee.location = 0.05 * math.sin(frame), 0.03 * frame, 0.1
                knee.keyframe_insert("location", frame=frame)

    def read(self, **options):
        return reference.read(self.scene, self.armature, rig_map=self.map, **options)

    def bake(self, reading, deltas=None, **options):
        deltas = deltas or self.differences(len(reading.frames))
        return bake.bake(self.scene, reading, *deltas, BakeOptions(**options))

    def control(self, side):
        """The bone that a leg is pulled to."""
        return self.bones.get(f"foot_ik.{side}") or self.bones[f"foot.{side}"]

    def ik(self, side):
        """The constraint of a leg."""
        return self.bones[f"shin.{side}"].constraints["IK"]

    def pull(self, side):
        """How far an ankle goes with its control, of 5 cm [m]."""
        self.scene.frame_set(10)
        shin, control = self.bones[f"shin.{side}"], self.control(side)
        before = shin.tail.copy()
        hip = self.bones[f"thigh.{side}"].matrix.translation
        control.matrix = Matrix.Translation(0.05 * (hip - before).normalized()) @ control.matrix
        bpy.context.view_layer.update()
        return (shin.tail - before).length

    def seen(self, reading):
        return self.read(
            frames=(*reading.frames[[0, -1]], 1), metres_per_unit=reading.metres_per_unit
        ).motion


def _rotation(bone):
    return "rotation_quaternion" if bone.rotation_mode == "QUATERNION" else "rotation_euler"


RIGS = {
    "pole": {"pole": True, "foot": "copy", "root": False},
    "no pole": {"pole": False, "foot": "copy", "root": False},
    "free foot": {"pole": True, "foot": "child", "root": False},
    "hanging foot": {"pole": True, "foot": "hangs", "root": True},
    "foot that pulls": {"pole": True, "foot": "pulls", "root": False},
    "root": {"pole": True, "foot": "copy", "root": True},
}


@pytest.fixture
def made(biped, biped_map, differences):
    """made(name of RIGS) -> IkRig"""
    return lambda name: IkRig(biped, biped_map, differences, **RIGS[name])


def positions(motion, *names):
    """(T, landmarks, 3)"""
    return motion.positions[:, [LANDMARK_INDEX[f"{name}_{s}"] for name in names for s in SIDES]]


def apart(one, other):
    """Largest distance of points [m]."""
    return np.linalg.norm(one - other, axis=-1).max()


def assert_on_ik(rig, **options):
    """On IK everything is where it is on FK, and the controls hold the feet."""
    reading = rig.read()
    rig.bake(reading, legs="FK", **options)
    wanted = rig.seen(reading)
    bake.restore(rig.scene, rig.armature)
    result = rig.bake(reading, **options)
    assert result.error_mm < 0.05 and not result.released_legs
    seen = rig.seen(reading)
    leg = "hip", "knee", "ankle", "ball"
    assert apart(positions(seen, *leg), positions(wanted, *leg)) < 5e-5
    turned = rotation_vector(multiply(wanted.rotations * CONJUGATE, seen.rotations))
    assert np.linalg.norm(turned, axis=-1).max() < 2e-4
    for side in "LR":
        assert not rig.ik(side).mute and rig.ik(side).influence == 1
        assert rig.pull(side) > 0.02
    return result


def left_leg(armature):
    """{(data path, index): values of the keys} of the left leg and what pulls it."""
    bones = "thigh.L", "shin.L", "foot.L", "foot_ik.L", "knee.L"
    return {
        (curve.data_path, curve.array_index): [key.co[1] for key in curve.keyframe_points]
        for curve in compat.curves(*compat.assigned(armature))
        if reference.bone_of(curve.data_path) in bones
    }


@pytest.mark.parametrize("name", RIGS)
def test_feet_and_knees_are_where_fk_puts_them(made, name):
    rig = made(name)
    result = assert_on_ik(rig)
    poles = ["knee.L", "knee.R"] if RIGS[name]["pole"] else []
    feet = [rig.control(side).name for side in "LR"]
    assert sorted(result.leg_controls) == [*feet, *poles]
    (sentence,) = ik_legs.sentences(result.leg_controls, result.released_legs)
    assert sentence.startswith(f"Its legs are keyed on IK, by {feet[0]}, ")


@pytest.mark.parametrize("name", RIGS)
def test_the_names_of_the_bones_tell_the_body(made, name):
    """Also where feet do not hang on shins, but pull them."""
    rig = made(name)
    assert find_map(rig.armature).bones == rig.map.bones
    if RIGS[name]["foot"] in ("hangs", "pulls"):
        rig.ik("R").subtarget = "head"
        with pytest.raises(RigError, match=r"the right foot 'foot.R' does not hang from"):
            find_map(rig.armature)


@pytest.mark.parametrize("name", ["root", "no pole"])
def test_armatures_that_are_turned_and_scaled(made, name):
    rig = made(name)
    rig.armature.scale = 0.4, 0.4, 0.4
    rig.armature.location, rig.armature.rotation_euler = (2, 1, 0), (0.1, -0.1, 2.5)
    assert_on_ik(rig)


def test_root_motion_on_the_object(made):
    assert_on_ik(made("pole"), root_motion="OBJECT")


@pytest.mark.parametrize("name", RIGS)
def test_where_nothing_changes_the_controls_stay(made, name, no_differences):
    """Poles to a centimetre: Blender's IK itself points a knee no better."""
    rig = made(name)
    before = rig.read()
    result = rig.bake(before, no_differences(len(before.frames)))
    after = rig.read(frames=(1, 30, 1), metres_per_unit=before.metres_per_unit)
    leg = "hip", "knee", "ankle", "ball"
    assert apart(positions(after.motion, *leg), positions(before.motion, *leg)) < 5e-5
    moved = np.abs(after.bone_matrices - before.bone_matrices)[..., :3, 3].max((0, 2))
    for bone in result.leg_controls:
        assert moved[before.bone_index(bone)] < (1e-2 if "knee" in bone else 5e-4)


def keyed_switch(rig):
    """IK and the feet's copies are off at first, and animated so."""
    for bone in rig.bones:
        for constraint in bone.constraints:
            for frame, value in ((1, 0.0), (14, 0.0), (16, 1.0)):
                constraint.influence = value
                constraint.keyframe_insert("influence", frame=frame)


def test_ik_that_is_switched_by_keys_is_on_throughout(made):
    rig = made("pole")
    keyed_switch(rig)
    assert_on_ik(rig)
    rig.scene.frame_set(5)
    assert rig.ik("L").influence == 1
    bake.restore(rig.scene, rig.armature)
    rig.scene.frame_set(5)
    assert rig.ik("L").influence == 0


def test_ik_that_keys_on_a_strip_switch_is_on_throughout(made):
    rig = made("pole")
    keyed_switch(rig)
    source = compat.channels(*compat.assigned(rig.armature))
    action, slot = compat.new_action("switch")
    holder = compat.channels(action, slot, ensure=True)
    for curve in [c for c in source.fcurves if c.data_path.endswith("influence")]:
        compat.copy_curve(curve, holder)
        source.fcurves.remove(curve)
    track = rig.armature.animation_data.nla_tracks.new()
    strip = track.strips.new("switch", 1, action)
    if compat.HAS_SLOTS:
        strip.action_slot = slot
    rig.scene.frame_set(1)
    assert rig.ik("L").influence == 0
    assert_on_ik(rig)
    bake.restore(rig.scene, rig.armature)
    rig.scene.frame_set(5)
    assert rig.ik("L").influence == 0


def test_ik_that_a_property_switches_is_right_either_way(made):
    rig = made("root")
    rig.bones["hips"]["ik"] = 1.0
    for bone in rig.bones:
        for constraint in bone.constraints:
            driver = constraint.driver_add("influence").driver
            driver.type = "SUM"
            variable = driver.variables.new()
            variable.targets[0].id = rig.armature
            variable.targets[0].data_path = 'pose.bones["hips"]["ik"]'
    assert_on_ik(rig)
    reading, seen = rig.read(), []
    for value in (0.0, 0.5, 1.0):
        rig.bones["hips"]["ik"] = value
        rig.armature.update_tag()
        seen.append(positions(rig.seen(reading), "knee", "ankle", "ball"))
    assert apart(seen[0], seen[2]) < 5e-5 and apart(seen[1], seen[2]) < 5e-5


def test_source_and_bake_are_right_alone_in_a_file_of_somebody_else(made, tmp_path):
    rig = made("pole")
    keyed_switch(rig)
    reading = rig.read()
    before = rig.seen(reading).positions
    source, name = compat.assigned(rig.armature), rig.armature.name
    rig.bake(reading)
    after = rig.seen(reading).positions
    assert np.nanmax(np.abs(after - before)) > 0.01
    names = [pair[0].name for pair in (source, compat.assigned(rig.armature))]
    path = str(tmp_path / "given.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.open_mainfile(filepath=path)
    rig.scene, rig.armature = bpy.context.scene, bpy.data.objects[name]
    for i in (0, 1, 0, 1):
        action = bpy.data.actions[names[i]]
        compat.assign(rig.armature, action, compat.object_slot(action, rig.armature))
        assert np.nanmax(np.abs(rig.seen(reading).positions - (before, after)[i])) < 1e-5


def reverse_foot(rig):
    """The left leg is pulled to a bone that rolls on the control."""
    bpy.ops.object.mode_set(mode="EDIT")
    bones = rig.armature.data.edit_bones
    heel, roll = bones.new("heel"), bones.new("roll")
    heel.head, heel.tail = (0.1, 0.05, 0), (0.1, -0.15, 0)
    heel.parent, roll.parent = bones["foot_ik.L"], heel
    roll.head, roll.tail = bones["foot.L"].head, bones["foot.L"].tail
    bpy.ops.object.mode_set(mode="OBJECT")
    rig.ik("L").subtarget = "roll"


def long_chain(rig):
    rig.ik("L").chain_count = 3


def another_object(rig):
    empty = bpy.data.objects.new("foot", None)
    rig.scene.collection.objects.link(empty)
    empty.location = 0.1, 0, 0.1
    rig.ik("L").target = empty


def locked(rig):
    rig.bones["foot_ik.L"].lock_location[2] = True


def driven(rig):
    rig.bones["foot_ik.L"].driver_add("location", 2).driver.expression = "0.1"


def held(rig):
    copy = rig.bones["foot_ik.L"].constraints.new("LIMIT_LOCATION")
    copy.use_min_z, copy.min_z = True, 0.05


def limited(rig):
    limit = rig.bones["shin.L"].constraints.new("LIMIT_ROTATION")
    limit.use_limit_x, limit.min_x, limit.max_x = True, -0.1, 0.1


def stretching(rig):
    rig.bones["shin.L"].ik_stretch = 0.1


def turning(rig):
    rig.ik("L").use_rotation = True


def moving_pole(rig):
    rig.ik("L").keyframe_insert("pole_angle", frame=1)


def offset_copy(rig):
    rig.bones["foot.L"].constraints[0].mix_mode = "ADD"


def half_copy(rig):
    rig.bones["foot.L"].constraints[0].use_x = False


STRANGE = (
    reverse_foot, long_chain, another_object, locked, driven, held, limited, stretching, turning,
    moving_pole, offset_copy, half_copy,
)  # fmt: skip


@pytest.mark.parametrize("change", STRANGE, ids=lambda change: change.__name__)
def test_what_is_not_understood_is_baked_on_fk_as_it_was(made, change):
    rig = made("pole")
    change(rig)
    assert [leg.side for leg in ik_legs.find(rig.armature, rig.map)] == ["r"]
    reading = rig.read()
    rig.bake(reading, legs="FK")
    wanted = left_leg(rig.armature)
    bake.restore(rig.scene, rig.armature)
    result = rig.bake(reading)
    assert result.error_mm < 0.05
    keyed = left_leg(rig.armature)
    assert keyed.keys() == wanted.keys()
    for curve, values in wanted.items():
        assert keyed[curve] == pytest.approx(values, abs=1e-4)
    assert rig.ik("L").influence == 0 and rig.ik("R").influence == 1
    assert result.leg_controls == ("foot_ik.R", "knee.R")


def test_a_leg_that_ik_puts_elsewhere_goes_back_to_fk(made):
    """A knee that IK may not bend that far."""
    rig = made("pole")
    reading = rig.read()
    for axis in "xyz":
        setattr(rig.bones["shin.L"], f"use_ik_limit_{axis}", True)
        setattr(rig.bones["shin.L"], f"ik_min_{axis}", -0.01)
        setattr(rig.bones["shin.L"], f"ik_max_{axis}", 0.01)
    result = rig.bake(reading)
    assert result.released_legs == ("l",) and result.leg_controls == ("foot_ik.R", "knee.R")
    assert result.error_mm < 0.05
    assert rig.ik("L").influence == 0 and rig.ik("R").influence == 1
    _, sentence = ik_legs.sentences(result.leg_controls, result.released_legs)
    assert sentence.startswith("IK puts the left leg elsewhere than the body has it")
    bake.restore(rig.scene, rig.armature)
    assert rig.ik("L").influence == 1


def test_ik_that_is_off_stays_off(made):
    rig = made("pole")
    for side in "LR":
        rig.ik(side).mute = True
    assert ik_legs.find(rig.armature, rig.map) == ()
    result = rig.bake(rig.read())
    assert result.leg_controls == () and rig.ik("L").influence == 1 and rig.ik("L").mute


def test_fewer_keys_leave_the_feet_nearer_on_ik(made):
    """Between keys the control goes straight, where the sum of three joints does not."""
    rig = made("pole")
    reading, errors = rig.read(), []
    deltas = rig.differences(30, 0.0, 0.0)
    for legs in ("FK", "IK"):
        rig.bake(reading, deltas, legs=legs, key_every=6)
        ankles = positions(rig.seen(reading), "ankle")
        bake.restore(rig.scene, rig.armature)
        errors.append(apart(ankles, positions(reading.motion, "ankle")))
    assert errors[1] < errors[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("foot", "legs"), [("copy", "IK"), ("copy", "FK"), ("hangs", "IK"), ("pulls", "IK")]
)
def test_a_simulation_is_baked_to_the_controls(biped, differences, foot, legs):
    """From the names of the bones to the keys: a body that bobs on planted feet."""
    biped.animation_data_clear()
    for bone in biped.pose.bones:
        bone.matrix_basis = Matrix()
    hips = biped.pose.bones["hips"]
    hips.keyframe_insert("location", frame=1)
    rig = IkRig(biped, None, differences, pole=True, foot=foot, root=True)
    for frame, height in ((1, -0.03), (25, -0.06), (50, -0.03)):
        hips.location = hips.bone.matrix_local.to_3x3().inverted() @ Vector((0, -0.05, height))
        hips.keyframe_insert("location", frame=frame)
    shot = Shot(rig.scene, ShotOptions(armature=biped.name, keys=BakeOptions(legs=legs)))
    for part in (shot.read(), shot.simulate()):
        sampling.run(part)
    assert shot.bake().error_mm < 0.1
    on_ik = [bone for side in "LR" for bone in (rig.control(side).name, f"knee.{side}")]
    assert shot.inspection()["leg_controls"] == on_ik
    assert shot.report()["leg_controls"] == (on_ik if legs == "IK" else [])
    performed, rig.map = shot.performed(), shot.reading.rig_map
    assert len(performed) == 50
    seen = rig.seen(shot.reading)
    leg = "hip", "knee", "ankle", "ball", "toe"
    assert apart(positions(seen, *leg), positions(performed, *leg)) < 1e-4


@pytest.fixture
def armature(biped, biped_map, differences):
    """A rig on IK, shown in the window."""
    return IkRig(biped, biped_map, differences, **RIGS["root"]).armature


def test_the_window_offers_the_choice_and_tells_the_controls(
    registered, armature, window, draw_panels
):
    bpy.context.scene.poise.mode = "FULL"
    assert "legs" in draw_panels([panels.POISE_PT_bake], armature).splitlines()
    operator = window.begin(POISE_OT_clean_up)
    while (ended := window.send(operator)) == {"PASS_THROUGH"}:
        pass
    assert ended == {"FINISHED"}
    ((_, said),) = operator.reports
    assert said.endswith("'; legs on IK by 'foot_ik.L', 'knee.L', 'foot_ik.R', 'knee.R'")
    for bone in armature.pose.bones:
        for constraint in list(bone.constraints):
            bone.constraints.remove(constraint)
    assert "legs" not in draw_panels([panels.POISE_PT_bake], armature).splitlines()


def test_only_what_can_move_a_leg_is_looked_at(biped, biped_map, monkeypatch):
    """A panel asks at each drawing, on rigs of hundreds of bones and thousands of curves."""
    arm = biped.pose.bones["forearm.L"].constraints.new("IK")
    arm.target, arm.subtarget = biped, "head"
    biped.pose.bones["thigh.L"].constraints.new("COPY_ROTATION").target = biped
    looked, moved_by = [], ik_legs.moved_by
    monkeypatch.setattr(ik_legs, "moved_by", lambda *of: looked.append(of[0].name) or moved_by(*of))
    monkeypatch.setattr(ik_legs, "animated_paths", lambda _: pytest.fail("all curves are read"))
    assert ik_legs.controls(biped, biped_map) == []
    assert looked == ["thigh.L"]

# SPDX-License-Identifier: GPL-3.0-or-later
"""Rig maps by name: presets, matching, saving, and what is said when it fails."""

import json
from dataclasses import replace

import pytest

from poise.addon.rigs import rig
from poise.controller.exceptions import RigError

SIDED = ("clavicle", "upper_arm", "forearm", "hand", "thigh", "shin", "foot", "toe")

#: Bones of real rigs: preset -> (pelvis, trunk, head, (left, right) by side, names of the limbs
#: in the order of SIDED). "@" stands for the side, "-" for nothing.
FAMILIES = {
    "Mixamo": (
        "mixamorig:Hips",
        "mixamorig:Spine mixamorig:Spine1 mixamorig:Spine2",
        "mixamorig:Neck mixamorig:Head",
        ("Left", "Right"),
        "mixamorig:@Shoulder mixamorig:@Arm mixamorig:@ForeArm mixamorig:@Hand "
        "mixamorig:@UpLeg mixamorig:@Leg mixamorig:@Foot mixamorig:@ToeBase",
    ),
    "MotionBuilder": (
        "Hips",
        "Spine Spine1 Spine2 Spine3",
        "Neck Neck1 Head",
        ("Left", "Right"),
        "@Shoulder @Arm @ForeArm @Hand @UpLeg @Leg @Foot @ToeBase",
    ),
    "Rigify metarig": (
        "spine",
        "spine.001 spine.002 spine.003",
        "spine.004 spine.005 spine.006",
        ("L", "R"),
        "shoulder.@ upper_arm.@ forearm.@ hand.@ thigh.@ shin.@ foot.@ toe.@",
    ),
    "Character Creator": (
        "CC_Base_Hip",
        "CC_Base_Waist CC_Base_Spine01 CC_Base_Spine02",
        "CC_Base_NeckTwist01 CC_Base_NeckTwist02 CC_Base_Head",
        ("L", "R"),
        "CC_Base_@_Clavicle CC_Base_@_Upperarm CC_Base_@_Forearm CC_Base_@_Hand "
        "CC_Base_@_Thigh CC_Base_@_Calf CC_Base_@_Foot CC_Base_@_ToeBase",
    ),
    "DAZ Genesis 1 to 8": (
        "hip",
        "abdomenLower abdomenUpper chestLower chestUpper",
        "neckLower neckUpper head",
        ("l", "r"),
        "@Collar @ShldrBend @ForearmBend @Hand @ThighBend @Shin @Foot @Toe",
    ),
    "DAZ Genesis 9": (
        "hip",
        "spine1 spine2 spine3 spine4",
        "neck1 neck2 head",
        ("l", "r"),
        "@_shoulder @_upperarm @_forearm @_hand @_thigh @_shin @_foot @_toes",
    ),
    "DAZ and MakeHuman joints": (
        "hip",
        "abdomen chest",
        "neck head",
        ("l", "r"),
        "@collar @shoulder @elbow @hand @hip @knee @foot -",
    ),
    "MakeHuman default": (
        "root",
        "spine05 spine04 spine03 spine02 spine01",
        "neck01 neck02 neck03 head",
        ("L", "R"),
        "clavicle.@ upperarm01.@ lowerarm01.@ wrist.@ upperleg01.@ lowerleg01.@ foot.@ toe1-1.@",
    ),
    "Unreal mannequin": (
        "pelvis",
        "spine_01 spine_02 spine_03",
        "neck_01 head",
        ("l", "r"),
        "clavicle_@ upperarm_@ lowerarm_@ hand_@ thigh_@ calf_@ foot_@ ball_@",
    ),
    "VRoid": (
        "J_Bip_C_Hips",
        "J_Bip_C_Spine J_Bip_C_Chest J_Bip_C_UpperChest",
        "J_Bip_C_Neck J_Bip_C_Head",
        ("L", "R"),
        "J_Bip_@_Shoulder J_Bip_@_UpperArm J_Bip_@_LowerArm J_Bip_@_Hand "
        "J_Bip_@_UpperLeg J_Bip_@_LowerLeg J_Bip_@_Foot J_Bip_@_ToeBase",
    ),
    "VRM humanoid": (
        "hips",
        "spine chest upperChest",
        "neck head",
        ("left", "right"),
        "@Shoulder @UpperArm @LowerArm @Hand @UpperLeg @LowerLeg @Foot @Toes",
    ),
    "Rokoko": (
        "Hips",
        "Spine1 Spine2 Spine3 Spine4",
        "Neck Head",
        ("Left", "Right"),
        "@Shoulder @Arm @ForeArm @Hand @Thigh @Shin @Foot @Toe",
    ),
    "3ds Max Biped": (
        "Bip001_Pelvis",
        "Bip001_Spine Bip001_Spine1 Bip001_Spine2",
        "Bip001_Neck Bip001_Head",
        ("L", "R"),
        "Bip001_@_Clavicle Bip001_@_UpperArm Bip001_@_Forearm Bip001_@_Hand "
        "Bip001_@_Thigh Bip001_@_Calf Bip001_@_Foot Bip001_@_Toe0",
    ),
    "CMU, ASF names": (
        "root",
        "lowerback upperback thorax",
        "lowerneck upperneck head",
        ("l", "r"),
        "@clavicle @humerus @radius @wrist @femur @tibia @foot @toes",
    ),
    "CMU, 3ds Max names": (
        "Hips",
        "lowerback Chest Chest2",
        "lowerneck Neck Head",
        ("Left", "Right"),
        "@Collar @Shoulder @Elbow @Wrist @Hip @Knee @Ankle @Toe",
    ),
    "CMU, MotionBuilder names": (
        "Hips",
        "LowerBack Spine Spine1",
        "Neck Neck1 Head",
        ("Left", "Right"),
        "@Shoulder @Arm @ForeArm @Hand @UpLeg @Leg @Foot @ToeBase",
    ),
    "Vicon": (
        "pelvis",
        "thorax",
        "head",
        ("l", "r"),
        "@clavicle @humerus @radius @hand @femur @tibia @foot @toes",
    ),
}


def chains(family):
    """Slot -> bones of a family."""
    pelvis, trunk, head, sides, limbs = FAMILIES[family]
    slots = {"pelvis": (pelvis,), "trunk": tuple(trunk.split()), "head": tuple(head.split())}
    for side, word in zip("lr", sides, strict=True):
        for part, name in zip(SIDED, limbs.split(), strict=True):
            if name != "-":
                slots[f"{part}_{side}"] = (name.replace("@", word),)
    return slots


@pytest.fixture
def skeleton(blender):
    """skeleton(slots) -> an armature object with these bones, one below the other."""

    def build(slots, name="Hero"):
        data = blender.data.armatures.new(name)
        armature = blender.data.objects.new(name, data)
        blender.context.scene.collection.objects.link(armature)
        blender.context.view_layer.objects.active = armature
        blender.ops.object.mode_set(mode="EDIT")
        below = {"pelvis": None, "trunk": "pelvis", "head": "trunk"}
        for side in "lr":
            arm = [f"{part}_{side}" for part in SIDED[:4]]
            leg = [f"{part}_{side}" for part in SIDED[4:]]
            below |= dict(zip(arm, ["trunk", *arm], strict=False))
            below |= dict(zip(leg, ["pelvis", *leg], strict=False))
        for slot, parent in below.items():
            while parent is not None and parent not in slots:
                parent = below[parent]
            last = data.edit_bones[slots[parent][-1]] if parent else None
            for bone in slots.get(slot, ()):
                made = data.edit_bones.new(bone)
                made.head, made.tail = (0, 0, 1), (0, 0, 2)
                made.parent, last = last, made
        blender.ops.object.mode_set(mode="OBJECT")
        return armature

    return build


@pytest.mark.parametrize("family", FAMILIES)
def test_family_is_found_by_its_names(skeleton, family):
    expected = chains(family)
    found = rig.find(skeleton(expected))
    assert found.name == family
    assert found.bones == expected
    assert not found.detected
    assert found.missing == tuple(slot for slot in rig.SLOTS if slot not in expected)


def test_every_preset_loads_and_has_all_required_slots():
    templates = rig.load_maps()
    assert len({template.name for template in templates}) == len(templates) >= 18
    for template in templates:
        assert not [slot for slot in rig.REQUIRED_SLOTS if slot not in template.bones]
        assert template.about.endswith(".")


@pytest.mark.parametrize(
    ("family", "rename"),
    [
        ("Mixamo", lambda name: name.replace("mixamorig:", "mixamorig12:")),
        ("Mixamo", lambda name: name.replace("mixamorig:", "mixamorig_")),
        ("Mixamo", lambda name: name.replace("mixamorig:", "").upper()),
        ("Mixamo", lambda name: "Armature|" + name),
        ("3ds Max Biped", lambda name: name.replace("Bip001_", "Bip01 ").replace("_", " ")),
        ("3ds Max Biped", lambda name: "ValveBiped." + name),
        ("Unreal mannequin", lambda name: "Hero_" + name),
        ("VRM humanoid", lambda name: name[0].upper() + name[1:]),
    ],
)
def test_spelling_does_not_matter(skeleton, family, rename):
    slots = {slot: tuple(map(rename, chain)) for slot, chain in chains(family).items()}
    found = rig.find(skeleton(slots))
    assert (found.name, found.bones) == (family, slots)


def test_vrm_names_with_the_side_behind(skeleton):
    words = {"thigh": "upper_leg", "shin": "lower_leg", "forearm": "lower_arm"}
    words |= {"clavicle": "shoulder", "toe": "toes"}
    slots = {"pelvis": ("hips",), "trunk": ("spine", "chest"), "head": ("neck", "head")}
    for side in "lr":
        for part in SIDED:
            slots[f"{part}_{side}"] = (f"{words.get(part, part)}.{side.upper()}",)
    found = rig.find(skeleton(slots))
    assert (found.name, found.bones) == ("VRM humanoid", slots)


@pytest.mark.parametrize(
    ("form", "sides", "shin"),
    [
        ("{part}.{side}", "LR", "calf"),
        ("{side}_{part}", "LR", "shin"),
        ("{side}_{part}", "lr", "calf"),
        ("{side}.{part}", ("left", "right"), "shin"),
        ("{side} {part}", ("Left", "Right"), "Shin"),
    ],
)
@pytest.mark.parametrize("left_out", ["", "hand", "hand toe clavicle"])
def test_hand_made_rigs_have_the_side_behind_or_first(skeleton, form, sides, shin, left_out):
    slots = {"pelvis": ("hips",), "trunk": ("spine", "chest"), "head": ("neck", "head")}
    for side, word in zip("lr", sides, strict=True):
        for part in SIDED:
            if part not in left_out.split():
                name = form.format(part=shin if part == "shin" else part, side=word)
                slots[f"{part}_{side}"] = (name,)
    found = rig.find(skeleton(slots))
    assert found.bones == slots and not found.detected
    assert not found.controls


def test_legs_that_hang_from_the_spine_make_it_pelvis(skeleton, blender):
    armature = skeleton(chains("3ds Max Biped"))
    _reparent(blender, armature, {f"Bip001_{s}_Thigh": "Bip001_Spine" for s in "LR"})
    found = rig.find(armature)
    assert found.bones["pelvis"] == ("Bip001_Pelvis", "Bip001_Spine")
    assert found.bones["trunk"] == ("Bip001_Spine1", "Bip001_Spine2")


def test_arms_that_hang_from_the_neck_make_it_trunk(skeleton, blender):
    armature = skeleton(chains("3ds Max Biped"))
    _reparent(blender, armature, {f"Bip001_{s}_Clavicle": "Bip001_Neck" for s in "LR"})
    found = rig.find(armature)
    assert found.bones["trunk"][-1] == "Bip001_Neck"
    assert found.bones["head"] == ("Bip001_Head",)


def _reparent(blender, armature, parents):
    blender.context.view_layer.objects.active = armature
    blender.ops.object.mode_set(mode="EDIT")
    bones = armature.data.edit_bones
    for child, parent in parents.items():
        bones[child].parent = bones[parent]
    blender.ops.object.mode_set(mode="OBJECT")


def test_missing_leg_is_named(skeleton):
    slots = chains("Mixamo")
    for slot in ("shin_l", "foot_l", "toe_l"):
        del slots[slot]
    with pytest.raises(RigError) as error:
        rig.find(skeleton(slots))
    assert str(error.value) == (
        "'Hero' has no bone for the left shin and left foot by the rig map 'Mixamo': choose the "
        "bone in the map, or pick another map."
    )


def test_forced_map_that_does_not_fit(skeleton):
    armature = skeleton(chains("Rokoko"))
    assert rig.find(armature, name="rokoko").name == "Rokoko"
    with pytest.raises(RigError, match=r"left shin.*by the rig map 'Mixamo'"):
        rig.find(armature, name="Mixamo")
    with pytest.raises(RigError, match="none of the bones of the rig map 'VRoid'"):
        rig.find(armature, name="VRoid")
    with pytest.raises(RigError, match="no rig map named 'Rococo': choose one of '3ds Max Biped'"):
        rig.find(armature, name="Rococo")


def test_names_without_the_right_hierarchy_are_refused(skeleton, blender):
    armature = skeleton(chains("Mixamo"))
    _reparent(blender, armature, {"mixamorig:LeftLeg": "mixamorig:RightUpLeg"})
    with pytest.raises(RigError, match="left shin 'mixamorig:LeftLeg' does not hang from the left"):
        rig.find(armature, name="Mixamo")
    with pytest.raises(RigError):
        rig.find(armature)


def test_saved_map_is_read_again(skeleton, tmp_path):
    armature = skeleton(chains("Unreal mannequin"))
    found = rig.find(armature)
    path = tmp_path / "hero.json"
    rig.save(found, path)
    again = rig.find(armature, name=str(path))
    assert (again.bones, again.missing) == (found.bones, found.missing)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda bones: {**bones, "trunk": bones["head"], "head": bones["trunk"]},
            "the trunk 'head' hangs from the head 'spine_",
        ),
        (
            lambda bones: {**bones, "trunk": bones["trunk"][::-1]},
            r"the bones of the trunk go up: '.*' hangs from '",
        ),
    ],
)
def test_a_map_that_is_upside_down_is_refused(skeleton, tmp_path, change, message):
    armature = skeleton(chains("Unreal mannequin"))
    found = rig.find(armature)
    path = tmp_path / "hero.json"
    rig.save(replace(found, bones=change(found.bones)), path)
    with pytest.raises(RigError, match=message):
        rig.find(armature, name=str(path))


def test_saved_map_of_another_armature_names_the_bone(skeleton, tmp_path):
    path = tmp_path / "hero.json"
    rig.save(rig.find(skeleton(chains("Unreal mannequin"))), path)
    slots = chains("Unreal mannequin")
    slots["hand_r"] = ("paw",)
    other = skeleton(slots, "Other")
    with pytest.raises(RigError, match=r"'Other.*' has no bone 'hand_r', which .* right hand"):
        rig.find(other, name=str(path))


def test_saving_to_nowhere_says_so(skeleton, tmp_path):
    found = rig.find(skeleton(chains("Rokoko")))
    with pytest.raises(RigError, match="cannot be saved"):
        rig.save(found, tmp_path / "absent" / "map.json")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON: Expecting property name"),
        ("[]", 'has no object "bones"'),
        ('{"bones": {"tail": ["Tail"]}}', "unknown slot 'tail': slots are pelvis, trunk"),
        ('{"bones": {"pelvis": "Hips"}}', "no list of bones for 'pelvis'"),
        ('{"bones": {"pelvis": [3]}}', "no list of bones for 'pelvis'"),
        ('{"bones": {"pelvis": []}}', "no list of bones for 'pelvis'"),
        ('{"bones": {"pelvis": ["Hips"]}, "sides": ["L"]}', "pairs of texts"),
        ('{"bones": {"pelvis": ["Hips"]}, "controls": []}', "not an object"),
        ('{"bones": {"pelvis": ["Hips"]}, "properties": {"a": {"b": "c"}}}', "not numbers"),
        ('{"bones": {"pelvis": ["Hips"]}, "properties": {"a": {"b": NaN}}}', "not numbers"),
        ('{"bones": {"pelvis": ["Hips"]}, "properties": {"a": {"b": 1e99}}}', "not numbers"),
        ('{"bones": {"pelvis": ["Hips"]}}', "no bone for the trunk, head, left upper arm"),
    ],
)
def test_broken_map(skeleton, tmp_path, content, message):
    path = tmp_path / "broken.json"
    path.write_text(content)
    with pytest.raises(RigError) as error:
        rig.find(skeleton(chains("Rokoko")), name=str(path))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_map_that_uses_a_bone_twice(skeleton, tmp_path):
    armature, path = skeleton(chains("Vicon")), tmp_path / "map.json"
    rig.save(rig.find(armature), path)
    document = json.loads(path.read_text())
    document["bones"]["head"] = document["bones"]["trunk"]
    path.write_text(json.dumps(document))
    with pytest.raises(RigError, match="twice, for the trunk and the head: correct the map"):
        rig.find(armature, name=str(path))
    rig.save(rig.find(armature), path)
    document = json.loads(path.read_text())
    trunk = document["bones"]["trunk"]
    document["bones"]["trunk"] = [trunk[0], trunk[0]] if isinstance(trunk, list) else [trunk] * 2
    path.write_text(json.dumps(document))
    with pytest.raises(RigError, match="names a bone of 'trunk' twice"):
        rig.find(armature, name=str(path))


def test_absent_and_unreadable_map(skeleton, tmp_path):
    armature = skeleton(chains("Rokoko"))
    with pytest.raises(RigError, match=r"'.*absent.json' cannot be read: No such file"):
        rig.find(armature, name=str(tmp_path / "absent.json"))
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(RigError, match="is no file"):
        rig.find(armature, name=str(tmp_path / "folder.json"))


def test_written_map_is_plain_data(skeleton, tmp_path):
    path = tmp_path / "map.json"
    rig.save(rig.find(skeleton(chains("Vicon"))), path)
    document = json.loads(path.read_text())
    assert document["bones"]["thigh_l"] == ["lfemur"]
    assert "controls" not in document


# --- Legs on inverse kinematics ------------------------------------------------------------------


def test_the_map_of_legs_on_ik_changes_nothing_else():
    legs = {
        f"{part}_{side}": (f"{part}_fk.{side}",)
        for part in ("thigh", "shin", "foot", "toe")
        for side in "lr"
    }
    ik = {"thigh_l": ("knee.l",), "foot_l": ("foot_ik.l",)}
    known = rig.RigMap(
        "hero",
        {},
        controls={"pelvis": ("torso",), **legs},
        properties={"props": {"arm_fk": 1.0, "leg_fk": 1.0}},
        ik_controls=ik,
        ik_properties={"props": {"leg_fk": 0.0}},
    )
    found = known.on_ik()
    right = {slot: chain for slot, chain in legs.items() if slot.endswith("_r")}
    assert found.controls == {"pelvis": ("torso",), **right, **ik}
    assert found.properties == {"props": {"arm_fk": 1.0, "leg_fk": 0.0}}
    plain = rig.RigMap("plain", {}, controls=legs)
    assert plain.on_ik() == plain

# SPDX-License-Identifier: GPL-3.0-or-later
"""Detection of bipeds without any help from names, and its refusal of what is none."""

import math

import numpy as np
import pytest
from helpers.standins import captured

from poise.addon.rigs import rig
from poise.controller.exceptions import RigError

#: A clip of each of the seven skeletons.
CLIPS = ("stand", "walk_fast", "squat", "kick", "wave", "jump", "run")
OTHERS = (
    *("arm", "bow", "hips_twist", "single", "knee_raises", "side_kick", "dance", "jumping_jacks"),
    *("jog_in_place", "walk", "walk_slow", "walk_zombie", "walk_backward", "run_leap"),
)

#: Joints of a person of 1.75 m who faces -Y with the arms out: bone -> (parent, x, y, z) [m].
#: Left of the body; "_l" bones are mirrored to the right.
PERSON = {
    "pelvis": (None, 0, 0, 0.95),
    "spine": ("pelvis", 0, 0.01, 1.06),
    "chest": ("spine", 0, 0.02, 1.24),
    "neck": ("chest", 0, 0.02, 1.47),
    "head": ("neck", 0, 0, 1.56),
    "clavicle_l": ("chest", 0.03, 0, 1.42),
    "upper_arm_l": ("clavicle_l", 0.18, 0.02, 1.42),
    "forearm_l": ("upper_arm_l", 0.47, 0.03, 1.42),
    "hand_l": ("forearm_l", 0.73, 0.02, 1.42),
    "thigh_l": ("pelvis", 0.09, 0, 0.9),
    "shin_l": ("thigh_l", 0.1, -0.01, 0.48),
    "foot_l": ("shin_l", 0.1, 0.02, 0.08),
    "toe_l": ("foot_l", 0.11, -0.12, 0.02),
}
SLOT_OF = {"spine": "trunk", "chest": "trunk", "neck": "head"}


def mirrored(bones):
    """Bones with those of the right side added."""
    both = {}
    for bone, (parent, *point) in bones.items():
        both[bone] = (parent, *point)
        if bone.endswith("_l"):
            parent = parent[:-2] + "_r" if parent and parent.endswith("_l") else parent
            both[bone[:-2] + "_r"] = (parent, -point[0], *point[1:])
    return both


def person(changes=None, extra=None):
    """The person's joints with some of them changed and some bones added."""
    return mirrored({**PERSON, **(changes or {}), **(extra or {})})


def arms_down(bones):
    """The same joints with the arms hanging."""
    turned = dict(bones)
    for bone, (parent, x, y, z) in bones.items():
        if abs(x) > 0.18 and z > 1.0:
            reach = abs(x) - 0.18
            turned[bone] = (parent, math.copysign(0.18 + 0.1 * reach, x), y, z - reach)
    return turned


EXPECTED = {
    slot: tuple(bone for bone in mirrored(PERSON) if SLOT_OF.get(bone, bone) == slot)
    for slot in rig.SLOTS
}


@pytest.fixture
def build(blender):
    """build(bones) -> an armature object; tails lie at the first child, or 5 cm further."""

    def make(bones, name="Somebody"):
        data = blender.data.armatures.new(name)
        armature = blender.data.objects.new(name, data)
        blender.context.scene.collection.objects.link(armature)
        blender.context.view_layer.objects.active = armature
        blender.ops.object.mode_set(mode="EDIT")
        for bone, (_, *point) in bones.items():
            made = data.edit_bones.new(bone)
            made.head = point
            below = [p for parent, *p in bones.values() if parent == bone and p != point]
            made.tail = below[0] if below else np.add(point, (0, -0.05, 0))
        for bone, (parent, *_) in bones.items():
            data.edit_bones[bone].parent = data.edit_bones[parent] if parent else None
        blender.ops.object.mode_set(mode="OBJECT")
        return armature

    return make


def detected(armature):
    """Slot -> bones, detected after all bones are called b0, b1, …, with their names of before."""
    before = {}
    for number, bone in enumerate(armature.data.bones):
        before[f"b{number}"] = bone.name
        bone.name = f"b{number}"
    found = rig.find(armature)
    assert found.detected
    return {slot: tuple(before[b] for b in chain) for slot, chain in found.bones.items()}


@pytest.mark.parametrize("clip", [*CLIPS, *captured(*CLIPS, *OTHERS)])
def test_clip_is_found_by_name_and_by_detection(import_clip, clip):
    armature = import_clip(clip)
    named = rig.find(armature)
    assert not named.detected
    assert not [slot for slot in rig.REQUIRED_SLOTS if slot not in named.bones]
    assert detected(armature) == named.bones


#: As SMPL has them: named after joints like DAZ bodies, with other feet.
JOINTS = (
    *("Pelvis", "Spine1", "Spine3", "Neck", "Head"),
    *("L_Collar", "L_Shoulder", "L_Elbow", "L_Wrist", "L_Hip", "L_Knee", "L_Ankle", "L_Foot"),
)


def test_limbs_that_a_family_calls_otherwise_are_found_by_their_shape(build):
    names = {f"{bone[:-2]}_r": f"R{name[1:]}" for bone, name in zip(PERSON, JOINTS, strict=True)}
    names |= dict(zip(PERSON, JOINTS, strict=True))
    bones = {names[b]: (p and names[p], *point) for b, (p, *point) in person().items()}
    found = rig.find(build(bones))
    assert found.detected
    expected = {slot: tuple(names[bone] for bone in chain) for slot, chain in EXPECTED.items()}
    assert found.bones == expected


@pytest.mark.parametrize("turn", [0, 90, 180, 307])
@pytest.mark.parametrize("pose", [dict, arms_down])
def test_person_facing_anywhere(build, pose, turn):
    armature = build(pose(person()))
    armature.rotation_euler.z = math.radians(turn)
    armature.location = (3, -2, 1)
    assert detected(armature) == EXPECTED


@pytest.mark.parametrize("size", [0.01, 100.0, 39.37])
def test_scale_does_not_matter(build, size):
    armature = build(person())
    armature.scale = (size,) * 3
    assert detected(armature) == EXPECTED


def test_sides_follow_the_feet_not_the_axes(build):
    turned = {bone: (parent, -x, -y, z) for bone, (parent, x, y, z) in person().items()}
    assert detected(build(turned)) == EXPECTED


def test_bones_that_lie_on_their_side(build):
    armature = build({b: (parent, x, z, -y) for b, (parent, x, y, z) in person().items()})
    armature.rotation_euler.x = math.radians(90)
    assert detected(armature) == EXPECTED


ROOTED = {"root": (None, 0, 0, 0), "pelvis": ("root", 0, 0, 0.95)}
CONTROLS = {
    "ik_foot_l": ("root", 0.1, 0.02, 0.08),
    "ik_toe_l": ("ik_foot_l", 0.11, -0.12, 0.02),
    "ik_hand_l": ("root", 0.73, 0.02, 1.42),
    "pole_knee_l": ("root", 0.1, -0.6, 0.48),
    "pole_elbow_l": ("root", 0.47, 0.7, 1.42),
}
SKIRT = {
    f"skirt{column}{row}_l": (
        f"skirt{column}{row - 1}_l" if row else "pelvis",
        0.13 + 0.03 * row,
        0.1 * column - 0.1,
        0.9 - 0.2 * row,
    )
    for column in range(3)
    for row in range(4)
}
TAIL = {
    f"tail{i}": (f"tail{i - 1}" if i else "pelvis", 0, 0.1 + 0.12 * i, 0.95 - 0.04 * i)
    for i in range(8)
}
HAIR = {
    f"braid{i}_l": (f"braid{i - 1}_l" if i else "head", 0.08, 0.08 + 0.01 * i, 1.65 - 0.15 * i)
    for i in range(5)
}
FACE = {
    "jaw": ("head", 0, -0.03, 1.58),
    "chin": ("jaw", 0, -0.09, 1.54),
    "eye_l": ("head", 0.03, -0.08, 1.65),
    "ear_l": ("head", 0.08, 0.0, 1.64),
}
FINGERS = {
    f"finger{f}{i}_l": (
        f"finger{f}{i - 1}_l" if i else "hand_l",
        0.82 + 0.035 * i,
        0.03 * f - 0.04,
        1.42,
    )
    for f in range(4)
    for i in range(3)
}
TWISTS = {
    "thigh_twist_l": ("thigh_l", 0.095, -0.005, 0.69),
    "shin_twist_l": ("shin_l", 0.1, 0, 0.28),
    "arm_twist_l": ("upper_arm_l", 0.18, 0.02, 1.42),
    "arm_twist2_l": ("arm_twist_l", 0.33, 0.025, 1.42),
    "forearm_twist_l": ("forearm_l", 0.6, 0.025, 1.42),
}
PROPS = {
    "sword": ("hand_l", 0.8, -0.02, 1.42),
    "blade": ("sword", 0.8, -0.2, 1.42),
    "point": ("blade", 0.8, -1.1, 1.42),
}
WINGS = {
    "breast_l": ("chest", 0.08, -0.12, 1.3),
    "scapula_l": ("chest", 0.1, 0.1, 1.35),
}


@pytest.mark.parametrize(
    ("changes", "extra"),
    [
        pytest.param(ROOTED, {}, id="root on the floor"),
        pytest.param(ROOTED, CONTROLS, id="IK targets and poles"),
        pytest.param({}, SKIRT, id="skirt"),
        pytest.param({}, TAIL, id="tail"),
        pytest.param({}, {**HAIR, **FACE}, id="face and braids"),
        pytest.param({}, {**FINGERS, **FACE}, id="fingers"),
        pytest.param({}, TWISTS, id="twist bones"),
        pytest.param({}, WINGS, id="breasts and shoulder blades"),
        pytest.param(ROOTED, {**CONTROLS, **SKIRT, **FINGERS, **FACE, **TWISTS}, id="all of it"),
    ],
)
@pytest.mark.parametrize("pose", [dict, arms_down])
def test_other_bones_do_not_disturb(build, pose, changes, extra):
    assert detected(build(pose(person(changes, extra)))) == EXPECTED


def test_sword_in_one_hand(build):
    one_hand = {bone: joint for bone, joint in person().items()} | PROPS
    assert detected(build(one_hand)) == EXPECTED


@pytest.mark.parametrize("base", ["chest", "spine", "wings"])
@pytest.mark.parametrize(
    ("begin", "spread", "rise"),
    [
        (0.08, 0.35, -0.1),
        (0.08, 0.35, 0.15),
        (0.08, 0.35, 0.4),
        (0.0, 0.1, 0.3),
        (0.0, 0.03, 0.3),
        (0.02, 0.05, 0.15),
    ],
)
def test_wings_are_no_head(build, base, begin, spread, rise):
    """However high and steep they reach, one beside the other or from a bone between the
    shoulders, at one place or apart."""
    wings = {
        f"wing{i}_l": (
            f"wing{i - 1}_l" if i else base,
            begin + spread * i,
            0.1 + 0.05 * i,
            1.45 + rise * (i + 0.5),
        )
        for i in range(3)
    }
    middle = {"wings": ("chest", 0, 0.1, 1.45)} if base == "wings" else {}
    joints = person(None, {**middle, **wings})
    for pose in (dict, arms_down):
        assert detected(build(pose(joints))) == EXPECTED
    first = dict(sorted(joints.items(), key=lambda joint: "wing" not in joint[0]))
    assert detected(build(first)) == EXPECTED


def test_segments_of_two_bones_in_line(build):
    """As in MakeHuman's default rig: the first one has the joint."""
    split = {
        "thigh2_l": ("thigh_l", 0.095, -0.005, 0.69),
        "shin_l": ("thigh2_l", 0.1, -0.01, 0.48),
        "shin2_l": ("shin_l", 0.1, 0.005, 0.28),
        "foot_l": ("shin2_l", 0.1, 0.02, 0.08),
        "upper_arm2_l": ("upper_arm_l", 0.325, 0.025, 1.42),
        "forearm_l": ("upper_arm2_l", 0.47, 0.03, 1.42),
        "forearm2_l": ("forearm_l", 0.6, 0.025, 1.42),
        "hand_l": ("forearm2_l", 0.73, 0.02, 1.42),
    }
    assert detected(build(person(split))) == EXPECTED


def test_rig_without_toes_clavicles_and_neck(build):
    bones = person({"upper_arm_l": ("chest", 0.18, 0.02, 1.42), "head": ("chest", 0, 0, 1.5)})
    for bone in [b for b in bones if b.startswith(("toe", "clavicle", "neck"))]:
        del bones[bone]
    found = detected(build(bones))
    optional = ("toe_l", "toe_r", "clavicle_l", "clavicle_r")
    expected = {slot: bones for slot, bones in EXPECTED.items() if slot not in optional}
    assert found == {**expected, "head": ("head",)}


@pytest.mark.parametrize("without", [("hand",), ("hand", "toe"), ("hand", "clavicle", "neck")])
def test_rig_without_hands(build, blender, without):
    """Where nothing is below, the tails of the forearms tell how long they are."""
    bones = {b: joint for b, joint in person().items() if not b.startswith(without)}
    for bone, (parent, *joint) in bones.items():
        if parent not in bones and parent is not None:
            bones[bone] = ("chest", *joint)
    armature = build(bones)
    blender.context.view_layer.objects.active = armature
    blender.ops.object.mode_set(mode="EDIT")
    for side, x in (("l", 1), ("r", -1)):
        armature.data.edit_bones[f"forearm_{side}"].tail = (x * 0.72, 0.0, 1.42)
    blender.ops.object.mode_set(mode="OBJECT")
    expected = {slot: names for slot, names in EXPECTED.items() if not slot.startswith(without)}
    if "neck" in without:
        expected["head"] = ("head",)
    assert detected(armature) == expected


def test_same_bones_in_another_order(build):
    shuffled = list(person(ROOTED, {**CONTROLS, **FINGERS}).items())
    np.random.default_rng(2).shuffle(shuffled)
    found = detected(build(dict(shuffled)))
    assert {slot: set(chain) for slot, chain in found.items()} == {
        slot: set(chain) for slot, chain in EXPECTED.items()
    }


@pytest.mark.parametrize("metarig", ["human", "basic_human"])
def test_rigify_metarig(blender, metarig):
    armature = _metarig(blender, metarig)
    named = rig.find(armature)
    assert named.name == "Rigify metarig"
    assert detected(armature) == named.bones


def test_generated_rigify_rig(blender):
    metarig = _metarig(blender, "human")
    blender.ops.pose.rigify_generate()
    armature = next(o for o in blender.data.objects if o.type == "ARMATURE" and o != metarig)
    found = rig.find(armature)
    assert (found.name, found.detected, found.missing) == ("Rigify", False, ())
    assert found.bones["thigh_l"] == ("ORG-thigh.L",)
    assert found.bones["trunk"] == tuple(f"ORG-spine.00{i}" for i in (1, 2, 3))
    assert found.controls["forearm_r"] == ("forearm_fk.R",)
    assert set(found.controls) == set(rig.SLOTS)
    for bones in (*found.bones.values(), *found.controls.values()):
        assert all(bone in armature.pose.bones for bone in bones)
    assert len(found.properties) == 4
    for bone, values in found.properties.items():
        assert all(name in armature.pose.bones[bone] for name in values)


def _metarig(blender, name):
    blender.ops.preferences.addon_enable(module="rigify")
    getattr(blender.ops.object, f"armature_{name}_metarig_add")()
    return blender.context.object


@pytest.mark.parametrize("animal", ["basic_quadruped", "cat", "horse", "wolf", "shark"])
def test_animals_are_refused(blender, animal):
    with pytest.raises(RigError) as error:
        rig.find(_metarig(blender, animal))
    text = str(error.value)
    assert text.startswith("'metarig")
    assert text.count(": ") == 1
    assert text.endswith(".")


def test_map_of_a_named_animal_can_be_forced(blender):
    armature = _metarig(blender, "cat")
    with pytest.raises(RigError, match="bones of the rig map 'Rigify metarig', but never stands"):
        rig.find(armature)
    assert rig.find(armature, name="Rigify metarig").bones["thigh_l"] == ("thigh.L",)


def test_quadruped_is_refused(build):
    legs = {"thigh_l": (0.1, 0.5, 0.8), "shin_l": (0.1, 0.5, 0.45), "foot_l": (0.1, 0.55, 0.08)}
    bones = {
        "pelvis": (None, 0, 0.5, 0.9),
        "spine": ("pelvis", 0, 0.3, 0.92),
        "chest": ("spine", 0, -0.2, 0.9),
        "neck": ("chest", 0, -0.45, 1.0),
        "head": ("neck", 0, -0.65, 1.15),
    }
    for above, bone in zip(("pelvis", "thigh_l", "shin_l"), legs, strict=True):
        bones[bone] = (above, *legs[bone])
        x, y, z = legs[bone]
        front = above.replace("pelvis", "chest").replace("_l", "_front_l")
        bones[bone.replace("_l", "_front_l")] = (front, x, y - 0.85, z)
    with pytest.raises(RigError, match="'Dog' matches no rig map and "):
        rig.find(build(mirrored(bones), "Dog"))


def test_one_leg_is_refused(build):
    bones = {b: joint for b, joint in person().items() if b not in ("shin_l", "foot_l", "toe_l")}
    with pytest.raises(RigError, match="has no two legs of thigh, shin and foot"):
        detected(build(bones))


def test_no_arms_are_refused(build):
    bones = {b: j for b, j in person().items() if not b.startswith(("upper", "forearm", "hand"))}
    with pytest.raises(RigError, match="has no two legs and two arms on one trunk"):
        detected(build(bones))


@pytest.mark.parametrize("count", [1, 2, 3, 30])
def test_snake_is_refused(build, count):
    bones = {f"s{i}": (f"s{i - 1}" if i else None, 0, 0.1 * i, 0.05) for i in range(count)}
    with pytest.raises(RigError, match="has no two legs"):
        rig.find(build(bones, "Snake"))


def test_empty_armature_is_refused(build):
    with pytest.raises(RigError, match="'Nothing' has no bones"):
        rig.find(build({}, "Nothing"))


def test_all_joints_in_one_point_are_refused(build):
    bones = {bone: (parent, 0, 0, 1) for bone, (parent, *_) in person().items()}
    with pytest.raises(RigError, match="has no two legs"):
        detected(build(bones))


def test_positions_that_are_no_numbers(build):
    armature = build(person())
    frames = np.full((3, len(armature.pose.bones), 4, 4), np.nan)
    with pytest.raises(RigError, match="has no frame in which all bones are finite numbers"):
        rig.detect(armature, frames)


def test_detection_restores_the_frame(import_clip, blender):
    armature = import_clip("walk", rename=True)
    blender.context.scene.frame_set(17, subframe=0.25)
    rig.find(armature)
    scene = blender.context.scene
    assert (scene.frame_current, scene.frame_subframe) == (17, 0.25)


def test_detected_map_is_saved_and_read(import_clip, tmp_path):
    armature = import_clip("walk_backward", rename=True)
    found = rig.find(armature)
    path = tmp_path / "dribbler.json"
    rig.save(found, path)
    again = rig.find(armature, name=str(path))
    assert (again.name, again.bones) == ("dribbler", found.bones)


def test_detection_looks_at_few_frames_of_a_long_clip(import_clip, blender):
    armature, seen = import_clip("walk", rename=True), []
    blender.app.handlers.frame_change_post.append(lambda scene, _: seen.append(scene.frame_current))
    rig.find(armature)
    assert 2 < len(set(seen)) <= 24
    assert (min(seen), max(seen)) == (1, 194)


def test_too_many_bones_in_a_chain_are_refused(build):
    """In which parts of limbs would be any: it took gigabytes."""
    chain = {f"{i}": (f"{i - 1}" if i else None, 0.0, 0.0, 0.01 * i) for i in range(900)}
    with pytest.raises(RigError, match="900 bones that hang on each other are too many"):
        detected(build(chain))

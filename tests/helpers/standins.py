# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-ins for the captured clips: BVH files of the same names, rigs, axes and units.

Their motion is the example's, PyBullet's own clips, or keyed here, all on the body of the example's
character. So the tests run wherever the repository is; what is true of captured motion only is
proved with the captured clips.
"""

import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp

from poise.controller.geometry.rotations import exponential, rotation_about

ROOT = Path(__file__).resolve().parents[2]
LIMBS = ("UpLeg", "Leg", "Foot", "ToeBase", "Shoulder", "Arm", "ForeArm", "Hand")
SIDES = ("Left", "Right")
HANDS = ("LeftHand", "RightHand")
#: Bones of the example's character.
BONES = ("Hips", "Spine", "Spine1", "Neck", "Head")
BONES += tuple(f"{side}{limb}" for side in SIDES for limb in LIMBS)
#: From Blender's axes to those of a file: Z or Y up.
AXES = {"Z": np.eye(3), "Y": np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0]], float)}


@dataclass(frozen=True)
class Rig:
    """How a skeleton names the bones, and what its file is like.

    middle, limbs: its names of BONES, "-" for those that it lacks; limbs are said with a side, one
    of sides. thumb: of a hand, which no map names. up, scale: the file's up axis, and metres per
    unit. order: of its Euler angles. tpose: whether its rest pose has the arms out and the legs
    apart. size: of the body, a grown one's is 1.
    """

    middle: str
    limbs: str
    sides: tuple
    up: str = "Y"
    scale: float = 0.01
    order: str = "ZYX"
    thumb: str = ""
    tpose: bool = True
    size: float = 1.0

    def names(self):
        """{bone: its name in the file}, of the bones that it has."""
        names = self.middle.split()
        for side in self.sides:
            names += [limb.format(side) for limb in self.limbs.split()]
        names = dict(zip(BONES, names, strict=True))
        return {bone: name for bone, name in names.items() if name != "-"}

    def skeleton(self):
        """(bone, its name in the file, parent, head, tail) of the bones that it has [m]."""
        names, parents = self.names(), {}
        for bone, parent, head, tail in _skeleton():
            parents[bone] = parent if parent in names else parents.get(parent)
            if bone in names:
                yield bone, names[bone], parents[bone], np.array(head), np.array(tail)
            if self.thumb and bone in HANDS:
                ends = np.array(head), head + np.array((0, -0.06, -0.05))
                yield f"{bone}Thumb", self.thumb.format(bone), bone, *ends


CMU = 0.056444
RIGS = {
    "A": Rig(
        "Hips Spine Spine1 Neck Head",
        "{}UpLeg {}Leg {}Foot {}ToeBase {}Shoulder {}Arm {}ForeArm {}Hand",
        ("Left", "Right"),
        scale=CMU,
        thumb="{}Index1",
    ),
    "B": Rig(
        "root upperback thorax lowerneck head",
        "{}femur {}tibia {}foot {}toes {}clavicle {}humerus {}radius {}wrist",
        ("l", "r"),
        scale=CMU,
    ),
    "C": Rig(
        "Hips Chest Chest2 Neck Head",
        "{}Hip {}Knee {}Ankle {}Toe {}Collar {}Shoulder {}Elbow {}Wrist",
        ("Left", "Right"),
        scale=CMU,
        tpose=False,
    ),
    "D": Rig(
        "pelvis - thorax - head",
        "{}femur {}tibia {}foot {}toes {}clavicle {}humerus {}radius {}hand",
        ("l", "r"),
        up="Z",
        scale=0.0254,
        order="XYZ",
        tpose=False,
    ),
    "E": Rig(
        "Hips Spine Spine1 Neck Head",
        "{}UpLeg {}Leg {}Foot {}ToeBase {}Shoulder {}Arm {}ForeArm {}Hand",
        ("Left", "Right"),
        up="Z",
        scale=0.0254,
        order="XYZ",
        thumb="{}Thumb1",
        size=0.62,
    ),
    "F": Rig(
        "CC_Base_Hip CC_Base_Waist CC_Base_Spine01 CC_Base_NeckTwist01 CC_Base_Head",
        "CC_Base_{0}_Thigh CC_Base_{0}_Calf CC_Base_{0}_Foot CC_Base_{0}_ToeBase "
        "CC_Base_{0}_Clavicle CC_Base_{0}_Upperarm CC_Base_{0}_Forearm CC_Base_{0}_Hand",
        ("L", "R"),
    ),
    "G": Rig(
        "hip abdomen chest neck head",
        "{}hip {}knee {}foot {}toe {}collar {}shoulder {}elbow {}hand",
        ("l", "r"),
        order="ZXY",
    ),
}

# --- Motions: turns from rest {bone: (n, 3, 3)} in Blender's axes, and the hips (n, 3) [m] --------


def _keyed(rows, fps, count):
    """A motion through poses (second, *numbers that the example's `key` takes)."""
    from poise.addon.example import character

    flat = [np.hstack([np.ravel(part) for part in _flat(row)]) for row in rows]
    at, values = np.array(flat)[:, 0], np.array(flat)[:, 1:]
    frames = []
    keep, character.key_pose = character.key_pose, lambda *pose: frames.append(pose[2:])
    try:
        for time in np.arange(count) / fps:
            i = min(np.searchsorted(at, time, "right"), len(at) - 1) - 1
            share = min((time - at[i]) / (at[i + 1] - at[i]), 1.0)
            share = share * share * (3 - 2 * share)
            now = values[i] + share * (values[i + 1] - values[i])
            left, right = (now[7:10], now[10]), (now[11:14], now[14])
            character.key(None, 0, now[:3], now[3:7], left, right, now[15:18], now[18])
    finally:
        character.key_pose = keep
    turns = {bone: np.array([turns[bone] for turns, _ in frames]) for bone in BONES}
    return turns, np.array([hips for _, hips in frames])


def _flat(row):
    for part in row:
        yield from _flat(part) if isinstance(part, tuple) else (part,)


def _hello(fps, count):
    """The example's own captured clip."""
    clip = json.loads((ROOT / "presets" / "example" / "hello.json").read_text(encoding="utf-8"))
    hips = np.array(clip["hips"]) / 1000
    turns = exponential(np.array(clip["turns"]).reshape(len(hips), -1, 3) / 1e4)
    seconds = np.arange(len(hips)) / clip["fps"]
    now = np.minimum(np.arange(count) / fps, seconds[-1])
    turns = {name: _resampled(seconds, turns[:, i], now) for i, name in enumerate(clip["bones"])}
    return turns, np.stack([np.interp(now, seconds, axis) for axis in hips.T], 1)


def _pybullet(name, fps, count, speed=1.0, backward=False):
    """A clip of PyBullet's humanoid on our body, round after round if it goes on so long."""
    from poise.addon.example.character import LEGS, PELVIS

    captured = _demo("captured")
    clip = json.loads((captured.folder() / f"humanoid3d_{name}.txt").read_text(encoding="utf-8"))
    values = np.array(clip["Frames"], float)
    seconds = np.arange(len(values)) * values[0, 0]
    now = speed * np.arange(count) / fps
    rounds = np.floor(now / seconds[-1]) if clip["Loop"] == "wrap" else np.zeros(count)
    now = np.minimum(now - rounds * seconds[-1], seconds[-1])
    if backward:
        now, rounds = now[::-1], rounds[::-1]
    if clip["Loop"] == "wrap":
        values = _closed(values, captured.JOINTS)
    place = np.stack([np.interp(now, seconds, axis) for axis in values[:, 1:4].T], 1)
    place += rounds[:, None] * (values[-1, 1:4] - values[0, 1:4]) * (1, 0, 1)
    own, at = {"Hips": _resampled(seconds, values[:, 4:8], now)}, 8
    for bone, size in captured.JOINTS:
        part = values[:, at : at + size]
        at += size
        if size == 1:
            part = np.stack([np.cos(part / 2), 0 * part, 0 * part, np.sin(part / 2)], -1)[:, 0]
        own[bone] = _resampled(seconds, part, now)
    turns = {}
    for bone, parent, *_ in _skeleton():
        turn = captured.AXES @ own[bone] @ captured.AXES.T if bone in own else np.eye(3)
        turns[bone] = turns[parent] @ turn if parent else turn
    hips = (place - place[0] * (1, 0, 1)) @ captured.AXES.T * (LEGS / captured.ROOT)
    return turns, hips + turns["Hips"] @ (0, 0, PELVIS - LEGS)


def _closed(values, joints):
    """The frames of a round with its end brought to its start, but for the way."""
    share, at = np.linspace(0, 1, len(values))[:, None], 4
    closed = values.copy()
    closed[:, 2] -= share[:, 0] * (values[-1, 2] - values[0, 2])
    for size in (4, *(size for _, size in joints)):
        part = values[:, at : at + size]
        if size == 1:
            part = part - share * (part[-1] - part[0])
        else:
            turns = Rotation.from_quat(np.roll(part, -1, axis=1))
            back = (turns[0] * turns[-1].inv()).as_rotvec()
            part = np.roll((Rotation.from_rotvec(share * back) * turns).as_quat(), 1, axis=1)
        closed[:, at : at + size] = part
        at += size
    return closed


def _resampled(seconds, quaternions, now):
    turns = Rotation.from_quat(np.roll(quaternions, -1, axis=1))
    return Slerp(seconds, turns)(now).as_matrix()


def _demo(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "demo" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _skeleton():
    """(bone, parent, head, tail) of the example's character, parents first."""
    from poise.addon.example.character import bones

    return bones()


# --- Poses: second, hips, hips and spine turned, left and right foot, right arm and elbow ---------

STILL = ((0.0, 0.0, 0.0), 0.0)
UPRIGHT = ((0, 0, 0), (0, 0, 2, 0), STILL, STILL, (8, 0, 0), 12)
#: The left foot slides, as it does where nothing holds it.
BREATH = ((0.004, 0.003, -0.001), (1, 1, 3, 0), ((0.003, 0, 0), 0.0), STILL, (10, 2, 0), 16)
BENT = ((0, 0.1, -0.1), (40, 0, 30, 0), STILL, STILL, (10, 0, -50), 20)
AHEAD = ((0, 0, 0), (0, 0, 2, 0), STILL, STILL, (10, 0, -60), 20)
BEHIND = ((0, 0, 0), (0, 0, 2, 0), STILL, STILL, (10, 0, 30), 20)
TO_LEFT = ((0, 0, -0.01), (0, 20, 2, 0), STILL, STILL, (10, 0, 0), 20)
TO_RIGHT = ((0, 0, -0.01), (0, -20, 2, 0), STILL, STILL, (10, 0, 0), 20)
LIFTED = ((0, 0.05, 0.2), 20.0)
OVER_LEFT = ((0.105, 0, -0.01), (0, 0, 2, 0), STILL, STILL, (10, 0, 0), 20)
ON_LEFT = ((0.105, 0, -0.01), (0, 0, 2, 0), STILL, LIFTED, (30, 0, 0), 20)
OVER_RIGHT = ((-0.105, 0, -0.01), (0, 0, 2, 0), STILL, STILL, (10, 0, 0), 20)
ON_RIGHT = ((-0.105, 0, -0.01), (0, 0, 2, 0), LIFTED, STILL, (30, 0, 0), 20)
CROUCHED = ((0, 0.02, -0.08), (4, 0, 4, 0), STILL, STILL, (10, 0, 0), 20)
WIDE = ((0.2, 0, 0), 0.0), ((-0.2, 0, 0), 0.0)
HALF = ((0.1, 0, 0.1), 10.0), ((-0.1, 0, 0.1), 10.0)
APART = ((0, 0.02, -0.08), (4, 0, 4, 0), *WIDE, (120, 0, 0), 15)
LOWER = ((0, 0.025, -0.1), *APART[1:])
LEAPING = ((0, 0, 0.1), (0, 0, 2, 0), *HALF, (70, 0, 0), 15)


def _every(seconds, *poses):
    """A motion through poses that are so far apart."""
    return lambda *n: _keyed([(seconds * i, *pose) for i, pose in enumerate(poses)], *n)


def _squat(fps, count):
    """The example's squat, in the time there is."""
    from poise.addon.example.actions import SQUAT

    last = SQUAT[-1][0]
    return _keyed([((row[0] - 1) / last * count / fps, *row[1:]) for row in SQUAT], fps, count)


#: name -> (rig, frames per second, frames, its motion of (frames per second, frames)).
CLIPS = {
    "stand": ("A", 60, 102, _every(0.8, UPRIGHT, BREATH, UPRIGHT)),
    "wave": ("E", 60, 240, _hello),
    "squat": ("C", 60, 312, _squat),
    "arm": ("C", 60, 240, _every(0.8, UPRIGHT, AHEAD, BEHIND, AHEAD, BEHIND, UPRIGHT)),
    "bow": ("F", 30, 132, _every(1.1, UPRIGHT, BENT, UPRIGHT, BENT, UPRIGHT)),
    "hips_twist": ("C", 60, 300, _every(1.0, UPRIGHT, TO_LEFT, TO_RIGHT, TO_LEFT, UPRIGHT)),
    "single": ("A", 60, 300, _every(1.0, UPRIGHT, OVER_LEFT, ON_LEFT, ON_LEFT)),
    "knee_raises": (
        "C",
        60,
        400,
        _every(0.8, UPRIGHT, OVER_LEFT, ON_LEFT, OVER_LEFT, OVER_RIGHT, ON_RIGHT, OVER_RIGHT),
    ),
    "jumping_jacks": (
        "C",
        60,
        150,
        _every(0.18, *(UPRIGHT, CROUCHED, LEAPING, APART, LOWER, LEAPING, CROUCHED) * 2),
    ),
    "kick": ("D", 60, 92, lambda *n: _pybullet("kick", *n)),
    "side_kick": ("D", 60, 77, lambda *n: _pybullet("spinkick", *n)),
    "dance": ("A", 60, 252, lambda *n: _pybullet("dance_b", *n)),
    "jump": ("F", 30, 53, lambda *n: _pybullet("jump", *n)),
    "walk": ("A", 60, 194, lambda *n: _pybullet("walk", *n, speed=1.2)),
    "walk_slow": ("A", 60, 260, lambda *n: _pybullet("walk", *n)),
    "walk_fast": ("B", 60, 156, lambda *n: _pybullet("walk", *n, speed=1.4)),
    "walk_backward": ("F", 30, 144, lambda *n: _pybullet("walk", *n, speed=1.1, backward=True)),
    "run": ("G", 60, 85, lambda *n: _pybullet("run", *n)),
}


def captured(*names):
    """Parameters of a test that are captured clips: these are proofs."""
    return [pytest.param(name, marks=pytest.mark.slow, id=f"captured {name}") for name in names]


# --- Files ----------------------------------------------------------------------------------------


def write(name, folder):
    """Write a stand-in into a folder -> (path, fps, frames, rig, up, scale)."""
    letter, fps, count, motion = CLIPS[name]
    rig = RIGS[letter]
    path = Path(folder) / f"{name}.bvh"
    path.write_text(_bvh(rig, fps, *motion(fps, count)), encoding="utf-8")
    return path, fps, count, letter, rig.up, rig.scale


def _bvh(rig, fps, turns, hips):
    axes, rest = AXES[rig.up], _rest(rig)
    skeleton, children = {bone: more for bone, *more in rig.skeleton()}, {}
    for bone, (_, parent, *_) in skeleton.items():
        children.setdefault(parent, []).append(bone)
    lines, columns = ["HIERARCHY"], [hips @ axes.T * rig.size / rig.scale]
    turns = {bone: turns[bone] @ rest.get(bone, np.eye(3)).T for bone in BONES}
    turns |= {f"{hand}Thumb": turns[hand] for hand in HANDS}
    angles = " ".join(f"{axis}rotation" for axis in rig.order)

    def offset(bone, way):
        way = axes @ (rest.get(bone, np.eye(3)) @ way) * rig.size / rig.scale
        return "OFFSET " + " ".join(f"{value:.6f}" for value in way)

    def joint(bone):
        name, parent, head, tail = skeleton[bone]
        turn = turns[bone]
        if parent:
            way = head - skeleton[parent][2]
            lines.extend([f"JOINT {name}", "{", offset(parent, way)])
            lines.append(f"CHANNELS 3 {angles}")
            turn = np.swapaxes(turns[parent], 1, 2) @ turn
        else:
            lines.extend([f"ROOT {name}", "{", "OFFSET 0 0 0"])
            lines.append(f"CHANNELS 6 Xposition Yposition Zposition {angles}")
        turn = Rotation.from_matrix(axes @ turn @ axes.T)
        columns.append(turn.as_euler(rig.order, degrees=True))
        for child in children.get(bone, ()):
            joint(child)
        if bone not in children:
            lines.extend(["End Site", "{", offset(bone, tail - head), "}"])
        lines.append("}")

    joint(BONES[0])
    lines += ["MOTION", f"Frames: {len(hips)}", f"Frame Time: {1 / fps:.8f}"]
    lines += [" ".join(f"{value:.6f}" for value in row) for row in np.hstack(columns)]
    return "\n".join(lines) + "\n"


def _rest(rig):
    """{bone: its turn from the character's rest pose to the rig's}."""
    if not rig.tpose:
        return {}
    rest = {}
    for side, sign in (("Left", 1), ("Right", -1)):
        arms, legs = rotation_about(1, -sign * np.pi / 2), rotation_about(1, -sign * 0.3)
        rest |= {f"{side}{bone}": arms for bone in ("Arm", "ForeArm", "Hand")}
        rest |= {f"{side}{bone}": legs for bone in ("UpLeg", "Leg")}
    return rest

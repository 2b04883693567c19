# SPDX-License-Identifier: GPL-3.0-or-later
"""Make presets/example/hello.json: a captured clip on the bones of the example's character.

    python packaging/example_clip.py path/to/wave.bvh path/to/licence.txt

The clip is wave_hello of AnimatedDrawings (MIT licence): Z up, inches, T-pose at rest. Turns of its
bones go over as they are; the way of the hips in the measure of the legs.
"""

import json
import sys
from pathlib import Path

import bpy
import numpy as np

from poise.addon.example import character, figure
from poise.controller.geometry.rotations import (
    quaternion_from_matrix,
    rotation_about,
    rotation_vector,
)

TARGET = Path(__file__).resolve().parent.parent / "presets" / "example" / "hello.json"
FPS, START, END = 24, 0.45, 3.95  # [Hz], [s] of the clip: its start is a calibration pose
INCH = 0.0254
#: The clip turns to +Y, from a rest pose that faces -Y as the character does.
ABOUT = np.diag([-1.0, -1.0, 1.0])
#: Bones of the clip whose turns others take.
_TAKEN = {"Spine": "Spine1", "Spine1": "Spine3"}


def main(clip, licence):
    """Write the file."""
    armature = figure.build_armature("character", character.bones())
    names = list(armature.data.bones.keys())
    bpy.ops.import_anim.bvh(filepath=clip, global_scale=INCH, axis_up="Z", axis_forward="Y")
    source = bpy.context.object
    rate = 1 / float(_line(clip, "Frame Time:"))
    hanging = {
        f"{side}{part}": rotation_about(1, -sign * np.pi / 2)
        for side, sign in (("Left", 1), ("Right", -1))
        for part in ("Arm", "ForeArm", "Hand")
    }
    leg = _head(source, "LeftUpLeg")[2] - _head(source, "LeftFoot")[2]
    size = (character.LEGS - character.ANKLE) / leg
    turns, hips = [], []
    for time in np.arange(START, END, 1 / FPS):
        frame = 1 + time * rate
        bpy.context.scene.frame_set(int(frame), subframe=frame % 1)
        row = {name: ABOUT @ _turn(source, _TAKEN.get(name, name)) for name in names}
        row |= {name: row[name] @ turn for name, turn in hanging.items()}
        turns.append(
            np.concatenate([rotation_vector(quaternion_from_matrix(row[name])) for name in names])
        )
        above = row["Hips"] @ (0, 0, character.PELVIS - character.LEGS)
        way = ABOUT @ (_middle(source, "UpLeg") - _middle(source, "Foot"))
        hips.append(way * size + above)
    hips = np.array(hips) - np.mean(hips, 0) * (1, 1, 0)
    content = {
        "name": "Hello (captured)",
        "source": "wave_hello of AnimatedDrawings, on other bones and at another frame rate",
        "licence": Path(licence).read_text(encoding="utf-8").strip(),
        "fps": FPS,
        "units": {"hips": "mm", "turns": "0.1 mrad, rotation vectors from rest"},
        "bones": names,
        "hips": np.round(1000 * hips + (0, 0, 1000 * character.ANKLE)).astype(int).tolist(),
        "turns": np.round(1e4 * np.array(turns)).astype(int).tolist(),
    }
    TARGET.write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")


def _line(clip, start):
    text = Path(clip).read_text(encoding="utf-8")
    return next(line for line in text.splitlines() if line.startswith(start)).split()[-1]


def _head(source, name):
    return np.array(source.data.bones[name].head_local)


def _middle(source, name):
    """Between the heads of the left and the right bone of a pair."""
    pair = [source.pose.bones[f"{side}{name}"].head for side in ("Left", "Right")]
    return np.mean(np.array(pair), 0)


def _turn(source, name):
    """(3, 3) turn of a bone from its rest, in the armature's space."""
    bone = source.pose.bones[name]
    return np.array((bone.matrix @ bone.bone.matrix_local.inverted()).to_3x3())


if __name__ == "__main__":
    main(*sys.argv[1:])

# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of the biped: body segments, landmarks, and how they hang together.

These names are the only vocabulary that crosses from Blender to the physics.
"""

SIDES = ("l", "r")
#: What they are called in words.
SIDE_WORDS = {"l": "left", "r": "right"}

#: Simulated body segments, parents before children.
SEGMENTS = (
    "pelvis",
    "trunk",
    "head",
    "upper_arm_l",
    "forearm_l",
    "upper_arm_r",
    "forearm_r",
    "thigh_l",
    "shin_l",
    "foot_l",
    "thigh_r",
    "shin_r",
    "foot_r",
    # Last, so that all degrees of freedom before them keep their numbers.
    "toe_l",
    "toe_r",
)

#: Parent of each segment; the pelvis is the free root. A forearm includes its hand, the
#: trunk both clavicles: those keep their local animation in the bake.
PARENTS = {
    "trunk": "pelvis",
    "head": "trunk",
    "upper_arm_l": "trunk",
    "forearm_l": "upper_arm_l",
    "upper_arm_r": "trunk",
    "forearm_r": "upper_arm_r",
    "thigh_l": "pelvis",
    "shin_l": "thigh_l",
    "foot_l": "shin_l",
    "thigh_r": "pelvis",
    "shin_r": "thigh_r",
    "foot_r": "shin_r",
    "toe_l": "foot_l",
    "toe_r": "foot_r",
}

#: Points that are read from the animation, one world position each per sample.
LANDMARKS = (
    "pelvis",
    "lumbar",
    "neck",
    "head_top",
    "shoulder_l",
    "elbow_l",
    "wrist_l",
    "fingertip_l",
    "shoulder_r",
    "elbow_r",
    "wrist_r",
    "fingertip_r",
    "hip_l",
    "knee_l",
    "ankle_l",
    "ball_l",
    "toe_l",
    "hip_r",
    "knee_r",
    "ankle_r",
    "ball_r",
    "toe_r",
)

#: Landmarks that a rig need not have; their positions are then NaN in every sample.
OPTIONAL_LANDMARKS = tuple(
    name for name in LANDMARKS if name.split("_")[0] in ("head", "fingertip", "ball", "toe")
)

#: The landmark at which a segment turns about its parent.
JOINT_OF = {
    "pelvis": "pelvis",
    "trunk": "lumbar",
    "head": "neck",
    **{f"upper_arm_{s}": f"shoulder_{s}" for s in SIDES},
    **{f"forearm_{s}": f"elbow_{s}" for s in SIDES},
    **{f"thigh_{s}": f"hip_{s}" for s in SIDES},
    **{f"shin_{s}": f"knee_{s}" for s in SIDES},
    **{f"foot_{s}": f"ankle_{s}" for s in SIDES},
    **{f"toe_{s}": f"ball_{s}" for s in SIDES},
}

SEGMENT_INDEX = {name: i for i, name in enumerate(SEGMENTS)}
LANDMARK_INDEX = {name: i for i, name in enumerate(LANDMARKS)}

#: Numbers of the segments that meet the floor, left before right.
FEET = [SEGMENT_INDEX[f"foot_{s}"] for s in SIDES]
TOES = [SEGMENT_INDEX[f"toe_{s}"] for s in SIDES]


def joint_name(segment):
    """The joint at which a segment hangs, in words: "left elbow" of forearm_l."""
    base, _, side = segment.rpartition("_")
    names = {
        "trunk": "spine",
        "head": "neck",
        "upper_arm": "shoulder",
        "forearm": "elbow",
        "thigh": "hip",
        "shin": "knee",
        "foot": "ankle",
        "toe": "toes",
    }
    if segment in names:
        return names[segment]
    return f"{SIDE_WORDS[side]} {names[base]}"

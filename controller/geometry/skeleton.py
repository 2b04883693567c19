# SPDX-License-Identifier: GPL-3.0-or-later
"""The biped: its segments and landmarks, one entry each, and how they hang together.

These names are the only vocabulary that crosses from Blender to the physics. What all other rooms
know of single segments, they know from here; what a new one takes besides is in CONTRIBUTING.md.
"""

from dataclasses import dataclass, field, replace

SIDES = ("l", "r")
#: What they are called in words.
SIDE_WORDS = {"l": "left", "r": "right"}

#: A range of a degree of freedom that has none.
FREE = (-float("inf"), float("inf"))


@dataclass(frozen=True)
class Segment:
    """A simulated body segment; of a limb, on either side.

    name. parent: what it hangs on, empty of the root. joint: of its degrees of freedom, one word;
    landmark: where it turns; words: that joint, for people. ranges: {axis: (low, high) [rad]} of
    each degree of freedom, in the order in which it turns: anatomical, widened to what a clip does
    unless `rigid`. stiffness: its default [N m/rad] for the adult of `gains/gains.py`, and in
    endless walks. passive: stiffness [N m/rad] and damping [N m s/rad] of the joint of that adult
    where no muscle acts; relaxed: {axis: (low, high) [rad]} how far it then gives, where that is
    less than `ranges`. region: of the body, to which styles, physics weights and sliders belong;
    root: neither. group: with which its proportions are changed. mass: as a share of the body's;
    centre of mass from the joint and radii of gyration (sagittal, transverse, longitudinal) as
    shares of its length; that is a share of stature, or to the landmark `end`. thickness: radius
    for drawing and contact, as a share of stature. place: of the joint in the parent's frame, as
    shares of stature, where a rig has no landmark for it. minor: a rig need not have it, it then
    turns with its parent; and no figure of an animation counts it, as captures often have noise
    there.
    """

    name: str
    parent: str = ""
    joint: str = ""
    landmark: str = ""
    words: str = ""
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    rigid: bool = False
    stiffness: float = 0.0
    walking_stiffness: float = 0.0
    passive: tuple[float, float] = (1.0, 1.0)
    relaxed: dict[str, tuple[float, float]] = field(default_factory=dict)
    region: str = "root"
    group: str = ""
    mass: float = 0.0
    centre: float = 0.0
    gyration: tuple[float, float, float] = (0.0, 0.0, 0.0)
    length: float = 0.0
    end: str = ""
    thickness: float = 0.0
    place: tuple[float, float, float] = (0.0, 0.0, 0.0)
    minor: bool = False


_ONCE = ("",)

#: The segments, limb by limb, parents before children, and the sides that have such a limb. In this
#: order their degrees of freedom are numbered: new limbs come last. Masses, centres, radii and
#: lengths have their source in `body/anthropometry.py`, gains in `gains/gains.py`, what is
#: passive in `falls/compliance.py`. Ranges are what people reach, in round numbers, wide enough for
#: the captured clips; shoulders have none, as their axes are chosen per clip. Thicknesses are by
#: eye.
_LIMBS: tuple[tuple[tuple[str, ...], tuple[Segment, ...]], ...] = (
    (
        _ONCE,
        (
            Segment(
                "pelvis",
                landmark="pelvis",
                mass=0.1117,
                gyration=(0.615, 0.551, 0.587),
                length=0.084,
            ),
            Segment(
                "trunk",
                parent="pelvis",
                joint="spine",
                landmark="lumbar",
                words="spine",
                ranges={"pitch": (-0.9, 1.6), "roll": (-0.9, 0.9), "twist": (-1.2, 1.2)},
                stiffness=1000.0,
                walking_stiffness=550.0,
                passive=(20.0, 6.0),
                relaxed={"pitch": (-0.52, 1.31), "roll": (-0.61, 0.61), "twist": (-0.79, 0.79)},
                region="trunk",
                mass=0.3229,
                centre=0.46,
                gyration=(0.372, 0.347, 0.263),
                length=0.222,
            ),
            Segment(
                "head",
                parent="trunk",
                joint="neck",
                landmark="neck",
                words="neck",
                ranges={"pitch": (-1.2, 1.2), "roll": (-0.9, 0.9), "twist": (-1.5, 1.5)},
                stiffness=100.0,
                walking_stiffness=100.0,
                passive=(4.0, 1.0),
                relaxed={"pitch": (-1.05, 0.87), "roll": (-0.79, 0.79), "twist": (-1.4, 1.4)},
                region="neck",
                mass=0.0694,
                centre=0.50,
                gyration=(0.303, 0.315, 0.261),
                length=0.140,
                thickness=0.06,
            ),
        ),
    ),
    (
        SIDES,
        (
            Segment(
                "upper_arm",
                parent="trunk",
                joint="shoulder",
                landmark="shoulder",
                words="shoulder",
                ranges={"pitch": FREE, "roll": FREE, "twist": FREE},
                stiffness=300.0,
                walking_stiffness=300.0,
                passive=(1.0, 1.0),
                region="arms",
                mass=0.0271,
                centre=0.5772,
                gyration=(0.285, 0.269, 0.158),
                end="elbow",
                thickness=0.026,
            ),
            Segment(
                "forearm",
                parent="upper_arm",
                joint="elbow",
                landmark="elbow",
                words="elbow",
                ranges={"pitch": (-2.7, 0.0)},
                stiffness=150.0,
                walking_stiffness=150.0,
                passive=(0.5, 0.4),
                relaxed={"pitch": (-2.53, 0.0)},
                region="arms",
                mass=0.0162,
                centre=0.4574,
                gyration=(0.276, 0.265, 0.121),
                end="wrist",
                thickness=0.022,
            ),
        ),
    ),
    (
        SIDES,
        (
            Segment(
                "thigh",
                parent="pelvis",
                joint="hip",
                landmark="hip",
                words="hip",
                ranges={"pitch": (-2.4, 0.8), "roll": (-1.4, 1.4), "twist": (-1.2, 1.2)},
                stiffness=500.0,
                walking_stiffness=330.0,
                passive=(6.0, 3.0),
                relaxed={"pitch": (-2.09, 0.35), "roll": (-0.79, 0.79), "twist": (-0.79, 0.79)},
                region="legs",
                mass=0.1416,
                centre=0.4095,
                gyration=(0.329, 0.329, 0.149),
                end="knee",
                thickness=0.042,
            ),
            Segment(
                "shin",
                parent="thigh",
                joint="knee",
                landmark="knee",
                words="knee",
                ranges={"pitch": (0.0, 2.7)},
                stiffness=500.0,
                walking_stiffness=310.0,
                passive=(1.0, 0.8),
                relaxed={"pitch": (0.0, 2.44)},
                region="legs",
                mass=0.0433,
                centre=0.4459,
                gyration=(0.255, 0.249, 0.103),
                end="ankle",
                thickness=0.030,
            ),
            Segment(
                "foot",
                parent="shin",
                joint="ankle",
                landmark="ankle",
                words="ankle",
                ranges={"pitch": (-0.9, 1.0), "roll": (-0.6, 0.6), "twist": (-0.8, 0.8)},
                stiffness=400.0,
                walking_stiffness=220.0,
                passive=(4.0, 0.6),
                relaxed={"pitch": (-0.61, 0.87), "roll": (-0.44, 0.44), "twist": (-0.44, 0.44)},
                region="feet",
                mass=0.0137,
                centre=0.4415,
                gyration=(0.257, 0.245, 0.124),
            ),
        ),
    ),
    (
        SIDES,
        (
            # Toes bend up by 60 degrees and hardly down, whatever the clip does: a foot that
            # presses stands on them. Their mass is part of the foot's.
            Segment(
                "toe",
                parent="foot",
                joint="toe",
                landmark="ball",
                words="toes",
                ranges={"pitch": (-1.05, 0.05)},
                rigid=True,
                stiffness=25.0,
                walking_stiffness=25.0,
                passive=(4.0, 0.2),
                region="feet",
                group="foot",
                minor=True,
            ),
        ),
    ),
)


@dataclass(frozen=True)
class Landmark:
    """A point that is read from the animation, one world position per sample; of a limb, on either
    side.

    before: the landmark nearer to the pelvis from which it is reached, by way of a segment. part:
    what of that segment's proportions the way goes with: its "length" alone, "both" length and
    girth, or its "size" as a whole. carrier: the segment that it moves with, empty for that one.
    optional: a rig need not have it; it is NaN then in every sample.
    """

    name: str
    before: str = ""
    segment: str = ""
    part: str = ""
    carrier: str = ""
    optional: bool = False


#: The landmarks, in their order.
_LANDMARKS: tuple[tuple[tuple[str, ...], tuple[Landmark, ...]], ...] = (
    (
        _ONCE,
        (
            Landmark("pelvis"),
            Landmark("lumbar", "pelvis", "pelvis", "length"),
            Landmark("neck", "lumbar", "trunk", "length"),
            Landmark("head_top", "neck", "head", "both", optional=True),
        ),
    ),
    (
        SIDES,
        (
            Landmark("shoulder", "neck", "trunk", "both"),
            Landmark("elbow", "shoulder", "upper_arm", "length"),
            Landmark("wrist", "elbow", "forearm", "length"),
            Landmark("fingertip", "wrist", "forearm", "size", optional=True),
        ),
    ),
    (
        SIDES,
        (
            Landmark("hip", "pelvis", "pelvis", "both"),
            Landmark("knee", "hip", "thigh", "length"),
            Landmark("ankle", "knee", "shin", "length"),
            Landmark("ball", "ankle", "foot", "both", optional=True),
            Landmark("toe", "ankle", "foot", "both", carrier="toe", optional=True),
        ),
    ),
)


def _sided(name: str, side: str, paired: set[str]) -> str:
    return f"{name}_{side}" if side and name in paired else name


_PAIRED = {entry.name for sides, limb in _LIMBS if sides == SIDES for entry in limb}
_PAIRED_POINTS = {point.name for sides, limb in _LANDMARKS if sides == SIDES for point in limb}

#: The entry of each segment, with its neighbours on its own side.
ENTRIES = {
    _sided(entry.name, side, _PAIRED): replace(
        entry,
        parent=_sided(entry.parent, side, _PAIRED),
        landmark=_sided(entry.landmark, side, _PAIRED_POINTS),
        end=_sided(entry.end, side, _PAIRED_POINTS),
    )
    for sides, limb in _LIMBS
    for side in sides
    for entry in limb
}

#: The entry of each landmark, with its neighbours on its own side.
POINTS = {
    _sided(point.name, side, _PAIRED_POINTS): replace(
        point,
        before=_sided(point.before, side, _PAIRED_POINTS),
        segment=_sided(point.segment, side, _PAIRED),
        carrier=_sided(point.carrier or point.segment, side, _PAIRED),
    )
    for sides, limb in _LANDMARKS
    for side in sides
    for point in limb
}

SEGMENTS = tuple(ENTRIES)
LANDMARKS = tuple(POINTS)
#: Parent of each segment; the pelvis is the free root. A forearm includes its hand, the
#: trunk both clavicles: those keep their local animation in the bake.
PARENTS = {name: entry.parent for name, entry in ENTRIES.items() if entry.parent}
#: The landmark at which a segment turns about its parent.
JOINT_OF = {name: entry.landmark for name, entry in ENTRIES.items()}
OPTIONAL_LANDMARKS = tuple(name for name, point in POINTS.items() if point.optional)

SEGMENT_INDEX = {name: i for i, name in enumerate(SEGMENTS)}
LANDMARK_INDEX = {name: i for i, name in enumerate(LANDMARKS)}

#: Numbers of the segments that meet the floor, left before right.
FEET = [SEGMENT_INDEX[f"foot_{s}"] for s in SIDES]
TOES = [SEGMENT_INDEX[f"toe_{s}"] for s in SIDES]
#: Those that no figure of an animation counts.
MINOR = [SEGMENT_INDEX[name] for name, entry in ENTRIES.items() if entry.minor]

#: One entry for both sides, by the name of the segment and by that of its joint.
PARTS = {entry.name: entry for _, limb in _LIMBS for entry in limb}
JOINTS = {entry.joint: entry for entry in PARTS.values() if entry.joint}
#: Degrees of freedom, left and right as one, in their order.
UNMIRRORED_DOFS = tuple(f"{name}_{axis}" for name, entry in JOINTS.items() for axis in entry.ranges)


def hanging_on(top: str) -> list[int]:
    """Numbers of that segment and of all that hang on it."""
    names = {top}
    for segment in SEGMENTS:  # parents before children
        if PARENTS.get(segment) in names:
            names.add(segment)
    return sorted(SEGMENT_INDEX[name] for name in names)


def joint_of_dof(dof: str) -> Segment:
    """The entry whose joint a degree of freedom, such as hip_l_pitch or hip_pitch, is of."""
    return JOINTS[dof.partition("_")[0]]


def joint_name(segment: str) -> str:
    """The joint at which a segment hangs, in words: "left elbow" of forearm_l."""
    return _with_side(segment, ENTRIES[segment].words)


def segment_name(segment: str) -> str:
    """A segment in words: "left upper arm" of upper_arm_l."""
    return _with_side(segment, ENTRIES[segment].name.replace("_", " "))


def _with_side(segment: str, words: str) -> str:
    side = segment.rpartition("_")[2]
    return f"{SIDE_WORDS[side]} {words}" if side in SIDES else words

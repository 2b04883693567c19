# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of segments: what whoever adds an entry must keep to."""

from poise.controller.geometry.skeleton import (
    ENTRIES,
    JOINT_OF,
    JOINTS,
    PARENTS,
    PARTS,
    POINTS,
    SEGMENTS,
    UNMIRRORED_DOFS,
    joint_name,
    segment_name,
)


def test_all_hangs_together():
    for name, entry in ENTRIES.items():
        assert entry.landmark in POINTS and (not entry.end or entry.end in POINTS)
        assert bool(entry.length) + bool(entry.end) <= 1, "a length is measured, or a share"
        if name == "pelvis":
            continue
        assert SEGMENTS.index(PARENTS[name]) < SEGMENTS.index(name), "parents before children"
        assert entry.joint.isalpha() and entry.words and entry.ranges
        assert entry.stiffness > 0 and entry.walking_stiffness > 0 and entry.region != "root"
        assert all(low < high for low, high in entry.ranges.values())
        assert POINTS[JOINT_OF[name]].optional is entry.minor, "a rig may lack what is minor alone"
    for entry in PARTS.values():
        assert not entry.group or not PARTS[entry.group].group
    before = set()
    for name, point in POINTS.items():
        assert name == "pelvis" or (point.before in before and point.segment in ENTRIES)
        before.add(name)


def test_degrees_of_freedom_keep_their_order():
    """All that is kept by number, as correction nodes and results, counts on it."""
    first = "spine neck shoulder elbow hip knee ankle toe".split()
    assert list(JOINTS)[: len(first)] == first
    assert UNMIRRORED_DOFS[:3] == ("spine_pitch", "spine_roll", "spine_twist")
    assert len(UNMIRRORED_DOFS) == sum(len(entry.ranges) for entry in PARTS.values())


def test_what_people_read():
    assert joint_name("forearm_l") == "left elbow" and joint_name("toe_r") == "right toes"
    assert joint_name("trunk") == "spine"
    assert segment_name("upper_arm_r") == "right upper arm" and segment_name("head") == "head"

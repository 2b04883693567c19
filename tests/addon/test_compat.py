# SPDX-License-Identifier: GPL-3.0-or-later
import math

import bpy
import pytest

from poise.addon.blender import compat


@pytest.fixture
def thing():
    thing = bpy.data.objects.new("thing", None)
    bpy.context.collection.objects.link(thing)
    return thing


def test_an_action_and_its_slot_are_assigned_together(thing):
    action, slot = compat.new_action("walk")
    compat.assign(thing, action, slot)
    assert compat.assigned(thing) == (action, slot)
    compat.assign(thing, None)
    assert compat.assigned(thing) == (None, None)
    # Blender alone would choose a slot again, or none.
    compat.assign(thing, action, slot)
    assert compat.assigned(thing) == (action, slot)


def test_nothing_is_made_to_assign_no_action(thing):
    compat.assign(thing, None)
    assert thing.animation_data is None
    assert compat.assigned(thing) == (None, None)


def test_a_curve_is_made_in_its_group_and_animates(thing):
    action, slot = compat.new_action("walk")
    holder = compat.channels(action, slot, ensure=True)
    curve = compat.new_curve(holder, "location", 1, "Object Transforms")
    curve.keyframe_points.insert(1, 2.5)
    compat.assign(thing, action, slot)
    bpy.context.scene.frame_set(1)
    assert thing.location.y == 2.5
    assert curve.group.name == "Object Transforms"
    assert [(c.data_path, c.array_index) for c in compat.curves(action, slot)] == [("location", 1)]


def test_channels_are_made_only_when_asked():
    action, slot = compat.new_action("walk")
    if compat.HAS_SLOTS:
        assert compat.channels(action, slot) is None
        assert compat.channels(action, None) is None
    assert compat.curves(action, slot) == []
    assert compat.curves(None, None) == []


def test_a_slot_is_found_by_its_identifier():
    action, slot = compat.new_action("walk")
    if not compat.HAS_SLOTS:
        assert slot is None and compat.slot_name(slot) is None
        return
    other = compat.new_slot(action, "other")
    assert compat.find_slot(action, compat.slot_name(other)) == other
    assert compat.find_slot(action, "OBnobody") is None
    compat.keep_only(action, other)
    assert list(action.slots) == [other]


def test_the_slot_of_an_object_is_the_one_it_had(thing):
    if not compat.HAS_SLOTS:
        pytest.skip("actions have no slots before Blender 4.4")
    action, slot = compat.new_action("walk")
    other = compat.new_slot(action, "other")
    assert compat.object_slot(action, thing) == slot
    compat.assign(thing, action, other)
    compat.assign(thing, None)
    assert compat.object_slot(action, thing) == other


def test_a_copied_curve_is_the_same(thing):
    action, slot = compat.new_action("walk")
    curve = compat.new_curve(compat.channels(action, slot, ensure=True), "location", 2, "here")
    for frame, value in ((1, 0.0), (5, 3.0), (9, -1.0)):
        curve.keyframe_points.insert(frame, value)
    curve.keyframe_points[1].interpolation = "BOUNCE"
    curve.keyframe_points[0].handle_right_type = "FREE"
    curve.keyframe_points[0].handle_right = (2.0, 4.0)
    curve.modifiers.new("NOISE").strength = 0.7
    curve.extrapolation = "LINEAR"
    curve.mute = True
    target, target_slot = compat.new_action("copy")
    copy = compat.copy_curve(curve, compat.channels(target, target_slot, ensure=True))
    frames = [0.5 * i for i in range(30)]
    assert [copy.evaluate(f) for f in frames] == [curve.evaluate(f) for f in frames]
    assert (copy.data_path, copy.array_index, copy.group.name) == ("location", 2, "here")
    assert (copy.mute, copy.extrapolation) == (True, "LINEAR")
    assert copy.modifiers[0].strength == curve.modifiers[0].strength


def test_keys_are_copied_with_all_that_they_have(thing):
    action, slot = compat.new_action("walk")
    holder = compat.channels(action, slot, ensure=True)
    curve, copy = (compat.new_curve(holder, "location", i) for i in range(2))
    points = curve.keyframe_points
    points.add(6)
    for i, (point, kind) in enumerate(zip(points, _HANDLES * 2, strict=False)):
        point.co = 2.5 * i, math.sin(i)
        point.handle_left_type, point.handle_right_type = kind, _HANDLES[-i]
        point.handle_left, point.handle_right = (2.5 * i - 0.7, -i), (2.5 * i + 0.3, i)
        point.interpolation, point.easing = ("ELASTIC", "BACK")[i % 2], "EASE_IN_OUT"
        point.amplitude, point.period, point.back = i, 0.1 * i, 0.2 * i
        point.select_control_point, point.type = bool(i % 2), "EXTREME"
    compat._copy_keys(points, copy.keyframe_points)
    assert [_of_key(key) for key in copy.keyframe_points] == [_of_key(key) for key in points]


#: All kinds of handles.
_HANDLES = ("FREE", "ALIGNED", "VECTOR", "AUTO", "AUTO_CLAMPED")


def _of_key(key):
    """All plain values of a key."""
    kinds = {prop.identifier: prop.type for prop in key.bl_rna.properties}
    values = {name: getattr(key, name) for name, kind in kinds.items() if kind != "POINTER"}
    return {name: tuple(one) if hasattr(one, "__len__") else one for name, one in values.items()}

# SPDX-License-Identifier: GPL-3.0-or-later
"""The arrow of a push: angles and back exactly, and where it stands."""

from math import pi, radians
from types import SimpleNamespace

import bpy
import numpy as np
import pytest

from poise import addon
from poise.addon.window import push_gizmo
from poise.addon.window.push_gizmo import arrow, force_of, near, place, snapped


@pytest.fixture
def scene(biped):
    """A scene of the biped with Poise and one push."""
    addon.register()
    scene = bpy.context.scene
    scene.poise.pushes.items.add()
    yield scene
    addon.unregister()


def _context(**changed):
    """A 3D view of the scene."""
    context = {
        "scene": bpy.context.scene,
        "active_object": bpy.context.active_object,
        "space_data": SimpleNamespace(overlay=SimpleNamespace(show_overlays=True)),
    }
    return SimpleNamespace(**{**context, **changed})


@pytest.mark.parametrize("azimuth", [-3.1, -pi / 2, 0.0, 0.3, 2.0, pi, 9.0])
@pytest.mark.parametrize("elevation", [-1.5, -0.4, 0.0, 1.2])
@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_an_arrow_gives_its_force_back(azimuth, elevation, scale):
    force = 137.0, azimuth, elevation
    assert force_of(arrow(*force, scale), force, scale) == pytest.approx(force, abs=1e-12)


def test_an_arrow_has_its_length_and_direction():
    assert arrow(100.0, pi / 2, 0.0, 0.01) == pytest.approx([0.0, 50.0, 0.0], abs=1e-12)
    assert arrow(200.0, 0.7, pi / 2, 1.0) == pytest.approx([0.0, 0.0, 1.0], abs=1e-12)


def test_what_an_arrow_does_not_tell_stays():
    before = 50.0, 0.4, -0.2
    assert force_of((0.0, 0.0, 0.0), before, 1.0) == (0.0, 0.4, -0.2)
    assert force_of((0.0, 0.0, -0.5), before, 1.0) == pytest.approx((100.0, 0.4, -pi / 2))


def test_angles_go_on_after_a_full_turn():
    assert near(-3.0, 3.2) == pytest.approx(2 * pi - 3.0)
    assert near(0.5, 0.4) == 0.5


def test_snapped_to_whole_steps():
    force = snapped((137.0, radians(44.0), radians(-2.0)))
    assert force == pytest.approx((140.0, radians(45.0), 0.0))


def test_the_arrow_stands_at_the_pushed_part(scene, biped):
    push = scene.poise.pushes.items[0]
    biped.location = 3.0, 0.0, 0.0
    biped.data.pose_position = "REST"
    bpy.context.view_layer.update()
    push.part, push.bone = "BONE", "shin.L"
    base, scale = place(_context(), push)
    assert tuple(base) == pytest.approx((3.1, -0.01, 0.3), abs=1e-6)
    assert scale == 1.0
    push.bone = "tail"
    assert place(_context(), push) is None


def test_the_part_is_found_by_the_names_of_the_bones(scene, biped, biped_map, monkeypatch):
    monkeypatch.setattr(push_gizmo, "known_map", lambda *_: (biped_map, ""))
    biped.data.pose_position = "REST"
    bpy.context.view_layer.update()
    base, _ = place(_context(), scene.poise.pushes.items[0])
    assert tuple(base) == pytest.approx((0.0, 0.0, (1.125 + 1.325) / 2), abs=1e-6)
    monkeypatch.setattr(push_gizmo, "known_map", lambda *_: (None, ""))
    assert place(_context(), scene.poise.pushes.items[0]) is None


def test_the_scale_of_the_scene_counts(scene):
    scene.unit_settings.scale_length = 0.01
    push = scene.poise.pushes.items[0]
    push.part, push.bone = "BONE", "hips"
    assert place(_context(), push)[1] == pytest.approx(0.01)


def test_shown_only_for_a_used_arrow(scene, monkeypatch):
    push = scene.poise.pushes.items[0]
    push.part, push.bone = "BONE", "hips"
    assert push_gizmo.POISE_GGT_push.poll(_context())
    push.kind = "EMPTY"
    assert not push_gizmo.POISE_GGT_push.poll(_context())
    push.kind, push.use = "VECTOR", False
    assert not push_gizmo.POISE_GGT_push.poll(_context())
    push.use = True
    hidden = SimpleNamespace(overlay=SimpleNamespace(show_overlays=False))
    assert not push_gizmo.POISE_GGT_push.poll(_context(space_data=hidden))
    monkeypatch.setattr(push_gizmo.session, "job", lambda: object())
    assert not push_gizmo.POISE_GGT_push.poll(_context())


def test_registered_and_gone_again(scene):
    assert bpy.types.GizmoGroup.bl_rna_get_subclass_py("POISE_GGT_push") is not None
    assert hasattr(bpy.types, "POISE_OT_drag_push")
    with pytest.raises(RuntimeError, match="There is no arrow"):
        bpy.ops.poise.drag_push()
    addon.unregister()
    assert bpy.types.GizmoGroup.bl_rna_get_subclass_py("POISE_GGT_push") is None
    addon.register()


def test_a_turned_profile_lies_at_its_radius_and_height():
    points = np.array(push_gizmo.lathe(((2.0, 0.0), (1.0, 3.0)), 8))
    assert points.shape == (48, 3)
    radii = np.hypot(points[:, 0], points[:, 1])
    assert radii == pytest.approx(2.0 - points[:, 2] / 3.0)
    assert set(points[:, 2]) == {0.0, 3.0}

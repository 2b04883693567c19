# SPDX-License-Identifier: GPL-3.0-or-later
"""What a thread does while the window is used: nothing in it reaches for Blender's data."""

import sys

import bpy
import pytest

from poise.addon.blender import compat
from poise.addon.scene import objects
from poise.addon.settings import method
from poise.addon.shots import clean_up
from poise.addon.shots.clean_up import CleanShot, CleanShotOptions
from poise.addon.shots.shot import ArmatureShot, Shot, ShotOptions
from poise.controller.body.morphology import Morphology


class _Barred:
    """Stands in for `bpy`: whatever is asked of it is an error."""

    def __getattr__(self, name):
        raise AssertionError(f"a thread reached for bpy.{name}")


@pytest.fixture
def barred(monkeypatch):
    """barred() -> from now on no module of the extension gets at Blender."""

    def bar():
        for name, module in list(sys.modules.items()):
            if name.startswith("poise.addon") and getattr(module, "bpy", None) is bpy:
                monkeypatch.setattr(module, "bpy", _Barred())
        for name in ("scene", "armature"):
            monkeypatch.setattr(ArmatureShot, name, property(lambda shot: _Barred().data))

    return bar


def _read(shot):
    for _ in shot.read():
        pass
    return shot


@pytest.mark.parametrize("kind", ["plain", "weights", "body", "objects"])
def test_a_shot_that_was_read_needs_blender_no_more(registered, import_clip, barred, kind):
    armature = import_clip("wave")
    options = ShotOptions(armature=armature.name, frames=(1, 60))
    if kind == "weights":  # a driver: Blender evaluates it frame by frame
        curve = armature.data.driver_add("poise_weights.neck")
        curve.driver.expression = "0.5"
    if kind == "body":
        options = ShotOptions(
            armature=armature.name, frames=(1, 60), morphology=Morphology({"thigh": (1.1, 1, 1)})
        )
    if kind == "objects":
        bpy.ops.mesh.primitive_cube_add(size=0.2, location=(0, 3, 2))
        bpy.context.object.poise.role = "COLLIDER"
    shot = _read(Shot(bpy.context.scene, options))
    barred()
    shot.prepare()
    assert bool(shot.simulation.weights) == (kind == "weights")
    assert bool(shot.objects.get("colliders")) == (kind == "objects")
    shot.check()
    shot.simulation.run()
    assert shot.judge().judged
    shot.decide(method.choose(shot))
    retry = shot.choice.retry
    assert method.look_back(shot) == "" or retry
    method.take_better(shot)
    assert shot.choice.method == "balance", "nothing else was done"


def test_a_bake_that_was_read_back_needs_blender_no_more(registered, import_clip, barred):
    armature = import_clip("wave")
    shot = _read(Shot(bpy.context.scene, ShotOptions(armature=armature.name, frames=(1, 60))))
    for _ in shot.simulate():
        pass
    shot.bake()
    for _ in shot.read_back():
        pass
    barred()
    shot.compare()
    assert shot.measures


def test_a_clean_up_that_was_read_needs_blender_no_more(registered, import_clip, barred):
    armature = import_clip("wave")
    shot = _read(CleanShot(bpy.context.scene, CleanShotOptions(armature=armature.name)))
    barred()
    shot.find()
    shot.solve()
    assert shot.verdict.keeper
    plan = shot.plan.deleted("left", "heel", 0)
    shot.update(plan)
    assert shot.plan is plan


def test_the_bar_holds(registered, import_clip, barred):
    armature = import_clip("wave")
    shot = Shot(bpy.context.scene, ShotOptions(armature=armature.name))
    barred()
    with pytest.raises(AssertionError, match="a thread reached for bpy"):
        _read(shot)
    assert clean_up.bpy is not bpy and objects.bpy is not bpy and compat.bpy is not bpy

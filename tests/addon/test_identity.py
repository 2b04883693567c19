# SPDX-License-Identifier: GPL-3.0-or-later
"""Bakes and the objects that they are of, which are renamed, duplicated, appended and linked."""

import bpy
import pytest

from poise.addon.baking import bake, bake_objects
from poise.addon.blender import compat
from poise.addon.rigs import bake_target, identity, reference


@pytest.fixture
def baked(biped, biped_map, differences):
    """baked(armature, …) bakes its source, and shows the source again -> name of the bake."""
    scene = bpy.context.scene

    def make(armature=biped, **options):
        action = bpy.data.actions["walk"]
        compat.assign(armature, action, compat.object_slot(action, armature))
        reading = reference.read(scene, armature, rig_map=biped_map)
        deltas = differences(len(reading.frames))
        result = bake.bake(scene, reading, *deltas, bake.BakeOptions(**options))
        bake.show(scene, armature, "source")
        return result.action

    make.armature = biped
    return make


def bakes(armature):
    return [action.name for action, _ in bake_target.bakes_of(armature)]


def duplicate(armature):
    """Another one that plays the same source."""
    copy = armature.copy()
    bpy.context.scene.collection.objects.link(copy)
    return copy


def test_a_renamed_armature_keeps_its_bakes(baked):
    armature = baked.armature
    name = baked()
    armature.name = "Hero"
    assert bakes(armature) == [name] and bake_target.has_bakes(armature)
    assert baked() == name, "in place of the old one"
    assert bakes(armature) == [name]
    bake.show(bpy.context.scene, armature, "baked")
    assert compat.assigned(armature)[0].name == name
    taker = duplicate(armature)
    del taker[identity.PROPERTY]
    taker.name = "biped"
    assert bakes(armature) == [name] and not bakes(taker)


def test_names_may_be_swapped(baked):
    first = baked.armature
    second = duplicate(first)
    names = {thing: baked(thing) for thing in (first, second)}
    first.name, second.name = "x", "biped"
    first.name = "biped.001"
    assert {thing: bakes(thing) for thing in names} == {t: [n] for t, n in names.items()}
    assert {thing: baked(thing) for thing in (first, second)} == names


@pytest.mark.parametrize("renamed", [False, True])
def test_a_duplicate_has_bakes_of_its_own(baked, renamed):
    armature = baked.armature
    first = baked()
    if renamed:
        armature.name = "Hero"
    copy = duplicate(armature)
    copy.name = "Anna"
    assert copy[identity.PROPERTY] == armature[identity.PROPERTY]
    assert (bakes(armature), bakes(copy)) == ([first], [])
    second = baked(copy)
    assert second != first
    assert (bakes(armature), bakes(copy)) == ([first], [second])
    assert (baked(armature), baked(copy)) == (first, second)
    assert copy[identity.PROPERTY] != armature[identity.PROPERTY]


def test_what_blender_duplicates_with_its_action_leaves_the_bake_alone(baked):
    armature, scene = baked.armature, bpy.context.scene
    name = baked()
    bake.show(scene, armature, "baked")
    bpy.ops.object.select_all(action="DESELECT")
    armature.select_set(True)
    bpy.ops.object.duplicate()
    copy = bpy.context.object
    copied = compat.assigned(copy)[0].name
    assert copy != armature and copied not in ("walk", name), "as the preferences have it"
    assert bake_target.current(copy) == compat.assigned(copy)
    assert baked() == name, "not beside the duplicate's"
    assert compat.assigned(copy)[0].name == copied


def test_what_is_appended_keeps_its_bakes_beside_others_of_the_name(baked, tmp_path):
    name = baked()
    bake.show(bpy.context.scene, baked.armature, "baked")
    bpy.data.libraries.write(str(tmp_path / "hero.blend"), {baked.armature})
    text = baked.armature[identity.PROPERTY]
    del baked.armature[identity.PROPERTY]
    bake.remove(bpy.context.scene, baked.armature, bake_target.current(baked.armature))
    assert baked() == name, "here, too"
    with bpy.data.libraries.load(str(tmp_path / "hero.blend")) as (_, appended):
        appended.objects = ["biped"]
    hero = appended.objects[0]
    bpy.context.scene.collection.objects.link(hero)
    assert (hero.name, hero[identity.PROPERTY]) == ("biped.001", text)
    assert bakes(hero) == [compat.assigned(hero)[0].name] != bakes(baked.armature) == [name]
    hero.name = "Hero"
    assert bakes(hero) == [compat.assigned(hero)[0].name]


def test_undo_takes_the_identity_with_the_bake(baked):
    bpy.ops.ed.undo_push(message="Before")
    baked()
    bpy.ops.ed.undo_push(message="Bake")
    bpy.data.objects["biped"].name = "Hero"
    bpy.ops.ed.undo_push(message="Rename")
    bpy.ops.ed.undo()
    assert bakes(bpy.data.objects["biped"]) == ["walk Poise"]
    bpy.ops.ed.undo()
    assert not bakes(bpy.data.objects["biped"])
    assert identity.PROPERTY not in bpy.data.objects["biped"]
    bpy.ops.ed.redo()
    bpy.ops.ed.redo()
    assert bakes(bpy.data.objects["Hero"]) == ["walk Poise"]


def test_marks_of_earlier_versions_know_names(baked):
    armature = baked.armature
    name = baked()
    action = bpy.data.actions[name]
    action[bake_target.MARK]["0"]["armature"] = "biped"
    del armature[identity.PROPERTY]
    assert bakes(armature) == [name]
    copy = duplicate(armature)
    assert not bakes(copy)
    armature.name = "Hero"
    assert not bakes(armature) and not bakes(copy), "either may be the one"
    bpy.data.objects.remove(copy)
    assert bakes(armature) == [name], "as nothing else plays its source"
    assert baked() == name
    armature.name = "Anna"
    assert bakes(armature) == [name]


def test_library_overrides_keep_their_bakes_when_renamed(baked, tmp_path):
    bpy.data.libraries.write(str(tmp_path / "rig.blend"), {baked.armature})
    with bpy.data.libraries.load(str(tmp_path / "rig.blend"), link=True) as (_, linked):
        linked.objects = ["biped"]
    action = baked.armature.animation_data.action
    bpy.data.objects.remove(baked.armature)
    action.use_fake_user = True
    bpy.context.scene.collection.objects.link(linked.objects[0])
    override = linked.objects[0].override_create(remap_local_usages=True)
    override.override_library.is_system_override = False
    name = baked(override)
    override.name = "Hero"
    assert bakes(override) == [name] == [baked(override)]
    path = str(tmp_path / "shot.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.open_mainfile(filepath=path)
    assert bakes(bpy.data.objects["Hero", None]) == [name]
    bpy.data.objects["Hero", None].name = "Anna"
    assert bakes(bpy.data.objects["Anna", None]) == [name]


def test_spheres_stay_with_who_they_were_thrown_at(biped):
    scene = bpy.context.scene
    for number, text in enumerate((identity.of(biped), "biped")):
        sphere = bpy.data.objects.new(f"Sphere {number}", None)
        sphere[bake_objects.SPHERE] = text
        scene.collection.objects.link(sphere)
    copy = duplicate(biped)
    assert not bake_objects.spheres_of(scene, copy)
    assert len(bake_objects.spheres_of(scene, biped)) == 2, "those of earlier versions, too"
    biped.name = "Hero"
    assert [s.name for s in bake_objects.spheres_of(scene, biped)] == ["Sphere 0"]

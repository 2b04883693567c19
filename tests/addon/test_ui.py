# SPDX-License-Identifier: GPL-3.0-or-later
"""What all buttons, menus and settings have in common: names, reasons, icons, units, no keys."""

import ast
import re
from pathlib import Path
from types import SimpleNamespace

import bpy
import pytest

import poise
from poise.addon import operators
from poise.addon.blender import session
from poise.addon.sidebar import (
    clean_up_panel,
    overlay_panel,
    panels,
    rectify_panel,
    robustness_panel,
    tuning_panel,
)
from poise.addon.window import menus

pytestmark = pytest.mark.usefixtures("registered")

ADDON = Path(poise.__file__).parent / "addon"
#: Buttons of one name that mean one thing: end what is at work, with what there is or without.
SYNONYMS = {"Discard", "Stop and Keep", "Resume", "Rectify"}


def own_operators():
    """(name, RNA type) of all operators of Poise."""
    for name in dir(bpy.ops.poise):
        yield name, getattr(bpy.ops.poise, name).get_rna_type()


def is_internal(name):
    """Whether a search for operators leaves this one out."""
    cls = getattr(bpy.types, f"POISE_OT_{name}")
    return "INTERNAL" in getattr(cls, "bl_options", ())


def trees():
    """(file, syntax tree) of all modules of the add-on."""
    for path in sorted(ADDON.rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def words(node):
    """All texts in an expression."""
    return [n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and n.value]


# --- Operators -----------------------------------------------------------------------------------


def test_every_operator_has_a_name_of_its_own_and_a_description():
    labels = [kind.name for _, kind in own_operators()]
    assert len(labels) > 35
    assert sorted(set(labels)) == sorted(labels)
    for name, kind in own_operators():
        assert len(kind.description) > 15, name
        assert not kind.description.endswith("."), name


def test_what_a_search_finds_is_not_taken_for_an_operator_of_blender():
    taken = set()
    for group in dir(bpy.ops):
        for name in dir(getattr(bpy.ops, group)) if group != "poise" else ():
            taken.add(getattr(getattr(bpy.ops, group), name).get_rna_type().name)
    assert len(taken) > 1000
    for name, kind in own_operators():
        if not is_internal(name):
            assert kind.name not in taken, name
            assert " " in kind.name, f"{name}: a word alone tells nothing out of its panel"


def reasons():
    """{name of an operator that is grey: why, as its tooltip says}."""
    told = {}
    for name, _ in own_operators():
        operator = getattr(bpy.ops.poise, name)
        if not operator.poll():
            with pytest.raises(RuntimeError) as caught:
                operator()
            told[name] = str(caught.value).partition(".poll()")[2].strip()
            assert "context is incorrect" not in told[name], name
            assert " " in told[name] and not told[name].endswith("."), (name, told[name])
    return told


def test_a_grey_button_says_why_in_an_empty_scene():
    told = reasons()
    assert len(told) > 20
    assert told["simulate"] == "The scene has no armature: add or import an animated character"
    assert told["remove_push"] == "There is no push: add one first"


def test_a_grey_button_says_why_without_an_animation():
    bpy.ops.object.armature_add()
    told = reasons()
    assert told["simulate"] == "'Armature' has no animation: give it an action"
    assert told["show"] == "'Armature' has no bake: press Bake first"
    assert told["bake"] == "There is no simulation of 'Armature': press Simulate first"
    bpy.ops.object.mode_set(mode="EDIT")
    assert reasons()["simulate"] == "'Armature' is in Edit Mode: leave it first"


def test_a_grey_button_says_why_while_poise_is_at_work():
    bpy.ops.object.armature_add()
    job = SimpleNamespace(
        doing="dreaming",
        scene_name=bpy.context.scene.name,
        tunes=False,
        rectifies=False,
        cancel=lambda: session.end(job),
    )
    session.start(job)
    told = reasons()
    session.end(job)
    at_work = "Poise is dreaming: wait, or press Esc to stop it"
    assert len([name for name, reason in told.items() if reason == at_work]) > 20
    assert told["simulate"] == told["example_scene"] == told["gains_choose"] == at_work
    assert "cancel" not in told


def test_names_beside_fields_have_room(draw_panels):
    """The stand-in for the window's layout looks at them."""
    bpy.ops.object.armature_add()
    modules = rectify_panel, robustness_panel, tuning_panel, clean_up_panel, overlay_panel
    drawn = [one for module in modules for one in module.CLASSES if hasattr(one, "content")]
    drawn += [panels.POISE_PT_character, panels.POISE_PT_simulate, panels.POISE_PT_bake]
    settings = bpy.context.scene.poise
    for settings.keys in ("EVERY", "NTH", "TOLERANCE"):
        for settings.frames in ("ACTION", "CUSTOM"):
            assert draw_panels(drawn, bpy.context.object)


def test_buttons_of_one_name_do_one_thing():
    meaning = {}
    for path, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "draw_start":
                _, operator, text, _ = node.args
                for word in words(text):
                    beside = (f"{ast.unparse(operator)}.bl_idname", path.name)
                    meaning.setdefault(word, set()).add(beside)
            if not (isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "operator"):
                continue
            text = next((words(k.value) for k in node.keywords if k.arg == "text"), [])
            for word in text:
                meaning.setdefault(word, set()).add((ast.unparse(node.args[0]), path.name))
    assert {"Simulate", "Bake", "Rectify", "Optimize"} <= meaning.keys()
    for word in meaning.keys() - SYNONYMS:
        assert len({operator for operator, _ in meaning[word]}) == 1, (word, meaning[word])


def test_the_tab_stands_after_those_of_blender():
    """Blender puts tabs with a panel that has no header before all others, its own *Item* too."""
    tops = [
        cls
        for cls in bpy.types.Panel.__subclasses__()
        if getattr(cls, "bl_category", "") == "Poise" and not getattr(cls, "bl_parent_id", "")
    ]
    assert len(tops) > 5
    assert [cls for cls in tops if "HIDE_HEADER" in getattr(cls, "bl_options", ())] == []


def test_no_key_is_taken():
    configurations = bpy.context.window_manager.keyconfigs
    for configuration in configurations:
        for keymap in configuration.keymaps:
            assert not [i for i in keymap.keymap_items if i.idname.startswith("poise.")]
    for path, tree in trees():
        names = {getattr(node, "attr", "") for node in ast.walk(tree)}
        assert not names & {"keyconfigs", "keymap_items", "keymaps"}, path


# --- Icons, units --------------------------------------------------------------------------------


def icons_named(tree):
    """Names of icons in a module: what is given as `icon`, and tables of icons."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            values = [k.value for k in node.keywords if k.arg == "icon"]
            if getattr(node.func, "id", "") == "_sentence":
                values.append(node.args[-1])
        elif isinstance(node, ast.Assign) and "icon" in ast.unparse(node.targets[0]).lower():
            values = [node.value.value if isinstance(node.value, ast.Subscript) else node.value]
        else:
            continue
        for value in values:
            found = value.values if isinstance(value, ast.Dict) else [value]
            found = [part for part in found if not isinstance(part, ast.Subscript)]
            yield from (word for part in found for word in words(part) if str(word).isupper())


def test_every_icon_exists():
    parameter = bpy.types.UILayout.bl_rna.functions["label"].parameters["icon"]
    known = set(parameter.enum_items.keys())
    used = {(path.name, icon) for path, tree in trees() for icon in icons_named(tree)}
    assert len({icon for _, icon in used}) > 25
    assert not [(name, icon) for name, icon in used if icon not in known]


def own_groups():
    """All property groups, preferences and operators of Poise."""
    for cls in poise.addon._classes():
        if re.match("POISE_(PG|AP|OT)_", cls.__name__):
            yield cls.__name__, cls.bl_rna


def test_every_setting_has_a_tooltip_and_its_unit_in_its_name():
    count, inherited = 0, {"rna_type", "name", "bl_idname", "filepath"}
    inherited |= set(bpy.types.Operator.bl_rna.properties.keys())
    for group, rna in own_groups():
        for prop in rna.properties:
            if prop.identifier in inherited or prop.identifier.startswith(
                ("filter", "hide_props", "check_")
            ):
                continue
            count += 1
            where = f"{group}.{prop.identifier}"
            assert prop.name and prop.description, where
            assert not prop.description.endswith("."), where
            unit = re.search(r"\[([^\]]+)\]", prop.description)
            # Sliders from 0 to 1 and frames tell by themselves what they are.
            if unit and prop.type != "BOOLEAN" and unit[1] not in ("frame", "frames", "share"):
                short = {"minutes": "min"}.get(unit[1], unit[1])
                assert f"({short}" in prop.name, f"{where}: {prop.name} has no ({unit[1]})"
            if prop.type == "ENUM":
                for item in prop.enum_items:
                    assert item.name and item.description, f"{where}: {item.identifier}"
    assert count > 150


# --- Menus ---------------------------------------------------------------------------------------


class Lines:
    """A stand-in for UILayout that takes down operators and menus."""

    def __init__(self):
        self.lines = []

    def operator(self, name, text="", **_options):
        group, verb = name.split(".")
        rna = getattr(getattr(bpy.ops, group), verb).get_rna_type()
        self.lines.append(text or rna.name)
        return SimpleNamespace()

    def menu(self, name, **_options):
        self.lines.append(getattr(bpy.types, name).bl_label)

    def separator(self):
        pass


def drawn(draw):
    """What a function of (menu, context) adds to a menu."""
    layout = Lines()
    draw(SimpleNamespace(layout=layout), bpy.context)
    return layout.lines


def test_the_menu_has_what_an_animator_looks_for():
    assert drawn(menus.POISE_MT_physics.draw) == [
        "Simulate Physics",
        "Rectify Motion for Physics",
        "Optimize Physics Gains",
        "Bake Physics to Action",
        "Show Source Action",
        "Show Baked Action",
        "Discard Simulation",
        "Example Scene",
        "Example Scene: Stairs",
    ]


def test_object_and_pose_have_the_menu_while_poise_is_enabled():
    import inspect

    menu = bpy.types.VIEW3D_MT_object_animation
    assert menus._draw in menu._dyn_ui_initialize()
    assert drawn(menus._draw) == ["Physics (Poise)"]
    for name in ("VIEW3D_MT_object", "VIEW3D_MT_pose"):
        draw = getattr(bpy.types, name).draw
        # Other add-ons may have added to it.
        source = inspect.getsource(getattr(draw, "_draw_funcs", [draw])[0])
        assert '"VIEW3D_MT_object_animation"' in source, name
    poise.unregister()
    assert menus._draw not in menu._dyn_ui_initialize()
    poise.register()


def test_all_operators_are_registered():
    assert {cls.bl_idname.partition(".")[2] for cls in operators.CLASSES} <= set(dir(bpy.ops.poise))
